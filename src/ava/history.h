/* The catalog read from its end: what a listing needs of runs that are not
 * live any more, without reading all of it. */
#ifndef AVA_HISTORY_H
#define AVA_HISTORY_H

#include <stdbool.h>

#include "journal/catalog.h"

struct core;

/* Every row, newest first, until `each` says false; with `ends` only those of
 * ends, the others not even parsed. The row is *borrowed until
 * each returns*; what cannot be read is passed over. */
void history_each(struct core *c, bool ends,
		  bool (*each)(const struct catalog_row *row, void *user), void *user);

#endif
