/* Delivery of notices (what Ava said, results, proposals) to channels: each at
 * least once, across crashes, with the lsn of its event as reference.
 * doc/DELIVERY.md. Loop thread only. */
#ifndef AVA_DELIVERY_H
#define AVA_DELIVERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ava.h>

#include "base/list.h"
#include "os/loop.h"

struct core;
struct draft;
struct jw;

/* What `channel` of this conversation has not acknowledged, by lsn, as the answer of
 * GET /sessions/{id}/unseen. AVA_EINVAL (channel), AVA_ENOENT (session). */
int ops_unseen(struct core *c, const char *session, const char *channel, struct jw *w,
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

/* ---- for the door of a messenger (gateway/telegram.c), which shows a person the notices of the
 * conversations that are theirs. What it has shown the terminal does not tell again. */
#define DELIVERY_TELEGRAM_USER "telegram:" /* before the id of that person */
struct item;
/* `fresh` is called when there is one more, until another is set; NULL: nobody. */
void delivery_watch(struct core *c, void (*fresh)(void *user), void *user);
/* Ava has said all in a conversation: quotes of it are shown from now on. */
void delivery_talked(struct core *c);
/* The oldest that this user was not shown, what is said before quotes, and they before spawned
 * runs; borrowed until the loop turns. NULL: none. */
const struct item *delivery_next(struct core *c, const char *user);
/* It was shown, or, with a `reason`, is given up: `dr` says so, in which the door also keeps what
 * it has to remember of it. False: it is settled already, and `dr` is as it was. */
bool delivery_showing(struct core *c, struct draft *dr, uint64_t lsn, const char *reason);
void delivery_shown(struct core *c, uint64_t lsn, bool written); /* how that commit went */

/* ---- inside of delivery: delivery.c, notify.c (the command) */

#define DELIVERY_TERMINAL  1u
#define DELIVERY_NOTIFY    2u
#define DELIVERY_TELEGRAM  4u
#define DELIVERY_NCHANNELS 3

#define DELIVERY_SESSION_MAX 200 /* open notices of a conversation */
#define DELIVERY_NOTIFY_MAX  1000
#define DELIVERY_MAX         5000
#define DELIVERY_AGE_MS      (30 * 86400000LL)

enum item_kind {
	ITEM_RESULT,
	ITEM_MESSAGE,
	ITEM_PROPOSAL,
	ITEM_QUESTION, /* of a run */
	ITEM_EXPIRED,
	/* Conversations on a terminal show these with their events: */
	ITEM_FAILED, /* a turn of Ava's */
	ITEM_SPAWN,  /* a run has begun */
	ITEM_NKINDS
};
#define ITEM_KEY 48

struct item {
	struct list node; /* in delivery.items, by lsn */
	uint64_t lsn;
	int64_t wall_ms;
	enum item_kind kind;
	unsigned open;    /* channels that have not acknowledged it */
	unsigned closing; /* of those, what is left out of what is written from now on */
	/* An acknowledgement "up to" this covers it: its lsn, or, when it came
	 * after events with a greater lsn, more than those, until it was given. */
	uint64_t cover;
	char session[64], user[48];
	char key[ITEM_KEY]; /* what its answer names: a proposal, "S-7f3a2b:c3.1"; "" none */
	char *json;         /* the object that is delivered; owned */
	unsigned attempts;
	int64_t due_ms; /* monotonic: not tried before */
};

struct delivery {
	struct core *core;
	struct list items; /* that some channel has not acknowledged */
	unsigned nitems;
	struct op_cursor *cursor;
	struct os_task pump;
	struct os_timer *again; /* takes in what is left, or opens the cursor again */
	uint64_t seen;          /* greatest lsn taken in */
	uint64_t settled;       /* up to it what is not open is settled, said the last process */
	uint64_t pushed;        /* traces of ends up to this lsn are done with (ava/otel.c) */
	struct notify *notify;  /* NULL: no command is set */
	void (*watch)(void *user);
	void *watch_user;
};

/* A line of a log as a notice, all channels closed. 0; AVA_ENOENT: it is none;
 * AVA_ENOMEM. */
int item_from_event(struct item **out, const char *type, const char *line, size_t len);
void item_free(struct item *it);
/* The event answers the notice with that key. */
bool item_answers(const char *type, const char *line, size_t len, char key[ITEM_KEY]);

/* ---- delivery.c */
/* These channels are done with it; it is freed when none is left. */
void delivery_settle(struct delivery *d, struct item *it, unsigned channels);
/* A draft that writes the state as it is now, without what is closing; NULL: no memory. */
struct draft *delivery_draft(struct delivery *d);
/* Of a draft or NULL: 0, and `done` follows, once, unless the runtime stops first. */
int delivery_commit(struct draft *dr, void (*done)(int rv, void *user), void *user);
/* The event that says it is not offered any more. */
void delivery_gave_up(struct delivery *d, struct draft *dr, unsigned channel, const struct item *it,
		      const char *reason);

/* ---- notify.c */
int notify_open(struct delivery *d, const char *command, struct ava_error *err);
void notify_pump(struct delivery *d); /* call when there may be something to send */
void notify_forget(struct delivery *d, const struct item *it); /* it is about to be freed */
void notify_stop(struct delivery *d);
void notify_close(struct delivery *d);

#endif
