/* A conversation in an editor: its life and its turns; acp.h.
 *
 * Happy path: a prompt opens the feed behind the last event that was taken, so that what has
 * happened since (a subagent ended, Ava told of it) comes first; then it is said to the daemon, and
 * its events become updates (acp_show.c). When Ava listens again the open quotes and questions are
 * put to the person; then the prompt is answered, behind all its updates, and the feed closes:
 * editors take updates between two turns for mistakes, and nothing is held here for the next one.
 *
 * Whether a turn is over the daemon says: it is asked when the feed shows that Ava has ended, else
 * now and then. The events that it knows of by then stand before its answer in the feed, which is
 * read once more.
 *
 * What can fail: the daemon. The feed comes again by itself, and what was accepted goes on; a
 * request that is never answered ends the turn with its sentence. */
#include "cli/acp.h"

#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/util.h"
#include "cli/api.h"

#define LOOK_MS      150  /* between two questions whether the turn is over */
#define LOOK_SLOW_MS 2000 /* while what goes on will say when it ends */

/* ---- a turn */

static void tell_usage(struct acp_session *s, const json_t *session)
{
	const json_t *cost = json_object_get(session, "cost_cents");
	json_t *amount = NULL;

	if (json_is_number(cost))
		amount = json_pack("{s:f,s:s}", "amount", json_number_value(cost) / 100, "currency",
				   "USD");
	if (s->tokens > 0)
		acp_update(s, "usage_update",
			   json_pack("{s:I,s:O,s:O*}", "used", (json_int_t)s->tokens, "size",
				     json_object_get(session, "context"), "cost", amount));
	json_decref(amount);
}

static void tell_title(struct acp_session *s, const json_t *session)
{
	char title[sizeof(s->title)];

	snprintf(title, sizeof(title), "%s", json_str(session, "title"));
	if (title[0] == '\0' || strcmp(s->title, title) == 0)
		return;
	memcpy(s->title, title, sizeof(title));
	acp_update(s, "session_info_update",
		   json_pack("{s:O,s:O*}", "title", json_object_get(session, "title"), "updatedAt",
			     json_object_get(session, "updated_at")));
}

/* All that was shown; one that does not arrive is shown again to whoever comes next. */
static void acknowledge(struct acp_session *s)
{
	json_t *answer = NULL;
	char body[96];

	snprintf(body, sizeof(body), "{\"channel\":\"terminal\",\"lsn\":%llu}",
		 (unsigned long long)s->seen);
	if (s->a->c != NULL && s->seen > 0)
		(void)acp_call(s, body, &answer, NULL, "/sessions/%s/ack", s->id);
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
	s->seen = MAX(s->seen, strtoull(t->feed.last_id, NULL, 10));
	s->talking = NULL;
	acknowledge(s);
	feed_close(&t->feed);
	buf_fini(&t->streamed);
	json_decref(t->prompt);
	free(t->failed);
	memset(t, 0, sizeof(*t));
}

/* Is the turn over? */
static void look(struct acp_session *s)
{
	struct acp_turn *t = &s->turn;
	struct ava_error err = {0};
	json_t *now = NULL;
	int rv = acp_call(s, NULL, &now, &err, "/sessions/%s", s->id);
	bool runs = json_get_int(now, "live_runs", 0) > 0, quiet;

	if (rv == 0)
		acp_show(s);
	quiet = !t->busy && !t->feed.lost && strcmp(json_str(now, "status"), "idle") == 0 &&
		json_get_int(now, "waiting", 0) == 0;
	t->quiet = quiet ? t->quiet + 1 : 0;
	t->look_ms = clock_mono_ms() +
		     (t->busy || (runs && s->wait && s->nasks == 0) ? LOOK_SLOW_MS : LOOK_MS);
	if (rv != 0) {
		turn_end(s, RPC_INTERNAL, err.text);
	} else if (quiet && (t->idle || t->quiet >= 2)) {
		t->idle = false;
		/* Who has cancelled, or waits for nothing more, is asked nothing. */
		if (t->cancelled || t->failed != NULL || (!acp_ask_next(s) && !(s->wait && runs))) {
			tell_usage(s, now);
			tell_title(s, now);
			turn_end(s, t->failed != NULL ? RPC_INTERNAL : 0, t->failed);
		}
	}
	json_decref(now);
}

/* A conversation in which nothing was said is not on disk: a daemon that was started anew does not
 * know it, and it is begun again under its id. */
