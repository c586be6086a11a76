/* robots.txt (RFC 9309), as far as one robot needs it. Pure. */
#ifndef NET_ROBOTS_H
#define NET_ROBOTS_H

#include <stdbool.h>
#include <stddef.h>

struct robots; /* the rules for one robot; immutable */

#define ROBOTS_MAX (512u << 10) /* most bytes of a robots.txt that are read */

/* Read the rules in `text` for `agent` ("ava"), else those for everybody. NULL: out of memory.
 * Other lines than rules are skipped, as the RFC wants it. */
struct robots *robots_parse(const char *text, size_t len, const char *agent);
void robots_free(struct robots *r); /* NULL is fine */

/* May `path` be fetched? It begins with / and includes the query. */
bool robots_allow(const struct robots *r, const char *path);
/* Seconds that the site wants between two requests; 0: not given. */
int robots_delay(const struct robots *r);

#endif
