/* See mcp_call.h.
 *
 * Happy path: a verb is called, its answer parsed, and the caller writes the client's answer. A
 * call has two ends, the client and the verb; the last one to let go frees it. What can fail:
 * memory, and an answer beyond its bound (an error goes out instead); the client hangs up: the verb
 * is carried out, and its answer dropped. */
#include "gateway/mcp_call.h"

#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "net/http_server.h"
#include "os/loop.h"
#include "subagent/rights.h"

void mcp_call_free(struct mcp_call *c)
{
	if (!list_empty(&c->node))
		--*c->mcp->streams;
	list_del(&c->node);
	os_timer_free(c->expiry);
	json_decref(c->kept);
	rpc_fini(&c->m);
	free(c);
}

const char *mcp_call_query(const struct mcp_call *c, const char *name)
{
	return c->far ? NULL : http_query(c->req, name);
}

/* The peer has gone: unless a verb still has the call, it is freed. */
static void abandoned(struct mcp_call *c)
{
	if (c->waiting && !c->reply.give_up)
		return; /* the verb still uses the call */
	if (c->waiting)
		c->reply.give_up(&c->reply);
	mcp_call_free(c);
}

/* ---- streams */

bool mcp_stream_has_place(const struct mcp_call *c)
{
	unsigned all = 0, own = 0;

	LIST_EACH (&c->mcp->open, n, tmp) {
		const struct mcp_call *o = LIST_ENTRY(n, struct mcp_call, node);

		if (o->modern)
			continue;
		all++;
		own += strcmp(o->session, c->session) == 0;
	}
	return all < MCP_STREAMS_MAX && own < MCP_STREAMS_OWN;
}

static void mcp_call_stream_gone(struct http_stream *st, void *user)
{
	struct mcp_call *c = user;

	c->stream = NULL;
	abandoned(c);
}

bool mcp_stream_begin(struct mcp_call *c)
{
	static const struct http_field fields[] = {{"Cache-Control", "no-store"},
						   {"X-Accel-Buffering", "no"}};
	const struct http_answer head = {
		.status = 200, .content_type = "text/event-stream", .fields = fields, .nfields = 2};
	const struct http_stream_hooks hooks = {
		.gone = mcp_call_stream_gone, .user = c, .heartbeat = true};

	c->stream = http_stream_start(c->req, &head, &hooks);
	c->req = NULL;
	if (!c->stream) {
		mcp_call_free(c);
		return false;
	}
	++*c->mcp->streams;
	list_add(&c->mcp->open, &c->node);
	return true;
}

/* A message (*taken*) as it goes out, on a stream as an event. AVA_ENOMEM, also when there is none;
 * AVA_ETOOBIG. */
static int frame(struct buf *out, const struct mcp_call *c, json_t *message)
{
	int rv;

	buf_init(out, MCP_ANSWER_MAX);
	buf_adds(out, c->stream ? "data: " : "");
	rv = message ? json_dump(out, message) : AVA_ENOMEM;
	buf_adds(out, c->stream ? "\n\n" : "");
	json_decref(message);
	return rv != 0 ? rv : buf_check(out);
}

void mcp_stream_write(const struct mcp_call *c, json_t *message)
{
	struct buf b;

	if (frame(&b, c, message) == 0)
		(void)http_stream_write(c->stream, b.data, b.len);
	buf_fini(&b);
}

/* ---- answers */

/* Sends the answer (*taken*), and gives the call up. */
static void mcp_call_send(struct mcp_call *c, json_t *answer, int status)
{
	const struct http_field fields[] = {{"Cache-Control", "no-store"},
					    {"X-Content-Type-Options", "nosniff"},
					    {"Mcp-Session-Id", c->session}};
	bool begun = c->session[0] && c->m.method && strcmp(c->m.method, "initialize") == 0;
	struct buf b;

	if (frame(&b, c, answer) != 0) {
		buf_fini(&b);
		answer = rpc_error(c->m.id, RPC_INTERNAL,
				   "the answer is too large, or memory is out", NULL);
		status = 500;
		if (frame(&b, c, answer) != 0)
			buf_reset(&b); /* a half-made message is dropped */
	}
	if (c->stream) {
		(void)http_stream_write(c->stream, b.data, b.len);
		http_stream_end(c->stream);
	} else if (c->req) {
		http_reply_with(c->req, &(struct http_answer){.status = status,
							      .content_type = "application/json",
							      .body = b.data,
							      .len = b.len,
							      .fields = fields,
							      .nfields = begun ? 3 : 2});
	}
	buf_fini(&b);
	mcp_call_free(c);
}

