/* Finding out the charset of a page and decoding it; see charset.h.
 *
 * Happy path: most pages are UTF-8 and are copied. The others go through iconv, whose modules
 * are loaded by the names in the table below and no other: what a page calls its charset is
 * looked up, never handed on. Labels stand for what browsers take them for (latin1 is
 * windows-1252, shift_jis is Microsoft's). Two lies are common enough to be seen through: a
 * server's default of latin1 over UTF-8, and UTF-8 said of bytes in which not one sequence is.
 * Bytes that are no character become U+FFFD, one at a time; nothing else can go wrong. */
#include "page/charset.h"

#include <errno.h>
#include <iconv.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/util.h"
#include "codec/utf8.h"

#define PRESCAN     4096 /* bytes that are searched for a charset's name */
#define LABEL_MAX   40
#define REPLACEMENT "\xef\xbf\xbd"

struct charset {
	const char *name;   /* name in the standard */
	const char *iconv;  /* name that glibc knows; NULL: UTF-8 */
	const char *labels; /* other labels of the charset, between blanks */
	unsigned unit;      /* bytes skipped after an invalid one */
};

static const struct charset charsets[] = {
	{"utf-8", NULL, " utf8 unicode-1-1-utf-8 x-unicode20utf8 ", 1},
	{"windows-1252", "CP1252",
	 " iso-8859-1 iso8859-1 iso88591 iso_8859-1 latin1 latin-1 l1 us-ascii ascii cp1252 "
	 "x-cp1252 ansi_x3.4-1968 ",
	 1},
	{"utf-16le", "UTF-16LE", " utf-16 utf16 ucs-2 unicode iso-10646-ucs-2 ", 2},
	{"utf-16be", "UTF-16BE", " ", 2},
	{"shift_jis", "CP932", " sjis shift-jis x-sjis ms_kanji windows-31j ms932 cp932 ", 1},
	{"euc-jp", "EUC-JP-MS", " x-euc-jp eucjp ", 1},
	{"iso-2022-jp", "ISO-2022-JP", " csiso2022jp ", 1},
	{"gb18030", "GB18030", " gbk gb2312 gb_2312 gb_2312-80 x-gbk chinese csgb2312 cp936 ", 1},
	{"big5", "BIG5-HKSCS", " big5-hkscs x-x-big5 cn-big5 csbig5 ", 1},
	{"euc-kr", "CP949", " ks_c_5601-1987 ks_c_5601-1989 ksc5601 korean windows-949 cp949 ", 1},
	{"koi8-r", "KOI8-R", " koi koi8 koi8_r cskoi8r ", 1},
	{"koi8-u", "KOI8-U", " koi8-ru ", 1},
	{"windows-1250", "CP1250", " cp1250 x-cp1250 ", 1},
	{"windows-1251", "CP1251", " cp1251 x-cp1251 ", 1},
	{"windows-1253", "CP1253", " cp1253 x-cp1253 ", 1},
	{"windows-1254", "CP1254", " cp1254 iso-8859-9 iso8859-9 latin5 l5 ", 1},
	{"windows-1255", "CP1255", " cp1255 x-cp1255 ", 1},
	{"windows-1256", "CP1256", " cp1256 x-cp1256 ", 1},
	{"windows-1257", "CP1257", " cp1257 x-cp1257 ", 1},
	{"windows-1258", "CP1258", " cp1258 x-cp1258 ", 1},
	{"windows-874", "CP874", " tis-620 iso-8859-11 iso8859-11 dos-874 ", 1},
	{"iso-8859-2", "ISO-8859-2", " iso8859-2 iso_8859-2 latin2 l2 ", 1},
	{"iso-8859-3", "ISO-8859-3", " iso8859-3 latin3 ", 1},
	{"iso-8859-4", "ISO-8859-4", " iso8859-4 latin4 ", 1},
	{"iso-8859-5", "ISO-8859-5", " iso8859-5 cyrillic ", 1},
	{"iso-8859-6", "ISO-8859-6", " iso8859-6 arabic ", 1},
	{"iso-8859-7", "ISO-8859-7", " iso8859-7 greek ", 1},
	{"iso-8859-8", "ISO-8859-8", " iso8859-8 iso-8859-8-i hebrew ", 1},
	{"iso-8859-10", "ISO-8859-10", " iso8859-10 latin6 ", 1},
	{"iso-8859-13", "ISO-8859-13", " iso8859-13 ", 1},
	{"iso-8859-14", "ISO-8859-14", " iso8859-14 ", 1},
	{"iso-8859-15", "ISO-8859-15", " iso8859-15 latin9 l9 latin-9 ", 1},
	{"iso-8859-16", "ISO-8859-16", " iso8859-16 ", 1},
	{"macintosh", "MACINTOSH", " mac x-mac-roman ", 1},
	{"ibm866", "CP866", " cp866 866 ", 1},
};

#define UTF8    (&charsets[0])
#define WESTERN (&charsets[1])
#define UTF16LE (&charsets[2])
#define UTF16BE (&charsets[3])

