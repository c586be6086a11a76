/* One run in this process: the machine, what the real world keeps beside it. */
#ifndef SUBAGENT_RUN_H
#define SUBAGENT_RUN_H

#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent.h"
#include "agent/limit.h"
#include "agent/position.h"
#include "agent/tool.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/list.h"
#include "base/settings.h"
#include "base/strmap.h"
#include "os/loop.h"
#include "provider/retry.h"
#include "subagent/budget.h"
#include "subagent/logbook.h"
#include "subagent/quote.h"
#include "subagent/spec.h"

struct agent_shared;
struct messages_info;
struct jw;
struct supervisor;
struct group;
struct infer_job;
struct copying;
struct memory;
struct run;
struct run_changes;
struct world_call;
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
	bool lost;                 /* some of its record, as memory ended: nothing may follow it */
	bool turn_open;            /* calls without a results line */
	bool unnoted;              /* it goes on after a restart, which is not yet written */
};

/*   MONEY ─► GATE ─► SAVE ─► WORK ─► WIRE ─► (reply)
 *                    │       ├────► AGAIN ─► (asked again: a new job)
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
	CALL_AGAIN,  /* it failed and the next attempt waits for its time */
	CALL_FAILED, /* for good */
};

/* Its model call: the one under way, and what is kept from one to the next. */
struct run_call {
	enum call_state state;
	bool stopped;          /* a stop fell into it */
	bool changed;          /* the model was, and the hash of the request is still the old one */
	struct infer_job *job; /* NULL: CALL_NONE */
	/* The call failed and is made again, but the machine does not know yet; NULL: no call
	 * was made. */
	bool (*has_failed)(const struct run *r);
	struct room_job *room;             /* room is being made before it; or NULL */
	struct os_timer *timer;            /* of the job; NULL: no call for long */
	struct budget_hold hold;           /* its money (money.c) */
	int64_t counted_microusd;          /* of the run's totals, in the budgets of `hold` */
	char id[16];                       /* "i3" while InferStart has no InferEnd */
	int64_t began_ms;                  /* its first attempt */
	int64_t started_ms, held_until_ms; /* the newest; held: an earlier one failed */
	struct retry retry;
	/* At this call; places of models.fallback looked at; attempts that began too late. */
	uint16_t attempts, fallbacks, late;
	const char *first_model; /* models.fallback took its place; in spec->mem; or NULL */
	/* Why its last attempt failed, or what it was at when it was stopped; owned; or NULL. */
	char *why;
	char *trouble; /* of a service, that a conversation was told; owned; or NULL */
	/* What it had used when it was stopped; cost -1: not known; 0: it never left. */
	struct usage cut;
	/* Less was counted than was sent: in these words, of spec->mem; or NULL. */
	const char *doubt;
	/* By this process: the newest count of input that was believed, and its request's bytes. */
	int64_t counted, counted_bytes;
};

/* Its tools and what they showed. */
struct run_tools {
	struct tool_env env; /* cwd_fd is owned */
	struct list at_work; /* world_call */
	/* Of a run that works on a copy of the project (copying.c) those that see it come one
	 * after the other: who waits, and the one whose turn it is. */
	struct list held;
	struct world_call *turn;
	struct copying *copying; /* it is being made; or NULL */
	char *copy;              /* where it is or will be; owned; NULL: not asked for yet */
	bool going;              /* calls are being begun */
	unsigned running;        /* those, and the stopped ones that are not done */
	uint32_t *calls_before;  /* in turns before each iteration */
	int32_t calls_cap, calls_at;
	char last[64]; /* name of the one called last, and when */
	int64_t last_wall_ms;
	int64_t bytes_read;
	uint32_t counts[ROLE_MAX_TOOLS]; /* successful calls, by spec->tools */
	uint32_t wanted;                 /* of those: needed from now on (spec_brief.c) */
	struct buf artifacts;            /* JSON strings joined by commas */
	char layers[8];                  /* print of the sandbox that was written last */
};

