/* Findings are chosen by score and never made up: each is a line that stands
 * in a tool result, quoted as it stands there. The summary names them with
 * path:line; the confidence grows with the share of the task's terms that were
 * found, and never passes 0.9, since words are matched, not understood. Only
 * memory can fail. */
#include "provider/offline_report.h"

#include <ava.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "codec/json.h"
#include "codec/utf8.h"

#define QUOTE_MAX     200u
#define SENTENCE_MAX  240u
#define COMMENT_LINES 40u
#define SUMMARY_MAX   (16u << 10)

/* ---- the list */

static bool same_place(const struct hit_line *a, const struct hit_line *b)
{
	return a->file == b->file && a->line == b->line;
}

void report_add(struct report *r, const struct hits *h, unsigned line, int rank, const char *why)
{
	unsigned at = r->n;

	for (unsigned i = 0; i < r->n; i++)
		if (same_place(&h->lines[r->list[i].line], &h->lines[line]))
			return;
	while (at > 0 && r->list[at - 1].rank < rank)
		at--;
	if (r->n == REPORT_MAX)
		r->left_out++;
	if (at == REPORT_MAX)
		return;
	r->n = MIN(r->n + 1, REPORT_MAX);
	memmove(&r->list[at + 1], &r->list[at], (r->n - at - 1) * sizeof(r->list[0]));
	r->list[at] = (struct finding){.line = line, .rank = rank};
	snprintf(r->list[at].why, sizeof(r->list[at].why), "%s", why);
}

/* The quote of a line: without the space around it, at most QUOTE_MAX bytes,
 * whole characters. Empty when there is nothing worth quoting. */
static struct slice quote_of(const struct hit_line *l)
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

static bool worth_quoting(const struct hit_line *l)
{
	struct slice q = quote_of(l);
	size_t letters = 0;

	for (size_t i = 0; i < q.len; i++)
		letters += isalnum((unsigned char)q.s[i]) || (unsigned char)q.s[i] >= 0x80;
	return letters >= 3;
}

static void explain(const struct hit_line *l, const struct terms *t, char *why, size_t size)
{
	struct slice name = hits_name(l->text, l->len);
	char names[120];

	terms_names(t, l->mask, names, sizeof(names));
	if (l->shape == SHAPE_DEF && name.len > 0 && name.len < 64)
		snprintf(why, size, "defines %.*s", (int)name.len, name.s);
	else if (l->shape == SHAPE_DECL && name.len > 0 && name.len < 64 && l->text[0] != '#')
		snprintf(why, size, "declares %.*s", (int)name.len, name.s);
	else if (l->shape == SHAPE_COMMENT)
		snprintf(why, size, "a comment about %s", names);
	else
		snprintf(why, size, "mentions %s", names);
}

/* Chosen lines of one file so far. */
static unsigned from_file(const struct report *r, const struct hits *h, unsigned file)
{
	unsigned n = 0;

	for (unsigned i = 0; i < r->n; i++)
		n += h->lines[r->list[i].line].file == file;
	return n;
}

static bool chosen(const struct report *r, const struct hits *h, const struct hit_line *l)
{
	for (unsigned i = 0; i < r->n; i++)
		if (same_place(&h->lines[r->list[i].line], l))
			return true;
	return false;
}

/* Of two with the same score the one whose neighbours are known. */
static bool better(const struct hit_line *a, const struct hit_line *b)
{
	return a->score > b->score || (a->score == b->score && a->read && !b->read);
}

/* Best line that may still be added; -1: none. One pass a finding: there are
 * at most REPORT_MAX. */
static int next_best(const struct report *r, const struct hits *h, unsigned per_file, int least)
{
	int best = -1;

	for (unsigned i = 0; i < h->nlines; i++) {
		const struct hit_line *l = &h->lines[i];

		if (l->score < least || (best >= 0 && !better(l, &h->lines[best])) ||
		    !worth_quoting(l) || from_file(r, h, l->file) >= per_file || chosen(r, h, l))
			continue;
		best = (int)i;
	}
	return best;
}

