/* Session entries as pi reads them. Every entry has type, id, parentId and a
 * timestamp; a message holds its own time in milliseconds as well. Only the
 * buffer can fail: memory, or its bound. */
#include "subagent/session_entry.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "agent/turn.h"
#include "base/clock.h"
#include "codec/json.h"
#include "provider/dialect.h"
#include "provider/model.h"

static void session_entry_begin(struct jw *w, struct buf *out, const struct session_entry *e,
				const char *type)
{
	jw_init(w, out);
	jw_object(w, NULL);
	jw_str(w, "type", type);
	jw_str(w, "id", e->id);
	jw_null(w, "parentId");
	jw_time(w, "timestamp", e->wall_ms);
}

static int session_entry_end(struct jw *w)
{
	jw_end(w);
	return buf_check(w->out);
}

/* Service and model as pi names them: a model without a service has its dialect there, and `key`
 * has the id without the service. */
static void model_of(struct jw *w, const struct model *m, const char *key)
{
	const char *service = m->provider ? m->provider->name : m->dialect->name;
	size_t n = strlen(service);
	bool named = strncmp(m->id, service, n) == 0 && m->id[n] == '/';

	jw_str(w, "provider", service);
	jw_str(w, key, m->id + (named ? n + 1 : 0));
}

bool session_model_read(const json_t *line, char *id, size_t size)
{
	const char *model = json_get_str(line, "modelId"), *service;
	struct model known;
	size_t n;

	if (!model) {
		line = json_object_get(line, "message");
		model = json_get_str(line, "model");
	}
	if (!model)
		return false;
	service = json_str(line, "provider");
	n = strlen(service);
	if (strncmp(model, service, n) != 0 || model[n] != '/') {
		snprintf(id, size, "%s/%s", service, model);
		if (model_restore(id, &known, NULL) == 0)
			return true;
	}
	snprintf(id, size, "%s", model); /* a model of no service, or an older form of ava's */
	return model_restore(id, &known, NULL) == 0;
}

int session_model(struct buf *out, const struct session_entry *e, const struct model *m)
{
	struct jw w;

	session_entry_begin(&w, out, e, "model_change");
	model_of(&w, m, "modelId");
	return session_entry_end(&w);
}

static void message_begin(struct jw *w, struct buf *out, const struct session_entry *e,
			  const char *role)
{
	session_entry_begin(w, out, e, "message");
	jw_object(w, "message");
	jw_str(w, "role", role);
}

static void message_end(struct jw *w, const struct session_entry *e)
{
	jw_int(w, "timestamp", e->wall_ms);
	jw_end(w);
}

int session_header(struct buf *out, const char *id, int64_t wall_ms, const char *cwd,
		   const char *user, const char *origin)
{
	struct jw w;

	jw_init(&w, out);
	jw_object(&w, NULL);
	jw_str(&w, "type", "session");
	jw_int(&w, "version", 3);
	jw_str(&w, "id", id);
	jw_time(&w, "timestamp", wall_ms);
	jw_str(&w, "cwd", cwd);
	if (user[0])
		jw_str(&w, "userId", user);
	jw_str(&w, "origin", origin);
	return session_entry_end(&w);
}

static void session_entry_text_block(struct jw *w, const char *text, size_t len)
{
	jw_object(w, NULL);
	jw_str(w, "type", "text");
	jw_strn(w, "text", text, len);
	jw_end(w);
}

int session_user(struct buf *out, const struct session_entry *e, const char *text, size_t len)
{
	struct jw w;

	message_begin(&w, out, e, "user");
	jw_array(&w, "content");
	session_entry_text_block(&w, text, len);
	jw_end(&w);
	message_end(&w, e);
	jw_str(&w, "source", "ava"); /* others may append to the file as well */
	if (e->request && e->request[0])
		jw_str(&w, "requestId", e->request);
	if (e->shown && e->shown[0])
		jw_str(&w, "shown", e->shown);
	return session_entry_end(&w);
}

/* pi's names for the forms of requests. */
static const char *api_word(const struct model *m)
{
	if (strcmp(m->dialect->name, "anthropic") == 0)
		return "anthropic-messages";
	return strcmp(m->dialect->name, "openai") == 0 ? "openai-completions" : m->dialect->name;
}

/* `sentence`: why there is no answer; NULL: there is one. */
static int assistant(struct buf *out, const struct session_entry *e, const struct turn *t,
		     const struct model *m, const char *stop, const char *sentence)
{
	struct jw w;
	const struct usage *u = &t->usage;
	int64_t cost = u->cost_microusd < 0 ? 0 : u->cost_microusd;

	message_begin(&w, out, e, "assistant");
	jw_array(&w, "content");
	if (t->thinking_len > 0) {
		jw_object(&w, NULL);
		jw_str(&w, "type", "thinking");
		jw_strn(&w, "thinking", t->thinking, t->thinking_len);
		jw_end(&w);
	}
	if (t->text_len > 0)
		session_entry_text_block(&w, t->text, t->text_len);
	for (unsigned i = 0; i < t->ncalls; i++) {
		const struct turn_call *c = &t->calls[i];

		jw_object(&w, NULL);
		jw_str(&w, "type", "toolCall");
		jw_str(&w, "id", c->id);
		jw_str(&w, "name", c->name);
		jw_raw(&w, "arguments", c->args ? c->args : "{}", c->args ? c->args_len : 2);
		jw_end(&w);
	}
	jw_end(&w);
	jw_str(&w, "api", api_word(m));
	model_of(&w, m, "model");
	jw_object(&w, "usage");
	jw_int(&w, "input", u->input - u->cache_read - u->cache_write);
	jw_int(&w, "output", u->output);
	jw_int(&w, "cacheRead", u->cache_read);
	jw_int(&w, "cacheWrite", u->cache_write);
	jw_int(&w, "totalTokens", u->input + u->output);
	jw_object(&w, "cost");
	jw_int(&w, "input", 0); /* only the sum is known of every service */
	jw_int(&w, "output", 0);
	jw_int(&w, "cacheRead", 0);
	jw_int(&w, "cacheWrite", 0);
	jw_fixed(&w, "total", cost, 6);
	jw_end(&w);
	jw_end(&w);
	jw_str(&w, "stopReason", stop);
	if (sentence)
		jw_str(&w, "errorMessage", sentence);
	message_end(&w, e);
	return session_entry_end(&w);
}

