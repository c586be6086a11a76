/* Markdown; markdown.h.
 *
 * md4c reads it and calls back for each block, span and text; here they become
 * lines with margins and styles. The library is opened with the first
 * text: linked, it would cost every start of the program.
 *
 * What can fail: the library is not there, or memory; then what has not been
 * shown stands as plain text. */
#include "cli/markdown.h"

#include <dlfcn.h>
#include <md4c.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cli/term.h"
#include "codec/utf8.h"

#define LIBRARY "libmd4c.so.0"
#define DEPTH   8 /* most margins; a deeper block stands at the last one */

enum style { STRONG = 1, EMPHASIS = 2, CODE = 4, HEAD = 8, STRUCK = 16, FAINT = 32 };

struct show {
	FILE *f;
	bool colours;
	unsigned style, styled; /* style that is wanted; style that the terminal has */
	unsigned depth;         /* nesting of lists and quotes */
	struct {
		bool quote, ordered;
		unsigned number;
	} level[DEPTH];
	bool at_start; /* the output is at the start of a line */
	bool item;     /* the next line is the first of a list item */
	bool gap;      /* an empty line comes before the next block */
	bool any;      /* text was shown */
	bool code;     /* inside a block of code */
	bool table;    /* inside a table */
	bool cell;     /* a cell of this row was shown */
	size_t width;  /* columns of the terminal; 0: lines have no end */
	size_t column; /* columns used of the current line */
	size_t spaces; /* blanks held back, since the line may end before the next word */
	char href[512];
	char link[512]; /* the link's text so far */
};

/* Set a style right before its text: never between a word and the space before it. */
static void restyle(struct show *s)
{
	static const struct {
		unsigned style;
		const char *code;
	} codes[] = {{STRONG | HEAD, ";1"},
		     {EMPHASIS, ";3"},
		     {CODE, ";36"},
		     {STRUCK, ";9"},
		     {FAINT, ";2"}};

	if (!s->colours || s->styled == s->style)
		return;
	s->styled = s->style;
	fputs("\033[0", s->f);
	for (size_t i = 0; i < ARRAY_LEN(codes); i++)
		if (s->style & codes[i].style)
			fputs(codes[i].code, s->f);
	fputc('m', s->f);
}

static void set_style(struct show *s, unsigned style, bool on)
{
	s->style = on ? s->style | style : s->style & ~style;
}

/* ---- margins */

/* Columns used. */
static size_t markdown_mark(struct show *s, unsigned i)
{
	char number[16];

	if (s->level[i].ordered) {
		snprintf(number, sizeof(number), "%u. ", s->level[i].number);
		fputs(number, s->f);
		return strlen(number);
	}
	fputs(term_mark("\xe2\x80\xa2 ", "* "), s->f);
	return 2;
}

static void margin(struct show *s)
{
	unsigned depth = MIN(s->depth, (unsigned)DEPTH);

	restyle(s);
	for (unsigned i = 0; i < depth; i++) {
		if (!s->level[i].quote && s->item && i == depth - 1) {
			s->column += markdown_mark(s, i);
			continue;
		}
		fputs(s->level[i].quote     ? term_mark("\xe2\x94\x82 ", "> ")
		      : s->level[i].ordered ? "   "
					    : "  ",
		      s->f);
		s->column += s->level[i].quote || !s->level[i].ordered ? 2 : 3;
	}
	if (s->code)
		fputs("    ", s->f);
	s->item = false;
	s->at_start = false;
}

static void markdown_new_line(struct show *s)
{
	restyle(s);
	fputc('\n', s->f);
	s->at_start = true;
	s->column = s->spaces = 0;
}

/* ---- text in lines */

/* A line ends before the word that it has no room for; code and tables keep theirs. */
static void word(struct show *s, const char *t, size_t len)
{
	size_t columns = term_columns(t, len);

	if (s->spaces > UTF8_BLANKS) /* blanks of several styles: one stands for them */
		s->spaces = 1;
	if (s->spaces > 0 && s->width > 0 && s->column + s->spaces + columns > s->width) {
		markdown_new_line(s);
		margin(s);
	}
	fprintf(s->f, "%*s", (int)s->spaces, "");
	restyle(s);
	term_text(s->f, t, len, false);
	s->column += s->spaces + columns;
	s->spaces = 0;
}

