/* What services send, made fit for us: JSON with the damage that is met in the
 * wild, and calls whose id, name or arguments are not what a request may hold
 * again. Pure. */
#ifndef PROVIDER_STREAM_JSON_H
#define PROVIDER_STREAM_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "agent/turn.h"
#include "provider/jscan.h"

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