int session_assistant(struct buf *out, const struct session_entry *e, const struct turn *t,
		      const struct model *m)
{
	return assistant(out, e, t, m,
			 t->ncalls > 0                 ? "toolUse"
			 : t->stop == TURN_STOP_LENGTH ? "length"
						       : "stop",
			 NULL);
}

int session_failure(struct buf *out, const struct session_entry *e, const struct model *m,
		    bool stopped, const char *sentence)
{
	static const struct turn none; /* the log has the turn's usage */

	return assistant(out, e, &none, m, stopped ? "aborted" : "error", sentence);
}

int session_tool_result(struct buf *out, const struct session_entry *e, const struct turn_call *c)
{
	struct jw w;

	message_begin(&w, out, e, "toolResult");
	jw_str(&w, "toolCallId", c->id);
	jw_str(&w, "toolName", c->name);
	jw_array(&w, "content");
	session_entry_text_block(&w, c->output ? c->output : "", c->output ? c->output_len : 0);
	jw_end(&w);
	jw_bool(&w, "isError", !c->success);
	message_end(&w, e);
	return session_entry_end(&w);
}

/* ---- subagents */

static const char *event_word(const struct session_agent_event *a)
{
	if (!a->completed_ms)
		return "subagent:start";
	if (a->status == AVA_SUCCESS)
		return "subagent:complete";
	return a->status == AVA_CANCELLED ? "subagent:aborted" : "subagent:error";
}

int session_agent_event(struct buf *out, const struct session_entry *e,
			const struct session_agent_event *a)
{
	struct jw w;

	session_entry_begin(&w, out, e, "agent_event");
	jw_str(&w, "eventType", event_word(a));
	jw_str(&w, "jobId", a->run);
	jw_str(&w, "requestedBy", a->requested_by);
	jw_str(&w, "agentName", a->role);
	jw_str(&w, "mode", a->mode);
	jw_int(&w, "pid", getpid());
	jw_time(&w, "startedAt", a->started_ms);
	if (!a->completed_ms)
		return session_entry_end(&w);
	jw_time(&w, "completedAt", a->completed_ms);
	jw_int(&w, "durationMs", a->duration_ms);
	jw_str(&w, "model", a->model);
	jw_object(&w, "usage");
	jw_int(&w, "input", a->input - a->cache_read - a->cache_write);
	jw_int(&w, "output", a->output);
	jw_int(&w, "cacheRead", a->cache_read);
	jw_int(&w, "cacheWrite", a->cache_write);
	jw_object(&w, "cost");
	if (a->cost_microusd < 0)
		jw_null(&w, "total");
	else
		jw_fixed(&w, "total", a->cost_microusd, 6);
	jw_end(&w);
	jw_end(&w);
	jw_str(&w, "status",
	       a->status == AVA_SUCCESS     ? "completed"
	       : a->status == AVA_CANCELLED ? "aborted"
					    : "failed");
	jw_preview(&w, "summary", a->summary, strlen(a->summary), 400);
	jw_str(&w, "result", a->result);
	return session_entry_end(&w);
}

/* ---- names */

int session_path(char *out, size_t size, const char *cwd, int64_t wall_ms, const char *id)
{
	char time[CLOCK_ISO_LEN + 1], folder[SESSION_FOLDER_MAX + 1];
	size_t n = 0;
	int len;

	cwd += *cwd == '/';
	for (; *cwd && n < SESSION_FOLDER_MAX; cwd++) {
		bool plain = isalnum((unsigned char)*cwd) || *cwd == '.' || *cwd == '_';

		folder[n++] = plain ? *cwd : '-';
	}
	folder[n] = 0;
	clock_iso(wall_ms, time);
	for (char *c = time; *c; c++)
		if (*c == ':' || *c == '.')
			*c = '-';
	len = snprintf(out, size, "sessions/--%s--/%s_%s.jsonl", folder, time, id);
	return len < 0 || (size_t)len >= size ? AVA_ETOOBIG : 0;
}

const char *session_path_id(const char *name, size_t *len)
{
	const char *at = strrchr(name, '_'), *dot = at ? strchr(at, '.') : NULL;

	if (!dot || strcmp(dot, ".jsonl") != 0 || dot - at < 9)
		return NULL;
	*len = (size_t)(dot - at - 1);
	return at + 1;
}
