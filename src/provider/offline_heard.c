/* The words are made plain, and then the rows are tried in order: what is asked of runs and
 * quotes first, where there are any, then what cannot be done, small talk, and work. Limits
 * and several tasks are cut out of the words that ask for work. Nothing can fail. */
#include "provider/offline_heard.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/near.h"
#include "base/util.h"

/* ---- plain words */

static char plain_char(const unsigned char **at)
{
	static const char latin[] =
		"aaaaaaaceeeeiiiidnooooo ouuuuy saaaaaaaceeeeiiiidnooooo ouuuuy y";
	unsigned char c = **at;

	if (c == 0xc3 && ((*at)[1] & 0xc0) == 0x80)
		return latin[*++*at & 0x3f];
	return isalnum(c) || strchr("_/.-*#$%+:<>", c) ? (char)tolower(c) : ' ';
}

/* Remove `phrase` from the beginning, when more follows. */
static bool drop(char *plain, const char *phrase)
{
	size_t n = strlen(phrase);

	if (strncmp(plain + 1, phrase, n) != 0 || plain[n + 1] != ' ' || !plain[n + 2])
		return false;
	memmove(plain, plain + n + 1, strlen(plain + n + 1) + 1);
	return true;
}

/* Words that begin a request and mean nothing. */
static const char *const fillers[] = {
	"please",
	"pls",
	"hey",
	"ava",
	"ok",
	"okay",
	"so",
	"and",
	"now",
	"well",
	"can you",
	"could you",
	"would you",
	"can we",
	"i want you to",
	"i would like you",
	"id like you",
	"i need you",
	"you should",
	"just",
	"then",
	"perfect",
	"great",
	"but",
	"also",
	"first",
	"only",
	"meanwhile",
	"in the meantime",
	"could somebody",
	"could someone",
	"can somebody",
	"can someone",
	"id like somebody",
	"id like someone",
	"i need somebody",
	"i need someone",
	"i want somebody",
	"i want someone",
	"two things",
	"to",
	"no",
	"i want to know",
	"do you know",
	"could you also",
	"quick question",
	"one more thing",
};

void heard_plain(const char *words, char out[HEARD_MAX])
{
	const unsigned char *at = (const unsigned char *)words;
	size_t n = 0;
	bool again = true;

	out[n++] = ' ';
	for (; *at && n < HEARD_MAX - 2; at++) {
		char c = *at == '\'' || (at[0] == 0xe2 && at[1] == 0x80 && at[2] == 0x99)
				 ? 0
				 : plain_char(&at);

		if (c == 0) {
			at += *at == '\'' ? 0 : 2;
			continue;
		}
		/* A mark belongs to a word only when letters follow. */
		while (c == ' ' && n > 1 && strchr(".:-", out[n - 1]))
			n--;
		if (c != ' ' || out[n - 1] != ' ')
			out[n++] = c;
	}
	while (n > 1 && strchr(" .:-", out[n - 1]))
		n--;
	out[n++] = ' ';
	out[n] = 0;
	while (again) {
		again = false;
		for (size_t i = 0; i < ARRAY_LEN(fillers); i++)
			again |= drop(out, fillers[i]);
	}
}

static bool offline_heard_fits(const char *plain, const char *phrases, bool anywhere)
{
	char phrase[80];

	for (size_t n; *phrases; phrases += n + (phrases[n] == '|')) {
		n = strcspn(phrases, "|");
		/* "s-" is the beginning of a run's id. */
		snprintf(phrase, sizeof(phrase), " %.*s%s", (int)n, phrases,
			 phrases[n - 1] == '-' ? "" : " ");
		if (anywhere ? strstr(plain, phrase) != NULL
			     : strncmp(plain, phrase, strlen(phrase)) == 0)
			return true;
	}
	return false;
}

bool heard_has(const char *plain, const char *phrases)
{
	return offline_heard_fits(plain, phrases, true);
}

bool heard_begins(const char *plain, const char *phrases)
{
	return offline_heard_fits(plain, phrases, false);
}

bool heard_is(const char *phrases, const char *word)
{
	char plain[80];

	snprintf(plain, sizeof(plain), " %.70s ", word);
	for (size_t n; *phrases; phrases += n + (phrases[n] == '|')) {
		n = strcspn(phrases, "|");
		if (strlen(plain) == n + 2 && strncmp(plain + 1, phrases, n) == 0)
			return true;
	}
	return false;
}

/* ---- the rows */

