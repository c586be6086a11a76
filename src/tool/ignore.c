/* Ignore rules and wildcards; see ignore.h.
 *
 * Each file of rules becomes a set: a copy of its text with an array of rules that
 * point into it. Most rules are plain names or "*.o", which need no wildcard
 * matcher; those are told apart once, when the file is read. Nothing in an
 * ignore file is an error: a rule that makes no sense matches nothing.
 *
 * A pattern is matched from left to right. What does not fit goes back to the last star alone,
 * which takes a byte more, or, at a slash, to the last ** before it: what those before could take
 * as well, they can. So a match costs at the most its pattern times its text. Patterns come from
 * files nobody checked: a walk has so many steps for all of them, and the file of rules that used
 * most when they are used up counts as none from there on; a match of a glob has WILD_STEPS, then
 * it does not match. Git's own rules are kept to the letter, odd ones included (a class that is not
 * closed matches nothing; ** counts only between slashes). */
#include "tool/ignore.h"

#include <ava.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/util.h"

#define WILD_STEPS 100000u

/* Steps a walk begins with, and steps each entry adds: three times the need of the largest
 * templates of rules in use for a long path. */
#define IGNORE_STEPS       5000000u
#define IGNORE_STEPS_ENTRY 20000u

struct wild {
	const char *begin, *pe, *te; /* begin and end of the pattern; end of the text */
	bool path;
	/* Pattern behind the last star and the text position tried for it; the same of the last
	 * star that may take slashes. NULL: none. */
	const char *star, *star_at, *deep, *deep_at;
	bool none;       /* the deep star has been tried only as standing for no folder */
	uint64_t *steps; /* steps left */
};

/* ---- classes */

static const struct {
	const char *name;
	int (*is)(int c);
} named_classes[] = {
	{"alnum", isalnum}, {"alpha", isalpha}, {"blank", isblank}, {"cntrl", iscntrl},
	{"digit", isdigit}, {"graph", isgraph}, {"lower", islower}, {"print", isprint},
	{"punct", ispunct}, {"space", isspace}, {"upper", isupper}, {"xdigit", isxdigit},
};

/* Match "[:name:]" at `p`, which points behind its "[:". 1, 0, or -1 for an unknown name; -2: no
 * ":]" follows, so it is no class. */
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

struct ignore_member {
	int c;    /* the member's character, 0 after a range or named class */
	bool hit; /* `c` or the range holds the text's character */
};

/* Read one member of a class at *p, which then is its last byte. */
static bool class_member(const char **p, const char *pe, unsigned char c, struct ignore_member *m)
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

