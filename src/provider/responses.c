/* The dialect of OpenAI's Responses API: requests, and events of its streams. Nothing is kept
 * at the service (store false, no previous_response_id): each request is whole, and extends the
 * one before byte for byte. What was said is a list of items, and a reply is several: reasoning,
 * which goes back encrypted as it came, then a message, calls. Each is a line of its own.
 *
 *   head   {"model":M,"instructions":S,"tools":[{"type":"function","name":N,…}],"input":[
 *   lines  {"role":"user","content":T}                    as in chat completions
 *          {"type":"reasoning","id":…,"encrypted_content":E,"summary":[…]}
 *          {"type":"function_call","id":…,"call_id":I,"name":N,"arguments":"{…}"}
 *          {"type":"function_call_output","call_id":I,"output":T}
 *   tail   ],"stream":true,"store":false,"include":["reasoning.encrypted_content"],…}
 *
 * The service says that it wants this dialect, or the other, in words (model_other_dialect): the
 * task's line is the same in both. Encoders fail with their buffer only. */
#include <stdlib.h>
#include <string.h>

#include "agent/tool.h"
#include "agent/turn.h"
#include "base/util.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "provider/learned.h"
#include "provider/model.h"
#include "provider/stream_core.h"
#include "provider/wire.h"

#define ENCRYPTED "encrypted_content"

static int responses_head(struct buf *out, const struct dialect_spec *spec)
{
	struct jw w;

	openai_begin(&w, out, spec, true);
	return buf_check(out);
}

static int responses_tail(struct buf *out, const struct model *m, bool thinking,
			  const struct agent_infer *call)
{
	buf_adds(out, "],\"stream\":true");
	if (model_takes(m, "store"))
		buf_adds(out, ",\"store\":false");
	if (model_takes(m, "include") && model_takes(m, ENCRYPTED))
		buf_adds(out, ",\"include\":[\"reasoning." ENCRYPTED "\"]");
	if (model_takes(m, "max_output_tokens"))
		buf_addf(out, ",\"max_output_tokens\":%lld", (long long)call->max_output);
	if (thinking && m != NULL && m->thinking != MODEL_THINKING_NONE &&
	    model_takes(m, "reasoning"))
		buf_addf(out, ",\"reasoning\":{\"effort\":\"medium\"%s}",
			 model_takes(m, "reasoning.summary") ? ",\"summary\":\"auto\"" : "");
	if (call->force_submit && model_takes(m, "tool_choice"))
		buf_adds(out,
			 ",\"tool_choice\":{\"type\":\"function\",\"name\":\"submit_result\"}");
	buf_addc(out, '}');
	return buf_check(out);
}

/* ---- lines */

static int responses_results(struct buf *out, const struct turn *t, const char *const *notices,
			     unsigned nnotices)
{
	static const char *const keys[] = {"type", "function_call_output", "call_id", "output"};

	return openai_results_as(keys, out, t, notices, nnotices);
}

static bool responses_in_lines(const char *parameter)
{
	return strcmp(parameter, ENCRYPTED) == 0;
}

static bool is_no_reasoning(struct slice item)
{
	return !jscan_begins(item.s, item.len, "{\"type\":\"reasoning\"");
}

/* Remove reasoning that the service can no longer decrypt: another key's, or too old. */
static int responses_mark_cache(struct buf *body, size_t lines_from, const struct model *m)
{
	char *lines = body->data + lines_from;

	if (model_takes(m, ENCRYPTED))
		return 0;
	body->len = lines_from + jscan_keep(lines, body->len - lines_from, is_no_reasoning);
	body->data[body->len] = 0;
	return 0;
}