#define VERBS                                                                                      \
	"review|reviews|research|audit|inspect|investigate|analyse|analyze|extract|collect|"       \
	"summarise|summarize|compare|explain|describe|check|find|look for|look up|search|list|"    \
	"look into|go through|study|examine|evaluate|assess|map|document|locate|look "             \
	"at|untersuche|"                                                                           \
	"prufe|finde|erklare|suche|vergleiche"
#define STOPS_IT                                                                                   \
	"stop it|stop that|stop them|stop this|cancel it|cancel them|kill it|abort it|can stop|"   \
	"to stop|stop now"
#define STOPS_SO "abbrechen|stoppen|arreter|stopper|aufhoren"
#define THAT     "it|that|this|they|them|these|both|its|the run|the runs|the subagent|the quote|one"

static const struct offline_heard_row {
	enum topic topic;
	unsigned needs;                  /* HAS_ bits of which one must be true; 0: no condition */
	unsigned most;                   /* most words of the message; 0: any number */
	const char *begins, *has, *also; /* one phrase of each must stand; NULL: none needed */
} rows[] = {
	/* stopping and steering */
	{ABOUT_STOPPING, HAS_RUN, 0, NULL,
	 "if i stop|if i cancel|when i stop|should i stop|shall i stop|should i cancel|if i kill|"
	 "do i stop|can i stop|may i stop|how to stop|way to stop",
	 NULL},
	{ABOUT_STOPPING, HAS_RUN, 0, "should i|shall i|must i", STOPS_IT, NULL},
	{ABOUT_STOPPING, HAS_RUN, 0, NULL, STOPS_IT "|" STOPS_SO,
	 "if|when|in|after|before|until|till|unless|once it|once they|as soon as|quand|wenn|falls"},
	{ABOUT_KEEPING, HAS_RUN, 6, NULL, "nicht|pas",
	 STOPS_SO "|stopp|beende|beenden|arrete|larrete"},
	{ABOUT_STATUS, HAS_RUN, 9,
	 "who|why|did you|did it|did they|have you|has it|have they|does it|do they|when does|"
	 "will it|will they|nobody",
	 "stop|stops|stopped|cancel|cancelled|kill|killed", NULL},
	{ABOUT_KEEPING, HAS_RUN, 0, NULL,
	 "dont stop|do not stop|never stop|not stop|dont cancel|dont kill|keep going|let it run|"
	 "dont let it stop|dont want it to stop|dont want them to stop",
	 NULL},
	{ABOUT_NOTHING, HAS_RUN, 0,
	 "stop telling|stop asking|stop talking|stop saying|stop showing", NULL, NULL},
	{ABOUT_STOP, HAS_RUN, 12,
	 "stop|cancel|abort|kill|halt|terminate|end it|abbrechen|abbruch|stopp|beende|arrete|"
	 "arreter|annule|para|detente|ferma|thats enough|enough|drop it|forget it",
	 NULL, NULL},
	{ABOUT_STOP, HAS_RUN, 12, NULL, STOPS_IT, NULL},
	{ABOUT_STEER, HAS_RUN, 0,
	 "stop looking|stop searching|stop reading|stop using|stop checking|stop going", NULL,
	 NULL},
	{ABOUT_STOP, HAS_RUN, 4, NULL, STOPS_SO, NULL},
	{ABOUT_STOP, 0, 4, "stop|cancel|abort|kill|halt|terminate|abbrechen|stopp|arrete", NULL,
	 NULL},
	{ABOUT_STEER, HAS_RUN, 0,
	 "tell it|tell them|tell him|tell her|tell the|tell both|tell all|tell s-|ask it to|"
	 "ask them to|ask both to|ask the|let it know|let them know|make it|make them|it should|"
	 "they should|it shall|it must|it can ignore|it can skip|sag ihm|sag ihnen|dis lui|have it|"
	 "remind it",
	 NULL, NULL},
	{ABOUT_STEER, 0, 0, "tell it|tell them|ask it to|make it|let it know", NULL, NULL},
	{ABOUT_LIMIT, HAS_RUN, 8,
	 "limit|max|at most|no more than|not more than|give it|lower|raise", NULL, NULL},
	/* the memory */
	{ABOUT_REMEMBER, 0, 0,
	 "remember that|remember this|remember my|remember i|remember im|remember ive|remember we|"
	 "remember our|keep in mind|note that i|note that my|note that we|dont forget that|"
	 "dont forget i|merk dir|merke dir|retiens que|souviens-toi que|recuerda que|ricorda che|"
	 "ricordati che",
	 NULL, NULL},
	{ABOUT_FORGET, 0, 12,
	 "forget that|forget what|forget about|forget my|forget m-|forget this|forget everything|"
	 "forget all|vergiss das|vergiss alles|vergiss mein|oublie ca|oublie cela|olvida eso|"
	 "olvidalo|dimentica",
	 NULL, NULL},
	{ABOUT_KNOWN, 0, 0, NULL,
	 "know about me|know of me|know about my|remember about me|remember of me|"
	 "remember about my|remember my|noted about me|noted of me|have you noted|did you note|"
	 "in your memory|have i told you|weisst du uber mich|weisst du von mir|sais de moi|"
	 "sais-tu de moi|sabes de mi|sai di me",
	 NULL},
	/* ended runs */
	{ABOUT_RESUME, HAS_ENDED, 0, NULL,
	 "resume|without starting over|let it continue|let it go on|pick up where|where it stopped|"
	 "go on with it|continue with it|go on with that|continue that|"
	 "give it more",
	 NULL},
	{ABOUT_RESUME, HAS_ENDED, 4,
	 "go on|continue|weiter|carry on|keep going|weitermachen|mach weiter|continua|continuer",
	 NULL, NULL},
	{ABOUT_AGAIN, HAS_ENDED | HAS_RUN, 7, NULL,
	 "run it again|do it again|try again|try it again|once more|one more time|noch mal|nochmal|"
	 "repeat it|repeat that|run that again|do that again|start it again|rerun|rerun it",
	 NULL},
	{ABOUT_AGAIN, HAS_ENDED, 3, "again", NULL, NULL},
	{ABOUT_SURE, HAS_ENDED | HAS_RUN, 0, NULL,
	 "how sure|how certain|how confident|confidence|trust|reliable|is that true|is that right|"
	 "is it true|is it right|are you sure|sicher|is it correct|is that correct",
	 NULL},
	{ABOUT_FILES, HAS_ENDED | HAS_RUN, 0, NULL,
	 "which files did|what files did|files did it|files it read|files has it|did it read|"
	 "did it look at|has it read|read so far|looked at so far|has it looked at",
	 NULL},
	{ABOUT_WHERE, HAS_ENDED, 0, NULL,
	 "whole result|full result|entire result|complete result|rest of the result|all of the "
	 "result|rest of it|whole answer|result in full",
	 NULL},
	{ABOUT_DID, 0, 0, NULL,
	 "show me the log|show the log|see the log|the log of|log of|its log|the logs|why did it|"
	 "why did s-|why did the run|why did the subagent|what did it do|what did s-|"
	 "what did the run|what did the subagent do|what went wrong|what happened to|"
	 "why has it|what failed|why it failed",
	 NULL},
	{ABOUT_STATUS, HAS_ENDED, 0, NULL,
	 "did it finish|is it done|is it finished|did it end|did it work|was it successful|"
	 "is it over|did that work|did it succeed|is it complete",
	 NULL},
	{ABOUT_FOUND, HAS_ENDED, 0, NULL,
	 "did it find|was found|it found|has it found|came out|the result|the results|they find|"
	 "is the answer|did it say|the findings|found so far|until then",
	 NULL},
	{ABOUT_WHY, HAS_ENDED, 8, "why|how come|wieso|warum", NULL, THAT "|so"},
	{ABOUT_WHY, HAS_ENDED, 1, "why|wieso|warum|pourquoi", NULL, NULL},
	/* requests for work go before remarks on other work */
	{ABOUT_TODAY, 0, 0, NULL,
	 "spend today|spent today|cost today|today cost|costs today|did i spend|have i spent|"
	 "did today|so far today|heute gekostet|my bill|you do today|you done today|was done "
	 "today|happened today|runs today",
	 NULL},
	/* quotes, and runs at work */
	{ABOUT_WHAT, HAS_QUOTE, 0, NULL,
	 "would it do|will it do|does it do|will you do|will they do|would they do|do they do|what "
	 "are they|"
	 "what is it|what is that|what happens|waiting for me|what is waiting|what waits|what is "
	 "open|"
	 "whats open|files it reads|files will it|files would it|tell me more|more details|"
	 "what exactly|what for|what do you want|what do you propose|which ones|what is this|"
	 "what would you|what are the|what were they|whats that|whats it|what if",
	 NULL},
	{ABOUT_WHAT, HAS_QUOTE, 1, "what|huh|pardon|was|quoi|que", NULL, NULL},
	{ABOUT_RIGHTS, HAS_QUOTE | HAS_RUN, 10, NULL,
	 "change|modify|write|delete|edit|touch|dangerous|safe|harm|harmful|risky|risk|break|"
	 "internet|online|private|secret|secrets|read my|see my|access|password|passwords",
	 "it|that|this|they|my|anything|is|something"},
	{ABOUT_TOOLS, HAS_QUOTE | HAS_RUN, 0, NULL,
	 "which tools|what tools|tools will|tools does|tools do|tools would|search_and_read|"
	 "search_codebase|read_file|list_files|read_result|ask_person|submit_result",
	 NULL},
	{ABOUT_TIME, HAS_QUOTE | HAS_RUN | HAS_ENDED, 10, NULL,
	 "how long|how much time|how much longer|when will|when is|how fast|wie lange|"
	 "combien de temps|how quick|wann ist",
	 THAT "|take|takes|be done|be ready|ready|fertig|dauert das"},
	{ABOUT_COST, HAS_QUOTE | HAS_RUN | HAS_ENDED, 10, NULL,
	 "cost|costs|price|pricey|expensive|cheap|cheaper|how much|spend|spent|free|budget|money|"
	 "pay|bill|kosten|kostet|gekostet|combien|cuanto|teuer",
	 NULL},
	{ABOUT_MODEL, HAS_QUOTE | HAS_RUN | HAS_ENDED, 10, NULL,
	 "which model|what model|model is|model does|model will|model did|which llm|what llm|"
	 "welches modell",
	 NULL},
	{ABOUT_MODEL, HAS_QUOTE, 9,
	 "who is going|whos going|who will|wholl|who would|who does|who is it|which subagent|which "
	 "role|wer macht",
	 NULL, NULL},
	{ABOUT_WHAT, HAS_RUN, 0, NULL,
	 "first doing|second doing|third doing|last doing|one doing|other doing|subagent doing|"
	 "is it doing|does it do|are they doing|do they do|is it up to|does it want|do they want|"
	 "it do right now|it working on|is it at|does it ask|did it ask|is it asking|what exactly|"
	 "will it search|it search for|will it read|will it do|wants to|want to know",
	 NULL},
	{ABOUT_WHAT, HAS_RUN, 0, NULL,
	 "it found|found so far|has it found|they found|any results|results yet|first results",
	 NULL},
	{ABOUT_STATUS, HAS_RUN, 10, "how is|hows|how are|how does|wie geht",
	 "going|coming along|doing|getting on|getting along|progressing|come along", NULL},
	{ABOUT_WHY, HAS_QUOTE | HAS_RUN, 9, "why|how come|wieso|warum|what for|pourquoi", NULL,
	 NULL},
	{ABOUT_DOUBT, HAS_QUOTE, 14, NULL,
	 "if it|if its|if they|unless|maybe|perhaps|not sure|unsure|let me think|think about|not "
	 "yet|"
	 "later|wait|hm|hmm|hmmm|moment|second thoughts|cant decide|yes and no|cant say",
	 NULL},
	{ABOUT_DOUBT, HAS_QUOTE, 9,
	 "is that|is this|was that|are you|do you|did you|should i|shall i|must i|have i|do i|did "
	 "i",
	 NULL, NULL},
	{ABOUT_STATUS, 0, 0, NULL,
	 "how is it going|hows it going|how are they|how is it doing|status|progress|how far|"
	 "are you done|is it done|still working|still running|is running|whats running|what runs|"
	 "anything running|something running|my subagents|list subagents|the subagents|"
	 "which subagents|wie laufts|wie lauft|was lauft|lauft was|lauft noch|at work|is "
	 "working|done first|finished first|"
	 "ready first|done yet|finished yet|are they doing|what is it doing|any news|anything new|"
	 "still there|is going on|whats up|still at it|still on it|still busy|still doing|both "
	 "still",
	 NULL},
	/* requests that cannot be met */
	{ABOUT_WEB, 0, 0, NULL,
	 "the web|web|on the web|internet|google|online|weather|news|website|youtube|wikipedia|"
	 "stock price|twitter|reddit",
	 NULL},
	{ABOUT_LATER, 0, 0, NULL,
	 "remind me|wake me|every day|every morning|every hour|tomorrow|set a timer|set an alarm|"
	 "in an hour|next week|tonight|schedule a|erinnere mich|set a reminder",
	 NULL},
	{ABOUT_CLOCK, 0, 7, NULL,
	 "what time is|whats the time|what day is|what date|todays date|how late is it|wie spat|"
	 "quelle heure|que hora|che ore",
	 NULL},
	{ABOUT_MEMORY, 0, 0, NULL,
	 "do you remember|you remember|remember what|we talked|last time we|you said yesterday|"
	 "last conversation|talked about|remember me|remember that|erinnerst du",
	 NULL},
	{ABOUT_SENDING, 0, 0,
	 "send|mail|email|e-mail|message|call|order|buy|book|post|tweet|phone|text|notify|invite",
	 NULL, NULL},
	{ABOUT_SHELL, 0, 0,
	 "run|execute|git|make test|make tests|make check|make all|make install|make "
	 "clean|npm|cargo|compile|build|deploy|install|sudo|ls|cd|rm|docker|pip|apt|"
	 "restart|benchmark|test|start the|mach die|fuhr|open the browser|curl|ssh|kill the "
	 "process",
	 NULL, NULL},
	{ABOUT_WRITING, 0, 0,
	 "fix|write|edit|change|rename|delete|create|add|implement|remove|update|replace|insert|"
	 "patch|refactor|rewrite|save|commit|generate|convert|move|correct|clean "
	 "up|format|put|draft|"
	 "schreib|andere|losche",
	 NULL, NULL},
	/* small talk */
	{ABOUT_BYE, 0, 5,
	 "bye|goodbye|good bye|good night|see you|tschuss|au revoir|adios|quit|exit|later|farewell|"
	 "bis dann|ciao bella|cya",
	 NULL, NULL},
	{ABOUT_THANKS, 0, 6,
	 "thanks|thank you|thx|ty|great|nice|well done|cool|perfect|danke|merci|gracias|grazie|"
	 "obrigado|obrigada|good job|awesome|bedankt|excellent|wonderful|super|lovely|cheers",
	 NULL, NULL},
	{ABOUT_HELP, 0, 8, NULL,
	 "help|what can you do|what cant you do|what can you not do|cant you do|what can i do|who "
	 "are you|what are you|how do you work|"
	 "how does this work|what do you do|was kannst du|usage|commands|what is ava|what is this|"
	 "what can i ask|how do i use|hilfe|wer bist du|qui es tu|aide|ayuda|your name|"
	 "what else can you",
	 NULL},
	{ABOUT_HELLO, 0, 5,
	 "hello|hi|hey|hallo|moin|good morning|good evening|good afternoon|guten morgen|guten tag|"
	 "guten abend|servus|bonjour|bonsoir|salut|hola|buenos "
	 "dias|ciao|buongiorno|ola|yo|greetings|"
	 "howdy|good day|morning|how are you|sup|hej|hoi",
	 NULL, NULL},
	{ABOUT_ANSWER, 0, 6,
	 "yes|yep|yeah|no|nope|ok|okay|sure|go ahead|proceed|ja|nein|oui|non|si|allow|deny|do it|"
	 "go|y|n|fine|alright",
	 NULL, NULL},
	/* a request for work without its object */
	{ABOUT_NOTHING, 0, 1, VERBS, NULL, NULL},
	{ABOUT_LOOK, 0, 2, "find|locate|finde|suche", NULL, NULL}, /* "find main" */
	{ABOUT_NOTHING, 0, 2, "search for|look for|look up|look into|look at|find out", NULL, NULL},
	{ABOUT_TASKS, 0, 0, NULL,
	 "in parallel|parallel|at the same time|at once|side by side|simultaneously|concurrently|"
	 "gleichzeitig|at one time",
	 NULL},
	{ABOUT_LISTING, 0, 9, NULL,
	 "which files are|what files are|list files|list the files|list all files|files are there|"
	 "files are here|files do you see|is in this folder|whats in this folder|in the folder|"
	 "what files do|which files do you|welche dateien",
	 NULL},
	{ABOUT_TASK, 0, 0,
	 VERBS
	 "|code review|security audit|do a|make a list|make me a list|give me a list|"
	 "give me an overview|use the|let the|have the|i need a|a review|get me|pull|tell me how|"
	 "tell me about|figure out|dig into|deep dive|walk me through|read through",
	 NULL, NULL},
	{ABOUT_TASK, 0, 0, "how does|how do|how is|how are|wie funktioniert|comment fonctionne",
	 NULL,
	 "work|works|function|functions|implemented|handled|done|depend|uses|fit|interact|"
	 "together|designed|structured|built|organised|organized|parsed|funktioniert|connected"},
	{ABOUT_TASK, 0, 0, NULL,
	 "code review|a review|an audit|security audit|all callers|deep dive|have a look at|take a "
	 "look at|a report on|a report about",
	 NULL},
	{ABOUT_LOOK, 0, 0,
	 "where|wheres|which|what|whats|who|whos|whose|how|is there|are "
	 "there|does|do|did|is|are|was|"
	 "wo|wer|welche|welcher|wie|ou|show me|show|cat|print|display|read|tell me|value of|struct|"
	 "when|why|has|have|in which|on which|from where|open",
	 NULL, NULL},
};

