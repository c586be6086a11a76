/* Event cursors, callbacks, waits for many runs.
 *
 * A cursor gives lines as they stand in the log, with the fields of their head. A watch is a
 * cursor that is read in ava_runtime_process, so many events a look that one busy watch does
 * not starve the others or the program. A callback may take any watch away, its own too: a watch
 * that is taken away is only marked while callbacks are under way and freed behind the last one.
 *
 * A wait is a cursor on everything from now on, then one look at each run, then the ends as
 * they come. So no end falls between the look and the wait, and a thousand runs cost one
 * stream. When the stream broke, runs still missing are looked at again.
 *
 * What can fail: memory; the backend's reasons, after which a cursor goes on where it was. An
 * error of a watch's cursor ends the look and is the caller's; the watch stays. */
#include <stdlib.h>
#include <string.h>

#include "api/runtime.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/strmap.h"
#include "codec/json.h"
#include "event/event.h"
#include "event/item.h"

#define LOOK_MAX  256
#define WAIT_MOST 100000

struct ava_events {
	struct list node; /* in ava_runtime.events; a watch's cursor is in no list */
	struct ava_runtime *rt;
	struct backend_cursor *cur;
	struct api_answer strings; /* strings of the event that was given */
};

/* ---- cursors */

/* A JSON string's body, which is nearly always the string itself. */
static const char *events_plain(struct api_answer *a, const char *s, size_t len)
{
	const char *text;
	struct buf b;
	json_t *v;

	if (len == 0 || !memchr(s, '\\', len))
		return len ? answer_strn(a, s, len) : "";
	buf_init(&b, len + 2);
	buf_addc(&b, '"');
	buf_add(&b, s, len);
	buf_addc(&b, '"');
	v = buf_check(&b) == 0 ? json_parse(b.data, b.len, NULL) : NULL;
	text = answer_str(a, json_string_value(v));
	json_decref(v);
	buf_fini(&b);
	return text;
}

static int events_fill(struct ava_events *e, const struct backend_item *item, struct ava_event *out,
		       struct event_view *v, struct ava_error *err)
{
	struct api_answer *a = &e->strings;
	int rv = event_view(item->line, item->len, v);

	if (rv != 0)
		return err_set(err, rv, "a line of the log is no event");
	answer_reset(a);
	*out = (struct ava_event){
		.lsn = v->lsn,
		.seq = v->seq,
		.time_ms = v->wall_ms,
		.type = events_plain(a, v->type.s, v->type.len),
		.agent = events_plain(a, v->agent_id.s, v->agent_id.len),
		.session = events_plain(a, v->session_id.s, v->session_id.len),
		.trace = events_plain(a, v->trace_id.s, v->trace_id.len),
		.user = events_plain(a, v->user_id.s, v->user_id.len),
		.json = item->line,
		.len = item->len,
	};
	return answer_check(a, err);
}

static int open_cursor(struct ava_events *e, struct ava_runtime *rt,
		       const struct ava_events_query *query, struct ava_error *err)
{
	const struct ava_events_query all = {0}, *q = query ? query : &all;
	int rv = 0;

	if (q->run && q->session)
		return err_set(err, AVA_EINVAL, "a run or a session, not both");
	if (q->run)
		rv = runtime_id("run", q->run, err);
	if (q->session)
		rv = runtime_id("session", q->session, err);
	if (rv == 0 && q->session && strlen(q->session) >= sizeof(struct ava_session_id))
		rv = err_set(err, AVA_ENOENT, "there is no session of that name");
	if (rv == 0)
		rv = rt->b->ops->cursor_open(rt->b, q, &e->cur, err);
	e->rt = rt;
	list_init(&e->node);
	answer_init(&e->strings);
	return rv;
}

static void close_cursor(struct ava_events *e)
{
	e->rt->b->ops->cursor_close(e->cur);
	list_del(&e->node);
	answer_fini(&e->strings);
}

int ava_events_open(struct ava_runtime *rt, const struct ava_events_query *query,
		    struct ava_events **out, struct ava_error *err)
{
	struct ava_events *e = calloc(1, sizeof(*e));
	struct ava_error own;
	int rv;

	runtime_begin(rt, &err, &own);
	*out = NULL;
	rv = e ? open_cursor(e, rt, query, err) : err_set(err, AVA_ENOMEM, "out of memory");
	if (rv != 0) {
		free(e);
		return rv;
	}
	list_add(&rt->events, &e->node);
	*out = e;
	return 0;
}

int ava_events_next(struct ava_events *e, struct ava_event *event, struct ava_error *err)
{
	struct backend_item item;
	struct event_view v;
	struct ava_error own;
	int rv;

	err = runtime_error(err, &own);
	do
		rv = e->rt->b->ops->cursor_next(e->cur, &item, err);
	while (rv == 1 && item.is_text); /* texts are for callbacks */
	if (rv == 1 && events_fill(e, &item, event, &v, err) != 0)
		rv = err->code;
	return rv;
}

int ava_events_ended(struct ava_events *e)
{
	return e->rt->b->ops->cursor_ended(e->cur);
}

