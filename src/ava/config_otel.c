/* Where traces are pushed to: the rule of services holds, since spans tell what runs
 * are about. What can fail: an address that is none, or plain http to another machine;
 * whether somebody listens there is seen when one is pushed. */
#include "ava/config_otel.h"

#include <string.h>

#include "base/env.h"
#include "base/error.h"
#include "provider/provider.h"

_Static_assert(CONFIG_OTEL_BYTES == PROVIDER_URL_MAX, "as long as an address of a service");

int config_otel(const char *name, const char *url, struct config *c, struct ava_error *err)
{
	c->otel[0] = '\0';
	return url[0] != '\0' ? provider_check_url(name, url, c->otel, err) : 0;
}

int config_otel_environment(struct config *c, struct ava_error *err)
{
	const char *url = env_get("AVA_OTEL_ENDPOINT");

	return url ? config_otel("AVA_OTEL_ENDPOINT", url, c, err) : 0;
}
