/* Inside of a door: door.c (life, state on disk, polling), door_cluster.c (which machine listens),
 * door_hand.c (messages and presses of people), door_show.c (messages to people, and sending),
 * door_text.c (their words). Loop thread only. */
#ifndef GATEWAY_DOOR_INSIDE_H
#define GATEWAY_DOOR_INSIDE_H

#include <stdbool.h>
#include <stdint.h>

#include "ava/ops.h"
#include "ava/state.h"
#include "ava/verbs.h"
#include "cluster/cluster.h"
#include "codec/json.h"
#include "gateway/door_call.h"
#include "gateway/door_state.h"
#include "gateway/door_wire.h"
#include "os/loop.h"

struct core;

#define DOOR_API          "/api/v1"
#define DOOR_TEXT_BYTES   ((size_t)8 << 20)
#define DOOR_CODE_DIGITS  8
#define DOOR_CODE_MS      600000
#define DOOR_DISK_MS      5000             /* until the disk is tried again */
#define DOOR_PARTS_MAX    32               /* parts of a text: 128 KB */
#define DOOR_BUTTONS_MS   (7 * 86400000LL) /* for cards without a time of their own */
#define DOOR_LABEL_CHANGE "Change"
#define DOOR_USER_MAX     48 /* "telegram:77": as long as an Item's user */

struct door_asking { /* a verb under way; may outlive the door */
	struct verb_reply reply;
	struct list node;
	struct door *d; /* NULL: the door is closed */
	void (*then)(struct door *d, const struct door_asking *a);
	char user[DOOR_USER_MAX]; /* the person who asks */
	bool reads;               /* the verb begins nothing */
	/* The caller's own, for `then`: */
	char chat[DOOR_ID_MAX];
	uint64_t lsn;                                        /* the notice; 0: none */
	char nonce[DOOR_NONCE_LEN + 1];                      /* the card; "": none */
	void (*text)(struct buf *out, const json_t *answer); /* writes the words for the answer */
	/* How it went; borrowed until `then` returns. */
	int status;
	const json_t *answer;
	const char *why; /* the error of a status from 300 on */
};

struct door_saving { /* a commit under way; may outlive the door */
	struct door *d;
	bool busy;    /* the commit is under way */
	uint64_t lsn; /* the notice that it settles; 0: none */
};

struct door_hand { /* the update being carried out */
	bool busy; /* a verb has it */
	char update[DOOR_ID_MAX], chat[DOOR_ID_MAX];
	int64_t order;                           /* of its message among those of the chat */
	char parts[DOOR_PARTS_MAX][DOOR_ID_MAX]; /* updates that go on with its text */
	unsigned nparts;
	unsigned nsent;     /* messages that answer it */
	char *text;         /* the person's words; owned */
	bool pressed;       /* a button was pressed */
	char callback[128]; /* id of a button's press; "": no press */
	unsigned tries;     /* failed tries to keep it */
	bool anew;          /* a conversation was begun for it */
	int64_t due_ms;     /* not tried before */
};

/* Clients may cut a long text into messages, at a paragraph if there is one in its second half. So
 * a longer text than half of that may go on in the next message. */
struct door_split {
	char update[DOOR_ID_MAX]; /* first part of the text whose end is waited for */
	unsigned nparts;          /* parts there at the last look */
	int64_t until_ms;         /* monotonic; 0: no wait */
};

enum door_mode {
	DOOR_STARTING, /* asks who we are */
	DOOR_SERVING,
	DOOR_DEAF,   /* another program reads what is said to us; sending goes on */
	DOOR_CLOSED, /* without a valid secret, or without its state */
	DOOR_NMODES
};

