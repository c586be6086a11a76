/* Lines of people, and what each means by the closed grammar: a yes, a no, a change, a pick, or no
 * answer. What could be a no or a question is never a yes. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/answer.h"
#include "base/util.h"

/* Parted by bars. */
static const char yes[] =
	"yes|Yes|  YES!  |y|Y|y\n|yes, please.|yes please|yes pls|yep pls|yep|yup|yeah|Yeah!|yea"
	"|yes yes|yes, yes, yes!|Go ahead|go ahead, thanks|please go ahead|go for it|go on|go|ok"
	"|OK.|okay|ok, go ahead|okay then|ok thanks|k|sure|Sure thing!|sure, why not"
	"|sure, go ahead|do it|just do it|please do|do that|Yes, do it now|yes now please"
	"|proceed|Please proceed.|confirm|confirmed|I confirm|I approve|approved|accepted|agreed"
	"|I agree|start|start it|run it|run it please|launch it|lgtm|LGTM!|looks good"
	"|Looks good to me, go ahead|sounds good|fine|that's fine|that’s fine|fine by me"
	"|works for me|of course|absolutely|definitely|certainly|by all means|let's go"
	"|Let's do it!|all right|alright|aye|perfect, go ahead|great, thanks, go ahead|oh yes"
	"|Ava, yes please|hey ava, go ahead|thank you, "
	"yes|ja|oui|si|👍|👍🏽|👍👍|✅|👌|yes "
	"👍|yes "
	"🙂"
	"|yes :)|go 🚀|+1|yes.|yes...|yes -|yes;|yes, for now|ja bitte|vas-y|d'accord|sí"
	"|claro que sí|va bene|jo, mach|bien sûr|sure, just this once|allow|ok go|yep do it"
	"|sounds good, start it|sí, claro|doe maar|yeah go on then"
	"|yes                                                                             "
	"|Sí, claro.|ja, gerne|d’accord|vas-y, merci|certo, grazie|pode ser|sim, por favor"
	"|yes 👍🏽";

static const char no[] =
	"no|No.|NO!|n|N|nope|nah|no, thanks|no thanks|no thank you|no no|no, no, no!|oh no|don't"
	"|don’t|dont|do not|please don't|don't do it|no, don't do it|do not run it|not now"
	"|not today|not this time|no, not now|never|never mind|nevermind|Nevermind.|stop|STOP!"
	"|stop it|cancel|cancel it|cancel that please|abort|reject|rejected|forget it|leave it"
	"|drop it|skip it|maybe later|later|rather not|no way|no need|nein|non|nein danke"
	"|não, obrigado|non merci|nee|lieber nicht|lass das|nah leave "
	"it|👎|👎🏿|❌|🛑|-1|no "
	"🙂|no :)"
	"|nope!|no, gracias|no grazie|lieber nicht, danke|pas maintenant|ahora no|let it go";

