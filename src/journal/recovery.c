/* Recovery; see recovery.h and doc/JOURNAL.md.
 *
 * Happy path after a clean end: read the checkpoint and the segment headers,
 * find nothing behind it. After a crash: read what follows the checkpoint,
 * redo it, sync it, write a checkpoint that points behind all of it, then
 * remove the blobs. Only that checkpoint gives up the old segments, so being
 * killed anywhere before leaves the same work to be done again. An error of
 * the disk ends the open with nothing given up; on a full one the spare
 * segments are removed first and all is done once more. */
#include "journal/recovery.h"

#include <ava.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/sys.h"
#include "base/util.h"
#include "journal/segments.h"
#include "journal/checkpoint.h"
#include "journal/files.h"
#include "journal/redo.h"
#include "journal/walscan.h"

#define TEXT_MAX ((size_t)256 << 20)
/* Numbers that a cut tail may have used: each stood in its bytes as "lsn":1 at
 * the least; and so many more may have been burned between. */
#define LSN_BYTES  7
#define LSN_MARGIN 65536

struct work {
	int rootfd, walfd;
	struct checkpoint checkpoint;
	bool known; /* there is a checkpoint */
	struct walscan scan;
	struct redo redo;
	uint64_t damaged;
};

/* The names of the root and of folders made for it must be durable before anything in it
 * is relied on: at the first start, and again when that was cut. What cannot be opened was
 * not made by us. */
static int sync_above(int rootfd)
{
	struct stat below, st;
	int dir = -1, up, rv = sys->fstat(rootfd, &below);

	while (rv == 0) {
		up = sys->openat(dir < 0 ? rootfd : dir, "..", O_RDONLY | O_DIRECTORY | O_CLOEXEC,
				 0);
		files_close(&dir);
		dir = up;
		if (dir < 0)
			return 0;
		rv = sys->fstat(dir, &st);
		if (rv == 0 && st.st_ino == below.st_ino && st.st_dev == below.st_dev)
			break; /* the root of all */
		below = st;
		if (rv == 0 && sys->fsync(dir) != 0 && errno != EINVAL && errno != EROFS)
			rv = -1;
	}
	files_close(&dir);
	return rv;
}

int recovery_check_format(int rootfd, struct ava_error *err)
{
	static const char name[] = "FORMAT", ours[] = RECOVERY_FORMAT;
	char *text;
	size_t len;
	int rv = sys_read_file(rootfd, name, 4096, &text, &len, err);

	if (rv == AVA_ENOENT) {
		if (sync_above(rootfd) != 0)
			return err_sys(err, "sync the folders above the data root");
		if (files_replace(rootfd, name, ours, sizeof(ours) - 1, true) != 0)
			return err_sys(err, "write FORMAT");
		return 0;
	}
	if (rv != 0)
		return rv;
	if (len != sizeof(ours) - 1 || memcmp(text, ours, len) != 0)
		rv = err_set(
			err, AVA_EFORMAT,
			"this data was written by another version of ava (FORMAT says \"%.*s\","
			" this one knows \"%.*s\"): use the newer ava, or another data root",
			(int)strcspn(text, "\n"), text, (int)sizeof(ours) - 2, ours);
	free(text);
	if (rv == 0)
		files_drop_temp(rootfd, name); /* of a crash in the first start */
	return rv;
}

static int on_batch(struct walscan *s, size_t file, const struct wal_batch *b,
		    const unsigned char *payload, void *user)
{
	struct work *w = user;

	(void)s;
	return redo_batch(&w->redo, file, b, payload);
}

static int on_damage(struct walscan *s, uint64_t seq, const char *what, uint64_t from, uint64_t to,
		     uint64_t first, uint64_t last, void *user)
{
	struct work *w = user;
	char path[64], text[160];

	(void)s;
	snprintf(path, sizeof(path), "wal/%016llx.seg", (unsigned long long)seq);
	if (first <= last)
		snprintf(text, sizeof(text), "%s at %llu, lsn %llu to %llu", what,
			 (unsigned long long)from, (unsigned long long)first,
			 (unsigned long long)last);
	else
		snprintf(text, sizeof(text), "%s at %llu", what, (unsigned long long)from);
	redo_problem(&w->redo, path, text, to - from, "");
	/* Bytes of the journal; what they were for may stand in its view. */
	w->redo.lost -= to - from;
	w->damaged += first <= last || to > from;
	return 0;
}

static int read_checkpoint(struct work *w, struct ava_error *err)
{
	struct ava_error e;
	int rv = checkpoint_read(w->rootfd, &w->checkpoint, &e);

	w->known = rv == 0;
	if (rv == 0 || rv == AVA_ENOENT)
		return 0;
	if (rv != AVA_ECORRUPT && rv != AVA_ETOOBIG && rv != AVA_EINVAL)
		return err_set(err, rv, "%s", e.text);
	redo_problem(&w->redo, CHECKPOINT_PATH, e.text, 0, "");
	return 0;
}

static int list_segments(const struct walscan *s, struct recovery *out)
{
	out->segments = calloc(s->nfiles + 1, sizeof(out->segments[0]));
	if (out->segments == NULL)
		return AVA_ENOMEM;
	for (size_t i = 0; i < s->nfiles; i++)
		out->segments[i] = (struct recovery_segment){s->files[i].seq, s->files[i].used,
							     s->files[i].copies > 0};
	out->nsegments = s->nfiles;
	return 0;
}

