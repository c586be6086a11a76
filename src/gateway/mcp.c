/* See mcp.h.
 *
 * Happy path of a request: the era of the client is read from the message (each one of 2026-07-28
 * says its version; the others have a handshake, and a session that only says whether forms are
 * shown), the method is a row, and a call (mcp_call.h) keeps the request while verbs of the runtime
 * answer, one after another. Nothing is kept between requests: what a client carries for us, the id
 * of a task and the state of a form, is sealed (mcp_secret.h), so that both hold after a restart.
 *
 * What can fail: everything that a client can get wrong, with the code that the protocol has for
 * it; what verbs refuse, in their sentence, as the result of a tool. */
#include "gateway/mcp.h"

#include <ava.h>
#include <nettle/base64.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/state.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/util.h"
#include "gateway/mcp_call.h"
#include "net/http_server.h"

#define MODERN "2026-07-28"
#define TTL_MS 300000 /* time that a client may keep lists, which never change while we run */

static const char *const legacy_versions[] = {"2025-11-25", "2025-06-18", "2025-03-26",
					      "2024-11-05"};

/* ---- tools */

static void tool_done(struct mcp_call *c, json_t *answer, const struct ava_error *err)
{
	bool waited = strcmp(c->tool->name, "ava_wait") == 0;

	if (err) {
		mcp_call_tell_error(c, err->text);
	} else if (json_object_get(answer, "proposal_id")) {
		mcp_call_tell(c, mcp_tell_proposal(answer, NULL));
	} else {
		mcp_cut_events(answer);
		mcp_call_answer(
			c, mcp_call_told(json_incref(answer), waited && mcp_run_failed(answer)));
	}
}

static void tools_call(struct mcp_call *c)
{
	const char *state = json_get_str(c->m.params, "requestState");
	struct ava_error err = {0};
	struct mcp_verb v;

	c->tool = mcp_tool_find(json_str(c->m.params, "name"), c->forms);
	if (!c->tool)
		mcp_call_refuse(c, RPC_PARAMS, "there is no such tool: tools/list has them", NULL);
	else if (c->tool->quotes && state)
		mcp_quote_returned(c, state);
	else if (mcp_tool_verb(c->tool, json_object_get(c->m.params, "arguments"),
			       mcp_call_query(c, "cwd"), mcp_call_query(c, "id"), &v, &err) == 0)
		mcp_call_ask(c, v.method, v.path, v.id, v.args, false,
			     c->tool->quotes ? mcp_quote_told : tool_done);
	else
		mcp_call_tell_error(c, err.text);
}

/* ---- resources */

static void resources_listed(struct mcp_call *c, json_t *runs, const struct ava_error *err)
{
	if (err)
		mcp_call_fail(c, err);
	else
		mcp_call_answer(c, json_pack("{s:o}", "resources", mcp_resources(runs)));
}

static void resources_list(struct mcp_call *c)
{
	mcp_call_ask(c, "GET", "/api/v1/runs", "", json_pack("{s:b,s:i}", "all", 1, "limit", 30),
		     false, resources_listed);
}

static void resource_read(struct mcp_call *c, json_t *answer, const struct ava_error *err)
{
	const char *uri = json_str(c->m.params, "uri");

	if (err && (err->code == AVA_ENOENT || err->code == AVA_EINVAL)) {
		mcp_call_refuse(c, c->modern ? RPC_PARAMS : MCP_NO_RESOURCE, err->text,
				json_pack("{s:s}", "uri", uri));
	} else if (err) {
		mcp_call_fail(c, err); /* the resource may exist */
	} else {
		mcp_cut_events(answer);
		mcp_call_answer(c,
				json_pack("{s:[{s:s,s:s,s:o}]}", "contents", "uri", uri, "mimeType",
					  "application/json", "text", mcp_call_text(answer)));
	}
}

static void resources_read(struct mcp_call *c)
{
	struct ava_error err = {0};
	struct mcp_verb v;

	if (mcp_resource_verb(json_str(c->m.params, "uri"), &v, &err) == 0)
		mcp_call_ask(c, v.method, v.path, v.id, v.args, false, resource_read);
	else
		resource_read(c, NULL, &err);
}

/* Constant answers: our name, the tools, the templates, and no prompts, which clients ask for
 * nevertheless. */
static void mcp_is_offered(struct mcp_call *c)
{
	mcp_call_answer(c, mcp_offered(c->m.method, c->forms));
}

