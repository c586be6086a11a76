/* The journal as its owner sees it; see journal.h.
 *
 * The owner checks paths, looks up views, builds the commit and puts it into the queue of the
 * journal's thread (writer.c); the helper thread (helper.c) makes checkpoints. Finished commits
 * come back in journal_drain, where the thread that allocated their memory frees it. Failures
 * before the queue are returned at once, later ones through the callback. */
#include "journal/journal.h"

#include <assert.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/strmap.h"
#include "base/sys.h"
#include "base/util.h"
#include "journal/ballast.h"
#include "journal/files.h"
#include "journal/helper.h"
#include "journal/recovery.h"
#include "journal/view.h"
#include "journal/writer.h"

#define OPS_MAX        65535u
#define VIEWS_MAX      ((size_t)1 << 20)
#define SEGMENT_LEAST  ((uint64_t)64 << 10)
#define SEGMENT_MOST   ((uint64_t)1 << 30)
#define SEGMENT_NORMAL ((uint64_t)16 << 20)

struct journal {
	int rootfd, walfd;
	struct strmap views; /* struct view by path */
	struct segments segments;
	struct writer writer;
	struct helper helper;
	bool has_segments, has_writer, has_helper;
	_Atomic uint64_t next_lsn;
	uint64_t commit_lsn; /* first lsn of the next commit */
	size_t queued;       /* bytes of commits not drained */
	uint64_t outstanding;
	size_t room;           /* most bytes of a batch */
	struct view **scratch; /* the view of each operation of the commit being made */
	unsigned capscratch;
	struct recovery recovery;
};

/* ---- open and close */

