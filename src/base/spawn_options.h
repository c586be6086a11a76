/* What can be asked of a run, once: the JSON key (doc/api.yaml), the field of struct
 * ava_spawn (include/ava.h) and struct op_spawn (subagent/spec.h), the flag of `ava run`.
 * The decoder of a request, the library's encoder and the command line go by these rows.
 *
 * Kinds: TEXT, MS (seconds in JSON), CENTS (micro-USD here), COUNT, FLAG, TEXTS (beside
 * its number n<field>), JSON (any value). A flag NULL: `ava run` has no such flag. */
#ifndef BASE_SPAWN_OPTIONS_H
#define BASE_SPAWN_OPTIONS_H

#define SPAWN_OPTIONS(X)                                                                           \
	/* kind, field, key, flag, what a person is told */                                        \
	X(TEXT, task, "task", NULL, "what is to be done")                                          \
	X(TEXT, role, "role", "--role", "who does it")                                             \
	X(TEXT, context, "context", "--context", "what it should know beside its task")            \
	X(TEXT, model, "model", "--model", "another model than the role's")                        \
	X(TEXT, preset, "preset", "--preset", "quick, standard or deep")                           \
	X(TEXT, on_limit, "on_limit", "--on-limit", "ask, or stop")                                \
	X(MS, timeout_ms, "timeout", "--timeout", "seconds of work")                               \
	X(CENTS, max_cost_microusd, "max_cost_cents", "--max-cost-cents", "0: free models only")   \
	X(COUNT, max_tokens, "max_tokens", "--max-tokens", "tokens, billed over all calls")        \
	X(COUNT, max_iterations, "max_iterations", "--max-iterations", "calls of its model")       \
	X(FLAG, extended_thinking, "extended_thinking", "--thinking", "think before answering")    \
	X(JSON, output_schema, "output_schema", "--schema", "JSON Schema that the output fits")    \
	X(TEXT, cwd, "cwd", NULL, "its folder; none: it sees no files")                            \
	X(TEXTS, tools, "tools", NULL, "fewer than the role's")                                    \
	X(TEXTS, grants, "grants", "--grant", "rights beside the role's")                          \
	X(TEXTS, ask_before, "ask_before", NULL, "tools whose calls wait for a yes")

#endif