/* None of these may start anything. */
static const char none[] =
	"|   |\n|...|!|not yet|hm|hmm|maybe|perhaps|I guess|I guess so|I think so|yes?|Yes ?|ok?"
	"|👍?|yes？|should I say yes?|should I say yes|what would yes cost|what would yes cost?"
	"|what happens if I say yes|what would it do?|is it safe?|how much|how much is it?"
	"|do it? really?|go ahead?|are you sure|can you do it?|why|why not|¿si?|really"
	"|I said yes yesterday to something else|yesterday|he said yes|she told me to go ahead"
	"|\"yes\"|'yes' or 'no'|“yes”|`yes`|> yes|(yes)|type yes|say yes|yes to the other one"
	"|if it is free, yes|yes if it is free|yes, unless it costs more than 20 cents"
	"|yes, but ask me first|yes but wait|yes, but not now|ok but let me check first"
	"|yes after lunch|yes tomorrow|yes later|yes, in 5 minutes|yes at 5|yes at 5pm|wait"
	"|wait a minute|just a minute|ok, just a sec|one second|yes, one moment"
	"|give me 5 minutes|yes, 5 minutes|hold on|let me think|thinking|thinking..."
	"|still thinking|when I say yes|before you go ahead|almost|yes almost"
	"|not until I say yes|yes no|no yes|yes and no|yes/no|y/n|yes, no, maybe|no wait, yes"
	"|no wait yes?|yes, cancel|ok stop|cancel, yes|fine, cancel it|yeah no|yeah, nah|ok, no"
	"|ok never mind|yes, never mind|not yes|not ok|not fine|not sure|unsure|not really"
	"|I don't know|don't know|no idea|no idea, yes?|no clue|I do not agree|not approved"
	"|disapproved|unconfirmed|not confirmed|I can't say yes|cannot confirm|never say yes"
	"|don't stop|do not cancel|no problem|no worries|no objections|no, stop asking"
	"|stop asking and do it|yes to nothing|yes but no|yes but no thanks|yes and no thanks|👍👎"
	"|🤔|🤷|yes 🤔|yes 🙄|👍 or "
	"👎|yet|yen|nose|now|note|god|good|gone|goat|going|okra|surely not"
	"|go away|go home|start over|run away|yes man|ok google|noon|know|nothing|none|finally"
	"|please|thanks|thank you|please please|great|cool|it|the|with|yes the|yes with|yes but"
	"|yes only|yes max|yes, at most"
	"|yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"
	"|\xff\xfe|ｙｅｓ|уes|yes\xe2\x80\xae|yes\xe2\x80\x8b|yes; rm -rf /|yes = 1|<b>yes</b>|true"
	"|0|42|$|%|yes but cheaper|cheaper|cheaper please|faster|yes but faster|a cheaper model"
	"|another model|max 20|yes, max 20|yes but under 1|at least 20 cents|more than 20 cents"
	"|over $1|not 20 cents|min 20 cents|minimum 20 cents|10-20 cents|between 10 and 20 cents"
	"|20 cents or 30 cents|max 20 cents max 30 cents|max -5 cents|-5 cents|max 0,20 $"
	"|max 1.000.000 tokens|$1.000|$0.125|20 cents more|20 cents less|20 cents cheaper"
	"|5 more minutes|another 5 minutes|yes but 5 minutes less|20 cents per call"
	"|yes but max 20 cents per minute|20 cents?|yes, but max 20 cents?|is 20 cents enough"
	"|20€|max 20k|max 20k cents|quickly|be quick|quick question|haiku or opus"
	"|use haiku and opus|not opus|no bash|without|sonnet 9.9|hiaku|yes but without"
	"|no 5 minutes, yes|stop, max 20 cents|don't use haiku|thinking on and thinking off"
	"|yes but max 99999999999999999999 cents|yes, max 20.000 tokens|max 1.500 minutes"
	"|ok, one round|yes, one step|max $5k|yes, but max $1k|$1 million"
	"|yes but max one and a half minutes|at most one and a half dollars"
	"|max one and half an hour|no opus|no haiku please|max 9999999999 dollars|2.5 tokens"
	"|0.0000001 cents|kk|make it so|ship it|Sounds great!|roger that|yes sir|yes I do"
	"|yes, thank you, that is exactly what I need|yse|eys|yess|yesss|YEEES|yeahhh|yeh|ya|sur"
	"|suure|srue|okk|okey|okie|oky|goo ahead|go ahed|go ahaed|proceeed|procede please"
	"|procced|confrim|comfirm|aproved|absolutly|yes plase|don't proceed|I decline"
	"|forget about it|I'd rather not|no go|no deal|negative|hell no"
	"|no thanks, I changed my mind|don't allow that|noo|nooooo|nop|npoe|nno|cancle|cancell"
	"|stpo|nto now|dotn|nevermnd|yes, 20 cents is enough|yse but mxa 20 cnets"
	"|yep, limit it to a dollar|yes but cheaper: 10c|yes but only half a dollar"
	"|yes but don't spend more than 30 cents|sure, no longer than five minutes"
	"|yes but only 1h30m|yes, time limit 1 hour and 30 minutes|yes but at most 1h30"
	"|yes but max half an hour|run it with sonnet 4.5|yes but don't use web search"
	"|ok but leave out the search_codebase tool|yes, as a code reviewer|no, max 20 cents"
	"|I want 20 cents max|can you make it 20 cents instead|cheaper: 10c"
	"|make it cheaper, 10 cents|an hour at most|deep mode|no, use haiku|use hiaku"
	"|claude sonnet 4.5 please|the offline model|turn thinking off|use the researcher"
	"|code_reviewer|data extractor please|crawler|2k|yes 2 3|P-19c0de P-20aaff"
	"|yes to P-19c0de and P-20aaff|$5k|2, not 3|both|all of them|the second|yes, and"
	"|use|role|role xyzzy|+15 minutes|-1 cents|yes, S-7f3a2bx|don't cancel it|no. 2|No. 2 "
	"please|no, 2|no #2|nein, 2|non 2|no: 2|no: #2."
	"|never stop|never cancel|non annulla|não cancela|não pare|no para|non, arrête|no, cancel"
	"|yes, max .5 cents|max ,5 cents|let it go ahead";

