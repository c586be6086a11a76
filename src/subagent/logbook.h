/* The logbook writes events into Ava's daily log and into run files, rows into the
 * catalog, lines into messages.jsonl, and files. A draft collects what one commit
 * writes; an outbox sends the drafts of one run in order; lines of a draft reach the feed
 * once they are durable and readable. Loop thread only. */
#ifndef SUBAGENT_LOGBOOK_H
#define SUBAGENT_LOGBOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/strmap.h"
#include "event/event.h"
#include "journal/catalog.h"
#include "journal/journal.h"
#include "subagent/feed.h"

struct ava_error;
struct logbook;
struct os_loop;
struct os_timer;
struct redact;

/* ---- drafts */
#define DRAFT_MAX_PARTS 600 /* most are entries: a reply has up to 256 calls */
enum draft_kind {
	/* The lines of these three get their numbers, and so their bytes, at the commit. */
	DRAFT_DAY,
	DRAFT_RUN,
	DRAFT_CATALOG,
	DRAFT_MESSAGES,
	DRAFT_PUT,
	DRAFT_DROP,
	DRAFT_ENTRY, /* one entry of a session file; each is a part of its own */
};

struct draft_part { /* a part stays where it is while others are added */
	enum draft_kind kind;
	char id[48]; /* DRAFT_ENTRY: the entry's id */
	struct buf bytes;
	char path[]; /* relative to the root */
};

struct draft_line;
struct draft {
	struct list node; /* in an outbox */
	struct logbook *lb;
	struct draft_part **parts; /* owned */
	unsigned nparts;
	size_t cap;
	struct draft_line *lines; /* events and rows, in order; owned */
	unsigned nlines, numbered;
	size_t lines_cap;
	struct buf rest; /* the lines without their numbers, one behind the other */
	enum journal_level level;
	bool failed; /* memory ran out while it was written */
	bool quiet;  /* logbook.touched is not called for the draft */
	bool alone;  /* committed by draft_commit: `done` may be told of an error */
	void (*done)(int rv, void *user);
	void *user;
	struct list flight; /* in logbook.flying */
	uint64_t ticket;    /* of who gates it */
	uint64_t first_lsn; /* lsn of the draft's first line; the others have the next ones */
	int64_t sent_ms;
};

struct draft *draft_new(struct logbook *lb); /* NULL: out of memory */
void draft_free(struct draft *d);
bool draft_failed(const struct draft *d); /* memory ran out for some of it */
/* The next event of a run from place *i on, as a line whose numbers are 0: 1 with a view of
 * `line`, which is overwritten; 0: there is none; AVA_ENOMEM. */
int draft_next(const struct draft *d, unsigned *i, struct buf *line, struct event_view *v);

/* The bytes of a part; the same path gives the same part. NULL: no memory. */
struct buf *draft_part(struct draft *d, enum draft_kind kind, const char *path);

/* Counts over the file of a run; each commit of lines moves them on. */
struct run_log {
	uint64_t seq;           /* seq of the file's last line */
	int64_t bytes;          /* length of the lines */
	unsigned char head[32]; /* SHA-256 chained over the lines */
	uint64_t row;           /* lsn of the run's first row of the catalog; 0: it has none yet */
};
void run_log_add(struct run_log *log, uint64_t seq, const char *line, size_t len);
void run_log_hex(const struct run_log *log, char *out); /* the head: 64 characters, no NUL */

/* Overwrites a placeholder in `rest`, the line from ,"eventType" on, with a value known only
 * when the event gets its numbers. Called again after the disk refused the commit. */
typedef void (*draft_number_fn)(char *rest, size_t len, void *user);

/* The files that an event goes into. */
struct draft_where {
	const char *run;     /* "S-…": the event goes into that run's file; NULL: into none */
	struct run_log *log; /* counts of that file; valid until the draft is done */
	bool day; /* the event goes into Ava's daily log; with `run` into both, with one lsn */
	draft_number_fn number; /* NULL: no placeholder */
	void *number_user;
};

/* Append an event. `head` needs kind and ids; time, lsn and seq are given when the
 * draft is committed. With both places the run's copy is the same event. Content is a
 * JSON object; it must have been redacted. AVA_ENOMEM: the draft is then failed and
 * its commit is refused. */
int draft_event(struct draft *d, const struct draft_where *where, const struct event_head *head,
		const struct buf *content, const struct event_meta *meta);
/* The row says the size of `log` at the commit; NULL: row->bytes. */
int draft_catalog(struct draft *d, const struct catalog_row *row, struct run_log *log);
/* An entry of a session file: a fresh id for it, which `entry` then holds in
 * "id" (journal_op in journal/journal.h says what it must look like). */
void draft_entry_id(struct draft *d, char out[20]);
int draft_entry(struct draft *d, const char *path, const char *id, const struct buf *entry);

/* Puts the heads that lines of messages refer to into the draft now: later, memory may not have
 * those that no commit brought to disk yet. As head_add. */
int draft_heads_of(struct draft *d, const struct buf *lines, struct ava_error *err);

/* The draft is *taken*. Heads that its lines of messages refer to go with it, unless they are
 * known to be on disk. 0: done (NULL: nobody asks) follows exactly once; negative: never, not
 * committed. */
int draft_commit(struct draft *d, enum journal_level level, void (*done)(int rv, void *user),
		 void *user, struct ava_error *err);

