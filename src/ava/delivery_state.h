/* Inside of delivery, shared by its files: delivery.c (what is open, the verbs),
 * delivery_item.c (an event as a notice), delivery_ledger.c (what stands on
 * disk), delivery_notify.c (the command). doc/DELIVERY.md says how it works. */
#ifndef AVA_DELIVERY_STATE_H
#define AVA_DELIVERY_STATE_H

#include "ava/delivery.h"
#include "ava/state.h"

#define DELIVERY_TERMINAL  1u
#define DELIVERY_NOTIFY    2u
#define DELIVERY_NCHANNELS 2

#define DELIVERY_SESSION_MAX 200 /* open notices of a conversation */
#define DELIVERY_NOTIFY_MAX  1000
#define DELIVERY_MAX         5000
#define DELIVERY_TRIM_BYTES  ((size_t)1 << 20)
#define DELIVERY_AGE_MS      (30 * 86400000LL)

enum item_kind {
	ITEM_MESSAGE,
	ITEM_RESULT,
	ITEM_PROPOSAL,
	ITEM_EXPIRED,
	ITEM_QUESTION, /* of a run */
	ITEM_NKINDS
};
#define ITEM_KEY    48
#define LEDGER_PATH 32 /* bytes of "delivery/00000001.jsonl" and more */

struct item {
	struct list node; /* in delivery.items, by lsn */
	uint64_t lsn;
	int64_t wall_ms;
	enum item_kind kind;
	unsigned open; /* channels that have not acknowledged it */
	/* An acknowledgement "up to" this covers it: its lsn, or, when it came
	 * after events with a greater lsn, more than those, until it was given. */
	uint64_t cover;
	char session[64];
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
	struct os_timer *again;     /* takes in what is left, or opens the cursor again */
	uint64_t seen;              /* greatest lsn taken in */
	char path[LEDGER_PATH];     /* of the ledger in use */
	unsigned generation, first; /* of it, and of the first of this process */
	bool beginning;             /* its base is on the way to the disk */
	unsigned keep;              /* files before it that stay when that is there */
	size_t base_bytes, grown;   /* of its base and items; of rows since then */
	size_t trim_bytes;          /* it begins anew when it has grown by so much */
	struct notify *notify;      /* NULL: no command is set */
};

/* ---- delivery_item.c */
/* A line of a log as a notice, all channels closed. 0; AVA_ENOENT: it is none;
 * AVA_ENOMEM. */
int item_from_event(struct item **out, const char *type, const char *line, size_t len);
/* As it stands in an `item` row. AVA_ECORRUPT. */
int item_from_json(struct item **out, const json_t *object);
void item_free(struct item *it);
/* The event answers the notice with that key. */
bool item_answers(const char *type, const char *line, size_t len, char key[ITEM_KEY]);

/* ---- delivery.c */
/* By its lsn; taken. */
void delivery_insert(struct delivery *d, struct item *it);
struct item *delivery_find(struct delivery *d, uint64_t lsn);
/* These channels are done with it; it is freed when none is left. */
void delivery_settle(struct delivery *d, struct item *it, unsigned channels);
void delivery_answered(struct delivery *d, const char *key);
/* Not offered any more: a row, and the event that says so. `done` as of
 * draft_commit. Nothing of it is settled in memory. */
int delivery_give_up(struct delivery *d, unsigned channel, const struct item *it,
		     const char *reason, void (*done)(int rv, void *user), void *user);
const char *delivery_channel_name(unsigned channel);
unsigned delivery_channel(const char *name); /* 0: none such */

/* ---- delivery_ledger.c */
/* Everything there is to know of before; fills d->items. Problems are logged. */
int ledger_read(struct delivery *d, struct ava_error *err);
/* Begin the next file; the older ones go when it is on disk. `lsn`: what is
 * below it is settled, or an item. */
void ledger_begin(struct delivery *d, uint64_t lsn);
/* Begin the next file when this one has grown. Everything that can be read has
 * been taken in. False: not all of it is on disk yet; ask again. */
bool ledger_trim(struct delivery *d);
/* Rows into a draft. */
void ledger_settled(struct delivery *d, struct draft *dr, const char *row, unsigned channel,
		    const uint64_t *lsns, unsigned n);
void ledger_send(struct delivery *d, struct draft *dr, const struct item *it);

/* ---- delivery_notify.c */
int notify_open(struct delivery *d, const char *command, struct ava_error *err);
void notify_pump(struct delivery *d); /* call when there may be something to send */
void notify_forget(struct delivery *d, const struct item *it); /* it is about to be freed */
void notify_stop(struct delivery *d);
void notify_close(struct delivery *d);

#endif
