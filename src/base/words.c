/* The tables and the grammar of base/words.h.
 *
 * A status is looked up by its name in JSON; an unknown one is shown as it is. Nothing can fail:
 * a text that does not fit is cut. */
#include "base/words.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"

static const struct {
	const char *status, *words;
} statuses[] = {
	{"queued", "queued"},
	{"running", "running"},
	{"waiting", "waits for you"},
	{"parked", "parked"},
	{"blocked", "waits for others"},
	{"paused", "paused"},
	{"success", "complete"},
	{"cancelled", "cancelled"},
	{"error", "failed"},
	{"no_result", "no result"},
	{"not_started", "not started"},
	{"unproven", "unproven"},
	{"timeout", "time limit"},
	{"cost_exceeded", "cost limit"},
	{"tokens_exceeded", "token limit"},
	{"iterations_exceeded", "reply limit"},
};

static const struct words_limit limits[] = {
	{WORDS_LIMIT_TIME, 3, "timeout", "time", "timeout", "--timeout"},
	{WORDS_LIMIT_MONEY, 4, "cost_exceeded", "money", "max_cost_cents", "--max-cost-cents"},
	{WORDS_LIMIT_TOKENS, 0, "tokens_exceeded", "tokens", "max_tokens", "--max-tokens"},
	{WORDS_LIMIT_REPLIES, 0, "iterations_exceeded", "replies", "max_iterations",
	 "--max-iterations"},
};

static const char *const marks[] = {
	[WORDS_MARK_START] = "🚀 ", [WORDS_MARK_LOOK] = "🔍 ",      [WORDS_MARK_WAIT] = "⏳ ",
	[WORDS_MARK_ASK] = "❓ ",   [WORDS_MARK_DONE] = "✅ ",      [WORDS_MARK_LIMIT] = "⚠️ ",
	[WORDS_MARK_BAD] = "❌ ",   [WORDS_MARK_STOP] = "⏹️ ",
};

const char *words_status(const char *status)
{
	for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
		if (strcmp(status, statuses[i].status) == 0)
			return statuses[i].words;
	return status;
}

const struct words_limit *words_limit(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(limits); i++)
		if (strcmp(name, limits[i].status) == 0 || strcmp(name, limits[i].key) == 0)
			return &limits[i];
	return NULL;
}

const char *words_mark(enum words_mark mark, bool utf8)
{
	return utf8 ? marks[mark] : "";
}

bool words_imitates(const char *line)
{
	static const char *const openings[] = {"Subagent", "Proceed"};

	for (size_t i = 0; i < ARRAY_LEN(openings); i++) {
		size_t n = strlen(openings[i]);

		if (strncmp(line, openings[i], n) == 0 && (line[n] == ' ' || line[n] == '\0'))
			return true;
	}
	/* Compare only the mark's first character: a variation selector behind it may be
	 * missing. */
	for (size_t i = 0; i < ARRAY_LEN(marks); i++)
		if (strncmp(line, marks[i], strcspn(marks[i], " \xef")) == 0)
			return true;
	return false;
}

struct format words_amount(enum words_limit_kind kind, int64_t n)
{
	struct format f;

	switch (kind) {
	case WORDS_LIMIT_TIME:
		return format_time_limit(n);
	case WORDS_LIMIT_MONEY:
		return format_money_limit(n);
	case WORDS_LIMIT_TOKENS:
		snprintf(f.text, sizeof(f.text), "%.30s tokens", format_tokens_limit(n).text);
		return f;
	case WORDS_LIMIT_REPLIES:
		break;
	}
	snprintf(f.text, sizeof(f.text), "%" PRId64 " %s", n, n == 1 ? "reply" : "replies");
	return f;
}

struct format words_minutes(int least, int most)
{
	struct format f;

	if (least == most)
		snprintf(f.text, sizeof(f.text), "~%d minute%s", most, WORDS_S(most));
	else
		snprintf(f.text, sizeof(f.text), "~%d-%d minutes", least, most);
	return f;
}

/* Propose to go on with twice the limit, where that is known, or with the amount needed. */
static void end_at_limit(struct words_end *e, const struct words_limit *l, const char *run,
			 int64_t limit, int64_t needs)
{
	double wanted = needs > limit ? (double)needs : 2 * (double)limit;
	char by[64] = "";

	for (unsigned i = 0; i < l->decimals; i++)
		wanted /= 10;
	if (limit > 0)
		snprintf(by, sizeof(by), " %s %.15g", l->option, wanted);
	snprintf(e->what, sizeof(e->what), WORDS_STOPPED_AT "%s",
		 limit > 0 ? words_amount(l->kind, limit).text : l->what);
	if (*run)
		snprintf(e->next, sizeof(e->next), WORDS_GOES_ON(run, by));
}

