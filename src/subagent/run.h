/* One run in this process: the machine, what the real world keeps beside it. */
#ifndef SUBAGENT_RUN_H
#define SUBAGENT_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent.h"
#include "agent/tool.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/list.h"
#include "os/loop.h"
#include "provider/retry.h"
#include "subagent/money.h"
#include "subagent/logbook.h"
#include "subagent/spec.h"

struct supervisor;
struct group;
struct infer_job;
struct person;
struct room_job;

/* Where the record of an agent stands that is no subagent: Ava's turns are
 * events of the daily log, and her messages stand beside the session. */
struct run_place {
	const char *agent_id;  /* "ava" */
	const char *messages;  /* "sessions/…/x.messages.jsonl" */
	const char *artifacts; /* folder of outputs that were cut */
};

/* What is written about it. */
struct run_record {
	struct outbox outbox;
	struct draft *draft;       /* being written for the next commit; or NULL */
	struct run_log log;        /* of its file */
	uint64_t types;            /* sets of event_bit */
	uint32_t message_lines;    /* of messages.jsonl */
	size_t messages_from;      /* its newest cut there; 0: from the beginning */
	struct hash_sha256 prefix; /* over head and lines of the request so far */
	int64_t request_bytes;     /* head and lines of the next request */
	uint8_t notices;           /* of the next request: set of enum record_notice */
	bool wordless;             /* no message follows the head yet */
	bool position_due;         /* with the next commit */
	bool turn_open;            /* calls without a results line */
	bool unnoted;              /* it goes on after a restart, which is not yet written */
};

/*   MONEY ─► GATE ─► SAVE ─► WORK ─► WIRE ─► (reply)
 *                    │       ├────► PARKED ─► (asked again: a new job)
 *                    │       └────► DELAY ─► (reply)     a local model
 *   HELD ─► MONEY    after a restart
 *   what fails on the way ─► FAILED ─► (the machine is told) */
enum call_state {
	CALL_NONE,   /* none is under way */
	CALL_MONEY,  /* others hold back what a group or the day has left */
	CALL_GATE,   /* others go first */
	CALL_SAVE,   /* its InferStart is on the way to the disk */
	CALL_WORK,   /* a pool thread builds the request, or answers it */
	CALL_WIRE,   /* the service has it */
	CALL_DELAY,  /* the answer is here, and due later */
	CALL_HELD,   /* an attempt of an earlier process failed: its time is not over */
	CALL_PARKED, /* it failed and the next attempt waits for its time */
	CALL_FAILED, /* for good */
};

/* Its model call: the one under way, and what is kept from one to the next. */
struct run_call {
	enum call_state state;
	struct infer_job *job;             /* NULL: CALL_NONE */
	struct room_job *room;             /* room is being made before it; or NULL */
	struct os_timer *timer;            /* of the job; NULL: no call for long */
	struct budget_hold hold;           /* its money (money.c) */
	int64_t counted_microusd;          /* of the run's totals, in the budgets of `hold` */
	char id[16];                       /* "i3" while InferStart has no InferEnd */
	int64_t started_ms, held_until_ms; /* held: an earlier attempt failed */
	struct retry retry;
	uint16_t attempts, fallbacks; /* at this call; places of models.fallback looked at */
	const char *first_model;      /* models.fallback took its place; in spec->mem; or NULL */
	/* What it had used when it was stopped; cost -1: not known; 0: it never left. */
	struct usage cut;
	bool stopped;     /* a stop fell into it */
	uint64_t seen[8]; /* prints of the newest request ids: none is charged twice */
	unsigned nseen;
};

/* Its tools and what they showed. */
struct run_tools {
	struct tool_env env;    /* cwd_fd is owned */
	struct list at_work;    /* world_call */
	unsigned running;       /* those, and the stopped ones that are not done */
	uint32_t *calls_before; /* in turns before each iteration */
	int32_t calls_cap, calls_at;
	char last[64]; /* name of the one started last, and when */
	int64_t last_wall_ms;
	int64_t bytes_read;
	uint32_t counts[ROLE_MAX_TOOLS]; /* successful calls, by spec->tools */
	struct buf artifacts;            /* JSON strings joined by commas */
};

/* How it ends. */
struct run_end {
	struct list waits;        /* run_wait: who waits for it */
	struct end_job *job;      /* set once it is ending */
	int64_t wall_ms, used_ms; /* when, and how much of its time was used by then */
	bool interrupted;         /* by a crash: it is only ended */
	bool abandoned;           /* its process stops, it is carried on by the next one */
	bool begun, done;         /* its last commit is on its way to the disk; is there */
};

struct run {
	struct agent agent; /* the machine */
	struct run_record rec;
	struct run_call call;
	struct run_tools tools;
	struct run_end end;
	struct supervisor *sup;
	struct run_spec *spec; /* owned */
	struct run_id id;
	struct trace_name trace;
	const struct run_place *place; /* NULL: files of its own */
	char *session_file;            /* of the conversation it belongs to; owned; or NULL */
	char proposal[24];             /* "" when spawned without one */
	struct group *group;           /* or NULL */
	struct run *next;              /* of a chain, until it starts */
	struct list node, queue;       /* in supervisor.live or .ended; in .waiting for a slot */
	struct person *person;         /* what it asks, what is said to it; or NULL */
	struct run_checkpoints *checkpoints; /* names of its positions; or NULL */
	struct os_task wake, reap;
	struct os_timer *timer; /* agent_io.wake_at */
	unsigned busy;          /* jobs and tool calls that still point here */
	int64_t spawned_wall_ms, started_wall_ms;
	char activity[160];
	/* Its spawn is on disk; cancelled before it was, or while it ends: then of a chain
	 * none goes on. */
	bool durable, cancel_wanted;
};

/* Told once when the run's end is durable (loop thread). */
struct run_wait {
	struct list node;
	/* Also when the runtime stops before: then r->done is false. */
	void (*ended)(struct run_wait *w, struct run *r);
};

/* `spec` stays the caller's on error. AVA_ENOMEM. */
int run_init(struct run *r, struct supervisor *sup, struct run_spec *spec);
void run_fini(struct run *r); /* nothing may point to it any more */

/* Where its messages stand, and the folder of outputs that were cut. */
void run_messages_path(const struct run *r, char out[LOGBOOK_PATH]);
void run_artifacts_path(const struct run *r, char out[LOGBOOK_PATH]);

enum ava_status run_status(const struct run *r); /* the word shown for it */
/* Of its time, until its end or now. */
int64_t run_elapsed_ms(const struct run *r);
/* Micro-USD; -1 when only calls of unknown price were made. */
int64_t run_cost(const struct run *r);

#endif
