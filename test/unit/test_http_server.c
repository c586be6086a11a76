/* The HTTP server against raw sockets: answers now and later, streams, hang-
 * ups, limits, malformed requests. One thread: the peer's socket does not
 * block, and the loop turns while the test waits for bytes. */
#include "unit.h"

#include <arpa/inet.h>
#include <ava.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/unix_sock.h"
#include "base/util.h"
#include "net/http_server.h"
#include "os/loop.h"

#define BODY_MAX 4096

struct fixture {
	struct os_loop *loop;
	struct http_server *server;
	char dir[200];
	int dirfd;
	struct sockaddr_in tcp; /* when the server is on TCP */
	bool on_tcp;
	/* what the handler saw and keeps */
	int calls, gone, drained, stream_gone;
	struct http_request *kept;
	struct http_stream *stream;
	char seen[1024];
};

/* ---- the application */

static void gone_cb(struct http_request *req, void *user)
{
	struct fixture *f = user;

	assert_ptr_equal(req, f->kept);
	f->gone++;
	f->kept = NULL;
}

static void stream_gone_cb(struct http_stream *st, void *user)
{
	struct fixture *f = user;

	assert_ptr_equal(st, f->stream);
	f->stream_gone++;
	f->stream = NULL;
}

static void stream_drained_cb(struct http_stream *st, void *user)
{
	((struct fixture *)user)->drained++;
}

static int note_query(const char *name, const char *value, void *user)
{
	struct fixture *f = user;
	size_t len = strlen(f->seen);

	snprintf(f->seen + len, sizeof(f->seen) - len, "[%s=%s]", name, value);
	return strcmp(name, "stop") == 0 ? 7 : 0;
}

static void start_stream(struct http_request *req, struct fixture *f, bool heartbeat)
{
	struct http_field fields[] = {{"Cache-Control", "no-store"}};
	struct http_answer head = {.status = 200,
				   .content_type = "text/event-stream",
				   .body = "data: hello\n\n",
				   .len = 13,
				   .fields = fields,
				   .nfields = 1};
	struct http_stream_hooks hooks = {.drained = stream_drained_cb,
					  .gone = stream_gone_cb,
					  .user = f,
					  .heartbeat = heartbeat};

	f->stream = http_stream_start(req, &head, &hooks);
}

static void handler(struct http_request *req, void *user)
{
	struct fixture *f = user;
	struct http_answer fixed = {.status = 200,
				    .content_type = "text/css",
				    .body = "body{}",
				    .len = 6,
				    .fixed = true};

	f->calls++;
	if (strcmp(req->path, "/keep") == 0) {
		f->kept = req;
		http_on_gone(req, gone_cb, f);
	} else if (strcmp(req->path, "/keep-deaf") == 0) {
		f->kept = req;
	} else if (strcmp(req->path, "/stream") == 0) {
		start_stream(req, f, false);
	} else if (strcmp(req->path, "/sse") == 0) {
		start_stream(req, f, true);
	} else if (strcmp(req->path, "/fixed") == 0) {
		http_reply_with(req, &fixed);
	} else {
		int n = snprintf(f->seen, sizeof(f->seen),
				 "%s %s body=%zu:%.20s x=%s uid=%d pid=%d q=%s", req->method,
				 req->path, req->body_len, req->body,
				 http_header(req, "x-test") ? http_header(req, "x-test") : "-",
				 req->has_peer ? (int)req->peer_uid : -1,
				 req->has_peer ? (int)req->peer_pid : -1,
				 http_query(req, "q") ? http_query(req, "q") : "-");
		int rv = http_query_each(req, note_query, f);

		assert_true(n > 0 && (rv == 0 || rv == 7));
		http_reply(req, 200, "text/plain", f->seen, strlen(f->seen));
	}
}

/* ---- fixture */

