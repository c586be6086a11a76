/* The record of a run as a replay walks through it, and the comparison of the machine's
 * acts with it.
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
#include "codec/redact.h"
#include "codec/utf8.h"
#include "subagent/logbook.h"
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

/* Look at the next event of the kind from *i on, which moves behind it, up to the next
 * InferStart or InferEnd; false: none. */
static bool record_scan(struct record *r, size_t *i, enum event_kind kind)
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
}

/* Must the machine bring this event about? Costs follow from replies, activity from calls, and
 * people speak when they like. */
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

const struct trace_event *record_peek(struct record *r)
{
	for (; r->next < r->events->n; r->next++) {
		const struct trace_event *e = &r->events->events[r->next];

		record_look(r, e);
		if (matters(r, e))
			return e;
		if (e->kind == EVENT_Custom &&
		    strcmp(json_str(r->content, "customType"), "carried_on") == 0)
			r->carried = true;
	}
	record_look(r, NULL);
	return NULL;
}

void record_take(struct record *r)
{
	r->next++;
	r->out->events = r->next;
}

bool record_expect(struct record *r, enum event_kind kind)
{
	const struct trace_event *e = record_peek(r);

	if (r->stopped)
		return false;
	if (e == NULL)
		record_cut(r, "the record ends before what it led to was written");
	else if (e->kind != (int)kind)
		record_other(r, event_kind_name(kind));
	return !r->stopped;
}

bool record_asks(const struct record *r)
{
	const char *state = json_str(r->content, "state");

	return strcmp(state, "asked") == 0 || strcmp(state, "parked") == 0 || record_waits(r);
}

bool record_waits(const struct record *r)
{
	return strcmp(json_str(r->content, "state"), "waits") == 0;
}

