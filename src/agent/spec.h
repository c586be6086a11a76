/* What an agent may use and what it has used: the one is fixed before it
 * starts, the other counted. The sums and decisions are agent/limit.h's. */
#ifndef AGENT_SPEC_H
#define AGENT_SPEC_H

#include <stdbool.h>
#include <stdint.h>

struct tool;

enum agent_resource { AGENT_TIME, AGENT_COST, AGENT_TOKENS, AGENT_ITERATIONS, AGENT_NRESOURCES };
extern const char *const agent_resource_names[AGENT_NRESOURCES]; /* "time", … */

struct agent_limits {
	int64_t time_ms, cost_microusd, tokens; /* > 0; cost 0: free models only */
	int32_t iterations;
};

/* micro-USD per million tokens; -1: unknown. */
struct agent_price {
	int64_t input, output, cache_read, cache_write;
};

/* What is confirmed and never changes during a run. Borrowed: the world keeps
 * it as long as the agent. */
struct agent_spec {
	struct agent_limits limits;
	struct agent_price price;
	int64_t max_output;              /* tokens a call may write at most */
	int64_t window;                  /* tokens of a request and its reply; 0: no bound */
	const struct tool *const *tools; /* allowed, submit_result among them */
	unsigned ntools;
	bool ask_limit; /* a person is asked before a limit other than time ends the run */
	bool can_force; /* the dialect can force a tool */
	const char *output_schema; /* JSON that passed schema_check; NULL: any output */
	/* Of these: a person is asked before each call. */
	const struct tool *const *ask_before;
	unsigned nask_before;
};

struct agent_totals {
	int64_t input, output, cache_read, cache_write, cost_microusd;
	int32_t calls, uncosted_calls, failed_calls, tool_calls;
};

#endif
