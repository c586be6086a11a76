/* The journal: the redo log that makes commits durable, and the views that
 * people read. doc/JOURNAL.md is the format and says why it holds.
 *
 * journal_commit() takes a list of operations that happen all or not at all.
 * The owner thread (the loop) calls it and gets its callback from
 * journal_drain(); a thread of the journal's writes the segment, syncs it,
 * then applies the operations to the views. The callback comes after both:
 * acknowledged means durable and readable. Offsets in views are given by that
 * thread when the batch is laid down, lsn by the owner at journal_lsn().
 *
 * On a failed sync the segment is dead: those waiting get AVA_EUNKNOWN, an
 * ABORT of their lsn range opens the next segment, so that they never happen
 * later; committing the same thing again afterwards is safe. */
#ifndef JOURNAL_JOURNAL_H
#define JOURNAL_JOURNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct journal;
struct ava_error;

enum journal_level {
	JOURNAL_RIDE, /* waits up to `pace_us`, or for 64 KB, to share a flush with others */
	JOURNAL_NOW,  /* flushed as soon as the last flush ends */
};

enum journal_op_kind {
	JOURNAL_APPEND, /* bytes at the end of view `path` (created if absent) */
	JOURNAL_PUT,    /* the whole of file `path`: temporary file and rename */
	JOURNAL_ENTRY,  /* line into a session file, see journal_op */
	JOURNAL_CREATE, /* view `path` must not exist yet */
	JOURNAL_DROP,   /* the view is complete: no more appends follow */
};

struct journal_op {
	enum journal_op_kind kind;
	/* Relative to the root, made of [A-Za-z0-9._/-], no ".."; missing folders are made
	 * (0700, files 0600). *Copied.* */
	const char *path;
	/* *Copied.* For ENTRY: the JSON object's text with `"parentId":null`
	 * in it, which is filled with the id of the file's last entry, read
	 * under flock just before the write; redone only when no line with
	 * `id` is there. */
	const void *bytes;
	size_t len;
	const char *id; /* the entry's id, for JOURNAL_ENTRY only; *copied* */
};

struct journal_options {
	const char *root;          /* absolute path of a folder that exists; *copied* */
	int64_t pace_us;           /* longest wait of a JOURNAL_RIDE: 2000 */
	uint64_t segment_bytes;    /* size of a segment: 16 MB; tests use less */
	uint64_t checkpoint_bytes; /* a checkpoint is made after so many bytes: 256 MB */
	int64_t checkpoint_ms;     /* and after so many ms: 30,000; 0: by journal_checkpoint only */
	unsigned ballast_mb;       /* room to reserve on the disk (ballast.h); 0: none */
	size_t fd_cache;           /* most files of views kept open; 0: as RLIMIT_NOFILE allows */
	/* Called on the journal's thread when journal_drain has work: wake the owner (os_post,
	 * eventfd). */
	void (*notify)(void *user);
	void *user;
};

/* Findings and work of recovery; all zero after a clean end. */
struct journal_recovery {
	bool clean; /* the last close was orderly */
	uint64_t redone_batches, redone_bytes, torn_bytes, aborted_batches;
	uint64_t damaged_batches; /* batches that are corrupt, with valid ones behind */
	uint64_t lost_bytes;      /* bytes put aside into lost/ */
	/* JSON array of {"path","problem","lostBytes","continuesIn"} for each
	 * view that could not take its bytes; owned by the journal; "[]". */
	const char *problems;
	size_t nproblems;
};

/* Recover if needed, then open for writing. The caller holds the lock of the
 * root (ava.lock). AVA_EFORMAT when FORMAT names a newer one. */
int journal_open(struct journal **j, const struct journal_options *o, struct journal_recovery *rec,
		 struct ava_error *err);
/* Close the journal: flush, apply, checkpoint, stop the threads. Callbacks not yet drained run
 * here, on the calling thread. */
void journal_close(struct journal *j);

/* Take `n` lsn for the bytes of the next commit; returns the first. Those not used are never given
 * again. */
uint64_t journal_lsn(struct journal *j, unsigned n);

/* The answer to a commit, exactly once, from journal_drain. rv 0: durable and readable;
 * AVA_EUNKNOWN, AVA_EFULL or AVA_EIO (the latter two: certainly not done). */
typedef void (*journal_done_fn)(int rv, void *user);

/* Commit operations, all or none of them. 0: queued, `done` (may be NULL) follows. Negative:
 * nothing was queued and `done` is never called: AVA_EINVAL (a path), AVA_ENOMEM, AVA_EFULL /
 * AVA_EIO (the journal refuses new work; journal_health says why), AVA_EBUSY (over 256 MB waiting
 * for the disk). */
int journal_commit(struct journal *j, const struct journal_op *ops, unsigned n,
		   enum journal_level level, journal_done_fn done, void *user);

/* Run callbacks of finished commits, in order of lsn (a view that cannot be
 * written holds only its own). Owner thread. Returns how many ran. */
unsigned journal_drain(struct journal *j);
/* Block until everything committed so far is answered; drains. For shutdown. */
int journal_sync(struct journal *j);
/* Start a checkpoint now; returns when it is done. Not on the loop. */
int journal_checkpoint(struct journal *j, struct ava_error *err);

/* How the journal is: 0 and "" when well, else the code and one clear sentence. Owner thread. */
int journal_health(struct journal *j, struct ava_error *err);
/* 0 while new work is taken: a single unwritable file, unless the disk is full, is reported by
 * journal_health and holds up nothing else. */
int journal_ready(struct journal *j, struct ava_error *err);

/* The file that an APPEND to `path` goes to: `path`, or its ".2.jsonl" … successor after a
 * recovery. Owner thread; returns `out`. */
const char *journal_view_path(struct journal *j, const char *path, char *out, size_t size);

struct journal_stats {
	uint64_t commits, flushes, bytes, checkpoints, views, open_fds, queued_bytes, held_commits,
		lsn;
};
void journal_stats(struct journal *j, struct journal_stats *out);

#endif