/* In a network namespace of its own (`unshare -n`) even the loopback is down. */
static void raise_loopback(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq ifr = {.ifr_name = "lo"};

	assert_true(fd >= 0);
	if (ioctl(fd, SIOCGIFFLAGS, &ifr) == 0 && !(ifr.ifr_flags & IFF_UP)) {
		ifr.ifr_flags |= IFF_UP;
		assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &ifr), 0);
	}
	close(fd);
}

static int listen_tcp(struct fixture *f)
{
	socklen_t len = sizeof(f->tcp);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	raise_loopback();
	f->tcp.sin_family = AF_INET;
	f->tcp.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)&f->tcp, len), 0);
	assert_int_equal(listen(fd, 64), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&f->tcp, &len), 0);
	return fd;
}

#define IDLE_MS 600000

static struct fixture *fixture_new(bool tcp)
{
	struct http_server_options o = {.body_max = BODY_MAX,
					.idle_ms = IDLE_MS,
					.heartbeat_ms = 40,
					.connections_max = 50};
	struct fixture *f = calloc(1, sizeof(*f));
	int fd = -1;

	snprintf(f->dir, sizeof(f->dir), "%s", unit_tmpdir());
	f->dirfd = open(f->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	f->loop = os_loop_new(NULL);
	f->on_tcp = tcp;
	if (tcp)
		fd = listen_tcp(f);
	else
		assert_int_equal(unix_sock_listen(f->dirfd, "s", &fd, NULL), 0);
	f->server = http_server_new(f->loop, fd, &o, handler, f, NULL);
	assert_non_null(f->server);
	return f;
}

static int set_up(void **state)
{
	*state = fixture_new(false);
	return 0;
}

static int set_up_tcp(void **state)
{
	*state = fixture_new(true);
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	http_server_stop(f->server);
	os_loop_free(f->loop);
	close(f->dirfd);
	unit_rmdir(f->dir);
	free(f);
	return 0;
}

/* Over the socket of a file and over TCP. */
#define BOTH(name, of)                                                                             \
	static void test_##name(void **state);                                                     \
	UNIT_ADD(over_tcp_##name, name, set_up_tcp, tear_down)                                     \
	TEST_OF(name, of)

/* ---- the peer */

static int dial(struct fixture *f)
{
	int fd;

	if (f->on_tcp) {
		fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		assert_int_equal(connect(fd, (struct sockaddr *)&f->tcp, sizeof(f->tcp)), 0);
	} else {
		assert_int_equal(unix_sock_connect(f->dirfd, "s", 1000, &fd, NULL), 0);
	}
	return fd;
}

static void put(int fd, const char *s)
{
	assert_int_equal(send(fd, s, strlen(s), MSG_NOSIGNAL), strlen(s));
}

static int ask(struct fixture *f, const char *request)
{
	int fd = dial(f);

	put(fd, request);
	return fd;
}

/* For longer than one may be; what was on its way before comes meanwhile. */
static void be_idle(struct fixture *f)
{
	test_clock_skip(IDLE_MS + 1000); /* libmicrohttpd counts seconds */
	for (int i = 0; i < 5; i++)
		os_loop_step(f->loop, 1);
}

/* Turn the loop until `text` holds `want` (NULL: until the peer's end of the
 * stream). Returns what was read, in a static buffer. */
static const char *get(struct fixture *f, int fd, const char *want)
{
	static char text[256 * 1024];
	int64_t began = clock_mono_ms();
	size_t len = 0;

	text[0] = '\0';
	while (clock_mono_ms() - began < 60000) {
		ssize_t n = recv(fd, text + len, sizeof(text) - 1 - len, MSG_DONTWAIT);

		if (n == 0 || (n < 0 && errno != EAGAIN)) {
			if (want)
				fail_msg("ended before \"%s\": %s", want, text);
			return text;
		}
		if (n > 0)
			len += (size_t)n;
		text[len] = '\0';
		if (want && strstr(text, want))
			return text;
		if (n < 0)
			os_loop_step(f->loop, 5);
	}
	fail_msg("nothing more came; so far: %s", text);
	return text;
}

#define UNTIL(f, condition)                                                                        \
	for (int64_t began_ = clock_mono_ms(); !(condition);) {                                    \
		assert_true(clock_mono_ms() - began_ < 60000);                                     \
		os_loop_step((f)->loop, 5);                                                        \
	}

/* ---- answers */

BOTH(answer, struct fixture *f)
{
	char want[200];
	int fd = ask(f, "GET /a%20b%2Fc?q=1%262&z=%C3%A9&flag HTTP/1.1\r\n"
			"Host: ava\r\nX-Test: yes\r\n\r\n");

	snprintf(want, sizeof(want),
		 "GET /a b/c body=0: x=yes uid=%d pid=%d q=1&2[q=1&2][z=\xc3\xa9][flag=]",
		 (int)getuid(), f->on_tcp ? 0 : (int)getpid());
	assert_non_null(strstr(get(f, fd, "[flag=]"), want));
	/* The same connection again, with a body in two pieces. */
	put(fd, "POST /p HTTP/1.1\r\nHost: ava\r\nContent-Length: 10\r\n\r\nhello");
	os_loop_step(f->loop, 5);
	assert_int_equal(f->calls, 1);
	put(fd, "world");
	get(f, fd, "POST /p body=10:helloworld");
	/* Two requests at once. */
	put(fd, "GET /1 HTTP/1.1\r\nHost: ava\r\n\r\nGET /2 HTTP/1.1\r\nHost: ava\r\n\r\n");
	get(f, fd, "GET /2");
	assert_int_equal(f->calls, 4);
	assert_int_equal(http_server_connections(f->server), 1);
	close(fd);
	UNTIL(f, http_server_connections(f->server) == 0);
}

BOTH(chunked_body, struct fixture *f)
{
	int fd = ask(f, "POST /c HTTP/1.1\r\nHost: ava\r\nTransfer-Encoding: chunked\r\n\r\n"
			"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n");

	get(f, fd, "body=11:hello world");
	close(fd);
}

BOTH(fixed_and_head, struct fixture *f)
{
	const char *text;
	int fd = ask(f, "GET /fixed HTTP/1.1\r\nHost: ava\r\n\r\n");

	text = get(f, fd, "body{}");
	assert_non_null(strstr(text, "Content-Length: 6\r\n"));
	assert_non_null(strstr(text, "Content-Type: text/css\r\n"));
	put(fd, "HEAD /fixed HTTP/1.1\r\nHost: ava\r\nConnection: close\r\n\r\n");
	text = get(f, fd, NULL);
	assert_null(strstr(text, "body{}"));
	assert_non_null(strstr(text, "Content-Length: 6\r\n"));
	close(fd);
}

TEST_OF(percent_nul, struct fixture *f)
{
	int fd = ask(f, "GET /keep%00x%zz%4?q=a%00b HTTP/1.1\r\nHost: ava\r\n\r\n");

	assert_non_null(strstr(get(f, fd, "q=a%00b"), "/keep%00x%zz%4 "));
	close(fd);
}

BOTH(kept, struct fixture *f)
{
	int fd = ask(f, "GET /keep HTTP/1.1\r\nHost: ava\r\n\r\n");

	UNTIL(f, f->kept);
	os_loop_step(f->loop, 20);
	assert_int_equal(http_server_busy(f->server), 1);
	assert_string_equal(f->kept->path, "/keep"); /* still valid */
	http_reply(f->kept, 202, "text/plain", "later", 5);
	f->kept = NULL;
	assert_non_null(strstr(get(f, fd, "later"), "HTTP/1.1 202 "));
	UNTIL(f, http_server_busy(f->server) == 0);
	put(fd, "GET /again HTTP/1.1\r\nHost: ava\r\n\r\n");
	get(f, fd, "GET /again");
	assert_int_equal(f->gone, 0);
	close(fd);
}

BOTH(gone, struct fixture *f)
{
	int fd = ask(f, "GET /keep HTTP/1.1\r\nHost: ava\r\n\r\n");

	UNTIL(f, f->kept);
	close(fd);
	UNTIL(f, f->gone == 1);
	UNTIL(f, http_server_busy(f->server) == 0 && http_server_connections(f->server) == 0);
}

/* Not told: the answer to a peer that left is dropped. And one who asks to be
 * told when it is too late is told. */
BOTH(gone_untold, struct fixture *f)
{
	int fd = ask(f, "GET /keep-deaf HTTP/1.1\r\nHost: ava\r\n\r\n");

	UNTIL(f, f->kept);
	close(fd);
	os_loop_step(f->loop, 20);
	assert_int_equal(http_server_busy(f->server), 1);
	http_reply(f->kept, 200, NULL, "x", 1);
	UNTIL(f, http_server_busy(f->server) == 0);
	fd = dial(f);
	f->kept = NULL;
	put(fd, "GET /keep-deaf HTTP/1.1\r\nHost: ava\r\n\r\n");
	UNTIL(f, f->kept);
	close(fd);
	os_loop_step(f->loop, 20);
	http_on_gone(f->kept, gone_cb, f);
	assert_int_equal(f->gone, 0); /* never from inside a call */
	UNTIL(f, f->gone == 1);
	UNTIL(f, http_server_busy(f->server) == 0);
}

/* ---- streams */

BOTH(stream, struct fixture *f)
{
	const char *text;
	int fd = ask(f, "GET /stream HTTP/1.1\r\nHost: ava\r\n\r\n");

	text = get(f, fd, "data: hello\n\n");
	assert_non_null(strstr(text, "Transfer-Encoding: chunked\r\n"));
	assert_non_null(strstr(text, "Content-Type: text/event-stream\r\n"));
	assert_non_null(strstr(text, "Cache-Control: no-store\r\n"));
	for (int i = 0; i < 3; i++) {
		assert_int_equal(http_stream_write(f->stream, "data: more\n\n", 12), 0);
		get(f, fd, "data: more\n\n");
		UNTIL(f, http_stream_waiting(f->stream) == 0);
	}
	assert_int_equal(http_stream_write(f->stream, "last", 4), 0);
	http_stream_end(f->stream);
	f->stream = NULL;
	get(f, fd, "last\r\n0\r\n\r\n");
	put(fd, "GET /next HTTP/1.1\r\nHost: ava\r\n\r\n"); /* kept alive */
	get(f, fd, "GET /next");
	assert_int_equal(f->stream_gone, 0);
	close(fd);
}

BOTH(stream_gone, struct fixture *f)
{
	int fd = ask(f, "GET /stream HTTP/1.1\r\nHost: ava\r\n\r\n");

	get(f, fd, "hello");
	close(fd);
	UNTIL(f, f->stream_gone == 1); /* nothing was written to notice it */
	UNTIL(f, http_server_connections(f->server) == 0);
}

BOTH(stream_http_1_0, struct fixture *f)
{
	const char *text;
	int fd = ask(f, "GET /stream HTTP/1.0\r\n\r\n");

	UNTIL(f, f->stream);
	http_stream_write(f->stream, "end", 3);
	http_stream_end(f->stream);
	f->stream = NULL;
	text = get(f, fd, NULL);
	assert_null(strstr(text, "chunked"));
	assert_string_equal(strstr(text, "\r\n\r\n"), "\r\n\r\ndata: hello\n\nend");
	close(fd);
}

BOTH(stream_head_method, struct fixture *f)
{
	int fd = ask(f, "HEAD /stream HTTP/1.1\r\nHost: ava\r\nConnection: close\r\n\r\n");

	assert_null(strstr(get(f, fd, NULL), "hello"));
	UNTIL(f, f->stream_gone == 1);
	close(fd);
}

BOTH(heartbeat, struct fixture *f)
{
	int fd = ask(f, "GET /sse HTTP/1.1\r\nHost: ava\r\n\r\n");

	get(f, fd, "\n\n\r\n3\r\n:\n\n\r\n");
	close(fd);
	UNTIL(f, f->stream_gone == 1);
}

/* Read what is there now and count x in it. */
static size_t count_x(struct fixture *f, int fd)
{
	static char buf[65536];
	size_t got = 0;
	ssize_t n;

	os_loop_step(f->loop, 5);
	while ((n = recv(fd, buf, sizeof(buf), MSG_DONTWAIT)) > 0)
		for (ssize_t i = 0; i < n; i++)
			got += buf[i] == 'x';
	return got;
}

/* A peer that does not read: the writer is told to wait, nothing grows, and
 * once the peer reads everything arrives in order. */
BOTH(slow_peer, struct fixture *f)
{
	static char piece[8192];
	size_t got = 0, all;
	int fd = dial(f), rv, n = 0;

	memset(piece, 'x', sizeof(piece));
	put(fd, "GET /stream HTTP/1.1\r\nHost: ava\r\n\r\n");
	UNTIL(f, f->stream);
	do { /* the system may take more of it, later than at once */
		f->drained = 0;
		for (rv = 0; rv == 0 && n < 10000; n++) {
			rv = http_stream_write(f->stream, piece, sizeof(piece));
			if (rv == 0)
				os_loop_step(f->loop, 0);
		}
		assert_int_equal(rv, 1);
		assert_in_range(http_stream_waiting(f->stream), HTTP_STREAM_HIGH,
				HTTP_STREAM_HIGH + sizeof(piece));
		os_loop_step(f->loop, 10);
	} while (f->drained && f->on_tcp);
	assert_int_equal(f->drained, 0);
	/* It may go on writing, up to a bound. */
	while (rv >= 0)
		rv = http_stream_write(f->stream, piece, sizeof(piece)), n += rv >= 0;
	assert_int_equal(rv, AVA_ETOOBIG);
	while (!f->drained || http_stream_waiting(f->stream) > 0)
		got += count_x(f, fd);
	assert_int_equal(f->drained, 1);
	http_stream_end(f->stream);
	all = (size_t)n * sizeof(piece) + 1; /* te"x"t/event-stream */
	for (int i = 0; got < all && i < 6000; i++)
		got += count_x(f, fd);
	assert_int_equal(got + count_x(f, fd), all);
	close(fd);
}

/* A peer that never reads is dropped when the connection makes no progress. */
BOTH(stuck_peer, struct fixture *f)
{
	static char piece[512 * 1024];
	int fd = ask(f, "GET /stream HTTP/1.1\r\nHost: ava\r\n\r\n");

	UNTIL(f, f->stream);
	for (int i = 0; i < 10; i++)
		http_stream_write(f->stream, piece, sizeof(piece));
	for (int i = 0; f->stream_gone == 0 && i < 100; i++)
		be_idle(f);
	assert_int_equal(f->stream_gone, 1);
	close(fd);
}

/* ---- refusals */

static const struct {
	const char *name, *request, *want;
} bad[] = {
	{"length over the bound", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4097\r\n\r\n",
	 "HTTP/1.1 413 "},
	{"no number", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1x\r\n\r\nx", "HTTP/1.1 400 "},
	{"negative", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: -1\r\n\r\nx", "HTTP/1.1 400 "},
	{"more than 64 bits",
	 "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000999999999999999\r\n\r\nx",
	 "HTTP/1.1 413 "},
	{"two lengths",
	 "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
	 "HTTP/1.1 400 "},
	{"length and chunks",
	 "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
	 "0\r\n\r\n",
	 "HTTP/1.1 400 "},
	{"another encoding",
	 "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
	 "HTTP/1.1 400 "},
	{"two hosts", "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", "HTTP/1.1 400 "},
};

TEST_OF(refused, struct fixture *f)
{
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int fd = ask(f, bad[i].request);

		print_message("%s\n", bad[i].name);
		get(f, fd, bad[i].want);
		close(fd);
	}
	assert_int_equal(f->calls, 0);
	UNTIL(f, http_server_busy(f->server) == 0);
}

TEST_OF(no_host, struct fixture *f)
{
	static const char *const heads[] = {
		"GET / HTTP/1.1\r\n\r\n",
		"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n",
		"GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\nHost: ava\r\n\r\n",
	};

	for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
		int fd = dial(f);
		const char *text;

		put(fd, heads[i]);
		text = get(f, fd, NULL);
		assert_true(strncmp(text, "HTTP/1.1 400 ", 13) == 0);
		assert_null(strstr(text + 1, "HTTP/1.1 ")); /* answered once */
		assert_non_null(strstr(text, "the request has no Host"));
		close(fd);
	}
	assert_int_equal(f->calls, 0);
}

/* It ended the path, and what stands behind it was nobody's. */
TEST_OF(raw_nul, struct fixture *f)
{
	static const struct {
		const char *line;
		size_t len;
	} lines[] = {
#define LINE(text) {text, sizeof(text) - 1}
		LINE("GET /a\0/b HTTP/1.1\r\nHost: ava\r\n\r\n"),
		LINE("GET /a\0HTTP/1.1 HTTP/1.1\r\nHost: ava\r\n\r\n"),
		LINE("GET /a?b=\0c HTTP/1.1\r\nHost: ava\r\n\r\n"),
		LINE("GET /a\0 HTTP/1.1\r\nHost: ava\r\n\r\n"),
	};
	int fd;

	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		fd = dial(f);
		assert_int_equal(write(fd, lines[i].line, lines[i].len), lines[i].len);
		get(f, fd, "HTTP/1.1 400 ");
		close(fd);
	}
	assert_int_equal(f->calls, 0);
	/* What has none is taken. */
	fd = ask(f, "GET /a%20b?c=%26&d HTTP/1.1\r\nHost: ava\r\n\r\n");
	get(f, fd, "HTTP/1.1 200 ");
	put(fd, "\r\nGET /a HTTP/1.1\r\nHost: ava\r\n\r\n");
	get(f, fd, "GET /a");
	close(fd);
}

TEST_OF(chunks_over_bound, struct fixture *f)
{
	static char body[6000];
	int fd = dial(f);

	memset(body, 'b', sizeof(body) - 1);
	put(fd, "POST /c HTTP/1.1\r\nHost: ava\r\nTransfer-Encoding: chunked\r\n\r\n176f\r\n");
	put(fd, body);
	put(fd, "\r\n0\r\n\r\n");
	get(f, fd, "HTTP/1.1 413 ");
	close(fd);
	/* One that never ends is cut off. */
	fd = ask(f, "POST /c HTTP/1.1\r\nHost: ava\r\nTransfer-Encoding: chunked\r\n\r\n"
		    "ffffff\r\n");
	put(fd, body);
	put(fd, body);
	assert_string_equal(get(f, fd, NULL), "");
	close(fd);
	assert_int_equal(f->calls, 0);
}

/* All the room for bodies is taken by peers that never send the rest. */
TEST_OF(half_bodies_give_way, struct fixture *f)
{
	static char body[BODY_MAX + 1];
	char head[128];
	int half[33], fd;

	memset(body, 'b', BODY_MAX);
	snprintf(head, sizeof(head), "POST /x HTTP/1.1\r\nHost: ava\r\nContent-Length: %d\r\n\r\n",
		 BODY_MAX);
	body[BODY_MAX - 1] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(half); i++) {
		half[i] = dial(f);
		put(half[i], head);
		put(half[i], body);
		UNTIL(f, http_server_busy(f->server) == i + 1);
		os_loop_step(f->loop, 5);
	}
	for (int i = 0; i < 3; i++) {
		fd = ask(f, head);
		put(fd, body);
		put(fd, "b");
		get(f, fd, "HTTP/1.1 200 ");
		close(fd);
	}
	put(half[0], "b"); /* the one that waited longest made room */
	get(f, half[0], "HTTP/1.1 503 ");
	put(half[32], "b");
	get(f, half[32], "HTTP/1.1 200 ");
	for (size_t i = 0; i < ARRAY_LEN(half); i++)
		close(half[i]);
	UNTIL(f, http_server_busy(f->server) == 0);
}

