/* Making a copy, comparing its two trees, removing it; see copy.h.
 *
 * A plain copy and a comparison of our own, not git: git over a tree that is not trusted runs
 * what its configuration says (filters, hooks, fsmonitor), a worktree of git has none of what is
 * not committed, and would write into the person's .git. Where the file system shares blocks
 * (btrfs, XFS) a copy costs next to nothing, elsewhere it is bounded.
 *
 * The tree may hold anything that a command made: links, FIFOs, folders without end. Nothing in
 * it is opened through a link, and looking has bounds. What no patch can say, or may not, is left
 * out and named. What can fail: the disk, memory. */
#include "tool/copy.h"

#include <ava.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/below.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/patch.h"
#include "tool/root.h"

#define STEP ((size_t)64 << 10)

static int copy_open_folder(const char *path)
{
	return open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

/* A folder below a tree, kept open for the next path in it. */
struct copy_place {
	int root, fd; /* both owned; -1: none */
	char dir[PATH_MAX];
};

static void place_init(struct copy_place *p, int root)
{
	p->root = root;
	p->fd = -1;
}

static void place_fini(struct copy_place *p)
{
	if (p->fd >= 0)
		close(p->fd);
	if (p->root >= 0)
		close(p->root);
}

/* The folder of `path`, borrowed until the next call; *name is the last part. -1 and errno. */
static int place_of(struct copy_place *p, const char *path, bool make, const char **name)
{
	const char *slash = strrchr(path, '/');
	size_t len = slash ? (size_t)(slash - path) : 0;

	*name = slash ? slash + 1 : path;
	if (p->fd >= 0 && strncmp(p->dir, path, len) == 0 && p->dir[len] == '\0')
		return p->fd;
	if (p->fd >= 0)
		close(p->fd);
	p->fd = below_open_parent(p->root, path, make, name);
	memcpy(p->dir, path, len);
	p->dir[len] = '\0';
	return p->fd;
}

/* ---- making */

struct making {
	const struct copy_wish *wish;
	struct copy_place base, tree;
	size_t files;
	unsigned long long bytes;
	struct ava_error *err;
};

/* Copy all of `from` to a new file; *fd is open, for reading and writing. */
static int clone_bytes(int from, off_t size, int to)
{
	off_t at = 0;
	char data[STEP];

	if (size == 0 || ioctl(to, FICLONE, from) == 0)
		return 0;
	while (at < size) {
		ssize_t n = copy_file_range(from, &at, to, NULL, (size_t)(size - at), 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EXDEV && errno != EINVAL && errno != ENOSYS &&
		    errno != EOPNOTSUPP && errno != EBADF && errno != EPERM)
			return -1;
		if (n <= 0)
			break;
	}
	while (at < size) {
		ssize_t n = pread(from, data, MIN((size_t)(size - at), STEP), at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n == 0)
			return 0; /* the file has become shorter */
		if (n < 0 || sys_write_all(to, data, (size_t)n, at) != 0)
			return -1;
		at += n;
	}
	return 0;
}

/* Returns the new file, open; -1: see err. */
static int clone_file(struct making *m, struct copy_place *to, int from, const struct stat *st,
		      const char *path)
{
	struct timespec times[2] = {st->st_atim, st->st_mtim};
	const char *name;
	int dir = place_of(to, path, true, &name);
	int fd = dir < 0 ? -1
			 : openat(dir, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
				  0600);

	if (fd >= 0 && clone_bytes(from, st->st_size, fd) == 0 &&
	    fchmod(fd, (st->st_mode & 0777) | 0600) == 0 && futimens(fd, times) == 0)
		return fd;
	err_sys(m->err, "copy %.300s", path);
	if (fd >= 0)
		close(fd);
	return -1;
}

static int copy_too_much(struct making *m, const char *path, const struct stat *st)
{
	if ((unsigned long long)st->st_size > COPY_BYTES_MAX)
		return err_set(m->err, AVA_ETOOBIG,
			       "%.300s alone is too large for a copy of the project (%llu MB, all "
			       "of it may have %llu): name it in .gitignore, or start in a folder "
			       "without it",
			       path, (unsigned long long)st->st_size >> 20, COPY_BYTES_MAX >> 20);
	return err_set(m->err, AVA_ETOOBIG,
		       "the project is too large to be copied for changes (more than %d files or "
		       "%llu MB that no .gitignore names): start in a folder of it, or without the "
		       "grant rw",
		       COPY_FILES_MAX, COPY_BYTES_MAX >> 20);
}

static int copy_take(struct making *m, const char *path, const struct stat *st)
{
	m->bytes += S_ISREG(st->st_mode) ? (unsigned long long)st->st_size : 0;
	return ++m->files > COPY_FILES_MAX || m->bytes > COPY_BYTES_MAX ? copy_too_much(m, path, st)
									: 0;
}

/* Measure before the first copy: a project that is too large is refused at once. */
static int copy_measure(void *user, int dirfd, const char *name, const char *path)
{
	struct stat st;

	return fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? copy_take(user, path, &st) : 0;
}

static int make_file(void *user, int dirfd, const char *name, const char *path)
{
	struct making *m = user;
	int from = root_open_entry(dirfd, name, false), base = -1, tree = -1;
	struct stat st;
	int rv = 0;

	if (from < 0)
		return 0; /* a file gone or unreadable is not there for the run either */
	if (fstat(from, &st) != 0 || !S_ISREG(st.st_mode))
		goto out;
	rv = copy_take(m, path, &st); /* the file may have grown */
	if (rv != 0)
		goto out;
	base = clone_file(m, &m->base, from, &st, path);
	/* Copy the first copy, so that both are equal whatever happens to the project meanwhile. */
	if (base >= 0 && fstat(base, &st) == 0)
		tree = clone_file(m, &m->tree, base, &st, path);
	rv = tree < 0 ? m->err->code : 0;
out:
	if (tree >= 0)
		close(tree);
	if (base >= 0)
		close(base);
	close(from);
	return rv;
}

static int make_other(void *user, int dirfd, const char *name, const char *path)
{
	struct making *m = user;
	struct copy_place *to[] = {&m->base, &m->tree};
	char target[PATH_MAX];
	ssize_t n = readlinkat(dirfd, name, target, sizeof(target) - 1);

	if (n <= 0)
		return 0; /* not a link */
	target[n] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(to); i++) {
		const char *last;
		int dir = place_of(to[i], path, true, &last);

		if (dir < 0 || symlinkat(target, dir, last) != 0)
			return err_sys(m->err, "copy %.300s", path);
	}
	return 0;
}

