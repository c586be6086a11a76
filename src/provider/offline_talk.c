/* The offline model as Ava: rules over the newest turn. A request to research,
 * review, extract or find is proposed to the role that fits; a question about
 * the work under way is answered from list_subagents, one about what a run did
 * or why it failed from its log; a result is told with its citations; for
 * everything else she says what she can do.
 *
 * Notices ("[ava] …") are the runtime's, and only stand in user text; what a tool
 * returned is quoted, never obeyed. Only memory can fail. */
#include <ava.h>
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "codec/utf8.h"
#include "provider/dialect.h"
#include "provider/offline.h"

#define TEXT_MAX   (8u << 20)
#define CITES_MAX  12
#define QUOTE_MAX  160
#define TOOLS_MAX  12u
#define FAILED_MAX 8u
#define LOG_QUOTE  300
#define LIVE_MAX   16u
#define STOP_MAX   24 /* "stop it, please"; a longer text says something else */
#define FOLLOWS    "Its result follows"
#define LABEL      "(offline model) "

struct talk {
	struct offline_body *b;
	struct draft *draft;
	struct buf out;          /* what she says */
	char run[24];            /* that the runtime spoke of last; "": of none */
	bool waits;              /* a proposal has no answer yet */
	char live[LIVE_MAX][24]; /* began in this conversation and have not ended */
	unsigned nlive;
};

/* ---- what the conversation says */

/* "S-7f3a2b" in the text; false: none. */
static bool talk_run_id(const char *text, char out[24])
{
	const char *at = strstr(text, "S-");
	size_t n = at ? strspn(at + 2, "0123456789abcdef") : 0;

	if (n < 6 || n > 20)
		return false;
	snprintf(out, 24, "%.*s", (int)(n + 2), at);
	return true;
}

/* The next line of *text as a copy in the body's memory; NULL: no more, or no memory. */
static char *talk_line(struct talk *t, const char **text)
{
	size_t len = strcspn(*text, "\n");
	char *line = **text ? arena_copy(&t->b->mem, *text, len) : NULL;

	if (**text && !line)
		t->draft->rv = AVA_ENOMEM;
	*text += len + ((*text)[len] == '\n');
	return line;
}

static bool talk_is_notice(const char *line)
{
	return strncmp(line, "[ava] ", 6) == 0;
}

/* A run begins with the yes to its proposal, and ends with its result. */
static void talk_live(struct talk *t, const char *line)
{
	char id[24];
	unsigned i = 0;

	if (!talk_run_id(line, id))
		return;
	while (i < t->nlive && strcmp(t->live[i], id) != 0)
		i++;
	if (strstr(line, "has started") && i == t->nlive && i < LIVE_MAX)
		memcpy(t->live[t->nlive++], id, sizeof(id));
	else if (strstr(line, " has ended") && i < t->nlive)
		memmove(t->live[i], t->live[i + 1], sizeof(id) * (--t->nlive - i));
}

/* Which run was spoken of last, which are at work, and whether a proposal waits. */
static void talk_read(struct talk *t)
{
	const json_t *message, *block;
	size_t i, k;
	char *line;

	json_array_foreach(json_object_get(t->b->root, "messages"), i, message)
		json_array_foreach(json_object_get(message, "content"), k, block)
	{
		const char *text = json_str(block, "text");

		/* The result of spawn_subagent (ava/talk_tools.c). */
		if (strstr(json_str(block, "content"), "\"waits for the person\""))
			t->waits = true;
		if (strcmp(json_str(message, "role"), "user") != 0)
			continue;
		while ((line = talk_line(t, &text))) {
			if (!talk_is_notice(line))
				continue;
			talk_run_id(line, t->run);
			talk_live(t, line);
			if (strstr(line, "confirmed P-") || strstr(line, "was rejected") ||
			    strstr(line, "has expired"))
				t->waits = false;
		}
	}
}

/* ---- what the person says */

