/* Cutting an answer into words. Case, blanks, closing marks and apostrophes go;
 * numbers are read with their digits grouped as in "20,000"; a mark that could
 * turn the meaning of the words (a question mark, quotes, a minus sign) makes
 * the whole answer unreadable, and so does every character not known here.
 * Nothing is allocated. */
#include "ava/answer_token.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "ava/answer.h"
#include "base/util.h"

/* Emoji and their like, as words of answer.c. */
static const struct {
	const char *bytes, *word;
} symbols[] = {
	{"👍", "thumbsup"},      {"✅", "thumbsup"},   {"✔", "thumbsup"},   {"👌", "thumbsup"},
	{"🆗", "thumbsup"},      {"👎", "thumbsdown"}, {"❌", "thumbsdown"}, {"🚫", "thumbsdown"},
	{"🛑", "thumbsdown"}, {"✋", "thumbsdown"}, {"🙏", "please"},     {"🙂", "please"},
	{"😊", "please"},        {"😀", "please"},     {"🎉", "please"},     {"🚀", "please"},
	{":-)", "please"},      {":)", "please"},    {"&", "and"},
};

/* Between words; those of the second list part clauses. */
static const char *const blanks[] = {" ", "\t", "\n", "\r", "\xc2\xa0"};
static const char *const marks[] = {",", ".", "!", ";", ":", "–", "—", "…", "-"};

static bool is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static size_t begins(const char *s, const char *with)
{
	size_t n = strlen(with);

	return strncmp(s, with, n) == 0 ? n : 0;
}

/* An apostrophe, straight or curly, inside a word. */
static size_t apostrophe(const char *s)
{
	return *s == '\'' ? 1 : begins(s, "’");
}

/* "claude-sonnet-4.5", "local/qwen3:8b" are one word. */
static bool goes_on(const char *s, const struct token *t)
{
	if (!is_letter(s[1]) && !is_digit(s[1]))
		return false;
	if (*s == '-' || *s == '/')
		return true;
	return (*s == '.' && is_digit(s[1])) || (*s == ':' && strchr(t->text, '/'));
}

/* `unit`: it stands right behind a number, as the h and the m of "1h30m". */
static const char *read_word(const char *s, bool unit, struct token *t)
{
	size_t n = 0;

	for (;;) {
		size_t skip = apostrophe(s);

		t->text[n] = 0;
		if (skip && is_letter(s[skip])) {
			s += skip;
			continue;
		}
		if (!is_letter(*s) &&
		    (unit || !*s || (!is_digit(*s) && (!strchr("-/.:", *s) || !goes_on(s, t)))))
			return s;
		if (n + 1 == TOKEN_LEN)
			return NULL;
		t->text[n++] = (char)(*s >= 'A' && *s <= 'Z' ? *s + 'a' - 'A' : *s);
		s++;
	}
}

/* Digits in groups of three; *value as millionths. NULL: no number that is
 * sure to mean one thing, such as "0,20" or "1.000.000". */
static const char *read_number(const char *s, struct token *t)
{
	int64_t whole = 0, part = 0, unit = 100000;
	const char *start = s;

	t->number = true;
	for (; is_digit(*s) || (*s == ',' && is_digit(s[1])); s++) {
		if (*s == ',' &&
		    !(is_digit(s[1]) && is_digit(s[2]) && is_digit(s[3]) && !is_digit(s[4])))
			return NULL;
		if (*s != ',')
			whole = whole * 10 + (*s - '0');
		if (whole > 1000000000)
			return NULL;
	}
	if (*s == '.' && is_digit(s[1]))
		for (s++; is_digit(*s); s++, unit /= 10)
			part += unit * (*s - '0');
	if (unit == 0 || (s - start) + 1 > TOKEN_LEN ||
	    ((*s == '.' || *s == ',') && is_digit(s[1])))
		return NULL;
	/* "5-10 minutes" */
	if ((*s == '-' || *s == '/' || *s == ':') && is_digit(s[1]))
		return NULL;
	memcpy(t->text, start, (size_t)(s - start));
	t->text[s - start] = 0;
	t->millionths = whole * 1000000 + part;
	return s;
}

static const char *read_cents_sign(const char *s, struct token *t)
{
	snprintf(t->text, sizeof(t->text), "cents");
	return s + 2;
}

static const char *read_symbol(const char *s, struct token *t)
{
	for (size_t i = 0; i < ARRAY_LEN(symbols); i++) {
		size_t n = begins(s, symbols[i].bytes);

		if (!n)
			continue;
		snprintf(t->text, sizeof(t->text), "%s", symbols[i].word);
		s += n;
		/* The colour of a skin, and how it is to be drawn. */
		if (strncmp(s, "\xf0\x9f\x8f", 3) == 0 && (s[3] & 0xff) >= 0xbb &&
		    (s[3] & 0xff) <= 0xbf)
			s += 4;
		return s + begins(s, "\xef\xb8\x8f");
	}
	return NULL;
}

static const char *read_token(const char *s, bool unit, struct token *t)
{
	const char *end;

	if (is_letter(*s))
		return read_word(s, unit, t);
	if (is_digit(*s))
		return read_number(s, t);
	if (*s == '$' && is_digit(s[1])) {
		t->dollars = true;
		return read_number(s + 1, t);
	}
	if ((*s == '+' || *s == '-') && s[1] == '1' && (s[2] == 0 || strchr(" \t\r\n,.!", s[2]))) {
		snprintf(t->text, sizeof(t->text), "%s", *s == '+' ? "thumbsup" : "thumbsdown");
		return s + 2;
	}
	end = read_symbol(s, t);
	return end ? end : begins(s, "¢") ? read_cents_sign(s, t) : NULL;
}

static size_t one_of(const char *s, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (begins(s, list[i]))
			return strlen(list[i]);
	return 0;
}

/* The marks before the next word. A minus sign is none. */
static const char *skip(const char *s, bool *comma)
{
	for (;;) {
		size_t n = one_of(s, blanks, ARRAY_LEN(blanks));

		if (!n && *s == '-' && (is_digit(s[1]) || s[1] == '$'))
			return s;
		if (!n && strncmp(s, ":)", 2) != 0 && strncmp(s, ":-)", 3) != 0) {
			n = one_of(s, marks, ARRAY_LEN(marks));
			*comma = *comma || n > 0;
		}
		if (!n)
			return s;
		s += n;
	}
}

int tokens_read(const char *text, struct token out[TOKENS_MAX])
{
	int n = 0;

	if (strnlen(text, ANSWER_BYTES_MAX + 1) > ANSWER_BYTES_MAX)
		return -1;
	for (;;) {
		bool comma = false;
		const char *next = skip(text, &comma);
		bool unit = next == text && n > 0 && out[n - 1].number;

		if (!*next)
			return n;
		if (n == TOKENS_MAX)
			return -1;
		out[n] = (struct token){.comma = comma};
		text = read_token(next, unit, &out[n]);
		if (!text)
			return -1;
		n++;
	}
}
