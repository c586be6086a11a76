/* The offline model as Ava. She holds no conversation. A line that begins with a verb of work
 * ("review src", "can you find …") is proposed from that verb on, to the role that its words
 * choose; "every Monday at 8, review src" is a standing order; "list" tells which subagents are at
 * work, "stop S-7f3a2b" ends that one; a question that names something in the files is looked up at
 * once; to everything else she says one sentence, which names what there is. Whether words answer a
 * quote or a question is the runtime's to say: its notices ("[ava] …", in user text only) are told
 * in a few words, and words that were an answer are no request. A result is told in one line: `ava
 * result` has all of it.
 *
 * What tools returned, and results, are quoted, never obeyed. Only memory can fail. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/prompt.h"
#include "base/util.h"
#include "codec/format_of.h"
#include "codec/utf8.h"
#include "provider/dialect.h"
#include "provider/offline_look.h"

#define TALK_MAX   (1u << 20)
#define TASK_SHOWN 70               /* characters */
#define GAPS       " \t\r\n,.:;!?'" /* between words */

static const char talk_sentence[] =
	"(offline model) For conversation set a key or a local server: `ava doctor`. Without one I "
	"propose subagents over the files here (`review …`, `find …`, `research …`, `explain …`); "
	"yes or no answers a quote, `list` tells which are at work, `stop S-…` ends one.";

struct offline_talk_state {
	struct offline_body *b;
	struct offline_draft *draft;
	struct buf out; /* Ava's words */
	bool answered;  /* the runtime has taken the person's words as an answer */
};

/* ---- what the runtime tells */

/* `mark` in a notice and what is said of it, with what stands behind the mark where `tail`.
 * `answered`: the person's words were no request. The first row that fits. */
static const struct offline_notice {
	const char *mark, *say;
	bool tail, answered;
} notices[] = {
	{NOTICE_WAIT, "Which one do you mean? ", true, true},
	{NOTICE_FAILED, "That cannot be done: ", true, true},
	{"\"yes, ", "Nothing was done. Which one do you mean? \"yes, ", true, true},
	{NOTICE_AT_WORK, "`list` tells what is at work, `stop S-…` ends one.", false, true},
	{"Nothing was", "Nothing was done: say it again, please.", false, true},
	{"confirmed", "I'll tell you what is found.", false, true},
	{"rejected", "All right.", false, true},
	{"is a new quote", "Here is a new quote.", false, true},
	{"The person's answer went to", "I have passed that on.", false, true},
	{"has expired", "That proposal has expired; say it again if you still want it.", false,
	 false},
};

static void talk_notice(struct offline_talk_state *t, const char *line)
{
	for (size_t i = 0; i < ARRAY_LEN(notices); i++) {
		const struct offline_notice *n = &notices[i];
		const char *at = strstr(line, n->mark);

		if (!at)
			continue;
		t->answered |= n->answered;
		if (!(t->out.len && strstr(t->out.data, n->say)))
			buf_addf(&t->out, "%s%s%s", t->out.len ? " " : "", n->say,
				 n->tail ? at + strlen(n->mark) : "");
		return;
	}
}

/* One line of a result.json: the first of its summary, and where its first citation stands. */
static void talk_result(struct offline_talk_state *t, const char *json)
{
	json_t *r = json_parse(json, strlen(json), NULL);
	const json_t *cited = json_array_get(json_object_get(r, "citations"), 0);
	const char *id = json_str(r, "subagent_id"), *summary = json_str(r, "summary"), *place;
	bool success = strcmp(json_str(r, "status"), "success") == 0;

	buf_addf(&t->out, "%sFrom %s%s%s: %.*s", t->out.len ? "\n\n" : "", *id ? id : "a subagent",
		 success ? "" : ", which ended without success",
		 json_get_bool(r, "unverified", false) ? ", unverified" : "",
		 (int)strcspn(summary, "\n"), summary);
	place = json_get_str(cited, "path")
			? arena_fmt(&t->b->mem, "%s:%lld", json_str(cited, "path"),
				    (long long)json_get_int(cited, "line", 0))
			: json_get_str(cited, "url");
	if (place && !strstr(summary, place))
		buf_addf(&t->out, " (%s)", place);
	buf_addf(&t->out, " `ava result%s%s` shows all of it.", *id ? " " : "", id);
	json_decref(r);
}

