/* The terminal; term.h. No locale is loaded (that costs more than all the
 * rest of a start): the three variables that name one are looked at.
 *
 * What can fail: memory for a converted text; then the text is left out and
 * a mark stands for it, since printing it raw would be worse. */
#include "cli/term.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/util.h"
#include "cli/links.h"
#include "codec/utf8.h"

#define TEXT_MAX ((size_t)256 << 20)

static bool dumb(void)
{
	const char *term = getenv("TERM");

	return term != NULL && strcmp(term, "dumb") == 0;
}

bool term_utf8(void)
{
	static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
	static int known = -1;

	if (known >= 0)
		return known;
	known = 0;
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const char *v = getenv(names[i]);

		if (v == NULL || v[0] == '\0')
			continue;
		known = strcasestr(v, "utf-8") != NULL || strcasestr(v, "utf8") != NULL;
		break;
	}
	if (dumb())
		known = 0;
	return known;
}

/* Asked of each line that is shown: what the three streams are is found out once. */
static bool is_terminal(FILE *f)
{
	static signed char known[3]; /* of each stream; 1: a terminal, -1: none, 0: not asked yet */
	int fd = fileno(f);

	if (fd < 0 || fd >= (int)ARRAY_LEN(known))
		return isatty(fd);
	if (known[fd] == 0)
		known[fd] = isatty(fd) ? 1 : -1;
	return known[fd] > 0;
}

/* A variable that means yes: neither empty nor 0. */
static bool term_asked(const char *name)
{
	const char *value = getenv(name);

	return value != NULL && value[0] != '\0' && strcmp(value, "0") != 0;
}

bool term_colours(FILE *f)
{
	const char *no = getenv("NO_COLOR");

	if (no != NULL && no[0] != '\0')
		return false;
	return term_asked("FORCE_COLOR") || term_asked("CLICOLOR_FORCE") ||
	       (is_terminal(f) && !dumb());
}

size_t term_width(FILE *f)
{
	struct winsize w;

	if (!is_terminal(f))
		return 0;
	if (ioctl(fileno(f), TIOCGWINSZ, &w) != 0 || w.ws_col == 0)
		return 80;
	return MAX(w.ws_col, 20);
}

bool term_redraws(FILE *f)
{
	return is_terminal(f) && !dumb();
}

bool term_is_plain(void)
{
	return term_asked("AVA_PLAIN");
}

bool term_extras(FILE *f)
{
	const char *term = getenv("TERM"), *osc = getenv("AVA_OSC");

	return term_redraws(f) && term != NULL && term[0] != '\0' && strcmp(term, "linux") != 0 &&
	       !term_is_plain() && (osc == NULL || strcmp(osc, "0") != 0);
}

static unsigned term_decode(const char *s, size_t len, size_t *used)
{
	unsigned char c = (unsigned char)s[0];
	size_t n = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
	unsigned v = n == 1 ? c : c & (0xffu >> (n + 1));

	n = MIN(n, len);
	for (size_t i = 1; i < n; i++)
		v = v << 6 | ((unsigned char)s[i] & 0x3f);
	*used = n;
	return v;
}

/* ASCII in place of a character that our own texts use, else "?". */
static const char *ascii(unsigned c)
{
	static const struct {
		unsigned c;
		const char *text;
	} known[] = {
		{0x2022, "*"}, {0x2026, "..."}, {0x2013, "-"},  {0x2014, "-"},
		{0x2018, "'"}, {0x2019, "'"},   {0x201c, "\""}, {0x201d, "\""},
		{0x00b7, "-"}, {0x2192, "->"},  {0xfe0f, ""}, /* a variation selector */
	};

	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (known[i].c == c)
			return known[i].text;
	return "?";
}

