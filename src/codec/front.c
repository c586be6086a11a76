/* Front matter: strict YAML. Where other programs are laxer than YAML (text with ": " in it,
 * lines that are not indented, a bare *) the same lines are read with their texts quoted.
 *
 * What can fail: bytes that are no text, a missing fence, and lines that are no YAML even so,
 * reported by the numbers of the original lines. */
#include "codec/front.h"

#include <ava.h>
#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "codec/json.h"
#include "codec/utf8.h"

static bool front_is_blank(char c)
{
	return c != '\0' && strchr(" \t\r\n\f\v", c);
}

/* Length of the line at `s`, without its end; *next: where the next one begins. */
static size_t front_line_at(const char *s, const char *end, const char **next)
{
	const char *nl = memchr(s, '\n', (size_t)(end - s));
	size_t n = (size_t)((nl ? nl : end) - s);

	*next = nl ? nl + 1 : end;
	while (n > 0 && strchr(" \t\r", s[n - 1]))
		n--;
	return n;
}

static bool front_is_fence(const char *s, size_t n)
{
	return n == 3 && memcmp(s, "---", 3) == 0;
}

/* Length of the key where "key: value" begins; 0: no key. Inside a text only known keys end it:
 * people write "user: …" in it. */
static size_t key_at(const char *s, size_t n, bool in_text, front_key_fn kind)
{
	size_t key = 0;

	while (key < n && (isalnum((unsigned char)s[key]) || s[key] == '_' || s[key] == '-'))
		key++;
	if (key == 0 || key == n || s[key] != ':' ||
	    (key + 1 < n && s[key + 1] != ' ' && s[key + 1] != '\t'))
		return 0;
	return in_text && kind(s, key) == FRONT_UNKNOWN ? 0 : key;
}

/* Write the text of a field that strict YAML refuses as a JSON string. */
static void end_text(struct buf *out, struct buf *text, unsigned *lines)
{
	size_t n = text->len, from = 0;

	while (n > 0 && front_is_blank(text->data[n - 1]))
		n--;
	if (n > 1 && (text->data[0] == '"' || text->data[0] == '\'') &&
	    text->data[n - 1] == text->data[0])
		from = 1, n--;
	if (n > from)
		json_escape(out, text->data + from, n - from);
	for (; *lines > 0; --*lines)
		buf_addc(out, '\n');
	buf_reset(text);
}

/* Is this a string in YAML's quotes, with the quote nowhere inside? */
static bool front_is_quoted(const char *s, size_t n)
{
	return n > 1 && (s[0] == '"' || s[0] == '\'') && memchr(s + 1, s[0], n - 1) == s + n - 1;
}

/* Is the value the same with quotes as without, or no text at all (numbers, lists, blocks), so
 * that it must not be quoted? */
static bool is_sound(const char *s, size_t n)
{
	if (n == 0 || strchr("[{|>&!", s[0]))
		return true;
	if (strchr("\"'", s[0]))
		return front_is_quoted(s, n);
	for (size_t i = 0; i < n; i++)
		if (s[i] == ':' && (i + 1 == n || front_is_blank(s[i + 1])))
			return false;
	return !strchr("*@`%?,", s[0]);
}

/* The same lines, in the same places, with the texts of fields quoted. */
static void quoted(struct buf *out, const char *s, const char *end, front_key_fn kind)
{
	struct buf text;
	unsigned lines = 0; /* lines of the open text; 0: no text is open */
	const char *next;
	bool words = false; /* the open field is a text: any line continues it */

	buf_init(&text, out->max);
	for (; s < end; s = next) {
		size_t n = front_line_at(s, end, &next),
		       key = key_at(s, n, lines > 0 && words, kind), at;

		if (key == 0 && lines > 0 && (words || n == 0 || front_is_blank(*s))) {
			buf_addc(&text, '\n');
			buf_add(&text, s, n);
			lines++;
			continue;
		}
		if (lines > 0)
			end_text(out, &text, &lines);
		for (at = key ? key + 1 : 0; at < n && front_is_blank(s[at]); at++)
			;
		words = key && kind(s, key) == FRONT_TEXT;
		if (key == 0 || (!words && is_sound(s + at, n - at))) {
			/* Tabs indent nothing in YAML. */
			for (; key == 0 && n > 0 && *s == '\t'; s++, n--)
				buf_adds(out, "  ");
			buf_add(out, s, n);
			buf_addc(out, '\n');
			continue;
		}
		buf_add(out, s, key + 1);
		buf_addc(out, ' ');
		/* A mark of a block ("|", ">-") is no text. */
		if (n == at || n - at > 3 || (s[at] != '|' && s[at] != '>'))
			buf_add(&text, s + at, n - at);
		lines = 1;
	}
	if (lines > 0)
		end_text(out, &text, &lines);
	buf_fini(&text);
}

