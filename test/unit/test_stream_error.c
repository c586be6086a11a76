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
	{400, A("invalid_request_error", "temperature: Extra inputs are not permitted"), REPLY_BAD_REQUEST, "temperature"},
	{400, A("invalid_request_error", "`temperature` is deprecated for this model."), REPLY_BAD_REQUEST, "temperature"},
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

/* A service's words for a request that is too large, and what they tell of tokens. */
/* clang-format off */
static const struct {
	int status;
	const char *text, *code;
	enum reply_class cls;
	int64_t window, prompt, output_max;
} told[] = {
	/* Anthropic, Bedrock, Vertex */
	{400, "prompt is too long: 210000 tokens > 200000 maximum", "", REPLY_OVERFLOW, 200000, 210000, 0},
	{400, "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or `max_tokens` and try again", "", REPLY_OVERFLOW, 200000, 190000, 0},
	{400, "max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens for claude-3-5-haiku-20241022", "", REPLY_BAD_REQUEST, 0, 0, 8192},
	{400, "The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum tokens value that is lower than 4096.", "", REPLY_BAD_REQUEST, 0, 0, 4096},
	{400, "Unable to submit request because it has a maxOutputTokens value of 65536 but the supported range is from 1 (inclusive) to 8193 (exclusive). Update the value and try again.", "", REPLY_BAD_REQUEST, 0, 0, 8192},
	{400, "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).", "", REPLY_OVERFLOW, 1048575, 1196265, 0},
	{400, "Input is too long for requested model.", "", REPLY_OVERFLOW, 0, 0, 0},
	/* OpenAI, Azure, DeepSeek, OpenRouter */
	{400, "This model's maximum context length is 128000 tokens. However, your messages resulted in 130,000 tokens (129000 in the messages, 1000 in the functions).", "context_length_exceeded", REPLY_OVERFLOW, 128000, 130000, 0},
	{400, "This model's maximum context length is 131072 tokens. However, you requested 140000 tokens (136000 in the messages, 4000 in the completion).", "", REPLY_OVERFLOW, 131072, 136000, 0},
	{400, "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 290000 tokens.", "", REPLY_OVERFLOW, 272000, 290000, 0},
	{400, "max_tokens is too large: 8192. This model supports at most 4096 completion tokens, whereas you provided 8192.", "", REPLY_BAD_REQUEST, 0, 0, 4096},
	{400, "Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", "", REPLY_BAD_REQUEST, 0, 0, 8192},
	{400, "This endpoint's maximum context length is 524288 tokens. However, you requested about 538487 tokens (14474 of text input, 12013 of tool input, 512000 in the output).", "", REPLY_OVERFLOW, 524288, 26487, 0},
	/* vLLM, old and new; SGLang; TGI; llama.cpp and its kin */
	{400, "This model's maximum context length is 128000 tokens. However, you requested 65535 output tokens and your prompt contains at least 62466 input tokens, for a total of at least 128001 tokens. (parameter=input_tokens, value=62466)", "", REPLY_OVERFLOW, 128000, 62466, 0},
	{400, "'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context length is 4096 tokens and your request has 3000 input tokens (8192 > 4096 - 3000).", "", REPLY_OVERFLOW, 4096, 3000, 0},
	{400, "The decoder prompt (length 10127) is longer than the maximum model length of 8192.", "", REPLY_OVERFLOW, 8192, 10127, 0},
	{400, "max_tokens must be at least 1, got -238.", "", REPLY_OVERFLOW, 0, 0, 0},
	{400, "Input length (700001 tokens) exceeds the maximum allowed length (536826 tokens). Use a shorter input or enable --allow-auto-truncate.", "", REPLY_OVERFLOW, 536826, 700001, 0},
	{400, "Requested token count exceeds the model's maximum context length of 8192 tokens. You requested a total of 9192 tokens: 1000 tokens from the input messages and 8192 tokens for the completion.", "", REPLY_OVERFLOW, 8192, 1000, 0},
	{422, "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 2048. Given: 3474 `inputs` tokens and 60 `max_new_tokens`", "", REPLY_OVERFLOW, 2048, 3474, 0},
	{422, "Input validation error: `inputs` must have less than 1024 tokens. Given: 1168", "", REPLY_OVERFLOW, 1024, 1168, 0},
	{422, "Input validation error: `max_new_tokens` must be <= 192. Given: 500", "", REPLY_BAD_REQUEST, 0, 0, 192},
	{400, "request (9000 tokens) exceeds the available context size (4096 tokens), try increasing it", "", REPLY_OVERFLOW, 4096, 9000, 0},
	{400, "Requested tokens (5000) exceed context window of 4096", "", REPLY_OVERFLOW, 4096, 5000, 0},
	{400, "Requested tokens exceed context window of 512", "", REPLY_OVERFLOW, 512, 0, 0},
	{400, "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 13055>= n_ctx: 4096).", "", REPLY_OVERFLOW, 4096, 13055, 0},
	{400, "Trying to keep the first 10136 tokens when context the overflows. However, the model is loaded with context length of only 7866 tokens, which is not enough.", "", REPLY_OVERFLOW, 7866, 10136, 0},
	{400, "prompt too long; exceeded max context length by 1934 tokens", "", REPLY_OVERFLOW, 0, 0, 0},
	{422, "Prompt length 9000 is greater than max_seq_len 8192", "", REPLY_OVERFLOW, 8192, 9000, 0},
	/* the rest */
	{400, "Prompt contains 40960 tokens and 0 draft tokens, too large for model with 32768 maximum context length", "", REPLY_OVERFLOW, 32768, 40960, 0},
	{400, "The input (12345 tokens) is longer than the model's context length (8192 tokens).", "", REPLY_OVERFLOW, 8192, 12345, 0},
	{400, "The prompt is too long: 40177, model maximum context length: 32767", "", REPLY_OVERFLOW, 32767, 40177, 0},
	{400, "`max_tokens` must be less than or equal to `16384`, the maximum value for `max_tokens` is less than the `context_window` for this model", "", REPLY_BAD_REQUEST, 0, 0, 16384},
	{400, "This model's maximum prompt length is 131072 but the request contains 136973 tokens.", "", REPLY_OVERFLOW, 131072, 136973, 0},
	{400, "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 98304]", "", REPLY_OVERFLOW, 98304, 0, 0},
	{400, "<400> InternalError.Algo.InvalidParameter: Range of max_tokens should be [1, 8192]", "", REPLY_BAD_REQUEST, 0, 0, 8192},
	{400, "Input length 131191 exceeds the maximum allowed input length of 131040 tokens.", "", REPLY_OVERFLOW, 131040, 131191, 0},
	{400, "prompt token count of 203456 exceeds the limit of 128000", "model_max_prompt_tokens_exceeded", REPLY_OVERFLOW, 128000, 203456, 0},
	{413, "Request body too large for gpt-4o model. Max size: 8000 tokens.", "tokens_limit_reached", REPLY_OVERFLOW, 8000, 0, 0},
	{400, "too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 4292. Try using a shorter prompt.", "", REPLY_OVERFLOW, 4081, 4292, 0},
	{400, "too many tokens: max tokens must be less than or equal to 4096, the maximum output for this model - received 8192.", "", REPLY_BAD_REQUEST, 0, 0, 4096},
	{400, "length of prompt_tokens (9000) must be less than max_seq_len (8192).", "", REPLY_OVERFLOW, 8192, 9000, 0},
	{400, "Invalid request: Your request exceeded model token limit: 262144 (requested: 269030)", "", REPLY_OVERFLOW, 262144, 269030, 0},
	{400, "model max length exceeded, max length:8192", "", REPLY_OVERFLOW, 8192, 0, 0},
	{400, "invalid params, context window exceeds limit (2013)", "", REPLY_OVERFLOW, 0, 0, 0},
	{400, "Prompt exceeds max length", "1261", REPLY_OVERFLOW, 0, 0, 0},
	{413, "The estimated number of input and maximum output tokens (9192) exceeded this model context window limit (7968).", "", REPLY_OVERFLOW, 7968, 9192, 0},
	{400, "Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192", "", REPLY_OVERFLOW, 8192, 9000, 0},
	/* of no service: by its words and two numbers */
	{400, "Your prompt of 40k tokens does not fit: 32k are possible.", "", REPLY_OVERFLOW, 32000, 40000, 0},
	{500, "token sequence too long (1_200_000 > 1,048,576)", "", REPLY_OVERFLOW, 1048576, 1200000, 0},
	{400, "Your request of 12000 tokens exceeds the 8192-token limit", "", REPLY_OVERFLOW, 8192, 12000, 0},
	{400, "context limit reached: 130k of 128k", "", REPLY_OVERFLOW, 128000, 130000, 0},
	/* no overflow */
	{400, "temperature: Input should be less than or equal to 1", "", REPLY_BAD_REQUEST, 0, 0, 0},
	{400, "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 900 instead.", "", REPLY_BAD_REQUEST, 0, 0, 0},
	{400, "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024", "", REPLY_BAD_REQUEST, 0, 0, 0},
	{402, "This request requires more credits, or fewer max_tokens. You requested up to 8192 tokens, but can only afford 2345.", "", REPLY_BILLING, 0, 0, 0},
	{500, "The model llama-3.1-70b of 2024-10-22 failed", "", REPLY_SERVER, 0, 0, 0},
	{429, "Rate limit reached for gpt-4 on tokens per min (TPM): Limit 10000, Used 9000, Requested 1500. Please try again in 3s.", "", REPLY_RATE_LIMIT, 0, 0, 0},
};
/* clang-format on */

