/* One attempt at a remote model call on the wire: the request leaves, the
 * reply's bytes go through the dialect's stream, one outcome comes back. No
 * decision is made here; see provider/retry.h. Loop thread only. */
#ifndef SUBAGENT_WIRECALL_H
#define SUBAGENT_WIRECALL_H

#include <stdbool.h>
#include <stdint.h>

#include "net/http_client.h"
#include "provider/dialect.h"
#include "provider/retry.h"

/* What came of it; borrowed during `done`, but the turn is the caller's. */
struct wirecall_end {
	struct turn *turn;            /* REPLY_OK; else NULL */
	struct reply_error error;     /* else */
	struct retry_failure failure; /* class, status and headers, for retry_decide */
	bool accepted;                /* a failed one whose reply the service may bill */
};

struct wirecall { /* the caller's; lives until `done` is called or wirecall_stop returned */
	struct http_call http;
	struct stream *stream; /* NULL: not running */
	const struct model *model;
	bool began;
	/* The first of a good reply arrived. Not followed by `done` in the same call. */
	void (*on_began)(struct wirecall *w);
	/* Exactly once unless stopped; the call may be started again inside. */
	void (*on_done)(struct wirecall *w, struct wirecall_end *end);
	/* Text as it comes; NULL: nobody wants it. */
	void (*on_text)(const char *s, size_t n, bool thinking, void *user);
	void *text_user;
};

/* `body` is *taken* when it succeeds; `m` is *borrowed until the end*; `key`
 * and `tag` are read during the call. AVA_EINVAL (the key), AVA_ENOMEM. */
int wirecall_start(struct wirecall *w, struct http_pool *pool, const struct model *m,
		   const char *key, const char *tag, struct buf *body, struct ava_error *err);
/* No callback comes any more. *cut (may be NULL): what is known of the half
 * reply, all 0 when nothing came. A call that is not running is left alone. */
void wirecall_stop(struct wirecall *w, struct usage *cut);

#endif
