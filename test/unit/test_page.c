/* Pages of many kinds against the Markdown beside them (test/page), what a Markdown reader
 * makes of it, charsets, addresses, types, bounds. */
#include "unit.h"

#include <ava.h>
#include <dirent.h>
#include <md4c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "codec/utf8.h"
#include "page/charset.h"
#include "page/clean.h"
#include "page/page.h"
#include "page/url.h"

#define BASE "https://site.example/dir/page.html"

static int read_page(struct page *p, const char *type, const char *charset, const char *body,
		     size_t len, struct ava_error *err)
{
	struct page_in in = {BASE, type, charset, PAGE_BYTES_MAX};

	return page_read(p, &in, body, len, err);
}

/* ---- what a reader of Markdown finds */

struct found {
	size_t links, images, html, headings, code, tables, others;
	bool bad_link;
};

static int on_block(MD_BLOCKTYPE type, void *detail, void *user)
{
	struct found *f = user;

	f->html += type == MD_BLOCK_HTML;
	f->headings += type == MD_BLOCK_H;
	f->code += type == MD_BLOCK_CODE;
	f->tables += type == MD_BLOCK_TABLE;
	f->others += type == MD_BLOCK_UL || type == MD_BLOCK_OL || type == MD_BLOCK_QUOTE ||
		     type == MD_BLOCK_HR;
	return 0;
}

static int on_span(MD_SPANTYPE type, void *detail, void *user)
{
	struct found *f = user;

	f->images += type == MD_SPAN_IMG;
	if (type == MD_SPAN_A) {
		const MD_SPAN_A_DETAIL *a = detail;

		f->links++;
		if (a->href.size < 8 || (memcmp(a->href.text, "http://", 7) != 0 &&
					 memcmp(a->href.text, "https://", 8) != 0))
			f->bad_link = true;
	}
	return 0;
}

static int on_leave(int type, void *detail, void *user)
{
	return 0;
}

static int on_text(MD_TEXTTYPE type, const MD_CHAR *text, MD_SIZE size, void *user)
{
	((struct found *)user)->html += type == MD_TEXT_HTML;
	return 0;
}

static struct found look(const char *markdown, size_t len)
{
	struct found f = {0};
	MD_PARSER parser = {.flags = MD_FLAG_TABLES | MD_FLAG_STRIKETHROUGH,
			    .enter_block = on_block,
			    .leave_block = (int (*)(MD_BLOCKTYPE, void *, void *))on_leave,
			    .enter_span = on_span,
			    .leave_span = (int (*)(MD_SPANTYPE, void *, void *))on_leave,
			    .text = on_text};

	assert_int_equal(md_parse(markdown, (MD_SIZE)len, &parser, &f), 0);
	return f;
}

/* No control, no bidi control, no tag, nothing without a width but a joiner of its script. */
static void check_characters(const char *name, const char *s, size_t len)
{
	uint32_t c = 0, before = ' ';

	for (size_t i = 0, n; i < len; i += n) {
		n = utf8_decode(s + i, len - i, &c);
		if (n == 0)
			fail_msg("%s: byte %zu is no UTF-8", name, i);
		if (c != '\n' && c != '\t' && c != ' ' && char_kind(c, before) != CHAR_PLAIN)
			fail_msg("%s: U+%04X", name, (unsigned)c);
		before = c;
	}
}

static void check_page(const char *folder, const char *file)
{
	char path[512];
	size_t len, want_len, stem = strlen(file) - strlen(".html");
	struct ava_error err = {0};
	struct found f;
	struct page p;
	TEST_BUF(got, PAGE_BYTES_MAX);
	char *body, *want;

	snprintf(path, sizeof(path), "%s/%s", folder, file);
	body = unit_read_src(path, &len);
	snprintf(path, sizeof(path), "%s/%.*s.md", folder, (int)stem, file);
	want = unit_read_src(path, &want_len);
	if (read_page(&p, "text/html", NULL, body, len, &err) != 0)
		fail_msg("%s: %s", file, err.text);
	assert_int_equal(page_head(&p, &got), 0);
	buf_add(&got, p.text.data, p.text.len);
	if (got.len != want_len || memcmp(got.data, want, want_len) != 0)
		fail_msg("%s: not as %s says:\n%s", file, path, got.data);
	check_characters(file, got.data, got.len);
	f = look(p.text.data, p.text.len);
	if (f.links != p.links || f.images > 0 || f.html > 0 || f.bad_link)
		fail_msg("%s: %zu links read of %zu, %zu images, %zu pieces of HTML", file, f.links,
			 p.links, f.images, f.html);
	assert_null(strstr(got.data, "SECRET"));
	page_fini(&p);
	free(body);
	free(want);
}

