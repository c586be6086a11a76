/* The memory as the runtime has it: changes with their events, the verbs (memories.c), and what
 * a conversation has of it (talk_memory.c). doc/MEMORY.md. Loop thread only. */
#ifndef AVA_MEMORIES_H
#define AVA_MEMORIES_H

#include <stdbool.h>

#include "memory/memory.h"

struct core;
struct draft;

/* Nothing is opened, unless a stop left something to be told or removed. AVA_ENOMEM. */
int memories_open(struct core *c, struct ava_error *err);
bool memories_there(const struct core *c); /* something may be remembered */
bool memories_idle(const struct core *c);
/* Before the journal is closed: changes that were asked for are done and told, when they can
 * be within seconds. What is not told then stays due. */
void memories_quiesce(struct core *c);
void memories_close(struct core *c);

/* WRITE, REMOVE or RESET, *taken*: op->done is called when the change and its StateWrite are
 * on disk, or why it is not; maybe before this returns. Beside what memory_ask says:
 * AVA_EDENIED, it holds a key. */
void memories_change(struct core *c, struct memory_op *op);
/* StateRead of one row, for Ava herself. */
void memories_read(struct core *c, struct draft *d, const char *id, const char *session,
		   const char *user);

#endif
