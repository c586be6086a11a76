/* Time zones; zone.h.
 *
 * A zone is a list of turns: from this instant on, this offset. The file has those that are known;
 * the rule at its end (POSIX TZ, "CET-1CEST,M3.5.0,M10.5.0/3") is played up to ZONE_END, so that
 * one binary search answers for every time. A turn that leaves the offset as it was is none.
 *
 * What can fail: a name that is no file below zoneinfo, or a file that is no TZif. A file is
 * somebody else's: each number in it is looked at before it is used. */
#include "base/zone.h"

#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/env.h"
#include "base/error.h"
#include "base/sys.h"
#include "base/util.h"

#define ZONE_FILE_MAX   (1 << 18)
#define ZONE_OFFSET_MAX (26 * 3600)

struct zone_turn {
	int64_t at;
	int32_t offset;
};

struct zone {
	struct zone *next; /* in `zones` */
	unsigned users;
	char name[ZONE_NAME];
	int32_t first; /* the offset before the first turn */
	struct zone_turn *turns;
	size_t n, cap;
};

const char *zone_name(const struct zone *z)
{
	return z->name;
}

/* Those that are open, by their names: a thousand orders of one zone have it once. */
static pthread_mutex_t zones_lock = PTHREAD_MUTEX_INITIALIZER;
static struct zone *zones;

static struct zone *zone_shared(const char *name)
{
	struct zone *z;

	pthread_mutex_lock(&zones_lock);
	for (z = zones; z != NULL && strcmp(z->name, name) != 0; z = z->next)
		;
	if (z != NULL)
		z->users++;
	pthread_mutex_unlock(&zones_lock);
	return z;
}

static void zone_share(struct zone *z)
{
	pthread_mutex_lock(&zones_lock);
	z->next = zones;
	zones = z;
	pthread_mutex_unlock(&zones_lock);
}

void zone_close(struct zone *z)
{
	unsigned users = 0;

	if (z == NULL)
		return;
	pthread_mutex_lock(&zones_lock);
	if (z->users > 0)
		users = --z->users;
	for (struct zone **at = &zones; users == 0 && *at != NULL;)
		if (*at == z)
			*at = z->next;
		else
			at = &(*at)->next;
	pthread_mutex_unlock(&zones_lock);
	if (users > 0)
		return;
	free(z->turns);
	free(z);
}

struct zone_span zone_at(const struct zone *z, int64_t t)
{
	size_t low = 0, high = z->n; /* turns before `low` are not after t, those from `high` are */
	struct zone_span s = {.from = INT64_MIN, .to = INT64_MAX, .offset = z->first};

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (z->turns[middle].at <= t)
			low = middle + 1;
		else
			high = middle;
	}
	s.before = low > 1 ? z->turns[low - 2].offset : z->first;
	if (low > 0) {
		s.from = z->turns[low - 1].at;
		s.offset = z->turns[low - 1].offset;
	}
	if (low < z->n)
		s.to = z->turns[low].at;
	return s;
}

/* Append a turn; one at the instant of the last takes its place. */
static bool zone_turn(struct zone *z, int64_t at, int32_t offset)
{
	if (z->n > 0 && z->turns[z->n - 1].at == at)
		z->n--;
	if ((z->n > 0 ? z->turns[z->n - 1].offset : z->first) == offset)
		return true;
	if (!ARRAY_ROOM(z->turns, z->cap, z->n + 1))
		return false;
	z->turns[z->n++] = (struct zone_turn){at, offset};
	return true;
}

/* ---- the rule at the end */

/* The day of a year: 'M' month, week and weekday; 'J' 1 to 365 without 29 February; 'D' 0 to 365
 * with it. */
struct zone_rule {
	char form;
	int month, week, day;
	int32_t time; /* seconds behind its midnight, local by the offset before */
};

static bool rule_number(const char **p, int least, int most, int *out)
{
	int n = 0;

	if (**p < '0' || **p > '9')
		return false;
	for (; **p >= '0' && **p <= '9' && n <= most; (*p)++)
		n = n * 10 + (**p - '0');
	*out = n;
	return n >= least && n <= most;
}

