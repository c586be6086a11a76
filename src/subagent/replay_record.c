/* The record of a run as a replay walks through it.
 *
 * Two files tell the same story: the events (what happened, previews, hashes)
 * and messages.jsonl (the bytes). A difference is told with the event at which
 * it shows, the first byte, and a piece of both sides.
 *
 * What can fail: the files, memory. */
#include "subagent/replay_record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "codec/redact.h"
#include "codec/utf8.h"
#include "subagent/logbook.h"

#define FILE_MAX     ((size_t)256 << 20)
#define EXCERPT_PART 60 /* bytes shown of each side */

static int read_events(struct record *r, int root_fd, const char *run, struct ava_error *err)
{
	char path[LOGBOOK_PATH], *data;
	const char *line;
	size_t len, at = 0, n;
	int rv;

	logbook_run_path(run, path);
	rv = logbook_read(root_fd, path, FILE_MAX, &data, &len, err);
	if (rv != 0)
		return rv;
	rv = ava_trace_new(&r->events, "", NULL, err);
	while (rv == 0 && jsonl_next(data, len, &at, &line, &n) == 1) {
		rv = ava_trace_append(r->events, line, n, err);
		if (rv == AVA_EINVAL)
			rv = err_wrap(err, AVA_ECORRUPT, "%s, event %zu", path, r->events->n + 1);
	}
	free(data);
	return rv;
}

int record_open(struct record *r, int root_fd, const char *run, struct ava_error *err)
{
	char path[LOGBOOK_PATH];
	int rv = read_events(r, root_fd, run, err);

	if (rv == AVA_ENOENT)
		return err_set(err, rv, "there is no run %s, or its log is gone", run);
	logbook_messages_path(run, path);
	if (rv == 0)
		rv = logbook_read(root_fd, path, FILE_MAX, &r->file, &r->len, err);
	if (rv == AVA_ENOENT)
		return err_set(err, rv, "%s is gone: without what %s sent it cannot be replayed",
			       path, run);
	if (rv == 0 && r->events->n == 0)
		rv = err_set(err, AVA_ECORRUPT, "the log of %s has no event", run);
	return rv;
}

void record_close(struct record *r)
{
	ava_trace_free(r->events);
	free(r->file);
	json_decref(r->content);
	json_decref(r->meta);
}

/* ---- events */

static void look_at(struct record *r, const struct trace_event *e)
{
	if (r->seen == e)
		return;
	json_decref(r->content);
	json_decref(r->meta);
	r->content = e != NULL ? trace_content(e) : NULL;
	r->meta = e != NULL ? trace_metadata(e) : NULL;
	r->seen = e;
}

/* Costs follow from replies, activity from calls; people speak when they like. */
static bool matters(const struct record *r, const struct trace_event *e)
{
	switch (e->kind) {
	case EVENT_InferStart:
	case EVENT_InferEnd:
	case EVENT_ToolCall:
	case EVENT_ToolResult:
	case EVENT_Exhausted:
	case EVENT_Error:
	case EVENT_Waiting:
	case EVENT_ContextEdit:
	case EVENT_SubagentComplete:
		return true;
	case EVENT_Limit:
		return json_object_get(r->content, "warned") != NULL ||
		       json_object_get(r->content, "shared") != NULL;
	default:
		return false;
	}
}

static bool is_carried(const json_t *content)
{
	const char *type = json_get_str(content, "customType");

	return type != NULL && strcmp(type, "carried_on") == 0;
}

const struct trace_event *record_peek(struct record *r)
{
	for (; r->next < r->events->n; r->next++) {
		const struct trace_event *e = &r->events->events[r->next];

		look_at(r, e);
		if (matters(r, e))
			return e;
		if (e->kind == EVENT_Custom && is_carried(r->content))
			r->carried = true;
	}
	look_at(r, NULL);
	return NULL;
}

void record_take(struct record *r)
{
	r->next++;
	r->out->events = r->next;
}

const struct trace_event *record_find(const struct record *r, enum event_kind kind)
{
	for (size_t i = r->next; i < r->events->n; i++)
		if (r->events->events[i].kind == (int)kind)
			return &r->events->events[i];
	return NULL;
}

bool record_end(const struct record *r, const char *key, char *out, size_t size)
{
	const struct trace_event *e = record_find(r, EVENT_SubagentComplete);
	json_t *content = e != NULL ? trace_content(e) : NULL;
	const char *s = json_get_str(content, key);

	snprintf(out, size, "%s", s != NULL ? s : "");
	json_decref(content);
	return e != NULL;
}

int64_t record_end_iterations(const struct record *r)
{
	const struct trace_event *e = record_find(r, EVENT_SubagentComplete);
	json_t *content = e != NULL ? trace_content(e) : NULL;
	int64_t n = json_get_int(json_object_get(content, "totals"), "iterations", -1);

	json_decref(content);
	return n;
}

/* ---- lines */

static bool begins(const char *line, size_t len, const char *with)
{
	return len >= strlen(with) && memcmp(line, with, strlen(with)) == 0;
}

/* Marks are no part of what is said: where the next line begins that is none. */
static size_t past_marks(const struct record *r)
{
	size_t at = r->at, next = at, len;
	const char *line;

	while (jsonl_next(r->file, r->len, &next, &line, &len) == 1 &&
	       begins(line, len, "{\"mark\":"))
		at = next;
	return at;
}

