/* A request becomes the arguments of a verb, its answer the response: JSON, never stored by
 * a cache and never guessed to be something else by a browser.
 *
 * Happy path: the caller is looked up, the row found, the query of a GET or the body of a
 * POST becomes the arguments, and the verb is called with a reply that keeps the request
 * until it is answered, maybe before the call returns; the stream rows start a stream.
 *
 * A kept request has two ends, the peer and the verb; the last one to let go frees it. What can
 * fail: everything a peer can get wrong, each with its status and sentence; memory; the peer hangs
 * up first (the verb goes on, its answer is dropped; a wait for a result is given up). Only the
 * owner of the socket, and root, is served. */
#include "gateway/routes.h"

#include <ava.h>
#include <ctype.h>
#include <limits.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ava/ops.h"
#include "ava/state.h"
#include "ava/verbs.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"
#include "cluster/tail.h"
#include "codec/json.h"
#include "event/event.h"
#include "event/item.h"
#include "gateway/mcp.h"
#include "gateway/metrics.h"
#include "net/http_server.h"
#include "os/loop.h"

#define FIELDS_MAX 4

/* ---- answers */

static void send_json(const struct routes *r, struct http_request *req, int status,
		      const struct buf *body, const char *allow)
{
	struct http_field fields[FIELDS_MAX] = {{"Cache-Control", "no-store"},
						{"X-Content-Type-Options", "nosniff"}};
	struct http_answer a = {.status = status,
				.content_type = "application/json",
				.body = body->data,
				.len = body->len,
				.fields = fields,
				.nfields = 2};

	if (allow)
		fields[a.nfields++] = (struct http_field){"Allow", allow};
	if (r->stopping)
		fields[a.nfields++] = (struct http_field){"Connection", "close"};
	http_reply_with(req, &a);
}

static void send_error(const struct routes *r, struct http_request *req, int status, int code,
		       const char *text, const char *allow)
{
	static char none[] = "{\"error\":{\"code\":\"no_memory\",\"message\":\"out of memory\"}}";
	const struct buf no_memory = {.data = none, .len = sizeof(none) - 1};
	struct buf b;

	buf_init(&b, 1u << 16);
	if (verbs_error(&b, code, text) == 0)
		send_json(r, req, status, &b, allow);
	else
		send_json(r, req, 500, &no_memory, NULL);
	buf_fini(&b);
}

static void routes_refuse(const struct routes *r, struct http_request *req, int code,
			  const char *text)
{
	send_error(r, req, verbs_http_status(code), code, text, NULL);
}

/* A file of a run's making: nothing that a browser would show, under a name that is one. */
static void send_file(struct http_request *req, const struct buf *body)
{
	const char *path = http_query(req, "path"), *name = path ? strrchr(path, '/') : NULL;
	char as[sizeof("attachment; filename=\"\"") + NAME_MAX] = "attachment; filename=\"";
	size_t n = strlen(as);
	struct http_field fields[] = {{"Cache-Control", "no-store"},
				      {"X-Content-Type-Options", "nosniff"},
				      {"Content-Disposition", as}};

	for (name = name ? name + 1 : "file"; *name && n + 2 < sizeof(as); name++, n++) {
		bool plain = isalnum((unsigned char)*name) || strchr("-_", *name);

		as[n] = plain || (*name == '.' && as[n - 1] != '"') ? *name : '_';
	}
	as[n] = '"';
	http_reply_with(req, &(struct http_answer){.status = 200,
						   .content_type = "application/octet-stream",
						   .body = body->data,
						   .len = body->len,
						   .fields = fields,
						   .nfields = ARRAY_LEN(fields)});
}

/* ---- kept requests */

struct kept {
	struct verb_reply reply;
	struct http_request *req; /* NULL: the peer has gone */
	struct routes *routes;
	bool bytes;    /* the answer is a file's bytes */
	bool in_call;  /* the verb has not returned yet */
	bool finished; /* the answer came while in_call */
};

static void kept_done(struct verb_reply *reply, int status, const struct buf *json,
		      const struct ava_error *err)
{
	struct kept *k = CONTAINER_OF(reply, struct kept, reply);

	if (k->req && json && k->bytes)
		send_file(k->req, json);
	else if (k->req && json)
		send_json(k->routes, k->req, status, json, NULL);
	else if (k->req)
		send_error(k->routes, k->req, status, err->code, err->text, NULL);
	k->req = NULL;
	k->finished = true;
	if (!k->in_call)
		free(k);
}

