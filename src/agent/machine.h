/* A machine's (agent/agent.h) means, its requests to the world, and its state, shared by limits,
 * notices, compaction and questions. Only agent.c changes the state. */
#ifndef AGENT_MACHINE_H
#define AGENT_MACHINE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <ava.h>
#include "agent/turn.h"

struct agent;
struct agent_compact;
struct agent_compacted;
struct agent_shared;
struct repeats;
struct tool;

/* ---- Limits of an agent, fixed before it starts, and counters of its use. Sums and decisions
 * are agent/limit.h's. */

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

/* Confirmed and constant during a run. Borrowed: the world keeps it as long as the agent. */
struct agent_spec {
	struct agent_limits limits;
	struct agent_price price;
	int64_t max_output; /* most tokens of a call's output */
	int64_t window;     /* tokens of the model's window: request and reply; 0: no bound */
	const struct tool *const *tools; /* tools that the run may call, submit_result among them */
	unsigned ntools;
	bool ask_limit; /* a person is asked before a limit other than time ends the run */
	bool ask_quota; /* a person is asked whether to wait for a quota that comes back */
	bool can_force; /* the dialect can force a tool */
	bool resumed;   /* the run's conversation begins with that of another run */
	const char *output_schema; /* JSON that passed schema_check; NULL: any output */
	const char *task;          /* the task, shown again in notices; NULL: no reminder */
	const char *check;         /* command that proves a result before it counts; NULL: none */
	int32_t check_rounds;      /* failed checks that go back to the model */
	/* Tools of which each call needs a person's yes. */
	const struct tool *const *ask_before;
	unsigned nask_before;
};

/* Tokens named in a refusal; 0: not named. */
struct agent_told {
	int64_t window;     /* most tokens of request and reply together */
	int64_t prompt;     /* tokens counted for the request, with or without its output */
	int64_t output_max; /* most tokens of output that may be requested */
	int64_t asked;      /* tokens of output that the refused request asked for */
	bool cap;           /* the output that was asked for was too much by itself */
};

struct agent_totals {
	int64_t input, output, cache_read, cache_write, cost_microusd;
	int32_t calls, uncosted_calls, estimated_calls, failed_calls, tool_calls;
	int32_t spared; /* tokens of `input` from a free cache: no limit counts them */
};

/* ---- The effects a run may ask of the world. subagent/world.c is the real one,
 * test/sim/world.c its twin with a simulated clock, disk, provider and tools.
 *
 * Every call returns at once. Results arrive later through the agent_on_* functions of
 * agent/agent.h ("-> agent_on_x" below), which only store them; the world then calls agent_run()
 * from its wake queue, never from inside one of these. Negative returns are codes of ava.h: nothing
 * was started then. */

/* One model call. The intent (InferStart) is durable before the request
 * leaves. */
struct agent_infer {
	int iteration;             /* from 1 */
	bool again;                /* another attempt at the same iteration */
	int64_t max_output;        /* tokens */
	bool force_submit;         /* ask for submit_result only, where the dialect can */
	const char *output_schema; /* the spec's; NULL: any output */
	bool warmer;               /* a reply repeated itself: raise the temperature */
};

/* How a run ended; strings borrowed during save_end. */
struct agent_end {
	enum ava_status status;  /* terminal */
	const char *stop_reason; /* static: "submitted", "final_text", "time", "cost", "tokens",
				  * "iterations", "cancelled", "interrupted",
				  * "empty_replies", "model_error", "refusal", "folder_gone",
				  * "internal", "repeated_calls", "output_schema", "check" */
	const char *exhausted;   /* the used-up resource, for an event Exhausted; NULL: none */
	const char *error;       /* one sentence; NULL: none */
	const char *error_class; /* class for an event Error; NULL: none */
	/* The submitted output, or the best that the run has instead. */
	const char *output; /* JSON text; NULL: null */
	size_t output_len;
	const char *summary; /* NULL: none; the world may use the last text it knows */
	const char *caveats; /* JSON array of strings; NULL: [] */
	double confidence;   /* 0 to 1 */
	bool partial, unverified;
};

/* A question of a run to a person; borrowed during `ask`. The model's own (ask_person), or
 * whether a call may start (ask_before): the answer to the latter is yes or no, and holds for
 * this one call. */
struct agent_ask {
	bool approval;
	const char *question; /* NULL for an approval: the call itself is the question */
	const char *choices;  /* JSON array of strings; NULL: none */
	const char *fallback; /* the answer taken when nobody answers; NULL: none */
	int64_t timeout_ms;   /* longest wait for the answer; INT64_MAX: as the world allows */
};

