/* The query for events; query.h.
 *
 * The index answers from its rows which lines may be wanted (read.c); here such a line is
 * checked for the text and, since its row may be out of date, for everything else again. What
 * can fail: a line that has the text and is no event is broken, and reported. */
#include "journal/query.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "base/buf.h"
#include "base/clock.h"
#include "base/crew.h"
#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"

/* ---- the times people write
 *
 * Three forms, tried in turn: a word (now, today, yesterday, tomorrow), a
 * span ("1 hour ago", "-90m", "1h30m"), a point (a date, a time of today, or
 * both, local unless it ends in Z or an offset; "@" and seconds since 1970).
 *
 * Spans are lengths: a day is 24 hours also where a clock was put forward.
 * Dates are days of the calendar: "yesterday" begins at its midnight however
 * long it was. An hour that a change of the clock left out is the one after
 * it, one that came twice is whichever the C library takes. What can fail:
 * text that is none of these, and dates that do not exist. */

#define LAST_MS  INT64_C(253402300799999) /* 9999-12-31T23:59:59.999Z */
#define TIME_MAX 64

static bool time_number(const char **p, int64_t *n)
{
	const char *start = *p;

	*n = 0;
	for (; **p >= '0' && **p <= '9'; (*p)++)
		if (__builtin_mul_overflow(*n, 10, n) ||
		    __builtin_add_overflow(*n, (int64_t)(**p - '0'), n))
			return false;
	return *p > start;
}

static bool time_relative(const char *text, int64_t now_ms, int64_t *out)
{
	bool ahead = text[0] == '+';
	const char *p = text + (text[0] == '-' || ahead);
	int64_t ms;

	if (!clock_span(&p, &ms))
		return false;
	if (strcasecmp(p, "ago") == 0) {
		if (p == text || text[0] == '-' || ahead)
			return false;
	} else if (*p != '\0') {
		return false;
	}
	/* Times before 1970 are before every log. */
	if (!ahead)
		*out = ms > now_ms ? 0 : now_ms - ms;
	else if (__builtin_add_overflow(now_ms, ms, out))
		*out = LAST_MS;
	return true;
}

static bool time_midnight(int64_t now_ms, int days, int64_t *out)
{
	time_t t = (time_t)(now_ms / 1000);
	struct tm tm;

	if (localtime_r(&t, &tm) == NULL)
		return false;
	tm.tm_mday += days;
	tm.tm_hour = tm.tm_min = tm.tm_sec = 0;
	tm.tm_isdst = -1;
	t = mktime(&tm);
	*out = (int64_t)t * 1000;
	return true;
}

static bool time_day_word(const char *text, int64_t now_ms, int64_t *out)
{
	if (strcasecmp(text, "now") == 0) {
		*out = now_ms;
		return true;
	}
	if (strcasecmp(text, "today") == 0)
		return time_midnight(now_ms, 0, out);
	if (strcasecmp(text, "yesterday") == 0)
		return time_midnight(now_ms, -1, out);
	return strcasecmp(text, "tomorrow") == 0 && time_midnight(now_ms, 1, out);
}

/* Exactly `n` digits, in [least, most]. */
static bool time_digits(const char **p, int n, int least, int most, int *out)
{
	*out = 0;
	for (int i = 0; i < n; i++, (*p)++) {
		if (**p < '0' || **p > '9')
			return false;
		*out = *out * 10 + (**p - '0');
	}
	return *out >= least && *out <= most;
}

static bool time_literal(const char **p, char c)
{
	if (**p != c)
		return false;
	(*p)++;
	return true;
}

static bool time_date(const char **p, struct tm *tm)
{
	int y, m, d;

	if (!time_digits(p, 4, 1970, 9999, &y) || !time_literal(p, '-') ||
	    !time_digits(p, 2, 1, 12, &m) || !time_literal(p, '-') ||
	    !time_digits(p, 2, 1, clock_days_in(y, m), &d))
		return false;
	*tm = (struct tm){.tm_year = y - 1900, .tm_mon = m - 1, .tm_mday = d, .tm_isdst = -1};
	return true;
}