static unsigned offline_heard_count_words(const char *plain)
{
	unsigned n = 0;

	for (const char *at = plain; *at; at++)
		n += *at != ' ' && at[-1] == ' ';
	return n;
}

static bool row_fits(const struct offline_heard_row *r, const char *plain, unsigned has,
		     unsigned words)
{
	return (r->needs == 0 || (r->needs & has)) && (r->most == 0 || words <= r->most) &&
	       (!r->begins || heard_begins(plain, r->begins)) &&
	       (!r->has || heard_has(plain, r->has)) && (!r->also || heard_has(plain, r->also));
}

/* Does the verb stop a run ("stop", "cancel the run", "kill number 2")? A run or nothing must
 * follow it: "Cancel my subscription" and "stop at the first match" stop none. */
static bool stops_run(const char *plain)
{
	const char *behind = plain + 1 + strcspn(plain + 1, " ");

	return !behind[1] ||
	       heard_begins(
		       behind,
		       "it|that|this|them|these|the|both|all|everything|everyone|now|please|"
		       "pls|number|one|at once|immediately|right now|right away|s-|run|runs|"
		       "subagent|subagents|enough|thats "
		       "enough|stop|cancel|alles|alle|beide|bitte|das|es|"
		       "tout|todo|tutto|and|mission|work|working|running|thanks|thank you|ava");
}

