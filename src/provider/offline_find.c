/* The offline model as a subagent. The plan is read off the calls that were made so far:
 *
 *   none yet               search for the terms of the task, all in one turn
 *   searched, nothing fits search once more, wider
 *   searched               read around the best lines, all in one turn
 *   read, or told to stop  submit what was found
 *
 * So a run takes two to four calls, whatever the tools return: a result can change
 * which lines are read and quoted, not what is done. A review searches by rules and
 * lets suspicious lines decide. Findings are lines that stand in a tool result, quoted
 * as they stand there; the confidence grows with the share of the terms that were found
 * and never passes 0.9, since words are matched, not understood. A tool that is not
 * offered is not used; a failed call is skipped. Only memory can fail. */
#include "provider/offline_look.h"

#include <ava.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "codec/utf8.h"
#include "provider/offline_heard.h"

#define SEARCHES_MAX   4u /* calls in one turn */
#define READ_FILES_MAX 5u
#define BEFORE         12 /* lines read before and after a hit */
#define AFTER          50
#define NAMED_LINES    400 /* lines read of a file that the task names */
#define RESULTS        100
#define PATTERN_MAX    1000 /* bytes of a pattern; search_codebase takes no more */
#define SENTENCE_MAX   240u
#define COMMENT_LINES  40u
#define SUMMARY_MAX    (16u << 10)
#define OUT_MAX        (128u << 10)
#define LONG_FUNCTION  80
#define LOOK_LINES     12  /* lines of a definition in an answer */
#define LOOK_SHOWN     60u /* lines of a file in an answer */
#define LOOK_MORE      5u
#define CHECK_WITHIN   8u /* lines after an allocation in which its check is expected */

/* ---- what a review looks for */

/* A row names what is seen; the reader judges whether it is a fault. */
static const struct offline_find_rule {
	const char *what;
	char after; /* character that must follow `what`; 0: any but a letter */
	bool note;  /* hits in comments count, too */
	int rank;
	const char *why; /* NULL: review_unchecked looks into an allocation */
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
	{"malloc", '(', false, 3, NULL},
	{"calloc", '(', false, 3, NULL},
	{"realloc", '(', false, 3, NULL},
	{"strdup", '(', false, 3, NULL},
	{"strndup", '(', false, 3, NULL},
};

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

/* Do the rule's words stand on their own, not as a text in quotes? */
static bool review_fits(const struct offline_find_rule *r, const char *text)
{
	for (const char *p = text, *after; (p = strstr(p, r->what)); p = after) {
		char before = p > text ? p[-1] : ' ';

		after = p + strlen(r->what);
		if (find_name_char(before) || before == '"' || (before == '.' && r->after == '(') ||
		    find_name_char(*after))
			continue;
		if (r->after == 0 || after[strspn(after, " ")] == r->after)
			return true;
	}
	return false;
}

/* The rule that a line meets; NULL: none. */
static const struct offline_find_rule *review_line(const struct found_line *l)
{
	bool comment = find_shape(l->text) == SHAPE_COMMENT;

	for (const struct offline_find_rule *r = review_rules;
	     r < review_rules + ARRAY_LEN(review_rules); r++)
		if ((!comment || r->note) && review_fits(r, l->text))
			return r;
	return NULL;
}

/* Does the line test `name`, or hand it to code that can? */
static bool review_tests(const char *text, const char *name)
{
	static const char *const words[] = {"if",    "NULL", "nullptr", "assert", "return",
					    "while", "?",    "||",      "&&",     "goto"};
	bool tests = false;

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		tests = tests || strstr(text, words[i]);
	return tests && strstr(text, name);
}

/* Is the target of an allocation ("p->data = malloc(n)") tested by no line behind it? false where
 * those lines were not read. */
static bool review_unchecked(const struct find *f, const struct found_line *l)
{
	const char *end = strchr(l->text, '='), *begin;
	char name[200];

	if (!end || !l->read)
		return false;
	while (end > l->text && isspace((unsigned char)end[-1]))
		end--;
	for (begin = end;
	     begin > l->text && (find_name_char(begin[-1]) || strchr(".->[]", begin[-1]));)
		begin--;
	snprintf(name, sizeof(name), "%.*s", (int)(end - begin), begin);
	if (!name[0] || review_tests(l->text, name))
		return false;
	for (unsigned i = 1; i <= CHECK_WITHIN; i++)
		if (!find_follows(f, l + i) || review_tests(l[i].text, name))
			return false;
	return true;
}

