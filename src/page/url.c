/* Resolving references the way browsers do, for http and https alone; see url.h.
 *
 * Happy path: blanks and controls that browsers ignore are taken out (`java\nscript:` is
 * javascript:), the scheme is looked at, what is missing is taken from the base, `.` and `..`
 * are walked, and whatever could end a Markdown link or a line is percent-encoded. Nothing
 * here decides what may be fetched: that is the fetcher's, on the address it connects to.
 * https://url.spec.whatwg.org/#url-parsing is the model; what it repairs beyond that (one
 * slash, an empty host) is refused. */
#include "page/url.h"

#include <string.h>
#include <strings.h>

#include "base/buf.h"

#define URL_MAX 2000

struct parts {
	const char *host, *path, *rest; /* places in the text; rest: from ? or # on */
	size_t scheme_len, host_len, path_len;
};

/* The scheme's length with its colon; 0: none. */
static size_t scheme_len(const char *s)
{
	size_t n = 0;

	while ((s[n] | 32) >= 'a' && (s[n] | 32) <= 'z')
		n++;
	while (n > 0 && s[n] &&
	       (((s[n] | 32) >= 'a' && (s[n] | 32) <= 'z') || (s[n] >= '0' && s[n] <= '9') ||
		strchr("+-.", s[n])))
		n++;
	return n > 0 && s[n] == ':' ? n + 1 : 0;
}

static bool is_web(const char *s, size_t n)
{
	return (n == 5 && strncasecmp(s, "http:", 5) == 0) ||
	       (n == 6 && strncasecmp(s, "https:", 6) == 0);
}

/* Split `//host/path?query`, without its scheme. */
static bool url_split(const char *s, struct parts *p)
{
	if (s[0] != '/' || s[1] != '/')
		return false;
	p->host = s + 2;
	p->host_len = strcspn(p->host, "/?#");
	p->path = p->host + p->host_len;
	p->path_len = strcspn(p->path, "?#");
	p->rest = p->path + p->path_len;
	return p->host_len > 0 && p->host_len < 256 && !memchr(p->host, '@', p->host_len) &&
	       !memchr(p->host, '%', p->host_len);
}

static void add_encoded(struct buf *out, const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c <= ' ' || c >= 0x7f || strchr("\"<>()[]{}|\\^`", c))
			buf_addf(out, "%%%02X", c);
		else
			buf_addc(out, (char)c);
	}
}

/* Append a path without its dot segments. */
static void url_add_path(struct buf *out, const char *s, size_t len)
{
	size_t start = out->len;

	for (size_t i = 0; i < len;) {
		const char *at = s + i, *slash = memchr(at + 1, '/', len - i - 1);
		size_t n = slash ? (size_t)(slash - at) : len - i;
		bool one = n == 2 && at[1] == '.', two = n == 3 && at[1] == '.' && at[2] == '.';

		if (two) {
			while (out->len > start && out->data[--out->len] != '/')
				;
		} else if (!one) {
			add_encoded(out, at, n);
		}
		if ((one || two) && !slash)
			buf_addc(out, '/');
		i += n;
	}
	if (out->len == start)
		buf_addc(out, '/');
	if (out->data)
		out->data[out->len] = 0;
}

/* Copy a reference without what browsers ignore; back slashes before the query become slashes. */
static bool tidy(char *to, const char *ref, size_t len)
{
	size_t n = 0;
	bool query = false;

	while (len > 0 && (unsigned char)ref[0] <= ' ')
		ref++, len--;
	while (len > 0 && (unsigned char)ref[len - 1] <= ' ')
		len--;
	for (size_t i = 0; i < len; i++) {
		if (strchr("\t\r\n", ref[i]) && ref[i])
			continue;
		if (n >= URL_MAX || !ref[i])
			return false;
		query = query || ref[i] == '?' || ref[i] == '#';
		to[n++] = ref[i] == '\\' && !query ? '/' : ref[i];
	}
	to[n] = 0;
	return n > 0;
}

static void url_put(struct buf *out, const char *scheme, size_t scheme_n, const struct parts *host,
		    const char *path, size_t path_len)
{
	for (size_t i = 0; i < scheme_n; i++)
		buf_addc(out,
			 (char)(scheme[i] >= 'A' && scheme[i] <= 'Z' ? scheme[i] + 32 : scheme[i]));
	buf_adds(out, "//");
	for (size_t i = 0; i < host->host_len; i++) {
		char c = host->host[i];

		c = (char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
		/* An IPv6 address keeps its brackets: no link is open that they could end. */
		if (strchr("[]:", c))
			buf_addc(out, c);
		else
			add_encoded(out, &c, 1);
	}
	url_add_path(out, path, path_len);
}

bool url_resolve(struct buf *out, const char *base, const char *ref, size_t len)
{
	char text[URL_MAX + 1], joined[2 * URL_MAX + 2];
	size_t scheme_n, base_n = scheme_len(base), begin = out->len;
	struct parts to = {0}, from = {0};
	bool based = is_web(base, base_n) && url_split(base + base_n, &from);

	if (!tidy(text, ref, len) || text[0] == '#' || strlen(base) > URL_MAX)
		return false;
	scheme_n = scheme_len(text);
	if (scheme_n > 0) {
		if (!is_web(text, scheme_n) || !url_split(text + scheme_n, &to))
			return false;
		url_put(out, text, scheme_n, &to, to.path, to.path_len);
	} else if (!based) {
		return false;
	} else if (text[0] == '/' && text[1] == '/') {
		if (!url_split(text, &to))
			return false;
		url_put(out, base, base_n, &to, to.path, to.path_len);
	} else {
		size_t n = strcspn(text, "?#"), keep = from.path_len;

		to.rest = text + n;
		if (n > 0) /* resolve against the base's folder, or the top */
			for (keep = text[0] == '/' ? 0 : keep;
			     keep > 0 && from.path[keep - 1] != '/';)
				keep--;
		memcpy(joined, from.path, keep);
		if (keep == 0 && text[0] != '/')
			joined[keep++] = '/';
		memcpy(joined + keep, text, n);
		url_put(out, base, base_n, &from, joined, keep + n);
	}
	add_encoded(out, to.rest, strlen(to.rest));
	if (out->failed || out->len - begin > URL_MAX + 500)
		out->len = begin;
	if (out->data)
		out->data[out->len] = 0;
	return !out->failed && out->len > begin;
}
