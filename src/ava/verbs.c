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

#include "ava/state.h"
#include "base/error.h"
#include "provider/model.h"
#include "subagent/learn.h"
#include "subagent/rolebook.h"
#include "tool/mcp.h"

#define REPLY_MAX  (128u << 20)
#define CALL_MEM   (16u << 20)
#define QUERY_TEXT 4096

/* ---- arguments */

/* The row of that name; NULL: there is none, and the error lists those there are. */
static const struct arg *args_find(const struct arg *args, const char *name, const char *what,
				   const char *where, struct ava_error *err)
{
	char names[400] = "none";
	size_t n = 0;

	for (const struct arg *a = args; a && a->name; a++)
		if (strcmp(a->name, name) == 0)
			return a;
	for (const struct arg *a = args; a && a->name; a++)
		if (n < sizeof(names) && (a == args || strcmp(a->name, a[-1].name) != 0))
			n += (size_t)snprintf(names + n, sizeof(names) - n, "%s%s", n ? ", " : "",
					      a->name);
	err_set(err, AVA_EINVAL, "unknown %s %.60s%s takes %s", what, name, where, names);
	return NULL;
}

/* Reads a number times `scale`; refuses overflow, and a fraction where `scale` is 1. */
static int verbs_read_number(const struct arg *a, const json_t *v, int64_t scale, int64_t *out,
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
	/* A number smaller than the smallest unit becomes 1 or -1, not 0. */
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

static int verbs_read_text(const struct arg *a, const json_t *v, char *out, struct ava_error *err)
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
	int choice = on ? 1 : -1;

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
		return verbs_read_text(a, v, out, err);
	case ARG_FLAG:
	case ARG_SWITCH:
		return read_flag(a, v, out, err);
	case ARG_COUNT:
		return verbs_read_number(a, v, 1, (int64_t *)(out + a->at), err);
	case ARG_MS:
		return verbs_read_number(a, v, 1000, (int64_t *)(out + a->at), err);
	case ARG_CENTS:
		return verbs_read_number(a, v, 10000, (int64_t *)(out + a->at), err);
	case ARG_TEXTS:
		return read_texts(a, v, out, mem, err);
	case ARG_JSON:
		if (!json_is_object(v))
			return err_set(err, AVA_EINVAL, "%s must be an object", a->name);
		break;
	case ARG_ANY:
		break;
	}
	memcpy(out + a->at, &v, sizeof(v)); /* *borrowed* from the arguments */
	return 0;
}

int args_read(const struct arg *args, const json_t *o, void *out, struct arena *mem,
	      struct ava_error *err)
{
	const char *key;
	json_t *v;
	int rv = 0;

	if (o && !json_is_object(o))
		return err_set(err, AVA_EINVAL, "the body must be a JSON object");
	json_object_foreach((json_t *)o, key, v)
	{
		const struct arg *a = args_find(args, key, "key", " in the request: it", err);

		if (!a)
			return AVA_EINVAL;
		if (a[1].name && strcmp(a[1].name, key) == 0 && !json_is_string(v))
			a++; /* the row for a value that is no text */
		rv = read_arg(a, v, out, mem, err);
		if (rv != 0)
			return rv;
	}
	return 0;
}

/* ---- arguments of a query */

/* Reads digits; for seconds and cents also a point: "2", "0.5", "7200". */
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
		err_set(err, AVA_EINVAL, "%s is \"%.40s\"; it must be a number of %s", a->name,
			value, a->kind == ARG_CENTS ? "cents" : "seconds");
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
	const struct arg *a = args_find(args, name, "argument", ": this path", err);
	json_t *v;

	if (!a)
		return AVA_EINVAL;
	if (json_object_get(o, name))
		return err_set(err, AVA_EINVAL, "%s is given twice", name);
	err->code = 0;
	if (a->kind == ARG_COUNT || a->kind == ARG_MS || a->kind == ARG_CENTS)
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
	static const int statuses[][2] = {
		{AVA_OK, 200},       {AVA_EINVAL, 400},       {AVA_EDENIED, 403},
		{AVA_ENOENT, 404},   {AVA_EEXIST, 409},       {AVA_EBUSY, 409},
		{AVA_EBUDGET, 409},  {AVA_EREJECTED, 410},    {AVA_EEXPIRED, 410},
		{AVA_ETOOBIG, 413},  {AVA_EUNSUPPORTED, 422}, {AVA_EFORMAT, 422},
		{AVA_EFULL, 507},    {AVA_EIO, 503},          {AVA_EUNKNOWN, 503},
		{AVA_ECANCELED, 503}};

	for (size_t i = 0; i < ARRAY_LEN(statuses); i++)
		if (statuses[i][0] == code)
			return statuses[i][1];
	return 500;
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

