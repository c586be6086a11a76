/* A file the journal feeds, and how operations reach it.
 *
 * Unmarked fields are of the journal's thread, `owner` fields of the owner; atomics are read by
 * others too. A view's operations are applied in the order they were laid down; when the file
 * cannot be written they wait in its queue and other views go on. */
#ifndef JOURNAL_VIEW_H
#define JOURNAL_VIEW_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>
#include "journal/journal.h"
#include "journal/wal.h"

/* ---- one journal_commit on its way: made by the owner, laid down, synced and
 * applied by the journal's thread, freed by the owner after its callback. */
struct view;

struct op {
	struct op *next; /* the next in the view's queue, until applied */
	struct commit *commit;
	struct view *view;
	const unsigned char *bytes; /* all bytes of the operation, also when a blob holds them */
	size_t len;
	uint64_t offset;    /* where the bytes go in the view; set when laid down */
	const char *id;     /* the entry's id for JOURNAL_ENTRY; NUL-terminated */
	uint32_t at;        /* where the operation's head stands in commit->batch */
	uint8_t kind;       /* enum journal_op_kind */
	bool blob, creates; /* creates: the view did not exist before the operation */
};

/* One allocation: the struct, its operations, its batch, its longer bytes. */
struct commit {
	struct commit *next;
	journal_done_fn done;
	void *user;
	uint64_t first_lsn;
	uint32_t lsn_count;
	unsigned nops, pending; /* pending: operations not applied yet */
	int rv;
	bool now;
	size_t memory;        /* size of the allocation, counted for the queue's limit */
	size_t batch_len;     /* length of `batch`, head and padding counted */
	struct wal_pos pos;   /* where the commit was laid down */
	uint64_t before;      /* bytes laid down before the commit, since start */
	uint64_t whole;       /* the same, with the bytes of blobs */
	unsigned char *batch; /* as in the segment, but for the head, offsets and hashes */
	struct op ops[];
};

/* A queue of commits: the first and the last; `last` is undefined while it is empty. */
struct commit_queue {
	struct commit *first, *last;
};

static inline void commit_push(struct commit_queue *q, struct commit *c)
{
	c->next = NULL;
	if (q->first == NULL)
		q->first = c;
	else
		q->last->next = c;
	q->last = c;
}

static inline struct commit *commit_pop(struct commit_queue *q)
{
	struct commit *c = q->first;

	if (c != NULL)
		q->first = c->next;
	return c;
}

/* Move all of `from` behind `to`; `from` is empty then. */
static inline void commit_move(struct commit_queue *to, struct commit_queue *from)
{
	if (from->first == NULL)
		return;
	if (to->first == NULL)
		to->first = from->first;
	else
		to->last->next = from->first;
	to->last = from->last;
	from->first = NULL;
}

/* Does a file hold bytes that may not be on disk? The journal's thread sets VIEW_WRITTEN before
 * it counts the bytes; a checkpoint turns that into VIEW_SYNCING, and into VIEW_SYNCED when no
 * write came meanwhile. */
enum view_mark { VIEW_SYNCED, VIEW_WRITTEN, VIEW_SYNCING };

/* A path has one use for as long as it is known. */
enum view_use { VIEW_APPENDED, VIEW_PUT, VIEW_SESSION };

struct view {
	struct view *all_next;    /* next view in the helper's list; set before this one is in it */
	struct view *forget_next; /* next view on the way between helper and owner */
	_Atomic bool forgettable; /* the helper offered it, and the owner has not answered */
	bool syncing, fresh_now;  /* helper: this checkpoint syncs the file; and its name */
	bool looked, apart, gone; /* helper: `apart` known; on another file system; to be freed */
	uint64_t noted, synced;   /* helper: the file's size at this checkpoint, at the last one */
	unsigned refs;            /* owner: number of operations whose commits are not drained */
	enum view_use use;        /* constant, as is `path` */

	_Atomic uint64_t size, inode; /* size: applied bytes; inode 0: not known */
	_Atomic unsigned part;        /* number of the part that is written; 0: not looked at yet */
	_Atomic int mark;             /* enum view_mark */
	_Atomic bool fresh;           /* the file's name may not be durable yet */
	_Atomic bool dropped;         /* no more operations are expected */
	_Atomic bool left; /* no sync of the file covers, or reports errors of, all its bytes */
	_Atomic int kept;  /* descriptor kept for syncing a file that is closed; -1: none */