/* Lines from a definition at the left edge to its closing brace there; 0: it was not read. */
static int review_length(const struct find *f, const struct found_line *l)
{
	if (l->shape != SHAPE_DEF || !strchr(l->text, '('))
		return 0;
	for (const struct found_line *n = l + 1; find_follows(f, n); n++) {
		if (n->text[0] == '}')
			return n->number - l->number + 1;
		if (n->shape == SHAPE_DEF && !strchr("\t ", n->text[0]))
			return 0; /* the text is of another language, or a declaration */
	}
	return 0;
}

/* In a review suspicious lines decide which files are read. */
static void review_score(struct find *f)
{
	for (unsigned i = 0; i < f->nfiles; i++)
		f->files[i].score = 0, f->files[i].best = -1;
	for (unsigned i = 0; i < f->nlines; i++) {
		struct found_file *n = f->lines[i].file;
		const struct offline_find_rule *r = review_line(&f->lines[i]);

		f->lines[i].score = r ? r->rank : 0;
		if (!r)
			continue;
		n->score += n->test ? 1 : r->rank;
		if (n->best < 0 || r->rank > f->lines[n->best].score)
			n->best = (int)i;
	}
}

/* ---- a turn that searches or reads */

struct offline_find_query {
	const char *pattern;
	bool regex, ignore_case;
	const char *scope; /* path to search in; "": everywhere */
	const char *glob;  /* files to search; "": all */
};

static void plan_search(struct find *f, struct offline_find_query q)
{
	struct jw *w;

	if (f->ncalls >= SEARCHES_MAX || (q.regex && !json_object_get(f->search, "regex")))
		return;
	f->ncalls++;
	w = draft_call(f->draft, f->search_name);
	jw_str(w, "pattern", q.pattern);
	if (q.regex)
		jw_bool(w, "regex", true);
	if (q.ignore_case && json_object_get(f->search, "ignore_case"))
		jw_bool(w, "ignore_case", true);
	if (q.scope[0] && json_object_get(f->search, "path"))
		jw_str(w, "path", q.scope);
	if (q.glob[0] && json_object_get(f->search, "glob"))
		jw_str(w, "glob", q.glob);
	if (json_object_get(f->search, "max_results"))
		jw_int(w, "max_results", RESULTS);
	draft_call_end(f->draft);
}

static void plan_read(struct find *f, const char *path, int first, int last)
{
	struct jw *w;

	if (!f->read)
		return;
	f->ncalls++;
	w = draft_call(f->draft, "read_file");
	jw_str(w, "path", path);
	if (json_object_get(f->read, "first_line") && first > 1)
		jw_int(w, "first_line", first);
	if (json_object_get(f->read, "last_line"))
		jw_int(w, "last_line", last);
	draft_call_end(f->draft);
}

/* Add an alternative to a pattern: `len` bytes without characters that are special in a regular
 * expression. */
static void plan_or(struct buf *out, const char *s, size_t len)
{
	buf_adds(out, out->len > 0 ? "|" : "");
	for (size_t i = 0; i < len; i++) {
		if (strchr("\\^$.[]|()?*+{}", s[i]))
			buf_addc(out, '\\');
		buf_addc(out, s[i]);
	}
}

static void plan_search_any(struct find *f, struct buf *any, const char *scope)
{
	if (any->len > 0 && buf_check(any) == 0)
		plan_search(f, (struct offline_find_query){any->data, true, true, scope, ""});
	buf_reset(any);
}

/* Search terms: program names and quotes first; then pairs of words as one name, with an ending in
 * between ("journal_checkpoint", "failed fsync"); then single words, spread over the remaining
 * searches so that each is looked for. */
