/* The world of a replay: agent/agent.h over a record (replay_world.c); the record as a
 * replay walks through it, and the comparisons of the machine's acts with the record
 * (replay_record.c). */
#ifndef SUBAGENT_REPLAY_WORLD_H
#define SUBAGENT_REPLAY_WORLD_H

#include "agent/agent.h"
#include "agent/limit.h"
#include "agent/position.h"
#include "base/hash.h"
#include "event/trace.h"
#include "provider/dialect.h"
#include "subagent/replay.h"
#include "subagent/spec.h"

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
	bool carried;          /* a carried_on event was passed: another process goes on */
	/* The event looked at, and its parts; a difference is told with it. */
	const struct trace_event *seen;
	json_t *content, *meta;
	json_t *end; /* content of SubagentComplete; NULL: the run has not ended */
};

/* A call of the run, and the place of its result in messages.jsonl. */
struct replay_call {
	struct call_ref ref;
	size_t at; /* offset of the results of the call's turn */
};

struct replay {
	struct agent agent;
	struct run_spec *spec; /* owned */
	struct record rec;
	struct hash_sha256 prefix; /* hash over head and lines of the request so far */
	int64_t request_bytes;
	bool wordless; /* no message follows the head yet */
	int64_t now;   /* the machine's time */
	unsigned saves_due;
	bool slot_wanted, started; /* started: the call under way has its InferStart */
	bool done;
	char asked[24];            /* the call that a person is asked about; "" */
	unsigned parked;           /* questions about a quota so far */
	struct replay_call *calls; /* owned; in order */
	size_t ncalls, calls_cap;
	struct agent_compacted room; /* outcome of the last context edit, with room_rv */
	int seek;                    /* the call of the model to find; 0: none */
	size_t found;                /* offset behind the lines of that call's request */
	int room_rv;
	int rv; /* < 0: the replay cannot go on */
};

/* ---- replay_world.c */
extern const struct agent_io replay_io;

/* Builds the request so far from the file up to rec.at. `fork`: results that stand in these
 * lines become calls without a name. 0 or a code. */
int replay_rehash(struct replay *p, bool fork, struct ava_error *err);
/* Take the amendments at the cursor, as far as the InferStart looked at needs them. */
int replay_amend(struct replay *p);
/* The code of a failed model call, as the recorded end of the run says it. */
int replay_failure_code(const struct replay *p);

/* ---- replay_record.c: the events */
int record_open(struct record *r, int root_fd, const char *run, struct ava_error *err);
void record_close(struct record *r);

/* Look at the next event that a run must bring about, past events that follow from
 * others or are for people only; NULL: the end. */
const struct trace_event *record_peek(struct record *r);
void record_take(struct record *r);
/* record_peek, and true if the event is of that kind; else a difference, or the record's end. */
bool record_expect(struct record *r, enum event_kind kind);
/* Look at the first event of the kind from `next` on; false: none. */
bool record_find(struct record *r, enum event_kind kind);
/* Is the Waiting event looked at a question or a person's word to wait, not an outcome?
 * record_waits: is it the word to wait? */
bool record_asks(const struct record *r);
bool record_waits(const struct record *r);
/* Has the InferStart looked at this word among its notices? */
bool record_noticed(const struct record *r, const char *word);
/* Replies that the run's end counted; -1: the run has not ended. */
int64_t record_end_iterations(const struct record *r);
/* The record ends before the run: stop comparing, for the reason `why`. */
void record_cut(struct record *r, const char *why);

/* ---- messages.jsonl */
enum record_line { RECORD_NO_LINE, RECORD_ASSISTANT, RECORD_USER, RECORD_AMENDMENT };
/* The line at r->at; its bytes without \n. */
enum record_line record_line(const struct record *r, const char **line, size_t *len);
void record_pass(struct record *r); /* move behind the line at r->at */
/* The lines of the reply at r->at, as one text, with `between` between two: how many. */
size_t record_reply(const struct record *r, char between, struct buf *joined);
/* The user lines at r->at, `most` of them, likewise. A turn's results come first, a note
 * on an empty reply next. */
size_t record_results(const struct record *r, size_t most, char between, struct buf *joined);

/* ---- differences. Nothing is compared after the first one, unless only bytes differ and
 * the replay is lenient. */
void record_differs(struct record *r, const char *what, const char *recorded, const char *replayed);
/* The event differs from `replayed`, which the machine would write. */
void record_other(struct record *r, const char *replayed);
/* Compare bytes; true: they are the same. */
bool record_same(struct record *r, const char *what, const char *recorded, size_t recorded_len,
		 const char *replayed, size_t replayed_len);
/* The event's word at `key` must be `replayed`; NULL is "". */
void record_check(struct record *r, const char *what, const char *key, const char *replayed);

/* The comparisons; each tells a difference. */
void replay_check_spec(struct replay *p, const json_t *spec);
/* Is the request so far the one of the InferStart looked at? */
bool replay_request_is(const struct replay *p);
/* Behind the InferStart that was taken: the machine's position is the live one's. */
void replay_check_position(struct replay *p);
void replay_check_infer(struct replay *p, const struct agent_infer *call);
/* Names and broken arguments of its calls become those of the record. */
void replay_mend_reply(struct replay *p, struct turn *t);
/* The result of a call as the machine has it. */
void replay_check_result(struct replay *p, const struct turn_call *c);
/* Take the recorded result of calls[i], whole if messages.jsonl has it; false: it
 * differs from the event, or there is no memory. */
bool replay_take_result(struct replay *p, unsigned i);
void replay_check_end(struct replay *p, const struct agent_end *end);

#endif