static const char *const work_words[] = {
	"research",   "review",   "extract", "find ",  "look for",  "look up",     "search",
	"investig",   "compare",  "analy",   "audit",  "where is",  "where are",   "where do",
	"which file", "list all", "collect", "summar", "check the", "explain how", NULL,
};
/* How questions begin that files may answer; those to her say "you". */
static const char *const question_words[] = {
	"which ",   "where ",    "who calls",     "who uses",     "why does ",    "why is ",
	"why are ", "how does ", "how do ",       "how is ",      "how are ",     "what does ",
	"what do ", "what uses", "what calls",    "what happens", "what decides", "what defines",
	"show me ", "explain ",  "tell me about", "tell me how",  NULL,
};
static const char *const answer_words[] = {
	"yes", "yep", "yeah", "no", "nope", "ok", "okay", "sure", "go ahead", "proceed", NULL,
};
static const char *const status_words[] = {
	"how is it going",
	"how's it going",
	"status",
	"progress",
	"how far",
	"are you done",
	"is it done",
	"still working",
	"finished?",
	"what is it doing",
	"what are they doing",
	"how long",
	"is anything running",
	"is something running",
	"what is running",
	"what's running",
	"what runs",
	"list my subagents",
	"list subagents",
	"list the subagents",
	NULL,
};
static const char *const log_words[] = {
	"why did it",
	"why did s-",
	"why did the run",
	"why did the subagent",
	"what did it do",
	"what did s-",
	"what did the run",
	"what did the subagent",
	"what went wrong",
	"what happened to it",
	"what happened to s-",
	"log of s-",
	NULL,
};
static const char *const stop_words[] = {"cancel", "stop", "abort", "kill", NULL};
static const char *const steer_words[] = {"tell it ", "tell them ", "ask it ", "make it ", NULL};

/* Small talk, by how it begins. Each is answered shortly, and as it is. */
static const struct {
	const char *const words[8];
	const char *say;
	bool firm; /* whatever follows */
} small_talk[] = {
	{{"hello", "hi", "hey", "good morning", "good evening", "good afternoon", NULL},
	 LABEL "Hello. I can propose a subagent that finds, reviews or sums up something in your "
	       "files. What shall it be?"},
	{{"thanks", "thank you", "thx", "great", "nice", "well done", NULL}, "You're welcome."},
	{{"bye", "goodbye", "good night", NULL},
	 "Bye. What is at work goes on; `ava -c` tells you what came of it."},
	{{"how much did", "how much have", "what did it cost", "what has it cost", NULL},
	 "`/cost` shows what this conversation has cost, `ava status` what today did. The offline "
	 "model itself costs nothing."},
	{{"remind me", "wake me", "every day", "tomorrow", NULL},
	 "I can't do things later: what I start begins at once.",
	 true},
};
static const char *const web_words[] = {
	"http://",      "https://", "the web for", "on the web", "search the web",
	"the internet", "google ",  "weather",     NULL,
};

static bool talk_has(const char *text, const char *const *words)
{
	while (*words && !strcasestr(text, *words))
		words++;
	return *words != NULL;
}

static bool talk_begins(const char *text, const char *const *words)
{
	for (; *words; words++) {
		size_t n = strlen(*words);

		if (strncasecmp(text, *words, n) == 0 &&
		    ((*words)[n - 1] == ' ' || !isalnum((unsigned char)text[n])))
			return true;
	}
	return false;
}

/* Four words or more, and not to her. */
static bool talk_is_question(const char *words)
{
	unsigned n = 0;

	for (const char *at = words; *at; at++)
		n += isalnum((unsigned char)*at) && (at == words || at[-1] == ' ');
	return n > 3 && talk_begins(words, question_words) && !strcasestr(words, " you");
}