TEST_OF(head_over_bound, struct fixture *f)
{
	static char line[20000];
	const char *text;
	int fd = dial(f);

	memset(line, 'h', sizeof(line) - 1);
	put(fd, "GET / HTTP/1.1\r\nHost: ava\r\nX-Flood: ");
	put(fd, line);
	text = get(f, fd, "HTTP/1.1 4");
	assert_true(strstr(text, " 413 ") || strstr(text, " 431 "));
	close(fd);
	fd = ask(f, "GET /");
	put(fd, line);
	get(f, fd, "HTTP/1.1 414 ");
	close(fd);
	/* 3 KB of request line and fields are fine. */
	fd = dial(f);
	line[3000] = '\0';
	put(fd, "GET /ok?q=");
	put(fd, line);
	put(fd, " HTTP/1.1\r\nHost: ava\r\n\r\n");
	get(f, fd, "HTTP/1.1 200 ");
	close(fd);
	assert_int_equal(f->calls, 1);
}

TEST_OF(half_request, struct fixture *f)
{
	int fd = ask(f, "POST /x HTTP/1.1\r\nHost: ava\r\nContent-Length: 10\r\n\r\nhal");

	UNTIL(f, http_server_busy(f->server) == 1);
	close(fd);
	UNTIL(f, http_server_busy(f->server) == 0);
	assert_int_equal(f->calls, 0);
}

