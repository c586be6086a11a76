/* A plan of failing calls; memdisk_fault.h. It counts the calls of one kind
 * and says which of them fail. Nothing can fail here; the disk's lock is held
 * by the caller. */
#include "memdisk_fault.h"

const char *const memdisk_call_names[MEMDISK_CALLS] = {
	[MEMDISK_OPEN] = "open",         [MEMDISK_PREAD] = "read",
	[MEMDISK_PWRITE] = "write",      [MEMDISK_FSYNC] = "fsync",
	[MEMDISK_SYNCFS] = "syncfs",     [MEMDISK_TRUNCATE] = "truncate",
	[MEMDISK_ALLOCATE] = "allocate", [MEMDISK_STAT] = "stat",
	[MEMDISK_RENAME] = "rename",     [MEMDISK_UNLINK] = "unlink",
	[MEMDISK_MKDIR] = "mkdir",       [MEMDISK_FLOCK] = "flock",
	[MEMDISK_LIST] = "list",         [MEMDISK_WRITE_RANGE] = "write_range",
};

int memdisk_plan_next(struct memdisk_plan *p, enum memdisk_call call)
{
	long at;

	if (p->times == 0 || p->call != call)
		return 0;
	at = p->seen++;
	if (at < p->k || at - p->k >= p->times)
		return 0;
	p->hits++;
	return p->error;
}
