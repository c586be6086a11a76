/* The database of a cluster as a linearizable map: the tables that src/cluster/schema.c makes, and
 * the statements that its rooms send, each known by its beginning. A batch happens whole, at one
 * moment, by the database's clock. A condition counts where its words stand in the statement, so
 * one that is left out there is left out here, too; a statement that is not known is a broken
 * world. What may never be committed is looked at with each commit. */
#ifndef SIM_PGMAP_H
#define SIM_PGMAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"

#define PGMAP_NODES  64
#define PGMAP_RUNS   64
#define PGMAP_SHARED 128 /* rows of each of the other tables */

struct pgmap_value { /* a parameter, or a cell of a row */
	char *s;     /* text or bytes; NULL: a number, a list or null */
	size_t len;
	int64_t n;
	bool null;                 /* a cell */
	struct pgmap_value *items; /* of a list */
	size_t nitems;
};

struct pgmap_statement {
	char *sql;
	struct pgmap_value *params;
	size_t nparams, cap_params;
};

struct pgmap_rows {
	struct pgmap_value *cells;
	unsigned n, cols;
	int64_t affected;
};

struct pgmap_node {
	char id[40], token[40], home[100], name[65];
	int64_t epoch, generation, lease_until; /* ms; INT64_MIN: -infinity */
	bool draining;
};

struct pgmap_run {
	char id[24], node[40];
	int64_t epoch, head, takes, moves, state;
	int64_t turn, tokens, micro;
	int64_t ended_ms; /* of the world */
	unsigned char hash[32];
	size_t hash_len;
	char group[24]; /* of ava_spec, as the next two */
	const char *place, *line;
	size_t line_len;
};

struct pgmap_body { /* a row of ava_chunk (kind 0 or 1) or of ava_file (kind 2, with a path) */
	const char *path, *bytes;
	size_t len;
	int64_t head, tick;
	int kind;
	char run[24], node[40]; /* node: that wrote a chunk of a log */
};

struct pgmap_budget {
	char scope[24];
	int64_t cap, lent;
};

struct pgmap_loan {
	char scope[24], node[40];
	int64_t cap, micro, used, held, told;
};

struct pgmap_wish {
	char run[24], node[40];
	bool without_copy;
	const char *why;
};

struct pgmap_request { /* a row of ava_inbox */
	const char *id, *run, *name, *verb, *body, *answer;
	size_t body_len, answer_len;
	char node[40], door[40];
	int64_t at, status, code; /* status 0: null, as the next two */
};

struct pgmap_ask {
	const char *id, *run, *session, *body; /* body NULL: null */
	size_t body_len;
	char node[40];
	int64_t at;
};

struct pgmap_claim { /* a row of ava_request */
	const char *id;
	char node[40];
	int64_t at;
};

struct pgmap_door {
	const char *name, *given;
	char node[40];
	int64_t epoch;
};

/* Tables of one budget, verbs, Asks, doors and wishes (pgmap_share.c). */
struct pgmap_shared {
	struct pgmap_budget budgets[PGMAP_SHARED];
	struct pgmap_loan loans[PGMAP_SHARED];
	struct pgmap_wish wishes[PGMAP_SHARED];
	struct pgmap_request inbox[PGMAP_SHARED];
	struct pgmap_ask asks[PGMAP_SHARED];
	struct pgmap_claim claims[PGMAP_SHARED];
	struct pgmap_door doors[PGMAP_SHARED];
	unsigned nbudgets, nloans, nwishes, ninbox, nasks, nclaims, ndoors;
};

struct pgmap_state {
	int64_t generation;
	struct pgmap_node nodes[PGMAP_NODES];
	struct pgmap_run runs[PGMAP_RUNS];
	struct pgmap_body *bodies; /* owned */
	unsigned nnodes, nruns;
	size_t nbodies, cap_bodies;
	struct pgmap_shared shared;
};

extern struct pgmap {
	struct pgmap_state now, old; /* old: of a standby that stopped to follow */
	bool stale;                  /* there is one */
	int64_t clock;               /* what its clock shows more than the world's */
	unsigned timeline, went_back;
	uint64_t commits, flushes, takes, given, fetched, verbs;
	struct arena mem;
	void (*wrong)(const char *fmt, ...); /* something was committed that may not be */
} pgmap;

void pgmap_begin(void);
void pgmap_end(void);
int64_t pgmap_now_ms(void);
/* A standby stops to follow; it takes over. */
void pgmap_lag(void);
void pgmap_fail_over(void);

/* Commits a batch; rows from `mem`. */
void pgmap_commit(const struct pgmap_statement *statements, size_t n, struct pgmap_rows *rows,
		  struct arena *mem);

struct pgmap_node *pgmap_node(const char *id); /* NULL: none */
struct pgmap_run *pgmap_run(const char *id);
/* The bytes of a kind, put together from their chunks in order; the caller's. */
char *pgmap_bytes(const char *run, int kind, size_t *len);

#endif
