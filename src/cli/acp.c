/* A conversation in an editor; acp.h.
 *
 * Happy path: a prompt opens the feed behind the last event that was taken, so that what has
 * happened since (a subagent ended, Ava told of it) comes first; then it is said to the daemon, and
 * its events become updates, one function a type. When Ava listens again what waits for an answer
 * is put to the person, one by one; then the prompt is answered, behind all its updates: editors
 * take updates between two turns for mistakes. Who shows notices has those meanwhile, and the next
 * turn tells all the same.
 *
 * Whether a turn is over the daemon says: it is asked when the feed shows that Ava has ended, a
 * moment behind an event, and now and then. What it has for this person by then must have come by
 * the feed, and what was said here must have come back.
 *
 * What can fail: the daemon: the feed comes again by itself, what was accepted goes on, and a
 * request that is never answered ends the turn with its sentence; the editor, which reads no more:
 * nothing more is written, and the loop ends; memory for an update, which is then left out (the
 * conversation has it). */
#include "cli/acp.h"

#include <ava.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/util.h"
#include "base/words.h"
#include "cli/api.h"
#include "cli/chat.h"
#include "codec/utf8.h"

#define LOOK_MS      150  /* an event, and the daemon is asked whether the turn is over */
#define LOOK_SLOW_MS 2000 /* and while nothing comes */
#define RUNS_MAX     64   /* of a plan */
#define TITLE_CHARS  120
#define ASK_CHARS    2000 /* there are editors that show of what is asked the title alone */

/* ---- messages to the editor */

/* In one line. */
static json_t *title_of(const char *text, size_t chars)
{
	char *line = strndup(text, utf8_prefix(text, strlen(text), chars));
	json_t *v;

	for (char *at = line; at != NULL && (at = strchr(at, '\n')) != NULL;)
		*at = ' ';
	v = line != NULL ? acp_clean(line, strlen(line)) : NULL;
	free(line);
	return v;
}

void acp_update(struct acp_session *s, const char *kind, json_t *members)
{
	json_object_set_new(members, "sessionUpdate", json_string(kind));
	acp_call(s->a, 0, "session/update",
		 json_pack("{s:s,s:o}", "sessionId", s->id, "update", members));
}

static const char ava_text[] = "agent_message_chunk", thought[] = "agent_thought_chunk",
		  person_text[] = "user_message_chunk";

/* More of message `id`. */
static void chunk(struct acp_session *s, const char *kind, unsigned id, const char *text,
		  size_t len)
{
	/* For editors that do not part messages by their ids: only a call stands between two. */
	const char *behind = s->talking == kind && s->message != id ? "\n\n" : "";
	char name[24], *whole = NULL;

	if (len == 0)
		return;
	snprintf(name, sizeof(name), "m%u", id);
	if (asprintf(&whole, "%s%.*s", behind, (int)len, text) > 0)
		acp_update(s, kind,
			   json_pack("{s:{s:s,s:o},s:s}", "content", "type", "text", "text",
				     acp_clean(whole, strlen(whole)), "messageId", name));
	free(whole);
	s->talking = kind;
	s->message = id;
}

/* A whole text, as Ava's. */
static void sayf(struct acp_session *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void sayf(struct acp_session *s, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) > 0)
		chunk(s, ava_text, ++s->messages, text, strlen(text));
	va_end(ap);
	free(text);
}

/* "content" of a tool call; NULL: it has none. */
static json_t *content_of(const char *text)
{
	return text[0] == '\0' ? NULL
			       : json_pack("[{s:s,s:{s:s,s:o}}]", "type", "content", "content",
					   "type", "text", "text", acp_clean(text, strlen(text)));
}

/* A tool call begins. */
static void tool_call(struct acp_session *s, const char *id, const char *title, const char *kind,
		      const char *status, const char *text, const json_t *input)
{
	json_object_set_new(s->calls, id, json_true());
	s->talking = NULL;
	acp_update(s, "tool_call",
		   json_pack("{s:s,s:o,s:s,s:s,s:o*,s:O*}", "toolCallId", id, "title",
			     title_of(title, TITLE_CHARS), "kind", kind, "status", status,
			     "content", content_of(text), "rawInput", input));
}

/* false: the editor has no such call under way. */
static bool tool_update(struct acp_session *s, const char *id, const char *status, const char *text)
{
	if (json_object_get(s->calls, id) == NULL)
		return false;
	acp_update(s, "tool_call_update",
		   json_pack("{s:s,s:s,s:o*}", "toolCallId", id, "status", status, "content",
			     content_of(text)));
	if (strcmp(status, "in_progress") != 0)
		json_object_del(s->calls, id);
	return true;
}

