/* What the Messages API refuses, in its words: parameters, roles, blocks,
 * pairing of tool_use and tool_result in both directions, thinking blocks,
 * cache marks, tool schemas.
 *
 * One pass over the messages. The ids of the last assistant message are kept
 * in a small table that the next user message must use up. Thinking blocks
 * prove themselves: their signature is made of their text (signature.h). */
#include "ask.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "signature.h"

#define IDS_MAX 512 /* tool calls in one message */
#define MARKS   4

/* One walk. */
struct walk {
	struct ask *a;
	struct verdict *v;
	unsigned message, block; /* where we are */
	uint32_t open[IDS_MAX];  /* id nodes of tool_use of the message before */
	bool answered[IDS_MAX];
	unsigned nopen;
	unsigned marks; /* cache_control seen */
	bool pause;     /* the message before ends with a server tool's work */
	bool text_seen; /* something other than results in this user message */
};

/* What is wrong with the message, or with the block of it, that the walk is at. */
#define refuse_message(w, fmt, ...) invalid((w)->v, "messages.%u" fmt, (w)->message, ##__VA_ARGS__)
#define refuse(w, fmt, ...)         refuse_message(w, ".content.%u" fmt, (w)->block, ##__VA_ARGS__)

static bool is_string(const struct ask *a, uint32_t node)
{
	return node != 0 && tape_kind(a->t, node) == TAPE_STRING;
}

static bool is_object(const struct ask *a, uint32_t node)
{
	return node != 0 && tape_kind(a->t, node) == TAPE_OBJECT;
}

/* Empty or only white space, escapes included. */
static bool is_blank(const struct ask *a, uint32_t node)
{
	struct buf b;
	bool blank = true;

	buf_init(&b, 1u << 26);
	tape_text(a->t, node, &b);
	for (size_t i = 0; i < b.len && blank; i++)
		blank = memchr(" \t\r\n", b.data[i], 4) != NULL;
	buf_fini(&b);
	return blank;
}

static bool check_mark(struct ask *a, uint32_t block, unsigned *marks, struct verdict *v)
{
	uint32_t mark = tape_get(a->t, block, "cache_control");
	uint32_t ttl;

	if (mark == 0 || tape_kind(a->t, mark) == TAPE_NULL)
		return true;
	if (!is_object(a, mark) || !tape_is(a->t, tape_get(a->t, mark, "type"), "ephemeral"))
		return invalid(v, "cache_control.type: Input should be 'ephemeral'");
	ttl = tape_get(a->t, mark, "ttl");
	if (ttl != 0 && !tape_is(a->t, ttl, "5m") && !tape_is(a->t, ttl, "1h"))
		return invalid(v, "cache_control.ephemeral.ttl: Input should be '5m' or '1h'");
	if (++*marks > MARKS)
		return invalid(
			v, "A maximum of %d blocks with cache_control may be provided. Found %u.",
			MARKS, *marks);
	return true;
}

static bool check_text(struct walk *w, uint32_t block)
{
	struct ask *a = w->a;
	uint32_t text = tape_get(a->t, block, "text");

	if (text == 0)
		return refuse(w, ".text.text: Field required");
	if (!is_string(a, text))
		return refuse(w, ".text.text: Input should be a valid string");
	if (a->t->nodes[text].count == 0 && a->t->nodes[text].end - a->t->nodes[text].start == 2)
		return tape_get(a->t, block, "cache_control")
			       ? refuse(w,
					".text: cache_control cannot be set for empty text blocks")
			       : invalid(w->v, "messages: text content blocks must be non-empty");
	if (is_blank(a, text))
		return invalid(w->v,
			       "messages: text content blocks must contain non-whitespace text");
	return true;
}

