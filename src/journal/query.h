/* Which events are wanted, compiled once and asked of raw lines. Pure: no
 * files, no clock but the one that is passed. doc/QUERY.md. */
#ifndef JOURNAL_QUERY_H
#define JOURNAL_QUERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "event/event.h"
#include "journal/query_text.h"

struct ava_error;

#define QUERY_ID_MAX 256 /* bytes of an id, escaped */

struct query_spec {        /* NULL, 0: all */
	const char *types; /* "ToolCall,err,thinking" */
	const char *agent; /* agentId, or the name of its trace */
	const char *user, *session;
	const char *since, *until; /* query_time.h; since <= time < until */
	const char *search;        /* literal */
	const char *regex;         /* PCRE2 */
	uint64_t after;            /* lsn */
	int64_t now_ms;
};

struct query_id { /* as it stands between the quotes; len 0: any */
	char text[QUERY_ID_MAX];
	size_t len;
};

struct query {
	uint64_t types;             /* bit per enum event_kind; 0: all */
	uint64_t after;             /* lsn; 0: all */
	int64_t since_ms, until_ms; /* INT64_MIN, INT64_MAX: open */
	char since[CLOCK_ISO_LEN + 1], until[CLOCK_ISO_LEN + 1]; /* "": open */
	struct query_id agent, user, session;
	struct query_text text;
};

#define QUERY_ALL ((struct query){.since_ms = INT64_MIN, .until_ms = INT64_MAX})

/* On error *q is QUERY_ALL. AVA_EINVAL, AVA_ENOMEM. */
int query_init(struct query *q, const struct query_spec *spec, struct ava_error *err);
void query_fini(struct query *q);

/* "error", "tool", "infer,cost": a name, an alias or a prefix, in any case. */
int query_types(const char *types, uint64_t *mask, struct ava_error *err);

/* Does anything beside `after` narrow it? */
bool query_narrows(const struct query *q);

/* May such an event stand in the log of a run and in the day's too, with one
 * lsn? Those of a kind that is not known (-1) may. */
bool query_is_copied(int kind);

/* The lsn, from the front of a line of which only the beginning is there. */
bool query_lsn(const char *line, size_t len, uint64_t *lsn);

enum query_answer {
	QUERY_BROKEN = -1, /* the line is no event */
	QUERY_NO = 0,      /* looked at from both ends only */
	QUERY_YES = 1,     /* *view is filled; the whole line has the form of an event */
	QUERY_COSTLY = 2,  /* the expression costs too much on it */
};

/* `no_needle`: the caller knows that the literal is not in this line. */
enum query_answer query_line(const struct query *q, const char *line, size_t len, bool no_needle,
			     struct event_view *view);

#endif
