/* See doors.h. A row of base/doors.h and its wire, door_wire_<name>, make a door; which are there
 * is decided by the secrets in the file of keys.
 *
 * What can fail: memory. What is wrong with one door is told by itself and closes no other. */
#include "gateway/doors.h"

#include <ava.h>
#include <string.h>

#include "ava/config.h"
#include "base/error.h"
#include "base/util.h"
#include "gateway/door.h"
#include "gateway/door_wire.h"

static const struct door_wire *const wires[DOORS_N] = {
#define X(name, ...) [DOORS_##name] = &door_wire_##name,
	DOORS(X)
#undef X
};

int doors_open(struct doors *ds, struct core *core, const struct config *config,
	       void (*log)(const char *line, void *user), void *user, struct ava_error *err)
{
	int rv = 0;

	for (unsigned i = 0; i < DOORS_N && rv == 0; i++)
		rv = door_new(&ds->open[i], wires[i], i, core, config->doors[i], log, user, err);
	return rv;
}

bool doors_serve(const struct doors *ds)
{
	for (size_t i = 0; i < DOORS_N; i++)
		if (door_serves(ds->open[i]))
			return true;
	return false;
}

void doors_close(struct doors *ds)
{
	for (size_t i = 0; i < DOORS_N; i++)
		door_free(ds->open[i]);
	*ds = (struct doors){0};
}

void doors_check(const struct config *config,
		 void (*wrong)(const char *door, const char *why, void *user), void *user)
{
	for (size_t i = 0; i < DOORS_N; i++) {
		struct door_access access = {0};
		struct ava_error err = {0};

		if (wires[i]->access(&access, config->doors[i], &err) != 0 && err.code != 0)
			wrong(wires[i]->name, err.text, user);
		explicit_bzero(&access, sizeof(access));
	}
}
