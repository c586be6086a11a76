/* What the Responses API refuses, in the words of OpenAI: parameters, kinds of items and their
 * members, calls and their outputs (both ways), reasoning that is not what was sent or stands
 * alone, items by an id that nobody kept, schemas of tools.
 *
 * One pass over the items. Each call is open until its output comes; a message before that is
 * refused. */
#include "ask.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "signature.h"

#define CALLS_MAX 512

struct walk {
	struct ask *a;
	struct verdict *v;
	unsigned item;
	uint32_t calls[CALLS_MAX]; /* nodes of their ids */
	bool answered[CALLS_MAX];
	unsigned ncalls, waiting;
	bool thought; /* the item before was reasoning */
};

__attribute__((format(printf, 3, 4))) static bool at(struct verdict *v, const char *code,
						     const char *fmt, ...)
{
	va_list ap;

	if (v->status == 0) {
		va_start(ap, fmt);
		vsnprintf(v->param, sizeof v->param, fmt, ap);
		va_end(ap);
		v->code = code;
	}
	return true;
}

static bool is_kind(const struct ask *a, uint32_t node, enum tape_kind kind)
{
	return node != 0 && tape_kind(a->t, node) == kind;
}

static bool absent(const struct walk *w, const char *member)
{
	return at(w->v, "missing_required_parameter", "input[%u].%s", w->item, member) &&
	       invalid(w->v, "Missing required parameter: '%s'.", w->v->param);
}

/* Members of the object: a known name each, and strings where `strings` says so. */
static bool check_shape(const struct walk *w, uint32_t item, const char *const *known,
			const char *const *strings)
{
	const char *unknown;
	char name[64];

	if (!check_members(w->a, item, known, &unknown, name))
		return at(w->v, "unknown_parameter", "input[%u].%s", w->item, unknown) &&
		       invalid(w->v, "Unknown parameter: '%s'.", w->v->param);
	for (; *strings != NULL; strings++) {
		uint32_t member = tape_get(w->a->t, item, *strings);

		if (member == 0)
			return absent(w, *strings);
		if (!is_kind(w->a, member, TAPE_STRING))
			return at(w->v, "invalid_type", "input[%u].%s", w->item, *strings) &&
			       invalid(w->v, "Invalid type for '%s': expected a string.",
				       w->v->param);
	}
	return true;
}

/* No call may be open when something is said; what was thought led to something. */
static bool check_said(const struct walk *w)
{
	char id[96];

	if (w->thought)
		return invalid(w->v, "Item of type 'reasoning' was provided without its required "
				     "following item.");
	for (unsigned i = 0; i < w->ncalls; i++)
		if (!w->answered[i])
			return at(w->v, NULL, "input") &&
			       invalid(w->v, "No tool output found for function call %s.",
				       tape_copy(w->a->t, w->calls[i], id, sizeof id));
	return true;
}

static bool check_message(struct walk *w, uint32_t item)
{
	static const char *const known[] = {"type",   "role",  "content", "id",
					    "status", "phase", NULL};
	static const char *const strings[] = {"role", NULL};
	struct ask *a = w->a;
	uint32_t content = tape_get(a->t, item, "content"), role = tape_get(a->t, item, "role");
	bool assistant = tape_is(a->t, role, "assistant");
	const char *part = assistant ? "output_text" : "input_text";

	if (!check_shape(w, item, known, strings) || (!assistant && !check_said(w)))
		return false;
	if (!assistant && !tape_is(a->t, role, "user") && !tape_is(a->t, role, "developer") &&
	    !tape_is(a->t, role, "system"))
		return at(w->v, "invalid_value", "input[%u].role", w->item) &&
		       invalid(w->v, "Invalid value. Supported values are: 'assistant', 'system', "
				     "'developer', and 'user'.");
	w->thought = false;
	if (is_kind(a, content, TAPE_STRING))
		return true;
	if (!is_kind(a, content, TAPE_ARRAY))
		return absent(w, "content");
	TAPE_EACH(a->t, i, content)
	if (!is_kind(a, i, TAPE_OBJECT) || !tape_is(a->t, tape_get(a->t, i, "type"), part) ||
	    !is_kind(a, tape_get(a->t, i, "text"), TAPE_STRING))
		return at(w->v, "invalid_value", "input[%u].content", w->item) &&
		       invalid(w->v, "Invalid value in '%s'. Supported values are: '%s'.",
			       w->v->param, part);
	return true;
}

