/* ava.h - the public face of ava.
 *
 * A program either has the runtime inside itself (ava_runtime_new) or talks to
 * the daemon of a data root (ava_runtime_connect); every call after that is the
 * same. Reading log files needs neither (ava_log_open).
 *
 * Conventions. Functions return 0 (or a count) or a negative enum ava_code;
 * `err`, where a function takes one, may be NULL, else it then holds one
 * sentence without a newline. Pointers are *copied*, *borrowed until X* or
 * *taken*; what a call fills in is borrowed until the next call on the same
 * runtime unless it says otherwise. Strings are UTF-8, never NULL in what a
 * call fills in ("" when there is none). A structure of zeros means defaults,
 * in what is given. Times: `_ms` milliseconds, those of events and ends since
 * 1970 (UTC). Money: `_microusd`, millionths of a US dollar; -1 in what a call
 * fills in: unknown. */
#ifndef AVA_H
#define AVA_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AVA_API __attribute__((visibility("default")))

/* clang-format off: tables */
/* name, number, word used in JSON errors ("code"), text */
#define AVA_ERRORS(X)                                                                              \
	X(AVA_OK, 0, "ok", "no error")                                                             \
	X(AVA_ENOMEM, -1, "no_memory", "out of memory")                                            \
	X(AVA_EINVAL, -2, "invalid", "invalid argument")                                           \
	X(AVA_ENOENT, -3, "not_found", "no such thing")                                            \
	X(AVA_EEXIST, -4, "exists", "already exists")                                              \
	X(AVA_EBUSY, -5, "busy", "in use")                                                         \
	X(AVA_EIO, -6, "io", "input or output failed")                                             \
	X(AVA_EFULL, -7, "disk_full", "the disk is full")                                          \
	X(AVA_EUNKNOWN, -8, "unknown", "the outcome is unknown: ask again")                        \
	X(AVA_ECORRUPT, -9, "corrupt", "damaged data")                                             \
	X(AVA_EFORMAT, -10, "newer_format", "written by a newer ava")                              \
	X(AVA_ETOOBIG, -11, "too_big", "over a size limit")                                        \
	X(AVA_EBUDGET, -12, "budget", "over a budget")                                             \
	X(AVA_ECANCELED, -13, "cancelled", "cancelled")                                            \
	X(AVA_ETIMEOUT, -14, "timeout", "ran out of time")                                         \
	X(AVA_EREJECTED, -15, "rejected", "rejected")                                              \
	X(AVA_EEXPIRED, -16, "expired", "expired")                                                 \
	X(AVA_EDENIED, -17, "denied", "not allowed")                                               \
	X(AVA_ECONNECT, -18, "unreachable", "cannot be reached")                                   \
	X(AVA_EPROTO, -19, "protocol", "the other side broke the protocol")                        \
	X(AVA_EUNSUPPORTED, -20, "unsupported", "not supported here")                              \
	X(AVA_EINTERRUPTED, -21, "interrupted", "interrupted, may have happened")

enum ava_code {
#define X(name, number, word, text) name = number,
	AVA_ERRORS(X)
#undef X
};

struct ava_error {
	int code;
	char text[512];
};

/* Status of a run; from AVA_SUCCESS on it says how the run ended. The order is part of the ABI.
 * AVA_NO_RESULT: the run ended with a text and submitted nothing. AVA_BLOCKED: it waits for others
 * of its group; AVA_NOT_STARTED: one of those did not succeed. AVA_UNPROVEN: its result is kept,
 * but its check (ava_spawn.check) did not pass, or could not be run. */
#define AVA_STATUSES(X)                                                                            \
	X(AVA_STARTING, "starting")                                                                \
	X(AVA_QUEUED, "queued")                                                                    \
	X(AVA_RUNNING, "running")                                                                  \
	X(AVA_WAITING, "waiting")                                                                  \
	X(AVA_PARKED, "parked")                                                                    \
	X(AVA_BLOCKED, "blocked")                                                                  \
	X(AVA_PAUSED, "paused")                                                                    \
	X(AVA_SUCCESS, "success")                                                                  \
	X(AVA_TIMEOUT, "timeout")                                                                  \
	X(AVA_COST_EXCEEDED, "cost_exceeded")                                                      \
	X(AVA_TOKENS_EXCEEDED, "tokens_exceeded")                                                  \
	X(AVA_ITERATIONS_EXCEEDED, "iterations_exceeded")                                          \
	X(AVA_CANCELLED, "cancelled")                                                              \
	X(AVA_ERROR, "error")                                                                      \
	X(AVA_NO_RESULT, "no_result")                                                              \
	X(AVA_NOT_STARTED, "not_started")                                                          \
	X(AVA_UNPROVEN, "unproven")
/* clang-format on */

enum ava_status {
#define X(name, word) name,
	AVA_STATUSES(X)
#undef X
		AVA_NSTATUSES
};

/* Static text of a code or status; never NULL. */
AVA_API const char *ava_strerror(int code);
AVA_API const char *ava_status_name(enum ava_status status);
AVA_API const char *ava_version(void);

/* ---- Reading the log files of a data root. No daemon, no threads; one
 * thread uses a reader at a time. Files are read as they are: a caller that
 * finds no daemon alive may want `avad --recover` to run first. */

struct ava_log; /* opaque */

