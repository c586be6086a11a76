/* A standing order's plan: when its runs are due, and what they may take (doc/ORDERS.md). It is a
 * member of the spec that its runs have, so that a person confirms one thing with one hash. Pure:
 * ava/orders.h keeps orders and fires them. */
#ifndef SUBAGENT_ORDER_H
#define SUBAGENT_ORDER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/calendar.h"

struct ava_error;
struct buf;
struct jw;
struct run_spec;

#define ORDER_ID    24 /* "O-5d09c41e" */
#define ORDER_NEVER CALENDAR_NEVER
#define ORDER_ALL   10   /* most times that `all` makes up for */
#define ORDER_TEXT  2048 /* bytes of a plan as JSON, at most */

enum order_overlap { ORDER_OVERLAP_SKIP, ORDER_OVERLAP_QUEUE };
enum order_missed { ORDER_MISSED_ONCE, ORDER_MISSED_SKIP, ORDER_MISSED_ALL };

struct order_plan {
	char id[ORDER_ID];
	char when[CALENDAR_TEXT + 1];
	struct calendar *calendar;            /* owned */
	int64_t from_ms, until_ms;            /* wall; until ORDER_NEVER: always */
	int64_t day_microusd, month_microusd; /* of all its runs; -1: only their own limit */
	int64_t count;                        /* runs that it starts; 0: no end */
	enum order_overlap overlap;
	enum order_missed missed;
};

/* Reads a request's "order", or a plan as order_write writes it; "id" and "from" are made where
 * they are absent. On success order_fini is due. AVA_EINVAL with a sentence, AVA_ENOMEM. */
int order_read(const json_t *o, struct order_plan *out, struct ava_error *err);
void order_fini(struct order_plan *p);
/* The plan as JSON, always the same bytes for the same plan. */
void order_write(struct jw *w, const char *key, const struct order_plan *p);
const char *order_overlap_name(enum order_overlap o);
const char *order_missed_name(enum order_missed m);
/* The first time that is due after `after_ms`, not past `until`; ORDER_NEVER. */
int64_t order_next(const struct order_plan *p, int64_t after_ms);

/* Makes it the order of a spec. AVA_ENOMEM. */
int order_keep(struct run_spec *s, const struct order_plan *p);
bool order_is_id(const char *s);
/* The rows about it in a quote: when, the next three times, money, its end, overlap, missed times.
 * Each begins with a newline. Nothing for a spec without an order. */
void order_quote_text(struct buf *out, const struct run_spec *s);
/* {"order":{…,"next":[…]}} into an open object, for programs. */
void order_quote_write(struct jw *w, const struct run_spec *s);

#endif
