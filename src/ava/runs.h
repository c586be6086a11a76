/* Runs that have ended, as files tell: the first and the last event of a log, its
 * result.json, and the catalog read from its end. On any thread: these read files, so that
 * a verb calls them from a job. */
#ifndef AVA_RUNS_H
#define AVA_RUNS_H

#include <jansson.h>

#include "ava/ops.h"
#include "journal/catalog.h"

struct ended {
	struct op_status status;  /* its strings belong to the fields below */
	struct catalog_row row;   /* set for a run whose files are gone */
	json_t *spawn, *complete; /* owned; complete NULL: the run has not ended */
	char last_tool[64];
};

/* AVA_ENOENT: no such run. The caller calls ended_fini. */
int ended_read(int root_fd, const char *run, struct ended *out, struct ava_error *err);
void ended_fini(struct ended *e);
/* Fills the status from a row of the catalog: all that a listing shows. Its strings are the row's.
 */
void ended_row(const struct catalog_row *row, struct op_status *s);

/* Reads result.json unchanged; *json is the caller's (free), NULL when it is cut or missing. */
int ended_result(int root_fd, const char *run, char **json, size_t *len, struct ava_error *err);

/* Gives every row, newest first, until `each` returns false; `ends`: only ends of runs, other rows
 * are not parsed. The row is *borrowed until each returns*, unless `each` takes it (`owned` NULL).
 * Unreadable rows are skipped; a newest part that is no file is AVA_ECORRUPT. */
int history_each(int root_fd, bool ends, bool (*each)(struct catalog_row *row, void *user),
		 void *user, struct ava_error *err);

#endif
