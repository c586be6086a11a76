/* What a page's bytes mean as text. */
#ifndef PAGE_CHARSET_H
#define PAGE_CHARSET_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

/* Decode `body` to UTF-8, appended to `out`; what is no character becomes U+FFFD. Which
 * charset: byte order mark, else `http` (of the Content-Type; NULL: none), else what the
 * first 4 KB of markup say (`markup`: look there), else UTF-8 where it is valid, else
 * windows-1252. A name that nobody knows counts as none. Returns the name it went by, as the
 * WHATWG Encoding Standard has it; NULL with out->error when memory ran out or it does not fit. */
const char *charset_decode(struct buf *out, const char *body, size_t len, const char *http,
			   bool markup);

#endif
