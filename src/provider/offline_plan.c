/* The plan, read off the calls that were made so far:
 *
 *   none yet               search for the terms of the task, all in one turn
 *   searched, nothing fits search once more, wider
 *   searched               read around the best lines, all in one turn
 *   read, or told to stop  submit what was found
 *
 * So a run takes two to four calls, whatever the tools return: a result can
 * change which lines are read and quoted, not what is done. A review searches
 * by rules and lets suspicious lines decide. Findings are lines that stand in a
 * tool result, quoted as they stand there; the confidence grows with the share
 * of the terms that were found and never passes 0.9, since words are matched,
 * not understood. A tool that is not offered is not used; a failed call is
 * skipped. Only memory can fail. */
#include "provider/offline_plan.h"

#include <ava.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "provider/offline_draft.h"
#include "provider/offline_look.h"

#define SEARCHES_MAX   4u /* in one turn */
#define READ_FILES_MAX 5u
#define BEFORE         12 /* lines read before and after a hit */
#define AFTER          50
#define NAMED_LINES    400 /* of a file that the task names */
#define RESULTS        100
#define PATTERN_MAX    1000 /* bytes; search_codebase takes no more */
#define ARGS_MAX       (128u << 10)
#define FINDINGS_MAX   24u
#define QUOTE_MAX      200u
#define SENTENCE_MAX   240u
#define COMMENT_LINES  40u
#define SUMMARY_MAX    (16u << 10)
#define LONG_FUNCTION  80
#define CHECK_WITHIN   8 /* lines after an allocation in which its check is expected */
#define RANK_ALLOC     3 /* an allocation, before its neighbours were looked at */

struct finding {
	unsigned line; /* index of look.lines */
	int rank;      /* higher is better */
	char why[160];
};

struct plan {
	struct offline_body *b;
	struct draft *draft;
	struct look look;
	const struct offline_tool *search; /* NULL: none offered */
	const char *search_name;
	unsigned ncalls;                       /* of this turn */
	struct finding findings[FINDINGS_MAX]; /* best first */
	unsigned nfindings;
	bool left_out; /* more of them did not fit */
};

/* ---- calls */

static void plan_call(struct plan *p, const char *tool, struct buf *args)
{
	if (buf_check(args) == 0)
		draft_call(p->draft, NULL, tool, args->data, args->len, NULL);
	else
		p->draft->rv = p->draft->rv != 0 ? p->draft->rv : buf_check(args);
	p->ncalls++;
	buf_fini(args);
}

struct query {
	const char *pattern;
	bool regex, ignore_case;
	const char *scope; /* "": everywhere */
	const char *glob;  /* "": all files */
};

static void plan_search(struct plan *p, struct query q)
{
	struct buf args;
	struct jw w;

	if (p->ncalls >= SEARCHES_MAX || (q.regex && !offline_tool_takes(p->search, "regex")))
		return;
	buf_init(&args, ARGS_MAX);
	jw_init(&w, &args);
	jw_object(&w, NULL);
	jw_str(&w, "pattern", q.pattern);
	if (q.regex)
		jw_bool(&w, "regex", true);
	if (q.ignore_case && offline_tool_takes(p->search, "ignore_case"))
		jw_bool(&w, "ignore_case", true);
	if (q.scope[0] != 0 && offline_tool_takes(p->search, "path"))
		jw_str(&w, "path", q.scope);
	if (q.glob[0] != 0 && offline_tool_takes(p->search, "glob"))
		jw_str(&w, "glob", q.glob);
	if (p->search == &p->b->tools[OFFLINE_SEARCH] &&
	    offline_tool_takes(p->search, "max_results"))
		jw_int(&w, "max_results", RESULTS);
	jw_end(&w);
	plan_call(p, p->search_name, &args);
}

static void plan_read(struct plan *p, struct slice path, int first, int last)
{
	const struct offline_tool *t = &p->b->tools[OFFLINE_READ];
	struct buf args;
	struct jw w;

	if (!t->offered)
		return;
	buf_init(&args, ARGS_MAX);
	jw_init(&w, &args);
	jw_object(&w, NULL);
	jw_strn(&w, "path", path.s, path.len);
	if (offline_tool_takes(t, "first_line") && first > 1)
		jw_int(&w, "first_line", first);
	if (offline_tool_takes(t, "last_line"))
		jw_int(&w, "last_line", last);
	jw_end(&w);
	plan_call(p, "read_file", &args);
}

/* ---- what a review looks for */

