/* A trace in memory: the events of a run, for queries. The calls are ava.h's (ava_trace_*); this
 * header is shared by their files: trace.c holds, merges, reads and writes events, trace_query.c
 * has the tree and answers, otlp.c exports. */
#ifndef EVENT_TRACE_H
#define EVENT_TRACE_H

#include <ava.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "event/event.h"

#define TRACE_EVENTS_MAX 1000000
#define TRACE_BYTES_MAX  ((size_t)1 << 30)

struct trace_event {
	struct ava_event shown;         /* its strings are in ava_trace.mem */
	int kind;                       /* enum event_kind; -1: a kind newer than this program */
	const char *content, *metadata; /* parts of shown.json */
	size_t content_len, metadata_len;
};

struct ava_trace {
	struct arena mem;    /* lines and ids; grows until the end */
	struct arena answer; /* memory of the last query's answer */
	const char *id, *parent;
	int64_t start_ms, end_ms;   /* start 0: not known; end 0: not ended */
	struct trace_event *events; /* owned */
	size_t n, cap;
};

/* Begin a new query: the last one's answer is freed. */
void trace_forget(struct ava_trace *t);
/* Answer a query with this text; an `out` that has failed is the error. */
int trace_answer(struct ava_trace *t, const struct buf *out, const char **json, size_t *len,
		 struct ava_error *err);
/* All events, of copies only one, in their order; freed by the caller (free). NULL: no memory. */
const struct trace_event **trace_once(const struct ava_trace *t, size_t *n);
/* Content and metadata of an event, new references, either NULL when memory ran out. */
json_t *trace_content(const struct trace_event *e);
json_t *trace_metadata(const struct trace_event *e);

/* ---- the tree of a trace: a span for each run, below it one for each call */

enum trace_span_kind { TRACE_AGENT, TRACE_CHAT, TRACE_TOOL };

struct trace_span {
	enum trace_span_kind kind;
	const char *agent;               /* id of the run */
	char call[24];                   /* callId; "" for a run */
	const struct trace_event *start; /* the first event of the run when its spawn is missing */
	const struct trace_event *end;   /* NULL: no end */
	size_t parent;                   /* index of the run's span; of a run: its own */
};

/* The spans in the order of their starts, a run before its calls; freed by the caller (free). NULL:
 * no memory. */
struct trace_span *trace_spans(const struct ava_trace *t, size_t *n);
/* The start of a span, wall clock ms. Calls of a turn are written together but begin later: a
 * tool's start is its result's time less its duration. */
int64_t trace_span_start(const struct trace_span *one);

/* ---- otlp.c: a trace as requests to a collector */

#define OTLP_PART 512 /* spans of one request, as many as OpenTelemetry's exporters send */

enum otlp_signal { OTLP_TRACES, OTLP_LOGS, OTLP_METRICS };

/* Append the request with the spans, or the records of events, from *at on, at most OTLP_PART, to
 * `out`, and move *at behind them. 1: there are more; 0: that was the last one (where there is
 * nothing to send `out` is as it was). AVA_ETOOBIG: more than `out` takes; AVA_ENOMEM. */
int otlp_part(struct ava_trace *t, enum otlp_signal signal, size_t *at, struct buf *out,
	      struct ava_error *err);

/* A request of other things: what is written between these two stands in its array. `instance`
 * tells the process from others; NULL: it is not told. */
struct jw;
void otlp_begin(struct jw *w, enum otlp_signal signal, const char *instance);
void otlp_end(struct jw *w);
/* Attributes, in an open array of them. Those of a model "anthropic/claude-x" are its provider and
 * name; returns the name, NULL for NULL and "". */
void otlp_put_str(struct jw *w, const char *name, const char *value);
const char *otlp_put_model(struct jw *w, const char *id);

#endif