static void kept_gone(struct http_request *req, void *user)
{
	struct kept *k = user;

	k->req = NULL;
	if (!k->reply.give_up)
		return; /* the verb still uses the reply */
	k->reply.give_up(&k->reply);
	free(k);
}

static void routes_call_verb(struct routes *r, struct http_request *req, const struct verb *verb,
			     const struct caller *caller, const char *id, const json_t *args)
{
	struct kept *k = calloc(1, sizeof(*k));

	if (!k) {
		routes_refuse(r, req, AVA_ENOMEM, "out of memory");
		return;
	}
	k->reply.done = kept_done;
	k->req = req;
	k->routes = r;
	k->bytes = verb->bytes;
	k->in_call = true;
	verbs_call(r->core, verb, caller, id, args, &k->reply);
	k->in_call = false;
	if (k->finished)
		free(k);
	else
		http_on_gone(k->req, kept_gone, k);
}

/* ---- requests */

struct routes_query {
	const struct arg *args;
	json_t *into;
	struct ava_error *err;
};

static int take_argument(const char *name, const char *value, void *user)
{
	struct routes_query *q = user;

	return args_query(q->args, name, value, q->into, q->err);
}

static int add_raw(json_t *into, const char *name, const char *value, size_t len,
		   struct ava_error *err)
{
	json_t *text = memchr(value, '\0', len) ? NULL : json_stringn(value, len);

	return text && json_object_set_new(into, name, text) == 0
		       ? 0
		       : err_set(err, AVA_EINVAL, "%s must be UTF-8 without a NUL", name);
}

static int read_raw(struct http_request *req, const struct verb *verb, json_t *into,
		    struct ava_error *err)
{
	int rv = add_raw(into, "body", req->body, req->body_len, err);

	for (const struct arg *a = verb->args; rv == 0 && a->name; a++) {
		const char *value = http_header(req, a->name);

		if (value && !json_object_get(into, a->name))
			rv = add_raw(into, a->name, value, strlen(value), err);
	}
	return rv;
}

/* *args: a new reference, or NULL when nothing was said. */
static int read_request(struct http_request *req, const struct verb *verb, json_t **args,
			struct ava_error *err)
{
	bool post = strcmp(verb->method, "POST") == 0;
	static const struct arg raw[] = {{"token", ARG_SAID}, {NULL}};
	struct routes_query q = {verb->raw ? raw : post ? NULL : verb->args, json_object(), err};
	json_t *said = NULL;
	int rv = q.into ? http_query_each(req, take_argument, &q)
			: err_set(err, AVA_ENOMEM, "out of memory");

	if (rv == 0 && !post && req->body_len > 0)
		rv = err_set(err, AVA_EINVAL, "a %s request takes no body", req->method);
	if (rv == 0 && verb->raw)
		rv = read_raw(req, verb, q.into, err);
	if (rv == 0 && (!post || verb->raw))
		said = json_incref(q.into);
	else if (rv == 0 && req->body_len > 0) {
		said = json_parse(req->body, req->body_len, err);
		rv = said ? 0 : err_wrap(err, AVA_EINVAL, "the body is not valid JSON");
	}
	json_decref(q.into);
	if (rv == 0)
		*args = said;
	return rv;
}

/* ---- streams
 *
 * A stream is a cursor and a connection. It is pumped when the cursor wakes or
 * the connection has drained; a slow client holds no memory but what its
 * socket and one short queue take, and catches up from the files.
 *
 * After a run's last event the stream ends. When the daemon stops before, the
 * connection breaks off instead, which tells the client to come again with
 * the last id it saw. */

struct event_stream {
	struct routes *routes;
	struct list node; /* in routes->open */
	unsigned door;
	struct os_loop *loop;
	struct op_cursor *cursor;
	struct http_stream *http; /* NULL: the answer has not started */
	struct os_task pump;
	struct os_timer *again; /* pumps in the next turn of the loop */
	bool full;              /* the stream waits for `drained` */
	struct op_watch *watch; /* frames of a conversation, a run, or agents; NULL: none */
	bool agents;            /* send frames of agents, too */
	bool missed;            /* frames of agents were not sent for want of room */
	enum verbs_items items; /* Items beside the events, or alone */
	const char *turn;       /* a turn's state that waits for room, or for events; NULL: none */
	char session[64];
	char run[24]; /* frames of this run are wanted, behind the events until now; "": none */
	struct tailing *tail; /* of other machines; NULL: none */
	bool others_only;
	uint64_t last; /* lsn of the newest event of this machine */
};

