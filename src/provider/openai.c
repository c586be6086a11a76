/* The dialect of chat completions: requests, and chunks of its streams. Services differ in small
 * things, which are decided here by the provider: OpenRouter wants require_parameters (else it may
 * pick a provider that ignores tools) and marks on what models of Anthropic shall cache; OpenAI
 * names the cap and the effort its own way; all but OpenRouter must be asked for usage. What a
 * model rejects is left out, and what its family wants otherwise (profile.h) is so in its requests,
 * not in the lines. Encoders fail with their buffer only. */
#include <stdlib.h>
#include <string.h>

#include "agent/reply.h"
#include "agent/tool.h"
#include "agent/turn.h"
#include "base/util.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "provider/chat_request.h"
#include "provider/model.h"
#include "provider/profile.h"
#include "provider/stream_core.h"
#include "provider/wire.h"

#define MARK "\"cache_control\":{\"type\":\"ephemeral\"}"

static bool is_at(const struct model *m, const char *provider)
{
	return m != NULL && m->provider != NULL && strcmp(m->provider->name, provider) == 0;
}

/* Models that cache behind OpenRouter only what is marked. */
static bool wants_marks(const struct model *m)
{
	return is_at(m, "openrouter") && strncmp(m->wire_name, "anthropic/", 10) == 0 &&
	       model_takes(m, "cache_control");
}

static void add_system(struct jw *w, const char *text, bool mark)
{
	jw_object(w, NULL);
	jw_str(w, "role", "system");
	if (mark) {
		jw_array(w, "content");
		jw_object(w, NULL);
		jw_str(w, "type", "text");
		jw_str(w, "text", text);
		jw_raw(w, "cache_control", "{\"type\":\"ephemeral\"}", 20);
		jw_end(w);
		jw_end(w);
	} else {
		jw_str(w, "content", text);
	}
	jw_end(w);
}

void openai_begin(struct jw *w, struct buf *out, const struct dialect_spec *spec, bool flat)
{
	const struct model *m = spec->model_facts;

	jw_init(w, out);
	jw_object(w, NULL);
	jw_str(w, "model", m != NULL && m->wire_name[0] != 0 ? m->wire_name : spec->model);
	if (flat && spec->system[0] != 0)
		jw_str(w, "instructions", spec->system);
	if (spec->ntools > 0)
		jw_array(w, "tools");
	for (unsigned i = 0; i < spec->ntools; i++) {
		jw_object(w, NULL);
		jw_str(w, "type", "function");
		if (!flat)
			jw_object(w, "function");
		tool_write(w, spec->tools[i], "parameters", spec->brief);
		if (flat) /* responses would else demand schemas without optional members */
			jw_bool(w, "strict", false);
		else
			jw_end(w);
		jw_end(w);
	}
	if (spec->ntools > 0)
		jw_end(w);
	jw_array(w, flat ? "input" : "messages"); /* the request's tail closes the array */
}

static int openai_head(struct buf *out, const struct dialect_spec *spec)
{
	struct jw w;

	openai_begin(&w, out, spec, false);
	if (spec->system[0] != 0) {
		add_system(&w, spec->system, wants_marks(spec->model_facts));
		buf_addc(out, ','); /* a comma for the lines: there is always one */
	}
	return buf_check(out);
}

/* The name of the cap on output; NULL: the model takes none. */
static const char *cap_name(const struct model *m)
{
	static const char *const names[] = {"max_tokens", "max_completion_tokens"};
	const char *first =
		m != NULL && m->max_tokens_field != NULL ? m->max_tokens_field : names[0];
	const char *other = strcmp(first, names[0]) == 0 ? names[1] : names[0];

	if (model_takes(m, first))
		return first;
	return model_takes(m, other) ? other : NULL;
}

/* Constrain a local server's model to a result by response_format. A forced tool does not work:
 * llama.cpp reads it as "auto", LM Studio refuses it. Tools may not be called, but stay in the
 * request, and with them the server's prompt cache. Bounds of texts are left out: grammars have
 * their own. */
static void add_result_form(struct buf *out, const struct model *m, const char *output)
{
	buf_adds(out, ",\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":"
		      "\"submit_result\",\"schema\":{\"type\":\"object\",\"properties\":{"
		      "\"summary\":{\"type\":\"string\"},\"output\":");
	buf_adds(out, output != NULL ? output : "{}");
	buf_adds(out, ",\"confidence\":{\"type\":\"number\"},\"caveats\":{\"type\":\"array\","
		      "\"items\":{\"type\":\"string\"}}},\"required\":[\"summary\",");
	buf_adds(out, output != NULL ? "\"output\"," : "");
	buf_adds(out, "\"confidence\"],\"additionalProperties\":false}}}");
	if (model_takes(m, "tool_choice"))
		buf_adds(out, ",\"tool_choice\":\"none\"");
}

