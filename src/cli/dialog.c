/* A conversation as a client has it; dialog.h.
 *
 *   daemon ── SSE ──► queue ──► the client that shows it
 *
 * Happy path: the newest lsn is asked, the conversation made or found and followed behind that lsn,
 * so that nothing is missed between the two. Messages are answered by Items. The stream is read
 * only when the queue is empty, once each time; meanwhile Items wait, and the daemon
 * leaves out frames of text.
 *
 * What can fail: there is no such conversation, a request, which says why; a connection, which is
 * made again for as long as it takes; a refusal of the stream, which is told and ends it; memory
 * for news, after which the stream is opened anew behind the last one kept. */
#include "cli/dialog.h"

#include <ava.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/util.h"
#include "base/words.h"
#include "cli/api.h"
#include "codec/json.h"
#include "codec/utf8.h"

#define OPEN_MS   5000 /* longest wait for the stream at the first opening */
#define AGAIN_MS  1000 /* the same at a later opening, while a person types */
#define PAUSE_MS  100  /* first pause between tries; doubled up to PAUSE_MAX */
#define PAUSE_MAX 3000

void dialog_init(struct dialog *d, bool thoughts)
{
	*d = (struct dialog){.thoughts = thoughts, .gone = true};
	list_init(&d->news);
}

void dialog_fini(struct dialog *d)
{
	dialog_leave(d);
	free(d->cwd);
}

/* ---- requests */

int dialog_get(struct dialog *d, json_t **out, struct ava_error *err)
{
	int rv = api_request(NULL, out, err, "/sessions/%s", d->id);

	if (rv == 0)
		d->busy = strcmp(json_str(*out, "status"), "busy") == 0;
	return rv;
}

/* A conversation in which nothing was said is not on disk: a daemon that was started anew does not
 * know it, and it is begun again under its id; unless Ava has told something in it. */
int dialog_model(struct dialog *d, const char *model, struct ava_error *err)
{
	const char *key = model != NULL ? "model" : NULL;
	json_t *answer = NULL;
	char path[sizeof(d->id) + 32];
	int rv = AVA_EEXIST;

	snprintf(path, sizeof(path), "/sessions/%s/model", d->id);
	if (!d->said)
		rv = api_post(&answer, err, "/sessions", "cwd", d->cwd, "session_id", d->id, key,
			      model, NULL);
	if (rv == AVA_EEXIST)
		rv = api_post(&answer, err, path, key, model, NULL);
	if (rv == 0)
		snprintf(d->model, sizeof(d->model), "%s", json_str(answer, "model"));
	json_decref(answer);
	return rv;
}

static int ask_lsn(struct dialog *d, uint64_t *lsn, struct ava_error *err)
{
	json_t *health = NULL;
	int rv = api_request(NULL, &health, err, "/health");

	*lsn = (uint64_t)json_get_int(json_object_get(health, "journal"), "lsn", 0);
	json_decref(health);
	return rv;
}

static int dialog_find(struct dialog *d, struct ava_error *err)
{
	json_t *is = NULL;
	int rv = dialog_get(d, &is, err);
	const char *cwd = json_str(is, "cwd");

	if (rv == 0) {
		snprintf(d->model, sizeof(d->model), "%s", json_str(is, "model"));
		d->said = json_str(is, "title")[0] != '\0';
	}
	/* A conversation whose folder is gone goes on in the current folder. */
	if (rv == 0 && (d->cwd == NULL || cwd[0] == '\0' || access(cwd, F_OK) == 0)) {
		free(d->cwd);
		d->cwd = strdup(cwd);
		rv = d->cwd != NULL ? 0 : err_set(err, AVA_ENOMEM, "out of memory");
	}
	json_decref(is);
	return rv;
}

int dialog_open(struct dialog *d, const char *id, const char *model, struct ava_error *err)
{
	int rv;

	if (id != NULL && (id[0] == '\0' || strspn(id, "0123456789abcdef-") != strlen(id) ||
			   strlen(id) >= sizeof(d->id)))
		return err_set(err, AVA_EINVAL,
			       "\"%.60s\" is not the id of a conversation: `ava sessions` lists "
			       "them",
			       id);
	snprintf(d->id, sizeof(d->id), "%s", id != NULL ? id : id_session().text);
	rv = ask_lsn(d, &d->seen, err);
	if (rv == 0)
		rv = id != NULL ? dialog_find(d, err) : dialog_model(d, model, err);
	return rv;
}

static int dialog_give(int rv, json_t *made, json_t **out)
{
	if (rv == 0)
		*out = made;
	else
		json_decref(made);
	return rv;
}

