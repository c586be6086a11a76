/* Who is signed in to the page: the worked example of doc/SECURITY.md, times, the window of
 * numbers, and how many there may be. What a request may look like is test/cli/door.py. */
#include "unit.h"

#include <nettle/hmac.h>
#include <stdio.h>
#include <string.h>

#include "ava/ops.h"
#include "base/hash.h"
#include "base/util.h"
#include "gateway/web_keys.h"
#include "moved_clock.h"

#define HOST "127.0.0.1:7410"

static struct web_keys keys;
static unsigned gone; /* doors that were told to be gone */
static unsigned char target[32];

static void gone_cb(unsigned door, void *user)
{
	(void)user;
	gone += door > 0;
}

static int begin(void **state)
{
	(void)state;
	gone = 0;
	web_keys_init(&keys, gone_cb, NULL);
	return 0;
}

struct side { /* what a browser has */
	unsigned char key[32];
	size_t len;
};

static void made(const struct side *k, const char *text, unsigned char out[32])
{
	struct hmac_sha256_ctx h;

	hmac_sha256_set_key(&h, k->len, k->key);
	hmac_sha256_update(&h, strlen(text), (const uint8_t *)text);
	hmac_sha256_digest(&h, 32, out);
}

static void name_of(const struct side *k, char id[33])
{
	unsigned char mac[32];

	made(k, "ava id", mac);
	hash_hex(mac, 16, id);
}

static struct side code(void)
{
	struct side k = {.len = 16};
	char hex[33], twice[65];

	web_keys_code(&keys, hex);
	snprintf(twice, sizeof(twice), "%s%s", hex, hex);
	assert_true(hash_from_hex(twice, k.key));
	return k;
}

/* One step; *next is what follows. */
static bool step(const struct side *k, struct side *next)
{
	static const char nonce[] = "00112233445566778899aabbccddeeff";
	char id[33], mac[65], proof[65], own[65], text[200];
	unsigned char raw[32];
	bool opened;

	name_of(k, id);
	made(k, "ava hello\n" HOST "\n00112233445566778899aabbccddeeff", raw);
	hash_hex(raw, 32, mac);
	if (!web_keys_open(&keys, &(struct core_hello){HOST, id, nonce, mac}, proof, &opened))
		return false;
	snprintf(text, sizeof(text), "ava daemon\n" HOST "\n%s\n%s", nonce, keys.challenge);
	made(k, text, raw);
	hash_hex(raw, 32, own);
	assert_string_equal(proof, own);
	snprintf(text, sizeof(text), "ava key\n" HOST "\n%s\n%s", nonce, keys.challenge);
	next->len = 32;
	made(k, text, next->key);
	return true;
}

static bool signs(const struct side *k, const char *number)
{
	char id[33], hash[65], body[65], mac[65], text[400], field[200];
	unsigned char raw[32];

	name_of(k, id);
	hash_hex(target, 32, hash);
	hash_sha256_hex("", 0, body);
	snprintf(text, sizeof(text), "ava request\n" HOST "\n%s\n%s\nGET\n%s\n%s", keys.challenge,
		 number, hash, body);
	made(k, text, raw);
	hash_hex(raw, 32, mac);
	snprintf(field, sizeof(field), "Ava id=%s, n=%s, mac=%s", id, number, mac);
	return web_keys_signer(&keys, &(struct web_signed){HOST, "GET", field, target, "", 0}) !=
	       NULL;
}

static struct side tab(void)
{
	struct side k = code(), browser, t;

	assert_true(step(&k, &browser));
	assert_true(step(&browser, &t));
	return t;
}

TEST(times)
{
	struct side k, browser, t, other;

	test_clock_stop();
	k = code();
	test_clock_skip(60000);
	assert_false(step(&k, &browser)); /* a minute */
	k = code();
	test_clock_skip(59999);
	assert_true(step(&k, &browser));
	assert_false(step(&k, &other)); /* once */
	assert_true(step(&browser, &t));
	assert_true(signs(&t, "1"));
	test_clock_skip(30ll * 86400 * 1000 - 1);
	assert_true(signs(&t, "2"));
	test_clock_skip(1);
	assert_false(signs(&t, "3"));
	assert_int_equal(web_keys_tabs(&keys), 0);
	test_clock_go();
}

TEST(numbers)
{
	static const struct {
		const char *number;
		bool good;
	} rows[] = {
		{"0", false},
		{"1", true},
		{"1", false},
		{"3", true},
		{"2", true},
		{"2", false},
		{"03", false},
		{"-4", false},
		{"4.", false},
		{"66", true},
		{"3", false},
		{"4", true},
		{"4", false},
		{"129", true},
		{"65", false},
		{"66", false},
		{"67", true},
		{"67", false},
		{"99999", true},
		{"130", false},
		{"99936", true},
		{"99936", false},
		{"99935", false},
		{"9007199254740991", true},
		{"9007199254740991", false},
		{"9007199254740992", false},
		{"18446744073709551616", false},
	};
	struct side t = tab();

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (signs(&t, rows[i].number) != rows[i].good)
			fail_msg("row %zu: %s", i, rows[i].number);
}

/* A daemon that starts: tabs of web.json go on, what was signed for the one before does not. */
TEST(again)
{
	struct side k = code(), browser, t, next;
	char hex[65], id[33];

	assert_true(step(&k, &browser) && step(&browser, &t) && signs(&t, "7"));
	hash_hex(t.key, 32, hex);
	name_of(&t, id);
	begin(NULL);
	web_keys_restore(&keys, hex, INT64_MAX);
	web_keys_restore(&keys, "no key", INT64_MAX);
	web_keys_restore(&keys, hex, 1);
	assert_int_equal(web_keys_tabs(&keys), 1);
	assert_false(step(&browser, &next));
	assert_false(step(&k, &next));
	assert_true(step(&t, &next)); /* a proof: a tab opens no further key */
	assert_false(signs(&next, "1"));
	assert_true(signs(&t, "7"));
}

/* The one that was used longest ago gives way, with its streams; a code gives way to the next. */
TEST(many)
{
	struct side first = tab(), second = tab(), k = code(), browser;

	assert_true(step(&k, &browser));
	for (int i = 0; i < 2 * WEB_KEYS_MAX; i++) {
		struct side t;
		char number[12];

		snprintf(number, sizeof(number), "%d", i + 1);
		assert_true(step(&browser, &t));
		assert_true(signs(&first, number));
	}
	assert_int_equal(keys.n, WEB_KEYS_MAX);
	assert_false(signs(&second, "1"));
	assert_true(gone > WEB_KEYS_MAX);
	k = code();
	first = code();
	assert_false(step(&k, &browser));
	assert_true(step(&first, &browser));
	web_keys_clear(&keys);
	assert_int_equal(keys.n, 0);
}

UNIT_GROUP(.before = begin);
