/* What a person meant by an answer to a quote. Pure.
 *
 * Only what is understood to the last word counts: a question, a condition or
 * one word that is not known makes an answer unclear, and the person is asked
 * again. What could mean no is never a yes. */
#ifndef AVA_ANSWER_H
#define AVA_ANSWER_H

#include "ava/change.h"

enum answer {
	ANSWER_YES,
	ANSWER_NO,
	ANSWER_YES_WITH, /* "yes, but max 20 cents" */
	ANSWER_CHANGE,   /* "max 20 cents" */
	ANSWER_UNCLEAR
};

#define ANSWER_BYTES_MAX 2000 /* more is unclear */

/* The clear sentence for who is asked again. */
#define ANSWER_HELP                                                                                \
	"please answer yes or no, or say what to change: \"yes, but max 20 cents\", \"at most 5 "  \
	"minutes\", \"use haiku\", \"without run_bash\""

/* *change says something for ANSWER_YES_WITH and ANSWER_CHANGE alone. */
enum answer answer_parse(const char *text, struct change *change);

#endif
