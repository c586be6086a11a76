/* Bringing the views up to the journal; see redo.h.
 *
 * Files that are written whole (PUT) need only their last content; a file that
 * holds anything but one of the journal's contents is kept beside it first.
 * Session entries are looked for by their id. Appends are redo_file.c. All of
 * it is made durable before the caller writes a checkpoint that forgets it. */
#include "journal/redo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/sys.h"
#include "journal/blob.h"
#include "journal/entry.h"
#include "journal/files.h"

#define PROBLEMS_MAX   ((size_t)16 << 20)
#define SYNC_EACH_MAX  16
#define ENTRY_TRIES    40 /* for the lock of a session file, 50 ms apart */
#define ENTRY_PAUSE_NS 50000000
#define KEEP_MAX       ((size_t)64 << 20) /* of a file that is in the way */

int redo_init(struct redo *r, int rootfd, int walfd, struct walscan *scan)
{
	*r = (struct redo){.rootfd = rootfd, .walfd = walfd, .scan = scan};
	strmap_init(&r->map);
	buf_init(&r->problems, PROBLEMS_MAX);
	jw_init(&r->json, &r->problems);
	jw_array(&r->json, NULL);
	return buf_check(&r->problems);
}

void redo_fini(struct redo *r)
{
	for (size_t i = 0; i < r->nfiles; i++) {
		free(r->files[i]->ops);
		free(r->files[i]->path);
		free(r->files[i]->name);
		free(r->files[i]);
	}
	free(r->files);
	free(r->bytes);
	free(r->other);
	free(r->seen);
	strmap_fini(&r->map);
	buf_fini(&r->problems);
}

void redo_problem(struct redo *r, const char *path, const char *problem, uint64_t lost,
		  const char *continues_in)
{
	jw_object(&r->json, NULL);
	jw_str(&r->json, "path", path);
	jw_str(&r->json, "problem", problem);
	jw_int(&r->json, "lostBytes", (int64_t)lost);
	jw_str(&r->json, "continuesIn", continues_in);
	jw_end(&r->json);
	r->nproblems++;
	r->lost += lost;
}

int redo_room(unsigned char **p, size_t *cap, size_t need)
{
	if (need <= *cap)
		return 0;
	free(*p);
	*cap = 0;
	*p = malloc(need);
	if (*p == NULL) {
		errno = ENOMEM;
		return -1;
	}
	*cap = need;
	return 0;
}

/* ---- collecting */

static int grow(void **p, size_t *cap, size_t count, size_t size)
{
	size_t next = *cap == 0 ? 8 : *cap * 2;
	void *more;

	if (count < *cap)
		return 0;
	more = realloc(*p, next * size);
	if (more == NULL)
		return AVA_ENOMEM;
	*p = more;
	*cap = next;
	return 0;
}

static struct redo_file *new_file(struct redo *r, const char *path, const char *name, unsigned part)
{
	struct redo_file *f = calloc(1, sizeof(*f));

	if (f == NULL ||
	    grow((void **)&r->files, &r->capfiles, r->nfiles, sizeof(r->files[0])) != 0)
		goto fail;
	f->part = part;
	f->path = strdup(path);
	f->name = strdup(name);
	if (f->path == NULL || f->name == NULL || strmap_put(&r->map, f->name, f) != 0)
		goto fail;
	r->files[r->nfiles++] = f;
	return f;

fail:
	if (f != NULL) {
		free(f->path);
		free(f->name);
	}
	free(f);
	return NULL;
}

static int add_op(struct redo *r, const struct wal_op *w, struct redo_op *op)
{
	char path[FILES_PATH_MAX + 1], part_name[FILES_BUF];
	const char *name = path;
	struct redo_file *f;

	if (w->path_len > FILES_PATH_MAX)
		return AVA_ECORRUPT;
	memcpy(path, w->path, w->path_len);
	path[w->path_len] = '\0';
	if (w->part > 1)
		name = files_part_name(path, w->part, part_name);
	f = strmap_get(&r->map, name);
	if (f == NULL && !files_path_ok(path))
		return AVA_ECORRUPT;
	if (f == NULL)
		f = new_file(r, path, name, w->part);
	if (f == NULL || grow((void **)&f->ops, &f->capops, f->nops, sizeof(f->ops[0])) != 0)
		return AVA_ENOMEM;
	f->ops[f->nops++] = *op;
	r->total += op->len;
	return 0;
}

