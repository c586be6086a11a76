/* The HTTP server: libmicrohttpd without threads of its own, driven by the
 * loop through its epoll descriptor.
 *
 * Happy path: libmicrohttpd parses, access_cb collects the body and calls the
 * handler once with the whole request. If the handler answered, the response
 * is queued there and then; if not, the connection is suspended until
 * http_reply resumes it and defers a run of libmicrohttpd (a resume shows on no
 * descriptor); access_cb is called again and queues the response.
 *
 * libmicrohttpd does not look at a suspended connection's socket. An epoll
 * set of our own (`watch`) does, for hang-ups only, so that waiting requests
 * and idle streams of peers that left go away at once.
 *
 * What can fail: requests that are malformed or too big (answered here), too
 * many bodies at once (the one that waited longest for its rest: 503), memory (the connection is
 * closed). Requests and streams are freed when libmicrohttpd says that it is done (completed_cb).
 */
#include "net/http_server.h"

#include <assert.h>
#include <errno.h>
#include <microhttpd.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/unix_sock.h"
#include "base/buf.h"
#include "base/hash.h"
#include "base/list.h"
#include "net/http_head.h"
#include "net/tcp_peer.h"
#include "os/loop.h"

#define BODY_MAX        (2 * 1024 * 1024)
#define BODIES_MAX      32 /* bodies held whole in memory, of all connections */
#define CONNECTIONS_MAX 1200
#define IDLE_MS         60000
#define HEARTBEAT_MS    15000
/* Memory of libmicrohttpd a connection, for its whole life: request head and bytes to send. The
 * most of an idle stream's cost (bench/http.c, bench/sse.py). */
#define POOL_BYTES (7 * 1024)
/* Loopback TCP would buffer megabytes for a peer that does not read. */
#define SEND_BUFFER_BYTES (64 * 1024)

enum request_state {
	REQUEST_RECEIVING,
	REQUEST_KEPT,     /* the handler has the request */
	REQUEST_ANSWERED, /* a response is ready, or queued */
	REQUEST_DROPPED,  /* the connection is to be closed */
};

struct http_server_request {
	struct http_request pub; /* first, so that both structs have one address */
	struct http_server *server;
	struct MHD_Connection *conn;
	struct list node;
	struct os_task task; /* calls `gone` */
	struct buf body;
	size_t discarded; /* bytes of a refused body that were dropped */
	int refuse;       /* status of an answer without the handler; 0: none */
	enum request_state state;
	bool suspended, queued, watched, hung_up;
	struct MHD_Response *response;
	int status;
	struct http_stream *stream; /* until the connection is done with it; NULL: none */
	void (*gone)(struct http_request *req, void *user);
	void *gone_user;
};

struct http_server {
	struct os_loop *loop;
	struct MHD_Daemon *daemon;
	struct os_task run; /* runs libmicrohttpd for work that no descriptor shows */
	struct os_poll *poll, *watch_poll;
	struct os_timer *timer, *beat;
	struct http_server_options options;
	http_handler_fn handler;
	void *user;
	int watch; /* epoll set that shows hang-ups */
	int listen_fd;
	bool is_unix, quiesced, running, stopping, beating;
	int64_t timer_at; /* when `timer` fires; INT64_MAX: unset */
	size_t body_bytes;
	unsigned nrequests;
	struct list requests; /* the longest wait for a body comes first */
	struct list streams;
	struct list idle; /* peers without a whole request, the longest wait first */
	unsigned npeers;  /* number of connections */
};

/* A connection. When nearly all are taken, peers that wait for a request, or for the rest of one,
 * make room before a newcomer is turned away. */
struct peer {
	struct list node; /* in server.idle; unlinked while a request is handled */
	struct MHD_Connection *conn;
	size_t target; /* bytes of the request's target, up to its first NUL */
	unsigned char target_sha256[32];
};

/* A stream has two owners: its writer (until http_stream_end or the `gone` hook) and the connection
 * (until libmicrohttpd is done with it); freed when both have let go. */
