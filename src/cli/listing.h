/* What `ava ps`, `ava sessions` and `ava proposals` have in common: ask for a
 * list, show it as a table or as it came. */
#ifndef CLI_LISTING_H
#define CLI_LISTING_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "cli/table.h"

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
