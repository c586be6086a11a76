/* Rules of a review, one row each. A row names what is seen, not what it
 * means: whether it is a fault is for a reader to say. Rows without context
 * are judged on their line alone; allocations and lengths of functions on the
 * lines that follow, and only where those were read. Nothing can fail. */
#include "provider/offline_review.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"

#define LONG_FUNCTION 80
#define CHECK_WITHIN  8 /* lines after an allocation in which its check is expected */

const struct review_search review_searches[] = {
	{"\\b(gets|strcpy|strcat|sprintf|vsprintf|system|popen|alloca|tmpnam|mktemp)\\s*\\(",
	 "strcpy("},
	{"\\b(TODO|FIXME|XXX|HACK)\\b", "TODO"},
	{"=\\s*(\\([^)]*\\)\\s*)?(malloc|calloc|realloc|strdup|strndup)\\s*\\(", "malloc("},
	{"\\b(eval|exec)\\s*\\(|except\\s*:|\\.innerHTML|shell\\s*=\\s*True|pickle\\.loads?\\(|"
	 "yaml\\.load\\(|verify\\s*=\\s*False|rm -rf \"?\\$",
	 "eval("},
};
const unsigned review_nsearches = ARRAY_LEN(review_searches);

enum form { CALL, WORD, TEXT };

static const struct rule {
	const char *what;
	enum form form;
	int rank;
	const char *why;
} rules[] = {
	{"gets", CALL, 9, "gets() cannot be told how long the buffer is"},
	{"strcpy", CALL, 8, "strcpy() does not check the size of its target"},
	{"strcat", CALL, 8, "strcat() does not check the size of its target"},
	{"sprintf", CALL, 8, "sprintf() does not check the size of its target"},
	{"vsprintf", CALL, 8, "vsprintf() does not check the size of its target"},
	{"system", CALL, 7, "system() runs a shell: its text must not come from outside"},
	{"popen", CALL, 7, "popen() runs a shell: its text must not come from outside"},
	{"eval", CALL, 7, "eval() runs text as code"},
	{"exec", CALL, 5, "exec() runs text as code, or a program"},
	{"tmpnam", CALL, 7, "tmpnam() can be raced: another program may take the name first"},
	{"mktemp", CALL, 6, "mktemp() can be raced: another program may take the name first"},
	{"alloca", CALL, 5, "alloca() takes from the stack without a limit"},
	{"shell=True", TEXT, 7, "the command goes through a shell"},
	{"pickle.load", TEXT, 7, "pickle runs code from the data it loads"},
	{"yaml.load(", TEXT, 6, "yaml.load() can build any object"},
	{"verify=False", TEXT, 7, "certificates are not verified"},
	{".innerHTML", TEXT, 5, "innerHTML takes markup from its text"},
	{"rm -rf $", TEXT, 7, "a variable decides what is deleted"},
	{"rm -rf \"$", TEXT, 6, "a variable decides what is deleted"},
	{"except:", TEXT, 5, "a bare except hides every error"},
	{"FIXME", WORD, 6, "a FIXME left in the code"},
	{"XXX", WORD, 4, "an XXX note left in the code"},
	{"HACK", WORD, 4, "a HACK note left in the code"},
	{"TODO", WORD, 4, "a TODO left in the code"},
};

static const char *const allocators[] = {"malloc", "calloc", "realloc", "strdup", "strndup"};

static bool name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* `word` on its own; with `call` only before a parenthesis. */
static bool has_word(const char *s, size_t len, const char *word, bool call)
{
	size_t n = strlen(word);
	const char *p = s, *end = s + len, *after;

	while ((p = memmem(p, (size_t)(end - p), word, n)) != NULL) {
		bool alone = (p == s || (!name_char(p[-1]) && p[-1] != '.' && p[-1] != '"')) &&
			     (p + n == end || !name_char(p[n]));

		for (after = p + n; after < end && *after == ' ';)
			after++;
		if (alone && (!call || (after < end && *after == '(')))
			return true;
		p += n;
	}
	return false;
}

/* Anywhere but right after a quote: there it is a text, not code. */
static bool has_text(const char *s, size_t len, const char *what)
{
	const char *p = s, *end = s + len;

	for (; (p = memmem(p, (size_t)(end - p), what, strlen(what))) != NULL; p++)
		if (p == s || p[-1] != '"')
			return true;
	return false;
}

static bool allocates(const struct hit_line *l)
{
	if (memchr(l->text, '=', l->len) == NULL)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(allocators); i++)
		if (has_word(l->text, l->len, allocators[i], true))
			return true;
	return false;
}

