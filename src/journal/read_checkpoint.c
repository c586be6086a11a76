/* A checkpoint as a value: ava_checkpoint_read, _json, _parse and _free of ava.h.
 *
 * A run's log has an event Checkpoint for each given name (doc/TRACE.md), with the number of
 * lines messages.jsonl had. The value is the trace up to that event and those lines, byte for
 * byte. As text it is one object, read with the reader of traces; facts it states twice must
 * agree.
 *
 * What can fail: no such run or name; messages that are removed or fewer than the event says; a
 * text that is no checkpoint or was changed. Then there is no value. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/settings.h"
#include "base/util.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "event/trace.h"
#include "journal/files.h"
#include "journal/read_root.h"

#define STATE_MAX   ((size_t)256 << 20)
#define NAMES_SHOWN 320 /* bytes of names in a sentence */

void ava_checkpoint_free(struct ava_checkpoint *c)
{
	if (c == NULL)
		return;
	ava_trace_free(c->trace);
	free(c);
}

/* ---- the value, from a trace that ends with the event and the lines */

/* Check that the event is the Checkpoint `name` and take its other fields into the value. */
static int check_event(struct ava_checkpoint *c, const char *name, const json_t *content,
		       struct ava_error *err)
{
	const char *own = json_get_str(content, "name"), *call = json_get_str(content, "callId");
	int64_t lines = json_get_int(content, "messages", -1);

	if (own == NULL || strcmp(own, name) != 0)
		return err_set(err, AVA_EINVAL,
			       "the last event of the trace is not the checkpoint \"%.64s\"", name);
	c->call = call != NULL && call[0] == 'i' ? strtoll(call + 1, NULL, 10) : 0;
	if (lines < 0 || lines != jsonl_count(c->state, c->state_len))
		return err_set(err, AVA_EINVAL,
			       "checkpoint \"%.64s\" has %u lines of messages, its event says "
			       "%" PRId64,
			       name, jsonl_count(c->state, c->state_len), lines);
	if (!utf8_valid(c->state, c->state_len) || memchr(c->state, '\0', c->state_len) != NULL)
		return err_set(err, AVA_EINVAL, "the messages of checkpoint \"%.64s\" are no text",
			       name);
	return 0;
}

/* `t` is *taken*, also on error; `state` *copied*. */
static int read_checkpoint_make(struct ava_checkpoint **out, struct ava_trace *t, const char *name,
				const char *state, size_t len, struct ava_error *err)
{
	const struct trace_event *last = t->n > 0 ? &t->events[t->n - 1] : NULL;
	struct ava_checkpoint *c = calloc(1, sizeof(*c));
	json_t *content = NULL;
	int rv = 0;

	if (c == NULL) {
		ava_trace_free(t);
		return err_set(err, AVA_ENOMEM, "no memory for a checkpoint");
	}
	c->trace = t;
	c->trace_id = t->id;
	c->name = arena_copy(&t->mem, name, strlen(name));
	c->state = arena_copy(&t->mem, state, len);
	c->state_len = len;
	if (c->name == NULL || c->state == NULL)
		rv = err_set(err, AVA_ENOMEM, "no memory for a checkpoint of %zu bytes", len);
	if (rv == 0 && (last == NULL || last->kind != EVENT_Checkpoint))
		rv = err_set(err, AVA_EINVAL, "the trace does not end with an event Checkpoint");
	if (rv == 0) {
		c->run = last->shown.agent;
		c->time_ms = last->shown.time_ms;
		content = json_parse(last->content, last->content_len, err);
		rv = content != NULL ? check_event(c, name, content, err) : AVA_EINVAL;
	}
	json_decref(content);
	if (rv != 0) {
		ava_checkpoint_free(c);
		return rv;
	}
	*out = c;
	return 0;
}

/* ---- out of a run */

/* Find the event of that name in `t`, and its count of lines. */
static int read_checkpoint_find(struct ava_trace *t, const char *name, size_t *at, int64_t *lines,
				struct ava_error *err)
{
	const char *const *names;
	char known[NAMES_SHOWN] = "";
	size_t n, used = 0;
	int rv;