static void plan_search_terms(struct find *f)
{
	bool regex = json_object_get(f->search, "regex") != NULL;
	unsigned room, seen;
	struct buf any;

	for (unsigned i = 0; i < f->nterms; i++) {
		const struct term *t = &f->terms[i];

		if (t->kind == TERM_FILE) /* the lines of a file with this name, wherever it lies */
			plan_search(f, (struct offline_find_query){"[[:alnum:]]", true, false, "",
								   t->text});
		else if (t->kind != TERM_WORD)
			plan_search(f, (struct offline_find_query){t->text, false,
								   t->kind == TERM_QUOTED, f->scope,
								   ""});
	}
	buf_init(&any, PATTERN_MAX);
	for (unsigned i = 0; i < f->npairs; i++) {
		const char *b = f->terms[f->pairs[i].b].key;

		plan_or(&any, f->terms[f->pairs[i].a].key, strlen(f->terms[f->pairs[i].a].key));
		buf_addf(&any, ".{0,5}%s", b);
	}
	plan_search_any(f, &any, f->scope);
	room = SEARCHES_MAX - f->ncalls;
	for (unsigned n = 0; n < room; n++) {
		seen = 0;
		for (unsigned i = 0; i < f->nterms; i++) {
			const struct term *t = &f->terms[i];

			if (t->kind != TERM_WORD || seen++ % room != n)
				continue;
			if (regex)
				plan_or(&any, t->key, strlen(t->key));
			else if (seen == n + 1)
				plan_search(f, (struct offline_find_query){t->key, false, true,
									   f->scope, ""});
		}
		plan_search_any(f, &any, f->scope);
	}
	buf_fini(&any);
}

static void plan_search_rules(struct find *f)
{
	struct offline_find_query q = {NULL, json_object_get(f->search, "regex") != NULL, false,
				       f->scope, ""};

	for (unsigned i = 0; i < f->nterms && !f->scope[0]; i++)
		if (f->terms[i].kind == TERM_FILE && !q.glob[0])
			q.glob = f->terms[i].text;
	for (size_t i = 0; i < ARRAY_LEN(review_searches); i++) {
		q.pattern = q.regex ? review_searches[i].regex : review_searches[i].plain;
		plan_search(f, q);
	}
}

/* A wider search: in all files, for beginnings of words and the parts of names
 * ("journal_checkpoint"). */
static void plan_search_wider(struct find *f)
{
	struct buf any;

	buf_init(&any, PATTERN_MAX);
	for (unsigned i = 0; i < f->nterms; i++)
		for (const char *s = f->terms[i].key; *s; s += *s != 0) {
			size_t n = strcspn(s, "_.:>-/ ");

			if (n >= 3)
				plan_or(&any, s, utf8_prefix(s, n, 6));
			s += n;
		}
	plan_search_any(f, &any, "");
	buf_fini(&any);
	for (unsigned i = 0; i < f->nterms && f->scope[0] && f->ncalls < 3; i++)
		plan_search(f, (struct offline_find_query){f->terms[i].key, false, true, "", ""});
}

static void plan_say(struct find *f, const char *lead)
{
	char names[200], text[300];

	find_names(f, ~0u, names, sizeof(names));
	snprintf(text, sizeof(text), "%s%s%s.", lead, names[0] ? " for " : "", names);
	if (f->ncalls > 0)
		draft_text(f->draft, text);
}

static void plan_first_turn(struct find *f)
{
	bool review = f->kind == TASK_REVIEW;

	if (f->search && review)
		plan_search_rules(f);
	else if (f->search)
		plan_search_terms(f);
	if (f->scope[0] && f->file_terms != 0)
		plan_read(f, f->scope, 1, NAMED_LINES);
	for (unsigned i = 0; i < f->nterms && !f->search && !f->scope[0]; i++)
		if (f->terms[i].kind == TERM_FILE)
			plan_read(f, f->terms[i].text, 1, NAMED_LINES);
	plan_say(f, review ? "Searching by the rules of a review" : "Searching");
}

/* Read around the best lines of the best files. */
static void plan_read_turn(struct find *f)
{
	int least = 1, line;

	while (f->ncalls < READ_FILES_MAX && f->read) {
		struct found_file *best = NULL;

		for (struct found_file *n = f->files; n < f->files + f->nfiles; n++)
			if (!n->was_read && n->best >= 0 && n->score >= least &&
			    (!best || n->score > best->score))
				best = n;
		if (!best)
			break;
		if (f->ncalls == 0)
			least = MAX(best->score / 3, 1);
		best->was_read = true;
		line = f->lines[best->best].number;
		plan_read(f, best->path, MAX(line - BEFORE, 1), line + AFTER);
	}
	if (f->ncalls > 0)
		draft_text(f->draft, "Reading the best places.");
}

