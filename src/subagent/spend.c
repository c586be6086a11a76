/* Spend of a day; spend.h. A day is a local date, compared as text; a clock
 * set back over midnight leaves what was counted under the later day alone.
 * Nothing can fail: sums stop at their ends. */
#include "subagent/spend.h"

#include <string.h>

#include "base/clock.h"

static int64_t sum(int64_t a, int64_t b)
{
	int64_t out;

	if (b <= 0)
		return a;
	return __builtin_add_overflow(a, b, &out) ? INT64_MAX : out;
}

void spend_add(struct spend *s, int64_t ended_ms, int64_t microusd, int64_t tokens,
	       int64_t uncosted_calls)
{
	char day[sizeof(s->day)];
	int order;

	clock_local_date(ended_ms, day);
	order = strcmp(day, s->day);
	if (order < 0)
		return;
	if (order > 0) {
		*s = (struct spend){0};
		memcpy(s->day, day, sizeof(day));
	}
	s->newest_ms = ended_ms > s->newest_ms ? ended_ms : s->newest_ms;
	s->microusd = sum(s->microusd, microusd);
	s->tokens = sum(s->tokens, tokens);
	s->runs++;
	s->uncosted += uncosted_calls > 0;
}

struct spend spend_today(const struct spend *s, int64_t now_ms)
{
	struct spend out = {0};

	clock_local_date(now_ms, out.day);
	return strcmp(out.day, s->day) == 0 ? *s : out;
}
