/* The journal's thread: takes commits from the queue, lays them down, syncs,
 * applies, hands them back. */
#ifndef JOURNAL_WRITER_H
#define JOURNAL_WRITER_H

#include <ava.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "journal/segments.h"
#include "journal/view.h"

#define WRITER_QUEUE_MAX  ((size_t)256 << 20) /* bytes not answered yet */
#define WRITER_HELD_MAX   ((size_t)16 << 20)  /* of these, behind a full disk */
#define WRITER_RIDE_BYTES ((size_t)64 << 10)  /* enough company for a RIDE */
#define WRITER_WAL_FACTOR 4                   /* checkpoints' worth of WAL before work is refused */

/* Commits that are durable wait here while a view of theirs cannot be written. */
struct apply {
	struct view_set views;
	struct view *touched, *touched_last; /* with appends not yet written */
	struct view *held;                   /* that failed; each has its time to retry */
	struct commit_queue unfinished;      /* durable, oldest first, not wholly applied */
	size_t held_bytes;                   /* of `unfinished` */
	uint64_t held_commits;
};

/* What both sides see; all under `lock`. */
struct writer_shared {
	struct commit_queue in; /* owner to thread */
	size_t in_bytes;
	int64_t in_since_us; /* when the first of them came */
	bool in_now;         /* one of them does not wait */
	bool hurry;          /* somebody waits for everything (journal_sync) */
	bool stop, sleeping;
	int64_t wake_us;          /* asleep until then at the latest */
	struct commit_queue done; /* thread to owner */
	bool owner_waits;
	bool stuck;                    /* asleep with commits that the disk does not take */
	struct wal_pos applied;        /* everything before it is in the views */
	uint64_t applied_lsn;          /* no batch before it has this lsn or a later one */
	uint64_t bytes, applied_bytes; /* laid down since start; of these before `applied` */
	uint64_t released;             /* of these, before the last checkpoint */
	uint64_t commits, flushes, held_commits;
	size_t held_bytes;
	int segment_error; /* errno: no segment can be synced */
	int held_error;    /* errno of the first held view */
	char held_path[128];
	struct ava_error lasting; /* set by the helper: stays until the next start */
	int refuse;               /* code for new commits, 0: welcome */
	struct ava_error health;  /* code 0: well */
};

struct writer {
	pthread_mutex_t lock;
	pthread_cond_t work;  /* for the thread */
	pthread_cond_t ready; /* for an owner that waits */
	struct writer_shared shared;

	/* set before writer_start */
	int walfd;
	int64_t pace_us;
	uint64_t wal_max; /* bytes that may wait for a checkpoint */
	void (*notify)(void *user);
	void *user;
	/* So many bytes are laid down; on the thread, not under `lock`. */
	void (*progress)(uint64_t bytes, void *progress_user);
	void *progress_user;

	pthread_t thread;
	bool started;
	_Atomic bool has_blobs; /* there may be some since the helper looked */

	/* the thread's */
	struct log log;
	struct apply apply;
	struct commit_queue todo; /* taken from `in`, not laid down */
	int log_error;            /* errno while no segment can be synced */
	int64_t log_retry_ms, log_backoff_ms;
	int64_t mark_us;                         /* when to write a mark; INT64_MAX: no need */
	uint64_t bytes, whole, commits, flushes; /* whole: bytes, with those of blobs */
};

/* `good`: where recovery ended. On error nothing is left to fini. */
int writer_init(struct writer *w, int rootfd, size_t fd_cache, struct segments *pool,
		struct wal_pos good, uint64_t lsn);
void writer_fini(struct writer *w);
int writer_start(struct writer *w);
/* Everything queued is flushed; what the disk does not take is answered. */
void writer_stop(struct writer *w);

/* Owner. *c* is *taken* on 0; else the code with which new work is refused. */
int writer_put(struct writer *w, struct commit *c);
/* Owner: what is answered since the last time. */
struct commit *writer_take(struct writer *w);
/* Owner: until something is answered, or, true, the disk takes no more. */
bool writer_wait(struct writer *w);

/* Under lock, by whoever changed what it depends on. */
void writer_judge(struct writer *w);

#endif
