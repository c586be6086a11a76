/* The address of a model service: ANTHROPIC_BASE_URL and the like. Pure. */
#ifndef PROVIDER_PROVIDER_URL_H
#define PROVIDER_PROVIDER_URL_H

#include <stdbool.h>

struct ava_error;

#define PROVIDER_URL_MAX 256

/* Check an address: http or https, a host, no user, query or fragment; http on loopback only.
 * Trailing "/" are left out of `out`. `what` names the setting in the sentence. */
int provider_url_check(const char *what, const char *url, char out[PROVIDER_URL_MAX],
		       struct ava_error *err);
/* Is the address this machine's or on a private network: 10/8, 172.16/12, 192.168/16, link-local,
 * fc00::/7, *.local, localhost? "": no. */
bool provider_url_is_near(const char *url);

#endif
