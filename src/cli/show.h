/* What people read: numbers and names, tables, the result of a run, lists. */
#ifndef CLI_SHOW_H
#define CLI_SHOW_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Numbers and names as people read them. */

#define FORMAT_LEN 48
struct format {
	char text[FORMAT_LEN];
}; /* returned by value: no lifetime to mind */

struct format format_money(int64_t microusd); /* "$0.24"; -1: "cost unknown" */
struct format format_seconds(int64_t ms);     /* "45s", "0.4s" */
struct format format_ms(int64_t ms);          /* "12 ms", "3.4 s" */
struct format format_tokens(int64_t n);       /* "850", "1.2k", "12k", "3.4M" */
struct format format_bytes(int64_t n);        /* "812 B", "2.1 KB" */
struct format format_role(const char *name);  /* "web_crawler": "WebCrawler" */
struct format format_clock(int64_t wall_ms);  /* "14:05:30", local */
struct format format_date(int64_t wall_ms);   /* "2026-11-21", local */

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

/* Summary, findings, caveats, totals. */
void show_result(FILE *f, const json_t *result);
/* The object as it is, on one line. */
void show_json(FILE *f, const json_t *v);

/* What `ava ps`, `ava sessions` and `ava proposals` have in common: ask for a
 * list, show it as a table or as it came. */

struct listing {
	const char *key;           /* of the array in the answer: "runs" */
	const char *none;          /* what is said when it is empty */
	const char *const *titles; /* of the columns */
	size_t columns;
	unsigned spare; /* columns that a narrow terminal can do without, as table.spare */
	void (*add_row)(struct table *t, const json_t *one);
};

/* The list that GET `path` gives (below /api/v1). An exit code; why it failed
 * has been said. */
int listing_show(const struct listing *l, const char *path, bool json);

#endif
