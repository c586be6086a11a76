/* Delivery of notices (what Ava said, results, proposals) to channels: each at
 * least once, across crashes, with the lsn of its event as reference.
 * doc/DELIVERY.md. Loop thread only. */
#ifndef AVA_DELIVERY_H
#define AVA_DELIVERY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ava.h>

#include "ava/sessions.h"
#include "event/item.h"
#include "os/loop.h"

struct channel;
struct core;
struct draft;
struct jw;

/* Notices that `channel` has not acknowledged in the conversation, by lsn, as the answer of GET
 * /sessions/{id}/unseen. AVA_EINVAL (channel), AVA_ENOENT (session). */
int ops_unseen(struct core *c, const char *session, const char *channel, struct jw *w,
	       struct ava_error *err);

/* Acknowledges notices up to `lsn`. `done` exactly once, when that is on disk: how many they were,
 * and how many are left. */
typedef void (*op_acked_fn)(int rv, unsigned acknowledged, unsigned unseen,
			    const struct ava_error *err, void *user);
void ops_ack(struct core *c, const char *session, const char *channel, uint64_t lsn,
	     op_acked_fn done, void *user);

/* ---- for the runtime itself */
/* Opens delivery, then its channels, then reads open notices and goes on. After sessions_open,
 * before any event that could be a notice. */
int delivery_open(struct core *c, struct ava_error *err);
int delivery_begin(struct core *c, struct ava_error *err);
/* Words of the command, each with its NUL, then an empty one; NULL or "": none. */
int notify_open(struct core *c, const char *command, struct ava_error *err);
/* The command notify-send, if the desktop can be told (notify_desktop_why) and shall be. */
int notify_desktop_open(struct core *c, struct ava_error *err);
/* Appends words of a notice for those that read markup, a desktop and Slack: <, > and & are text.
 */
void notify_add_escaped(struct buf *b, const char *s, size_t n);
/* Why no desktop can be told: a sentence; NULL: it can, and `path` is notify-send's. */
const char *notify_desktop_why(char path[512]);
/* notify_url.c: POST of each notice to `url` (NULL or "": none), in the form `format`: "json"
 * (NULL,
 * ""), "ntfy", "slack"; signed with `secret`, if there is one. */
int notify_url_open(struct core *c, const char *url, const char *format, const char *secret,
		    struct ava_error *err);
/* A call of such a channel failed: ch->reason says why. Later (in `after_ms` at the earliest), or
 * given up after the last attempt, or at once where `gone`. */
void notify_failed(struct channel *ch, const char *name, int64_t after_ms, bool gone);
/* No notice waits for a channel that is called. */
bool delivery_idle(const struct core *c);
/* Calls no channel any more and ends the calls at work; while the journal is open. */
void delivery_quiesce(struct core *c);
void delivery_close(struct core *c); /* after the journal is closed */

/* ---- for the doors of messengers (gateway/door.c), which show a person the notices of their
 * conversations. The terminal does not repeat a notice shown there. `door` is its place in the
 * table of base/doors.h; its people are users "<name>:…". */
struct notice;
/* Sets the callback for new notices; NULL: none. */
void delivery_watch(struct core *c, unsigned door, void (*fresh)(void *user), void *user);
/* Ava's turn in a conversation is over: its quotes are shown from now on. */
void delivery_talked(struct core *c);
/* The oldest notice not shown to this user, messages before quotes, and quotes before spawned runs;
 * *borrowed* until the loop turns. NULL: none. */
const struct notice *delivery_next(struct core *c, unsigned door, const char *user);
/* Notes in `dr` that a notice was shown, or, with a `reason`, given up; the door adds its own state
 * to `dr`. false: settled already, and `dr` is unchanged. */
bool delivery_showing(struct core *c, struct draft *dr, unsigned door, uint64_t lsn,
		      const char *reason);
/* `written`: the commit of delivery_showing's draft is on disk. */
void delivery_shown(struct core *c, unsigned door, uint64_t lsn, bool written);

/* ---- inside of delivery: delivery.c, channel.c, and the channels notify.c and otel.c */

#define DELIVERY_TERMINAL 1u
#define DELIVERY_NOTIFY   2u
#define DELIVERY_OTEL     4u
#define DELIVERY_DESKTOP  8u
#define DELIVERY_URL      16u
#define DELIVERY_DOOR     32u /* shifted by its place in the table of doors */
/* Channels for whoever owns the daemon: they get all notices, and count attempts on disk. */
#define DELIVERY_OWN (DELIVERY_NOTIFY | DELIVERY_DESKTOP | DELIVERY_URL)

#define DELIVERY_SESSION_MAX 200 /* open notices of one conversation */
#define DELIVERY_NOTIFY_MAX  1000
#define DELIVERY_OTEL_MAX    2000
#define DELIVERY_MAX         5000
#define DELIVERY_AGE_MS      (30 * 86400000LL)

enum { /* lists of a notice behind those of its channels */
       NOTICE_ALL = DELIVERY_NCHANNELS,
       NOTICE_TALK,
       NOTICE_ASK, /* proposed, asked */
       NOTICE_LISTS
};