struct http_stream {
	struct list node; /* in the server's list while the writer owns it */
	struct http_server *server;
	struct MHD_Connection *conn; /* NULL: the connection let go */
	struct http_stream_hooks hooks;
	struct os_task task; /* calls `drained` and `gone` */
	struct buf queue;    /* bytes from `head` on are to be sent */
	size_t head;         /* offset in `queue` */
	int64_t sent_ms;     /* when bytes last left the queue */
	bool writer;         /* the writer still has the stream */
	bool suspended;      /* the connection sleeps until something is written */
	bool hung_up;        /* the peer is gone, or is to be dropped */
	bool full;           /* a write returned 1 and `drained` is owed */
};

static struct http_server_request *request_of(const struct http_request *req)
{
	return (struct http_server_request *)req;
}

/* ---- streams: a bounded queue that libmicrohttpd empties.
 *
 * http_stream_write appends and wakes the connection; the reader callback copies out what
 * fits into the connection's buffer; when nothing is left the queue's memory is given back
 * and the connection is suspended. So an idle stream costs its struct and the connection.
 * Of a peer that reads slowly the writer is told to wait, then `drained`. Hooks run from a
 * deferred task, never inside a call of the writer. */

static void http_server_stream_free(struct http_stream *st)
{
	os_defer_cancel(st->server->loop, &st->task);
	list_del(&st->node);
	buf_fini(&st->queue);
	free(st);
}

/* Let libmicrohttpd call the reader again. */
static void http_server_stream_wake(struct http_stream *st)
{
	if (!st->conn || !st->suspended)
		return;
	st->suspended = false;
	MHD_resume_connection(st->conn);
	os_defer(st->server->loop, &st->server->run);
}

static void stream_let_go(struct http_stream *st)
{
	st->writer = false;
	list_del(&st->node);
	if (!st->conn)
		http_server_stream_free(st);
	else
		http_server_stream_wake(st);
}

static void stream_tell_gone(struct http_stream *st)
{
	st->writer = false; /* `gone` must not write to the stream or end it */
	if (st->hooks.gone)
		st->hooks.gone(st, st->hooks.user);
	stream_let_go(st);
}

static void stream_task(struct os_task *t)
{
	struct http_stream *st = CONTAINER_OF(t, struct http_stream, task);

	if (!st->writer)
		return;
	if (st->hung_up || !st->conn) {
		stream_tell_gone(st);
	} else if (st->full && http_stream_waiting(st) <= HTTP_STREAM_HIGH / 2) {
		st->full = false;
		if (st->hooks.drained)
			st->hooks.drained(st, st->hooks.user);
	}
}

static struct http_stream *stream_new(struct http_server_request *r,
				      const struct http_stream_hooks *hooks)
{
	struct http_stream *st = calloc(1, sizeof(*st));

	if (!st)
		return NULL;
	st->server = r->server;
	st->conn = r->conn;
	st->hooks = *hooks;
	st->writer = true;
	st->sent_ms = os_now_ms(st->server->loop);
	os_task_init(&st->task, stream_task);
	buf_init(&st->queue, 2 * HTTP_STREAM_MAX); /* sent bytes may precede the waiting ones */
	list_add(&st->server->streams, &st->node);
	return st;
}

size_t http_stream_waiting(const struct http_stream *st)
{
	return st->queue.len - st->head;
}

int http_stream_write(struct http_stream *st, const void *data, size_t len)
{
	assert(st->writer);
	if (len > HTTP_STREAM_MAX - http_stream_waiting(st))
		return AVA_ETOOBIG;
	/* Move at most as many bytes as were sent since the last move: linear in all. */
	if (st->head >= http_stream_waiting(st)) {
		buf_drop(&st->queue, st->head);
		st->head = 0;
	}
	if (buf_add(&st->queue, data, len) != 0) {
		st->queue.failed = false; /* only this write failed: the queue is whole */
		st->queue.error = 0;
		return AVA_ENOMEM;
	}
	http_server_stream_wake(st);
	if (http_stream_waiting(st) >= HTTP_STREAM_HIGH)
		st->full = true;
	return st->full ? 1 : 0;
}