static int front_parse(struct front *f, const char *name, const char *end, front_key_fn kind,
		       struct ava_error *err)
{
	int rv = yaml_parse(&f->yaml, name, f->text.data, (size_t)(end - f->text.data), err);
	struct ava_error again = {0};
	struct buf b;

	if (rv != AVA_EINVAL)
		return rv;
	buf_init(&b, 8 * f->text.max);
	quoted(&b, f->text.data, end, kind);
	if (buf_check(&b) == AVA_ENOMEM)
		rv = err_set(err, AVA_ENOMEM, "out of memory");
	else if (buf_check(&b) == 0 && yaml_parse(&f->yaml, name, b.data, b.len, &again) == 0)
		rv = 0;
	buf_fini(&b);
	if (rv == 0 && err)
		*err = (struct ava_error){0};
	return rv;
}

/* Convert line ends of other systems to ours and drop a BOM. */
static int front_clean(struct buf *out, const char *name, const char *bytes, size_t len,
		       struct ava_error *err)
{
	size_t from = len >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0, step;
	unsigned line = 1;

	for (size_t i = from; i < len; i += step) {
		uint32_t c;

		step = utf8_decode(bytes + i, len - i, &c);
		if (step == 0 || c == 0)
			return err_set(err, AVA_EINVAL, "%s:%u: this is no UTF-8 text", name, line);
		line += c == '\n';
		if (c == '\r' && i + 1 < len && bytes[i + 1] == '\n')
			continue;
		if (c == '\r')
			buf_addc(out, '\n');
		else
			buf_add(out, bytes + i, step);
	}
	buf_addc(out, '\n');
	return buf_check(out) == 0 ? 0 : err_set(err, AVA_ENOMEM, "out of memory");
}

static unsigned lines_before(const struct front *f, const char *s)
{
	unsigned n = 1;

	for (const char *c = f->text.data; c < s; c++)
		n += *c == '\n';
	return n;
}

int front_read(struct front *f, const char *name, const char *bytes, size_t len, size_t max,
	       front_key_fn kind, struct ava_error *err)
{
	const char *end, *next, *s;
	int rv;

	if (len > max)
		return err_set(err, AVA_ETOOBIG, "%s: it is %zu bytes long, %zu at the most", name,
			       len, max);
	buf_init(&f->text, max + 1);
	rv = front_clean(&f->text, name, bytes, len, err);
	if (rv != 0)
		return rv;
	end = f->text.data + f->text.len;
	next = f->text.data;
	while (next < end && front_line_at(next, end, &s) == 0)
		next = s;
	f->line = lines_before(f, next < end ? next : f->text.data);
	if (next == end || !front_is_fence(next, front_line_at(next, end, &s)))
		return err_set(err, AVA_EINVAL,
			       "%s:%u: there is no front matter: the first line must be ---", name,
			       f->line);
	for (; s < end && !front_is_fence(s, front_line_at(s, end, &next)); s = next)
		;
	if (s == end)
		return err_set(err, AVA_EINVAL,
			       "%s:%u: the front matter that begins here has no end: a line --- is "
			       "missing",
			       name, f->line);
	f->end_line = lines_before(f, s);
	while (next < end && front_is_blank(*next))
		next++;
	while (end > next && front_is_blank(end[-1]))
		end--;
	f->body = next;
	f->body_len = (size_t)(end - next);
	/* Parsed from the first byte on, so that line numbers are the file's. */
	return front_parse(f, name, s, kind, err);
}

void front_fini(struct front *f)
{
	yaml_free(f->yaml);
	buf_fini(&f->text);
}
