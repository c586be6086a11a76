/* The position of a machine and its JSON.
 *
 * The numbers stand in one table that both directions read. The table of earlier calls is an
 * array of strings, one for each call, the oldest first: prints of call and result (32 hex
 * digits), the place of the result, the table's count of changes then; and for a call that was
 * repeated or removed also its last iteration, its number of repetitions, of removals, and whether
 * it is gone (1) or fetched again (2). A position that is not whole has the rows that changed: read
 * in their order, they find or push out the same rows as they did in the machine.
 *
 * What can fail: memory, and a position that was changed by hand. */
#include "agent/position.h"

#include <assert.h>
#include <ava.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/limit.h"
#include "agent/tool.h"
#include "agent/turn.h"
#include "base/buf.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/redact.h"
#include "codec/utf8.h"

#define SAID_MAX 32000 /* characters; after a restart a longer answer ends in "…" */

#define FIELD(key, member)                                                                         \
	{                                                                                          \
		key, offsetof(struct agent_position, member),                                      \
			sizeof(((struct agent_position *)0)->member)                               \
	}

static const struct {
	const char *key;
	size_t at, size;
} fields[] = {
	FIELD("delta", delta),
	FIELD("iteration", iteration),
	FIELD("turnFrom", turn_from),
	FIELD("usedMs", used_ms),
	FIELD("input", totals.input),
	FIELD("output", totals.output),
	FIELD("cacheRead", totals.cache_read),
	FIELD("cacheWrite", totals.cache_write),
	FIELD("spared", totals.spared),
	FIELD("microUsd", totals.cost_microusd),
	FIELD("calls", totals.calls),
	FIELD("uncostedCalls", totals.uncosted_calls),
	FIELD("failedCalls", totals.failed_calls),
	FIELD("toolCalls", totals.tool_calls),
	FIELD("measuredInput", measured_input),
	FIELD("newBytes", new_bytes),
	FIELD("compactFloor", compact_floor),
	FIELD("window", window),
	FIELD("outputMax", output_max),
	FIELD("warned", warned),
	FIELD("shares", shares),
	FIELD("oddReplies", odd_replies),
	FIELD("pauses", pauses),
	FIELD("repairs", repairs),
	FIELD("halvings", halvings),
	FIELD("vain", vain),
	FIELD("loops", loops),
	FIELD("checks", checks),
	FIELD("nudged", nudged),
	FIELD("toldLook", told_look),
	FIELD("forceSubmit", force_submit),
	FIELD("again", again),
	FIELD("wrapping", wrapping),
	FIELD("toldDropped", told_dropped),
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

/* false: the value is out of the field's range. */
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

/* ---- the earlier calls */

/* Calls of earlier turns of a conversation are left out, or its positions would only grow. */
static void write_repeats(const struct repeats *r, bool whole, int32_t turn_from, struct jw *w)
{
	jw_object(w, "repeats");
	jw_int(w, "changes", r->changes);
	jw_array(w, "calls");
	for (unsigned i = 0; i < r->n; i++) {
		struct repeat_call *c = &r->calls[(r->next + i) % r->n];
		char text[160];
		int n;

		if (c->last <= turn_from || !(whole || c->due))
			continue;
		c->due = false;
		n = snprintf(text, sizeof(text), "%016" PRIx64 "%016" PRIx64 " %d.%u %u", c->call,
			     c->result, (int)c->at.iteration, c->at.n, c->changes);
		if (c->last != c->at.iteration || c->times != 1 || c->removed > 0 || c->fetched)
			snprintf(text + n, sizeof(text) - (size_t)n, " %d %u %u %d", (int)c->last,
				 c->times, c->removed, c->gone + 2 * c->fetched);
		jw_str(w, NULL, text);
	}
	jw_end(w);
	jw_end(w);
}

static bool position_read_call(struct repeat_call *c, const char *text)
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

static struct repeat_call *position_find(const struct repeats *r, uint64_t call)
{
	for (unsigned i = 0; i < r->n; i++)
		if (r->calls[i].call == call)
			return &r->calls[i];
	return NULL;
}

/* The row of a call, or room for one more; NULL: no memory. */
static struct repeat_call *position_row(struct repeats *r, uint64_t call)
{
	struct repeat_call *seen = position_find(r, call);

	if (seen != NULL)
		return seen;
	if (r->n < REPEAT_CALLS)
		return ARRAY_ROOM(r->calls, r->cap, r->n + 1) ? &r->calls[r->n++] : NULL;
	r->next = (r->next + 1) % REPEAT_CALLS;
	return &r->calls[(r->next + REPEAT_CALLS - 1) % REPEAT_CALLS];
}

static int read_repeats(struct agent_position *p, const json_t *o)
{
	const json_t *list = json_object_get(o, "calls"), *one;
	struct repeat_call call, *row;
	size_t i;

	if (o == NULL)
		return 0;
	if (json_array_size(list) > REPEAT_CALLS)
		return AVA_ECORRUPT;
	if (p->repeats == NULL && (p->repeats = calloc(1, sizeof(*p->repeats))) == NULL)
		return AVA_ENOMEM;
	p->repeats->changes = (uint32_t)json_get_int(o, "changes", 0);
	json_array_foreach(list, i, one)
	{
		if (!json_is_string(one) || !position_read_call(&call, json_string_value(one)))
			return AVA_ECORRUPT;
		row = position_row(p->repeats, call.call);
		if (row == NULL)
			return AVA_ENOMEM;
		*row = call;
	}
	return 0;
}

/* ---- both directions */

/* Text in which secrets cannot be searched is left out. */
static void write_said(const char *said, const struct redact *redact, struct jw *w)
{
	size_t len = utf8_prefix(said, strlen(said), SAID_MAX);
	struct buf clean;
	bool is;

	buf_init(&clean, 1u << 20);
	is = redact_text(redact, &clean, said, len) >= 0 && clean.data != NULL &&
	     (said[len] == '\0' || buf_adds(&clean, "…") == 0);
	jw_strn(w, "said", is ? clean.data : "", is ? clean.len : 0);
	buf_fini(&clean);
}

void agent_position_write(const struct agent_position *p, const char *sentence,
			  const struct redact *redact, struct jw *w)
{
	bool whole = p->delta == 0;

	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		if (field_get(p, i) != 0)
			jw_int(w, fields[i].key, field_get(p, i));
	if (p->overflowed || p->wrapping)
		jw_str(w, p->overflowed ? "overflow" : "repeated", sentence);
	if (whole ? p->said != NULL : p->said_due)
		write_said(p->said != NULL ? p->said : "", redact, w);
	if (p->repeats != NULL)
		write_repeats(p->repeats, whole, p->turn_from, w);
}

int agent_position_read(struct agent_position *p, const json_t *value)
{
	const char *said = json_get_str(value, "said");
	int64_t delta = json_get_int(value, "delta", 0);

	if (delta != 0 && delta != (int64_t)p->delta + 1)
		return AVA_ENOENT;
	if (delta == 0) {
		agent_position_fini(p);
		*p = (struct agent_position){0};
	}
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		if (!field_set(p, i, json_get_int(value, fields[i].key, 0)))
			return AVA_ECORRUPT;
	if (said != NULL) {
		free(p->said);
		p->said = said[0] != '\0' ? strdup(said) : NULL;
		if (said[0] != '\0' && p->said == NULL)
			return AVA_ENOMEM;
	}
	return read_repeats(p, json_object_get(value, "repeats"));
}

void agent_position_fini(struct agent_position *p)
{
	repeat_free(p->repeats);
	free(p->said);
	p->repeats = NULL;
	p->said = NULL;
}

/* ---- a machine */

int64_t agent_used_ms(const struct agent *a, int64_t now_ms)
{
	return a->started_ms < 0 ? a->at.used_ms : now_ms - a->started_ms;
}

void agent_clock_stop(struct agent *a)
{
	if (a->started_ms < 0)
		return;
	a->at.used_ms = a->io->now(a) - a->started_ms;
	a->started_ms = -1;
	a->deadline_ms = INT64_MAX;
	a->io->wake_at(a, a->deadline_ms);
}

void agent_clock_go(struct agent *a)
{
	if (a->started_ms >= 0 || !a->have_slot)
		return;
	a->started_ms = a->io->now(a) - a->at.used_ms;
	if (__builtin_add_overflow(a->started_ms, a->spec->limits.time_ms, &a->deadline_ms))
		a->deadline_ms = INT64_MAX;
	a->io->wake_at(a, a->deadline_ms);
}

void agent_position_of(const struct agent *a, int64_t now_ms, struct agent_position *p)
{
	*p = a->at;
	p->used_ms = agent_used_ms(a, now_ms);
}

const char *agent_position_sentence(const json_t *value)
{
	const char *overflow = json_get_str(value, "overflow");

	return overflow != NULL ? overflow : json_str(value, "repeated");
}

static void too_large(struct agent *a, const char *error_class, const char *sentence)
{
	a->at.overflowed = true;
	snprintf(a->reply_class, sizeof(a->reply_class), "%s", error_class);
	snprintf(a->reply_error, sizeof(a->reply_error), "%s", sentence);
}

void agent_too_large(struct agent *a, const struct agent_told *told, const char *error_class,
		     const char *sentence)
{
	too_large(a, error_class, sentence);
	if (!limit_learn(a, told))
		return;
	/* Lower the output first: for this once the conversation stays whole. */
	a->at.overflowed = a->at.halvings++ >= COMPACT_HALVINGS;
	a->at.compact_floor = MAX(a->at.compact_floor, limit_next_input(a) + 1);
}

void agent_restore(struct agent *a, struct agent_position *p, const char *sentence)
{
	assert(a->state == AGENT_QUEUED && !a->slot_wanted && a->turn == NULL);
	agent_position_fini(&a->at);
	a->at = *p;
	p->repeats = NULL;
	p->said = NULL;
	if (p->overflowed)
		too_large(a, "context_overflow", sentence);
	else if (p->wrapping)
		snprintf(a->reply_error, sizeof(a->reply_error), "%s", sentence);
}

void agent_resume_reply(struct agent *a, struct turn *t, int64_t bytes)
{
	assert(a->state == AGENT_QUEUED && !a->slot_wanted && a->turn == NULL && !a->at.again);
	limit_settle(a, &t->usage);
	a->at.new_bytes += bytes;
	a->at.totals.tool_calls += (int32_t)t->ncalls;
	a->turn = t;
	a->asked = a->reply_ready = true;
	a->reply_saved = a->replayed = true;
}

/* ---- A table of the newest calls by the print of name and arguments.
 *
 * A call counts as the same only while nothing in between may have changed the world: a test
 * that runs again after an edit is no repetition. A possible change is a call of a tool that is
 * not repeatable, when that call or its result is new; so two such calls by turns, without end
 * and without news, are found as well.
 *
 * A result removed from the conversation does not count as the same: asked for again it is given
 * again, and counted when it is removed again.
 *
 * Prints are 64 bits (FNV-1a): a person who makes two results collide on purpose only makes a
 * model read the older of them. Only memory can fail. */

static uint64_t position_print(uint64_t h, const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)s[i]) * UINT64_C(0x100000001b3);
	return (h ^ len) * UINT64_C(0x100000001b3);
}