void http_stream_end(struct http_stream *st)
{
	assert(st->writer);
	stream_let_go(st);
}

static ssize_t stream_read_cb(void *cls, uint64_t pos, char *out, size_t max)
{
	struct http_stream *st = cls;
	size_t n = MIN(max, http_stream_waiting(st));

	(void)pos;
	if (st->hung_up)
		return MHD_CONTENT_READER_END_WITH_ERROR;
	if (n == 0 && !st->writer)
		return MHD_CONTENT_READER_END_OF_STREAM;
	if (n == 0) {
		st->suspended = true;
		MHD_suspend_connection(st->conn);
		return 0;
	}
	memcpy(out, st->queue.data + st->head, n);
	st->head += n;
	st->sent_ms = os_now_ms(st->server->loop);
	if (http_stream_waiting(st) == 0) {
		buf_fini(&st->queue);
		st->head = 0;
	}
	if (st->full && http_stream_waiting(st) <= HTTP_STREAM_HIGH / 2)
		os_defer(st->server->loop, &st->task);
	return (ssize_t)n;
}

/* libmicrohttpd 0.9.75 closes a broken-off connection only when it looks at it again: in the same
 * run if it has a time limit of its own, else behind all idle ones. */
static void stream_break_off(struct http_stream *st)
{
	st->hung_up = true;
	if (st->conn)
		MHD_set_connection_option(st->conn, MHD_CONNECTION_OPTION_TIMEOUT, 1u);
}

static void stream_hang_up(struct http_stream *st)
{
	stream_break_off(st);
	if (st->writer)
		os_defer(st->server->loop, &st->task);
	else
		http_server_stream_wake(st);
}

void http_stream_abort(struct http_stream *st)
{
	stream_break_off(st);
	stream_tell_gone(st);
}

/* ---- driving libmicrohttpd */

static void server_run(struct http_server *s)
{
	MHD_UNSIGNED_LONG_LONG wait;
	int64_t at;

	s->running = true;
	MHD_run(s->daemon);
	s->running = false;
	if (MHD_get_timeout(s->daemon, &wait) != MHD_YES)
		return;
	at = os_now_ms(s->loop) + (int64_t)MIN(wait, 3600000ull);
	if (at >= s->timer_at)
		return; /* an early timer is harmless, and setting one costs */
	s->timer_at = at;
	os_timer_set(s->timer, at - os_now_ms(s->loop));
}

static void http_server_poll_cb(int events, void *user)
{
	(void)events;
	server_run(user);
}

static void run_cb(struct os_task *t)
{
	server_run(CONTAINER_OF(t, struct http_server, run));
}

static void http_server_timer_cb(void *user)
{
	struct http_server *s = user;

	s->timer_at = INT64_MAX;
	server_run(s);
}

static void beat_arm(struct http_server *s)
{
	if (s->beating)
		return; /* a timer that every stream resets would never fire */
	s->beating = true;
	os_timer_set(s->beat, MAX(s->options.heartbeat_ms / 4, 1));
}

static void beat_cb(void *user)
{
	struct http_server *s = user;

	s->beating = false;
	LIST_EACH (&s->streams, n, tmp) {
		struct http_stream *st = LIST_ENTRY(n, struct http_stream, node);

		if (st->hooks.heartbeat && http_stream_waiting(st) == 0 &&
		    os_now_ms(s->loop) - st->sent_ms >= s->options.heartbeat_ms)
			http_stream_write(st, ":\n\n", 3);
	}
	if (!list_empty(&s->streams))
		beat_arm(s);
}

/* ---- hang-ups */

static int connect_fd(struct MHD_Connection *conn)
{
	return MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
}

static void request_watch(struct http_server_request *r)
{
	struct epoll_event ev = {.events = EPOLLRDHUP | EPOLLONESHOT, .data.ptr = r};

	if (!r->watched)
		r->watched =
			epoll_ctl(r->server->watch, EPOLL_CTL_ADD, connect_fd(r->conn), &ev) == 0;
}

