/* Patches in git's form: the difference between two states of text files, made, read back, and
 * tried on a third state. Pure: bytes in, bytes out; callers open the files (base/below.h).
 *
 * A patch is tried on a file's present state. By the ids of git's blobs in the patch, an
 * unchanged file takes it for certain, and one with the new content has it already. Any other
 * file takes it when the lines around each change are in their old place, or at exactly one
 * place: otherwise it is a clash, and nothing of that file is changed. */
#ifndef CODEC_PATCH_H
#define CODEC_PATCH_H

#include <stdbool.h>
#include <stddef.h>

struct ava_error;
struct buf;

#define PATCH_MAX       (8u << 20) /* most bytes of a patch */
#define PATCH_FILE_MAX  (5u << 20) /* most bytes of a file in a patch */
#define PATCH_LINES_MAX 200000     /* most lines of a file in a patch */
#define PATCH_FILES_MAX 5000
#define PATCH_ID_LEN    40

/* A file in one of its states. */
struct patch_side {
	const char *data;
	size_t len;
	bool there, exec; /* `there`: the file exists; else all fields are 0 */
};

/* Why no patch can hold the file: not text, or over the bounds above. NULL: it can. */
const char *patch_unfit(const char *data, size_t len);
/* Is it a relative path without ".", "..", empty parts and characters that a patch cannot name? */
bool patch_path_ok(const char *path);
/* The name (static) in a list of files that `path` matches, or NULL. They control programs of the
 * person when these next run in that folder (hooks, settings of editors, shells and agents, files
 * loaded into environments): never written, at any depth. */
const char *patch_protected(const char *path);
/* Is it a file that programs and agents obey where they find it, though a project may well have it:
 * a dot file, a file in a dot folder, instructions for agents? */
bool patch_obeyed(const char *path);

/* Append the patch from `old` to `now`. 1: done, 0: no difference, or AVA_ENOMEM, AVA_ETOOBIG.
 * Both are text. */
int patch_add(struct buf *out, const char *path, const struct patch_side *old,
	      const struct patch_side *now);

struct patch_file {
	const char *path;
	bool is_new, is_gone;       /* the file is new, or removed; neither: it changes */
	bool exec, chmod;           /* executable in the new state; whether that changes */
	char was[PATCH_ID_LEN + 1]; /* git's id of the old state, and of the new one */
	char will[PATCH_ID_LEN + 1];
	const char *hunks, *end; /* the file's hunks: beginning and end in patch.text */
	size_t added, removed;   /* numbers of lines */
};

struct patch {
	char *text; /* owned; each path in it ends with a NUL */
	struct patch_file *files;
	size_t n, cap;
};

/* `text` is copied. AVA_ECORRUPT names the line that patch_add would not write. */
int patch_read(struct patch *p, const char *text, size_t len, struct ava_error *err);
void patch_fini(struct patch *p);

enum patch_fit {
	PATCH_FITS,    /* `out` is the new content; empty for a removed file */
	PATCH_DONE,    /* the file has the new content already */
	PATCH_CLASHES, /* `why` says where */
};
struct patch_clash {
	size_t hunk, line; /* from 1; 0: the file as a whole */
	const char *what;  /* static: "is not there" */
};
/* A value of patch_fit, or AVA_ENOMEM. */
int patch_try(const struct patch_file *f, const struct patch_side *now, struct buf *out,
	      struct patch_clash *why);

#endif
