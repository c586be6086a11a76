/* The offline model as a subagent. The plan is read off the calls that were made so far:
 *
 *   none yet               search for the terms of the task, all in one turn
 *   searched               read around the best lines, all in one turn
 *   read, or told to stop  submit what was found
 *
 * So a run takes two or three calls, whatever the tools return: a result can change which lines
 * are read and quoted, not what is done. Findings are lines that stand in a tool result, quoted as
 * they stand there; the confidence grows with the share of the terms that was found and never
 * passes 0.9, since words are matched, not understood, and nothing is judged. A tool that is not
 * offered is not used; a failed call is skipped. Only memory can fail. */
#include "provider/offline_look.h"

#include <ava.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "base/words.h"

#define SEARCHES_MAX   4u /* calls in one turn */
#define READ_FILES_MAX 5u
#define BEFORE         12 /* lines read before and after a hit */
#define AFTER          50
#define NAMED_LINES    400 /* of a file that the task names */
#define RESULTS        100
#define PATTERN_MAX    1000 /* bytes; search_codebase takes no more */
#define FINDINGS_MAX   24u
#define QUOTE_MAX      200u
#define SUMMARY_MAX    (16u << 10)
#define OUT_MAX        (128u << 10)

struct offline_plan {
	struct find f;
	struct offline_draft *draft;
	const char *search_name;                         /* of the search tool */
	const json_t *search, *read;                     /* NULL: not offered */
	unsigned ncalls;                                 /* of this turn */
	const struct found_line *findings[FINDINGS_MAX]; /* best first */
	unsigned nfindings;
};

/* ---- a turn that searches or reads */

/* Search files whose name is `glob`, "" for all, by a regular expression or a text. */
static void plan_search(struct offline_plan *p, const char *pattern, bool regex, const char *glob)
{
	struct jw *w;

	if (p->ncalls >= SEARCHES_MAX)
		return;
	p->ncalls++;
	w = draft_call(p->draft, p->search_name);
	jw_str(w, "pattern", pattern);
	if (regex) {
		jw_bool(w, "regex", true);
		jw_bool(w, "ignore_case", true);
	}
	if (glob[0])
		jw_str(w, "glob", glob);
	else if (p->f.scope[0])
		jw_str(w, "path", p->f.scope);
	jw_int(w, "max_results", RESULTS);
	draft_call_end(p->draft);
}

static void plan_read(struct offline_plan *p, const char *path, int first, int last)
{
	struct jw *w;

	p->ncalls++;
	w = draft_call(p->draft, "read_file");
	jw_str(w, "path", path);
	if (first > 1)
		jw_int(w, "first_line", first);
	jw_int(w, "last_line", last);
	draft_call_end(p->draft);
}

/* Search for what `any` gathered of alternatives, and empty it. */
static void plan_search_any(struct offline_plan *p, struct buf *any)
{
	if (any->len > 0 && buf_check(any) == 0)
		plan_search(p, any->data, true, "");
	buf_reset(any);
}

/* Search terms: program names and quotes first; then pairs of words as one name, with an ending in
 * between ("journal_checkpoint", "failed fsync"); then single words, spread over the remaining
 * searches so that each is looked for. Words are letters and digits: nothing in them is special. */
static void plan_search_terms(struct offline_plan *p)
{
	const struct find *f = &p->f;
	unsigned room, seen;
	struct buf any;

	for (unsigned i = 0; i < f->nterms; i++) {
		const struct term *t = &f->terms[i];

		if (t->kind == TERM_FILE) /* the file's lines, wherever it lies */
			plan_search(p, "[[:alnum:]]", true, t->text);
		else if (t->kind == TERM_IDENT)
			plan_search(p, t->text, false, "");
	}
	buf_init(&any, PATTERN_MAX);
	for (unsigned i = 0; i < f->npairs; i++)
		buf_addf(&any, "%s%s.{0,5}%s", i ? "|" : "", f->terms[f->pairs[i].a].key,
			 f->terms[f->pairs[i].b].key);
	plan_search_any(p, &any);
	room = SEARCHES_MAX - p->ncalls;
	for (unsigned n = 0; n < room; n++) {
		seen = 0;
		for (unsigned i = 0; i < f->nterms; i++)
			if (f->terms[i].kind == TERM_WORD && seen++ % room == n)
				buf_addf(&any, "%s%s", any.len ? "|" : "", f->terms[i].key);
		plan_search_any(p, &any);
	}
	buf_fini(&any);
}

