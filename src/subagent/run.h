/* One run in this process: its machine and the state that effects keep beside it. */
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
struct context_edit;
struct messages_info;
struct jw;
struct supervisor;
struct tally;
struct group;
struct infer_job;
struct copying;
struct memory;
struct run;
struct run_changes;
struct world_call;
struct person;
struct proof;
struct room_job;

/* Paths of an agent that is no subagent: Ava's turns are events of the daily log, and her
 * messages stand beside the session. */
struct run_place {
	const char *agent_id;  /* "ava" */
	const char *messages;  /* "sessions/…/x.messages.jsonl" */
	const char *artifacts; /* folder of outputs that were cut */
};

/* The run's record: files, log and conversation. */
struct run_record {
	struct outbox outbox;
	struct draft *draft;       /* collects the next commit; or NULL */
	struct run_log log;        /* numbers and hash of the run's log file */
	uint64_t types;            /* kinds of events written: set of event_bit */
	uint32_t message_lines;    /* lines of messages.jsonl */
	size_t messages_from;      /* byte of the newest cut in messages.jsonl; 0: none */
	struct hash_sha256 prefix; /* hash over head and lines of the request so far */
	int64_t request_bytes;     /* head and lines of the next request */
	size_t checked;            /* bytes of its lines that the last one had, without fault */
	uint8_t notices;           /* of the next request: set of enum record_notice */
	bool wordless;             /* the request has a head and no message yet */
	bool position_due;         /* the next commit writes a position */
	int32_t deltas;            /* positions since the last whole one */
	int64_t spare_bytes;       /* of them; the next one is whole when none are left */
	bool lost;                 /* memory ran out and a part is missing: write nothing more */
	bool turn_open;            /* the last reply's calls have no results line yet */
	bool unnoted;              /* the next draft notes the restart (record_restored) */
};

/*   MONEY ─► GATE ─► SAVE ─► WORK ─► WIRE ─► (reply)
 *                    │       ├────► BUILT ─► WIRE    others may have the run
 *                    │       ├────► AGAIN ─► (asked again: a new job)
 *                    │       └────► DELAY ─► (reply)     a local model
 *   HELD ─► MONEY    after a restart
 *   a failure on the way ─► FAILED ─► (the machine is told) */
enum call_state {
	CALL_NONE,   /* no call is under way */
	CALL_MONEY,  /* waits for money that other runs hold of a group's or the day's budget */
	CALL_GATE,   /* waits behind others for the line to the service */
	CALL_SAVE,   /* InferStart is on the way to the disk */
	CALL_WORK,   /* a pool thread builds the request, or answers it */
	CALL_BUILT,  /* the request is built, and this machine may not send it now */
	CALL_WIRE,   /* the service has the request */
	CALL_DELAY,  /* a local model's answer is here, and due later */
	CALL_HELD,   /* waits out the retry delay of an earlier process */
	CALL_AGAIN,  /* the attempt failed, the next one waits for its time */
	CALL_FAILED, /* the call failed for good */
};

/* The model call under way, and what is kept from one call to the next. */
struct run_call {
	enum call_state state;
	bool stopped;          /* the machine stopped the call under way */
	bool changed;          /* the model was replaced: hash the request anew */
	struct infer_job *job; /* NULL: CALL_NONE */
	/* Has the call failed, and is it made again without the machine knowing yet? NULL: no call
	 * was made. */
	bool (*has_failed)(const struct run *r);
	struct room_job *room;    /* makes room in the conversation before the call; or NULL */
	struct os_timer *timer;   /* continues the job; NULL while no call is made for long */
	struct budget_hold hold;  /* reserved money (money.c) */
	int64_t counted_microusd; /* cost of the run that the budgets of `hold` have counted */
	char id[16];              /* "i3" while InferStart has no InferEnd */
	int64_t began_ms;         /* when the call's first attempt began */
	int64_t started_ms, held_until_ms; /* when the newest attempt began; when CALL_HELD ends */
	struct retry retry;
	/* Attempts of this call; places of models.fallback looked at; attempts that timed out. */
	uint16_t attempts, fallbacks, late;
	const char *first_model; /* first model, once another took over; in spec->mem; or NULL */
	/* Why the last attempt failed, or the state in which it was stopped; owned; or NULL. */
	char *why;
	char *trouble; /* trouble of a service told in a conversation; owned; or NULL */
	/* Usage of the call when it was stopped; cost -1: not known; 0: nothing was sent. */
	struct usage cut;
	/* The caveat that the service counts less than was sent; in spec->mem; or NULL. */
	const char *doubt;
	/* Newest believed count of input in this process, and that request's bytes. */
	int64_t counted, counted_bytes;
};