static bool check_tool_use(struct walk *w, uint32_t block)
{
	struct ask *a = w->a;
	uint32_t id = tape_get(a->t, block, "id");
	char text[80];

	if (!check_word(a, id, 256))
		return id == 0 ? refuse(w, ".tool_use.id: Field required")
			       : refuse(w, ".tool_use.id: String should match pattern "
					   "'^[a-zA-Z0-9_-]+$'");
	if (!check_word(a, tape_get(a->t, block, "name"), 200))
		return refuse(
			w, ".tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,200}$'");
	if (!is_object(a, tape_get(a->t, block, "input")))
		return refuse(w, ".tool_use.input: Input should be a valid dictionary");
	for (unsigned i = 0; i < w->nopen; i++) {
		if (same_text(a, id, w->open[i]))
			return refuse(w, ": `tool_use` ids must be unique");
	}
	if (w->nopen == IDS_MAX)
		return refuse(w, ": more than %d tool_use blocks (%s)", IDS_MAX,
			      tape_copy(a->t, id, text, sizeof text));
	w->open[w->nopen] = id;
	w->answered[w->nopen++] = false;
	return true;
}

static bool check_thinking(struct walk *w, uint32_t block, bool redacted)
{
	struct ask *a = w->a;
	static const char *const members[] = {"type", "thinking", "signature", NULL};
	static const char *const redacted_members[] = {"type", "data", NULL};
	const char *kind = redacted ? "redacted_thinking" : "thinking";
	uint32_t sign = tape_get(a->t, block, redacted ? "data" : "signature");
	uint32_t text = tape_get(a->t, block, "thinking");
	const char *unknown;
	char name[64];

	if (!check_members(a, block, redacted ? redacted_members : members, &unknown, name))
		return refuse(w, ".%s.%s: Extra inputs are not permitted", kind, unknown);
	if (!is_string(a, sign))
		return refuse(w, ".%s.%s: Field required", kind, redacted ? "data" : "signature");
	if (!redacted && !is_string(a, text))
		return refuse(w, ".thinking.thinking: Field required");
	if (!signature_good(a->t, redacted ? 0 : text, sign))
		return refuse(w, ": Invalid `%s` in `%s` block", redacted ? "data" : "signature",
			      kind);
	return true;
}

/* A tool result's content: a string, or a list of text and image blocks. */
static bool check_result_content(struct walk *w, uint32_t content)
{
	struct ask *a = w->a;

	if (content == 0 || is_string(a, content))
		return true;
	if (tape_kind(a->t, content) != TAPE_ARRAY)
		return refuse(w, ".tool_result.content: Input should be a valid list");
	TAPE_EACH(a->t, i, content)
	{
		uint32_t type = is_object(a, i) ? tape_get(a->t, i, "type") : 0;

		if (!tape_is(a->t, type, "text") && !tape_is(a->t, type, "image") &&
		    !tape_is(a->t, type, "document") && !tape_is(a->t, type, "search_result"))
			return refuse(w, ".tool_result.content: Input tag does not match any of "
					 "the expected tags");
		if (tape_is(a->t, type, "text") && !check_text(w, i))
			return false;
	}
	return true;
}

static bool check_result(struct walk *w, uint32_t block)
{
	struct ask *a = w->a;
	uint32_t id = tape_get(a->t, block, "tool_use_id");
	uint32_t flag = tape_get(a->t, block, "is_error");
	char text[96];

	if (!is_string(a, id))
		return refuse(w, ".tool_result.tool_use_id: Field required");
	if (flag != 0 && tape_kind(a->t, flag) != TAPE_TRUE && tape_kind(a->t, flag) != TAPE_FALSE)
		return refuse(w, ".tool_result.is_error: Input should be a valid boolean");
	if (!check_result_content(w, tape_get(a->t, block, "content")))
		return false;
	for (unsigned i = 0; i < w->nopen; i++) {
		if (!same_text(a, id, w->open[i]))
			continue;
		if (w->answered[i])
			return refuse(w,
				      ": each tool_use must have a single result. Found multiple "
				      "`tool_result` blocks with id: %s",
				      tape_copy(a->t, id, text, sizeof text));
		w->answered[i] = true;
		return true;
	}
	return refuse(
		w,
		": unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` "
		"block must have a corresponding `tool_use` block in the previous message.",
		tape_copy(a->t, id, text, sizeof text));
}

