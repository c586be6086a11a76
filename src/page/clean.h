/* Which characters of a page are text. */
#ifndef PAGE_CLEAN_H
#define PAGE_CLEAN_H

#include <stddef.h>
#include <stdint.h>

struct buf;

enum char_kind {
	CHAR_PLAIN,
	CHAR_SPACE,   /* any blank or end of a line: one space in running text */
	CHAR_DROPPED, /* controls, what has no width, bidi controls, tags, glyphs of icon fonts */
};

/* `before` is the character that was kept last: a joiner stays between letters of scripts
 * that are written with it (Arabic, the Indic ones), where it is orthography. */
enum char_kind char_kind(uint32_t c, uint32_t before);

/* Text that keeps its lines and tabs: code, and whatever is not HTML. \r\n and \r become \n;
 * the rest as above. `s` is valid UTF-8. */
int clean_lines(struct buf *out, const char *s, size_t len);
/* One line without blanks at its ends, at most `max` characters: a title, a language. */
int clean_line(struct buf *out, const char *s, size_t len, size_t max);

#endif