static int begin(struct acp_session *s, const char *model, struct ava_error *err)
{
	json_t *answer = NULL;
	struct buf body;
	int rv = api_texts(&body, err, "cwd", s->cwd, "session_id", s->id,
			   model != NULL ? "model" : NULL, model, NULL);

	if (rv == 0)
		rv = acp_call(s, body.data, &answer, err, "/sessions");
	buf_fini(&body);
	if (rv == 0)
		snprintf(s->model, sizeof(s->model), "%s", json_str(answer, "model"));
	json_decref(answer);
	return rv;
}

static int say(struct acp_session *s, const char *text, struct ava_error *err)
{
	struct session_id request = id_session();
	json_t *answer = NULL;
	struct buf body;
	int rv = api_texts(&body, err, "text", text, "request_id", request.text, "seen", s->shown,
			   NULL);

	if (rv == 0)
		rv = acp_call(s, body.data, &answer, err, "/sessions/%s/messages", s->id);
	if (rv == AVA_ENOENT && !s->said && (rv = begin(s, s->model, err)) == 0)
		rv = acp_call(s, body.data, &answer, err, "/sessions/%s/messages", s->id);
	buf_fini(&body);
	json_decref(answer);
	return rv;
}

/* At once, without the daemon's last words: the next turn shows them. */
static void leave(struct acp_session *s)
{
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
	int rv;

	leave(s);
	t->prompt = json_incref((json_t *)id);
	buf_init(&t->streamed, ACP_TEXT_MAX);
	t->feed.all = true;
	feed_open(&t->feed, s->id, s->seen);
	if (s->remark != NULL)
		acp_say(s, s->remark);
	s->remark = NULL;
	acp_show(s);
	acp_keep_own(s, text);
	rv = say(s, text, &err);
	t->idle = false;
	t->look_ms = clock_mono_ms() + LOOK_MS;
	if (rv == 0) {
		s->said = true;
		return;
	}
	json_array_remove(s->own, json_array_size(s->own) - 1);
	turn_end(s, rv == AVA_EINVAL || rv == AVA_ETOOBIG ? RPC_PARAMS : RPC_INTERNAL, err.text);
}

void acp_stop(struct acp_session *s)
{
	struct acp_turn *t = &s->turn;
	json_t *answer = NULL;

	if (t->prompt == NULL)
		return;
	t->cancelled = true;
	if (t->asked != 0)
		acp_ask_drop(s, 0); /* the editor has taken it away; the daemon still waits */
	t->quiet = 0;
	t->look_ms = clock_mono_ms();
	if (acp_call(s, "{}", &answer, NULL, "/sessions/%s/stop", s->id) != 0)
		turn_end(s, 0, NULL);
	json_decref(answer);
}

void acp_step(struct acp_session *s)
{
	struct acp_turn *t = &s->turn;

	if (t->prompt == NULL)
		return;
	acp_show(s);
	if (t->feed.gone)
		turn_end(s, RPC_INTERNAL, "the daemon does not show this conversation any more");
	else if (t->asked == 0 && clock_mono_ms() >= t->look_ms)
		look(s);
}

int64_t acp_next(const struct acp_session *s)
{
	const struct acp_turn *t = &s->turn;
	int64_t feed = t->prompt != NULL ? feed_next(&t->feed) : -1;

	if (t->prompt == NULL || t->asked != 0)
		return feed;
	return feed < 0 ? t->look_ms : MIN(feed, t->look_ms);
}

/* ---- its life */

static struct acp_session *acp_alloc(struct acp *a, const char *id, struct ava_error *err)
{
	struct acp_session *s = calloc(1, sizeof(*s));

	if (s == NULL) {
		err_set(err, AVA_ENOMEM, "out of memory");
		return NULL;
	}
	s->a = a;
	s->own = json_array();
	s->plan = json_array();
	snprintf(s->id, sizeof(s->id), "%s", id);
	list_add(&a->sessions, &s->node);
	a->nsessions++;
	return s;
}