static void words(struct show *s, const char *t, size_t len)
{
	struct buf prose;

	if (s->code || s->table) {
		restyle(s);
		term_text(s->f, t, len, false);
		return;
	}
	buf_init(&prose, len + 1);
	if (utf8_prose(&prose, t, len) == 0) {
		t = prose.data;
		len = prose.len;
	}
	for (size_t i = 0, n; i < len; i += n) {
		for (n = 0; i + n < len && t[i + n] != ' ';)
			n++;
		if (n > 0)
			word(s, t + i, n);
		if (i + n < len) {
			s->spaces++;
			n++;
		}
	}
	buf_fini(&prose);
}

static void text(struct show *s, const char *t, size_t len)
{
	while (len > 0) {
		const char *nl = memchr(t, '\n', len);
		size_t n = nl ? (size_t)(nl - t) : len;

		if (n > 0 && s->at_start)
			margin(s);
		if (n > 0)
			words(s, t, n);
		if (nl != NULL) {
			markdown_new_line(s);
			n++;
		}
		t += n;
		len -= n;
	}
	s->any = true;
}

static void markdown_end_line(struct show *s)
{
	if (!s->at_start)
		markdown_new_line(s);
}

static void markdown_begin_block(struct show *s)
{
	markdown_end_line(s);
	if (s->gap && s->any)
		fputc('\n', s->f);
	s->gap = false;
}

/* ---- blocks */

static void markdown_push(struct show *s, bool quote, bool ordered, unsigned number)
{
	if (s->depth < DEPTH) {
		s->level[s->depth].quote = quote;
		s->level[s->depth].ordered = ordered;
		s->level[s->depth].number = number;
	}
	s->depth++;
}

static int enter_block(MD_BLOCKTYPE type, void *detail, void *user)
{
	struct show *s = user;

	switch (type) {
	case MD_BLOCK_QUOTE:
		markdown_begin_block(s);
		markdown_push(s, true, false, 0);
		break;
	case MD_BLOCK_UL:
	case MD_BLOCK_OL:
		s->gap = false; /* a list stands close to what introduces it */
		markdown_begin_block(s);
		markdown_push(s, false, type == MD_BLOCK_OL,
			      type == MD_BLOCK_OL ? ((MD_BLOCK_OL_DETAIL *)detail)->start : 0);
		break;
	case MD_BLOCK_LI:
		markdown_end_line(s);
		s->gap = false;
		s->item = true;
		break;
	case MD_BLOCK_HR:
		markdown_begin_block(s);
		text(s, "----", 4);
		markdown_end_line(s);
		s->gap = true;
		break;
	case MD_BLOCK_H:
		markdown_begin_block(s);
		set_style(s, HEAD, true);
		break;
	case MD_BLOCK_CODE:
		markdown_begin_block(s);
		s->code = true;
		set_style(s, CODE, true);
		break;
	case MD_BLOCK_P:
		markdown_begin_block(s);
		break;
	case MD_BLOCK_TABLE:
		markdown_begin_block(s);
		s->table = true;
		break;
	case MD_BLOCK_TR:
		markdown_end_line(s);
		s->cell = false;
		break;
	case MD_BLOCK_TH:
	case MD_BLOCK_TD:
		if (s->cell)
			text(s, " | ", 3);
		s->cell = true;
		set_style(s, HEAD, type == MD_BLOCK_TH);
		break;
	default:
		break;
	}
	return 0;
}

