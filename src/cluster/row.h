/* The row of the catalog that a run of another machine has here: from the row that it began with,
 * and the first and the last line of its log. Pure. */
#ifndef CLUSTER_ROW_H
#define CLUSTER_ROW_H

#include <stdbool.h>

#include "base/hash.h"
#include "codec/jscan.h"
#include "journal/catalog.h"

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

#endif
