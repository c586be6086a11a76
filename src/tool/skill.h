/* The folder of a skill: SKILL.md, which says what to do, and files beside it (doc/SKILLS.md).
 *
 * One hash stands for all of it: paths, bytes, and which files may be executed. A person confirms
 * that hash, and whoever opens the folder later compares: what was confirmed is what is read and
 * what runs. Links, entries that are no plain file, and names that begin with a dot are no part of
 * it. Any thread. */
#ifndef TOOL_SKILL_H
#define TOOL_SKILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"

struct ava_error;

#define SKILL_FILE      "SKILL.md"   /* in any case */
#define SKILL_FILES_MAX 512u         /* files of a skill */
#define SKILL_BYTES_MAX (8u << 20)   /* bytes of all its files */
#define SKILL_TEXT_MAX  (256u << 10) /* bytes of SKILL.md, and of another file that is read */

struct skill_file {
	char *path; /* below the folder; owned */
	char *data; /* owned, NUL-terminated */
	size_t len;
	bool runs; /* may be executed */
};

struct skill_files {
	struct skill_file *items; /* in the order of their paths */
	size_t n, cap;
	int64_t bytes;
	unsigned left; /* entries that are no part of it, but for dot names */
	char hash[HASH_HEX_LEN + 1];
};

/* Read all of a folder. AVA_ENOENT, AVA_ETOOBIG, AVA_EIO, AVA_ENOMEM; on error nothing is kept. */
int skill_load(const char *folder, struct skill_files *out, struct ava_error *err);
void skill_files_fini(struct skill_files *f);
/* The file of this path; "" for SKILL_FILE. NULL: none. */
const struct skill_file *skill_file_of(const struct skill_files *f, const char *path);

/* A number that changes when a file of the folder does, or the file at `path`, from what the kernel
 * says of each.
 * *settled: the newest change is so old that another one gets another time. As skill_load. */
int skill_stamp(const char *path, uint64_t *stamp, bool *settled, struct ava_error *err);

#endif
