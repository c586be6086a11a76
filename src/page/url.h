/* Resolving the links of a page. */
#ifndef PAGE_URL_H
#define PAGE_URL_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

/* Append `ref` as it stands in a page, resolved against `base` (an http or https URL; "": none): an
 * absolute URL of ASCII without blanks, quotes, brackets or parentheses. false, and nothing
 * appended: it cannot be fetched (another scheme, a name with a password, a place within this page,
 * no host, over 2,000 bytes). */
bool url_resolve(struct buf *out, const char *base, const char *ref, size_t len);

#endif
