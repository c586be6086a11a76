/* Repaired text is valid and what was valid stays; what a terminal is shown
 * has no control character; a prefix ends between characters. */
#include "fuzz.h"

#include "base/buf.h"
#include "codec/utf8.h"

static void check_repair(const char *s, size_t len)
{
	struct buf out;

	buf_init(&out, 64 + 4 * len);
	CHECK(utf8_repair(&out, s, len) == 0);
	CHECK(out.data == NULL || utf8_valid(out.data, out.len));
	CHECK(out.data == NULL || strlen(out.data) == out.len);
	CHECK(utf8_count(s, len) == utf8_count(out.data, out.len));
	if (utf8_valid(s, len) && memchr(s, '\0', len) == NULL)
		CHECK(out.len == len && memcmp(out.data, s, len) == 0);
	buf_fini(&out);
}

static void check_terminal(const char *s, size_t len, bool keep)
{
	struct buf out;
	uint32_t cp;

	buf_init(&out, 64 + 12 * len);
	CHECK(utf8_terminal(&out, s, len, keep) == 0);
	for (size_t i = 0, n; i < out.len; i += n) {
		n = utf8_decode(out.data + i, out.len - i, &cp);
		CHECK(n > 0);
		CHECK(cp >= 0x20 || cp == '\t' || (cp == '\n' && keep));
		CHECK(!(cp >= 0x7f && cp < 0xa0) && !(cp >= 0x202a && cp <= 0x202e));
		CHECK(!(cp >= 0x2066 && cp <= 0x2069) && !(cp >= 0xe0000 && cp < 0xe0080));
	}
	buf_fini(&out);
}

static void check_prefix(const char *s, size_t len)
{
	size_t chars = utf8_count(s, len);

	CHECK(utf8_prefix(s, len, chars) == len && utf8_prefix(s, len, 0) == 0);
	for (size_t n = 1; n <= chars && n < 50; n++) {
		size_t end = utf8_prefix(s, len, n);

		CHECK(end > utf8_prefix(s, len, n - 1) && end <= len);
		CHECK(utf8_count(s, end) == n);
		CHECK(!utf8_valid(s, len) || utf8_valid(s, end));
	}
}

FUZZ_TARGET(utf8, len)
{
	if (len == 0)
		return;
	check_repair((const char *)data, len);
	check_terminal((const char *)data, len, true);
	check_terminal((const char *)data, len, false);
	check_prefix((const char *)data, len);
}