TEST(pages)
{
	char path[512];
	struct dirent *e;
	size_t n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "%s/test/page", getenv("SRCDIR"));
	d = opendir(path);
	assert_non_null(d);
	while ((e = readdir(d)) != NULL) {
		size_t len = strlen(e->d_name);

		if (len > 5 && strcmp(e->d_name + len - 5, ".html") == 0) {
			check_page("test/page", e->d_name);
			n++;
		}
	}
	closedir(d);
	assert_true(n >= 40);
}

/* Text that would be Markdown is none, wherever it stands. */
TEST(forged)
{
	static const char *const texts[] = {
		"# heading",
		"```",
		"~~~ c",
		"    indented",
		"> quote",
		"- item",
		"1. item",
		"[a](http://e.example/)",
		"| a | b |",
		"***",
		"[r]: http://e.e/",
		"![i](http://e.example/)",
		"&lt;b&gt;",
		"&lt;!-- --&gt;",
		"&lt;http://e.e/&gt;",
		"a&lt;br&gt;b",
		"--- | ---",
		"&amp;#35; x",
		"a  \n===",
		"\\[a](http://e.example/)",
		"`a` ``b``",
		"*a* __b__",
		"&lt;?php",
		"+ x",
		"[a][b] [b]: /x",
		"](http://e.e/)",
		"\\",
		"!",
	};
	static const char *const around[] = {
		"<p>%s</p>",
		"<p>x</p>%s",
		"<ul><li>%s</li></ul>",
		"<blockquote>%s</blockquote>",
		"<p>x<br>%s</p>",
		"<p>x<br><br>%s<br>%s</p>",
		"<table><tr><th>a</th><th>b</th></tr><tr><td>%s</td><td>%s</td></tr></table>",
		"<p><b>%s</b><i>%s</i></p>",
		"<p><a href='http://l.example/'>%s</a>%s</p>",
		"<p>%s<a href='http://l.example/'>x</a></p>",
		"<p><img alt='i'>%s</p>",
		"<p><img alt='%s'></p>",
		"<dl><dt>%s<dd>%s</dl>",
	};

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		for (size_t k = 0; k < ARRAY_LEN(around); k++) {
			struct ava_error err = {0};
			char html[512];
			struct page p;
			struct found f;

			snprintf(html, sizeof(html), around[k], texts[i], texts[i]);
			if (read_page(&p, "text/html", NULL, html, strlen(html), &err) != 0)
				fail_msg("%s: %s", html, err.text);
			f = look(p.text.data, p.text.len);
			if (f.links != p.links || f.links != (strstr(html, "l.example") != NULL) ||
			    f.images || f.html || f.headings || f.code ||
			    f.others != (strstr(html, "<ul>") || strstr(html, "<blockq")) ||
			    f.tables != (strstr(html, "<table>") != NULL))
				fail_msg("%s became\n%s", html, p.text.data);
			page_fini(&p);
		}
	}
}

/* ---- charsets */

