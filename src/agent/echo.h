/* Words of ours that a model hands in as its result: it has the form of one, and holds what our
 * tools and notices say about it. */
#ifndef AGENT_ECHO_H
#define AGENT_ECHO_H

#include <jansson.h>
#include <stdbool.h>

#include "agent/machine.h"

/* Take out of a result (arguments of submit_result, an envelope) what is ours word for word, and
 * make JSON of an output that is JSON as text where nobody asked for a form. *changed: something
 * was. Returns true when nothing of a result is left: no summary, and an output that says nothing.
 * Without memory less is found. */
bool echo_clean(const struct agent *a, json_t *result, bool *changed);

#endif
