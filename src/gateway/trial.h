/* A model is tried: one short request with one tool, so that a person learns before the first run
 * whether it calls tools, how quick it is, and what to type where that will not do. */
#ifndef GATEWAY_TRIAL_H
#define GATEWAY_TRIAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"
#include "provider/learned.h"
#include "provider/model.h"

struct buf;
struct http_client;
struct os_loop;

#define TRIAL_OUTPUT 30 /* tokens at the most */

enum trial_word {
	TRIAL_FAILED, /* no reply: err says why */
	TRIAL_CALLS,
	TRIAL_CALLS_IN_TEXT,
	TRIAL_THINKS, /* the model had not ended thinking */
	TRIAL_TALKS,
};

struct trial {
	struct model model; /* set by the caller; the other fields are the result */
	bool ok;
	enum trial_word word;
	struct ava_error err;
	struct learned told; /* facts from the model's server */
	/* Tokens a second, read and written; seconds until Ava's first word. 0: unknown. */
	double reads, writes, first_s;
	const char *mend; /* static; "": nothing to do */
};

/* Resolve `name` (NULL: the default), asking a local server. false: no model that is called over
 * the wire. */
bool trial_model(struct os_loop *loop, const char *name, struct model *out);
/* Runs the loop until the model has answered, or its time is over. */
void trial_run(struct trial *t, struct os_loop *loop, struct http_client *client);
/* The trial's result in one line. */
void trial_words(const struct trial *t, struct buf *out);

#endif