static void plan_next_turn(struct find *f)
{
	unsigned searched = 0, turns = 0; /* number of the message with the last search, from 1;
					     turns with searches */
	bool read = false, fits = false;

	for (unsigned i = 0; i < f->b->ncalls; i++) {
		const struct offline_call *c = &f->b->calls[i];

		if (strcmp(c->name, "read_file") == 0) {
			read = read || c->message != searched;
		} else if (find_begins(c->name, "search_") && c->message != searched) {
			turns++;
			searched = c->message;
		}
	}
	for (unsigned i = 0; i < f->nfiles; i++)
		fits = fits || f->files[i].best >= 0;
	if (turns == 0 && !read) {
		plan_first_turn(f);
	} else if (!read && fits) {
		plan_read_turn(f);
	} else if (!read && turns == 1 && f->search && f->kind != TASK_REVIEW) {
		plan_search_wider(f);
		plan_say(f, "Nothing yet, searching wider");
	}
}

/* ---- findings */

/* A line as a quote: without the space around it, at most QUOTE_MAX bytes, whole characters. false:
 * the line is not worth quoting. */
static bool find_quote(const struct found_line *l, char out[QUOTE_MAX + 1])
{
	const char *s = l->text + strspn(l->text, " \t\r\f\v");
	size_t n, letters = 0;

	s += find_begins(s, "…") ? 3 : 0;
	n = MIN(strlen(s), (size_t)QUOTE_MAX);
	while (n > 0 && ((unsigned char)s[n] & 0xc0) == 0x80)
		n--;
	while (n > 0 && isspace((unsigned char)s[n - 1]))
		n--;
	for (size_t i = 0; i < n; i++)
		letters += isalnum((unsigned char)s[i]) || (unsigned char)s[i] >= 0x80;
	snprintf(out, QUOTE_MAX + 1, "%.*s", (int)n, s);
	return letters >= 3;
}

/* Findings in the line's file so far; FINDINGS_MAX when the line is one of them. */
static unsigned findings_in_file(const struct find *f, const struct found_line *l)
{
	unsigned n = 0;

	for (unsigned i = 0; i < f->nfindings; i++) {
		const struct found_line *other = f->findings[i].line;

		if (other->file == l->file && other->number == l->number)
			return FINDINGS_MAX;
		n += other->file == l->file;
	}
	return n;
}

/* Insert a finding by rank; the list stays bounded. */
static void findings_add(struct find *f, const struct found_line *l, int rank, const char *why)
{
	struct finding *list = f->findings;
	unsigned at = f->nfindings;

	while (at > 0 && list[at - 1].rank < rank)
		at--;
	f->more = f->more || f->nfindings == FINDINGS_MAX;
	if (at == FINDINGS_MAX)
		return;
	f->nfindings = MIN(f->nfindings + 1, FINDINGS_MAX);
	memmove(&list[at + 1], &list[at], (f->nfindings - at - 1) * sizeof(*list));
	list[at] = (struct finding){.line = l, .rank = rank};
	snprintf(list[at].why, sizeof(list[at].why), "%s", why);
}

static void findings_suspicious(struct find *f)
{
	char text[160];

	for (struct found_line *l = f->lines; l < f->lines + f->nlines; l++) {
		const struct offline_find_rule *r = review_line(l);
		const char *why = r ? r->why : "";
		int rank = r ? r->rank : 0, lines = review_length(f, l);

		if (r && !why) {
			rank = review_unchecked(f, l) ? 7 : 0;
			why = "no check of this allocation within the next lines";
		}
		if (rank == 0 && lines > LONG_FUNCTION) {
			snprintf(text, sizeof(text), "this function is %d lines long", lines);
			why = text;
			rank = 5;
		}
		if (rank > 0 && findings_in_file(f, l) < FINDINGS_MAX)
			findings_add(f, l, l->file->test || l->file->doc ? MAX(rank / 2, 1) : rank,
				     why);
	}
}

/* The best lines, a few of each file; of two with the same score the one whose neighbours were
 * read. One pass over the lines a finding. */
