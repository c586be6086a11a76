/* The gate that long work passes; see gate.h. A stop that was asked for wins
 * over a deadline that passed, since nobody reads the answer then. Nothing
 * here can fail. */
#include "tool/gate.h"

#include <ava.h>

#include "base/clock.h"

int gate_check(const struct gate *g)
{
	if (atomic_load_explicit(g->stop, memory_order_relaxed))
		return AVA_ECANCELED;
	return clock_mono_ms() < g->deadline_ms ? 0 : AVA_ETIMEOUT;
}
