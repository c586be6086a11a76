/* cluster/pg.h over a simulated network, with the database of pgmap.h on the other side: batches
 * arrive in their order or not at all, and maybe long after their sender gave up; answers come
 * later, or never. The URL is "machine=N". */
#ifndef SIM_PGWIRE_H
#define SIM_PGWIRE_H

#include <stdbool.h>
#include <stdint.h>

#define PGWIRE_MACHINES 8

struct pgwire_temper {
	int64_t usual_ms; /* of a way, at most, mostly */
	int slow;         /* thousandths of batches that take seconds */
};
extern struct pgwire_temper pgwire_temper;

void pgwire_begin(void);
/* Nothing passes between a machine and the database until then; `answers`: only these do not. */
void pgwire_cut(unsigned machine, int64_t until, bool answers);
/* The database is away until then: its connections end now. */
void pgwire_away(int64_t until);
/* Everything passes. */
void pgwire_heal(void);

#endif