/* Searches of a review; `plain` where the tool knows no regular expressions. */
static const struct {
	const char *regex, *plain;
} review_searches[] = {
	{"\\b(gets|strcpy|strcat|sprintf|vsprintf|system|popen|alloca|tmpnam|mktemp)\\s*\\(",
	 "strcpy("},
	{"\\b(TODO|FIXME|XXX|HACK)\\b", "TODO"},
	{"=\\s*(\\([^)]*\\)\\s*)?(malloc|calloc|realloc|strdup|strndup)\\s*\\(", "malloc("},
	{"\\b(eval|exec)\\s*\\(|except\\s*:|\\.innerHTML|shell\\s*=\\s*True|pickle\\.loads?\\(|"
	 "yaml\\.load\\(|verify\\s*=\\s*False",
	 "eval("},
};

/* A row names what is seen, not what it means: whether it is a fault is for a
 * reader to say. */
static const struct rule {
	const char *what;
	char after; /* that must follow; 0: no letter may */
	bool note;  /* counts in comments as well */
	int rank;
	const char *why;
} review_rules[] = {
	{"gets", '(', false, 9, "gets() cannot be told how long the buffer is"},
	{"strcpy", '(', false, 8, "strcpy() does not check the size of its target"},
	{"strcat", '(', false, 8, "strcat() does not check the size of its target"},
	{"sprintf", '(', false, 8, "sprintf() does not check the size of its target"},
	{"vsprintf", '(', false, 8, "vsprintf() does not check the size of its target"},
	{"system", '(', false, 7, "system() runs a shell: its text must not come from outside"},
	{"popen", '(', false, 7, "popen() runs a shell: its text must not come from outside"},
	{"eval", '(', false, 7, "eval() runs text as code"},
	{"exec", '(', false, 5, "exec() runs text as code, or a program"},
	{"tmpnam", '(', false, 7, "tmpnam() can be raced: another program may take the name first"},
	{"mktemp", '(', false, 6, "mktemp() can be raced: another program may take the name first"},
	{"alloca", '(', false, 5, "alloca() takes from the stack without a limit"},
	{"shell=True", 0, false, 7, "the command goes through a shell"},
	{"pickle.loads", '(', false, 7, "pickle runs code from the data it loads"},
	{"pickle.load", '(', false, 7, "pickle runs code from the data it loads"},
	{"yaml.load", '(', false, 6, "yaml.load() can build any object"},
	{"verify=False", 0, false, 7, "certificates are not verified"},
	{"innerHTML", 0, false, 5, "innerHTML takes markup from its text"},
	{"except", ':', false, 5, "a bare except hides every error"},
	{"FIXME", 0, true, 6, "a FIXME left in the code"},
	{"XXX", 0, true, 4, "an XXX note left in the code"},
	{"HACK", 0, true, 4, "a HACK note left in the code"},
	{"TODO", 0, true, 4, "a TODO left in the code"},
	{"malloc", '(', false, RANK_ALLOC, "an allocation"},
	{"calloc", '(', false, RANK_ALLOC, "an allocation"},
	{"realloc", '(', false, RANK_ALLOC, "an allocation"},
	{"strdup", '(', false, RANK_ALLOC, "an allocation"},
	{"strndup", '(', false, RANK_ALLOC, "an allocation"},
};

static bool plan_name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* The rule's words stand on their own, not as a text in quotes. */
static bool review_fits(const struct rule *r, const struct look_line *l)
{
	const char *s = l->text, *end = s + l->len, *after;
	size_t n = strlen(r->what);

	for (const char *p = s; (p = memmem(p, (size_t)(end - p), r->what, n)) != NULL; p = after) {
		after = p + n;
		if (p > s &&
		    (plan_name_char(p[-1]) || p[-1] == '"' || (p[-1] == '.' && r->after == '(')))
			continue;
		if (after < end && plan_name_char(*after))
			continue;
		while (after < end && *after == ' ')
			after++;
		if (r->after == 0 || (after < end && *after == r->after))
			return true;
	}
	return false;
}

/* The rule a line meets; NULL: none. */
static const struct rule *review_line(const struct look_line *l)
{
	bool comment = look_shape(l->text, l->len) == SHAPE_COMMENT;

	for (size_t i = 0; i < ARRAY_LEN(review_rules); i++)
		if ((!comment || review_rules[i].note) && review_fits(&review_rules[i], l))
			return &review_rules[i];
	return NULL;
}

/* The line tests `name`, or hands it to somebody who can. */
static bool review_tests(const struct look_line *l, struct slice name)
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

