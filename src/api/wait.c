/* Waiting for many runs: a cursor on everything from now on, then one look at
 * each, then the ends as they come. So no end falls between the look and the
 * wait, and a thousand runs cost one stream. When the stream broke, what is
 * still missing is looked at again. */
#include <stdlib.h>
#include <string.h>

#include "api/runtime.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/strmap.h"
#include "codec/json.h"
#include "event/event.h"

#define WAIT_MOST 100000

struct waiting {
	struct ava_runtime *rt;
	struct strmap by_id; /* id -> place in `mark` */
	unsigned char *mark;
	const char *const *runs;
	size_t n, ended;
	struct backend_cursor *cur;
};

/* The same id twice is marked at its first place, and copied at the end. */
static void mark(struct waiting *w, const char *id)
{
	unsigned char *m = strmap_get(&w->by_id, id);

	if (m && !*m)
		*m = 1;
}

static size_t first_place(const struct waiting *w, size_t i)
{
	return (size_t)((unsigned char *)strmap_get(&w->by_id, w->runs[i]) - w->mark);
}

static void count(struct waiting *w)
{
	w->ended = 0;
	for (size_t i = 0; i < w->n; i++)
		w->ended += w->mark[first_place(w, i)];
}

static int look_at_all(struct waiting *w, struct ava_error *err)
{
	struct ava_run r;
	int rv = 0;

	for (size_t i = 0; i < w->n && rv == 0; i++) {
		if (w->mark[first_place(w, i)])
			continue;
		rv = ava_status(w->rt, w->runs[i], &r, err);
		if (rv == 0 && ava_status_ended(r.status))
			mark(w, w->runs[i]);
	}
	return rv;
}

static void take_line(struct waiting *w, const struct backend_item *item)
{
	struct event_view v;
	const char *id;
	json_t *o;

	if (item->is_text || event_view(item->line, item->len, &v) != 0 ||
	    v.kind != EVENT_SubagentComplete)
		return;
	o = json_parse(v.content.s, v.content.len, NULL);
	id = json_get_str(o, "subagentId");
	if (id)
		mark(w, id);
	json_decref(o);
}

static int take_events(struct waiting *w, struct ava_error *err)
{
	struct backend_item item;
	int rv;

	while ((rv = w->rt->b->ops->cursor_next(w->cur, &item, err)) == 1)
		take_line(w, &item);
	return rv < 0 ? look_at_all(w, err) : 0;
}

static bool enough(const struct waiting *w, enum ava_wait_for what)
{
	return w->ended == w->n || (what == AVA_WAIT_ANY && w->ended > 0);
}

static int wait_more(struct waiting *w, enum ava_wait_for what, int64_t timeout_ms,
		     struct ava_error *err)
{
	int64_t end = clock_mono_ms() + timeout_ms, left = timeout_ms;
	int rv = look_at_all(w, err);

	for (;;) {
		if (rv == 0)
			rv = take_events(w, err);
		count(w);
		if (rv != 0 || enough(w, what))
			return rv;
		if (timeout_ms >= 0)
			left = MAX(end - clock_mono_ms(), 0);
		if (left == 0)
			return err_set(err, AVA_ETIMEOUT, "%zu of %zu runs have not ended",
				       w->n - w->ended, w->n);
		rv = w->rt->b->ops->cursor_wait(w->cur, (int)MIN(left, 3600000), err);
		rv = rv < 0 ? rv : 0;
	}
}

static int enter_all(struct waiting *w, struct ava_error *err)
{
	int rv = 0;

	for (size_t i = 0; i < w->n && rv == 0; i++) {
		rv = runtime_id("run", w->runs[i], err);
		if (rv == 0 && strmap_put(&w->by_id, w->runs[i], w->mark + i) == AVA_ENOMEM)
			rv = err_set(err, AVA_ENOMEM, "out of memory");
	}
	return rv;
}

static void tell(const struct waiting *w, unsigned char *ended)
{
	for (size_t i = 0; ended && i < w->n; i++)
		ended[i] = w->mark[first_place(w, i)];
}

int ava_wait(struct ava_runtime *rt, const char *const *runs, size_t n, enum ava_wait_for what,
	     int64_t timeout_ms, unsigned char *ended, struct ava_error *err)
{
	const struct ava_events_query now = {.after = AVA_NOW};
	struct waiting w = {.rt = rt, .runs = runs, .n = n};
	struct ava_error own;
	int rv;

	runtime_begin(rt, &err, &own);
	if (n == 0 || n > WAIT_MOST)
		return err_set(err, AVA_EINVAL, "a wait is for 1 to %d runs", WAIT_MOST);
	w.mark = calloc(n, 1);
	if (!w.mark)
		return err_set(err, AVA_ENOMEM, "out of memory");
	strmap_init(&w.by_id);
	rv = enter_all(&w, err);
	if (rv == 0)
		rv = rt->b->ops->cursor_open(rt->b, &now, &w.cur, err);
	if (rv == 0) {
		rv = wait_more(&w, what, timeout_ms < 0 ? -1 : timeout_ms, err);
		tell(&w, ended);
		rt->b->ops->cursor_close(w.cur);
	}
	strmap_fini(&w.by_id);
	free(w.mark);
	return rv == 0 ? (int)w.ended : rv;
}
