/* The table of verbs, the reader of their arguments, and the way an answer goes.
 *
 * Happy path: the row is found, its function reads its arguments strictly and answers at
 * once or when the disk has it. What can fail: everything a peer can get wrong, each with
 * its sentence; new work while the data root is not in order; memory. */
#include "ava/verbs.h"

#include <ava.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ava/otel.h"
#include "ava/state.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/keys.h"
#include "base/util.h"
#include "codec/redact.h"
#include "provider/model.h"

#define REPLY_MAX  (128u << 20)
#define CALL_MEM   (16u << 20)
#define QUERY_TEXT 4096

/* ---- arguments */

/* The names that are taken, for who has written another one. */
static void args_names(const struct arg *args, char *out, size_t size)
{
	size_t n = 0;

	snprintf(out, size, "none");
	for (size_t i = 0; args && args[i].name && n < size; i++)
		if (i == 0 || strcmp(args[i].name, args[i - 1].name) != 0)
			n += (size_t)snprintf(out + n, size - n, "%s%s", n ? ", " : "",
					      args[i].name);
}

/* A number times `scale`, which must not overflow or lose what was meant. */
static int read_number(const struct arg *a, const json_t *v, int64_t scale, int64_t *out,
		       struct ava_error *err)
{
	double d;

	if (!json_is_number(v))
		return err_set(err, AVA_EINVAL, "%s must be a number", a->name);
	d = json_number_value(v) * (double)scale;
	if (!(fabs(d) < 9e15))
		return err_set(err, AVA_EINVAL, "%s is out of range", a->name);
	if (scale == 1 && d != floor(d))
		return err_set(err, AVA_EINVAL, "%s must be a whole number", a->name);
	/* Below the smallest unit is still not 0. */
	*out = d > 0 && d < 1 ? 1 : d < 0 && d > -1 ? -1 : (int64_t)llround(d);
	if (a->least != a->most && (*out < a->least || *out > a->most))
		return err_set(err, AVA_EINVAL, "%s must be a whole number from %lld to %lld",
			       a->name, (long long)a->least, (long long)a->most);
	return 0;
}

static int read_texts(const struct arg *a, const json_t *v, char *out, struct arena *mem,
		      struct ava_error *err)
{
	const char *const **list = (const char *const **)(out + a->at);
	size_t n = json_array_size(v), i;
	const char **items;
	const json_t *e;

	if (!json_is_array(v) || n > ARG_TEXTS_MAX)
		return err_set(err, AVA_EINVAL, "%s must be a list of at most %d strings", a->name,
			       ARG_TEXTS_MAX);
	items = arena_get(mem, (n + 1) * sizeof(*items));
	if (!items)
		return err_set(err, AVA_ENOMEM, "out of memory");
	json_array_foreach(v, i, e)
	{
		if (!json_is_string(e))
			return err_set(err, AVA_EINVAL, "%s must be a list of strings", a->name);
		items[i] = json_string_value(e);
	}
	*list = items;
	memcpy(out + a->at_n, &n, sizeof(n));
	return 0;
}

static int read_text(const struct arg *a, const json_t *v, char *out, struct ava_error *err)
{
	const char *s = json_string_value(v);

	if (!s)
		return err_set(err, AVA_EINVAL, "%s must be a string", a->name);
	if (a->kind == ARG_SAID && json_string_length(v) > (size_t)a->most)
		return err_set(err, AVA_ETOOBIG, "%s is over %lld bytes", a->name,
			       (long long)a->most);
	if (a->kind == ARG_WORD && strlen(s) >= (size_t)a->most)
		return err_set(err, AVA_EINVAL, "%s is over %lld bytes", a->name,
			       (long long)a->most - 1);
	if (a->kind == ARG_WORD)
		memcpy(out + a->at, s, strlen(s) + 1);
	else
		memcpy(out + a->at, &s, sizeof(s));
	return 0;
}