/* An allocation whose target ("p->data = malloc(n)") no line behind it tests;
 * false where those lines were not read. */
static bool review_unchecked(const struct look *k, unsigned at)
{
	const struct look_line *l = &k->lines[at];
	const char *end = memchr(l->text, '=', l->len), *start;
	struct slice name;

	if (end == NULL || !l->read)
		return false;
	while (end > l->text && isspace((unsigned char)end[-1]))
		end--;
	for (start = end;
	     start > l->text && (plan_name_char(start[-1]) || strchr(".->[]", start[-1]));)
		start--;
	name = (struct slice){start, (size_t)(end - start)};
	if (name.len == 0 || review_tests(l, name))
		return false;
	for (unsigned i = at + 1; i <= at + CHECK_WITHIN; i++)
		if (!look_follows(k, i) || review_tests(&k->lines[i], name))
			return false;
	return true;
}

/* Lines from a definition at the left edge to its closing brace there; 0 when
 * that was not read. */
static int review_length(const struct look *k, unsigned at)
{
	const struct look_line *l = &k->lines[at];

	if (l->shape != SHAPE_DEF || memchr(l->text, '(', l->len) == NULL)
		return 0;
	for (unsigned i = at + 1; look_follows(k, i); i++) {
		const struct look_line *n = &k->lines[i];

		if (n->len > 0 && n->text[0] == '}')
			return n->line - l->line + 1;
		if (n->shape == SHAPE_DEF && n->text[0] != '\t' && n->text[0] != ' ')
			return 0; /* another language, or a declaration */
	}
	return 0;
}

/* In a review the suspicious lines decide what is read. */
static void review_score(struct look *k)
{
	for (unsigned i = 0; i < k->nfiles; i++)
		k->files[i].score = 0, k->files[i].best = -1;
	for (unsigned i = 0; i < k->nlines; i++) {
		struct look_file *f = &k->files[k->lines[i].file];
		const struct rule *r = review_line(&k->lines[i]);

		k->lines[i].score = r != NULL ? r->rank : 0;
		if (r == NULL)
			continue;
		f->score += f->test ? 1 : r->rank;
		if (f->best < 0 || r->rank > k->lines[f->best].score)
			f->best = (int)i;
	}
}

/* ---- searching */

/* `s` with everything that means something in a regular expression escaped. */
static void plan_literal(struct buf *out, const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (strchr("\\^$.[]|()?*+{}", s[i]) != NULL)
			buf_addc(out, '\\');
		buf_addc(out, s[i]);
	}
}

/* Names of programs and quotes first; then pairs of words as one name, with an
 * ending in between ("journal_checkpoint", "failed fsync"); then single words,
 * spread over the searches that are left, so that each is looked for. */
static void plan_search_terms(struct plan *p)
{
	const struct look *k = &p->look;
	bool regex = offline_tool_takes(p->search, "regex");
	struct buf any;
	unsigned room;

	for (unsigned i = 0; i < k->nterms; i++) {
		const struct term *t = &k->terms[i];

		if (t->kind == TERM_FILE) /* its lines, wherever it lies */
			plan_search(p, (struct query){"[[:alnum:]]", true, false, "", t->text});
		else if (t->kind != TERM_WORD)
			plan_search(p, (struct query){t->text, false, t->kind == TERM_QUOTED,
						      k->scope, ""});
	}
	buf_init(&any, PATTERN_MAX);
	for (unsigned i = 0; i < k->npairs; i++) {
		const struct term *a = &k->terms[k->pairs[i].a], *b = &k->terms[k->pairs[i].b];

		buf_adds(&any, i > 0 ? "|" : "");
		plan_literal(&any, a->low, a->len);
		buf_adds(&any, ".{0,5}");
		plan_literal(&any, b->low, b->len);
	}
	if (k->npairs > 0 && buf_check(&any) == 0)
		plan_search(p, (struct query){any.data, true, true, k->scope, ""});
	room = p->ncalls < SEARCHES_MAX ? SEARCHES_MAX - p->ncalls : 0;
	for (unsigned n = 0; n < room; n++) {
		unsigned words = 0, seen = 0;

		buf_reset(&any);
		for (unsigned i = 0; i < k->nterms; i++) {
			const struct term *t = &k->terms[i];

			if (t->kind != TERM_WORD || seen++ % room != n || (words > 0 && !regex))
				continue;
			buf_adds(&any, words++ > 0 ? "|" : "");
			if (regex)
				plan_literal(&any, t->low, t->len);
			else
				buf_add(&any, t->low, t->len);
		}
		if (words > 0 && buf_check(&any) == 0)
			plan_search(p, (struct query){any.data, words > 1, true, k->scope, ""});
	}
	buf_fini(&any);
}

