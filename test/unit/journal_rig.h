/* A journal that a test opens again and again, on a disk of one kind or another: commits in
 * one line. Who includes it says how a rig is made and ends, and how an answer is awaited. */
#ifndef UNIT_JOURNAL_RIG_H
#define UNIT_JOURNAL_RIG_H

#include "unit.h"

#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "journal/journal.h"

struct memdisk;

struct rig {
	char root[256];    /* a directory, or */
	struct memdisk *d; /* a disk in memory (crash.h) */
	struct journal_options o;
	struct journal *j;
	struct journal_recovery rec;
	const char *entry_id;
	unsigned answered;
	int last_rv; /* of the newest answer */
};

static inline void rig_init(struct rig *r);
static inline void rig_fini(struct rig *r);
static inline void rig_wait(struct rig *r, unsigned answers);

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

/* In a new directory, or on a new disk. */
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

	op.id = kind == JOURNAL_ENTRY ? r->entry_id : NULL;
	return journal_commit(r->j, &op, 1, JOURNAL_NOW, rig_done, r);
}

/* Committed and answered with `want`. */
static inline void rig_do(struct rig *r, enum journal_op_kind kind, const char *path,
			  const char *text, int want)
{
	unsigned before = r->answered;

	assert_int_equal(rig_put(r, kind, path, text), 0);
	rig_wait(r, before + 1);
	assert_int_equal(r->last_rv, want);
}

static inline void rig_append(struct rig *r, const char *path, const char *text)
{
	rig_do(r, JOURNAL_APPEND, path, text, 0);
}

#endif
