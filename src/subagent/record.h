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

/* Notices of the runtime in a request, listed in its InferStart. */
enum record_notice {
	RECORD_NEAR_TIME = 1 << 0, /* the first four in the order of enum agent_resource */
	RECORD_NEAR_COST = 1 << 1,
	RECORD_NEAR_TOKENS = 1 << 2,
	RECORD_NEAR_ITERATIONS = 1 << 3,
	RECORD_ODD_REPLY = 1 << 4, /* the reply was empty, or a call written as text */
	RECORD_NUDGE = 1 << 5,     /* a text alone does not end the run */
	RECORD_FORCED = 1 << 6,    /* only submit_result can be called */
	RECORD_STEERED = 1 << 7,   /* a message of a person */
};

/* SubagentSpawn (day and run) and Limit (run). */
void record_spawn(struct draft *d, struct run *r);
void record_infer_start(struct draft *d, struct run *r, const struct agent_infer *call,
			const char *prefix_hash, const char *request_hash);
/* InferEnd and CostUpdate; closes r->infer_id. */
void record_infer_end(struct draft *d, struct run *r, const struct turn *t);
/* Read InferEnd's stopReason, and its tokens and cost, back. */
enum turn_stop record_stop(const char *word);
void record_usage(const json_t *content, const json_t *meta, struct usage *u);
struct record_failure {
	const char *error_class, *sentence, *request_id; /* request_id NULL: none */
	const struct usage *usage;                       /* estimated charge of the attempt */
	const struct agent_told *told;                   /* sizes for a smaller request; or NULL */
	int64_t retry_ms; /* delay of the next attempt; -1: none follows */
};
void record_infer_failed(struct draft *d, struct run *r, const struct record_failure *f);
/* Reads InferEnd's "told" back; false: the refusal told no sizes, *t is all 0. */
bool record_told(const json_t *content, struct agent_told *t);
void record_thinking(struct draft *d, struct run *r, const struct turn *t);
void record_tool_call(struct draft *d, struct run *r, const struct turn_call *c);
void record_tool_result(struct draft *d, struct run *r, const struct turn_call *c);
/* Outcome of a person's message; ids "" when it has none. */
struct record_steering {
	const char *text, *outcome, *steer_id, *call_id, *by, *origin;
	const char *request_id; /* of the door's request; NULL or "": none */
};
void record_steering(struct draft *d, struct run *r, const struct record_steering *s);
/* A name for the position of the run. */
struct record_checkpoint {
	const char *name, *by, *origin;
	int call;                    /* model call with which a fork from here begins */
	uint64_t lsn;                /* newest lsn that could be read */
	uint32_t messages;           /* lines of messages.jsonl */
	char hash[HASH_HEX_LEN + 1]; /* over head and lines of the request so far */
};
void record_checkpoint(struct draft *d, struct run *r, const struct record_checkpoint *k);
struct proof;
/* Check: it begins (`p` NULL), or has its outcome. */
void record_check(struct draft *d, struct run *r, const struct proof *p);
struct question;
struct record_waiting {
	const struct question *q;
	const char *state;                /* "asked", … of doc/events.json */
	const char *answer, *by, *origin; /* NULL: none */
};
/* Waiting (day and run). */
void record_waiting(struct draft *d, struct run *r, const struct record_waiting *w);
/* Waiting of kind pause (day and run); `by` NULL: nobody. */
void record_pause(struct draft *d, struct run *r, const char *state, const char *by,
		  const char *origin);
/* ContextEdit: results removed from the conversation. */
void record_context_edit(struct draft *d, struct run *r, const struct agent_compact *want,
			 const struct context_edit *e);
void record_activity(struct draft *d, struct run *r, const char *text);
void record_limits(struct draft *d, struct run *r); /* Limit: the limits as they are now */
void record_warned(struct draft *d, struct run *r, unsigned warned);
void record_shared(struct draft *d, struct run *r, const struct agent_shared *s);
void record_exhausted(struct draft *d, struct run *r, const char *resource);
void record_error(struct draft *d, struct run *r, const char *error_class, const char *message);
/* SubagentComplete (run, last; and day), the catalog's end row. */
struct record_end {
	enum ava_status status;
	const char *stop_reason, *summary, *result_hash;
	const char *error, *error_class; /* NULL: none */
	int64_t needs; /* what the first call needs of the limit that ended it; 0: unknown */
	size_t files;  /* that it proposes to change */
	unsigned citations, not_found;
};
void record_complete(struct draft *d, struct run *r, const struct record_end *e);
/* Entries of the run's start and end in its session file, if it has one. */
void record_session_start(struct draft *d, struct run *r);
void record_session_end(struct draft *d, struct run *r, enum ava_status status,
			const char *summary);
void record_catalog_spawn(struct draft *d, struct run *r);
/* The position, which restore.c reads: last event of a turn's commit; of a conversation a line of
 * its messages. */
void record_position(struct draft *d, struct run *r);
/* StateRead: the run read the value of `key`. */
void record_state_read(struct draft *d, struct run *r, const char *key);
/* This process carries on the run of another one, from its newest position. */
void record_carried(struct draft *d, struct run *r);
/* In the first draft after a restart: record_carried, and InferEnd of a call that was cut. */
void record_restored(struct draft *d, struct run *r);
/* Layers of the sandbox of commands, JSON (doc/SECURITY.md). */
void record_sandbox(struct draft *d, struct run *r, const char *layers);

#endif