static void plan_search_rules(struct plan *p)
{
	const struct look *k = &p->look;
	struct query q = {NULL, offline_tool_takes(p->search, "regex"), false, k->scope, ""};

	for (unsigned i = 0; i < k->nterms && k->scope[0] == 0; i++)
		if (k->terms[i].kind == TERM_FILE && q.glob[0] == 0)
			q.glob = k->terms[i].text;
	for (size_t i = 0; i < ARRAY_LEN(review_searches); i++) {
		q.pattern = q.regex ? review_searches[i].regex : review_searches[i].plain;
		plan_search(p, q);
	}
}

/* Wider: everywhere, the begins of words, and the words of which names are
 * made ("journal_checkpoint"). */
static void plan_search_wider(struct plan *p)
{
	const struct look *k = &p->look;
	struct buf any;

	buf_init(&any, PATTERN_MAX);
	for (unsigned i = 0; i < k->nterms; i++) {
		for (const char *s = k->terms[i].low; *s != 0; s += *s != 0) {
			size_t n = strcspn(s, "_.:>-/ ");

			if (n >= 3) {
				buf_adds(&any, any.len > 0 ? "|" : "");
				plan_literal(&any, s, utf8_prefix(s, n, 6));
			}
			s += n;
		}
	}
	if (any.len > 0 && buf_check(&any) == 0)
		plan_search(p, (struct query){any.data, true, true, "", ""});
	for (unsigned i = 0; i < k->nterms && k->scope[0] != 0 && p->ncalls < 3; i++)
		plan_search(p, (struct query){k->terms[i].low, false, true, "", ""});
	buf_fini(&any);
}

static void plan_say_searching(struct plan *p, const char *lead)
{
	char names[200], text[300];

	look_names(&p->look, ~0u, names, sizeof(names));
	snprintf(text, sizeof(text), "%s%s%s.", lead, names[0] != 0 ? " for " : "", names);
	draft_text(p->draft, text, strlen(text));
}

static void plan_first_turn(struct plan *p)
{
	const struct look *k = &p->look;
	bool review = k->kind == TASK_REVIEW;

	if (p->search != NULL && review)
		plan_search_rules(p);
	else if (p->search != NULL)
		plan_search_terms(p);
	if (k->scope[0] != 0 && k->file_mask != 0)
		plan_read(p, (struct slice){k->scope, strlen(k->scope)}, 1, NAMED_LINES);
	for (unsigned i = 0; i < k->nterms && p->search == NULL && k->scope[0] == 0; i++)
		if (k->terms[i].kind == TERM_FILE)
			plan_read(p, (struct slice){k->terms[i].text, k->terms[i].len}, 1,
				  NAMED_LINES);
	if (p->ncalls > 0)
		plan_say_searching(p, review ? "Searching by the rules of a review" : "Searching");
}

/* Around the best lines of the files that score well, the best ones first. */
static void plan_read_turn(struct plan *p)
{
	struct look *k = &p->look;
	bool taken[LOOK_FILES] = {false};
	int least = 1;

	while (p->ncalls < READ_FILES_MAX && p->b->tools[OFFLINE_READ].offered) {
		int best = -1, line;

		for (unsigned i = 0; i < k->nfiles; i++) {
			const struct look_file *f = &k->files[i];

			if (!taken[i] && !f->was_read && f->best >= 0 && f->score >= least &&
			    (best < 0 || f->score > k->files[best].score))
				best = (int)i;
		}
		if (best < 0)
			break;
		taken[best] = true;
		if (p->ncalls == 0)
			least = MAX(k->files[best].score / 3, 1);
		line = k->lines[k->files[best].best].line;
		plan_read(p, k->files[best].path, MAX(line - BEFORE, 1), line + AFTER);
	}
	if (p->ncalls > 0)
		draft_text(p->draft, "Reading the best places.", 24);
}

/* ---- findings */

/* The quote of a line: without the space around it, at most QUOTE_MAX bytes,
 * whole characters. */
static struct slice plan_quote(const struct look_line *l)
{
	struct slice q = {l->text, l->len};

