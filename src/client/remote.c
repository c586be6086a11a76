/* Each verb as one request to the daemon, in order, over one connection; event streams have
 * connections of their own. All of them stand in one epoll, whose descriptor is the runtime's.
 *
 * Happy path: the id goes into the path, the arguments into query or body, the answer's
 * JSON is handed back. What can fail: the daemon is gone. A request that was not sent yet is
 * sent again to a daemon that is started for it (unless told not to); a request that was sent is
 * AVA_EUNKNOWN, and the caller's request id makes asking again safe. */
#include "client/remote.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"
#include "client/client.h"
#include "client/follow.h"
#include "codec/json.h"

#define PATH_MAX_BYTES 4096
#define RETRY_MS       1000

/* ---- one event stream (client/follow.h): a look turns what came into items, which are given one
 * by one before the next look; so at most one buffer's worth and one frame wait. */

struct remote_stream {
	struct backend_cursor cursor;
	struct remote_stream_host *host;
	struct follower f;
	bool joined, lost; /* lost: counted in host.lost */
	struct backend_queue items;
	uint64_t seen; /* a new connection goes on behind it when nothing has come */
	char path[];
};

/* ---- items */

static int queue_text(struct remote_stream *s, const struct sse_event *e, enum ava_text_kind kind)
{
	json_t *o = json_parse(e->data, e->len, NULL);
	const char *session = json_get_str(o, "sessionId");
	const char *text = json_get_str(o, kind == AVA_TURN ? "state" : "text");
	struct backend_item item = {.is_text = true, .text = {.session = session, .kind = kind}};
	int rv = 0;

	if (session && text) { /* another frame is not from ava */
		item.text.text = text;
		item.text.len = strlen(text);
		rv = backend_put(&s->items, &item);
	}
	json_decref(o);
	return rv;
}

static int remote_on_event(const struct sse_event *e, void *user)
{
	struct remote_stream *s = user;

	if (strcmp(e->event, "text") == 0)
		return queue_text(s, e, AVA_TEXT);
	if (strcmp(e->event, "thinking") == 0)
		return queue_text(s, e, AVA_THINKING);
	if (strcmp(e->event, "turn") == 0)
		return queue_text(s, e, AVA_TURN);
	return backend_put(&s->items, &(struct backend_item){.line = e->data, .len = e->len});
}

/* ---- the connection */

static int remote_connect(void *user, struct client **c, struct ava_error *err)
{
	struct remote_stream *s = user;
	int rv = s->joined ? s->host->serve(s->host->user, err) : 0;

	return rv == 0 ? client_open(s->host->root, false, c, err) : rv;
}

static void set_lost(struct remote_stream *s, bool lost)
{
	if (lost != s->lost)
		s->host->lost += lost ? 1 : -1u;
	s->lost = lost;
}

static int remote_look(struct remote_stream *s, struct ava_error *err)
{
	struct epoll_event e = {.events = EPOLLIN};
	bool join = s->f.c == NULL && !s->f.ended;
	int rv = follow_look(&s->f, err);

	if (join && s->f.c != NULL &&
	    epoll_ctl(s->host->epoll, EPOLL_CTL_ADD, client_fd(s->f.c), &e) != 0) {
		rv = err_sys(err, "watch the connection");
		follow_close(&s->f);
	}
	if (join)
		set_lost(s, rv < 0);
	s->joined = true;
	if (s->f.last[0] == '\0')
		snprintf(s->f.last, sizeof(s->f.last), "%llu", (unsigned long long)s->seen);
	return rv;
}

/* ---- life */

static struct remote_stream *stream_of(struct backend_cursor *c)
{
	return CONTAINER_OF(c, struct remote_stream, cursor);
}

int remote_stream_open(struct remote_stream_host *host, const char *path, uint64_t after,
		       uint64_t seen, struct backend_cursor **out, struct ava_error *err)
{
	size_t len = strlen(path) + 1;
	struct remote_stream *s = calloc(1, sizeof(*s) + len);
	int rv;

	if (!s)
		return err_set(err, AVA_ENOMEM, "out of memory");
	memcpy(s->path, path, len);
	s->host = host;
	s->seen = seen;
	s->f = (struct follower){
		.path = s->path, .connect = remote_connect, .on_event = remote_on_event, .user = s};
	if (after != AVA_NOW)
		snprintf(s->f.last, sizeof(s->f.last), "%llu", (unsigned long long)after);
	list_init(&s->items.items);
	rv = remote_look(s, err);
	if (rv >= 0)
		*out = &s->cursor;
	else
		remote_stream_close(&s->cursor); /* items may have come before the failure */
	return MIN(rv, 0);
}

