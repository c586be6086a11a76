/* Runs that were confirmed together: one budget, one deadline, and one line in
 * the log when they begin (Fork) and when the last has ended (Join). A group is
 * in memory while one of its runs is; what it was is rebuilt at the next start
 * from the catalog and the specs of the runs that go on. Loop thread only. */
#ifndef SUBAGENT_GROUP_H
#define SUBAGENT_GROUP_H

#include <ava.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "subagent/money.h"
#include "subagent/spec.h"

struct catalog_row;
struct draft;
struct run;
struct run_log;
struct supervisor;

struct group_member {
	char id[24], trace[48];
	char head[HASH_HEX_LEN + 1]; /* of its file, once its end is durable; "": not known */
	const struct run_log *log;   /* of its file, until then */
	enum ava_status status;
	bool ended;
};

struct group {
	char id[24];
	struct supervisor *sup;
	struct budget money;
	struct os_timer *timer;
	int64_t time_ms;       /* 0: no deadline */
	int64_t begun_wall_ms; /* of its first spawn; 0: unknown */
	int64_t seen_wall_ms;  /* newest time in its record, before this process */
	int64_t started_ms;    /* monotonic, less what was used before this process */
	int size;              /* how many runs it may have */
	bool chain, running, expired;
	unsigned nmembers, nruns; /* runs that were spawned; that are in memory */
	unsigned cap;
	struct group_member *members; /* in their order; does not move while one runs */
};

/* The run has its id: it takes its place; where all are taken (a fork of a run of
 * the group) it stays alone. AVA_ENOMEM. */
int group_enter(struct run *r);
void group_leave(struct run *r); /* before it is freed */
void group_run_starts(struct run *r);
/* Fork, when all that begin together have been spawned into the same draft. */
void group_fork(struct run *r, struct draft *d);
/* Of its time, ms; 0: it has no deadline. */
int64_t group_used_ms(const struct group *g);
/* Its end is in `d`: in a chain the next run is spawned behind it, and started by
 * group_next when `d` is durable; when it was the last, Join follows. */
void group_run_ends(struct run *r, struct draft *d, enum ava_status status, const char *summary);
void group_next(struct run *r);
/* What a run of the group may read of the others by reference: "S-7f3a2b",
 * "sibling:2" (the second of those that run side by side), and either with
 * ":c3.1" behind it. The file below the root; AVA_EDENIED, AVA_EINVAL with a
 * sentence. On a pool thread, while the run is at work. */
int group_reference(const struct run *r, const char *ref, char out[128], struct ava_error *err);

/* ---- the next start: rows in their order, then the runs that go on enter */
int group_restore(struct supervisor *s, const struct catalog_row *row);
/* Newest time in the record of a run that goes on. */
void group_seen(struct run *r, int64_t wall_ms);
void group_restored(struct supervisor *s); /* groups without a run are forgotten */
void groups_fini(struct supervisor *s);

#endif
