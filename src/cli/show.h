/* The result of a run for people: summary, findings, caveats, totals. */
#ifndef CLI_SHOW_H
#define CLI_SHOW_H

#include <jansson.h>
#include <stdio.h>

void show_result(FILE *f, const json_t *result);
/* The object as it is, on one line. */
void show_json(FILE *f, const json_t *v);

#endif
