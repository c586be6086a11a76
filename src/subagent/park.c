/* Parked runs: a service says that a limit is used up and when it comes back, in hours perhaps.
 * Until then the run has no slot, its clock stands still and nothing is reserved for it.
 *
 *   refused ──► the machine waits (AGENT_ASK_QUOTA), a person is asked: Waiting, kind quota, in
 *   one commit with the InferEnd of the refusal and the position ──► the time has come, or they
 *   said so ──► a slot ──► the gate: of all that come back one goes first ──► the same request
 *
 * A person is told once, with the time, and may say wait, go on with another model, or stop.
 * Nobody has to answer: at that time the run goes on by itself. With on_quota: ask it waits for
 * an answer as to every question, and ends without one.
 *
 * The time is one of the clock on the wall, and stands in the record: a restart reads it there.
 * A limit told to one run holds for all that call the same model with the same key: they are
 * parked at the gate and send nothing. If the service answers before that time, all go on.
 * What can fail: memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/agent.h"
#include "base/clock.h"
#include "base/util.h"
#include "codec/json.h"
#include "provider/model.h"
#include "subagent/run.h"
#include "subagent/wire.h"

/* The wall's clock may jump, a machine sleep: look that often, all runs at once. */
#define LOOK_MS  60000
#define QUIET_MS 3600000 /* a run that parks again within this time is not announced again */
#define MODELS   3       /* most models that are offered */
#define MODEL_ID sizeof(((struct model *)0)->id)

bool park_may(const struct run *r, int64_t wait_ms)
{
	/* Waits add up for one call: a service may say "in three minutes" for ever. */
	int64_t waited_ms = r->park.iteration == r->agent.at.iteration ? r->park.waited_ms : 0;

	return !r->place && r->spec->on_quota != QUOTA_FAIL &&
	       waited_ms + wait_ms <= r->sup->settings->park_max_s * 1000;
}

static void park_until_of(const struct run *r, char out[CLOCK_SOON])
{
	clock_local_soon(r->park.until_ms, clock_wall_ms(), out);
}

/* ---- into it */

static void park_at(struct run *r, int64_t until_ms, const char *limit, int64_t now_ms,
		    int iteration)
{
	if (r->park.iteration != iteration)
		r->park.waited_ms = 0;
	r->park.iteration = iteration;
	r->park.waited_ms += MAX(until_ms - now_ms, 0);
	r->park.until_ms = until_ms;
	r->park.count++;
	snprintf(r->park.limit, sizeof(r->park.limit), "%s", limit);
}

void park_begin(struct run *r, struct wire_line *line, int64_t wait_ms, const struct reply_error *e)
{
	char limit[sizeof(r->park.limit)];

	snprintf(limit, sizeof(limit), "%s%slimit of %s", e->limit, e->limit[0] ? " " : "",
		 r->spec->model->provider->name);
	park_at(r, clock_wall_ms() + wait_ms, limit, clock_wall_ms(), (int)r->agent.at.iteration);
	wire_line_park(line, r->park.until_ms, limit);
}

bool park_at_gate(struct run *r, struct wire_line *line)
{
	bool looks = r->park.back_ms > clock_wall_ms(); /* a person said to try */
	const char *limit;
	int64_t until_ms;

	if (r->park.back_ms > 0)
		wire_line_back(line, r->park.back_ms);
	r->park.back_ms = 0;
	if (looks || !wire_line_parked(line, &until_ms, &limit) ||
	    !park_may(r, until_ms - clock_wall_ms()))
		return false;
	park_at(r, until_ms, limit, clock_wall_ms(), (int)r->agent.at.iteration);
	return true;
}

void park_tell(struct run *r, bool made)
{
	char until[CLOCK_SOON], text[sizeof(r->agent.reply_error)];

	park_until_of(r, until);
	snprintf(text, sizeof(text),
		 "the %s is used up until %s: run again then, or set models.fallback",
		 r->park.limit, until);
	r->call.retry = (struct retry){0}; /* parked time is no time of failing */
	agent_on_parked(&r->agent, made, reply_class_word(REPLY_RATE_LIMIT), text);
}

