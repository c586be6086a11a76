/* Words of ours that a model hands in as its result, in a result's form. */
#ifndef AGENT_ECHO_H
#define AGENT_ECHO_H

#include <jansson.h>
#include <stdbool.h>

#include "agent/machine.h"

/* Take our words out of a result (arguments of submit_result, an envelope), and parse an output
 * that is JSON as text when no form was asked for. *changed: something was. True: nothing of a
 * result is left, no summary and an output that says nothing. Without memory less is found. */
bool echo_clean(const struct agent *a, json_t *result, bool *changed);

#endif
