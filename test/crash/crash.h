/* What the crash tests share: cmocka, a journal on a disk in memory, commits
 * in one line. */
#ifndef CRASH_CRASH_H
#define CRASH_CRASH_H

#include "unit.h"

#include <ava.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "journal/journal.h"
#include "memdisk.h"

struct rig {
	struct memdisk *d;
	struct journal *j;
	struct journal_options o;
	struct journal_recovery rec;
	unsigned answered;
	int last_rv;
};

static inline void rig_init(struct rig *r)
{
	*r = (struct rig){.d = memdisk_new()};
	r->o = (struct journal_options){.root = "/", .segment_bytes = 64 << 10};
	memdisk_use(r->d);
}

static inline void rig_open(struct rig *r)
{
	struct ava_error err = {0};
	int rv = journal_open(&r->j, &r->o, &r->rec, &err);

	if (rv != 0)
		print_message("journal_open: %d %s\n", rv, err.text);
	assert_int_equal(rv, 0);
}

/* Spare segments are ready, so that a short log stays in the first one. */
static inline void rig_settle(struct rig *r)
{
	size_t len;

	while (memdisk_read(r->d, "/wal/0000000000000002.seg", &len) == NULL)
		usleep(500);
}

static inline void rig_close(struct rig *r)
{
	journal_close(r->j);
	r->j = NULL;
}

static inline void rig_fini(struct rig *r)
{
	rig_close(r);
	memdisk_use(NULL);
	memdisk_free(r->d);
}

/* kill -9: what the disk looks like now is all that is left. Nothing of the
 * old process writes to it any more. */
static inline void rig_crash(struct rig *r)
{
	struct memdisk *left = memdisk_clone(r->d);

	rig_close(r);
	memdisk_free(r->d);
	r->d = left;
	memdisk_use(left);
}

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

	op.id = kind == JOURNAL_ENTRY ? "e1" : NULL;
	return journal_commit(r->j, &op, 1, JOURNAL_NOW, rig_done, r);
}

static inline void rig_wait(struct rig *r, unsigned answers)
{
	while (r->answered < answers) {
		journal_drain(r->j);
		usleep(100);
	}
}

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

static inline bool rig_has(struct rig *r, const char *path)
{
	size_t len;

	return memdisk_read(r->d, path, &len) != NULL;
}

static inline void rig_holds(struct rig *r, const char *path, const char *text)
{
	size_t len;
	const char *got = memdisk_read(r->d, path, &len);

	if (got == NULL)
		fail_msg("%s is not there", path);
	assert_string_equal(got, text);
	assert_int_equal(len, strlen(text));
}

/* Pseudo-random numbers for memdisk_power_cut; user is the uint64_t state. */
static inline uint32_t crash_pick(uint32_t below, void *user)
{
	uint64_t *s = user;

	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return (uint32_t)((*s >> 16) % below);
}

#endif
