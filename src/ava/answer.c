/* Understanding an answer: it is cut into words, and a walk over them takes the longest
 * phrase of a list that fits, a number with its unit, or the name of a role, a model or a
 * preset that there is. A word that nothing takes makes the answer unclear, so that "yes,
 * unless it costs more" is no yes; what was taken together decides.
 *
 * Case, blanks, closing marks and apostrophes go; numbers are read with their digits
 * grouped as in "20,000"; a mark that could turn the meaning of the words (a question
 * mark, quotes, a minus sign) makes the whole answer unreadable, and so does every
 * character not known here. Typing mistakes are put right before, and only in words that
 * are not known: short ones from a list, letters that were held too long, and one slip in
 * the long words. Nothing is allocated, nothing can fail. */
#include "ava/answer.h"

#include <stdio.h>
#include <string.h>

#include "base/near.h"
#include "base/util.h"
#include "provider/models.h"
#include "subagent/spec.h"

enum use {
	USE_NONE,
	USE_YES,
	USE_NO,
	USE_PLAIN_NO,
	USE_POLITE, /* says nothing */
	USE_GLUE,   /* says nothing, but only beside a change */
	USE_LIMIT,  /* a change must follow or stand before */
	USE_BUT,
	USE_LESS_MONEY, /* its amount must follow */
	USE_LESS_TIME,
	USE_WITHOUT, /* tools follow */
	USE_THINK,
	USE_NO_THINKING,
	USE_UNCLEAR,
};

/* Phrases stand between bars; the longest that fits wins. */
static const struct {
	enum use use;
	const char *phrases;
} table[] = {
	{USE_YES,
	 "y|yes|yep|yeah|yea|yup|yes sir|yes maam|yessir|sure|sure thing|sure why "
	 "not|ok|okay|oki|k|kk|"
	 "ok then|okay then|go|go ahead|go on|go for it|goahead|proceed|proceed please|please "
	 "proceed|"
	 "do it|do that|do so|please do|yes i do|yes you can|you can|you may|yes you may|"
	 "confirm|confirmed|i confirm|confirming|start|start it|start now|run|run it|launch|"
	 "launch it|execute|spawn|spawn it|make it so|ship it|send it|sounds good|sounds great|"
	 "sounds good to me|looks good|looks good to me|looks great|lgtm|fine|thats fine|that is "
	 "fine|"
	 "its fine|fine by me|fine with me|works for me|that works|good to go|of course|certainly|"
	 "definitely|absolutely|affirmative|indeed|aye|roger|roger that|approve|approved|i approve|"
	 "accept|accepted|i accept|agree|agreed|i agree|by all means|lets go|lets do it|lets do "
	 "this|"
	 "lets do that|lets go with that|go with that|go with it|just do it|just go|just go ahead|"
	 "just run it|just start|all right|alright|thumbsup|ja|oui|si|be my guest|yes to that|ok "
	 "with me|"
	 "im ok with that|im fine with that|yes i am sure|yes im sure|continue|carry on"},
	{USE_PLAIN_NO, "no|nope|nah|n"},
	{USE_NO,
	 "no thanks|no thank you|no way|no go|no need|no deal|not now|not yet|not today|not this "
	 "time|"
	 "dont|do not|please dont|please do not|dont do it|do not do it|dont do that|dont proceed|"
	 "do not proceed|dont go ahead|dont start|dont start it|dont run|dont run it|do not start|"
	 "do not run|do not run it|dont confirm|do not confirm|dont go|never|never mind|nevermind|"
	 "stop|stop it|stop that|stop here|cancel|cancel it|cancel that|cancel this|abort|abort it|"
	 "reject|rejected|reject it|i reject|decline|declined|i decline|deny|denied|refuse|i "
	 "refuse|"
	 "forget it|forget about it|forget that|leave it|drop it|skip|skip it|skip this|skip that|"
	 "id rather not|rather not|better not|maybe later|later|another time|negative|no sir|"
	 "thumbsdown|nein|non|quit|exit|nay|nix|veto|kill it|scrap it|scrap that|dont bother"},
	{USE_POLITE,
	 "please|pls|plz|thanks|thank you|thank you very much|thanks a lot|many thanks|and thanks|"
	 "and thank you|thx|ty|cheers|ava|hi|hello|hey|now|right now|right away|asap|for now|great|"
	 "perfect|excellent|awesome|wonderful|nice|cool|good|very good|then|oh"},
	{USE_GLUE,
	 "a|an|the|it|its|that|this|to|for|with|at|of|use|using|set|make|keep|on|as|and|i want|let "
	 "it|"
	 "id like|like|instead|rather|switch to|change to|change it to|make that|model|role|preset|"
	 "mode|version|dive|one|go with|tool|tools|do|can you|take|limits|just"},
	{USE_LIMIT,
	 "max|maximum|most|at most|at the most|limit|limit it to|limited|limited to|cap|cap it at|"
	 "capped|capped at|under|below|within|upto|up to|no more than|not more than|but no more "
	 "than|"
	 "but not more than|less than|fewer than|not over|but not over|not above|no longer than|"
	 "not longer than|but no longer than|but not longer than|tops|budget|only|timeout|time|"
	 "cost|costs|price|spend|ceiling|time limit|cost limit|is enough|is plenty|is the limit|"
	 "is the maximum|is the max|is my limit|and no more|or less|dont spend more than|"
	 "do not spend more than|dont go over|do not go over|stop after|stop it after|costing"},
	{USE_BUT, "but|but with|but use|but make it|but only|provided|as long as it stays"},
	{USE_LESS_MONEY, "cheaper|cheap"},
	{USE_LESS_TIME, "faster|quicker|shorter"},
	{USE_WITHOUT,
	 "without|wo|w/o|but no|minus|except|leave out|drop|dont use|do not use|but dont use|"
	 "but do not use|but leave out|excluding|and no|and without"},
	{USE_THINK,
	 "with thinking|thinking on|use thinking|turn on thinking|turn thinking on|enable thinking|"
	 "extended thinking|with extended thinking|extended thinking on|use extended thinking|"
	 "enable extended thinking|let it think"},
	{USE_NO_THINKING,
	 "no thinking|without thinking|but no thinking|thinking off|turn off thinking|"
	 "turn thinking off|disable thinking|no extended thinking|without extended thinking|"
	 "extended thinking off|disable extended thinking|but no extended thinking"},
	/* "No problem" is a yes to some and begins with a no: ask. */
	{USE_UNCLEAR,
	 "no problem|no problems|no worries|no objection|no objections|no issue|no issues|dont "
	 "stop|"
	 "do not stop|dont cancel|do not cancel|dont abort|do not abort|dont reject|dont wait|"
	 "why not|never say never|dont never|never stop|dont skip|dont leave it"},
};

