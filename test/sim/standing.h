/* Standing orders in the lives (lives.h): people add some, with a calendar in a zone, pause them,
 * let them go on, start a run of them, remove them and answer what they ask; instructions of their
 * folder change, so that they ask. What became of their times is judged by the events of the daily
 * log and by the calendar, never by the runtime. */
#ifndef SIM_STANDING_H
#define SIM_STANDING_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct core;
struct lives;
struct settings;
struct op_spawn;

void standing_draw(struct lives *l);
void standing_zones(void); /* files of the system's, onto the disk in use */
/* Budgets of the week, the month and a tag. */
void standing_settings(const struct lives *l, struct settings *s);
/* Those that were not acknowledged are asked for, again. `spawn`: a request of the run of one. */
void standing_ask(struct lives *l, struct core *core, unsigned i, const struct op_spawn *spawn);
/* People look at the orders, and do something about them. `work`: the folder of the runs. */
void standing_look(struct lives *l, struct core *core, const char *work);
void standing_end(const char *work); /* nothing is left there */

/* ---- the judge */
void standing_judge_begin(struct lives *l);
void standing_see(const json_t *event);                            /* of a daily log */
void standing_see_file(const char *path, const char *b, size_t n); /* orders/O-….json */
/* l->broken says what is wrong. */
bool standing_judge(struct lives *l);

#endif
