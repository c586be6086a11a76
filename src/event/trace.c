/* Traces: events in the order they came, and merging.
 *
 * An event is kept as its line. A line in canonical form is kept byte for byte; any other JSON
 * object is brought into that form first, so that every event of a trace can be written to a log
 * or sent on as it is. The id follows from the first event, start, end and parent from the
 * run's own first and last ones.
 *
 * Two copies of an event share its lsn (doc/events.json), time, type and ids: merging keeps one
 * of them. An event without lsn never counts as a copy.
 *
 * What can fail: a line that is no event, memory, the bounds of trace.h. */
#include "event/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "base/util.h"
#include "codec/jscan.h"
#include "codec/json.h"

#define LINE_MAX ((size_t)64 << 20)

static bool never(const char *name, void *user)
{
	return false;
}

static int trace_no_memory(struct ava_error *err)
{
	return err_set(err, AVA_ENOMEM, "no memory for a trace this long");
}

int ava_trace_new(struct ava_trace **out, const char *id, const char *parent, struct ava_error *err)
{
	struct ava_trace *t = calloc(1, sizeof(*t));
	struct trace_name name = {""};

	*out = NULL;
	if (t == NULL)
		return trace_no_memory(err);
	arena_init(&t->mem, TRACE_BYTES_MAX);
	arena_init(&t->answer, TRACE_BYTES_MAX);
	t->mem.chunk = 16u << 10;
	if (id == NULL || id[0] != '\0') /* without an id the first event added gives it */
		t->start_ms = clock_wall_ms();
	if (id == NULL)
		id_trace_name(never, NULL, &name);
	id = id != NULL ? id : name.text;
	parent = parent != NULL ? parent : "";
	t->id = arena_copy(&t->mem, id, strlen(id));
	t->parent = arena_copy(&t->mem, parent, strlen(parent));
	if (t->id == NULL || t->parent == NULL) {
		ava_trace_free(t);
		return trace_no_memory(err);
	}
	*out = t;
	return 0;
}

void ava_trace_free(struct ava_trace *t)
{
	if (t == NULL)
		return;
	arena_fini(&t->mem);
	arena_fini(&t->answer);
	free(t->events);
	free(t);
}

void trace_forget(struct ava_trace *t)
{
	arena_fini(&t->answer);
	arena_init(&t->answer, TRACE_BYTES_MAX);
}

int trace_answer(struct ava_trace *t, const struct buf *out, const char **json, size_t *len,
		 struct ava_error *err)
{
	int rv = buf_check(out);

	trace_forget(t);
	*json = rv == 0 ? arena_copy(&t->answer, out->data, out->len) : NULL;
	*len = *json != NULL ? out->len : 0;
	return *json != NULL
		       ? 0
		       : err_set(err, rv != 0 ? rv : AVA_ENOMEM, "no memory for a trace this long");
}

json_t *trace_content(const struct trace_event *e)
{
	return json_parse(e->content, e->content_len, NULL);
}

json_t *trace_metadata(const struct trace_event *e)
{
	return json_parse(e->metadata, e->metadata_len, NULL);
}

/* ---- an event from JSON */

static void trace_put_number(struct jw *w, const char *key, const json_t *event)
{
	int64_t n = json_get_int(event, key, 0);

	jw_int(w, key, n < 0 ? 0 : n);
}

static void trace_put_string(struct jw *w, const char *key, const json_t *event,
			     const char *fallback)
{
	const char *s = json_get_str(event, key);

	jw_str(w, key, s != NULL ? s : fallback);
}

static int put_object(struct jw *w, const char *key, const json_t *event)
{
	const json_t *o = json_object_get(event, key);
	struct buf text;
	int rv = 0;

	buf_init(&text, LINE_MAX);
	if (json_is_object(o))
		rv = json_dump(&text, o);
	if (rv == 0 && text.len > 0)
		jw_raw(w, key, text.data, text.len);
	else
		jw_raw(w, key, "{}", 2);
	buf_fini(&text);
	return rv;
}

