/* Bodies of errors as the services really write them, and what they come to:
 * class, sentence, parameter. The shapes are from documentation and reports;
 * the values are made up. */
#include "unit.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "codec/utf8.h"
#include "provider/stream_core.h"

#define A(type, text)                                                                              \
	"{\"type\":\"error\",\"error\":{\"type\":\"" type "\",\"message\":\"" text "\"},"          \
	"\"request_id\":\"req_011Cc\"}"
#define O(text, type, param, code)                                                                 \
	"{\"error\":{\"message\":\"" text "\",\"type\":\"" type "\",\"param\":" param              \
	",\"code\":" code "}}"
#define R(code, text, meta) "{\"error\":{\"code\":" code ",\"message\":\"" text "\"" meta "}}"

/* clang-format off */
static const struct {
	int status;
	const char *body;
	enum reply_class cls;
	const char *field;
} cases[] = {
	/* Anthropic */
	{400, A("invalid_request_error", "max_tokens: Field required"), REPLY_BAD_REQUEST, "max_tokens"},
	{400, A("invalid_request_error", "temperature: Extra inputs are not permitted"), REPLY_BAD_REQUEST, ""},
	{400, A("invalid_request_error", "`temperature` is deprecated for this model."), REPLY_BAD_REQUEST, ""},
	{400,
	 A("invalid_request_error",
	   "\\\"thinking.type.enabled\\\" is not supported for this model. "
	   "Use \\\"thinking.type.adaptive\\\" and \\\"output_config.effort\\\""),
	 REPLY_BAD_REQUEST, "thinking.budget_tokens"},
	{400, A("invalid_request_error", "thinking.enabled.budget_tokens: Input should be less"), REPLY_BAD_REQUEST, "thinking.budget_tokens"},
	{400, A("invalid_request_error", "adaptive thinking is not supported on this model"), REPLY_BAD_REQUEST, "thinking.adaptive"},
	{400,
	 A("invalid_request_error", "thinking: Input tag 'adaptive' found using 'type' does not "
				    "match any of the expected tags: 'disabled', 'enabled'"),
	 REPLY_BAD_REQUEST, "thinking.adaptive"},
	{400,
	 A("invalid_request_error", "messages.2: `tool_use` ids were found without `tool_result` "
				    "blocks immediately after: toolu_1"),
	 REPLY_BAD_REQUEST, ""},
	{400, A("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"), REPLY_OVERFLOW, ""},
	{400, A("invalid_request_error", "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000"), REPLY_OVERFLOW, ""},
	{400, A("invalid_request_error", "Your credit balance is too low to access the Anthropic API."), REPLY_BILLING, ""},
	{401, A("authentication_error", "invalid x-api-key"), REPLY_AUTH, ""},
	{402, A("billing_error", "Payment needed"), REPLY_BILLING, ""},
	{403, A("permission_error", "Your key may not do this"), REPLY_AUTH, ""},
	{404, A("not_found_error", "model: claude-none"), REPLY_NOT_FOUND, ""},
	{413, A("request_too_large", "Request exceeds the maximum size"), REPLY_TOO_LARGE, ""},
	{429, A("rate_limit_error", "This request would exceed your rate limit"), REPLY_RATE_LIMIT, ""},
	{500, A("api_error", "Internal server error"), REPLY_SERVER, ""},
	{504, A("timeout_error", "Request timed out"), REPLY_TIMEOUT, ""},
	{529, A("overloaded_error", "Overloaded"), REPLY_OVERLOADED, ""},
	{200, A("overloaded_error", "Overloaded"), REPLY_OVERLOADED, ""},
	{200, A("api_error", "Internal server error"), REPLY_SERVER, ""},
	{200, A("new_error", "Something"), REPLY_SERVER, ""},
	/* OpenAI */
	{400,
	 O("Unsupported parameter: 'max_tokens' is not supported with this model. Use "
	   "'max_completion_tokens' instead.",
	   "invalid_request_error", "\"max_tokens\"", "\"unsupported_parameter\""),
	 REPLY_BAD_REQUEST, "max_tokens"},
	{400,
	 O("Unsupported value: 'reasoning_effort' does not support 'medium' with this model.",
	   "invalid_request_error", "null", "\"unsupported_value\""),
	 REPLY_BAD_REQUEST, "reasoning_effort"},
	{400,
	 O("Unrecognized request argument supplied: stream_options", "invalid_request_error",
	   "null", "null"),
	 REPLY_BAD_REQUEST, "stream_options"},
	{400,
	 O("Invalid parameter: messages with role 'tool' must be a response to a preceeding "
	   "message",
	   "invalid_request_error", "\"messages.[2].role\"", "null"),
	 REPLY_BAD_REQUEST, ""},
	{400,
	 O("This model's maximum context length is 128000 tokens. However, your messages resulted "
	   "in "
	   "130000 tokens.",
	   "invalid_request_error", "\"messages\"", "\"context_length_exceeded\""),
	 REPLY_OVERFLOW, ""},
	{400, O("Your input exceeds the context window of this model.", "invalid_request_error", "\"input\"", "null"), REPLY_OVERFLOW, ""},
	{401, O("Incorrect API key provided", "invalid_request_error", "null", "\"invalid_api_key\""), REPLY_AUTH, ""},
	{401, O("No such organization", "invalid_request_error", "null", "null"), REPLY_AUTH, ""},
	{404, O("The model `gpt-none` does not exist", "invalid_request_error", "null", "\"model_not_found\""), REPLY_NOT_FOUND, ""},
	{429,
	 O("You exceeded your current quota, please check your plan", "insufficient_quota", "null",
	   "\"insufficient_quota\""),
	 REPLY_BILLING, ""},
	{429, O("Request too large for gpt-x on tokens per min (TPM)", "tokens", "null", "\"rate_limit_exceeded\""), REPLY_RATE_LIMIT, ""},
	{429, O("Rate limit reached", "requests", "null", "null"), REPLY_RATE_LIMIT, ""},
	{503, O("The engine is currently overloaded", "server_error", "null", "null"), REPLY_SERVER, ""},
	/* OpenRouter */
	{402, R("402", "This request requires more credits, or fewer max_tokens.", ""), REPLY_BILLING, ""},
	{403, R("403", "Your input was flagged", ",\"metadata\":{\"reasons\":[\"x\"],\"flagged_input\":\"y\"}"), REPLY_REFUSED, ""},
	{403, R("403", "Key may not use this model", ""), REPLY_AUTH, ""},
	{404, R("404", "No endpoints found that support tool use.", ""), REPLY_NOT_FOUND, ""},
	{408, R("408", "Request timed out", ""), REPLY_TIMEOUT, ""},
	{400,
	 R("400",
	   "This endpoint's maximum context length is 131072 tokens. However, you requested "
	   "about 140000 tokens",
	   ""),
	 REPLY_OVERFLOW, ""},
	{400,
	 R("400", "Provider returned error",
	   ",\"metadata\":{\"raw\":\"{\\\"message\\\":\\\"prompt is too long: 9 tokens > 8 "
	   "maximum\\\"}\","
	   "\"provider_name\":\"P\"}"),
	 REPLY_OVERFLOW, ""},
	{422, R("422", "'tool_choice' cannot be used here", ""), REPLY_BAD_REQUEST, "tool_choice"},
	{200, R("502", "Provider disconnected", ""), REPLY_SERVER, ""},
	{200, R("429", "Slow down", ""), REPLY_RATE_LIMIT, ""},
	{200, R("\"server_error\"", "x", ""), REPLY_SERVER, ""},
	{502, R("502", "Provider returned error", ",\"metadata\":{\"error_type\":\"provider_overloaded\"}"), REPLY_OVERLOADED, ""},
	{400, R("400", "Too long", ",\"metadata\":{\"error_type\":\"context_length_exceeded\"}"), REPLY_OVERFLOW, ""},
	{403, R("403", "No", ",\"metadata\":{\"error_type\":\"content_policy_violation\"}"), REPLY_REFUSED, ""},
	/* local servers */
	{400,
	 "{\"error\":{\"code\":400,\"message\":\"the request exceeds the available context size, "
	 "try "
	 "increasing "
	 "it\",\"type\":\"exceed_context_size_error\",\"n_prompt_tokens\":9000,\"n_ctx\":"
	 "4096}}",
	 REPLY_OVERFLOW, ""},
	{500, "{\"error\":{\"code\":500,\"message\":\"Context size has been exceeded.\",\"type\":\"server_error\"}}", REPLY_OVERFLOW, ""},
	{503, "{\"error\":{\"code\":503,\"message\":\"Loading model\",\"type\":\"unavailable_error\"}}", REPLY_OVERLOADED, ""},
	{400,
	 "{\"object\":\"error\",\"message\":\"This model's maximum context length is 4096 tokens. "
	 "However, you requested 5000 "
	 "tokens\",\"type\":\"BadRequestError\",\"param\":null,\"code\":"
	 "400}",
	 REPLY_OVERFLOW, ""},
	{404, "{\"error\":\"model 'none' not found\"}", REPLY_NOT_FOUND, ""},
	{400, "{\"detail\":\"Bad thing\"}", REPLY_BAD_REQUEST, ""},
	{500, "{\"error\":{\"message\":\"\"}}", REPLY_SERVER, ""},
	{500, "{}", REPLY_SERVER, ""},
	/* each service's words for a conversation that is too long */
	{413, A("request_too_large", "Request exceeds the maximum size"), REPLY_TOO_LARGE, ""},
	{413, A("invalid_request_error", "Prompt is too long"), REPLY_OVERFLOW, ""},
	{200, A("invalid_request_error", "prompt is too long: 200021 tokens > 200000 maximum"), REPLY_OVERFLOW, ""},
	{400,
	 O("Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in "
	   "290000 tokens. Please reduce the length of the messages.",
	   "invalid_request_error", "\"messages\"", "\"context_length_exceeded\""),
	 REPLY_OVERFLOW, ""},
	{400, "{\"error\":\"prompt too long; exceeded max context length by 1934 tokens\"}", REPLY_OVERFLOW, ""},
	{500, "{\"error\":\"the input length exceeds the context length\"}", REPLY_OVERFLOW, ""},
	{500, "the input length exceeds the context length\n", REPLY_OVERFLOW, ""},
	{400,
	 "{\"object\":\"error\",\"message\":\"The decoder prompt (length 10127) is longer than the "
	 "maximum model length of 8192. Make sure that `max_model_len` is no "
	 "smaller\",\"type\":\"BadRequestError\",\"param\":null,\"code\":400}",
	 REPLY_OVERFLOW, ""},
	{400,
	 "{\"error\":{\"message\":\"This model's maximum context length is 4096 tokens and your "
	 "request has 5000 input tokens\",\"type\":\"BadRequestError\",\"param\":\"input_tokens\","
	 "\"code\":400}}",
	 REPLY_OVERFLOW, ""},
	{400,
	 "{\"error\":\"The number of tokens to keep from the initial prompt is greater than the "
	 "context length (n_keep: 13055>= n_ctx: 4096). Try to load the model with a larger "
	 "context "
	 "length, or provide a shorter input.\"}",
	 REPLY_OVERFLOW, ""},
	{200,
	 "{\"error\":{\"message\":\"Trying to keep the first 10136 tokens when context the "
	 "overflows. However, the model is loaded with context length of only 7866 tokens, which "
	 "is "
	 "not enough.\"}}",
	 REPLY_OVERFLOW, ""},
	{400,
	 "{\"object\":\"error\",\"message\":\"Prompt contains 40960 tokens and 0 draft tokens, too "
	 "large for model with 32768 maximum context "
	 "length\",\"type\":\"invalid_request_prompt\",\"param\":null,\"code\":\"3051\"}",
	 REPLY_OVERFLOW, ""},
	{400,
	 O("This model's maximum context length is 131072 tokens. However, you requested 140000 "
	   "tokens (136000 in the messages, 4000 in the completion). Please reduce the length of "
	   "the messages or completion.",
	   "invalid_request_error", "null", "\"invalid_request_error\""),
	 REPLY_OVERFLOW, ""},
	{400,
	 R("400", "Provider returned error",
	   ",\"metadata\":{\"raw\":\"{\\n  \\\"error\\\": {\\n    \\\"code\\\": 400,\\n    "
	   "\\\"message\\\": \\\"The input token count (1196265) exceeds the maximum number of "
	   "tokens allowed (1048575).\\\",\\n    \\\"status\\\": "
	   "\\\"INVALID_ARGUMENT\\\"\\n  }\\n}\\n\",\"provider_name\":\"Google\"}"),
	 REPLY_OVERFLOW, ""},
	{200,
	 R("400",
	   "This endpoint's maximum context length is 131072 tokens. However, you requested about "
	   "140000 tokens",
	   ""),
	 REPLY_OVERFLOW, ""},
	{429,
	 O("Request too large for gpt-x on tokens per min (TPM): Limit 30000, Requested 40000. "
	   "Please reduce the length of the messages.",
	   "tokens", "null", "\"rate_limit_exceeded\""),
	 REPLY_RATE_LIMIT, ""}, /* the minute's, not the window's */
	/* the parameter a 400 means, in the words of each */
	{400,
	 O("Unsupported parameter: 'max_tokens' is not supported with this model. Use "
	   "'max_completion_tokens' instead.",
	   "invalid_request_error", "null", "null"),
	 REPLY_BAD_REQUEST, "max_tokens"},
	{400,
	 O("Unsupported parameter: 'temperature' is not supported with this model.",
	   "invalid_request_error", "\"temperature\"", "\"unsupported_parameter\""),
	 REPLY_BAD_REQUEST, "temperature"},
	{400,
	 O("Function tools with reasoning_effort are not supported for gpt-x in "
	   "/v1/chat/completions.",
	   "invalid_request_error", "null", "null"),
	 REPLY_BAD_REQUEST, "reasoning_effort"},
	{400,
	 "{\"error\":{\"code\":400,\"message\":\"Invalid JSON payload received. Unknown name "
	 "\\\"stream_options\\\": Cannot find field.\",\"status\":\"INVALID_ARGUMENT\"}}",
	 REPLY_BAD_REQUEST, "stream_options"},
	{400,
	 "{\"object\":\"error\",\"message\":\"[{'type': 'extra_forbidden', 'loc': ('body', "
	 "'reasoning_effort'), 'msg': 'Extra inputs are not permitted', 'input': "
	 "'medium'}]\",\"type\":\"BadRequestError\",\"param\":null,\"code\":400}",
	 REPLY_BAD_REQUEST, "reasoning_effort"},
	{422,
	 "{\"detail\":[{\"type\":\"extra_forbidden\",\"loc\":[\"body\",\"stream_options\"],"
	 "\"msg\":\"Extra inputs are not permitted\",\"input\":{}}]}",
	 REPLY_BAD_REQUEST, "stream_options"},
	{422,
	 "{\"object\":\"error\",\"message\":{\"detail\":[{\"type\":\"extra_forbidden\",\"loc\":["
	 "\"body\",\"tool_choice\",1,\"x\"],\"msg\":\"Extra inputs are not permitted\"}]},"
	 "\"type\":\"invalid_request_error\"}",
	 REPLY_BAD_REQUEST, "tool_choice.x"},
	{422, "{\"detail\":[7]}", REPLY_BAD_REQUEST, ""},
	{400,
	 O("tool_choice 'specified' is incompatible with thinking enabled", "invalid_request_error",
	   "null", "null"),
	 REPLY_BAD_REQUEST, "tool_choice"},
	{400, O("Thinking mode does not support this tool_choice", "x", "null", "null"), REPLY_BAD_REQUEST, "tool_choice"},
	{400, A("invalid_request_error", "Thinking may not be enabled when tool_choice forces tool use."), REPLY_BAD_REQUEST, "tool_choice"},
	{400,
	 A("invalid_request_error",
	   "messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
	   "`tool_use`. When `thinking` is enabled, a final `assistant` message must start with a "
	   "thinking block"),
	 REPLY_BAD_REQUEST, "thinking"},
	{400,
	 A("invalid_request_error",
	   "messages.0.content.1.text.cache_control: cache_control cannot be set for empty text "
	   "blocks"),
	 REPLY_BAD_REQUEST, "cache_control"},
	{400, A("invalid_request_error", "system.0.cache_control: Extra inputs are not permitted"), REPLY_BAD_REQUEST, "cache_control"},
	{422,
	 "{\"detail\":[{\"type\":\"extra_forbidden\",\"loc\":[\"body\",\"messages\",2,"
	 "\"assistant\","
	 "\"reasoning_content\"],\"msg\":\"Extra inputs are not permitted\"}]}",
	 REPLY_BAD_REQUEST, "reasoning_content"},
	{400,
	 O("'messages.2' : for 'role:assistant' the following must be satisfied[('messages.2' : "
	   "property 'reasoning' is unsupported)]",
	   "invalid_request_error", "null", "null"),
	 REPLY_BAD_REQUEST, "reasoning"},
	{404, R("404", "No endpoints found that support the provided 'tool_choice' value.", ""), REPLY_BAD_REQUEST, "tool_choice"},
	{400, O("Your max_tokenses are odd", "x", "null", "null"), REPLY_BAD_REQUEST, ""},
};
/* clang-format on */

