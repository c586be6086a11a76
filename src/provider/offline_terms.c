/* A task is cut into tokens; quoted text, file names and names of programs
 * weigh most, plain words less, words that stand in every question nothing.
 * Plain words are stemmed lightly, so that "retries" finds retry. Nothing can
 * fail; what does not fit is left out. */
#include "provider/offline_terms.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"

#define TASK_MAX 16384u

static const char stop_words[] =
	" a about above across actual actually after again against all already also always "
	"am an and any are as at available back bad based be because been before being "
	"below between both but by call called calls can could describe describes detail "
	"detailed details did different do does doing done down each either enough etc "
	"every everything exactly example examples explain explains few find finds first "
	"for found from full get gets give given gives go good happen happens has have "
	"having he help her here him his hold holds how however i if in including inside "
	"instead into involved is it its itself just keep kept know known last let like "
	"list live lives located look looks made main make makes many may me might more "
	"most much must my name named need needs new next no non not now of off on once "
	"one only onto or other our out over own part parts per place places please point "
	"possible put quote really relevant report responsible return returns right same "
	"say says search see seen set several shall she should show shows since so some "
	"something stand stands still such sum summarise summarize summary sure take takes "
	"tell than that the their them then there these they thing things this those "
	"through to together told too try two under until up upon us use used uses using "
	"very via want wants was way we well were what when where whether which while who "
	"whom whose why will with within without work working works would yes yet you your ";

/* Too common in source trees to search for, unless there is nothing else. */
static const char generic_words[] =
	" audit bug bugs caller callers check checks class classes code codebase component "
	"components correct critique define defined defines definition directory doc docs "
	"documentation file files folder function functions implement implementation "
	"implemented implements inspect issue issues line lines lurk method methods module "
	"modules occurrences package problem problems program project quality references "
	"repo repository review smell smells source sources struct structs structure "
	"suspicious system test tested tests tree type types usage usages value values "
	"variable variables ";

/* Verbs that stand in many questions: they count, but little. */
static const char weak_words[] =
	" change changed changes close closed closes create created creates decide decided "
	"decides fail failed failing fails handle handled handles handling manage managed "
	"manages open opened opens process processed processes protect protected protects "
	"read reading reads start started starts stop stopped stops write writes writing "
	"written ";

static const struct {
	const char *from, *to;
} irregular[] = {
	{"written", "writ"}, {"sent", "send"},     {"built", "build"},  {"chosen", "choos"},
	{"broken", "break"}, {"lost", "los"},      {"ran", "run"},      {"running", "run"},
	{"bytes", "byte"},   {"indices", "index"}, {"queries", "quer"}, {"frozen", "freez"},
};

static const char *const extensions[] = {
	"c",     "h",   "cc",  "cpp",  "hpp",     "py",   "rs",    "go",   "js",
	"ts",    "tsx", "jsx", "java", "md",      "json", "jsonl", "yaml", "yml",
	"toml",  "sh",  "rb",  "txt",  "csv",     "html", "css",   "sql",  "xml",
	"build", "ini", "cfg", "conf", "service", "mk",   "php",   "lua",  "kt",
};

static bool in_list(const char *list, const char *word, size_t len)
{
	char key[TERM_LEN + 2];

	if (len == 0 || len >= TERM_LEN)
		return false;
	snprintf(key, sizeof(key), " %.*s ", (int)len, word);
	return strcasestr(list, key) != NULL;
}

static bool ends(const char *s, size_t len, const char *tail)
{
	size_t n = strlen(tail);

	return len > n && memcmp(s + len - n, tail, n) == 0;
}

