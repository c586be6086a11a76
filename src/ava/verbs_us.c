/* Verbs about the runtime itself: its health, questions to the logs, the stop of the
 * daemon; and the rows of the streams.
 *
 * Happy path of a question: a thread of the pool opens the files and writes the answer's
 * JSON. It may have to read gigabytes, so few are asked at a time, and the loop never
 * reads. Lines go out as they stand in the files: an event is JSON.
 *
 * What can fail: no such run (404), too many questions at once (to be asked again). Broken
 * lines do not fail a question: they are named in the answer. */
#include "ava/verbs.h"

#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ava/otel.h"
#include "ava/others.h"
#include "ava/prune.h"
#include "ava/state.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/keys.h"
#include "base/util.h"
#include "cluster/cluster.h"
#include "codec/redact.h"
#include "event/item.h"
#include "exec/cgroup.h"
#include "provider/model.h"

/* ---- GET /health */

static void health_budgets(struct jw *w, struct core *c)
{
	struct budgets *m = &c->sup.money;

	jw_array(w, "budgets");
	(void)money_day(&c->sup);
	for (unsigned i = 0; i < m->n; i++) {
		const struct budget *b = &m->all[i];
		char name[MONEY_NAME];

		if (!(m->limited >> i & 1))
			continue;
		snprintf(name, sizeof(name),
			 b->of[0] ? "budget of %s this %s" : "budget of %sthe %s", b->of,
			 money_period(b));
		jw_object(w, NULL);
		jw_str(w, "name", name);
		jw_str(w, "of", b->of);
		jw_str(w, "period", money_period(b));
		jw_str(w, "since", m->of[b->period].begins);
		jw_fixed(w, "cents", budget_cap(b), 4);
		jw_fixed(w, "used_cents", budget_used(b), 4);
		jw_end(w);
	}
	jw_end(w);
}

static void write_work(struct jw *w, struct core *c)
{
	struct spend today = supervisor_spend(&c->sup);

	jw_object(w, "slots");
	jw_int(w, "max", c->settings.runs_max);
	jw_int(w, "used", (int64_t)c->sup.slots_used);
	jw_end(w);
	jw_int(w, "queued", (int64_t)c->sup.nwaiting);
	jw_object(w, "runs");
	jw_int(w, "running", (int64_t)c->sup.nlive);
	jw_int(w, "total", (int64_t)c->sup.total);
	jw_end(w);
	jw_object(w, "today");
	jw_str(w, "date", today.day);
	jw_fixed(w, "cost_cents", today.microusd, 4);
	jw_int(w, "tokens", today.tokens);
	jw_int(w, "runs", (int64_t)today.runs);
	jw_int(w, "uncosted_runs", (int64_t)today.uncosted);
	if (c->settings.budget_day_cents > 0) {
		jw_fixed(w, "budget_cents", budget_cap(&c->sup.money.all[0]), 4);
		jw_fixed(w, "budget_used_cents", money_day(&c->sup), 4);
	}
	jw_end(w);
	health_budgets(w, c);
}

/* `lsn`: every event up to it is on disk and readable; follow behind it. */
static void write_journal(struct jw *w, struct core *c)
{
	const struct journal_recovery *r = &c->recovery;
	struct journal_stats js;

	journal_stats(c->journal, &js);
	jw_object(w, "journal");
	jw_int(w, "lsn", (int64_t)logbook_shown(&c->book));
	jw_int(w, "commits", (int64_t)js.commits);
	jw_int(w, "flushes", (int64_t)js.flushes);
	jw_int(w, "queued_bytes", (int64_t)js.queued_bytes);
	jw_int(w, "held_commits", (int64_t)js.held_commits);
	jw_end(w);
	jw_int(w, "loop_gaps", (int64_t)os_loop_gaps(c->loop));
	jw_object(w, "recovery");
	jw_bool(w, "clean", r->clean);
	jw_int(w, "redone_batches", (int64_t)r->redone_batches);
	jw_int(w, "torn_bytes", (int64_t)r->torn_bytes);
	jw_int(w, "damaged_batches", (int64_t)r->damaged_batches);
	jw_int(w, "lost_bytes", (int64_t)r->lost_bytes);
	jw_raw(w, "problems", r->problems ? r->problems : "[]",
	       r->problems ? strlen(r->problems) : 2);
	jw_end(w);
}

