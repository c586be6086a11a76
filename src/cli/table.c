/* A table of text columns; table.h. All cells are kept until it is printed,
 * since the width of a column is that of its widest cell. Out of memory is
 * remembered and told at the end. */
#include "cli/table.h"

#include <ava.h>
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "cli/term.h"

#define GAP  2 /* blanks between columns */
#define LAST 8 /* the least that the last column gets */

void table_init(struct table *t, size_t columns)
{
	assert(columns > 0 && columns <= TABLE_COLUMNS);
	*t = (struct table){.columns = columns};
}

void table_fini(struct table *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->cells[i]);
	free(t->cells);
	*t = (struct table){0};
}

void table_add(struct table *t, const char *text)
{
	size_t *width = &t->width[t->n % t->columns];
	char *copy, **grown;

	if (t->error != 0)
		return;
	if (t->n == t->cap) {
		grown = realloc(t->cells, (t->cap + 64) * sizeof(*grown));
		if (grown == NULL) {
			t->error = AVA_ENOMEM;
			return;
		}
		t->cells = grown;
		t->cap += 64;
	}
	copy = strdup(text);
	if (copy == NULL) {
		t->error = AVA_ENOMEM;
		return;
	}
	t->cells[t->n++] = copy;
	*width = MAX(*width, term_columns(text, strlen(text)));
}

static void blanks(FILE *f, size_t n)
{
	for (; n > 0; n--)
		fputc(' ', f);
}

/* Columns to leave out, so that the others fit into `total`; what these and
 * the gaps take is in *used. */
static unsigned leave_out(const struct table *t, size_t total, size_t *used)
{
	unsigned out = 0;

	*used = 0;
	for (size_t i = 0; i + 1 < t->columns; i++)
		*used += t->width[i] + GAP;
	for (size_t i = t->columns - 1; i-- > 0 && total > 0 && *used + LAST > total;) {
		if (!(t->spare & 1u << i))
			continue;
		out |= 1u << i;
		*used -= t->width[i] + GAP;
	}
	return out;
}

int table_print(const struct table *t, FILE *f)
{
	size_t total = term_width(f), used, last;
	unsigned out = leave_out(t, total, &used);

	last = total == 0 ? 0 : total > used + LAST ? total - used : LAST;
	for (size_t i = 0; i < t->n; i++) {
		size_t column = i % t->columns, n;

		if (out & 1u << column)
			continue;
		if (column + 1 == t->columns) {
			term_cut(f, t->cells[i], strlen(t->cells[i]), last);
			fputc('\n', f);
			continue;
		}
		n = term_cut(f, t->cells[i], strlen(t->cells[i]), 0);
		blanks(f, t->width[column] + GAP - n);
	}
	return t->error;
}