/* ---- quotes and questions */

/* `tool` is put to the person: by a form with `fields`, else by `options`; the other one is NULL.
 * Both are taken. */
static void ask(struct acp_session *s, const char *tool, const char *text, json_t *fields,
		json_t *options)
{
	json_t *params;

	tool_call(s, tool, text, "other", "pending", text, NULL);
	if (fields != NULL)
		params =
			json_pack("{s:s,s:s,s:s,s:o,s:{s:s,s:o}}", "sessionId", s->id, "toolCallId",
				  tool, "mode", "form", "message", acp_clean(text, strlen(text)),
				  "requestedSchema", "type", "object", "properties", fields);
	else
		params = json_pack("{s:s,s:{s:s,s:o,s:s,s:o*},s:o}", "sessionId", s->id, "toolCall",
				   "toolCallId", tool, "title", title_of(text, ASK_CHARS), "status",
				   "pending", "content", content_of(text), "options", options);
	if (params == NULL) /* it waits; another client shows it */
		return;
	s->turn.asked = ++s->a->next_id;
	snprintf(s->turn.tool, sizeof(s->turn.tool), "%s", tool);
	acp_call(s->a, s->turn.asked,
		 fields != NULL ? "elicitation/create" : "session/request_permission", params);
}

static json_t *option(const char *id, const char *name, bool yes)
{
	return json_pack("{s:s,s:o,s:s}", "optionId", id, "name", title_of(name, TITLE_CHARS),
			 "kind", yes ? "allow_once" : "reject_once");
}

static json_t *yes_or_no(const char *yes, const char *name)
{
	return json_pack("[o,o]", option(yes, name, true), option(WORDS_NO, WORDS_NO, false));
}

static void ask_quote(struct acp_session *s, const json_t *p)
{
	const char *id = json_str(p, "proposal_id"), *message = json_str(p, "message");
	const json_t *quote = json_object_get(p, "quote");
	json_t *form = NULL, *options = NULL;
	char yes[96];

	snprintf(yes, sizeof(yes), WORDS_YES_FOR(format_most_of(quote, "costCents").text));
	/* A yes to all three rights says so in words. */
	if (json_get_bool(quote, "allThree", false))
		options = yes_or_no(WORDS_YES_ALL_THREE, WORDS_YES_ALL_THREE);
	else if (s->a->forms)
		form = json_pack("{s:{s:s,s:s,s:s}}", "terms", "type", "string", "title",
				 WORDS_FORM_TERMS, "description", WORDS_FORM_SUCH_AS);
	else
		options = yes_or_no(WORDS_YES, yes);
	snprintf(s->shown, sizeof(s->shown), "%s", id);
	ask(s, id, message, form, options);
}

/* One without choices and without a form is answered in words. */
static void ask_question(struct acp_session *s, const char *run, const char *tool,
			 const json_t *waits)
{
	const char *question = json_str(waits, "question");
	const json_t *choices = json_object_get(waits, "choices"), *choice;
	json_t *form = NULL, *options = NULL;
	size_t i;

	if (strcmp(json_str(waits, "kind"), "approval") == 0)
		options = yes_or_no(WORDS_YES, WORDS_YES);
	else if (json_array_size(choices) > 0)
		options = json_array();
	else if (s->a->forms)
		form = json_pack("{s:{s:s,s:s}}", "answer", "type", "string", "title",
				 WORDS_FORM_ANSWER);
	json_array_foreach(choices, i, choice)
	{
		const char *text = json_string_value(choice);

		json_array_append_new(options, option(text, text, true));
	}
	if (form != NULL || options != NULL) {
		ask(s, tool, question, form, options);
	} else {
		tool_call(s, tool, question, "other", "pending", "", NULL);
		sayf(s, WORDS_ASKS("", run, question));
	}
}

/* Of this conversation, and not put to the person yet. */
static bool is_new(const struct acp_session *s, const json_t *of, const char *tool)
{
	return s->turn.asked == 0 && strcmp(json_str(of, "session_id"), s->id) == 0 &&
	       json_object_get(s->calls, tool) == NULL;
}

