/* Time zones by their names, from the system's zoneinfo (TZif, RFC 9636), not through the one zone
 * that libc has for all threads of a process. A zone is read once, by whoever opens it first,
 * and does not change when the files do. Until ZONE_END; behind that its last offset goes on. */
#ifndef BASE_ZONE_H
#define BASE_ZONE_H

#include <stdint.h>

struct ava_error;
struct zone;

#define ZONE_NAME 64
#define ZONE_END  INT64_C(8078745600) /* 2226-01-01T00:00:00Z */

/* Find the zone of this name: "Europe/Berlin"; "UTC" needs no file; "" or "local" is that of the
 * machine, by its name where that is known (TZ, the link /etc/localtime). To be closed with
 * zone_close. AVA_EINVAL: there is none; AVA_ENOMEM. */
int zone_open(const char *name, struct zone **out, struct ava_error *err);
void zone_close(struct zone *z); /* may be NULL */
/* Its name; "local" when the machine does not say one. */
const char *zone_name(const struct zone *z);

/* A stretch of time with one offset: local time is UTC + offset in it. Seconds since 1970. */
struct zone_span {
	int64_t from, to; /* from <= t < to; INT64_MIN, INT64_MAX: no end */
	int32_t offset,
		before; /* before: that of the stretch in front; the same when there is none */
};
struct zone_span zone_at(const struct zone *z, int64_t t);

#endif
