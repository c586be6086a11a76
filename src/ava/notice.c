/* An event as what a channel is given: title and text for people, ids for
 * programs. Text of models and tools is data: it is cut, and what could move a
 * cursor or turn a line around becomes visible text here, once, for all
 * channels. What can fail: an event of another form than ours is no notice. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ava/delivery.h"
#include "ava/state.h"
#include "base/clock.h"
#include "codec/json.h"
#include "codec/utf8.h"

#define TITLE_MAX      300
#define QUESTION_SHOWN 150 /* characters of it in the title */

static const char *const type_names[] = {
	[ITEM_MESSAGE] = "AssistantMessage", [ITEM_RESULT] = "SubagentComplete",
	[ITEM_PROPOSAL] = "SpawnProposed",   [ITEM_EXPIRED] = "SpawnExpired",
	[ITEM_QUESTION] = "Waiting",
};

static int kind_of(const char *type)
{
	for (int i = 0; i < ITEM_NKINDS; i++)
		if (strcmp(type_names[i], type) == 0)
			return i;
	return -1;
}

void item_free(struct item *it)
{
	list_del(&it->node);
	free(it->json);
	free(it);
}

static void make_title(const struct item *it, const json_t *event, char out[TITLE_MAX])
{
	const json_t *c = json_object_get(event, "content");

	switch (it->kind) {
	case ITEM_RESULT:
		snprintf(out, TITLE_MAX, "%.30s (%.60s) has ended: %.40s",
			 json_str(c, "subagentId"), json_str(event, "traceId"),
			 json_str(c, "status"));
		return;
	case ITEM_PROPOSAL:
		snprintf(out, TITLE_MAX, "%s waits for your answer", it->key);
		return;
	case ITEM_EXPIRED:
		snprintf(out, TITLE_MAX, "%s has expired without an answer", it->key);
		return;
	case ITEM_QUESTION:
		snprintf(out, TITLE_MAX, "%.30s (%.60s) asks you: %.*s", json_str(c, "subagentId"),
			 json_str(event, "traceId"),
			 (int)utf8_prefix(json_str(c, "question"), strlen(json_str(c, "question")),
					  QUESTION_SHOWN),
			 json_str(c, "question"));
		return;
	default:
		snprintf(out, TITLE_MAX, "Ava");
	}
}

static const char *text_of(const struct item *it, const json_t *event)
{
	const json_t *c = json_object_get(event, "content");

	switch (it->kind) {
	case ITEM_RESULT:
		return json_str(c, "summary");
	case ITEM_PROPOSAL:
		return json_str(json_object_get(c, "config"), "task");
	case ITEM_EXPIRED:
		return "";
	case ITEM_QUESTION:
		return json_str(c, "question");
	default:
		return json_str(c, "text");
	}
}

/* How to answer it, beside its text. */
static void write_question(struct jw *w, const json_t *c)
{
	const json_t *choices = json_object_get(c, "choices");
	struct buf b;

	jw_str(w, "call_id", json_str(c, "callId"));
	jw_str(w, "kind", json_str(c, "kind"));
	buf_init(&b, 1u << 17);
	if (json_array_size(choices) > 0 && json_dump(&b, choices) == 0)
		jw_raw(w, "choices", b.data, b.len);
	buf_fini(&b);
}

static void write_item(struct jw *w, const struct item *it, const json_t *event)
{
	const json_t *c = json_object_get(event, "content");
	const char *text = text_of(it, event);
	size_t len = strlen(text), keep = utf8_prefix(text, len, EVENT_PREVIEW_CHARS);
	char title[TITLE_MAX];
	struct buf clean;

	make_title(it, event, title);
	jw_object(w, NULL);
	jw_int(w, "lsn", (int64_t)it->lsn);
	jw_str(w, "type", type_names[it->kind]);
	jw_str(w, "time", json_str(event, "timestamp"));
	jw_str(w, "session_id", it->session);
	jw_str(w, "run_id", json_str(c, "subagentId"));
	jw_str(w, "trace_id", json_str(event, "traceId"));
	jw_str(w, "proposal_id", it->kind == ITEM_QUESTION ? "" : it->key);
	if (it->kind == ITEM_QUESTION)
		write_question(w, c);
	jw_str(w, "status", it->kind == ITEM_RESULT ? json_str(c, "status") : "");
	buf_init(&clean, 1u << 16);
	(void)utf8_terminal(&clean, title, strlen(title), false);
	jw_strn(w, "title", clean.data ? clean.data : "", clean.len);
	buf_reset(&clean);
	(void)utf8_terminal(&clean, text, keep, true);
	jw_strn(w, "text", clean.data ? clean.data : "", clean.len);
	if (keep < len || json_get_bool(c, "cut", false))
		jw_bool(w, "cut", true);
	jw_end(w);
	if (buf_check(&clean) != 0)
		w->out->failed = true;
	buf_fini(&clean);
}

