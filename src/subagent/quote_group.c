/* Quotes of groups: side by side they take as long as the longest, one after
 * another as long as all; the group's own limits lower what they may cost and
 * take. Nothing fails but the buffer. */
#include "subagent/quote_group.h"

#include <string.h>

#include "agent/tool.h"
#include "base/util.h"
#include "codec/json.h"
#include "subagent/spec.h"

static int lower_minutes(int minutes, int64_t time_ms)
{
	int64_t most = (time_ms + 59999) / 60000;

	return time_ms > 0 && minutes > most ? (int)most : minutes;
}

void quote_group_make(const struct quotes *q, const struct quote_group *g, struct quote *out)
{
	*out = (struct quote){0};
	for (unsigned i = 0; i < g->n; i++) {
		struct quote one;

		quote_make(q, g->specs[i], &one);
		out->minutes_min = g->chain ? out->minutes_min + one.minutes_min
					    : MAX(out->minutes_min, one.minutes_min);
		out->minutes_max = g->chain ? out->minutes_max + one.minutes_max
					    : MAX(out->minutes_max, one.minutes_max);
		out->tokens += one.tokens;
		if (one.cost_microusd < 0 || out->cost_microusd < 0)
			out->cost_microusd = -1;
		else
			out->cost_microusd += one.cost_microusd;
	}
	if (g->cost_microusd >= 0 && out->cost_microusd > g->cost_microusd)
		out->cost_microusd = g->cost_microusd;
	out->minutes_min = lower_minutes(out->minutes_min, g->time_ms);
	out->minutes_max = lower_minutes(out->minutes_max, g->time_ms);
}

/* Does an earlier run have it? */
static bool tool_before(const struct quote_group *g, unsigned run, const struct tool *t)
{
	for (unsigned i = 0; i < run; i++)
		for (unsigned k = 0; k < g->specs[i]->agent.ntools; k++)
			if (g->specs[i]->tools[k] == t)
				return true;
	return false;
}

static bool grant_before(const struct quote_group *g, unsigned run, const char *grant)
{
	for (unsigned i = 0; i < run; i++)
		for (size_t k = 0; k < g->specs[i]->ngrants; k++)
			if (strcmp(g->specs[i]->grants[k], grant) == 0)
				return true;
	return false;
}

static const char *one_model(const struct quote_group *g)
{
	for (unsigned i = 1; i < g->n; i++)
		if (strcmp(g->specs[i]->model->id, g->specs[0]->model->id) != 0)
			return "several";
	return g->specs[0]->model->id;
}

static void write_rights(struct jw *w, const struct quote_group *g)
{
	bool private = false, untrusted = false, out = false;

	for (unsigned i = 0; i < g->n; i++) {
		private = private || g->specs[i]->rights_private;
		untrusted = untrusted || g->specs[i]->rights_untrusted;
		out = out || g->specs[i]->rights_out;
	}
	jw_object(w, "rights");
	jw_bool(w, "private", private);
	jw_bool(w, "untrusted", untrusted);
	jw_bool(w, "out", out);
	jw_end(w);
}

static void write_lists(struct jw *w, const struct quote_group *g)
{
	jw_array(w, "tools");
	for (unsigned i = 0; i < g->n; i++)
		for (unsigned k = 0; k < g->specs[i]->agent.ntools; k++)
			if (!tool_before(g, i, g->specs[i]->tools[k]))
				jw_str(w, NULL, g->specs[i]->tools[k]->name);
	jw_end(w);
	jw_str(w, "model", one_model(g));
	jw_str(w, "role", "group");
	write_rights(w, g);
	jw_array(w, "grants");
	for (unsigned i = 0; i < g->n; i++)
		for (size_t k = 0; k < g->specs[i]->ngrants; k++)
			if (!grant_before(g, i, g->specs[i]->grants[k]))
				jw_str(w, NULL, g->specs[i]->grants[k]);
	jw_end(w);
}

static void write_cost(struct jw *w, int64_t microusd)
{
	if (microusd < 0)
		jw_null(w, "costCents");
	else
		jw_fixed(w, "costCents", microusd, 4);
}

int quote_group_encode(struct buf *out, const struct quotes *q, const struct quote_group *g)
{
	struct quote all, one;
	struct buf part;
	struct jw w;

	quote_group_make(q, g, &all);
	jw_init(&w, out);
	jw_object(&w, NULL);
	jw_array(&w, "minutes");
	jw_int(&w, NULL, all.minutes_min);
	jw_int(&w, NULL, all.minutes_max);
	jw_end(&w);
	write_cost(&w, all.cost_microusd);
	jw_int(&w, "tokens", all.tokens);
	write_lists(&w, g);
	jw_str(&w, "rationale", g->chain ? "one after another" : "side by side");
	jw_array(&w, "members");
	for (unsigned i = 0; i < g->n; i++) {
		quote_make(q, g->specs[i], &one);
		buf_init(&part, 1u << 16);
		if (quote_encode(&part, &one, g->specs[i], g->specs[i]->role->summary) == 0)
			jw_raw(&w, NULL, part.data, part.len);
		buf_fini(&part);
	}
	jw_end(&w);
	jw_end(&w);
	return buf_check(out);
}

int quote_group_text(struct buf *out, const struct quotes *q, const struct quote_group *g)
{
	bool first = true;
	struct quote all;

	quote_group_make(q, g, &all);
	buf_addf(out, "I'll spawn %u subagents %s:\n", g->n,
		 g->chain ? "one after another, each with what the one before found"
			  : "side by side");
	for (unsigned i = 0; i < g->n; i++) {
		buf_addf(out, "%u. %s to ", i + 1, g->specs[i]->role->display);
		quote_task(out, g->specs[i]->task);
		buf_addc(out, '\n');
	}
	buf_adds(out, "Estimated, together:\n• Time: ");
	quote_minutes(out, &all);
	if (all.cost_microusd < 0)
		buf_addf(out, "• Cost: unknown, held by their tokens\n");
	else
		buf_addf(out, "• Cost: up to $%lld.%02lld\n",
			 (long long)(all.cost_microusd / 1000000),
			 (long long)(all.cost_microusd / 10000 % 100));
	buf_adds(out, "• Tools: ");
	for (unsigned i = 0; i < g->n; i++)
		for (unsigned k = 0; k < g->specs[i]->agent.ntools; k++) {
			if (tool_before(g, i, g->specs[i]->tools[k]))
				continue;
			buf_addf(out, "%s%s", first ? "" : ", ", g->specs[i]->tools[k]->name);
			first = false;
		}
	buf_adds(out, "\nProceed? [Yes/No]");
	return buf_check(out);
}

int quote_group_config(struct buf *out, const struct quote_group *g)
{
	const struct spec_group *lead = &g->specs[0]->group;
	struct jw w;

	jw_init(&w, out);
	jw_object(&w, NULL);
	jw_object(&w, "group");
	jw_str(&w, "id", lead->id);
	write_cost(&w, lead->cost_microusd);
	jw_fixed(&w, "seconds", lead->time_ms, 3);
	jw_bool(&w, "share", lead->share);
	jw_bool(&w, "chain", lead->chain);
	jw_end(&w);
	jw_array(&w, "members");
	for (unsigned i = 0; i < g->n; i++)
		jw_raw(&w, NULL, g->specs[i]->config, g->specs[i]->config_len);
	jw_end(&w);
	jw_end(&w);
	return buf_check(out);
}
