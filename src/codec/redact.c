/* Secrets taken out of text; see redact.h.
 *
 * One pass: a table lists the bytes that can begin a secret, and only there the known values and
 * then the patterns are tried; the longest match wins. Known values are also looked for in
 * base64 (their three alignments, both alphabets), since tools print encoded environments.
 * Patterns ask for a border before them and for a digit among enough token characters, so that
 * `task-manager` or `sk-fading-circle` stay. Behind a `:` or `=` the value of a name for
 * passwords is a secret, and so is a URL's password. What can fail: memory, and the bound of the
 * output. */
#include "codec/redact.h"

#include <ava.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/util.h"
#include "codec/json.h"

#define KNOWN_MAX   256 /* room for 36 secrets in all encodings */
#define KNOWN_LEAST 8
#define MARK        "[redacted]"

struct redact_known {
	char *bytes;
	size_t len;
};

struct redact {
	struct redact_known known[KNOWN_MAX];
	size_t nknown;
	bool starts[256];       /* by first byte: a secret or a pattern may begin */
	uint32_t begins[256];   /* by first byte: the patterns that may begin, a bit each */
	bool known_starts[256]; /* by first byte: a known secret may begin */
};

enum { LOWER = 1, UPPER = 2, DIGIT = 4, DASH = 8, UNDER = 16, TOKEN = 32 };

/* Prefix, then at least `least` characters of `class`. */
static const struct pattern {
	const char *prefix;
	unsigned class;
	size_t least;
	bool exact;    /* exactly `least` characters count, then a border */
	bool fold;     /* the prefix counts in either case, and stays */
	bool no_digit; /* the token needs no digit */
} patterns[] = {
	{"sk-", LOWER | UPPER | DIGIT | DASH | UNDER, 16},
	{"ghp_", LOWER | UPPER | DIGIT, 20},
	{"gho_", LOWER | UPPER | DIGIT, 20},
	{"ghu_", LOWER | UPPER | DIGIT, 20},
	{"ghs_", LOWER | UPPER | DIGIT, 20},
	{"ghr_", LOWER | UPPER | DIGIT, 20},
	{"github_pat_", LOWER | UPPER | DIGIT | UNDER, 20},
	{"glpat-", LOWER | UPPER | DIGIT | DASH | UNDER, 16},
	{"AKIA", UPPER | DIGIT, 16, .exact = true, .no_digit = true},
	{"ASIA", UPPER | DIGIT, 16, .exact = true, .no_digit = true},
	{"ABIA", UPPER | DIGIT, 16, .exact = true, .no_digit = true},
	{"ACCA", UPPER | DIGIT, 16, .exact = true, .no_digit = true},
	{"hf_", LOWER | UPPER | DIGIT, 20},
	{"npm_", LOWER | UPPER | DIGIT, 30},
	{"sk_live_", LOWER | UPPER | DIGIT, 16},
	{"rk_live_", LOWER | UPPER | DIGIT, 16},
	{"sk_test_", LOWER | UPPER | DIGIT, 16},
	{"rk_test_", LOWER | UPPER | DIGIT, 16},
	{"pplx-", LOWER | UPPER | DIGIT, 40},
	{"SG.", LOWER | UPPER | DIGIT | DASH | UNDER | TOKEN, 40},
	{"eyJ", LOWER | UPPER | DIGIT | DASH | UNDER | TOKEN, 60}, /* begins a JWT */
	{"AIza", LOWER | UPPER | DIGIT | DASH | UNDER, 35},
	{"bearer ", LOWER | UPPER | DIGIT | DASH | UNDER | TOKEN, 16, .fold = true},
};

_Static_assert(ARRAY_LEN(patterns) <= 32, "a bit for each");

static unsigned redact_class_of(unsigned char c)
{
	if (c >= 'a' && c <= 'z')
		return LOWER;
	if (c >= 'A' && c <= 'Z')
		return UPPER;
	if (c >= '0' && c <= '9')
		return DIGIT;
	if (c == '-')
		return DASH;
	if (c == '_')
		return UNDER;
	return c != '\0' && strchr(".~+/=", c) != NULL ? TOKEN : 0;
}

