/* Everything is tried first: each file is read below the folder without following a link, and the
 * patch is tried on it. One clash, and nothing at all is written. To write, all new contents are
 * laid beside their files and are on disk, the files are looked at once more, and only then come
 * the renames, one after the other. After a kill in between, do it again: a file that has its
 * new content already is left alone.
 *
 * What can fail: a folder that is gone or another user's, files that changed, the disk; each with
 * the name of the file. */
#include "tool/apply.h"

#include <ava.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"

void apply_fini(struct applying *a)
{
	for (size_t i = 0; a->targets && i < a->patch.n; i++) {
		free(a->targets[i].data);
		free(a->targets[i].why);
	}
	free(a->targets);
	patch_fini(&a->patch);
	if (a->fd >= 0)
		close(a->fd);
	if (a->lock >= 0)
		close(a->lock);
}

/* ---- what is to be done */

/* The folder must be the one that was confirmed, and the person's own. */
static int apply_open_folder(struct applying *a, struct ava_error *err)
{
	char link[40], real[PATH_MAX];
	struct stat st;
	ssize_t n;

	a->fd = a->cwd[0] == '/' ? open(a->cwd, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (a->fd < 0)
		return err_set(err, AVA_ENOENT,
			       "the folder %.300s, in which %s worked, cannot be opened (%s)",
			       a->cwd, a->run,
			       a->cwd[0] == '/' ? strerror(errno) : "it has no path");
	snprintf(link, sizeof(link), "/proc/self/fd/%d", a->fd);
	n = readlink(link, real, sizeof(real) - 1);
	if (n < 0 || fstat(a->fd, &st) != 0)
		return err_sys(err, "%.300s", a->cwd);
	real[n] = '\0';
	if (strcmp(real, a->cwd) != 0)
		return err_set(
			err, AVA_EDENIED,
			"the folder %.200s is reached through a link by now (%.200s): nothing "
			"is written there",
			a->cwd, real);
	if (st.st_uid != geteuid())
		return err_set(err, AVA_EDENIED,
			       "the folder %.300s belongs to another user (uid %u, you are %u): "
			       "nothing is written there",
			       a->cwd, (unsigned)st.st_uid, (unsigned)geteuid());
	if (faccessat(a->fd, ".", W_OK, AT_EACCESS) != 0)
		return err_set(err, AVA_EDENIED, "the folder %.300s is not writable", a->cwd);
	return 0;
}

/* Is a folder that `path` is in a file? Then nothing can be written there. */
static bool below_a_file(const struct applying *a, const char *path)
{
	const char *name;
	int dir = below_open_parent(a->fd, path, false, &name);

	if (dir >= 0)
		close(dir);
	return dir < 0 && errno == ENOTDIR;
}

bool apply_named(const struct applying *a, const char *path)
{
	for (size_t i = 0; i < a->nalso; i++)
		if (strcmp(a->also[i], path) == 0)
			return true;
	return false;
}

/* Try one file; what stops only it is a clash. */
static int try_one(struct applying *a, struct apply_target *t, struct ava_error *err)
{
	struct ava_error own = {0};
	struct patch_side now = {0};
	struct buf out;
	char *data = NULL;
	int rv = below_read(a->fd, t->f->path, 2 * PATCH_FILE_MAX, &data, &now.len, &t->was, &own);
	int fit = PATCH_CLASHES;

	buf_init(&out, 2 * PATCH_FILE_MAX);
	t->there = now.there = rv == 0;
	if (rv == 0) {
		now.data = data;
		now.exec = t->was.st_mode & 0100;
	} else {
		now.len = 0;
	}
	if (patch_protected(t->f->path))
		t->clash.what = "is protected: no patch changes it";
	else if (rv == AVA_ENOENT && !t->f->is_gone && below_a_file(a, t->f->path))
		t->clash.what = "cannot be written: a folder of its path is a file";
	else if (rv == 0 || rv == AVA_ENOENT)
		fit = patch_try(t->f, &now, &out, &t->clash);
	else
		t->why = strdup(own.text);
	free(data);
	if (fit == PATCH_FITS)
		t->data = buf_take(&out, &t->len);
	buf_fini(&out);
	if (fit < 0 || (fit == PATCH_FITS && !t->data))
		return err_set(err, AVA_ENOMEM, "out of memory");
	t->fit = (enum patch_fit)fit;
	t->obeyed = fit == PATCH_FITS && patch_obeyed(t->f->path) && !apply_named(a, t->f->path);
	a->obeyed += t->obeyed;
	a->fit += fit == PATCH_FITS && !t->obeyed;
	a->there += fit == PATCH_DONE;
	a->clashes += fit == PATCH_CLASHES;
	return 0;
}

int apply_plan(struct applying *a, const char *text, size_t len, struct ava_error *err)
{
	int rv = apply_open_folder(a, err);

	if (rv == 0)
		rv = patch_read(&a->patch, text, len, err);
	if (rv != 0)
		return rv;
	a->targets = calloc(a->patch.n + 1, sizeof(*a->targets));
	if (!a->targets)
		return err_set(err, AVA_ENOMEM, "out of memory");
	for (size_t i = 0; rv == 0 && i < a->patch.n; i++) {
		a->targets[i].f = &a->patch.files[i];
		snprintf(a->targets[i].spare, sizeof(a->targets[i].spare), BELOW_SPARE "-%s-%zu",
			 a->run, i);
		rv = try_one(a, &a->targets[i], err);
	}
	for (size_t i = 0; rv == 0 && i < a->nalso; i++) {
		bool found = false;

		for (size_t k = 0; k < a->patch.n; k++)
			found |= strcmp(a->patch.files[k].path, a->also[i]) == 0;
		if (!found)
			rv = err_set(err, AVA_EINVAL, "--also %.300s: %s changes no such file",
				     a->also[i], a->run);
	}
	return rv;
}

/* ---- doing it */

static bool is_written(const struct apply_target *t)
{
	return t->fit == PATCH_FITS && !t->obeyed;
}

static mode_t apply_mode_of(const struct applying *a, const struct apply_target *t)
{
	mode_t mode = t->was.st_mode & 0777;

	if (!t->there)
		return (t->f->exec ? 0777 : 0666) & ~a->mask;
	if (!t->f->chmod)
		return mode;
	return t->f->exec ? mode | (mode & 0444) >> 2 : mode & ~(mode_t)0111;
}

/* Is it still the file that the patch was tried on? */
static bool still(const struct applying *a, const struct apply_target *t)
{
	const char *name;
	int dir = below_open_parent(a->fd, t->f->path, false, &name);
	struct stat st;
	bool there = dir >= 0 && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;

	if (dir >= 0)
		close(dir);
	if (!there || !t->there)
		return there == t->there;
	return st.st_ino == t->was.st_ino && st.st_size == t->was.st_size &&
	       st.st_mtim.tv_sec == t->was.st_mtim.tv_sec &&
	       st.st_mtim.tv_nsec == t->was.st_mtim.tv_nsec &&
	       st.st_ctim.tv_sec == t->was.st_ctim.tv_sec &&
	       st.st_ctim.tv_nsec == t->was.st_ctim.tv_nsec;
}

/* The new contents beside their files, on disk. */
static int write_spares(struct applying *a, struct ava_error *err)
{
	int rv = 0;

	for (size_t i = 0; rv == 0 && i < a->patch.n; i++) {
		struct apply_target *t = &a->targets[i];

		if (is_written(t) && !t->f->is_gone)
			rv = below_write(a->fd, t->f->path, t->spare, t->data, t->len,
					 apply_mode_of(a, t), err);
	}
	for (size_t i = 0; rv == 0 && i < a->patch.n; i++)
		if (is_written(&a->targets[i]) && !still(a, &a->targets[i]))
			rv = err_set(err, AVA_EBUSY, "%.300s was changed just now: ask again",
				     a->targets[i].f->path);
	return rv;
}

static int put_all(struct applying *a, struct ava_error *err)
{
	size_t done = 0;
	int rv = 0;

	for (int gone = 0; gone < 2; gone++) { /* first changes, then removals */
		for (size_t i = 0; rv == 0 && i < a->patch.n; i++) {
			const struct apply_target *t = &a->targets[i];

			if (!is_written(t) || t->f->is_gone != gone)
				continue;
			rv = gone ? below_remove(a->fd, t->f->path, NULL, err)
				  : below_rename(a->fd, t->f->path, t->spare, err);
			if (rv == 0 && gone)
				below_remove_empty(a->fd, t->f->path); /* git does, too */
			done += rv == 0;
		}
	}
	if (rv == 0 && syncfs(a->fd) != 0)
		rv = err_sys(err, "%.300s", a->cwd);
	if (rv != 0 && done > 0)
		return err_wrap(err, rv, "%zu of %zu files are written, ask again for the rest",
				done, a->fit);
	return rv;
}

/* The lock is on the run's own folder: any user who may read the project's could hold a lock there
 * for ever. */
int apply_lock(struct applying *a, const char *root, bool wait, struct ava_error *err)
{
	char path[PATH_MAX + 40];

	snprintf(path, sizeof(path), "%s/runs/%.30s", root, a->run);
	if (a->lock < 0)
		a->lock = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (a->lock >= 0 && flock(a->lock, LOCK_EX | (wait ? 0 : LOCK_NB)) == 0)
		return 0;
	if (a->lock >= 0 && errno == EWOULDBLOCK)
		return err_set(err, AVA_EBUSY, "another `ava apply %s` is at work", a->run);
	return err_sys(err, "lock %.300s", path);
}

int apply_write(struct applying *a, struct ava_error *err)
{
	int rv = write_spares(a, err);

	if (rv == 0)
		rv = put_all(a, err);
	/* Spares of a killed process go, too. */
	for (size_t i = 0; i < a->patch.n; i++)
		(void)below_remove(a->fd, a->targets[i].f->path, a->targets[i].spare, NULL);
	return rv;
}

const char *apply_state(const struct apply_target *t)
{
	return t->obeyed              ? "obeyed"
	       : t->fit == PATCH_FITS ? "fits"
	       : t->fit == PATCH_DONE ? "there"
				      : "clashes";
}