/* The first thing that waits for an answer is put to the person. false: there is none. */
static bool ask_next(struct acp_session *s)
{
	json_t *proposals = NULL, *runs = NULL;
	const json_t *list, *v;
	char tool[80];
	size_t i;

	(void)api_request(&s->a->c, NULL, &proposals, NULL, "/proposals");
	(void)api_request(&s->a->c, NULL, &runs, NULL, "/runs?limit=1000");
	list = json_object_get(proposals, "proposals");
	for (i = json_array_size(list); i-- > 0;) { /* the oldest first */
		v = json_array_get(list, i);
		if (is_new(s, v, json_str(v, "proposal_id")))
			ask_quote(s, v);
	}
	json_array_foreach(json_object_get(runs, "runs"), i, v)
	{
		const json_t *waits = json_object_get(v, "waiting_for");

		snprintf(tool, sizeof(tool), "%s/%s", json_str(v, "subagent_id"),
			 json_str(waits, "call_id"));
		if (json_is_object(waits) && is_new(s, v, tool))
			ask_question(s, json_str(v, "subagent_id"), tool, waits);
	}
	json_decref(proposals);
	json_decref(runs);
	return s->turn.asked != 0;
}

/* An editor that still shows it may take it away. */
static void take_back(struct acp_session *s)
{
	if (s->turn.asked != 0)
		acp_call(s->a, 0, "$/cancel_request",
			 json_pack("{s:I}", "requestId", (json_int_t)s->turn.asked));
	s->turn.asked = 0;
}

/* It was answered, maybe elsewhere, or has expired. false: the editor has no call for it. */
static bool settled(struct acp_session *s, const char *tool, bool good, const char *text)
{
	if (strcmp(s->turn.tool, tool) == 0)
		take_back(s);
	return tool_update(s, tool, good ? "completed" : "failed", text);
}

/* What a person has chosen, in words: an option (its id), or what a form has. NULL: nothing. */
static json_t *chosen(const struct rpc *m, bool quote)
{
	const char *action = json_str(m->result, "action"), *terms;
	bool accepted = strcmp(action, "accept") == 0;
	const json_t *fields = accepted ? json_object_get(m->result, "content") : NULL;
	const json_t *outcome = json_object_get(m->result, "outcome"), *said;

	if (outcome != NULL || !quote) { /* who sends the form of a question away answers nothing */
		said = outcome != NULL ? json_object_get(outcome, "optionId")
				       : json_object_get(fields, "answer");
		return json_is_string(said) ? json_deep_copy(said) : NULL;
	}
	if (!accepted)
		return strcmp(action, "decline") == 0 ? json_string(WORDS_NO) : NULL;
	terms = json_str(fields, "terms");
	return *terms != '\0' ? json_sprintf(WORDS_YES ", but %s", terms) : json_string(WORDS_YES);
}

/* The runtime reads the words, as it does those that are typed. */
void acp_answer(struct acp_session *s, const struct rpc *m)
{
	struct acp_turn *t = &s->turn;
	int n = (int)strcspn(t->tool, "/");
	const char *call = t->tool[n] != '\0' ? t->tool + n + 1 : NULL;
	struct ava_error err = {0};
	char id[32], path[64];
	const char *text;
	json_t *words;
	int rv;

	if (t->asked == 0 || json_integer_value(m->id) != t->asked)
		return;
	words = chosen(m, call == NULL);
	text = json_string_value(words);
	t->asked = 0;
	t->look_ms = clock_mono_ms();
	snprintf(id, sizeof(id), "%.*s", n, t->tool);
	if (words == NULL) {
		sayf(s, WORDS_WAITS(id, ""));
		return;
	}
	snprintf(path, sizeof(path), call != NULL ? "/runs/%s/steer" : "/proposals/%s/confirm", id);
	rv = call != NULL ? api_post(&s->a->c, NULL, &err, path, "text", text, "call_id", call,
				     /* so that asking twice says it once */
				     "request_id", id_session().text, NULL)
			  : api_post(&s->a->c, NULL, &err, path, "answer", text, NULL);
	if (rv != 0) {
		sayf(s, "%s", err.text);
	} else {
		if (call == NULL)
			snprintf(t->words, sizeof(t->words), "%s", text);
		t->look_ms += LOOK_SLOW_MS; /* an event tells what came of it */
	}
	json_decref(words);
}

/* ---- events */

/* The plan is the subagents since the last time that none was at work. */
static void plan_set(struct acp_session *s, const char *run, const char *status)
{
	json_t *entry = json_object_get(s->plan, run), *entries, *one;
	const char *key;

	if (entry == NULL || strcmp(json_str(entry, "status"), status) == 0)
		return;
	json_object_set_new(entry, "status", json_string(status));
	entries = json_array();
	json_object_foreach(s->plan, key, one) json_array_append(entries, one);
	acp_update(s, "plan", json_pack("{s:o}", "entries", entries));
}

