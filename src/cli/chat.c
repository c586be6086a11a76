/* A conversation; chat.h.
 *
 * Happy path: the daemon is started, its newest lsn asked, the conversation made
 * or found, and the feed opened behind that lsn, so that nothing is missed
 * between the two. What is said is answered by events of the feed.
 *
 * What can fail: the daemon does not start, there is no such conversation. A
 * message whose acknowledgement was lost is looked for in the conversation
 * before it is said again. */
#include "cli/chat.h"

#include <ava.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/id.h"
#include "base/settings.h"
#include "base/util.h"
#include "cli/api.h"
#include "cli/chat_show.h"
#include "cli/chat_unseen.h"
#include "cli/root.h"
#include "cli/task.h"
#include "cli/term.h"
#include "codec/json.h"

#define TRIES 6

static void pause_ms(long ms)
{
	nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000}, NULL);
}

static bool was_lost(int rv)
{
	return rv == AVA_ECONNECT || rv == AVA_EUNKNOWN || rv == AVA_EPROTO;
}

int chat_call(struct chat *c, const char *path, const char *body, json_t **out,
	      struct ava_error *err)
{
	int rv = AVA_ECONNECT;

	for (int i = 0; i < TRIES && was_lost(rv); i++) {
		if (i > 0)
			pause_ms(50L << i);
		if (c->c == NULL && (rv = api_open(true, &c->c, err)) != 0)
			continue;
		rv = api_call(c->c, body != NULL ? "POST" : "GET", path, body, out, NULL, err);
		if (rv == 0 || !was_lost(rv))
			break;
		client_close(c->c);
		c->c = NULL;
		if (rv == AVA_EUNKNOWN && body != NULL)
			break; /* whoever asked knows whether it may be asked again */
	}
	return rv;
}

int chat_session(struct chat *c, json_t **out, struct ava_error *err)
{
	char path[128];

	snprintf(path, sizeof(path), "/sessions/%s", c->session);
	return chat_call(c, path, NULL, out, err);
}

/* ---- opening */

static int take_session(struct chat *c, const json_t *s, struct ava_error *err)
{
	const char *id = json_get_str(s, "session_id"), *model = json_get_str(s, "model");

	if (id == NULL || strlen(id) >= sizeof(c->session))
		return err_set(err, AVA_EPROTO, "the daemon's answer lacks \"session_id\"");
	snprintf(c->session, sizeof(c->session), "%s", id);
	snprintf(c->model, sizeof(c->model), "%s", model != NULL ? model : "");
	c->busy = strcmp(json_get_str(s, "status") != NULL ? json_get_str(s, "status") : "",
			 "busy") == 0;
	return 0;
}

static int begin(struct chat *c, const char *model, struct ava_error *err)
{
	json_t *s = NULL;
	struct buf body;
	struct jw w;
	int rv;

	buf_init(&body, 65536);
	jw_init(&w, &body);
	jw_object(&w, NULL);
	jw_str(&w, "cwd", c->cwd);
	if (model != NULL)
		jw_str(&w, "model", model);
	jw_end(&w);
	rv = buf_check(&body);
	if (rv == 0)
		rv = chat_call(c, "/sessions", body.data, &s, err);
	if (rv == AVA_EUNKNOWN) /* nothing was said in it: another one will do */
		rv = chat_call(c, "/sessions", body.data, &s, err);
	buf_fini(&body);
	if (rv == 0)
		rv = take_session(c, s, err);
	json_decref(s);
	return rv;
}

/* The newest conversation of this folder. */
static int find_latest(struct chat *c, struct ava_error *err)
{
	json_t *all = NULL;
	const json_t *s;
	size_t i;
	int rv = chat_call(c, "/sessions?limit=1000", NULL, &all, err);

	if (rv != 0)
		return rv;
	rv = AVA_ENOENT;
	json_array_foreach(json_object_get(all, "sessions"), i, s)
	{
		const char *cwd = json_get_str(s, "cwd"), *title = json_get_str(s, "title");

		/* Without a title nothing was said in it yet. */
		if (rv == AVA_ENOENT && cwd != NULL && strcmp(cwd, c->cwd) == 0 && title != NULL &&
		    title[0] != '\0')
			rv = take_session(c, s, err);
	}
	json_decref(all);
	if (rv == AVA_ENOENT)
		err_set(err, rv,
			"there is no conversation of this folder yet: begin one with \"ava\"");
	return rv;
}

static int find(struct chat *c, const char *id, struct ava_error *err)
{
	json_t *s = NULL;
	int rv;

	for (const char *p = id; *p != '\0'; p++)
		if (strchr("0123456789abcdefABCDEF-", *p) == NULL)
			return err_set(err, AVA_EINVAL,
				       "\"%.60s\" is not the id of a conversation, or \"latest\"",
				       id);
	snprintf(c->session, sizeof(c->session), "%s", id);
	rv = chat_session(c, &s, err);
	if (rv == 0)
		rv = take_session(c, s, err);
	json_decref(s);
	return rv;
}

