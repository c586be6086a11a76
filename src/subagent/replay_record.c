/* The record of a run as a replay walks through it, and the comparison of what the run would
 * commit with it.
 *
 * Two files tell the same story: the events (what happened, previews, hashes)
 * and messages.jsonl (the bytes). A difference is told with the event at which
 * it shows, the first byte, and a piece of both sides. Hashes tell that a request is
 * not the one that was sent. Files and memory can fail. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/tool.h"
#include "base/error.h"
#include "base/util.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "subagent/replay_world.h"

#define EXCERPT_PART 60 /* bytes shown of each side of a difference */

static void record_look(struct record *r, const struct trace_event *e)
{
	if (r->seen == e)
		return;
	json_decref(r->content);
	json_decref(r->meta);
	r->content = e != NULL ? trace_content(e) : NULL;
	r->meta = e != NULL ? trace_metadata(e) : NULL;
	r->seen = e;
}

bool record_find(struct record *r, enum event_kind kind)
{
	for (size_t i = r->next; i < r->events->n; i++) {
		if (r->events->events[i].kind != (int)kind)
			continue;
		record_look(r, &r->events->events[i]);
		return true;
	}
	return false;
}

bool record_scan(struct record *r, size_t *i, enum event_kind kind)
{
	while (*i < r->events->n) {
		const struct trace_event *e = &r->events->events[(*i)++];

		if (e->kind == EVENT_InferStart || e->kind == EVENT_InferEnd)
			break;
		if (e->kind != (int)kind)
			continue;
		record_look(r, e);
		return true;
	}
	return false;
}

int record_open(struct record *r, int root_fd, const char *run, struct ava_error *err)
{
	char path[LOGBOOK_PATH], *data;
	const char *line;
	size_t len, at = 0, n;
	int rv;

	r->stood = (struct agent_position)AGENT_POSITION_NONE;
	logbook_run_path(run, path);
	rv = logbook_read(root_fd, path, REPLAY_FILE_MAX, &data, &len, err);
	if (rv == AVA_ENOENT)
		return err_set(err, rv, "there is no run %s, or its log is gone", run);
	if (rv != 0)
		return rv;
	rv = ava_trace_new(&r->events, "", NULL, err);
	while (rv == 0 && jsonl_next(data, len, &at, &line, &n) == 1) {
		rv = ava_trace_append(r->events, line, n, err);
		if (rv == AVA_EINVAL)
			rv = err_wrap(err, AVA_ECORRUPT, "%s, event %zu", path, r->events->n + 1);
	}
	free(data);
	logbook_messages_path(run, path);
	if (rv == 0)
		rv = logbook_read(root_fd, path, REPLAY_FILE_MAX, &r->file, &r->len, err);
	if (rv == AVA_ENOENT)
		return err_set(err, rv, "%s is gone: without what %s sent it cannot be replayed",
			       path, run);
	if (rv == 0 && r->events->n == 0)
		rv = err_set(err, AVA_ECORRUPT, "the log of %s has no event", run);
	if (rv == 0 && record_find(r, EVENT_SubagentComplete))
		r->end = json_incref(r->content);
	return rv;
}

void record_close(struct record *r)
{
	ava_trace_free(r->events);
	free(r->file);
	json_decref(r->content);
	json_decref(r->meta);
	json_decref(r->end);
	agent_position_fini(&r->stood);
}

/* Must the machine bring this event about? Costs follow from replies, activity from calls, and
 * people speak when they like. */
static bool matters(int kind, const json_t *content)
{
	switch (kind) {
	case EVENT_InferStart:
	case EVENT_InferEnd:
	case EVENT_ToolCall:
	case EVENT_ToolResult:
	case EVENT_Exhausted:
	case EVENT_Error:
	case EVENT_ContextEdit:
	case EVENT_Check:
	case EVENT_SubagentComplete:
		return true;
	case EVENT_Waiting: /* a pause is asked for at any time, and begins at the end of a turn */
		return strcmp(json_str(content, "kind"), "pause") != 0 ||
		       strcmp(json_str(content, "state"), "paused") == 0;
	case EVENT_Limit:
		return json_object_get(content, "warned") != NULL ||
		       json_object_get(content, "shared") != NULL;
	default:
		return false;
	}
}

