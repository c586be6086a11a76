/* What the statements of pgmap.c and pgmap_share.c are made of. */
#ifndef SIM_PGMAP_DOING_H
#define SIM_PGMAP_DOING_H

#include "pgmap.h"

struct pgmap_doing {
	const char *sql;
	const struct pgmap_value *p; /* of $1 on: p[0] is $1 */
	size_t np;
	struct pgmap_rows *out;
	struct arena *mem;
};

/* A statement that is known. */
struct pgmap_known {
	const char *begins;
	void (*run)(const struct pgmap_doing *d);
	const char *has; /* two statements begin alike; or NULL */
};
extern const struct pgmap_known pgmap_share_known[];
extern const size_t pgmap_nshare_known;

/* A condition of a statement: it counts where its words are there. */
bool pgmap_unless(const struct pgmap_doing *d, const char *words, bool holds);
bool pgmap_says(const struct pgmap_doing *d, const char *words);
/* Parameters, from 1 on. */
const char *pgmap_text(const struct pgmap_doing *d, size_t i);
int64_t pgmap_int(const struct pgmap_doing *d, size_t i);
const struct pgmap_value *pgmap_list(const struct pgmap_doing *d, size_t i, size_t n);
bool pgmap_is_in(const struct pgmap_value *list, const char *text);

/* A new row of the answer, and its cells. */
struct pgmap_value *pgmap_row(const struct pgmap_doing *d, unsigned cols);
struct pgmap_value pgmap_of_bytes(const struct pgmap_doing *d, const void *bytes, size_t len);
struct pgmap_value pgmap_of_text(const struct pgmap_doing *d, const char *text); /* NULL: null */
struct pgmap_value pgmap_of_int(int64_t n);
extern const struct pgmap_value pgmap_null;
/* Eight columns, as take_row_of has them. */
void pgmap_row_of_run(const struct pgmap_doing *d, const struct pgmap_run *r, bool mine,
		      int64_t messages, const char *group);

/* The row `me` of CLUSTER_ME_SQL; NULL: none. */
struct pgmap_node *pgmap_me(const struct pgmap_doing *d);
bool pgmap_alive(const char *node);
/* The chunks of a kind, in order; *n of them, the caller's. */
const struct pgmap_body **pgmap_chunks(const char *run, int kind, size_t *n);
/* Kept for as long as the database. */
const char *pgmap_keep(const void *bytes, size_t len);

#endif
