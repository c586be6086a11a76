/* Whole numbers as bytes of a file, least significant first, at any address. */
#ifndef BASE_LE_H
#define BASE_LE_H

#include <stdint.h>

static inline void put16(unsigned char *p, uint32_t n)
{
	p[0] = (unsigned char)n;
	p[1] = (unsigned char)(n >> 8);
}

static inline void put32(unsigned char *p, uint32_t n)
{
	put16(p, n);
	put16(p + 2, n >> 16);
}

static inline void put64(unsigned char *p, uint64_t n)
{
	put32(p, (uint32_t)n);
	put32(p + 4, (uint32_t)(n >> 32));
}

static inline uint32_t get16(const unsigned char *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8;
}

static inline uint32_t get32(const unsigned char *p)
{
	return get16(p) | get16(p + 2) << 16;
}

static inline uint64_t get64(const unsigned char *p)
{
	return get32(p) | (uint64_t)get32(p + 4) << 32;
}

#endif
