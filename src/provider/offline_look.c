/* The task is cut into terms: quoted text, file names and names of programs weigh most,
 * plain words less, words that stand in every question nothing. Then each tool result is
 * cut into lines ("path:LINE:text" of searches, "LINE\ttext" of read_file), and a line's
 * score is what its terms weigh, more where it defines something of that name. Lines that
 * fit no form are skipped, so a result may hold anything. Only memory can fail. */
#include "provider/offline_look.h"

#include <ava.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"

#define LINES_MAX    65536u
#define TASK_MAX     16384u
#define TASK_RUN     28u /* a line that holds so many bytes of the task is the task itself */
#define LONG_LINE    250u
#define RARE_LINES   20u
#define COMMON_LINES 60u

/* Words of questions and of all source trees: nothing to search for. */
static const char stop_words[] =
	" about above across after again all also analyse analyze and any are around assess audit "
	"back because been before between both bug bugs but call called caller callers calls can "
	"cent cents check code codebase collect compare could define defined defines describe did "
	"different do does done each every everything example explain extract file files find "
	"first folder for found from function functions get gets give handle handled handles have "
	"here how implement implemented inspect into investigate issue issues its just know like "
	"line lines list locate look made make many max may minutes module more most much must "
	"name named need new not now off one only other our out over part place places please "
	"problem problems program project put read references relevant research responsible "
	"return returned returns review same say search see set several should show since some "
	"source stand still study summarise summarize summary such system take takes tell test "
	"tests than that the their them then there these they thing things this those through "
	"too trace two type under until use used uses using value values very want was way well "
	"were what when where which while who why will with within without work works would you "
	"your ";

bool find_listed(const char *list, const char *word, size_t len)
{
	if (len == 0)
		return false;
	for (list++; *list; list += strcspn(list, " ") + 1)
		if (tolower((unsigned char)*list) == tolower((unsigned char)*word) &&
		    strncasecmp(list, word, len) == 0 && list[len] == ' ')
			return true;
	return false;
}

bool find_begins(const char *s, const char *word)
{
	return strncmp(s, word, strlen(word)) == 0;
}

/* Does it end so, and is longer? */
static bool find_ends(const char *s, const char *tail)
{
	size_t len = strlen(s), n = strlen(tail);

	return len > n && strcmp(s + len - n, tail) == 0;
}

/* ---- the terms of the task */

/* Shorten a lower-case word to the stem of its forms ("retries" finds retry); at least 3 letters
 * stay. */
static void find_stem(char *s)
{
	static const struct {
		const char *tail;
		unsigned char min, cut; /* shortest word, letters to cut */
	} rules[] = {
		{"ation", 8, 5}, {"ing", 6, 3}, {"ies", 5, 3}, {"ied", 5, 3},
		{"ed", 5, 2},    {"ss", 2, 0},  {"us", 2, 0},  {"s", 4, 1},
	};
	size_t len = strlen(s);

	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		if (len < rules[i].min || !find_ends(s, rules[i].tail))
			continue;
		len -= rules[i].cut;
		if (rules[i].cut > 1 && len > 4 && s[len - 1] == s[len - 2] && s[len - 1] != 's' &&
		    isalpha((unsigned char)s[len - 1]))
			len--; /* a doubled letter goes, too: "cancelled", "planning" */
		s[len] = 0;
		return;
	}
}

/* Add a term; returns its index, -1: not worth one, or there is no room. */
static int find_add_term(struct find *f, enum term_kind kind, const char *s, size_t len, int weight)
{
	struct term now = {.kind = kind, .weight = weight};

	if (len < 2 || len >= TERM_LEN)
		return -1;
	memcpy(now.text, s, len);
	for (size_t i = 0; i < len; i++)
		now.key[i] = (char)tolower((unsigned char)s[i]);
	if (kind == TERM_WORD)
		find_stem(now.key);
	for (unsigned i = 0; i < f->nterms; i++)
		if (strcmp(f->terms[i].key, now.key) == 0)
			return (int)i;
	if (f->nterms == TERMS_MAX)
		return -1;
	f->file_terms |= kind == TERM_FILE ? 1u << f->nterms : 0;
	f->terms[f->nterms] = now;
	return (int)f->nterms++;
}

