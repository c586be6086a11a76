/* Opening below the working folder; see root.h.
 *
 * openat2 with RESOLVE_BENEATH lets the kernel itself keep a lookup inside,
 * so a link or folder swapped half-way changes nothing. A file is opened
 * twice: first as a mere handle (O_PATH) to see what it is, because opening a
 * device can already do something; then for reading, with O_NONBLOCK so that
 * a FIFO put there in between cannot hold us, and it is checked again.
 *
 * Kernels before 5.6 and some containers have no openat2: then each part is
 * opened with O_NOFOLLOW. That refuses links it could follow, never follows
 * one it should refuse. */
#include "tool/root.h"

#include <ava.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/util.h"
#include "codec/utf8.h"
#include "tool/ignore.h"

#define OPEN_TRIES 128 /* tries of a lookup that races with a rename (EAGAIN) */
#define READ_FLAGS (O_RDONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)

enum { OPENAT2_UNKNOWN, OPENAT2_YES, OPENAT2_NO };
static atomic_int have_openat2 = OPENAT2_UNKNOWN;

void root_use_openat2(bool on)
{
	atomic_store(&have_openat2, on ? OPENAT2_UNKNOWN : OPENAT2_NO);
}

/* ---- paths */

/* Append a part to the `len` bytes of `out`; ".." takes one off again. */
static int root_add_part(char *out, size_t *len, const char *part, size_t n)
{
	if (n == 0 || (n == 1 && part[0] == '.'))
		return 0;
	if (n == 2 && part[0] == '.' && part[1] == '.') {
		const char *slash = memrchr(out, '/', *len);

		if (*len == 0)
			return AVA_EDENIED;
		*len = slash != NULL ? (size_t)(slash - out) : 0;
		return 0;
	}
	if (*len + n + 2 > PATH_MAX)
		return AVA_EINVAL;
	if (*len != 0)
		out[(*len)++] = '/';
	memcpy(out + *len, part, n);
	*len += n;
	return 0;
}

/* The part of `arg` behind the folder's own path; NULL: another path. */
static const char *below_cwd(const char *cwd, const char *arg)
{
	size_t len = strlen(cwd);

	while (len != 0 && cwd[len - 1] == '/')
		len--;
	if (strncmp(arg, cwd, len) != 0 || (arg[len] != '/' && arg[len] != '\0'))
		return NULL;
	return arg + len;
}

int root_path(const struct root *root, const char *arg, char out[PATH_MAX], struct ava_error *err)
{
	const char *at = arg;
	size_t len = 0;
	int rv;

	for (const char *p = arg; *p != '\0'; p++) {
		/* Results are lines that begin with a path. */
		if ((unsigned char)*p < 0x20 || *p == 0x7f)
			return err_set(err, AVA_EINVAL, "the path holds a control character");
	}
	if (arg[0] == '/')
		at = below_cwd(root->cwd, arg);
	if (at == NULL)
		return err_set(err, AVA_EDENIED,
			       "%s is outside %s: this run may only read below it; give a path "
			       "relative to it",
			       arg, root->cwd);
	while (*at != '\0') {
		size_t n = strcspn(at, "/");

		rv = root_add_part(out, &len, at, n);
		if (rv == AVA_EDENIED)
			return err_set(err, rv,
				       "%s leads outside %s: this run may only read below it", arg,
				       root->cwd);
		if (rv != 0)
			return err_set(err, rv, "the path is longer than %d bytes", PATH_MAX);
		at += n;
		at += *at == '/';
	}
	if (len == 0)
		out[len++] = '.';
	out[len] = '\0';
	return 0;
}

/* ---- lookups; -1 and errno */

static int openat2_once(int fd, const char *path, int flags, uint64_t resolve)
{
	struct open_how how = {
		.flags = (uint64_t)flags,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | resolve,
	};

	return (int)syscall(SYS_openat2, fd, path, &how, sizeof(how));
}

static int beneath_once(int fd, const char *path, int flags)
{
	return openat2_once(fd, path, flags, 0);
}

/* Does openat2 work? Some container filters answer EPERM instead of ENOSYS, so probe once with a
 * path that cannot be refused for another reason. */
