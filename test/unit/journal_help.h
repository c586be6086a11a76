/* What the tests of the journal share: one in a directory of its own, commits
 * in one line, whole files compared. */
#ifndef UNIT_JOURNAL_HELP_H
#define UNIT_JOURNAL_HELP_H

#include "journal_rig.h"

#include <dirent.h>
#include <sys/stat.h>

static inline void rig_init(struct rig *r)
{
	*r = (struct rig){0};
	snprintf(r->root, sizeof(r->root), "%s", unit_tmpdir());
	r->o = (struct journal_options){
		.root = r->root,
		.pace_us = 500,
		.segment_bytes = 256 << 10,
		.checkpoint_bytes = 64 << 20,
	};
}

static inline void rig_fini(struct rig *r)
{
	rig_close(r);
	unit_rmdir(r->root);
}

static inline void rig_wait(struct rig *r, unsigned answers)
{
	while (r->answered < answers)
		journal_sync(r->j);
}

static inline const char *rig_path(const struct rig *r, const char *path)
{
	static char full[600];

	snprintf(full, sizeof(full), "%s/%s", r->root, path);
	return full;
}

static inline bool rig_exists(const struct rig *r, const char *path)
{
	return access(rig_path(r, path), F_OK) == 0;
}

/* How many files of the journal have `part` in their names. */
static inline unsigned rig_wal_files(const struct rig *r, const char *part)
{
	DIR *dir = opendir(rig_path(r, "wal"));
	struct dirent *e;
	unsigned n = 0;

	assert_non_null(dir);
	while ((e = readdir(dir)) != NULL)
		n += strstr(e->d_name, part) != NULL;
	closedir(dir);
	return n;
}

/* The file holds exactly `text`. */
static inline void rig_holds(const struct rig *r, const char *path, const char *text)
{
	size_t len;
	char *got = unit_read(rig_path(r, path), &len);

	assert_string_equal(got, text);
	assert_int_equal(len, strlen(text));
	free(got);
}

#endif
