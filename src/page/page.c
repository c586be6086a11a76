/* One page from bytes to Markdown; see page.h.
 *
 * Happy path of HTML: the charset, libxml2's parser into an array, the main text, Markdown. Other
 * text is decoded and cleaned and stays as it is. What is neither, or has no text at all, is
 * refused with a sentence. */
#include "page/page.h"

#include <ava.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"
#include "page/charset.h"
#include "page/clean.h"
#include "page/markdown.h"
#include "page/pick.h"
#include "page/tree.h"
#include "page/url.h"

#define TITLE_MAX       300
#define REFRESH_SECONDS 10

enum page_kind { KIND_HTML, KIND_TEXT, KIND_NONE };

/* ---- kind of the body */

static bool looks_like_html(const char *s, size_t len)
{
	static const char *const signs[] = {"<!doctype html", "<html", "<head", "<body",
					    "<title",         "<p>",   "<div",  "<meta"};

	len = MIN(len, (size_t)1024);
	for (size_t i = 0; i < len; i++)
		for (size_t k = 0; s[i] == '<' && k < ARRAY_LEN(signs); k++)
			if (len - i >= strlen(signs[k]) &&
			    strncasecmp(s + i, signs[k], strlen(signs[k])) == 0)
				return true;
	return false;
}

/* Does it hold control characters that no text has? UTF-16 has its zeros in pairs with others. */
static bool looks_binary(const char *s, size_t len)
{
	size_t odd = 0, zeros = 0;

	len = MIN(len, (size_t)4096);
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];

		zeros += c == 0;
		odd += c != 0 && c < 0x20 && !strchr("\t\n\v\f\r\x1b", c);
	}
	return odd > len / 50 || (zeros > 0 && (zeros < len / 4 || zeros > len / 4 * 3));
}

static enum page_kind page_kind_of(const char *type, const char *body, size_t len)
{
	size_t n = type ? strcspn(type, "; \t") : 0;
	static const char *const texts[] = {
		"application/json",       "application/xml",        "application/javascript",
		"application/yaml",       "application/x-yaml",     "application/x-sh",
		"application/toml",       "application/x-ndjson",   "application/jsonl",
		"application/ecmascript", "application/x-httpd-php"};

	if (n == 0 || (n == 24 && strncasecmp(type, "application/octet-stream", n) == 0))
		return looks_binary(body, len)      ? KIND_NONE
		       : looks_like_html(body, len) ? KIND_HTML
						    : KIND_TEXT;
	if ((n == 9 && strncasecmp(type, "text/html", n) == 0) ||
	    (n == 21 && strncasecmp(type, "application/xhtml+xml", n) == 0))
		return KIND_HTML;
	if ((n > 5 && strncasecmp(type, "text/", 5) == 0) ||
	    (n > 5 && strncasecmp(type + n - 5, "+json", 5) == 0) ||
	    (n > 4 && strncasecmp(type + n - 4, "+xml", 4) == 0 &&
	     strncasecmp(type, "image/", 6) != 0))
		return KIND_TEXT;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		if (strlen(texts[i]) == n && strncasecmp(type, texts[i], n) == 0)
			return KIND_TEXT;
	return KIND_NONE;
}

/* ---- title, date and refresh */

/* Is it 2026-11-24, maybe with a time and a zone? Other forms are no date for a program. */
static bool is_date(const char *s, size_t len)
{
	static const char shape[] = "dddd-dd-dd";

	if (len < 10 || len > 35)
		return false;
	for (size_t i = 0; i < 10; i++)
		if (shape[i] == 'd' ? !isdigit((unsigned char)s[i]) : s[i] != shape[i])
			return false;
	for (size_t i = 10; i < len; i++)
		if (!isdigit((unsigned char)s[i]) && !strchr("T:.+-Z ", s[i]))
			return false;
	return true;
}

/* The first heading is the title of a page without one. */
static void take_heading(struct page *p, const struct tree *t)
{
	struct buf words;

	for (size_t i = 1; i < t->n && p->title.len == 0; i++) {
		if (t->nodes[i].tag != TAG_H1 && t->nodes[i].tag != TAG_H1 + 1)
			continue;
		buf_init(&words, 2000);
		for (size_t k = i + 1; k < t->nodes[i].end; k++)
			if (t->nodes[k].tag == TAG_TEXT)
				buf_add(&words, node_text(t, &t->nodes[k]), t->nodes[k].len);
		clean_line(&p->title, words.data ? words.data : "", words.len, TITLE_MAX);
		buf_fini(&words);
	}
}

/* Read "0; url='/next'", in all the ways that browsers do. */
static void take_refresh(struct page *p, const struct tree *t, const char *base)
{
	const char *s = t->refresh.data;
	long seconds = s ? strtol(s, NULL, 10) : 0;
	size_t n;

	if (!s)
		return;
	s += strspn(s, " \t\r\n0123456789.");
	s += strspn(s, " \t\r\n;,");
	if (strncasecmp(s, "url", 3) == 0 && s[3 + strspn(s + 3, " \t\r\n")] == '=')
		s = strchr(s, '=') + 1;
	s += strspn(s, " \t\r\n'\"");
	n = strcspn(s, "'\"");
	while (n > 0 && isspace((unsigned char)s[n - 1]))
		n--;
	if (n > 0 && seconds <= REFRESH_SECONDS)
		url_resolve(&p->refresh, base, s, n);
}

/* ---- reading it */

void page_fini(struct page *p)
{
	buf_fini(&p->title);
	buf_fini(&p->date);
	buf_fini(&p->lang);
	buf_fini(&p->refresh);
	buf_fini(&p->text);
}

