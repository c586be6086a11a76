/* One table of routes: method, path, the arguments and the body each knows.
 *
 * Happy path: who asks is checked, the row found, arguments and body are read
 * strictly (an unknown name is refused: a misspelt limit must not be a missing
 * one), then the row's handler answers at once, keeps the request (reply.h) or
 * starts a stream (events.h).
 *
 * What can fail: everything a peer can get wrong, each with its status and
 * sentence; new work while the daemon has lost its data root. Only the owner
 * of the socket (and root) is served. */
#include "gateway/routes.h"

#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ava/ops.h"
#include "base/error.h"
#include "base/id.h"
#include "base/keys.h"
#include "base/util.h"
#include "gateway/encode.h"
#include "gateway/call.h"
#include "gateway/events.h"
#include "gateway/logs.h"
#include "gateway/params.h"
#include "gateway/reply.h"
#include "net/http_server.h"

void call_refuse(struct call *c, const struct ava_error *err)
{
	reply_error(c->routes, c->req, err->code, err->text);
}

/* ---- answers of verbs */

void call_json(struct buf *b, struct jw *w)
{
	buf_init(b, REPLY_MAX);
	jw_init(w, b);
}

void call_proposed(int rv, const struct op_proposal *p, const struct ava_error *err, void *user)
{
	struct buf b;
	struct jw w;

	if (rv != 0) {
		kept_error(user, rv, err);
		return;
	}
	call_json(&b, &w);
	encode_proposal(&w, p);
	kept_reply(user, p->repeated ? 200 : 201, &b);
	buf_fini(&b);
}

static void answer_done(int rv, const struct op_proposal *p, const struct ava_error *err,
			void *user)
{
	struct buf b;
	struct jw w;

	if (rv != 0) {
		kept_error(user, rv, err);
		return;
	}
	call_json(&b, &w);
	encode_answer(&w, p);
	kept_reply(user, 200, &b);
	buf_fini(&b);
}

static void status_done(int rv, const struct op_status *s, const struct ava_error *err, void *user)
{
	struct kept *k = user;
	int status = 200;
	struct buf b;
	struct jw w;

	if (rv != 0) {
		kept_error(k, rv, err);
		return;
	}
	call_json(&b, &w);
	if (k->started) {
		encode_started(&w, s);
		status = s->repeated ? 200 : 201;
	} else {
		encode_status(&w, s);
	}
	kept_reply(k, status, &b);
	buf_fini(&b);
}

static void one_status(const struct op_status *s, void *user)
{
	encode_status(user, s);
}

/* It still runs: 202 and how it is. */
static void reply_running(struct kept *k)
{
	struct ava_error err = {0};
	struct buf b;
	struct jw w;

	call_json(&b, &w);
	if (ops_status(k->routes->core, k->run, one_status, &w, &err) == 0)
		kept_reply(k, 202, &b);
	else
		kept_error(k, err.code, &err);
	buf_fini(&b);
}

static void result_done(int rv, const char *json, size_t len, const struct ava_error *err,
			void *user)
{
	struct kept *k = user;
	struct buf b;

	k->wait = NULL;
	if (rv == AVA_ETIMEOUT) {
		reply_running(k);
		return;
	}
	if (rv != 0) {
		kept_error(k, rv, err);
		return;
	}
	buf_init(&b, REPLY_MAX);
	buf_add(&b, json, len);
	kept_reply(k, 200, &b);
	buf_fini(&b);
}

/* ---- handlers */

const char *call_login(const struct http_request *req)
{
	static uid_t cached_uid = (uid_t)-1;
	static char cached[64];

	if (req->peer_uid != cached_uid) {
		const struct passwd *pw = getpwuid(req->peer_uid);

		snprintf(cached, sizeof(cached), "%s", pw ? pw->pw_name : "");
		cached_uid = req->peer_uid;
	}
	return cached;
}

/* New work is refused when it could not be kept. */
bool call_may_begin(struct call *c)
{
	struct ava_error err = {0};

	if (!c->routes->problem[0])
		return true;
	err_set(&err, AVA_EIO, "nothing was started: %s", c->routes->problem);
	call_refuse(c, &err);
	return false;
}

/* By which a client sees whether its keys are ours (base/keys.h). */
static void write_marks(struct buf *b)
{
	char mark[KEYS_MARK_LEN + 1];
	struct jw w;

	call_json(b, &w);
	jw_object(&w, NULL);
	jw_str(&w, "salt", keys_salt());
	for (size_t i = 0; keys_known[i]; i++)
		if (keys_mark(keys_salt(), keys_known[i], mark))
			jw_str(&w, keys_known[i], mark);
	jw_end(&w);
}

