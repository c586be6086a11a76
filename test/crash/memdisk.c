/* A disk in memory; see memdisk.h.
 *
 * The calls and the life of a disk; its nodes are memdisk_node.c. One lock,
 * because the journal has threads. */
#include "memdisk.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "memdisk_disk.h"

pthread_mutex_t memdisk_lock = PTHREAD_MUTEX_INITIALIZER;
static struct memdisk *disk; /* behind `sys` */

ssize_t memdisk_node_write(struct memdisk *d, struct node *n, const void *buf, size_t len,
			   size_t at)
{
	size_t was = n->now->len, room;
	struct bytes *b;

	if (at + len > was) {
		room = d->limit - d->used;
		if (at + len - was > room) {
			if (at + 0 >= was + room || room == 0) {
				errno = ENOSPC;
				return -1;
			}
			len = was + room - at;
		}
		d->used += at + len > was ? at + len - was : 0;
	}
	b = node_own(n, at + len);
	if (len > 0)
		memcpy(b->data + at, buf, len);
	node_dirty(n, at < was ? at : was, at + len);
	return (ssize_t)len;
}

/* ---- paths */

/* The folder `path` is in and its last name; NULL and errno. */
struct node *memdisk_walk_to(struct node *dir, const char *path, const char **last)
{
	while (*path == '/')
		path++;
	for (;;) {
		size_t len = strcspn(path, "/");
		struct entry *e;

		if (path[len] == '\0') {
			*last = path;
			return dir;
		}
		e = entry_find(dir, path, len);
		if (e == NULL || !e->node->dir) {
			errno = e == NULL ? ENOENT : ENOTDIR;
			return NULL;
		}
		dir = e->node;
		path += len + 1;
	}
}

static struct node *start_at(struct memdisk *d, int dirfd, const char *path)
{
	if (dirfd == AT_FDCWD || path[0] == '/')
		return d->root;
	assert(dirfd >= FD_FIRST && dirfd < FD_FIRST + FDS);
	assert(d->fds[dirfd - FD_FIRST].node != NULL);
	return d->fds[dirfd - FD_FIRST].node;
}

struct node *memdisk_lookup(struct memdisk *d, int dirfd, const char *path)
{
	const char *last;
	struct node *dir = memdisk_walk_to(start_at(d, dirfd, path), path, &last);
	struct entry *e;

	if (dir == NULL)
		return NULL;
	if (last[0] == '\0' || strcmp(last, ".") == 0)
		return dir;
	e = entry_find(dir, last, strlen(last));
	if (e == NULL)
		errno = ENOENT;
	return e != NULL ? e->node : NULL;
}

static struct open_file *opened(struct memdisk *d, int fd)
{
	assert(fd >= FD_FIRST && fd < FD_FIRST + FDS && d->fds[fd - FD_FIRST].node != NULL);
	return &d->fds[fd - FD_FIRST];
}

/* ---- faults */

static const char *name_of(struct memdisk *d, const struct node *n)
{
	for (struct node *dir = d->nodes; dir != NULL; dir = dir->next)
		for (size_t i = 0; i < dir->nentries; i++)
			if (dir->entries[i].node == n)
				return dir->entries[i].name;
	return "";
}

/* The plan of memdisk_plan: true when the call fails, with errno; a transfer
 * that is to be short gets its length halved. */
static bool planned(struct memdisk *d, enum memdisk_call call, size_t *len)
{
	int error = memdisk_plan_next(&d->plan, call);

	if (error == MEMDISK_SHORT && len != NULL && *len > 1)
		*len /= 2;
	if (error <= 0)
		return false;
	errno = error;
	return true;
}