static void talk_spawn(struct talk *t, const char *task)
{
	const char *role = classify_role(task, strlen(task));
	const json_t *roles = json_object_get(
		json_object_get(offline_tool(t->b, "spawn_subagent"), "role"), "enum");
	const json_t *v;
	bool offered = false;
	struct jw *w;
	size_t i;

	json_array_foreach(roles, i, v) offered |= strcmp(json_string_value(v), role) == 0;
	w = draft_call(t->draft, "spawn_subagent");
	jw_str(w, "role", offered ? role : "researcher");
	jw_str(w, "task", task);
	draft_call_end(t->draft);
}

/* The run that is meant where none is named: the only one at work. false: she asks. */
static bool talk_meant(struct talk *t, char id[24])
{
	if (id[0] || t->nlive == 1) {
		if (!id[0])
			memcpy(id, t->live[0], 24);
		return true;
	}
	buf_adds(&t->out, t->nlive == 0 ? "No subagent is at work in this conversation."
					: "Several are at work. Which one do you mean:");
	for (unsigned i = 0; i < t->nlive; i++)
		buf_addf(&t->out, "%s %s", i ? "," : "", t->live[i]);
	buf_adds(&t->out, t->nlive ? "?" : "");
	return false;
}

/* "tell it to look at src only" */
static void talk_steer(struct talk *t, const char *words, const char *id)
{
	struct jw *w = draft_call(t->draft, "steer_subagent");

	jw_str(w, "subagent_id", id);
	jw_str(w, "message", words);
	draft_call_end(t->draft);
}

static const char *talk_small(const char *words)
{
	bool work = talk_has(words, work_words);

	for (size_t i = 0; i < ARRAY_LEN(small_talk); i++)
		if (talk_begins(words, small_talk[i].words) && (small_talk[i].firm || !work))
			return small_talk[i].say;
	return NULL;
}

/* One call with a run's id, or without one. */
static void talk_call(struct talk *t, const char *name, const char *id)
{
	struct jw *w = draft_call(t->draft, name);

	if (id && *id)
		jw_str(w, "subagent_id", id);
	draft_call_end(t->draft);
}

static void talk_words(struct talk *t, const char *words)
{
	const char *small = talk_small(words);
	char id[24] = "";

	talk_run_id(words, id);
	if (talk_has(words, stop_words) &&
	    (id[0] || (strlen(words) < STOP_MAX && talk_begins(words, stop_words)))) {
		if (talk_meant(t, id))
			talk_call(t, "cancel_subagent", id);
	} else if (talk_begins(words, steer_words)) {
		if (talk_meant(t, id))
			talk_steer(t, words, id);
	} else if (talk_has(words, log_words))
		talk_call(t, "read_ava_logs", id[0] ? id : t->run);
	else if (talk_has(words, status_words))
		talk_call(t, id[0] ? "subagent_status" : "list_subagents", id);
	else if (small)
		buf_adds(&t->out, small);
	else if (talk_has(words, web_words))
		buf_adds(&t->out,
			 "I have no web here, only your files. What shall be looked for in "
			 "them?");
	else if (talk_has(words, work_words) || talk_is_question(words))
		talk_spawn(t, words);
	else if (t->waits)
		buf_adds(&t->out, "The proposal still waits for your answer: yes starts it, no "
				  "drops it, or say what shall be different.");
	else if (talk_begins(words, question_words) || strchr(words, '?'))
		buf_adds(&t->out,
			 LABEL "I don't know that: I answer from your files only, and from "
			       "what subagents found in them.");
	else if (talk_begins(words, answer_words))
		buf_adds(&t->out, "Nothing waits for your answer. What shall be looked for?");
	else
		buf_adds(&t->out,
			 LABEL "I can propose a subagent to research, review, extract or find "
			       "something in your files, tell how running ones are getting on, and "
			       "report what they found. What shall be looked for? For a "
			       "conversation configure a model: `ava doctor` says how.");
}

/* ---- what the runtime tells */

/* Summary, citations and caveats are paragraphs of their own: as Markdown they
 * would run into each other without the empty lines. */
