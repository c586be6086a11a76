/* The effects a run may ask of the world. subagent/world.c is the real one,
 * test/sim/world.c its twin with a simulated clock, disk, provider and tools.
 *
 * Every call returns at once. What was asked for arrives later through the
 * agent_on_* functions of agent/agent.h, which only store it; the world then
 * calls agent_run() from its wake queue, never from inside one of these.
 * Negative returns are codes of ava.h: nothing was started then. */
#ifndef AGENT_IO_H
#define AGENT_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ava.h>

struct agent;
struct agent_compact;
struct agent_compacted;
struct agent_shared;
struct turn;

/* One model call. The intent (InferStart) is durable before the request
 * leaves. */
struct agent_infer {
	int iteration;      /* from 1 */
	bool again;         /* another attempt at that iteration */
	int64_t max_output; /* tokens */
	bool force_submit;  /* ask for submit_result only, where the dialect can */
};

/* How a run ended; strings borrowed during save_end. */
struct agent_end {
	enum ava_status status;  /* terminal */
	const char *stop_reason; /* "submitted", "final_text", "time", "cost", "tokens",
				  * "iterations", "cancelled", "interrupted",
				  * "empty_replies", "model_error", "refusal", "folder_gone",
				  * "internal", "repeated_calls", "output_schema" */
	const char *exhausted;   /* resource of an Exhausted event; NULL: none */
	const char *error;       /* one sentence; NULL: none */
	const char *error_class; /* for an Error event; NULL: none */
	/* What the model submitted, or what there is. */
	const char *output; /* JSON text; NULL: null */
	size_t output_len;
	const char *summary; /* NULL: none; the world may use the last text it knows */
	const char *caveats; /* JSON array of strings; NULL: [] */
	double confidence;   /* 0 to 1 */
	bool partial, unverified;
};

/* What a run asks a person; borrowed during `ask`. A question of the model's
 * (ask_person), or whether a call may start (ask_before): the answer to that is
 * yes or no, and holds for this one call. */
struct agent_ask {
	bool approval;
	const char *question; /* NULL for an approval: it is the call itself */
	const char *choices;  /* JSON array of strings; NULL: none */
	const char *fallback; /* what is taken when nobody answers; NULL: none */
	int64_t timeout_ms;   /* for an answer; INT64_MAX: as long as the world allows */
};

/* What became of it. */
/* As the call of `ask` and `ask_end`: may the run pass a->over? Answered yes, the
 * world raises that limit in a->spec before ask_end returns. */
#define AGENT_ASK_LIMIT (UINT16_MAX - 1u)

enum agent_asked { ASKED_ANSWERED, ASKED_REFUSED, ASKED_EXPIRED };

struct agent_io {
	int64_t (*now)(struct agent *a); /* monotonic ms */
	/* Call agent_run at that time; replaces the last wish; INT64_MAX: never. */
	void (*wake_at)(struct agent *a, int64_t at_ms);

	void (*slot_want)(struct agent *a); /* -> agent_on_slot */
	void (*slot_drop)(struct agent *a); /* gives it back, or withdraws the wish */

	/* -> agent_on_reply, agent_on_again or agent_on_overflow. AVA_ENOENT as its code: the
	 * folder that the run works in is gone. AVA_EBUDGET, here or as its code: the budget of the
	 * group or of the day is used up, the run ends as cost_exceeded; here the
	 * sentence that says so is put into a->reply_error. */
	int (*infer)(struct agent *a, const struct agent_infer *call);
	/* Remove from the conversation what agent/compact.h says, durable and for
	 * good: later requests extend what stands then. -> agent_on_compacted,
	 * also when nothing can go. infer_stop ends this too. */
	int (*compact)(struct agent *a, const struct agent_compact *c);
	/* agent_on_reply will not come any more. The world counts what it cost. */
	void (*infer_stop)(struct agent *a);
	/* Write the reply: its lines, InferEnd, CostUpdate, ExtendedThinking,
	 * one ToolCall per call. usage.cost_microusd is filled in from the price
	 * where the provider gave none (-1: unknown), calls have their ids, and
	 * those that cannot run their answers. With `wait`, agent_on_saved follows. Returns the
	 * bytes it adds to the next request, or a negative code. An empty reply
	 * (no wire) writes its events only. */
	int64_t (*save_reply)(struct agent *a, const struct turn *t, bool wait);
	int (*tool_start)(struct agent *a, unsigned call); /* -> agent_on_tool */
	void (*tools_stop)(struct agent *a);               /* no agent_on_tool comes any more */
	/* All calls of a->turn are answered: write their results line(s) with
	 * the notices (user-role text after the results; with no calls, a user
	 * line of its own), and `warned` as a Limit event. What people said to
	 * the run (agent_on_steer) goes behind the notices. Rides. Returns bytes
	 * added to the next request, or a negative code. */
	int64_t (*save_results)(struct agent *a, struct turn *t, const char *const *notices,
				unsigned nnotices, unsigned warned);
	/* Ask a person about a->turn->calls[call]: -> agent_on_answer. *until_ms
	 * (monotonic): from when on nobody will answer any more. Rides. */
	int (*ask)(struct agent *a, unsigned call, const struct agent_ask *q, int64_t *until_ms);
	/* It is answered: must be durable before what follows from it. -> agent_on_saved.
	 * A question that the end leaves open is closed by save_end. */
	void (*ask_end)(struct agent *a, unsigned call, enum agent_asked how);
	/* The end, all in one commit: open ToolResults and InferEnd, results
	 * line, Exhausted, Error, result.json, SubagentComplete, catalog row.
	 * Never fails: the world keeps trying. -> agent_on_saved. */
	void (*save_end)(struct agent *a, const struct agent_end *end);
	/* DONE: the world frees the agent from its reap list. */
	void (*done)(struct agent *a);
	/* agent/limit.h; before save_results; it is written down. NULL: there are none. */
	void (*shared)(struct agent *a, struct agent_shared *out);
};

#endif