static void plan_add(struct acp_session *s, const char *run, const char *title)
{
	size_t live = 0;
	const char *key;
	json_t *one;

	json_object_foreach(s->plan, key, one) live +=
		strcmp(json_str(one, "status"), "completed") != 0;
	if (live == 0)
		json_object_clear(s->plan);
	if (json_object_size(s->plan) < RUNS_MAX)
		json_object_set_new(s->plan, run,
				    json_pack("{s:o,s:s}", "content", title_of(title, TITLE_CHARS),
					      "priority", "medium"));
	plan_set(s, run, "pending");
}

/* A turn of Ava's before this one has failed. */
static void tell_failure(struct acp_session *s)
{
	if (s->turn.failed != NULL)
		sayf(s, "%s", s->turn.failed);
	free(s->turn.failed);
	s->turn.failed = NULL;
}

/* Said elsewhere, unless it is the answer to what was put to the person. */
static void show_user(struct acp_session *s, const json_t *e, const json_t *c)
{
	const char *text = json_str(c, "text");

	tell_failure(s);
	if (strncmp(s->turn.words, text, sizeof(s->turn.words) - 1) != 0)
		chunk(s, person_text, ++s->messages, text, strlen(text));
	s->turn.words[0] = '\0';
}

/* What of it came as frames stands there already. */
static void show_ava(struct acp_session *s, const json_t *e, const json_t *c)
{
	struct buf *had = &s->turn.streamed;
	const char *text = json_str(c, "text");
	size_t len = strlen(text), same = MIN(had->len, len);

	if (same > 0 && memcmp(had->data, text, same) == 0)
		chunk(s, ava_text, s->turn.speaks, text + same, len - same);
	else
		chunk(s, ava_text, ++s->messages, text, len);
	buf_reset(had);
	s->turn.cut = false;
}

/* A call of Ava's own; that of a proposal its quote shows. */
static void own_call(struct acp_session *s, const char *id, const char *name, const json_t *args)
{
	const char *kind = strncmp(name, "read_file", 9) == 0 ? "read"
			   : strstr(name, "search") != NULL   ? "search"
							      : "other";
	const char *key, *what = NULL;
	char title[1024];
	json_t *value;

	json_object_foreach((json_t *)args, key, value) if (what == NULL) what =
		json_string_value(value);
	snprintf(title, sizeof(title), what != NULL ? "%s: %s" : "%s", name, what);
	if (strncmp(name, "spawn_", 6) != 0)
		tool_call(s, id, title, kind, "in_progress", "", args);
}

static void show_call(struct acp_session *s, const json_t *e, const json_t *c)
{
	own_call(s, json_str(c, "callId"), json_str(c, "name"), json_object_get(c, "args"));
}

static void show_call_result(struct acp_session *s, const json_t *e, const json_t *c)
{
	tool_update(s, json_str(c, "callId"),
		    json_get_bool(c, "success", false) ? "completed" : "failed",
		    json_str(c, "output"));
}

static void show_answered(struct acp_session *s, const json_t *e, const json_t *c)
{
	const char *type = json_str(e, "eventType");
	char text[512];

	chat_answered(text, type, c);
	if (!settled(s, json_str(c, "proposalId"), strcmp(type, "SpawnConfirmed") == 0, text))
		sayf(s, "%s", text);
}

static void show_waiting(struct acp_session *s, const json_t *e, const json_t *c)
{
	const char *state = json_str(c, "state");
	char tool[80];

	snprintf(tool, sizeof(tool), "%s/%s", json_str(c, "subagentId"), json_str(c, "callId"));
	if (strcmp(state, "asked") != 0)
		settled(s, tool, strcmp(state, "answered") == 0, json_str(c, "answer"));
}

/* It has a tool call while a turn waits for it. */
static void show_spawn(struct acp_session *s, const json_t *e, const json_t *c)
{
	const char *id = json_str(c, "subagentId"), *task = json_get_str(c, "task");
	struct format role = format_role(json_str(c, "role"));
	char title[1024];

	if (json_object_get(s->plan, id) != NULL) /* an entry may be older than its event */
		return;
	sayf(s, WORDS_SPAWNING(words_mark(WORDS_MARK_START, true), role.text, id));
	snprintf(title, sizeof(title), "%s: %s", role.text, task != NULL ? task : id);
	if (s->wait)
		tool_call(s, id, title, "other", "in_progress", "", NULL);
	plan_add(s, id, title);
}

static void show_started(struct acp_session *s, const json_t *e, const json_t *c)
{
	plan_set(s, json_str(e, "agentId"), "in_progress");
}

static void show_activity(struct acp_session *s, const json_t *e, const json_t *c)
{
	tool_update(s, json_str(e, "agentId"), "in_progress", json_str(c, "text"));
}

