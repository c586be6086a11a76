/* The closed grammar of answers: a line is cut into tokens, and a walk over them takes the longest
 * phrase of a table that fits, an id or number that picks, or a pair such as "max 30 cents". One
 * token that nothing takes makes the line no answer, so that "yes, unless it costs more" is no yes.
 *
 * Case, apostrophes, marks between words and accents of Latin-1 do not count. A character that is
 * not known here, a question mark and quotation marks among them, ends the reading. Nothing is put
 * right: a mistyped word is an unknown one. */
#include "ava/answer.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/util.h"
#include "provider/model.h"
#include "subagent/rolebook.h"
#include "subagent/spec.h"

/* Meanings of phrases, and those that the walk has met. */
enum answer_said {
	SAID_POLITE = 0,
	SAID_YES = 1,
	SAID_NO = 2,
	SAID_STOP = 4,     /* a no; beside another it may be "never stop", "non annulla" */
	SAID_DONT = 16384, /* a no, but "do not cancel" is none */
	SAID_JOINT = 8,    /* stands only beside a change, and not last */
	SAID_LIMIT = 16,   /* stands only beside an amount */
	SAID_MODEL = 32,   /* a model's name may follow */
	SAID_ROLE = 64,    /* a role's name follows */
	SAID_TOOLS = 128,  /* tools follow */
	SAID_THINK = 256,
	SAID_NO_THINKING = 512,
	SAID_ALL_THREE = 1024,
	SAID_CHANGE = 2048,
	SAID_AMOUNT = 4096,
	SAID_TIME = 8192,
};

/* Phrases stand between bars, without apostrophes and accents; the longest that fits wins. */
static const struct {
	enum answer_said said;
	const char *phrases;
} meanings[] = {
	{SAID_YES,
	 "y|yes|yep|yup|yeah|yea|aye|sure|sure thing|ok|okay|k|go|go ahead|go on|go for it|proceed|"
	 "do it|do that|please do|let it|let it run|confirm|confirmed|i confirm|start|start it|run|"
	 "run it|launch it|approve|approved|i approve|accept|accepted|agreed|i agree|allow|allow "
	 "it|allowed|sounds good|looks good|lgtm|fine|thats fine|of course|certainly|definitely|"
	 "sure why not|just do it|looks good to me|works for me|fine by me|absolutely|by all "
	 "means|lets go|lets do it|all right|alright|thumbsup|"
	 "ja|jawohl|jo|klar|na klar|gerne|mach|mach das|mach es|leg los|los|einverstanden|in "
	 "ordnung|passt|genau|erlaubt|"
	 "oui|ouais|bien sur|daccord|vas-y|vas y|allez|allez-y|allez y|cest bon|confirme|accepte|"
	 "si|claro|claro que si|vale|de acuerdo|adelante|dale|hazlo|confirmo|acepto|por supuesto|"
	 "certo|va bene|daccordo|procedi|fallo|certamente|confermo|accetto|avanti|"
	 "sim|pode ser|pode|faz|faca|concordo|aceito|com certeza|manda|"
	 "akkoord|doe maar|is goed"},
	{SAID_NO,
	 "n|no|nope|nah|no thanks|no thank you|no way|no need|not now|not today|not this "
	 "time|never|"
	 "never mind|nevermind|"
	 "reject|rejected|decline|declined|deny|denied|refuse|forget it|let it go|leave it|"
	 "drop it|skip it|"
	 "rather not|better not|later|maybe later|thumbsdown|"
	 "nein|ne|nee|nein danke|lieber nicht|lass das|lass es|nicht jetzt|auf keinen fall|"
	 "non|non merci|pas maintenant|surtout pas|laisse tomber|refuse|"
	 "no gracias|ahora no|mejor no|dejalo|rechazo|"
	 "no grazie|non ora|meglio di no|lascia stare|rifiuto|"
	 "nao|nao obrigado|nao obrigada|agora nao|melhor nao|deixa|recuso|"
	 "nee bedankt|nee dank je"},
	{SAID_DONT,
	 "dont|do not|no dont|dont do it|do not do it|no dont do it|dont start it|do not start it|"
	 "dont run it|do not run it"},
	{SAID_STOP,
	 "stop|stop it|stop that|cancel|cancel it|cancel that|abort|abort it|quit|exit|kill it|"
	 "stopp|abbrechen|arrete|annule|annuler|para|cancela|cancelar|ferma|annulla|pare"},
	{SAID_POLITE,
	 "please|pls|thanks|thank you|thx|ty|and thanks|and thank you|cheers|ava|hi|hello|hey|now|"
	 "right now|great|perfect|good|nice|then|oh|for|to|just this once|"
	 "bitte|danke|mal|doch|merci|sil vous plait|sil te plait|por favor|gracias|grazie|per "
	 "favore|obrigado|obrigada|alstublieft|bedankt"},
	{SAID_JOINT, "but|and|only|just|instead|rather|a|an|the|it|make it|limit it to|cap it at|"
		     "aber|und|mais|et|pero|ma|e|mas|maar"},
	{SAID_LIMIT,
	 "max|maximum|at most|up to|no more than|not more than|but no more than|and no more "
	 "than|less than|under|within|no longer than|not longer than|but no longer "
	 "than|limit|hochstens|maximal|nicht mehr als|bis zu|au plus|au maximum|"
	 "maximo|como maximo|no maximo|al massimo|massimo|hoogstens"},
	{SAID_MODEL, "with|use|using|model|mit|nimm|modell|avec|modele|con|usa|modelo|modello|com"},
	{SAID_ROLE, "role|as|as a|as the|rolle|als|rol|ruolo|papel"},
	{SAID_TOOLS, "without|w/o|but no|and no|ohne|sans|sin|senza|sem"},
	{SAID_THINK, "thinking on|with thinking|with extended thinking"},
	{SAID_NO_THINKING,
	 "thinking off|no thinking|but no thinking|and no thinking|without thinking|without "
	 "extended thinking"},
	{SAID_ALL_THREE, "all three|all three rights|alle drei|toutes les trois|les trois|las tres|"
			 "tutti e tre|todos os tres"},
};

