/* Decoding the bytes of a page. */
#ifndef PAGE_CHARSET_H
#define PAGE_CHARSET_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

/* Decode `body` to UTF-8, appended to `out`; invalid bytes become U+FFFD. The charset is that of
 * the byte order mark, else `http` (of the Content-Type; NULL: none), else of the first 4 KB of
 * markup (`markup`: look there), else UTF-8 where it is valid, else windows-1252. Unknown names are
 * ignored. Returns the charset's name in the WHATWG Encoding Standard; NULL with out->error when
 * memory ran out or it does not fit. */
const char *charset_decode(struct buf *out, const char *body, size_t len, const char *http,
			   bool markup);

#endif