static bool redact_is_word(unsigned char c)
{
	return (redact_class_of(c) & (LOWER | UPPER | DIGIT)) != 0;
}

/* ---- set-up */

struct redact *redact_new(void)
{
	struct redact *r = calloc(1, sizeof(*r));

	if (r == NULL)
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(patterns); i++) {
		unsigned char first = (unsigned char)patterns[i].prefix[0];

		r->begins[first] |= UINT32_C(1) << i;
		if (patterns[i].fold)
			r->begins[first - 'a' + 'A'] |= UINT32_C(1) << i;
	}
	for (size_t i = 0; i < 256; i++)
		r->starts[i] = r->begins[i] != 0;
	r->starts['x'] = true; /* begins xoxb- and its kin */
	r->starts['-'] = true; /* begins -----BEGIN */
	r->starts[':'] = r->starts['='] = true;
	return r;
}

void redact_free(struct redact *r)
{
	if (r == NULL)
		return;
	for (size_t i = 0; i < r->nknown; i++) {
		explicit_bzero(r->known[i].bytes, r->known[i].len);
		free(r->known[i].bytes);
	}
	free(r);
}

static int add_bytes(struct redact *r, const char *bytes, size_t len)
{
	struct redact_known *k = &r->known[r->nknown];

	for (size_t i = 0; i < r->nknown; i++)
		if (r->known[i].len == len && memcmp(r->known[i].bytes, bytes, len) == 0)
			return 0;
	if (r->nknown == KNOWN_MAX)
		return AVA_ETOOBIG;
	k->bytes = malloc(len);
	if (k->bytes == NULL)
		return AVA_ENOMEM;
	memcpy(k->bytes, bytes, len);
	k->len = len;
	r->starts[(unsigned char)bytes[0]] = r->known_starts[(unsigned char)bytes[0]] = true;
	r->nknown++;
	return 0;
}

/* The characters of base64 that `secret` alone decides when `shift` bytes
 * stand before it in its group of three. */
static int add_base64(struct redact *r, const char *secret, size_t len, size_t shift,
		      const char *alphabet)
{
	size_t first = (8 * shift + 5) / 6, last = (8 * (shift + len)) / 6;
	char *text = malloc(last - first);
	int rv;

	if (text == NULL)
		return AVA_ENOMEM;
	for (size_t i = first; i < last; i++) {
		size_t bit = 6 * i - 8 * shift;
		unsigned pair = (unsigned)(unsigned char)secret[bit / 8] << 8;

		if (bit / 8 + 1 < len)
			pair |= (unsigned char)secret[bit / 8 + 1];
		text[i - first] = alphabet[pair >> (10 - bit % 8) & 63];
	}
	rv = add_bytes(r, text, last - first);
	explicit_bzero(text, last - first);
	free(text);
	return rv;
}

int redact_add(struct redact *r, const char *secret)
{
	static const char *const alphabets[] = {
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
	};
	size_t len = strlen(secret);
	int rv;

	if (len < KNOWN_LEAST)
		return 0;
	rv = add_bytes(r, secret, len);
	for (size_t i = 0; i < 6 && rv == 0; i++)
		rv = add_base64(r, secret, len, i % 3, alphabets[i / 3]);
	return rv;
}

/* ---- matching: each returns the end of the match, or `at` for none */

static size_t match_known(const struct redact *r, const char *s, size_t len, size_t at)
{
	size_t end = at;

	if (!r->known_starts[(unsigned char)s[at]])
		return at;
	for (size_t i = 0; i < r->nknown; i++) {
		const struct redact_known *k = &r->known[i];

		if (k->len <= len - at && at + k->len > end &&
		    memcmp(s + at, k->bytes, k->len) == 0)
			end = at + k->len;
	}
	return end;
}

/* *from moves to the token itself: the word Bearer stays. */
static size_t match_pattern(const struct pattern *p, const char *s, size_t len, size_t *from)
{
	size_t n = strlen(p->prefix), at = *from, end;
	bool digit = p->no_digit;

	if (len - at < n ||
	    (p->fold ? strncasecmp(s + at, p->prefix, n) : strncmp(s + at, p->prefix, n)) != 0)
		return at;
	for (end = at + n; end < len; end++) {
		unsigned class = redact_class_of((unsigned char)s[end]);

		if ((class & p->class) == 0 || (p->exact && end - at - n == p->least))
			break;
		digit |= class == DIGIT;
		/* A token has a digit earlier than that; without this bound a page of
		 * "sk-sk-sk-" would cost the square of its length. */
		if (!digit && end - at > 256)
			return at;
	}
	if (end - at - n < p->least || !digit)
		return at;
	if (p->exact && end < len && redact_is_word((unsigned char)s[end]))
		return at;
	*from = p->fold ? at + n : at;
	return end;
}

