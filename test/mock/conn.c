/* Epoll, timers, sockets and TLS of the mock.
 *
 * One thread. A connection reads into a shared buffer and hands the bytes to
 * its protocol; what goes out is collected in conn.out and written at once. A
 * connection that fails is marked dead and freed at the end of the turn, so no
 * callback meets a freed one. Timers stand in a wheel of 1 ms slots. */
#include "conn.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"

#define WHEEL     4096
#define LISTENERS 8
#define READ_SIZE (256u << 10)

struct listener {
	int fd;
	SSL_CTX *tls;
	bool garbage;
	struct serve *serve;
};

struct loop {
	int epoll;
	bool stopped;
	int64_t now_ms, wheel_ms; /* wheel_ms: slots before it were played */
	unsigned ntimers, nlisteners;
	struct list wheel[WHEEL];
	struct list conns, dead;
	struct listener listeners[LISTENERS];
	char scratch[READ_SIZE];
};

static int64_t clock_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

struct loop *loop_new(void)
{
	struct loop *l = calloc(1, sizeof *l);

	assert(l != NULL);
	l->epoll = epoll_create1(EPOLL_CLOEXEC);
	assert(l->epoll >= 0);
	l->now_ms = l->wheel_ms = clock_ms();
	for (size_t i = 0; i < WHEEL; i++)
		list_init(&l->wheel[i]);
	list_init(&l->conns);
	list_init(&l->dead);
	return l;
}

int64_t loop_now(const struct loop *l)
{
	return l->now_ms;
}
void loop_stop(struct loop *l)
{
	l->stopped = true;
}

void timer_init(struct timer *t, void (*fire)(struct timer *t))
{
	list_init(&t->node);
	t->fire = fire;
}

void timer_stop(struct loop *l, struct timer *t)
{
	if (!list_empty(&t->node)) {
		list_del(&t->node);
		l->ntimers--;
	}
}

void timer_set(struct loop *l, struct timer *t, int64_t due_ms)
{
	timer_stop(l, t);
	t->due_ms = MAX(due_ms, l->wheel_ms);
	list_add(&l->wheel[t->due_ms % WHEEL], &t->node);
	l->ntimers++;
}

/* Play one slot; a timer may set itself or stop others while we do. */
static void wheel_slot(struct loop *l, int64_t ms)
{
	struct list now;

	list_init(&now);
	list_splice(&now, &l->wheel[ms % WHEEL]);
	while (!list_empty(&now)) {
		struct timer *t = CONTAINER_OF(now.next, struct timer, node);

		list_del(&t->node);
		if (t->due_ms > ms) { /* another round */
			list_add(&l->wheel[t->due_ms % WHEEL], &t->node);
			continue;
		}
		l->ntimers--;
		t->fire(t);
	}
}

static void wheel_play(struct loop *l)
{
	if (l->ntimers == 0)
		l->wheel_ms = l->now_ms;
	/* a timer that is due now and sets itself for now waits for the next turn */
	for (int64_t end = l->now_ms; l->wheel_ms <= end && l->ntimers > 0;) {
		int64_t ms = l->wheel_ms++;

		wheel_slot(l, ms);
	}
}

static int wheel_wait(const struct loop *l)
{
	if (l->ntimers == 0)
		return -1;
	for (int64_t ms = l->wheel_ms; ms < l->wheel_ms + WHEEL; ms++)
		if (!list_empty(&l->wheel[ms % WHEEL]))
			return (int)MAX(0, ms - l->now_ms);
	return WHEEL;
}

/* ---- exchanges ---- */

struct exchange *exchange_new(struct conn *c, int32_t stream)
{
	struct exchange *x = calloc(1, sizeof *x);

	assert(x != NULL);
	x->ask = calloc(1, sizeof *x->ask);
	assert(x->ask != NULL);
	x->conn = c;
	x->stream = stream;
	buf_init(&x->body, BODY_MAX + 1);
	buf_init(&x->reply.bytes, 128u << 20);
	list_add(&c->exchanges, &x->node);
	timer_init(&x->timer, NULL);
	return x;
}

void exchange_free(struct exchange *x)
{
	timer_stop(x->conn->loop, &x->timer);
	serve_gone(x->conn->serve, x);
	list_del(&x->node);
	buf_fini(&x->body);
	reply_drop(&x->reply);
	free(x->ask);
	free(x);
}

void exchange_peer(const struct exchange *x, char address[16])
{
	struct sockaddr_in sin = {0};
	socklen_t len = sizeof sin;

	getpeername(x->conn->fd, (struct sockaddr *)&sin, &len);
	inet_ntop(AF_INET, &sin.sin_addr, address, 16);
}

struct loop *exchange_loop(struct exchange *x)
{
	return x->conn->loop;
}

void exchange_head(struct exchange *x, int status, const char *lines, int64_t length)
{
	x->headed = true;
	if (x->stream != 0)
		http2_head(x, status, lines, length);
	else
		http1_head(x, status, lines, length);
}

void exchange_release(struct exchange *x, size_t upto)
{
	x->released = MAX(x->released, MIN(upto, x->reply.bytes.len));
	if (x->stream != 0)
		http2_data(x);
	else
		http1_data(x);
}

