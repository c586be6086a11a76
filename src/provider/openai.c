/* Requests of chat completions. Services differ in small things, which are
 * decided here by the provider: OpenRouter wants require_parameters (else it
 * may pick a provider that ignores tools) and marks on what models of
 * Anthropic shall cache; OpenAI names the cap and the effort its own way; all
 * but OpenRouter must be asked for usage. What a model rejects is left out.
 * Encoders fail with their buffer only. */
#include "provider/openai.h"

#include <string.h>

#include "agent/tool.h"
#include "agent/turn.h"
#include "base/error.h"
#include "base/util.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "provider/openai_stream.h"
#include "provider/provider.h"
#include "provider/stream_core.h"
#include "provider/wire.h"

#define MARK "\"cache_control\":{\"type\":\"ephemeral\"}"

static bool takes(const struct model *m, const char *param)
{
	return m == NULL || model_takes(m, param);
}

static bool is_at(const struct model *m, const char *provider)
{
	return m != NULL && m->provider != NULL && strcmp(m->provider->name, provider) == 0;
}

/* Behind OpenRouter these models cache only what is marked. */
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

static void add_tool(struct jw *w, const struct tool *t)
{
	jw_object(w, NULL);
	jw_str(w, "type", "function");
	jw_object(w, "function");
	jw_str(w, "name", t->name);
	jw_str(w, "description", t->description);
	jw_raw(w, "parameters", t->schema, strlen(t->schema));
	jw_end(w);
	jw_end(w);
}

int openai_head(struct buf *out, const struct dialect_spec *spec)
{
	const struct model *m = spec->model_facts;
	struct jw w;

	jw_init(&w, out);
	jw_object(&w, NULL);
	jw_str(&w, "model", m != NULL && m->wire_name[0] != 0 ? m->wire_name : spec->model);
	if (spec->ntools > 0) {
		jw_array(&w, "tools");
		for (unsigned i = 0; i < spec->ntools; i++)
			add_tool(&w, spec->tools[i]);
		jw_end(&w);
	}
	jw_array(&w, "messages"); /* the tail closes it */
	if (spec->system[0] != 0) {
		add_system(&w, spec->system, wants_marks(m));
		buf_addc(out, ','); /* the lines follow, and there is always one */
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

	if (takes(m, first))
		return first;
	return takes(m, other) ? other : NULL;
}

static void add_thinking(struct buf *out, const struct model *m)
{
	if (is_at(m, "openrouter")) {
		if (model_takes(m, "reasoning"))
			buf_adds(out, ",\"reasoning\":{\"effort\":\"medium\"}");
	} else if (model_takes(m, "reasoning_effort")) {
		buf_adds(out, ",\"reasoning_effort\":\"medium\"");
	}
}

int openai_tail(struct buf *out, const struct model *m, bool thinking,
		const struct agent_infer *call)
{
	const char *cap = cap_name(m);
	bool force = call->force_submit && takes(m, "tool_choice");

	buf_adds(out, "],\"stream\":true");
	if (!is_at(m, "openrouter") && takes(m, "stream_options"))
		buf_adds(out, ",\"stream_options\":{\"include_usage\":true}");
	if (cap != NULL)
		buf_addf(out, ",\"%s\":%lld", cap, (long long)call->max_output);
	/* Many models behind OpenRouter refuse a forced tool while they think. */
	if (thinking && m != NULL && m->thinking != MODEL_THINKING_NONE &&
	    !(force && is_at(m, "openrouter")))
		add_thinking(out, m);
	if (force)
		buf_adds(out, ",\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":"
			      "\"submit_result\"}}");
	if (is_at(m, "openrouter") && model_takes(m, "provider"))
		buf_adds(out, ",\"provider\":{\"require_parameters\":true}");
	buf_addc(out, '}');
	return buf_check(out);
}

int openai_headers(struct buf *out, const struct model *m, const char *key)
{
	for (const char *s = key; s != NULL && *s != 0; s++)
		if (*s <= ' ' || *s == 127)
			return AVA_EINVAL;
	buf_adds(out, "content-type: application/json\naccept: text/event-stream\n");
	if (key != NULL && key[0] != 0) {
		buf_adds(out, "authorization: Bearer ");
		buf_adds(out, key);
		buf_addc(out, '\n');
	}
	if (is_at(m, "openrouter")) /* who asks, in its statistics */
		buf_adds(out, "http-referer: http://localhost/ava\nx-openrouter-title: ava\n");
	return buf_check(out);
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

static int add_result(struct buf *out, const struct turn_call *c)
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
		jw_str(&w, "role", "tool");
		jw_str(&w, "tool_call_id", c->wire_id);
		jw_strn(&w, "content", text.data, text.len);
		jw_end(&w);
	}
	buf_fini(&text);
	return rv;
}

/* Templates of local models want roles to alternate: one message for all. */
static int join_notices(struct buf *all, const char *const *notices, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		if (wire_blank(notices[i], strlen(notices[i])))
			continue;
		if (all->len > 0)
			buf_adds(all, "\n\n");
		buf_adds(all, notices[i]);
	}
	return buf_check(all);
}

