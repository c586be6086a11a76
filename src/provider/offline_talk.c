/* Ava without a model: rules over the newest turn. A request to research,
 * review, extract or find is proposed to the role that fits; a question about
 * the work under way is answered from list_subagents, one about what a run did
 * or why it failed from its log; a result is told with its citations; for
 * everything else she says what she can do.
 *
 * Happy path: the body is walked once, keeping the newest user text and the
 * calls behind it. Notices ("[ava] …") are the runtime's, and only stand in
 * user text; what a tool returned is quoted, never obeyed. Only memory and a
 * body of another form can fail. */
#include "provider/offline_talk.h"

#include <ava.h>
#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "provider/dialect.h"
#include "provider/offline_draft.h"
#include "provider/offline_logs.h"
#include "provider/wire.h"

#define TEXT_MAX  (8u << 20)
#define CALLS_MAX 16u
#define CITES_MAX 12
#define QUOTE_MAX 160
#define LABEL     "(offline model) "

struct talk_call {
	struct slice name, result; /* raw */
	bool is_error;
};

struct talk {
	char *text; /* newest user text, unescaped; owned */
	size_t len;
	struct talk_call calls[CALLS_MAX]; /* behind it */
	unsigned ncalls;
	struct slice tools; /* raw */
	unsigned users;     /* user messages */
	unsigned number;    /* of the call to be answered */
	char run[24];       /* that the runtime spoke of last; "": of none */
	bool waits;         /* a proposal has no answer yet */
};

bool offline_is_talk(const char *body, size_t len)
{
	const char *end = memmem(body, len, "\"messages\":[", 12);

	return end && memmem(body, (size_t)(end - body), "\"name\":\"spawn_subagent\"", 23);
}

/* ---- reading */

/* "S-7f3a2b" in the text; false: none. */
static bool run_id(const char *text, char out[24])
{
	const char *at = strstr(text, "S-");
	size_t n;

	if (!at)
		return false;
	n = strspn(at + 2, "0123456789abcdef");
	if (n < 6 || n > 20)
		return false;
	snprintf(out, 24, "%.*s", (int)(n + 2), at);
	return true;
}

/* Notices tell which runs were started and have ended. */
static void note_run(struct talk *t)
{
	for (const char *line = t->text; line; line = strchr(line, '\n')) {
		const char *at = line + (*line == '\n');
		char head[120];

		snprintf(head, sizeof(head), "%.*s", (int)strcspn(at, "\n"), at);
		if (strncmp(head, "[ava] ", 6) == 0) {
			run_id(head, t->run);
			if (strstr(head, "confirmed P-") || strstr(head, "was rejected") ||
			    strstr(head, "has expired"))
				t->waits = false;
		}
		line = at;
	}
}

static int new_text(struct talk *t, struct slice raw)
{
	char *text = malloc(raw.len + 1);

	if (!text)
		return AVA_ENOMEM;
	free(t->text);
	t->len = jscan_unescape(raw, text);
	text[t->len] = 0;
	t->text = text;
	t->ncalls = 0;
	note_run(t);
	return 0;
}

/* In the result of spawn_subagent (ava/talk_tools.c). */
static const char waits[] = "\"waits for the person\\\"";

static int take_block(struct talk *t, const struct wire_block *b, bool user, bool *results)
{
	*results = *results || b->type == WIRE_TOOL_RESULT;
	if (b->type == WIRE_TEXT && user && !*results)
		return new_text(t, b->text);
	if (b->type == WIRE_TOOL_USE && !user && t->ncalls < CALLS_MAX) {
		t->calls[t->ncalls++] = (struct talk_call){.name = b->name};
	} else if (b->type == WIRE_TOOL_RESULT && user) {
		t->waits = t->waits || memmem(b->text.s, b->text.len, waits, sizeof(waits) - 1);
		for (unsigned i = 0; i < t->ncalls; i++) {
			if (t->calls[i].result.s)
				continue; /* results come in the order of the calls */
			t->calls[i].result = b->text;
			t->calls[i].is_error = b->is_error;
			break;
		}
	}
	return 0;
}