static bool check_user_block(struct walk *w, uint32_t block, uint32_t type)
{
	struct ask *a = w->a;

	if (tape_is(a->t, type, "tool_result")) {
		if (w->text_seen && w->nopen > 0)
			return refuse(w, ": `tool_result` blocks must stand before other content");
		return check_result(w, block);
	}
	w->text_seen = true;
	if (tape_is(a->t, type, "text"))
		return check_text(w, block);
	if (tape_is(a->t, type, "image") || tape_is(a->t, type, "document"))
		return true;
	if (tape_is(a->t, type, "tool_use") || tape_is(a->t, type, "thinking"))
		return refuse_message(w, ": `%s` blocks can only be in `assistant` messages",
				      tape_is(a->t, type, "tool_use") ? "tool_use" : "thinking");
	return refuse(w, ": Input tag does not match any of the expected tags");
}

static bool check_assistant_block(struct walk *w, uint32_t block, uint32_t type)
{
	struct ask *a = w->a;

	if (tape_is(a->t, type, "text"))
		return check_text(w, block);
	if (tape_is(a->t, type, "tool_use"))
		return check_tool_use(w, block);
	if (tape_is(a->t, type, "thinking"))
		return check_thinking(w, block, false);
	if (tape_is(a->t, type, "redacted_thinking"))
		return check_thinking(w, block, true);
	if (tape_is(a->t, type, "tool_result"))
		return refuse_message(w, ": `tool_result` blocks can only be in `user` messages");
	/* Blocks that this version does not name go back as they came: those the
	 * mock sent carry a seal. */
	if (!seal_good(a->t, block))
		return refuse(w, ": Input tag does not match any of the expected tags, or the "
				 "block differs from what was sent");
	w->pause = true;
	return true;
}

/* Every tool_use of the message before has its result in this one. */
static bool check_answered(struct walk *w)
{
	struct buf ids;
	char text[96];
	bool all;

	buf_init(&ids, 400);
	for (unsigned i = 0; i < w->nopen; i++)
		if (!w->answered[i])
			buf_addf(&ids, "%s%s", ids.len ? ", " : "",
				 tape_copy(w->a->t, w->open[i], text, sizeof text));
	all = ids.len == 0 ||
	      invalid(w->v,
		      "messages.%u: `tool_use` ids were found without `tool_result` blocks "
		      "immediately after: %s. Each `tool_use` block must have a corresponding "
		      "`tool_result` block in the next message.",
		      w->message - 1, ids.data);
	buf_fini(&ids);
	return all;
}

static bool check_blocks(struct walk *w, uint32_t content, bool assistant)
{
	struct ask *a = w->a;

	if (a->t->nodes[content].count == 0 && !assistant)
		return refuse_message(w, ": user messages must have non-empty content");
	w->block = 0;
	TAPE_EACH(a->t, i, content)
	{
		uint32_t type = is_object(a, i) ? tape_get(a->t, i, "type") : 0;

		if (!is_string(a, type))
			return refuse(w, "%s",
				      is_object(a, i) ? ".type: Field required"
						      : ": Input should be a valid dictionary");
		if (!check_mark(a, i, &w->marks, w->v))
			return false;
		if (assistant ? !check_assistant_block(w, i, type) : !check_user_block(w, i, type))
			return false;
		w->block++;
	}
	return true;
}

/* With thinking on, the turn that the newest results belong to starts with the
 * thinking it was sent with. */
static bool check_leading(struct walk *w, uint32_t last_assistant, unsigned at)
{
	struct ask *a = w->a;
	uint32_t content = tape_get(a->t, last_assistant, "content");
	uint32_t type;
	char text[64];

	if (!a->thinking || a->facts->adaptive || w->nopen == 0 ||
	    tape_kind(a->t, content) != TAPE_ARRAY || a->t->nodes[content].count == 0)
		return true;
	type = tape_get(a->t, content + 1, "type");
	if (tape_is(a->t, type, "thinking") || tape_is(a->t, type, "redacted_thinking"))
		return true;
	return invalid(w->v,
		       "messages.%u.content.0.type: Expected `thinking` or `redacted_thinking`, "
		       "but found `%s`. When `thinking` is enabled, a final `assistant` message "
		       "must start with a thinking block (preceeding the lastmost set of "
		       "`tool_use` and `tool_result` blocks).",
		       at, tape_copy(a->t, type, text, sizeof text));
}

