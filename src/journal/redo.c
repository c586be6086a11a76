/* Bringing the views up to the journal; see redo.h.
 *
 * Files that are written whole (PUT) need only their last content; a file with any content but
 * one of the journal's is kept beside it first. Session entries are looked for by their id.
 * Everything is made durable before the caller writes a checkpoint that forgets it.
 *
 * A file that is appended to is checked first: is it the file the checkpoint knew, at least as
 * long, and does it hold, wherever the journal has bytes for it, the same ones or none yet? Then
 * the journal's bytes are written, also those that seem to be there: bytes dropped by a failed
 * sync look fine in memory. Lines beyond the journal's bytes, whose numbers go on, are ours:
 * their batch was damaged. In every other case the file is a person's now: it stays as it is, a
 * copy of its tail goes to .broken, bytes without a place in it go to lost/, and writing goes on
 * in the next part. */
#include "journal/redo.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/util.h"
#include "codec/jscan.h"
#include "event/event.h"
#include "journal/catalog.h"
#include "journal/files.h"
#include "journal/segments.h"
#include "journal/view.h"

#define PROBLEMS_MAX   ((size_t)16 << 20)
#define SYNC_EACH_MAX  16
#define ENTRY_TRIES    40 /* tries for the lock of a session file, 50 ms apart */
#define ENTRY_PAUSE_NS 50000000
#define KEEP_MAX       ((size_t)64 << 20) /* largest file in the way that is copied, not renamed */

