/* Tool results are cut into lines ("path:LINE:text" of searches, "LINE\ttext"
 * of read_file); then one pass per term over the lower-case text marks the
 * lines it stands in, so that a megabyte costs milliseconds. Lines that fit no
 * form are skipped, so a result may hold anything. Only memory can fail. */
#include "provider/offline_hits.h"

#include <ava.h>
#include <ctype.h>
#include <limits.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"

#define FAR_LINES 60 /* further apart than this: two places of a file */
#define LONG_LINE 250u
#define TASK_RUN  28u /* bytes of the task that make a line the task */

/* ---- the shape of a line of source */

static bool starts(const char *s, size_t len, const char *word)
{
	size_t n = strlen(word);

	return len >= n && memcmp(s, word, n) == 0;
}

static bool is_comment(const char *s, size_t len)
{
	static const char *const marks[] = {"//",  "/*",  "* ",   "*/",    "# ",
					    "-- ", ";; ", "<!--", "\"\"\""};

	for (size_t i = 0; i < ARRAY_LEN(marks); i++)
		if (starts(s, len, marks[i]))
			return true;
	return len == 1 && (*s == '*' || *s == '#');
}

static bool keyword_def(const char *s, size_t len)
{
	static const char *const words[] = {
		"struct ",   "enum ",      "union ",   "typedef ",   "class ",         "interface ",
		"def ",      "async def ", "func ",    "fn ",        "pub ",           "function ",
		"export ",   "#define ",   "impl ",    "trait ",     "module ",        "type ",
		"abstract ", "public ",    "private ", "protected ", "async function "};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (starts(s, len, words[i]))
			return true;
	return false;
}

/* "int pool_drain(struct pool *p)" at the left edge. */
static bool c_signature(const char *s, size_t len)
{
	static const char *const not_these[] = {"if",   "for",  "while", "switch", "return",
						"else", "case", "do",    "sizeof", "assert"};
	const char *paren = memchr(s, '(', len);
	size_t n;

	if (paren == NULL || !(isalpha((unsigned char)*s) || *s == '_'))
		return false;
	n = (size_t)(paren - s);
	if (memchr(s, '=', n) != NULL || memchr(s, '"', n) != NULL || memchr(s, ' ', n) == NULL)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(not_these); i++) {
		size_t w = strlen(not_these[i]);

		if (starts(s, len, not_these[i]) && (s[w] == ' ' || s[w] == '('))
			return false;
	}
	for (size_t i = 0; i < n; i++)
		if (strchr(".,!?'`|", s[i]) != NULL)
			return false; /* prose */
	return true;
}

enum line_shape hits_shape(const char *s, size_t len)
{
	bool indented = len > 0 && (*s == ' ' || *s == '\t'), ended;

	while (len > 0 && (*s == ' ' || *s == '\t'))
		s++, len--;
	while (len > 0 && isspace((unsigned char)s[len - 1]))
		len--;
	if (len < 3)
		return SHAPE_TEXT;
	if (starts(s, len, "# ") || starts(s, len, "## ") || starts(s, len, "### "))
		return indented ? SHAPE_COMMENT
				: SHAPE_DECL; /* a heading, or a comment of scripts */
	if (is_comment(s, len))
		return SHAPE_COMMENT;
	ended = s[len - 1] == ';';
	if (starts(s, len, "#define ") && memchr(s + 8, ' ', len - 8) == NULL)
		return SHAPE_TEXT; /* an include guard */
	if (keyword_def(s, len)) {
		if (starts(s, len, "struct ") || starts(s, len, "enum ") ||
		    starts(s, len, "union "))
			return s[len - 1] == '{' && !memchr(s, '=', len) ? SHAPE_DEF
			       : !indented && memchr(s, '(', len) ? (ended ? SHAPE_DECL : SHAPE_DEF)
								  : SHAPE_TEXT;
		return (ended && !starts(s, len, "typedef ")) || *s == '#' ? SHAPE_DECL : SHAPE_DEF;
	}
	if (!indented && c_signature(s, len))
		return ended ? SHAPE_DECL : SHAPE_DEF;
	return SHAPE_TEXT;
}

static bool name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$';
}

struct slice hits_name(const char *s, size_t len)
{
	const char *end = s + len, *paren = memchr(s, '(', len), *p;

