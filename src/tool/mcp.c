/* MCP servers; see mcp.h. Their protocol is JSON-RPC in two eras (modelcontextprotocol.io): the
 * modern one (2026-07-28) has no handshake, each request says who asks; the older one begins with
 * `initialize`. Which a server speaks is asked once, by `server/discover` (the probe); one that
 * does not answer it well, or in time, is greeted:
 *
 *   DOWN ──► STARTING ──► LISTING ◄──► READY    (every state may go to DOWN)
 *
 * Happy path: a quote wants a server (mcp_client_ready), or a call does; it is started, lists its
 * tools, which go into the tool set; calls are requests with a time limit of their own. Nobody is
 * asked anything on behalf of a server: the capabilities for that are not declared, and requests of
 * a server are refused.
 *
 * A call is sent in READY only, when the tool is what the run was confirmed with: from the moment
 * that a server tells of a change, or can no longer tell, calls wait until the list is read again.
 *
 * What can fail: everything a server does. It ends, says nothing, writes what is no message, or too
 * much: calls under way fail with a sentence, runs go on. A call that was cut may have happened, so
 * that no tool of a server is repeatable, whatever it says of itself. */
#include "tool/mcp.h"

#include <ava.h>
#include <libgen.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/list.h"
#include "base/util.h"
#include "codec/jsonrpc.h"
#include "codec/redact.h"
#include "codec/utf8.h"
#include "net/http_client.h"
#include "os/loop.h"
#include "tool/mcp_conf.h"
#include "tool/mcp_link.h"
#include "tool/mcp_rows.h"

#define MODERN     "2026-07-28"
#define OLDER      "2025-11-25" /* the newest version that begins with a handshake */
#define PROBE_PART 6            /* an answer to the probe has 1/6 of the start time */
#define PAGES_MAX  20
#define LISTS_MAX  8 /* lists read in a row because each changed meanwhile */
#define WAITS_MAX  1000
#define WHY_MAX    400 /* bytes, but four times as many once invisible characters are escaped */
/* Unasked messages between two answers before a server counts as broken: a notice counts one, as
 * does each KB; a request, which is answered, and a line that is no message count more. */
#define NOISE_MAX     8192
#define NOISE_REQUEST 16
#define NOISE_GARBAGE 128

enum server_state { SERVER_DOWN, SERVER_STARTING, SERVER_LISTING, SERVER_READY };

struct server {
	struct mcp_client *mcp;
	const struct mcp_conf *conf;
	enum server_state state;
	struct mcp_link *link; /* NULL in SERVER_DOWN */
	bool older;            /* the server is of the older era: it is greeted without a probe */
	bool tells;            /* the server reports changes of its list */
	bool stale;            /* the list must be read again before the next use */
	bool renewed;          /* the session was renewed, and the list was not read since */
	unsigned sessions;
	unsigned pages, lists;
	size_t noise;
	struct mcp_server_state shown;
	char why[4 * WHY_MAX + 1]; /* text of shown.why */
	char wrote[2 * WHY_MAX];   /* the server's last output that was no JSON; "": none */
	int64_t ids;
	int64_t late; /* newest id at the first timeout without any output since; 0: none */
	struct list asks;
	struct os_timer *timer; /* time limit of the state */
	struct mcp_rows tools, coming;
};

enum mcp_ask_kind { ASK_PROBE, ASK_GREET, ASK_GREETED, ASK_LIST, ASK_LISTEN, ASK_CALL };

struct mcp_ask {
	struct list node; /* in server.asks */
	struct server *server;
	int64_t id; /* 0: not sent yet, the server is starting */
	enum mcp_ask_kind kind;
	struct tool_call *call; /* of ASK_CALL */
	unsigned session;       /* value of server.sessions when it was sent */
	bool again;             /* a session has refused the question once */
	struct os_timer *timer;
};

struct mcp_wait {
	struct list node;
	uint32_t servers;
	mcp_client_ready_fn done;
	void *user;
};

struct mcp_client {
	struct os_loop *loop;
	struct http_client *client;
	struct mcp_confs confs;
	const struct redact *redact;
	struct server *servers;
	size_t n;
	struct list waits;
	unsigned nwaits, alive;
	struct os_task begin; /* starts the servers in `waits` */
	bool quiet;
	/* ava's own folders, as the kernel names them, hidden from every server */
	char *root, *config; /* NULL: no such folder; without a root servers write nothing */
	const char *keep_out[3];
	uint64_t least_mb;
};