static void event_stream_free(struct event_stream *s)
{
	if (s->http)
		s->routes->streams--;
	list_del(&s->node);
	os_defer_cancel(s->loop, &s->pump);
	os_timer_free(s->again);
	if (s->cursor)
		ops_events_close(s->cursor);
	tail_close(s->tail);
	if (s->watch)
		ops_unwatch(s->watch);
	free(s);
}

/* Ends the message and sends it, as http_stream_write; the text is freed. */
static int stream_put(struct event_stream *s, struct buf *b)
{
	int rv;

	buf_adds(b, "\n\n");
	rv = buf_check(b);
	if (rv == 0)
		rv = http_stream_write(s->http, b->data, b->len);
	buf_fini(b);
	return rv;
}

static void stream_add_frame(const struct event_stream *s, struct buf *b, uint64_t lsn,
			     const char *type, size_t type_len, const char *data, size_t len)
{
	buf_addf(b, "id: %llu", (unsigned long long)lsn);
	if (s->tail)
		tail_place(s->tail, b);
	buf_adds(b, "\nevent: ");
	buf_add(b, type, type_len);
	buf_adds(b, "\ndata: ");
	buf_add(b, data, len);
	buf_adds(b, "\n\n");
}

/* Writes the event, its Item behind it, or that alone: one write, so that a connection that breaks
 * has both or asks for both again. */
static int stream_write_frame(struct event_stream *s, const struct op_event *e)
{
	struct buf b, json;
	struct item it;
	int rv = 0;

	buf_init(&b, 64u << 20);
	buf_init(&json, 32u << 20);
	s->last = MAX(s->last, e->lsn);
	if (s->items != ITEMS_ONLY)
		stream_add_frame(s, &b, s->tail ? s->last : e->lsn, e->type, e->type_len, e->line,
				 e->line_len);
	if (s->items != ITEMS_NONE)
		rv = item_make(&it, &json, e->line, e->line_len, ITEM_TEXT_CHARS,
			       s->routes->core->redact);
	if (s->items != ITEMS_NONE && rv == 0)
		stream_add_frame(s, &b, s->tail ? s->last : e->lsn, "item", 4, json.data, json.len);
	if (rv == AVA_ENOENT)
		rv = 0; /* a person sees nothing of it */
	if (rv == 0)
		rv = buf_check(&b);
	if (rv == 0 && b.len > 0)
		rv = http_stream_write(s->http, b.data, b.len);
	buf_fini(&json);
	buf_fini(&b);
	return rv;
}

/* An event of another machine: a field that readers of streams pass over has its name. */
static int stream_write_other(struct event_stream *s, const struct tail_line *l)
{
	struct event_view v;
	struct buf b;
	int rv;

	if (event_view(l->line, l->len, &v) != 0)
		return 0;
	buf_init(&b, 64u << 20);
	buf_adds(&b, "machine: ");
	for (const char *at = l->machine; *at; at++)
		buf_addc(&b, (unsigned char)*at < ' ' ? '?' : *at);
	buf_addc(&b, '\n');
	stream_add_frame(s, &b, s->last, v.type.s, v.type.len, l->line, l->len);
	rv = buf_check(&b);
	if (rv == 0)
		rv = http_stream_write(s->http, b.data, b.len);
	buf_fini(&b);
	return rv;
}

/* As ops_events_next. */
static int stream_pump_others(struct event_stream *s)
{
	struct tail_line l;
	int rv = 0;

	while (!s->full && (rv = tail_next(s->tail, &l)) == 1) {
		rv = stream_write_other(s, &l);
		if (rv < 0)
			return -2;
		s->full = rv == 1;
		rv = 0;
	}
	return rv;
}

static void stream_send_frame(struct event_stream *s, const struct op_frame *f)
{
	static const char *const names[] = {
		[FRAME_TEXT] = "text", [FRAME_THINKING] = "thinking", [FRAME_TURN] = "turn"};
	struct buf b;
	struct jw w;

	buf_init(&b, 4u << 20);
	buf_addf(&b, "event: %s\ndata: ", names[f->kind]);
	jw_init(&w, &b);
	jw_object(&w, NULL);
	jw_str(&w, f->run ? "runId" : "sessionId", f->run ? f->run : f->session);
	jw_strn(&w, f->kind == FRAME_TURN ? "state" : "text", f->text, f->len);
	jw_end(&w);
	s->full = stream_put(s, &b) == 1;
}

