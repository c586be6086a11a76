/* What a person meant by an answer to a quote. Pure.
 *
 * Only what is understood to the last word counts: a question, a condition or
 * one word that is not known makes an answer unclear, and the person is asked
 * again. What could mean no is never a yes. */
#ifndef AVA_ANSWER_H
#define AVA_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a person wants otherwise than it was quoted: from their words, or from the keys of
 * a request. */
#define CHANGE_KEEP        INT64_MIN
#define CHANGE_WITHOUT_MAX 8

struct change {
	int64_t cost_microusd, time_ms, tokens, iterations; /* CHANGE_KEEP: as it was */
	char preset[16], role[64], model[128];              /* "": as it was */
	int thinking;                                       /* 1 on, -1 off, 0 as it was */
	char without[CHANGE_WITHOUT_MAX][40];               /* tools, or words of their names */
	unsigned nwithout;
	/* No change: the yes that a run with all three rights needs (subagent/rights.h). */
	bool all_three;
};

#define CHANGE_NONE                                                                                \
	{                                                                                          \
		.cost_microusd = CHANGE_KEEP, .time_ms = CHANGE_KEEP, .tokens = CHANGE_KEEP,       \
		.iterations = CHANGE_KEEP                                                          \
	}

/* It says nothing. */
bool change_none(const struct change *c);
/* What `from` says goes over `to`; false: there is no room for all its tools. */
bool change_add(struct change *to, const struct change *from);
/* "yes, with max_cost_cents=20": what a program set where nobody said a word. */
void change_said(const struct change *c, char *out, size_t size);

enum answer {
	ANSWER_YES,
	ANSWER_NO,
	ANSWER_YES_WITH, /* "yes, but max 20 cents" */
	ANSWER_CHANGE,   /* "max 20 cents" */
	ANSWER_UNCLEAR
};

#define ANSWER_BYTES_MAX 2000 /* more is unclear */

/* The clear sentence for who is asked again; behind it may stand what else can be said. */
#define ANSWER_HELP                                                                                \
	"please answer yes or no, or say what to change: \"yes, but max 20 cents\", \"at most 5 "  \
	"minutes\", \"use haiku\""

/* One word that answers have: to say yes or no, or to change something. */
bool answer_word(const char *word);

/* *change says something for ANSWER_YES_WITH and ANSWER_CHANGE alone, but for `all_three`, which a
 * plain yes may have. */
enum answer answer_parse(const char *text, struct change *change);

#endif