/* Tools at work, and totals for result.json. */
struct run_tools {
	struct tool_env env; /* the run owns env.cwd_fd */
	struct list at_work; /* world_call.node */
	/* Calls that see the copy of the project (copying.c) run one after the other: those
	 * that wait, and the one at work. */
	struct list held;
	struct world_call *turn;
	struct world_call *check; /* waits until it is durable that it begins; or NULL */
	struct copying *copying;  /* makes the copy; or NULL */
	char *copy;               /* path of the copy; owned; NULL: not asked for yet */
	bool going;               /* held calls are being begun: do not recurse */
	unsigned running;         /* calls in at_work, and stopped ones that are not done */
	uint32_t *calls_before;   /* calls made before each iteration */
	size_t calls_cap;
	int32_t calls_at;
	int32_t calls_placed; /* calls_at and artifacts.len of the last position */
	size_t artifacts_placed;
	char last[64]; /* name of the tool called last, and when */
	int64_t last_wall_ms;
	int64_t bytes_read;
	uint32_t counts[ROLE_MAX_TOOLS]; /* successful calls, by spec->tools */
	uint32_t wanted;                 /* set of spec->tools: needed from now on (spec_brief.c) */
	struct buf artifacts;            /* paths as JSON strings, joined by commas */
	char layers[8]; /* beginning of the hash of the sandbox layers recorded last */
};

/* The end of the run. */
struct run_end {
	struct list waits;   /* run_wait.node: told when the end is durable */
	struct end_job *job; /* set when the end begins */
	/* Set with `job`: called when no tool is at work any more (or NULL); frees `job`. */
	void (*tools_done)(struct run *r), (*free)(struct run *r);
	int64_t wall_ms, used_ms; /* time of the end, and how much of the run's time was used */
	char *by, origin[16];     /* who cancelled the run (owned; or NULL), by which door */
	bool interrupted;         /* a crash cut the run, which is only ended now */
	bool abandoned;   /* nothing more happens in this process; the next one takes the run up */
	bool begun, done; /* the last commit is on its way to the disk; it is durable */
};

/* Does the run wait for others of its group (blocked.c)? Then it has no slot and no message yet. */
enum run_blocked { BLOCKED_NOT, BLOCKED_WAITS, BLOCKED_READS };

/* The wait for the quota of a service (park.c). */
struct run_park {
	int64_t until_ms; /* wall; 0: the run is not parked */
	int64_t back_ms;  /* until_ms of the last wait; 0 once the next call is at the gate */
	int64_t told_ms;  /* when a person was last told of a wait; wall */
	/* Sum of the waits of one call, and the iteration of that call. */
	int64_t waited_ms, iteration;
	uint16_t count; /* how often the run was parked */
	bool quiet;     /* no notice: a person knows of this limit already */
	char limit[64]; /* "weekly limit of anthropic" */
	char *model;    /* model that a person chose to go on with; owned; or NULL */
};

/* A pause that a person asked for (pause.c); agent.paused is its flag. */
#define PAUSE_NO_END INT64_MAX
struct run_pause {
	int64_t until_ms; /* wall; 0: none; PAUSE_NO_END: until it is unpaused */
	int64_t most_ms;  /* from the record: how long it was to be */
	int64_t end_ms;   /* monotonic: it is over then at the latest */
	char shown[48];   /* pause_words, as a status borrows it */
	bool resting;     /* the turn has ended, or another process began it */
	struct os_timer *timer;
	struct list saying; /* struct pause_said */
};

struct run {
	struct agent agent; /* the machine */
	struct run_record rec;
	struct run_call call;
	struct run_park park;
	struct run_pause pause;
	struct run_tools tools;
	struct run_end end;
	struct supervisor *sup;
	struct run_spec *spec; /* owned */
	struct run_id id;
	struct trace_name trace;
	const struct run_place *place; /* NULL: a subagent, with files of its own */
	char *session_file;            /* path of the conversation's file; owned; or NULL */
	char proposal[24];             /* "" when spawned without one */
	struct group *group;           /* NULL: the run is in none */
	struct list node, queue;       /* in supervisor.live or .ended; in .waiting for a slot */
	struct person *person;         /* questions of the run and messages to it; or NULL */
	struct run_checkpoints *checkpoints; /* named positions; or NULL */
	struct proof *proof; /* what its check said last (proof.h); owned; or NULL */
	struct os_task wake, reap;
	void (*unused)(struct run *r); /* called when the end is done and nothing points to it */
	struct os_timer *timer;        /* wakes the machine, as agent_io.wake_at asks */
	unsigned busy;                 /* jobs and tool calls that still point here */
	unsigned watched;              /* who wants the text of a subagent's model as it comes */
	int64_t spawned_wall_ms, started_wall_ms;
	char activity[160];
	enum run_blocked blocked;
	bool durable, cancel_wanted; /* the spawn is on disk; a cancel came before that */
};