void remote_stream_close(struct backend_cursor *c)
{
	struct remote_stream *s = stream_of(c);

	backend_queue_fini(&s->items);
	set_lost(s, false);
	follow_close(&s->f);
	free(s);
}

int remote_stream_next(struct backend_cursor *c, struct backend_item *item, struct ava_error *err)
{
	struct remote_stream *s = stream_of(c);

	while (backend_take(&s->items, item) == 0) {
		bool join = s->f.c == NULL;
		int rv = remote_look(s, err);

		/* A connection that broke is made again at once. */
		if (rv == 0 ||
		    (rv < 0 && (join || rv == AVA_ENOMEM || rv == AVA_ETOOBIG || rv == AVA_EPROTO)))
			return rv;
	}
	return 1;
}

bool remote_stream_ended(const struct backend_cursor *c)
{
	const struct remote_stream *s = CONTAINER_OF(c, struct remote_stream, cursor);

	return s->f.ended && s->items.n == 0;
}

int remote_stream_wait(struct backend_cursor *c, int timeout_ms, struct ava_error *err)
{
	struct remote_stream *s = stream_of(c);

	return s->items.n == 0
		       ? follow_wait(&s->f, timeout_ms < 0 ? -1 : clock_mono_ms() + timeout_ms, err)
		       : 1;
}

struct remote {
	struct backend b;
	struct client *client;
	char *root;
	bool start;
	struct remote_stream_host host;
};

static struct remote *of(struct backend *b)
{
	return CONTAINER_OF(b, struct remote, b);
}

/* ---- asking */

/* A daemon that had nothing to do has ended; another one takes its place, where it may. */
static int serve(void *user, struct ava_error *err)
{
	struct remote *r = user;
	struct client *fresh;
	int rv = r->start ? client_open(r->root, true, &fresh, err) : 0;

	if (rv == 0 && r->start) {
		client_close(r->client);
		r->client = fresh;
	}
	return rv;
}

/* `path` with `id` for its {id}, then the arguments of a GET as its query. */
static void remote_add_path(struct buf *b, const char *path, const char *id)
{
	const char *mark = id ? strstr(path, "{id}") : NULL;

	buf_add(b, path, mark ? (size_t)(mark - path) : strlen(path));
	if (mark) {
		client_escape(b, id);
		buf_adds(b, mark + strlen("{id}"));
	}
}

static int remote_add_query(struct buf *b, const char *args, struct ava_error *err)
{
	json_t *o = json_parse(args, strlen(args), err), *v;
	const char *key, *before = "?";

	if (!o)
		return err->code;
	json_object_foreach(o, key, v)
	{
		buf_addf(b, "%s%s=", before, key);
		before = "&";
		if (json_is_string(v))
			client_escape(b, json_string_value(v));
		else
			json_dump(b, v);
	}
	json_decref(o);
	return 0;
}

static int remote_path_of(struct buf *b, struct ava_error *err)
{
	int rv = buf_check(b);

	if (rv == 0)
		return 0;
	return err_set(err, rv == AVA_ENOMEM ? rv : AVA_EINVAL,
		       rv == AVA_ENOMEM ? "out of memory" : "the id is too long");
}

static int remote_call(struct backend *b, const char *method, const char *path, const char *id,
		       const char *args, struct buf *out, int *status, struct ava_error *err)
{
	bool get = strcmp(method, "GET") == 0;
	const char *body = get ? NULL : args;
	struct remote *r = of(b);
	struct client_reply reply;
	struct buf p;
	int rv = 0;

	buf_init(&p, PATH_MAX_BYTES - 1);
	remote_add_path(&p, path, id);
	if (get)
		rv = remote_add_query(&p, args, err);
	if (rv == 0)
		rv = remote_path_of(&p, err);
	if (rv == 0) {
		rv = client_call(r->client, method, p.data, body, &reply, err);
		if (rv == AVA_ECONNECT && r->start) {
			rv = serve(r, err);
			if (rv == 0)
				rv = client_call(r->client, method, p.data, body, &reply, err);
		}
	}
	buf_fini(&p);
	if (rv != 0)
		return rv;
	*status = reply.status;
	if (buf_add(out, reply.body, reply.len) != 0)
		rv = err_set(err, AVA_ENOMEM, "out of memory for the answer");
	return rv;
}

