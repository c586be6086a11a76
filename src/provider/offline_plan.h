/* The planner of the offline model: what to do next, as a function of what
 * stands in the request. */
#ifndef PROVIDER_OFFLINE_PLAN_H
#define PROVIDER_OFFLINE_PLAN_H

struct offline_body;
struct draft;

/* Fill `draft` with the next turn. 0 or AVA_ENOMEM; errors of the draft stay
 * in it. */
int offline_plan(struct offline_body *b, struct draft *draft);

#endif