	while (q.len > 0 && isspace((unsigned char)*q.s))
		q.s++, q.len--;
	if (q.len >= 3 && memcmp(q.s, "…", 3) == 0)
		q.s += 3, q.len -= 3;
	if (q.len > QUOTE_MAX)
		for (q.len = QUOTE_MAX; q.len > 0 && ((unsigned char)q.s[q.len] & 0xc0) == 0x80;)
			q.len--;
	while (q.len > 0 && isspace((unsigned char)q.s[q.len - 1]))
		q.len--;
	return q;
}

static bool plan_worth_quoting(const struct look_line *l)
{
	struct slice q = plan_quote(l);
	size_t letters = 0;

	for (size_t i = 0; i < q.len; i++)
		letters += isalnum((unsigned char)q.s[i]) || (unsigned char)q.s[i] >= 0x80;
	return letters >= 3;
}

/* Chosen lines of the line's file so far; FINDINGS_MAX when it is one of them. */
static unsigned plan_chosen(const struct plan *p, const struct look_line *l)
{
	unsigned n = 0;

	for (unsigned i = 0; i < p->nfindings; i++) {
		const struct look_line *f = &p->look.lines[p->findings[i].line];

		if (f->file == l->file && f->line == l->line)
			return FINDINGS_MAX;
		n += f->file == l->file;
	}
	return n;
}

/* Keeps the list sorted and bounded. */
static void plan_add_finding(struct plan *p, unsigned line, int rank, const char *why)
{
	struct finding *f = p->findings;
	unsigned at = p->nfindings;

	while (at > 0 && f[at - 1].rank < rank)
		at--;
	p->left_out = p->left_out || p->nfindings == FINDINGS_MAX;
	if (at == FINDINGS_MAX)
		return;
	p->nfindings = MIN(p->nfindings + 1, FINDINGS_MAX);
	memmove(&f[at + 1], &f[at], (p->nfindings - at - 1) * sizeof(*f));
	f[at] = (struct finding){.line = line, .rank = rank};
	snprintf(f[at].why, sizeof(f[at].why), "%s", why);
}

static void plan_find_suspicious(struct plan *p)
{
	const struct look *k = &p->look;
	char text[160];

	for (unsigned i = 0; i < k->nlines; i++) {
		const struct look_file *f = &k->files[k->lines[i].file];
		const struct rule *r = review_line(&k->lines[i]);
		const char *why = r != NULL ? r->why : "";
		int rank = r != NULL ? r->rank : 0, lines = review_length(k, i);

		if (rank == RANK_ALLOC) {
			rank = review_unchecked(k, i) ? 7 : 0;
			why = "no check of this allocation within the next lines";
		}
		if (rank == 0 && lines > LONG_FUNCTION) {
			snprintf(text, sizeof(text), "this function is %d lines long", lines);
			why = text;
			rank = 5;
		}
		if (rank > 0 && plan_chosen(p, &k->lines[i]) < FINDINGS_MAX)
			plan_add_finding(p, i, f->test || f->doc ? MAX(rank / 2, 1) : rank, why);
	}
}

/* The best lines, of each file a few; of two with the same score the one whose
 * neighbours are known. One pass a finding. */
static void plan_find(struct plan *p)
{
	const struct look *k = &p->look;
	unsigned max = k->kind == TASK_LIST ? FINDINGS_MAX : k->kind == TASK_HOW ? 8 : 6;
	unsigned per_file = k->kind == TASK_LIST || k->file_mask != 0 ? FINDINGS_MAX : 3;
	char names[120], why[160];
	int least = 1;

	while (!p->left_out) {
		const struct look_line *best = NULL;
		struct slice name;

		for (unsigned i = 0; i < k->nlines; i++) {
			const struct look_line *l = &k->lines[i];

			if (l->score >= least &&
			    (best == NULL || l->score > best->score ||
			     (l->score == best->score && l->read && !best->read)) &&
			    plan_worth_quoting(l) && plan_chosen(p, l) < per_file)
				best = l;
		}
		if (best == NULL)
			return;
		p->left_out = p->nfindings == max;
		if (p->left_out)
			return;
		if (p->nfindings == 0)
			least = MAX(best->score / (k->kind == TASK_LIST ? 4 : 3), 1);
		name = look_name(best);
		look_names(k, best->mask, names, sizeof(names));
		if (best->shape >= SHAPE_DECL && name.len > 0 && name.len < 64)
			snprintf(why, sizeof(why), "%s %.*s",
				 best->shape == SHAPE_DEF ? "defines" : "declares", (int)name.len,
				 name.s);
		else
			snprintf(why, sizeof(why), "%s %s",
				 best->shape == SHAPE_COMMENT ? "a comment about" : "mentions",
				 names);
		plan_add_finding(p, (unsigned)(best - k->lines), best->score, why);
	}
}