/* ---- replies. Events become a turn.
 *
 *   {"type":"response.created","response":{"id":…}}
 *   {"type":"response.output_item.added","output_index":0,"item":{"type":"function_call",…}}
 *   {"type":"response.function_call_arguments.delta","output_index":0,"delta":"{"}
 *   {"type":"response.output_item.done","output_index":0,"item":{…}}
 *   {"type":"response.completed","response":{…,"output":[…],"usage":{…}}}
 *
 * An item that is done is as it is told there; the last event has all of them once more, for
 * servers that say nothing between, and is the end mark. */

/* Kinds of items that requests of ours lead to. */
static const struct responses_kind {
	const char *type;
	enum part_kind part;
	enum delta_kind piece;
} kinds[] = {
	{"message", PART_TEXT, DELTA_TEXT},
	{"function_call", PART_CALL, DELTA_ARGS},
	{"reasoning", PART_THINKING, DELTA_THINKING},
};

/* The kind by an item's type, or by the kind of its pieces. NULL: unknown. */
static const struct responses_kind *responses_kind_of(const char *type, enum delta_kind piece)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (piece == kinds[i].piece || strcmp(type, kinds[i].type) == 0)
			return &kinds[i];
	return NULL;
}

static int responses_place_piece(struct stream *s, enum delta_kind piece, int64_t index,
				 struct part **out)
{
	enum part_kind part = responses_kind_of("", piece)->part;
	int rv = 0;

	*out = stream_find(s, 1u << part, index);
	if (*out == NULL)
		rv = stream_part(s, part, index, out);
	if (rv == 0)
		(*out)->of = piece;
	return rv;
}

static const char *id_of(const json_t *item)
{
	const char *id = json_get_str(item, "id");

	return id != NULL ? id : json_get_str(item, "call_id");
}

/* The part of an item: by its id, else by its place. NULL: the item is new. */
static struct part *responses_part_of(const struct stream *s, enum part_kind kind,
				      const json_t *item, int64_t index)
{
	for (unsigned i = s->reply->nparts; i > 0; i--) {
		struct part *p = &s->reply->parts[i - 1];
		const char *id = id_of(item), *has = id_of(p->object);

		if (p->kind == kind &&
		    (id != NULL && has != NULL ? strcmp(id, has) == 0 : p->index == index))
			return p;
	}
	return NULL;
}

/* All text of an item: its arguments, or its texts. */
static int whole_text(struct stream *s, const json_t *item, bool thought, struct buf *out)
{
	const json_t *parts = json_object_get(item, "content"), *part;
	size_t i;

	if (thought && json_array_size(parts) == 0)
		parts = json_object_get(item, "summary");
	buf_adds(out, json_str(item, "arguments"));
	json_array_foreach(parts, i, part)
	{
		if (strcmp(json_str(part, "type"), "refusal") == 0)
			stream_stop(s->reply, "refusal");
		buf_adds(out, thought && out->len > 0 ? "\n\n" : "");
		buf_adds(out, json_str(part, "text"));
	}
	return buf_check(out);
}

/* Take an item at its beginning or when it is `done`. A text that its pieces have shown stays as it
 * is, and after `done` nothing changes. */
static int responses_take_item(struct stream *s, const json_t *item, int64_t index, bool done)
{
	const struct responses_kind *k = responses_kind_of(json_str(item, "type"), DELTA_EMPTY);
	struct part *p = k != NULL ? responses_part_of(s, k->part, item, index) : NULL;
	struct buf text;
	int rv = 0;

	if (k == NULL || (p != NULL && p->ended))
		return 0;
	if (p == NULL)
		rv = stream_part(s, k->part, index, &p);
	if (rv != 0)
		return rv;
	free(p->id);
	free(p->name);
	json_decref(p->object);
	p->id = strdup(json_str(item, "call_id"));
	p->name = strdup(json_str(item, "name"));
	p->object = json_deep_copy(item);
	p->ended = done;
	if (p->id == NULL || p->name == NULL || p->object == NULL)
		return AVA_ENOMEM;
	buf_init(&text, STREAM_LINE_MAX);
	rv = done ? whole_text(s, item, p->kind == PART_THINKING, &text) : 0;
	if (rv == 0 && text.len > 0 && p->of == DELTA_NONE) {
		rv = stream_add(s, p, k->piece, text.data, text.len);
	} else if (rv == 0 && text.len > 0 && p->kind != PART_TEXT) {
		buf_reset(&p->text);
		rv = buf_add(&p->text, text.data, text.len);
	}
	buf_fini(&text);
	return rv;
}