/* ---- who is there */

/* {"elicitation":{}} means forms; {"elicitation":{"url":{}}} does not. */
static bool has_forms(const json_t *capabilities)
{
	const json_t *o = json_object_get(capabilities, "elicitation");

	return json_is_object(o) && (json_object_size(o) == 0 || json_object_get(o, "form"));
}

static bool is_legacy(const char *version)
{
	for (size_t i = 0; i < ARRAY_LEN(legacy_versions); i++)
		if (strcmp(legacy_versions[i], version) == 0)
			return true;
	return false;
}

#define SESSION_FORMS "-forms"

static void initialize(struct mcp_call *c)
{
	const char *version = json_str(c->m.params, "protocolVersion");
	json_t *now = mcp_offered("server/discover", false); /* initialize tells the same */
	unsigned char random[16];
	char hex[2 * sizeof(random) + 1];

	id_random(random, sizeof(random));
	hash_hex(random, sizeof(random), hex);
	snprintf(c->session, sizeof(c->session), "%s%s", hex,
		 has_forms(json_object_get(c->m.params, "capabilities")) ? SESSION_FORMS : "");
	mcp_call_answer(c, json_pack("{s:s,s:{s:{},s:{}},s:O,s:{s:s,s:s}}", "protocolVersion",
				     is_legacy(version) ? version : legacy_versions[0],
				     "capabilities", "tools", "resources", "instructions",
				     json_object_get(now, "instructions"), "serverInfo", "name",
				     "ava", "version", ava_version()));
	json_decref(now);
}

static const struct mcp_method methods[] = {
	{"initialize", true, false, initialize},
	{"ping", true, false, mcp_is_offered},
	{"server/discover", false, true, mcp_is_offered, .cached = true, .ttl_ms = TTL_MS},
	{"tools/list", true, true, mcp_is_offered, .cached = true, .ttl_ms = TTL_MS},
	{"tools/call", true, true, tools_call, "name"},
	{"resources/list", true, true, resources_list, .cached = true},
	{"resources/templates/list", true, true, mcp_is_offered, .cached = true, .ttl_ms = TTL_MS},
	{"resources/read", true, true, resources_read, "uri", .cached = true},
	{"prompts/list", true, true, mcp_is_offered, .cached = true, .ttl_ms = TTL_MS},
	{"tasks/get", false, true, mcp_task_get, "taskId"},
	{"tasks/update", false, true, mcp_task_update, "taskId"},
	{"tasks/cancel", false, true, mcp_task_cancel, "taskId"},
};

/* ---- requests */

/* A field says what the message says; of a name that is no plain text, =?base64?…?=. */
static bool field_is(const struct mcp_call *c, const char *field, const char *want)
{
	const char *got = http_header(c->req, field);
	size_t len = got ? strlen(got) : 0;
	struct base64_decode_ctx b;
	uint8_t plain[1024];
	size_t n = sizeof(plain);

	if (!got || !want)
		return false;
	if (strcmp(got, want) == 0)
		return true;
	if (len < 11 || len > 1024 || strncmp(got, "=?base64?", 9) != 0 ||
	    strcmp(got + len - 2, "?=") != 0)
		return false;
	base64_decode_init(&b);
	return base64_decode_update(&b, &n, plain, len - 11, got + 9) && base64_decode_final(&b) &&
	       n == strlen(want) && memcmp(plain, want, n) == 0;
}

/* Check the fields 2026-07-28 wants in each request. false: the call has been refused. */
static bool check_modern(struct mcp_call *c)
{
	const json_t *meta = json_object_get(c->m.params, "_meta"),
		     *can = json_object_get(meta, MCP_META "clientCapabilities");
	const char *named = c->method->named;
	const char *version = json_get_str(meta, MCP_META "protocolVersion");

	if (!version || !json_is_object(can)) {
		mcp_call_refuse(c, RPC_PARAMS,
				"params._meta needs " MCP_META "protocolVersion and " MCP_META
				"clientCapabilities",
				NULL);
	} else if (c->far &&
		   (!field_is(c, "MCP-Protocol-Version", version) ||
		    !field_is(c, "Mcp-Method", c->m.method) ||
		    (named && !field_is(c, "Mcp-Name", json_get_str(c->m.params, named))))) {
		mcp_call_refuse(
			c, MCP_HEADER,
			"MCP-Protocol-Version, Mcp-Method and Mcp-Name are to say what the message "
			"says",
			NULL);
	} else if (strcmp(version, MODERN) != 0) {
		mcp_call_refuse(
			c, MCP_VERSION, "this version of the protocol is not spoken here",
			json_pack("{s:[s],s:s}", "supported", MODERN, "requested", version));
	} else {
		c->forms = has_forms(can);
		c->tasks = json_object_get(json_object_get(can, "extensions"), MCP_TASKS) != NULL;
		return true;
	}
	return false;
}