static int read_flag(const struct arg *a, const json_t *v, char *out, struct ava_error *err)
{
	bool on = json_is_true(v);
	int choice = on;

	if (!json_is_boolean(v))
		return err_set(err, AVA_EINVAL, "%s must be true or false", a->name);
	if (a->kind == ARG_FLAG)
		memcpy(out + a->at, &on, sizeof(on));
	else
		memcpy(out + a->at, &choice, sizeof(choice));
	return 0;
}

static int read_arg(const struct arg *a, const json_t *v, char *out, struct arena *mem,
		    struct ava_error *err)
{
	if (json_is_null(v) && a->kind != ARG_SAID && a->kind != ARG_ANY && a->kind != ARG_JSON)
		return 0;
	switch (a->kind) {
	case ARG_TEXT:
	case ARG_SAID:
	case ARG_WORD:
		return read_text(a, v, out, err);
	case ARG_FLAG:
	case ARG_CHOICE:
		return read_flag(a, v, out, err);
	case ARG_COUNT:
		return read_number(a, v, 1, (int64_t *)(out + a->at), err);
	case ARG_MS:
		return read_number(a, v, 1000, (int64_t *)(out + a->at), err);
	case ARG_CENTS:
		return read_number(a, v, 10000, (int64_t *)(out + a->at), err);
	case ARG_TEXTS:
		return read_texts(a, v, out, mem, err);
	case ARG_JSON:
		if (!json_is_object(v))
			return err_set(err, AVA_EINVAL, "%s must be an object", a->name);
		break;
	case ARG_ANY:
		break;
	}
	memcpy(out + a->at, &v, sizeof(v)); /* borrowed from the arguments */
	return 0;
}

int args_read(const struct arg *args, const json_t *o, void *out, struct arena *mem,
	      struct ava_error *err)
{
	const char *key;
	char names[400];
	json_t *v;
	int rv = 0;

	if (o && !json_is_object(o))
		return err_set(err, AVA_EINVAL, "the body must be a JSON object");
	json_object_foreach((json_t *)o, key, v)
	{
		const struct arg *a = args;

		while (a && a->name && strcmp(a->name, key) != 0)
			a++;
		if (!a || !a->name) {
			args_names(args, names, sizeof(names));
			return err_set(err, AVA_EINVAL,
				       "unknown key %.60s in the request: it takes %s", key, names);
		}
		if (a[1].name && strcmp(a[1].name, key) == 0 && !json_is_string(v))
			a++; /* the one that is no text */
		rv = read_arg(a, v, out, mem, err);
		if (rv != 0)
			return rv;
	}
	return 0;
}

/* ---- arguments of a query */

/* Digits, and of seconds a point: "2", "0.5", "7200". */
static json_t *query_number(const struct arg *a, const char *value, struct ava_error *err)
{
	bool whole = a->kind == ARG_COUNT;
	size_t len = strlen(value);
	json_t *v = len > 0 && strspn(value, whole ? "0123456789" : "0123456789.") == len
			    ? json_parse(value, len, NULL)
			    : NULL;
	int64_t n = json_integer_value(v);

	if (json_is_number(v) && (!whole || (n >= a->least && n <= a->most)))
		return v;
	json_decref(v);
	if (whole)
		err_set(err, AVA_EINVAL,
			"%s is \"%.40s\"; it must be a whole number from %lld to %lld", a->name,
			value, (long long)a->least, (long long)a->most);
	else
		err_set(err, AVA_EINVAL, "%s is \"%.40s\"; it must be a number of seconds", a->name,
			value);
	return NULL;
}

static json_t *query_flag(const struct arg *a, const char *value, struct ava_error *err)
{
	if (*value == '\0' || strcmp(value, "1") == 0 || strcmp(value, "true") == 0)
		return json_true();
	if (strcmp(value, "0") == 0 || strcmp(value, "false") == 0)
		return json_false();
	err_set(err, AVA_EINVAL, "%s is \"%.40s\"; it must be 1 or 0", a->name, value);
	return NULL;
}

