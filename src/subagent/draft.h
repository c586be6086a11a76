/* Drafts collect what one commit writes; an outbox sends the drafts of one run
 * in order. Loop thread only. */
#ifndef SUBAGENT_DRAFT_H
#define SUBAGENT_DRAFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "event/event.h"
#include "journal/catalog.h"
#include "journal/journal.h"

struct ava_error;
struct logbook;

#define DRAFT_MAX_PARTS 600 /* most are entries: a reply has up to 256 calls */
enum draft_kind {
	DRAFT_DAY,
	DRAFT_RUN,
	DRAFT_MESSAGES,
	DRAFT_CATALOG,
	DRAFT_PUT,
	DRAFT_DROP,
	DRAFT_ENTRY, /* of a session file; each is a part of its own */
};

struct draft_part { /* stays where it is while others are added */
	enum draft_kind kind;
	char id[48]; /* of an entry */
	struct buf bytes;
	char path[]; /* relative to the root */
};

struct draft {
	struct list node; /* in an outbox */
	struct logbook *lb;
	struct draft_part **parts; /* owned */
	unsigned nparts, cap;
	enum journal_level level;
	bool failed;      /* memory ran out while it was written */
	bool late, quiet; /* others may have written since; `touched` is not called for it */
	bool renewed;     /* its lines have got fresh numbers */
	void (*done)(int rv, void *user);
	void *user;
	struct outbox *box; /* NULL: on its own */
	struct list merged; /* later drafts of the box that go in the same commit */
	struct list open;   /* in logbook.open */
	uint64_t first_lsn; /* of its events; 0: none yet */
	int64_t opened_ms;
};

struct draft *draft_new(struct logbook *lb); /* NULL: out of memory */
void draft_free(struct draft *d);
bool draft_failed(const struct draft *d); /* memory ran out for some of it */

/* The bytes of a part; the same path gives the same part. NULL: no memory. */
struct buf *draft_part(struct draft *d, enum draft_kind kind, const char *path);

/* Where an event stands. */
struct draft_where {
	const char *run;   /* "S-…": into its file; NULL: not */
	uint64_t *run_seq; /* its last seq, counted up */
	bool day;          /* into Ava's daily log; with `run`: both, one lsn */
};

/* Append an event. `head` needs kind and ids; time, lsn and seq are given
 * here. With both places the run's copy is the same event. Content is a JSON
 * object; it must have been redacted. Returns its lsn (0: out of memory; the
 * draft is then failed and its commit is refused). */
uint64_t draft_event(struct draft *d, const struct draft_where *where, struct event_head *head,
		     const struct buf *content, const struct event_meta *meta);
int draft_catalog(struct draft *d, struct catalog_row *row);
/* An entry of a session file: a fresh id for it, which `entry` then holds in
 * "id" (journal_op in journal/journal.h says what it must look like). */
void draft_entry_id(struct draft *d, char out[20]);
int draft_entry(struct draft *d, const char *path, const char *id, const struct buf *entry);

/* The draft is *taken*. 0: done follows exactly once; negative: never, not committed. */
int draft_commit(struct draft *d, enum journal_level level, void (*done)(int rv, void *user),
		 void *user, struct ava_error *err);

/* ---- outbox: the drafts of one run, in order, one commit in flight; what comes
 * meanwhile goes as one behind it. What the disk refused is tried again until it
 * holds: the machine never sees a failing disk, only a slow one. */
struct outbox {
	struct logbook *lb;
	struct list waiting; /* drafts not committed yet */
	struct draft *flying;
	struct list stalled; /* node in logbook.stalled */
	bool is_stalled;
	int stall_code;
	uint64_t numbered; /* last lsn of what got fresh ones before it was written; 0: nothing */
	/* Called once when nothing waits or flies any more; then NULL again. */
	void (*drained)(void *user);
	void *drained_user;
};

void outbox_init(struct outbox *b, struct logbook *lb);
void outbox_fini(struct outbox *b); /* nothing may be flying */
bool outbox_empty(const struct outbox *b);
/* Takes the draft; `done` when it is durable, in order. */
void outbox_put(struct outbox *b, struct draft *d, enum journal_level level,
		void (*done)(int rv, void *user), void *user);
/* It has been open for a while: what of it goes into files that others write to gets
 * fresh numbers. Before events are added that say something about its lines. */
void outbox_refresh(struct outbox *b, struct draft *d);

#endif
