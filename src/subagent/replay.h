/* Replay: a run executed again from its record alone. The machine (agent/) and the
 * writers of events and lines are those of a live run; what comes from outside is
 * read from the run's events and messages.jsonl. No network, no tool and no key is
 * touched, nothing is written. Decisions of the clock, other runs and people are
 * read from the record. */
#ifndef SUBAGENT_REPLAY_H
#define SUBAGENT_REPLAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ava_error;
struct redact;

#define REPLAY_DIFFS_MAX 16
#define REPLAY_EXCERPT   160

/* A place where record and replay differ. */
struct replay_diff {
	uint64_t lsn, seq; /* of the event; 0: the record has none there */
	char type[40];     /* "ToolResult" */
	char call[24];     /* "c3.1", "i2"; "" when it has none */
	char what[160];    /* "the output of read_file" */
	int64_t byte;      /* the first byte that differs, from 0; -1: no bytes are compared */
	char recorded[REPLAY_EXCERPT], replayed[REPLAY_EXCERPT];
};

struct replay_report {
	bool complete;      /* the record has the run's end, and it was reached */
	uint64_t events;    /* events of the record that the replay has passed */
	unsigned turns;     /* model calls answered */
	const char *reason; /* why the replay is not complete; static; "": it is */
	struct replay_diff diffs[REPLAY_DIFFS_MAX]; /* without `lenient` only the first one */
	unsigned ndiffs;                            /* 0: identical */
};

/* `lenient`: differences of bytes are noted, and replay goes on with the record's bytes.
 * Any thread. 0: *out is filled. AVA_ENOENT: no such run, or its messages are
 * gone; AVA_ECORRUPT, AVA_EFORMAT, AVA_ENOMEM, AVA_EIO. `redact` may be NULL. */
int replay_run(int root_fd, const char *run, const struct redact *redact, bool lenient,
	       struct replay_report *out, struct ava_error *err);

/* The offset in messages.jsonl behind the lines that call `iteration` of the model
 * was sent; all before it replays identically. AVA_ENOENT: there is no such call;
 * AVA_ECORRUPT: record and replay differ before; else as replay_run. */
int replay_seek(int root_fd, const char *run, int iteration, size_t *at, struct ava_error *err);

#endif
