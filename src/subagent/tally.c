/* See tally.h.
 *
 * Happy path: the row of a name is looked for from the oldest on, as a process has few, and made
 * when there is none. Nothing is allocated, and nothing can fail: a name that is too long is cut,
 * one too many is "other". The last rows of a kind are kept for that, one for each status. */
#include "subagent/tally.h"

#include <ava.h>
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "agent/turn.h"
#include "base/util.h"
#include "codec/utf8.h"

#define OTHER     "other"
#define ROWS_FREE (TALLY_ROWS - AVA_NSTATUSES)

int64_t tally_bound_ms(unsigned bound)
{
	return INT64_C(10) << bound;
}

/* Readers take valid UTF-8 only, which a path need not be, nor a name that was cut. */
static void tally_clean(const char *name, char out[TALLY_NAME])
{
	size_t len = strnlen(name, TALLY_NAME - 1);

	memcpy(out, name, len);
	out[len] = '\0';
	for (char *s = out; !utf8_valid(out, len) && *s; s++)
		*s = *s & 0x80 ? '?' : *s;
}

static unsigned tally_model_of(struct tally *t, const char *name)
{
	char clean[TALLY_NAME];
	unsigned i = 0;

	tally_clean(name, clean);
	if (t->nmodels == 0)
		snprintf(t->models[t->nmodels++].name, TALLY_NAME, OTHER);
	while (i < t->nmodels && strcmp(t->models[i].name, clean) != 0)
		i++;
	if (i == TALLY_MODELS)
		return 0;
	if (i == t->nmodels)
		memcpy(t->models[t->nmodels++].name, clean, TALLY_NAME);
	return i;
}

void tally_call(struct tally *t, const char *model, const struct usage *u, int64_t ms)
{
	const int64_t cached = MAX(u->cache_read, 0) + MAX(u->cache_write, 0);
	const int64_t n[TALLY_NTOKENS] = {
		[TALLY_INPUT] = u->input - cached,
		[TALLY_CACHE_READ] = u->cache_read,
		[TALLY_CACHE_WRITE] = u->cache_write,
		[TALLY_OUTPUT] = u->output - MAX(u->reasoning, 0),
		[TALLY_REASONING] = u->reasoning,
	};
	struct tally_model *m;
	unsigned bucket = 0;

	if (!t)
		return;
	m = &t->models[tally_model_of(t, model)];
	for (unsigned i = 0; i < TALLY_NTOKENS; i++)
		m->tokens[i] = sum_to_max(m->tokens[i], MAX(n[i], 0));
	m->microusd = sum_to_max(m->microusd, MAX(u->cost_microusd, 0));
	if (ms < 0)
		return;
	while (bucket < TALLY_BOUNDS && ms > tally_bound_ms(bucket))
		bucket++;
	m->took[bucket]++;
	m->ms += ms;
}

static void tally_add_to(struct tally *t, enum tally_kind kind, const char *name, unsigned model,
			 unsigned status)
{
	struct tally_row *row = t->rows[kind], *end = row + t->nrows[kind];

	while (row < end &&
	       (row->model != model || row->status != status || strcmp(row->name, name) != 0))
		row++;
	if (row == end && t->nrows[kind] >= ROWS_FREE && (model != 0 || strcmp(name, OTHER) != 0)) {
		tally_add_to(t, kind, OTHER, 0, status);
		return;
	}
	if (row == end) {
		assert(t->nrows[kind] < TALLY_ROWS); /* one "other" a status */
		t->nrows[kind]++;
		snprintf(row->name, TALLY_NAME, "%s", name);
		row->model = (uint8_t)model;
		row->status = (uint8_t)status;
	}
	row->n++;
}

void tally_add(struct tally *t, enum tally_kind kind, const char *name, const char *model,
	       unsigned status)
{
	char clean[TALLY_NAME];

	if (!t)
		return;
	tally_clean(name, clean);
	tally_add_to(t, kind, clean, model ? tally_model_of(t, model) : 0, status);
}