/* The last lsn given so far: what comes behind it is the feed's. */
static int newest_lsn(struct chat *c, struct ava_error *err)
{
	json_t *health = NULL;
	int rv = chat_call(c, "/health", NULL, &health, err);

	if (rv != 0)
		return rv;
	c->seen = (uint64_t)MAX(json_get_int(json_object_get(health, "journal"), "lsn", 0), 0);
	json_decref(health);
	return 0;
}

static int follow(struct chat *c, struct ava_error *err)
{
	char root[ROOT_PATH_MAX];
	int rv = settings_data_root(root, sizeof(root), err);

	feed_close(c->feed);
	c->feed = NULL;
	return rv != 0 ? rv : feed_open(&c->feed, root, c->session, c->seen, err);
}

int chat_open(struct chat *c, const char *session, const char *model, struct ava_error *err)
{
	int rv;

	*c = (struct chat){0};
	speech_init(&c->speech);
	rv = task_cwd(&c->cwd, err);
	if (rv == 0)
		rv = api_open(true, &c->c, err);
	if (rv == 0)
		rv = newest_lsn(c, err);
	if (rv == 0 && session == NULL)
		rv = begin(c, model, err);
	else if (rv == 0 && strcmp(session, "latest") == 0)
		rv = find_latest(c, err);
	else if (rv == 0)
		rv = find(c, session, err);
	if (rv == 0 && session != NULL) {
		c->said = true;
		rv = chat_show_past(c, err);
	}
	return rv == 0 ? follow(c, err) : rv;
}

void chat_close(struct chat *c)
{
	chat_acknowledge(c);
	feed_close(c->feed);
	feed_item_free(c->next);
	speech_fini(&c->speech);
	for (size_t i = 0; i < c->nown; i++)
		free(c->own[i]);
	client_close(c->c);
	free(c->cwd);
}

/* ---- saying */

static void keep_own(struct chat *c, const char *text)
{
	if (c->nown == CHAT_OWN_MAX) {
		free(c->own[0]);
		memmove(c->own, c->own + 1, --c->nown * sizeof(c->own[0]));
	}
	c->own[c->nown] = strdup(text);
	c->nown += c->own[c->nown] != NULL;
}

/* A conversation in which nothing was said is not on disk: a daemon that was
 * started anew does not know it. */
static int begin_again(struct chat *c, struct ava_error *err)
{
	char model[sizeof(c->model)];
	int rv;

	memcpy(model, c->model, sizeof(model));
	rv = begin(c, model[0] != '\0' ? model : NULL, err);
	return rv == 0 ? follow(c, err) : rv;
}

static int post(struct chat *c, const char *body, struct ava_error *err)
{
	char path[128];
	json_t *answer = NULL;
	int rv;

	snprintf(path, sizeof(path), "/sessions/%s/messages", c->session);
	rv = chat_call(c, path, body, &answer, err);
	json_decref(answer);
	return rv;
}

/* An acknowledgement that was lost is asked for again: its id is said once. */
static int post_once(struct chat *c, const char *body, struct ava_error *err)
{
	bool begun = false;
	int rv = AVA_EUNKNOWN;

	for (int i = 0; i <= TRIES && rv == AVA_EUNKNOWN; i++) {
		rv = post(c, body, err);
		if (rv != AVA_ENOENT || c->said || begun)
			continue;
		begun = true;
		rv = begin_again(c, err);
		if (rv == 0)
			rv = AVA_EUNKNOWN;
	}
	return rv;
}

int chat_say(struct chat *c, const char *text, struct ava_error *err)
{
	struct session_id request = id_session();
	struct buf body;
	struct jw w;
	int rv;

	buf_init(&body, (size_t)16 << 20);
	jw_init(&w, &body);
	jw_object(&w, NULL);
	jw_str(&w, "text", text);
	jw_str(&w, "request_id", request.text);
	jw_end(&w);
	rv = buf_check(&body) == 0 ? 0 : err_set(err, AVA_ETOOBIG, "the message is too long");
	chat_acknowledge(c); /* whoever answers has seen it */
	c->turns = 0;
	if (rv == 0) {
		keep_own(c, text);
		rv = post_once(c, body.data, err);
	}
	buf_fini(&body);
	if (rv == 0)
		c->said = c->busy = true;
	else if (c->nown > 0)
		free(c->own[--c->nown]);
	return rv;
}

int chat_stop(struct chat *c, struct ava_error *err)
{
	char path[128];
	json_t *s = NULL;
	int rv;

	snprintf(path, sizeof(path), "/sessions/%s/stop", c->session);
	rv = chat_call(c, path, "{}", &s, err);
	if (rv == 0 && json_get_str(s, "status") != NULL)
		c->busy = strcmp(json_get_str(s, "status"), "busy") == 0;
	json_decref(s);
	return rv;
}
