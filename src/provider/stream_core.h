/* The reader of replies that the dialects share: a reply as it arrives is a list of parts, which
 * dialects fill from their events. Common damage is mended on the way. */
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

#define STREAM_LINE_MAX (8u << 20) /* most bytes of one event */
#define STREAM_BODY_MAX (8u << 20) /* most bytes kept of a body that is no stream */
#define STREAM_TAG_MAX  32u
#define CALL_ARGS_MAX   (256u << 10) /* bytes, see struct turn_call */
#define CALL_NAME_MAX   128u         /* bytes, inside this program */
#define WIRE_NAME_MAX   64u          /* bytes, for the services: ^[a-zA-Z0-9_-]{1,64}$ */

/* ---- a reply */

/* Kinds of pieces, with their names in Messages; in chat completions. Only delta_read gives the
 * first two. */
enum delta_kind {
	DELTA_NONE,
	DELTA_EMPTY,     /* a piece without content */
	DELTA_TEXT,      /* text_delta; content */
	DELTA_THINKING,  /* thinking_delta; reasoning_content */
	DELTA_REASONING, /* reasoning */
	DELTA_ARGS,      /* input_json_delta; function.arguments */
};

/* PART_THOUGHT: thinking that came in the text, or in a member that services do not take back;
 * shown and kept, never sent back. */
enum part_kind { PART_TEXT, PART_THINKING, PART_CALL, PART_OTHER, PART_THOUGHT };

/* The state of the first text (stream_thought.c). */
enum lead {
	LEAD_OVER,  /* the beginning is decided: it is text */
	LEAD_BEGIN, /* blanks came, or bytes that may become a mark of thinking */
	LEAD_LED,   /* as LEAD_BEGIN, behind thinking */
	LEAD_QUIET, /* it may be a call written as text: not shown as it comes */
};
struct thought;
/* How bytes compare with a mark. */
enum fit { FIT_NOT, FIT_MAYBE, FIT_WHOLE };

struct part {
	enum part_kind kind;
	/* PART_OTHER, responses: kind of the part's pieces; DELTA_NONE: none came */
	enum delta_kind of;
	int64_t index;   /* the part's index at the service; -1: none */
	char *id, *name; /* id and name of a call; NULL: not yet here */
	struct buf text; /* pieces of text, thinking or arguments */
	const char *key; /* chat completions: the member that `text` came in; NULL: none */
	/* reasoning_details as it began, or all of a call; responses: the item */
	json_t *object;
	uint32_t told;            /* bytes of a text that were shown */
	uint32_t look_at;         /* length of text at which stream_repeat looks again */
	uint32_t held_at;         /* length at which a held-back text is looked at again */
	const struct thought *in; /* in the first text: the kind of thinking now open */
	uint8_t lead;             /* enum lead: the state of a text */
	bool named_now;           /* chat completions: the present chunk brought the call's name */
	bool ended;               /* Messages: content_block_stop came */
	struct buf start;         /* Messages: the block at its start, clean JSON */
	struct buf sign;          /* Messages: the signature; each signature_delta replaces it */
	struct buf cited;         /* Messages: citations, JSON values joined by commas */
};
static_assert(TURN_MAX_BYTES <= UINT32_MAX, "no text of a reply is longer");

/* Most tokens believed: a service that reports more has its usage estimated. */
#define USAGE_MAX INT64_C(1000000000)

struct arriving {
	struct part *parts;
	unsigned nparts, cap, ncalls;
	json_t *extra;      /* chat completions: extra_content of the message; NULL: none */
	struct usage usage; /* Messages: input without the cache's tokens */
	bool measured;
	char id[80], stop[40];
	char *served; /* the model that answered; NULL: the service did not say */
};

