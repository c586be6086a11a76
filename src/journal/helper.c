/* The helper thread; see helper.h.
 *
 * A checkpoint: note how far the journal is applied; take every view's size, then its mark; sync
 * the written views, or the file system when they are many; write the checkpoint file; release
 * segments and blobs before the position. A size read after the position may be larger than it
 * was then, which is right: a write sets the mark before the size, so bytes the size counts are
 * covered by the sync that follows, or were by an earlier one. A log that went on in its next
 * part leaves bytes in the part before that no sync of the new one covers, and a moved file is
 * not found by its name: then the whole file system is synced.
 *
 * When syncing a view fails the kernel may have dropped its dirty pages, and a later sync would
 * not tell. So the position never moves again in this process, new work is refused, and the next
 * start redoes everything. */
#include "journal/helper.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/util.h"
#include "journal/ballast.h"
#include "journal/segments.h"
#include "journal/wal.h"
#include "journal/files.h"

#define FILL_RETRY_MS 1000
#define TEXT_MAX      ((size_t)256 << 20)
#define PIECE         ((uint64_t)256 << 10) /* bytes of a view that are written at once */

struct round {
	struct view *all;
	struct wal_pos pos;
	uint64_t pos_lsn, bytes;
	struct buf text;
	size_t ndirty;
};

/* ---- views come and go */

static struct view *first_view(struct helper *h)
{
	struct view *v;

	pthread_mutex_lock(&h->lock);
	v = h->all;
	pthread_mutex_unlock(&h->lock);
	return v;
}

/* Only this thread unlinks, and the owner only pushes at the front, so behind
 * the front the list can be walked and cut without the lock. */
static void free_dead(struct helper *h)
{
	struct view *dead, *v, *next;

	pthread_mutex_lock(&h->lock);
	dead = h->dead;
	h->dead = NULL;
	for (v = dead; v != NULL; v = v->forget_next)
		v->gone = true;
	while (h->all != NULL && h->all->gone)
		h->all = h->all->all_next;
	pthread_mutex_unlock(&h->lock);
	for (v = dead != NULL ? first_view(h) : NULL; v != NULL; v = v->all_next)
		while (v->all_next != NULL && v->all_next->gone)
			v->all_next = v->all_next->all_next;
	for (v = dead; v != NULL; v = next) {
		int kept = view_take_kept(&h->writer->apply.views, v);

		files_close(&kept);
		next = v->forget_next;
		view_free(v);
		h->views--;
	}
}

/* Offer complete and synced views to the owner. */
static void offer_forget(struct helper *h, struct view *all)
{
	struct view *first = NULL, *last = NULL;

	for (struct view *v = all; v != NULL; v = v->all_next) {
		if (!v->dropped || v->mark != VIEW_SYNCED || v->forgettable)
			continue;
		v->forgettable = true;
		v->forget_next = first;
		first = v;
		last = last != NULL ? last : v;
	}
	if (first == NULL)
		return;
	pthread_mutex_lock(&h->lock);
	last->forget_next = h->forget;
	h->forget = first;
	pthread_mutex_unlock(&h->lock);
}

/* ---- a checkpoint */

static void helper_begin(struct helper *h, struct round *r, bool closing)
{
	struct writer *w = h->writer;
	bool clean;

	*r = (struct round){0};
	pthread_mutex_lock(&w->lock);
	r->pos = w->shared.applied;
	r->pos_lsn = w->shared.applied_lsn;
	r->bytes = w->shared.applied_bytes;
	clean = closing && r->bytes == w->shared.bytes && w->shared.lasting.code == 0;
	pthread_mutex_unlock(&w->lock);
	/* The next start after a whole end begins a new segment, so release this one too: its
	 * room may be the only room for that. */
	if (clean && r->pos.at > WAL_BEGIN)
		r->pos = (struct wal_pos){r->pos.seq + 1, WAL_BEGIN};
	buf_init(&r->text, TEXT_MAX);
	checkpoint_head(&r->text, clean, r->pos, *h->next_lsn);
	r->all = first_view(h);
}

