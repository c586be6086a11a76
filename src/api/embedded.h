/* The embedded half of libava: struct backend over the runtime itself. */
#ifndef API_EMBEDDED_H
#define API_EMBEDDED_H

#include "client/backend.h"

/* Codes as ava_runtime_new. `o` was checked to have a root. */
int embedded_open(const struct ava_options *o, struct backend **out, struct ava_error *err);

#endif
