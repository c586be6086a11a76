/* Requests of chat completions as a service takes them: lines are stored in one form, and
 * where the service wants another, its requests are made anew from them when they leave. */
#ifndef PROVIDER_CHAT_REQUEST_H
#define PROVIDER_CHAT_REQUEST_H

#include <stdbool.h>
#include <stddef.h>

#include "codec/jscan.h"

struct buf;
struct model;

/* Make `body`, a request built up to its tail, anew for the service; *lines_from, where its lines
 * begin, moves with its head. `m` NULL: nothing is known. 0, AVA_ENOMEM, AVA_ETOOBIG. */
int chat_request(struct buf *body, size_t *lines_from, const struct model *m);

/* Message that stands in for an empty reply between two messages of the user. */
#define CHAT_BRIDGE "{\"role\":\"assistant\",\"content\":\"(nothing)\"}"

/* Is the key a member of a call that chat completions define? Services add others and some want
 * them back: Gemini its signature. */
bool chat_call_member(struct slice key);

#endif
