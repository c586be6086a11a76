/* Why a call gave no turn: from the bodies and in-band errors of services to a
 * class. Services of both dialects share the shape {"error":{…}}, so one reader
 * serves both; their real sentences decide where codes do not. Pure. */
#ifndef PROVIDER_STREAM_ERROR_H
#define PROVIDER_STREAM_ERROR_H

#include <jansson.h>
#include <stddef.h>

#include "provider/stream.h"

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