int dialog_past(struct dialog *d, json_t **out, struct ava_error *err)
{
	json_t *file = NULL, *all = json_array(), *entry;
	uint64_t newest = 0;
	size_t i;
	int rv = api_request(NULL, &file, err, "/sessions/%s/messages", d->id);
	int64_t unreadable = json_get_int(file, "unreadable", 0);

	d->unshown[0] = '\0';
	if (unreadable > 0)
		snprintf(d->unshown, sizeof(d->unshown),
			 WORDS_UNREADABLE(unreadable, json_str(file, "unreadable_first")));
	if (rv == AVA_ETOOBIG) { /* the conversation goes on; its file is too long to show */
		snprintf(d->unshown, sizeof(d->unshown), "What was said before is not shown: %s",
			 err->text);
		*err = (struct ava_error){0};
		rv = 0;
	}
	if (rv == 0)
		rv = ask_lsn(d, &newest, err);
	json_array_foreach(json_object_get(file, "entries"), i, entry)
	{
		/* In the file ids of ava's entries are lsns; ids of pi's entries can be
		 * anything. */
		uint64_t id = strtoull(json_str(entry, "id"), NULL, 16);
		json_t *message = json_object_get(entry, "message");
		const char *alone = json_get_str(message, "content");

		if (id > d->seen && id <= newest)
			continue;
		if (alone != NULL)
			json_object_set_new(
				message, "content",
				json_pack("[{s:s,s:s}]", "type", "text", "text", alone));
		json_array_append(all, entry);
	}
	json_decref(file);
	return dialog_give(rv, all, out);
}

int dialog_asks(struct dialog *d, json_t **out, struct ava_error *err)
{
	json_t *all = NULL;
	int rv = api_request(NULL, &all, err, "/asks?session=%s", d->id);
	json_t *asks = json_incref(json_object_get(all, "asks"));

	json_decref(all);
	return dialog_give(rv, asks, out);
}

int dialog_runs(struct dialog *d, bool all, json_t **out, struct ava_error *err)
{
	json_t *theirs = NULL, *found;
	int rv = api_request(NULL, &theirs, err, "/runs?limit=10000&session=%s%s", d->id,
			     all ? "&all=1" : "");

	found = json_incref(json_object_get(theirs, "runs"));
	json_decref(theirs);
	return dialog_give(rv, found, out);
}

int dialog_say(struct dialog *d, const char *text, const char *shown, struct ava_error *err)
{
	struct session_id request = id_session(); /* asking twice says it once */
	json_t *answer = NULL;
	char path[sizeof(d->id) + 32];
	int rv;

	snprintf(path, sizeof(path), "/sessions/%s/messages", d->id);
	for (int tries = 2; tries > 0; tries--) {
		rv = api_post(&answer, err, path, "text", text, "request_id", request.text, "shown",
			      shown, "cwd", d->cwd, NULL);
		if (rv != AVA_ENOENT || d->said || tries == 1)
			break;
		rv = dialog_model(d, d->model, err);
		if (rv != 0)
			break;
	}
	if (rv == 0) {
		d->said = d->busy = true;
		if (d->nown < DIALOG_OWN_MAX)
			d->own[d->nown++] = strtoull(json_str(answer, "entry"), NULL, 16);
	}
	json_decref(answer);
	return rv;
}

int dialog_stop(struct dialog *d, struct ava_error *err)
{
	json_t *is = NULL;
	int rv = api_request("{}", &is, err, "/sessions/%s/stop", d->id);

	if (rv == 0)
		d->busy = strcmp(json_str(is, "status"), "busy") == 0;
	json_decref(is);
	return rv;
}

void dialog_acknowledge(struct dialog *d, uint64_t lsn, bool insist)
{
	json_t *answer = NULL;
	char path[sizeof(d->id) + 32], body[96];
	int rv;

	if (lsn <= d->acknowledged || !api_is_open() || (d->lost && !insist))
		return;
	d->acknowledged = lsn;
	snprintf(path, sizeof(path), "/sessions/%s/ack", d->id);
	snprintf(body, sizeof(body), "{\"channel\":\"terminal\",\"lsn\":%" PRIu64 "}", lsn);
	rv = insist ? api_request(body, &answer, NULL, "%s", path)
		    : api_call(path, body, &answer, NULL, NULL);
	if (rv != 0) {
		api_close();
	}
	json_decref(answer);
}

/* ---- what happens */

void dialog_free(struct dialog_news *n)
{
	if (n != NULL)
		json_decref(n->item);
	free(n);
}

static struct dialog_news *dialog_put(struct dialog *d, enum dialog_kind kind, const char *text,
				      size_t len)
{
	struct dialog_news *n = calloc(1, sizeof(*n) + len + 1);

	if (n == NULL)
		return NULL;
	n->kind = kind;
	n->len = len;
	memcpy(n->text, text, len);
	list_add(&d->news, &n->node);
	return n;
}

/* Words of this person's from here: they are the first behind the entry of a message of ours. */
static bool dialog_is_own(struct dialog *d, const struct dialog_news *n)
{
	if (d->nown == 0 || n->is != ITEM_said || n->lsn <= d->own[0] ||
	    json_str(n->item, "run")[0] != '\0' ||
	    strcmp(json_str(json_object_get(n->item, "detail"), "by"), "person") != 0)
		return false;
	memmove(d->own, d->own + 1, --d->nown * sizeof(d->own[0]));
	return true;
}

