/* A run's events for people: a tree of turns, model calls and tool calls, or when its calls
 * were at work, as bars on one line of time. */
#ifndef CLI_TRACETREE_H
#define CLI_TRACETREE_H

#include <ava.h>
#include <stdio.h>

/* 0, or AVA_ENOMEM. */
int tracetree_print(struct ava_trace *t, FILE *f, struct ava_error *err);
int waterfall_print(struct ava_trace *t, FILE *f, struct ava_error *err);

#endif
