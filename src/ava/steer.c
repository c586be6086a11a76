/* A person's words to a run: the answer to its question, or a message that it reads at the next
 * turn boundary (subagent/person.c).
 *
 * The runtime itself reads a yes or no (ava/answer.h): unclear words start nothing, and the person
 * is asked again.
 *
 * A caller that does not know whether it was heard repeats the words with the same request id. On
 * its way to the disk the second request waits with the first; later the run knows the id
 * (person_heard), also when another process carries it on; after its end the id stands in its log.
 * What can fail: the run has ended, or asks something else by now; memory. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "ava/answer.h"
#include "ava/job.h"
#include "ava/others.h"
#include "ava/state.h"
#include "ava/verbs.h"
#include "base/clock.h"
#include "base/error.h"
#include "cluster/read.h"
#include "codec/json.h"
#include "journal/query.h"
#include "provider/model.h"
#include "subagent/person.h"
#include "subagent/resume.h"
#include "subagent/rights.h"

struct steering {
	struct list node; /* in core.steerings, or in `more` of another */
	struct list more; /* the same request again, each a struct steering */
	char run[24], call_id[16];
	struct core *core;
	op_steered_fn done;
	void *user;
	/* The request as the log of an ended run has it. */
	struct job job;
	struct ava_error ended;
	struct person_heard was;
	int found;  /* 1: the log has the request; 0: it has not; < 0: `ended` says why */
	bool other; /* that is the copy of another machine's */
	char request[];
};

static struct steering *steering_new(const struct op_steer *o, op_steered_fn done, void *user)
{
	const char *request = o->request_id ? o->request_id : "";
	struct steering *s = calloc(1, sizeof(*s) + strlen(request) + 1);

	if (!s)
		return NULL;
	list_init(&s->node);
	list_init(&s->more);
	snprintf(s->run, sizeof(s->run), "%s", o->run);
	memcpy(s->request, request, strlen(request) + 1);
	s->done = done;
	s->user = user;
	return s;
}

static void steer_tell(struct steering *s, int rv, const struct op_steered *o,
		       const struct ava_error *err)
{
	list_del(&s->node);
	s->done(rv, rv == 0 ? o : NULL, rv == 0 ? NULL : err, s->user);
	free(s);
}

/* Answers all callers of the request, and frees them. */
static void steer_tell_all(struct steering *s, int rv, const struct op_steered *o,
			   const struct ava_error *err)
{
	while (!list_empty(&s->more))
		steer_tell(LIST_FIRST(&s->more, struct steering, node), rv, o, err);
	steer_tell(s, rv, o, err);
}

/* Answers a request that is on disk. */
static void tell_heard(struct steering *s, const struct person_heard *h)
{
	struct op_steered o = {
		.run = s->run,
		.outcome = h->call_id[0] ? "answered" : "queued",
		.steer_id = h->steer_id,
		.call_id = h->call_id,
	};

	steer_tell_all(s, 0, &o, NULL);
}

static void on_disk(int rv, const char *steer_id, void *user)
{
	struct steering *s = user;
	struct ava_error err = {0};
	struct person_heard h;

	if (rv != 0) {
		err_set(&err, rv, "run %s ended, or the runtime stops, before that was kept",
			s->run);
		steer_tell_all(s, rv, NULL, &err);
		return;
	}
	snprintf(h.steer_id, sizeof(h.steer_id), "%s", steer_id);
	snprintf(h.call_id, sizeof(h.call_id), "%s", s->call_id);
	tell_heard(s, &h);
}

/* ---- repeated requests */

/* The same request on its way to the disk; NULL: none. */
static struct steering *steer_find_going(struct core *c, const struct steering *s)
{
	LIST_EACH (&c->steerings, at, tmp) {
		struct steering *other = LIST_ENTRY(at, struct steering, node);

		if (strcmp(other->run, s->run) == 0 && strcmp(other->request, s->request) == 0)
			return other;
	}
	return NULL;
}

