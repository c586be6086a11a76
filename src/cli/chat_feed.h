/* What happens in a conversation, as it comes: a thread reads the daemon's
 * stream and puts what a person should see into a bounded queue. It goes on over
 * lost connections and restarts of the daemon (started again if need be), from
 * the last event it saw: every event once, in order. */
#ifndef CLI_CHAT_FEED_H
#define CLI_CHAT_FEED_H

#include <ava.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"

enum feed_kind {
	FEED_EVENT, /* a durable event: `type`, and its line in `data` */
	FEED_TEXT,  /* more of Ava's text: `data` */
	FEED_BUSY,  /* her turn began */
	FEED_IDLE,  /* and ended */
	FEED_LOST,  /* the connection broke; frames may have been missed */
	FEED_BACK,  /* and is there again */
	FEED_GONE,  /* the daemon refuses it: `data` says why. Nothing more comes */
};

struct feed_item {
	struct list node;
	enum feed_kind kind;
	uint64_t lsn; /* of an event */
	char type[24];
	char *data; /* owned, NUL-terminated; "" when it has none */
	size_t len;
};

struct feed;

/* From behind event `after` on. Everything is *copied*. */
int feed_open(struct feed **f, const char *root, const char *session, uint64_t after,
	      struct ava_error *err);
/* Ends the thread; one that waits for a daemon is left alone after a second. */
void feed_close(struct feed *f); /* NULL is fine */
/* Readable when the queue may have something; feed_take makes it quiet again. */
int feed_fd(const struct feed *f);
/* The next item, the caller's from now on; NULL when there is none. */
struct feed_item *feed_take(struct feed *f);
void feed_item_free(struct feed_item *i); /* NULL is fine */

#endif
