/* A CURLM between libcurl's callbacks and the loop.
 *
 * Happy path: libcurl opens a socket through us (a poll handle comes with
 * it), says what it waits for, and is told when that happened; then finished
 * calls are read off and their owners told. While libcurl runs, no call can
 * be taken out: those stopped inside a callback go to `dead` and leave when it
 * returns.
 *
 * With HTTP/2 libcurl may open as many connections as calls/100; were there
 * no cap, each call of a burst would open its own. When all connections stand
 * and calls are still stuck (the server allows fewer streams, or does not speak
 * HTTP/2 at all), the cap is doubled until they are not, and those waiting are
 * handed in again, since libcurl looks at them only when a connection changes.
 *
 * What can fail: memory. */
#include "net/http_multi.h"

#include <assert.h>
#include <ava.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/http_call.h"
#include "net/http_memory.h"

#define TUNE_MS 50

struct http_sock {
	struct http_multi *multi;
	struct os_poll *poll; /* NULL: libcurl waits for nothing on it */
	struct list node;     /* multi->socks, when its local port is known */
	int fd, port;
	int64_t used_ms; /* when something last happened on it */
	bool counted;    /* a connection, not something inside libcurl */
};

static void act(struct http_multi *m, curl_socket_t fd, int events);

/* ---- sockets */

static void sock_ready_cb(int events, void *user)
{
	struct http_sock *s = user;
	int bits = 0;

	s->used_ms = os_now_ms(s->multi->pool->client->loop);
	if (events & OS_READ)
		bits |= CURL_CSELECT_IN;
	if (events & OS_WRITE)
		bits |= CURL_CSELECT_OUT;
	act(s->multi, s->fd, bits);
}

static struct http_sock *sock_of(const struct http_client *c, int fd)
{
	return fd >= 0 && (size_t)fd < c->nsocks ? c->socks[fd] : NULL;
}

static int socks_grow(struct http_client *c, size_t fd)
{
	size_t n = c->nsocks ? c->nsocks : 64;
	struct http_sock **socks;

	while (n <= fd)
		n *= 2;
	if (n == c->nsocks)
		return 0;
	socks = realloc(c->socks, n * sizeof(struct http_sock *));
	if (!socks)
		return AVA_ENOMEM;
	for (size_t i = c->nsocks; i < n; i++)
		socks[i] = NULL;
	c->socks = socks;
	c->nsocks = n;
	return 0;
}

static void sock_free(struct http_client *c, struct http_sock *s)
{
	if (s->counted) {
		s->multi->nsocks--;
		s->multi->pool->connections--;
	}
	c->socks[s->fd] = NULL;
	list_del(&s->node);
	os_poll_free(s->poll);
	free(s);
}

static struct http_sock *sock_new(struct http_multi *m, int fd)
{
	struct http_client *c = m->pool->client;
	struct http_sock *s = sock_of(c, fd);

	if (s)
		sock_free(c, s); /* libcurl closed that one silently */
	if (socks_grow(c, (size_t)fd) != 0)
		return NULL;
	s = calloc(1, sizeof(*s));
	if (!s)
		return NULL;
	list_init(&s->node);
	s->multi = m;
	s->fd = fd;
	s->used_ms = os_now_ms(c->loop);
	c->socks[fd] = s;
	return s;
}

curl_socket_t http_multi_open(void *impl, curlsocktype purpose, struct curl_sockaddr *addr)
{
	struct http_call_impl *im = impl;
	struct http_multi *m = im->multi;
	struct http_sock *s;
	int fd;

	(void)purpose;
	fd = socket(addr->family, addr->socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, addr->protocol);
	if (fd < 0)
		return CURL_SOCKET_BAD;
	s = sock_new(m, fd);
	if (!s) {
		close(fd);
		return CURL_SOCKET_BAD;
	}
	s->counted = true;
	m->nsocks++;
	m->pool->connections++;
	m->pool->opened++;
	im->fd = fd;
	if (!im->dialled && im->phase == HTTP_DIALING) {
		im->dialled = true;
		m->ndialled++;
	}
	return fd;
}

int http_multi_close(void *multi, curl_socket_t fd)
{
	struct http_client *c = ((struct http_multi *)multi)->pool->client;
	struct http_sock *s = sock_of(c, fd);

	if (s)
		sock_free(c, s);
	return close(fd);
}

