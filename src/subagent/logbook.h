/* What is written where: events into Ava's daily log and into run files, rows
 * into the catalog, lines into messages.jsonl, files. A draft collects them
 * and is committed as one; lines of a draft reach the feed once they are
 * durable and readable. Loop thread only. */
#ifndef SUBAGENT_LOGBOOK_H
#define SUBAGENT_LOGBOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "event/event.h"
#include "journal/catalog.h"
#include "journal/journal.h"
#include "subagent/feed.h"
#include "subagent/paths.h"

struct os_loop;
struct os_timer;
struct redact;
struct logbook {
	struct journal *journal;
	struct os_loop *loop;
	const struct redact *redact;
	int root_fd;
	struct feed feed;
	char day[11];          /* local date of the daily log in use */
	uint64_t day_seq;      /* of its last event */
	struct list stalled;   /* outboxes whose head waits for the disk */
	struct list open;      /* drafts with events, by their first lsn: see settle */
	struct os_timer *late; /* set while the feed holds lines */
	bool late_set;
	struct os_timer *retry;
	int64_t retry_ms;
	bool behind, closed; /* its numbers were behind those in the logs; it takes no more */
	void (*touched)(const char *path, void *user); /* lines came to it; may be NULL */
	void *touched_user;
};

/* Opens today's log for counting (its last seq). `journal` is borrowed. */
int logbook_open(struct logbook *lb, struct journal *journal, struct os_loop *loop,
		 const struct redact *redact, int root_fd, struct ava_error *err);
void logbook_close(struct logbook *lb);

/* ---- drafts */
#define DRAFT_MAX_PARTS 8
enum draft_kind { DRAFT_DAY, DRAFT_RUN, DRAFT_MESSAGES, DRAFT_CATALOG, DRAFT_PUT, DRAFT_DROP };

struct draft_part {
	enum draft_kind kind;
	char path[96]; /* relative to the root */
	struct buf bytes;
};

struct draft {
	struct list node; /* in an outbox */
	struct logbook *lb;
	struct draft_part parts[DRAFT_MAX_PARTS];
	unsigned nparts;
	enum journal_level level;
	bool failed;       /* memory ran out while it was written */
	bool tried, quiet; /* the disk refused it before; `touched` is not called for it */
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

/* The draft is *taken*. 0: done follows exactly once; negative: never, not committed. */
int draft_commit(struct draft *d, enum journal_level level, void (*done)(int rv, void *user),
		 void *user, struct ava_error *err);

/* ---- outbox: the drafts of one run, in order, one commit in flight; what comes
 * meanwhile goes as one behind it. What the disk refused is tried again until it
 * holds: the machine never sees a failing disk, only a slow one. */
struct outbox {
	struct logbook *lb;
	struct list waiting, stalled; /* drafts not committed yet; node in logbook.stalled */
	struct draft *flying;
	bool is_stalled;
	int stall_code;
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
#endif