void exchange_end(struct exchange *x, enum ending how)
{
	struct conn *c = x->conn;

	if (how == END_RESET) {
		conn_kill(c, true);
	} else if (how == END_CUT && x->stream != 0) {
		http2_reset(x);
	} else if (how == END_CUT) {
		conn_flush(c);
		conn_kill(c, false);
	} else {
		x->whole = true;
		if (x->stream != 0)
			http2_data(x);
		else
			http1_end(x);
	}
}

void exchange_half_head(struct exchange *x)
{
	struct conn *c = x->conn;

	if (x->stream == 0) {
		buf_adds(&c->out, "HTTP/1.1 200 OK\r\ncontent-type: text/ev");
		conn_flush(c);
	}
	conn_kill(c, true);
}

static void copy_value(char *out, size_t size, const char *s, size_t len)
{
	len = MIN(len, size - 1);
	memcpy(out, s, len);
	out[len] = '\0';
}

void ask_header(struct ask *a, const char *name, size_t nlen, const char *value, size_t vlen)
{
	const struct {
		const char *name;
		char *to;
		size_t size;
	} kept[] = {{"x-api-key", a->key, sizeof a->key},
		    {"anthropic-version", a->version, sizeof a->version},
		    {"content-type", a->type, sizeof a->type}};

	for (size_t i = 0; i < ARRAY_LEN(kept); i++)
		if (nlen == strlen(kept[i].name) && strncasecmp(name, kept[i].name, nlen) == 0)
			copy_value(kept[i].to, kept[i].size, value, vlen);
	if (nlen != 13 || strncasecmp(name, "authorization", 13) != 0)
		return;
	a->bearer = 1;
	if (vlen > 7 && strncasecmp(value, "Bearer ", 7) == 0)
		copy_value(a->key, sizeof a->key, value + 7, vlen - 7);
}

void ask_target(struct ask *a, const char *target, size_t len)
{
	const char *mark = memchr(target, '?', len);
	size_t path = mark ? (size_t)(mark - target) : len;

	copy_value(a->path, sizeof a->path, target, path);
	if (mark != NULL)
		copy_value(a->query, sizeof a->query, mark + 1, len - path - 1);
}

/* ---- connections ---- */

static void conn_events(struct conn *c, bool write)
{
	struct epoll_event ev = {.events = EPOLLIN | (write ? EPOLLOUT : 0), .data.ptr = c};

	if (c->want_write == write)
		return;
	c->want_write = write;
	epoll_ctl(c->loop->epoll, EPOLL_CTL_MOD, c->fd, &ev);
}

void conn_kill(struct conn *c, bool reset)
{
	if (c->dead)
		return;
	c->dead = true;
	c->reset = reset;
	list_del(&c->node);
	list_add(&c->loop->dead, &c->node);
}

static void conn_free(struct conn *c)
{
	struct linger now = {.l_onoff = 1, .l_linger = 0};

	while (!list_empty(&c->exchanges))
		exchange_free(CONTAINER_OF(c->exchanges.next, struct exchange, node));
	http2_stop(c);
	if (c->reset)
		setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof now);
	SSL_free(c->ssl);
	close(c->fd);
	buf_fini(&c->in);
	buf_fini(&c->out);
	list_del(&c->node);
	free(c);
}

/* Bytes written, 0: later, -1: broken. */
static ssize_t conn_write(struct conn *c, const char *data, size_t len)
{
	ssize_t n;

	if (c->ssl != NULL) {
		ERR_clear_error();
		n = SSL_write(c->ssl, data, (int)MIN(len, 1u << 20));
		if (n > 0)
			return n;
		n = SSL_get_error(c->ssl, (int)n);
		return n == SSL_ERROR_WANT_WRITE || n == SSL_ERROR_WANT_READ ? 0 : -1;
	}
	n = send(c->fd, data, len, MSG_NOSIGNAL);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	return n;
}

void conn_flush(struct conn *c)
{
	while (!c->dead && !c->handshaking && c->out_at < c->out.len) {
		ssize_t n = conn_write(c, c->out.data + c->out_at, c->out.len - c->out_at);

		if (n < 0) {
			conn_kill(c, false);
			return;
		}
		if (n == 0) {
			conn_events(c, true);
			return;
		}
		c->out_at += (size_t)n;
	}
	if (c->out_at == c->out.len) {
		buf_reset(&c->out);
		c->out_at = 0;
		if (!c->dead)
			conn_events(c, false);
		if (c->close_when_sent)
			conn_kill(c, false);
	}
}

static void conn_handshake(struct conn *c)
{
	const unsigned char *alpn;
	unsigned len = 0;
	int rv;

	ERR_clear_error();
	rv = SSL_accept(c->ssl);
	if (rv == 1) {
		c->handshaking = false;
		SSL_get0_alpn_selected(c->ssl, &alpn, &len);
		if (len == 2 && memcmp(alpn, "h2", 2) == 0 && !http2_start(c))
			conn_kill(c, false);
		return;
	}
	rv = SSL_get_error(c->ssl, rv);
	if (rv == SSL_ERROR_WANT_WRITE)
		conn_events(c, true);
	else if (rv == SSL_ERROR_WANT_READ)
		conn_events(c, false);
	else
		conn_kill(c, false);
}