void park_why_not(const struct run *r, const struct reply_error *e, const char *back, char *text,
		  size_t size)
{
	size_t len = strlen(text);

	if (r->place)
		snprintf(text, size,
			 "the %s%slimit of %s is used up until %s; say it again then, or choose "
			 "another model; subagents go on by themselves",
			 e->limit, e->limit[0] ? " " : "", r->spec->model->provider->name, back);
	else if (r->spec->on_quota != QUOTA_FAIL)
		snprintf(text + len, size - len, "; models.park_max allows %lld s",
			 (long long)r->sup->settings->park_max_s);
}

/* ---- the question to a person */

/* The person knows: of this run, or of another one of the conversation that waits for the same. */
static bool park_is_told(const struct run *r, int64_t now_ms)
{
	if (r->park.told_ms > 0 && now_ms - r->park.told_ms < QUIET_MS)
		return true;
	LIST_EACH (&r->sup->live, n, tmp) {
		const struct run *o = LIST_ENTRY(n, struct run, node);

		if (o != r && o->agent.state == AGENT_WAITING && o->park.until_ms > 0 &&
		    !o->park.quiet && strcmp(o->park.limit, r->park.limit) == 0 &&
		    strcmp(o->spec->session_id, r->spec->session_id) == 0 &&
		    llabs(o->park.until_ms - r->park.until_ms) < LOOK_MS)
			return true;
	}
	return false;
}

/* Offers a model of models.fallback or models.list ("go on with …") if it can take over. */
static unsigned park_offer(const struct run *r, const char *id, char offered[MODELS][MODEL_ID],
			   unsigned n)
{
	struct model m;

	if (n == MODELS || model_resolve(id, &m, NULL, NULL) != 0 ||
	    !spec_can_switch(r->spec, &m) || !provider_usable(m.provider))
		return n;
	for (unsigned i = 0; i < n; i++)
		if (strcmp(offered[i], m.id) == 0)
			return n;
	snprintf(offered[n], sizeof(offered[n]), "%s", m.id);
	return n + 1;
}

static char *park_choices(const struct run *r)
{
	const struct model_row *row;
	char offered[MODELS][MODEL_ID], text[MODEL_ID + 16];
	const char *const *fallback;
	unsigned n = 0;
	struct buf b;
	struct jw w;
	size_t many;

	fallback = model_fallback(&many);
	for (size_t i = 0; i < many; i++)
		n = park_offer(r, fallback[i], offered, n);
	for (size_t i = 0; (row = models_own(i)) != NULL; i++)
		n = park_offer(r, row->id, offered, n);
	buf_init(&b, 4096);
	jw_init(&w, &b);
	jw_array(&w, NULL);
	jw_str(&w, NULL, "wait");
	for (unsigned i = 0; i < n; i++) {
		snprintf(text, sizeof(text), "go on with %.263s", offered[i]);
		jw_str(&w, NULL, text);
	}
	jw_str(&w, NULL, "stop");
	jw_end(&w);
	return buf_take(&b, NULL);
}

int park_question(struct run *r, struct question *q)
{
	bool asks = r->spec->on_quota == QUOTA_ASK && r->agent.over != AGENT_WAITS;
	int64_t asked_s = r->sup->settings->ask_timeout_s;
	char until[CLOCK_SOON], over[96];

	park_until_of(r, until);
	q->quota = true;
	snprintf(q->call_id, sizeof(q->call_id), "i%d.q%u", (int)r->agent.at.iteration,
		 r->park.count);
	snprintf(over, sizeof(over), "%s %lld", r->park.limit, (long long)r->park.until_ms);
	hash_sha256_hex(over, strlen(over), q->call_hash);
	q->until_ms = asks ? q->asked_ms + asked_s * 1000 : r->park.until_ms;
	if (asprintf(&q->text, "The %s is used up until %s. %s", r->park.limit, until,
		     asks ? "Shall it wait until then, go on with another model, or stop?"
			  : "It goes on by itself then; or let it go on with another model, or "
			    "stop.") < 0)
		q->text = NULL;
	q->choices = park_choices(r);
	return q->text && q->choices ? 0 : AVA_ENOMEM;
}