	bool on_disk;          /* the file exists */
	bool held, touched;    /* in apply.held; in apply.touched */
	bool used;             /* used since the descriptor cache last looked: stays open */
	int fd;                /* -1: not open */
	size_t slot;           /* the file's slot in the descriptor cache, while open */
	unsigned laid, making; /* operations not applied yet; making: those that create the file */
	uint64_t end;          /* size of the file once everything laid down is applied */
	size_t partial;        /* leading bytes of `first` that are in the file already */
	struct op *first, *last; /* operations to apply; `last` is undefined when there are none */
	struct view *next;       /* next view in apply.touched or apply.held */
	int64_t checked_ms;      /* when the path was last compared with the file */
	int64_t retry_ms, backoff_ms;
	int error; /* errno that holds the view; meaningless when not held */
	size_t path_len;
	char path[];
};

#define VIEW_IOV  256
#define VIEW_KEPT 16 /* most kept descriptors; with more files to sync, syncfs does it */

struct view_set {
	int rootfd;
	int64_t now_ms;     /* monotonic, set once a flush */
	struct view **open; /* descriptor cache: `cap` slots, `count` used */
	size_t cap, hand;
	_Atomic size_t count;
	_Atomic int kept; /* descriptors that views keep for the helper */
	struct iovec iov[VIEW_IOV];
};

/* `cap`: most descriptors kept open; 0: as RLIMIT_NOFILE, raised to its hard limit, allows. */
int view_set_init(struct view_set *s, int rootfd, size_t cap);
void view_set_fini(struct view_set *s); /* closes descriptors; views stay */

struct view *view_new(const char *path, enum view_use use);
void view_free(struct view *v);

/* Give `op` its offset. 0; AVA_EEXIST for CREATE; AVA_EFULL, AVA_EIO when the file cannot be
 * looked at or is no regular file: nothing has changed. */
int view_lay(struct view_set *s, struct op *op);
/* Take back `op`, the newest laid down of its view. */
void view_unlay(struct op *op);

/* For the helper: take the descriptor kept for syncing a closed file. The kernel reports an error
 * of writing back only to descriptors open since then; a file opened afresh may miss it once its
 * inode left memory. The caller owns it; -1: the file is open, or unchanged. */
int view_take_kept(struct view_set *s, struct view *v);
/* For the helper: note that the view's sync is done. */
void view_synced(struct view_set *s, struct view *v);

void view_queue(struct op *op);
/* Apply the view's queue. 0, or -1 and errno: the rest stays queued. */
int view_run(struct view_set *s, struct view *v);

/* The view cannot be written, though the disk is not full, and holds up the journal: move its
 * queue into the next part of an appended file, else into lost/. 0: try again, or done; -1:
 * neither helps. */
int view_give_way(struct view_set *s, struct view *v);

/* The newest part of `path` on disk; 1 when there is no continuation. */
unsigned view_find_part(int rootfd, const char *path);

/* ---- Entries of session files, which other programs (pi) append to as well. */

enum entry_mode {
	ENTRY_NEW,  /* no entry with this id can be there */
	ENTRY_REDO, /* append only when no entry has this id */
};

/* Under flock: read the id of the file's last entry, put it in the place of null in
 * `"parentId":null`, append the line in one write (a line end is added when `bytes` has none).
 * The file is made when it is absent; but a file in sessions/--… only by its header, which has
 * no parent: other entries go to lost/sessions+… then, and 1 is returned. -1 and errno: nothing
 * was written; EWOULDBLOCK: another program holds the lock. */
int entry_append(int rootfd, const char *path, const void *bytes, size_t len, const char *id,
		 enum entry_mode mode);

/* Put an unwritable entry, or (`id` NULL) a whole file, into lost/, durably. -1 and errno. */
int entry_put_aside(int rootfd, const char *path, const void *bytes, size_t len, const char *id);

/* The last line of the first `size` bytes, without its \n: the bytes behind the last \n, or,
 * when they end in \n, the line before it. *line is the caller's (free()), NUL-terminated. -1
 * and errno; EFBIG when it is over 16 MB. */
int entry_last_line(int fd, uint64_t size, char **line, size_t *len);

#endif