struct ava_log_query {
	const char *root;  /* data root; NULL: $AVA_DATA_ROOT; *copied* */
	const char *run;   /* "S-7f3a2b": a run's log; NULL: Ava's daily logs; *copied* */
	const char *types; /* names, aliases or prefixes, in any case: "tool,err"; NULL: all */
	uint64_t after;    /* only events with a greater lsn; 0: all */
	uint64_t last;     /* only the newest `last` of them; 0: all */
	int everything;    /* 1: read Ava's logs and those of all runs */
	int follow;        /* 1: also give events written later, as they come */
	/* Only events that fit each of these are given; doc/QUERY.md has the forms. NULL: no
	 * condition. All are *copied*. */
	const char *agent;   /* agentId ("ava", "S-7f3a2b") or the name of a trace */
	const char *user;    /* the event's userId */
	const char *session; /* the event's sessionId */
	const char *since;  /* events from then on: "1 hour ago", yesterday, 2026-11-21, RFC 3339 */
	const char *until;  /* events before then; forms as in `since` */
	const char *search; /* text in the line; case counts only when it has a capital letter */
	const char *regex;  /* PCRE2 expression that fits the line; case as in `search` */
};

struct ava_log_event { /* borrowed until the next call on the reader */
	uint64_t lsn, seq;
	int64_t time_ms;  /* since 1970, UTC */
	char type[40];    /* "ToolCall" */
	const char *line; /* the event's line as the file has it, without the newline */
	size_t len;
	const char *file; /* path of the file, relative to the root */
	uint64_t offset;  /* where the line begins in that file, bytes */
};

/* On error *log is NULL. AVA_EINVAL (run, types), AVA_ENOENT (no such log),
 * AVA_EFORMAT, AVA_EDENIED, AVA_EIO, AVA_ENOMEM. */
AVA_API int ava_log_open(struct ava_log **log, const struct ava_log_query *query,
			 struct ava_error *err);
/* Events of several files come merged by lsn, each once. 1: *event is filled.
 * 0: the end; when following: nothing more for now. AVA_ECORRUPT: a line that
 * is no event (`err` names file and offset), or a file that is missing; the
 * next call goes on behind it. Other negative codes: reading failed, close the reader. */
AVA_API int ava_log_next(struct ava_log *log, struct ava_log_event *event, struct ava_error *err);
/* Only when following, after ava_log_next gave 0: wait until there may be
 * more (1), or `timeout_ms` have passed or a signal came (0). */
AVA_API int ava_log_wait(struct ava_log *log, int timeout_ms);
AVA_API void ava_log_close(struct ava_log *log); /* NULL is allowed */

/* ---- Verifying sealed logs. Reads a data root and changes nothing. doc/SEALS.md says what a
 * success proves, and what not. */

struct ava_log_head { /* the newest seal; a copy kept elsewhere shows a later cut of the logs */
	uint64_t n;   /* the seal's number; 0: there is no seal */
	char hash[65], key[65]; /* hash of the seal, key that signed it; hexadecimal */
	char at[32];            /* time of the seal, RFC 3339 */
};

enum ava_finding_kind {
	AVA_BROKEN,   /* differs from the sealed content */
	AVA_UNSEALED, /* not sealed yet, so it cannot be checked */
	AVA_NOTE      /* information, nothing is wrong */
};

struct ava_finding { /* borrowed until the callback returns */
	enum ava_finding_kind kind;
	const char *path; /* path of the file, relative to the root; "": none */
	uint64_t line;    /* number of the line, from 1; 0: no certain line */
	uint64_t offset;  /* where the line begins, or would if it is missing; bytes */
	const char *what; /* one sentence, without a full stop */
};

struct ava_verify {               /* read during the call only */
	const char *root;         /* NULL: $AVA_DATA_ROOT */
	const char *const *paths; /* "catalog.jsonl", "logs/ava", "S-7f3a2b"; NULL: all */
	size_t npaths;
	/* a head kept earlier, which the seals must still contain; NULL: none */
	const struct ava_log_head *head;
	unsigned threads; /* threads that read; 0: two */
	/* Called for each finding; may be NULL. */
	void (*finding)(const struct ava_finding *finding, void *user);
	/* Called with the bytes done and all bytes; may be NULL. */
	void (*progress)(uint64_t done, uint64_t total, void *user);
	void *user;
};

struct ava_verified {
	uint64_t files, bytes, seals; /* numbers of what was checked */
	uint64_t broken;              /* AVA_BROKEN findings; 0: everything is as sealed */
	uint64_t unsealed_files, unsealed_bytes;
	struct ava_log_head newest;
};

/* Both callbacks are called on the calling thread, findings in the order of paths. 0 when the
 * check could be done, whatever it found. AVA_EINVAL (run), AVA_ENOENT: no such root, or none of
 * `paths` exists or was ever sealed. */
AVA_API int ava_log_verify(const struct ava_verify *verify, struct ava_verified *verified,
			   struct ava_error *err);
/* The newest seal alone; sealed content is not checked. AVA_ENOENT: none. */
AVA_API int ava_log_head(const char *root, struct ava_log_head *head, struct ava_error *err);

/* ---- The runtime. One thread uses a runtime at a time; several are
 * independent of each other. */

struct ava_runtime; /* opaque */

