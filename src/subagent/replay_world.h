/* The world of a replay: a run whose models, tools and people are a record (replay_world.c); the
 * record as a replay walks through it, and the comparison of what the run would commit with it
 * (replay_record.c). */
#ifndef SUBAGENT_REPLAY_WORLD_H
#define SUBAGENT_REPLAY_WORLD_H

#include "event/trace.h"
#include "provider/dialect.h"
#include "subagent/replay.h"
#include "subagent/run.h"

#define REPLAY_FILE_MAX ((size_t)256 << 20)

struct record {
	struct ava_trace *events;
	size_t next; /* index of the event to read next */
	char *file;  /* messages.jsonl, owned */
	size_t len, at;
	const struct redact *redact;
	const struct run_spec *spec; /* of the run; borrowed */
	struct replay_report *out;
	bool lenient, stopped; /* as replay_run has it; nothing more is compared */
	/* The event looked at, and its parts; a difference is told with it. */
	const struct trace_event *seen;
	json_t *content, *meta;
	json_t *end;                 /* content of SubagentComplete; NULL: the run has not ended */
	struct agent_position stood; /* the machine's, of all positions before event `stood_at` */
	size_t stood_at;
};

struct replay {
	struct run run;        /* as a live one, but for replay_io and its outbox */
	struct supervisor sup; /* of this run alone, without a loop */
	struct logbook book;   /* without a journal: drafts go to replay_compare */
	struct record rec;
	int64_t now; /* the machine's time */
	bool slot_wanted, done;
	bool started;                /* the call under way has its InferStart */
	struct agent_compacted room; /* outcome of the last context edit, with room_rv */
	int room_rv;
	int seek;     /* the call of the model to find; 0: none */
	size_t found; /* offset behind the lines of that call's request */
	int rv;       /* < 0: the replay cannot go on */
};

/* ---- replay_world.c */
extern const struct agent_io replay_io;

/* Builds the request so far from the file up to rec.at. *results: how many results of calls
 * stand in it; may be NULL. 0 or a code. */
int replay_rehash(struct replay *p, unsigned *results, struct ava_error *err);
/* Takes the amendments at the cursor, as far as the InferStart looked at needs them. */
int replay_amend(struct replay *p);
void replay_no_memory(struct replay *p); /* the replay stops */
/* Hands the open draft to the comparison; `done` as commit_flush. */
void replay_flush(struct replay *p, void (*done)(int rv, void *user));
/* The code of a failed model call, as the recorded end of the run says it. */
int replay_failure_code(const struct replay *p);

/* ---- replay_record.c: the events */
int record_open(struct record *r, int root_fd, const char *run, struct ava_error *err);
void record_close(struct record *r);

/* Look at the next event that a run must bring about, past events that follow from
 * others or are for people only; NULL: the end. */
const struct trace_event *record_peek(struct record *r);
void record_take(struct record *r);
/* The index of the last carried_on event between the reply looked at and the results that the model
 * was given; 0: there is none. */
size_t record_restarted(struct record *r);
/* Look at the next such event, or StateWrite, behind index *i, which moves to it; NULL: none. */
const struct trace_event *record_behind(struct record *r, size_t *i);
/* Look at the first event of the kind from `next` on; false: none. */
bool record_find(struct record *r, enum event_kind kind);
/* Is the Waiting event looked at a question or a person's word to wait, not an outcome?
 * record_waits: is it the word to wait? */
bool record_asks(const struct record *r);
bool record_waits(const struct record *r);
bool record_rests(const struct record *r); /* does it say that a pause begins? */
/* Replies that the run's end counted; -1: the run has not ended. */
int64_t record_end_iterations(const struct record *r);
/* The record ends before the run: stop comparing, for the reason `why`. */
void record_cut(struct record *r, const char *why);

/* Look at the next event of the kind from *i on, which moves behind it, up to the next
 * InferStart or InferEnd; false: none. */
bool record_scan(struct record *r, size_t *i, enum event_kind kind);

/* ---- messages.jsonl */
/* The line at r->at: its enum line_kind and its bytes without \n; -1: none. */
int record_line(const struct record *r, const char **line, size_t *len);
void record_pass(struct record *r); /* move behind the line at r->at */
/* The lines of a kind that follow each other from r->at on, at most `most`, joined by commas: how
 * many. */
size_t record_lines(const struct record *r, enum line_kind kind, size_t most, struct buf *joined);

/* ---- differences. Nothing is compared after the first one, unless only bytes differ and
 * the replay is lenient. */
void record_differs(struct record *r, const char *what, const char *recorded, const char *replayed);
/* The event differs from `replayed`, which the machine would write. */
void record_other(struct record *r, const char *replayed);
/* logbook.compare: what the run would commit against what it did; `replay` is a struct replay. */
void replay_compare(struct draft *d, void *replay);

/* Names and broken arguments of the reply's calls become those of the record. */
void replay_mend_reply(struct replay *p, struct turn *t);
/* Takes the recorded result of the turn's call, whole if messages.jsonl has it. AVA_ENOMEM. */
int replay_take_result(struct replay *p, struct turn *t, struct turn_call *c);

#endif
