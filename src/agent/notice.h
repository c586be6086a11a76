/* Text made by the runtime for the model. It has one form, a line that begins
 * with "[ava] ", and stands in user-role text only; text of models, tools and
 * pages that imitates the form is escaped where it enters. */
#ifndef AGENT_NOTICE_H
#define AGENT_NOTICE_H

#include <stddef.h>

#include "agent/limit.h"

struct buf;

/* Append `text` as one notice line of its own: "[ava] text", without a newline
 * at its end. Newlines inside become spaces. Returns buf_check(out). */
int notice_format(struct buf *out, const char *text);
/* Append `s` with every "[ava]" (any case, blanks inside the brackets) as
 * "[\ava]". Twice gives the same as once. Returns buf_check(out). */
int notice_escape(struct buf *out, const char *s, size_t len);

/* ---- what the machine tells a model about its own replies */

#define ODD_REPLIES_MAX 3 /* in a row are asked again, with a changed request */
#define NOTICE_REPEATED "the model made the same call with the same result four times"

/* All that is said with the results of a turn, as notices in its arena; `near`: limits
 * of its own that the model is told of. AVA_ENOMEM. */
#define NOTICE_TURN (AGENT_NRESOURCES + AGENT_NSHARES + 3)
int notice_turn(struct agent *a, const char *out[NOTICE_TURN], unsigned *n, unsigned *near);

#endif