/* Columns of a character: combining marks none, East Asian and emoji two. */
static size_t columns_of(unsigned c)
{
	if ((c >= 0x300 && c <= 0x36f) || c == 0x200d || (c >= 0xfe00 && c <= 0xfe0f))
		return 0;
	if ((c >= 0x1100 && c <= 0x115f) || (c >= 0x2e80 && c <= 0xa4cf) ||
	    (c >= 0xac00 && c <= 0xd7a3) || (c >= 0xf900 && c <= 0xfaff) ||
	    (c >= 0xfe30 && c <= 0xfe6f) || (c >= 0xff00 && c <= 0xff60) ||
	    (c >= 0x1f300 && c <= 0x1faff) || (c >= 0x20000 && c <= 0x3fffd) || c == 0x23f3 ||
	    c == 0x2705 || c == 0x274c) /* hourglass, check mark, cross: our marks */
		return 2;
	return 1;
}

/* Add text made safe and, without UTF-8, ASCII. Returns buf_check. */
static int term_convert(struct buf *out, const char *s, size_t len, bool keep_newlines)
{
	struct buf safe;
	size_t used;
	int rv;

	if (term_utf8())
		return utf8_terminal(out, s, len, keep_newlines);
	buf_init(&safe, TEXT_MAX);
	rv = utf8_terminal(&safe, s, len, keep_newlines);
	for (size_t i = 0; rv == 0 && i < safe.len; i += used) {
		unsigned c = term_decode(safe.data + i, safe.len - i, &used);

		rv = c < 0x80 ? buf_addc(out, (char)c) : buf_adds(out, ascii(c));
	}
	buf_fini(&safe);
	return rv;
}

void term_text(FILE *f, const char *s, size_t len, bool keep_newlines)
{
	struct buf b;

	buf_init(&b, TEXT_MAX);
	if (term_convert(&b, s, len, keep_newlines) == 0)
		fwrite(b.data != NULL ? b.data : "", 1, b.len, f);
	else
		fputs("[too long to show]", f);
	buf_fini(&b);
}

void term_bytes(FILE *f, const char *s, size_t len)
{
	if (is_terminal(f))
		term_text(f, s, len, true);
	else
		fwrite(s, 1, len, f);
}

void term_str(FILE *f, const char *s)
{
	term_text(f, s, strlen(s), false);
}

/* *Owned*; NULL: no memory. */
static char *term_text_of(const char *fmt, va_list ap, size_t *len)
{
	char *text = NULL;
	int n = vasprintf(&text, fmt, ap);

	*len = n < 0 ? 0 : (size_t)n;
	return n < 0 ? NULL : text;
}

void term_print(FILE *f, const char *fmt, ...)
{
	size_t first = fmt[0] == '\n', last = fmt[first] != '\0' && fmt[strlen(fmt) - 1] == '\n';
	size_t len;
	va_list ap;
	char *text;

	va_start(ap, fmt);
	text = term_text_of(fmt, ap, &len);
	va_end(ap);
	if (text == NULL)
		return;
	fwrite("\n", 1, first, f);
	term_text(f, text + first, len - first - last, false);
	fwrite("\n", 1, last, f);
	free(text);
}

/* ---- rows
 *
 * A terminal that breaks a line goes on at its left edge, where only lines of ava begin. So each
 * line is broken here, with a column to spare, and a character counts for as much as any terminal
 * makes of it. */

static size_t most_columns_of(unsigned c)
{
	if ((c >= 0x231a && c <= 0x23ff) || (c >= 0x25fd && c <= 0x27bf) ||
	    (c >= 0x2b00 && c <= 0x2bff) || (c >= 0xa960 && c <= 0xa97f) ||
	    (c >= 0xffe0 && c <= 0xffe6) || (c >= 0x16fe0 && c <= 0x1b2ff) ||
	    (c >= 0x1d300 && c <= 0x1d37f) || (c >= 0x1f000 && c <= 0x1f2ff))
		return 2;
	return c == 0xfe0f ? 1 : columns_of(c);
}

/* Bytes of `s` that have room behind `column` columns; up to a blank, where one comes late enough.
 */
