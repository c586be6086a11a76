/* Heads of requests (doc/MESSAGES.md). All runs of a role and a model have the same one, so it
 * stands once in the data root, in heads/ under the SHA-256 of its bytes: its name. The lines of a
 * conversation refer to it by that, and the newest are kept in memory, hashed. Any thread. */
#ifndef PROVIDER_HEAD_H
#define PROVIDER_HEAD_H

#include <stdbool.h>

#include "base/hash.h"
#include "codec/jscan.h"

struct ava_error;
struct buf;

#define HEAD_PATH 80 /* bytes of a path of a head, with its NUL */

/* Keep a head, *copied*, and tell its name and the running hash over it. AVA_ENOMEM. */
int head_keep(const char *text, size_t len, char name[HASH_HEX_LEN + 1],
	      struct hash_sha256 *prefix);
/* Append the head of that name, read below `root_fd` when it is not in memory. AVA_ENOENT: it is
 * not, and `root_fd` is below 0; AVA_ECORRUPT: its file is missing or damaged; AVA_EIO,
 * AVA_ENOMEM, AVA_ETOOBIG. */
int head_add(struct buf *out, int root_fd, struct slice name, struct hash_sha256 *prefix,
	     struct ava_error *err);
void head_path(struct slice name, char path[HEAD_PATH]); /* "heads/…" below the data root */

#endif