static void findings_best(struct find *f)
{
	unsigned max = f->kind == TASK_LIST ? FINDINGS_MAX : f->kind == TASK_HOW ? 8 : 6;
	unsigned per_file = f->kind == TASK_LIST || f->file_terms != 0 ? FINDINGS_MAX : 3;
	char names[120], why[160], name[TERM_LEN], quote[QUOTE_MAX + 1];
	int least = 1;

	for (;;) {
		const struct found_line *best = NULL;

		for (const struct found_line *l = f->lines; l < f->lines + f->nlines; l++)
			if (l->score >= least &&
			    (!best || l->score > best->score ||
			     (l->score == best->score && l->read && !best->read)) &&
			    find_quote(l, quote) && findings_in_file(f, l) < per_file)
				best = l;
		if (!best)
			return;
		if (f->nfindings == max) {
			f->more = true;
			return;
		}
		if (f->nfindings == 0)
			least = MAX(best->score / (f->kind == TASK_LIST ? 4 : 3), 1);
		find_names(f, best->terms, names, sizeof(names));
		if (best->shape >= SHAPE_DECL && find_name(best, name))
			snprintf(why, sizeof(why), "%s %s",
				 best->shape == SHAPE_DEF || find_define(best->text) ? "defines"
										     : "declares",
				 name);
		else
			snprintf(why, sizeof(why), "%s %s",
				 best->shape == SHAPE_COMMENT ? "a comment about" : "mentions",
				 names);
		findings_add(f, best, best->score, why);
	}
}

/* ---- the summary */

/* First sentence of the comment that begins at `l`, without comment marks; false: there is none, or
 * it is too long for a summary. */
static bool say_sentence(const struct find *f, const struct found_line *l,
			 char out[SENTENCE_MAX + 2])
{
	size_t n = 0;

	for (const struct found_line *first = l;
	     l == first || (find_follows(f, l) && find_shape(l->text) == SHAPE_COMMENT); l++) {
		const char *s = l->text + strspn(l->text, " \t/*#!-"), *end = s + strlen(s);

		while (end > s && strchr(" \t*/\r", end[-1]))
			end--;
		if (s == end && n > 0)
			break;
		if (n > 0)
			out[n++] = ' ';
		for (; s < end; s++) {
			if (n >= SENTENCE_MAX)
				return false;
			out[n++] = *s;
			if (*s == '.' && n > 12 && (s + 1 == end || s[1] == ' ')) {
				out[n] = 0;
				return true;
			}
		}
		if (strstr(l->text, "*/"))
			break;
	}
	out[n] = 0;
	return n >= 12;
}

/* Add the first sentence of the comment above a definition. */
static void say_comment(const struct find *f, struct buf *out, const struct found_line *l,
			const char *lead)
{
	const struct found_line *first = l;
	char text[SENTENCE_MAX + 2];

	while (l - first < COMMENT_LINES && find_follows(f, first) &&
	       find_shape(first[-1].text) == SHAPE_COMMENT)
		first--;
	if (first < l && l->shape >= SHAPE_DECL && say_sentence(f, first, text))
		buf_addf(out, "%s\"%s\" (line %d)", lead, text, first->number);
}

/* "journal_open is defined at src/journal.c:120" */
static void say_finding(const struct find *f, struct buf *out, const struct finding *n)
{
	const struct found_line *l = n->line;
	char name[TERM_LEN], quote[QUOTE_MAX + 1], text[SENTENCE_MAX + 2];

	if (f->kind == TASK_REVIEW) {
		buf_addf(out, "%s:%d: %s", l->file->path, l->number, n->why);
	} else if (l->shape >= SHAPE_DECL && find_name(l, name)) {
		buf_addf(out, "%s is %s at %s:%d", name,
			 l->shape == SHAPE_DEF || find_define(l->text) ? "defined" : "declared",
			 l->file->path, l->number);
	} else if (l->shape == SHAPE_COMMENT && say_sentence(f, l, text) &&
		   !islower((unsigned char)text[0])) { /* the quote does not begin mid-sentence */
		buf_addf(out, "%s:%d says: \"%s\"", l->file->path, l->number, text);
	} else {
		find_quote(l, quote);
		buf_addf(out, "%s:%d: %s", l->file->path, l->number, quote);
	}
}