TEST(told_numbers)
{
	for (size_t i = 0; i < ARRAY_LEN(told); i++) {
		struct reply_error e = {0};
		json_t *v = json_pack("{s:{s:s,s:s}}", "error", "message", told[i].text, "code",
				      told[i].code);

		print_message("%d %s\n", told[i].status, told[i].text);
		stream_error_json(&e, told[i].status, v);
		assert_string_equal(reply_class_word(e.cls), reply_class_word(told[i].cls));
		assert_int_equal(e.window, told[i].window);
		assert_int_equal(e.prompt, told[i].prompt);
		assert_int_equal(e.output_max, told[i].output_max);
		assert_true(e.output_max == 0 || e.field[0] != 0);
		assert_false(e.never);
		json_decref(v);
	}
}

/* Larger than a minute of the account: waiting does not help. */
TEST(told_never)
{
	static const char *const texts[] = {
		"Request too large for model `llama-3.1-70b-versatile` in organization `org_01` on "
		"tokens per minute (TPM): Limit 6000, Requested 14368, please reduce your message "
		"size and try again.",
		"Request too large for gpt-4o in organization org-1 on tokens per min (TPM): Limit "
		"6000, Requested 14368. The input or output tokens must be reduced.",
	};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		for (int status = 413; status <= 429; status += 16) {
			struct reply_error e = {0};
			json_t *v = json_pack("{s:{s:s,s:s}}", "error", "message", texts[i], "type",
					      "tokens");

			stream_error_json(&e, status, v);
			assert_string_equal(reply_class_word(e.cls), "rate_limit");
			assert_true(e.never);
			assert_int_equal(e.window, 6000);
			assert_int_equal(e.prompt, 14368);
			json_decref(v);
		}
}

