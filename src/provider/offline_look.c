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

#include "base/util.h"

#define LINES_MAX    65536u
#define TASK_MAX     16384u
#define TASK_RUN     28u /* a line that holds so many bytes of the task is the task itself */
#define LONG_LINE    250u
#define RARE_LINES   20u
#define COMMON_LINES 60u
#define SHORT_WORD   4u /* letters of a short word */
#define WORD_TAIL    3u /* most letters of an ending */

/* Words of questions and of all source trees: nothing to search for. */
static const char stop_words[] =
	" research researching compare comparing comparison extract extracting collect investigate "
	"analyse analyze analysis summarise summarize summary evaluate assess study overview about "
	"above across after again all already also always and any are around audit available back "
	"based because been before behind being below between bug bugs but call called caller "
	"callers calls can check checks class code codebase could critique define defined defines "
	"definition describe details did different does doing done down each either every "
	"everything exactly example explain few file files find finds first folder for found from "
	"function functions get gets give gives handle handled handles happen happens has have "
	"here how implement implemented implements inspect instead into involved issue issues its "
	"itself just keep kept know known last let like line lines list live lives located look "
	"looks made make makes many may method methods module might more most much must name named "
	"need needs new not now off one only onto other our out over own part per place places "
	"please point possible problem problems program project put quote really references "
	"relevant report responsible return returns review right same say says search see set "
	"several shall should show since some something source stand still such sure system take "
	"takes tell test tested tests than that the their them then there these they thing things "
	"this those through together too try two type under until upon usage use used uses using "
	"value values variable very via want was way well were what when where whether which while "
	"who whom whose why will with within without work working works would you your ";

static bool find_listed(const char *list, const char *word, size_t len)
{
	char key[TERM_LEN + 2];

	if (len == 0 || len >= TERM_LEN)
		return false;
	snprintf(key, sizeof(key), " %.*s ", (int)len, word);
	return strcasestr(list, key) != NULL;
}

bool find_begins(const char *s, const char *word)
{
	return strncmp(s, word, strlen(word)) == 0;
}

bool find_ends(const char *s, const char *tail)
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
		unsigned char min, cut; /* letters of the shortest such word; letters cut */
	} rules[] = {
		{"ations", 9, 6}, {"ation", 8, 5}, {"ction", 8, 3}, {"ing", 6, 3},
		{"ies", 5, 3},    {"ied", 5, 3},   {"ed", 5, 2},    {"sses", 6, 2},
		{"ss", 2, 0},     {"us", 2, 0},    {"is", 2, 0},    {"s", 4, 1},
	};
	size_t len = strlen(s);

	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		if (len < rules[i].min || !find_ends(s, rules[i].tail))
			continue;
		len -= rules[i].cut;
		if (rules[i].cut > 1 && len > 4 && s[len - 1] == s[len - 2] && s[len - 1] != 's')
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

/* Length of the quoted text that begins at `s`, *marks: bytes of one quote mark; 0: no quote. */
static size_t find_quoted(const char *s, size_t *marks)
{
	static const char *const quotes[][2] = {
		{"`", "`"}, {"\"", "\""}, {"“", "”"}, {"„", "“"}, {"'", "'"}};

	for (size_t i = 0; i < ARRAY_LEN(quotes); i++) {
		const char *text = s + strlen(quotes[i][0]), *end;

		if (!find_begins(s, quotes[i][0]))
			continue;
		end = strstr(text, quotes[i][1]);
		*marks = strlen(quotes[i][1]);
		if (end && end != text && (size_t)(end - text) <= TERM_LEN &&
		    !memchr(text, '\n', (size_t)(end - text)))
			return (size_t)(end - text);
	}
	return 0;
}

static bool find_token_char(const char *s)
{
	return isalnum((unsigned char)*s) || (unsigned char)*s >= 0x80 ||
	       (*s && strchr("_/$", *s)) ||
	       ((*s == '.' || *s == ':') &&
		(isalnum((unsigned char)s[1]) || s[1] == ':' || s[1] == '_'));
}

