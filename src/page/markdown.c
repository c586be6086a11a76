/* From the array of a page to Markdown, in one walk; see markdown.h.
 *
 * Happy path: node after node is opened, and closed when the next one stands behind its end; the
 * nodes that are open stand on a stack of our own. Code is taken as a whole, a table of data row
 * by row; a table that arranges a page, which has tables, code or long texts in its cells, is
 * its cells one after the other. What has no text leaves nothing (page/out.c). Only memory can
 * run out; a full buffer ends the walk, and the Markdown where it is. */
#include "page/markdown.h"

#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "codec/utf8.h"
#include "page/clean.h"
#include "page/out.h"
#include "page/tree.h"
#include "page/url.h"

#define COLUMNS_MAX 40  /* columns of a table; further cells are left out */
#define CELL_MAX    600 /* bytes of a cell; longer ones make a layout table */
#define REPEAT_MAX  80  /* bytes of a cell over several rows that each row repeats */
#define CARD_MAX    300 /* bytes of a link with blocks that becomes one line of text */
#define CODE_MAX    1048576
#define SUP_MAX     12

/* The open table of data. */
struct markdown_table {
	uint32_t node; /* the table's node; 0: no table is open */
	size_t columns, rows, column;
	bool in_row;
	struct {
		unsigned rows; /* rows that the cell still reaches into */
		char text[REPEAT_MAX + 1];
	} over[COLUMNS_MAX]; /* cells that reach into the next rows */
	size_t cell_at;      /* where the open cell begins in the output */
};

struct open_node {
	uint32_t node;
	uint32_t items; /* number of a list's items */
	size_t written; /* offset in the output behind a list's last item */
	bool some;      /* an item of the list has text */
	uint8_t signs;  /* signs that the node opened */
};
enum { SIGN_LEVEL = 1, SIGN_SPAN = 2, SIGN_INLINE = 4, SIGN_WIDE = 8 };

struct markdown_walk {
	struct markdown *m;
	const struct tree *t;
	struct out out;
	struct buf scratch; /* text of code, or an address */
	struct markdown_table table;
	struct open_node stack[TREE_DEPTH_MAX + 1];
	size_t depth;
};

static const struct node *node_at(const struct markdown_walk *w, uint32_t i)
{
	return &w->t->nodes[i];
}

static bool is_left_out(const struct markdown_walk *w, uint32_t i)
{
	return node_at(w, i)->marks & MARK_LEFT_OUT;
}

/* ---- code */

/* Take the text of `i` with its line ends, cleaned, without empty lines around it. */
static void take_code(struct markdown_walk *w, uint32_t i)
{
	struct buf *b = &w->scratch;
	uint32_t end = node_at(w, i)->end;
	size_t from = 0;

	buf_reset(b);
	for (uint32_t k = i + 1; k < end && !b->failed; k++) {
		const struct node *n = node_at(w, k);

		if (is_left_out(w, k)) {
			k = n->end - 1;
		} else if (n->tag == TAG_TEXT) {
			clean_lines(b, node_text(w->t, n), n->len);
		} else if (n->tag == TAG_BR || tag_is_block(n->tag)) {
			if (b->len > 0 && (n->tag == TAG_BR || b->data[b->len - 1] != '\n'))
				buf_addc(b, '\n');
		}
	}
	while (b->len > 0 && strchr(" \n\t", b->data[b->len - 1]))
		b->data[--b->len] = 0;
	for (size_t k = 0; k < b->len && strchr(" \n\t", b->data[k]); k++)
		from = b->data[k] == '\n' ? k + 1 : from;
	buf_drop(b, from);
}

/* The node that names the language: the element, a code element in it, or a block around it. */
static const struct node *language_of(const struct markdown_walk *w, uint32_t i)
{
	const struct node *n = node_at(w, i);

	for (uint32_t k = i; k < n->end && k < i + 4; k++)
		if ((node_at(w, k)->tag == TAG_CODE || k == i) && node_at(w, k)->len > 0)
			return node_at(w, k);
	for (size_t up = 0; up < 8 && i != 0; up++, i = node_at(w, i)->parent)
		if (node_at(w, i)->tag == TAG_BLOCK && node_at(w, i)->len > 0)
			return node_at(w, i);
	return NULL;
}

static void write_code(struct markdown_walk *w, uint32_t i)
{
	const struct node *language = language_of(w, i);

	take_code(w, i);
	if (w->scratch.len == 0)
		return;
	if (w->out.inline_depth > 0 || node_at(w, i)->tag == TAG_CODE)
		out_code_span(&w->out, w->scratch.data, w->scratch.len);
	else
		out_code(&w->out, w->scratch.data, w->scratch.len,
			 language ? node_text(w->t, language) : "", language ? language->len : 0);
}

