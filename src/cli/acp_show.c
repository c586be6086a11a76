/* What an editor is told and asked; acp.h.
 *
 * Events and frames of the feed become updates, one function a type. Quotes and questions wait in
 * a queue until Ava listens, and are put to the person one by one; one that was answered
 * elsewhere meanwhile is taken back.
 *
 * What can fail: the editor, which reads no more: nothing more is written, and the loop ends;
 * memory for an update, which is then left out (the conversation has it); a request about what is
 * shown, after which it is told without. */
#include <ava.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/util.h"
#include "base/words.h"
#include "cli/acp.h"
#include "cli/api.h"
#include "cli/show.h"
#include "codec/utf8.h"

#define OWN_MAX     32
#define TITLE_CHARS 120
#define SENT_MAX    (ACP_TEXT_MAX * 4)

/* ---- messages to the editor */

static void send_line(struct acp *a, struct buf *b)
{
	size_t at = 0;

	buf_addc(b, '\n');
	while (buf_check(b) == 0 && !a->gone && at < b->len) {
		ssize_t n = write(STDOUT_FILENO, b->data + at, b->len - at);

		if (n > 0)
			at += (size_t)n;
		else if (n < 0 && errno != EINTR)
			a->gone = true;
	}
	buf_fini(b);
}

struct message {
	struct buf b;
	struct jw w;
};

static struct jw *message_begin(struct message *m)
{
	buf_init(&m->b, SENT_MAX);
	jw_init(&m->w, &m->b);
	return &m->w;
}

/* The members of `o`, which is taken; the message ends. */
static void send_members(struct acp *a, struct jw *w, json_t *o)
{
	const char *key;
	json_t *value;

	json_object_foreach(o, key, value) rpc_value(w, key, value);
	rpc_end(w);
	if (o != NULL)
		send_line(a, w->out);
	else
		buf_fini(w->out);
	json_decref(o);
}

void acp_result(struct acp *a, const json_t *id, json_t *members)
{
	struct message m;

	rpc_begin_result(message_begin(&m), id);
	send_members(a, &m.w, members);
}

void acp_refuse(struct acp *a, const json_t *id, int code, const char *message)
{
	struct message m;

	rpc_error(message_begin(&m), id, code, message, NULL);
	send_line(a, &m.b);
}

static void send_notice(struct acp *a, const char *method, json_t *members)
{
	struct message m;

	rpc_begin_notice(message_begin(&m), method);
	send_members(a, &m.w, members);
}

void acp_update(struct acp_session *s, const char *kind, json_t *members)
{
	json_object_set_new(members, "sessionUpdate", json_string(kind));
	s->talking = NULL;
	send_notice(s->a, "session/update",
		    json_pack("{s:s,s:o}", "sessionId", s->id, "update", members));
}

/* Of models and files: what could steer a terminal that shows it is visible text. NULL: none. */
static json_t *clean(const char *text, size_t len)
{
	struct buf b;
	json_t *v = NULL;

	buf_init(&b, ACP_TEXT_MAX * 2);
	if (utf8_terminal(&b, text, len, true) == 0)
		v = json_stringn(b.data != NULL ? b.data : "", b.len);
	buf_fini(&b);
	return v;
}

static json_t *title_of(const char *text)
{
	return clean(text, utf8_prefix(text, strlen(text), TITLE_CHARS));
}

/* "content" of a tool call; NULL: it has none. */
static json_t *content_of(const char *text)
{
	return text[0] == '\0' ? NULL
			       : json_pack("[{s:s,s:{s:s,s:o}}]", "type", "content", "content",
					   "type", "text", "text", clean(text, strlen(text)));
}

/* More of message `id`. */
static void chunk(struct acp_session *s, const char *kind, unsigned id, const char *text,
		  size_t len)
{
	/* For editors that do not part messages by their ids. */
	bool behind = s->talking == kind && s->message != id;
	char name[24];
	struct buf b;

	if (len == 0)
		return;
	snprintf(name, sizeof(name), "m%u", id);
	buf_init(&b, ACP_TEXT_MAX);
	buf_adds(&b, behind ? "\n\n" : "");
	buf_add(&b, text, len);
	if (buf_check(&b) == 0)
		acp_update(s, kind,
			   json_pack("{s:{s:s,s:o},s:s}", "content", "type", "text", "text",
				     clean(b.data, b.len), "messageId", name));
	buf_fini(&b);
	s->talking = kind;
	s->message = id;
}