static bool is_mine(struct steering *s, const struct ava_log_event *e)
{
	json_t *event = json_parse(e->line, e->len, NULL);
	const json_t *content = json_object_get(event, "content");
	const char *request = json_get_str(content, "requestId");
	bool mine = request && strcmp(request, s->request) == 0;

	if (mine) {
		snprintf(s->was.steer_id, sizeof(s->was.steer_id), "%s",
			 json_str(content, "steerId"));
		snprintf(s->was.call_id, sizeof(s->was.call_id), "%s", json_str(content, "callId"));
	}
	json_decref(event);
	return mine;
}

/* Pool thread. */
static void look_into_log(struct job *j)
{
	struct steering *s = CONTAINER_OF(j, struct steering, job);
	struct ava_log_query q = {.run = s->run, .types = "Steering"};
	struct ava_log_event e;
	struct ava_error err;
	struct ava_log *log = NULL;
	struct buf root;
	int rv;

	buf_init(&root, 8192);
	buf_addf(&root, "%s%s", j->core->root, s->other ? "/" READER_ROOT : "");
	q.root = root.data;
	rv = buf_check(&root) != 0 ? buf_check(&root) : ava_log_open(&log, &q, &err);
	while (rv == 0 && s->found == 0) {
		int next = ava_log_next(log, &e, &err);

		if (next == 1)
			s->found = is_mine(s, &e);
		else if (next != AVA_ECORRUPT)
			rv = next == 0 ? AVA_ENOENT : next;
	}
	ava_log_close(log);
	buf_fini(&root);
	if (s->found == 0 && rv != AVA_ENOENT) {
		s->found = rv;
		s->ended = err;
	}
}

static void steer_looked(struct job *j)
{
	struct steering *s = CONTAINER_OF(j, struct steering, job);

	if (s->found == 1)
		tell_heard(s, &s->was);
	else
		steer_tell_all(s, s->ended.code, NULL, &s->ended);
}

/* ---- answers */

/* The answer allows the call. AVA_EINVAL: unclear. */
static int allows(const char *text, bool *yes, struct ava_error *err)
{
	struct answer_line said;

	*yes = answer_read(text, &said) && said.verb == ANSWER_YES;
	if (said.verb != ANSWER_NONE && change_none(&said.change) && !said.change.all_three &&
	    !said.pick[0])
		return 0;
	return err_set(err, AVA_EINVAL,
		       "answer yes or no, a no with its reason if you like (\"no: not in this "
		       "folder\"); a yes cannot change the call");
}

static int steer_answer(struct run *r, const struct question *q, const struct op_steer *o,
			struct person_words *w, struct steering *s, struct ava_error *err)
{
	char *chosen = NULL;
	bool yes = false;
	int rv = 0;

	if (q->approval && !o->by)
		rv = err_set(err, AVA_EDENIED,
			     "run %s asks for a yes that only the person's own words give: they "
			     "answer with /steer %s yes, or no",
			     s->run, s->run);
	else if (q->approval)
		rv = allows(w->text, &yes, err);
	else
		chosen = person_choice(q, w->text);
	if (rv != 0)
		return rv;
	memcpy(s->call_id, q->call_id, sizeof(s->call_id));
	if (chosen)
		w->text = chosen;
	rv = person_answer(r, w, yes, on_disk, s, err);
	free(chosen);
	return rv;
}

/* ---- answers to a used-up quota. Other words go to the run. */

/* Goes on with another model: AVA_EDENIED, AVA_EINVAL, or the reason why the model does not fit. */
static int go_on_with(struct run *r, const char *name, bool person, struct ava_error *err)
{
	struct model m;
	int rv = person ? model_resolve(name, &m, NULL, err)
			: err_set(err, AVA_EDENIED,
				  "another model is the person's to choose: they answer with "
				  "/steer %s go on with MODEL",
				  r->id.text);

	if (rv == 0)
		rv = provider_require(m.provider, m.id, err);
	if (rv == 0 && !spec_can_switch(r->spec, &m))
		rv = err_set(
			err, AVA_EINVAL,
			"run %s cannot go on with %.100s: it takes a model that speaks as %.100s "
			"does, with known prices where its cost is limited",
			r->id.text, m.id, r->spec->model->id);
	if (rv != 0)
		return rv;
	free(r->park.model);
	r->park.model = strdup(m.id);
	return r->park.model ? 0 : err_set(err, AVA_ENOMEM, "out of memory");
}

