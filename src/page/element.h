/* Elements: their tags by name, and marks by their attributes for their part in the page. */
#ifndef PAGE_ELEMENT_H
#define PAGE_ELEMENT_H

#include <stdbool.h>

#include "base/buf.h"

enum tag {
	TAG_TEXT,
	TAG_INLINE, /* shown as if the tag were absent */
	TAG_BLOCK,  /* shown on lines of its own; the first of the blocks */
	TAG_P,
	TAG_H1, /* TAG_H1 to TAG_H6, in order */
	TAG_H6 = TAG_H1 + 5,
	TAG_UL,
	TAG_OL, /* node.number: the list's first number */
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
	TAG_MAIN, /* the last of the blocks */
	TAG_TD,   /* node.number: columns that it spans; number2: rows */
	TAG_TH,
	TAG_A,   /* node text: where the link leads */
	TAG_IMG, /* node text: the alternative text */
	TAG_BR,
	TAG_CODE,
	TAG_STRONG,
	TAG_EM,
	TAG_DEL,
	TAG_SUP,
	TAG_DROPPED, /* never a node: no text of the page is in it */
};

/* Marks on an element, from the page's own words about it. */
enum mark {
	MARK_HIDDEN = 1,        /* the element is invisible; never a node */
	MARK_NOSCRIPT = 1 << 1, /* the element shows only without scripts */
	MARK_NAV = 1 << 2,      /* links to other pages, and the page's furniture */
	MARK_ASIDE = 1 << 3,
	MARK_COMMENTS = 1 << 4,
	MARK_NOTICE = 1 << 5,    /* cookies, share bars, advertisements, subscriptions */
	MARK_UNSAID = 1 << 6,    /* aria-hidden, or white where nothing around it has a colour */
	MARK_BODY = 1 << 7,      /* the article's text, by its class or itemprop */
	MARK_LAYOUT = 1 << 8,    /* a table used for layout */
	MARK_LINENO = 1 << 9,    /* a line number of code; never a node */
	MARK_LIT = 1 << 10,      /* the element or an ancestor has a background of its own */
	MARK_LINKED = 1 << 11,   /* the element is within a link; set by page/pick.c */
	MARK_LEFT_OUT = 1 << 12, /* not of the main text; set by page/pick.c */
	MARK_PALE = 1 << 13,     /* white text: visible only on MARK_LIT */
};

static inline bool tag_is_block(enum tag tag)
{
	return tag >= TAG_BLOCK && tag <= TAG_MAIN;
}
/* The tag of a name in small letters; an unknown name: TAG_INLINE. */
enum tag element_tag(const char *name);

/* Remember in `hidden` the classes and ids that a style element's `.name { display: none }` hides,
 * each as ".name " or "#name ". */
void element_style(struct buf *hidden, const char *css, size_t len);

/* Marks by class, id, role, style and the attributes that hide. `atts`: names and values in
 * turn, NULL at the end, as libxml2 gives them; may be NULL. */
unsigned element_of(const struct buf *hidden, enum tag tag, const char *name,
		    const char *const *atts);
const char *element_get(const char *const *atts, const char *name); /* NULL: no such attribute */
/* Find the language of code in its classes ("language-c", "highlight-source-c"); returns its
 * length, 0: none. */
size_t element_language(const char *classes, const char **language);

#endif