static void helper_note(struct round *r, struct view *v)
{
	struct checkpoint_view cv = {.path = v->path};
	int was = VIEW_WRITTEN;

	cv.part = v->part;
	cv.size = v->noted = v->size;
	cv.inode = v->inode;
	v->syncing = atomic_compare_exchange_strong(&v->mark, &was, VIEW_SYNCING);
	v->fresh_now = v->syncing && atomic_exchange(&v->fresh, false);
	r->ndirty += v->syncing;
	/* An empty file is not listed: it may be new, and its name is durable only with the mark
	 * of its first bytes. Nor is a log listed that went on in its next part meanwhile. */
	if (v->use == VIEW_APPENDED && !v->dropped && cv.size > 0 && cv.inode != 0 &&
	    cv.part == v->part)
		checkpoint_add(&r->text, &cv);
}

static bool lives_apart(struct helper *h, struct view *v)
{
	char name[FILES_BUF];
	int rv;

	if (v->looked)
		return v->apart;
	rv = files_apart(h->rootfd, files_part_name(v->path, v->part, name));
	v->looked = rv >= 0;
	v->apart = rv == 1;
	return v->apart;
}

/* Somebody waits for this checkpoint, or the log grows faster than it. */
static bool in_hurry(struct helper *h)
{
	struct writer *w = h->writer;
	bool hurry;

	pthread_mutex_lock(&h->lock);
	hurry = h->stop || h->asked > h->made;
	pthread_mutex_unlock(&h->lock);
	pthread_mutex_lock(&w->lock);
	hurry = hurry || w->shared.bytes - w->shared.released > 2 * h->checkpoint_bytes;
	pthread_mutex_unlock(&w->lock);
	return hurry;
}

/* Write most of a long view's unsynced bytes in pieces with rests between, so that the sync that
 * follows is short: the log's syncs wait behind it. */
static int write_ahead(struct helper *h, struct view *v, int fd)
{
	uint64_t at = MIN(v->synced, v->noted) / PIECE * PIECE;

	for (; v->size > at + PIECE && !in_hurry(h); at += PIECE) {
		int64_t began = clock_mono_us();

		if (sys->write_range(fd, (off_t)at, (off_t)PIECE) != 0)
			return -1;
		segments_rest(clock_mono_us() - began);
	}
	return 0;
}

/* Sync the whole file system of a view: written bytes may be in a file that the view does not
 * know any more. */