enum unit {
	UNIT_NONE,
	UNIT_CENTS,
	UNIT_DOLLARS,
	UNIT_MS,
	UNIT_TOKENS,
	UNIT_ITERATIONS,
	UNIT_TIMES
};

static const struct {
	enum unit unit;
	int64_t of; /* how many cents, ms, … one is; of UNIT_TIMES, the factor */
	const char *words;
} units[] = {
	{UNIT_CENTS, 1, "c|ct|cts|cent|cents"},
	{UNIT_DOLLARS, 100, "dollar|dollars|usd|buck|bucks"},
	{UNIT_MS, 1000, "s|sec|secs|second|seconds"},
	{UNIT_MS, 60000, "m|min|mins|minute|minutes"},
	{UNIT_MS, 3600000, "h|hr|hrs|hour|hours"},
	{UNIT_MS, 86400000, "d|day|days"},
	{UNIT_TOKENS, 1, "token|tokens|tok|toks"},
	{UNIT_ITERATIONS, 1,
	 "iteration|iterations|iter|iters|step|steps|turn|turns|call|calls|round|rounds"},
	{UNIT_TIMES, 1000, "k|thousand"},
	{UNIT_TIMES, 1000000, "million"},
};

static const struct {
	const char *word;
	int value;
} numbers[] = {
	{"a", 1},         {"an", 1},     {"one", 1},     {"two", 2},      {"three", 3},
	{"four", 4},      {"five", 5},   {"six", 6},     {"seven", 7},    {"eight", 8},
	{"nine", 9},      {"ten", 10},   {"twelve", 12}, {"fifteen", 15}, {"twenty", 20},
	{"thirty", 30},   {"forty", 40}, {"fifty", 50},  {"sixty", 60},   {"ninety", 90},
	{"hundred", 100},
};

