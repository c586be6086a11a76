/* The record that a replay reads: events in their order, the lines of
 * messages.jsonl, and what is told when something differs. */
#ifndef SUBAGENT_REPLAY_RECORD_H
#define SUBAGENT_REPLAY_RECORD_H

#include <jansson.h>

#include "agent/turn.h"
#include "event/trace.h"
#include "provider/dialect.h"

struct redact;

#define REPLAY_DIFFS_MAX 16
#define REPLAY_EXCERPT   160

/* Where record and replay part. */
struct replay_diff {
	uint64_t lsn, seq; /* of the event; 0: the record has none there */
	char type[40];     /* "ToolResult" */
	char call[24];     /* "c3.1", "i2"; "" when it has none */
	char what[160];    /* "the output of read_file" */
	int64_t byte;      /* the first that differs, from 0; -1: no bytes are compared */
	char recorded[REPLAY_EXCERPT], replayed[REPLAY_EXCERPT];
};

struct replay_report {
	bool complete;      /* the record has the run's end, and it was reached */
	uint64_t events;    /* of the record that were gone through */
	unsigned turns;     /* model calls answered */
	const char *reason; /* why it is not complete; static; "" */
	struct replay_diff diffs[REPLAY_DIFFS_MAX]; /* strict: the first one only */
	unsigned ndiffs;                            /* 0: identical */
};

struct record {
	struct ava_trace *events;
	size_t next; /* event */
	char *file;  /* messages.jsonl, owned */
	size_t len, at;
	const struct redact *redact;
	struct replay_report *out;
	bool lenient, stopped; /* nothing more is compared */
	bool carried;          /* another process goes on from here */
	/* The event that was last looked at, and its parts. */
	const struct trace_event *seen;
	json_t *content, *meta;
};

int record_open(struct record *r, int root_fd, const char *run, struct ava_error *err);
void record_close(struct record *r);

/* The next event that a run must bring about, without those that follow from
 * others or are for people only; NULL: the end. Its parts are r->content and
 * r->meta until the next call. */
const struct trace_event *record_peek(struct record *r);
void record_take(struct record *r);
/* Of the events behind `next`: the first of the kind; NULL: none. */
const struct trace_event *record_find(const struct record *r, enum event_kind kind);
/* The run's end: a key of SubagentComplete into `out`; false: it has not ended. */
bool record_end(const struct record *r, const char *key, char *out, size_t size);

/* Replies that it counted; -1: it has not ended. */
int64_t record_end_iterations(const struct record *r);

/* ---- messages.jsonl */
enum record_line { RECORD_NO_LINE, RECORD_ASSISTANT, RECORD_USER, RECORD_AMENDMENT };
/* The line at r->at; its bytes without \n. */
enum record_line record_line(const struct record *r, const char **line, size_t *len);
void record_pass(struct record *r); /* over that line */
/* The user lines at r->at, `most` of them, as one text joined by \n; returns how
 * many there are. A turn's results come first, a note on an empty reply next. */
size_t record_results(const struct record *r, size_t most, struct buf *joined);

/* ---- what differs */
/* Nothing is compared after it, unless bytes alone differ and that is allowed. */
void record_differs(struct record *r, const struct trace_event *e, const char *what,
		    const char *recorded, const char *replayed);
/* Compare bytes; true: they are the same. */
bool record_same(struct record *r, const struct trace_event *e, const char *what,
		 const char *recorded, size_t recorded_len, const char *replayed,
		 size_t replayed_len);
/* The same where the record has a preview, cut and without secrets. */
bool record_same_preview(struct record *r, const struct trace_event *e, const char *what,
			 const char *preview, const char *text, size_t len);
/* Words that must be equal; NULL is "". true: they are. */
bool record_differs_unless(struct record *r, const struct trace_event *e, const char *what,
			   const char *recorded, const char *replayed);
bool record_same_number(struct record *r, const struct trace_event *e, const char *what,
			int64_t recorded, int64_t replayed);

#endif
