/* robots.txt, see robots.h.
 *
 * Happy path: the text is gone through for the groups that name our robot and, when there is
 * none, again for those of "*"; their rules are kept. A path is allowed unless the longest rule
 * that matches it says no; of two as long the friendlier one wins. Only memory can fail: text
 * that is no rule, or one rule too many, is skipped. */
#include "net/robots.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"

#define RULES_MAX   2000
#define PATTERN_MAX 500
#define STEPS_MAX   1000000 /* steps of one question; a file that needs more forbids the path */
#define DELAY_MAX_S 30

struct robots_rule {
	const char *pattern; /* begin in `text`, not terminated */
	size_t len;
	bool allow;
};

struct robots {
	char *text;
	struct robots_rule rules[RULES_MAX];
	size_t n;
	int delay_s;
};

struct robots_line {
	const char *key, *value;
	size_t key_len, value_len;
};

static void robots_trim(const char **s, size_t *len)
{
	while (*len && isspace((unsigned char)**s)) {
		(*s)++;
		(*len)--;
	}
	while (*len && isspace((unsigned char)(*s)[*len - 1]))
		(*len)--;
}

/* Read the next "key: value" from *at on; false: none. */
static bool robots_next_line(const char **at, const char *end, struct robots_line *l)
{
	while (*at < end) {
		const char *s = *at, *eol = s, *colon, *stop;

		while (eol < end && *eol != '\n' && *eol != '\r')
			eol++;
		*at = eol < end ? eol + 1 : end;
		stop = memchr(s, '#', (size_t)(eol - s));
		stop = stop ? stop : eol;
		colon = memchr(s, ':', (size_t)(stop - s));
		if (!colon)
			continue;
		*l = (struct robots_line){s, colon + 1, (size_t)(colon - s),
					  (size_t)(stop - colon - 1)};
		robots_trim(&l->key, &l->key_len);
		robots_trim(&l->value, &l->value_len);
		return true;
	}
	return false;
}

static bool key_is(const struct robots_line *l, const char *name)
{
	return l->key_len == strlen(name) && strncasecmp(l->key, name, l->key_len) == 0;
}

/* Does the line name the agent? "Ava/1.0" names ava. */
static bool robots_names(const struct robots_line *l, const char *agent)
{
	size_t n = 0;

	if (strcmp(agent, "*") == 0)
		return l->value_len == 1 && l->value[0] == '*';
	while (n < l->value_len &&
	       (isalpha((unsigned char)l->value[n]) || l->value[n] == '-' || l->value[n] == '_'))
		n++;
	return n == strlen(agent) && strncasecmp(l->value, agent, n) == 0;
}

/* Take the rules of all groups that name the agent; false: none does. */
static bool take_groups(struct robots *r, size_t len, const char *agent)
{
	const char *at = r->text;
	bool ours = false, in_names = false, found = false;
	struct robots_line l;

	while (robots_next_line(&at, r->text + len, &l)) {
		if (key_is(&l, "user-agent")) {
			ours = (in_names && ours) || robots_names(&l, agent);
			in_names = true;
			found = found || ours;
			continue;
		}
		in_names = false;
		if (!ours)
			continue;
		/* "Disallow:" without a path forbids nothing. */
		if ((key_is(&l, "allow") || key_is(&l, "disallow")) && r->n < RULES_MAX &&
		    l.value_len > 0 && l.value_len <= PATTERN_MAX)
			r->rules[r->n++] =
				(struct robots_rule){l.value, l.value_len, key_is(&l, "allow")};
		else if (key_is(&l, "crawl-delay") && l.value_len > 0 && l.value_len < 6)
			r->delay_s = (int)MIN(strtoul(l.value, NULL, 10), DELAY_MAX_S);
	}
	return found;
}

struct robots *robots_parse(const char *text, size_t len, const char *agent)
{
	struct robots *r = calloc(1, sizeof(*r));

	len = MIN(len, ROBOTS_MAX);
	if (r)
		r->text = calloc(1, len + 1);
	if (!r || !r->text) {
		robots_free(r);
		return NULL;
	}
	if (len)
		memcpy(r->text, text, len);
	if (!take_groups(r, len, agent))
		(void)take_groups(r, len, "*");
	return r;
}

void robots_free(struct robots *r)
{
	if (r)
		free(r->text);
	free(r);
}

/* Does `path` begin with the pattern, in which * is any bytes and a $ at its end the end? Only the
 * last star tried is moved: the match before it is settled. */
static bool matches(const struct robots_rule *rule, const char *path, size_t *steps)
{
	const char *p = rule->pattern, *end = p + rule->len, *star = NULL, *from = NULL;
	bool whole = end[-1] == '$';

	end -= whole;
	while (++*steps < STEPS_MAX) {
		if (p < end && *p == '*') {
			star = ++p;
			from = path;
		} else if (p == end && (!whole || !*path)) {
			return true;
		} else if (p < end && *path && *p == *path) {
			p++;
			path++;
		} else if (star && *from) {
			p = star;
			path = ++from;
		} else {
			return false;
		}
	}
	return true;
}

bool robots_allow(const struct robots *r, const char *path)
{
	const struct robots_rule *best = NULL;
	size_t steps = 0;

	if (strcmp(path, "/robots.txt") == 0)
		return true;
	for (size_t i = 0; i < r->n; i++) {
		const struct robots_rule *rule = &r->rules[i];

		if (best && (rule->len < best->len || (rule->len == best->len && !rule->allow)))
			continue;
		if (matches(rule, path, &steps))
			best = rule;
	}
	if (steps >= STEPS_MAX)
		return false;
	return !best || best->allow;
}

int robots_delay(const struct robots *r)
{
	return r->delay_s;
}