/* "Embedded": ava_runtime_new alone reads the field; "connected": ava_runtime_connect alone. */
struct ava_options {
	/* Data root. ava_runtime_new: absolute, made when missing, never NULL.
	 * ava_runtime_connect: NULL: as $AVA_DATA_ROOT says. *copied* */
	const char *root;
	/* Embedded. "NAME=value" strings, NULL at the end, that take the place of
	 * the environment: "AVA_RUNS_MAX=20", "ANTHROPIC_API_KEY=…",
	 * "XDG_CONFIG_HOME=/etc" (for ava/config.yaml below it). NULL: nothing is
	 * set, so no file of the user is read and the model is offline. *copied* */
	const char *const *env;
	int process_env; /* embedded; 1: use the process' environment instead of `env` */
	/* Embedded: the model of runs that name none ("offline:FILE.jsonl" plays a script).
	 * NULL: the first with a key, else offline. *copied* */
	const char *model;
	const char *user_id; /* embedded: the user; NULL: the login. *copied* */
	int no_start;        /* connected; 1: do not start a daemon when none serves */
	/* Embedded: gets the lines of avad.log, one at a time, without a newline; called by any
	 * call on the runtime, and must not call the runtime; the line is *borrowed until log
	 * returns*. */
	void (*log)(const char *line, void *user);
	void *log_user;
};

/* The runtime inside this process: takes the root (AVA_EBUSY when a daemon or another process
 * has it, or when this process has an embedded runtime already: one at a time), recovers what a
 * crash left, goes on with queued runs. Its threads block all signals; it installs no signal
 * handler, changes nothing of the process' own and starts only processes that its configuration
 * names (notify.exec), which it reaps itself. It works only while the program is in a call on it.
 * It belongs to this process: a forked child must not use or free it, and ends with what was
 * registered by atexit after the fork.
 * On error *rt is NULL. AVA_EINVAL (options, settings), AVA_EBUSY, AVA_EDENIED, AVA_EFORMAT,
 * AVA_EFULL, AVA_EIO, AVA_ENOMEM. */
AVA_API int ava_runtime_new(struct ava_runtime **rt, const struct ava_options *options,
			    struct ava_error *err);
/* The daemon of the root, started when none serves: the program is $AVA_AVAD, else avad beside
 * this program, else in $PATH. Its runs go on without us. `options` NULL: defaults. On error *rt
 * is NULL. AVA_ECONNECT (nobody serves and none may be started), AVA_ENOENT (no root, no avad),
 * AVA_ETIMEOUT and the daemon's own error at its start. */
AVA_API int ava_runtime_connect(struct ava_runtime **rt, const struct ava_options *options,
				struct ava_error *err);
/* Closes cursors and watches too. Embedded: accepted work is on disk; queued runs go on when the
 * root is opened again, started ones then end as AVA_ERROR, interrupted. Not from a callback.
 * NULL is allowed. */
AVA_API void ava_runtime_free(struct ava_runtime *rt);

/* ---- Inside another loop. Poll ava_runtime_fd for reading, for at most
 * ava_runtime_timeout ms, then call ava_runtime_process with 0. Nothing of an
 * embedded runtime moves between such calls. */

/* A descriptor to poll for reading (not to read); the same for the runtime's life. */
AVA_API int ava_runtime_fd(struct ava_runtime *rt);
/* How long to wait at most: ms, 0: do not wait, -1: for as long as you like.
 * Ask anew before each wait: every call on the runtime may change it. */
AVA_API int ava_runtime_timeout(struct ava_runtime *rt);
/* Go on, and call the callbacks that are due. Waits until one was called or `timeout_ms` have
 * passed (0: no waiting, -1: for ever). Returns how many were called, or AVA_EBUSY (called from
 * a callback), AVA_ECONNECT (the daemon went away and did not come back: call again, later),
 * AVA_EIO, AVA_ENOMEM. */
AVA_API int ava_runtime_process(struct ava_runtime *rt, int timeout_ms, struct ava_error *err);

/* ---- Proposals and runs. */

struct ava_run_id {
	char text[24]; /* "S-7f3a2b"; never reused */
};
struct ava_proposal_id {
	char text[24]; /* "P-9e4c1d" */
};

#define AVA_FREE_ONLY (-1) /* value of max_cost_microusd: only models that cost nothing */
#define AVA_NO_ROUNDS (-1) /* value of check_rounds: the first failed check ends the run */

struct ava_spawn {        /* strings: NULL: the default; read during the call only */
	const char *task; /* must not be empty */
	const char *role; /* default "researcher" */
	const char *context, *model, *preset;
	const char *cwd;     /* absolute; default: the run sees no files */
	const char *session; /* the conversation that the run belongs to; default: one of its own */
	const char *request_id;    /* the same id gives the same run again, also after a crash */
	const char *confirm;       /* "always", "over_cents:N", "never"; default: the setting */
	int64_t timeout_ms;        /* time of work; 0: the role's; else over 0, as the next three */
	int64_t max_cost_microusd; /* most that the run may cost, or AVA_FREE_ONLY */
	int64_t max_tokens, max_iterations;
	int extended_thinking;    /* 1: on; -1: off; 0: by role and preset */
	int instructions;         /* AGENTS.md and skills; 1: yes; -1: no; 0: by role and setting */
	const char *const *tools; /* the only tools of the role that it gets; NULL: all */
	size_t ntools;
	const char *const *grants;
	size_t ngrants;
	const char *const *ask_before; /* tools whose calls wait for a yes (ava_steer) */
	size_t nask_before;
	const char *const *tags; /* "name" or "key=value", 8 at the most; NULL: none */
	size_t ntags;
	const char *output_schema; /* JSON Schema that the output must fit; NULL: any output */
	/* "ask": at a limit wait for a yes to as much again; default: "stop" */
	const char *on_limit;
	const char *on_quota;  /* "park", "ask", "fail"; default: as role and config say */
	const char *rationale; /* why it is needed, for the quote; NULL: the role's purpose */
	/* In a group only: a short name, unique there; and the names of those that must have
	 * succeeded before it begins, with what they found. */
	const char *id;
	const char *const *after;
	size_t nafter;
	/* A shell command, run in the sandbox on the run's copy once it has handed in its result,
	 * which counts only when the command exits 0; NULL: as the role says. */
	const char *check;
	int64_t check_rounds; /* how often a failed check goes back to the model; 0: 2;
				 AVA_NO_ROUNDS */
};

