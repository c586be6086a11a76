/* What the streams of both dialects share: telling events from a body, bounds,
 * faults, the end. A dialect brings its reading of events and makes the turn. */
#ifndef PROVIDER_STREAM_CORE_H
#define PROVIDER_STREAM_CORE_H

#include <assert.h>
#include <jansson.h>
#include <stdint.h>

#include "base/buf.h"
#include "codec/sse.h"
#include "provider/stream.h"
#include "provider/stream_json.h"

struct model;

#define STREAM_LINE_MAX (8u << 20)  /* bytes of one event */
#define STREAM_BODY_MAX (64u << 10) /* of a body that is no stream; the rest is not kept */
#define STREAM_TAG_MAX  32u

struct stream_ops {
	/* One event. 0, or a code after which the stream is of no use; the
	 * reason was given to stream_fault, or is the code's own. */
	int (*event)(struct stream *s, const char *data, size_t len, bool *progress);
	/* The reply is whole: fill text, thinking, calls, stop, request_id and
	 * wire. REPLY_OK or the class of s's fault. */
	enum reply_class (*finish)(struct stream *s, struct turn *t);
	void (*usage)(const struct stream *s, struct usage *u);
	void (*free_reply)(void *reply);
	bool bare_done; /* "[DONE]" counts without the blank line after it */
};

enum stream_mode { STREAM_UNKNOWN, STREAM_EVENTS, STREAM_BODY };

struct stream {
	const struct stream_ops *ops;
	const struct model *model; /* borrowed */
	void (*text)(const char *s, size_t n, bool thinking, void *user);
	void *text_user;
	void *reply;               /* the dialect's; NULL before the first event */
	struct reply_error *fault; /* NULL: none, or no memory for it */
	struct sse *sse;           /* NULL until bytes came; freed with the stream */
	struct buf body;           /* STREAM_BODY */
	int64_t payload;           /* bytes of text, thinking and arguments */
	int code;                  /* < 0: hopeless */
	uint8_t mode, nfirst;
	bool done;     /* the end mark arrived */
	bool progress; /* during one feed */
	char first[7]; /* bytes that decide the mode */
	char tag[STREAM_TAG_MAX + 1];
};
static_assert(sizeof(struct stream) <= STREAM_BYTES_MAX, "one waits for each call");

struct stream *stream_open(const struct stream_ops *ops, const struct model *m, const char *tag);
int stream_feed(struct stream *s, const char *data, size_t len, bool *progress);
enum reply_class stream_end(struct stream *s, int status, const char *content_type,
			    struct turn **out, struct reply_error *e);
void stream_free(struct stream *s);
void stream_on_text(struct stream *s,
		    void (*text)(const char *s, size_t n, bool thinking, void *user), void *user);

/* ---- for the dialects. Both return a code, so that one can return them. */

#define STREAM_OVERFLOW "the conversation and the reply are larger than the model's window"

/* The fault that stream_end will tell. AVA_EINVAL. */
int stream_fault(struct stream *s, enum reply_class cls, const char *text);
/* Take an error of the service that came in the stream. AVA_EINVAL. */
int stream_error_value(struct stream *s, const json_t *v);
/* Append a piece to `out`, show it, count it. 0 or a code. */
int stream_add(struct stream *s, struct buf *out, const struct delta *d);
int stream_add_text(struct stream *s, struct buf *out, enum delta_kind kind, const char *text,
		    size_t len);

#endif