/* Does the text end in a dot and up to five lower-case letters: "pool.c", "src/a.json"? */
static bool find_is_file(const char *s, size_t len)
{
	size_t n = 0;

	while (n < len && islower((unsigned char)s[len - n - 1]))
		n++;
	return n > 0 && n <= 5 && n + 1 < len && s[len - n - 1] == '.' && !memchr(s, ' ', len);
}

static bool find_is_ident(const char *s, size_t len)
{
	bool lower = false, upper_only = true;

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];

		if (strchr("_.:$", c))
			return len > 2;
		if (lower && isupper(c))
			return true;
		lower = islower(c) != 0;
		upper_only = upper_only && (isupper(c) || isdigit(c));
	}
	return upper_only && len >= 3 && !isdigit((unsigned char)s[0]);
}

/* Add a path: its last part as a file to look for, or all of it as a folder to look in. */
static void find_add_path(struct find *f, const char *s, size_t len)
{
	const char *slash;

	while (len > 1 && s[len - 1] == '/')
		len--;
	if (len > 2 && find_begins(s, "./"))
		s += 2, len -= 2;
	slash = memrchr(s, '/', len);
	if (!f->scope[0] && len < sizeof(f->scope) && s[0] != '/' &&
	    (slash || !find_is_file(s, len)))
		memcpy(f->scope, s, len);
	if (find_is_file(s, len))
		find_add_term(f, TERM_FILE, slash ? slash + 1 : s,
			      slash ? (size_t)(s + len - slash - 1) : len, 5);
}

/* Add one token; *before is the term just before it, -1 for none. */
static void find_add_token(struct find *f, const char *s, size_t len, int *before)
{
	int now = -1;

	if (memmem(s, len, "://", 3)) {
		*before = -1;
	} else if (memchr(s, '/', len) || find_is_file(s, len)) {
		find_add_path(f, s, len);
		*before = -1;
	} else if (find_begins(s + len, "()") || find_is_ident(s, len)) {
		*before = find_add_term(f, TERM_IDENT, s, len, 5);
	} else if (!find_listed(" of the ", s, len)) { /* "checkpoint of the journal" is a pair */
		if (len > 2 && !find_listed(stop_words, s, len) && !isdigit((unsigned char)*s))
			now = find_add_term(f, TERM_WORD, s, len, 2 + (len >= 7));
		if (now >= 0 && *before >= 0 && now != *before && f->npairs < PAIRS_MAX) {
			f->pairs[f->npairs].a = (unsigned char)*before;
			f->pairs[f->npairs++].b = (unsigned char)now;
		}
		*before = now;
	}
}

static bool find_token_char(const char *s)
{
	return isalnum((unsigned char)*s) || (unsigned char)*s >= 0x80 ||
	       (*s && strchr("_/$", *s)) ||
	       ((*s == '.' || *s == ':') &&
		(isalnum((unsigned char)s[1]) || s[1] == ':' || s[1] == '_'));
}

void find_read_task(struct find *f)
{
	static const struct {
		const char *words;
		enum task_kind kind;
	} kinds[] = {
		{" review audit inspect bugs vulnerabilities ", TASK_REVIEW},
		{" list all every enumerate ", TASK_LIST},
	};
	size_t first = ARRAY_LEN(kinds), n;
	const char *task = f->b->task;
	int before = -1;

	for (const char *s = task; *s && s < task + TASK_MAX; s += n) {
		for (n = 0; find_token_char(s + n);)
			n++;
		for (size_t i = 0; i < first; i++)
			if (find_listed(kinds[i].words, s, n))
				first = i;
		if (n > 0)
			find_add_token(f, s, n, &before);
		else if (!strchr(" -()", *s))
			before = -1; /* a comma separates pairs */
		n = MAX(n, 1u);
	}
	f->kind = first < ARRAY_LEN(kinds) ? kinds[first].kind : TASK_FIND;
}

