/* One table of routes. A request that has to wait for the disk or for a run is
 * kept as a struct kept; whoever hangs up first, the peer or the answer, the
 * other side finds out through it. Only the owner of the socket (and root) is
 * served. */
#include "gateway/routes.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ava/ops.h"
#include "base/error.h"
#include "base/id.h"
#include "base/util.h"
#include "gateway/encode.h"
#include "gateway/events.h"
#include "net/http_server.h"

#define REPLY_MAX (64u << 20)

struct call {
	struct routes *routes;
	struct http_request *req;
	const char *id; /* the {id} of the path; "" when none */
	json_t *body;   /* NULL: none was sent */
};

/* ---- replies */

static void reply_json(struct http_request *req, int status, const struct buf *b)
{
	static const struct http_field fields[] = { { "Cache-Control", "no-store" },
						    { "X-Content-Type-Options", "nosniff" } };
	struct http_answer a = { .status = status, .content_type = "application/json",
				 .body = b->data, .len = b->len, .fields = fields, .nfields = 2 };

	http_reply_with(req, &a);
}

static void reply_error(struct http_request *req, int code, const char *message)
{
	struct buf b;

	buf_init(&b, 1u << 16);
	encode_error(&b, code, message[0] ? message : ava_strerror(code));
	reply_json(req, encode_http_status(code), &b);
	buf_fini(&b);
}

/* ---- kept requests */

struct kept {
	struct http_request *req; /* NULL: the peer has gone */
	struct op_wait *wait;     /* of a result */
	struct routes *routes;
	struct run_id run;
	bool started;             /* POST /runs with "confirmed" */
	bool in_call;             /* the verb has not returned yet */
	bool finished;            /* answered while in_call */
};

static void kept_gone(struct http_request *req, void *user)
{
	struct kept *k = user;

	k->req = NULL;
	if (k->wait) {
		ops_result_cancel(k->wait);
		free(k);
	}
}

static struct kept *kept_new(struct call *c)
{
	struct kept *k = calloc(1, sizeof(*k));

	if (!k) {
		reply_error(c->req, AVA_ENOMEM, "out of memory");
		return NULL;
	}
	k->req = c->req;
	k->routes = c->routes;
	k->in_call = true;
	return k;
}

static void kept_done(struct kept *k)
{
	k->req = NULL;
	k->finished = true;
	if (!k->in_call)
		free(k);
}

/* The verb has returned: from now on the peer may go. */
static void kept_returned(struct kept *k)
{
	k->in_call = false;
	if (k->finished)
		free(k);
	else
		http_on_gone(k->req, kept_gone, k);
}

static void kept_reply(struct kept *k, int status, const struct buf *b)
{
	if (k->req)
		reply_json(k->req, status, b);
	kept_done(k);
}

static void kept_error(struct kept *k, int rv, const struct ava_error *err)
{
	if (k->req)
		reply_error(k->req, rv, err ? err->text : ava_strerror(rv));
	kept_done(k);
}

/* ---- answers of verbs */

static void proposal_done(int rv, const struct op_proposal *p, const struct ava_error *err,
			  void *user)
{
	struct buf b;
	struct jw w;

	if (rv != 0) {
		kept_error(user, rv, err);
		return;
	}
	buf_init(&b, REPLY_MAX);
	jw_init(&w, &b);
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
	buf_init(&b, REPLY_MAX);
	jw_init(&w, &b);
	jw_object(&w, NULL);
	jw_str(&w, "proposal_id", p->id);
	jw_str(&w, "state", encode_proposal_state(p->state));
	jw_str(&w, "subagent_id", p->run_id);
	jw_str(&w, "trace_id", p->trace_id);
	jw_end(&w);
	kept_reply(user, 200, &b);
	buf_fini(&b);
}

static void status_done(int rv, const struct op_status *s, const struct ava_error *err, void *user)
{
	struct kept *k = user;
	struct buf b;
	struct jw w;

	if (rv != 0) {
		kept_error(k, rv, err);
		return;
	}
	buf_init(&b, REPLY_MAX);
	jw_init(&w, &b);
	if (k->started) {
		jw_object(&w, NULL);
		jw_str(&w, "subagent_id", s->id);
		jw_str(&w, "trace_id", s->trace_id);
		jw_end(&w);
	} else {
		encode_status(&w, s);
	}
	kept_reply(k, k->started ? 201 : 200, &b);
	buf_fini(&b);
}

static void one_status(const struct op_status *s, void *user)
{
	encode_status(user, s);
}

