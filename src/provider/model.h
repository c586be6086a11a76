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
	MODEL_THINKING_NONE,     /* thinking cannot be asked for */
	MODEL_THINKING_BUDGET,   /* thinking is asked for by a budget of tokens */
	MODEL_THINKING_ADAPTIVE, /* the model decides; an effort may be given */
};

struct model {
	char id[264]; /* canonical: "offline", "offline:FILE", "anthropic/…" */
	const struct dialect *dialect;
	struct agent_price price; /* offline, local: all 0 */
	int64_t max_output;       /* most tokens of one call's output */
	int64_t context;          /* the model's window, tokens */

	/* Facts of remote models; "", NULL, 0 for offline. */
	char wire_name[128];             /* the model's name at the service */
	const struct provider *provider; /* NULL: offline */
	enum model_thinking thinking;
	int64_t cache_min; /* fewest tokens of a cached prefix; 0: no cache, or unknown */
	const char *max_tokens_field; /* static: "max_tokens", "max_completion_tokens" */
	/* parameters, and words of profile.h, that the model rejects (model_takes) */
	char drop[320];
	bool known; /* a table has the model; else its facts are defaults */
};

/* Find the model of `name`: an id, an alias (claude-haiku …) or NULL for the default. Without a
 * configured provider every alias resolves to offline; *why says so (static, good until the next
 * call). AVA_EINVAL: unknown model. AVA_EUNSUPPORTED: its service has no key. */
int model_resolve(const char *name, struct model *out, const char **why, struct ava_error *err);

/* Find the model of a stored id. A service whose key is gone meanwhile fails its calls
 * (provider_require), not this. AVA_EINVAL: no such id. */
int model_restore(const char *id, struct model *out, struct ava_error *err);

/* ---- dialects. A model may need another dialect than its service's: config.yaml says so, or the
 * service's refusal does. */

/* Switch to the dialect of that name; false: the service does not take it. */
bool model_speak(struct model *m, const char *dialect);
/* The dialect that a refusal asks for; NULL: it asks for none. */
const struct dialect *model_other_dialect(const struct model *m, const char *refusal);
/* Remember the dialect of *m for all models of its id. false: the other dialect was learned before,
 * so that both were refused. From any thread. */
bool model_learn_dialect(const struct model *m);

/* The text behind the colon of offline:FILE, an absolute path; else "". */
const char *model_config(const struct model *m);

/* May the parameter ("temperature", "tool_choice", …) be sent? `m` NULL: nothing is known. */
bool model_takes(const struct model *m, const char *parameter);
/* Stop sending a parameter that a service rejected. false: the list is full, or the name is no
 * parameter's. */
bool model_drop(struct model *m, const char *parameter);

/* A shared copy of *m (ten thousand runs of one model hold a pointer each), valid until it is
 * unshared; NULL: no memory. From any thread. */
const struct model *model_share(const struct model *m);
void model_unshare(const struct model *m); /* NULL is fine */

/* Parse a price in US dollars, "3", "0.25", ".5" (plain decimals, up to six digits after the
 * point), to micro-USD exactly; 0 to PRICE_MAX_USD. AVA_EINVAL: it is none. */
#define PRICE_MAX_USD 100000
int price_parse(const char *text, int64_t *microusd);

/* ---- rows */

/* Ids to try in this order when a model is overloaded (models.fallback of
 * config.yaml); *n of them, 0: none. Borrowed as long as the program. */
const char *const *model_fallback(size_t *n);

struct model_row {
	const char *id;      /* "anthropic/claude-haiku-5-5" */
	const char *aliases; /* aliases with a blank between two; NULL: none */
	int64_t context, max_output;
	struct agent_price price; /* -1: unknown */
	enum model_thinking thinking;
	int64_t cache_min;
	const char *rejects;           /* parameters it rejects, a blank between two; "": none */
	const struct dialect *dialect; /* NULL: the service's dialect */
};

#define MODELS_MAX    256 /* most rows of config.yaml */
#define FALLBACKS_MAX 16

#define MODEL_DEFAULT_CONTEXT 128000 /* window of a model in no table, tokens */
#define MODEL_LOCAL_CONTEXT   32768
#define MODEL_UNNAMED         "local/default" /* a local server's model that nobody named */
#define MODEL_DEFAULT_OUTPUT  8192
/* Output asked for unless config.yaml says otherwise; below most models' maximum, since a call
 * reserves the cost of its whole output. */