/* Is one of the first words nearly a verb that asks for work ("reveiw")? */
static bool mistyped_verb(const char *plain)
{
	static const char *const verbs[] = {"review",  "research",    "explain",   "extract",
					    "compare", "investigate", "summarize", "analyze"};
	size_t len = strcspn(plain + 1, " ");

	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		if (len > 5 && near_distance(plain + 1, len, verbs[i], strlen(verbs[i])) == 1)
			return true;
	return false;
}

/* A sum such as "17*23". */
static bool is_sum(const char *plain)
{
	size_t n = strspn(plain, " 0123456789.+-*/x");

	return !plain[n] && strpbrk(plain, "+*/x-") && strpbrk(plain, "0123456789");
}

/* Do the words hold a name such as "kettle_boil", "src/a.c", "BOILING"? */
static bool has_name(const char *words)
{
	for (const char *at = words; *at;) {
		size_t n = strcspn(at, " \t\n,;?!"), upper = 0;

		for (size_t i = 0; i < n; i++) {
			upper += isupper((unsigned char)at[i]) != 0;
			if (i > 0 && i + 1 < n && strchr("_./", at[i]) &&
			    isalnum((unsigned char)at[i + 1]))
				return true;
		}
		if (upper > 2 && upper == n)
			return true;
		at += n + (at[n] != 0);
	}
	return false;
}