int redo_init(struct redo *r, int rootfd, int walfd)
{
	*r = (struct redo){.rootfd = rootfd, .walfd = walfd};
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

static int redo_room(unsigned char **p, size_t *cap, size_t need)
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

static struct redo_file *new_file(struct redo *r, const char *path, const char *name, unsigned part)
{
	struct redo_file *f = calloc(1, sizeof(*f));

	if (f == NULL || !ARRAY_ROOM(r->files, r->capfiles, r->nfiles + 1))
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
	if (f == NULL || !ARRAY_ROOM(f->ops, f->capops, f->nops + 1))
		return AVA_ENOMEM;
	f->ops[f->nops++] = *op;
	r->total += op->len;
	return 0;
}

int redo_batch(struct redo *r, int segment, const struct wal_batch *b, const unsigned char *payload)
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
			.segment = segment,
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

/* Load an operation's bytes into r->bytes. 0; 1: its blob is lost; -1, errno. */
static int redo_load(struct redo *r, struct redo_op *op)
{
	unsigned char hash[WAL_HASH];
	char name[BLOB_NAME + 8];
	unsigned char *blob;

	if (op->bad)
		return 1;
	if (!op->blob) {
		if (redo_room(&r->bytes, &r->capbytes, op->len + 1) != 0)
			return -1;
		return sys_read_all(op->segment, r->bytes, op->len, (off_t)op->at);
	}
	if (sys_read_all(op->segment, hash, sizeof(hash), (off_t)op->at) != 0)
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

/* Is the file's content one the journal put, the rest of one after a crash before its sync, or
 * the file to be replaced? If not, another program wrote it. */
static int redo_is_ours(struct redo *r, struct redo_file *f, const char *data, size_t len)
{
	struct stat st;

	if (sys->fstatat(r->rootfd, f->name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return -1;
	for (size_t i = 0; i < f->nops; i++) {
		int rv = f->ops[i].kind == WAL_PUT ? redo_load(r, &f->ops[i]) : 1;

		/* offset is the inode that the PUT replaces; WAL_OURS: that of the PUT before it,
		 * which the checkpoint covers when this is the first operation. */
		if (f->ops[i].kind == WAL_PUT &&
		    (f->ops[i].offset == st.st_ino || (i == 0 && f->ops[0].offset == WAL_OURS)))
			return 1;

		if (rv < 0)
			return -1;
		if (rv == 0 && f->ops[i].len >= len && files_cut_of(r->bytes, data, len))
			return 1;
	}
	return len == 0;
}

/* Copy foreign content to x.broken before it is written over. */
static int keep_foreign(struct redo *r, struct redo_file *f, struct ava_error *err)
{
	char kept[FILES_BUF], name[FILES_BUF], what[FILES_BUF + 48];
	char *data = NULL;
	size_t len = 0;
	int rv = sys_read_file(r->rootfd, f->name, KEEP_MAX, &data, &len, err), ours = 0;

	if (rv == AVA_ENOENT)
		return 0;
	if (rv != 0 && !files_is_foreign(r->rootfd, f->name, rv))
		return rv;
	if (rv == 0)
		ours = redo_is_ours(r, f, data, len);
	snprintf(name, sizeof(name), "%.*s.broken", FILES_PATH_MAX, f->name);
	memcpy(kept, name, sizeof(kept));
	if (ours == 0 && (rv == 0 ? files_keep(r->rootfd, name, data, len, kept)
				  : sys_put_aside(r->rootfd, f->name)) != 0)
		ours = -1;
	snprintf(what, sizeof(what), "was changed; what it was is kept in %s", kept);
	if (ours == 0)
		redo_problem(r, f->name, what, 0, f->name);
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
		return 0; /* all contents are lost, and the loss is reported */
	if (rv != 0)
		return err_sys(err, "read the content of %s", f->name);
	same = files_equal(r->rootfd, f->name, r->bytes, op->len);
	if (same != 1 || files_rewrite(r->rootfd, f->name, r->bytes, op->len) != 0) {
		rv = keep_foreign(r, f, err);
		if (rv != 0)
			return rv;
		if (redo_load(r, op) != 0 ||
		    files_replace(r->rootfd, f->name, r->bytes, op->len, false) != 0)
			return err_sys(err, "put %s", f->name);
	}
	f->touched = true;
	return 0;
}

static void redo_lost_name(const struct redo_file *f, uint64_t lsn, char *out)
{
	static const char ending[] = ".jsonl";
	size_t len = strlen(f->name), tail = sizeof(ending) - 1;

	if (len > tail && strcmp(f->name + len - tail, ending) == 0)
		len -= tail;
	/* Paths have no +, so no two files share a name here. */
	snprintf(out, FILES_BUF, "lost/%.*s.%llu%s", (int)len, f->name, (unsigned long long)lsn,
		 ending);
	for (char *p = out + strlen("lost/"); *p != '\0'; p++)
		if (*p == '/')
			*p = '+';
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

/* The session cannot be written, though the disk is well. */
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
	rv = sys_read_all(op->segment, id, op->id_len, (off_t)(op->at - op->id_len));
	if (rv == 0)
		rv = append_entry(r, f->name, op, id);
	free(id);
	if (rv == 1)
		redo_problem(r, f->name, "was removed: what belongs into it is put aside", op->len,
			     "");
	if (rv < 0 && !err_is_full(errno) && errno != EIO && errno != ENOMEM)
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

/* ---- one file that is appended to */

#define TAIL_MAX  ((uint64_t)64 << 20)
#define WRITE_MAX ((size_t)1 << 20) /* bytes of operations joined into one write */

enum verdict { FITS, HOLE, FOREIGN, MISSING, SHORTER, REPLACED };

static const char *const verdict_text[] = {
	[HOLE] = "what stood before these bytes was in a damaged part of the journal",
	[FOREIGN] = "was changed by somebody else",
	[MISSING] = "is missing",
	[SHORTER] = "is shorter than it was",
	[REPLACED] = "is another file than it was",
};

struct state {
	int fd;       /* -1: there is no file */
	bool strange; /* the path names a folder or a link, for example */
	uint64_t size, inode;
	uint64_t end;  /* end of the file after the operations that fit */
	size_t fit;    /* number of leading operations that fit */
	uint64_t from; /* start of the copy in .broken */
	uint64_t seen; /* bytes of the file from f->base on held in r->seen */
	/* Operations loaded for comparing, joined for writing, so that most files load them
	 * once; `whole` false: one is missing or they are not neighbours. */
	struct buf joined;
	bool whole;
};

/* ---- lines beyond the journal's bytes */

struct order {
	bool event;
	uint64_t n; /* event: seq; catalog row: lsn */
	uint64_t lsn;
};

static bool read_order(const char *line, size_t len, struct order *o)
{
	struct event_view v;
	struct catalog_row row;

	if (event_view(line, len, &v) == 0) {
		*o = (struct order){true, v.seq, v.lsn};
		return true;
	}
	if (catalog_parse(line, len, &row, NULL) != 0)
		return false;
	*o = (struct order){false, row.lsn, row.lsn};
	catalog_row_fini(&row);
	return true;
}

/* Read seq or lsn of the line that ends at `end`. 1, 0: none, -1 and errno. */
static int order_before(int fd, uint64_t end, struct order *o)
{
	char *line;
	size_t len;
	int rv;

	if (entry_last_line(fd, end, &line, &len) != 0)
		return -1;
	rv = read_order(line, len, o);
	free(line);
	return rv;
}

static bool lines_go_on(const char *data, size_t len, const struct order *before, uint64_t *lsn)
{
	struct order last = before != NULL ? *before : (struct order){.event = true}, o;
	size_t at = 0, line_len;
	const char *line;
	int more;

	while ((more = jsonl_next(data, len, &at, &line, &line_len)) == 1) {
		if (!read_order(line, line_len, &o))
			return false;
		if (before == NULL && at == line_len + 1)
			last.event = o.event;
		if (o.event != last.event || (o.event ? o.n != last.n + 1 : o.n <= last.n))
			return false;
		last = o;
	}
	if (more == 0 && last.lsn >= *lsn)
		*lsn = last.lsn + 1;
	return more == 0;
}

/* Are the bytes from `from` on whole lines of ours? 1, 0, -1 and errno. */
static int adopt_tail(struct redo *r, const struct state *s, uint64_t from)
{
	uint64_t len = s->size - from;
	struct order before;
	int rv = 1;

	if (len > TAIL_MAX)
		return 0;
	if (from > 0)
		rv = order_before(s->fd, from, &before);
	if (rv != 1)
		return rv;
	if (redo_room(&r->other, &r->capother, len) != 0 ||
	    sys_read_all(s->fd, r->other, len, (off_t)from) != 0)
		return -1;
	return lines_go_on((const char *)r->other, len, from > 0 ? &before : NULL, &r->lsn);
}

/* ---- looking */

static int redo_look(struct redo *r, const struct redo_file *f, struct state *s)
{
	struct stat st;

	*s = (struct state){.fd = files_open(r->rootfd, f->name, O_RDWR), .whole = true};
	buf_init(&s->joined, WRITE_MAX);
	if (s->fd < 0) {
		s->strange = errno == EISDIR || errno == ELOOP || errno == ENXIO || errno == EACCES;
		return s->strange || errno == ENOENT || errno == ENOTDIR ? 0 : -1;
	}
	if (sys->fstat(s->fd, &st) != 0)
		return -1;
	s->strange = !S_ISREG(st.st_mode);
	s->size = s->strange ? 0 : (uint64_t)st.st_size;
	s->inode = st.st_ino;
	return 0;
}

/* The journal lost operations in a gap between two: does the file have whole lines there? 1, 0,
 * -1 and errno. */
static int gap_is_there(struct redo *r, const struct state *s, uint64_t from, uint64_t to)
{
	uint64_t len = to - from;

	if (s->fd < 0 || s->size < to || len > TAIL_MAX)
		return 0;
	if (redo_room(&r->other, &r->capother, len) != 0 ||
	    sys_read_all(s->fd, r->other, len, (off_t)from) != 0)
		return -1;
	return r->other[len - 1] == '\n' && memchr(r->other, '\0', len) == NULL;
}

/* Read the file's bytes that the operations are compared with, at once. */
static int see(struct redo *r, const struct redo_file *f, struct state *s)
{
	s->seen = s->size > f->base ? MIN(s->size - f->base, WRITE_MAX) : 0;
	if (s->seen == 0)
		return 0;
	if (redo_room(&r->seen, &r->capseen, s->seen) != 0)
		return -1;
	return sys_read_all(s->fd, r->seen, s->seen, (off_t)f->base);
}

/* Bytes of the file, below its size; NULL and errno. */
static const unsigned char *theirs(struct redo *r, const struct redo_file *f, const struct state *s,
				   uint64_t from, uint64_t to)
{
	if (to - f->base <= s->seen)
		return r->seen + (from - f->base);
	if (redo_room(&r->other, &r->capother, to - from) != 0 ||
	    sys_read_all(s->fd, r->other, to - from, (off_t)from) != 0)
		return NULL;
	return r->other;
}

/* Does the file, as far as it goes, agree with the operation, whose bytes are loaded if the file
 * reaches it? 1, 0, -1 and errno. */
static int agrees(struct redo *r, const struct redo_file *f, const struct state *s,
		  struct redo_op *op)
{
	uint64_t from = MAX(op->offset, f->base), to = MIN(op->offset + op->len, s->size);
	const unsigned char *ours, *there;
	bool nul = false;

	op->in_place = s->size >= op->offset + op->len;
	if (from >= to)
		return 1;
	there = theirs(r, f, s, from, to);
	if (there == NULL)
		return -1;
	ours = r->bytes + (from - op->offset);
	if (memcmp(there, ours, to - from) == 0)
		return 1;
	for (uint64_t i = 0; i < to - from; i++) {
		if (there[i] == ours[i])
			continue;
		op->in_place = false;
		if (there[i] != '\0')
			return 0;
		nul = true;
	}
	op->in_place = op->in_place && !nul;
	return 1;
}

/* Compare all operations with the file, noting those that are in place. */
static int compare(struct redo *r, struct redo_file *f, struct state *s, enum verdict *v)
{
	uint64_t at = f->base;
	int rv = see(r, f, s);

	*v = FITS;
	for (size_t i = 0; rv == 0 && i < f->nops; i++) {
		struct redo_op *op = &f->ops[i];
		/* Operations behind the file's end are not compared, so only bytes in a blob are
		 * loaded: it may be lost. */
		bool load = op->blob || op->offset < s->size;
		uint64_t from = MAX(op->offset, f->base), end = op->offset + op->len;

		rv = load ? redo_load(r, op) : 0;
		/* Keep the operation for write_ops, if it is loaded and follows the ones before. */
		s->whole = s->whole && load && rv == 0 && end > from &&
			   from == f->base + s->joined.len &&
			   buf_add(&s->joined, r->bytes + (from - op->offset), end - from) == 0;
		if (rv == 1)
			rv = 0;
		if (op->bad)
			continue;
		if (rv == 0 && op->offset > at && *v == FITS) {
			rv = gap_is_there(r, s, at, op->offset);
			if (rv == 0) {
				*v = HOLE;
				s->fit = i;
				return 0;
			}
			rv = rv < 0 ? -1 : 0;
		}
		if (rv == 0)
			rv = agrees(r, f, s, op);
		if (rv < 0)
			return -1;
		if (rv == 0)
			*v = FOREIGN;
		rv = 0;
		at = MAX(at, op->offset + op->len);
	}
	if (rv < 0)
		return -1;
	s->end = at;
	s->fit = f->nops;
	if (*v == FITS && s->size > at) {
		rv = adopt_tail(r, s, at);
		if (rv == 0) {
			*v = FOREIGN;
			s->from = at;
		}
		return rv < 0 ? -1 : 0;
	}
	return 0;
}

static int redo_judge(struct redo *r, struct redo_file *f, struct state *s, enum verdict *v)
{
	s->from = MIN(f->base, s->size);
	if (s->strange)
		*v = REPLACED;
	else if (s->fd < 0)
		*v = f->base == 0 ? FITS : MISSING;
	else if (f->known && f->inode != 0 && s->inode != f->inode)
		*v = REPLACED;
	else if (s->size < f->base)
		*v = SHORTER;
	else
		*v = FITS;
	return *v == FITS ? compare(r, f, s, v) : 0;
}

/* ---- writing */

static int redo_make(struct redo *r, const struct redo_file *f, struct state *s)
{
	if (s->fd < 0)
		s->fd = files_open(r->rootfd, f->name, O_RDWR | O_CREAT);
	return s->fd < 0 ? -1 : 0;
}

/* The first s->fit operations, neighbours joined. */
static int write_ops(struct redo *r, struct redo_file *f, struct state *s)
{
	struct buf out;
	uint64_t at = f->base;
	int rv = 0;

	if (s->whole && s->fit == f->nops)
		return sys_write_all(s->fd, s->joined.data, s->joined.len, (off_t)f->base);
	buf_init(&out, SIZE_MAX / 8);
	for (size_t i = 0; i < s->fit && rv == 0; i++) {
		struct redo_op *op = &f->ops[i];
		uint64_t from = MAX(op->offset, f->base);

		if (redo_load(r, op) != 0) {
			rv = op->bad ? 0 : -1;
			continue;
		}
		if (out.len > 0 && (from != at + out.len || out.len + op->len > WRITE_MAX)) {
			rv = sys_write_all(s->fd, out.data, out.len, (off_t)at);
			buf_reset(&out);
		}
		if (out.len == 0)
			at = from;
		if (rv == 0 && buf_add(&out, r->bytes + (from - op->offset),
				       op->len - (from - op->offset)) != 0) {
			errno = ENOMEM;
			rv = -1;
		}
	}
	if (rv == 0 && out.len > 0)
		rv = sys_write_all(s->fd, out.data, out.len, (off_t)at);
	buf_fini(&out);
	return rv;
}

/* ---- putting aside */

/* Copy bytes without a place in the file to lost/, durably. */
static int put_aside(struct redo *r, struct redo_file *f, const struct state *s, enum verdict v,
		     uint64_t *lost)
{
	char name[FILES_BUF];
	struct buf out;
	int rv = 0;

	*lost = 0;
	buf_init(&out, SIZE_MAX / 8);
	for (size_t i = v == HOLE ? s->fit : 0; i < f->nops && rv == 0; i++) {
		struct redo_op *op = &f->ops[i];

		if ((v == FOREIGN && op->in_place) || op->bad)
			continue;
		rv = redo_load(r, op);
		if (rv == 1) {
			rv = 0;
			continue;
		}
		if (out.len == 0)
			redo_lost_name(f, op->lsn, name);
		if (rv == 0 && buf_add(&out, r->bytes, op->len) != 0) {
			errno = ENOMEM;
			rv = -1;
		}
	}
	if (rv == 0 && out.len > 0)
		rv = files_replace(r->rootfd, name, out.data, out.len, true);
	*lost = out.len;
	buf_fini(&out);
	return rv;
}

/* Sets `kept` to the name of the copy; an empty tail has none and leaves `kept` alone. */
static int copy_tail(struct redo *r, const struct redo_file *f, const struct state *s,
		     char kept[FILES_BUF])
{
	char name[FILES_BUF];
	uint64_t len = MIN(s->size - s->from, TAIL_MAX);

	if (len == 0)
		return 0;
	if (redo_room(&r->other, &r->capother, len) != 0 ||
	    sys_read_all(s->fd, r->other, len, (off_t)s->from) != 0)
		return -1;
	snprintf(name, sizeof(name), "%.*s.broken", FILES_BUF - 16, f->name);
	return files_keep(r->rootfd, name, r->other, len, kept);
}

/* Choose the part to be written from now on: an existing one, or a new one, created at once
 * because its existence marks the switch. */
static int redo_next_part(struct redo *r, const struct redo_file *f, char name[FILES_BUF])
{
	unsigned part;
	int fd, rv;

	part = MAX(view_find_part(r->rootfd, f->path), f->part + 1);
	files_part_name(f->path, part, name);
	fd = files_open(r->rootfd, name, O_RDWR | O_CREAT);
	if (fd < 0)
		return -1;
	rv = sys->fsync(fd);
	files_close(&fd);
	return rv == 0 ? files_sync_parents(r->rootfd, name) : rv;
}

static int set_aside(struct redo *r, struct redo_file *f, struct state *s, enum verdict v)
{
	char name[FILES_BUF], kept[FILES_BUF] = "", what[FILES_BUF + 100];
	uint64_t lost;

	if (v == HOLE && s->fit > 0 && (redo_make(r, f, s) != 0 || write_ops(r, f, s) != 0))
		return -1;
	if ((v == FOREIGN || v == REPLACED) && copy_tail(r, f, s, kept) != 0)
		return -1;
	if (put_aside(r, f, s, v, &lost) != 0 || redo_next_part(r, f, name) != 0)
		return -1;
	f->touched = true;
	snprintf(what, sizeof(what), kept[0] ? "%s; its end is kept in %s" : "%s", verdict_text[v],
		 kept);
	redo_problem(r, f->name, what, lost, name);
	return 0;
}

/* Does this part begin with the operations from `first` on? 1, durably then; 0; -1, errno. */
static int redo_begins_with(struct redo *r, struct redo_file *f, unsigned part, size_t first)
{
	char name[FILES_BUF];
	int fd = files_open(r->rootfd, files_part_name(f->path, part, name), O_RDONLY);
	int rv = fd >= 0;

	for (uint64_t i = first, at = 0; i < f->nops && rv == 1; at += f->ops[i++].len) {
		uint64_t len = f->ops[i].len;

		rv = redo_load(r, &f->ops[i]) == 0 ? 1 : f->ops[i].bad ? 0 : -1;
		if (rv == 1 && (redo_room(&r->other, &r->capother, len) != 0 ||
				sys_read_all(fd, r->other, len, (off_t)at) != 0))
			rv = errno == ENODATA ? 0 : -1;
		rv = rv == 1 ? memcmp(r->other, r->bytes, len) == 0 : rv;
	}
	if (rv == 1 && (sys->fsync(fd) != 0 || files_sync_parents(r->rootfd, name) != 0))
		rv = -1;
	files_close(&fd);
	return rv;
}

/* Drop operations that a next part has already: before the crash the log may have gone on there
 * with this part's queue. */
static int redo_leave_out(struct redo *r, struct redo_file *f, struct state *s)
{
	size_t first = 0;
	unsigned last;
	int rv = 0;

	while (first < f->nops && f->ops[first].in_place)
		first++;
	last = first < f->nops ? view_find_part(r->rootfd, f->path) : 0;
	for (unsigned part = f->part + 1; part <= last && rv == 0; part++)
		rv = redo_begins_with(r, f, part, first);
	if (rv == 1) {
		f->nops = s->fit = first;
		s->end = first > 0 ? f->ops[first - 1].offset + f->ops[first - 1].len : f->base;
		s->whole = false;
	}
	return rv < 0 ? -1 : 0;
}

/* Leave only operations that the checkpointed part lacks; false: none. */
static bool pending(struct redo_file *f)
{
	size_t n = 0;
	bool creates = false;

	for (size_t i = 0; i < f->nops; i++) {
		const struct redo_op *op = &f->ops[i];

		if (op->kind == WAL_APPEND && (!f->known || op->offset + op->len > f->base))
			f->ops[n++] = *op;
		creates = creates || op->kind == WAL_CREATE;
	}
	f->nops = n;
	if (!f->known)
		f->base = n > 0 && !creates ? f->ops[0].offset : 0;
	return n > 0 || (creates && !f->known);
}

static int redo_view(struct redo *r, struct redo_file *f, struct ava_error *err)
{
	struct state s = {.fd = -1};
	enum verdict v;
	int rv;

	if (!pending(f))
		return 0;
	rv = redo_look(r, f, &s);
	if (rv == 0)
		rv = redo_judge(r, f, &s, &v);
	if (rv == 0 && v != HOLE)
		rv = redo_leave_out(r, f, &s);
	if (rv == 0 && v == FITS) {
		f->touched = true;
		f->inode_now = s.inode;
		f->size_now = MAX(s.size, s.end);
		rv = redo_make(r, f, &s);
		if (rv == 0)
			rv = write_ops(r, f, &s);
	} else if (rv == 0) {
		rv = set_aside(r, f, &s, v);
	}
	if (rv != 0)
		rv = err_sys(err, "recover %s", f->name);
	files_close(&s.fd);
	buf_fini(&s.joined);
	return rv;
}

/* ---- all views */

static int sync_file(struct redo *r, const struct redo_file *f)
{
	int fd = files_open(r->rootfd, f->name, O_RDONLY), rv;

	/* A link, socket or pipe is no file of ours: nothing to sync. */
	if (fd < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == ENXIO ||
				       errno == EACCES
			       ? 0
			       : -1;
	rv = sys->fsync(fd);
	if (rv != 0 && errno == EINVAL)
		rv = 0;
	files_close(&fd);
	return rv == 0 ? files_sync_parents(r->rootfd, f->name) : rv;
}

static int sync_all(struct redo *r)
{
	size_t touched = 0;
	bool whole;

	for (size_t i = 0; i < r->nfiles; i++)
		touched += r->files[i]->touched;
	whole = touched > SYNC_EACH_MAX && sys->syncfs(r->rootfd) == 0;
	for (size_t i = 0; i < r->nfiles; i++) {
		const struct redo_file *f = r->files[i];
		bool due = f->touched && (!whole || files_apart(r->rootfd, f->name) == 1);

		if (due && sync_file(r, f) != 0)
			return -1;
	}
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

void redo_views(const struct redo *r, const struct checkpoint *c, struct buf *out)
{
	char name[FILES_BUF];
	struct stat st;

	for (size_t i = 0; i < r->nfiles; i++) {
		const struct redo_file *f = r->files[i];
		struct checkpoint_view v = {f->part, f->size_now, f->inode_now, f->path};

		if (f->nops == 0 || f->ops[0].kind != WAL_APPEND)
			continue;
		if (v.inode == 0) {
			if (sys->fstatat(r->rootfd, f->name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
			    !S_ISREG(st.st_mode))
				continue;
			v.size = (uint64_t)st.st_size;
			v.inode = st.st_ino;
		}
		checkpoint_add(out, &v);
	}
	/* Untouched views are as the last checkpoint knew them. */
	for (size_t i = 0; i < c->nviews; i++)
		if (strmap_get(&r->map,
			       files_part_name(c->views[i].path, c->views[i].part, name)) == NULL)
			checkpoint_add(out, &c->views[i]);
}
