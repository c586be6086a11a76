/* Where a machine stands, as plain data: all that it must not forget between two
 * processes. Each turn's commit carries it (event StateWrite, key "position";
 * doc/JOURNAL.md, "The position"); a restart, a replay and a fork begin from it.
 * One struct, one encoder, one decoder. */
#ifndef AGENT_POSITION_H
#define AGENT_POSITION_H

#include <jansson.h>
#include <stdint.h>

#include "agent/machine.h"

struct jw;

/* Of a machine between two turns, or while its model is called. `repeats` is
 * borrowed. */
void agent_position_of(const struct agent *a, int64_t now_ms, struct agent_position *p);

/* Into an object that is open in `w`. What is 0 is left out. `overflow`: when the
 * request was too large, what the service said. */
void agent_position_write(const struct agent_position *p, const char *overflow, struct jw *w);
/* AVA_ENOMEM, AVA_ECORRUPT; *p is set in any case, its `repeats` the caller's. */
int agent_position_read(struct agent_position *p, const json_t *value);
const char *agent_position_overflow(const json_t *value); /* borrowed; "" */

/* Before a first agent_run; p->repeats is *taken* (and NULL then). */
void agent_restore(struct agent *a, struct agent_position *p, const char *overflow);
/* After agent_restore: a recorded reply of that call, `bytes` of the next request,
 * from which nothing followed yet. It is counted; what follows is decided as if it
 * had just come, and nothing of it is written again. `t` *taken*; its calls with a
 * recorded result are answered. The others were begun or not, nobody knows: those
 * of repeatable tools and those that are `unstarted` run, the rest is answered as
 * interrupted. */
void agent_resume_reply(struct agent *a, struct turn *t, int64_t bytes);
/* The same for a reply that is counted already (a replay). */
void agent_resume_counted(struct agent *a, struct turn *t);
/* The request was too large: the next call is not made before there is room. */
void agent_too_large(struct agent *a, const char *sentence);
/* Of its time, so far. */
int64_t agent_used_ms(const struct agent *a, int64_t now_ms);

#endif
