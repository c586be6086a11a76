/* The Anthropic service: its own Messages form (provider/wire.h) with thinking,
 * cache marks and streams. The row is dialect_anthropic; this is its parts for
 * tests. Pure. */
#ifndef PROVIDER_ANTHROPIC_H
#define PROVIDER_ANTHROPIC_H

#include "provider/dialect.h"

#define ANTHROPIC_VERSION "2023-06-01"

int anthropic_head(struct buf *out, const struct dialect_spec *spec);
int anthropic_tail(struct buf *out, const struct model *m, bool thinking,
		   const struct agent_infer *call);
int anthropic_headers(struct buf *out, const struct model *m, const char *key);
int anthropic_mark_cache(struct buf *body, size_t lines_from, const struct model *m);
bool anthropic_in_lines(const char *parameter);

#endif
