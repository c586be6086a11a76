/* Standing orders: runs that start by the clock (doc/ORDERS.md). An order is confirmed as a quote
 * is (proposals.c); here it is kept, fired once for each time, paused and removed.
 *
 * Loop thread only. Orders belong to the core, from orders_open to orders_close. */
#ifndef AVA_ORDERS_H
#define AVA_ORDERS_H

#include "ava/order.h"

#define ORDERS_MAX 2000

/* NULL: there is none of that name, or its confirmation is not on disk yet. */
struct standing *orders_find(struct core *c, const char *id, struct ava_error *err);
/* The oldest first. */
void orders_each(struct core *c, void (*each)(struct standing *o, void *user), void *user);

/* The quote that waits for an answer about it, or is being written; NULL. */
struct proposal *order_asking(const struct standing *o);

/* The files that are no order here, as JSON objects {"file","problem"} with commas between them. */
const char *orders_unreadable(const struct core *c);

/* ACTIVE, PAUSED or REMOVED, by a person. An order that asks is quoted anew by ACTIVE. AVA_EEXIST:
 * its time is over; AVA_EBUSY: it is being written, ask again. */
void orders_set(struct core *c, const char *id, enum order_state to, const char *by,
		const char *origin, order_done_fn done, void *user);

/* Starts a run of the order now; for a person also while it is paused. Its money and its count
 * hold. All of `f` is *copied*. 0 without a run: it is kept, once for its request_id, and started
 * when the order can. AVA_EBUSY: its last run is at work; AVA_EBUDGET; AVA_EEXIST: it asks, is
 * over, or is paused; AVA_EDENIED: with the extra text it would have all three rights. */
void orders_fire(struct core *c, const char *id, const struct order_fire *f, order_done_fn done,
		 void *user);

/* An order_done_fn: answers the verb_reply `user` with the order and its run. */
void verb_order_started(int rv, const struct standing *o, const char *run,
			const struct ava_error *err, void *user);

/* ---- triggers.c: programs elsewhere that start an order (doc/TRIGGERS.md) */
struct trigger_signature {
	const char *value; /* of the header; "": absent */
	const char *time;  /* Slack's timestamp, "" elsewhere */
	const char *body;
	size_t len;
};
/* Is the body signed with the secret, in the form of "github", "slack" or "plain"? AVA_EDENIED with
 * a sentence; a delivery of Slack's that is over five minutes old is no longer good. */
int trigger_signed(const char *how, const char *secret, const struct trigger_signature *s,
		   int64_t now_ms, struct ava_error *err);

#endif
