/* Event streams against a server that says exactly what a script has: order,
 * cuts, refusals, ends, connecting again. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/unix_sock.h"
#include "base/util.h"
#include "client/remote.h"

#define HEAD                                                                                       \
	"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"                                   \
	"Connection: close\r\n\r\n"
#define CHUNKED               "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
#define EVENT(id, type, data) "id: " #id "\nevent: " type "\ndata: " data "\n\n"

struct line { /* one connection */
	const char *answer;
	size_t piece; /* bytes a write; 0: all at once */
	bool stay;    /* until the client hangs up */
};

struct server {
	pthread_t thread;
	int listen_fd, nlines;
	const struct line *lines;
	char requests[4][600]; /* as they came */
};

struct world {
	struct server s;
	char dir[256];
	struct remote_stream_host host;
	int served, serve_rv; /* how often it was asked for; what it answers */
};

static void write_pieces(int fd, const struct line *l)
{
	size_t len = strlen(l->answer), piece = l->piece ? l->piece : len;

	for (size_t at = 0; at < len; at += piece) {
		size_t n = len - at < piece ? len - at : piece;

		if (send(fd, l->answer + at, n, MSG_NOSIGNAL) < 0)
			return;
	}
}

static void *serve_lines(void *arg)
{
	struct server *s = arg;
	char byte;

	for (int i = 0; i < s->nlines; i++) {
		int fd = accept(s->listen_fd, NULL, NULL);
		size_t n = 0;

		while (n < sizeof(s->requests[i]) - 1 && !strstr(s->requests[i], "\r\n\r\n") &&
		       recv(fd, s->requests[i] + n, 1, 0) == 1)
			n++;
		write_pieces(fd, &s->lines[i]);
		while (s->lines[i].stay && recv(fd, &byte, 1, 0) > 0)
			;
		close(fd);
	}
	return NULL;
}

static int serve(void *user, struct ava_error *err)
{
	struct world *w = user;

	w->served++;
	return w->serve_rv == 0 ? 0 : err_set(err, w->serve_rv, "no daemon");
}

static void begin(struct world *w, const struct line *lines, int n)
{
	int dir, flags;

	*w = (struct world){0};
	snprintf(w->dir, sizeof(w->dir), "%s", unit_tmpdir());
	dir = open(w->dir, O_PATH | O_DIRECTORY);
	assert_int_equal(unix_sock_listen(dir, UNIX_SOCK_NAME, &w->s.listen_fd, NULL), 0);
	close(dir);
	flags = fcntl(w->s.listen_fd, F_GETFL);
	fcntl(w->s.listen_fd, F_SETFL, flags & ~O_NONBLOCK);
	w->s.lines = lines;
	w->s.nlines = n;
	w->host = (struct remote_stream_host){.root = w->dir, .serve = serve, .user = w};
	w->host.epoll = epoll_create1(EPOLL_CLOEXEC);
	assert_int_equal(pthread_create(&w->s.thread, NULL, serve_lines, &w->s), 0);
}

static void end(struct world *w)
{
	pthread_join(w->s.thread, NULL);
	close(w->s.listen_fd);
	close(w->host.epoll);
	unit_rmdir(w->dir);
}

static struct backend_cursor *join(struct world *w, const char *path, uint64_t after)
{
	struct backend_cursor *s = NULL;

	assert_int_equal(remote_stream_open(&w->host, path, after, 40, &s, NULL), 0);
	return s;
}

/* The next item, or what else comes. */
static int next(struct backend_cursor *s, struct backend_item *item)
{
	struct ava_error err;
	int rv;

	while ((rv = remote_stream_next(s, item, &err)) == 0 && !remote_stream_ended(s))
		assert_int_equal(remote_stream_wait(s, 60000, &err), 1);
	return rv;
}

static void expect(struct backend_cursor *s, const char *line)
{
	struct backend_item item;

	assert_int_equal(next(s, &item), 1);
	assert_false(item.is_text);
	assert_string_equal(item.line, line);
	assert_int_equal(item.len, strlen(line));
}

static void expect_text(struct backend_cursor *s, enum ava_text_kind kind, const char *text)
{
	struct backend_item item;

	assert_int_equal(next(s, &item), 1);
	assert_true(item.is_text);
	assert_int_equal(item.text.kind, kind);
	assert_string_equal(item.text.session, "a");
	assert_string_equal(item.text.text, text);
}

/* Cut in the middle of a frame: that one comes again, whole. */
TEST(cut)
{
	static const size_t pieces[] = {0, 1, 7};

	for (size_t i = 0; i < 3; i++) {
		const struct line lines[] = {
			{HEAD EVENT(5, "A", "five") EVENT(7, "B", "seven") "id: 8\ndata: ei",
			 pieces[i], false},
			{HEAD EVENT(8, "C", "eight"), pieces[i], true},
		};
		struct backend_cursor *s;
		struct world w;

		begin(&w, lines, 2);
		s = join(&w, "/api/v1/events", 0);
		expect(s, "five");
		expect(s, "seven");
		expect(s, "eight");
		assert_int_equal(w.served, 1);
		remote_stream_close(s);
		end(&w);
		assert_non_null(strstr(w.s.requests[0], "\r\nLast-Event-ID: 0\r\n"));
		assert_non_null(strstr(w.s.requests[1], "\r\nLast-Event-ID: 7\r\n"));
	}
}