enum answer_unit { UNIT_CENTS, UNIT_MS, UNIT_TOKENS, UNIT_ITERATIONS };

static const struct {
	enum answer_unit unit;
	int64_t of; /* how many cents, ms, … the unit is */
	const char *phrases;
} units[] = {
	{UNIT_CENTS, 1, "c|ct|cts|cent|cents|centime|centimes|centavo|centavos|centesimi"},
	{UNIT_CENTS, 100, "dollar|dollars|usd|dolares|dollari"},
	{UNIT_MS, 1000, "s|sec|secs|second|seconds|sekunden|secondes|segundos|secondi"},
	{UNIT_MS, 60000, "m|min|mins|minute|minutes|minuten|minuto|minutos|minuti"},
	{UNIT_MS, 3600000, "h|hour|hours|stunde|stunden|heure|heures|hora|horas|ora|ore"},
	{UNIT_MS, 86400000, "d|day|days"},
	{UNIT_TOKENS, 1, "token|tokens"},
	{UNIT_TOKENS, 1000, "k tokens"},
	{UNIT_TOKENS, 1000000, "m tokens"},
	{UNIT_ITERATIONS, 1, "iteration|iterations|step|steps|turn|turns|call|calls|replies"},
};

static const char yes_signs[] = "👍|✅|✔|👌|🆗|+1", no_signs[] = "👎|❌|🚫|🛑|✋|-1",
		  smiles[] = "🙏|🙂|😊|😀|🎉|🚀|:-)|:)";

/* ---- tokens */

#define TOKENS_MAX 48
#define TOKEN_LEN  64

enum token_kind { TOKEN_WORD, TOKEN_ID, TOKEN_NUMBER, TOKEN_DOLLARS };

struct token {
	enum token_kind kind;
	char text[TOKEN_LEN]; /* lower case, without apostrophes */
	int64_t millionths;   /* of a number */
};