/* Match a class at *p (its '['); *p moves behind its ']'. */
static bool class_match(const struct wild *w, const char **p, unsigned char c)
{
	struct ignore_member m = {.c = 0};
	bool negated = false;
	size_t used;
	const char *at = *p + 1;

	if (at < w->pe && (*at == '!' || *at == '^')) {
		negated = true;
		at++;
	}
	do { /* a ']' that comes first is a member */
		used = *at == '[' ? (size_t)(w->pe - at) / 8 + 1 : 1; /* looks for its end */
		*w->steps -= MIN(*w->steps, used);
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

/* Remember the star *p, and go on behind it. true: the star ends the pattern and takes the rest. */
static bool wild_star(struct wild *w, const char **p, const char **t)
{
	const char *first = *p, *at = first;
	bool deep = !w->path;

	while (at < w->pe && *at == '*')
		at++;
	if (w->path && at - first > 1 && (first == w->begin || first[-1] == '/') &&
	    (at == w->pe || *at == '/' || (*at == '\\' && w->pe - at > 1 && at[1] == '/')))
		deep = true;
	*p = at;
	if (at == w->pe && (deep || memchr(*t, '/', (size_t)(w->te - *t)) == NULL))
		return true;
	if (!deep) {
		w->star = at;
		w->star_at = *t;
		return false;
	}
	w->star = NULL;
	w->deep = at;
	w->deep_at = *t;
	/* "**" + "/" may also stand for no folder at all. */
	w->none = w->path && at < w->pe && *at == '/';
	*p += w->none;
	return false;
}

/* Go back to the last star that can take more. */
static bool wild_back(struct wild *w, const char **p, const char **t)
{
	if (w->star != NULL && w->star_at < w->te && *w->star_at != '/') {
		*p = w->star;
		*t = ++w->star_at;
		return true;
	}
	w->star = NULL;
	if (w->deep == NULL || (!w->none && w->deep_at == w->te))
		return false;
	*t = w->none ? w->deep_at : ++w->deep_at;
	w->none = false;
	*p = w->deep;
	return true;
}

/* Match one byte of the text; *p moves behind its part of the pattern. */
static bool wild_one(const struct wild *w, const char **p, const char *t)
{
	if (**p == '?') {
		++*p;
		return !w->path || *t != '/';
	}
	if (**p == '[')
		return class_match(w, p, (unsigned char)*t);
	if (**p == '\\' && ++*p == w->pe)
		return false;
	return *(*p)++ == *t;
}

/* `steps`: how many are left; counted down. */
static bool wild_run(const char *pattern, size_t pattern_len, const char *text, size_t text_len,
		     bool path, uint64_t *steps)
{
	struct wild w = {.begin = pattern,
			 .pe = pattern + pattern_len,
			 .te = text + text_len,
			 .path = path,
			 .steps = steps};
	const char *p = pattern, *t = text;

	if (pattern_len > WILD_PATTERN_MAX)
		return false;
	while (p < w.pe || t < w.te) {
		if (*steps == 0)
			return false;
		--*steps;
		if (p < w.pe && *p == '*') {
			if (wild_star(&w, &p, &t))
				return true;
		} else if (p < w.pe && t < w.te && wild_one(&w, &p, t)) {
			t++;
		} else if (!wild_back(&w, &p, &t)) {
			return false;
		}
	}
	return true;
}

bool wild_match(const char *pattern, size_t pattern_len, const char *text, size_t text_len,
		bool path)
{
	uint64_t steps = WILD_STEPS;

	return wild_run(pattern, pattern_len, text, text_len, path, &steps);
}

static size_t wild_plain(const char *pattern, size_t len)
{
	size_t i = 0;

	while (i < len && strchr("*?[\\", pattern[i]) == NULL)
		i++;
	return i;
}

/* ---- globs */

/* Append copies of `text` to the list, one with each alternative in place of its first {a,b,...}; a
 * copy with more braces is expanded when its turn comes. */
static int ignore_expand(struct wild_glob *g, char *text, struct ava_error *err)
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

		rv = ignore_expand(g, whole, err);
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
	return g->count == 0;
}

/* ---- sets of rules */

#define RULE_KEEP 1u /* the rule begins with '!': a matching path is kept */
#define RULE_DIR  2u /* the rule ends in '/': it is about folders only */
#define RULE_NAME 4u /* the rule has no '/': it is about a path's last part */
#define RULE_ENDS 8u /* the rule is '*' and then nothing special */

struct ignore_rule {
	const char *text;
	unsigned short len, plain; /* plain: bytes before anything special */
	unsigned flags;
};

struct set {
	char *base, *text;
	size_t base_len;
	struct ignore_rule *rules;
	size_t count;
	uint64_t used; /* steps that the set's patterns took */
	enum ignore_rank rank;
};

struct ignore {
	struct set *sets;
	size_t count, cap;
	size_t rules;    /* number of rules in all sets */
	uint64_t steps;  /* steps left */
	size_t given_up; /* files whose rules do not count */
};

struct ignore *ignore_new(void)
{
	struct ignore *ig = calloc(1, sizeof(*ig));

	if (ig != NULL)
		ig->steps = IGNORE_STEPS;
	return ig;
}

size_t ignore_mark(const struct ignore *ig)
{
	return ig->count;
}

static void set_fini(struct set *s)
{
	free(s->base);
	free(s->text);
	free(s->rules);
	*s = (struct set){.base = NULL};
}

void ignore_pop(struct ignore *ig, size_t mark)
{
	while (ig->count > mark) {
		struct set *s = &ig->sets[--ig->count];

		ig->rules -= s->count;
		set_fini(s);
	}
}

void ignore_free(struct ignore *ig)
{
	if (ig == NULL)
		return;
	ignore_pop(ig, 0);
	free(ig->sets);
	free(ig);
}

/* ---- reading */

/* Length of a line without spaces at its end, unless a \ is before them. */
static size_t trimmed(const char *s, size_t len)
{
	size_t keep = 0;

	for (size_t i = 0; i < len; i++) {
		if (s[i] == '\\') {
			if (++i == len)
				return len;
			keep = i + 1;
		} else if (s[i] != ' ') {
			keep = i + 1;
		}
	}
	return keep;
}

/* One line as a rule; false: a comment, empty, or longer than a rule may be. */
static bool rule_parse(struct ignore_rule *r, const char *s, size_t len)
{
	len = strnlen(s, len);
	if (len != 0 && s[len - 1] == '\r')
		len--;
	if (len == 0 || s[0] == '#')
		return false;
	len = trimmed(s, len);
	*r = (struct ignore_rule){.flags = 0};
	if (len != 0 && s[0] == '!') {
		r->flags |= RULE_KEEP;
		s++;
		len--;
	}
	if (len != 0 && s[len - 1] == '/') {
		r->flags |= RULE_DIR;
		len--;
	}
	if (len == 0 || len > WILD_PATTERN_MAX)
		return false;
	if (memchr(s, '/', len) == NULL)
		r->flags |= RULE_NAME;
	if (s[0] == '*' && wild_plain(s + 1, len - 1) == len - 1)
		r->flags |= RULE_ENDS;
	r->text = s;
	r->len = (unsigned short)len;
	r->plain = (unsigned short)wild_plain(s, len);
	return true;
}

static int set_parse(struct set *s, size_t len, size_t room)
{
	const char *at = s->text, *end = at + len;
	size_t cap = 0;

	if (len >= 3 && memcmp(at, "\xef\xbb\xbf", 3) == 0)
		at += 3;
	while (at < end && s->count < room) {
		const char *nl = memchr(at, '\n', (size_t)(end - at));
		const char *stop = nl != NULL ? nl : end;

		if (!ARRAY_ROOM(s->rules, cap, s->count + 1))
			return AVA_ENOMEM;
		if (rule_parse(&s->rules[s->count], at, (size_t)(stop - at)))
			s->count++;
		at = stop + 1;
	}
	return 0;
}

int ignore_push(struct ignore *ig, enum ignore_rank rank, const char *base, const char *text,
		size_t len)
{
	struct set s = {.rank = rank, .base_len = strlen(base)};
	int rv = AVA_ENOMEM;

	if (!ARRAY_ROOM(ig->sets, ig->cap, ig->count + 1))
		return AVA_ENOMEM;
	if (len > IGNORE_TEXT_MAX)
		len = IGNORE_TEXT_MAX;
	s.base = strdup(base);
	s.text = malloc(len + 1);
	if (s.base == NULL || s.text == NULL)
		goto fail;
	memcpy(s.text, text, len);
	s.text[len] = '\0';
	rv = set_parse(&s, len, IGNORE_RULES_MAX - ig->rules);
	if (rv != 0)
		goto fail;
	ig->rules += s.count;
	ig->sets[ig->count++] = s;
	return 0;

fail:
	set_fini(&s);
	return rv;
}

/* ---- matching */

static bool match_name(const struct ignore_rule *r, const char *name, size_t len, uint64_t *steps)
{
	if (r->plain == r->len)
		return r->len == len && memcmp(r->text, name, len) == 0;
	if (r->flags & RULE_ENDS)
		return (size_t)r->len - 1 <= len &&
		       memcmp(r->text + 1, name + len - (r->len - 1), r->len - 1) == 0;
	return wild_run(r->text, r->len, name, len, false, steps);
}

/* `path` is relative to the folder of the rule's file. */
static bool match_path(const struct ignore_rule *r, const char *path, size_t len, uint64_t *steps)
{
	size_t skip = r->text[0] == '/', plain;

	/* The part behind the plain prefix is matched alone, as git does: "a/b**" is a/b with any
	 * number of folders. */
	plain = r->plain > skip ? r->plain - skip : 0;
	if (plain > len || memcmp(r->text + skip, path, plain) != 0)
		return false;
	return wild_run(r->text + skip + plain, r->len - skip - plain, path + plain, len - plain,
			true, steps);
}

/* 1: ignored, 0: kept, -1: no rule of this set matches. */
static int set_match(const struct set *s, const char *path, const char *name, bool is_dir,
		     uint64_t *steps)
{
	size_t len = strlen(path), skip = s->base_len != 0 ? s->base_len + 1 : 0;

	if (len <= skip ||
	    (skip != 0 && (memcmp(path, s->base, s->base_len) != 0 || path[s->base_len] != '/')))
		return -1;
	for (size_t i = s->count; i-- > 0;) {
		const struct ignore_rule *r = &s->rules[i];

		if ((r->flags & RULE_DIR) && !is_dir)
			continue;
		if (r->flags & RULE_NAME ? match_name(r, name, len - (size_t)(name - path), steps)
					 : match_path(r, path + skip, len - skip, steps))
			return !(r->flags & RULE_KEEP);
	}
	return -1;
}

static int rank_match(struct ignore *ig, enum ignore_rank rank, const char *path, const char *name,
		      bool is_dir)
{
	struct set *worst;
	int rv = -1;

	for (size_t i = ig->count; i-- > 0 && rv < 0;) {
		struct set *s = &ig->sets[i];
		uint64_t before = ig->steps;

		if (s->rank != rank)
			continue;
		rv = set_match(s, path, name, is_dir, &ig->steps);
		s->used += before - ig->steps;
		if (ig->steps > 0)
			continue;
		/* Drop the rules of the file that used most steps. */
		worst = &ig->sets[0];
		for (size_t k = 1; k < ig->count; k++)
			if (ig->sets[k].used > worst->used)
				worst = &ig->sets[k];
		ig->steps = worst->used + 1;
		ig->rules -= worst->count;
		ig->given_up++;
		worst->count = 0;
		worst->used = 0;
		i++; /* again: this set may be the dropped one */
		rv = -1;
	}
	return rv;
}

bool ignore_match(struct ignore *ig, const char *path, bool is_dir)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash != NULL ? slash + 1 : path;
	int rv;

	ig->steps += IGNORE_STEPS_ENTRY;
	rv = rank_match(ig, IGNORE_FOLDER, path, name, is_dir);
	if (rv < 0)
		rv = rank_match(ig, IGNORE_INFO, path, name, is_dir);
	return rv == 1;
}

size_t ignore_given_up(const struct ignore *ig)
{
	return ig->given_up;
}
