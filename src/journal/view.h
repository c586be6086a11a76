/* A file the journal feeds, and how operations reach it.
 *
 * All of it belongs to the journal's thread but for what is marked: `owner`
 * fields are the owner's, atomics are read by others too. A view's operations
 * are applied in the order they were laid down; when the file cannot be
 * written they wait in its queue and other views go on. */
#ifndef JOURNAL_VIEW_H
#define JOURNAL_VIEW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "journal/commit.h"

/* One path is used one way for as long as it is known. */
enum view_use { VIEW_APPENDED, VIEW_PUT, VIEW_SESSION };

struct view {
	struct view *all_next;    /* in the helper's list; set before it is there */
	struct view *forget_next; /* between helper and owner */
	_Atomic bool forgettable; /* offered to the owner, who has not answered */
	bool syncing, fresh_now;  /* helper: part of this checkpoint */
	bool looked, apart, gone; /* helper: apart: on another file system */
	uint64_t noted, synced;   /* helper: size at this checkpoint, at the last one */
	unsigned refs;            /* owner: operations of commits not drained */
	enum view_use use;        /* constant, as path */

	_Atomic uint64_t size, inode; /* applied bytes; 0: not known */
	_Atomic unsigned part;        /* which continuation is written; 0: not looked at yet */
	_Atomic bool dirty;           /* written since a checkpoint began */
	_Atomic bool fresh;           /* its name may not be durable yet */
	_Atomic bool dropped;         /* no more operations are expected */

	bool on_disk; /* the file exists */
	bool held, touched;
	bool used;               /* second chance in the descriptor cache */
	int fd;                  /* -1: not open */
	size_t slot;             /* in the descriptor cache, while open */
	unsigned making;         /* laid down, not applied operations that create the file */
	uint64_t end;            /* size once all that is laid down is applied */
	size_t partial;          /* bytes of `first` that are in the file already */
	struct op *first, *last; /* to be applied; last undefined when empty */
	struct view *next;       /* in the touched or the held list */
	int64_t checked_ms;      /* when the path was last compared with the file */
	int64_t retry_ms, backoff_ms;
	int error; /* errno that holds it */
	size_t path_len;
	char path[];
};

#define VIEW_IOV 256

struct view_set {
	int rootfd;
	int64_t now_ms;     /* monotonic, set once a flush */
	struct view **open; /* descriptor cache: `cap` slots, `count` used */
	size_t cap, hand;
	_Atomic size_t count;
	struct iovec iov[VIEW_IOV];
};

/* `cap` 0: as many as RLIMIT_NOFILE, raised to its hard limit, leaves. */
int view_set_init(struct view_set *s, int rootfd, size_t cap);
void view_set_fini(struct view_set *s); /* closes descriptors; views stay */

struct view *view_new(const char *path, enum view_use use);
void view_free(struct view *v);

/* Give `op` its offset. 0; AVA_EEXIST for CREATE; AVA_EFULL, AVA_EIO when the
 * file cannot be looked at or is no regular file: nothing has changed. */
int view_lay(struct view_set *s, struct op *op);
/* Take it back: the newest laid down of its view. */
void view_unlay(struct op *op);

void view_queue(struct op *op);
/* Apply what is queued. 0, or -1 and errno: the rest stays queued. */
int view_run(struct view_set *s, struct view *v);

/* The newest part of `path` on disk; 1 when there is no continuation. */
unsigned view_find_part(int rootfd, const char *path);

#endif