/* ---- links and images */

/* A link around much of a page is wide: as a link it would be one line. */
static bool is_wide(const struct markdown_walk *w, uint32_t i)
{
	bool blocks = false;
	size_t len = 0;

	for (uint32_t k = i + 1; k < node_at(w, i)->end && k < i + 200; k++) {
		const struct node *n = node_at(w, k);

		blocks = blocks || tag_is_block(n->tag);
		len += n->tag == TAG_TEXT ? n->len : 0;
		if ((blocks && len > CARD_MAX) || n->tag == TAG_PRE || n->tag == TAG_TABLE)
			return true;
	}
	return false;
}

/* Resolve a link's address into scratch; false: nothing that can be fetched. */
static bool markdown_take_url(struct markdown_walk *w, uint32_t i)
{
	const struct node *n = node_at(w, i);

	buf_reset(&w->scratch);
	return url_resolve(&w->scratch, w->m->base, node_text(w->t, n), n->len);
}

/* Is the link only a heading's sign for itself? */
static bool is_anchor_sign(const struct markdown_walk *w, uint32_t i)
{
	const struct node *n = node_at(w, i);
	size_t len = 0;

	if (n->len == 0 || node_text(w->t, n)[0] != '#')
		return false;
	for (uint32_t k = i + 1; k < n->end; k++) {
		const struct node *text = node_at(w, k);

		if (text->tag == TAG_IMG)
			return false;
		len += text->tag == TAG_TEXT ? text->len : 0;
		if (text->tag == TAG_TEXT && text->len > 0 &&
		    ((node_text(w->t, text)[0] | 32) >= 'a' &&
		     (node_text(w->t, text)[0] | 32) <= 'z'))
			return false;
		if (text->tag == TAG_TEXT && text->len > 0 && node_text(w->t, text)[0] >= '0' &&
		    node_text(w->t, text)[0] <= '9')
			return false;
	}
	return len <= 4;
}

static void open_link(struct markdown_walk *w, uint32_t i, struct open_node *me)
{
	if (w->out.n_spans > 0 && w->out.inline_depth > 0) /* links do not nest */
		for (size_t k = 0; k + 1 < w->depth; k++)
			if (node_at(w, w->stack[k].node)->tag == TAG_A && w->stack[k].signs)
				return;
	if (!markdown_take_url(w, i))
		return;
	if (is_wide(w, i) && w->out.inline_depth == 0) {
		me->signs |= SIGN_WIDE;
		return;
	}
	out_open(&w->out, SPAN_LINK);
	me->signs |= SIGN_SPAN;
}

static void close_link(struct markdown_walk *w, const struct open_node *me)
{
	bool good = markdown_take_url(w, me->node);

	if (me->signs & SIGN_SPAN) {
		/* SIGN_SPAN: the node was a link when it was opened. */
		w->m->links += out_close(&w->out, good ? w->scratch.data : "");
	} else if ((me->signs & SIGN_WIDE) && good) {
		out_space(&w->out);
		out_sign(&w->out, "<");
		buf_adds(w->out.to, w->scratch.data);
		out_sign(&w->out, ">");
		w->m->links++;
	}
}

static void write_image(struct markdown_walk *w, uint32_t i)
{
	const struct node *n = node_at(w, i);
	struct buf *b = &w->scratch;

	buf_reset(b);
	clean_line(b, node_text(w->t, n), n->len, 300);
	if (b->len == 0 || b->failed)
		return;
	out_sign(&w->out, "![");
	out_text(&w->out, b->data, b->len);
	w->out.space = false;
	out_sign(&w->out, "]");
}

/* ---- tables */

/* Does the node stand where a table has it: a cell in a row, a row in a table? Others make a layout
 * table. */
static bool is_in_place(const struct markdown_walk *w, const struct node *n)
{
	enum tag up = node_at(w, n->parent)->tag;

	if (n->tag == TAG_TD || n->tag == TAG_TH)
		return up == TAG_TR;
	return n->tag != TAG_TR || up == TAG_TABLE || up == TAG_ROWS;
}

