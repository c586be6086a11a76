/* Text for people: figures, tables, the result of a run, its status lines. */
#ifndef CLI_SHOW_H
#define CLI_SHOW_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "codec/format_of.h"

struct format format_clock(int64_t wall_ms); /* "14:05:30", local */
struct format format_date(int64_t wall_ms);  /* "2026-11-21", local */
/* An RFC 3339 member in local time, "2026-11-21 14:05:30"; "": empty. */
struct format format_moment_of(const json_t *o, const char *key);

/* A table of text columns, fitted to the terminal: the last column takes what
 * is left and is cut. Cells are shown as term_cut shows them. On a terminal that
 * is too narrow columns that can be spared are left out, the rightmost first. */

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

/* A table of objects: a column's title, and the member of each object below it. */
struct column {
	const char *title;
	enum column_kind {
		COLUMN_TEXT,
		COLUMN_ROLE,
		COLUMN_STATUS,
		COLUMN_MOMENT, /* local, to the minute */
		COLUMN_TIME,   /* seconds */
		COLUMN_TOKENS,
		COLUMN_COST, /* cents */
		COLUMN_MOST, /* cents, shown as a limit of money */
		COLUMN_OWN,  /* text that `own` writes */
	} kind;
	const char *key, *in; /* in: member of the row that has `key`; NULL: the row itself */
	bool spare;           /* as table.spare */
	void (*own)(const json_t *row, char *out, size_t size); /* `out` is "" */
};
/* Print to stdout. An exit code. */
int show_table(const struct column *columns, size_t n, const json_t *rows);

#define SHOW_DOOR_MAX 900
/* "serving: @ava_bot, 1 paired": a messenger's door, in `out`, which is returned. */
const char *show_door(const json_t *door, char out[SHOW_DOOR_MAX]);

/* A proposal's quote, whole, with its folder; without the question at its end. */
void show_proposal(FILE *f, const json_t *proposal);
/* A standing order: what, when, its money, and what became of it. */
void show_order(FILE *f, const json_t *order);
/* Summary, findings, caveats, totals. Its places are links where links_below() named the folder. */
void show_result(FILE *f, const json_t *result);
/* A line for each file that a patch changes or leaves out, and a sum. */
void changes_show(FILE *f, const json_t *patch);
/* The object as it is, on one line. */
void show_json(FILE *f, const json_t *v);

#endif
