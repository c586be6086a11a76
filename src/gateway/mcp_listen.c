/* subscriptions/listen, and resources/subscribe of before (mcp_call.h): an open stream that tells
 * which runs and logs have changed. Changes are not queued: several of a
 * resource, while the client was slow, are told once. Before 2026-07-28 each resource has a stream
 * of its own, the answer of its request, so that the two differ only in the shape of messages.
 *
 * Happy path: a cursor over the journal wakes it, and a timer later it reads what has come, marks
 * what each event changes and writes one notification for each mark, so that a thousand lines of a
 * log in one second are a few notifications. What can fail: the filter is not one; memory; the
 * files cannot be read (the stream breaks off, and the client comes again); the client hangs up. */
#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/ops.h"
#include "ava/state.h"
#include "base/error.h"
#include "base/util.h"
#include "event/event.h"
#include "gateway/mcp_call.h"
#include "net/http_server.h"
#include "os/loop.h"

#define WATCHED_MAX 64
#define GATHER_MS   200 /* to gather changes before they are told; the feed holds much more */

struct listen {
	struct mcp_call *call;
	struct op_cursor *cursor;
	struct os_timer *timer;
	bool armed;
	unsigned n;
	struct watched {
		const char *uri; /* borrowed from the call's message; "": the list of resources */
		bool changed;
	} watched[WATCHED_MAX + 1];
};

void mcp_listen_free(struct listen *l)
{
	if (!l)
		return;
	os_timer_free(l->timer);
	if (l->cursor)
		ops_events_close(l->cursor);
	free(l);
}

/* ---- what is told */

/* `params` is *taken*. */
static void notify(const struct listen *l, const char *method, json_t *params)
{
	if (l->call->modern)
		json_object_set_new(params, "_meta",
				    json_pack("{s:O}", MCP_META "subscriptionId", l->call->m.id));
	mcp_stream_write(l->call, rpc_request(0, method, params));
}

/* ---- what changed */

static void mcp_listen_mark(struct listen *l, const struct op_event *e)
{
	struct event_view v;
	char run[64];
	bool ends, begins;
	size_t n;

	if (event_view(e->line, e->line_len, &v) != 0)
		return;
	snprintf(run, sizeof(run), "ava://run/%.*s", (int)MIN(v.agent_id.len, 23), v.agent_id.s);
	n = strlen(run);
	begins = v.kind == EVENT_SubagentSpawn;
	ends = v.kind == EVENT_SubagentComplete;
	for (unsigned i = 0; i < l->n; i++) {
		struct watched *s = &l->watched[i];
		/* The part behind the run's address; "": all of the run, or, of an empty address,
		 * the list. */
		const char *part = strncmp(s->uri, run, n) == 0 ? s->uri + n : s->uri;

		if (strcmp(part, "ava://runs") == 0 || strcmp(part, "/log") == 0 ||
		    (part[0] ? strcmp(part, "/result") == 0 && ends
			     : part != s->uri || begins || ends))
			s->changed = true;
	}
}

/* The cursor has more, or the client was slow. */
static void tell_soon(void *user)
{
	struct listen *l = user;

	if (!l->armed)
		os_timer_set(l->timer, GATHER_MS);
	l->armed = true;
}

static void mcp_listen_tell(void *user)
{
	struct listen *l = user;
	struct op_event e;
	int rv;

	l->armed = false;
	while ((rv = ops_events_next(l->cursor, &e)) == 1)
		mcp_listen_mark(l, &e);
	if (rv == -2) {
		http_stream_abort(l->call->stream); /* frees the call; the client comes again */
		return;
	}
	for (unsigned i = 0; i < l->n; i++) {
		struct watched *s = &l->watched[i];

		if (!s->changed)
			continue;
		if (http_stream_waiting(l->call->stream) >= HTTP_STREAM_HIGH) {
			tell_soon(l);
			return;
		}
		s->changed = false;
		if (s->uri[0])
			notify(l, "notifications/resources/updated",
			       json_pack("{s:s}", "uri", s->uri));
		else
			notify(l, "notifications/resources/list_changed", json_object());
	}
}

/* ---- */