/* The canonical line of `event`, without its newline. */
static int canonical(struct buf *out, const json_t *event, const char *id, struct ava_error *err)
{
	const char *at = json_get_str(event, "timestamp"), *type = json_get_str(event, "eventType");
	char now[CLOCK_ISO_LEN + 1];
	struct jw w;
	int rv;

	if (type == NULL || type[0] == '\0')
		return err_set(err, AVA_EINVAL, "an event needs an \"eventType\"");
	if (at != NULL && clock_parse_iso(at, strlen(at)) < 0)
		return err_set(err, AVA_EINVAL,
			       "\"timestamp\" must look like 2026-11-21T08:00:00.123Z");
	clock_iso(clock_wall_ms(), now);
	jw_init(&w, out);
	jw_object(&w, NULL);
	jw_str(&w, "timestamp", at != NULL ? at : now);
	trace_put_number(&w, "lsn", event);
	trace_put_number(&w, "seq", event);
	jw_str(&w, "eventType", type);
	trace_put_string(&w, "agentId", event, "");
	trace_put_string(&w, "sessionId", event, "");
	trace_put_string(&w, "traceId", event, id);
	trace_put_string(&w, "userId", event, "");
	rv = put_object(&w, "content", event);
	if (rv == 0)
		rv = put_object(&w, "metadata", event);
	jw_end(&w);
	if (rv == 0)
		rv = buf_check(out);
	return rv == 0 ? 0 : err_set(err, rv, "the event is too large or nested too deep");
}

/* Ids without escapes are copied unchanged, others are decoded. */
static const char *trace_copy_id(struct ava_trace *t, const char *s, size_t len, const char *last)
{
	json_t *v;
	char *copy;
	struct buf quoted;

	if (last != NULL && strlen(last) == len && memcmp(last, s, len) == 0)
		return last;
	if (memchr(s, '\\', len) == NULL)
		return arena_copy(&t->mem, s, len);
	buf_init(&quoted, LINE_MAX);
	buf_addc(&quoted, '"');
	buf_add(&quoted, s, len);
	v = buf_addc(&quoted, '"') == 0 ? json_parse(quoted.data, quoted.len, NULL) : NULL;
	copy = json_is_string(v) ? arena_copy(&t->mem, json_string_value(v), json_string_length(v))
				 : NULL;
	json_decref(v);
	buf_fini(&quoted);
	return copy;
}

/* `line` stands in t->mem and has the form of an event. */
static int trace_fill_span(struct ava_trace *t, struct trace_event *e, const char *line, size_t len)
{
	const struct ava_event *last = t->n > 0 ? &t->events[t->n - 1].shown : NULL;
	struct event_view v;

	if (event_view(line, len, &v) != 0)
		return AVA_ECORRUPT;
	*e = (struct trace_event){
		.shown = {.lsn = v.lsn, .seq = v.seq, .time_ms = v.wall_ms, .json = line},
		.kind = v.kind,
		.content = v.content.s,
		.content_len = v.content.len,
		.metadata = v.metadata.s,
		.metadata_len = v.metadata.len,
	};
	e->shown.len = len;
	e->shown.type = v.kind >= 0 ? event_kind_name((enum event_kind)v.kind)
				    : trace_copy_id(t, v.type.s, v.type.len, NULL);
	e->shown.agent = trace_copy_id(t, v.agent_id.s, v.agent_id.len, last ? last->agent : NULL);
	e->shown.session =
		trace_copy_id(t, v.session_id.s, v.session_id.len, last ? last->session : NULL);
	e->shown.trace = trace_copy_id(t, v.trace_id.s, v.trace_id.len, last ? last->trace : t->id);
	e->shown.user = trace_copy_id(t, v.user_id.s, v.user_id.len, last ? last->user : NULL);
	if (e->shown.type == NULL || e->shown.agent == NULL || e->shown.session == NULL ||
	    e->shown.trace == NULL || e->shown.user == NULL)
		return AVA_ENOMEM;
	return 0;
}