/* ---- the summary */

static bool plan_is_comment(const struct look_line *l)
{
	return look_shape(l->text, l->len) == SHAPE_COMMENT;
}

/* First sentence of the comment lines from `from` on, without their marks; 0
 * bytes: it is too long to be said in one breath. */
static size_t plan_sentence(const struct look *k, unsigned from, char *out)
{
	size_t n = 0;

	for (unsigned i = from; i == from || (look_follows(k, i) && plan_is_comment(&k->lines[i]));
	     i++) {
		const char *s = k->lines[i].text, *end = s + k->lines[i].len;
		bool last = memmem(s, k->lines[i].len, "*/", 2) != NULL;

		while (s < end && strchr(" \t/*#!-", *s) != NULL && *s != 0)
			s++;
		while (end > s && strchr(" \t*/\r", end[-1]) != NULL && end[-1] != 0)
			end--;
		if (s == end && n > 0)
			return n;
		if (n > 0)
			out[n++] = ' ';
		for (; s < end; s++) {
			if (n >= SENTENCE_MAX)
				return 0;
			out[n++] = *s;
			if (*s == '.' && n > 12 && (s + 1 == end || s[1] == ' '))
				return n;
		}
		if (last)
			return n;
	}
	return n;
}

/* What the comment above a definition says, in its first sentence. */
static void plan_say_comment(const struct plan *p, struct buf *out, unsigned line, const char *lead)
{
	const struct look *k = &p->look;
	char text[SENTENCE_MAX + 2];
	unsigned from = line;
	size_t n;

	while (line - from < COMMENT_LINES && look_follows(k, from) &&
	       plan_is_comment(&k->lines[from - 1]))
		from--;
	n = from < line && k->lines[line].shape >= SHAPE_DECL ? plan_sentence(k, from, text) : 0;
	if (n >= 12)
		buf_addf(out, "%s\"%.*s\" (line %d)", lead, (int)n, text, k->lines[from].line);
}

/* "journal_open is defined at src/journal.c:120" */
static void plan_say(const struct plan *p, struct buf *out, unsigned at)
{
	const struct finding *f = &p->findings[at];
	const struct look *k = &p->look;
	const struct look_line *l = &k->lines[f->line];
	struct slice name = look_name(l), q = plan_quote(l), path = k->files[l->file].path;
	bool review = k->kind == TASK_REVIEW;
	char text[SENTENCE_MAX + 2];
	size_t n = 0;

	if (!review && l->shape >= SHAPE_DECL && name.len > 0 && name.len < 64) {
		buf_addf(out, "%.*s is %s at %.*s:%d", (int)name.len, name.s,
			 l->shape == SHAPE_DEF ? "defined" : "declared", (int)path.len, path.s,
			 l->line);
		return;
	}
	buf_addf(out, "%.*s:%d", (int)path.len, path.s, l->line);
	if (!review && l->shape == SHAPE_COMMENT)
		n = plan_sentence(k, f->line, text);
	if (n >= 12 && !islower((unsigned char)text[0])) /* not the middle of a sentence */
		buf_addf(out, " says: \"%.*s\"", (int)n, text);
	else if (review)
		buf_addf(out, ": %s", f->why);
	else
		buf_addf(out, ": %.*s", (int)q.len, q.s);
}

static void plan_say_effort(const struct plan *p, struct buf *out)
{
	const struct look *k = &p->look;
	unsigned files = 0;

	for (unsigned i = 0; i < k->nfiles; i++)
		files += k->files[i].was_read;
	buf_addf(out,
		 "\nBased on %u search%s (%u matching line%s in %u file%s) and %u file%s read.",
		 k->searches, k->searches == 1 ? "" : "es", k->matches, k->matches == 1 ? "" : "s",
		 k->nfiles, k->nfiles == 1 ? "" : "s", files, files == 1 ? "" : "s");
}

static void plan_say_nothing(const struct plan *p, struct buf *out, bool no_tools)
{
	char names[300];

	look_names(&p->look, ~0u, names, sizeof(names));
	if (no_tools)
		buf_adds(out, "Nothing could be looked up: this run has no tool to search or "
			      "read files.");
	else if (p->look.kind == TASK_REVIEW)
		buf_adds(out, "The rules of this review found nothing suspicious.");
	else if (p->look.nterms == 0)
		buf_adds(out, "The task holds no words that could be searched for.");
	else
		buf_addf(out, "Nothing was found for %s.", names);
	if (!no_tools)
		plan_say_effort(p, out);
}