/* 1: the words are no answer. */
static int answer_quota(struct run *r, const struct question *q, const struct op_steer *o,
			struct person_words *w, struct steering *s, struct ava_error *err)
{
	static const char with[] = "go on with ";
	char *chosen = person_choice(q, w->text);
	size_t len;
	const char *bare = person_bare(chosen ? chosen : w->text, &len);
	char *said = strndup(bare, len);
	bool stop, go, waits;
	int rv = 1;

	free(chosen);
	if (!said)
		return err_set(err, AVA_ENOMEM, "out of memory");
	waits = strcasecmp(said, "wait") == 0 || strcasecmp(said, "yes") == 0;
	stop = strcasecmp(said, "stop") == 0 || strcasecmp(said, "no") == 0;
	go = strcasecmp(said, "go on") == 0 || strcasecmp(said, "now") == 0;
	memcpy(s->call_id, q->call_id, sizeof(s->call_id));
	w->text = said;
	if (strncasecmp(said, with, sizeof(with) - 1) == 0) {
		rv = go_on_with(r, said + sizeof(with) - 1, o->by != NULL, err);
		go = rv == 0;
	}
	if (waits)
		rv = person_wait(r, w, on_disk, s, err);
	else if (stop || go)
		rv = person_answer(r, w, go, on_disk, s, err);
	else if (rv == 1 && o->call_id && *o->call_id)
		rv = err_set(
			err, AVA_EINVAL,
			"answer wait, go on with MODEL, stop, or now to ask once more at once");
	if (rv == 1)
		s->call_id[0] = '\0';
	w->text = o->text ? o->text : "";
	free(said);
	return rv;
}

/* ---- steering */

static int steer_ended(struct core *c, struct steering *s, struct ava_error *err)
{
	int rv = s->other ? 0 : core_known(c, s->run, err);

	if (rv == 0)
		rv = err_set(err, AVA_EEXIST, "run %s has ended: nobody is left to read it",
			     s->run);
	if (rv != AVA_EEXIST || !s->request[0])
		return rv;
	s->ended = *err;
	s->job.run = look_into_log;
	s->job.done = steer_looked;
	return job_begin(c, &s->job, err);
}

/* The copy of a run that ended on another machine, which is not there. */
static void steer_fetched(int rv, const struct reader_run *run, const struct ava_error *err,
			  void *user)
{
	struct steering *s = user;
	struct ava_error own = {0};

	s->other = rv == 0;
	if (rv == 0 && !run->ended)
		rv = err_set(&own, AVA_EBUSY, "run %s is on machine %s: ask again", s->run,
			     run->machine);
	else if (rv == 0 || rv == AVA_ENOENT)
		rv = steer_ended(s->core, s, &own);
	else
		own = *err;
	if (rv != 0)
		steer_tell_all(s, rv, NULL, &own);
}

/* The run has ended: was the request heard before that? 0: it will be answered. */
static int after_the_end(struct core *c, struct steering *s, struct ava_error *err)
{
	if (!others_may(c, s->run))
		return steer_ended(c, s, err);
	s->core = c;
	reader_fetch(c->service.reader, s->run, steer_fetched, s);
	return 0;
}

/* 0: `s` is *taken* and will be answered. */
static int steer_steer(struct core *c, const struct op_steer *o, struct steering *s,
		       struct ava_error *err)
{
	struct run *r = supervisor_find(&c->sup, s->run);
	const struct question *q = r ? person_question(r) : NULL;
	struct person_words w = {.text = o->text ? o->text : "",
				 .by = o->by ? o->by : "ava",
				 .origin = o->origin,
				 .request_id = s->request};
	struct person_heard was;

