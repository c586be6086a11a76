/* Verbs about the runtime itself: its health, questions to the logs, the stop of the
 * daemon; and the rows of the streams.
 *
 * Happy path of a question: a thread of the pool opens the files and writes the answer's
 * JSON. It may have to read gigabytes, so few are asked at a time, and the loop never
 * reads. Lines go out as they stand in the files: an event is JSON.
 *
 * What can fail: no such run (404), too many questions at once (to be asked again). Broken
 * lines do not fail a question: they are named in the answer. */
#include <ava.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ava/job.h"
#include "ava/state.h"
#include "ava/verbs.h"
#include "base/error.h"
#include "base/keys.h"
#include "base/util.h"

/* ---- GET /health */

/* By which a client sees whether its keys are ours (base/keys.h). */
static void write_marks(struct jw *w)
{
	char mark[KEYS_MARK_LEN + 1];

	jw_object(w, "keys");
	jw_str(w, "salt", keys_salt());
	for (size_t i = 0; keys_known[i]; i++)
		if (keys_mark(keys_salt(), keys_known[i], mark))
			jw_str(w, keys_known[i], mark);
	jw_end(w);
}

static void write_work(struct jw *w, const struct op_health *h)
{
	jw_object(w, "slots");
	jw_int(w, "max", (int64_t)h->slots_max);
	jw_int(w, "used", (int64_t)h->slots_used);
	jw_end(w);
	jw_int(w, "queued", (int64_t)h->queued);
	jw_object(w, "runs");
	jw_int(w, "running", (int64_t)h->running);
	jw_int(w, "total", (int64_t)h->runs_total);
	jw_end(w);
	jw_object(w, "today");
	jw_str(w, "date", h->today.day);
	jw_fixed(w, "cost_cents", h->today.microusd, 4);
	jw_int(w, "tokens", h->today.tokens);
	jw_int(w, "runs", (int64_t)h->today.runs);
	jw_int(w, "uncosted_runs", (int64_t)h->today.uncosted);
	if (h->budget > 0) {
		jw_fixed(w, "budget_cents", h->budget, 4);
		jw_fixed(w, "budget_used_cents", h->budget_used, 4);
	}
	jw_end(w);
}

static void write_journal(struct jw *w, const struct op_health *h)
{
	jw_object(w, "journal");
	jw_int(w, "lsn", (int64_t)h->lsn);
	jw_int(w, "commits", (int64_t)h->commits);
	jw_int(w, "flushes", (int64_t)h->flushes);
	jw_int(w, "queued_bytes", (int64_t)h->queued_bytes);
	jw_int(w, "held_commits", (int64_t)h->held_commits);
	jw_end(w);
	jw_int(w, "loop_gaps", (int64_t)h->loop_gaps);
	jw_object(w, "recovery");
	jw_bool(w, "clean", h->recovery_clean);
	jw_int(w, "redone_batches", (int64_t)h->redone_batches);
	jw_int(w, "torn_bytes", (int64_t)h->torn_bytes);
	jw_int(w, "damaged_batches", (int64_t)h->damaged_batches);
	jw_int(w, "lost_bytes", (int64_t)h->lost_bytes);
	jw_raw(w, "problems", h->recovery_problems, strlen(h->recovery_problems));
	jw_end(w);
}

static void verb_health(struct verb_call *v)
{
	struct verb_answer a;
	struct op_health h;

	if (!verb_begin_args(&a, v, NULL))
		return;
	ops_health(v->core, &h);
	jw_object(&a.w, NULL);
	jw_str(&a.w, "status", h.code == 0 ? "ok" : "degraded");
	jw_str(&a.w, "problem", h.problem);
	jw_str(&a.w, "version", h.version);
	jw_int(&a.w, "pid", getpid());
	jw_fixed(&a.w, "uptime_seconds", h.uptime_ms, 3);
	jw_str(&a.w, "root", h.root);
	jw_str(&a.w, "model", h.model);
	jw_str(&a.w, "model_why", h.model_why);
	write_marks(&a.w);
	if (h.otel)
		jw_raw(&a.w, "otel", h.otel, strlen(h.otel));
	write_work(&a.w, &h);
	write_journal(&a.w, &h);
	verb_send(&a, 200);
}