int find_weight(const struct find *f, unsigned terms)
{
	int w = 0;

	for (unsigned i = 0; i < f->nterms; i++)
		w += terms & 1u << i ? f->terms[i].weight : 0;
	return w;
}

void find_names(const struct find *f, unsigned terms, char *out, size_t size)
{
	size_t at = 0;

	out[0] = 0;
	for (unsigned i = 0; i < f->nterms && at + strlen(f->terms[i].text) + 5 < size; i++)
		if (terms & 1u << i)
			at += (size_t)snprintf(out + at, size - at, "%s\"%s\"", at ? ", " : "",
					       f->terms[i].text);
}

/* ---- a line of source */

/* The purpose of a line of source, by its look. */
static enum line_shape find_shape(const char *s)
{
	static const char comments[] = " // /* * */ # -- ;; <!-- ";
	static const char defines[] = " #define typedef class interface def func fn pub function "
				      "export impl public private ";
	bool left_edge = *s != ' ' && *s != '\t';
	const char *paren;
	size_t len, first, name;

	s += strspn(s, " \t\r");
	for (len = strlen(s); len > 0 && isspace((unsigned char)s[len - 1]);)
		len--;
	first = strcspn(s, " \t");
	if (find_listed(comments, s, first) || find_begins(s, "//") || find_begins(s, "/*"))
		return SHAPE_COMMENT;
	if (find_listed(defines, s, first)) {
		/* An include guard has no value and defines nothing. */
		name = first + strspn(s + first, " \t");
		name += strcspn(s + name, " \t");
		return *s == '#' && name >= len ? SHAPE_TEXT : SHAPE_DEF;
	}
	paren = memchr(s, '(', len);
	/* "struct pool {", or its brace stands in the next line. */
	if (find_listed(" struct enum union ", s, first) && !paren && !memchr(s, '=', len))
		return s[len - 1] == '{' || (left_edge && !strpbrk(s, ",;")) ? SHAPE_DEF
									     : SHAPE_TEXT;
	/* "int pool_drain(struct pool *p)" at the left edge; prose has other marks. */
	if (!left_edge || !paren || !(isalpha((unsigned char)*s) || *s == '_') ||
	    paren[-1] == ' ' || paren < s + first ||
	    strcspn(s, "=\".,!?'`|") < (size_t)(paren - s) ||
	    find_listed(" return else ", s, first))
		return SHAPE_TEXT;
	return s[len - 1] == ';' ? SHAPE_DECL : SHAPE_DEF;
}

static bool find_name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$';
}

bool find_name(const struct found_line *l, char out[TERM_LEN])
{
	bool define = find_begins(l->text, "#define");
	const char *s = l->text + (define ? 7 + strspn(l->text + 7, " \t") : 0);
	const char *end = s + strcspn(s, define ? " \t(" : strchr(s, '(') ? "(" : "{:=;<"), *begin;

	while (end > s && !find_name_char(end[-1]))
		end--;
	for (begin = end; begin > s && find_name_char(begin[-1]);)
		begin--;
	snprintf(out, TERM_LEN, "%.*s", (int)MIN(end - begin, (ptrdiff_t)TERM_LEN), begin);
	return end > begin && end - begin < (ptrdiff_t)TERM_LEN;
}

/* ---- results are cut into lines */

/* Bits of the terms in a text; plain words only where a word begins, or `anywhere`. */
static unsigned find_terms(const struct find *f, const char *text, bool anywhere)
{
	unsigned terms = 0;

	for (unsigned i = 0; i < f->nterms; i++) {
		const struct term *t = &f->terms[i];

		for (const char *p = text; (p = strcasestr(p, t->key)); p++)
			if (t->kind != TERM_WORD || anywhere || p == text ||
			    !isalpha((unsigned char)p[-1]) ||
			    (islower((unsigned char)p[-1]) && isupper((unsigned char)*p))) {
				terms |= 1u << i;
				break;
			}
	}
	return terms;
}

