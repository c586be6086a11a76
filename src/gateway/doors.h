/* The messengers' doors, by the table in base/doors.h. Loop thread only. */
#ifndef GATEWAY_DOORS_H
#define GATEWAY_DOORS_H

#include <stdbool.h>
#include <stddef.h>

#include "base/doors.h"

struct ava_error;
struct config;
struct core;
struct door;

struct doors {
	struct door *open[DOORS_N]; /* NULL: without a secret */
};

/* Open each door that has a secret (door.h). AVA_ENOMEM. */
int doors_open(struct doors *ds, struct core *core, const struct config *config,
	       void (*log)(const char *line, void *user), void *user, struct ava_error *err);
/* Whether one listens. */
bool doors_serve(const struct doors *ds);
void doors_close(struct doors *ds);
/* Tells faults of the secrets, by name of the door, without a daemon. */
void doors_check(const struct config *config,
		 void (*wrong)(const char *door, const char *why, void *user), void *user);

#endif