/* In place of a call for `ask` and `ask_end`: may the run pass a->over? On a yes the world
 * raises that limit in a->spec before ask_end returns. */
#define AGENT_ASK_LIMIT (UINT16_MAX - 1u)
/* As AGENT_ASK_LIMIT, for a parked run (agent_on_parked): its call is made again when the time of
 * `ask` has come, or on a yes. */
#define AGENT_ASK_QUOTA (UINT16_MAX - 2u)
/* Values of a->over for a quota of the service instead of a limit: before, and after a person said
 * to wait. */
#define AGENT_PARKED (AGENT_NRESOURCES + 1)
#define AGENT_WAITS  (AGENT_NRESOURCES + 2)

/* Outcome of a question. */
enum agent_asked { ASKED_ANSWERED, ASKED_REFUSED, ASKED_EXPIRED };

struct agent_io {
	int64_t (*now)(struct agent *a); /* monotonic ms */
	/* Call agent_run at that time, which replaces the time asked for before; INT64_MAX:
	 * never. */
	void (*wake_at)(struct agent *a, int64_t at_ms);

	void (*slot_want)(struct agent *a); /* ask for a slot: -> agent_on_slot */
	void (*slot_drop)(struct agent *a); /* give back the slot, or cancel slot_want */

	/* Call the model: -> agent_on_reply, _again, _refused or _parked. agent_on_reply with
	 * AVA_ENOENT: the run's folder is gone. AVA_EBUDGET, returned here or there: the budget of
	 * the group or of the day is used up, the run ends as cost_exceeded; here with the sentence
	 * in a->reply_error. */
	int (*infer)(struct agent *a, const struct agent_infer *call);
	/* Make room: remove from the conversation as agent/limit.h plans, durable and for good:
	 * later requests extend the rest. -> agent_on_compacted, also when nothing can go.
	 * infer_stop ends this too. */
	int (*compact)(struct agent *a, const struct agent_compact *c);
	/* Stop the model call: no agent_on_reply may come any more. The world counts the cost of
	 * the call. */
	void (*infer_stop)(struct agent *a);
	/* Write the reply: its lines, InferEnd, CostUpdate, ExtendedThinking,
	 * one ToolCall per call. usage.cost_microusd is filled in from the price
	 * where the provider gave none (-1: unknown), calls have their ids, and
	 * those that cannot run their answers. With `wait`, agent_on_saved follows. Returns the
	 * bytes it adds to the next request, or a negative code. An empty reply
	 * (no wire) writes its events only. */
	int64_t (*save_reply)(struct agent *a, const struct turn *t, bool wait);
	int (*tool_start)(struct agent *a, unsigned call); /* start the call: -> agent_on_tool */
	/* Run the check of the spec: -> agent_on_checked. That it begins is durable before it does;
	 * after a crash it is run again. */
	int (*check)(struct agent *a);
	/* Stop tools and check: no agent_on_tool or agent_on_checked comes any more. */
	void (*tools_stop)(struct agent *a);
	/* All calls of a->turn are answered: write their results line(s) with the notices
	 * (user-role text after the results; with no calls, a user line of its own), and `warned`
	 * as a Limit event. Messages of people (agent_on_steer) go behind the notices. Not waited
	 * for: the commit of the next InferStart has all of it too. Returns bytes added to the next
	 * request, or a negative code. */
	int64_t (*save_results)(struct agent *a, struct turn *t, const char *const *notices,
				unsigned nnotices, unsigned warned);
	/* Ask a person about a->turn->calls[call]: -> agent_on_answer. *until_ms (monotonic): time
	 * from which nobody will answer. The commit is not waited for. */
	int (*ask)(struct agent *a, unsigned call, const struct agent_ask *q, int64_t *until_ms);
	/* The question is answered: make it durable before its consequences. -> agent_on_saved.
	 * A question that the end leaves open is closed by save_end. */
	void (*ask_end)(struct agent *a, unsigned call, enum agent_asked how);
	/* Shall the run stand still before its next call (a->paused)? Then true, and what the turn
	 * wrote is on its way to the disk. */
	bool (*rest)(struct agent *a);
	/* Write the end, all in one commit: open ToolResults and InferEnd, results line, Exhausted,
	 * Error, result.json, SubagentComplete, catalog row. Never fails: the world keeps trying.
	 * -> agent_on_saved. */
	void (*save_end)(struct agent *a, const struct agent_end *end);
	/* The agent is DONE: the world frees it from its reap list. */
	void (*done)(struct agent *a);
	/* Tell the limits that the run shares (agent/limit.h); called before save_results. The
	 * world writes the answer down. NULL: no shared limits. */
	void (*shared)(struct agent *a, struct agent_shared *out);
};