static int read_messages(struct talk *t, struct jscan *w)
{
	struct wire_reader r = {.in_body = true};
	struct wire_block b;
	int more, rv = 0;
	bool user;

	jscan_array(w);
	r.w = *w;
	while (rv == 0 && (more = wire_message(&r, &user)) == 1) {
		bool results = false;

		t->users += user;
		while (rv == 0 && wire_block(&r, &b) == 1)
			rv = take_block(t, &b, user, &results);
	}
	if (rv == 0 && (more < 0 || r.w.failed))
		rv = AVA_EINVAL;
	*w = r.w;
	return rv;
}

static int read_body(struct talk *t, const char *body, size_t len)
{
	struct slice key;
	struct jscan w;
	int rv = 0;

	jscan_init(&w, body, len);
	jscan_object(&w);
	while (rv == 0 && jscan_key(&w, &key)) {
		if (slice_is(key, "messages"))
			rv = read_messages(t, &w);
		else if (slice_is(key, "tools"))
			jscan_skip(&w, &t->tools);
		else
			jscan_skip(&w, NULL);
	}
	if (rv == 0 && (w.failed || !t->text))
		rv = AVA_EINVAL;
	t->number = MAX(t->users, 1u);
	return rv;
}

/* ---- what the person says */

static bool has_any(const char *text, const char *const *words)
{
	for (size_t i = 0; words[i]; i++)
		if (strcasestr(text, words[i]))
			return true;
	return false;
}

/* The person's own words: what is left of the text without notices. */
static char *own_words(const struct talk *t)
{
	char *out = malloc(t->len + 1), *to = out;
	bool inside = false; /* of a result's envelope */

	if (!out)
		return NULL;
	for (const char *line = t->text; *line;) {
		const char *nl = strchr(line, '\n'), *next = nl ? nl + 1 : line + strlen(line);
		size_t len = (size_t)(next - line);

		if (strncmp(line, "[ava] ", 6) == 0)
			inside = memmem(line, len, "Its result follows", 18) != NULL;
		else if (!inside) {
			memcpy(to, line, len);
			to += len;
		}
		line = next;
	}
	while (to > out && isspace((unsigned char)to[-1]))
		to--;
	*to = 0;
	return out;
}

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
static const char *const stop_words[] = {"cancel", "stop ", "abort", "kill ", NULL};

static void call(struct draft *d, const char *name, struct buf *args)
{
	draft_call(d, NULL, name, args->data, args->len, NULL);
	buf_fini(args);
}

static void call_spawn(const struct talk *t, struct draft *d, const char *task)
{
	const char *role = classify_role(task, strlen(task));
	char quoted[64];
	struct buf args;
	struct jw w;

	/* Only roles that the schema offers exist. */
	snprintf(quoted, sizeof(quoted), "\"%s\"", role);
	if (!memmem(t->tools.s, t->tools.len, quoted, strlen(quoted)))
		role = "researcher";
	buf_init(&args, TEXT_MAX);
	jw_init(&w, &args);
	jw_object(&w, NULL);
	jw_str(&w, "role", role);
	jw_str(&w, "task", task);
	jw_end(&w);
	call(d, "spawn_subagent", &args);
}

static void call_with(struct draft *d, const char *name, const char *key, const char *value)
{
	struct buf args;
	struct jw w;

	buf_init(&args, 1024);
	jw_init(&w, &args);
	jw_object(&w, NULL);
	if (value)
		jw_str(&w, key, value);
	jw_end(&w);
	call(d, name, &args);
}

static void say(struct draft *d, const struct buf *text)
{
	if (buf_check(text) == 0)
		draft_text(d, text->data ? text->data : "", text->len);
	else
		d->rv = buf_check(text);
}

static void says(struct draft *d, const char *text)
{
	draft_text(d, text, strlen(text));
}