/* How it ends. */
struct run_end {
	struct list waits;   /* run_wait: who waits for it */
	struct end_job *job; /* set once it is ending */
	/* Set with it: no tool is at work any more (NULL: nobody waits for that); free it. */
	void (*tools_done)(struct run *r), (*free)(struct run *r);
	int64_t wall_ms, used_ms; /* when, and how much of its time was used by then */
	char *by, origin[16];     /* who cancelled it, by which door; owned; NULL: nobody did */
	bool interrupted;         /* by a crash: it is only ended */
	bool abandoned;           /* its process stops, it is carried on by the next one */
	bool begun, done;         /* its last commit is on its way to the disk; is there */
};

/* A quota of its service that it waits for (park.c). */
struct run_park {
	int64_t until_ms; /* wall; 0: it is not parked */
	int64_t back_ms;  /* the same of the last one, until its next call is at the gate */
	int64_t told_ms;  /* when a person was last told of one; wall */
	/* What the waits of one call come to, and which call that is. */
	int64_t waited_ms, iteration;
	uint16_t count; /* how often it was parked */
	bool quiet;     /* nobody is told: they were, of it or of another one for the same */
	char limit[64]; /* "weekly limit of anthropic" */
	char *model;    /* with which a person says to go on; owned; or NULL */
};

struct run {
	struct agent agent; /* the machine */
	struct run_record rec;
	struct run_call call;
	struct run_park park;
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
	struct run *next;              /* of a chain, until it starts, or its end is told */
	struct list node, queue;       /* in supervisor.live or .ended; in .waiting for a slot */
	struct person *person;         /* what it asks, what is said to it; or NULL */
	struct run_checkpoints *checkpoints; /* names of its positions; or NULL */
	struct os_task wake, reap;
	void (*unused)(struct run *r); /* it has ended, and nothing points to it any more */
	struct os_timer *timer;        /* agent_io.wake_at */
	unsigned busy;                 /* jobs and tool calls that still point here */
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

/* supervisor.c: `spec` stays the caller's on error. AVA_ENOMEM. */
int run_init(struct run *r, struct supervisor *sup, struct run_spec *spec);
void run_fini(struct run *r); /* nothing may point to it any more */

/* Where its messages stand, and the folder of outputs that were cut. */
void run_messages_path(const struct run *r, char out[LOGBOOK_PATH]);
/* Read whole, or from the byte *from on (logbook_read_from). Any thread. */
int run_messages_read(const struct run *r, size_t *from, char **file, size_t *len,
		      struct ava_error *err);
/* A short conversation that is in memory: the loop reads it for less than waking a thread
 * costs. Its length, or -1. */
#define RUN_AT_ONCE_MAX (64u << 10)
ssize_t run_messages_cached(const struct run *r, char text[RUN_AT_ONCE_MAX]);
#define RUN_WORK "runs/%s/work" /* of commands; made when first used */
void run_artifacts_path(const struct run *r, char out[LOGBOOK_PATH]);
#define RUN_ARTIFACT_PATH (LOGBOOK_PATH + 32) /* and "/", the id of a call, ".", a type */
void run_artifact_path(const struct run *r, const char *call, const char *type,
		       char out[RUN_ARTIFACT_PATH]);

enum ava_status run_status(const struct run *r); /* the word shown for it */
/* Of its time, until its end or now. */
int64_t run_elapsed_ms(const struct run *r);
/* Micro-USD; -1 when only calls of unknown price were made. */
int64_t run_cost(const struct run *r);
/* Calls whose tokens no service told, or not so that it can be believed; a model within ava counts
 * by itself. */
int run_estimated(const struct run *r);

/* ---- all runs of this process */

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
	struct spend spend; /* of runs that ended */
	struct budget day;  /* budget.day_cents; counted since `day_date` began */
	/* A run that reported a cost of a model whose price is 0; NULL: none has. */
	const struct provider *bills_free;
	uint64_t ranks;       /* runs made so far, in this process */
	char day_date[11];    /* local; "": nothing asked yet */
	char before_date[11]; /* of the day that was counted before, and what it had spent */
	int64_t before_microusd, day_seen_ms; /* the latest time of `day_date` */
	struct wire_lines *lines;             /* to model services */
	struct learner *learner;              /* of their windows */
	struct pages *pages;                  /* of the tools; owned; or NULL */
	struct mcp_client *mcp;               /* likewise; *borrowed*; or NULL */
	/* Text of replies as it comes, for whoever watches; NULL: nobody does. */
	void (*on_text)(struct run *r, const char *s, size_t n, bool thinking);
	/* It asks a person; what it asked is over, maybe unanswered. NULL: nobody listens */
	void (*on_ask)(struct run *r), (*on_asked)(struct run *r);
	/* The file of a conversation, malloc'd; NULL: there is none of that id. */
	char *(*session_file)(const char *session_id, void *user);
	/* The next run of a chain starts; NULL: nobody wants to know. */
	void (*on_chained)(struct run *r, void *user);
	void *session_user;    /* of both */
	char *keep_out[3];     /* of tool_env; owned */
	struct memory *memory; /* of tool_env; NULL: there is none */
	unsigned slots_used, nlive, nwaiting;
	uint64_t total; /* runs ever spawned in this root */
	bool closing;   /* no new slots */
};