struct answer_walk {
	struct token t[TOKENS_MAX];
	int n;
	unsigned said;
	struct answer_line *out;
};

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

/* The length of an id at `s`, whose normal form goes into the token: "P-19c0de", "m-79ce18", or
 * "S-7f3a2b:c3.1" with the call that a run asks about; 0: none. */
static size_t answer_read_id(const char *s, struct token *t)
{
	size_t n = 2, call;

	if (!*s || !strchr("PpSsMm", *s) || s[1] != '-')
		return 0;
	n += strspn(s + n, "0123456789abcdefABCDEF");
	call = s[n] == ':' && s[n + 1] && strchr("ci", s[n + 1]) ? 2 : 0;
	call += call ? strspn(s + n + call, "0123456789.") : 0;
	for (; call && s[n + call - 1] == '.'; call--)
		; /* the sentence ends */
	if (n < 8 || n + call >= 30 || answer_is_letter(s[n + call]) ||
	    answer_is_digit(s[n + call]))
		return 0;
	for (size_t i = 0; i < n + call; i++)
		t->text[i] = (char)(s[i] >= 'A' && s[i] <= 'Z' ? s[i] + 'a' - 'A' : s[i]);
	t->text[0] = (char)(t->text[0] - 'a' + 'A');
	t->kind = TOKEN_ID;
	return n + call;
}

/* The word goes on behind `s`: "claude-sonnet-4.5" and "local/qwen3:8b" are one word each. */
static bool answer_goes_on(const char *s, const struct token *t)
{
	if (!*s || (!answer_is_letter(s[1]) && !answer_is_digit(s[1])))
		return false;
	return *s == '-' || *s == '/' || (*s == '.' && answer_is_digit(s[1])) ||
	       (*s == ':' && strchr(t->text, '/'));
}

/* `unit`: the word follows a number directly, as the k of "20k". */
static const char *answer_read_word(const char *s, bool unit, struct token *t)
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

/* NULL: a number that may mean two things, such as "0,20", "20.000" or "5-10". */
static const char *answer_read_number(const char *s, struct token *t)
{
	int64_t whole = 0, part = 0, unit = 100000;

	t->kind = *s == '$' ? TOKEN_DOLLARS : TOKEN_NUMBER;
	s += *s == '$';
	if (answer_is_digit(*s) && !answer_is_digit(s[1]) && !answer_is_letter(s[1]))
		t->text[0] = *s; /* it may pick */
	for (; answer_is_digit(*s) || (*s == ',' && answer_is_digit(s[1])); s++) {
		if (*s == ',' && strspn(s + 1, "0123456789") != 3)
			return NULL;
		whole = *s == ',' ? whole : whole * 10 + (*s - '0');
		if (whole > 1000000000)
			return NULL;
	}
	if (*s == '.' && answer_is_digit(s[1]))
		for (s++, t->text[0] = 0; answer_is_digit(*s); s++, unit /= 10)
			part += unit * (*s - '0');
	if (unit < 1000 || (*s && strchr(".,-/:", *s) && answer_is_digit(s[1])) ||
	    (t->kind == TOKEN_DOLLARS && answer_is_letter(*s)))
		return NULL;
	t->millionths = whole * 1000000 + part;
	return s;
}

/* Reads emoji and other signs as words; NULL: a character that no answer has. */
static const char *answer_read_sign(const char *s, struct token *t)
{
	const struct {
		const char *list, *word;
	} signs[] = {{yes_signs, "thumbsup"},
		     {no_signs, "thumbsdown"},
		     {smiles, "please"},
		     {"&", "and"},
		     {"¢", "cents"}};

	for (size_t i = 0; i < ARRAY_LEN(signs); i++) {
		size_t n = answer_begins(s, signs[i].list);

		if (!n || (*s != '&' && answer_is_digit(s[n])))
			continue;
		snprintf(t->text, sizeof(t->text), "%s", signs[i].word);
		s += n;
		s += answer_begins(s, "🏻|🏼|🏽|🏾|🏿"); /* skip a skin colour */
		return s + answer_begins(s, "\xef\xb8\x8f");
	}
	return NULL;
}