#define MODEL_OUTPUT_PER_CALL 16384

/* Month ("2026-11") and place where the built-in prices were read. */
extern const char *const models_date, *const models_source;

/* The i-th built-in row; NULL behind the last. */
const struct model_row *models_builtin(size_t i);

/* The row for an id of a service: config.yaml's, else the built-in one. Ids with a snapshot date
 * ("anthropic/claude-haiku-4-5-20251001") and of OpenRouter
 * ("openrouter/anthropic/claude-haiku-4.5") match the plain model's row. NULL: none. */
const struct model_row *models_find(const char *id);
/* The built-in row for an id: fills the fields that config.yaml leaves out. */
const struct model_row *models_find_builtin(const char *id);
/* The id that an alias stands for: config.yaml's, else that of service `p`. NULL: no such alias, or
 * `p` has no id for it. */
const char *models_alias(const char *alias, const struct provider *p);
/* Is the name an alias, built in or of config.yaml, of any service? */
bool models_is_alias(const char *alias);
/* Closest alias for a misspelt one; NULL: none. */
const char *models_near(const char *name);

/* Add rows of config.yaml, *copied*. AVA_EEXIST: the id or an alias was added already; AVA_ETOOBIG;
 * AVA_ENOMEM. */
int models_add(const struct model_row *row, struct ava_error *err);
int models_add_fallback(const char *id, struct ava_error *err);
void models_clear_fallback(void);
/* Set models.default; "" or NULL: none. */
int models_set_default(const char *name, struct ava_error *err);
const char *models_default(void); /* NULL: none */
/* Set ava.model, the model of Ava herself; as above. */
int models_set_ava(const char *name, struct ava_error *err);
const char *models_ava(void);
/* The i-th row of config.yaml; NULL behind the last. */
const struct model_row *models_own(size_t i);
/* Forget all that came from config.yaml. */
void models_reset(void);

/* ---- services: address, dialect and key of each. A table of four, filled once at the start from
 * defaults, config.yaml, $XDG_CONFIG_HOME/ava/env and the environment. One thread; the pointers are
 * good as long as the program. */

struct provider {
	const char *name; /* "anthropic", "openrouter", "openai", "local" */
	const struct dialect *dialect;
	char base_url[PROVIDER_URL_MAX]; /* without a trailing "/"; "": unknown (local) */
	bool needs_key;
	bool http2;           /* HTTP/2, over TLS only */
	const char *own_url;  /* the default for base_url; "" for local */
	const char *key_name; /* name of the key's variable: "ANTHROPIC_API_KEY" */
	const char *url_name; /* name of the address's variable: "ANTHROPIC_BASE_URL" */
	char model[128];      /* local: the model that aliases stand for; else "" */
	char set_url[PROVIDER_URL_MAX], set_model[128]; /* as config.yaml has them; "": not set */
};

/* The i-th service, in the order in which a default is looked for; NULL behind the last. */
const struct provider *provider_at(size_t i);
/* The service of that name; NULL: none. */
const struct provider *provider_find(const char *name, size_t len);

/* The service's key, borrowed until the keys are loaded anew; NULL: none. */
const char *provider_key(const struct provider *p);
/* Has the service what it needs: a key, or for local an address? */
bool provider_usable(const struct provider *p);
/* The service is not usable, though half of what it needs is set (an address without its key; for
 * local a model without the address): name the missing half, in a sentence. */
bool provider_lacks(const struct provider *p, char *text, size_t size);
/* No service is usable, and one is set by half: say in a sentence why the offline model stands
 * in. */
bool model_lacks(char *text, size_t size);
/* Do the paths of the service's calls hold a version: /v1, /v1beta/openai, /api/paas/v4? */
bool provider_versioned(const struct provider *p);
/* Require that the service is usable, else AVA_EUNSUPPORTED: "<what> needs ANTHROPIC_API_KEY:
 * …". */
int provider_require(const struct provider *p, const char *what, struct ava_error *err);

/* Set a service's address and model from config.yaml; "" takes one back. Effective after
 * provider_configure. */
int provider_set(const char *name, const char *base_url, const char *model, struct ava_error *err);
/* Bring keys (base/keys.h), environment, config and defaults together. AVA_EINVAL names the
 * variable or key that is invalid. */
int provider_configure(struct ava_error *err);

/* Is the service `local`, or its address near (provider_url.h): likely slow and free? NULL
 * (offline): no. */
bool provider_is_near(const struct provider *p);

#endif