static size_t term_row_of(const char *s, size_t len, size_t column, size_t limit)
{
	size_t blank = 0, used;

	for (size_t i = 0; i < len; i += used) {
		const char *end = s[i] == '\033' ? memchr(s + i, 'm', len - i) : NULL;

		used = end != NULL ? (size_t)(end - s) - i + 1 : 0; /* a style of ours */
		if (used > 0)
			continue;
		column += most_columns_of(term_decode(s + i, len - i, &used));
		if (s[i] == ' ' && column > limit / 2)
			blank = i + 1;
		if (column > limit)
			return blank > 0 ? blank - 1 : i;
	}
	return len;
}

/* Write a row. `broken`: it goes on within a word, which is no place then. */
static void term_put_row(FILE *f, const char *s, size_t len, bool broken)
{
	size_t n = term_extras(f) ? 0 : len;

	while (n < len && broken && s[n] != ' ')
		n++;
	fwrite(s, 1, n, f);
	links_write(f, s + n, len - n);
}

static void term_put_line(FILE *f, size_t width, const char *s, size_t len, size_t column,
			  size_t indent)
{
	size_t n = width == 0 ? len : term_row_of(s, len, column, width - 1);
	bool broken;

	term_put_row(f, s, n, false);
	while (n < len) {
		s += n;
		len -= n;
		n = strspn(s, " "); /* bounded: another byte follows each text */
		broken = n == 0;
		n = MIN(n, len);
		s += n;
		len -= n;
		fprintf(f, "\n%*s", (int)indent, "");
		n = term_row_of(s, len, indent, width - 1);
		term_put_row(f, s, n, broken);
	}
}

/* The column where a broken line goes on: below its own words, never at the edge. */
static size_t below(const char *s, size_t len, size_t width, size_t margin)
{
	static const char bullet[] = "\xe2\x80\xa2 ";
	size_t n = 0;

	while (n < len && s[n] == ' ')
		n++;
	if ((len - n > 2 && (memcmp(s + n, "- ", 2) == 0 || memcmp(s + n, "| ", 2) == 0)) ||
	    (len - n > 4 && memcmp(s + n, bullet, 4) == 0))
		n += 2;
	n = MAX(n + margin, TERM_MARGIN);
	return n < width / 2 ? n : TERM_MARGIN;
}

void term_put(FILE *f, size_t width, const char *s, size_t len, size_t column, size_t margin)
{
	for (size_t n; len > 0; s += n, len -= n, column = 0) {
		const char *nl = memchr(s, '\n', len);

		n = nl != NULL ? (size_t)(nl - s) : len;
		if (n > 0 && column == 0)
			fprintf(f, "%*s", (int)margin, "");
		term_put_line(f, width, s, n, column > 0 ? column : margin,
			      below(s, n, width, margin));
		if (nl != NULL)
			fputc('\n', f);
		n += nl != NULL;
	}
}

/* A tab's width depends on its column, which a new layout changes: tabs become blanks. */
int term_flat(struct buf *out, const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (s[i] == '\t')
			buf_adds(out, "    ");
		else
			buf_addc(out, s[i]);
	return buf_check(out);
}

/* Lay out text; margin 0: a text of ours. */
static void term_lay_out(FILE *f, size_t width, const char *s, size_t len, size_t column,
			 size_t margin)
{
	struct buf flat, prose, safe;
	int rv;

	if (len == 0)
		return;
	buf_init(&flat, TEXT_MAX);
	buf_init(&prose, TEXT_MAX);
	buf_init(&safe, TEXT_MAX);
	rv = margin + width > 0 ? term_flat(&flat, s, len) : buf_add(&flat, s, len);
	if (rv == 0)
		rv = margin > 0 ? utf8_prose(&prose, flat.data, flat.len)
				: buf_add(&prose, flat.data, flat.len);
	if (rv == 0 && term_convert(&safe, prose.data, prose.len, true) == 0)
		term_put(f, width, safe.data, safe.len, column, margin);
	else
		fputs("  [too long to show]", f);
	buf_fini(&flat);
	buf_fini(&prose);
	buf_fini(&safe);
}

