/* A table of text columns, fitted to the terminal: the last column takes what
 * is left and is cut. Cells are shown as term_cut shows them. On a terminal that
 * is too narrow columns that can be spared are left out, the rightmost first. */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include <stddef.h>
#include <stdio.h>

#define TABLE_COLUMNS 10

struct table {
	size_t columns, width[TABLE_COLUMNS];
	char **cells; /* owned copies, row by row; NULL: memory ran out */
	size_t n, cap;
	int error;      /* 0 or AVA_ENOMEM */
	unsigned spare; /* bit i: column i can be spared; set after table_init */
};

void table_init(struct table *t, size_t columns);
void table_fini(struct table *t);
/* The next cell, row by row; copied. */
void table_add(struct table *t, const char *text);
/* 0 or AVA_ENOMEM when a cell was lost on the way. */
int table_print(const struct table *t, FILE *f);

#endif