static int openai_tail(struct buf *out, const struct model *m, bool thinking,
		       const struct agent_infer *call)
{
	const char *cap = cap_name(m);
	bool local = is_at(m, "local"), router = is_at(m, "openrouter");
	bool form = call->force_submit && local && model_takes(m, "response_format");
	bool force = call->force_submit && !form && model_takes(m, "tool_choice");

	buf_adds(out, "],\"stream\":true");
	if (!router && model_takes(m, "stream_options"))
		buf_adds(out, ",\"stream_options\":{\"include_usage\":true}");
	if (cap != NULL)
		buf_addf(out, ",\"%s\":%lld", cap, (long long)call->max_output);
	/* Many models behind OpenRouter refuse a forced tool while they think. */
	if (thinking && m != NULL && m->thinking != MODEL_THINKING_NONE && !(force && router) &&
	    model_takes(m, router ? "reasoning" : "reasoning_effort"))
		buf_adds(out, router ? ",\"reasoning\":{\"effort\":\"medium\"}"
				     : ",\"reasoning_effort\":\"medium\"");
	/* Local servers default to 0.8, at which small models miss every fifth call. */
	if (local && model_takes(m, "temperature"))
		buf_adds(out, call->warmer ? ",\"temperature\":0.6" : ",\"temperature\":0.2");
	if (form)
		add_result_form(out, m, call->output_schema);
	if (force)
		buf_adds(out, local ? ",\"tool_choice\":\"required\""
				    : ",\"tool_choice\":{\"type\":\"function\","
				      "\"function\":{\"name\":\"submit_result\"}}");
	if (router && model_takes(m, "provider"))
		buf_adds(out, ",\"provider\":{\"require_parameters\":true}");
	buf_addc(out, '}');
	return buf_check(out);
}

int openai_headers(struct buf *out, const struct model *m, const char *key)
{
	int rv = wire_headers(out, "", "authorization: Bearer ", key);

	if (rv == 0 && is_at(m, "openrouter")) /* names the caller in its statistics */
		rv = buf_adds(out, "http-referer: http://localhost/ava\nx-openrouter-title: ava\n");
	return rv;
}

/* ---- lines: tool messages, then all notices as one user message */

int openai_user(struct buf *out, const char *text, size_t len)
{
	struct jw w;

	if (wire_blank(text, len))
		return AVA_EINVAL;
	jw_init(&w, out);
	jw_object(&w, NULL);
	jw_str(&w, "role", "user");
	jw_strn(&w, "content", text, len);
	jw_end(&w);
	return buf_check(out);
}

static int openai_add_result(const char *const keys[4], struct buf *out, const struct turn_call *c)
{
	struct buf text;
	struct jw w;
	int rv;

	buf_init(&text, TURN_MAX_BYTES);
	if (!c->success)
		buf_adds(&text, WIRE_CHAT_ERROR);
	buf_add(&text, c->output != NULL ? c->output : "", c->output != NULL ? c->output_len : 0);
	rv = buf_check(&text);
	if (rv == 0) {
		jw_init(&w, out);
		jw_object(&w, NULL);
		jw_str(&w, keys[0], keys[1]);
		jw_str(&w, keys[2], c->wire_id);
		jw_strn(&w, keys[3], text.data, text.len);
		jw_end(&w);
	}
	buf_fini(&text);
	return rv;
}

/* Templates of local models want roles to alternate: one message for all. */
int openai_results_as(const char *const keys[4], struct buf *out, const struct turn *t,
		      const char *const *notices, unsigned nnotices)
{
	struct buf all;
	int rv = 0;

	for (unsigned i = 0; i < t->ncalls && rv == 0; i++) {
		if (i > 0)
			buf_addc(out, '\n');
		rv = openai_add_result(keys, out, &t->calls[i]);
	}
	if (rv != 0)
		return rv;
	buf_init(&all, TURN_MAX_BYTES);
	for (unsigned i = 0; i < nnotices; i++) {
		if (wire_blank(notices[i], strlen(notices[i])))
			continue;
		if (all.len > 0)
			buf_adds(&all, "\n\n");
		buf_adds(&all, notices[i]);
	}
	rv = buf_check(&all);
	if (rv == 0 && all.len > 0) {
		if (t->ncalls > 0)
			buf_addc(out, '\n');
		rv = openai_user(out, all.data, all.len);
	} else if (rv == 0 && t->ncalls == 0) {
		rv = AVA_EINVAL; /* the service refuses a line without content */
	}
	buf_fini(&all);
	return rv != 0 ? rv : buf_check(out);
}

