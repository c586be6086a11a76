/* The options of a spawn, each in one row: the JSON key (doc/api.yaml), the field of struct
 * ava_spawn (include/ava.h) and struct op_spawn (subagent/spec.h), the option of `ava run`.
 * The decoder of a request, the library's encoder and the command line go by these rows.
 *
 * Kinds: TEXT, MS (seconds in JSON), CENTS (micro-USD here), COUNT, ROUNDS (a COUNT that may be 0:
 * AVA_NO_ROUNDS in ava.h), SWITCH (true is 1, false is -1, 0 leaves it to the role), TEXTS (beside
 * its number n<field>), JSON (any value; on the command line a file that holds it). */
#ifndef BASE_SPAWN_OPTIONS_H
#define BASE_SPAWN_OPTIONS_H

#define SPAWN_LIMITS(X)                                                                            \
	X(MS, timeout_ms, "timeout", "timeout", 0, "SECONDS", "stop it after this time")           \
	X(CENTS, max_cost_microusd, "max_cost_cents", "max-cost-cents", 0, "CENTS",                \
	  "what it may cost; 0: free models only")                                                 \
	X(COUNT, max_tokens, "max_tokens", "max-tokens", 0, "N", "tokens over all its calls")      \
	X(COUNT, max_iterations, "max_iterations", "max-iterations", 0, "N",                       \
	  "model calls it may make")

/* Texts confirmed with a proposal and kept as given, but without secrets: its config has them, a
 * resumed run and a new quote keep them. */
#define SPAWN_NOTES(X)                                                                             \
	X(TEXT, rationale, "rationale", "why", 0, "TEXT", "why it is needed; shown with the quote")

/* Options of `ava run`, in the order of its help. */
#define SPAWN_FLAGS(X)                                                                             \
	/* kind, field, key, option, its letter, its value, help text */                           \
	X(TEXT, role, "role", "role", 'r', "ROLE",                                                 \
	  "who does it: `ava roles` lists them; without it: as the task says")                     \
	X(TEXT, preset, "preset", "preset", 0, "PRESET",                                           \
	  "quick, standard or deep: what it may cost")                                             \
	X(TEXT, context, "context", "context", 0, "TEXT", "what it should know besides the task")  \
	X(TEXT, model, "model", "model", 'm', "MODEL", "another model than the role's")            \
	SPAWN_NOTES(X)                                                                             \
	SPAWN_LIMITS(X)                                                                            \
	X(TEXT, on_limit, "on_limit", "on-limit", 0, "WORD",                                       \
	  "stop (with what it has), or ask: wait for your yes to as much again")                   \
	X(TEXT, on_quota, "on_quota", "on-quota", 0, "WORD",                                       \
	  "where a service's quota comes back later: park (wait without a slot), ask, or fail")    \
	X(SWITCH, extended_thinking, "extended_thinking", "thinking", 0, NULL,                     \
	  "let the model think at length, or not; without it: as the role says")                   \
	X(SWITCH, instructions, "instructions", "instructions", 0, NULL,                           \
	  "read AGENTS.md or CLAUDE.md of its folder and offer skills, or not")                    \
	X(TEXT, check, "check", "check", 0, "COMMAND",                                             \
	  "a success only when this command, run in the sandbox on its copy at the end, exits 0")  \
	X(ROUNDS, check_rounds, "check_rounds", "check-rounds", 0, "N",                            \
	  "how often a failed check goes back to it, 0 to 10; without it: 2")                      \
	X(JSON, output_schema, "output_schema", "schema", 0, "FILE",                               \
	  "JSON Schema that the output must fit")                                                  \
	X(TEXTS, grants, "grants", "grant", 0, "GRANT",                                            \
	  "give it a right its role has not (may be repeated)")                                    \
	X(TEXTS, ask_before, "ask_before", "ask-before", 0, "TOOL",                                \
	  "wait for your yes before each call of it (may be repeated)")                            \
	X(TEXTS, tags, "tags", "tag", 0, "NAME|KEY=VALUE",                                         \
	  "to find it by later, in lists and figures, as client=acme (may be repeated)")

/* Arguments of a run that is asked for alone. */
#define SPAWN_ALONE(X)                                                                             \
	X(TEXT, task, "task", NULL, 0, NULL, "what is to be done")                                 \
	SPAWN_FLAGS(X)                                                                             \
	X(TEXT, cwd, "cwd", NULL, 0, NULL, "its folder; none: it sees no files")                   \
	X(TEXTS, tools, "tools", NULL, 0, NULL, "fewer than the role's")

/* Arguments of a run of a group. */
#define SPAWN_OPTIONS(X)                                                                           \
	SPAWN_ALONE(X)                                                                             \
	X(TEXT, id, "id", NULL, 0, NULL, "its name in its group")                                  \
	X(TEXTS, after, "after", NULL, 0, NULL, "ids of those of its group that must succeed first")

#endif
