/* Ignore rules and wildcards; see ignore.h.
 *
 * Each file of rules becomes a set: a copy of its text with an array of rules that
 * point into it. Most rules are plain names or "*.o", which need no wildcard
 * matcher; those are told apart once, when the file is read. Nothing in an
 * ignore file is an error: a rule that makes no sense matches nothing.
 *
 * A pattern is matched from left to right; only a star needs to come back and
 * try a longer run, so wild_run() and wild_star() call each other once a star. That is
 * exponential for patterns made to be, and patterns come from files nobody
 * checked: every call has WILD_STEPS steps, and one that uses them up does not
 * match. Git's own rules are kept to the letter, odd ones included (a class
 * that is not closed matches nothing; ** counts only between slashes). */
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

struct wild {
	const char *begin, *pe, *te; /* pattern, its end, the text's end */
	unsigned steps;              /* left */
	bool path;
};

static bool wild_run(struct wild *w, const char *p, const char *t);

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

static bool wild_star(struct wild *w, const char *p, const char *t)
{
	const char *first = p;
	bool deep = !w->path;

	while (p < w->pe && *p == '*')
		p++;
	if (w->path && p - first > 1 && (first == w->begin || first[-1] == '/') &&
	    (p == w->pe || *p == '/' || (*p == '\\' && w->pe - p > 1 && p[1] == '/'))) {
		/* "**" + "/" may also stand for no folder at all. */
		if (p < w->pe && *p == '/' && wild_run(w, p + 1, t))
			return true;
		deep = true;
	}
	if (p == w->pe)
		return deep || memchr(t, '/', (size_t)(w->te - t)) == NULL;
	for (; t < w->te; t++) {
		if (wild_run(w, p, t))
			return true;
		if (w->steps == 0 || (!deep && *t == '/'))
			return false;
	}
	return false;
}

static bool wild_run(struct wild *w, const char *p, const char *t)
{
	for (; p < w->pe; t++) {
		if (w->steps == 0)
			return false;
		w->steps--;
		if (*p == '*')
			return wild_star(w, p, t);
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

	return pattern_len <= WILD_PATTERN_MAX && wild_run(&w, pattern, text);
}

static size_t wild_plain(const char *pattern, size_t len)
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
	return g->count == 0;
}

/* ---- sets of rules */

#define RULE_KEEP 1u /* '!': what it matches is not ignored */
#define RULE_DIR  2u /* ends in '/': folders only */
#define RULE_NAME 4u /* no '/': about the last part of the path */
#define RULE_ENDS 8u /* '*' and then nothing special */

struct rule {
	const char *text;
	unsigned short len, plain; /* plain: bytes before anything special */
	unsigned flags;
};

struct set {
	char *base, *text;
	size_t base_len;
	struct rule *rules;
	size_t count;
	enum ignore_rank rank;
};

struct ignore {
	struct set *sets;
	size_t count, cap;
	size_t rules; /* of all sets */
};

struct ignore *ignore_new(void)
{
	return calloc(1, sizeof(struct ignore));
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
static bool rule_parse(struct rule *r, const char *s, size_t len)
{
	len = strnlen(s, len);
	if (len != 0 && s[len - 1] == '\r')
		len--;
	if (len == 0 || s[0] == '#')
		return false;
	len = trimmed(s, len);
	*r = (struct rule){.flags = 0};
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

static bool match_name(const struct rule *r, const char *name, size_t len)
{
	if (r->plain == r->len)
		return r->len == len && memcmp(r->text, name, len) == 0;
	if (r->flags & RULE_ENDS)
		return (size_t)r->len - 1 <= len &&
		       memcmp(r->text + 1, name + len - (r->len - 1), r->len - 1) == 0;
	return wild_match(r->text, r->len, name, len, false);
}

/* `path` is relative to the folder of the rule's file. */
static bool match_path(const struct rule *r, const char *path, size_t len)
{
	size_t skip = r->text[0] == '/', plain;

	/* What follows the plain part is matched by itself, as git does it: so
	 * "a/b**" is a/b with any number of folders. */
	plain = r->plain > skip ? r->plain - skip : 0;
	if (plain > len || memcmp(r->text + skip, path, plain) != 0)
		return false;
	return wild_match(r->text + skip + plain, r->len - skip - plain, path + plain, len - plain,
			  true);
}

/* 1: ignored, 0: kept, -1: no rule of this set says anything. */
static int set_match(const struct set *s, const char *path, const char *name, bool is_dir)
{
	size_t len = strlen(path), skip = s->base_len != 0 ? s->base_len + 1 : 0;

	if (len <= skip ||
	    (skip != 0 && (memcmp(path, s->base, s->base_len) != 0 || path[s->base_len] != '/')))
		return -1;
	for (size_t i = s->count; i-- > 0;) {
		const struct rule *r = &s->rules[i];

		if ((r->flags & RULE_DIR) && !is_dir)
			continue;
		if (r->flags & RULE_NAME ? match_name(r, name, len - (size_t)(name - path))
					 : match_path(r, path + skip, len - skip))
			return !(r->flags & RULE_KEEP);
	}
	return -1;
}

static int rank_match(const struct ignore *ig, enum ignore_rank rank, const char *path,
		      const char *name, bool is_dir)
{
	int rv = -1;

	for (size_t i = ig->count; i-- > 0 && rv < 0;) {
		if (ig->sets[i].rank == rank)
			rv = set_match(&ig->sets[i], path, name, is_dir);
	}
	return rv;
}

bool ignore_match(const struct ignore *ig, const char *path, bool is_dir)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash != NULL ? slash + 1 : path;
	int rv = rank_match(ig, IGNORE_FOLDER, path, name, is_dir);

	if (rv < 0)
		rv = rank_match(ig, IGNORE_INFO, path, name, is_dir);
	return rv == 1;
}