/* A listener, called once when the run's end is durable (loop thread). */
struct run_wait {
	struct list node;
	/* Also called when the runtime stops before: then r->end.done is false. */
	void (*ended)(struct run_wait *w, struct run *r);
};

/* supervisor.c: `spec` stays the caller's on error. A supervisor without a loop is that of a
 * replay: nothing wakes the run by itself. AVA_ENOMEM. */
int run_init(struct run *r, struct supervisor *sup, struct run_spec *spec);
void run_fini(struct run *r); /* nothing may point to it any more */

/* Path of the run's messages below the root. */
void run_messages_path(const struct run *r, char out[LOGBOOK_PATH]);
/* The messages whole, or from the byte *from on (logbook_read_from). Any thread. */
int run_messages_read(const struct run *r, size_t *from, char **file, size_t *len,
		      struct ava_error *err);
/* Reads a short conversation that is in memory, which costs the loop less than waking a
 * thread. Returns its length, or -1. */
#define RUN_AT_ONCE_MAX (64u << 10)
ssize_t run_messages_cached(const struct run *r, char text[RUN_AT_ONCE_MAX]);
#define RUN_WORK "runs/%s/work" /* working folder of commands; made when first used */
#define RUN_CHECK                                                                                  \
	"runs/%s/check/%d" /* working folder of one check, by its iteration; no tool sees it */
/* Folder of outputs that were cut. */
void run_artifacts_path(const struct run *r, char out[LOGBOOK_PATH]);
#define RUN_ARTIFACT_PATH (LOGBOOK_PATH + 32) /* with room for "/", a call's id, "." and a type */
void run_artifact_path(const struct run *r, const char *call, const char *type,
		       char out[RUN_ARTIFACT_PATH]);

enum ava_status run_status(const struct run *r); /* the status shown to people */
/* Used time of the run, until its end or now. */
int64_t run_elapsed_ms(const struct run *r);
/* Cost in micro-USD; -1 when only calls of unknown price were made. */
int64_t run_cost(const struct run *r);
/* Number of calls whose tokens are an estimate: no service told them, or none that can be
 * believed. 0 for a model within ava, which counts exactly. */
int run_estimated(const struct run *r);

/* ---- all runs of this process */

/* The budgets of periods (money.c). */
struct budgets {
	struct budget all[SETTINGS_BUDGETS]; /* in the order of budgets_list; [0] is the day's */
	unsigned n;
	uint64_t limited; /* set of places in `all` */
	struct {
		char begins[11]; /* first day of the period that is counted, local; "": none yet */
		char before[11]; /* of the one counted before */
	} of[CLOCK_PERIODS];
	int64_t seen_ms;     /* latest time in the day that is counted */
	struct spends ended; /* as the start found it */
	struct list alerts;  /* not in the log yet (ava/budgets.c) */
	struct os_task alert;
};

