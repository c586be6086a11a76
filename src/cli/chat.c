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

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/id.h"
#include "base/settings.h"
#include "base/util.h"
#include "cli/api.h"
#include "cli/task.h"
#include "codec/json.h"

/* The feed.
 *
 *   daemon ── SSE ──► thread ── filter ──► queue (bounded) ──► the terminal
 *
 * When the queue is full the thread waits, and the daemon with it: what is
 * durable is read later, frames of text are left out by the daemon. Pieces of
 * text that follow each other become one item.
 *
 * What can fail: opening (memory, threads); a connection, which is made again
 * for as long as it takes; a refusal (no such conversation), which is told and
 * ends it; memory for an item, after which the stream is opened anew behind the
 * last one kept. */

#define ITEMS_MAX   1024
#define TEXT_MAX    ((size_t)64 << 10) /* of one item that grows */
#define STOPPED     1
#define OPEN_S      5 /* that opening waits for the stream, at the most */
#define STOP_SIGNAL SIGUSR1

struct feed {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t room;
	struct list items; /* struct feed_item */
	size_t n;
	int fd; /* eventfd */
	volatile sig_atomic_t stop;
	char *root;
	char session[64];
	uint64_t after;
	bool lost; /* FEED_LOST was told; the thread's alone */
	bool open; /* the stream was, once */
};

/* ---- the queue */

void feed_item_free(struct feed_item *i)
{
	if (i == NULL)
		return;
	list_del(&i->node);
	free(i->data);
	free(i);
}

static bool grow_text(struct feed *f, const char *data, size_t len)
{
	struct feed_item *i;
	char *more;

	if (list_empty(&f->items))
		return false;
	i = LIST_ENTRY(f->items.prev, struct feed_item, node);
	if (i->kind != FEED_TEXT || i->len + len > TEXT_MAX)
		return false;
	more = realloc(i->data, i->len + len + 1);
	if (more == NULL)
		return false;
	memcpy(more + i->len, data, len);
	i->len += len;
	more[i->len] = '\0';
	i->data = more;
	return true;
}

static struct feed_item *item_new(enum feed_kind kind, const char *data, size_t len)
{
	struct feed_item *i = calloc(1, sizeof(*i));

	if (i == NULL)
		return NULL;
	list_init(&i->node);
	i->kind = kind;
	i->len = len;
	i->data = malloc(len + 1);
	if (i->data == NULL) {
		free(i);
		return NULL;
	}
	memcpy(i->data, data, len);
	i->data[len] = '\0';
	return i;
}

static int wait_for_room(struct feed *f)
{
	while (f->n >= ITEMS_MAX && !f->stop)
		pthread_cond_wait(&f->room, &f->lock);
	return f->stop ? STOPPED : 0;
}

/* 0, STOPPED, or AVA_ENOMEM. `e` NULL: not an event. */
static int put(struct feed *f, enum feed_kind kind, const char *data, size_t len,
	       const struct sse_event *e)
{
	struct feed_item *i = NULL;
	uint64_t one = 1;
	int rv;

	pthread_mutex_lock(&f->lock);
	rv = wait_for_room(f);
	if (rv == 0 && !(kind == FEED_TEXT && grow_text(f, data, len))) {
		i = item_new(kind, data, len);
		rv = i != NULL ? 0 : AVA_ENOMEM;
	}
	if (i != NULL && e != NULL) {
		snprintf(i->type, sizeof(i->type), "%s", e->event);
		i->lsn = strtoull(e->id, NULL, 10);
	}
	if (i != NULL) {
		list_add(&f->items, &i->node);
		f->n++;
	}
	/* Under the lock: the last take of the other side makes it quiet there. */
	if (rv == 0 && write(f->fd, &one, sizeof(one)) < 0)
		rv = AVA_EIO; /* cannot be: the count is far from its end */
	pthread_mutex_unlock(&f->lock);
	return rv;
}

struct feed_item *feed_take(struct feed *f)
{
	struct feed_item *i;
	uint64_t n;