void report_find(struct report *r, const struct hits *h, const struct terms *t)
{
	unsigned max = t->kind == TASK_LIST ? REPORT_MAX : t->kind == TASK_HOW ? 8 : 6;
	unsigned per_file = t->kind == TASK_LIST || t->file_mask != 0 ? REPORT_MAX : 3;
	char why[160];
	int best, least = 1;

	while (r->n < max && (best = next_best(r, h, per_file, least)) >= 0) {
		if (r->n == 0)
			least = MAX(h->lines[best].score / (t->kind == TASK_LIST ? 4 : 3), 1);
		explain(&h->lines[best], t, why, sizeof(why));
		report_add(r, h, (unsigned)best, h->lines[best].score, why);
	}
	if (r->n == max && next_best(r, h, per_file, least) >= 0)
		r->left_out++;
}

/* ---- the comment above a definition */

static bool comment_line(const struct hit_line *l)
{
	const char *s = l->text;
	size_t n = l->len;

	while (n > 0 && isspace((unsigned char)*s))
		s++, n--;
	if (n > 0 && *s == '*')
		return true;
	return n > 1 && (hits_shape(s, n) == SHAPE_COMMENT || memcmp(s, "//", 2) == 0 ||
			 memcmp(s, "/*", 2) == 0 || memcmp(s, "# ", 2) == 0);
}

/* A prose line inside a block comment whose lines carry no mark. */
static bool ends_comment(const struct hit_line *l)
{
	return l->len >= 2 && memmem(l->text, l->len, "*/", 2) != NULL;
}

static bool opens_comment(const struct hit_line *l)
{
	return memmem(l->text, l->len, "/*", 2) != NULL;
}

/* Index of the first line of the comment that ends just above `at`, or `at`. */
static unsigned comment_start(const struct hits *h, unsigned at)
{
	const struct hit_line *l = &h->lines[at];
	unsigned i = at;
	bool block = false;

	while (l->read && i > 0 && at - i < COMMENT_LINES) {
		const struct hit_line *p = &h->lines[i - 1];

		if (!p->read || p->file != l->file || p->line != h->lines[i].line - 1)
			return block ? at : i;
		if (i == at && ends_comment(p) && !opens_comment(p))
			block = true;
		else if (!block && !comment_line(p))
			return i;
		i--;
		if (block && opens_comment(p))
			return i;
	}
	return block ? at : i;
}

/* Index after the comment lines that begin at `at`. */
static unsigned comment_end(const struct hits *h, unsigned at)
{
	const struct hit_line *l = &h->lines[at];
	unsigned i = at + 1;

	while (l->read && !ends_comment(&h->lines[i - 1]) && i < h->nlines &&
	       i - at < COMMENT_LINES && h->lines[i].read && h->lines[i].file == l->file &&
	       h->lines[i].line == h->lines[i - 1].line + 1 && comment_line(&h->lines[i]))
		i++;
	return i;
}

/* Text of comment lines without their marks, up to the first full stop. */
static size_t sentence(const struct hits *h, unsigned from, unsigned to, char *out)
{
	size_t n = 0;

	for (unsigned i = from; i < to; i++) {
		const char *s = h->lines[i].text, *end = s + h->lines[i].len;

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
				return 0; /* too long to be said in one breath */
			out[n++] = *s;
			if (*s == '.' && n > 12 && (s + 1 == end || s[1] == ' '))
				return n;
		}
	}
	return n;
}

/* ---- the summary */

struct summary {
	struct buf out;
	const struct report *r;
	const struct hits *h;
	const struct terms *t;
	unsigned shown; /* findings that are listed */
};

static void place(struct summary *s, unsigned k)
{
	const struct hit_line *l = &s->h->lines[s->r->list[k].line];
	struct slice path = s->h->files[l->file].path;

	buf_add(&s->out, path.s, path.len);
	buf_addf(&s->out, ":%d", l->line);
}

/* "journal_open is defined at src/journal.c:120" */
static void say(struct summary *s, unsigned k)
{
	const struct finding *f = &s->r->list[k];
	const struct hit_line *l = &s->h->lines[f->line];
	struct slice name = hits_name(l->text, l->len), q = quote_of(l);
	bool named = name.len > 0 && name.len < 64 && l->text[0] != '#';
	char text[SENTENCE_MAX + 2];
	size_t n;

	if (s->t->kind != TASK_REVIEW && named && l->shape >= SHAPE_DECL) {
		buf_add(&s->out, name.s, name.len);
		buf_adds(&s->out, l->shape == SHAPE_DEF ? " is defined at " : " is declared at ");
		place(s, k);
		return;
	}
	place(s, k);
	n = l->shape == SHAPE_COMMENT ? sentence(s->h, f->line, comment_end(s->h, f->line), text)
				      : 0;
	/* Not when it begins in the middle of a sentence. */
	if (s->t->kind != TASK_REVIEW && n >= 12 && !islower((unsigned char)text[0])) {
		buf_adds(&s->out, " says: \"");
		buf_add(&s->out, text, n);
		buf_addc(&s->out, '"');
		return;
	}
	buf_adds(&s->out, ": ");
	if (s->t->kind == TASK_REVIEW)
		buf_addf(&s->out, "%s", f->why);
	else
		buf_add(&s->out, q.s, q.len);
}