/* The line that tells of a run's end in every channel. *Owned* (free); NULL: no memory. */
static char *end_line(struct acp_session *s, const json_t *c)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	if (f == NULL)
		return NULL;
	chat_ended(f, &s->a->c, NULL, c);
	fclose(f);
	if (len > 0 && text[len - 1] == '\n')
		text[len - 1] = '\0';
	return text;
}

static void show_ended(struct acp_session *s, const json_t *e, const json_t *c)
{
	const char *id = json_str(c, "subagentId");
	bool success = strcmp(json_str(c, "status"), "success") == 0;
	char *line;

	if (strcmp(json_str(json_object_get(s->plan, id), "status"), "completed") == 0)
		return;
	line = end_line(s, c);
	sayf(s, "%s", line != NULL ? line : id);
	tool_update(s, id, success ? "completed" : "failed", json_str(c, "summary"));
	plan_set(s, id, "completed");
	free(line);
}

static void show_call_end(struct acp_session *s, const json_t *e, const json_t *c)
{
	const json_t *tokens = json_object_get(c, "tokens");

	s->tokens = json_get_int(tokens, "input", 0) + json_get_int(tokens, "output", 0);
	s->turn.cut = s->turn.streamed.len > 0; /* of an attempt that failed: it is made anew */
}

static void show_error(struct acp_session *s, const json_t *e, const json_t *c)
{
	free(s->turn.failed);
	s->turn.failed = strdup(json_str(c, "message"));
}

static void show_event(struct acp_session *s, const struct feed_item *i)
{
	static const struct {
		const char *type;
		bool ava; /* of Ava's, not of a run's */
		void (*show)(struct acp_session *s, const json_t *event, const json_t *content);
	} rows[] = {
		{"UserMessage", false, show_user},
		{"AssistantMessage", false, show_ava},
		{"ToolCall", true, show_call},
		{"ToolResult", true, show_call_result},
		{"SpawnConfirmed", false, show_answered},
		{"SpawnRejected", false, show_answered},
		{"SpawnExpired", false, show_answered},
		{"SubagentSpawn", false, show_spawn},
		{"InferStart", false, show_started},
		{"Activity", false, show_activity},
		{"SubagentComplete", false, show_ended},
		{"Waiting", false, show_waiting},
		{"InferEnd", true, show_call_end},
		{"Error", true, show_error},
	};
	json_t *event = json_parse(i->data, i->len, NULL);
	bool ava = strcmp(json_str(event, "agentId"), "ava") == 0;

	for (size_t n = 0; n < ARRAY_LEN(rows); n++)
		if (strcmp(rows[n].type, i->type) == 0 && (ava || !rows[n].ava))
			rows[n].show(s, event, json_object_get(event, "content"));
	json_decref(event);
}

static void show_text(struct acp_session *s, const struct feed_item *i)
{
	struct acp_turn *t = &s->turn;

	if (t->cut) /* where its beginning was not shown, what follows is not either */
		return;
	if (t->streamed.len == 0)
		t->speaks = ++s->messages;
	t->cut = buf_add(&t->streamed, i->data, i->len) != 0;
	if (!t->cut)
		chunk(s, ava_text, t->speaks, i->data, i->len);
}

static void show_item(struct acp_session *s, const struct feed_item *i)
{
	struct acp_turn *t = &s->turn;

	if (i->kind == FEED_EVENT || i->kind == FEED_OWN)
		t->look_ms = MIN(t->look_ms, clock_mono_ms() + LOOK_MS);
	switch (i->kind) {
	case FEED_EVENT:
		show_event(s, i);
		break;
	case FEED_OWN:
		tell_failure(s);
		break;
	case FEED_TEXT:
		show_text(s, i);
		break;
	case FEED_THINKING:
		chunk(s, thought, s->talking == thought ? s->message : ++s->messages, i->data,
		      i->len);
		break;
	case FEED_IDLE:
		t->look_ms = clock_mono_ms();
		t->cut = false;
		buf_reset(&t->streamed);
		break;
	case FEED_LOST: /* Ava's text begins anew then */
		t->cut = true;
		break;
	default:
		break;
	}
}