/* Advice about an error, by its class or the reason to stop. */
static const struct {
	const char *words; /* apart by blanks */
	const char *first; /* in front of WORDS_GOES_ON */
	const char *by;    /* option of `ava resume` */
} remedies[] = {
	{"auth", "set a valid key (`ava doctor` says which), then ", ""},
	{"billing", "add credit at the service, then ", ""},
	{"network timeout server_error overloaded rate_limit truncated other",
	 "when its service answers again (`ava doctor` asks it), ", ""},
	{"wrong_address protocol wall",
	 "set the address of its service (`ava doctor` asks there), then ", ""},
	{"not_found", "name a model that its service has: ", " --model MODEL"},
	{"context_overflow request_too_large",
	 "name a model with a larger window: ", " --model MODEL"},
	{"bad_request refused refusal empty_replies pause_turn",
	 "name another model: ", " --model MODEL"},
	{"folder_gone", "put its folder back, then ", ""},
};

static void end_by_error(struct words_end *e, const char *run, const char *reason,
			 const char *error_class)
{
	const char *whys[] = {error_class, reason}, *first = "", *by = "";

	for (size_t i = 0; i < 2 * ARRAY_LEN(remedies) && !*first; i++) {
		const char *why = whys[i / ARRAY_LEN(remedies)];
		size_t row = i % ARRAY_LEN(remedies), n = strlen(why);
		const char *at = n > 0 ? strstr(remedies[row].words, why) : NULL;

		if (at && (at == remedies[row].words || at[-1] == ' ') &&
		    (!at[n] || at[n] == ' ')) {
			first = remedies[row].first;
			by = remedies[row].by;
		}
	}
	snprintf(e->what, sizeof(e->what), WORDS_FAILED(reason));
	for (char *c = e->what; *c; c++)
		*c = *c == '_' ? ' ' : *c;
	if (*run)
		snprintf(e->next, sizeof(e->next), "%s" WORDS_GOES_ON_AS, first, run, by);
}

struct words_end words_end(const char *run, const char *status, const char *reason,
			   const char *error_class, const char *error, int64_t limit, int64_t needs)
{
	const struct words_limit *l = words_limit(status);
	struct words_end e = {.mark = l ? WORDS_MARK_LIMIT : WORDS_MARK_BAD};

	if (strcmp(status, "success") == 0) {
		e.mark = WORDS_MARK_DONE;
		snprintf(e.what, sizeof(e.what), WORDS_COMPLETE);
	} else if (strcmp(status, "cancelled") == 0) {
		e.mark = WORDS_MARK_STOP;
		snprintf(e.what, sizeof(e.what), WORDS_CANCELLED);
	} else if (strcmp(status, "not_started") == 0) {
		e.mark = WORDS_MARK_STOP;
		snprintf(e.what, sizeof(e.what), WORDS_UNBEGUN);
		if (*run)
			snprintf(e.next, sizeof(e.next), WORDS_STARTS_IT(run));
	} else if (strcmp(status, "error") == 0) {
		end_by_error(&e, run, reason, error_class);
	} else if (strcmp(status, "no_result") == 0) {
		e.mark = WORDS_MARK_LIMIT;
		snprintf(e.what, sizeof(e.what), WORDS_NO_RESULT);
		if (*run)
			snprintf(e.next, sizeof(e.next), WORDS_GOES_ON(run, ""));
	} else if (strcmp(status, "unproven") == 0) {
		e.mark = WORDS_MARK_LIMIT;
		snprintf(e.what, sizeof(e.what), WORDS_UNPROVEN(error));
		if (*run)
			snprintf(e.next, sizeof(e.next), WORDS_GOES_ON(run, ""));
	} else if (l && *error) { /* the limit was not the run's own */
		snprintf(e.what, sizeof(e.what), WORDS_STOPPED(error));
		if (*run)
			snprintf(e.next, sizeof(e.next),
				 "when there is budget again, " WORDS_GOES_ON(run, ""));
	} else if (l) {
		end_at_limit(&e, l, run, limit, needs);
	}
	return e;
}
