/* What an element is: by its name, and by what its attributes say about its part in the page. */
#ifndef PAGE_ELEMENT_H
#define PAGE_ELEMENT_H

#include <stdbool.h>

#include "base/buf.h"

enum tag {
	TAG_TEXT,
	TAG_INLINE, /* shown as if it were not there */
	TAG_BLOCK,  /* on lines of its own; the first of the blocks */
	TAG_P,
	TAG_H1, /* to 6, in order */
	TAG_H6 = TAG_H1 + 5,
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
	TAG_MAIN, /* the last of the blocks */
	TAG_TD,   /* number: columns, number2: rows */
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

/* What stands in the page's own words about an element. */
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

static inline bool tag_is_block(enum tag tag)
{
	return tag >= TAG_BLOCK && tag <= TAG_MAIN;
}
/* By its name, in small letters; what is not known is shown as if it were not there. */
enum tag element_tag(const char *name);

/* Classes and ids that the page's style sheets hide. */
struct hidden_names {
	struct buf names; /* each as ".name " or "#name " */
};

void element_init(struct hidden_names *h);
void element_fini(struct hidden_names *h);
/* A style element's text: what `.name { display: none }` hides is remembered. */
void element_style(struct hidden_names *h, const char *css, size_t len);

/* Marks by class, id, role, style and the attributes that hide. `atts`: names and values in
 * turn, NULL at the end, as libxml2 gives them; may be NULL. */
unsigned element_of(const struct hidden_names *h, enum tag tag, const char *name,
		    const char *const *atts);
const char *element_get(const char *const *atts, const char *name); /* NULL: has none */
/* The language of code out of a class ("language-c", "highlight-source-c"); its length. */
size_t element_language(const char *classes, const char **language);

#endif