static int leave_block(MD_BLOCKTYPE type, void *detail, void *user)
{
	struct show *s = user;

	switch (type) {
	case MD_BLOCK_QUOTE:
	case MD_BLOCK_UL:
	case MD_BLOCK_OL:
		markdown_end_line(s);
		s->depth--;
		s->gap = true;
		break;
	case MD_BLOCK_LI:
		if (s->item) /* an empty one */
			margin(s);
		markdown_end_line(s);
		s->gap = false;
		if (s->depth > 0 && s->depth <= DEPTH)
			s->level[s->depth - 1].number++;
		break;
	case MD_BLOCK_H:
	case MD_BLOCK_CODE:
	case MD_BLOCK_P:
	case MD_BLOCK_TABLE:
		set_style(s, HEAD | CODE, false);
		markdown_end_line(s);
		s->code = s->table = false;
		s->gap = true;
		break;
	case MD_BLOCK_TH:
		set_style(s, HEAD, false);
		break;
	case MD_BLOCK_TR:
		markdown_end_line(s);
		break;
	default:
		break;
	}
	return 0;
}

/* ---- spans */

static unsigned span_style(MD_SPANTYPE type)
{
	static const unsigned styles[] = {[MD_SPAN_STRONG] = STRONG,
					  [MD_SPAN_EM] = EMPHASIS,
					  [MD_SPAN_CODE] = CODE,
					  [MD_SPAN_DEL] = STRUCK};

	return type < ARRAY_LEN(styles) ? styles[type] : 0;
}

static void keep_href(struct show *s, const MD_ATTRIBUTE *a)
{
	snprintf(s->href, sizeof(s->href), "%.*s", (int)MIN(a->size, sizeof(s->href) - 1),
		 a->text != NULL ? a->text : "");
	s->link[0] = '\0';
}

static int enter_span(MD_SPANTYPE type, void *detail, void *user)
{
	struct show *s = user;

	if (type == MD_SPAN_A)
		keep_href(s, &((MD_SPAN_A_DETAIL *)detail)->href);
	else if (type == MD_SPAN_IMG)
		keep_href(s, &((MD_SPAN_IMG_DETAIL *)detail)->src);
	else if (span_style(type) != 0)
		set_style(s, span_style(type), true);
	return 0;
}

static int leave_span(MD_SPANTYPE type, void *detail, void *user)
{
	struct show *s = user;

	bool link = type == MD_SPAN_A || type == MD_SPAN_IMG;

	if (!link && span_style(type) != 0)
		set_style(s, span_style(type), false);
	/* The address of a link is shown whole, unless it is the text itself: what a person follows
	 * should be what they read. */
	if (link && s->href[0] != '\0' && strcmp(s->href, s->link) != 0) {
		set_style(s, FAINT, true);
		text(s, " (", 2);
		text(s, s->href, strlen(s->href));
		text(s, ")", 1);
		set_style(s, FAINT, false);
		s->href[0] = '\0';
	}
	return 0;
}

/* ---- text */

static void entity(struct show *s, const char *t, size_t len)
{
	static const struct {
		const char *name, *text;
	} known[] = {{"&amp;", "&"},   {"&lt;", "<"},   {"&gt;", ">"},
		     {"&quot;", "\""}, {"&apos;", "'"}, {"&nbsp;", " "}};

	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		if (strlen(known[i].name) != len || memcmp(known[i].name, t, len) != 0)
			continue;
		text(s, known[i].text, 1);
		return;
	}
	text(s, t, len);
}

static int markdown_on_text(MD_TEXTTYPE type, const MD_CHAR *t, MD_SIZE len, void *user)
{
	struct show *s = user;
	size_t have = strlen(s->link);

	switch (type) {
	case MD_TEXT_BR:
	case MD_TEXT_SOFTBR:
		text(s, "\n", 1);
		break;
	case MD_TEXT_NULLCHAR:
		text(s, "?", 1);
		break;
	case MD_TEXT_ENTITY:
		entity(s, t, len);
		break;
	default:
		text(s, t, len);
		if (have + len < sizeof(s->link)) {
			memcpy(s->link + have, t, len);
			s->link[have + len] = '\0';
		}
	}
	return 0;
}

typedef int (*parse_fn)(const MD_CHAR *text, MD_SIZE size, const MD_PARSER *parser, void *user);