enum topic heard_topic(const char *words, const char *plain, unsigned has)
{
	unsigned n = offline_heard_count_words(plain);

	if (n == 0)
		return ABOUT_NOTHING;
	if (strstr(plain, "://"))
		return ABOUT_WEB;
	if (is_sum(plain))
		return ABOUT_MATHS;
	if (mistyped_verb(plain))
		return ABOUT_TASK;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		/* A request that names code is for new work, whatever other rows it fits. */
		if (i > 0 && rows[i].needs && rows[i].topic > ABOUT_FOUND &&
		    heard_begins(plain, VERBS) && has_name(words))
			continue;
		if (rows[i].topic == ABOUT_STOP && rows[i].begins && !stops_run(plain))
			continue;
		if (row_fits(&rows[i], plain, has, n))
			return rows[i].topic;
	}
	return strchr(words, '?') || (n < 6 && has_name(words)) ? ABOUT_LOOK : ABOUT_NOTHING;
}

const char *heard_note(const char *words, size_t *len)
{
	static const char *const begins[] = {
		"remember that",    "remember this", "remember",    "keep in mind that",
		"keep in mind",     "note that",     "forget that", "don't forget",
		"dont forget",      "merk dir",      "merke dir",   "retiens que",
		"souviens-toi que", "recuerda que",  "ricorda che", "ricordati che"};
	const char *note = words;

	for (size_t i = 0; i < ARRAY_LEN(begins) && note == words; i++) {
		const char *at = strcasestr(words, begins[i]);

		if (at && strchr(" :,", at[strlen(begins[i])]))
			note = at + strlen(begins[i]);
	}
	note += strspn(note, " :,");
	if (strncasecmp(note, "dass ", 5) == 0)
		note += 5;
	*len = strlen(note);
	while (*len > 0 && strchr(" .!?\n", note[*len - 1]))
		--*len;
	if (*len > 8 && strncasecmp(note + *len - 8, ", please", 8) == 0)
		*len -= 8;
	return note;
}