TEST(charsets)
{
	static const struct {
		const char *name, *http, *body;
		size_t len;
		const char *charset, *text;
	} cases[] = {
		{"a mark beats the server", "koi8-r", "\xef\xbb\xbf\xc3\xbc", 5, "utf-8", "ü"},
		{"UTF-16 by its mark", NULL, "\xfe\xff\x00\xfc", 4, "utf-16be", "ü"},
		{"UTF-16 by its zeros", NULL, "a\0b\0c\0d\0e\0", 10, "utf-16le", "abcde"},
		{"the server beats the page", "koi8-r", "<meta charset=euc-kr>\xd1", 22, "koi8-r",
		 "<meta charset=euc-kr>я"},
		{"the page", NULL, "<meta charset=koi8-r>\xd1", 22, "koi8-r",
		 "<meta charset=koi8-r>я"},
		{"not in a comment", NULL, "<!-- charset=koi8-r -->\xe9 !!", 27, "windows-1252",
		 "<!-- charset=koi8-r -->é !!"},
		{"a name that is none", "no-such", "\xc3\xbc", 2, "utf-8", "ü"},
		{"a module that is not asked for", "ISO-2022-CN-EXT", "x", 1, "utf-8", "x"},
		{"latin1 is windows-1252", "ISO-8859-1", "\x93x\x94\xe9", 4, "windows-1252",
		 "“x”é"},
		{"a server's default over UTF-8", "latin1", "\xc3\xbc", 2, "utf-8", "ü"},
		{"UTF-8 said of what is not", "utf-8", "caf\xe9 ol\xe9 !!", 11, "windows-1252",
		 "café olé !!"},
		{"UTF-8 with a fault", "utf-8", "\xc3\xbc \xff end", 8, "utf-8",
		 "ü \xef\xbf\xbd end"},
		{"quoted, in capitals", "\"UTF-8\"", "x", 1, "utf-8", "x"},
		{"Shift_JIS as Microsoft's", "shift_jis", "\x87\x40", 2, "shift_jis", "①"},
		{"EUC-JP", "euc-jp", "\xc6\xfc", 2, "euc-jp", "日"},
		{"ISO-2022-JP", "iso-2022-jp", "\x1b$BF|\x1b(B", 8, "iso-2022-jp", "日"},
		{"GB18030", "gbk", "\xc8\xd5\x81\x30\x81\x30", 6, "gb18030", "日\xc2\x80"},
		{"Big5", "big5", "\xa4\xe9", 2, "big5", "日"},
		{"EUC-KR with the rest of Korean", "ks_c_5601-1987", "\x8c\x63", 2, "euc-kr", "똠"},
		{"windows-1251", "cp1251", "\xe4\xe0", 2, "windows-1251", "да"},
		{"ISO-8859-15", "latin-9", "\xa4", 1, "iso-8859-15", "€"},
		{"cut in a sequence", "euc-jp", "a\xc6", 2, "euc-jp", "a\xef\xbf\xbd"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *charset;
		TEST_BUF(out, 4096);

		charset = charset_decode(&out, cases[i].body, cases[i].len, cases[i].http, true);
		if (!charset || strcmp(charset, cases[i].charset) != 0 ||
		    strcmp(out.data, cases[i].text) != 0)
			fail_msg("%s: %s, '%s'", cases[i].name, charset, out.data);
	}
}

/* ---- addresses */

TEST(urls)
{
	static const struct {
		const char *base, *ref, *url; /* NULL: none */
	} cases[] = {
		{"", "http://a.example", "http://a.example/"},
		{"", "x.html", NULL},
		{"http://a.example", "x", "http://a.example/x"},
		{"http://a.example?q", "?r", "http://a.example/?r"},
		{"http://a.example/b/c?q#f", "", NULL},
		{"http://a.example/b/c?q#f", "#g", NULL},
		{"http://a.example/b/c?q#f", "d?e", "http://a.example/b/d?e"},
		{"http://a.example/b/c/", "../../../d", "http://a.example/d"},
		{"http://a.example/b/c/", "..", "http://a.example/b/"},
		{"http://a.example/b/c/", ".", "http://a.example/b/c/"},
		{"https://a.example/", "//b.example/x", "https://b.example/x"},
		{"https://a.example/", "///b.example/x", NULL},
		{"https://a.example/", "\\\\b.example\\x", "https://b.example/x"},
		{"https://a.example/", "http:x", NULL},
		{"https://a.example/", "  \thttps://b\n.example/ ", "https://b.example/"},
		{"https://a.example/", "JavaScript:alert(1)", NULL},
		{"https://a.example/", "java\tscript:alert(1)", NULL},
		{"https://a.example/", "\x01javascript:alert(1)", NULL},
		{"https://a.example/", "mailto:x@y.example", NULL},
		{"https://a.example/", "https://u:p@b.example/", NULL},
		{"https://a.example/", "https://b.example%00.evil/", NULL},
		{"https://a.example/", "a:b", NULL},
		{"https://a.example/", "./a:b", "https://a.example/a:b"},
		{"https://a.example/", "1:b", "https://a.example/1:b"},
		{"file:///etc/", "passwd", NULL},
		{"https://a.example/", "x y\"z<(>)[]`",
		 "https://a.example/x%20y%22z%3C%28%3E%29%5B%5D%60"},
		{"https://a.example/", "%41%zz", "https://a.example/%41%zz"},
		{"https://a.example/", "/ü", "https://a.example/%C3%BC"},
		{"https://a.example/", "http://[::1]:80/", "http://[::1]:80/"},
	};
	char *big = calloc(1, 5000);

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		TEST_BUF(out, 8192);
		bool good;

		good = url_resolve(&out, cases[i].base, cases[i].ref, strlen(cases[i].ref));
		if (good != (cases[i].url != NULL) || (good && strcmp(out.data, cases[i].url) != 0))
			fail_msg("%s + %s: %s", cases[i].base, cases[i].ref,
				 good ? out.data : "none");
		assert_true(good || out.len == 0);
	}
	for (size_t len = 1900; len < 4999; len += 100) {
		TEST_BUF(out, 8192);

		memset(big, 'a', len);
		assert_int_equal(url_resolve(&out, BASE, big, len), len <= 2000);
	}
	free(big);
}