/* Skips blanks, marks and the # of a number before the next token, but no minus sign and no mark
 * that begins a number (".5 cents"). */
static const char *answer_skip(const char *s)
{
	for (;;) {
		size_t n = answer_begins(s, " |\t|\n|\r|\xc2\xa0");

		if (*s == '#' && answer_is_digit(s[1]))
			n = 1;
		if (!n && !answer_begins(s, ":)|:-)|-1") && !(*s == '-' && s[1] == '$') &&
		    !(*s && strchr("-.,", *s) && answer_is_digit(s[1])))
			n = answer_begins(s, ",|.|!|;|:|–|—|…|-");
		if (!n)
			return s;
		s += n;
	}
}

/* "höchstens", "não": the letters of Latin-1 (U+00C0 to U+00FF, in UTF-8 c3 and one byte)
 * without their marks. */
static void answer_fold(const char *text, char out[ANSWER_BYTES_MAX + 1])
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

/* false: the text has a character that no answer has, or too many words. */
static bool answer_tokens(const char *text, struct answer_walk *w)
{
	for (;;) {
		struct token *t = &w->t[w->n];
		const char *s = answer_skip(text);
		bool unit = s == text && w->n > 0 && w->t[w->n - 1].kind == TOKEN_NUMBER;
		size_t id;

		if (!*s)
			return true;
		if (w->n == TOKENS_MAX)
			return false;
		id = answer_read_id(s, t);
		if (id)
			text = s + id;
		else if (answer_is_letter(*s))
			text = answer_read_word(s, unit, t);
		else if (answer_is_digit(s[*s == '$']))
			text = answer_read_number(s, t);
		else
			text = answer_read_sign(s, t);
		if (!text)
			return false;
		w->n++;
	}
}

/* ---- phrases */

/* How many words of the line the phrase takes; 0: it does not stand at `at`. */
static int answer_fits(const struct answer_walk *w, int at, const char *phrase, size_t len)
{
	const char *end = phrase + len;
	int n = 0;

	for (; phrase < end; n++) {
		size_t word = strcspn(phrase, " |");
		const struct token *t = &w->t[at + n];

		if (at + n >= w->n || t->kind != TOKEN_WORD || strlen(t->text) != word ||
		    memcmp(t->text, phrase, word) != 0)
			return 0;
		phrase += word + 1;
	}
	return n;
}

/* Words of the longest phrase of `list` at `at`; 0: none. */
static int answer_longest(const struct answer_walk *w, int at, const char *list)
{
	int best = 0;

	for (size_t len; *list; list += len + (list[len] == '|')) {
		len = strcspn(list, "|");
		best = MAX(best, answer_fits(w, at, list, len));
	}
	return best;
}

static int answer_phrase(const struct answer_walk *w, int at, enum answer_said *said)
{
	int best = 0;

	for (size_t i = 0; i < ARRAY_LEN(meanings); i++) {
		int n = answer_longest(w, at, meanings[i].phrases);

		if (n > best) {
			best = n;
			*said = meanings[i].said;
		}
	}
	return best;
}

/* ---- pairs. Each function returns the number of tokens it took, 0: the line is no answer. */

static int answer_value(struct answer_walk *w, int64_t *to, int64_t millionths, int64_t scale,
			int n)
{
	int64_t product = 0;

	if (__builtin_mul_overflow(millionths, scale, &product) || product % 1000000 != 0 ||
	    (*to != CHANGE_KEEP && *to != product / 1000000))
		return 0;
	*to = product / 1000000;
	w->said |= SAID_CHANGE | SAID_AMOUNT;
	return n;
}