/* What the comment above a definition says, in its first sentence. */
static void say_comment(struct summary *s, unsigned k, const char *lead)
{
	unsigned line = s->r->list[k].line, from = comment_start(s->h, line);
	char text[SENTENCE_MAX + 2];
	size_t n = from < line ? sentence(s->h, from, line, text) : 0;

	if (n < 12 || s->h->lines[line].shape < SHAPE_DECL)
		return;
	buf_adds(&s->out, lead);
	buf_addc(&s->out, '"');
	buf_add(&s->out, text, n);
	buf_addf(&s->out, "\" (line %d)", s->h->lines[from].line);
}

static void say_rest(struct summary *s, const char *lead)
{
	if (s->shown < 2)
		return;
	buf_addf(&s->out, "\n%s", lead);
	for (unsigned k = 1; k < s->shown; k++) {
		buf_adds(&s->out, "\n- ");
		say(s, k);
		if (s->t->kind == TASK_HOW)
			say_comment(s, k, ": ");
	}
}

static void say_effort(struct summary *s)
{
	unsigned files = 0;

	for (unsigned i = 0; i < s->h->nfiles; i++)
		files += s->h->files[i].was_read;
	buf_addf(&s->out,
		 "\nBased on %u search%s (%u matching line%s in %u file%s) and %u file%s read.",
		 s->h->searches, s->h->searches == 1 ? "" : "es", s->h->matches,
		 s->h->matches == 1 ? "" : "s", s->h->nfiles, s->h->nfiles == 1 ? "" : "s", files,
		 files == 1 ? "" : "s");
}

static void say_nothing(struct summary *s, bool no_tools)
{
	char names[300];

	terms_names(s->t, ~0u, names, sizeof(names));
	if (no_tools)
		buf_adds(&s->out, "Nothing could be looked up: this run has no tool to search or "
				  "read files.");
	else if (s->t->kind == TASK_REVIEW)
		buf_adds(&s->out, "The rules of this review found nothing suspicious.");
	else if (s->t->n == 0)
		buf_adds(&s->out, "The task holds no words that could be searched for.");
	else
		buf_addf(&s->out, "Nothing was found for %s.", names);
	if (!no_tools)
		say_effort(s);
}

static void summarise(struct summary *s, bool no_tools)
{
	bool more = s->r->left_out > 0 || s->h->more;

	if (s->r->n == 0) {
		say_nothing(s, no_tools);
		return;
	}
	switch (s->t->kind) {
	case TASK_REVIEW:
		buf_addf(&s->out, "%u place%s worth a look. First: ", s->r->n,
			 s->r->n == 1 ? "" : "s");
		break;
	case TASK_LIST:
		buf_addf(&s->out, "%u place%s found%s. First: ", s->r->n, s->r->n == 1 ? "" : "s",
			 more ? ", and there are more" : "");
		break;
	case TASK_HOW:
		buf_adds(&s->out, "Start here: ");
		break;
	case TASK_FIND:
		if (s->h->lines[s->r->list[0].line].shape < SHAPE_DECL)
			buf_adds(&s->out, "Closest match: ");
		break;
	}
	say(s, 0);
	if (s->out.len < 2 || (memcmp(s->out.data + s->out.len - 2, ".\"", 2) != 0 &&
			       s->out.data[s->out.len - 1] != '.'))
		buf_addc(&s->out, '.');
	if (s->t->kind != TASK_REVIEW)
		say_comment(s, 0, " The comment above it says: ");
	say_rest(s, s->t->kind == TASK_REVIEW || s->t->kind == TASK_LIST ? "Then:" : "Related:");
	say_effort(s);
}

/* ---- how sure */

static int weight_of(const struct terms *t, unsigned mask)
{
	int w = 0;

	for (unsigned i = 0; i < t->n; i++)
		w += mask & 1u << i ? t->list[i].weight : 0;
	return w;
}

