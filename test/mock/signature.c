/* Signatures of the mock: a keyed 64-bit hash, in the look of the real ones
 * (base64 alphabet). It only has to catch mistakes, not attackers. */
#include "signature.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const uint64_t secret = 0x6d6f636b2d6d6f64u;

uint64_t hash_bytes(uint64_t seed, const void *data, size_t len)
{
	const unsigned char *p = data;
	uint64_t h = seed ^ (len * 0x9e3779b97f4a7c15u), word;

	for (; len >= 8; len -= 8, p += 8) {
		memcpy(&word, p, 8);
		h = (h ^ word) * 0xff51afd7ed558ccdu;
		h ^= h >> 32;
	}
	for (; len > 0; len--, p++)
		h = (h ^ *p) * 0x100000001b3u;
	h ^= h >> 29;
	h *= 0xc4ceb9fe1a85ec53u;
	return h ^ (h >> 32);
}

/* "Eu" nonce MAC, the look of base64 with padding. */
void signature_make(const char *text, size_t len, uint64_t nonce, char out[SIGNATURE_SIZE])
{
	uint64_t mac = hash_bytes(secret ^ nonce, text, len);

	snprintf(out, SIGNATURE_SIZE, "EuYBCkYIC/%016" PRIx64 "+%016" PRIx64 "/GhIMaXJlCg==", nonce,
		 mac);
}

bool signature_good(const struct tape *t, uint32_t text, uint32_t signature)
{
	char got[SIGNATURE_SIZE + 8], want[SIGNATURE_SIZE];
	uint64_t nonce;
	struct buf b;

	tape_copy(t, signature, got, sizeof got);
	if (sscanf(got, "EuYBCkYIC/%16" SCNx64 "+", &nonce) != 1)
		return false;
	buf_init(&b, 1u << 26);
	tape_text(t, text, &b);
	signature_make(b.len ? b.data : "", b.len, nonce, want);
	buf_fini(&b);
	return strcmp(got, want) == 0;
}

void seal_close(struct buf *out, size_t start)
{
	uint64_t mac = hash_bytes(secret, out->data + start, out->len - start);

	buf_addf(out, ",\"seal\":\"%016" PRIx64 "\"}", mac);
}

bool seal_good(const struct tape *t, uint32_t block)
{
	static const char tail[] = ",\"seal\":\"0123456789abcdef\"}";
	size_t len;
	const char *raw = tape_raw(t, block, &len);
	uint64_t mac;

	if (len < sizeof tail || memcmp(raw + len - strlen(tail), tail, 9) != 0)
		return false;
	if (sscanf(raw + len - strlen(tail) + 9, "%16" SCNx64, &mac) != 1)
		return false;
	return mac == hash_bytes(secret, raw, len - strlen(tail));
}