/* Of a question: false when it is none. */
static bool make_key(char key[ITEM_KEY], const char *run, const char *call)
{
	return run[0] && call[0] && snprintf(key, ITEM_KEY, "%s:%s", run, call) < ITEM_KEY;
}

/* What is kept of it beside its text. False: it is not of our form. */
static bool fill(struct item *it, const json_t *event)
{
	const json_t *c = json_object_get(event, "content");
	const char *proposal = json_str(c, "proposalId"), *session = json_str(event, "sessionId");
	const char *time = json_str(event, "timestamp");
	int64_t lsn = json_get_int(event, "lsn", 0);
	bool wants_id = it->kind == ITEM_PROPOSAL || it->kind == ITEM_EXPIRED;

	if (lsn <= 0 || (wants_id && !id_is_proposal(proposal)) ||
	    strlen(session) >= sizeof(it->session) ||
	    (it->kind == ITEM_QUESTION &&
	     !make_key(it->key, json_str(c, "subagentId"), json_str(c, "callId"))))
		return false;
	it->lsn = it->cover = (uint64_t)lsn;
	it->wall_ms = MAX(clock_parse_iso(time, strlen(time)), 0);
	snprintf(it->session, sizeof(it->session), "%s", session);
	if (wants_id)
		snprintf(it->key, sizeof(it->key), "%s", proposal);
	return true;
}

static int make(struct item **out, int kind, const json_t *event)
{
	struct item *it = calloc(1, sizeof(*it));
	struct buf b;
	struct jw w;
	int rv = AVA_ENOENT;

	if (!it)
		return AVA_ENOMEM;
	list_init(&it->node);
	it->kind = (enum item_kind)kind;
	buf_init(&b, 1u << 18);
	if (fill(it, event)) {
		jw_init(&w, &b);
		write_item(&w, it, event);
		it->json = buf_take(&b, NULL);
		rv = it->json ? 0 : AVA_ENOMEM;
	}
	buf_fini(&b);
	if (rv == 0)
		*out = it;
	else
		item_free(it);
	return rv;
}

static bool is_asked(const json_t *event)
{
	return strcmp(json_str(json_object_get(event, "content"), "state"), "asked") == 0;
}

int item_from_event(struct item **out, const char *type, const char *line, size_t len)
{
	int kind = kind_of(type), rv;
	json_t *event;

	if (kind < 0)
		return AVA_ENOENT;
	event = json_parse(line, len, NULL);
	if (kind == ITEM_QUESTION && !is_asked(event))
		rv = AVA_ENOENT;
	else
		rv = event ? make(out, kind, event) : AVA_ENOENT;
	json_decref(event);
	return rv;
}

bool item_answers(const char *type, const char *line, size_t len, char key[ITEM_KEY])
{
	bool waiting = strcmp(type, "Waiting") == 0, answers;
	const json_t *c;
	json_t *event;

	if (!waiting && strcmp(type, "SpawnConfirmed") != 0 && strcmp(type, "SpawnRejected") != 0 &&
	    strcmp(type, "SpawnExpired") != 0)
		return false;
	event = json_parse(line, len, NULL);
	c = json_object_get(event, "content");
	if (waiting)
		answers = !is_asked(event) &&
			  make_key(key, json_str(c, "subagentId"), json_str(c, "callId"));
	else
		answers = snprintf(key, ITEM_KEY, "%s", json_str(c, "proposalId")) > 0;
	json_decref(event);
	return answers;
}