static void tell_citation(struct buf *out, const json_t *citation)
{
	const char *path = json_get_str(citation, "path"), *url = json_get_str(citation, "url");
	const char *quote = json_get_str(citation, "quote");

	if (path)
		buf_addf(out, "\n- %s:%lld", path, (long long)json_get_int(citation, "line", 0));
	else if (url)
		buf_addf(out, "\n- %s", url);
	else
		return;
	if (quote && *quote)
		buf_addf(out, " `%.*s`", (int)utf8_prefix(quote, strlen(quote), QUOTE_MAX), quote);
}

static void tell_citations(struct buf *out, const json_t *citations)
{
	const json_t *v;
	size_t i;

	if (json_array_size(citations) > 0)
		buf_addc(out, '\n');
	json_array_foreach(citations, i, v)
	{
		if (i < CITES_MAX)
			tell_citation(out, v);
	}
	if (json_array_size(citations) > CITES_MAX)
		buf_addf(out, "\n- and %zu more", json_array_size(citations) - CITES_MAX);
}

static void tell_caveats(struct buf *out, const json_t *caveats)
{
	bool many = json_array_size(caveats) > 1;
	const json_t *v;
	size_t i;

	if (many)
		buf_adds(out, "\n\nCaveats:\n");
	json_array_foreach(caveats, i, v)
	{
		if (json_is_string(v))
			buf_addf(out, many ? "\n- %s" : "\n\nCaveat: %s", json_string_value(v));
	}
}

/* The summary without its list of places: the citations are that list. */
static void tell_summary(struct buf *out, const char *summary, bool cited)
{
	const char *list = cited ? strstr(summary, "\nRelated:\n") : NULL, *end;

	if (cited && !list)
		list = strstr(summary, "\nThen:\n");
	if (!list) {
		buf_adds(out, summary);
		return;
	}
	buf_add(out, summary, (size_t)(list - summary));
	end = strchr(list + 1, '\n');
	while (end && end[1] == '-' && end[2] == ' ')
		end = strchr(end + 1, '\n');
	buf_adds(out, end ? end : "");
}

static void tell_result(struct buf *out, const char *line)
{
	json_t *r = json_parse(line, strlen(line), NULL);
	const char *id = json_get_str(r, "subagent_id"), *status = json_get_str(r, "status");
	const json_t *citations = json_object_get(r, "citations");

	if (out->len)
		buf_adds(out, "\n\n");
	if (id && status) {
		buf_addf(out, "%s has ended (%s). ", id, status);
		tell_summary(out, json_str(r, "summary"), json_array_size(citations) > 0);
		tell_citations(out, citations);
		tell_caveats(out, json_object_get(r, "caveats"));
	} else {
		buf_adds(out, "A subagent has ended; `ava result` shows what it found.");
	}
	json_decref(r);
}

/* One notice line to one sentence for the person. */
static void tell_notice(struct buf *out, const char *line)
{
	static const struct {
		const char *word, *say;
	} told[] = {
		/* That it started, or did not, the runtime has said. */
		{"confirmed", "I'll tell you what is found; ask me anything meanwhile."},
		{"rejected", "All right."},
		{"has expired", "That proposal has expired; say it again if you still want it."},
		{"new quote", "Here is a new quote."},
		{"words name none",
		 "Several proposals wait for your answer. Which one do you mean?"},
		{"could not be carried out", "Your answer could not be carried out."},
		{"The person's answer went to", "I have passed that on."},
		{"Nothing was done: ",
		 "Something waits for your answer, and I am not sure that you "
		 "mean it. Name it: \"yes, S-...\" or \"no, S-...\"."},
		{"stopped your last turn", ""},
		{"last turn failed", ""},
	};

	for (size_t i = 0; i < ARRAY_LEN(told); i++) {
		if (!strstr(line, told[i].word))
			continue;
		if (told[i].say[0] && !(out->len && strstr(out->data, told[i].say)))
			buf_addf(out, "%s%s", out->len ? " " : "", told[i].say);
		return;
	}
}

