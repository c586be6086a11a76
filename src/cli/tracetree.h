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

/* When the calls of a run were at work, as bars on one line of time. */

/* 0, or AVA_ENOMEM. */
int waterfall_print(struct ava_trace *t, FILE *f, struct ava_error *err);

#endif
