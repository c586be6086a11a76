/* A page as it came from the net, as Markdown that a model may read. */
#ifndef PAGE_PAGE_H
#define PAGE_PAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct ava_error;

#define PAGE_BYTES_MAX 10485760 /* most bytes of a body, and of the Markdown by default */

struct page_in {
	const char *base;    /* the page's own URL; NULL: unknown */
	const char *type;    /* MIME type, parameters allowed; NULL: detect it */
	const char *charset; /* charset as the server names it; NULL: none */
	size_t max;          /* most bytes of the Markdown */
	bool source;         /* give the page's source, as text of a known charset */
};

struct page {
	struct buf title, date, lang; /* one line each; empty: not in the page */
	struct buf refresh;           /* URL that the page soon leads to by itself; or empty */
	const char *charset;
	struct buf text; /* the Markdown; may be empty when `refresh` is set */
	size_t links, words;
	bool truncated; /* the end of the page, or of the Markdown, is missing */
};

/* Read a page; `body` is borrowed for the call. On error nothing is to be freed: AVA_EINVAL (not
 * understood) or AVA_ENOMEM, with the reason in `err`. */
int page_read(struct page *p, const struct page_in *in, const char *body, size_t len,
	      struct ava_error *err);
void page_fini(struct page *p);
/* Append the line of JSON that stands before the Markdown, with its newline. */
int page_head(const struct page *p, struct buf *out);

#endif