/* One that stays half: the idle time ends it. */
TEST_OF(half_line, struct fixture *f)
{
	int fd = ask(f, "GET /x HTT");

	for (int i = 0; http_server_connections(f->server) > 0 || i == 0; i++)
		be_idle(f);
	assert_string_equal(get(f, fd, NULL), "");
	close(fd);
	assert_int_equal(f->calls, 0);
}

/* ---- ends */

TEST_OF(stop_with_everything_open, struct fixture *f)
{
	int kept = dial(f), deaf = dial(f), stream = dial(f), idle = dial(f);

	put(deaf, "GET /keep-deaf HTTP/1.1\r\nHost: ava\r\n\r\n");
	UNTIL(f, f->kept);
	put(kept, "GET /keep HTTP/1.1\r\nHost: ava\r\n\r\n");
	UNTIL(f, f->calls == 2);
	put(stream, "GET /stream HTTP/1.1\r\nHost: ava\r\n\r\n");
	get(f, stream, "hello");
	assert_int_equal(http_server_busy(f->server), 3);
	assert_int_equal(http_server_connections(f->server), 4);
	http_server_stop(f->server);
	f->server = NULL;
	assert_int_equal(f->gone, 1);
	assert_int_equal(f->stream_gone, 1);
	assert_string_equal(get(f, idle, NULL), "");
	close(kept), close(deaf), close(stream), close(idle);
}

