/* Understanding an answer: it is cut into words, and a walk over them takes the longest
 * phrase of a table that fits, a number with its unit, or the name of a role, a model or a
 * preset that there is. A word that nothing takes makes the answer unclear, so that "yes,
 * unless it costs more" is no yes; what was taken together decides.
 *
 * Case, blanks, closing marks and apostrophes go; numbers are read with their digits
 * grouped as in "20,000"; a mark that could turn the meaning of the words (a question
 * mark, quotes, a minus sign) makes the whole answer unreadable, and so does every
 * character not known here. Before, words that are not known are put right: letters that
 * were held too long, neighbours that were swapped, and one slip in the long words.
 * Nothing is allocated, nothing can fail. */
#include "ava/answer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/near.h"
#include "base/util.h"
#include "provider/model.h"
#include "subagent/rolebook.h"
#include "subagent/spec.h"

/* Meanings of phrases, and those that the walk has met. */
enum answer_said {
	SAID_POLITE = 0, /* the phrase has no meaning */
	SAID_YES = 1,
	SAID_NO = 2,       /* a no as the first word alone: it may go before a change */
	SAID_NO_MORE = 4,  /* a final no */
	SAID_GLUE = 8,     /* a filler that may stand only beside a change */
	SAID_LIMIT = 16,   /* a change must stand beside the phrase */
	SAID_BUT = 32,     /* a change must stand beside this one, too */
	SAID_CHEAPER = 64, /* an amount or a model must stand beside this word */
	SAID_FASTER = 128,
	SAID_THINK = 256,
	SAID_NO_THINKING = 512,
	SAID_CHANGE = 1024,
	SAID_TIME = 2048,
	SAID_PATIENCE = 4096, /* asks for time: "a minute", "one step" */
	SAID_DONT = 8192,     /* "don't": a yes behind this word is a no */
	SAID_WITHOUT = 16384, /* "without": names of tools follow */
	SAID_UNCLEAR = 32768,
	SAID_ALL_THREE = 65536,
};

