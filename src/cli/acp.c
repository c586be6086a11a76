/* A conversation in an editor; acp.h.
 *
 * Happy path: a prompt follows the conversation from the last Item that was taken, so that what
 * has happened since (a subagent ended, Ava told of it) comes first; then it is said to the daemon,
 * and its Items become updates. When Ava listens again, what waits is put to the person, one by
 * one; then the prompt is answered, behind all its updates: editors take updates between two turns
 * for mistakes. Editors that show notices get those meanwhile, and the next turn tells them
 * nevertheless.
 *
 * The daemon knows whether a turn is over: it is asked when news says that Ava has ended, a
 * moment behind an Item, and now and then. A turn ends only when all Items the daemon has for this
 * person have come, and the messages sent from here have come back.
 *
 * What can fail: the daemon: Items come again by themselves, what was accepted goes on, and a
 * request that is never answered ends the turn with its sentence; an editor that reads no more:
 * the loop ends without another write; memory for an update, which is then left out (the
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
#include "cli/face.h"
#include "codec/format_of.h"

#define LOOK_MS      150  /* after an Item the daemon is asked whether the turn is over */
#define LOOK_SLOW_MS 2000 /* the same question while no Item comes */
#define RUNS_MAX     64   /* runs in a plan */

/* ---- texts and tool calls */

void acp_update(struct acp_session *s, const char *kind, const char *format, ...)
{
	json_t *members;
	va_list ap;

	va_start(ap, format);
	members = json_vpack_ex(NULL, 0, format, ap);
	va_end(ap);
	json_object_set_new(members, "sessionUpdate", json_string(kind));
	acp_send(s->a,
		 rpc_request(0, "session/update",
			     json_pack("{s:s,s:o}", "sessionId", s->d.id, "update", members)));
}

static const char ava_text[] = "agent_message_chunk", thought[] = "agent_thought_chunk",
		  person_text[] = "user_message_chunk";

/* More of message `id`. */
static void chunk(struct acp_session *s, const char *kind, unsigned id, const char *text)
{
	/* Blank lines part two messages for editors that ignore message ids. */
	const char *behind = s->talking == kind && s->message != id ? "\n\n" : "";
	char name[24], *whole = NULL;

	if (text[0] == '\0')
		return;
	s->shown[0] = '\0';
	snprintf(name, sizeof(name), "m%u", id);
	if (asprintf(&whole, "%s%s", behind, text) > 0)
		acp_update(s, kind, "{s:o,s:s}", "content", acp_block(whole), "messageId", name);
	free(whole);
	s->talking = kind;
	s->message = id;
}

/* A whole text, as Ava's. */
__attribute__((format(printf, 2, 3))) static void sayf(struct acp_session *s, const char *fmt, ...)
{
	char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) > 0)
		chunk(s, ava_text, ++s->messages, text);
	va_end(ap);
	free(text);
}

/* A tool call begins. */
static void tool_call(struct acp_session *s, const char *id, const char *title, const char *kind,
		      const char *status, const char *text, const json_t *input)
{
	json_object_set_new(s->calls, id, json_true());
	s->talking = NULL;
	s->shown[0] = '\0';
	acp_update(s, "tool_call", "{s:s,s:o,s:s,s:s,s:o*,s:O*}", "toolCallId", id, "title",
		   acp_title(title, ACP_TITLE_CHARS), "kind", kind, "status", status, "content",
		   acp_content(text), "rawInput", input);
}

/* false: the editor has no such call under way. */
static bool tool_update(struct acp_session *s, const char *id, const char *status, const char *text)
{
	if (json_object_get(s->calls, id) == NULL)
		return false;
	acp_update(s, "tool_call_update", "{s:s,s:s,s:o*}", "toolCallId", id, "status", status,
		   "content", acp_content(text));
	return true;
}

static bool tool_end(struct acp_session *s, const char *id, bool good, const char *text)
{
	bool had = tool_update(s, id, good ? "completed" : "failed", text);

	json_object_del(s->calls, id);
	return had;
}

/* ---- quotes and questions */

/* `tool` is put to the person: by a form with `fields`, else by `options`; the other one is NULL.
 * Both are taken. */