/* ---- those of a group */

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
	/* The newest position in it: what was used of its time, and when; 0: none. */
	int64_t noted_ms, noted_wall_ms;
	int64_t started_ms; /* monotonic, less what was used before this process */
	int64_t used_ms;    /* of its time, while `waits` */
	bool waits;         /* all that are left are parked */
	int size;           /* how many runs it may have */
	bool chain, running, expired;
	unsigned nmembers, nruns; /* runs that were spawned; that are in memory */
	unsigned cap;
	struct group_member *members; /* in their order; does not move while one runs */
};

/* ---- what the parts of a run ask of each other. They are one machine in several
 * files, which know this header and none of each other. */

/* world.c: what the machine asks of the world */
extern const struct agent_io world_io;

/* commit.c */
/* The draft that is being written for the run's next commit; NULL: no memory
 * (the run then ends with an error). */
struct draft *world_draft(struct run *r);
/* Commit the open draft. `done` may be NULL. */
void world_flush(struct run *r, enum journal_level level, void (*done)(int rv, void *user));
/* Bytes for messages.jsonl (lines joined by \n, without the last one); they
 * become part of the next request. Returns how many bytes it adds there. */
int64_t world_lines(struct run *r, const char *lines, size_t len);
/* What the next commit appends to messages.jsonl; NULL: no memory. */
struct buf *world_messages(struct run *r);
/* The lines that a draft has for its messages. */
uint32_t run_checkpoint_lines(const struct run *r, const struct draft *d);

/* run.c */
/* Let the machine go on in this loop turn. */
void world_wake(struct run *r);
void world_activity(struct run *r, const char *text);
/* A call of a tool is over: an end that waits for the last one goes on. */
void run_tool_done(struct run *r);
/* Free the run once nothing points to it any more. */
void world_release(struct run *r);

/* The working folder, once for all calls: runs that wait for a slot or a person
 * hold none. AVA_ENOENT, AVA_EBUSY (too many files are open). */
int world_open_folder(struct run *r, struct ava_error *err);
bool park_waits(const struct run *r); /* for the time, not for a person */

/* ---- tools at work (toolrun.c), and what a run can look up (recall.c) */
int toolrun_start(struct agent *a, unsigned call);
void toolrun_stop(struct agent *a);
/* Names of the tools at work, into an array that is open. */
void toolrun_names(const struct run *r, struct jw *w);
void toolrun_activity(struct tool_env *env, const char *line);
void toolrun_state_read(struct tool_env *env, const char *key);
void toolrun_layers(struct tool_env *env, const char *json);
int toolrun_fetch(struct tool_env *env, const char *call_id, struct buf *out,
		  struct ava_error *err);
