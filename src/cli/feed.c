/* The feed of a conversation; feed.h.
 *
 *   daemon ── SSE ──► filter ──► queue ──► whoever shows it
 *
 * Nothing is read before the queue is empty, and then what one read brings; the daemon waits:
 * what is durable is read later, frames of text are left out by the daemon.
 *
 * What can fail: a connection, which is made again for as long as it takes; a refusal (no
 * such conversation), which is told and ends it; memory for an item, after which the stream
 * is opened anew behind the last one kept. */
#include "cli/feed.h"

#include <ava.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/settings.h"
#include "base/util.h"
#include "cli/api.h"
#include "client/client.h"
#include "codec/json.h"

#define QUIET_MS  45000 /* three heartbeats without one: it is lost */
#define OPEN_MS   5000  /* that opening waits for the stream, at the most */
#define AGAIN_MS  1000  /* and opening again, while a person types */
#define PAUSE_MS  100   /* the first; doubled up to PAUSE_MAX */
#define PAUSE_MAX 3000

/* 0 or AVA_ENOMEM. `e` NULL: not an event. */
static int put(struct feed *f, enum feed_kind kind, const char *data, size_t len,
	       const struct sse_event *e)
{
	struct feed_item *i = calloc(1, sizeof(*i) + len + 1);

	if (i == NULL)
		return AVA_ENOMEM;
	i->kind = kind;
	i->len = len;
	memcpy(i->data, data, len);
	if (e != NULL) {
		snprintf(i->type, sizeof(i->type), "%s", e->event);
		i->lsn = strtoull(e->id, NULL, 10);
	}
	list_add(&f->items, &i->node);
	return 0;
}

/* Events that a person sees; the rest is in `ava logs`. Of the calls of models those of
 * subagents, whose first one is their start. */
static bool is_shown(const struct feed *f, const struct sse_event *e)
{
	static const char ava[] = "\"agentId\":\"ava\"";
	static const char *const shown[] = {
		"UserMessage",    "AssistantMessage", "SpawnProposed",
		"SpawnConfirmed", "SpawnRejected",    "SpawnExpired",
		"SubagentSpawn",  "Activity",         "SubagentComplete",
		"Error",          "Waiting",          "StateWrite",
	};

	for (size_t i = 0; i < ARRAY_LEN(shown); i++)
		if (strcmp(e->event, shown[i]) == 0)
			return true;
	if (strcmp(e->event, "ToolCall") == 0 || strcmp(e->event, "ToolResult") == 0 ||
	    strcmp(e->event, "InferEnd") == 0)
		return f->all && memmem(e->data, e->len, ava, strlen(ava));
	return strcmp(e->event, "InferStart") == 0 && !memmem(e->data, e->len, ava, strlen(ava));
}

/* The event of what was said is the first of its kind behind the entry. */
static bool is_own(struct feed *f, const struct sse_event *e)
{
	if (f->nown == 0 || strcmp(e->event, "UserMessage") != 0 ||
	    strtoull(e->id, NULL, 10) <= f->own[0])
		return false;
	memmove(f->own, f->own + 1, --f->nown * sizeof(f->own[0]));
	return true;
}

static int on_event(const struct sse_event *e, void *user)
{
	struct feed *f = user;
	bool text = strcmp(e->event, "text") == 0, turn = strcmp(e->event, "turn") == 0;
	bool thinking = f->all && strcmp(e->event, "thinking") == 0;
	json_t *frame = text || turn || thinking ? json_parse(e->data, e->len, NULL) : NULL;
	const char *said = json_str(frame, "text");
	int rv = 0;

	if (text || thinking)
		rv = put(f, text ? FEED_TEXT : FEED_THINKING, said, strlen(said), NULL);
	else if (turn)
		rv = put(f, strcmp(json_str(frame, "state"), "busy") == 0 ? FEED_BUSY : FEED_IDLE,
			 "", 0, NULL);
	else if (is_own(f, e))
		rv = put(f, FEED_OWN, "", 0, e);
	else if (is_shown(f, e))
		rv = put(f, FEED_EVENT, e->data, e->len, e);
	if (rv == 0 && e->id[0] != '\0')
		snprintf(f->last_id, sizeof(f->last_id), "%s", e->id);
	json_decref(frame);
	return rv;
}