struct supervisor {
	struct os_loop *loop;
	struct logbook *book;
	const struct settings *settings;
	struct list live;     /* run.node: not yet done */
	struct list waiting;  /* run.queue: waits for a slot */
	struct list ended;    /* run.node: end.done; freed when nothing points to it */
	struct strmap by_id;  /* live runs */
	struct strmap groups; /* struct group by id */
	struct nameset names; /* run ids and trace names ever used */
	struct quotes quotes;
	struct spend spend; /* spending of runs that ended */
	struct budgets money;
	/* Provider that reported a cost for a model whose price is 0; or NULL. */
	const struct provider *bills_free;
	uint64_t ranks;           /* runs made so far in this process */
	struct wire_lines *lines; /* connections to model services */
	struct learner *learner;  /* learns the windows of models */
	struct tally *tally;      /* counters of this process; owned; NULL: none */
	struct pages *pages;      /* web pages of the tools; owned; or NULL */
	struct mcp_client *mcp;   /* MCP servers of the tools; *borrowed*; or NULL */
	/* Listener to the text of replies as it comes; or NULL. */
	void (*on_text)(struct run *r, const char *s, size_t n, bool thinking);
	/* Listener: a run asks a person; or NULL. */
	void (*on_ask)(struct run *r);
	/* Path of a conversation's file, malloc'd; NULL: no such conversation. */
	char *(*session_file)(const char *session_id, void *user);
	/* Listener: a run has ended, and proposes to change `files`; or NULL. */
	void (*on_patch)(struct run *r, size_t files, void *user);
	/* Listener: what a run has cost was counted in the budgets of its hold; or NULL. */
	void (*on_budget)(struct run *r, void *user);
	void *session_user;    /* of session_file, on_patch and on_budget */
	char *keep_out[3];     /* for tool_env.keep_out; owned */
	struct memory *memory; /* for tool_env.memory; or NULL */
	unsigned slots_used, nlive, nwaiting;
	uint64_t total;   /* runs ever spawned in this root */
	uint64_t settled; /* up to this lsn the daily logs have nothing to take up */
	bool took_up;     /* all that they have behind it was read */
	bool closing;     /* no new slots */
	bool shared;      /* other machines give ids of runs, too */
};

/* ---- the runs of a group */

struct group_member {
	char id[24], trace[48];
	char head[HASH_HEX_LEN + 1]; /* hash of the log, once the end is durable; "": not known */
	const struct run_log *log;   /* the log, from the end's draft until it is durable */
	int number;                  /* of the run in its group */
	enum ava_status status;
	bool ended;
};

struct group {
	char id[24];
	struct supervisor *sup;
	struct budget money;
	struct os_timer *timer;
	int64_t time_ms;       /* 0: no deadline */
	int64_t begun_wall_ms; /* first spawn; 0: unknown */
	int64_t seen_wall_ms;  /* newest time in the record of an earlier process */
	/* The newest position in that record: used time, and when it was written; 0: none. */
	int64_t noted_ms, noted_wall_ms;
	int64_t started_ms; /* monotonic, less what was used before this process */
	int64_t used_ms;    /* used time, fixed while `waits` */
	bool waits;         /* every run that has not ended is parked: the clock stands still */
	int size;           /* how many runs the group may have */
	bool chain, running, expired; /* chain: only a word for people */
	unsigned nmembers, nruns;     /* runs ever spawned; runs in memory */
	size_t cap;
	struct group_member *members; /* in spawn order; does not move while one runs */
};

/* ---- calls between the parts of a run: one machine in several files, which include this
 * header and not each other. */

/* world.c: the effects that the machine asks for, and those that a replay has too */
extern const struct agent_io world_io;
void world_saved(int rv, void *user); /* what the machine of run `user` waited for is durable */
int64_t world_save_reply(struct agent *a, const struct turn *t, bool wait);
int64_t world_save_results(struct agent *a, struct turn *t, const char *const *notices,
			   unsigned nnotices, unsigned warned);

/* commit.c */
/* The draft of the run's next commit, opened when needed; NULL: no memory (the run then ends
 * with an error). */
struct draft *commit_draft(struct run *r);
/* Commit the open draft. `done` may be NULL. */
void commit_flush(struct run *r, enum journal_level level, void (*done)(int rv, void *user));
/* Adds `lines` (joined by \n, without the last one) to messages.jsonl and so to the next
 * request. Returns how many bytes longer the request is. */
int64_t commit_lines(struct run *r, const char *lines, size_t len);
/* Bytes that the next commit appends to messages.jsonl; NULL: no memory. */
struct buf *commit_messages(struct run *r);
/* Number of lines that a draft adds to messages.jsonl. */
uint32_t run_checkpoint_lines(const struct run *r, const struct draft *d);

/* run.c */
/* Let the machine go on in this loop turn. */
void run_wake(struct run *r);
void run_activity(struct run *r, const char *text);
bool run_proof(struct run *r, const struct proof *p); /* keeps a copy; false: no memory */
/* A tool call is over: an end that waits for the last one goes on. */
void run_tool_done(struct run *r);
/* Free the run once nothing points to it any more. */
void run_release(struct run *r);

/* Opens the working folder once for all calls; runs that wait for a slot or a person have it
 * closed. AVA_ENOENT, AVA_EBUSY (too many files are open). */
