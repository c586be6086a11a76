/* The runs of a group that wait for others of it: the order in which they can begin, and what is
 * wrong with an order that nobody could keep. Runs are numbers from 1, as in the group's spec.
 * Pure. */
#ifndef SUBAGENT_AFTER_H
#define SUBAGENT_AFTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ava_error;

#define AFTER_MAX 100 /* runs of a group */

/* A set of runs of a group; {0}: none. */
struct after_set {
	uint64_t bits[(AFTER_MAX + 63) / 64];
};

void after_add(struct after_set *s, int number); /* 1 to AFTER_MAX */
void after_remove(struct after_set *s, int number);
bool after_has(const struct after_set *s, int number);
bool after_none(const struct after_set *s);

/* Puts the numbers of the `n` runs into `order`, each behind all that it waits for (of[number -
 * 1]), else by number. Returns how many: fewer than n where some wait for each other. */
size_t after_order(const struct after_set *of, size_t n, int order[AFTER_MAX]);

#define AFTER_NAME_MAX 32

/* A run as a request names it; borrowed. */
struct after_asked {
	const char *id;           /* NULL: it has none, and nobody can wait for it */
	const char *const *after; /* ids */
	size_t nafter;
};

/* Puts what each of the `n` runs waits for into `of`. AVA_EINVAL with a sentence that names what is
 * wrong: an id that is no name or stands twice, one that no run has, runs that wait in a circle. */
int after_read(struct after_set *of, const struct after_asked *runs, size_t n,
	       struct ava_error *err);

#endif