struct wanted {
	const char *texts;                      /* with bars between */
	int64_t cost, time, tokens, iterations; /* 0: as it was */
	const char *preset, *role, *model, *without;
	int thinking; /* 1 on, 2 off */
};

static const struct wanted with[] = {
	{"yes but max 20 cents|Yes, but max 20 cents please|yes but no more than 20 cents|ok, max "
	 "$0.20|ok but at most 20c|sure, up to 20¢|go ahead, 20 cents max|yes for 20 cents|👍 but "
	 "max 20 cents",
	 .cost = 200000},
	{"yes, but under $1", .cost = 1000000},
	{"go ahead but cap it at 5 cents", .cost = 50000},
	{"yes, 0.5 usd", .cost = 500000},
	{"yes but 5 minutes|yes, 5 minutes max", .time = 300000},
	{"yes, at most 1h", .time = 3600000},
	{"ok but within 90s", .time = 90000},
	{"yes but max 10k tokens", .tokens = 10000},
	{"yes, max 20,000 tokens", .tokens = 20000},
	{"yes but at most 1m tokens", .tokens = 1000000},
	{"yes, at most 5 iterations", .iterations = 5},
	{"yes but max 3 steps", .iterations = 3},
	{"yes, max 20 cents and 5 minutes", .cost = 200000, .time = 300000},
	{"go ahead with at most 20 cents, 5 min, 10k tokens", .cost = 200000, .time = 300000,
	 .tokens = 10000},
	{"yes but quick|yes, make it quick", .preset = "quick"},
	{"ok, deep please", .preset = "deep"},
	{"yes but use haiku", .model = "claude-haiku"},
	{"yes with opus", .model = "claude-opus"},
	{"ok but use openrouter/anthropic/claude-haiku-4.5",
	 .model = "openrouter/anthropic/claude-haiku-4.5"},
	{"yes but without bash|yes but no bash", .without = "bash"},
	{"yes, without run_bash and web_search", .without = "run_bash web_search"},
	{"yes with thinking", .thinking = 1},
	{"yes but no thinking", .thinking = 2},
	{"yes, max 20 cents and no bash", .cost = 200000, .without = "bash"},
	{"ja, aber höchstens 10 Cent|oui, mais au maximum 10 centimes|sí, pero máximo 10 "
	 "centavos|sim, mas no máximo 10 centavos",
	 .cost = 100000},
	{"yes, role researcher", .role = "researcher"},
	{"yes, thinking off", .thinking = 2},
};

static const struct wanted bare[] = {
	{"max 20 cents|20 cents max|20c|no more than 20 cents", .cost = 200000},
	{"$1|but under $1|not more than 1 dollar", .cost = 1000000},
	{"5 minutes max", .time = 300000},
	{"1h", .time = 3600000},
	{"2 hours", .time = 7200000},
	{"10000 tokens", .tokens = 10000},
	{"1.5k tokens", .tokens = 1500},
	{"3 turns", .iterations = 3},
	{"quick", .preset = "quick"},
	{"standard please", .preset = "standard"},
	{"use haiku|haiku please", .model = "claude-haiku"},
	{"with opus", .model = "claude-opus"},
	{"model local/qwen3:8b", .model = "local/qwen3:8b"},
	{"use gpt-5-mini", .model = "gpt-5-mini"},
	{"use claude-sonnet-4.5", .model = "claude-sonnet-4.5"},
	{"use fable", .model = "claude-fable"},
	{"thinking on|with extended thinking", .thinking = 1},
	{"no thinking", .thinking = 2},
	{"without bash", .without = "bash"},
	{"without bash, web_search", .without = "bash web_search"},
	{"w/o run_bash", .without = "run_bash"},
	{"use haiku, max 5 minutes, without bash", .model = "claude-haiku", .time = 300000,
	 .without = "bash"},
	{"no thinking, 5 replies, without run_bash|5 replies, without run_bash and no thinking",
	 .thinking = 2, .iterations = 5, .without = "run_bash"},
	{"no thinking, without run_bash, max 20 cents", .thinking = 2, .without = "run_bash",
	 .cost = 200000},
	{"without run_bash, 5 replies", .iterations = 5, .without = "run_bash"},
	{"5 replies, no thinking", .iterations = 5, .thinking = 2},
	{"role code_reviewer|role reviewer", .role = "code_reviewer"},
	{"ohne run_bash|sans run_bash|sin run_bash|senza run_bash|sem run_bash",
	 .without = "run_bash"},
	{"thinking off", .thinking = 2},
};