static void server_start(struct server *s);

#define name_of(s) ((s)->conf->name)

/* ---- calls */

/* Free an ask; a call is answered. */
static void mcp_ask_over(struct mcp_ask *a)
{
	struct tool_call *c = a->call;

	list_del(&a->node);
	os_timer_free(a->timer);
	free(a);
	if (!c)
		return;
	c->work = NULL;
	c->done(c);
}

__attribute__((format(printf, 3, 4))) static void call_fails(struct tool_call *c, const char *class,
							     const char *fmt, ...)
{
	struct mcp_ask *a = c->work;
	va_list ap;

	c->success = false;
	c->error_class = class;
	buf_reset(&c->out);
	va_start(ap, fmt);
	buf_vaddf(&c->out, fmt, ap);
	va_end(ap);
	if (a)
		mcp_ask_over(a);
	else
		c->done(c);
}

/* `begun`: the server has received it. */
static void call_cut(struct mcp_ask *a, bool begun, const char *why)
{
	call_fails(a->call, "server_failed",
		   begun ? "the MCP server %s failed while it worked on this (%s): it may have "
			   "happened; call it again only where that does no harm"
			 : "the MCP server %s cannot be had: %s; go on without it",
		   name_of(a->server), why);
}

static void call_result(struct mcp_ask *a, const json_t *result)
{
	const char *type = json_str(result, "resultType");
	const json_t *content = json_object_get(result, "content");
	struct tool_call *c = a->call;

	if (*type && strcmp(type, "complete") != 0) {
		call_fails(c, "unsupported",
			   "%s wants something of a person for this (%.40s), which ava does not "
			   "pass on: go on without it",
			   name_of(a->server), type);
		return;
	}
	if (!json_is_object(result) || (content && !json_is_array(content))) {
		call_fails(c, "protocol", "%s answered with no result: go on without it",
			   name_of(a->server));
		return;
	}
	mcp_result_text(&c->out, result);
	c->success = !json_get_bool(result, "isError", false);
	c->error_class = c->success ? "" : "server_error";
	if (buf_check(&c->out) != 0)
		call_fails(c, "too_big", "the result of %s is larger than %u MB: ask for less",
			   name_of(a->server), TOOL_FULL_MAX >> 20);
	else
		mcp_ask_over(a);
}

/* ---- messages out */

static json_t *our_name(void)
{
	return json_pack("{s:s,s:s}", "name", "ava", "version", ava_version());
}

/* `a`: receiver of the answer; NULL: none. No method: over HTTP, a GET. *Takes* params. */
static int mcp_send(struct server *s, struct mcp_ask *a, const char *method, json_t *params,
		    struct ava_error *err)
{
	struct mcp_sending m = {.id = a ? (a->id = ++s->ids) : 0,
				.version = s->older ? s->shown.version : MODERN,
				.method = s->older ? NULL : method,
				.name = s->older ? NULL : json_get_str(params, "name")};
	struct buf b;
	int rv = 0;

	if (a)
		a->session = s->sessions;
	if (!s->older)
		json_object_set_new(params, "_meta",
				    json_pack("{s:s,s:{},s:o}",
					      "io.modelcontextprotocol/protocolVersion", MODERN,
					      "io.modelcontextprotocol/clientCapabilities",
					      "io.modelcontextprotocol/clientInfo", our_name()));
	buf_init(&b, MCP_MESSAGE_MAX);
	if (method)
		rv = rpc_line(&b, rpc_request(a && a->kind != ASK_GREETED ? a->id : 0, method,
					      json_incref(params)));
	m.json = b.data;
	m.len = b.len;
	if (rv != 0)
		rv = err_set(err, rv, "%s",
			     rv == AVA_ENOMEM ? "out of memory" : "the arguments are too long");
	else
		rv = mcp_link_send(s->link, &m, err);
	buf_fini(&b);
	json_decref(params);
	return rv;
}