	if (starts(s, len, "#define ")) {
		for (p = s + 8; p < end && name_char(*p); p++)
			;
		return (struct slice){s + 8, (size_t)(p - s - 8)};
	}
	if (paren != NULL) {
		for (p = paren; p > s && p[-1] == ' '; p--)
			;
		end = p;
	} else { /* "struct pool {": the last word before the brace */
		for (p = s; p < end && strchr("{:=;<", *p) == NULL; p++)
			;
		end = p;
		while (end > s && !name_char(end[-1]))
			end--;
	}
	for (p = end; p > s && name_char(p[-1]); p--)
		;
	return (struct slice){p, (size_t)(end - p)};
}

/* ---- cutting results into lines */

static bool has_part(struct slice path, const char *part)
{
	return memmem(path.s, path.len, part, strlen(part)) != NULL;
}

static bool ends_with(struct slice path, const char *tail)
{
	size_t n = strlen(tail);

	return path.len >= n && memcmp(path.s + path.len - n, tail, n) == 0;
}

static unsigned mask_of_path(const struct terms *t, struct slice path)
{
	char low[512];
	size_t n = MIN(path.len, sizeof(low));
	unsigned mask = 0;

	for (size_t i = 0; i < n; i++)
		low[i] = (char)tolower((unsigned char)path.s[path.len - n + i]);
	for (unsigned i = 0; i < t->n; i++)
		if (memmem(low, n, t->list[i].low, t->list[i].len) != NULL)
			mask |= 1u << i;
	return mask;
}

/* Index of the file, -1 when there are too many. */
static int file_of(struct hits *h, const struct terms *t, struct slice path)
{
	struct hit_file *f;

	for (unsigned i = h->nfiles; i > 0; i--) { /* mostly the newest */
		f = &h->files[i - 1];
		if (f->path.len == path.len && memcmp(f->path.s, path.s, path.len) == 0)
			return (int)i - 1;
	}
	if (h->nfiles == HITS_MAX_FILES)
		return -1;
	f = &h->files[h->nfiles++];
	*f = (struct hit_file){.path = path, .best = -1, .second = -1};
	f->path_mask = mask_of_path(t, path);
	f->test = has_part(path, "test") || has_part(path, "bench/") || has_part(path, "golden") ||
		  has_part(path, "example");
	f->doc = ends_with(path, ".md") || ends_with(path, ".txt") || ends_with(path, ".rst") ||
		 ends_with(path, "LICENSE") || has_part(path, "CHANGELOG");
	return (int)h->nfiles - 1;
}

static void add_line(struct hits *h, int file, int number, const char *text, size_t len, bool read)
{
	if (h->nlines == h->cap || file < 0)
		return;
	h->lines[h->nlines++] = (struct hit_line){
		.text = text,
		.len = (unsigned)MIN(len, (size_t)UINT_MAX),
		.line = number,
		.file = (unsigned short)file,
		.read = read,
	};
}

/* Digits at s; 0 when there are none or too many. */
static int number_at(const char *s, const char *end, const char **after)
{
	long n = 0;
	const char *p = s;

	while (p < end && isdigit((unsigned char)*p) && n < INT_MAX / 10)
		n = n * 10 + (*p++ - '0');
	*after = p;
	return p > s ? (int)n : 0;
}

/* path:LINE:text */
static void search_line(struct hits *h, const struct terms *t, const char *s, size_t len)
{
	const char *end = s + len, *colon = s, *after;
	int n, file;

	if (starts(s, len, "no matches for "))
		return;
	if (memmem(s, len, "there are more", 14) != NULL)
		h->more = true;
	while ((colon = memchr(colon, ':', (size_t)(end - colon))) != NULL) {
		n = number_at(++colon, end, &after);
		if (n == 0 || after == end || *after != ':')
			continue;
		if (colon - 1 == s)
			return;
		file = file_of(h, t, (struct slice){s, (size_t)(colon - 1 - s)});
		add_line(h, file, n, after + 1, (size_t)(end - after - 1), false);
		h->matches += file >= 0;
		return;
	}
}

/* "path (lines A-B of N)" */
static int read_header(struct hits *h, const struct terms *t, const char *s, size_t len)
{
	const char *at = memmem(s, len, " (lines ", 8);
	int file;

	if (at == NULL || at == s)
		return -1;
	file = file_of(h, t, (struct slice){s, (size_t)(at - s)});
	if (file >= 0)
		h->files[file].was_read = true;
	return file;
}

