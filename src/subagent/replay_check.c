/* What the machine does against what the record says it did.
 *
 * Each comparison names the event at which a difference shows. Hashes tell that
 * a request is not the one that was sent; where the two can be laid side by
 * side the first byte is named too. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/position.h"
#include "agent/tool.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "subagent/record.h"
#include "subagent/replay_world.h"

#define RESULT_LINES_MAX ((size_t)32 << 20)

/* ---- what was confirmed */

static const struct trace_event *spawn_event(const struct replay *p)
{
	for (size_t i = 0; i < p->rec.events->n; i++)
		if (p->rec.events->events[i].kind == EVENT_SubagentSpawn)
			return &p->rec.events->events[i];
	return NULL;
}

static void check_limits(struct replay *p, const struct trace_event *e, const json_t *limits)
{
	const struct agent_limits *l = &p->spec->agent.limits;

	record_same_number(&p->rec, e, "the time limit (ms)",
			   json_get_fixed(limits, "seconds", 3, l->time_ms), l->time_ms);
	record_same_number(&p->rec, e, "the cost limit (micro-USD)",
			   json_get_fixed(limits, "costCents", 4, l->cost_microusd),
			   l->cost_microusd);
	record_same_number(&p->rec, e, "the token limit", json_get_int(limits, "tokens", l->tokens),
			   l->tokens);
	record_same_number(&p->rec, e, "the limit of replies",
			   json_get_int(limits, "iterations", l->iterations), l->iterations);
}

static void check_tools(struct replay *p, const struct trace_event *e, const json_t *tools)
{
	struct buf was, is;

	buf_init(&was, 1u << 16);
	buf_init(&is, 1u << 16);
	for (size_t i = 0; i < json_array_size(tools); i++)
		buf_addf(&was, "%s ", json_string_value(json_array_get(tools, i)));
	for (unsigned i = 0; i < p->spec->agent.ntools; i++)
		buf_addf(&is, "%s ", p->spec->tools[i]->name);
	record_differs_unless(&p->rec, e, "its tools", was.data, is.data);
	buf_fini(&was);
	buf_fini(&is);
}

void replay_check_spec(struct replay *p, const json_t *spec)
{
	const struct trace_event *e = spawn_event(p);
	json_t *content = e != NULL ? trace_content(e) : NULL;
	const char *task = p->spec->task;

	if (content == NULL) /* older, or lost: the requests tell */
		return;
	record_differs_unless(&p->rec, e, "the model", json_get_str(content, "model"),
			      json_get_str(spec, "model"));
	record_differs_unless(&p->rec, e, "the role", json_get_str(content, "role"),
			      p->spec->role->name);
	record_same_preview(&p->rec, e, "the task", json_get_str(content, "task"), task,
			    strlen(task));
	check_limits(p, e, json_object_get(content, "limits"));
	check_tools(p, e, json_object_get(content, "tools"));
	if (json_get_str(content, "configHash") != NULL)
		record_differs_unless(&p->rec, e, "the hash of what was confirmed",
				      json_get_str(content, "configHash"),
				      json_get_str(spec, "configHash"));
	json_decref(content);
}

/* ---- a call of the model */

void replay_prefix_hash(const struct replay *p, char out[HASH_HEX_LEN + 1])
{
	hash_sha256_with(&p->prefix, "", 0, out);
}

static bool has_notice(const json_t *content, const char *word)
{
	const json_t *one;
	size_t i;

	json_array_foreach(json_object_get(content, "notices"), i, one)
	{
		if (json_is_string(one) && strcmp(json_string_value(one), word) == 0)
			return true;
	}
	return false;
}

