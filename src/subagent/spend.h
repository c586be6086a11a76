/* What was spent today: the runs that have ended since midnight, local time.
 * Told at start for the whole catalog and at each end, so that asking costs
 * nothing however many runs there are. Pure; the time is given. */
#ifndef SUBAGENT_SPEND_H
#define SUBAGENT_SPEND_H

#include <stdint.h>

struct spend {
	char day[11];      /* "2026-11-21"; "": none yet */
	int64_t newest_ms; /* end of the newest run of that day; 0: none yet */
	int64_t microusd, tokens;
	uint64_t runs, uncosted; /* of them with calls of unknown price */
};

/* A run that ended at `ended_ms` (wall). One of an earlier day than the newest
 * seen does not count. */
void spend_add(struct spend *s, int64_t ended_ms, int64_t microusd, int64_t tokens,
	       int64_t uncosted_calls);
/* Of the day `now_ms` is in. */
struct spend spend_today(const struct spend *s, int64_t now_ms);

#endif
