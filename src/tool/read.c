/* read_file and read_result: numbered lines, "LINE\ttext", of a file or of the full
 * output of an earlier call of this run.
 *
 * A file is streamed once in 64 KB steps and never held; what is counted behind the
 * range is bounded, so that a file of any size answers soon (the total then ends in
 * '+'). Output: first line "path (lines A-B of N)", then the lines, and when there is
 * more a last line that says how to go on. Lines that are not wanted are only counted.
 * A wanted one is collected up to LINES_HELD bytes, of which LINES_CUT are shown once
 * secrets are out of all, and then counted too, so that a line of 5 GB needs no more
 * memory than one of 32 KB. When the body has no room for a line,
 * nothing further goes in; counting goes on. */
#include <ava.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/redact.h"
#include "codec/utf8.h"
#include "tool/job.h"
#include "tool/root.h"

#define LINES_DEFAULT 2000
#define LINES_CUT     4000        /* bytes of one line that are shown */
#define LINES_HELD    (32u << 10) /* bytes held, so that a secret across the cut is found */

/* Numbered lines of a text that arrives in pieces. */
struct read_lines {
	int64_t first, last; /* numbers of the wanted lines, from 1 */
	const struct redact *redact;
	const char *needle; /* *borrowed*; show only lines that hold it in one piece; NULL: all */
	struct buf body;
	struct buf line;   /* the line being collected, at most LINES_HELD bytes */
	uint64_t line_len; /* whole length of that line so far */
	int64_t at;        /* number of the line the next byte belongs to */
	int64_t from, to;  /* first and last line in the body; 0: none */
	int64_t shown;     /* lines in the body */
	int64_t ends[2];   /* shown lines that end in LF, and in CR LF */
	bool full;         /* a wanted line did not fit */
	bool hit;          /* the line being collected holds the needle */
	bool unended;      /* the last line has no end */
	bool no_memory;
};

static const char bom[] = "\xef\xbb\xbf";

/* At most `max_bytes` of body. */
static void read_lines_init(struct read_lines *l, int64_t first, int64_t last, const char *needle,
			    size_t max_bytes)
{
	*l = (struct read_lines){.first = first, .last = last, .needle = needle, .at = 1};
	buf_init(&l->body, max_bytes);
	buf_init(&l->line, LINES_HELD);
}

static void lines_fini(struct read_lines *l)
{
	buf_fini(&l->body);
	buf_fini(&l->line);
}

/* `s` as it is shown in one line of output: no \r at its end, valid UTF-8, at
 * most `max` bytes, with " … [+N bytes]" where `whole` bytes were more. */
static int lines_text(struct buf *out, const char *s, size_t len, size_t max, uint64_t whole)
{
	size_t keep = len, cut;
	int rv;

	if (len == whole && len != 0 && s[len - 1] == '\r') {
		keep--;
		whole--;
	}
	if (keep > max) { /* a cut that tears no character */
		for (cut = max;
		     cut != 0 && max - cut < 3 && ((unsigned char)s[cut] & 0xc0) == 0x80;)
			cut--;
		keep = ((unsigned char)s[cut] & 0xc0) == 0x80 ? max : cut;
	}
	rv = utf8_repair(out, s, keep);
	if (rv == 0 && keep < whole)
		rv = buf_addf(out, " … [+%llu bytes]", (unsigned long long)(whole - keep));
	return rv;
}

static bool lines_wanted(const struct read_lines *l)
{
	return l->at >= l->first && l->at <= l->last && !l->full;
}

/* Add the collected line to the body, whole or not at all. */
static void lines_emit(struct read_lines *l)
{
	const char *s = l->line.data != NULL ? l->line.data : "";
	size_t len = l->line.len, before = l->body.len, skip = 0;
	bool crlf = len > 0 && len == l->line_len && s[len - 1] == '\r';
	uint64_t behind = l->line_len - len; /* bytes of the line that are not in `line` */
	struct buf clean;

	if (l->at == 1 && len >= 3 && memcmp(s, bom, 3) == 0)
		skip = 3;
	s += skip;
	len -= skip;
	buf_init(&clean, 4 * LINES_HELD);
	if (len > LINES_CUT && l->redact != NULL) {
		l->no_memory |= redact_text(l->redact, &clean, s, len) < 0;
		s = clean.data != NULL ? clean.data : "";
		len = clean.len;
	}
	buf_addf(&l->body, "%lld\t", (long long)l->at);
	lines_text(&l->body, s, len, LINES_CUT, len + behind);
	buf_fini(&clean);
	if (buf_addc(&l->body, '\n') == AVA_ETOOBIG) {
		l->full = true;
		l->body.failed = false;
		l->body.error = 0;
		l->body.len = before;
		if (l->body.data != NULL)
			l->body.data[before] = '\0';
		return;
	}
	if (l->from == 0)
		l->from = l->at;
	l->to = l->at;
	l->shown++;
	l->ends[crlf] += !l->unended;
}

