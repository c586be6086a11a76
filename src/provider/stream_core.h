/* What the dialects read replies with: a reply as it arrives is a list of parts, which
 * they fill from their events; the rest is one for all. Damage that is met in the wild
 * is mended on the way. */
#ifndef PROVIDER_STREAM_CORE_H
#define PROVIDER_STREAM_CORE_H

#include <assert.h>
#include <jansson.h>
#include <stdint.h>

#include "base/buf.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "provider/stream.h"

struct model;
struct sse;

#define STREAM_LINE_MAX (8u << 20) /* bytes of one event */
#define STREAM_BODY_MAX (8u << 20) /* of a body that is no stream; the rest is not kept */
#define STREAM_TAG_MAX  32u
#define CALL_ARGS_MAX   (256u << 10) /* bytes, see struct turn_call */
#define CALL_NAME_MAX   128u         /* for us */
#define WIRE_NAME_MAX   64u          /* for the services: ^[a-zA-Z0-9_-]{1,64}$ */

/* ---- a reply */

/* What a piece is. The first two are of delta_read only. */
enum delta_kind {
	DELTA_NONE,
	DELTA_EMPTY,     /* a piece that says nothing */
	DELTA_TEXT,      /* text_delta; content */
	DELTA_THINKING,  /* thinking_delta; reasoning_content */
	DELTA_REASONING, /* reasoning */
	DELTA_ARGS,      /* input_json_delta; function.arguments */
};

/* PART_THOUGHT: thinking that came in the text, or in a member that is not taken back. It is
 * shown and kept, and never sent back. */
enum part_kind { PART_TEXT, PART_THINKING, PART_CALL, PART_OTHER, PART_THOUGHT };

/* The state of the first text (stream_thought.c). */
enum lead {
	LEAD_OVER,  /* it is what it says */
	LEAD_BEGIN, /* blanks came, or what may become a mark of thinking */
	LEAD_LED,   /* the same behind thinking */
	LEAD_QUIET, /* it may be a call written as text: not shown as it comes */
};
struct thought;
/* What a mark is to the bytes that came. */
enum fit { FIT_NOT, FIT_MAYBE, FIT_WHOLE };

struct part {
	enum part_kind kind;
	enum delta_kind of; /* of PART_OTHER, responses: what came; DELTA_NONE: nothing */
	int64_t index;      /* the service's; -1: it gave none */
	char *id, *name;    /* of a call; NULL: none came */
	struct buf text;    /* pieces of text, thinking or arguments */
	const char *key;    /* chat completions: the member that `text` came in; NULL: none */
	json_t *object;     /* reasoning_details as it began, all of a call; responses: the item */
	uint32_t told;      /* bytes of a text that were shown */
	uint32_t look_at;   /* length at which stream_repeat is due */
	uint32_t held_at;   /* of a text that is held back: the same for whether it need be */
	const struct thought *in; /* of the first text: the thinking that it is in */
	uint8_t lead;             /* of a text: enum lead */
	bool named_now;           /* chat completions: its name is of this chunk */
	bool ended;               /* Messages: its end came */
	struct buf start;         /* Messages: as it began, clean JSON */
	struct buf sign;          /* Messages: replaced by each signature_delta */
	struct buf cited;         /* Messages: JSON values joined by commas */
};
static_assert(TURN_MAX_BYTES <= UINT32_MAX, "no text of a reply is longer");

/* Tokens. No reply has more: a service that says so is not believed, and what it did is
 * estimated. */
#define USAGE_MAX INT64_C(1000000000)

struct arriving {
	struct part *parts;
	unsigned nparts, cap, ncalls;
	json_t *extra;      /* chat completions: extra_content of the message; NULL: none */
	struct usage usage; /* Messages: input without what the cache had */
	bool measured;
	char id[80], stop[40];
	char *served; /* NULL: not told */
};