/* What the notices say; then, or else, what the person said. */
static void talk_newest(struct talk *t)
{
	const char *text = t->b->newest;
	bool result = false, inside = false; /* the next line is one; within its envelope */
	struct buf words;
	char *line;

	buf_init(&words, TEXT_MAX);
	while ((line = talk_line(t, &text))) {
		if (result)
			tell_result(&t->out, line);
		else if (talk_is_notice(line) && !strstr(line, FOLLOWS))
			tell_notice(&t->out, line);
		else if (!talk_is_notice(line) && !inside)
			buf_addf(&words, "%s%s", words.len ? "\n" : "", line);
		result = !result && talk_is_notice(line) && strstr(line, FOLLOWS);
		if (talk_is_notice(line))
			inside = result;
	}
	while (words.len > 0 && isspace((unsigned char)words.data[words.len - 1]))
		words.data[--words.len] = 0;
	if (buf_check(&words) != 0)
		t->draft->rv = buf_check(&words);
	else if (t->out.len == 0)
		talk_words(t, words.data ? words.data : "");
	buf_fini(&words);
}

/* ---- what a log says: how the run ended, which tools it called, what failed */

struct told {
	struct {
		char name[64];
		unsigned n;
	} tools[TOOLS_MAX];
	unsigned ntools, nfailed, events, answers; /* answers: of the model */
	struct buf end, failed;                    /* sentences */
};

static void log_quote(struct buf *out, const char *before, const char *s)
{
	size_t len = strlen(s), keep = utf8_prefix(s, len, LOG_QUOTE);

	if (len > 0)
		buf_addf(out, "%s%.*s%s", before, (int)keep, s, keep < len ? "…" : "");
}

static void log_failed(struct told *t, const char *what, const char *why, const char *text)
{
	if (t->nfailed++ >= FAILED_MAX)
		return;
	log_quote(&t->failed, "\n- ", what);
	log_quote(&t->failed, " ", why);
	log_quote(&t->failed, ": ", text);
}

static void log_event(struct told *t, const char *type, const json_t *c)
{
	const char *name = json_str(c, "name"), *status = json_str(c, "status");
	unsigned i = 0;

	t->events++;
	if (strcmp(type, "ToolCall") == 0) {
		while (i < t->ntools && strncmp(t->tools[i].name, name, 63) != 0)
			i++;
		if (i < TOOLS_MAX) {
			snprintf(t->tools[i].name, sizeof(t->tools[i].name), "%s", name);
			t->tools[i].n++;
			t->ntools = MAX(t->ntools, i + 1);
		}
	} else if (strcmp(type, "ToolResult") == 0 && !json_get_bool(c, "success", true)) {
		log_failed(t, name, json_str(c, "errorClass"), json_str(c, "output"));
	} else if (strcmp(type, "Error") == 0) {
		log_failed(t, "Error", json_str(c, "class"), json_str(c, "message"));
	} else if (strcmp(type, "Exhausted") == 0) {
		log_failed(t, "a limit was reached", json_str(c, "resource"), "");
	} else if (strcmp(type, "InferEnd") == 0) {
		t->answers++;
	} else if (strcmp(type, "SubagentComplete") == 0) {
		buf_addf(&t->end, "%s%s ended: %s", t->end.len ? "\n" : "",
			 json_str(c, "subagentId"), status);
		if (strcmp(json_str(c, "stopReason"), status) != 0)
			log_quote(&t->end, ", ", json_str(c, "stopReason"));
		log_quote(&t->end, ". ", json_str(c, "summary"));
	}
}

/* "TIME AGENT TYPE {…} {…}", as read_ava_logs writes it: what stands in an event and
 * imitates a notice has a backslash, which no JSON has. */
