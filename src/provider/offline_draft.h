/* Building a reply of the offline model: texts and calls in, a turn with its
 * wire line out. */
#ifndef PROVIDER_OFFLINE_DRAFT_H
#define PROVIDER_OFFLINE_DRAFT_H

#include <stddef.h>

#include "agent/turn.h"

struct draft {
	struct turn *turn; /* owned until draft_finish */
	unsigned number;   /* of the call, for ids */
	int rv;            /* first error; then everything else is a no-op */
};

void draft_start(struct draft *r, unsigned number);
/* The text (the last one counts). *copied*, as all that follows. */
void draft_text(struct draft *r, const char *text, size_t len);
/* `args` a JSON object; NULL: `args_error` says why it is none. `id` NULL: ours. */
struct turn_call *draft_call(struct draft *r, const char *id, const char *name, const char *args,
			     size_t len, const char *args_error);
/* A wire line that is taken as it is instead of one made of text and calls. */
void draft_wire(struct draft *r, const char *wire, size_t len);
/* *out is the caller's. Usage is estimated from `body_len` and the line.
 * 0, AVA_ENOMEM, AVA_ETOOBIG (then *out is NULL). */
int draft_finish(struct draft *r, size_t body_len, struct turn **out);
void draft_drop(struct draft *r); /* instead of draft_finish */

#endif
