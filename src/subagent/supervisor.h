/* All runs of this process: spawn, stop, cancel, status. Loop thread only. */
#ifndef SUBAGENT_SUPERVISOR_H
#define SUBAGENT_SUPERVISOR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/settings.h"
#include "subagent/quote.h"
#include "subagent/run.h"
#include "subagent/budget.h"

/* A run as every door shows it; strings borrowed. */
struct op_status {
	const char *id, *trace_id, *role, *task, *model, *stop_reason, *session_id, *user_id,
		*origin, *cwd, *activity, *last_tool;
	const char *group_id, *order; /* "": none */
	const char *tags;             /* with a blank between two; "": none */
	int64_t group_index;          /* from 1; 0: in no group, or not known */
	const char *group_name;       /* NULL or "": it has none there, or that is not known */
	struct after_set after;       /* what it waits for, or waited; none also where not known */
	enum ava_status status;
	int64_t spawned_ms, started_ms, ended_ms, last_tool_ms; /* wall; 0: not yet */
	int64_t elapsed_ms, tokens, cost_microusd;              /* cost -1: unknown */
	int iteration;
	int64_t limit_time_ms, limit_cost_microusd, limit_tokens;
	int limit_iterations;
	int rights;                  /* subagent/rights.h; -1: not known here */
	const struct question *asks; /* the open question to a person; or NULL */
	bool estimated;              /* tokens and cost are estimates, in part or whole */
	bool repeated;               /* of a spawn: this request_id was answered before */
	const char *machine;         /* another one that has it (cluster/read.h); NULL: this one */
	const char *place; /* in a cluster, of one that goes on: where it may; else NULL */
	bool left;         /* that one is silent, or the run is held: see there */
	/* Wall; a pause was asked for until then (run.h, PAUSE_NO_END); 0: none. */
	int64_t paused_until_ms;
	char progress[256]; /* doing_progress, while the run is at work; else "" */
};

int supervisor_init(struct supervisor *s, struct os_loop *loop, struct logbook *book,
		    const struct settings *settings);
/* No new slots, no new effects: model calls and tools at work are dropped. */
void supervisor_quiesce(struct supervisor *s);
bool supervisor_written(const struct supervisor *s); /* all outboxes are empty */
/* After the journal is closed: waits for pool threads, frees all runs. The next start carries on
 * runs that did not end. */
void supervisor_close(struct supervisor *s);
void supervisor_fini(struct supervisor *s);

/* A new run of `spec` (*taken* on success only) with an id and a name of its
 * own, and the events of its spawn in `d`. Not started: supervisor_start when
 * `d` is durable, supervisor_discard when it certainly is not. AVA_EBUSY: the
 * queue is full; AVA_ENOMEM; AVA_ENOENT: its working folder is gone. */
int supervisor_spawn(struct supervisor *s, struct run_spec *spec, const char *proposal,
		     struct draft *d, struct run **out, struct ava_error *err);
void supervisor_start(struct run *r);
void supervisor_discard(struct run *r);

/* After a restart: makes a run under its old id; then supervisor_start or, when it had started,
 * supervisor_carry_on. */
int supervisor_adopt(struct supervisor *s, struct run_spec *spec, const char *id, const char *trace,
		     struct run **out, struct ava_error *err);

/* Lets a run go on whose machine restore_run has restored. */
void supervisor_carry_on(struct run *r);

/* Another machine has the run from now on, or it is taken up again from its files: who waits for it
 * hears that it goes on. After run_quiesce, once its outbox is empty and it is not busy. */
void supervisor_part(struct run *r);
struct run *supervisor_find(struct supervisor *s, const char *id); /* NULL: no live run */
/* `by` *copied*; NULL: not told. The first cancel names who did it. */
void supervisor_cancel(struct run *r, const char *by, const char *origin);
/* Also brings r->activity up to date. */
void supervisor_status(struct run *r, struct op_status *out);
/* Today's spend with that of the live runs. */
struct spend supervisor_spend(const struct supervisor *s);

#endif
