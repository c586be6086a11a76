/* Time: the quickest and the slowest tenth of the history, rounded up to
 * minutes. Cost: never more than the limit, nothing for a free model. The
 * history is a ring a role, fed by the catalog and by each end.
 *
 * Runs of a group take as long as the longest way through those that wait for each
 * other, and cost what all do; the group's own limits lower both. Nothing fails but
 * the buffer. */
#include "subagent/quote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/tool.h"
#include "base/util.h"
#include "base/words.h"
#include "codec/json.h"
#include "exec/repository.h"
#include "subagent/order.h"
#include "subagent/rights.h"
#include "subagent/spec.h"

static struct quote_history *history_of(struct quotes *q, const char *role)
{
	for (unsigned i = 0; i < q->nroles; i++)
		if (strcmp(q->roles[i].role, role) == 0)
			return &q->roles[i];
	return NULL;
}

void quotes_add(struct quotes *q, const char *role, int64_t duration_ms)
{
	struct quote_history *h = history_of(q, role);

	if (!h) {
		if (q->nroles == QUOTE_ROLES || strlen(role) >= sizeof(h->role))
			return;
		h = &q->roles[q->nroles++];
		snprintf(h->role, sizeof(h->role), "%s", role);
	}
	h->ms[h->at] = (uint32_t)MIN(MAX(duration_ms, 0), (int64_t)UINT32_MAX);
	h->at = (h->at + 1) % QUOTE_HISTORY;
	if (h->n < QUOTE_HISTORY)
		h->n++;
}

static int quote_by_ms(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static int minutes(int64_t ms)
{
	return (int)MAX((ms + 59999) / 60000, 1);
}

static void quote_one(const struct quotes *q, const struct run_spec *s, struct quote *out)
{
	const struct agent_price *p = &s->agent.price;
	const struct quote_history *h = history_of((struct quotes *)q, s->role->name);
	int64_t limit = s->agent.limits.time_ms;

	out->minutes_min = minutes(limit / 2);
	out->minutes_max = minutes(limit);
	if (h && h->n >= 5) {
		uint32_t sorted[QUOTE_HISTORY];

		memcpy(sorted, h->ms, h->n * sizeof(sorted[0]));
		qsort(sorted, h->n, sizeof(sorted[0]), quote_by_ms);
		out->minutes_min = minutes(MIN((int64_t)sorted[h->n / 10], limit));
		out->minutes_max = minutes(MIN((int64_t)sorted[h->n - 1 - h->n / 10], limit));
	}
	out->tokens = s->expected_tokens;
	out->cost_microusd = s->agent.limits.cost_microusd;
	if (p->input < 0 || p->output < 0)
		out->cost_microusd = -1;
	else if (p->input == 0 && p->output == 0)
		out->cost_microusd = 0;
}

static int lower_minutes(int minutes, int64_t time_ms)
{
	int64_t most = (time_ms + 59999) / 60000;

	return time_ms > 0 && minutes > most ? (int)most : minutes;
}

void quote_make(const struct quotes *q, struct run_spec *const *specs, unsigned n,
		struct quote *out)
{
	const struct spec_group *g = &specs[0]->group;
	struct after_set after[SPEC_GROUP_MAX];
	struct quote path[SPEC_GROUP_MAX]; /* minutes until the end of each run */
	int order[AFTER_MAX];
	size_t count;

	if (n == 1) {
		quote_one(q, specs[0], out);
		count = 0;
	} else {
		for (unsigned i = 0; i < n; i++)
			after[i] = specs[i]->group.after;
		*out = (struct quote){0};
		count = after_order(after, n, order);
	}
	for (size_t k = 0; k < count; k++) {
		struct quote *one = &path[order[k] - 1], longest = {0};

		quote_one(q, specs[order[k] - 1], one);
		for (int i = 1; i <= (int)n; i++)
			if (after_has(&after[order[k] - 1], i)) {
				longest.minutes_min =
					MAX(longest.minutes_min, path[i - 1].minutes_min);
				longest.minutes_max =
					MAX(longest.minutes_max, path[i - 1].minutes_max);
			}
		one->minutes_min += longest.minutes_min;
		one->minutes_max += longest.minutes_max;
		out->minutes_min = MAX(out->minutes_min, one->minutes_min);
		out->minutes_max = MAX(out->minutes_max, one->minutes_max);
		out->tokens += one->tokens;
		out->cost_microusd = one->cost_microusd < 0 || out->cost_microusd < 0
					     ? -1
					     : out->cost_microusd + one->cost_microusd;
	}
	if (!g->id[0])
		return;
	if (g->cost_microusd >= 0 && out->cost_microusd > g->cost_microusd)
		out->cost_microusd = g->cost_microusd;
	out->minutes_min = lower_minutes(out->minutes_min, g->time_ms);
	out->minutes_max = lower_minutes(out->minutes_max, g->time_ms);
}

/* ---- files that commands see */

bool quote_runs_commands(struct run_spec *const *specs, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < specs[i]->agent.ntools; k++)
			if (specs[i]->tools[k]->flags & TOOL_PROJECT)
				return true;
	return false;
}

