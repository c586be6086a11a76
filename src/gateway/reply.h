/* Answers of the routes, at once or later.
 *
 * A request that has to wait for the disk or for a run is a struct kept. It
 * has two ends, the peer and the verb; whoever lets go first, the other one
 * finds out through it, and the last one frees it. */
#ifndef GATEWAY_REPLY_H
#define GATEWAY_REPLY_H

#include <stdbool.h>

#include "base/buf.h"
#include "base/list.h"

struct routes;
struct http_request;
struct op_wait;
struct ava_error;

/* JSON as it stands in `b`; when `b` is not whole (too big, no memory) the
 * answer is that error instead. */
void reply_json(const struct routes *r, struct http_request *req, int status, const struct buf *b);
/* `text` "" or NULL: the code's own. */
void reply_error(const struct routes *r, struct http_request *req, int code, const char *text);
/* 405 with the methods that there are. */
void reply_not_allowed(const struct routes *r, struct http_request *req, const char *allowed);

struct kept {
	struct list node;         /* in routes.waits, with `wait` */
	struct http_request *req; /* NULL: answered, or the peer has gone */
	struct routes *routes;
	struct op_wait *wait; /* the result that is waited for; NULL: a verb */
	char run[24];         /* whose result */
	bool started;         /* POST /runs with "confirmed" */
	bool in_call;         /* the verb has not returned yet */
	bool finished;        /* answered while in_call */
};

/* NULL: answered already (no memory). Then call the verb, then kept_returned. */
struct kept *kept_new(struct routes *r, struct http_request *req);
void kept_returned(struct kept *k);
/* For the verb's callback: answer, if the peer still is there. */
void kept_reply(struct kept *k, int status, const struct buf *b);
void kept_error(struct kept *k, int code, const struct ava_error *err);

#endif