/* tool_env.told. */
int toolrun_told(struct tool_env *env,
		 int (*each)(bool person, const char *text, size_t len, void *user), void *user,
		 struct ava_error *err);
/* Before a turn's calls are saved: remember how many there are. */
int toolrun_count(struct run *r, unsigned ncalls);
extern pthread_mutex_t toolrun_calls; /* to read them on another thread */

/* ---- copying.c: the private copy of the project (tool/copy.h) of a run with the grant rw */
bool copying_wanted(const struct run *r);
/* Make it, off the loop; `ready` is called once: 0, or why not. One at a time. */
void copying_make(struct run *r, void (*ready)(struct run *r, const struct ava_error *err));
void copying_stop(struct run *r);
/* What came of it, when nothing is at work any more. A pool thread's. */
struct run_changes *copying_look(const struct run *r);
/* In the commit of the end: the patch as an artifact of the run. */
void copying_put(struct run *r, struct draft *d, const struct run_changes *c);
/* The member "patch" of its result; "copy_kept" where it failed, "copy_unchanged"; or nothing. */
#define COPY_TREE "runs/%s/copy/tree"
void copying_result(const struct run *r, const struct run_changes *c, struct jw *w);
const char *copying_failed(const struct run_changes *c); /* a sentence; NULL: it did not */
/* The end is on disk: the copy goes, off the loop, unless it holds what no patch does. */
void copying_remove(struct run *r, const struct run_changes *c);
void copying_free(struct run_changes *c); /* NULL is fine */
/* At a start: the copies of runs that have ended go, off the loop, where a result has what they
 * changed, or that they changed nothing. */
void copying_sweep(struct supervisor *sup);

/* ---- ending.c */
void ending_start(struct agent *a, const struct agent_end *end);
/* Close what is still open: a result for each call, an InferEnd. */
void ending_close(struct run *r, struct draft *d, const char *stop_reason);

/* park.c: a run waits without a slot until the quota of its service is back */
struct wire_line;
/* May it, for that long? */
bool park_may(const struct run *r, int64_t wait_ms);
/* The service has said so: for which limit, and until when. The machine is told by park_tell. */
void park_begin(struct run *r, struct wire_line *line, int64_t wait_ms,
		const struct reply_error *e);
/* At the gate: the service has said so to another run. And who was parked before is back. */
bool park_at_gate(struct run *r, struct wire_line *line);
void park_tell(struct run *r, bool made);
/* Why it is not parked, behind the sentence of its end; of Ava's turn the whole of it. */
void park_why_not(const struct run *r, const struct reply_error *e, const char *back, char *text,
		  size_t size);
/* The service answers again, before its time: who waits for that model does not any more. */
void park_over(struct supervisor *s, const struct model *m);
/* Its timer: the clock on the wall decides, which may have jumped. */
void park_look(struct run *r);
int64_t park_until(const struct run *r); /* monotonic */
/* What a person is asked, and what became of it. AVA_ENOMEM. */
struct question;
int park_question(struct run *r, struct question *q);
void park_asked(struct run *r, bool before);
void park_ended(struct run *r, enum agent_asked how);
/* From its Waiting events, in their order; then, when all of them are read. */
void park_restore(struct run *r, const json_t *content, int64_t wall_ms);
void park_stand(struct run *r);

/* infer.c: model calls */
int infer_start(struct agent *a, const struct agent_infer *call);
void infer_stop(struct agent *a);
/* Bytes that the model has written of the reply it is at; -1: no service has a call. */
int64_t infer_written(const struct run *r);
/* A service that counts no more for a request that has grown, or the same for any, does not
 * count, or has cut the conversation before its model saw it: the person is told. */
