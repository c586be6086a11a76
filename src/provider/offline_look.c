/* The task is cut into tokens: quoted text, file names and names of programs
 * weigh most, plain words less, words that stand in every question nothing.
 * Plain words are stemmed lightly, so that "retries" finds retry. Then each
 * tool result is cut into lines ("path:LINE:text" of searches, "LINE\ttext" of
 * read_file), and a line's score is what its terms weigh, more where it defines
 * something of that name. Lines that fit no form are skipped, so a result may
 * hold anything. Only memory can fail. */
#include "provider/offline_look.h"

#include <ava.h>
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"

#define TASK_MAX     16384u
#define TASK_RUN     28u /* bytes of the task that make a line the task */
#define LONG_LINE    250u
#define RARE_LINES   20
#define COMMON_LINES 60

/* Words of questions and of all source trees: nothing to search for. */
static const char stop_words[] =
	" about above across after again all already also always and any are around audit "
	"available "
	"back based because been before behind being below between bug bugs but call called caller "
	"callers calls can check checks class code codebase could critique define defined defines "
	"definition describe details did different does doing done down each either every "
	"everything "
	"exactly example explain few file files find finds first folder for found from function "
	"functions get gets give gives handle handled handles happen happens has have here how "
	"implement implemented implements inspect instead into involved issue issues its itself "
	"just "
	"keep kept know known last let like line lines list live lives located look looks made "
	"make "
	"makes many may method methods module might more most much must name named need needs new "
	"not "
	"now off one only onto other our out over own part per place places please point possible "
	"problem problems program project put quote really references relevant report responsible "
	"return returns review right same say says search see set several shall should show since "
	"some something source stand still such sure system take takes tell test tested tests than "
	"that the their them then there these they thing things this those through together too "
	"try "
	"two type under until upon usage use used uses using value values variable very via want "
	"was "
	"way well were what when where whether which while who whom whose why will with within "
	"without work working works would you your ";

static bool look_listed(const char *list, const char *word, size_t len)
{
	char key[TERM_LEN + 2];

	if (len == 0 || len >= TERM_LEN)
		return false;
	snprintf(key, sizeof(key), " %.*s ", (int)len, word);
	return strcasestr(list, key) != NULL;
}

static bool look_begins(const char *s, size_t len, const char *word)
{
	size_t n = strlen(word);

	return len >= n && memcmp(s, word, n) == 0;
}

static bool look_ends(const char *s, size_t len, const char *tail)
{
	size_t n = strlen(tail);

	return len > n && memcmp(s + len - n, tail, n) == 0;
}

/* ---- terms of the task */

/* Shorten a lower-case word to what its forms share; at least 3 letters stay. */
static size_t look_stem(char *s, size_t len)
{
	static const struct {
		const char *tail;
		unsigned char min, cut; /* shortest word, letters to cut */
	} rules[] = {
		{"ations", 9, 6}, {"ation", 8, 5}, {"ction", 8, 3}, {"ing", 6, 3},
		{"ies", 5, 3},    {"ied", 5, 3},   {"ed", 5, 2},    {"sses", 6, 2},
		{"ss", 2, 0},     {"us", 2, 0},    {"is", 2, 0},    {"s", 4, 1},
	};

	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		if (len < rules[i].min || !look_ends(s, len, rules[i].tail))
			continue;
		len -= rules[i].cut;
		if (rules[i].cut > 1 && len > 4 && s[len - 1] == s[len - 2] && s[len - 1] != 's')
			len--; /* "cancelled", "planning" */
		break;
	}
	s[len] = 0;
	return len;
}

/* Index of the term; -1: not worth one, or there is no room. */
static int look_add_term(struct look *k, enum term_kind kind, const char *s, size_t len, int weight)
{
	struct term now = {.kind = kind, .weight = weight};

	if (len < 2 || len >= TERM_LEN)
		return -1;
	memcpy(now.text, s, len);
	for (size_t i = 0; i < len; i++)
		now.low[i] = (char)tolower((unsigned char)s[i]);
	now.len = kind == TERM_WORD ? look_stem(now.low, len) : len;
	for (unsigned i = 0; i < k->nterms; i++)
		if (strcmp(k->terms[i].low, now.low) == 0)
			return (int)i;
	if (k->nterms == LOOK_TERMS)
		return -1;
	k->file_mask |= kind == TERM_FILE ? 1u << k->nterms : 0;
	k->terms[k->nterms] = now;
	return (int)k->nterms++;
}