const char *quote_git(const struct quotes *q, struct run_spec *const *s, struct repository *r)
{
	repository_find(r, quote_runs_commands(s, 1) ? (*s)->cwd : "", q->keep_out);
	return r->folder[0] ? r->folder : NULL;
}

/* ---- for programs */

static void quote_add_name(const char *names[QUOTE_NAMES_MAX], unsigned *n, const char *name)
{
	for (unsigned i = 0; i < *n; i++)
		if (strcmp(names[i], name) == 0)
			return;
	if (*n < QUOTE_NAMES_MAX)
		names[(*n)++] = name;
}

unsigned quote_names_of(struct run_spec *const *specs, unsigned n, bool grants,
			const char *names[QUOTE_NAMES_MAX])
{
	unsigned count = 0;

	for (unsigned i = 0; i < n; i++) {
		for (unsigned k = 0; !grants && k < specs[i]->agent.ntools; k++)
			quote_add_name(names, &count, specs[i]->tools[k]->name);
		for (size_t k = 0; grants && k < specs[i]->ngrants; k++)
			quote_add_name(names, &count, specs[i]->grants[k]);
	}
	return count;
}

static void quote_write_names(struct jw *w, const char *key, struct run_spec *const *specs,
			      unsigned n, bool grants)
{
	const char *names[QUOTE_NAMES_MAX];
	unsigned count = quote_names_of(specs, n, grants, names);

	jw_array(w, key);
	for (unsigned i = 0; i < count; i++)
		jw_str(w, NULL, names[i]);
	jw_end(w);
}

/* Files, skills and notes of the guide, without its text. */
static void write_guide_facts(struct jw *w, const struct run_spec *s)
{
	static const char *const keys[] = {"files", "skills", "notes"}, *const shown[] = {
										"instructions",
										"skills",
										"leftOut"};
	struct buf b;

	buf_init(&b, 1u << 20);
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		const json_t *list = json_object_get(s->guide, keys[i]);

		buf_reset(&b);
		if (list && json_dump(&b, list) == 0)
			jw_raw(w, shown[i], b.data, b.len);
	}
	buf_fini(&b);
}

const char *quote_how(struct run_spec *const *specs, unsigned n, bool brief)
{
	if (specs[0]->group.chain)
		return brief ? WORDS_IN_TURN : WORDS_HANDED_ON;
	for (unsigned i = 0; i < n; i++)
		if (!after_none(&specs[i]->group.after))
			return WORDS_AS_THEY_NEED;
	return WORDS_SIDE_BY_SIDE;
}

