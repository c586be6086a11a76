/* As a question: the first line of the input is a time, a type, a literal and
 * an expression at once, the rest a log. As a log: reading it line by line
 * gives exactly the lines that the same question has for each alone, whatever
 * was found out about the block. */
#include "fuzz.h"

#include <ava.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "journal/query.h"
#include "journal/query_time.h"
#include "journal/read_file.h"

#define NOW INT64_C(1795248000000)

static char *copy(const uint8_t *data, size_t len)
{
	char *s = malloc(len + 1);

	CHECK(s != NULL);
	if (len > 0)
		memcpy(s, data, len);
	s[len] = '\0';
	return s;
}

static void check_words(const char *text)
{
	struct query_spec all = {.types = text, .agent = text, .user = text, .since = text};
	struct query q;
	uint64_t mask;
	int64_t ms;

	if (query_time(text, NOW, &ms, NULL) == 0)
		CHECK(ms >= 0 && ms <= INT64_C(253402300799999));
	if (query_types(text, &mask, NULL) == 0 && *text != '\0')
		CHECK(mask != 0);
	if (query_init(&q, &all, NULL) == 0)
		query_fini(&q);
}

/* Every wanted or broken line of the file, in order, is what query_line says
 * of the same bytes; nothing else is given. */
static void check_file(const struct query *q, int dirfd, const char *path, const char *log)
{
	struct read_file f;
	struct read_line got;
	struct event_view view;
	struct ava_error err;
	int rv;

	CHECK(read_file_open(&f, dirfd, path, false, &err) == 0);
	for (const char *p = log, *nl; (nl = strchr(p, '\n')) != NULL; p = nl + 1) {
		enum query_answer answer = query_line(q, p, (size_t)(nl - p), false, &view);

		if (answer == QUERY_NO)
			continue;
		rv = read_file_next(&f, q, &got, &err);
		CHECK(answer != QUERY_YES || (rv == 1 && got.offset == (uint64_t)(p - log) &&
					      got.len == (size_t)(nl - p)));
		CHECK(answer != QUERY_BROKEN || rv == AVA_ECORRUPT);
		CHECK(answer != QUERY_COSTLY || rv == AVA_ETOOBIG);
	}
	CHECK(read_file_next(&f, q, &got, &err) == 0);
	read_file_close(&f);
}

static void check_log(const char *text, const char *log, size_t len)
{
	struct query_spec specs[] = {{.search = text}, {.regex = text}, {.types = "tool"}};
	int fd = memfd_create("log", MFD_CLOEXEC);
	char path[40];

	CHECK(fd >= 0 && write(fd, log, len) == (ssize_t)len);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	for (size_t i = 0; i < sizeof(specs) / sizeof(*specs); i++) {
		struct query q;

		if (query_init(&q, &specs[i], NULL) != 0)
			continue;
		check_file(&q, AT_FDCWD, path, log);
		query_fini(&q);
	}
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const uint8_t *nl = len > 0 ? memchr(data, '\n', len) : NULL;
	size_t head = nl != NULL ? (size_t)(nl - data) : len;
	char *text = copy(data, head), *log;

	check_words(text);
	if (nl != NULL) {
		log = copy(nl + 1, len - head - 1);
		if (strlen(log) == len - head - 1) /* the walk above ends at a NUL */
			check_log(text, log, len - head - 1);
		free(log);
	}
	free(text);
	return 0;
}