/* Without notes, which would stand in the picture. */
static int feed_connect(struct feed *f, const char *session, int64_t wait_ms, struct ava_error *err)
{
	char root[ROOT_PATH_MAX], path[128];
	int rv = settings_data_root(root, sizeof(root), err);

	if (rv == 0)
		rv = client_open(root, true, &f->c, err);
	if (rv != 0)
		return rv;
	snprintf(path, sizeof(path), "/api/v1/events?session=%s", session);
	client_set_deadline(f->c, clock_mono_ms() + wait_ms);
	rv = client_stream_open(f->c, path, f->last_id, on_event, f, err);
	client_set_deadline(f->c, -1);
	if (rv != 0)
		return rv;
	if (f->lost) /* no frame is missed from now on */
		put(f, FEED_BACK, "", 0, NULL);
	f->lost = false;
	f->heard_ms = clock_mono_ms();
	f->pause_ms = PAUSE_MS;
	return 0;
}

/* What has come goes into the queue. */
static void feed_read(struct feed *f, const char *session, int64_t wait_ms)
{
	struct ava_error err = {0};
	int64_t now = clock_mono_ms();
	int rv = 0;

	if (f->gone || (f->c == NULL && now < f->retry_ms))
		return;
	if (f->c == NULL)
		rv = feed_connect(f, session, wait_ms, &err);
	else
		rv = client_stream_take(f->c, &err);
	if (rv == 1)
		f->heard_ms = now;
	if (rv >= 0 && !client_stream_done(f->c) && now - f->heard_ms < QUIET_MS)
		return;
	client_close(f->c);
	f->c = NULL;
	f->gone = rv == AVA_EINVAL || rv == AVA_EDENIED || rv == AVA_EUNSUPPORTED;
	if (f->gone)
		put(f, FEED_GONE, err.text, strlen(err.text), NULL);
	else if (!f->lost)
		f->lost = put(f, FEED_LOST, "", 0, NULL) == 0;
	f->retry_ms = now + f->pause_ms;
	f->pause_ms = MIN(f->pause_ms * 2, PAUSE_MAX);
}

struct feed_item *feed_take(struct feed *f, const char *session)
{
	struct feed_item *i;

	if (list_empty(&f->items))
		feed_read(f, session, AGAIN_MS);
	i = LIST_FIRST(&f->items, struct feed_item, node);
	if (i != NULL)
		list_del(&i->node);
	return i;
}

void feed_open(struct feed *f, const char *session, uint64_t lsn)
{
	f->lost = f->gone = false;
	f->retry_ms = 0;
	f->pause_ms = PAUSE_MS;
	snprintf(f->last_id, sizeof(f->last_id), "%" PRIu64, lsn);
	feed_read(f, session, OPEN_MS);
}

int feed_say(struct feed *f, struct client **c, const char *session, const char *text,
	     const char *seen, struct ava_error *err)
{
	struct session_id request = id_session(); /* so that asking twice says it once */
	json_t *answer = NULL;
	char path[128];
	int rv;

	snprintf(path, sizeof(path), "/sessions/%s/messages", session);
	rv = api_post(c, &answer, err, path, "text", text, "request_id", request.text, "seen", seen,
		      NULL);
	if (rv == 0 && f->nown < FEED_OWN_MAX)
		f->own[f->nown++] = strtoull(json_str(answer, "entry"), NULL, 16);
	json_decref(answer);
	return rv;
}

int feed_fd(const struct feed *f)
{
	return f->c != NULL ? client_fd(f->c) : -1;
}

int64_t feed_next(const struct feed *f)
{
	if (f->gone)
		return -1;
	return f->c != NULL ? f->heard_ms + QUIET_MS : f->retry_ms;
}

void feed_close(struct feed *f)
{
	struct feed_item *i;

	client_close(f->c);
	f->c = NULL;
	while ((i = LIST_FIRST(&f->items, struct feed_item, node)) != NULL) {
		list_del(&i->node);
		free(i);
	}
}
