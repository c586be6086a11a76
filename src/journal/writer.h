/* The journal's thread: takes commits from the queue, lays them down, syncs, applies, hands them
 * back. */
#ifndef JOURNAL_WRITER_H
#define JOURNAL_WRITER_H

#include <ava.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "journal/segments.h"
#include "journal/view.h"

#define WRITER_QUEUE_MAX  ((size_t)256 << 20) /* bytes of commits not answered yet */
#define WRITER_HELD_MAX   ((size_t)16 << 20)  /* bytes held by a full disk until work is refused */
#define WRITER_RIDE_BYTES ((size_t)64 << 10)  /* queued bytes that end a JOURNAL_RIDE's wait */
#define WRITER_WAL_FACTOR 4                   /* checkpoints' worth of WAL before work is refused */

/* Durable commits wait here while one of their views cannot be written. */
struct apply {
	struct view_set views;
	struct view *touched, *touched_last; /* views with appends not yet written */
	struct view *held; /* views that could not be written; each has a time to retry */
	struct commit_queue unfinished; /* durable, oldest first, not wholly applied */
	size_t held_bytes;              /* bytes of the commits in `unfinished` */
	uint64_t held_commits;
};

/* Fields shared by owner and thread, used under `lock` alone. */
struct writer_shared {
	struct commit_queue in; /* commits on their way from the owner to the thread */
	size_t in_bytes;
	int64_t in_since_us; /* when the oldest commit in `in` arrived */
	bool in_now;         /* some commit in `in` must not wait */
	bool hurry;          /* journal_sync waits for everything */
	bool stop, sleeping;
	int64_t wake_us;          /* when the thread's sleep ends at the latest */
	struct commit_queue done; /* answered commits on their way from the thread to the owner */
	bool owner_waits;
	bool stuck;                    /* the thread sleeps while the disk refuses commits it has */
	struct wal_pos applied;        /* everything before this place is in the views */
	uint64_t applied_lsn;          /* batches before `applied` have lower lsn */
	uint64_t bytes, applied_bytes; /* bytes laid down since start; those before `applied` */
	uint64_t released;             /* bytes laid down that the last checkpoint released */
	uint64_t commits, flushes, held_commits;
	size_t held_bytes;
	int segment_error; /* errno while no segment can be synced; 0: none */
	int held_error;    /* errno of the first held view */
	char held_path[128];
	struct ava_error lasting; /* error of the helper's that stays until the next start */
	int refuse;               /* code with which new commits are refused; 0: they are taken */
	struct ava_error health;  /* code 0: well */
};

struct writer {
	pthread_mutex_t lock;
	pthread_cond_t work;  /* wakes the thread */
	pthread_cond_t ready; /* wakes a waiting owner */
	struct writer_shared shared;

	/* these are set before writer_start */
	int walfd;
	int64_t pace_us;
	uint64_t wal_max; /* most bytes that may wait for a checkpoint */
	void (*notify)(void *user);
	void *user;
	/* Called with the bytes laid down so far; on the thread, not under `lock`. */
	void (*progress)(uint64_t bytes, void *progress_user);
	void *progress_user;

	pthread_t thread;
	bool started;
	_Atomic bool has_blobs; /* blobs may exist that the helper has not seen */

	/* used by the thread alone */
	struct log log;
	struct apply apply;
	struct commit_queue todo; /* commits taken from `in`, not laid down yet */
	int log_error;            /* errno while no segment can be synced */
	int64_t log_retry_ms, log_backoff_ms;
	int64_t mark_us; /* when to write a mark (log_mark); INT64_MAX: never */
	uint64_t bytes, whole, commits, flushes; /* bytes laid down; whole: with those of blobs */
};

/* `good`: where the log that recovery found good ends; `lsn`: the next lsn. On error nothing is
 * left to fini. */
int writer_init(struct writer *w, int rootfd, size_t fd_cache, struct segments *pool,
		struct wal_pos good, uint64_t lsn);
void writer_fini(struct writer *w);
int writer_start(struct writer *w);
/* Flush the queue and stop the thread; commits that the disk refuses are answered too. */
void writer_stop(struct writer *w);

/* For the owner: queue `c`, which is *taken* on 0; else the code with which new work is refused. */
int writer_put(struct writer *w, struct commit *c);
/* For the owner: take the commits answered since the last call. */
struct commit *writer_take(struct writer *w);
/* For the owner: wait until a commit is answered; true: the disk takes no more. */
bool writer_wait(struct writer *w);

/* Recompute refuse and health. Under lock, after a change of their inputs. */
void writer_judge(struct writer *w);

#endif