/* xoxb-, xoxp- …: any lower-case letter in the fourth place. */
static size_t match_slack(const char *s, size_t len, size_t at)
{
	size_t end = at + 5;

	if (len - at < 5 || memcmp(s + at, "xox", 3) != 0 ||
	    redact_class_of((unsigned char)s[at + 3]) != LOWER || s[at + 4] != '-')
		return at;
	while (end < len &&
	       (redact_class_of((unsigned char)s[end]) & (LOWER | UPPER | DIGIT | DASH)) != 0)
		end++;
	return end - at >= 15 ? end : at;
}

/* A private key from its BEGIN line to its END line, or to the end of the text, since a cut key
 * is secret too. Keys hold no bracket, so one without an end stops at the bracket of its block. */
static size_t match_pem(const char *s, size_t len, size_t at)
{
	static const char begin[] = "-----BEGIN ", what[] = "PRIVATE KEY", close[] = "-----END ";
	size_t n = sizeof(begin) - 1, end = at + n;
	const char *last, *dashes, *bracket;

	if (len - at < n || memcmp(s + at, begin, n) != 0)
		return at;
	while (end < len && end - at < 64 &&
	       ((redact_class_of((unsigned char)s[end]) & (UPPER | DIGIT)) != 0 || s[end] == ' '))
		end++;
	if (memmem(s + at, end - at, what, sizeof(what) - 1) == NULL)
		return at;
	bracket = memchr(s + end, '[', len - end);
	if (bracket != NULL)
		for (len = (size_t)(bracket - s); s[len - 1] == '\n';)
			len--;
	last = memmem(s + end, len - end, close, sizeof(close) - 1);
	if (last == NULL)
		return len;
	last += sizeof(close) - 1;
	dashes = memmem(last, (size_t)(s + len - last), "-----", 5);
	return dashes != NULL ? (size_t)(dashes + 5 - s) : len;
}

/* "://user:password@": the password. */
static size_t match_url(const char *s, size_t len, size_t *from)
{
	size_t at = *from, end = at + 3, colon = 0;

	if (len - at < 3 || memcmp(s + at, "://", 3) != 0)
		return at;
	for (; end < len && end - at < 512 && s[end] > ' ' && strchr("/\"'<>@?#", s[end]) == NULL;
	     end++)
		if (s[end] == ':' && colon == 0)
			colon = end;
	if (end == len || s[end] != '@' || colon == 0 || end - colon < 2 ||
	    strchr("$[{", s[colon + 1]) != NULL)
		return at;
	*from = colon + 1;
	return end;
}

/* The token of a Telegram bot, "123456789:AAF…": the part behind the colon. */
static size_t match_telegram(const char *s, size_t len, size_t *from)
{
	size_t at = *from, end = at + 1;

	if (at < 5 || s[at] != ':' || end == len || s[end] != 'A')
		return at;
	for (size_t i = 1; i <= 5; i++)
		if (redact_class_of((unsigned char)s[at - i]) != DIGIT)
			return at;
	while (end < len && end - at <= 36 &&
	       (redact_class_of((unsigned char)s[end]) & (LOWER | UPPER | DIGIT | DASH | UNDER)) !=
		       0)
		end++;
	if (end - at != 36)
		return at;
	*from = at + 1;
	return end;
}

