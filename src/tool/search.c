/* search_codebase and search_and_read: which lines of the project hold a pattern; scan.h.
 *
 * search_codebase gives one line a match, "path:LINE:text" in path order, and a last
 * line that says how much was searched and what was not. It ends early at max_results.
 *
 * search_and_read shows the lines around the matches, file by file, those with most
 * matches first. The first pass over the tree only counts; then the best files are
 * opened again and shown with context. What they hold by then is what is shown. The
 * room for output is shared: each file may use an equal part of what is left. */
#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"
#include "tool/job.h"
#include "tool/scan.h"

/* Arguments of both tools that say what is searched. */
#define SCHEMA_WHAT                                                                                \
	"{\"type\":\"object\",\"properties\":{"                                                    \
	"\"pattern\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":1000,"                     \
	"\"description\":\"Text to find within a line, or with regex a Perl-compatible "           \
	"regular expression.\"},"                                                                  \
	"\"regex\":{\"type\":\"boolean\",\"description\":\"Default false: plain text.\"},"         \
	"\"ignore_case\":{\"type\":\"boolean\",\"description\":\"Default false.\"},"               \
	"\"path\":{\"type\":\"string\",\"maxLength\":4096,\"description\":\"Folder or file "       \
	"to search, relative to the working folder. Default: all of it.\"},"                       \
	"\"glob\":{\"type\":\"string\",\"maxLength\":1000,\"description\":\"Only files whose "     \
	"name fits, with * and {a,b}; with a slash the path; ** is any folder.\"},"

/* ---- search_codebase */

#define RESULTS_DEFAULT 50
#define OUTPUT_MAX      (1u << 20) /* most bytes of result lines */

struct search_listing {
	struct scan scan;
	struct buf *out;
	size_t max;
	bool full; /* `max` is reached, and there was one more match */
};

static int list_hit(void *user, const struct scan_hit *h)
{
	struct search_listing *s = user;

	if (s->scan.matches == s->max || s->out->len > OUTPUT_MAX) {
		s->full = true;
		return 1;
	}
	return scan_line(s->out, s->scan.redact, h);
}

static int search_list_run(struct tool_call *c, struct ava_error *err)
{
	struct search_listing s = {.out = &c->out};
	const struct scan *n = &s.scan;
	int rv = scan_init(&s.scan, c, err);

	if (rv != 0)
		return rv;
	s.max = (size_t)json_get_int(c->args, "max_results", RESULTS_DEFAULT);
	s.scan.hit = list_hit;
	s.scan.user = &s;
	rv = scan_run(&s.scan, err);
	if (rv == 0 && n->matches == 0) {
		scan_none(n, json_get_str(c->args, "pattern"), &c->out);
	} else if (rv == 0) {
		buf_addf(s.out, "%zu match%s in %zu file%s (", n->matches,
			 n->matches == 1 ? "" : "es", n->matched_files,
			 n->matched_files == 1 ? "" : "s");
		scan_counts(n, s.out);
		buf_adds(s.out, s.full ? "); there are more: narrow it with path or glob, or raise "
					 "max_results\n"
				       : ")\n");
	}
	scan_fini(&s.scan);
	return rv;
}

static void search_list_start(struct tool_call *c)
{
	job_start(c, search_list_run);
}

const struct tool tool_search_codebase = {
	.name = "search_codebase",
	.description =
		"Find the lines of the project's files that hold a pattern. Use it to locate code, "
		"names, settings or words before reading; it searches all files at once and "
		"answers with path:LINE:text, in path order, and counts. The pattern is plain text "
		"unless regex is true. Files that .gitignore names, binary files and files over 5 "
		"MB are left out. To see the code around the matches at once use search_and_read; "
		"to read a file you know use read_file.",
	.schema = SCHEMA_WHAT "\"max_results\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":500,"
			      "\"description\":\"Default 50.\"}},"
			      "\"required\":[\"pattern\"],\"additionalProperties\":false}",
	.brief = "regex glob",
	.flags = TOOL_REPEATABLE | TOOL_FILES | TOOL_PRIVATE,
	.start = search_list_start,
	.activity = scan_activity,
};

