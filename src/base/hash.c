/* CRC32C (Castagnoli, reflected, polynomial 0x82f63b78), the checksum of
 * journal batches; see hash.h.
 *
 * x86 processors since 2008 compute it in one instruction for 8 bytes; where
 * that is missing the table does, a byte at a time. Nothing here can fail. */
#include "base/hash.h"

#include <assert.h>
#include <nettle/hmac.h>
#include <nettle/sha1.h>
#include <nettle/sha2.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"

static uint32_t table[256]; /* by fill_table: the sum of each byte */

static void fill_table(void)
{
	for (uint32_t i = 0; i < ARRAY_LEN(table); i++) {
		table[i] = i;
		for (int bit = 0; bit < 8; bit++)
			table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0x82f63b78 : 0);
	}
}

uint32_t crc32c_table(uint32_t crc, const void *data, size_t len)
{
	static pthread_once_t filled = PTHREAD_ONCE_INIT;
	const unsigned char *p = data;

	pthread_once(&filled, fill_table);
	crc = ~crc;
	for (size_t i = 0; i < len; i++)
		crc = crc >> 8 ^ table[(crc ^ p[i]) & 0xff];
	return ~crc;
}

#ifdef __x86_64__
__attribute__((target("sse4.2"))) static uint32_t crc32c_sse(uint32_t crc, const void *data,
							     size_t len)
{
	const unsigned char *p = data;
	uint64_t c = ~crc, word;

	for (; len >= 8; len -= 8, p += 8) {
		memcpy(&word, p, 8);
		c = __builtin_ia32_crc32di(c, word);
	}
	for (; len > 0; len--)
		c = __builtin_ia32_crc32qi((uint32_t)c, *p++);
	return ~(uint32_t)c;
}
#endif

uint32_t crc32c(uint32_t crc, const void *data, size_t len)
{
#ifdef __x86_64__
	if (__builtin_cpu_supports("sse4.2"))
		return crc32c_sse(crc, data, len);
#endif
	return crc32c_table(crc, data, len);
}

/* ---- SHA-256 by nettle; see hash.h.
 *
 * The only file of base that needs nettle. Nothing here can fail. */

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

void hash_sha256_save(const struct hash_sha256 *h, unsigned char state[32])
{
	const struct sha256_ctx *c = (const void *)h;

	for (int i = 0; i < 32; i++)
		state[i] = (unsigned char)(c->state[i / 4] >> (24 - i % 4 * 8));
}

void hash_sha256_load(struct hash_sha256 *h, const unsigned char state[32], uint64_t blocks)
{
	struct sha256_ctx *c = (void *)h;

	hash_sha256_init(h);
	for (int i = 0; i < 32; i++)
		c->state[i / 4] = c->state[i / 4] << 8 | state[i];
	c->count = blocks;
}

void hash_hex(const unsigned char *bytes, size_t len, char *out)
{
	for (size_t i = 0; i < len; i++) {
		out[2 * i] = "0123456789abcdef"[bytes[i] >> 4];
		out[2 * i + 1] = "0123456789abcdef"[bytes[i] & 15];
	}
	out[2 * len] = '\0';
}

bool hash_unhex(const char *hex, unsigned char *out, size_t len)
{
	static const char digits[] = "0123456789abcdef";

	if (hex == NULL || strspn(hex, digits) != 2 * len || hex[2 * len] != '\0')
		return false;
	for (size_t i = 0; i < len; i++)
		out[i] = (unsigned char)((strchr(digits, hex[2 * i]) - digits) << 4 |
					 (strchr(digits, hex[2 * i + 1]) - digits));
	return true;
}

bool hash_from_hex(const char *hex, unsigned char out[32])
{
	return hash_unhex(hex, out, 32);
}

void hash_sha256_with(const struct hash_sha256 *h, const void *data, size_t len,
		      char out[HASH_HEX_LEN + 1])
{
	struct hash_sha256 more = *h;
	unsigned char raw[32];

	hash_sha256_add(&more, data, len);
	hash_sha256_end(&more, raw);
	hash_hex(raw, sizeof(raw), out);
}

void hash_sha256(const void *data, size_t len, unsigned char out[32])
{
	struct hash_sha256 h;

	hash_sha256_init(&h);
	hash_sha256_add(&h, data, len);
	hash_sha256_end(&h, out);
}

void hash_sha256_hex(const void *data, size_t len, char out[HASH_HEX_LEN + 1])
{
	struct hash_sha256 h;

	hash_sha256_init(&h);
	hash_sha256_with(&h, data, len, out);
}

void hash_hmac(const void *key, size_t nkey, const char *head, const void *data, size_t len,
	       unsigned char out[32])
{
	struct hmac_sha256_ctx h;

	hmac_sha256_set_key(&h, nkey, key);
	hmac_sha256_update(&h, strlen(head), (const uint8_t *)head);
	hmac_sha256_update(&h, len, data);
	hmac_sha256_digest(&h, SHA256_DIGEST_SIZE, out);
	explicit_bzero(&h, sizeof(h));
}

void hash_git_blob(const void *data, size_t len, char out[41])
{
	unsigned char id[SHA1_DIGEST_SIZE];
	struct sha1_ctx h;
	char head[32];
	int n = snprintf(head, sizeof(head), "blob %zu", len);

	sha1_init(&h);
	sha1_update(&h, (size_t)n + 1, (const uint8_t *)head);
	if (len > 0)
		sha1_update(&h, len, data);
	sha1_digest(&h, sizeof(id), id);
	hash_hex(id, sizeof(id), out);
}
