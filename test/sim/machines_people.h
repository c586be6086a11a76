/* People at several machines: they move runs, say something to them and cancel them, each on the
 * machine that they are at. In the end each asks for all results. */
#ifndef SIM_MACHINES_PEOPLE_H
#define SIM_MACHINES_PEOPLE_H

#include <stdbool.h>

#include "codec/json.h"

struct machines;

void people_begin(struct machines *w);
/* Whoever waits for a machine that goes down has no answer. */
void people_leave(unsigned machine);
/* All runs have ended. True: everybody has seen all results. */
bool people_have_all(void);

/* For the judge, of a run's log: a Steering event, and what its end says. */
void people_see_words(const char *run, const json_t *content);
void people_see_end(const char *run, const char *status);
void people_judge(void);

#endif