/* The request's hash with the parameters that the record names. */
static bool request_hash(const struct replay *p, const json_t *content, bool force,
			 char out[HASH_HEX_LEN + 1])
{
	const struct model *m = p->spec->model;
	struct agent_infer call = {
		.max_output = json_get_int(content, "maxOutput", 0),
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

bool replay_request_is(const struct replay *p, const struct trace_event *e)
{
	json_t *content = trace_content(e);
	const char *request = json_get_str(content, "requestHash");
	char mine[HASH_HEX_LEN + 1];
	bool is = request != NULL &&
		  request_hash(p, content, has_notice(content, "force_submit"), mine) &&
		  strcmp(request, mine) == 0;

	json_decref(content);
	return is;
}

static void check_hashes(struct replay *p, const struct trace_event *e, bool force)
{
	const json_t *content = p->rec.content;
	const char *prefix = json_get_str(content, "prefixHash");
	const char *request = json_get_str(content, "requestHash");
	char mine[HASH_HEX_LEN + 1];

	hash_sha256_with(&p->prefix, "", 0, mine);
	if (prefix != NULL && strcmp(prefix, mine) != 0) {
		record_same(&p->rec, e, "the hash of the request's messages", prefix,
			    strlen(prefix), mine, strlen(mine));
		return;
	}
	if (request != NULL && request_hash(p, content, force, mine))
		record_same(&p->rec, e, "the hash of the request with its parameters", request,
			    strlen(request), mine, strlen(mine));
}

void replay_check_infer(struct replay *p, const struct trace_event *e,
			const struct agent_infer *call)
{
	struct record *r = &p->rec;
	const char *id = json_get_str(r->content, "callId");
	char mine[16];
	size_t len;

	snprintf(mine, sizeof(mine), "i%d", call->iteration);
	len = strlen(mine);
	if (id == NULL || strncmp(id, mine, len) != 0 || (id[len] != '\0' && id[len] != '.'))
		record_differs(r, e, "the call of the model", id != NULL ? id : "", mine);
	record_differs_unless(r, e, "the model", json_get_str(r->content, "model"),
			      p->spec->model->id);
	/* Others may have lowered it, nobody raises it. */
	if (json_get_int(r->content, "maxOutput", 0) > call->max_output)
		record_same_number(r, e, "the most it may write (tokens)",
				   json_get_int(r->content, "maxOutput", 0), call->max_output);
	if (!r->stopped)
		check_hashes(p, e, call->force_submit);
}

/* ---- the position */

static const struct trace_event *position_event(const struct replay *p, json_t **content)
{
	for (size_t i = p->rec.next; i < p->rec.events->n; i++) {
		const struct trace_event *e = &p->rec.events->events[i];

		if (e->kind == EVENT_InferStart || e->kind == EVENT_InferEnd)
			break;
		if (e->kind != EVENT_StateWrite)
			continue;
		*content = trace_content(e);
		if (strcmp(json_str(*content, "key"), "position") == 0)
			return e;
		json_decref(*content);
	}
	return NULL;
}

/* But for the clock, which stands still here, and a service's own words. */
static void write_position(struct agent_position *at, struct buf *out)
{
	struct jw w;

	at->used_ms = 0;
	buf_init(out, 1u << 20);
	jw_init(&w, out);
	jw_object(&w, NULL);
	agent_position_write(at, "", &w);
	jw_end(&w);
	buf_addc(out, '\0');
}

void replay_check_position(struct replay *p)
{
	json_t *content = NULL;
	const struct trace_event *e = position_event(p, &content);
	struct agent_position was, is;
	struct buf a, b;
	int rv;

	if (e == NULL)
		return;
	rv = agent_position_read(&was, json_object_get(content, "value"));
	agent_position_of(&p->agent, p->now, &is);
	write_position(&was, &a);
	write_position(&is, &b);
	if (rv == 0 && a.data != NULL && b.data != NULL)
		record_same(&p->rec, e, "where the machine stands", a.data, a.len - 1, b.data,
			    b.len - 1);
	buf_fini(&a);
	buf_fini(&b);
	repeat_free(was.repeats);
	json_decref(content);
}

/* ---- replies */

/* The k-th ToolCall behind the reply at hand; NULL: it has fewer. */
static json_t *call_event(const struct replay *p, unsigned k)
{
	for (size_t i = p->rec.next + 1; i < p->rec.events->n; i++) {
		const struct trace_event *e = &p->rec.events->events[i];

		if (e->kind == EVENT_InferStart || e->kind == EVENT_InferEnd)
			break;
		if (e->kind == EVENT_ToolCall && k-- == 0)
			return trace_content(e);
	}
	return NULL;
}

/* The sentence of a call whose arguments were none. */
static const char *args_error(const struct replay *p, struct turn *t, const char *call_id)
{
	static const char begin[] = "bad arguments: ";
	const char *found = "they are no JSON object";

	for (size_t i = p->rec.next + 1; i < p->rec.events->n; i++) {
		const struct trace_event *e = &p->rec.events->events[i];
		json_t *content;
		const char *id, *output;

		if (e->kind == EVENT_InferStart)
			break;
		if (e->kind != EVENT_ToolResult)
			continue;
		content = trace_content(e);
		id = json_get_str(content, "callId");
		output = json_get_str(content, "output");
		if (id != NULL && output != NULL && strcmp(id, call_id) == 0 &&
		    strncmp(output, begin, sizeof(begin) - 1) == 0) {
			output += sizeof(begin) - 1;
			output = arena_copy(&t->mem, output, strlen(output));
			found = output != NULL ? output : found;
		}
		json_decref(content);
	}
	return found;
}

/* Services take some names only with '_' for what they refuse. */
static bool same_name(const char *name, const char *wire)
{
	for (; *name != '\0' && *wire != '\0'; name++, wire++)
		if (*name != *wire && *wire != '_')
			return false;
	return *wire == '\0';
}

static void mend_call(struct replay *p, struct turn *t, struct turn_call *c, const json_t *event)
{
	const char *name = json_get_str(event, "name"), *id = json_get_str(event, "callId");
	const json_t *args = json_object_get(event, "args");

	if (name != NULL && strcmp(name, c->name) != 0 && same_name(name, c->name)) {
		name = arena_copy(&t->mem, name, strlen(name));
		c->name = name != NULL ? name : c->name;
	}
	if (json_is_string(args) && json_string_length(args) == 0 && id != NULL) {
		c->args = NULL;
		c->args_error = args_error(p, t, id);
	}
}

void replay_mend_reply(struct replay *p, struct turn *t)
{
	for (unsigned i = 0; i < t->ncalls; i++) {
		json_t *event = call_event(p, i);

		mend_call(p, t, &t->calls[i], event);
		json_decref(event);
	}
}

/* ---- results */

void replay_check_result(struct replay *p, const struct trace_event *e, const struct turn_call *c)
{
	const json_t *content = p->rec.content;
	const char *output = c->output != NULL ? c->output : "";
	char what[160];

	record_differs_unless(&p->rec, e, "the call that is answered",
			      json_get_str(content, "callId"), c->id);
	record_same_number(&p->rec, e, "its success", json_get_bool(content, "success", false),
			   c->success);
	record_differs_unless(&p->rec, e, "its class of error", json_get_str(content, "errorClass"),
			      c->error_class);
	snprintf(what, sizeof(what), "the output of %.80s", c->name);
	record_same_preview(&p->rec, e, what, json_get_str(content, "output"), output,
			    c->output != NULL ? c->output_len : 0);
}

struct wanted {
	struct arena *mem;
	size_t k, len;
	const char *text; /* NULL: not found */
};

static int want_result(size_t k, const char *text, size_t len, bool is_error, void *user)
{
	struct wanted *w = user;

	if (k != w->k)
		return 0;
	w->text = arena_copy(w->mem, text, len);
	w->len = len;
	return 1;
}

/* Where the service has no mark for a failure, its text begins with one. */
static void skip_mark(struct wanted *w, const char *preview)
{
	static const char mark[] = "Error: ";
	size_t n = sizeof(mark) - 1;

	if (w->text != NULL && w->len >= n && memcmp(w->text, mark, n) == 0 &&
	    (preview == NULL || strncmp(preview, mark, n) != 0)) {
		w->text += n;
		w->len -= n;
	}
}

/* From the lines of results that begin at `at`. */
static void find_result_at(const struct replay *p, size_t at, struct wanted *w)
{
	struct record there = p->rec;
	struct buf lines;

	there.at = at;
	buf_init(&lines, RESULT_LINES_MAX);
	if (record_results(&there, SIZE_MAX, &lines) > 0) {
		for (size_t i = 0; i < lines.len; i++)
			if (lines.data[i] == '\n')
				lines.data[i] = ',';
		(void)p->spec->model->dialect->results(lines.data, lines.len, want_result, w, NULL);
	}
	buf_fini(&lines);
}

/* A result that was there before is named, not repeated: then it is that one. */
static bool is_reference(const struct wanted *w, struct call_ref *to)
{
	static const char words[] = "unchanged since ";
	size_t n = sizeof(words) - 1;

	return w->text != NULL && w->len > n && w->len < n + 32 && memcmp(w->text, words, n) == 0 &&
	       call_ref_read(w->text + n, to);
}

static void find_result(struct replay *p, struct wanted *w, const char *preview)
{
	struct call_ref to;

	find_result_at(p, p->rec.at, w);
	if (!is_reference(w, &to) ||
	    (preview != NULL && strncmp(preview, w->text, w->len) == 0)) /* a tool's own words */
		return;
	for (size_t i = 0; i < p->ncalls; i++) {
		if (p->calls[i].ref.iteration != to.iteration || p->calls[i].ref.n != to.n)
			continue;
		*w = (struct wanted){.mem = w->mem, .k = to.n - 1};
		find_result_at(p, p->calls[i].at, w);
		return;
	}
}

static const char *keep(struct turn *t, const char *s)
{
	return arena_copy(&t->mem, s != NULL ? s : "", s != NULL ? strlen(s) : 0);
}

bool replay_take_result(struct replay *p, const struct trace_event *e, unsigned i)
{
	struct turn *t = p->agent.turn;
	struct turn_call *c = &t->calls[i];
	const json_t *content = p->rec.content;
	const char *preview = json_get_str(content, "output");
	const char *artifact = json_get_str(content, "artifact");
	struct wanted w = {.mem = &t->mem, .k = i};

	c->success = json_get_bool(content, "success", false);
	find_result(p, &w, preview);
	if (!c->success)
		skip_mark(&w, preview);
	c->output = w.text != NULL ? w.text : keep(t, preview);
	c->output_len = w.text != NULL ? w.len : preview != NULL ? strlen(preview) : 0;
	c->error_class = keep(t, json_get_str(content, "errorClass"));
	c->full_bytes = json_get_int(content, "bytes", (int64_t)c->output_len);
	c->artifact = artifact != NULL && artifact[0] != '\0' ? keep(t, artifact) : NULL;
	if (c->output == NULL || c->error_class == NULL) {
		p->rv = AVA_ENOMEM;
		p->rec.stopped = true;
		return false;
	}
	c->answered = c->recorded = true;
	replay_check_result(p, e, c);
	return !p->rec.stopped;
}

/* ---- the end */

/* One event of the end; NULL when the record has none of this kind here. */
static const struct trace_event *end_event(struct replay *p, enum event_kind kind, bool wanted)
{
	const struct trace_event *e = record_peek(&p->rec);
	bool there = e != NULL && e->kind == (int)kind;

	if (p->rec.stopped || (!there && !wanted))
		return NULL;
	if (e == NULL) {
		p->rec.out->reason = "the record ends before the run's end was written";
		p->rec.stopped = true;
		return NULL;
	}
	if (there != wanted)
		record_differs(&p->rec, e, "the event", e->shown.type,
			       wanted ? event_kind_name(kind) : "none of this kind");
	return p->rec.stopped ? NULL : e;
}

void replay_check_end(struct replay *p, const struct agent_end *end)
{
	struct record *r = &p->rec;
	const struct trace_event *e = end_event(p, EVENT_Exhausted, end->exhausted != NULL);

	if (e != NULL) {
		record_differs_unless(r, e, "what was used up",
				      json_get_str(r->content, "resource"), end->exhausted);
		record_take(r);
	}
	e = end_event(p, EVENT_Error, end->error_class != NULL);
	if (e != NULL) {
		record_differs_unless(r, e, "the class of the error",
				      json_get_str(r->content, "class"), end->error_class);
		record_take(r);
	}
	e = end_event(p, EVENT_SubagentComplete, true);
	if (e == NULL)
		return;
	record_differs_unless(r, e, "the status", json_get_str(r->content, "status"),
			      ava_status_name(end->status));
	record_differs_unless(r, e, "the reason to stop", json_get_str(r->content, "stopReason"),
			      end->stop_reason);
	if (end->summary != NULL && end->summary[0] != '\0')
		record_same_preview(r, e, "the summary", json_get_str(r->content, "summary"),
				    end->summary, strlen(end->summary));
	record_take(r);
}
