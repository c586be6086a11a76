/* Writing Markdown that means what the page says and nothing else; see out.h.
 *
 * Happy path: elements only owe (a break, a space, a mark before a line, the sign that opens a
 * span), and the next character of text pays: so an empty element leaves nothing behind, and two
 * that want an empty line get one. Escaped is what CommonMark and its tables and strike-through
 * would take for a sign, and no more: `_` within a word, `#` within a line stay. Where our own
 * bracket has just been closed, a parenthesis of the page's is escaped, and a `!` of the page's
 * before our link: neither may make an image. Appends can fail; the buffer remembers. */
#include "page/out.h"

#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "codec/utf8.h"
#include "page/clean.h"

void out_init(struct out *o, struct buf *to)
{
	*o = (struct out){.to = to, .begin = to->len, .before = ' '};
}

/* ---- lines */

static void add_prefix(struct out *o, bool blank)
{
	size_t n = MIN(o->depth, (size_t)OUT_LEVELS), start = o->to->len;

	for (size_t i = 0; i < n; i++) {
		struct out_level *l = &o->levels[i];

		if (l->used)
			buf_adds(o->to, l->rest);
		else if (!blank)
			buf_adds(o->to, l->first);
		l->used = l->used || !blank;
	}
	while (blank && o->to->len > start && o->to->data[o->to->len - 1] == ' ')
		o->to->data[--o->to->len] = 0;
}

static void out_new_line(struct out *o)
{
	while (o->to->len > o->begin && o->to->data[o->to->len - 1] == ' ')
		o->to->data[--o->to->len] = 0;
	if (o->to->len > o->begin) {
		buf_addc(o->to, '\n');
		if (o->breaks > 1) {
			add_prefix(o, true);
			buf_addc(o->to, '\n');
		}
	}
	add_prefix(o, false);
	o->breaks = 0;
	o->space = false;
	o->line = LINE_FRESH;
	o->before = ' ';
}

static const char *const signs[] = {"**", "*", "~~", "[", ""}; /* by enum out_span */

/* Write owed breaks, space and signs, before a character of text. */
static void pay(struct out *o)
{
	if (o->breaks > 0 || o->to->len == o->begin)
		out_new_line(o);
	if (o->space && o->line != LINE_FRESH && o->to->data[o->to->len - 1] != ' ')
		buf_addc(o->to, ' ');
	o->space = false;
	for (size_t i = 0; i < MIN(o->n_spans, (size_t)OUT_SPANS); i++) {
		if (o->spans[i].written)
			continue;
		/* Closing and opening stars side by side would be read as one run. */
		if (o->before == '*' && o->spans[i].kind <= SPAN_EM)
			o->spans[i].kind = SPAN_NONE;
		if (o->spans[i].kind == SPAN_LINK && o->to->len > o->begin &&
		    o->to->data[o->to->len - 1] == '!') { /* of the page: not an image */
			o->to->data[--o->to->len] = 0;
			buf_adds(o->to, "\\!");
		}
		buf_adds(o->to, signs[o->spans[i].kind]);
		o->spans[i].written = true;
		o->line = LINE_TEXT;
	}
}

void out_break(struct out *o, unsigned breaks)
{
	if (o->inline_depth > 0) {
		out_space(o);
		return;
	}
	/* A span ends with its paragraph: a longer one is layout. */
	for (size_t i = MIN(o->n_spans, (size_t)OUT_SPANS); i-- > 0;) {
		if (o->spans[i].written)
			buf_adds(o->to, signs[o->spans[i].kind]);
		o->spans[i].kind = SPAN_NONE;
	}
	o->before = ' ';
	/* The first text of an item stands on the item's line. */
	if (o->depth == 0 || o->depth > OUT_LEVELS || o->levels[o->depth - 1].used)
		o->breaks = MAX(o->breaks, breaks);
}

void out_space(struct out *o)
{
	o->space = true;
	o->before = ' ';
}