static void lines_next(struct read_lines *l)
{
	if (lines_wanted(l) && (l->needle == NULL || l->hit))
		lines_emit(l);
	buf_reset(&l->line);
	l->line_len = 0;
	l->hit = false;
	l->at++;
}

static void lines_feed(struct read_lines *l, const char *data, size_t len)
{
	while (len != 0) {
		const char *nl = memchr(data, '\n', len);
		size_t n = nl != NULL ? (size_t)(nl - data) : len;

		if (lines_wanted(l)) {
			l->no_memory |=
				buf_add(&l->line, data, MIN(n, l->line.max - l->line.len)) != 0;
			if (l->needle != NULL && !l->hit)
				l->hit = memmem(data, n, l->needle, strlen(l->needle)) != NULL;
		}
		l->line_len += n;
		if (nl == NULL)
			return;
		lines_next(l);
		data += n + 1;
		len -= n + 1;
	}
}

static int lines_end(struct read_lines *l)
{
	l->unended = true;
	if (l->line_len != 0)
		lines_next(l);
	return l->no_memory || l->body.failed ? AVA_ENOMEM : 0;
}

/* The wanted lines: 2,000 from the first on, or with `to_end` all. */
static int lines_range(const json_t *args, bool to_end, int64_t *first, int64_t *last,
		       struct ava_error *err)
{
	*first = json_get_int(args, "first_line", 1);
	*last = json_get_int(args, "last_line", 0);
	if (*last == 0)
		*last = to_end || *first > INT64_MAX - LINES_DEFAULT ? INT64_MAX
								     : *first + LINES_DEFAULT - 1;
	if (*first >= 1 && *last >= *first)
		return 0;
	return err_set(err, AVA_EINVAL,
		       "last_line %lld comes before first_line %lld: lines count from 1; "
		       "leave last_line out to read on",
		       (long long)*last, (long long)*first);
}

/* ---- read_file */

#define STEP        (64u << 10)
#define CACHED_MAX  (32u << 10) /* largest file that is read on the loop */
#define BINARY_LOOK (8u << 10)
#define FILE_SPARE  (6u << 10)    /* room for a path and a note */
#define BEHIND_MAX  (256ll << 20) /* bytes counted beyond the range at most */

struct read_reading {
	char path[PATH_MAX];
	int fd;
	struct stat st;
	struct gate gate;
	struct read_lines lines;
	int64_t behind; /* bytes read since the range was reached */
	bool more;      /* the file goes on where counting stopped */
};

/* Read until `data` is full or the file ends. -1 and errno. */
static ssize_t file_fill(int fd, char *data, size_t size)
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

static int read_check_text(const struct read_reading *r, const char *data, size_t len,
			   struct ava_error *err)
{
	const char *nul = memchr(data, '\0', MIN(len, BINARY_LOOK));

	if (nul == NULL)
		return 0;
	return err_set(err, AVA_EDENIED,
		       "%s is binary (%lld bytes, a NUL at byte %zu): read_file reads text only",
		       r->path, (long long)r->st.st_size, (size_t)(nul - data));
}