bool call_ref_read(const char *id, struct call_ref *out)
{
	int end = 0;

	*out = (struct call_ref){0};
	return sscanf(id, "c%9d.%9u%n", &out->iteration, &out->n, &end) == 2 && id[end] == 0 &&
	       out->iteration > 0 && out->n > 0;
}

void repeat_free(struct repeats *r)
{
	if (r != NULL)
		free(r->calls);
	free(r);
}

int repeat_copy(const struct repeats *r, struct repeats **out)
{
	struct repeats *copy = r != NULL ? calloc(1, sizeof(*copy)) : NULL;

	if (r != NULL && (copy == NULL || !ARRAY_ROOM(copy->calls, copy->cap, MAX(r->n, 1)))) {
		repeat_free(copy);
		return AVA_ENOMEM;
	}
	if (r != NULL) {
		memcpy(copy->calls, r->calls, r->n * sizeof(r->calls[0]));
		copy->n = r->n;
	}
	*out = copy;
	return 0;
}

static struct repeat_call *find_at(const struct repeats *r, struct call_ref at)
{
	for (unsigned i = 0; r != NULL && i < r->n; i++)
		if (r->calls[i].at.iteration == at.iteration && r->calls[i].at.n == at.n)
			return &r->calls[i];
	return NULL;
}

