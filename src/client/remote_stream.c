/* One stream of server-sent events, non-blocking once it has begun.
 *
 * Happy path: connect, send the request, read up to the end of the head. From
 * then on each look at the stream takes what its socket has (at most one
 * buffer) and turns it into items, which are given one by one before the
 * socket is looked at again; so at most one buffer's worth and one frame wait.
 *
 * What can fail: the daemon goes away, or breaks the stream off because it
 * stops. Then the next look connects again behind the last event that came; a
 * frame that was cut is not lost, because it comes again whole. */
#include "client/remote_stream.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/list.h"
#include "base/unix_sock.h"
#include "client/client.h"
#include "client/http_reader.h"
#include "codec/json.h"
#include "codec/sse.h"

#define CONNECT_MS 5000
#define HEAD_MS    60000
#define FRAME_MAX  (64u << 20)
#define REFUSAL    (1u << 20)

struct item {
	struct list node;
	struct backend_item give;
	uint64_t lsn;
	bool last; /* of its run */
	char *session;
	char bytes[]; /* the line, or the text; then the session's id */
};

struct remote_stream {
	struct remote_stream_host *host;
	int fd;    /* -1: to be connected again */
	bool lost; /* counted in host.lost */
	struct http_reader reader;
	struct sse sse;
	struct buf refusal; /* the body of an answer other than 2xx */
	struct list items;
	struct item *given; /* borrowed by the caller */
	bool now;           /* the first connection begins with what is new */
	uint64_t after;     /* what a new connection goes on behind */
	bool of_run, ended;
	char path[];
};

/* ---- items */

static struct item *item_new(const char *bytes, size_t len, const char *session)
{
	size_t more = strlen(session) + 1;
	struct item *it = malloc(sizeof(*it) + len + 1 + more);

	if (!it)
		return NULL;
	*it = (struct item){0};
	memcpy(it->bytes, bytes, len);
	it->bytes[len] = '\0';
	it->session = it->bytes + len + 1;
	memcpy(it->session, session, more);
	return it;
}

static int queue_line(struct remote_stream *s, const struct sse_event *e)
{
	struct item *it = item_new(e->data, e->len, "");

	if (!it)
		return AVA_ENOMEM;
	it->lsn = strtoull(e->id, NULL, 10);
	it->last = s->of_run && strcmp(e->event, "SubagentComplete") == 0;
	it->give = (struct backend_item){.line = it->bytes, .len = e->len};
	list_add(&s->items, &it->node);
	return 0;
}

static int queue_text(struct remote_stream *s, const struct sse_event *e, enum ava_text_kind kind)
{
	json_t *o = json_parse(e->data, e->len, NULL);
	const char *session = json_get_str(o, "sessionId");
	const char *text = json_get_str(o, kind == AVA_TURN ? "state" : "text");
	struct item *it = NULL;
	int rv = 0;

	if (session && text) { /* else it is no frame that we know */
		it = item_new(text, strlen(text), session);
		rv = it ? 0 : AVA_ENOMEM;
	}
	if (it) {
		it->give = (struct backend_item){.is_text = true};
		it->give.text = (struct ava_text){.session = it->session,
						  .kind = kind,
						  .text = it->bytes,
						  .len = strlen(text)};
		list_add(&s->items, &it->node);
	}
	json_decref(o);
	return rv;
}

static int on_event(const struct sse_event *e, void *user)
{
	if (strcmp(e->event, "text") == 0)
		return queue_text(user, e, AVA_TEXT);
	if (strcmp(e->event, "thinking") == 0)
		return queue_text(user, e, AVA_THINKING);
	if (strcmp(e->event, "turn") == 0)
		return queue_text(user, e, AVA_TURN);
	return queue_line(user, e);
}

static int on_body(const char *data, size_t len, void *user)
{
	struct remote_stream *s = user;

	if (s->reader.status >= 200 && s->reader.status < 300)
		return sse_feed(&s->sse, data, len);
	return buf_add(&s->refusal, data, len);
}

/* ---- the connection */

