/* The output of programs, as their terminal would show it: however it is cut. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "codec/screen.h"

static struct buf kept, over;

static void shown(const char *text, size_t len, bool stays, void *user)
{
	(void)user;
	buf_add(stays ? &kept : &over, text, len);
	if (!stays)
		buf_addc(&over, '|');
}

/* In pieces of `piece` bytes. */
static const char *play(const char *bytes, size_t len, size_t piece)
{
	struct screen s;

	buf_reset(&kept);
	buf_reset(&over);
	screen_init(&s, shown, NULL);
	for (size_t i = 0; i < len; i += piece)
		screen_feed(&s, bytes + i, MIN(piece, len - i));
	screen_fini(&s);
	return kept.data && kept.len > 0 ? kept.data : "";
}

static int set_up(void **state)
{
	(void)state;
	buf_init(&kept, 4u << 20);
	buf_init(&over, 4u << 20);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	buf_fini(&kept);
	buf_fini(&over);
	return 0;
}

static const struct {
	const char *wrote, *is;
} texts[] = {
	{"", ""},
	{"one\ntwo", "one\ntwo"},
	{"one\r\ntwo\r\n", "one\ntwo\n"},
	{"1 %\r50 %\r100 %\ndone\n", "100 %\ndone\n"},
	{"\r1 %\r100 %", "100 %"},
	{"1 %\r2 %\r", "2 %"},
	{"100 %\r\r\n", "100 %\n"},
	{"1 %\r\x1b[K2 %\r\x1b[K\n", "2 %\n"},
	{"\x1b[1;31mred\x1b[0m \x1b[38;5;1mred\x1b[m\n", "red red\n"},
	{"\x1b]0;title\atext\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\\n", "textlink\n"},
	{"\x1b(Ba\x1b"
	 "7b\x1b=c\x1bPq#0\x1b\\d\x1b[?25le\x1b[2J\x1b[Hf\n",
	 "abcdef\n"},
	{"\x1b]0;no end\nnext\n", "\nnext\n"},
	{"a\x1b", "a"},
	{"a\x1b[1", "a"},
	{"N\bNA\bAM\bME\bE\n", "NAME\n"},
	{"\xc3\xa4\b|\b/\n\b\bx\n", "/\nx\n"},
	{"na\xc3\xafve \xe2\x80\xa6 \xf0\x9f\x98\x80\n",
	 "na\xc3\xafve \xe2\x80\xa6 \xf0\x9f\x98\x80\n"},
	{"caf\xe9 au lait, cr\xe8me\n\xe9\n", "caf\xe9 au lait, cr\xe8me\n\xe9\n"},
	{"a\tb\fc\ad\n", "a\tb\fc\ad\n"},
};

TEST(texts)
{
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		for (size_t piece = 1; piece < 40; piece++)
			assert_string_equal(play(texts[i].wrote, strlen(texts[i].wrote), piece),
					    texts[i].is);
}

TEST(progress)
{
	play("1 %\r2 %\r3 %\r\nend\n", 17, 5);
	assert_string_equal(over.data, "1 %|2 %|");
	assert_string_equal(kept.data, "3 %\nend\n");
}

static void noise(char *out, size_t len)
{
	unsigned long long x = 88172645463325252ull;

	for (size_t i = 0; i < len; i++) {
		x ^= x << 13, x ^= x >> 7, x ^= x << 17;
		out[i] = (char)(x >> 32);
	}
}

TEST(binary)
{
	char *b = malloc(300000);
	size_t len;

	assert_non_null(b);
	for (size_t piece = 1; piece < 100000; piece = piece * 3 + 1) {
		noise(b, 100000);
		assert_string_equal(play(b, 100000, piece), "(binary, 100000 bytes)\n");
		memset(b, 0, 300000);
		assert_string_equal(play(b, 300000, piece), "(binary, 300000 bytes)\n");
		len = (size_t)sprintf(b, "begin\n");
		noise(b + len, 20000);
		len += 20000;
		len += (size_t)sprintf(b + len, "\nall\nis well\n");
		assert_string_equal(play(b, len, piece),
				    "begin\n(binary, 20001 bytes)\nall\nis well\n");
	}
	/* names that end in NUL, and a little of another charset */
	assert_string_equal(play("a.c\0\0b.c\0", 9, 3), "a.c\xe2\x90\x80"
							"b.c\xe2\x90\x80");
	free(b);
}

/* A line without an end is not held for ever, nor written over from its beginning. */
TEST(long_line)
{
	char *b = malloc(1000000);

	assert_non_null(b);
	memset(b, 'x', 1000000);
	play(b, 1000000, 4096);
	assert_int_equal(kept.len, 1000000);
	b[999999] = '\n';
	b[999990] = '\r';
	play(b, 1000000, 4096);
	assert_in_range(kept.len, 900000, 999999);
	free(b);
}

UNIT_GROUP(.before = set_up, .after = tear_down);
