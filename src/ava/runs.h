/* Runs that have ended, as files tell: the first and the last event of a log, its
 * result.json, and the catalog read from its end. On any thread: these read files, so that
 * a verb calls them from a job. */
#ifndef AVA_RUNS_H
#define AVA_RUNS_H

#include <jansson.h>

#include "ava/ops.h"
#include "journal/catalog.h"

struct ended {
	struct op_status status;  /* strings in those below */
	struct catalog_row row;   /* what stands there of one whose files are gone */
	json_t *spawn, *complete; /* owned; complete NULL: it has not ended */
	char last_tool[64];
};

/* AVA_ENOENT: no such run. The caller calls ended_fini. */
int ended_read(int root_fd, const char *run, struct ended *out, struct ava_error *err);
void ended_fini(struct ended *e);

/* result.json as it is; *json is the caller's (free), NULL when it is cut or not there. */
int ended_result(int root_fd, const char *run, char **json, size_t *len, struct ava_error *err);

/* Every row, newest first, until `each` says false; with `ends` only those of
 * ends, the others not even parsed. The row is *borrowed until
 * each returns*, unless that takes it (`owned` NULL); what cannot be read is passed over,
 * but for a newest part that is no file: AVA_ECORRUPT. */
int history_each(int root_fd, bool ends, bool (*each)(struct catalog_row *row, void *user),
		 void *user, struct ava_error *err);

#endif
