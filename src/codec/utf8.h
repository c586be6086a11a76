/* UTF-8 as the border uses it. */
#ifndef CODEC_UTF8_H
#define CODEC_UTF8_H

#include <stdbool.h>
#include <stddef.h>

struct buf;

/* Strict: no overlong forms, no surrogates, nothing above U+10FFFF. */
bool utf8_valid(const char *s, size_t len);
/* Length in bytes of the first `chars` code points (all of it if fewer). */
size_t utf8_prefix(const char *s, size_t len, size_t chars);
size_t utf8_count(const char *s, size_t len);
/* Copy with U+FFFD for each invalid byte and for NUL. */
int utf8_repair(struct buf *out, const char *s, size_t len);
/* For a terminal: control characters but \n and \t, ESC, C1, bidi controls
 * and Unicode tags become visible \xNN or \u{NNNN}; the rest unchanged. */
int utf8_terminal(struct buf *out, const char *s, size_t len, bool keep_newlines);

#endif
