/* Traces as text: one JSON object, or a file with an event a line.
 *
 * A file is read whole; a line that is no event is told with its number and
 * left out, or ends it. It is written beside its place and renamed, so that
 * whoever opens it sees the old or the new one; one event behind the others is
 * one write with O_APPEND.
 *
 * What can fail: the file, a line, memory, the bounds of trace.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "codec/json.h"
#include "codec/jsonl.h"
#include "event/trace.h"

/* ---- one object */

static void put_time(struct jw *w, const char *key, int64_t ms)
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
	put_time(&w, "startTime", t->start_ms);
	put_time(&w, "endTime", t->end_ms);
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
		rv = ava_trace_append(t, text.data, text.len, err);
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

/* "line 1: " that the parser says of a text of one line is left out. */
static const char *why(const struct ava_error *err)
{
	return strncmp(err->text, "line 1: ", 8) == 0 ? err->text + 8 : err->text;
}

static int read_line(struct ava_trace *t, const char *line, size_t len, size_t number,
		     void (*bad)(const char *sentence, void *user), void *user,
		     struct ava_error *err)
{
	struct ava_error e = {0};
	char text[sizeof(e.text) + 64];
	int rv = ava_trace_append(t, line, len, &e);

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
			rv = read_line(t, line, n, number, bad, user, err);
		if (more < 0)
			break; /* the last one has no newline */
	}
	free(data);
	if (rv != 0) {
		ava_trace_free(t);
		return err_wrap(err, rv, "%s", path);
	}
	*out = t;
	return 0;
}

static int write_all(const char *path, int flags, const struct buf *lines, struct ava_error *err)
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

static int lines_of(const struct ava_trace *t, struct buf *out, struct ava_error *err)
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
	rv = lines_of(t, &out, err);
	if (rv == 0)
		rv = write_all(temp, O_EXCL, &out, err);
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
		rv = lines_of(t, &out, err);
	if (rv == 0)
		rv = write_all(path, O_APPEND, &out, err);
	buf_fini(&out);
	ava_trace_free(t);
	return rv;
}