static const char ava_text[] = "agent_message_chunk", thought[] = "agent_thought_chunk",
		  person_text[] = "user_message_chunk";

void acp_say(struct acp_session *s, const char *text)
{
	chunk(s, ava_text, ++s->messages, text, strlen(text));
}

static void sayf(struct acp_session *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void sayf(struct acp_session *s, const char *fmt, ...)
{
	struct buf b;
	va_list ap;

	buf_init(&b, ACP_TEXT_MAX);
	va_start(ap, fmt);
	(void)buf_vaddf(&b, fmt, ap);
	va_end(ap);
	if (buf_check(&b) == 0)
		acp_say(s, b.data);
	buf_fini(&b);
}

/* A tool call begins. */
static void tool_call(struct acp_session *s, const char *id, const char *title, const char *kind,
		      const char *status, json_t *content, json_t *input)
{
	acp_update(s, "tool_call",
		   json_pack("{s:s,s:o,s:s,s:s,s:o*,s:O*}", "toolCallId", id, "title",
			     title_of(title), "kind", kind, "status", status, "content", content,
			     "rawInput", input));
}

static void tool_update(struct acp_session *s, const char *id, const char *status, const char *text)
{
	acp_update(s, "tool_call_update",
		   json_pack("{s:s,s:s,s:o*}", "toolCallId", id, "status", status, "content",
			     content_of(text)));
}

int acp_call(struct acp_session *s, const char *body, json_t **out, struct ava_error *err,
	     const char *path_fmt, ...)
{
	char path[256];
	va_list ap;

	va_start(ap, path_fmt);
	vsnprintf(path, sizeof(path), path_fmt, ap);
	va_end(ap);
	return api_insist(&s->a->c, path, body, out, err);
}

/* ---- quotes and questions */

void acp_ask_add(struct acp_session *s, const char *id, const char *call_id)
{
	struct acp_ask ask = {0};

	if (strlen(id) >= sizeof(ask.id) || strlen(call_id) >= sizeof(ask.call))
		return;
	memcpy(ask.id, id, strlen(id));
	memcpy(ask.call, call_id, strlen(call_id));
	for (size_t i = 0; i < s->nasks; i++)
		if (memcmp(&s->asks[i], &ask, sizeof(ask)) == 0)
			return;
	s->turn.look_ms = clock_mono_ms();
	if (s->nasks < ACP_ASKS_MAX)
		s->asks[s->nasks++] = ask;
	else
		sayf(s, WORDS_WAITS(id, ""));
}

void acp_ask_drop(struct acp_session *s, size_t i)
{
	memmove(s->asks + i, s->asks + i + 1, (--s->nasks - i) * sizeof(s->asks[0]));
	if (i == 0)
		s->turn.asked = 0;
}

/* It was answered, maybe elsewhere, or has expired: an editor that still shows it may take it
 * away. True: it has a tool call there. */
static bool ask_settled(struct acp_session *s, const char *id, const char *call_id)
{
	for (size_t i = s->nasks; i-- > 0;) {
		if (strcmp(s->asks[i].id, id) != 0 || strcmp(s->asks[i].call, call_id) != 0)
			continue;
		if (i == 0 && s->turn.asked != 0)
			send_notice(s->a, "$/cancel_request",
				    json_pack("{s:I}", "requestId", (json_int_t)s->turn.asked));
		acp_ask_drop(s, i);
	}
	return strcmp(s->put.id, id) == 0 && strcmp(s->put.call, call_id) == 0;
}

/* The first of the queue is put to the person, with its tool call: by a form with `fields`, else
 * by `options`; the other one is NULL. Both are taken. */
static void ask(struct acp_session *s, const char *tool, const char *title, const char *text,
		json_t *fields, json_t *options)
{
	struct message m;
	json_t *members;

	tool_call(s, tool, title, "other", "pending", content_of(text), NULL);
	if (fields != NULL)
		members =
			json_pack("{s:s,s:s,s:s,s:o,s:{s:s,s:o}}", "sessionId", s->id, "toolCallId",
				  tool, "mode", "form", "message", clean(text, strlen(text)),
				  "requestedSchema", "type", "object", "properties", fields);
	else
		members =
			json_pack("{s:s,s:{s:s,s:o,s:s,s:o*},s:o}", "sessionId", s->id, "toolCall",
				  "toolCallId", tool, "title", title_of(title), "status", "pending",
				  "content", content_of(text), "options", options);
	s->put = s->asks[0];
	s->turn.asked = members != NULL ? ++s->a->next_id : 0; /* else it is put again */
	rpc_begin_request(message_begin(&m), s->turn.asked,
			  fields != NULL ? "elicitation/create" : "session/request_permission");
	send_members(s->a, &m.w, members);
}

static json_t *option(const char *id, const char *name, bool yes)
{
	return json_pack("{s:s,s:o,s:s}", "optionId", id, "name", title_of(name), "kind",
			 yes ? "allow_once" : "reject_once");
}

static json_t *options_of(const char *yes, const char *name)
{
	return json_pack("[o,o]", option(yes, name, true), option(WORDS_NO, WORDS_NO, false));
}

/* false: it waits no more. */
static bool ask_quote(struct acp_session *s, const char *id)
{
	const json_t *quote, *config, *limits;
	char title[1024], yes[96];
	json_t *p = NULL, *form = NULL, *options = NULL;
	bool waits;

	waits = acp_call(s, NULL, &p, NULL, "/proposals/%s", id) == 0 &&
		strcmp(json_str(p, "state"), "pending") == 0;
	quote = json_object_get(p, "quote");
	config = json_object_get(p, "config");
	limits = json_object_get(config, "limits");
	if (limits != NULL)
		snprintf(title, sizeof(title), "%s: %s", format_role(json_str(quote, "role")).text,
			 json_str(config, "task"));
	else /* of a group: its first line */
		snprintf(title, sizeof(title), "%.*s", (int)strcspn(json_str(p, "message"), "\n"),
			 json_str(p, "message"));
	snprintf(yes, sizeof(yes), WORDS_YES_FOR(format_most_of(quote, "costCents").text));
	/* A yes to all three rights says so in words. */
	if (json_get_bool(quote, "allThree", false))
		options = options_of(WORDS_YES_ALL_THREE, WORDS_YES_ALL_THREE);
	else if (s->a->forms && limits != NULL)
		form = json_pack("{s:{s:s,s:s,s:O*},s:{s:s,s:s,s:O*}}", "max_cost_cents", "type",
				 "number", "title", WORDS_FORM_COST, "default",
				 json_object_get(limits, "costCents"), "timeout", "type", "number",
				 "title", WORDS_FORM_TIME, "default",
				 json_object_get(limits, "seconds"));
	else
		options = options_of(WORDS_YES, yes);
	if (waits) {
		snprintf(s->shown, sizeof(s->shown), "%s", id);
		ask(s, id, title, json_str(p, "message"), form, options);
	} else {
		json_decref(form);
		json_decref(options);
	}
	json_decref(p);
	return waits;
}

/* The same of a run's question; one without choices and without a form is answered in words. */
static bool ask_question(struct acp_session *s, const struct acp_ask *q)
{
	const json_t *waits, *choice;
	json_t *run = NULL, *form = NULL, *options = NULL;
	const char *question;
	char tool[80];
	size_t i;

	(void)acp_call(s, NULL, &run, NULL, "/runs/%s", q->id);
	waits = json_object_get(run, "waiting_for");
	question = json_str(waits, "question");
	snprintf(tool, sizeof(tool), "%s/%s", q->id, q->call);
	if (strcmp(json_str(waits, "call_id"), q->call) != 0)
		; /* it waits no more */
	else if (strcmp(json_str(waits, "kind"), "approval") == 0)
		options = options_of(WORDS_YES, WORDS_YES);
	else if (json_array_size(json_object_get(waits, "choices")) > 0)
		options = json_array();
	else if (s->a->forms)
		form = json_pack("{s:{s:s,s:s}}", "answer", "type", "string", "title",
				 WORDS_FORM_ANSWER);
	else
		sayf(s, WORDS_ASKS("", q->id, question));
	json_array_foreach(json_object_get(waits, "choices"), i, choice)
	{
		const char *text = json_string_value(choice);

		json_array_append_new(options, option(text, text, true));
	}
	if (form != NULL || options != NULL)
		ask(s, tool, question, question, form, options);
	json_decref(run);
	return form != NULL || options != NULL;
}

bool acp_ask_next(struct acp_session *s)
{
	while (s->nasks > 0) {
		const struct acp_ask q = s->asks[0];

		if (q.call[0] != '\0' ? ask_question(s, &q) : ask_quote(s, q.id))
			return true;
		acp_ask_drop(s, 0);
	}
	return false;
}

void acp_keep_own(struct acp_session *s, const char *text)
{
	if (json_array_size(s->own) == OWN_MAX)
		json_array_remove(s->own, 0);
	json_array_append_new(s->own, json_string(text));
}

/* What a person has chosen: the words of an option (its id) or of a form; NULL: nothing. *fields
 * (borrowed) are what a form has. */
static const char *chosen(const struct rpc *m, const json_t **fields)
{
	const json_t *outcome = json_object_get(m->result, "outcome");
	const char *action = json_str(m->result, "action");

	*fields = NULL;
	if (strcmp(json_str(outcome, "outcome"), "selected") == 0)
		return json_get_str(outcome, "optionId");
	if (strcmp(action, "decline") == 0)
		return WORDS_NO;
	if (strcmp(action, "accept") != 0)
		return NULL;
	*fields = json_object_get(m->result, "content");
	return json_object_get(*fields, "answer") != NULL ? json_get_str(*fields, "answer")
							  : WORDS_YES;
}

/* The runtime reads the words, as it does those that are typed. */
void acp_answer(struct acp_session *s, const struct rpc *m)
{
	struct ava_error err = {0};
	const struct acp_ask q = s->asks[0];
	const json_t *fields;
	const char *words = chosen(m, &fields);
	json_t *body, *answer = NULL;
	struct buf b;
	int rv;

	acp_ask_drop(s, 0);
	s->turn.look_ms = clock_mono_ms();
	s->turn.idle = true; /* unless something begins by it, the turn is over */
	if (words == NULL) {
		sayf(s, WORDS_WAITS(q.id, ""));
		return;
	}
	if (q.call[0] != '\0') /* the request id: so that asking twice says it once */
		body = json_pack("{s:s,s:s,s:s}", "text", words, "call_id", q.call, "request_id",
				 id_session().text);
	else
		body = json_pack("{s:s,s:O*}", "answer", words, "set",
				 json_object_size(fields) > 0 ? (json_t *)fields : NULL);
	buf_init(&b, ACP_TEXT_MAX);
	rv = json_dump(&b, body);
	if (rv == 0)
		rv = acp_call(s, b.data, &answer, &err, "/%s/%s/%s",
			      q.call[0] != '\0' ? "runs" : "proposals", q.id,
			      q.call[0] != '\0' ? "steer" : "confirm");
	if (rv != 0)
		acp_say(s, err.text);
	else if (q.call[0] == '\0')
		acp_keep_own(s, words);
	buf_fini(&b);
	json_decref(body);
	json_decref(answer);
}

/* ---- events */

/* The plan is the subagents since the last time that none was at work; its entries know them by
 * _meta. */
static void show_plan(struct acp_session *s)
{
	acp_update(s, "plan", json_pack("{s:O}", "entries", s->plan));
}

static json_t *plan_find(const struct acp_session *s, const char *run)
{
	json_t *entry;
	size_t i;

	json_array_foreach(s->plan, i, entry)
	{
		if (strcmp(json_str(json_object_get(entry, "_meta"), "run"), run) == 0)
			return entry;
	}
	return NULL;
}

/* It has a tool call in the editor. */
static bool plan_calls(const json_t *entry)
{
	return json_get_bool(json_object_get(entry, "_meta"), "call", false);
}

static void plan_add(struct acp_session *s, const char *run, const char *title)
{
	const json_t *entry;
	size_t i, live = 0;

	json_array_foreach(s->plan, i, entry) live +=
		strcmp(json_str(entry, "status"), "completed") != 0;
	if (live == 0)
		json_array_clear(s->plan);
	if (json_array_size(s->plan) < ACP_RUNS_MAX && plan_find(s, run) == NULL)
		json_array_append_new(s->plan,
				      json_pack("{s:o,s:s,s:s,s:{s:s,s:b}}", "content",
						title_of(title), "priority", "medium", "status",
						"pending", "_meta", "run", run, "call", s->wait));
}

static void show_user(struct acp_session *s, const json_t *e, const json_t *c)
{
	const char *text = json_str(c, "text");
	const json_t *own;
	size_t i;

	json_array_foreach(s->own, i, own)
	{
		const char *mine = json_string_value(own);

		if (json_get_bool(c, "cut", false) ? strncmp(mine, text, strlen(text)) != 0
						   : strcmp(mine, text) != 0)
			continue;
		json_array_remove(s->own, i);
		if (s->turn.failed != NULL) /* of a turn of Ava's before this one */
			acp_say(s, s->turn.failed);
		free(s->turn.failed);
		s->turn.failed = NULL;
		return;
	}
	chunk(s, person_text, ++s->messages, text, strlen(text));
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
		acp_say(s, text);
	buf_reset(had);
	s->turn.cut = false;
}

static bool is_spawn(const json_t *c)
{
	return strncmp(json_str(c, "name"), "spawn_", 6) == 0; /* its quote shows it */
}

static void show_call(struct acp_session *s, const json_t *e, const json_t *c)
{
	const char *name = json_str(c, "name"), *kind, *key;
	json_t *args = json_object_get(c, "args"), *value;
	char title[1024];

	kind = strncmp(name, "read_file", 9) == 0 ? "read"
	       : strstr(name, "search") != NULL   ? "search"
						  : "other";
	snprintf(title, sizeof(title), "%s", name);
	json_object_foreach(args, key, value)
	{
		if (json_is_string(value)) {
			snprintf(title, sizeof(title), "%s: %s", name, json_string_value(value));
			break;
		}
	}
	if (!is_spawn(c))
		tool_call(s, json_str(c, "callId"), title, kind, "in_progress", NULL, args);
}

static void show_call_result(struct acp_session *s, const json_t *e, const json_t *c)
{
	if (!is_spawn(c))
		tool_update(s, json_str(c, "callId"),
			    json_get_bool(c, "success", false) ? "completed" : "failed",
			    json_str(c, "output"));
}

static void show_proposed(struct acp_session *s, const json_t *e, const json_t *c)
{
	acp_ask_add(s, json_str(c, "proposalId"), "");
}

static void show_answered(struct acp_session *s, const json_t *e, const json_t *c)
{
	const char *id = json_str(c, "proposalId"), *type = json_str(e, "eventType");
	bool yes = strcmp(type, "SpawnConfirmed") == 0, put = ask_settled(s, id, "");
	char text[512] = "";

	if (yes && json_str(c, "changes")[0] != '\0')
		snprintf(text, sizeof(text), WORDS_CONFIRMED(json_str(c, "changes")));
	else if (strcmp(type, "SpawnExpired") == 0)
		snprintf(text, sizeof(text), WORDS_EXPIRED(id));
	else if (!yes && json_str(c, "replacedBy")[0] == '\0')
		snprintf(text, sizeof(text), WORDS_REJECTED(id));
	if (put)
		tool_update(s, id, yes ? "completed" : "failed", text);
	else if (text[0] != '\0')
		acp_say(s, text);
}

static void show_spawn(struct acp_session *s, const json_t *e, const json_t *c)
{
	const char *id = json_str(c, "subagentId");
	struct format role = format_role(json_str(c, "role"));
	char title[1024];

	sayf(s, WORDS_SPAWNING(words_mark(WORDS_MARK_START, true), role.text, id));
	snprintf(title, sizeof(title), "%s: %s", role.text, json_str(c, "task"));
	plan_add(s, id, title);
	if (plan_calls(plan_find(s, id)))
		tool_call(s, id, title, "other", "in_progress", NULL, NULL);
	show_plan(s);
}

static void show_started(struct acp_session *s, const json_t *e, const json_t *c)
{
	json_t *entry = plan_find(s, json_str(e, "agentId"));

	if (strcmp(json_str(entry, "status"), "pending") != 0)
		return;
	json_object_set_new(entry, "status", json_string("in_progress"));
	show_plan(s);
}

static void show_activity(struct acp_session *s, const json_t *e, const json_t *c)
{
	const char *run = json_str(e, "agentId");

	if (plan_calls(plan_find(s, run)))
		tool_update(s, run, "in_progress", json_str(c, "text"));
}

/* The line that tells of a run's end in every channel. */
static void say_end(struct acp_session *s, const json_t *c)
{
	const char *id = json_str(c, "subagentId");
	json_t *result = NULL, *status = NULL;
	char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	if (f != NULL && acp_call(s, NULL, &result, NULL, "/runs/%s/result", id) == 0 &&
	    acp_call(s, NULL, &status, NULL, "/runs/%s", id) == 0)
		progress_end(f, json_str(status, "role"), result, status);
	if (f != NULL)
		fclose(f);
	if (len > 0)
		chunk(s, ava_text, ++s->messages, text, len - (text[len - 1] == '\n'));
	else
		sayf(s, WORDS_HAS_ENDED(id, words_status(json_str(c, "status"))));
	free(text);
	json_decref(result);
	json_decref(status);
}

static void show_ended(struct acp_session *s, const json_t *e, const json_t *c)
{
	const char *id = json_str(c, "subagentId");
	bool success = strcmp(json_str(c, "status"), "success") == 0;
	json_t *entry = plan_find(s, id);

	say_end(s, c);
	if (plan_calls(entry))
		tool_update(s, id, success ? "completed" : "failed", json_str(c, "summary"));
	json_object_set_new(entry, "status", json_string("completed"));
	if (entry != NULL)
		show_plan(s);
}

static void show_waiting(struct acp_session *s, const json_t *e, const json_t *c)
{
	const char *id = json_str(c, "subagentId"), *call_id = json_str(c, "callId");
	const char *state = json_str(c, "state");
	char tool[80];

	if (strcmp(state, "asked") == 0) {
		acp_ask_add(s, id, call_id);
		return;
	}
	snprintf(tool, sizeof(tool), "%s/%s", id, call_id);
	if (ask_settled(s, id, call_id))
		tool_update(s, tool, strcmp(state, "answered") == 0 ? "completed" : "failed",
			    json_str(c, "answer"));
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
		{"SpawnProposed", false, show_proposed},
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
	s->seen = MAX(s->seen, i->lsn);
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

	switch (i->kind) {
	case FEED_EVENT:
		show_event(s, i);
		break;
	case FEED_TEXT:
		show_text(s, i);
		break;
	case FEED_THINKING:
		if (s->talking != thought)
			t->thinks = ++s->messages;
		chunk(s, thought, t->thinks, i->data, i->len);
		break;
	case FEED_BUSY:
		t->busy = true;
		break;
	case FEED_IDLE:
		t->busy = t->cut = false;
		t->idle = true;
		t->look_ms = clock_mono_ms();
		buf_reset(&t->streamed);
		break;
	case FEED_LOST: /* Ava's text begins anew then */
		t->busy = t->idle = false;
		t->cut = true;
		break;
	case FEED_BACK:
	case FEED_GONE:
		break;
	}
}

void acp_show(struct acp_session *s)
{
	struct feed_item *i;

	while ((i = feed_take(&s->turn.feed, s->id)) != NULL) {
		s->turn.quiet = 0;
		show_item(s, i);
		free(i);
	}
}

/* ---- an old conversation */

void acp_show_entry(struct acp_session *s, const json_t *entry)
{
	const json_t *message = json_object_get(entry, "message"), *block;
	const char *role = json_str(message, "role");
	json_t *as; /* as an event has it */
	struct buf text;
	size_t i;

	buf_init(&text, ACP_TEXT_MAX);
	json_array_foreach(json_object_get(message, "content"), i, block)
		buf_adds(&text, json_str(block, "text"));
	if (buf_check(&text) != 0 || text.len == 0)
		; /* it has no words */
	else if (strcmp(role, "toolResult") != 0)
		chunk(s, strcmp(role, "user") == 0 ? person_text : ava_text, ++s->messages,
		      text.data, text.len);
	if (strcmp(role, "toolResult") == 0) {
		as = json_pack("{s:s,s:s,s:s,s:b}", "name", json_str(message, "toolName"), "callId",
			       json_str(message, "toolCallId"), "output",
			       text.len > 0 ? text.data : "", "success",
			       !json_get_bool(message, "isError", false));
		show_call_result(s, NULL, as);
		json_decref(as);
	}
	buf_fini(&text);
	json_array_foreach(json_object_get(message, "content"), i, block)
	{
		if (strcmp(json_str(block, "type"), "toolCall") != 0)
			continue;
		as = json_pack("{s:s,s:s,s:O*}", "name", json_str(block, "name"), "callId",
			       json_str(block, "id"), "args", json_object_get(block, "arguments"));
		show_call(s, NULL, as);
		json_decref(as);
	}
}
