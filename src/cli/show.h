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

/* A proposal's quote, whole, with its folder; without the question at its end. */
void show_proposal(FILE *f, const json_t *proposal);
/* Summary, findings, caveats, totals. */
void show_result(FILE *f, const json_t *result);
/* A line for each file that a patch changes or leaves out, and a sum. */
void changes_show(FILE *f, const json_t *patch);
/* The object as it is, on one line. */
void show_json(FILE *f, const json_t *v);

/* Status lines of a run, the same words in every channel. */

#define PROGRESS_FIRST_MS 30000 /* "still working" comes first after this */
#define PROGRESS_NEXT_MS  60000 /* and then again after this */

struct progress {
	FILE *f;
	char role[48];      /* as shown: "WebCrawler" */
	char who[80];       /* the role, with the run's id when two of them are at work */
	char activity[256]; /* the run's last activity, cut */
	bool chat;          /* shown in a conversation: lines name its commands */
	bool live;          /* the last row is a status line, which the next output replaces */
	bool spawned;       /* "spawned" was told, the start not yet */
	size_t shown;       /* columns of the status line that stand there now */
};

void progress_init(struct progress *p, FILE *f, const char *role);
void progress_spawning(struct progress *p, const char *run);
/* An event line of the run: an Activity is shown, and its first InferStart as "Starting...": it
 * has its slot. */
void progress_event(struct progress *p, const char *type, const char *line, size_t len);
/* `status`: of the run, as it is now; NULL: not known. */
void progress_still_working(struct progress *p, const json_t *status);

/* On a terminal that can: "WebCrawler running (45s, 12k tokens)..." of a status
 * object, over the one before. It has no line end and no escapes, and goes away
 * before anything else is printed (progress_clear). */
void progress_live(struct progress *p, const json_t *status);
void progress_clear(struct progress *p);

/* The last line of a run, from its result, with what can be done next; `run`: its status, for
 * its limits, or NULL. */
/* `who`: as shown. */
void progress_end(FILE *f, const char *who, const json_t *result, const json_t *run);
/* "WebCrawler running (45s, 12k tokens)" and the run's activity, from a status. */
void progress_status(FILE *f, const json_t *status);

/* "WebCrawler running (45s, 12k tokens, $0.02): Reading …" of a status, shorter where there
 * are less than 60 columns (0: no limit). *Owned* (free); NULL: no memory. */
char *status_line(const json_t *run, size_t columns);

/* The subagents of a conversation as its terminal knows them, by their events.
 * Pure: the time is given. */

#define CHAT_RUNS_MAX 256 /* the oldest ended ones are forgotten */

struct chat_run {
	char id[24];
	struct progress shown;
	bool live;
	int64_t still_ms; /* when "still working" is due */
};

struct chat_runs {
	struct chat_run run[CHAT_RUNS_MAX];
	size_t n;
};

/* A run that began or is known to be at work. NULL: as many are live as can be
 * kept; it is shown without "still working". */
struct chat_run *chat_runs_begin(struct chat_runs *r, const char *id, const char *role,
				 int64_t now_ms);
struct chat_run *chat_runs_find(struct chat_runs *r, const char *id);
/* The next run whose "still working" is due, with its time set anew; else NULL. */
struct chat_run *chat_runs_due(struct chat_runs *r, int64_t now_ms);
/* When the next "still working" is due; -1: none. */
int64_t chat_runs_next(const struct chat_runs *r);

#endif
