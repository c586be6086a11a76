/* The meaning of a person's answer to a quote. Pure.
 *
 * An answer counts only when it is understood to the last word: a question, a condition or one
 * unknown word makes it unclear, and the person is asked again. Words that could mean no are never
 * a yes. */
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

enum answer {
	ANSWER_YES,
	ANSWER_NO,
	ANSWER_YES_WITH, /* "yes, but max 20 cents" */
	ANSWER_CHANGE,   /* "max 20 cents" */
	ANSWER_UNCLEAR
};

#define ANSWER_BYTES_MAX 2000 /* a longer answer is unclear */

/* The sentence for a person who is asked again; more that can be said may follow it. */
#define ANSWER_HELP                                                                                \
	"please answer yes or no, or say what to change: \"yes, but max 20 cents\", \"at most 5 "  \
	"minutes\", \"use haiku\""

/* Is `word` a word of answers: of a yes, a no or a change? */
bool answer_word(const char *word);

/* *change is set for ANSWER_YES_WITH and ANSWER_CHANGE; `all_three` also for a plain yes. */
enum answer answer_parse(const char *text, struct change *change);

#endif