static void watch_cb(int events, void *user)
{
	struct http_server *s = user;
	struct epoll_event ev[64];
	int n = epoll_wait(s->watch, ev, (int)ARRAY_LEN(ev), 0);

	(void)events;
	for (int i = 0; i < n; i++) {
		struct http_server_request *r = ev[i].data.ptr;

		r->hung_up = true;
		if (r->stream)
			stream_hang_up(r->stream);
		else if (r->state == REQUEST_KEPT && r->gone)
			os_defer(r->server->loop, &r->task);
	}
}

/* ---- requests */

static void request_wake(struct http_server_request *r)
{
	if (!r->suspended)
		return;
	r->suspended = false;
	MHD_resume_connection(r->conn);
	os_defer(r->server->loop, &r->server->run);
}

static void tell_gone(struct http_server_request *r)
{
	if (r->gone)
		r->gone(&r->pub, r->gone_user);
	r->state = REQUEST_DROPPED;
	request_wake(r);
}

static void gone_cb(struct os_task *t)
{
	struct http_server_request *r = CONTAINER_OF(t, struct http_server_request, task);

	if (r->state == REQUEST_KEPT)
		tell_gone(r);
}

/* NULL: no memory for the peer, which is then never asked to leave. */
static struct peer *peer_of(struct MHD_Connection *conn)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(conn, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

static struct http_server_request *request_new(struct http_server *s, struct MHD_Connection *conn,
					       const char *method, const char *path)
{
	struct http_server_request *r = calloc(1, sizeof(*r));

	struct peer *p = peer_of(conn);
	struct unix_peer peer;

	if (!r)
		return NULL;
	r->server = s;
	r->conn = conn;
	r->pub.method = method;
	r->pub.path = path;
	buf_init(&r->body, s->options.body_max);
	os_task_init(&r->task, gone_cb);
	if (!s->is_unix) {
		r->pub.has_peer = tcp_peer_uid(connect_fd(conn), &r->pub.peer_uid) == 0;
		r->pub.target_sha256 = p ? p->target_sha256 : NULL;
	} else {
		r->pub.has_peer = unix_sock_peer(connect_fd(conn), &peer) == 0;
		r->pub.peer_uid = r->pub.has_peer ? peer.uid : (uid_t)-1;
		r->pub.peer_pid = r->pub.has_peer ? peer.pid : 0;
	}
	list_add(&s->requests, &r->node);
	s->nrequests++;
	return r;
}

static void peer_cb(void *cls, struct MHD_Connection *conn, void **context,
		    enum MHD_ConnectionNotificationCode code)
{
	struct http_server *s = cls;
	struct peer *p = *context;

	if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
		/* At its limit libmicrohttpd does not listen; it accepts waiting peers in its next
		 * run. */
		if (s->npeers-- >= s->options.connections_max && !s->stopping)
			os_defer(s->loop, &s->run);
		if (p)
			list_del(&p->node);
		free(p);
		*context = NULL;
		return;
	}
	if (++s->npeers > s->options.connections_max / 4 * 3 && !list_empty(&s->idle)) {
		/* Close the connection at once, whatever the peer still sends. */
		p = LIST_FIRST(&s->idle, struct peer, node);
		list_del(&p->node);
		shutdown(connect_fd(p->conn), SHUT_RDWR);
	}
	p = malloc(sizeof(*p));
	*context = p;
	if (!p)
		return;
	p->conn = conn;
	p->target = 0;
	list_init(&p->node);
	list_add(&s->idle, &p->node);
}

static void body_free(struct http_server_request *r)
{
	r->server->body_bytes -= r->body.len;
	buf_fini(&r->body);
}

static void completed_cb(void *cls, struct MHD_Connection *conn, void **con_cls,
			 enum MHD_RequestTerminationCode why)
{
	struct http_server *s = cls;
	struct http_server_request *r = *con_cls;
	struct peer *p = peer_of(conn);