/* ---- types */

TEST(types)
{
	static const struct {
		const char *type, *body;
		size_t len;
		const char *text; /* NULL: refused */
	} cases[] = {
		{"text/plain; charset=utf-8", "a\r\nb\x1b[2J \xe2\x80\xae<b>", 15, "a\nb[2J <b>"},
		{"text/markdown", "# Title\n\ntext", 13, "# Title\n\ntext"},
		{"application/json", "{\"a\": 1}", 8, "{\"a\": 1}"},
		{"application/ld+json", "{}", 2, "{}"},
		{"application/xml", "<a/>", 4, "<a/>"},
		{"application/rss+xml", "<rss/>", 6, "<rss/>"},
		{"text/csv", "a,b\n1,2\n", 8, "a,b\n1,2\n"},
		{"TEXT/HTML;x=y", "<p>a", 4, "a\n"},
		{NULL, "<!DOCTYPE html><p>a", 19, "a\n"},
		{"", "plain", 5, "plain"},
		{NULL, "\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16, NULL},
		{"text/html", "\x89PNG\r\n\x1a\n\0\0\0\rIHDR", 16, NULL},
		{"text/plain", "\0\0\0\0\0\0\0\0", 8, NULL},
		{"image/png", "x", 1, NULL},
		{"image/svg+xml", "<svg/>", 6, NULL},
		{"application/pdf", "%PDF-1.7", 8, NULL},
		{"text/html", "", 0, NULL},
		{"text/html", "<script>x</script>", 18, NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ava_error err = {0};
		struct page p;
		int rv = read_page(&p, cases[i].type, NULL, cases[i].body, cases[i].len, &err);

		if ((rv == 0) != (cases[i].text != NULL))
			fail_msg("case %zu: %d %s", i, rv, err.text);
		if (rv != 0) {
			assert_int_equal(rv, AVA_EINVAL);
			assert_true(err.text[0] != 0 && !strchr(err.text, '\n'));
			continue;
		}
		if (strcmp(p.text.data, cases[i].text) != 0)
			fail_msg("case %zu: '%s'", i, p.text.data);
		page_fini(&p);
	}
}

/* ---- bounds */

static char *times(const char *unit, size_t n)
{
	size_t len = strlen(unit);
	char *s = malloc(len * n + 1);

	for (size_t i = 0; i < n; i++)
		memcpy(s + i * len, unit, len);
	s[len * n] = 0;
	return s;
}

TEST(bounds)
{
	static const struct {
		const char *unit;
		size_t n;
		const char *refused; /* part of the sentence; NULL: what came before is kept */
	} cases[] = {
		{"<div>", 20000, "nested more than 2,000 deep"},
		{"<b>x", 20000, NULL},
		{"<p>x", 300000, NULL}, /* two nodes each */
		{"<ul><li>x", 20000, NULL},
		{"<table><tr><td>x", 20000, NULL},
		{"<blockquote>x", 20000, NULL},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char *html = times(cases[i].unit, cases[i].n);
		struct ava_error err = {0};
		struct page p;
		int rv = read_page(&p, "text/html", NULL, html, strlen(html), &err);

		if (cases[i].refused) {
			assert_int_equal(rv, AVA_EINVAL);
			assert_non_null(strstr(err.text, cases[i].refused));
		} else {
			assert_int_equal(rv, 0);
			assert_true(p.truncated && p.words > 0);
			page_fini(&p);
		}
		free(html);
	}
}

/* What does not fit is left out at the end, and said; never half a character. */
TEST(full)
{
	char *html = times("<p>grün <a href='/x'>blau</a> <code>ж漢字</code> "
			   "<pre>x\ny</pre><table><tr><th>é<th>b</table>",
			   5);

	for (size_t max = 1; max < 400; max++) {
		struct page_in in = {BASE, "text/html", NULL, max};
		struct ava_error err = {0};
		struct page p;

		if (page_read(&p, &in, html, strlen(html), &err) != 0) {
			assert_true(max < 8);
			continue;
		}
		assert_true(p.text.len <= max && utf8_valid(p.text.data, p.text.len));
		assert_true(p.truncated || p.words > 25);
		page_fini(&p);
	}
	free(html);
}

/* The place that a page leads to by itself, as browsers read it. */
TEST(refresh)
{
	static const struct {
		const char *content, *to;
	} cases[] = {
		{"0; url=/next", "https://example.com/next"},
		{"0;URL='/next'", "https://example.com/next"},
		{" 3 , url = \"next?a=1&amp;b=2\" ", "https://example.com/next?a=1&b=2"},
		{"0.5 /next", "https://example.com/next"},
		{"0;https://other.example/", "https://other.example/"},
		{"600;url=/later", NULL},
		{"5", NULL},
		{"", NULL},
		{"0;url=javascript:alert(1)", NULL},
		{"0;url=#top", NULL},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct page_in in = {"https://example.com/", "text/html", NULL, 1000};
		struct ava_error err = {0};
		char html[300];
		struct page p;
		int rv;

		snprintf(html, sizeof(html),
			 "<html><head><meta http-equiv=Refresh content='%s'></head><body></body>",
			 strchr(cases[i].content, '\'') ? "0;URL=&#39;/next&#39;"
							: cases[i].content);
		rv = page_read(&p, &in, html, strlen(html), &err);
		if ((rv == 0) != (cases[i].to != NULL))
			fail_msg("%s: %d", cases[i].content, rv);
		if (rv != 0)
			continue;
		assert_string_equal(p.refresh.data, cases[i].to);
		page_fini(&p);
	}
}

TEST(memory)
{
	static const char html[] =
		"<html "
		"lang=en><title>T</title><style>.a{display:none}</style><body><h1>A</h1><p>text "
		"<a href=x>b</a> <code>c</code><pre>d</pre><ul><li>e</ul><table><tr><th>f<th>g"
		"</table><time datetime=2026-01-01>";

	FAULT_LOOP(k, {
		struct ava_error err = {0};
		struct page p;
		int rv = read_page(&p, "text/html", "iso-8859-15", html, sizeof(html) - 1, &err);

		if (rv == 0)
			page_fini(&p);
		else
			assert_int_equal(rv, AVA_ENOMEM);
	});
}