/* Is the word before `at`, with or without quotes and blanks, the name of a secret? */
static bool names_secret(const char *s, size_t at)
{
	static const char *const names[] = {
		"password",     "passwd",        "passphrase",   "secret",        "secret_key",
		"access_key",   "api_key",       "apikey",       "auth_token",    "private_key",
		"access_token", "refresh_token", "id_token",     "session_token", "secret_token",
		"api_token",    "bot_token",     "github_token", "gh_token"}; /* not page_token */
	char word[40];
	size_t n = 0, end = at;

	while (end > 0 && at - end < 3 && strchr(" \t\"'", s[end - 1]) != NULL)
		end--;
	while (n + 1 < sizeof(word) && n < end &&
	       (redact_is_word((unsigned char)s[end - n - 1]) ||
		strchr("_-", s[end - n - 1]) != NULL))
		n++;
	for (size_t i = 0; i < n; i++)
		word[i] = s[end - n + i] == '-' ? '_' : s[end - n + i];
	word[n] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (n >= strlen(names[i]) && strcasecmp(word + n - strlen(names[i]), names[i]) == 0)
			return true;
	return false;
}

/* The value in `password: "…"`, `PASSWORD=…` and the like: in quotes, or a word with a letter
 * and a digit that is no expression. */
static size_t match_assigned(const char *s, size_t len, size_t *from)
{
	size_t at = *from, begin = at + 1, end;
	bool letter = false, digit = false, plain = true;
	char quote;

	if (!names_secret(s, at))
		return at;
	while (begin < len && (s[begin] == ' ' || s[begin] == '\t'))
		begin++;
	quote = begin < len && (s[begin] == '"' || s[begin] == '\'') ? s[begin] : '\0';
	begin += quote != '\0';
	for (end = begin; end < len && end - begin < 512 && s[end] != quote; end++) {
		unsigned char c = (unsigned char)s[end];

		if (c <= ' ' || (quote == '\0' && strchr(",;\"'`\\", c) != NULL))
			break;
		letter |= (redact_class_of(c) & (LOWER | UPPER)) != 0;
		digit |= redact_class_of(c) == DIGIT;
		plain &= strchr("()[]{}<>$", c) == NULL;
	}
	if (end - begin < 8 || !letter || !digit || !plain ||
	    (quote != '\0' && (end == len || s[end] != quote)) ||
	    (quote == '\0' && begin > at + 1 && memchr(s + begin, '.', end - begin) != NULL))
		return at;
	*from = begin;
	return end;
}

/* The secret that begins at *from, or behind a name for it there; returns its end, or *from for
 * none. */
static size_t match_at(const struct redact *r, const char *s, size_t len, size_t *from)
{
	size_t at = *from, end = match_known(r, s, len, at);

	if (end > at)
		return end;
	if (s[at] == ':' || s[at] == '=') {
		end = match_url(s, len, from);
		end = end > at ? end : match_telegram(s, len, from);
		return end > at ? end : match_assigned(s, len, from);
	}
	end = match_pem(s, len, at);
	if (end > at || (at > 0 && redact_is_word((unsigned char)s[at - 1])))
		return end;
	end = match_slack(s, len, at);
	for (uint32_t some = r->begins[(unsigned char)s[at]]; some && end == at; some &= some - 1)
		end = match_pattern(&patterns[__builtin_ctz(some)], s, len, from);
	return end > at ? end : at;
}

int redact_around(const struct redact *r, struct buf *out, const char *s, size_t len, size_t *at)
{
	size_t kept = 0, from, end, begun = out->len, place = *at;
	int count = 0, rv;

	for (size_t i = 0; r != NULL && i < len;) {
		from = i;
		end = r->starts[(unsigned char)s[i]] ? match_at(r, s, len, &from) : i;
		if (end == i) {
			i++;
			continue;
		}
		/* A token may be the user of a URL, before the password that was found. */
		for (size_t in = i + 1; in < from; in++) {
			size_t token = in, last = in;

			if (s[in] != ':' && s[in] != '=')
				last = match_at(r, s, len, &token);
			if (last > in) {
				from = token;
				end = MAX(end, last);
			}
		}
		/* A known secret may begin inside a match and go past its end. */
		for (size_t in = from; in < end; in++)
			end = MAX(end, match_known(r, s, len, in));
		buf_add(out, s + kept, from - kept);
		if (place >= from && place < end)
			*at = out->len - begun;
		buf_add(out, MARK, sizeof(MARK) - 1);
		kept = i = end;
		count++;
		if (place >= end)
			*at = place + (out->len - begun) - end;
	}
	buf_add(out, s + kept, len - kept);
	rv = buf_check(out);
	return rv != 0 ? rv : count;
}

