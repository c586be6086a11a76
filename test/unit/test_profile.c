/* What families of services do not take: by address and name, by what they refuse, and the
 * requests that are made of the same lines then. */
#include "unit.h"

#include <ava.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "provider/dialect.h"
#include "provider/model.h"
#include "provider/profile.h"

TEST(families)
{
	static const struct {
		const char *url, *name, *drop;
	} cases[] = {
		{"https://api.openai.com/v1", "gpt-x", "top_p"},
		{"https://api.mistral.ai/v1", "any", "top_p long_ids"},
		{"http://127.0.0.1:8080/v1", "Mistral-7B-Instruct", "top_p long_ids"},
		{"https://openrouter.ai/api/v1", "mistralai/devstral-2", "top_p long_ids"},
		{"http://127.0.0.1:8080/v1", "unsloth/gemma-3-27b", "top_p"},
		{"http://127.0.0.1:8080/v1", "not-gemma", "top_p"},
		{"http://127.0.0.1:11434/v1", "gemma3:4b", "top_p empty_content"},
		{"https://api.moonshot.cn/v1", "kimi-k2", "top_p calls_without_reasoning"},
		{"https://generativelanguage.googleapis.com/v1beta/openai", "gemini-3-pro",
		 "top_p empty_content schema.additionalProperties calls_without_signature"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char list[200] = "top_p";

		profile_add(list, sizeof(list), cases[i].url, cases[i].name);
		assert_string_equal(list, cases[i].drop);
	}
}

/* Sentences of services, and of refusals that mean something else. */
TEST(refusals)
{
	static const struct {
		const char *text, *words; /* NULL: nothing of a form */
	} cases[] = {
		{"Unexpected role 'user' after role 'tool'", NULL},
		{"Unexpected role 'system' after role 'user'", "system_role"},
		{"Conversation roles must alternate user/assistant/user/assistant/...",
		 "system_role"},
		{"After the (optional) system message(s), user or tool message(s) should alternate "
		 "with assistant message(s).",
		 "system_role"},
		{"System role not supported None", "system_role"},
		{"Only user and assistant roles are supported!", "system_role"},
		{"Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.",
		 "long_ids"},
		{"Invalid 'messages[2].tool_calls[0].id': string too long. Expected a string with "
		 "maximum length 40",
		 "long_ids"},
		{"messages[3]: content must be a string", "null_content empty_content"},
		{"thinking is enabled but reasoning_content is missing in assistant tool call "
		 "message at index 2",
		 "calls_without_reasoning"},
		{"Invalid JSON payload received. Unknown name \"additionalProperties\" at "
		 "'tools[0].function_declarations[0].parameters': Cannot find field.",
		 "schema.additionalProperties"},
		{"Unsupported schema keyword `pattern` in tool read_file", "schema.pattern"},
		{"messages.1.content.0: Invalid `signature` in `thinking` block",
		 "thinking_blocks.finished thinking_blocks reasoning_details"},
		/* These name a parameter, or nothing. */
		{"property 'reasoning_content' is unsupported", NULL},
		{"Unsupported parameter: 'max_tokens' is not supported with this model.", NULL},
		{"messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
		 "`tool_use`. When `thinking` is enabled, a final `assistant` message must start "
		 "with "
		 "a thinking block",
		 NULL},
		{"Thinking may not be enabled when tool_choice forces tool use.", NULL},
		{"the server had an error", NULL},
		{"", NULL},
	};
	char words[64];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		bool said = profile_refused(cases[i].text, words, sizeof(words));

		print_message("%s\n", cases[i].text);
		assert_int_equal(said, cases[i].words != NULL);
		if (said)
			assert_string_equal(words, cases[i].words);
	}
	assert_string_equal(profile_says("system_role"), "a system message");
	assert_string_equal(profile_says("top_p"), "top_p");
	assert_true(profile_in_chat("schema.pattern") && !profile_in_messages("schema.pattern"));
	assert_true(profile_in_messages("thinking_blocks") && !profile_in_chat("schema"));
}

#define HEAD   "{\"messages\":["
#define SYSTEM HEAD "{\"role\":\"system\",\"content\":\"Be \\\"[{\\\" x\"},"
#define TASK   "{\"role\":\"user\",\"content\":\"do\"}"
#define EMPTY  "{\"role\":\"assistant\",\"content\":\"(nothing)\"}"
#define CALL(id, more)                                                                             \
	"{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"" id                   \
	"\",\"type\":\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}" more "}]}"
#define TOOL(id, text) "{\"role\":\"tool\",\"tool_call_id\":\"" id "\",\"content\":\"" text "\"}"
#define SIGN           ",\"extra_content\":{\"google\":{\"thought_signature\":\"s\"}}"
#define NO_SIGN                                                                                    \
	",\"extra_content\":{\"google\":{\"thought_signature\":\"skip_thought_signature_"          \
	"validator\"}}"