static int openai_results(struct buf *out, const struct turn *t, const char *const *notices,
			  unsigned nnotices)
{
	static const char *const keys[] = {"role", "tool", "tool_call_id", "content"};

	/* An empty reply is not stored; a bridge keeps two user messages apart. */
	if (t->ncalls == 0 && t->text_len == 0)
		buf_adds(out, CHAT_BRIDGE "\n");
	return openai_results_as(keys, out, t, notices, nnotices);
}

/* ---- lines in a request */

/* Turn the last message's text, …"content":"T"}, into a part with a cache mark. Other endings are
 * left alone, and blank texts: a tool message may hold one, a part may not. */
static int mark_newest(struct buf *body, size_t lines_from)
{
	static const char key[] = ",\"content\":\"", part[] = "[{\"type\":\"text\",\"text\":";
	const size_t nkey = sizeof(key) - 1, npart = sizeof(part) - 1;
	char *text, *s = body->data + lines_from;
	size_t len = body->len - lines_from;

	if (len < nkey + 2 || memcmp(s + len - 2, "\"}", 2) != 0)
		return 0;
	/* Quotes in strings are escaped, so the last such key is the member. */
	for (text = s + len - nkey; text > s && memcmp(text, key, nkey) != 0; text--)
		;
	if (text == s)
		return 0;
	text += nkey - 1; /* from the value's opening quote */
	len = (size_t)(body->data + body->len - 1 - text);
	if (wire_raw_blank((struct slice){text + 1, len - 2}))
		return 0;
	lines_from = (size_t)(text - body->data);
	if (buf_reserve(body, npart + sizeof(MARK) + 8) == NULL)
		return buf_check(body);
	text = body->data + lines_from;
	memmove(text + npart, text, len);
	memcpy(text, part, npart);
	body->len = lines_from + npart + len;
	return buf_adds(body, "," MARK "}]}");
}

static int openai_mark_cache(struct buf *body, size_t lines_from, const struct model *m)
{
	int rv = chat_request(body, &lines_from, m);

	return rv == 0 && wants_marks(m) ? mark_newest(body, lines_from) : rv;
}

/* ---- replies. Chunks become a turn.
 *
 *   data: {"choices":[{"index":0,"delta":{…},"finish_reason":null}]}
 *   data: {"choices":[],"usage":{…}}
 *   data: [DONE]
 *
 * Servers differ most in calls: all with index 0, without index or id, whole
 * arguments as text or as an object, all so far in each piece, all once more at
 * the end. An id that is known decides, then the index; what has neither goes to
 * the call that is open. A piece opens a new call when its id is another one, or
 * when it has a name and the call there is complete already; a name is set once.
 * Calls decide that a turn wants tools, never the reason. Reasoning that came as
 * reasoning_content or reasoning is kept under that name, reasoning_details merged
 * as they were cut, so that both can be sent back; all other thinking is not. */

static const char *const reasoning[] = {"reasoning_content", "reasoning"};

static int openai_place_piece(struct stream *s, enum delta_kind kind, int64_t index,
			      struct part **out)
{
	enum part_kind part = kind == DELTA_TEXT   ? PART_TEXT
			      : kind == DELTA_ARGS ? PART_CALL
						   : PART_THINKING;
	const char *key = kind == DELTA_THINKING ? reasoning[0] : reasoning[1];
	struct part *p = stream_find(s, 1u << part, part == PART_CALL ? index : -1);
	int rv = 0;

	if (p == NULL) /* arguments without a started call go to the open call */
		p = stream_find(s, 1u << part, -1);
	if (p == NULL)
		rv = stream_part(s, part, index, &p);
	if (rv != 0)
		return rv;
	if (part == PART_THINKING && p->key == NULL)
		p->key = key;
	/* Some services send reasoning under both names; the first name counts. */
	*out = part == PART_THINKING && p->key != key ? NULL : p;
	return 0;
}

/* ---- calls */

/* A piece of a call; NULL: the member is absent. `whole`: of a message, which may repeat a call
 * that came in pieces. */
