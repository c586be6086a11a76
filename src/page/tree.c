/* libxml2's HTML parser calls, and what it says becomes an array; see tree.h.
 *
 * Happy path: for each start tag a node (or none: what is hidden, scripts, controls of forms),
 * for each text a node, and at each end tag the end of its node. What the head says of the page
 * is picked up on the way. libxml2 builds no tree of its own, so that memory is the array, the
 * texts and its table of names, and each of these has a bound here.
 *
 * A page that passes a bound (elements, depth) ends there: what came before is kept, and
 * tree.cut says why. The time that a page may take is not counted here: the program has a
 * limit of processor time (page/main.c). The parser opens no file and no connection, and HTML
 * has no entities that a page defines. */
#include "page/tree.h"

#include <ava.h>
#include <libxml/HTMLparser.h>
#include <libxml/parserInternals.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"

#define NODES_MAX  500000
#define NESTED_MAX 2000    /* depth of elements in the source */
#define NAMES_MAX  8388608 /* bytes of libxml2's table of names */
#define VALUE_MAX  4000    /* bytes of a link or an image's text */
#define SCRIPT_MAX 65536   /* bytes read of a script or style */
#define HIDDEN_MAX 4096    /* bytes of names that style sheets hide */
#define NONE       UINT32_MAX

struct open {
	const char *name; /* libxml2's string: equal names are one pointer */
	uint32_t node;    /* node of the element, or the ancestor's that it counts as */
	bool own, skipped;
};

struct tree_parse {
	struct tree *t;
	htmlParserCtxtPtr ctxt;
	struct buf hidden;  /* classes and ids that style sheets hide */
	struct open *stack; /* NESTED_MAX + 1 */
	size_t depth;       /* of the stack; [0] is the page */
	size_t nodes_deep;
	struct buf script; /* text of the open script or style element */
	bool in_script, in_title, failed;
};

static void tree_stop(struct tree_parse *p, const char *why)
{
	if (why && !p->t->cut)
		p->t->cut = why;
	p->failed = p->failed || !why;
	xmlStopParser(p->ctxt);
}

static struct node *add_node(struct tree_parse *p, enum tag tag, uint32_t parent)
{
	struct tree *t = p->t;

	if (t->n >= NODES_MAX) {
		tree_stop(p, "it has more than 500,000 elements and texts");
		return NULL;
	}
	if (!ARRAY_ROOM(t->nodes, t->cap, t->n + 1)) {
		tree_stop(p, NULL);
		return NULL;
	}
	t->nodes[t->n] = (struct node){.tag = (uint8_t)tag, .parent = parent};
	t->nodes[t->n].end = (uint32_t)t->n + 1;
	return &t->nodes[t->n++];
}

static void tree_set_value(struct tree_parse *p, struct node *n, const char *value, size_t len)
{
	if (!value || len > VALUE_MAX)
		return;
	n->at = (uint32_t)p->t->text.len;
	n->len = (uint32_t)len;
	if (buf_add(&p->t->text, value, len) != 0)
		tree_stop(p, p->t->text.error == AVA_ENOMEM ? NULL : "its text is too long");
}

/* ---- the head */

static void keep_first(struct buf *to, const char *value)
{
	if (value && to->len == 0 && strlen(value) < to->max)
		buf_adds(to, value);
}

static void take_meta(struct tree *t, const char *const *atts)
{
	static const char *const dates[] = {"article:published_time",
					    "datePublished",
					    "date",
					    "pubdate",
					    "publishdate",
					    "dc.date",
					    "dcterms.created",
					    "citation_publication_date"};
	const char *name = element_get(atts, "property"), *content = element_get(atts, "content");

	name = name ? name : element_get(atts, "name");
	name = name ? name : element_get(atts, "itemprop");
	if (name && strcmp(name, "og:title") == 0)
		keep_first(&t->og_title, content);
	for (size_t i = 0; name && i < ARRAY_LEN(dates); i++)
		if (strcasecmp(name, dates[i]) == 0)
			keep_first(&t->dates[0], content);
	name = element_get(atts, "http-equiv");
	if (name && strcasecmp(name, "content-language") == 0)
		keep_first(&t->lang, content);
	if (name && strcasecmp(name, "refresh") == 0)
		keep_first(&t->refresh, content);
}

/* Take the first date of that name from structured data. */
static void take_json_date(struct tree_parse *p)
{
	const char *s = p->script.data ? strstr(p->script.data, "\"datePublished\"") : NULL;
	const char *end;

	if (!s)
		return;
	s += strlen("\"datePublished\"");
	s += strspn(s, " \t\r\n");
	if (*s++ != ':')
		return;
	s += strspn(s, " \t\r\n");
	if (*s++ != '"')
		return;
	end = strchr(s, '"');
	if (end && p->t->dates[1].len == 0)
		buf_add(&p->t->dates[1], s, MIN((size_t)(end - s), (size_t)40));
}

