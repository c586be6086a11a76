/* When the calls of a run were at work, as bars on one line of time. */
#ifndef CLI_WATERFALL_H
#define CLI_WATERFALL_H

#include <ava.h>
#include <stdio.h>

/* 0, or AVA_ENOMEM. */
int waterfall_print(struct ava_trace *t, FILE *f, struct ava_error *err);

#endif