/* A message without a name and an id. Who was behind hears "*": any of them may have changed. */
static void stream_send_agents(struct event_stream *s, const char *session)
{
	struct buf b;
	struct jw w;

	if (s->full) {
		s->missed = true;
		return;
	}
	buf_init(&b, 4096);
	buf_adds(&b, "data: ");
	jw_init(&w, &b);
	jw_object(&w, NULL);
	jw_str(&w, "type", "agent-update");
	jw_str(&w, "sessionId", session);
	jw_end(&w);
	s->full = stream_put(s, &b) == 1;
}

/* Frames are only for show: a client that is behind goes without them. The beginning and end of a
 * turn are sent to it nevertheless, the end behind all events of that turn. */
static void stream_frame(const struct op_frame *f, void *user)
{
	struct event_stream *s = user;
	bool idle = f->kind == FRAME_TURN && strcmp(f->text, "idle") == 0;

	if (s->http && f->kind == FRAME_AGENTS && s->agents)
		stream_send_agents(s, f->session);
	if (!s->http || f->kind == FRAME_AGENTS || (!f->run && strcmp(f->session, s->session) != 0))
		return;
	if (f->kind == FRAME_TURN && (idle || s->turn || s->full)) {
		s->turn = idle ? "idle" : "busy";
		os_defer(s->loop, &s->pump);
	} else if (!s->full) {
		stream_send_frame(s, f);
	}
}

static void stream_pump(struct os_task *t)
{
	struct event_stream *s = CONTAINER_OF(t, struct event_stream, pump);
	struct op_event e;
	int rv = 0;

	while (!s->full && (rv = ops_events_next(s->cursor, &e)) == 1) {
		if (s->others_only || !ops_event_is_of(&e, s->session)) {
			s->last = MAX(s->last, e.lsn);
			continue;
		}
		rv = stream_write_frame(s, &e);
		if (rv < 0) {
			rv = -2;
			break;
		}
		s->full = rv == 1;
	}
	if (rv == 0 && s->tail && !s->full)
		rv = stream_pump_others(s);
	if (rv == 0 && s->turn && !s->full && !ops_events_opening(s->cursor)) {
		stream_send_frame(s, &(struct op_frame){.session = s->session,
							.kind = FRAME_TURN,
							.text = s->turn,
							.len = strlen(s->turn)});
		s->turn = NULL;
	}
	if (rv == 0 && s->run[0] && !s->full && !ops_events_opening(s->cursor)) {
		ops_watch_run(s->watch, s->run);
		s->run[0] = '\0';
	}
	if (rv == 0 && s->missed && !s->full) {
		s->missed = false;
		stream_send_agents(s, "*");
	}
	if (rv == -2) {
		http_stream_abort(s->http); /* calls `gone`; the client comes again */
	} else if (rv == -1) {
		http_stream_end(s->http);
		event_stream_free(s);
	}
}

static void routes_stream_wake(void *user)
{
	struct event_stream *s = user;

	if (s->http)
		os_defer(s->loop, &s->pump);
}

/* A client that reads as fast as we write must not keep the loop in one turn
 * until the whole log is through: go on in the next one. */
static void stream_drained(struct http_stream *st, void *user)
{
	struct event_stream *s = user;

	s->full = false;
	os_timer_set(s->again, 0);
}

static void stream_again(void *user)
{
	struct event_stream *s = user;

	stream_pump(&s->pump);
}

static void routes_stream_gone(struct http_stream *st, void *user)
{
	event_stream_free(user);
}

/* Adds the events of other machines to a stream of all that happens. */
static bool stream_joins(struct event_stream *s, const char *run, const struct verbs_events *e,
			 struct ava_error *err)
{
	struct reader *reader = core_service(s->routes->core)->reader;

	if (!reader || run || e->session[0] || e->items == ITEMS_ONLY ||
	    (e->machines && strcmp(e->machines, "own") == 0))
		return true;
	return tail_open(&s->tail, reader, s->loop, e->behind ? e->behind : "", routes_stream_wake,
			 s, err) == 0;
}

