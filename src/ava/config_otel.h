/* otel.endpoint of config.yaml, and its variable. */
#ifndef AVA_CONFIG_OTEL_H
#define AVA_CONFIG_OTEL_H

#include "ava/config.h"

struct ava_error;

/* The address that `name` says; "": none. The rule of services holds: https, or http
 * to this machine. AVA_EINVAL. */
int config_otel(const char *name, const char *url, struct config *c, struct ava_error *err);
/* AVA_OTEL_ENDPOINT over what is there; "" takes away what the file says. */
int config_otel_environment(struct config *c, struct ava_error *err);

#endif