static void begin(struct remote_stream *s)
{
	http_reader_init(&s->reader, on_body, s);
	sse_init(&s->sse, FRAME_MAX);
	s->sse.on_event = on_event;
	s->sse.user = s;
	buf_init(&s->refusal, REFUSAL);
}

static void hang_up(struct remote_stream *s)
{
	if (s->fd >= 0) /* which takes it out of the epoll as well */
		close(s->fd);
	s->fd = -1;
	http_reader_fini(&s->reader);
	sse_fini(&s->sse);
	buf_fini(&s->refusal);
}

static int send_request(struct remote_stream *s, struct ava_error *err)
{
	const char *mark = strchr(s->path, '?') ? "&" : "?";
	struct buf b;
	ssize_t n = -1;
	int rv;

	buf_init(&b, 16384);
	buf_addf(&b, "GET %s", s->path);
	if (!s->now)
		buf_addf(&b, "%safter=%llu", mark, (unsigned long long)s->after);
	buf_adds(&b, " HTTP/1.1\r\nHost: ava\r\nAccept: text/event-stream\r\n\r\n");
	/* It fits the empty buffer of a new socket. */
	rv = buf_check(&b);
	if (rv == 0)
		n = send(s->fd, b.data, b.len, MSG_NOSIGNAL);
	if (rv != 0)
		err_set(err, rv, "out of memory");
	else if (n < 0 || (size_t)n != b.len)
		rv = err_set(err, AVA_ECONNECT, "the daemon did not take the request");
	buf_fini(&b);
	return rv;
}

/* Take what the socket has: 1, 0: nothing now, AVA_ECONNECT: it has ended. */
static int take(struct remote_stream *s, struct ava_error *err)
{
	char data[32 * 1024];
	size_t used;
	ssize_t n;
	int rv;

	do
		n = recv(s->fd, data, sizeof(data), MSG_DONTWAIT);
	while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n <= 0)
		return err_set(err, AVA_ECONNECT, "the daemon closed the connection");
	rv = http_reader_feed(&s->reader, data, (size_t)n, &used, err);
	if (rv == AVA_ENOMEM || rv == AVA_ETOOBIG)
		err_set(err, rv, "an event of the daemon does not fit into memory");
	return rv == 0 ? 1 : rv;
}

/* 1: readable (or ended), 0: not within `timeout_ms`. */
static int wait_fd(struct remote_stream *s, int timeout_ms, struct ava_error *err)
{
	int64_t end = clock_mono_ms() + timeout_ms, left = timeout_ms;
	struct pollfd p = {.fd = s->fd, .events = POLLIN};
	int n;

	for (;;) {
		n = poll(&p, 1, (int)left);
		if (n >= 0)
			return n;
		if (errno != EINTR)
			return err_sys(err, "wait for the daemon");
		if (timeout_ms > 0)
			left = MAX(end - clock_mono_ms(), 0);
	}
}

/* Up to the end of the head; the whole answer when it is a refusal. */
static int read_head(struct remote_stream *s, struct ava_error *err)
{
	int64_t end = clock_mono_ms() + HEAD_MS;
	struct client_reply refusal;
	int rv;

	for (;;) {
		bool good = s->reader.status >= 200 && s->reader.status < 300;

		if (s->reader.state != HTTP_READER_HEAD && good)
			return 0;
		if (s->reader.state == HTTP_READER_DONE)
			break;
		rv = take(s, err);
		if (rv == 0) {
			rv = wait_fd(s, (int)MAX(end - clock_mono_ms(), 0), err);
			if (rv == 0)
				return err_set(err, AVA_ETIMEOUT, "the daemon does not answer");
		}
		if (rv < 0)
			return rv;
	}
	refusal = (struct client_reply){
		.status = s->reader.status, .body = s->refusal.data, .len = s->refusal.len};
	return client_check(&refusal, err);
}