/* "$0.30", "5 minutes", "20k tokens"; a digit alone picks. */
static int answer_amount(struct answer_walk *w, int at)
{
	struct change *c = &w->out->change;
	const struct token *t = &w->t[at];

	if (t->kind == TOKEN_DOLLARS)
		return answer_value(w, &c->cost_microusd, t->millionths, 1000000, 1);
	for (size_t i = ARRAY_LEN(units); i-- > 0;) {
		int n = answer_longest(w, at + 1, units[i].phrases);
		int64_t of = units[i].of;

		if (n == 0)
			continue;
		switch (units[i].unit) {
		case UNIT_CENTS:
			return answer_value(w, &c->cost_microusd, t->millionths, of * 10000, n + 1);
		case UNIT_MS:
			w->said |= SAID_TIME;
			return answer_value(w, &c->time_ms, t->millionths, of, n + 1);
		case UNIT_TOKENS:
			return answer_value(w, &c->tokens, t->millionths, of, n + 1);
		case UNIT_ITERATIONS:
			return answer_value(w, &c->iterations, t->millionths, of, n + 1);
		}
	}
	if (!t->text[0] || t->text[0] == '0' || w->out->pick[0] ||
	    (at > 0 && answer_longest(w, at - 1, "no|n|nope|nah|nein|nee|ne|non|nao|nr")))
		return 0; /* "no. 2" may be number two, and "no, 2" wants the second */
	snprintf(w->out->pick, sizeof(w->out->pick), "%.8s", t->text);
	return 1;
}

/* Keeps `value` in a field of the change; two different values are none. */
static int answer_word(struct answer_walk *w, char *to, size_t size, const char *value, int n)
{
	if ((*to && strcmp(to, value) != 0) || strlen(value) >= size)
		return 0;
	snprintf(to, size, "%s", value);
	w->said |= SAID_CHANGE;
	return n;
}

/* A model's or preset's name: an alias ("haiku" is claude-haiku), or behind "with" a word with '-',
 * ':' or '/' in it, which is looked for when the change is carried out. */
static int answer_name(struct answer_walk *w, int at, bool announced)
{
	struct change *c = &w->out->change;
	const char *name = at < w->n && w->t[at].kind == TOKEN_WORD ? w->t[at].text : "";
	char alias[TOKEN_LEN + 8];

	snprintf(alias, sizeof(alias), "claude-%s", name);
	if (*name && models_is_alias(alias))
		return answer_word(w, c->model, sizeof(c->model), alias, 1);
	if (models_is_alias(name) || strcmp(name, "offline") == 0 ||
	    (announced && strpbrk(name, "-:/")))
		return answer_word(w, c->model, sizeof(c->model), name, 1);
	if (spec_is_preset(name))
		return answer_word(w, c->preset, sizeof(c->preset), name, 1);
	return 0;
}

/* Takes the tools behind "without": "bash", "bash and web_search". */
static int answer_tools(struct answer_walk *w, int at)
{
	struct change *c = &w->out->change;
	enum answer_said said = SAID_POLITE;
	int start = at, n;

	do {
		if (at >= w->n || w->t[at].kind != TOKEN_WORD || answer_phrase(w, at, &said) > 0 ||
		    c->nwithout == CHANGE_WITHOUT_MAX ||
		    strlen(w->t[at].text) >= sizeof(c->without[0]))
			return 0;
		snprintf(c->without[c->nwithout++], sizeof(c->without[0]), "%.39s",
			 w->t[at++].text);
		n = answer_longest(w, at, "and|or|und|oder|et|ou|y|o|e");
		if (at + n < w->n && w->t[at + n].kind == TOKEN_WORD &&
		    answer_phrase(w, at + n, &said) == 0)
			at += n;
		else
			break;
	} while (true);
	w->said |= SAID_CHANGE;
	return at - start;
}

/* ---- the walk */

