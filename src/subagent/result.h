/* result.json, the shape of doc/api.yaml. */
#ifndef SUBAGENT_RESULT_H
#define SUBAGENT_RESULT_H

#include "agent/io.h"
#include "base/buf.h"
#include "subagent/evidence.h"

struct run;

/* `e` NULL: nothing was claimed. Returns buf_check(out). */
int result_encode(struct buf *out, const struct run *r, const struct agent_end *end,
		  const struct evidence *e);

#endif
