/* The services that models are had from: where they are, how they are spoken
 * to, which key they want. A table of four, filled once at the start from
 * defaults, config.yaml, $XDG_CONFIG_HOME/ava/env and the environment. One
 * thread; the pointers are good as long as the program. */
#ifndef PROVIDER_PROVIDER_H
#define PROVIDER_PROVIDER_H

#include <stdbool.h>
#include <stddef.h>

struct ava_error;
struct dialect;

#define PROVIDER_URL_MAX 256

struct provider {
	const char *name; /* "anthropic", "openrouter", "openai", "local" */
	const struct dialect *dialect;
	char base_url[PROVIDER_URL_MAX]; /* without "/" at its end; "": none is known (local) */
	bool needs_key;
	bool http2;           /* over TLS */
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
/* AVA_EUNSUPPORTED when it is not usable: "<what> needs ANTHROPIC_API_KEY: …". */
int provider_require(const struct provider *p, const char *what, struct ava_error *err);

/* Its own, when nobody says another; "" for local. */
const char *provider_default_url(const struct provider *p);

/* What config.yaml says; "" takes it back. Good after provider_configure. */
int provider_set(const char *name, const char *base_url, const char *model, struct ava_error *err);
/* Bring keys (base/keys.h), environment, config and defaults together.
 * AVA_EINVAL names the variable or key that cannot be. */
int provider_configure(struct ava_error *err);

/* http or https, a host, no user, query or fragment; http on loopback only.
 * Trailing "/" are left out of `out`. `what` names it in the sentence. */
int provider_check_url(const char *what, const char *url, char out[PROVIDER_URL_MAX],
		       struct ava_error *err);

#endif