static void result_done(int rv, const char *json, size_t len, const struct ava_error *err,
			void *user)
{
	struct kept *k = user;
	struct buf b;
	struct jw w;

	k->wait = NULL;
	if (rv != 0 && rv != AVA_ETIMEOUT) {
		kept_error(k, rv, err);
		return;
	}
	buf_init(&b, REPLY_MAX);
	jw_init(&w, &b);
	if (rv == 0)
		buf_add(&b, json, len);
	else
		ops_status(k->routes->core, k->run.text, one_status, &w, NULL);
	kept_reply(k, rv == 0 ? 200 : 202, &b);
	buf_fini(&b);
}

/* ---- handlers */

static const char *peer_login(const struct http_request *req)
{
	static uid_t cached_uid = (uid_t)-1;
	static char cached[64];

	if (!req->has_peer)
		return "";
	if (req->peer_uid != cached_uid) {
		const struct passwd *pw = getpwuid(req->peer_uid);

		snprintf(cached, sizeof(cached), "%s", pw ? pw->pw_name : "");
		cached_uid = req->peer_uid;
	}
	return cached;
}

static void get_health(struct call *c)
{
	struct op_health h;
	struct buf b;
	struct jw w;

	ops_health(c->routes->core, &h);
	buf_init(&b, REPLY_MAX);
	jw_init(&w, &b);
	encode_health(&w, &h);
	reply_json(c->req, 200, &b);
	buf_fini(&b);
}

static void post_run(struct call *c)
{
	struct ava_error err = { 0 };
	struct spawn_body body;
	struct session_id session;
	struct kept *k;

	if (decode_spawn(c->body, &body, &err) != 0) {
		reply_error(c->req, err.code, err.text);
		return;
	}
	session = id_session();
	if (!body.spawn.session_id || !*body.spawn.session_id)
		body.spawn.session_id = session.text;
	body.spawn.user_id = peer_login(c->req);
	k = kept_new(c);
	if (!k)
		return;
	k->started = body.confirmed;
	if (body.confirmed)
		ops_spawn(c->routes->core, &body.spawn, status_done, k);
	else
		ops_propose(c->routes->core, &body.spawn, proposal_done, k);
	kept_returned(k);
}

static void get_runs(struct call *c)
{
	const char *all = http_query(c->req, "all"), *limit = http_query(c->req, "limit");
	long n = limit ? strtol(limit, NULL, 10) : 100;
	struct buf b;
	struct jw w;

	if (n < 1 || n > 100000) {
		reply_error(c->req, AVA_EINVAL, "limit must be between 1 and 100000");
		return;
	}
	buf_init(&b, REPLY_MAX);
	jw_init(&w, &b);
	jw_object(&w, NULL);
	jw_array(&w, "runs");
	ops_list(c->routes->core, all && strcmp(all, "0") != 0, (size_t)n, one_status, &w);
	jw_end(&w);
	jw_end(&w);
	reply_json(c->req, 200, &b);
	buf_fini(&b);
}

static void get_run(struct call *c)
{
	struct ava_error err = { 0 };
	struct buf b;
	struct jw w;

	buf_init(&b, REPLY_MAX);
	jw_init(&w, &b);
	if (ops_status(c->routes->core, c->id, one_status, &w, &err) == 0)
		reply_json(c->req, 200, &b);
	else
		reply_error(c->req, err.code, err.text);
	buf_fini(&b);
}

static void get_result(struct call *c)
{
	const char *wait = http_query(c->req, "wait");
	char *end = NULL;
	double seconds = wait ? strtod(wait, &end) : 0;
	struct kept *k;

	if (wait && (end == wait || *end || !(seconds >= 0))) {
		reply_error(c->req, AVA_EINVAL, "wait must be a number of seconds");
		return;
	}
	k = kept_new(c);
	if (!k)
		return;
	snprintf(k->run.text, sizeof(k->run.text), "%s", c->id);
	k->wait = ops_result(c->routes->core, c->id, (int64_t)(MIN(seconds, 3600.0) * 1000),
			     result_done, k);
	kept_returned(k);
}

static uint64_t cursor_of(const struct http_request *req, uint64_t fallback)
{
	const char *after = http_query(req, "after");

	if (!after)
		after = http_header(req, "Last-Event-ID");
	return after && *after ? strtoull(after, NULL, 10) : fallback;
}

static void stream_events(struct call *c, const char *run, uint64_t fallback)
{
	struct ava_error err = { 0 };

	if (events_start(c->routes->core, c->req, run, cursor_of(c->req, fallback), &err) != 0)
		reply_error(c->req, err.code, err.text);
}

static void get_run_events(struct call *c)
{
	stream_events(c, c->id, 0);
}

static void get_events(struct call *c)
{
	stream_events(c, NULL, UINT64_MAX);
}