static void cut_lines(struct hits *h, const struct terms *t, const char *text, size_t len,
		      bool read)
{
	const char *end = text + len, *s = text, *nl, *after;
	int file = -1, n;

	for (; s < end; s = nl + 1) {
		nl = memchr(s, '\n', (size_t)(end - s));
		if (nl == NULL)
			nl = end;
		if (!read) {
			search_line(h, t, s, (size_t)(nl - s));
		} else if (file < 0) {
			file = read_header(h, t, s, (size_t)(nl - s));
			if (file < 0)
				return;
		} else {
			n = number_at(s, nl, &after);
			if (n > 0 && after < nl && *after == '\t')
				add_line(h, file, n, after + 1, (size_t)(nl - after - 1), true);
		}
	}
}

/* ---- which terms stand where */

static bool word_starts(const char *text, const char *at)
{
	unsigned char before = at > text ? (unsigned char)at[-1] : ' ';

	return !isalpha(before) || (islower(before) && isupper((unsigned char)*at));
}

/* Mark the lines from `first` on whose text holds term k. `low` is the lower
 * case copy of `text`. Lines stand in the order of the text. */
static void mark_term(struct hits *h, const struct terms *t, unsigned k, unsigned first,
		      const char *text, const char *low, size_t len)
{
	const struct term *term = &t->list[k];
	const char *p = low;
	unsigned i = first;

	while ((p = memmem(p, (size_t)(low + len - p), term->low, term->len)) != NULL) {
		const char *at = text + (p - low);

		while (i < h->nlines && h->lines[i].text + h->lines[i].len < at + term->len)
			i++;
		if (i == h->nlines)
			return;
		if (at >= h->lines[i].text && (term->kind != TERM_WORD || word_starts(text, at)))
			h->lines[i].mask |= 1u << k;
		p++;
	}
}

static int add_result(struct hits *h, struct offline_body *b, const struct terms *t,
		      const struct offline_call *c)
{
	char *text = arena_get(&b->mem, c->result.len + 1), *low;
	unsigned first = h->nlines;
	size_t len;

	if (text == NULL)
		return AVA_ENOMEM;
	len = jscan_unescape(c->result, text);
	low = arena_get(&b->mem, len + 1);
	if (low == NULL)
		return AVA_ENOMEM;
	for (size_t i = 0; i < len; i++)
		low[i] = text[i] >= 'A' && text[i] <= 'Z' ? (char)(text[i] | 32) : text[i];
	cut_lines(h, t, text, len, c->tool == OFFLINE_READ);
	for (unsigned k = 0; k < t->n; k++)
		mark_term(h, t, k, first, text, low, len);
	return 0;
}

/* ---- scores */

#define RARE_LINES   20
#define COMMON_LINES 60

/* A word that stands everywhere says little about a line. */
static void weigh_terms(struct hits *h, const struct terms *t)
{
	unsigned count[TERMS_MAX] = {0};

	for (unsigned i = 0; i < h->nlines; i++)
		for (unsigned k = 0; k < t->n; k++)
			count[k] += !h->lines[i].read && (h->lines[i].mask & 1u << k) != 0;
	for (unsigned k = 0; k < t->n; k++) {
		int w = t->list[k].weight;

		h->weight[k] = count[k] > COMMON_LINES ? w
			       : count[k] > RARE_LINES ? 2 * w
						       : 2 * w + 2;
	}
}

static int weight_of(const struct hits *h, const struct terms *t, unsigned mask)
{
	int w = 0;

	for (unsigned i = 0; i < t->n; i++)
		w += mask & 1u << i ? h->weight[i] : 0;
	return w;
}

static int pair_bonus(const struct terms *t, unsigned mask)
{
	for (unsigned i = 0; i < t->npairs; i++) {
		unsigned both = 1u << t->pairs[i].a | 1u << t->pairs[i].b;

		if ((mask & both) == both)
			return 6;
	}
	return 0;
}

/* Terms in the name a line introduces weigh more than in its arguments. */
static int name_bonus(const struct hits *h, const struct terms *t, const struct hit_line *l)
{
	struct slice name = hits_name(l->text, l->len);
	unsigned mask = mask_of_path(t, name) & l->mask;
	int bonus = name.len > 0 && mask != 0 ? 4 + weight_of(h, t, mask) : 0;

	for (unsigned i = 0; i < t->n; i++) /* the very name that was asked for */
		if ((mask & 1u << i) != 0 && t->list[i].kind != TERM_WORD &&
		    t->list[i].len == name.len)
			bonus += 8;
	return bonus;
}

