/* The bounds of a search: it ends as a success that says what it left out. */
#include "tool_unit.h"

#include <pthread.h>

#include "base/clock.h"
#include "tool/scan.h"

static int count_hit(void *user, const struct scan_hit *h)
{
	(*(int *)user)++;
	assert_non_null(h->path);
	return 0;
}

static void begin(struct scan *s, const char *args, int *hits)
{
	tool_unit_prepare("search_codebase", args);
	test_clock_stop();
	assert_int_equal(scan_init(s, &u.call, NULL), 0);
	assert_int_equal(s->files_max, SCAN_FILES_MAX);
	assert_int_equal(s->bytes_max, SCAN_BYTES_MAX);
	assert_int_equal(s->gate.deadline_ms, clock_mono_ms() + TOOL_TIME_MS);
	test_clock_go();
	*hits = 0;
	s->hit = count_hit;
	s->user = hits;
}

/* What the summary says; good until the next call. */
static const char *counts(const struct scan *s)
{
	buf_reset(&u.call.out);
	scan_counts(s, &u.call.out);
	return u.call.out.data;
}

static void ten_files(void)
{
	char name[10];

	for (int i = 0; i < 10; i++) {
		snprintf(name, sizeof(name), "f%d", i);
		put(name, "foo\n");
	}
}

TEST(files)
{
	struct scan s;
	int hits;

	ten_files();
	begin(&s, "{'pattern':'foo'}", &hits);
	s.files_max = 7;
	assert_int_equal(scan_run(&s, NULL), 0);
	assert_int_equal(hits, 7);
	assert_string_equal(counts(&s), "7 files searched; stopped after 7 files: narrow it with "
					"path or glob");
	scan_fini(&s);
}

TEST(bytes)
{
	struct scan s;
	int hits;

	ten_files();
	begin(&s, "{'pattern':'foo'}", &hits);
	s.bytes_max = 9; /* asked between files */
	assert_int_equal(scan_run(&s, NULL), 0);
	assert_int_equal(hits, 3);
	assert_holds(counts(&s), "3 files searched; stopped after 0 MB");
	scan_fini(&s);
}

TEST(time)
{
	struct ava_error err = {.code = 0};
	struct scan s;
	int hits;

	ten_files();
	begin(&s, "{'pattern':'foo'}", &hits);
	s.gate.deadline_ms = clock_mono_ms();
	assert_int_equal(scan_run(&s, &err), 0);
	assert_int_equal(hits, 0);
	assert_holds(counts(&s), "0 files searched; stopped after 20 seconds");
	scan_fini(&s);
}

/* A text of which every line matches is stopped in its midst. */
TEST(stop_within_a_file)
{
	char *text = malloc(256u << 10);
	struct scan s;
	int hits;

	memset(text, '\n', 256u << 10);
	for (size_t i = 0; i < 256u << 10; i += 2)
		text[i] = 'x';
	unit_write(in("lines"), text, 256u << 10);
	begin(&s, "{'pattern':'x'}", &hits);
	s.gate.deadline_ms = INT64_MAX; /* however slow this build and machine are */
	assert_int_equal(scan_run(&s, NULL), 0);
	assert_int_equal(hits, 128u << 10);
	scan_fini(&s);
	begin(&s, "{'pattern':'x','path':'lines'}", &hits);
	atomic_store(&u.call.stop, true);
	assert_int_equal(scan_run(&s, NULL), AVA_ECANCELED);
	assert_true(hits <= 1024);
	atomic_store(&u.call.stop, false);
	scan_fini(&s);
	free(text);
}

/* "a" is 3 MB, then nothing, then 3 MB. */
static void *resize(void *end)
{
	char path[310];
	int fd;
	static char text[3u << 20];

	snprintf(path, sizeof(path), "%s/a", u.dir);
	fd = open(path, O_WRONLY);
	memset(text, 'x', sizeof(text));
	while (!atomic_load((atomic_bool *)end)) {
		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, text, sizeof(text), 0), sizeof(text));
		usleep(500); /* so that it is seen whole, too */
	}
	close(fd);
	return NULL;
}

/* A file that changes while it is read is searched as far as it goes. */
TEST(changing_file)
{
	struct scan s;
	pthread_t thread;
	atomic_bool end = false;
	int64_t until = clock_mono_ms() + 60000;
	size_t len, whole = 0, part = 0;
	int hits, fd;

	put("a", "x\n");
	begin(&s, "{'pattern':'foo'}", &hits);
	assert_int_equal(pthread_create(&thread, NULL, resize, &end), 0);
	for (int i = 0; i < 300 || (clock_mono_ms() < until && (whole == 0 || part == 0)); i++) {
		fd = open(in("a"), O_RDONLY);
		assert_int_equal(scan_load(&s, fd, &len), 1);
		assert_true(len <= 3u << 20);
		whole += len == 3u << 20;
		part += len < 3u << 20;
		close(fd);
	}
	atomic_store(&end, true);
	pthread_join(thread, NULL);
	assert_true(whole > 0 && part > 0);
	fd = open(u.dir, O_RDONLY | O_DIRECTORY);
	assert_int_equal(scan_load(&s, fd, &len), 0);
	assert_int_equal(s.unreadable, 1);
	close(fd);
	scan_fini(&s);
}

UNIT_GROUP(.before = tool_unit_open, .after = tool_unit_close);