/* Between two turns. The next one tells all of it: a notice may not have been seen. */
static void show_notice(struct acp_session *s, const struct feed_item *i)
{
	json_t *event = i->kind == FEED_EVENT ? json_parse(i->data, i->len, NULL) : NULL;
	const json_t *c = json_object_get(event, "content");
	bool ended = strcmp(i->type, "SubagentComplete") == 0;
	bool good = !ended || strcmp(json_str(c, "status"), "success") == 0;
	bool said = strcmp(i->type, "AssistantMessage") == 0;
	bool asks = strcmp(json_str(c, "state"), "asked") == 0;
	char *line = ended ? end_line(s, c) : NULL;
	const char *text = json_str(c, ended ? "summary" : asks ? "question" : said ? "text" : "");

	if (text[0] != '\0')
		acp_update(s, "notice",
			   json_pack("{s:s,s:o,s:o}", "severity", good ? "info" : "warning",
				     "title", title_of(line != NULL ? line : text, TITLE_CHARS),
				     "description", acp_clean(text, strlen(text))));
	free(line);
	json_decref(event);
}

/* All that has come by the feed. */
static void show(struct acp_session *s)
{
	struct feed_item *i;

	while ((i = feed_take(&s->feed, s->id)) != NULL) {
		if (s->turn.prompt != NULL)
			show_item(s, i);
		else
			show_notice(s, i);
		free(i);
	}
}

/* ---- a turn */

static void feed(struct acp_session *s, bool on)
{
	feed_close(&s->feed);
	s->feed.gone = true;
	s->feed.all = true;
	if (on)
		feed_open(&s->feed, s->id, s->seen);
}

static void tell_session(struct acp_session *s, const json_t *session)
{
	double cents = json_number_value(json_object_get(session, "cost_cents"));
	json_t *title = json_object_get(session, "title");

	if (s->tokens > 0)
		acp_update(s, "usage_update",
			   json_pack("{s:I,s:O,s:{s:f,s:s}}", "used", (json_int_t)s->tokens, "size",
				     json_object_get(session, "context"), "cost", "amount",
				     cents / 100, "currency", "USD"));
	if (strcmp(json_str(session, "model"), s->model) !=
	    0) { /* chosen elsewhere, or it fell back */
		snprintf(s->model, sizeof(s->model), "%s", json_str(session, "model"));
		acp_update(s, "config_option_update",
			   json_pack("{s:o}", "configOptions", acp_options(s)));
	}
	if (json_string_length(title) == 0 || json_equal(title, s->title))
		return;
	json_decref(s->title);
	s->title = json_incref(title);
	acp_update(s, "session_info_update",
		   json_pack("{s:o}", "title", title_of(json_string_value(title), TITLE_CHARS)));
}

/* All that was shown; one that does not arrive is shown again to whoever comes next. */
static void acknowledge(struct acp_session *s)
{
	json_t *answer = NULL;
	char body[96];

	snprintf(body, sizeof(body), "{\"channel\":\"terminal\",\"lsn\":%llu}",
		 (unsigned long long)s->seen);
	if (s->a->c != NULL && s->seen > 0)
		(void)api_request(&s->a->c, body, &answer, NULL, "/sessions/%s/ack", s->id);
	json_decref(answer);
}

/* The prompt is answered, behind all that was shown: by an error with `code` (not 0) and `why`, or
 * how the turn ended. A turn that was cancelled is no error, whatever went wrong on the way. */
static void turn_end(struct acp_session *s, int code, const char *why)
{
	struct acp_turn *t = &s->turn;

	if (code != 0 && !t->cancelled)
		acp_refuse(s->a, t->prompt, code, why);
	else
		acp_result(
			s->a, t->prompt,
			json_pack("{s:s}", "stopReason", t->cancelled ? "cancelled" : "end_turn"));
	s->seen = MAX(s->seen, strtoull(s->feed.last_id, NULL, 10));
	s->talking = NULL;
	acknowledge(s);
	buf_fini(&t->streamed);
	json_decref(t->prompt);
	free(t->failed);
	memset(t, 0, sizeof(*t));
	feed(s, s->a->notices && s->said && !s->a->gone);
}

/* Is the turn over? */
static void look(struct acp_session *s)
{
	struct acp_turn *t = &s->turn;
	json_t *now = NULL, *unseen = NULL;
	struct ava_error err = {0};
	bool idle;
	int rv = api_request(&s->a->c, NULL, &now, &err, "/sessions/%s", s->id);

	if (rv == 0)
		(void)api_request(&s->a->c, NULL, &unseen, NULL,
				  "/sessions/%s/unseen?channel=terminal", s->id);
	show(s);
	t->look_ms = clock_mono_ms() + LOOK_SLOW_MS;
	idle = strcmp(json_str(now, "status"), "idle") == 0 && json_get_int(now, "waiting", 0) == 0;
	if (!t->cancelled)
		idle = idle && s->feed.nown == 0 &&
		       strtoull(s->feed.last_id, NULL, 10) >=
			       (uint64_t)json_get_int(unseen, "lsn", 0);
	if (rv != 0) {
		turn_end(s, RPC_INTERNAL, err.text);
	} else if (idle &&
		   (t->cancelled || t->failed != NULL ||
		    /* Else what waits is asked, and subagents may be waited for. */
		    (!ask_next(s) && !(s->wait && json_get_int(now, "live_runs", 0) > 0)))) {
		tell_session(s, now);
		turn_end(s, t->failed != NULL ? RPC_INTERNAL : 0, t->failed);
	}
	json_decref(now);
	json_decref(unseen);
}