	for (size_t i = 0; i < t->n; i++) {
		json_t *content = NULL;
		bool found;

		if (t->events[i].kind != EVENT_Checkpoint)
			continue;
		content = trace_content(&t->events[i]);
		found = strcmp(json_str(content, "name"), name) == 0;
		*lines = json_get_int(content, "messages", -1);
		*at = i;
		json_decref(content);
		if (found)
			return 0;
	}
	rv = ava_trace_checkpoints(t, &names, &n, err);
	if (rv != 0)
		return rv;
	for (size_t i = 0; i < n && used < sizeof(known) - 80; i++)
		used += (size_t)snprintf(known + used, sizeof(known) - used, "%s%.64s",
					 i > 0 ? ", " : ": it has ", names[i]);
	return err_set(err, AVA_ENOENT, "trace %s has no checkpoint %.64s%s", t->id, name, known);
}

/* Append the whole lines of one part to `out` until it has `want` of them; a torn line was never
 * acknowledged. */
static int read_checkpoint_add_part(struct buf *out, int fd, int64_t want, int64_t *have,
				    struct ava_error *err)
{
	struct loglines l;
	const char *line;
	size_t n;
	int rv = 0, more = 0;

	loglines_init(&l, fd, 0, UINT64_MAX);
	while (*have < want && (more = loglines_next(&l, &line, &n)) > 0 && !l.torn) {
		rv = line != NULL ? buf_add(out, line, n) : AVA_ETOOBIG;
		if (rv != 0)
			break;
		++*have;
	}
	loglines_fini(&l);
	rv = rv != 0 ? rv : more < 0 ? more : 0;
	return rv == 0 ? 0 : err_set(err, rv, "its messages cannot be read: %s", ava_strerror(rv));
}

static int read_checkpoint_read_state(struct buf *out, const char *root, const char *run,
				      int64_t want, struct ava_error *err)
{
	char path[FILES_PATH_MAX], part[FILES_BUF];
	int64_t have = 0;
	int root_fd, fd, rv = 0;

	if (!id_is_run(run))
		return err_set(err, AVA_ECORRUPT, "\"%.60s\" is no id of a run", run);
	snprintf(path, sizeof(path), "runs/%s/messages.jsonl", run);
	root_fd = read_open_root(root, err);
	if (root_fd < 0)
		return root_fd;
	for (unsigned i = 1; rv == 0 && have < want; i++) {
		fd = files_open(root_fd, files_part_name(path, i, part), O_RDONLY);
		if (fd < 0 && errno == ENOENT && i > 1)
			break;
		if (fd < 0)
			rv = errno == ENOENT
				     ? err_set(err, AVA_ENOENT,
					       "the messages of %s are not kept any more", run)
				     : err_sys(err, "%s", part);
		else
			rv = read_checkpoint_add_part(out, fd, want, &have, err);
		files_close(&fd);
	}
	close(root_fd);
	if (rv == 0 && have < want)
		rv = err_set(err, AVA_ECORRUPT,
			     "%s has %" PRId64 " of the %" PRId64
			     " lines of messages that its checkpoint is made of",
			     path, have, want);
	return rv;
}

int ava_checkpoint_read(struct ava_checkpoint **out, const char *root, const char *run,
			const char *name, struct ava_error *err)
{
	struct ava_trace *whole = NULL, *t = NULL;
	char path[4096];
	int64_t lines = -1;
	struct buf state;
	size_t at = 0;
	int rv;

	*out = NULL;
	if (run == NULL || name == NULL)
		return err_set(err, AVA_EINVAL, "a checkpoint has a run and a name");
	buf_init(&state, STATE_MAX);
	rv = root != NULL ? 0 : settings_data_root(path, sizeof(path), err);
	root = root != NULL ? root : path;
	if (rv == 0)
		rv = ava_trace_read(&whole, root, run, NULL, NULL, err);
	if (rv == 0)
		rv = read_checkpoint_find(whole, name, &at, &lines, err);
	if (rv == 0)
		rv = read_checkpoint_read_state(&state, root, whole->events[at].shown.agent, lines,
						err);
	if (rv == 0)
		rv = ava_trace_new(&t, whole->id, whole->parent, err);
	for (size_t i = 0; rv == 0 && i <= at; i++)
		rv = ava_trace_append(t, whole->events[i].shown.json, whole->events[i].shown.len,
				      err);
	if (rv == 0) {
		rv = read_checkpoint_make(out, t, name, state.len > 0 ? state.data : "", state.len,
					  err);
		t = NULL;
	}
	if (rv == AVA_EINVAL && whole != NULL)
		rv = err_wrap(err, AVA_ECORRUPT, "%s", run);
	ava_trace_free(t);
	ava_trace_free(whole);
	buf_fini(&state);
	return rv;
}