/* Learn facts about the trace from the run's own event. */
static int learn(struct ava_trace *t, const struct trace_event *e, const json_t *content,
		 const json_t *meta)
{
	const char *parent;

	if (t->id[0] == '\0')
		t->id = e->shown.trace;
	if (t->start_ms == 0 || e->shown.time_ms < t->start_ms)
		t->start_ms = e->shown.time_ms;
	if (strcmp(e->shown.trace, t->id) != 0)
		return 0;
	if (e->kind == EVENT_SubagentComplete && e->shown.time_ms > t->end_ms)
		t->end_ms = e->shown.time_ms;
	if (e->kind != EVENT_SubagentSpawn || t->parent[0] != '\0')
		return 0;
	parent = json_get_str(content, "resumedFrom");
	if (parent == NULL || parent[0] == '\0')
		parent = json_get_str(meta, "parentAgentId");
	if (parent == NULL)
		return 0;
	parent = arena_copy(&t->mem, parent, strlen(parent));
	t->parent = parent != NULL ? parent : "";
	return parent != NULL ? 0 : AVA_ENOMEM;
}

/* Add `line` as an event of `t`, not counted yet. */
static int trace_place(struct ava_trace *t, const char *line, size_t len, struct ava_error *err)
{
	char *kept;
	int rv;

	if (t->n >= TRACE_EVENTS_MAX)
		return err_set(err, AVA_ETOOBIG, "a trace holds at most %d events",
			       TRACE_EVENTS_MAX);
	if (!ARRAY_ROOM(t->events, t->cap, t->n + 1))
		return trace_no_memory(err);
	kept = arena_copy(&t->mem, line, len);
	rv = kept != NULL ? trace_fill_span(t, &t->events[t->n], kept, len) : AVA_ENOMEM;
	if (rv != 0)
		return rv == AVA_ENOMEM ? trace_no_memory(err)
					: err_set(err, AVA_EINVAL, "that is no event");
	return 0;
}

/* `known`: an object that is no line of a log must be of a known kind, since only a log can come
 * from a later version. */
static int trace_add(struct ava_trace *t, const char *json, size_t len, bool known,
		     struct ava_error *err)
{
	json_t *event, *content, *meta;
	const struct trace_event *e;
	struct event_view v;
	struct buf line;
	int rv;

	if (len > 0 && json[len - 1] == '\n')
		len--;
	buf_init(&line, LINE_MAX);
	if (len <= LINE_MAX && event_view(json, len, &v) == 0) {
		rv = trace_place(t, json, len, err);
	} else {
		event = json_parse(json, len, err);
		rv = event != NULL ? canonical(&line, event, t->id, err) : AVA_EINVAL;
		json_decref(event);
		if (rv == 0)
			rv = trace_place(t, line.data, line.len, err);
		if (rv == 0 && known && t->events[t->n].kind < 0)
			rv = err_set(err, AVA_EINVAL,
				     "%.60s is no eventType: one of your own is Custom, with "
				     "customType",
				     t->events[t->n].shown.type);
	}
	if (rv == 0) {
		/* A line in canonical form may still hold invalid JSON. */
		e = &t->events[t->n];
		content = json_parse(e->content, e->content_len, err);
		meta = content != NULL ? json_parse(e->metadata, e->metadata_len, err) : NULL;
		rv = meta == NULL ? AVA_EINVAL : learn(t, e, content, meta);
		if (rv == AVA_ENOMEM)
			trace_no_memory(err);
		json_decref(content);
		json_decref(meta);
	}
	if (rv == 0) {
		trace_forget(t);
		t->n++;
	}
	buf_fini(&line);
	return rv;
}

int ava_trace_append(struct ava_trace *t, const char *json, size_t len, struct ava_error *err)
{
	return trace_add(t, json, len, true, err);
}

void ava_trace_info(const struct ava_trace *t, struct ava_trace_info *out)
{
	*out = (struct ava_trace_info){
		.id = t->id,
		.parent = t->parent,
		.start_ms = t->start_ms,
		.end_ms = t->end_ms,
		.events = t->n,
	};
}

