/* A page as a flat array: the elements and texts in the order in which they stand, each with
 * the end of what is below it. So nothing that walks a page recurses, and each pass over it is
 * a loop from one end to the other. */
#ifndef PAGE_TREE_H
#define PAGE_TREE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "page/element.h"

struct ava_error;

#define TREE_DEPTH_MAX 512 /* most depth of nodes; deeper text belongs to the 512th ancestor */

struct node {
	uint32_t end;     /* index of the first node behind this one and its descendants */
	uint32_t parent;  /* index; the first node, the page, is its own parent */
	uint32_t at, len; /* place in tree.text of a text, or of an element's one value */
	uint16_t number, number2;
	uint16_t marks;
	uint8_t tag;
};

struct tree {
	struct node *nodes;
	size_t n, cap;
	struct buf text;
	struct buf title, og_title, lang, base; /* as in the source; title may have newlines */
	struct buf refresh;                     /* content of the first meta element "refresh" */
	struct buf dates[3]; /* dates: of meta, of JSON-LD, of the first time element */
	const char *cut;     /* why the end of the page is missing; NULL: complete */
};

/* Parse HTML, UTF-8 without NUL. On error (AVA_ENOMEM, with a sentence) there is nothing to
 * free. */
int tree_parse(struct tree *t, const char *html, size_t len, struct ava_error *err);
void tree_fini(struct tree *t);

static inline const char *node_text(const struct tree *t, const struct node *n)
{
	return t->text.data ? t->text.data + n->at : "";
}

#endif
