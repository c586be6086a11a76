/* Blocks that a client must hand back unchanged prove themselves: the mock
 * signs what it sends and checks the signature of what comes back, so nothing
 * has to be remembered. A thinking block's signature covers its text; a
 * redacted block's data covers itself; a block of another type carries a
 * member "seal" over its bytes. */
#ifndef MOCK_SIGNATURE_H
#define MOCK_SIGNATURE_H

#include <stdbool.h>
#include <stdint.h>

#include "tape.h"

uint64_t hash_bytes(uint64_t seed, const void *data, size_t len);

/* Long enough for a signature of `text`; `nonce` makes two of them differ. */
#define SIGNATURE_SIZE 96
void signature_make(const char *text, size_t len, uint64_t nonce, char out[SIGNATURE_SIZE]);
/* `text` 0: signed without a text (redacted data). */
bool signature_good(const struct tape *t, uint32_t text, uint32_t signature);

/* `out` gets ,"seal":"…"} behind an object that lacks its closing brace. */
void seal_close(struct buf *out, size_t start);
bool seal_good(const struct tape *t, uint32_t block);

#endif
