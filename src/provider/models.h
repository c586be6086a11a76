/* What is known of models: window, prices, what they accept. Rows that are
 * built in, and before them those of config.yaml. Data only; provider/dialect.h
 * has model_resolve. One thread. */
#ifndef PROVIDER_MODELS_H
#define PROVIDER_MODELS_H

#include <stddef.h>
#include <stdint.h>

#include "agent/agent.h"
#include "provider/dialect.h"

struct ava_error;
struct provider;

struct model_row {
	const char *id;      /* "anthropic/claude-haiku-5-5" */
	const char *aliases; /* a blank between two; NULL: none */
	int64_t context, max_output;
	struct agent_price price; /* -1: unknown */
	enum model_thinking thinking;
	int64_t cache_min;
	const char *rejects; /* parameters, a blank between two; "" */
};

#define MODELS_MAX    256 /* rows of config.yaml */
#define FALLBACKS_MAX 16

#define MODEL_DEFAULT_CONTEXT 128000 /* of a model no table has */
#define MODEL_LOCAL_CONTEXT   32768
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

#endif