static const struct {
	const char *meant, *typed;
} typos[] = {
	{"yes",
	 "yse|eys|ye|yeh|yas|yus|tes|yea|ues|yws|ys|yex|uyes|yess|yepp|yeap|yees|ya|yah|yeahh"},
	{"sure", "sur|srue|suer|shure"},
	{"ok", "okya|oky|okey|okie|okayy|okj"},
	{"goahead", "go-ahead"},
	{"ahead", "ahed|aehad|ahaed"},
	{"no", "nop|npoe|onpe|noep|nno"},
	{"not", "nto"},
	{"dont", "dnot|dotn"},
	{"stop", "stpo"},
	{"cancel", "cancle"},
	{"please", "pelase|plase|pleas"},
	{"with", "wiht"},
	{"but", "btu|ubt"},
	{"max", "mxa"},
	{"the", "teh"},
	{"cents", "cnets|centes"},
	{"minutes", "minuts|mintues"},
};

/* One slip in one of these is put right. None of them is near to a word that
 * says something else. */
static const char *const long_words[] = {
	"proceed",    "confirm",     "confirmed", "approve",   "approved",   "absolutely",
	"definitely", "affirmative", "accepted",  "minutes",   "iterations", "seconds",
	"without",    "maximum",     "dollars",   "nevermind", "rejected",   "cancel",
};

/* Letters of these may be held too long: "nooo", "suuure". */
static const char *const held[] = {
	"yes",  "yep", "yeah", "yup",     "ok",     "okay", "sure",       "no",
	"nope", "nah", "go",   "proceed", "please", "stop", "absolutely",
};

/* ---- cutting it into words */

#define TOKENS_MAX 48
#define TOKEN_LEN  64

struct token {
	char text[TOKEN_LEN]; /* lower case, without apostrophes; of a number its digits */
	bool number;
	bool dollars; /* a number with $ before it */
	bool comma;   /* a comma or the like stands before it */
	int64_t millionths;
};

/* Emoji and their like, as words. */
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
static const char *skip_marks(const char *s, bool *comma)
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

/* Their number, or -1 when something is among them that no answer has: a question mark,
 * quotes, characters of other scripts. */
static int tokens_read(const char *text, struct token out[TOKENS_MAX])
{
	int n = 0;

	if (strnlen(text, ANSWER_BYTES_MAX + 1) > ANSWER_BYTES_MAX)
		return -1;
	for (;;) {
		bool comma = false;
		const char *next = skip_marks(text, &comma);
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

/* ---- what the walk has taken */

struct walk {
	struct token t[TOKENS_MAX];
	int n;
	struct change *change;
	bool yes, no, plain_no, other_no, glue, limit, but, unclear, changed;
	bool time;     /* a time is among it */
	bool patience; /* of the kind that asks for patience: "a minute" */
};

/* ---- words */

/* `word` between the bars of `list`. */
static bool listed(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *s = list; (s = strstr(s, word)) != NULL; s++)
		if ((s == list || s[-1] == '|') && (s[n] == '|' || s[n] == 0))
			return true;
	return false;
}

/* A word of some phrase. */
static bool known(const char *word)
{
	size_t n = strlen(word);

	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		for (const char *s = table[i].phrases; (s = strstr(s, word)) != NULL; s++)
			if ((s == table[i].phrases || strchr("| ", s[-1])) &&
			    (s[n] == 0 || strchr("| ", s[n])))
				return true;
	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (listed(units[i].words, word))
			return true;
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		if (strcmp(numbers[i].word, word) == 0)
			return true;
	return false;
}

/* Is `word` the word `want` with letters held? */
static bool held_too_long(const char *word, const char *want)
{
	while (*want) {
		size_t least = strspn(want, (char[]){*want, 0});
		size_t have = strspn(word, (char[]){*want, 0});

		if (have < least)
			return false;
		want += least;
		word += have;
	}
	return *word == 0;
}

static const char *meant(const char *word)
{
	size_t len = strlen(word);

	for (size_t i = 0; i < ARRAY_LEN(typos); i++)
		if (listed(typos[i].typed, word))
			return typos[i].meant;
	for (size_t i = 0; i < ARRAY_LEN(held); i++)
		if (held_too_long(word, held[i]))
			return held[i];
	for (size_t i = 0; len >= 6 && i < ARRAY_LEN(long_words); i++)
		if (near_distance(word, len, long_words[i], strlen(long_words[i])) == 1)
			return long_words[i];
	return NULL;
}

static void put_right(char word[TOKEN_LEN])
{
	const char *right = meant(word);

	if (right)
		snprintf(word, TOKEN_LEN, "%s", right);
}

/* ---- phrases */

/* How many words of the answer the phrase takes; 0: it does not fit. */
static int fits(const struct walk *w, int at, const char *phrase, size_t len)
{
	int n = 0;

	while (len > 0) {
		const char *blank = memchr(phrase, ' ', len);
		size_t word = blank ? (size_t)(blank - phrase) : len;
		const char *have = at + n < w->n ? w->t[at + n].text : "";

		if (strlen(have) != word || memcmp(have, phrase, word) != 0 || w->t[at + n].number)
			return 0;
		n++;
		phrase += word + (blank != NULL);
		len -= word + (blank != NULL);
	}
	return n;
}

/* The longest phrase at this word. */
static int find_phrase(const struct walk *w, int at, enum use *use)
{
	int best = 0;

	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		for (const char *s = table[i].phrases; *s;) {
			size_t len = strcspn(s, "|");
			int n = fits(w, at, s, len);

			if (n > best) {
				best = n;
				*use = table[i].use;
			}
			s += len + (s[len] == '|');
		}
	}
	return best;
}

