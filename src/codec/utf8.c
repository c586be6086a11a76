/* UTF-8 at the border: checking, cutting, repairing, and making text safe for a terminal; see
 * utf8.h.
 *
 * One decoder decides validity; everything else asks it. Runs of plain ASCII are stepped over
 * eight bytes at a time, since nearly all text is. Only appending to the output can fail. */
#include "codec/utf8.h"

#include <stdint.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"

#define REPLACEMENT "\xef\xbf\xbd" /* U+FFFD */

size_t utf8_decode(const char *s, size_t len, uint32_t *cp)
{
	const unsigned char *p = (const unsigned char *)s;
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	size_t n;
	uint32_t c;

	if (p[0] < 0x80) {
		*cp = p[0];
		return 1;
	}
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	n = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (n > len)
		return 0;
	c = p[0] & (0x7fu >> n);
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | (p[i] & 0x3fu);
	}
	if (c < least[n] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		return 0;
	*cp = c;
	return n;
}

/* Bytes of the ASCII run at the start, in steps of eight. */
static size_t ascii_run(const char *s, size_t len)
{
	size_t i = 0;
	uint64_t word;

	for (; i + 8 <= len; i += 8) {
		memcpy(&word, s + i, 8);
		if (word & UINT64_C(0x8080808080808080))
			break;
	}
	return i;
}

bool utf8_valid(const char *s, size_t len)
{
	uint32_t cp;

	for (size_t i = 0; i < len;) {
		size_t n = ascii_run(s + i, len - i);

		if (n == 0)
			n = utf8_decode(s + i, len - i, &cp);
		if (n == 0)
			return false;
		i += n;
	}
	return true;
}

/* An invalid byte counts as one character: it is shown as one. */
static size_t utf8_walk(const char *s, size_t len, size_t most, size_t *count)
{
	size_t i = 0, n;
	uint32_t cp;

	for (*count = 0; i < len && *count < most; i += n) {
		n = ascii_run(s + i, MIN(len - i, most - *count));
		*count += n > 0 ? n : 1;
		if (n == 0)
			n = utf8_decode(s + i, len - i, &cp);
		n = n > 0 ? n : 1;
	}
	return i;
}

size_t utf8_prefix(const char *s, size_t len, size_t chars)
{
	size_t count;

	return utf8_walk(s, len, chars, &count);
}

size_t utf8_count(const char *s, size_t len)
{
	size_t count;

	utf8_walk(s, len, SIZE_MAX, &count);
	return count;
}

int utf8_repair(struct buf *out, const char *s, size_t len)
{
	size_t kept = 0; /* bytes copied to `out` so far */
	uint32_t cp;

	for (size_t i = 0; i < len;) {
		size_t n = s[i] == '\0' ? 0 : utf8_decode(s + i, len - i, &cp);

		if (n > 0) {
			i += n;
			continue;
		}
		buf_add(out, s + kept, i - kept);
		buf_adds(out, REPLACEMENT);
		kept = ++i;
	}
	buf_add(out, s + kept, len - kept);
	return buf_check(out);
}

/* Characters that move, hide or reorder visible text, and invisible ones whose numbers can spell
 * bytes: fillers, tags, the selectors beyond 16. */
static bool is_sly(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) ||      /* C0, DEL, C1 */
	       c == 0x61c || c == 0x200e || c == 0x200f || /* bidi marks */
	       (c >= 0x202a && c <= 0x202e) ||             /* embeddings, overrides */
	       c == 0x2028 || c == 0x2029 ||               /* line ends that terminals ignore */
	       c == 0x200b || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || /* of no width */
	       c == 0x34f || c == 0x115f || c == 0x1160 || c == 0x180e || c == 0x3164 ||
	       c == 0xffa0 || (c >= 0xfff9 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe0fff);
}

int utf8_terminal(struct buf *out, const char *s, size_t len, bool keep_newlines)
{
	size_t kept = 0;
	uint32_t cp = 0;

	for (size_t i = 0; i < len;) {
		size_t n = utf8_decode(s + i, len - i, &cp);
		bool plain = n > 0 && !is_sly(cp);

		if (plain || s[i] == '\t' || (s[i] == '\n' && keep_newlines)) {
			i += n;
			continue;
		}
		buf_add(out, s + kept, i - kept);
		if (n <= 1) /* a control character or an invalid byte */
			buf_addf(out, "\\x%02x", (unsigned)(unsigned char)s[i]);
		else
			buf_addf(out, "\\u{%04x}", (unsigned)cp);
		i += n > 0 ? n : 1;
		kept = i;
	}
	buf_add(out, s + kept, len - kept);
	return buf_check(out);
}

