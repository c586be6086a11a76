/* The characters of a page that are text. */
#ifndef PAGE_CLEAN_H
#define PAGE_CLEAN_H

#include <stddef.h>
#include <stdint.h>

struct buf;

enum char_kind {
	CHAR_PLAIN,
	CHAR_SPACE,   /* a blank or line end: becomes one space in running text */
	CHAR_DROPPED, /* controls, zero width, bidi controls, tags, glyphs of icon fonts */
};

/* The kind of character `c`; `before` is the last kept character: a joiner stays between letters of
 * scripts that are written with it (Arabic, the Indic ones), where it is orthography. */
enum char_kind char_kind(uint32_t c, uint32_t before);

/* Append text that keeps its lines and tabs: code, and all that is not HTML. \r\n and \r become \n;
 * other characters go by char_kind. `s` is valid UTF-8. */
int clean_lines(struct buf *out, const char *s, size_t len);
/* Append one line without blanks at its ends, at most `max` characters: a title, a language. */
int clean_line(struct buf *out, const char *s, size_t len, size_t max);

#endif
