/* What model calls may cost beside their own run's limit: the budget of its
 * group and of the day (subagent/budget.h). Loop thread only. */
#ifndef SUBAGENT_INFER_MONEY_H
#define SUBAGENT_INFER_MONEY_H

#include <stdint.h>

struct agent;
struct agent_shared;

struct infer_job;
struct run;
struct supervisor;

void infer_money_init(struct supervisor *s);
/* After a restart: a run that goes on was at work then, by the clock on the wall. */
void infer_money_seen(struct supervisor *s, int64_t wall_ms);
/* And what the runs that ended today have cost, whoever counts it. */
void infer_money_restore(struct supervisor *s);
/* What counts against the budget of the day that it is now, micro-USD. */
int64_t infer_money_day(struct supervisor *s);
void infer_money_begin(struct run *r); /* of a new run */

/* Reserve the call; its max_output is lowered where that is all there is.
 * 0; BUDGET_WAITS: infer_go or infer_fail follows; AVA_EBUDGET, with the sentence. */
int infer_money_ask(struct infer_job *j);
/* Nobody waits for the call any more. What it holds is settled when it is charged. */
void infer_money_stop(struct run *r);
/* The run's totals have changed, or no call is under way any more. */
void infer_money_settle(struct run *r);
/* agent_io.shared. */
void infer_money_shared(struct agent *a, struct agent_shared *out);

#endif
