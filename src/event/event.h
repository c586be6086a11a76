/* The event: one line, the unit of record (doc/events.json).
 *
 * {"timestamp":…,"lsn":…,"seq":…,"eventType":…,"agentId":…,"sessionId":…,
 *  "traceId":…,"userId":…,"content":{…},"metadata":{…}}
 *
 * Keys in this order, no spaces, top-level keys always there, so that a scan
 * can filter on the prefix without parsing. Absent metadata is left out. */
#ifndef EVENT_EVENT_H
#define EVENT_EVENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct ava_error;

/* clang-format off */
/* name, number; the number is the bit in a catalog row's "types" and never changes */
#define EVENT_KINDS(X)                                                       \
	X(SessionStart, 0) X(SessionEnd, 1) X(UserMessage, 2)                \
	X(AssistantMessage, 3) X(SpawnProposed, 4) X(SpawnConfirmed, 5)      \
	X(SpawnRejected, 6) X(SpawnExpired, 7) X(SubagentSpawn, 8)           \
	X(SubagentComplete, 9) X(InferStart, 10) X(InferEnd, 11)             \
	X(ToolCall, 12) X(ToolResult, 13) X(ExtendedThinking, 14)            \
	X(CostUpdate, 15) X(StateRead, 16) X(StateWrite, 17) X(Fork, 18)     \
	X(Join, 19) X(ContextEdit, 20) X(Checkpoint, 21) X(Limit, 22)        \
	X(Exhausted, 23) X(Steering, 24) X(Activity, 25) X(Custom, 26)       \
	X(Error, 27) X(LogOpen, 28) X(Recovered, 29) X(Seal, 30)             \
	X(Waiting, 31) X(OrderFired, 32) X(OrderChanged, 33) X(Check, 34)

enum event_kind {
#define X(name, bit) EVENT_##name = bit,
	EVENT_KINDS(X)
#undef X
	EVENT_NKINDS
};
/* clang-format on */

/* The bit of a kind in a set of kinds, as a catalog row's "types" is one. */
static inline uint64_t event_bit(enum event_kind kind)
{
	return UINT64_C(1) << kind;
}

const char *event_kind_name(enum event_kind kind);
int event_kind_from(const char *name, size_t len); /* -1: none such */
/* Set a bit in *mask for each type in a list ("error", "tool", "infer,cost"): a name, an alias or a
 * prefix, in any case. */
int event_types(const char *types, uint64_t *mask, struct ava_error *err);

#define EVENT_PREVIEW_CHARS 2000

/* -1 = absent, left out of the line. Use EVENT_META_NONE to start. */
struct event_meta {
	int64_t iteration, input_tokens, output_tokens;
	int64_t cost_microusd; /* written as decimal cents */
	int64_t duration_ms;
	const char *model_id, *parent_agent_id; /* NULL = absent */
};
#define EVENT_META_NONE ((struct event_meta){-1, -1, -1, -1, -1, NULL, NULL})

/* Agent, session, trace and user; "" or NULL when none. Borrowed during event_encode. */
struct event_head {
	enum event_kind kind;
	int64_t wall_ms;
	uint64_t lsn, seq;
	const char *agent_id, *session_id, *trace_id, *user_id;
};

/* Append the whole line with its \n. `content` is a JSON object's bytes
 * ("{}" when NULL); a newline in it becomes a space. `meta` NULL: none.
 * Returns buf_check(out): after an error `out` holds a part of the line. */
int event_encode(struct buf *out, const struct event_head *head, const char *content,
		 size_t content_len, const struct event_meta *meta);

/* A line in its two halves: `{"timestamp":…,"lsn":…,"seq":…`, and the rest from `,"eventType":`
 * on with the \n, which is the same whatever the numbers are. */
int event_begin(struct buf *out, int64_t wall_ms, uint64_t lsn, uint64_t seq);
int event_rest(struct buf *out, const struct event_head *head, const char *content,
	       size_t content_len, const struct event_meta *meta);

/* A line taken apart without parsing its content: views into `line`, valid as long as it is.
 * Strings are raw JSON string bodies (still escaped). */
struct event_view {
	int64_t wall_ms;
	uint64_t lsn, seq;
	int kind; /* enum event_kind, -1: unknown name */
	struct {
		const char *s;
		size_t len;
	} type, agent_id, session_id, trace_id, user_id, content, metadata;
};

/* 0 or AVA_ECORRUPT: not a line in canonical form. One \n at the end may be
 * part of `line`. */
int event_view(const char *line, size_t len, struct event_view *v);

#endif