static bool begins_with(const char *text, const char *const *words)
{
	for (size_t i = 0; words[i]; i++) {
		size_t n = strlen(words[i]);

		if (strncasecmp(text, words[i], n) == 0 &&
		    (words[i][n - 1] == ' ' || !isalnum((unsigned char)text[n])))
			return true;
	}
	return false;
}

/* Four words or more, and not to her. */
static bool is_question(const char *words)
{
	unsigned n = 0;

	for (const char *at = words; *at; at++)
		n += isalnum((unsigned char)*at) && (at == words || at[-1] == ' ');
	return n > 3 && begins_with(words, question_words) && !strcasestr(words, " you");
}

static void tell_words(const struct talk *t, struct draft *d, const char *words)
{
	char id[24];

	if (has_any(words, stop_words) && run_id(words, id))
		call_with(d, "cancel_subagent", "subagent_id", id);
	else if (has_any(words, log_words))
		call_with(d, "read_ava_logs", "subagent_id",
			  run_id(words, id) ? id
			  : t->run[0]       ? t->run
					    : NULL);
	else if (has_any(words, status_words) && run_id(words, id))
		call_with(d, "subagent_status", "subagent_id", id);
	else if (has_any(words, status_words))
		call_with(d, "list_subagents", NULL, NULL);
	else if (has_any(words, work_words) || is_question(words))
		call_spawn(t, d, words);
	else if (t->waits)
		says(d, "The proposal still waits for your answer: yes starts it, no drops it, or "
			"say what shall be different.");
	else if (begins_with(words, answer_words))
		says(d, "Nothing waits for your answer. What shall be looked for?");
	else
		says(d, LABEL
		     "I can propose a subagent to research, review, extract or find something in "
		     "your files, tell how running ones are getting on, and report what they "
		     "found. "
		     "What shall be looked for? For a conversation configure a model: `ava doctor` "
		     "says how.");
}

/* ---- what the runtime tells */

/* Summary, citations and caveats are paragraphs of their own: as Markdown they
 * would run into each other without the empty lines. */
static void cite(struct buf *out, const json_t *citation)
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
			cite(out, v);
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
	bool listed = false, first = true;

	for (const char *line = summary; *line;) {
		const char *nl = strchr(line, '\n'), *next = nl ? nl + 1 : line + strlen(line);
		size_t len = nl ? (size_t)(nl - line) : strlen(line);
		bool item = len > 1 && line[0] == '-' && line[1] == ' ';

		if (cited && (slice_is((struct slice){line, len}, "Related:") ||
			      slice_is((struct slice){line, len}, "Then:"))) {
			listed = true;
		} else if (!listed || !item) {
			listed = false;
			buf_addf(out, "%s%.*s", first ? "" : "\n", (int)len, line);
			first = false;
		}
		line = next;
	}
}

static void tell_result(struct buf *out, const char *line, size_t len)
{
	json_t *r = json_parse(line, len, NULL);
	const char *id = json_get_str(r, "subagent_id"), *status = json_get_str(r, "status");
	const char *summary = json_get_str(r, "summary");
	const json_t *citations = json_object_get(r, "citations");

	if (out->len)
		buf_adds(out, "\n\n");
	if (!r || !id || !status) {
		buf_adds(out, "A subagent has ended; `ava result` shows what it found.");
		json_decref(r);
		return;
	}
	buf_addf(out, "%s has ended (%s). ", id, status);
	tell_summary(out, summary ? summary : "", json_array_size(citations) > 0);
	tell_citations(out, citations);
	tell_caveats(out, json_object_get(r, "caveats"));
	json_decref(r);
}

/* One notice line to one sentence for the person. */
static void tell_notice(struct buf *out, const char *line, size_t len)
{
	static const struct {
		const char *word, *say;
	} told[] = {
		{"confirmed", "It has started. I'll tell you what it finds; ask me anything "
			      "meanwhile."},
		{"rejected", "All right, nothing was started."},
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
		if (!memmem(line, len, told[i].word, strlen(told[i].word)))
			continue;
		if (told[i].say[0])
			buf_addf(out, "%s%s", out->len ? " " : "", told[i].say);
		return;
	}
}