/* What a server tells beside its sentence. */
TEST(told_members)
{
	static const char body[] =
		"{\"error\":{\"code\":400,\"message\":\"the request exceeds the "
		"available context size\",\"n_prompt_tokens\":9000,\"n_ctx\":4096}}";
	struct reply_error e = {0};

	stream_error_body(&e, 400, NULL, body, strlen(body));
	assert_int_equal(e.cls, REPLY_OVERFLOW);
	assert_int_equal(e.window, 4096);
	assert_int_equal(e.prompt, 9000);
}

/* Errors as they are wrapped, pages, and what is no service at all. */
/* clang-format off */
static const struct {
	int status;
	const char *type, *body;
	enum reply_class cls;
	const char *text; /* in the sentence */
	const char *after;
} shapes[] = {
	/* Gemini */
	{400, NULL, "[{\"error\":{\"code\":400,\"message\":\"API key not valid. Please pass a valid API key.\",\"status\":\"INVALID_ARGUMENT\"}}]", REPLY_AUTH, "API key not valid", ""},
	{429, NULL, "[{\"error\":{\"code\":429,\"message\":\"You exceeded your current quota.\",\"status\":\"RESOURCE_EXHAUSTED\",\"details\":[{\"reason\":\"x\"},{\"@type\":\"type.googleapis.com/google.rpc.RetryInfo\",\"retryDelay\":\"12s\"}]}}]", REPLY_RATE_LIMIT, "current quota", "12s"},
	{429, NULL, "[{\"error\":{\"code\":429,\"message\":\"Quota exceeded for metric: free_tier_requests, limit: 0, model: x\",\"status\":\"RESOURCE_EXHAUSTED\"}}]", REPLY_BILLING, "limit: 0", ""},
	/* OpenRouter, Groq, Zhipu */
	{429, NULL, "{\"error\":{\"message\":\"Rate limit exceeded: free-models-per-day.\",\"code\":429,\"metadata\":{\"headers\":{\"X-RateLimit-Limit\":\"50\",\"X-RateLimit-Reset\":\"1763712036000\"}}}}", REPLY_RATE_LIMIT, "free-models-per-day", "1763712036000"},
	{429, NULL, "{\"error\":{\"message\":\"Limit 100000, Used 99700, Requested 5000. Please try again in 1h7m40.8s.\",\"code\":\"rate_limit_exceeded\"}}", REPLY_RATE_LIMIT, "try again", "1h7m40.8s."},
	{429, NULL, "{\"error\":{\"code\":\"1113\",\"message\":\"Insufficient balance or no resource package.\"}}", REPLY_BILLING, "Insufficient", ""},
	{200, NULL, "{\"code\":\"1302\",\"msg\":\"High concurrency usage of this API\",\"success\":false}", REPLY_RATE_LIMIT, "High concurrency", ""},
	{200, NULL, "{\"success\":false,\"message\":\"Too many requests, please slow down\",\"code\":429}", REPLY_RATE_LIMIT, "slow down", ""},
	/* MiniMax */
	{200, NULL, "{\"id\":\"x\",\"choices\":null,\"base_resp\":{\"status_code\":1008,\"status_msg\":\"insufficient balance\"}}", REPLY_BILLING, "insufficient balance", ""},
	/* Databricks; a text of JSON within a text of JSON */
	{400, NULL, "{\"error_code\":\"BAD_REQUEST\",\"message\":\"{\\\"external_model_provider\\\":\\\"anthropic\\\",\\\"external_model_error\\\":{\\\"type\\\":\\\"error\\\",\\\"error\\\":{\\\"type\\\":\\\"invalid_request_error\\\",\\\"message\\\":\\\"input length and `max_tokens` exceed context limit: 196758 + 8192 > 200000\\\"}}}\"}", REPLY_OVERFLOW, "input length and", ""},
	{500, NULL, "{\"error\":{\"message\":{\"error\":\"the request exceeds the available context size\"}}}", REPLY_OVERFLOW, "the request exceeds", ""},
	/* llama.cpp, Ollama: the template refuses, asking again does not help; a call that it could not read may */
	{500, NULL, "{\"error\":{\"code\":500,\"message\":\"Conversation roles must alternate user/assistant\",\"type\":\"server_error\"}}", REPLY_BAD_REQUEST, "roles must alternate", ""},
	{500, NULL, "{\"error\":{\"code\":500,\"message\":\"tools param requires --jinja flag\",\"type\":\"server_error\"}}", REPLY_BAD_REQUEST, "--jinja", ""},
	{500, NULL, "{\"error\":{\"message\":\"error parsing tool call: raw='{' err=unexpected end of JSON input\",\"type\":\"api_error\"}}", REPLY_SERVER, "parsing tool call", ""},
	{500, NULL, "{\"error\":{\"message\":\"System role not supported\",\"type\":\"server_error\"}}", REPLY_BAD_REQUEST, "System role", ""},
	{501, NULL, "{\"error\":{\"message\":\"This server does not support x\",\"type\":\"not_supported_error\"}}", REPLY_BAD_REQUEST, "does not support", ""},
	/* Baidu, Cloudflare, DashScope, Azure, OpenRouter */
	{200, NULL, "{\"error_code\":336,\"error_msg\":\"the max input characters is 20480\"}", REPLY_SERVER, "max input characters", ""},
	{400, NULL, "{\"success\":false,\"errors\":[{\"code\":5021,\"message\":\"The estimated number of input and maximum output tokens (9192) exceeded this model context window limit (7968).\"}]}", REPLY_OVERFLOW, "The estimated", ""},
	{400, NULL, "{\"code\":\"Arrearage\",\"message\":\"Access denied, please make sure your account is in good standing.\"}", REPLY_BILLING, "Access denied", ""},
	{403, NULL, "{\"error\":{\"message\":\"The free tier of the model has been exhausted.\",\"code\":\"AllocationQuota.FreeTierOnly\"}}", REPLY_BILLING, "free tier", ""},
	{429, NULL, "{\"error\":{\"code\":\"429\",\"message\":\"Requests have exceeded token rate limit. Please retry after 26 seconds.\"}}", REPLY_RATE_LIMIT, "token rate", "26 seconds."},
	{429, NULL, "{\"error\":{\"code\":429,\"message\":\"x\",\"metadata\":{\"retry_after_seconds\":31}}}", REPLY_RATE_LIMIT, "x", "31"},
	{429, NULL, "{\"detail\":\"Slow down\",\"retry_after\":\"7\"}", REPLY_RATE_LIMIT, "Slow down", "7"},
	/* no such path, or no such model */
	{200, NULL, "{\"error\":\"Unexpected endpoint or method. (POST /chat/completions)\"}", REPLY_ADDRESS, "Unexpected endpoint", ""},
	{404, NULL, "404 page not found", REPLY_ADDRESS, "page not found", ""},
	{404, NULL, "{\"detail\":\"Not Found\"}", REPLY_ADDRESS, "Not Found", ""},
	{404, NULL, "{\"error\":{\"code\":404,\"message\":\"File Not Found\",\"type\":\"not_found_error\"}}", REPLY_ADDRESS, "File Not Found", ""},
	{404, NULL, "{\"error\":{\"message\":\"Invalid URL (POST /chat/completions)\",\"type\":\"invalid_request_error\"}}", REPLY_ADDRESS, "Invalid URL", ""},
	{404, "text/html", "<html><pre>Cannot POST /chat/completions</pre></html>", REPLY_ADDRESS, "page of HTML", ""},
	{404, NULL, "", REPLY_ADDRESS, "HTTP 404", ""},
	{405, NULL, "{\"detail\":\"Method Not Allowed\"}", REPLY_ADDRESS, "Not Allowed", ""},
	{404, NULL, "{\"error\":{\"message\":\"The model `x` does not exist\",\"code\":\"model_not_found\"}}", REPLY_NOT_FOUND, "does not exist", ""},
	{404, NULL, "{\"error\":{\"message\":\"model \\\"x\\\" not found, try pulling it first\",\"type\":\"api_error\"}}", REPLY_NOT_FOUND, "try pulling", ""},
	{307, NULL, "", REPLY_ADDRESS, "HTTP 307", ""},
	{301, "text/html", "<html><title>301 Moved Permanently</title></html>", REPLY_ADDRESS, "301 Moved", ""},
	/* walls, and gateways that failed */
	{403, "text/html", "<!DOCTYPE html><html><head><title>Attention Required! | Cloudflare</title></head></html>", REPLY_WALL, "Attention Required! | Cloudflare (HTTP 403)", ""},
	{403, NULL, "error code: 1020", REPLY_WALL, "1020", ""},
	{503, "text/html", "<title>\n Just a moment...\n</title>", REPLY_WALL, "Just a moment...", ""},
	{429, "text/html", "<title>Security check</title>", REPLY_WALL, "Security check", ""},
	{200, "text/html", "<h1 class=\"x\">Sign in</h1>", REPLY_WALL, "Sign in", ""},
	{401, NULL, "<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code><Message>Access denied</Message></Error>", REPLY_WALL, "Access denied", ""},
	{407, NULL, "", REPLY_WALL, "HTTP 407", ""},
	{502, "text/html", "<html>bad gateway</html>", REPLY_SERVER, "HTML (HTTP 502)", ""},
	{503, "text/html", "<title>503 Service Temporarily Unavailable</title>", REPLY_OVERLOADED, "Temporarily", ""},
	{413, "text/html", "<title>413 Request Entity Too Large</title>", REPLY_TOO_LARGE, "413", ""},
	/* they pass by themselves */
	{420, NULL, "{\"error\":{\"message\":\"try later\"}}", REPLY_RATE_LIMIT, "try later", ""},
	{421, NULL, "x", REPLY_SERVER, "x", ""},
	{423, NULL, "x", REPLY_SERVER, "x", ""},
	{424, NULL, "{\"error\":{\"message\":\"try later\"}}", REPLY_SERVER, "try later", ""},
	{425, NULL, "x", REPLY_SERVER, "x", ""},
	{499, NULL, "x", REPLY_SERVER, "x", ""},
	{520, NULL, "x", REPLY_SERVER, "x", ""},
};
/* clang-format on */

