/* What a request is answered with: checks, plan, faults, playing the reply
 * over time, and the mock's own addresses (/stats, /requests, /plan). */
#ifndef MOCK_SERVE_H
#define MOCK_SERVE_H

#include <stdio.h>

#include "account.h"
#include "conn.h"

struct serve {
	struct loop *loop;
	struct plan plan;    /* of the command line; base of every conversation's */
	struct rules *rules; /* owned; may be NULL */
	struct convos *convos;
	struct account account;
	struct tape tape;
	uint64_t serial; /* of replies, for ids */
	FILE *log;       /* each request as a line; NULL: none. Not ours. */
	bool quiet;      /* refusals are not printed */
};

void serve_init(struct serve *s, struct loop *loop);
void serve_fini(struct serve *s);

/* control.c: the mock's own addresses; false: not one of them. */
bool control_request(struct serve *s, struct exchange *x);
/* A whole answer at once. `lines` as in exchange_head. May free `x`. */
void serve_answer(struct exchange *x, int status, const char *lines, const struct buf *body);

#endif