/* Shorten a lower-case word to what its forms share; at least 3 letters stay. */
static size_t stem(char *s, size_t len)
{
	static const struct {
		const char *tail;
		unsigned char min, cut; /* shortest word, letters to cut */
	} rules[] = {
		{"ations", 9, 6}, {"ation", 8, 5}, {"ction", 8, 3}, {"ution", 8, 3}, {"ying", 6, 4},
		{"ing", 6, 3},    {"ies", 5, 3},   {"ied", 5, 3},   {"ed", 5, 2},    {"sses", 6, 2},
		{"xes", 5, 2},    {"ches", 6, 2},  {"shes", 6, 2},  {"ss", 2, 0},    {"us", 2, 0},
		{"is", 2, 0},     {"s", 4, 1},     {"ery", 7, 1},   {"ory", 6, 1},
	};

	for (size_t i = 0; i < ARRAY_LEN(irregular); i++) {
		if (strcmp(s, irregular[i].from) == 0) {
			snprintf(s, TERM_LEN, "%s", irregular[i].to);
			return strlen(s);
		}
	}
	for (size_t i = 0; i < ARRAY_LEN(rules); i++) {
		if (len < rules[i].min || !ends(s, len, rules[i].tail))
			continue;
		len -= rules[i].cut;
		if (rules[i].cut > 1 && len > 4 && s[len - 1] == s[len - 2] && s[len - 1] != 's')
			len--; /* "cancelled", "planning" */
		break;
	}
	s[len] = 0;
	return len;
}

static bool is_file(const char *s, size_t len)
{
	const char *dot = memrchr(s, '.', len), *slash = memrchr(s, '/', len);
	size_t n;

	if (dot == NULL || dot == s || (slash != NULL && slash > dot))
		return false;
	n = (size_t)(s + len - dot - 1);
	for (size_t i = 0; i < ARRAY_LEN(extensions); i++)
		if (strlen(extensions[i]) == n && memcmp(dot + 1, extensions[i], n) == 0)
			return true;
	return false;
}

static bool is_ident(const char *s, size_t len, bool called)
{
	bool lower = false, camel = false, letters = false, upper_only = true;

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c == '_' || c == '.' || c == ':' || c == '>' || c == '$')
			return len > 2;
		camel = camel || (lower && isupper(c));
		lower = islower(c) != 0;
		letters = letters || isalpha(c);
		upper_only = upper_only && (isupper(c) || isdigit(c));
	}
	return letters && (called || camel || (upper_only && len >= 3));
}

static struct term *add_term(struct terms *t, enum term_kind kind, const char *s, size_t len,
			     int weight)
{
	struct term *term, now = {.kind = kind, .weight = weight};

	if (len < 2 || len >= TERM_LEN)
		return NULL;
	memcpy(now.text, s, len);
	for (size_t i = 0; i < len; i++)
		now.low[i] = (char)tolower((unsigned char)s[i]);
	now.len = kind == TERM_WORD ? stem(now.low, len) : len;
	for (unsigned i = 0; i < t->n; i++) {
		term = &t->list[i];
		if (strcmp(term->low, now.low) == 0) {
			term->weight += term->weight < 8; /* said twice: it matters */
			return term;
		}
	}
	if (t->n == TERMS_MAX)
		return NULL;
	t->list[t->n] = now;
	return &t->list[t->n++];
}

static void add_pair(struct terms *t, const struct term *a, const struct term *b)
{
	if (a == NULL || b == NULL || a == b || t->npairs == PAIRS_MAX)
		return;
	t->pairs[t->npairs].a = (unsigned char)(a - t->list);
	t->pairs[t->npairs++].b = (unsigned char)(b - t->list);
}

/* ---- tokens */

struct reader {
	const char *s;
	size_t len, at;
	const struct term *before; /* the term just before this token, for pairs */
	const struct term *of;     /* the term before "of": "checkpoint of the journal" */
	bool generic;              /* second pass: generic words count */
};

static bool token_char(const char *s, size_t len, size_t i)
{
	unsigned char c = (unsigned char)s[i];

	if (isalnum(c) || c >= 0x80 || c == '_' || c == '/' || c == '$')
		return true;
	if (c == '.' || c == ':')
		return i + 1 < len &&
		       (isalnum((unsigned char)s[i + 1]) || s[i + 1] == ':' || s[i + 1] == '_');
	if (c == '-')
		return i + 1 < len && s[i + 1] == '>';
	return c == '>' && i > 0 && s[i - 1] == '-';
}

