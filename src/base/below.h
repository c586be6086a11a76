/* Changing files below a folder: no part of a path is a link that is followed, not even one put
 * there meanwhile, so nothing outside is reached. Blocking; any thread.
 *
 * Each part is opened in the folder of the part before, and only when it is no link: the effect
 * of openat2 with RESOLVE_BENEATH and RESOLVE_NO_SYMLINKS, on kernels without it too, and
 * folders can be made on the way. */
#ifndef BASE_BELOW_H
#define BASE_BELOW_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

struct ava_error;

/* Open the folder of `path`; *name is its last part, in `path`. With `make` missing folders are
 * made (0777 less the umask). -1 and errno: ELOOP a link, ENOTDIR, EINVAL a path with "..", "."
 * or an empty part. */
int below_open_parent(int root_fd, const char *path, bool make, const char **name);

/* Read a whole regular file; *data is owned (free). AVA_ENOENT; AVA_EDENIED: a link, or no regular
 * file; AVA_ETOOBIG; the sentences name `path`. */
int below_read(int root_fd, const char *path, size_t max, char **data, size_t *len, struct stat *st,
	       struct ava_error *err);

/* Prefix of spare names: a crash may leave such a file. */
#define BELOW_SPARE ".ava-spare"

/* Write a file beside `path` named `spare` (replaced if it is there) with `mode`, on disk when
 * this returns: below_rename then puts it in its place at once. */
int below_write(int root_fd, const char *path, const char *spare, const char *data, size_t len,
		mode_t mode, struct ava_error *err);
int below_rename(int root_fd, const char *path, const char *spare, struct ava_error *err);
/* Remove the folders of `path`, from the last one on, as far as they are empty. */
void below_remove_empty(int root_fd, const char *path);
/* Remove `path` with its last part replaced by `spare` (NULL: itself); a missing file is fine. */
int below_remove(int root_fd, const char *path, const char *spare, struct ava_error *err);

#endif