/* ---- POST /shutdown */

static const struct arg shutdown_args[] = {{"when", ARG_SAID, .most = 200}, {NULL}};

static void verb_shutdown(struct verb_call *v)
{
	struct core_service *s = core_service(v->core);
	struct ava_error err = {0};
	struct verb_answer a;
	const char *when = "idle";
	bool now;

	if (!verb_args(v, &when))
		return;
	now = strcmp(when, "now") == 0;
	if (!s->shutdown || (!now && strcmp(when, "idle") != 0)) {
		int rv = s->shutdown ? AVA_EINVAL : AVA_EUNSUPPORTED;

		err_set(&err, rv,
			s->shutdown ? "when must be \"idle\" or \"now\"" : "there is no daemon");
		verb_fail(v->reply, rv, &err);
		return;
	}
	verb_begin(&a, v->reply, 0, NULL);
	jw_object(&a.w, NULL);
	jw_str(&a.w, "when", now ? "now" : "idle");
	verb_send(&a, 202);
	s->shutdown(now, s->user);
}

/* ---- GET /logs */

#define LOGS_JOBS      2    /* questions at a time; more are told to wait */
#define LOGS_LIMIT_MAX 1000 /* events of an answer */
#define EVENTS_BYTES   ((size_t)16 << 20)
#define BROKEN_MAX     100 /* named; the rest is counted */

struct question_args {
	const char *run, *type, *since, *until, *agent, *user, *session, *search, *regex;
	int64_t after, limit; /* after -1: the newest */
};

#define TEXT_ARG(name)                                                                             \
	{                                                                                          \
#name, ARG_TEXT, offsetof(struct question_args, name)                              \
	}
static const struct arg logs_args[] = {
	TEXT_ARG(run),
	TEXT_ARG(type),
	TEXT_ARG(since),
	TEXT_ARG(until),
	TEXT_ARG(agent),
	TEXT_ARG(user),
	TEXT_ARG(session),
	TEXT_ARG(search),
	TEXT_ARG(regex),
	{"after", ARG_COUNT, offsetof(struct question_args, after), 0, INT64_MAX - 1},
	{"limit", ARG_COUNT, offsetof(struct question_args, limit), 1, LOGS_LIMIT_MAX},
	{NULL},
};

struct log_job {
	struct job job;
	json_t *held; /* the strings of `args` stand in it */
	struct question_args args;
	struct verb_answer answer;
	char *broken[BROKEN_MAX]; /* owned */
	uint64_t nbroken, events, last;
	bool more;
	int rv;
	struct ava_error err;
};

static int write_events(struct log_job *j, struct ava_log *log)
{
	struct ava_log_event e;
	int rv;

	if (log == NULL) /* nothing has been logged yet */
		return 0;
	while ((rv = ava_log_next(log, &e, &j->err)) != 0) {
		if (rv == AVA_ECORRUPT) {
			if (j->nbroken < BROKEN_MAX) /* NULL: counted all the same */
				j->broken[j->nbroken] = strdup(j->err.text);
			j->nbroken++;
			continue;
		}
		if (rv < 0)
			return rv;
		j->more = j->events == (uint64_t)j->args.limit ||
			  (j->events > 0 && j->answer.b.len + e.len > EVENTS_BYTES);
		if (j->more)
			return 0;
		jw_raw(&j->answer.w, NULL, e.line, e.len);
		j->events++;
		j->last = e.lsn;
	}
	return 0;
}