/* Phrases stand between bars; the longest that fits wins. "do not" is read as "dont". */
static const struct {
	enum answer_said said;
	const char *phrases;
} meanings[] = {
	{SAID_YES,
	 "y|yes|yep|yup|yeah|yea|ya|yeh|ja|oui|si|aye|sure|sur|sure thing|sure why not|ok|okay|"
	 "oki|okey|okie|oky|ok with me|ok let it|okay let it|yes let it|let it do it|let it do "
	 "that|let it run|k|kk|go|go ahead|go ahed|go on|go for it|go with it|proceed|"
	 "do it|do that|do so|please do|i do|you can|you may|confirm|confirmed|i confirm|start|run|"
	 "launch|execute|spawn|make it so|ship|sounds good|sounds great|sounds good to me|"
	 "looks good|looks good to me|looks great|lgtm|fine|fine by me|fine with me|thats fine|"
	 "that is fine|its fine|works for me|that works|good to go|of course|certainly|definitely|"
	 "absolutely|affirmative|roger|approve|approved|i approve|accept|accepted|i accept|agree|"
	 "agreed|i agree|by all means|lets go|lets do it|lets do this|lets do that|all right|"
	 "alright|thumbsup|im sure|i am sure|continue|carry on|allow|allow it|allowed|permit|grant|"
	 "sounds perfect|good idea|great idea|love it|i love it|"
	 "jo|jawohl|klar|na klar|gerne|mach|mach mal|mach das|mach es|leg los|los|einverstanden|"
	 "in ordnung|passt|genau|erlaubt|ouais|bien sur|daccord|allez|allez y|vas-y|vas y|claro|"
	 "claro que si|vale|de acuerdo|adelante|dale|sim|pode ser|va bene|certo|akkoord|doe maar|"
	 "is goed"},
	{SAID_NO, "no|nop|nope|nah|n|nein|non|nee|noe|nao|nej"},
	{SAID_NO_MORE,
	 "no thanks|no thank you|no way|no go|no need|no deal|not now|not today|hell no|god no|"
	 "of course not|certainly not|absolutely not|definitely not|i dont want it|i dont want "
	 "that|"
	 "i dont want this|i changed my mind|changed my mind|"
	 "not this time|never mind|nevermind|stop|stop here|cancel|abort|reject|rejected|i reject|"
	 "decline|declined|i decline|deny|denied|refuse|i refuse|forget|forget about it|leave it|"
	 "drop it|skip|id rather not|rather not|better not|maybe later|later|another time|negative|"
	 "thumbsdown|quit|exit|nay|veto|kill it|scrap it|dont bother|nein danke|lieber nicht|"
	 "lass das|lass es|lass mal|vergiss es|auf keinen fall|abbrechen|stopp|non merci|"
	 "pas maintenant|annule|no gracias|nao obrigado|nao obrigada|no grazie|nee bedankt|"
	 "nee dank je"},
	{SAID_DONT, "dont|never"},
	{SAID_POLITE,
	 "please|pls|plz|plase|thanks|thank you|thank you very much|thanks a lot|many thanks|"
	 "and thanks|and thank you|thx|ty|cheers|ava|sir|maam|hi|hello|hey|now|right now|"
	 "right away|asap|for now|great|perfect|excellent|awesome|wonderful|nice|cool|good|"
	 "very good|then|oh|just|just this once|only this once|this once|this time|that is "
	 "it|thats it|"
	 "thats exactly what i need|that is exactly what i need|exactly what i need|"
	 "thats what i want|that is what i want|just what i need|bitte|danke|bitte schon|danke "
	 "schon|"
	 "merci|sil vous plait|sil te plait|por favor|gracias|obrigado|obrigada|grazie|per favore|"
	 "alstublieft|bedankt|dank je|mal|doch|super|toll"},
	{SAID_GLUE,
	 "a|an|the|it|its|that|this|to|for|with|at|of|use|using|set|make|keep|on|as|and|i want|let|"
	 "id like|like|instead|rather|switch|change|model|role|preset|mode|version|dive|one|"
	 "go with|tool|tools|do|do it with|can you|could you|can we|could we|can it|would "
	 "you|please use|take|limits|"
	 "make it a|make that|have|mit|nimm"},
	{SAID_LIMIT,
	 "max|maximum|most|limit|limited|cap|capped|under|below|within|upto|up to|no more than|"
	 "not more than|but no more than|less than|fewer than|not over|not above|no longer than|"
	 "not longer than|but no longer "
	 "than|tops|budget|only|timeout|time|cost|costs|costing|price|"
	 "spend|ceiling|is enough|is plenty|is the limit|is the maximum|is the max|is my limit|"
	 "and no more|or less|dont spend more than|dont go over|stop after|stop it after|hochstens|"
	 "maximal|nicht mehr als|bis zu|nur|au plus|maximum de|maximo|como maximo|al massimo|"
	 "hoogstens"},
	{SAID_UNCLEAR, "noon|not yet"}, /* "noon" must not be read as a long "non" */
	{SAID_ALL_THREE, "all three|all three rights|all three together|alle drei|toutes les trois|"
			 "les trois|las tres|tutti e tre"},
	{SAID_BUT, "but|provided|as long as it stays|aber|mais|pero|mas|maar|solange es"},
	{SAID_CHEAPER, "cheaper|cheap"},
	{SAID_FASTER, "faster|quicker|shorter"},
	{SAID_WITHOUT,
	 "without|wo|w/o|but no|and no|minus|except|leave out|drop|dont use|excluding"},
	{SAID_THINK, "with thinking|use thinking|thinking on|turn on thinking|turn thinking on|"
		     "enable thinking|enable extended thinking|extended thinking|let it think"},
	{SAID_NO_THINKING,
	 "no thinking|without thinking|but no thinking|and no thinking|thinking off|turn off "
	 "thinking|"
	 "turn thinking off|disable thinking|disable extended thinking|no extended thinking|"
	 "but no extended thinking|without extended thinking|extended thinking off"},
};

static const char yes_signs[] = "👍|✅|✔|👌|🆗", no_signs[] = "👎|❌|🚫|🛑|✋",
		  smiles[] = "🙏|🙂|😊|😀|🎉|🚀|:-)|:)";
/* Blanks stand between words; marks part clauses. */
static const char blanks[] = " |\t|\n|\r|\xc2\xa0", marks[] = ",|.|!|;|:|–|—|…|-";

enum unit { UNIT_NONE, UNIT_CENTS, UNIT_MS, UNIT_TOKENS, UNIT_ITERATIONS, UNIT_TIMES };

static const struct {
	enum unit unit;
	int64_t of; /* how many cents, ms, … one unit has; UNIT_TIMES: the factor */
	const char *words;
} units[] = {
	{UNIT_CENTS, 1, "c|ct|cts|cent|cents"},
	{UNIT_CENTS, 100, "dollar|dollars|usd|buck|bucks"},
	{UNIT_MS, 1000, "s|sec|secs|second|seconds|sekunde|sekunden|secondes|segundos|secondi"},
	{UNIT_MS, 60000, "m|min|mins|minute|minutes|minuten|minuto|minutos|minuti|minuut"},
	{UNIT_MS, 3600000, "h|hr|hrs|hour|hours|stunde|stunden"},
	{UNIT_MS, 86400000, "d|day|days"},
	{UNIT_TOKENS, 1, "token|tokens|tok|toks"},
	{UNIT_ITERATIONS, 1,
	 "iteration|iterations|iter|iters|step|steps|turn|turns|call|calls|reply|replies"},
	{UNIT_ITERATIONS, 1, "round|rounds"},
	{UNIT_TIMES, 1000, "k|thousand"},
	{UNIT_TIMES, 1000000, "million"},
};