static void verb_recorded(int rv, void *user)
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

void verb_record(struct verb_call *v, int rv, const char *session, struct buf *content,
		 struct ava_error *err)
{
	const struct core_telling t = {EVENT_Custom, session,       v->caller->user,
				       JOURNAL_NOW,  verb_recorded, v->reply};

	if (rv == 0)
		rv = core_tell(v->core, &t, content, err);
	buf_fini(content);
	if (rv != 0)
		verb_fail(v->reply, rv, err);
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
	if (rv != 0) { /* else a thread owns it from now on */
		w->rv = rv;
		work_done(&w->job);
	}
}

bool verb_by_person(struct verb_call *v, const char *what)
{
	struct ava_error err = {0};

	if (v->caller->model)
		verb_fail(v->reply, err_set(&err, AVA_EDENIED, "only a person changes %s", what),
			  &err);
	return !v->caller->model;
}

void verb_time(struct jw *w, const char *key, int64_t wall_ms)
{
	if (wall_ms > 0)
		jw_time(w, key, wall_ms);
	else
		jw_str(w, key, "");
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

	if (!v->args)
		verb_fail(v->reply, err_set(&err, AVA_EINVAL, "the body must be a JSON object"),
			  &err);
	return v->args != NULL;
}

static void verbs_call_verb(struct core *c, const struct verb *verb, const struct caller *caller,
			    const char *id, const json_t *args, struct verb_reply *reply)
{
	struct verb_call v = {
		.core = c, .verb = verb, .caller = caller, .id = id, .args = args, .reply = reply};

	arena_init(&v.mem, CALL_MEM);
	verb->call(&v);
	arena_fini(&v.mem);
}

/* A request that waits: for MCP servers, whose tools the quote names, or for a model server's
 * answer about the window of the model. */
struct held {
	struct learn_ticket ticket;
	struct core *core;
	const struct verb *verb;
	struct caller caller;
	char *user, *channel, id[64];
	json_t *args;
	struct verb_reply *reply;
};

static void held_free(struct held *h)
{
	free(h->user);
	free(h->channel);
	json_decref(h->args);
	free(h);
}

/* Asks for the window of the model of a run or change, else of the conversation's model. */
static bool model_asked(struct core *c, const json_t *o, struct learn_ticket *t)
{
	const char *name = json_get_str(o, "model"), *own = c->model ? c->model : models_ava();
	struct model m;

	/* A local server with several models and none chosen is asked again. */
	return (model_resolve(name && *name ? name : own, &m, NULL, NULL) == 0 ||
		(model_restore(MODEL_UNNAMED, &m, NULL) == 0 && provider_usable(m.provider))) &&
	       learn_ask(c->sup.learner, &m, t);
}

static void window_there(struct learn_ticket *t);

/* true: another model's server is asked first. */
static bool learn_next(struct held *h)
{
	const json_t *one;
	size_t i;

	h->ticket.go = window_there;
	if (model_asked(h->core, h->args, &h->ticket) ||
	    model_asked(h->core, json_object_get(h->args, "set"), &h->ticket))
		return true;
	json_array_foreach(json_object_get(h->args, "runs"), i, one)
	{
		if (model_asked(h->core, one, &h->ticket))
			return true;
	}
	return false;
}

/* A run without the tools that its role needs is refused. */
static void servers_there(int rv, const struct ava_error *err, void *user)
{
	struct held *h = user;

	if (rv != 0)
		verb_fail(h->reply, rv, err);
	else if (learn_next(h))
		return;
	else
		verbs_call_verb(h->core, h->verb, &h->caller, h->id, h->args, h->reply);
	held_free(h);
}

static void window_there(struct learn_ticket *t)
{
	struct held *h = CONTAINER_OF(t, struct held, ticket);
	struct ava_error err = {0};

	if (h->core->sup.closing)
		err_set(&err, AVA_EBUSY, "the runtime stops: ask again");
	servers_there(err.code, &err, h);
}

/* `wish` is among the asked tools; `tools` NULL: all. */
static bool asked_for(const json_t *tools, const char *wish)
{
	size_t len = strcspn(wish, "*"), i;
	const json_t *v;

	if (!json_is_array(tools))
		return true;
	json_array_foreach(tools, i, v) if (json_is_string(v) && strncmp(json_string_value(v), wish,
									 len) == 0) return true;
	return false;
}