int run_open_folder(struct run *r, struct ava_error *err);
bool park_waits(const struct run *r); /* parked until a time, not asking a person */

/* ---- tools at work (toolrun.c), and the run's own past (recall.c) */
int toolrun_start(struct agent *a, unsigned call);
int toolrun_check(struct agent *a);
void toolrun_stop(struct agent *a);
/* Writes the names of the tools at work into an open array. */
void toolrun_names(const struct run *r, struct jw *w);
void toolrun_activity(struct tool_env *env, const char *line);
void toolrun_state_read(struct tool_env *env, const char *key);
void toolrun_layers(struct tool_env *env, const char *json);
/* The result of an earlier call as it was recorded, also when it was removed since. AVA_ENOENT. */
int recall_result(struct run *r, struct call_ref at, struct buf *out, struct ava_error *err);
int toolrun_fetch(struct tool_env *env, const char *call_id, struct buf *out,
		  struct ava_error *err);
/* Implements tool_env.told. */
int toolrun_told(struct tool_env *env,
		 int (*each)(bool person, const char *text, size_t len, void *user), void *user,
		 struct ava_error *err);
/* Counts the calls of a turn, before they are saved, so that call ids can be found. */
int toolrun_count(struct run *r, unsigned ncalls);
extern pthread_mutex_t toolrun_calls; /* held to read calls_before and calls_at */

/* ---- copying.c: the private copy of the project (tool/copy.h) of a run with the grant rw */
bool copying_wanted(const struct run *r);
/* Makes the copy, off the loop; `ready` is called once with 0 or the error. One at a time. */
void copying_make(struct run *r, void (*ready)(struct run *r, const struct ava_error *err));
void copying_stop(struct run *r);
/* The changes in the copy, when no tool is at work any more. On a pool thread. */
struct run_changes *copying_look(const struct run *r);
/* Adds the patch as an artifact to the commit of the end. */
void copying_put(struct run *r, struct draft *d, const struct run_changes *c);
#define COPY_TREE      "copies/%s/tree"
#define COPY_UNCHANGED "copy_unchanged" /* true: the copy is as the folder */
/* Member of result.json: "patch", "copy_kept" (no patch could be made), COPY_UNCHANGED or none. */
void copying_result(const struct run *r, const struct run_changes *c, struct jw *w);
/* The paths of the changes, those that the patch leaves out too; a new list of texts. */
json_t *copying_paths(const struct run_changes *c);
const char *copying_failed(const struct run_changes *c); /* why there is no patch; or NULL */
size_t copying_files(const struct run_changes *c);       /* files that it proposes to change */
/* Removes the copy, off the loop, after a durable end, unless no patch could be made. */
void copying_remove(struct run *r, const struct run_changes *c);
void copying_free(struct run_changes *c); /* NULL is fine */
/* At a start: removes, off the loop, copies of ended runs whose result.json has the patch or
 * says that there were no changes. */
void copying_sweep(struct supervisor *sup);
/* The changes in the copy of a run that goes to another machine, as *patch (owned, maybe empty), in
 * the file of its folder that copying_make applies to the copy there. Blocks. AVA_ENOENT: no copy;
 * AVA_EUNSUPPORTED, AVA_ETOOBIG: something cannot travel. */
int copying_pack(const struct run *r, char **patch, size_t *len, struct ava_error *err);
void copying_travel_path(const char *id, char out[LOGBOOK_PATH]);
/* Removes the copy of a run that others have had since, or have now. */
void copying_forget(struct supervisor *sup, const char *id);

/* ---- ending.c */
/* Writes what is known when the end begins: ending_close, Exhausted and Error. */
void ending_begin(struct run *r, struct draft *d, const struct agent_end *e);
void ending_start(struct agent *a, const struct agent_end *end);
/* Writes what is still missing: the question's end, a result for each call, an InferEnd. */
void ending_close(struct run *r, struct draft *d, const char *stop_reason);

/* park.c: a run waits without a slot until the quota of its service is back */
struct wire_line;
/* May the run be parked for wait_ms more? */
bool park_may(const struct run *r, int64_t wait_ms);
/* The service refuses for wait_ms: `e` names the limit. park_tell tells the machine. */
void park_begin(struct run *r, struct wire_line *line, int64_t wait_ms,
		const struct reply_error *e);
/* At the gate: parks the run when the service refused another one. A wait that is over ends
 * for the whole line. */
