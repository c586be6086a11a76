/* Views: looking at a file when it is first used, giving offsets, applying;
 * see view.h.
 *
 * Appends of one view that wait together leave in one call. Descriptors are
 * opened with O_APPEND: whatever a person does to the file meanwhile, nothing
 * of theirs is written over and no hole appears. That the path still names
 * this file, at the size we know, is looked at once a second; when it does
 * not, writing goes on in the next part (x.2.jsonl). What fails leaves the
 * rest queued with errno, and applying it again goes on where it stopped. */
#include "journal/view.h"

#include <ava.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "base/sys.h"
#include "base/util.h"
#include "journal/entry.h"
#include "journal/files.h"

#define CHECK_MS     1000
#define PARTS_MAX    10000
#define FDS_MAX      16384
#define FDS_LEAST    16
#define FDS_RESERVED 2048 /* for sockets, pipes and everything else */

/* ---- descriptors: a cache with second chance, because a list moves two
 * neighbours at every use and their cache lines with them. */

static size_t fds_allowed(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r) != 0)
		return FDS_LEAST;
	if (r.rlim_cur < r.rlim_max) {
		r.rlim_cur = r.rlim_max;
		if (setrlimit(RLIMIT_NOFILE, &r) != 0)
			getrlimit(RLIMIT_NOFILE, &r);
	}
	if (r.rlim_cur < FDS_RESERVED + FDS_LEAST)
		return FDS_LEAST;
	return (size_t)MIN(r.rlim_cur - FDS_RESERVED, (rlim_t)FDS_MAX);
}

int view_set_init(struct view_set *s, int rootfd, size_t cap)
{
	*s = (struct view_set){.rootfd = rootfd, .cap = cap != 0 ? cap : fds_allowed()};
	s->open = calloc(s->cap, sizeof(s->open[0]));
	return s->open != NULL ? 0 : AVA_ENOMEM;
}

int view_take_kept(struct view_set *s, struct view *v)
{
	int fd = atomic_exchange(&v->kept, -1);

	if (fd >= 0)
		s->kept--;
	return fd;
}

/* `fd` is taken. With more than are kept the whole file system is synced, and that knows
 * of every error. */
static void keep_fd(struct view_set *s, struct view *v, int fd)
{
	int old = view_take_kept(s, v);

	files_close(&old);
	if (fd >= 0 && s->kept < VIEW_KEPT) {
		s->kept++;
		v->kept = fd;
	} else {
		files_close(&fd);
	}
}

static void fd_drop(struct view_set *s, size_t slot)
{
	struct view *v = s->open[slot];

	if (v->dirty)
		keep_fd(s, v, v->fd);
	else
		files_close(&v->fd);
	v->fd = -1;
	s->open[slot] = NULL;
	s->count--;
}

void view_set_fini(struct view_set *s)
{
	for (size_t i = 0; s->open != NULL && i < s->cap; i++)
		if (s->open[i] != NULL)
			fd_drop(s, i);
	free(s->open);
	s->open = NULL;
}

/* A free slot, made by closing a descriptor that was not used lately. */
static size_t fd_slot(struct view_set *s)
{
	for (;;) {
		size_t at = s->hand;

		s->hand = (s->hand + 1) % s->cap;
		if (s->open[at] == NULL)
			return at;
		if (!s->open[at]->used) {
			fd_drop(s, at);
			return at;
		}
		s->open[at]->used = false;
	}
}

static void fd_close(struct view_set *s, struct view *v)
{
	if (v->fd >= 0)
		fd_drop(s, v->slot);
}

static int fd_open(struct view_set *s, struct view *v, int flags)
{
	char name[FILES_BUF];
	size_t slot = fd_slot(s);

	files_part_name(v->path, v->part, name);
	v->fd = files_open(s->rootfd, name, O_RDWR | O_APPEND | flags);
	if (v->fd < 0 && (errno == EMFILE || errno == ENFILE) && s->count > 0) {
		/* Others hold more than was reserved for them: make do with less. */
		while (s->open[s->hand] == NULL)
			s->hand = (s->hand + 1) % s->cap;
		fd_drop(s, s->hand);
		v->fd = files_open(s->rootfd, name, O_RDWR | O_APPEND | flags);
	}
	if (v->fd < 0)
		return -1;
	s->open[slot] = v;
	v->slot = slot;
	s->count++;
	v->used = true;
	return 0;
}

/* ---- life */

struct view *view_new(const char *path, enum view_use use)
{
	size_t len = strlen(path);
	struct view *v = calloc(1, sizeof(*v) + len + 1);

	if (v == NULL)
		return NULL;
	v->use = use;
	v->fd = v->kept = -1;
	v->path_len = len;
	memcpy(v->path, path, len + 1);
	return v;
}

void view_free(struct view *v)
{
	int kept = v != NULL ? v->kept : -1;

	if (v != NULL)
		assert(v->fd < 0 && v->first == NULL);
	files_close(&kept);
	free(v);
}

/* ---- looking at the file when a view is first used */