static bool check_reasoning(struct walk *w, uint32_t item)
{
	static const char *const known[] = {
		"type", "id", "encrypted_content", "summary", "content", "status", NULL};
	static const char *const strings[] = {"id", NULL};
	uint32_t sealed = tape_get(w->a->t, item, "encrypted_content");
	char id[96];

	if (!check_shape(w, item, known, strings))
		return false;
	if (!is_kind(w->a, tape_get(w->a->t, item, "summary"), TAPE_ARRAY))
		return absent(w, "summary");
	if (!is_kind(w->a, sealed, TAPE_STRING))
		return verdict_set(
			w->v, 404, INVALID,
			"Item with id '%s' not found. Items are not persisted when "
			"`store` is set to false. Try again with `store` set to true, or "
			"remove this item from your input.",
			tape_copy(w->a->t, tape_get(w->a->t, item, "id"), id, sizeof id));
	if (!signature_good(w->a->t, 0, sealed)) {
		w->v->code = "invalid_encrypted_content";
		return invalid(w->v, "The encrypted content could not be verified. Reason: "
				     "Encrypted content could not be decrypted or parsed.");
	}
	w->thought = true;
	return true;
}

static bool holds_object(const struct ask *a, uint32_t text)
{
	struct tape inner;
	struct buf b;
	bool good;

	tape_init(&inner);
	buf_init(&b, 1u << 26);
	tape_text(a->t, text, &b);
	good = tape_read(&inner, b.len ? b.data : "", b.len) && tape_kind(&inner, 0) == TAPE_OBJECT;
	buf_fini(&b);
	tape_fini(&inner);
	return good;
}

static bool check_call(struct walk *w, uint32_t item)
{
	static const char *const known[] = {"type",      "id",     "call_id", "name",
					    "arguments", "status", NULL};
	static const char *const strings[] = {"call_id", "name", "arguments", NULL};
	uint32_t id = tape_get(w->a->t, item, "call_id");

	if (!check_shape(w, item, known, strings))
		return false;
	if (!check_word(w->a, id, 64) || !check_word(w->a, tape_get(w->a->t, item, "name"), 128))
		return at(w->v, "invalid_value", "input[%u]", w->item) &&
		       invalid(w->v,
			       "Invalid '%s': string does not match pattern '^[a-zA-Z0-9_-]+$'.",
			       w->v->param);
	if (!holds_object(w->a, tape_get(w->a->t, item, "arguments")))
		return invalid(w->v,
			       "Invalid 'input[%u].arguments': the string is not a JSON object.",
			       w->item);
	for (unsigned i = 0; i < w->ncalls; i++)
		if (same_text(w->a, w->calls[i], id))
			return invalid(w->v, "Duplicate item found with id in input[%u].", w->item);
	if (w->ncalls == CALLS_MAX)
		return invalid(w->v, "Invalid 'input': array too long.");
	w->thought = false;
	w->answered[w->ncalls] = false;
	w->calls[w->ncalls++] = id;
	return true;
}

static bool check_output(struct walk *w, uint32_t item)
{
	static const char *const known[] = {"type", "id", "call_id", "output", "status", NULL};
	static const char *const strings[] = {"call_id", "output", NULL};
	uint32_t id = tape_get(w->a->t, item, "call_id");
	char text[96];

	if (!check_shape(w, item, known, strings))
		return false;
	for (unsigned i = 0; i < w->ncalls && !w->thought; i++) {
		if (w->answered[i] || !same_text(w->a, w->calls[i], id))
			continue;
		w->answered[i] = true;
		return true;
	}
	return at(w->v, NULL, "input") &&
	       invalid(w->v, "No tool call found for function call output with call_id %s.",
		       tape_copy(w->a->t, id, text, sizeof text));
}