static bool fails(struct memdisk *d, const char *name, enum memdisk_what what)
{
	if (d->watch != NULL)
		d->watch(d, d->watch_user);
	if (d->what != MEMDISK_ANY && d->what != what)
		return false;
	if (d->fail_name[0] != '\0' && strstr(name, d->fail_name) == NULL)
		return false;
	d->calls++;
	if (d->fail_at < 0)
		return false;
	if (d->fail_at > 0) {
		d->fail_at--;
		return false;
	}
	if (d->how == MEMDISK_ONCE)
		d->fail_at = -1;
	d->failed = true;
	errno = d->error;
	return true;
}

static bool fd_fails(struct memdisk *d, int fd, enum memdisk_what what)
{
	return fails(d, d->fail_name[0] != '\0' ? name_of(d, opened(d, fd)->node) : "", what);
}

/* ---- the calls */

static int locked(int rv)
{
	int saved = errno;

	pthread_mutex_unlock(&memdisk_lock);
	errno = saved;
	return rv;
}

static int fd_new(struct memdisk *d, struct node *n, int flags)
{
	for (int i = 0; i < FDS; i++)
		if (d->fds[i].node == NULL) {
			d->fds[i] = (struct open_file){n, flags};
			return FD_FIRST + i;
		}
	errno = EMFILE;
	return -1;
}

static int do_open(struct memdisk *d, int dirfd, const char *path, int flags)
{
	struct node *n, *dir;
	const char *last;

	if (planned(d, MEMDISK_OPEN, NULL))
		return -1;
	n = memdisk_lookup(d, dirfd, path);
	if (n == NULL) {
		if (errno != ENOENT || (flags & O_CREAT) == 0)
			return -1;
		dir = memdisk_walk_to(start_at(d, dirfd, path), path, &last);
		if (dir == NULL || fails(d, last, MEMDISK_WRITES))
			return -1;
		n = node_new(&d->nodes, ++d->next_ino, false);
		entry_change(dir, last, n);
	} else if ((flags & O_EXCL) != 0) {
		errno = EEXIST;
		return -1;
	} else if (n->dir && (flags & O_ACCMODE) != O_RDONLY) {
		errno = EISDIR;
		return -1;
	} else if (!n->dir && (flags & O_DIRECTORY) != 0) {
		errno = ENOTDIR;
		return -1;
	} else if ((flags & O_TRUNC) != 0 && n->now->len > 0) {
		if (fails(d, path, MEMDISK_WRITES))
			return -1;
		node_dirty(n, 0, n->now->len);
		d->used -= n->now->len;
		bytes_put(n->now);
		n->now = bytes_new();
	}
	return fd_new(d, n, flags);
}

static int mem_openat(int dirfd, const char *path, int flags, mode_t mode)
{
	(void)mode;
	pthread_mutex_lock(&memdisk_lock);
	return locked(do_open(disk, dirfd, path, flags));
}

static int mem_close(int fd)
{
	pthread_mutex_lock(&memdisk_lock);
	if (opened(disk, fd)->node->lock_fd == fd)
		opened(disk, fd)->node->lock_fd = -1;
	opened(disk, fd)->node = NULL;
	return locked(0);
}

static ssize_t mem_pread(int fd, void *buf, size_t len, off_t at)
{
	const struct bytes *b;

	pthread_mutex_lock(&memdisk_lock);
	b = opened(disk, fd)->node->now;
	if (planned(disk, MEMDISK_PREAD, &len))
		return locked(-1);
	if ((size_t)at >= b->len)
		len = 0;
	else if (len > b->len - (size_t)at)
		len = b->len - (size_t)at;
	if (len > 0)
		memcpy(buf, b->data + at, len);
	pthread_mutex_unlock(&memdisk_lock);
	return (ssize_t)len;
}