/* ---- changes. Saying two different things about one is unclear. */

static void put(struct walk *w, int64_t *to, int64_t value)
{
	w->unclear = w->unclear || (*to != CHANGE_KEEP && *to != value);
	*to = value;
	w->changed = true;
}

static void put_word(struct walk *w, char *to, size_t size, const char *value)
{
	w->unclear = w->unclear || (*to && strcmp(to, value) != 0) || strlen(value) >= size;
	snprintf(to, size, "%s", value);
	w->changed = true;
}

static void put_thinking(struct walk *w, int on)
{
	w->unclear = w->unclear || (w->change->thinking >= 0 && w->change->thinking != on);
	w->change->thinking = on;
	w->changed = true;
}

/* ---- numbers */

static enum unit unit_at(const struct walk *w, int at, int64_t *of)
{
	for (size_t i = 0; at < w->n && !w->t[at].number && i < ARRAY_LEN(units); i++)
		if (listed(units[i].words, w->t[at].text)) {
			*of = units[i].of;
			return units[i].unit;
		}
	return UNIT_NONE;
}

/* The number at this word, in millionths; -1: none. */
static int64_t number_at(const struct walk *w, int at)
{
	if (at >= w->n)
		return -1;
	if (w->t[at].number)
		return w->t[at].millionths;
	if (strcmp(w->t[at].text, "half") == 0)
		return 500000;
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		if (strcmp(numbers[i].word, w->t[at].text) == 0)
			return numbers[i].value * 1000000LL;
	return -1;
}

/* Millionths of a unit to `scale` of them; false: out of range, or not whole. */
static bool scaled(int64_t millionths, int64_t scale, int64_t *out)
{
	int64_t product;

	if (__builtin_mul_overflow(millionths, scale, &product) || product % 1000000 != 0)
		return false;
	*out = product / 1000000;
	return true;
}

/* "1h30m", "1 hour and 30 minutes", "1h30": *ms grows; how many words more. */
static int more_time(const struct walk *w, int at, int64_t above, int64_t *ms)
{
	int and = at < w->n && strcmp(w->t[at].text, "and") == 0;
	int64_t n = at + and < w->n && w->t[at + and].number ? w->t[at + and].millionths : -1;
	int64_t of = 0, add;
	enum unit unit = n >= 0 ? unit_at(w, at + and+1, &of) : UNIT_NONE;

	if (n < 0 || (unit != UNIT_NONE && unit != UNIT_MS) || w->t[at + and].dollars)
		return 0;
	if (unit == UNIT_NONE) {
		if (and || above != 3600000 || w->t[at].comma || at + 1 < w->n)
			return 0;
		of = 60000; /* 1h30 */
	}
	if (of >= above || n >= 60 * 1000000LL || !scaled(n, of, &add))
		return 0;
	*ms += add;
	return and+1 + (unit == UNIT_MS);
}