static int make_poll(void *user)
{
	const struct making *m = user;

	return atomic_load_explicit(m->wish->stop, memory_order_relaxed) ? AVA_ECANCELED : 0;
}

/* Read a file whole. 0: in `s`, and `data` is owned. Else `why` it cannot be in a patch. */
static int read_side(struct copy_place *at, const char *path, struct patch_side *s, char **data,
		     const char **why)
{
	struct stat st;
	int rv = below_read(at->root, path, PATCH_FILE_MAX, data, &s->len, &st, NULL);

	*s = rv == 0 ? (struct patch_side){*data, s->len, true, st.st_mode & 0100}
		     : (struct patch_side){0};
	if (rv == AVA_ENOENT)
		return 0;
	if (rv == AVA_ENOMEM)
		return rv;
	if (rv == AVA_ETOOBIG)
		*why = "too large for a patch";
	else if (rv != 0)
		*why = "a link, or no regular file";
	else
		*why = patch_unfit(s->data, s->len);
	return 0;
}

/* Apply the patch of the run it continues, all or nothing. */
static int make_patched(struct making *m)
{
	struct patch_clash clash;
	struct patch p = {0};
	struct buf out;
	int rv = 0;

	if (!m->wish->patch)
		return 0;
	buf_init(&out, 2 * PATCH_FILE_MAX);
	rv = patch_read(&p, m->wish->patch, m->wish->patch_len, m->err);
	for (size_t i = 0; rv == 0 && i < 2 * p.n; i++) { /* first try all files, then write them */
		const struct patch_file *f = &p.files[i % p.n];
		struct patch_side now;
		const char *why = NULL;
		char *data = NULL;
		int fit = read_side(&m->tree, f->path, &now, &data, &why);

		if (fit == 0 && !why)
			fit = patch_try(f, &now, &out, &clash);
		free(data);
		if (fit < 0 || why || fit == PATCH_CLASHES)
			rv = err_set(m->err, AVA_EEXIST,
				     "%.300s %s, so that your copy of the project begins without "
				     "the changes that you made before; call it again to go on so",
				     f->path, fit < 0 || why ? "cannot be read" : clash.what);
		if (rv != 0 || i < p.n || fit == PATCH_DONE)
			continue;
		if (f->is_gone)
			rv = below_remove(m->tree.root, f->path, NULL, m->err);
		else
			rv = below_write(m->tree.root, f->path, BELOW_SPARE, out.data, out.len,
					 f->exec ? 0755 : 0644, m->err);
		if (rv == 0 && !f->is_gone)
			rv = below_rename(m->tree.root, f->path, BELOW_SPARE, m->err);
	}
	patch_fini(&p);
	buf_fini(&out);
	return rv;
}

