/* What a door (door.h) has to know of a messenger's service: what a call of it looks like, what its
 * answers mean, what people said. A wire is pure: bytes in, bytes out; the door has the sockets,
 * the state, the order of things and the words. doc/HACKING.md, "Add a channel". */
#ifndef GATEWAY_DOOR_WIRE_H
#define GATEWAY_DOOR_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/doors.h"
#include "gateway/door_call.h"
#include "gateway/door_state.h"

struct settings;

enum door_op {
	DOOR_WHO,    /* who we are */
	DOOR_POLL,   /* what was said */
	DOOR_SEND,   /* a message */
	DOOR_EDIT,   /* other words in a message */
	DOOR_BARE,   /* a message's buttons go */
	DOOR_FILE,   /* a text as a document; with a `message`: what its first call gave */
	DOOR_TOAST,  /* answers a press */
	DOOR_TYPING, /* Ava is at it */
	DOOR_KEY,    /* put the button `index` below a message */
	DOOR_JOIN,   /* go into a room */
	DOOR_LEAVE,
};

/* A call to make; *borrowed* during `encode`. */
struct door_task {
	enum door_op op;
	const char *room, *message; /* a toast: id of the press */
	const char *text;
	size_t len;
	const struct door_card *card; /* the message has its buttons; NULL: none */
	bool literal; /* marks of Markdown are shown: what is confirmed is what is seen */
	unsigned index;
	/* The call's own name: one that is made again, after a crash too, has the same. */
	const char *key;
	uint64_t lsn; /* the notice that it is of; 0: none */
	const struct door_state *kept;
	int wait_s; /* a poll is held so long */
};

enum door_said_kind {
	DOOR_NOTHING, /* to be passed over */
	DOOR_TEXT,
	DOOR_PRESS,
	DOOR_OWN,    /* a message of ours, where the service tells of them in order */
	DOOR_INVITE, /* into a room */
	DOOR_AWAY,   /* a room where we do not speak, for the reason in `text` */
	DOOR_GAP,    /* more was said in the room than the service tells */
};

/* An update. Texts are *borrowed* from its JSON. */
struct door_said {
	enum door_said_kind kind;
	char id[DOOR_ID_MAX];     /* the update's */
	char person[DOOR_ID_MAX]; /* who says it; "": nobody that counts */
	char room[DOOR_ID_MAX], message[DOOR_ID_MAX], reply_to[DOOR_ID_MAX];
	const char *name;    /* the person's, for display; "": none */
	const char *text;    /* NULL: none */
	const char *caption; /* of a picture or file; NULL: none */
	int64_t date_s;
	/* A press: of button `index` of the card `nonce`, or of `message`. */
	char callback[128], nonce[DOOR_NONCE_LEN + 1];
	unsigned index;
};

struct door_wire {
	const char *name;  /* also of its channel and file, and before the ids of its people */
	const char *title; /* in sentences */
	/* UTF-16 units of a message and of a document's first words; messages of a text, of which
	 * more are a document; units at which clients cut what people say, 0: they do not. */
	size_t units, caption_units, parts_max, split_units;
	bool numbers; /* ids are numbers (door_state.h) */
	bool once;    /* a send that has the key of an earlier one is that one */
	bool uploads; /* a document takes two calls */
	bool keys;    /* the door puts buttons below a message itself; without them, toasts */
	/* ms between two messages to a chat, and two edits of one */
	int64_t (*pace_ms)(const struct settings *s);
	int64_t (*edit_ms)(const struct settings *s);
	/* `url` is the setting, "": none. AVA_ENOENT with err->code 0: no secret is set. */
	int (*access)(struct door_access *out, const char *url, struct ava_error *err);
	/* False: the service has nothing of the kind. A failed body is found later. */
	bool (*encode)(const struct door_task *task, struct door_request *r);
	door_judge_fn judge;
	/* Our own account: its id and the name to show. */
	void (*who)(const json_t *result, char id[DOOR_ID_MAX], char name[64]);
	/* Updates of a poll's answer, a new reference, NULL: no memory; `since` is where to go on
	 * behind them, if ids are no numbers. */
	json_t *(*updates)(const json_t *result, char since[DOOR_ID_MAX]);
	void (*read)(const json_t *update, const struct door_state *kept, struct door_said *out);
	/* The message that a call made, "": none. */
	void (*made)(const json_t *result, char message[DOOR_ID_MAX]);
};

/* One for each row of the table: telegram.c, matrix/matrix.c. */
#define X(name, ...) extern const struct door_wire door_wire_##name;
DOORS(X)
#undef X

#endif
