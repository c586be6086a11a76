/* The file wal/checkpoint: up to where the journal is in the views and synced,
 * and what the views were like. Text, one fact a line, closed by a checksum;
 * doc/JOURNAL.md. */
#ifndef JOURNAL_CHECKPOINT_H
#define JOURNAL_CHECKPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "journal/wal.h"

struct ava_error;

#define CHECKPOINT_PATH "wal/checkpoint"

struct checkpoint_view {
	unsigned part;
	uint64_t size, inode; /* synced bytes; 0: not known */
	const char *path;     /* into the text that was parsed */
};

struct checkpoint {
	bool clean;         /* everything was answered and applied, nothing followed */
	struct wal_pos pos; /* recovery begins here */
	uint64_t lsn;       /* the next to be given */
	struct checkpoint_view *views;
	size_t nviews;
	char *text; /* owned */
};

/* A head, any number of views, an end. Returns buf_check(out) at the end. */
void checkpoint_head(struct buf *out, bool clean, struct wal_pos pos, uint64_t lsn);
void checkpoint_add(struct buf *out, const struct checkpoint_view *v);
int checkpoint_end(struct buf *out);
/* Durably in the place of the last one. -1 and errno. */
int checkpoint_write(int rootfd, const struct buf *text);

/* 0; AVA_ENOENT; AVA_ECORRUPT; AVA_ENOMEM; AVA_EIO. *c owns memory on 0. */
int checkpoint_read(int rootfd, struct checkpoint *c, struct ava_error *err);
void checkpoint_fini(struct checkpoint *c);

#endif
