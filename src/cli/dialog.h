/* A conversation with Ava as a client has it, a terminal (chat.h) or an editor (acp.h): it is begun
 * or found, something is said in it, and what happens in it comes as Items (doc/ITEMS.md) and news
 * of the stream whenever they are asked for: over lost connections and restarts of the daemon
 * (started again if need be), from the last Item that came, every one once, in order. One
 * thread. */
#ifndef CLI_DIALOG_H
#define CLI_DIALOG_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "client/follow.h"
#include "event/item.h"

struct ava_error;

#define DIALOG_OWN_MAX 64

enum dialog_kind {
	DIALOG_ITEM,     /* an Item */
	DIALOG_OWN,      /* a message sent from here has come back */
	DIALOG_TEXT,     /* more of Ava's text; "": it begins anew */
	DIALOG_THINKING, /* more of Ava's thoughts; only with `thoughts` */
	DIALOG_BUSY,     /* Ava's turn began */
	DIALOG_IDLE,     /* Ava's turn ended */
	DIALOG_LOST,     /* the connection broke; frames may have been missed */
	DIALOG_BACK,     /* the connection is there again */
	DIALOG_GONE,     /* the daemon refuses the conversation; the last news */
};

struct dialog_news {
	struct list node;
	enum dialog_kind kind;
	enum item_kind is; /* of an Item */
	uint64_t lsn;      /* of an Item or a message of ours */
	json_t *item;      /* the Item; owned */
	size_t len;
	char text[]; /* NUL-terminated: a piece of text, or why it is gone */
};

struct dialog {
	bool thoughts; /* Ava's thoughts come as well */
	char id[64], model[264];
	char *cwd; /* owned; the client's folder, until an older conversation's is known to exist */
	bool said; /* a message was sent: the conversation is on disk */
	bool busy; /* Ava is at work, as far as is known */
	uint64_t seen;         /* following begins behind this lsn */
	char unshown[900];     /* a sentence about what dialog_past left out; "": nothing */
	uint64_t acknowledged; /* lsn of the last acknowledgement */
	uint64_t last;         /* lsn of the newest Item that came */
	struct follower stream;
	char path[128];   /* the stream's */
	struct list news; /* struct dialog_news */
	bool lost, gone;  /* DIALOG_LOST, DIALOG_GONE were given; gone also if not followed */
	int64_t retry_ms; /* when a connection is made again */
	int64_t pause_ms; /* between that try and the next */
	uint64_t own[DIALOG_OWN_MAX]; /* lsns of messages sent from here that have not come back */
	size_t nown;
};

void dialog_init(struct dialog *d, bool thoughts);
void dialog_fini(struct dialog *d);

/* Open a conversation. `id` NULL: a new one in d->cwd; `model` NULL: the daemon's default. Else an
 * existing one, which has a folder of its own; AVA_EINVAL: `id` is none. Later events are
 * behind d->seen. */
int dialog_open(struct dialog *d, const char *id, const char *model, struct ava_error *err);
/* Continue with another model, or begin with it when nothing was said. */
int dialog_model(struct dialog *d, const char *model, struct ava_error *err);
/* The conversation's row as the daemon has it now. */
int dialog_get(struct dialog *d, json_t **out, struct ava_error *err);
/* Entries of the conversation's file (doc/SESSIONS.md) without those that come as events, each text
 * in a block. *out is a list, the caller's. */
int dialog_past(struct dialog *d, json_t **out, struct ava_error *err);
/* The Asks of the conversation (doc/ASKS.md), quotes first, each the oldest first; its runs, the
 * newest first, `all` or only live ones. Lists as well. */
int dialog_asks(struct dialog *d, json_t **out, struct ava_error *err);
int dialog_runs(struct dialog *d, bool all, json_t **out, struct ava_error *err);
/* 0: the message is on disk, and its Item will be DIALOG_OWN. `shown`: the Ask that was shown
 * last, with nothing behind it but what is being done; "": none. */
int dialog_say(struct dialog *d, const char *text, const char *shown, struct ava_error *err);
/* Ava's turn ends; subagents go on. */
int dialog_stop(struct dialog *d, struct ava_error *err);
/* Tells the daemon that all up to `lsn` was shown. Notices not acknowledged are shown again to the
 * next client. Only with `insist` is a daemon started for it. */
void dialog_acknowledge(struct dialog *d, uint64_t lsn, bool insist);

/* Follow the conversation behind d->seen. Waits for the stream, since a message sent before would
 * be answered without frames; without a daemon the connection is lost. */
void dialog_follow(struct dialog *d);
void dialog_leave(struct dialog *d);
/* The next news, the caller's from now on (dialog_free); NULL when there is none. */
struct dialog_news *dialog_take(struct dialog *d);
void dialog_free(struct dialog_news *n); /* NULL is fine */
/* A descriptor to poll: readable, dialog_take may have news. -1: no connection. */
int dialog_fd(const struct dialog *d);
/* When dialog_take is due without a readable descriptor, clock_mono_ms; -1: never. */
int64_t dialog_next(const struct dialog *d);

#endif