/* The end in any form: completed, incomplete, failed; or a reply in one piece. */
static int take_end(struct stream *s, const json_t *response)
{
	const char *status = json_str(response, "status"), *why;
	const json_t *item;
	size_t i;
	int rv = 0;

	openai_usage(s->reply, json_object_get(response, "usage"));
	if (strcmp(status, "failed") == 0 || stream_error_member(response) != NULL)
		return stream_error_value(s, response);
	json_array_foreach(json_object_get(response, "output"), i, item)
	{
		if (rv == 0)
			rv = responses_take_item(s, item, (int64_t)i, true);
	}
	why = json_get_str(json_object_get(response, "incomplete_details"), "reason");
	stream_stop(s->reply, why != NULL ? why : status[0] != 0 ? status : "completed");
	s->done = rv == 0;
	return rv;
}

static int responses_take_event(struct stream *s, const char *data, size_t len, const json_t *event)
{
	static const char *const ends[] = {"response.completed", "response.incomplete",
					   "response.failed", "response.done",
					   "response.cancelled"};
	const char *type = json_str(event, "type");
	bool whole = strcmp(json_str(event, "object"), "response") == 0, ended = whole;
	const json_t *response = whole ? event : json_object_get(event, "response");
	const json_t *item = json_object_get(event, "item");
	int64_t index = json_get_int(event, "output_index", -1);
	enum delta_kind piece = delta_kind(DELTAS_ITEMS, (struct slice){type, strlen(type)});
	struct part *p = NULL;

	if (s->reply->id[0] == 0)
		stream_id(s->reply, json_get_str(response, "id"));
	for (size_t i = 0; i < ARRAY_LEN(ends); i++)
		ended = ended || strcmp(ends[i], type) == 0;
	if (ended)
		return take_end(s, response);
	if (item != NULL)
		return responses_take_item(s, item, index,
					   strcmp(type, "response.output_item.done") == 0);
	if (strcmp(type, "response.reasoning_summary_part.added") == 0)
		p = stream_find(s, 1u << PART_THINKING, index);
	if (p != NULL && p->text.len > 0)
		return stream_add(s, p, DELTA_THINKING, "\n\n", 2);
	return piece != DELTA_NONE ? stream_piece(s, piece, index, json_get_str(event, "delta"))
				   : 0;
}

/* ---- the lines */

/* May part `i` be sent back? Reasoning only encrypted, and only before text or a call. */
static bool goes_back(const struct stream *s, unsigned i)
{
	const struct part *p = &s->reply->parts[i];

	if (p->kind != PART_THINKING)
		return p->kind == PART_CALL ||
		       (p->kind == PART_TEXT && !wire_blank(p->text.data, p->text.len));
	if (json_str(p->object, ENCRYPTED)[0] == 0 || !model_takes(s->model, ENCRYPTED))
		return false;
	while (++i < s->reply->nparts)
		if (s->reply->parts[i].kind != PART_THINKING && goes_back(s, i))
			return true;
	return false;
}

/* Write the item as it came, its type first, with mended members; without nulls, which the service
 * writes and does not take. */
