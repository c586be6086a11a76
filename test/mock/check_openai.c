/* What chat completions refuse, in the words of OpenAI: parameters, roles,
 * contents, tool_calls and the tool messages that answer them (both ways),
 * tool schemas. OpenRouter and local servers take more parameters; the
 * conversation has to be right for all of them.
 *
 * One pass over the messages. The ids of the last assistant message with
 * tool_calls are open until as many tool messages have answered them; any
 * other message before that is refused. */
#include "ask.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "signature.h"

#define IDS_MAX   512
#define TOOLS_MAX 128

struct walk {
	struct ask *a;
	struct verdict *v;
	unsigned message;
	uint32_t open[IDS_MAX]; /* id nodes of the newest tool_calls */
	bool answered[IDS_MAX];
	unsigned nopen, waiting; /* waiting: not yet answered */
};

static bool at(struct verdict *v, const char *code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Name the member at fault before verdict_set. Always true. */
static bool at(struct verdict *v, const char *code, const char *fmt, ...)
{
	va_list ap;

	if (v->status != 0)
		return true;
	va_start(ap, fmt);
	vsnprintf(v->param, sizeof v->param, fmt, ap);
	va_end(ap);
	v->code = code;
	return true;
}

#define absent(v, ...)                                                                             \
	(at(v, "missing_required_parameter", __VA_ARGS__) &&                                       \
	 invalid(v, "Missing required parameter: '%s'.", (v)->param))
#define misnamed(v, ...)                                                                           \
	(at(v, "invalid_value", __VA_ARGS__) &&                                                    \
	 invalid(v,                                                                                \
		 "Invalid '%s': string does not match pattern. Expected a string that matches "    \
		 "the pattern '^[a-zA-Z0-9_-]+$'.",                                                \
		 (v)->param))

static bool is_kind(const struct ask *a, uint32_t node, enum tape_kind kind)
{
	return node != 0 && tape_kind(a->t, node) == kind;
}

static const char *type_name(const struct ask *a, uint32_t node)
{
	static const char *const names[] = {"null",     "a boolean", "a boolean", "a number",
					    "a string", "an array",  "an object"};

	return names[tape_kind(a->t, node)];
}

/* Contents: a string, or parts. An assistant's may be null beside calls. */
static bool check_content(struct walk *w, uint32_t content, bool optional)
{
	struct ask *a = w->a;
	unsigned n = 0;

	if (content == 0 || tape_kind(a->t, content) == TAPE_NULL) {
		if (optional)
			return true;
		at(w->v, content ? NULL : "missing_required_parameter", "messages.[%u].content",
		   w->message);
		return content ? invalid(w->v, "Invalid value for 'content': expected a string, "
					       "got null.")
			       : invalid(w->v,
					 "Missing required parameter: 'messages[%u].content'.",
					 w->message);
	}
	if (tape_kind(a->t, content) == TAPE_STRING)
		return true;
	if (tape_kind(a->t, content) != TAPE_ARRAY)
		return at(w->v, "invalid_type", "messages[%u].content", w->message) &&
		       invalid(w->v,
			       "Invalid type for '%s': expected one of a string or array of "
			       "objects, but got %s instead.",
			       w->v->param, type_name(a, content));
	TAPE_EACH(a->t, i, content)
	{
		uint32_t type = is_kind(a, i, TAPE_OBJECT) ? tape_get(a->t, i, "type") : 0;

		if (tape_is(a->t, type, "image_url") || tape_is(a->t, type, "refusal") ||
		    (tape_is(a->t, type, "text") &&
		     is_kind(a, tape_get(a->t, i, "text"), TAPE_STRING))) {
			n++;
			continue;
		}
		return at(w->v, "invalid_value", "messages[%u].content[%u].type", w->message, n) &&
		       invalid(w->v,
			       "Invalid value for '%s'. Supported values are: 'text', 'image_url', "
			       "'input_audio', 'refusal', 'audio', and 'file'.",
			       w->v->param);
	}
	return true;
}

/* The arguments are a string that holds a JSON object: some servers answer
 * 500 on the turn after one that is not. */
static bool check_arguments(struct walk *w, uint32_t arguments, unsigned n)
{
	struct ask *a = w->a;
	struct tape inner;
	struct buf b;
	bool good;

	if (!is_kind(a, arguments, TAPE_STRING))
		return at(w->v, "invalid_type", "messages[%u].tool_calls[%u].function.arguments",
			  w->message, n) &&
		       invalid(w->v,
			       "Invalid type for '%s': expected a string, but got %s instead.",
			       w->v->param, arguments ? type_name(a, arguments) : "nothing");
	tape_init(&inner);
	buf_init(&b, 1u << 26);
	tape_text(a->t, arguments, &b);
	good = tape_read(&inner, b.len ? b.data : "", b.len) && tape_kind(&inner, 0) == TAPE_OBJECT;
	buf_fini(&b);
	tape_fini(&inner);
	return good ||
	       (at(w->v, "invalid_value", "messages[%u].tool_calls[%u].function.arguments",
		   w->message, n) &&
		invalid(w->v, "Invalid '%s': the string is not a JSON object.", w->v->param));
}

static bool check_call(struct walk *w, uint32_t call, unsigned n)
{
	struct ask *a = w->a;
	uint32_t id = is_kind(a, call, TAPE_OBJECT) ? tape_get(a->t, call, "id") : 0;
	uint32_t function = id ? tape_get(a->t, call, "function") : 0;
	const char *lacks = NULL;

	if (!is_kind(a, id, TAPE_STRING))
		lacks = "id";
	else if (!tape_is(a->t, tape_get(a->t, call, "type"), "function"))
		lacks = "type";
	else if (!is_kind(a, function, TAPE_OBJECT))
		lacks = "function";
	if (lacks != NULL)
		return absent(w->v, "messages[%u].tool_calls[%u].%s", w->message, n, lacks);
	if (!check_word(a, tape_get(a->t, function, "name"), 64)) {
		return misnamed(w->v, "messages[%u].tool_calls[%u].function.name", w->message, n);
	}
	if (!check_arguments(w, tape_get(a->t, function, "arguments"), n))
		return false;
	for (unsigned i = 0; i < w->nopen; i++)
		if (same_text(a, w->open[i], id))
			return invalid(w->v,
				       "Duplicate value for 'tool_call_id' in 'tool_calls' of "
				       "messages[%u].",
				       w->message);
	if (w->nopen == IDS_MAX)
		return invalid(w->v, "Invalid 'messages[%u].tool_calls': array too long.",
			       w->message);
	w->open[w->nopen] = id;
	w->answered[w->nopen++] = false;
	w->waiting++;
	return true;
}

static bool check_reasoning(struct walk *w, uint32_t message)
{
	struct ask *a = w->a;
	uint32_t details = tape_get(a->t, message, "reasoning_details");

	if (details == 0)
		return true;
	if (!is_kind(a, details, TAPE_ARRAY))
		return invalid(w->v, "messages.%u.reasoning_details: expected an array",
			       w->message);
	TAPE_EACH(a->t, i, details)
	{
		uint32_t sign = is_kind(a, i, TAPE_OBJECT) ? tape_get(a->t, i, "signature") : 0;

		if (is_kind(a, sign, TAPE_STRING) &&
		    !signature_good(a->t, tape_get(a->t, i, "text"), sign))
			return invalid(w->v, "messages.%u: Invalid `signature` in `thinking` block",
				       w->message);
	}
	return true;
}

static bool check_assistant(struct walk *w, uint32_t message)
{
	struct ask *a = w->a;
	uint32_t calls = tape_get(a->t, message, "tool_calls");
	unsigned n = 0;

	w->nopen = w->waiting = 0;
	if (!check_content(w, tape_get(a->t, message, "content"),
			   calls != 0 || tape_get(a->t, message, "refusal") != 0) ||
	    !check_reasoning(w, message))
		return false;
	if (calls == 0)
		return true;
	if (!is_kind(a, calls, TAPE_ARRAY))
		return invalid(w->v,
			       "Invalid type for 'messages[%u].tool_calls': expected an array of "
			       "objects, but got %s instead.",
			       w->message, type_name(a, calls));
	if (a->t->nodes[calls].count == 0)
		return at(w->v, "empty_array", "messages[%u].tool_calls", w->message) &&
		       invalid(w->v,
			       "Invalid '%s': empty array. Expected an array with minimum length "
			       "1, but got an empty array instead.",
			       w->v->param);
	TAPE_EACH(a->t, i, calls)
	if (!check_call(w, i, n++))
		return false;
	return true;
}

static bool check_tool_message(struct walk *w, uint32_t message)
{
	struct ask *a = w->a;
	uint32_t id = tape_get(a->t, message, "tool_call_id");
	char text[96];

	if (w->nopen == 0)
		return at(w->v, NULL, "messages.[%u].role", w->message) &&
		       invalid(w->v, "Invalid parameter: messages with role 'tool' must be a "
				     "response to a preceeding message with 'tool_calls'.");
	if (!is_kind(a, id, TAPE_STRING)) {
		return at(w->v, NULL, "messages.[%u].tool_call_id", w->message) &&
		       invalid(w->v, "Missing parameter 'tool_call_id': messages with role 'tool' "
				     "must have a 'tool_call_id'.");
	}
	if (!check_content(w, tape_get(a->t, message, "content"), false))
		return false;
	for (unsigned i = 0; i < w->nopen; i++) {
		if (!same_text(a, w->open[i], id))
			continue;
		if (w->answered[i])
			return invalid(
				w->v, "Duplicate value for 'tool_call_id' of '%s' in messages[%u].",
				tape_copy(a->t, id, text, sizeof text), w->message);
		w->answered[i] = true;
		w->waiting--;
		return true;
	}
	return at(w->v, NULL, "messages.[%u].tool_call_id", w->message) &&
	       invalid(w->v,
		       "Invalid parameter: 'tool_call_id' of '%s' not found in 'tool_calls' of "
		       "previous message.",
		       tape_copy(a->t, id, text, sizeof text));
}

/* No call may be open when something other than its answer comes. */
static bool check_answered(struct walk *w, unsigned before)
{
	struct buf ids;
	char text[96];

	if (w->waiting == 0)
		return true;
	buf_init(&ids, 400);
	for (unsigned i = 0; i < w->nopen; i++)
		if (!w->answered[i])
			buf_addf(&ids, "%s%s", ids.len ? ", " : "",
				 tape_copy(w->a->t, w->open[i], text, sizeof text));
	at(w->v, NULL, "messages.[%u].role", before);
	invalid(w->v,
		"An assistant message with 'tool_calls' must be followed by tool messages "
		"responding to each 'tool_call_id'. The following tool_call_ids did not have "
		"response messages: %s",
		ids.len ? ids.data : "");
	buf_fini(&ids);
	return false;
}

static bool check_role(struct walk *w, uint32_t message)
{
	static const char *const members[] = {
		"role",    "content", "name",      "tool_calls",        "tool_call_id",
		"refusal", "audio",   "reasoning", "reasoning_details", "reasoning_content",
		NULL};
	struct ask *a = w->a;
	uint32_t role = is_kind(a, message, TAPE_OBJECT) ? tape_get(a->t, message, "role") : 0;
	const char *unknown;
	char text[64];

	if (!is_kind(a, role, TAPE_STRING))
		return absent(w->v, "messages[%u].role", w->message);
	if (!check_members(a, message, members, &unknown, text))
		return invalid(w->v,
			       "Additional properties are not allowed ('%s' was unexpected) - "
			       "'messages.%u'",
			       unknown, w->message);
	if (tape_is(a->t, role, "tool"))
		return check_tool_message(w, message);
	if (!check_answered(w, w->message))
		return false;
	if (tape_is(a->t, role, "assistant"))
		return check_assistant(w, message);
	w->nopen = 0;
	if (tape_is(a->t, role, "user") || tape_is(a->t, role, "system") ||
	    tape_is(a->t, role, "developer"))
		return check_content(w, tape_get(a->t, message, "content"), false);
	return at(w->v, "invalid_value", "messages[%u].role", w->message) &&
	       invalid(w->v,
		       "Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', "
		       "'function', 'tool', and 'developer'.",
		       tape_copy(a->t, role, text, sizeof text));
}

static bool check_tool(struct ask *a, uint32_t tool, unsigned n, struct verdict *v)
{
	uint32_t function = is_kind(a, tool, TAPE_OBJECT) ? tape_get(a->t, tool, "function") : 0;
	uint32_t name = is_kind(a, function, TAPE_OBJECT) ? tape_get(a->t, function, "name") : 0;
	uint32_t schema = name ? tape_get(a->t, function, "parameters") : 0;
	char text[80];

	if (function == 0 || !tape_is(a->t, tape_get(a->t, tool, "type"), "function"))
		return absent(v, "tools[%u].%s", n, function ? "type" : "function");
	if (name == 0) {
		return absent(v, "tools[%u].function.name", n);
	}
	if (!check_word(a, name, 64))
		return misnamed(v, "tools[%u].function.name", n);
	if (schema != 0 &&
	    !tape_is(a->t, is_kind(a, schema, TAPE_OBJECT) ? tape_get(a->t, schema, "type") : 0,
		     "object")) {
		return at(v, "invalid_function_parameters", "tools[%u].function.parameters", n) &&
		       invalid(v,
			       "Invalid schema for function '%s': schema must be a JSON Schema of "
			       "'type: \"object\"', got 'type: \"None\"'.",
			       tape_copy(a->t, name, text, sizeof text));
	}
	return true;
}

static bool check_tools(struct ask *a, struct verdict *v)
{
	unsigned n = 0;

	if (a->tools == 0)
		return true;
	if (!is_kind(a, a->tools, TAPE_ARRAY))
		return at(v, "invalid_type", "tools") &&
		       invalid(v, "Invalid type for 'tools': expected an array of objects.");
	n = a->t->nodes[a->tools].count;
	if (n == 0 || n > TOOLS_MAX)
		return at(v, n ? "array_above_max_length" : "empty_array", "tools") &&
		       invalid(v, n ? "Invalid 'tools': array too long. Expected an array with "
				      "maximum length 128."
				    : "Invalid 'tools': empty array. Expected an array with "
				      "minimum length 1, but got an empty array instead.");
	n = 0;
	TAPE_EACH(a->t, i, a->tools)
	if (!check_tool(a, i, n++, v))
		return false;
	return true;
}

static bool check_choice(struct ask *a, struct verdict *v)
{
	uint32_t choice = tape_get(a->t, 0, "tool_choice");

	if (choice == 0 || tape_is(a->t, choice, "none"))
		return true;
	if (a->tools == 0)
		return at(v, NULL, "tool_choice") &&
		       invalid(v, "Invalid value for 'tool_choice': 'tool_choice' is only allowed "
				  "when 'tools' are specified.");
	if (tape_is(a->t, choice, "auto") || tape_is(a->t, choice, "required"))
		return true;
	TAPE_EACH(a->t, i, a->tools)
	{
		uint32_t function = tape_get(a->t, i, "function");

		if (a->forced != 0 && same_text(a, a->forced, tape_get(a->t, function, "name")))
			return true;
	}
	return at(v, NULL, "tool_choice") &&
	       invalid(v, "Invalid value for 'tool_choice': the function is not in 'tools'.");
}

static bool check_format(struct ask *a, struct verdict *v)
{
	uint32_t format = tape_get(a->t, 0, "response_format"), in, schema;

	if (format == 0 || tape_is(a->t, tape_get(a->t, format, "type"), "text"))
		return true;
	in = tape_get(a->t, format, "json_schema");
	schema = in != 0 ? tape_get(a->t, in, "schema") : 0;
	a->formed = schema != 0 && tape_kind(a->t, schema) == TAPE_OBJECT &&
		    tape_get(a->t, in, "name") != 0 &&
		    tape_is(a->t, tape_get(a->t, format, "type"), "json_schema");
	if (!a->formed)
		return at(v, NULL, "response_format") &&
		       invalid(v, "Invalid value for 'response_format': expected a named schema.");
	if (a->service == SERVICE_LOCAL && a->tools != 0 && !a->no_tools) /* llama.cpp */
		return invalid(v, "Cannot use custom grammar constraints with tools.");
	return true;
}

static bool check_limit(struct ask *a, struct verdict *v)
{
	uint32_t old = tape_get(a->t, 0, "max_tokens");
	uint32_t new = tape_get(a->t, 0, "max_completion_tokens");
	uint32_t limit = new ? new : old;

	if (old != 0 && !a->facts->max_tokens)
		return at(v, "unsupported_parameter", "max_tokens") &&
		       invalid(v, "Unsupported parameter: 'max_tokens' is not supported with this "
				  "model. Use 'max_completion_tokens' instead.");
	if (old != 0 && new != 0)
		return invalid(v, "Setting 'max_tokens' and 'max_completion_tokens' at the same "
				  "time is not supported.");
	if (limit == 0)
		return true;
	at(v, "invalid_type", old ? "max_tokens" : "max_completion_tokens");
	if (!tape_int(a->t, limit, &a->max_tokens))
		return invalid(v, "Invalid type for '%s': expected an integer.", v->param);
	if (a->max_tokens < 1)
		return invalid(v,
			       "Invalid '%s': integer below minimum value. Expected a value >= 1, "
			       "but got %lld instead.",
			       v->param, (long long)a->max_tokens);
	if (a->max_tokens > a->facts->max_output && a->service == SERVICE_OPENAI)
		return invalid(v,
			       "max_tokens is too large: %lld. This model supports at most %lld "
			       "completion tokens, whereas you provided %lld.",
			       (long long)a->max_tokens, (long long)a->facts->max_output,
			       (long long)a->max_tokens);
	at(v, NULL, "%s", "");
	return true;
}

static bool check_parameters(struct ask *a, struct verdict *v)
{
	/* clang-format off */
	static const char *const openai[] = {
		"model", "messages", "max_tokens", "max_completion_tokens", "temperature",
		"top_p", "n", "stream", "stream_options", "stop", "presence_penalty",
		"frequency_penalty", "logit_bias", "logprobs", "top_logprobs", "user",
		"response_format", "seed", "tools", "tool_choice", "parallel_tool_calls",
		"reasoning_effort", "store", "metadata", "service_tier", "modalities",
		"prediction", "prompt_cache_key", "safety_identifier", "verbosity", NULL,
	};
	/* clang-format on */
	uint32_t temperature = tape_get(a->t, 0, "temperature");
	uint32_t options = tape_get(a->t, 0, "stream_options");
	const char *unknown;
	char name[64];
	double x = 1;

	if (a->service == SERVICE_OPENAI && !check_members(a, 0, openai, &unknown, name))
		return at(v, "unknown_parameter", "%s", unknown) &&
		       invalid(v, "Unknown parameter: '%s'.", unknown);
	if (temperature != 0 && !tape_real(a->t, temperature, &x)) {
		return at(v, "invalid_type", "temperature") &&
		       invalid(v, "Invalid type for 'temperature': expected a decimal.");
	}
	if (x != 1 && !a->facts->sampling)
		return at(v, "unsupported_value", "temperature") &&
		       invalid(v,
			       "Unsupported value: 'temperature' does not support %g with this "
			       "model. Only the default (1) value is supported.",
			       x);
	if (options != 0 && !a->stream) {
		return at(v, NULL, "stream_options") &&
		       invalid(v, "The 'stream_options' parameter is only allowed when 'stream' is "
				  "enabled.");
	}
	return check_limit(a, v) && check_tools(a, v) && check_choice(a, v) && check_format(a, v);
}

bool check_openai(struct ask *a, struct verdict *v)
{
	struct walk w = {.a = a, .v = v};

	if (!check_parameters(a, v))
		return false;
	if (a->nmessages == 0)
		return at(v, "empty_array", "messages") &&
		       invalid(v, "Invalid 'messages': empty array. Expected an array with minimum "
				  "length 1, but got an empty array instead.");
	TAPE_EACH(a->t, i, a->messages)
	{
		if (!check_role(&w, i))
			return false;
		w.message++;
	}
	return check_answered(&w, a->nmessages);
}
