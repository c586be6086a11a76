/* A door for a messenger: a client of the table of verbs that speaks with the people who are
 * paired, each alone. What is special of a service is its wire (door_wire.h). doc/TELEGRAM.md
 * says what people see, doc/SECURITY.md what each check is against. Loop thread only.
 */
#ifndef GATEWAY_DOOR_H
#define GATEWAY_DOOR_H

#include <stdbool.h>

struct ava_error;
struct core;
struct door;
struct door_wire;

/* Open the door `index` of the table (base/doors.h) if the key file has a secret; else *out is
 * NULL. A bad secret or state is told by `log` and shown as the door's problem, without harm to
 * the daemon. `url`: its address in config.yaml or "". AVA_ENOMEM. */
int door_new(struct door **out, const struct door_wire *wire, unsigned index, struct core *core,
	     const char *url, void (*log)(const char *line, void *user), void *user,
	     struct ava_error *err);
/* Whether the door listens, which keeps the daemon from being idle. */
bool door_serves(const struct door *d);
/* Before the runtime closes; NULL is fine. The next start takes up updates and calls under way. */
void door_free(struct door *d);

#endif
