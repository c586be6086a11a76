/* A page's tree as Markdown. */
#ifndef PAGE_MARKDOWN_H
#define PAGE_MARKDOWN_H

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct tree;

struct markdown {
	const char *base;    /* links are resolved against it; "": none */
	size_t links, words; /* numbers of links and words in the output */
	bool full;           /* `out` has no more room: the end is missing */
};

/* Append the page to `out`, without nodes marked MARK_LEFT_OUT. Text of the page is escaped so that
 * it makes no heading, fence, list, table, link or image. Links are absolute http and https URLs;
 * images are their text alone, `![text]`. Ends with a newline, if not empty. 0 or AVA_ENOMEM. */
int markdown_render(struct markdown *m, struct buf *out, const struct tree *t);

#endif