struct ava_spawn_group {              /* several runs, one quote, one answer */
	const struct ava_spawn *runs; /* their session, request_id, confirm are ignored */
	size_t nruns;                 /* 1 to 100 */
	const char *session, *request_id, *confirm; /* as in struct ava_spawn */
	const char *cwd;                            /* folder of runs that name none */
	int64_t timeout_ms,
		max_cost_microusd; /* limits of all runs together; 0: no limit; or AVA_FREE_ONLY */
	int chain;                 /* 1: the runs go one after another, each with earlier results */
	int share;                 /* 1: each run may read the others' results */
};

enum ava_proposal_state { AVA_PENDING, AVA_CONFIRMED, AVA_REJECTED, AVA_EXPIRED };

struct ava_proposal {
	const char *id;
	enum ava_proposal_state state;
	int64_t created_ms, expires_ms;
	const char *run, *trace; /* "" until confirmed */
	const char *message;     /* the question to a person */
	const char *quote;       /* JSON: minutes, costCents, tokens, tools, model, role, … */
	const char *config;      /* JSON: the complete config of what runs */
	const char *config_hash, *confirmed_hash; /* confirmed_hash is "" until confirmed */
	const char *changes;                      /* changes made by a yes, in words */
	const char *replaces, *replaced_by;       /* ids of other proposals; "": none */
	const char *group; /* id of the group ("G-9e4c1d") in a quote of several runs; else "" */
};

struct ava_run {
	const char *id, *trace; /* "S-7f3a2b", "brave-otter" */
	const char *role, *task, *model, *session, *user, *origin, *cwd;
	enum ava_status status;
	const char *stop_reason;       /* "" until the run ends */
	const char *activity;          /* "Reading https://…" */
	const char *last_tool;         /* the run's last call of a tool, made at last_tool_ms */
	int64_t started_ms, ended_ms;  /* 0: not yet */
	int64_t last_tool_ms;          /* 0: no tool was called */
	int64_t elapsed_ms;            /* time of work, without queues, AVA_WAITING, AVA_PARKED */
	int64_t tokens, cost_microusd; /* used by all calls so far */
	int64_t iteration;             /* calls of the model so far */
	int64_t timeout_ms, max_cost_microusd; /* limits of the run, as the next two */
	int64_t max_tokens, max_iterations;
	const char *asks, *asks_call; /* AVA_WAITING: question and call for ava_steer; else "" */
};

struct ava_group {
	int running, chain;
	unsigned size, ended, succeeded; /* numbers of runs */
	int64_t tokens, cost_microusd;   /* used by all runs so far */
	const struct ava_run *runs;      /* in the group's order */
	size_t nruns;
};

/* 1: a run with this status has ended. */
AVA_API int ava_status_ended(enum ava_status status);

/* Quote a run. Nothing runs, unless `confirm` asks nobody about such a quote:
 * then *proposal is AVA_CONFIRMED and names the run. On disk when it returns.
 * AVA_EINVAL, AVA_EUNSUPPORTED (model), AVA_ENOENT (cwd), AVA_ETOOBIG, AVA_EDENIED,
 * AVA_EBUSY (too many), AVA_EFULL, AVA_EIO; AVA_EUNKNOWN: the disk or the daemon
 * failed meanwhile, ask again with the same request_id. */
AVA_API int ava_propose(struct ava_runtime *rt, const struct ava_spawn *spawn,
			struct ava_proposal *proposal, struct ava_error *err);
/* Quote several runs at once; ava_confirm starts all of them, its proposal names
 * the group and the first run. Codes as ava_propose. */
AVA_API int ava_propose_group(struct ava_runtime *rt, const struct ava_spawn_group *group,
			      struct ava_proposal *proposal, struct ava_error *err);
/* State of a group. AVA_ENOENT: no such group. */
AVA_API int ava_group(struct ava_runtime *rt, const char *id, struct ava_group *out,
		      struct ava_error *err);
/* Answer for a person, in their words (at most 8 KB; NULL: "yes"). Yes starts exactly what was
 * quoted, with lower limits or fewer rights where the words say so: AVA_CONFIRMED. No:
 * AVA_REJECTED. Any other change starts nothing: *proposal is a new one, AVA_PENDING, that
 * replaces this. AVA_EINVAL: not understood, the sentence names the answers; AVA_ENOENT;
 * AVA_EREJECTED, AVA_EEXPIRED; else as ava_propose. */
AVA_API int ava_confirm(struct ava_runtime *rt, const char *id, const char *words,
			struct ava_proposal *proposal, struct ava_error *err);
