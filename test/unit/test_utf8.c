/* What is valid, where text may be cut, and what a terminal is shown. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "codec/utf8.h"

static const struct {
	const char *name, *bytes;
	size_t len;
	bool valid;
} cases[] = {
	{"empty", "", 0, true},
	{"ascii", "hello, world: more than eight", 29, true},
	{"NUL is a character", "a\0b", 3, true},
	{"two bytes", "\xc2\x80\xdf\xbf", 4, true},
	{"three bytes", "\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf", 12, true},
	{"four bytes", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf", 8, true},
	{"overlong slash", "\xc0\xaf", 2, false},
	{"overlong of two", "\xc1\xbf", 2, false},
	{"overlong of three", "\xe0\x9f\xbf", 3, false},
	{"overlong of four", "\xf0\x8f\xbf\xbf", 4, false},
	{"surrogate low end", "\xed\xa0\x80", 3, false},
	{"surrogate high end", "\xed\xbf\xbf", 3, false},
	{"past U+10FFFF", "\xf4\x90\x80\x80", 4, false},
	{"five bytes", "\xf8\x88\x80\x80\x80", 5, false},
	{"lone continuation", "a\x80", 2, false},
	{"cut short", "abcdefgh\xe2\x82", 10, false},
	{"cut by ascii", "\xe2\x82z", 3, false},
	{"0xff", "\xff", 1, false},
};

TEST(valid)
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		if (utf8_valid(cases[i].bytes, cases[i].len) != cases[i].valid)
			fail_msg("%s", cases[i].name);
}

/* Every code point, encoded here by hand, is read back. */
TEST(decode_all)
{
	for (uint32_t c = 1; c <= 0x10ffff; c++) {
		char s[4];
		size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
		uint32_t rest = c, cp = 0;

		if (c >= 0xd800 && c <= 0xdfff)
			continue;
		for (size_t i = n - 1; i > 0; i--, rest >>= 6)
			s[i] = (char)(0x80 | (rest & 0x3f));
		s[0] = (char)(n == 1 ? rest : (0xf00u >> n & 0xff) | rest);
		if (utf8_decode(s, n, &cp) != n || cp != c)
			fail_msg("U+%04X", (unsigned)c);
		if (n > 1 && utf8_decode(s, n - 1, &cp) != 0)
			fail_msg("U+%04X cut short", (unsigned)c);
	}
}

TEST(prefix)
{
	const char *s = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x9a\x80z0123456789abcdef";
	size_t at[] = {0, 1, 3, 6, 10, 11};

	for (size_t i = 0; i < ARRAY_LEN(at); i++)
		assert_int_equal(utf8_prefix(s, strlen(s), i), at[i]);
	assert_int_equal(utf8_prefix(s, strlen(s), 20), 26);
	assert_int_equal(utf8_prefix(s, strlen(s), 21), 27);
	assert_int_equal(utf8_prefix(s, strlen(s), 1000), 27);
	assert_int_equal(utf8_count(s, strlen(s)), 21);
	assert_int_equal(utf8_prefix("\xff\xe2\x82", 3, 2), 2); /* a bad byte is one */
	assert_int_equal(utf8_count("\xff\xe2\x82", 3), 3);
}

TEST(repair)
{
	TEST_BUF(b, 1000);

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		buf_reset(&b);
		assert_int_equal(utf8_repair(&b, cases[i].bytes, cases[i].len), 0);
		assert_true(utf8_valid(b.data != NULL ? b.data : "", b.len));
	}
	buf_reset(&b);
	utf8_repair(&b, "a\0\xff\xe2\x82z\xc3\xa9", 8);
	assert_string_equal(b.data, "a\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\xc3\xa9");
}

static const struct {
	const char *in, *out;
	bool keep;
} shown[] = {
	{"plain \xc3\xa9 \xf0\x9f\x9a\x80", "plain \xc3\xa9 \xf0\x9f\x9a\x80", true},
	{"a\tb\nc", "a\tb\nc", true},
	{"a\tb\nc", "a\tb\\x0ac", false},
	{"\x1b]52;c;x\x07", "\\x1b]52;c;x\\x07", true},
	{"\r\x7f\x08", "\\x0d\\x7f\\x08", true},
	{"\xc2\x9b"
	 "2J",
	 "\\u{009b}2J", true}, /* C1: CSI in one character */
	{"\x9b", "\\x9b", true},
	{"\xe2\x80\xaetxt", "\\u{202e}txt", true},
	{"\xe2\x81\xa6\xe2\x81\xa9\xd8\x9c", "\\u{2066}\\u{2069}\\u{061c}", true},
	{"a\xe2\x80\xa8"
	 "b\xe2\x80\x8b\xef\xbb\xbf\xe2\x81\xa0",
	 "a\\u{2028}b\\u{200b}\\u{feff}\\u{2060}", true},
	{"\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb",
	 "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb", true},
	{"\xf3\xa0\x81\x81", "\\u{e0041}", true},
	{"x\xf3\xa0\x84\x80\xe3\x85\xa4", "x\\u{e0100}\\u{3164}", true},
	{"\xe2\x82", "\\xe2\\x82", true},
};

