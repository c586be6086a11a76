/* Memories of a person: short texts in memory.db of the data root (SQLite with FTS5;
 * doc/MEMORY.md). One thread has the connection and does one thing at a time; the asker never
 * waits. The file is opened when first needed, and made at the first write; a start costs
 * nothing.
 *
 * The row is the truth. The transaction that changes a row also stores the reports still due
 * about it (`due`); the reporter confirms them (MEMORY_TOLD), and reports that a stop prevented
 * come with the next change, or MEMORY_LOOK. */
#ifndef MEMORY_MEMORY_H
#define MEMORY_MEMORY_H

#include "memory/op.h"

struct memory;
struct os_loop;

/* Make a request; NULL: no memory. */
struct memory_op *memory_op_new(enum memory_what what, void (*done)(struct memory_op *op),
				void *user);
/* A copy that lives as long as the op; NULL stays NULL. Without memory it is NULL too, and the
 * op fails when it is asked. */
const char *memory_op_copy(struct memory_op *op, const char *s);
void memory_op_free(struct memory_op *op);

/* `root` is *copied*; nothing is opened. NULL: no memory. */
struct memory *memory_new(struct os_loop *loop, const char *root);
/* Free `m`; waiting ops are done first, and answered. Loop thread; NULL is fine. */
void memory_free(struct memory *m);
/* Ask `op`, which is *taken*; op->done brings the answer. Errors, each with a sentence: AVA_EINVAL,
 * AVA_ENOENT (no such row), AVA_ETOOBIG (a text, or too many rows), AVA_EBUSY (too much at once, or
 * another program holds the file), AVA_EFULL (nothing was changed), AVA_EUNKNOWN (the disk failed
 * during the save), AVA_ECORRUPT (the file is damaged: nothing is read or written until
 * MEMORY_RESET), AVA_EFORMAT, AVA_EIO, AVA_ECANCELED, AVA_ENOMEM. */
void memory_ask(struct memory *m, struct memory_op *op);

#endif