static bool time_of_day(const char **p, struct tm *tm, int *ms)
{
	int digit, scale = 100;

	*ms = 0;
	if (!time_digits(p, 2, 0, 23, &tm->tm_hour) || !time_literal(p, ':') ||
	    !time_digits(p, 2, 0, 59, &tm->tm_min))
		return false;
	if (!time_literal(p, ':'))
		return true;
	if (!time_digits(p, 2, 0, 60, &tm->tm_sec))
		return false;
	if (!time_literal(p, '.'))
		return true;
	if (**p < '0' || **p > '9')
		return false;
	for (; **p >= '0' && **p <= '9'; scale /= 10) { /* digits beyond ms are cut off */
		time_digits(p, 1, 0, 9, &digit);
		*ms += digit * scale;
	}
	return true;
}

/* "Z" or "+02:00": seconds east of UTC. */
static bool time_zone(const char **p, int *east)
{
	int h, m, sign = **p == '-' ? -1 : 1;

	*east = 0;
	if (time_literal(p, 'Z') || time_literal(p, 'z'))
		return true;
	if (!time_literal(p, '+') && !time_literal(p, '-'))
		return false;
	if (!time_digits(p, 2, 0, 23, &h))
		return false;
	time_literal(p, ':');
	if (!time_digits(p, 2, 0, 59, &m))
		return false;
	*east = sign * (h * 3600 + m * 60);
	return true;
}

static bool time_to_ms(struct tm *tm, int ms, const char *rest, int64_t *out)
{
	int east;
	time_t t;

	if (*rest == '\0') {
		t = mktime(tm);
	} else {
		rest += strspn(rest, " ");
		if (!time_zone(&rest, &east) || *rest != '\0')
			return false;
		t = timegm(tm) - east;
	}
	*out = (int64_t)t * 1000 + ms;
	return true;
}

static bool time_point(const char *text, int64_t now_ms, int64_t *out)
{
	time_t now = (time_t)(now_ms / 1000);
	const char *p = text;
	struct tm tm;
	int ms = 0;

	if (*p == '@')
		return p++, time_number(&p, out) && *p == '\0' &&
				    !__builtin_mul_overflow(*out, 1000, out);
	if (p[0] != '\0' && p[1] != '\0' && p[2] == ':') { /* a time alone is of today */
		if (localtime_r(&now, &tm) == NULL)
			return false;
		tm.tm_sec = 0;
		tm.tm_isdst = -1;
		return time_of_day(&p, &tm, &ms) && *p == '\0' && time_to_ms(&tm, ms, p, out);
	}
	if (!time_date(&p, &tm))
		return false;
	if (*p == '\0')
		return time_to_ms(&tm, 0, p, out);
	if (!time_literal(&p, 'T') && !time_literal(&p, 't') && !time_literal(&p, ' '))
		return false;
	return time_of_day(&p, &tm, &ms) && time_to_ms(&tm, ms, p, out);
}

int query_time(const char *text, int64_t now_ms, int64_t *out, struct ava_error *err)
{
	if (!time_day_word(text, now_ms, out) && !time_relative(text, now_ms, out) &&
	    !time_point(text, now_ms, out))
		return err_set(err, AVA_EINVAL,
			       "\"%.*s\" is no time: write \"1 hour ago\", -1h, today, yesterday, "
			       "2026-11-21, \"2026-11-21 08:00\" or 2026-11-21T08:00:00Z",
			       TIME_MAX, text);
	*out = MAX(0, MIN(*out, LAST_MS));
	return 0;
}

/* ---- text
 *
 * A literal is escaped as JSON would write it, since that is its form in the file. The search
 * goes over whole blocks: two of its bytes that are rare in logs are compared 32 positions at a
 * time, and the rest only where both stand at their distance. Folding of case is for ASCII; a
 * literal with other letters that needs it becomes an expression.
 *
 * An expression often has a text that each match must contain; this text is looked for first,
 * like a literal. The expression runs on one line at a time, compiled to machine code where that
 * is allowed. Its work is bounded: a hostile text ends as an error. */

#define MATCH_LIMIT 1000000
#define DEPTH_LIMIT 100000

struct query_regex {
	pcre2_code *code;
	pcre2_match_data *match[CREW_THREADS];
	pcre2_match_context *limits;
};

static bool query_is_ascii(const char *s)
{
	for (; *s != '\0'; s++)
		if ((unsigned char)*s >= 0x80)
			return false;
	return true;
}