	if (r && person_heard(r, s->request, &was)) {
		tell_heard(s, &was);
		return 0;
	}
	if (!r)
		return after_the_end(c, s, err);
	if (r->agent.ending)
		return err_set(err, AVA_EEXIST, "run %s is ending: it reads nothing any more",
			       s->run);
	if (!r->durable || r->end.abandoned)
		return err_set(err, AVA_EBUSY, "run %s cannot be told anything now: ask again",
			       s->run);
	if (o->call_id && *o->call_id && (!q || strcmp(q->call_id, o->call_id) != 0))
		return err_set(
			err, AVA_ENOENT,
			"run %s does not ask %.15s (any more): `ava status %s` shows what it asks",
			s->run, o->call_id, s->run);
	if (q && q->quota) {
		int rv = answer_quota(r, q, o, &w, s, err);

		return rv <= 0 ? rv : person_steer(r, &w, on_disk, s, err);
	}
	return q ? steer_answer(r, q, o, &w, s, err) : person_steer(r, &w, on_disk, s, err);
}

void ops_steer(struct core *c, const struct op_steer *o, op_steered_fn done, void *user)
{
	struct steering *s, *going;
	struct ava_error err = {0};
	int rv = core_check_request(c, o->request_id, &err);

	s = rv == 0 ? steering_new(o, done, user) : NULL;
	if (!s) {
		rv = rv != 0 ? rv : err_set(&err, AVA_ENOMEM, "out of memory");
		done(rv, NULL, &err, user);
		return;
	}
	going = s->request[0] ? steer_find_going(c, s) : NULL;
	if (going) {
		list_add(&going->more, &s->node);
		return;
	}
	if (s->request[0])
		list_add(&c->steerings, &s->node);
	rv = steer_steer(c, o, s, &err);
	if (rv != 0)
		steer_tell_all(s, rv, NULL, &err);
}

/* ---- verbs */

#define SAID_MAX 8192 /* bytes of a person's words to a run */
#define BY_MAX   200  /* bytes of the name of who said them */

static void steer_answered(int rv, const struct op_steered *s, const struct ava_error *err,
			   void *user)
{
	struct verb_answer a;

	if (!verb_begin(&a, user, rv, err))
		return;
	jw_object(&a.w, NULL);
	jw_str(&a.w, "subagent_id", s->run);
	jw_str(&a.w, "outcome", s->outcome);
	if (s->steer_id[0])
		jw_str(&a.w, "steer_id", s->steer_id);
	if (s->call_id[0])
		jw_str(&a.w, "call_id", s->call_id);
	verb_send(&a, 200);
}

static const struct arg steer_args[] = {
	{"text", ARG_SAID, offsetof(struct op_steer, text), .most = SAID_MAX},
	{"call_id", ARG_SAID, offsetof(struct op_steer, call_id), .most = BY_MAX},
	{"by", ARG_SAID, offsetof(struct op_steer, by), .most = BY_MAX},
	{"request_id", ARG_SAID, offsetof(struct op_steer, request_id), .most = BY_MAX},
	{NULL},
};

/* A model's message may pass on anything that it has read: a run that would then have all three
 * rights hears it from the person only. */
static int steer_check_rights(const struct verb_call *v, struct ava_error *err)
{
	const struct run *r = supervisor_find(&v->core->sup, v->id);
	unsigned rights = r ? r->spec->rights : 0;

	if (!r || rights_all_three(rights) || !rights_all_three(rights | v->caller->seen))
		return 0;
	return err_set(err, AVA_EDENIED,
		       "run %s could send out what you have read: the person tells it themselves "
		       "(/steer %s TEXT)",
		       v->id, v->id);
}

static void verb_steer(struct verb_call *v)
{
	struct op_steer s = {.run = v->id, .by = v->caller->user, .origin = v->caller->channel};
	struct ava_error err = {0};
	int rv;

	if (!verb_args(v, &s))
		return;
	rv = steer_check_rights(v, &err);
	if (rv != 0)
		verb_fail(v->reply, rv, &err);
	else
		ops_steer(v->core, &s, steer_answered, v->reply);
}

