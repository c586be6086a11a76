/* What the checks of both dialects share: the table of models, the members
 * that both bodies have, headers, and error bodies in each service's shape.
 *
 * A request passes ask_read, then the checks of its service; the first
 * objection is the answer. Nothing here keeps anything of a request. */
#include "ask.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"

/* First match wins. What Anthropic's models take is what ava's own table says of
 * them (test_mock compares); each is written down from the service's pages. */
#define M 1000000
static const struct model_facts anthropic_models[] = {
	{"claude-haiku-5", 100000, 128000, 1024, false, true, false, false, true, 100000, 500000},
	{"claude-sonnet-5", 1000000, 128000, 1024, false, true, false, false, true, 2 * M, 10 * M},
	{"claude-opus-5-5", 1000000, 128000, 512, false, true, false, false, true, 4 * M, 20 * M},
	{"claude-opus-5", 1000000, 128000, 512, false, true, false, false, true, 5 * M, 25 * M},
	{"claude-fable-5", 1000000, 128000, 512, false, true, false, false, true, 10 * M, 50 * M},
	{"claude-opus-4-8", 1000000, 128000, 1024, false, true, false, false, true, 5 * M, 25 * M},
	{"claude-opus-4-7", 1000000, 128000, 2048, false, true, false, false, true, 5 * M, 25 * M},
	{"claude-opus-4-6", 1000000, 128000, 4096, true, true, true, false, true, 5 * M, 25 * M},
	{"claude-sonnet-4-6", 1000000, 64000, 1024, true, true, true, false, true, 3 * M, 15 * M},
	{"claude-opus-4-5", 200000, 64000, 4096, true, false, true, true, true, 5 * M, 25 * M},
	{"claude-opus-4-1", 200000, 32000, 1024, true, false, true, true, true, 15 * M, 75 * M},
	{"claude-3-5-haiku", 200000, 8192, 2048, false, false, true, true, true, 800000, 4 * M},
	{"claude-haiku", 200000, 64000, 4096, true, false, true, true, true, 1 * M, 5 * M},
	{"", 200000, 64000, 1024, true, false, true, true, true, 3 * M, 15 * M},
};

static const struct model_facts openai_models[] = {
	{"gpt-5", 400000, 128000, 1024, false, false, false, true, false, 1250000, 10 * M},
	{"gpt-4.1", 1047576, 32768, 1024, false, false, true, true, true, 2 * M, 8 * M},
	{"gpt-4o", 128000, 16384, 1024, false, false, true, true, true, 2500000, 10 * M},
	{"o1", 200000, 100000, 1024, false, false, false, true, false, 15 * M, 60 * M},
	{"o3", 200000, 100000, 1024, false, false, false, true, false, 2 * M, 8 * M},
	{"o4", 200000, 100000, 1024, false, false, false, true, false, 1100000, 4400000},
	{"", 128000, 32768, 1024, false, false, true, true, true, 2500000, 10 * M},
};

const struct model_facts *model_facts(enum service service, const char *name)
{
	const struct model_facts *f =
		service == SERVICE_ANTHROPIC ? anthropic_models : openai_models;

	while (strncmp(name, f->prefix, strlen(f->prefix)) != 0)
		f++; /* the last prefix is empty */
	return f;
}

bool verdict_set(struct verdict *v, int status, const char *type, const char *fmt, ...)
{
	va_list ap;

	if (v->status != 0)
		return false;
	v->status = status;
	v->type = type;
	va_start(ap, fmt);
	vsnprintf(v->text, sizeof v->text, fmt, ap);
	va_end(ap);
	return false;
}

bool check_members(const struct ask *a, uint32_t object, const char *const *known,
		   const char **unknown, char name[64])
{
	TAPE_EACH_KEY(a->t, i, object)
	{
		size_t k = 0;

		while (known[k] != NULL && !tape_is(a->t, i, known[k]))
			k++;
		if (known[k] == NULL) {
			*unknown = tape_copy(a->t, i, name, 64);
			return false;
		}
	}
	return true;
}

bool same_text(const struct ask *a, uint32_t x, uint32_t y)
{
	size_t nx, ny;
	const char *p = tape_raw(a->t, x, &nx), *q = tape_raw(a->t, y, &ny);

	return nx == ny && memcmp(p, q, nx) == 0;
}

bool check_word(const struct ask *a, uint32_t node, size_t max)
{
	size_t len;
	const char *s = tape_raw(a->t, node, &len);

	if (node == 0 || tape_kind(a->t, node) != TAPE_STRING || len < 3 || len - 2 > max)
		return false;
	for (size_t i = 1; i < len - 1; i++)
		if (!((s[i] >= 'a' && s[i] <= 'z') || (s[i] >= 'A' && s[i] <= 'Z') ||
		      (s[i] >= '0' && s[i] <= '9') || s[i] == '_' || s[i] == '-'))
			return false;
	return true;
}

