/* The plan, read off the calls that were made so far:
 *
 *   none yet               search for the heaviest terms, all in one turn
 *   searched, nothing fits search once more, wider
 *   searched               read around the best lines, all in one turn
 *   read, or told to stop  submit what was found
 *
 * So a run takes two to four calls, whatever the tools return: a result can
 * change which lines are read and quoted, not what is done. A tool that is not
 * offered is not used; a failed call is skipped. Only memory can fail. */
#include "provider/offline_plan.h"

#include <ava.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "provider/offline_report.h"
#include "provider/offline_draft.h"
#include "provider/offline_review.h"

#define SEARCHES_MAX   4u /* in one turn */
#define READ_FILES_MAX 5u
#define READS_MAX      8u /* calls in one turn */
#define BEFORE         12 /* lines read before and after a hit */
#define AFTER          50
#define HEAD_LINES     40
#define NAMED_LINES    400 /* of a file that the task names */
#define RESULTS        100
#define PATTERN_MAX    1000 /* bytes; search_codebase takes no more */
#define ARGS_MAX       (128u << 10)

struct plan {
	struct offline_body *b;
	struct draft *draft;
	struct terms terms;
	struct hits hits;
	struct report report;
	const struct offline_tool *search; /* NULL: none offered */
	const char *search_name;
	unsigned ncalls; /* of this turn */
	unsigned search_turns, read_turns;
};

/* ---- calls */

static void call(struct plan *p, const char *tool, struct buf *args)
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

static void search(struct plan *p, const struct query *q)
{
	struct buf args;
	struct jw w;

	if (p->ncalls >= SEARCHES_MAX || (q->regex && !offline_tool_takes(p->search, "regex")))
		return;
	buf_init(&args, ARGS_MAX);
	jw_init(&w, &args);
	jw_object(&w, NULL);
	jw_str(&w, "pattern", q->pattern);
	if (q->regex)
		jw_bool(&w, "regex", true);
	if (q->ignore_case && offline_tool_takes(p->search, "ignore_case"))
		jw_bool(&w, "ignore_case", true);
	if (q->scope[0] != 0 && offline_tool_takes(p->search, "path"))
		jw_str(&w, "path", q->scope);
	if (q->glob[0] != 0 && offline_tool_takes(p->search, "glob"))
		jw_str(&w, "glob", q->glob);
	if (offline_tool_takes(p->search, "max_results") &&
	    p->search == &p->b->tools[OFFLINE_SEARCH])
		jw_int(&w, "max_results", RESULTS);
	jw_end(&w);
	call(p, p->search_name, &args);
}

static void read_lines(struct plan *p, const char *path, size_t len, int first, int last)
{
	const struct offline_tool *t = &p->b->tools[OFFLINE_READ];
	struct buf args;
	struct jw w;

	if (!t->offered || p->ncalls >= READS_MAX)
		return;
	buf_init(&args, ARGS_MAX);
	jw_init(&w, &args);
	jw_object(&w, NULL);
	jw_strn(&w, "path", path, len);
	if (offline_tool_takes(t, "first_line") && first > 1)
		jw_int(&w, "first_line", first);
	if (offline_tool_takes(t, "last_line"))
		jw_int(&w, "last_line", last);
	jw_end(&w);
	call(p, "read_file", &args);
}

/* ---- searching */

/* `s` with everything that means something in a regular expression escaped. */
static void add_literal(struct buf *out, const char *s)
{
	for (; *s != 0; s++) {
		if (strchr("\\^$.[]|()?*+{}", *s) != NULL)
			buf_addc(out, '\\');
		buf_addc(out, *s);
	}
}

/* Pairs of words as one name: journal_checkpoint, journalCheckpoint, "journal
 * checkpoint", and with an ending in between: "failed fsync". */
static void search_pairs(struct plan *p)
{
	const struct terms *t = &p->terms;
	struct buf pattern;

	buf_init(&pattern, PATTERN_MAX);
	for (unsigned i = 0; i < t->npairs; i++) {
		if (i > 0)
			buf_addc(&pattern, '|');
		add_literal(&pattern, t->list[t->pairs[i].a].low);
		buf_adds(&pattern, ".{0,5}");
		add_literal(&pattern, t->list[t->pairs[i].b].low);
	}
	if (t->npairs > 0 && buf_check(&pattern) == 0)
		search(p, &(struct query){pattern.data, true, true, t->scope, ""});
	buf_fini(&pattern);
}

static void search_name(struct plan *p, const struct term *t)
{
	struct query q = {t->text, false, t->kind == TERM_QUOTED, p->terms.scope, ""};

	if (t->kind == TERM_FILE) /* its lines, wherever it lies */
		q = (struct query){"[[:alnum:]]", true, false, "", t->text};
	search(p, &q);
}

/* Single words, spread over the searches that are left, so that each is
 * looked for: the k-th, and every `room`-th after it. */
