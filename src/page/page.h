/* A page as it came from the net, as Markdown that a model may read. */
#ifndef PAGE_PAGE_H
#define PAGE_PAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct ava_error;

#define PAGE_BYTES_MAX 10485760 /* of a body, and of the Markdown, unless told */

struct page_in {
	const char *base;    /* the page's own URL; NULL: not known */
	const char *type;    /* MIME, parameters allowed; NULL: found out */
	const char *charset; /* as the server said it; NULL: not said */
	size_t max;          /* bytes of the Markdown */
	bool source;         /* its source instead, as text of a known charset */
};

struct page {
	struct buf title, date, lang; /* one line each; empty: the page does not say */
	struct buf refresh;           /* where it leads by itself, soon: a URL; or empty */
	const char *charset;
	struct buf text; /* may be empty where `refresh` is not */
	size_t links, words;
	bool truncated; /* the end of the page, or of the Markdown, is missing */
};

/* `body` is borrowed for the call. On error there is nothing to free: AVA_EINVAL (it cannot be
 * understood) or AVA_ENOMEM, and `err` says why. */
int page_read(struct page *p, const struct page_in *in, const char *body, size_t len,
	      struct ava_error *err);
void page_fini(struct page *p);
/* The line of JSON that stands before the Markdown, with its newline. */
int page_head(const struct page *p, struct buf *out);

#endif
