/* The names of OpenTelemetry that traces are exported under, in one table by
 * version of the conventions: all gen_ai.* names are still in development and
 * change. What has no standard name is ava.*; openinference and llm.* are what
 * Phoenix reads. */
#ifndef EVENT_OTLP_NAMES_H
#define EVENT_OTLP_NAMES_H

/* clang-format off: a table */
/* what; its name in version 1.42.0 of the gen_ai conventions */
#define OTLP_NAMES(X)                                                                              \
	X(OPERATION, "gen_ai.operation.name")                                                      \
	X(PROVIDER, "gen_ai.provider.name")                                                        \
	X(AGENT_ID, "gen_ai.agent.id")                                                             \
	X(AGENT_NAME, "gen_ai.agent.name")                                                         \
	X(AGENT_DESCRIPTION, "gen_ai.agent.description")                                           \
	X(CONVERSATION, "gen_ai.conversation.id")                                                  \
	X(REQUEST_MODEL, "gen_ai.request.model")                                                   \
	X(MAX_TOKENS, "gen_ai.request.max_tokens")                                                 \
	X(RESPONSE_ID, "gen_ai.response.id")                                                       \
	X(FINISH_REASONS, "gen_ai.response.finish_reasons")                                        \
	X(INPUT_TOKENS, "gen_ai.usage.input_tokens")                                               \
	X(OUTPUT_TOKENS, "gen_ai.usage.output_tokens")                                             \
	X(CACHE_READ, "gen_ai.usage.cache_read.input_tokens")                                      \
	X(CACHE_WRITE, "gen_ai.usage.cache_creation.input_tokens")                                 \
	X(REASONING, "gen_ai.usage.reasoning.output_tokens")                                       \
	X(TOOL_NAME, "gen_ai.tool.name")                                                           \
	X(TOOL_CALL_ID, "gen_ai.tool.call.id")                                                     \
	X(TOOL_TYPE, "gen_ai.tool.type")                                                           \
	X(ERROR_TYPE, "error.type")                                                                \
	X(EXCEPTION, "gen_ai.client.operation.exception")                                          \
	X(EXCEPTION_TYPE, "exception.type")                                                        \
	X(EXCEPTION_MESSAGE, "exception.message")                                                  \
	X(SERVICE, "service.name")                                                                 \
	X(SERVICE_VERSION, "service.version")                                                      \
	X(TRACE_NAME, "ava.trace.name")                                                            \
	X(STATUS, "ava.run.status")                                                                \
	X(STOP_REASON, "ava.run.stop_reason")                                                      \
	X(CALL_ID, "ava.call.id")                                                                  \
	X(COST, "ava.cost.usd")                                                                    \
	X(ESTIMATED, "ava.usage.estimated")                                                        \
	X(ITERATION, "ava.iteration")                                                              \
	X(LIMIT_KIND, "ava.limit.kind")                                                            \
	X(CHECKPOINT, "ava.checkpoint.name")                                                       \
	X(TEXT, "ava.text")                                                                        \
	X(LSN, "ava.lsn")                                                                          \
	X(INTERRUPTED, "ava.interrupted")                                                          \
	X(OI_KIND, "openinference.span.kind")                                                      \
	X(OI_MODEL, "llm.model_name")                                                              \
	X(OI_PROMPT, "llm.token_count.prompt")                                                     \
	X(OI_COMPLETION, "llm.token_count.completion")                                             \
	X(OI_TOTAL, "llm.token_count.total")                                                       \
	X(OI_CACHE_READ, "llm.token_count.prompt_details.cache_read")                              \
	X(OI_CACHE_WRITE, "llm.token_count.prompt_details.cache_write")                            \
	X(OI_COST, "llm.cost.total")                                                               \
	X(SESSION, "session.id")                                                                   \
	X(USER, "user.id")                                                                         \
	X(OI_AGENT, "agent.name")
/* clang-format on */

enum otlp_name {
#define X(what, name) OTLP_##what,
	OTLP_NAMES(X)
#undef X
		OTLP_NNAMES
};

struct otlp_version {
	const char *version, *url; /* of the schema */
	const char *names[OTLP_NNAMES];
};

static const struct otlp_version otlp_versions[] = {
	{
		"1.42.0",
		"https://opentelemetry.io/schemas/gen-ai/1.42.0",
		{
#define X(what, name) [OTLP_##what] = name,
			OTLP_NAMES(X)
#undef X
		},
	},
};

#endif