TEST(wrapped)
{
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++) {
		struct reply_error e = {0};

		print_message("%d %s\n", shapes[i].status, shapes[i].body);
		stream_error_body(&e, shapes[i].status, shapes[i].type, shapes[i].body,
				  strlen(shapes[i].body));
		assert_string_equal(reply_class_word(e.cls), reply_class_word(shapes[i].cls));
		assert_non_null(strstr(e.text, shapes[i].text));
		assert_string_equal(e.after, shapes[i].after);
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
		{"{\"choices\":[],\"message\":\"x\"}", false},
		{"{\"usage\":{}}", false},
		{"{\"code\":\"x\",\"message\":\"y\"}", true},
		{"{\"type\":\"ping\",\"message\":\"y\"}", false},
		{"{\"base_resp\":{\"status_code\":0,\"status_msg\":\"\"}}", false},
		{"{\"base_resp\":{\"status_code\":1008}}", true},
		{"[{\"error\":{}}]", true},
		{"[]", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(some); i++) {
		json_auto_t *v = json_loads(some[i].json, 0, NULL);

		assert_true((stream_error_member(v) != NULL) == some[i].is);
	}
}

/* Which limit is used up, and what of the sentence says until when. */
TEST(limits)
{
	static const struct {
		const char *message, *limit, *after;
	} said[] = {
		{"You've hit your weekly limit. It resets at 3pm (Europe/Berlin)", "weekly",
		 "3pm (Europe/Berlin)"},
		{"5-hour limit reached - resets: 7pm", "5-hour", "7pm"},
		{"Rate limit. Try again in 5 hours", "", "5 hours"}, /* that is how long it lasts */
		{"Rate limit. Try again in 7 days", "", "7 days"},
		{"Please wait. You may retry in 15 hours", "", "15 hours"}, /* not "wait. You" */
		{"usage limit reached|1763733600", "usage", "1763733600"},
		{"quota is available again at 2025-12-01T00:00:00Z", "", "2025-12-01T00:00:00Z"},
		{"Rate limit: wait for the others", "", ""},
	};
	char body[300];

	for (size_t i = 0; i < ARRAY_LEN(said); i++) {
		struct reply_error e = {0};
		json_auto_t *json = NULL;

		snprintf(body, sizeof(body), "{\"error\":{\"message\":\"%s\"}}", said[i].message);
		json = json_parse(body, strlen(body), NULL);
		stream_error_json(&e, 429, json);
		if (strcmp(e.limit, said[i].limit) != 0 || strcmp(e.after, said[i].after) != 0)
			fail_msg("%s: \"%s\" \"%s\"", said[i].message, e.limit, e.after);
	}
}