static const struct {
	int value;
	const char *words;
} numbers[] = {
	{1, "a|an|one"}, {2, "two"},      {3, "three"},   {4, "four"},      {5, "five"},
	{6, "six"},      {7, "seven"},    {8, "eight"},   {9, "nine"},      {10, "ten"},
	{12, "twelve"},  {15, "fifteen"}, {20, "twenty"}, {30, "thirty"},   {40, "forty"},
	{50, "fifty"},   {60, "sixty"},   {90, "ninety"}, {100, "hundred"},
};

/* ---- cutting the answer into words */

#define TOKENS_MAX 48
#define TOKEN_LEN  64

struct token {
	char text[TOKEN_LEN]; /* lower case, without apostrophes; of a number its digits */
	bool number;
	bool dollars; /* a number with $ before it */
	bool comma;   /* a comma or the like stands before it */
	int64_t millionths;
};

struct answer_walk {
	struct token t[TOKENS_MAX];
	int n;
	unsigned said;
	struct change *change;
};

/* `word` stands between the bars of `list`. */
static bool answer_listed(const char *list, const char *word)
{
	size_t n = strlen(word);

	for (const char *s = list; n > 0 && (s = strstr(s, word)) != NULL; s++)
		if ((s == list || s[-1] == '|') && (s[n] == '|' || s[n] == 0))
			return true;
	return false;
}

static bool answer_is_word(const struct answer_walk *w, int at, const char *list)
{
	return at >= 0 && at < w->n && !w->t[at].number && answer_listed(list, w->t[at].text);
}

/* The length of the entry of `list` that `s` begins with; 0: none. */
static size_t answer_begins(const char *s, const char *list)
{
	for (size_t n; *list; list += n + (list[n] == '|')) {
		n = strcspn(list, "|");
		if (strncmp(s, list, n) == 0)
			return n;
	}
	return 0;
}