static void put_amount(struct walk *w, enum unit unit, int64_t of, int64_t n)
{
	struct change *c = w->change;
	int64_t value = 0;
	bool ok = scaled(n, unit == UNIT_CENTS || unit == UNIT_DOLLARS ? of * 10000 : of, &value);

	w->unclear = w->unclear || !ok;
	/* Not a limit somebody means: of these 0 cannot be kept. */
	if (unit == UNIT_CENTS || unit == UNIT_DOLLARS)
		put(w, &c->cost_microusd, value);
	else if (unit == UNIT_TOKENS)
		put(w, &c->tokens, value);
	else if (unit == UNIT_ITERATIONS)
		put(w, &c->iterations, value);
}

/* A number and its unit; how many words they are, 0: not these. */
static int take_amount(struct walk *w, int at)
{
	int64_t n = number_at(w, at), of = 0, ms = 0;
	enum unit unit;
	int used = 1;

	if (n < 0)
		return 0;
	if (w->t[at].dollars) {
		const char *point = strchr(w->t[at].text, '.');

		/* "$0.125" and "$1.000" are not what anybody says. */
		w->unclear = w->unclear || (point && strlen(point) > 3);
		put_amount(w, UNIT_DOLLARS, 100, n);
		return 1;
	}
	/* "half an hour" */
	if (!w->t[at].number && n == 500000 && at + 1 < w->n && listed("a|an", w->t[at + 1].text))
		used++;
	unit = unit_at(w, at + used, &of);
	if (unit == UNIT_MS && of == 60000 && strcmp(w->t[at + used].text, "m") == 0) {
		int64_t rest;

		if (unit_at(w, at + used + 1, &rest) == UNIT_TOKENS) { /* "1m tokens" */
			unit = UNIT_TIMES;
			of = 1000000;
		}
	}
	if (unit == UNIT_TIMES) {
		w->unclear = w->unclear || !scaled(n, of * 1000000, &n);
		used++;
		unit = unit_at(w, at + used, &of);
		w->unclear = w->unclear || (unit != UNIT_TOKENS && unit != UNIT_NONE);
	}
	if (unit == UNIT_NONE || unit == UNIT_TIMES)
		return 0;
	used++;
	if (unit != UNIT_MS) {
		put_amount(w, unit, of, n);
		return used;
	}
	w->unclear = w->unclear || !scaled(n, of, &ms);
	for (int more; (more = more_time(w, at + used, of, &ms)) > 0; used += more)
		(void)unit_at(w, at + used + more - 1, &of);
	put(w, &w->change->time_ms, ms);
	w->time = true;
	w->patience = w->patience || (!w->t[at].number && n == 1000000);
	return used;
}

/* ---- names */

struct name {
	char *to; /* of the change */
	size_t size;
	char value[128];
};

/* The words from `at` as one, `sign` between them; false: there are not so many, or a
 * comma parts them. */
static bool joined(const struct walk *w, int at, int words, char sign, char out[128])
{
	size_t n = 0;

	for (int i = at; i < at + words; i++) {
		if (i >= w->n || w->t[i].dollars || (i > at && w->t[i].comma))
			return false;
		n += (size_t)snprintf(out + n, 128 - n, "%.*s%.*s", i > at, &sign, TOKEN_LEN - 1,
				      w->t[i].text);
	}
	return n < 100;
}

/* "code_reviewer", "code-reviewer", "codereviewer", "reviewer". */
static const char *role_named(const char *name)
{
	for (size_t i = 0; role_table[i]; i++) {
		const char *role = role_table[i]->name, *last = strrchr(role, '_');
		size_t first = last ? (size_t)(last - role) : 0;

		if (role_find(name) == role_table[i] ||
		    (last &&
		     (strcmp(name, last + 1) == 0 ||
		      (strncmp(name, role, first) == 0 && strcmp(name + first, last + 1) == 0))))
			return role;
	}
	return NULL;
}

/* An alias, or its end ("haiku" of "claude-haiku"), with one slip where `announced`. */
static bool is_alias(const char *alias, size_t len, const char *name, bool announced)
{
	const char *end = memchr(alias, '-', len);
	size_t n = strlen(name), tail = end ? len - (size_t)(end + 1 - alias) : 0;

	return (n == len && memcmp(name, alias, n) == 0) ||
	       (tail > 0 && n == tail && memcmp(name, end + 1, n) == 0) ||
	       (tail > 4 && n > 4 && announced && near_distance(name, n, end + 1, tail) == 1);
}

