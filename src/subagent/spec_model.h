/* The model of a run, and the one that may take its place. */
#ifndef SUBAGENT_SPEC_MODEL_H
#define SUBAGENT_SPEC_MODEL_H

#include "subagent/spec.h"

/* *m from now on. The first one is shared with other runs; one that takes its place
 * stands in the spec's own memory, and what pointed at the one before still may:
 * calls that are under way. AVA_ENOMEM: nothing changed. */
int spec_set_model(struct run_spec *s, const struct model *m, struct ava_error *err);

#endif