static bool answer_is_letter(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool answer_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* The word goes on behind `s`: "claude-sonnet-4.5" and "local/qwen3:8b" are one word each. */
static bool answer_goes_on(const char *s, const struct token *t)
{
	if (!*s || (!answer_is_letter(s[1]) && !answer_is_digit(s[1])))
		return false;
	return *s == '-' || *s == '/' || (*s == '.' && answer_is_digit(s[1])) ||
	       (*s == ':' && strchr(t->text, '/'));
}

/* `unit`: the word follows a number directly, as the h and the m of "1h30m". */
static const char *read_word(const char *s, bool unit, struct token *t)
{
	for (size_t n = 0; n + 1 < TOKEN_LEN;) {
		size_t skip = answer_begins(s, "'|’");

		if (skip && answer_is_letter(s[skip]))
			s += skip;
		else if (answer_is_letter(*s) ||
			 (!unit && (answer_is_digit(*s) || answer_goes_on(s, t))))
			t->text[n++] = (char)(*s >= 'A' && *s <= 'Z' ? *s + 'a' - 'A' : *s), s++;
		else
			return s;
	}
	return NULL;
}

/* Reads digits in groups of three. NULL: a number that may mean two things, such as "0,20",
 * "20.000" or "5-10". */
static const char *answer_read_number(const char *s, struct token *t)
{
	int64_t whole = 0, part = 0, unit = 100000;
	const char *start = s;

	for (; answer_is_digit(*s) || (*s == ',' && answer_is_digit(s[1])); s++) {
		if (*s == ',' && (strspn(s + 1, "0123456789") != 3))
			return NULL;
		if (*s != ',')
			whole = whole * 10 + (*s - '0');
		if (whole > 1000000000)
			return NULL;
	}
	if (*s == '.' && answer_is_digit(s[1]))
		for (s++; answer_is_digit(*s); s++, unit /= 10)
			part += unit * (*s - '0');
	if (unit < 1000 || s - start >= TOKEN_LEN ||
	    (*s && strchr(".,-/:", *s) && answer_is_digit(s[1])))
		return NULL;
	memcpy(t->text, start, (size_t)(s - start));
	t->number = true;
	t->millionths = whole * 1000000 + part;
	return s;
}

static void token_is(struct token *t, const char *word)
{
	snprintf(t->text, sizeof(t->text), "%s", word);
}

/* Reads emoji and other signs as words. */
static const char *read_sign(const char *s, struct token *t)
{
	const struct {
		const char *list, *word;
	} signs[] = {{yes_signs, "thumbsup"},
		     {no_signs, "thumbsdown"},
		     {smiles, "please"},
		     {"&", "and"},
		     {"¢", "cents"}};

	if ((*s == '+' || *s == '-') && s[1] == '1' && (s[2] == 0 || strchr(" \t\r\n,.!", s[2]))) {
		token_is(t, *s == '+' ? "thumbsup" : "thumbsdown");
		return s + 2;
	}
	for (size_t i = 0; i < ARRAY_LEN(signs); i++) {
		size_t n = answer_begins(s, signs[i].list);

		if (!n)
			continue;
		token_is(t, signs[i].word);
		s += n;
		s += answer_begins(s, "🏻|🏼|🏽|🏾|🏿"); /* skip a skin colour */
		return s + answer_begins(s, "\xef\xb8\x8f");
	}
	return NULL;
}

/* Skips the marks before the next word, but not a minus sign. */
static const char *skip_marks(const char *s, bool *comma)
{
	for (;;) {
		size_t n = answer_begins(s, blanks);

		if (!n && !answer_begins(s, ":)|:-)") &&
		    !(*s == '-' && (answer_is_digit(s[1]) || s[1] == '$'))) {
			n = answer_begins(s, marks);
			*comma |= n > 0;
		}
		if (!n)
			return s;
		s += n;
	}
}

/* "höchstens", "não": the letters of Latin-1 (U+00C0 to U+00FF, in UTF-8 c3 and one byte)
 * without their marks. */
static void fold(const char *text, char out[ANSWER_BYTES_MAX + 1])
{
	static const char plain[] =
		"AAAAAAACEEEEIIIIDNOOOOO*OUUUUY**aaaaaaaceeeeiiiidnooooo*ouuuuy*y";
	size_t n = 0;

	for (; *text && n < ANSWER_BYTES_MAX; text++)
		if ((unsigned char)text[0] == 0xc3 && ((unsigned char)text[1] & 0xc0) == 0x80 &&
		    plain[(unsigned char)text[1] & 0x3f] != '*')
			out[n++] = plain[(unsigned char)*++text & 0x3f];
		else
			out[n++] = *text;
	out[n] = 0;
}

/* false: the text has a character that no answer has: a question mark, a quotation mark, a
 * character of another script. */
static bool read_tokens(const char *text, struct answer_walk *w)
{
	for (;;) {
		struct token *t = &w->t[w->n];
		bool comma = false;
		const char *s = skip_marks(text, &comma);
		bool unit = s == text && w->n > 0 && w->t[w->n - 1].number;

		if (!*s)
			return true;
		if (w->n == TOKENS_MAX)
			return false;
		t->comma = comma;
		t->dollars = *s == '$' && answer_is_digit(s[1]);
		text = answer_is_letter(*s)                ? read_word(s, unit, t)
		       : answer_is_digit(*s) || t->dollars ? answer_read_number(s + t->dollars, t)
							   : read_sign(s, t);
		if (!text)
			return false;
		if (strcmp(t->text, "not") == 0 && answer_is_word(w, w->n - 1, "do")) {
			token_is(&w->t[w->n - 1], "dont");
			memset(t, 0, sizeof(*t));
		} else {
			w->n++;
		}
	}
}

/* ---- words */

/* `word` is `want` with letters held too long. */
static bool answer_held_too_long(const char *word, const char *want, size_t len)
{
	for (size_t i = 0; i < len; i++, word++) {
		if (*word != want[i])
			return false;
		while (i + 1 < len ? word[1] == *word && want[i + 1] != *word : word[1] == *word)
			word++;
	}
	return *word == 0;
}

static bool swapped(const char *word, const char *want, size_t len)
{
	size_t i = 0;

	while (i < len && word[i] == want[i])
		i++;
	return i + 1 < len && word[i] == want[i + 1] && word[i + 1] == want[i] &&
	       strncmp(word + i + 2, want + i + 2, len - i - 2) == 0;
}

/* Turns `word` into the first word of `list` that it may be mistyped of; `same`: only looks for
 * `word` itself. */
static bool find_near(const char *list, char word[TOKEN_LEN], bool same)
{
	size_t len = strlen(word);

	for (size_t n; *list; list += n + (list[n] != 0)) {
		n = strcspn(list, "| ");
		if (same ? n == len && memcmp(word, list, n) == 0
			 : (n == len && n > 2 && swapped(word, list, n)) ||
				    answer_held_too_long(word, list, n) ||
				    (len > 5 && n > 5 && near_distance(word, len, list, n) == 1)) {
			snprintf(word, TOKEN_LEN, "%.*s", (int)n, list);
			return true;
		}
	}
	return false;
}

static void put_right(char word[TOKEN_LEN])
{
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
			if (answer_listed(numbers[i].words, word))
				return;
		for (size_t i = 0; i < ARRAY_LEN(meanings); i++)
			if (find_near(meanings[i].phrases, word, pass == 0))
				return;
		for (size_t i = 0; i < ARRAY_LEN(units); i++)
			if (find_near(units[i].words, word, pass == 0))
				return;
	}
}