static uint32_t of_role(const struct core *c, const json_t *o, const char *cwd)
{
	const char *name = json_str(o, "role"), *own = json_get_str(o, "cwd");
	const struct role *r = *name ? role_find(name, own ? own : cwd, NULL) : NULL;
	uint32_t servers = 0;

	for (size_t i = 0; r && r->tools[i]; i++)
		if (asked_for(json_object_get(o, "tools"), r->tools[i]))
			servers |= mcp_client_wanted(c->sup.mcp, r->tools[i]);
	role_release(r);
	return servers;
}

/* Bits of MCP servers (tool/mcp.h) that the request needs: those of the role in the arguments, in
 * each run of a group, or in a change, without servers whose tools the request leaves out. An
 * unknown role is an error of the verb. */
static uint32_t servers_of(const struct core *c, const json_t *args)
{
	const char *cwd = json_get_str(args, "cwd");
	uint32_t servers = 0;
	const json_t *one;
	size_t i;

	if (!c->sup.mcp || !args)
		return 0;
	servers = of_role(c, args, cwd) | of_role(c, json_object_get(args, "set"), cwd);

	json_array_foreach(json_object_get(args, "runs"), i, one) servers |= of_role(c, one, cwd);
	return servers;
}

/* Waits for what a request that begins something needs, then calls its verb. */
static void verbs_hold(struct core *c, const struct verb *verb, const struct caller *caller,
		       const char *id, const json_t *args, struct verb_reply *reply)
{
	uint32_t servers = servers_of(c, args);
	struct held *h = calloc(1, sizeof(*h));
	struct ava_error err = {0};
	int rv;

	if (!h) {
		verb_fail(reply, err_set(&err, AVA_ENOMEM, "out of memory"), &err);
		return;
	}
	*h = (struct held){.core = c,
			   .verb = verb,
			   .caller = *caller,
			   .user = strdup(caller->user ? caller->user : ""),
			   .channel = strdup(caller->channel ? caller->channel : ""),
			   .args = json_incref((json_t *)args),
			   .reply = reply};
	h->caller.user = caller->user ? h->user : NULL;
	h->caller.channel = h->channel;
	snprintf(h->id, sizeof(h->id), "%s", id);
	rv = h->user && h->channel ? 0 : err_set(&err, AVA_ENOMEM, "out of memory");
	if (rv == 0 && !servers)
		servers_there(0, NULL, h);
	else if (rv == 0)
		rv = mcp_client_ready(c->sup.mcp, servers, servers_there, h, &err);
	if (rv != 0) {
		held_free(h);
		verb_fail(reply, rv, &err);
	}
}

bool verb_sent(struct core *c, const struct verb *verb, const struct caller *caller, const char *id,
	       const json_t *args, struct verb_reply *reply)
{
	return c->service.send && verb->where != VERB_HERE && !caller->far &&
	       c->service.send(c, verb, caller, id, args, reply);
}

void verbs_call(struct core *c, const struct verb *verb, const struct caller *caller,
		const char *id, const json_t *args, struct verb_reply *reply)
{
	struct ava_error err = {0};

	if (caller->trust != CALLER_OWNER)
		verb_fail(reply, err_set(&err, AVA_EDENIED, "this daemon serves its owner only"),
			  &err);
	else if (verb_sent(c, verb, caller, id, args, reply))
		return;
	else if (verb->begins)
		verbs_hold(c, verb, caller, id, args, reply);
	else
		verbs_call_verb(c, verb, caller, id, args, reply);
}

/* ---- the table */

static const struct verb *const rooms[] = {
	verbs_about_runs,   verbs_about_words,    verbs_about_results,  verbs_about_proposals,
	verbs_about_asks,   verbs_about_sessions, verbs_about_delivery, verbs_about_claude,
	verbs_about_roles,  verbs_about_memories, verbs_about_changes,  verbs_about_us,
	verbs_about_stats,  verbs_about_models,   verbs_about_lists,    verbs_about_messages,
	verbs_about_orders, verbs_about_others,   verbs_about_far,      verbs_about_triggers};

const struct verb *verbs_row(size_t i)
{
	for (size_t room = 0; room < ARRAY_LEN(rooms); room++)
		for (const struct verb *v = rooms[room]; v->path; v++)
			if (i-- == 0)
				return v;
	return NULL;
}

const struct verb *verbs_named(const char *method, const char *path)
{
	const struct verb *v = verbs_row(0);

	for (size_t i = 1; v && (strcmp(v->path, path) != 0 || strcmp(v->method, method) != 0); i++)
		v = verbs_row(i);
	return v;
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
		/* HEAD is answered as GET. */
		if (strcmp(method, v->method) == 0 || (get && strcmp(method, "HEAD") == 0))
			return v;
		n += (size_t)snprintf(allowed + n, 64 - n, "%s%s", n ? ", " : "",
				      get ? "GET, HEAD" : v->method);
	}
	return NULL;
}
