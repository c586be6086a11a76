/* The connected half of libava: struct backend over the daemon's HTTP API. */
#ifndef CLIENT_REMOTE_H
#define CLIENT_REMOTE_H

#include "client/backend.h"

/* The daemon of `root` (absolute), started when none serves and `start` is
 * set. Codes as client_open. */
int remote_open(const char *root, bool start, struct backend **out, struct ava_error *err);

#endif