static void find_read_task(struct find *f)
{
	static const struct {
		const char *words;
		enum task_kind kind;
	} kinds[] = {
		{" review reviewing audit inspect critique bugs vulnerabilities unsafe insecure ",
		 TASK_REVIEW},
		{" list all every enumerate ", TASK_LIST},
		{" how why explain describe understand ", TASK_HOW},
	};
	size_t first = ARRAY_LEN(kinds), n, marks = 0;
	const char *task = f->b->task;
	int before = -1;

	for (const char *s = task; *s && s < task + TASK_MAX; s += n) {
		bool in_word = s > task && isalnum((unsigned char)s[-1]); /* "don't" */

		n = in_word ? 0 : find_quoted(s, &marks);
		if (n > 0) {
			const char *text = s + (*s == '`' || *s == '"' || *s == '\'' ? 1 : 3);

			if (find_is_file(text, n))
				find_add_path(f, text, n);
			else
				find_add_term(f, memchr(text, ' ', n) ? TERM_QUOTED : TERM_IDENT,
					      text, n, 6);
			n += (size_t)(text - s) + marks;
			before = -1;
			continue;
		}
		while (find_token_char(s + n))
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
	unsigned left = terms & ((1u << f->nterms) - 1);
	size_t at = 0;

	out[0] = 0;
	for (unsigned i = 0; left != 0; i++) {
		if ((left & 1u << i) == 0)
			continue;
		left &= ~(1u << i);
		if (at + strlen(f->terms[i].text) + 8 > size)
			return;
		at += (size_t)snprintf(out + at, size - at, "%s\"%s\"",
				       at == 0     ? ""
				       : left == 0 ? " and "
						   : ", ",
				       f->terms[i].text);
	}
}

/* ---- a line of source */

bool find_define(const char *s)
{
	return find_begins(s, "#define") && (s[7] == ' ' || s[7] == '\t');
}

enum line_shape find_shape(const char *s)
{
	static const char *const comments[] = {"//", "/*", "* ", "*/", "# ", "-- ", ";; ", "<!--"};
	static const char *const keywords[] = {"typedef ",   "class ",  "interface ", "def ",
					       "async def ", "func ",   "fn ",        "pub ",
					       "function ",  "export ", "impl ",      "trait ",
					       "public ",    "private "};
	bool left_edge = *s != ' ' && *s != '\t', brace;
	const char *paren;
	size_t len;

	s += strspn(s, " \t\r");
	for (len = strlen(s); len > 0 && isspace((unsigned char)s[len - 1]);)
		len--;
	for (size_t i = 0; i < ARRAY_LEN(comments); i++)
		if (find_begins(s, comments[i]) || (len == 1 && *s == '*'))
			return SHAPE_COMMENT;
	if (len < 3)
		return SHAPE_TEXT;
	if (find_define(s)) { /* an include guard has no value and defines nothing */
		size_t name = strspn(s + 7, " \t") + 7;

		name += strcspn(s + name, " \t");
		return name < len ? SHAPE_DECL : SHAPE_TEXT;
	}
	for (size_t i = 0; i < ARRAY_LEN(keywords); i++)
		if (find_begins(s, keywords[i]))
			return SHAPE_DEF;
	paren = memchr(s, '(', len);
	/* "struct pool {", or its brace stands in the next line. */
	brace = !paren && !memchr(s, '=', len) &&
		(s[len - 1] == '{' || (left_edge && find_name_char(s[len - 1]) && !strchr(s, ',')));
	if (brace &&
	    (find_begins(s, "struct ") || find_begins(s, "enum ") || find_begins(s, "union ")))
		return SHAPE_DEF;
	/* "int pool_drain(struct pool *p)" at the left edge; prose has other marks. */
	if (!left_edge || !paren || !(isalpha((unsigned char)*s) || *s == '_') ||
	    paren[-1] == ' ' || !memchr(s, ' ', (size_t)(paren - s)) ||
	    strcspn(s, "=\".,!?'`|") < (size_t)(paren - s) || find_begins(s, "return ") ||
	    find_begins(s, "else "))
		return SHAPE_TEXT;
	return s[len - 1] == ';' ? SHAPE_DECL : SHAPE_DEF;
}

bool find_name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$';
}

