/* The fate of an attempt at a model call that gave no reply: again after a
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

#include "base/list.h"
#include "provider/stream.h"

struct retry_policy {
	int64_t base_ms, cap_ms; /* bounds of waits that the service did not ask for */
	int64_t told_max_ms; /* longest wait that the service may ask for, else RETRY_TOO_LONG */
	int64_t park_ms;     /* a longer wait for a quota is spent without a slot (parks) */
	int64_t horizon_ms;  /* longest time from the first failure of a call to the last attempt */
	unsigned broken_max; /* most replies cut or not understood: each may have been billed */
};
extern const struct retry_policy retry_default; /* 500, 60,000, 600,000, 120,000, 1,800,000, 5 */
/* The policy for a conversation, where a person waits: a minute at most. */
extern const struct retry_policy retry_talk;

struct retry {            /* failures of one call; all zero before the first */
	int64_t since_ms; /* time of the first failure, monotonic */
	int64_t last_ms;  /* the last wait that the service did not ask for */
	uint16_t failures, broken;
};

struct retry_failure {
	enum reply_class cls;
	int status; /* status of HTTP; 0: no response */
	/* Headers of the response, borrowed; NULL: absent. */
	const char *should_retry, *after_ms, *after, *date;
	int64_t reset_ms; /* ms until the used-up limit resets, as other headers say; 0: unknown */
	bool never;       /* waiting would not help against this failure */
};

struct retry_when {
	int64_t mono_ms, wall_ms;
	int64_t deadline_ms; /* end of the run's time, monotonic; INT64_MAX: none */
	uint64_t chance;     /* random bits */
};

enum retry_verdict {
	RETRY_AGAIN,    /* try again after wait_ms */
	RETRY_FINAL,    /* another attempt would fail the same way */
	RETRY_TOLD_NOT, /* x-should-retry: false */
	RETRY_TOO_LONG, /* the service asks for a wait (wait_ms) over told_max_ms */
	RETRY_LATE,     /* the run's time would be over after the wait (wait_ms) */
	RETRY_HORIZON,  /* the next attempt would come after horizon_ms */
	RETRY_BROKEN,   /* broken_max replies were cut or not understood */
};

struct retry_plan {
	enum retry_verdict verdict;
	int64_t wait_ms;
	bool told; /* the service said how long to wait */
	/* The wait is for a quota, and longer than park_ms or the run's time: a caller that may
	 * leave its slot waits so, whatever the verdict. */
	bool parks;
};

/* Count the failure in *r and decide. */
void retry_decide(struct retry *r, const struct retry_policy *p, const struct retry_failure *f,
		  const struct retry_when *w, struct retry_plan *out);

/* Is it time for another model? Yes for a service that is overloaded, fails, cannot be reached, is
 * late or breaks off: when the verdict is no more attempts, when the service asks for a wait of a
 * sixtieth of the horizon (30 s: a run has ten minutes; 1 s in a conversation), or after three
 * failures and that time, the coming wait included. */
bool retry_fallback_due(const struct retry *r, const struct retry_policy *p,
			const struct retry_failure *f, const struct retry_plan *plan,
			int64_t now_ms);

/* A sixtieth of the horizon: also the longest wait at a closed gate for the first model. */
int64_t retry_fallback_ms(const struct retry_policy *p);

/* The wait in ms that headers or a sentence ask for ("1h7m40.8s", "20 seconds"); -1: none that can
 * be understood. */
int64_t retry_asked(const struct retry_failure *f, int64_t wall_ms);

/* The parts of sentences about a failure; retry_sentence writes the one that a run ends with: the
 * failure and what to do. */
struct retry_words {
	const char *provider, *model, *key_name; /* "anthropic", …, "ANTHROPIC_API_KEY" */
	const char *url_name, *base_url;         /* "ANTHROPIC_BASE_URL", … */
	const struct reply_error *error;         /* the words of the service or the network */
	int status;
	int64_t context;  /* the model's window, tokens; 0: unknown */
	int64_t prompt;   /* tokens of the request, as we estimate */
	const char *back; /* when a long wait ends, as a person reads it */
	bool talk;        /* a conversation's call: the person can ask again */
};
/* Write the sentence for a conversation: the failure, and that another attempt follows. */
void retry_trying(enum reply_class cls, const struct retry_words *w, int64_t wait_ms, char *out,
		  size_t size);
/* Write the sentence while the next attempt waits: for which service, and why. */
void retry_wait(enum reply_class cls, const struct retry_words *w, int64_t wait_ms, char *out,
		size_t size);
void retry_sentence(const struct retry *r, const struct retry_plan *plan, enum reply_class cls,
		    const struct retry_words *w, int64_t now_ms, char *out, size_t size);