static struct dialog_news *put_item(struct dialog *d, const struct sse_event *e)
{
	struct dialog_news *n = dialog_put(d, DIALOG_ITEM, "", 0);

	if (n == NULL)
		return NULL;
	n->item = json_parse(e->data, e->len, NULL);
	n->is = item_kind_of(json_str(n->item, "kind"));
	n->lsn = strtoull(e->id, NULL, 10);
	d->last = n->lsn;
	if (dialog_is_own(d, n))
		n->kind = DIALOG_OWN;
	return n;
}

/* A piece of text as the Item will have it: what would do something to a screen is visible. */
static struct dialog_news *put_text(struct dialog *d, enum dialog_kind kind, const char *text)
{
	struct dialog_news *n = NULL;
	struct buf seen;

	buf_init(&seen, 16u << 20);
	if (utf8_terminal(&seen, text, strlen(text), true) == 0)
		n = dialog_put(d, kind, seen.len > 0 ? seen.data : "", seen.len);
	buf_fini(&seen);
	return n;
}

static int dialog_on_event(const struct sse_event *e, void *user)
{
	struct dialog *d = user;
	bool text = strcmp(e->event, "text") == 0, turn = strcmp(e->event, "turn") == 0;
	bool thinking = d->thoughts && strcmp(e->event, "thinking") == 0;
	json_t *frame = text || turn || thinking ? json_parse(e->data, e->len, NULL) : NULL;
	bool busy = strcmp(json_str(frame, "state"), "busy") == 0, kept = true;

	if (text || thinking)
		kept = put_text(d, text ? DIALOG_TEXT : DIALOG_THINKING, json_str(frame, "text"));
	else if (turn)
		kept = dialog_put(d, busy ? DIALOG_BUSY : DIALOG_IDLE, "", 0);
	else if (strcmp(e->event, "item") == 0)
		kept = put_item(d, e);
	json_decref(frame);
	return kept ? 0 : AVA_ENOMEM;
}

/* Connect without notes, which would stand in the picture. */
static int dialog_connect(void *user, struct client **c, struct ava_error *err)
{
	return api_connect(API_SILENT, c, err);
}

/* Queue news from the stream. */
static void read_stream(struct dialog *d, int64_t wait_ms)
{
	struct ava_error err = {0};
	int64_t now = clock_mono_ms();
	int rv;

	if (d->gone || (d->stream.c == NULL && now < d->retry_ms))
		return;
	d->stream.open_ms = wait_ms;
	rv = follow_look(&d->stream, &err);
	if (rv >= 0) {
		if (d->lost) /* frames come again from here on */
			dialog_put(d, DIALOG_BACK, "", 0);
		d->lost = false;
		d->pause_ms = PAUSE_MS;
		return;
	}
	d->gone = rv == AVA_EINVAL || rv == AVA_EDENIED || rv == AVA_EUNSUPPORTED;
	if (d->gone)
		dialog_put(d, DIALOG_GONE, err.text, strlen(err.text));
	else if (!d->lost)
		d->lost = dialog_put(d, DIALOG_LOST, "", 0) != NULL;
	d->retry_ms = now + d->pause_ms;
	d->pause_ms = MIN(d->pause_ms * 2, PAUSE_MAX);
}

static struct dialog_news *queued(struct dialog *d)
{
	struct dialog_news *n = LIST_FIRST(&d->news, struct dialog_news, node);

	if (n != NULL)
		list_del(&n->node);
	return n;
}

struct dialog_news *dialog_take(struct dialog *d)
{
	struct dialog_news *n;

	if (list_empty(&d->news))
		read_stream(d, AGAIN_MS);
	n = queued(d);
	if (n != NULL && (n->kind == DIALOG_BUSY || n->kind == DIALOG_IDLE))
		d->busy = n->kind == DIALOG_BUSY;
	return n;
}

void dialog_follow(struct dialog *d)
{
	dialog_leave(d);
	d->gone = false;
	d->retry_ms = 0;
	d->pause_ms = PAUSE_MS;
	d->last = d->seen;
	snprintf(d->path, sizeof(d->path), "/api/v1/events?session=%s&items=only", d->id);
	d->stream = (struct follower){
		.path = d->path, .connect = dialog_connect, .on_event = dialog_on_event, .user = d};
	snprintf(d->stream.last, sizeof(d->stream.last), "%" PRIu64, d->seen);
	read_stream(d, OPEN_MS);
}

int dialog_fd(const struct dialog *d)
{
	return d->stream.c != NULL ? client_fd(d->stream.c) : -1;
}

int64_t dialog_next(const struct dialog *d)
{
	if (d->gone)
		return -1;
	return d->stream.c != NULL ? d->stream.heard_ms + FOLLOW_QUIET_MS : d->retry_ms;
}

void dialog_leave(struct dialog *d)
{
	struct dialog_news *n;

	follow_close(&d->stream);
	d->lost = false;
	d->gone = true;
	while ((n = queued(d)) != NULL)
		dialog_free(n);
}