struct openai_piece {
	const char *id, *name;
	int64_t index; /* index of the call; -1: none given */
	struct buf args;
	bool whole;
	const json_t *all; /* the whole piece, borrowed */
};

static const char *given(const json_t *o, const char *key)
{
	const char *s = json_get_str(o, key);

	return s != NULL && *s != 0 ? s : NULL;
}

static bool is_complete(const struct part *c)
{
	return stream_complete(c->text.data, c->text.len);
}

/* Are both the same JSON, blanks aside? */
static bool same_args(const struct part *c, const struct openai_piece *p)
{
	const char *a = c->text.data, *b = p->args.data;

	if (c->text.len == 0 || p->args.len == 0)
		return false;
	for (bool quoted = false;; a++, b++) {
		a += quoted ? 0 : strspn(a, " \t\r\n");
		b += quoted ? 0 : strspn(b, " \t\r\n");
		if (*a != *b || *a == 0)
			return *a == *b;
		if (quoted && *a == '\\' && a[1] != 0) {
			if (*++a != *++b)
				return false;
		} else if (*a == '"') {
			quoted = !quoted;
		}
	}
}

/* Does the piece repeat a call? The same id says so, unless index or arguments differ: some
 * services give all calls one id. Without ids the same name and arguments are a repeat. */
static bool is_known(const struct part *c, const struct openai_piece *p)
{
	bool both = p->id != NULL && c->id != NULL, same = both && strcmp(p->id, c->id) == 0;

	if (same && (p->whole || p->name == NULL))
		return true;
	if (same && (p->index < 0 || c->index < 0 || p->index == c->index))
		return c->text.len <= 2 || !is_complete(c) ||
		       !stream_complete(p->args.data, p->args.len) || same_args(c, p);
	return p->name != NULL && c->name != NULL && strcmp(c->name, p->name) == 0 &&
	       (p->whole || !both) && same_args(c, p);
}

/* Does the piece begin a new call? Some servers make up an id for each piece, so another id without
 * a name begins a call only behind a complete one. */
static bool openai_is_new(const struct part *c, const struct openai_piece *p)
{
	if (p->id != NULL && c->id != NULL)
		return p->name != NULL || (p->args.len > 0 && is_complete(c));
	return p->name != NULL && c->name != NULL &&
	       (c->named_now || is_complete(c) || strcmp(c->name, p->name) != 0);
}

/* Is the piece's name more of the call's? Names come in pieces, or each time with all that came so
 * far. */
static bool names_more(const struct stream *s, const struct part *c, const struct openai_piece *p)
{
	return p->name != NULL && c->name != NULL && c->text.len == 0 && s->ntools > 0 &&
	       (p->id == NULL || (c->id != NULL && strcmp(p->id, c->id) == 0)) &&
	       strcmp(p->name, c->name) != 0 && reply_tool(s->tools, s->ntools, c->name) == NULL &&
	       (reply_tool(s->tools, s->ntools, p->name) == NULL ||
		strncmp(p->name, c->name, strlen(c->name)) == 0);
}

static int openai_add_name(struct part *c, const char *more)
{
	bool all = strncmp(more, c->name, strlen(c->name)) == 0;
	char *name;

	if (asprintf(&name, "%s%s", all ? "" : c->name, more) < 0)
		return AVA_ENOMEM;
	free(c->name);
	c->name = name;
	return 0;
}

/* The call that a piece belongs to: one that it repeats, else the one of its index, else the open
 * one. NULL: it begins one. */
static struct part *openai_find_call(const struct stream *s, const struct openai_piece *p)
{
	struct part *c;

	for (unsigned i = 0; i < s->reply->nparts; i++) {
		c = &s->reply->parts[i];
		if (c->kind == PART_CALL && is_known(c, p))
			return c;
	}
	c = stream_find(s, 1u << PART_CALL, p->index);
	if (c == NULL && p->id == NULL && p->name == NULL)
		c = stream_find(s, 1u << PART_CALL, -1);
	return c != NULL && openai_is_new(c, p) && !names_more(s, c, p) ? NULL : c;
}

static int set_once(char **to, const char *s)
{
	if (*to == NULL && s != NULL)
		*to = strdup(s);
	return *to == NULL && s != NULL ? AVA_ENOMEM : 0;
}

/* Unknown members belong to the service and are sent back. */
static bool has_more(const json_t *call)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)call, key, v)
	{
		if (!chat_call_member((struct slice){key, strlen(key)}))
			return true;
	}
	return false;
}