/* Text between quotes at `at`, or 0 bytes. */
static size_t quoted(const struct reader *r, size_t at, size_t *skip)
{
	static const char *const marks[][2] = {
		{"`", "`"}, {"\"", "\""}, {"“", "”"}, {"„", "“"}, {"'", "'"}};

	for (size_t i = 0; i < ARRAY_LEN(marks); i++) {
		size_t n = strlen(marks[i][0]), m = strlen(marks[i][1]);
		const char *from, *to;

		if (r->len - at < n + m || memcmp(r->s + at, marks[i][0], n) != 0)
			continue;
		if (n == 1 && at > 0 && isalnum((unsigned char)r->s[at - 1]))
			continue; /* "don't" */
		from = r->s + at + n;
		to = memmem(from, MIN(r->len - at - n, TERM_LEN + m), marks[i][1], m);
		if (to == NULL || to == from || memchr(from, '\n', (size_t)(to - from)) != NULL)
			continue;
		*skip = n;
		return (size_t)(to - from);
	}
	return 0;
}

/* Past the last slash. */
static size_t base_at(const char *s, size_t len)
{
	const char *slash = memrchr(s, '/', len);

	return slash != NULL ? (size_t)(slash - s) + 1 : 0;
}

/* A folder or file to look in; the last part of a folder is a word as well. */
static void set_scope(struct terms *t, const char *s, size_t len)
{
	size_t base;

	while (len > 1 && s[len - 1] == '/')
		len--;
	if (len > 2 && s[0] == '.' && s[1] == '/')
		s += 2, len -= 2;
	if (t->scope[0] == 0 && len < sizeof(t->scope) && s[0] != '/')
		memcpy(t->scope, s, len);
	base = base_at(s, len);
	if (!is_file(s, len))
		add_term(t, TERM_WORD, s + base, len - base, 3);
}

static void add_file(struct terms *t, const char *s, size_t len, int weight)
{
	size_t base = base_at(s, len);

	add_term(t, TERM_FILE, s + base, len - base, weight);
	if (base > 0)
		set_scope(t, s, len);
}

static void take_word(struct terms *t, struct reader *r, const char *s, size_t len)
{
	const struct term *now;
	int weight = 2 + (len >= 7) + (isupper((unsigned char)s[0]) && r->at > len + 2);

	if (in_list(" tests testing tested test ", s, len))
		t->tests = true;
	if (in_list(" documentation docs readme changelog manual ", s, len))
		t->docs = true;
	if (len == 2 && strncasecmp(s, "of", 2) == 0) {
		r->of = r->before;
		r->before = NULL;
		return;
	}
	if (in_list(" the a an this that its ", s, len)) {
		r->before = NULL;
		return;
	}
	if (len < 3 || in_list(stop_words, s, len) ||
	    (!r->generic && in_list(generic_words, s, len)) || strspn(s, "0123456789.") >= len) {
		r->before = r->of = NULL;
		return;
	}
	now = add_term(t, TERM_WORD, s, len, in_list(weak_words, s, len) ? 1 : weight);
	add_pair(t, r->before, now);
	add_pair(t, now, r->of);
	r->of = NULL;
	r->before = now;
}

static void take_token(struct terms *t, struct reader *r, const char *s, size_t len)
{
	bool called = r->at + 1 < r->len && r->s[r->at] == '(' && r->s[r->at + 1] == ')';

	while (len > 0 && strchr(".:/", s[len - 1]) != NULL && !(s[len - 1] == '/' && len > 2))
		len--;
	if (len == 0 || memmem(s, len, "://", 3) != NULL) {
		r->before = r->of = NULL;
		return;
	}
	if (is_file(s, len)) {
		add_file(t, s, len, 5);
	} else if (memchr(s, '/', len) != NULL && strncmp(s, "and/", 4) != 0) {
		set_scope(t, s, len);
	} else if (is_ident(s, len, called)) {
		r->before = add_term(t, TERM_IDENT, s, len, 5);
		r->of = NULL;
		return;
	} else {
		take_word(t, r, s, len);
		return;
	}
	r->before = r->of = NULL;
}

static void take_quoted(struct terms *t, const char *s, size_t len)
{
	if (is_file(s, len) && memchr(s, ' ', len) == NULL)
		add_file(t, s, len, 6);
	else if (memchr(s, ' ', len) == NULL && is_ident(s, len, false))
		add_term(t, TERM_IDENT, s, len, 6);
	else
		add_term(t, TERM_QUOTED, s, len, 6);
}