void infer_doubt(struct run *r, struct usage *u);
/* What an attempt without a reply is charged, into *u, too. */
struct wirecall_end;
void infer_charge(struct run *r, const struct wirecall_end *end, bool began, struct usage *u);
/* Another model (or the same in another dialect), from the next call on: an amendment line in the
 * draft. false: that cannot be. */
bool infer_amend(struct run *r, const struct model *m, bool another);
/* No call is made for long: give back what only calls need. */
void infer_wait_long(struct run *r);
/* The runtime stops: what a call in flight had used is written while it is
 * known. The next start would have to guess. */
void infer_interrupted(struct run *r);
/* What the call in flight is charged when it is cut: an estimate. */
void infer_estimate(const struct run *r, struct usage *u);
/* InferEnd of the call that is open, if one is, charged by its estimate. */
void infer_close_cut(struct run *r, struct draft *d, const char *error_class, const char *sentence);

/* Ask again without what a refusal names (infer_repair.c); false: that would not help. Each
 * time it is something else, since what was left out before is in no request: a list that is
 * full ends it at the latest. */
bool infer_repair(struct run *r, const struct agent_infer *call, const char *words);
/* May a request smaller than its `bytes` pass? Then *told is what the refusal tells of it. */
bool infer_lower(const struct agent_infer *call, const struct reply_error *e, int64_t bytes,
		 struct agent_told *told);

struct wirecall_end;
/* InferEnd of an attempt that failed, charged by what the service told of the half reply and an
 * estimate of what it did not; retry_ms -1: it is not made again. */
void infer_write_failure(struct run *r, const struct wirecall_end *end, const struct usage *u,
			 const struct agent_told *told, int64_t retry_ms);
void infer_sentence(const struct run *r, const struct wirecall_end *end,
		    const struct retry_plan *plan, char *text, size_t size);

/* room.c: room in a conversation (agent_io.compact) */
int room_make(struct agent *a, const struct agent_compact *c);
/* agent_on_compacted does not come any more, nothing is written. */
void room_stop(struct run *r);

/* money.c: the budgets of its group and of the day */
void money_init(struct supervisor *s);
/* After a restart: a run that goes on was at work then, by the clock on the wall. */
void money_seen(struct supervisor *s, int64_t wall_ms);
/* And what the runs that ended today have cost, whoever counts it. */
void money_restore(struct supervisor *s);
/* What counts against the budget of the day that it is now, micro-USD. */
int64_t money_day(struct supervisor *s);
void money_begin(struct run *r); /* of a new run */

/* Reserve a call: 0; BUDGET_WAITS: hold.go follows; AVA_EBUDGET: money_refused says why. */
int money_ask(struct run *r, int64_t max_output);
/* What the call may write with what it was given. */
int64_t money_lowered(const struct run *r, int64_t max_output);
void money_refused(const struct run *r, char *out, size_t size);
/* Nobody waits for the call any more. What it holds is settled when it is charged. */
void money_stop(struct run *r);
/* The run's totals have changed, or no call is under way any more. */
void money_settle(struct run *r);
/* agent_io.shared. */
void money_shared(struct agent *a, struct agent_shared *out);

/* group.c */
/* The run has its id: it takes its place; where all are taken (a fork of a run of
 * the group) it stays alone. AVA_ENOMEM. */
int group_enter(struct run *r);
void group_leave(struct run *r); /* before it is freed */
void group_run_starts(struct run *r);
/* Of its time, ms; 0: it has no deadline. */
int64_t group_used_ms(const struct group *g);
/* Its end is in `d`: when it was the last, Join follows. Then, when `d` is durable. */
void group_run_ends(struct run *r, struct draft *d, enum ava_status status);
void group_end_saved(struct run *r);
/* The chain ends here: its next run cannot be spawned. */
void group_write_broken(struct run *r, struct draft *d, const char *why);
/* What a run of the group may read of the others by reference: "S-7f3a2b",
 * "sibling:2" (the second of those that run side by side), and either with
 * ":c3.1" behind it. The file below the root; AVA_EDENIED, AVA_EINVAL with a
 * sentence. On a pool thread, while the run is at work. */