/* Confidence in hundredths. Terms that stand together count more than the same terms far apart. */
static int find_confidence(const struct find *f)
{
	bool def = false, read = false;
	int together = 0, c;
	unsigned all = 0;

	if (f->nfindings == 0)
		return 0;
	if (f->kind == TASK_REVIEW) /* rules find little: most faults match none */
		return f->reads > 0 ? 50 : 35;
	for (unsigned i = 0; i < f->nfindings; i++) {
		const struct found_line *l = f->findings[i].line;
		unsigned terms = l->terms | l->file->terms;

		all |= terms;
		together = MAX(together, find_weight(f, terms));
		def = def || l->shape >= SHAPE_DECL;
		read = read || l->read || l->file->was_read;
	}
	c = 45 * (find_weight(f, all) + together) / MAX(find_weight(f, ~0u), 1);
	c = def ? c : c * 8 / 10;
	c = read ? c : c * 8 / 10;
	c = f->more && !def ? c * 7 / 10 : c; /* the definition may be in what was left out */
	return MIN(c, 90);
}

static void say_effort(const struct find *f, struct buf *out)
{
	unsigned files = 0;

	for (unsigned i = 0; i < f->nfiles; i++)
		files += f->files[i].was_read;
	buf_addf(out,
		 "\nBased on %u search%s (%u matching line%s in %u file%s) and %u file%s read.",
		 f->searches, f->searches == 1 ? "" : "es", f->matches, f->matches == 1 ? "" : "s",
		 f->nfiles, f->nfiles == 1 ? "" : "s", files, files == 1 ? "" : "s");
}

static void say_nothing(const struct find *f, struct buf *out)
{
	char names[300];

	find_names(f, ~0u, names, sizeof(names));
	if (!f->search && !f->read) {
		buf_adds(out, "Nothing could be looked up: this run has no tool to search or "
			      "read files.");
		return;
	}
	if (f->kind == TASK_REVIEW)
		buf_adds(out, "The rules of this review found nothing suspicious.");
	else if (f->nterms == 0)
		buf_adds(out, "The task holds no words that could be searched for.");
	else
		buf_addf(out, "Nothing was found for %s.", names);
	say_effort(f, out);
}

/* Does a sentence of the model itself lack its full stop? A quoted line stays as it is. */
static bool say_ends(const struct buf *out, const struct found_line *l)
{
	return l->shape != SHAPE_TEXT && out->data && !find_ends(out->data, ".") &&
	       !find_ends(out->data, ".\"");
}

static void say_findings(const struct find *f, struct buf *out, unsigned shown)
{
	const struct finding *first = f->findings;
	const char *plural = f->nfindings == 1 ? "" : "s";

	if (f->kind == TASK_REVIEW)
		buf_addf(out, "%u place%s worth a look. First: ", f->nfindings, plural);
	else if (f->kind == TASK_LIST)
		buf_addf(out, "%u place%s found%s. First: ", f->nfindings, plural,
			 f->more ? ", and there are more" : "");
	else if (f->kind == TASK_HOW)
		buf_adds(out, "Start here: ");
	else if (find_confidence(f) < 50)
		buf_adds(out, "I do not know; the closest match: ");
	else if (first->line->shape < SHAPE_DECL)
		buf_adds(out, "Closest match: ");
	say_finding(f, out, first);
	if (say_ends(out, first->line))
		buf_addc(out, '.');
	if (f->kind != TASK_REVIEW)
		say_comment(f, out, first->line, " The comment above it says: ");
	if (shown > 1)
		buf_adds(out,
			 f->kind == TASK_REVIEW || f->kind == TASK_LIST ? "\nThen:" : "\nRelated:");
	for (unsigned i = 1; i < shown; i++) {
		buf_adds(out, "\n- ");
		say_finding(f, out, &first[i]);
		if (f->kind == TASK_HOW)
			say_comment(f, out, first[i].line, ": ");
	}
	say_effort(f, out);
}

/* ---- submitting */

