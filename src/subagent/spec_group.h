/* The part of a run's spec that says which group it belongs to. It is confirmed
 * with the rest and stands in the first line of messages.jsonl, so that a group
 * can be taken up from any run of it. */
#ifndef SUBAGENT_SPEC_GROUP_H
#define SUBAGENT_SPEC_GROUP_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct ava_error;
struct jw;
struct run_spec;

#define SPEC_GROUP_MAX 100 /* runs of a group */

struct spec_group {
	const char *id;        /* "G-7f3a2b"; "" (or NULL in a request): none */
	int64_t cost_microusd; /* of all of them; -1: only each one's own limit holds */
	int64_t time_ms;       /* from the start of the first; 0: likewise */
	int index, size;       /* 1 to `size` */
	bool share;            /* may read what the others have found */
	bool chain;            /* one after another */
	const char *then;      /* chain: configs of those that follow, a JSON array; or NULL */
};

void spec_group_write(struct jw *w, const struct spec_group *g); /* nothing for "" */
/* Copy it into the spec. `g` NULL: none. AVA_EINVAL, AVA_ENOMEM. */
int spec_group_take(struct run_spec *r, const struct spec_group *g, struct ava_error *err);
int spec_group_from_json(struct run_spec *r, const json_t *config, struct ava_error *err);

#endif
