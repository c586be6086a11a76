/* The file of the memory (memory.h), for its thread alone: one thing at a time, each in one
 * transaction. */
#ifndef MEMORY_STORE_H
#define MEMORY_STORE_H

#include "memory/op.h"

struct store;

struct store *store_new(const char *root); /* *copied*; opens nothing. NULL: no memory */
/* Opens the file where that is needed; op->rv and, when it is not 0, op->err say how it went. */
void store_do(struct store *store, struct memory_op *op);
void store_shut(struct store *store); /* accepts one that is not open */
void store_free(struct store *store); /* shut before, by the thread that had it */

#endif
