/* Counters of what the runs of this process did, which only grow: calls of models, tokens, money,
 * tools, ends. They begin at 0 with the process, as counters of Prometheus do, and are read for
 * /metrics and for a collector. The record of runs is the log; nothing here is on disk.
 *
 * Names of models, roles and tools are people's words: so many have a row of their own, the rest
 * share the row "other". A call is an attempt: one that is tried again counts twice. Loop thread
 * only. */
#ifndef SUBAGENT_TALLY_H
#define SUBAGENT_TALLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct usage;

#define TALLY_MODELS 40  /* the first one is "other" */
#define TALLY_ROWS   200 /* of each kind */
#define TALLY_BOUNDS 16  /* 10 ms, twice as long each, up to 327.68 s */
#define TALLY_NAME   64

/* Tokens, each in one kind only: their sum is what was paid for. */
enum tally_tokens {
	TALLY_INPUT, /* read, and not from a cache */
	TALLY_CACHE_READ,
	TALLY_CACHE_WRITE,
	TALLY_OUTPUT, /* written, and no reasoning */
	TALLY_REASONING,
	TALLY_NTOKENS
};

struct tally_model {
	char name[TALLY_NAME];
	int64_t took[TALLY_BOUNDS + 1]; /* calls no longer than each bound and longer than the
					 * one before; the last: longer than all */
	int64_t ms;                     /* of these calls */
	int64_t tokens[TALLY_NTOKENS], microusd;
};

/* An end by role (`name`), model and status; a failed call by class and model; a call of a tool by
 * name and success (`status`). */
struct tally_row {
	char name[TALLY_NAME];
	uint8_t model, status; /* model: a place in tally.models */
	int64_t n;
};

enum tally_kind { TALLY_ENDS, TALLY_ERRORS, TALLY_TOOLS, TALLY_NKINDS };

struct tally {
	struct tally_model models[TALLY_MODELS];
	unsigned nmodels;
	struct tally_row rows[TALLY_NKINDS][TALLY_ROWS];
	unsigned nrows[TALLY_NKINDS];
};

/* NULL for `t` counts nothing: a replay. */
/* `ms` -1: not known, the call was begun by an earlier process. */
void tally_call(struct tally *t, const char *model, const struct usage *u, int64_t ms);
/* `model` NULL: not by model. */
void tally_add(struct tally *t, enum tally_kind kind, const char *name, const char *model,
	       unsigned status);
int64_t tally_bound_ms(unsigned bound);

#endif