/* Answers `req` with a stream of the events of `run` (NULL: all) with a
 * greater lsn than `after` (UINT64_MAX: from now on). `session` not "": only
 * events of that conversation with their Items, and frames without an id beside them: "text"
 * and "thinking" as Ava speaks, "turn" when she begins and ends. e->text: those of the run's
 * model. On error the
 * request is still the caller's to answer. */
static int events_start(struct routes *r, struct http_request *req, unsigned door, const char *run,
			const struct verbs_events *e, uint64_t after, struct ava_error *err)
{
	static const struct http_field fields[] = {{"Cache-Control", "no-store"},
						   {"X-Content-Type-Options", "nosniff"}};
	const struct http_answer head = {
		.status = 200, .content_type = "text/event-stream", .fields = fields, .nfields = 2};
	struct http_stream_hooks hooks = {
		.drained = stream_drained, .gone = routes_stream_gone, .heartbeat = true};
	struct event_stream *s = calloc(1, sizeof(*s));

	if (!s)
		return err_set(err, AVA_ENOMEM, "out of memory");
	s->routes = r;
	list_init(&s->node);
	s->door = door;
	s->loop = r->core->loop;
	os_task_init(&s->pump, stream_pump);
	s->again = os_timer_new(s->loop, stream_again, s);
	snprintf(s->session, sizeof(s->session), "%s", e->session);
	s->agents = e->agents;
	s->items = e->items;
	if (run && e->text)
		snprintf(s->run, sizeof(s->run), "%.23s", run);
	if (e->session[0] || e->agents || s->run[0])
		s->watch = ops_watch(r->core, stream_frame, s);
	if (s->again && (s->watch || (!e->session[0] && !e->agents && !s->run[0])))
		s->cursor = ops_events_open(r->core, run, after, routes_stream_wake, s, err);
	else
		err_set(err, AVA_ENOMEM, "out of memory");
	s->last = after == UINT64_MAX ? logbook_shown(&r->core->book) : after;
	s->others_only = e->machines && strcmp(e->machines, "only") == 0;
	if (s->cursor && !stream_joins(s, run, e, err)) {
		ops_events_close(s->cursor);
		s->cursor = NULL;
	}
	if (!s->cursor) {
		event_stream_free(s);
		return err->code;
	}
	hooks.user = s;
	s->http = http_stream_start(req, &head, &hooks);
	if (s->http) {
		r->streams++;
		list_add(&r->open, &s->node);
		os_defer(s->loop, &s->pump);
	} else {
		event_stream_free(s); /* the connection is closed already */
	}
	return 0;
}

/* An lsn, and behind a blank the places of other machines. */
static int stream_behind(const char *name, const char *said, struct verbs_events *e,
			 struct ava_error *err)
{
	char *end = NULL;
	unsigned long long n = isdigit((unsigned char)*said) ? strtoull(said, &end, 10) : 0;

	if (!end || (*end && *end != ' ') || n >= INT64_MAX)
		return err_set(err, AVA_EINVAL,
			       "%s is \"%.40s\", it takes the id of an event of the stream", name,
			       said);
	e->after = (int64_t)n;
	e->behind = *end ? end + 1 : "";
	return 0;
}

/* A browser that reconnects asks for the address it began with and adds the field
 * Last-Event-ID: the field is the newer one. */
static void start_stream(struct routes *r, struct http_request *req, unsigned door,
			 const struct verb *verb, const char *id, json_t *args)
{
	static const struct arg field[] = {{"Last-Event-ID", ARG_COUNT, .most = INT64_MAX - 1},
					   {NULL}};
	struct verbs_events e = {.after = -1, .session = ""};
	const char *last = http_header(req, "Last-Event-ID");
	struct ava_error err = {0};
	struct arena mem;
	uint64_t after = id[0] ? 0 : UINT64_MAX;
	int rv = 0;

	arena_init(&mem, 4096);
	if (last && *last && id[0]) {
		rv = args_query(field, "Last-Event-ID", last, args, &err);
		if (rv == 0)
			json_object_set(args, "after", json_object_get(args, "Last-Event-ID"));
		json_object_del(args, "Last-Event-ID");
	}
	if (rv == 0)
		rv = args_read(verb->args, args, &e, &mem, &err);
	if (rv == 0 && last && *last && !id[0])
		rv = stream_behind("Last-Event-ID", last, &e, &err);
	else if (rv == 0 && e.behind)
		rv = stream_behind("after", e.behind, &e, &err);
	if (rv == 0)
		rv = verbs_items(&e, &err);
	if (rv == 0 && strcmp(req->method, "HEAD") == 0)
		http_reply(req, 200, "text/event-stream", "", 0);
	else if (rv == 0)
		rv = events_start(r, req, door, id[0] ? id : NULL, &e,
				  e.after >= 0 ? (uint64_t)e.after : after, &err);
	if (rv != 0)
		routes_refuse(r, req, rv, err.text);
	arena_fini(&mem);
}