/* An Item (event/item.h) that some channel has not acknowledged, or a trace that a person asked to
 * push: that has no lsn, and is forgotten when the runtime stops. */
struct notice {
	struct list in[NOTICE_LISTS]; /* of each open channel by its bit, then those below */
	struct delivery_talk *talk;   /* NULL: of no conversation */
	struct item item;
	unsigned open;    /* channels that have not acknowledged the notice */
	unsigned closing; /* of those, channels that the next written state leaves out */
	unsigned cuts;    /* of those, channels of which one may be settled since the one before */
	/* Least lsn whose acknowledgement covers the notice: its own, or, while a notice that came
	 * behind events with a greater lsn was not given yet, one greater than those. */
	uint64_t cover;
	char *json; /* the Item; owned */
	struct notice_try {
		unsigned attempts;
		int64_t due_ms;      /* monotonic: earliest next attempt */
	} tries[DELIVERY_NCHANNELS]; /* of channels that are called */
};

struct channel;
struct delivery {
	struct core *core;
	struct list notices; /* not acknowledged by some channel; by lsn, as in `queues` */
	unsigned nnotices;
	struct list queues[DELIVERY_NCHANNELS];
	unsigned open[DELIVERY_NCHANNELS], full, cuts; /* cuts: behind the end of the queue */
	struct list asks;
	struct op_cursor *cursor;
	struct os_task pump;
	struct os_timer *again; /* reads further events, or opens the cursor again */
	uint64_t seen;          /* greatest lsn of an event read */
	uint64_t settled; /* the last process settled all notices up to it that are not open */
	struct channel *channels[DELIVERY_NCHANNELS]; /* NULL: not called, or not set */
	unsigned called;                              /* channels that are */
	struct otel_metrics *metrics;                 /* ava/otel_metrics.c; NULL: none */
	struct delivery_watcher {
		void (*fresh)(void *user);
		void *user;
	} watchers[DOORS_N];
};

static inline unsigned delivery_bit(unsigned channel)
{
	return (unsigned)__builtin_ctz(channel);
}

/* ---- delivery.c */
void delivery_insert(struct delivery *d, struct notice *it); /* *taken* */
/* Closes these channels of a notice; frees it when none is open. */
void delivery_settle(struct delivery *d, struct notice *it, unsigned channels);
/* A draft that writes the state, without channels in item.closing; NULL: no memory. */
struct draft *delivery_draft(struct delivery *d);
/* Commits a draft or NULL. 0: `done` follows, once, unless the runtime stops first. */
int delivery_commit(struct draft *dr, void (*done)(int rv, void *user), void *user);
/* ---- channel.c */
extern const struct channel_row {
	const char *name;
	bool talk; /* the bound is a conversation's */
	unsigned max;
	const char *full;            /* said once the bound is reached */
} channel_table[DELIVERY_NCHANNELS]; /* by bit */
/* Adds the event that a channel gave a notice up, or took it but for `left_out` spans (0: gave it
 * up). */
void channel_tell(struct delivery *d, struct draft *dr, unsigned channel, const struct notice *it,
		  int64_t left_out, const char *reason);

struct channel_kind {
	unsigned channel;
	/* Calls for ch->item, which may be settled and NULL before the end; channel_done follows
	 * once, unless it is stopped. */
	void (*send)(struct channel *ch);
	void (*stop)(struct channel *ch); /* ends the call at work */
	void (*free)(struct channel *ch);
};
enum channel_end {
	CHANNEL_TAKEN,
	CHANNEL_LATER, /* when due_ms of the notice and rest_ms of the channel have come */
	CHANNEL_GIVEN_UP,
};

/* Embedded in a channel that is called, all zero at first. */
struct channel {
	struct delivery *d;
	const struct channel_kind *kind;
	struct os_timer *timer;
	unsigned attempts_max; /* 0: attempts are not on disk before the call */
	int64_t rest_ms;       /* monotonic: no call before */
	bool stopped, busy;    /* busy: `item` is between pick and its end */
	bool end_waits;        /* its end must be written again: the disk refused it */
	struct notice *item;   /* NULL: settled meanwhile: answered, or dropped */
	enum channel_end end;
	char reason[800];         /* the failure of the last call; "": it succeeded */
	int64_t left_out;         /* spans that a taken notice lost */
	uint64_t taken, given_up; /* notices, in this process */
};

/* On error the channel is registered all the same: delivery_close frees it. AVA_ENOMEM. */
int channel_init(struct channel *ch, struct delivery *d, const struct channel_kind *kind);
void channel_pump(struct channel *ch); /* call when a notice may be due */
void channel_done(struct channel *ch, enum channel_end end);
/* Adds a stranger's first line to ch->reason, fit for a terminal and without secrets. */
void channel_add_reason(struct channel *ch, const char *text, size_t len);
/* The wait after so many failures: `retry_s` seconds, each later one `times` as long. */
int64_t channel_pause_ms(int64_t retry_s, unsigned failures, unsigned times, int64_t max_ms);
void channel_stop(struct channel *ch);
void channel_free(struct channel *ch);

static inline struct notice_try *channel_try(struct channel *ch)
{
	return &ch->item->tries[delivery_bit(ch->kind->channel)];
}

#endif
