/* A trace in memory: the events of a run and what is asked of them. The calls
 * are ava.h's (ava_trace_*); this is what their files share. trace.c holds and
 * merges events, trace_query.c answers, trace_text.c reads and writes. */
#ifndef EVENT_TRACE_H
#define EVENT_TRACE_H

#include <ava.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "event/event.h"

#define TRACE_EVENTS_MAX 1000000
#define TRACE_BYTES_MAX  ((size_t)1 << 30)

struct trace_event {
	struct ava_event shown;         /* strings in ava_trace.mem */
	int kind;                       /* enum event_kind; -1: a newer one */
	const char *content, *metadata; /* in shown.json */
	size_t content_len, metadata_len;
};

struct ava_trace {
	struct arena mem;    /* lines and ids; grows until the end */
	struct arena answer; /* of the last query */
	const char *id, *parent;
	int64_t start_ms, end_ms;   /* 0: not known, not ended */
	struct trace_event *events; /* owned */
	size_t n, cap;
};

/* A new query: what the last one gave is gone. */
void trace_forget(struct ava_trace *t);
/* The events of a query in the order of lsn, each once; freed by the caller
 * (free). NULL: no memory. */
const struct trace_event **trace_once(const struct ava_trace *t, enum event_kind kind, size_t *n);
/* Its content and its metadata, new references, either NULL when memory ran out. */
json_t *trace_content(const struct trace_event *e);
json_t *trace_metadata(const struct trace_event *e);

#endif
