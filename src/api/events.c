/* Event cursors: lines as they stand in the log, with the fields of their
 * head. What can fail: memory; the backend's reasons, after which the cursor
 * goes on where it was. */
#include "api/runtime.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "codec/json.h"
#include "event/event.h"

/* A JSON string's body, which is nearly always the string itself. */
static const char *plain(struct answer *a, const char *s, size_t len)
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

int events_fill(struct answer *strings, const char *line, size_t len, struct ava_event *out,
		struct ava_error *err)
{
	struct event_view v;
	int rv = event_view(line, len, &v);

	if (rv != 0)
		return err_set(err, rv, "a line of the log is no event");
	answer_reset(strings);
	*out = (struct ava_event){
		.lsn = v.lsn,
		.seq = v.seq,
		.time_ms = v.wall_ms,
		.type = plain(strings, v.type.s, v.type.len),
		.agent = plain(strings, v.agent_id.s, v.agent_id.len),
		.session = plain(strings, v.session_id.s, v.session_id.len),
		.trace = plain(strings, v.trace_id.s, v.trace_id.len),
		.user = plain(strings, v.user_id.s, v.user_id.len),
		.json = line,
		.len = len,
	};
	return answer_check(strings, err);
}

int events_check(const struct ava_events_query *q, struct ava_error *err)
{
	int rv = 0;

	if (q->run && q->session)
		return err_set(err, AVA_EINVAL, "a run or a session, not both");
	if (q->run)
		rv = runtime_id("run", q->run, err);
	if (q->session)
		rv = runtime_id("session", q->session, err);
	if (rv == 0 && q->session && strlen(q->session) >= sizeof(struct ava_session_id))
		rv = err_set(err, AVA_ENOENT, "there is no session of that name");
	return rv;
}

int ava_events_open(struct ava_runtime *rt, const struct ava_events_query *query,
		    struct ava_events **out, struct ava_error *err)
{
	const struct ava_events_query all = {0}, *q = query ? query : &all;
	struct ava_events *e;
	struct ava_error own;
	int rv;

	runtime_begin(rt, &err, &own);
	*out = NULL;
	rv = events_check(q, err);
	if (rv != 0)
		return rv;
	e = calloc(1, sizeof(*e));
	if (!e)
		return err_set(err, AVA_ENOMEM, "out of memory");
	rv = rt->b->ops->cursor_open(rt->b, q, &e->cur, err);
	if (rv != 0) {
		free(e);
		return rv;
	}
	e->rt = rt;
	answer_init(&e->strings);
	list_add(&rt->events, &e->node);
	*out = e;
	return 0;
}

int ava_events_next(struct ava_events *e, struct ava_event *event, struct ava_error *err)
{
	struct backend_item item;
	struct ava_error own;
	int rv;

	if (!err)
		err = &own;
	*err = (struct ava_error){0};
	do
		rv = e->rt->b->ops->cursor_next(e->cur, &item, err);
	while (rv == 1 && item.is_text); /* it is for callbacks */
	if (rv == 1)
		rv = events_fill(&e->strings, item.line, item.len, event, err) == 0 ? 1 : err->code;
	return rv;
}

int ava_events_ended(struct ava_events *e)
{
	return e->rt->b->ops->cursor_ended(e->cur);
}

int ava_events_wait(struct ava_events *e, int timeout_ms, struct ava_error *err)
{
	struct ava_error own;

	if (!err)
		err = &own;
	*err = (struct ava_error){0};
	return e->rt->b->ops->cursor_wait(e->cur, timeout_ms < 0 ? -1 : timeout_ms, err);
}

void ava_events_close(struct ava_events *e)
{
	if (!e)
		return;
	e->rt->b->ops->cursor_close(e->cur);
	list_del(&e->node);
	answer_fini(&e->strings);
	free(e);
}