bool record_noticed(const struct record *r, const char *word)
{
	const json_t *one;
	size_t i;

	json_array_foreach(json_object_get(r->content, "notices"), i, one)
	{
		if (json_is_string(one) && strcmp(json_string_value(one), word) == 0)
			return true;
	}
	return false;
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

enum record_line record_line(const struct record *r, const char **line, size_t *len)
{
	static const enum record_line kinds[] = {
		[LINE_NONE] = RECORD_AMENDMENT,
		[LINE_USER] = RECORD_USER,
		[LINE_REPLY] = RECORD_ASSISTANT,
	};
	size_t at = past_marks(r);

	if (jsonl_next(r->file, r->len, &at, line, len) != 1)
		return RECORD_NO_LINE;
	return kinds[r->spec->model->dialect->line_kind(*line, *len)];
}

void record_pass(struct record *r)
{
	const char *line;
	size_t len;

	r->at = past_marks(r);
	(void)jsonl_next(r->file, r->len, &r->at, &line, &len);
}

/* Joins the lines of a kind that follow each other, `most` of them. */
static size_t join_lines(struct record ahead, enum record_line kind, size_t most, char between,
			 struct buf *joined)
{
	const char *line;
	size_t len, n = 0;

	while (n < most && record_line(&ahead, &line, &len) == kind) {
		if (n++ > 0)
			buf_addc(joined, between);
		buf_add(joined, line, len);
		record_pass(&ahead);
	}
	return n;
}

size_t record_reply(const struct record *r, char between, struct buf *joined)
{
	size_t most = r->spec->model->dialect->line_an_item ? SIZE_MAX : 1;

	return join_lines(*r, RECORD_ASSISTANT, most, between, joined);
}

size_t record_results(const struct record *r, size_t most, char between, struct buf *joined)
{
	return join_lines(*r, RECORD_USER, most, between, joined);
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

static struct replay_diff *new_diff(struct record *r, const char *what)
{
	struct replay_diff *d = &r->out->diffs[MIN(r->out->ndiffs, REPLAY_DIFFS_MAX - 1u)];

	*d = (struct replay_diff){.byte = -1};
	if (r->seen != NULL) {
		d->lsn = r->seen->shown.lsn;
		d->seq = r->seen->shown.seq;
		snprintf(d->type, sizeof(d->type), "%s", r->seen->shown.type);
	}
	snprintf(d->call, sizeof(d->call), "%s", json_str(r->content, "callId"));
	snprintf(d->what, sizeof(d->what), "%s", what);
	r->out->ndiffs++;
	return d;
}

void record_differs(struct record *r, const char *what, const char *recorded, const char *replayed)
{
	struct replay_diff *d;

	if (r->stopped)
		return;
	d = new_diff(r, what);
	excerpt(d->recorded, recorded, strlen(recorded), 0);
	excerpt(d->replayed, replayed, strlen(replayed), 0);
	r->stopped = true;
}

void record_other(struct record *r, const char *replayed)
{
	record_differs(r, "the event", r->seen->shown.type, replayed);
}

bool record_same(struct record *r, const char *what, const char *recorded, size_t recorded_len,
		 const char *replayed, size_t replayed_len)
{
	size_t least = MIN(recorded_len, replayed_len), at = 0;
	struct replay_diff *d;

	if (r->stopped)
		return true;
	while (at < least && recorded[at] == replayed[at])
		at++;
	if (at == least && recorded_len == replayed_len)
		return true;
	d = new_diff(r, what);
	d->byte = (int64_t)at;
	excerpt(d->recorded, recorded, recorded_len, at);
	excerpt(d->replayed, replayed, replayed_len, at);
	r->stopped = !r->lenient;
	return false;
}

/* Compares `text` with its preview in the event, which is cut and without secrets. */
static void check_preview(struct record *r, const char *what, const char *key, const char *text,
			  size_t len)
{
	const char *preview = json_get_str(r->content, key);
	struct buf clean;

	/* A secret known then may be unknown now, so a redacted preview is not compared. */
	if (preview == NULL || strstr(preview, "[redacted]") != NULL ||
	    strncmp(preview, "(left out: ", 11) == 0)
		return;
	buf_init(&clean, TURN_MAX_BYTES * 2);
	if (redact_text(r->redact, &clean, text, len) >= 0) {
		text = clean.data != NULL ? clean.data : "";
		len = clean.len;
	}
	record_same(r, what, preview, strlen(preview), text,
		    utf8_prefix(text, len, EVENT_PREVIEW_CHARS));
	buf_fini(&clean);
}

static void check_words(struct record *r, const char *what, const char *recorded,
			const char *replayed)
{
	if (strcmp(recorded, replayed) != 0)
		record_differs(r, what, recorded, replayed);
}

void record_check(struct record *r, const char *what, const char *key, const char *replayed)
{
	check_words(r, what, json_str(r->content, key), replayed != NULL ? replayed : "");
}

static void check_number(struct record *r, const char *what, int64_t recorded, int64_t replayed)
{
	char was[24], is[24];

	snprintf(was, sizeof(was), "%" PRId64, recorded);
	snprintf(is, sizeof(is), "%" PRId64, replayed);
	check_words(r, what, was, is);
}

/* ---- the confirmed spec */

void replay_check_spec(struct replay *p, const json_t *spec)
{
	struct record *r = &p->rec;
	const struct agent_limits *l = &p->spec->agent.limits;
	struct agent_limits was = *l;
	struct buf recorded, replayed;
	const json_t *tools;

	if (!record_find(r, EVENT_SubagentSpawn) || r->content == NULL)
		return; /* without the event the requests show the differences */
	record_check(r, "the model", "model", json_get_str(spec, "model"));
	record_check(r, "the role", "role", p->spec->role->name);
	check_preview(r, "the task", "task", p->spec->task, strlen(p->spec->task));
	spec_read_limits(json_object_get(r->content, "limits"), &was);
	check_number(r, "the time limit (ms)", was.time_ms, l->time_ms);
	check_number(r, "the cost limit (micro-USD)", was.cost_microusd, l->cost_microusd);
	check_number(r, "the token limit", was.tokens, l->tokens);
	check_number(r, "the limit of replies", was.iterations, l->iterations);
	tools = json_object_get(r->content, "tools");
	buf_init(&recorded, 1u << 16);
	buf_init(&replayed, 1u << 16);
	for (size_t i = 0; i < json_array_size(tools); i++)
		buf_addf(&recorded, "%s ", json_string_value(json_array_get(tools, i)));
	for (unsigned i = 0; i < p->spec->agent.ntools; i++)
		buf_addf(&replayed, "%s ", p->spec->tools[i]->name);
	check_words(r, "its tools", recorded.data != NULL ? recorded.data : "",
		    replayed.data != NULL ? replayed.data : "");
	buf_fini(&recorded);
	buf_fini(&replayed);
	if (json_get_str(r->content, "configHash") != NULL)
		record_check(r, "the hash of what was confirmed", "configHash",
			     json_get_str(spec, "configHash"));
}

/* ---- a call of the model */

/* The request's hash with the parameters that the record names. */
static bool request_hash(const struct replay *p, bool force, char out[HASH_HEX_LEN + 1])
{
	const struct model *m = p->spec->model;
	struct agent_infer call = {
		.max_output = json_get_int(p->rec.content, "maxOutput", 0),
		.force_submit = force,
	};
	struct buf tail;
	int rv;

	buf_init(&tail, 1u << 16);
	rv = m->dialect->encode_tail(&tail, m, p->spec->thinking, &call);
	if (rv == 0)
		hash_sha256_with(&p->prefix, tail.data, tail.len, out);
	buf_fini(&tail);
	return rv == 0;
}

bool replay_request_is(const struct replay *p)
{
	char mine[HASH_HEX_LEN + 1];

	return request_hash(p, record_noticed(&p->rec, "force_submit"), mine) &&
	       strcmp(json_str(p->rec.content, "requestHash"), mine) == 0;
}

void replay_check_infer(struct replay *p, const struct agent_infer *call)
{
	struct record *r = &p->rec;
	const char *id = json_str(r->content, "callId");
	int64_t max_output = json_get_int(r->content, "maxOutput", 0);
	const char *prefix = json_get_str(r->content, "prefixHash");
	const char *request = json_get_str(r->content, "requestHash");
	char mine[16], hash[HASH_HEX_LEN + 1];
	size_t len = (size_t)snprintf(mine, sizeof(mine), "i%d", call->iteration);

	if (strncmp(id, mine, len) != 0 || (id[len] != '\0' && id[len] != '.'))
		record_differs(r, "the call of the model", id, mine);
	record_check(r, "the model", "model", p->spec->model->id);
	/* Budgets and refusals may have lowered the maximum; nothing raises it. */
	if (max_output > call->max_output)
		check_number(r, "the most it may write (tokens)", max_output, call->max_output);
	if (r->stopped)
		return;
	hash_sha256_with(&p->prefix, "", 0, hash);
	if (prefix != NULL && strcmp(prefix, hash) != 0)
		record_same(r, "the hash of the request's messages", prefix, strlen(prefix), hash,
			    HASH_HEX_LEN);
	else if (request != NULL && request_hash(p, call->force_submit, hash))
		record_same(r, "the hash of the request with its parameters", request,
			    strlen(request), hash, HASH_HEX_LEN);
}

/* ---- the position */

/* The position without the clock, which stands still here, and without a service's words. */
static void write_position(struct agent_position *at, const struct redact *redact, struct buf *out)
{
	struct jw w;

	at->used_ms = 0;
	buf_init(out, 1u << 20);
	jw_init(&w, out);
	jw_object(&w, NULL);
	agent_position_write(at, "", redact, &w);
	jw_end(&w);
	buf_addc(out, '\0');
}

void replay_check_position(struct replay *p)
{
	struct record *r = &p->rec;
	size_t i = r->next;
	struct agent_position was, is;
	struct buf a, b;
	int rv;

	while (record_scan(r, &i, EVENT_StateWrite)) {
		if (strcmp(json_str(r->content, "key"), "position") != 0)
			continue;
		rv = agent_position_read(&was, json_object_get(r->content, "value"));
		agent_position_of(&p->agent, p->now, &is);
		write_position(&was, r->redact, &a);
		write_position(&is, r->redact, &b);
		if (rv == 0 && a.data != NULL && b.data != NULL)
			record_same(r, "where the machine stands", a.data, a.len - 1, b.data,
				    b.len - 1);
		buf_fini(&a);
		buf_fini(&b);
		agent_position_fini(&was);
		return;
	}
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

void replay_check_result(struct replay *p, const struct turn_call *c)
{
	struct record *r = &p->rec;
	char what[160];

	record_check(r, "the call that is answered", "callId", c->id);
	check_number(r, "its success", json_get_bool(r->content, "success", false), c->success);
	record_check(r, "its class of error", "errorClass", c->error_class);
	snprintf(what, sizeof(what), "the output of %.80s", c->name);
	check_preview(r, what, "output", c->output != NULL ? c->output : "",
		      c->output != NULL ? c->output_len : 0);
}

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

/* Reads the result from the lines that begin at `at`. */
static void find_result_at(const struct replay *p, size_t at, struct replay_record_wanted *w)
{
	struct record there = p->rec;
	struct buf lines;

	there.at = at;
	buf_init(&lines, REPLAY_FILE_MAX);
	if (record_results(&there, SIZE_MAX, ',', &lines) > 0)
		(void)p->spec->model->dialect->results(lines.data, lines.len, want_result, w, NULL);
	buf_fini(&lines);
}

/* Does the text only name an earlier result instead of repeating it? */
static bool is_reference(const struct replay_record_wanted *w, struct call_ref *to)
{
	static const char words[] = "unchanged since ";
	size_t n = sizeof(words) - 1;

	return w->text != NULL && w->len > n && w->len < n + 32 && memcmp(w->text, words, n) == 0 &&
	       call_ref_read(w->text + n, to);
}

static void find_result(struct replay *p, struct replay_record_wanted *w, const char *preview)
{
	struct call_ref to;

	find_result_at(p, p->rec.at, w);
	if (!is_reference(w, &to) ||
	    (preview != NULL && strncmp(preview, w->text, w->len) == 0)) /* a tool's own words */
		return;
	for (size_t i = 0; i < p->ncalls; i++) {
		if (p->calls[i].ref.iteration != to.iteration || p->calls[i].ref.n != to.n)
			continue;
		*w = (struct replay_record_wanted){.mem = w->mem, .k = to.n - 1};
		find_result_at(p, p->calls[i].at, w);
		return;
	}
}

static const char *replay_record_keep(struct turn *t, const char *s)
{
	return arena_copy(&t->mem, s != NULL ? s : "", s != NULL ? strlen(s) : 0);
}

bool replay_take_result(struct replay *p, unsigned i)
{
	struct turn *t = p->agent.turn;
	struct turn_call *c = &t->calls[i];
	const json_t *content = p->rec.content;
	const char *preview = json_get_str(content, "output");
	const char *artifact = json_str(content, "artifact");
	struct replay_record_wanted w = {.mem = &t->mem, .k = i};

	c->success = json_get_bool(content, "success", false);
	find_result(p, &w, preview);
	c->output = w.text != NULL ? w.text : replay_record_keep(t, preview);
	c->output_len = w.text != NULL ? w.len : preview != NULL ? strlen(preview) : 0;
	c->error_class = replay_record_keep(t, json_get_str(content, "errorClass"));
	c->full_bytes = json_get_int(content, "bytes", (int64_t)c->output_len);
	c->artifact = artifact[0] != '\0' ? replay_record_keep(t, artifact) : NULL;
	if (c->output == NULL || c->error_class == NULL) {
		p->rv = AVA_ENOMEM;
		p->rec.stopped = true;
		return false;
	}
	c->answered = c->recorded = true;
	replay_check_result(p, c);
	return !p->rec.stopped;
}

/* ---- the end */

/* Compares one event of the end; `replayed` NULL: there must be none of that kind. */
static void check_end(struct record *r, enum event_kind kind, const char *what, const char *key,
		      const char *replayed)
{
	const struct trace_event *e = record_peek(r);

	if (r->stopped || (replayed == NULL && (e == NULL || e->kind != (int)kind)))
		return;
	if (replayed == NULL) {
		record_other(r, "none of this kind");
	} else if (record_expect(r, kind)) {
		record_check(r, what, key, replayed);
		record_take(r);
	}
}

void replay_check_end(struct replay *p, const struct agent_end *end)
{
	struct record *r = &p->rec;

	check_end(r, EVENT_Exhausted, "what was used up", "resource", end->exhausted);
	check_end(r, EVENT_Error, "the class of the error", "class", end->error_class);
	if (!record_expect(r, EVENT_SubagentComplete))
		return;
	record_check(r, "the status", "status", ava_status_name(end->status));
	record_check(r, "the reason to stop", "stopReason", end->stop_reason);
	if (end->summary != NULL && end->summary[0] != '\0')
		check_preview(r, "the summary", "summary", end->summary, strlen(end->summary));
	record_take(r);
}