bool park_at_gate(struct run *r, struct wire_line *line);
void park_tell(struct run *r, bool made);
/* Appends why the run is not parked to the sentence of its end; for Ava's turn, replaces it. */
void park_why_not(const struct run *r, const struct reply_error *e, const char *back, char *text,
		  size_t size);
/* The service answers before its time: ends the waits for that model. */
void park_over(struct supervisor *s, const struct model *m);
/* Ends a wait that is over by the wall clock, which may have jumped. */
void park_look(struct run *r);
int64_t park_until(const struct run *r); /* when the wait of a parked run ends, monotonic */
/* The question of a parked run to a person, and its outcome. AVA_ENOMEM. */
struct question;
int park_question(struct run *r, struct question *q);
void park_asked(struct run *r, bool before);
void park_ended(struct run *r, enum agent_asked how);
/* Restores from Waiting events, in order; park_stand when all of them are read. */
void park_restore(struct run *r, const json_t *content, int64_t wall_ms);
void park_stand(struct run *r);

/* pause.c: a run stands still because a person said so. `done` is called once, when that is on
 * disk; AVA_ECANCELED: the runtime stops before. */
typedef void (*pause_fn)(int rv, void *user);
/* `until_ms`: wall, or PAUSE_NO_END. 1: it is so already, `done` is not called. AVA_EEXIST: it is
 * paused until another time, or is not paused; AVA_EINVAL: that time is over; AVA_ENOMEM. */
int run_pause(struct run *r, int64_t until_ms, const char *by, const char *origin, pause_fn done,
	      void *user, struct ava_error *err);
int run_unpause(struct run *r, const char *by, const char *origin, pause_fn done, void *user,
		struct ava_error *err);
bool pause_rests(const struct run *r); /* paused, and nothing of it is at work */
void pause_words(const struct run *r, char *out, size_t size); /* "paused until 18:40" */
bool pause_rest(struct agent *a);
/* Restores from Waiting events of kind pause, in order; pause_stand when the machine is restored.
 * AVA_ENOMEM. */
void pause_restore(struct run *r, const json_t *content, int64_t wall_ms);
int pause_stand(struct run *r);
void pause_close(struct run *r, struct draft *d); /* the run ends */
void pause_free(struct run *r);

/* infer.c: model calls */
/* The hashes of the request that `call` sends: of its head and lines, and with its parameters.
 * AVA_ENOMEM. */
int infer_hash(const struct run *r, const struct agent_infer *call, char prefix[HASH_HEX_LEN + 1],
	       char request[HASH_HEX_LEN + 1]);
int infer_start(struct agent *a, const struct agent_infer *call);
void infer_stop(struct agent *a);
/* Bytes of the reply that the model has written so far; -1: no service has a call. */
int64_t infer_written(const struct run *r);
/* Somebody watches from now on: tell the text of the reply under way from its beginning. */
void infer_watched(struct run *r);
/* Replaces a count that cannot be true (no more for a request that has grown): the service
 * does not count, or has cut the conversation. Then r->call.doubt may tell the person. */
void infer_doubt(struct run *r, struct usage *u);
/* Charges an attempt without a reply; *u: how much. */
struct wirecall_end;
void infer_charge(struct run *r, const struct wirecall_end *end, bool began, struct usage *u);
/* Takes another model (or the same in another dialect) from the next call on, by an amendment
 * line in the draft. false: impossible. */
bool infer_amend(struct run *r, const struct model *m, bool another);
void infer_changed(struct run *r); /* forgets what was learned of the model before */
/* No call is made for long: give back what only calls need. */
void infer_wait_long(struct run *r);
/* The runtime stops: writes the usage of a call in flight, which the next start would have to
 * guess. */
void infer_interrupted(struct run *r);
/* Estimates the charge of a call in flight that is cut. */
void infer_estimate(const struct run *r, struct usage *u);
/* Writes the InferEnd of an open call, if any, with that estimate. */
void infer_close_cut(struct run *r, struct draft *d, const char *error_class, const char *sentence);

/* Asks again without the field that a refusal names (infer_repair.c); false: that would not
 * help. Ends, since each time another field is left out and the list of fields has an end. */
bool infer_repair(struct run *r, const struct agent_infer *call, const char *words);
/* May a request of fewer than `bytes` pass? Then *told has the sizes that the refusal tells. */
bool infer_lower(const struct agent_infer *call, const struct reply_error *e, int64_t bytes,
		 struct agent_told *told);