unsigned view_find_part(int rootfd, const char *path)
{
	char name[FILES_BUF];
	unsigned part = 1;
	struct stat st;

	while (part < PARTS_MAX && sys->fstatat(rootfd, files_part_name(path, part + 1, name), &st,
						AT_SYMLINK_NOFOLLOW) == 0)
		part++;
	return part;
}

/* The file ends in the middle of a line that is not ours: keep a copy of that
 * line beside it and leave the file alone. */
static int leave_broken(struct view_set *s, struct view *v, uint64_t size)
{
	char name[FILES_BUF], kept[FILES_BUF];
	char *line;
	size_t len;
	int rv;

	if (entry_last_line(v->fd, size, &line, &len) != 0)
		return -1;
	files_part_name(v->path, v->part, name);
	strncat(name, ".broken", sizeof(name) - strlen(name) - 1);
	rv = files_keep(s->rootfd, name, line, len, kept);
	free(line);
	if (rv != 0)
		return -1;
	fd_close(s, v);
	v->part++;
	return 0;
}

/* For files that are written whole or by others too: looked at each time. */
static int look_regular(struct view_set *s, struct view *v)
{
	struct stat st;

	v->inode = 0;
	if (sys->fstatat(s->rootfd, v->path, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		if (!S_ISREG(st.st_mode)) {
			errno = EISDIR;
			return -1;
		}
		v->on_disk = true;
		v->inode = st.st_ino;
	} else if (errno != ENOENT) {
		return -1;
	}
	v->part = 1;
	return 0;
}

static int look_open(struct view_set *s, struct view *v)
{
	struct stat st;
	char last;

	if (fd_open(s, v, 0) != 0)
		return errno == ENOENT ? 0 : -1;
	if (sys->fstat(v->fd, &st) != 0)
		return -1;
	if (!S_ISREG(st.st_mode)) {
		errno = EISDIR;
		return -1;
	}
	if (st.st_size > 0 && sys_read_all(v->fd, &last, 1, st.st_size - 1) != 0)
		return -1;
	if (st.st_size > 0 && last != '\n')
		return leave_broken(s, v, (uint64_t)st.st_size);
	v->on_disk = true;
	v->inode = st.st_ino;
	v->size = v->end = (uint64_t)st.st_size;
	v->checked_ms = s->now_ms;
	return 0;
}

static int look(struct view_set *s, struct view *v)
{
	int rv;

	v->part = view_find_part(s->rootfd, v->path);
	rv = look_open(s, v);
	if (rv != 0) {
		int saved = errno;

		fd_close(s, v);
		v->part = 0;
		errno = saved;
	}
	return rv;
}

/* ---- laying down */

int view_lay(struct view_set *s, struct op *op)
{
	struct view *v = op->view;

	if (v->use != VIEW_APPENDED ? look_regular(s, v) != 0 : v->part == 0 && look(s, v) != 0)
		return errno == ENOSPC || errno == EDQUOT ? AVA_EFULL : AVA_EIO;
	op->creates = false;
	if (op->kind == JOURNAL_CREATE && (v->on_disk || v->making > 0))
		return AVA_EEXIST;
	if (op->kind != JOURNAL_DROP) {
		op->creates = !v->on_disk;
		v->making += op->creates;
	}
	op->offset = v->use == VIEW_APPENDED ? v->end : v->inode;
	if (op->kind == JOURNAL_APPEND)
		v->end += op->len;
	return 0;
}

void view_unlay(struct op *op)
{
	struct view *v = op->view;

	v->making -= op->creates;
	if (op->kind == JOURNAL_APPEND)
		v->end -= op->len;
}

/* ---- applying */

void view_queue(struct op *op)
{
	struct view *v = op->view;

	op->next = NULL;
	if (v->first == NULL)
		v->first = op;
	else
		v->last->next = op;
	v->last = op;
}

static void finish_op(struct view *v)
{
	struct op *op = v->first;

	v->first = op->next;
	v->making -= op->creates;
	op->commit->pending--;
}

/* After the write: a checkpoint that takes the mark away before we see it set
 * has not synced yet, so that it covers what was just written. */
static void mark_dirty(struct view *v)
{
	if (!atomic_load_explicit(&v->dirty, memory_order_relaxed))
		v->dirty = true;
	if (atomic_load_explicit(&v->dropped, memory_order_relaxed))
		v->dropped = false;
}

/* A person moved, replaced, cut or added to the file. It is theirs now. What
 * is queued was laid down for it; a recovery before the next checkpoint will
 * find the same and put these bytes aside once more, which is no harm. */
static void go_on_in_next_part(struct view_set *s, struct view *v)
{
	fd_close(s, v);
	v->part = MAX(view_find_part(s->rootfd, v->path), v->part) + 1;
	v->end -= v->size - v->partial;
	v->size = 0;
	v->inode = 0;
	v->partial = 0;
	v->on_disk = false;
}

static void check_identity(struct view_set *s, struct view *v)
{
	char name[FILES_BUF];
	struct stat st;

	v->checked_ms = s->now_ms;
	if (sys->fstatat(s->rootfd, files_part_name(v->path, v->part, name), &st,
			 AT_SYMLINK_NOFOLLOW) != 0) {
		if (errno == ENOENT || errno == ENOTDIR)
			go_on_in_next_part(s, v);
		return;
	}
	if (st.st_ino != v->inode || (uint64_t)st.st_size != v->size)
		go_on_in_next_part(s, v);
}

static int create_file(struct view_set *s, struct view *v)
{
	struct stat st;

	if (fd_open(s, v, O_CREAT) != 0)
		return -1;
	if (sys->fstat(v->fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		fd_close(s, v);
		errno = EIO;
		return -1;
	}
	if ((uint64_t)st.st_size != v->size) {
		/* Somebody was faster. Theirs stays as it is. */
		go_on_in_next_part(s, v);
		errno = EAGAIN;
		return -1;
	}
	v->inode = st.st_ino;
	v->on_disk = true;
	v->fresh = true;
	v->checked_ms = s->now_ms;
	return 0;
}

/* A descriptor at the end of the right file. */
static int ready_file(struct view_set *s, struct view *v)
{
	if (v->on_disk && (v->fd < 0 || s->now_ms - v->checked_ms >= CHECK_MS))
		check_identity(s, v);
	if (!v->on_disk)
		return create_file(s, v);
	if (v->fd < 0)
		return fd_open(s, v, 0);
	v->used = true;
	return 0;
}

static int gather(struct view_set *s, struct view *v)
{
	size_t skip = v->partial;
	int n = 0;

	for (struct op *op = v->first; op != NULL && n < VIEW_IOV && op->kind == JOURNAL_APPEND;
	     op = op->next) {
		s->iov[n].iov_base = (void *)(uintptr_t)(op->bytes + skip);
		s->iov[n++].iov_len = op->len - skip;
		skip = 0;
	}
	return n;
}

/* `n` more bytes of the queue are in the file. */
static void advance(struct view *v, size_t n)
{
	atomic_store_explicit(&v->size, v->size + n, memory_order_relaxed);
	n += v->partial;
	while (v->first != NULL && v->first->kind == JOURNAL_APPEND && n >= v->first->len) {
		n -= v->first->len;
		finish_op(v);
	}
	v->partial = n;
}

static int run_appends(struct view_set *s, struct view *v)
{
	ssize_t n;
	int niov;

	if (ready_file(s, v) != 0)
		return -1;
	niov = gather(s, v);
	if (niov == 1)
		n = sys->pwrite(v->fd, s->iov[0].iov_base, s->iov[0].iov_len, (off_t)v->size);
	else
		n = sys->pwritev(v->fd, s->iov, niov, (off_t)v->size);
	if (n < 0)
		return errno == EINTR ? 0 : -1;
	if (n == 0 && s->iov[niov - 1].iov_len > 0) {
		errno = EIO;
		return -1;
	}
	mark_dirty(v);
	advance(v, (size_t)n);
	return 0;
}

static int run_other(struct view_set *s, struct view *v, const struct op *op)
{
	switch ((enum journal_op_kind)op->kind) {
	case JOURNAL_APPEND:
		return run_appends(s, v);
	case JOURNAL_PUT:
		/* Not synced here: until a checkpoint has synced it the journal
		 * still has the bytes, and a recovery puts them again. */
		if (files_replace(s->rootfd, v->path, op->bytes, op->len, false) != 0)
			return -1;
		break;
	case JOURNAL_ENTRY:
		if (entry_append(s->rootfd, v->path, op->bytes, op->len, op->id, ENTRY_NEW) < 0)
			return -1;
		break;
	case JOURNAL_CREATE:
		if (!v->on_disk && create_file(s, v) != 0)
			return -1;
		break;
	case JOURNAL_DROP:
		fd_close(s, v);
		break;
	}
	/* Before the mark: who takes it syncs the folder as well. */
	if (v->use != VIEW_APPENDED) {
		v->on_disk = true;
		v->fresh = true;
		keep_fd(s, v, files_open(s->rootfd, v->path, O_RDONLY));
	}
	mark_dirty(v);
	/* Nothing is kept of a file that is written whole or rarely. */
	if (v->use != VIEW_APPENDED || op->kind == JOURNAL_DROP)
		v->dropped = true;
	finish_op(v);
	return 0;
}

int view_run(struct view_set *s, struct view *v)
{
	while (v->first != NULL) {
		int rv = run_other(s, v, v->first);

		if (rv != 0)
			return rv;
	}
	return 0;
}

int view_give_way(struct view_set *s, struct view *v)
{
	if (v->error == ENOSPC || v->error == EDQUOT)
		return -1;
	if (v->use == VIEW_APPENDED) {
		go_on_in_next_part(s, v);
		return 0;
	}
	for (; v->first != NULL; finish_op(v)) {
		const struct op *op = v->first;

		if (op->kind != JOURNAL_DROP &&
		    entry_put_aside(s->rootfd, v->path, op->bytes, op->len, op->id) != 0)
			return -1;
	}
	return 0;
}