static parse_fn library(void)
{
	static parse_fn parse;
	static bool tried;
	void *handle;

	if (!tried) {
		handle = dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
		if (handle != NULL)
			parse = (parse_fn)dlsym(handle, "md_parse");
	}
	tried = true;
	return parse;
}

void markdown_show(FILE *f, const char *t, size_t len, size_t column)
{
	char *shown = NULL;
	size_t shown_len = 0;
	FILE *memory = open_memstream(&shown, &shown_len);
	size_t width = term_width(f);
	struct buf flat;
	struct show s = {.f = memory,
			 .colours = term_colours(f),
			 .at_start = true,
			 .width = width > 0 ? width - 1 - TERM_MARGIN : 0,
			 .column = MAX(column, TERM_MARGIN) - TERM_MARGIN};
	const MD_PARSER parser = {
		.flags = MD_FLAG_NOHTML | MD_FLAG_TABLES | MD_FLAG_STRIKETHROUGH |
			 MD_FLAG_PERMISSIVEURLAUTOLINKS,
		.enter_block = enter_block,
		.leave_block = leave_block,
		.enter_span = enter_span,
		.leave_span = leave_span,
		.text = markdown_on_text,
	};
	parse_fn parse = library();

	buf_init(&flat, SPEECH_MAX);
	if (memory == NULL || term_flat(&flat, t, len) != 0) {
		fputs("  [too long to show]\n", f);
	} else {
		if (parse == NULL || parse(flat.data, (MD_SIZE)flat.len, &parser, &s) != 0)
			text(&s, flat.data, flat.len);
		s.style = 0;
		restyle(&s);
		if (!s.at_start || s.column > 0)
			fputc('\n', s.f);
	}
	if (memory != NULL && fclose(memory) == 0)
		term_put(f, width, shown, shown_len, column, TERM_MARGIN);
	free(shown);
	buf_fini(&flat);
}

/* ---- a text that is still coming */

static bool markdown_is_fence(const char *line, size_t len)
{
	size_t i = 0;

	while (i < len && i < 3 && line[i] == ' ')
		i++;
	return len - i >= 3 && (memcmp(line + i, "```", 3) == 0 || memcmp(line + i, "~~~", 3) == 0);
}

static bool markdown_is_blank(const char *line, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (line[i] != ' ' && line[i] != '\t' && line[i] != '\r')
			return false;
	return true;
}

/* The text begins with an item of a list, which stands close to what is before. */
static bool markdown_is_item(const char *line, size_t len)
{
	size_t digits = 0;

	if (len >= 2 && (line[0] == '-' || line[0] == '*' || line[0] == '+') && line[1] == ' ')
		return true;
	while (digits < len && line[digits] >= '0' && line[digits] <= '9')
		digits++;
	return digits > 0 && digits + 1 < len && (line[digits] == '.' || line[digits] == ')') &&
	       line[digits + 1] == ' ';
}

/* A line that begins a block whatever stands before it. */
static bool begins_block(const char *line, size_t len)
{
	return markdown_is_item(line, len) ||
	       (len >= 2 && line[0] == '#' && (line[1] == '#' || line[1] == ' ')) ||
	       markdown_is_fence(line, len);
}

size_t markdown_whole(const char *t, size_t len, size_t from)
{
	size_t whole = from, at = from;
	bool fence = false, blank = false;

	while (at < len) {
		const char *nl = memchr(t + at, '\n', len - at), *line = t + at;
		size_t n = nl ? (size_t)(nl - line) : len - at;

		if (nl == NULL && n < 3 && !blank)
			break; /* too little to tell whether it begins a block */
		if (!fence && at > from && line[0] != ' ' && line[0] != '\t' &&
		    !markdown_is_blank(line, n) && (blank || begins_block(line, n)))
			whole = at;
		if (markdown_is_fence(line, n))
			fence = !fence;
		blank = markdown_is_blank(line, n);
		at += n + 1;
	}
	return whole;
}

/* Ava's text as it streams in.
 *
 * Happy path: pieces are gathered; whatever is a whole block is shown; the
 * durable text is a prefix of what was gathered, or goes beyond it, and its rest
 * is shown. Frames may run ahead of the durable text of an earlier reply, so the
 * gathered text goes on behind it.
 *
 * A text that differs from what was shown (the service broke off and the model
 * began anew, or frames were left out) is shown once more from its start. */

