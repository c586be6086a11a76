/* Paused runs: a person says that a run shall stand still, until a time or until they let it go on.
 *
 *   run_pause: Waiting, kind pause, asked ──► the model call or the tools at work end as ever
 *   ──► before the next call (pause_rest) what the turn wrote, and Waiting paused ──► no slot, no
 *   clock ──► run_unpause, or the time: Waiting answered, or expired ──► a slot
 *
 * A pause lies over whatever else the run waits for: a slot, a person, a quota. That stays as it
 * is, with its own time, and a run that has it stands in the queue until the pause is over. So it
 * is no question of the machine, which has one at a time, but a flag of it and a time here.
 *
 * The time is one of the clock on the wall, looked at each minute; set back, what was left by the
 * other clock is enough. All of it stands in the record: a restart, also on another machine, reads
 * it there, and a turn that a stop cut is ended when the run goes on. What can fail: memory. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"
#include "subagent/record.h"
#include "subagent/run.h"

#define LOOK_MS 60000

/* ---- on its way to the disk */

struct pause_said { /* whoever is answered when it is kept, in order */
	struct list node;
	pause_fn done;
	void *user;
};

static void pause_told(struct pause_said *s, int rv)
{
	list_del(&s->node);
	if (s->done)
		s->done(rv, s->user);
	free(s);
}

static void pause_saved(int rv, void *user)
{
	struct run *r = user;

	pause_told(LIST_FIRST(&r->pause.saying, struct pause_said, node), rv);
}

/* A draft for the event, and a place for who is told. AVA_ENOMEM. */
static int pause_open(struct run *r, pause_fn done, void *user, struct draft **d,
		      struct ava_error *err)
{
	struct pause_said *s = calloc(1, sizeof(*s));

	*d = s ? commit_draft(r) : NULL;
	if (!*d) {
		free(s);
		return err_set(err, AVA_ENOMEM, "out of memory");
	}
	s->done = done;
	s->user = user;
	list_add(&r->pause.saying, &s->node);
	return 0;
}

/* ---- its time */

static void pause_over(struct run *r, struct draft *d, const char *state, const char *by,
		       const char *origin)
{
	const struct agent *a = &r->agent;

	record_pause(d, r, state, by, origin);
	/* The time of a group counts from the newest position, and no pause belongs to it. One in
	 * the middle of a turn would hide what the turn did. */
	r->rec.position_due |= a->at.iteration > 0 && !a->turn && !a->asked && !r->call.id[0];
	if (!a->asked)
		r->call.retry = (struct retry){0};
	r->agent.paused = r->agent.asks_again = r->pause.resting = false;
	os_timer_free(r->pause.timer);
	r->pause.timer = NULL;
	r->pause.until_ms = 0;
	if (a->state == AGENT_QUEUED)
		run_activity(r, "Waiting for a slot");
	commit_flush(r, JOURNAL_NOW, pause_saved);
	group_waits(r);
	run_wake(r);
}

static void pause_look(void *user)
{
	struct run *r = user;
	int64_t now_ms = clock_mono_ms(), left;
	struct draft *d;

	if (!r->agent.paused || r->agent.ending || r->end.abandoned)
		return;
	group_waits(r);
	if (r->pause.until_ms == PAUSE_NO_END)
		return;
	/* A clock that was set back must not lengthen it. */
	r->pause.end_ms = MIN(r->pause.end_ms, now_ms + r->pause.until_ms - clock_wall_ms());
	left = MIN(r->pause.end_ms - now_ms, LOOK_MS - now_ms % LOOK_MS);
	if (r->pause.end_ms <= now_ms && pause_open(r, NULL, NULL, &d, NULL) == 0)
		pause_over(r, d, "expired", NULL, "");
	else
		os_timer_set(r->pause.timer, r->pause.end_ms <= now_ms ? LOOK_MS : left);
}

static int pause_timer(struct run *r)
{
	if (!r->pause.timer)
		r->pause.timer = os_timer_new(r->sup->loop, pause_look, r);
	return r->pause.timer ? 0 : AVA_ENOMEM;
}