struct stream_ops {
	/* Chat completions, responses: [DONE] is an end mark, input counts what the cache had. */
	bool chat;
	bool items; /* responses: a reply is a line for each of its items */
	/* Where a piece belongs; *p stays NULL: nowhere. 0 or a code. */
	int (*place)(struct stream *s, enum delta_kind kind, int64_t index, struct part **p);
	/* An event that is no error and no hot piece, or a whole reply in its place; its text
	 * and the same as a tree. */
	int (*event)(struct stream *s, const char *data, size_t len, const json_t *event);
	/* The rest of the assistant line, behind its role; or all lines of a reply that is
	 * items, joined by \n. 0 or a code. */
	int (*line)(const struct stream *s, const struct turn *t, struct jw *w);
	bool (*id_char)(unsigned char c); /* may stand in the id of a call */
};

enum stream_mode { STREAM_UNKNOWN, STREAM_EVENTS, STREAM_BODY };

struct stream {
	const struct stream_ops *ops;
	const struct model *model; /* borrowed, and so are the tools that are offered */
	const struct tool *const *tools;
	unsigned ntools;
	void (*text)(const char *s, size_t n, bool thinking, void *user);
	void *text_user;
	struct arriving *reply;    /* NULL before the first event */
	struct reply_error *fault; /* NULL: none, or no memory for it */
	struct sse *sse;           /* NULL until bytes came; freed with the stream */
	struct buf body;           /* STREAM_BODY */
	int64_t payload;           /* bytes of text, thinking and arguments */
	int64_t payload_max;
	int64_t sent;              /* bytes of the request; 0: not known */
	int code;                  /* < 0: hopeless */
	uint8_t mode, nfirst, end; /* stream_mode; bytes of `first`; body_end */
	bool done;                 /* the end mark arrived */
	bool broken_off;           /* by us: it repeats itself */
	bool ending;               /* nothing more comes: half an event is no fault */
	bool progress;             /* during one feed */
	char first[7];             /* bytes that decide the mode */
	char tag[STREAM_TAG_MAX + 1];
};
static_assert(sizeof(struct stream) <= STREAM_BYTES_MAX, "one waits for each call");

/* ---- for the dialects. They return 0 or a code after which the stream is of no use. */

/* The fault that stream_end will tell. AVA_EINVAL. */
int stream_fault(struct stream *s, enum reply_class cls, const char *text);
/* Take an error of the service that came in the stream. AVA_EINVAL. */
int stream_error_value(struct stream *s, const json_t *v);
/* A part more; a fault when there are too many. */
int stream_part(struct stream *s, enum part_kind kind, int64_t index, struct part **p);
/* The newest part of these kinds (bits) with that index; < 0: whatever it is. NULL: none. */
struct part *stream_find(const struct stream *s, unsigned kinds, int64_t index);
/* Append text to a part, show it, count it. Parts may have moved behind a text. */
int stream_add(struct stream *s, struct part *p, enum delta_kind kind, const char *text,
	       size_t len);
/* The same where the piece belongs; nothing for an empty or absent (NULL) text. */
int stream_piece(struct stream *s, enum delta_kind kind, int64_t index, const char *text);
/* A count of tokens under the first of `keys` (NULL ends them) that holds one, as a number or as
 * the text of one; -1: none, or none that can be. */
int64_t stream_count(const json_t *usage, const char *const *keys);
/* A word of the service: an id or the reason of the stop. NULL changes nothing, and nothing
 * changes that the model refused. */
void stream_id(struct arriving *r, const char *id);
void stream_stop(struct arriving *r, const char *reason);
/* The model that answers, as the service names it; the first counts. */
void stream_served(struct arriving *r, const char *model);
/* Parts of chat completions, the same in responses (openai.c). A result's keys: what it is, the
 * call that it answers, its text. */
void openai_usage(struct arriving *r, const json_t *usage);
int openai_headers(struct buf *out, const struct model *m, const char *key);
int openai_user(struct buf *out, const char *text, size_t len);
int openai_results_as(const char *const keys[4], struct buf *out, const struct turn *t,
		      const char *const *notices, unsigned nnotices);
