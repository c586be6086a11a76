/* A page's tree as Markdown. */
#ifndef PAGE_MARKDOWN_H
#define PAGE_MARKDOWN_H

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct tree;

struct markdown {
	const char *base;    /* what links are resolved against; "": none */
	size_t links, words; /* that were written */
	bool full;           /* `out` has no room: its end is missing */
};

/* Append to `out`, without what is marked MARK_LEFT_OUT. Text of the page can make no heading,
 * fence, list, table, link or image: what would is escaped. Links are absolute http
 * and https URLs; images are their text alone, `![text]`. Ends with a newline, if there is
 * anything. 0 or AVA_ENOMEM. */
int markdown_render(struct markdown *m, struct buf *out, const struct tree *t);

#endif