static int answer_take(struct answer_walk *w, int at)
{
	struct answer_line *out = w->out;
	enum answer_said said = SAID_POLITE;
	char role[ROLE_NAME_MAX + 1];
	int n, more;

	if (w->t[at].kind == TOKEN_ID && !out->pick[0]) {
		snprintf(out->pick, sizeof(out->pick), "%.40s", w->t[at].text);
		return 1;
	}
	if (w->t[at].kind != TOKEN_WORD)
		return w->t[at].kind == TOKEN_ID ? 0 : answer_amount(w, at);
	n = answer_phrase(w, at, &said);
	if (n == 0)
		return answer_name(w, at, false);
	if (said & SAID_TOOLS) {
		more = answer_tools(w, at + n);
		return more ? n + more : 0;
	}
	if (said & SAID_ROLE) {
		if (at + n >= w->n || !role_word(w->t[at + n].text, role))
			return 0;
		return answer_word(w, out->change.role, sizeof(out->change.role), role, n + 1);
	}
	if (said & SAID_MODEL) { /* "with at most 20 cents" names none */
		more = answer_name(w, at + n, true);
		said = more ? SAID_CHANGE : SAID_JOINT;
		n += more;
	}
	if (said & (SAID_THINK | SAID_NO_THINKING)) {
		more = said & SAID_THINK ? 1 : -1;
		if (out->change.thinking == -more)
			return 0;
		out->change.thinking = more;
		said = SAID_CHANGE;
	}
	if ((said & SAID_JOINT) && at + n == w->n)
		return 0;
	w->said |= said;
	return n;
}

/* The meanings that were met make an answer together. */
static bool answer_holds(struct answer_walk *w)
{
	unsigned said = w->said;
	bool yes = said & SAID_YES, change = said & SAID_CHANGE;
	bool no = said & (SAID_NO | SAID_STOP | SAID_DONT);

	w->out->verb = yes ? ANSWER_YES : no ? ANSWER_NO : ANSWER_NONE;
	w->out->stops = said & SAID_STOP;
	w->out->change.all_three = said & SAID_ALL_THREE;
	if ((no && (yes || change)) || ((said & SAID_DONT) && (said & (SAID_NO | SAID_STOP))) ||
	    ((said & SAID_NO) && (said & SAID_STOP)))
		return false;
	if ((said & SAID_ALL_THREE) && !yes)
		return false;
	if (((said & SAID_JOINT) && !change) || ((said & SAID_LIMIT) && !(said & SAID_AMOUNT)))
		return false;
	/* "yes, 5 minutes" may ask for patience. */
	if (yes && (said & SAID_TIME) && !(said & (SAID_LIMIT | SAID_JOINT)))
		return false;
	return yes || no || change || w->out->pick[0];
}

/* "no: not in this folder", with an id before it or not. */
static bool answer_reason(const char *line, struct answer_line *out)
{
	struct token t = {.kind = TOKEN_WORD};
	size_t id;

	line += strspn(line, " \t\r\n");
	id = answer_read_id(line, &t);
	line += id + strspn(line + id, " \t\r\n:,");
	if (strncasecmp(line, "no:", 3) != 0)
		return false;
	line += 3 + strspn(line + 3, " \t\r\n");
	if (*line && !line[strspn(line, " \t\r\n.,;:#!0123456789")])
		return false; /* "no: 2" */
	*out = (struct answer_line){.verb = ANSWER_NO, .reason = line, .change = CHANGE_NONE};
	memcpy(out->pick, t.text, sizeof(out->pick));
	return *line != 0;
}

bool answer_read(const char *line, struct answer_line *out)
{
	struct answer_walk w = {.out = out};
	char plain[ANSWER_BYTES_MAX + 1];
	bool holds = strlen(line) <= ANSWER_BYTES_MAX;

	*out = (struct answer_line){.change = CHANGE_NONE};
	if (holds) {
		answer_fold(line, plain);
		holds = answer_tokens(plain, &w);
	}
	for (int at = 0, n; holds && at < w.n; at += n) {
		n = answer_take(&w, at);
		holds = n > 0;
	}
	if (holds && answer_holds(&w))
		return true;
	if (strlen(line) <= ANSWER_BYTES_MAX && answer_reason(line, out))
		return true;
	*out = (struct answer_line){.change = CHANGE_NONE};
	return false;
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