/* Ends in a dot and up to five lower-case letters: "pool.c", "src/a.json". */
static bool look_is_file(const char *s, size_t len)
{
	const char *dot = memrchr(s, '.', len);
	size_t n = dot != NULL ? (size_t)(s + len - dot - 1) : 0, i = 0;

	while (i < n && islower((unsigned char)dot[1 + i]))
		i++;
	return dot != s && n > 0 && n <= 5 && i == n && memchr(s, ' ', len) == NULL;
}

static bool look_is_ident(const char *s, size_t len)
{
	bool lower = false, upper_only = true;

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];

		if (strchr("_.:$", c) != NULL)
			return len > 2;
		if (lower && isupper(c))
			return true;
		lower = islower(c) != 0;
		upper_only = upper_only && (isupper(c) || isdigit(c));
	}
	return upper_only && len >= 3 && !isdigit((unsigned char)s[0]);
}

/* A path: its last part is a file to look for, or all of it a folder to look in. */
static void look_add_path(struct look *k, const char *s, size_t len)
{
	const char *slash;

	while (len > 1 && s[len - 1] == '/')
		len--;
	if (look_begins(s, len, "./"))
		s += 2, len -= 2;
	slash = memrchr(s, '/', len);
	if (k->scope[0] == 0 && len < sizeof(k->scope) && s[0] != '/' &&
	    (slash != NULL || !look_is_file(s, len)))
		memcpy(k->scope, s, len);
	if (look_is_file(s, len))
		look_add_term(k, TERM_FILE, slash ? slash + 1 : s,
			      slash ? (size_t)(s + len - slash - 1) : len, 5);
}

/* One token; *before is the word just before it, -1 for none. */
static void look_add_token(struct look *k, const char *s, size_t len, bool called, int *before)
{
	int now = -1;

	if (memmem(s, len, "://", 3) != NULL) {
		*before = -1;
	} else if (memchr(s, '/', len) != NULL || look_is_file(s, len)) {
		look_add_path(k, s, len);
		*before = -1;
	} else if (called || look_is_ident(s, len)) {
		*before = look_add_term(k, TERM_IDENT, s, len, 5);
	} else if (look_listed(" of the ", s, len)) {
		return; /* "checkpoint of the journal" stands side by side, too */
	} else {
		if (len > 2 && !look_listed(stop_words, s, len) && !isdigit((unsigned char)*s))
			now = look_add_term(k, TERM_WORD, s, len, 2 + (len >= 7));
		if (now >= 0 && *before >= 0 && now != *before && k->npairs < LOOK_PAIRS) {
			k->pairs[k->npairs].a = (unsigned char)*before;
			k->pairs[k->npairs++].b = (unsigned char)now;
		}
		*before = now;
	}
}

/* Length of the text in quotes that begin at `s`; 0: none do. */
static size_t look_quoted(const char *s, size_t len, size_t *marks)
{
	static const char *const quotes[][2] = {
		{"`", "`"}, {"\"", "\""}, {"“", "”"}, {"„", "“"}, {"'", "'"}};

	for (size_t i = 0; i < ARRAY_LEN(quotes); i++) {
		size_t n = strlen(quotes[i][0]), m = strlen(quotes[i][1]);
		const char *end;

		if (!look_begins(s, len, quotes[i][0]))
			continue;
		end = memmem(s + n, MIN(len - n, TERM_LEN + m), quotes[i][1], m);
		if (end == NULL || end == s + n || memchr(s, '\n', (size_t)(end - s)) != NULL)
			continue;
		*marks = n;
		return (size_t)(end - s) - n;
	}
	return 0;
}

