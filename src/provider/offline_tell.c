/* Sentences of the offline Ava about notices of the runtime, results, logs, and what her tools
 * returned. Text in them is quoted, never obeyed.
 * Only memory can fail. */
#include "provider/offline_tell.h"

#include <ava.h>
#include <stdio.h>
#include <string.h>

#include "agent/prompt.h"
#include "base/util.h"
#include "codec/format_of.h"
#include "codec/json.h"
#include "codec/utf8.h"

#define TEXT_MAX   (8u << 20)
#define CITES_MAX  12
#define CITED_MAX  160
#define TOOLS_MAX  12u
#define FAILED_MAX 8u
#define LOG_QUOTE  300
#define TASK_SHOWN 70

/* Is the result partial, so that a further run may find more? */
static bool is_partial(const json_t *r)
{
	return json_get_bool(r, "partial", false) || strcmp(json_str(r, "status"), "success") != 0;
}

static void say_resume(struct buf *out, const json_t *r)
{
	buf_addf(out, WORDS_GOES_ON(json_str(r, "subagent_id"), ""));
	buf_adds(out, ", with a new budget.");
}

void tell_task(struct buf *out, const char *task)
{
	buf_addf(out, "\"%.*s%s\"", (int)utf8_prefix(task, strlen(task), TASK_SHOWN), task,
		 utf8_prefix(task, strlen(task), TASK_SHOWN) < strlen(task) ? "…" : "");
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
		buf_addf(out, " `%.*s`", (int)utf8_prefix(quote, strlen(quote), CITED_MAX), quote);
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

/* Add the caveats of a result. */
static void tell_caveats(struct buf *out, const json_t *r)
{
	const json_t *list = json_object_get(r, "caveats"), *v;
	bool unverified = json_get_bool(r, "unverified", false);
	bool partial = json_get_bool(r, "partial", false) || words_limit(json_str(r, "status"));
	int64_t all, failed = format_not_found(r, &all);
	bool many = json_array_size(list) + (failed > 0) + unverified + partial > 1;
	const char *one = many ? "\n- " : "\n\nCaveat: ";
	size_t i;

	if (many)
		buf_adds(out, "\n\n" WORDS_CAVEATS ":\n");
	json_array_foreach(list, i, v) if (json_is_string(v))
		buf_addf(out, "%s%s", one, json_string_value(v));
	if (failed > 0) {
		buf_adds(out, one);
		buf_addf(out, WORDS_NOT_FOUND_OF(failed, all));
	}
	if (unverified)
		buf_addf(out, "%s" WORDS_UNVERIFIED, one);
	if (partial)
		buf_addf(out, "%s" WORDS_PARTIAL, one);
}

/* Add confidence and cost. */
static void tell_sure(struct buf *out, const json_t *r)
{
	double confidence = json_number_value(json_object_get(r, "confidence"));

	if (strcmp(json_str(r, "status"), "success") != 0)
		return;
	buf_adds(out, "\n\n");
	if (confidence > 0) /* 0 says that nothing was found, as the summary does */
		buf_addf(out, "Confidence %.2f. ", confidence);
	buf_addf(out, "%s%s.", json_is_number(json_object_get(r, "cost_cents")) ? "Cost " : "",
		 format_cost_of(r, "cost_cents").text);
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

/* Tell summary, citations and caveats; the runtime itself tells how the run ended and what can be
 * done next. */
void tell_result(struct buf *out, const char *line)
{
	json_t *r = json_parse(line, strlen(line), NULL);
	const json_t *citations = json_object_get(r, "citations");
	const char *summary = json_str(r, "summary"), *id = json_str(r, "subagent_id");
	/* The summary is the runtime's own, or a cancelled run's last words. */
	bool own = strncmp(summary, WORDS_STOPPED_AT, sizeof(WORDS_STOPPED_AT) - 1) == 0 ||
		   (strcmp(json_str(r, "status"), "cancelled") == 0 &&
		    json_array_size(citations) == 0);

	if (out->len)
		buf_adds(out, "\n\n");
	if (!*id || !json_get_str(r, "status")) {
		buf_adds(out, "A subagent has ended; `ava result` shows what it found.");
	} else if (own) {
		buf_addf(out, "%s has found nothing yet that it could hand in.", id);
	} else {
		buf_addf(out, "From %s%s: ", id,
			 strcmp(json_str(r, "status"), ava_status_name(AVA_NO_RESULT)) == 0
				 ? ", without a result"
			 : is_partial(r) ? ", partial"
					 : "");
		tell_summary(out, summary, json_array_size(citations) > 0);
		tell_citations(out, citations);
		tell_sure(out, r);
		tell_caveats(out, r);
	}
	json_decref(r);
}

/* One notice line to one sentence for the person. */
void tell_notice(struct buf *out, const char *line)
{
	const char *list = strstr(line, NOTICE_WAIT), *why = strstr(line, NOTICE_FAILED);
	const char *at_work = strstr(line, NOTICE_AT_WORK);
	static const struct {
		const char *word, *say;
	} told[] = {
		/* The runtime itself tells whether the run started. */
		{"confirmed", "I'll tell you what is found; ask me anything meanwhile."},
		{"rejected", "All right."},
		{"has expired", "That proposal has expired; say it again if you still want it."},
		{"new quote", "Here is a new quote."},
		{"The person's answer went to", "I have passed that on."},
		{"stopped your last turn", ""},
		{"last turn failed", ""},
	};

	if (at_work) {
		buf_addf(out, "%s%.*s. %s", out->len ? " " : "", (int)(at_work - line - 6),
			 line + 6,
			 strstr(at_work, "which") ? "Which one shall I stop?" : TELL_SHALL_STOP);
		return;
	}
	if (strstr(line, NOTICE_UNDONE)) {
		const char *how = strstr(line, "\"yes, ");

		buf_addf(out, "I am not sure which one you mean. %s",
			 how ? how : "Name it, please.");
		return;
	}
	if (list) {
		buf_addf(out, "Which one do you mean? %s Say its number, all or none.",
			 list + strlen(NOTICE_WAIT));
		return;
	}
	if (why) {
		why += strlen(NOTICE_FAILED);
		buf_addf(out, "That cannot be done: %s%s", why,
			 *why && strchr(".?!", why[strlen(why) - 1]) ? "" : ".");
		return;
	}
	for (size_t i = 0; i < ARRAY_LEN(told); i++) {
		if (!strstr(line, told[i].word))
			continue;
		if (told[i].say[0] && !(out->len && strstr(out->data, told[i].say)))
			buf_addf(out, "%s%s", out->len ? " " : "", told[i].say);
		return;
	}
}

/* ---- rights and doings of runs */

static bool tool_is_in(const char *const names[], size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

void tell_reach(struct buf *out, const json_t *tools)
{
	static const char *const reads[] = {"read_file",       "search_codebase", "list_files",
					    "search_and_read", "read_result",     "ask_person",
					    "submit_result",   "memory_search"};
	static const char *const commands[] = {"run_bash", "python_exec"};
	const char *name, *more = NULL;
	bool runs = false;
	const json_t *v;
	size_t i;

	if (!tools) {
		buf_adds(out,
			 "I do not know what it may use; `ava trace` shows what it has called.");
		return;
	}

	json_array_foreach(tools, i, v)
	{
		name = json_string_value(v);
		if (tool_is_in(commands, ARRAY_LEN(commands), name))
			runs = true;
		else if (!tool_is_in(reads, ARRAY_LEN(reads), name)) {
			buf_addf(out, "%s%s", more ? ", " : "Besides reading files it may use ",
				 name);
			more = name;
		}
	}
	if (more)
		buf_addf(out, ": \"without %s\" leaves that out.", more);
	else
		buf_adds(out, "It only reads files in this folder, and changes nothing.");
	if (runs)
		buf_adds(out, " Commands it runs are kept in a sandbox: no network, and your files "
			      "cannot be changed.");
}

void tell_run(struct buf *out, const json_t *run, enum topic topic)
{
	const json_t *limits = json_object_get(run, "limits"),
		     *asks = json_object_get(run, "waiting_for");
	struct format time = format_time_of(run, "elapsed_seconds");
	const char *activity = json_str(run, "current_activity");

	buf_addf(out, "%s%s (%s)", out->len ? "\n" : "", json_str(run, "subagent_id"),
		 format_role(json_str(run, "role")).text);
	switch (topic) {
	case ABOUT_COST:
		buf_addf(out, ": %s so far, and is stopped at %s",
			 format_cost_of(run, "cost_cents").text,
			 format_limit_of(limits, "max_cost_cents").text);
		break;
	case ABOUT_TIME:
		buf_addf(out,
			 " has worked for %s; how long it takes is not known, it is stopped after "
			 "%s",
			 time.text, format_limit_of(limits, "timeout").text);
		break;
	case ABOUT_MODEL:
		buf_addf(out, " uses the model %s", json_str(run, "model"));
		break;
	case ABOUT_LIMIT:
		buf_addf(out,
			 " keeps the limits it was started with (%s, %s); stop it and ask again "
			 "with the limit you want",
			 format_limit_of(limits, "max_cost_cents").text,
			 format_limit_of(limits, "timeout").text);
		break;
	default:
		if (asks) {
			buf_addf(out, " waits for you: “%s”", json_str(asks, "question"));
			break;
		}
		buf_addf(out, " is %s%s%s (%s, %s tokens). Its task: ",
			 words_status(json_str(run, "status")), *activity ? ": " : "", activity,
			 time.text, format_tokens_of(run, "tokens_used").text);
		tell_task(out, json_str(run, "task"));
	}
	buf_adds(out, ".");
}

/* ---- of quotes */

static void say_tools(struct buf *out, const json_t *tools)
{
	const json_t *v;
	size_t i;

	json_array_foreach(tools, i, v) buf_addf(out, "%s%s", i ? ", " : "", json_string_value(v));
}

void tell_tasks(struct buf *out, const struct tell_quote *q)
{
	tell_task(out, q->task);
	for (size_t k = 1; q->nruns > 1 && k < q->nruns; k++) {
		buf_adds(out, ", ");
		tell_task(out, json_str(json_array_get(q->runs, k), "task"));
	}
}

void tell_quote(struct buf *out, const struct tell_quote *q, enum topic topic)
{
	const json_t *quote = q->quote, *minutes = json_object_get(quote, "minutes");
	double cents = json_number_value(json_object_get(quote, "costCents"));

	switch (topic) {
	case ABOUT_COST:
	case ABOUT_DOUBT:
		if (cents > 0) {
			buf_addf(out,
				 "It costs " WORDS_AT_MOST "%s; \"max 5 cents\" makes that less.",
				 format_most_of(quote, "costCents").text);
		} else {
			buf_adds(out, "It costs nothing: the offline model is free.");
		}
		break;
	case ABOUT_TIME:
		buf_addf(out, "%s; it is stopped at its limit.",
			 words_minutes((int)json_integer_value(json_array_get(minutes, 0)),
				       (int)json_integer_value(json_array_get(minutes, 1)))
				 .text);
		break;
	case ABOUT_MODEL:
		buf_addf(out, "A subagent of the role %s would do it, with the model %s.", q->role,
			 json_str(quote, "model"));
		break;
	case ABOUT_TOOLS:
		buf_adds(out, "It would use ");
		say_tools(out, json_object_get(quote, "tools"));
		buf_adds(out, ". \"Without search_and_read\", for instance, leaves one out.");
		break;
	case ABOUT_RIGHTS:
		tell_reach(out, json_object_get(quote, "tools"));
		break;
	case ABOUT_WHY:
		if (q->nruns > 1)
			buf_addf(out,
				 "Because you asked for %u tasks that need not wait for each "
				 "other: ",
				 q->nruns);
		else
			buf_addf(out,
				 "Because that takes more than one look: a subagent searches and "
				 "reads files until it can answer. The task: ");
		tell_tasks(out, q);
		buf_adds(out, ".");
		break;
	default:
		buf_adds(out, q->nruns > 1
				      ? "With a yes several subagents start in the background, for "
				      : "With a yes a subagent starts in the background, for the "
					"task ");
		tell_tasks(out, q);
		buf_adds(out, q->nruns > 1
				      ? ": they search and read files here and tell what was found."
				      : ": it searches and reads files here and tells what was "
					"found.");
	}
}

/* ---- small talk, and what cannot be done */

void tell_small(struct buf *out, enum topic topic)
{
	static const struct {
		enum topic topic;
		const char *say;
	} says[] = {
		{ABOUT_WEB,
		 "I have no web and no internet here, only your files. What shall be looked "
		 "for in them?"},
		{ABOUT_LATER,
		 "I can't remind you or do things later: what I start begins at once."},
		{ABOUT_CLOCK, "I have no clock: I answer from the files here."},
		{ABOUT_MEMORY,
		 "Of earlier conversations I know what you asked me to remember: \"what do you "
		 "know about me?\" tells it. `ava sessions` lists them, and `ava chat -c ID` "
		 "goes on with one."},
		{ABOUT_SENDING,
		 "I can't send or order anything: I only read the files here. What shall be "
		 "looked for in them?"},
		{ABOUT_SHELL,
		 "I can't run commands, I have no shell: I only read the files here. I can "
		 "propose a review of them."},
		{ABOUT_WRITING,
		 "I can't change or write files, I only read them. I can propose a review "
		 "that says what should be changed."},
		{ABOUT_MATHS, TELL_LABEL "I don't calculate: I answer from your files only."},
		{ABOUT_BYE, "Bye. Ctrl-D leaves; `ava -c` goes on with this conversation."},
		{ABOUT_KEEPING, "It goes on."},
		{ABOUT_STOPPING, "It would end for good; what it has found so far would come as a "
				 "partial result. "},
		{ABOUT_HELP, TELL_LABEL
		 "I am Ava. I answer questions about the files here, and for more than a look I "
		 "propose a subagent to research, review, extract or find something: you see a "
		 "quote and decide. Ask me how they are getting on, stop them, or tell them "
		 "something. I have no web and no shell, and change nothing. For a conversation "
		 "configure a model: `ava doctor` says how."},
	};

	for (size_t i = 0; i < ARRAY_LEN(says); i++)
		if (says[i].topic == topic)
			buf_adds(out, says[i].say);
}

/* ---- ended runs, when the person asks about them */

static void offline_tell_say_files(struct buf *out, const json_t *r)
{
	const json_t *citations = json_object_get(r, "citations"), *c;
	const char *last = "";
	size_t i;

	buf_addf(out, "%s cites", json_str(r, "subagent_id"));
	json_array_foreach(citations, i, c)
	{
		const char *path = json_str(c, "path");

		if (*path && strcmp(path, last) != 0)
			buf_addf(out, "%s %s", *last ? "," : "", path);
		last = *path ? path : last;
	}
	buf_addf(out, "%s; `ava trace %s` shows every call.",
		 *last ? "" : " no file (.c, .h or other)", json_str(r, "subagent_id"));
}

void tell_about(struct buf *out, const char *result, enum topic topic)
{
	json_t *r = json_parse(result, strlen(result), NULL);
	const json_t *evidence = json_object_get(r, "evidence");
	const char *id = json_str(r, "subagent_id");

	switch (topic) {
	case ABOUT_RESUME:
		if (is_partial(r))
			say_resume(out, r);
		else
			buf_addf(out,
				 "%s has done its work; there is nothing to resume. Ask for what "
				 "is missing.",
				 id);
		break;
	case ABOUT_SURE:
		buf_addf(out,
			 "Its confidence is %.2f of 1. %lld of its citations were checked and "
			 "%lld failed. It matches words and does not understand them: look at "
			 "the places yourself.",
			 json_number_value(json_object_get(r, "confidence")),
			 (long long)json_get_int(evidence, "citations_checked", 0),
			 (long long)json_get_int(evidence, "citations_failed", 0));
		break;
	case ABOUT_FILES:
		offline_tell_say_files(out, r);
		break;
	case ABOUT_WHERE:
		buf_addf(out,
			 "`ava result %s` shows all of it, `ava logs %s` what was done for it.", id,
			 id);
		break;
	case ABOUT_COST:
		buf_addf(out, "%s: %s (%s tokens, model %s).", id,
			 format_cost_of(r, "cost_cents").text,
			 format_tokens_of(r, "tokens_used").text, json_str(r, "model"));
		break;
	case ABOUT_TIME:
		buf_addf(out, "%s took %s.", id, format_time_of(r, "duration_seconds").text);
		break;
	case ABOUT_MODEL:
		buf_addf(out, "It used the model %s.", json_str(r, "model"));
		break;
	case ABOUT_STATUS:
		buf_adds(out, WORDS_NONE_AT_WORK " ");
		buf_addf(out, WORDS_HAS_ENDED(id, words_status(json_str(r, "status"))));
		buf_adds(out, ". ");
		if (is_partial(r))
			say_resume(out, r);
		else
			buf_adds(out, "\"Show me the result\" tells it again.");
		break;
	case ABOUT_WHY:
		if (json_array_size(json_object_get(r, "citations")) == 0) {
			buf_addf(out, "It cites no place; `ava trace %s` shows what it did.", id);
			break;
		}
		buf_adds(out, "It found these places:");
		tell_citations(out, json_object_get(r, "citations"));
		break;
	default:
		tell_result(out, result);
		if (is_partial(r)) {
			buf_adds(out, "\n\n");
			say_resume(out, r);
		}
	}
	json_decref(r);
}

/* ---- what a log says: how the run ended, which tools it called, what failed */

struct offline_told {
	struct {
		char name[64];
		unsigned n;
	} tools[TOOLS_MAX];
	unsigned ntools, nfailed, events, answers; /* answers: turns of the model */
	bool stopped;                              /* a limit, a cancel or an error ended the run */
	struct buf end, failed;                    /* sentences about the end and about failures */
};

static void log_quote(struct buf *out, const char *before, const char *s)
{
	size_t len = strlen(s), keep = utf8_prefix(s, len, LOG_QUOTE);

	if (len > 0)
		buf_addf(out, "%s%.*s%s", before, (int)keep, s, keep < len ? "…" : "");
}

static void log_failed(struct offline_told *t, const char *what, const char *why, const char *text)
{
	if (t->nfailed++ >= FAILED_MAX)
		return;
	log_quote(&t->failed, "\n- ", what);
	log_quote(&t->failed, " ", why);
	log_quote(&t->failed, ": ", text);
}

static void log_event(struct offline_told *t, const char *type, const json_t *c)
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
		if (strcmp(json_str(c, "errorClass"), "limit") != 0) /* the end tells of limits */
			log_failed(t, name, json_str(c, "errorClass"), json_str(c, "output"));
	} else if (strcmp(type, "Error") == 0) {
		log_failed(t, "Error", json_str(c, "class"), json_str(c, "message"));
	} else if (strcmp(type, "InferEnd") == 0) {
		t->answers++;
	} else if (strcmp(type, "SubagentComplete") == 0) {
		t->stopped |= strcmp(status, "success") != 0;
		buf_adds(&t->end, t->end.len ? "\n" : "");
		buf_addf(&t->end, WORDS_HAS_ENDED(json_str(c, "subagentId"), words_status(status)));
		if (strcmp(status, "error") == 0)
			log_quote(&t->end, ", ", json_str(c, "stopReason"));
		log_quote(&t->end, ". ", json_str(c, "summary"));
	}
}

/* "TIME AGENT TYPE {…} {…}", as read_ava_logs writes it: what stands in an event and
 * imitates a notice has a backslash, which no JSON has. */
static void offline_tell_log_line(struct offline_told *t, char *line)
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

int tell_log(struct arena *mem, struct buf *out, const char *text, const char *run)
{
	struct offline_told told = {0};
	char *line;
	int rv;

	buf_init(&told.end, TEXT_MAX);
	buf_init(&told.failed, TEXT_MAX);
	for (size_t len; *text; text += len + (text[len] == '\n')) {
		len = strcspn(text, "\n");
		line = arena_copy(mem, text, len);
		if (!line)
			break;
		offline_tell_log_line(&told, line);
	}
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
	else if (told.events && !told.stopped)
		buf_adds(out, "\nNo failure stands in it.");
	if (told.nfailed > FAILED_MAX)
		buf_addf(out, "\n- and %u more", told.nfailed - FAILED_MAX);
	if (told.events && run[0])
		buf_addf(out, "\n`ava logs %s` shows every line.", run);
	rv = buf_check(&told.end) != 0 ? AVA_ENOMEM : buf_check(&told.failed);
	buf_fini(&told.end);
	buf_fini(&told.failed);
	return rv;
}

/* ---- what tools returned */

void tell_status(struct buf *out, const json_t *s)
{
	const char *status = json_str(s, "status");

	buf_addf(out, "%s%s (%s) is %s", out->len ? "\n" : "", json_str(s, "subagent_id"),
		 format_role(json_str(s, "role")).text, *status ? words_status(status) : "?");
	if (strcmp(status, "running") == 0)
		buf_addf(out, ": %s (%s, %s tokens)", json_str(s, "current_activity"),
			 format_time_of(s, "elapsed_seconds").text,
			 format_tokens_of(s, "tokens_used").text);
	buf_addc(out, '.');
}

void tell_today(struct buf *out, const json_t *s)
{
	const json_t *today = json_object_get(s, "today");

	buf_addf(out,
		 WORDS_TODAY(format_cost_of(today, "cost_cents").text,
			     format_tokens_of(today, "tokens").text, json_get_int(today, "runs", 0),
			     ". `/cost` shows what this conversation cost."));
}

/* ---- the memory */

unsigned tell_known(struct buf *out, const char *rows, char id[24])
{
	unsigned n = 0;

	for (size_t len; *rows; rows += len + (rows[len] == '\n')) {
		json_t *o;

		len = strcspn(rows, "\n");
		o = rows[0] == '{' ? json_parse(rows, len, NULL) : NULL;
		if (o) {
			buf_addf(out, "%s\n- %s (%s, %s)", n++ ? "" : "You told me:\n",
				 json_str(o, "text"), json_str(o, "id"), json_str(o, "since"));
			snprintf(id, 24, "%s", json_str(o, "id"));
		}
		json_decref(o);
	}
	if (n == 0)
		buf_adds(out, "I remember nothing about that. \"Remember that ...\" makes me.");
	return n;
}

void tell_noted(struct buf *out, const char *json)
{
	json_t *o = json_parse(json, strlen(json), NULL);
	const json_t *like = json_array_get(json_object_get(o, "similar"), 0);
	const char *outcome = json_str(o, "outcome");

	if (strcmp(outcome, "forgotten") == 0)
		buf_adds(out, "I have forgotten it.");
	else if (strcmp(outcome, "known already") == 0)
		buf_adds(out, "I know that already.");
	else
		buf_adds(out, "I'll remember that.");
	if (like)
		buf_addf(out, " You once said \"%s\": if that is no longer so, say \"forget %s\".",
			 json_str(like, "text"), json_str(like, "id"));
	json_decref(o);
}
