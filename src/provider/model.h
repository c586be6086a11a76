/* Models: what is known of them (window, prices, what they accept), in rows that are built
 * in and before them those of config.yaml, and from an alias or id to a model that can be
 * called. The rows are of one thread. */
#ifndef PROVIDER_MODEL_H
#define PROVIDER_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/agent.h"
#include "provider/provider_url.h"

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
	const struct provider *provider; /* NULL: offline */
	enum model_thinking thinking;
	int64_t cache_min;            /* tokens from which a prefix is cached; 0: not, or unknown */
	const char *max_tokens_field; /* static: "max_tokens", "max_completion_tokens" */
	char drop[320]; /* parameters, and forms of profile.h, that it rejects; see below */
	bool known;     /* a table has it; else its facts are defaults */
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

/* ---- dialects. Some models are served in another one than their service's: a row of
 * config.yaml says so, or the service when it refuses. */

/* Speak to it in the dialect of that name; false: its service does not take that. */
bool model_speak(struct model *m, const char *dialect);
/* The one that a refusal in these words asks for; NULL: that is not what it says. */
const struct dialect *model_other_dialect(const struct model *m, const char *refusal);
/* From now on models of this id are spoken to as *m is. false: the other dialect was learned
 * before, so that both were refused. From any thread. */
bool model_learn_dialect(const struct model *m);

/* What stands behind the colon of offline:FILE, an absolute path; else "". */
const char *model_config(const struct model *m);

/* May the parameter ("temperature", "tool_choice", …) be sent? `m` NULL: nothing is known. */
bool model_takes(const struct model *m, const char *parameter);
/* From now on it may not (a service rejected it). false: the list is full, or
 * it is no name of a parameter. */
bool model_drop(struct model *m, const char *parameter);

/* One copy of a model for all that use it: ten thousand runs of one model wait with a
 * pointer each. The same as *m, good until it is given back; NULL: no memory. From any
 * thread. */
const struct model *model_share(const struct model *m);
void model_unshare(const struct model *m); /* NULL is fine */

/* "3", "0.25", ".5": plain decimals with up to six digits after the point, US dollars, to
 * micro-USD exactly; 0 to PRICE_MAX_USD. AVA_EINVAL: it is none. */
#define PRICE_MAX_USD 100000
int price_parse(const char *text, int64_t *microusd);

/* ---- rows */

/* Ids to try in this order when a model is overloaded (models.fallback of
 * config.yaml); *n of them, 0: none. Borrowed as long as the program. */
const char *const *model_fallback(size_t *n);

struct model_row {
	const char *id;      /* "anthropic/claude-haiku-5-5" */
	const char *aliases; /* a blank between two; NULL: none */
	int64_t context, max_output;
	struct agent_price price; /* -1: unknown */
	enum model_thinking thinking;
	int64_t cache_min;
	const char *rejects;           /* parameters, a blank between two; "" */
	const struct dialect *dialect; /* NULL: that of its service */
};

#define MODELS_MAX    256 /* rows of config.yaml */
#define FALLBACKS_MAX 16

#define MODEL_DEFAULT_CONTEXT 128000 /* of a model no table has */
#define MODEL_LOCAL_CONTEXT   32768
#define MODEL_UNNAMED         "local/default" /* nobody said which of a local server's */
#define MODEL_DEFAULT_OUTPUT  8192
/* A call reserves the cost of its whole output, so less than most models can
 * is asked for unless config.yaml says so. */
#define MODEL_OUTPUT_PER_CALL 16384

/* "2026-11": when the prices that are built in were read, and where. */
extern const char *const models_date, *const models_source;

/* The i-th built-in row; NULL behind the last. */
const struct model_row *models_builtin(size_t i);

/* The row for an id of a service ("anthropic/claude-haiku-4-5-20251001",
 * "openrouter/anthropic/claude-haiku-4.5"): config.yaml's, else the built-in
 * one, also without the date of a snapshot, also that of the service behind
 * OpenRouter. NULL: none. */
const struct model_row *models_find(const char *id);
/* Of the same model in the built-in table only: what a row of config.yaml
 * leaves out. */
const struct model_row *models_find_builtin(const char *id);
/* The id that an alias stands for: config.yaml's, else what `p` has of it.
 * NULL: no such alias, or `p` has none for it. */
const char *models_alias(const char *alias, const struct provider *p);
/* One of ours or of config.yaml, whoever has it. */
bool models_is_alias(const char *alias);
/* Closest alias for a misspelt one; NULL: none is near. */
const char *models_near(const char *name);

/* Rows of config.yaml, *copied*. AVA_EEXIST: the id or an alias stands there
 * already; AVA_ETOOBIG; AVA_ENOMEM. */
int models_add(const struct model_row *row, struct ava_error *err);
int models_add_fallback(const char *id, struct ava_error *err);
void models_clear_fallback(void);
/* models.default; "" or NULL: none. */
int models_set_default(const char *name, struct ava_error *err);
const char *models_default(void); /* NULL: none */
/* Of Ava herself, ava.model; as above. */
int models_set_ava(const char *name, struct ava_error *err);
const char *models_ava(void);
/* The i-th row of config.yaml; NULL behind the last. */
const struct model_row *models_own(size_t i);
/* Forget all of config.yaml's. */
void models_reset(void);

/* ---- services: where they are, how they are spoken to, which key they want. A table of
 * four, filled once at the start from defaults, config.yaml, $XDG_CONFIG_HOME/ava/env and
 * the environment. One thread; the pointers are good as long as the program. */

struct provider {
	const char *name; /* "anthropic", "openrouter", "openai", "local" */
	const struct dialect *dialect;
	char base_url[PROVIDER_URL_MAX]; /* without "/" at its end; "": none is known (local) */
	bool needs_key;
	bool http2;           /* over TLS */
	const char *own_url;  /* when nobody says another; "" for local */
	const char *key_name; /* the variables: "ANTHROPIC_API_KEY" */
	const char *url_name; /* "ANTHROPIC_BASE_URL" */
	char model[128];      /* local: the model that aliases stand for; else "" */
	char set_url[PROVIDER_URL_MAX], set_model[128]; /* config.yaml's; "" */
};

/* In the order in which a default is looked for; NULL behind the last. */
const struct provider *provider_at(size_t i);
/* NULL: there is none of that name. */
const struct provider *provider_find(const char *name, size_t len);

/* Borrowed until the keys are loaded anew; NULL: none. */
const char *provider_key(const struct provider *p);
/* It has what it needs: a key, or for local an address. */
bool provider_usable(const struct provider *p);
/* It is not usable, though half of what it needs is there: which half is missing, in a sentence. */
bool provider_lacks(const struct provider *p, char *text, size_t size);
/* No service is usable, and one lacks a half: why the offline model stands in, in a sentence. */
bool model_lacks(char *text, size_t size);
/* There is a version in the paths of its calls: /v1, /v1beta/openai, /api/paas/v4. */
bool provider_versioned(const struct provider *p);
/* AVA_EUNSUPPORTED when it is not usable: "<what> needs ANTHROPIC_API_KEY: …". */
int provider_require(const struct provider *p, const char *what, struct ava_error *err);

/* What config.yaml says; "" takes it back. Good after provider_configure. */
int provider_set(const char *name, const char *base_url, const char *model, struct ava_error *err);
/* Bring keys (base/keys.h), environment, config and defaults together.
 * AVA_EINVAL names the variable or key that cannot be. */
int provider_configure(struct ava_error *err);

/* The service `local`, or one whose address is near (provider_url.h): likely slow and free. NULL
 * (offline): no. */
bool provider_is_near(const struct provider *p);

#endif
