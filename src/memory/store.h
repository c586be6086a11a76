/* The file of the memory (memory.h), for its thread alone: one thing at a time, each in one
 * transaction. */
#ifndef MEMORY_STORE_H
#define MEMORY_STORE_H

#include "memory/op.h"

struct store;

struct store *store_new(const char *root); /* *copied*; opens nothing. NULL: no memory */
/* Open the file when needed; op->rv is the outcome and, when it is not 0, op->err its sentence. */
void store_do(struct store *store, struct memory_op *op);
void store_shut(struct store *store); /* accepts a closed one */
void store_free(struct store *store); /* call store_shut before, on the store's thread */

#endif