static void submit_caveats(const struct find *f, struct jw *w, bool shortened)
{
	bool no_tools = !f->search && !f->read;
	char failed[80];
	const struct {
		bool holds;
		const char *text;
	} caveats[] = {
		{true, "Answered by the offline rule-based model: it matches words and lines, it "
		       "does not understand them."},
		{no_tools, "The tools search_codebase and read_file are missing: start the run in "
			   "a folder, with a role that may read files."},
		{!no_tools && f->nfindings == 0,
		 "Nothing was found; that is no proof that there is nothing."},
		{!no_tools && f->kind == TASK_REVIEW,
		 "A review by rules sees only known patterns (unsafe calls, unchecked "
		 "allocations, notes, long functions)."},
		{f->failed > 0, failed},
		{f->stopped,
		 "A search was stopped before it had seen all files: a narrower task (a "
		 "folder, a file) finds more."},
		{f->more, "There are more matches than are listed."},
		{shortened, "The list was shortened to fit the output limit."},
	};

	snprintf(failed, sizeof(failed), "%u tool call%s failed and %s left out.", f->failed,
		 f->failed == 1 ? "" : "s", f->failed == 1 ? "was" : "were");
	jw_array(w, "caveats");
	for (size_t i = 0; i < ARRAY_LEN(caveats); i++)
		if (caveats[i].holds)
			jw_str(w, NULL, caveats[i].text);
	jw_end(w);
}

/* Arguments of submit_result with the first n findings. */
static int submit_write(const struct find *f, struct buf *args, unsigned n)
{
	char quote[QUOTE_MAX + 1];
	struct buf summary;
	struct jw w;
	int rv;

	buf_init(&summary, SUMMARY_MAX);
	if (f->nfindings == 0)
		say_nothing(f, &summary);
	else
		say_findings(f, &summary, MIN(n, f->kind == TASK_LIST ? 12u : 8u));
	buf_reset(args);
	jw_init(&w, args);
	jw_object(&w, NULL);
	jw_object(&w, "output");
	jw_array(&w, "findings");
	for (unsigned i = 0; i < n; i++) {
		const struct found_line *l = f->findings[i].line;

		find_quote(l, quote);
		jw_object(&w, NULL);
		jw_str(&w, "path", l->file->path);
		jw_int(&w, "line", l->number);
		jw_str(&w, "quote", quote);
		jw_str(&w, "why", f->findings[i].why);
		jw_end(&w);
	}
	jw_end(&w);
	jw_end(&w);
	jw_strn(&w, "summary", summary.data ? summary.data : "", summary.len);
	jw_fixed(&w, "confidence", find_confidence(f), 2);
	submit_caveats(f, &w, n < f->nfindings);
	jw_end(&w);
	rv = buf_check(&summary) == AVA_ENOMEM ? AVA_ENOMEM : buf_check(args);
	buf_fini(&summary);
	return rv;
}

/* Submit the findings by submit_result, or as the last message where there is no such tool; fewer
 * of them when all do not fit the output. */
static int find_submit(struct find *f)
{
	int64_t most = f->b->max_tokens;
	size_t room = most > 0 ? (size_t)MIN(most, 8192) * 3 : 24576;
	struct buf args, text;
	unsigned n;
	int rv;

	if (f->kind == TASK_REVIEW)
		findings_suspicious(f);
	else
		findings_best(f);
	buf_init(&args, OUT_MAX);
	buf_init(&text, OUT_MAX);
	n = f->nfindings;
	rv = submit_write(f, &args, n);
	while (rv == 0 && args.len > room && n > 1) {
		n = (n + 1) / 2;
		rv = submit_write(f, &args, n);
	}
	if (rv == 0 && offline_tool(f->b, "submit_result")) {
		draft_add(f->draft, NULL, "submit_result", args.data, args.len, NULL);
	} else if (rv == 0) {
		buf_addf(&text, "```json\n%s\n```", args.data);
		rv = buf_check(&text);
		if (rv == 0)
			draft_text(f->draft, text.data);
	}
	buf_fini(&text);
	buf_fini(&args);
	return rv;
}

static struct find *find_begin(struct offline_body *b, struct offline_draft *draft)
{
	struct find *f = arena_get(&b->mem, sizeof(*f)); /* too large for the stack */

	if (!f)
		return NULL;
	f->b = b;
	f->draft = draft;
	f->read = offline_tool(b, "read_file");
	f->search_name = offline_tool(b, "search_codebase") ? "search_codebase" : "search_and_read";
	f->search = offline_tool(b, f->search_name);
	return find_look(f) == 0 ? f : NULL;
}

int offline_find(struct offline_body *b, struct offline_draft *draft)
{
	struct find *f = find_begin(b, draft);

	if (!f)
		return AVA_ENOMEM;
	if (f->kind == TASK_REVIEW)
		review_score(f);
	if (!b->forced && !b->wrap_up)
		plan_next_turn(f);
	return f->ncalls > 0 ? 0 : find_submit(f);
}

