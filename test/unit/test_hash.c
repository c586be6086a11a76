/* Published vectors; instruction against table; pieces against the whole. */
#include "unit.h"

#include <string.h>

#include "base/hash.h"

TEST(crc_vectors)
{
	unsigned char block[32];

	assert_int_equal(crc32c(0, "", 0), 0);
	assert_int_equal(crc32c(0, "123456789", 9), 0xe3069283);
	assert_int_equal(crc32c_table(0, "123456789", 9), 0xe3069283);
	memset(block, 0, sizeof(block)); /* RFC 3720, B.4 */
	assert_int_equal(crc32c(0, block, 32), 0x8a9136aa);
	memset(block, 0xff, sizeof(block));
	assert_int_equal(crc32c(0, block, 32), 0x62a8ab43);
	for (int i = 0; i < 32; i++)
		block[i] = (unsigned char)i;
	assert_int_equal(crc32c(0, block, 32), 0x46dd794e);
	assert_int_equal(crc32c_table(0, block, 32), 0x46dd794e);
}

TEST(crc_both_ways)
{
	unsigned char data[200];

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)(i * i + 7 * i);
	for (size_t from = 0; from < 9; from++)
		for (size_t len = 0; from + len <= sizeof(data); len++)
			assert_int_equal(crc32c(9, data + from, len),
					 crc32c_table(9, data + from, len));
	for (size_t cut = 0; cut <= sizeof(data); cut++)
		assert_int_equal(crc32c(crc32c(0, data, cut), data + cut, sizeof(data) - cut),
				 crc32c(0, data, sizeof(data)));
}

TEST(sha256)
{
	char hex[HASH_HEX_LEN + 1];
	unsigned char raw[32];
	struct hash_sha256 h;

	hash_sha256_hex("", 0, hex);
	assert_string_equal(hex,
			    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	hash_sha256_hex("abc", 3, hex);
	assert_string_equal(hex,
			    "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	hash_sha256_init(&h);
	hash_sha256_add(&h, "a", 1);
	hash_sha256_add(&h, "bc", 2);
	hash_sha256_end(&h, raw);
	assert_memory_equal(raw, "\xba\x78\x16\xbf\x8f\x01\xcf\xea", 8);
	assert_memory_equal(raw + 28, "\xf2\x00\x15\xad", 4);
}

/* A state that was kept goes on as if nothing had been between. */
TEST(sha256_goes_on)
{
	unsigned char data[300], kept[32], one[32], two[32];
	struct hash_sha256 h;

	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (unsigned char)(i * 7);
	hash_sha256(data, sizeof(data), one);
	for (size_t at = 0; at <= sizeof(data); at++) {
		size_t whole = at / HASH_BLOCK * HASH_BLOCK;

		hash_sha256_init(&h);
		hash_sha256_add(&h, data, at);
		hash_sha256_save(&h, kept);
		hash_sha256_load(&h, kept, at / HASH_BLOCK);
		hash_sha256_add(&h, data + whole, sizeof(data) - whole);
		hash_sha256_end(&h, two);
		assert_memory_equal(one, two, sizeof(one));
	}
}

TEST(from_hex)
{
	static const char *const bad[] = {"", "00", "0x", "g", " 0", "A0"};
	unsigned char in[32], out[32];
	char hex[HASH_HEX_LEN + 1];

	for (int i = 0; i < 32; i++)
		in[i] = (unsigned char)(i * 9);
	hash_hex(in, 32, hex);
	assert_true(hash_from_hex(hex, out));
	assert_memory_equal(in, out, 32);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		hash_hex(in, 32, hex);
		memcpy(hex, bad[i], strlen(bad[i]));
		if (strlen(bad[i]) > 0 && strcmp(bad[i], "00") != 0)
			assert_false(hash_from_hex(hex, out));
		assert_false(hash_from_hex(bad[i], out));
	}
}