static void acp_ask(struct acp_session *s, const char *tool, const char *text, json_t *fields,
		    json_t *options)
{
	json_t *params;

	tool_call(s, tool, text, "other", "pending", text, NULL);
	if (fields != NULL)
		params = json_pack("{s:s,s:s,s:s,s:o,s:{s:s,s:o}}", "sessionId", s->d.id,
				   "toolCallId", tool, "mode", "form", "message", json_shown(text),
				   "requestedSchema", "type", "object", "properties", fields);
	else
		params = json_pack("{s:s,s:{s:s,s:o,s:s,s:o*},s:o}", "sessionId", s->d.id,
				   "toolCall", "toolCallId", tool, "title",
				   acp_title(text, ACP_ASK_CHARS), "status", "pending", "content",
				   acp_content(text), "options", options);
	if (params == NULL) /* the proposal or question waits; another client shows it */
		return;
	s->turn.asked = ++s->a->next_id;
	s->turn.form = fields != NULL;
	snprintf(s->turn.ask, sizeof(s->turn.ask), "%s", tool);
	acp_send(s->a,
		 rpc_request(s->turn.asked,
			     fields != NULL ? "elicitation/create" : "session/request_permission",
			     params));
}

static json_t *option(const char *id, const char *name, bool yes)
{
	return json_pack("{s:s,s:o,s:s}", "optionId", id, "name", acp_title(name, ACP_TITLE_CHARS),
			 "kind", yes ? "allow_once" : "reject_once");
}

/* The Ask is put to the person: its choices are options; a quote, or a question without choices, is
 * a form where the editor has forms. Such a question is else answered in words. */
static void acp_put_whole(struct acp_session *s, const json_t *ask, bool whole)
{
	const char *id = json_str(ask, "id"), *text = json_str(ask, "text");
	const json_t *choices = json_object_get(ask, "choices"), *one;
	bool quote = id[0] == 'P'; /* of a run, a group or a standing order */
	bool plain = quote && json_array_size(choices) > 0 &&
		     strcmp(json_str(json_array_get(choices, 0), "id"), "yes") == 0;
	json_t *form = NULL, *options = NULL;
	size_t i;

	if (s->a->forms && plain) /* a yes to all three rights says so in words */
		form = json_pack("{s:{s:s,s:s,s:s}}", "terms", "type", "string", "title",
				 WORDS_FORM_TERMS, "description", WORDS_FORM_SUCH_AS);
	else if (s->a->forms && json_array_size(choices) == 0)
		form = json_pack("{s:{s:s,s:s}}", "answer", "type", "string", "title",
				 WORDS_FORM_ANSWER);
	else if (json_array_size(choices) > 0 && whole)
		options = json_array();
	if (options != NULL)
		json_array_foreach(choices, i, one) json_array_append_new(
			options, option(json_str(one, "id"), json_str(one, "label"),
					strcmp(json_str(one, "id"), "no") != 0));
	if (form != NULL || options != NULL) {
		acp_ask(s, id, text, form, options);
		snprintf(s->turn.hash, sizeof(s->turn.hash), "%s", json_str(ask, "hash"));
	} else {
		tool_call(s, id, text, "other", "pending", "", NULL);
		sayf(s, WORDS_ASKS("", json_str(ask, "run"), text));
	}
	snprintf(s->shown, sizeof(s->shown), "%s", id);
}

static void acp_put(struct acp_session *s, const json_t *ask)
{
	bool patch = strcmp(json_str(ask, "kind"), "apply") == 0, whole = !patch;
	json_t *full = NULL;

	/* A list has no patch in it. One that is not shown whole is for `ava apply`. */
	if (patch && api_request(NULL, &full, NULL, "/asks/%s", json_str(ask, "id")) == 0)
		whole = json_get_bool(full, "whole", false);
	acp_put_whole(s, patch && whole ? full : ask, whole);
	json_decref(full);
}

/* The first thing that waits for an answer is put to the person, once. false: there is none. */
static bool ask_next(struct acp_session *s)
{
	json_t *asks = NULL;
	const json_t *one;
	size_t i;

	(void)dialog_asks(&s->d, &asks, NULL);
	json_array_foreach(asks, i, one)
	{
		if (s->turn.asked == 0 && json_object_get(s->calls, json_str(one, "id")) == NULL)
			acp_put(s, one);
	}
	json_decref(asks);
	return s->turn.asked != 0;
}