/* Escapes are skipped: the capital in \W says nothing about case. */
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
	pcre2_jit_compile(r->code, PCRE2_JIT_COMPLETE); /* a failure only makes matching slower */
	r->limits = pcre2_match_context_create(NULL);
	if (r->limits == NULL)
		return err_set(err, AVA_ENOMEM, "no memory to search");
	for (unsigned i = 0; i < CREW_THREADS; i++) {
		r->match[i] = pcre2_match_data_create(1, NULL);
		if (r->match[i] == NULL)
			return err_set(err, AVA_ENOMEM, "no memory to search");
	}
	pcre2_set_match_limit(r->limits, MATCH_LIMIT);
	pcre2_set_depth_limit(r->limits, DEPTH_LIMIT);
	return 0;
}

/* ---- the text that each match of an expression contains */

#define MUST_LEAST 3 /* shorter texts are in nearly every line */

struct must {
	const char *best, *run; /* places in the expression */
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

/* Returns behind a class; NULL: a class this reader does not understand. */
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

/* Returns the last byte of an escape; NULL: not one for a single byte or class. */
static const char *skip_escape(const char *s)
{
	char c = s[1];

	if (c == '\0' || (isalnum((unsigned char)c) && strchr("dDwWsSbBAzZ", c) == NULL))
		return NULL;
	return s + 1;
}

/* Read one item at depth 0, at *s; moves to its last byte. False: the expression is not
 * understood. */
static bool must_step(struct must *m, const char **s, bool fold)
{
	char c = **s;

	if (c == '|')
		return false;
	if (strchr("*?{", c) != NULL && m->len > 0)
		m->len--; /* the byte before may be repeated zero times */
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
	else if (m->len++ == 0)
		m->run = *s;
	return true;
}

/* The longest text that each match contains; length 0: unknown. Understands few expressions, and
 * those correctly. */
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

/* With a needle, lines without it are skipped before the expression runs. */
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
		t->fold = strpbrk(literal, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == NULL;
		if (t->fold && !query_is_ascii(literal) && regex == NULL) {
			rv = init_needle(t, literal, err);
			if (rv == 0)
				rv = init_regex(t, t->needle, PCRE2_LITERAL | PCRE2_CASELESS, err);
			free(t->needle);
			t->needle = NULL;
		} else {
			t->fold = t->fold && query_is_ascii(literal);
			t->literal = true;
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
		for (unsigned i = 0; i < CREW_THREADS; i++)
			pcre2_match_data_free(t->regex->match[i]);
		pcre2_match_context_free(t->regex->limits);
		free(t->regex);
	}
	free(t->needle);
	*t = (struct query_text){0};
}

/* ---- finding a literal */

static bool query_same(const struct query_text *t, const char *s)
{
	if (!t->fold)
		return memcmp(s, t->needle, t->len) == 0;
	for (size_t i = 0; i < t->len; i++)
		if (lower(s[i]) != t->needle[i])
			return false;
	return true;
}

/* For any machine: find the first rare byte, then compare the rest. */
static const char *find_plain(const struct query_text *t, const char *s, const char *last)
{
	if (!t->fold)
		return memmem(s, (size_t)(last - s) + t->len, t->needle, t->len);
	for (; s <= last; s++)
		if (query_same(t, s))
			return s;
	return NULL;
}

#if defined(__x86_64__)
/* Lanes that hold `c`, in either case for a folded letter. */
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

			if (query_same(t, at))
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

/* ---- the whole question */

static int init_id(struct query_id *id, const char *text, const char *what, struct ava_error *err)
{
	struct buf b;

	id->len = 0;
	if (text == NULL)
		return 0;
	buf_init(&b, QUERY_ID_MAX * 6);
	json_escape(&b, text, strlen(text));
	if (buf_check(&b) == AVA_ENOMEM) {
		buf_fini(&b);
		return err_set(err, AVA_ENOMEM, "no memory for a question");
	}
	if (buf_check(&b) != 0 || b.len < 3 || b.len - 2 >= sizeof(id->text)) {
		buf_fini(&b);
		return err_set(err, AVA_EINVAL, "%s: from 1 to about %d bytes", what, QUERY_ID_MAX);
	}
	id->len = b.len - 2;
	memcpy(id->text, b.data + 1, id->len);
	id->text[id->len] = '\0';
	buf_fini(&b);
	return 0;
}

static int init_times(struct query *q, const struct ava_log_query *asked, int64_t now_ms,
		      struct ava_error *err)
{
	int rv = 0;