int args_query(const struct arg *args, const char *name, const char *value, json_t *o,
	       struct ava_error *err)
{
	const struct arg *a = args;
	char names[400];
	json_t *v;

	while (a && a->name && strcmp(a->name, name) != 0)
		a++;
	if (!a || !a->name) {
		args_names(args, names, sizeof(names));
		return err_set(err, AVA_EINVAL, "unknown argument %.60s: this path takes %s", name,
			       names);
	}
	if (json_object_get(o, name))
		return err_set(err, AVA_EINVAL, "%s is given twice", name);
	err->code = 0;
	if (a->kind == ARG_COUNT || a->kind == ARG_MS)
		v = query_number(a, value, err);
	else if (a->kind == ARG_FLAG)
		v = query_flag(a, value, err);
	else
		v = strlen(value) <= QUERY_TEXT ? json_string(value) : NULL;
	if (!v && err->code == 0)
		return err_set(err, AVA_EINVAL, "%s has more than %d bytes, or is no UTF-8", name,
			       QUERY_TEXT);
	if (!v)
		return err->code;
	return json_object_set_new(o, name, v) == 0 ? 0 : err_set(err, AVA_ENOMEM, "out of memory");
}

/* ---- answers */

int verbs_http_status(int code)
{
	switch (code) {
	case AVA_OK:
		return 200;
	case AVA_EINVAL:
		return 400;
	case AVA_EDENIED:
		return 403;
	case AVA_ENOENT:
		return 404;
	case AVA_EEXIST:
	case AVA_EBUSY:
	case AVA_EBUDGET:
		return 409;
	case AVA_EREJECTED:
	case AVA_EEXPIRED:
		return 410;
	case AVA_ETOOBIG:
		return 413;
	case AVA_EUNSUPPORTED:
	case AVA_EFORMAT:
		return 422;
	case AVA_EFULL:
		return 507;
	case AVA_EIO:
	case AVA_EUNKNOWN:
	case AVA_ECANCELED:
		return 503;
	default:
		return 500;
	}
}

int verbs_error(struct buf *out, int code, const char *message)
{
	struct jw w;

	jw_init(&w, out);
	jw_object(&w, NULL);
	jw_object(&w, "error");
	jw_str(&w, "code", err_word(code));
	jw_str(&w, "message", message);
	jw_end(&w);
	jw_end(&w);
	return buf_check(out);
}

void verb_fail(struct verb_reply *r, int rv, const struct ava_error *err)
{
	struct ava_error own = {0};

	err_set(&own, rv, "%s", err && err->text[0] ? err->text : ava_strerror(rv));
	r->give_up = NULL;
	r->done(r, verbs_http_status(rv), NULL, &own);
}

bool verb_begin(struct verb_answer *a, struct verb_reply *reply, int rv,
		const struct ava_error *err)
{
	if (rv != 0) {
		verb_fail(reply, rv, err);
		return false;
	}
	a->reply = reply;
	buf_init(&a->b, REPLY_MAX);
	jw_init(&a->w, &a->b);
	return true;
}

bool verb_begin_args(struct verb_answer *a, struct verb_call *v, void *out)
{
	return verb_args(v, out) && verb_begin(a, v->reply, 0, NULL);
}

void verb_send(struct verb_answer *a, int status)
{
	struct ava_error err = {0};
	int rv;

	while (a->w.depth > 0)
		jw_end(&a->w);
	rv = buf_check(&a->b);
	a->reply->give_up = NULL;
	if (rv == 0) {
		a->reply->done(a->reply, status, &a->b, NULL);
	} else {
		err_set(&err, rv,
			rv == AVA_ETOOBIG ? "the answer would be too big: ask for less of it"
					  : "out of memory");
		verb_fail(a->reply, rv, &err);
	}
	buf_fini(&a->b);
}