static bool look_token_char(const char *s, size_t len)
{
	unsigned char c = (unsigned char)*s;

	if (isalnum(c) || c >= 0x80 || c == '_' || c == '/' || c == '$')
		return true;
	return (c == '.' || c == ':') && len > 1 &&
	       (isalnum((unsigned char)s[1]) || s[1] == ':' || s[1] == '_');
}

static void look_read_task(struct look *k, const char *task, size_t len)
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
	int before = -1;

	for (size_t at = 0; at < len;) {
		const char *s = task + at;
		bool word_before = at > 0 && isalnum((unsigned char)s[-1]); /* "don't" */

		n = word_before ? 0 : look_quoted(s, len - at, &marks);
		if (n > 0) {
			s += marks;
			if (look_is_file(s, n))
				look_add_path(k, s, n);
			else
				look_add_term(k, memchr(s, ' ', n) ? TERM_QUOTED : TERM_IDENT, s, n,
					      6);
			at += n + 2 * marks;
			before = -1;
			continue;
		}
		while (at + n < len && look_token_char(s + n, len - at - n))
			n++;
		for (size_t i = 0; i < first; i++)
			if (look_listed(kinds[i].words, s, n))
				first = i;
		if (n > 0)
			look_add_token(k, s, n, look_begins(s + n, len - at - n, "()"), &before);
		else if (*s != ' ' && *s != '-' && *s != '(' && *s != ')')
			before = -1; /* a comma ends what belongs together */
		at += MAX(n, 1u);
	}
	k->kind = first < ARRAY_LEN(kinds) ? kinds[first].kind : TASK_FIND;
}

int look_weight(const struct look *k, unsigned mask)
{
	int w = 0;

	for (unsigned i = 0; i < k->nterms; i++)
		w += mask & 1u << i ? k->terms[i].weight : 0;
	return w;
}

void look_names(const struct look *k, unsigned mask, char *out, size_t size)
{
	unsigned left = mask & ((1u << k->nterms) - 1);
	size_t at = 0;

	out[0] = 0;
	for (unsigned i = 0; i < k->nterms && left != 0; i++) {
		const char *join;

		if ((left & 1u << i) == 0)
			continue;
		left &= ~(1u << i);
		join = at == 0 ? "" : left == 0 ? " and " : ", ";
		if (at + strlen(join) + strlen(k->terms[i].text) + 3 > size)
			return;
		at += (size_t)snprintf(out + at, size - at, "%s\"%s\"", join, k->terms[i].text);
	}
}

/* ---- the shape of a line of source */

enum line_shape look_shape(const char *s, size_t len)
{
	static const char *const comments[] = {"//", "/*", "* ", "*/", "# ", "-- ", ";; ", "<!--"};
	static const char *const keywords[] = {"typedef ",   "class ",  "interface ", "def ",
					       "async def ", "func ",   "fn ",        "pub ",
					       "function ",  "export ", "#define ",   "impl ",
					       "trait ",     "public ", "private "};
	bool left_edge = len > 0 && *s != ' ' && *s != '\t';
	const char *paren;

	while (len > 0 && isspace((unsigned char)*s))
		s++, len--;
	while (len > 0 && isspace((unsigned char)s[len - 1]))
		len--;
	if (len == 1 && *s == '*')
		return SHAPE_COMMENT;
	for (size_t i = 0; i < ARRAY_LEN(comments); i++)
		if (look_begins(s, len, comments[i]))
			return SHAPE_COMMENT;
	if (len < 3)
		return SHAPE_TEXT;
	if (look_begins(s, len, "#define ") && memchr(s + 8, ' ', len - 8) == NULL)
		return SHAPE_TEXT; /* an include guard */
	for (size_t i = 0; i < ARRAY_LEN(keywords); i++)
		if (look_begins(s, len, keywords[i]))
			return *s == '#' ? SHAPE_DECL : SHAPE_DEF;
	paren = memchr(s, '(', len);
	if (look_begins(s, len, "struct ") || look_begins(s, len, "enum ") ||
	    look_begins(s, len, "union ")) {
		if (paren == NULL && s[len - 1] == '{' && memchr(s, '=', len) == NULL)
			return SHAPE_DEF;
	}
	/* "int pool_drain(struct pool *p)" at the left edge; prose has other marks. */
	if (!left_edge || paren == NULL || !(isalpha((unsigned char)*s) || *s == '_') ||
	    memchr(s, ' ', (size_t)(paren - s)) == NULL || paren[-1] == ' ' ||
	    look_begins(s, len, "return ") || look_begins(s, len, "else "))
		return SHAPE_TEXT;
	for (const char *c = s; c < paren; c++)
		if (strchr("=\".,!?'`|", *c) != NULL)
			return SHAPE_TEXT;
	return s[len - 1] == ';' ? SHAPE_DECL : SHAPE_DEF;
}

