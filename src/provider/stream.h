/* One reply as it arrives: bytes of a response in, a turn or a reason out.
 * Pure: no sockets, no clock. What a dialect brings is in stream_core.h.
 *
 *	s = stream_open(d->stream, model, "7f3a2b_3");
 *	for each piece: stream_feed(s, data, len, &progress);
 *	cls = stream_end(s, status, content_type, &turn, &error);
 *	stream_free(s);
 *
 * Usage that no service told, or that cannot be, is estimated: a quarter of the bytes that
 * went out and came. A turn's request_id is the service's
 * id of the message; where a header names the request, that is the better one.
 *
 * stream_end may be asked at any time, also when the connection broke or feed
 * said no: a reply whose end mark arrived is whole and counts, whatever became
 * of the connection after it; without a mark one whose reason came counts when
 * the body ended well (stream_body_end), and a JSON reply in place of a stream;
 * everything else is no turn at all. */
#ifndef PROVIDER_STREAM_H
#define PROVIDER_STREAM_H

#include <stdbool.h>
#include <stddef.h>

#include "agent/turn.h"

/* retry.h decides on a failure by its class; events hold the words. */
enum reply_class {
	REPLY_OK,
	REPLY_RATE_LIMIT,
	REPLY_OVERLOADED,
	REPLY_SERVER,
	REPLY_NETWORK,
	REPLY_TIMEOUT,
	REPLY_TRUNCATED,   /* the stream ended without its end mark */
	REPLY_PROTOCOL,    /* not the service's protocol: HTML, broken JSON */
	REPLY_AUTH,        /* 401, and 403 that is no moderation */
	REPLY_BILLING,     /* 402, no credit, quota used up */
	REPLY_BAD_REQUEST, /* 400, 422; `field` may say which parameter */
	REPLY_OVERFLOW,    /* the conversation is larger than the model's window */
	REPLY_TOO_LARGE,   /* 413: the request has too many bytes */
	REPLY_NOT_FOUND,   /* the service has no such model */
	REPLY_ADDRESS,     /* the address has no such path, or redirects */
	REPLY_WALL,        /* a page stands before the service: a challenge, a login, a filter */
	REPLY_REFUSED,     /* refused by moderation, or a guardrail */
	REPLY_OTHER,       /* any other failure; asking again would not help */
	REPLY_NCLASSES
};

/* "ok", "rate_limit", "overloaded", …: the class of an Error event. */
const char *reply_class_word(enum reply_class c);

/* One failed call: what retry, repair and people need. */
struct reply_error {
	enum reply_class cls;
	char text[200];      /* a sentence; valid UTF-8, one line */
	char field[64];      /* our parameter that a 400 names; "": none */
	char request_id[80]; /* from the body: the caller reads the header; "": none */
	/* Tokens that the sentence tells; 0: none. */
	int64_t window;     /* most tokens that the model or the account takes of one request */
	int64_t prompt;     /* tokens of this request, as the service counted */
	int64_t output_max; /* most tokens of output that may be asked for */
	bool guessed;       /* which of two numbers is `window` and which `prompt` is a guess */
	bool never;         /* the request is larger than a limit that waiting does not raise */
	char after[64];     /* the wait or date that a header or a sentence names; "": none */
	char limit[16];     /* name of the used-up limit: "weekly"; "": not named */
	struct usage usage; /* usage of a half reply, estimated; all 0: no part of it came */
};

/* Write the limit that a text speaks of into e->limit. */
void stream_error_limit(struct reply_error *e, const char *text);

/* Bytes of a stream before data arrives; the first byte allocates buffers. */
#define STREAM_BYTES_MAX 512u

struct model;
struct stream;
struct stream_ops;

/* Begin to read a reply. `m` is borrowed until stream_free. `tag` (letters, digits, _; copied) is
 * part of the ids given to calls without one, call_<tag>_<n>, so each reply of a run needs another
 * tag. NULL: no memory. */
struct stream *stream_open(const struct stream_ops *ops, const struct model *m, const char *tag);
/* Feed bytes as they come. *progress: a real event was among them (not a comment, not a ping). < 0:
 * hopeless, stop the call; stream_end tells why. */
int stream_feed(struct stream *s, const char *data, size_t len, bool *progress);
/* End the reply: the response is over. `status` of HTTP, 0: no response arrived; when it is not 200
 * all bytes fed were the error body. `content_type` may be NULL. REPLY_OK: *out is the caller's
 * turn; else *e is filled. */
enum reply_class stream_end(struct stream *s, int status, const char *content_type,
			    struct turn **out, struct reply_error *e);
void stream_free(struct stream *s); /* NULL is fine */
/* Set the tools that calls may name, *borrowed*, before feeding. */
struct tool;
void stream_tools(struct stream *s, const struct tool *const *tools, unsigned n);
/* Tell the bytes of the request and the most tokens it asked for, before feeding. The service's
 * counts are believed only as far as bytes allow, and a reply over `tokens` by half is broken
 * off. */
void stream_asked(struct stream *s, int64_t bytes, int64_t tokens);
/* The longest time to wait for the rest, ms: little behind the end mark, some behind the stop
 * reason; 0: the reply repeats itself, and each further byte would be paid; -1: the reply is under
 * way. */
int64_t stream_rest_ms(const struct stream *s);
/* The number of bytes of text, thinking and arguments that arrived. */
int64_t stream_written(const struct stream *s);
/* The end of the body, set before stream_end; BODY_BROKEN unless set. */
enum body_end {
	BODY_BROKEN, /* it was cut amid a chunk or its length, by a reset, or by ava */
	BODY_CLOSED, /* it ended in good order, but only the connection's end says so */
	BODY_WHOLE,  /* it is whole, as HTTP tells */
};
void stream_body_end(struct stream *s, enum body_end how);
/* Report text as it comes, for people; what has come so far at once. */
void stream_on_text(struct stream *s,
		    void (*text)(const char *s, size_t n, bool thinking, void *user), void *user);

#endif