/* An editor that still shows it may take it away. */
static void take_back(struct acp_session *s)
{
	if (s->turn.asked != 0)
		acp_send(s->a,
			 rpc_request(0, "$/cancel_request",
				     json_pack("{s:I}", "requestId", (json_int_t)s->turn.asked)));
	s->turn.asked = 0;
}

/* The Ask was answered, maybe elsewhere, or has expired. false: the editor has no call for it. */
static bool settled(struct acp_session *s, const char *ask, bool good, const char *text)
{
	if (strcmp(s->turn.ask, ask) == 0)
		take_back(s);
	return tool_end(s, ask, good, text);
}

/* The person's choice in words. NULL: none, or no answer to our question. */
static json_t *chosen(const struct acp_turn *t, const struct rpc *m, bool quote)
{
	const char *action = json_str(m->result, "action"), *text;
	const json_t *from = json_object_get(m->result, t->form ? "content" : "outcome"), *said;
	bool terms = t->form && quote; /* a quote's form has optional terms */

	if (terms && strcmp(action, "decline") == 0)
		return json_string(WORDS_NO);
	if (strcmp(t->form ? action : json_str(from, "outcome"), t->form ? "accept" : "selected"))
		return NULL;
	said = json_object_get(from, terms ? "terms" : t->form ? "answer" : "optionId");
	text = json_string_value(said);
	if (terms && (!said || json_is_null(said) || (text && !*text)))
		return json_string(WORDS_YES);
	return !text ? NULL : terms ? json_sprintf(WORDS_YES ", but %s", text) : json_string(text);
}

/* Say a form's answer in words, which the runtime reads like typed ones. */
void acp_answer(struct acp_session *s, const struct rpc *m)
{
	struct acp_turn *t = &s->turn;
	struct session_id request = id_session(); /* asking twice answers once */
	struct ava_error err = {0};
	char path[sizeof(t->ask) + 8];
	json_t *words;

	if (t->asked == 0 || rpc_number(m->id) != t->asked)
		return;
	words = chosen(t, m, t->ask[0] == 'P');
	t->asked = 0;
	t->look_ms = clock_mono_ms();
	snprintf(path, sizeof(path), "/asks/%s", t->ask);
	if (words == NULL) {
		sayf(s, WORDS_WAITS(t->ask, ""));
		snprintf(s->shown, sizeof(s->shown), "%s", t->ask);
	} else if (api_post(NULL, &err, path, "text", json_string_value(words), "hash", t->hash,
			    "request_id", request.text, NULL) != 0) {
		sayf(s, "%s", err.text);
	} else {
		if (t->ask[0] == 'M') /* no Item closes it */
			tool_end(s, t->ask, strcmp(json_string_value(words), "no") != 0,
				 json_string_value(words));
		snprintf(t->words, sizeof(t->words), "%s", json_string_value(words));
		/* The outcome comes as an Item; the request itself may have taken long. */
		t->look_ms = clock_mono_ms() + LOOK_SLOW_MS;
	}
	json_decref(words);
}

/* ---- Items */

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
	acp_update(s, "plan", "{s:o}", "entries", entries);
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
				    json_pack("{s:o,s:s}", "content",
					      acp_title(title, ACP_TITLE_CHARS), "priority",
					      "medium"));
	plan_set(s, run, "pending");
}

/* A turn of Ava's before this one has failed. */
static void tell_failure(struct acp_session *s)
{
	sayf(s, "%s", s->turn.failed != NULL ? s->turn.failed : "");
	free(s->turn.failed);
	s->turn.failed = NULL;
}

/* Show a message sent elsewhere, but not our own answer to a form. */
static void show_user(struct acp_session *s, const char *text)
{
	tell_failure(s);
	if (strncmp(s->turn.words, text, sizeof(s->turn.words) - 1) != 0)
		chunk(s, person_text, ++s->messages, text);
	s->turn.words[0] = '\0';
}

/* Ava's text from `from` on, as message `id`. */
static void acp_show_words(struct acp_session *s, unsigned id, const char *text, size_t from,
			   size_t len)
{
	struct buf out;

	buf_init(&out, 2 * ACP_TEXT_MAX);
	if (len > from)
		format_barred(&out, text + from, len - from, from > 0 && text[from - 1] != '\n');
	if (out.len > 0)
		chunk(s, ava_text, id, out.data);
	buf_fini(&out);
}

