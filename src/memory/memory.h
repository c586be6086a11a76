/* What is remembered of a person: short texts in memory.db of the data root (SQLite with
 * FTS5; doc/MEMORY.md). One thread has the connection and does one thing at a time, whoever
 * asks waits for nothing. The file is opened when it is first needed, and made when something
 * is first written; nothing here costs a start.
 *
 * The row is the truth. In the transaction that changes a row stands what is still to be told
 * about it (`due`); whoever has told it says so (MEMORY_TOLD), and what a stop kept from being
 * told comes with the next change, or MEMORY_LOOK. */
#ifndef MEMORY_MEMORY_H
#define MEMORY_MEMORY_H

#include "memory/op.h"

struct memory;
struct os_loop;

/* A fresh one; NULL: no memory. */
struct memory_op *memory_op_new(enum memory_what what, void (*done)(struct memory_op *op),
				void *user);
/* A copy that lives with it; NULL stays NULL. When memory runs out it is NULL, too, and the op
 * fails when it is asked. */
const char *memory_op_copy(struct memory_op *op, const char *s);
void memory_op_free(struct memory_op *op);

/* `root` is *copied*; nothing is opened. NULL: no memory. */
struct memory *memory_new(struct os_loop *loop, const char *root);
/* Those that were asked are done first, and told. Loop thread; NULL is fine. */
void memory_free(struct memory *m);
/* Takes `op`. What can be wrong with it, always with a sentence: AVA_EINVAL, AVA_ENOENT (no
 * such row), AVA_ETOOBIG (a text, or too many rows), AVA_EBUSY (too much at once, or another
 * program holds the file), AVA_EFULL (nothing was changed), AVA_EUNKNOWN (the disk failed while
 * it was saved), AVA_ECORRUPT (the file is damaged: until MEMORY_RESET nothing is read or
 * written), AVA_EFORMAT, AVA_EIO, AVA_ECANCELED, AVA_ENOMEM. */
void memory_ask(struct memory *m, struct memory_op *op);

#endif
