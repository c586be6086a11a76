/* Bringing the views up to the journal after a stop: first the wanted content of each file is
 * collected, then each file is looked at once, and only then written. Redoing twice, or a kill
 * in between, changes nothing. */
#ifndef JOURNAL_REDO_H
#define JOURNAL_REDO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/strmap.h"
#include "codec/json.h"
#include "journal/wal.h"

struct ava_error;

struct redo_op {
	uint64_t lsn, at, len, offset; /* at: where the operation's bytes begin in the segment */
	int segment;                   /* descriptor of the segment; *borrowed* */
	uint16_t n, id_len; /* n: the n-th operation of the batch; the id stands before `at` */
	uint8_t kind;       /* enum wal_kind */
	bool blob, in_place, bad; /* bad: the operation's blob is missing or damaged */
};

struct redo_file {
	char *path; /* path as callers name it */
	char *name; /* name of the file: `path` or a later part of it */
	unsigned part;
	struct redo_op *ops;
	size_t nops, capops;
	bool known;           /* the checkpoint lists the file, with: */
	uint64_t base, inode; /* base: bytes of the file that the redo does not touch */
	bool touched;
	uint64_t inode_now, size_now; /* the file as the redo left it; inode 0: to be looked up */
};

struct redo {
	int rootfd, walfd;
	struct strmap map; /* redo_file by name */
	struct redo_file **files;
	size_t nfiles, capfiles;
	/* content of the operation, of the file, of the file from `base` on */
	unsigned char *bytes, *other, *seen;
	size_t capbytes, capother, capseen; /* sizes of the three buffers */
	struct buf problems;
	struct jw json;
	size_t nproblems;
	uint64_t batches, total, lost; /* total: bytes redone; lost: bytes put aside */
	uint64_t lsn;                  /* above every lsn in lines that were in the files already */
};

int redo_init(struct redo *r, int rootfd, int walfd);
void redo_fini(struct redo *r);

/* Collect a batch's operations; `segment` is open until redo_fini. 0, AVA_ENOMEM, AVA_ECORRUPT. */
int redo_batch(struct redo *r, int segment, const struct wal_batch *b,
	       const unsigned char *payload);
/* Bring every file up to the journal and make it durable. `c` may be empty. */
int redo_run(struct redo *r, const struct checkpoint *c, struct ava_error *err);

void redo_problem(struct redo *r, const char *path, const char *problem, uint64_t lost,
		  const char *continues_in);
/* Append the views as the redo left them, for the next checkpoint. */
void redo_views(const struct redo *r, const struct checkpoint *c, struct buf *out);

#endif
