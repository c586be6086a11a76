/* A door's durable state, <name>.json in the data root: the people paired, the updates carried out,
 * and the messages that can be answered. doc/TELEGRAM.md has its format. Plain
 * data; code that changes it writes it, in the commit of the effect where there is one. Ids are the
 * service's, as text; where they are numbers they stand as such in the file. */
#ifndef GATEWAY_DOOR_STATE_H
#define GATEWAY_DOOR_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "event/item.h"
#include "gateway/door_call.h"

#define DOOR_CARDS_MAX 64
#define DOOR_SEEN_MAX  64 /* above what an answer has: none of its updates is forgotten amid it */
#define DOOR_NAME_MAX  128
#define DOOR_NONCE_LEN 24 /* 12 random bytes */
#define DOOR_BUTTONS   9  /* of a message, each with a digit */
#define DOOR_LABELS    400

/* A person and the place where we speak with them. */
struct door_chat {
	char id[DOOR_ID_MAX];     /* the person's; "": this place is free */
	char room[DOOR_ID_MAX];   /* where they wrote last; numbers: the same as `id` */
	char name[DOOR_NAME_MAX]; /* at the time of pairing; for display only */
	char cwd[4096];           /* folder of its conversations; "": none */
	char session[64];         /* the conversation, begun or to begin with the next message */
	int64_t said;             /* order of our newest message that is no open card; 0: none */
	int64_t count;            /* messages so far, where they have no number of their own */
	char own[DOOR_ID_MAX]; /* that message; where they are counted, as the service told of it */
	/* Not kept: calls to the chat. */
	struct list outs; /* calls that wait; the first is in `send` while that is busy */
	unsigned nouts;
	struct door_call send;
	int64_t typing_ms; /* monotonic: when "typing" is sent next; 0: Ava is idle */
	bool troubled;     /* told why Ava cannot answer */
	bool looking;      /* a card's verb is under way */
	bool blocked;      /* the person does not want to hear from us */
	uint64_t telling;  /* the notice that is being told; 0: none */
	unsigned nparts;   /* its calls so far */
	json_t *notice;    /* that notice; owned */
	bool told;         /* the notice was told: to be settled */
	char reason[200];  /* why the notice is given up; "": it is not */
};

/* A message of ours that can be answered: a run's line, to which a reply is told to the run, or an
 * Ask, which a reply answers. A button holds its nonce and its place. */
struct door_card {
	char chat[DOOR_ID_MAX];    /* its person; "": this place is free */
	char message[DOOR_ID_MAX]; /* "": on its way */
	int64_t order;             /* of the message among those of the chat; 0: not known */
	char nonce[DOOR_NONCE_LEN + 1];
	char id[ITEM_ASK];        /* of the Ask or the run */
	char hash[65];            /* of the Ask that was shown */
	char labels[DOOR_LABELS]; /* its buttons', a line each; to press one is to say it */
	int64_t until_ms;         /* wall: the buttons' end */
	/* Not kept: */
	uint64_t shown;          /* hash of the text shown; 0: not known */
	int64_t due_ms, free_ms; /* monotonic: next look, next edit are not before */
};

struct door_state {
	const char *name;                      /* of the door, and of its file; *borrowed* */
	bool numbers;                          /* ids are numbers, and those of updates rise */
	char account[DOOR_ID_MAX];             /* whose updates these are; "": any */
	char since[DOOR_ID_MAX];               /* where to go on, if ids are no numbers; "": now */
	int64_t newest_ms;                     /* wall: when an update came last */
	char seen[DOOR_SEEN_MAX][DOOR_ID_MAX]; /* the last is the newest */
	unsigned nseen;
	struct door_chat chats[DOOR_CHATS_MAX];
	struct door_card cards[DOOR_CARDS_MAX];
};

/* Without a file, or with another account's, the state is empty, so that nobody is let in.
 * AVA_EINVAL and others: the file cannot be read; nobody is let in, either. */
int door_state_load(struct door_state *s, int root_fd, const char *name, bool numbers,
		    const char *account, struct ava_error *err);
void door_state_write(const struct door_state *s, struct buf *out);
void door_state_file(const struct door_state *s, char out[64]); /* its name in the data root */

/* A number that a service gives an update: it has no more than 52 bits. */
bool door_is_number(const char *id);
bool door_seen(const struct door_state *s, const char *update);
void door_see(struct door_state *s, const char *update, int64_t wall_ms);
/* The number to ask from; 0: from whatever there is. Numbers of updates begin anew, at random, when
 * none came for a week. */
int64_t door_offset(const struct door_state *s, int64_t wall_ms);

struct door_chat *door_chat(struct door_state *s, const char *id); /* NULL: a stranger, or "" */
struct door_chat *door_free_chat(struct door_state *s);            /* NULL: too many chats */
void door_new_session(struct door_chat *c);
void door_nonce(char out[DOOR_NONCE_LEN + 1]);
/* Cards stay where they are until one is made or dropped. A new card has a new nonce; without a
 * free place the oldest goes. */
struct door_card *door_card_new(struct door_state *s, const char *chat, const char *id);
void door_card_drop(struct door_state *s, struct door_card *c); /* moves other cards */
struct door_card *door_card_of(struct door_state *s, const char *chat, const char *id);
struct door_card *door_card_at(struct door_state *s, const char *chat, const char *message);
struct door_card *door_card_with(struct door_state *s, const char *nonce, size_t len);
/* The label of a button, not terminated; NULL: there are not so many. */
const char *door_card_button(const struct door_card *c, size_t index, size_t *len);

#endif
