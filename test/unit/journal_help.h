/* What the tests of the journal share: one in a directory of its own, commits
 * in one line, whole files compared. */
#ifndef UNIT_JOURNAL_HELP_H
#define UNIT_JOURNAL_HELP_H

#include "unit.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ava.h>

#include "journal/journal.h"

struct rig {
	char root[256];
	struct journal_options o;
	struct journal *j;
	struct journal_recovery rec;
	unsigned answered;
	int last_rv; /* of the newest answer */
};

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

static inline void rig_open(struct rig *r)
{
	struct ava_error err = {0};
	int rv = journal_open(&r->j, &r->o, &r->rec, &err);

	if (rv != 0)
		print_message("journal_open: %d %s\n", rv, err.text);
	assert_int_equal(rv, 0);
}

static inline void rig_close(struct rig *r)
{
	journal_close(r->j);
	r->j = NULL;
}

static inline void rig_fini(struct rig *r)
{
	rig_close(r);
	unit_rmdir(r->root);
}

/* In a new directory. */
static inline void rig_again(struct rig *r)
{
	rig_fini(r);
	rig_init(r);
}

/* RIG_OF_FILE; `rig` is made before each test and gone behind it. */
#define RIG_OF_FILE                                                                                \
	static struct rig rig;                                                                     \
	static int rig_before(void **state)                                                        \
	{                                                                                          \
		rig_init(&rig);                                                                    \
		return 0;                                                                          \
	}                                                                                          \
	static int rig_after(void **state)                                                         \
	{                                                                                          \
		rig_fini(&rig);                                                                    \
		return 0;                                                                          \
	}                                                                                          \
	UNIT_GROUP(.before = rig_before, .after = rig_after)

static inline void rig_done(int rv, void *user)
{
	struct rig *r = user;

	r->answered++;
	r->last_rv = rv;
}

static inline int rig_put(struct rig *r, enum journal_op_kind kind, const char *path,
			  const char *text)
{
	struct journal_op op = {.kind = kind, .path = path, .bytes = text, .len = strlen(text)};

	return journal_commit(r->j, &op, 1, JOURNAL_NOW, rig_done, r);
}

/* Committed and answered with `want`. */
static inline void rig_do(struct rig *r, enum journal_op_kind kind, const char *path,
			  const char *text, int want)
{
	unsigned before = r->answered;

	assert_int_equal(rig_put(r, kind, path, text), 0);
	while (r->answered == before)
		journal_sync(r->j);
	assert_int_equal(r->last_rv, want);
}

static inline void rig_append(struct rig *r, const char *path, const char *text)
{
	rig_do(r, JOURNAL_APPEND, path, text, 0);
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