/* ---- the machine's state */

enum agent_state {
	AGENT_QUEUED,
	AGENT_CALLING,
	AGENT_SAVING,
	AGENT_TOOLS,
	AGENT_WAITING,
	AGENT_DONE,
	AGENT_NSTATES
};

/* The check of a result that was handed in. UNABLE: it could not be run at all. */
enum agent_check { CHECK_NONE, CHECK_DUE, CHECK_RUNS, CHECK_PASSED, CHECK_FAILED, CHECK_UNABLE };

/* A machine's position, as plain data: all that must survive from one process to the next
 * (agent/position.h). */
struct agent_position {
	struct agent_totals totals;
	int64_t used_ms;            /* time used before the present slot, or wait for one */
	int64_t measured_input;     /* tokens of input, as measured at the last call with a reply */
	int64_t new_bytes;          /* bytes added to the request since that call */
	int64_t compact_floor;      /* tokens of input below which no room is made */
	int32_t window, output_max; /* tokens, as the service told in this run; 0: not told */
	int32_t iteration;          /* iteration of the last call */
	int32_t turn_from;          /* iteration of the last call before this turn */
	uint16_t warned, shares;    /* bits of agent_resource, agent_share: the model was told */
	uint8_t odd_replies, pauses; /* replies in a row: empty, or a call as text; paused */
	uint8_t halvings, repairs;   /* refusals as too large in a row; repairs of the output */
	uint8_t loops;               /* number of replies that repeated themselves without end */
	uint8_t vain;                /* replies in a row without a call that could run */
	uint8_t checks;              /* checks that did not pass */
	bool nudged, force_submit;
	bool told_look;    /* the model, without a call so far, was told to look first */
	bool again;        /* the last attempt of this call failed, and the next is due */
	bool wrapping;     /* the next reply is the last, whatever it holds */
	bool told_dropped; /* the model was told that unknown arguments are left out */
	bool overflowed;   /* the request was too large, and no room was made yet */
	bool said_due;     /* `said` is another one than the last position has */
	/* Positions since the last whole one: this one has what changed since. 0: it is whole. */
	int32_t delta;
	struct repeats *repeats; /* calls made before; owned by the agent; NULL: none */
	/* Text that reply_keep kept, or the result whose check did not pass; owned; NULL: none. */
	char *said;
};

struct agent {
	const struct agent_io *io;
	const struct agent_spec *spec;
	void *world;       /* the world's struct for this run */
	struct turn *turn; /* owned; NULL while a model is called */
	struct agent_position at;
	int64_t started_ms;  /* start of the slot, less at.used_ms; -1: no slot yet */
	int64_t deadline_ms; /* end of the time, monotonic; INT64_MAX: none yet, or no clock runs */
	int64_t ask_until_ms; /* when the open question ends; monotonic */
	/* state: agent_move alone writes it; over: resource asked about, + 1 */
	uint8_t state, over;
	uint8_t check;           /* enum agent_check, of the turn's result */
	uint8_t saves;           /* number of agent_on_saved awaited */
	uint16_t asking, steers; /* call asked about, + 1, 0: none; messages not passed on */
	bool slot_wanted, have_slot;
	/* Set by the world (agent/agent.h); and that a question of before is asked first. */
	bool paused, asks_again;
	bool asked;       /* a model call is under way or its reply waits */
	bool compacting;  /* room is being made */
	bool reply_saved; /* `turn` was written by save_reply, or is in the record */
	bool replayed;    /* `turn` is from the record: agent_resume_reply */
	bool reply_ready, cancelled, ending;
	bool ask_given, ask_yes; /* the person's answer came, as the call's output; it is a yes */
	bool steered;            /* a text that would end the run waits for messages of people */
	int reply_code;          /* < 0: the model call failed for good */
	unsigned answered;       /* number of the turn's calls that have a result */
	enum ava_status status;  /* set when ending */
	const char *stop_reason; /* static; set when ending */
	const char *dropped;     /* name of an argument unknown to its tool; in the turn's arena */
	/* why the output in a text does not fit, or what the check said; in the turn's arena */
	const char *misfit;
	/* the sentence for reply_code, and the error's class */
	char reply_error[216], reply_class[24];
};
static_assert(sizeof(struct agent) <= 512, "ten thousand of these wait at once");

#endif
