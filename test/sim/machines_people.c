/* What people want of a run is asked at any machine. Words have a request id and are repeated there
 * and elsewhere until they are answered; a cancel is repeated as it is. What was answered counts:
 * words are heard once, a run ends as it was said to have ended. */
#include "machines_people.h"

#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/core.h"
#include "ava/ops.h"
#include "ava/state.h"
#include "ava/verbs.h"
#include "base/util.h"
#include "clockwork.h"
#include "cluster/cluster.h"
#include "cluster/member.h"
#include "machines.h"
#include "pgmap.h"

#define TRIES 64
#define WORDS 24

struct people_word { /* said to a run */
	char run[32], request[16];
	char steer[32];        /* its first answer; "": none yet */
	bool over;             /* nobody says it any more */
	unsigned queued, read; /* as the log has it */
};

struct people_try { /* of a verb, at a machine */
	struct verb_reply reply;
	struct people_word *word; /* NULL: a cancel */
	unsigned machine;
	char run[32];
};

struct people_view { /* of a run's result, at a machine */
	unsigned machine, run;
	bool waits, seen;
};

static struct {
	struct machines *w;
	struct people_word words[WORDS];
	struct people_try tries[TRIES];
	struct people_view views[MACHINES_MAX * MACHINES_RUNS];
	unsigned nwords, ntries;
	char status[MACHINES_RUNS][24]; /* that the run was said to have ended with */
	char *results[MACHINES_RUNS];
	bool looking;
} people;

static struct machines_run *run_of(const char *id)
{
	for (unsigned i = 0; i < people.w->nruns; i++)
		if (strcmp(people.w->runs[i].id, id) == 0)
			return &people.w->runs[i];
	return NULL;
}

/* ---- answers */

static void heard_end(const char *run, const char *status)
{
	const struct machines_run *r = run_of(run);
	char *was = people.status[r - people.w->runs];

	if (was[0] != '\0' && strcmp(was, status) != 0 && pgmap.went_back == 0)
		machines_wrong("%s: it ended as %s, and as %s", run, was, status);
	snprintf(was, sizeof(people.status[0]), "%s", status);
}

static void heard_word(struct people_word *k, int code, const json_t *o)
{
	const char *steer = json_str(o, "steer_id");

	if (code == 0 && k->steer[0] == '\0')
		snprintf(k->steer, sizeof(k->steer), "%s", steer);
	else if (k->steer[0] != '\0' && pgmap.went_back == 0 &&
		 (code == 0 ? strcmp(k->steer, steer) != 0
			    : code == AVA_EEXIST || code == AVA_ENOENT))
		machines_wrong("%s: %s was answered with %s, and then %s", k->run, k->request,
			       k->steer, code == 0 ? steer : ava_strerror(code));
	k->over = k->over || code == 0 || code == AVA_EEXIST;
}

static void people_answered(struct verb_reply *reply, int status, const struct buf *json,
			    const struct ava_error *err)
{
	struct people_try *t = CONTAINER_OF(reply, struct people_try, reply);
	json_t *o;

	(void)status;
	if (sim.dead)
		return;
	o = json != NULL ? json_parse(json->data, json->len, NULL) : NULL;
	if (t->word != NULL) {
		machines_note("%s: %s: %s", t->run, t->word->request,
			      o != NULL ? json_str(o, "steer_id") : err->text);
		heard_word(t->word, o != NULL ? 0 : err->code, o);
	} else {
		machines_note("%s: a cancel: %s", t->run,
			      o != NULL ? json_str(o, "status") : err->text);
		if (o != NULL)
			heard_end(t->run, json_str(o, "status"));
	}
	json_decref(o);
}

static void run_moved(int rv, const struct ava_error *err, void *user)
{
	struct people_try *t = user;

	if (sim.dead)
		return;
	machines_note("%s: is moved: %s", t->run, rv == 0 ? "yes" : err->text);
	people.w->wanted += rv == 0;
}

/* ---- what they want */

static void people_call(struct core *core, struct people_try *t, const char *path)
{
	static const struct caller ben = {.user = "ben", .channel = "test", .trust = CALLER_OWNER};
	json_t *args = NULL;

	if (t->word != NULL) {
		args = json_object();
		json_object_set_new(args, "text", json_string("Look at the other side, too."));
		json_object_set_new(args, "request_id", json_string(t->word->request));
	}
	t->reply.done = people_answered;
	verbs_call(core, verbs_named("POST", path), &ben, t->run, args, &t->reply);
	json_decref(args);
}

static void people_move(struct core *core, struct people_try *t)
{
	struct ava_error err;

	if (cluster_move(core_service(core)->cluster, t->run, (struct cluster_move){0}, run_moved,
			 t, &err) == 0)
		return;
	machines_note("%s: is not moved: %s", t->run, err.text);
}

static void people_say(struct core *core, void *user)
{
	struct people_try *t = user;

	if (t->word != NULL) {
		machines_note("%s: %s is said", t->run, t->word->request);
		people_call(core, t, "/api/v1/runs/{id}/steer");
	} else if (sim_maybe(250)) {
		machines_note("%s: a cancel", t->run);
		people_call(core, t, "/api/v1/runs/{id}/cancel");
	} else {
		machines_note("%s: is wanted here", t->run);
		people_move(core, t);
	}
}

