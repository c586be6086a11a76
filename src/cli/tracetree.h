/* A run's events as a tree for people: turns, model calls, tool calls. */
#ifndef CLI_TRACETREE_H
#define CLI_TRACETREE_H

#include <ava.h>
#include <stdio.h>

struct tracetree;

struct tracetree *tracetree_new(void); /* NULL: no memory */
void tracetree_free(struct tracetree *t);
/* One event line of the run, in order. 0 or a code. */
int tracetree_add(struct tracetree *t, const char *line, size_t len, struct ava_error *err);
void tracetree_print(const struct tracetree *t, FILE *f);

#endif