/* [+-]hh[:mm[:ss]] */
static bool rule_time(const char **p, int32_t *out)
{
	int part[3] = {0}, sign = **p == '-' ? -1 : 1;

	*p += **p == '-' || **p == '+';
	for (int i = 0; i < 3; i++) {
		if (!rule_number(p, 0, i == 0 ? 167 : 59, &part[i]))
			return false;
		if (**p != ':')
			break;
		(*p)++;
	}
	*out = sign * (part[0] * 3600 + part[1] * 60 + part[2]);
	return true;
}

static bool rule_name(const char **p)
{
	const char *start = *p;

	if (**p == '<') {
		*p += strcspn(*p, ">");
		return *(*p)++ == '>';
	}
	while ((**p | 0x20) >= 'a' && (**p | 0x20) <= 'z')
		(*p)++;
	return *p - start >= 3;
}

static bool rule_date(const char **p, struct zone_rule *r)
{
	*r = (struct zone_rule){.form = **p, .time = 7200};
	if (*(*p)++ != ',')
		return false;
	r->form = **p == 'M' || **p == 'J' ? *(*p)++ : 'D';
	if (r->form != 'M' ? !rule_number(p, r->form == 'J', 365, &r->day)
			   : !rule_number(p, 1, 12, &r->month) || *(*p)++ != '.' ||
				     !rule_number(p, 1, 5, &r->week) || *(*p)++ != '.' ||
				     !rule_number(p, 0, 6, &r->day))
		return false;
	return **p != '/' || ((*p)++, rule_time(p, &r->time));
}

/* The rule's instant in a year, as seconds of the local time before it. */
static int64_t rule_local(const struct zone_rule *r, int year)
{
	int64_t day = clock_days(year, 1, 1) + r->day;

	if (r->form == 'J') {
		day += (r->day >= 60 && clock_days_in(year, 2) == 29) - 1;
	} else if (r->form == 'M') {
		int64_t first = clock_days(year, r->month, 1);

		/* 1970-01-01 was a Thursday. */
		day = first + (r->day - (first + 4) % 7 + 7) % 7 + (r->week - 1) * 7;
		if (day >= first + clock_days_in(year, r->month))
			day -= 7;
	}
	return day * 86400 + r->time;
}

/* Play a rule of POSIX from the last turn on. False: it is none, or no memory. */
static bool zone_play(struct zone *z, const char *text)
{
	struct zone_rule begin = {0}, end;
	int64_t last = z->n > 0 ? z->turns[z->n - 1].at : 0, in, out;
	int32_t plain, summer;
	const char *p = text;

	if (!rule_name(&p) || !rule_time(&p, &plain))
		return false;
	summer = plain - 3600; /* both count to the west */
	if (*p != '\0' && (!rule_name(&p) || (*p != ',' && !rule_time(&p, &summer)) ||
			   !rule_date(&p, &begin) || !rule_date(&p, &end) || *p != '\0'))
		return false;
	plain = -plain;
	summer = -summer;
	if (z->n == 0)
		z->first = plain;
	if (begin.form == '\0')
		return true;
	for (int y = clock_day_of((unsigned)(MAX(last, 0) / 86400)).year; y < 2226; y++) {
		in = rule_local(&begin, y) - plain;
		out = rule_local(&end, y) - summer;
		for (int i = 0; i < 2; i++) {
			bool summers = (i == 0) == (in < out);
			int64_t at = summers ? in : out;

			if (at > last && !zone_turn(z, at, summers ? summer : plain))
				return false;
		}
	}
	return true;
}

/* ---- the file */

static int64_t zone_big(const unsigned char *p, int bytes)
{
	uint64_t n = p[0] & 0x80 ? UINT64_MAX : 0;

	while (bytes-- > 0)
		n = n << 8 | *p++;
	return (int64_t)n;
}

/* A block of a TZif, behind its header. Its types are of 6 bytes: offset, summer, name. */
static bool zone_block(struct zone *z, const unsigned char *p, int wide, size_t n, size_t types)
{
	const unsigned char *kind = p + n * (size_t)wide, *type = kind + n;

	for (size_t i = 0; i < n + types; i++) /* indexes, then offsets */
		if (i < n ? kind[i] >= types
			  : llabs(zone_big(type + (i - n) * 6, 4)) > ZONE_OFFSET_MAX)
			return false;
	z->first = (int32_t)zone_big(type, 4);
	for (size_t i = 0; i < n; i++) {
		int64_t at = zone_big(p + i * (size_t)wide, wide);

		if ((z->n > 0 && at < z->turns[z->n - 1].at) ||
		    !zone_turn(z, at, (int32_t)zone_big(type + kind[i] * 6, 4)))
			return false;
	}
	return true;
}