static void get_health(struct call *c)
{
	struct op_health h;
	struct buf b, marks;
	struct jw w;

	ops_health(c->routes->core, &h);
	write_marks(&marks);
	h.keys = buf_check(&marks) == 0 ? marks.data : NULL;
	if (c->routes->problem[0]) {
		h.code = AVA_EIO;
		h.problem = c->routes->problem;
	}
	call_json(&b, &w);
	encode_health(&w, &h);
	reply_json(c->routes, c->req, 200, &b);
	buf_fini(&b);
	buf_fini(&marks);
}

/* `resume`: an ended run that the new one goes on from; NULL: what the body says. */
static void begin_run(struct call *c, const char *resume)
{
	struct ava_error err = {0};
	struct spawn_body body;
	struct session_id session;
	struct kept *k;

	if (decode_spawn(c->body, &body, &err) != 0) {
		call_refuse(c, &err);
		return;
	}
	if (!call_may_begin(c))
		return;
	session = id_session();
	if (!body.spawn.session_id || !*body.spawn.session_id)
		body.spawn.session_id = session.text;
	body.spawn.user_id = call_login(c->req);
	if (resume)
		body.spawn.resume = resume;
	k = kept_new(c->routes, c->req);
	if (!k)
		return;
	k->started = body.confirmed;
	if (body.confirmed)
		ops_spawn(c->routes->core, &body.spawn, status_done, k);
	else
		ops_propose(c->routes->core, &body.spawn, call_proposed, k);
	kept_returned(k);
}

static void post_run(struct call *c)
{
	begin_run(c, NULL);
}

static void post_resume(struct call *c)
{
	begin_run(c, c->id);
}

static void get_runs(struct call *c)
{
	struct buf b;
	struct jw w;

	call_json(&b, &w);
	jw_object(&w, NULL);
	jw_array(&w, "runs");
	ops_list(c->routes->core, c->params.all, c->params.limit, one_status, &w);
	jw_end(&w);
	jw_end(&w);
	reply_json(c->routes, c->req, 200, &b);
	buf_fini(&b);
}

static void get_run(struct call *c)
{
	struct ava_error err = {0};
	struct buf b;
	struct jw w;

	call_json(&b, &w);
	if (ops_status(c->routes->core, c->id, one_status, &w, &err) == 0)
		reply_json(c->routes, c->req, 200, &b);
	else
		call_refuse(c, &err);
	buf_fini(&b);
}

static void get_result(struct call *c)
{
	int64_t wait_ms = c->routes->stopping ? 0 : c->params.wait_ms;
	struct kept *k = kept_new(c->routes, c->req);

	if (!k)
		return;
	snprintf(k->run, sizeof(k->run), "%s", c->id);
	k->wait = ops_result(c->routes->core, c->id, wait_ms, result_done, k);
	if (k->wait)
		list_add(&c->routes->waits, &k->node);
	kept_returned(k);
}

static void stream_events(struct call *c, const char *run, uint64_t fallback)
{
	uint64_t after = c->params.has_after ? c->params.after : fallback;
	struct ava_error err = {0};

	if (c->head)
		http_reply(c->req, 200, "text/event-stream", "", 0);
	else if (events_start(c->routes, c->req, run, c->params.session, after, &err) != 0)
		call_refuse(c, &err);
}

static void get_run_events(struct call *c)
{
	stream_events(c, c->id, 0);
}

static void get_logs(struct call *c)
{
	logs_start(c->routes, c->req);
}

static void get_events(struct call *c)
{
	stream_events(c, NULL, UINT64_MAX);
}

static void post_cancel(struct call *c)
{
	struct ava_error err = {0};
	struct kept *k;

	if (decode_strings(c->body, NULL, 0, &err) != 0) {
		call_refuse(c, &err);
		return;
	}
	k = kept_new(c->routes, c->req);
	if (!k)
		return;
	ops_cancel(c->routes->core, c->id, call_login(c->req), status_done, k);
	kept_returned(k);
}

static void post_confirm(struct call *c)
{
	struct ava_error err = {0};
	struct answer_body a;
	struct kept *k;

	if (decode_answer(c->body, &a, &err) != 0) {
		call_refuse(c, &err);
		return;
	}
	if (!call_may_begin(c))
		return;
	k = kept_new(c->routes, c->req);
	if (!k)
		return;
	ops_confirm(c->routes->core, c->id, a.answer, &a.set, a.by ? a.by : call_login(c->req),
		    answer_done, k);
	kept_returned(k);
}