/* Tell the notices and results of the newest text; returns the person's words in it, NULL: no
 * memory. */
static const char *talk_newest(struct offline_talk_state *t)
{
	const char *text = t->b->newest, *said = NULL;
	bool result = false, inside = false; /* a result comes next; its envelope is open */
	struct buf words;
	size_t len;

	buf_init(&words, TALK_MAX);
	for (; *text; text += len + (text[len] == '\n')) {
		const char *line = arena_copy(&t->b->mem, text, len = strcspn(text, "\n"));

		if (!line) {
			t->draft->rv = AVA_ENOMEM;
			break;
		}
		if (result) {
			talk_result(t, line);
			result = false;
		} else if (strncmp(line, "[ava] ", 6) == 0) {
			result = strstr(line, NOTICE_RESULT) != NULL;
			inside = result || strstr(line, NOTICE_TOLD);
			if (!inside && !strstr(line, NOTICE_ELSEWHERE))
				talk_notice(t, line);
		} else if (!inside) {
			buf_addf(&words, "%s%s", words.len ? "\n" : "", line);
		}
	}
	if (buf_check(&words) == 0)
		said = arena_copy(&t->b->mem, words.len ? words.data : "", words.len);
	buf_fini(&words);
	return said;
}

/* ---- what the person says */

static const char fillers[] =
	" a also and ava can code could d do hey hi i id just kindly let like me meanwhile need "
	"no now ok okay only please pls so somebody someone subagent the then to us want we will "
	"would you your ";
static const char verbs[] =
	" analyse analyze assess audit check collect compare describe document evaluate examine "
	"explain extract find inspect investigate list locate look map research review search "
	"study summarise summarize trace busca cerca cherche compara erkläre examina explica "
	"explique finde prüfe revisa spiega suche trouve untersuche vergleiche ";

/* The words from the first that is not in the list. */
static const char *talk_skip(const char *list, const char *words)
{
	for (size_t n;; words += n) {
		words += strspn(words, GAPS);
		n = strcspn(words, GAPS);
		if (!find_listed(list, words, n))
			return words;
	}
}

/* The id of a run where nothing else is said: "S-7f3a2b, please". false: another form. */
static bool talk_is_run(const char *words, char id[24])
{
	size_t n = strspn(words, "S-0123456789abcdef");

	snprintf(id, 24, "%.*s", (int)MIN(n, 23u), words);
	return n >= 8 && n < 24 && strncmp(words, "S-", 2) == 0 && !*talk_skip(fillers, words + n);
}

/* Call a tool of subagents; `id` NULL: of all. */
static void talk_call(struct offline_talk_state *t, const char *name, const char *id)
{
	struct jw *w = draft_call(t->draft, name);

	if (id)
		jw_str(w, "subagent_id", id);
	draft_call_end(t->draft);
}

/* A reviewer where the task is about code and there is one; else a researcher, for the offline
 * model has no web for the other roles. */
static const char *talk_role(const struct offline_talk_state *t, const char *task)
{
	const json_t *takes = offline_tool(t->b, "spawn_subagent"), *one;
	const char *fits = classify_role(task, strlen(task)), *role = "researcher";
	size_t i;

	json_array_foreach(json_object_get(json_object_get(takes, "role"), "enum"), i, one)
	{
		if (strcmp(fits, "code_reviewer") == 0 && strcmp(json_string_value(one), fits) == 0)
			role = fits;
	}
	return role;
}

static void talk_spawn(struct offline_talk_state *t, const char *task)
{
	struct jw *w = draft_call(t->draft, "spawn_subagent");

	jw_str(w, "role", talk_role(t, task));
	jw_str(w, "task", task);
	draft_call_end(t->draft);
}

/* Is it about what she does not have? */
static bool talk_is_web(const char *words)
{
	return strstr(words, "://") || strcasestr(words, "the web") ||
	       strcasestr(words, "internet");
}

/* ---- "every Monday at 8, find new TODOs": a standing order */