/* `reason` may be NULL. *proposal may be NULL. */
AVA_API int ava_reject(struct ava_runtime *rt, const char *id, const char *reason,
		       struct ava_proposal *proposal, struct ava_error *err);
/* The proposals, newest first: pending ones, or with `all` answered and expired ones too. */
AVA_API int ava_proposals(struct ava_runtime *rt, int all, const struct ava_proposal **list,
			  size_t *n, struct ava_error *err);

/* Propose and confirm at once: for a program that may decide for the person.
 * On success *id names the run and its start is on disk. Codes as ava_propose. */
AVA_API int ava_spawn(struct ava_runtime *rt, const struct ava_spawn *spawn, struct ava_run_id *id,
		      struct ava_error *err);
/* AVA_ENOENT: no such run. */
AVA_API int ava_status(struct ava_runtime *rt, const char *run, struct ava_run *out,
		       struct ava_error *err);
/* 1: it has ended, 0: not yet; AVA_ENOENT. */
AVA_API int ava_is_done(struct ava_runtime *rt, const char *run, struct ava_error *err);
/* The runs, newest first: live ones, or with `all` ended ones too, at most `limit` (0: 100). */
AVA_API int ava_runs(struct ava_runtime *rt, int all, size_t limit, const struct ava_run **list,
		     size_t *n, struct ava_error *err);

/* ---- Ended runs: resume them, and check their records. */

struct ava_resume {        /* what the new run gets; NULL and 0: as the ended one */
	const char *model; /* another model with the same kind of API */
	int64_t from; /* 0: go on from the run's end; N: fork before the N-th call of the model */
	const char *checkpoint; /* or fork before the call behind this checkpoint */
	const char *session, *request_id, *confirm; /* as in struct ava_spawn */
	int64_t timeout_ms, max_cost_microusd, max_tokens, max_iterations; /* as there */
};

/* Quote a run that goes on from where an ended one stopped: a new id, a new budget, the same
 * conversation, byte for byte. `resume` NULL: all as before. Nothing runs before the yes, as
 * with ava_propose, whose codes it has; also AVA_ENOENT: no such run, call or name, or its
 * messages were removed; AVA_EBUSY: the run has not ended and goes on by itself;
 * AVA_EUNSUPPORTED: a model of another kind; AVA_ECORRUPT: the part before the call `from` does
 * not replay. */
AVA_API int ava_resume(struct ava_runtime *rt, const char *run, const struct ava_resume *resume,
		       struct ava_proposal *proposal, struct ava_error *err);

struct ava_difference {
	uint64_t lsn, seq;    /* of the recorded event that differs; 0: behind the last one */
	const char *type;     /* "ToolResult" */
	const char *call;     /* the call that the event is about: "c3.1", "i2"; "": none */
	const char *what;     /* "the output of read_file" */
	int64_t byte;         /* the first byte that differs, from 0; -1: bytes are not compared */
	const char *recorded; /* excerpt of the record; `replayed`: of what came instead */
	const char *replayed;
};

struct ava_replay {
	int identical;      /* 1: nothing differs, as far as the record goes */
	int complete;       /* 1: the record has the run's end */
	const char *reason; /* why the record is incomplete; "": it is not */
	uint64_t events;    /* replayed events of the record */
	int64_t calls;      /* replayed calls of the model */
	int64_t found;      /* number of differences, the first of which are: */
	const struct ava_difference *differences;
	size_t ndifferences;
};

/* Execute a run again from its record: no network, no tool, no key; nothing is written. Stops at
 * the first difference; with `lenient` differing bytes are noted and it goes on. 0 also with
 * differences. A fork from there is ava_resume with `from`. AVA_ENOENT, AVA_ECORRUPT (the record
 * cannot be read), AVA_EFORMAT, AVA_EBUSY (many records are being read), AVA_EIO, AVA_ENOMEM. */
AVA_API int ava_replay(struct ava_runtime *rt, const char *run, int lenient,
		       struct ava_replay *replay, struct ava_error *err);

enum ava_wait_for { AVA_WAIT_ALL, AVA_WAIT_ANY };
/* Wait until all of these runs have ended, or any (at most 100,000; AVA_ENOENT if one is
 * unknown). Calls no callback. `ended` NULL, or room for `n`: 1 for each ended run. Returns
 * their number, or AVA_ETIMEOUT after `timeout_ms` (-1: never), which stops no run and fills
 * `ended` as well. */
AVA_API int ava_wait(struct ava_runtime *rt, const char *const *runs, size_t n,
		     enum ava_wait_for what, int64_t timeout_ms, unsigned char *ended,
		     struct ava_error *err);

struct ava_result {
	enum ava_status status;
	const char *run, *trace, *model, *stop_reason;
	const char *summary, *error;
	const char *output; /* JSON; "null": none */
	double confidence;  /* 0 to 1; -1: none */
	int partial;        /* 1: the run was stopped before it was done */
	int unverified;     /* 1: taken from the model's last text: nothing was submitted */
	int64_t tokens, cost_microusd, duration_ms, iterations;
	size_t citations; /* number of citations that passed the check */
	const char *json; /* the whole result (doc/api.yaml, RunResult) */
	size_t len;       /* length of `json`, which ends with NUL too */
};

/* AVA_ETIMEOUT: the run has not ended; AVA_ENOENT. */
AVA_API int ava_result(struct ava_runtime *rt, const char *run, struct ava_result *out,
		       struct ava_error *err);
