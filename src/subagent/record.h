/* The events of a run, each written by one function here, so that the shapes
 * of doc/events.json have one source. Content is redacted on the way in. */
#ifndef SUBAGENT_RECORD_H
#define SUBAGENT_RECORD_H

#include <jansson.h>
#include <stdint.h>

#include "agent/agent.h"
#include "agent/limit.h"
#include "agent/turn.h"
#include "base/hash.h"
#include "subagent/logbook.h"

struct context_edit;
struct run;

/* What the runtime told the model in a request: notices of InferStart. */
enum record_notice {
	RECORD_NEAR_TIME = 1 << 0, /* the first four in the order of enum agent_resource */
	RECORD_NEAR_COST = 1 << 1,
	RECORD_NEAR_TOKENS = 1 << 2,
	RECORD_NEAR_ITERATIONS = 1 << 3,
	RECORD_ODD_REPLY = 1 << 4, /* it was empty, or a call written as text */
	RECORD_NUDGE = 1 << 5,     /* a text alone does not end the run */
	RECORD_FORCED = 1 << 6,    /* only submit_result can be called */
	RECORD_STEERED = 1 << 7,   /* what a person said */
};

/* SubagentSpawn (day and run) and Limit (run). */
void record_spawn(struct draft *d, struct run *r);
void record_infer_start(struct draft *d, struct run *r, const struct agent_infer *call,
			const char *prefix_hash, const char *request_hash);
/* InferEnd and CostUpdate; closes r->infer_id. */
void record_infer_end(struct draft *d, struct run *r, const struct turn *t);
/* What they say, read back. */
enum turn_stop record_stop(const char *word);
void record_usage(const json_t *content, const json_t *meta, struct usage *u);
struct record_failure {
	const char *error_class, *sentence, *request_id; /* request_id NULL: none */
	const struct usage *usage;                       /* what it is charged, estimated */
	const struct agent_told *told; /* by which it is made smaller; NULL: it is not */
	int64_t retry_ms;              /* the next attempt follows after that time; -1: none does */
};
void record_infer_failed(struct draft *d, struct run *r, const struct record_failure *f);
/* false: its refusal taught nothing; *t is all 0. */
bool record_told(const json_t *content, struct agent_told *t);
void record_thinking(struct draft *d, struct run *r, const struct turn *t);
void record_tool_call(struct draft *d, struct run *r, const struct turn_call *c);
void record_tool_result(struct draft *d, struct run *r, const struct turn_call *c);
/* What became of something a person said; ids "" when it has none. */
struct record_steering {
	const char *text, *outcome, *steer_id, *call_id, *by, *origin;
	const char *request_id; /* of who said it; NULL or "": none */
};
void record_steering(struct draft *d, struct run *r, const struct record_steering *s);
/* A name for where the run is. */
struct record_checkpoint {
	const char *name, *by, *origin;
	int call;                    /* that a fork from it begins with */
	uint64_t lsn;                /* up to it the logs were readable */
	uint32_t messages;           /* lines of messages.jsonl */
	char hash[HASH_HEX_LEN + 1]; /* over head and lines of the request so far */
};
void record_checkpoint(struct draft *d, struct run *r, const struct record_checkpoint *k);
struct question;
struct record_waiting {
	const struct question *q;
	const char *state;                /* "asked", … of doc/events.json */
	const char *answer, *by, *origin; /* NULL: none */
};
/* Day and run. */
void record_waiting(struct draft *d, struct run *r, const struct record_waiting *w);
/* What was taken out of the conversation. */
void record_context_edit(struct draft *d, struct run *r, const struct agent_compact *want,
			 const struct context_edit *e);
void record_activity(struct draft *d, struct run *r, const char *text);
void record_limits(struct draft *d, struct run *r); /* Limit: as they are now */
void record_warned(struct draft *d, struct run *r, unsigned warned);
void record_shared(struct draft *d, struct run *r, const struct agent_shared *s);
void record_exhausted(struct draft *d, struct run *r, const char *resource);
void record_error(struct draft *d, struct run *r, const char *error_class, const char *message);
/* SubagentComplete (run, last; and day), the catalog's end row. */
void record_complete(struct draft *d, struct run *r, enum ava_status status,
		     const char *stop_reason, const char *summary, const char *result_hash);
/* The entries of its start and its end in the session file, if it has one. */
void record_session_start(struct draft *d, struct run *r);
void record_session_end(struct draft *d, struct run *r, enum ava_status status,
			const char *summary);
void record_catalog_spawn(struct draft *d, struct run *r);
/* Where the run stands (restore.c reads it): the last event of a turn's commit. */
void record_position(struct draft *d, struct run *r);
/* It read what stands under that key. */
void record_state_read(struct draft *d, struct run *r, const char *key);
/* Another process carries the run on, from its newest position. */
void record_carried(struct draft *d, struct run *r);
/* In the first draft after a restart: the run goes on, and its model call was cut. */
void record_restored(struct draft *d, struct run *r);
/* What its commands are kept in, JSON (doc/SECURITY.md). */
void record_sandbox(struct draft *d, struct run *r, const char *layers);

#endif