/* Rows of config.yaml, then those that are built in; NULL behind the last. */
static const struct model_row *model_at(size_t i)
{
	size_t own = 0;

	while (own < i && models_own(own))
		own++;
	return models_own(i) ? models_own(i) : models_builtin(i - own);
}

/* The alias or id that is meant, into `out`. */
static bool model_named(const char *name, bool announced, char out[128])
{
	const struct model_row *row;

	for (size_t i = 0; (row = model_at(i)) != NULL; i++) {
		const char *tail = strchr(row->id, '/'), *alias = row->aliases ? row->aliases : "";

		if (strcmp(row->id, name) == 0 || (tail && strcmp(tail + 1, name) == 0)) {
			snprintf(out, 128, "%s", name);
			return true;
		}
		for (size_t len; *alias; alias += len + (alias[len] == ' ')) {
			len = strcspn(alias, " ");
			if (!is_alias(alias, len, name, announced))
				continue;
			snprintf(out, 128, "%.*s", (int)len, alias);
			return true;
		}
	}
	snprintf(out, 128, "%s", name);
	return strcmp(name, "offline") == 0;
}

/* Words that announce a model, and may have any form there: it is looked for when the
 * change is carried out. */
static bool announces(const struct walk *w, int at, bool any)
{
	const char *before = w->t[MAX(at - 1, 0)].text;

	if (at == 0)
		return false;
	return strcmp(before, "model") == 0 ||
	       (listed("use|with|to", before) && (any || strpbrk(w->t[at].text, "-:/")));
}

/* The name at this word: how many words it is; 0: none. */
static int find_name(const struct walk *w, int at, struct name *out)
{
	struct change *c = w->change;
	int64_t of;

	for (int words = 3; words > 0; words--) {
		char name[128];
		const char *role;

		/* Of "sonnet 5 minutes" the number is none of its name. */
		if (!joined(w, at, words, '-', name) || w->t[at].number ||
		    (w->t[at + words - 1].number && unit_at(w, at + words, &of) != UNIT_NONE))
			continue;
		if (model_named(name, words == 1 && announces(w, at, true), out->value)) {
			out->to = c->model;
			out->size = sizeof(c->model);
			return words;
		}
		role = role_named(name);
		if (!role && joined(w, at, words, '_', name))
			role = role_named(name);
		if (role ||
		    (words == 2 && strncmp(name, "go_", 3) == 0 && spec_is_preset(name + 3)) ||
		    (words == 1 && spec_is_preset(name))) {
			out->to = role ? c->role : c->preset;
			out->size = role ? sizeof(c->role) : sizeof(c->preset);
			snprintf(out->value, sizeof(out->value), "%s",
				 role         ? role
				 : words == 2 ? name + 3
					      : name);
			return words;
		}
	}
	if (w->t[at].number || !announces(w, at, false))
		return 0;
	out->to = c->model;
	out->size = sizeof(c->model);
	snprintf(out->value, sizeof(out->value), "%s", w->t[at].text);
	return 1;
}

static bool a_name(const struct walk *w, int at)
{
	enum use use = USE_NONE;
	struct name name;
	int64_t of;

	return at < w->n && !w->t[at].number && number_at(w, at) < 0 &&
	       unit_at(w, at, &of) == UNIT_NONE && find_phrase(w, at, &use) == 0 &&
	       find_name(w, at, &name) == 0;
}

/* The tools after "without": how many words they are; 0: none follows. */
static int take_tools(struct walk *w, int at)
{
	struct change *c = w->change;
	int start = at;

	while (at < w->n &&
	       (strcmp(w->t[at].text, "the") == 0 || strcmp(w->t[at].text, "tool") == 0 ||
		strcmp(w->t[at].text, "using") == 0))
		at++;
	while (a_name(w, at)) {
		char *name = c->without[c->nwithout];
		int n;

		if (c->nwithout == CHANGE_WITHOUT_MAX) {
			w->unclear = true;
			return at - start;
		}
		n = snprintf(name, sizeof(c->without[0]), "%.39s", w->t[at].text);
		w->unclear = w->unclear || strlen(w->t[at].text) > 39;
		at++;
		/* "web search" is web_search. */
		if (a_name(w, at) && !w->t[at].comma && !strchr(w->t[at].text, '_') &&
		    !strchr(name, '_'))
			snprintf(name + n, sizeof(c->without[0]) - (size_t)n, "_%.20s",
				 w->t[at++].text);
		c->nwithout++;
		w->changed = true;
		if (at + 1 < w->n &&
		    (strcmp(w->t[at].text, "and") == 0 || strcmp(w->t[at].text, "or") == 0) &&
		    a_name(w, at + 1))
			at++;
	}
	while (at < w->n && at > start &&
	       (strcmp(w->t[at].text, "tool") == 0 || strcmp(w->t[at].text, "tools") == 0))
		at++;
	return c->nwithout ? at - start : 0;
}