void mcp_call_answer(struct mcp_call *c, json_t *result)
{
	if (result && c->modern) {
		if (!json_object_get(result, "resultType"))
			json_object_set_new(result, "resultType", json_string("complete"));
		json_object_set_new(result, "_meta",
				    json_pack("{s:{s:s,s:s}}", MCP_META "serverInfo", "name", "ava",
					      "version", ava_version()));
	}
	if (result && c->modern && c->method->cached) {
		json_object_set_new(result, "ttlMs", json_integer(c->method->ttl_ms));
		json_object_set_new(result, "cacheScope", json_string("private"));
	}
	mcp_call_send(c, rpc_result(c->m.id, result), 200);
}

void mcp_call_refuse(struct mcp_call *c, int code, const char *text, json_t *data)
{
	int status = code == RPC_INTERNAL ? 500 : code == RPC_NO_METHOD ? 404 : 400;

	mcp_call_send(c, rpc_error(c->m.id, code, text, data), c->modern ? status : 200);
}

void mcp_call_fail(struct mcp_call *c, const struct ava_error *err)
{
	bool asked_wrong = err->code == AVA_EINVAL || err->code == AVA_ENOENT;

	mcp_call_refuse(c, asked_wrong ? RPC_PARAMS : RPC_INTERNAL, err->text, NULL);
}

json_t *mcp_call_text(const json_t *v)
{
	json_t *text = NULL;
	struct buf b;

	buf_init(&b, MCP_ANSWER_MAX);
	if (v && json_dump(&b, v) == 0)
		text = json_stringn(b.data, b.len);
	buf_fini(&b);
	return text;
}

json_t *mcp_call_told(json_t *told, bool error)
{
	return json_pack("{s:[{s:s,s:o}],s:o,s:b}", "content", "type", "text", "text",
			 mcp_call_text(told), "structuredContent", told, "isError", error);
}

void mcp_call_tell(struct mcp_call *c, json_t *told)
{
	mcp_call_answer(c, mcp_call_told(told, false));
}

void mcp_call_tell_error(struct mcp_call *c, const char *text)
{
	mcp_call_answer(c, json_pack("{s:[{s:s,s:o}],s:b}", "content", "type", "text", "text",
				     json_shown(text), "isError", 1));
}

/* ---- verbs */

static void call_gone(struct http_request *req, void *user)
{
	struct mcp_call *c = user;

	c->req = NULL;
	abandoned(c);
}

/* A verb or look was answered. false: the client has gone, and the call is freed. */
static bool still_wanted(struct mcp_call *c)
{
	c->waiting = false;
	if (c->req || c->stream)
		return true;
	mcp_call_free(c);
	return false;
}

static void mcp_call_verb_answered(struct verb_reply *r, int status, const struct buf *json,
				   const struct ava_error *err)
{
	struct mcp_call *c = CONTAINER_OF(r, struct mcp_call, reply);
	struct ava_error own = {.code = AVA_ENOMEM, .text = "out of memory"};
	json_t *answer = json ? json_parse(json->data, json->len, NULL) : NULL;

	if (still_wanted(c))
		c->then(c, answer, answer ? NULL : json ? &own : err);
	json_decref(answer);
}

/* Before anything is asked that may answer later. */
static void await(struct mcp_call *c)
{
	c->waiting = true;
	c->reply.give_up = NULL;
	if (c->req)
		http_on_gone(c->req, call_gone, c);
}

static void mcp_call_looked(int rv, const struct op_status *s, const struct ava_error *err,
			    void *user)
{
	struct mcp_call *c = user;

	if (still_wanted(c))
		c->looked(c, s, rv == 0 ? NULL : err);
}

void mcp_call_look(struct mcp_call *c, mcp_look_fn then)
{
	c->looked = then;
	await(c);
	ops_look(c->mcp->core, c->run, mcp_call_looked, c);
}

void mcp_call_ask(struct mcp_call *c, const char *method, const char *path, const char *id,
		  json_t *args, bool person, mcp_then_fn then)
{
	bool quote = c->tool && c->tool->quotes;
	/* An MCP client's model may have read anything: treat it as having seen all. A proposal is
	 * made in the person's name; else the model speaks for itself. */
	const struct caller caller = {.user = person || quote ? c->user : NULL,
				      .channel = "mcp",
				      .trust = CALLER_OWNER,
				      .seen = person ? 0 : RIGHTS_SEEN,
				      .model = !person};
	char own[64]; /* an immediate answer frees the call, and `id` may be in it */

	snprintf(own, sizeof(own), "%s", id);
	c->then = then;
	c->reply.done = mcp_call_verb_answered;
	await(c);
	verbs_call(c->mcp->core, verbs_named(method, path), &caller, own, args, &c->reply);
	json_decref(args);
}
