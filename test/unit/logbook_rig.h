/* A logbook over a real journal in a directory of its own, without the rest
 * of the runtime, and a disk whose syncs fail or are slow on demand. */
#ifndef UNIT_LOGBOOK_RIG_H
#define UNIT_LOGBOOK_RIG_H

#include "unit.h"

#include <ava.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/sys.h"
#include "codec/jscan.h"
#include "os/loop.h"
#include "subagent/logbook.h"

struct rig {
	char root[256];
	int root_fd;
	struct os_loop *loop;
	struct journal *j;
	struct logbook book;
};

/* ---- the disk */

static atomic_int rig_sync_error; /* of every fdatasync; 0: none */
static atomic_int rig_sync_us;    /* what each takes longer */

static inline int rig_fdatasync(int fd)
{
	int us = atomic_load(&rig_sync_us), e = atomic_load(&rig_sync_error);

	if (us > 0)
		usleep((useconds_t)us);
	if (e == 0)
		return sys_real.fdatasync(fd);
	errno = e;
	return -1;
}

/* ---- life */

static inline void rig_open(struct rig *r)
{
	struct journal_options o = {.root = r->root,
				    .pace_us = 500,
				    .segment_bytes = 256 << 10,
				    .checkpoint_bytes = 64 << 20};
	struct ava_error err = {0};

	r->root_fd = open(r->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r->loop = os_loop_new(NULL);
	assert_non_null(r->loop);
	if (journal_open(&r->j, &o, NULL, &err) != 0)
		fail_msg("journal_open: %s", err.text);
	assert_int_equal(logbook_open(&r->book, r->j, r->loop, NULL, r->root_fd, &err), 0);
}

static inline void rig_init(struct rig *r)
{
	static struct sys_ops ops;

	*r = (struct rig){.root_fd = -1};
	ops = sys_real;
	ops.fdatasync = rig_fdatasync;
	sys = &ops;
	atomic_store(&rig_sync_error, 0);
	atomic_store(&rig_sync_us, 0);
	snprintf(r->root, sizeof(r->root), "%s", unit_tmpdir());
}

/* Nothing may be left in outboxes. */
static inline void rig_close(struct rig *r)
{
	r->book.closed = true;
	journal_close(r->j);
	logbook_close(&r->book);
	os_loop_free(r->loop);
	close(r->root_fd);
}

static inline void rig_fini(struct rig *r)
{
	rig_close(r);
	sys = &sys_real;
	unit_rmdir(r->root);
}

/* A turn of the loop, with the journal's answers. */
static inline void rig_turn(struct rig *r)
{
	journal_drain(r->j);
	os_loop_step(r->loop, 2);
}

#define RIG_UNTIL(r, condition)                                                                    \
	do {                                                                                       \
		for (int turns_ = 0; !(condition) && turns_ < 20000; turns_++)                     \
			rig_turn(r);                                                               \
		assert_true(condition);                                                            \
	} while (0)

/* ---- files */

static inline const char *rig_path(const struct rig *r, const char *path)
{
	static char full[600];

	snprintf(full, sizeof(full), "%s/%s", r->root, path);
	return full;
}

/* "" when there is none; free(). */
static inline char *rig_read(const struct rig *r, const char *path)
{
	size_t len;

	return access(rig_path(r, path), F_OK) == 0 ? unit_read(rig_path(r, path), &len)
						    : strdup("");
}

static inline void rig_write(const struct rig *r, const char *path, const char *text)
{
	unit_write(rig_path(r, path), text, strlen(text));
}

static inline bool rig_holds(const struct rig *r, const char *path, const char *text)
{
	char *file = rig_read(r, path);
	bool found = strstr(file, text) != NULL;

	free(file);
	return found;
}

/* The events of a file, in order; at most `max`. The views are into *file. */
static inline size_t rig_events(const struct rig *r, const char *path, struct event_view *v,
				size_t max, char **file)
{
	const char *line;
	size_t at = 0, len, n = 0;

	*file = rig_read(r, path);
	while (n < max && jsonl_next(*file, strlen(*file), &at, &line, &len) == 1)
		assert_int_equal(event_view(line, len, &v[n++]), 0);
	return n;
}

/* Write an event of `run` ("" none), with {"n":n} in it. */
static inline int rig_event(struct draft *d, enum event_kind kind, const char *run,
			    struct run_log *log, bool day, int n)
{
	struct draft_where where = {.run = run[0] ? run : NULL, .log = log, .day = day};
	struct event_head head = {.kind = kind, .agent_id = run[0] ? run : "ava"};
	TEST_BUF(content, 4096);
	int rv;

	buf_addf(&content, "{\"n\":%d}", n);
	rv = draft_event(d, &where, &head, &content, NULL);
	return rv;
}

#endif