int ava_events_wait(struct ava_events *e, int timeout_ms, struct ava_error *err)
{
	struct ava_error own;

	err = runtime_error(err, &own);
	return e->rt->b->ops->cursor_wait(e->cur, timeout_ms < 0 ? -1 : timeout_ms, err);
}

void ava_events_close(struct ava_events *e)
{
	if (!e)
		return;
	close_cursor(e);
	free(e);
}

/* Secrets were taken out of the line when it was written. */
int ava_item(struct ava_runtime *rt, const struct ava_event *event, struct ava_line *line,
	     struct ava_error *err)
{
	struct buf *json = &rt->answer.rows;
	struct ava_error own;
	struct item item;
	int rv;

	runtime_begin(rt, &err, &own);
	rv = item_make(&item, json, event->json, event->len, ITEM_TEXT_CHARS, NULL);
	if (rv == AVA_ENOENT)
		return 0;
	if (rv != 0)
		return err_set(err, rv, "out of memory for an Item");
	*line = (struct ava_line){.text = json->data, .len = json->len};
	return 1;
}

/* ---- callbacks */

struct ava_watch {
	struct ava_events e;
	struct list node;
	struct ava_callbacks calls;
	void *user;
	bool gone; /* the watch was closed while its callbacks ran */
};

static void events_watch_free(struct ava_watch *w)
{
	close_cursor(&w->e);
	list_del(&w->node);
	free(w);
}

int ava_watch(struct ava_runtime *rt, const struct ava_events_query *query,
	      const struct ava_callbacks *callbacks, void *user, struct ava_watch **out,
	      struct ava_error *err)
{
	struct ava_watch *w = calloc(1, sizeof(*w));
	struct ava_error own;
	int rv;

	runtime_begin(rt, &err, &own);
	if (out)
		*out = NULL;
	rv = w ? open_cursor(&w->e, rt, query, err) : err_set(err, AVA_ENOMEM, "out of memory");
	if (rv != 0) {
		free(w);
		return rv;
	}
	w->calls = *callbacks;
	w->user = user;
	list_add(&rt->watches, &w->node);
	if (out)
		*out = w;
	return 0;
}

void ava_unwatch(struct ava_watch *w)
{
	if (w && w->e.rt->in_process)
		w->gone = true;
	else if (w)
		events_watch_free(w);
}

void events_close_all(struct ava_runtime *rt)
{
	while (!list_empty(&rt->events))
		ava_events_close(LIST_FIRST(&rt->events, struct ava_events, node));
	while (!list_empty(&rt->watches))
		events_watch_free(LIST_FIRST(&rt->watches, struct ava_watch, node));
}

static int call_typed(struct ava_watch *w, const struct ava_event *e, const struct event_view *v,
		      struct ava_error *err)
{
	const struct ava_callbacks *calls = &w->calls;
	const char *run;
	struct buf args;
	json_t *o;

	if (!((v->kind == EVENT_SubagentSpawn && calls->start) ||
	      (v->kind == EVENT_Activity && calls->activity) ||
	      (v->kind == EVENT_ToolCall && calls->tool_call) ||
	      (v->kind == EVENT_SubagentComplete && calls->complete)))
		return 0;
	o = json_parse(v->content.s, v->content.len, err);
	if (!o)
		return err_set(err, AVA_ENOMEM, "an event could not be read");
	run = json_get_str(o, "subagentId");
	run = run ? run : e->agent;
	buf_init(&args, 16u << 20);
	if (v->kind == EVENT_ToolCall && json_object_get(o, "args"))
		json_dump(&args, json_object_get(o, "args"));
	if (v->kind == EVENT_SubagentSpawn)
		calls->start(run, e, w->user);
	else if (v->kind == EVENT_Activity)
		calls->activity(e->agent, json_str(o, "text"), e, w->user);
	else if (v->kind == EVENT_SubagentComplete)
		calls->complete(run, shape_status(json_get_str(o, "status")),
				json_str(o, "summary"), e, w->user);
	else
		calls->tool_call(e->agent, json_str(o, "name"),
				 buf_check(&args) == 0 && args.len ? args.data : "null", e,
				 w->user);
	buf_fini(&args);
	json_decref(o);
	return 0;
}

/* Returns the number of callbacks called, or an error. */
static int events_call(struct ava_watch *w, const struct backend_item *item, struct ava_error *err)
{
	struct event_view v;
	struct ava_event e;
	int rv;

	if (item->is_text) {
		if (w->calls.text)
			w->calls.text(&item->text, w->user);
		return w->calls.text != NULL;
	}
	rv = events_fill(&w->e, item, &e, &v, err);
	if (rv != 0)
		return rv;
	if (w->calls.event)
		w->calls.event(&e, w->user);
	if (!w->gone)
		rv = call_typed(w, &e, &v, err);
	return rv == 0 ? 1 : rv;
}

