/* A conversation in an editor that speaks the Agent Client Protocol (ACP, version 1): what happens
 * in it becomes messages for the editor, one a line on stdout, and what the editor's person says
 * goes to the daemon. Everything is the daemon's: here stands only what the editor was told of it.
 * One thread. */
#ifndef CLI_ACP_H
#define CLI_ACP_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "cli/feed.h"
#include "codec/jsonrpc.h"

struct ava_error;
struct client;

#define ACP_TEXT_MAX     ((size_t)4 << 20) /* bytes of a line of the editor's, and of a text */
#define ACP_SESSIONS_MAX 32
#define ACP_ASKS_MAX     16 /* quotes and questions of a conversation that wait */
#define ACP_RUNS_MAX     64 /* of a plan */
#define ACP_NOT_FOUND    (-32002)

struct acp {                  /* the editor */
	struct client *c;     /* requests to the daemon; NULL after a lost connection */
	bool begun;           /* it has initialised */
	bool forms;           /* it can ask by a form */
	bool gone;            /* it reads nothing any more */
	int64_t next_id;      /* of our requests to it */
	json_t *models;       /* of GET /models; owned; NULL: not asked yet */
	struct list sessions; /* struct acp_session */
	size_t nsessions;
};

struct acp_ask {       /* a quote, or a question of a run */
	char id[32];   /* "P-…", "S-…" */
	char call[40]; /* of a question; "": a quote */
};

/* From a prompt to its answer. */
struct acp_turn {
	json_t *prompt; /* its id, owned; NULL: no turn is under way */
	struct feed feed;
	struct buf streamed;     /* of Ava's text under way */
	unsigned speaks, thinks; /* ids of her messages under way */
	bool cut;                /* frames of it are missing: its event has all */
	bool cancelled;          /* it is to end as such */
	char *failed;            /* why Ava could not answer; owned */
	bool busy, idle; /* Ava, by the feed: at work; she has ended since the prompt came */
	unsigned quiet;  /* looks in a row by which nothing goes on */
	int64_t look_ms; /* when the daemon is asked whether it is over */
	int64_t asked;   /* id of our request for the first of `asks`; 0: none */
};

struct acp_session {
	struct list node;
	struct acp *a;
	char id[64], model[264], title[256];
	char *cwd;           /* owned */
	bool said;           /* something: the conversation is on disk */
	bool wait;           /* a turn lasts until its subagents have ended */
	const char *remark;  /* to be said with the next turn; static; NULL: nothing */
	uint64_t seen;       /* the newest event that was taken: a turn begins behind it */
	char shown[32];      /* the newest quote that was shown */
	struct acp_ask put;  /* what was put to the person last: it has a tool call */
	json_t *own;         /* texts of ours that have not come back as events */
	const char *talking; /* the last update was this kind of text, of `message`; static */
	unsigned message, messages; /* their ids are counted */
	int64_t tokens;             /* of Ava's last call */
	struct acp_ask asks[ACP_ASKS_MAX];
	size_t nasks;
	json_t *plan; /* its entries: subagents */
	struct acp_turn turn;
};

/* ---- messages to the editor (acp_show.c). `members` is *taken*, and may be NULL: memory ran out,
 * and nothing is written. */

void acp_result(struct acp *a, const json_t *id, json_t *members);
void acp_refuse(struct acp *a, const json_t *id, int code, const char *message);
void acp_update(struct acp_session *s, const char *kind, json_t *members);
/* A whole text, as Ava's. */
void acp_say(struct acp_session *s, const char *text);

/* One request to the daemon about this conversation or its runs; `body` NULL: GET. */
int acp_call(struct acp_session *s, const char *body, json_t **out, struct ava_error *err,
	     const char *path_fmt, ...) __attribute__((format(printf, 5, 6)));

/* ---- what happens in a turn, as the editor sees it (acp_show.c) */

/* All that has come by the feed. */
void acp_show(struct acp_session *s);
/* An entry of the conversation's file. */
void acp_show_entry(struct acp_session *s, const json_t *entry);

/* A quote that waits, or a question of a run. */
void acp_ask_add(struct acp_session *s, const char *id, const char *call_id);
/* The next one is put to the person. false: there is none. */
bool acp_ask_next(struct acp_session *s);
void acp_ask_drop(struct acp_session *s, size_t i);
/* An answer to turn.asked. */
void acp_answer(struct acp_session *s, const struct rpc *m);

/* What comes back as an event is not shown to whoever has said it. */
void acp_keep_own(struct acp_session *s, const char *text);

/* ---- its life, and its turns (acp.c) */

/* A new one in `cwd`, under an id of its own; `model` NULL: the daemon's default. NULL: err. */
struct acp_session *acp_new(struct acp *a, const char *cwd, const char *model,
			    struct ava_error *err);
/* One that stands in the daemon; `again` shows what was said before, else what this person has
 * not seen comes with the next turn. NULL: err. */
struct acp_session *acp_load(struct acp *a, const char *id, bool again, struct ava_error *err);
struct acp_session *acp_find(const struct acp *a, const char *id); /* NULL: none */
/* Ends its turn, too. */
void acp_free(struct acp_session *s);
/* Before the first words. 0 or a code. */
int acp_choose(struct acp_session *s, const char *model, struct ava_error *err);

/* The turn that `id` (*copied*) asks for begins; it is answered when it is over. One that is
 * under way ends as cancelled. */
void acp_prompt(struct acp_session *s, const json_t *id, const char *text);
/* The turn under way, if there is one, ends as cancelled, when the daemon has said its last words;
 * subagents go on. */
void acp_stop(struct acp_session *s);
/* Takes in what has happened, and does what is due. */
void acp_step(struct acp_session *s);
int64_t acp_next(const struct acp_session *s); /* clock_mono_ms; -1: never */

#endif
