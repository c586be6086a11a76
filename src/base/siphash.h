/* SipHash: a short keyed hash. 1-3 is enough against names chosen to collide, 2-4 where the hash
 * itself is visible. */
#ifndef BASE_SIPHASH_H
#define BASE_SIPHASH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline uint64_t siphash_rotl(uint64_t x, int n)
{
	return x << n | x >> (64 - n);
}

static inline void siphash_round(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = siphash_rotl(v[1], 13) ^ v[0];
	v[3] = siphash_rotl(v[3], 16) ^ v[2];
	v[0] = siphash_rotl(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = siphash_rotl(v[1], 17) ^ v[2];
	v[3] = siphash_rotl(v[3], 21) ^ v[0];
	v[2] = siphash_rotl(v[2], 32);
}

static inline void siphash_word(uint64_t v[4], uint64_t m, int rounds)
{
	v[3] ^= m;
	for (int i = 0; i < rounds; i++)
		siphash_round(v);
	v[0] ^= m;
}

/* `c` rounds a word, `d` at the end. Little-endian machines. */
static inline uint64_t siphash(uint64_t k0, uint64_t k1, const void *data, size_t len, int c, int d)
{
	const unsigned char *s = data;
	uint64_t m, v[4] = {k0 ^ 0x736f6d6570736575u, k1 ^ 0x646f72616e646f6du,
			    k0 ^ 0x6c7967656e657261u, k1 ^ 0x7465646279746573u};
	size_t left = len;

	for (; left >= 8; left -= 8, s += 8) {
		memcpy(&m, s, 8);
		siphash_word(v, m, c);
	}
	m = (uint64_t)len << 56;
	for (size_t i = 0; i < left; i++)
		m |= (uint64_t)s[i] << (8 * i);
	siphash_word(v, m, c);
	v[2] ^= 0xff;
	for (int i = 0; i < d; i++)
		siphash_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

#endif
