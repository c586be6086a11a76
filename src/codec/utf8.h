/* UTF-8: decoding, checking, and making foreign text safe for terminals and models. */
#ifndef CODEC_UTF8_H
#define CODEC_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

/* The character at the start of `s` (len > 0): its length in bytes, 0 for invalid UTF-8. */
size_t utf8_decode(const char *s, size_t len, uint32_t *cp);

/* Is the text UTF-8, strictly: no overlong forms, no surrogates, nothing above U+10FFFF? */
bool utf8_valid(const char *s, size_t len);
/* Length in bytes of the first `chars` code points (all of it if fewer). An
 * invalid byte counts as one, here and below. */
size_t utf8_prefix(const char *s, size_t len, size_t chars);
size_t utf8_count(const char *s, size_t len);
/* Append a copy with U+FFFD for each invalid byte and for NUL. */
int utf8_repair(struct buf *out, const char *s, size_t len);
/* Append text for a terminal: control characters but \n and \t, ESC, C1, bidi controls and Unicode
 * tags become visible \xNN or \u{NNNN}; the rest is unchanged. */
int utf8_terminal(struct buf *out, const char *s, size_t len, bool keep_newlines);
/* Append a stranger's text for a model, without its invisible parts. Left out: bidi controls,
 * characters of no width (but the joiners that scripts need), tags and other selectors that can
 * hide a text, control characters but \n and \t. \r\n and \r become \n, invalid bytes and NUL
 * U+FFFD. */
int utf8_plain(struct buf *out, const char *s, size_t len);
/* Append text for a model that must stay complete: bidi embeddings, overrides and isolates,
 * characters of no width (but joiners) and tags become visible \u{NNNN}; the rest is unchanged. */
int utf8_shown(struct buf *out, const char *s, size_t len);

/* Is the character a blank of any kind, but no line end? */
bool utf8_blank(uint32_t cp);
/* Append a copy in which blanks of all kinds, more than UTF8_BLANKS in a row, are one space. */
#define UTF8_BLANKS 8
int utf8_prose(struct buf *out, const char *s, size_t len);

/* A line's beginning as a reader sees it: blanks of all kinds are one space, none at the start,
 * and invisible characters that utf8_terminal lets through (joiners, soft hyphens, selectors)
 * are left out. As many characters as fit; NUL-terminated; returns their bytes. */
size_t utf8_seen(char *out, size_t size, const char *s, size_t len);

#endif