TEST(cases)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct reply_error e = {0};

		print_message("%d %s\n", cases[i].status, cases[i].body);
		stream_error_body(&e, cases[i].status, "application/json", cases[i].body,
				  strlen(cases[i].body));
		assert_string_equal(reply_class_word(e.cls), reply_class_word(cases[i].cls));
		assert_string_equal(e.field, cases[i].field);
		assert_true(e.text[0] != 0);
		assert_string_equal(e.request_id, strstr(cases[i].body, "req_011Cc") != NULL &&
								  cases[i].body[2] == 't'
							  ? "req_011Cc"
							  : "");
	}
}

TEST(words)
{
	for (int a = 0; a < REPLY_NCLASSES; a++) {
		assert_true(reply_class_word((enum reply_class)a)[0] != 0);
		assert_true(strlen(reply_class_word((enum reply_class)a)) < 32);
		for (int b = 0; b < a; b++)
			assert_string_not_equal(reply_class_word((enum reply_class)a),
						reply_class_word((enum reply_class)b));
	}
	assert_string_equal(reply_class_word((enum reply_class)99), "other");
}

/* Text of strangers becomes one harmless line that fits. */
TEST(text)
{
	struct reply_error e = {0};
	char longer[400];

	stream_error_set(&e, REPLY_OTHER, "a\nb\x1b[2J\xff\xe2\x80\xa8z\xc2\x9b");
	assert_string_equal(e.text, "a b [2J  z ");
	for (size_t i = 0; i < sizeof(longer) - 2; i += 2)
		memcpy(longer + i, "\xc3\xa9", 3);
	stream_error_set(&e, REPLY_OTHER, longer);
	assert_true(strlen(e.text) >= sizeof(e.text) - 3);
	assert_true(utf8_valid(e.text, strlen(e.text)));
}

TEST(member)
{
	static const struct {
		const char *json;
		bool is;
	} some[] = {
		{"{\"error\":{}}", true},
		{"{\"error\":\"x\"}", true},
		{"{\"error\":null}", false},
		{"{\"type\":\"error\"}", true},
		{"{\"object\":\"error\"}", true},
		{"{\"object\":\"list\",\"type\":\"error\"}", false},
		{"{\"choices\":[]}", false},
		{"[]", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(some); i++) {
		json_auto_t *v = json_loads(some[i].json, 0, NULL);

		assert_true((stream_error_member(v) != NULL) == some[i].is);
	}
}
