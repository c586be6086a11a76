/* The helper thread: fills segments ahead, makes checkpoints, forgets views
 * that are complete. Nothing that is acknowledged waits for it. */
#ifndef JOURNAL_HELPER_H
#define JOURNAL_HELPER_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "journal/segments.h"
#include "journal/writer.h"

struct helper {
	pthread_mutex_t lock;
	pthread_cond_t wake, done;
	/* these are used under `lock` alone */
	struct view *all;    /* every view; the owner adds them, the thread unlinks them */
	struct view *forget; /* complete views that the helper offers the owner to forget */
	struct view *dead;   /* views that the owner gave back, in no map any more, to be freed */
	/* asked of the thread: to end, to fill segments, to make a checkpoint */
	bool stop, fill, wanted;
	uint64_t asked, made;    /* number of checkpoints waited for; those made */
	struct ava_error result; /* outcome of the last checkpoint */

	/* set before helper_start */
	int rootfd, walfd;
	uint64_t checkpoint_bytes;
	unsigned ballast_mb;
	int64_t checkpoint_ms; /* ms between checkpoints; 0: only on request */
	struct segments *segments;
	struct writer *writer;
	const _Atomic uint64_t *next_lsn;

	pthread_t thread;
	bool started;
	_Atomic bool news; /* a batch was laid down or applied since the last checkpoint began */
	_Atomic uint64_t checkpoints, views;

	/* used by the helper thread alone */
	bool failed; /* views could not be synced: no more checkpoints */
	int64_t last_ms, fill_again_ms;

	/* used by the writer's thread alone, in helper_progress */
	uint64_t seen_bytes, seen_applied, fill_bytes, wanted_bytes;
};

void helper_init(struct helper *h);
void helper_fini(struct helper *h); /* frees every view */
int helper_start(struct helper *h);
/* Stop the thread, after the writer has stopped, and make a last checkpoint, marked clean when
 * nothing was left over. */
void helper_stop(struct helper *h);

/* For the owner: add a new view; take the forgettable ones (linked by `forget_next`); give back one
 * that is in no map any more. */
void helper_add(struct helper *h, struct view *v);
struct view *helper_take_forget(struct helper *h);
void helper_bury(struct helper *h, struct view *v);

/* The function for writer.progress. A journal that finds no room for a segment gets a checkpoint,
 * which releases finished ones. */
void helper_progress(uint64_t bytes, void *helper);
/* Any thread: begin a checkpoint now; returns when it is done. */
int helper_checkpoint(struct helper *h, struct ava_error *err);

#endif