/* ---- merging */

struct placed {
	const struct trace_event *e;
	size_t at; /* position among all input events */
};

static int by_lsn(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;
	int rv = order_of(x->e->shown.lsn, y->e->shown.lsn);

	return rv != 0 ? rv : order_of(x->at, y->at);
}

static int by_time(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;

	if (x->e->shown.time_ms != y->e->shown.time_ms)
		return x->e->shown.time_ms < y->e->shown.time_ms ? -1 : 1;
	return order_of(x->at, y->at);
}

static bool same_event(const struct trace_event *a, const struct trace_event *b)
{
	const struct ava_event *x = &a->shown, *y = &b->shown;

	return x->lsn != 0 && x->lsn == y->lsn && x->time_ms == y->time_ms &&
	       strcmp(x->type, y->type) == 0 && strcmp(x->agent, y->agent) == 0 &&
	       strcmp(x->trace, y->trace) == 0;
}

#define COPIES_MAX 64 /* most copies compared: a hostile file may give all lines one lsn */

/* Sorts by lsn and marks copies in `all` as NULL: those of one lsn stand together. */
static void mark_copies(struct placed *all, size_t n)
{
	qsort(all, n, sizeof(*all), by_lsn);
	for (size_t i = n; i-- > 1;)
		for (size_t k = i;
		     k > 0 && i - k < COPIES_MAX && all[k - 1].e->shown.lsn == all[i].e->shown.lsn;
		     k--)
			if (same_event(all[k - 1].e, all[i].e)) {
				all[i].e = NULL;
				break;
			}
}

const struct trace_event **trace_once(const struct ava_trace *t, size_t *n)
{
	const struct trace_event **out = calloc(t->n + 1, sizeof(struct trace_event *));
	struct placed *all = calloc(t->n + 1, sizeof(*all));

	*n = 0;
	for (size_t i = 0; out != NULL && all != NULL && i < t->n; i++)
		all[i] = (struct placed){&t->events[i], i};
	if (out == NULL || all == NULL) {
		free(out);
		free(all);
		return NULL;
	}
	mark_copies(all, t->n);
	for (size_t i = 0; i < t->n; i++)
		out[all[i].at] = all[i].e;
	for (size_t i = 0; i < t->n; i++)
		if (out[i] != NULL)
			out[(*n)++] = out[i];
	free(all);
	return out;
}

/* Make all of `all` the events of `t`. */
static void merge_times(struct ava_trace *t, const struct ava_trace *const *traces, size_t n)
{
	bool ended = true;

	for (size_t i = 0; i < n; i++) {
		const struct ava_trace *from = traces[i];

		if (from->start_ms != 0 && (t->start_ms == 0 || from->start_ms < t->start_ms))
			t->start_ms = from->start_ms;
		ended = ended && from->end_ms != 0;
		if (from->end_ms > t->end_ms)
			t->end_ms = from->end_ms;
	}
	if (!ended)
		t->end_ms = 0;
}

int ava_trace_merge(struct ava_trace **out, const struct ava_trace *const *traces, size_t n,
		    struct ava_error *err)
{
	struct ava_trace *t = NULL;
	struct placed *all = NULL;
	bool numbered = true;
	size_t total = 0, at = 0;
	int rv = ava_trace_new(&t, n > 0 ? traces[0]->id : "", n > 0 ? traces[0]->parent : "", err);

	*out = NULL;
	for (size_t i = 0; i < n; i++)
		total += traces[i]->n;
	if (rv == 0)
		all = calloc(total + 1, sizeof(*all));
	if (rv == 0 && all == NULL)
		rv = trace_no_memory(err);
	if (rv != 0)
		goto fail;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < traces[i]->n; k++, at++) {
			all[at] = (struct placed){&traces[i]->events[k], at};
			numbered = numbered && traces[i]->events[k].shown.lsn != 0;
		}
	mark_copies(all, total);
	total = 0;
	for (size_t i = 0; i < at; i++)
		if (all[i].e != NULL)
			all[total++] = all[i];
	if (!numbered && total > 0)
		qsort(all, total, sizeof(*all), by_time);
	for (size_t i = 0; i < total; i++, t->n++) {
		rv = trace_place(t, all[i].e->shown.json, all[i].e->shown.len, err);
		if (rv != 0)
			goto fail;
	}
	merge_times(t, traces, n);
	free(all);
	*out = t;
	return 0;