TEST(chat)
{
	static const struct {
		const char *drop, *stored, *sent;
	} cases[] = {
		/* Notices go behind the last result, for all services. */
		{"", SYSTEM TASK "," CALL("a", "") "," TOOL("a", "r") "," TASK,
		 SYSTEM TASK "," CALL("a", "") "," TOOL("a", "r\\n\\ndo")},
		{"", SYSTEM TASK "," TASK, SYSTEM TASK "," EMPTY "," TASK},
		{"system_role", SYSTEM TASK,
		 HEAD "{\"role\":\"user\",\"content\":\"Be \\\"[{\\\" x\\n\\ndo\"}"},
		{"system_role", HEAD TASK, HEAD TASK},
		{"null_content", HEAD TASK "," CALL("a", ""),
		 HEAD TASK
		 ",{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":\"a\",\"type\":"
		 "\"function\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}}]}"},
		{"empty_content", HEAD TASK "," TOOL("a", ""), HEAD TASK "," TOOL("a", "-")},
		{"long_ids", HEAD TASK "," CALL("abc123XYZ", "") "," TOOL("abc123XYZ", ""),
		 HEAD TASK "," CALL("abc123XYZ", "") "," TOOL("abc123XYZ", "")},
		{"call_members", HEAD TASK "," CALL("a", SIGN), HEAD TASK "," CALL("a", "")},
		{"calls_without_signature", HEAD TASK "," CALL("a", SIGN) "," CALL("b", ""),
		 HEAD TASK "," CALL("a", SIGN) "," CALL("b", NO_SIGN)},
		{"calls_without_reasoning reasoning_content", HEAD TASK "," CALL("a", ""),
		 HEAD TASK "," CALL("a", "")},
	};
	struct provider p = {.name = "local"};
	struct model m = {.provider = &p};
	char head[400];
	TEST_BUF(b, 65536);

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *lines = strstr(cases[i].stored, TASK);

		snprintf(m.drop, sizeof(m.drop), "%s", cases[i].drop);
		buf_adds(&b, cases[i].stored);
		assert_int_equal(
			dialect_openai.mark_cache(&b, (size_t)(lines - cases[i].stored), &m), 0);
		assert_string_equal(b.data, cases[i].sent);
		assert_int_equal(b.len, strlen(cases[i].sent));
		buf_reset(&b);
	}
	snprintf(m.drop, sizeof(m.drop),
		 "schema.additionalProperties schema.pattern schema.minimum");
	snprintf(head, sizeof(head),
		 "{\"tools\":[{\"parameters\":{\"additionalProperties\":false,\"properties\":{"
		 "\"pattern\":{\"type\":\"string\",\"pattern\":\"^\\\"x\"},\"n\":{\"minimum\":1}},"
		 "\"required\":[\"pattern\"],\"additionalProperties\":{\"a\":1}}}],\"messages\":[");
	buf_adds(&b, head);
	buf_adds(&b, TASK);
	assert_int_equal(dialect_openai.mark_cache(&b, strlen(head), &m), 0);
	assert_string_equal(
		b.data, "{\"tools\":[{\"parameters\":{\"properties\":{\"pattern\":{\"type\":"
			"\"string\"},\"n\":{}},\"required\":[\"pattern\"]}}],\"messages\":[" TASK);
}

#define SAYS     "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"x\"}]}"
#define RESULT   "{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\",\"id\":1}]}"
#define REPLY(b) "{\"role\":\"assistant\",\"content\":[" b "]}"
#define THINK    "{\"type\":\"thinking\",\"thinking\":\"\\\"]}\",\"signature\":\"s\"}"
#define HIDDEN   "{\"type\":\"redacted_thinking\",\"data\":\"d\"}"
#define TEXT     "{\"type\":\"text\",\"text\":\"{\\\"type\\\":\\\"thinking\\\"}\"}"

TEST(thinking)
{
	static const struct {
		const char *drop, *stored, *sent;
	} cases[] = {
		{"cache_control", SAYS "," REPLY(THINK "," TEXT) "," SAYS,
		 SAYS "," REPLY(THINK "," TEXT) "," SAYS},
		{"cache_control thinking_blocks.finished",
		 SAYS "," REPLY(THINK "," TEXT) "," SAYS "," REPLY(HIDDEN "," TEXT) "," RESULT,
		 SAYS "," REPLY(TEXT) "," SAYS "," REPLY(HIDDEN "," TEXT) "," RESULT},
		{"cache_control thinking_blocks",
		 SAYS "," REPLY(THINK "," HIDDEN "," TEXT) "," RESULT,
		 SAYS "," REPLY(TEXT) "," RESULT},
		{"cache_control thinking_blocks",
		 SAYS "," REPLY(TEXT "," THINK "," TEXT "," HIDDEN "," THINK) "," RESULT,
		 SAYS "," REPLY(TEXT "," TEXT) "," RESULT},
	};
	struct model m = {0};
	TEST_BUF(b, 65536);

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		snprintf(m.drop, sizeof(m.drop), "%s", cases[i].drop);
		buf_adds(&b, "[");
		buf_adds(&b, cases[i].stored);
		assert_int_equal(dialect_anthropic.mark_cache(&b, 1, &m), 0);
		assert_string_equal(b.data + 1, cases[i].sent);
		assert_int_equal(b.len, 1 + strlen(cases[i].sent));
		buf_reset(&b);
	}
}
