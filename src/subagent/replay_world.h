/* The world of a replay: agent/agent.h over a record (replay_world.c); the record as a
 * replay walks through it, and the comparisons of what the machine does with what it
 * says (replay_record.c). */
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
	size_t next; /* event */
	char *file;  /* messages.jsonl, owned */
	size_t len, at;
	const struct redact *redact;
	const struct run_spec *spec; /* whose lines they are; borrowed */
	struct replay_report *out;
	bool lenient, stopped; /* nothing more is compared */
	bool carried;          /* another process goes on from here */
	/* The event that is looked at, and its parts; what differs is told with it. */
	const struct trace_event *seen;
	json_t *content, *meta;
	json_t *end; /* what SubagentComplete says; NULL: it has not ended */
};

/* A call of the run, and where its result stands in messages.jsonl. */
struct replay_call {
	struct call_ref ref;
	size_t at; /* of the line, or lines, of its turn's results */
};

struct replay {
	struct agent agent;
	struct run_spec *spec; /* owned */
	struct record rec;
	struct hash_sha256 prefix; /* over head and lines of the request so far */
	int64_t request_bytes;
	bool wordless; /* no message follows the head yet */
	int64_t now;   /* what the machine takes for the time */
	unsigned saves_due;
	bool slot_wanted, started; /* the call under way has its InferStart */
	bool done;
	char asked[24];            /* the call that a person is asked about; "" */
	unsigned parked;           /* how often it was */
	struct replay_call *calls; /* owned; in order */
	size_t ncalls, calls_cap;
	struct agent_compacted room; /* what was made of it, not told the machine yet */
	int seek;                    /* that call of the model is looked for; 0: none */
	size_t found;                /* where its lines end */
	int room_rv;
	int rv; /* < 0: it cannot go on */
};

/* ---- replay_world.c */
extern const struct agent_io replay_io;

/* Request so far from the file up to its cursor. `fork`: results that stand in these
 * lines become calls without a name. 0 or a code. */
int replay_rehash(struct replay *p, bool fork, struct ava_error *err);
/* Take the amendments at the cursor that the call of the InferStart looked at needs. */
int replay_amend(struct replay *p);
/* What ended the run, as the code of a call that failed. */
int replay_failure_code(const struct replay *p);

/* ---- replay_record.c: the events */
int record_open(struct record *r, int root_fd, const char *run, struct ava_error *err);
void record_close(struct record *r);

/* The next event that a run must bring about, without those that follow from
 * others or are for people only; NULL: the end. It is looked at. */
const struct trace_event *record_peek(struct record *r);
void record_take(struct record *r);
/* The same, if it is of that kind; else a difference, or the end of the record. */
bool record_expect(struct record *r, enum event_kind kind);
/* Look at the first of the kind from `next` on; false: none. */
bool record_find(struct record *r, enum event_kind kind);
/* Is it the question of a Waiting event that is looked at, or that a person said to wait, not what
 * became of it? */
bool record_asks(const struct record *r);
bool record_waits(const struct record *r);
/* Has the InferStart that is looked at this word among its notices? */
bool record_noticed(const struct record *r, const char *word);
/* Replies that the run's end counted; -1: it has not ended. */
int64_t record_end_iterations(const struct record *r);
/* The record says no more of this run. */
void record_cut(struct record *r, const char *why);

/* ---- messages.jsonl */
enum record_line { RECORD_NO_LINE, RECORD_ASSISTANT, RECORD_USER, RECORD_AMENDMENT };
/* The line at r->at; its bytes without \n. */
enum record_line record_line(const struct record *r, const char **line, size_t *len);
void record_pass(struct record *r); /* over that line */
/* The lines of the reply at r->at, as one text, with `between` between two: how many. */
size_t record_reply(const struct record *r, char between, struct buf *joined);
/* The user lines at r->at, `most` of them, as above. A turn's results come first, a note
 * on an empty reply next. */
size_t record_results(const struct record *r, size_t most, char between, struct buf *joined);

/* ---- what differs. Nothing is compared after it, unless bytes alone differ and that
 * is allowed. */
void record_differs(struct record *r, const char *what, const char *recorded, const char *replayed);
/* The event is not `replayed`, the one that the machine would write. */
void record_other(struct record *r, const char *replayed);
/* Compare bytes; true: they are the same. */
bool record_same(struct record *r, const char *what, const char *recorded, size_t recorded_len,
		 const char *replayed, size_t replayed_len);
/* The word that the event has there must be this one; NULL is "". */
void record_check(struct record *r, const char *what, const char *key, const char *replayed);

/* Each compares, and tells what differs. */
void replay_check_spec(struct replay *p, const json_t *spec);
/* Is the request, as it stands, the one of the InferStart that is looked at? */
bool replay_request_is(const struct replay *p);
/* Behind the InferStart that was taken: the machine stands where the live one stood. */
void replay_check_position(struct replay *p);
void replay_check_infer(struct replay *p, const struct agent_infer *call);
/* Names and broken arguments of its calls become those of the record. */
void replay_mend_reply(struct replay *p, struct turn *t);
/* The answer of a call as the machine has it. */
void replay_check_result(struct replay *p, const struct turn_call *c);
/* The recorded answer of calls[i], whole where messages.jsonl has it; false: it
 * differs from what the event says, or there is no memory. */
bool replay_take_result(struct replay *p, unsigned i);
void replay_check_end(struct replay *p, const struct agent_end *end);

#endif