size_t record_restarted(struct record *r)
{
	size_t last = 0;

	for (size_t i = r->next + 1; i < r->events->n; i++) {
		int kind = r->events->events[i].kind;

		record_look(r, &r->events->events[i]);
		if (kind == EVENT_Custom &&
		    strcmp(json_str(r->content, "customType"), "carried_on") == 0)
			last = i;
		else if (kind == EVENT_StateWrite ||
			 (matters(kind, r->content) && kind != EVENT_ToolCall &&
			  kind != EVENT_ToolResult && kind != EVENT_Check &&
			  (kind != EVENT_Waiting || json_str(r->content, "callId")[0] != 'c')))
			break;
	}
	record_look(r, &r->events->events[r->next]);
	return last;
}

const struct trace_event *record_peek(struct record *r)
{
	for (; r->next < r->events->n; r->next++) {
		const struct trace_event *e = &r->events->events[r->next];

		record_look(r, e);
		if (matters(e->kind, r->content))
			return e;
	}
	record_look(r, NULL);
	return NULL;
}

const struct trace_event *record_behind(struct record *r, size_t *i)
{
	while (++*i < r->events->n) {
		const struct trace_event *e = &r->events->events[*i];

		record_look(r, e);
		if (e->kind == EVENT_StateWrite || matters(e->kind, r->content))
			return e;
	}
	return NULL;
}

void record_take(struct record *r)
{
	r->next++;
	r->out->events = r->next;
}

bool record_asks(const struct record *r)
{
	const char *state = json_str(r->content, "state");

	return strcmp(state, "asked") == 0 || strcmp(state, "parked") == 0 || record_waits(r);
}

bool record_rests(const struct record *r)
{
	return strcmp(json_str(r->content, "state"), "paused") == 0;
}

bool record_waits(const struct record *r)
{
	return strcmp(json_str(r->content, "state"), "waits") == 0;
}

int64_t record_end_iterations(const struct record *r)
{
	return json_get_int(json_object_get(r->end, "totals"), "iterations", -1);
}

void record_cut(struct record *r, const char *why)
{
	r->out->reason = why;
	r->stopped = true;
}

/* ---- lines */

/* The offset of the next line that is no mark: marks are no part of the conversation. */
static size_t past_marks(const struct record *r)
{
	size_t at = r->at, next = at, len;
	const char *line;

	while (jsonl_next(r->file, r->len, &next, &line, &len) == 1 &&
	       jscan_begins(line, len, "{\"mark\":"))
		at = next;
	return at;
}

int record_line(const struct record *r, const char **line, size_t *len)
{
	size_t at = past_marks(r);

	if (jsonl_next(r->file, r->len, &at, line, len) != 1)
		return -1;
	return (int)r->spec->model->dialect->line_kind(*line, *len);
}

void record_pass(struct record *r)
{
	const char *line;
	size_t len;

	r->at = past_marks(r);
	(void)jsonl_next(r->file, r->len, &r->at, &line, &len);
}

size_t record_lines(const struct record *r, enum line_kind kind, size_t most, struct buf *joined)
{
	struct record ahead = *r;
	const char *line;
	size_t len, n = 0;

	while (n < most && record_line(&ahead, &line, &len) == (int)kind) {
		if (n++ > 0)
			buf_addc(joined, ',');
		buf_add(joined, line, len);
		record_pass(&ahead);
	}
	return n;
}

/* ---- differences */

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

static void note(struct record *r, const char *what, int64_t byte, const char *recorded,
		 size_t recorded_len, const char *replayed, size_t replayed_len)
{
	struct replay_diff *d = &r->out->diffs[MIN(r->out->ndiffs, REPLAY_DIFFS_MAX - 1u)];
	size_t at = byte < 0 ? 0 : (size_t)byte;

	*d = (struct replay_diff){.byte = byte};
	if (r->seen != NULL) {
		d->lsn = r->seen->shown.lsn;
		d->seq = r->seen->shown.seq;
		snprintf(d->type, sizeof(d->type), "%s", r->seen->shown.type);
	}
	snprintf(d->call, sizeof(d->call), "%s", json_str(r->content, "callId"));
	snprintf(d->what, sizeof(d->what), "%s", what);
	excerpt(d->recorded, recorded, recorded_len, at);
	excerpt(d->replayed, replayed, replayed_len, at);
	r->out->ndiffs++;
	r->stopped = byte < 0 || !r->lenient;
}

