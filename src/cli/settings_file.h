/* A file of settings that belongs to a person and another program: JSON in which we change one
 * part, or any text. Everything else in it stays as it is and where it is; a copy from before our
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
	char *was;           /* the file's text; NULL: no file yet */
	size_t was_len;
	size_t bom;      /* bytes of the byte order mark of `was`, which the file keeps */
	const char *odd; /* name of our part, if the rest must stay byte for byte */
	mode_t mode;
	bool removes;        /* our part is taken out: no backup, which would still have it */
	json_t *root, *part; /* `part` *borrowed*, NULL: absent */
};

/* Read the file; none yet is no error. `part` names the member that we change; NULL: no JSON.
 * AVA_EINVAL: its program cannot read the file, which stays as it is. settings_file_close in every
 * case. */
int settings_file_open(struct settings_file *f, const char *path, const char *part,
		       struct ava_error *err);
void settings_file_close(struct settings_file *f);
/* Replace the file by a rename, unless it has changed since it was read (AVA_EBUSY). */
int settings_file_write(struct settings_file *f, const char *text, size_t len,
			struct ava_error *err);
/* settings_file_write of `root` as JSON, with two blanks a level. */
int settings_file_save(struct settings_file *f, struct ava_error *err);

/* The path of this program for settings that outlive it: of ava in $PATH if that is this very file,
 * so that an upgrade which changes where a link leads is found; else where the file is. */
int settings_file_program(char out[PATH_MAX], struct ava_error *err);

#endif