/* How many words of the answer the phrase takes; 0: it does not stand at `at`. */
static int answer_fits(const struct answer_walk *w, int at, const char *phrase, size_t len)
{
	const char *end = phrase + len;
	int n = 0;

	for (; phrase < end; n++) {
		size_t word = strcspn(phrase, " |");
		const struct token *t = &w->t[at + n];

		if (at + n >= w->n || t->number || strlen(t->text) != word ||
		    memcmp(t->text, phrase, word) != 0)
			return 0;
		phrase += word + 1;
	}
	return n;
}

/* The longest phrase at `at`. */
static int find_phrase(const struct answer_walk *w, int at, enum answer_said *said)
{
	int best = 0;

	for (size_t i = 0; i < ARRAY_LEN(meanings); i++) {
		const char *s = meanings[i].phrases;

		for (size_t len; *s; s += len + (s[len] == '|')) {
			int n;

			len = strcspn(s, "|");
			n = answer_fits(w, at, s, len);
			if (n > best) {
				best = n;
				*said = meanings[i].said;
			}
		}
	}
	return best;
}

/* ---- changes. Two different values of one are unclear. */

static void unclear_if(struct answer_walk *w, bool is)
{
	w->said |= is ? SAID_UNCLEAR : 0;
}

static void answer_put_words(struct answer_walk *w, int64_t *to, int64_t value)
{
	unclear_if(w, *to != CHANGE_KEEP && *to != value);
	*to = value;
	w->said |= SAID_CHANGE;
}

/* ---- numbers */

static enum unit answer_unit_at(const struct answer_walk *w, int at, int64_t *of)
{
	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (answer_is_word(w, at, units[i].words)) {
			*of = units[i].of;
			return units[i].unit;
		}
	return UNIT_NONE;
}

/* The number at this word, in millionths; -1: none. */
static int64_t answer_number_at(const struct answer_walk *w, int at)
{
	if (at < w->n && w->t[at].number)
		return w->t[at].millionths;
	if (answer_is_word(w, at, "half"))
		return 500000;
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		if (answer_is_word(w, at, numbers[i].words))
			return numbers[i].value * 1000000LL;
	return -1;
}

/* Turns millionths of a unit into the scale; out of range, or not whole, is unclear. */
static int64_t answer_scaled(struct answer_walk *w, int64_t millionths, int64_t scale)
{
	int64_t product = 0;

	unclear_if(w,
		   __builtin_mul_overflow(millionths, scale, &product) || product % 1000000 != 0);
	return product / 1000000;
}

/* Adds to *ms the rest of a time whose first part ended in the unit `above`: "1h30m", "1 hour and
 * 30 minutes", "1h30"; returns how many words it takes. */
static int more_time(struct answer_walk *w, int at, int64_t above, int64_t *ms)
{
	int and = answer_is_word(w, at, "and"), unit;
	const struct token *t = &w->t[at + and];
	int64_t of = 60000;

	if (at + and >= w->n || !t->number || t->dollars || t->millionths >= 60 * 1000000LL)
		return 0;
	unit = answer_unit_at(w, at + and+1, &of);
	if (unit != UNIT_MS &&
	    (unit != UNIT_NONE || and || above != 3600000 || t->comma || at + 1 < w->n))
		return 0;
	if (of >= above)
		return 0;
	*ms += answer_scaled(w, t->millionths, of);
	return and+1 + (unit == UNIT_MS);
}

/* Takes a number with its unit; returns how many words they are, 0: none stands here. */
static int take_amount(struct answer_walk *w, int at)
{
	struct change *c = w->change;
	int64_t n = answer_number_at(w, at), of = 100, ms, rest;
	enum unit unit;
	int used = 1;
	bool one;

	if (n < 0)
		return 0;
	if (w->t[at].dollars) {
		/* In "$5k" the k is not a yes. */
		unclear_if(w, answer_unit_at(w, at + 1, &rest) != UNIT_NONE);
		answer_put_words(w, &c->cost_microusd, answer_scaled(w, n, 1000000));
		return 1;
	}
	/* "one and a half minutes" is more than "half a minute" */
	unclear_if(w, n == 500000 &&
			      answer_is_word(w, at - 1 - answer_is_word(w, at - 1, "a"), "and"));
	one = !w->t[at].number && n == 1000000;
	used += n == 500000 && answer_is_word(w, at + 1, "a|an"); /* "half an hour" */
	unit = answer_unit_at(w, at + used, &of);
	if (answer_is_word(w, at + used, "m") &&
	    answer_unit_at(w, at + used + 1, &rest) == UNIT_TOKENS) {
		unit = UNIT_TIMES; /* "1m tokens" */
		of = 1000000;
	}
	if (unit == UNIT_TIMES) {
		n = answer_scaled(w, n, of * 1000000);
		unit = answer_unit_at(w, at + ++used, &of);
		unclear_if(w, unit != UNIT_TOKENS);
	}
	used++;
	switch (unit) {
	case UNIT_NONE:
	case UNIT_TIMES:
		return 0;
	case UNIT_CENTS:
		answer_put_words(w, &c->cost_microusd, answer_scaled(w, n, of * 10000));
		return used;
	case UNIT_TOKENS:
		answer_put_words(w, &c->tokens, answer_scaled(w, n, of));
		return used;
	case UNIT_ITERATIONS:
		answer_put_words(w, &c->iterations, answer_scaled(w, n, of));
		w->said |= one ? SAID_PATIENCE : 0;
		return used;
	case UNIT_MS:
		break;
	}
	ms = answer_scaled(w, n, of);
	for (int more; (more = more_time(w, at + used, of, &ms)) > 0; used += more)
		(void)answer_unit_at(w, at + used + more - 1, &of);
	answer_put_words(w, &c->time_ms, ms);
	w->said |= SAID_TIME;
	w->said |= one ? SAID_PATIENCE : 0;
	return used;
}