static int put_piece(struct stream *s, const struct openai_piece *p)
{
	struct part *c = openai_find_call(s, p);
	int rv = 0;

	if (c == NULL && p->id == NULL && p->name == NULL && p->args.len == 0)
		return 0;
	if (c == NULL)
		rv = stream_part(s, PART_CALL, p->index, &c);
	else if ((p->id != NULL || p->name != NULL) &&
		 stream_repeats(c->text.data, c->text.len, p->args.data, p->args.len, true))
		c->text.len = 0;
	if (rv != 0)
		return rv;
	rv = names_more(s, c, p) ? openai_add_name(c, p->name) : 0;
	c->named_now |= p->name != NULL;
	if (rv == 0)
		rv = set_once(&c->id, p->id);
	if (rv == 0)
		rv = set_once(&c->name, p->name);
	if (rv == 0 && (has_more(p->all) || has_more(json_object_get(p->all, "function")))) {
		if (c->object == NULL)
			c->object = json_object();
		if (json_object_update_recursive(c->object, (json_t *)p->all) != 0)
			rv = AVA_ENOMEM;
	}
	return rv == 0 ? stream_add(s, c, DELTA_ARGS, p->args.data, p->args.len) : rv;
}

/* {"id":…,"index":…,"function":{"name":…,"arguments":…}}, or without `function`, or in the words
 * of other forms. */
static int take_call(struct stream *s, const json_t *o, bool whole)
{
	static const char *const names[] = {"arguments", "parameters", "input"};
	const json_t *custom = json_object_get(o, "custom");
	const json_t *function = custom != NULL ? custom : json_object_get(o, "function");
	const json_t *in = json_is_object(function) ? function : o, *args = NULL;
	struct openai_piece p = {given(o, "id"), given(in, "name"), json_get_int(o, "index", -1),
				 .whole = whole, .all = o};
	int rv;

	if (json_is_string(function))
		p.name = json_string_value(function);
	for (size_t i = 0; i < ARRAY_LEN(names) && args == NULL; i++)
		args = json_object_get(in, names[i]);
	buf_init(&p.args, STREAM_LINE_MAX);
	rv = json_is_object(args) || json_is_array(args)
		     ? json_dump(&p.args, args)
		     : buf_add(&p.args, json_string_value(args), json_string_length(args));
	if (rv == 0)
		rv = put_piece(s, &p);
	buf_fini(&p.args);
	return rv;
}

/* A list of calls, or one. */
static int take_calls(struct stream *s, const json_t *calls, bool whole)
{
	const json_t *one;
	size_t i;
	int rv = 0;

	for (unsigned k = 0; k < s->reply->nparts; k++)
		s->reply->parts[k].named_now = false;
	if (json_is_object(calls))
		return take_call(s, calls, whole);
	json_array_foreach(calls, i, one)
	{
		if (rv == 0 && json_is_object(one))
			rv = take_call(s, one, whole);
	}
	return rv;
}

/* ---- reasoning */

/* The member of a reasoning object that comes in pieces; its first event may lack it. */
static const char *text_key(const json_t *o)
{
	const char *type = json_get_str(o, "type");

	if (json_get_str(o, "text") != NULL)
		return "text";
	if (json_get_str(o, "summary") != NULL)
		return "summary";
	if (type == NULL || json_object_get(o, "data") != NULL)
		return NULL;
	if (strcmp(type, "reasoning.text") == 0)
		return "text";
	return strcmp(type, "reasoning.summary") == 0 ? "summary" : NULL;
}

/* Does `o` continue `d`: the same kind, the same place? A signature ends a block. */
static bool continues(const struct part *d, const json_t *o)
{
	const char *key = text_key(o);

	if (d->key == NULL || (key != NULL && strcmp(key, d->key) != 0) ||
	    json_object_get(o, "data") != NULL || given(d->object, "signature") != NULL)
		return false;
	return json_equal(json_object_get(d->object, "type"), json_object_get(o, "type")) &&
	       (json_object_get(o, "index") == NULL ||
		json_equal(json_object_get(d->object, "index"), json_object_get(o, "index")));
}

static int update_detail(struct part *d, const json_t *o)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)o, key, v)
	{
		if (!json_is_null(v) && strcmp(key, d->key) != 0 &&
		    json_object_set(d->object, key, v) != 0)
			return AVA_ENOMEM;
	}
	return 0;
}

/* Take words in any form: a text, parts, or an object that holds them. `thought`: shown, and not
 * sent back. */