struct stream_ops {
	/* Chat completions, responses: [DONE] is an end mark, input includes the cache's tokens. */
	bool chat;
	bool items; /* responses: a reply is a line for each of its items */
	/* Find the part that a piece belongs to; *p stays NULL: drop the piece. 0 or a code. */
	int (*place)(struct stream *s, enum delta_kind kind, int64_t index, struct part **p);
	/* Take an event that is no error and no hot piece, or a whole reply instead; given as text
	 * and as a tree. */
	int (*event)(struct stream *s, const char *data, size_t len, const json_t *event);
	/* Write the rest of the assistant line, behind its role; or all lines of a reply of items,
	 * joined by \n. 0 or a code. */
	int (*line)(const struct stream *s, const struct turn *t, struct jw *w);
	bool (*id_char)(unsigned char c); /* may the character stand in the id of a call? */
};

enum stream_mode { STREAM_UNKNOWN, STREAM_EVENTS, STREAM_BODY };

struct stream {
	const struct stream_ops *ops;
	const struct model *model; /* borrowed, as are the offered tools */
	const struct tool *const *tools;
	unsigned ntools;
	void (*text)(const char *s, size_t n, bool thinking, void *user);
	void *text_user;
	struct arriving *reply;    /* NULL before the first event */
	struct reply_error *fault; /* NULL: none, or no memory for it */
	struct sse *sse;           /* NULL until bytes came; freed with the stream */
	struct buf body;           /* the body in STREAM_BODY */
	int64_t payload;           /* bytes of text, thinking and arguments */
	int64_t payload_max;
	int64_t sent; /* bytes of the request; 0: unknown */
	int code;     /* < 0: the code after which the stream is of no use */
	/* mode: enum stream_mode; nfirst: bytes in `first`; end: enum body_end */
	uint8_t mode, nfirst, end;
	bool done;       /* the end mark arrived */
	bool broken_off; /* we broke the stream off, since the reply repeats itself */
	bool ending;     /* the body is over: half an event is no fault */
	bool progress;   /* a real event came in the current feed */
	char first[7];   /* bytes that decide the mode */
	char tag[STREAM_TAG_MAX + 1];
};
static_assert(sizeof(struct stream) <= STREAM_BYTES_MAX, "one waits for each call");

/* ---- for the dialects. They return 0 or a code after which the stream is of no use. */

/* Set the fault that stream_end returns; the first counts. AVA_EINVAL. */
int stream_fault(struct stream *s, enum reply_class cls, const char *text);
/* Take the service's error object from the stream. AVA_EINVAL. */
int stream_error_value(struct stream *s, const json_t *v);
/* Add a part; a fault when there are too many. */
int stream_part(struct stream *s, enum part_kind kind, int64_t index, struct part **p);
/* Find the newest part of these kinds (bits) with this index; < 0: any index. NULL: none. */
struct part *stream_find(const struct stream *s, unsigned kinds, int64_t index);
/* Append text to a part, show and count it. Parts of the array may move when it is a text. */
int stream_add(struct stream *s, struct part *p, enum delta_kind kind, const char *text,
	       size_t len);
/* Append a piece to its part; nothing for an empty or absent (NULL) text. */
int stream_piece(struct stream *s, enum delta_kind kind, int64_t index, const char *text);
/* Number of tokens under the first of `keys` (NULL ends them) that holds one, as a number or as
 * text; -1: none that is possible. */
int64_t stream_count(const json_t *usage, const char *const *keys);
/* Set the message's id, or its stop reason, as the service has it. NULL changes nothing, and a
 * refusal is never replaced. */
void stream_id(struct arriving *r, const char *id);
void stream_stop(struct arriving *r, const char *reason);
/* Set the model that answers, as the service names it; the first counts. */
void stream_served(struct arriving *r, const char *model);
/* Chat completions and responses share these (openai.c). Keys of a result: its kind, the call it
 * answers, its text. */
void openai_usage(struct arriving *r, const json_t *usage);
int openai_headers(struct buf *out, const struct model *m, const char *key);
int openai_user(struct buf *out, const char *text, size_t len);
int openai_results_as(const char *const keys[4], struct buf *out, const struct turn *t,
		      const char *const *notices, unsigned nnotices);