static bool can_openat2(int fd)
{
	int have = atomic_load(&have_openat2), probe;

	if (have == OPENAT2_UNKNOWN) {
		probe = beneath_once(fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (probe < 0 && errno != ENOSYS && errno != EPERM && errno != EINVAL)
			return true; /* another error says nothing about openat2 */
		if (probe >= 0)
			close(probe);
		have = probe >= 0 ? OPENAT2_YES : OPENAT2_NO;
		atomic_store(&have_openat2, have);
	}
	return have == OPENAT2_YES;
}

/* Lookup without openat2: one part after the other, links refused with ELOOP. */
static int by_parts(int fd, const char *path, int flags)
{
	int at = fd, saved;

	for (;;) {
		size_t n = strcspn(path, "/");
		bool last = path[n] == '\0';
		char part[NAME_MAX + 1];
		struct stat st;
		int next;

		if (n > NAME_MAX) {
			errno = ENAMETOOLONG;
			next = -1;
		} else {
			memcpy(part, path, n);
			part[n] = '\0';
			next = openat(at, part, (last ? flags : O_PATH | O_CLOEXEC) | O_NOFOLLOW);
		}
		saved = errno;
		if (at != fd)
			close(at);
		errno = saved;
		if (next < 0)
			return -1;
		if (fstat(next, &st) == 0 && S_ISLNK(st.st_mode)) {
			close(next);
			errno = ELOOP;
			return -1;
		}
		if (last)
			return next;
		at = next;
		path += n + 1;
	}
}

static int open_below(const struct root *root, const char *path, int flags)
{
	int fd = -1;

	if (!can_openat2(root->fd))
		return by_parts(root->fd, path, flags);
	for (int i = 0; i < OPEN_TRIES; i++) {
		fd = beneath_once(root->fd, path, flags);
		if (fd >= 0 || (errno != EAGAIN && errno != EINTR))
			break;
	}
	return fd;
}

int root_open_entry(int dirfd, const char *name, bool dir)
{
	return openat(dirfd, name, READ_FLAGS | O_NOFOLLOW | (dir ? O_DIRECTORY : 0));
}

/* ---- sentences */

static int open_error(const struct root *root, const char *path, struct ava_error *err)
{
	switch (errno) {
	case ENOENT:
	case ENOTDIR:
	case ENAMETOOLONG:
		return err_set(err, AVA_ENOENT, "no file %s below %s; search_codebase can find it",
			       path, root->cwd);
	case EXDEV:
		return err_set(err, AVA_EDENIED,
			       "%s passes through a symbolic link that leads outside %s", path,
			       root->cwd);
	case ELOOP:
		return err_set(err, AVA_EDENIED,
			       "%s passes through symbolic links that cannot be followed", path);
	case EACCES:
	case EPERM:
		return err_set(err, AVA_EDENIED, "no permission to read %s", path);
	case EAGAIN:
		return err_set(err, AVA_EIO, "%s changes too fast to be opened; try again", path);
	default:
		return err_sys(err, "open %s", path);
	}
}

static const char *kind_name(mode_t mode)
{
	switch (mode & S_IFMT) {
	case S_IFDIR:
		return "a folder";
	case S_IFIFO:
		return "a FIFO";
	case S_IFSOCK:
		return "a socket";
	case S_IFCHR:
	case S_IFBLK:
		return "a device";
	default:
		return "no regular file";
	}
}

/* `dev`: the device that the file is on. */
static bool root_is_pseudo(int fd, dev_t dev)
{
	static const unsigned long magic[] = {
		PROC_SUPER_MAGIC,   SYSFS_MAGIC,         DEBUGFS_MAGIC,
		TRACEFS_MAGIC,      BPF_FS_MAGIC,        SECURITYFS_MAGIC,
		CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, DEVPTS_SUPER_MAGIC,
	};
	struct statfs fs;

	if (major(dev) != 0) /* the system's own file systems have no device */
		return false;
	if (fstatfs(fd, &fs) != 0)
		return true; /* an unknown file system is not read */
	for (size_t i = 0; i < ARRAY_LEN(magic); i++) {
		if ((unsigned long)fs.f_type == magic[i])
			return true;
	}
	return false;
}

/* Is the file in a folder of ava's own, by whatever path? */
static bool root_is_kept_out(const struct root *root, int fd)
{
	char link[40], path[PATH_MAX];
	ssize_t n;

	if (root->keep_out == NULL)
		return false;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n < 0)
		return true; /* an unknown path is not read */
	path[n] = '\0';
	for (const char *const *p = root->keep_out; *p != NULL; p++) {
		char next = strncmp(path, *p, strlen(*p)) == 0 ? path[strlen(*p)] : 'x';

		if (next == '/' || next == '\0')
			return true;
	}
	return false;
}