/* Find or add a file; NULL: there are too many. */
static struct found_file *offline_look_find_file(struct find *f, const char *path)
{
	static const char docs[] = " .md .txt .rst .html .xml .log .csv .json ";
	const char *tail = strrchr(path, '.');
	struct found_file *n;

	for (n = f->files + f->nfiles; n-- > f->files;) /* newest first: mostly found at once */
		if (strcmp(n->path, path) == 0)
			return n;
	if (f->nfiles == FILES_MAX)
		return NULL;
	n = &f->files[f->nfiles++];
	*n = (struct found_file){
		.path = path,
		.best = -1,
		.terms = find_terms(f, path, true),
		.test = strstr(path, "test") || strstr(path, "bench/") || strstr(path, "example"),
		.doc = strstr(path, "LICENSE") || (tail && find_listed(docs, tail, strlen(tail))),
	};
	return n;
}

/* The text behind "LINE" and `mark`; NULL: another form. */
static char *find_numbered(char *s, char mark, int *number)
{
	char *end;
	long n = isdigit((unsigned char)*s) ? strtol(s, &end, 10) : 0;

	*number = (int)n;
	return n > 0 && n < 1000000000 && *end == mark ? end + 1 : NULL;
}

/* Read "path:LINE:text"; returns where the text begins, NULL: another form. */
static char *find_hit(struct find *f, char *s, struct found_file **file, int *number)
{
	char *text = NULL, *colon = find_begins(s, "no matches for ") ? NULL : strchr(s, ':');

	f->more = f->more || strstr(s, "there are more");
	f->stopped = f->stopped || strstr(s, "; stopped after "); /* as tool/scan.c writes it */
	while (colon && !(text = find_numbered(colon + 1, ':', number)))
		colon = strchr(colon + 1, ':');
	if (!colon || colon == s)
		return NULL;
	*colon = 0;
	*file = offline_look_find_file(f, s);
	f->matches += *file != NULL;
	return text;
}

/* Cut a result into lines. Of read_file's the first is "path (lines A-B of N)". */
static int find_cut(struct find *f, const struct offline_call *c)
{
	bool read = strcmp(c->name, "read_file") == 0;
	char *next = arena_copy(&f->b->mem, c->result, strlen(c->result)), *s, *text;
	struct found_file *file = NULL;
	int number;

	if (!next)
		return AVA_ENOMEM;
	if (read) {
		s = strsep(&next, "\n");
		text = strstr(s, " (lines ");
		if (!text || text == s)
			return 0;
		*text = 0;
		file = offline_look_find_file(f, s);
		if (!file)
			return 0;
		file->was_read = true;
	}
	while ((s = strsep(&next, "\n"))) {
		text = read ? find_numbered(s, '\t', &number) : find_hit(f, s, &file, &number);
		if (text && file && f->nlines < f->cap)
			f->lines[f->nlines++] =
				(struct found_line){.text = text,
						    .file = file,
						    .number = number,
						    .terms = find_terms(f, text, false),
						    .read = read};
	}
	return 0;
}

static int find_read_results(struct find *f)
{
	size_t bytes = 0;

	for (unsigned i = 0; i < f->b->ncalls; i++)
		bytes += strlen(f->b->calls[i].result ? f->b->calls[i].result : "");
	/* A line takes at least four bytes. */
	f->cap = (unsigned)MIN(bytes / 4 + 1, (size_t)LINES_MAX);
	f->lines = arena_get(&f->b->mem, f->cap * sizeof(*f->lines));
	if (!f->lines)
		return AVA_ENOMEM;
	for (unsigned i = 0; i < f->b->ncalls; i++) {
		const struct offline_call *c = &f->b->calls[i];
		bool read = strcmp(c->name, "read_file") == 0;

		if (!c->result || (!read && !find_begins(c->name, "search_")))
			continue;
		f->failed += c->is_error;
		f->reads += !c->is_error && read;
		f->searches += !c->is_error && !read;
		if (!c->is_error && find_cut(f, c) != 0)
			return AVA_ENOMEM;
	}
	return 0;
}

