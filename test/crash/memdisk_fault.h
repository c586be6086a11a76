/* Which call to a disk in memory fails, and how; memdisk.h. Apart from
 * memdisk_fail, which counts calls that change something: here every kind of
 * call can be meant, also those that only read. */
#ifndef CRASH_MEMDISK_FAULT_H
#define CRASH_MEMDISK_FAULT_H

#include <stdbool.h>
#include <stddef.h>

enum memdisk_call {
	MEMDISK_OPEN,
	MEMDISK_PREAD,
	MEMDISK_PWRITE, /* and pwritev */
	MEMDISK_FSYNC,  /* and fdatasync */
	MEMDISK_SYNCFS,
	MEMDISK_TRUNCATE,
	MEMDISK_ALLOCATE,
	MEMDISK_STAT, /* fstat and fstatat */
	MEMDISK_RENAME,
	MEMDISK_UNLINK,
	MEMDISK_MKDIR,
	MEMDISK_FLOCK,
	MEMDISK_LIST,
	MEMDISK_WRITE_RANGE,
	MEMDISK_CALLS,
};

extern const char *const memdisk_call_names[MEMDISK_CALLS];

#define MEMDISK_SHORT (-1) /* as `error`: a transfer takes half of its bytes */

struct memdisk_plan {
	enum memdisk_call call;
	long k;     /* the k-th such call, 0: the next */
	long times; /* that one and those after it; 0: nothing is planned */
	int error;
	long seen; /* such calls so far */
	long hits; /* that failed */
};

/* 0: the call is done; else what it fails with. */
int memdisk_plan_next(struct memdisk_plan *p, enum memdisk_call call);

#endif