void verb_drop(struct verb_answer *a, const struct ava_error *err)
{
	buf_fini(&a->b);
	verb_fail(a->reply, err->code, err);
}

/* Pool thread. */
static void work_run(struct job *j)
{
	struct verb_work *w = CONTAINER_OF(j, struct verb_work, job);

	w->rv = w->work(w, &w->err);
}

static void work_done(struct job *j)
{
	struct verb_work *w = CONTAINER_OF(j, struct verb_work, job);

	if (w->fini)
		w->fini(w);
	if (w->rv == 0)
		verb_send(&w->answer, 200);
	else
		verb_drop(&w->answer, &w->err);
	json_decref(w->args);
	free(w->own);
	free(w);
}

void verb_work(struct verb_call *v, const struct verb_work *like, size_t own_size, bool brief)
{
	struct verb_work *w = malloc(sizeof(*w));
	int rv;

	if (w)
		*w = *like;
	if (w && own_size > 0)
		w->own = malloc(own_size);
	if (!w || (own_size > 0 && !w->own)) {
		free(w);
		if (like->fini)
			like->fini((struct verb_work *)like);
		if (like->answer.reply)
			buf_fini((struct buf *)&like->answer.b);
		verb_fail(v->reply, AVA_ENOMEM, NULL);
		return;
	}
	if (own_size > 0)
		memcpy(w->own, like->own, own_size);
	w->args = json_incref((json_t *)v->args);
	snprintf(w->id, sizeof(w->id), "%s", v->id);
	if (w->answer.reply)
		w->answer.w.out = &w->answer.b;
	else
		verb_begin(&w->answer, v->reply, 0, NULL);
	w->job.run = work_run;
	w->job.done = work_done;
	rv = (brief ? job_begin_short : job_begin)(v->core, &w->job, &w->err);
	if (rv != 0) { /* else it is another thread's from now on */
		w->rv = rv;
		work_done(&w->job);
	}
}

void verb_time(struct jw *w, const char *key, int64_t wall_ms)
{
	char text[CLOCK_ISO_LEN + 1] = "";

	if (wall_ms > 0)
		clock_iso(wall_ms, text);
	jw_str(w, key, text);
}

void verb_cost(struct jw *w, const char *key, int64_t microusd)
{
	if (microusd < 0)
		jw_null(w, key);
	else
		jw_fixed(w, key, microusd, 4);
}

/* ---- calling */

bool verb_args(struct verb_call *v, void *out)
{
	const char *problem = core_service(v->core)->problem;
	struct ava_error err = {0};
	int rv = args_read(v->verb->args, v->args, out, &v->mem, &err);

	if (rv == 0 && v->verb->begins && problem[0])
		rv = err_set(&err, AVA_EIO, "nothing was started: %s", problem);
	if (rv != 0)
		verb_fail(v->reply, rv, &err);
	return rv == 0;
}

bool verb_body(struct verb_call *v)
{
	struct ava_error err = {0};

	if (!v->args) {
		err_set(&err, AVA_EINVAL, "the body must be a JSON object");
		verb_fail(v->reply, AVA_EINVAL, &err);
	}
	return v->args != NULL;
}

void verbs_call(struct core *c, const struct verb *verb, const struct caller *caller,
		const char *id, const json_t *args, struct verb_reply *reply)
{
	struct verb_call v = {
		.core = c, .verb = verb, .caller = caller, .id = id, .args = args, .reply = reply};
	struct ava_error err = {0};

	if (caller->trust != CALLER_OWNER) {
		err_set(&err, AVA_EDENIED, "this daemon serves its owner only");
		verb_fail(reply, AVA_EDENIED, &err);
		return;
	}
	arena_init(&v.mem, CALL_MEM);
	verb->call(&v);
	arena_fini(&v.mem);
}

/* ---- the table */

