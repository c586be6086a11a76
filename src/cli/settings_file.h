/* A file of settings that belongs to a person and another program: JSON in which we change one
 * part, or any text. Everything else in it stays as it is and where it is; what it was before our
 * first change is kept beside it as NAME.before-ava, and never written again. */
#ifndef CLI_SETTINGS_FILE_H
#define CLI_SETTINGS_FILE_H

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct ava_error;

#define SETTINGS_FILE_MAX (8u << 20)

struct settings_file {
	char path[PATH_MAX]; /* links resolved */
	char *was;           /* NULL: there is none yet */
	size_t was_len;
	size_t bom;      /* of it, bytes: what had one keeps it */
	const char *odd; /* the part that we change, where the rest has to stay byte for byte */
	mode_t mode;
	bool removes; /* our part goes: what is there is not what it was before us, and not kept */
	json_t *root, *part; /* `part` *borrowed*, NULL: it is not there */
};

/* What is there, or nothing. `part` names the member that we change; NULL: it is no JSON.
 * AVA_EINVAL: it is not what its program reads, and is left as it is. settings_file_close in
 * every case. */
int settings_file_open(struct settings_file *f, const char *path, const char *part,
		       struct ava_error *err);
void settings_file_close(struct settings_file *f);
/* In its place by a rename, unless it is not what was read any more (AVA_EBUSY). */
int settings_file_write(struct settings_file *f, const char *text, size_t len,
			struct ava_error *err);
/* The same of `root`, two blanks a level. */
int settings_file_save(struct settings_file *f, struct ava_error *err);

#endif
