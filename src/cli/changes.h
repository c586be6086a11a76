/* A run's proposed changes to its folder's files (member "patch" of its result), in words. */
#ifndef CLI_CHANGES_H
#define CLI_CHANGES_H

#include <jansson.h>
#include <stdio.h>

/* A line for each file and for what is left out, and a sum. */
void changes_show(FILE *f, const json_t *patch);
/* The same as a section of a result, with what to do next; nothing when there is none. */
void changes_section(FILE *f, const json_t *result);
/* A line behind the last one of a run; nothing when it proposes none. */
void changes_offer(FILE *f, const json_t *result);

#endif