static ssize_t mem_pwritev(int fd, const struct iovec *iov, int n, off_t at)
{
	struct open_file *f;
	ssize_t done = 0, one = 0;
	size_t room = 0, part;

	for (int i = 0; i < n; i++)
		room += iov[i].iov_len;
	pthread_mutex_lock(&memdisk_lock);
	f = opened(disk, fd);
	if (planned(disk, MEMDISK_PWRITE, &room) || fd_fails(disk, fd, MEMDISK_WRITES))
		return locked(-1);
	if ((f->flags & O_APPEND) != 0)
		at = (off_t)f->node->now->len;
	for (int i = 0; i < n && room > 0; i++, room -= part) {
		part = iov[i].iov_len < room ? iov[i].iov_len : room;
		one = memdisk_node_write(disk, f->node, iov[i].iov_base, part, (size_t)(at + done));
		if (one < 0)
			break;
		done += one;
		if ((size_t)one < part)
			break;
	}
	return locked(one < 0 && done == 0 ? -1 : (int)done);
}

static ssize_t mem_pwrite(int fd, const void *buf, size_t len, off_t at)
{
	struct iovec iov = {(void *)(uintptr_t)buf, len};

	return mem_pwritev(fd, &iov, 1, at);
}

static int mem_fsync(int fd)
{
	pthread_mutex_lock(&memdisk_lock);
	if (planned(disk, MEMDISK_FSYNC, NULL) || fd_fails(disk, fd, MEMDISK_SYNCS))
		return locked(-1);
	node_sync(opened(disk, fd)->node);
	return locked(0);
}

static int mem_syncfs(int fd)
{
	pthread_mutex_lock(&memdisk_lock);
	if (planned(disk, MEMDISK_SYNCFS, NULL) || fd_fails(disk, fd, MEMDISK_SYNCS))
		return locked(-1);
	for (struct node *n = disk->nodes; n != NULL; n = n->next)
		node_sync(n);
	return locked(0);
}

void memdisk_resize(struct memdisk *d, struct node *n, size_t len)
{
	size_t was = n->now->len;

	node_own(n, len)->len = len;
	d->used += len - was;
	node_dirty(n, len < was ? len : was, len < was ? was : len);
}

static int mem_ftruncate(int fd, off_t len)
{
	pthread_mutex_lock(&memdisk_lock);
	if (planned(disk, MEMDISK_TRUNCATE, NULL) || fd_fails(disk, fd, MEMDISK_WRITES))
		return locked(-1);
	memdisk_resize(disk, opened(disk, fd)->node, (size_t)len);
	return locked(0);
}

static int mem_fallocate(int fd, int mode, off_t at, off_t len)
{
	struct node *n;

	(void)mode;
	pthread_mutex_lock(&memdisk_lock);
	n = opened(disk, fd)->node;
	if (planned(disk, MEMDISK_ALLOCATE, NULL) || fd_fails(disk, fd, MEMDISK_WRITES))
		return locked(-1);
	if ((size_t)(at + len) > n->now->len) {
		if ((size_t)(at + len) - n->now->len > disk->limit - disk->used) {
			errno = ENOSPC;
			return locked(-1);
		}
		memdisk_resize(disk, n, (size_t)(at + len));
	}
	return locked(0);
}

static void fill_stat(const struct node *n, struct stat *st)
{
	memset(st, 0, sizeof(*st));
	st->st_dev = DEVICE;
	st->st_ino = n->ino;
	st->st_mode = n->dir ? S_IFDIR | 0700 : S_IFREG | 0600;
	st->st_nlink = 1;
	st->st_size = n->dir ? 0 : (off_t)n->now->len;
}

static int mem_fstat(int fd, struct stat *st)
{
	pthread_mutex_lock(&memdisk_lock);
	if (planned(disk, MEMDISK_STAT, NULL))
		return locked(-1);
	fill_stat(opened(disk, fd)->node, st);
	return locked(0);
}

static int mem_fstatat(int dirfd, const char *path, struct stat *st, int flags)
{
	struct node *n;

	(void)flags;
	pthread_mutex_lock(&memdisk_lock);
	if (planned(disk, MEMDISK_STAT, NULL))
		return locked(-1);
	n = memdisk_lookup(disk, dirfd, path);
	if (n != NULL)
		fill_stat(n, st);
	return locked(n != NULL ? 0 : -1);
}

