/* A table of the newest calls by the print of name and arguments.
 *
 * A call counts as the same only while nothing else happened in between that
 * may have changed the world: a test that is run again after an edit is no
 * repetition. What may have changed it is a call of a tool that is not
 * repeatable, when that call or its result is new; so two such calls by turns,
 * without end and without news, are found as well.
 *
 * A result that was removed from the conversation is not the same any more:
 * asked for again it is given again, and counted when it is removed again.
 *
 * Prints are 64 bits (FNV-1a): who makes two results collide on purpose makes a
 * model read the older of them. Only memory can fail. */
#include "agent/repeat.h"

#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/tool.h"
#include "agent/turn.h"
#include "base/util.h"

static uint64_t print(uint64_t h, const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)s[i]) * UINT64_C(0x100000001b3);
	return (h ^ len) * UINT64_C(0x100000001b3);
}

bool call_ref_before(struct call_ref a, struct call_ref b)
{
	return a.iteration < b.iteration || (a.iteration == b.iteration && a.n < b.n);
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

static struct repeat_call *find(const struct repeats *r, uint64_t call)
{
	for (unsigned i = 0; i < r->n; i++)
		if (r->calls[i].call == call)
			return &r->calls[i];
	return NULL;
}

static struct repeat_call *find_at(const struct repeats *r, struct call_ref at)
{
	for (unsigned i = 0; r != NULL && i < r->n; i++)
		if (r->calls[i].at.iteration == at.iteration && r->calls[i].at.n == at.n)
			return &r->calls[i];
	return NULL;
}

/* A place for one more; NULL: no memory. */
static struct repeat_call *place(struct repeats *r)
{
	unsigned cap = r->cap > 0 ? MIN(r->cap * 2, REPEAT_CALLS) : 8;
	struct repeat_call *grown;

	if (r->n == r->cap && r->cap < REPEAT_CALLS) {
		grown = realloc(r->calls, cap * sizeof(*grown));
		if (grown == NULL)
			return NULL;
		r->calls = grown;
		r->cap = cap;
	}
	if (r->n < r->cap)
		return &r->calls[r->n++];
	r->next = (r->next + 1) % REPEAT_CALLS;
	return &r->calls[(r->next + REPEAT_CALLS - 1) % REPEAT_CALLS];
}

struct repeat_print repeat_print(const struct turn_call *c)
{
	const uint64_t seed = UINT64_C(0xcbf29ce484222325);
	const char *args = c->args != NULL ? c->args : "";

	return (struct repeat_print){
		.call = print(print(seed, c->name, strlen(c->name)), args, strlen(args)),
		.result = print(seed + c->success, c->output, c->output_len),
	};
}

/* In the conversation already: counted, once a reply. */
static void again(struct repeats *r, struct repeat_call *seen, int32_t iteration,
		  struct repeat_note *out)
{
	if (seen->changes != r->changes)
		seen->times = 1;
	if (seen->last != iteration)
		seen->times = (uint8_t)MIN(seen->times + 1, UINT8_MAX);
	seen->changes = r->changes;
	seen->last = iteration;
	out->times = MAX(seen->times, 2u);
	out->from = seen->at;
}

int repeat_add(struct repeats **table, struct call_ref at, struct repeat_print print, bool changes,
	       struct repeat_note *out)
{
	struct repeats *r = *table != NULL ? *table : calloc(1, sizeof(*r));
	struct repeat_call *seen;
	bool same, fetched;

	*out = (struct repeat_note){.times = 1};
	*table = r;
	if (r == NULL)
		return AVA_ENOMEM;
	seen = find(r, print.call);
	same = seen != NULL && seen->result == print.result;
	fetched = same && seen->gone;
	if (same && !seen->gone) {
		again(r, seen, at.iteration, out);
		return 0;
	}
	r->changes += !same && changes;
	if (seen == NULL)
		seen = place(r);
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
	};
	return 0;
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

		if (!c->ran || c->tool == NULL)
			continue; /* it did not run: its answer says what to do */
		(void)call_ref_read(c->id, &at);
		if (repeat_add(r, at, repeat_print(c), !(c->tool->flags & TOOL_REPEATABLE),
			       &note) != 0)
			return AVA_ENOMEM;
		if (note.times == 1)
			continue;
		text = arena_fmt(&t->mem, "unchanged since c%d.%u", (int)note.from.iteration,
				 note.from.n);
		if (text == NULL)
			return AVA_ENOMEM;
		c->output = text;
		c->output_len = strlen(text);
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
	seen->gone = true;
	seen->fetched = false;
	seen->removed = (uint8_t)MIN(seen->removed + 1, UINT8_MAX);
}

bool repeat_fetched(const struct repeats *r, struct call_ref at, unsigned *removed)
{
	const struct repeat_call *seen = find_at(r, at);

	*removed = seen != NULL ? seen->removed : 0;
	return seen != NULL && seen->fetched;
}
