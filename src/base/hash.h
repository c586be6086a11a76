/* SHA-256, SHA-1 as git uses it (nettle) and CRC32C (SSE4.2 where the processor has it, else a
 * table; Debian has no library for it). */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

uint32_t crc32c(uint32_t crc, const void *data, size_t len); /* start with 0 */
/* crc32c by table only, as it is done without SSE4.2. */
uint32_t crc32c_table(uint32_t crc, const void *data, size_t len);

/* Write `len` bytes as 2 * len lower-case hex digits and a NUL. */
void hash_hex(const unsigned char *bytes, size_t len, char *out);

/* Parse 2 * len digits as hash_hex writes them; false for any other text, and for NULL. */
bool hash_unhex(const char *hex, unsigned char *out, size_t len);

#define HASH_HEX_LEN 64
bool hash_from_hex(const char *hex, unsigned char out[32]); /* the same of 64 digits */
void hash_sha256(const void *data, size_t len, unsigned char out[32]);
void hash_sha256_hex(const void *data, size_t len, char out[HASH_HEX_LEN + 1]);

/* HMAC-SHA-256 of `head` and what follows it. */
void hash_hmac(const void *key, size_t nkey, const char *head, const void *data, size_t len,
	       unsigned char out[32]);

/* Git's id for a file of these bytes: 40 digits. For comparing with git's ids; SHA-1 does not
 * stop a person who makes two files of one id. */
void hash_git_blob(const void *data, size_t len, char out[41]);

/* Running hash over several pieces. */
struct hash_sha256 {
	uint64_t opaque[16];
};
void hash_sha256_init(struct hash_sha256 *h);
void hash_sha256_add(struct hash_sha256 *h, const void *data, size_t len);
void hash_sha256_end(struct hash_sha256 *h, unsigned char out[32]);
/* The state behind the whole blocks of HASH_BLOCK bytes that were added, and a hash that goes on
 * from there: bytes behind the last whole block are to be added again. */
#define HASH_BLOCK 64
void hash_sha256_save(const struct hash_sha256 *h, unsigned char state[32]);
void hash_sha256_load(struct hash_sha256 *h, const unsigned char state[32], uint64_t blocks);
/* Digest with `data` appended; `h` stays as it was. */
void hash_sha256_with(const struct hash_sha256 *h, const void *data, size_t len,
		      char out[HASH_HEX_LEN + 1]);

#endif
