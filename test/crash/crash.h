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

/* On a new disk. */
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

/* Power is lost, with all that was not synced, and the next process starts. */
static inline void rig_lose_power(struct rig *r)
{
	rig_crash(r);
	memdisk_power_cut(r->d, memdisk_none, NULL);
	rig_open(r);
}

/* There is no room for spare segments: those from `first` on go. */
static inline void rig_no_spares(struct rig *r, unsigned first)
{
	char path[64];

	for (unsigned seq = first; seq < 8; seq++) {
		snprintf(path, sizeof(path), "/wal/%016x.seg", seq);
		memdisk_remove(r->d, path);
	}
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

/* 30 logs of a line each: more than are synced one by one. */
static inline void rig_append_many(struct rig *r)
{
	char path[16];

	for (int i = 0; i < 30; i++) {
		snprintf(path, sizeof(path), "v%d.jsonl", i);
		rig_append(r, path, "x\n");
	}
}

/* A line of this many bytes with its end, in memory of its own. */
static inline const char *rig_line(size_t len)
{
	static char line[(2 << 20) + 1];

	assert_true(len < sizeof(line));
	memset(line, 'x', len);
	line[len - 1] = '\n';
	line[len] = '\0';
	return line;
}

/* What an environment variable says, or the usual. */
static inline uint64_t crash_env(const char *name, uint64_t usual)
{
	const char *text = getenv(name);

	return text != NULL ? strtoull(text, NULL, 10) : usual;
}

#endif
