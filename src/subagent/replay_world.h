/* The world of a replay: agent/agent.h over a record (replay_world.c), and the
 * comparisons of what the machine does with what the record says it did
 * (replay_check.c). */
#ifndef SUBAGENT_REPLAY_WORLD_H
#define SUBAGENT_REPLAY_WORLD_H

#include "agent/agent.h"
#include "agent/limit.h"
#include "agent/position.h"
#include "base/hash.h"
#include "subagent/replay_record.h"
#include "subagent/spec.h"

/* A call of the run, and where its result stands in messages.jsonl. */
struct replay_call {
	struct call_ref ref;
	size_t at; /* of the line, or lines, of its turn's results */
};

struct replay {
	struct agent agent;
	struct run_spec *spec; /* owned */
	struct record rec;
	struct hash_sha256 prefix; /* over head and lines of the request so far */
	int64_t request_bytes;
	bool wordless; /* no message follows the head yet */
	int64_t now;   /* what the machine takes for the time */
	unsigned saves_due;
	bool slot_wanted, started; /* the call under way has its InferStart */
	bool done;
	char asked[24];            /* the call that a person is asked about; "" */
	struct replay_call *calls; /* owned; in order */
	size_t ncalls, calls_cap;
	struct agent_compacted room; /* what was made of it, not told the machine yet */
	int seek;                    /* that call of the model is looked for; 0: none */
	size_t found;                /* where its lines end */
	int room_rv;
	int rv; /* < 0: it cannot go on */
};

extern const struct agent_io replay_io;

/* Request so far from the file up to its cursor. 0 or a code. */
int replay_rehash(struct replay *p, struct ava_error *err);
/* Take the amendments at the cursor that the call of this InferStart needs. */
int replay_amend(struct replay *p, const struct trace_event *e);
/* Results that stand in the lines a fork begins with: calls without a name. */
int replay_foreign_results(struct replay *p, struct ava_error *err);
/* Lines joined by \n that the machine adds to the request. */
void replay_add_lines(struct replay *p, const char *lines, size_t len);

/* Is this the question of a Waiting event, not what became of it? */
bool replay_asked(const json_t *content);
/* What ended the run, as the code of a call that failed. */
int replay_failure_code(const struct replay *p);

/* ---- replay_check.c: each compares, and tells what differs */
void replay_check_spec(struct replay *p, const json_t *spec);
void replay_prefix_hash(const struct replay *p, char out[HASH_HEX_LEN + 1]);
/* Is the request, as it stands, the one of this InferStart? */
bool replay_request_is(const struct replay *p, const struct trace_event *e);
/* Behind the InferStart that was taken: the machine stands where the live one stood. */
void replay_check_position(struct replay *p);
void replay_check_infer(struct replay *p, const struct trace_event *e,
			const struct agent_infer *call);
/* Names and broken arguments of its calls become those of the record. */
void replay_mend_reply(struct replay *p, struct turn *t);
/* The answer of a call as the machine has it. */
void replay_check_result(struct replay *p, const struct trace_event *e, const struct turn_call *c);
/* The recorded answer of calls[i], whole where messages.jsonl has it; false: it
 * differs from what the event says, or there is no memory. */
bool replay_take_result(struct replay *p, const struct trace_event *e, unsigned i);
void replay_check_end(struct replay *p, const struct agent_end *end);

#endif