static void post_reject(struct call *c)
{
	const char *reason = NULL, *by = NULL;
	const struct decode_string keys[] = {{"reason", DECODE_ANSWER_MAX, &reason},
					     {"by", DECODE_BY_MAX, &by}};
	struct ava_error err = {0};
	struct kept *k;

	if (decode_strings(c->body, keys, ARRAY_LEN(keys), &err) != 0) {
		call_refuse(c, &err);
		return;
	}
	k = kept_new(c->routes, c->req);
	if (!k)
		return;
	ops_reject(c->routes->core, c->id, reason, by ? by : call_login(c->req), answer_done, k);
	kept_returned(k);
}

static void one_proposal(const struct op_proposal *p, void *user)
{
	encode_proposal(user, p);
}

static void get_proposals(struct call *c)
{
	struct buf b;
	struct jw w;

	call_json(&b, &w);
	jw_object(&w, NULL);
	jw_array(&w, "proposals");
	ops_proposals(c->routes->core, c->params.all, one_proposal, &w);
	jw_end(&w);
	jw_end(&w);
	reply_json(c->routes, c->req, 200, &b);
	buf_fini(&b);
}

static void get_proposal(struct call *c)
{
	struct ava_error err = {0};
	struct buf b;
	struct jw w;

	call_json(&b, &w);
	if (ops_proposal(c->routes->core, c->id, one_proposal, &w, &err) == 0)
		reply_json(c->routes, c->req, 200, &b);
	else
		call_refuse(c, &err);
	buf_fini(&b);
}

static void post_shutdown(struct call *c)
{
	const char *when = NULL;
	const struct decode_string keys[] = {{"when", DECODE_BY_MAX, &when}};
	struct ava_error err = {0};
	struct buf b;
	struct jw w;
	bool now;

	if (decode_strings(c->body, keys, 1, &err) != 0) {
		call_refuse(c, &err);
		return;
	}
	now = when && strcmp(when, "now") == 0;
	if (when && !now && strcmp(when, "idle") != 0) {
		reply_error(c->routes, c->req, AVA_EINVAL, "when must be \"idle\" or \"now\"");
		return;
	}
	call_json(&b, &w);
	jw_object(&w, NULL);
	jw_str(&w, "when", now ? "now" : "idle");
	jw_end(&w);
	reply_json(c->routes, c->req, 202, &b);
	buf_fini(&b);
	c->routes->shutdown(now, c->routes->user);
}

/* ---- the table */

static const struct route {
	const char *method, *before, *after; /* path = before {id} after; after NULL: no id */
	unsigned takes;                      /* query arguments: enum params_name */
	void (*handle)(struct call *c);
} table[] = {
	{"GET", "/api/v1/health", NULL, 0, get_health},
	{"GET", "/api/v1/events", NULL, PARAMS_AFTER | PARAMS_SESSION, get_events},
	{"GET", "/api/v1/logs", NULL, PARAMS_OWN, get_logs},
	{"POST", "/api/v1/runs", NULL, 0, post_run},
	{"POST", "/api/v1/runs/cancel", NULL, 0, post_cancel_many},
	{"GET", "/api/v1/runs", NULL, PARAMS_ALL | PARAMS_LIMIT, get_runs},
	{"GET", "/api/v1/runs/", "", 0, get_run},
	{"GET", "/api/v1/runs/", "/result", PARAMS_WAIT, get_result},
	{"GET", "/api/v1/runs/", "/events", PARAMS_AFTER, get_run_events},
	{"POST", "/api/v1/runs/", "/cancel", 0, post_cancel},
	{"POST", "/api/v1/runs/", "/steer", 0, post_steer},
	{"POST", "/api/v1/runs/", "/checkpoint", 0, post_checkpoint},
	{"POST", "/api/v1/runs/", "/resume", 0, post_resume},
	{"POST", "/api/v1/runs/", "/replay", 0, post_replay},
	{"POST", "/api/v1/runs/", "/push", 0, post_push},
	{"POST", "/api/v1/groups", NULL, 0, post_group},
	{"GET", "/api/v1/groups/", "", 0, get_group},
	{"GET", "/api/v1/proposals", NULL, PARAMS_ALL, get_proposals},
	{"GET", "/api/v1/proposals/", "", 0, get_proposal},
	{"POST", "/api/v1/proposals/", "/confirm", 0, post_confirm},
	{"POST", "/api/v1/proposals/", "/reject", 0, post_reject},
	{"POST", "/api/v1/sessions", NULL, 0, post_session},
	{"GET", "/api/v1/sessions", NULL, PARAMS_LIMIT, get_sessions},
	{"GET", "/api/v1/sessions/", "", 0, get_session},
	{"GET", "/api/v1/sessions/", "/messages", 0, get_messages},
	{"POST", "/api/v1/sessions/", "/messages", 0, post_message},
	{"POST", "/api/v1/sessions/", "/stop", 0, post_stop},
	{"GET", "/api/v1/sessions/", "/unseen", PARAMS_CHANNEL, get_unseen},
	{"POST", "/api/v1/sessions/", "/ack", 0, post_ack},
	{"POST", "/api/v1/shutdown", NULL, 0, post_shutdown},
};