TEST_OF(quiesce, struct fixture *f)
{
	int fd = dial(f), other;

	put(fd, "GET /keep HTTP/1.1\r\nHost: ava\r\n\r\n");
	UNTIL(f, f->kept);
	http_server_quiesce(f->server);
	http_server_quiesce(f->server);
	assert_int_equal(unix_sock_connect(f->dirfd, "s", 100, &other, NULL), AVA_ECONNECT);
	http_reply(f->kept, 200, NULL, "bye", 3);
	get(f, fd, "bye");
	close(fd);
}

/* More peers than connections: they wait and are served. */
TEST_OF(connection_limit, struct fixture *f)
{
	int fd[60];

	for (int i = 0; i < 60; i++) {
		fd[i] = dial(f);
		put(fd[i], "GET /x HTTP/1.1\r\nHost: ava\r\n\r\n");
	}
	for (int i = 0; i < 60; i++) {
		get(f, fd[i], "GET /x");
		assert_true(http_server_connections(f->server) <= 50);
		close(fd[i]);
	}
}

/* Who holds nearly all connections and says nothing, half a line or half a body makes room at once,
 * though more of it comes all the time. */
static void make_room(struct fixture *f, const char *half)
{
	int fd[50], newcomer, served = 0;

	for (int i = 0; i < 50; i++) {
		fd[i] = dial(f);
		put(fd[i], half);
	}
	UNTIL(f, http_server_connections(f->server) > 30);
	test_clock_stop(); /* nobody goes for being idle */
	for (int i = 0; i < 3; i++) {
		char got = 0;

		newcomer = dial(f);
		put(newcomer, "GET /x HTTP/1.1\r\nHost: ava\r\n\r\n");
		for (int n = 0; n < 50 && recv(newcomer, &got, 1, MSG_DONTWAIT) != 1; n++) {
			for (int k = 0; *half && k < 50; k++)
				(void)send(fd[k], "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
			os_loop_step(f->loop, 0);
		}
		served += got == 'H';
		close(newcomer);
	}
	test_clock_go();
	assert_int_equal(served, 3);
	assert_string_equal(get(f, fd[0], NULL), ""); /* the first that came */
	for (int i = 0; i < 50; i++)
		close(fd[i]);
	UNTIL(f, http_server_connections(f->server) == 0);
}

TEST_OF(others_make_room, struct fixture *f)
{
	make_room(f, "");
	make_room(f, "GET /x HTT");
	make_room(f, "POST /x HTTP/1.1\r\nHost: ava\r\nContent-Length: 1000\r\n\r\n");
}

static void one_exchange(struct fixture *f, const char *path)
{
	char text[200];
	int fd = dial(f), n = 0;

	snprintf(text, sizeof(text), "POST %s HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi",
		 path);
	put(fd, text);
	f->stream = NULL;
	while (n++ < 20 && recv(fd, text, sizeof(text), MSG_DONTWAIT) < 0)
		os_loop_step(f->loop, 1);
	close(fd);
	if (f->stream)
		http_stream_write(f->stream, "data: x\n\n", 9);
	for (n = 0; n < 1000 && http_server_connections(f->server) > 0; n++)
		os_loop_step(f->loop, 1);
	assert_int_equal(http_server_busy(f->server), 0);
	f->stream = NULL;
}

/* Allocations of our own that fail close the connection and leak nothing. */
TEST_OF(alloc_faults, struct fixture *f)
{
	FAULT_LOOP(k, one_exchange(f, "/plain"));
	FAULT_LOOP(k, one_exchange(f, "/stream"));
}

TEST_OF(new_fails, struct fixture *f)
{
	struct ava_error err;
	int fd;

	assert_null(http_server_new(f->loop, open("/dev/null", O_RDWR), NULL, handler, f, &err));
	assert_true(err.text[0] != '\0');
	FAULT_LOOP(k, {
		struct http_server *s;

		assert_int_equal(unix_sock_listen(f->dirfd, "t", &fd, NULL), 0);
		s = http_server_new(f->loop, fd, NULL, handler, f, &err);
		http_server_stop(s);
		os_loop_step(f->loop, 0);
		assert_int_equal(fcntl(fd, F_GETFD), -1); /* taken also on error */
	});
}

UNIT_GROUP(.before = set_up, .after = tear_down);
