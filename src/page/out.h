/* Markdown as it is written: lines with their prefixes, owed blanks and breaks, signs of open
 * spans, and the one place where text is escaped. It knows no HTML; page/markdown.c decides the
 * order. */
#ifndef PAGE_OUT_H
#define PAGE_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

#define OUT_LEVELS 12 /* levels of lists and quotes with a sign; deeper ones have none */
#define OUT_SPANS  16

struct out_level {
	char first[12], rest[12]; /* prefix of the level's first line, and of its other lines */
	bool used;
};

enum out_span { SPAN_STRONG, SPAN_EM, SPAN_DEL, SPAN_LINK, SPAN_NONE };

struct out {
	struct buf *to;
	size_t begin; /* to->len at the beginning */
	struct out_level levels[OUT_LEVELS];
	size_t depth; /* number of levels, those beyond OUT_LEVELS too */
	struct {
		enum out_span kind;
		bool written;
	} spans[OUT_SPANS];
	size_t n_spans;  /* number of spans, those beyond OUT_SPANS too */
	unsigned breaks; /* breaks owed before the next text: 1: a line end; 2: an empty line too */
	bool space;      /* a space is owed, unless the line ends first */
	unsigned inline_depth; /* > 0: in a heading, a link, a cell, where a break is a space */
	unsigned cells;        /* > 0: in a table, where | is escaped */
	enum { LINE_FRESH, LINE_DIGITS, LINE_TEXT } line;
	uint32_t before; /* the character written last; ' ' between words */
	size_t words;
};

void out_init(struct out *o, struct buf *to);
/* Write text of the page: one space for any blanks, characters that are not text dropped, the rest
 * escaped. */
void out_text(struct out *o, const char *s, size_t len);
void out_break(struct out *o, unsigned breaks); /* within a line (inline_depth) a space */
void out_space(struct out *o);
/* Write owed breaks and spaces, then the sign as it is. */
void out_sign(struct out *o, const char *sign);
/* Write lines of code (cleaned, no newline at the end) between fences, or a span of code. */
void out_code(struct out *o, const char *s, size_t len, const char *language, size_t language_len);
void out_code_span(struct out *o, const char *s, size_t len);

void out_push(struct out *o, const char *first, const char *rest);
bool out_pop(struct out *o); /* true: the level has text */
void out_open(struct out *o, enum out_span kind);
/* Close a span. `url` for a link, else NULL. false: the span had no text, and nothing was
 * written. */
bool out_close(struct out *o, const char *url);

#endif