static void write_quote(struct jw *w, const struct quotes *q, struct run_spec *const *specs,
			unsigned n, bool group)
{
	const char *model = specs[0]->model->id, *git;
	const struct role *role = specs[0]->role;
	struct repository repository;
	struct model next;
	uint16_t at = 0;
	unsigned rights = 0;
	bool all_three = false;
	struct ava_error small;
	struct quote all;

	quote_make(q, specs, n, &all);
	jw_object(w, NULL);
	jw_array(w, "minutes");
	jw_int(w, NULL, all.minutes_min);
	jw_int(w, NULL, all.minutes_max);
	jw_end(w);
	spec_write_cost(w, all.cost_microusd);
	jw_int(w, "tokens", all.tokens);
	quote_write_names(w, "tools", specs, n, false);
	for (unsigned i = 0; i < n; i++) {
		rights |= specs[i]->rights;
		all_three |= rights_all_three(specs[i]->rights);
		if (strcmp(specs[i]->model->id, model) != 0)
			model = "several";
	}
	git = group ? NULL : quote_git(q, specs, &repository);
	if (git)
		jw_str(w, "git", git);
	jw_str(w, "model", model);
	/* The models that are asked where the first does not answer. */
	if (!group && spec_next_model(specs[0], &at, true, &next)) {
		jw_array(w, "fallback");
		do {
			jw_str(w, NULL, next.id);
		} while (spec_next_model(specs[0], &at, true, &next));
		jw_end(w);
	}
	for (unsigned i = 0; i < n; i++)
		if (spec_fits(specs[i], &small) != 0) {
			jw_str(w, "tooSmall", small.text);
			break;
		}
	order_quote_write(w, specs[0]);
	jw_str(w, "role", group ? "group" : role->name);
	if (!group && role->source != ROLE_BUILTIN) {
		jw_object(w, "roleFile");
		jw_str(w, "source", role_sources[role->source]);
		jw_str(w, "path", role->path);
		jw_str(w, "hash", role->hash);
		jw_end(w);
	}
	rights_write(w, "rights", rights);
	jw_bool(w, "allThree", all_three);
	quote_write_names(w, "grants", specs, n, true);
	if (!group) {
		spec_ask_write(w, specs[0]);
		write_guide_facts(w, specs[0]);
		if (specs[0]->group.name[0])
			jw_str(w, "id", specs[0]->group.name);
		spec_after_write(w, &specs[0]->group.after);
		spec_write_check(w, specs[0]);
	}
	jw_str(w, "rationale",
	       !group ? specs[0]->rationale[0] ? specs[0]->rationale : role->summary
		      : quote_how(specs, n, true));
	if (group) {
		jw_array(w, "members");
		for (unsigned i = 0; i < n; i++)
			write_quote(w, q, specs + i, 1, false);
		jw_end(w);
	}
	jw_end(w);
}

int quote_encode(struct buf *out, const struct quotes *q, struct run_spec *const *specs, unsigned n)
{
	struct jw w;

	jw_init(&w, out);
	write_quote(&w, q, specs, n, specs[0]->group.id[0] != 0);
	return buf_check(out);
}

int quote_config(struct buf *out, struct run_spec *const *specs, unsigned n)
{
	const struct spec_group *g = &specs[0]->group;
	struct jw w;

	if (!g->id[0])
		return buf_add(out, specs[0]->config, specs[0]->config_len);
	jw_init(&w, out);
	jw_object(&w, NULL);
	jw_object(&w, "group");
	jw_str(&w, "id", g->id);
	spec_write_cost(&w, g->cost_microusd);
	jw_fixed(&w, "seconds", g->time_ms, 3);
	jw_bool(&w, "share", g->share);
	jw_bool(&w, "chain", g->chain);
	jw_end(&w);
	jw_array(&w, "members");
	for (unsigned i = 0; i < n; i++)
		jw_raw(&w, NULL, specs[i]->config, specs[i]->config_len);
	jw_end(&w);
	jw_end(&w);
	return buf_check(out);
}