fail:
	free(all);
	ava_trace_free(t);
	return rv;
}

/* ---- traces as text: one JSON object, or a file with an event a line */

/* ---- one object */

static void trace_put_time(struct jw *w, const char *key, int64_t ms)
{
	char text[CLOCK_ISO_LEN + 1];

	clock_iso(ms, text);
	jw_str(w, key, ms != 0 ? text : NULL);
}

int ava_trace_json(struct ava_trace *t, const char **json, size_t *len, struct ava_error *err)
{
	struct buf out;
	struct jw w;
	int rv;

	buf_init(&out, TRACE_BYTES_MAX);
	jw_init(&w, &out);
	jw_object(&w, NULL);
	jw_str(&w, "traceId", t->id);
	jw_str(&w, "parentId", t->parent);
	trace_put_time(&w, "startTime", t->start_ms);
	trace_put_time(&w, "endTime", t->end_ms);
	jw_array(&w, "events");
	for (size_t i = 0; i < t->n; i++)
		jw_raw(&w, NULL, t->events[i].shown.json, t->events[i].shown.len);
	jw_end(&w);
	jw_end(&w);
	rv = trace_answer(t, &out, json, len, err);
	buf_fini(&out);
	return rv;
}

/* 0 for null; -1: no time. */
static int64_t get_time(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	if (v == NULL || json_is_null(v))
		return 0;
	return json_is_string(v) ? clock_parse_iso(json_string_value(v), json_string_length(v))
				 : -1;
}

static int parse_event(struct ava_trace *t, const json_t *event, size_t i, struct ava_error *err)
{
	struct buf text;
	int rv;

	buf_init(&text, TRACE_BYTES_MAX);
	rv = json_dump(&text, event);
	if (rv != 0)
		rv = err_set(err, rv, "it is too large or nested too deep");
	else
		rv = trace_add(t, text.data, text.len, false, err);
	buf_fini(&text);
	return rv == 0 ? 0 : err_wrap(err, rv, "event %zu", i + 1);
}

int ava_trace_parse(struct ava_trace **out, const char *json, size_t len, struct ava_error *err)
{
	json_t *o = json_parse(json, len, err), *event;
	const json_t *events = json_object_get(o, "events");
	int64_t start = get_time(o, "startTime"), end = get_time(o, "endTime");
	const char *id = json_get_str(o, "traceId"), *parent = json_get_str(o, "parentId");
	struct ava_trace *t = NULL;
	size_t i;
	int rv;

	*out = NULL;
	if (o == NULL)
		return AVA_EINVAL;
	rv = json_is_array(events) && start >= 0 && end >= 0
		     ? ava_trace_new(&t, id != NULL ? id : "", parent, err)
		     : err_set(err, AVA_EINVAL,
			       "a trace has \"traceId\", \"startTime\", \"endTime\" and a list "
			       "\"events\"");
	json_array_foreach(events, i, event)
	{
		if (rv == 0)
			rv = parse_event(t, event, i, err);
	}
	json_decref(o);
	if (rv != 0) {
		ava_trace_free(t);
		return rv;
	}
	t->start_ms = start != 0 ? start : t->start_ms;
	t->end_ms = end;
	*out = t;
	return 0;
}

/* ---- files */

/* The error without "line 1: ", which the parser puts before that of a one-line text. */
static const char *why(const struct ava_error *err)
{
	return strncmp(err->text, "line 1: ", 8) == 0 ? err->text + 8 : err->text;
}

static int trace_read_line(struct ava_trace *t, const char *line, size_t len, size_t number,
			   void (*bad)(const char *sentence, void *user), void *user,
			   struct ava_error *err)
{
	struct ava_error e = {0};
	char text[sizeof(e.text) + 64];
	int rv = trace_add(t, line, len, false, &e);

