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

#include "agent/prompt.h"
#include "base/util.h"
#include "codec/format_of.h"
#include "provider/dialect.h"
#include "provider/offline.h"
#include "provider/offline_heard.h"
#include "provider/offline_look.h"
#include "provider/offline_tell.h"

#define TEXT_MAX   (8u << 20)
#define LIVE_MAX   16u
#define TASKS_MAX  20u
#define QUOTES_MAX 24u
#define TASK_PLAIN 300u /* bytes of a message; in a longer one limits stay in the task */

struct offline_talk_state {
	struct offline_body *b;
	struct offline_draft *draft;
	struct buf out; /* Ava's words */
	char run[24];   /* id of the run that the runtime spoke of last; "": none */
	struct tell_quote quotes[QUOTES_MAX];
	unsigned nquotes;
	char live[LIVE_MAX][24]; /* runs that began in this conversation and have not ended */
	unsigned nlive;
	bool asked;         /* one of `live` asked the person something, and may still wait */
	bool offered;       /* Ava's last words are TELL_SHALL_STOP */
	const char *result; /* the newest result, as JSON; NULL: none */
	json_t *kept;       /* owned: JSON that the quotes borrow from */
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
static char *talk_line(struct offline_talk_state *t, const char **text)
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

static unsigned talk_live_at(const struct offline_talk_state *t, const char *id)
{
	unsigned i = 0;

	while (i < t->nlive && strcmp(t->live[i], id) != 0)
		i++;
	return i;
}

/* A run begins with the yes to its proposal, or is known by its question; it ends with its
 * result. */
static void talk_live(struct offline_talk_state *t, const char *line)
{
	bool ended = strstr(line, " has ended") != NULL;
	char id[24];

	if (!ended && !strstr(line, "started") && !strstr(line, "waits for the person's yes") &&
	    !strstr(line, "asks the person"))
		return;
	t->asked |= strstr(line, "asks the person (call") != NULL;
	for (const char *at = line; (at = strstr(at, "S-")) && talk_run_id(at, id); at += 2) {
		unsigned i = talk_live_at(t, id);

		if (ended && i < t->nlive)
			memmove(t->live[i], t->live[i + 1], sizeof(id) * (--t->nlive - i));
		else if (!ended && i == t->nlive && i < LIVE_MAX)
			memcpy(t->live[t->nlive++], id, sizeof(id));
	}
}

/* The outcome of a proposal. A renewed quote keeps the task of the one before. */
static void talk_settled(struct offline_talk_state *t, const char *line)
{
	bool again = strstr(line, " is a new quote") != NULL;
	const char *at = strstr(line, "P-");
	struct tell_quote *last = NULL;

	if (!at || (!again && !strstr(line, "confirmed P-") && !strstr(line, "was rejected") &&
		    !strstr(line, "has expired")))
		return;
	for (unsigned i = 0; i < t->nquotes; i++) {
		struct tell_quote *q = &t->quotes[i];

		if (again ? q->open : strncmp(q->id, at, strlen(q->id)) == 0)
			last = q;
	}
	if (last && again)
		last->id = arena_copy(&t->b->mem, at, strcspn(at, " ,.:"));
	else if (last)
		last->open = false;
	if (last && !last->id)
		last->id = "";
}

static const json_t *talk_args(const struct offline_talk_state *t, const char *id)
{
	const json_t *message, *block;
	size_t i, k;

	json_array_foreach(json_object_get(t->b->root, "messages"), i, message)
		json_array_foreach(json_object_get(message, "content"), k,
				   block) if (strcmp(json_str(block, "type"), "tool_use") == 0 &&
					      strcmp(json_str(block, "id"), id) ==
						      0) return json_object_get(block, "input");
	return NULL;
}

/* Add the result of spawn_subagent or spawn_parallel (ava/talk_tools.c) as quotes. */
static void talk_proposed(struct offline_talk_state *t, const json_t *block)
{
	const char *text = json_str(block, "content");
	const json_t *args, *runs;
	json_t *o;
	struct tell_quote *q = &t->quotes[t->nquotes];

	if (!strstr(text, "\"waits for the person\"") || t->nquotes == QUOTES_MAX)
		return;
	o = json_parse(text, strlen(text), NULL);
	args = talk_args(t, json_str(block, "tool_use_id"));
	runs = json_object_get(args, "runs");
	*q = (struct tell_quote){
		.id = arena_fmt(&t->b->mem, "%s", json_str(o, "proposal_id")),
		.task = json_str(runs ? json_array_get(runs, 0) : args, "task"),
		.role = json_str(runs ? json_array_get(runs, 0) : args, "role"),
		.quote = json_object_get(o, "quote"),
		.runs = runs,
		.number = (unsigned)json_get_int(o, "number", 1),
		.nruns = runs ? (unsigned)json_array_size(runs) : 1,
		.open = true,
	};
	/* `o` is freed with the body. */
	if (o)
		json_array_append_new(t->kept, o);
	t->nquotes += q->id && q->quote;
}

static void talk_read_text(struct offline_talk_state *t, const char *text)
{
	char *line;

	while ((line = talk_line(t, &text))) {
		bool result = talk_is_notice(line) && strstr(line, NOTICE_RESULT);

		if (!talk_is_notice(line))
			continue;
		talk_run_id(line, t->run);
		talk_live(t, line);
		talk_settled(t, line);
		if (result && (line = talk_line(t, &text)))
			t->result = line;
	}
}

/* Read the conversation: the run spoken of last, runs at work, open quotes, the newest result. */
static void talk_read(struct offline_talk_state *t)
{
	const json_t *message, *block;
	size_t i, k;

	json_array_foreach(json_object_get(t->b->root, "messages"), i, message)
		json_array_foreach(json_object_get(message, "content"), k, block)
	{
		const char *text = json_str(block, "text");

		talk_proposed(t, block);
		if (strcmp(json_str(message, "role"), "user") == 0)
			talk_read_text(t, text);
		else if (*text)
			t->offered = find_ends(text, TELL_SHALL_STOP);
	}
}

static unsigned offline_talk_open(const struct offline_talk_state *t)
{
	unsigned n = 0;

	for (unsigned i = 0; i < t->nquotes; i++)
		n += t->quotes[i].open;
	return n;
}

static unsigned talk_has(const struct offline_talk_state *t)
{
	unsigned open = offline_talk_open(t);

	return (open ? HAS_QUOTE : 0) | (t->nlive ? HAS_RUN : 0) |
	       (t->result && !open && !t->nlive ? HAS_ENDED : 0);
}

/* ---- calls */

/* `why`: add a sentence on why the run is needed. */
static void talk_spawn_args(struct offline_talk_state *t, struct jw *w, const char *task,
			    const char *role, bool why)
{
	static const struct {
		const char *role, *why;
	} reasons[] = {
		{"researcher",
		 "one look does not answer it: files have to be searched and compared"},
		{"code_reviewer", "all of the code it is about has to be gone through"},
		{"data_extractor", "it has to be collected from several places"},
	};
	const json_t *roles = json_object_get(
		json_object_get(offline_tool(t->b, "spawn_subagent"), "role"), "enum");
	const json_t *v;
	bool offered = false;
	size_t i;

	if (!role)
		role = classify_role(task, strlen(task));
	/* Runs use the offline model too, which works on files alone. */
	if (strcmp(role, "web_crawler") == 0 || strcmp(role, "data_extractor") == 0)
		role = "researcher";
	json_array_foreach(roles, i, v) offered |= strcmp(json_string_value(v), role) == 0;
	role = offered ? role : "researcher";
	jw_str(w, "role", role);
	jw_str(w, "task", task);
	for (i = 0; i < ARRAY_LEN(reasons) && why; i++)
		if (strcmp(reasons[i].role, role) == 0)
			jw_str(w, "rationale", reasons[i].why);
}

static void talk_spawn_limits(struct jw *w, const struct heard_limits *limits)
{
	if (limits->cents >= 0)
		jw_fixed(w, "max_cost_cents", (int64_t)(limits->cents * 100), 2);
	if (limits->seconds > 0)
		jw_int(w, "timeout", limits->seconds);
}

/* `more`: further words of the person, with other limits. */
static void talk_spawn(struct offline_talk_state *t, const char *words, const char *more)
{
	char *task = arena_copy(&t->b->mem, words, strlen(words)), plain[HEARD_MAX];
	char *wanted = arena_copy(&t->b->mem, more, strlen(more));
	struct heard_limits limits, other;
	struct jw *w;

	if (!task || !wanted) {
		t->draft->rv = AVA_ENOMEM;
		return;
	}
	heard_plain(words, plain);
	heard_limits(task, &limits);
	heard_limits(wanted, &other);
	limits.cents = other.cents >= 0 ? other.cents : limits.cents;
	limits.seconds = other.seconds > 0 ? other.seconds : limits.seconds;
	w = draft_call(t->draft, "spawn_subagent");
	/* In long words limits stay: they may be about something else. */
	talk_spawn_args(t, w, strlen(words) > TASK_PLAIN ? words : task, heard_role(plain), true);
	talk_spawn_limits(w, &limits);
	draft_call_end(t->draft);
}

/* "review a.c and b.c": the second part needs the verb as well. */
static char *talk_whole_task(struct offline_talk_state *t, char *task, const char *first)
{
	char plain[HEARD_MAX];

	heard_plain(task, plain);
	if (heard_work(plain) || strchr(task, '?'))
		return task;
	heard_plain(first, plain);
	if (!heard_work(plain))
		return task;
	return arena_fmt(&t->b->mem, "%.*s %s", (int)strcspn(first, " "), first, task);
}

static void talk_spawn_many(struct offline_talk_state *t, const char *words)
{
	char *copy = arena_copy(&t->b->mem, words, strlen(words)), *tasks[TASKS_MAX];
	struct heard_limits limits;
	struct jw *w;
	unsigned n;

	if (!copy) {
		t->draft->rv = AVA_ENOMEM;
		return;
	}
	heard_limits(copy, &limits);
	n = heard_tasks(copy, tasks, TASKS_MAX);
	if (n < 2 || !offline_tool(t->b, "spawn_parallel")) {
		talk_spawn(t, words, "");
		return;
	}
	w = draft_call(t->draft, "spawn_parallel");
	jw_array(w, "runs");
	for (unsigned i = 0; i < n; i++) {
		char *task = talk_whole_task(t, tasks[i], tasks[0]), plain[HEARD_MAX];

		jw_object(w, NULL);
		heard_plain(task ? task : "", plain);
		talk_spawn_args(t, w, task ? task : "", heard_role(plain), false);
		jw_end(w);
	}
	jw_end(w);
	talk_spawn_limits(w, &limits);
	draft_call_end(t->draft);
}

/* One call with one argument, or without one. */
static void talk_call_with(struct offline_talk_state *t, const char *name, const char *key,
			   const char *value)
{
	struct jw *w = draft_call(t->draft, name);

	if (value && *value)
		jw_str(w, key, value);
	draft_call_end(t->draft);
}

static void talk_call(struct offline_talk_state *t, const char *name, const char *id)
{
	talk_call_with(t, name, "subagent_id", id);
}

/* "tell it to look at src only" */
static void talk_steer(struct offline_talk_state *t, const char *words, const char *id)
{
	struct jw *w = draft_call(t->draft, "steer_subagent");

	jw_str(w, "subagent_id", id);
	jw_str(w, "message", words);
	draft_call_end(t->draft);
}

/* ---- of quotes */

/* Several quotes are told each with its number. */
static void talk_quotes(struct offline_talk_state *t, enum topic topic)
{
	unsigned open = offline_talk_open(t), n = 0;

	for (unsigned i = 0; i < t->nquotes; i++) {
		const struct tell_quote *q = &t->quotes[i];

		if (!q->open)
			continue;
		if (open > 1)
			buf_addf(&t->out, "%s%u (%s): ", n ? "\n" : "", q->number, q->id);
		if (open > 1 && topic == ABOUT_WHAT)
			tell_tasks(&t->out, q);
		else
			tell_quote(&t->out, q, topic);
		n++;
	}
	if (open > 1 && topic == ABOUT_WHAT)
		buf_adds(&t->out,
			 "\nWith a yes a subagent starts in the background: it searches and "
			 "reads files here and tells what was found.");
}

static void talk_unsure(struct offline_talk_state *t, bool doubt)
{
	unsigned open = offline_talk_open(t);

	if (doubt) {
		buf_adds(&t->out, "It waits for you. ");
		talk_quotes(t, ABOUT_DOUBT);
		buf_adds(&t->out, open > 1 ? "\n" : " ");
	}
	if (open > 1) {
		buf_adds(&t->out, "Which one shall start:");
		for (unsigned i = 0, n = 0; i < t->nquotes; i++) {
			if (!t->quotes[i].open)
				continue;
			buf_addf(&t->out, "%s %u (%s) ", n++ ? "," : "", t->quotes[i].number,
				 t->quotes[i].id);
			tell_task(&t->out, t->quotes[i].task);
		}
		buf_adds(&t->out, "? Say its number, all or none.");
	} else if (open)
		buf_adds(&t->out,
			 "Shall it start? Yes starts it, no drops it, or say what shall be "
			 "different.");
}

/* ---- of runs at work, as list_subagents tells them, the newest first */

static const json_t *talk_run(const json_t *list, size_t i)
{
	return json_array_get(list, json_array_size(list) - 1 - i);
}

/* Do the words hold a word of the task or role that only this run has? */
static bool talk_names_run(const json_t *list, size_t which, const char *plain)
{
	static const char said[] = "the|one|and|for|with|stop|that|this|please|now|can|is|it|to|"
				   "tell|cancel|work|of|in";
	char word[64];

	for (const char *at = plain + 1; *at; at += strcspn(at, " ") + 1) {
		size_t len = strcspn(at, " "), others = 0;
		bool mine = false;

		snprintf(word, sizeof(word), "%.*s", (int)MIN(len, sizeof(word) - 1), at);
		if (len < 3 || heard_is(said, word))
			continue;
		for (size_t i = 0; i < json_array_size(list); i++) {
			const json_t *run = talk_run(list, i);
			bool has = strcasestr(json_str(run, "task"), word) ||
				   strcasestr(json_str(run, "role"), word);

			mine |= has && i == which;
			others += has && i != which;
		}
		if (mine && others == 0)
			return true;
	}
	return false;
}

/* The runs that the words mean, as bits; 0: unclear, so ask. */
static unsigned talk_targets(const json_t *list, const char *words, const char *plain)
{
	static const char *const ordinals[] = {"first|number 1|number one|#1|erste|ersten",
					       "second|number 2|number two|#2|zweite|zweiten",
					       "third|number 3|number three|#3",
					       "fourth|number 4|#4", "fifth|number 5|#5"};
	size_t n = MIN(json_array_size(list), (size_t)LIVE_MAX);
	unsigned all = (1u << n) - 1, meant = 0;
	char other[24];

	for (size_t i = 0; i < n; i++)
		if (strstr(words, json_str(talk_run(list, i), "subagent_id")))
			meant |= 1u << i;
	if (meant || talk_run_id(words, other) ||
	    heard_has(plain, "except|but not|not the|all but|everything but|one of"))
		return meant;
	if (n > 2 && heard_has(plain, "both|beide"))
		return 0;
	if (n == 1 ||
	    heard_has(plain, "both|all|everything|all of them|them|beide|alle|alles|they"))
		return all;
	for (size_t i = 0; i < ARRAY_LEN(ordinals) && i < n; i++)
		if (heard_has(plain, ordinals[i]))
			meant |= 1u << i;
	if (heard_has(plain, "last|last one|newest"))
		meant |= 1u << (n - 1);
	for (size_t i = 0; i < n && !meant; i++)
		if (talk_names_run(list, i, plain))
			meant |= 1u << i;
	return meant;
}

static void talk_ask_which(struct offline_talk_state *t, const json_t *list)
{
	buf_adds(&t->out, "Which one do you mean:");
	for (size_t i = 0; i < json_array_size(list); i++) {
		buf_addf(&t->out, "%s %zu (%s) ", i ? "," : "", i + 1,
			 json_str(talk_run(list, i), "subagent_id"));
		tell_task(&t->out, json_str(talk_run(list, i), "task"));
	}
	buf_adds(&t->out, "?");
}

/* The tools that were quoted for a run with this task. */
static const json_t *talk_tools_of(const struct offline_talk_state *t, const char *task)
{
	size_t n = strlen(task); /* of a long task only the beginning is compared */

	for (unsigned i = t->nquotes; i-- > 0;)
		if (strncmp(t->quotes[i].task, task, n) == 0)
			return json_object_get(t->quotes[i].quote, "tools");
	return NULL;
}

/* `list`: a single run is answered without its id. */
static bool talk_asks_alone(const struct offline_talk_state *t, const json_t *list)
{
	unsigned n = offline_talk_open(t);
	const json_t *run;
	size_t i;

	json_array_foreach(list, i, run) n += json_object_get(run, "waiting_for") != NULL;
	return n == 1;
}

/* Tell a run's question, and how to answer it. */
static void say_asked(struct offline_talk_state *t, const json_t *run, enum topic topic, bool alone)
{
	const json_t *asks = json_object_get(run, "waiting_for"), *choice;
	size_t i;

	if (topic == ABOUT_RIGHTS) {
		buf_adds(&t->out, t->out.len ? "\n" : "");
		if (asks)
			buf_addf(&t->out,
				 "%s waits: “%s” Nothing of that happens without your yes. ",
				 json_str(run, "subagent_id"), json_str(asks, "question"));
		tell_reach(&t->out, talk_tools_of(t, json_str(run, "task")));
	} else if (asks) {
		buf_addf(&t->out, "%s%s asks: “%s” It needs that for its task, ",
			 t->out.len ? "\n" : "", json_str(run, "subagent_id"),
			 json_str(asks, "question"));
		tell_task(&t->out, json_str(run, "task"));
		json_array_foreach(json_object_get(asks, "choices"), i, choice)
			buf_addf(&t->out, "%s%zu: %s", i ? ", " : ". " WORDS_ANSWER_WITH, i + 1,
				 json_string_value(choice));
		if (strcmp(json_str(asks, "kind"), "question") == 0)
			buf_addf(&t->out,
				 alone && i ? "."
				 : alone    ? ". What you say is passed on."
					    : ". `/steer %s TEXT` answers it.",
				 json_str(run, "subagent_id"));
		else if (alone)
			buf_adds(&t->out, ". Yes allows it, no does not.");
		else
			buf_addf(&t->out, ". \"yes, %s\" allows it, \"no, %s\" does not.",
				 json_str(run, "subagent_id"), json_str(run, "subagent_id"));
	} else {
		tell_run(&t->out, run, ABOUT_WHAT);
	}
}

/* Act on runs at work, or tell about them. */
static void talk_about_runs(struct offline_talk_state *t, const char *words, const char *plain,
			    enum topic topic, const json_t *list)
{
	size_t n = MIN(json_array_size(list), (size_t)LIVE_MAX);
	char before[HEARD_MAX];
	unsigned meant;