void record_differs(struct record *r, const char *what, const char *recorded, const char *replayed)
{
	if (!r->stopped)
		note(r, what, -1, recorded, strlen(recorded), replayed, strlen(replayed));
}

void record_other(struct record *r, const char *replayed)
{
	record_differs(r, "the event", r->seen->shown.type, replayed);
}

/* Compares bytes; true: they are the same. */
static bool record_same(struct record *r, const char *what, const char *recorded,
			size_t recorded_len, const char *replayed, size_t replayed_len)
{
	size_t least = MIN(recorded_len, replayed_len), at = 0;

	while (at < least && recorded[at] == replayed[at])
		at++;
	if (r->stopped || (at == least && recorded_len == replayed_len))
		return true;
	note(r, what, (int64_t)at, recorded, recorded_len, replayed, replayed_len);
	return false;
}

/* ---- what the run would commit */

enum compared_as { AS_WORD, AS_TEXT, AS_HASH };

/* The members of an event that are compared; the rest is numbers, times and words that only the
 * service, the clock or other runs know. */
static const struct compared {
	enum event_kind kind;
	const char *key;
	enum compared_as as;
	const char *what; /* NULL: the output of a tool */
} compared[] = {
	{EVENT_SubagentSpawn, "model", AS_WORD, "the model"},
	{EVENT_SubagentSpawn, "role", AS_WORD, "the role"},
	{EVENT_SubagentSpawn, "task", AS_TEXT, "the task"},
	{EVENT_SubagentSpawn, "limits", AS_WORD, "its limits"},
	{EVENT_SubagentSpawn, "tools", AS_WORD, "its tools"},
	{EVENT_SubagentSpawn, "configHash", AS_HASH, "the hash of what was confirmed"},
	{EVENT_InferStart, "callId", AS_WORD, "the call of the model"},
	{EVENT_InferStart, "model", AS_WORD, "the model"},
	{EVENT_InferStart, "maxOutput", AS_WORD, "the most it may write (tokens)"},
	{EVENT_InferStart, "prefixHash", AS_HASH, "the hash of the request's messages"},
	{EVENT_InferStart, "requestHash", AS_HASH, "the hash of the request with its parameters"},
	{EVENT_ToolCall, "callId", AS_WORD, "the call"},
	{EVENT_ToolResult, "callId", AS_WORD, "the call that is answered"},
	{EVENT_ToolResult, "success", AS_WORD, "its success"},
	{EVENT_ToolResult, "errorClass", AS_WORD, "its class of error"},
	{EVENT_ToolResult, "output", AS_TEXT, NULL},
	{EVENT_Check, "state", AS_WORD, "what became of its check"},
	{EVENT_Check, "command", AS_TEXT, "the command of its check"},
	{EVENT_Check, "round", AS_WORD, "how often its check ran"},
	{EVENT_Check, "outcome", AS_WORD, "the outcome of its check"},
	{EVENT_Check, "output", AS_TEXT, "what its check said"},
	{EVENT_Waiting, "callId", AS_WORD, "the call that is asked about"},
	{EVENT_Waiting, "state", AS_WORD, "what became of the question"},
	{EVENT_Exhausted, "resource", AS_WORD, "what was used up"},
	{EVENT_Error, "class", AS_WORD, "the class of the error"},
	{EVENT_SubagentComplete, "status", AS_WORD, "the status"},
	{EVENT_SubagentComplete, "stopReason", AS_WORD, "the reason to stop"},
	{EVENT_SubagentComplete, "summary", AS_TEXT, "the summary"},
};

/* A value for people: a string without its quotes, "" for none. */
static const char *record_words(const json_t *v, struct buf *out)
{
	buf_init(out, 1u << 20);
	if (json_is_string(v))
		buf_adds(out, json_string_value(v));
	else if (v != NULL)
		(void)json_dump(out, v);
	buf_addc(out, '\0');
	return out->data != NULL ? out->data : "";
}

