/* Searching text in lines; query_text.h.
 *
 * A literal is escaped as JSON would write it, since that is how it stands in
 * the file. It is then looked for in whole blocks: two of its bytes that are
 * rare in logs are compared 32 positions at a time, and only where both stand
 * at their distance is the rest compared. Folding of case is for ASCII; a
 * literal with other letters that needs it is looked for as an expression.
 *
 * An expression often has a text that whatever matches it must contain; that
 * is looked for first, like a literal. It runs on one line at a time, compiled
 * to machine code where that is allowed. Its work is bounded: text that was
 * made to drive it wild ends as an error. */
#include "journal/query_text.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/buf.h"
#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"

#define MATCH_LIMIT 1000000
#define DEPTH_LIMIT 100000

struct query_regex {
	pcre2_code *code;
	pcre2_match_data *match;
	pcre2_match_context *limits;
};

/* ---- what is looked for */

static bool has_upper(const char *s)
{
	for (; *s != '\0'; s++)
		if (*s >= 'A' && *s <= 'Z')
			return true;
	return false;
}

static bool is_ascii(const char *s)
{
	for (; *s != '\0'; s++)
		if ((unsigned char)*s >= 0x80)
			return false;
	return true;
}

/* An escape is no letter: \W says nothing about case. */
static bool regex_has_upper(const char *s)
{
	for (; *s != '\0'; s++) {
		if (*s == '\\' && s[1] != '\0') {
			s++;
			if ((*s == 'p' || *s == 'P') && s[1] == '{')
				s += strcspn(s, "}") - (s[strcspn(s, "}")] == '\0');
		} else if (*s >= 'A' && *s <= 'Z') {
			return true;
		}
	}
	return false;
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

/* How common a byte is in logs, roughly: letters by their frequency, then
 * what JSON is made of. Lower is rarer. */
static unsigned rank(char c)
{
	static const char common[] = "zqxjkvbpygfwmucldrhsnioate _/-.,0123456789:\\{}\"";
	const char *at = strchr(common, lower(c));

	return c != '\0' && at != NULL ? (unsigned)(at - common) + 2 : (c & 0x80) != 0;
}

static void pick_rare(struct query_text *t)
{
	size_t a = 0, b = t->len > 1 ? 1 : 0;

	for (size_t i = 1; i < t->len; i++)
		if (rank(t->needle[i]) < rank(t->needle[a]))
			a = i;
	if (b == a)
		b = 0;
	for (size_t i = 0; i < t->len; i++)
		if (i != a && rank(t->needle[i]) < rank(t->needle[b]))
			b = i;
	t->rare[0] = MIN(a, b);
	t->rare[1] = MAX(a, b);
}

static int init_needle(struct query_text *t, const char *literal, struct ava_error *err)
{
	struct buf b;

	buf_init(&b, QUERY_TEXT_MAX * 6 + 2);
	json_escape(&b, literal, strlen(literal));
	if (buf_check(&b) != 0) {
		buf_fini(&b);
		return err_set(err, AVA_ENOMEM, "no memory to search");
	}
	t->len = b.len - 2; /* without the quotes */
	memmove(b.data, b.data + 1, t->len);
	t->needle = b.data;
	t->needle[t->len] = '\0';
	if (t->fold)
		for (size_t i = 0; i < t->len; i++)
			t->needle[i] = lower(t->needle[i]);
	pick_rare(t);
	return 0;
}

static int init_regex(struct query_text *t, const char *regex, uint32_t options,
		      struct ava_error *err)
{
	struct query_regex *r = calloc(1, sizeof(*r));
	PCRE2_SIZE at;
	int code;

	t->regex = r;
	if (r == NULL)
		return err_set(err, AVA_ENOMEM, "no memory to search");
	r->code = pcre2_compile((PCRE2_SPTR)regex, PCRE2_ZERO_TERMINATED,
				options | PCRE2_UTF | PCRE2_MATCH_INVALID_UTF, &code, &at, NULL);
	if (r->code == NULL) {
		char text[120];

		if (code == PCRE2_ERROR_HEAP_FAILED)
			return err_set(err, AVA_ENOMEM, "no memory to search");
		pcre2_get_error_message(code, (PCRE2_UCHAR *)text, sizeof(text));
		return err_set(err, AVA_EINVAL, "the expression is wrong at byte %zu: %s", at,
			       text);
	}
	pcre2_jit_compile(r->code, PCRE2_JIT_COMPLETE); /* without: slower */
	r->match = pcre2_match_data_create(1, NULL);
	r->limits = pcre2_match_context_create(NULL);
	if (r->match == NULL || r->limits == NULL)
		return err_set(err, AVA_ENOMEM, "no memory to search");
	pcre2_set_match_limit(r->limits, MATCH_LIMIT);
	pcre2_set_depth_limit(r->limits, DEPTH_LIMIT);
	return 0;
}

/* ---- what an expression cannot match without */

#define MUST_LEAST 3 /* bytes: fewer stand everywhere */

struct must {
	const char *best, *run; /* within the expression */
	size_t best_len, len;
};

static void must_end(struct must *m)
{
	if (m->len > m->best_len) {
		m->best = m->run;
		m->best_len = m->len;
	}
	m->len = 0;
}

static void must_add(struct must *m, const char *s)
{
	if (m->len++ == 0)
		m->run = s;
}

/* Behind a class; NULL: not one that is understood here. */
static const char *skip_class(const char *s)
{
	s += s[1] == '^' ? 2 : 1;
	s += *s == ']';
	for (; *s != ']'; s++) {
		if (*s == '\0' || *s == '[')
			return NULL;
		if (*s == '\\' && *++s == '\0')
			return NULL;
	}
	return s;
}

/* Its last byte; NULL: not one that is a single byte or class. */
static const char *skip_escape(const char *s)
{
	char c = s[1];

	if (c == '\0' || (isalnum((unsigned char)c) && strchr("dDwWsSbBAzZ", c) == NULL))
		return NULL;
	return s + 1;
}

/* One thing at depth 0, at *s; moves to its last byte. False: nothing can be
 * said about this expression. */
static bool must_step(struct must *m, const char **s, bool fold)
{
	char c = **s;

	if (c == '|')
		return false;
	if (strchr("*?{", c) != NULL && m->len > 0)
		m->len--; /* the byte before may be missing */
	if (c == '{')
		*s += strspn(*s + 1, "0123456789, ");
	if (c == '[')
		*s = skip_class(*s);
	else if (c == '\\')
		*s = skip_escape(*s);
	if (*s == NULL)
		return false;
	/* k and s have partners of other cases outside of ASCII. */
	if (strchr("*?{[]}+.^$()\\\n", c) != NULL || (unsigned char)c >= 0x80 ||
	    (fold && (lower(c) == 'k' || lower(c) == 's')))
		must_end(m);
	else
		must_add(m, *s);
	return true;
}

/* The longest text that stands in whatever matches; length 0: none is known.
 * Understands little, and is never wrong about that. */
static size_t find_must(const char *regex, bool fold, const char **out)
{
	struct must m = {0};
	int depth = 0;

	for (const char *s = regex; *s != '\0'; s++) {
		if (*s == '(' && (s[1] == '?' || s[1] == '*'))
			return 0;
		if (*s == '(' || *s == ')') {
			must_end(&m);
			depth += *s == '(' ? 1 : -1;
		} else if (depth == 0) {
			if (!must_step(&m, &s, fold))
				return 0;
		} else if (*s == '[' || *s == '\\') {
			s = *s == '[' ? skip_class(s) : skip_escape(s);
			if (s == NULL)
				return 0;
		}
	}
	must_end(&m);
	*out = m.best;
	return m.best_len >= MUST_LEAST ? m.best_len : 0;
}

/* Lines without it need not be shown to the expression. */
static int init_must(struct query_text *t, const char *regex, bool fold, struct ava_error *err)
{
	const char *text;
	size_t len = find_must(regex, fold, &text);

	if (len == 0)
		return 0;
	t->needle = strndup(text, len);
	if (t->needle == NULL)
		return err_set(err, AVA_ENOMEM, "no memory to search");
	t->len = len;
	t->fold = fold;
	pick_rare(t);
	return 0;
}

int query_text_init(struct query_text *t, const char *literal, const char *regex,
		    struct ava_error *err)
{
	int rv = 0;

	*t = (struct query_text){0};
	if ((literal != NULL && strlen(literal) > QUERY_TEXT_MAX) ||
	    (regex != NULL && strlen(regex) > QUERY_TEXT_MAX))
		return err_set(err, AVA_EINVAL, "more than %d bytes to look for", QUERY_TEXT_MAX);
	if (literal != NULL && literal[0] != '\0') {
		t->fold = !has_upper(literal);
		if (t->fold && !is_ascii(literal) && regex == NULL) {
			rv = init_needle(t, literal, err);
			if (rv == 0)
				rv = init_regex(t, t->needle, PCRE2_LITERAL | PCRE2_CASELESS, err);
			free(t->needle);
			t->needle = NULL;
		} else {
			t->fold = t->fold && is_ascii(literal);
			rv = init_needle(t, literal, err);
		}
	}
	if (rv == 0 && regex != NULL && t->regex == NULL)
		rv = init_regex(t, regex, regex_has_upper(regex) ? 0 : PCRE2_CASELESS, err);
	if (rv == 0 && regex != NULL && t->needle == NULL)
		rv = init_must(t, regex, !regex_has_upper(regex), err);
	if (rv != 0)
		query_text_fini(t);
	return rv;
}

void query_text_fini(struct query_text *t)
{
	if (t->regex != NULL) {
		pcre2_code_free(t->regex->code);
		pcre2_match_data_free(t->regex->match);
		pcre2_match_context_free(t->regex->limits);
		free(t->regex);
	}
	free(t->needle);
	*t = (struct query_text){0};
}

int query_text_regex(const struct query_text *t, const char *s, size_t len)
{
	int n = pcre2_match(t->regex->code, (PCRE2_SPTR)s, len, 0, 0, t->regex->match,
			    t->regex->limits);

	if (n == PCRE2_ERROR_NOMATCH)
		return 0;
	return n >= 0 ? 1 : AVA_ETOOBIG;
}

/* ---- finding a literal */

static bool same(const struct query_text *t, const char *s)
{
	if (!t->fold)
		return memcmp(s, t->needle, t->len) == 0;
	for (size_t i = 0; i < t->len; i++)
		if (lower(s[i]) != t->needle[i])
			return false;
	return true;
}

/* Any machine: the first rare byte, then all. */
static const char *find_plain(const struct query_text *t, const char *s, const char *last)
{
	if (!t->fold)
		return memmem(s, (size_t)(last - s) + t->len, t->needle, t->len);
	for (; s <= last; s++)
		if (same(t, s))
			return s;
	return NULL;
}

#if defined(__x86_64__)
/* Lanes where `c` stands; for a folded letter in either case. */
__attribute__((target("avx2"))) static inline __m256i lanes(const char *s, __m256i c, __m256i bit)
{
	__m256i v = _mm256_loadu_si256((const __m256i *)(const void *)s);

	return _mm256_cmpeq_epi8(_mm256_or_si256(v, bit), c);
}

__attribute__((target("avx2"))) static const char *find_avx2(const struct query_text *t,
							     const char *s, const char *last)
{
	char a = t->needle[t->rare[0]], b = t->needle[t->rare[1]];
	__m256i va = _mm256_set1_epi8(a), vb = _mm256_set1_epi8(b);
	__m256i ba = _mm256_set1_epi8(t->fold && a >= 'a' && a <= 'z' ? 0x20 : 0);
	__m256i bb = _mm256_set1_epi8(t->fold && b >= 'a' && b <= 'z' ? 0x20 : 0);

	for (; last - s >= 31; s += 32) {
		__m256i both = _mm256_and_si256(lanes(s + t->rare[0], va, ba),
						lanes(s + t->rare[1], vb, bb));
		uint32_t mask = (uint32_t)_mm256_movemask_epi8(both);

		for (; mask != 0; mask &= mask - 1) {
			const char *at = s + __builtin_ctz(mask);

			if (same(t, at))
				return at;
		}
	}
	return s <= last ? find_plain(t, s, last) : NULL;
}
#endif

const char *query_text_find(const struct query_text *t, const char *s, size_t len)
{
	if (len < t->len)
		return NULL;
#if defined(__x86_64__)
	if (__builtin_cpu_supports("avx2"))
		return find_avx2(t, s, s + (len - t->len));
#endif
	return find_plain(t, s, s + (len - t->len));
}
