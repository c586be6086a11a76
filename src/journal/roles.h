/* Which role an agent has, from catalog.jsonl: events do not repeat it. Part
 * of ava_read. */
#ifndef JOURNAL_ROLES_H
#define JOURNAL_ROLES_H

#include <stddef.h>

struct ava_error;
struct roles;

/* On error *r is NULL. A root without a catalog has no roles. */
int roles_open(struct roles **r, int rootfd, struct ava_error *err);
void roles_close(struct roles *r); /* NULL is allowed */
/* The role of the run with that id; "ava" for her, "" when it is not known.
 * *Borrowed until close*; any thread. */
const char *roles_find(const struct roles *r, const char *id, size_t len);

#endif