/* ---- cursors */

static int newest_lsn(struct remote *r, uint64_t *lsn, struct ava_error *err)
{
	struct buf reply;
	json_t *o = NULL;
	int rv, status;

	buf_init(&reply, 16u << 20);
	rv = remote_call(&r->b, "GET", "/api/v1/health", NULL, "{}", &reply, &status, err);
	if (rv == 0 && !(o = json_parse(reply.data, reply.len, err)))
		rv = err->code;
	*lsn = (uint64_t)json_get_int(json_object_get(o, "journal"), "lsn", 0);
	json_decref(o);
	buf_fini(&reply);
	return rv;
}

static int remote_cursor_open(struct backend *b, const struct ava_events_query *q,
			      struct backend_cursor **out, struct ava_error *err)
{
	struct remote *r = of(b);
	uint64_t after = q->after, newest = 0;
	struct buf path;
	int rv;

	buf_init(&path, PATH_MAX_BYTES - 1);
	remote_add_path(&path, q->run ? "/api/v1/runs/{id}/events" : "/api/v1/events", q->run);
	if (q->session) {
		buf_adds(&path, "?session=");
		client_escape(&path, q->session);
		buf_adds(&path, "&items=0"); /* a program's stream has events alone */
	} else if (!q->run) {
		buf_adds(&path, "?machines=own"); /* in the order of their numbers */
	}
	rv = remote_path_of(&path, err);
	if (rv == 0 && (after == AVA_NOW || r->start))
		rv = newest_lsn(r, &newest, err); /* also shows that a daemon serves */
	if (rv == 0 && after == AVA_NOW && q->run)
		after = newest; /* a run's stream begins at its beginning */
	if (rv == 0)
		rv = remote_stream_open(&r->host, path.data, after, newest, out, err);
	buf_fini(&path);
	if (rv != 0)
		return rv;
	(*out)->backend = b;
	b->woken = true; /* events read with the head never show at the socket */
	return 0;
}

/* ---- life */

static int remote_fd(struct backend *b)
{
	return of(b)->host.epoll;
}

/* No descriptor tells when a daemon is back: look every RETRY_MS. */
static int remote_timeout(struct backend *b)
{
	return of(b)->host.lost > 0 ? RETRY_MS : -1;
}

static int remote_step(struct backend *b, int timeout_ms, struct ava_error *err)
{
	int64_t end = clock_mono_ms() + timeout_ms, left = timeout_ms;
	struct epoll_event e;

	while (epoll_wait(of(b)->host.epoll, &e, 1, (int)left) < 0) {
		if (errno != EINTR)
			return err_sys(err, "wait for the daemon");
		if (timeout_ms > 0)
			left = MAX(end - clock_mono_ms(), 0);
	}
	return 0;
}

static void remote_close(struct backend *b)
{
	struct remote *r = of(b);

	client_close(r->client);
	if (r->host.epoll >= 0)
		close(r->host.epoll);
	free(r->root);
	free(r);
}

static const struct backend_ops remote_ops = {
	.close = remote_close,
	.fd = remote_fd,
	.timeout = remote_timeout,
	.step = remote_step,
	.call = remote_call,
	.cursor_open = remote_cursor_open,
	.cursor_next = remote_stream_next,
	.cursor_ended = remote_stream_ended,
	.cursor_wait = remote_stream_wait,
	.cursor_close = remote_stream_close,
};

int remote_open(const char *root, bool start, struct backend **out, struct ava_error *err)
{
	struct remote *r = calloc(1, sizeof(*r));
	int rv;

	if (!r)
		return err_set(err, AVA_ENOMEM, "out of memory");
	r->b.ops = &remote_ops;
	r->start = start;
	r->root = strdup(root);
	r->host = (struct remote_stream_host){.root = r->root, .serve = serve, .user = r};
	r->host.epoll = epoll_create1(EPOLL_CLOEXEC);
	client_speak_for("libava");
	if (r->host.epoll < 0)
		rv = err_sys(err, "epoll");
	else if (!r->root)
		rv = err_set(err, AVA_ENOMEM, "out of memory");
	else
		rv = client_open(root, start, &r->client, err);
	if (rv == 0)
		*out = &r->b;
	else
		remote_close(&r->b);
	return rv;
}