/* A name for a run's position (subagent/resume.h). Checkpoints of an ended run are final, since its
 * log is closed. */
struct naming {
	char run[24], name[RUN_CHECKPOINT_NAME + 1];
	int call; /* number of the model call where a fork begins */
	struct verb_reply *reply;
};

/* `repeated`: the position had that name already. */
static void naming_answer(struct naming *n, int rv, bool repeated, const struct ava_error *err)
{
	struct verb_answer a;
	char call[16];

	if (verb_begin(&a, n->reply, rv, err)) {
		snprintf(call, sizeof(call), "i%d", n->call);
		jw_object(&a.w, NULL);
		jw_str(&a.w, "subagent_id", n->run);
		jw_str(&a.w, "name", n->name);
		jw_str(&a.w, "call_id", call);
		jw_int(&a.w, "from", n->call);
		verb_send(&a, repeated ? 200 : 201);
	}
	free(n);
}

static void naming_on_disk(int rv, void *user)
{
	struct naming *n = user;
	struct ava_error err = {0};

	if (rv != 0)
		err_set(&err, rv, "the runtime stops before checkpoint %s of run %s was kept",
			n->name, n->run);
	naming_answer(n, rv, false, &err);
}

static int naming_begin(struct core *c, struct naming *n, const char *name, const char *by,
			const char *origin, struct ava_error *err)
{
	struct run *r = supervisor_find(&c->sup, n->run);
	int rv = r ? 0 : core_known(c, n->run, err);

	if (rv != 0)
		return rv;
	if (!r)
		return err_set(
			err, AVA_EEXIST,
			"run %s has ended, its log is closed: fork it from a call of its model "
			"(ava replay %s --from N)",
			n->run, n->run);
	if (r->agent.ending)
		return err_set(err, AVA_EEXIST,
			       "run %s is ending: fork it from a call of its model when it has "
			       "(ava replay %s --from N)",
			       n->run, n->run);
	if (!r->durable || r->end.abandoned)
		return err_set(err, AVA_EBUSY, "run %s cannot be given a checkpoint now: ask again",
			       n->run);
	rv = run_checkpoint(r, name, by ? by : "ava", origin, &n->call, naming_on_disk, n, err);
	snprintf(n->name, sizeof(n->name), "%s", name);
	return rv;
}

struct checkpoint_args {
	const char *name, *by;
};
static const struct arg checkpoint_args[] = {
	{"name", ARG_SAID, offsetof(struct checkpoint_args, name), .most = 256},
	{"by", ARG_SAID, offsetof(struct checkpoint_args, by), .most = BY_MAX},
	{NULL},
};

static void verb_checkpoint(struct verb_call *v)
{
	struct checkpoint_args args = {.by = v->caller->user};
	struct ava_error err = {0};
	struct naming *n;
	int rv;

	if (!verb_args(v, &args))
		return;
	n = calloc(1, sizeof(*n));
	if (!n) {
		verb_fail(v->reply, AVA_ENOMEM, NULL);
		return;
	}
	snprintf(n->run, sizeof(n->run), "%s", v->id);
	n->reply = v->reply;
	rv = naming_begin(v->core, n, args.name ? args.name : "", args.by, v->caller->channel,
			  &err);
	if (rv != 0) /* else the commit answers */
		naming_answer(n, MIN(rv, 0), rv == 1, &err);
}

/* ---- pause, unpause: answered when it is on disk, with the run */

struct pausing {
	char run[24];
	struct core *core;
	struct verb_reply *reply;
};

static void pausing_looked(int rv, const struct op_status *s, const struct ava_error *err,
			   void *user)
{
	struct pausing *p = user;

	if (rv == 0)
		verb_send_status(s, p->reply, 200);
	else
		verb_fail(p->reply, rv, err);
	free(p);
}

