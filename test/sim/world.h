/* A simulated world for the machine: one seed decides everything, the clock
 * jumps from event to event, nothing is real but src/agent.
 *
 * world.c is the twin of subagent/world.c (agent/agent.h: clock, slots, disk,
 * tools), model.c the provider, check.c the judge: it reads the record alone
 * and knows the rules from doc/DESIGN.md, not from the machine's code. */
#ifndef SIM_WORLD_H
#define SIM_WORLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent.h"
#include "agent/limit.h"

#define SIM_MAX_RUNS 12
#define SIM_WAKE_MS  3 /* a stored arrival is looked at within that time */

/* What was written or happened, in order. `disk`: part of a batch. */
enum sim_kind {
	SIM_SLOT_WANT,
	SIM_SLOT,
	SIM_SLOT_DROP,
	SIM_INFER,       /* disk: max_output, force_submit */
	SIM_REPLY,       /* enum sim_reply, token, input, output, cost, cache read, written */
	SIM_INFER_END,   /* disk: input, output, cost, cache read, written, closed by the world */
	SIM_ASSISTANT,   /* disk, a line: calls, bytes */
	SIM_TOOL_CALL,   /* disk: enum sim_call */
	SIM_TOOL_RESULT, /* disk: success, class */
	SIM_RESULTS,     /* disk, a line: results, bytes, notices, what people said */
	SIM_NOTE,        /* disk, a user line: 0, bytes, notices, what people said */
	SIM_WARNED,      /* disk: bits */
	SIM_ACK,         /* batch: it is durable */
	SIM_START,       /* the tool began */
	SIM_ANSWER,
	SIM_TOOLS_STOP,
	SIM_INFER_STOP,
	SIM_CANCEL,
	SIM_ASK,     /* disk: approval, until */
	SIM_ASK_END, /* disk: enum agent_asked */
	SIM_STEER,   /* a person says something */
	SIM_FAULT,   /* the world refused: code, enum sim_fault */
	SIM_END,     /* disk: status, reason, token, set of SIM_END_*, exhausted */
	SIM_DONE,
	SIM_CHECK,   /* disk: the check begins */
	SIM_CHECKED, /* enum agent_check */
	SIM_EDIT,    /* disk: tokens of the next input, bytes before and after */
	SIM_NKINDS
};

enum sim_reply {
	SIM_SAYS_CALLS,
	SIM_SAYS_SUBMIT, /* a valid submit_result among its calls */
	SIM_SAYS_EMPTY,
	SIM_SAYS_THOUGHT, /* nothing but thinking */
	SIM_SAYS_CALL_AS_TEXT,
	SIM_SAYS_TEXT,
	SIM_SAYS_JSON,
	SIM_SAYS_NO, /* refusal */
	SIM_FAILS,
	SIM_FAILS_BUDGET,
};

enum sim_call { SIM_REPEATABLE, SIM_ONCE, SIM_ENDS, SIM_UNKNOWN, SIM_BAD, SIM_QUESTION };
enum sim_fault {
	SIM_FAULT_INFER,
	SIM_FAULT_REPLY,
	SIM_FAULT_RESULTS,
	SIM_FAULT_TOOL,
	SIM_FAULT_ASK,
	SIM_FAULT_CHECK
};
enum { SIM_END_PARTIAL = 1, SIM_END_UNVERIFIED = 2, SIM_END_ERROR = 4, SIM_END_EXHAUSTED = 8 };

struct sim_rec {
	int64_t at;
	int64_t v[7];  /* as its kind says */
	int32_t batch; /* of the run's disk, from 1; 0: not on disk */
	int32_t iteration;
	uint16_t call; /* from 1; 0: not about a call */
	uint8_t run, kind;
};

/* How a run's model behaves, in thousandths. */
struct sim_temper {
	int empty, call_text, text, json, submit, refuse, fail, slow, heavy, bad_call, faults, ask;
};

struct sim_run {
	struct agent agent;
	struct agent_spec spec;
	struct sim_temper temper;
	struct sim_world *world;
	uint8_t index;
	int64_t request_bytes;
	bool in_slot, waits_slot, woken, done;
	uint32_t infer_gen, tool_gen, sleep_gen, ask_gen; /* events of older ones are void */
	bool infer_open;                                  /* InferStart without InferEnd */
	int32_t batches;                                  /* made so far */
	int64_t last_ack_at;                              /* the disk answers in order */
	int64_t body_bytes;                               /* of the request so far */
	struct compact_line *lines;     /* of the request; the first is the task */
	struct compact_result *results; /* that stand in them */
	size_t nlines, cap_lines, nresults, cap_results;
	struct agent_compacted compacted;
	int64_t max_output;                 /* of the call under way */
	uint8_t call_kinds[TURN_MAX_CALLS]; /* of the last reply, enum sim_call */
	unsigned cancel_at_rec; /* cancel when the run has that many records; 0: not so */
	unsigned recs;
	unsigned steers;  /* said, not yet told */
	int cancelled_in; /* enum agent_state; -1: never while it mattered */
	unsigned vain;    /* replies of which no call could run, behind each other */
};

struct sim_event;
struct sim_world {
	uint64_t seed, rng;
	int64_t now;
	unsigned nruns, slots, used_slots;
	int disk_ms; /* usual time of a commit */
	struct sim_run runs[SIM_MAX_RUNS];
	struct sim_event *heap;
	size_t nheap, cap_heap;
	uint64_t events;
	struct sim_rec *recs;
	size_t nrecs, cap_recs;
	uint64_t hash; /* over records and texts */
};

uint64_t sim_rng(struct sim_world *w);
int64_t sim_between(struct sim_world *w, int64_t least, int64_t most); /* both included */
bool sim_chance(struct sim_world *w, int thousandths);
void sim_hash(struct sim_world *w, const void *bytes, size_t len);
int64_t sim_word(const char *s); /* a short string as a number */

void sim_open(struct sim_world *w, uint64_t seed);
void sim_play(struct sim_world *w); /* until nothing happens any more */
void sim_close(struct sim_world *w);
void sim_print(const struct sim_world *w, unsigned run);

/* model.c: specs, and what a model says. */
extern const struct tool *const sim_tools[];
void sim_draw_run(struct sim_run *r);
/* NULL: the call fails, *kind says how. */
struct turn *sim_draw_turn(struct sim_run *r, int64_t max_output, enum sim_reply *kind,
			   int64_t *token);
enum sim_call sim_call_kind(const char *name, const char *args);

/* check.c: NULL, or the first rule that was broken and by which run. */
const char *sim_check(const struct sim_world *w, unsigned *run);

#endif
