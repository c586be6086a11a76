/* Models: an alias or id to its dialect, the name on the wire, price and what
 * it accepts. */
#ifndef PROVIDER_MODEL_H
#define PROVIDER_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent.h"

struct ava_error;
struct dialect;
struct provider;

enum model_thinking {
	MODEL_THINKING_NONE,     /* cannot be asked for */
	MODEL_THINKING_BUDGET,   /* by a budget of tokens */
	MODEL_THINKING_ADAPTIVE, /* the model decides; an effort may be given */
};

struct model {
	char id[264]; /* canonical: "offline", "offline:FILE", "anthropic/…" */
	const struct dialect *dialect;
	struct agent_price price; /* offline, local: all 0 */
	int64_t max_output;       /* per call */
	int64_t context;          /* window, tokens */

	/* Of remote ones; of offline: "", NULL, 0. */
	char wire_name[128];             /* as the service names it */
	const struct provider *provider; /* provider/provider.h; NULL: offline */
	enum model_thinking thinking;
	int64_t cache_min;            /* tokens from which a prefix is cached; 0: not, or unknown */
	const char *max_tokens_field; /* static: "max_tokens", "max_completion_tokens" */
	char drop[160];               /* parameters it rejects, a blank between two; see below */
	bool known;                   /* a table has it; else its facts are defaults */
};

/* `name` an id, an alias (claude-haiku …) or NULL for the default. Without a
 * configured provider every alias resolves to offline; *why says so (static,
 * good until the next call).
 * AVA_EINVAL: unknown model. AVA_EUNSUPPORTED: its service has no key. */
int model_resolve(const char *name, struct model *out, const char **why, struct ava_error *err);

/* The same for an id that was resolved before and stored: a service whose key
 * is gone meanwhile is an error of its calls (provider_require), not of what
 * is stored. AVA_EINVAL: it is no such id. */
int model_restore(const char *id, struct model *out, struct ava_error *err);

/* What stands behind the colon of offline:FILE, an absolute path; else "". */
const char *model_config(const struct model *m);

/* May the parameter ("temperature", "tool_choice", …) be sent? `m` NULL: nothing is known. */
bool model_takes(const struct model *m, const char *parameter);
/* From now on it may not (a service rejected it). false: the list is full, or
 * it is no name of a parameter. */
bool model_drop(struct model *m, const char *parameter);

/* Ids to try in this order when a model is overloaded (models.fallback of
 * config.yaml); *n of them, 0: none. Borrowed as long as the program. */
const char *const *model_fallback(size_t *n);

#endif