/* ---- the walk */

static int take_phrase(struct walk *w, int at)
{
	enum use use = USE_NONE;
	struct name name;
	int n = find_phrase(w, at, &use), words = find_name(w, at, &name), tools;

	if (words > n) {
		put_word(w, name.to, name.size, name.value);
		return words;
	}
	if (n == 0)
		return 0;
	switch (use) {
	case USE_YES:
		w->yes = true;
		break;
	case USE_PLAIN_NO:
		w->no = true;
		w->plain_no = at == 0;
		w->other_no = w->other_no || at > 0;
		break;
	case USE_NO:
		w->no = w->other_no = true;
		break;
	case USE_GLUE:
		w->glue = true;
		break;
	case USE_LIMIT:
		w->limit = true;
		break;
	case USE_BUT:
		w->but = true;
		break;
	case USE_LESS_MONEY:
	case USE_LESS_TIME:
		/* "20 cents cheaper" is a difference, not a limit. */
		w->limit = true;
		w->unclear = w->unclear || w->changed;
		break;
	case USE_WITHOUT:
		tools = take_tools(w, at + n);
		w->unclear = w->unclear || tools == 0;
		n += tools;
		break;
	case USE_THINK:
	case USE_NO_THINKING:
		put_thinking(w, use == USE_THINK);
		break;
	case USE_POLITE:
		break;
	case USE_UNCLEAR:
	case USE_NONE:
		w->unclear = true;
		break;
	}
	return n;
}

/* "cheaper" without an amount says too little. */
static bool half_said(const struct walk *w)
{
	for (int i = 0; i < w->n; i++) {
		if (listed("cheaper|cheap", w->t[i].text) &&
		    w->change->cost_microusd == CHANGE_KEEP && !w->change->model[0] &&
		    w->change->time_ms == CHANGE_KEEP && w->change->tokens == CHANGE_KEEP &&
		    w->change->iterations == CHANGE_KEEP)
			return true;
		if (listed("faster|quicker|shorter", w->t[i].text) &&
		    w->change->time_ms == CHANGE_KEEP)
			return true;
	}
	return false;
}

static enum answer decide(const struct walk *w)
{
	if (w->unclear || (w->yes && w->no) || half_said(w))
		return ANSWER_UNCLEAR;
	if (w->changed && w->no)
		return w->plain_no && !w->other_no ? ANSWER_CHANGE : ANSWER_UNCLEAR;
	/* "Just a minute" asks for patience; so may "yes, 5 minutes". */
	if (!w->limit && ((w->time && w->yes && !w->but) || w->patience))
		return ANSWER_UNCLEAR;
	if (w->changed)
		return w->yes ? ANSWER_YES_WITH : ANSWER_CHANGE;
	if (w->glue || w->limit || w->but)
		return ANSWER_UNCLEAR;
	return w->yes ? ANSWER_YES : w->no ? ANSWER_NO : ANSWER_UNCLEAR;
}

enum answer answer_parse(const char *text, struct change *change)
{
	struct walk w = {.change = change};
	enum answer a = ANSWER_UNCLEAR;
	struct name name;

	*change = (struct change)CHANGE_NONE;
	w.n = tokens_read(text, w.t);
	for (int i = 0; i < w.n; i++)
		if (!w.t[i].number && !known(w.t[i].text) && find_name(&w, i, &name) == 0)
			put_right(w.t[i].text);
	for (int at = 0; at < w.n && !w.unclear;) {
		int n = take_amount(&w, at);

		if (n == 0)
			n = take_phrase(&w, at);
		w.unclear = w.unclear || n == 0;
		at += n;
	}
	if (w.n > 0)
		a = decide(&w);
	if (a != ANSWER_YES_WITH && a != ANSWER_CHANGE)
		*change = (struct change)CHANGE_NONE;
	return a;
}
