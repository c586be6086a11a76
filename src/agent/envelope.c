/* Blocks of text by strangers, see envelope.h.
 *
 * The form is a line that begins with "[ava:", which no text from outside has: notice_escape
 * breaks it wherever text enters a conversation, and envelope_text within a block, after hidden
 * characters were removed (so that none can stand inside of it). Fails only as its buffer does. */
#include "agent/envelope.h"

#include <ctype.h>
#include <string.h>

#include "agent/prompt.h"
#include "base/buf.h"
#include "codec/utf8.h"

#define OPEN  "[ava:"
#define CLOSE "[ava:end "

static void envelope_end_line(struct buf *out)
{
	if (out->len > 0 && out->data[out->len - 1] != '\n')
		buf_addc(out, '\n');
}

void envelope_begin(struct buf *out, const char *kind, unsigned n, const char *url)
{
	envelope_end_line(out);
	buf_addf(out, OPEN "%s %u ", kind, n);
	envelope_text(out, url, strlen(url));
	buf_adds(out, "]\n");
}

void envelope_end(struct buf *out, unsigned n, const char *note)
{
	envelope_end_line(out);
	buf_addf(out, CLOSE "%u%s%s]\n", n, note ? ": " : "", note ? note : "");
}

/* `hide`: treatment of hidden characters. */
static int add_safe(struct buf *out, const char *s, size_t len,
		    int (*hide)(struct buf *, const char *, size_t))
{
	struct buf plain;
	int rv;

	buf_init(&plain, len * 3 + 1);
	rv = hide(&plain, s, len);
	if (rv == 0)
		rv = notice_escape(out, plain.data ? plain.data : "", plain.len);
	buf_fini(&plain);
	return rv;
}

int envelope_text(struct buf *out, const char *s, size_t len)
{
	return add_safe(out, s, len, utf8_plain);
}

int envelope_other(struct buf *out, const char *s, size_t len)
{
	return add_safe(out, s, len, utf8_shown);
}

int envelope_quote(struct buf *out, const char *s, size_t len)
{
	struct buf plain;
	int rv;

	buf_init(&plain, len * 3 + 1);
	rv = utf8_plain(&plain, s, len); /* every line of it ends with \n */
	for (size_t at = 0, n; rv == 0 && at < plain.len; at += n + 1) {
		const char *line = plain.data + at, *end = memchr(line, '\n', plain.len - at);

		n = end ? (size_t)(end - line) : plain.len - at;
		buf_adds(out, "\n> ");
		buf_add(out, line, n);
	}
	buf_fini(&plain);
	return rv == 0 ? buf_check(out) : rv;
}

/* The first line that begins with `word`, from `at` on; NULL: none. */
static const char *find_line(const char *s, const char *at, const char *end, const char *word)
{
	size_t n = strlen(word);

	while (at < end) {
		at = memmem(at, (size_t)(end - at), word, n);
		if (!at)
			return NULL;
		if (at == s || at[-1] == '\n')
			return at;
		at++;
	}
	return NULL;
}

/* The beginning of the URL in "[ava:page 1 URL]"; NULL: no block begins here. */
static const char *url_of(const char *line, const char *end)
{
	static const char *const kinds[] = {ENVELOPE_PAGE " ", ENVELOPE_RESULT " "};

	line += strlen(OPEN);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		size_t n = strlen(kinds[i]);
		const char *at = line + n;

		if ((size_t)(end - line) <= n || memcmp(line, kinds[i], n) != 0)
			continue;
		while (at < end && isdigit((unsigned char)*at))
			at++;
		return at > line + n && at < end && *at == ' ' ? at + 1 : NULL;
	}
	return NULL;
}

bool envelope_next(const char *s, size_t len, size_t *at, struct envelope *e)
{
	const char *end = s + len, *line = s + *at, *eol, *stop, *url;

	while ((line = find_line(s, line, end, OPEN)) != NULL) {
		eol = memchr(line, '\n', (size_t)(end - line));
		url = eol && eol[-1] == ']' ? url_of(line, eol - 1) : NULL;
		stop = url ? find_line(s, eol + 1, end, CLOSE) : NULL;
		if (stop) {
			*e = (struct envelope){.url = url,
					       .url_len = (size_t)(eol - 1 - url),
					       .text = eol + 1,
					       .text_len = (size_t)(stop - eol - 1)};
			*at = (size_t)(stop - s);
			return true;
		}
		line++;
	}
	return false;
}

size_t envelope_unescape(char *to, const char *s, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		if (s[i] != '\\' || i + 1 == len || !ispunct((unsigned char)s[i + 1]))
			to[n++] = s[i];
		else
			to[n++] = s[++i];
	return n;
}

/* ---- URLs in a text */

/* May a URL end before `s`? It does at a character no URL has, or at the end of a sentence. */
static bool ends_before(const char *s, const char *end)
{
	while (s < end && strchr(".,;:!?*_", *s) && *s)
		s++;
	return s == end || (unsigned char)*s <= ' ' || strchr("<>\"'`|\\^{}[]()#\x7f", *s) != NULL;
}

bool envelope_names(const char *s, size_t len, const char *url)
{
	const char *at = s, *end = s + len;
	size_t n = strlen(url);

	while (n > 0 && (at = memmem(at, (size_t)(end - at), url, n)) != NULL) {
		bool begins = at == s || !isalnum((unsigned char)at[-1]);

		if (begins && ends_before(at + n, end))
			return true;
		at++;
	}
	return false;
}
