/* What Ava's own turns have cost today, for the budget of the day after a restart
 * (the catalog knows of runs alone). */
#ifndef AVA_DAY_SPENT_H
#define AVA_DAY_SPENT_H

struct core;

/* Counts it. A log that cannot be read is told and counts nothing. */
void day_spent_restore(struct core *c);

#endif