	if (n == 0) {
		buf_addf(&t->out, WORDS_NONE_AT_WORK "%s", offline_talk_open(t) ? " " : "");
		talk_unsure(t, false);
		return;
	}
	if (topic != ABOUT_STOP && topic != ABOUT_STEER) {
		for (size_t i = 0; i < n; i++)
			if (topic == ABOUT_WHY || topic == ABOUT_RIGHTS || topic == ABOUT_TOOLS ||
			    topic == ABOUT_WHAT)
				say_asked(t, talk_run(list, i), topic, talk_asks_alone(t, list));
			else
				tell_run(&t->out, talk_run(list, i), topic);
		return;
	}
	/* In steering words the run is named before the message. */
	snprintf(before, sizeof(before), "%s", plain);
	for (const char *const *cut = (const char *const[]){" to ", " that ", ": ", NULL};
	     topic == ABOUT_STEER && *cut; cut++)
		if (strstr(before, *cut))
			strstr(before, *cut)[1] = 0;
	meant = talk_targets(list, words, before);
	if (meant == 0)
		talk_ask_which(t, list);
	for (size_t i = 0; i < n; i++) {
		const char *id = json_str(talk_run(list, i), "subagent_id");

		if (!(meant >> i & 1))
			continue;
		if (topic == ABOUT_STOP)
			talk_call(t, "cancel_subagent", id);
		else
			talk_steer(t, words, id);
	}
}

/* Propose the last task once more. */
static void talk_again(struct offline_talk_state *t, const char *words)
{
	const struct tell_quote *q = t->nquotes ? &t->quotes[t->nquotes - 1] : NULL;

	if (q && *q->task)
		talk_spawn(t, q->task, words);
	else if (t->result)
		tell_about(&t->out, t->result, ABOUT_RESUME);
	else
		buf_adds(&t->out, "Which task shall be done again?");
}

/* ---- of the memory */

static void offline_talk_remember(struct offline_talk_state *t, const char *words)
{
	size_t len;
	const char *note = heard_note(words, &len);

	if (!offline_tool(t->b, "memory_write") || len == 0)
		buf_adds(&t->out, "What shall I remember?");
	else if (!(note = arena_copy(&t->b->mem, note, len)))
		t->draft->rv = AVA_ENOMEM;
	else
		talk_call_with(t, "memory_write", "text", note);
}

static void talk_recollect(struct offline_talk_state *t, const char *plain)
{
	talk_call_with(t, "memory_search", "query", heard_subject(plain));
}

static void talk_forget(struct offline_talk_state *t, const char *words, const char *plain)
{
	char id[24];

	if (heard_has(plain, "everything|all|alles|tout|todo|tutto")) {
		buf_adds(&t->out, "`ava memory rm --all` removes everything that I remember of "
				  "you, for good.");
	} else if (heard_memory(words, id)) {
		talk_call_with(t, "memory_write", "forget", id);
	} else if (heard_subject(plain)[0]) {
		talk_recollect(t, plain);
	} else if (offline_noted(t->b, id)) {
		talk_call_with(t, "memory_write", "forget", id);
	} else {
		buf_adds(&t->out, "I noted nothing here. Which one shall I forget? `ava memory` "
				  "shows all, and \"forget M-...\" names one.");
	}
}

static void talk_memory(struct offline_talk_state *t, enum topic topic, const char *words,
			const char *plain)
{
	if (topic == ABOUT_REMEMBER)
		offline_talk_remember(t, words);
	else if (topic == ABOUT_KNOWN)
		talk_recollect(t, plain);
	else
		talk_forget(t, words, plain);
}

/* A single match is forgotten when the person asks to forget; of several Ava asks which. */
static void talk_known(struct offline_talk_state *t, const char *rows, enum topic topic)
{
	char id[24];
	unsigned n = tell_known(&t->out, rows, id);

	if (topic == ABOUT_FORGET && n == 1) {
		buf_reset(&t->out);
		talk_call_with(t, "memory_write", "forget", id);
	} else if (topic == ABOUT_FORGET && n > 1) {
		buf_adds(&t->out, "\n\nWhich one shall I forget? \"Forget M-...\" names it.");
	}
}

/* ---- small talk: short, and as things are */

static void talk_hello(struct offline_talk_state *t)
{
	buf_adds(&t->out, TELL_LABEL "Hello. ");
	if (t->nlive)
		buf_addf(&t->out, "%s is still at work.", t->live[t->nlive - 1]);
	else if (offline_talk_open(t))
		talk_unsure(t, false);
	else
		buf_adds(&t->out,
			 "I can propose a subagent, or look something up in the files here "
			 "myself. What shall it be?");
}

static void talk_say(struct offline_talk_state *t, enum topic topic)
{
	tell_small(&t->out, topic);
	/* A yes would be taken for the quote, so name the words that stop. */
	if (topic == ABOUT_STOPPING && offline_talk_open(t))
		buf_addf(&t->out, "\"Stop %s\" stops it.", t->live[t->nlive - 1]);
	else if (topic == ABOUT_STOPPING)
		buf_adds(&t->out, TELL_SHALL_STOP);
	if (topic == ABOUT_BYE && t->nlive)
		buf_addf(&t->out, " %s stays at work meanwhile.", t->live[t->nlive - 1]);
}

static void talk_unclear(struct offline_talk_state *t, enum topic topic)
{
	if (offline_talk_open(t))
		talk_unsure(t, topic == ABOUT_DOUBT);
	else if (topic == ABOUT_ANSWER)
		buf_addf(&t->out, WORDS_WAITS("Nothing", ". What shall be looked for?"));
	else if (t->nlive)
		buf_addf(&t->out,
			 "I am not sure what you mean. %s is at work: shall I stop it, or tell "
			 "it something?",
			 t->live[t->nlive - 1]);
	else
		buf_adds(&t->out,
			 TELL_LABEL "I am not sure what you mean. What shall be looked for in the "
				    "files here? \"help\" says what I can do.");
}

/* ---- what the person says */

/* Can the topic be answered from the conversation alone? */
static bool talk_answered(struct offline_talk_state *t, enum topic topic, unsigned has)
{
	if (topic >= ABOUT_COST && topic <= ABOUT_WHY && topic != ABOUT_TODAY && (has & HAS_QUOTE))
		talk_quotes(t, topic);
	else if (topic >= ABOUT_RESUME && topic <= ABOUT_STATUS && topic != ABOUT_AGAIN &&
		 topic != ABOUT_DID && topic != ABOUT_TODAY && (has & HAS_ENDED))
		tell_about(&t->out, t->result, topic);
	else
		return false;
	return true;
}

static void talk_look(struct offline_talk_state *t, const char *words)
{
	if (offline_look(t->b, t->draft, words, &t->out) != 0)
		t->draft->rv = AVA_ENOMEM;
}

/* The words may be the answer to a run's question. */
static bool talk_may_answer(const struct offline_talk_state *t, const char *words, enum topic topic)
{
	return t->asked && t->nlive && !strchr(words, '?') &&
	       (topic == ABOUT_NOTHING || topic == ABOUT_LOOK || topic == ABOUT_ANSWER);
}

/* Pass the words to the one run that waits for free words; else answer them by topic. */
static void talk_pass_on(struct offline_talk_state *t, const char *words, enum topic topic,
			 const json_t *list)
{
	const json_t *run, *asks = NULL;
	unsigned n = 0;
	size_t i;

	json_array_foreach(list, i, run)
	{
		const json_t *waits = json_object_get(run, "waiting_for");

		n += waits != NULL;
		if (strcmp(json_str(waits, "kind"), "question") == 0 &&
		    json_array_size(json_object_get(waits, "choices")) == 0)
			asks = run;
	}
	if (n == 1 && asks)
		talk_steer(t, words, json_str(asks, "subagent_id"));
	else if (topic == ABOUT_LOOK)
		talk_look(t, words);
	else if (n > 0)
		talk_about_runs(t, words, "", ABOUT_WHAT, list);
	else
		talk_unclear(t, topic);
}

/* The topic of the words; yes and no answer Ava's own offer to stop. */
static enum topic talk_topic(const struct offline_talk_state *t, const char *words,
			     const char *plain)
{
	enum topic topic = heard_topic(words, plain, talk_has(t));

	if (topic != ABOUT_ANSWER || !t->offered || !t->nlive)
		return topic;
	return heard_begins(plain, "nope|nein|non|n|deny") || strncasecmp(words, "no", 2) == 0
		       ? ABOUT_KEEPING
		       : ABOUT_STOP;
}

static void talk_words(struct offline_talk_state *t, const char *words)
{
	char plain[HEARD_MAX], id[24] = "";
	unsigned has = talk_has(t);
	enum topic topic;

	heard_plain(words, plain);
	topic = talk_topic(t, words, plain);
	if (talk_answered(t, topic, has))
		return;
	talk_run_id(words, id);
	if (talk_may_answer(t, words, topic)) {
		talk_call(t, "list_subagents", NULL);
		return;
	}
	switch (topic) {
	case ABOUT_STOP:
	case ABOUT_STEER:
		if (!t->nlive && !id[0])
			buf_adds(&t->out, WORDS_NONE_AT_WORK);
		else
			talk_call(t, "list_subagents", NULL);
		break;
	case ABOUT_SURE:
	case ABOUT_FILES:
	case ABOUT_LIMIT:
	case ABOUT_COST:
	case ABOUT_TIME:
	case ABOUT_MODEL:
	case ABOUT_TOOLS:
	case ABOUT_RIGHTS:
	case ABOUT_WHAT:
	case ABOUT_WHY:
	case ABOUT_STATUS:
		talk_call(t, id[0] ? "subagent_status" : "list_subagents", id);
		break;
	case ABOUT_REMEMBER:
	case ABOUT_KNOWN:
	case ABOUT_FORGET:
		talk_memory(t, topic, words, plain);
		break;
	case ABOUT_TODAY:
		talk_call(t, "ava_status", NULL);
		break;
	case ABOUT_DID:
		talk_call(t, "read_ava_logs", id[0] ? id : t->run);
		break;
	case ABOUT_AGAIN:
		talk_again(t, words);
		break;
	case ABOUT_TASKS:
		talk_spawn_many(t, words);
		break;
	case ABOUT_TASK:
		talk_spawn(t, words, "");
		break;
	case ABOUT_LISTING:
	case ABOUT_LOOK:
		talk_look(t, words);
		break;
	case ABOUT_HELLO:
		talk_hello(t);
		break;
	case ABOUT_THANKS:
		buf_adds(&t->out, "You're welcome.");
		if (offline_talk_open(t)) {
			buf_adds(&t->out, " ");
			talk_unsure(t, false);
		}
		break;
	case ABOUT_DOUBT:
	case ABOUT_ANSWER:
	case ABOUT_NOTHING:
		talk_unclear(t, topic);
		break;
	default:
		talk_say(t, topic);
	}
}

/* The person's words in the newest text; notices and results beside them are told in t->out. NULL:
 * no memory. */
static const char *talk_newest(struct offline_talk_state *t)
{
	const char *text = t->b->newest, *said = "";
	bool result = false, inside = false; /* a result comes next; its envelope is open */
	struct buf words;
	char *line;

	buf_init(&words, TEXT_MAX);
	while ((line = talk_line(t, &text))) {
		if (result)
			tell_result(&t->out, line);
		else if (talk_is_notice(line) && !strstr(line, NOTICE_RESULT) &&
			 !strstr(line, NOTICE_ELSEWHERE))
			tell_notice(&t->out, line);
		else if (!talk_is_notice(line) && !inside)
			buf_addf(&words, "%s%s", words.len ? "\n" : "", line);
		result = !result && talk_is_notice(line) && strstr(line, NOTICE_RESULT);
		if (talk_is_notice(line))
			inside = result || strstr(line, NOTICE_TOLD);
	}
	while (words.len > 0 && isspace((unsigned char)words.data[words.len - 1]))
		words.data[--words.len] = 0;
	if (words.len > 0)
		said = arena_copy(&t->b->mem, words.data, words.len);
	if (!said || buf_check(&words) != 0)
		t->draft->rv = AVA_ENOMEM;
	buf_fini(&words);
	return said ? said : "";
}

/* ---- what tools returned */

static void talk_result(struct offline_talk_state *t, const struct offline_call *c,
			const char *words)
{
	const char *text = c->result ? c->result : "";
	char plain[HEARD_MAX];
	enum topic topic;
	json_t *result;

	if (c->is_error) {
		buf_addf(&t->out, "That did not work: %s.", text);
	} else if (strcmp(c->name, "spawn_subagent") == 0) {
		buf_adds(&t->out, "A subagent can do that in the background.");
	} else if (strcmp(c->name, "spawn_parallel") == 0) {
		buf_adds(&t->out, "Subagents can do that side by side.");
	} else if (strcmp(c->name, "memory_write") == 0) {
		tell_noted(&t->out, text);
	} else if (strcmp(c->name, "memory_search") == 0) {
		heard_plain(words, plain);
		talk_known(t, text, heard_topic(words, plain, talk_has(t)));
	} else if (strcmp(c->name, "read_ava_logs") == 0) {
		t->draft->rv |= tell_log(&t->b->mem, &t->out, text, t->run);
	} else if (strcmp(c->name, "cancel_subagent") == 0) {
		buf_adds(&t->out, "All right."); /* the runtime tells how the run ended */
	} else if (strcmp(c->name, "confirm_spawn") == 0) {
		buf_adds(&t->out, "I'll tell you what is found.");
	} else if (strcmp(c->name, "steer_subagent") == 0) {
		if (strstr(text, "It has its answer"))
			buf_adds(&t->out, "I have passed that on.");
		else
			buf_addf(&t->out, "I have told it. " WORDS_READS_LATER("It"));
	} else {
		result = json_parse(text, strlen(text), NULL);
		heard_plain(words, plain);
		topic = talk_topic(t, words, plain);
		if (strcmp(c->name, "list_subagents") == 0 && talk_may_answer(t, words, topic))
			talk_pass_on(t, words, topic, result);
		else if (strcmp(c->name, "list_subagents") == 0)
			talk_about_runs(t, words, plain, topic, result);
		else if (strcmp(c->name, "ava_status") == 0)
			tell_today(&t->out, result);
		else
			tell_status(&t->out, result);
		json_decref(result);
	}
}

/* Did Ava look into files herself? Their lines are the answer. */
static bool talk_looks(const struct offline_call *c)
{
	return strcmp(c->name, "read_file") == 0 || strcmp(c->name, "list_files") == 0 ||
	       strncmp(c->name, "search_", 7) == 0;
}

int offline_talk(struct offline_body *b, struct offline_draft *draft)
{
	struct offline_talk_state *t = arena_get(&b->mem, sizeof(*t)); /* large for the stack */
	const struct offline_call *last = b->ncalls > b->fresh ? &b->calls[b->ncalls - 1] : NULL;
	const char *words;

	if (!t)
		return AVA_ENOMEM;
	*t = (struct offline_talk_state){.b = b, .draft = draft, .kept = json_array()};
	buf_init(&t->out, TEXT_MAX);
	talk_read(t);
	words = talk_newest(t);
	if (last)
		buf_reset(&t->out);
	if (last && talk_looks(last))
		talk_look(t, words);
	else if (last)
		talk_result(t, last, words);
	else if (t->out.len == 0)
		talk_words(t, words);
	if (buf_check(&t->out) != 0)
		draft->rv = draft->rv ? draft->rv : buf_check(&t->out);
	else if (t->out.len > 0)
		draft_text(draft, t->out.data);
	buf_fini(&t->out);
	json_decref(t->kept);
	return 0;
}