/* From now on: what a new connection asks for is known before the first event. */
TEST(now)
{
	static const struct line lines[] = {{HEAD, 0, false}, {HEAD EVENT(41, "A", "x"), 0, true}};
	struct backend_cursor *s;
	struct world w;

	begin(&w, lines, 2);
	s = join(&w, "/api/v1/events?session=a", AVA_NOW);
	expect(s, "x");
	remote_stream_close(s);
	end(&w);
	assert_non_null(strstr(w.s.requests[0], "GET /api/v1/events?session=a HTTP"));
	assert_null(strstr(w.s.requests[0], "Last-Event-ID"));
	assert_non_null(strstr(w.s.requests[1], "\r\nLast-Event-ID: 40\r\n"));
}

TEST(run_ends)
{
	static const struct line lines[] = {
		{HEAD EVENT(5, "SubagentComplete", "done"), 0, false},
		{CHUNKED "0\r\n\r\n", 0, false}, /* asked for what comes behind its end */
	};
	struct backend_cursor *s;
	struct backend_item item;
	struct world w;

	begin(&w, lines, 2);
	s = join(&w, "/api/v1/runs/S-1/events", 0);
	expect(s, "done");
	assert_int_equal(next(s, &item), 0);
	assert_true(remote_stream_ended(s));
	assert_int_equal(remote_stream_wait(s, -1, NULL), 1);
	remote_stream_close(s);
	s = join(&w, "/api/v1/runs/S-1/events", 5);
	assert_int_equal(next(s, &item), 0);
	assert_true(remote_stream_ended(s));
	remote_stream_close(s);
	assert_int_equal(w.served, 0);
	end(&w);
}

TEST(text)
{
	static const struct line line = {
		HEAD "event: text\ndata: {\"sessionId\":\"a\",\"text\":\"hel\\nlo\"}\n\n"
		     "event: thinking\ndata: {\"sessionId\":\"a\",\"text\":\"hm\"}\n\n"
		     "event: text\ndata: {\"sessionId\":\n\n"
		     "event: text\ndata: [1]\n\n"
		     "event: turn\ndata: {\"text\":\"no session\"}\n\n"
		     "event: turn\ndata: {\"sessionId\":\"a\",\"state\":\"idle\"}\n\n" EVENT(
			     9, "A", "nine"),
		0, true};
	struct backend_cursor *s;
	struct world w;

	begin(&w, &line, 1);
	s = join(&w, "/api/v1/events?session=a", 0);
	expect_text(s, AVA_TEXT, "hel\nlo");
	expect_text(s, AVA_THINKING, "hm");
	expect_text(s, AVA_TURN, "idle");
	expect(s, "nine");
	remote_stream_close(s);
	end(&w);
}

TEST(refused)
{
	static const struct {
		const char *answer;
		int code;
	} cases[] = {
		{"HTTP/1.1 404 Not Found\r\nContent-Length: 50\r\n\r\n"
		 "{\"error\":{\"code\":\"not_found\",\"message\":\"no run\"}}\n",
		 AVA_ENOENT},
		{"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n", AVA_EDENIED},
		{"SSH-2.0-OpenSSH_9.2\r\n\r\n", AVA_EPROTO},
		{"", AVA_ECONNECT},
		{"HTTP/1.1 200 O", AVA_ECONNECT},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const struct line line = {cases[i].answer, 0, false};
		struct backend_cursor *s = NULL;
		struct ava_error err = {0};
		struct world w;

		begin(&w, &line, 1);
		assert_int_equal(
			remote_stream_open(&w.host, "/api/v1/runs/S-1/events", 0, 0, &s, &err),
			cases[i].code);
		assert_true(strlen(err.text) > 0);
		assert_null(s);
		end(&w);
	}
}

/* No daemon for a while: an error each time, then it goes on. */
TEST(lost)
{
	static const struct line lines[] = {
		{HEAD EVENT(5, "A", "five"), 0, false},
		{HEAD EVENT(6, "A", "six"), 0, true},
	};
	struct backend_cursor *s;
	struct backend_item item;
	struct world w;

	begin(&w, lines, 2);
	s = join(&w, "/api/v1/events", 0);
	expect(s, "five");
	w.serve_rv = AVA_ECONNECT;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(next(s, &item), AVA_ECONNECT);
		assert_int_equal(w.host.lost, 1);
		assert_false(remote_stream_ended(s));
	}
	w.serve_rv = 0;
	expect(s, "six");
	assert_int_equal(w.host.lost, 0);
	remote_stream_close(s);
	end(&w);
}

/* Three heartbeats that do not come: the connection counts as lost. */
TEST(silent)
{
	static const struct line lines[] = {
		{HEAD EVENT(5, "A", "five"), 0, true},
		{HEAD EVENT(6, "A", "six"), 0, true},
	};
	struct backend_cursor *s;
	struct backend_item item;
	struct world w;

	begin(&w, lines, 2);
	test_clock_stop();
	s = join(&w, "/api/v1/events", 0);
	expect(s, "five");
	test_clock_skip(44999);
	assert_int_equal(remote_stream_next(s, &item, NULL), 0);
	assert_int_equal(remote_stream_wait(s, 0, NULL), 0);
	test_clock_skip(1);
	assert_int_equal(remote_stream_wait(s, -1, NULL), 1);
	expect(s, "six");
	assert_int_equal(w.served, 1);
	test_clock_go();
	remote_stream_close(s);
	end(&w);
}

TEST(nobody)
{
	const char *dir = unit_tmpdir();
	struct remote_stream_host host = {.root = dir, .epoll = -1};
	struct backend_cursor *s = NULL;
	struct ava_error err;

	assert_int_equal(remote_stream_open(&host, "/x", 0, 0, &s, &err), AVA_ECONNECT);
	assert_null(s);
	unit_rmdir(dir);
	assert_int_equal(remote_stream_open(&host, "/x", 0, 0, &s, &err), AVA_ENOENT);
}