const char *routes_row(size_t i, const char **method)
{
	static char path[64];

	if (i >= ARRAY_LEN(table))
		return NULL;
	*method = table[i].method;
	snprintf(path, sizeof(path), "%s%s%s", table[i].before, table[i].after ? "{id}" : "",
		 table[i].after ? table[i].after : "");
	return path;
}

static bool path_matches(const struct route *r, const char *path, char id[64])
{
	size_t before = strlen(r->before), len;
	const char *end;

	id[0] = 0;
	if (!r->after)
		return strcmp(path, r->before) == 0;
	if (strncmp(path, r->before, before) != 0)
		return false;
	end = strchr(path + before, '/');
	len = end ? (size_t)(end - (path + before)) : strlen(path + before);
	if (len == 0 || len >= 64 || strcmp(path + before + len, r->after) != 0)
		return false;
	memcpy(id, path + before, len);
	id[len] = 0;
	return true;
}

static int parse_body(struct call *c, bool may, struct ava_error *err)
{
	if (c->req->body_len == 0)
		return 0;
	if (!may)
		return err_set(err, AVA_EINVAL, "a %s request takes no body", c->req->method);
	c->body = json_parse(c->req->body, c->req->body_len, err);
	return c->body ? 0 : err_wrap(err, AVA_EINVAL, "the body is not valid JSON");
}

static void serve(struct call *c, const struct route *r)
{
	bool post = strcmp(r->method, "POST") == 0;
	struct ava_error err = {0};
	int rv = r->takes & PARAMS_OWN ? 0 : params_read(c->req, r->takes, &c->params, &err);

	if (rv == 0)
		rv = parse_body(c, post, &err);
	if (rv == 0)
		r->handle(c);
	else
		call_refuse(c, &err);
	json_decref(c->body);
}

/* What HEAD asks for is what GET would say. */
static bool method_matches(const struct call *c, const struct route *r)
{
	return strcmp(c->head ? "GET" : c->req->method, r->method) == 0;
}

void routes_handle(struct http_request *req, void *user)
{
	struct call c = {.routes = user, .req = req, .head = strcmp(req->method, "HEAD") == 0};
	char allowed[64] = "", id[64];
	size_t n = 0;

	if (!req->has_peer || (req->peer_uid != geteuid() && req->peer_uid != 0)) {
		reply_error(c.routes, req, AVA_EDENIED, "this daemon serves its owner only");
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		if (!path_matches(&table[i], req->path, id))
			continue;
		if (method_matches(&c, &table[i])) {
			c.id = id;
			serve(&c, &table[i]);
			return;
		}
		n += (size_t)snprintf(allowed + n, sizeof(allowed) - n, "%s%s", n ? ", " : "",
				      strcmp(table[i].method, "GET") == 0 ? "GET, HEAD"
									  : table[i].method);
	}
	if (n > 0)
		reply_not_allowed(c.routes, req, allowed);
	else
		reply_error(c.routes, req, AVA_ENOENT,
			    "there is no such path; doc/api.yaml lists them");
}

/* ---- life */

void routes_init(struct routes *r, struct core *core, void (*shutdown)(int now, void *user),
		 void *user)
{
	*r = (struct routes){.core = core, .shutdown = shutdown, .user = user};
	list_init(&r->waits);
}

void routes_stop(struct routes *r)
{
	r->stopping = true;
	while (!list_empty(&r->waits)) {
		struct kept *k = LIST_FIRST(&r->waits, struct kept, node);

		ops_result_cancel(k->wait);
		k->wait = NULL;
		reply_running(k); /* takes it out of the list */
	}
}