static bool fits(const struct rule *r, const struct hit_line *l, bool comment)
{
	switch (r->form) {
	case CALL:
		return !comment && has_word(l->text, l->len, r->what, true);
	case WORD:
		return has_word(l->text, l->len, r->what, false);
	case TEXT:
		break;
	}
	return !comment && has_text(l->text, l->len, r->what);
}

static bool is_comment(const struct hit_line *l)
{
	const char *s = l->text;
	size_t n = l->len;

	while (n > 0 && isspace((unsigned char)*s))
		s++, n--;
	return hits_shape(s, n) == SHAPE_COMMENT || (n > 0 && *s == '#' && n > 1 && s[1] == ' ');
}

int review_line(const struct hit_line *l, const char **why)
{
	bool comment = is_comment(l);

	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		if (!fits(&rules[i], l, comment))
			continue;
		*why = rules[i].why;
		return rules[i].rank;
	}
	*why = "an allocation";
	return !comment && allocates(l) ? 3 : 0;
}

/* ---- with neighbours */

/* The name that is assigned on an allocating line: "p->data = malloc(n)". */
static struct slice target(const struct hit_line *l)
{
	const char *eq = memchr(l->text, '=', l->len), *p = eq, *start;

	while (p > l->text && isspace((unsigned char)p[-1]))
		p--;
	for (start = p; start > l->text && (name_char(start[-1]) || strchr(".->[]", start[-1]));)
		start--;
	return (struct slice){start, (size_t)(p - start)};
}

/* The line tests `name`, or hands it to somebody who can. */
static bool tests_name(const struct hit_line *l, struct slice name)
{
	static const char *const words[] = {"if",    "NULL", "nullptr", "assert", "return",
					    "while", "?",    "||",      "&&",     "goto"};

	if (memmem(l->text, l->len, name.s, name.len) == NULL)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (memmem(l->text, l->len, words[i], strlen(words[i])) != NULL)
			return true;
	return false;
}

static bool unchecked(const struct hits *h, unsigned at)
{
	const struct hit_line *l = &h->lines[at];
	struct slice name;
	unsigned seen = 0;

	if (!l->read || !allocates(l) || is_comment(l))
		return false;
	name = target(l);
	if (name.len == 0 || tests_name(l, name))
		return false;
	for (unsigned i = at + 1; i < h->nlines && seen < CHECK_WITHIN; i++, seen++) {
		if (h->lines[i].file != l->file || h->lines[i].line != l->line + (int)(i - at))
			return false; /* what follows was not read: cannot say */
		if (tests_name(&h->lines[i], name))
			return false;
	}
	return seen == CHECK_WITHIN;
}

/* Lines from a definition at the left edge to its closing brace there; 0 when
 * that was not read. */
static int function_length(const struct hits *h, unsigned at)
{
	const struct hit_line *l = &h->lines[at];

	if (!l->read || hits_shape(l->text, l->len) != SHAPE_DEF ||
	    memchr(l->text, '(', l->len) == NULL)
		return 0;
	for (unsigned i = at + 1; i < h->nlines; i++) {
		const struct hit_line *n = &h->lines[i];

		if (n->file != l->file || n->line != l->line + (int)(i - at))
			return 0;
		if (n->len > 0 && n->text[0] == '}')
			return n->line - l->line + 1;
		if (hits_shape(n->text, n->len) == SHAPE_DEF && n->text[0] != '\t' &&
		    n->text[0] != ' ')
			return 0; /* another language, or a declaration */
	}
	return 0;
}

void review_find(struct report *r, const struct hits *h)
{
	char text[160];
	const char *why;
	int rank, lines;

	for (unsigned i = 0; i < h->nlines; i++) {
		const struct hit_file *f = &h->files[h->lines[i].file];

		rank = review_line(&h->lines[i], &why);
		if (rank == 3)
			rank = unchecked(h, i) ? 7 : 0;
		if (rank == 7 && strcmp(why, "an allocation") == 0)
			why = "no check of this allocation within the next lines";
		if (f->test || f->doc)
			rank = rank > 1 ? rank / 2 : rank;
		if (rank > 0)
			report_add(r, h, i, rank, why);
		lines = function_length(h, i);
		if (lines > LONG_FUNCTION) {
			snprintf(text, sizeof(text), "this function is %d lines long", lines);
			report_add(r, h, i, 5, text);
		}
	}
}