/* Before a name goes: a file has one, so its room is free then. */
void memdisk_give_back(struct memdisk *d, const struct node *dir, const char *name)
{
	const struct entry *e = entry_find(dir, name, strlen(name));

	if (e != NULL && !e->node->dir)
		d->used -= e->node->now->len < d->used ? e->node->now->len : d->used;
}

static int mem_renameat(int fromfd, const char *from, int tofd, const char *to)
{
	const char *from_last, *to_last;
	struct node *a, *b;
	struct entry *e;

	pthread_mutex_lock(&memdisk_lock);
	a = memdisk_walk_to(start_at(disk, fromfd, from), from, &from_last);
	b = a != NULL ? memdisk_walk_to(start_at(disk, tofd, to), to, &to_last) : NULL;
	e = b != NULL ? entry_find(a, from_last, strlen(from_last)) : NULL;
	if (b != NULL && e == NULL)
		errno = ENOENT;
	if (e == NULL || planned(disk, MEMDISK_RENAME, NULL) ||
	    fails(disk, to_last, MEMDISK_WRITES))
		return locked(-1);
	/* The new name first, so that both changes may be joined. */
	memdisk_give_back(disk, b, to_last);
	entry_change(b, to_last, e->node);
	entry_change(a, from_last, NULL);
	if (a == b)
		a->changes[a->nchanges - 2].joined = true;
	return locked(0);
}

static int mem_unlinkat(int dirfd, const char *path, int flags)
{
	bool folder = (flags & AT_REMOVEDIR) != 0;
	struct entry *e = NULL;
	const char *last;
	struct node *dir;

	pthread_mutex_lock(&memdisk_lock);
	dir = memdisk_walk_to(start_at(disk, dirfd, path), path, &last);
	if (dir != NULL)
		e = entry_find(dir, last, strlen(last));
	if (dir != NULL && (e == NULL || e->node->dir != folder || e->node->nentries > 0)) {
		errno = e == NULL                 ? ENOENT
			: e->node->dir && !folder ? EISDIR
			: e->node->dir            ? ENOTEMPTY
						  : ENOTDIR;
		dir = NULL;
	}
	if (dir == NULL || planned(disk, MEMDISK_UNLINK, NULL) || fails(disk, last, MEMDISK_WRITES))
		return locked(-1);
	memdisk_give_back(disk, dir, last);
	entry_change(dir, last, NULL);
	return locked(0);
}

static int mem_mkdirat(int dirfd, const char *path, mode_t mode)
{
	const char *last;
	struct node *dir;

	(void)mode;
	pthread_mutex_lock(&memdisk_lock);
	dir = memdisk_walk_to(start_at(disk, dirfd, path), path, &last);
	if (dir == NULL)
		return locked(-1);
	if (entry_find(dir, last, strlen(last)) != NULL) {
		errno = EEXIST;
		return locked(-1);
	}
	if (planned(disk, MEMDISK_MKDIR, NULL) || fails(disk, last, MEMDISK_WRITES))
		return locked(-1);
	entry_change(dir, last, node_new(&disk->nodes, ++disk->next_ino, true));
	return locked(0);
}

static int mem_flock(int fd, int operation)
{
	struct node *n;

	pthread_mutex_lock(&memdisk_lock);
	n = opened(disk, fd)->node;
	if (planned(disk, MEMDISK_FLOCK, NULL))
		return locked(-1);
	if ((operation & LOCK_UN) != 0) {
		n->lock_fd = -1;
	} else if (n->lock_fd >= 0 && n->lock_fd != fd) {
		errno = EWOULDBLOCK;
		return locked(-1);
	} else {
		n->lock_fd = fd;
	}
	return locked(0);
}