int redact_text(const struct redact *r, struct buf *out, const char *s, size_t len)
{
	size_t at = 0;

	return redact_around(r, out, s, len, &at);
}

/* ---- a growing text */

#define LIVE_MAX  ((size_t)8 << 20)
#define LIVE_WORD (64u << 10) /* a longer word is given out in pieces */

void redact_live_init(struct redact_live *l)
{
	*l = (struct redact_live){0};
	buf_init(&l->raw, LIVE_MAX);
}

void redact_live_fini(struct redact_live *l)
{
	buf_fini(&l->raw);
}

int redact_live(const struct redact *r, struct redact_live *l, const char *s, size_t len, bool end,
		struct buf *out)
{
	const char *raw, *pem = NULL, *line = NULL;
	struct buf clean;
	size_t whole;
	int rv;

	if (r == NULL)
		return buf_add(out, s, len);
	buf_init(&clean, 2 * LIVE_MAX);
	buf_add(&l->raw, s, len);
	raw = l->raw.data != NULL ? l->raw.data : "";
	whole = l->raw.len;
	while (!end && whole > 0 && l->raw.len < LIVE_WORD && (unsigned char)raw[whole - 1] > ' ')
		whole--;
	pem = memmem(raw, whole, "-----BEGIN ", 11);
	if (pem != NULL && !end && memmem(pem, (size_t)(raw + whole - pem), "-----END ", 9) == NULL)
		whole = (size_t)(pem - raw);
	rv = redact_text(r, &clean, raw, whole);
	if (rv >= 0 && clean.len > l->shown)
		buf_add(out, clean.data + l->shown, clean.len - l->shown);
	l->shown = MAX(clean.len, l->shown);
	if (!end && pem == NULL)
		line = memrchr(raw, '\n', whole);
	if (rv >= 0 && line != NULL) { /* no secret goes on in the next line */
		size_t n = (size_t)(line + 1 - raw);

		buf_drop(&l->raw, n);
		buf_reset(&clean);
		rv = redact_text(r, &clean, l->raw.data, whole - n);
		l->shown = clean.len;
	}
	if (end || rv < 0 || buf_check(&l->raw) != 0) {
		redact_live_fini(l);
		redact_live_init(l);
	}
	buf_fini(&clean);
	return MIN(rv, 0);
}

bool redact_has_known(const struct redact *r, const char *s, size_t len)
{
	for (size_t i = 0; i < r->nknown; i++)
		if (memmem(s, len, r->known[i].bytes, r->known[i].len) != NULL)
			return true;
	return false;
}

/* ---- JSON */

/* Returns behind the closing quote of the string that begins at `at`; 0: unterminated. */
static size_t string_end(const char *s, size_t len, size_t at)
{
	for (size_t i = at + 1; i < len; i++) {
		if (s[i] == '"')
			return i + 1;
		if (s[i] == '\\')
			i++;
	}
	return 0;
}

/* `token` is a string with its quotes. */
static int redact_string(const struct redact *r, struct buf *out, const char *token, size_t len)
{
	json_t *v = json_loadb(token, len, JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
	struct buf clean;
	int n = AVA_EINVAL;

	if (json_is_string(v)) {
		buf_init(&clean, out->max);
		n = redact_text(r, &clean, json_string_value(v), json_string_length(v));
		if (n > 0)
			json_escape(out, clean.data, clean.len);
		else if (n == 0)
			buf_add(out, token, len);
		buf_fini(&clean);
	}
	json_decref(v);
	return n;
}

int redact_json(const struct redact *r, struct buf *out, const char *s, size_t len)
{
	size_t at = 0;
	int found = 0;

	while (at < len) {
		const char *quote = memchr(s + at, '"', len - at);
		size_t from = quote != NULL ? (size_t)(quote - s) : len, end;
		int n;

		buf_add(out, s + at, from - at);
		if (quote == NULL)
			break;
		end = string_end(s, len, from);
		n = end > 0 ? redact_string(r, out, quote, end - from) : AVA_EINVAL;
		if (n < 0)
			return n;
		found += n;
		at = end;
	}
	return buf_check(out) == 0 ? found : buf_check(out);
}
