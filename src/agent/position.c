/* The position of a machine and its JSON.
 *
 * The numbers stand in one table that both directions read. The table of calls
 * made before is an array of strings, one for each call: prints of call and result
 * (32 hex digits), where the result stands, the table's count of changes then; and
 * for a call that was repeated or removed also its last iteration, how often it
 * was made, how often it was removed, whether it is gone (1) or fetched again (2).
 *
 * What can fail: memory, and a position that was changed by hand. */
#include "agent/position.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/limit.h"
#include "base/util.h"
#include "codec/json.h"

#define FIELD(key, member)                                                                         \
	{                                                                                          \
		key, offsetof(struct agent_position, member),                                      \
			sizeof(((struct agent_position *)0)->member)                               \
	}

static const struct {
	const char *key;
	size_t at, size;
} fields[] = {
	FIELD("iteration", iteration),
	FIELD("turnFrom", turn_from),
	FIELD("usedMs", used_ms),
	FIELD("input", totals.input),
	FIELD("output", totals.output),
	FIELD("cacheRead", totals.cache_read),
	FIELD("cacheWrite", totals.cache_write),
	FIELD("microUsd", totals.cost_microusd),
	FIELD("calls", totals.calls),
	FIELD("uncostedCalls", totals.uncosted_calls),
	FIELD("failedCalls", totals.failed_calls),
	FIELD("toolCalls", totals.tool_calls),
	FIELD("measuredInput", measured_input),
	FIELD("newBytes", new_bytes),
	FIELD("compactFloor", compact_floor),
	FIELD("warned", warned),
	FIELD("shares", shares),
	FIELD("oddReplies", odd_replies),
	FIELD("pauses", pauses),
	FIELD("repairs", repairs),
	FIELD("halvings", halvings),
	FIELD("nudged", nudged),
	FIELD("forceSubmit", force_submit),
	FIELD("again", again),
	FIELD("wrapping", wrapping),
	FIELD("overflowed", overflowed),
};

static int64_t field_get(const struct agent_position *p, size_t i)
{
	const char *at = (const char *)p + fields[i].at;
	int64_t n = 0;
	int32_t n32;
	uint16_t n16;

	if (fields[i].size == sizeof(n)) {
		memcpy(&n, at, sizeof(n));
	} else if (fields[i].size == sizeof(n32)) {
		memcpy(&n32, at, sizeof(n32));
		n = n32;
	} else if (fields[i].size == sizeof(n16)) {
		memcpy(&n16, at, sizeof(n16));
		n = n16;
	} else {
		n = *(const uint8_t *)at;
	}
	return n;
}

/* false: the field cannot hold it. */
static bool field_set(struct agent_position *p, size_t i, int64_t n)
{
	char *at = (char *)p + fields[i].at;
	int32_t n32 = (int32_t)n;
	uint16_t n16 = (uint16_t)n;

	if (fields[i].size == sizeof(n))
		memcpy(at, &n, sizeof(n));
	else if (fields[i].size == sizeof(n32))
		memcpy(at, &n32, sizeof(n32));
	else if (fields[i].size == sizeof(n16))
		memcpy(at, &n16, sizeof(n16));
	else if (fields[i].at >= offsetof(struct agent_position, nudged))
		*(bool *)at = n != 0;
	else
		*(uint8_t *)at = (uint8_t)n;
	return n >= 0 && field_get(p, i) == n;
}

/* ---- the calls made before */

static void write_repeats(const struct repeats *r, struct jw *w)
{
	jw_object(w, "repeats");
	jw_int(w, "changes", r->changes);
	jw_int(w, "next", r->next);
	jw_array(w, "calls");
	for (unsigned i = 0; i < r->n; i++) {
		const struct repeat_call *c = &r->calls[i];
		char text[160];
		int n = snprintf(text, sizeof(text), "%016" PRIx64 "%016" PRIx64 " %d.%u %u",
				 c->call, c->result, (int)c->at.iteration, c->at.n, c->changes);

		if (c->last != c->at.iteration || c->times != 1 || c->removed > 0 || c->fetched)
			snprintf(text + n, sizeof(text) - (size_t)n, " %d %u %u %d", (int)c->last,
				 c->times, c->removed, c->gone + 2 * c->fetched);
		jw_str(w, NULL, text);
	}
	jw_end(w);
	jw_end(w);
}