/* What the notices say, for the person; false: they say nothing. */
static bool answer_notices(const struct talk *t, struct draft *d)
{
	struct buf out;
	bool result = false, said;

	buf_init(&out, TEXT_MAX);
	for (const char *line = t->text; *line;) {
		const char *nl = strchr(line, '\n'), *next = nl ? nl + 1 : line + strlen(line);
		size_t len = (size_t)(next - line) - (nl != NULL);

		if (result) {
			tell_result(&out, line, len);
			result = false;
		} else if (len > 6 && strncmp(line, "[ava] ", 6) == 0) {
			result = memmem(line, len, "Its result follows", 18) != NULL;
			if (!result)
				tell_notice(&out, line, len);
		}
		line = next;
	}
	said = out.len > 0;
	if (said)
		say(d, &out);
	buf_fini(&out);
	return said;
}

/* ---- what tools returned */

static void tell_status(struct buf *out, const json_t *s)
{
	const char *activity = json_get_str(s, "current_activity");
	const char *status = json_get_str(s, "status");
	int64_t tokens = json_get_int(s, "tokens_used", 0);

	buf_addf(out, "%s%s (%s) is %s", out->len ? "\n" : "", json_get_str(s, "subagent_id"),
		 json_get_str(s, "role"), status ? status : "?");
	if (status && strcmp(status, "running") == 0)
		buf_addf(out, ": %s (%lld s, %lld tokens)", activity ? activity : "",
			 (long long)json_get_fixed(s, "elapsed_seconds", 0, 0), (long long)tokens);
	buf_addc(out, '.');
}

static void answer_status(struct draft *d, const json_t *result)
{
	const json_t *v;
	struct buf out;
	size_t i;

	buf_init(&out, TEXT_MAX);
	if (json_is_array(result)) {
		json_array_foreach(result, i, v) tell_status(&out, v);
	} else if (json_is_object(result)) {
		tell_status(&out, result);
	}
	if (out.len == 0)
		buf_adds(&out, "No subagent is at work in this conversation.");
	say(d, &out);
	buf_fini(&out);
}

static int answer_result(struct draft *d, const struct talk_call *c)
{
	char *text = malloc(c->result.len + 1);
	json_t *result;
	struct buf out;
	size_t len;

	if (!text)
		return AVA_ENOMEM;
	len = jscan_unescape(c->result, text);
	text[len] = 0;
	result = c->is_error ? NULL : json_parse(text, len, NULL);
	if (c->is_error) {
		buf_init(&out, TEXT_MAX);
		buf_addf(&out, "That did not work: %s.", text);
		say(d, &out);
		buf_fini(&out);
	} else if (slice_is(c->name, "spawn_subagent")) {
		says(d, "A subagent can do that in the background. Shall it start?");
	} else if (slice_is(c->name, "read_ava_logs")) {
		buf_init(&out, TEXT_MAX);
		offline_tell_log(&out, text, len);
		say(d, &out);
		buf_fini(&out);
	} else if (slice_is(c->name, "confirm_spawn")) {
		says(d, "It has started.");
	} else {
		answer_status(d, result);
	}
	json_decref(result);
	free(text);
	return 0;
}

int offline_talk(const char *body, size_t len, struct draft *d, struct ava_error *err)
{
	struct talk t = {0};
	char *words = NULL;
	int rv = read_body(&t, body, len);

	draft_start(d, t.number);
	if (rv == 0 && t.ncalls > 0) {
		rv = answer_result(d, &t.calls[t.ncalls - 1]);
	} else if (rv == 0) {
		words = own_words(&t);
		if (!words)
			rv = AVA_ENOMEM;
		else if (!answer_notices(&t, d))
			tell_words(&t, d, words);
	}
	free(words);
	free(t.text);
	if (rv == 0)
		return 0;
	draft_drop(d);
	return err_set(err, rv, "%s",
		       rv == AVA_ENOMEM ? "the offline model ran out of memory"
					: "the request is not of the Messages form");
}