static void pausing_on_disk(int rv, void *user)
{
	struct pausing *p = user;
	struct ava_error err = {0};

	if (rv == 0) {
		ops_look(p->core, p->run, pausing_looked, p);
		return;
	}
	err_set(&err, rv, "the runtime stops before that was kept for run %s", p->run);
	verb_fail(p->reply, rv, &err);
	free(p);
}

/* "2h" is from now on, "08:00" the next one. */
static int pause_time(const char *text, int64_t *out, struct ava_error *err)
{
	int64_t now_ms = clock_wall_ms();
	char ahead[64];

	snprintf(ahead, sizeof(ahead), "+%s", text);
	if (strlen(text) + 1 < sizeof(ahead) && query_time(ahead, now_ms, out, NULL) == 0)
		return 0;
	if (query_time(text, now_ms, out, NULL) != 0)
		return err_set(err, AVA_EINVAL,
			       "\"%.60s\" is no time: write 2h, 18:40, tomorrow, 2026-11-21 or "
			       "\"2026-11-21 08:00\"",
			       text);
	if (*out <= now_ms && strlen(text) > 2 && text[2] == ':')
		(void)query_time(text, now_ms + INT64_C(86400000), out, NULL);
	return 0;
}

static int pausing_begin(struct pausing *p, bool on, const char *until, const struct caller *caller,
			 struct ava_error *err)
{
	struct run *r = supervisor_find(&p->core->sup, p->run);
	const char *by = caller->user ? caller->user : "ava";
	int64_t until_ms = PAUSE_NO_END;
	int rv = r ? 0 : core_known(p->core, p->run, err);

	if (rv != 0)
		return rv;
	if (!r || r->agent.ending)
		return err_set(err, AVA_EEXIST, "run %s has ended: there is nothing to %s", p->run,
			       on ? "pause" : "unpause");
	if (!r->durable || r->end.abandoned)
		return err_set(err, AVA_EBUSY, "run %s cannot be told anything now: ask again",
			       p->run);
	if (until && *until)
		rv = pause_time(until, &until_ms, err);
	if (rv != 0)
		return rv;
	return on ? run_pause(r, until_ms, by, caller->channel, pausing_on_disk, p, err)
		  : run_unpause(r, by, caller->channel, pausing_on_disk, p, err);
}

struct pause_args {
	const char *until;
};
static const struct arg pause_args[] = {
	{"until", ARG_SAID, offsetof(struct pause_args, until), .most = BY_MAX},
	{NULL},
};

static void pausing_call(struct verb_call *v, bool on)
{
	struct pause_args args = {0};
	struct ava_error err = {0};
	struct pausing *p;
	int rv;

	if (!verb_args(v, on ? (void *)&args : NULL))
		return;
	p = calloc(1, sizeof(*p));
	if (!p) {
		verb_fail(v->reply, AVA_ENOMEM, NULL);
		return;
	}
	snprintf(p->run, sizeof(p->run), "%s", v->id);
	p->core = v->core;
	p->reply = v->reply;
	rv = pausing_begin(p, on, args.until, v->caller, &err);
	if (rv < 0)
		verb_fail(p->reply, rv, &err);
	if (rv < 0)
		free(p);
	else if (rv == 1)
		ops_look(p->core, p->run, pausing_looked, p);
}

static void verb_pause(struct verb_call *v)
{
	pausing_call(v, true);
}

static void verb_unpause(struct verb_call *v)
{
	pausing_call(v, false);
}

const struct verb verbs_about_words[] = {
	{"POST", "/api/v1/runs/{id}/pause", verb_pause, pause_args, false, .where = VERB_AT_RUN},
	{"POST", "/api/v1/runs/{id}/unpause", verb_unpause, NULL, false, .where = VERB_AT_RUN},
	{"POST", "/api/v1/runs/{id}/steer", verb_steer, steer_args, true, .where = VERB_AT_RUN},
	{"POST", "/api/v1/runs/{id}/checkpoint", verb_checkpoint, checkpoint_args, true,
	 .where = VERB_AT_RUN},
	{NULL},
};