static bool look_name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '$';
}

/* "#define NAME", else what stands before the parenthesis, else the last word
 * before the brace: "struct pool {". */
struct slice look_name(const struct look_line *l)
{
	const char *s = l->text, *end = s + l->len, *p, *paren = memchr(s, '(', l->len);

	if (look_begins(s, l->len, "#define ")) {
		for (p = s + 8; p < end && look_name_char(*p); p++)
			;
		return (struct slice){s + 8, (size_t)(p - s - 8)};
	}
	if (paren != NULL)
		end = paren;
	for (p = s; paren == NULL && p < end; p++)
		if (strchr("{:=;<", *p) != NULL)
			end = p;
	while (end > s && !look_name_char(end[-1]))
		end--;
	for (p = end; p > s && look_name_char(p[-1]); p--)
		;
	return (struct slice){p, (size_t)(end - p)};
}

bool look_follows(const struct look *k, unsigned i)
{
	const struct look_line *l = &k->lines[i], *before = l - 1;

	return i > 0 && i < k->nlines && l->read && before->read && before->file == l->file &&
	       before->line == l->line - 1;
}

/* ---- cutting results into lines */

/* Terms in a text and its lower-case copy; plain words only where a word begins. */
static unsigned look_mask(const struct look *k, const char *text, const char *low, size_t len,
			  bool anywhere)
{
	unsigned mask = 0;

	for (unsigned i = 0; i < k->nterms; i++) {
		const struct term *t = &k->terms[i];
		const char *p = low, *at;

		while ((p = memmem(p, (size_t)(low + len - p), t->low, t->len)) != NULL) {
			at = text + (p++ - low);
			if (t->kind != TERM_WORD || anywhere || at == text ||
			    !isalpha((unsigned char)at[-1]) ||
			    (islower((unsigned char)at[-1]) && isupper((unsigned char)*at))) {
				mask |= 1u << i;
				break;
			}
		}
	}
	return mask;
}

static void look_lower(char *to, const char *from, size_t len)
{
	for (size_t i = 0; i < len; i++)
		to[i] = from[i] >= 'A' && from[i] <= 'Z' ? (char)(from[i] | 32) : from[i];
}

static bool look_path_has(struct slice path, const char *part)
{
	return memmem(path.s, path.len, part, strlen(part)) != NULL;
}

/* Index of the file, -1 when there are too many. */
static int look_file_of(struct look *k, struct slice path)
{
	struct look_file *f;
	char low[512];
	size_t n = MIN(path.len, sizeof(low));

	for (unsigned i = k->nfiles; i > 0; i--) { /* mostly the newest */
		f = &k->files[i - 1];
		if (f->path.len == path.len && memcmp(f->path.s, path.s, path.len) == 0)
			return (int)i - 1;
	}
	if (k->nfiles == LOOK_FILES)
		return -1;
	f = &k->files[k->nfiles++];
	look_lower(low, path.s + path.len - n, n);
	*f = (struct look_file){.path = path, .best = -1};
	f->path_mask = look_mask(k, low, low, n, true);
	f->test = look_path_has(path, "test") || look_path_has(path, "bench/") ||
		  look_path_has(path, "golden") || look_path_has(path, "example");
	f->doc = look_ends(path.s, path.len, ".md") || look_ends(path.s, path.len, ".txt") ||
		 look_ends(path.s, path.len, ".rst") || look_path_has(path, "LICENSE");
	return (int)k->nfiles - 1;
}

