/* SHA-256 by nettle; see hash.h.
 *
 * The only file of base that needs nettle. Nothing here can fail. */
#include "base/hash.h"

#include <assert.h>
#include <nettle/sha2.h>

static_assert(sizeof(struct sha256_ctx) <= sizeof(struct hash_sha256), "nettle's state fits");

void hash_sha256_init(struct hash_sha256 *h)
{
	sha256_init((struct sha256_ctx *)(void *)h);
}

void hash_sha256_add(struct hash_sha256 *h, const void *data, size_t len)
{
	sha256_update((struct sha256_ctx *)(void *)h, len, data);
}

void hash_sha256_end(struct hash_sha256 *h, unsigned char out[32])
{
	sha256_digest((struct sha256_ctx *)(void *)h, 32, out);
}

void hash_sha256_with(const struct hash_sha256 *h, const void *data, size_t len,
		      char out[HASH_HEX_LEN + 1])
{
	static const char hex[] = "0123456789abcdef";
	struct hash_sha256 more = *h;
	unsigned char raw[32];

	hash_sha256_add(&more, data, len);
	hash_sha256_end(&more, raw);
	for (int i = 0; i < 32; i++) {
		out[2 * i] = hex[raw[i] >> 4];
		out[2 * i + 1] = hex[raw[i] & 15];
	}
	out[HASH_HEX_LEN] = '\0';
}

void hash_sha256_hex(const void *data, size_t len, char out[HASH_HEX_LEN + 1])
{
	struct hash_sha256 h;

	hash_sha256_init(&h);
	hash_sha256_with(&h, data, len, out);
}