static void plan_first_turn(struct offline_plan *p)
{
	const struct find *f = &p->f;

	if (p->search)
		plan_search_terms(p);
	for (unsigned i = 0; i < f->nterms && p->read; i++)
		if (f->terms[i].kind == TERM_FILE && (!p->search || strchr(f->scope, '.')))
			plan_read(p, f->scope[0] ? f->scope : f->terms[i].text, 1, NAMED_LINES);
}

/* Read around the best lines of the best files. */
static void plan_read_turn(struct offline_plan *p)
{
	struct find *f = &p->f;
	int least = 1, line;

	while (p->ncalls < READ_FILES_MAX && p->read) {
		struct found_file *best = NULL;

		for (struct found_file *n = f->files; n < f->files + f->nfiles; n++)
			if (!n->was_read && n->best >= 0 && n->score >= least &&
			    (!best || n->score > best->score))
				best = n;
		if (!best)
			break;
		if (p->ncalls == 0)
			least = MAX(best->score / 3, 1);
		best->was_read = true;
		line = f->lines[best->best].number;
		plan_read(p, best->path, MAX(line - BEFORE, 1), line + AFTER);
	}
}

/* ---- findings */

/* A line as a quote: without the space around it, at most QUOTE_MAX bytes, whole characters. false:
 * the line is not worth quoting. */
static bool find_quote(const struct found_line *l, char out[QUOTE_MAX + 1])
{
	const char *s = l->text + strspn(l->text, " \t\r\f\v");
	size_t n, letters = 0;

	s += find_begins(s, "…") ? strlen("…") : 0; /* the tool cut its beginning */
	n = MIN(strlen(s), (size_t)QUOTE_MAX);
	while (n > 0 && (((unsigned char)s[n] & 0xc0) == 0x80 || isspace((unsigned char)s[n - 1])))
		n--;
	for (size_t i = 0; i < n; i++)
		letters += isalnum((unsigned char)s[i]) || (unsigned char)s[i] >= 0x80;
	snprintf(out, QUOTE_MAX + 1, "%.*s", (int)n, s);
	return letters >= 3;
}

/* Findings in the line's file so far; FINDINGS_MAX when the line is one of them. */
static unsigned findings_in_file(const struct offline_plan *p, const struct found_line *l)
{
	unsigned n = 0;

	for (unsigned i = 0; i < p->nfindings; i++) {
		const struct found_line *other = p->findings[i];

		if (other->file == l->file && other->number == l->number)
			return FINDINGS_MAX;
		n += other->file == l->file;
	}
	return n;
}

/* The best lines, a few of each file. One pass over the lines a finding. */
static void findings_best(struct offline_plan *p)
{
	struct find *f = &p->f;
	unsigned max = f->kind == TASK_LIST ? FINDINGS_MAX : 6;
	unsigned per_file = f->kind == TASK_LIST || f->file_terms != 0 ? FINDINGS_MAX : 3;
	char quote[QUOTE_MAX + 1];
	int least = 1;

	for (;;) {
		const struct found_line *best = NULL;

		for (const struct found_line *l = f->lines; l < f->lines + f->nlines; l++)
			if (l->score >= least && (!best || l->score > best->score) &&
			    find_quote(l, quote) && findings_in_file(p, l) < per_file)
				best = l;
		f->more |= best && p->nfindings == max;
		if (!best || p->nfindings == max)
			return;
		if (p->nfindings == 0)
			least = MAX(best->score / (f->kind == TASK_LIST ? 4 : 3), 1);
		p->findings[p->nfindings++] = best;
	}
}

/* The line's part in the task: "defines pool_drain", "mentions "pool"". */
static void finding_why(const struct offline_plan *p, const struct found_line *l, char out[160])
{
	char name[TERM_LEN], names[120];

	find_names(&p->f, l->terms, names, sizeof(names));
	if (l->shape >= SHAPE_DECL && find_name(l, name))
		snprintf(out, 160, "%s %s", l->shape == SHAPE_DEF ? "defines" : "declares", name);
	else
		snprintf(out, 160, "mentions %s", names);
}