	(void)why;
	if (!r)
		return;
	if (p) {
		list_del(&p->node);
		list_add(&s->idle, &p->node);
	}
	*con_cls = NULL;
	assert(r->state != REQUEST_KEPT); /* a kept request's connection is suspended */
	if (r->watched)
		epoll_ctl(s->watch, EPOLL_CTL_DEL, connect_fd(conn), NULL);
	if (r->stream) {
		r->stream->conn = NULL;
		if (r->stream->writer)
			os_defer(s->loop, &r->stream->task);
		else
			http_server_stream_free(r->stream);
	}
	if (r->response)
		MHD_destroy_response(r->response);
	os_defer_cancel(s->loop, &r->task);
	list_del(&r->node);
	s->nrequests--;
	body_free(r);
	free(r);
}

/* Refuse fields that two parsers could read differently, and bodies announced as too big. Status,
 * or 0. */
static int refuse_head(struct http_server_request *r, const char *target, const char *version)
{
	const char *length = http_header(&r->pub, "Content-Length");
	const struct peer *p = peer_of(r->conn);

	if (!http_head_is_plain(r->conn, version) ||
	    (p && !http_head_is_whole(target, p->target, version)))
		return MHD_HTTP_BAD_REQUEST;
	if (length && strtoull(length, NULL, 10) > r->server->options.body_max)
		return MHD_HTTP_CONTENT_TOO_LARGE;
	return 0;
}

/* Make room for `len` more bytes of `r`: incomplete bodies give way, the longest wait first, so
 * that peers that send half a body keep nobody out. */
static bool http_server_make_room(struct http_server_request *r, size_t len)
{
	struct http_server *s = r->server;

	LIST_EACH (&s->requests, n, tmp) {
		struct http_server_request *other = LIST_ENTRY(n, struct http_server_request, node);

		if (s->body_bytes + len <= BODIES_MAX * s->options.body_max)
			break;
		if (other == r || other->state != REQUEST_RECEIVING || other->body.len == 0)
			continue;
		other->refuse = MHD_HTTP_SERVICE_UNAVAILABLE;
		body_free(other);
	}
	return s->body_bytes + len <= BODIES_MAX * s->options.body_max;
}

/* ---- answers */

static bool add_fields(struct MHD_Response *response, const struct http_answer *a)
{
	if (a->content_type &&
	    MHD_add_response_header(response, "Content-Type", a->content_type) != MHD_YES)
		return false;
	for (size_t i = 0; i < a->nfields; i++)
		if (MHD_add_response_header(response, a->fields[i].name, a->fields[i].value) !=
		    MHD_YES)
			return false;
	return true;
}

/* Answer the request with `response` (taken; NULL: out of memory). */
static void request_answer(struct http_server_request *r, const struct http_answer *a,
			   struct MHD_Response *response)
{
	assert(r->state == REQUEST_KEPT && !r->response);
	if (response && !add_fields(response, a)) {
		MHD_destroy_response(response);
		response = NULL;
	}
	r->response = response;
	r->status = a->status;
	r->state = response ? REQUEST_ANSWERED : REQUEST_DROPPED;
	r->gone = NULL;
	request_wake(r);
}

void http_reply_with(struct http_request *req, const struct http_answer *a)
{
	struct MHD_Response *response = MHD_create_response_from_buffer(
		a->len, (void *)(uintptr_t)a->body,
		a->fixed ? MHD_RESPMEM_PERSISTENT : MHD_RESPMEM_MUST_COPY);

	request_answer(request_of(req), a, response);
}

void http_reply(struct http_request *req, int status, const char *content_type, const void *body,
		size_t len)
{
	struct http_answer a = {
		.status = status, .content_type = content_type, .body = body, .len = len};

	http_reply_with(req, &a);
}