static int read_html(struct page *p, const struct page_in *in, struct buf *utf8,
		     struct ava_error *err)
{
	struct markdown m = {0};
	char *s = utf8->data, *open, *close;
	struct buf base;
	struct tree t;
	int rv;
	const struct buf *title;

	/* Replace NULs, at which libxml2 ends, and definitions in a document type, which it takes
	 * for text. */
	for (char *nul = s; nul && (nul = memchr(nul, 0, utf8->len - (size_t)(nul - s)));)
		*nul = ' ';
	s = s ? strcasestr(s, "<!doctype") : NULL;
	open = s && s - utf8->data < 1024 ? strpbrk(s, "[>") : NULL;
	close = open && *open == '[' ? strstr(open, "]>") : NULL;
	if (close)
		memset(open, ' ', (size_t)(close + 1 - open));
	rv = tree_parse(&t, utf8->data ? utf8->data : "", utf8->len, err);
	if (rv != 0)
		return rv;
	title = t.og_title.len > 0 ? &t.og_title : &t.title;
	clean_line(&p->title, title->data ? title->data : "", title->len, TITLE_MAX);
	for (size_t i = 0; i < ARRAY_LEN(t.dates) && p->date.len == 0; i++)
		if (is_date(t.dates[i].data ? t.dates[i].data : "", t.dates[i].len))
			clean_line(&p->date, t.dates[i].data, t.dates[i].len, 35);
	for (size_t i = 0; i < t.lang.len && i < 35; i++) {
		if (!isalnum((unsigned char)t.lang.data[i]) && t.lang.data[i] != '-')
			break;
		buf_addc(&p->lang, t.lang.data[i]);
	}
	buf_init(&base, 4096);
	if (t.base.len == 0 ||
	    !url_resolve(&base, in->base ? in->base : "", t.base.data, t.base.len))
		buf_adds(&base, in->base ? in->base : "");
	m.base = base.data ? base.data : "";
	take_refresh(p, &t, m.base);
	rv = pick_main(&t);
	if (rv == 0) {
		rv = markdown_render(&m, &p->text, &t);
		p->links = m.links;
		p->words = m.words;
		p->truncated = m.full || t.cut;
	}
	take_heading(p, &t);
	if (rv == 0 && p->text.len == 0 && p->refresh.len == 0)
		rv = err_set(err, AVA_EINVAL,
			     t.cut ? "nothing in it can be read: %s"
				   : "there is no text in it: it may be made by scripts alone%s",
			     t.cut ? t.cut : "");
	else if (rv != 0)
		err_set(err, rv, "there is not enough memory to read it");
	buf_fini(&base);
	tree_fini(&t);
	return rv;
}

static int page_read_text(struct page *p, const struct buf *utf8, struct ava_error *err)
{
	const char *s = utf8->data ? utf8->data : "";
	bool inside = false;

	if (clean_lines(&p->text, s, utf8->len) == AVA_ENOMEM)
		return err_set(err, AVA_ENOMEM, "there is not enough memory to read it");
	p->truncated = p->text.failed;
	for (size_t i = 0; i < p->text.len; i++) {
		bool word = isalnum((unsigned char)p->text.data[i]) ||
			    (unsigned char)p->text.data[i] >= 0x80;

		p->words += word && !inside;
		inside = word;
	}
	return 0;
}

int page_read(struct page *p, const struct page_in *in, const char *body, size_t len,
	      struct ava_error *err)
{
	enum page_kind kind = page_kind_of(in->type, body, len);
	struct buf utf8;
	int rv;

	*p = (struct page){.charset = NULL};
	buf_init(&p->title, 4 * TITLE_MAX);
	buf_init(&p->date, 64);
	buf_init(&p->lang, 64);
	buf_init(&p->refresh, 4096);
	buf_init(&p->text, in->max);
	buf_init(&utf8, 4 * (len + 16));
	if (kind == KIND_NONE)
		rv = err_set(err, AVA_EINVAL, "%.100s is nothing that can be read as text",
			     in->type && in->type[0] ? in->type : "what the server sent");
	else if (looks_binary(body, len))
		rv = err_set(err, AVA_EINVAL, "what the server sent is no text, whatever it says");
	else if (!(p->charset = charset_decode(&utf8, body, len, in->charset,
					       kind == KIND_HTML || in->source)))
		rv = err_set(err, AVA_ENOMEM, "there is not enough memory to read it");
	else
		rv = kind == KIND_HTML && !in->source ? read_html(p, in, &utf8, err)
						      : page_read_text(p, &utf8, err);
	buf_fini(&utf8);
	if (rv == 0 && (p->title.error == AVA_ENOMEM || p->date.failed || p->lang.failed))
		rv = err_set(err, AVA_ENOMEM, "there is not enough memory to read it");
	if (rv != 0)
		page_fini(p);
	return rv;
}

int page_head(const struct page *p, struct buf *out)
{
	struct jw w;

	jw_init(&w, out);
	jw_object(&w, NULL);
	jw_strn(&w, "title", p->title.data ? p->title.data : "", p->title.len);
	jw_strn(&w, "date", p->date.data ? p->date.data : "", p->date.len);
	jw_strn(&w, "lang", p->lang.data ? p->lang.data : "", p->lang.len);
	if (p->refresh.len > 0)
		jw_strn(&w, "refresh", p->refresh.data, p->refresh.len);
	jw_str(&w, "charset", p->charset);
	jw_int(&w, "links", (int64_t)p->links);
	jw_int(&w, "words", (int64_t)p->words);
	jw_bool(&w, "truncated", p->truncated);
	jw_end(&w);
	buf_addc(out, '\n');
	return buf_check(out);
}