static int write_log_answer(struct log_job *j, struct ava_log *log)
{
	struct jw *w = &j->answer.w;
	int rv;

	jw_object(w, NULL);
	jw_array(w, "events");
	rv = write_events(j, log);
	if (rv != 0)
		return rv;
	jw_end(w);
	jw_int(w, "next", j->events > 0 ? (int64_t)j->last : MAX(j->args.after, 0));
	jw_bool(w, "more", j->more);
	jw_int(w, "brokenLines", (int64_t)j->nbroken);
	jw_array(w, "broken");
	for (uint64_t i = 0; i < MIN(j->nbroken, (uint64_t)BROKEN_MAX); i++)
		jw_str(w, NULL, j->broken[i]);
	return 0;
}

/* Pool thread. */
static void ask_logs(struct job *job)
{
	struct log_job *j = CONTAINER_OF(job, struct log_job, job);
	struct ava_log_query q = {
		.root = job->core->root, /* it does not change */
		.run = j->args.run,
		.everything = j->args.run == NULL,
		.types = j->args.type,
		.since = j->args.since,
		.until = j->args.until,
		.agent = j->args.agent,
		.user = j->args.user,
		.session = j->args.session,
		.search = j->args.search,
		.regex = j->args.regex,
		.after = (uint64_t)MAX(j->args.after, 0),
		.last = j->args.after < 0 ? (size_t)j->args.limit : 0,
	};
	struct ava_log *log;

	j->rv = ava_log_open(&log, &q, &j->err);
	if (j->rv == 0 || (j->rv == AVA_ENOENT && q.run == NULL))
		j->rv = write_log_answer(j, log);
	ava_log_close(log);
}

static void log_job_free(struct log_job *j)
{
	for (size_t i = 0; i < BROKEN_MAX; i++)
		free(j->broken[i]);
	json_decref(j->held);
	free(j);
}

static void logs_asked(struct job *job)
{
	struct log_job *j = CONTAINER_OF(job, struct log_job, job);

	core_service(job->core)->log_jobs--;
	if (j->rv == 0)
		verb_send(&j->answer, 200);
	else
		verb_drop(&j->answer, &j->err);
	log_job_free(j);
}

static int begin_question(struct verb_call *v, const struct question_args *args,
			  struct ava_error *err)
{
	struct core_service *s = core_service(v->core);
	struct log_job *j;
	int rv;

	if (s->log_jobs >= LOGS_JOBS)
		return err_set(err, AVA_EBUSY, "%d questions are being answered: ask again",
			       LOGS_JOBS);
	j = calloc(1, sizeof(*j));
	if (!j)
		return err_set(err, AVA_ENOMEM, "out of memory");
	j->args = *args;
	j->job.run = ask_logs;
	j->job.done = logs_asked;
	j->held = json_incref((json_t *)v->args);
	verb_begin(&j->answer, v->reply, 0, NULL);
	rv = job_begin(v->core, &j->job, err); /* from then on another thread's */
	if (rv != 0) {
		log_job_free(j);
		return rv;
	}
	s->log_jobs++;
	return 0;
}

static void verb_logs(struct verb_call *v)
{
	struct question_args q = {.after = -1, .limit = 100};
	struct ava_error err = {0};
	int rv;

	if (!verb_args(v, &q))
		return;
	rv = begin_question(v, &q, &err);
	if (rv != 0)
		verb_fail(v->reply, rv, &err);
}

/* ---- streams (gateway/events.c) */

static const struct arg events_args[] = {
	{"after", ARG_COUNT, offsetof(struct verbs_events, after), 0, INT64_MAX - 1},
	{"session", ARG_TEXT, offsetof(struct verbs_events, session)},
	{NULL},
};
static const struct arg run_events_args[] = {
	{"after", ARG_COUNT, offsetof(struct verbs_events, after), 0, INT64_MAX - 1},
	{NULL},
};

const struct verb verbs_about_us[] = {
	{"GET", "/api/v1/health", verb_health, NULL, false},
	{"GET", "/api/v1/logs", verb_logs, logs_args, false},
	{"GET", "/api/v1/events", NULL, events_args, false},
	{"GET", "/api/v1/runs/{id}/events", NULL, run_events_args, false},
	{"POST", "/api/v1/shutdown", verb_shutdown, shutdown_args, false},
	{NULL},
};
