/* Taking back what filled the disk; see trim.h.
 *
 * Both folders are looked through for what was made since, by the file system's own times: what
 * was made goes first, the largest first, of the same size the newest; then folders; then what
 * was there before and was changed, where it is large. In the copy of a project a file that the
 * project has is put back as it was: gone, it would be a change. When all of it together is
 * little another program filled the disk, and nothing is removed.
 *
 * Files are a stranger's: nothing is followed, and folders that were closed are opened. What cannot
 * be removed stays. */
#include "tool/trim.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/below.h"
#include "base/buf.h"
#include "base/util.h"
#include "exec/sandbox.h"
#include "tool/copy.h"
#include "tool/job.h"

#define OWN_MB     16u /* a program that wrote less did not fill the disk */
#define OWN_INODES 64u
#define FOUND_MAX  100000 /* files listed at a time; for more the folder is read again */
#define DEPTH_MAX  100    /* a deeper folder counts as one file */
#define SAID_MAX   10
#define LARGE      ((uint64_t)1 << 20) /* least size of an older file to remove or restore */

enum trim_kind { TRIM_MADE, TRIM_FOLDER, TRIM_CHANGED };

struct trim_found {
	size_t path, order; /* place of the path in `names`; order of finding */
	uint64_t bytes;
	struct statx_timestamp at;
	enum trim_kind kind;
};

struct trimming {
	const struct trim *t;
	struct trim_found *found;
	size_t n, cap;
	struct buf names;
	char path[PATH_MAX];
	uint64_t bytes;   /* bytes found */
	uint64_t removed; /* bytes removed */
	size_t gone;
	struct buf *said;
};

/* ---- when to trim */