static int check_place(const struct root *root, int fd, dev_t dev, const char *path,
		       struct ava_error *err)
{
	if (root_is_pseudo(fd, dev))
		return err_set(err, AVA_EDENIED, "%s belongs to the system, not to the project",
			       path);
	if (root_is_kept_out(root, fd))
		return err_set(err, AVA_EDENIED,
			       "%s belongs to ava itself (its keys, settings or data): no tool "
			       "reads it",
			       path);
	return 0;
}

static int root_check_file(const struct root *root, int fd, const char *path, struct stat *st,
			   struct ava_error *err)
{
	if (fstat(fd, st) != 0)
		return err_sys(err, "open %s", path);
	if (S_ISDIR(st->st_mode))
		return err_set(err, AVA_EDENIED,
			       "%s is a folder: name a file, or search it with search_codebase "
			       "(path \"%s\")",
			       path, path);
	if (!S_ISREG(st->st_mode))
		return err_set(err, AVA_EDENIED, "%s is %s: only regular files can be read", path,
			       kind_name(st->st_mode));
	return check_place(root, fd, st->st_dev, path, err);
}

/* ---- opening */

int root_open_file(const struct root *root, const char *path, struct stat *st,
		   struct ava_error *err)
{
	int fd = open_below(root, path, O_PATH | O_CLOEXEC), rv;

	if (fd < 0)
		return open_error(root, path, err);
	rv = root_check_file(root, fd, path, st, err);
	close(fd);
	if (rv != 0)
		return rv;
	fd = open_below(root, path, READ_FLAGS);
	if (fd < 0)
		return open_error(root, path, err);
	rv = root_check_file(root, fd, path, st, err);
	if (rv != 0) {
		close(fd);
		return rv;
	}
	return fd;
}

int root_open_cached(const struct root *root, const char *path, struct stat *st)
{
	int fd;

	if (!can_openat2(root->fd))
		return -1;
	fd = openat2_once(root->fd, path, O_PATH | O_CLOEXEC, RESOLVE_CACHED);
	if (fd < 0)
		return -1;
	if (fstat(fd, st) != 0 || !S_ISREG(st->st_mode)) {
		close(fd);
		return -1;
	}
	close(fd);
	fd = openat2_once(root->fd, path, READ_FLAGS, RESOLVE_CACHED);
	if (fd >= 0 && (fstat(fd, st) != 0 || !S_ISREG(st->st_mode) ||
			root_is_pseudo(fd, st->st_dev) || root_is_kept_out(root, fd))) {
		close(fd);
		return -1;
	}
	return fd;
}

int root_open_dir(const struct root *root, const char *path, struct ava_error *err)
{
	int fd = open_below(root, path, READ_FLAGS | O_DIRECTORY), rv;

	if (fd < 0)
		return open_error(root, path, err);
	rv = check_place(root, fd, 0, path, err);
	if (rv != 0) {
		close(fd);
		return rv;
	}
	return fd;
}

/* ---- Walking a tree.
 *
 * A folder is listed whole and sorted before anything in it is visited, so
 * that results come in the same order each time. The way down is an array of
 * levels, each with its open folder: an entry is always opened relative to
 * the folder it was listed in, by a single name and without following links,
 * so nothing outside can be reached however the tree changes meanwhile. What
 * cannot be read is counted and passed over. */

#define NAMES_MAX  (32u << 20) /* bytes of names in one folder */
#define LIST_BYTES (64u << 10)

struct entry {
	size_t name; /* offset in `names` */
	enum root_kind { KIND_FILE, KIND_DIR, KIND_OTHER } kind;
};

struct level {
	int fd;
	dev_t dev;
	struct buf names;
	struct entry *entries;
	size_t count, cap, at;
	size_t path_len;   /* length of this folder's path in walker.path */
	size_t mark;       /* number of ignore rules before those of this folder */
	bool ignores, git; /* the folder has a .gitignore; a .git */
};

struct walker {
	struct walk *w;
	struct ignore *ignore;
	struct level levels[WALK_DEPTH_MAX];
	size_t depth; /* levels in use */
	char path[PATH_MAX];
	char list[LIST_BYTES]; /* buffer of getdents64 */
};

/* ---- one folder */

/* KIND_OTHER: a link, a device, or gone. */
static enum root_kind entry_kind(const struct level *l, const struct dirent64 *d)
{
	struct stat st;

