/* The Telegram door's durable state, telegram.json in the data root: the people paired, the updates
 * carried out, and the messages that can be answered. doc/TELEGRAM.md has its format. Plain data;
 * code that changes it writes it, in the commit of the effect where there is one. */
#ifndef GATEWAY_TELEGRAM_STATE_H
#define GATEWAY_TELEGRAM_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "gateway/telegram_api.h"

#define TG_STATE     "telegram.json"
#define TG_CARDS_MAX 64
#define TG_SEEN_MAX  64 /* more than an answer of Telegram has updates: none is done twice */
#define TG_NAME_MAX  128
#define TG_NONCE_LEN 24 /* 12 random bytes */

/* A person: the id of a user and of the private chat with them is one number. */
struct tg_chat {
	int64_t id;             /* 0: this place is free */
	char name[TG_NAME_MAX]; /* at the time of pairing; for display only */
	char cwd[4096];         /* folder of the person's conversations; "": none */
	char session[64];       /* the conversation, begun or to begin with the next message */
	int64_t said;           /* our newest message that is no card; 0: none */
	char ask[48];           /* the Ask that it is; "": none */
	/* Not kept: calls to the chat. */
	struct list outs; /* calls that wait; the first is in `send` while that is busy */
	unsigned nouts;
	struct tg_call send;
	int64_t typing_ms; /* monotonic: when "typing" is sent next; 0: Ava is idle */
	bool troubled;     /* the person was told why Ava cannot answer */
	bool looking;      /* a card's verb is under way */
	bool blocked;      /* the person has blocked the bot */
	uint64_t telling;  /* the notice that is being told; 0: none */
	json_t *notice;    /* that notice; owned */
	bool told;         /* the notice was told, and is still to be settled */
	char reason[200];  /* why the notice is given up; "": it is not */
};

enum tg_card_kind {
	TG_QUOTE,    /* buttons Yes, No and Change; a reply answers the quote */
	TG_CHANGE,   /* asks for changes; a reply answers the quote */
	TG_RUN,      /* how a run goes, with a button Cancel; a reply is told to the run */
	TG_QUESTION, /* a run's question; a reply answers it */
	TG_NKINDS
};

/* A message of ours that can be answered. A button holds its nonce and its letter. */
struct tg_card {
	int64_t chat;    /* 0: this place is free */
	int64_t message; /* id of the message; 0: it is being sent */
	enum tg_card_kind kind;
	char nonce[TG_NONCE_LEN + 1];
	char id[24], call[24]; /* a proposal, or a run and its call */
	char hash[65];         /* the proposal's config_hash */
	int64_t until_ms;      /* wall: the buttons work until then */
	/* Not kept: */
	uint64_t shown;          /* hash of the text shown; 0: not known */
	int64_t due_ms, free_ms; /* monotonic: no look before; no edit before */
};

extern const struct tg_kind {            /* telegram_text.c */
	const char *name;                /* name of the kind in telegram.json */
	const char *letters, *labels[3]; /* letters and labels of the buttons */
	const char *path;                /* of the verb that gives the state of its id */
	void (*text)(struct buf *out, const json_t *answer); /* writes the message for that state */
} tg_kinds[TG_NKINDS];

struct tg_state {
	int64_t bot;               /* id of the bot that the updates are of */
	int64_t newest_ms;         /* wall: when an update came last */
	int64_t seen[TG_SEEN_MAX]; /* updates that were carried out, the newest last */
	unsigned nseen;
	struct tg_chat chats[TG_CHATS_MAX];
	struct tg_card cards[TG_CARDS_MAX];
};

/* Without a file, or with another bot's, the state is empty, so that nobody is let in. AVA_EINVAL
 * and others: the file cannot be read; nobody is let in, either. */
int tg_state_load(struct tg_state *s, int root_fd, int64_t bot, struct ava_error *err);
void tg_state_write(const struct tg_state *s, struct buf *out);

/* Is `id` a number that the service gives an update? It has at most 52 bits. */
static inline bool tg_is_update(int64_t id)
{
	return id >= 0 && id < INT64_C(1) << 52;
}
bool tg_seen(const struct tg_state *s, int64_t update);
void tg_see(struct tg_state *s, int64_t update, int64_t wall_ms);
/* The offset to ask from; 0: from whatever there is. Ids of updates begin anew, at random, when
 * none came for a week. */
int64_t tg_offset(const struct tg_state *s, int64_t wall_ms);

struct tg_chat *tg_chat(struct tg_state *s, int64_t id); /* NULL: a stranger, or 0 */
struct tg_chat *tg_free_chat(struct tg_state *s);        /* NULL: too many chats */
void tg_new_session(struct tg_chat *c);
void tg_nonce(char out[TG_NONCE_LEN + 1]);
/* Cards stay where they are until one is made or dropped. A new card has a new nonce; without a
 * free place the oldest goes. */
struct tg_card *tg_card_new(struct tg_state *s, int64_t chat, enum tg_card_kind kind,
			    const char *id);
void tg_card_drop(struct tg_state *s, struct tg_card *c); /* moves other cards */
struct tg_card *tg_card_of(struct tg_state *s, int64_t chat, enum tg_card_kind kind,
			   const char *id);
struct tg_card *tg_card_at(struct tg_state *s, int64_t chat, int64_t message);
struct tg_card *tg_card_with(struct tg_state *s, const char *nonce, size_t len);

#endif
