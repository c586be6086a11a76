/* What the crash tests share: cmocka, a journal on a disk in memory, commits
 * in one line. */
#ifndef CRASH_CRASH_H
#define CRASH_CRASH_H

#include "journal_rig.h"

#include <errno.h>

#include "base/util.h"
#include "memdisk.h"

static inline void rig_init(struct rig *r)
{
	*r = (struct rig){.d = memdisk_new(), .entry_id = "e1"};
	r->o = (struct journal_options){.root = "/", .segment_bytes = 64 << 10};
	memdisk_use(r->d);
}

/* Spare segments are ready, so that a short log stays in the first one. */
static inline void rig_settle(struct rig *r)
{
	size_t len;

	while (memdisk_read(r->d, "/wal/0000000000000002.seg", &len) == NULL)
		usleep(500);
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

static inline void rig_wait(struct rig *r, unsigned answers)
{
	while (r->answered < answers) {
		journal_drain(r->j);
		usleep(100);
	}
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
