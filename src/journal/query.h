/* Which events are wanted, compiled once and asked of raw lines. Pure: no
 * files, no clock but the one that is passed. doc/QUERY.md. */
#ifndef JOURNAL_QUERY_H
#define JOURNAL_QUERY_H

#include <ava.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "event/event.h"

/* What is looked for in a line: a literal text or a PCRE2 expression, with smart case: letters
 * of both cases are the same unless there is a capital one in what is looked for. */
struct query_regex; /* opaque: PCRE2 */

#define QUERY_TEXT_MAX 4096 /* bytes of what is looked for */

struct query_text {
	/* As it stands in a line, JSON escapes and all; or what `regex` cannot match
	 * without; owned; NULL: none. */
	char *needle;
	size_t len;     /* of it */
	size_t rare[2]; /* where its two rarest bytes stand, the first before the second */
	bool literal;   /* it was asked for; where it is within a key it does not count */
	bool fold;      /* ASCII letters of both cases are the same */
	struct query_regex *regex; /* owned; NULL: none */
};

/* NULL, NULL: everything matches. With both, both must. AVA_EINVAL (too long,
 * or not an expression: `err` says where), AVA_ENOMEM. */
int query_text_init(struct query_text *t, const char *literal, const char *regex,
		    struct ava_error *err);
void query_text_fini(struct query_text *t); /* accepts a zeroed one */

/* Where the needle stands first; NULL: nowhere. Only when there is a needle. */
const char *query_text_find(const struct query_text *t, const char *s, size_t len);

/* Milliseconds since 1970; `now_ms` is what relative times count from.
 * AVA_EINVAL: `err` says what would be right. */
int query_time(const char *text, int64_t now_ms, int64_t *out, struct ava_error *err);

#define QUERY_ID_MAX 256 /* bytes of an id, escaped */

struct query_id { /* as it stands between the quotes; len 0: any */
	char text[QUERY_ID_MAX];
	size_t len;
};

struct query {
	uint64_t types;             /* bit per enum event_kind; 0: all */
	uint64_t after;             /* lsn; 0: all */
	int64_t since_ms, until_ms; /* INT64_MIN, INT64_MAX: open */
	struct query_id agent, user, session;
	struct query_text text;
};

#define QUERY_ALL ((struct query){.since_ms = INT64_MIN, .until_ms = INT64_MAX})

/* The times of `asked` are as of `now_ms`. On error *q is QUERY_ALL. AVA_EINVAL, AVA_ENOMEM. */
int query_init(struct query *q, const struct ava_log_query *asked, int64_t now_ms,
	       struct ava_error *err);
void query_fini(struct query *q);

enum query_answer {
	QUERY_BROKEN = -1, /* the line has the text, and is no event */
	QUERY_NO = 0,
	QUERY_YES = 1,    /* *view is filled */
	QUERY_COSTLY = 2, /* the expression costs too much on it */
};

/* `thread`: the number of a crew's, which ask one query at once. */
enum query_answer query_line(const struct query *q, unsigned thread, const char *line, size_t len,
			     struct event_view *view);

#endif
