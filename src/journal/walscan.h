/* Reading the WAL after a stop: which segments count, their batches in order,
 * and what is damaged. Writes nothing. */
#ifndef JOURNAL_WALSCAN_H
#define JOURNAL_WALSCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "journal/wal.h"

struct ava_error;

#define WALSCAN_TO_END UINT64_MAX

struct walscan_file {
	uint64_t seq;                     /* from its name */
	int copies;                       /* of its header that are good and say this seq */
	bool looked;                      /* its headers were read */
	bool used;                        /* copies > 0, or its batches say so without */
	struct wal_segment head;          /* when used; pieced together when copies is 0 */
	bool counts;                      /* belongs to the chain that is read */
	bool last;                        /* nothing follows it: its end may be torn */
	uint64_t end;                     /* what counts ends here; WALSCAN_TO_END: not known */
	uint64_t next_lsn;                /* first of the segment behind it; 0: none */
	uint64_t abort_first, abort_last; /* its ABORT; 0: none */
	int fd;                           /* -1: not open */
};

struct walscan {
	int walfd;
	struct walscan_file *files; /* ascending by seq */
	size_t nfiles;
	uint64_t least_lsn;                /* set before: the checkpoint's */
	uint64_t torn_bytes, aborted, lsn; /* lsn: after the last batch that was read */
	uint64_t tail_bytes;               /* that may have held batches behind it */
	struct wal_pos end;                /* where reading ended */
	bool damaged;                      /* something was dropped or is missing */
	unsigned char *buf;                /* one segment */
	size_t cap;

	/* Each returns 0 or a code that ends the scan. `payload` is borrowed
	 * during the call. */
	int (*batch)(struct walscan *s, size_t file, const struct wal_batch *b,
		     const unsigned char *payload, void *user);
	/* Bytes [from, to) of a segment hold no batch though they should; lsns
	 * from `first` to `last` may have been there (first > last: none). */
	int (*damage)(struct walscan *s, uint64_t seq, const char *what, uint64_t from, uint64_t to,
		      uint64_t first, uint64_t last, void *user);
	void *user;
};

/* What is in the folder. AVA_ENOMEM, AVA_EIO. Close it also on error. */
int walscan_open(struct walscan *s, int walfd, struct ava_error *err);
void walscan_close(struct walscan *s);
/* Everything from `start` on; start.seq 0: no checkpoint is known, take what
 * is there. `clean`: the checkpoint says that nothing can follow it. */
int walscan_run(struct walscan *s, struct wal_pos start, bool clean, struct ava_error *err);

/* What was read is durable: after a kill the last flush may stand in memory
 * only, and what is redone of it must not outlive it. */
int walscan_sync(struct walscan *s, struct ava_error *err);

/* Highest number of a file in use (0: none), and of any file. */
uint64_t walscan_used(const struct walscan *s);
uint64_t walscan_highest(const struct walscan *s);
/* Is it certainly one that holds nothing of ours: filled ahead, or given up? */
bool walscan_spare(const struct walscan_file *f);
/* Bytes of a segment that was read. -1 and errno. */
int walscan_bytes(struct walscan *s, size_t file, uint64_t at, void *out, size_t len);

#endif
