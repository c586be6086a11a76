/* Routes of conversations onto ava/sessions.h: begin one, say something, stop
 * a turn, list them, read one. What Ava answers comes as events and frames of
 * GET /api/v1/events?session=ID (events.c). */
#include <stdio.h>
#include <string.h>

#include "ava/sessions.h"
#include "base/error.h"
#include "base/util.h"
#include "gateway/call.h"
#include "gateway/encode.h"
#include "gateway/reply.h"
#include "gateway/routes.h"
#include "net/http_server.h"

#define SAY_MAX        (1u << 20)
#define REQUEST_ID_MAX 200
#define CWD_MAX        4095

static void session_done(int rv, const struct op_session *s, const struct ava_error *err,
			 void *user)
{
	struct buf b;
	struct jw w;

	if (rv != 0) {
		kept_error(user, rv, err);
		return;
	}
	call_json(&b, &w);
	encode_session(&w, s);
	kept_reply(user, 201, &b);
	buf_fini(&b);
}

void post_session(struct call *c)
{
	const char *cwd = NULL, *model = NULL;
	const struct decode_string keys[] = {{"cwd", CWD_MAX, &cwd}, {"model", 263, &model}};
	struct op_session_new n = {.user_id = call_login(c->req)};
	struct ava_error err = {0};
	struct kept *k;

	if (decode_strings(c->body, keys, ARRAY_LEN(keys), &err) != 0) {
		call_refuse(c, &err);
		return;
	}
	if (!call_may_begin(c))
		return;
	n.cwd = cwd;
	n.model = model;
	k = kept_new(c->routes, c->req);
	if (!k)
		return;
	ops_session_new(c->routes->core, &n, session_done, k);
	kept_returned(k);
}

static void one_session(const struct op_session *s, void *user)
{
	encode_session(user, s);
}

void get_sessions(struct call *c)
{
	struct buf b;
	struct jw w;

	call_json(&b, &w);
	jw_object(&w, NULL);
	jw_array(&w, "sessions");
	ops_sessions(c->routes->core, c->params.limit, one_session, &w);
	jw_end(&w);
	jw_end(&w);
	reply_json(c->routes, c->req, 200, &b);
	buf_fini(&b);
}

void get_session(struct call *c)
{
	struct ava_error err = {0};
	struct buf b;
	struct jw w;

	call_json(&b, &w);
	if (ops_session(c->routes->core, c->id, one_session, &w, &err) == 0)
		reply_json(c->routes, c->req, 200, &b);
	else
		call_refuse(c, &err);
	buf_fini(&b);
}

static void one_entry(const char *line, size_t len, void *user)
{
	jw_raw(user, NULL, line, len);
}

void get_messages(struct call *c)
{
	struct ava_error err = {0};
	struct buf b;
	struct jw w;
	int rv;

	call_json(&b, &w);
	jw_object(&w, NULL);
	jw_array(&w, "entries");
	rv = ops_session_entries(c->routes->core, c->id, NULL, one_entry, &w, &err);
	jw_end(&w);
	jw_end(&w);
	if (rv == 0)
		reply_json(c->routes, c->req, 200, &b);
	else
		call_refuse(c, &err);
	buf_fini(&b);
}

static void said_done(int rv, const char *entry, const struct ava_error *err, void *user)
{
	struct buf b;
	struct jw w;

	if (rv != 0) {
		kept_error(user, rv, err);
		return;
	}
	call_json(&b, &w);
	jw_object(&w, NULL);
	jw_str(&w, "entry", entry);
	jw_end(&w);
	kept_reply(user, 202, &b);
	buf_fini(&b);
}

void post_message(struct call *c)
{
	const char *text = NULL, *request = NULL;
	const struct decode_string keys[] = {{"text", SAY_MAX, &text},
					     {"request_id", REQUEST_ID_MAX, &request}};
	struct op_say say = {.user_id = call_login(c->req)};
	struct ava_error err = {0};
	struct kept *k;

	if (decode_strings(c->body, keys, ARRAY_LEN(keys), &err) != 0) {
		call_refuse(c, &err);
		return;
	}
	if (!call_may_begin(c))
		return;
	say.text = text ? text : "";
	say.request_id = request;
	k = kept_new(c->routes, c->req);
	if (!k)
		return;
	ops_say(c->routes->core, c->id, &say, said_done, k);
	kept_returned(k);
}

void post_stop(struct call *c)
{
	struct ava_error err = {0};
	struct buf b;
	struct jw w;

	if (decode_strings(c->body, NULL, 0, &err) != 0 ||
	    ops_session_stop(c->routes->core, c->id, &err) != 0) {
		call_refuse(c, &err);
		return;
	}
	call_json(&b, &w);
	if (ops_session(c->routes->core, c->id, one_session, &w, &err) == 0)
		reply_json(c->routes, c->req, 200, &b);
	else
		call_refuse(c, &err);
	buf_fini(&b);
}
