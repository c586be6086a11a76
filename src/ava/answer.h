/* The closed grammar of answers (doc/ASKS.md): what a line says to something that waits for a
 * person. Pure, allocates nothing.
 *
 * A line is an answer only when every word of it is known; else it is said to Ava. So a question, a
 * condition or one word too many starts nothing. */
#ifndef AVA_ANSWER_H
#define AVA_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Changes to a quote: from a person's words, or from the keys of a request. */
#define CHANGE_KEEP        INT64_MIN
#define CHANGE_WITHOUT_MAX 8

struct change {
	int64_t cost_microusd, time_ms, tokens, iterations; /* CHANGE_KEEP: no change */
	char preset[16], role[64], model[128];              /* "": no change */
	int thinking;                                       /* 1 on, -1 off, 0 no change */
	char without[CHANGE_WITHOUT_MAX][40]; /* tools to leave out, or words of their names */
	unsigned nwithout;
	/* Not a change: the explicit yes that a run with all three rights needs
	 * (subagent/rights.h). */
	bool all_three;
};

#define CHANGE_NONE                                                                                \
	{                                                                                          \
		.cost_microusd = CHANGE_KEEP, .time_ms = CHANGE_KEEP, .tokens = CHANGE_KEEP,       \
		.iterations = CHANGE_KEEP                                                          \
	}

/* Does no field hold a change? */
bool change_none(const struct change *c);
/* Lays the changes of `from` over `to`; false: there is no room for all its tools. */
bool change_add(struct change *to, const struct change *from);
/* The changes of a program, in the words of a person: "yes, with max_cost_cents=20". */
void change_said(const struct change *c, char *out, size_t size);

enum answer_verb { ANSWER_NONE, ANSWER_YES, ANSWER_NO };

#define ANSWER_PICK_MAX  48
#define ANSWER_BYTES_MAX 2000 /* a longer line is no answer */

struct answer_line {
	enum answer_verb verb;
	bool stops;                 /* the no was "stop" or "cancel": it may mean a run at work */
	char pick[ANSWER_PICK_MAX]; /* "2", "P-19c0de", "S-7f3a2b" or "S-7f3a2b:c3.1"; "": none */
	const char *reason;         /* of "no: REASON", in the line; NULL: none */
	struct change change;
};

/* The sentence for a person who is asked again; more that can be said may follow it. */
#define ANSWER_HELP                                                                                \
	"please answer yes or no, or say what to change: \"yes, but max 20 cents\", \"at most 5 "  \
	"minutes\", \"use haiku\""

/* false: the line is no answer, and *out is empty. */
bool answer_read(const char *line, struct answer_line *out);

#endif
