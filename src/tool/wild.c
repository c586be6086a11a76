/* Wildcard matching; see wild.h.
 *
 * A pattern is matched from left to right; only a star needs to come back and
 * try a longer run, so run() and star() call each other once a star. That is
 * exponential for patterns made to be, and patterns come from files nobody
 * checked: every call has WILD_STEPS steps, and one that uses them up does not
 * match. Git's own rules are kept to the letter, odd ones included (a class
 * that is not closed matches nothing; ** counts only between slashes). */
#include "tool/wild.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"

#define WILD_STEPS 100000u

struct wild {
	const char *begin, *pe, *te; /* pattern, its end, the text's end */
	unsigned steps;              /* left */
	bool path;
};

static bool run(struct wild *w, const char *p, const char *t);

/* ---- classes */

static const struct {
	const char *name;
	int (*is)(int c);
} named_classes[] = {
	{"alnum", isalnum}, {"alpha", isalpha}, {"blank", isblank}, {"cntrl", iscntrl},
	{"digit", isdigit}, {"graph", isgraph}, {"lower", islower}, {"print", isprint},
	{"punct", ispunct}, {"space", isspace}, {"upper", isupper}, {"xdigit", isxdigit},
};

/* "[:name:]" at `p`, which points behind its "[:". 1, 0, or -1 for a name
 * that does not exist; -2 when there is no ":]" and it is no class at all. */
static int named_class(const char *p, const char *pe, unsigned char c, const char **end)
{
	const char *close = memchr(p, ']', (size_t)(pe - p));
	size_t len;

	if (close == NULL)
		return -1;
	if (close == p || close[-1] != ':')
		return -2;
	len = (size_t)(close - 1 - p);
	*end = close;
	for (size_t i = 0; i < ARRAY_LEN(named_classes); i++) {
		const char *name = named_classes[i].name;

		if (strlen(name) == len && memcmp(name, p, len) == 0)
			return named_classes[i].is(c) != 0;
	}
	return -1;
}

struct member {
	int c;    /* the character it is, 0 after a range or named class */
	bool hit; /* `c` or the range holds the text's character */
};

/* One member of a class at *p, which is left on its last byte. */
static bool class_member(const char **p, const char *pe, unsigned char c, struct member *m)
{
	const unsigned char prev = (unsigned char)m->c;
	const char *end = NULL;
	int named = -2;

	m->c = (unsigned char)**p;
	if (m->c == '[' && pe - *p > 1 && (*p)[1] == ':') {
		named = named_class(*p + 2, pe, c, &end);
		if (named == -1)
			return false;
	}
	if (named >= 0) {
		m->hit |= named == 1;
		m->c = 0;
		*p = end;
		return true;
	}
	if (m->c == '\\') {
		if (++*p == pe)
			return false;
		m->c = (unsigned char)**p;
	} else if (m->c == '-' && prev != 0 && pe - *p > 1 && (*p)[1] != ']') {
		++*p;
		if (**p == '\\' && ++*p == pe)
			return false;
		m->hit |= c >= prev && c <= (unsigned char)**p;
		m->c = 0;
		return true;
	}
	m->hit |= c == m->c;
	return true;
}

/* A class at *p (on its '['), which is moved behind its ']'. */
static bool class_match(const struct wild *w, const char **p, unsigned char c)
{
	struct member m = {.c = 0};
	bool negated = false;
	const char *at = *p + 1;

	if (at < w->pe && (*at == '!' || *at == '^')) {
		negated = true;
		at++;
	}
	do { /* a ']' that comes first is a member */
		if (at >= w->pe || !class_member(&at, w->pe, c, &m))
			return false;
		at++;
	} while (at < w->pe && *at != ']');
	if (at >= w->pe)
		return false;
	*p = at + 1;
	return m.hit != negated && !(w->path && c == '/');
}

/* ---- stars */

static bool star(struct wild *w, const char *p, const char *t)
{
	const char *first = p;
	bool deep = !w->path;

	while (p < w->pe && *p == '*')
		p++;
	if (w->path && p - first > 1 && (first == w->begin || first[-1] == '/') &&
	    (p == w->pe || *p == '/' || (*p == '\\' && w->pe - p > 1 && p[1] == '/'))) {
		/* "**" + "/" may also stand for no folder at all. */
		if (p < w->pe && *p == '/' && run(w, p + 1, t))
			return true;
		deep = true;
	}
	if (p == w->pe)
		return deep || memchr(t, '/', (size_t)(w->te - t)) == NULL;
	for (; t < w->te; t++) {
		if (run(w, p, t))
			return true;
		if (w->steps == 0 || (!deep && *t == '/'))
			return false;
	}
	return false;
}