/* Show all text that has come as frames. */
static void show_streamed(struct acp_session *s)
{
	struct acp_turn *t = &s->turn;

	if (!t->cut)
		acp_show_words(s, t->speaks, t->streamed.data, t->shown, t->streamed.len);
	buf_reset(&t->streamed);
	t->shown = 0;
}

/* Ava's whole text: show only what frames did not bring already. */
static void show_ava(struct acp_session *s, const json_t *item)
{
	struct acp_turn *t = &s->turn;
	struct buf *had = &t->streamed;
	const char *text = json_str(item, "text");
	size_t len = strlen(text), same = MIN(had->len, len);
	bool cut = json_get_bool(item, "cut", false) && had->len <= len;

	if (same > 0 && memcmp(had->data, text, same) == 0)
		acp_show_words(s, t->speaks, text, t->shown, len);
	else
		acp_show_words(s, ++s->messages, text, 0, len);
	if (cut)
		sayf(s, WORDS_CUT);
	snprintf(s->shown, sizeof(s->shown), "%s", json_str(item, "ask"));
	buf_reset(had);
	t->shown = 0;
	t->cut = false;
}

/* A call of Ava's own; that of a proposal its quote shows. */
static void show_call(struct acp_session *s, const char *id, const char *name, const json_t *args)
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

/* An Ask has its answer, or expired. */
static void acp_show_answered(struct acp_session *s, const json_t *item, const char *text)
{
	const char *answer = json_str(json_object_get(item, "detail"), "answer");
	const char *ask = json_str(item, "ask");
	bool good = strcmp(answer, "yes") == 0 || strcmp(answer, "answered") == 0 ||
		    strcmp(answer, "waits") == 0;

	if (!settled(s, ask, good, ask[0] == 'S' ? json_str(item, "text") : text))
		sayf(s, "%s", text);
}

/* A spawned run has a tool call while a turn waits for it. */
static void acp_show_spawn(struct acp_session *s, const json_t *item, const char *text)
{
	const char *id = json_str(item, "run"), *task = json_str(item, "text");
	char title[1024];

	if (json_object_get(s->plan, id) != NULL) /* a run may be in the plan before its Item */
		return;
	sayf(s, "%s", text);
	snprintf(title, sizeof(title), "%s: %s", format_role(json_str(item, "role")).text,
		 task[0] != '\0' ? task : id);
	if (s->wait)
		tool_call(s, id, title, "other", "in_progress", "", NULL);
	plan_add(s, id, title);
}

static void show_ended(struct acp_session *s, const json_t *item, const char *text)
{
	const char *id = json_str(item, "run");

	if (strcmp(json_str(json_object_get(s->plan, id), "status"), "completed") == 0)
		return;
	sayf(s, "%s", text);
	tool_end(s, id, strcmp(json_str(item, "kind"), "result") == 0, json_str(item, "text"));
	plan_set(s, id, "completed");
}

static void acp_fail(struct acp_session *s, const char *why)
{
	free(s->turn.failed);
	s->turn.failed = strdup(why);
}

/* The activity of a run or of Ava: a call of hers begins or ends, or what holds her up. */
static void show_doing(struct acp_session *s, const json_t *item, const char *text)
{
	const json_t *detail = json_object_get(item, "detail");
	const json_t *success = json_object_get(detail, "success");
	const char *run = json_str(item, "run"), *call = json_str(detail, "call");

	if (run[0] != '\0') {
		plan_set(s, run, "in_progress");
		tool_update(s, run, "in_progress", json_str(item, "text"));
	} else if (call[0] == '\0') {
		sayf(s, "%s", text);
	} else if (success != NULL) {
		tool_end(s, call, json_is_true(success), json_str(detail, "output"));
	} else {
		show_call(s, call, json_str(detail, "tool"), json_object_get(detail, "args"));
	}
}

/* The lines of an Item, which every channel has. *Owned* (free); NULL: no memory. */
static char *acp_lines(struct acp_session *s, const json_t *item)
{
	struct format role = format_role(json_str(item, "role"));
	char who[sizeof(role) + 32];

	/* The plan has the runs that were at work together. */
	if (json_object_size(s->plan) > 1)
		snprintf(who, sizeof(who), "%s %s", role.text, json_str(item, "run"));
	else
		snprintf(who, sizeof(who), "%s", role.text);
	return face_text(item, who);
}