int group_reference(const struct run *r, const char *ref, char out[128], struct ava_error *err);
void groups_fini(struct supervisor *s);
/* A run of it is parked, or is not any more: while all are its clock stands still. */
void group_waits(struct run *r);
/* Fork, when all that begin together have been spawned into the same draft. */
void group_fork(struct run *r, struct draft *d);
/* At the next start: rows in their order, then the runs that go on enter. */
int group_restore(struct supervisor *s, const struct catalog_row *row);
/* Newest time in the record of a run that goes on. */
void group_seen(struct run *r, int64_t wall_ms);
/* A position of the run says how much of the group's time was used then. */
void group_noted(struct run *r, int64_t used_ms, int64_t wall_ms);
void group_restored(struct supervisor *s); /* groups without a run are forgotten */

/* chain.c: the end of a run is in `d`; in a chain the next run is spawned behind it, and started
 * by chain_next when `d` is durable */
void chain_run_ends(struct run *r, struct draft *d, enum ava_status status, const char *summary);
void chain_next(struct run *r);

/* person.c: what a run asks a person, and what is said to it */
#define PERSON_SAID_MAX 16 /* messages that a run has not read yet */

/* A question that is open; strings are borrowed until it is answered. */
struct question {
	char call_id[16];
	bool approval; /* yes or no, whether the call may start; else a question of the model's */
	bool quota;    /* of a parked run; wait, go on with another model, or stop */
	char call_hash[HASH_HEX_LEN + 1];
	char *text;                 /* for people */
	char *choices;              /* JSON array of strings; NULL: none */
	char *fallback;             /* what is taken when nobody answers; NULL: none */
	int64_t asked_ms, until_ms; /* wall */
};

/* record.c: "approval", "quota", "question" */
const char *question_kind(const struct question *q);
int person_ask(struct agent *a, unsigned call, const struct agent_ask *q, int64_t *until_ms);
void person_ask_end(struct agent *a, unsigned call, enum agent_asked how);
/* What was said and not told yet, as notices into `out` (room for
 * PERSON_SAID_MAX; good until person_told). Returns how many. */
unsigned person_notices(struct run *r, const char **out);
void person_told(struct run *r, struct draft *d); /* the results with them are in `d` */
/* The run ends: closes the question, says what was not read. */
void person_close(struct run *r, struct draft *d);
void person_free(struct run *r);

/* resume.c */
void run_checkpoints_free(struct run *r); /* who still waits is told AVA_ECANCELED */

/* restore.c */
struct restored {
	bool started;    /* it has called a model: a machine stands */
	int64_t last_ms; /* of the newest event, wall */
};
/* `r` as supervisor_adopt made it, from its log; then, if it was started, its machine
 * from the messages too: `file` is messages.jsonl, `body` and `info` what
 * messages_request made of it; NULL: they cannot be read, only totals are restored.
 * What a stop cut off is closed with the run's next commit (record_restored). AVA_ENOMEM;
 * AVA_ECORRUPT: the log was changed, or the two do not fit together. */
int restore_run(struct run *r, const char *file, size_t len, const struct buf *body,
		const struct messages_info *info, struct restored *out, struct ava_error *err);

/* supervisor.c */
void run_wait(struct run *r, struct run_wait *w);
void run_wait_cancel(struct run_wait *w);
/* In w->ended of a run that was cancelled: was the next of its chain, too? Then `w` waits
 * for that one: before its end is on disk a crash would let it go on. */
bool run_wait_next(struct run *r, struct run_wait *w);

void supervisor_ended(struct run *r);
void supervisor_free_run(struct run *r);

/* slots.c */
void supervisor_slot_want(struct run *r);
void supervisor_slot_drop(struct run *r);
void supervisor_out_of_memory(struct run *r);

#endif