struct door {
	struct core *core;
	const struct door_wire *wire;
	unsigned index; /* in the table of doors */
	struct door_line *line;
	void (*log)(const char *line, void *user);
	void *log_user;
	enum door_mode mode;
	char problem[320], name[64]; /* "": none; our own, "" before it is known */
	struct door_state kept;
	struct door_chat lobby; /* calls that are for no chat */
	char left[DOOR_ID_MAX]; /* the room left last; "": none since an invite */
	struct list askings;
	struct door_saving *saving;
	struct verb_reply *unpairing; /* is answered when that is on disk; NULL: none */
	bool dirty;
	int64_t save_due_ms;
	struct door_call poll;
	char asked[DOOR_ID_MAX], since[DOOR_ID_MAX]; /* by the last question; behind its answer */
	int64_t poll_began_ms;
	json_t *updates; /* the last answer's; NULL: none */
	size_t at;
	struct door_hand hand;
	struct door_split split;
	struct os_task pump;
	struct os_timer *timer;
	struct cluster_door here;        /* one machine of a cluster listens */
	char code[DOOR_CODE_DIGITS + 1]; /* "": no pairing is open */
	char code_cwd[4096];
	int64_t code_until_ms; /* monotonic */
	unsigned tries;
};

/* ---- door.c */
void door_wake(void *door); /* the door looks again for work */
int64_t door_now(const struct door *d);
static inline bool door_kept(const struct door *d) /* no change waits for the disk */
{
	return !d->dirty && !d->saving->busy;
}
void door_log(struct door *d, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void door_close(struct door *d, enum door_mode mode, const char *why);
void door_unpair(struct door *d, struct door_chat *c); /* and the chat's place is free */
/* "telegram:77", by which a person or an update is known elsewhere; a long id is hashed. */
void door_user(const struct door *d, const char *id, char out[DOOR_USER_MAX]);
/* A verb, as the person of like->chat. `args` is *taken*, NULL: none. */
void door_ask(struct door *d, const struct door_asking *like, const char *method, json_t *args,
	      const char *path_fmt, ...) __attribute__((format(printf, 5, 6)));

/* May this machine listen? */
static inline bool door_listens(const struct door *d)
{
	return cluster_door_open(core_service(d->core)->cluster, &d->here);
}

/* ---- door_cluster.c */
extern const struct cluster_door door_here; /* how each door begins */

/* ---- door_hand.c */
void door_take_updates(struct door *d);                                /* as far as it goes now */
int door_pair(struct door *d, const char *cwd, struct ava_error *err); /* a code is open */

/* ---- door_show.c */
/* Make and send the next calls of each chat: *next_ms comes down to when more may be due. */
void door_show(struct door *d, int64_t *next_ms);
void door_told_over(struct door_chat *l);  /* the notice is settled, or will be told again */
void door_line_clear(struct door_chat *l); /* drop the chat's waiting calls and its notice */
/* `lsn` is the notice whose text it is; 0: an answer. `card` has the buttons of its last message,
 * also behind a document. False: parts found no room. */
bool door_put_text(struct door *d, const char *chat, const struct buf *text, uint64_t lsn,
		   const struct door_card *card);
/* `card`: as above. */
void door_say(struct door *d, const char *chat, const struct door_card *card, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
void door_answer_press(struct door *d, const char *text); /* the one in hand */
/* A call about a room where nobody's chat is; `text` NULL: none. */
void door_put_room(struct door *d, enum door_op op, const char *room, const char *text);

/* ---- door_text.c: what answers of verbs say, as plain text, so that nothing in it is markup,
 * with what could turn a line around made visible. Pure; all append to `out`, whose bound is the
 * caller's. */
/* A card as its verb has it now, and its buttons. */
void door_text_card(struct buf *out, struct door_card *c, const json_t *answer);
/* GET /runs/{id}: the message of a run, from its spawn to its end. */
void door_text_run(struct buf *out, const json_t *run);
/* GET /runs/{id}/result; its first line says how it ended. */
void door_text_result(struct buf *out, const json_t *result);
/* Answers to /runs, /logs, /cost and /status. */
void door_text_runs(struct buf *out, const json_t *list);
void door_text_order(struct buf *out, const json_t *order);
void door_text_orders(struct buf *out, const json_t *list);
void door_text_logs(struct buf *out, const json_t *events);
void door_text_cost(struct buf *out, const json_t *health);
void door_text_health(struct buf *out, const json_t *health);
extern const char door_text_help[];

#endif