static int mcp_listen_watch(struct listen *l, const json_t *address, struct ava_error *err)
{
	const char *uri = json_is_string(address) ? json_string_value(address) : "";
	struct mcp_verb v;
	int rv;

	if (l->n == WATCHED_MAX)
		return err_set(err, AVA_EINVAL,
			       "at most %d resources are listened to at once: leave some out",
			       WATCHED_MAX);
	rv = mcp_resource_verb(uri, &v, err);
	if (rv != 0)
		return rv;
	json_decref(v.args);
	l->watched[l->n++].uri = uri;
	return 0;
}

static int read_filter(struct listen *l, const json_t *params, struct ava_error *err)
{
	const json_t *filter = json_object_get(params, "notifications"), *uri;
	size_t i;
	int rv = 0;

	if (!l->call->modern)
		return mcp_listen_watch(l, json_object_get(params, "uri"), err);
	if (!json_is_object(filter))
		return err_set(err, AVA_EINVAL, "params.notifications says what to listen to");
	json_array_foreach(json_object_get(filter, "resourceSubscriptions"), i, uri)
	{
		rv = rv == 0 ? mcp_listen_watch(l, uri, err) : rv;
	}
	if (json_get_bool(filter, "resourcesListChanged", false))
		l->watched[l->n++].uri = "";
	return rv;
}

static int listen_new(struct mcp_call *c, struct ava_error *err)
{
	struct listen *l = calloc(1, sizeof(*l));
	int rv;

	c->listen = l;
	if (!l)
		return err_set(err, AVA_ENOMEM, "out of memory");
	l->call = c;
	rv = read_filter(l, c->m.params, err);
	if (rv == 0 && !c->modern && !mcp_stream_has_place(c))
		rv = err_set(err, AVA_EINVAL,
			     "a client subscribes to at most %d resources at once, all to %d: "
			     "unsubscribe from some",
			     MCP_STREAMS_OWN, MCP_STREAMS_MAX);
	if (rv != 0)
		return rv;
	l->timer = os_timer_new(c->mcp->core->loop, mcp_listen_tell, l);
	if (!l->timer)
		return err_set(err, AVA_ENOMEM, "out of memory");
	l->cursor = ops_events_open(c->mcp->core, NULL, UINT64_MAX, tell_soon, l, err);
	return l->cursor ? 0 : err->code;
}

/* End the client's subscriptions to the address in the message. */
static void unsubscribe(const struct mcp_call *c)
{
	const char *uri = json_str(c->m.params, "uri");

	LIST_EACH (&c->mcp->open, n, tmp) {
		struct mcp_call *o = LIST_ENTRY(n, struct mcp_call, node);

		if (!o->listen || o->modern || strcmp(o->session, c->session) != 0 ||
		    strcmp(o->listen->watched[0].uri, uri) != 0)
			continue;
		http_stream_end(o->stream);
		mcp_call_free(o);
	}
}

void mcp_unsubscribe(struct mcp_call *c)
{
	unsubscribe(c);
	mcp_call_answer(c, json_object());
}

/* `again`: the client has had its acknowledgement from a process before this one, and may have
 * missed things: everything it listens to counts as changed. */
void mcp_listen(struct mcp_call *c)
{
	const json_t *filter = json_object_get(c->m.params, "notifications");
	json_t *uris = json_object_get(filter, "resourceSubscriptions");
	bool list = json_get_bool(filter, "resourcesListChanged", false);
	bool again = mcp_call_query(c, "again") != NULL;
	struct ava_error err = {0};
	struct listen *l;

	if (!c->modern)
		unsubscribe(c); /* a second subscription replaces the first */
	if (listen_new(c, &err) != 0) {
		mcp_call_fail(c, &err);
		return;
	}
	l = c->listen;
	if (!mcp_stream_begin(c))
		return;
	if (!again && c->modern) /* the part of the filter that is served; read_filter checked it */
		notify(l, "notifications/subscriptions/acknowledged",
		       json_pack("{s:{s:o*,s:O*}}", "notifications", "resourcesListChanged",
				 list ? json_true() : NULL, "resourceSubscriptions",
				 json_array_size(uris) > 0 ? uris : NULL));
	else if (!again)
		mcp_stream_write(c, rpc_result(c->m.id, json_object()));
	for (unsigned i = 0; i < l->n; i++)
		l->watched[i].changed = again;
	tell_soon(l);
}