/* ---- names */

struct answer_name {
	char *to; /* field of the change for the name */
	size_t size;
	char value[128];
};

static int name_is(struct answer_name *out, char *to, size_t size, const char *value, int words)
{
	out->to = to;
	out->size = size;
	snprintf(out->value, sizeof(out->value), "%s", value);
	return words;
}

/* Joins the words from `at`; false: too few, or a comma parts them. */
static bool joined(const struct answer_walk *w, int at, int words, char out[128])
{
	size_t n = 0;

	for (int i = at; i < at + words; i++) {
		if (i >= w->n || w->t[i].dollars || (i > at && w->t[i].comma))
			return false;
		n += (size_t)snprintf(out + n, 128 - MIN(n, 127), "%s%s", i > at ? "-" : "",
				      w->t[i].text);
	}
	return n < 100;
}

/* `name` is an alias, or the end of one ("haiku" of "claude-haiku"); one slip is allowed where
 * `announced`. */
static bool is_alias(const char *alias, size_t len, const char *name, bool announced)
{
	const char *end = memchr(alias, '-', len);
	size_t n = strlen(name), tail = end ? len - (size_t)(end + 1 - alias) : 0;

	return (n == len && memcmp(name, alias, n) == 0) ||
	       (tail > 0 && n == tail && memcmp(name, end + 1, n) == 0) ||
	       (tail > 4 && n > 4 && announced && near_distance(name, n, end + 1, tail) == 1);
}

/* Writes the alias or id of the model that `name` means into `out`. */
static bool model_named(const char *name, bool announced, char out[128])
{
	const struct model_row *row;
	size_t own = 0;

	snprintf(out, 128, "%s", name);
	while (models_own(own))
		own++;
	for (size_t i = 0; (row = i < own ? models_own(i) : models_builtin(i - own)) != NULL; i++) {
		const char *tail = strchr(row->id, '/'), *alias = row->aliases ? row->aliases : "";

		if (strcmp(row->id, name) == 0 || (tail && strcmp(tail + 1, name) == 0))
			return true;
		for (size_t len; *alias; alias += len + (alias[len] == ' ')) {
			len = strcspn(alias, " ");
			if (!is_alias(alias, len, name, announced))
				continue;
			snprintf(out, 128, "%.*s", (int)len, alias);
			return true;
		}
	}
	return strcmp(name, "offline") == 0;
}

/* The name at `at`: how many words it takes; 0: none. Behind "model" it may have any form, behind
 * "use", "with" or "to" any with '-', ':' or '/' in it: the model is looked for when the change is
 * carried out. */
static int answer_find_name(const struct answer_walk *w, int at, struct answer_name *out)
{
	struct change *c = w->change;
	bool said = answer_is_word(w, at - 1, "model");
	bool announced = said || answer_is_word(w, at - 1, "use|with|to");
	char name[128], model[128], role[ROLE_NAME_MAX + 1];
	int64_t of;

	if (w->t[at].number)
		return 0;
	for (int words = 3; words > 0; words--) {
		/* In "sonnet 5 minutes" the number belongs to the minutes. */
		if (!joined(w, at, words, name) ||
		    (w->t[at + words - 1].number &&
		     answer_unit_at(w, at + words, &of) != UNIT_NONE))
			continue;
		if (model_named(name, words == 1 && announced, model))
			return name_is(out, c->model, sizeof(c->model), model, words);
		if (role_word(name, words > 1 || announced, role))
			return name_is(out, c->role, sizeof(c->role), role, words);
		if (words == 1 && spec_is_preset(name))
			return name_is(out, c->preset, sizeof(c->preset), name, 1);
		if (words == 2 && strncmp(name, "go-", 3) == 0 && spec_is_preset(name + 3))
			return name_is(out, c->preset, sizeof(c->preset), name + 3, 2);
	}
	if (!said && !(announced && strpbrk(w->t[at].text, "-:/")))
		return 0;
	return name_is(out, c->model, sizeof(c->model), w->t[at].text, 1);
}