static void pause_begin(struct run *r, int64_t until_ms, int64_t most_ms)
{
	r->agent.paused = true;
	r->pause.until_ms = until_ms;
	r->pause.end_ms = until_ms == PAUSE_NO_END ? PAUSE_NO_END : clock_mono_ms() + most_ms;
	os_timer_set(r->pause.timer, 0); /* a group looks when all its runs stand */
}

/* ---- people */

int run_pause(struct run *r, int64_t until_ms, const char *by, const char *origin, pause_fn done,
	      void *user, struct ava_error *err)
{
	int64_t now_ms = clock_wall_ms();
	char words[64];
	struct draft *d;
	int rv;

	if (r->agent.paused && (until_ms == PAUSE_NO_END || until_ms == r->pause.until_ms))
		return 1;
	if (r->agent.paused) {
		pause_words(r, words, sizeof(words));
		return err_set(err, AVA_EEXIST,
			       "run %s is %s already: `ava unpause %s` lets it go on, then another "
			       "time can be said",
			       r->id.text, words, r->id.text);
	}
	if (until_ms <= now_ms)
		return err_set(err, AVA_EINVAL, "that time is over: say one that is still to come");
	if (pause_timer(r) != 0)
		return err_set(err, AVA_ENOMEM, "out of memory");
	rv = pause_open(r, done, user, &d, err);
	if (rv != 0)
		return rv;
	pause_begin(r, until_ms, until_ms - now_ms);
	record_pause(d, r, "asked", by, origin);
	commit_flush(r, JOURNAL_NOW, pause_saved);
	run_wake(r); /* one that waits for a slot leaves the queue */
	return 0;
}

int run_unpause(struct run *r, const char *by, const char *origin, pause_fn done, void *user,
		struct ava_error *err)
{
	struct draft *d;
	int rv;

	if (!r->agent.paused)
		return err_set(err, AVA_EEXIST, "run %s is not paused", r->id.text);
	rv = pause_open(r, done, user, &d, err);
	if (rv == 0)
		pause_over(r, d, "answered", by, origin);
	return rv;
}

/* ---- the machine */

bool pause_rest(struct agent *a)
{
	struct run *r = a->world;
	struct draft *d = a->paused && !a->asks_again ? commit_draft(r) : NULL;

	if (!d) /* out of memory: the call that follows says so */
		return false;
	record_pause(d, r, "paused", NULL, "");
	r->pause.resting = true;
	r->call.retry = (struct retry){0}; /* paused time is no time of failing */
	commit_flush(r, JOURNAL_NOW, NULL);
	group_waits(r);
	return true;
}

/* ---- the record, and the end */

void pause_restore(struct run *r, const json_t *content, int64_t wall_ms)
{
	const char *state = json_str(content, "state"), *until = json_str(content, "parkedUntil");

	if (strcmp(state, "asked") == 0) {
		r->pause.until_ms =
			*until ? MAX(clock_parse_iso(until, strlen(until)), 1) : PAUSE_NO_END;
		r->pause.most_ms = MAX(r->pause.until_ms - wall_ms, 0);
	} else if (strcmp(state, "paused") != 0) {
		r->pause.until_ms = 0;
	}
}

int pause_stand(struct run *r)
{
	int64_t until_ms = r->pause.until_ms;

	if (until_ms == 0 || r->agent.ending)
		return 0;
	if (pause_timer(r) != 0)
		return AVA_ENOMEM;
	r->pause.resting = true; /* nothing of it begins in this process but what it asked */
	pause_begin(r, until_ms, MIN(until_ms - clock_wall_ms(), r->pause.most_ms));
	return 0;
}

void pause_close(struct run *r, struct draft *d)
{
	if (r->pause.until_ms > 0)
		record_pause(d, r, "stopped", NULL, "");
	r->agent.paused = r->pause.resting = false;
	r->pause.until_ms = 0;
}

void pause_free(struct run *r)
{
	os_timer_free(r->pause.timer);
	while (!list_empty(&r->pause.saying))
		pause_told(LIST_FIRST(&r->pause.saying, struct pause_said, node), AVA_ECANCELED);
}