static void plan_summarise(const struct plan *p, struct buf *out, unsigned shown)
{
	const struct look *k = &p->look;
	const char *plural = p->nfindings == 1 ? "" : "s";

	switch (k->kind) {
	case TASK_REVIEW:
		buf_addf(out, "%u place%s worth a look. First: ", p->nfindings, plural);
		break;
	case TASK_LIST:
		buf_addf(out, "%u place%s found%s. First: ", p->nfindings, plural,
			 p->left_out || k->more ? ", and there are more" : "");
		break;
	case TASK_HOW:
		buf_adds(out, "Start here: ");
		break;
	case TASK_FIND:
		if (k->lines[p->findings[0].line].shape < SHAPE_DECL)
			buf_adds(out, "Closest match: ");
		break;
	}
	plan_say(p, out, 0);
	if (out->len < 2 ||
	    (memcmp(out->data + out->len - 2, ".\"", 2) != 0 && out->data[out->len - 1] != '.'))
		buf_addc(out, '.');
	if (k->kind != TASK_REVIEW)
		plan_say_comment(p, out, p->findings[0].line, " The comment above it says: ");
	if (shown > 1)
		buf_adds(out,
			 k->kind == TASK_REVIEW || k->kind == TASK_LIST ? "\nThen:" : "\nRelated:");
	for (unsigned i = 1; i < shown; i++) {
		buf_adds(out, "\n- ");
		plan_say(p, out, i);
		if (k->kind == TASK_HOW)
			plan_say_comment(p, out, p->findings[i].line, ": ");
	}
	plan_say_effort(p, out);
}

/* ---- submitting */

/* How sure, in hundredths. Terms that stand together say more than the same
 * ones far apart. */
static int plan_confidence(const struct plan *p)
{
	const struct look *k = &p->look;
	unsigned all = 0;
	bool def = false, read = false;
	int together = 0, c;

	if (p->nfindings == 0)
		return 0;
	if (k->kind == TASK_REVIEW) /* the rules see what they see; most faults they do not */
		return k->reads > 0 ? 50 : 35;
	for (unsigned i = 0; i < p->nfindings; i++) {
		const struct look_line *l = &k->lines[p->findings[i].line];
		unsigned mask = l->mask | k->files[l->file].path_mask;

		all |= mask;
		together = MAX(together, look_weight(k, mask));
		def = def || l->shape >= SHAPE_DECL;
		read = read || l->read || k->files[l->file].was_read;
	}
	c = 45 * (look_weight(k, all) + together) / MAX(look_weight(k, ~0u), 1);
	c = def ? c : c * 8 / 10;
	c = read ? c : c * 8 / 10;
	return MIN(c, 90);
}

static void plan_write_caveats(const struct plan *p, struct jw *w, bool no_tools, bool shortened)
{
	char failed[80];
	const struct {
		bool holds;
		const char *text;
	} caveats[] = {
		{true, "Answered by the offline rule-based model: it matches words and lines, it "
		       "does not understand them."},
		{no_tools, "The tools search_codebase and read_file are missing: start the run in "
			   "a folder, with a role that may read files."},
		{!no_tools && p->nfindings == 0,
		 "Nothing was found; that is no proof that there is nothing."},
		{!no_tools && p->look.kind == TASK_REVIEW,
		 "A review by rules sees only known patterns (unsafe calls, unchecked "
		 "allocations, notes, long functions)."},
		{p->look.failed > 0, failed},
		{p->look.more || p->left_out, "There are more matches than are listed."},
		{shortened, "The list was shortened to fit the output limit."},
	};

	snprintf(failed, sizeof(failed), "%u tool call%s failed and %s left out.", p->look.failed,
		 p->look.failed == 1 ? "" : "s", p->look.failed == 1 ? "was" : "were");
	jw_array(w, "caveats");
	for (size_t i = 0; i < ARRAY_LEN(caveats); i++)
		if (caveats[i].holds)
			jw_str(w, NULL, caveats[i].text);
	jw_end(w);
}