/* Hundredths. */
static int confidence(const struct report *r, const struct hits *h, const struct terms *t)
{
	unsigned all = 0, together = 0;
	bool def = false, read = false;
	int total = weight_of(t, ~0u), c;

	if (r->n == 0)
		return 0;
	if (t->kind == TASK_REVIEW)
		return h->reads > 0 ? 50
				    : 35; /* the rules see what they see; most faults they do not */
	for (unsigned i = 0; i < r->n; i++) {
		const struct hit_line *l = &h->lines[r->list[i].line];
		unsigned mask = l->mask | h->files[l->file].path_mask;

		all |= mask;
		if (weight_of(t, mask) > weight_of(t, together))
			together = mask;
		def = def || l->shape >= SHAPE_DECL;
		read = read || l->read || h->files[l->file].was_read;
	}
	/* Terms that stand together say more than the same ones far apart. */
	c = (45 * weight_of(t, all) + 45 * weight_of(t, together)) / MAX(total, 1);
	c = def ? c : c * 8 / 10;
	c = read ? c : c * 8 / 10;
	return MIN(c, 90);
}

/* ---- arguments of submit_result */

static void write_findings(struct jw *w, const struct report *r, const struct hits *h, unsigned n)
{
	jw_object(w, "output");
	jw_array(w, "findings");
	for (unsigned i = 0; i < n; i++) {
		const struct hit_line *l = &h->lines[r->list[i].line];
		struct slice path = h->files[l->file].path, q = quote_of(l);

		jw_object(w, NULL);
		jw_strn(w, "path", path.s, path.len);
		jw_int(w, "line", l->line);
		jw_strn(w, "quote", q.s, q.len);
		jw_str(w, "why", r->list[i].why);
		jw_end(w);
	}
	jw_end(w);
	jw_end(w);
}

static void write_caveats(struct jw *w, const struct report *r, const struct hits *h,
			  const struct terms *t, bool no_tools, bool shortened)
{
	char text[200];

	jw_array(w, "caveats");
	jw_str(w, NULL,
	       "Answered by the offline rule-based model: it matches words and lines, it does not "
	       "understand them.");
	if (no_tools)
		jw_str(w, NULL,
		       "The tools search_codebase and read_file are missing: start the run in a "
		       "folder, with a role that may read files.");
	else if (r->n == 0)
		jw_str(w, NULL, "Nothing was found; that is no proof that there is nothing.");
	if (t->kind == TASK_REVIEW && !no_tools)
		jw_str(w, NULL,
		       "A review by rules sees only known patterns (unsafe calls, unchecked "
		       "allocations, notes, long functions).");
	if (h->failed > 0) {
		snprintf(text, sizeof(text), "%u tool call%s failed and %s left out.", h->failed,
			 h->failed == 1 ? "" : "s", h->failed == 1 ? "was" : "were");
		jw_str(w, NULL, text);
	}
	if (h->more || r->left_out > 0)
		jw_str(w, NULL, "There are more matches than are listed.");
	if (shortened)
		jw_str(w, NULL, "The list was shortened to fit the output limit.");
	jw_end(w);
}

static int write_with(struct buf *args, const struct report *r, const struct hits *h,
		      const struct terms *t, bool no_tools, unsigned n)
{
	struct summary s = {
		.r = r, .h = h, .t = t, .shown = MIN(n, t->kind == TASK_LIST ? 12u : 8u)};
	struct jw w;
	int rv;

	buf_init(&s.out, SUMMARY_MAX);
	summarise(&s, no_tools);
	buf_reset(args);
	jw_init(&w, args);
	jw_object(&w, NULL);
	write_findings(&w, r, h, n);
	jw_strn(&w, "summary", s.out.data != NULL ? s.out.data : "", s.out.len);
	jw_fixed(&w, "confidence", confidence(r, h, t), 2);
	write_caveats(&w, r, h, t, no_tools, n < r->n);
	jw_end(&w);
	rv = buf_check(&s.out) == AVA_ENOMEM ? AVA_ENOMEM : buf_check(args);
	buf_fini(&s.out);
	return rv;
}

int report_write(struct buf *args, const struct report *r, const struct hits *h,
		 const struct terms *t, bool no_tools, size_t max_bytes)
{
	unsigned n = r->n;
	int rv = write_with(args, r, h, t, no_tools, n);

	while (rv == 0 && args->len > max_bytes && n > 1) {
		n = (n + 1) / 2;
		rv = write_with(args, r, h, t, no_tools, n);
	}
	return rv;
}
