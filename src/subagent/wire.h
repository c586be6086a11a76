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
/* The service has nothing at the path where `w` asked. true: ask again, with the prefix as it is
 * now. Each prefix is tried once. */
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
/* true: the line was parked, and the limit is back before its time. */
bool wire_line_began(struct wire_ticket *t);
void wire_line_end(struct wire_ticket *t, enum reply_class cls, struct retry_plan *plan);
/* Leave the queue or give the permit back; fine when the ticket is at no gate. */
void wire_line_leave(struct wire_ticket *t);
/* The service has set a limit: no call may go, except one as a trial. */
bool wire_line_closed(const struct wire_line *line);
/* The service says that `limit` is used up until then (wall): `go` of all tickets at the gate is
 * called, refused. A run that may park asks wire_line_parked before it comes to the gate. */
void wire_line_park(struct wire_line *line, int64_t until_ms, const char *limit);
/* Is the line parked now? *limit is the line's. */
bool wire_line_parked(const struct wire_line *line, int64_t *until_ms, const char **limit);
/* A run that was parked until `until_ms` comes back: of all such runs one makes its call first. */
void wire_line_back(struct wire_line *line, int64_t until_ms);
/* The circuit of its provider: why, and for how long still; false: closed. */
bool wire_line_refuses(const struct wire_line *line, enum reply_class *why, int64_t *for_ms);

/* The timers of an attempt. `late`: how many attempts of the call ran out of time; the waits for
 * the first and for further bytes double with each, up to a bound, so that no wait is repeated at
 * the same length. A near service is waited for while the connection lives and the run has time,
 * of which `left_ms` are left: reading a long prompt may take that long. */
struct http_timers wire_timers(const struct provider *p, const struct settings *s, int64_t left_ms,
			       unsigned late);

/* ---- one attempt: the request leaves, the reply's bytes go through the dialect's
 * stream, one outcome comes back */

/* The outcome; borrowed during on_done, but the turn is the caller's. */
struct wirecall_end {
	struct turn *turn;            /* the reply, for REPLY_OK; else NULL */
	struct reply_error error;     /* set unless REPLY_OK */
	struct retry_failure failure; /* class, status and headers, for retry_decide */
	bool accepted;                /* failed, but the service may bill the reply */
};

struct wirecall { /* the caller's; lives until on_done is called or wirecall_stop returned */
	struct http_call http;
	struct stream *stream; /* NULL: not running */
	const struct model *model;
	bool began;
	/* The first bytes of a good reply arrived. on_done does not come in the same call. */
	void (*on_began)(struct wirecall *w);
	/* Exactly once unless stopped; the call may be started again inside. */
	void (*on_done)(struct wirecall *w, struct wirecall_end *end);
	/* Text as it comes; may be NULL. */
	void (*on_text)(const char *s, size_t n, bool thinking, void *user);
	void *text_user;
	int64_t max_output; /* output tokens that the request asks for */
	const char *prefix; /* of the path; *borrowed*; NULL: none */
	const struct tool *const *tools;
	unsigned ntools;
};

/* `body` is *taken* when it succeeds; `m` is *borrowed until the end*; `key`
 * and `tag` are read during the call. AVA_EINVAL (the key), AVA_ENOMEM. */
int wirecall_start(struct wirecall *w, struct http_pool *pool, const struct model *m,
		   const char *key, const char *tag, struct buf *body, struct ava_error *err);
/* No callback comes any more. *cut (may be NULL): the known usage of the half
 * reply, all 0 when nothing came. A call that is not running is left alone. */
void wirecall_stop(struct wirecall *w, struct usage *cut);

#endif