static const struct charset *by_label(const char *label, size_t len)
{
	char word[LABEL_MAX + 3];

	while (len > 0 && strchr(" \t\"'", label[0]))
		label++, len--;
	while (len > 0 && strchr(" \t\"'", label[len - 1]))
		len--;
	if (len == 0 || len > LABEL_MAX)
		return NULL;
	word[0] = ' ';
	for (size_t i = 0; i < len; i++) {
		char c = label[i];

		if (c <= ' ' || c > '~')
			return NULL;
		word[i + 1] = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
	}
	word[len + 1] = ' ';
	word[len + 2] = 0;
	for (size_t i = 0; i < ARRAY_LEN(charsets); i++)
		if ((strlen(charsets[i].name) == len &&
		     memcmp(charsets[i].name, word + 1, len) == 0) ||
		    strstr(charsets[i].labels, word))
			return &charsets[i];
	return NULL;
}

static const struct charset *by_mark(const char *body, size_t len, size_t *skip)
{
	*skip = 0;
	if (len >= 3 && memcmp(body, "\xef\xbb\xbf", 3) == 0) {
		*skip = 3;
		return UTF8;
	}
	if (len >= 2 && (memcmp(body, "\xff\xfe", 2) == 0 || memcmp(body, "\xfe\xff", 2) == 0)) {
		*skip = 2;
		return body[0] == '\xff' ? UTF16LE : UTF16BE;
	}
	return NULL;
}

/* The charset by `charset=NAME` of a meta element or `encoding="NAME"` of an XML declaration
 * outside of comments. A page that says UTF-16 in plain ASCII is not UTF-16. */
static const struct charset *by_markup(const char *body, size_t len)
{
	const char *end = body + MIN(len, (size_t)PRESCAN);

	for (const char *p = body; p + 9 < end; p++) {
		static const char *const keys[] = {"charset", "encoding"};

		if (end - p > 4 && memcmp(p, "<!--", 4) == 0) {
			const char *close = memmem(p + 4, (size_t)(end - p - 4), "-->", 3);

			if (!close)
				return NULL;
			p = close + 2;
			continue;
		}
		for (size_t k = 0; k < ARRAY_LEN(keys); k++) {
			size_t n = strlen(keys[k]);
			const char *at = p + n, *to;
			const struct charset *found;

			if (strncasecmp(p, keys[k], n) != 0)
				continue;
			while (at < end && strchr(" \t\r\n", *at) && *at)
				at++;
			if (at >= end || *at++ != '=')
				continue;
			while (at < end && *at && strchr(" \t\r\n\"'", *at))
				at++;
			for (to = at; to<end && * to> ' ' && !strchr("\"'>;/?", *to);)
				to++;
			found = by_label(at, (size_t)(to - at));
			if (found)
				return found == UTF16LE || found == UTF16BE ? UTF8 : found;
		}
	}
	return NULL;
}

/* UTF-16 without a mark: ASCII in it leaves every other byte zero. */
static const struct charset *by_zeros(const char *body, size_t len)
{
	size_t zeros[2] = {0, 0}, n = MIN(len, (size_t)PRESCAN) & ~(size_t)1;

	for (size_t i = 0; i < n; i++)
		zeros[i & 1] += body[i] == 0;
	if (n < 8 || zeros[0] + zeros[1] < n / 4)
		return NULL;
	return zeros[1] > 4 * zeros[0] ? UTF16LE : zeros[0] > 4 * zeros[1] ? UTF16BE : NULL;
}

static const struct charset *charset_choose(const char *body, size_t len, const char *http,
					    bool markup)
{
	const struct charset *said = http ? by_label(http, strlen(http)) : NULL;
	size_t good = 0, bad = 0; /* valid sequences of more than one byte; bytes of invalid ones */
	uint32_t cp;

	if (!said)
		said = by_zeros(body, len);
	if (!said && markup)
		said = by_markup(body, len);
	if (said && said != UTF8 && said != WESTERN)
		return said;
	for (size_t i = 0, n; i < len; i += n) {
		n = utf8_decode(body + i, len - i, &cp);
		good += n > 1;
		bad += n == 0 && len - i >= 4; /* not if cut at the end */
		n = n ? n : 1;
	}
	if (bad > 0 && good == 0)
		return WESTERN;
	if (bad == 0 || said == UTF8)
		return good > 0 || said != WESTERN ? UTF8 : WESTERN;
	return WESTERN;
}

static int charset_convert(struct buf *out, const struct charset *from, const char *body,
			   size_t len)
{
	iconv_t cd = iconv_open("UTF-8", from->iconv);
	char *in = (char *)body, *end = in + len, piece[8192];

	if (cd == (iconv_t)-1) /* glibc's module for it is not installed */
		return utf8_repair(out, body, len);
	while (in < end && !out->failed) {
		char *to = piece;
		size_t left = (size_t)(end - in), room = sizeof(piece);
		size_t rv = iconv(cd, &in, &left, &to, &room);
		int why = errno;

		buf_add(out, piece, (size_t)(to - piece));
		if (rv == (size_t)-1 && why != E2BIG) {
			buf_adds(out, REPLACEMENT);
			in += MIN(left, (size_t)from->unit);
			iconv(cd, NULL, NULL, NULL, NULL); /* reset shifts after an invalid byte */
		}
	}
	iconv_close(cd);
	return buf_check(out);
}

const char *charset_decode(struct buf *out, const char *body, size_t len, const char *http,
			   bool markup)
{
	size_t skip;
	const struct charset *from = by_mark(body, len, &skip);
	int rv;

	body += skip;
	len -= skip;
	if (!from)
		from = charset_choose(body, len, http, markup);
	rv = from->iconv ? charset_convert(out, from, body, len) : utf8_repair(out, body, len);
	return rv == 0 ? from->name : NULL;
}