static struct repeat_print repeat_print(const struct turn_call *c)
{
	const uint64_t seed = UINT64_C(0xcbf29ce484222325);
	/* Arguments for an unknown tool do not make it another call. */
	const char *args = c->tool != NULL && c->args != NULL ? c->args : "";

	return (struct repeat_print){
		.call = position_print(position_print(seed, c->name, strlen(c->name)), args,
				       strlen(args)),
		.result = position_print(seed + c->success, c->output, c->output_len),
	};
}

static int repeat_add(struct repeats **table, struct call_ref at, struct repeat_print print,
		      bool changes, struct repeat_note *out)
{
	struct repeats *r = *table != NULL ? *table : calloc(1, sizeof(*r));
	struct repeat_call *seen;
	bool same, fetched;

	*out = (struct repeat_note){.times = 1};
	*table = r;
	if (r == NULL)
		return AVA_ENOMEM;
	seen = position_find(r, print.call);
	same = seen != NULL && seen->result == print.result;
	fetched = same && seen->gone;
	if (same && !seen->gone) {
		/* The conversation has this result already: count it once a reply. */
		if (seen->changes != r->changes)
			seen->times = 1;
		if (seen->last != at.iteration)
			seen->times = (uint8_t)MIN(seen->times + 1, UINT8_MAX);
		seen->changes = r->changes;
		seen->last = at.iteration;
		seen->due = true;
		out->times = MAX(seen->times, 2u);
		out->from = seen->at;
		return 0;
	}
	r->changes += !same && changes;
	seen = position_row(r, print.call);
	if (seen == NULL)
		return AVA_ENOMEM;
	*seen = (struct repeat_call){
		.call = print.call,
		.result = print.result,
		.at = at,
		.last = at.iteration,
		.changes = r->changes,
		.times = 1,
		.removed = fetched ? seen->removed : 0,
		.fetched = fetched,
		.due = true,
	};
	return 0;
}