static int make_at(struct making *m, const char *folder)
{
	struct root root = {.cwd = m->wish->project, .keep_out = m->wish->keep_out};
	struct walk w = {.root = &root,
			 .start = ".",
			 .file = copy_measure,
			 .other = copy_measure,
			 .poll = make_poll,
			 .user = m};
	int fd = copy_open_folder(folder), rv = 0;
	char head[COPY_HEAD_MAX + 1];

	if (fd < 0 || mkdirat(fd, "base", 0700) != 0 || mkdirat(fd, "tree", 0700) != 0)
		rv = err_sys(m->err, "make %.300s", folder);
	place_init(&m->base, openat(fd, "base", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	place_init(&m->tree, openat(fd, "tree", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	root.fd = open(m->wish->project, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (rv == 0 && root.fd < 0)
		rv = err_set(m->err, AVA_ENOENT, "the project %.300s cannot be opened (%s)",
			     m->wish->project, strerror(errno));
	if (rv == 0)
		rv = walk_run(&w, m->err);
	m->files = m->bytes = 0;
	w.file = make_file;
	w.other = make_other;
	if (rv == 0)
		rv = walk_run(&w, m->err);
	if (rv == 0)
		rv = make_patched(m);
	if ((rv == 0 || rv == AVA_EEXIST) && head_read(m->wish->project, head))
		(void)!symlinkat(head, fd, "head");
	/* Bytes reach the disk before the folder gets its name. */
	if ((rv == 0 || rv == AVA_EEXIST) && syncfs(fd) != 0)
		rv = err_sys(m->err, "sync %.300s", folder);
	place_fini(&m->base);
	place_fini(&m->tree);
	if (root.fd >= 0)
		close(root.fd);
	if (fd >= 0)
		close(fd);
	return rv;
}

int copy_make(const struct copy_wish *w, struct ava_error *err)
{
	struct ava_error own = {0};
	struct making m = {.wish = w, .err = &own};
	char fresh[PATH_MAX];
	struct stat st;
	int rv;

	if (stat(w->folder, &st) == 0)
		return 0;
	if ((size_t)snprintf(fresh, sizeof(fresh), "%s.new", w->folder) >= sizeof(fresh))
		return err_set(err, AVA_ETOOBIG, "the path of the data root is too long");
	copy_remove(AT_FDCWD, fresh);
	if (sys_make_folders(fresh, true) != 0)
		return err_sys(err, "make %.300s", fresh);
	rv = make_at(&m, fresh);
	if ((rv == 0 || rv == AVA_EEXIST) && rename(fresh, w->folder) != 0)
		rv = err_sys(&own, "make %.300s", w->folder);
	if (rv != 0 && rv != AVA_EEXIST)
		copy_remove(AT_FDCWD, fresh);
	if (rv != 0 && err)
		*err = own;
	return rv;
}

/* ---- what changed */

struct copy_looking {
	struct copy_changes *out;
	struct copy_place base, tree;
	size_t looked;
	unsigned long long read; /* bytes read so far */
	struct jw left;
	struct ava_error *err;
};

static void copy_leave_out(struct copy_looking *l, const char *path, const char *why)
{
	if (l->out->nleft++ >= COPY_LEFT_MAX)
		return;
	jw_object(&l->left, NULL);
	jw_str(&l->left, "path", path);
	jw_str(&l->left, "why", why);
	jw_end(&l->left);
}

static bool copy_has(int fd, const char *name)
{
	return faccessat(fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* Would git take the folder for a repository, whose contents decide what git does there? With a
 * commondir only HEAD need be in it, and the rest in a folder that is no repository by itself. */
static bool is_git_folder(int fd)
{
	return fd >= 0 && copy_has(fd, "HEAD") &&
	       (copy_has(fd, "commondir") || (copy_has(fd, "objects") && copy_has(fd, "refs")));
}

static bool in_git_folder(const struct copy_looking *l, const char *path)
{
	bool is = is_git_folder(l->tree.root);

	for (const char *slash = strchr(path, '/'); slash && !is; slash = strchr(slash + 1, '/')) {
		char dir[PATH_MAX];
		int fd;

		snprintf(dir, sizeof(dir), "%.*s", (int)(slash - path), path);
		fd = openat(l->tree.root, dir, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		is = is_git_folder(fd);
		if (fd >= 0)
			close(fd);
	}
	return is;
}

/* The reason why a path may be in no patch; NULL: it may. */
static const char *unfit(const struct copy_looking *l, const char *path)
{
	if (patch_protected(path))
		return "protected: it decides what programs do in this folder";
	if (!patch_path_ok(path))
		return "its name cannot stand in a patch";
	if (in_git_folder(l, path))
		return "protected: it is in a folder that git takes for a repository";
	return NULL;
}

static int add_change(struct copy_looking *l, const char *path)
{
	const char *why = l->read > COPY_BYTES_MAX ? "too much changed" : unfit(l, path);
	struct patch_side old = {0}, now = {0};
	char *data[2] = {NULL, NULL};
	int rv = 0;

	if (!why)
		rv = read_side(&l->base, path, &old, &data[0], &why);
	if (!why && rv == 0)
		rv = read_side(&l->tree, path, &now, &data[1], &why);
	l->read += old.len + now.len;
	if (!why && l->out->files == PATCH_FILES_MAX)
		why = "the patch is full";
	if (!why && rv == 0) {
		struct buf one;

		buf_init(&one, PATCH_MAX - l->out->patch.len);
		rv = patch_add(&one, path, &old, &now);
		l->out->files += rv == 1;
		if (rv == AVA_ETOOBIG)
			why = "the patch is full";
		if (rv == 1)
			rv = buf_add(&l->out->patch, one.data, one.len);
		buf_fini(&one);
	}
	if (why)
		copy_leave_out(l, path, why);
	free(data[0]);
	free(data[1]);
	return why ? 0 : rv;
}

static bool copy_same_bytes(int a, int b)
{
	char one[STEP / 2], two[STEP / 2];
	off_t at = 0;

	for (;;) {
		ssize_t n = pread(a, one, sizeof(one), at), m = pread(b, two, sizeof(two), at);

		if (n != m || n < 0 || memcmp(one, two, (size_t)n) != 0)
			return false;
		if (n == 0)
			return true;
		at += n;
	}
}

/* Is it the same in both: a file of equal bytes and mode, or a link to the same? */
static bool copy_same(int base_dir, int tree_dir, const char *name)
{
	char target[2][PATH_MAX];
	ssize_t n = readlinkat(base_dir, name, target[0], PATH_MAX);
	struct stat st[2];
	int base, tree;
	bool same;

	if (n >= 0)
		return n == readlinkat(tree_dir, name, target[1], PATH_MAX) &&
		       memcmp(target[0], target[1], (size_t)n) == 0;
	base = root_open_entry(base_dir, name, false);
	tree = root_open_entry(tree_dir, name, false);
	same = base >= 0 && tree >= 0 && fstat(base, &st[0]) == 0 && fstat(tree, &st[1]) == 0 &&
	       S_ISREG(st[1].st_mode) && st[0].st_size == st[1].st_size &&
	       (st[0].st_mode & 0100) == (st[1].st_mode & 0100) && copy_same_bytes(base, tree);
	if (base >= 0)
		close(base);
	if (tree >= 0)
		close(tree);
	return same;
}

/* Take what the tree (as the run left it) has changed or lacks of the base (the project as
 * copied). */
static int look_at_old(void *user, int dirfd, const char *name, const char *path)
{
	struct copy_looking *l = user;
	int dir = place_of(&l->tree, path, false, &name);

	return copy_same(dirfd, dir, name) ? 0 : add_change(l, path);
}

/* Take what is only in the tree. */
static int look_at_new(void *user, int dirfd, const char *name, const char *path)
{
	struct copy_looking *l = user;
	int dir = place_of(&l->base, path, false, &name);
	struct stat st;
	bool file = fstatat(dirfd, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);

	if (file && strncmp(name, BELOW_SPARE, strlen(BELOW_SPARE)) == 0)
		return 0; /* left by a write that a crash cut */
	/* An empty .git is the mount point of the project's own (exec/sandbox.c). */
	if (strcmp(path, ".git") == 0 &&
	    (unlinkat(dirfd, name, AT_REMOVEDIR) == 0 ||
	     (file && st.st_size == 0 && unlinkat(dirfd, name, 0) == 0)))
		return 0;
	if (dir >= 0 && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISDIR(st.st_mode))
		return 0; /* look_at_old has seen it */
	return add_change(l, path);
}

static int look_poll(void *user)
{
	return ++((struct copy_looking *)user)->looked > COPY_LOOK_MAX ? 1 : 0;
}

static int copy_look_through(struct copy_looking *l)
{
	struct root root = {.fd = l->base.root, .cwd = "base"};
	struct walk w = {.root = &root,
			 .start = ".",
			 .file = look_at_old,
			 .other = look_at_old,
			 .poll = look_poll,
			 .user = l};
	int rv = walk_run(&w, l->err);

	root = (struct root){.fd = l->tree.root, .cwd = "tree"};
	w.file = w.other = look_at_new;
	if (rv == 0)
		rv = walk_run(&w, l->err);
	if (rv == 1 || w.deep + w.crowded > 0)
		copy_leave_out(l, ".", "there is more in the copy than is looked through");
	if (w.odd + w.unreadable > 0)
		copy_leave_out(l, ".", "there is more, of names that are no text, or closed");
	return MIN(rv, 0);
}

int copy_changes(const char *folder, struct copy_changes *out, struct ava_error *err)
{
	struct copy_looking l = {.out = out, .err = err};
	char path[PATH_MAX];
	ssize_t n;
	int rv;

	*out = (struct copy_changes){.files = 0};
	buf_init(&out->patch, PATCH_MAX);
	buf_init(&out->left, 1u << 20);
	jw_init(&l.left, &out->left);
	jw_array(&l.left, NULL);
	snprintf(path, sizeof(path), "%s/head", folder);
	n = readlink(path, out->head, COPY_HEAD_MAX);
	out->head[MAX(n, (ssize_t)0)] = '\0';
	snprintf(path, sizeof(path), "%s/base", folder);
	place_init(&l.base, copy_open_folder(path));
	snprintf(path, sizeof(path), "%s/tree", folder);
	place_init(&l.tree, copy_open_folder(path));
	if (l.base.root < 0 && l.tree.root < 0 && errno == ENOENT)
		rv = err_set(err, AVA_ENOENT, "there is no copy of the project");
	else if (l.base.root < 0 || l.tree.root < 0)
		rv = err_set(err, AVA_EIO, "the copy of the project cannot be opened (%s)",
			     strerror(errno));
	else
		rv = copy_look_through(&l);
	jw_end(&l.left);
	if (rv == 0)
		rv = buf_check(&out->left);
	place_fini(&l.base);
	place_fini(&l.tree);
	return rv;
}

void copy_changes_fini(struct copy_changes *c)
{
	buf_fini(&c->patch);
	buf_fini(&c->left);
}

/* Copy `in` beside `name`, and rename the whole copy to it. */
static int write_beside(int dir, const char *name, int in, const struct stat *st)
{
	static const char beside[] = ".ava-put-back";
	int fd, rv = -1, why;

	(void)unlinkat(dir, beside, 0);
	fd = openat(dir, beside, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0 && clone_bytes(in, st->st_size, fd) == 0 && fchmod(fd, st->st_mode & 0777) == 0)
		rv = renameat(dir, beside, dir, name);
	why = errno;
	if (fd >= 0)
		close(fd);
	if (fd >= 0 && rv != 0)
		(void)unlinkat(dir, beside, 0);
	errno = why;
	return rv;
}

int copy_put_back(const char *tree, const char *path, bool large)
{
	char base[PATH_MAX];
	const char *name;
	struct copy_place from, to;
	struct stat st;
	int in = -1, rv = -1, dir;

	snprintf(base, sizeof(base), "%s/../base", tree);
	place_init(&from, copy_open_folder(base));
	place_init(&to, copy_open_folder(tree));
	dir = place_of(&from, path, false, &name);
	if (dir >= 0)
		in = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (in < 0 && (errno == ENOENT || errno == ENOTDIR))
		rv = 1;
	dir = in >= 0 && large ? place_of(&to, path, false, &name) : -1;
	if (dir >= 0 && fstat(in, &st) == 0)
		rv = write_beside(dir, name, in, &st);
	/* A full disk may need the room of the replaced file. */
	if (dir >= 0 && rv < 0 && err_is_full(errno) && unlinkat(dir, name, 0) == 0)
		rv = write_beside(dir, name, in, &st);
	if (in >= 0)
		close(in);
	place_fini(&from);
	place_fini(&to);
	return rv;
}

/* ---- removing: contents of a folder inside are moved up and met again, so that neither depth nor
 * length of paths is a limit */

struct removing {
	int top;
	unsigned moved;
	bool more;
};

/* Empty the folder `fd`, and close it: files are removed, folders removed or moved up. */
static void remove_all_in(struct removing *r, int fd, bool top)
{
	DIR *d = fdopendir(fd);
	struct dirent *e;

	if (!d)
		close(fd);
	while (d && (e = readdir(d)) != NULL) {
		struct stat st;
		char name[40];
		int below;

		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		if (unlinkat(dirfd(d), e->d_name, 0) == 0 ||
		    unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR) == 0)
			continue;
		if (top) {
			if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
			    !S_ISDIR(st.st_mode))
				continue;
			fchmodat(dirfd(d), e->d_name, 0700, 0);
			below = openat(dirfd(d), e->d_name,
				       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
			if (below >= 0)
				remove_all_in(r, below, false);
			if (unlinkat(dirfd(d), e->d_name, AT_REMOVEDIR) == 0)
				r->more = true;
			continue;
		}
		fchmodat(dirfd(d), e->d_name, 0700, 0); /* a folder of any mode can then be moved */
		snprintf(name, sizeof(name), "ava-%u", r->moved++);
		if (renameat(dirfd(d), e->d_name, r->top, name) == 0)
			r->more = true;
	}
	if (d)
		closedir(d);
}

void copy_remove(int at, const char *path)
{
	struct removing r = {.more = true};

	r.top = openat(at, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (r.top < 0)
		return;
	while (r.more) {
		int fd = openat(r.top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		r.more = false;
		if (fd >= 0)
			remove_all_in(&r, fd, true);
	}
	close(r.top);
	(void)unlinkat(at, path, AT_REMOVEDIR);
}
