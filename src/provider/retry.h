/* What becomes of an attempt at a model call that gave no reply: again after a
 * while, or an end with a sentence. Pure: time and chance are given, so that
 * the simulated world and the real one decide alike.
 *
 * x-should-retry wins; else connection failures, timeouts, broken streams, 408,
 * 409, 429 and 5xx are worth another attempt. The wait is what the service asks
 * for (retry-after-ms, retry-after as seconds or as a date), at most
 * `told_max_ms`, else decorrelated jitter: a random time between `base_ms` and
 * three times the last wait. Nothing is tried past the horizon or the time of
 * the run. A 400 is never just sent again. */
#ifndef PROVIDER_RETRY_H
#define PROVIDER_RETRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "provider/stream.h"

struct retry_policy {
	int64_t base_ms, cap_ms; /* of our own waits */
	int64_t told_max_ms;     /* longer waits asked for by the service are not kept */
	int64_t horizon_ms;      /* from the first failure of a call */
	unsigned broken_max;     /* replies cut or not understood: each may have been billed */
};
extern const struct retry_policy retry_default; /* 500, 60,000, 600,000, 1,800,000, 5 */

struct retry {            /* of one call; all zero before its first failure */
	int64_t since_ms; /* monotonic, of the first failure */
	int64_t last_ms;  /* the last wait of our own */
	uint16_t failures, overloads, broken;
	bool repaired; /* the one automatic repair was made */
};

struct retry_failure {
	enum reply_class cls;
	int status; /* of HTTP; 0: none came */
	/* Headers of the response, borrowed; NULL: absent. */
	const char *should_retry, *after_ms, *after, *date;
};

struct retry_when {
	int64_t mono_ms, wall_ms;
	int64_t deadline_ms; /* of the run, monotonic; INT64_MAX: none */
	uint64_t chance;     /* random bits */
};

enum retry_verdict {
	RETRY_AGAIN,    /* after wait_ms */
	RETRY_FINAL,    /* another attempt would fail the same way */
	RETRY_TOLD_NOT, /* x-should-retry: false */
	RETRY_TOO_LONG, /* the service asks for a wait over told_max_ms: wait_ms */
	RETRY_LATE,     /* the run's time would be over: wait_ms */
	RETRY_HORIZON,  /* tried for long enough */
	RETRY_BROKEN,   /* broken_max replies broke */
};

struct retry_plan {
	enum retry_verdict verdict;
	int64_t wait_ms;
	bool told; /* the service said how long */
};

/* Counts the failure in *r and decides. */
void retry_decide(struct retry *r, const struct retry_policy *p, const struct retry_failure *f,
		  const struct retry_when *w, struct retry_plan *out);

/* Is it time for another model? On overload only: when the verdict is no more
 * attempts, when the service asks for a wait of a sixtieth of the horizon
 * (30 s: a run has ten minutes), or after three failures and that time, the
 * coming wait included. */
bool retry_fallback_due(const struct retry *r, const struct retry_policy *p,
			const struct retry_failure *f, const struct retry_plan *plan,
			int64_t now_ms);

/* That sixtieth: also how long one waits at a closed gate for the first model. */
int64_t retry_fallback_ms(const struct retry_policy *p);

/* An overload: the gate slows down for these. */
bool retry_congested(enum reply_class cls);
/* What the headers ask for in ms; -1: nothing that can be understood. */
int64_t retry_asked(const struct retry_failure *f, int64_t wall_ms);
/* A date of HTTP in any of its three forms, ms since 1970; -1: it is none. */
int64_t retry_date(const char *s);

/* The sentence a run ends with: what happened and what to do. */
struct retry_words {
	const char *provider, *model, *key_name; /* "anthropic", …, "ANTHROPIC_API_KEY" */
	const char *base_url;
	const char *text; /* what the service or the network said; "" */
	int status;
	int64_t context; /* the model's window, tokens; 0: unknown */
};
void retry_sentence(const struct retry *r, const struct retry_plan *plan, enum reply_class cls,
		    const struct retry_words *w, int64_t now_ms, char *out, size_t size);

#endif