/* A conversation in which nothing was said is not on disk: a daemon that was started anew does not
 * know it, and it is begun again under its id; unless something happened in it (a subagent ended).
 */
int acp_begin(struct acp_session *s, const char *model, struct ava_error *err)
{
	const char *key = model != NULL ? "model" : NULL;
	json_t *answer = NULL;
	char path[sizeof(s->id) + 32];
	int rv = AVA_EEXIST;

	snprintf(path, sizeof(path), "/sessions/%s/model", s->id);
	if (!s->said)
		rv = api_post(&s->a->c, &answer, err, "/sessions", "cwd", s->cwd, "session_id",
			      s->id, key, model, NULL);
	if (rv == AVA_EEXIST)
		rv = api_post(&s->a->c, &answer, err, path, key, model, NULL);
	if (rv == 0)
		snprintf(s->model, sizeof(s->model), "%s", json_str(answer, "model"));
	json_decref(answer);
	return rv;
}

/* At once, without the daemon's last words: the next turn shows them. */
static void leave(struct acp_session *s)
{
	take_back(s);
	acp_stop(s);
	if (s->turn.prompt == NULL)
		return;
	show(s);
	turn_end(s, 0, NULL);
}

void acp_prompt(struct acp_session *s, const json_t *id, const char *text)
{
	struct acp_turn *t = &s->turn;
	struct ava_error err = {0};
	int rv;

	leave(s);
	t->prompt = json_incref((json_t *)id);
	t->look_ms = INT64_MAX;
	buf_init(&t->streamed, ACP_TEXT_MAX);
	feed(s, true);
	if (s->remark != NULL)
		sayf(s, "%s", s->remark);
	s->remark = NULL;
	show(s);
	rv = feed_say(&s->feed, &s->a->c, s->id, text, s->shown, &err);
	if (rv == AVA_ENOENT && !s->said && (rv = acp_begin(s, s->model, &err)) == 0)
		rv = feed_say(&s->feed, &s->a->c, s->id, text, s->shown, &err);
	s->said = s->said || rv == 0;
	t->look_ms = clock_mono_ms() + LOOK_SLOW_MS;
	if (rv != 0)
		turn_end(s, rv == AVA_EINVAL || rv == AVA_ETOOBIG ? RPC_PARAMS : RPC_INTERNAL,
			 err.text);
}

void acp_stop(struct acp_session *s)
{
	struct acp_turn *t = &s->turn;
	json_t *answer = NULL;

	if (t->prompt == NULL)
		return;
	t->cancelled = true;
	t->asked = 0; /* the editor has taken it away; the daemon still waits */
	t->look_ms = clock_mono_ms();
	if (api_request(&s->a->c, "{}", &answer, NULL, "/sessions/%s/stop", s->id) != 0)
		turn_end(s, 0, NULL);
	json_decref(answer);
}

void acp_step(struct acp_session *s)
{
	struct acp_turn *t = &s->turn;

	show(s);
	if (t->prompt != NULL && s->feed.gone)
		turn_end(s, RPC_INTERNAL, "the daemon does not show this conversation any more");
	else if (t->prompt != NULL && t->asked == 0 && clock_mono_ms() >= t->look_ms)
		look(s);
}

int64_t acp_next(const struct acp_session *s)
{
	int64_t next = feed_next(&s->feed);

	if (s->turn.prompt == NULL || s->turn.asked != 0)
		return next;
	return next < 0 ? s->turn.look_ms : MIN(next, s->turn.look_ms);
}

/* ---- its life */

void acp_free(struct acp_session *s)
{
	leave(s);
	feed_close(&s->feed);
	list_del(&s->node);
	s->a->nsessions--;
	json_decref(s->calls);
	json_decref(s->plan);
	json_decref(s->title);
	free(s->cwd);
	free(s);
}

struct acp_session *acp_find(const struct acp *a, const char *id)
{
	LIST_EACH (&a->sessions, n, tmp)
		if (strcmp(LIST_ENTRY(n, struct acp_session, node)->id, id) == 0)
			return LIST_ENTRY(n, struct acp_session, node);
	return NULL;
}