#define REFUSAL_MAX 400 /* bytes of a repeated error */

/* Did the call fail for an unknown tool or misfit arguments? */
static bool call_is_vain(const struct turn_call *c)
{
	return !c->ran && (strcmp(c->error_class, "unknown_tool") == 0 ||
			   strcmp(c->error_class, "bad_arguments") == 0);
}

const struct turn_call *repeat_vain(const struct turn *t, uint8_t *vain)
{
	const struct turn_call *last = NULL;
	bool all = t->ncalls > 0;

	for (unsigned i = 0; i < t->ncalls; i++) {
		const struct turn_call *c = &t->calls[i];

		all = all && call_is_vain(c);
		last = c;
		if (c->ran)
			*vain = 0;
	}
	*vain = (uint8_t)MIN(*vain + all, UINT8_MAX);
	return all ? last : NULL;
}

int repeat_turn(struct repeats **r, struct turn *t, const struct turn_call **worst,
		struct repeat_note *how)
{
	*worst = NULL;
	*how = (struct repeat_note){.times = 1};
	for (unsigned i = 0; i < t->ncalls; i++) {
		struct turn_call *c = &t->calls[i];
		struct repeat_note note;
		struct call_ref at;
		const char *text;

		if (!c->ran && !call_is_vain(c))
			continue;
		(void)call_ref_read(c->id, &at);
		if (repeat_add(r, at, repeat_print(c),
			       c->ran && !(c->tool->flags & TOOL_REPEATABLE), &note) != 0)
			return AVA_ENOMEM;
		if (note.times == 1)
			continue;
		if (c->ran && (c->success || c->output_len > REFUSAL_MAX)) {
			text = arena_fmt(&t->mem, "unchanged since c%d.%u",
					 (int)note.from.iteration, note.from.n);
			if (text == NULL)
				return AVA_ENOMEM;
			c->output = text;
			c->output_len = strlen(text);
		} /* otherwise the output itself says what to do */
		if (note.times <= how->times)
			continue;
		*worst = c;
		*how = note;
	}
	return 0;
}

void repeat_removed(struct repeats *r, struct call_ref at)
{
	struct repeat_call *seen = find_at(r, at);

	if (seen == NULL || seen->gone)
		return;
	seen->gone = seen->due = true;
	seen->fetched = false;
	seen->removed = (uint8_t)MIN(seen->removed + 1, UINT8_MAX);
}

bool repeat_fetched(const struct repeats *r, struct call_ref at, unsigned *removed)
{
	const struct repeat_call *seen = find_at(r, at);

	*removed = seen != NULL ? seen->removed : 0;
	return seen != NULL && seen->fetched;
}