static int dial(struct remote_stream *s, struct ava_error *err)
{
	int dir = open(s->host->root, O_PATH | O_DIRECTORY | O_CLOEXEC), rv;

	if (dir < 0)
		return err_sys(err, "data root %.300s", s->host->root);
	rv = unix_sock_connect(dir, UNIX_SOCK_NAME, CONNECT_MS, &s->fd, err);
	close(dir);
	if (rv == AVA_ENOENT || rv == AVA_ECONNECT)
		return err_set(err, AVA_ECONNECT, "the daemon is not running");
	return rv;
}

static int join(struct remote_stream *s, struct ava_error *err)
{
	struct epoll_event e = {.events = EPOLLIN};
	int rv;

	begin(s);
	rv = dial(s, err);
	if (rv == 0)
		rv = send_request(s, err);
	if (rv == 0)
		rv = read_head(s, err);
	if (rv == 0 && epoll_ctl(s->host->epoll, EPOLL_CTL_ADD, s->fd, &e) != 0)
		rv = err_sys(err, "watch the connection");
	if (rv != 0)
		hang_up(s);
	return rv;
}

static void set_lost(struct remote_stream *s, bool lost)
{
	if (lost != s->lost)
		s->host->lost += lost ? 1 : -1u;
	s->lost = lost;
}

static int join_again(struct remote_stream *s, struct ava_error *err)
{
	int rv = s->host->serve(s->host->user, err);

	s->now = false;
	if (rv == 0)
		rv = join(s, err);
	set_lost(s, rv != 0);
	return rv;
}

/* ---- life */

int remote_stream_open(struct remote_stream_host *host, const char *path, uint64_t after,
		       uint64_t seen, struct remote_stream **out, struct ava_error *err)
{
	size_t len = strlen(path) + 1;
	struct remote_stream *s = calloc(1, sizeof(*s) + len);
	int rv;

	if (!s)
		return err_set(err, AVA_ENOMEM, "out of memory");
	memcpy(s->path, path, len);
	s->host = host;
	s->fd = -1;
	s->now = after == AVA_NOW;
	s->after = s->now ? seen : after;
	s->of_run = strncmp(path, "/api/v1/runs/", 13) == 0;
	list_init(&s->items);
	rv = join(s, err);
	if (rv == 0)
		*out = s;
	else
		remote_stream_close(s); /* some may have come before it failed */
	return rv;
}

static struct item *take_item(struct remote_stream *s)
{
	struct item *it = LIST_FIRST(&s->items, struct item, node);

	if (it)
		list_del(&it->node);
	return it;
}

void remote_stream_close(struct remote_stream *s)
{
	struct item *it;

	while ((it = take_item(s)) != NULL)
		free(it);
	free(s->given);
	set_lost(s, false);
	if (s->fd >= 0)
		hang_up(s);
	free(s);
}

static int give(struct remote_stream *s, struct item *it, struct backend_item *item)
{
	s->given = it;
	s->after = MAX(s->after, it->lsn);
	s->ended = s->ended || it->last;
	*item = it->give;
	return 1;
}

int remote_stream_next(struct remote_stream *s, struct backend_item *item, struct ava_error *err)
{
	struct item *it;
	bool whole;
	int rv;

	free(s->given);
	s->given = NULL;
	while ((it = take_item(s)) == NULL) {
		if (s->ended)
			return 0;
		if (s->fd < 0) {
			rv = join_again(s, err);
			if (rv != 0)
				return rv;
			continue; /* the head may have brought some */
		}
		rv = take(s, err);
		if (rv == 0)
			return 0;
		whole = s->reader.state == HTTP_READER_DONE;
		if (rv > 0 && !whole)
			continue;
		hang_up(s);
		s->ended = s->of_run && whole && list_empty(&s->items);
		if (rv == AVA_ENOMEM || rv == AVA_ETOOBIG || rv == AVA_EPROTO)
			return rv;
	}
	return give(s, it, item);
}

bool remote_stream_ended(const struct remote_stream *s)
{
	return s->ended && list_empty(&s->items);
}

int remote_stream_wait(struct remote_stream *s, int timeout_ms, struct ava_error *err)
{
	if (!list_empty(&s->items) || s->ended || s->fd < 0)
		return 1;
	return wait_fd(s, timeout_ms, err);
}