int64_t http_multi_idle_ms(struct http_call_impl *im, int port)
{
	struct http_multi *m = im->multi;
	struct http_client *c = m->pool->client;
	struct http_sock *own = im->dialled ? sock_of(c, im->fd) : NULL;

	if (own && list_empty(&own->node)) {
		own->port = port;
		list_add(&m->socks, &own->node);
	}
	LIST_EACH (&m->socks, n, tmp) {
		struct http_sock *s = LIST_ENTRY(n, struct http_sock, node);

		if (s->port == port && s != own)
			return os_now_ms(c->loop) - s->used_ms;
	}
	return 0;
}

/* libcurl waits for nothing on it any more. It may have closed it already,
 * without a word when it was never connected; so the poll goes at once, before
 * the number can mean something else on this loop. */
static void sock_rest(struct http_client *c, struct http_sock *s)
{
	os_poll_free(s->poll);
	s->poll = NULL;
	if (!s->counted || fcntl(s->fd, F_GETFD) < 0)
		sock_free(c, s);
}

static int socket_cb(CURL *easy, curl_socket_t fd, int what, void *user, void *socket_user)
{
	struct http_multi *m = user;
	struct http_client *c = m->pool->client;
	struct http_sock *s = sock_of(c, fd);
	struct http_call_impl *im = NULL;
	int events = 0;

	(void)socket_user;
	if (what == CURL_POLL_REMOVE) {
		if (s)
			sock_rest(c, s);
		return 0;
	}
	if (!s)
		s = sock_new(m, fd);
	if (s && !s->poll)
		s->poll = os_poll_new(c->loop, fd, sock_ready_cb, s);
	if (what & CURL_POLL_IN)
		events |= OS_READ;
	if (what & CURL_POLL_OUT)
		events |= OS_WRITE;
	if (s && s->poll) {
		os_poll_set(s->poll, events);
		return 0;
	}
	/* An error returned here would end every other call as well. */
	curl_easy_getinfo(easy, CURLINFO_PRIVATE, (char **)&im);
	if (im)
		http_call_no_memory(im);
	return 0;
}

/* ---- time */

static int timer_cb(CURLM *curl, long timeout_ms, void *user)
{
	struct http_multi *m = user;

	(void)curl;
	if (timeout_ms < 0)
		os_timer_stop(m->timer);
	else
		os_timer_set(m->timer, timeout_ms);
	return 0;
}

static void timer_fire(void *user)
{
	act(user, CURL_SOCKET_TIMEOUT, 0);
}

/* ---- calls coming and going */

void http_multi_take(struct http_multi *m, struct http_call_impl *im)
{
	assert(m->inside == 0);
	list_del(&im->node);
	list_del(&im->unsent);
	m->ncalls--;
	if (im->phase != HTTP_DIALING)
		m->nsent--;
	if (im->dialled)
		m->ndialled--;
	im->dialled = false;
	curl_multi_remove_handle(m->curl, im->easy);
}

static void bury(struct http_multi *m)
{
	struct http_call_impl *im;

	while ((im = LIST_FIRST(&m->dead, struct http_call_impl, node))) {
		http_multi_take(m, im);
		http_call_free(im);
	}
}

static void reap(struct http_multi *m)
{
	CURLMsg *msg;
	int left;

	bury(m);
	while ((msg = curl_multi_info_read(m->curl, &left))) {
		struct http_call_impl *im;
		CURLcode code = msg->data.result;

		if (msg->msg != CURLMSG_DONE)
			continue;
		curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, (char **)&im);
		http_multi_take(m, im);
		http_call_finish(im, code); /* may stop others and start new ones */
	}
}

/* Give back upload buffers whose last byte libcurl has sent. */
static void empty_uploads(struct http_multi *m)
{
	LIST_EACH (&m->unsent, n, tmp) {
		struct http_call_impl *im = LIST_ENTRY(n, struct http_call_impl, unsent);
		curl_off_t sent = 0;

		curl_easy_getinfo(im->easy, CURLINFO_SIZE_UPLOAD_T, &sent);
		if (sent != (curl_off_t)im->body_len)
			continue;
		http_memory_empty(im->upload);
		list_del(&im->unsent);
	}
}

static void act(struct http_multi *m, curl_socket_t fd, int events)
{
	struct http_pool *p = m->pool;
	int running;

	http_pool_enter(p);
	m->inside++;
	(void)curl_multi_socket_action(m->curl, fd, events, &running);
	m->inside--;
	empty_uploads(m);
	reap(m);
	http_pool_leave(p);
}

bool http_multi_has_room(const struct http_multi *m)
{
	return !m->retired && (m->pool->http2 || m->ncalls < HTTP_MULTI_CALLS);
}

static void set_cap(struct http_multi *m, unsigned cap)
{
	cap = MIN(cap, m->pool->connections_max);
	if (cap <= m->cap)
		return;
	m->cap = cap;
	curl_multi_setopt(m->curl, CURLMOPT_MAX_HOST_CONNECTIONS, (long)cap);
	curl_multi_setopt(m->curl, CURLMOPT_MAXCONNECTS, (long)cap);
}