TEST(terminal)
{
	TEST_BUF(b, 1000);

	for (size_t i = 0; i < ARRAY_LEN(shown); i++) {
		buf_reset(&b);
		assert_int_equal(utf8_terminal(&b, shown[i].in, strlen(shown[i].in), shown[i].keep),
				 0);
		assert_string_equal(b.data, shown[i].out);
	}
	buf_reset(&b);
	utf8_terminal(&b, "\0", 1, true);
	assert_string_equal(b.data, "\\x00");
}

TEST(bounds)
{
	TEST_BUF(b, 5);

	assert_true(utf8_repair(&b, "abc\xff", 4) < 0);
	buf_reset(&b);
	assert_true(utf8_terminal(&b, "ab\x1b", 3, true) < 0);
}

/* What a model reads of a stranger's text is what a person would see of it. */
TEST(plain)
{
	static const struct {
		const char *in, *out;
	} plain[] = {
		{"a\tb\nc", "a\tb\nc"},
		{"a\r\nb\rc\r", "a\nb\nc\n"},
		{"a\x1b[2Jb\x07\x7f", "a[2Jb"},
		{"a\xc2\x85"
		 "b\xe2\x80\xa8"
		 "c\xe2\x80\xa9"
		 "d",
		 "a\nb\nc\nd"},
		{"\xe2\x80\xae"
		 "abc\xe2\x80\xac\xe2\x81\xa6x\xe2\x81\xa9",
		 "abcx"},
		{"a\xe2\x80\x8b"
		 "b\xe2\x81\xa0"
		 "c\xef\xbb\xbf"
		 "d\xc2\xad"
		 "e",
		 "abcde"},
		{"x\xf3\xa0\x81\x81\xf3\xa0\x81\x82y", "xy"}, /* tags */
		{"x\xf3\xa0\x84\x80y", "xy"},                 /* selector 17 */
		/* what scripts need stays: joiners, selectors of emoji, accents */
		{"\xe2\x80\x8c\xe2\x80\x8d\xef\xb8\x8f"
		 "e\xcc\x81",
		 "\xe2\x80\x8c\xe2\x80\x8d\xef\xb8\x8f"
		 "e\xcc\x81"},
		{"a\xff"
		 "b\xc0\x80",
		 "a\xef\xbf\xbd"
		 "b\xef\xbf\xbd\xef\xbf\xbd"},
	};
	struct buf b;

	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
		buf_init(&b, 1000);
		assert_int_equal(utf8_plain(&b, plain[i].in, strlen(plain[i].in)), 0);
		assert_string_equal(b.data, plain[i].out);
		buf_fini(&b);
	}
	buf_init(&b, 1000);
	assert_int_equal(utf8_plain(&b, "a\0b", 3), 0);
	assert_string_equal(b.data, "a\xef\xbf\xbd"
				    "b");
	buf_fini(&b);
}

TEST(shown)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{"int x; /* caf\xc3\xa9 */\r\n\t\x1b", "int x; /* caf\xc3\xa9 */\r\n\t\x1b"},
		{"a\xe2\x80\xae"
		 "b\xe2\x81\xa6"
		 "c",
		 "a\\u{202e}b\\u{2066}c"},
		{"\xf3\xa0\x81\x81[a\xe2\x80\x8bva]", "\\u{e0041}[a\\u{200b}va]"},
		{"x\xf3\xa0\x84\x80\xe3\x85\xa4", "x\\u{e0100}\\u{3164}"},
		{"\xe2\x9d\xa4\xef\xb8\x8f so\xc2\xad", "\xe2\x9d\xa4\xef\xb8\x8f so\xc2\xad"},
		{"\xd7\x90\xe2\x80\x8f \xe2\x80\x8d", "\xd7\x90\xe2\x80\x8f \xe2\x80\x8d"},
		{"\xff\xe2\x80", "\xff\xe2\x80"},
		{"", ""},
	};
	struct buf b;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		buf_init(&b, 1000);
		assert_int_equal(utf8_shown(&b, rows[i].in, strlen(rows[i].in)), 0);
		assert_string_equal(b.data ? b.data : "", rows[i].out);
		buf_fini(&b);
	}
}

TEST(seen)
{
	static const struct {
		const char *in, *out;
	} rows[] = {
		{"  a\t \u00a0b\u3000", "a b "},
		{"\u200d\u00ada\ufe0f\u200cb", "ab"},
		{"a\xff\x01\n", "a"},
		{"1234567890", "1234567"},
		{"123456é", "123456"}, /* no half of a character */
		{"", ""},
	};
	char out[8];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(utf8_seen(out, sizeof(out), rows[i].in, strlen(rows[i].in)),
				 strlen(rows[i].out));
		assert_string_equal(out, rows[i].out);
	}
}
