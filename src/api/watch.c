/* Callbacks: a cursor each, read in ava_runtime_process, so many events a look
 * that one busy watch does not starve the others or the program.
 *
 * A callback may take any watch away, its own too: what is taken away is only
 * marked while callbacks are under way and freed behind the last one. An error
 * of a cursor ends the look and is the caller's; the watch stays and goes on
 * where it was. */
#include <stdlib.h>
#include <string.h>

#include "api/runtime.h"
#include "base/error.h"
#include "codec/json.h"
#include "event/event.h"

#define LOOK_MAX 256

struct ava_watch {
	struct list node;
	struct ava_runtime *rt;
	struct backend_cursor *cur;
	struct answer strings;
	struct ava_callbacks calls;
	void *user;
	bool gone; /* unwatched while callbacks are under way */
};

static void watch_free(struct ava_watch *w)
{
	w->rt->b->ops->cursor_close(w->cur);
	list_del(&w->node);
	answer_fini(&w->strings);
	free(w);
}

int ava_watch(struct ava_runtime *rt, const struct ava_events_query *query,
	      const struct ava_callbacks *callbacks, void *user, struct ava_watch **out,
	      struct ava_error *err)
{
	const struct ava_events_query all = {0}, *q = query ? query : &all;
	struct ava_error own;
	struct ava_watch *w;
	int rv;

	runtime_begin(rt, &err, &own);
	if (out)
		*out = NULL;
	rv = events_check(q, err);
	if (rv != 0)
		return rv;
	w = calloc(1, sizeof(*w));
	if (!w)
		return err_set(err, AVA_ENOMEM, "out of memory");
	rv = rt->b->ops->cursor_open(rt->b, q, &w->cur, err);
	if (rv != 0) {
		free(w);
		return rv;
	}
	w->rt = rt;
	w->calls = *callbacks;
	w->user = user;
	answer_init(&w->strings);
	list_add(&rt->watches, &w->node);
	if (out)
		*out = w;
	return 0;
}

void ava_unwatch(struct ava_watch *w)
{
	if (!w)
		return;
	if (w->rt->in_process)
		w->gone = true;
	else
		watch_free(w);
}

void watch_close_all(struct ava_runtime *rt)
{
	while (!list_empty(&rt->watches))
		watch_free(LIST_FIRST(&rt->watches, struct ava_watch, node));
}

/* ---- one event */

static void call_tool(struct ava_watch *w, const struct ava_event *e, const json_t *o)
{
	struct buf args;
	const json_t *v = json_object_get(o, "args");

	buf_init(&args, 16u << 20);
	if (v)
		json_dump(&args, v);
	w->calls.tool_call(e->agent, json_str(o, "name"),
			   buf_check(&args) == 0 && args.len ? args.data : "null", e, w->user);
	buf_fini(&args);
}

static bool wants(const struct ava_watch *w, int kind)
{
	return (kind == EVENT_SubagentSpawn && w->calls.start) ||
	       (kind == EVENT_Activity && w->calls.activity) ||
	       (kind == EVENT_ToolCall && w->calls.tool_call) ||
	       (kind == EVENT_SubagentComplete && w->calls.complete);
}

static int call_typed(struct ava_watch *w, const struct ava_event *e, struct ava_error *err)
{
	struct event_view v;
	const char *run;
	json_t *o;

	if (event_view(e->json, e->len, &v) != 0 || !wants(w, v.kind))
		return 0;
	o = json_parse(v.content.s, v.content.len, err);
	if (!o)
		return err_set(err, AVA_ENOMEM, "an event could not be read");
	run = json_get_str(o, "subagentId");
	if (!run)
		run = e->agent;
	if (v.kind == EVENT_SubagentSpawn)
		w->calls.start(run, e, w->user);
	else if (v.kind == EVENT_Activity)
		w->calls.activity(e->agent, json_str(o, "text"), e, w->user);
	else if (v.kind == EVENT_ToolCall)
		call_tool(w, e, o);
	else
		w->calls.complete(run, shape_status(json_get_str(o, "status")),
				  json_str(o, "summary"), e, w->user);
	json_decref(o);
	return 0;
}

/* How many callbacks were called: 0 or more; or an error. */
static int call(struct ava_watch *w, const struct backend_item *item, struct ava_error *err)
{
	struct ava_event e;
	int rv;

	if (item->is_text) {
		if (w->calls.text)
			w->calls.text(&item->text, w->user);
		return w->calls.text != NULL;
	}
	rv = events_fill(&w->strings, item->line, item->len, &e, err);
	if (rv != 0)
		return rv;
	if (w->calls.event)
		w->calls.event(&e, w->user);
	if (!w->gone)
		rv = call_typed(w, &e, err);
	return rv == 0 ? 1 : rv;
}

/* ---- all of them */

static int look(struct ava_watch *w, struct ava_error *err)
{
	struct backend_item item;
	int rv = 0, called = 0;

	for (int i = 0; i < LOOK_MAX && !w->gone; i++) {
		rv = w->rt->b->ops->cursor_next(w->cur, &item, err);
		if (rv <= 0)
			return rv < 0 ? rv : called;
		rv = call(w, &item, err);
		if (rv < 0)
			return rv;
		called += rv;
	}
	w->rt->more = true;
	return called;
}

int watch_dispatch(struct ava_runtime *rt, struct ava_error *err)
{
	int called = 0, failed = 0;

	LIST_EACH (&rt->watches, node, tmp) {
		struct ava_watch *w = LIST_ENTRY(node, struct ava_watch, node);
		int rv = w->gone ? 0 : look(w, err);

		if (rv < 0)
			failed = rv;
		else
			called += rv;
	}
	LIST_EACH (&rt->watches, node, tmp) {
		struct ava_watch *w = LIST_ENTRY(node, struct ava_watch, node);

		if (w->gone)
			watch_free(w);
	}
	return failed ? failed : called;
}