/* Cancel for good: nothing of the run starts after this returns 0. Also 0 for an ended run. */
AVA_API int ava_cancel(struct ava_runtime *rt, const char *run, struct ava_error *err);
/* Let a run stand still from the end of its turn on, until `until` ("2h", "18:40", "2026-12-01
 * 08:00"; NULL: until ava_unpause); 0 when that is on disk. It takes no slot and its time stands.
 * AVA_EEXIST: it has ended, or is paused until another time; AVA_EINVAL: no time, or one that is
 * over; AVA_ENOENT. */
AVA_API int ava_pause(struct ava_runtime *rt, const char *run, const char *until,
		      struct ava_error *err);
/* Let a paused run go on; 0 when that is on disk. AVA_EEXIST: it has ended, or is not paused;
 * AVA_ENOENT. */
AVA_API int ava_unpause(struct ava_runtime *rt, const char *run, struct ava_error *err);
/* Say something to a run; 0 when the message is on disk. A run that asks a person (AVA_WAITING;
 * its event Waiting has the question) takes it as the answer: to a question any text, the number
 * of a choice is that choice; for a call that needs a yes a yes, or a no with its reason. `call`
 * (NULL: the open question) binds the answer to one question: AVA_ENOENT when that is not open.
 * A working run reads it at its next turn, and reports the outcome delivered or too_late in an
 * event Steering. At most 2,000 characters. AVA_EEXIST: the run has ended; AVA_EBUSY: 16
 * messages are unread; AVA_EINVAL. */
AVA_API int ava_steer(struct ava_runtime *rt, const char *run, const char *text, const char *call,
		      struct ava_error *err);
/* As ava_steer, but a message already sent to this run with this request_id (NULL: none) is not
 * sent again, also after a crash, and after the run's end it still gives 0: after AVA_EUNKNOWN call
 * again with the same id. */
AVA_API int ava_steer_once(struct ava_runtime *rt, const char *run, const char *request_id,
			   const char *text, const char *call, struct ava_error *err);
/* Name the present place of a live run; 0 when that is on disk. The ended run can be forked
 * there by that name. 1 to 64 letters, digits, '.', '_' or '-', a letter first. 0 too when the
 * name is there already; AVA_EEXIST: the name is elsewhere, or the run has ended; AVA_ETOOBIG:
 * the run has 100 names; AVA_EINVAL; AVA_ENOENT. */
AVA_API int ava_checkpoint(struct ava_runtime *rt, const char *run, const char *name,
			   struct ava_error *err);
/* Cancel every live run of the root. *n (NULL is allowed): the number of cancelled runs, also on
 * error, which is that of the first failure. */
AVA_API int ava_cancel_all(struct ava_runtime *rt, size_t *n, struct ava_error *err);

/* ---- Events: read through a cursor that owns no queue. Events older than the newest come from the
 * files, so none is missing however rarely the cursor is read. doc/events.json has all types. */

#define AVA_NOW UINT64_MAX /* value of `after`: only later events */

struct ava_event {    /* borrowed until the next call on its cursor, or the callback's end */
	uint64_t lsn; /* number of the event: increasing, unique in the root */
	uint64_t seq; /* counts within its file */
	int64_t time_ms;
	const char *type;  /* "ToolCall" */
	const char *agent; /* "S-7f3a2b", "ava" */
	const char *session, *trace, *user;
	const char *json; /* the whole line, without newline, ends with NUL */
	size_t len;
};

struct ava_line {
	const char *text; /* JSON, ends with NUL */
	size_t len;
};

/* The Item of an event, which is what a person sees of it (doc/ITEMS.md); of its `json` and `len`
 * alone. 1: *item is filled; 0: a person sees nothing of it; AVA_ENOMEM. */
AVA_API int ava_item(struct ava_runtime *rt, const struct ava_event *event, struct ava_line *item,
		     struct ava_error *err);

struct ava_events_query {
	const char *run;     /* only events of this run; NULL: of all and of Ava. *copied* */
	const char *session; /* only events of this conversation; not with run. *copied* */
	uint64_t after;      /* only events with a greater lsn; 0: all; AVA_NOW: later ones */
};

struct ava_events; /* opaque */

/* `query` NULL: everything from the beginning. AVA_ENOENT (run), AVA_EINVAL, … */
AVA_API int ava_events_open(struct ava_runtime *rt, const struct ava_events_query *query,
			    struct ava_events **events, struct ava_error *err);
/* 1: *event is filled; 0: none now; else as ava_runtime_process: call again to go on behind the
 * last event. Does not wait. */
AVA_API int ava_events_next(struct ava_events *events, struct ava_event *event,
			    struct ava_error *err);
/* Asked after ava_events_next gave 0. 1: the run has ended and all its events were given. */
AVA_API int ava_events_ended(struct ava_events *events);
/* Wait until there may be more (1) or `timeout_ms` have passed (0; -1: never).
 * Calls no callback. Negative as ava_events_next. */
AVA_API int ava_events_wait(struct ava_events *events, int timeout_ms, struct ava_error *err);
AVA_API void ava_events_close(struct ava_events *events); /* NULL is allowed */

/* ---- Callbacks: the same events, called in ava_runtime_process only. They may
 * use the runtime, also ava_unwatch, but neither process nor free it. */

struct ava_text { /* text of a conversation while it grows; never stored, may be missed */
	const char *session;
	enum ava_text_kind { AVA_TEXT, AVA_THINKING, AVA_TURN } kind;
	const char *text; /* AVA_TURN: "busy" or "idle"; of AVA_TEXT "": it begins anew */
	size_t len;
};