static int open_folders(struct journal *j, const char *root, struct ava_error *err)
{
	int rv;

	j->rootfd = sys->openat(AT_FDCWD, root, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (j->rootfd < 0)
		return err_sys(err, "open %s", root);
	rv = recovery_check_format(j->rootfd, err);
	if (rv != 0)
		return rv;
	/* The name wal/ must be durable before its content is relied on; sync it also when a
	 * crash came between the two calls. */
	if (files_mkdir(j->rootfd, "wal") != 0)
		return err_sys(err, "make wal");
	if (sys->fsync(j->rootfd) != 0)
		return err_sys(err, "sync %s", root);
	j->walfd = sys->openat(j->rootfd, "wal", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (j->walfd < 0)
		return err_sys(err, "open wal");
	return 0;
}

static int open_segments(struct journal *j, uint64_t bytes)
{
	const struct recovery *r = &j->recovery;
	int rv = segments_init(&j->segments, j->walfd, bytes, r->next_seq);

	j->has_segments = rv == 0;
	for (size_t i = 0; i < r->nsegments && rv == 0; i++)
		if (r->segments[i].used)
			rv = segments_add_live(&j->segments, r->segments[i].seq,
					       r->segments[i].whole);
	if (rv != 0)
		return rv;
	segments_above(&j->segments, r->pos.seq);
	for (size_t i = 0; i < r->nsegments; i++)
		if (!r->segments[i].used)
			segments_add_spare(&j->segments, r->segments[i].seq);
	/* The checkpoint in force released these segments. Reused, they let a start on a full
	 * disk go on. */
	segments_release(&j->segments, r->pos.seq);
	return 0;
}

static int open_threads(struct journal *j, const struct journal_options *o)
{
	const struct recovery *r = &j->recovery;
	struct writer *w = &j->writer;
	struct helper *h = &j->helper;
	int rv = writer_init(w, j->rootfd, o->fd_cache, &j->segments, r->good, r->lsn);

	if (rv != 0)
		return rv;
	j->has_writer = true;
	w->shared.applied = r->pos;
	w->walfd = j->walfd;
	w->pace_us = o->pace_us;
	w->notify = o->notify;
	w->user = o->user;
	w->progress = helper_progress;
	w->progress_user = h;
	helper_init(h);
	j->has_helper = true;
	h->rootfd = j->rootfd;
	h->walfd = j->walfd;
	h->checkpoint_bytes = o->checkpoint_bytes != 0 ? o->checkpoint_bytes : (uint64_t)256 << 20;
	h->checkpoint_ms = o->checkpoint_ms;
	h->ballast_mb = o->ballast_mb;
	h->segments = &j->segments;
	h->writer = w;
	h->next_lsn = &j->next_lsn;
	w->wal_max = WRITER_WAL_FACTOR * MAX(h->checkpoint_bytes, j->segments.bytes);
	rv = writer_start(w);
	return rv == 0 ? helper_start(h) : rv;
}

int journal_open(struct journal **out, const struct journal_options *o,
		 struct journal_recovery *rec, struct ava_error *err)
{
	uint64_t bytes = o->segment_bytes != 0 ? o->segment_bytes : SEGMENT_NORMAL;
	struct journal *j;
	int rv;

	*out = NULL;
	if (bytes < SEGMENT_LEAST || bytes > SEGMENT_MOST || bytes % WAL_PAGE != 0)
		return err_set(err, AVA_EINVAL, "a segment has 64 KB to 1 GB, in pages of 4 KB");
	j = calloc(1, sizeof(*j));
	if (j == NULL)
		return err_set(err, AVA_ENOMEM, "no memory for the journal");
	j->rootfd = j->walfd = -1;
	strmap_init(&j->views);
	j->room = log_room(bytes);
	rv = open_folders(j, o->root, err);
	if (rv != 0)
		goto fail;
	ballast_ease(j->rootfd);
	rv = recovery_run(j->rootfd, j->walfd, &j->recovery, err);
	if (rv != 0)
		goto fail;
	j->next_lsn = j->commit_lsn = j->recovery.lsn;
	rv = open_segments(j, bytes);
	if (rv == 0)
		rv = open_threads(j, o);
	if (rv != 0) {
		err_set(err, rv, "start the journal: %s", ava_strerror(rv));
		goto fail;
	}
	if (rec != NULL)
		*rec = j->recovery.report;
	*out = j;
	return 0;

fail:
	journal_close(j);
	return err_wrap(err, rv, "journal %s", o->root);
}

void journal_close(struct journal *j)
{
	if (j == NULL)
		return;
	if (j->has_writer)
		writer_stop(&j->writer);
	if (j->has_helper)
		helper_stop(&j->helper);
	if (j->has_writer) {
		while (j->outstanding > 0 && journal_drain(j) > 0)
			;
		writer_fini(&j->writer);
	}
	if (j->has_helper)
		helper_fini(&j->helper);
	if (j->has_segments)
		segments_fini(&j->segments);
	strmap_fini(&j->views);
	recovery_fini(&j->recovery);
	files_close(&j->walfd);
	files_close(&j->rootfd);
	free(j->scratch);
	free(j);
}

/* ---- making a commit
 *
 * The batch is built here, on the owner's thread, so that the journal's
 * thread only fills in offsets and the checksum and copies it. Bytes over
 * WAL_INLINE_MAX stay beside the batch; they go to a blob. When a commit of
 * many operations would not fit into a segment, smaller ones go there too. */

static const enum wal_kind wal_kinds[] = {
	[JOURNAL_APPEND] = WAL_APPEND, [JOURNAL_PUT] = WAL_PUT,   [JOURNAL_ENTRY] = WAL_ENTRY,
	[JOURNAL_CREATE] = WAL_CREATE, [JOURNAL_DROP] = WAL_DROP,
};

static size_t id_len(const struct journal_op *op)
{
	return op->kind == JOURNAL_ENTRY ? strlen(op->id) : 0;
}

/* Bytes of the batch and beside it when operations longer than `most` go to blobs. */
static size_t commit_measure(const struct journal_op *ops, struct view *const *views, unsigned n,
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

/* Returns the end of the bytes it put beside the batch. */
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

static int commit_new(struct commit **out, const struct journal_op *ops, struct view *const *views,
		      unsigned n, size_t room)
{
	size_t most = WAL_INLINE_MAX, head, beside, len;
	unsigned char *at, *extra;
	struct commit *c;

	len = commit_measure(ops, views, n, most, &beside);
	if (len > room) {
		most = WAL_HASH; /* a blob's reference is never longer than the bytes it replaces */
		len = commit_measure(ops, views, n, most, &beside);
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

/* ---- commit */

uint64_t journal_lsn(struct journal *j, unsigned n)
{
	return atomic_fetch_add_explicit(&j->next_lsn, n, memory_order_relaxed);
}

static bool path_ok(const char *path)
{
	return files_path_ok(path) && strncmp(path, "wal/", 4) != 0 && strcmp(path, "wal") != 0 &&
	       strcmp(path, "FORMAT") != 0;
}

static enum view_use use_of(enum journal_op_kind kind)
{
	return kind == JOURNAL_PUT     ? VIEW_PUT
	       : kind == JOURNAL_ENTRY ? VIEW_SESSION
				       : VIEW_APPENDED;
}

/* The view of an operation, made known when it is new. */
static int find_view(struct journal *j, const struct journal_op *op, struct view **out)
{
	struct view *v;
	int rv;

	v = op->path != NULL ? strmap_get(&j->views, op->path) : NULL;
	if (v != NULL && v->use == use_of(op->kind)) {
		*out = v;
		return 0;
	}
	if (v != NULL || !path_ok(op->path))
		return AVA_EINVAL;
	if (j->views.count >= VIEWS_MAX)
		return AVA_EBUSY;
	v = view_new(op->path, use_of(op->kind));
	if (v == NULL)
		return AVA_ENOMEM;
	rv = strmap_put(&j->views, v->path, v);
	if (rv != 0) {
		view_free(v);
		return rv;
	}
	helper_add(&j->helper, v);
	*out = v;
	return 0;
}

static bool op_ok(const struct journal_op *op)
{
	if (op->kind > JOURNAL_DROP || (op->len > 0 && op->bytes == NULL))
		return false;
	if (op->kind == JOURNAL_ENTRY)
		return op->len > 0 && op->id != NULL && op->id[0] != '\0' &&
		       strlen(op->id) <= FILES_NAME_MAX;
	return op->len == 0 || op->kind == JOURNAL_APPEND || op->kind == JOURNAL_PUT;
}

static int check_ops(struct journal *j, const struct journal_op *ops, unsigned n)
{
	size_t total = 0;
	int rv;

	if (n == 0 || n > OPS_MAX)
		return AVA_EINVAL;
	if (n > j->capscratch) {
		struct view **more = realloc(j->scratch, n * sizeof(more[0]));

		if (more == NULL)
			return AVA_ENOMEM;
		j->scratch = more;
		j->capscratch = n;
	}
	for (unsigned i = 0; i < n; i++) {
		if (!op_ok(&ops[i]))
			return AVA_EINVAL;
		if (ops[i].len > WRITER_QUEUE_MAX - total)
			return AVA_ETOOBIG;
		total += ops[i].len;
		rv = find_view(j, &ops[i], &j->scratch[i]);
		if (rv != 0)
			return rv;
	}
	return j->queued > 0 && total > WRITER_QUEUE_MAX - j->queued ? AVA_EBUSY : 0;
}

int journal_commit(struct journal *j, const struct journal_op *ops, unsigned n,
		   enum journal_level level, journal_done_fn done, void *user)
{
	struct commit *c;
	uint64_t next;
	size_t memory;
	int rv;

	rv = check_ops(j, ops, n);
	if (rv == 0)
		rv = commit_new(&c, ops, j->scratch, n, j->room);
	if (rv != 0) {
		j->commit_lsn = j->next_lsn; /* the numbers are not used again */
		return rv;
	}
	/* Each commit takes at least one lsn of its own, so that an ABORT can name it. */
	next = j->next_lsn;
	if (next == j->commit_lsn)
		next = journal_lsn(j, 1) + 1;
	c->lsn_count = (uint32_t)MIN(next - j->commit_lsn, (uint64_t)UINT32_MAX);
	c->first_lsn = next - c->lsn_count;
	j->commit_lsn = next;
	c->done = done;
	c->user = user;
	c->now = level == JOURNAL_NOW;
	memory = c->memory;
	for (unsigned i = 0; i < n; i++)
		j->scratch[i]->refs++;
	rv = writer_put(&j->writer, c); /* on 0 the writer owns c */
	if (rv == 0) {
		j->queued += memory;
		j->outstanding++;
		return 0;
	}
	for (unsigned i = 0; i < n; i++)
		j->scratch[i]->refs--;
	free(c);
	return rv;
}

/* ---- answers */

static void forget_views(struct journal *j)
{
	struct view *v, *next;

	for (v = helper_take_forget(&j->helper); v != NULL; v = next) {
		next = v->forget_next;
		if (v->refs == 0 && v->dropped && v->mark == VIEW_SYNCED) {
			strmap_del(&j->views, v->path);
			helper_bury(&j->helper, v);
		} else {
			v->forgettable = false;
		}
	}
}

unsigned journal_drain(struct journal *j)
{
	struct commit *c = writer_take(&j->writer), *next;
	unsigned ran = 0;

	for (; c != NULL; c = next) {
		next = c->next;
		for (unsigned i = 0; i < c->nops; i++)
			c->ops[i].view->refs--;
		j->queued -= c->memory;
		j->outstanding--;
		if (c->done != NULL)
			c->done(c->rv, c->user);
		free(c);
		ran++;
	}
	forget_views(j);
	return ran;
}

int journal_sync(struct journal *j)
{
	journal_drain(j);
	while (j->outstanding > 0) {
		if (writer_wait(&j->writer))
			return journal_health(j, NULL);
		journal_drain(j);
	}
	return 0;
}

int journal_checkpoint(struct journal *j, struct ava_error *err)
{
	return helper_checkpoint(&j->helper, err);
}

int journal_health(struct journal *j, struct ava_error *err)
{
	struct ava_error e;

	pthread_mutex_lock(&j->writer.lock);
	e = j->writer.shared.health;
	pthread_mutex_unlock(&j->writer.lock);
	if (err != NULL)
		*err = e;
	return e.code;
}

int journal_ready(struct journal *j, struct ava_error *err)
{
	int rv;

	pthread_mutex_lock(&j->writer.lock);
	rv = j->writer.shared.health.code;
	/* A full disk concerns all views, not one. */
	if (j->writer.shared.refuse == 0 && rv != AVA_EFULL)
		rv = 0;
	if (rv != 0 && err != NULL)
		*err = j->writer.shared.health;
	pthread_mutex_unlock(&j->writer.lock);
	return rv;
}

const char *journal_view_path(struct journal *j, const char *path, char *out, size_t size)
{
	char name[FILES_BUF] = "";
	struct view *v;
	unsigned part = 0;

	if (path_ok(path)) {
		v = strmap_get(&j->views, path);
		part = v != NULL ? v->part : 0;
		files_part_name(path, part != 0 ? part : view_find_part(j->rootfd, path), name);
	}
	snprintf(out, size, "%s", name);
	return out;
}

void journal_stats(struct journal *j, struct journal_stats *out)
{
	struct writer *w = &j->writer;

	*out = (struct journal_stats){
		.checkpoints = j->helper.checkpoints,
		.views = j->views.count,
		.open_fds = w->apply.views.count,
		.queued_bytes = j->queued,
		.lsn = j->next_lsn,
	};
	pthread_mutex_lock(&w->lock);
	out->commits = w->shared.commits;
	out->flushes = w->shared.flushes;
	out->bytes = w->shared.bytes;
	out->held_commits = w->shared.held_commits;
	pthread_mutex_unlock(&w->lock);
}