static void acp_show_item(struct acp_session *s, const json_t *item, enum item_kind kind)
{
	bool ava = strcmp(json_str(json_object_get(item, "detail"), "by"), "ava") == 0;
	const char *run = json_str(item, "run");
	char *lines = acp_lines(s, item);
	const char *text = lines != NULL ? lines : json_str(item, "title");

	if (kind == ITEM_said && ava)
		show_ava(s, item);
	else if (kind == ITEM_said && run[0] == '\0')
		show_user(s, json_str(item, "text"));
	else if (kind == ITEM_started)
		acp_show_spawn(s, item, text);
	else if (kind == ITEM_doing)
		show_doing(s, item, text);
	else if (kind == ITEM_answered || kind == ITEM_expired)
		acp_show_answered(s, item, text);
	else if (kind == ITEM_failed && run[0] == '\0')
		acp_fail(s, json_str(item, "text"));
	else if (kind == ITEM_result || kind == ITEM_failed)
		show_ended(s, item, text);
	else if (kind == ITEM_noted)
		sayf(s, "%s", text);
	free(lines);
}

/* Show streamed text up to a line whose beginning is not clear yet. */
static void show_text(struct acp_session *s, const struct dialog_news *n)
{
	struct acp_turn *t = &s->turn;
	const char *nl;
	size_t upto, line;

	if (n->len == 0) /* a failed attempt's text is made anew */
		t->cut = t->streamed.len > 0;
	if (t->cut || n->len == 0) /* no more until the Item brings the whole text */
		return;
	if (t->streamed.len == 0)
		t->speaks = ++s->messages;
	t->cut = buf_add(&t->streamed, n->text, n->len) != 0;
	if (t->cut)
		return;
	upto = t->streamed.len;
	nl = memrchr(t->streamed.data, '\n', upto);
	line = nl != NULL ? (size_t)(nl - t->streamed.data) + 1 : 0;
	if (line >= t->shown && !format_line_tells(t->streamed.data + line, upto - line))
		upto = line;
	acp_show_words(s, t->speaks, t->streamed.data, t->shown, upto);
	t->shown = upto;
}

static void acp_show_news(struct acp_session *s, const struct dialog_news *n)
{
	struct acp_turn *t = &s->turn;

	if (n->kind == DIALOG_ITEM || n->kind == DIALOG_OWN)
		t->look_ms = MIN(t->look_ms, clock_mono_ms() + LOOK_MS);
	switch (n->kind) {
	case DIALOG_ITEM:
		acp_show_item(s, n->item, n->is);
		break;
	case DIALOG_OWN:
		tell_failure(s);
		break;
	case DIALOG_TEXT:
		show_text(s, n);
		break;
	case DIALOG_THINKING:
		chunk(s, thought, s->talking == thought ? s->message : ++s->messages, n->text);
		break;
	case DIALOG_IDLE:
		t->look_ms = clock_mono_ms();
		show_streamed(s);
		t->cut = false;
		break;
	case DIALOG_LOST: /* Ava's text begins anew after lost frames */
		t->cut = true;
		break;
	case DIALOG_GONE:
		acp_fail(s, n->text);
		break;
	default:
		break;
	}
}

/* Show a notice between two turns. The next turn repeats it: a notice may be missed. */
static void acp_show_notice(struct acp_session *s, const struct dialog_news *n)
{
	bool run = json_str(n->item, "run")[0] != '\0';
	bool ended = run && (n->is == ITEM_result || n->is == ITEM_failed);
	bool ava = strcmp(json_str(json_object_get(n->item, "detail"), "by"), "ava") == 0;
	struct buf words;
	char *line;

	s->shown[0] = '\0';
	if (n->kind != DIALOG_ITEM ||
	    (!ended && n->is != ITEM_asked && !(n->is == ITEM_said && ava)))
		return;
	buf_init(&words, 2 * ACP_TEXT_MAX);
	format_barred(&words, json_str(n->item, "text"), strlen(json_str(n->item, "text")), false);
	line = ended ? acp_lines(s, n->item) : NULL;
	if (words.len > 0)
		acp_update(s, "notice", "{s:s,s:o,s:o}", "severity",
			   n->is == ITEM_failed ? "warning" : "info", "title",
			   acp_title(line != NULL ? line : words.data, ACP_TITLE_CHARS),
			   "description", json_shown(words.data));
	buf_fini(&words);
	free(line);
}

