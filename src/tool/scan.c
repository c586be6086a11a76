/* Searching files; see scan.h.
 *
 * Each file is read in pieces into one buffer that the whole search shares
 * (never mapped: a file that shrinks would kill us), looked at for NUL bytes
 * first, then searched. What cannot or should not be searched is counted, and
 * the summary says so. When a bound is reached the search ends as a success
 * that says what it did not do; only a stop of the run ends it as an error. */
#include "tool/scan.h"

#include <ava.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/tool.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "tool/job.h"
#include "tool/walk.h"

#define READ_STEP   (64u << 10)
#define BINARY_LOOK (8u << 10) /* a NUL in these first bytes: binary */

/* ---- set-up */

static int init_pattern(struct scan *s, const json_t *args, struct ava_error *err)
{
	const char *pattern, *glob;
	unsigned flags = 0;
	int rv = job_arg_str(args, "pattern", &pattern, err);

	if (rv == 0)
		rv = job_arg_str(args, "glob", &glob, err);
	if (rv != 0)
		return rv;
	if (json_get_bool(args, "regex", false))
		flags |= MATCH_REGEX;
	if (json_get_bool(args, "ignore_case", false))
		flags |= MATCH_IGNORE_CASE;
	rv = match_new(&s->match, pattern != NULL ? pattern : "", flags, &s->gate, err);
	if (rv != 0 || glob == NULL)
		return rv;
	s->with_glob = true;
	return wild_glob_init(&s->glob, glob, err);
}

int scan_init(struct scan *s, struct tool_call *c, struct ava_error *err)
{
	const char *path;
	int rv;

	*s = (struct scan){
		.root = {.fd = c->env->cwd_fd, .cwd = c->env->cwd},
		.gate = gate_of(c),
		.files_max = SCAN_FILES_MAX,
		.bytes_max = SCAN_BYTES_MAX,
	};
	rv = job_arg_str(c->args, "path", &path, err);
	if (rv == 0)
		rv = root_path(&s->root, path != NULL ? path : ".", s->start, err);
	if (rv == 0)
		rv = init_pattern(s, c->args, err);
	if (rv != 0) {
		scan_fini(s);
		return rv;
	}
	if (strcmp(s->start, ".") != 0)
		s->start_skip = strlen(s->start) + 1;
	return 0;
}

void scan_fini(struct scan *s)
{
	match_free(s->match);
	wild_glob_fini(&s->glob);
	free(s->data);
	s->match = NULL;
	s->data = NULL;
}

/* ---- files */

static int grow(struct scan *s, size_t need)
{
	size_t cap = MAX(s->cap, (size_t)READ_STEP);
	char *data;

	while (cap < need)
		cap *= 2;
	if (cap == s->cap)
		return 0;
	data = realloc(s->data, cap);
	if (data == NULL)
		return AVA_ENOMEM;
	s->data = data;
	s->cap = cap;
	return 0;
}

int scan_load(struct scan *s, int fd, size_t *len)
{
	struct stat st;
	size_t size;
	int rv;

	*len = 0;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		s->unreadable++;
		return 0;
	}
	if (st.st_size > (off_t)SCAN_FILE_MAX) {
		s->big++;
		return 0;
	}
	size = (size_t)st.st_size;
	rv = grow(s, size);
	while (rv == 0 && *len < size) {
		ssize_t n = read(fd, s->data + *len, MIN(size - *len, READ_STEP));

		if (n < 0 && errno != EINTR) {
			s->unreadable++;
			return 0;
		}
		if (n == 0)
			break; /* shorter by now */
		if (n < 0)
			continue;
		if (*len < BINARY_LOOK &&
		    memchr(s->data + *len, '\0', MIN((size_t)n, BINARY_LOOK - *len)) != NULL) {
			s->binary++;
			return 0;
		}
		*len += (size_t)n;
		s->bytes += (size_t)n;
		if (*len < size)
			rv = gate_check(&s->gate);
	}
	return rv == 0 ? 1 : rv;
}

static int64_t count_newlines(const char *s, size_t len)
{
	int64_t n = 0;

	for (const char *end = s + len; (s = memchr(s, '\n', (size_t)(end - s))) != NULL; s++)
		n++;
	return n;
}

/* Every line of the loaded file that matches, to the callback. 1: it wants no
 * more. */
static int search_data(struct scan *s, const char *path, size_t len)
{
	struct scan_hit h = {.path = path, .line = 1};
	size_t from = 0, counted = 0;
	struct match_line line;
	bool first = true;
	int rv;

	if (len == 0)
		return 0; /* data may not even be there */
	if (len >= 3 && memcmp(s->data, "\xef\xbb\xbf", 3) == 0)
		from = counted = 3; /* a byte order mark is no text */
	while ((rv = match_next(s->match, s->data, len, &from, &line, s->err)) == 1) {
		line.start = MAX(line.start, counted);
		h.line += count_newlines(s->data + counted, line.start - counted);
		counted = line.start;
		h.text = s->data + line.start;
		h.len = line.end - line.start;
		h.at = line.at - line.start;
		if (s->hit(s->user, &h) != 0)
			return 1;
		s->matched_files += first;
		first = false;
		/* Every line may match: then this loop is the long work. */
		if (++s->matches % 1024 == 0 && (rv = gate_check(&s->gate)) != 0)
			return rv;
	}
	return rv;
}

