/* When to seal: every seals.every seconds of activity and at the end, on a
 * thread of the pool; the Seals are events of the daily log. */
#ifndef AVA_SEALS_H
#define AVA_SEALS_H

struct core;
struct ava_error;

/* From now on the logbook's files are noted. What fails later is told in
 * avad.log and tried again: sealing never stands in the way of work. */
int seals_open(struct core *c, struct ava_error *err);
/* Seal what is left, commit it, stop. Needs the journal. Accepts a core
 * without. */
void seals_close(struct core *c);

#endif
