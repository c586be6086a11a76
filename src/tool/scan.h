/* A search over files: a walk with a pattern, shared by search_codebase and search_and_read.
 * Bounded in files, bytes and time. */
#ifndef TOOL_SCAN_H
#define TOOL_SCAN_H

#include <jansson.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#include "tool/ignore.h"
#include "tool/job.h"
#include "tool/root.h"

#define SCAN_FILE_MAX  (5u << 20) /* bytes; a larger file is not searched */
#define SCAN_FILES_MAX 200000
#define SCAN_BYTES_MAX (2ull << 30)
#define SCAN_TEXT_MAX  300 /* bytes of a line that are shown */

struct scan_hit { /* borrowed during the callback */
	const char *path;
	int64_t line; /* from 1 */
	const char *text;
	size_t len, at; /* at: where in the text the match begins */
};

struct scan {
	struct root root;
	struct gate gate;
	const struct redact *redact;
	struct match *match;
	struct wild_glob glob;
	char start[PATH_MAX]; /* folder or file, relative to the root */
	size_t start_skip;    /* bytes of a path that are the start, for globs */
	/* A matching line. Not 0: the line is not counted and the search ends, well. */
	int (*hit)(void *user, const struct scan_hit *h);
	void *user;

	size_t files, binary, big, unreadable, odd, deep, crowded, slow, matches, matched_files;
	uint64_t bytes;
	char cut[48]; /* the bound that ended the search early; "": none */

	/* Bounds, set by scan_init. */
	size_t files_max;
	uint64_t bytes_max;

	char *data; /* the file being searched; grows to the largest */
	size_t cap;
	struct ava_error *err;
};

/* Read the arguments pattern, regex, ignore_case, path and glob. After an error nothing is to be
 * undone; else scan_fini is due. */
int scan_init(struct scan *s, struct tool_call *c, struct ava_error *err);
void scan_fini(struct scan *s);
/* 0 (also when a bound cut it short: s->cut), or a code. */
int scan_run(struct scan *s, struct ava_error *err);

/* Read a whole text file of at most SCAN_FILE_MAX bytes into s->data. 1: read
 * (*len bytes; s->data is NULL when there are none), 0: left out and counted,
 * AVA_ENOMEM, or the gate's code. */
int scan_load(struct scan *s, int fd, size_t *len);

/* Write "path:LINE:text" and a newline; a long text is cut around its match, with "…" at a cut,
 * after its secrets are removed. */
int scan_line(struct buf *out, const struct redact *redact, const struct scan_hit *h);
/* Write "840 files searched, 3 skipped as binary, ..." and why it ended early. */
void scan_counts(const struct scan *s, struct buf *out);
/* Write "no matches for "x" (...)": the whole answer of a search without any. */
void scan_none(const struct scan *s, const char *pattern, struct buf *out);

/* Write "Searching "foo" in src", for people. */
void scan_activity(const json_t *args, struct buf *out);

/* ---- A search pattern, and the lines of a text that match it: plain bytes, or a
 * regular expression (PCRE2, compiled to machine code where that is allowed).
 * Whatever the pattern and the text, a search polls its gate and has limits:
 * a pattern that explodes ends in an error. One thread. */

#define MATCH_PATTERN_MAX 1000 /* bytes */

#define MATCH_REGEX       1u
#define MATCH_IGNORE_CASE 2u
#define MATCH_NO_JIT      4u /* tests: as where no memory may be made executable */

struct ava_error;
struct gate;
struct match;

struct match_line {
	size_t start, end; /* of the line; without \n or \r\n */
	size_t at;         /* where in the text the match begins */
};

/* `pattern` is copied; `gate` is borrowed until match_free. AVA_EINVAL with a sentence on the
 * pattern's fault. */
int match_new(struct match **m, const char *pattern, unsigned flags, const struct gate *gate,
	      struct ava_error *err);
void match_free(struct match *m); /* NULL is fine */

/* The next matching line of `data` from *from on, which is the beginning of a line and moves behind
 * that line. 1; 0: no more; AVA_EINVAL: too much work; AVA_ECANCELED, AVA_ETIMEOUT: the gate. */
int match_next(struct match *m, const char *data, size_t len, size_t *from, struct match_line *line,
	       struct ava_error *err);

#endif