/* Append a call's name as services take it back: other characters become "_". */
void stream_wire_name(struct buf *out, const char *name);

/* ---- thinking in the text (stream_thought.c) */

/* Append thinking that is never sent back. */
int stream_thought(struct stream *s, const char *text, size_t len);
/* Text `at` (of the parts) grew while its beginning is undecided: move thinking to a part of its
 * own and show the text behind it. `last`: no more comes. */
int stream_lead(struct stream *s, unsigned at, bool last);
/* As stream_lead, at the end of a reply, when a mark that ends thinking without a beginning can be
 * told. */
int stream_settle(struct stream *s);
/* ---- calls in the text (stream_written.c) */

/* Show new text whose beginning is decided, but no call. */
void stream_show(struct stream *s, struct part *p);
/* Turn a reply whose text is calls into calls, for servers that are near (provider_is_near). 0 or a
 * code. */
int stream_take_written(struct stream *s, struct turn *t);

/* End a reply that repeats itself without end: it counts as whole, cut behind the first time
 * (stream_repeat.c). Called when a part grew. */
void stream_repeat(struct stream *s, struct part *p);

/* Does the piece repeat `had` instead of continuing it? Some services send all text so far each
 * time, or the whole call at the end. `named`: the piece names its call again. */
bool stream_repeats(const char *had, size_t n, const char *piece, size_t len, bool named);
bool stream_complete(const char *s, size_t len); /* is it one whole JSON value? */
/* Report text for people as it comes. */
void stream_tell(struct stream *s, const char *text, size_t len, bool thinking);

/* ---- JSON of services */

/* Append JSON text `s` unchanged where it is strict, one line and of characters that every reader
 * takes; else `v`, which was read from it, written anew. */
int stream_json_add(struct buf *out, const char *s, size_t len, const json_t *v);

/* Set args and args_len (in t->mem) from a call's arguments as they arrived, or args_error, a
 * sentence for the model. `tool`: the called one; NULL: unknown. `t` has the stop reason. 0 or
 * AVA_ENOMEM. */
int stream_args(struct turn *t, struct turn_call *c, const struct tool *tool, const char *s,
		size_t len);

/* Text pieces, of which a stream has thousands, read without a tree. Other events give DELTA_NONE
 * and are read by json_read_others. */
struct delta {
	enum delta_kind kind;
	unsigned index;    /* index of the block, or of the call; text of a chunk: 0 */
	struct slice text; /* raw, borrowed from the event */
	bool escapes;      /* `text` holds escapes */
};
enum delta_form { DELTAS_MESSAGES, DELTAS_CHAT, DELTAS_ITEMS };
/* `s`: the data of one event. */
void delta_read(const char *s, size_t len, enum delta_form form, struct delta *d);
/* The kind by the type of a responses event, or of a delta of the Messages form. */
enum delta_kind delta_kind(enum delta_form form, struct slice word);
/* Append the text with its escapes resolved: 0, AVA_ENOMEM, AVA_ETOOBIG. */
int delta_add(struct buf *out, const struct delta *d);

/* ---- errors (stream_error.c). Services of all dialects share the shape {"error":{…}}, so one
 * reader serves all; their real sentences decide where codes do not. */

/* Find the part of `body` that describes an error: the member of {"error":…}, or the whole of
 * {"object":"error",…} and {"type":"error",…}; NULL: no error. */
const json_t *stream_error_member(const json_t *body);
/* Fill cls, text, field and request_id. `status` 200: inside a stream. */
void stream_error_json(struct reply_error *e, int status, const json_t *body);
/* As stream_error_json, for an error body of any kind. */
void stream_error_body(struct reply_error *e, int status, const char *content_type,
		       const char *body, size_t len);
/* Set class and sentence; newlines and bad bytes of `text` are replaced. */
void stream_error_set(struct reply_error *e, enum reply_class cls, const char *text);

#endif