static const struct us_door {
	const char *name, *secret;
} us_doors[DOORS_N] = {
#define X(name, title, secret, ...) {#name, secret},
	DOORS(X)
#undef X
};

/* The state of each messenger whose secret is set. */
static void write_messengers(struct jw *w, struct core *c)
{
	for (size_t i = 0; i < DOORS_N; i++) {
		const struct core_messenger *m = &core_service(c)->messengers[i];

		if (!m->ask)
			continue;
		jw_object(w, us_doors[i].name);
		m->state(w, m->door);
		jw_end(w);
	}
}

/* The doors that ask the daemon; one that nobody has asked by is left out. The messenger, which
 * asks by itself, is told apart. */
static const char *const doors[CORE_NDOORS] = {"terminal", "libava", "acp", "mcp", "web"};

void core_door_asked(struct core *c, const char *channel)
{
	for (unsigned i = 0; i < CORE_NDOORS; i++)
		if (strcmp(doors[i], channel) == 0) {
			core_service(c)->doors[i].asked++;
			core_service(c)->doors[i].last_ms = clock_mono_ms();
		}
}

static void write_doors(struct jw *w, struct core *c)
{
	const struct core_service *s = core_service(c);

	jw_array(w, "doors");
	for (unsigned i = 0; i < CORE_NDOORS; i++) {
		if (s->doors[i].asked == 0)
			continue;
		jw_object(w, NULL);
		jw_str(w, "door", doors[i]);
		jw_int(w, "asked", (int64_t)s->doors[i].asked);
		jw_fixed(w, "seconds_ago", clock_mono_ms() - s->doors[i].last_ms, 3);
		jw_end(w);
	}
	jw_end(w);
	jw_object(w, "web");
	jw_str(w, "url", s->web_url);
	jw_str(w, "problem", s->web_problem);
	jw_end(w);
}

static void verb_health(struct verb_call *v)
{
	struct core *c = v->core;
	const struct core_service *s = core_service(c);
	const char *why = "", *problem = s->problem;
	struct ava_error err = {0}, no_model;
	struct verb_answer a;
	struct model model;
	char lacks[300], mark[KEYS_MARK_LEN + 1];
	bool has_model;

	if (!verb_begin_args(&a, v, NULL))
		return;
	if (core_ready(c, &err) == 0)
		(void)journal_health(c->journal, &err);
	has_model = model_resolve(c->model, &model, &why, &no_model) == 0;
	jw_object(&a.w, NULL);
	jw_str(&a.w, "status", problem[0] || err.code != 0 ? "degraded" : "ok");
	jw_str(&a.w, "problem", problem[0] ? problem : err.text);
	jw_str(&a.w, "version", ava_version());
	jw_int(&a.w, "pid", getpid());
	jw_bool(&a.w, "service", s->kept);
	jw_bool(&a.w, "busy", c->sup.nlive > 0 || !sessions_idle(c));
	jw_fixed(&a.w, "uptime_seconds", clock_mono_ms() - c->started_ms, 3);
	jw_str(&a.w, "root", c->root);
	jw_str(&a.w, "model", has_model ? model.id : "");
	jw_str(&a.w, "model_why",
	       !has_model ? no_model.text
	       : c->model ? "AVA_MODEL says so"
			  : why);
	if (!c->model && !models_default() && model_lacks(lacks, sizeof(lacks)))
		jw_str(&a.w, "model_lacks", lacks);
	jw_str(&a.w, "control_group", cgroup_what());
	jw_object(&a.w, "keys");
	jw_str(&a.w, "salt", keys_salt());
	for (size_t i = 0; keys_known[i]; i++)
		if (keys_mark(keys_salt(), keys_known[i], mark))
			jw_str(&a.w, keys_known[i], mark);
	jw_end(&a.w);
	/* Settings that differ from their defaults, so that a client can compare them with its
	 * environment's. */
	jw_object(&a.w, "settings");
	for (const struct settings_key *k = settings_keys; k->name; k++)
		if (settings_get(&c->settings, k) != k->def)
			jw_int(&a.w, k->name, settings_get(&c->settings, k));
	if (c->settings.confirm_over_cents != SETTINGS_CONFIRM_ALWAYS)
		jw_int(&a.w, "confirm", c->settings.confirm_over_cents);
	if (c->model)
		jw_str(&a.w, "model", c->model);
	jw_end(&a.w);
	otel_health(c, &a.w);
	write_doors(&a.w, c);
	write_messengers(&a.w, c);
	write_work(&a.w, c);
	write_journal(&a.w, c);
	verb_send(&a, 200);
}