/* ---- scores */

/* Bonus for terms in the name that a line introduces, over those in its arguments. */
static int find_shape_bonus(const struct find *f, const struct found_line *l)
{
	char name[TERM_LEN];
	unsigned terms;
	int bonus = 0;

	if (l->shape <= SHAPE_COMMENT)
		return l->shape == SHAPE_TEXT ? 0 : 2;
	terms = find_name(l, name) ? find_terms(f, name, true) & l->terms : 0;
	if (terms != 0)
		bonus = 4 + find_weight(f, terms);
	for (unsigned i = 0; i < f->nterms; i++) /* the whole name was asked for */
		if ((terms & 1u << i) != 0 && strcasecmp(f->terms[i].text, name) == 0)
			bonus += 8;
	return l->shape == SHAPE_DEF ? 4 + bonus : 2 + bonus / 2;
}

static int find_score_line(const struct find *f, struct found_line *l)
{
	const struct found_file *n = l->file;
	const char *task = f->b->task;
	unsigned terms;
	int score;

	/* Documents define nothing, however much their words look like code. */
	l->shape = n->doc ? SHAPE_TEXT : find_shape(l->text);
	if (l->shape == SHAPE_DEF && find_ends(n->path, ".h") && !find_ends(l->text, "{") &&
	    *l->text != '#' && strchr(l->text, '('))
		l->shape = SHAPE_DECL; /* a prototype that continues in the next line */
	/* Declarations and the first comment of a file that the task names fit the term that names
	 * it. */
	if (l->shape >= SHAPE_DECL || (l->shape == SHAPE_COMMENT && l->number <= 2))
		l->terms |= n->terms & f->file_terms;
	/* A copy of the question somewhere in the tree answers nothing. */
	if (l->terms == 0 ||
	    (strlen(task) >= TASK_RUN && memmem(l->text, strlen(l->text), task, TASK_RUN)))
		return 0;
	terms = l->terms | n->terms;
	score = find_weight(f, terms) + find_shape_bonus(f, l);
	for (unsigned i = 0; i < f->npairs; i++) {
		unsigned both = 1u << f->pairs[i].a | 1u << f->pairs[i].b;

		score += 6 * ((terms & both) == both) + 6 * ((l->terms & both) == both);
	}
	if (n->test)
		score -= f->kind == TASK_LIST ? 2 : 10;
	if (n->doc)
		score -= 6;
	if (strlen(l->text) > LONG_LINE)
		score -= 8;
	return MAX(score, 1);
}

static void find_score(struct find *f)
{
	unsigned count[TERMS_MAX] = {0};

	for (unsigned i = 0; i < f->nlines; i++) {
		const struct found_line *l = &f->lines[i];

		/* Documents and tests repeat a word as often as they like. */
		if (l->read || l->file->doc || l->file->test)
			continue;
		for (unsigned t = 0; t < f->nterms; t++)
			count[t] += (l->terms & 1u << t) != 0;
	}
	for (unsigned t = 0; t < f->nterms; t++) /* terms on many lines weigh little */
		if (count[t] <= COMMON_LINES)
			f->terms[t].weight = 2 * f->terms[t].weight + 2 * (count[t] <= RARE_LINES);
	for (unsigned i = 0; i < f->nlines; i++) {
		struct found_line *l = &f->lines[i];

		l->score = find_score_line(f, l);
		if (l->score == 0)
			continue;
		if (l->file->best < 0 || l->score > f->lines[l->file->best].score)
			l->file->best = (int)i;
		l->file->score = f->lines[l->file->best].score;
	}
}

int find_look(struct find *f)
{
	find_read_task(f);
	if (find_read_results(f) != 0)
		return AVA_ENOMEM;
	find_score(f);
	return 0;
}
