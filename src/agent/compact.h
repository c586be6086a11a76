/* Making room in a conversation that grows towards the model's window: when,
 * down to where, and what goes. Decided once and written down; never decided
 * again for what was sent already. Pure: the world reads the conversation and
 * writes the outcome (provider/context.h; in simulation test/sim/world.c). */
#ifndef AGENT_COMPACT_H
#define AGENT_COMPACT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct agent;

/* Tokens of the next input as they are estimated, what they shall come down to, and what is too
 * much to be sent. */
struct agent_compact {
	int64_t tokens, target, most;
	bool overflow; /* the service said that it is too much */
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
};

struct compact_plan {
	int64_t need;  /* bytes to make free */
	int64_t must;  /* of them: without these it cannot be sent */
	size_t fold;   /* out: lines 1 to fold - 1 become part of the first; 0: none do */
	int64_t freed; /* out, about; 0: nothing can go */
};

/* Results that were used, oldest first; when that is not enough, a span of lines
 * behind the first, all but the last COMPACT_KEEP. The first line (the task) and
 * what follows the last assistant line (results nobody has read) never go. */
void compact_plan(struct compact_plan *p, const struct compact_line *lines, size_t nlines,
		  struct compact_result *results, size_t nresults);

#endif