enum record_line record_line(const struct record *r, const char **line, size_t *len)
{
	size_t at = past_marks(r);

	if (jsonl_next(r->file, r->len, &at, line, len) != 1)
		return RECORD_NO_LINE;
	if (begins(*line, *len, "{\"role\":\"assistant\""))
		return RECORD_ASSISTANT;
	return begins(*line, *len, "{\"role\":") ? RECORD_USER : RECORD_AMENDMENT;
}

void record_pass(struct record *r)
{
	const char *line;
	size_t len;

	r->at = past_marks(r);
	(void)jsonl_next(r->file, r->len, &r->at, &line, &len);
}

size_t record_results(const struct record *r, size_t most, struct buf *joined)
{
	struct record ahead = *r;
	const char *line;
	size_t len, n = 0;

	while (n < most && record_line(&ahead, &line, &len) == RECORD_USER) {
		if (n++ > 0)
			buf_addc(joined, '\n');
		buf_add(joined, line, len);
		record_pass(&ahead);
	}
	return n;
}

/* ---- what differs */

/* `len` bytes of `s` from a little before `at`, whole characters. */
static void excerpt(char out[REPLAY_EXCERPT], const char *s, size_t len, size_t at)
{
	size_t from = at > EXCERPT_PART / 3 ? at - EXCERPT_PART / 3 : 0, n;

	if (len == 0)
		s = "";
	from = MIN(from, len);
	while (from > 0 && from < len && ((unsigned char)s[from] & 0xc0) == 0x80)
		from--;
	n = MIN(len - from, (size_t)EXCERPT_PART * 2);
	while (n > 0 && from + n < len && ((unsigned char)s[from + n] & 0xc0) == 0x80)
		n--;
	snprintf(out, REPLAY_EXCERPT, "%s%.*s%s", from > 0 ? "…" : "", (int)n, s + from,
		 from + n < len ? "…" : "");
}

static struct replay_diff *new_diff(struct record *r, const struct trace_event *e, const char *what)
{
	struct replay_diff *d = &r->out->diffs[MIN(r->out->ndiffs, REPLAY_DIFFS_MAX - 1u)];
	json_t *content = e != NULL ? trace_content(e) : NULL;
	const char *call = json_get_str(content, "callId");

	*d = (struct replay_diff){.byte = -1};
	if (e != NULL) {
		d->lsn = e->shown.lsn;
		d->seq = e->shown.seq;
		snprintf(d->type, sizeof(d->type), "%s", e->shown.type);
	}
	snprintf(d->call, sizeof(d->call), "%s", call != NULL ? call : "");
	snprintf(d->what, sizeof(d->what), "%s", what);
	json_decref(content);
	r->out->ndiffs++;
	return d;
}

void record_differs(struct record *r, const struct trace_event *e, const char *what,
		    const char *recorded, const char *replayed)
{
	struct replay_diff *d;

	if (r->stopped)
		return;
	d = new_diff(r, e, what);
	excerpt(d->recorded, recorded, strlen(recorded), 0);
	excerpt(d->replayed, replayed, strlen(replayed), 0);
	r->stopped = true;
}

bool record_same(struct record *r, const struct trace_event *e, const char *what,
		 const char *recorded, size_t recorded_len, const char *replayed,
		 size_t replayed_len)
{
	size_t least = MIN(recorded_len, replayed_len), at = 0;
	struct replay_diff *d;

	if (r->stopped)
		return true;
	while (at < least && recorded[at] == replayed[at])
		at++;
	if (at == least && recorded_len == replayed_len)
		return true;
	d = new_diff(r, e, what);
	d->byte = (int64_t)at;
	excerpt(d->recorded, recorded, recorded_len, at);
	excerpt(d->replayed, replayed, replayed_len, at);
	r->stopped = !r->lenient;
	return false;
}

bool record_same_preview(struct record *r, const struct trace_event *e, const char *what,
			 const char *preview, const char *text, size_t len)
{
	struct buf clean;
	size_t shown;
	bool same = true;

	if (preview == NULL)
		return true;
	buf_init(&clean, TURN_MAX_BYTES * 2);
	if (r->redact != NULL && redact_text(r->redact, &clean, text, len) >= 0) {
		text = clean.data != NULL ? clean.data : "";
		len = clean.len;
	}
	shown = utf8_prefix(text, len, EVENT_PREVIEW_CHARS);
	/* A secret that was known then may not be known now. */
	if (strstr(preview, "[redacted]") == NULL && strncmp(preview, "(left out: ", 11) != 0)
		same = record_same(r, e, what, preview, strlen(preview), text, shown);
	buf_fini(&clean);
	return same;
}

bool record_differs_unless(struct record *r, const struct trace_event *e, const char *what,
			   const char *recorded, const char *replayed)
{
	recorded = recorded != NULL ? recorded : "";
	replayed = replayed != NULL ? replayed : "";
	if (strcmp(recorded, replayed) == 0)
		return true;
	record_differs(r, e, what, recorded, replayed);
	return false;
}

bool record_same_number(struct record *r, const struct trace_event *e, const char *what,
			int64_t recorded, int64_t replayed)
{
	char was[24], is[24];

	if (recorded == replayed)
		return true;
	snprintf(was, sizeof(was), "%" PRId64, recorded);
	snprintf(is, sizeof(is), "%" PRId64, replayed);
	record_differs(r, e, what, was, is);
	return false;
}