struct http_stream *http_stream_start(struct http_request *req, const struct http_answer *head,
				      const struct http_stream_hooks *hooks)
{
	struct http_server_request *r = request_of(req);
	struct http_server *s = r->server;
	struct http_stream *st = stream_new(r, hooks);
	struct MHD_Response *response = NULL;
	int rv = 0;

	if (st && head->len)
		rv = http_stream_write(st, head->body, head->len);
	/* A small block: it is held all the time, and only HTTP/1.0, without chunks, uses it. */
	if (st && rv >= 0)
		response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 128, stream_read_cb,
							     st, NULL);
	request_answer(r, head, response);
	if (r->state == REQUEST_DROPPED) {
		if (st) {
			st->conn = NULL;
			http_stream_end(st);
		}
		return NULL;
	}
	r->stream = st;
	if (r->hung_up)
		stream_hang_up(st);
	request_watch(r);
	if (hooks->heartbeat)
		beat_arm(s);
	return st;
}

static enum MHD_Result queue_refusal(struct http_server_request *r)
{
	static const char bad[] = "{\"error\":{\"code\":\"invalid\",\"message\":"
				  "\"the request has no Host, a NUL in its path, or fields that "
				  "contradict each other\"}}";
	static const char big[] = "{\"error\":{\"code\":\"too_big\",\"message\":"
				  "\"the request body is too large\"}}";
	static const char busy[] = "{\"error\":{\"code\":\"busy\",\"message\":"
				   "\"too many request bodies at once: try again\"}}";
	const char *text = r->refuse == MHD_HTTP_BAD_REQUEST         ? bad
			   : r->refuse == MHD_HTTP_CONTENT_TOO_LARGE ? big
								     : busy;
	struct MHD_Response *response = MHD_create_response_from_buffer(
		strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT);
	enum MHD_Result rv;

	r->state = REQUEST_ANSWERED;
	r->queued = true;
	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, "Content-Type", "application/json");
	rv = MHD_queue_response(r->conn, (unsigned)r->refuse, response);
	MHD_destroy_response(response);
	return rv;
}

/* ---- libmicrohttpd's callbacks */

/* The request is whole: call the handler the first time; queue its answer as
 * soon as there is one; sleep while there is none. */
static enum MHD_Result http_server_go_on(struct http_server_request *r)
{
	struct peer *p = peer_of(r->conn);

	if (r->state == REQUEST_RECEIVING && r->refuse)
		return queue_refusal(r);
	if (r->state == REQUEST_RECEIVING) {
		r->pub.body = r->body.data ? r->body.data : "";
		r->pub.body_len = r->body.len;
		r->state = REQUEST_KEPT;
		if (p)
			list_del(&p->node);
		r->server->handler(&r->pub, r->server->user);
	}
	if (r->state == REQUEST_DROPPED)
		return MHD_NO;
	if (r->state == REQUEST_ANSWERED) {
		if (r->queued)
			return MHD_YES;
		r->queued = true;
		return MHD_queue_response(r->conn, (unsigned)r->status, r->response);
	}
	if (!r->suspended) {
		r->suspended = true;
		MHD_suspend_connection(r->conn);
		request_watch(r);
	}
	return MHD_YES;
}

/* The raw target, before it is parsed. Returns the access handler's con_cls. */
static void *target_cb(void *cls, const char *target, struct MHD_Connection *conn)
{
	const struct http_server *s = cls;
	struct peer *p = peer_of(conn);

	if (p)
		p->target = target ? strlen(target) : 0;
	if (p && !s->is_unix)
		hash_sha256(target ? target : "", p->target, p->target_sha256);
	return NULL;
}

static enum MHD_Result access_cb(void *cls, struct MHD_Connection *conn, const char *path,
				 const char *method, const char *version, const char *data,
				 size_t *len, void **con_cls)
{
	struct http_server *s = cls;
	struct http_server_request *r = *con_cls;
	size_t n = *len;

	if (s->stopping)
		return MHD_NO;
	if (!r) { /* first call of a request: head without body */
		r = request_new(s, conn, method, path);
		*con_cls = r;
		if (!r)
			return MHD_NO;
		r->refuse = refuse_head(r, path, version);
		return r->refuse ? queue_refusal(r) : MHD_YES;
	}
	if (n == 0)
		return http_server_go_on(r);
	*len = 0;
	if (r->refuse == 0 && n > s->options.body_max - r->body.len)
		r->refuse = MHD_HTTP_CONTENT_TOO_LARGE;
	if (r->refuse == 0 && !http_server_make_room(r, n))
		r->refuse = MHD_HTTP_SERVICE_UNAVAILABLE;
	if (r->refuse == 0) {
		if (buf_add(&r->body, data, n) != 0)
			return MHD_NO;
		s->body_bytes += n;
		list_del(&r->node);
		list_add(&s->requests, &r->node);
		return MHD_YES;
	}
	/* Read on, so that the peer can read the answer, but not for ever. */
	r->discarded += n;
	return r->discarded > s->options.body_max ? MHD_NO : MHD_YES;
}

