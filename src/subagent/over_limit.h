/* on_limit: ask. A run that has used up its money, tokens or replies asks a person
 * before it ends with what it has; a yes gives it as much again. */
#ifndef SUBAGENT_OVER_LIMIT_H
#define SUBAGENT_OVER_LIMIT_H

#include <stddef.h>

struct draft;
struct run;

/* What the person is asked; r->agent.over says about which limit. */
void over_limit_question(const struct run *r, char *out, size_t size);
/* The yes: the limit is doubled in the run's spec, with its amendment line and
 * Limit event in `d`. */
void over_limit_raise(struct run *r, struct draft *d);

#endif