static bool key_missing(const struct ask *a, struct verdict *v)
{
	switch (a->service) {
	case SERVICE_ANTHROPIC:
		return verdict_set(v, 401, "authentication_error", "x-api-key header is required");
	case SERVICE_OPENROUTER:
		return verdict_set(v, 401, "authentication", "No auth credentials found");
	case SERVICE_OPENAI:
		break;
	case SERVICE_LOCAL:
		return true;
	}
	return verdict_set(
		v, 401, INVALID,
		"You didn't provide an API key. You need to provide your API key in an "
		"Authorization header using Bearer auth (i.e. Authorization: Bearer YOUR_KEY).");
}

static bool check_key(const struct ask *a, struct verdict *v)
{
	if (a->key[0] == '\0')
		return key_missing(a, v);
	if (strncmp(a->key, "bad", 3) != 0 || a->service == SERVICE_LOCAL)
		return true;
	if (a->service == SERVICE_ANTHROPIC)
		return verdict_set(v, 401, "authentication_error", "invalid x-api-key");
	if (a->service == SERVICE_OPENROUTER)
		return verdict_set(v, 401, "authentication", "User not found.");
	v->code = "invalid_api_key";
	return verdict_set(v, 401, INVALID, "Incorrect API key provided: %.3s***.", a->key);
}

bool check_headers(const struct ask *a, struct verdict *v)
{
	if (!check_key(a, v))
		return false;
	if (a->service == SERVICE_ANTHROPIC && a->bearer && a->key[0] == '\0')
		return verdict_set(v, 401, "authentication_error", "Invalid bearer token");
	if (a->service == SERVICE_ANTHROPIC && a->version[0] == '\0')
		return invalid(v, "anthropic-version: header is required");
	if (a->service == SERVICE_ANTHROPIC && strcmp(a->version, "2023-06-01") != 0 &&
	    strcmp(a->version, VERSION_NEW) != 0)
		return invalid(v, "anthropic-version: \"%s\" is not a valid version", a->version);
	if (strcmp(a->method, "POST") != 0)
		return verdict_set(v, 405, INVALID, "Method Not Allowed");
	if (strncasecmp(a->type, "application/json", 16) == 0)
		return true;
	if (a->service == SERVICE_ANTHROPIC)
		return invalid(v, "Content-Type must be application/json");
	return invalid(v, "you must provide a model parameter"); /* it read no body */
}

static bool missing(const struct ask *a, const char *name, struct verdict *v)
{
	if (a->service == SERVICE_ANTHROPIC)
		return invalid(v, "%s: Field required", name);
	snprintf(v->param, sizeof v->param, "%s", name);
	v->code = "missing_required_parameter";
	return invalid(v, "Missing required parameter: '%s'.", name);
}

/* Of OpenAI each of these is served at one path alone. */
static bool check_path(const struct ask *a, struct verdict *v)
{
	const char *other = a->items ? "chat-only" : "gpt-5-pro";

	if (a->service == SERVICE_ANTHROPIC || strncmp(a->model, other, strlen(other)) != 0)
		return true;
	if (a->items)
		return invalid(v,
			       "The model `%s` is not supported with the Responses API. Please "
			       "use the /v1/chat/completions endpoint.",
			       a->model);
	snprintf(v->param, sizeof v->param, "model");
	return verdict_set(v, 404, INVALID,
			   "This model is only supported in v1/responses and not "
			   "in v1/chat/completions.");
}

static bool check_model(struct ask *a, struct verdict *v)
{
	uint32_t model = tape_get(a->t, 0, "model");

	if (model == 0 || tape_kind(a->t, model) != TAPE_STRING)
		return missing(a, "model", v);
	tape_copy(a->t, model, a->model, sizeof a->model);
	a->facts = model_facts(a->service, a->model);
	if (strncmp(a->model, "no-such", 7) != 0)
		return check_path(a, v);
	if (a->service == SERVICE_ANTHROPIC)
		return verdict_set(v, 404, "not_found_error", "model: %s", a->model);
	if (a->service == SERVICE_OPENROUTER)
		return verdict_set(v, 400, "invalid_request", "%s is not a valid model ID",
				   a->model);
	v->code = "model_not_found";
	return verdict_set(v, 404, INVALID,
			   "The model `%s` does not exist or you do not have access to it.",
			   a->model);
}

static bool is_true(const struct ask *a, uint32_t object, const char *name)
{
	uint32_t node = tape_get(a->t, object, name);

	return node != 0 && tape_kind(a->t, node) == TAPE_TRUE;
}

static void read_choice(struct ask *a)
{
	uint32_t choice = tape_get(a->t, 0, "tool_choice");
	uint32_t type = choice ? tape_get(a->t, choice, "type") : 0;
	uint32_t function = choice ? tape_get(a->t, choice, "function") : 0;

	a->no_tools = choice && (tape_is(a->t, choice, "none") || tape_is(a->t, type, "none"));
	if (tape_is(a->t, type, a->items ? "function" : "tool"))
		a->forced = tape_get(a->t, choice, "name");
	else if (function != 0)
		a->forced = tape_get(a->t, function, "name");
}