/* ---- GET /models */

static void write_model(struct jw *w, const char *id, struct core *c, const char *session)
{
	struct model m;

	if (model_resolve(id, &m, NULL, NULL) != 0 || !session_takes(c, session, &m))
		return; /* no key for its service, or not a model for that conversation */
	jw_object(w, NULL);
	jw_str(w, "id", m.id);
	jw_int(w, "context", m.context);
	jw_end(w);
}

static const struct arg models_args[] = {{"session", ARG_SAID, .most = 63}, {NULL}};

/* Lists the models that can be called now. */
static void verb_models(struct verb_call *v)
{
	const struct model_row *r;
	const char *session = "";
	struct verb_answer a;

	if (!verb_begin_args(&a, v, &session))
		return;
	jw_object(&a.w, NULL);
	jw_array(&a.w, "models");
	for (size_t i = 0; (r = models_own(i)) != NULL; i++)
		write_model(&a.w, r->id, v->core, session);
	for (size_t i = 0; (r = models_builtin(i)) != NULL; i++)
		if (models_find(r->id) == r) /* else the row of config.yaml is listed */
			write_model(&a.w, r->id, v->core, session);
	write_model(&a.w, "offline", v->core, session);
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
	if (!s->shutdown)
		err_set(&err, AVA_EUNSUPPORTED, "there is no daemon");
	else if (!now && strcmp(when, "idle") != 0)
		err_set(&err, AVA_EINVAL, "when must be \"idle\" or \"now\"");
	if (!verb_begin(&a, v->reply, err.code, &err))
		return;
	jw_object(&a.w, NULL);
	jw_str(&a.w, "when", now ? "now" : "idle");
	verb_send(&a, 202);
	s->shutdown(now, s->user);
}

/* ---- GET /cluster, POST /cluster/leave */

static void verb_cluster(struct verb_call *v)
{
	const struct cluster *cluster = core_service(v->core)->cluster;
	struct verb_answer a;

	if (!verb_begin_args(&a, v, NULL))
		return;
	jw_object(&a.w, NULL);
	if (cluster) {
		jw_object(&a.w, "cluster");
		cluster_write(cluster, &a.w);
		jw_end(&a.w);
	} else {
		jw_null(&a.w, "cluster");
	}
	verb_send(&a, 200);
}

struct leave_call {
	struct core *core;
	struct verb_reply *reply;
};

/* The stop is what gives the runs away. */
static void verb_leaving(int rv, unsigned runs, const struct ava_error *err, void *user)
{
	struct leave_call call = *(struct leave_call *)user;
	struct core_service *s = core_service(call.core);
	struct verb_answer a;

	free(user);
	if (!verb_begin(&a, call.reply, rv, err))
		return;
	jw_object(&a.w, NULL);
	jw_str(&a.w, "state", "leaving");
	jw_int(&a.w, "runs", runs);
	verb_send(&a, 202);
	s->shutdown(1, s->user);
}

static void verb_leave(struct verb_call *v)
{
	struct core_service *s = core_service(v->core);
	struct leave_call *call;
	struct ava_error err;
	int rv;

	if (!verb_args(v, NULL))
		return;
	call = calloc(1, sizeof(*call));
	if (!call)
		rv = err_set(&err, AVA_ENOMEM, "out of memory");
	else if (!s->cluster || !s->shutdown)
		rv = err_set(&err, AVA_ENOENT, "this machine is in no cluster");
	else {
		*call = (struct leave_call){v->core, v->reply};
		rv = cluster_leave(s->cluster, verb_leaving, call, &err);
	}
	if (rv == 0)
		return;
	free(call);
	verb_fail(v->reply, rv, &err);
}

/* ---- POST /dashboard, POST /login */