/* Is it a table of data, of rows with short cells? *columns: of the widest row. */
static bool is_data(const struct markdown_walk *w, uint32_t i, size_t *columns)
{
	const struct node *table = node_at(w, i);
	size_t rows = 0, row = 0, cell = 0;
	bool heads = false;

	*columns = 0;
	if (table->marks & MARK_LAYOUT)
		return false;
	for (uint32_t k = i + 1; k < table->end; k++) {
		const struct node *n = node_at(w, k);

		if (is_left_out(w, k) || n->tag == TAG_CAPTION) {
			k = n->end - 1;
			continue;
		}
		if (n->tag == TAG_TABLE || n->tag == TAG_PRE ||
		    (n->tag >= TAG_H1 && n->tag <= TAG_H6))
			return false;
		if (!is_in_place(w, n))
			return false;
		rows += n->tag == TAG_TR;
		row = n->tag == TAG_TR ? 0 : row;
		if (n->tag == TAG_TD || n->tag == TAG_TH) {
			row += n->number;
			cell = 0;
			heads = heads || n->tag == TAG_TH;
			*columns = MIN(MAX(*columns, row), (size_t)COLUMNS_MAX);
		} else if (n->tag == TAG_TEXT) {
			cell += n->len;
			if (row == 0 || cell > (heads ? 4 * CELL_MAX : CELL_MAX))
				return false;
		}
	}
	return *columns > 1 && rows > 0 && (rows > 1 || heads);
}

static void write_bar(struct markdown_walk *w)
{
	w->out.space = false;
	out_sign(&w->out, " |");
	w->table.column++;
}

/* Skip the columns that cells of earlier rows reach into. */
static void fill_over(struct markdown_walk *w)
{
	struct markdown_table *b = &w->table;

	while (b->column < b->columns && b->over[b->column].rows > 0) {
		b->over[b->column].rows--;
		if (b->over[b->column].text[0]) {
			buf_addc(w->out.to, ' ');
			buf_adds(w->out.to, b->over[b->column].text);
		}
		write_bar(w);
	}
}

static void open_row(struct markdown_walk *w, uint32_t i)
{
	struct markdown_table *b = &w->table;
	bool cells = false;

	for (uint32_t k = i + 1; k < node_at(w, i)->end && !cells; k++)
		cells = node_at(w, k)->tag == TAG_TD || node_at(w, k)->tag == TAG_TH;
	if (!cells || b->in_row)
		return;
	out_break(&w->out, b->rows == 0 ? 2 : 1);
	out_sign(&w->out, "|");
	b->column = 0;
	b->in_row = true;
	w->out.inline_depth++;
	w->out.cells++;
}

static void close_row(struct markdown_walk *w)
{
	struct markdown_table *b = &w->table;

	if (!b->in_row)
		return;
	while (b->column < b->columns) {
		fill_over(w);
		if (b->column < b->columns)
			write_bar(w);
	}
	w->out.inline_depth--;
	w->out.cells--;
	b->in_row = false;
	b->rows++;
	if (b->rows > 1)
		return;
	out_break(&w->out, 1);
	out_sign(&w->out, "|");
	for (size_t i = 0; i < b->columns; i++)
		buf_adds(w->out.to, " --- |");
}

static void open_cell(struct markdown_walk *w)
{
	struct markdown_table *b = &w->table;

	out_sign(&w->out, " ");
	w->out.before = ' ';
	w->out.space = false;
	b->cell_at = w->out.to->len;
}

static void close_cell(struct markdown_walk *w, const struct node *n)
{
	struct markdown_table *b = &w->table;
	const char *text = w->out.to->data + b->cell_at;
	size_t len = w->out.to->len - b->cell_at;
	size_t first = b->column;

	if (len == 0 && w->out.to->len > 0 && !w->out.to->failed) /* drop an empty cell's blank */
		w->out.to->data[--w->out.to->len] = 0;
	for (size_t i = 0; i < n->number && first + i < b->columns; i++) {
		b->over[first + i].rows = n->number2 - 1u;
		b->over[first + i].text[0] = 0;
	}
	if (len > 0 && len <= REPEAT_MAX && n->number2 > 1) {
		memcpy(b->over[first].text, text, len);
		b->over[first].text[len] = 0;
	}
	for (size_t i = 0; i < n->number && b->column < b->columns; i++)
		write_bar(w);
}

/* ---- elements */