bool item_is_reply(const struct ask *a, uint32_t item)
{
	uint32_t type = tape_kind(a->t, item) == TAPE_OBJECT ? tape_get(a->t, item, "type") : 0;
	uint32_t role = tape_kind(a->t, item) == TAPE_OBJECT ? tape_get(a->t, item, "role") : 0;

	if (role != 0)
		return tape_is(a->t, role, "assistant");
	return type != 0 && !tape_is(a->t, type, "function_call_output");
}

bool check_body(struct ask *a, struct verdict *v)
{
	if (a->items)
		return check_responses(a, v);
	return a->service == SERVICE_ANTHROPIC ? check_anthropic(a, v) : check_openai(a, v);
}

bool ask_read(struct ask *a, const struct tape *t, struct verdict *v)
{
	const char *messages = a->items ? "input" : "messages";
	bool reply = false;
	uint32_t options;

	a->t = t;
	if (tape_kind(t, 0) != TAPE_OBJECT)
		return invalid(v, "Input should be a valid dictionary");
	if (!check_model(a, v))
		return false;
	a->messages = tape_get(t, 0, messages);
	if (a->messages == 0)
		return missing(a, messages, v);
	if (tape_kind(t, a->messages) != TAPE_ARRAY)
		return invalid(v, "%s: Input should be a valid list", messages);
	a->nmessages = t->nodes[a->messages].count;
	a->system = tape_get(t, 0, a->items ? "instructions" : "system");
	a->tools = tape_get(t, 0, "tools");
	a->stream = is_true(a, 0, "stream");
	options = tape_get(t, 0, "stream_options");
	a->usage_wanted = options != 0 && is_true(a, options, "include_usage");
	a->window = a->facts->window;
	read_choice(a);
	TAPE_EACH(t, i, a->messages)
	{
		bool before = reply && a->items; /* its items are one reply */

		reply = a->items ? item_is_reply(a, i)
				 : tape_kind(t, i) == TAPE_OBJECT &&
					   tape_is(t, tape_get(t, i, "role"), "assistant") &&
					   /* what a client writes for an empty one is none */
					   !tape_is(t, tape_get(t, i, "content"), "(nothing)");
		a->nassistant += reply && !before;
	}
	return true;
}

bool check_window(const struct ask *a, int64_t tokens, struct verdict *v)
{
	if (tokens <= a->window)
		return true;
	if (a->service == SERVICE_ANTHROPIC)
		return invalid(v, "prompt is too long: %lld tokens > %lld maximum",
			       (long long)tokens, (long long)a->window);
	v->code = "context_length_exceeded";
	snprintf(v->param, sizeof v->param, "messages");
	if (a->service == SERVICE_OPENROUTER)
		return verdict_set(
			v, 400, "context_length_exceeded",
			"This endpoint's maximum context length is %lld tokens. However, you "
			"requested about %lld tokens (%lld of text input). Please reduce the "
			"length of either one, or use the \"middle-out\" transform to compress "
			"your prompt automatically.",
			(long long)a->window, (long long)tokens, (long long)tokens);
	if (a->service == SERVICE_LOCAL)
		return verdict_set(
			v, 400, "exceed_context_size_error",
			"the request exceeds the available context size, try increasing it");
	return invalid(v,
		       "This model's maximum context length is %lld tokens. However, your messages "
		       "resulted in %lld tokens. Please reduce the length of the messages.",
		       (long long)a->window, (long long)tokens);
}

void quote_json(struct buf *out, const char *s, size_t len)
{
	buf_addc(out, '"');
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c == '"' || c == '\\')
			buf_addf(out, "\\%c", c);
		else if (c == '\n')
			buf_adds(out, "\\n");
		else if (c < 0x20)
			buf_addf(out, "\\u%04x", c);
		else
			buf_addc(out, (char)c);
	}
	buf_addc(out, '"');
}

void verdict_body(const struct ask *a, const struct verdict *v, const char *request_id,
		  struct buf *out)
{
	if (a->service == SERVICE_ANTHROPIC) {
		buf_addf(out,
			 "{\"type\":\"error\",\"error\":{\"type\":\"%s\",\"message\":", v->type);
		quote_json(out, v->text, strlen(v->text));
		buf_addf(out, "},\"request_id\":\"%s\"}", request_id);
		return;
	}
	buf_adds(out, "{\"error\":{\"message\":");
	quote_json(out, v->text, strlen(v->text));
	if (a->service == SERVICE_OPENROUTER) {
		buf_addf(out,
			 ",\"code\":%d,\"metadata\":{\"error_type\":\"%s\"}},\"user_id\":null}",
			 v->status, v->type);
		return;
	}
	buf_addf(out, ",\"type\":\"%s\",\"param\":", v->type);
	if (v->param[0] != '\0')
		quote_json(out, v->param, strlen(v->param));
	else
		buf_adds(out, "null");
	if (a->service == SERVICE_LOCAL)
		buf_addf(out, ",\"code\":%d}}", v->status);
	else if (v->code != NULL)
		buf_addf(out, ",\"code\":\"%s\"}}", v->code);
	else
		buf_adds(out, ",\"code\":null}}");
}
