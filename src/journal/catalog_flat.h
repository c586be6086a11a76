/* The short way to a row, for lines as catalog_encode writes them. Private to
 * catalog.c. */
#ifndef JOURNAL_CATALOG_FLAT_H
#define JOURNAL_CATALOG_FLAT_H

#include <stdbool.h>
#include <stddef.h>

#include "journal/catalog.h"

/* True: *row is exactly what the general parser makes of it; its strings stand
 * in one block, row->owned (free()). False: the general parser is to say what
 * the line is; *row is zero. */
bool catalog_flat(const char *line, size_t len, struct catalog_row *row);

#endif