static int sync_around(struct helper *h, struct view *v)
{
	const char *slash = strrchr(v->path, '/');
	char dir[FILES_BUF];
	int rv = sys->syncfs(h->rootfd), fd;

	if (rv != 0 || slash == NULL || !lives_apart(h, v))
		return rv;
	snprintf(dir, sizeof(dir), "%.*s", (int)(slash - v->path), v->path);
	fd = sys->openat(h->rootfd, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	rv = fd >= 0 ? sys->syncfs(fd) : 0;
	files_close(&fd);
	return rv;
}

static bool is_its(const struct view *v, int fd)
{
	struct stat st;

	return v->use != VIEW_APPENDED || (sys->fstat(fd, &st) == 0 && st.st_ino == v->inode);
}

/* 1: the written bytes are in another file. */
static int sync_opened(struct helper *h, struct view *v, int fd, const char *name)
{
	int rv = v->use == VIEW_APPENDED ? write_ahead(h, v, fd) : 0;

	if (rv == 0)
		rv = v->use == VIEW_APPENDED ? sys->fdatasync(fd) : sys->fsync(fd);
	if (rv == 0 && v->fresh_now && files_sync_parents(h->rootfd, name) != 0)
		rv = errno == ENOENT || errno == ENOTDIR ? 1 : -1;
	return rv;
}

/* A file that a person moved (or its folder), replaced or removed looks the same (rv 1): its whole
 * file system is synced. */
static int sync_view(struct helper *h, struct view *v)
{
	char name[FILES_BUF];
	int fd = view_take_kept(&h->writer->apply.views, v), rv;

	files_part_name(v->path, v->part, name);
	if (fd < 0)
		fd = files_open(h->rootfd, name, O_RDONLY);
	rv = fd >= 0 && is_its(v, fd) ? sync_opened(h, v, fd, name) : 1;
	files_close(&fd);
	/* Read `left` after the view's part: a part left since then was synced above. */
	if (rv == 0 && atomic_exchange(&v->left, false))
		rv = 1;
	return rv == 1 ? sync_around(h, v) : rv;
}

/* syncfs also reports errors of files that are not ours; then sync each of ours. */
static int sync_views(struct helper *h, const struct round *r)
{
	bool each = r->ndirty <= VIEW_KEPT;

	for (struct view *v = r->all; v != NULL && !each; v = v->all_next)
		if (v->syncing && v->use == VIEW_APPENDED && v->noted > v->synced + 4 * PIECE &&
		    sync_view(h, v) != 0)
			return -1;
	each = each || sys->syncfs(h->rootfd) != 0;
	for (struct view *v = r->all; v != NULL; v = v->all_next) {
		if (!v->syncing)
			continue;
		if ((each || lives_apart(h, v)) && sync_view(h, v) != 0)
			return -1;
		view_synced(&h->writer->apply.views, v);
		v->synced = v->noted;
	}
	return 0;
}

static int fail_for_good(struct helper *h, struct ava_error *err)
{
	struct writer *w = h->writer;
	struct ava_error e;

	err_set(&e, AVA_EIO,
		"the disk failed while files were synced (%s); no new work is taken: restart ava,"
		" which writes them again from its journal",
		strerror(errno));
	pthread_mutex_lock(&w->lock);
	w->shared.lasting = e;
	writer_judge(w);
	pthread_mutex_unlock(&w->lock);
	return err_set(err, e.code, "%s", e.text);
}

static void release(struct helper *h, const struct round *r)
{
	struct writer *w = h->writer;

	segments_release(h->segments, r->pos.seq);
	/* Blobs that remain belong to batches that are not applied yet. */
	if (atomic_exchange(&w->has_blobs, false) && blob_remove(h->walfd, r->pos_lsn) != 0)
		w->has_blobs = true;
	h->checkpoints++;
	pthread_mutex_lock(&w->lock);
	w->shared.released = r->bytes;
	writer_judge(w);
	pthread_mutex_unlock(&w->lock);
}

static int helper_take_checkpoint(struct helper *h, bool closing, struct ava_error *err)
{
	struct round r;
	int rv = 0;

	if (h->failed) {
		h->last_ms = clock_mono_ms(); /* else the next one would be due at once */
		return err_set(err, AVA_EIO, "the disk failed while files were synced");
	}
	h->news = false;
	free_dead(h);
	helper_begin(h, &r, closing);
	for (struct view *v = r.all; v != NULL; v = v->all_next)
		helper_note(&r, v);
	if (sync_views(h, &r) != 0) {
		h->failed = true;
		rv = fail_for_good(h, err);
	} else if (checkpoint_end(&r.text) != 0) {
		rv = err_set(err, AVA_ENOMEM, "no memory for a checkpoint");
	} else if (checkpoint_write(h->rootfd, &r.text) != 0) {
		rv = err_sys(err, "write %s", CHECKPOINT_PATH);
	} else {
		release(h, &r);
		offer_forget(h, r.all);
	}
	if (rv != 0)
		h->news = true;
	buf_fini(&r.text);
	h->last_ms = clock_mono_ms();
	return rv;
}

/* ---- the thread */

static void helper_fill(struct helper *h)
{
	uint64_t mb = h->segments->bytes >> 20;
	struct sys_room r;
	int rv;

	/* Filling segments with zeros on a full disk would take the room that writes need. */
	do
		rv = sys_room(h->walfd, &r) == 0 && r.mb < 2 * mb ? -1
								  : segments_prepare(h->segments);
	while (rv == 1);
	/* A full disk: the journal makes segments on the spot and reports it. */
	h->fill_again_ms = rv < 0 ? clock_mono_ms() + FILL_RETRY_MS : INT64_MAX;
}

/* Time of the next work by the clock. Under lock. */
static int64_t due_ms(const struct helper *h)
{
	int64_t at = h->fill_again_ms;

	if (h->fill || h->wanted || h->asked > h->made)
		return 0;
	if (h->news && h->checkpoint_ms > 0)
		at = MIN(at, h->last_ms + h->checkpoint_ms);
	return at;
}

static void *helper_main(void *arg)
{
	struct helper *h = arg;
	struct ava_error err;
	uint64_t asked;
	bool wanted, filling;
	int rv;

	pthread_mutex_lock(&h->lock);
	while (!h->stop) {
		int64_t now = clock_mono_ms(), due = due_ms(h);

		struct timespec at = {.tv_sec = due / 1000, .tv_nsec = due % 1000 * 1000000};

		if (due == INT64_MAX)
			pthread_cond_wait(&h->wake, &h->lock);
		else if (due > now)
			pthread_cond_timedwait(&h->wake, &h->lock, &at);
		if (due > now)
			continue;
		filling = h->fill || now >= h->fill_again_ms;
		asked = h->asked;
		wanted = h->wanted || asked > h->made ||
			 (h->news && h->checkpoint_ms > 0 && now >= h->last_ms + h->checkpoint_ms);
		h->fill = h->wanted = false;
		pthread_mutex_unlock(&h->lock);
		ballast_keep(h->rootfd, h->ballast_mb);
		if (filling)
			helper_fill(h);
		rv = wanted ? helper_take_checkpoint(h, false, &err) : 0;
		pthread_mutex_lock(&h->lock);
		if (wanted) {
			h->made = asked;
			h->result.code = rv;
			if (rv != 0)
				h->result = err;
			pthread_cond_broadcast(&h->done);
		}
	}
	pthread_mutex_unlock(&h->lock);
	return NULL;
}

/* ---- for others */

void helper_init(struct helper *h)
{
	pthread_condattr_t attr;

	*h = (struct helper){.fill = true, .fill_again_ms = INT64_MAX};
	h->last_ms = clock_mono_ms();
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->wake, &attr);
	pthread_cond_init(&h->done, &attr);
	pthread_condattr_destroy(&attr);
}