/* ---- search_and_read */

#define CONTEXT_DEFAULT 3
#define FILES_DEFAULT   5
#define RANKED_MAX      20000 /* files with matches that are ranked */
#define BODY_SPARE      (4u << 10)

struct ranked {
	char *path;
	size_t hits;
};

struct search_reading {
	struct scan scan;
	struct buf *out;
	struct ranked *files;
	size_t count, cap;
	size_t context, max_files;
	size_t bytes_max; /* most bytes of the answer */
	size_t shown;     /* files shown so far */
	bool no_memory;
};

/* ---- first pass */

/* A file's matches arrive one after the other. */
static int rank_hit(void *user, const struct scan_hit *h)
{
	struct search_reading *s = user;
	char *copy;

	if (s->count == 0 || strcmp(s->files[s->count - 1].path, h->path) != 0) {
		if (s->count == RANKED_MAX) {
			snprintf(s->scan.cut, sizeof(s->scan.cut), "%d files with matches",
				 RANKED_MAX);
			return 1;
		}
		s->no_memory = true;
		copy = ARRAY_ROOM(s->files, s->cap, s->count + 1) ? strdup(h->path) : NULL;
		if (copy == NULL)
			return 1;
		s->files[s->count++] = (struct ranked){.path = copy};
		s->no_memory = false;
	}
	s->files[s->count - 1].hits++;
	return 0;
}

static int by_rank(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->hits != y->hits)
		return x->hits > y->hits ? -1 : 1;
	return strcmp(x->path, y->path);
}

/* ---- one file */

struct search_view {
	struct buf *out;
	const struct redact *redact;
	const char *path, *data;
	size_t len, pos; /* pos: begin of the first line not shown yet */
	int64_t line;    /* number of the line at `pos` */
	size_t after;    /* context lines still due after the last match */
	size_t hits;     /* matches shown so far */
	bool any;        /* a group was shown, in any file */
};

static size_t search_line_end(const struct search_view *v, size_t at)
{
	const char *nl = memchr(v->data + at, '\n', v->len - at);

	return nl != NULL ? (size_t)(nl - v->data) : v->len;
}

/* Show the line at pos; `at`: offset of the match. */
static void search_show_line(struct search_view *v, size_t at)
{
	size_t end = search_line_end(v, v->pos), len = end - v->pos;
	struct scan_hit h = {
		.path = v->path,
		.line = v->line++,
		.text = v->data + v->pos,
		.len = len != 0 && v->data[end - 1] == '\r' ? len - 1 : len,
		.at = at,
	};

	scan_line(v->out, v->redact, &h);
	v->pos = MIN(end + 1, v->len);
}

static void show_after(struct search_view *v, size_t before)
{
	for (; v->after != 0 && v->pos < before; v->after--)
		search_show_line(v, 0);
}

/* Show a match and its context; `start`: beginning of its line. */
static void show_hit(struct search_view *v, size_t start, size_t at, size_t context)
{
	size_t begin = start;

	show_after(v, start);
	for (size_t i = 0; i < context && begin > v->pos; i++) {
		const char *nl = memrchr(v->data + v->pos, '\n', begin - 1 - v->pos);

		begin = nl != NULL ? (size_t)(nl + 1 - v->data) : v->pos;
	}
	if (v->any && (begin > v->pos || v->hits == 0))
		buf_adds(v->out, "--\n");
	while (v->pos < begin) {
		v->pos = search_line_end(v, v->pos) + 1;
		v->line++;
	}
	while (v->pos < start)
		search_show_line(v, 0);
	search_show_line(v, at - start);
	v->after = context;
	v->hits++;
	v->any = true;
}

static int show_file(struct search_reading *s, const struct ranked *f, size_t limit,
		     struct ava_error *err)
{
	struct search_view v = {.out = s->out,
				.redact = s->scan.redact,
				.path = f->path,
				.line = 1,
				.any = s->shown != 0};
	struct match_line line;
	size_t from = 0;
	struct stat st;
	int fd = root_open_file(&s->scan.root, f->path, &st, err), rv;