/* `fd` is closed. */
static int search_fd(struct scan *s, int fd, const char *path)
{
	size_t len;
	int rv = scan_load(s, fd, &len);

	close(fd);
	if (rv != 1)
		return rv;
	s->files++;
	return search_data(s, path, len);
}

static int file_cb(void *user, int dirfd, const char *name, const char *path)
{
	struct scan *s = user;
	int fd;

	if (s->with_glob && !wild_glob_match(&s->glob, path, s->start_skip))
		return 0;
	fd = root_open_entry(dirfd, name, false);
	if (fd < 0) {
		s->unreadable += errno != ENOENT && errno != ELOOP;
		return 0;
	}
	return search_fd(s, fd, path);
}

static int poll_cb(void *user)
{
	struct scan *s = user;

	if (s->files + s->binary + s->big >= s->files_max) {
		snprintf(s->cut, sizeof(s->cut), "%zu files", s->files_max);
		return 1;
	}
	if (s->bytes >= s->bytes_max) {
		snprintf(s->cut, sizeof(s->cut), "%llu MB",
			 (unsigned long long)(s->bytes_max >> 20));
		return 1;
	}
	return gate_check(&s->gate);
}

/* The start is a single file. */
static int scan_file(struct scan *s, struct ava_error *err)
{
	struct stat st;
	int fd = root_open_file(&s->root, s->start, &st, err);

	return fd < 0 ? fd : search_fd(s, fd, s->start);
}

int scan_run(struct scan *s, struct ava_error *err)
{
	struct walk w = {
		.root = &s->root,
		.start = s->start,
		.file = file_cb,
		.poll = poll_cb,
		.user = s,
	};
	int rv, fd = root_open_dir(&s->root, s->start, err);

	s->err = err;
	if (fd >= 0) {
		close(fd);
		rv = walk_run(&w, err);
		s->unreadable += w.unreadable;
		s->odd += w.odd;
		s->deep += w.deep;
		s->crowded += w.crowded;
	} else if (fd == AVA_ENOENT) { /* perhaps because it is a file */
		rv = scan_file(s, err);
	} else {
		return fd;
	}
	if (rv == AVA_ETIMEOUT) {
		snprintf(s->cut, sizeof(s->cut), "%d seconds", s->gate.seconds);
		rv = 0;
	}
	return rv == 1 ? 0 : rv;
}

/* ---- saying it */

/* Back to the begin of the character that byte `at` is in. */
static size_t char_start(const char *s, size_t at)
{
	for (int i = 0; i < 3 && at != 0 && ((unsigned char)s[at] & 0xc0) == 0x80; i++)
		at--;
	return at;
}

int scan_line(struct buf *out, const struct scan_hit *h)
{
	size_t from = 0, to = h->len;

	if (h->len > SCAN_TEXT_MAX) {
		if (h->at > SCAN_TEXT_MAX * 2 / 3)
			from = char_start(h->text, h->at - SCAN_TEXT_MAX / 3);
		if (h->len - from > SCAN_TEXT_MAX)
			to = char_start(h->text, from + SCAN_TEXT_MAX);
	}
	buf_addf(out, "%s:%lld:%s", h->path, (long long)h->line, from != 0 ? "…" : "");
	utf8_repair(out, h->text + from, to - from);
	return buf_adds(out, to != h->len ? "…\n" : "\n");
}

static void count(struct buf *out, size_t n, const char *what)
{
	if (n != 0)
		buf_addf(out, ", %zu %s", n, what);
}

void scan_counts(const struct scan *s, struct buf *out)
{
	buf_addf(out, "%zu file%s searched", s->files, s->files == 1 ? "" : "s");
	count(out, s->binary, "skipped as binary");
	count(out, s->big, "skipped as over 5 MB");
	count(out, s->unreadable, "unreadable");
	count(out, s->odd, "skipped for names that are no text");
	count(out, s->deep, "folders too deep");
	count(out, s->crowded, "folders with too many files");
	if (s->cut[0] != '\0')
		buf_addf(out, "; stopped after %s: narrow it with path or glob", s->cut);
}

void scan_none(const struct scan *s, const char *pattern, struct buf *out)
{
	buf_adds(out, "no matches for ");
	job_quote(out, pattern);
	buf_adds(out, " (");
	scan_counts(s, out);
	buf_adds(out, ")");
	if (s->files == 0 && s->with_glob)
		buf_adds(out, "; the glob fits no file");
	buf_addc(out, '\n');
}

void scan_activity(const json_t *args, struct buf *out)
{
	const char *pattern = json_get_str(args, "pattern"), *path = json_get_str(args, "path");

	buf_adds(out, "Searching ");
	job_quote(out, pattern != NULL ? pattern : "");
	if (path != NULL && strcmp(path, ".") != 0) {
		buf_adds(out, " in ");
		job_name(out, path);
	}
}
