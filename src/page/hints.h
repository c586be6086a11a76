/* What an element's attributes say about its part in the page. */
#ifndef PAGE_HINTS_H
#define PAGE_HINTS_H

#include "base/buf.h"
#include "page/tree.h"

/* Classes and ids that the page's style sheets hide. */
struct hidden_names {
	struct buf names; /* each as ".name " or "#name " */
};

void hints_init(struct hidden_names *h);
void hints_fini(struct hidden_names *h);
/* A style element's text: what `.name { display: none }` hides is remembered. */
void hints_style(struct hidden_names *h, const char *css, size_t len);

/* Marks by class, id, role, style and the attributes that hide. `atts`: names and values in
 * turn, NULL at the end, as libxml2 gives them; may be NULL. */
unsigned hints_of(const struct hidden_names *h, enum tag tag, const char *name,
		  const char *const *atts);
const char *hints_get(const char *const *atts, const char *name); /* NULL: has none */
/* The language of code out of a class ("language-c", "highlight-source-c"); its length. */
size_t hints_language(const char *classes, const char **language);

#endif
