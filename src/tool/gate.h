/* When long work has to stop: the run does not want it any more, or its time
 * is up. */
#ifndef TOOL_GATE_H
#define TOOL_GATE_H

#include <ava.h>
#include <stdatomic.h>
#include <stdint.h>

#include "agent/tool.h"
#include "base/clock.h"

struct gate {
	const atomic_bool *stop;
	int64_t deadline_ms; /* clock_mono_ms */
	int seconds;         /* that it had, for a sentence */
};

static inline struct gate gate_of(const struct tool_call *c)
{
	int64_t ms = c->env->limits.time_ms;

	return (struct gate){&c->stop, clock_mono_ms() + ms, (int)(ms / 1000)};
}

/* 0, AVA_ECANCELED or AVA_ETIMEOUT. Cheap: call it every 64 KB and folder. A stop wins
 * over a deadline that passed, since nobody reads the answer then. */
static inline int gate_check(const struct gate *g)
{
	if (atomic_load_explicit(g->stop, memory_order_relaxed))
		return AVA_ECANCELED;
	return clock_mono_ms() < g->deadline_ms ? 0 : AVA_ETIMEOUT;
}

#endif
