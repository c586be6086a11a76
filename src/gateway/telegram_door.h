/* Inside of the Telegram door: telegram.c (life, state on disk, polling), telegram_hand.c (messages
 * and presses of people), telegram_show.c (messages to people, and sending), telegram_text.c (their
 * words). Loop thread only. */
#ifndef GATEWAY_TELEGRAM_DOOR_H
#define GATEWAY_TELEGRAM_DOOR_H

#include <stdbool.h>
#include <stdint.h>

#include "ava/verbs.h"
#include "codec/json.h"
#include "gateway/telegram_api.h"
#include "gateway/telegram_state.h"
#include "os/loop.h"

struct core;

#define TG_API         "/api/v1"
#define TG_TEXT_BYTES  ((size_t)8 << 20)
#define TG_CODE_DIGITS 8
#define TG_CODE_MS     600000
#define TG_DISK_MS     5000             /* until the disk is tried again */
#define TG_PARTS_MAX   32               /* parts of a text: 128 KB */
#define TG_BUTTONS_MS  (7 * 86400000LL) /* for cards without a time of their own */

struct tg_asking { /* a verb under way; may outlive the door */
	struct verb_reply reply;
	struct list node;
	struct telegram *t; /* NULL: the door is closed */
	void (*then)(struct telegram *t, const struct tg_asking *a);
	char user[40]; /* the person who asks */
	bool reads;    /* the verb begins nothing */
	/* The caller's own, for `then`: */
	int64_t chat;
	uint64_t lsn;                                        /* lsn of the notice; 0: none */
	char nonce[TG_NONCE_LEN + 1];                        /* nonce of the card; "": none */
	void (*text)(struct buf *out, const json_t *answer); /* writes the words for the answer */
	/* How it went; borrowed until `then` returns. */
	int status;
	const json_t *answer;
	const char *why; /* the error of a status from 300 on */
};

struct tg_saving { /* a commit under way; may outlive the door */
	struct telegram *t;
	bool busy;    /* the commit is under way */
	uint64_t lsn; /* lsn of the notice that the commit settles; 0: none */
};

struct tg_hand {   /* the update being carried out */
	bool busy; /* a verb is carrying the update out */
	int64_t update, chat, message;
	int64_t parts[TG_PARTS_MAX]; /* updates that continue the text */
	unsigned nparts;
	char *text;         /* the person's words; owned */
	char callback[128]; /* id of a button's press; "": no press */
	unsigned tries;     /* how often the update could not be kept on disk */
	bool anew;          /* a conversation was begun for the update */
	int64_t due_ms;     /* the update is not tried again before */
};

/* Clients cut a text of more than 4,096 units into messages, at a paragraph if there is one in its
 * second half. So a longer text than half of that may go on in the next message. */
struct tg_split {
	int64_t update;   /* first part of the text whose end is waited for */
	unsigned nparts;  /* parts there at the last look */
	int64_t until_ms; /* monotonic; 0: no wait */
};

enum tg_door {
	DOOR_STARTING, /* asks for the bot's name */
	DOOR_SERVING,
	DOOR_DEAF,   /* another program reads the bot's messages; sending goes on */
	DOOR_CLOSED, /* the door has no valid token, or cannot read its state */
	DOOR_NSTATES
};

struct telegram {
	struct core *core;
	struct tg_api *api;
	void (*log)(const char *line, void *user);
	void *log_user;
	enum tg_door state;
	char problem[320], name[64]; /* "": none; name of the bot, "" until it is known */
	struct tg_state kept;
	struct list askings;
	struct tg_saving *saving;
	struct verb_reply *unpairing; /* answered when the unpairing is on disk; NULL: none */
	bool dirty;
	int64_t save_due_ms;
	struct tg_call poll;
	int64_t asked; /* offset in the last poll */
	int64_t poll_began_ms;
	json_t *updates; /* updates in the last answer; NULL: none */
	size_t at;
	struct tg_hand hand;
	struct tg_split split;
	struct os_task pump;
	struct os_timer *timer;
	char code[TG_CODE_DIGITS + 1]; /* pairs a person; "": no pairing is open */
	char code_cwd[4096];
	int64_t code_until_ms; /* monotonic */
	unsigned tries;
};

/* ---- telegram.c */
void tg_wake(void *door); /* the door looks again for work */
int64_t tg_now(const struct telegram *t);
static inline bool tg_kept(const struct telegram *t) /* no change waits for the disk */
{
	return !t->dirty && !t->saving->busy;
}
void tg_log(struct telegram *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void tg_close(struct telegram *t, enum tg_door state, const char *why);
/* A verb, as the person of like->chat. `args` is *taken*, NULL: none. */
void tg_ask(struct telegram *t, const struct tg_asking *like, const char *method, json_t *args,
	    const char *path_fmt, ...) __attribute__((format(printf, 5, 6)));

/* ---- telegram_hand.c */
void tg_take_updates(struct telegram *t); /* carries out those that can be now */
/* Opens a code for pairing. */
int tg_pair(struct telegram *t, const char *cwd, struct ava_error *err);

/* ---- telegram_show.c */
/* Make and send the next calls of each chat: *next_ms comes down to when more may be due. */
void tg_show(struct telegram *t, int64_t *next_ms);
void tg_told_over(struct tg_chat *l);  /* the notice is settled, or will be told again */
void tg_line_clear(struct tg_chat *l); /* drop the chat's waiting calls and its notice */
/* `lsn` is the notice whose text it is; 0: an answer. `card` has the buttons of its last message,
 * also behind a document. False: parts found no room. */
bool tg_put_text(struct telegram *t, int64_t chat, const struct buf *text, uint64_t lsn,
		 const struct tg_card *card);
/* `card`: as for tg_put_text. */
void tg_say(struct telegram *t, int64_t chat, const struct tg_card *card, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void tg_answer_press(struct telegram *t, const char *text); /* the press in `hand` */

/* ---- telegram_text.c: what answers of verbs say, as plain text, so that nothing in it is markup,
 * with what could turn a line around made visible. Pure; all append to `out`, whose bound is the
 * caller's. */
/* GET /runs/{id}: the message of a run, from its spawn to its end. */
void tg_text_run(struct buf *out, const json_t *run);
/* GET /runs/{id}/result; its first line says how it ended. */
void tg_text_result(struct buf *out, const json_t *result);
/* Answers to /runs, /logs, /cost and /status. */
void tg_text_runs(struct buf *out, const json_t *list);
void tg_text_logs(struct buf *out, const json_t *events);
void tg_text_cost(struct buf *out, const json_t *health);
void tg_text_health(struct buf *out, const json_t *health);
extern const char tg_text_help[];

#endif