static bool unknown_word(const struct answer_walk *w, int at)
{
	enum answer_said said;
	struct answer_name name;
	int64_t of;

	return at < w->n && answer_number_at(w, at) < 0 &&
	       answer_unit_at(w, at, &of) == UNIT_NONE && find_phrase(w, at, &said) == 0 &&
	       answer_find_name(w, at, &name) == 0;
}

bool answer_word(const char *word)
{
	struct change change = CHANGE_NONE;
	struct answer_walk w = {.change = &change};

	return read_tokens(word, &w) && w.n == 1 && !unknown_word(&w, 0);
}

/* Takes the tools after "without"; returns how many words they are, 0: none follows. */
static int answer_take_tools(struct answer_walk *w, int at)
{
	struct change *c = w->change;
	int start = at;

	while (answer_is_word(w, at, "the|tool|using"))
		at++;
	while (unknown_word(w, at)) {
		char *name;
		int n;

		if (c->nwithout == CHANGE_WITHOUT_MAX) {
			w->said |= SAID_UNCLEAR;
			break;
		}
		name = c->without[c->nwithout++];
		n = snprintf(name, sizeof(c->without[0]), "%.39s", w->t[at].text);
		unclear_if(w, strlen(w->t[at++].text) > 39);
		/* "web search" is web_search. */
		if (unknown_word(w, at) && !w->t[at].comma && !strchr(w->t[at].text, '_') &&
		    !strchr(name, '_'))
			snprintf(name + n, sizeof(c->without[0]) - (size_t)n, "_%.20s",
				 w->t[at++].text);
		w->said |= SAID_CHANGE;
		at += answer_is_word(w, at, "and|or") && unknown_word(w, at + 1);
	}
	while (at > start && answer_is_word(w, at, "tool|tools"))
		at++;
	return c->nwithout ? at - start : 0;
}

/* ---- the walk */

static int take_phrase(struct answer_walk *w, int at)
{
	enum answer_said said = SAID_UNCLEAR, next = SAID_POLITE;
	struct change *c = w->change;
	struct answer_name name;
	int n = find_phrase(w, at, &said), words = answer_find_name(w, at, &name);
	int more;

	if (words > n) {
		/* "no opus" forbids a model, and only "no, opus" names one. */
		unclear_if(w, answer_is_word(w, at - 1, "no") && !w->t[at].comma);
		unclear_if(w, (*name.to && strcmp(name.to, name.value) != 0) ||
				      strlen(name.value) >= name.size);
		snprintf(name.to, name.size, "%s", name.value);
		w->said |= SAID_CHANGE;
		return words;
	}
	if (n == 0)
		return 0;
	/* "start it", "cancel that" */
	if ((said & (SAID_YES | SAID_NO_MORE)) && answer_is_word(w, at + n, "it|this|that") &&
	    !w->t[at + n].comma && find_phrase(w, at + n, &next) == 1)
		n++;
	switch (said) {
	case SAID_NO:
		said = at > 0 ? SAID_NO_MORE : SAID_NO;
		break;
	case SAID_DONT:
		/* "do not start" is a no; "do not stop" is not surely a yes. */
		more = find_phrase(w, at + n, &next);
		said = SAID_NO_MORE | (next & (SAID_NO | SAID_NO_MORE) ? SAID_UNCLEAR : 0);
		n += next & SAID_YES ? more + answer_is_word(w, at + n + more, "it|this|that") : 0;
		break;
	case SAID_CHEAPER:
	case SAID_FASTER:
		/* "20 cents cheaper" is a difference, not a limit. */
		said |= SAID_LIMIT | (w->said & SAID_CHANGE ? SAID_UNCLEAR : 0);
		break;
	case SAID_WITHOUT:
		more = answer_take_tools(w, at + n);
		if (more == 0 && w->n == 1 && answer_is_word(w, at, "drop")) {
			said = SAID_NO_MORE; /* "drop the second": the caller took the number out */
			break;
		}
		unclear_if(w, more == 0);
		n += more;
		break;
	case SAID_THINK:
	case SAID_NO_THINKING:
		more = said == SAID_THINK ? 1 : -1;
		unclear_if(w, c->thinking != 0 && c->thinking != more);
		c->thinking = more;
		said = SAID_CHANGE;
		break;
	default:
		break;
	}
	w->said |= said;
	return n;
}

static enum answer answer_decide(const struct answer_walk *w)
{
	const struct change *c = w->change;
	unsigned said = w->said;
	bool yes = said & SAID_YES, no = said & (SAID_NO | SAID_NO_MORE);
	bool faster = c->time_ms != CHANGE_KEEP;
	bool cheaper = faster || c->cost_microusd != CHANGE_KEEP || c->tokens != CHANGE_KEEP ||
		       c->iterations != CHANGE_KEEP || c->model[0];

