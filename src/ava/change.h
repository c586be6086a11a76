/* A change of a quote (ava/answer.h), carried out. */
#ifndef AVA_CHANGE_H
#define AVA_CHANGE_H

#include <jansson.h>
#include <stdbool.h>

#include "subagent/spec.h"

struct arena;
struct ava_error;
struct change;
struct core;

/* Reads the keys of a request ("max_cost_cents", "without", …). AVA_EINVAL. */
int change_read(const json_t *set, struct change *out, struct arena *mem, struct ava_error *err);
/* The quoted spec with the change in it, a new spec of the caller's. `g`: its group, or NULL.
 * AVA_EINVAL with a sentence for an impossible change, AVA_ENOMEM. */
int change_spec(struct run_spec **out, const struct run_spec *quoted, const struct change *c,
		const struct spec_group *g, struct core *core, struct ava_error *err);
/* Has the spec a tool that `word` means and that it can do without? */
bool change_finds(const struct run_spec *s, const char *word);
/* Does every difference lower a limit or right? A yes to the quote covers it then. */
bool change_lowers(const struct run_spec *quoted, const struct run_spec *changed);
bool group_lowers(const struct spec_group *a, const struct spec_group *b);
/* Differences of n specs in words, *owned*; NULL: no memory. */
char *change_words(struct run_spec *const *quoted, struct run_spec *const *changed, unsigned n);

#endif
