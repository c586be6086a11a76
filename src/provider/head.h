/* Heads of requests (doc/MESSAGES.md). All runs of a role and a model have the same one, so
 * the newest are kept in memory, unescaped and hashed, for all runs of the process. Any thread. */
#ifndef PROVIDER_HEAD_H
#define PROVIDER_HEAD_H

#include "base/hash.h"
#include "codec/jscan.h"

struct buf;

/* Append the head whose raw JSON string this is; *prefix: the running hash over it. AVA_ENOMEM,
 * AVA_ETOOBIG. */
int head_add(struct buf *out, struct slice raw, struct hash_sha256 *prefix);

#endif
