/* Notices: how the runtime speaks to a model.
 *
 * A model must be able to tell the runtime's words from a page's. So there is
 * one form, "[ava] " at the start of a line, and whatever enters the
 * conversation from outside gets that form broken with a backslash: it stays
 * readable, and no text from outside ever contains the form. The search is
 * for the brackets anywhere, not for line starts, because what a line start
 * is depends on the reader (U+2028, \r, Markdown quoting).
 *
 * Fails only as its buffer does: out of memory or over its bound. */
#include "agent/notice.h"

#include <string.h>
#include <strings.h>

#include "base/buf.h"

#define NOTICE_WORD "ava"

static size_t skip_blanks(const char *s, size_t at, size_t len)
{
	while (at < len && (s[at] == ' ' || s[at] == '\t'))
		at++;
	return at;
}

/* Does "[ava]", in any case and with blanks inside, start at s[0] == '['? */
static bool imitates(const char *s, size_t len)
{
	size_t at = skip_blanks(s, 1, len), word = strlen(NOTICE_WORD);

	if (len - at < word || strncasecmp(s + at, NOTICE_WORD, word) != 0)
		return false;
	at = skip_blanks(s, at + word, len);
	return at < len && s[at] == ']';
}

int notice_escape(struct buf *out, const char *s, size_t len)
{
	size_t from = 0;

	for (size_t i = 0; i < len; i++) {
		if (s[i] != '[' || !imitates(s + i, len - i))
			continue;
		buf_add(out, s + from, i + 1 - from);
		buf_addc(out, '\\');
		from = i + 1;
	}
	buf_add(out, s + from, len - from);
	return buf_check(out);
}

int notice_format(struct buf *out, const char *text)
{
	size_t start;

	if (out->len > 0 && out->data[out->len - 1] != '\n')
		buf_addc(out, '\n');
	buf_adds(out, "[" NOTICE_WORD "] ");
	start = out->len;
	notice_escape(out, text, strlen(text));
	for (size_t i = start; i < out->len; i++)
		if (out->data[i] == '\n' || out->data[i] == '\r')
			out->data[i] = ' ';
	return buf_check(out);
}