/* An entry of the conversation's file. */
static void show_entry(struct acp_session *s, json_t *entry)
{
	const json_t *m = json_object_get(entry, "message"), *block;
	const char *role = json_str(m, "role"), *event = json_str(entry, "eventType"), *kind;
	unsigned id = ++s->messages;
	size_t i;

	kind = strcmp(role, "user") == 0 ? person_text : ava_text;
	json_array_foreach(json_object_get(m, "content"), i, block)
	{
		const char *text = json_str(block, "text");

		if (strcmp(role, "toolResult") == 0)
			tool_update(s, json_str(m, "toolCallId"),
				    json_get_bool(m, "isError", false) ? "failed" : "completed",
				    text);
		else if (strcmp(json_str(block, "type"), "toolCall") == 0)
			own_call(s, json_str(block, "id"), json_str(block, "name"),
				 json_object_get(block, "arguments"));
		else
			chunk(s, kind, id, text, strlen(text));
	}
	if (strcmp(json_str(entry, "type"), "agent_event") != 0)
		return;
	json_object_set(entry, "subagentId", json_object_get(entry, "jobId"));
	json_object_set(entry, "role", json_object_get(entry, "agentName"));
	json_object_set_new(
		entry, "status",
		json_string(strcmp(event, "subagent:complete") == 0 ? "success" : "error"));
	if (strcmp(event, "subagent:start") == 0)
		show_spawn(s, entry, entry);
	else
		show_ended(s, entry, entry);
}

/* All of it again, as its file has it, or from the first thing that this person has not seen. */
static int take_up(struct acp_session *s, bool again, struct ava_error *err)
{
	json_t *is = NULL, *past = NULL;
	const json_t *unseen;
	json_t *entry;
	size_t i;
	int rv = api_request(&s->a->c, NULL, &is, err, "/sessions/%s", s->id);

	if (rv == 0)
		rv = api_request(&s->a->c, NULL, &past, err, "/sessions/%s/%s", s->id,
				 again ? "messages" : "unseen?channel=terminal");
	if (rv == 0) {
		free(s->cwd);
		s->cwd = strdup(json_str(is, "cwd"));
		s->said = json_str(is, "title")[0] != '\0';
		snprintf(s->model, sizeof(s->model), "%s", json_str(is, "model"));
	}
	json_array_foreach(json_object_get(past, "entries"), i, entry)
	{
		if (strtoull(json_str(entry, "id"), NULL, 16) <= s->seen)
			show_entry(s, entry);
	}
	unseen = json_array_get(json_object_get(past, "items"), 0);
	if (unseen != NULL)
		s->seen = MIN(s->seen, (uint64_t)json_get_int(unseen, "lsn", 1) - 1);
	else if (rv == 0)
		acknowledge(s);
	json_decref(past);
	json_decref(is);
	return rv;
}

struct acp_session *acp_open(struct acp *a, const char *id, const char *cwd, const char *model,
			     bool again, struct ava_error *err)
{
	struct acp_session *s = NULL;
	json_t *health = NULL;
	int rv;

	if (id != NULL && (id[0] == '\0' || strspn(id, "0123456789abcdef-") != strlen(id) ||
			   strlen(id) >= sizeof(s->id)))
		err_set(err, AVA_ENOENT, "there is no session of that id");
	else if (a->nsessions == ACP_SESSIONS_MAX)
		err_set(err, AVA_EBUSY, "there are as many conversations as can be: close one");
	else if ((s = calloc(1, sizeof(*s))) == NULL)
		err_set(err, AVA_ENOMEM, "out of memory");
	if (s == NULL)
		return NULL;
	s->a = a;
	s->calls = json_object();
	s->plan = json_object();
	s->cwd = strdup(cwd);
	snprintf(s->id, sizeof(s->id), "%s", id != NULL ? id : id_session().text);
	list_init(&s->feed.items);
	s->feed.gone = true;
	list_add(&a->sessions, &s->node);
	a->nsessions++;
	rv = api_request(&a->c, NULL, &health, err, "/health");
	/* What happens behind it is for the first turn. */
	s->seen = (uint64_t)json_get_int(json_object_get(health, "journal"), "lsn", 0);
	json_decref(health);
	if (rv == 0)
		rv = id != NULL ? take_up(s, again, err) : acp_begin(s, model, err);
	if (rv == 0 && s->cwd == NULL)
		rv = err_set(err, AVA_ENOMEM, "out of memory");
	if (rv == 0) {
		feed(s, a->notices && s->said);
		return s;
	}
	acp_free(s);
	return NULL;
}