	if ((said & SAID_UNCLEAR) || (yes && no) || ((said & SAID_CHEAPER) && !cheaper) ||
	    ((said & SAID_FASTER) && !faster))
		return ANSWER_UNCLEAR;
	if ((said & SAID_CHANGE) && no)
		return said & SAID_NO_MORE ? ANSWER_UNCLEAR : ANSWER_CHANGE;
	/* "Just a minute" asks for patience; "yes, 5 minutes" may do so too. */
	if (!(said & SAID_LIMIT) &&
	    ((said & SAID_PATIENCE) || ((said & SAID_TIME) && yes && !(said & SAID_BUT))))
		return ANSWER_UNCLEAR;
	if (said & SAID_CHANGE)
		return yes ? ANSWER_YES_WITH : ANSWER_CHANGE;
	if (said & (SAID_GLUE | SAID_LIMIT | SAID_BUT))
		return ANSWER_UNCLEAR;
	if ((said & SAID_ALL_THREE) && !yes)
		return ANSWER_UNCLEAR;
	return yes ? ANSWER_YES : no ? ANSWER_NO : ANSWER_UNCLEAR;
}

/* "Can you do it with opus instead?" asks for a change: take the question mark off. */
static bool asks_for(char *text)
{
	static const char *const begins_so[] = {"can you ",  "could you ", "can we ",
						"could we ", "can it ",    "would you "};
	size_t len = strlen(text), from = strspn(text, " \t\r\n");

	while (len > 0 && strchr("? \t\r\n", text[len - 1]))
		len--;
	for (size_t i = 0; i < ARRAY_LEN(begins_so); i++)
		if (text[len] == '?' &&
		    strncasecmp(text + from, begins_so[i], strlen(begins_so[i])) == 0) {
			text[len] = 0;
			return true;
		}
	return false;
}

enum answer answer_parse(const char *text, struct change *change)
{
	struct answer_walk w = {.change = change};
	enum answer a = ANSWER_UNCLEAR;
	char plain[ANSWER_BYTES_MAX + 1];
	struct answer_name name;
	bool asked;

	*change = (struct change)CHANGE_NONE;
	unclear_if(&w, strlen(text) > ANSWER_BYTES_MAX);
	fold(text, plain);
	asked = asks_for(plain);
	unclear_if(&w, !read_tokens(plain, &w));
	for (int i = 0; i < w.n; i++)
		if (!w.t[i].number && answer_find_name(&w, i, &name) == 0)
			put_right(w.t[i].text);
	for (int at = 0; at < w.n && !(w.said & SAID_UNCLEAR);) {
		int n = take_amount(&w, at);

		if (n == 0)
			n = take_phrase(&w, at);
		unclear_if(&w, n == 0);
		at += n;
	}
	a = answer_decide(&w);
	if (asked && a != ANSWER_CHANGE)
		a = ANSWER_UNCLEAR;
	if (a != ANSWER_YES_WITH && a != ANSWER_CHANGE)
		*change = (struct change)CHANGE_NONE;
	change->all_three = (w.said & SAID_ALL_THREE) && (a == ANSWER_YES || a == ANSWER_YES_WITH);
	return a;
}

/* ---- changes in words again */

static void answer_say(char *out, size_t size, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static void answer_say(char *out, size_t size, const char *fmt, ...)
{
	size_t n = strlen(out);
	va_list ap;

	n += (size_t)snprintf(out + n, size - n, "%s", n > 0 ? ", " : "yes, with ");
	va_start(ap, fmt);
	vsnprintf(out + MIN(n, size - 1), size - MIN(n, size - 1), fmt, ap);
	va_end(ap);
}

void change_said(const struct change *c, char *out, size_t size)
{
	out[0] = '\0';
	if (c->cost_microusd != CHANGE_KEEP)
		answer_say(out, size, "max_cost_cents=%g", (double)c->cost_microusd / 10000);
	if (c->time_ms != CHANGE_KEEP)
		answer_say(out, size, "timeout=%g", (double)c->time_ms / 1000);
	if (c->tokens != CHANGE_KEEP)
		answer_say(out, size, "max_tokens=%lld", (long long)c->tokens);
	if (c->iterations != CHANGE_KEEP)
		answer_say(out, size, "max_iterations=%lld", (long long)c->iterations);
	if (c->preset[0])
		answer_say(out, size, "preset=%s", c->preset);
	if (c->model[0])
		answer_say(out, size, "model=%s", c->model);
	if (c->role[0])
		answer_say(out, size, "role=%s", c->role);
	if (c->thinking != 0)
		answer_say(out, size, "extended_thinking=%s", c->thinking > 0 ? "on" : "off");
	for (unsigned i = 0; i < c->nwithout; i++)
		answer_say(out, size, "without=%s", c->without[i]);
}
