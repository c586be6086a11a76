/* Reserve room of ava's own; see ballast.h.
 *
 * Each write that fails gives up one piece and is tried again at once: a program that fills the
 * disk would take most of many pieces given up together. Pieces come back all or not at all, and
 * only while sixteen times as much is free: otherwise they would fill the disk themselves, or a
 * quota that statvfs does not show. */
#include "journal/ballast.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

#include "base/error.h"
#include "base/sys.h"
#include "base/util.h"

#define PIECE      ((off_t)1 << 20)
#define PIECES_MAX 4096
#define SHARE      16 /* all pieces together take at most 1/16 of the free room */

#define START_MB     1
#define START_INODES 16

struct pieces {
	bool there[PIECES_MAX];
	unsigned n;
};

static void find_piece(const char *name, void *user)
{
	struct pieces *p = user;
	unsigned i;

	if (sscanf(name, "ballast-%u", &i) != 1 || i >= PIECES_MAX)
		return;
	p->n += !p->there[i];
	p->there[i] = true;
}

static bool drop_piece(int rootfd, unsigned i)
{
	char path[40];

	snprintf(path, sizeof(path), "wal/ballast-%u", i);
	return sys->unlinkat(rootfd, path, 0) == 0;
}

static int make_piece(int rootfd, unsigned i)
{
	char path[40];
	int fd, rv;

	snprintf(path, sizeof(path), "wal/ballast-%u", i);
	fd = sys->openat(rootfd, path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -1;
	rv = sys->fallocate(fd, 0, 0, PIECE);
	if (rv != 0 && errno == EOPNOTSUPP)
		rv = 0;
	sys->close(fd);
	return rv;
}

bool ballast_give(int rootfd, int error)
{
	struct pieces p = {.n = 0};
	bool gave = false;

	if (err_is_full(error) && sys->list(rootfd, "wal", find_piece, &p) == 0)
		for (unsigned i = PIECES_MAX; i-- > 0 && !gave;)
			gave = p.there[i] && drop_piece(rootfd, i);
	errno = error;
	return gave;
}

void ballast_ease(int rootfd)
{
	struct sys_room r;

	while (sys_room(rootfd, &r) == 0 && (r.mb < START_MB || r.inodes < START_INODES) &&
	       ballast_give(rootfd, ENOSPC))
		;
}

void ballast_keep(int rootfd, unsigned most)
{
	struct pieces p = {.n = 0};
	unsigned want = most, had, i;
	struct sys_room r;
	int rv = 0;

	if (sys->list(rootfd, "wal", find_piece, &p) != 0 || sys_room(rootfd, &r) != 0)
		return;
	had = p.n;
	want = (unsigned)MIN(want, MIN(r.mb + had, r.inodes) / SHARE);
	for (i = 0; i < PIECES_MAX && rv == 0 && p.n < want; i++) {
		if (p.there[i])
			continue;
		rv = make_piece(rootfd, i);
		p.n++;
	}
	while (rv != 0 && i-- > 0)
		(void)(p.there[i] || drop_piece(rootfd, i));
	for (i = PIECES_MAX; i-- > 0 && had > most;)
		had -= p.there[i] && drop_piece(rootfd, i);
}
