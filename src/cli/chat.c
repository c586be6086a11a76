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

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/settings.h"
#include "base/util.h"
#include "cli/api.h"
#include "cli/task.h"
#include "codec/json.h"

/* ---- requests */

int chat_fd(const struct chat *c)
{
	return feed_fd(&c->feed);
}

int chat_session(struct chat *c, json_t **out, struct ava_error *err)
{
	return api_request(&c->c, NULL, out, err, "/sessions/%s", c->session);
}

/* ---- opening */

static int take_session(struct chat *c, const json_t *s, struct ava_error *err)
{
	const char *id = json_str(s, "session_id");

	if (id[0] == '\0' || strlen(id) >= sizeof(c->session))
		return err_set(err, AVA_EPROTO, "the daemon's answer lacks \"session_id\"");
	snprintf(c->session, sizeof(c->session), "%s", id);
	snprintf(c->model, sizeof(c->model), "%s", json_str(s, "model"));
	c->busy = strcmp(json_str(s, "status"), "busy") == 0;
	return 0;
}

static int begin(struct chat *c, const char *model, struct ava_error *err)
{
	json_t *s = NULL;
	int rv = api_post(&c->c, &s, err, "/sessions", "cwd", c->cwd,
			  model != NULL ? "model" : NULL, model, NULL);

	if (rv == 0)
		rv = take_session(c, s, err);
	json_decref(s);
	return rv;
}

int chat_model(struct chat *c, const char *model, struct ava_error *err)
{
	char path[sizeof(c->session) + 32];
	json_t *s = NULL;
	int rv;

	snprintf(path, sizeof(path), "/sessions/%s/model", c->session);
	rv = api_post(&c->c, &s, err, path, "model", model, NULL);
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
	int rv = api_request(&c->c, NULL, &all, err, "/sessions?limit=1000");

	if (rv != 0)
		return rv;
	rv = AVA_ENOENT;
	json_array_foreach(json_object_get(all, "sessions"), i, s)
	{
		/* Without a title nothing was said in it yet. */
		if (rv == AVA_ENOENT && strcmp(json_str(s, "cwd"), c->cwd) == 0 &&
		    json_str(s, "title")[0] != '\0')
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

void chat_follow(struct chat *c)
{
	feed_close(&c->feed);
	feed_open(&c->feed, c->session, c->seen);
}

int chat_open(struct chat *c, const char *session, const char *model, struct ava_error *err)
{
	int rv;

	*c = (struct chat){0};
	list_init(&c->feed.items);
	speech_init(&c->speech);
	rv = task_cwd(&c->cwd, err);
	if (rv == 0)
		rv = api_open(API_START, &c->c, err);
	if (rv == 0)
		rv = api_lsn(c->c, &c->seen, err); /* what comes behind it is the feed's */
	if (rv == 0 && session == NULL)
		rv = begin(c, model, err);
	else if (rv == 0 && strcmp(session, "latest") == 0)
		rv = find_latest(c, err);
	else if (rv == 0)
		rv = find(c, session, err);
	if (rv == 0 && session != NULL && model != NULL)
		rv = chat_model(c, model, err);
	c->said = session != NULL;
	return rv;
}

void chat_close(struct chat *c)
{
	chat_acknowledge(c);
	feed_close(&c->feed);
	free(c->next);
	speech_fini(&c->speech);
	client_close(c->c);
	free(c->cwd);
}

/* ---- saying */

void chat_noticed(struct chat *c, unsigned long long lsn)
{
	c->noticed = MAX(c->noticed, (uint64_t)lsn);
}

void chat_begin_line(struct chat *c)
{
	memcpy(c->before, c->shown, sizeof(c->before));
}

void chat_acknowledge(struct chat *c)
{
	char path[128], body[96];
	json_t *answer = NULL;

	/* Nobody waits for it: no connection is made for its sake. */
	if (c->noticed <= c->acknowledged || c->lost || c->c == NULL)
		return;
	c->acknowledged = c->noticed;
	snprintf(path, sizeof(path), "/sessions/%s/ack", c->session);
	snprintf(body, sizeof(body), "{\"channel\":\"terminal\",\"lsn\":%llu}",
		 (unsigned long long)c->noticed);
	if (api_call(c->c, path, body, &answer, NULL, NULL) != 0) {
		client_close(c->c);
		c->c = NULL;
	}
	json_decref(answer);
}

/* A conversation in which nothing was said is not on disk: a daemon that was
 * started anew does not know it. */
static int begin_again(struct chat *c, struct ava_error *err)
{
	char model[sizeof(c->model)];
	int rv;

	memcpy(model, c->model, sizeof(model));
	rv = begin(c, model[0] != '\0' ? model : NULL, err);
	if (rv == 0)
		chat_follow(c);
	return rv;
}

int chat_say(struct chat *c, const char *text, struct ava_error *err)
{
	int rv;

	chat_acknowledge(c); /* whoever answers has seen it */
	c->turns = 0;
	rv = feed_say(&c->feed, &c->c, c->session, text, c->before, err);
	if (rv == AVA_ENOENT && !c->said && (rv = begin_again(c, err)) == 0)
		rv = feed_say(&c->feed, &c->c, c->session, text, c->before, err);
	if (rv == 0)
		c->said = c->busy = true;
	return rv;
}

int chat_stop(struct chat *c, struct ava_error *err)
{
	json_t *s = NULL;
	int rv;

	rv = api_request(&c->c, "{}", &s, err, "/sessions/%s/stop", c->session);
	if (rv == 0)
		c->busy = strcmp(json_str(s, "status"), "busy") == 0;
	json_decref(s);
	return rv;
}
