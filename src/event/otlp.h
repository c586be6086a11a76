/* A trace as requests to a collector, each with a part of its spans. The whole of
 * it at once is ava_trace_otlp of ava.h. */
#ifndef EVENT_OTLP_H
#define EVENT_OTLP_H

#include <stddef.h>

#include "base/buf.h"

struct ava_error;
struct ava_trace;

#define OTLP_PART_SPANS 512 /* as exporters of OpenTelemetry send at once */

/* Append the request with the spans from *at on, at most OTLP_PART_SPANS, to `out`,
 * and move *at behind them. 1: there are more; 0: that was the last one (a trace
 * without events has none: `out` is as it was). AVA_ETOOBIG: more than `out` takes;
 * AVA_ENOMEM. */
int otlp_part(struct ava_trace *t, size_t *at, struct buf *out, struct ava_error *err);

#endif