void term_theirs(FILE *f, size_t width, const char *s, size_t len, size_t column)
{
	term_lay_out(f, width, s, len, column, TERM_MARGIN);
}

void term_wrapped(FILE *f, const char *s, size_t len)
{
	term_lay_out(f, term_width(f), s, len, 0, 0);
}

void term_wrapped_line(FILE *f, const char *s, size_t len, size_t column, size_t indent)
{
	size_t width = term_width(f);
	struct buf safe;

	buf_init(&safe, TEXT_MAX);
	if (term_convert(&safe, s, len, false) == 0 && safe.len > 0)
		term_put_line(f, width, safe.data, safe.len, column,
			      indent < width / 2 ? indent : 0);
	buf_fini(&safe);
}

void term_line(FILE *f, const char *fmt, ...)
{
	va_list ap;
	size_t len;
	char *text;

	va_start(ap, fmt);
	text = term_text_of(fmt, ap, &len);
	va_end(ap);
	term_wrapped(f, text != NULL ? text : "", len);
	fputc('\n', f);
	fflush(f);
	free(text);
}

/* The text of one line: newlines and tabs as spaces. */
static int term_one_line(struct buf *out, const char *s, size_t len)
{
	struct buf flat;
	int rv;

	buf_init(&flat, TEXT_MAX);
	rv = buf_add(&flat, s, len);
	for (size_t i = 0; rv == 0 && i < flat.len; i++)
		if (flat.data[i] == '\n' || flat.data[i] == '\t' || flat.data[i] == '\r')
			flat.data[i] = ' ';
	if (rv == 0)
		rv = term_convert(out, flat.data != NULL ? flat.data : "", flat.len, false);
	buf_fini(&flat);
	return rv;
}

static size_t count_columns(const char *s, size_t len, size_t limit, size_t *bytes)
{
	size_t columns = 0, used, i;

	for (i = 0; i < len; i += used) {
		size_t c = columns_of(term_decode(s + i, len - i, &used));

		if (columns + c > limit)
			break;
		columns += c;
	}
	*bytes = i;
	return columns;
}

size_t term_columns(const char *s, size_t len)
{
	struct buf b;
	size_t bytes, n = 0;

	buf_init(&b, TEXT_MAX);
	if (term_one_line(&b, s, len) == 0 && b.len > 0)
		n = count_columns(b.data, b.len, SIZE_MAX, &bytes);
	buf_fini(&b);
	return n;
}

size_t term_cut(FILE *f, const char *s, size_t len, size_t columns)
{
	const char *dots = term_mark("\xe2\x80\xa6", "...");
	size_t limit = columns > 0 ? columns : SIZE_MAX, ndots = term_utf8() ? 1 : 3;
	size_t bytes = 0, n = 0;
	struct buf b;

	buf_init(&b, TEXT_MAX);
	if (term_one_line(&b, s, len) == 0 && b.len > 0) {
		n = count_columns(b.data, b.len, limit, &bytes);
		if (bytes < b.len) {
			n = limit > ndots ? count_columns(b.data, b.len, limit - ndots, &bytes) : 0;
			fwrite(b.data, 1, n > 0 ? bytes : 0, f);
			fputs(dots, f);
			n += ndots;
		} else {
			fwrite(b.data, 1, b.len, f);
		}
	}
	buf_fini(&b);
	return n;
}

void term_colour(FILE *f, enum term_colour c)
{
	static const char *const codes[] = {"0", "1", "2", "31", "32", "33"};

	if (term_colours(f))
		fprintf(f, "\033[%sm", codes[c]);
}

const char *term_mark(const char *utf8, const char *plain)
{
	return term_utf8() ? utf8 : plain;
}