void park_asked(struct run *r, bool before)
{
	char text[sizeof(r->activity)], until[CLOCK_SOON];
	int64_t now_ms = clock_wall_ms();

	if (!before)
		r->park.quiet = park_is_told(r, now_ms);
	if (!before && !r->park.quiet)
		r->park.told_ms = now_ms;
	park_until_of(r, until);
	snprintf(text, sizeof(text), "parked until %s: %s", until, r->park.limit);
	if (park_waits(r))
		run_activity(r, text);
	group_waits(r);
}

int64_t park_until(const struct run *r)
{
	return clock_mono_ms() + r->park.until_ms - clock_wall_ms();
}

void park_look(struct run *r)
{
	int64_t now_ms = clock_mono_ms();

	if (!park_waits(r) || r->agent.asking == 0)
		return;
	/* A wall clock set back by hours must not lengthen the wait: never later than before. */
	r->agent.ask_until_ms = MIN(r->agent.ask_until_ms, park_until(r));
	os_timer_set(r->timer,
		     MAX(MIN(r->agent.ask_until_ms - now_ms, LOOK_MS - now_ms % LOOK_MS), 0));
}

/* ---- out of it */

/* `said`: a person said to go on, and is told if the run is parked again. */
static void park_back(struct run *r, bool said)
{
	r->park.back_ms = r->park.until_ms;
	r->park.until_ms = 0;
	r->park.told_ms = said ? 0 : r->park.told_ms;
	r->park.waited_ms = said ? 0 : r->park.waited_ms;
}

void park_ended(struct run *r, enum agent_asked how)
{
	struct model m;

	park_back(r, how == ASKED_ANSWERED);
	if (r->park.model && how == ASKED_ANSWERED) {
		r->park.back_ms = 0;
		if (model_resolve(r->park.model, &m, NULL, NULL) == 0)
			r->call.changed = infer_amend(r, &m, true); /* else the same model again */
	}
	free(r->park.model);
	r->park.model = NULL;
	group_waits(r);
}

void park_over(struct supervisor *s, const struct model *m)
{
	LIST_EACH (&s->live, n, tmp) {
		struct run *r = LIST_ENTRY(n, struct run, node);

		if (!park_waits(r) || r->spec->model->provider != m->provider ||
		    strcmp(r->spec->model->wire_name, m->wire_name) != 0)
			continue;
		r->park.until_ms = clock_wall_ms();
		r->agent.ask_until_ms = clock_mono_ms();
		run_wake(r);
	}
}

/* ---- after a restart */

void park_restore(struct run *r, const json_t *content, int64_t wall_ms)
{
	const char *until = json_str(content, "parkedUntil"), *state = json_str(content, "state");
	bool quiet = strcmp(state, "parked") == 0;
	int iteration = 0;

	if (quiet || strcmp(state, "asked") == 0) {
		(void)sscanf(json_str(content, "callId"), "i%d", &iteration);
		park_at(r, MAX(clock_parse_iso(until, strlen(until)), 1),
			json_str(content, "limit"), wall_ms, iteration);
		r->park.quiet = quiet;
		r->park.told_ms = r->park.quiet ? r->park.told_ms : wall_ms;
	} else if (strcmp(state, "waits") == 0) {
		r->agent.over = AGENT_WAITS;
	} else {
		park_back(r, strcmp(state, "answered") == 0);
		r->agent.over = 0;
	}
}

void park_stand(struct run *r)
{
	if (r->park.until_ms > 0)
		park_tell(r, false);
}