static int openai_take_words(struct stream *s, const json_t *v, bool thought)
{
	static const char *const inside[] = {"thinking", "reasoning", "summary", "content", "text"};
	const char *type = json_str(v, "type");
	const json_t *one = NULL;
	size_t i;
	int rv = 0;

	if (json_is_string(v))
		return thought ? stream_thought(s, json_string_value(v), json_string_length(v))
			       : stream_piece(s, DELTA_TEXT, -1, json_string_value(v));
	thought = thought || strstr(type, "think") != NULL || strstr(type, "reason") != NULL;
	for (i = thought ? 0 : ARRAY_LEN(inside) - 1; i < ARRAY_LEN(inside) && one == NULL; i++)
		one = json_object_get(v, inside[i]);
	if (one != NULL)
		return openai_take_words(s, one, thought);
	json_array_foreach(v, i, one)
	{
		if (rv == 0)
			rv = openai_take_words(s, one, thought);
	}
	return rv;
}

/* `shown`: the text also came as plain reasoning. */
static int take_detail(struct stream *s, const json_t *o, bool shown)
{
	struct part *d = stream_find(s, 1u << PART_OTHER, -1);
	const char *text = text_key(o) != NULL ? json_get_str(o, text_key(o)) : NULL;
	int rv = 0;

	if (d != NULL && continues(d, o)) {
		rv = update_detail(d, o);
	} else {
		rv = stream_part(s, PART_OTHER, -1, &d);
		if (rv == 0) {
			d->key = text_key(o);
			d->object = json_deep_copy(o);
			rv = d->object != NULL ? 0 : AVA_ENOMEM;
		}
	}
	if (rv != 0 || text == NULL)
		return rv;
	rv = buf_adds(&d->text, text);
	return rv == 0 && !shown ? stream_thought(s, text, strlen(text)) : rv;
}

static int take_reasoning(struct stream *s, const json_t *delta)
{
	static const char *const names[] = {"reasoning_content", "reasoning",
					    "reasoning_text",    "thinking",
					    "thinking_content",  "thought"};
	const json_t *details = json_object_get(delta, "reasoning_details"), *o;
	bool shown = false;
	size_t i;
	int rv = 0;

	for (i = 0; i < ARRAY_LEN(names) && rv == 0; i++) {
		o = json_object_get(delta, names[i]);
		if (i < 2 && json_is_string(o))
			rv = stream_piece(s, i == 0 ? DELTA_THINKING : DELTA_REASONING, -1,
					  json_string_value(o));
		else if (o != NULL && !shown)
			rv = openai_take_words(s, o, true);
		shown |= json_is_string(o) ? json_string_length(o) > 0
					   : o != NULL && !json_is_null(o);
	}
	json_array_foreach(details, i, o)
	{
		if (rv == 0 && json_is_object(o))
			rv = take_detail(s, o, shown);
	}
	return rv;
}

/* ---- usage */

/* Names of the counts of usage in all services of this form; `in`: the members that may hold them.
 * Of two given counts the later row holds. */
static const struct {
	size_t at; /* offset in struct usage */
	const char *const in[3], *const keys[10];
} counts[] = {
#define COUNT(member) offsetof(struct usage, member)
	{COUNT(input),
	 {0},
	 {"prompt_tokens", "input_tokens", "promptTokenCount", "promptTokens", "inputTokens",
	  "prompt_eval_count", "inputTokenCount", "prompt_token_count"}},
	{COUNT(output),
	 {0},
	 {"completion_tokens", "output_tokens", "candidatesTokenCount", "completionTokens",
	  "outputTokens", "eval_count", "outputTokenCount", "candidates_token_count",
	  "generation_token_count"}},
	{COUNT(cache_read),
	 {0},
	 {"prompt_cache_hit_tokens", "cache_read_input_tokens", "cachedContentTokenCount"}},
	{COUNT(cache_read), {"prompt_tokens_details", "input_tokens_details"}, {"cached_tokens"}},
	{COUNT(cache_write),
	 {"prompt_tokens_details", "input_tokens_details"},
	 {"cache_write_tokens"}},
	{COUNT(reasoning),
	 {"completion_tokens_details", "output_tokens_details"},
	 {"reasoning_tokens"}},
};