struct wirecall_end;
/* Writes the InferEnd of a failed attempt with the charge `usage`; retry_ms -1: no attempt
 * follows. */
void infer_write_failure(struct run *r, const struct wirecall_end *end, const struct usage *u,
			 const struct agent_told *told, int64_t retry_ms);
void infer_sentence(const struct run *r, const struct wirecall_end *end,
		    const struct retry_plan *plan, char *text, size_t size);

/* room.c: room in a conversation (agent_io.compact) */
int room_make(struct agent *a, const struct agent_compact *c);
/* Plans the edit of `file`, the conversation or its part from the newest cut on; `repeats`: the
 * calls made so far; *prefix: hash over the request that is left. A code, with *err. */
int room_plan(struct run *r, const struct agent_compact *want, const struct repeats *repeats,
	      const char *file, size_t len, struct context_edit *e, struct hash_sha256 *prefix,
	      struct ava_error *err);
/* Adds the edit to the next commit. AVA_ENOMEM. */
int room_write(struct run *r, const struct agent_compact *want, const struct context_edit *e,
	       const struct hash_sha256 *prefix);
/* Stops room_make: nothing is written, agent_on_compacted does not come. */
void room_stop(struct run *r);

/* money.c: the budgets of a run's group, of days, weeks and months, of folders and tags */
void money_init(struct supervisor *s);
/* After a restart: counts the local day of wall_ms, its week and its month if they are later than
 * those counted. */
void money_seen(struct supervisor *s, int64_t wall_ms);
/* After a restart: counts the cost of runs that ended in these periods. */
void money_restore(struct supervisor *s);
/* A run that was restored: its cost counts in its group, and in the periods. */
void money_restored(struct run *r);
/* Micro-USD that count against today's budget, of all machines that share it. */
int64_t money_day(struct supervisor *s);
/* Gives a new run its place among the budgets. */
void money_begin(struct run *r, const struct run_spec *spec);
const char *money_period(const struct budget *b); /* "day", "week", "month" */
/* "this week's budget", "the budget of /srv/site today" */
#define MONEY_NAME 320
void money_name(const struct budget *b, char out[MONEY_NAME]);

/* Reserves money for a call: 0; BUDGET_WAITS: hold.go follows; AVA_EBUDGET: money_refused
 * says why. */
int money_ask(struct run *r, int64_t max_output);
/* Output tokens that the reserved money pays for. */
int64_t money_lowered(const struct run *r, int64_t max_output);
void money_refused(const struct run *r, char *out, size_t size);
/* "Waiting for the day's budget" */
void money_waits(const struct run *r, char *out, size_t size);
/* Stops waiting for money. Money held for the call is settled when it is charged. */
void money_stop(struct run *r);
/* The run's totals have changed, or no call is under way any more. */
void money_settle(struct run *r);
/* Implements agent_io.shared. */
void money_shared(struct agent *a, struct agent_shared *out);

/* group.c */
/* A run with an id takes its place in the group; stays alone when all are taken (a fork of a
 * member). AVA_ENOMEM. */
int group_enter(struct run *r);
void group_leave(struct run *r); /* before it is freed */
void group_run_starts(struct run *r);
/* Used time in ms; 0: no deadline. */
int64_t group_used_ms(const struct group *g);
/* The run's end is in `d`; Join follows the last one. group_end_saved when `d` is durable. */
void group_run_ends(struct run *r, struct draft *d, enum ava_status status);
void group_end_saved(struct run *r);
/* Path below the root of what a reference to another member names: "S-7f3a2b" or "sibling:2"
 * (the second member), either with ":c3.1" behind it. A run may read those that it began after,
 * with `share` all. AVA_EDENIED, AVA_EINVAL with a sentence. On a pool thread, while the run is at
 * work. */
int group_reference(const struct run *r, const char *ref, char out[128], struct ava_error *err);
void groups_fini(struct supervisor *s);
/* A member is parked, or is back: the group's clock stands still while all are parked. */
void group_waits(struct run *r);
/* Writes Fork, when all that begin together are spawned into the same draft. */
void group_fork(struct run *r, struct draft *d);
/* At a start: takes rows in their order, before the runs that go on enter. */
int group_restore(struct supervisor *s, const struct catalog_row *row);
/* Newest time in the record of a run that goes on. */
void group_seen(struct run *r, int64_t wall_ms);
/* A position of the run says how much of the group's time was used then. */
void group_noted(struct run *r, int64_t used_ms, int64_t wall_ms);
/* Forgets groups without a run, and starts the clocks of the others; or of the group `id` alone. */
void group_restored(struct supervisor *s, const char *id);

