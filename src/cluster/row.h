/* The row of the catalog that a run of another machine has here: from the row that it began with,
 * and the first and the last line of its log. Pure. */
#ifndef CLUSTER_ROW_H
#define CLUSTER_ROW_H

#include <stdbool.h>

#include "base/hash.h"
#include "codec/jscan.h"
#include "journal/catalog.h"

#define READER_ROOT "cluster" /* below the data root: the copies of runs */

struct run_edges {
	struct slice row;         /* as the catalog of its machine began */
	struct slice first, last; /* the beginning and the end of the log; NULL: none */
	bool ended;
};

/* A row that tells all that is shown of an ended run, or of one that goes on what it began with.
 * False: it cannot be read, and *row is zero; else its strings are its own. */
bool run_row(struct catalog_row *row, const struct run_edges *e);
/* The hash of result.json that the end of a log names; false: none. */
bool run_result_hash(struct slice log, char hash[HASH_HEX_LEN + 1]);

/* As another machine has it, or had. */
struct reader_run { /* borrowed until the callback returns */
	char id[24];
	char machine[65];         /* the name of the one that has it */
	bool ended, held, silent; /* held: it brought down machines; silent: its machine is */
	char waits[200];          /* held or silent: what it waits for */
	char place[80];           /* "anywhere", "here" or "folder site" */
	/* Number of its newest call of the model; what those before have used. */
	int64_t turn, tokens, micro;
	bool seen_live;         /* in a list before it ended */
	int64_t bytes;          /* of a copy: length of the log */
	struct catalog_row row; /* of a list: all that is shown of an ended run */
	uint64_t stamp;         /* of a list: that of the ask which found the end */
};

#endif
