/* Making commits; see commit.h.
 *
 * The batch is built here, on the owner's thread, so that the journal's
 * thread only fills in offsets and the checksum and copies it. Bytes over
 * WAL_INLINE_MAX stay beside the batch; they go to a blob. When a commit of
 * many operations would not fit into a segment, smaller ones go there too. */
#include "journal/commit.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "journal/view.h"

static const enum wal_kind wal_kinds[] = {
	[JOURNAL_APPEND] = WAL_APPEND, [JOURNAL_PUT] = WAL_PUT,   [JOURNAL_ENTRY] = WAL_ENTRY,
	[JOURNAL_CREATE] = WAL_CREATE, [JOURNAL_DROP] = WAL_DROP,
};

static size_t id_len(const struct journal_op *op)
{
	return op->kind == JOURNAL_ENTRY ? strlen(op->id) : 0;
}

/* Bytes of the batch and beside it when what is longer than `most` goes to
 * blobs. */
static size_t measure(const struct journal_op *ops, struct view *const *views, unsigned n,
		      size_t most, size_t *beside)
{
	size_t batch = WAL_BATCH_HEAD;

	*beside = 0;
	for (unsigned i = 0; i < n; i++) {
		bool blob = ops[i].len > most;

		batch += wal_op_size(views[i]->path_len, id_len(&ops[i]), ops[i].len, blob);
		*beside += blob ? ops[i].len : 0;
		/* ENTRY is applied by its id, as a C string. */
		*beside += ops[i].kind == JOURNAL_ENTRY ? id_len(&ops[i]) + 1 : 0;
	}
	return (batch + WAL_ALIGN - 1) / WAL_ALIGN * WAL_ALIGN;
}

/* Returns behind what it put beside the batch. */
static unsigned char *fill_op(struct commit *c, unsigned i, const struct journal_op *from,
			      struct view *view, size_t most, unsigned char **at,
			      unsigned char *beside)
{
	struct op *op = &c->ops[i];
	struct wal_op w = {
		.kind = wal_kinds[from->kind],
		.blob = from->len > most,
		.path = view->path,
		.path_len = view->path_len,
		.id = from->id,
		.id_len = id_len(from),
		.bytes = from->len > most ? NULL : from->bytes,
		.len = from->len,
	};

	*op = (struct op){.commit = c,
			  .view = view,
			  .len = from->len,
			  .at = (uint32_t)(*at - c->batch),
			  .kind = (uint8_t)from->kind,
			  .blob = w.blob};
	*at = wal_op_put(*at, &w);
	op->bytes = *at - from->len;
	if (w.blob) {
		op->bytes = memcpy(beside, from->bytes, from->len);
		beside += from->len;
	}
	if (from->kind == JOURNAL_ENTRY) {
		op->id = memcpy(beside, from->id, w.id_len + 1);
		beside += w.id_len + 1;
	}
	return beside;
}

int commit_new(struct commit **out, const struct journal_op *ops, struct view *const *views,
	       unsigned n, size_t room)
{
	size_t most = WAL_INLINE_MAX, head, beside, len;
	unsigned char *at, *extra;
	struct commit *c;

	len = measure(ops, views, n, most, &beside);
	if (len > room) {
		most = WAL_HASH; /* a blob's reference is no longer than what it replaces */
		len = measure(ops, views, n, most, &beside);
	}
	if (len > room)
		return AVA_ETOOBIG;
	head = sizeof(*c) + n * sizeof(c->ops[0]);
	c = malloc(head + len + beside);
	if (c == NULL)
		return AVA_ENOMEM;
	*c = (struct commit){.nops = n, .pending = n, .memory = head + len + beside};
	c->batch_len = len;
	c->batch = (unsigned char *)c + head;
	at = c->batch + WAL_BATCH_HEAD;
	extra = c->batch + len;
	for (unsigned i = 0; i < n; i++)
		extra = fill_op(c, i, &ops[i], views[i], most, &at, extra);
	assert(at <= c->batch + len);
	memset(at, 0, (size_t)(c->batch + len - at)); /* WAL_END, and padding */
	*out = c;
	return 0;
}

void commit_free(struct commit *c)
{
	free(c);
}
