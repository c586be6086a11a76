/* Markdown as it is written: lines with what stands before them, blanks and breaks that are
 * owed, marks of spans that are open, and the one place where text is escaped. It knows no
 * HTML; page/markdown.c says what comes next. */
#ifndef PAGE_OUT_H
#define PAGE_OUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

#define OUT_LEVELS 12 /* of lists and quotes; deeper ones have no sign of their own */
#define OUT_SPANS  16

struct out_level {
	char first[12], rest[12]; /* before its first line, and before the others */
	bool used;
};

enum out_span { SPAN_STRONG, SPAN_EM, SPAN_DEL, SPAN_LINK, SPAN_NONE };

struct out {
	struct buf *to;
	size_t begin; /* of to->len */
	struct out_level levels[OUT_LEVELS];
	size_t depth; /* of levels, also of those that have no place in them */
	struct {
		enum out_span kind;
		bool written;
	} spans[OUT_SPANS];
	size_t n_spans;        /* also of those that have no place */
	unsigned breaks;       /* owed: 1, the line ends; 2, an empty line as well */
	bool space;            /* owed, unless the line ends before */
	unsigned inline_depth; /* in a heading, a link, a cell: a break is a space there */
	unsigned cells;        /* in a table: | is escaped */
	enum { LINE_FRESH, LINE_DIGITS, LINE_TEXT } line;
	uint32_t before; /* the character that was written last; ' ' between words */
	size_t words;
};

void out_init(struct out *o, struct buf *to);
/* Text of the page: one space for any blanks, what is not text dropped, the rest escaped. */
void out_text(struct out *o, const char *s, size_t len);
void out_break(struct out *o, unsigned breaks); /* a space, within a line */
void out_space(struct out *o);
/* What is owed is written, and then signs of ours, as they are. */
void out_sign(struct out *o, const char *sign);
/* Lines of code (cleaned, no newline at the end) between fences, or a span of code. */
void out_code(struct out *o, const char *s, size_t len, const char *language, size_t language_len);
void out_code_span(struct out *o, const char *s, size_t len);

void out_push(struct out *o, const char *first, const char *rest);
bool out_pop(struct out *o); /* was anything written in it? */
void out_open(struct out *o, enum out_span kind);
/* `url` for a link, else NULL. False: it had no text, and nothing was written. */
bool out_close(struct out *o, const char *url);

#endif