static void tree_take_said(struct tree_parse *p, const char *name, const char *const *atts)
{
	const char *type = element_get(atts, "type"), *prop = element_get(atts, "itemprop");

	if (strcmp(name, "meta") == 0) {
		take_meta(p->t, atts);
	} else if (strcmp(name, "base") == 0) {
		keep_first(&p->t->base, element_get(atts, "href"));
	} else if (strcmp(name, "html") == 0) {
		keep_first(&p->t->lang, element_get(atts, "lang"));
		keep_first(&p->t->lang, element_get(atts, "xml:lang"));
	} else if (strcmp(name, "time") == 0) {
		bool published = (prop && strcmp(prop, "datePublished") == 0) ||
				 element_get(atts, "pubdate");

		keep_first(&p->t->dates[published ? 0 : 2], element_get(atts, "datetime"));
	} else if (strcmp(name, "style") == 0 || (strcmp(name, "script") == 0 && type &&
						  strcmp(type, "application/ld+json") == 0)) {
		p->in_script = true;
		buf_reset(&p->script);
	} else if (strcmp(name, "title") == 0) {
		p->in_title = p->t->title.len == 0;
	}
}

/* ---- callbacks of libxml2 */

static unsigned span_of(const char *const *atts, const char *name, long most)
{
	const char *s = element_get(atts, name);
	long n = s ? strtol(s, NULL, 10) : 1;

	return (unsigned)(n < 1 ? 1 : n > most ? most : n);
}

/* Take the one attribute that is shown, and the numbers. */
static void tree_take_value(struct tree_parse *p, struct node *n, const char *const *atts)
{
	const char *value = NULL, *language, *classes = element_get(atts, "class");
	size_t len = 0;

	switch (n->tag) {
	case TAG_A:
		value = element_get(atts, "href");
		break;
	case TAG_IMG:
		value = element_get(atts, "alt");
		break;
	case TAG_OL:
		n->number = (uint16_t)span_of(atts, "start", 9999);
		break;
	case TAG_TD:
	case TAG_TH:
		n->number = (uint16_t)span_of(atts, "colspan", 50);
		n->number2 = (uint16_t)span_of(atts, "rowspan", 1000);
		break;
	case TAG_PRE:
	case TAG_CODE:
	case TAG_BLOCK:
		/* A block around code gives a language only where its class says that it holds
		 * code. */
		if (classes && (n->tag != TAG_BLOCK || strstr(classes, "highlight-")))
			len = element_language(classes, &language);
		if (len > 0)
			tree_set_value(p, n, language, len);
		else if (n->tag != TAG_BLOCK)
			value = element_get(atts, "data-lang");
		break;
	default:
		break;
	}
	if (value)
		tree_set_value(p, n, value, strlen(value));
}

static void tree_on_start(void *ctx, const xmlChar *xname, const xmlChar **xatts)
{
	struct tree_parse *p = ctx;
	const char *name = (const char *)xname;
	const char *const *atts = (const char *const *)xatts;
	struct open *up = &p->stack[p->depth - 1], *me;
	unsigned lit, marks;
	struct node *n;
	enum tag tag;
	bool titled;

	if (p->depth > NESTED_MAX) {
		tree_stop(p, "its elements are nested more than 2,000 deep");
		return;
	}
	me = &p->stack[p->depth++];
	*me = (struct open){.name = name, .node = up->node, .skipped = up->skipped};
	if (up->skipped)
		return;
	tree_take_said(p, name, atts);
	/* The outermost elements are the page itself, whatever their attributes say. */
	if (strcmp(name, "html") == 0 || strcmp(name, "body") == 0 || strcmp(name, "head") == 0)
		return;
	/* In a list of questions a question is often a button. */
	tag = p->t->nodes[up->node].tag;
	titled = (tag >= TAG_H1 && tag <= TAG_H6) || tag == TAG_DT;
	tag = titled && strcmp(name, "button") == 0 ? TAG_INLINE : element_tag(name);
	marks = tag == TAG_DROPPED ? 0 : element_of(&p->hidden, tag, name, atts);
	if (tag == TAG_DROPPED || (marks & (MARK_HIDDEN | MARK_LINENO))) {
		me->skipped = true;
		return;
	}
	if (element_get(atts, "role") && strcmp(element_get(atts, "role"), "main") == 0)
		tag = TAG_MAIN;
	if (p->nodes_deep >= TREE_DEPTH_MAX)
		return;
	lit = p->t->nodes[up->node].marks & MARK_LIT;
	n = add_node(p, tag, up->node);
	if (!n)
		return;
	me->node = (uint32_t)(n - p->t->nodes);
	me->own = true;
	p->nodes_deep++;
	if ((marks & MARK_PALE) && !((marks | lit) & MARK_LIT))
		marks |= MARK_UNSAID;
	n->marks = (uint16_t)(marks | lit);
	tree_take_value(p, n, atts);
}

static void close_open(struct tree_parse *p)
{
	struct open *me = &p->stack[--p->depth];

	if (me->own) {
		p->t->nodes[me->node].end = (uint32_t)p->t->n;
		p->nodes_deep--;
	}
}