void out_sign(struct out *o, const char *sign)
{
	pay(o);
	buf_adds(o->to, sign);
	o->line = LINE_TEXT;
	o->before = ']';
}

void out_push(struct out *o, const char *first, const char *rest)
{
	if (o->depth < OUT_LEVELS) {
		struct out_level *l = &o->levels[o->depth];

		*l = (struct out_level){.used = false};
		snprintf(l->first, sizeof(l->first), "%s", first);
		snprintf(l->rest, sizeof(l->rest), "%s", rest);
	}
	o->depth++;
}

bool out_pop(struct out *o)
{
	o->depth--;
	return o->depth >= OUT_LEVELS || o->levels[o->depth].used;
}

void out_open(struct out *o, enum out_span kind)
{
	if (o->n_spans < OUT_SPANS) {
		o->spans[o->n_spans].kind = kind;
		o->spans[o->n_spans].written = false;
	}
	o->n_spans++;
	o->inline_depth += kind == SPAN_LINK;
}

bool out_close(struct out *o, const char *url)
{
	bool written;

	o->n_spans--;
	o->inline_depth -= url != NULL;
	written = o->n_spans < OUT_SPANS && o->spans[o->n_spans].written;
	if (!written)
		return false;
	if (url)
		buf_addf(o->to, "](%s)", url);
	else
		buf_adds(o->to, signs[o->spans[o->n_spans].kind]);
	o->before = url ? ')' : '*';
	return true;
}

/* ---- text */

static bool is_wordy(uint32_t c)
{
	if (c >= 0x80)
		return c >= 0xc0 && (c < 0x2000 || c > 0x206f) && (c < 0x3000 || c > 0x303f);
	return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z');
}

/* Does the text have the form of an entity, which a reader would decode? */
static bool out_is_entity(const char *s, size_t len)
{
	for (size_t i = 1; i < len && i < 33; i++) {
		if (s[i] == ';')
			return i > 1;
		if (!is_wordy((unsigned char)s[i]) && s[i] != '#')
			return false;
	}
	return false;
}

/* Does a digit follow the sign? Then it is a number, not an item of a list. */
static bool out_is_digit(const char *s, size_t len)
{
	return len > 1 && s[1] >= '0' && s[1] <= '9';
}

static bool must_escape(const struct out *o, const char *s, size_t len)
{
	switch (s[0]) {
	case '\\':
	case '`':
	case '*':
	case '[':
	case ']':
	case '<':
	case '~':
		return true;
	case '_':
		return !is_wordy(o->before) || len < 2 || !is_wordy((unsigned char)s[1]);
	case '&':
		return out_is_entity(s, len);
	case '|':
		return o->cells > 0 || o->line == LINE_FRESH;
	case '(':
	case ':':
		return o->before == ']' || (s[0] == ':' && o->line == LINE_FRESH);
	case '#':
	case '>':
	case '=':
		return o->line == LINE_FRESH;
	case '+':
	case '-':
		return o->line == LINE_FRESH && !out_is_digit(s, len);
	case '.':
	case ')':
		return o->line == LINE_DIGITS && !out_is_digit(s, len);
	default:
		return false;
	}
}

/* Characters that are never escaped, dropped or blank. */
static const bool ordinary[256] = {
	['a' ... 'z'] = true, ['A' ... 'Z'] = true, [','] = true, [';'] = true, ['\''] = true,
	['"'] = true,         ['/'] = true,         ['?'] = true, ['%'] = true,
};

/* A run of ordinary characters at the start of `s`, in one go. */
static size_t out_add_run(struct out *o, const char *s, size_t len)
{
	size_t n = 0;

	while (n < len && ordinary[(unsigned char)s[n]])
		n++;
	if (n == 0)
		return 0;
	pay(o);
	buf_add(o->to, s, n);
	for (size_t i = 0; i < n; i++) {
		o->words += is_wordy((unsigned char)s[i]) && !is_wordy(o->before);
		o->before = (unsigned char)s[i];
	}
	o->line = LINE_TEXT;
	return n;
}