/* Confidence in hundredths: the share of the terms that was found. */
static int find_confidence(const struct offline_plan *p)
{
	const struct find *f = &p->f;
	bool def = false, read = false;
	unsigned all = 0;
	int c;

	for (unsigned i = 0; i < p->nfindings; i++) {
		all |= p->findings[i]->terms | p->findings[i]->file->terms;
		def = def || p->findings[i]->shape >= SHAPE_DECL;
		read = read || p->findings[i]->file->was_read;
	}
	c = 90 * find_weight(f, all) / MAX(find_weight(f, ~0u), 1);
	c = def ? c : c * (f->more ? 5 : 8) / 10; /* the definition may be in the rest */
	c = read ? c : c * 8 / 10;
	return MIN(c, f->kind == TASK_REVIEW ? 30 : 90);
}

/* ---- the summary */

/* "journal_open is defined at src/journal.c:120" */
static void say_finding(struct buf *out, const struct found_line *l)
{
	char name[TERM_LEN], quote[QUOTE_MAX + 1];

	find_quote(l, quote);
	if (l->shape >= SHAPE_DECL && find_name(l, name))
		buf_addf(out, "%s is %s at %s:%d.", name,
			 l->shape == SHAPE_DEF ? "defined" : "declared", l->file->path, l->number);
	else
		buf_addf(out, "%s:%d: %s", l->file->path, l->number, quote);
}

static void say_summary(const struct offline_plan *p, struct buf *out, unsigned n)
{
	const struct find *f = &p->f;
	char names[300];

	find_names(f, ~0u, names, sizeof(names));
	if (f->nterms == 0)
		buf_adds(out, "The task holds no words that could be searched for.");
	else if (p->nfindings == 0)
		buf_addf(out, "Nothing was found for %s.", names);
	else if (f->kind == TASK_LIST)
		buf_addf(out, "%u place%s found%s. First: ", p->nfindings, WORDS_S(p->nfindings),
			 f->more ? ", and there are more" : "");
	else if (find_confidence(p) < 50)
		buf_adds(out, "I do not know; the closest match: ");
	else if (p->findings[0]->shape < SHAPE_DECL)
		buf_adds(out, "Closest match: ");
	for (unsigned i = 0; i < n; i++) {
		buf_adds(out, i == 0 ? "" : i == 1 ? "\nRelated:\n- " : "\n- ");
		say_finding(out, p->findings[i]);
	}
	buf_addf(out, "\nBased on %u search%s with %u matching line%s, and %u read%s.", f->searches,
		 f->searches == 1 ? "" : "es", f->matches, WORDS_S(f->matches), f->reads,
		 WORDS_S(f->reads));
}

/* ---- submitting */

static void submit_caveats(const struct offline_plan *p, struct jw *w, bool shortened)
{
	const struct find *f = &p->f;

	jw_array(w, "caveats");
	jw_str(w, NULL,
	       "Answered by the offline rule-based model: it matches words and lines, it does not "
	       "understand them.");
	if (!p->search && !p->read)
		jw_str(w, NULL,
		       "The tools search_codebase and read_file are missing: start the run in a "
		       "folder, with a role that may read files.");
	else if (p->nfindings == 0)
		jw_str(w, NULL, "Nothing was found; that is no proof that there is nothing.");
	if (f->kind == TASK_REVIEW)
		jw_str(w, NULL,
		       "Nothing was judged: these are places to read; a review needs a model.");
	if (f->failed > 0)
		jw_str(w, NULL, "Tool calls that failed were left out.");
	if (f->stopped)
		jw_str(w, NULL,
		       "A search was stopped before it had seen all files: a narrower task (a "
		       "folder, a file) finds more.");
	if (f->more)
		jw_str(w, NULL, "There are more matches than are listed.");
	if (shortened)
		jw_str(w, NULL, "The list was shortened to fit the output limit.");
	jw_end(w);
}

