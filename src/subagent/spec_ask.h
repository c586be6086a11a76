/* ask_before of a run: tools whose calls wait for a person's yes. */
#ifndef SUBAGENT_SPEC_ASK_H
#define SUBAGENT_SPEC_ASK_H

#include <jansson.h>
#include <stdbool.h>

struct ava_error;
struct jw;
struct op_spawn;
struct run_spec;

/* Once its tools stand. AVA_EINVAL. */
int spec_ask_take(struct run_spec *r, const struct op_spawn *s, struct ava_error *err);
int spec_ask_from_json(struct run_spec *r, const json_t *config, struct ava_error *err);
void spec_ask_write(struct jw *w, const struct run_spec *r);
/* Nothing that was quoted as asked about starts unasked. */
bool spec_asks_no_less(const struct run_spec *quoted, const struct run_spec *changed);

#endif