static bool is_assistant(const struct ask *a, uint32_t message)
{
	return is_object(a, message) && tape_is(a->t, tape_get(a->t, message, "role"), "assistant");
}

static bool check_message(struct walk *w, uint32_t message, bool last)
{
	static const char *const members[] = {"role", "content", NULL};
	struct ask *a = w->a;
	uint32_t role = is_object(a, message) ? tape_get(a->t, message, "role") : 0;
	uint32_t content = role ? tape_get(a->t, message, "content") : 0;
	bool assistant = tape_is(a->t, role, "assistant");
	const char *unknown;
	char name[64];

	if (role == 0)
		return refuse_message(w, ".role: Field required");
	if (!assistant && !tape_is(a->t, role, "user"))
		return tape_is(a->t, role, "system")
			       ? invalid(w->v, "messages: Unexpected role \"system\". The Messages "
					       "API accepts a top-level `system` parameter, not "
					       "\"system\" as an input message role.")
			       : refuse_message(w, ".role: Input should be 'user' or 'assistant'");
	if (w->message == 0 && assistant)
		return invalid(w->v, "messages: first message must use the \"user\" role");
	if (!check_members(a, message, members, &unknown, name))
		return refuse_message(w, ".%s: Extra inputs are not permitted", unknown);
	if (content == 0)
		return refuse_message(w, ".content: Field required");
	if (assistant)
		w->pause = false;
	if (is_string(a, content)) {
		w->text_seen = true;
		if (is_blank(a, content) && !(assistant && last))
			return refuse_message(w, ": all messages must have non-empty content "
						 "except for the optional final assistant message");
	} else if (tape_kind(a->t, content) != TAPE_ARRAY) {
		return refuse_message(w, ".content: Input should be a valid list");
	} else if (!check_blocks(w, content, assistant)) {
		return false;
	}
	return true;
}

/* Neighbours of one role count as one message, as the service takes them. */
static bool check_turns(struct walk *w)
{
	struct ask *a = w->a;
	uint32_t last_assistant = 0; /* the first of its neighbours */
	bool before = true;          /* the message before was the assistant's */
	unsigned at = 0;

	TAPE_EACH(a->t, i, a->messages)
	{
		uint32_t next = a->t->nodes[i].next;
		bool last = next == a->t->nodes[a->messages].next;
		bool assistant = is_assistant(a, i);

		if (assistant != before)
			w->text_seen = false;
		if (assistant && !before) {
			w->nopen = 0;
			last_assistant = i;
			at = w->message;
		}
		if (!check_message(w, i, last))
			return false;
		if (!assistant && (last || is_assistant(a, next))) {
			if (!check_answered(w))
				return false;
			if (last && last_assistant && !check_leading(w, last_assistant, at))
				return false;
			w->nopen = 0;
		}
		before = assistant;
		w->message++;
	}
	if (!before || a->facts->prefill)
		return true;
	return w->pause || invalid(w->v, "This model does not support assistant message prefill. "
					 "The conversation must end with a user message.");
}

static bool check_system(struct ask *a, unsigned *marks, struct verdict *v)
{
	unsigned n = 0;

	if (a->system == 0 || is_string(a, a->system))
		return true;
	if (tape_kind(a->t, a->system) != TAPE_ARRAY)
		return invalid(v, "system: Input should be a valid list");
	TAPE_EACH(a->t, i, a->system)
	{
		uint32_t text = is_object(a, i) ? tape_get(a->t, i, "text") : 0;

		if (!is_object(a, i) || !tape_is(a->t, tape_get(a->t, i, "type"), "text"))
			return invalid(v, "system.%u.type: Input should be 'text'", n);
		if (!is_string(a, text))
			return invalid(v, "system.%u.text: Field required", n);
		if (is_blank(a, text))
			return invalid(v, "system: text content blocks must be non-empty");
		if (!check_mark(a, i, marks, v))
			return false;
		n++;
	}
	return true;
}

#define refuse_tool(fmt, ...) invalid(v, "tools.%u" fmt, n, ##__VA_ARGS__)