static int shape_bonus(const struct hits *h, const struct terms *t, const struct hit_line *l)
{
	switch ((enum line_shape)l->shape) {
	case SHAPE_DEF:
		return 4 + name_bonus(h, t, l);
	case SHAPE_DECL:
		return 2 + name_bonus(h, t, l) / 2;
	case SHAPE_COMMENT:
		return t->kind == TASK_HOW ? 4 : 2;
	case SHAPE_TEXT:
		break;
	}
	return 0;
}

/* The question itself, kept somewhere in the tree, answers nothing. */
static bool is_task(const struct offline_body *b, const struct hit_line *l)
{
	return b->task_len >= TASK_RUN && memmem(l->text, l->len, b->task, TASK_RUN) != NULL;
}

static int score_line(const struct hits *h, const struct offline_body *b, const struct terms *t,
		      struct hit_line *l)
{
	const struct hit_file *f = &h->files[l->file];
	int score;

	/* Documents define nothing, however much their words look like code. */
	l->shape = (unsigned char)(f->doc ? SHAPE_TEXT : hits_shape(l->text, l->len));
	if (l->shape == SHAPE_DEF && ends_with(f->path, ".h") && l->text[l->len - 1] != '{' &&
	    memchr(l->text, '(', l->len) != NULL)
		l->shape = SHAPE_DECL; /* a prototype that goes on in the next line */
	/* Of a file that was named: what it declares, and its first words. */
	if (l->shape >= SHAPE_DECL || (l->shape == SHAPE_COMMENT && l->line <= 2))
		l->mask |= f->path_mask & t->file_mask;
	if (l->mask == 0 || is_task(b, l))
		return 0;
	score = weight_of(h, t, l->mask | f->path_mask) + pair_bonus(t, l->mask | f->path_mask) +
		pair_bonus(t, l->mask) + shape_bonus(h, t, l);
	if (f->test && !t->tests)
		score -= t->kind == TASK_LIST ? 2 : 10;
	if (f->doc && !t->docs)
		score -= t->kind == TASK_HOW ? 2 : 6;
	if (l->len > LONG_LINE)
		score -= 8;
	return MAX(score, 1);
}

static void score_file(struct hits *h, struct hit_file *f, unsigned i)
{
	struct hit_line *l = &h->lines[i], *best = f->best >= 0 ? &h->lines[f->best] : NULL,
			*second = f->second >= 0 ? &h->lines[f->second] : NULL;

	f->mask |= l->mask;
	f->hits++;
	if (best == NULL || l->score > best->score) {
		if (best != NULL &&
		    (best->line - l->line > FAR_LINES || l->line - best->line > FAR_LINES))
			f->second = f->best;
		f->best = (int)i;
	} else if ((best->line - l->line > FAR_LINES || l->line - best->line > FAR_LINES) &&
		   (second == NULL || l->score > second->score)) {
		f->second = (int)i;
	}
}

static void score_all(struct hits *h, const struct offline_body *b, const struct terms *t)
{
	weigh_terms(h, t);
	for (unsigned i = 0; i < h->nlines; i++) {
		struct hit_line *l = &h->lines[i];

		l->score = score_line(h, b, t, l);
		if (l->score > 0)
			score_file(h, &h->files[l->file], i);
	}
	for (unsigned i = 0; i < h->nfiles; i++) {
		struct hit_file *f = &h->files[i];

		if (f->best < 0)
			continue;
		f->score = 2 * h->lines[f->best].score + weight_of(h, t, f->mask | f->path_mask) +
			   (int)MIN(f->hits, 10u) / 2;
	}
}

int hits_read(struct hits *h, struct offline_body *b, const struct terms *t)
{
	size_t bytes = 0;
	int rv = 0;

	memset(h, 0, sizeof(*h));
	for (unsigned i = 0; i < b->ncalls; i++)
		bytes += b->calls[i].result.len;
	/* No line of a result takes less than five bytes there. */
	h->cap = (unsigned)MIN(bytes / 5 + 1, (size_t)HITS_MAX_LINES);
	h->lines = arena_get(&b->mem, h->cap * sizeof(*h->lines));
	if (h->lines == NULL)
		return AVA_ENOMEM;
	for (unsigned i = 0; rv == 0 && i < b->ncalls; i++) {
		const struct offline_call *c = &b->calls[i];
		bool read = c->tool == OFFLINE_READ;

		if (c->tool < 0 || c->tool == OFFLINE_SUBMIT || c->result.s == NULL)
			continue;
		if (c->is_error) {
			h->failed++;
			continue;
		}
		h->reads += read;
		h->searches += !read;
		rv = add_result(h, b, t, c);
	}
	if (rv == 0)
		score_all(h, b, t);
	return rv;
}