const char *heard_subject(const char *plain)
{
	const char *at = strstr(plain, " about ");

	if (at && strncmp(at, " about me ", 10) != 0)
		return at + strlen(" about ");
	at = at ? NULL : strstr(plain, " my ");
	return at ? at + 1 : "";
}

const char *heard_role(const char *plain)
{
	static const struct {
		const char *said, *role;
	} roles[] = {
		{"data extractor|extractor|data_extractor", "data_extractor"},
		{"code reviewer|reviewer|code_reviewer|security audit|code review|an audit",
		 "code_reviewer"},
		{"researcher", "researcher"},
	};

	for (size_t i = 0; i < ARRAY_LEN(roles); i++)
		if (heard_has(plain, roles[i].said))
			return roles[i].role;
	return NULL;
}

bool heard_memory(const char *words, char id[24])
{
	const char *at = strcasestr(words, "m-");
	size_t n = at ? strspn(at + 2, "0123456789abcdef") : 0;

	if (n < 6 || n > 20)
		return false;
	snprintf(id, 24, "M-%.*s", (int)n, at + 2);
	return true;
}

/* ---- limits in a task */

static const char *limit_at(const char *at, size_t *len)
{
	static const char *const said[] = {"but dont spend more than",
					   "but don't spend more than",
					   "don't spend more than",
					   "dont spend more than",
					   "but not more than",
					   "but no more than",
					   "not more than",
					   "no more than",
					   "with a budget of",
					   "with a limit of",
					   "again with",
					   "within",
					   "at most",
					   "you have",
					   "maximum",
					   "max",
					   "budget",
					   "limit",
					   "up to",
					   "for at most",
					   "under"};

	for (size_t i = 0; i < ARRAY_LEN(said); i++) {
		size_t n = strlen(said[i]);

		if (strncasecmp(at, said[i], n) == 0 && !isalpha((unsigned char)at[n])) {
			*len = n + strspn(at + n, " .:");
			return at + *len;
		}
	}
	return NULL;
}

