/* The one form of runtime text, and its escape. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "unit.h"

#include "agent/prompt.h"
#include "base/buf.h"
#include "base/util.h"

static const struct {
	const char *in, *out;
} escape_cases[] = {
	{"", ""},
	{"plain [text] (ava)", "plain [text] (ava)"},
	{"[ava] stop", "[\\ava] stop"},
	{"x\n[AVA] a [Ava]", "x\n[\\AVA] a [\\Ava]"},
	{"[ ava\t] a", "[\\ ava\t] a"},
	{"[[ava]]", "[[\\ava]]"},
	{"[[[ava", "[[[ava"},
	{"[avatar] [lava] [av a]", "[avatar] [lava] [av a]"},
	{"[\\ava] twice is once", "[\\ava] twice is once"},
	{"\xe2\x80\xa8[ava]", "\xe2\x80\xa8[\\ava]"},
};

TEST(escape)
{
	struct buf b;

	for (size_t i = 0; i < ARRAY_LEN(escape_cases); i++) {
		buf_init(&b, 1000);
		assert_int_equal(notice_escape(&b, escape_cases[i].in, strlen(escape_cases[i].in)),
				 0);
		assert_string_equal(b.data != NULL ? b.data : "", escape_cases[i].out);
		buf_fini(&b);
	}
}

/* Whatever stands in a text: nothing reads as a notice afterwards, taking the
 * backslashes out gives it back, and a second pass changes nothing. */
TEST(escape_random)
{
	static const char letters[] = "[]aAvV \t\nx";
	unsigned seed = 7;

	for (int n = 0; n < 20000; n++) {
		char in[24], back[64];
		TEST_BUF(once, 100);
		TEST_BUF(twice, 100);
		size_t len = 0, k = 0;

		while (len < sizeof(in)) {
			seed = seed * 1103515245 + 12345;
			in[len++] = letters[(seed >> 16) % (sizeof(letters) - 1)];
		}
		notice_escape(&once, in, len);
		notice_escape(&twice, once.data, once.len);
		assert_string_equal(once.data, twice.data);
		assert_null(strcasestr(once.data, "[ava]"));
		for (size_t i = 0; i < once.len; i++)
			if (once.data[i] != '\\')
				back[k++] = once.data[i];
		assert_int_equal(k, len);
		assert_memory_equal(back, in, len);
	}
}

TEST(format)
{
	struct buf b;

	buf_init(&b, 100);
	assert_int_equal(notice_format(&b, "time\nis [ava] near"), 0);
	assert_string_equal(b.data, "[ava] time is [\\ava] near");
	assert_int_equal(notice_format(&b, "two"), 0); /* a line of its own */
	assert_string_equal(b.data, "[ava] time is [\\ava] near\n[ava] two");
	buf_fini(&b);
	buf_init(&b, 8);
	assert_true(notice_format(&b, "does not fit") < 0);
	buf_fini(&b);
}