static void log_line(struct told *t, char *line)
{
	char type[40];
	json_t *content;
	int at = 0;

	if (sscanf(line, "%*24[0-9TZ.:-] %*23s %39[A-Za-z] %n", type, &at) != 1 || at <= 0 ||
	    line[at] != '{')
		return;
	line += at;
	for (char *odd = line; (odd = strstr(odd, "[\\ava]"));)
		memmove(odd + 1, odd + 2, strlen(odd + 1));
	content = json_loads(line, JSON_DISABLE_EOF_CHECK, NULL);
	if (content)
		log_event(t, type, content);
	json_decref(content);
}

static void talk_log(struct talk *t, const char *text)
{
	struct buf *out = &t->out;
	struct told told = {0};
	char *line;

	buf_init(&told.end, TEXT_MAX);
	buf_init(&told.failed, TEXT_MAX);
	while ((line = talk_line(t, &text)))
		log_line(&told, line);
	if (told.end.len)
		buf_adds(out, told.end.data);
	else if (told.events)
		buf_addf(out, "Nothing has ended in these %u events.", told.events);
	else
		buf_adds(out, "There is no such event.");
	for (unsigned i = 0; i < told.ntools; i++)
		buf_addf(out, "%s%s (%u)", i ? ", " : "\n\nIt called ", told.tools[i].name,
			 told.tools[i].n);
	if (told.ntools)
		buf_addf(out, "; its model answered %u time%s.", told.answers,
			 told.answers == 1 ? "" : "s");
	if (told.failed.len)
		buf_addf(out, "\nWhat went wrong:%s", told.failed.data);
	else if (told.events)
		buf_adds(out, "\nNo failure stands in it.");
	if (told.nfailed > FAILED_MAX)
		buf_addf(out, "\n- and %u more", told.nfailed - FAILED_MAX);
	if (buf_check(&told.end) != 0 || buf_check(&told.failed) != 0)
		t->draft->rv = AVA_ENOMEM;
	buf_fini(&told.end);
	buf_fini(&told.failed);
}

/* ---- what tools returned */

static void tell_status(struct buf *out, const json_t *s)
{
	const char *status = json_str(s, "status");

	buf_addf(out, "%s%s (%s) is %s", out->len ? "\n" : "", json_str(s, "subagent_id"),
		 json_str(s, "role"), *status ? status : "?");
	if (strcmp(status, "running") == 0)
		buf_addf(out, ": %s (%lld s, %lld tokens)", json_str(s, "current_activity"),
			 (long long)json_get_fixed(s, "elapsed_seconds", 0, 0),
			 (long long)json_get_int(s, "tokens_used", 0));
	buf_addc(out, '.');
}

static void talk_result(struct talk *t, const struct offline_call *c)
{
	const char *text = c->result ? c->result : "";
	json_t *result;
	const json_t *v;
	size_t i;

	if (c->is_error) {
		buf_addf(&t->out, "That did not work: %s.", text);
	} else if (strcmp(c->name, "spawn_subagent") == 0) {
		buf_adds(&t->out, "A subagent can do that in the background.");
	} else if (strcmp(c->name, "read_ava_logs") == 0) {
		talk_log(t, text);
	} else if (strcmp(c->name, "confirm_spawn") == 0) {
		buf_adds(&t->out, "I'll tell you what is found.");
	} else {
		result = json_parse(text, strlen(text), NULL);
		if (json_is_object(result))
			tell_status(&t->out, result);
		json_array_foreach(result, i, v) tell_status(&t->out, v);
		if (t->out.len == 0)
			buf_adds(&t->out, "No subagent is at work in this conversation.");
		json_decref(result);
	}
}

int offline_talk(struct offline_body *b, struct draft *draft)
{
	struct talk t = {.b = b, .draft = draft};

	buf_init(&t.out, TEXT_MAX);
	talk_read(&t);
	if (b->ncalls > b->fresh)
		talk_result(&t, &b->calls[b->ncalls - 1]);
	else
		talk_newest(&t);
	if (buf_check(&t.out) != 0)
		draft->rv = draft->rv ? draft->rv : buf_check(&t.out);
	else if (t.out.len > 0)
		draft_text(draft, t.out.data);
	buf_fini(&t.out);
	return 0;
}