void helper_fini(struct helper *h)
{
	struct view *v, *next;

	for (v = h->all; v != NULL; v = next) {
		next = v->all_next;
		view_free(v);
	}
	pthread_cond_destroy(&h->done);
	pthread_cond_destroy(&h->wake);
	pthread_mutex_destroy(&h->lock);
}

int helper_start(struct helper *h)
{
	if (pthread_create(&h->thread, NULL, helper_main, h) != 0)
		return AVA_ENOMEM;
	h->started = true;
	return 0;
}

static void helper_call(struct helper *h)
{
	pthread_cond_signal(&h->wake);
	pthread_mutex_unlock(&h->lock);
}

void helper_stop(struct helper *h)
{
	if (!h->started)
		return;
	h->segments->hurry = true;
	pthread_mutex_lock(&h->lock);
	h->stop = true;
	helper_call(h);
	pthread_join(h->thread, NULL);
	h->started = false;
	helper_take_checkpoint(h, true, NULL);
}

void helper_add(struct helper *h, struct view *v)
{
	pthread_mutex_lock(&h->lock);
	v->all_next = h->all;
	h->all = v;
	pthread_mutex_unlock(&h->lock);
	h->views++;
}

struct view *helper_take_forget(struct helper *h)
{
	struct view *v;

	pthread_mutex_lock(&h->lock);
	v = h->forget;
	h->forget = NULL;
	pthread_mutex_unlock(&h->lock);
	return v;
}

void helper_bury(struct helper *h, struct view *v)
{
	pthread_mutex_lock(&h->lock);
	v->forget_next = h->dead;
	h->dead = v;
	pthread_mutex_unlock(&h->lock);
}

void helper_progress(uint64_t bytes, void *user)
{
	struct helper *h = user;
	/* Also when held operations are applied: only a checkpoint releases their room. */
	uint64_t applied = h->writer->shared.applied_bytes;
	bool news = (bytes > h->seen_bytes || applied > h->seen_applied) && !h->news;
	bool fill = bytes - h->fill_bytes >= h->segments->bytes / 2;
	bool wanted = h->checkpoint_ms > 0 && (bytes - h->wanted_bytes >= h->checkpoint_bytes ||
					       err_is_full(h->writer->log_error));

	h->seen_bytes = bytes;
	h->seen_applied = applied;
	if (!news && !fill && !wanted)
		return;
	h->fill_bytes = fill ? bytes : h->fill_bytes;
	h->wanted_bytes = wanted ? bytes : h->wanted_bytes;
	pthread_mutex_lock(&h->lock);
	h->news = true;
	h->fill = h->fill || fill;
	h->wanted = h->wanted || wanted;
	helper_call(h);
}

int helper_checkpoint(struct helper *h, struct ava_error *err)
{
	uint64_t mine;
	int rv;

	pthread_mutex_lock(&h->lock);
	mine = ++h->asked;
	pthread_cond_signal(&h->wake);
	while (h->made < mine)
		pthread_cond_wait(&h->done, &h->lock);
	rv = h->result.code;
	if (rv != 0)
		err_set(err, rv, "%s", h->result.text);
	pthread_mutex_unlock(&h->lock);
	return rv;
}