static void open_item(struct markdown_walk *w, struct open_node *me)
{
	char sign[12] = "- ", rest[12] = "           ";
	struct open_node *list = me;
	enum tag tag = TAG_BLOCK;
	bool inside;

	/* Find the item's list, unless another item is nearer. */
	while (list > w->stack && tag != TAG_UL && tag != TAG_OL && tag != TAG_LI)
		tag = node_at(w, (--list)->node)->tag;
	inside = tag == TAG_UL || tag == TAG_OL;
	if (tag == TAG_OL)
		snprintf(sign, sizeof(sign), "%u. ", node_at(w, list->node)->number + list->items);
	rest[strlen(sign)] = 0;
	/* An item follows another one in the next line; text of the list's own ends the list. */
	out_break(&w->out, inside && list->written != w->out.to->len ? 2 : 1);
	if (inside && list->some && list->written == w->out.to->len && w->out.inline_depth == 0)
		w->out.breaks = 1;
	list->items += inside;
	out_push(&w->out, sign, rest);
	me->signs |= SIGN_LEVEL;
}

static void open_list(struct markdown_walk *w, const struct node *n, struct open_node *me)
{
	/* Behind text only a list that begins with 1 needs no empty line. */
	bool nested = false, first = n->tag == TAG_UL || n->number == 1;

	for (size_t i = 0; i + 1 < w->depth; i++)
		nested = nested || node_at(w, w->stack[i].node)->tag == TAG_LI;
	out_break(&w->out, nested && first ? 1 : 2);
	me->written = w->out.to->len;
}

static bool markdown_is_short(const struct markdown_walk *w, uint32_t i)
{
	size_t len = 0;

	for (uint32_t k = i + 1; k < node_at(w, i)->end; k++) {
		if (node_at(w, k)->tag == TAG_A)
			return false;
		len += node_at(w, k)->tag == TAG_TEXT ? node_at(w, k)->len : 0;
		if (len > SUP_MAX)
			return false;
	}
	return len > 0;
}

static void open_span(struct markdown_walk *w, struct open_node *me, enum out_span kind)
{
	size_t n = MIN(w->out.n_spans, (size_t)OUT_SPANS);

	for (size_t i = 0; i < n; i++)
		if (w->out.spans[i].kind == kind)
			return;
	out_open(&w->out, kind);
	me->signs |= SIGN_SPAN;
}

static void open_heading(struct markdown_walk *w, struct open_node *me, unsigned level)
{
	out_break(&w->out, 2);
	if (w->out.inline_depth > 0)
		return;
	out_push(&w->out, &"###### "[6 - level], "");
	w->out.inline_depth++;
	me->signs |= SIGN_LEVEL | SIGN_INLINE;
}

static void open_quote(struct markdown_walk *w, struct open_node *me)
{
	out_break(&w->out, 2);
	out_push(&w->out, "> ", "> ");
	me->signs |= SIGN_LEVEL;
}

/* Write what precedes a node's contents. */
static void open_node(struct markdown_walk *w, uint32_t i)
{
	const struct node *n = node_at(w, i);
	struct open_node *me = &w->stack[w->depth++];

	*me = (struct open_node){.node = i};
	switch ((enum tag)n->tag) {
	case TAG_H1 ... TAG_H6:
		open_heading(w, me, n->tag - TAG_H1 + 1u);
		break;
	case TAG_UL:
	case TAG_OL:
		open_list(w, n, me);
		break;
	case TAG_LI:
		open_item(w, me);
		break;
	case TAG_QUOTE:
		open_quote(w, me);
		break;
	case TAG_DT:
		out_break(&w->out, 2);
		open_span(w, me, SPAN_STRONG);
		break;
	case TAG_DD:
		out_break(&w->out, 1);
		out_push(&w->out, ": ", "");
		me->signs |= SIGN_LEVEL;
		break;
	case TAG_TABLE:
		out_break(&w->out, 2);
		w->table = (struct markdown_table){.node = 0};
		if (w->out.inline_depth == 0 && is_data(w, i, &w->table.columns))
			w->table.node = i;
		break;
	case TAG_TR:
		if (w->table.node)
			open_row(w, i);
		else
			out_break(&w->out, 1);
		break;
	case TAG_TD:
	case TAG_TH:
		if (w->table.node)
			open_cell(w);
		else
			out_space(&w->out);
		break;
	case TAG_CAPTION:
	case TAG_P:
	case TAG_ARTICLE:
	case TAG_MAIN:
		out_break(&w->out, 2);
		break;
	case TAG_BLOCK:
	case TAG_ROWS:
		if (!(w->table.node && n->tag == TAG_ROWS))
			out_break(&w->out, 1);
		break;
	case TAG_A:
		open_link(w, i, me);
		break;
	case TAG_STRONG:
		if (!(w->out.inline_depth > 0 && w->out.depth > 0 && w->table.node == 0))
			open_span(w, me, SPAN_STRONG);
		break;
	case TAG_EM:
		open_span(w, me, SPAN_EM);
		break;
	case TAG_DEL:
		open_span(w, me, SPAN_DEL);
		break;
	case TAG_SUP:
		if (markdown_is_short(w, i) && !w->out.space && w->out.breaks == 0)
			out_sign(&w->out, "^");
		break;
	default:
		break;
	}
}