/* Point behind everything that was read, forgetting the old segments. */
static int fresh_checkpoint(struct work *w, struct recovery *out, struct ava_error *err)
{
	struct buf text;
	int rv;

	out->pos =
		(struct wal_pos){MAX(walscan_used(&w->scan) + 1, w->checkpoint.pos.seq), WAL_BEGIN};
	buf_init(&text, TEXT_MAX);
	checkpoint_head(&text, false, out->pos, out->lsn);
	redo_views(&w->redo, &w->checkpoint, &text);
	rv = checkpoint_end(&text);
	if (rv != 0)
		err_set(err, rv, "no memory for a checkpoint");
	else if (checkpoint_write(w->rootfd, &text) != 0)
		rv = err_sys(err, "write %s", CHECKPOINT_PATH);
	buf_fini(&text);
	return rv;
}

static int finish(struct work *w, struct recovery *out, struct ava_error *err)
{
	struct walscan *s = &w->scan;
	bool something = w->redo.batches > 0 || s->damaged || w->redo.nproblems > 0 ||
			 s->aborted > 0 || (!w->known && s->nfiles > 0);

	out->lsn = MAX(MAX(w->checkpoint.lsn, s->lsn), MAX(w->redo.lsn, (uint64_t)1));
	if (s->damaged)
		out->lsn += s->tail_bytes / LSN_BYTES + LSN_MARGIN;
	out->next_seq = MAX(walscan_highest(s), w->checkpoint.pos.seq) + 1;
	out->pos = w->checkpoint.pos;
	out->report.clean = w->known ? w->checkpoint.clean && !something : s->nfiles == 0;
	if (something) {
		int rv = fresh_checkpoint(w, out, err);

		if (rv != 0)
			return rv;
		if (blob_remove(w->walfd, UINT64_MAX) < 0)
			return err_sys(err, "remove blobs of wal");
	}
	/* A segment that was never begun is no predecessor. */
	out->good = out->pos.at > WAL_BEGIN ? out->pos : (struct wal_pos){0, 0};
	out->next_seq = MAX(out->next_seq, out->pos.seq);
	return list_segments(s, out) == 0 ? 0 : err_set(err, AVA_ENOMEM, "no memory");
}

static int take_report(struct work *w, struct recovery *out, struct ava_error *err)
{
	struct journal_recovery *rep = &out->report;

	jw_end(&w->redo.json);
	out->problems = buf_take(&w->redo.problems, NULL);
	if (out->problems == NULL)
		return err_set(err, AVA_ENOMEM, "no memory for the report of recovery");
	rep->problems = out->problems;
	rep->nproblems = w->redo.nproblems;
	rep->redone_batches = w->redo.batches;
	rep->redone_bytes = w->redo.total;
	rep->torn_bytes = w->scan.torn_bytes;
	rep->aborted_batches = w->scan.aborted;
	rep->damaged_batches = w->damaged;
	rep->lost_bytes = w->redo.lost;
	return 0;
}

/* Spare segments are room that nobody misses: they are made again, and what
 * this recovery gives up serves until then. False: there was none. */
static bool make_room(const struct work *w)
{
	char name[SEGMENTS_NAME];
	bool made = false;

	for (size_t i = 0; i < w->scan.nfiles; i++) {
		if (!walscan_spare(&w->scan.files[i]))
			continue;
		segments_name(w->scan.files[i].seq, name);
		made = sys->unlinkat(w->walfd, name, 0) == 0 || made;
	}
	return made;
}

static int run_once(int rootfd, int walfd, struct recovery *out, bool *again, struct ava_error *err)
{
	struct work w = {.rootfd = rootfd, .walfd = walfd};
	int rv;

	*out = (struct recovery){0};
	w.scan = (struct walscan){.batch = on_batch, .damage = on_damage, .user = &w};
	rv = redo_init(&w.redo, rootfd, walfd, &w.scan);
	if (rv != 0)
		err_set(err, rv, "no memory for recovery");
	if (rv == 0)
		rv = read_checkpoint(&w, err);
	if (rv == 0)
		rv = walscan_open(&w.scan, walfd, err);
	if (rv == 0) {
		w.scan.least_lsn = w.checkpoint.lsn;
		rv = walscan_run(&w.scan, w.checkpoint.pos, w.checkpoint.clean, err);
		if (rv == AVA_ENOMEM)
			err_set(err, rv, "no memory for recovery");
		else if (rv == AVA_ECORRUPT)
			err_set(err, rv, "wal holds operations of another version");
	}
	if (rv == 0 && w.redo.batches > 0)
		rv = walscan_sync(&w.scan, err);
	if (rv == 0)
		rv = redo_run(&w.redo, &w.checkpoint, err);
	if (rv == 0)
		rv = finish(&w, out, err);
	if (rv == 0)
		rv = take_report(&w, out, err);
	*again = rv == AVA_EFULL && make_room(&w);
	redo_fini(&w.redo);
	walscan_close(&w.scan);
	checkpoint_fini(&w.checkpoint);
	if (rv != 0)
		recovery_fini(out);
	return rv;
}

int recovery_run(int rootfd, int walfd, struct recovery *out, struct ava_error *err)
{
	struct ava_error e = {0};
	bool again;
	int rv = run_once(rootfd, walfd, out, &again, &e);

	if (again)
		rv = run_once(rootfd, walfd, out, &again, &e);
	if (rv == AVA_EFULL)
		return err_set(err, rv, "%s: make room and start again, nothing is lost", e.text);
	return rv == 0 ? 0 : err_set(err, rv, "%s", e.text);
}

void recovery_fini(struct recovery *r)
{
	free(r->problems);
	free(r->segments);
	r->problems = NULL;
	r->segments = NULL;
}