static void search_words(struct plan *p, unsigned room)
{
	bool regex = offline_tool_takes(p->search, "regex");
	const struct terms *t = &p->terms;

	for (unsigned k = 0; k < room; k++) {
		struct buf pattern;
		unsigned words = 0, seen = 0;

		buf_init(&pattern, PATTERN_MAX);
		for (unsigned i = 0; i < t->n; i++) {
			if (t->list[i].kind != TERM_WORD || seen++ % room != k ||
			    (words > 0 && !regex))
				continue;
			buf_adds(&pattern, words++ > 0 ? "|" : "");
			if (regex)
				add_literal(&pattern, t->list[i].low);
			else
				buf_adds(&pattern, t->list[i].low);
		}
		if (words > 0 && buf_check(&pattern) == 0)
			search(p, &(struct query){pattern.data, words > 1, true, t->scope, ""});
		buf_fini(&pattern);
	}
}

/* Names of programs and quotes first, then pairs, then single words. */
static void search_terms(struct plan *p)
{
	const struct terms *t = &p->terms;

	for (unsigned i = 0; i < t->n; i++)
		if (t->list[i].kind != TERM_WORD)
			search_name(p, &t->list[i]);
	search_pairs(p);
	if (p->ncalls < SEARCHES_MAX)
		search_words(p, SEARCHES_MAX - p->ncalls);
}

static void search_rules(struct plan *p)
{
	const struct terms *t = &p->terms;
	struct query q = {NULL, true, false, t->scope, ""};

	for (unsigned i = 0; i < t->n && t->scope[0] == 0; i++)
		if (t->list[i].kind == TERM_FILE && q.glob[0] == 0)
			q.glob = t->list[i].text;
	q.regex = offline_tool_takes(p->search, "regex");
	for (unsigned i = 0; i < review_nsearches; i++) {
		q.pattern = q.regex ? review_searches[i].regex : review_searches[i].plain;
		search(p, &q);
	}
}

/* One more part of a name or stem into the alternatives. */
static void add_part(struct buf *any, const char *s, size_t len)
{
	char part[TERM_LEN];

	snprintf(part, sizeof(part), "%.*s", (int)len, s);
	if (any->len > 0)
		buf_addc(any, '|');
	add_literal(any, part);
}

/* Wider: everywhere, the begins of words, and the words of which names are
 * made ("journal_checkpoint"). */
static void search_again(struct plan *p)
{
	const struct terms *t = &p->terms;
	struct buf any;

	buf_init(&any, PATTERN_MAX);
	for (unsigned i = 0; i < t->n; i++) {
		const char *s = t->list[i].low, *part = s;

		for (; *s != 0; s++) {
			if (strchr("_.:>-/ ", *s) == NULL)
				continue;
			if (s - part >= 4)
				add_part(&any, part, (size_t)(s - part));
			part = s + 1;
		}
		if (s - part >= 3)
			add_part(&any, part, (size_t)utf8_prefix(part, (size_t)(s - part), 6));
	}
	if (any.len > 0 && buf_check(&any) == 0)
		search(p, &(struct query){any.data, true, true, "", ""});
	for (unsigned i = 0; i < t->n && t->scope[0] != 0 && p->ncalls < 3; i++)
		search(p, &(struct query){t->list[i].low, false, true, "", ""});
	buf_fini(&any);
}

static void say_searching(struct plan *p, const char *lead)
{
	char names[200], text[300];

	terms_names(&p->terms, ~0u, names, sizeof(names));
	snprintf(text, sizeof(text), "%s%s%s.", lead, names[0] != 0 ? " for " : "", names);
	draft_text(p->draft, text, strlen(text));
}

static void first_turn(struct plan *p)
{
	const char *scope = p->terms.scope;

	if (p->search != NULL && p->terms.kind == TASK_REVIEW)
		search_rules(p);
	else if (p->search != NULL)
		search_terms(p);
	if (scope[0] != 0 && p->terms.file_mask != 0)
		read_lines(p, scope, strlen(scope), 1, NAMED_LINES);
	else if (p->search == NULL)
		for (unsigned i = 0; i < p->terms.n; i++)
			if (p->terms.list[i].kind == TERM_FILE)
				read_lines(p, p->terms.list[i].text, strlen(p->terms.list[i].text),
					   1, NAMED_LINES);
	if (p->ncalls > 0)
		say_searching(p, p->terms.kind == TASK_REVIEW ? "Searching by the rules of a review"
							      : "Searching");
}

/* ---- reading */

/* Best file that was neither read nor taken; -1: none good enough. */
static int next_file(const struct plan *p, const bool *taken, int least)
{
	int best = -1;

	for (unsigned i = 0; i < p->hits.nfiles; i++) {
		const struct hit_file *f = &p->hits.files[i];

		if (!taken[i] && !f->was_read && f->best >= 0 && f->score >= least &&
		    (best < 0 || f->score > p->hits.files[best].score))
			best = (int)i;
	}
	return best;
}