#define NAME "Ava: "

void speech_init(struct speech *s)
{
	*s = (struct speech){0};
	buf_init(&s->text, SPEECH_MAX);
	buf_init(&s->before, SPEECH_MAX);
}

void speech_fini(struct speech *s)
{
	buf_fini(&s->text);
	buf_fini(&s->before);
}

static bool markdown_begins_with(const struct buf *b, const char *text, size_t len)
{
	return b->len >= len && (len == 0 || memcmp(b->data, text, len) == 0);
}

void speech_piece(struct speech *s, const char *text, size_t len)
{
	if (buf_add(&s->text, text, len) != 0) {
		buf_reset(&s->text);
		s->shown = 0;
	}
	/* After a lost connection the text may come again from its start: as much of it as was
	 * shown counts as shown. */
	if (s->before.len > 0 && s->text.len >= s->before.len) {
		if (markdown_begins_with(&s->text, s->before.data, s->before.len))
			s->shown = MAX(s->shown, s->before.len);
		buf_reset(&s->before);
	}
}

static size_t markdown_flush(const struct speech *s)
{
	return s->before.len == 0 && s->text.len > 0
		       ? markdown_whole(s->text.data, s->text.len, s->shown)
		       : 0;
}

bool speech_ready(const struct speech *s)
{
	return markdown_flush(s) > s->shown;
}

const char *speech_tail(const struct speech *s, size_t *len)
{
	if (s->before.len > 0 || s->text.len <= s->shown)
		return NULL;
	*len = s->text.len - s->shown;
	return s->text.data + s->shown;
}

static void markdown_part(struct speech *s, FILE *f, const char *t, size_t len)
{
	size_t skip = 0, column = 0;

	for (size_t i = 0; i < len && (t[i] == '\n' || t[i] == ' ' || t[i] == '\r'); i++)
		skip = t[i] == '\n' ? i + 1 : skip;
	if (skip > 0)
		s->gap = s->open;
	t += skip;
	len -= skip;
	if (len == 0)
		return;
	if (s->gap && s->open && !markdown_is_item(t, len))
		fputc('\n', f);
	if (!s->open) {
		term_colour(f, TERM_BOLD);
		fputs(NAME, f);
		term_colour(f, TERM_PLAIN);
		column = strlen(NAME);
		s->open = true;
	}
	s->gap = len >= 2 && t[len - 1] == '\n' && t[len - 2] == '\n';
	markdown_show(f, t, len, column);
}

void speech_show(struct speech *s, FILE *f)
{
	size_t end = markdown_flush(s);

	if (end <= s->shown)
		return;
	markdown_part(s, f, s->text.data + s->shown, end - s->shown);
	s->shown = end;
}

void speech_whole(struct speech *s, FILE *f, const char *text, size_t len)
{
	size_t shown = s->shown;

	if (s->before.len > 0 && len >= s->before.len &&
	    memcmp(text, s->before.data, s->before.len) == 0)
		shown = s->before.len;
	else if (!(markdown_begins_with(&s->text, text, MIN(len, shown)) && shown <= len))
		shown = 0; /* `shown` was part of another text */
	if (shown < len)
		markdown_part(s, f, text + shown, len - shown);
	if (markdown_begins_with(&s->text, text, len) && s->text.len > 0) {
		buf_drop(&s->text, len);
		s->shown = s->shown > len ? s->shown - len : 0;
	} else {
		buf_reset(&s->text);
		s->shown = 0;
	}
	buf_reset(&s->before);
	s->open = s->text.len > 0 && s->shown > 0;
	s->gap = false;
}

void speech_cut(struct speech *s)
{
	if (s->shown > 0) {
		buf_reset(&s->before);
		buf_add(&s->before, s->text.data, s->shown);
	}
	buf_reset(&s->text);
	s->shown = 0;
}

void speech_close(struct speech *s)
{
	s->open = s->gap = false;
}
