/* A page becomes Markdown in which a reader finds the links that were written and nothing that
 * the page could have meant as Markdown or HTML; its characters are all text. Text that is no
 * HTML stays clean. Addresses are ASCII that ends no link. */
#include "fuzz.h"

#include <ava.h>
#include <md4c.h>

#include "codec/utf8.h"
#include "page/clean.h"
#include "page/page.h"
#include "page/url.h"

struct found {
	size_t links, images, html;
};

static int on_block(MD_BLOCKTYPE type, void *detail, void *user)
{
	((struct found *)user)->html += type == MD_BLOCK_HTML;
	return 0;
}

static int on_span(MD_SPANTYPE type, void *detail, void *user)
{
	struct found *f = user;

	f->images += type == MD_SPAN_IMG;
	f->links += type == MD_SPAN_A;
	return 0;
}

static int leave_block(MD_BLOCKTYPE type, void *detail, void *user)
{
	return 0;
}

static int leave_span(MD_SPANTYPE type, void *detail, void *user)
{
	return 0;
}

static int on_text(MD_TEXTTYPE type, const MD_CHAR *text, MD_SIZE size, void *user)
{
	((struct found *)user)->html += type == MD_TEXT_HTML;
	return 0;
}

static void check_text(const struct buf *b)
{
	uint32_t c = 0, before = ' ';

	for (size_t i = 0, n; i < b->len; i += n) {
		n = utf8_decode(b->data + i, b->len - i, &c);
		CHECK(n > 0);
		CHECK(c == '\n' || c == '\t' || c == ' ' || char_kind(c, before) == CHAR_PLAIN);
		before = c;
	}
}

static void check_page(const char *type, const char *s, size_t len, size_t max)
{
	struct page_in in = {"https://b.example/d/p", type, NULL, max};
	MD_PARSER parser = {.flags = MD_FLAG_TABLES | MD_FLAG_STRIKETHROUGH,
			    .enter_block = on_block,
			    .leave_block = leave_block,
			    .enter_span = on_span,
			    .leave_span = leave_span,
			    .text = on_text};
	struct found f = {0};
	struct ava_error err = {0};
	struct page p;

	if (page_read(&p, &in, s, len, &err) != 0) {
		CHECK(err.text[0] != 0);
		return;
	}
	CHECK(p.text.len <= max);
	check_text(&p.text);
	check_text(&p.title);
	if (strcmp(type, "text/html") == 0 && !p.truncated) {
		CHECK(md_parse(p.text.data, (MD_SIZE)p.text.len, &parser, &f) == 0);
		CHECK(f.images == 0 && f.html == 0 && f.links == p.links);
	}
	page_fini(&p);
}

static void check_url(const char *s, size_t len)
{
	struct buf out;

	buf_init(&out, 8192);
	if (url_resolve(&out, "http://b.example/d/p?q", s, len)) {
		CHECK(strncmp(out.data, "http", 4) == 0 && strlen(out.data) == out.len);
		for (size_t i = 0; i < out.len; i++)
			CHECK(out.data[i] > ' ' && out.data[i] < 0x7f &&
			      !strchr("\"<>()\\`|", out.data[i]));
	} else {
		CHECK(out.len == 0);
	}
	buf_fini(&out);
}

FUZZ_TARGET(page, len)
{
	const char *s = (const char *)data;

	check_page("text/html", s, len, 1u << 20);
	check_page("text/html", s, len, 50);
	check_page("text/plain", s, len, 1u << 20);
	check_url(s, len);
}
