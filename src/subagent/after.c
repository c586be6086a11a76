/* The order of a group's runs.
 *
 * Happy path: names become numbers, numbers an order; a chain is the order in which each run waits
 * for the one before it. What can fail are words of people and programs: names that stand twice,
 * are not there, or are no names, and circles. Each sentence has the names. */
#include "subagent/after.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"

#define NAMES_SHOWN 240 /* bytes of names in a sentence */

void after_add(struct after_set *s, int number)
{
	s->bits[(number - 1) / 64] |= (uint64_t)1 << ((number - 1) % 64);
}

void after_remove(struct after_set *s, int number)
{
	s->bits[(number - 1) / 64] &= ~((uint64_t)1 << ((number - 1) % 64));
}

bool after_has(const struct after_set *s, int number)
{
	return s->bits[(number - 1) / 64] >> ((number - 1) % 64) & 1;
}

bool after_none(const struct after_set *s)
{
	return (s->bits[0] | s->bits[1]) == 0;
}

size_t after_order(const struct after_set *of, size_t n, int order[AFTER_MAX])
{
	struct after_set placed = {0};
	size_t count = 0;

	for (size_t i = 0; i < n;) {
		int number = (int)i + 1;
		bool ready = !after_has(&placed, number);

		for (size_t k = 0; k < ARRAY_LEN(placed.bits); k++)
			ready = ready && (of[i].bits[k] & ~placed.bits[k]) == 0;
		i++;
		if (!ready)
			continue;
		order[count++] = number;
		after_add(&placed, number);
		i = 0; /* runs of lower numbers may have waited for this one */
	}
	return count;
}

/* ---- names */

static bool after_is_name(const char *id)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789._-";
	size_t len = strlen(id);

	return len > 0 && len <= AFTER_NAME_MAX && strspn(id, letters) == len &&
	       !strchr("0123456789._-", id[0]);
}

static int after_check_name(const struct after_asked *runs, size_t i, struct ava_error *err)
{
	if (!after_is_name(runs[i].id))
		return err_set(err, AVA_EINVAL,
			       "the id of run %zu must have 1 to %d letters, digits, '.', '_' or "
			       "'-' and begin with a letter, as parse-2",
			       i + 1, AFTER_NAME_MAX);
	for (size_t k = 0; k < i; k++)
		if (runs[k].id && strcmp(runs[k].id, runs[i].id) == 0)
			return err_set(err, AVA_EINVAL,
				       "runs %zu and %zu of the group have the same id, %s: give "
				       "each another one",
				       k + 1, i + 1, runs[i].id);
	return 0;
}

static int after_unknown(const struct after_asked *runs, size_t n, size_t i, const char *name,
			 struct ava_error *err)
{
	char names[NAMES_SHOWN + 8] = "";
	size_t len = 0;

	for (size_t k = 0; k < n && len < NAMES_SHOWN; k++)
		if (runs[k].id)
			len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s",
						len > 0 ? ", " : "", runs[k].id);
	if (len >= NAMES_SHOWN)
		memcpy(names + NAMES_SHOWN, "…", sizeof("…"));
	return err_set(err, AVA_EINVAL,
		       "run %zu of the group is after %.40s, which is no run's id: %s%s", i + 1,
		       after_is_name(name) ? name : "a text",
		       len > 0 ? "there are " : "none has one", names);
}

static int after_number(const struct after_asked *runs, size_t n, const char *name)
{
	for (size_t k = 0; k < n; k++)
		if (runs[k].id && strcmp(runs[k].id, name) == 0)
			return (int)k + 1;
	return 0;
}

/* Each run that `placed` lacks waits for another one of them: follows them until one comes
 * again. */
static int after_circle(const struct after_set *of, const struct after_asked *runs, size_t n,
			const struct after_set *placed, struct ava_error *err)
{
	int way[AFTER_MAX + 1], at = 1, steps = 0, first = 0;
	struct after_set seen = {0};
	char names[NAMES_SHOWN + 8] = "";
	size_t len = 0;

	while (after_has(placed, at))
		at++;
	while (!after_has(&seen, at)) {
		int next = 1;

		after_add(&seen, at);
		way[steps++] = at;
		while (next <= (int)n && (!after_has(&of[at - 1], next) || after_has(placed, next)))
			next++;
		at = next;
	}
	while (way[first] != at)
		first++;
	for (int k = first; k < steps && len < NAMES_SHOWN; k++)
		len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s",
					k > first ? " after " : "", runs[way[k] - 1].id);
	if (len >= NAMES_SHOWN)
		memcpy(names + NAMES_SHOWN, "…", sizeof("…"));
	return err_set(err, AVA_EINVAL,
		       "the runs of the group wait in a circle (%s after %s): none of them could "
		       "begin",
		       names, runs[at - 1].id);
}

int after_read(struct after_set *of, const struct after_asked *runs, size_t n,
	       struct ava_error *err)
{
	struct after_set placed = {0};
	int order[AFTER_MAX], rv = 0;
	size_t count;

	for (size_t i = 0; rv == 0 && i < n; i++) {
		of[i] = (struct after_set){0};
		rv = runs[i].id ? after_check_name(runs, i, err) : 0;
	}
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; rv == 0 && k < runs[i].nafter; k++) {
			int number = after_number(runs, n, runs[i].after[k]);

			if (number == 0)
				rv = after_unknown(runs, n, i, runs[i].after[k], err);
			else
				after_add(&of[i], number);
		}
	if (rv != 0)
		return rv;
	count = after_order(of, n, order);
	for (size_t i = 0; i < count; i++)
		after_add(&placed, order[i]);
	return count == n ? 0 : after_circle(of, runs, n, &placed, err);
}