static const struct verb *const rooms[] = {
	verbs_about_runs,     verbs_about_words,    verbs_about_results, verbs_about_proposals,
	verbs_about_sessions, verbs_about_delivery, verbs_about_us};

const struct verb *verbs_row(size_t i)
{
	for (size_t room = 0; room < ARRAY_LEN(rooms); room++)
		for (const struct verb *v = rooms[room]; v->path; v++)
			if (i-- == 0)
				return v;
	return NULL;
}

static bool verb_matches(const struct verb *v, const char *path, char id[64])
{
	const char *mark = strchr(v->path, '{'), *end;
	size_t before = mark ? (size_t)(mark - v->path) : 0, len;

	id[0] = 0;
	if (!mark)
		return strcmp(path, v->path) == 0;
	if (strncmp(path, v->path, before) != 0)
		return false;
	end = strchr(path + before, '/');
	len = end ? (size_t)(end - (path + before)) : strlen(path + before);
	if (len == 0 || len >= 64 || strcmp(path + before + len, mark + strlen("{id}")) != 0)
		return false;
	memcpy(id, path + before, len);
	id[len] = 0;
	return true;
}

const struct verb *verbs_find(const char *method, const char *path, char id[64], char allowed[64])
{
	const struct verb *v;
	size_t n = 0;

	allowed[0] = 0;
	for (size_t i = 0; (v = verbs_row(i)) != NULL; i++) {
		bool get = strcmp(v->method, "GET") == 0;

		if (!verb_matches(v, path, id))
			continue;
		/* What HEAD asks for is what GET would say. */
		if (strcmp(method, v->method) == 0 || (get && strcmp(method, "HEAD") == 0))
			return v;
		n += (size_t)snprintf(allowed + n, 64 - n, "%s%s", n ? ", " : "",
				      get ? "GET, HEAD" : v->method);
	}
	return NULL;
}

/* ---- Verbs about the runtime itself: its health, questions to the logs, the stop of the
 * daemon; and the rows of the streams.
 *
 * Happy path of a question: a thread of the pool opens the files and writes the answer's
 * JSON. It may have to read gigabytes, so few are asked at a time, and the loop never
 * reads. Lines go out as they stand in the files: an event is JSON.
 *
 * What can fail: no such run (404), too many questions at once (to be asked again). Broken
 * lines do not fail a question: they are named in the answer. */

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
		jw_fixed(w, "budget_cents", c->sup.day.limit, 4);
		jw_fixed(w, "budget_used_cents", money_day(&c->sup), 4);
	}
	jw_end(w);
}

/* `lsn`: everything up to it is on disk and can be read; follow behind it. */
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