int http_multi_add(struct http_multi *m, struct http_call_impl *im)
{
	if (m->pool->http2)
		set_cap(m, m->ncalls / HTTP_STREAMS + 1);
	if (curl_multi_add_handle(m->curl, im->easy) != CURLM_OK)
		return AVA_ENOMEM;
	list_add(&m->calls, &im->node);
	m->ncalls++;
	return 0;
}

void http_multi_drop(struct http_multi *m, struct http_call_impl *im)
{
	if (m->inside) {
		list_del(&im->node);
		list_add(&m->dead, &im->node);
		return;
	}
	http_multi_take(m, im);
	http_call_free(im);
}

/* Look again soon whether calls are stuck. Without memory for that the cap stays
 * as it is: slower, not wrong. */
static void tune_later(struct http_multi *m)
{
	struct http_client *c = m->pool->client;

	m->tune_sent = m->nsent;
	(void)http_client_due(c, &m->tune_due, os_now_ms(c->loop) + TUNE_MS);
}

void http_multi_sent(struct http_multi *m, struct http_call_impl *im)
{
	m->nsent++;
	if (im->dialled)
		m->ndialled--;
	im->dialled = false;
	if (m->pool->http2 && m->nsent < m->ncalls && m->tune_due.pos == 0)
		tune_later(m);
}

/* Hand those that wait inside libcurl in again. */
static void kick(struct http_multi *m)
{
	LIST_EACH (&m->calls, n, tmp) {
		struct http_call_impl *im = LIST_ENTRY(n, struct http_call_impl, node);

		if (im->phase != HTTP_DIALING || im->dialled)
			continue;
		curl_multi_remove_handle(m->curl, im->easy);
		/* It was in a moment ago and needs no memory to come back. */
		(void)curl_multi_add_handle(m->curl, im->easy);
	}
}

static void tune_fire(struct deadline *d)
{
	struct http_multi *m = CONTAINER_OF(d, struct http_multi, tune_due);
	unsigned queued = m->ncalls - m->nsent, streams, before = m->cap;

	deadlines_del(&m->pool->client->deadlines, d);
	if (queued == 0 || m->nsent == 0 || m->nsocks == 0 || m->cap == m->pool->connections_max)
		return;
	if (m->ndialled > 0 || m->nsent != m->tune_sent) { /* still on its way */
		tune_later(m);
		return;
	}
	streams = MAX(m->nsent / m->nsocks, 1);
	set_cap(m, m->nsocks + MIN((queued + streams - 1) / streams, m->nsocks));
	if (m->cap > before)
		kick(m);
}

/* ---- */

struct http_multi *http_multi_new(struct http_pool *p)
{
	struct http_multi *m = calloc(1, sizeof(*m));

	if (!m)
		return NULL;
	m->pool = p;
	list_init(&m->node);
	list_init(&m->calls);
	list_init(&m->dead);
	list_init(&m->unsent);
	list_init(&m->socks);
	m->tune_due.fire = tune_fire;
	m->curl = curl_multi_init();
	m->timer = os_timer_new(p->client->loop, timer_fire, m);
	if (!m->curl || !m->timer) {
		http_multi_free(m);
		return NULL;
	}
	curl_multi_setopt(m->curl, CURLMOPT_SOCKETFUNCTION, socket_cb);
	curl_multi_setopt(m->curl, CURLMOPT_SOCKETDATA, m);
	curl_multi_setopt(m->curl, CURLMOPT_TIMERFUNCTION, timer_cb);
	curl_multi_setopt(m->curl, CURLMOPT_TIMERDATA, m);
	curl_multi_setopt(m->curl, CURLMOPT_PIPELINING,
			  p->http2 ? CURLPIPE_MULTIPLEX : CURLPIPE_NOTHING);
	if (!p->http2)
		set_cap(m, HTTP_MULTI_CALLS);
	list_add(&p->multis, &m->node);
	return m;
}

void http_multi_free(struct http_multi *m)
{
	struct http_client *c = m->pool->client;

	assert(m->ncalls == 0 && m->inside == 0);
	deadlines_del(&c->deadlines, &m->tune_due);
	curl_multi_cleanup(m->curl); /* closes its sockets, most through us */
	for (size_t i = 0; i < c->nsocks; i++)
		if (c->socks[i] && c->socks[i]->multi == m)
			sock_free(c, c->socks[i]);
	os_timer_free(m->timer);
	list_del(&m->node);
	free(m);
}