/* Digits at s; 0 when there are none or too many. */
static int look_number(const char *s, const char *end, const char **after)
{
	long n = 0;

	for (; s < end && isdigit((unsigned char)*s) && n < INT_MAX / 10; s++)
		n = n * 10 + (*s - '0');
	*after = s;
	return (int)n;
}

/* "path:LINE:text". Where the text begins; NULL: another form. */
static const char *look_search_line(struct look *k, const char *s, const char *end, int *file,
				    int *number)
{
	const char *colon = s, *after;

	if (memmem(s, (size_t)(end - s), "there are more", 14) != NULL)
		k->more = true;
	if (look_begins(s, (size_t)(end - s), "no matches for "))
		return NULL;
	while ((colon = memchr(colon, ':', (size_t)(end - colon))) != NULL) {
		*number = look_number(++colon, end, &after);
		if (*number == 0 || after == end || *after != ':')
			continue;
		if (colon - 1 == s)
			return NULL;
		*file = look_file_of(k, (struct slice){s, (size_t)(colon - 1 - s)});
		k->matches += *file >= 0;
		return after + 1;
	}
	return NULL;
}

static int look_add_result(struct look *k, struct offline_body *b, const struct offline_call *c)
{
	bool read = c->tool == OFFLINE_READ;
	char *text = arena_get(&b->mem, c->result.len + 1);
	char *low = arena_get(&b->mem, c->result.len + 1);
	const char *end, *nl, *at;
	int file = -1, n = 0;

	if (text == NULL || low == NULL)
		return AVA_ENOMEM;
	end = text + jscan_unescape(c->result, text);
	look_lower(low, text, (size_t)(end - text));
	for (const char *s = text; s < end; s = nl + 1) {
		nl = memchr(s, '\n', (size_t)(end - s));
		nl = nl != NULL ? nl : end;
		if (read && s == text) { /* "path (lines A-B of N)" */
			at = memmem(s, (size_t)(nl - s), " (lines ", 8);
			if (at == NULL || at == s)
				return 0;
			file = look_file_of(k, (struct slice){s, (size_t)(at - s)});
			if (file < 0)
				return 0;
			k->files[file].was_read = true;
			continue;
		}
		if (read) {
			n = look_number(s, nl, &at);
			at = n > 0 && at < nl && *at == '\t' ? at + 1 : NULL;
		} else {
			at = look_search_line(k, s, nl, &file, &n);
		}
		if (at == NULL || file < 0 || k->nlines == k->cap)
			continue;
		k->lines[k->nlines++] = (struct look_line){
			.text = at,
			.low = low + (at - text),
			.len = (unsigned)MIN((size_t)(nl - at), (size_t)UINT_MAX),
			.line = n,
			.mask = look_mask(k, at, low + (at - text), (size_t)(nl - at), false),
			.file = (unsigned short)file,
			.read = read,
		};
	}
	return 0;
}

/* ---- scores */

static int look_pair_bonus(const struct look *k, unsigned mask)
{
	for (unsigned i = 0; i < k->npairs; i++) {
		unsigned both = 1u << k->pairs[i].a | 1u << k->pairs[i].b;

		if ((mask & both) == both)
			return 6;
	}
	return 0;
}

/* Terms in the name a line introduces weigh more than in its arguments. */
static int look_shape_bonus(const struct look *k, const struct look_line *l)
{
	struct slice name = look_name(l);
	const char *low = l->low + (name.s - l->text);
	unsigned mask = look_mask(k, name.s, low, name.len, true) & l->mask;
	int bonus = mask != 0 ? 4 + look_weight(k, mask) : 0;

	if (l->shape == SHAPE_TEXT)
		return 0;
	if (l->shape == SHAPE_COMMENT)
		return k->kind == TASK_HOW ? 4 : 2;
	for (unsigned i = 0; i < k->nterms; i++) /* the very name that was asked for */
		if ((mask & 1u << i) != 0 && k->terms[i].kind != TERM_WORD &&
		    k->terms[i].len == name.len)
			bonus += 8;
	return l->shape == SHAPE_DEF ? 4 + bonus : 2 + bonus / 2;
}

