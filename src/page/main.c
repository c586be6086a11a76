/* ava-page [--base URL] [--type MIME] [--charset CS] [--max-bytes N] [--as markdown|source]: a page
 * on standard input, on standard output a line of JSON about it and then its Markdown, of N bytes
 * at the most. Of a page of more than 10 MB the first 10 MB are read.
 *
 * It runs in the sandbox (exec/sandbox.h), since what it reads was written by strangers and
 * libxml2 is large. It limits itself as well, so that it ends soon wherever it is started: no
 * more memory than it may need, and so many seconds of processor time, after which it says so.
 * Exit codes: 0; 2 usage; 3 not understood, with one sentence on standard error. */
#include <ava.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "page/page.h"

#define SECONDS_MAX 5
#define MEMORY_MAX  536870912ul /* bytes; a page of 10 MB takes a fifth */

#define NOT_UNDERSTOOD 3

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#define SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define SANITIZED 0
#endif

static void on_time(int sig)
{
	static const char said[] = "ava-page: it takes longer than 5 seconds to read\n";

	ssize_t n = write(STDERR_FILENO, said, sizeof(said) - 1);

	(void)n; /* the exit code tells it as well */
	_exit(NOT_UNDERSTOOD);
}

static void limit_self(void)
{
	struct rlimit seconds = {SECONDS_MAX, SECONDS_MAX + 1}, memory = {MEMORY_MAX, MEMORY_MAX};
	struct rlimit now;

	signal(SIGXCPU, on_time);
	if (getrlimit(RLIMIT_CPU, &now) == 0 && now.rlim_max > seconds.rlim_max)
		(void)setrlimit(RLIMIT_CPU, &seconds);
	/* A sanitizer needs more memory than the limit. */
	if (!SANITIZED && getrlimit(RLIMIT_DATA, &now) == 0 && now.rlim_max > memory.rlim_max)
		(void)setrlimit(RLIMIT_DATA, &memory);
}

/* false: wrong usage. */
static bool read_options(struct page_in *in, int argc, char **argv)
{
	for (int i = 1; i < argc; i += 2) {
		const char *value = argv[i + 1];
		char *end;

		if (!value)
			return false;
		if (strcmp(argv[i], "--base") == 0) {
			in->base = value;
		} else if (strcmp(argv[i], "--type") == 0) {
			in->type = value;
		} else if (strcmp(argv[i], "--charset") == 0) {
			in->charset = value;
		} else if (strcmp(argv[i], "--max-bytes") == 0) {
			unsigned long n = strtoul(value, &end, 10);

			if (*end || value[0] < '1' || value[0] > '9' || n > PAGE_BYTES_MAX)
				return false;
			in->max = n;
		} else if (strcmp(argv[i], "--as") == 0) {
			in->source = strcmp(value, "source") == 0;
			if (!in->source && strcmp(value, "markdown") != 0)
				return false;
		} else {
			return false;
		}
	}
	return true;
}

/* Read standard input; *more: it has more than fits. */
static int main_read_all(struct buf *body, bool *more)
{
	*more = false;
	for (;;) {
		size_t room = body->max - body->len < 65536 ? body->max - body->len : 65536;
		char spare, *at = room > 0 ? buf_reserve(body, room) : &spare;
		ssize_t n = at ? read(STDIN_FILENO, at, room > 0 ? room : 1) : -1;

		if (n < 0 && at && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		*more = n > 0 && room == 0;
		if (n == 0 || *more)
			return 0;
		body->len += (size_t)n;
		body->data[body->len] = 0;
	}
}

static bool main_write_all(const struct buf *b)
{
	for (size_t done = 0; done < b->len;) {
		ssize_t n = write(STDOUT_FILENO, b->data + done, b->len - done);

		if (n < 0 && errno != EINTR)
			return false;
		done += n > 0 ? (size_t)n : 0;
	}
	return true;
}

static int main_say(const char *what, const char *why)
{
	fprintf(stderr, "ava-page: %s%s\n", what, why);
	return NOT_UNDERSTOOD;
}

static int main_convert(const struct page_in *in, struct buf *body, struct buf *head)
{
	struct ava_error err = {0};
	struct page page;
	bool more, good;

	if (main_read_all(body, &more) != 0)
		return main_say("the page cannot be read: ", strerror(errno));
	if (page_read(&page, in, body->data ? body->data : "", body->len, &err) != 0)
		return main_say(err.text, "");
	page.truncated = page.truncated || more;
	good = page_head(&page, head) == 0 && main_write_all(head) && main_write_all(&page.text);
	page_fini(&page);
	return good ? 0 : main_say("its text cannot be written: ", strerror(errno));
}

int main(int argc, char **argv)
{
	struct page_in in = {.max = PAGE_BYTES_MAX};
	struct buf body, head;
	int code;

	if (!read_options(&in, argc, argv)) {
		fprintf(stderr, "usage: ava-page [--base URL] [--type MIME] [--charset CS] "
				"[--max-bytes N] [--as markdown|source]: what avad reads pages "
				"with; the page comes on standard input\n");
		return 2;
	}
	limit_self();
	buf_init(&body, PAGE_BYTES_MAX);
	buf_init(&head, 65536);
	code = main_convert(&in, &body, &head);
	buf_fini(&head);
	buf_fini(&body);
	return code;
}