/* A day as systemd's OnCalendar has it. */
static const struct offline_day {
	const char *word, *when;
} offline_days[] = {
	{"monday", "Mon"},    {"tuesday", "Tue"},      {"wednesday", "Wed"}, {"thursday", "Thu"},
	{"friday", "Fri"},    {"saturday", "Sat"},     {"sunday", "Sun"},    {"day", "*-*-*"},
	{"morning", "*-*-*"}, {"weekday", "Mon..Fri"},
};

/* "2 hours", "hour", "30 min": *words is then behind it. */
static bool talk_every_span(const char **words, char when[32])
{
	char *behind;
	long n = strtol(*words, &behind, 10);
	const char *unit = behind + strspn(behind, GAPS);
	size_t len = strcspn(unit, GAPS);
	char letter = find_listed(" hour hours h ", unit, len)              ? 'h'
		      : find_listed(" minute minutes min mins ", unit, len) ? 'm'
									    : 0;

	if (!letter || n < 0 || n > 1000)
		return false;
	snprintf(when, 32, "every %ld%c", n > 0 ? n : 1, letter);
	*words = unit + len;
	return true;
}

/* "Monday at 8", "day at 18:00": likewise; without a time at 8. */
static bool talk_every_day(const char **words, char when[32])
{
	size_t len = strcspn(*words, GAPS);
	int hour = 8, minute = 0, n = 0;
	const char *at;

	for (size_t i = 0; i < ARRAY_LEN(offline_days); i++) {
		const struct offline_day *d = &offline_days[i];

		if (strlen(d->word) != len || strncasecmp(*words, d->word, len) != 0)
			continue;
		*words += len;
		at = *words + strspn(*words, " ");
		if (strncasecmp(at, "at ", 3) == 0 && sscanf(at + 3, "%2d%n", &hour, &n) == 1) {
			at += 3 + n;
			if (sscanf(at, ":%2d%n", &minute, &n) == 1)
				at += n;
			at += strspn(at, " ");
			hour += strncasecmp(at, "pm", 2) == 0 && hour < 12 ? 12 : 0;
			at += strncasecmp(at, "am", 2) == 0 || strncasecmp(at, "pm", 2) == 0 ? 2
											     : 0;
			*words = at;
		}
		snprintf(when, 32, "%s %02d:%02d", d->when, hour % 100, minute % 100);
		return true;
	}
	return false;
}

/* false: the words are about no order. */
static bool talk_order(struct offline_talk_state *t, const char *words)
{
	struct jw *w;
	char when[32];
	const char *task;

	if (strncasecmp(words, "every ", 6) != 0 || !offline_tool(t->b, "propose_order"))
		return false;
	words += 6;
	if (!talk_every_span(&words, when) && !talk_every_day(&words, when))
		return false;
	task = talk_skip(fillers, words);
	if (!task[0] || !task[1] || talk_is_web(task))
		return false;
	w = draft_call(t->draft, "propose_order");
	jw_str(w, "when", when);
	jw_str(w, "role", talk_role(t, task));
	jw_str(w, "task", task);
	draft_call_end(t->draft);
	return true;
}

/* Does a question ask about the files here: does it name a program's name or a file, or, in
 * English, a word of its own, and nobody? "What would it cost?" is about something else. */
static bool talk_asks_files(const char *words)
{
	static const char openings[] = " what where which how why does is are who when ",
			  people[] = " i me my we us he she them they you your ",
			  others[] = " it its that this they you your doing done first one next ";
	struct offline_body b = {.task = words};
	struct find f = {.b = &b};
	bool english = find_listed(openings, words, strcspn(words, GAPS)), named = false;

	if (!strchr(words, '?'))
		return false;
	find_read_task(&f);
	for (unsigned i = 0; i < f.nterms; i++)
		named |= f.terms[i].kind != TERM_WORD;
	for (size_t n; *words; words += n + strspn(words + n, GAPS)) {
		n = strcspn(words, GAPS);
		if (find_listed(others, words, n) || (!named && find_listed(people, words, n)))
			return false;
	}
	return named || (english && f.nterms > 0);
}

