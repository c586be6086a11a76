/* Pieces of work done by several threads at once. No loop, no queue that
 * outlives the call. */
#ifndef BASE_CREW_H
#define BASE_CREW_H

#include <stdbool.h>
#include <stddef.h>

#define CREW_THREADS 2 /* threads at once, the caller's among them */

/* Do the i-th piece, on one of CREW_THREADS threads. False: begin no more pieces. */
typedef bool (*crew_fn)(size_t i, unsigned thread, void *user);

/* Have pieces 0 to n - 1 done, begun in that order; returns when all begun ones are done. Without a
 * second thread the caller's does them all. */
void crew_run(size_t n, crew_fn fn, void *user);

#endif
