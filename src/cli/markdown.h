/* Markdown as a terminal shows it. The text is a model's: its escapes are made
 * visible, its HTML is text, its addresses stand beside their links. */
#ifndef CLI_MARKDOWN_H
#define CLI_MARKDOWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/buf.h"

/* Blocks on lines of their own, ending with a newline, behind the margin of what others wrote
 * (term_theirs). `column`: columns of the first line that are used already by whose it is.
 * Styles only where `f` has colours. Where the Markdown library is missing the
 * text stands as it is. */
void markdown_show(FILE *f, const char *text, size_t len, size_t column);

/* Bytes at the start of a text that is still coming which can be shown now: up
 * to the beginning of the last block. Looking on from `from`, a value it
 * returned before for the same text (0 at first). */
size_t markdown_whole(const char *text, size_t len, size_t from);

/* Ava's text comes in pieces while her model speaks, and once more as the durable text. Each text
 * is shown once, block by block. */

#define SPEECH_MAX ((size_t)8 << 20)

struct speech {
	struct buf text;   /* pieces not confirmed by a durable text yet */
	size_t shown;      /* bytes of `text` that were shown */
	struct buf before; /* shown part of a text that a lost connection cut off */
	bool open;         /* a part of Ava's text was shown last */
	bool gap;          /* an empty line belongs before the next part */
};

void speech_init(struct speech *s);
void speech_fini(struct speech *s);
/* A piece. When memory ends, the durable text has it all. */
void speech_piece(struct speech *s, const char *text, size_t len);
/* Text of the last, unfinished block, which is not shown yet; NULL: none. */
const char *speech_tail(const struct speech *s, size_t *len);
/* Whole blocks wait to be shown. */
bool speech_ready(const struct speech *s);
void speech_show(struct speech *s, FILE *f);
/* Take the durable text and show its rest. */
void speech_whole(struct speech *s, FILE *f, const char *text, size_t len);
/* The connection was lost: the text under way may come again from its start. */
void speech_cut(struct speech *s);
/* Other text was shown: the next part of Ava's begins with her name again. */
void speech_close(struct speech *s);

#endif