static void compare_words(struct record *r, const struct compared *c, const json_t *is)
{
	const json_t *was = json_object_get(r->content, c->key), *now = json_object_get(is, c->key);
	struct buf a, b;

	if (was == now || json_equal(was, now))
		return;
	record_differs(r, c->what, record_words(was, &a), record_words(now, &b));
	buf_fini(&a);
	buf_fini(&b);
}

/* Is a text or hash as it was? A text in which a secret was left out is not compared: the secret
 * may be unknown now. */
static bool compare_text(struct record *r, const struct compared *c, const json_t *is)
{
	const char *was = json_get_str(r->content, c->key), *now = json_str(is, c->key);
	char what[160];

	if (was == NULL || (c->as == AS_TEXT && (strstr(was, "[redacted]") != NULL ||
						 strncmp(was, "(left out: ", 11) == 0)))
		return true;
	snprintf(what, sizeof(what), "the output of %.80s", json_str(is, "name"));
	return record_same(r, c->what != NULL ? c->what : what, was, strlen(was), now, strlen(now));
}

/* Compares the event looked at with `is`, the content that the run would write. */
static void compare_event(struct replay *p, int kind, const json_t *is)
{
	struct record *r = &p->rec;
	bool asks = kind == EVENT_Waiting && record_asks(r) &&
		    (strcmp(json_str(is, "state"), "asked") == 0 ||
		     strcmp(json_str(is, "state"), "parked") == 0);

	for (size_t i = 0; i < ARRAY_LEN(compared) && !r->stopped; i++) {
		const struct compared *c = &compared[i];

		if ((int)c->kind != kind || (asks && strcmp(c->key, "state") == 0))
			continue;
		if (c->as == AS_WORD)
			compare_words(r, c, is);
		else if (!compare_text(r, c, is) && c->as == AS_HASH)
			break; /* the next hash is over the same bytes and more */
	}
}

/* The whole position, without the clock, which stands still here, and a service's words. */
static void position_text(const struct agent_position *p, struct buf *out)
{
	struct agent_position whole = *p;
	struct jw w;

	whole.delta = 0;
	whole.used_ms = 0;
	buf_init(out, 1u << 20);
	jw_init(&w, out);
	jw_object(&w, NULL);
	agent_position_write(&whole, "", NULL, &w);
	jw_end(&w);
}

/* Reads the record's positions up to the event before `end`. AVA_ENOENT: one is missing. */
static int stand_before(struct record *r, size_t end)
{
	int rv = 0;

	for (; rv == 0 && r->stood_at < end; r->stood_at++) {
		const struct trace_event *e = &r->events->events[r->stood_at];
		json_t *content = e->kind == EVENT_StateWrite ? trace_content(e) : NULL;

		if (e->kind == EVENT_StateWrite)
			rv = agent_position_read(&r->stood, json_object_get(content, "value"));
		json_decref(content);
	}
	return rv;
}

/* Compares the position written behind an InferStart with the next one in the record, if any. */
static void compare_position(struct record *r, const json_t *is)
{
	static const char what[] = "where the machine stands";
	struct agent_position now = AGENT_POSITION_NONE;
	size_t i = r->next;
	struct buf a, b;

	if (!record_scan(r, &i, EVENT_StateWrite))
		return;
	if (stand_before(r, i) != 0) {
		record_differs(r, what, "a position that it builds on is missing", "");
		return;
	}
	if (agent_position_read(&now, json_object_get(is, "value")) == 0) {
		position_text(&r->stood, &a);
		position_text(&now, &b);
		record_same(r, what, a.data, a.len, b.data, b.len);
		buf_fini(&a);
		buf_fini(&b);
	}
	agent_position_fini(&now);
}

/* Compares a line that the run would add to its conversation. Where bytes differ and the replay
 * goes on, it does so with the recorded ones. */
static void compare_line(struct replay *p, const char *is, size_t len)
{
	struct record *r = &p->rec;
	bool results = p->run.spec->model->dialect->line_kind(is, len) == LINE_USER;
	const char *was;
	size_t was_len;

	(void)record_peek(r); /* a difference is told with this event */
	if (record_line(r, &was, &was_len) < 0) {
		record_cut(r, "the record ends before the results were written");
		return;
	}
	record_pass(r);
	if (record_same(r,
			results ? "the line of results" : "what was taken out of the conversation",
			was, was_len, is, len))
		return;
	p->run.agent.at.new_bytes += (int64_t)was_len - (int64_t)len;
	p->rv = replay_rehash(p, NULL, NULL);
}