static void read_tokens(struct terms *t, const char *task, size_t len, bool generic)
{
	struct reader r = {.s = task, .len = len, .generic = generic};
	size_t start, n, skip = 0;

	while (r.at < r.len) {
		n = quoted(&r, r.at, &skip);
		if (n > 0) {
			take_quoted(t, r.s + r.at + skip, n);
			r.at += skip + n + skip;
			r.before = r.of = NULL;
			continue;
		}
		start = r.at;
		while (r.at < r.len && token_char(r.s, r.len, r.at))
			r.at++;
		if (r.at > start) {
			take_token(t, &r, r.s + start, r.at - start);
			continue;
		}
		if (r.s[r.at] != ' ' && r.s[r.at] != '-' && r.s[r.at] != '(' && r.s[r.at] != ')')
			r.before = r.of = NULL; /* a comma ends what belongs together */
		r.at++;
	}
}

/* ---- the kind of task */

static bool has_word(const char *task, size_t len, const char *words)
{
	size_t at = 0, start;

	while (at < len) {
		while (at < len && !isalpha((unsigned char)task[at]))
			at++;
		start = at;
		while (at < len && isalpha((unsigned char)task[at]))
			at++;
		if (in_list(words, task + start, at - start))
			return true;
	}
	return false;
}

static enum task_kind kind_of(const char *task, size_t len)
{
	if (has_word(task, len,
		     " review reviewing audit inspect critique bugs vulnerabilities smells "
		     "weaknesses suspicious unchecked unsafe insecure "))
		return TASK_REVIEW;
	if (has_word(task, MIN(len, 400u), " list all every enumerate "))
		return TASK_LIST;
	if (has_word(task, MIN(len, 400u), " how why explain describe understand "))
		return TASK_HOW;
	return TASK_FIND;
}

/* Heaviest first, else in the order of the task; pairs keep pointing right. */
static void sort_terms(struct terms *t)
{
	unsigned char order[TERMS_MAX], where[TERMS_MAX];
	struct term sorted[TERMS_MAX];

	for (unsigned i = 0; i < t->n; i++) {
		unsigned k = i;

		for (; k > 0 && t->list[order[k - 1]].weight < t->list[i].weight; k--)
			order[k] = order[k - 1];
		order[k] = (unsigned char)i;
	}
	for (unsigned i = 0; i < t->n; i++) {
		sorted[i] = t->list[order[i]];
		where[order[i]] = (unsigned char)i;
	}
	memcpy(t->list, sorted, t->n * sizeof(sorted[0]));
	for (unsigned i = 0; i < t->n; i++)
		t->file_mask |= t->list[i].kind == TERM_FILE ? 1u << i : 0;
	for (unsigned i = 0; i < t->npairs; i++) {
		t->pairs[i].a = where[t->pairs[i].a];
		t->pairs[i].b = where[t->pairs[i].b];
	}
}

void terms_read(struct terms *t, const char *task, size_t len)
{
	memset(t, 0, sizeof(*t));
	len = MIN(len, (size_t)TASK_MAX);
	t->kind = kind_of(task, len);
	read_tokens(t, task, len, false);
	if (t->n == 0 && t->scope[0] == 0 && t->kind != TASK_REVIEW)
		read_tokens(t, task, len, true);
	sort_terms(t);
}

void terms_names(const struct terms *t, unsigned mask, char *out, size_t size)
{
	size_t at = 0;
	unsigned left = mask & ((1u << t->n) - 1);

	out[0] = 0;
	for (unsigned i = 0; i < t->n && left != 0; i++) {
		const char *join;

		if ((left & 1u << i) == 0)
			continue;
		left &= ~(1u << i);
		join = at == 0 ? "" : left == 0 ? " and " : ", ";
		if (at + strlen(join) + strlen(t->list[i].text) + 3 > size)
			return;
		at += (size_t)snprintf(out + at, size - at, "%s\"%s\"", join, t->list[i].text);
	}
}