static bool check_item(struct walk *w, uint32_t item)
{
	static const struct {
		const char *type;
		bool (*check)(struct walk *w, uint32_t item);
	} kinds[] = {
		{"message", check_message},
		{"reasoning", check_reasoning},
		{"function_call", check_call},
		{"function_call_output", check_output},
	};
	uint32_t type = is_kind(w->a, item, TAPE_OBJECT) ? tape_get(w->a->t, item, "type") : 0;

	if (type == 0)
		return check_message(w, item);
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (tape_is(w->a->t, type, kinds[i].type))
			return kinds[i].check(w, item);
	return at(w->v, "invalid_value", "input[%u].type", w->item) &&
	       invalid(w->v, "Invalid value for '%s'.", w->v->param);
}

static bool check_tools(struct ask *a, struct verdict *v)
{
	uint32_t choice = tape_get(a->t, 0, "tool_choice");
	bool there = choice == 0 || !is_kind(a, choice, TAPE_OBJECT);
	unsigned n = 0;

	if (a->tools != 0)
		TAPE_EACH(a->t, i, a->tools)
		{
			uint32_t name = tape_get(a->t, i, "name");
			uint32_t schema = tape_get(a->t, i, "parameters");

			if (!tape_is(a->t, tape_get(a->t, i, "type"), "function") ||
			    !check_word(a, name, 128))
				return at(v, "missing_required_parameter", "tools[%u].name", n) &&
				       invalid(v, "Missing required parameter: '%s'.", v->param);
			if (!is_kind(a, schema, TAPE_OBJECT) ||
			    !is_kind(a, tape_get(a->t, i, "strict"), TAPE_FALSE))
				return at(v, "invalid_function_parameters", "tools[%u].parameters",
					  n) &&
				       invalid(v,
					       "Invalid schema for function: in strict mode "
					       "'required' must hold every key of 'properties'.");
			there = there || (a->forced != 0 && same_text(a, a->forced, name));
			n++;
		}
	return there || (at(v, NULL, "tool_choice") &&
			 invalid(v, "Tool choice 'function' not found in 'tools' parameter."));
}

bool check_responses(struct ask *a, struct verdict *v)
{
	/* clang-format off */
	static const char *const known[] = {
		"model", "input", "instructions", "tools", "tool_choice", "parallel_tool_calls",
		"stream", "store", "include", "max_output_tokens", "reasoning", "temperature", "top_p",
		"text", "metadata", "user", "service_tier", "truncation", "prompt_cache_key",
		"safety_identifier", NULL,
	};
	/* clang-format on */
	struct walk w = {.a = a, .v = v};
	uint32_t most = tape_get(a->t, 0, "max_output_tokens");
	const char *unknown;
	char name[64];

	if (!check_members(a, 0, known, &unknown, name)) /* previous_response_id, too: no state */
		return at(v, "unknown_parameter", "%s", unknown) &&
		       invalid(v, "Unknown parameter: '%s'.", unknown);
	a->thinking = tape_get(a->t, 0, "reasoning") != 0;
	if (most != 0 && (!tape_int(a->t, most, &a->max_tokens) || a->max_tokens < 16))
		return at(v, "integer_below_min_value", "max_output_tokens") &&
		       invalid(v, "Invalid 'max_output_tokens': integer below minimum value. "
				  "Expected a value >= 16.");
	if (!is_kind(a, tape_get(a->t, 0, "store"), TAPE_FALSE))
		return invalid(v, "mock: store must be false");
	if (!check_tools(a, v))
		return false;
	if (a->nmessages == 0)
		return invalid(v, "One of \"input\" or \"previous_response_id\" must be provided.");
	TAPE_EACH(a->t, i, a->messages)
	{
		if (!check_item(&w, i))
			return false;
		w.item++;
	}
	return check_said(&w);
}