void draft_pass(struct draft *d, int rv); /* calls `done`, and frees the draft */
/* Numbers of lines that others wrote: no lower one is given from now on. */
void logbook_leap(struct logbook *lb, uint64_t lsn);

/* ---- outbox: the drafts of one run, in order, one commit in flight; drafts that come
 * meanwhile go as one commit behind it. A commit that the disk refused is tried again until
 * it succeeds: the machine never sees a failing disk, only a slow one. */
struct outbox {
	struct logbook *lb;
	struct list waiting; /* drafts not committed yet */
	struct list flying;  /* drafts of the commit in flight */
	struct list stalled; /* node in logbook.stalled */
	bool is_stalled;
	int stall_code;
	/* Called once when nothing waits or flies any more; then NULL again. */
	void (*drained)(void *user);
	void *drained_user;
};

void outbox_init(struct outbox *b, struct logbook *lb);
void outbox_fini(struct outbox *b); /* nothing may be flying */
bool outbox_empty(const struct outbox *b);
/* `drained` at once, or when it is empty. */
void outbox_drain(struct outbox *b, void (*drained)(void *user), void *user);
/* Takes the draft; `done` when it is durable, in order. */
void outbox_put(struct outbox *b, struct draft *d, enum journal_level level,
		void (*done)(int rv, void *user), void *user);

/* ---- the logbook */
struct logbook {
	struct journal *journal;
	struct os_loop *loop;
	const struct redact *redact;
	int root_fd;
	struct feed feed;
	char day[11];        /* local date of the daily log in use */
	uint64_t day_seq;    /* seq of the daily log's last event */
	struct list stalled; /* outboxes whose drafts the disk refused, until they are sent again */
	struct list flying;  /* drafts of commits under way, by lsn */
	struct os_timer *retry;
	int64_t retry_ms;
	/* Heads (provider/head.h): "heads/…" was committed, maybe in vain, since the logbook was
	 * opened; "…" is on disk. Pruning leaves both alone. */
	struct nameset heads;
	/* behind: the journal's numbers were below those in the logs, so they were moved on;
	 * closed: no outbox sends. */
	bool behind, closed;
	/* Called instead of the journal for a draft that an outbox keeps, or the callee frees: a
	 * replay compares it with the record; or NULL. */
	void (*compare)(struct draft *d, void *user);
	void *compare_user;
	/* Called with a draft that is on this disk, in order. The callee lets it count by
	 * draft_pass, or frees it; NULL: it counts at once. */
	void (*gate)(struct draft *d, void *user);
	/* May what has counted still begin here? NULL: always. Asked before what leaves this
	 * machine does so later than in the turn in which it counted. */
	bool (*may)(void *gate_user);
	void *gate_user;
	/* Called when the file `path` got lines; or NULL. */
	void (*touched)(const char *path, void *user);
	void *touched_user;
};

/* Opens today's log for counting (its last seq). `journal` is borrowed. */
int logbook_open(struct logbook *lb, struct journal *journal, struct os_loop *loop,
		 const struct redact *redact, int root_fd, struct ava_error *err);
void logbook_close(struct logbook *lb);

/* Every event up to this lsn is on disk, readable and in the feed, except those that an
 * unwritable file has held back for over a second. A reader of the state as it is now misses
 * nothing if it then follows the events behind this lsn. */
uint64_t logbook_shown(struct logbook *lb);
/* Calls `each` for every late event up to `upto`: its commit is under way or, with a reader, the
 * reader has not got it yet. Its effect may be on disk already, though nobody was told. */
typedef void (*late_fn)(uint64_t lsn, void *user);
void logbook_late(struct logbook *lb, const struct feed_reader *r, uint64_t upto, late_fn each,
		  void *user);

/* ---- Paths of a run's files below the data root, and reading a file together with its
 * further parts. */

struct ava_error;

#define LOGBOOK_PATH 224 /* bytes of a path; a session's holds the name of its working folder */
void logbook_run_path(const char *run, char out[LOGBOOK_PATH]);      /* logs/subagents/S-…jsonl */
void logbook_messages_path(const char *run, char out[LOGBOOK_PATH]); /* runs/S-…/messages.jsonl */
void logbook_result_path(const char *run, char out[LOGBOOK_PATH]);   /* runs/S-…/result.json */

/* Every whole line of `path` and of the parts that follow it (x.2.jsonl …), one
 * behind the other; *data is the caller's (free). A part that is no regular file, too big or
 * unreadable is foreign and left out. Any thread: it reads files only. AVA_ENOENT: there
 * is none; AVA_ETOOBIG over `max`; on an error *data and *len stay as they were. */
int logbook_read(int root_fd, const char *path, size_t max, char **data, size_t *len,
		 struct ava_error *err);
/* The same from the byte *from on, where a line begins that holds all that was
 * before it ({"cut":…, doc/MESSAGES.md). When none begins there, or the file has
 * further parts, it is read as a whole and *from is 0. */
int logbook_read_from(int root_fd, const char *path, size_t *from, size_t max, char **data,
		      size_t *len, struct ava_error *err);
/* The same without a wait: only a file that has no further parts, fits into
 * `size` bytes and is in memory as a whole. Its length, or -1: read it on
 * another thread. */
ssize_t logbook_read_cached(int root_fd, const char *path, char *out, size_t size);

#endif
