/* One journal_commit on its way: made by the owner, laid down, synced and
 * applied by the journal's thread, freed by the owner after its callback. */
#ifndef JOURNAL_COMMIT_H
#define JOURNAL_COMMIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "journal/journal.h"
#include "journal/wal.h"

struct view;
struct ava_error;

struct op {
	struct op *next; /* behind it in its view's queue, while not applied */
	struct commit *commit;
	struct view *view;
	const unsigned char *bytes; /* all of them, also when a blob holds them */
	size_t len;
	uint64_t offset;    /* in the view; given when laid down */
	const char *id;     /* ENTRY; NUL-terminated */
	uint32_t at;        /* of its head in commit->batch */
	uint8_t kind;       /* enum journal_op_kind */
	bool blob, creates; /* creates: the view did not exist before it */
};

/* One allocation: the struct, its operations, its batch, its longer bytes. */
struct commit {
	struct commit *next;
	journal_done_fn done;
	void *user;
	uint64_t first_lsn;
	uint32_t lsn_count;
	unsigned nops, pending; /* pending: not applied yet */
	int rv;
	bool now;
	size_t memory;        /* of the allocation: what it counts in the queue */
	size_t batch_len;     /* head and padding counted */
	struct wal_pos pos;   /* where it was laid down */
	uint64_t before;      /* bytes laid down before it since start */
	unsigned char *batch; /* as it goes to the segment, but for the head, offsets and hashes */
	struct op ops[];
};

/* First and last of a queue; `last` is undefined while it is empty. */
struct commit_queue {
	struct commit *first, *last;
};

static inline void commit_push(struct commit_queue *q, struct commit *c)
{
	c->next = NULL;
	if (q->first == NULL)
		q->first = c;
	else
		q->last->next = c;
	q->last = c;
}

static inline struct commit *commit_pop(struct commit_queue *q)
{
	struct commit *c = q->first;

	if (c != NULL)
		q->first = c->next;
	return c;
}

/* All of `from` behind `to`; `from` is empty then. */
static inline void commit_move(struct commit_queue *to, struct commit_queue *from)
{
	if (from->first == NULL)
		return;
	if (to->first == NULL)
		to->first = from->first;
	else
		to->last->next = from->first;
	to->last = from->last;
	from->first = NULL;
}

/* Paths are checked and views are known: `views` has one per operation.
 * AVA_ENOMEM; AVA_ETOOBIG when its batch cannot be made to fit into `room`
 * bytes by moving bytes out into blobs. */
int commit_new(struct commit **out, const struct journal_op *ops, struct view *const *views,
	       unsigned n, size_t room);
void commit_free(struct commit *c);

#endif
