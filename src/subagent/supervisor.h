/* All runs of this process: spawning, slots and their queue, cancel, waiting
 * for ends, what is shown. Loop thread only. */
#ifndef SUBAGENT_SUPERVISOR_H
#define SUBAGENT_SUPERVISOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/strmap.h"
#include "base/settings.h"
#include "subagent/quote.h"
#include "subagent/run.h"
#include "subagent/spend.h"

/* What is shown of a run; strings borrowed. Used by every front. */
struct op_status {
	const char *id, *trace_id, *role, *task, *model, *stop_reason, *session_id, *user_id,
		*origin, *cwd, *activity, *last_tool;
	enum ava_status status;
	int64_t started_ms, ended_ms, last_tool_ms; /* wall; 0: not yet */
	int64_t elapsed_ms, tokens, cost_microusd;  /* cost -1: unknown */
	int iteration;
	int64_t limit_time_ms, limit_cost_microusd, limit_tokens;
	int limit_iterations;
	const struct question *asks; /* a person; NULL: nothing */
	bool repeated;               /* of a spawn: this request_id was answered before */
};

struct supervisor {
	struct os_loop *loop;
	struct logbook *book;
	const struct settings *settings;
	struct list live;     /* run.node: not yet done */
	struct list waiting;  /* run.queue: wants a slot */
	struct list ended;    /* run.node: done; freed when nothing points to it any more */
	struct strmap by_id;  /* live runs */
	struct strmap groups; /* struct group by id */
	struct nameset names; /* run ids and trace names ever used */
	struct quotes quotes;
	struct spend spend;       /* of runs that ended */
	struct budget day;        /* budget.day_cents; counted since `day_date` began */
	uint64_t ranks;           /* runs made so far, in this process */
	char day_date[11];        /* local; "": nothing asked yet */
	struct wire_lines *lines; /* to model services */
	/* Text of replies as it comes, for whoever watches; NULL: nobody does. */
	void (*on_text)(struct run *r, const char *s, size_t n, bool thinking);
	void (*on_ask)(struct run *r); /* it asks a person; NULL: nobody listens */
	/* The file of a conversation, malloc'd; NULL: there is none of that id. */
	char *(*session_file)(const char *session_id, void *user);
	/* The next run of a chain starts; NULL: nobody wants to know. */
	void (*on_chained)(struct run *r, void *user);
	void *session_user; /* of both */
	unsigned slots_used, nlive, nwaiting;
	uint64_t total; /* runs ever spawned in this root */
	bool closing;   /* no new slots */
};

int supervisor_init(struct supervisor *s, struct os_loop *loop, struct logbook *book,
		    const struct settings *settings);
/* No new slots, no new effects: model calls and tools at work are dropped. */
void supervisor_quiesce(struct supervisor *s);
bool supervisor_written(const struct supervisor *s); /* all outboxes are empty */
/* After the journal is closed: waits for pool threads, frees all runs. What
 * did not end is carried on at the next start. */
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

/* After a restart: a run goes on under its old id, by supervisor_start or, when it
 * had started, supervisor_carry_on. */
int supervisor_adopt(struct supervisor *s, struct run_spec *spec, const char *id, const char *trace,
		     struct run **out, struct ava_error *err);

/* Its machine was restored (subagent/restore.h). */
void supervisor_carry_on(struct run *r);

struct run *supervisor_find(struct supervisor *s, const char *id); /* live only */
void supervisor_cancel(struct run *r);
void supervisor_status(const struct run *r, struct op_status *out);
/* Today's spend with that of the live runs. */
struct spend supervisor_spend(const struct supervisor *s);

void run_wait(struct run *r, struct run_wait *w);
void run_wait_cancel(struct run_wait *w);

/* ---- for the world */
void supervisor_slot_want(struct run *r);
void supervisor_slot_drop(struct run *r);
void supervisor_ended(struct run *r);
void supervisor_free_run(struct run *r);
void supervisor_out_of_memory(struct run *r);

#endif
