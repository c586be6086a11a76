/* A disk in memory behind base/sys.h: folders, inodes, names, and what of it
 * is durable. It can be copied in no time, loses power, and fails on demand,
 * so that every crash can be enumerated. Paths are absolute: the root is "/".
 *
 * Model of a power cut: of a file, the pages written since its last sync are
 * each there or not; of a folder, its changes since its last sync are there up
 * to some point. What was synced is there. */
#ifndef CRASH_MEMDISK_H
#define CRASH_MEMDISK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sys.h"
#include "memdisk_fault.h"
#include "memdisk_node.h"

struct memdisk;

extern const struct sys_ops memdisk_ops;

struct memdisk *memdisk_new(void);
struct memdisk *memdisk_clone(const struct memdisk *d); /* no open files */
void memdisk_free(struct memdisk *d);
/* `before` is called before each call that changes or syncs something, with
 * the disk locked: it may take a snapshot, and nothing else. NULL ends it. */
void memdisk_watch(struct memdisk *d, void (*before)(struct memdisk *d, void *user), void *user);
struct memdisk *memdisk_snapshot(const struct memdisk *d);
/* Put it behind `sys`; NULL: the real disk again. */
void memdisk_use(struct memdisk *d);

/* The process is gone: its descriptors and locks. What it wrote stays. */
void memdisk_kill(struct memdisk *d);
/* Power is lost: `pick` returns a number below its argument each time there is
 * something to be chosen. memdisk_none and memdisk_all lose all or nothing of
 * what was not synced. */
void memdisk_power_cut(struct memdisk *d, uint32_t (*pick)(uint32_t below, void *user), void *user);
/* The same under other rules of what may be lost; memdisk_node.h. */
void memdisk_power_cut_as(struct memdisk *d, enum memdisk_order order,
			  uint32_t (*pick)(uint32_t below, void *user), void *user);
uint32_t memdisk_none(uint32_t below, void *user);
uint32_t memdisk_all(uint32_t below, void *user);

enum memdisk_fault {
	MEMDISK_ONCE,    /* one call fails */
	MEMDISK_FOREVER, /* that one and all after it */
};
/* The k-th call that changes or syncs something (0: the next) fails with
 * `error` and does nothing. */
void memdisk_fail(struct memdisk *d, long k, enum memdisk_fault how, int error);
/* Only such calls, on files whose name contains `part`, count and fail. */
enum memdisk_what { MEMDISK_ANY, MEMDISK_WRITES, MEMDISK_SYNCS };
void memdisk_fail_name(struct memdisk *d, const char *part, enum memdisk_what what);
/* Ends it; true when a call failed. */
bool memdisk_fail_end(struct memdisk *d);
/* Calls of one kind fail as planned, until memdisk_plan_end, which returns what
 * became of the plan. */
void memdisk_plan(struct memdisk *d, const struct memdisk_plan *plan);
struct memdisk_plan memdisk_plan_end(struct memdisk *d);
/* Bytes that files may hold altogether; then ENOSPC. SIZE_MAX: no limit. */
void memdisk_limit(struct memdisk *d, size_t bytes);
size_t memdisk_used(const struct memdisk *d);
uint64_t memdisk_calls(const struct memdisk *d); /* that changed or synced */

/* From outside, as a person would. Content is borrowed until the next write;
 * NULL when there is no such file. */
const char *memdisk_read(struct memdisk *d, const char *path, size_t *len);
void memdisk_write(struct memdisk *d, const char *path, const void *bytes, size_t len);
void memdisk_poke(struct memdisk *d, const char *path, size_t at, unsigned char flip);
void memdisk_cut(struct memdisk *d, const char *path, size_t len);
void memdisk_remove(struct memdisk *d, const char *path); /* folders with all in them */
/* Calls `name` for every file below, with its path. */
void memdisk_walk(struct memdisk *d,
		  void (*file)(const char *path, const char *bytes, size_t len, void *user),
		  void *user);

#endif
