/* The activity of a run in words, made when somebody looks and never stored: while a model reads or
 * writes, no event comes. Loop thread only. */
#ifndef SUBAGENT_DOING_H
#define SUBAGENT_DOING_H

#include <stddef.h>

struct run;

/* Brings r->activity up to date: "Waiting for the first word of the model (2 min)". */
void doing_look(struct run *r);
/* "reply 7 of 20, 5 calls failed; the model has written 120 words", the same in every channel
 * (WORDS_STILL_WORKING). */
void doing_progress(const struct run *r, char *out, size_t size);

#endif
