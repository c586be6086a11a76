/* When long work has to stop: the run does not want it any more, or its time
 * is up. */
#ifndef TOOL_GATE_H
#define TOOL_GATE_H

#include <stdatomic.h>
#include <stdint.h>

struct gate {
	const atomic_bool *stop;
	int64_t deadline_ms; /* clock_mono_ms */
};

/* 0, AVA_ECANCELED or AVA_ETIMEOUT. Cheap: call it every 64 KB and folder. */
int gate_check(const struct gate *g);

#endif
