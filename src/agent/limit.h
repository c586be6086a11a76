/* The limits of a run as arithmetic: the cost of a call, the rest, the warnings. Pure; nothing
 * here can fail. */
#ifndef AGENT_LIMIT_H
#define AGENT_LIMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/machine.h"

#define LIMIT_LEAST_OUTPUT 1024 /* tokens of output: a reply of fewer is not worth its input */
#define LIMIT_LEAST_ROOM   512  /* the same where the window is short */

/* May another call start? -1 and its *max_output (tokens), or the used-up resource (enum
 * agent_resource). Time is left to the deadline. */
int limit_reserve(const struct agent *a, int64_t *max_output);

/* Would the call behind the turn's reply, which is not saved yet, be refused? As limit_reserve.
 * Asked before the tools run, since nobody would read their results then; where a person may raise
 * the limit the model reads them: -1. */
int limit_used_up(struct agent *a);

/* The most that the next call costs with `max_output`; 0 when the price is unknown: then money does
 * not bound the run. */
int64_t limit_call_cost(const struct agent *a, int64_t max_output);
/* Tokens of output of a call that costs `microusd`; negative: the call's input alone costs more. */
int64_t limit_output_for(const struct agent *a, int64_t microusd);
/* Tokens of the model's window: as the service told, else as the spec has it. */
int64_t limit_window(const struct agent *a);
/* Bytes for the result of one of `calls` calls, so that all of them fit into the window behind
 * the next input; at most `most`. */
size_t limit_result_bytes(const struct agent *a, unsigned calls, size_t most);
/* Learn from a refusal. true: a request with less output may pass; false: with less input. */
bool limit_learn(struct agent *a, const struct agent_told *t);
/* Lower the output when nothing can be removed from the input. true: a quarter of the output may
 * do. */
bool limit_lower(struct agent *a);
/* Tokens of the next call's input, as far as known. */
int64_t limit_next_input(const struct agent *a);
/* Tokens counted toward the limit so far: input that a service reads from its cache for nothing
 * is left out. */
int64_t limit_tokens_used(const struct agent *a);

/* Is the next call, however short its reply, the last one that the limits pay for? */
bool limit_last(const struct agent *a);

/* Is the next call the last one that `microusd`, the rest of money shared with others, pays for? */
bool limit_last_of(const struct agent *a, int64_t microusd);

/* Count a reply's usage into the totals. The cost computed from the price is
 * written back into u->cost_microusd; it stays -1 when unknown. */
void limit_settle(struct agent *a, struct usage *u);

/* Is every price zero? */
bool price_free(const struct agent_price *p);
/* As limit_settle, for an attempt without a reply: nothing was measured. */
void limit_charge(struct agent *a, struct usage *u);

/* Resources of which the next call's input, as far as known, will have used 80 %, and that the
 * model was not told about: set of bits. Counting only past use would often be too late: a call
 * costs its whole input again. */
unsigned limit_near(const struct agent *a, int64_t now_ms);

/* Write the sentence that tells the model about a resource. */
#define LIMIT_TEXT 160
void limit_sentence(const struct agent *a, enum agent_resource r, int64_t now_ms,
		    char out[LIMIT_TEXT]);

#define OUTPUT_REPAIRS_MAX 2 /* most replies to repair an output that does not fit */
/* Can the run end by submit_result? Otherwise by an answer in words. */
bool limit_can_submit(const struct agent *a);
/* Does the run have tools to look something up, and no earlier run's conversation? */
bool limit_can_look(const struct agent_spec *s);
/* Is the tool one to look something up with? */
bool limit_looks(const struct tool *t);

/* ---- limits that a run shares with others: its group's budget and deadline, the budgets of the
 * day, the week and the month, of its folder and its tags. The world knows them; the machine tells
 * the model. */

enum agent_share {
	SHARE_GROUP_COST,
	SHARE_GROUP_TIME,
	SHARE_DAY_COST,
	SHARE_WEEK_COST,
	SHARE_MONTH_COST,
	SHARE_FOLDER_COST,
	SHARE_TAG_COST,
	AGENT_NSHARES
};
extern const char *const agent_share_names[AGENT_NSHARES]; /* "group_cost" … */

struct agent_shared {
	/* bits of shares that are used to 80 % and that the model was not told of (a->shares) */
	unsigned near;
	struct {
		int64_t used, limit; /* micro-USD, or ms of time; set for those in `near` */
		/* The folder or tag, and "day", "week" or "month"; *borrowed* until the next call
		 * of shared_ask; NULL: of all. */
		const char *whose, *period;
	} of[AGENT_NSHARES];
	bool last; /* the rest of the money pays for the next call only */
};

/* Ask the world for the shared limits; all zero when it has none. */
void shared_ask(struct agent *a, struct agent_shared *out);
/* Write the sentence that tells the model about one share. */
void shared_sentence(const struct agent *a, const struct agent_shared *s, enum agent_share share,
		     char *out, size_t size);
/* Are 80 % of `limit` used? */
bool shared_near(int64_t used, int64_t limit);

/* ---- Making room in a conversation that grows towards the model's window: when, down to where,
 * and what goes. Decided once and written down; text that was sent is not decided about again.
 * Pure: the world reads the conversation and writes the outcome (provider/context.h; in
 * simulation test/sim/world.c). */

struct agent;

/* Estimated tokens of the next input, the target to come down to, and the size too large to
 * send. */
struct agent_compact {
	int64_t tokens, target, most;
	bool overflow; /* the service said that the request is too large */
	bool newest;   /* results not yet read may go too, when nothing else can */
};

/* The outcome: bytes of the request before and after. */
struct agent_compacted {
	int64_t bytes_before, bytes_after;
};

#define COMPACT_HALVINGS 3   /* refusals as too large in a row that are tried again with less */
#define COMPACT_KEEP     8   /* lines at the conversation's end that stay if possible */
#define COMPACT_LEAST    400 /* smallest result worth a marker, bytes */
#define COMPACT_MARKER   240 /* most bytes of a marker in place of a result */
#define COMPACT_LEDGER   10  /* most calls that the summary of a removed span names */

/* Must room be made before the next call? Yes at 80 % of the window, counting the estimated input
 * and the reserved output, or when the service said that the request is too large. */
bool compact_due(const struct agent *a, struct agent_compact *out);
/* Room was made (or could not be): adjust the estimate of the next input. */
void compact_done(struct agent *a, const struct agent_compacted *d);

/* ---- choosing what to remove */

struct compact_line {
	int64_t bytes;
	bool assistant;
};

struct compact_result {
	int64_t bytes; /* size of the result's text */
	size_t line;
	bool fixed;   /* the result is a marker already, and stays */
	bool fetched; /* the model asked for it again after it was removed: it goes last */
	bool go;      /* out: a marker takes its place */
	int64_t keep; /* out: bytes of the result's beginning that stay before the marker */
};

struct compact_plan {
	int64_t need;  /* bytes to make free */
	int64_t must;  /* those of `need` without which the request cannot be sent at all */
	bool newest;   /* results not yet read may be shortened to make `must` free */
	size_t fold;   /* out: lines 1 to fold - 1 become part of the first; 0: none do */
	int64_t freed; /* out: estimated bytes made free; 0: nothing can go */
};

/* Results that were read go first, the oldest before others; when that is not enough, a span of
 * lines behind the first, all but the last COMPACT_KEEP. The first line (the task) never goes.
 * Unread results, behind the last assistant line, are shortened last, each to the same length. */
void compact_plan(struct compact_plan *p, const struct compact_line *lines, size_t nlines,
		  struct compact_result *results, size_t nresults);

#endif