	if (fd < 0)
		return 0; /* the file is gone, but the counts still include it */
	rv = scan_load(&s->scan, fd, &v.len);
	close(fd);
	if (rv == 1 && v.len != 0) {
		v.data = s->scan.data;
		if (v.len >= 3 && memcmp(v.data, "\xef\xbb\xbf", 3) == 0)
			from = v.pos = 3;
		while (s->out->len < limit &&
		       (rv = match_next(s->scan.match, v.data, v.len, &from, &line, err)) == 1)
			show_hit(&v, MAX(line.start, v.pos), MAX(line.at, v.pos), s->context);
		show_after(&v, v.len);
	}
	if (rv >= 0 && v.hits != 0) {
		s->shown++;
		if (v.hits < f->hits)
			buf_addf(s->out, "(%zu more matches in %s)\n", f->hits - v.hits, f->path);
	}
	return rv < 0 ? rv : 0;
}

/* ---- all of it */

static int show_files(struct search_reading *s, struct ava_error *err)
{
	size_t most = MIN(s->count, s->max_files), max = s->bytes_max;
	int rv = 0;

	qsort(s->files, s->count, sizeof(*s->files), by_rank);
	for (size_t i = 0; i < most && rv == 0 && s->out->len < max; i++) {
		size_t part = (max - s->out->len) / (most - i);

		rv = show_file(s, &s->files[i], s->out->len + part, err);
	}
	if (rv != 0)
		return rv;
	buf_addf(s->out, "%zu match%s in %zu file%s", s->scan.matches,
		 s->scan.matches == 1 ? "" : "es", s->count, s->count == 1 ? "" : "s");
	if (s->shown < s->count)
		buf_addf(s->out, ", %zu of them shown", s->shown);
	buf_adds(s->out, " (");
	scan_counts(&s->scan, s->out);
	return buf_adds(s->out, ")\n");
}

static int read_run(struct tool_call *c, struct ava_error *err)
{
	struct search_reading s = {.out = &c->out};
	int rv = scan_init(&s.scan, c, err);

	if (rv != 0)
		return rv;
	s.context = (size_t)json_get_int(c->args, "context", CONTEXT_DEFAULT);
	s.max_files = (size_t)json_get_int(c->args, "max_files", FILES_DEFAULT);
	s.bytes_max = job_body_max(c, BODY_SPARE);
	s.scan.hit = rank_hit;
	s.scan.user = &s;
	rv = scan_run(&s.scan, err);
	if (rv == 0 && s.no_memory)
		rv = err_set(err, AVA_ENOMEM, "out of memory");
	if (rv == 0 && s.count == 0)
		scan_none(&s.scan, json_get_str(c->args, "pattern"), &c->out);
	else if (rv == 0)
		rv = show_files(&s, err);
	for (size_t i = 0; i < s.count; i++)
		free(s.files[i].path);
	free(s.files);
	scan_fini(&s.scan);
	return rv;
}

static void read_start(struct tool_call *c)
{
	job_start(c, read_run);
}

const struct tool tool_search_and_read = {
	.name = "search_and_read",
	.description =
		"Find a pattern and see the code around it in one call: the files with most "
		"matches, each match with the lines before and after it, as path:LINE:text, groups "
		"parted by --. Use it to understand how something is used without knowing where. "
		"For a mere list of places use search_codebase; for one long part of one file "
		"read_file. The pattern is plain text unless regex is true.",
	.schema = SCHEMA_WHAT
	"\"context\":{\"type\":\"integer\",\"minimum\":0,\"maximum\":20,\"description\":"
	"\"Lines before and after a match; default 3.\"},"
	"\"max_files\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":20,"
	"\"description\":\"Default 5.\"}},"
	"\"required\":[\"pattern\"],\"additionalProperties\":false}",
	.brief = "glob",
	.flags = TOOL_REPEATABLE | TOOL_FILES | TOOL_PRIVATE,
	.start = read_start,
	.activity = scan_activity,
};
