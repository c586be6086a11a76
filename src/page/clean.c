/* Characters that hide, move or reorder what a person sees have no place in what a model
 * reads as the page's text: instructions have been smuggled in each of these ranges. See
 * clean.h.
 *
 * One function decides; the renderer and the two copies below ask it. Only appending to the
 * output can fail. */
#include "page/clean.h"

#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "codec/utf8.h"

static const struct {
	uint32_t from, to;
} dropped[] = {
	{0xad, 0xad},       {0x34f, 0x34f},       {0x61c, 0x61c},   /* soft hyphen, joiner, mark */
	{0x115f, 0x1160},   {0x17b4, 0x17b5},     {0x180b, 0x180f}, /* fillers, Mongolian */
	{0x200b, 0x200f},   {0x202a, 0x202e},     {0x2060, 0x206f}, /* no width, bidi */
	{0x3164, 0x3164},   {0xd800, 0xf8ff},     {0xfe00, 0xfe0f}, /* filler, private, variants */
	{0xfeff, 0xfeff},   {0xffa0, 0xffa0},     {0xfff0, 0xfffb}, /* BOM, filler, annotations */
	{0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},   {0xe0000, 0xe0fff}, /* shorthand, music, tags */
	{0xf0000, 0xffffd}, {0x100000, 0x10ffff},                     /* private */
};

enum char_kind char_kind(uint32_t c, uint32_t before)
{
	size_t low = 0, high = ARRAY_LEN(dropped);

	if (c == ' ' || (c >= '\t' && c <= '\r') || c == 0x85 || c == 0xa0 || c == 0x1680 ||
	    (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
	    c == 0x205f || c == 0x3000)
		return CHAR_SPACE;
	if (c < 0x20 || (c >= 0x7f && c < 0xa0))
		return CHAR_DROPPED;
	if ((c == 0x200c || c == 0x200d) &&
	    ((before >= 0x620 && before <= 0x6ff) || (before >= 0x900 && before <= 0xdff)))
		return CHAR_PLAIN;
	while (low < high) {
		size_t mid = (low + high) / 2;

		if (c > dropped[mid].to)
			low = mid + 1;
		else
			high = mid;
	}
	return low < ARRAY_LEN(dropped) && c >= dropped[low].from ? CHAR_DROPPED : CHAR_PLAIN;
}

int clean_lines(struct buf *out, const char *s, size_t len)
{
	uint32_t c = 0, before = 0;

	for (size_t i = 0, n; i < len; i += n) {
		size_t run = i;

		while (run < len &&
		       ((s[run] >= ' ' && s[run] < 0x7f) || s[run] == '\n' || s[run] == '\t'))
			run++;
		if (run > i) {
			buf_add(out, s + i, run - i);
			before = (unsigned char)s[run - 1];
			n = run - i;
			continue;
		}
		n = utf8_decode(s + i, len - i, &c);
		n = n ? n : 1;
		if (c == '\r' || c == 0x85 || c == 0x2028 || c == 0x2029) {
			if (c != '\r' || i + 1 >= len || s[i + 1] != '\n')
				buf_addc(out, '\n');
		} else if (char_kind(c, before) == CHAR_SPACE) {
			buf_addc(out, ' ');
		} else if (char_kind(c, before) == CHAR_PLAIN) {
			buf_add(out, s + i, n);
		} else {
			continue;
		}
		before = c;
	}
	return buf_check(out);
}

int clean_line(struct buf *out, const char *s, size_t len, size_t max)
{
	uint32_t c = 0, before = ' ';
	bool space = false;

	for (size_t i = 0, n, chars = 0; i < len && chars < max; i += n) {
		enum char_kind kind;

		n = utf8_decode(s + i, len - i, &c);
		if (n == 0)
			break;
		kind = char_kind(c, before);
		if (kind == CHAR_SPACE)
			space = true;
		if (kind != CHAR_PLAIN)
			continue;
		if (space && out->len > 0)
			buf_addc(out, ' ');
		space = false;
		buf_add(out, s + i, n);
		before = c;
		chars++;
	}
	return buf_check(out);
}
