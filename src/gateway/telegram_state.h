/* What the door of Telegram must not forget, in telegram.json of the data root: who is paired,
 * which updates are carried out, and the messages that can be answered. Its shape stands in
 * doc/TELEGRAM.md. Plain data; whoever changes it writes it, in the commit of the effect where
 * there is one. */
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
#define TG_SEEN_MAX  64 /* above what an answer has: none of its updates is forgotten amid it */
#define TG_NAME_MAX  128
#define TG_NONCE_LEN 24 /* 12 random bytes */

/* A person: the id of a user and of the private chat with them is one number. */
struct tg_chat {
	int64_t id;             /* 0: this place is free */
	char name[TG_NAME_MAX]; /* as it was when they were paired; decides nothing */
	char cwd[4096];         /* where its conversations look for files; "": nowhere */
	char session[64];       /* the conversation that goes on, or that the next word begins */
	/* Not kept: what goes to them. */
	struct list outs; /* the first of them is in `send` while that is busy */
	unsigned nouts;
	struct tg_call send;
	int64_t typing_ms; /* monotonic: when it is said next that Ava is at it; 0: she is not */
	bool troubled;     /* told what keeps her from an answer */
	bool looking;      /* at how a card of theirs stands */
	bool blocked;      /* by the person */
	uint64_t telling;  /* the notice that is being told; 0: none */
	json_t *notice;    /* it; owned */
	bool told;         /* and was: to be settled */
	char reason[200];  /* it is given up */
};

enum tg_card_kind {
	TG_QUOTE,    /* buttons Yes, No and Change; an answer to it is one to the quote */
	TG_CHANGE,   /* asks what to change; likewise */
	TG_RUN,      /* the line of a run, with Cancel; an answer to it is said to the run */
	TG_QUESTION, /* of a run; an answer is the answer */
	TG_NKINDS
};

/* A message of ours that can be answered. A button holds its nonce and its letter. */
struct tg_card {
	int64_t chat;    /* 0: this place is free */
	int64_t message; /* 0: on its way */
	enum tg_card_kind kind;
	char nonce[TG_NONCE_LEN + 1];
	char id[24], call[24]; /* a proposal, or a run and its call */
	char hash[65];         /* of what is proposed */
	int64_t until_ms;      /* wall: its buttons are good until then */
	/* Not kept: */
	uint64_t shown;          /* hash of what it says; 0: not known */
	int64_t due_ms, free_ms; /* monotonic: not looked at before, and not changed before */
};

extern const struct tg_kind {            /* telegram_text.c */
	const char *name;                /* in the file */
	const char *letters, *labels[3]; /* of its buttons */
	const char *path;                /* of the verb that says how it stands, with its id */
	void (*text)(struct buf *out, const json_t *answer); /* what its message says then */
} tg_kinds[TG_NKINDS];

struct tg_state {
	int64_t bot;               /* whose updates these are */
	int64_t newest_ms;         /* wall: when one came last */
	int64_t seen[TG_SEEN_MAX]; /* the last is the newest */
	unsigned nseen;
	struct tg_chat chats[TG_CHATS_MAX];
	struct tg_card cards[TG_CARDS_MAX];
};

/* No file, or that of another bot: an empty state, so that nobody is let in. AVA_EINVAL and
 * others: it cannot be read; then nobody is either. */
int tg_state_load(struct tg_state *s, int root_fd, int64_t bot, struct ava_error *err);
void tg_state_write(const struct tg_state *s, struct buf *out);

/* A number that the service gives one: it has no more than 52 bits. */
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
struct tg_chat *tg_free_chat(struct tg_state *s);        /* NULL: there are too many */
void tg_new_session(struct tg_chat *c);
void tg_nonce(char out[TG_NONCE_LEN + 1]);
/* Cards stay where they are until one is made or dropped. A new one has a nonce of its own; where
 * there is no place the oldest goes. */
struct tg_card *tg_card_new(struct tg_state *s, int64_t chat, enum tg_card_kind kind,
			    const char *id);
void tg_card_drop(struct tg_state *s, struct tg_card *c); /* others move */
struct tg_card *tg_card_of(struct tg_state *s, int64_t chat, enum tg_card_kind kind,
			   const char *id);
struct tg_card *tg_card_at(struct tg_state *s, int64_t chat, int64_t message);
struct tg_card *tg_card_with(struct tg_state *s, const char *nonce, size_t len);

#endif