static void read_around(struct plan *p, const struct hit_file *f, bool with_head)
{
	int line = p->hits.lines[f->best].line, first = MAX(line - BEFORE, 1), other = 0;
	int lowest = first;

	read_lines(p, f->path.s, f->path.len, first, line + AFTER);
	if (f->second >= 0 && p->hits.lines[f->second].score * 2 > p->hits.lines[f->best].score)
		other = p->hits.lines[f->second].line;
	if (other > line + AFTER || (other > 0 && other + AFTER < first)) {
		lowest = MIN(lowest, MAX(other - BEFORE, 1));
		read_lines(p, f->path.s, f->path.len, MAX(other - BEFORE, 1), other + AFTER);
	}
	if (with_head && lowest > HEAD_LINES)
		read_lines(p, f->path.s, f->path.len, 1, HEAD_LINES);
}

static void read_turn(struct plan *p)
{
	bool taken[HITS_MAX_FILES] = {false};
	int at, least = 1;
	unsigned files = 0;
	char text[80];

	while (files < READ_FILES_MAX && p->ncalls < READS_MAX &&
	       (at = next_file(p, taken, least)) >= 0) {
		taken[at] = true;
		if (files++ == 0)
			least = MAX(p->hits.files[at].score / 3, 1);
		read_around(p, &p->hits.files[at], files <= 2 && p->terms.kind == TASK_HOW);
	}
	if (p->ncalls == 0)
		return;
	snprintf(text, sizeof(text), "Reading the best %s.", p->ncalls == 1 ? "place" : "places");
	draft_text(p->draft, text, strlen(text));
}

/* In a review the suspicious lines decide what is read. */
static void score_suspicions(struct plan *p)
{
	struct hits *h = &p->hits;
	const char *why;

	for (unsigned i = 0; i < h->nfiles; i++)
		h->files[i].score = 0, h->files[i].best = h->files[i].second = -1;
	for (unsigned i = 0; i < h->nlines; i++) {
		struct hit_file *f = &h->files[h->lines[i].file];

		h->lines[i].score = review_line(&h->lines[i], &why);
		if (h->lines[i].score == 0)
			continue;
		f->score += f->test ? 1 : h->lines[i].score;
		if (f->best < 0 || h->lines[i].score > h->lines[f->best].score)
			f->best = (int)i;
	}
	/* The last suspicion far from the best one: the second place to read. */
	for (unsigned i = 0; i < h->nlines; i++) {
		struct hit_file *f = &h->files[h->lines[i].file];

		if (h->lines[i].score > 0 && h->lines[i].line > h->lines[f->best].line + AFTER)
			f->second = (int)i;
	}
}

/* ---- submitting */

static int submit(struct plan *p)
{
	bool no_tools = p->search == NULL && !p->b->tools[OFFLINE_READ].offered;
	size_t room = p->b->max_tokens > 0 ? (size_t)MIN(p->b->max_tokens, 8192) * 3 : 24576;
	struct buf args;
	int rv;

	if (p->terms.kind == TASK_REVIEW)
		review_find(&p->report, &p->hits);
	else
		report_find(&p->report, &p->hits, &p->terms);
	buf_init(&args, ARGS_MAX);
	rv = report_write(&args, &p->report, &p->hits, &p->terms, no_tools, room);
	if (rv == 0 && p->b->tools[OFFLINE_SUBMIT].offered) {
		draft_call(p->draft, NULL, "submit_result", args.data, args.len, NULL);
	} else if (rv == 0) { /* the result as the last message */
		struct buf text;

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

static void count_turns(struct plan *p)
{
	unsigned searched = 0, was_read = 0; /* message numbers, from 1 */

	for (unsigned i = 0; i < p->b->ncalls; i++) {
		const struct offline_call *c = &p->b->calls[i];

		if (c->tool == OFFLINE_READ && c->message != searched && c->message != was_read) {
			p->read_turns++;
			was_read = c->message;
		} else if ((c->tool == OFFLINE_SEARCH || c->tool == OFFLINE_SEARCH_READ) &&
			   c->message != searched) {
			p->search_turns++;
			searched = c->message;
		}
	}
}

static bool any_fits(const struct plan *p)
{
	for (unsigned i = 0; i < p->hits.nfiles; i++)
		if (p->hits.files[i].best >= 0)
			return true;
	return false;
}

static void next_turn(struct plan *p)
{
	if (p->search_turns == 0 && p->read_turns == 0)
		first_turn(p);
	else if (p->read_turns > 0)
		return;
	else if (any_fits(p))
		read_turn(p);
	else if (p->search_turns == 1 && p->search != NULL && p->terms.kind != TASK_REVIEW) {
		search_again(p);
		if (p->ncalls > 0)
			say_searching(p, "Nothing yet, searching wider");
	}
}

int offline_plan(struct offline_body *b, struct draft *draft)
{
	struct plan *p = arena_get(&b->mem, sizeof(*p)); /* too large for the stack */
	int rv;

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
	terms_read(&p->terms, b->task, b->task_len);
	count_turns(p);
	rv = hits_read(&p->hits, b, &p->terms);
	if (rv != 0)
		return rv;
	if (p->terms.kind == TASK_REVIEW)
		score_suspicions(p);
	if (!b->forced && !b->wrap_up)
		next_turn(p);
	return p->ncalls > 0 ? 0 : submit(p);
}