void out_text(struct out *o, const char *s, size_t len)
{
	uint32_t c = 0;

	for (size_t i = 0, n; i < len; i += n) {
		enum char_kind kind;

		n = out_add_run(o, s + i, len - i);
		if (n > 0)
			continue;
		n = utf8_decode(s + i, len - i, &c);
		if (n == 0) {
			n = 1;
			continue;
		}
		kind = char_kind(c, o->before);
		if (kind == CHAR_SPACE)
			out_space(o);
		if (kind != CHAR_PLAIN)
			continue;
		pay(o);
		if (c < 0x80 && must_escape(o, s + i, len - i))
			buf_addc(o->to, '\\');
		buf_add(o->to, s + i, n);
		/* Chinese and Japanese have no blanks: a sign is a word. */
		o->words += (is_wordy(c) && !is_wordy(o->before)) || (c >= 0x3040 && c <= 0x9fff);
		o->line = c >= '0' && c <= '9' && o->line != LINE_TEXT ? LINE_DIGITS : LINE_TEXT;
		/* The page's own `]` is escaped and closes nothing. */
		o->before = c == ']' ? '}' : c;
	}
}

/* ---- code */

static size_t longest_run(const char *s, size_t len, char c)
{
	size_t most = 0, now = 0;

	for (size_t i = 0; i < len; i++) {
		now = s[i] == c ? now + 1 : 0;
		most = MAX(most, now);
	}
	return most;
}

static void add_times(struct buf *b, char c, size_t n)
{
	while (n-- > 0 && !b->failed)
		buf_addc(b, c);
}

static void out_count_words(struct out *o, const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		o->words += is_wordy((unsigned char)s[i]) &&
			    (i == 0 || !is_wordy((unsigned char)s[i - 1]));
}

void out_code(struct out *o, const char *s, size_t len, const char *language, size_t language_len)
{
	size_t ticks = MAX(longest_run(s, len, '`') + 1, (size_t)3);
	const char *end = s + len;

	out_break(o, 2);
	out_sign(o, "");
	add_times(o->to, '`', ticks);
	buf_add(o->to, language, language_len);
	while (s <= end && !o->to->failed) {
		const char *to = memchr(s, '\n', (size_t)(end - s));
		size_t n = (size_t)((to ? to : end) - s);

		while (n > 0 && s[n - 1] == ' ')
			n--;
		out_new_line(o);
		buf_add(o->to, s, n);
		s = to ? to + 1 : end + 1;
	}
	out_new_line(o);
	add_times(o->to, '`', ticks);
	out_count_words(o, end - len, len);
	out_break(o, 2);
}

/* Runs of blanks are one, as in text; `|` is escaped in a table, which it would cut even within
 * code. */
void out_code_span(struct out *o, const char *s, size_t len)
{
	size_t ticks = longest_run(s, len, '`'), at;
	bool pad, space = false;

	if (len == 0)
		return;
	pad = s[0] == '`' || s[len - 1] == '`';
	pay(o);
	/* Two ticks of ours side by side would be read as one run. */
	if (o->before == '`')
		buf_addc(o->to, ' ');
	ticks = ticks == 0 ? 1 : ticks + 1;
	add_times(o->to, '`', ticks);
	if (pad)
		buf_addc(o->to, ' ');
	at = o->to->len;
	for (size_t i = 0; i < len; i++) {
		if (s[i] == ' ' || s[i] == '\n' || s[i] == '\t') {
			space = true;
			continue;
		}
		if (space && o->to->len > at)
			buf_addc(o->to, ' ');
		space = false;
		if (s[i] == '|' && o->cells > 0)
			buf_addc(o->to, '\\');
		buf_addc(o->to, s[i]);
	}
	if (pad)
		buf_addc(o->to, ' ');
	add_times(o->to, '`', ticks);
	out_count_words(o, s, len);
	o->line = LINE_TEXT;
	o->before = '`';
}
