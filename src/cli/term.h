/* The terminal's abilities, and text that is safe to show. */
#ifndef CLI_TERM_H
#define CLI_TERM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum term_colour { TERM_PLAIN, TERM_BOLD, TERM_DIM, TERM_RED, TERM_GREEN, TERM_YELLOW };

/* Characters beyond ASCII: the locale's character set is UTF-8 and the
 * terminal is not a dumb one. Looked up once. */
bool term_utf8(void);
/* NO_COLOR is not set, and `f` is a terminal that is not dumb, or FORCE_COLOR or CLICOLOR_FORCE is.
 */
bool term_colours(FILE *f);
/* Columns of the terminal `f` goes to; 0 when it is none (no limit). */
size_t term_width(FILE *f);
/* A terminal on which a line can be written over (\r). */
bool term_redraws(FILE *f);
/* A terminal that may get sequences beyond those of a plain one: it is neither dumb, nor unnamed,
 * nor the console of Linux, and neither AVA_PLAIN nor AVA_OSC=0 is set. */
bool term_extras(FILE *f);
/* AVA_PLAIN is set: nothing is to be written over. */
bool term_is_plain(void);

/* Text of unknown origin: control characters, escapes, bidi marks become visible; without UTF-8
 * characters beyond ASCII become ASCII. */
void term_text(FILE *f, const char *s, size_t len, bool keep_newlines);
void term_str(FILE *f, const char *s);
/* A part of a line, made safe as a whole; a newline that `fmt` begins or ends with is one. */
void term_print(FILE *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Text that is not ava's, as a model's: each row begins with TERM_MARGIN blanks (less `column` in
 * the first, which are used already), so that no row looks like a line of ava. Rows end at `width`
 * (0: never), and many blanks in a row are one. The output ends with a newline only if the text
 * does. */
#define TERM_MARGIN 2u
void term_theirs(FILE *f, size_t width, const char *s, size_t len, size_t column);
/* term_theirs for text that is safe already: blanks are kept, our styles pass; margin: 0 or
 * TERM_MARGIN. */
void term_put(FILE *f, size_t width, const char *s, size_t len, size_t column, size_t margin);
/* A copy with blanks for tabs, whose width depends on their column. */
struct buf;
int term_flat(struct buf *out, const char *s, size_t len);
/* Text of lines, newlines kept; on a terminal a line that is too long goes on
 * between two words, below its own beginning, and never at the left edge. */
void term_wrapped(FILE *f, const char *s, size_t len);
/* A line of our own, wrapped so; flushed. */
void term_line(FILE *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* term_wrapped for a line of which `column` columns are used; its next rows begin `indent` columns
 * from the left. A newline does not end a row: it is shown as an escape. */
void term_wrapped_line(FILE *f, const char *s, size_t len, size_t column, size_t indent);
/* Data for programs, as it is; where `f` is a terminal, as term_text: JSON
 * escapes control characters, but not those beyond ASCII. */
void term_bytes(FILE *f, const char *s, size_t len);
/* One line of at most `columns` (0: no limit), cut with "…", newlines as
 * spaces. Returns the columns used. */
size_t term_cut(FILE *f, const char *s, size_t len, size_t columns);
/* Columns that `s` takes as term_cut prints it. */
size_t term_columns(const char *s, size_t len);

/* Begin a colour (TERM_PLAIN ends it); nothing where there are no colours. */
void term_colour(FILE *f, enum term_colour c);
/* `utf8` where UTF-8 can be shown, else `plain`. */
const char *term_mark(const char *utf8, const char *plain);

#endif
