/* How ava speaks of a run to people, in one place: the command line, the conversation, the
 * offline model and notifications take it from here, so that a translation or a channel
 * changes this table. JSON has the names of ava_status_name. */
#ifndef BASE_WORDS_H
#define BASE_WORDS_H

/* A status as JSON names it: "running", "complete", "reply limit"; as it is when it is none. */
const char *words_status(const char *status);

/* A limit that ended a run. */
struct words_limit {
	const char *status;
	const char *what;   /* "Stopped at its limit of …" */
	const char *key;    /* in the limits of a run's JSON */
	const char *option; /* of `ava resume` */
};
/* NULL: no limit ended it. */
const struct words_limit *words_limit(const char *status);

#endif
