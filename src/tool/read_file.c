/* read_file: lines of one text file. The file is streamed once in 64 KB steps
 * and never held; what is counted behind the range is bounded, so that a file
 * of any size answers soon (the total then ends in '+'). Output: first line
 * "path (lines A-B of N)", then "LINE\ttext", and when there is more a last
 * line that says how to go on. */
#include <ava.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "tool/gate.h"
#include "tool/job.h"
#include "tool/lines.h"
#include "tool/root.h"
#include "tool/table.h"

#define STEP          (64u << 10)
#define CACHED_MAX    (32u << 10) /* bytes of a file that is read on the loop */
#define BINARY_LOOK   (8u << 10)
#define LINES_DEFAULT 2000
#define BODY_MAX      (TOOL_OUTPUT_MAX - (6u << 10)) /* room for a path and a note */
#define BEHIND_MAX    (256ll << 20)                  /* bytes read after the range was reached */

struct reading {
	char path[PATH_MAX];
	int fd;
	struct stat st;
	struct gate gate;
	struct lines lines;
	int64_t behind; /* bytes read since the range was reached */
	bool more;      /* the file goes on where we stopped counting */
};

/* Fill `data` as far as the file reaches. -1 and errno. */
static ssize_t fill(int fd, char *data, size_t size)
{
	size_t len = 0;

	while (len < size) {
		ssize_t n = read(fd, data + len, size - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	return (ssize_t)len;
}

static int check_text(const struct reading *r, const char *data, size_t len, struct ava_error *err)
{
	const char *nul = memchr(data, '\0', MIN(len, BINARY_LOOK));

	if (nul == NULL)
		return 0;
	return err_set(err, AVA_EDENIED,
		       "%s is binary (%lld bytes, a NUL at byte %zu): read_file reads text only",
		       r->path, (long long)r->st.st_size, (size_t)(nul - data));
}

static int too_slow(const struct reading *r, struct ava_error *err)
{
	return err_set(
		err, AVA_ETIMEOUT,
		"%s is too large: line %lld was not reached within %d seconds (line %lld was)",
		r->path, (long long)r->lines.first, r->gate.seconds, (long long)r->lines.at);
}

static int stream(struct reading *r, struct ava_error *err)
{
	char *data = malloc(STEP);
	bool first = true;
	int rv = 0;

	if (data == NULL)
		return err_set(err, AVA_ENOMEM, "out of memory");
	for (;;) {
		ssize_t n = fill(r->fd, data, STEP);

		if (n < 0) {
			rv = err_sys(err, "read %s", r->path);
			break;
		}
		if (first)
			rv = check_text(r, data, (size_t)n, err);
		if (rv != 0)
			break;
		first = false;
		lines_feed(&r->lines, data, (size_t)n);
		if (n < (ssize_t)STEP)
			break;
		if (r->lines.at >= r->lines.first)
			r->behind += n;
		rv = gate_check(&r->gate);
		if (rv == AVA_ECANCELED)
			break;
		if (rv != 0 && r->lines.at < r->lines.first) {
			rv = too_slow(r, err);
			break;
		}
		r->more = rv != 0 || r->behind > BEHIND_MAX;
		rv = 0;
		if (r->more)
			break;
	}
	free(data);
	return rv;
}

/* The range as asked for, or the default one. */
static int range(struct reading *r, const json_t *args, struct ava_error *err)
{
	int64_t first = json_get_int(args, "first_line", 1);
	int64_t last = json_get_int(args, "last_line", 0);

	if (last == 0)
		last = first <= INT64_MAX - LINES_DEFAULT ? first + LINES_DEFAULT - 1 : INT64_MAX;
	if (first < 1 || last < first)
		return err_set(err, AVA_EINVAL,
			       "last_line %lld comes before first_line %lld: lines count from 1",
			       (long long)last, (long long)first);
	lines_init(&r->lines, first, last, NULL, BODY_MAX);
	return 0;
}

static int answer(struct reading *r, struct buf *out, struct ava_error *err)
{
	struct lines *l = &r->lines;
	int64_t total;

	if (lines_end(l) != 0)
		return err_set(err, AVA_ENOMEM, "out of memory");
	total = lines_total(l);
	if (l->first > total && l->first > 1)
		return err_set(err, AVA_EINVAL,
			       "%s has %lld line%s: first_line %lld is behind its "
			       "end",
			       r->path, (long long)total, total == 1 ? "" : "s",
			       (long long)l->first);
	utf8_repair(out, r->path, strlen(r->path));
	buf_addf(out, " (lines %lld-%lld of %lld%s)\n", (long long)l->from, (long long)l->to,
		 (long long)total, r->more ? "+" : "");
	buf_add(out, l->body.data, l->body.len);
	if (total == 0)
		buf_adds(out, "(the file is empty)\n");
	else if (l->to < total || r->more)
		buf_addf(out, "(the file goes on: first_line %lld)\n", (long long)l->to + 1);
	return buf_check(out);
}

/* What is asked for. */
static int wish(struct reading *r, const struct root *root, const json_t *args,
		struct ava_error *err)
{
	const char *path;
	int rv = job_arg_str(args, "path", &path, err);

	if (rv == 0 && (path == NULL || path[0] == '\0'))
		rv = err_set(err, AVA_EINVAL, "path is empty: name the file to read");
	if (rv == 0)
		rv = root_path(root, path, r->path, err);
	return rv == 0 ? range(r, args, err) : rv;
}

/* The whole of a short file that is in memory; JOB_LATER: it is not. */
static int take_cached(struct reading *r, struct ava_error *err)
{
	char data[CACHED_MAX];
	struct iovec room = {data, sizeof(data)};
	ssize_t n;
	int rv;

	if (r->st.st_size >= (off_t)sizeof(data))
		return JOB_LATER;
	n = r->st.st_size > 0 ? preadv2(r->fd, &room, 1, 0, RWF_NOWAIT) : 0;
	if (n != r->st.st_size)
		return JOB_LATER;
	rv = check_text(r, data, (size_t)n, err);
	if (rv == 0)
		lines_feed(&r->lines, data, (size_t)n);
	return rv;
}

/* Most files are short and were read before: waking a thread would cost more
 * than reading them. */
static int run_cached(struct tool_call *c, struct ava_error *err)
{
	struct reading r = {.gate = {.stop = &c->stop}};
	const struct root root = {.fd = c->env->cwd_fd, .cwd = c->env->cwd};
	int rv = wish(&r, &root, c->args, err);

	if (rv != 0)
		return rv;
	r.fd = root_open_cached(&root, r.path, &r.st);
	rv = r.fd < 0 ? JOB_LATER : take_cached(&r, err);
	if (rv == 0)
		rv = answer(&r, &c->out, err);
	if (r.fd >= 0)
		close(r.fd);
	lines_fini(&r.lines);
	return rv;
}

static int run(struct tool_call *c, struct ava_error *err)
{
	struct reading r = {
		.fd = -1,
		.gate = gate_of(c),
	};
	const struct root root = {.fd = c->env->cwd_fd, .cwd = c->env->cwd};
	int rv = wish(&r, &root, c->args, err);

	if (rv != 0)
		return rv;
	r.fd = root_open_file(&root, r.path, &r.st, err);
	rv = r.fd < 0 ? r.fd : stream(&r, err);
	if (rv == 0)
		rv = answer(&r, &c->out, err);
	if (r.fd >= 0)
		close(r.fd);
	lines_fini(&r.lines);
	return rv;
}

static void start(struct tool_call *c)
{
	if (!job_now(c, run_cached))
		job_start(c, run);
}

/* "Reading src/a.c:10-60" */
static void activity(const json_t *args, struct buf *out)
{
	const char *path = json_get_str(args, "path");
	int64_t first = json_get_int(args, "first_line", 0);
	int64_t last = json_get_int(args, "last_line", 0);

	buf_adds(out, "Reading ");
	if (path != NULL)
		job_name(out, path);
	if (first != 0 || last != 0)
		buf_addf(out, ":%lld-", (long long)MAX(first, 1));
	if (last != 0)
		buf_addf(out, "%lld", (long long)last);
}

const struct tool tool_read_file = {
	.name = "read_file",
	.description =
		"Read a text file below the working folder, with line numbers. Without a range it "
		"gives the first 2,000 lines or 58 KB and says how to go on. Give first_line and "
		"last_line when you know the place, as from a search. Do not use it to look for "
		"something: search_codebase finds it faster. It cannot read folders or binary "
		"files.",
	.schema = "{\"type\":\"object\",\"properties\":{"
		  "\"path\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":4096,"
		  "\"description\":\"The file, relative to the working folder.\"},"
		  "\"first_line\":{\"type\":\"integer\",\"minimum\":1,\"description\":\"From 1; "
		  "default 1.\"},"
		  "\"last_line\":{\"type\":\"integer\",\"minimum\":1,\"description\":\"Default: "
		  "2,000 "
		  "lines from first_line.\"}},"
		  "\"required\":[\"path\"],\"additionalProperties\":false}",
	.flags = TOOL_REPEATABLE | TOOL_FILES | TOOL_PRIVATE,
	.start = start,
	.activity = activity,
};
