/* Citations: the claims of a result, checked against the texts that the run's tools
 * really returned. Pure text; the forms are those of agent/tool.h. */
#ifndef SUBAGENT_EVIDENCE_H
#define SUBAGENT_EVIDENCE_H

#include <stddef.h>

#include "base/buf.h"

struct dialect;

struct evidence {
	struct buf citations; /* JSON array of {"path","line","quote"} or {"url","quote"} */
	unsigned checked, failed;
};

#define EVIDENCE_MAX_CITATIONS 200

/* Collect from the submitted output (objects with path and line, or url) and
 * from "path:LINE" in the summary; keep those that stand in a tool result of
 * `lines` (message texts joined by commas). 0 or AVA_ENOMEM; a conversation
 * that cannot be read leaves every claim unverified. The caller frees
 * citations. */
int evidence_collect(struct evidence *e, const struct dialect *d, const char *lines,
		     size_t lines_len, const char *output, size_t output_len, const char *summary);

#endif
