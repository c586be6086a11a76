/* Delivery of notices (what Ava said, results, proposals) to channels: each at
 * least once, across crashes, with the lsn of its event as reference.
 * doc/DELIVERY.md. Loop thread only. */
#ifndef AVA_DELIVERY_H
#define AVA_DELIVERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ava.h>

struct core;

struct op_unseen {
	const char *session, *channel;
	char summary[200]; /* one line; "" when there is nothing */
	uint64_t lsn;      /* of the newest; 0: none */
	unsigned n;
};
/* What `channel` of this conversation has not acknowledged: `head` once, then
 * `each` by lsn with the notice as a JSON object. AVA_EINVAL (channel),
 * AVA_ENOENT (session). */
int ops_unseen(struct core *c, const char *session, const char *channel,
	       void (*head)(const struct op_unseen *u, void *user),
	       void (*each)(const char *json, size_t len, void *user), void *user,
	       struct ava_error *err);

/* Up to `lsn` everything was shown. `done` exactly once, when that is on disk:
 * how many it was, and how many are not acknowledged yet. */
typedef void (*op_acked_fn)(int rv, unsigned acknowledged, unsigned unseen,
			    const struct ava_error *err, void *user);
void ops_ack(struct core *c, const char *session, const char *channel, uint64_t lsn,
	     op_acked_fn done, void *user);

/* ---- for the runtime itself */
/* Reads what was left and goes on. After sessions_open, before anything that
 * could be a notice is written. `notify`: the words of the command, each with
 * its NUL, then an empty one; NULL: none. */
int delivery_open(struct core *c, const char *notify, struct ava_error *err);
/* No command is to be called. */
bool delivery_idle(const struct core *c);
/* Calls nothing any more and ends the command; while the journal is open. */
void delivery_quiesce(struct core *c);
void delivery_close(struct core *c); /* after the journal */

#endif
