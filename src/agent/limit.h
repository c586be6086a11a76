/* The limits of a run as arithmetic: what a call costs, what is left, what
 * has to be said. Pure; nothing here can fail. */
#ifndef AGENT_LIMIT_H
#define AGENT_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/machine.h"

#define LIMIT_LEAST_OUTPUT 1024 /* tokens: below that a reply is not worth its input */
#define LIMIT_LEAST_ROOM   512  /* the same, where the window is what is short */

/* May another call start? -1 and its *max_output (tokens), or the resource
 * (enum agent_resource) that is used up. The time is left to the deadline. */
int limit_reserve(const struct agent *a, int64_t *max_output);

/* What the next call costs at most with that output; 0 when the price is not
 * known: money does not hold it then. */
int64_t limit_call_cost(const struct agent *a, int64_t max_output);
/* Output that a call of that much money may have; negative: not even its input. */
int64_t limit_output_for(const struct agent *a, int64_t microusd);
/* Tokens that the model takes: as the service told it, else as the spec has it. */
int64_t limit_window(const struct agent *a);
/* Bytes that the result of one of `calls` calls may have, so that all of them fit into what the
 * next input leaves of the window; at most `most`. */
size_t limit_result_bytes(const struct agent *a, unsigned calls, size_t most);
/* Learn from a refusal. true: a request with less output may pass; false: with less input. */
bool limit_learn(struct agent *a, const struct agent_told *t);
/* Nothing is left to take out of the input. true: a quarter of the output may do. */
bool limit_lower(struct agent *a);
/* Tokens that the next call's input will have, as far as it is known. */
int64_t limit_next_input(const struct agent *a);
/* Tokens that count toward the limit so far: input that a service has in its cache and reads for
 * nothing does not. */
int64_t limit_tokens_used(const struct agent *a);

/* Is the next call, however short its reply, the last one that the limits pay for? */
bool limit_last(const struct agent *a);

/* The same for that much money, shared with others. */
bool limit_last_of(const struct agent *a, int64_t microusd);

/* Count a reply's usage into the totals. The cost computed from the price is
 * written back into u->cost_microusd; it stays -1 when unknown. */
void limit_settle(struct agent *a, struct usage *u);

/* Nothing costs anything. */
bool price_free(const struct agent_price *p);
/* As limit_settle for an attempt that gave no reply: nothing was measured. */
void limit_charge(struct agent *a, struct usage *u);

/* Resources of which the input of the next call, as far as it is known, will
 * have used 80 %, and that the model was not told about: set of bits. What is
 * used already would often be too late: a call costs its whole input again. */
unsigned limit_near(const struct agent *a, int64_t now_ms);

/* The sentence for one of them. */
#define LIMIT_TEXT 160
void limit_sentence(const struct agent *a, enum agent_resource r, int64_t now_ms,
		    char out[LIMIT_TEXT]);

#define OUTPUT_REPAIRS_MAX 2 /* replies that may try again after an output that does not fit */
/* Can it end by submit_result? Else by an answer in words. */
bool limit_can_submit(const struct agent *a);
/* Has it tools to look something up with, and nothing from a run before? */
bool limit_can_look(const struct agent_spec *s);
/* Is it one of these? */
bool limit_looks(const struct tool *t);

/* ---- limits that a run shares with others: what its group may spend, its deadline,
 * the budget of the day. The world knows them; the machine tells the model. */

enum agent_share { SHARE_GROUP_COST, SHARE_GROUP_TIME, SHARE_DAY_COST, AGENT_NSHARES };
extern const char *const agent_share_names[AGENT_NSHARES]; /* "group_cost" … */

struct agent_shared {
	unsigned near; /* set of bits: 80 % are used, and the model was not told (a->shares) */
	struct {
		int64_t used, limit; /* micro-USD, ms; of those that are near */
	} of[AGENT_NSHARES];
	bool last; /* what is left pays the next call, and no other one */
};

/* What the world knows; nothing where it has no such limits. */
void shared_ask(struct agent *a, struct agent_shared *out);
/* The sentence for one of them. */
void shared_sentence(const struct agent *a, const struct agent_shared *s, enum agent_share share,
		     char *out, size_t size);
/* Of `used` of `limit`: are 80 % used? */
bool shared_near(int64_t used, int64_t limit);

/* ---- Making room in a conversation that grows towards the model's window: when,
 * down to where, and what goes. Decided once and written down; never decided
 * again for what was sent already. Pure: the world reads the conversation and
 * writes the outcome (provider/context.h; in simulation test/sim/world.c). */

struct agent;

/* Tokens of the next input as they are estimated, what they shall come down to, and what is too
 * much to be sent. */
struct agent_compact {
	int64_t tokens, target, most;
	bool overflow; /* the service said that it is too much */
	bool newest;   /* results that nobody has read give way too, when nothing else does */
};

/* What became of it: bytes of the request before and after. */
struct agent_compacted {
	int64_t bytes_before, bytes_after;
};

#define COMPACT_HALVINGS 3   /* after answers that the conversation is too large */
#define COMPACT_KEEP     8   /* lines at the end that stay while that is enough */
#define COMPACT_LEAST    400 /* bytes of a result that is worth a marker */
#define COMPACT_MARKER   240 /* bytes that a marker takes, at the most */
#define COMPACT_LEDGER   10  /* calls that the summary of a span names */

/* Is room to be made before the next call? At 80 % of the window, counting the
 * input as it is estimated and the output that is reserved, or when the service
 * has said that it is too much. */
bool compact_due(const struct agent *a, struct agent_compact *out);
/* It was made (or could not be): the estimate of the next input follows. */
void compact_done(struct agent *a, const struct agent_compacted *d);

/* ---- what goes */

struct compact_line {
	int64_t bytes;
	bool assistant;
};

struct compact_result {
	int64_t bytes; /* of its text */
	size_t line;
	bool fixed;   /* a marker already */
	bool fetched; /* it came back because it was asked for again: goes last */
	bool go;      /* out: a marker takes its place */
	int64_t keep; /* out: behind that many bytes of its beginning */
};

struct compact_plan {
	int64_t need;  /* bytes to make free */
	int64_t must;  /* of them: without these it cannot be sent */
	bool newest;   /* what nobody has read may be shortened for these */
	size_t fold;   /* out: lines 1 to fold - 1 become part of the first; 0: none do */
	int64_t freed; /* out, about; 0: nothing can go */
};

/* Results that were used, oldest first; when that is not enough, a span of lines
 * behind the first, all but the last COMPACT_KEEP. The first line (the task) never goes. What
 * follows the last assistant line (results nobody has read) is shortened last, each to the same
 * length. */
void compact_plan(struct compact_plan *p, const struct compact_line *lines, size_t nlines,
		  struct compact_result *results, size_t nresults);

#endif
