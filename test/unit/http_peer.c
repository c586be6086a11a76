/* A scripted HTTP peer on the test's own loop. Reading and writing never
 * block; requests are cut by Content-Length alone. Anything that fails here
 * fails the test. */
#include "unit.h"

#include "http_peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define IN_MAX (64 * 1024 * 1024)

static void conn_free(struct peer_conn *c)
{
	list_del(&c->node);
	os_poll_free(c->poll);
	close(c->fd);
	buf_fini(&c->in);
	buf_fini(&c->out);
	free(c);
}

/* false: the connection is gone */
static bool flush(struct peer_conn *c)
{
	ssize_t n = 1;

	while (c->out.len > 0 && n > 0) {
		n = send(c->fd, c->out.data, c->out.len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n > 0)
			buf_drop(&c->out, (size_t)n);
	}
	if ((n < 0 && errno != EAGAIN) || (c->out.len == 0 && c->closing)) {
		conn_free(c);
		return false;
	}
	os_poll_set(c->poll, c->out.len > 0 ? OS_READ | OS_WRITE : OS_READ);
	return true;
}

static size_t body_length(const char *head)
{
	const char *s = strcasestr(head, "\r\ncontent-length:");

	return s ? strtoul(s + 17, NULL, 10) : 0;
}

static char *copy_of(const char *s, size_t len)
{
	char *copy = malloc(len + 1);

	assert_non_null(copy);
	memcpy(copy, s, len);
	copy[len] = '\0';
	return copy;
}

/* One at a time: the client never sends a second before the first is answered.
 * `c` may be gone afterwards. */
static void request(struct peer_conn *c)
{
	struct peer *p = c->peer;
	char *end = memmem(c->in.data, c->in.len, "\r\n\r\n", 4), *text, *rest;
	size_t head = end ? (size_t)(end + 4 - c->in.data) : 0, body;

	if (!end)
		return;
	text = copy_of(c->in.data, head);
	body = body_length(text);
	if (c->in.len >= head + body) {
		rest = copy_of(c->in.data + head, body);
		explicit_bzero(c->in.data, head); /* tests look for keys on the heap */
		buf_drop(&c->in, head + body);
		if (c->in.len == 0) { /* and count it */
			buf_fini(&c->in);
			buf_init(&c->in, IN_MAX);
		}
		c->requests++;
		p->requests++;
		p->request(c, text, rest, body);
		free(rest);
	}
	explicit_bzero(text, head);
	free(text);
}

static void conn_cb(int events, void *user)
{
	struct peer_conn *c = user;
	char chunk[65536];
	ssize_t n = 0;

	if (events & OS_READ) {
		n = recv(c->fd, chunk, sizeof(chunk), MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN)) {
			conn_free(c);
			return;
		}
	}
	if (n > 0) {
		assert_int_equal(buf_add(&c->in, chunk, (size_t)n), 0);
		if (c->peer->bytes)
			c->peer->bytes(c);
		else
			request(c);
		return; /* c may be gone; what waits is written when it is ready */
	}
	if (events & OS_WRITE)
		flush(c);
}

static void accept_cb(int events, void *user)
{
	struct peer *p = user;
	int fd;

	while ((fd = accept4(p->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		struct peer_conn *c = calloc(1, sizeof(*c));

		assert_non_null(c);
		c->peer = p;
		c->fd = fd;
		buf_init(&c->in, IN_MAX);
		buf_init(&c->out, IN_MAX * 4ul);
		list_add(&p->conns, &c->node);
		p->accepted++;
		c->poll = os_poll_new(p->loop, fd, conn_cb, c);
		assert_non_null(c->poll);
		os_poll_set(c->poll, OS_READ);
	}
}

void peer_start(struct peer *p, struct os_loop *loop)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);

	p->loop = loop;
	list_init(&p->conns);
	p->fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_true(p->fd >= 0);
	assert_int_equal(bind(p->fd, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(p->fd, 4096), 0);
	assert_int_equal(getsockname(p->fd, (struct sockaddr *)&at, &len), 0);
	p->port = ntohs(at.sin_port);
	p->poll = os_poll_new(loop, p->fd, accept_cb, p);
	assert_non_null(p->poll);
	os_poll_set(p->poll, OS_READ);
}

void peer_stop(struct peer *p)
{
	if (p->fd < 0)
		return;
	while (!list_empty(&p->conns))
		conn_free(LIST_FIRST(&p->conns, struct peer_conn, node));
	os_poll_free(p->poll);
	close(p->fd);
	p->fd = -1;
}

const char *peer_url(const struct peer *p)
{
	static char url[64];

	snprintf(url, sizeof(url), "http://127.0.0.1:%d", p->port);
	return url;
}

/* Written when the loop says so, so that `c` cannot vanish under the caller. */
void peer_send(struct peer_conn *c, const void *data, size_t len)
{
	assert_int_equal(buf_add(&c->out, data, len), 0);
	os_poll_set(c->poll, OS_READ | OS_WRITE);
}

void peer_sends(struct peer_conn *c, const char *s)
{
	peer_send(c, s, strlen(s));
}

void peer_sendf(struct peer_conn *c, const char *fmt, ...)
{
	char text[4096];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	peer_sends(c, text);
}

void peer_close(struct peer_conn *c)
{
	c->closing = true;
	os_poll_set(c->poll, OS_READ | OS_WRITE);
}

void peer_reset(struct peer_conn *c)
{
	struct linger now = {.l_onoff = 1};

	setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	conn_free(c);
}