static void verb_health(struct verb_call *v)
{
	const char *why = "", *problem = core_service(v->core)->problem;
	struct ava_error err = {0}, no_model;
	struct core *c = v->core;
	struct verb_answer a;
	struct model model;
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
	jw_fixed(&a.w, "uptime_seconds", clock_mono_ms() - c->started_ms, 3);
	jw_str(&a.w, "root", c->root);
	jw_str(&a.w, "model", has_model ? model.id : "");
	jw_str(&a.w, "model_why",
	       !has_model ? no_model.text
	       : c->model ? "AVA_MODEL says so"
			  : why);
	write_marks(&a.w);
	otel_health(c, &a.w);
	write_work(&a.w, c);
	write_journal(&a.w, c);
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

struct log_question {
	struct question_args args;
	unsigned *asked; /* questions that are being answered */
};

/* Events up to the limits; lines that are broken to `broken`. */
static int write_events(struct verb_answer *a, struct ava_log *log, int64_t limit, json_t *broken,
			uint64_t *nbroken, uint64_t *last, bool *more, struct ava_error *err)
{
	struct ava_log_event e;
	int64_t n = 0;
	int rv;

	while (log != NULL && (rv = ava_log_next(log, &e, err)) != 0) {
		if (rv == AVA_ECORRUPT) {
			if (++*nbroken <= BROKEN_MAX)
				(void)json_array_append_new(broken, json_string(err->text));
			continue;
		}
		if (rv < 0)
			return rv;
		*more = n == limit || (n > 0 && a->b.len + e.len > EVENTS_BYTES);
		if (*more)
			return 0;
		jw_raw(&a->w, NULL, e.line, e.len);
		n++;
		*last = e.lsn;
	}
	return 0;
}

/* Pool thread. */
static int ask_logs(struct verb_work *work, struct ava_error *err)
{
	const struct question_args *q = &((struct log_question *)work->own)->args;
	struct ava_log_query query = {
		.root = work->job.core->root,
		.run = q->run,
		.everything = q->run == NULL,
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
	uint64_t nbroken = 0, last = query.after;
	json_t *broken = json_array();
	struct ava_log *log;
	bool more = false;
	int rv = ava_log_open(&log, &query, err);

	if (rv == AVA_ENOENT && q->run == NULL) /* nothing has been logged yet */
		rv = 0;
	jw_object(w, NULL);
	jw_array(w, "events");
	if (rv == 0)
		rv = write_events(&work->answer, log, q->limit, broken, &nbroken, &last, &more,
				  err);
	ava_log_close(log);
	jw_end(w);
	jw_int(w, "next", (int64_t)last);
	jw_bool(w, "more", more);
	jw_int(w, "brokenLines", (int64_t)nbroken);
	jw_array(w, "broken");
	for (size_t i = 0; i < json_array_size(broken); i++)
		jw_str(w, NULL, json_string_value(json_array_get(broken, i)));
	json_decref(broken);
	return rv;
}

static void question_end(struct verb_work *w)
{
	--*((struct log_question *)w->own)->asked;
}

static void verb_logs(struct verb_call *v)
{
	struct log_question q = {.args = {.after = -1, .limit = 100},
				 .asked = &core_service(v->core)->log_jobs};
	struct ava_error err = {0};

	if (!verb_args(v, &q.args))
		return;
	if (*q.asked >= LOGS_JOBS) {
		err_set(&err, AVA_EBUSY, "%d questions are being answered: ask again", LOGS_JOBS);
		verb_fail(v->reply, AVA_EBUSY, &err);
		return;
	}
	++*q.asked;
	verb_work(v, &(struct verb_work){.work = ask_logs, .fini = question_end, .own = &q},
		  sizeof(q), false);
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

static void audited(int rv, void *user)
{
	struct ava_error err = {0};
	struct verb_answer a;

	if (rv != 0)
		err_set(&err, rv, "it was not recorded (%s): send it again", ava_strerror(rv));
	if (!verb_begin(&a, user, rv, &err))
		return;
	jw_object(&a.w, NULL);
	jw_bool(&a.w, "recorded", true);
	verb_send(&a, 201);
}

/* The content, without secrets, into `out`. "audit." keeps it apart from what the runtime says. */
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
	struct draft *d;
	struct buf b;
	int rv;

	if (!verb_body(v) || !verb_args(v, &args))
		return;
	buf_init(&b, 2 * AUDIT_MAX);
	rv = audit_content(v->core, &args, &b, &err);
	d = rv == 0 ? draft_new(&v->core->book) : NULL;
	if (rv == 0 && !d)
		rv = err_set(&err, AVA_ENOMEM, "out of memory");
	if (rv == 0) {
		core_event(v->core, d, EVENT_Custom, args.session ? args.session : "",
			   v->caller->user, &b);
		rv = draft_commit(d, JOURNAL_NOW, audited, v->reply, &err);
	}
	buf_fini(&b);
	if (rv != 0)
		verb_fail(v->reply, rv, &err);
}

/* ---- streams (gateway/routes.c) */

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
	{"POST", "/api/v1/audit", verb_audit, audit_args, true},
	{"POST", "/api/v1/shutdown", verb_shutdown, shutdown_args, false},
	{NULL},
};