int redo_batch(struct redo *r, size_t file, const struct wal_batch *b, const unsigned char *payload)
{
	const unsigned char *p = payload;
	struct wal_op w;
	int more, rv = 0;

	for (unsigned n = 0; (more = wal_op_next(&p, payload + b->len, &w)) == 1 && rv == 0; n++) {
		struct redo_op op = {
			.lsn = b->first_lsn,
			.at = b->at + WAL_BATCH_HEAD + (uint64_t)(w.bytes - payload),
			.len = w.len,
			.offset = w.offset,
			.file = (uint32_t)file,
			.n = (uint16_t)n,
			.id_len = (uint16_t)w.id_len,
			.kind = (uint8_t)w.kind,
			.blob = w.blob,
		};

		if (w.kind == WAL_ABORT)
			return 0;
		rv = add_op(r, &w, &op);
	}
	r->batches++;
	return more < 0 ? AVA_ECORRUPT : rv;
}

int redo_load(struct redo *r, struct redo_op *op)
{
	unsigned char hash[WAL_HASH];
	char name[BLOB_NAME + 8];
	unsigned char *blob;

	if (op->bad)
		return 1;
	if (!op->blob) {
		if (redo_room(&r->bytes, &r->capbytes, op->len + 1) != 0)
			return -1;
		return walscan_bytes(r->scan, op->file, op->at, r->bytes, op->len);
	}
	if (walscan_bytes(r->scan, op->file, op->at, hash, sizeof(hash)) != 0)
		return -1;
	if (blob_read(r->walfd, op->lsn, op->n, op->len, hash, &blob) == 0) {
		free(r->bytes);
		r->bytes = blob;
		r->capbytes = op->len;
		return 0;
	}
	if (errno != ENOENT && errno != EBADMSG)
		return -1;
	op->bad = true;
	snprintf(name, sizeof(name), "wal/");
	blob_name(op->lsn, op->n, name + strlen(name));
	redo_problem(r, name, "missing or damaged: the bytes of one operation are lost", 0, "");
	return 1;
}

/* ---- files written whole */

static struct redo_op *last_put(struct redo_file *f)
{
	for (size_t i = f->nops; i > 0; i--)
		if (f->ops[i - 1].kind == WAL_PUT && !f->ops[i - 1].bad)
			return &f->ops[i - 1];
	return NULL;
}

/* Is what stands there one of the contents the journal put, or what a crash
 * before it was synced left of one, or the file that was to be replaced? Else
 * somebody else wrote it. */