/* ---- life */

/* After a complaint (a request head that does not fit) libmicrohttpd closes the connection only in
 * its next run. */
static void __attribute__((format(printf, 2, 0))) log_cb(void *cls, const char *fmt, va_list ap)
{
	struct http_server *s = cls;

	(void)fmt;
	(void)ap;
	if (!s->stopping)
		os_defer(s->loop, &s->run);
}

static int http_server_start_daemon(struct http_server *s, struct ava_error *err)
{
	unsigned idle_s = (unsigned)((s->options.idle_ms + 999) / 1000);
	const union MHD_DaemonInfo *info;

	s->daemon = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL,
		access_cb, s, MHD_OPTION_EXTERNAL_LOGGER, log_cb, s, MHD_OPTION_LISTEN_SOCKET,
		s->listen_fd, MHD_OPTION_CONNECTION_LIMIT, s->options.connections_max,
		MHD_OPTION_CONNECTION_TIMEOUT, idle_s, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)POOL_BYTES, MHD_OPTION_STRICT_FOR_CLIENT, 0, MHD_OPTION_NOTIFY_COMPLETED,
		completed_cb, s, MHD_OPTION_NOTIFY_CONNECTION, peer_cb, s,
		MHD_OPTION_UNESCAPE_CALLBACK, http_head_unescape, s, MHD_OPTION_URI_LOG_CALLBACK,
		target_cb, s, MHD_OPTION_END);
	if (!s->daemon)
		return err_set(err, AVA_EIO, "cannot start the HTTP server");
	s->listen_fd = -1; /* libmicrohttpd closes it */
	info = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	s->poll = os_poll_new(s->loop, info->epoll_fd, http_server_poll_cb, s);
	s->watch_poll = os_poll_new(s->loop, s->watch, watch_cb, s);
	s->timer = os_timer_new(s->loop, http_server_timer_cb, s);
	s->beat = os_timer_new(s->loop, beat_cb, s);
	if (!s->poll || !s->watch_poll || !s->timer || !s->beat)
		return err_set(err, AVA_ENOMEM, "HTTP server: out of memory");
	os_poll_set(s->poll, OS_READ);
	os_poll_set(s->watch_poll, OS_READ);
	server_run(s); /* adds the listening socket to the epoll set */
	return 0;
}

static void server_close(struct http_server *s)
{
	os_defer_cancel(s->loop, &s->run);
	os_poll_free(s->poll);
	os_poll_free(s->watch_poll);
	os_timer_free(s->timer);
	os_timer_free(s->beat);
	if (s->daemon)
		MHD_stop_daemon(s->daemon);
	if (s->watch >= 0)
		close(s->watch);
	if (s->listen_fd >= 0)
		close(s->listen_fd);
	free(s);
}