static bool read_call(struct repeat_call *c, const char *text)
{
	int iteration, last, flags = 0, n;
	unsigned times = 1, removed = 0;

	*c = (struct repeat_call){0};
	n = sscanf(text, "%16" SCNx64 "%16" SCNx64 " %d.%u %" SCNu32 " %d %u %u %d", &c->call,
		   &c->result, &iteration, &c->at.n, &c->changes, &last, &times, &removed, &flags);
	if (n != 5 && n != 9)
		return false;
	c->at.iteration = iteration;
	c->last = n == 9 ? last : iteration;
	c->times = (uint8_t)times;
	c->removed = (uint8_t)removed;
	c->gone = flags & 1;
	c->fetched = flags & 2;
	return true;
}

static int read_repeats(struct agent_position *p, const json_t *o)
{
	const json_t *list = json_object_get(o, "calls"), *one;
	size_t n = json_array_size(list), i;
	struct repeats *r;

	if (o == NULL)
		return 0;
	if (n > REPEAT_CALLS)
		return AVA_ECORRUPT;
	p->repeats = r = calloc(1, sizeof(*r));
	if (r == NULL)
		return AVA_ENOMEM;
	r->cap = n > 0 ? (unsigned)n : 1;
	r->calls = calloc(r->cap, sizeof(*r->calls));
	if (r->calls == NULL)
		return AVA_ENOMEM;
	r->changes = (uint32_t)json_get_int(o, "changes", 0);
	r->next = (unsigned)json_get_int(o, "next", 0) % REPEAT_CALLS;
	json_array_foreach(list, i, one)
	{
		if (!json_is_string(one) || !read_call(&r->calls[r->n++], json_string_value(one)))
			return AVA_ECORRUPT;
	}
	return 0;
}

/* ---- both directions */

void agent_position_write(const struct agent_position *p, const char *overflow, struct jw *w)
{
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		if (field_get(p, i) != 0)
			jw_int(w, fields[i].key, field_get(p, i));
	if (p->overflowed)
		jw_str(w, "overflow", overflow);
	if (p->repeats != NULL)
		write_repeats(p->repeats, w);
}

int agent_position_read(struct agent_position *p, const json_t *value)
{
	*p = (struct agent_position){0};
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		if (!field_set(p, i, json_get_int(value, fields[i].key, 0)))
			return AVA_ECORRUPT;
	return read_repeats(p, json_object_get(value, "repeats"));
}

/* ---- a machine */

int64_t agent_used_ms(const struct agent *a, int64_t now_ms)
{
	return a->started_ms < 0 ? a->at.used_ms : now_ms - a->started_ms;
}

void agent_position_of(const struct agent *a, int64_t now_ms, struct agent_position *p)
{
	*p = a->at;
	p->used_ms = agent_used_ms(a, now_ms);
}

const char *agent_position_overflow(const json_t *value)
{
	return json_str(value, "overflow");
}

void agent_too_large(struct agent *a, const char *sentence)
{
	a->at.overflowed = true;
	snprintf(a->reply_class, sizeof(a->reply_class), "context_overflow");
	snprintf(a->reply_error, sizeof(a->reply_error), "%s", sentence);
}

void agent_restore(struct agent *a, struct agent_position *p, const char *overflow)
{
	assert(a->state == AGENT_QUEUED && !a->slot_wanted && a->turn == NULL);
	repeat_free(a->at.repeats);
	a->at = *p;
	p->repeats = NULL;
	if (p->overflowed)
		agent_too_large(a, overflow);
}

void agent_resume_counted(struct agent *a, struct turn *t)
{
	assert(a->state == AGENT_QUEUED && !a->slot_wanted && a->turn == NULL && !a->at.again);
	a->turn = t;
	a->asked = a->reply_ready = true;
	a->reply_saved = a->replayed = true;
}

void agent_resume_reply(struct agent *a, struct turn *t, int64_t bytes)
{
	limit_settle(a, &t->usage);
	a->at.new_bytes += bytes;
	a->at.totals.tool_calls += (int32_t)t->ncalls;
	agent_resume_counted(a, t);
}