struct ava_callbacks { /* each may be NULL */
	/* SubagentSpawn: `run` has begun. */
	void (*start)(const char *run, const struct ava_event *event, void *user);
	/* Present activity, for people: "Reading https://…". */
	void (*activity)(const char *run, const char *text, const struct ava_event *event,
			 void *user);
	/* `args` is JSON, cut to a preview when long. */
	void (*tool_call)(const char *run, const char *tool, const char *args,
			  const struct ava_event *event, void *user);
	/* Exactly once a run; ava_result has the rest. */
	void (*complete)(const char *run, enum ava_status status, const char *summary,
			 const struct ava_event *event, void *user);
	/* Every event, before its own callback above. */
	void (*event)(const struct ava_event *event, void *user);
	/* Only with a session in the query. */
	void (*text)(const struct ava_text *text, void *user);
};

struct ava_watch; /* opaque */

/* `query` and errors as of ava_events_open. `callbacks` is *copied*, `user` is passed to each. */
AVA_API int ava_watch(struct ava_runtime *rt, const struct ava_events_query *query,
		      const struct ava_callbacks *callbacks, void *user, struct ava_watch **watch,
		      struct ava_error *err);
AVA_API void ava_unwatch(struct ava_watch *watch); /* NULL is allowed */

/* ---- Traces: the events of a run as data, in memory. They need neither daemon nor runtime.
 * Answers of queries are *borrowed until the next query on the trace, a change of it, or its
 * end*. doc/TRACE.md. */

struct ava_trace; /* opaque */

/* An empty trace that starts now, or with the first of its events where that is earlier. `id`
 * NULL: a fresh name; `parent` NULL: "". *copied* */
AVA_API int ava_trace_new(struct ava_trace **trace, const char *id, const char *parent,
			  struct ava_error *err);
AVA_API void ava_trace_free(struct ava_trace *trace); /* NULL is allowed */
/* Append an event: a line of a log, or any JSON object with such keys, of which only "eventType"
 * is required (a missing time is now). *copied* AVA_EINVAL: not an event, or no line and of an
 * unknown kind (use Custom for your own); AVA_ETOOBIG, AVA_ENOMEM; then nothing changed. */
AVA_API int ava_trace_append(struct ava_trace *trace, const char *json, size_t len,
			     struct ava_error *err);
/* All events of all traces in one: in the order of lsn, of time where an event has none, else as
 * given; copies of one event (of a daily log and of a run's file) once. Id and parent are the
 * first trace's. */
AVA_API int ava_trace_merge(struct ava_trace **trace, const struct ava_trace *const *traces,
			    size_t n, struct ava_error *err);

/* A run of a data root, by its id or the name of its trace. `root` as in ava_log_query. A line
 * that is no event is reported to `bad` ("file:offset: why") and left out; `bad` NULL: the first
 * one is AVA_ECORRUPT. AVA_ENOENT, … */
AVA_API int ava_trace_read(struct ava_trace **trace, const char *root, const char *run,
			   void (*bad)(const char *sentence, void *user), void *user,
			   struct ava_error *err);
/* A file of events, one a line; `bad` gets "line 7: why", else as above. */
AVA_API int ava_trace_read_jsonl(struct ava_trace **trace, const char *path,
				 void (*bad)(const char *sentence, void *user), void *user,
				 struct ava_error *err);
/* The file is replaced as a whole, or left as it was. */
AVA_API int ava_trace_write_jsonl(const struct ava_trace *trace, const char *path,
				  struct ava_error *err);
/* Append one event to a file (made when missing); `id` is its traceId if it has none. */
AVA_API int ava_trace_append_jsonl(const char *path, const char *id, const char *json, size_t len,
				   struct ava_error *err);
/* {"traceId","parentId","startTime","endTime","events":[…]} and back. */
AVA_API int ava_trace_json(struct ava_trace *trace, const char **json, size_t *len,
			   struct ava_error *err);
AVA_API int ava_trace_parse(struct ava_trace **trace, const char *json, size_t len,
			    struct ava_error *err);
/* OTLP/JSON, as a collector takes it at /v1/traces; names in doc/TRACE.md. */
AVA_API int ava_trace_otlp(struct ava_trace *trace, const char **json, size_t *len,
			   struct ava_error *err);

struct ava_trace_info {
	const char *id;           /* "brave-otter" */
	const char *parent;       /* "ava", or the run it was forked from */
	int64_t start_ms, end_ms; /* end_ms 0: the run has not ended */
	size_t events;
};
AVA_API void ava_trace_info(const struct ava_trace *trace, struct ava_trace_info *out);

/* Counted at the calls themselves, each once, whatever was merged. A call of the model cut by
 * its run's end does not count as failed, as in the totals of SubagentComplete. */
struct ava_trace_totals {
	int64_t input_tokens, output_tokens;
	int64_t cost_microusd; /* -1: all calls are of unknown price */
	int64_t duration_ms;   /* from start to end; -1: not ended */
	int64_t infer_calls, failed_infer_calls, uncosted_calls;
	int64_t tool_calls, failed_tool_calls;
};
AVA_API int ava_trace_totals(struct ava_trace *trace, struct ava_trace_totals *out,
			     struct ava_error *err);