/* ---- the gate before one provider and model: who may call now. Pure: time and
 * chance are given. Every call of every run passes it, in order of asking.
 *
 * There is no limit until the service sets one: a storm of 429 or 529 halves
 * what may be under way, closes the gate for the time of the wait, then lets
 * one probe through; when that is answered the others follow one by one, spread
 * over two seconds, and each round of good replies adds a step that doubles:
 * what was cut when few were under way must not hold a thousand for long.
 *
 * One refusal is no storm. Each costs GATE_REFUSAL of a credit that good replies
 * refill, as many times as it is in a row; while there is credit only its own
 * caller waits, and shortly. A rate limit whose service says when to come back is
 * the account's, and holds for all at once.
 *
 * Five refusals of the key or the account in a row open the circuit of the
 * provider: calls are refused at once, and after a while one is let through
 * to see.
 *
 * Where a provider caches what requests begin with, the first of several calls
 * with the same new head goes ahead; the others wait for its first bytes, at
 * most `GATE_LEAD_MS`, so that they read the cache instead of writing it. */

#define GATE_MAX        10000u /* most calls under way */
#define GATE_CLOSED_MS  60000  /* longest time that a gate is closed, whatever a service says */
#define GATE_LEAST      4u     /* the lowest limit after a cut, and the least step */
#define GATE_FORGET_MS  300000 /* after so long without an overload there is no limit */
#define GATE_SPREAD_MS  2000   /* time over which waiting calls are let through */
#define GATE_REFUSAL    16u    /* good replies that offset one refusal: 6 in 100 are tolerated */
#define GATE_CREDIT     (8 * GATE_REFUSAL)
#define GATE_ALONE_MS   100    /* the longest wait after a refusal that was no storm */
#define GATE_LEAD_MS    10000  /* longest wait for the first call of a head */
#define GATE_WARM_MS    270000 /* a head used so recently is in the cache (5 min) */
#define GATE_HEADS      64     /* most heads that are remembered */
#define CIRCUIT_TRIES   5
#define CIRCUIT_MS      30000 /* time that the circuit is open; doubled each time, up to: */
#define CIRCUIT_MOST_MS 300000

struct gate_circuit {              /* one for each provider; all zero: closed */
	int64_t until_ms, open_ms; /* when to probe; how long it was opened for */
	unsigned refusals;         /* number of refusals in a row */
	bool open, probing;
	enum reply_class cls; /* class of the last refusal */
};

enum gate_place { GATE_OUT, GATE_QUEUED, GATE_FOLLOWS, GATE_IN };

/* A caller's place at the gate; zero it first. It must leave before it is freed. */
struct gate_ticket {
	struct list node;
	struct call_gate *gate; /* NULL: GATE_OUT */
	uint64_t head;
	uint32_t epoch;
	uint8_t place; /* enum gate_place */
	bool leads, probe, circuit_probe, began;
	bool refused; /* gate_next gave it back without a permit: the circuit is open */
};

struct gate_head {
	uint64_t head; /* what identifies the head; 0: free */
	struct gate_ticket *leader;
	int64_t lead_until_ms; /* until when others wait for the leader; INT64_MAX while it waits */
	int64_t warm_until_ms;
	struct list followers;
};

struct call_gate {
	struct gate_circuit *circuit; /* shared by the gates of a provider */
	struct list queue;
	unsigned queued, follow, held; /* tickets waiting, waiting for a leader, with a permit */
	unsigned most;                 /* most tickets inside, set by the caller */
	unsigned limit, credit, step, round; /* round: good replies in this round */
	/* patience: credit for refusals, in good replies; in_a_row: refusals in a row */
	unsigned patience, in_a_row;
	uint32_t epoch; /* counts cuts: a call begun before a cut fails by the same overload */
	bool closed, probing, paced;
	int64_t cut_ms;  /* when the last overload came */
	int64_t open_ms; /* when a closed gate lets its probe through */
	int64_t pace_ms; /* when the next call may go */
	struct gate_head heads[GATE_HEADS];
};

void gate_init(struct call_gate *g, struct gate_circuit *c);
/* Free the gate; no ticket may be inside or waiting. */
void gate_fini(struct call_gate *g);

/* Ask for a permit. `head` identifies the beginning of the request where a cache is worth waiting
 * for; else 0. */
void gate_want(struct call_gate *g, struct gate_ticket *t, uint64_t head, int64_t now_ms);
/* Give a permit to the next call, or return NULL: then *again_ms is when to ask again (INT64_MAX:
 * after the next of the calls below). */
struct gate_ticket *gate_next(struct call_gate *g, int64_t now_ms, uint64_t chance,
			      int64_t *again_ms);
/* Report that the first bytes of a good reply arrived. A second report changes nothing. */
void gate_began(struct gate_ticket *t, int64_t now_ms);
/* Report that a parked call comes back: one call probes, the others follow as if the gate had been
 * cut. */
void gate_back(struct call_gate *g, int64_t now_ms);
/* Send away the first waiting ticket without a permit, `refused`; NULL: none waits. */
struct gate_ticket *gate_send_away(struct call_gate *g);
/* Give back the permit of a finished call. REPLY_OK, or its failure; then `plan` is what its caller
 * will do (NULL: nothing), whose own wait is made shorter after a refusal that was no storm. */
void gate_end(struct gate_ticket *t, enum reply_class cls, struct retry_plan *plan, int64_t now_ms);
/* Take the ticket out of any place, without a report about the service. */
void gate_leave(struct gate_ticket *t);

#endif
