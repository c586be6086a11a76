/* A data root of logs alone, made before each test of a file and gone behind it. */
#ifndef UNIT_LOGS_ROOT_H
#define UNIT_LOGS_ROOT_H

#include "unit.h"

#include <ava.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/sys.h"
#include "base/util.h"
#include "event/event.h"

static char root[256];

static inline const char *path_of(const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", root, name);
	return path;
}

static int make_root(void **state)
{
	snprintf(root, sizeof(root), "%s", unit_tmpdir());
	unit_mkdirs(root, "logs/ava/");
	unit_mkdirs(root, "logs/subagents/");
	return 0;
}

static inline int make_no_folder(int dirfd, const char *path, mode_t mode)
{
	errno = EROFS;
	return -1;
}

/* Where no index can be stored. */
static inline struct sys_ops without_folders(void)
{
	struct sys_ops ops = sys_real;

	ops.mkdirat = make_no_folder;
	return ops;
}

static int remove_root(void **state)
{
	unit_rmdir(root);
	return 0;
}

/* What is said of event `lsn`, but for what a test says itself. */
static inline struct event_head head_of(uint64_t lsn, enum event_kind kind, const char *agent)
{
	return (struct event_head){.kind = kind,
				   .wall_ms = 1795248000000 + (int64_t)lsn,
				   .lsn = lsn,
				   .seq = lsn,
				   .agent_id = agent};
}

#endif