/* Show all news that has come. */
static void acp_show(struct acp_session *s)
{
	struct dialog_news *n;

	while ((n = dialog_take(&s->d)) != NULL) {
		if (s->turn.prompt != NULL)
			acp_show_news(s, n);
		else
			acp_show_notice(s, n);
		dialog_free(n);
	}
}

/* ---- a turn */

static json_t *choice(const char *value, const char *name)
{
	return json_pack("{s:s,s:s}", "value", value, "name", name);
}

json_t *acp_options(struct acp_session *s)
{
	json_t *models = json_array(), *all = NULL;
	const json_t *m;
	size_t i;

	(void)api_request(NULL, &all, NULL, "/models?session=%s", s->d.id);
	json_array_append_new(models, choice(s->d.model, s->d.model));
	json_array_foreach(json_object_get(all, "models"), i, m)
	{
		const char *id = json_str(m, "id");

		if (strcmp(id, s->d.model) != 0)
			json_array_append_new(models, choice(id, id));
	}
	json_decref(all);
	return json_pack("[{s:s,s:s,s:s,s:s,s:s,s:o},{s:s,s:s,s:s,s:s,s:[o,o]}]", "type", "select",
			 "id", "model", "name", "Model", "category", "model", "currentValue",
			 s->d.model, "options", models, "type", "select", "id", "subagents", "name",
			 "Subagents", "currentValue", s->wait ? "wait" : "background", "options",
			 choice("background", "Work in the background"),
			 choice("wait", "Are waited for"));
}

static void acp_tell_session(struct acp_session *s, const json_t *session)
{
	double cents = json_number_value(json_object_get(session, "cost_cents"));
	json_t *title = json_object_get(session, "title");

	if (json_get_int(session, "context_used", 0) > 0)
		acp_update(s, "usage_update", "{s:O,s:O,s:{s:f,s:s}}", "used",
			   json_object_get(session, "context_used"), "size",
			   json_object_get(session, "context"), "cost", "amount", cents / 100,
			   "currency", "USD");
	/* The model was changed elsewhere, or Ava fell back on another. */
	if (strcmp(json_str(session, "model"), s->d.model) != 0) {
		snprintf(s->d.model, sizeof(s->d.model), "%s", json_str(session, "model"));
		acp_update(s, "config_option_update", "{s:o}", "configOptions", acp_options(s));
	}
	if (json_string_length(title) == 0 || json_equal(title, s->title))
		return;
	json_decref(s->title);
	s->title = json_incref(title);
	acp_update(s, "session_info_update", "{s:o}", "title",
		   acp_title(json_string_value(title), ACP_TITLE_CHARS));
}

/* Follow the conversation between two turns, for notices alone. */
static void follow_on(struct acp_session *s)
{
	if (s->a->notices && s->d.said && !s->a->gone)
		dialog_follow(&s->d);
	else
		dialog_leave(&s->d);
}

/* Acknowledge nothing once the editor is gone: its unread notices stay for the next client. */
static void acp_acknowledge(struct acp_session *s)
{
	if (!s->a->gone)
		dialog_acknowledge(&s->d, s->d.seen, true);
}

/* The prompt is answered, behind all that was shown: by an error with `code` (not 0) and `why`, or
 * how the turn ended. A turn that was cancelled is no error, whatever went wrong on the way. */
static void turn_end(struct acp_session *s, int code, const char *why)
{
	struct acp_turn *t = &s->turn;
	const char *how = t->cancelled ? "cancelled" : "end_turn";

	show_streamed(s);
	if (code != 0 && *s->a->stopped) /* after a signal all turns end as cancelled */
		return;
	if (code != 0 && !t->cancelled)
		acp_send(s->a, rpc_error(t->prompt, code, why, NULL));
	else
		acp_send(s->a, rpc_result(t->prompt, json_pack("{s:s}", "stopReason", how)));
	s->talking = NULL;
	s->d.seen = MAX(s->d.seen, s->d.last);
	acp_acknowledge(s);
	buf_fini(&t->streamed);
	json_decref(t->prompt);
	free(t->failed);
	memset(t, 0, sizeof(*t));
	follow_on(s);
}