static void compare_lines(struct replay *p, const struct draft *d)
{
	const char *line;
	size_t len;

	for (unsigned i = 0; i < d->nparts; i++) {
		const struct buf *b = &d->parts[i]->bytes;

		for (size_t at = 0; d->parts[i]->kind == DRAFT_MESSAGES && !p->rec.stopped &&
				    jsonl_next(b->data, b->len, &at, &line, &len) == 1;)
			compare_line(p, line, len);
	}
}

/* Is it an event that the replay has taken from the record already, or that a stop of the runtime
 * may have kept from it? */
static bool is_given(int kind, const json_t *is)
{
	return (kind == EVENT_InferEnd && json_get_str(is, "errorClass") == NULL) ||
	       (kind == EVENT_Waiting && strcmp(json_str(is, "state"), "stopped") == 0);
}

static void compare_next(struct replay *p, int kind, const json_t *is, bool behind_start)
{
	struct record *r = &p->rec;
	const struct trace_event *e;

	if (kind == EVENT_SubagentSpawn) {
		if (record_find(r, EVENT_SubagentSpawn)) /* else the requests show differences */
			compare_event(p, kind, is);
	} else if (kind == EVENT_StateWrite && behind_start) {
		compare_position(r, is);
	} else if (matters(kind, is) && !is_given(kind, is)) {
		/* Nobody answers a question any more when the run ends. */
		while (p->run.agent.ending && (e = record_peek(r)) != NULL &&
		       e->kind == EVENT_Waiting)
			record_take(r);
		e = record_peek(r);
		if (e == NULL)
			record_cut(r, "the record ends before what it led to was written");
		else if (e->kind != kind)
			record_other(r, event_kind_name((enum event_kind)kind));
		if (r->stopped)
			return;
		compare_event(p, kind, is);
		record_take(r);
	}
}

void replay_compare(struct draft *d, void *replay)
{
	struct replay *p = replay;
	bool lines = false, behind_start = false;
	struct event_view v;
	struct buf line;
	unsigned i = 0;
	json_t *is;
	int rv = 0;

	buf_init(&line, REPLAY_FILE_MAX);
	while (!p->rec.stopped && (rv = draft_next(d, &i, &line, &v)) == 1) {
		/* Results, limits and questions stand before the line that tells them. */
		if (!lines && v.kind != EVENT_ToolResult && v.kind != EVENT_Limit &&
		    v.kind != EVENT_Waiting) {
			compare_lines(p, d);
			lines = true;
		}
		is = json_parse(v.content.s, v.content.len, NULL);
		if (is == NULL)
			rv = AVA_ENOMEM;
		else if (!p->rec.stopped)
			compare_next(p, v.kind, is, behind_start);
		behind_start = v.kind == EVENT_InferStart;
		json_decref(is);
		if (rv < 0)
			break;
	}
	if (!lines && !p->rec.stopped)
		compare_lines(p, d);
	buf_fini(&line);
	if (rv < 0)
		p->rv = rv;
	p->rec.stopped |= p->rv < 0;
	if (d->done == NULL) /* nobody waits for it */
		draft_free(d);
}

/* ---- replies */

/* The recorded sentence about arguments that could not be read. */
static const char *args_error(struct record *r, struct turn *t, const char *call_id)
{
	static const char begin[] = "bad arguments: ";
	const char *found = "they are no JSON object", *output;

	for (size_t i = r->next + 1; record_scan(r, &i, EVENT_ToolResult);) {
		output = json_str(r->content, "output");
		if (strcmp(json_str(r->content, "callId"), call_id) != 0 ||
		    strncmp(output, begin, sizeof(begin) - 1) != 0)
			continue;
		output += sizeof(begin) - 1;
		output = arena_copy(&t->mem, output, strlen(output));
		found = output != NULL ? output : found;
	}
	return found;
}

/* Is `wire` the name, with '_' for characters that a service refuses? */
static bool same_name(const char *name, const char *wire)
{
	for (; *name != '\0' && *wire != '\0'; name++, wire++)
		if (*name != *wire && *wire != '_')
			return false;
	return *wire == '\0';
}