static bool check_tool(struct ask *a, uint32_t tool, unsigned n, struct verdict *v)
{
	static const char *const members[] = {"name",           "description",   "input_schema",
					      "cache_control",  "type",          "strict",
					      "input_examples", "defer_loading", NULL};
	uint32_t schema = is_object(a, tool) ? tape_get(a->t, tool, "input_schema") : 0;
	uint32_t description = is_object(a, tool) ? tape_get(a->t, tool, "description") : 0;
	const char *unknown;
	char name[64];

	if (!is_object(a, tool))
		return refuse_tool(": Input should be a valid dictionary");
	if (!check_word(a, tape_get(a->t, tool, "name"), 128))
		return refuse_tool(
			".custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'");
	if (!check_members(a, tool, members, &unknown, name))
		return refuse_tool(".custom.%s: Extra inputs are not permitted", unknown);
	if (schema == 0)
		return refuse_tool(".custom.input_schema: Field required");
	if (!is_object(a, schema))
		return invalid(
			v, "tools.%u.custom.input_schema: Input should be a valid dictionary", n);
	if (tape_get(a->t, schema, "type") == 0)
		return refuse_tool(".custom.input_schema.type: Field required");
	if (!tape_is(a->t, tape_get(a->t, schema, "type"), "object"))
		return refuse_tool(".custom.input_schema.type: Input should be 'object'");
	if (description != 0 && !is_string(a, description))
		return refuse_tool(".custom.description: Input should be a valid string");
	return true;
}

static bool check_tools(struct ask *a, unsigned *marks, struct verdict *v)
{
	unsigned n = 0;

	if (a->tools == 0)
		return true;
	if (tape_kind(a->t, a->tools) != TAPE_ARRAY)
		return invalid(v, "tools: Input should be a valid list");
	TAPE_EACH(a->t, i, a->tools)
	{
		if (!check_tool(a, i, n++, v) || !check_mark(a, i, marks, v))
			return false;
		for (uint32_t j = a->tools + 1; j < i; j = a->t->nodes[j].next) {
			if (same_text(a, tape_get(a->t, i, "name"), tape_get(a->t, j, "name")))
				return invalid(v, "tools: Tool names must be unique.");
		}
	}
	return true;
}

static bool check_choice(struct ask *a, struct verdict *v)
{
	uint32_t choice = tape_get(a->t, 0, "tool_choice");
	uint32_t type = choice ? tape_get(a->t, choice, "type") : 0;
	char text[64];

	if (choice == 0)
		return true;
	if (!is_object(a, choice) || (!tape_is(a->t, type, "auto") && !tape_is(a->t, type, "any") &&
				      !tape_is(a->t, type, "tool") && !tape_is(a->t, type, "none")))
		return invalid(v, "tool_choice: Input tag does not match any of the expected tags: "
				  "'auto', 'any', 'tool', 'none'");
	if (a->tools == 0)
		return invalid(v, "tool_choice may only be specified while providing tools.");
	if (a->thinking && (tape_is(a->t, type, "any") || tape_is(a->t, type, "tool")))
		return invalid(v, "Thinking may not be enabled when tool_choice forces tool use.");
	if (!tape_is(a->t, type, "tool"))
		return true;
	TAPE_EACH(a->t, i, a->tools)
	{
		if (a->forced != 0 && same_text(a, tape_get(a->t, i, "name"), a->forced))
			return true;
	}
	return invalid(v, "Tool '%s' not found in provided tools",
		       tape_copy(a->t, a->forced, text, sizeof text));
}