/* Is the turn over? */
static void acp_look(struct acp_session *s)
{
	struct acp_turn *t = &s->turn;
	json_t *now = NULL, *unseen = NULL;
	struct ava_error err = {0};
	bool idle;
	int rv = dialog_get(&s->d, &now, &err);

	if (rv == 0)
		(void)api_request(NULL, &unseen, NULL, "/sessions/%s/unseen?channel=terminal",
				  s->d.id);
	acp_show(s);
	t->look_ms = clock_mono_ms() + LOOK_SLOW_MS;
	idle = !s->d.busy && json_get_int(now, "waiting", 0) == 0 &&
	       (t->cancelled ||
		(s->d.nown == 0 && s->d.last >= (uint64_t)json_get_int(unseen, "lsn", 0)));
	if (rv != 0) {
		turn_end(s, RPC_INTERNAL, err.text);
	} else if (idle &&
		   (t->cancelled || t->failed != NULL ||
		    /* Else ask the person what waits, or wait for subagents. */
		    (!ask_next(s) && !(s->wait && json_get_int(now, "live_runs", 0) > 0)))) {
		acp_tell_session(s, now);
		turn_end(s, t->failed != NULL ? RPC_INTERNAL : 0, t->failed);
	}
	json_decref(now);
	json_decref(unseen);
}

/* End the turn at once; the next one shows the daemon's last words. */
static void acp_leave(struct acp_session *s)
{
	take_back(s);
	acp_stop(s);
	if (s->turn.prompt == NULL)
		return;
	acp_show(s);
	turn_end(s, 0, NULL);
}

void acp_prompt(struct acp_session *s, const json_t *id, const char *text)
{
	struct acp_turn *t = &s->turn;
	struct ava_error err = {0};
	char shown[sizeof(s->shown)]; /* before what comes now, which nobody has read yet */
	int rv;

	memcpy(shown, s->shown, sizeof(shown));
	acp_leave(s);
	t->prompt = json_incref((json_t *)id);
	t->look_ms = INT64_MAX;
	buf_init(&t->streamed, ACP_TEXT_MAX);
	dialog_follow(&s->d);
	if (s->remark != NULL)
		sayf(s, "%s", s->remark);
	s->remark = NULL;
	acp_show(s);
	rv = dialog_say(&s->d, text, shown, &err);
	t->look_ms = clock_mono_ms() + LOOK_SLOW_MS;
	if (rv != 0)
		turn_end(s, rv == AVA_EINVAL || rv == AVA_ETOOBIG ? RPC_PARAMS : RPC_INTERNAL,
			 err.text);
}

void acp_stop(struct acp_session *s)
{
	struct acp_turn *t = &s->turn;

	if (t->prompt == NULL)
		return;
	t->cancelled = true;
	t->asked = 0; /* the editor has dropped the question; the daemon still waits */
	t->look_ms = clock_mono_ms();
	if (dialog_stop(&s->d, NULL) != 0)
		turn_end(s, 0, NULL);
}

void acp_step(struct acp_session *s)
{
	struct acp_turn *t = &s->turn;

	acp_show(s);
	if (t->prompt != NULL && s->d.gone)
		turn_end(s, RPC_INTERNAL, t->failed != NULL ? t->failed : "out of memory");
	else if (t->prompt != NULL && t->asked == 0 && clock_mono_ms() >= t->look_ms)
		acp_look(s);
}

int64_t acp_next(const struct acp_session *s)
{
	int64_t next = dialog_next(&s->d);

	if (s->turn.prompt == NULL || s->turn.asked != 0)
		return next;
	return next < 0 ? s->turn.look_ms : MIN(next, s->turn.look_ms);
}

/* ---- its life */

void acp_free(struct acp_session *s)
{
	acp_leave(s);
	dialog_fini(&s->d);
	list_del(&s->node);
	s->a->nsessions--;
	json_decref(s->calls);
	json_decref(s->plan);
	json_decref(s->title);
	free(s);
}