static struct caller caller_of(const struct routes *r, const struct http_request *req)
{
	static const char *const channels[] = {"terminal", "libava", "acp"};
	struct caller c = {.user = "", .channel = channels[0], .trust = CALLER_STRANGER};
	const char *says = http_header(req, "Ava-Channel");

	for (size_t i = 0; says && i < ARRAY_LEN(channels); i++)
		if (strcmp(says, channels[i]) == 0)
			c.channel = channels[i];
	for (size_t i = 0; i < ARRAY_LEN(r->owners); i++)
		if (req->has_peer && req->peer_uid == r->owners[i].uid) {
			c.user = r->owners[i].login;
			c.trust = CALLER_OWNER;
		}
	return c;
}

void routes_serve(struct routes *r, struct http_request *req, const struct caller *caller,
		  unsigned door)
{
	struct ava_error err = {0};
	char id[64], allowed[64];
	const struct verb *verb;
	json_t *args = NULL;

	if (strcmp(req->path, "/metrics") == 0 &&
	    (strcmp(req->method, "GET") == 0 || strcmp(req->method, "HEAD") == 0)) {
		metrics_send(r->metrics, req);
		return;
	}
	core_door_asked(r->core, caller->channel);
	verb = verbs_find(req->method, req->path, id, allowed);
	if (!verb && allowed[0])
		send_error(r, req, 405, AVA_EINVAL, "this path does not take this method", allowed);
	else if (!verb)
		routes_refuse(r, req, AVA_ENOENT, "there is no such path; doc/api.yaml lists them");
	else if (read_request(req, verb, &args, &err) != 0)
		routes_refuse(r, req, err.code, err.text);
	else if (verb->call)
		routes_call_verb(r, req, verb, caller, id, args);
	else
		start_stream(r, req, door, verb, id, args);
	json_decref(args);
}

void routes_handle(struct http_request *req, void *user)
{
	struct routes *r = user;
	const struct caller caller = caller_of(r, req);

	if (caller.trust != CALLER_OWNER)
		routes_refuse(r, req, AVA_EDENIED, "this daemon serves its owner only");
	else if (r->mcp && strcmp(req->path, "/mcp") == 0)
		mcp_serve(r->mcp, req, caller.user, false);
	else
		routes_serve(r, req, &caller, 0);
}

void routes_drop(struct routes *r, unsigned door)
{
	LIST_EACH (&r->open, n, tmp) {
		struct event_stream *s = LIST_ENTRY(n, struct event_stream, node);

		if (s->door == door)
			http_stream_abort(s->http); /* calls stream_gone */
	}
}

/* ---- life */

void routes_init(struct routes *r, struct core *core, void (*shutdown)(int now, void *user),
		 void *user)
{
	struct core_service *s = core_service(core);

	*r = (struct routes){.core = core};
	list_init(&r->open);
	s->shutdown = shutdown;
	s->user = user;
	r->owners[1].uid = geteuid();
	for (size_t i = 0; i < ARRAY_LEN(r->owners); i++) {
		const struct passwd *pw = getpwuid(r->owners[i].uid);

		snprintf(r->owners[i].login, sizeof(r->owners[i].login), "%s",
			 pw ? pw->pw_name : "");
	}
}

void routes_stop(struct routes *r)
{
	r->stopping = true;
	verbs_stop(r->core);
}

int routes_open(struct routes *r, const struct config *config, struct redact *redact,
		void (*log)(const char *line, void *user), void *log_user, struct ava_error *err)
{
	int rv = mcp_new(&r->mcp, r->core, &r->streams, err);

	return rv != 0 ? rv
		       : metrics_new(&r->metrics, config, r->core, &r->streams, redact, log,
				     log_user, err);
}

bool routes_scraped(const struct routes *r)
{
	return metrics_listens(r->metrics);
}

void routes_hang_up(struct routes *r)
{
	metrics_free(r->metrics);
	r->metrics = NULL;
}

void routes_close(struct routes *r)
{
	mcp_free(r->mcp);
}