	if (d->d_type == DT_DIR)
		return KIND_DIR;
	if (d->d_type == DT_REG)
		return KIND_FILE;
	if (d->d_type != DT_UNKNOWN || fstatat(l->fd, d->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return KIND_OTHER;
	return S_ISDIR(st.st_mode) ? KIND_DIR : S_ISREG(st.st_mode) ? KIND_FILE : KIND_OTHER;
}

/* Can a result line "path:LINE:text" show the name? Not with control characters or invalid
 * UTF-8. */
static bool is_text(const char *name, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if ((unsigned char)name[i] < 0x20 || name[i] == 0x7f)
			return false;
	}
	return utf8_valid(name, len);
}

static int level_add(struct walker *k, struct level *l, const struct dirent64 *d)
{
	size_t len = strlen(d->d_name);
	enum root_kind kind = entry_kind(l, d);

	if (strcmp(d->d_name, ".git") == 0) {
		l->git = kind == KIND_DIR;
		kind = KIND_OTHER;
	}
	if ((kind == KIND_OTHER && !k->w->other) || strcmp(d->d_name, ".") == 0 ||
	    strcmp(d->d_name, "..") == 0)
		return 0;
	if (strcmp(d->d_name, ".gitignore") == 0 && kind == KIND_FILE)
		l->ignores = true;
	if (!is_text(d->d_name, len) || l->path_len + len + 2 > PATH_MAX) {
		k->w->odd++;
		return 0;
	}
	if (!ARRAY_ROOM(l->entries, l->cap, l->count + 1))
		return AVA_ENOMEM;
	l->entries[l->count++] = (struct entry){.name = l->names.len, .kind = kind};
	return buf_add(&l->names, d->d_name, len + 1);
}

static int root_by_name(const void *a, const void *b, void *names)
{
	return strcmp((const char *)names + ((const struct entry *)a)->name,
		      (const char *)names + ((const struct entry *)b)->name);
}

/* Read the names of a folder, sorted. */
static int level_list(struct walker *k, struct level *l)
{
	ssize_t n;

	while ((n = getdents64(l->fd, k->list, sizeof(k->list))) > 0) {
		for (char *p = k->list; p < k->list + n;) {
			const struct dirent64 *d = (const struct dirent64 *)p;
			int rv = l->count < WALK_ENTRIES_MAX ? level_add(k, l, d) : AVA_ETOOBIG;

			if (rv == AVA_ETOOBIG) {
				l->count -= l->names.failed;
				k->w->crowded++;
				goto sort;
			}
			if (rv != 0)
				return rv;
			p += d->d_reclen;
		}
		if (k->w->poll(k->w->user) != 0)
			break; /* the next poll returns the same and ends the walk */
	}
	if (n < 0)
		k->w->unreadable++;
sort:
	if (l->count != 0)
		qsort_r(l->entries, l->count, sizeof(*l->entries), root_by_name, l->names.data);
	return 0;
}

/* ---- ignore files */

static int push_file(struct walker *k, int fd, enum ignore_rank rank, const char *base)
{
	struct buf text;
	struct stat st;
	int rv = 0;

	if (fd < 0)
		return 0;
	buf_init(&text, IGNORE_TEXT_MAX);
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0) {
		size_t want = (size_t)(st.st_size < IGNORE_TEXT_MAX ? st.st_size : IGNORE_TEXT_MAX);
		char *at = buf_reserve(&text, want);
		ssize_t n = at != NULL ? pread(fd, at, want, 0) : 0;

		rv = buf_check(&text);
		if (rv == 0 && n > 0)
			rv = ignore_push(k->ignore, rank, base, at, (size_t)n);
	}
	buf_fini(&text);
	close(fd);
	return rv;
}

/* Open .git/info/exclude part by part so that no link is followed. */
static int open_exclude(int dirfd)
{
	int git = root_open_entry(dirfd, ".git", true), info = -1, fd = -1;

	if (git >= 0)
		info = root_open_entry(git, "info", true);
	if (info >= 0)
		fd = root_open_entry(info, "exclude", false);
	if (info >= 0)
		close(info);
	if (git >= 0)
		close(git);
	return fd;
}

static int push_rules(struct walker *k, int dirfd, const char *base, bool ignores, bool git)
{
	int rv = 0;

	if (git)
		rv = push_file(k, open_exclude(dirfd), IGNORE_INFO, base);
	if (rv == 0 && ignores)
		rv = push_file(k, root_open_entry(dirfd, ".gitignore", false), IGNORE_FOLDER, base);
	return rv;
}

