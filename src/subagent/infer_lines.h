/* The lines to model services: a pool of connections per provider, a gate per
 * model. Made when first needed, kept as long as the runtime. Loop thread only. */
#ifndef SUBAGENT_INFER_LINES_H
#define SUBAGENT_INFER_LINES_H

#include <stdbool.h>
#include <stdint.h>

#include "provider/gate.h"

struct ava_error;
struct http_pool;
struct infer_line;
struct infer_lines;
struct model;
struct os_loop;

#define INFER_LINES_MAX 256 /* models called at a time */

/* Cheap: nothing of the network is touched. NULL: no memory. */
struct infer_lines *infer_lines_new(struct os_loop *loop);
/* Every ticket has left and every call is over or stopped. NULL is fine. */
void infer_lines_free(struct infer_lines *l);

/* The line to `m`. It stays while a ticket is at its gate. NULL with err:
 * AVA_EDENIED, AVA_EINVAL (the address), AVA_ENOENT (no certificates),
 * AVA_EBUSY (too many models), AVA_ENOMEM. */
struct infer_line *infer_line_get(struct infer_lines *l, const struct model *m,
				  struct ava_error *err);
struct http_pool *infer_line_pool(const struct infer_line *line);

/* A caller at the gate; zero it first. `go` comes from inside infer_line_want,
 * from one of the others or from a timer: then it holds a permit, or
 * ticket.refused says that the circuit is open. */
struct infer_ticket {
	struct gate_ticket gate;
	struct infer_line *line;
	void (*go)(struct infer_ticket *t);
};

void infer_line_want(struct infer_line *line, struct infer_ticket *t, uint64_t head);
void infer_line_began(struct infer_ticket *t);
void infer_line_end(struct infer_ticket *t, enum reply_class cls, int64_t wait_ms);
/* From wherever it is; also when it is at no gate. */
void infer_line_leave(struct infer_ticket *t);
/* The service has set a limit and nobody may go, but for one to see. */
bool infer_line_closed(const struct infer_line *line);
/* The circuit of its provider: why, and for how long still; false: closed. */
bool infer_line_refuses(const struct infer_line *line, enum reply_class *why, int64_t *for_ms);

#endif