static int is_ours(struct redo *r, struct redo_file *f, const char *data, size_t len)
{
	struct stat st;

	if (sys->fstatat(r->rootfd, f->name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return -1;
	for (size_t i = 0; i < f->nops; i++) {
		int rv = f->ops[i].kind == WAL_PUT ? redo_load(r, &f->ops[i]) : 1;

		if (f->ops[i].kind == WAL_PUT && f->ops[i].offset == st.st_ino)
			return 1;

		if (rv < 0)
			return -1;
		if (rv == 0 && f->ops[i].len >= len && files_cut_of(r->bytes, data, len))
			return 1;
	}
	return len == 0;
}

/* Something that cannot be copied, or is no file: under another name. */
static int move_foreign(struct redo *r, const char *name)
{
	char other[FILES_BUF];
	struct stat st;

	for (int i = 1; i < 1000; i++) {
		snprintf(other, sizeof(other), "%.*s.broken.%d", FILES_PATH_MAX, name, i);
		if (sys->fstatat(r->rootfd, other, &st, AT_SYMLINK_NOFOLLOW) != 0)
			return errno == ENOENT ? sys->renameat(r->rootfd, name, r->rootfd, other)
					       : -1;
	}
	errno = EEXIST;
	return -1;
}

/* What could not be read (`rv`): is it such that nobody can, or is it the disk
 * that fails just now? Only the first is moved out of the way. */
static bool is_foreign(struct redo *r, const char *name, int rv)
{
	struct stat st;

	if (sys->fstatat(r->rootfd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return false;
	return !S_ISREG(st.st_mode) || rv == AVA_ETOOBIG || rv == AVA_EDENIED;
}

/* Before it is written over: somebody's content goes to x.broken. */
static int keep_foreign(struct redo *r, struct redo_file *f, struct ava_error *err)
{
	char kept[FILES_BUF], name[FILES_BUF];
	char *data = NULL;
	size_t len = 0;
	int rv = sys_read_file(r->rootfd, f->name, KEEP_MAX, &data, &len, err), ours = 0;

	if (rv == AVA_ENOENT)
		return 0;
	if (rv != 0 && !is_foreign(r, f->name, rv))
		return rv;
	if (rv == 0)
		ours = is_ours(r, f, data, len);
	snprintf(name, sizeof(name), "%.*s.broken", FILES_PATH_MAX, f->name);
	if (ours == 0 && (rv == 0 ? files_keep(r->rootfd, name, data, len, kept)
				  : move_foreign(r, f->name)) != 0)
		ours = -1;
	if (ours == 0)
		redo_problem(r, f->name, "was changed; what it was is kept in .broken", 0, f->name);
	free(data);
	return ours < 0 ? err_sys(err, "keep what is in the place of %s", f->name) : 0;
}

static int redo_put(struct redo *r, struct redo_file *f, struct ava_error *err)
{
	struct redo_op *op;
	int same, rv = 0;

	while ((op = last_put(f)) != NULL && (rv = redo_load(r, op)) == 1)
		;
	if (op == NULL)
		return 0; /* every content is lost, and was reported */
	if (rv != 0)
		return err_sys(err, "read the content of %s", f->name);
	same = files_equal(r->rootfd, f->name, r->bytes, op->len);
	if (same != 1) {
		rv = keep_foreign(r, f, err);
		if (rv != 0)
			return rv;
		if (redo_load(r, op) != 0 ||
		    files_replace(r->rootfd, f->name, r->bytes, op->len, false) != 0)
			return err_sys(err, "put %s", f->name);
	} else {
		files_drop_temp(r->rootfd, f->name);
	}
	f->touched = true;
	return 0;
}

/* ---- session entries */

static int append_entry(struct redo *r, const char *name, const struct redo_op *op, const char *id)
{
	struct timespec pause = {.tv_nsec = ENTRY_PAUSE_NS};
	int rv;

	for (int i = 0; i < ENTRY_TRIES; i++) {
		rv = entry_append(r->rootfd, name, r->bytes, op->len, id, ENTRY_REDO);
		if (rv >= 0 || errno != EWOULDBLOCK)
			return rv;
		nanosleep(&pause, NULL);
	}
	return -1;
}

/* The session cannot be written, for a reason that is not the disk's. */
static int entry_aside(struct redo *r, struct redo_file *f, const struct redo_op *op)
{
	char name[FILES_BUF], why[96];

	snprintf(why, sizeof(why), "cannot be added to: %s", strerror(errno));
	redo_lost_name(f, op->lsn, name);
	if (files_replace(r->rootfd, name, r->bytes, op->len, true) != 0)
		return -1;
	redo_problem(r, f->name, why, op->len, f->name);
	return 0;
}

static int redo_entry(struct redo *r, struct redo_file *f, struct redo_op *op)
{
	char *id;
	int rv = redo_load(r, op);

	if (rv != 0)
		return rv == 1 ? 0 : -1;
	id = calloc(1, op->id_len + 1u);
	if (id == NULL) {
		errno = ENOMEM;
		return -1;
	}
	rv = walscan_bytes(r->scan, op->file, op->at - op->id_len, id, op->id_len);
	if (rv == 0)
		rv = append_entry(r, f->name, op, id);
	free(id);
	if (rv == 1)
		redo_problem(r, f->name, "was removed: what belongs into it is put aside", op->len,
			     "");
	if (rv < 0 && errno != ENOSPC && errno != EDQUOT && errno != EIO && errno != ENOMEM)
		rv = entry_aside(r, f, op);
	return rv < 0 ? rv : 0;
}

static int redo_entries(struct redo *r, struct redo_file *f, struct ava_error *err)
{
	for (size_t i = 0; i < f->nops; i++)
		if (f->ops[i].kind == WAL_ENTRY && redo_entry(r, f, &f->ops[i]) != 0)
			return err_sys(err, "add to session %s", f->name);
	f->touched = true;
	return 0;
}

/* ---- all of it */

static int sync_file(struct redo *r, const struct redo_file *f)
{
	int fd = files_open(r->rootfd, f->name, O_RDONLY), rv;

	if (fd < 0)
		return errno == ENOENT ? 0 : -1;
	rv = sys->fsync(fd);
	files_close(&fd);
	return rv == 0 ? files_sync_parents(r->rootfd, f->name) : rv;
}

static int sync_all(struct redo *r)
{
	size_t touched = 0;

	for (size_t i = 0; i < r->nfiles; i++)
		touched += r->files[i]->touched;
	if (touched > SYNC_EACH_MAX && sys->syncfs(r->rootfd) == 0)
		return 0;
	for (size_t i = 0; i < r->nfiles; i++)
		if (r->files[i]->touched && sync_file(r, r->files[i]) != 0)
			return -1;
	return 0;
}

static void apply_checkpoint(struct redo *r, const struct checkpoint *c)
{
	char name[FILES_BUF];

	for (size_t i = 0; i < c->nviews; i++) {
		const struct checkpoint_view *v = &c->views[i];
		struct redo_file *f = strmap_get(&r->map, files_part_name(v->path, v->part, name));

		if (f == NULL)
			continue;
		f->known = true;
		f->base = v->size;
		f->inode = v->inode;
	}
}

static int redo_one(struct redo *r, struct redo_file *f, struct ava_error *err)
{
	unsigned puts = 0, entries = 0;
	int rv;

	for (size_t i = 0; i < f->nops; i++) {
		puts += f->ops[i].kind == WAL_PUT;
		entries += f->ops[i].kind == WAL_ENTRY;
	}
	rv = puts > 0 ? redo_put(r, f, err) : 0;
	if (rv == 0 && entries > 0)
		rv = redo_entries(r, f, err);
	if (rv == 0 && puts + entries == 0)
		rv = redo_view(r, f, err);
	return rv;
}

int redo_run(struct redo *r, const struct checkpoint *c, struct ava_error *err)
{
	int rv = 0;

	apply_checkpoint(r, c);
	for (size_t i = 0; i < r->nfiles && rv == 0; i++)
		rv = redo_one(r, r->files[i], err);
	if (rv == 0 && sync_all(r) != 0)
		rv = err_sys(err, "sync recovered files");
	if (rv == 0 && buf_check(&r->problems) != 0)
		rv = err_set(err, buf_check(&r->problems), "no memory for the report of recovery");
	return rv;
}

static void put_view(const struct redo *r, const struct redo_file *f, struct buf *out)
{
	struct checkpoint_view v = {
		.part = f->part, .size = f->size_now, .inode = f->inode_now, .path = f->path};
	struct stat st;

	if (v.inode == 0) {
		if (sys->fstatat(r->rootfd, f->name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
		    !S_ISREG(st.st_mode))
			return;
		v.size = (uint64_t)st.st_size;
		v.inode = st.st_ino;
	}
	checkpoint_add(out, &v);
}

void redo_views(const struct redo *r, const struct checkpoint *c, struct buf *out)
{
	char name[FILES_BUF];

	for (size_t i = 0; i < r->nfiles; i++)
		if (r->files[i]->nops > 0 && r->files[i]->ops[0].kind == WAL_APPEND)
			put_view(r, r->files[i], out);
	/* What was not touched is as the last checkpoint knew it. */
	for (size_t i = 0; i < c->nviews; i++)
		if (strmap_get(&r->map,
			       files_part_name(c->views[i].path, c->views[i].part, name)) == NULL)
			checkpoint_add(out, &c->views[i]);
}