int openai_results(struct buf *out, const struct turn *t, const char *const *notices,
		   unsigned nnotices)
{
	struct buf all;
	int rv = 0;

	for (unsigned i = 0; i < t->ncalls && rv == 0; i++) {
		if (i > 0)
			buf_addc(out, '\n');
		rv = add_result(out, &t->calls[i]);
	}
	if (rv != 0)
		return rv;
	buf_init(&all, TURN_MAX_BYTES);
	rv = join_notices(&all, notices, nnotices);
	if (rv == 0 && all.len > 0) {
		if (t->ncalls > 0)
			buf_addc(out, '\n');
		rv = openai_user(out, all.data, all.len);
	} else if (rv == 0 && t->ncalls == 0) {
		rv = AVA_EINVAL; /* a line needs content */
	}
	buf_fini(&all);
	return rv != 0 ? rv : buf_check(out);
}

/* ---- lines in a request */

static const char *const reasoning[] = {"reasoning_content", "reasoning", "reasoning_details"};

bool openai_in_lines(const char *parameter)
{
	for (size_t i = 0; i < ARRAY_LEN(reasoning); i++)
		if (strcmp(reasoning[i], parameter) == 0)
			return true;
	return false;
}

static bool rejected(const struct model *m, struct slice key)
{
	for (size_t i = 0; i < ARRAY_LEN(reasoning); i++)
		if (slice_is(key, reasoning[i]))
			return !takes(m, reasoning[i]);
	return false;
}

/* Moves s[*from..to) to *out; in place, since it only ever moves down. */
static void keep(char *s, size_t *out, size_t *from, size_t to)
{
	memmove(s + *out, s + *from, to - *from);
	*out += to - *from;
	*from = to;
}

/* Leaves out the reasoning that the model does not take back: it came when that
 * was not known yet. The scanner is ahead of what is moved. */
static void leave_out(struct buf *body, size_t lines_from, const struct model *m)
{
	char *s = body->data + lines_from;
	size_t len = body->len - lines_from, out = 0, from = 0;
	struct slice key, value;
	struct jscan w;

	jscan_init(&w, s, len);
	w.last = '['; /* as if the head had just opened the array */
	while (jscan_peek(&w) != 0 && jscan_item(&w) && jscan_object(&w)) {
		while (jscan_key(&w, &key)) {
			size_t comma = (size_t)(key.s - s) - 2;

			if (!jscan_skip(&w, &value) || !rejected(m, key) || s[comma] != ',')
				continue;
			keep(s, &out, &from, comma);
			from = (size_t)(value.s - s) + value.len;
		}
	}
	keep(s, &out, &from, len);
	body->len = lines_from + out;
	s[out] = 0;
}

/* Raw text of a string in which nothing is to be seen. */
static bool is_blank(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		bool escape = s[i] == '\\' && i + 1 < len && strchr("nrt", s[i + 1]) != NULL;

		if (!escape && s[i] != ' ')
			return false;
		i += escape;
	}
	return true;
}

/* The last message ends with its text: …"content":"T"}. The text becomes a
 * part with a mark. What ends otherwise is left alone, and so is a blank text:
 * a tool message may hold one, a part may not. */
static int mark_newest(struct buf *body, size_t lines_from)
{
	static const char key[] = ",\"content\":\"", part[] = "[{\"type\":\"text\",\"text\":";
	const size_t nkey = sizeof(key) - 1, npart = sizeof(part) - 1;
	char *text, *s = body->data + lines_from;
	size_t len = body->len - lines_from;

	if (len < nkey + 2 || memcmp(s + len - 2, "\"}", 2) != 0)
		return 0;
	/* Quotes inside strings are escaped, so the last such key is the one. */
	for (text = s + len - nkey; text > s && memcmp(text, key, nkey) != 0; text--)
		;
	if (text == s)
		return 0;
	text += nkey - 1; /* its opening quote */
	len = (size_t)(body->data + body->len - 1 - text);
	if (is_blank(text + 1, len - 2))
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

int openai_mark_cache(struct buf *body, size_t lines_from, const struct model *m)
{
	for (size_t i = 0; i < ARRAY_LEN(reasoning); i++) {
		if (takes(m, reasoning[i]))
			continue;
		leave_out(body, lines_from, m);
		break;
	}
	return wants_marks(m) ? mark_newest(body, lines_from) : 0;
}

const struct dialect dialect_openai = {
	.name = "openai",
	.can_force = true,
	.encode_head = openai_head,
	.encode_tail = openai_tail,
	.encode_user = openai_user,
	.encode_results = openai_results,
	.check = wire_check_chat,
	.results = wire_each_result,
	.open_calls = wire_open_calls,
	.path = "/chat/completions",
	.headers = openai_headers,
	.mark_cache = openai_mark_cache,
	.in_lines = openai_in_lines,
	.stream_new = openai_stream_new,
	.stream_feed = stream_feed,
	.stream_end = stream_end,
	.stream_free = stream_free,
	.stream_on_text = stream_on_text,
};
