/* Output of a run against the schema that was asked for (doc/SCHEMA.md). */
#ifndef AGENT_OUTPUT_H
#define AGENT_OUTPUT_H

#include <stdbool.h>

#include "agent/machine.h"

struct ava_error;
struct reply;
struct turn;
struct turn_call;

/* Check the output of `end`, first brought toward the schema where it does not fit
 * (schema_coerce). *errors: NULL when it fits or no schema was asked for, else its faults, one a
 * line, in the turn's arena. AVA_ENOMEM. */
int output_check(struct agent *a, struct agent_end *end, const char **errors);
/* Take our words out of the result in a call that ends the run. `rv`: the verdict
 * on its arguments, which is returned, or AVA_EINVAL when no summary is left. */
int output_clean(const struct agent *a, struct turn_call *c, int rv, struct ava_error *err);
/* As reply_read, but a result made of our words is none. */
int output_read(const struct agent *a, struct reply *r, const char *text, size_t len);
/* Accept a call that ends the run with misfit arguments that hold a result, with a caveat, when
 * the last one was refused or on `last`: no other can come. AVA_EINVAL: refused, and counted. */
int output_accept(struct agent *a, struct turn_call *c, bool last);

/* Give the call its id and tool; answer it when it cannot run. 0, AVA_ENOMEM. */
int output_prepare(struct agent *a, unsigned i);
/* Must the reply be durable before its calls start? Where one is not repeatable. */
bool output_must_be_saved(const struct turn *t);
/* The turn's first call that ends the run with valid arguments; NULL: none. */
struct turn_call *output_submit(struct agent *a);
/* Put off the result: the model has not read a person's message yet. */
void output_put_off(struct agent *a);
/* Take the result of a call that ends the run. 0, AVA_ENOMEM. */
int output_take(struct agent *a, const struct turn_call *c, struct agent_end *end);

/* Take the result of a run's last reply, from a call (*submit; NULL: none) or from text in a
 * result's form. 0, AVA_ENOMEM. */
int output_last(struct agent *a, struct turn_call **submit, struct agent_end *end);

/* Answer calls that would end the run with a misfit output by its faults, while retries are
 * left. `more`: another call could be made. 0, AVA_ENOMEM. */
int output_send_back(struct agent *a, bool more);

/* ---- the check of a result. `c`: the call that handed it in; NULL: the turn's text did. */

/* Keep the result as at.said until its check has passed, and have the check run. 0, AVA_ENOMEM. */
int output_hold(struct agent *a, const struct turn_call *c);
/* Fill `end` from at.said, a result (`submitted`: in the form that was asked for) or what was said;
 * strings in `mem`, or borrowed. 0, AVA_ENOMEM. */
int output_said(const struct agent *a, struct arena *mem, bool submitted, struct agent_end *end);
/* As output_said, for another end than the result's own. */
void output_kept(const struct agent *a, struct arena *mem, struct agent_end *end);
/* The run goes on: answer all calls of the turn. 0, AVA_ENOMEM. */
int output_check_back(struct agent *a, struct turn_call *c);
/* The sentence that says why the run is unproven, in the turn's arena; NULL: no memory. */
const char *output_check_error(struct agent *a);

/* Turn a successful end into one that names the errors and has no output. */
void output_misfit(struct agent_end *end, const char *errors);

/* ---- answers of the machine itself */

/* `error_class` and `output` are static or in the turn's arena. */
void answer_call(struct agent *a, struct turn_call *c, bool success, const char *error_class,
		 const char *output);
/* Answer every open call, also when the run ends: the next request and readers of the record
 * need both halves. */
void answer_open(struct agent *a, const char *error_class, const char *why);
void answer_unknown(struct agent *a, struct turn_call *c);
/* The reply itself ends the run: no life of the runtime has started one of its open calls. */
void start_none(struct agent *a);

#endif