/* Something new, or what was said already and not answered. */
static struct people_word *people_word(const char *run)
{
	struct people_word *k = &people.words[people.nwords];

	for (unsigned i = 0; i < people.nwords; i++)
		if (!people.words[i].over && sim_maybe(500))
			return &people.words[i];
	if (people.nwords == WORDS || sim_maybe(600))
		return NULL;
	*k = (struct people_word){0};
	snprintf(k->run, sizeof(k->run), "%s", run);
	snprintf(k->request, sizeof(k->request), "s-%u", people.nwords++);
	return k;
}

static void people_turn(void *user)
{
	struct machines *w = people.w;
	const struct machines_run *r = &w->runs[sim_span(0, w->nruns - 1)];
	unsigned machine = (unsigned)sim_span(0, w->nmachines - 1);

	(void)user;
	if (w->over || people.ntries == TRIES)
		return;
	if (r->told && pgmap_run(r->id) != NULL && machines_core(machine) != NULL) {
		struct people_try *t = &people.tries[people.ntries++];

		*t = (struct people_try){.machine = machine, .word = people_word(r->id)};
		snprintf(t->run, sizeof(t->run), "%s", t->word != NULL ? t->word->run : r->id);
		machines_within(machine, people_say, t);
	}
	(void)sim_at(sim.now + (sim_maybe(300) ? sim_span(0, 50) : sim_span(0, 10000)), people_turn,
		     NULL);
}

/* ---- in the end */

static void result_came(int rv, const char *json, size_t len, const struct ava_error *err,
			void *user)
{
	struct people_view *v = user;
	const char *id = people.w->runs[v->run].id;
	char **first = &people.results[v->run];

	v->waits = false;
	if (sim.dead)
		return;
	if (rv != 0) {
		machines_note("%s: its result: %s", id, err->text);
		return;
	}
	v->seen = true;
	if (*first == NULL)
		*first = strndup(json, len);
	else if (pgmap.went_back == 0 && (strlen(*first) != len || memcmp(*first, json, len) != 0))
		machines_wrong("%s: its result is %s and %.*s", id, *first, (int)len, json);
}

/* A machine that has not heard yet whose its runs are may have an end that does not count. */
static void result_asked(struct core *core, void *user)
{
	struct people_view *v = user;

	v->waits = true;
	ops_result(core, people.w->runs[v->run].id, 0, result_came, v);
}

static void people_look(void *user)
{
	struct machines *w = people.w;

	(void)user;
	for (unsigned i = 0; i < w->nmachines * w->nruns && !w->over; i++) {
		struct people_view *v = &people.views[i];

		v->machine = i % w->nmachines;
		v->run = i / w->nmachines;
		if (pgmap_run(w->runs[v->run].id) == NULL)
			v->seen = true; /* the judge looks for what is lost */
		else if (!v->seen && !v->waits && machines_core(v->machine) != NULL &&
			 core_service(machines_core(v->machine))->cluster->settled)
			machines_within(v->machine, result_asked, v);
	}
	if (!w->over)
		(void)sim_at(sim.now + 1000, people_look, NULL);
}

bool people_have_all(void)
{
	if (!people.w->people)
		return true;
	if (!people.looking)
		(void)sim_at(sim.now, people_look, NULL);
	people.looking = true;
	for (unsigned i = 0; i < people.w->nmachines * people.w->nruns; i++)
		if (!people.views[i].seen)
			return false;
	return true;
}

void people_begin(struct machines *w)
{
	for (size_t i = 0; i < MACHINES_RUNS; i++)
		free(people.results[i]);
	memset(&people, 0, sizeof(people));
	people.w = w;
	if (w->people)
		(void)sim_at(sim_span(2000, 10000), people_turn, NULL);
}

void people_leave(unsigned machine)
{
	for (size_t i = 0; i < ARRAY_LEN(people.views); i++)
		people.views[i].waits = people.views[i].waits && people.views[i].machine != machine;
}

/* ---- the judge's */

void people_see_words(const char *run, const json_t *content)
{
	const char *steer = json_str(content, "steerId"), *request = json_str(content, "requestId");
	bool queued = strcmp(json_str(content, "outcome"), "queued") == 0;

	for (unsigned i = 0; i < people.nwords; i++) {
		struct people_word *k = &people.words[i];

		if (strcmp(k->run, run) != 0)
			continue;
		k->queued += queued && strcmp(k->request, request) == 0;
		k->read += !queued && k->steer[0] != '\0' && strcmp(k->steer, steer) == 0;
	}
}

void people_see_end(const char *run, const char *status)
{
	const struct machines_run *r = run_of(run);

	if (r != NULL && people.status[r - people.w->runs][0] != '\0')
		heard_end(run, status);
}

void people_judge(void)
{
	for (unsigned i = 0; i < people.nwords; i++) {
		const struct people_word *k = &people.words[i];

		people.w->words += k->queued;
		if (pgmap.went_back > 0)
			continue;
		if (k->queued > 1)
			machines_wrong("%s: %s was heard %u times", k->run, k->request, k->queued);
		if (k->steer[0] != '\0' && (k->queued != 1 || k->read != 1))
			machines_wrong("%s: %s was answered, heard %u times and read %u times",
				       k->run, k->request, k->queued, k->read);
	}
}