static bool check_thinking_mode(struct ask *a, struct verdict *v)
{
	uint32_t thinking = tape_get(a->t, 0, "thinking");
	uint32_t type = thinking ? tape_get(a->t, thinking, "type") : 0;
	int64_t budget = 0;

	if (thinking == 0 || tape_is(a->t, type, "disabled"))
		return true;
	a->thinking = true;
	if (tape_is(a->t, type, "adaptive")) {
		if (tape_get(a->t, thinking, "budget_tokens") != 0)
			return invalid(
				v,
				"thinking.adaptive.budget_tokens: Extra inputs are not permitted");
		return a->facts->adaptive ||
		       invalid(v, "adaptive thinking is not supported on this model");
	}
	if (!tape_is(a->t, type, "enabled"))
		return invalid(v, "thinking: Input tag does not match any of the expected tags: "
				  "'adaptive', 'disabled', 'enabled'");
	if (!a->facts->budget && a->facts->adaptive)
		return invalid(v, "\"thinking.type.enabled\" is not supported for this model. Use "
				  "\"thinking.type.adaptive\" and \"output_config.effort\" to "
				  "control thinking behavior.");
	if (!a->facts->budget)
		return invalid(v, "'%s' does not support thinking.", a->model);
	if (!tape_int(a->t, tape_get(a->t, thinking, "budget_tokens"), &budget))
		return invalid(v, "thinking.enabled.budget_tokens: Field required");
	if (budget < 1024)
		return invalid(v, "thinking.enabled.budget_tokens: Input should be greater than or "
				  "equal to 1024");
	if (budget >= a->max_tokens)
		return invalid(v, "`max_tokens` must be greater than `thinking.budget_tokens`. "
				  "Please consult our documentation at "
				  "https://docs.claude.com/en/docs/build-with-claude/"
				  "extended-thinking#max-tokens-and-context-window-size");
	return true;
}

static bool check_sampling(struct ask *a, struct verdict *v)
{
	static const char *const names[] = {"temperature", "top_p", "top_k"};
	uint32_t temperature = tape_get(a->t, 0, "temperature");
	double x = 1;

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (tape_get(a->t, 0, names[i]) != 0 && strcmp(a->version, VERSION_NEW) == 0)
			return invalid(v, "%s: Extra inputs are not permitted", names[i]);
		else if (tape_get(a->t, 0, names[i]) != 0 && !a->facts->sampling)
			return invalid(v, "`%s` is deprecated for this model.", names[i]);
	if (temperature == 0)
		return true;
	if (!tape_real(a->t, temperature, &x))
		return invalid(v, "temperature: Input should be a valid number");
	if (x < 0 || x > 1)
		return invalid(v, "temperature: range: 0..1");
	if (a->thinking && x != 1)
		return invalid(
			v,
			"`temperature` may only be set to 1 when thinking is enabled or in "
			"adaptive mode. Please consult our documentation at "
			"https://docs.claude.com/en/docs/build-with-claude/"
			"extended-thinking#important-considerations-when-using-extended-thinking");
	return true;
}

static bool check_parameters(struct ask *a, struct verdict *v)
{
	static const char *const members[] = {
		"model",          "messages",      "max_tokens",
		"system",         "tools",         "tool_choice",
		"stream",         "temperature",   "top_p",
		"top_k",          "thinking",      "metadata",
		"stop_sequences", "service_tier",  "output_config",
		"container",      "mcp_servers",   "context_management",
		"cache_control",  "inference_geo", NULL};
	uint32_t limit = tape_get(a->t, 0, "max_tokens");
	const char *unknown;
	char name[64];

	if (!check_members(a, 0, members, &unknown, name))
		return invalid(v, "%s: Extra inputs are not permitted", unknown);
	if (limit == 0)
		return invalid(v, "max_tokens: Field required");
	if (!tape_int(a->t, limit, &a->max_tokens))
		return invalid(v, "max_tokens: Input should be a valid integer");
	if (a->max_tokens < 1)
		return invalid(v, "max_tokens: Input should be greater than or equal to 1");
	if (a->max_tokens > a->facts->max_output)
		return invalid(v,
			       "max_tokens: %lld > %lld, which is the maximum allowed number of "
			       "output tokens for %s",
			       (long long)a->max_tokens, (long long)a->facts->max_output, a->model);
	return check_thinking_mode(a, v) && check_sampling(a, v) && check_choice(a, v);
}

bool check_anthropic(struct ask *a, struct verdict *v)
{
	struct walk w = {.a = a, .v = v};

	if (!check_parameters(a, v) || !check_tools(a, &w.marks, v) ||
	    !check_system(a, &w.marks, v))
		return false;
	if (a->nmessages == 0)
		return invalid(v, "messages: at least one message is required");
	if (!check_turns(&w))
		return false;
	return true;
}