/* Cost in dollars, also as a text or within an object; a later 0 replaces no cost. */
static void openai_take_cost(struct usage *u, const json_t *usage)
{
	const json_t *said = json_object_get(usage, "cost");
	int64_t upstream = json_get_fixed(json_object_get(usage, "cost_details"),
					  "upstream_inference_cost", 6, 0);
	int64_t cost = json_is_object(said) ? json_get_fixed(said, "total_cost", 6, -1)
					    : json_get_fixed(usage, "cost", 6, -1);
	char *end = NULL;
	double n = json_is_string(said) ? strtod(json_string_value(said), &end) : -1;

	if (end != NULL && *end == 0 && end != json_string_value(said) && n <= (double)USAGE_MAX)
		cost = (int64_t)(n * 1e6 + 0.5);
	if (cost < 0 || cost > USAGE_MAX * 1000)
		return;
	/* With the user's own key at the upstream the service bills only its fee. */
	if (json_get_bool(usage, "is_byok", false) && upstream > 0 && upstream <= USAGE_MAX * 1000)
		cost += upstream;
	u->cost_microusd = MAX(u->cost_microusd, cost);
}

/* A count of 0 means unknown and replaces none. */
void openai_usage(struct arriving *r, const json_t *usage)
{
	static const char *const totals[] = {"total_tokens", "totalTokenCount", "totalTokens",
					     NULL};
	struct usage *u = &r->usage;
	bool some = false;
	int64_t total;

	if (!json_is_object(usage))
		return;
	total = stream_count(usage, totals);
	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		const char *const *in = counts[i].in;
		const json_t *from = *in == NULL ? usage : json_object_get(usage, *in);
		int64_t n;

		if (from == NULL)
			from = json_object_get(usage, in[1]);
		n = stream_count(from, counts[i].keys);
		if (n > 0)
			*(int64_t *)((char *)u + counts[i].at) = n;
		some |= n > 0;
	}
	openai_take_cost(u, usage);
	if (!some || (u->input == 0 && u->output == 0))
		return;
	r->measured = true;
	/* Some services count thinking apart from the output. */
	if (u->input > 0 && total > 0)
		u->output = MAX(u->output, total - u->input);
	else if (u->reasoning > u->output)
		u->output += u->reasoning;
}

/* ---- chunks */

/* A whole message in place of a delta: some services send only this, others repeat everything in it
 * at the end. */
static int openai_take_message(struct stream *s, const json_t *message, bool whole)
{
	const unsigned words = 1u << PART_TEXT | 1u << PART_THINKING | 1u << PART_THOUGHT;
	const json_t *old = json_object_get(message, "function_call");
	json_t *extra = json_object_get(message, "extra_content");
	int rv = 0;

	if (extra != NULL && reply_shallow(extra, REPLY_DEPTH_MAX)) {
		json_decref(s->reply->extra);
		s->reply->extra = json_incref(extra);
	}
	if (!whole || stream_find(s, words, -1) == NULL) {
		rv = take_reasoning(s, message);
		if (rv == 0)
			rv = openai_take_words(s, json_object_get(message, "content"), false);
	}
	if (rv == 0)
		rv = take_calls(s, json_object_get(message, "tool_calls"), whole);
	return rv == 0 && json_is_object(old) ? take_calls(s, old, whole) : rv;
}

static int take_choice(struct stream *s, const json_t *choice)
{
	const json_t *delta = json_object_get(choice, "delta");
	const json_t *message = json_object_get(choice, "message");
	bool whole = json_object_size(delta) == 0 && json_is_object(message);
	const char *finish = given(choice, "finish_reason");
	const char *native = given(choice, "native_finish_reason");

	if (json_get_int(choice, "index", 0) != 0)
		return 0;
	delta = whole ? message : delta;
	stream_stop(s->reply, finish);
	openai_usage(s->reply, json_object_get(choice, "usage"));
	/* The native reason, of the service behind OpenRouter, where it says more. */
	if (native != NULL && (strcmp(native, "refusal") == 0 ||
			       strcmp(native, "model_context_window_exceeded") == 0))
		stream_stop(s->reply, native);
	if (given(delta, "refusal") != NULL)
		stream_stop(s->reply, "refusal");
	if (finish != NULL && strcmp(finish, "error") == 0)
		return stream_error_value(s, choice);
	return openai_take_message(s, delta, whole && finish != NULL);
}

