/* Markdown as a terminal shows it. The text is a model's: its escapes are made
 * visible, its HTML is text, its addresses stand beside what they are behind. */
#ifndef CLI_MARKDOWN_H
#define CLI_MARKDOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Blocks on lines of their own, ending with a newline; on a terminal lines end
 * between words. `column`: columns of the first line that are used already.
 * Styles only where `f` has colours. Where the Markdown library is missing the
 * text stands as it is. */
void markdown_show(FILE *f, const char *text, size_t len, size_t column);

/* The text begins with an item of a list, which stands close to what is before. */
bool markdown_is_item(const char *text, size_t len);

/* Bytes at the start of a text that is still coming which can be shown now: up
 * to the beginning of the last block. Looking on from `from`, a value it
 * returned before for the same text (0 at first). */
size_t markdown_whole(const char *text, size_t len, size_t from);

#endif
