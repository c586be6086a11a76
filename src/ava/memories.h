/* The memory in the runtime: changes with their events, the verbs (memories.c), and its use in
 * conversations (talk_memory.c). doc/MEMORY.md. Loop thread only. */
#ifndef AVA_MEMORIES_H
#define AVA_MEMORIES_H

#include <stdbool.h>

#include "memory/memory.h"

struct core;
struct draft;

/* Opens no file, unless the last process was killed and left a -wal file. AVA_ENOMEM. */
int memories_open(struct core *c, struct ava_error *err);
bool memories_there(const struct core *c); /* the memory's file exists */
bool memories_idle(const struct core *c);
/* Before the journal is closed: finishes changes and their events, if seconds suffice. Others stay
 * due. */
void memories_quiesce(struct core *c);
void memories_close(struct core *c);

/* WRITE, REMOVE or RESET, *taken*: op->done is called when the change and its StateWrite are on
 * disk, or with the error, perhaps before this returns. Errors of memory_ask, and AVA_EDENIED: it
 * holds a key. */
void memories_change(struct core *c, struct memory_op *op);
/* May the text be kept? AVA_EDENIED: it holds a key. NULL is fine. */
int memories_check(const struct core *c, const char *text, struct ava_error *err);
/* StateRead of a row that Ava was told. */
void memories_read(struct core *c, struct draft *d, const char *id, const char *session,
		   const char *user);

#endif
