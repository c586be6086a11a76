/* Time: the quickest and the slowest tenth of the history, rounded up to
 * minutes. Cost: never more than the limit, nothing for a free model. The
 * history is a ring a role, fed by the catalog and by each end. */
#include "subagent/quote.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/tool.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "subagent/spec.h"
#include "subagent/spec_ask.h"

void quotes_add(struct quotes *q, const char *role, int64_t duration_ms, int64_t cost_microusd)
{
	struct quote_history *h = NULL;

	for (unsigned i = 0; i < q->nroles; i++)
		if (strcmp(q->roles[i].role, role) == 0)
			h = &q->roles[i];
	if (!h) {
		if (q->nroles == QUOTE_ROLES || strlen(role) >= sizeof(h->role))
			return;
		h = &q->roles[q->nroles++];
		snprintf(h->role, sizeof(h->role), "%s", role);
	}
	h->ms[h->at] = (uint32_t)MIN(MAX(duration_ms, 0), (int64_t)UINT32_MAX);
	h->cost_microusd[h->at] = cost_microusd;
	h->at = (h->at + 1) % QUOTE_HISTORY;
	if (h->n < QUOTE_HISTORY)
		h->n++;
}

static int by_ms(const void *a, const void *b)
{
	const uint32_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static int minutes(int64_t ms)
{
	return (int)MAX((ms + 59999) / 60000, 1);
}

void quote_make(const struct quotes *q, const struct run_spec *s, struct quote *out)
{
	const struct agent_price *p = &s->agent.price;
	const struct quote_history *h = NULL;
	int64_t limit = s->agent.limits.time_ms;

	for (unsigned i = 0; i < q->nroles; i++)
		if (strcmp(q->roles[i].role, s->role->name) == 0)
			h = &q->roles[i];
	out->minutes_min = minutes(limit / 2);
	out->minutes_max = minutes(limit);
	if (h && h->n >= 5) {
		uint32_t sorted[QUOTE_HISTORY];

		memcpy(sorted, h->ms, h->n * sizeof(sorted[0]));
		qsort(sorted, h->n, sizeof(sorted[0]), by_ms);
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

/* Models that are asked where the first stays overloaded; nothing when there is none. */
static void write_fallback(struct jw *w, const struct run_spec *s)
{
	struct model m;
	uint16_t at = 0;

	if (!spec_next_model(s, &at, &m))
		return;
	jw_array(w, "fallback");
	do {
		jw_str(w, NULL, m.id);
	} while (spec_next_model(s, &at, &m));
	jw_end(w);
}

int quote_encode(struct buf *out, const struct quote *q, const struct run_spec *s,
		 const char *rationale)
{
	struct jw w;

	jw_init(&w, out);
	jw_object(&w, NULL);
	jw_array(&w, "minutes");
	jw_int(&w, NULL, q->minutes_min);
	jw_int(&w, NULL, q->minutes_max);
	jw_end(&w);
	if (q->cost_microusd < 0)
		jw_null(&w, "costCents");
	else
		jw_fixed(&w, "costCents", q->cost_microusd, 4);
	jw_int(&w, "tokens", q->tokens);
	jw_array(&w, "tools");
	for (unsigned i = 0; i < s->agent.ntools; i++)
		jw_str(&w, NULL, s->tools[i]->name);
	jw_end(&w);
	jw_str(&w, "model", s->model->id);
	write_fallback(&w, s);
	jw_str(&w, "role", s->role->name);
	jw_object(&w, "rights");
	jw_bool(&w, "private", s->rights_private);
	jw_bool(&w, "untrusted", s->rights_untrusted);
	jw_bool(&w, "out", s->rights_out);
	jw_end(&w);
	jw_array(&w, "grants");
	for (size_t i = 0; i < s->ngrants; i++)
		jw_str(&w, NULL, s->grants[i]);
	jw_end(&w);
	spec_ask_write(&w, s);
	jw_str(&w, "rationale", rationale);
	jw_end(&w);
	return buf_check(out);
}

/* "to find main", but "to answer: Where is main?": what does not begin with a
 * verb would make no sentence. */
static bool is_question(const char *task)
{
	static const char *const words[] = {"what", "which", "where", "who",   "whose", "when",
					    "why",  "how",   "is",    "are",   "was",   "does",
					    "do",   "did",   "can",   "could", "should"};
	size_t len = strlen(task), word = strcspn(task, " \t\n'");

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strlen(words[i]) == word && strncasecmp(task, words[i], word) == 0)
			return true;
	return len > 0 && task[len - 1] == '?';
}

/* The task as part of a sentence: one line, not too long, safe to show. */
void quote_task(struct buf *out, const char *task)
{
	size_t len, cut;
	struct buf line;
	bool question;

	task += strspn(task, " \t\r\n");
	question = is_question(task);
	len = strlen(task);
	cut = utf8_prefix(task, len, 200);
	buf_init(&line, 4096);
	for (size_t i = 0; i < cut; i++)
		buf_addc(&line,
			 task[i] == '\n' || task[i] == '\t' || task[i] == '\r' ? ' ' : task[i]);
	while (line.len && strchr(question ? " " : " .!", line.data[line.len - 1]))
		line.len--;
	/* "Find main" goes on a sentence as "find main"; "HTTP" stays. */
	if (!question && line.len > 1 && islower((unsigned char)line.data[1]))
		line.data[0] = (char)tolower((unsigned char)line.data[0]);
	buf_adds(out, question ? "answer: " : "");
	utf8_terminal(out, line.data ? line.data : "", line.len, false);
	buf_adds(out, cut < len ? "…" : question ? "" : ".");
	buf_fini(&line);
}

void quote_minutes(struct buf *out, const struct quote *q)
{
	if (q->minutes_min == q->minutes_max)
		buf_addf(out, "~%d minute%s\n", q->minutes_max, q->minutes_max == 1 ? "" : "s");
	else
		buf_addf(out, "~%d-%d minutes\n", q->minutes_min, q->minutes_max);
}

int quote_text(struct buf *out, const struct quote *q, const struct run_spec *s)
{
	bool offline = strncmp(s->model->id, "offline", 7) == 0;
	uint16_t at = 0;
	struct model m;

	buf_addf(out, "I'll spawn a %s subagent to ", s->role->display);
	quote_task(out, s->task);
	buf_adds(out, " Estimated:\n• Time: ");
	quote_minutes(out, q);
	if (q->cost_microusd < 0)
		buf_addf(out, "• Cost: unknown, held by %lld tokens\n",
			 (long long)s->agent.limits.tokens);
	else
		buf_addf(out, "• Cost: up to $%lld.%02lld%s\n",
			 (long long)(q->cost_microusd / 1000000),
			 (long long)(q->cost_microusd / 10000 % 100),
			 offline ? " (offline model, no key and no network)" : "");
	buf_adds(out, "• Tools: ");
	for (unsigned i = 0; i < s->agent.ntools; i++)
		buf_addf(out, "%s%s", i ? ", " : "", s->tools[i]->name);
	for (unsigned i = 0; i < s->agent.nask_before; i++)
		buf_addf(out, "%s%s", i ? ", " : "\n• Asks you before: ", s->ask_before[i]->name);
	if (spec_next_model(s, &at, &m)) {
		buf_addf(out, "\n• Model: %s; where it is overloaded %s", s->model->id, m.id);
		while (spec_next_model(s, &at, &m))
			buf_addf(out, ", %s", m.id);
	}
	buf_adds(out, "\nProceed? [Yes/No]");
	return buf_check(out);
}