bool find_name(const struct found_line *l, char out[TERM_LEN])
{
	bool define = find_define(l->text);
	const char *s = l->text + (define ? 7 + strspn(l->text + 7, " \t") : 0);
	const char *end = s + (strchr(s, '(') ? strcspn(s, "(") : strcspn(s, "{:=;<")), *begin;

	if (define)
		for (end = s; find_name_char(*end);)
			end++;
	while (end > s && !find_name_char(end[-1]))
		end--;
	for (begin = end; begin > s && find_name_char(begin[-1]);)
		begin--;
	snprintf(out, TERM_LEN, "%.*s", (int)MIN(end - begin, (ptrdiff_t)TERM_LEN), begin);
	return end > begin && end - begin < (ptrdiff_t)TERM_LEN;
}

bool find_follows(const struct find *f, const struct found_line *l)
{
	return l > f->lines && l < f->lines + f->nlines && l->read && l[-1].read &&
	       l[-1].file == l->file && l[-1].number == l->number - 1;
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

/* Is the file prose, whose lines define nothing? */
static bool find_is_doc(const char *path)
{
	static const char *const tails[] = {".md",  ".txt", ".rst", ".html", ".htm", ".xml",
					    ".tex", ".log", ".csv", ".json", ".svg", ".adoc"};
	bool doc = strstr(path, "LICENSE") != NULL;

	for (size_t i = 0; i < ARRAY_LEN(tails); i++)
		doc |= find_ends(path, tails[i]);
	return doc;
}

/* Find or add a file; NULL: there are too many. */
static struct found_file *offline_look_find_file(struct find *f, const char *path)
{
	struct found_file *n;

	for (n = f->files + f->nfiles; n-- > f->files;) /* mostly the newest is the one */
		if (strcmp(n->path, path) == 0)
			return n;
	if (f->nfiles == FILES_MAX)
		return NULL;
	n = &f->files[f->nfiles++];
	*n = (struct found_file){
		.path = path,
		.best = -1,
		.terms = find_terms(f, path, true),
		.test = strstr(path, "test") || strstr(path, "bench/") || strstr(path, "golden") ||
			strstr(path, "example"),
		.doc = find_is_doc(path),
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
	f->more = f->more || strstr(s, "there are more");
	f->stopped = f->stopped || strstr(s, "; stopped after "); /* as tool/scan.c writes it */
	if (find_begins(s, "no matches for "))
		return NULL;
	for (char *colon = strchr(s, ':'); colon; colon = strchr(colon + 1, ':')) {
		char *text = find_numbered(colon + 1, ':', number);

		if (!text)
			continue;
		if (colon == s)
			return NULL;
		*colon = 0;
		*file = offline_look_find_file(f, s);
		f->matches += *file != NULL;
		return text;
	}
	return NULL;
}

static int find_cut(struct find *f, const struct offline_call *c)
{
	bool read = strcmp(c->name, "read_file") == 0, head = read;
	char *next = arena_copy(&f->b->mem, c->result, strlen(c->result)), *s, *text;
	struct found_file *file = NULL;
	int number;

	if (!next)
		return AVA_ENOMEM;
	for (; (s = strsep(&next, "\n")); head = false) {
		if (head) { /* the first line has "path (lines A-B of N)" */
			text = strstr(s, " (lines ");
			if (!text || text == s)
				return 0;
			*text = 0;
			file = offline_look_find_file(f, s);
			if (!file)
				return 0;
			file->was_read = true;
			continue;
		}
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

static int find_pair_bonus(const struct find *f, unsigned terms)
{
	for (unsigned i = 0; i < f->npairs; i++)
		if ((terms >> f->pairs[i].a & terms >> f->pairs[i].b & 1) != 0)
			return 6;
	return 0;
}

/* Bonus for terms in the name that a line introduces, over those in its arguments. */
static int find_shape_bonus(const struct find *f, const struct found_line *l)
{
	char name[TERM_LEN];
	unsigned terms;
	int bonus = 0;

	if (l->shape <= SHAPE_COMMENT)
		return l->shape == SHAPE_TEXT ? 0 : f->kind == TASK_HOW ? 4 : 2;
	terms = find_name(l, name) ? find_terms(f, name, true) & l->terms : 0;
	if (terms != 0)
		bonus = 4 + find_weight(f, terms);
	for (unsigned i = 0; i < f->nterms; i++) /* a bonus where the whole name was asked for */
		if ((terms & 1u << i) != 0 &&
		    (f->terms[i].kind == TERM_WORD ? strcmp(f->terms[i].text, name) == 0
						   : strlen(f->terms[i].key) == strlen(name)))
			bonus += 8;
	return l->shape == SHAPE_DEF ? 4 + bonus : 2 + bonus / 2;
}

/* Does one of the wanted names, or short words, stand in the line as a whole? True where only long
 * words are wanted, which have forms. */
static bool find_whole(const struct find *f, const struct found_line *l)
{
	bool names = false;

	for (unsigned i = 0; i < f->nterms; i++) {
		const char *key = f->terms[i].key;
		bool word = f->terms[i].kind == TERM_WORD;
		size_t n = strlen(key);

		if (!(l->terms & 1u << i) || (!word && f->terms[i].kind != TERM_IDENT))
			continue;
		if (word && n > SHORT_WORD)
			return true;
		names = true;
		for (const char *p = l->text; (p = strcasestr(p, key)); p++) {
			size_t tail = 0;

			while (isalnum((unsigned char)p[n + tail]))
				tail++;
			if (tail <= (word ? WORD_TAIL : 0) &&
			    (p == l->text || !isalnum((unsigned char)p[-1])))
				return true; /* "refuse_nfs" has NFS, "adding" has add */
		}
	}
	return !names;
}

static int find_score_line(const struct find *f, struct found_line *l)
{
	const struct found_file *n = l->file;
	const char *task = f->b->task;
	unsigned terms;
	int score;

	/* Documents define nothing, however much their words look like code. */
	l->shape = (unsigned char)(n->doc ? SHAPE_TEXT : find_shape(l->text));
	if (l->shape == SHAPE_DEF && find_ends(n->path, ".h") && !find_ends(l->text, "{") &&
	    strchr(l->text, '('))
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
	score = find_weight(f, terms) + find_shape_bonus(f, l) + find_pair_bonus(f, terms) +
		find_pair_bonus(f, l->terms);
	if (!find_whole(f, l))
		score -= score / 2; /* a part: "struct statfs" for "stat", "maintain" for "main" */
	if (n->test)
		score -= f->kind == TASK_LIST ? 2 : 10;
	if (n->doc)
		score -= f->kind == TASK_HOW ? 2 : 6;
	if (strlen(l->text) > LONG_LINE)
		score -= 8;
	return MAX(score, 1);
}

static void find_score(struct find *f)
{
	unsigned count[TERMS_MAX] = {0}, terms[FILES_MAX] = {0};

	for (unsigned i = 0; i < f->nlines; i++) {
		const struct found_line *l = &f->lines[i];

		/* Documents and tests repeat a word as often as they like. */
		if (l->read || l->file->doc || l->file->test)
			continue;
		for (unsigned t = 0; t < f->nterms; t++)
			count[t] += (l->terms & 1u << t) != 0;
	}
	for (unsigned t = 0; t < f->nterms; t++) /* a term on many lines weighs little */
		if (count[t] <= COMMON_LINES)
			f->terms[t].weight = 2 * f->terms[t].weight + 2 * (count[t] <= RARE_LINES);
	for (unsigned i = 0; i < f->nlines; i++) {
		struct found_line *l = &f->lines[i];

		l->score = find_score_line(f, l);
		if (l->score == 0)
			continue;
		terms[l->file - f->files] |= l->terms;
		if (l->file->best < 0 || l->score > f->lines[l->file->best].score)
			l->file->best = (int)i;
	}
	for (unsigned i = 0; i < f->nfiles; i++)
		if (f->files[i].best >= 0)
			f->files[i].score = 2 * f->lines[f->files[i].best].score +
					    find_weight(f, terms[i] | f->files[i].terms);
}

int find_look(struct find *f)
{
	find_read_task(f);
	if (find_read_results(f) != 0)
		return AVA_ENOMEM;
	find_score(f);
	return 0;
}