static void post_cancel(struct call *c)
{
	struct kept *k = kept_new(c);

	if (!k)
		return;
	ops_cancel(c->routes->core, c->id, peer_login(c->req), status_done, k);
	kept_returned(k);
}

static void post_confirm(struct call *c)
{
	const char *answer = json_get_str(c->body, "answer"), *by = json_get_str(c->body, "by");
	struct kept *k = kept_new(c);

	if (!k)
		return;
	ops_confirm(c->routes->core, c->id, answer, by ? by : peer_login(c->req), answer_done, k);
	kept_returned(k);
}

static void post_reject(struct call *c)
{
	const char *reason = json_get_str(c->body, "reason"), *by = json_get_str(c->body, "by");
	struct kept *k = kept_new(c);

	if (!k)
		return;
	ops_reject(c->routes->core, c->id, reason, by ? by : peer_login(c->req), answer_done, k);
	kept_returned(k);
}

static void one_proposal(const struct op_proposal *p, void *user)
{
	encode_proposal(user, p);
}

static void get_proposals(struct call *c)
{
	const char *all = http_query(c->req, "all");
	struct buf b;
	struct jw w;

	buf_init(&b, REPLY_MAX);
	jw_init(&w, &b);
	jw_object(&w, NULL);
	jw_array(&w, "proposals");
	ops_proposals(c->routes->core, all && strcmp(all, "0") != 0, one_proposal, &w);
	jw_end(&w);
	jw_end(&w);
	reply_json(c->req, 200, &b);
	buf_fini(&b);
}

static void get_proposal(struct call *c)
{
	struct ava_error err = { 0 };
	struct buf b;
	struct jw w;

	buf_init(&b, REPLY_MAX);
	jw_init(&w, &b);
	if (ops_proposal(c->routes->core, c->id, one_proposal, &w, &err) == 0)
		reply_json(c->req, 200, &b);
	else
		reply_error(c->req, err.code, err.text);
	buf_fini(&b);
}

static void post_shutdown(struct call *c)
{
	const char *when = json_get_str(c->body, "when");
	bool now = when && strcmp(when, "now") == 0;

	if (when && !now && strcmp(when, "idle") != 0) {
		reply_error(c->req, AVA_EINVAL, "when must be \"idle\" or \"now\"");
		return;
	}
	http_reply(c->req, 202, "application/json", "{}", 2);
	c->routes->shutdown(now, c->routes->user);
}

/* ---- the table */

static const struct route {
	const char *method, *before, *after; /* path = before {id} after; after NULL: no id */
	void (*handle)(struct call *c);
} table[] = {
	{ "GET", "/api/v1/health", NULL, get_health },
	{ "GET", "/api/v1/events", NULL, get_events },
	{ "POST", "/api/v1/runs", NULL, post_run },
	{ "GET", "/api/v1/runs", NULL, get_runs },
	{ "GET", "/api/v1/runs/", "", get_run },
	{ "GET", "/api/v1/runs/", "/result", get_result },
	{ "GET", "/api/v1/runs/", "/events", get_run_events },
	{ "POST", "/api/v1/runs/", "/cancel", post_cancel },
	{ "GET", "/api/v1/proposals", NULL, get_proposals },
	{ "GET", "/api/v1/proposals/", "", get_proposal },
	{ "POST", "/api/v1/proposals/", "/confirm", post_confirm },
	{ "POST", "/api/v1/proposals/", "/reject", post_reject },
	{ "POST", "/api/v1/shutdown", NULL, post_shutdown },
};

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

static int parse_body(struct call *c)
{
	struct ava_error err = { 0 };

	if (c->req->body_len == 0)
		return 0;
	c->body = json_parse(c->req->body, c->req->body_len, &err);
	if (c->body)
		return 0;
	err_wrap(&err, AVA_EINVAL, "the body is not valid JSON");
	reply_error(c->req, AVA_EINVAL, err.text);
	return AVA_EINVAL;
}

void routes_handle(struct http_request *req, void *user)
{
	struct call c = { .routes = user, .req = req };
	bool known = false;
	char id[64];

	if (req->has_peer && req->peer_uid != geteuid() && req->peer_uid != 0) {
		reply_error(req, AVA_EDENIED, "this daemon serves its owner only");
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		if (!path_matches(&table[i], req->path, id))
			continue;
		known = true;
		if (strcmp(req->method, table[i].method) != 0)
			continue;
		c.id = id;
		if (parse_body(&c) == 0)
			table[i].handle(&c);
		json_decref(c.body);
		return;
	}
	if (known)
		http_reply(req, 405, "application/json",
			   "{\"error\":{\"code\":\"invalid\",\"message\":\"method not allowed\"}}", 61);
	else
		reply_error(req, AVA_ENOENT, "there is no such path; doc/api.yaml lists them");
}