/* Arguments of submit_result with the first n findings. */
static int plan_write(const struct plan *p, struct buf *args, bool no_tools, unsigned n)
{
	const struct look *k = &p->look;
	struct buf summary;
	struct jw w;
	int rv;

	buf_init(&summary, SUMMARY_MAX);
	if (p->nfindings == 0)
		plan_say_nothing(p, &summary, no_tools);
	else
		plan_summarise(p, &summary, MIN(n, k->kind == TASK_LIST ? 12u : 8u));
	buf_reset(args);
	jw_init(&w, args);
	jw_object(&w, NULL);
	jw_object(&w, "output");
	jw_array(&w, "findings");
	for (unsigned i = 0; i < n; i++) {
		const struct look_line *l = &k->lines[p->findings[i].line];
		struct slice path = k->files[l->file].path, q = plan_quote(l);

		jw_object(&w, NULL);
		jw_strn(&w, "path", path.s, path.len);
		jw_int(&w, "line", l->line);
		jw_strn(&w, "quote", q.s, q.len);
		jw_str(&w, "why", p->findings[i].why);
		jw_end(&w);
	}
	jw_end(&w);
	jw_end(&w);
	jw_strn(&w, "summary", summary.data != NULL ? summary.data : "", summary.len);
	jw_fixed(&w, "confidence", plan_confidence(p), 2);
	plan_write_caveats(p, &w, no_tools, n < p->nfindings);
	jw_end(&w);
	rv = buf_check(&summary) == AVA_ENOMEM ? AVA_ENOMEM : buf_check(args);
	buf_fini(&summary);
	return rv;
}

/* The findings as submit_result, or as the last message where there is no such
 * tool; fewer of them when all do not fit the output. */
static int plan_submit(struct plan *p)
{
	bool no_tools = p->search == NULL && !p->b->tools[OFFLINE_READ].offered;
	size_t room = p->b->max_tokens > 0 ? (size_t)MIN(p->b->max_tokens, 8192) * 3 : 24576;
	struct buf args, text;
	unsigned n;
	int rv;

	if (p->look.kind == TASK_REVIEW)
		plan_find_suspicious(p);
	else
		plan_find(p);
	buf_init(&args, ARGS_MAX);
	n = p->nfindings;
	rv = plan_write(p, &args, no_tools, n);
	while (rv == 0 && args.len > room && n > 1) {
		n = (n + 1) / 2;
		rv = plan_write(p, &args, no_tools, n);
	}
	if (rv == 0 && p->b->tools[OFFLINE_SUBMIT].offered) {
		draft_call(p->draft, NULL, "submit_result", args.data, args.len, NULL);
	} else if (rv == 0) {
		buf_init(&text, ARGS_MAX);
		buf_addf(&text, "```json\n%s\n```", args.data);
		rv = buf_check(&text);
		if (rv == 0)
			draft_text(p->draft, text.data, text.len);
		buf_fini(&text);
	}
	buf_fini(&args);
	return rv;
}

/* ---- deciding */

static void plan_next_turn(struct plan *p)
{
	unsigned searched = 0, turns = 0; /* message of the last search, from 1; searching turns */
	bool read = false, fits = false;

	for (unsigned i = 0; i < p->b->ncalls; i++) {
		const struct offline_call *c = &p->b->calls[i];

		if (c->tool == OFFLINE_READ) {
			read = read || c->message != searched;
		} else if ((c->tool == OFFLINE_SEARCH || c->tool == OFFLINE_SEARCH_READ) &&
			   c->message != searched) {
			turns++;
			searched = c->message;
		}
	}
	for (unsigned i = 0; i < p->look.nfiles; i++)
		fits = fits || p->look.files[i].best >= 0;
	if (turns == 0 && !read) {
		plan_first_turn(p);
	} else if (!read && fits) {
		plan_read_turn(p);
	} else if (!read && turns == 1 && p->search != NULL && p->look.kind != TASK_REVIEW) {
		plan_search_wider(p);
		if (p->ncalls > 0)
			plan_say_searching(p, "Nothing yet, searching wider");
	}
}

int offline_plan(struct offline_body *b, struct draft *draft)
{
	struct plan *p = arena_get(&b->mem, sizeof(*p)); /* too large for the stack */

	if (p == NULL)
		return AVA_ENOMEM;
	p->b = b;
	p->draft = draft;
	for (int i = OFFLINE_SEARCH_READ; i >= 0; i--) {
		if (i == OFFLINE_READ || !b->tools[i].offered)
			continue;
		p->search = &b->tools[i];
		p->search_name = i == OFFLINE_SEARCH ? "search_codebase" : "search_and_read";
	}
	if (look_read(&p->look, b) != 0)
		return AVA_ENOMEM;
	if (p->look.kind == TASK_REVIEW)
		review_score(&p->look);
	if (!b->forced && !b->wrap_up)
		plan_next_turn(p);
	return p->ncalls > 0 ? 0 : plan_submit(p);
}
