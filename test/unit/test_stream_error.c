/* Bodies of errors as the services really write them, and what they come to:
 * class, sentence, parameter. The shapes are from documentation and reports;
 * the values are made up. */
#include "unit.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "codec/utf8.h"
#include "provider/stream_error.h"

#define A(type, text)                                                                              \
	"{\"type\":\"error\",\"error\":{\"type\":\"" type "\",\"message\":\"" text "\"},"          \
	"\"request_id\":\"req_011Cc\"}"
#define O(text, type, param, code)                                                                 \
	"{\"error\":{\"message\":\"" text "\",\"type\":\"" type "\",\"param\":" param              \
	",\"code\":" code "}}"
#define R(code, text, meta) "{\"error\":{\"code\":" code ",\"message\":\"" text "\"" meta "}}"

static const struct {
	int status;
	const char *body;
	enum reply_class cls;
	const char *field;
} cases[] = {
	/* Anthropic */
	{400, A("invalid_request_error", "max_tokens: Field required"), REPLY_BAD_REQUEST,
	 "max_tokens"},
	{400, A("invalid_request_error", "temperature: Extra inputs are not permitted"),
	 REPLY_BAD_REQUEST, "temperature"},
	{400, A("invalid_request_error", "`temperature` is deprecated for this model."),
	 REPLY_BAD_REQUEST, "temperature"},
	{400,
	 A("invalid_request_error",
	   "\\\"thinking.type.enabled\\\" is not supported for this model. "
	   "Use \\\"thinking.type.adaptive\\\" and \\\"output_config.effort\\\""),
	 REPLY_BAD_REQUEST, "thinking.budget_tokens"},
	{400, A("invalid_request_error", "thinking.enabled.budget_tokens: Input should be less"),
	 REPLY_BAD_REQUEST, "thinking.budget_tokens"},
	{400, A("invalid_request_error", "adaptive thinking is not supported on this model"),
	 REPLY_BAD_REQUEST, "thinking.adaptive"},
	{400,
	 A("invalid_request_error", "thinking: Input tag 'adaptive' found using 'type' does not "
				    "match any of the expected tags: 'disabled', 'enabled'"),
	 REPLY_BAD_REQUEST, "thinking.adaptive"},
	{400,
	 A("invalid_request_error", "messages.2: `tool_use` ids were found without `tool_result` "
				    "blocks immediately after: toolu_1"),
	 REPLY_BAD_REQUEST, "messages.2"},
	{400, A("invalid_request_error", "prompt is too long: 210000 tokens > 200000 maximum"),
	 REPLY_OVERFLOW, ""},
	{400,
	 A("invalid_request_error", "input length and `max_tokens` exceed context limit: 190000 + "
				    "20000 > 200000"),
	 REPLY_OVERFLOW, ""},
	{400,
	 A("invalid_request_error", "Your credit balance is too low to access the Anthropic API."),
	 REPLY_BILLING, ""},
	{401, A("authentication_error", "invalid x-api-key"), REPLY_AUTH, ""},
	{402, A("billing_error", "Payment needed"), REPLY_BILLING, ""},
	{403, A("permission_error", "Your key may not do this"), REPLY_AUTH, ""},
	{404, A("not_found_error", "model: claude-none"), REPLY_NOT_FOUND, ""},
	{413, A("request_too_large", "Request exceeds the maximum size"), REPLY_TOO_LARGE, ""},
	{429, A("rate_limit_error", "This request would exceed your rate limit"), REPLY_RATE_LIMIT,
	 ""},
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
	 REPLY_BAD_REQUEST, "messages"},
	{400,
	 O("This model's maximum context length is 128000 tokens. However, your messages resulted "
	   "in "
	   "130000 tokens.",
	   "invalid_request_error", "\"messages\"", "\"context_length_exceeded\""),
	 REPLY_OVERFLOW, ""},
	{400,
	 O("Your input exceeds the context window of this model.", "invalid_request_error",
	   "\"input\"", "null"),
	 REPLY_OVERFLOW, ""},
	{401,
	 O("Incorrect API key provided", "invalid_request_error", "null", "\"invalid_api_key\""),
	 REPLY_AUTH, ""},
	{401, O("No such organization", "invalid_request_error", "null", "null"), REPLY_AUTH, ""},
	{404,
	 O("The model `gpt-none` does not exist", "invalid_request_error", "null",
	   "\"model_not_found\""),
	 REPLY_NOT_FOUND, ""},
	{429,
	 O("You exceeded your current quota, please check your plan", "insufficient_quota", "null",
	   "\"insufficient_quota\""),
	 REPLY_BILLING, ""},
	{429,
	 O("Request too large for gpt-x on tokens per min (TPM)", "tokens", "null",
	   "\"rate_limit_exceeded\""),
	 REPLY_RATE_LIMIT, ""},
	{429, O("Rate limit reached", "requests", "null", "null"), REPLY_RATE_LIMIT, ""},
	{503, O("The engine is currently overloaded", "server_error", "null", "null"), REPLY_SERVER,
	 ""},
	/* OpenRouter */
	{402, R("402", "This request requires more credits, or fewer max_tokens.", ""),
	 REPLY_BILLING, ""},
	{403,
	 R("403", "Your input was flagged",
	   ",\"metadata\":{\"reasons\":[\"x\"],\"flagged_input\":\"y\"}"),
	 REPLY_REFUSED, ""},
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
	{502,
	 R("502", "Provider returned error",
	   ",\"metadata\":{\"error_type\":\"provider_overloaded\"}"),
	 REPLY_OVERLOADED, ""},
	{400, R("400", "Too long", ",\"metadata\":{\"error_type\":\"context_length_exceeded\"}"),
	 REPLY_OVERFLOW, ""},
	{403, R("403", "No", ",\"metadata\":{\"error_type\":\"content_policy_violation\"}"),
	 REPLY_REFUSED, ""},
	/* local servers */
	{400,
	 "{\"error\":{\"code\":400,\"message\":\"the request exceeds the available context size, "
	 "try "
	 "increasing "
	 "it\",\"type\":\"exceed_context_size_error\",\"n_prompt_tokens\":9000,\"n_ctx\":"
	 "4096}}",
	 REPLY_OVERFLOW, ""},
	{500,
	 "{\"error\":{\"code\":500,\"message\":\"Context size has been exceeded.\",\"type\":"
	 "\"server_error\"}}",
	 REPLY_OVERFLOW, ""},
	{503,
	 "{\"error\":{\"code\":503,\"message\":\"Loading model\",\"type\":\"unavailable_error\"}}",
	 REPLY_OVERLOADED, ""},
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
};

static void test_cases(void **state)
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

static void test_words(void **state)
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
static void test_text(void **state)
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

static void test_member(void **state)
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
		json_t *v = json_loads(some[i].json, 0, NULL);

		assert_true((stream_error_member(v) != NULL) == some[i].is);
		json_decref(v);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),
		cmocka_unit_test(test_words),
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_member),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
