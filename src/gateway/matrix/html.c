/* See html.h. Only what surely is markup is taken for it: a pair of marks on one line, with no
 * blank inside of them. Links and images are left as text, so that no client fetches anything.
 *
 * Nothing can fail but memory, which the buffer remembers. */
#include "gateway/matrix/html.h"

#include <string.h>

#include "base/util.h"

static void escape(struct buf *out, const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (s[i] == '&')
			buf_adds(out, "&amp;");
		else if (s[i] == '<')
			buf_adds(out, "&lt;");
		else if (s[i] == '>')
			buf_adds(out, "&gt;");
		else if (s[i] == '"')
			buf_adds(out, "&quot;");
		else
			buf_addc(out, s[i]);
	}
}

static const struct html_mark {
	const char *text, *name;
} marks[] = {{"**", "strong"}, {"`", "code"}};

/* Bytes between a mark that `s` begins with and the next one like it; 0: it is no pair. */
static size_t between(const char *s, size_t len, const char *mark)
{
	size_t n = strlen(mark);
	const char *end;

	if (len < 2 * n + 1 || memcmp(s, mark, n) != 0 || s[n] == ' ' || s[n] == mark[0])
		return 0;
	end = memmem(s + n, len - n, mark, n);
	return end && end[-1] != ' ' ? (size_t)(end - s) - n : 0;
}

/* A line, without its end. */
static bool add_line(struct buf *out, const char *s, size_t len)
{
	bool found = false;
	size_t plain = 0, i = 0;

	while (i < len) {
		size_t k = 0, n = 0;

		while (k < ARRAY_LEN(marks) && n == 0)
			n = between(s + i, len - i, marks[k++].text);
		if (n == 0) {
			i++;
			continue;
		}
		escape(out, s + plain, i - plain);
		i += strlen(marks[k - 1].text);
		buf_addf(out, "<%s>", marks[k - 1].name);
		escape(out, s + i, n);
		buf_addf(out, "</%s>", marks[k - 1].name);
		i += n + strlen(marks[k - 1].text);
		plain = i;
		found = true;
	}
	escape(out, s + plain, len - plain);
	return found;
}

bool matrix_html(struct buf *out, const char *s, size_t len)
{
	bool found = false, code = false, first = true;

	for (size_t at = 0; at < len;) {
		const char *line = s + at, *nl = memchr(line, '\n', len - at);
		size_t n = nl ? (size_t)(nl - line) : len - at, hashes = 0;

		at += n + 1;
		if (n >= 3 && memcmp(line, "```", 3) == 0) {
			code = !code;
			buf_adds(out, code ? "<pre><code>" : "</code></pre>");
			first = found = true;
			continue;
		}
		while (hashes < n && hashes < 6 && line[hashes] == '#')
			hashes++;
		if (!first)
			buf_adds(out, code ? "\n" : "<br>");
		first = false;
		if (code) {
			escape(out, line, n);
		} else if (hashes > 0 && hashes < n && line[hashes] == ' ') {
			buf_adds(out, "<strong>");
			escape(out, line + hashes + 1, n - hashes - 1);
			buf_adds(out, "</strong>");
			found = true;
		} else {
			found |= add_line(out, line, n);
		}
	}
	if (code)
		buf_adds(out, "</code></pre>");
	return found;
}