	if (rv == 0)
		return 0;
	if (rv != AVA_EINVAL)
		return err_set(err, rv, "line %zu: %s", number, why(&e));
	snprintf(text, sizeof(text), "line %zu: %s", number, why(&e));
	if (bad == NULL)
		return err_set(err, AVA_ECORRUPT, "%s", text);
	bad(text, user);
	return 0;
}

int ava_trace_read_jsonl(struct ava_trace **out, const char *path,
			 void (*bad)(const char *sentence, void *user), void *user,
			 struct ava_error *err)
{
	struct ava_trace *t = NULL;
	char *data = NULL;
	const char *line;
	size_t len = 0, at = 0, n, number = 0;
	int rv = sys_read_file(AT_FDCWD, path, TRACE_BYTES_MAX, &data, &len, err), more;

	*out = NULL;
	if (rv != 0)
		return rv;
	rv = ava_trace_new(&t, "", NULL, err);
	while (rv == 0 && (more = jsonl_next(data, len, &at, &line, &n)) != 0) {
		number++;
		if (n > 0)
			rv = trace_read_line(t, line, n, number, bad, user, err);
		if (more < 0)
			break; /* the last line has no newline */
	}
	free(data);
	if (rv != 0) {
		ava_trace_free(t);
		return err_wrap(err, rv, "%s", path);
	}
	*out = t;
	return 0;
}

static int trace_write_all(const char *path, int flags, const struct buf *lines,
			   struct ava_error *err)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | flags, 0600);
	size_t done = 0;
	int rv = 0;

	if (fd < 0)
		return err_sys(err, "%s", path);
	while (rv == 0 && done < lines->len) {
		ssize_t n = write(fd, lines->data + done, lines->len - done);

		if (n > 0)
			done += (size_t)n;
		else if (n == 0 || errno != EINTR)
			rv = err_sys(err, "%s", path);
	}
	if (rv == 0 && fsync(fd) != 0 && errno != EINVAL && errno != EROFS) /* a pipe has none */
		rv = err_sys(err, "%s", path);
	close(fd);
	return rv;
}

static int trace_lines_of(const struct ava_trace *t, struct buf *out, struct ava_error *err)
{
	for (size_t i = 0; i < t->n; i++) {
		buf_add(out, t->events[i].shown.json, t->events[i].shown.len);
		buf_addc(out, '\n');
	}
	return buf_check(out) == 0
		       ? 0
		       : err_set(err, buf_check(out), "no memory for a trace this long");
}

int ava_trace_write_jsonl(const struct ava_trace *t, const char *path, struct ava_error *err)
{
	char temp[4096];
	struct buf out;
	int rv;

	if ((size_t)snprintf(temp, sizeof(temp), "%s.new-%d", path, (int)getpid()) >= sizeof(temp))
		return err_set(err, AVA_ETOOBIG, "the path is too long");
	buf_init(&out, TRACE_BYTES_MAX);
	rv = trace_lines_of(t, &out, err);
	if (rv == 0)
		rv = trace_write_all(temp, O_EXCL, &out, err);
	if (rv == 0 && rename(temp, path) != 0)
		rv = err_sys(err, "%s", path);
	if (rv != 0)
		unlink(temp);
	buf_fini(&out);
	return rv;
}

int ava_trace_append_jsonl(const char *path, const char *id, const char *json, size_t len,
			   struct ava_error *err)
{
	struct ava_trace *t = NULL;
	struct buf out;
	int rv = ava_trace_new(&t, id != NULL ? id : "", NULL, err);

	buf_init(&out, TRACE_BYTES_MAX);
	if (rv == 0)
		rv = ava_trace_append(t, json, len, err);
	if (rv == 0)
		rv = trace_lines_of(t, &out, err);
	if (rv == 0)
		rv = trace_write_all(path, O_APPEND, &out, err);
	buf_fini(&out);
	ava_trace_free(t);
	return rv;
}
