/* The query for events, compiled once and asked of raw lines. Pure: no
 * files, no clock but the one that is passed. doc/QUERY.md. */
#ifndef JOURNAL_QUERY_H
#define JOURNAL_QUERY_H

#include <ava.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "event/event.h"

/* A text to look for in a line: a literal or a PCRE2 expression, with smart case: case is
 * ignored unless the text has a capital letter. */
struct query_regex; /* opaque: PCRE2 */

#define QUERY_TEXT_MAX 4096 /* most bytes of a text or an expression */

struct query_text {
	/* The literal as a line has it, JSON escapes and all; or a text that each match of
	 * `regex` contains; owned; NULL: none. */
	char *needle;
	size_t len;     /* length of `needle` */
	size_t rare[2]; /* where the needle's two rarest bytes stand, the first before the second */
	bool literal;   /* the text was asked for as a literal: a hit within a key does not count */
	bool fold;      /* ASCII letters of both cases are the same */
	struct query_regex *regex; /* owned; NULL: none */
};

/* Compile a literal and an expression: with both, both must match; NULL, NULL: everything matches.
 * AVA_EINVAL (too long, or not an expression: `err` says where), AVA_ENOMEM. */
int query_text_init(struct query_text *t, const char *literal, const char *regex,
		    struct ava_error *err);
void query_text_fini(struct query_text *t); /* accepts a zeroed one */

/* The first place of the needle in `s`; NULL: nowhere. Only when there is a needle. */
const char *query_text_find(const struct query_text *t, const char *s, size_t len);

/* Parse a time, to milliseconds since 1970; relative times count from `now_ms`. AVA_EINVAL: `err`
 * names the accepted forms. */
int query_time(const char *text, int64_t now_ms, int64_t *out, struct ava_error *err);

#define QUERY_ID_MAX 256 /* most bytes of an id, escaped */

struct query_id { /* an id as a line has it between the quotes; len 0: any id */
	char text[QUERY_ID_MAX];
	size_t len;
};

struct query {
	uint64_t types;             /* a bit per wanted enum event_kind; 0: all */
	uint64_t after;             /* only events with a greater lsn; 0: all */
	int64_t since_ms, until_ms; /* INT64_MIN, INT64_MAX: open */
	struct query_id agent, user, session;
	struct query_text text;
	bool near; /* what is asked for is near the ends of the daily logs */
};

#define QUERY_ALL ((struct query){.since_ms = INT64_MIN, .until_ms = INT64_MAX})

/* Compile a question; times in it are relative to `now_ms`. On error *q is QUERY_ALL. AVA_EINVAL,
 * AVA_ENOMEM. */
int query_init(struct query *q, const struct ava_log_query *asked, int64_t now_ms,
	       struct ava_error *err);
void query_fini(struct query *q);

enum query_answer {
	QUERY_BROKEN = -1, /* the line has the text, and is no event */
	QUERY_NO = 0,
	QUERY_YES = 1,    /* *view is filled */
	QUERY_COSTLY = 2, /* the expression costs too much on the line */
};

/* Does the line fit the query? `thread`: number within a crew, whose threads ask one query at
 * once. */
enum query_answer query_line(const struct query *q, unsigned thread, const char *line, size_t len,
			     struct event_view *view);

#endif