static void server_down(struct server *s, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static struct mcp_ask *ask_new(struct server *s, enum mcp_ask_kind kind)
{
	struct mcp_ask *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->server = s;
	a->kind = kind;
	list_add(&s->asks, &a->node);
	return a;
}

static void mcp_ask(struct server *s, enum mcp_ask_kind kind, const char *method, json_t *params)
{
	struct ava_error err = {AVA_ENOMEM, "out of memory"};
	struct mcp_ask *a = ask_new(s, kind);

	if (!a)
		json_decref(params);
	if (!a || mcp_send(s, a, method, params, &err) != 0)
		server_down(s, err.code, "%s", err.text);
}

/* Closing the answer cancels a call over HTTP; the older era needs a notice as well. */
static void mcp_cancel_call(struct server *s, const struct mcp_ask *a)
{
	if (!s->link || a->id == 0)
		return;
	mcp_link_drop(s->link, a->id);
	if (s->conf->argv || s->older)
		(void)mcp_send(s, NULL, "notifications/cancelled",
			       json_pack("{s:I}", "requestId", (json_int_t)a->id), NULL);
}

static void send_call(struct mcp_ask *a)
{
	struct server *s = a->server;
	struct tool_call *c = a->call;
	struct ava_error err = {0};
	bool same;
	const char *name = mcp_rows_name(&s->tools, c->tool, &same);

	if (!name)
		call_fails(c, "unknown_tool", "%s has no tool %s any more: go on without it",
			   name_of(s), c->tool->name);
	else if (!same)
		call_fails(
			c, "changed",
			"%s describes %s in another way than when this run was confirmed, so that "
			"it was not called: go on without it",
			name_of(s), c->tool->name);
	else if (mcp_send(s, a, "tools/call",
			  json_pack("{s:s,s:O}", "name", name, "arguments", c->args), &err) != 0)
		call_fails(c, "io", "%s cannot be asked: %s", name_of(s), err.text);
}

/* ---- a server's state */

/* The ask of that id; `id` 0: none. */
static struct mcp_ask *find_ask(struct server *s, int64_t id)
{
	LIST_EACH (&s->asks, n, tmp) {
		struct mcp_ask *a = LIST_ENTRY(n, struct mcp_ask, node);

		if (id && a->id == id)
			return a;
	}
	return NULL;
}

/* The first ask of a kind, not sent yet or under way; NULL: none. */
static struct mcp_ask *first_ask(struct server *s, enum mcp_ask_kind kind, bool sent)
{
	LIST_EACH (&s->asks, n, tmp) {
		struct mcp_ask *a = LIST_ENTRY(n, struct mcp_ask, node);

		if (a->kind == kind && (a->id != 0) == sent)
			return a;
	}
	return NULL;
}

static void mcp_wait_over(struct mcp_client *m, struct mcp_wait *w, int code,
			  const struct ava_error *err)
{
	struct mcp_wait was = *w;

	list_del(&w->node);
	m->nwaits--;
	free(w);
	was.done(code, err, was.user);
}

static uint32_t bit_of(const struct server *s)
{
	return UINT32_C(1) << (s - s->mcp->servers);
}

/* End the waits for this server that need no other one; `code`: the server failed, end all. */
static void settle_waits(struct server *s, int code)
{
	struct ava_error err = {0};

	if (code != 0)
		err_set(&err, code,
			"the MCP server %s cannot be had: %s (`ava doctor` looks at it)",
			name_of(s), s->why);
	LIST_EACH (&s->mcp->waits, n, tmp) {
		struct mcp_wait *w = LIST_ENTRY(n, struct mcp_wait, node);

		if (!(w->servers & bit_of(s)))
			continue;
		w->servers &= ~bit_of(s);
		if (code != 0 || w->servers == 0)
			mcp_wait_over(s->mcp, w, code, &err);
	}
}

/* Drop asks of the kinds before `until`: their answers no longer count. */
static void drop_asks(struct server *s, enum mcp_ask_kind until)
{
	LIST_EACH (&s->asks, n, tmp) {
		struct mcp_ask *a = LIST_ENTRY(n, struct mcp_ask, node);

		if (a->kind >= until)
			continue;
		mcp_link_drop(s->link, a->id);
		mcp_ask_over(a);
	}
}

/* `code` 0: not needed now. Its tools stay known: the next call or quote starts it again. */
static void server_down(struct server *s, int code, const char *fmt, ...)
{
	struct buf text, open, safe; /* whole, since a part hides secrets; redacted; for people */
	va_list ap;

	buf_init(&text, 2 * MCP_MESSAGE_MAX);
	buf_init(&open, 2 * MCP_MESSAGE_MAX);
	buf_init(&safe, sizeof(s->why) - 1);
	va_start(ap, fmt);
	buf_vaddf(&text, fmt, ap);
	va_end(ap);
	if (text.len > 0 && redact_text(s->mcp->redact, &open, text.data, text.len) >= 0)
		(void)utf8_terminal(&safe, open.data, MIN(open.len, WHY_MAX), false);
	snprintf(s->why, sizeof(s->why), "%s", safe.data ? safe.data : "");
	buf_fini(&text);
	buf_fini(&open);
	buf_fini(&safe);
	s->state = SERVER_DOWN;
	/* Without an agreed version the probe may be the cause, so the next start probes again. */
	s->older = s->older && s->shown.version[0];
	drop_asks(s, ASK_CALL);
	mcp_link_close(s->link);
	s->link = NULL;
	os_timer_stop(s->timer);
	mcp_rows_free(&s->coming);
	LIST_EACH (&s->asks, n, tmp) {
		struct mcp_ask *a = LIST_ENTRY(n, struct mcp_ask, node);

		call_cut(a, a->id != 0, s->why);
	}
	if (code != 0)
		settle_waits(s, code);
}

static void begin_listing(struct server *s)
{
	drop_asks(s, ASK_LISTEN);
	if (s->state == SERVER_READY)
		os_timer_set(s->timer, s->conf->start_ms);
	s->state = SERVER_LISTING;
	s->stale = false;
	s->pages = 0;
	mcp_rows_free(&s->coming);
	mcp_ask(s, ASK_LIST, "tools/list", json_object());
}

static void greet(struct server *s)
{
	s->older = true;
	mcp_ask(s, ASK_GREET, "initialize",
		json_pack("{s:s,s:{},s:o}", "protocolVersion", OLDER, "capabilities", "clientInfo",
			  our_name()));
}

static void time_over(void *user)
{
	struct server *s = user;

	if (s->state == SERVER_STARTING && !s->older) { /* a late answer is still heard */
		os_timer_set(s->timer, s->conf->start_ms - s->conf->start_ms / PROBE_PART);
		greet(s);
	} else if (first_ask(s, ASK_CALL, true)) { /* some servers do one thing at a time */
		os_timer_set(s->timer, s->conf->idle_ms);
		if (s->state == SERVER_READY)
			return;
		snprintf(s->why, sizeof(s->why), "it is at work, and does not list its tools");
		settle_waits(s, AVA_EIO);
	} else if (s->state == SERVER_READY) {
		server_down(s, 0, "%s", "");
	} else if (s->wrote[0]) {
		server_down(s, AVA_EPROTO, "it wrote what could not be read: %s", s->wrote);
	} else {
		server_down(s, AVA_EIO, "it did not answer within %d s", s->conf->start_ms / 1000);
	}
}

static void mcp_listed(struct server *s)
{
	struct mcp_ask *a;

	mcp_rows_free(&s->tools);
	s->tools = s->coming;
	s->coming = (struct mcp_rows){0};
	mcp_rows_add(&s->tools);
	s->shown.tools = s->tools.n;
	s->shown.left_out = s->tools.left_out;
	if (s->stale) {
		if (++s->lists == LISTS_MAX)
			server_down(s, AVA_EPROTO, "its list of tools changes whenever it is read");
		else
			begin_listing(s);
		return;
	}
	s->state = SERVER_READY;
	s->renewed = false;
	s->lists = 0;
	s->why[0] = '\0';
	os_timer_set(s->timer, s->conf->idle_ms);
	/* A server leaves this request open to report changes of its list. */
	if (s->tells && !first_ask(s, ASK_LISTEN, true) && !(s->older && s->conf->argv))
		mcp_ask(s, ASK_LISTEN, s->older ? NULL : "subscriptions/listen",
			json_pack("{s:{s:b}}", "notifications", "toolsListChanged", 1));
	while (s->state == SERVER_READY && (a = first_ask(s, ASK_CALL, false)) != NULL)
		send_call(a);
	if (s->state == SERVER_READY)
		settle_waits(s, 0);
}

/* Start the server or read its list where needed; calls and waits go on in READY. */
static void use(struct server *s)
{
	if (s->state == SERVER_DOWN)
		server_start(s);
	else if (s->state == SERVER_READY && s->stale)
		begin_listing(s);
	else if (s->state == SERVER_READY)
		os_timer_set(s->timer, s->conf->idle_ms);
}

/* ---- messages in */

static void mcp_take_list(struct server *s, const json_t *result)
{
	const json_t *tools = json_object_get(result, "tools"), *o;
	const char *cursor = json_get_str(result, "nextCursor");
	struct tool like = tool_mcp;
	size_t i;

	like.flags |= s->conf->rights;
	s->coming.headers = !s->conf->argv && !s->older;

	json_array_foreach(tools, i, o)
	{
		if (!mcp_rows_take(&s->coming, &like, name_of(s), o)) {
			server_down(s, AVA_ENOMEM, "out of memory");
			return;
		}
	}
	if (cursor && *cursor && ++s->pages < PAGES_MAX)
		mcp_ask(s, ASK_LIST, "tools/list", json_pack("{s:s}", "cursor", cursor));
	else
		mcp_listed(s);
}

static bool tells_changes(const json_t *result)
{
	return json_get_bool(json_object_get(json_object_get(result, "capabilities"), "tools"),
			     "listChanged", false);
}

static void discovered(struct server *s, const json_t *result)
{
	const json_t *v;
	size_t i;
	bool modern = false;

	json_array_foreach(json_object_get(result, "supportedVersions"), i, v) modern |=
		json_is_string(v) && strcmp(json_string_value(v), MODERN) == 0;
	if (!modern) {
		if (!s->older)
			greet(s); /* the server may also speak the older era */
		return;
	}
	s->older = false;
	s->tells = tells_changes(result);
	s->shown.version = MODERN;
	begin_listing(s);
}

static void greeted(struct server *s, const json_t *result)
{
	static const char *const known[] = {OLDER, "2025-06-18", "2025-03-26", "2024-11-05"};
	const char *version = json_str(result, "protocolVersion");

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (strcmp(known[i], version) == 0)
			s->shown.version = known[i];
	if (!s->shown.version[0]) {
		server_down(s, AVA_EPROTO, "it speaks version \"%.40s\" of MCP, which ava does not",
			    version);
		return;
	}
	s->tells = tells_changes(result);
	/* Over HTTP messages may overtake each other, so the list waits for this answer. */
	mcp_ask(s, ASK_GREETED, "notifications/initialized", json_object());
	if (s->conf->argv && s->link)
		begin_listing(s);
}

/* `code`, `said`: of the JSON error; 0: no JSON, or unreadable. */
static void ask_refused(struct mcp_ask *a, int64_t code, const char *said)
{
	struct server *s = a->server;
	const char *how = s->wrote[0] ? "wrote what could not be read" : "refuses";
	enum mcp_ask_kind kind = a->kind;

	if (kind == ASK_CALL) {
		call_fails(a->call, "server_error", "%s %s: %.2000s", name_of(s), how, said);
		return;
	}
	mcp_ask_over(a);
	if (kind == ASK_PROBE && !s->older)
		greet(s); /* the server may also speak the older era */
	else if (kind == ASK_GREET || kind == ASK_GREETED)
		server_down(s, AVA_EPROTO, "it %s: %s", how, said);
	else if (kind == ASK_LIST && code == RPC_NO_METHOD)
		mcp_listed(s); /* the server has no tools */
	else if (kind == ASK_LIST)
		server_down(s, AVA_EPROTO, "it does not list its tools: %s", said);
}

static void ask_answered(struct mcp_ask *a, const json_t *result)
{
	struct server *s = a->server;
	enum mcp_ask_kind kind = a->kind;

	if (kind == ASK_CALL) {
		call_result(a, result);
		return;
	}
	mcp_ask_over(a);
	if (kind == ASK_PROBE)
		discovered(s, result);
	else if (kind == ASK_GREET)
		greeted(s, result);
	else if (kind == ASK_LIST)
		mcp_take_list(s, result);
	else if (kind == ASK_LISTEN)
		s->stale = true;
}

static void on_message(const char *text, size_t len, void *user)
{
	struct server *s = user;
	struct mcp_ask *a = NULL;
	size_t noise = 1;
	struct rpc m;

	s->late = 0;
	s->wrote[0] = '\0';
	if (rpc_read(&m, text, len, NULL) != 0) {
		noise = NOISE_GARBAGE;
		snprintf(s->wrote, sizeof(s->wrote), "%.*s", (int)MIN(len, sizeof(s->wrote)), text);
		a = m.kind == RPC_RESPONSE ? find_ask(s, rpc_number(m.id)) : NULL;
	} else if (m.kind == RPC_REQUEST) {
		noise = NOISE_REQUEST;
		mcp_link_refuse(s->link, s->shown.version, &m);
	} else if (m.kind == RPC_NOTICE) {
		if (strcmp(m.method, "notifications/tools/list_changed") == 0) {
			s->stale = true;
			if (s->state == SERVER_READY)
				begin_listing(s);
		}
	} else {
		a = find_ask(s, rpc_number(m.id));
	}
	s->noise = a ? 0 : s->noise + noise + len / 1024;
	if (a) {
		mcp_link_drop(s->link, a->id); /* nothing more of this stream is wanted */
		if (s->wrote[0])
			ask_refused(a, 0, s->wrote);
		else if (m.error)
			ask_refused(a, json_get_int(m.error, "code", 0),
				    json_str(m.error, "message"));
		else
			ask_answered(a, m.result);
	} else if (s->noise > NOISE_MAX && s->link) {
		server_down(s, AVA_EPROTO,
			    noise == NOISE_GARBAGE
				    ? "it writes what is no message of MCP"
				    : "it does not stop writing what nobody asked for");
	}
	rpc_fini(&m);
}

/* A restarted server has forgotten the session and done nothing: the first refusal greets it again,
 * and a refused call waits for that as for a start, once. */
static bool renew_session(struct mcp_ask *a)
{
	struct server *s = a->server;
	bool call = a->kind == ASK_CALL, first = a->session == s->sessions;

	if (!s->older || (call ? a->again : a->kind != ASK_LIST || s->renewed) ||
	    (first && !mcp_link_forget(s->link)))
		return false;
	a->again = call;
	a->id = call ? 0 : a->id;
	if (!first) {
		if (s->state == SERVER_READY)
			send_call(a);
		return true;
	}
	drop_asks(s, ASK_CALL);
	s->sessions++;
	s->renewed = true;
	s->shown.version = "";
	s->state = SERVER_STARTING;
	os_timer_set(s->timer, s->conf->start_ms);
	greet(s);
	return true;
}

/* Over HTTP: no answer (`status` <= 0), or an error status, whose body may say more. */
static void on_failed(int64_t id, int status, const char *body, size_t len, const char *why,
		      void *user)
{
	struct server *s = user;
	struct mcp_ask *a = find_ask(s, id);
	struct rpc m = {0};
	char said[60];

	if (!a || (status == 404 && renew_session(a)))
		return;
	if (status > 0) /* a status counts more than unreadable output */
		s->wrote[0] = '\0';
	if (a->kind == ASK_LISTEN) { /* the server reports no changes (any more) */
		s->stale = s->stale || status <= 0;
		mcp_ask_over(a);
	} else if (status <= 0 && a->kind == ASK_CALL) {
		call_cut(a, status != MCP_NOT_SENT, why);
	} else if (status <= 0 && a->kind == ASK_PROBE && s->older) {
		mcp_ask_over(a); /* the answer to the greeting counts */
	} else if (a->kind == ASK_GREETED && status >= 0 && status < 400) {
		begin_listing(s);
	} else if (status <= 0) {
		server_down(s, AVA_ECONNECT, "%s%s",
			    s->wrote[0] ? "it wrote what could not be read: " : "",
			    s->wrote[0] ? s->wrote : why);
	} else if ((status == 401 || status == 403) && a->kind != ASK_CALL) {
		server_down(s, AVA_EDENIED,
			    "it does not let ava in (status %d): look at its headers in mcp.json",
			    status);
	} else if (rpc_read(&m, body, len, NULL) == 0 && m.error) {
		ask_refused(a, json_get_int(m.error, "code", 0), json_str(m.error, "message"));
	} else if (status == 404 && a->kind != ASK_PROBE && !a->again) {
		server_down(s, AVA_EIO, "no server at its url knows ava (status 404)");
	} else {
		snprintf(said, sizeof(said), "it answers with status %d", status);
		ask_refused(a, 0, said);
	}
	rpc_fini(&m);
}

static void on_ended(const char *why, void *user)
{
	struct server *s = user;

	if (s->state != SERVER_STARTING || !first_ask(s, ASK_PROBE, true)) {
		server_down(s, AVA_EIO, "%s", why);
		return;
	}
	s->older = true; /* some servers end at an unknown request: send no probe */
	server_start(s);
}

/* Start or restart; calls that the server has not received wait on. */
static void server_start(struct server *s)
{
	struct mcp_client *m = s->mcp;
	struct mcp_link_options how = {.loop = m->loop,
				       .conf = s->conf,
				       .keep_out = m->keep_out,
				       .root = m->root,
				       .least_mb = m->least_mb,
				       .client = m->client,
				       .message = on_message,
				       .failed = on_failed,
				       .ended = on_ended,
				       .user = s,
				       .alive = &m->alive};
	struct ava_error err = {0};

	drop_asks(s, ASK_CALL);
	mcp_link_close(s->link);
	s->link = NULL;
	s->noise = 0;
	s->late = 0;
	s->lists = 0;
	s->tells = s->stale = s->renewed = false;
	s->shown.version = "";
	if (s->conf->broken)
		err_set(&err, AVA_EIO, "%s", s->conf->broken);
	else
		s->link = mcp_link_open(&how, &err);
	if (!s->link) {
		server_down(s, err.code, "%s", err.text);
		return;
	}
	s->state = SERVER_STARTING;
	os_timer_set(s->timer, s->older ? s->conf->start_ms : s->conf->start_ms / PROBE_PART);
	if (s->older)
		greet(s);
	else
		mcp_ask(s, ASK_PROBE, "server/discover", json_object());
}

/* ---- as a tool */

static struct server *server_of(const struct mcp_client *m, const char *full)
{
	const char *name = strncmp(full, TOOL_MCP_PREFIX, 5) == 0 ? full + 5 : "";
	const char *end = strstr(name, "__");
	size_t len = end ? (size_t)(end - name) : strlen(name);

	if (m && m->confs.broken && *name)
		return m->servers;
	for (size_t i = 0; m && i < m->n; i++) {
		const char *is = name_of(&m->servers[i]);

		if (strlen(is) == len && strncmp(is, name, len) == 0)
			return &m->servers[i];
	}
	return NULL;
}

static void call_late(void *user)
{
	struct mcp_ask *a = user;
	struct server *s = a->server;

	if (a->id == 0) {
		call_cut(a, false, "it takes longer to start than a call may");
		return;
	}
	/* No output since an earlier timeout, though asked again: the next use restarts it. */
	if (s->conf->argv && s->late && a->id > s->late) {
		server_down(s, AVA_EIO, "it does not answer any more");
		return;
	}
	s->late = s->late ? s->late : s->ids;
	mcp_cancel_call(s, a);
	call_fails(a->call, "timeout",
		   "the MCP server %s did not answer within %d s%s%.200s: it may have happened; "
		   "ask for less, or go on without it",
		   name_of(s), s->conf->call_ms / 1000,
		   s->wrote[0] ? ", but wrote what could not be read, " : "", s->wrote);
}

static void mcp_start(struct tool_call *c)
{
	struct server *s = server_of(c->env->mcp, c->tool->name);
	struct mcp_ask *a = s ? ask_new(s, ASK_CALL) : NULL;

	if (a && !(a->timer = os_timer_new(s->mcp->loop, call_late, a))) {
		mcp_ask_over(a);
		a = NULL;
	}
	if (!a) {
		call_fails(c, s ? "io" : "unknown_tool",
			   s ? "%s cannot be asked now"
			     : "%s is not there any more: go on without it",
			   c->tool->name);
		return;
	}
	a->call = c;
	c->work = a;
	os_timer_set(a->timer, s->conf->call_ms);
	use(s);
	if (s->state == SERVER_READY)
		send_call(a);
}

static void mcp_call_stop(struct tool_call *c)
{
	struct mcp_ask *a = c->work;
	struct server *s = a->server;
	bool began = a->id != 0;

	mcp_cancel_call(s, a);
	call_fails(c, "cancelled", "cancelled");
	/* A process may go on with the cancelled call, so it is ended unless others use it. */
	if (!began || !s->conf->argv || first_ask(s, ASK_CALL, true))
		return;
	if (s->state == SERVER_READY)
		server_down(s, 0, "%s", "");
	else if (!s->mcp->quiet)
		server_start(s); /* waits for the server's list go on */
}

/* ---- waits for servers */

uint32_t mcp_client_wanted(const struct mcp_client *m, const char *wish)
{
	const struct server *s = server_of(m, wish);

	return s ? bit_of(s) : 0;
}

int mcp_client_ready(struct mcp_client *m, uint32_t servers, mcp_client_ready_fn done, void *user,
		     struct ava_error *err)
{
	struct mcp_wait *w;

	if (m->nwaits == WAITS_MAX || m->quiet)
		return err_set(err, AVA_EBUSY, "%s",
			       m->quiet ? "ava stops"
					: "too many requests wait for MCP servers: ask again");
	w = calloc(1, sizeof(*w));
	if (!w)
		return err_set(err, AVA_ENOMEM, "out of memory");
	*w = (struct mcp_wait){.servers = servers, .done = done, .user = user};
	list_add(&m->waits, &w->node);
	m->nwaits++;
	os_post(m->loop, &m->begin);
	return 0;
}

/* From the loop, so that no callback comes from inside mcp_client_ready. */
static void begin_wanted(struct os_task *t)
{
	struct mcp_client *m = CONTAINER_OF(t, struct mcp_client, begin);
	uint32_t wanted = 0;

	LIST_EACH (&m->waits, n, tmp)
		wanted |= LIST_ENTRY(n, struct mcp_wait, node)->servers;
	for (struct server *s = m->servers; s < m->servers + m->n; s++) {
		if (!(wanted & bit_of(s)))
			continue;
		use(s);
		if (s->state == SERVER_READY)
			settle_waits(s, 0);
	}
}

const struct mcp_server_state *mcp_client_look(const struct mcp_client *m, size_t i)
{
	return m && i < m->n ? &m->servers[i].shown : NULL;
}

/* ---- life */

int mcp_client_new(struct mcp_client **out, struct os_loop *loop, const char *path,
		   const char *root, struct redact *redact, struct ava_error *err)
{
	struct mcp_client *m = calloc(1, sizeof(*m));
	char folder[PATH_MAX];
	int rv;

	if (!m)
		return err_set(err, AVA_ENOMEM, "out of memory");
	m->loop = loop;
	m->redact = redact;
	list_init(&m->waits);
	os_task_init(&m->begin, begin_wanted);
	rv = mcp_confs_read(&m->confs, path, redact, err);
	if (rv != 0 || m->confs.n == 0)
		goto end;
	snprintf(folder, sizeof(folder), "%s", path);
	m->config = realpath(dirname(folder), NULL);
	m->root = realpath(root, NULL);
	m->keep_out[0] = m->root ? m->root : m->config;
	m->keep_out[1] = m->root ? m->config : NULL;
	m->client = http_client_new(loop, err);
	m->servers = calloc(m->confs.n, sizeof(*m->servers));
	if (!m->client || !m->servers)
		rv = err_set(err, AVA_ENOMEM, "out of memory");
	for (; rv == 0 && m->n < m->confs.n; m->n++) {
		struct server *s = &m->servers[m->n];

		s->mcp = m;
		s->conf = &m->confs.v[m->n];
		s->shown = (struct mcp_server_state){.name = name_of(s),
						     .how = s->conf->argv ? "stdio" : "http",
						     .version = "",
						     .why = s->why};
		if (s->conf->broken)
			snprintf(s->why, sizeof(s->why), "%s", s->conf->broken);
		list_init(&s->asks);
		s->timer = os_timer_new(loop, time_over, s);
		if (!s->timer)
			rv = err_set(err, AVA_ENOMEM, "out of memory");
	}
end:
	if (m->n > 0 && rv == 0)
		*out = m;
	else
		mcp_client_free(m);
	return rv;
}

void mcp_client_keep_free(struct mcp_client *m, uint64_t mb)
{
	if (m)
		m->least_mb = mb;
}

void mcp_client_quiesce(struct mcp_client *m)
{
	struct ava_error err;

	if (!m)
		return;
	m->quiet = true;
	err_set(&err, AVA_EBUSY, "ava stops");
	while (!list_empty(&m->waits))
		mcp_wait_over(m, LIST_FIRST(&m->waits, struct mcp_wait, node), AVA_EBUSY, &err);
}

void mcp_client_free(struct mcp_client *m)
{
	if (!m)
		return;
	mcp_client_quiesce(m);
	for (size_t i = 0; i < m->n; i++)
		if (m->servers[i].state != SERVER_DOWN)
			server_down(&m->servers[i], 0, "%s", "");
	while (m->alive > 0 || m->begin.queued)
		os_loop_step(m->loop, 50);
	for (size_t i = 0; i < m->n; i++) {
		mcp_rows_free(&m->servers[i].tools);
		os_timer_free(m->servers[i].timer);
	}
	free(m->servers);
	http_client_free(m->client);
	arena_fini(&m->confs.mem);
	free(m->root);
	free(m->config);
	free(m);
}

const struct tool tool_mcp = {
	.flags = TOOL_UNTRUSTED | TOOL_MCP,
	.start = mcp_start,
	.stop = mcp_call_stop,
};