/* blocked.c */
void blocked_waits(struct run *r); /* for others of its group, until blocked_look */
/* Let the blocked runs of the group (NULL: of all) begin whose others have succeeded, and end those
 * of which one did not: at any time, after group_end_saved, and after group_restored. */
void blocked_look(struct supervisor *s, const struct group *g);
void blocked_end_saved(struct run *r);
void blocked_restored(struct supervisor *s, const char *id);
/* Member "after" of the result of a run that never began: ids of the others. */
void blocked_write(const struct run *r, struct jw *w);
/* Findings of the runs of these ids, for a context; `window` in tokens, 0: unknown. `was`: the runs
 * of the group that they came of; NULL: they are of it, and read_result gives the whole. Any
 * thread. */
int blocked_outcomes(struct buf *out, int root_fd, const char (*ids)[24], const char (*was)[24],
		     size_t n, int64_t window);
/* The beginning of such a run: the amendment with the outcomes, and its first message. */
int blocked_lines(struct run_spec *s, const struct buf *outcomes, struct buf *amendment,
		  struct buf *line);

/* person.c: questions to a person, and messages from people */
#define PERSON_SAID_MAX 16 /* messages that a run has not read yet */

/* A question that is open; strings are borrowed until it is answered. */
struct question {
	char call_id[16];
	bool approval; /* asks whether the call may start; else a question of the model */
	bool quota;    /* of a parked run: wait, take another model, or stop */
	char call_hash[HASH_HEX_LEN + 1];
	char *text;                 /* for people */
	char *choices;              /* JSON array of strings; NULL: none */
	char *fallback;             /* answer when nobody gives one; NULL: none */
	int64_t asked_ms, until_ms; /* wall */
};

/* record.c: "approval", "quota", "question" */
const char *question_kind(const struct question *q);
int person_ask(struct agent *a, unsigned call, const struct agent_ask *q, int64_t *until_ms);
void person_ask_end(struct agent *a, unsigned call, enum agent_asked how);
/* Messages that the model has not seen, as notices into `out` (room for PERSON_SAID_MAX; good
 * until person_told). Returns how many. */
unsigned person_notices(struct run *r, const char **out);
void person_told(struct run *r, struct draft *d); /* the results line with the notices is in `d` */
/* The run ends: closes the question, records messages that were not read. */
void person_close(struct run *r, struct draft *d);
void person_free(struct run *r);

/* resume.c */
void run_checkpoints_free(struct run *r); /* requests that wait get AVA_ECANCELED */

/* restore.c */
struct restored {
	const json_t *position; /* set before: the newest of a conversation; NULL: none */
	/* The run has called a model, of a conversation a turn is open: its machine can be
	 * restored. */
	bool started;
	int64_t last_ms; /* time of the newest event, wall */
};
/* Restores `r`, made by supervisor_adopt or run_init, from its log and, if it was started, from its
 * messages: `file` is messages.jsonl, `body` and `info` are of messages_request; body NULL: they
 * cannot be read, only totals are restored. The run's next commit closes a call that was cut
 * (record_restored). AVA_ENOMEM; AVA_ECORRUPT: the log was changed, or does not fit the
 * messages. */
int restore_run(struct run *r, const char *file, size_t len, const struct buf *body,
		const struct messages_info *info, struct restored *at, struct ava_error *err);
/* The positions of a conversation: is a turn under way (NULL: no)? Each has the calls of its own
 * turn alone: count those of every one in order, so that their results can be found. AVA_ENOMEM,
 * AVA_ECORRUPT. */
bool restore_is_open(const json_t *position);
int restore_calls(struct run *r, const json_t *position);
/* The decision of a person about a call, by the Waiting event that ended the question, becomes the
 * call's result, or leave to start it. 0 or AVA_ENOMEM. */
int restore_decision(const json_t *waiting, struct turn *t, struct turn_call *to);

/* supervisor.c */
void run_quiesce(struct run *r); /* nothing more of the run begins in this process */
void run_wait(struct run *r, struct run_wait *w);
void run_wait_cancel(struct run_wait *w);

void supervisor_ended(struct run *r);
void supervisor_free_run(struct run *r);

/* slots.c */
void slots_want(struct run *r);
void slots_drop(struct run *r);
void slots_out_of_memory(struct run *r);

#endif
