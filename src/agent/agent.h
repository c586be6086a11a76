/* The agent machine: one run from its slot to its end. Pure: it acts only through its io and knows
 * only this struct, so that the same code runs live, after a crash and in the simulated world.
 *
 *   QUEUED ──► CALLING ──► SAVING ──► TOOLS ──┐──► WAITING ──► QUEUED
 *                 ▲  └────────(rides)────►┘    │
 *                 └───────────────────────────┘
 *   every state ──► SAVING (its end) ──► DONE
 *
 * Each state is a wait: for a slot, a reply, the disk, the tools, a person. SAVING is passed only
 * where a tool is not repeatable, or at the end; else the reply rides: its commit is not waited
 * for. In WAITING the run has no slot and its clock stands still. */
#ifndef AGENT_AGENT_H
#define AGENT_AGENT_H

#include "agent/ask.h" /* its arrivals too */
#include "agent/machine.h"

/* `request_bytes`: bytes of the first request's head and first lines. */
void agent_init(struct agent *a, const struct agent_io *io, const struct agent_spec *spec,
		void *world, int64_t request_bytes);
void agent_fini(struct agent *a);
/* Go on as far as possible. The world calls it after an arrival below stored something. */
void agent_run(struct agent *a);

/* Arrivals: the world reports what came. Each only stores it; agent_run is called afterwards. */
void agent_on_slot(struct agent *a);
/* The reply came. rv 0: `t` *taken*. rv < 0: the call failed, t is NULL, class and sentence are
 * *copied*. */
void agent_on_reply(struct agent *a, int rv, struct turn *t, const char *error_class,
		    const char *sentence);
/* The attempt failed: where limits allow, the next agent_run calls io->infer again for the same
 * iteration. */
void agent_on_again(struct agent *a);
/* As agent_on_again, but the request was too large: another attempt with less, or the end with
 * class and sentence (*copied*). */
void agent_on_refused(struct agent *a, const struct agent_told *told, const char *error_class,
		      const char *sentence);
void agent_on_compacted(struct agent *a, int rv, const struct agent_compacted *d);
void agent_on_saved(struct agent *a);
void agent_on_tool(struct agent *a, unsigned call); /* a->turn->calls[call] is answered */
/* The check has its outcome (CHECK_PASSED and behind); `text`, *copied*: how it ended, in the first
 * line, and the last of its output. */
void agent_on_checked(struct agent *a, enum agent_check how, const char *text);
/* A person's message is durable: the next save_results passes it on. */
void agent_on_steer(struct agent *a);
/* `a->paused` is the world's to set, before an agent_run: the run then stands in the queue from the
 * end of its turn on, without a slot and a clock, and goes on from there when it is cleared. What
 * it waits for meanwhile, a person or a quota, it goes on waiting for; with `a->asks_again` it
 * comes to that wait once more, after a restart. */
void agent_cancel(struct agent *a); /* final: nothing of the run starts after it */
/* From DONE, or before a first turn, begin a turn of the same conversation, with the spec's limits
 * for itself: totals begin anew (add them up before if their sum is needed), iteration numbers go
 * on. */
void agent_next(struct agent *a, int64_t new_bytes);
/* Called instead of a first agent_run: a stop of the runtime cut the run off, and only its end is
 * to be written. */
void agent_interrupted(struct agent *a, const char *sentence);
/* The run has no slot yet, and ends without one: what it waited for did not succeed. */
void agent_not_started(struct agent *a, const char *sentence);
/* Count the charge of an attempt without a reply, before agent_on_again or the failure; the cost
 * from the price is written back. */
void agent_charge(struct agent *a, struct usage *u);

const char *agent_state_name(enum agent_state s);

#endif
