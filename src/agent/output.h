/* Output of a run against the schema that was asked for (doc/SCHEMA.md). */
#ifndef AGENT_OUTPUT_H
#define AGENT_OUTPUT_H

#include <stdbool.h>

#include "agent/machine.h"

struct ava_error;
struct reply;
struct turn_call;

/* The output of `end`, brought toward the schema where it does not fit (schema_coerce).
 * *errors: NULL when it fits or nothing is asked for, else what is wrong, a line for
 * each, in the turn's arena. AVA_ENOMEM. */
int output_check(struct agent *a, struct agent_end *end, const char **errors);
/* Result of a call that ends the run, without words of ours in it (agent/echo.h). `rv`: what was
 * found of its arguments, and what is returned, or AVA_EINVAL where no summary is left. */
int output_clean(const struct agent *a, struct turn_call *c, int rv, struct ava_error *err);
/* reply_read, and no result that is ours. */
int output_read(const struct agent *a, struct reply *r, const char *text, size_t len);
/* A call that ends the run with arguments that do not fit, but hold a result: taken with a caveat
 * when the last one was refused or `last`: no other could be made. AVA_EINVAL: refused, and
 * counted. */
int output_accept(struct agent *a, struct turn_call *c, bool last);

/* The first call that ends the run with valid arguments; NULL: none. */
struct turn_call *output_submit(struct agent *a);
/* People said something that the model has not read: its result can wait. */
void output_put_off(struct agent *a);
/* Result of a call that ends the run. 0, AVA_ENOMEM. */
int output_take(struct agent *a, const struct turn_call *c, struct agent_end *end);

/* Result of the last reply of a run, by a call (*submit; NULL: none) or in the form of one. 0,
 * AVA_ENOMEM. */
int output_last(struct agent *a, struct turn_call **submit, struct agent_end *end);

/* Calls of the turn that would end the run with an output that does not fit are
 * answered with what is wrong, while it may be tried again. `more`: another call
 * could be made. 0, AVA_ENOMEM. */
int output_send_back(struct agent *a, bool more);

/* An end as a success becomes one that says what is wrong, and holds no output. */
void output_misfit(struct agent_end *end, const char *errors);

/* ---- answers that the machine gives itself */

/* `error_class` and `output` are static or in the turn's arena. */
void answer_call(struct agent *a, struct turn_call *c, bool success, const char *error_class,
		 const char *output);
/* Every call that has none gets a result, also when the run ends: the next request,
 * and whoever reads the record, must find both halves. */
void answer_open(struct agent *a, const char *error_class, const char *why);
void answer_unknown(struct agent *a, struct turn_call *c);

#endif