/* Read an amount: "5 cents", "half a dollar", "$2", "2 minutes". Returns its bytes; 0: none. */
static size_t amount_at(const char *at, struct heard_limits *out)
{
	static const struct {
		const char *words;
		double cents, seconds;
	} units[] = {
		{"cents", 1, 0},     {"cent", 1, 0},     {"ct", 1, 0},       {"c", 1, 0},
		{"dollars", 100, 0}, {"dollar", 100, 0}, {"bucks", 100, 0},  {"minutes", 0, 60},
		{"minute", 0, 60},   {"min", 0, 60},     {"seconds", 0, 1},  {"second", 0, 1},
		{"sec", 0, 1},       {"s", 0, 1},        {"hours", 0, 3600}, {"hour", 0, 3600},
		{"h", 0, 3600},
	};
	const char *begin = at;
	bool dollars = *at == '$';
	double n;
	char *end;

	at += dollars;
	n = strtod(at, &end);
	if (strncasecmp(at, "half a ", 7) == 0)
		n = 0.5, end = (char *)at + 7;
	else if (strncasecmp(at, "half an ", 8) == 0)
		n = 0.5, end = (char *)at + 8;
	else if (strncasecmp(at, "a ", 2) == 0 || strncasecmp(at, "an ", 3) == 0 ||
		 strncasecmp(at, "one ", 4) == 0)
		n = 1, end = strchr(at, ' ') + 1;
	else if (end == at || !isdigit((unsigned char)*at))
		return 0;
	if (dollars) {
		out->cents = n * 100;
		return (size_t)(end - begin);
	}
	at = end + strspn(end, " ");
	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		size_t len = strlen(units[i].words);

		if (strncasecmp(at, units[i].words, len) != 0 || isalpha((unsigned char)at[len]))
			continue;
		if (units[i].cents > 0)
			out->cents = n * units[i].cents;
		else
			out->seconds = (int64_t)(n * units[i].seconds);
		return (size_t)(at + len - begin);
	}
	return 0;
}

/* Read a limit with its words behind: "3 cents tops", "for a minute at most". Returns its bytes; 0:
 * none. */