/* Arguments of submit_result with the first n findings. */
static int submit_write(const struct offline_plan *p, struct buf *args, unsigned n)
{
	char quote[QUOTE_MAX + 1], why[160];
	struct buf summary;
	struct jw w;
	int rv;

	buf_init(&summary, SUMMARY_MAX);
	say_summary(p, &summary, MIN(n, p->f.kind == TASK_LIST ? 12u : 8u));
	buf_reset(args);
	jw_init(&w, args);
	jw_object(&w, NULL);
	jw_object(&w, "output");
	jw_array(&w, "findings");
	for (unsigned i = 0; i < n; i++) {
		const struct found_line *l = p->findings[i];

		find_quote(l, quote);
		finding_why(p, l, why);
		jw_object(&w, NULL);
		jw_str(&w, "path", l->file->path);
		jw_int(&w, "line", l->number);
		jw_str(&w, "quote", quote);
		jw_str(&w, "why", why);
		jw_end(&w);
	}
	jw_end(&w);
	jw_end(&w);
	jw_strn(&w, "summary", summary.data ? summary.data : "", summary.len);
	jw_fixed(&w, "confidence", find_confidence(p), 2);
	submit_caveats(p, &w, n < p->nfindings);
	jw_end(&w);
	rv = buf_check(&summary) == AVA_ENOMEM ? AVA_ENOMEM : buf_check(args);
	buf_fini(&summary);
	return rv;
}

/* Submit the findings by submit_result, or as the last message where there is no such tool; fewer
 * of them when all do not fit the output. */
static int find_submit(struct offline_plan *p)
{
	int64_t most = p->f.b->max_tokens;
	size_t room = most > 0 ? (size_t)MIN(most, 8192) * 3 : 24576;
	struct buf args, text;
	unsigned n;
	int rv;

	findings_best(p);
	buf_init(&args, OUT_MAX);
	buf_init(&text, OUT_MAX);
	n = p->nfindings;
	while ((rv = submit_write(p, &args, n)) == 0 && args.len > room && n > 1)
		n = (n + 1) / 2;
	if (rv == 0 && offline_tool(p->f.b, "submit_result")) {
		draft_add(p->draft, NULL, "submit_result", args.data, args.len, NULL);
	} else if (rv == 0) {
		buf_addf(&text, "```json\n%s\n```", args.data);
		rv = buf_check(&text);
		if (rv == 0)
			draft_text(p->draft, text.data);
	}
	buf_fini(&text);
	buf_fini(&args);
	return rv;
}

/* Were all calls so far made in one turn? */
static bool plan_once(const struct offline_body *b)
{
	return b->calls[0].message == b->calls[b->ncalls - 1].message;
}

/* NULL: no memory. */
static struct offline_plan *plan_new(struct offline_body *b, struct offline_draft *draft)
{
	struct offline_plan *p = arena_get(&b->mem, sizeof(*p)); /* too large for the stack */

	if (!p)
		return NULL;
	p->f.b = b;
	p->draft = draft;
	p->read = offline_tool(b, "read_file");
	p->search_name = offline_tool(b, "search_codebase") ? "search_codebase" : "search_and_read";
	p->search = offline_tool(b, p->search_name);
	return find_look(&p->f) == 0 ? p : NULL;
}

int offline_look_up(struct offline_body *b, struct offline_draft *draft, const char *question,
		    struct buf *out)
{
	struct offline_call *calls = b->calls;
	struct offline_plan *p;

	/* As a run with this task, which has made the calls since the question. */
	b->task = question;
	b->calls += b->fresh;
	b->ncalls -= b->fresh;
	p = plan_new(b, draft);
	if (p && b->ncalls == 0) {
		plan_search_terms(p);
	} else if (p) {
		findings_best(p);
		say_summary(p, out, MIN(p->nfindings, 4));
	}
	b->calls = calls;
	b->ncalls += b->fresh;
	return p ? 0 : AVA_ENOMEM;
}

int offline_find(struct offline_body *b, struct offline_draft *draft)
{
	struct offline_plan *p = plan_new(b, draft);

	if (!p)
		return AVA_ENOMEM;
	if (!b->forced && !b->wrap_up && b->ncalls == 0)
		plan_first_turn(p);
	else if (!b->forced && !b->wrap_up && plan_once(b))
		plan_read_turn(p);
	return p->ncalls > 0 ? 0 : find_submit(p);
}