struct acp_session *acp_find(const struct acp *a, const char *id)
{
	LIST_EACH (&a->sessions, n, tmp)
		if (strcmp(LIST_ENTRY(n, struct acp_session, node)->d.id, id) == 0)
			return LIST_ENTRY(n, struct acp_session, node);
	return NULL;
}

/* A run's entry of the conversation's file; how it ended is the newest of its Items. */
static void show_agent(struct acp_session *s, const json_t *entry)
{
	bool starts = strcmp(json_str(entry, "eventType"), "subagent:start") == 0;
	const char *run = json_str(entry, "jobId");
	json_t *items = NULL, *item;

	if (starts) {
		item = json_pack("{s:s,s:s,s:s}", "kind", "started", "run", run, "role",
				 json_str(entry, "agentName"));
		acp_show_item(s, item, ITEM_started);
		json_decref(item);
	} else if (api_request(NULL, &items, NULL, "/items?run=%s&limit=1", run) == 0) {
		item = json_array_get(json_object_get(items, "items"), 0);
		acp_show_item(s, item, item_kind_of(json_str(item, "kind")));
	}
	json_decref(items);
}

/* An entry of the conversation's file. */
static void show_entry(struct acp_session *s, json_t *entry)
{
	const json_t *m = json_object_get(entry, "message"), *block;
	const char *role = json_str(m, "role"), *kind;
	unsigned id = ++s->messages;
	size_t i;

	kind = strcmp(role, "user") == 0 ? person_text : ava_text;
	json_array_foreach(json_object_get(m, "content"), i, block)
	{
		const char *text = json_str(block, "text");

		if (strcmp(role, "toolResult") == 0)
			tool_end(s, json_str(m, "toolCallId"), !json_get_bool(m, "isError", false),
				 text);
		else if (strcmp(json_str(block, "type"), "toolCall") == 0)
			show_call(s, json_str(block, "id"), json_str(block, "name"),
				  json_object_get(block, "arguments"));
		else if (kind == person_text)
			chunk(s, kind, id, text);
		else
			acp_show_words(s, id, text, 0, strlen(text));
	}
	if (strcmp(json_str(entry, "type"), "agent_event") == 0)
		show_agent(s, entry);
}

/* Show the conversation again from its file, or from the first item this person has not seen. */
static int acp_take_up(struct acp_session *s, bool again, struct ava_error *err)
{
	json_t *past = NULL;
	const json_t *unseen;
	json_t *entry;
	size_t i;
	int rv = again ? dialog_past(&s->d, &past, err)
		       : api_request(NULL, &past, err, "/sessions/%s/unseen?channel=terminal",
				     s->d.id);

	json_array_foreach(past, i, entry) show_entry(s, entry);
	if (s->d.unshown[0])
		sayf(s, "%s", s->d.unshown);
	unseen = json_array_get(json_object_get(past, "items"), 0);
	if (unseen != NULL)
		s->d.seen = MIN(s->d.seen, (uint64_t)json_get_int(unseen, "lsn", 1) - 1);
	else if (rv == 0)
		acp_acknowledge(s);
	json_decref(past);
	return rv;
}

struct acp_session *acp_open(struct acp *a, const char *id, const char *cwd, const char *model,
			     bool again, struct ava_error *err)
{
	struct acp_session *s = NULL;
	int rv;

	if (a->nsessions == ACP_SESSIONS_MAX)
		err_set(err, AVA_EBUSY, "there are as many conversations as can be: close one");
	else if ((s = calloc(1, sizeof(*s))) == NULL)
		err_set(err, AVA_ENOMEM, "out of memory");
	if (s == NULL)
		return NULL;
	s->a = a;
	s->calls = json_object();
	s->plan = json_object();
	dialog_init(&s->d, true);
	s->d.cwd = strdup(cwd);
	list_add(&a->sessions, &s->node);
	a->nsessions++;
	rv = s->d.cwd != NULL ? dialog_open(&s->d, id, model, err)
			      : err_set(err, AVA_ENOMEM, "out of memory");
	if (rv == AVA_EINVAL && id != NULL)
		rv = err_wrap(err, AVA_ENOENT, "there is no such session");
	if (rv == 0 && id != NULL)
		rv = acp_take_up(s, again, err);
	if (rv == 0) {
		follow_on(s);
		return s;
	}
	acp_free(s);
	return NULL;
}