/* The bytes of a file, NUL behind them. A second block has times of 64 bits, and the rule. */
static bool zone_parse(struct zone *z, char *data, size_t len)
{
	const unsigned char *p = (const unsigned char *)data, *end = p + len;
	char *rule;

	for (int wide = 4;; wide = 8) {
		size_t count[6], size; /* ut, standard, leap seconds, turns, types, letters */

		if (end - p < 44 || memcmp(p, "TZif", 4) != 0)
			return false;
		for (int i = 0; i < 6; i++)
			count[i] = (size_t)zone_big(p + 20 + 4 * i, 4) & UINT32_MAX;
		size = count[0] + count[1] + count[2] * ((size_t)wide + 4) +
		       count[3] * ((size_t)wide + 1) + count[4] * 6 + count[5];
		if (size > (size_t)(end - p) - 44 || count[4] == 0 || count[2] > 0)
			return false;
		if (wide == 8 || p[4] == '\0') {
			if (!zone_block(z, p + 44, wide, count[3], count[4]))
				return false;
			p += 44 + size;
			break;
		}
		p += 44 + size;
	}
	if (p >= end || *p != '\n' || p[1] == '\n')
		return true; /* no rule: its last offset goes on */
	rule = data + ((const char *)p - data) + 1;
	rule[strcspn(rule, "\n")] = '\0';
	return zone_play(z, rule);
}

/* ---- names */

static bool zone_load(struct zone *z, const char *path)
{
	char *data;
	size_t len;
	bool ok;

	z->n = 0;
	z->first = 0;
	if (sys_read_file(AT_FDCWD, path, ZONE_FILE_MAX, &data, &len, NULL) != 0)
		return false;
	ok = zone_parse(z, data, len);
	free(data);
	return ok;
}

static bool zone_find(struct zone *z, const char *name)
{
	const char *folders[] = {env_get("TZDIR"), "/usr/share/zoneinfo", "/etc/zoneinfo"};
	char path[PATH_MAX];

	snprintf(z->name, sizeof(z->name), "%s", name);
	if (strcmp(name, "UTC") == 0)
		return true;
	if (strlen(name) >= ZONE_NAME || strstr(name, "..") || !isalpha((unsigned char)name[0]))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
		if (folders[i] == NULL || folders[i][0] != '/')
			continue;
		snprintf(path, sizeof(path), "%s/%s", folders[i], name);
		if (zone_load(z, path))
			return true;
	}
	return false;
}

/* The machine's zone: TZ, which is a name, a path or a rule, else what /etc/localtime leads to;
 * UTC where libc would take it. */
static void zone_local(struct zone *z)
{
	const char *tz = env_get("TZ"), *name;
	char link[PATH_MAX] = "";

	if (tz == NULL)
		tz = readlink("/etc/localtime", link, sizeof(link) - 1) > 0 ? link : "local";
	tz += *tz == ':';
	name = strstr(tz, "zoneinfo/");
	if (zone_find(z, name ? name + strlen("zoneinfo/") : tz))
		return;
	snprintf(z->name, sizeof(z->name), "local");
	z->n = 0;
	if (*tz == '\0' || (!zone_play(z, tz) && !zone_load(z, *tz == '/' ? tz : "/etc/localtime")))
		zone_find(z, "UTC");
}

int zone_open(const char *name, struct zone **out, struct ava_error *err)
{
	bool local = *name == '\0' || strcmp(name, "local") == 0; /* it may be another one by now */
	struct zone *z = local ? NULL : zone_shared(name);

	if (z == NULL) {
		z = calloc(1, sizeof(*z));
		if (z == NULL)
			return err_set(err, AVA_ENOMEM, "no memory for a time zone");
		z->users = 1;
		if (local) {
			zone_local(z);
		} else if (zone_find(z, name)) {
			zone_share(z);
		} else {
			zone_close(z);
			return err_set(err, AVA_EINVAL,
				       "there is no time zone \"%.60s\": name one as "
				       "Europe/Berlin, UTC or local (timedatectl list-timezones "
				       "has them)",
				       name);
		}
	}
	*out = z;
	return 0;
}