	if (asked->since != NULL) {
		rv = query_time(asked->since, now_ms, &q->since_ms, err);
		if (rv != 0)
			return err_wrap(err, rv, "since");
	}
	if (asked->until != NULL) {
		rv = query_time(asked->until, now_ms, &q->until_ms, err);
		if (rv != 0)
			return err_wrap(err, rv, "until");
	}
	return 0;
}

int query_init(struct query *q, const struct ava_log_query *asked, int64_t now_ms,
	       struct ava_error *err)
{
	int rv = 0;

	*q = QUERY_ALL;
	q->after = asked->after;
	if (asked->types != NULL)
		rv = event_types(asked->types, &q->types, err);
	if (rv == 0)
		rv = init_id(&q->agent, asked->agent, "agent", err);
	if (rv == 0)
		rv = init_id(&q->user, asked->user, "user", err);
	if (rv == 0)
		rv = init_id(&q->session, asked->session, "session", err);
	if (rv == 0)
		rv = init_times(q, asked, now_ms, err);
	if (rv == 0)
		rv = query_text_init(&q->text, asked->search, asked->regex, err);
	if (rv != 0)
		*q = QUERY_ALL;
	return rv;
}

void query_fini(struct query *q)
{
	query_text_fini(&q->text);
	*q = QUERY_ALL;
}

/* ---- asking */

static bool query_is_id(const struct query_id *id, const char *s, size_t len)
{
	return id->len == len && memcmp(id->text, s, len) == 0;
}

static bool query_fits(const struct query *q, const struct event_view *v)
{
	return (q->after == 0 || v->lsn > q->after) && v->wall_ms >= q->since_ms &&
	       v->wall_ms < q->until_ms &&
	       (q->types == 0 || (v->kind >= 0 && (q->types >> v->kind & 1) != 0)) &&
	       (q->agent.len == 0 || query_is_id(&q->agent, v->agent_id.s, v->agent_id.len) ||
		query_is_id(&q->agent, v->trace_id.s, v->trace_id.len)) &&
	       (q->session.len == 0 ||
		query_is_id(&q->session, v->session_id.s, v->session_id.len)) &&
	       (q->user.len == 0 || query_is_id(&q->user, v->user_id.s, v->user_id.len));
}

/* 1, 0, or AVA_ETOOBIG: the expression costs too much on this line. */
static int query_text_regex(const struct query_text *t, unsigned thread, const char *s, size_t len)
{
	int n = pcre2_match(t->regex->code, (PCRE2_SPTR)s, len, 0, 0, t->regex->match[thread],
			    t->regex->limits);

	if (n == PCRE2_ERROR_NOMATCH)
		return 0;
	return n >= 0 ? 1 : AVA_ETOOBIG;
}

/* Does the needle stand anywhere but within a key? */
static bool query_text_counts(const struct query_text *t, const char *line, size_t len)
{
	const char *hit = query_text_find(t, line, len), *end = line + len, *at = line, *close;

	while (hit != NULL && t->literal) {
		/* Find the end of the next string that ends behind the hit. */
		for (close = at; close < end && close < hit + 1; at = close + 1) {
			at = memchr(at, '"', (size_t)(end - at));
			if (at == NULL || at > hit)
				return true;
			for (close = at + 1; close < end && *close != '"'; close++)
				close += *close == '\\';
		}
		if (close + 1 >= end || close[1] != ':' || hit + t->len > close)
			return true;
		hit = query_text_find(t, close, (size_t)(end - close));
	}
	return hit != NULL;
}

enum query_answer query_line(const struct query *q, unsigned thread, const char *line, size_t len,
			     struct event_view *view)
{
	int rv = 1;

	if (q->text.needle != NULL && !query_text_counts(&q->text, line, len))
		return QUERY_NO;
	if (q->text.regex != NULL)
		rv = query_text_regex(&q->text, thread, line, len);
	if (rv != 1)
		return rv < 0 ? QUERY_COSTLY : QUERY_NO;
	if (event_view(line, len, view) != 0)
		return QUERY_BROKEN;
	return query_fits(q, view) ? QUERY_YES : QUERY_NO;
}