static void close_node(struct markdown_walk *w)
{
	const struct open_node me = w->stack[--w->depth];
	const struct node *n = node_at(w, me.node);
	bool written = false;

	if (n->tag == TAG_A) {
		close_link(w, &me);
		return;
	}
	if (w->table.node && n->tag == TAG_TR) {
		close_row(w);
		return;
	}
	if (n->tag == TAG_TD || n->tag == TAG_TH) {
		if (w->table.node)
			close_cell(w, n);
		else
			out_space(&w->out);
		return;
	}
	if (me.signs & SIGN_INLINE)
		w->out.inline_depth--;
	if (me.signs & SIGN_LEVEL)
		written = out_pop(&w->out);
	if (written && n->tag == TAG_LI && w->depth > 0) {
		w->stack[w->depth - 1].written = w->out.to->len;
		w->stack[w->depth - 1].some = true;
	}
	if (me.signs & SIGN_SPAN)
		out_close(&w->out, NULL);
	if (n->tag == TAG_TABLE)
		w->table.node = 0;
	if (n->tag == TAG_P || n->tag == TAG_UL || n->tag == TAG_OL || n->tag == TAG_QUOTE ||
	    n->tag == TAG_TABLE || n->tag == TAG_CAPTION || (n->tag >= TAG_H1 && n->tag <= TAG_H6))
		out_break(&w->out, 2);
	else if (tag_is_block(n->tag) && !(w->table.node && n->tag == TAG_ROWS))
		out_break(&w->out, 1);
}

/* Write a node as a whole; false: a node with contents to walk. */
static bool write_node(struct markdown_walk *w, uint32_t i)
{
	const struct node *n = node_at(w, i);

	switch ((enum tag)n->tag) {
	case TAG_TEXT:
		out_text(&w->out, node_text(w->t, n), n->len);
		return true;
	case TAG_PRE:
	case TAG_CODE:
		write_code(w, i);
		return true;
	case TAG_IMG:
		write_image(w, i);
		return false; /* libxml2 closes it; contents of a broken page are shown */
	case TAG_BR:
		if (w->out.inline_depth > 0)
			out_space(&w->out);
		else
			out_break(&w->out, MIN(w->out.breaks + 1, 2u));
		return false;
	case TAG_HR:
		out_break(&w->out, 2);
		if (w->out.inline_depth > 0 || w->out.to->len == w->out.begin)
			return false;
		out_sign(&w->out, "---");
		out_break(&w->out, 2);
		return false;
	case TAG_A:
		return is_anchor_sign(w, i);
	case TAG_TD:
	case TAG_TH:
		if (w->table.node && w->table.in_row)
			fill_over(w);
		/* There may be no column for the cell. */
		return w->table.node && !(w->table.in_row && w->table.column < w->table.columns);
	default:
		return false;
	}
}

int markdown_render(struct markdown *m, struct buf *out, const struct tree *t)
{
	struct markdown_walk *w = calloc(1, sizeof(*w));
	size_t at;
	uint32_t c;
	int rv;

	if (!w)
		return AVA_ENOMEM;
	w->m = m;
	w->t = t;
	m->links = 0;
	buf_init(&w->scratch, CODE_MAX);
	out_init(&w->out, out);
	for (uint32_t i = 1; i < t->n && !out->failed;) {
		while (w->depth > 0 && node_at(w, w->stack[w->depth - 1].node)->end <= i)
			close_node(w);
		if (is_left_out(w, i) || write_node(w, i)) {
			i = node_at(w, i)->end;
			continue;
		}
		open_node(w, i++);
	}
	while (w->depth > 0)
		close_node(w);
	if (out->len > w->out.begin)
		buf_addc(out, '\n');
	m->words = w->out.words;
	m->full = out->failed && out->error == AVA_ETOOBIG;
	if (m->full) { /* cut the first bytes of a character that did not fit whole */
		for (at = out->len; at > 0 && ((unsigned char)out->data[at - 1] & 0xc0) == 0x80;)
			at--;
		if (at > 0 && (unsigned char)out->data[at - 1] >= 0xc0 &&
		    utf8_decode(out->data + at - 1, out->len - at + 1, &c) == 0)
			out->data[out->len = at - 1] = 0;
	}
	rv = out->failed && !m->full ? out->error : 0;
	buf_fini(&w->scratch);
	free(w);
	return rv;
}
