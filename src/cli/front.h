/* A terminal that is not in front of its person: a notice of what happens in it (OSC 9 and its
 * like; doc/DELIVERY.md, "In the terminal"). */
#ifndef CLI_FRONT_H
#define CLI_FRONT_H

#include <stdbool.h>
#include <stdio.h>

/* The terminal at stdout tells from now on whether it is in front (true), by keys that only who
 * reads all of them may ask for; or no more: before the program ends, stops, or gives the terminal
 * to another one. */
void front_watch(bool on);
/* The terminal said so, or its person typed. */
void front_seen(bool in_front);
/* Tell it by way of `f`, unless that is no terminal, or in front, or nothing is known of it. Only
 * words of ava; what is no printable ASCII is shown as "?". */
void front_tell(FILE *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