	pthread_mutex_lock(&f->lock);
	i = LIST_FIRST(&f->items, struct feed_item, node);
	if (i != NULL) {
		list_del(&i->node);
		f->n--;
		pthread_cond_signal(&f->room);
	} else if (read(f->fd, &n, sizeof(n)) < 0) {
		n = 0; /* it was quiet already */
	}
	pthread_mutex_unlock(&f->lock);
	return i;
}

/* ---- the thread */

/* Events that a person sees; the rest is in `ava logs`. */
static bool is_shown(const char *type)
{
	static const char *const shown[] = {
		"UserMessage",  "AssistantMessage", "SpawnProposed", "SpawnRejected",
		"SpawnExpired", "SubagentSpawn",    "Activity",      "SubagentComplete",
		"Error",        "Waiting",
	};

	for (size_t i = 0; i < ARRAY_LEN(shown); i++)
		if (strcmp(type, shown[i]) == 0)
			return true;
	return false;
}

static int on_frame(struct feed *f, const struct sse_event *e)
{
	json_t *frame = json_parse(e->data, e->len, NULL);
	const char *text = json_get_str(frame, "text"), *state = json_get_str(frame, "state");
	int rv = 0;

	if (strcmp(e->event, "text") == 0 && text != NULL)
		rv = put(f, FEED_TEXT, text, strlen(text), NULL);
	else if (strcmp(e->event, "turn") == 0 && state != NULL)
		rv = put(f, strcmp(state, "busy") == 0 ? FEED_BUSY : FEED_IDLE, "", 0, NULL);
	json_decref(frame);
	return rv;
}

static int on_event(const struct sse_event *e, void *user)
{
	struct feed *f = user;
	bool frame = strcmp(e->event, "text") == 0 || strcmp(e->event, "turn") == 0 ||
		     strcmp(e->event, "thinking") == 0;
	int rv = 0;

	if (frame)
		rv = on_frame(f, e);
	else if (is_shown(e->event))
		rv = put(f, FEED_EVENT, e->data, e->len, e);
	return rv;
}

/* The stream is open: no frame is missed from now on. */
static void opened(void *user)
{
	struct feed *f = user;

	if (f->lost && put(f, FEED_BACK, "", 0, NULL) == 0)
		f->lost = false;
	pthread_mutex_lock(&f->lock);
	f->open = true;
	pthread_cond_broadcast(&f->room);
	pthread_mutex_unlock(&f->lock);
}

/* Without notes, which would stand in the picture. */
static int connect_quietly(struct client **c, void *user, struct ava_error *err)
{
	const struct feed *f = user;

	return client_open(f->root, true, c, err);
}

static void lost(void *user)
{
	struct feed *f = user;

	if (!f->lost && put(f, FEED_LOST, "", 0, NULL) == 0)
		f->lost = true;
}

static void *run(void *arg)
{
	struct feed *f = arg;
	struct follow follow = {
		.patient = true,
		.connect = connect_quietly,
		.on_event = on_event,
		.on_open = opened,
		.on_lost = lost,
		.interrupt = &f->stop,
		.user = f,
	};
	struct ava_error err = {0};
	struct client *c = NULL;

	snprintf(follow.path, sizeof(follow.path), "/api/v1/events?session=%s", f->session);
	snprintf(follow.last_id, sizeof(follow.last_id), "%" PRIu64, f->after);
	if (follow_run(&follow, &c, &err) < 0 && !f->stop)
		put(f, FEED_GONE, err.text, strlen(err.text), NULL);
	client_close(c);
	return NULL;
}

/* ---- opening and closing */

static void on_stop_signal(int number) {}

static void feed_free(struct feed *f)
{
	while (!list_empty(&f->items))
		feed_item_free(LIST_FIRST(&f->items, struct feed_item, node));
	if (f->fd >= 0)
		close(f->fd);
	pthread_cond_destroy(&f->room);
	pthread_mutex_destroy(&f->lock);
	free(f->root);
	free(f);
}

