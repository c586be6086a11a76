/* Costs of ended runs, by the day for who asks, and by the period of each budget.
 *
 * A start adds up the ends of the catalog, of which wal/catalog keeps the sums (past.h): so a month
 * of runs costs a start no more than a day of them. Other budgets than those that were added up
 * have other names: then the whole catalog is read once. Sums stop at their ends; nothing can
 * fail. */
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/util.h"
#include "subagent/budget.h"

void spend_add(struct spend *s, int64_t ended_ms, int64_t now_ms, int64_t microusd, int64_t tokens,
	       int64_t uncosted_calls)
{
	char day[sizeof(s->day)];
	int order;

	if (s->newest_ms > now_ms + BUDGET_BACK_MS)
		*s = (struct spend){0};
	if (ended_ms > now_ms + BUDGET_BACK_MS)
		return;
	clock_local_date(ended_ms, day);
	order = strcmp(day, s->day);
	if (order < 0)
		return;
	if (order > 0) {
		*s = (struct spend){0};
		memcpy(s->day, day, sizeof(day));
	}
	s->newest_ms = ended_ms > s->newest_ms ? ended_ms : s->newest_ms;
	s->microusd = sum_to_max(s->microusd, MAX(microusd, 0));
	s->tokens = sum_to_max(s->tokens, MAX(tokens, 0));
	s->runs++;
	s->uncosted += uncosted_calls > 0;
}

struct spend spend_today(const struct spend *s, int64_t now_ms)
{
	struct spend out = {0};

	clock_local_date(now_ms, out.day);
	return strcmp(out.day, s->day) == 0 ? *s : out;
}

unsigned budgets_list(const struct settings *s, struct budget_of out[SETTINGS_BUDGETS])
{
	const int64_t all[CLOCK_PERIODS] = {s->budget_day_cents, s->budget_week_cents,
					    s->budget_month_cents};
	unsigned n = 0;

	for (size_t row = 0; row <= s->nbudgets; row++) {
		const struct settings_budget *b = row > 0 ? &s->budgets[row - 1] : NULL;

		for (unsigned p = 0; p < CLOCK_PERIODS && n < SETTINGS_BUDGETS; p++) {
			int64_t cents = b ? b->cents[p] : all[p];

			if (cents > 0 || n == 0)
				out[n++] = (struct budget_of){b ? b->of : "", (enum clock_period)p,
							      cents * 10000};
		}
	}
	return n;
}

static bool budget_covers(const char *of, const char *cwd, const char *tags)
{
	size_t len = strlen(of);

	if (of[0] != '/')
		return len == 0 || list_has(tags, ' ', of);
	return strncmp(cwd, of, len) == 0 && (of[len - 1] == '/' || cwd[len] == '/' || !cwd[len]);
}

uint64_t budgets_of_run(const struct budget_of *list, unsigned n, const char *cwd, const char *tags)
{
	char real[PATH_MAX] = "";
	uint64_t set = 0;

	for (unsigned i = 0; i < n; i++) {
		if (list[i].of[0] == '/' && !real[0] && cwd[0] && realpath(cwd, real))
			cwd = real;
		set |= (uint64_t)budget_covers(list[i].of, cwd, tags) << i;
	}
	return set;
}

void spends_init(struct spends *s, const struct settings *settings)
{
	struct budget_of list[SETTINGS_BUDGETS];
	unsigned n = settings ? budgets_list(settings, list) : 0;
	struct hash_sha256 h;
	unsigned char sum[32];

	*s = (struct spends){0};
	if (n < 2)
		return;
	hash_sha256_init(&h);
	for (unsigned i = 1; i < n; i++) {
		hash_sha256_add(&h, list[i].of, strlen(list[i].of) + 1);
		hash_sha256_add(&h, &list[i].period, sizeof(list[i].period));
	}
	hash_sha256_end(&h, sum);
	memcpy(&s->names, sum, sizeof(s->names));
}

void spends_add(struct spends *s, const struct settings *settings, const char *cwd,
		const char *tags, int64_t ended_ms, int64_t now_ms, int64_t microusd)
{
	struct budget_of list[SETTINGS_BUDGETS];
	char day[11], latest[11], begins[11];
	uint64_t set;
	unsigned n;

	if (s->names == 0 || ended_ms > now_ms + BUDGET_BACK_MS)
		return;
	n = budgets_list(settings, list);
	set = budgets_of_run(list, n, cwd, tags);
	clock_local_date(ended_ms, day);
	clock_local_date(now_ms + BUDGET_BACK_MS, latest);
	for (unsigned i = 1; i < n; i++) {
		if (!(set >> i & 1))
			continue;
		clock_period(day, list[i].period, begins);
		if (strcmp(s->of[i].begins, latest) > 0) /* the clock was ahead */
			s->of[i].begins[0] = '\0';
		if (strcmp(begins, s->of[i].begins) < 0)
			continue;
		if (strcmp(begins, s->of[i].begins) > 0)
			s->of[i].microusd = 0;
		memcpy(s->of[i].begins, begins, sizeof(begins));
		s->of[i].microusd = sum_to_max(s->of[i].microusd, MAX(microusd, 0));
	}
}