static void request_came(struct mcp_call *c)
{
	const json_t *meta = json_object_get(c->m.params, "_meta");
	const char *field = http_header(c->req, "MCP-Protocol-Version");
	struct ava_error err = {0};

	if (mcp_secret_have(&c->mcp->secret, false, &err) != 0) {
		mcp_call_fail(c, &err);
		return;
	}
	c->modern = json_object_get(meta, MCP_META "protocolVersion") ||
		    (field && !is_legacy(field)) || strcmp(c->m.method, "server/discover") == 0;
	for (size_t i = 0; i < ARRAY_LEN(methods) && !c->method; i++)
		if (strcmp(methods[i].name, c->m.method) == 0 &&
		    (c->modern ? methods[i].modern : methods[i].legacy))
			c->method = &methods[i];
	if (!c->method) {
		mcp_call_refuse(c, RPC_NO_METHOD, "there is no such method", NULL);
		return;
	}
	if (!c->modern)
		c->forms = strstr(c->session, SESSION_FORMS) != NULL;
	if (c->modern && !check_modern(c))
		return;
	if (json_get_str(c->m.params, "cursor"))
		mcp_call_refuse(c, RPC_PARAMS, "every list is one page: there is no such cursor",
				NULL);
	else
		c->method->call(c);
}

void mcp_serve(struct mcp *m, struct http_request *req, const char *user, bool far)
{
	static const struct http_field allow[] = {{"Allow", "POST"}};
	const char *session = http_header(req, "Mcp-Session-Id");
	struct ava_error err = {0};
	struct mcp_call *c;
	int rv;

	core_door_asked(m->core, "mcp");
	if (strcmp(req->method, "POST") != 0) {
		http_reply_with(req, &(struct http_answer){.status = 405,
							   .content_type = "application/json",
							   .body = "",
							   .fields = allow,
							   .nfields = 1});
		return;
	}
	c = calloc(1, sizeof(*c));
	if (!c) {
		http_reply(req, 500, "application/json", "", 0);
		return;
	}
	c->mcp = m;
	c->req = req;
	c->far = far;
	list_init(&c->node);
	snprintf(c->user, sizeof(c->user), "%s", user);
	snprintf(c->session, sizeof(c->session), "%s", session ? session : "");
	rv = rpc_read(&c->m, req->body, req->body_len, &err);
	if (rv == RPC_PARSE && c->m.kind == RPC_RESPONSE)
		rv = 0; /* a form that came back torn is one that says nothing */
	if (rv != 0) {
		c->modern = true; /* an unreadable message is an error in every version */
		mcp_call_refuse(c, rv, err.text, NULL);
	} else if (c->m.kind == RPC_REQUEST) {
		request_came(c);
	} else {
		http_reply(req, 202, "application/json", "", 0);
		mcp_quote_heard(m, &c->m, c->session);
		mcp_call_free(c);
	}
}

bool mcp_allows(struct mcp *m, const char *authorization)
{
	return mcp_secret_allows(&m->secret, authorization);
}

int mcp_token(struct mcp *m, bool renew, struct buf *token, struct ava_error *err)
{
	int rv = mcp_secret_have(&m->secret, renew, err);

	LIST_EACH (&m->open, n, tmp) {
		struct mcp_call *c = LIST_ENTRY(n, struct mcp_call, node);

		if (rv == 0 && renew && c->far && c->stream)
			http_stream_abort(c->stream);
	}
	return rv == 0 ? buf_adds(token, m->secret.token) : rv;
}

int mcp_new(struct mcp **out, struct core *core, unsigned *streams, struct ava_error *err)
{
	struct mcp *m = calloc(1, sizeof(*m));

	if (!m)
		return err_set(err, AVA_ENOMEM, "out of memory");
	m->core = core;
	m->streams = streams;
	m->secret.root_fd = core->root_fd;
	list_init(&m->open);
	*out = m;
	return 0;
}

void mcp_free(struct mcp *m)
{
	free(m);
}