static size_t limit_behind(const char *at, struct heard_limits *out)
{
	static const char *const said[] = {" tops",    " max",     " maximum",
					   " at most", " or less", " at the most"};
	size_t begin = strncasecmp(at, "for ", 4) == 0 ? 4 : 0, len;
	struct heard_limits amount = *out;

	len = amount_at(at + begin, &amount);
	for (size_t i = 0; i < ARRAY_LEN(said) && len > 0; i++) {
		size_t n = strlen(said[i]);

		if (strncasecmp(at + begin + len, said[i], n) != 0 ||
		    isalpha((unsigned char)at[begin + len + n]))
			continue;
		*out = amount;
		return begin + len + n;
	}
	return 0;
}

void heard_limits(char *task, struct heard_limits *out)
{
	*out = (struct heard_limits){-1, -1};
	for (size_t i = 0; task[i]; i++) {
		bool word = i == 0 || !isalnum((unsigned char)task[i - 1]);
		struct heard_limits found = *out;
		size_t before = 0, len = 0;
		const char *amount = word ? limit_at(task + i, &before) : NULL;
		char *end;

		if (amount)
			len = amount_at(amount, &found);
		if (len > 0 && strncmp(amount + len, " of ", 4) == 0)
			len = 0; /* "under 5 minutes of boiling" is no limit */
		if (len > 0)
			*out = found;
		else if (word)
			len = limit_behind(task + i, out);
		if (len == 0)
			continue;
		/* Several amounts may follow each other: "1 minute, 20ct". */
		end = task + i + before + len;
		for (size_t more = 1; more > 0; end += more) {
			size_t joint = strncmp(end, " and ", 5) == 0 ? 5
				       : strncmp(end, ", ", 2) == 0  ? 2
								     : 0;

			more = joint ? amount_at(end + joint, out) : 0;
			more += more ? joint : 0;
		}
		if (strncmp(end, " in total", 9) == 0 || strncmp(end, " in all", 7) == 0)
			end += strcspn(end + 4, " .,;") + 4;
		while (i > 0 && strchr(" ,;.-", task[i - 1]))
			i--;
		if (i == 0)
			end += strspn(end, " ,;.");
		memmove(task + i, end, strlen(end) + 1);
		i -= i > 0;
	}
}

bool heard_work(const char *plain)
{
	return heard_begins(plain, VERBS);
}

/* ---- several tasks */

/* Cut `phrase` out; returns its former place, or NULL. */
static char *offline_heard_cut(char *words, const char *phrase)
{
	char *at = strcasestr(words, phrase);

	if (at)
		memmove(at, at + strlen(phrase), strlen(at + strlen(phrase)) + 1);
	return at;
}

static char *offline_heard_trim(char *s)
{
	size_t n;

	s += strspn(s, " ,;:.-\n\t");
	if (strncasecmp(s, "and ", 4) == 0)
		s += 4 + strspn(s + 4, " ");
	if (isdigit((unsigned char)*s) && (s[1] == ')' || s[1] == '.') && s[2] == ' ')
		s += 3;
	for (n = strlen(s); n > 0 && strchr(" ,;:.!\n\t", s[n - 1]);)
		s[--n] = 0;
	return s;
}

unsigned heard_tasks(char *words, char *tasks[], unsigned max)
{
	static const char *const marks[] = {"in parallel",    "at the same time", "side by side",
					    "simultaneously", "concurrently",     "gleichzeitig",
					    "at once",        "parallel"};
	const char *between = ", ";
	unsigned n = 0;
	char *at;

	for (size_t i = 0; i < ARRAY_LEN(marks); i++)
		offline_heard_cut(words, marks[i]);
	/* "do these two: …", "two things please - …": the words before the colon or dash say how
	 * many. */
	at = strstr(words, ": ");
	if (!at)
		at = strstr(words, " - ");
	if (at && at - words < 60)
		words = at + 2;
	words = offline_heard_trim(words);
	if (strchr(words, ';'))
		between = ";";
	else if (strstr(words, " 2) "))
		between = NULL;
	else if (!strchr(words, ','))
		between = " and ";
	for (at = words; at && n < max; n++) {
		char *next = between ? strstr(at, between) : NULL;

		if (!between)
			for (next = at + 1; *next; next++)
				if (isdigit((unsigned char)*next) && next[1] == ')' &&
				    next[-1] == ' ')
					break;
		if (next && *next) {
			char *rest = next + (between ? strlen(between) : 0);

			if (between)
				*next = 0;
			else
				next[-1] = 0;
			tasks[n] = offline_heard_trim(at);
			at = rest;
		} else {
			tasks[n] = offline_heard_trim(at);
			at = NULL;
		}
	}
	return n;
}