struct http_server *http_server_new(struct os_loop *loop, int listen_fd,
				    const struct http_server_options *options,
				    http_handler_fn handler, void *user, struct ava_error *err)
{
	struct sockaddr_storage addr;
	socklen_t len = sizeof(addr);
	int bytes = SEND_BUFFER_BYTES;
	struct http_server *s = calloc(1, sizeof(*s));

	if (!s) {
		close(listen_fd);
		err_set(err, AVA_ENOMEM, "HTTP server: out of memory");
		return NULL;
	}
	s->loop = loop;
	s->handler = handler;
	s->user = user;
	s->listen_fd = listen_fd;
	s->timer_at = INT64_MAX;
	if (options)
		s->options = *options;
	s->options.body_max = s->options.body_max ? s->options.body_max : BODY_MAX;
	s->options.connections_max =
		s->options.connections_max ? s->options.connections_max : CONNECTIONS_MAX;
	s->options.idle_ms = s->options.idle_ms ? s->options.idle_ms : IDLE_MS;
	s->options.heartbeat_ms = s->options.heartbeat_ms ? s->options.heartbeat_ms : HEARTBEAT_MS;
	list_init(&s->requests);
	list_init(&s->idle);
	list_init(&s->streams);
	os_task_init(&s->run, run_cb);
	s->is_unix = getsockname(listen_fd, (struct sockaddr *)&addr, &len) == 0 &&
		     addr.ss_family == AF_UNIX;
	if (!s->is_unix) /* accepted sockets inherit the size */
		setsockopt(listen_fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	s->watch = epoll_create1(EPOLL_CLOEXEC);
	if (s->watch < 0)
		err_sys(err, "HTTP server");
	if (s->watch < 0 || http_server_start_daemon(s, err) != 0) {
		server_close(s);
		return NULL;
	}
	return s;
}

void http_server_quiesce(struct http_server *s)
{
	int fd;

	if (s->quiesced)
		return;
	s->quiesced = true;
	fd = MHD_quiesce_daemon(s->daemon);
	if (fd >= 0)
		close(fd); /* a listener left open would keep clients waiting in its queue */
}

unsigned http_server_connections(const struct http_server *s)
{
	return MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS)->num_connections;
}

unsigned http_server_busy(const struct http_server *s)
{
	return s->nrequests;
}

void http_server_stop(struct http_server *s)
{
	if (!s)
		return;
	assert(!s->running);
	while (!list_empty(&s->streams)) /* a hook may end other streams */
		http_stream_abort(LIST_FIRST(&s->streams, struct http_stream, node));
	LIST_EACH (&s->requests, n, tmp) {
		struct http_server_request *r = LIST_ENTRY(n, struct http_server_request, node);

		if (r->state == REQUEST_KEPT)
			tell_gone(r);
		else if (r->stream)
			stream_hang_up(r->stream);
	}
	s->stopping = true;
	MHD_run(s->daemon); /* libmicrohttpd must not stop with suspended connections */
	server_close(s);
}

/* ---- reading a request */

const char *http_header(const struct http_request *req, const char *name)
{
	return MHD_lookup_connection_value(request_of(req)->conn, MHD_HEADER_KIND, name);
}

struct query_walk {
	const char *name, *value;
	int (*each)(const char *name, const char *value, void *user);
	void *user;
	int rv;
};

static enum MHD_Result query_cb(void *cls, enum MHD_ValueKind kind, const char *name,
				const char *value)
{
	struct query_walk *q = cls;

	(void)kind;
	value = value ? value : "";
	if (q->each)
		q->rv = q->each(name, value, q->user);
	else if (strcmp(name, q->name) == 0)
		q->value = value;
	return q->rv == 0 && !q->value ? MHD_YES : MHD_NO;
}

const char *http_query(const struct http_request *req, const char *name)
{
	struct query_walk q = {.name = name};

	MHD_get_connection_values(request_of(req)->conn, MHD_GET_ARGUMENT_KIND, query_cb, &q);
	return q.value;
}

int http_query_each(const struct http_request *req,
		    int (*each)(const char *name, const char *value, void *user), void *user)
{
	struct query_walk q = {.each = each, .user = user};

	MHD_get_connection_values(request_of(req)->conn, MHD_GET_ARGUMENT_KIND, query_cb, &q);
	return q.rv;
}

void http_on_gone(struct http_request *req, void (*gone)(struct http_request *req, void *user),
		  void *user)
{
	struct http_server_request *r = request_of(req);

	r->gone = gone;
	r->gone_user = user;
	if (r->hung_up && gone)
		os_defer(r->server->loop, &r->task);
}
