/* Keys of a terminal, given in pieces of every size. */
#include "unit.h"

#include <string.h>

#include "base/util.h"
#include "cli/line_keys.h"

static void give(struct line_keys *k, const char *s, size_t len)
{
	size_t room;
	char *to = line_keys_room(k, &room);

	assert_true(room >= len);
	memcpy(to, s, len);
	k->len += len;
}

/* What comes of `in` given in pieces of `step` bytes: characters, "<paste>". */
static size_t play(struct line_keys *k, const char *in, size_t step, wchar_t *out, size_t max)
{
	size_t n = 0, len = strlen(in);

	for (size_t at = 0; at < len; at += step) {
		enum line_key key;
		wchar_t c;

		give(k, in + at, MIN(step, len - at));
		while ((key = line_keys_next(k, &c)) != LINE_KEY_NONE) {
			assert_true(n < max);
			out[n++] = key == LINE_KEY_PASTE ? L'P' : c;
		}
	}
	return n;
}

TEST(pieces)
{
	static const char in[] = "a\xc3\xa9\xf0\x9f\x9a\x80\033[A\033OHb\033f\xff"
				 "c";
	static const wchar_t want[] = {'a', 0xe9, 0x1f680, 27, '[', 'A',    27,
				       'O', 'H',  'b',     27, 'f', 0xfffd, 'c'};

	for (size_t step = 1; step < sizeof(in); step++) {
		struct line_keys k;
		wchar_t out[32];

		line_keys_init(&k);
		assert_int_equal(play(&k, in, step, out, ARRAY_LEN(out)), ARRAY_LEN(want));
		for (size_t i = 0; i < ARRAY_LEN(want); i++)
			assert_int_equal(out[i], want[i]);
		assert_false(line_keys_inside(&k));
		line_keys_fini(&k);
	}
}

/* The terminal's own keys are told apart from those of its person, whole or in pieces. */
TEST(front)
{
	static const char in[] = "a\033[O\033[I\033OIb";

	for (size_t step = 1; step < sizeof(in); step++) {
		struct line_keys k;
		wchar_t c;
		char got[16];
		size_t n = 0, len = sizeof(in) - 1;

		line_keys_init(&k);
		for (size_t at = 0; at < len; at += step) {
			enum line_key key;

			give(&k, in + at, MIN(step, len - at));
			while ((key = line_keys_next(&k, &c)) != LINE_KEY_NONE)
				got[n++] = (char)(key == LINE_KEY_FRONT  ? '+'
						  : key == LINE_KEY_BACK ? '-'
									 : c);
		}
		assert_int_equal(n, 7);
		assert_memory_equal(got, "a-+\033OIb", n);
		assert_false(line_keys_inside(&k));
		line_keys_fini(&k);
	}
}

TEST(paste)
{
	static const char in[] = "x\033[200~one\r\ntwo\x07\033[31m\tthree\033[20\033[201~y";

	for (size_t step = 1; step < sizeof(in); step++) {
		struct line_keys k;
		wchar_t out[8];

		line_keys_init(&k);
		assert_int_equal(play(&k, in, step, out, ARRAY_LEN(out)), 3);
		assert_true(out[0] == 'x' && out[1] == 'P' && out[2] == 'y');
		assert_string_equal(k.paste.data, "one\n\ntwo[31m\tthree[20");
		line_keys_fini(&k);
	}
}

/* Nobody types the keys that are the editor's own, nor is a bare end of a paste
 * anything. */
TEST(dropped)
{
	struct line_keys k;
	wchar_t out[8];

	line_keys_init(&k);
	assert_int_equal(play(&k, "\x1c\x1d\x1e\x1f\033[201~z", 1, out, ARRAY_LEN(out)), 1);
	assert_int_equal(out[0], 'z');
	line_keys_fini(&k);
}

TEST(inside)
{
	struct line_keys k;
	wchar_t c;

	line_keys_init(&k);
	give(&k, "\033", 1);
	assert_int_equal(line_keys_next(&k, &c), LINE_KEY_NONE);
	assert_true(line_keys_inside(&k) && line_keys_partial(&k));
	line_keys_expire(&k);
	assert_false(line_keys_inside(&k));

	give(&k, "\x16", 1); /* ^V quotes the next one */
	assert_int_equal(line_keys_next(&k, &c), LINE_KEY_CHAR);
	assert_true(line_keys_inside(&k));
	give(&k, "a", 1);
	assert_int_equal(line_keys_next(&k, &c), LINE_KEY_CHAR);
	assert_false(line_keys_inside(&k));

	give(&k, "\x12q", 2); /* ^R searches until another control character */
	assert_int_equal(line_keys_next(&k, &c), LINE_KEY_CHAR);
	assert_int_equal(line_keys_next(&k, &c), LINE_KEY_CHAR);
	assert_true(line_keys_inside(&k));
	give(&k, "\r", 1);
	assert_int_equal(line_keys_next(&k, &c), LINE_KEY_CHAR);
	assert_false(line_keys_inside(&k));

	give(&k, "\033[200~never ends", 16);
	assert_int_equal(line_keys_next(&k, &c), LINE_KEY_NONE);
	assert_true(line_keys_inside(&k));
	line_keys_reset(&k);
	assert_false(line_keys_inside(&k));
	line_keys_fini(&k);
}

TEST(bounds)
{
	struct line_keys k;
	char block[1024];
	wchar_t c;

	line_keys_init(&k);
	memset(block, 'x', sizeof(block));
	give(&k, "\033[200~", 6);
	for (size_t i = 0; i <= LINE_PASTE_MAX / sizeof(block); i++) {
		give(&k, block, sizeof(block));
		assert_int_equal(line_keys_next(&k, &c), LINE_KEY_NONE);
	}
	give(&k, "\033[201~", 6);
	assert_int_equal(line_keys_next(&k, &c), LINE_KEY_PASTE);
	assert_int_equal(k.paste.len, LINE_PASTE_MAX);
	assert_int_equal(k.paste_lost, sizeof(block));

	/* A sequence without an end is given out, not waited for. */
	give(&k, "\033[", 2);
	memset(block, '1', sizeof(block));
	give(&k, block, 100);
	assert_int_equal(line_keys_next(&k, &c), LINE_KEY_CHAR);
	line_keys_fini(&k);
}