static void tree_on_end(void *ctx, const xmlChar *xname)
{
	struct tree_parse *p = ctx;
	const char *name = (const char *)xname;
	size_t at = p->depth;

	while (at > 1 && strcmp(p->stack[at - 1].name, name) != 0)
		at--;
	if (at <= 1)
		return;
	while (p->depth >= at)
		close_open(p);
	p->in_title = false;
	if (p->in_script && strcmp(name, "style") == 0)
		element_style(&p->hidden, p->script.data ? p->script.data : "", p->script.len);
	else if (p->in_script)
		take_json_date(p);
	p->in_script = false;
}

static bool tree_is_blank(const char *s, size_t len)
{
	while (len > 0 && strchr(" \t\r\n\f", s[len - 1]) && s[len - 1])
		len--;
	return len == 0;
}

static void tree_on_text(void *ctx, const xmlChar *xs, int xlen)
{
	struct tree_parse *p = ctx;
	struct tree *t = p->t;
	const char *s = (const char *)xs;
	size_t len = (size_t)xlen;
	const struct open *up = &p->stack[p->depth - 1];
	struct node *last = t->n > 0 ? &t->nodes[t->n - 1] : NULL;
	enum tag tag = t->nodes[up->node].tag;

	if (p->in_script)
		buf_add(&p->script, s, len);
	else if (p->in_title)
		buf_add(&t->title, s, MIN(len, t->title.max - t->title.len));
	if (up->skipped || len == 0 || p->failed)
		return;
	if ((tag == TAG_UL || tag == TAG_OL || tag == TAG_TABLE || tag == TAG_ROWS ||
	     tag == TAG_TR) &&
	    tree_is_blank(s, len))
		return;
	if (last->tag != TAG_TEXT || last->parent != up->node ||
	    last->at + last->len != t->text.len) {
		last = add_node(p, TAG_TEXT, up->node);
		if (!last)
			return;
		last->at = (uint32_t)t->text.len;
	}
	last->len += (uint32_t)len;
	if (buf_add(&t->text, s, len) != 0) {
		last->len -= (uint32_t)len;
		tree_stop(p, t->text.error == AVA_ENOMEM ? NULL : "its text is too long");
	}
}

/* ---- */

void tree_fini(struct tree *t)
{
	free(t->nodes);
	buf_fini(&t->text);
	buf_fini(&t->title);
	buf_fini(&t->og_title);
	buf_fini(&t->lang);
	buf_fini(&t->base);
	buf_fini(&t->refresh);
	for (size_t i = 0; i < ARRAY_LEN(t->dates); i++)
		buf_fini(&t->dates[i]);
	t->nodes = NULL;
	t->n = t->cap = 0;
}

static bool run_parser(struct tree_parse *p, const char *html, size_t len)
{
	htmlSAXHandler sax = {.startElement = tree_on_start,
			      .endElement = tree_on_end,
			      .characters = tree_on_text,
			      .ignorableWhitespace = tree_on_text,
			      .cdataBlock = tree_on_text};

	p->ctxt = htmlCreateMemoryParserCtxt(html, (int)len);
	if (!p->ctxt)
		return false;
	*p->ctxt->sax = sax;
	p->ctxt->userData = p;
	htmlCtxtUseOptions(p->ctxt, HTML_PARSE_RECOVER | HTML_PARSE_NOERROR | HTML_PARSE_NOWARNING |
					    HTML_PARSE_NONET | HTML_PARSE_IGNORE_ENC |
					    HTML_PARSE_NODEFDTD);
	xmlSwitchEncoding(p->ctxt, XML_CHAR_ENCODING_UTF8);
	xmlDictSetLimit(p->ctxt->dict, NAMES_MAX);
	htmlParseDocument(p->ctxt);
	if (p->ctxt->errNo == XML_ERR_NO_MEMORY && !p->t->cut)
		p->t->cut = "it has too many names";
	htmlFreeParserCtxt(p->ctxt);
	return !p->failed;
}

int tree_parse(struct tree *t, const char *html, size_t len, struct ava_error *err)
{
	struct tree_parse p = {.t = t};
	bool ok;

	*t = (struct tree){.nodes = NULL};
	buf_init(&t->text, len + 4096);
	buf_init(&t->title, 2000);
	buf_init(&t->og_title, 2000);
	buf_init(&t->lang, 100);
	buf_init(&t->base, 2000);
	buf_init(&t->refresh, 2000);
	for (size_t i = 0; i < ARRAY_LEN(t->dates); i++)
		buf_init(&t->dates[i], 100);
	buf_init(&p.hidden, HIDDEN_MAX);
	buf_init(&p.script, SCRIPT_MAX);
	p.stack = calloc(NESTED_MAX + 1, sizeof(*p.stack));
	ok = p.stack != NULL;
	if (ok) {
		p.depth = 1;
		p.stack[0].name = "";
		ok = add_node(&p, TAG_BLOCK, 0) != NULL && (len == 0 || run_parser(&p, html, len));
	}
	while (ok && p.depth > 1)
		close_open(&p);
	if (ok)
		t->nodes[0].end = (uint32_t)t->n;
	free(p.stack);
	buf_fini(&p.script);
	buf_fini(&p.hidden);
	if (ok)
		return 0;
	tree_fini(t);
	return err_set(err, AVA_ENOMEM, "there is not enough memory to read it");
}