/* Push the rules of the folders above the start; its own follow when it is entered. */
static int push_above(struct walker *k, struct ava_error *err)
{
	char base[PATH_MAX] = "";
	const char *at = k->w->start, *slash;
	int rv = 0, fd;

	if (strcmp(at, ".") == 0)
		return 0;
	do {
		fd = root_open_dir(k->w->root, base[0] != '\0' ? base : ".", err);
		if (fd < 0)
			return fd;
		rv = push_rules(k, fd, base, true, true);
		close(fd);
		slash = strchr(at, '/');
		if (slash != NULL) {
			size_t len = (size_t)(slash - k->w->start);

			memcpy(base, k->w->start, len);
			base[len] = '\0';
			at = slash + 1;
		}
	} while (rv == 0 && slash != NULL);
	return rv;
}

/* ---- the walk */

/* Enter a folder; `fd` is taken. */
static int root_enter(struct walker *k, int fd, size_t path_len)
{
	struct level *l = &k->levels[k->depth];
	struct stat st;
	int rv;

	*l = (struct level){.fd = fd, .path_len = path_len, .mark = ignore_mark(k->ignore)};
	buf_init(&l->names, NAMES_MAX);
	k->depth++;
	if (fstat(fd, &st) != 0)
		return err_sys(NULL, "stat");
	l->dev = st.st_dev;
	if (root_is_kept_out(k->w->root, fd))
		return 0;
	/* A /proc mounted inside the tree holds no data. */
	if (k->depth > 1 && st.st_dev != k->levels[k->depth - 2].dev &&
	    root_is_pseudo(fd, st.st_dev))
		return 0;
	rv = level_list(k, l);
	if (rv == 0)
		rv = push_rules(k, fd, k->path, l->ignores, l->git);
	return rv;
}

static void root_leave(struct walker *k)
{
	struct level *l = &k->levels[--k->depth];

	ignore_pop(k->ignore, l->mark);
	if (l->fd >= 0)
		close(l->fd);
	buf_fini(&l->names);
	free(l->entries);
	l->entries = NULL;
	l->fd = -1;
	k->path[l->path_len] = '\0';
}

static int visit_dir(struct walker *k, const struct level *l, const char *name, size_t path_len)
{
	int fd;

	if (k->depth == WALK_DEPTH_MAX) {
		k->w->deep++;
		return 0;
	}
	fd = root_open_entry(l->fd, name, true);
	if (fd < 0) {
		k->w->unreadable += errno != ENOENT && errno != ENOTDIR && errno != ELOOP;
		return 0;
	}
	return root_enter(k, fd, path_len);
}

static int visit(struct walker *k, struct level *l, const struct entry *e)
{
	const char *name = l->names.data + e->name;
	size_t len = l->path_len, n = strlen(name);
	int rv = k->w->poll(k->w->user);

	if (rv != 0)
		return rv;
	if (len != 0)
		k->path[len++] = '/';
	memcpy(k->path + len, name, n + 1);
	if (ignore_match(k->ignore, k->path, e->kind == KIND_DIR))
		return 0;
	if (e->kind == KIND_DIR)
		return visit_dir(k, l, name, len + n);
	if (e->kind == KIND_OTHER)
		return k->w->other(k->w->user, l->fd, name, k->path);
	return k->w->file(k->w->user, l->fd, name, k->path);
}

static int root_run(struct walker *k, struct ava_error *err)
{
	const char *start = k->w->start;
	int rv, fd;

	rv = push_above(k, err);
	if (rv != 0)
		return rv;
	fd = root_open_dir(k->w->root, start, err);
	if (fd < 0)
		return fd;
	if (strcmp(start, ".") != 0)
		memcpy(k->path, start, strlen(start) + 1);
	rv = root_enter(k, fd, strlen(k->path));
	while (rv == 0 && k->depth != 0) {
		struct level *l = &k->levels[k->depth - 1];

		k->path[l->path_len] = '\0';
		if (l->at < l->count)
			rv = visit(k, l, &l->entries[l->at++]);
		else
			root_leave(k);
	}
	return rv;
}

int walk_run(struct walk *w, struct ava_error *err)
{
	struct walker *k = calloc(1, sizeof(*k));
	int rv = AVA_ENOMEM;

	if (k == NULL)
		goto out;
	k->w = w;
	k->ignore = ignore_new();
	if (k->ignore != NULL)
		rv = root_run(k, err);
	while (k->depth != 0)
		root_leave(k);
	if (k->ignore != NULL)
		w->slow = ignore_given_up(k->ignore);
	ignore_free(k->ignore);
	free(k);
out:
	return rv == AVA_ENOMEM ? err_set(err, rv, "out of memory") : rv;
}