static int responses_write_item(struct buf *out, struct part *p, const struct turn_call *c)
{
	const char *type = kinds[0].type, *key;
	json_t *v, *mended = NULL;
	struct buf name;
	size_t from;
	void *next;
	int rv;

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		type = kinds[i].part == p->kind ? kinds[i].type : type;
	buf_addf(out, "{\"type\":\"%s\"", type);
	if (p->object == NULL)
		p->object = json_object();
	json_object_del(p->object, "type");
	json_object_foreach_safe(p->object, next, key, v)
	{
		if (json_is_null(v))
			json_object_del(p->object, key);
	}
	buf_init(&name, WIRE_NAME_MAX + 1);
	if (p->kind == PART_CALL) {
		stream_wire_name(&name, c->name);
		mended =
			json_pack("{s:s,s:s,s:s%}", "call_id", c->wire_id, "name", name.data,
				  "arguments", c->args ? c->args : "{}", c->args ? c->args_len : 2);
	} else if (p->kind == PART_TEXT) {
		mended = json_pack("{s:s,s:[{s:s,s:s%,s:[]}]}", "role", "assistant", "content",
				   "type", "output_text", "text", p->text.data, p->text.len,
				   "annotations");
	}
	rv = p->kind != PART_THINKING && json_object_update_new(p->object, mended) != 0 ? AVA_ENOMEM
											: 0;
	from = out->len;
	if (rv == 0)
		rv = json_dump(out, p->object);
	if (rv == 0)
		out->data[from] = ','; /* replaces the object's brace */
	buf_fini(&name);
	return rv;
}

static int write_lines(const struct stream *s, const struct turn *t, struct jw *w)
{
	const struct turn_call *c = t->calls;
	int rv = 0;

	for (unsigned i = 0; i < s->reply->nparts && rv == 0; i++) {
		struct part *p = &s->reply->parts[i];

		if (!goes_back(s, i))
			continue;
		if (w->out->len > 0)
			buf_addc(w->out, '\n');
		rv = responses_write_item(w->out, p, c);
		if (p->kind == PART_CALL)
			c++;
	}
	return rv;
}

static const struct stream_ops ops = {
	.chat = true,
	.items = true,
	.place = responses_place_piece,
	.event = responses_take_event,
	.line = write_lines,
	.id_char = wire_id_char,
};

const struct dialect dialect_responses = {
	.name = "responses",
	.can_force = true,
	.line_an_item = true,
	.encode_head = responses_head,
	.encode_tail = responses_tail,
	.line_kind = wire_line_kind,
	.encode_user = openai_user,
	.encode_results = responses_results,
	.check = wire_check_items,
	.results = wire_each_result,
	.open_calls = wire_open_calls,
	.path = "/responses",
	.headers = openai_headers,
	.mark_cache = responses_mark_cache,
	.in_lines = responses_in_lines,
	.stream = &ops,
};

/* ---- this dialect or that of chat completions; see model.h */

/* Dialects that one service may speak side by side, and the words, in lower case, with which it
 * asks for the other. */
static const struct {
	const struct dialect *is, *other;
	const char *says[5];
} siblings[] = {
	{&dialect_openai,
	 &dialect_responses,
	 {"v1/responses", "responses endpoint", "responses api",
	  "not accessible via the /chat/completions", "this is not a chat model"}},
	{&dialect_responses, &dialect_openai, {"/chat/completions", "chat completions"}},
};

bool model_speak(struct model *m, const char *dialect)
{
	for (size_t i = 0; i < ARRAY_LEN(siblings); i++)
		if (m->dialect == siblings[i].is && strcmp(siblings[i].other->name, dialect) == 0) {
			m->dialect = siblings[i].other;
			return true;
		}
	return strcmp(m->dialect->name, dialect) == 0;
}

const struct dialect *model_other_dialect(const struct model *m, const char *refusal)
{
	for (size_t i = 0; i < ARRAY_LEN(siblings); i++)
		for (size_t k = 0; k < ARRAY_LEN(siblings[i].says); k++)
			if (m->dialect == siblings[i].is && siblings[i].says[k] &&
			    strcasestr(refusal, siblings[i].says[k]))
				return siblings[i].other;
	return NULL;
}

bool model_learn_dialect(const struct model *m)
{
	return strcmp(learned_dialect(m->id, m->dialect->name), m->dialect->name) == 0;
}