/* The next of a list with bars between, into `out`; false: none is left. */
static bool next_text(const char **list, char out[200])
{
	size_t n = strcspn(*list, "|");

	if (!*list || !**list)
		return false;
	snprintf(out, 200, "%.*s", (int)n, *list);
	*list = (*list)[n] ? *list + n + 1 : "";
	return true;
}

/* Behind the end of the text nothing may be read: a sanitiser sees it. */
static bool read_exact(const char *text, struct answer_line *a)
{
	char *copy = strdup(text);
	bool is = answer_read(copy, a);

	a->reason = a->reason ? text + (a->reason - copy) : NULL;
	free(copy);
	return is;
}

static void all_mean(const char *texts, enum answer_verb want)
{
	char text[200];

	while (next_text(&texts, text)) {
		struct answer_line a;
		bool is = read_exact(text, &a);

		if (is != (want != ANSWER_NONE) || a.verb != want)
			fail_msg("\"%.60s\" is %d, not %d", text, a.verb, want);
		assert_true(change_none(&a.change) && !a.change.all_three && !a.pick[0]);
	}
}

static int64_t kept(int64_t v)
{
	return v ? v : CHANGE_KEEP;
}

static void check_change(const struct wanted *w, const struct change *c)
{
	char without[400] = "";

	for (unsigned i = 0; i < c->nwithout; i++) {
		size_t n = strlen(without);

		snprintf(without + n, sizeof(without) - n, "%s%s", i ? " " : "", c->without[i]);
	}
	assert_int_equal(c->cost_microusd, kept(w->cost));
	assert_int_equal(c->time_ms, kept(w->time));
	assert_int_equal(c->tokens, kept(w->tokens));
	assert_int_equal(c->iterations, kept(w->iterations));
	assert_string_equal(c->preset, w->preset ? w->preset : "");
	assert_string_equal(c->role, w->role ? w->role : "");
	assert_string_equal(c->model, w->model ? w->model : "");
	assert_string_equal(without, w->without ? w->without : "");
	assert_int_equal(c->thinking, w->thinking == 2 ? -1 : w->thinking);
}

static void all_change(const struct wanted *list, size_t n, enum answer_verb want)
{
	char text[200];

	for (size_t i = 0; i < n; i++)
		for (const char *texts = list[i].texts; next_text(&texts, text);) {
			struct answer_line a;

			print_message("%s\n", text);
			assert_true(read_exact(text, &a));
			assert_int_equal(a.verb, want);
			check_change(&list[i], &a.change);
		}
}

TEST(yes)
{
	all_mean(yes, ANSWER_YES);
}

TEST(no)
{
	all_mean(no, ANSWER_NO);
}

TEST(no_answer)
{
	all_mean(none, ANSWER_NONE);
}

TEST(yes_with_changes)
{
	all_change(with, ARRAY_LEN(with), ANSWER_YES);
}

TEST(changes)
{
	all_change(bare, ARRAY_LEN(bare), ANSWER_NONE);
}