static const struct arg dashboard_args[] = {{"sign_out", ARG_FLAG}, {NULL}};
static const struct arg login_args[] = {
	{"host", ARG_SAID, offsetof(struct core_hello, host), .most = 100},
	{"id", ARG_SAID, offsetof(struct core_hello, id), .most = 100},
	{"nonce", ARG_SAID, offsetof(struct core_hello, nonce), .most = 100},
	{"mac", ARG_SAID, offsetof(struct core_hello, mac), .most = 100},
	{NULL},
};

static int no_page(struct ava_error *err)
{
	return err_set(err, AVA_EUNSUPPORTED, "there is no daemon that serves a page");
}

/* Answers with the JSON of the page's door, or with the error. */
static void answer_web(struct verb_call *v, struct buf *json, int rv, const struct ava_error *err)
{
	struct verb_answer a;

	if (verb_begin(&a, v->reply, rv, err)) {
		jw_raw(&a.w, NULL, json->data, json->len);
		verb_send(&a, 200);
	}
	buf_fini(json);
}

static void verb_dashboard(struct verb_call *v)
{
	struct core_service *s = core_service(v->core);
	struct buf json = {.max = 1024};
	struct ava_error err = {0};
	bool sign_out = false;

	if (verb_args(v, &sign_out))
		answer_web(v, &json,
			   s->dashboard ? s->dashboard(sign_out, &json, s->web, &err)
					: no_page(&err),
			   &err);
}

static void verb_login(struct verb_call *v)
{
	struct core_service *s = core_service(v->core);
	struct core_hello hello = {"", "", "", ""};
	struct buf json = {.max = 1024};
	struct ava_error err = {0};

	if (verb_body(v) && verb_args(v, &hello))
		answer_web(v, &json,
			   s->login ? s->login(&hello, &json, s->web, &err) : no_page(&err), &err);
}

/* ---- POST /mcp-token */

static const struct arg mcp_args[] = {{"renew", ARG_FLAG}, {NULL}};

static void verb_mcp(struct verb_call *v)
{
	struct core_service *s = core_service(v->core);
	struct buf json = {.max = 1024};
	struct ava_error err = {0};
	bool renew = false;

	if (verb_args(v, &renew))
		answer_web(v, &json, s->mcp ? s->mcp(renew, &json, s->web, &err) : no_page(&err),
			   &err);
}

/* ---- POST /doors/{name} */

static const struct arg pairing_args[] = {
	{"pair", ARG_FLAG, offsetof(struct core_pairing, pair)},
	{"cwd", ARG_SAID, offsetof(struct core_pairing, cwd), .most = 4095},
	{"unpair", ARG_SAID, offsetof(struct core_pairing, unpair), .most = 255},
	{"listen", ARG_FLAG, offsetof(struct core_pairing, listen)},
	{NULL},
};

static void verb_pairing(struct verb_call *v)
{
	const struct core_messenger *m;
	struct core_pairing what = {0};
	struct ava_error err = {0};
	size_t i = 0;

	if (!verb_args(v, &what))
		return;
	while (i < DOORS_N && strcmp(us_doors[i].name, v->id) != 0)
		i++;
	m = i < DOORS_N ? &core_service(v->core)->messengers[i] : NULL;
	if (m && m->ask) {
		m->ask(&what, v->reply, m->door);
		return;
	}
	if (m)
		err_set(&err, AVA_EUNSUPPORTED,
			"there is no such door: write %s=... into the file env beside "
			"config.yaml (chmod 600) and restart the daemon",
			us_doors[i].secret);
	else
		err_set(&err, AVA_ENOENT, "there is no door of that name");
	verb_fail(v->reply, err.code, &err);
}

/* ---- GET /logs */

#define LOGS_JOBS      2    /* questions at a time; more are told to wait */
#define LOGS_LIMIT_MAX 1000 /* events of an answer */
#define EVENTS_BYTES   ((size_t)16 << 20)
#define BROKEN_MAX     100 /* broken lines named in an answer; the rest is counted */

