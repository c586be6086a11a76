/* A conversation with Ava at a terminal, or over a pipe: what both share. */
#ifndef CLI_CHAT_H
#define CLI_CHAT_H

#include <ava.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "cli/dialog.h"
#include "cli/face.h"
#include "cli/markdown.h"

struct ava_error;

#define CHAT_ASKS_MAX 256
#define CHAT_ASK      48

struct chat {
	struct dialog d;
	struct dialog_news *next; /* taken, not shown yet; owned */
	struct speech speech;
	bool live;       /* a text that is not done is kept in sight (line.h) */
	size_t tail_len; /* bytes of that text as last shown */
	int64_t tail_ms; /* the next redraw is not before */
	struct chat_runs runs;
	uint64_t noticed; /* lsn of the newest notice shown */
	/* The Ask shown last, with nothing behind it but what is being done, since when; the one
	 * that stood there before that; and the one that the line may answer. "": none. */
	char shown[CHAT_ASK], stood[CHAT_ASK], before[CHAT_ASK];
	int64_t shown_ms;
	int64_t asks_ms; /* a quote came up: shown behind Ava's turn, or then; 0: none */
	char asks[CHAT_ASKS_MAX][CHAT_ASK]; /* shown so far; a ring */
	char held[CHAT_ASK]; /* shown while Ava went on, whose words may stand behind it; "": none
			      */
	size_t nasks;
	/* Ava is at work and nothing new is shown: since when, and when a line says so next; what
	 * Ava does, as last asked: "Ava is thinking (12 s)". */
	int64_t quiet_ms, tell_ms;
	char doing[320];
	int64_t stopped_ms; /* when a line says that Ava's answer is stopped; 0: not due */
	unsigned turns;     /* turns of Ava's that ended since our last message */
	unsigned errors;    /* Ava's turns that failed */
};

/* A new conversation in this folder, or `session`: an id, or "latest" of this
 * folder. Starts the daemon. */
int chat_open(struct chat *c, const char *session, const char *model, struct ava_error *err);
void chat_close(struct chat *c);

/* Say something. It is on disk when this returns 0. */
int chat_say(struct chat *c, const char *text, struct ava_error *err);
/* A line begins now: it may answer what was shown last by now; `typed`: unless that came up within
 * the last second, and was not read. */
void chat_begin_line(struct chat *c, bool typed);
/* ---- what happens, as its person sees it, on stdout */

/* Whether there is something to show, asked when dialog_fd can be read; takes in news without
 * output. */
bool chat_wants(struct chat *c);
/* Show all there is, in whole lines. */
void chat_show(struct chat *c);
/* Ava's unshown text under way, or her activity; NULL: nothing. */
const char *chat_tail(const struct chat *c, size_t *len);
/* Ask the daemon for Ava's activity; kept in `doing` while she is at work. */
int chat_look(struct chat *c, struct ava_error *err);
/* When chat_show is due without an event, clock_mono_ms; -1: never. */
int64_t chat_next(const struct chat *c);
/* The last words of an old conversation, its runs at work and what waits for an
 * answer. */
int chat_show_past(struct chat *c, struct ava_error *err);
/* A line of our own, dim. */
void chat_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* ---- what its person types (cmd_chat.c) */

/* Ctrl-C: stops Ava's turn, not the subagents; prints a hint when Ava is idle. */
void chat_interrupt(struct chat *c);
/* Words that begin with `word`: commands where it begins the line, and ids of
 * runs and proposals. *Borrowed until the conversation goes on.* */
size_t chat_complete(struct chat *c, const char *word, bool first, const char **out, size_t max);

#endif