/* ---- as text */

int ava_checkpoint_json(struct ava_checkpoint *c, const char **json, size_t *len,
			struct ava_error *err)
{
	char at[CLOCK_ISO_LEN + 1], hash[HASH_HEX_LEN + 1];
	const char *trace;
	size_t trace_len;
	struct buf out;
	struct jw w;
	int rv = ava_trace_json(c->trace, &trace, &trace_len, err);

	*json = NULL;
	*len = 0;
	if (rv != 0)
		return rv;
	clock_iso(c->time_ms, at);
	hash_sha256_hex(c->state, c->state_len, hash);
	buf_init(&out, TRACE_BYTES_MAX);
	jw_init(&w, &out);
	jw_object(&w, NULL);
	jw_str(&w, "name", c->name);
	jw_str(&w, "traceId", c->trace_id);
	jw_str(&w, "timestamp", at);
	jw_strn(&w, "state", c->state, c->state_len);
	jw_str(&w, "stateHash", hash);
	jw_raw(&w, "trace", trace, trace_len);
	jw_end(&w);
	rv = trace_answer(c->trace, &out, json, len, err);
	buf_fini(&out);
	return rv;
}

/* Facts stated both outside and inside of the trace must agree. */
static int check_outside(const struct ava_checkpoint *c, const json_t *o, struct ava_error *err)
{
	char at[CLOCK_ISO_LEN + 1], hash[HASH_HEX_LEN + 1];
	const char *wrong = NULL;

	clock_iso(c->time_ms, at);
	hash_sha256_hex(c->state, c->state_len, hash);
	if (strcmp(json_str(o, "traceId"), c->trace_id) != 0)
		wrong = "traceId";
	else if (strcmp(json_str(o, "timestamp"), at) != 0)
		wrong = "timestamp";
	else if (strcmp(json_str(o, "stateHash"), hash) != 0)
		wrong = "stateHash";
	return wrong == NULL ? 0
			     : err_set(err, AVA_EINVAL,
				       "checkpoint \"%.64s\" was changed: its \"%s\" does not fit",
				       c->name, wrong);
}

int ava_checkpoint_parse(struct ava_checkpoint **out, const char *json, size_t len,
			 struct ava_error *err)
{
	static const char *const texts[] = {"name", "traceId", "timestamp", "state", "stateHash"};
	json_t *o = json_parse(json, len, err);
	const json_t *state = json_object_get(o, "state");
	struct ava_trace *t = NULL;
	bool whole = json_is_object(json_object_get(o, "trace"));
	struct buf text;
	int rv = 0;

	*out = NULL;
	if (o == NULL)
		return AVA_EINVAL;
	buf_init(&text, TRACE_BYTES_MAX);
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		whole = whole && json_get_str(o, texts[i]) != NULL;
	if (!whole)
		rv = err_set(err, AVA_EINVAL,
			     "a checkpoint has \"name\", \"traceId\", \"timestamp\", \"state\", "
			     "\"stateHash\" and an object \"trace\"");
	if (rv == 0) {
		rv = json_dump(&text, json_object_get(o, "trace"));
		rv = rv == 0 ? ava_trace_parse(&t, text.data, text.len, err)
			     : err_set(err, rv, "no memory for a trace this long");
		if (rv != 0)
			err_wrap(err, rv, "the trace of a checkpoint");
	}
	buf_fini(&text);
	if (rv == 0)
		rv = read_checkpoint_make(out, t, json_str(o, "name"), json_string_value(state),
					  json_string_length(state), err);
	if (rv == 0)
		rv = check_outside(*out, o, err);
	json_decref(o);
	if (rv != 0) {
		ava_checkpoint_free(*out);
		*out = NULL;
	}
	return rv;
}