/* The name of a call as a service takes it back: other characters become "_". */
void stream_wire_name(struct buf *out, const char *name);

/* ---- thinking in the text (stream_thought.c) */

/* The same as stream_add, of thinking that is never sent back. */
int stream_thought(struct stream *s, const char *text, size_t len);
/* More came of the text `at` (of the parts) whose beginning is not over: thinking goes to
 * the part of its own, and the text is shown from where it begins. `last`: no more comes. */
int stream_lead(struct stream *s, unsigned at, bool last);
/* The same at the end of a reply: a mark that ends thinking without a beginning is known now. */
int stream_settle(struct stream *s);
/* ---- calls in the text (stream_written.c) */

/* Show what came of a text whose beginning is over, but no call. */
void stream_show(struct stream *s, struct part *p);
/* The text of a reply becomes the calls that it is, where the server is one's own. 0 or a code. */
int stream_take_written(struct stream *s, struct turn *t);

/* More came of the part, what leads it aside: a reply that repeats itself without end is whole, cut
 * behind the first time (stream_repeat.c). */
void stream_repeat(struct stream *s, struct part *p);

/* A piece with `piece` does not go on behind `had`, it says all of it once more: services
 * that send all so far each time, or the whole call at the end. `named`: the piece
 * names its call again. */
bool stream_repeats(const char *had, size_t n, const char *piece, size_t len, bool named);
bool stream_complete(const char *s, size_t len); /* one JSON value */
/* Show text as it comes. */
void stream_tell(struct stream *s, const char *text, size_t len, bool thinking);

/* ---- JSON of services */

/* JSON text `s` as it stands where it is strict, one line and of characters that every
 * reader takes, else written anew from `v`, which was read from it. */
int stream_json_add(struct buf *out, const char *s, size_t len, const json_t *v);

/* Arguments of a call as they arrived: sets args and args_len (in t->mem), or
 * args_error, a sentence for the model. `tool`: whose they are; NULL: nobody knows.
 * `t` has the reason of the reply's end. 0 or AVA_ENOMEM. */
int stream_args(struct turn *t, struct turn_call *c, const struct tool *tool, const char *s,
		size_t len);

/* The pieces of which a stream has thousands, read without a tree. Whatever is not such a
 * piece gives DELTA_NONE and is for json_read_others. */
struct delta {
	enum delta_kind kind;
	unsigned index;    /* of the block, or of the call; 0 for text of a chunk */
	struct slice text; /* raw, borrowed from the event */
	bool escapes;      /* there are some in `text` */
};
enum delta_form { DELTAS_MESSAGES, DELTAS_CHAT, DELTAS_ITEMS };
/* `s`: the data of one event. */
void delta_read(const char *s, size_t len, enum delta_form form, struct delta *d);
/* By the type of an event of responses, or of a delta of the Messages form. */
enum delta_kind delta_kind(enum delta_form form, struct slice word);
/* Append the text with its escapes resolved: 0, AVA_ENOMEM, AVA_ETOOBIG. */
int delta_add(struct buf *out, const struct delta *d);

/* ---- errors (stream_error.c). Services of both dialects share the shape {"error":{…}}, so
 * one reader serves both; their real sentences decide where codes do not. */

/* The member that says that this object is an error: {"error":…}, or the whole
 * of {"object":"error",…} and {"type":"error",…}; NULL: it is none. */
const json_t *stream_error_member(const json_t *body);
/* Fill cls, text, field and request_id. `status` 200: inside a stream. */
void stream_error_json(struct reply_error *e, int status, const json_t *body);
/* The same for the body of a response, whatever it is. */
void stream_error_body(struct reply_error *e, int status, const char *content_type,
		       const char *body, size_t len);
/* Class and sentence; newlines and bad bytes of `text` are made harmless. */
void stream_error_set(struct reply_error *e, enum reply_class cls, const char *text);

#endif
