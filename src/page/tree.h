/* A page as a flat array: the elements and texts in the order in which they stand, each with
 * the end of what is below it. So nothing that walks a page recurses, and each pass over it is
 * a loop from one end to the other. */
#ifndef PAGE_TREE_H
#define PAGE_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct ava_error;

#define TREE_DEPTH_MAX 512 /* of nodes; what is deeper counts as its 512th ancestor's */

enum tag {
	TAG_TEXT,
	TAG_INLINE, /* shown as if it were not there */
	TAG_BLOCK,  /* on lines of its own; the first of the blocks */
	TAG_P,
	TAG_H1, /* to H6, in order */
	TAG_H2,
	TAG_H3,
	TAG_H4,
	TAG_H5,
	TAG_H6,
	TAG_UL,
	TAG_OL, /* number: its first */
	TAG_LI,
	TAG_DT,
	TAG_DD,
	TAG_PRE,
	TAG_QUOTE,
	TAG_HR,
	TAG_TABLE,
	TAG_CAPTION,
	TAG_ROWS, /* thead, tbody, tfoot */
	TAG_TR,
	TAG_ARTICLE,
	TAG_MAIN,
	TAG_LAST_BLOCK = TAG_MAIN,
	TAG_TD, /* number: columns, number2: rows */
	TAG_TH,
	TAG_A,   /* text: where it leads */
	TAG_IMG, /* text: what stands in its place */
	TAG_BR,
	TAG_CODE,
	TAG_STRONG,
	TAG_EM,
	TAG_DEL,
	TAG_SUP,
	TAG_DROPPED, /* never a node: nothing in it is text of the page */
};

/* What stands in the page's own words about an element (page/hints.h). */
enum mark {
	MARK_HIDDEN = 1,        /* nobody sees it; never a node */
	MARK_NOSCRIPT = 1 << 1, /* seen without scripts only */
	MARK_NAV = 1 << 2,      /* ways to other pages, and the page's furniture */
	MARK_ASIDE = 1 << 3,
	MARK_COMMENTS = 1 << 4,
	MARK_NOTICE = 1 << 5,    /* cookies, share bars, advertisements, subscriptions */
	MARK_UNSAID = 1 << 6,    /* aria-hidden, or white where nothing around it has a colour */
	MARK_BODY = 1 << 7,      /* the article's text, by its own word */
	MARK_LAYOUT = 1 << 8,    /* a table that is none */
	MARK_LINENO = 1 << 9,    /* of code; never a node */
	MARK_LIT = 1 << 10,      /* it, or what it stands in, has a background of its own */
	MARK_LINKED = 1 << 11,   /* within a link; page/pick.c */
	MARK_LEFT_OUT = 1 << 12, /* not the main text; page/pick.c */
	MARK_PALE = 1 << 13,     /* white text: seen only on what is lit */
};

struct node {
	uint32_t end;     /* the first node behind it and all below it */
	uint32_t parent;  /* of the first node, which is the page: itself */
	uint32_t at, len; /* in tree.text: a text, or an element's one value */
	uint16_t number, number2;
	uint16_t marks;
	uint8_t tag;
};

struct tree {
	struct node *nodes;
	size_t n, cap;
	struct buf text;
	struct buf title, og_title, lang, base; /* as they stand there; title may have newlines */
	struct buf dates[3];                    /* of meta, of JSON-LD, of the first time element */
	const char *cut; /* why the end of the page is missing; NULL: it is not */
};

/* Parse UTF-8 without NUL. On error (AVA_ENOMEM, with a sentence) there is nothing to free. */
int tree_parse(struct tree *t, const char *html, size_t len, struct ava_error *err);
void tree_fini(struct tree *t);

static inline bool tag_is_block(enum tag tag)
{
	return tag >= TAG_BLOCK && tag <= TAG_LAST_BLOCK;
}
static inline const char *node_text(const struct tree *t, const struct node *n)
{
	return t->text.data ? t->text.data + n->at : "";
}

#endif
