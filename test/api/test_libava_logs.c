/* The logs of a data root through the public face: reading them, and verifying
 * that they are what was sealed. */
#include "unit/unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ava.h>

struct world {
	char dir[256], root[300];
	struct ava_run_id run;
};

/* A run that has ended, in a root that nobody has open: all of it is sealed. */
static int setup(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct ava_options o = {0};
	struct ava_spawn s = {.task = "where is the torn tail cut?"};
	struct ava_error err = {0};
	struct ava_runtime *rt;
	const char *run = w->run.text;

	snprintf(w->dir, sizeof(w->dir), "%s", unit_tmpdir());
	snprintf(w->root, sizeof(w->root), "%s/root", w->dir);
	o.root = w->root;
	o.env = (const char *const[]){"AVA_DISK_FREE_MIN_MB=0", NULL};
	s.cwd = w->dir;
	if (ava_runtime_new(&rt, &o, &err) != 0 || ava_spawn(rt, &s, &w->run, &err) != 0 ||
	    ava_wait(rt, &run, 1, AVA_WAIT_ALL, 300000, NULL, &err) != 1)
		fail_msg("%s", err.text);
	ava_runtime_free(rt);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	unit_rmdir(w->dir);
	free(w);
	return 0;
}

static void flip(const struct world *w, const char *path, off_t at)
{
	char full[400], byte;
	int fd;

	snprintf(full, sizeof(full), "%s/%s", w->root, path);
	fd = open(full, O_RDWR);
	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &byte, 1, at), 1);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	close(fd);
}

struct found {
	unsigned broken, other;
	char path[200], what[200];
	uint64_t line, done;
};

static void on_finding(const struct ava_finding *f, void *user)
{
	struct found *found = user;

	if (f->kind != AVA_BROKEN) {
		found->other++;
		return;
	}
	if (found->broken++ > 0)
		return;
	snprintf(found->path, sizeof(found->path), "%s", f->path);
	snprintf(found->what, sizeof(found->what), "%s", f->what);
	found->line = f->line;
}

static struct ava_verified verify(const struct world *w, const char *path,
				  const struct ava_log_head *head, struct found *found)
{
	struct ava_verify o = {.root = w->root,
			       .paths = &path,
			       .npaths = path != NULL,
			       .head = head,
			       .finding = on_finding,
			       .user = found};
	struct ava_verified out;
	struct ava_error err = {0};

	*found = (struct found){0};
	if (ava_log_verify(&o, &out, &err) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(out.broken, found->broken);
	return out;
}

TEST(reading)
{
	struct world *w = *state;
	struct ava_log_query q = {.root = w->root, .run = w->run.text};
	struct ava_log_event e;
	struct ava_log *log;
	uint64_t lsn = 0, n = 0;
	char last[40] = "";

	assert_int_equal(ava_log_open(&log, &q, NULL), 0);
	while (ava_log_next(log, &e, NULL) == 1) {
		assert_true(e.lsn > lsn);
		assert_int_equal(e.seq, ++n);
		lsn = e.lsn;
		snprintf(last, sizeof(last), "%s", e.type);
	}
	ava_log_close(log);
	assert_string_equal(last, "SubagentComplete");
	q = (struct ava_log_query){.root = w->root, .everything = 1, .types = "SubagentComplete"};
	assert_int_equal(ava_log_open(&log, &q, NULL), 0);
	assert_int_equal(ava_log_next(log, &e, NULL), 1);
	assert_int_equal(e.lsn, lsn);
	assert_int_equal(ava_log_next(log, &e, NULL), 0); /* it stands in two files */
	ava_log_close(log);
}

TEST(as_sealed)
{
	struct world *w = *state;
	struct ava_log_head head;
	struct ava_verified all, one;
	struct found found;

	assert_int_equal(ava_log_head(w->root, &head, NULL), 0);
	assert_true(head.n > 0 && strlen(head.hash) == 64 && strlen(head.key) == 64);
	assert_int_equal(strlen(head.at), 24);
	all = verify(w, NULL, &head, &found);
	assert_int_equal(all.broken + found.other, 0);
	assert_int_equal(all.unsealed_bytes, 0);
	assert_true(all.files >= 4 && all.bytes > 0);
	assert_int_equal(all.newest.n, head.n);
	assert_string_equal(all.newest.hash, head.hash);
	one = verify(w, w->run.text, NULL, &found);
	assert_int_equal(one.files, 1);
	assert_true(one.bytes < all.bytes);
}

TEST(an_edit)
{
	struct world *w = *state;
	struct ava_log_head head;
	struct found found;
	char path[100];

	snprintf(path, sizeof(path), "logs/subagents/%s.jsonl", w->run.text);
	flip(w, path, 20);
	verify(w, w->run.text, NULL, &found);
	assert_int_equal(found.broken, 1);
	assert_string_equal(found.path, path);
	assert_int_equal(found.line, 1);
	assert_non_null(strstr(found.what, "was changed"));
	verify(w, "catalog.jsonl", NULL, &found);
	assert_int_equal(found.broken, 0);
	flip(w, path, 20);
	verify(w, NULL, NULL, &found);
	assert_int_equal(found.broken, 0);

	/* A seal that was kept, of logs that are others now. */
	assert_int_equal(ava_log_head(w->root, &head, NULL), 0);
	head.n++;
	verify(w, NULL, &head, &found);
	assert_int_equal(found.broken, 1);
	assert_non_null(strstr(found.what, "that was kept is missing"));
}

static void count(uint64_t done, uint64_t total, void *user)
{
	struct found *found = user;

	assert_true(done <= total);
	found->done++;
}

TEST(what_cannot_be_done)
{
	struct world *w = *state;
	const char *path = "logs/none.jsonl";
	struct ava_verify o = {.root = "/nonexistent/root"};
	struct found found = {0};
	struct ava_verified out;
	struct ava_log_head head;
	struct ava_error err;

	assert_int_equal(ava_log_verify(&o, &out, &err), AVA_ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent/root"));
	assert_int_equal(ava_log_head(o.root, &head, NULL), AVA_ENOENT);
	assert_int_equal(head.n, 0);
	o = (struct ava_verify){.root = w->root, .paths = &path, .npaths = 1};
	assert_int_equal(ava_log_verify(&o, &out, NULL), AVA_ENOENT);
	o = (struct ava_verify){.root = w->root, .progress = count, .user = &found};
	assert_int_equal(ava_log_verify(&o, &out, NULL), 0); /* nobody hears findings */
	setenv("AVA_DATA_ROOT", w->root, 1);
	assert_int_equal(ava_log_head(NULL, &head, NULL), 0);
	o.root = NULL;
	assert_int_equal(ava_log_verify(&o, &out, NULL), 0);
	unsetenv("AVA_DATA_ROOT");
}

UNIT_GROUP(.before = setup, .after = teardown);
