/* A conversation with Ava at a terminal, or over a pipe: what both share. */
#ifndef CLI_CHAT_H
#define CLI_CHAT_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "cli/chat_feed.h"
#include "cli/chat_runs.h"
#include "cli/chat_speech.h"

struct ava_error;
struct client;

#define CHAT_OWN_MAX       64 /* messages on their way */
#define CHAT_HELD_MAX      16 /* quotes that wait for the end of Ava's turn */
#define CHAT_PROPOSALS_MAX 64

struct chat {
	struct client *c; /* NULL after a lost connection, until the next request */
	struct feed *feed;
	char session[64];
	char model[264];
	char *cwd;              /* owned */
	bool said;              /* something: the conversation is on disk */
	bool busy;              /* Ava is at work, as far as is known */
	bool lost;              /* the feed has no connection */
	bool gone;              /* nothing more will come */
	struct feed_item *next; /* taken from the feed, not shown yet; owned */
	struct speech speech;
	bool live;       /* a text that is not done is kept in sight (line.h) */
	size_t tail_len; /* of it, as last shown */
	int64_t tail_ms; /* not before this time again */
	struct chat_runs runs;
	uint64_t seen;                  /* lsn of the newest event */
	uint64_t noticed, acknowledged; /* lsn of the newest notice shown, and said to be */
	char *own[CHAT_OWN_MAX];        /* what was sent and has not come back as an event; owned */
	size_t nown;
	char held[CHAT_HELD_MAX][32]; /* proposals to be shown at the end of the turn */
	size_t nheld;
	int64_t held_ms;                        /* or at this time */
	char proposals[CHAT_PROPOSALS_MAX][32]; /* named so far, for completion; a ring */
	size_t nproposals;
	unsigned turns;  /* ends of turns seen behind the last message of ours */
	unsigned errors; /* of Ava's turns */
};

/* A new conversation in this folder, or `session`: an id, or "latest" of this
 * folder. Starts the daemon. With an old one its last words are shown. */
int chat_open(struct chat *c, const char *session, const char *model, struct ava_error *err);
void chat_close(struct chat *c);

/* Say something. It is on disk when this returns 0. */
int chat_say(struct chat *c, const char *text, struct ava_error *err);
/* Stop Ava's turn. */
int chat_stop(struct chat *c, struct ava_error *err);
/* One request about this conversation or its runs, made again over a new
 * connection when that one was lost. `body` NULL: GET. */
int chat_call(struct chat *c, const char *path, const char *body, json_t **out,
	      struct ava_error *err);
/* The conversation as the daemon has it. */
int chat_session(struct chat *c, json_t **out, struct ava_error *err);

#endif
