/* From the journal to the views: commits that are durable are applied here,
 * and wait here while a view of theirs cannot be written. Journal's thread. */
#ifndef JOURNAL_APPLY_H
#define JOURNAL_APPLY_H

#include "journal/view.h"

struct apply {
	struct view_set views;
	struct view *touched, *touched_last; /* with appends not yet written */
	struct view *held;                   /* that failed; each has its time to retry */
	struct commit_queue unfinished;      /* durable, oldest first, not wholly applied */
	size_t held_bytes;                   /* of `unfinished` */
	uint64_t held_commits;
};

int apply_init(struct apply *a, int rootfd, size_t fd_cache);
void apply_fini(struct apply *a);

/* Everything of `flushed`, in order, but for those refused (rv not 0). Commits that are through
 * move to `finished`, the others stay in a->unfinished. */
void apply_flush(struct apply *a, struct commit_queue *flushed, struct commit_queue *finished);
/* Try the held views whose time has come (`all`: every one). */
void apply_retry(struct apply *a, bool all, struct commit_queue *finished);
/* The end: no view is held any more; what was not applied moves to `rest`. */
void apply_abandon(struct apply *a, struct commit_queue *rest);
/* When the next one's time comes; INT64_MAX when none is held. */
int64_t apply_retry_ms(const struct apply *a);

#endif