void replay_mend_reply(struct replay *p, struct turn *t)
{
	struct record *r = &p->rec;
	size_t at = r->next + 1;
	const char *thinking;
	char id[24];

	for (unsigned i = 0; i < t->ncalls && record_scan(r, &at, EVENT_ToolCall); i++) {
		struct turn_call *c = &t->calls[i];
		const char *name = json_str(r->content, "name");
		const json_t *args = json_object_get(r->content, "args");

		if (strcmp(name, c->name) != 0 && same_name(name, c->name)) {
			name = arena_copy(&t->mem, name, strlen(name));
			c->name = name != NULL ? name : c->name;
		}
		if (json_is_string(args) && json_string_length(args) == 0) {
			snprintf(id, sizeof(id), "%s", json_str(r->content, "callId"));
			c->args = NULL;
			c->args_error = args_error(r, t, id);
		}
	}
	at = r->next + 1; /* lines lack thinking that is not sent back */
	if (t->thinking_len == 0 && record_scan(r, &at, EVENT_ExtendedThinking)) {
		thinking = json_str(r->content, "thinking");
		t->thinking = arena_copy(&t->mem, thinking, strlen(thinking));
		t->thinking_len = t->thinking != NULL ? strlen(thinking) : 0;
	}
}

/* ---- results */

struct replay_record_wanted {
	struct arena *mem;
	size_t k, len;
	const char *text; /* text of the result; NULL: not found */
};

static int want_result(size_t k, const char *text, size_t len, bool is_error, void *user)
{
	struct replay_record_wanted *w = user;

	if (k != w->k)
		return 0;
	w->text = arena_copy(w->mem, text, len);
	w->len = len;
	return 1;
}

/* Does the text only name an earlier result instead of repeating it? */
static bool is_reference(const struct replay_record_wanted *w, struct call_ref *to)
{
	static const char words[] = "unchanged since ";
	size_t n = sizeof(words) - 1;

	return w->text != NULL && w->len > n && w->len < n + 32 && memcmp(w->text, words, n) == 0 &&
	       call_ref_read(w->text + n, to);
}

/* Reads the result from the lines at the cursor, or where those refer to. */
static void find_result(struct replay *p, struct replay_record_wanted *w, const char *preview)
{
	struct call_ref to;
	struct buf lines;

	buf_init(&lines, REPLAY_FILE_MAX);
	if (record_lines(&p->rec, LINE_USER, SIZE_MAX, &lines) > 0)
		(void)p->run.spec->model->dialect->results(lines.data, lines.len, want_result, w,
							   NULL);
	buf_reset(&lines);
	/* The tool's own words may look like a reference. */
	if (is_reference(w, &to) && (preview == NULL || strncmp(preview, w->text, w->len) != 0)) {
		w->text = NULL;
		if (recall_result(&p->run, to, &lines, NULL) == 0) {
			w->text = arena_copy(w->mem, lines.data, lines.len);
			w->len = lines.len;
		}
	}
	buf_fini(&lines);
}

static const char *replay_record_keep(struct turn *t, const char *s)
{
	return arena_copy(&t->mem, s != NULL ? s : "", s != NULL ? strlen(s) : 0);
}

int replay_take_result(struct replay *p, struct turn *t, struct turn_call *c)
{
	const json_t *content = p->rec.content;
	const char *preview = json_get_str(content, "output");
	const char *artifact = json_str(content, "artifact");
	struct replay_record_wanted w = {.mem = &t->mem, .k = (size_t)(c - t->calls)};

	c->success = json_get_bool(content, "success", false);
	find_result(p, &w, preview);
	c->output = w.text != NULL ? w.text : replay_record_keep(t, preview);
	c->output_len = w.text != NULL ? w.len : preview != NULL ? strlen(preview) : 0;
	c->error_class = replay_record_keep(t, json_get_str(content, "errorClass"));
	c->full_bytes = json_get_int(content, "bytes", (int64_t)c->output_len);
	c->artifact = artifact[0] != '\0' ? replay_record_keep(t, artifact) : NULL;
	c->ran = json_get_bool(content, "ran", false); /* false: the runtime wrote the result */
	c->answered = true;
	return c->output != NULL && c->error_class != NULL ? 0 : AVA_ENOMEM;
}