/* Sly characters that hide or reorder text before a model and a person reading along; the plain
 * marks of right-to-left scripts are common in honest files. */
static bool is_unseen(uint32_t c)
{
	return is_sly(c) && c >= 0x300 && c != 0x61c && (c < 0x200e || c > 0x200f) && c != 0x2028 &&
	       c != 0x2029;
}

int utf8_shown(struct buf *out, const char *s, size_t len)
{
	size_t kept = 0;
	uint32_t cp;

	for (size_t i = 0; i < len;) {
		size_t n = ascii_run(s + i, len - i);

		if (n == 0) {
			n = utf8_decode(s + i, len - i, &cp);
			if (n > 0 && is_unseen(cp)) {
				buf_add(out, s + kept, i - kept);
				buf_addf(out, "\\u{%04x}", (unsigned)cp);
				kept = i + n;
			}
		}
		i += n > 0 ? n : 1;
	}
	buf_add(out, s + kept, len - kept);
	return buf_check(out);
}

/* Sly characters, and soft hyphens, which honest words contain. */
static bool is_hidden(uint32_t c)
{
	return is_sly(c) || c == 0xad;
}

int utf8_plain(struct buf *out, const char *s, size_t len)
{
	size_t kept = 0;
	uint32_t cp = 0;

	for (size_t i = 0; i < len;) {
		size_t n = s[i] == '\0' ? 0 : utf8_decode(s + i, len - i, &cp);

		if ((n > 0 && !is_hidden(cp)) || s[i] == '\t' || s[i] == '\n') {
			i += n;
			continue;
		}
		buf_add(out, s + kept, i - kept);
		if (n == 0)
			buf_adds(out, REPLACEMENT);
		else if (s[i] == '\r' && (i + 1 == len || s[i + 1] != '\n'))
			buf_addc(out, '\n');
		else if (cp == 0x2028 || cp == 0x2029 || cp == 0x85)
			buf_addc(out, '\n');
		i += n > 0 ? n : 1;
		kept = i;
	}
	buf_add(out, s + kept, len - kept);
	return buf_check(out);
}

bool utf8_blank(uint32_t c)
{
	return c == ' ' || c == '\t' || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) ||
	       c == 0x202f || c == 0x205f || c == 0x2800 || c == 0x3000;
}

/* Length of the leading run of blanks and invisible characters, in characters and bytes. */
static size_t blank_run(const char *s, size_t len, size_t *bytes)
{
	size_t run = 0, n;
	uint32_t c;

	for (*bytes = 0; *bytes < len; *bytes += n, run++) {
		n = utf8_decode(s + *bytes, len - *bytes, &c);
		if (n == 0 || !(utf8_blank(c) || is_hidden(c) || c == 0x200c || c == 0x200d ||
				c == 0x115f || c == 0x1160 || c == 0x3164 || c == 0xffa0))
			break;
	}
	return run;
}

int utf8_prose(struct buf *out, const char *s, size_t len)
{
	size_t kept = 0, bytes;

	for (size_t i = 0; i<len; i += bytes> 0 ? bytes : 1) {
		if (blank_run(s + i, len - i, &bytes) <= UTF8_BLANKS)
			continue;
		buf_add(out, s + kept, i - kept);
		buf_addc(out, ' ');
		kept = i + bytes;
	}
	buf_add(out, s + kept, len - kept);
	return buf_check(out);
}

size_t utf8_seen(char *out, size_t size, const char *s, size_t len)
{
	size_t used = 0;
	uint32_t c = 0;

	for (size_t i = 0, n; i < len; i += n) {
		n = utf8_decode(s + i, len - i, &c);
		if (n == 0) {
			n = 1;
			c = 0;
		}
		if (utf8_blank(c) ? used == 0 || out[used - 1] == ' '
				  : is_hidden(c) || c == 0x200c || c == 0x200d ||
					    (c >= 0xfe00 && c <= 0xfe0f))
			continue;
		if (used + n >= size)
			break;
		if (utf8_blank(c)) {
			out[used++] = ' ';
		} else {
			memcpy(out + used, s + i, n);
			used += n;
		}
	}
	out[used] = '\0';
	return used;
}