/* Bytes read, 0: none now, -1: the end. */
static ssize_t conn_read(struct conn *c)
{
	ssize_t n;

	if (c->ssl != NULL) {
		ERR_clear_error();
		n = SSL_read(c->ssl, c->loop->scratch, READ_SIZE);
		if (n > 0)
			return n;
		n = SSL_get_error(c->ssl, (int)n);
		return n == SSL_ERROR_WANT_WRITE || n == SSL_ERROR_WANT_READ ? 0 : -1;
	}
	n = recv(c->fd, c->loop->scratch, READ_SIZE, 0);
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -1;
	return n == 0 ? -1 : n;
}

static void conn_input(struct conn *c)
{
	ssize_t n;

	do {
		n = conn_read(c);
		if (n < 0)
			conn_kill(c, false);
		if (n <= 0)
			return;
		if (c->garbage) {
			buf_adds(&c->out, "this is no handshake\n");
			c->close_when_sent = true;
			conn_flush(c);
		} else if (c->h2 != NULL) {
			http2_input(c, c->loop->scratch, (size_t)n);
		} else if (buf_add(&c->in, c->loop->scratch, (size_t)n) != 0) {
			conn_kill(c, false);
		} else {
			http1_input(c);
		}
	} while (!c->dead && (c->ssl != NULL ? SSL_pending(c->ssl) > 0 : n == READ_SIZE));
}

static void conn_ready(struct conn *c, uint32_t events)
{
	if (c->dead)
		return;
	if (c->handshaking)
		conn_handshake(c);
	if (!c->dead && !c->handshaking && (events & EPOLLOUT))
		conn_flush(c);
	if (!c->dead && !c->handshaking && (events & (EPOLLIN | EPOLLHUP | EPOLLERR)))
		conn_input(c);
}

static void conn_new(struct loop *l, const struct listener *at, int fd)
{
	struct conn *c = calloc(1, sizeof *c);
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = c};
	int one = 1;

	assert(c != NULL);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
	c->loop = l;
	c->serve = at->serve;
	c->fd = fd;
	c->garbage = at->garbage;
	buf_init(&c->in, BODY_MAX + (64u << 10));
	buf_init(&c->out, 256u << 20);
	list_init(&c->exchanges);
	list_add(&l->conns, &c->node);
	if (at->tls != NULL) {
		c->ssl = SSL_new(at->tls);
		assert(c->ssl != NULL);
		SSL_set_fd(c->ssl, fd);
		SSL_set_accept_state(c->ssl);
		c->handshaking = true;
	}
	epoll_ctl(l->epoll, EPOLL_CTL_ADD, fd, &ev);
}

static void accept_all(struct loop *l, const struct listener *at)
{
	int fd;

	while ((fd = accept4(at->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0)
		conn_new(l, at, fd);
}

int loop_listen(struct loop *l, struct serve *s, int port, SSL_CTX *tls, bool tls_fault)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	struct listener *at = &l->listeners[l->nlisteners];
	struct epoll_event ev = {.events = EPOLLIN, .data.ptr = at};
	socklen_t len = sizeof sin;
	int one = 1;

	assert(l->nlisteners < LISTENERS);
	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	at->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (at->fd < 0)
		return -1;
	setsockopt(at->fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(at->fd, (struct sockaddr *)&sin, sizeof sin) != 0 || listen(at->fd, 4096) != 0 ||
	    getsockname(at->fd, (struct sockaddr *)&sin, &len) != 0) {
		close(at->fd);
		return -1;
	}
	at->tls = tls;
	at->garbage = tls_fault;
	at->serve = s;
	l->nlisteners++;
	epoll_ctl(l->epoll, EPOLL_CTL_ADD, at->fd, &ev);
	return ntohs(sin.sin_port);
}

static void reap(struct loop *l)
{
	while (!list_empty(&l->dead))
		conn_free(CONTAINER_OF(l->dead.next, struct conn, node));
}

void loop_run(struct loop *l)
{
	struct epoll_event evs[512];

	while (!l->stopped) {
		int n = epoll_wait(l->epoll, evs, ARRAY_LEN(evs), wheel_wait(l));

		l->now_ms = clock_ms();
		for (int i = 0; i < n; i++) {
			struct listener *at = evs[i].data.ptr;

			if (at >= l->listeners && at < l->listeners + LISTENERS)
				accept_all(l, at);
			else
				conn_ready(evs[i].data.ptr, evs[i].events);
		}
		wheel_play(l);
		reap(l);
	}
}

void loop_free(struct loop *l)
{
	while (!list_empty(&l->conns))
		conn_kill(CONTAINER_OF(l->conns.next, struct conn, node), false);
	reap(l);
	for (unsigned i = 0; i < l->nlisteners; i++)
		close(l->listeners[i].fd);
	close(l->epoll);
	free(l);
}