struct ava_trace_tool {
	const char *run, *call, *name;   /* "S-7f3a2b", "c3.1", "read_file" */
	const char *args;                /* the arguments, JSON; a JSON string when cut */
	const char *result;              /* the tool's text, cut to a preview when long */
	const char *error_class;         /* "not_found" */
	int64_t started_ms, duration_ms; /* -1: unknown */
	int done, success;               /* done 0: no result (interrupted) */
};
AVA_API int ava_trace_tool_calls(struct ava_trace *trace, const struct ava_trace_tool **list,
				 size_t *n, struct ava_error *err);
AVA_API int64_t ava_trace_infer_calls(struct ava_trace *trace);
/* Names of checkpoints, and failures ("class: sentence"), in order. */
AVA_API int ava_trace_checkpoints(struct ava_trace *trace, const char *const **list, size_t *n,
				  struct ava_error *err);
AVA_API int ava_trace_errors(struct ava_trace *trace, const char *const **list, size_t *n,
			     struct ava_error *err);
/* The events of these types ("ToolCall,infer": names, aliases or prefixes in any case, NULL: all)
 * from `since_ms` to before `until_ms` (0: no bound). */
AVA_API int ava_trace_events(struct ava_trace *trace, const char *types, int64_t since_ms,
			     int64_t until_ms, const struct ava_event **list, size_t *n,
			     struct ava_error *err);

/* ---- Checkpoints as values: the state of a run when ava_checkpoint named it. Like traces they
 * need neither daemon nor runtime. Format: doc/TRACE.md. */

struct ava_checkpoint { /* the pointers live until ava_checkpoint_free */
	const char *name, *run, *trace_id;
	int64_t time_ms;         /* when the checkpoint was named */
	int64_t call;            /* number of the model call that a fork from here begins with */
	struct ava_trace *trace; /* the run's events up to the event Checkpoint itself */
	const char *state;       /* the run's messages, byte for byte (doc/MESSAGES.md) */
	size_t state_len;        /* length of `state`, which ends with NUL too */
};

/* Read from a run, live or ended; `root` and `run` as in ava_trace_read. AVA_ENOENT: no such run
 * or name, or its messages were removed; AVA_ECORRUPT: log or messages are damaged; AVA_EINVAL,
 * … On error *checkpoint is NULL. */
AVA_API int ava_checkpoint_read(struct ava_checkpoint **checkpoint, const char *root,
				const char *run, const char *name, struct ava_error *err);
/* {"name","traceId","timestamp","state","stateHash","trace":{…}} and back, to an equal value.
 * The text is borrowed until the next query on its trace. AVA_EINVAL: not a checkpoint, or a
 * changed one. */
AVA_API int ava_checkpoint_json(struct ava_checkpoint *checkpoint, const char **json, size_t *len,
				struct ava_error *err);
AVA_API int ava_checkpoint_parse(struct ava_checkpoint **checkpoint, const char *json, size_t len,
				 struct ava_error *err);
AVA_API void ava_checkpoint_free(struct ava_checkpoint *checkpoint); /* NULL is allowed */

/* ---- Conversations with Ava. */

struct ava_session_id {
	char text[48];
};

struct ava_session_options { /* read during the call only */
	const char *cwd;     /* folder, absolute, exists; NULL: no files */
	const char *model;   /* NULL: the default of Ava */
};

struct ava_session {
	const char *id, *title, *cwd, *user, *model; /* model "": none was chosen yet */
	int64_t created_ms, updated_ms;
	int64_t tokens, cost_microusd; /* used by Ava's own calls in this process or daemon */
	unsigned live_runs, waiting;   /* live subagents; inputs that wait for a turn of Ava */
	int busy;                      /* 1: Ava is at work */
};

/* Nothing is written before the first message. `options` NULL: defaults. AVA_EINVAL, AVA_ENOENT
 * (cwd), AVA_EUNSUPPORTED (model), AVA_EBUSY (too many). */
AVA_API int ava_session_new(struct ava_runtime *rt, const struct ava_session_options *options,
			    struct ava_session_id *id, struct ava_error *err);
/* On return the message is on disk; the answer comes as events (AssistantMessage) and text. Words
 * answer a quote or a run's question only where they name it ("yes, P-19c0de"); else ava_confirm
 * and ava_steer do. `entry`: NULL, or it gets the message's id in the session. */
AVA_API int ava_say(struct ava_runtime *rt, const char *session, const char *text, char entry[24],
		    struct ava_error *err);
/* As ava_say, but a message already sent with this request_id is not sent again, also after a
 * crash, for a day: after AVA_EUNKNOWN call again with the same id. NULL: none. */
AVA_API int ava_say_once(struct ava_runtime *rt, const char *session, const char *request_id,
			 const char *text, char entry[24], struct ava_error *err);
/* The conversations, newest first, at most `limit` (0: 100). */
AVA_API int ava_sessions(struct ava_runtime *rt, size_t limit, const struct ava_session **list,
			 size_t *n, struct ava_error *err);
/* The lines of the session's file behind the entry `after` (NULL: all), in the form of
 * doc/SESSIONS.md. */
AVA_API int ava_session_entries(struct ava_runtime *rt, const char *session, const char *after,
				const struct ava_line **lines, size_t *n, struct ava_error *err);
/* Stop Ava's turn under way, not the runs. 0 also when no turn is. */
AVA_API int ava_session_stop(struct ava_runtime *rt, const char *session, struct ava_error *err);

#ifdef __cplusplus
}
#endif
#endif