struct question_args {
	const char *run, *type, *since, *until, *agent, *user, *session, *search, *regex;
	int64_t after, limit; /* events behind lsn `after`; -1: the newest */
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

static const struct arg items_args[] = {
	TEXT_ARG(session),
	TEXT_ARG(run),
	{"after", ARG_COUNT, offsetof(struct question_args, after), 0, INT64_MAX - 1},
	{"limit", ARG_COUNT, offsetof(struct question_args, limit), 1, LOGS_LIMIT_MAX},
	{NULL},
};

struct log_question {
	struct question_args args;
	bool items;      /* Items instead of events */
	unsigned *asked; /* core_service.log_jobs */
};

/* Events of an answer, up to its limits. */
struct log_page {
	const struct log_question *q;
	const struct redact *secrets;
	struct jw *w;
	json_t *broken; /* lines, the first ones */
	uint64_t nbroken, last;
	bool more;
};

/* 1: written; 0: no Item. */
static int write_event(struct log_page *p, const struct ava_log_event *e)
{
	struct buf json;
	struct item it;
	int rv;

	if (!p->q->items) {
		jw_raw(p->w, NULL, e->line, e->len);
		return 1;
	}
	buf_init(&json, 32u << 20);
	rv = item_make(&it, &json, e->line, e->len, ITEM_TEXT_CHARS, p->secrets);
	if (rv == 0 && it.kind != ITEM_doing)
		jw_raw(p->w, NULL, json.data, json.len);
	buf_fini(&json);
	return rv == AVA_ENOENT ? 0 : rv < 0 ? rv : it.kind != ITEM_doing;
}

static int write_events(struct log_page *p, struct ava_log *log, struct ava_error *err)
{
	struct ava_log_event e;
	int64_t n = 0;
	int rv;

	while (log != NULL && (rv = ava_log_next(log, &e, err)) != 0) {
		if (rv == AVA_ECORRUPT) {
			if (++p->nbroken <= BROKEN_MAX)
				(void)json_array_append_new(p->broken, json_string(err->text));
			continue;
		}
		if (rv < 0)
			return rv;
		p->more = n == p->q->args.limit || (n > 0 && p->w->out->len + e.len > EVENTS_BYTES);
		if (p->more)
			return 0;
		rv = write_event(p, &e);
		if (rv < 0)
			return err_set(err, rv, "out of memory");
		n += rv;
		p->last = e.lsn;
	}
	return 0;
}

/* Pool thread. */
static int ask_logs(struct verb_work *work, struct ava_error *err)
{
	const struct log_question *asked = work->own;
	const struct question_args *q = &asked->args;
	struct ava_log_query query = {
		.run = q->run,
		.everything = q->run == NULL && !asked->items, /* Ava's log has all of a person */
		.types = q->type,
		.since = q->since,
		.until = q->until,
		.agent = q->agent,
		.user = q->user,
		.session = q->session,
		.search = q->search,
		.regex = q->regex,
		.after = (uint64_t)MAX(q->after, 0),
		.last = q->after < 0 ? (size_t)q->limit : 0,
	};
	struct jw *w = &work->answer.w;
	struct buf root;
	struct log_page p = {.q = asked,
			     .secrets = work->job.core->redact,
			     .w = w,
			     .broken = json_array(),
			     .last = query.after};
	struct ava_log *log = NULL;
	int rv;

	buf_init(&root, 8192);
	(void)others_root(work, &root);
	query.root = root.data;
	rv = buf_check(&root) ? buf_check(&root) : ava_log_open(&log, &query, err);
	buf_fini(&root);
	if (rv == AVA_ENOENT && q->run == NULL) /* nothing has been logged yet */
		rv = 0;
	jw_object(w, NULL);
	jw_array(w, asked->items ? "items" : "events");
	if (rv == 0)
		rv = write_events(&p, log, err);
	ava_log_close(log);
	jw_end(w);
	jw_int(w, "next", (int64_t)p.last);
	jw_bool(w, "more", p.more);
	jw_int(w, "brokenLines", (int64_t)p.nbroken);
	jw_array(w, "broken");
	for (size_t i = 0; i < json_array_size(p.broken); i++)
		jw_str(w, NULL, json_string_value(json_array_get(p.broken, i)));
	json_decref(p.broken);
	return rv;
}

static void question_end(struct verb_work *w)
{
	--*((struct log_question *)w->own)->asked;
}

static void logs_asked(struct verb_call *v, struct log_question *q)
{
	struct ava_error err = {0};

	q->asked = &core_service(v->core)->log_jobs;
	if (!verb_args(v, &q->args))
		return;
	if (*q->asked >= LOGS_JOBS) {
		err_set(&err, AVA_EBUSY, "%d questions are being answered: ask again", LOGS_JOBS);
		verb_fail(v->reply, AVA_EBUSY, &err);
		return;
	}
	++*q->asked;
	others_work(v, q->args.run ? q->args.run : "",
		    &(struct verb_work){.work = ask_logs, .fini = question_end, .own = q},
		    sizeof(*q));
}

static void verb_logs(struct verb_call *v)
{
	logs_asked(v, &(struct log_question){.args = {.after = -1, .limit = 100}});
}

/* Newest Items, or those behind `after`, oldest first. */
static void verb_items(struct verb_call *v)
{
#define X(event, ...) #event ","
	static const char types[] = ITEM_EVENTS(X);
#undef X

	logs_asked(v, &(struct log_question){.args = {.after = -1, .limit = 100, .type = types},
					     .items = true});
}

/* ---- GET /verify */

#define FINDINGS_MAX 200

static void verbs_us_take_finding(const struct ava_finding *f, void *user)
{
	static const char *const kinds[] = {
		[AVA_BROKEN] = "broken", [AVA_UNSEALED] = "unsealed", [AVA_NOTE] = "note"};
	json_t *findings = user;

	if (f->kind != AVA_UNSEALED && json_array_size(findings) < FINDINGS_MAX)
		json_array_append_new(findings, json_pack("{s:s,s:s,s:I,s:s}", "kind",
							  kinds[f->kind], "path", f->path, "line",
							  (json_int_t)f->line, "what", f->what));
}

/* Pool thread. */
static int verify_logs(struct verb_work *work, struct ava_error *err)
{
	json_t *findings = json_array();
	const struct ava_verify options = {
		.root = work->job.core->root, .finding = verbs_us_take_finding, .user = findings};
	struct jw *w = &work->answer.w;
	struct ava_verified r;
	int rv = findings ? ava_log_verify(&options, &r, err)
			  : err_set(err, AVA_ENOMEM, "out of memory");
	struct buf b;

	buf_init(&b, EVENTS_BYTES);
	if (rv == 0)
		rv = json_dump(&b, findings);
	if (rv == 0) {
		jw_object(w, NULL);
		jw_bool(w, "ok", r.broken == 0);
		jw_int(w, "files", (int64_t)r.files);
		jw_int(w, "bytes", (int64_t)r.bytes);
		jw_int(w, "seals", (int64_t)r.seals);
		jw_int(w, "broken", (int64_t)r.broken);
		jw_int(w, "unsealed_files", (int64_t)r.unsealed_files);
		jw_str(w, "newest_at", r.newest.n > 0 ? r.newest.at : "");
		jw_raw(w, "findings", b.data, b.len);
		jw_end(w);
	}
	buf_fini(&b);
	json_decref(findings);
	return rv;
}

static void verb_verify(struct verb_call *v)
{
	if (verb_args(v, NULL))
		verb_work(v, &(struct verb_work){.work = verify_logs}, 0, false);
}

/* ---- a line of a program in the audit log */

struct audit_args {
	const char *type, *session;
	const json_t *data;
};
static const struct arg audit_args[] = {
	{"type", ARG_SAID, offsetof(struct audit_args, type), .most = 64},
	{"data", ARG_JSON, offsetof(struct audit_args, data)},
	{"session_id", ARG_TEXT, offsetof(struct audit_args, session)},
	{NULL},
};
#define AUDIT_MAX (256u << 10)

/* Writes the content, without secrets, into `out`. The prefix "audit." keeps it apart from events
 * of the runtime. */
static int audit_content(const struct core *c, const struct audit_args *args, struct buf *out,
			 struct ava_error *err)
{
	size_t plain = args->type ? strspn(args->type, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQ"
						       "RSTUVWXYZ0123456789._-")
				  : 0;
	struct buf data;
	int rv;