/* What the line says beside a change. */
TEST(picks)
{
	static const struct {
		const char *text, *pick;
		enum answer_verb verb;
		const char *reason;
		bool stops;
	} rows[] = {
		{"2", "2", ANSWER_NONE, NULL, false},
		{"#2", "2", ANSWER_NONE, NULL, false},
		{"2.", "2", ANSWER_NONE, NULL, false},
		{"yes, 2 please", "2", ANSWER_YES, NULL, false},
		{"no to 1", "1", ANSWER_NO, NULL, false},
		{"yes P-19c0de", "P-19c0de", ANSWER_YES, NULL, false},
		{"p-19C0DE: no", "P-19c0de", ANSWER_NO, NULL, false},
		{"yes to m-79ce18", "M-79ce18", ANSWER_YES, NULL, false},
		{"yes, S-7f3a2b", "S-7f3a2b", ANSWER_YES, NULL, false},
		{"S-7f3a2b: yes", "S-7f3a2b", ANSWER_YES, NULL, false},
		{"S-7f3a2b:c3.1 yes", "S-7f3a2b:c3.1", ANSWER_YES, NULL, false},
		{"yes, S-7f3a2b:i4", "S-7f3a2b:i4", ANSWER_YES, NULL, false},
		{"stop", "", ANSWER_NO, NULL, true},
		{"cancel P-19c0de", "P-19c0de", ANSWER_NO, NULL, true},
		{"no: not in this folder", "", ANSWER_NO, "not in this folder", false},
		{"S-7f3a2b: no: why?", "S-7f3a2b", ANSWER_NO, "why?", false},
		{"no: yes", "", ANSWER_NO, "yes", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct answer_line a;

		if (!answer_read(rows[i].text, &a))
			fail_msg("%s is none", rows[i].text);
		print_message("%s\n", rows[i].text);
		assert_string_equal(a.pick, rows[i].pick);
		assert_int_equal(a.verb, rows[i].verb);
		assert_int_equal(a.stops, rows[i].stops);
		assert_string_equal(a.reason ? a.reason : "", rows[i].reason ? rows[i].reason : "");
	}
}

/* Whatever stands behind a yes that is not understood takes the yes away. */
TEST(no_yes_with_a_word_too_many)
{
	static const char words[] = "not|unless|if|when|after|sarcasm|wait|xyzzy|?|\"|no|later|"
				    "cancel|but|stop";
	char first[200], word[200], text[500];
	struct answer_line a;

	for (const char *list = yes; next_text(&list, first);)
		for (const char *more = words; next_text(&more, word);)
			for (int behind = 0; behind < 2; behind++) {
				snprintf(text, sizeof(text), "%s %s", behind ? first : word,
					 behind ? word : first);
				if (answer_read(text, &a) && a.verb == ANSWER_YES)
					fail_msg("\"%s\" is a yes", text);
			}
}

TEST(bounds)
{
	static char text[ANSWER_BYTES_MAX + 8];
	struct answer_line a;

	memset(text, ' ', ANSWER_BYTES_MAX);
	memcpy(text, "yes", 3);
	assert_true(answer_read(text, &a));
	text[ANSWER_BYTES_MAX] = ' ';
	assert_false(answer_read(text, &a));
	memset(text, 0, sizeof(text));
	for (size_t i = 0; i < 49; i++)
		memcpy(text + 4 * i, "yes ", 4);
	assert_false(answer_read(text, &a));
	text[4 * 48] = 0;
	assert_true(answer_read(text, &a));
}

/* Every answer that the help names is understood. */
TEST(the_help_is_true)
{
	const char *s = ANSWER_HELP;
	unsigned n = 0;

	for (; (s = strchr(s, '"')) != NULL; n++) {
		char example[80];
		size_t len = strcspn(++s, "\"");
		struct answer_line a;

		snprintf(example, sizeof(example), "%.*s", (int)len, s);
		s += len + 1;
		print_message("%s\n", example);
		assert_true(answer_read(example, &a));
		assert_int_equal(a.verb, n ? ANSWER_NONE : ANSWER_YES);
		assert_false(change_none(&a.change));
	}
	assert_int_equal(n, 3);
}

/* The yes that all three rights need: said, or not. Without a yes it is none. */
TEST(all_three)
{
	static const struct {
		const char *text;
		bool is, all_three;
	} rows[] = {
		{"yes, all three", true, true},
		{"Yes, all three rights!", true, true},
		{"ja, alle drei", true, true},
		{"yes, all three, but max 20 cents", true, true},
		{"yes", true, false},
		{"all right", true, false},
		{"yes, all of it", false, false},
		{"yes, three", false, false},
		{"all three", false, false},
		{"all three?", false, false},
		{"no, not all three", false, false},
		{"yes, but not all three", false, false},
		{"no", true, false},
	};
	struct answer_line a;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (answer_read(rows[i].text, &a) != rows[i].is ||
		    a.change.all_three != rows[i].all_three)
			fail_msg("\"%s\": %d, %d", rows[i].text, a.verb, a.change.all_three);
}