static int file_stream(struct read_reading *r, struct ava_error *err)
{
	char *data = malloc(STEP);
	bool first = true;
	int rv = 0;

	if (data == NULL)
		return err_set(err, AVA_ENOMEM, "out of memory");
	for (;;) {
		ssize_t n = file_fill(r->fd, data, STEP);

		if (n < 0) {
			rv = err_sys(err, "read %s", r->path);
			break;
		}
		if (first)
			rv = read_check_text(r, data, (size_t)n, err);
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
			rv = err_set(err, AVA_ETIMEOUT,
				     "%s is too large: line %lld was not reached within %d "
				     "seconds (line %lld was)",
				     r->path, (long long)r->lines.first, r->gate.seconds,
				     (long long)r->lines.at);
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

static int file_answer(struct read_reading *r, struct buf *out, struct ava_error *err)
{
	struct read_lines *l = &r->lines;
	int64_t total;

	if (lines_end(l) != 0)
		return err_set(err, AVA_ENOMEM, "out of memory");
	total = l->at - 1;
	if (l->first > total && l->first > 1)
		return err_set(err, AVA_EINVAL,
			       "%s has %lld line%s: first_line %lld is behind its "
			       "end: leave it out to read from the beginning",
			       r->path, (long long)total, total == 1 ? "" : "s",
			       (long long)l->first);
	utf8_repair(out, r->path, strlen(r->path));
	buf_addf(out, " (lines %lld-%lld of %lld%s%s%s)\n", (long long)l->from, (long long)l->to,
		 (long long)total, r->more ? "+" : "", l->ends[1] ? "; line ends: CRLF" : "",
		 l->ends[0] && l->ends[1] ? " and LF" : "");
	buf_add(out, l->body.data, l->body.len);
	if (total == 0)
		buf_adds(out, "(the file is empty)\n");
	else if (l->to < total || r->more)
		buf_addf(out, "(the file goes on: first_line %lld)\n", (long long)l->to + 1);
	return buf_check(out);
}

/* Read the arguments. */
static int file_wish(struct read_reading *r, const struct root *root, const struct tool_call *c,
		     struct ava_error *err)
{
	const json_t *args = c->args;
	const char *path;
	int64_t first, last;
	int rv = job_arg_str(args, "path", &path, err);

	if (rv == 0 && (path == NULL || path[0] == '\0'))
		rv = err_set(err, AVA_EINVAL, "path is empty: name the file to read");
	if (rv == 0)
		rv = root_path(root, path, r->path, err);
	if (rv == 0)
		rv = lines_range(args, false, &first, &last, err);
	if (rv == 0)
		read_lines_init(&r->lines, first, last, NULL, job_body_max(c, FILE_SPARE));
	r->lines.redact = c->env->redact;
	return rv;
}

/* Read a short file whole from the page cache; JOB_LATER: it is not cached. */
static int take_cached(struct read_reading *r, struct ava_error *err)
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
	rv = read_check_text(r, data, (size_t)n, err);
	if (rv == 0)
		lines_feed(&r->lines, data, (size_t)n);
	return rv;
}

/* Most files are short and were read before: waking a thread would cost more
 * than reading them. */
static int read_file_read(struct tool_call *c, bool cached, struct ava_error *err)
{
	struct read_reading r = {.gate = gate_of(c)};
	const struct root root = {c->env->cwd_fd, c->env->cwd, c->env->keep_out};
	int rv = file_wish(&r, &root, c, err);

	if (rv != 0)
		return rv;
	r.fd = cached ? root_open_cached(&root, r.path, &r.st)
		      : root_open_file(&root, r.path, &r.st, err);
	if (r.fd < 0)
		rv = cached ? JOB_LATER : r.fd;
	else
		rv = cached ? take_cached(&r, err) : file_stream(&r, err);
	if (rv == 0)
		rv = file_answer(&r, &c->out, err);
	if (r.fd >= 0)
		close(r.fd);
	lines_fini(&r.lines);
	return rv;
}

static int file_run_cached(struct tool_call *c, struct ava_error *err)
{
	return read_file_read(c, true, err);
}

static int file_run(struct tool_call *c, struct ava_error *err)
{
	return read_file_read(c, false, err);
}

static void file_start(struct tool_call *c)
{
	if (!job_now(c, file_run_cached))
		job_start(c, file_run);
}

/* "Reading src/a.c:10-60" */
static void file_activity(const json_t *args, struct buf *out)
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
	.start = file_start,
	.activity = file_activity,
};

/* ---- read_result */

#define PIECE_MAX    2000 /* bytes of a piece; a longer line is shown as several */
#define RESULT_SPARE (2u << 10)

struct wish {
	const char *id, *search;
	int64_t first, last;
};

static int result_wish(struct wish *w, const json_t *args, struct ava_error *err)
{
	int rv = job_arg_str(args, "call_id", &w->id, err);

	if (rv == 0)
		rv = job_arg_str(args, "search", &w->search, err);
	if (rv != 0)
		return rv;
	if (w->id == NULL || w->id[0] == '\0')
		return err_set(err, AVA_EINVAL, "call_id is empty: name an earlier call");
	if (w->search != NULL && w->search[0] == '\0')
		w->search = NULL;
	return lines_range(args, w->search != NULL, &w->first, &w->last, err);
}