static int events_look(struct ava_watch *w, struct ava_error *err)
{
	struct backend_item item;
	int rv = 0, called = 0;

	for (int i = 0; i < LOOK_MAX && !w->gone; i++) {
		rv = w->e.rt->b->ops->cursor_next(w->e.cur, &item, err);
		if (rv <= 0)
			return rv < 0 ? rv : called;
		rv = events_call(w, &item, err);
		if (rv < 0)
			return rv;
		called += rv;
	}
	w->e.rt->more = true;
	return called;
}

int watch_dispatch(struct ava_runtime *rt, struct ava_error *err)
{
	int called = 0, failed = 0;

	LIST_EACH (&rt->watches, node, tmp) {
		struct ava_watch *w = LIST_ENTRY(node, struct ava_watch, node);
		int rv = w->gone ? 0 : events_look(w, err);

		if (rv < 0)
			failed = rv;
		else
			called += rv;
	}
	LIST_EACH (&rt->watches, node, tmp) {
		struct ava_watch *w = LIST_ENTRY(node, struct ava_watch, node);

		if (w->gone)
			events_watch_free(w);
	}
	return failed ? failed : called;
}

/* ---- waits */

struct events_waiting {
	struct ava_events e;
	struct strmap by_id; /* id -> its place in `mark`; the same id twice has one */
	unsigned char *mark; /* 1: the run has ended */
	const char *const *runs;
	size_t n;
};

static unsigned char *mark_of(const struct events_waiting *w, const char *id)
{
	return strmap_get(&w->by_id, id);
}

static int look_at_all(struct events_waiting *w, struct ava_error *err)
{
	struct ava_run r;
	int rv = 0;

	for (size_t i = 0; i < w->n && rv == 0; i++) {
		unsigned char *mark = mark_of(w, w->runs[i]);

		if (*mark)
			continue;
		rv = ava_status(w->e.rt, w->runs[i], &r, err);
		*mark = rv == 0 && ava_status_ended(r.status);
	}
	return rv;
}

static int take_ends(struct events_waiting *w, struct ava_error *err)
{
	struct backend_item item;
	struct event_view v;
	int rv;

	while ((rv = w->e.rt->b->ops->cursor_next(w->e.cur, &item, err)) == 1) {
		unsigned char *mark;
		json_t *o;

		if (item.is_text || event_view(item.line, item.len, &v) != 0 ||
		    v.kind != EVENT_SubagentComplete)
			continue;
		o = json_parse(v.content.s, v.content.len, NULL);
		mark = mark_of(w, json_str(o, "subagentId"));
		if (mark)
			*mark = 1;
		json_decref(o);
	}
	return rv < 0 ? look_at_all(w, err) : 0;
}

/* Returns the number of runs that have ended, or an error. */
static int wait_more(struct events_waiting *w, enum ava_wait_for what, int64_t timeout_ms,
		     struct ava_error *err)
{
	int64_t end = clock_mono_ms() + timeout_ms, left = timeout_ms;
	int rv = look_at_all(w, err);

	for (;;) {
		size_t ended = 0;

		if (rv == 0)
			rv = take_ends(w, err);
		for (size_t i = 0; i < w->n; i++)
			ended += *mark_of(w, w->runs[i]);
		if (rv != 0 || ended == w->n || (what == AVA_WAIT_ANY && ended > 0))
			return rv != 0 ? rv : (int)ended;
		if (timeout_ms >= 0)
			left = MAX(end - clock_mono_ms(), 0);
		if (left == 0)
			return err_set(err, AVA_ETIMEOUT, "%zu of %zu runs have not ended",
				       w->n - ended, w->n);
		rv = w->e.rt->b->ops->cursor_wait(w->e.cur, (int)MIN(left, 3600000), err);
		rv = rv < 0 ? rv : 0;
	}
}

int ava_wait(struct ava_runtime *rt, const char *const *runs, size_t n, enum ava_wait_for what,
	     int64_t timeout_ms, unsigned char *ended, struct ava_error *err)
{
	const struct ava_events_query now = {.after = AVA_NOW};
	struct events_waiting w = {.runs = runs, .n = n};
	struct ava_error own;
	int rv = 0;

	runtime_begin(rt, &err, &own);
	if (n == 0 || n > WAIT_MOST)
		return err_set(err, AVA_EINVAL, "a wait is for 1 to %d runs", WAIT_MOST);
	w.mark = calloc(n, 1);
	if (!w.mark)
		return err_set(err, AVA_ENOMEM, "out of memory");
	strmap_init(&w.by_id);
	for (size_t i = 0; i < n && rv == 0; i++) {
		rv = runtime_id("run", runs[i], err);
		if (rv == 0 && strmap_put(&w.by_id, runs[i], w.mark + i) == AVA_ENOMEM)
			rv = err_set(err, AVA_ENOMEM, "out of memory");
	}
	if (rv == 0)
		rv = open_cursor(&w.e, rt, &now, err);
	if (rv == 0) {
		rv = wait_more(&w, what, timeout_ms < 0 ? -1 : MIN(timeout_ms, INT64_MAX / 2), err);
		for (size_t i = 0; ended && i < n; i++)
			ended[i] = *mark_of(&w, runs[i]);
		close_cursor(&w.e);
	}
	strmap_fini(&w.by_id);
	free(w.mark);
	return rv;
}