static int take_chunk(struct stream *s, const char *data, size_t len, const json_t *chunk)
{
	const json_t *choice;
	size_t i;
	int rv = 0;

	if (s->reply->id[0] == 0)
		stream_id(s->reply, json_get_str(chunk, "id"));
	stream_served(s->reply, json_get_str(chunk, "model"));
	openai_usage(s->reply, json_object_get(chunk, "usage"));
	openai_usage(s->reply, json_object_get(chunk, "usageMetadata"));
	openai_usage(s->reply, chunk); /* Ollama has the members in the chunk itself */
	openai_usage(s->reply, json_object_get(json_object_get(chunk, "x_groq"), "usage"));
	json_array_foreach(json_object_get(chunk, "choices"), i, choice)
	{
		if (rv == 0)
			rv = take_choice(s, choice);
	}
	return rv;
}

/* ---- the line */

static bool id_char(unsigned char c)
{
	return c > ' ' && c < 127 && c != '"' && c != '\\';
}

static void write_members(struct jw *w, const json_t *members)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)members, key, v)
	{
		/* A writer takes names as they are: one with a quote would break the line. */
		if (chat_call_member((struct slice){key, strlen(key)}) || json_is_null(v) ||
		    json_plain(key, strlen(key)) != strlen(key) ||
		    !reply_shallow(v, REPLY_DEPTH_MAX))
			continue;
		jw_raw(w, key, "", 0);
		(void)json_dump(w->out, v);
	}
}

/* `more`: the call with all members that the service sent. */
static void openai_write_call(struct jw *w, const struct turn_call *c, const json_t *more)
{
	jw_object(w, NULL);
	jw_str(w, "id", c->wire_id);
	jw_str(w, "type", "function");
	jw_object(w, "function");
	jw_raw(w, "name", "\"", 1);
	stream_wire_name(w->out, c->name);
	buf_addc(w->out, '"');
	jw_strn(w, "arguments", c->args != NULL ? c->args : "{}",
		c->args != NULL ? c->args_len : 2);
	write_members(w, json_object_get(more, "function"));
	jw_end(w);
	write_members(w, more);
	jw_end(w);
}

static void openai_write_calls(struct jw *w, const struct arriving *r, const struct turn *t)
{
	const struct part *p = r->parts;

	jw_array(w, "tool_calls");
	for (unsigned i = 0; i < t->ncalls; i++, p++) {
		while (p->kind != PART_CALL)
			p++;
		openai_write_call(w, &t->calls[i], p->object);
	}
	jw_end(w);
}

/* Write reasoning_details as the service sent them, each joined from its pieces. */
static int write_details(struct jw *w, const struct arriving *r)
{
	int rv = 0;

	jw_array(w, "reasoning_details");
	for (unsigned i = 0; i < r->nparts && rv == 0; i++) {
		const struct part *d = &r->parts[i];

		if (d->kind != PART_OTHER)
			continue;
		if (d->key != NULL && d->text.len > 0 &&
		    json_object_set_new(d->object, d->key,
					json_stringn(d->text.data, d->text.len)) != 0)
			return AVA_ENOMEM;
		jw_raw(w, NULL, "", 0);
		rv = json_dump(w->out, d->object);
	}
	jw_end(w);
	return rv;
}

static int openai_write_line(const struct stream *s, const struct turn *t, struct jw *w)
{
	const struct part *plain = stream_find(s, 1u << PART_THINKING, -1);
	bool details = stream_find(s, 1u << PART_OTHER, -1) != NULL;
	int rv = 0;

	if (t->text_len > 0)
		jw_strn(w, "content", t->text, t->text_len);
	else
		jw_null(w, "content");
	if (details && model_takes(s->model, "reasoning_details"))
		rv = write_details(w, s->reply);
	else if (!details && plain != NULL && model_takes(s->model, plain->key))
		jw_strn(w, plain->key, plain->text.data, plain->text.len);
	if (json_is_object(s->reply->extra)) {
		jw_raw(w, "extra_content", "", 0);
		(void)json_dump(w->out, s->reply->extra);
	}
	if (t->ncalls > 0)
		openai_write_calls(w, s->reply, t);
	return rv;
}

static const struct stream_ops ops = {
	.chat = true,
	.place = openai_place_piece,
	.event = take_chunk,
	.line = openai_write_line,
	.id_char = id_char,
};

const struct dialect dialect_openai = {
	.name = "openai",
	.can_force = true,
	.encode_head = openai_head,
	.encode_tail = openai_tail,
	.line_kind = wire_line_kind,
	.encode_user = openai_user,
	.encode_results = openai_results,
	.check = wire_check_chat,
	.results = wire_each_result,
	.open_calls = wire_open_calls,
	.path = "/chat/completions",
	.headers = openai_headers,
	.mark_cache = openai_mark_cache,
	.in_lines = profile_in_chat,
	.stream = &ops,
};