static int mem_list(int dirfd, const char *path, void (*name)(const char *name, void *user),
		    void *user)
{
	struct entry *e = NULL;
	struct node *n;
	size_t count;

	pthread_mutex_lock(&memdisk_lock);
	n = planned(disk, MEMDISK_LIST, NULL) ? NULL : memdisk_lookup(disk, dirfd, path);
	if (n == NULL || !n->dir)
		return locked(-1);
	count = n->nentries;
	e = entries_copy(n->entries, count);
	pthread_mutex_unlock(&memdisk_lock);
	for (size_t i = 0; i < count; i++)
		name(e[i].name, user);
	entries_free(e, count);
	return 0;
}

/* What is written by it is no safer in this model. */
static int mem_write_range(int fd, off_t at, off_t len)
{
	(void)at;
	(void)len;
	pthread_mutex_lock(&memdisk_lock);
	if (planned(disk, MEMDISK_WRITE_RANGE, NULL))
		return locked(-1);
	return locked(fd_fails(disk, fd, MEMDISK_SYNCS) ? -1 : 0);
}

const struct sys_ops memdisk_ops = {
	.openat = mem_openat,
	.close = mem_close,
	.pread = mem_pread,
	.pwrite = mem_pwrite,
	.pwritev = mem_pwritev,
	.fdatasync = mem_fsync,
	.fsync = mem_fsync,
	.syncfs = mem_syncfs,
	.ftruncate = mem_ftruncate,
	.fallocate = mem_fallocate,
	.fstat = mem_fstat,
	.fstatat = mem_fstatat,
	.renameat = mem_renameat,
	.unlinkat = mem_unlinkat,
	.mkdirat = mem_mkdirat,
	.flock = mem_flock,
	.list = mem_list,
	.write_range = mem_write_range,
};

/* ---- life of a disk */

struct memdisk *memdisk_new(void)
{
	struct memdisk *d = calloc(1, sizeof(*d));

	assert(d != NULL);
	d->fail_at = -1;
	d->limit = SIZE_MAX;
	d->root = node_new(&d->nodes, ++d->next_ino, true);
	return d;
}

void memdisk_free(struct memdisk *d)
{
	struct node *n, *next;

	for (n = d->nodes; n != NULL; n = next) {
		next = n->next;
		node_free(n);
	}
	free(d);
}

static void point_to_copies(struct entry *e, size_t n)
{
	for (size_t i = 0; i < n; i++)
		e[i].node = e[i].node->copy;
}

/* Only what can still be reached: removed nodes stay behind. */
static void mark(struct node *n)
{
	if (n == NULL || n->mark)
		return;
	n->mark = true;
	for (size_t i = 0; i < n->nentries; i++)
		mark(n->entries[i].node);
	for (size_t i = 0; i < n->nwas; i++)
		mark(n->was[i].node);
	for (size_t i = 0; i < n->nchanges; i++)
		mark(n->changes[i].node);
}

struct memdisk *memdisk_snapshot(const struct memdisk *from)
{
	struct memdisk *d = calloc(1, sizeof(*d));
	struct node *n;

	assert(d != NULL);
	d->fail_at = -1;
	d->limit = from->limit;
	d->used = from->used;
	d->next_ino = from->next_ino;
	for (n = from->nodes; n != NULL; n = n->next)
		n->mark = false;
	mark(from->root);
	for (n = from->nodes; n != NULL; n = n->next)
		n->copy = n->mark ? node_copy(&d->nodes, n) : NULL;
	for (n = d->nodes; n != NULL; n = n->next) {
		point_to_copies(n->entries, n->nentries);
		point_to_copies(n->was, n->nwas);
		for (size_t i = 0; i < n->nchanges; i++)
			if (n->changes[i].node != NULL)
				n->changes[i].node = n->changes[i].node->copy;
	}
	d->root = from->root->copy;
	return d;
}

struct memdisk *memdisk_clone(const struct memdisk *from)
{
	struct memdisk *d;

