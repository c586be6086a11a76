/* Patches in git's form: what differs between two states of files of text, made, read
 * back, and tried on a third state. Pure: bytes in, bytes out; whoever has the files
 * opens them (base/below.h).
 *
 * A patch is tried on a file as it is now. By the ids of git's blobs that it names, a file
 * that is as it was takes it for certain, and one that is as it shall be has it already.
 * Any other file takes it when the lines around each change stand where they stood, or at
 * exactly one place: else it is a clash, and nothing of that file is changed. */
#ifndef CODEC_PATCH_H
#define CODEC_PATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ava_error;
struct buf;

#define PATCH_MAX       (8u << 20) /* bytes of a patch */
#define PATCH_FILE_MAX  (5u << 20) /* bytes of a file in it */
#define PATCH_LINES_MAX 200000     /* lines of a file in it */
#define PATCH_FILES_MAX 5000
#define PATCH_ID_LEN    40

/* A file in one of its states. */
struct patch_side {
	const char *data;
	size_t len;
	bool there, exec; /* not there: all else is 0 */
};

/* Why no patch can hold it: no text, or more than the bounds above. NULL: it can. */
const char *patch_unfit(const char *data, size_t len);
/* A relative path without ".", "..", empty parts and characters that a patch cannot name. */
bool patch_path_ok(const char *path);
/* Files that decide what programs of the person do when they are next in that folder (hooks,
 * settings of editors, shells and agents, what is loaded into environments): never written,
 * at any depth. The name that `path` has among them (static), or NULL. */
const char *patch_protected(const char *path);
/* Files that programs and agents obey where they find them, though a project may well have them:
 * all that begins with a dot or lies in a folder that does, and what instructs agents. */
bool patch_obeyed(const char *path);

/* Append how `path` comes from `old` to `now`. 1: it does, 0: nothing differs, or
 * AVA_ENOMEM, AVA_ETOOBIG. Both are text. */
int patch_add(struct buf *out, const char *path, const struct patch_side *old,
	      const struct patch_side *now);

struct patch_file {
	const char *path;
	bool is_new, is_gone;       /* else it changes */
	bool exec, chmod;           /* as it shall be; whether that changes */
	char was[PATCH_ID_LEN + 1]; /* git's ids of both states */
	char will[PATCH_ID_LEN + 1];
	const char *hunks, *end; /* in the text */
	size_t added, removed;   /* lines */
};

struct patch {
	char *text; /* owned; paths end in it */
	struct patch_file *files;
	size_t n, cap;
};

/* `text` is copied. AVA_ECORRUPT names the line that is none of a patch of ours. */
int patch_read(struct patch *p, const char *text, size_t len, struct ava_error *err);
void patch_fini(struct patch *p);

enum patch_fit {
	PATCH_FITS,    /* `out` is the file as it shall be; of one that goes, nothing */
	PATCH_DONE,    /* it is as it shall be */
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