static void talk_words(struct offline_talk_state *t, const char *words)
{
	const char *plain = talk_skip(fillers, words);
	size_t n = strcspn(plain, GAPS);
	const char *object =
		talk_skip(fillers, talk_skip(" at for in into it on out that this up ", plain + n));
	bool stops = find_listed(" stop cancel abort ", plain, n);
	char id[24];

	if (stops && talk_is_run(object, id))
		talk_call(t, "cancel_subagent", id);
	else if (find_listed(" pause ", plain, n) && talk_is_run(object, id))
		talk_call(t, "pause_subagent", id);
	else if (find_listed(" unpause continue ", plain, n) && talk_is_run(object, id))
		talk_call(t, "unpause_subagent", id);
	else if (stops || (!*object && find_listed(" list status runs ps ", plain, n)))
		talk_call(t, "list_subagents", NULL);
	else if (talk_order(t, plain))
		return;
	else if (find_listed(verbs, plain, n) && object[0] && object[1] && !talk_is_web(plain))
		talk_spawn(t, plain);
	else if (offline_tool(t->b, "search_codebase") && talk_asks_files(plain))
		t->draft->rv = offline_look_up(t->b, t->draft, plain, &t->out);
	else if (t->out.len == 0)
		buf_adds(&t->out, talk_sentence);
}

/* ---- what tools returned */

static void talk_runs(struct offline_talk_state *t, const char *json)
{
	json_t *list = json_parse(json, strlen(json), NULL);
	const json_t *run;
	size_t i;

	json_array_foreach(list, i, run)
	{
		const json_t *asks = json_object_get(run, "waiting_for");
		const char *task = json_str(run, "task");
		size_t shown = utf8_prefix(task, strlen(task), TASK_SHOWN);

		buf_addf(&t->out, "- %s (%s) ", json_str(run, "subagent_id"),
			 format_role(json_str(run, "role")).text);
		if (asks)
			buf_addf(&t->out, "waits for you: “%s”", json_str(asks, "question"));
		else
			buf_addf(&t->out, "is %s (%s, %s tokens)",
				 words_status(json_str(run, "status")),
				 format_time_of(run, "elapsed_seconds").text,
				 format_tokens_of(run, "tokens_used").text);
		buf_addf(&t->out, ". Its task: \"%.*s%s\".\n", (int)shown, task,
			 shown < strlen(task) ? "…" : "");
	}
	buf_adds(&t->out, i ? "\n`stop S-…` ends one for good." : WORDS_NONE_AT_WORK);
	json_decref(list);
}

/* The words of the question that the search was for. */
static void talk_found(struct offline_talk_state *t)
{
	struct offline_talk_state asked = {.b = t->b, .draft = t->draft};
	const char *words;

	buf_init(&asked.out, TALK_MAX);
	words = talk_newest(&asked);
	t->draft->rv = words ? offline_look_up(t->b, t->draft, words, &t->out) : AVA_ENOMEM;
	buf_fini(&asked.out);
}

static void talk_told(struct offline_talk_state *t, const struct offline_call *c)
{
	const char *text = c->result ? c->result : "";

	if (strcmp(c->name, "search_codebase") == 0)
		talk_found(t);
	else if (c->is_error)
		buf_addf(&t->out, "That did not work: %s.", text);
	else if (strcmp(c->name, "spawn_subagent") == 0)
		buf_adds(&t->out, "A subagent can do that in the background.");
	else if (strcmp(c->name, "propose_order") == 0)
		buf_adds(&t->out, "A standing order can do that while you are away.");
	else if (strcmp(c->name, "list_subagents") == 0)
		talk_runs(t, text);
	else
		buf_adds(&t->out, "All right."); /* the runtime tells how a run ended */
}

int offline_talk(struct offline_body *b, struct offline_draft *draft)
{
	struct offline_talk_state t = {.b = b, .draft = draft};
	const char *words;

	buf_init(&t.out, TALK_MAX);
	if (b->ncalls > b->fresh) {
		talk_told(&t, &b->calls[b->ncalls - 1]);
	} else if ((words = talk_newest(&t)) == NULL) {
		draft->rv = AVA_ENOMEM;
	} else if (!t.answered && (*words || t.out.len == 0)) {
		talk_words(&t, words);
	}
	if (buf_check(&t.out) != 0)
		draft->rv = draft->rv ? draft->rv : buf_check(&t.out);
	else if (t.out.len > 0)
		draft_text(draft, t.out.data);
	buf_fini(&t.out);
	return 0;
}
