/* What services send, made fit for us: JSON with the damage that is met in the
 * wild, and calls whose id, name or arguments are not what a request may hold
 * again. Pure. */
#ifndef PROVIDER_STREAM_JSON_H
#define PROVIDER_STREAM_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "agent/turn.h"
#include "codec/jscan.h"

struct ava_error;
struct buf;

#define CALL_ARGS_MAX (256u << 10) /* bytes, see struct turn_call */
#define CALL_NAME_MAX 128u         /* for us */
#define WIRE_NAME_MAX 64u          /* for the services: ^[a-zA-Z0-9_-]{1,64}$ */

/* json_parse that takes bytes that are no UTF-8, lone surrogates and NULs for
 * U+FFFD before it gives up. NULL: AVA_ENOMEM, or AVA_EINVAL: broken beyond
 * that, or too deep. */
json_t *stream_parse(const char *s, size_t len, struct ava_error *err);

/* One line, and only characters that every reader takes: as it stands then. */
bool stream_json_clean(const char *s, size_t len);
/* JSON text `s` as it stands where it is clean and strict, else written anew
 * from `v`, which was read from it. */
int stream_json_add(struct buf *out, const char *s, size_t len, const json_t *v);

/* The pieces of which a stream has thousands, read without a tree: a piece of text, of
 * thinking or of a call's arguments. Whatever is not such a piece gives DELTA_NONE and
 * is for stream_parse. */
enum delta_kind {
	DELTA_NONE,
	DELTA_EMPTY,     /* a piece that says nothing */
	DELTA_TEXT,      /* text_delta; content */
	DELTA_THINKING,  /* thinking_delta; reasoning_content */
	DELTA_REASONING, /* reasoning */
	DELTA_ARGS,      /* input_json_delta; function.arguments */
};

struct delta {
	enum delta_kind kind;
	unsigned index;    /* of the block, or of the call; 0 for text of a chunk */
	struct slice text; /* raw, borrowed from the event */
	bool escapes;      /* there are some in `text` */
};

/* `s`: the data of one event. */
void delta_messages(const char *s, size_t len, struct delta *d); /* Messages form */
void delta_chunk(const char *s, size_t len, struct delta *d);    /* chat completions */
/* Append the text with its escapes resolved: 0, AVA_ENOMEM, AVA_ETOOBIG. */
int delta_add(struct buf *out, const struct delta *d);

/* Arguments of a call as they arrived: sets args and args_len (in t->mem), or
 * args_error, a sentence for the model. `cut`: the reply ended at its output
 * limit. 0 or AVA_ENOMEM. */
int stream_args(struct turn *t, struct turn_call *c, const char *s, size_t len, bool cut);

/* c->name for the machine: valid UTF-8 of at most CALL_NAME_MAX bytes. */
int stream_name(struct turn *t, struct turn_call *c, const char *s, size_t len);
/* The name as a service takes it back: other characters become "_". */
int stream_wire_name(struct buf *out, const char *name);

/* c->wire_id: `s` where `may` allows all its bytes, it is not longer than
 * `max` and no call before it in `t` has it; else call_<tag>_<n>. */
int stream_id(struct turn *t, struct turn_call *c, const char *s, size_t max,
	      bool (*may)(unsigned char ch), const char *tag);

#endif
