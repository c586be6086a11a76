/* The key that seals: made at first use, 0600 below seals/ of the data root,
 * its public part listed beside it. */
#ifndef JOURNAL_SEAL_KEY_H
#define JOURNAL_SEAL_KEY_H

#include <stddef.h>

#include "journal/seal_read.h"

struct seal_key {
	unsigned char pub[SEAL_KEY], secret[64];
};

/* Read it, or make it when there is none; its public part is listed in
 * seals/public when it returns 0. A key that cannot be read is an error, never
 * replaced. */
int seal_key_open(struct seal_key *k, int rootfd, struct ava_error *err);
void seal_key_close(struct seal_key *k); /* wipes it */
void seal_key_sign(const struct seal_key *k, const void *msg, size_t len,
		   unsigned char sig[SEAL_SIG]);

#endif