	if (plain == 0 || args->type[plain] != '\0')
		return err_set(err, AVA_EINVAL, "type must be letters, digits, '.', '_' and '-'");
	if (args->session && !strmap_get(&c->session_by_id, args->session))
		return err_set(err, AVA_ENOENT, "there is no session %.60s", args->session);
	buf_init(&data, AUDIT_MAX);
	rv = args->data ? json_dump(&data, args->data) : buf_adds(&data, "{}");
	buf_addf(out, "{\"customType\":\"audit.%s\",\"data\":", args->type);
	if (rv == 0 && c->redact)
		rv = MIN(redact_json(c->redact, out, data.data, data.len), 0);
	else if (rv == 0)
		buf_add(out, data.data, data.len);
	buf_addc(out, '}');
	buf_fini(&data);
	rv = rv != 0 ? rv : buf_check(out);
	return rv == 0 ? 0
		       : err_set(err, rv, "data is over %u KB, or memory is short",
				 AUDIT_MAX >> 10);
}

static void verb_audit(struct verb_call *v)
{
	struct audit_args args = {0};
	struct ava_error err = {0};
	struct buf b;
	int rv;

	if (!verb_body(v) || !verb_args(v, &args))
		return;
	buf_init(&b, 2 * AUDIT_MAX);
	rv = audit_content(v->core, &args, &b, &err);
	verb_record(v, rv, args.session ? args.session : "", &b, &err);
}

/* ---- streams (gateway/routes.c) */

static const struct arg events_args[] = {
	{"after", ARG_TEXT, offsetof(struct verbs_events, behind)},
	{"machines", ARG_TEXT, offsetof(struct verbs_events, machines)},
	{"session", ARG_TEXT, offsetof(struct verbs_events, session)},
	{"agents", ARG_FLAG, offsetof(struct verbs_events, agents)},
	{"items", ARG_TEXT, offsetof(struct verbs_events, items_said)},
	{NULL},
};
static const struct arg run_events_args[] = {
	{"after", ARG_COUNT, offsetof(struct verbs_events, after), 0, INT64_MAX - 1},
	{"items", ARG_TEXT, offsetof(struct verbs_events, items_said)},
	{"text", ARG_FLAG, offsetof(struct verbs_events, text)},
	{NULL},
};

int verbs_items(struct verbs_events *e, struct ava_error *err)
{
	const char *said = e->items_said, *of = e->machines;

	if (of && strcmp(of, "all") != 0 && strcmp(of, "own") != 0 && strcmp(of, "only") != 0)
		return err_set(err, AVA_EINVAL,
			       "machines must be all, own (this one), or only (the others)");
	if (!said)
		e->items = e->session[0] ? ITEMS_BESIDE : ITEMS_NONE;
	else if (strcmp(said, "only") == 0)
		e->items = ITEMS_ONLY;
	else if (strcmp(said, "1") == 0 || strcmp(said, "true") == 0)
		e->items = ITEMS_BESIDE;
	else if (strcmp(said, "0") == 0 || strcmp(said, "false") == 0)
		e->items = ITEMS_NONE;
	else
		return err_set(err, AVA_EINVAL, "items must be 1 (beside the events), only, or 0");
	return 0;
}

const struct verb verbs_about_us[] = {
	{"GET", "/api/v1/health", verb_health, NULL, false},
	{"GET", "/api/v1/models", verb_models, models_args, false},
	{"GET", "/api/v1/logs", verb_logs, logs_args, false},
	{"GET", "/api/v1/items", verb_items, items_args, false},
	{"GET", "/api/v1/verify", verb_verify, NULL, false},
	{"GET", "/api/v1/events", NULL, events_args, false},
	{"GET", "/api/v1/runs/{id}/events", NULL, run_events_args, false},
	{"POST", "/api/v1/audit", verb_audit, audit_args, true},
	{"POST", "/api/v1/prune", verb_prune, prune_args, false},
	{"POST", "/api/v1/seals", verb_seal, NULL, false},
	{"POST", "/api/v1/dashboard", verb_dashboard, dashboard_args, false},
	{"POST", "/api/v1/login", verb_login, login_args, false},
	{"POST", "/api/v1/mcp-token", verb_mcp, mcp_args, false},
	{"POST", "/api/v1/doors/{id}", verb_pairing, pairing_args, false},
	{"POST", "/api/v1/shutdown", verb_shutdown, shutdown_args, false},
	{"GET", "/api/v1/cluster", verb_cluster, NULL, false},
	{"POST", "/api/v1/cluster/leave", verb_leave, NULL, false},
	{NULL},
};
