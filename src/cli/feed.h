/* What happens in a conversation, as it comes: what a person should see of the daemon's
 * stream is put into a queue whenever it is asked for. It goes on over lost
 * connections and restarts of the daemon (started again if need be), from the last event it
 * saw: every event once, in order. */
#ifndef CLI_FEED_H
#define CLI_FEED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

struct ava_error;
struct client;

#define FEED_OWN_MAX 64

enum feed_kind {
	FEED_EVENT,    /* a durable event: `type`, and its line in `data` */
	FEED_OWN,      /* what was said here has come back: feed_say */
	FEED_TEXT,     /* more of Ava's text: `data` */
	FEED_THINKING, /* and of her thoughts; only with `all` */
	FEED_BUSY,     /* her turn began */
	FEED_IDLE,     /* and ended */
	FEED_LOST,     /* the connection broke; frames may have been missed */
	FEED_BACK,     /* and is there again */
	FEED_GONE,     /* the daemon refuses it: `data` says why. Nothing more comes */
};

struct feed_item {
	struct list node;
	enum feed_kind kind;
	uint64_t lsn; /* of an event, and of what was said */
	char type[24];
	size_t len;
	char data[]; /* NUL-terminated */
};

struct feed {
	struct client *c;  /* of the stream; NULL: lost, or not open yet */
	struct list items; /* struct feed_item */
	char last_id[24];
	bool all;                   /* what Ava does and thinks as well */
	bool lost, gone;            /* so it was told */
	int64_t heard_ms;           /* when something came */
	int64_t retry_ms;           /* when a connection is made again */
	int64_t pause_ms;           /* between that and the time after */
	uint64_t own[FEED_OWN_MAX]; /* entries of what was said here and has not come back */
	size_t nown;
};

/* Behind `lsn`. What is said before the stream is open would be answered without frames: it is
 * waited for; a daemon that does not come is a lost connection. `all` may be set before. */
void feed_open(struct feed *f, const char *session, uint64_t lsn);
void feed_close(struct feed *f); /* a zeroed one whose list is initialised, too */

/* Say something, over *c (api.h). 0: it is on disk, and its event will be FEED_OWN. `seen`: the
 * newest quote that was shown; "": none. */
int feed_say(struct feed *f, struct client **c, const char *session, const char *text,
	     const char *seen, struct ava_error *err);

/* The next item, the caller's from now on (free); NULL when there is none. */
struct feed_item *feed_take(struct feed *f, const char *session);
/* Readable: there may be one. -1: no connection. */
int feed_fd(const struct feed *f);
/* When something is due that nothing readable says, clock_mono_ms; -1: never. */
int64_t feed_next(const struct feed *f);

#endif