static int look_score_line(const struct look *k, const struct offline_body *b, struct look_line *l)
{
	const struct look_file *f = &k->files[l->file];
	int score;

	/* Documents define nothing, however much their words look like code. */
	l->shape = (unsigned char)(f->doc ? SHAPE_TEXT : look_shape(l->text, l->len));
	if (l->shape == SHAPE_DEF && look_ends(f->path.s, f->path.len, ".h") &&
	    l->text[l->len - 1] != '{' && memchr(l->text, '(', l->len) != NULL)
		l->shape = SHAPE_DECL; /* a prototype that goes on in the next line */
	/* Of a file that was named: what it declares, and its first words. */
	if (l->shape >= SHAPE_DECL || (l->shape == SHAPE_COMMENT && l->line <= 2))
		l->mask |= f->path_mask & k->file_mask;
	/* The question itself, kept somewhere in the tree, answers nothing. */
	if (l->mask == 0 ||
	    (b->task_len >= TASK_RUN && memmem(l->text, l->len, b->task, TASK_RUN) != NULL))
		return 0;
	score = look_weight(k, l->mask | f->path_mask) + look_shape_bonus(k, l) +
		look_pair_bonus(k, l->mask | f->path_mask) + look_pair_bonus(k, l->mask);
	if (f->test)
		score -= k->kind == TASK_LIST ? 2 : 10;
	if (f->doc)
		score -= k->kind == TASK_HOW ? 2 : 6;
	if (l->len > LONG_LINE)
		score -= 8;
	return MAX(score, 1);
}

static void look_score(struct look *k, const struct offline_body *b)
{
	unsigned count[LOOK_TERMS] = {0}, masks[LOOK_FILES] = {0};

	for (unsigned i = 0; i < k->nlines; i++)
		for (unsigned t = 0; t < k->nterms; t++)
			count[t] += !k->lines[i].read && (k->lines[i].mask & 1u << t) != 0;
	for (unsigned t = 0; t < k->nterms; t++) /* what stands everywhere says little */
		if (count[t] <= COMMON_LINES)
			k->terms[t].weight = 2 * k->terms[t].weight + 2 * (count[t] <= RARE_LINES);
	for (unsigned i = 0; i < k->nlines; i++) {
		struct look_line *l = &k->lines[i];
		struct look_file *f = &k->files[l->file];

		l->score = look_score_line(k, b, l);
		if (l->score == 0)
			continue;
		masks[l->file] |= l->mask;
		if (f->best < 0 || l->score > k->lines[f->best].score)
			f->best = (int)i;
	}
	for (unsigned i = 0; i < k->nfiles; i++) {
		struct look_file *f = &k->files[i];

		if (f->best >= 0)
			f->score = 2 * k->lines[f->best].score +
				   look_weight(k, masks[i] | f->path_mask);
	}
}

int look_read(struct look *k, struct offline_body *b)
{
	size_t bytes = 0;

	look_read_task(k, b->task, MIN(b->task_len, (size_t)TASK_MAX));
	for (unsigned i = 0; i < b->ncalls; i++)
		bytes += b->calls[i].result.len;
	/* No line of a result takes less than five bytes there. */
	k->cap = (unsigned)MIN(bytes / 5 + 1, (size_t)LOOK_LINES);
	k->lines = arena_get(&b->mem, k->cap * sizeof(*k->lines));
	if (k->lines == NULL)
		return AVA_ENOMEM;
	for (unsigned i = 0; i < b->ncalls; i++) {
		const struct offline_call *c = &b->calls[i];

		if (c->tool < 0 || c->tool == OFFLINE_SUBMIT || c->result.s == NULL)
			continue;
		k->failed += c->is_error;
		k->reads += !c->is_error && c->tool == OFFLINE_READ;
		k->searches += !c->is_error && c->tool != OFFLINE_READ;
		if (!c->is_error && look_add_result(k, b, c) != 0)
			return AVA_ENOMEM;
	}
	look_score(k, b);
	return 0;
}
