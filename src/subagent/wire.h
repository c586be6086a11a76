/* The way to model services: a pool of connections per provider, a gate per model,
 * and one attempt at a call on the wire. Lines are made when first needed and kept
 * as long as the runtime. No decision about a failed attempt is made here; see
 * provider/retry.h. Loop thread only. */
#ifndef SUBAGENT_WIRE_H
#define SUBAGENT_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "net/http_client.h"
#include "provider/dialect.h"
#include "provider/retry.h"

struct wire_line;
struct wire_lines;
struct wirecall;
struct provider;
struct settings;
struct os_loop;

#define WIRE_LINES_MAX 256 /* models called at a time */

/* Cheap: nothing of the network is touched. NULL: no memory. */
struct wire_lines *wire_lines_new(struct os_loop *loop);
/* Every ticket has left and every call is over or stopped. NULL is fine. */
void wire_lines_free(struct wire_lines *l);

/* The line to `m`. It stays while a ticket is at its gate. NULL with err:
 * AVA_EDENIED, AVA_EINVAL (the address), AVA_ENOENT (no certificates),
 * AVA_EBUSY (too many models), AVA_ENOMEM. */
struct wire_line *wire_line_get(struct wire_lines *l, const struct model *m, struct ava_error *err);
struct http_pool *wire_line_pool(const struct wire_line *line);
/* "/v1" where the service's address turned out to lack it, else "". */
const char *wire_line_prefix(const struct wire_line *line);
/* Nothing of the service was where `w` asked: it is to be asked again, with the prefix as it is
 * now. That is found out once. */
bool wire_line_mend(struct wire_line *line, const struct wirecall *w);

/* A caller at the gate; zero it first. `go` comes from inside wire_line_want,
 * from one of the others or from a timer: then it holds a permit, or
 * ticket.refused says that the circuit is open. */
struct wire_ticket {
	struct gate_ticket gate;
	struct wire_line *line;
	void (*go)(struct wire_ticket *t);
};

void wire_line_want(struct wire_line *line, struct wire_ticket *t, uint64_t head);
/* true: it was parked, and what was used up is back before its time. */
bool wire_line_began(struct wire_ticket *t);
void wire_line_end(struct wire_ticket *t, enum reply_class cls, struct retry_plan *plan);
/* From wherever it is; also when it is at no gate. */
void wire_line_leave(struct wire_ticket *t);
/* The service has set a limit and nobody may go, but for one to see. */
bool wire_line_closed(const struct wire_line *line);
/* The service says that `limit` is used up until then (wall): all that wait at the gate are told
 * so by `go`, refused. Whoever can wait that long asks wire_line_parked before the gate. */
void wire_line_park(struct wire_line *line, int64_t until_ms, const char *limit);
/* Is it so now? *limit is the line's. */
bool wire_line_parked(const struct wire_line *line, int64_t *until_ms, const char **limit);
/* Somebody comes back who was parked until then: of all those one goes first. */
void wire_line_back(struct wire_line *line, int64_t until_ms);
/* The circuit of its provider: why, and for how long still; false: closed. */
bool wire_line_refuses(const struct wire_line *line, enum reply_class *why, int64_t *for_ms);

/* How long an attempt waits. `late`: how many of its call ran out of time, since no wait is
 * repeated at the same length. A near service works for as long as its prompt takes: it is waited
 * for while the connection lives and the run has time, of which `left_ms` are left. */
struct http_timers wire_timers(const struct provider *p, const struct settings *s, int64_t left_ms,
			       unsigned late);

/* ---- one attempt: the request leaves, the reply's bytes go through the dialect's
 * stream, one outcome comes back */

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
	int64_t max_output; /* tokens that the body asks for */
	const char *prefix; /* of the path; *borrowed*; NULL: none */
	const struct tool *const *tools;
	unsigned ntools;
};

/* `body` is *taken* when it succeeds; `m` is *borrowed until the end*; `key`
 * and `tag` are read during the call. AVA_EINVAL (the key), AVA_ENOMEM. */
int wirecall_start(struct wirecall *w, struct http_pool *pool, const struct model *m,
		   const char *key, const char *tag, struct buf *body, struct ava_error *err);
/* No callback comes any more. *cut (may be NULL): what is known of the half
 * reply, all 0 when nothing came. A call that is not running is left alone. */
void wirecall_stop(struct wirecall *w, struct usage *cut);

#endif