static int read_result_answer(const struct wish *w, struct read_lines *l, struct buf *out,
			      struct ava_error *err)
{
	int64_t total;

	if (lines_end(l) != 0)
		return err_set(err, AVA_ENOMEM, "out of memory");
	total = l->at - 1;
	if (w->first > total && w->first > 1)
		return err_set(
			err, AVA_EINVAL,
			"the result of %s has %lld lines: first_line %lld is behind its end: "
			"leave it out to read from the beginning",
			w->id, (long long)total, (long long)w->first);
	if (w->search != NULL) {
		buf_addf(out, "result of %s: %lld of %lld lines hold ", w->id, (long long)l->shown,
			 (long long)total);
		job_quote(out, w->search);
		buf_addc(out, '\n');
		if (l->shown != 0)
			buf_add(out, l->body.data, l->body.len);
		if (l->full)
			buf_addf(out, "(there are more: first_line %lld)\n", (long long)l->to + 1);
		return buf_check(out);
	}
	buf_addf(out, "result of %s (lines %lld-%lld of %lld)\n", w->id, (long long)l->from,
		 (long long)l->to, (long long)total);
	buf_add(out, l->body.data, l->body.len);
	if (l->to < total)
		buf_addf(out, "(it goes on: first_line %lld)\n", (long long)l->to + 1);
	return buf_check(out);
}

/* Some tools answer with one endless line: own line breaks make its middle addressable. */
static void result_feed(struct read_lines *l, const char *data, size_t len)
{
	while (len != 0) {
		const char *nl = memchr(data, '\n', len);
		size_t n = nl != NULL ? (size_t)(nl - data) : len;

		if (n > PIECE_MAX) {
			n = PIECE_MAX;
			while (n > PIECE_MAX - 3 && ((unsigned char)data[n] & 0xc0) == 0x80)
				n--;
			nl = NULL;
		}
		lines_feed(l, data, n);
		if (nl != NULL || n < len)
			lines_feed(l, "\n", 1);
		n += nl != NULL;
		data += n;
		len -= n;
	}
}

static int read_result_run(struct tool_call *c, struct ava_error *err)
{
	struct wish w;
	struct read_lines l;
	struct buf full;
	int rv = result_wish(&w, c->args, err);

	if (rv != 0)
		return rv;
	buf_init(&full, TOOL_FULL_MAX);
	rv = c->env->fetch_result(c->env, w.id, &full, err);
	if (rv == AVA_ENOENT)
		err_set(err, rv,
			"no call %.40s with a result in this run: use the id of an earlier call as "
			"its result or a marker names it",
			w.id);
	if (rv == 0) {
		read_lines_init(&l, w.first, w.last, w.search, job_body_max(c, RESULT_SPARE));
		result_feed(&l, full.data, full.len);
		rv = read_result_answer(&w, &l, &c->out, err);
		lines_fini(&l);
	}
	buf_fini(&full);
	return rv;
}

static void result_start(struct tool_call *c)
{
	job_start(c, read_result_run);
}

static void result_activity(const json_t *args, struct buf *out)
{
	const char *id = json_get_str(args, "call_id");

	buf_adds(out, "Reading the result of ");
	if (id != NULL)
		job_name(out, id);
}

const struct tool tool_read_result = {
	.name = "read_result",
	.description = "Read the output of one of your earlier tool calls again, where it was cut "
		       "or a marker stands in its place. Give a range of lines, or a text to get "
		       "only the lines that hold it. Use it instead of calling the same tool "
		       "again. Lines over 2,000 bytes are given as several. It knows no files: for "
		       "these use read_file.",
	.schema =
		"{\"type\":\"object\",\"properties\":{"
		"\"call_id\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":64,"
		"\"description\":\"The id of the call, as what was cut of it names it.\"},"
		"\"first_line\":{\"type\":\"integer\",\"minimum\":1,\"description\":\"Line of the "
		"output, from 1; default 1.\"},"
		"\"last_line\":{\"type\":\"integer\",\"minimum\":1,\"description\":\"Default: "
		"2,000 "
		"lines from first_line, with search to the end.\"},"
		"\"search\":{\"type\":\"string\",\"maxLength\":1000,\"description\":\"Only lines "
		"that "
		"hold this text.\"}},"
		"\"required\":[\"call_id\"],\"additionalProperties\":false}",
	.brief = "first_line search",
	.flags = TOOL_REPEATABLE | TOOL_COMMON | TOOL_LATER,
	.start = result_start,
	.activity = result_activity,
};