void acp_free(struct acp_session *s)
{
	leave(s);
	list_del(&s->node);
	s->a->nsessions--;
	json_decref(s->own);
	json_decref(s->plan);
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

/* What happens behind it is for the first turn. */
static int newest(struct acp_session *s, struct ava_error *err)
{
	json_t *health = NULL;
	int rv = acp_call(s, NULL, &health, err, "/health");

	s->seen = (uint64_t)json_get_int(json_object_get(health, "journal"), "lsn", 0);
	json_decref(health);
	return rv;
}

struct acp_session *acp_new(struct acp *a, const char *cwd, const char *model,
			    struct ava_error *err)
{
	struct acp_session *s = acp_alloc(a, id_session().text, err);
	int rv;

	if (s == NULL)
		return NULL;
	s->cwd = strdup(cwd);
	rv = s->cwd == NULL ? err_set(err, AVA_ENOMEM, "out of memory") : newest(s, err);
	if (rv == 0)
		rv = begin(s, model, err);
	if (rv == 0)
		return s;
	acp_free(s);
	return NULL;
}

int acp_choose(struct acp_session *s, const char *model, struct ava_error *err)
{
	char was[sizeof(s->model)];
	int rv;

	if (strcmp(model, s->model) == 0)
		return 0;
	if (s->said)
		return err_set(err, AVA_EINVAL,
			       "the model of a conversation is chosen before its first message: "
			       "begin a new one");
	memcpy(was, s->model, sizeof(was));
	rv = begin(s, model, err);
	if (rv != 0) /* it goes on with the one it had */
		(void)begin(s, was, NULL);
	return rv;
}

/* What was said until now. */
static int replay(struct acp_session *s, struct ava_error *err)
{
	json_t *all = NULL;
	const json_t *entry;
	size_t i;
	int rv = acp_call(s, NULL, &all, err, "/sessions/%s/messages", s->id);

	json_array_foreach(json_object_get(all, "entries"), i, entry)
	{
		if (strtoull(json_str(entry, "id"), NULL, 16) <= s->seen)
			acp_show_entry(s, entry);
	}
	json_decref(all);
	if (rv == 0)
		acknowledge(s);
	return rv;
}

/* The first turn begins before the first thing that this person has not seen. */
static int find_unseen(struct acp_session *s, struct ava_error *err)
{
	json_t *unseen = NULL;
	const json_t *first;
	int rv = acp_call(s, NULL, &unseen, err, "/sessions/%s/unseen?channel=terminal", s->id);

	first = json_array_get(json_object_get(unseen, "items"), 0);
	if (first != NULL)
		s->seen = MIN(s->seen, (uint64_t)json_get_int(first, "lsn", 1) - 1);
	json_decref(unseen);
	return rv;
}

static bool is_ours(const struct acp_session *s, const json_t *of)
{
	return strcmp(json_str(of, "session_id"), s->id) == 0;
}

/* What waits for an answer. */
static int find_open(struct acp_session *s, struct ava_error *err)
{
	json_t *proposals = NULL, *runs = NULL;
	const json_t *v;
	size_t i;
	int rv = acp_call(s, NULL, &proposals, err, "/proposals");

	if (rv == 0)
		rv = acp_call(s, NULL, &runs, err, "/runs?limit=1000");
	json_array_foreach(json_object_get(proposals, "proposals"), i, v)
	{
		if (is_ours(s, v))
			acp_ask_add(s, json_str(v, "proposal_id"), "");
	}
	json_array_foreach(json_object_get(runs, "runs"), i, v)
	{
		const json_t *waits = json_object_get(v, "waiting_for");

		if (is_ours(s, v) && json_is_object(waits))
			acp_ask_add(s, json_str(v, "subagent_id"), json_str(waits, "call_id"));
	}
	json_decref(proposals);
	json_decref(runs);
	return rv;
}

struct acp_session *acp_load(struct acp *a, const char *id, bool again, struct ava_error *err)
{
	struct acp_session *s = acp_alloc(a, id, err);
	json_t *is = NULL;
	int rv;

	if (s == NULL)
		return NULL;
	rv = newest(s, err);
	if (rv == 0)
		rv = acp_call(s, NULL, &is, err, "/sessions/%s", s->id);
	if (rv == 0) {
		snprintf(s->model, sizeof(s->model), "%s", json_str(is, "model"));
		s->cwd = strdup(json_str(is, "cwd"));
		s->said = json_str(is, "title")[0] != '\0';
		rv = s->cwd == NULL ? err_set(err, AVA_ENOMEM, "out of memory")
		     : again        ? replay(s, err)
				    : find_unseen(s, err);
	}
	json_decref(is);
	if (rv == 0)
		rv = find_open(s, err);
	if (rv == 0)
		return s;
	acp_free(s);
	return NULL;
}