static bool run(struct wild *w, const char *p, const char *t)
{
	for (; p < w->pe; t++) {
		if (w->steps == 0)
			return false;
		w->steps--;
		if (*p == '*')
			return star(w, p, t);
		if (t == w->te)
			return false;
		if (*p == '?') {
			if (w->path && *t == '/')
				return false;
			p++;
		} else if (*p == '[') {
			if (!class_match(w, &p, (unsigned char)*t))
				return false;
		} else {
			if (*p == '\\' && ++p == w->pe)
				return false;
			if (*p++ != *t)
				return false;
		}
	}
	return t == w->te;
}

bool wild_match(const char *pattern, size_t pattern_len, const char *text, size_t text_len,
		bool path)
{
	struct wild w = {
		.begin = pattern,
		.pe = pattern + pattern_len,
		.te = text + text_len,
		.steps = WILD_STEPS,
		.path = path,
	};

	return pattern_len <= WILD_PATTERN_MAX && run(&w, pattern, text);
}

size_t wild_plain(const char *pattern, size_t len)
{
	size_t i = 0;

	while (i < len && strchr("*?[\\", pattern[i]) == NULL)
		i++;
	return i;
}

/* ---- globs */

/* Put `text` with its first {a,b,...} replaced by each alternative in turn on
 * the list; what has more braces is taken apart when its turn comes. */
static int expand(struct wild_glob *g, char *text, struct ava_error *err)
{
	const char *open = strchr(text, '{'), *close = open != NULL ? strchr(open, '}') : NULL;
	const char *at, *comma;

	if (close == NULL || memchr(open, ',', (size_t)(close - open)) == NULL)
		return 0;
	for (at = open + 1; at <= close; at = comma + 1) {
		char *one = NULL;

		comma = at + strcspn(at, ",}");
		if (g->count == WILD_ALTERNATIVES)
			return err_set(err, AVA_EINVAL, "glob has more than %d alternatives",
				       WILD_ALTERNATIVES);
		if (asprintf(&one, "%.*s%.*s%s", (int)(open - text), text, (int)(comma - at), at,
			     close + 1) < 0)
			return err_set(err, AVA_ENOMEM, "out of memory");
		g->text[g->count++] = one;
	}
	return 1;
}

int wild_glob_init(struct wild_glob *g, const char *text, struct ava_error *err)
{
	int rv;

	*g = (struct wild_glob){.count = 0};
	if (strlen(text) > WILD_PATTERN_MAX)
		return err_set(err, AVA_EINVAL, "glob is longer than %d bytes", WILD_PATTERN_MAX);
	while (text[0] == '.' && text[1] == '/')
		text += 2;
	g->text[0] = strdup(text);
	if (g->text[0] == NULL)
		return err_set(err, AVA_ENOMEM, "out of memory");
	g->count = 1;
	for (unsigned i = 0; i < g->count;) {
		char *whole = g->text[i];

		rv = expand(g, whole, err);
		if (rv < 0)
			goto fail;
		if (rv == 0) {
			i++;
			continue;
		}
		free(whole);
		g->text[i] = g->text[--g->count]; /* order does not matter */
	}
	return 0;

fail:
	wild_glob_fini(g);
	return rv;
}

void wild_glob_fini(struct wild_glob *g)
{
	for (unsigned i = 0; i < g->count; i++)
		free(g->text[i]);
	g->count = 0;
}

static bool glob_one(const char *glob, const char *path, const char *name, size_t skip)
{
	size_t len = strlen(glob);

	if (strchr(glob, '/') == NULL)
		return wild_match(glob, len, name, strlen(name), false);
	if (glob[0] == '/') {
		glob++;
		len--;
	}
	return wild_match(glob, len, path, strlen(path), true) ||
	       (skip != 0 && wild_match(glob, len, path + skip, strlen(path + skip), true));
}

bool wild_glob_match(const struct wild_glob *g, const char *path, size_t skip)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash != NULL ? slash + 1 : path;

	for (unsigned i = 0; i < g->count; i++) {
		if (glob_one(g->text[i], path, name, skip))
			return true;
	}
	return false;
}