/* The thread takes no signal but the one that ends its waits. */
static int start(struct feed *f)
{
	struct sigaction sa = {.sa_handler = on_stop_signal};
	sigset_t all, before;
	int failed;

	sigaction(STOP_SIGNAL, &sa, NULL);
	sigfillset(&all);
	sigdelset(&all, STOP_SIGNAL);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	failed = pthread_create(&f->thread, NULL, run, f);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return failed;
}

/* What is said before the stream is open would be answered without frames. */
static void wait_for_stream(struct feed *f)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += OPEN_S;
	pthread_mutex_lock(&f->lock);
	while (!f->open && pthread_cond_timedwait(&f->room, &f->lock, &until) == 0)
		;
	pthread_mutex_unlock(&f->lock);
}

int feed_open(struct feed **out, const char *root, const char *session, uint64_t after,
	      struct ava_error *err)
{
	struct feed *f = calloc(1, sizeof(*f));

	*out = NULL;
	if (f == NULL)
		return err_set(err, AVA_ENOMEM, "out of memory");
	list_init(&f->items);
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->room, NULL);
	snprintf(f->session, sizeof(f->session), "%s", session);
	f->after = after;
	f->root = strdup(root);
	f->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (f->root == NULL || f->fd < 0 || start(f) != 0) {
		feed_free(f);
		return err_set(err, AVA_ENOMEM, "the conversation's events cannot be followed");
	}
	wait_for_stream(f);
	*out = f;
	return 0;
}

void feed_close(struct feed *f)
{
	struct timespec until;

	if (f == NULL)
		return;
	pthread_mutex_lock(&f->lock);
	f->stop = 1;
	pthread_cond_broadcast(&f->room);
	pthread_mutex_unlock(&f->lock);
	pthread_kill(f->thread, STOP_SIGNAL);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	if (pthread_timedjoin_np(f->thread, NULL, &until) == 0)
		feed_free(f);
	else
		pthread_detach(f->thread);
}

int chat_call(struct chat *c, const char *path, const char *body, json_t **out,
	      struct ava_error *err)
{
	return api_insist(&c->c, path, body, out, err);
}

int chat_fd(const struct chat *c)
{
	return c->feed->fd;
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
	int rv = api_texts(&body, err, "cwd", c->cwd, model != NULL ? "model" : NULL, model, NULL);

	if (rv == 0)
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

int chat_follow(struct chat *c, struct ava_error *err)
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
		rv = api_open(API_START, &c->c, err);
	if (rv == 0)
		rv = newest_lsn(c, err);
	if (rv == 0 && session == NULL)
		rv = begin(c, model, err);
	else if (rv == 0 && strcmp(session, "latest") == 0)
		rv = find_latest(c, err);
	else if (rv == 0)
		rv = find(c, session, err);
	c->said = session != NULL;
	return rv;
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

void chat_noticed(struct chat *c, unsigned long long lsn)
{
	c->noticed = MAX(c->noticed, (uint64_t)lsn);
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

static void keep_own(struct chat *c, const char *text)
{
	if (c->nown == CHAT_OWN_MAX) {
		free(c->own[0]);
		memmove(c->own, c->own + 1, --c->nown * sizeof(c->own[0]));
	}
	c->own[c->nown] = strdup(text);
	c->nown += c->own[c->nown] != NULL;
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

/* A conversation in which nothing was said is not on disk: a daemon that was
 * started anew does not know it. */
static int begin_again(struct chat *c, struct ava_error *err)
{
	char model[sizeof(c->model)];
	int rv;

	memcpy(model, c->model, sizeof(model));
	rv = begin(c, model[0] != '\0' ? model : NULL, err);
	return rv == 0 ? chat_follow(c, err) : rv;
}

int chat_say(struct chat *c, const char *text, struct ava_error *err)
{
	struct session_id request = id_session();
	struct buf body;
	int rv = api_texts(&body, err, "text", text, "request_id", request.text, NULL);

	chat_acknowledge(c); /* whoever answers has seen it */
	c->turns = 0;
	if (rv == 0) {
		keep_own(c, text);
		rv = post(c, body.data, err);
		if (rv == AVA_ENOENT && !c->said && (rv = begin_again(c, err)) == 0)
			rv = post(c, body.data, err);
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