void trim_begin(struct trim *t, const char *work, const char *copy, uint64_t least_mb)
{
	*t = (struct trim){.work = work, .copy = copy, .least_mb = least_mb};
	t->fd = open(work, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (t->fd < 0 || sys_room(t->fd, &t->had) != 0)
		t->least_mb = 0;
	clock_gettime(CLOCK_REALTIME_COARSE, &t->since);
}

void trim_end(struct trim *t)
{
	if (t->fd >= 0)
		close(t->fd);
	t->fd = -1;
}

static uint64_t own(uint64_t had, uint64_t most)
{
	return MAX(MIN(had / 2, most), 1);
}

/* Is less free than `times` the least? */
static bool trim_short(const struct trim *t, unsigned times)
{
	struct sys_room r;

	if (t->least_mb == 0 || sys_room(t->fd, &r) != 0)
		return false;
	return r.mb < t->least_mb * times || r.inodes < r.few_inodes * times;
}

bool trim_due(struct trim *t)
{
	struct sys_room r;

	if (!trim_short(t, 1) || sys_room(t->fd, &r) != 0)
		return false;
	/* Room that others freed meanwhile, but not enough, does not excuse the program. */
	t->due = t->due || r.mb + own(t->had.mb, OWN_MB) <= t->had.mb ||
		 r.inodes + own(t->had.inodes, OWN_INODES) <= t->had.inodes;
	return t->due;
}

/* ---- files it wrote */

static bool trim_since(const struct trim *t, const struct statx_timestamp *at)
{
	return at->tv_sec != t->since.tv_sec ? at->tv_sec > t->since.tv_sec
					     : at->tv_nsec >= t->since.tv_nsec;
}

static void trim_add(struct trimming *k, const struct statx *x, enum trim_kind kind)
{
	struct trim_found *f;

	if (!ARRAY_ROOM(k->found, k->cap, k->n + 1))
		return;
	f = &k->found[k->n];
	*f = (struct trim_found){.path = k->names.len,
				 .order = k->n,
				 .bytes = x->stx_blocks * 512,
				 .at = x->stx_ctime,
				 .kind = kind};
	if (buf_add(&k->names, k->path, strlen(k->path) + 1) != 0)
		return;
	k->bytes += f->bytes;
	k->n++;
}

static int trim_open(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), handle;
	char self[40];

	if (fd >= 0 || errno != EACCES)
		return fd;
	handle = openat(dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (handle < 0)
		return -1;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", handle);
	if (chmod(self, 0700) == 0)
		fd = open(self, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	close(handle);
	return fd;
}

static void trim_look(struct trimming *k, int fd, int depth);

static void trim_look_at(struct trimming *k, int dir, const char *name, int depth)
{
	struct statx x;
	bool made, deep = depth >= DEPTH_MAX || strlen(k->path) > PATH_MAX / 2;

	if (statx(dir, name, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS | STATX_BTIME, &x) != 0)
		return;
	made = trim_since(k->t, x.stx_mask & STATX_BTIME ? &x.stx_btime : &x.stx_ctime);
	if (S_ISDIR(x.stx_mode) && !deep)
		trim_look(k, trim_open(dir, name), depth + 1);
	if (made)
		trim_add(k, &x, S_ISDIR(x.stx_mode) ? TRIM_FOLDER : TRIM_MADE);
	else if (!k->t->keeps && S_ISREG(x.stx_mode) && trim_since(k->t, &x.stx_ctime) &&
		 x.stx_blocks * 512 >= LARGE)
		trim_add(k, &x, TRIM_CHANGED);
}

/* `fd` is *taken*. */
static void trim_look(struct trimming *k, int fd, int depth)
{
	size_t len = strlen(k->path);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *e;

	if (!d && fd >= 0)
		close(fd);
	while (d && k->n < FOUND_MAX && (e = readdir(d)) != NULL) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		snprintf(k->path + len, sizeof(k->path) - len, "%s%s", len > 0 ? "/" : "",
			 e->d_name);
		trim_look_at(k, dirfd(d), e->d_name, depth);
		k->path[len] = '\0';
	}
	if (d)
		closedir(d);
}

static int trim_order(const void *a, const void *b)
{
	const struct trim_found *x = a, *y = b;

	if (x->kind != y->kind)
		return (int)x->kind - (int)y->kind;
	if (x->kind == TRIM_FOLDER) /* inner folders were found first */
		return (x->order > y->order) - (x->order < y->order);
	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? 1 : -1;
	if (x->at.tv_sec != y->at.tv_sec)
		return x->at.tv_sec < y->at.tv_sec ? 1 : -1;
	return (x->at.tv_nsec < y->at.tv_nsec) - (x->at.tv_nsec > y->at.tv_nsec);
}

/* ---- removing */

static bool trim_one(struct trimming *k, int root, const char *where, const struct trim_found *f)
{
	const char *path = k->names.data + f->path, *name;
	int dir = below_open_parent(root, path, false, &name), rv;
	char shown[PATH_MAX];
	bool back = false;

	if (dir < 0)
		return false;
	/* 1: there is nothing to put back, so remove the file. */
	rv = where || f->kind == TRIM_FOLDER ? 1
					     : copy_put_back(k->t->copy, path, f->bytes >= LARGE);
	back = rv == 0;
	if (rv == 1)
		rv = unlinkat(dir, name, f->kind == TRIM_FOLDER ? AT_REMOVEDIR : 0);
	if (rv != 0 && f->kind == TRIM_FOLDER && errno == ENOTEMPTY) {
		copy_remove(dir, name);
		rv = faccessat(dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	}
	close(dir);
	if (rv != 0)
		return false;
	snprintf(shown, sizeof(shown), "%s%.*s", where ? where : "", PATH_MAX / 2 + 300, path);
	k->removed += f->bytes;
	if (k->gone++ >= SAID_MAX)
		return true;
	if (k->gone > 1)
		buf_adds(k->said, ", ");
	job_name(k->said, shown);
	if (f->bytes >= LARGE)
		buf_addf(k->said, " (%llu MB)", (unsigned long long)(f->bytes >> 20));
	if (back)
		buf_adds(k->said, " (as it was)");
	return true;
}

/* Look through a folder once. true: something was removed. `where`: its name inside the sandbox,
 * with a slash; NULL: the copy. */
static bool trim_folder(struct trimming *k, int root, const char *where, bool *found)
{
	int fd = openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool any = false;

	k->n = 0;
	k->bytes = 0;
	buf_reset(&k->names);
	trim_look(k, fd, 0);
	*found = k->bytes >> 20 >= own(k->t->had.mb, OWN_MB) / 2 ||
		 k->n >= own(k->t->had.inodes, OWN_INODES) / 2;
	if (!*found)
		return false;
	qsort(k->found, k->n, sizeof(k->found[0]), trim_order);
	for (size_t i = 0; i < k->n && trim_short(k->t, 2); i++)
		any = trim_one(k, root, where, &k->found[i]) || any;
	return any;
}

bool trim_run(const struct trim *t, struct buf *said)
{
	struct trimming k = {.t = t, .said = said};
	int copy = t->copy ? open(t->copy, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
	bool found = false, more = true;

	buf_init(&k.names, (size_t)64 << 20);
	buf_adds(said, "Removed of what it wrote, so that logs and other work have room: ");
	while (more && trim_short(t, 2)) {
		more = trim_folder(&k, t->fd, SANDBOX_WORK "/", &found);
		if (copy >= 0 && trim_short(t, 2))
			more = trim_folder(&k, copy, NULL, &found) || more;
	}
	if (k.gone > SAID_MAX)
		buf_addf(said, " and %zu more", k.gone - SAID_MAX);
	if (k.gone == 0) {
		buf_reset(said);
		buf_adds(said, "The disk is full, though not by files that this left");
	}
	buf_adds(said, ".\n");
	buf_fini(&k.names);
	free(k.found);
	if (copy >= 0)
		close(copy);
	return k.gone > 0;
}