	pthread_mutex_lock(&memdisk_lock);
	d = memdisk_snapshot(from);
	pthread_mutex_unlock(&memdisk_lock);
	return d;
}

void memdisk_watch(struct memdisk *d, void (*before)(struct memdisk *d, void *user), void *user)
{
	pthread_mutex_lock(&memdisk_lock);
	d->watch = before;
	d->watch_user = user;
	pthread_mutex_unlock(&memdisk_lock);
}

void memdisk_use(struct memdisk *d)
{
	pthread_mutex_lock(&memdisk_lock);
	disk = d;
	sys = d != NULL ? &memdisk_ops : &sys_real;
	pthread_mutex_unlock(&memdisk_lock);
}

void memdisk_kill(struct memdisk *d)
{
	memset(d->fds, 0, sizeof(d->fds));
	for (struct node *n = d->nodes; n != NULL; n = n->next)
		n->lock_fd = -1;
}

uint32_t memdisk_none(uint32_t below, void *user)
{
	(void)below;
	(void)user;
	return 0;
}

uint32_t memdisk_all(uint32_t below, void *user)
{
	(void)user;
	return below - 1;
}

void memdisk_power_cut(struct memdisk *d, uint32_t (*pick)(uint32_t below, void *user), void *user)
{
	memdisk_power_cut_as(d, MEMDISK_ORDERED, pick, user);
}

void memdisk_power_cut_as(struct memdisk *d, enum memdisk_order order,
			  uint32_t (*pick)(uint32_t below, void *user), void *user)
{
	memdisk_kill(d);
	for (struct node *n = d->nodes; n != NULL; n = n->next)
		node_lose(n, order, pick, user);
	for (struct node *n = d->nodes; n != NULL; n = n->next)
		node_sync(n);
	d->used = 0;
	for (struct node *n = d->nodes; n != NULL; n = n->next)
		d->used += n->dir ? 0 : n->now->len;
}

/* ---- faults, from outside */

void memdisk_plan(struct memdisk *d, const struct memdisk_plan *plan)
{
	pthread_mutex_lock(&memdisk_lock);
	d->plan = *plan;
	pthread_mutex_unlock(&memdisk_lock);
}

struct memdisk_plan memdisk_plan_end(struct memdisk *d)
{
	struct memdisk_plan was;

	pthread_mutex_lock(&memdisk_lock);
	was = d->plan;
	d->plan = (struct memdisk_plan){0};
	pthread_mutex_unlock(&memdisk_lock);
	return was;
}

void memdisk_fail(struct memdisk *d, long k, enum memdisk_fault how, int error)
{
	pthread_mutex_lock(&memdisk_lock);
	d->fail_at = k;
	d->how = how;
	d->error = error;
	d->failed = false;
	pthread_mutex_unlock(&memdisk_lock);
}

void memdisk_fail_name(struct memdisk *d, const char *part, enum memdisk_what what)
{
	pthread_mutex_lock(&memdisk_lock);
	d->what = what;
	snprintf(d->fail_name, sizeof(d->fail_name), "%s", part);
	pthread_mutex_unlock(&memdisk_lock);
}

bool memdisk_fail_end(struct memdisk *d)
{
	bool failed;

	pthread_mutex_lock(&memdisk_lock);
	failed = d->failed;
	d->fail_at = -1;
	d->failed = false;
	d->fail_name[0] = '\0';
	d->what = MEMDISK_ANY;
	pthread_mutex_unlock(&memdisk_lock);
	return failed;
}

void memdisk_limit(struct memdisk *d, size_t bytes)
{
	pthread_mutex_lock(&memdisk_lock);
	d->limit = bytes < d->used ? d->used : bytes;
	pthread_mutex_unlock(&memdisk_lock);
}

size_t memdisk_used(const struct memdisk *d)
{
	return d->used;
}

uint64_t memdisk_calls(const struct memdisk *d)
{
	return d->calls;
}