/* ---- a look by Ava herself */

/* Quote the lines of a definition up to its end; else the one line. */
static void look_quote(const struct find *f, struct buf *say, const struct found_line *l)
{
	const struct found_line *n = l;

	if (l->shape < SHAPE_DECL)
		return;
	buf_adds(say, "\n\n```\n");
	do
		buf_addf(say, "%s\n", n->text);
	while (l->shape == SHAPE_DEF && n->text[0] != '}' && ++n - l < LOOK_LINES &&
	       find_follows(f, n));
	buf_adds(say, "```");
}

static void look_say(struct find *f, struct buf *say)
{
	char names[300];

	findings_best(f);
	if (f->nfindings == 0) {
		find_names(f, ~0u, names, sizeof(names));
		buf_addf(say,
			 "(offline model) I don't know that: I answer from your files only, and "
			 "nothing was found%s%s.",
			 names[0] ? " for " : "", names);
		return;
	}
	say_finding(f, say, &f->findings[0]);
	if (say_ends(say, f->findings[0].line))
		buf_addc(say, '.');
	look_quote(f, say, f->findings[0].line);
	/* Findings that fit much less than the first say little. */
	for (unsigned i = 1; i < MIN(f->nfindings, LOOK_MORE); i++) {
		if (3 * f->findings[i].rank < 2 * f->findings[0].rank && f->kind != TASK_LIST)
			break;
		buf_adds(say, i == 1 ? "\n\n- " : "\n- ");
		say_finding(f, say, &f->findings[i]);
	}
}

/* Show a file as read_file returned it. */
static void look_show(struct buf *say, const char *text)
{
	const char *at = text;

	for (unsigned i = 0; i < LOOK_SHOWN && *at; i++)
		at += strcspn(at, "\n") + (at[strcspn(at, "\n")] != 0);
	buf_addf(say, "```\n%.*s%s```", (int)(at - text), text,
		 at > text && at[-1] == '\n' ? "" : "\n");
	if (*at)
		buf_adds(say, "\nThere is more of it.");
}

int offline_look(struct offline_body *b, struct offline_draft *draft, const char *words,
		 struct buf *say)
{
	struct offline_body own = *b; /* has only the calls made since these words */
	const struct offline_call *last;
	char plain[HEARD_MAX];
	struct find *f;
	bool shows;

	heard_plain(words, plain);
	own.task = words;
	own.calls = b->fresh < b->ncalls ? b->calls + b->fresh : NULL;
	own.ncalls = b->ncalls - b->fresh;
	last = own.ncalls ? &own.calls[own.ncalls - 1] : NULL;
	f = find_begin(&own, draft);
	if (!f)
		return AVA_ENOMEM;
	shows = heard_begins(plain, "show|show me|cat|print|display|open|read") &&
		f->file_terms != 0 && f->read;
	if (heard_topic(words, plain, 0) == ABOUT_LISTING && offline_tool(b, "list_files")) {
		if (!last) {
			draft_call(draft, "list_files");
			draft_call_end(draft);
		} else {
			look_show(say, last->result ? last->result : "");
		}
	} else if (shows && (!last || strcmp(last->name, "read_file") == 0)) {
		if (last && !last->is_error)
			look_show(say, last->result ? last->result : "");
		else if (last)
			buf_addf(say, "That cannot be shown: %s.", last->result);
		else
			for (unsigned i = 0; i < f->nterms; i++)
				if (f->terms[i].kind == TERM_FILE && f->ncalls == 0)
					plan_read(f, f->scope[0] ? f->scope : f->terms[i].text, 1,
						  NAMED_LINES);
	} else {
		if (heard_has(plain, "calls|call|uses|use|used|callers|break|breaks|references|"
				     "usages|prototype|declared|declaration"))
			f->kind = TASK_LIST; /* the definition alone would not answer */
		else if (f->kind == TASK_REVIEW)
			f->kind = TASK_FIND;
		plan_next_turn(f);
		if (f->ncalls > 0)
			draft_text(draft, "");
		else
			look_say(f, say);
	}
	/* `own` is a copy: give back the arena, which has grown. */
	b->mem = own.mem;
	return 0;
}
