/* A standing order: its state, its file (order_file.c) and one turn of it (order_turn.c).
 * ava/orders.h has all of them. */
#ifndef AVA_ORDER_H
#define AVA_ORDER_H

#include "ava/state.h"
#include "subagent/order.h"

#define ORDER_WHY   300 /* bytes of a reason; as many are shown (WORDS_ORDER_SAYS) */
#define ORDER_EXTRA ((size_t)256 << 10) /* bytes of a stranger's text */

enum order_state {
	ORDER_NEW, /* its confirmation is on the way to the disk: nobody sees it */
	ORDER_ACTIVE,
	ORDER_PAUSED,
	ORDER_ASKS, /* its runs are no longer what was confirmed: a person is asked */
	ORDER_DONE, /* its count or its time is over */
	ORDER_REMOVED
};

/* Reasons why a time became no run. Each is told once a day, and logged each time. */
enum order_reason {
	ORDER_MISSED, /* nothing could start at that time */
	ORDER_BUSY,   /* its last run was at work */
	ORDER_BUDGET,
	ORDER_FAILED, /* it cannot be started: the sentence says why */
};

struct order_waits {
	int64_t due_ms;
	int64_t delivery; /* number of the order_delivery that it stands for; 0: a due time */
};

/* The part of an order that changes, as its file has it. */
struct order_now {
	enum order_state state;
	int64_t last_ms; /* the newest due time that is done with */
	int64_t fired;
	char run[24]; /* its newest run; "": none yet */
	bool settled; /* what that one cost is counted below */
	char day[11]; /* the local day of what is counted */
	int64_t day_microusd, month_microusd;
	struct order_waits waiting[ORDER_ALL]; /* for the run before, the oldest first */
	unsigned nwaiting;
	char why[ORDER_WHY]; /* why it asks, or the newest time became no run; "" */
	char told[11];       /* the day of `reasons` */
	unsigned reasons;    /* a bit for each enum order_reason that was told on that day */
};

struct standing {
	struct list node;
	struct core *core;
	struct order_plan plan;
	struct order_now now, next;    /* next: on its way to the disk while `writing` */
	char *config, *session, *user; /* config: of the spec that was confirmed; owned */
	char *config_next;             /* what is being confirmed now; owned; NULL */
	char hash[HASH_HEX_LEN + 1], hash_next[HASH_HEX_LEN + 1];
	int64_t made_ms;
	int64_t due_ms; /* the next time; ORDER_NEVER: none, or it is not active */
	bool writing;
	bool unasked;         /* ORDER_ASKS, and no quote was made of it by this process */
	struct run *starting; /* of the commit under way */
	struct run_wait wait; /* on its run at work */
	struct order_call *call;
	struct list deliveries; /* struct order_delivery: those that `now` or `next` waits for */
	struct list held;       /* the same: of those who asked while it was being written */
};

/* A fire beside the calendar. */
struct order_fire {
	const char *by, *origin;
	/* Words of a stranger to this run alone, which go into its context as untrusted data. NULL:
	 * nothing. */
	const char *extra;
	const char *request_id; /* the same id starts one run, for a day; NULL: none */
	bool delivered; /* by a trigger: an order with `queue` takes it while it cannot start */
};

/* Called once: rv 0 with the order as it is now, and the run that was started ("": none). */
typedef void (*order_done_fn)(int rv, const struct standing *o, const char *run,
			      const struct ava_error *err, void *user);

/* A fire that is kept. */
struct order_delivery {
	struct list node;
	int64_t number;
	json_t *kept;           /* {"due","by","origin","request","text"}, as in the file; owned */
	struct order_fire fire; /* of `kept` */
	order_done_fn done;     /* of one that is held */
	void *user;
};

/* ---- order_file.c: orders/O-….json */
/* An order without a plan; NULL: no memory. */
struct standing *order_alloc(void);
/* Puts one behind those of a list. `kept` is *taken*, also on error; NULL: no memory. */
struct order_delivery *order_deliver(struct list *to, json_t *kept);
void order_delivery_free(struct order_delivery *d);
/* NULL: 0, or there is none. */
struct order_delivery *order_delivery_of(const struct standing *o, int64_t number);
/* Appends what the file says of an order with `n`. `config`: of the spec; returns buf_check(out).
 */
int order_file_write(struct buf *out, const struct standing *o, const struct order_now *n,
		     const char *config, const char *hash);
/* Back from it; the order is in no list. AVA_ECORRUPT, AVA_ENOMEM. */
int order_file_read(struct standing **out, const char *json, size_t len, struct ava_error *err);
void order_free(struct standing *o);
#define ORDER_FILE "orders/%.24s.json"

const char *order_state_name(enum order_state s);

/* ---- order_turn.c */

/* A change of an order while it is made. */
struct order_turn {
	struct standing *o;
	struct core *core;
	struct order_now *n; /* &o->next */
	struct draft *draft;
	int64_t now_ms;
	bool changed, busy;            /* busy: its last run is at work */
	const struct order_fire *fire; /* by hand or by a trigger; NULL: by the calendar */
	struct ava_error *err;         /* for who asked for it; else NULL */
};

/* A new state, which somebody said, or the calendar (`by` NULL). */
void turn_state(struct order_turn *t, enum order_state to, const char *by, const char *origin,
		const char *message);
/* Counts what the last run has cost, once it has ended. */
void turn_settle(struct order_turn *t);
/* Does with all times up to now what the order says: some wait, the others are told. */
void turn_due(struct order_turn *t);
/* The next time that waits is run, while no run is at work. 0; AVA_ENOMEM: drop the turn. */
int turn_next(struct order_turn *t);
/* Starts a run for a due time, or says why not. 0: done with it; else nothing was changed, and
 * t->err has the reason. */
int turn_fire(struct order_turn *t, int64_t due_ms);
/* The order is over when nothing more can be due. */
void turn_over(struct order_turn *t);
/* Has the order started, or will it start with what waits, all runs that it may? */
bool order_counted_out(const struct standing *o, const struct order_now *n);

/* The spec of its run, as a request gives it now. `now` false: AVA_EREJECTED when it is not what
 * was confirmed, and `why` says what differs; true: that difference is what the caller wants. Else
 * as spec_build. `f`: NULL, or what goes into this run alone. */
int order_spec(struct standing *o, const struct order_fire *f, bool now, struct run_spec **out,
	       char why[ORDER_WHY], struct ava_error *err);

#endif
