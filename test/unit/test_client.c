/* The client against the real HTTP server, in a thread of its own; and the
 * start of a daemon, played by this program itself (see daemon_main). */
#include "unit.h"

#include <ava.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/ready.h"
#include "base/unix_sock.h"
#include "base/util.h"
#include "client/client.h"
#include "client/start.h"
#include "whole_stream.h"
#include "net/http_server.h"
#include "os/lock.h"
#include "os/loop.h"

#define BIG (3 * 1024 * 1024)

/* ---- a server: everything but `loop` belongs to its thread */

struct server {
	pthread_t thread;
	struct os_loop *loop;
	struct http_server *http;
	struct os_task stop;
	struct os_timer *later;
	struct http_request *kept;
	struct http_stream *stream;
	int sent; /* events of the stream */
	int dirfd;
	int fd;
};

static void later_cb(void *user)
{
	struct server *s = user;
	char text[100];
	int n;

	if (s->kept) {
		http_reply(s->kept, 200, "text/plain", "later", 5);
		s->kept = NULL;
	}
	if (!s->stream)
		return;
	n = snprintf(text, sizeof(text), "id: %d\nevent: tick\ndata: {\"n\":%d}\n\n", s->sent,
		     s->sent);
	http_stream_write(s->stream, text, (size_t)n);
	if (++s->sent == 5) {
		http_stream_end(s->stream);
		s->stream = NULL;
	} else {
		os_timer_set(s->later, 5);
	}
}

static void stream_gone_cb(struct http_stream *st, void *user)
{
	((struct server *)user)->stream = NULL;
}

static void start_stream(struct server *s, struct http_request *req)
{
	const char *last = http_header(req, "Last-Event-ID");
	struct http_answer head = {.status = 200, .content_type = "text/event-stream"};
	struct http_stream_hooks hooks = {.gone = stream_gone_cb, .user = s, .heartbeat = true};

	s->sent = last ? atoi(last) + 1 : 0;
	s->stream = http_stream_start(req, &head, &hooks);
	os_timer_set(s->later, 1);
}

static void reply_big(struct http_request *req)
{
	char *big = malloc(BIG);

	memset(big, 'b', BIG);
	http_reply(req, 200, "text/plain", big, BIG);
	free(big);
}

static int never_ms; /* how long the clock goes on while /never is not answered */

static void handler(struct http_request *req, void *user)
{
	static const char denied[] = "{\"error\":{\"code\":\"budget\",\"message\":\"no money\"}}";
	struct http_answer close_it = {.status = 200, .body = "bye", .len = 3};
	struct http_field fields[] = {{"Connection", "close"}};
	struct server *s = user;
	char text[300];
	int n;

	close_it.fields = fields;
	close_it.nfields = 1;
	if (strcmp(req->path, "/later") == 0) {
		s->kept = req;
		os_timer_set(s->later, 20);
	} else if (strcmp(req->path, "/never") == 0) {
		s->kept = NULL;
		test_clock_skip(never_ms);
	} else if (strcmp(req->path, "/stream") == 0) {
		start_stream(s, req);
	} else if (strcmp(req->path, "/big") == 0) {
		reply_big(req);
	} else if (strcmp(req->path, "/refuse") == 0) {
		http_reply(req, 402, "application/json", denied, sizeof(denied) - 1);
	} else if (strcmp(req->path, "/plain-404") == 0) {
		http_reply(req, 404, "text/html", "<html>", 6);
	} else if (strcmp(req->path, "/close") == 0) {
		http_reply_with(req, &close_it);
	} else if (strcmp(req->path, "/stop") == 0) {
		http_reply(req, 200, NULL, "", 0);
		os_loop_stop(s->loop);
	} else {
		n = snprintf(text, sizeof(text), "%s %s %zu %.50s pid=%d", req->method, req->path,
			     req->body_len, req->body, (int)getpid());
		http_reply(req, 200, "text/plain", text, (size_t)n);
	}
}

static void stop_run(struct os_task *t)
{
	os_loop_stop(CONTAINER_OF(t, struct server, stop)->loop);
}

static void *server_main(void *arg)
{
	struct server *s = arg;

	os_loop_run(s->loop);
	http_server_stop(s->http);
	os_timer_free(s->later);
	os_loop_free(s->loop);
	return NULL;
}

static int server_open(struct server *s, int dirfd, const struct lock *l)
{
	struct http_server_options o = {.heartbeat_ms = 30};

	s->loop = os_loop_new(NULL);
	s->later = os_timer_new(s->loop, later_cb, s);
	os_task_init(&s->stop, stop_run);
	s->stream = NULL;
	s->kept = NULL;
	if (lock_listen(l, dirfd, &s->fd, NULL) != 0)
		return -1;
	s->http = http_server_new(s->loop, s->fd, &o, handler, s, NULL);
	return s->http ? 0 : -1;
}

/* ---- fixture */

static char root[PATH_MAX];
static struct lock root_lock;
static struct server server;
static struct client *client;

static void server_start(void)
{
	assert_int_equal(server_open(&server, server.dirfd, &root_lock), 0);
	assert_int_equal(pthread_create(&server.thread, NULL, server_main, &server), 0);
}

static void server_stop(void)
{
	os_post(server.loop, &server.stop);
	pthread_join(server.thread, NULL);
}

static int setup(void **state)
{
	snprintf(root, sizeof(root), "%s", unit_tmpdir());
	server.dirfd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(lock_take(&root_lock, server.dirfd, NULL), 0);
	server_start();
	assert_int_equal(client_open(root, false, &client, NULL), 0);
	return 0;
}

static int teardown(void **state)
{
	test_clock_go();
	client_close(client);
	server_stop();
	lock_drop(&root_lock);
	close(server.dirfd);
	unit_rmdir(root);
	return 0;
}

static void expect(const char *method, const char *path, const char *json, int status,
		   const char *body)
{
	struct client_reply r;
	struct ava_error err = {0};
	int rv = client_request(client, method, path, json, &r, &err);

	if (rv != 0)
		print_message("%s\n", err.text);
	assert_int_equal(rv, 0);
	assert_int_equal(r.status, status);
	if (strncmp(r.body, body, strlen(body)) != 0)
		fail_msg("got %s, not %s", r.body, body);
}

/* ---- requests */

TEST_WITH(requests, setup, teardown)
{
	expect("GET", "/a?b=c", NULL, 200, "GET /a 0 ");
	expect("POST", "/a", "{\"x\":1}", 200, "POST /a 7 {\"x\":1}");
	expect("POST", "/a", NULL, 200, "POST /a 0 ");
	expect("DELETE", "/a", NULL, 200, "DELETE /a 0 ");
	expect("GET", "/later", NULL, 200, "later");
	expect("GET", "/close", NULL, 200, "bye");
	expect("GET", "/again", NULL, 200, "GET /again");
	expect("GET", "/plain-404", NULL, 404, "<html>");
}

TEST_WITH(big, setup, teardown)
{
	struct client_reply r;
	char *json = malloc(1024 * 1024 + 1);

	assert_int_equal(client_request(client, "GET", "/big", NULL, &r, NULL), 0);
	assert_int_equal(r.len, BIG);
	assert_int_equal(strspn(r.body, "b"), BIG);
	memset(json, ' ', 1024 * 1024);
	json[1024 * 1024] = '\0';
	expect("POST", "/a", json, 200, "POST /a 1048576 ");
	free(json);
}

/* The daemon refuses before it has read: its answer is still seen. */
TEST_WITH(body_too_big, setup, teardown)
{
	char *json = malloc(4 * 1024 * 1024 + 1);
	struct client_reply r;
	struct ava_error err;

	memset(json, ' ', 4 * 1024 * 1024);
	json[4 * 1024 * 1024] = '\0';
	assert_int_equal(client_call(client, "POST", "/a", json, &r, &err), AVA_ETOOBIG);
	assert_string_equal(err.text, "the request body is too large");
	free(json);
	expect("GET", "/a", NULL, 200, "GET /a");
}

TEST_WITH(errors, setup, teardown)
{
	struct client_reply r;
	struct ava_error err;

	assert_int_equal(client_call(client, "POST", "/refuse", "{}", &r, &err), AVA_EBUDGET);
	assert_string_equal(err.text, "no money");
	assert_int_equal(client_call(client, "GET", "/plain-404", NULL, &r, &err), AVA_ENOENT);
	assert_string_equal(err.text, "the daemon answered with status 404");
	assert_int_equal(client_call(client, "GET", "/a b", NULL, &r, &err), AVA_EINVAL);
	assert_int_equal(client_call(client, "GET", "/a\r\nX: y", NULL, &r, &err), AVA_EINVAL);
}

/* The daemon is another one by now. */
TEST_WITH(restart, setup, teardown)
{
	expect("GET", "/1", NULL, 200, "GET /1");
	server_stop();
	{
		struct client_reply r;
		struct ava_error err;

		assert_int_equal(client_request(client, "POST", "/2", "{}", &r, &err),
				 AVA_ECONNECT);
		assert_non_null(strstr(err.text, "ava serve"));
	}
	server_start();
	expect("POST", "/3", "{}", 200, "POST /3");
}

TEST_WITH(no_daemon, setup, teardown)
{
	struct ava_error err;
	struct client *c;
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%.3000s/none", root);
	assert_int_equal(client_open(path, false, &c, &err), AVA_ENOENT);
	assert_null(c);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(client_open(path, false, &c, &err), AVA_ECONNECT);
	assert_string_equal(err.text, "the daemon is not running: start it with \"ava serve\"");
	assert_int_equal(client_open("", true, &c, &err), AVA_EDENIED);
	assert_non_null(strstr(err.text, "cannot be made"));
}

TEST_WITH(timeouts, setup, teardown)
{
	struct client_reply r;

	never_ms = 5000; /* before the client waits, perhaps: then five seconds pass */
	client_set_quiet(client, 5000);
	assert_int_equal(client_request(client, "GET", "/never", NULL, &r, NULL), AVA_ETIMEOUT);
	client_set_quiet(client, -1);
	client_set_deadline(client, clock_mono_ms() + 5000);
	assert_int_equal(client_request(client, "GET", "/never", NULL, &r, NULL), AVA_ETIMEOUT);
	never_ms = 0;
	client_set_deadline(client, -1);
	expect("GET", "/fine", NULL, 200, "GET /fine");
}

static int slow_calls;
static int64_t slow_more;

static int64_t on_slow(void *user)
{
	struct client_reply r;

	slow_calls++;
	assert_int_equal(client_request(user, "GET", "/fine", NULL, &r, NULL), 0);
	return slow_more;
}

/* Told once a call, when nothing comes; another client may ask meanwhile. */
TEST_WITH(slow, setup, teardown)
{
	struct client_reply r;
	struct client *other;

	assert_int_equal(client_open(root, false, &other, NULL), 0);
	client_set_slow(client, 20, on_slow, other);
	slow_calls = 0;
	slow_more = 20; /* less than the quiet time, and than the deadline */
	assert_int_equal(client_request(client, "POST", "/never", "{}", &r, NULL), AVA_ETIMEOUT);
	assert_int_equal(slow_calls, 1);
	client_set_quiet(client, 100); /* nothing more than this, whatever it says */
	slow_more = 3600000;
	assert_int_equal(client_request(client, "GET", "/never", NULL, &r, NULL), AVA_ETIMEOUT);
	slow_more = -1;
	assert_int_equal(client_request(client, "GET", "/never", NULL, &r, NULL), AVA_ETIMEOUT);
	assert_int_equal(slow_calls, 3);
	client_set_quiet(client, 10); /* it gives up before that is slow */
	assert_int_equal(client_request(client, "GET", "/never", NULL, &r, NULL), AVA_ETIMEOUT);
	assert_int_equal(slow_calls, 3);
	client_set_quiet(client, 60000);
	client_set_slow(client, 3600000, on_slow, other);
	expect("GET", "/fine", NULL, 200, "GET /fine");
	assert_int_equal(slow_calls, 3);
	client_set_slow(client, 0, NULL, NULL);
	expect("GET", "/fine", NULL, 200, "GET /fine");
	client_close(other);
}

/* ---- a peer that is no daemon: what was sent, and how it ends */

struct fake {
	pthread_t thread;
	int listen_fd, hits;
	const char *answers[4]; /* one a connection; NULL ends; "" just closes */
};

static void *fake_main(void *arg)
{
	struct fake *f = arg;
	char text[4096];

	for (; f->answers[f->hits]; f->hits++) {
		const char *answer = f->answers[f->hits];
		int fd = accept(f->listen_fd, NULL, NULL);

		/* A request without a body comes in one piece. */
		if (recv(fd, text, sizeof(text), 0) > 0)
			send(fd, answer, strlen(answer), MSG_NOSIGNAL);
		close(fd);
	}
	return NULL;
}

static void fake_start(struct fake *f, struct client **c)
{
	char dir[PATH_MAX];
	int fd;

	snprintf(dir, sizeof(dir), "%.3000s/fake", root);
	assert_int_equal(mkdir(dir, 0700), 0);
	fd = open(dir, O_RDONLY | O_DIRECTORY);
	assert_int_equal(unix_sock_listen(fd, UNIX_SOCK_NAME, &f->listen_fd, NULL), 0);
	fcntl(f->listen_fd, F_SETFL, 0);
	close(fd);
	assert_int_equal(pthread_create(&f->thread, NULL, fake_main, f), 0);
	assert_int_equal(client_open(dir, false, c, NULL), 0);
}

static void fake_stop(struct fake *f, struct client *c)
{
	client_close(c);
	pthread_join(f->thread, NULL);
	close(f->listen_fd);
}

TEST_WITH(post_may_have_happened, setup, teardown)
{
	struct fake f = {.answers = {"", NULL}};
	struct client *c;
	struct client_reply r;

	fake_start(&f, &c);
	assert_int_equal(client_request(c, "POST", "/x", NULL, &r, NULL), AVA_EUNKNOWN);
	fake_stop(&f, c);
	assert_int_equal(f.hits, 1); /* never sent twice */
}

/* It says keep-alive and closes: the next GET finds that out and goes to a
 * new connection; an answer cut in the middle is not asked again. */
TEST_WITH(liar, setup, teardown)
{
	struct fake f = {.answers = {"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
				     "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok", NULL}};
	struct client *c;
	struct client_reply r;

	fake_start(&f, &c);
	assert_int_equal(client_request(c, "GET", "/x", NULL, &r, NULL), 0);
	assert_string_equal(r.body, "ok");
	assert_int_equal(client_request(c, "GET", "/x", NULL, &r, NULL), AVA_ECONNECT);
	assert_null(r.body);
	fake_stop(&f, c);
	assert_int_equal(f.hits, 2);
}

/* ---- streams */

struct seen {
	int n, stop_at;
	char ids[64];
};

static int event_cb(const struct sse_event *e, void *user)
{
	struct seen *s = user;

	assert_string_equal(e->event, "tick");
	assert_true(e->len > 0);
	strncat(s->ids, e->id, sizeof(s->ids) - strlen(s->ids) - 1);
	return ++s->n == s->stop_at ? 77 : 0;
}

TEST_WITH(stream, setup, teardown)
{
	struct seen s = {0};
	struct ava_error err;

	assert_int_equal(whole_stream(client, "/stream", NULL, event_cb, &s, &err), 0);
	assert_string_equal(s.ids, "01234");
	s = (struct seen){.stop_at = 2};
	assert_int_equal(whole_stream(client, "/stream", "1", event_cb, &s, &err), 77);
	assert_string_equal(s.ids, "23");
	assert_int_equal(whole_stream(client, "/refuse", NULL, event_cb, &s, &err), AVA_EBUDGET);
	assert_string_equal(err.text, "no money");
	expect("GET", "/after", NULL, 200, "GET /after");
}

static volatile sig_atomic_t interrupted;

static void on_signal(int signo)
{
	(void)signo;
	interrupted = 1;
}

static void *kill_main(void *arg)
{
	struct timespec ts = {.tv_nsec = 30 * 1000 * 1000};

	nanosleep(&ts, NULL);
	pthread_kill(*(pthread_t *)arg, SIGUSR1);
	return NULL;
}

TEST_WITH(interrupt, setup, teardown)
{
	struct sigaction sa = {.sa_handler = on_signal};
	pthread_t self = pthread_self(), killer;
	struct client_reply r;

	sigaction(SIGUSR1, &sa, NULL);
	client_set_interrupt(client, &interrupted);
	interrupted = 0;
	pthread_create(&killer, NULL, kill_main, &self);
	assert_int_equal(client_request(client, "GET", "/never", NULL, &r, NULL), AVA_ECANCELED);
	pthread_join(killer, NULL);
	/* Set before the wait: seen as well. */
	assert_int_equal(client_request(client, "GET", "/never", NULL, &r, NULL), AVA_ECANCELED);
	interrupted = 0;
	expect("GET", "/fine", NULL, 200, "GET /fine");
	signal(SIGUSR1, SIG_DFL);
}

TEST(escape)
{
	TEST_BUF(b, 100);

	assert_int_equal(client_escape(&b, "a b/c?&=%\xc3\xa9~-._Z9"), 0);
	assert_string_equal(b.data, "a%20b%2Fc%3F%26%3D%25%C3%A9~-._Z9");
}

/* ---- starting a daemon */

/* The daemon: this program with --ready-fd. TEST_AVAD says how it behaves. */
static int daemon_main(int ready)
{
	const char *how = getenv("TEST_AVAD"), *where = getenv("AVA_DATA_ROOT");
	struct ava_error err = {0};
	struct server s = {0};
	struct lock l;
	int rv;

	alarm(30); /* whatever happens, it goes */
	if (strcmp(how, "die") == 0)
		return 1;
	if (strcmp(how, "refuse") == 0) {
		ready_tell(ready, AVA_EFORMAT, "a newer ava wrote this");
		return 1;
	}
	s.dirfd = open(where, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rv = lock_take(&l, s.dirfd, &err);
	if (strcmp(how, "slow") == 0 && rv == 0)
		usleep(200000); /* the root is taken, and nobody answers yet */
	if (rv == 0)
		rv = server_open(&s, s.dirfd, &l);
	ready_tell(ready, rv, err.text);
	if (rv != 0)
		return 1;
	server_main(&s);
	lock_drop(&l);
	return 0;
}

static int start_setup(void **state)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1); /* a daemon is nobody's child */
	snprintf(root, sizeof(root), "%s", unit_tmpdir());
	setenv("AVA_AVAD", "/proc/self/exe", 1);
	setenv("TEST_AVAD", "serve", 1);
	return 0;
}

static int start_teardown(void **state)
{
	test_clock_go();
	unit_rmdir(root);
	unsetenv("AVA_AVAD");
	return 0;
}

static int pid_of_daemon(struct client *c)
{
	struct client_reply r;
	int pid;

	assert_int_equal(client_call(c, "GET", "/", NULL, &r, NULL), 0);
	pid = atoi(strstr(r.body, "pid=") + 4);
	return pid;
}

static void stop_daemon(struct client *c)
{
	struct client_reply r;
	int pid = pid_of_daemon(c);

	client_request(c, "POST", "/stop", NULL, &r, NULL);
	client_close(c);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

TEST_WITH(start, start_setup, start_teardown)
{
	char path[PATH_MAX], dir[40], link[60];
	struct ava_error err = {0};
	struct client *a, *b;
	struct stat st;
	int pid, extra = open("/dev/null", O_RDONLY); /* inherited, were it kept */

	assert_int_equal(dup2(extra, 77), 77);
	snprintf(path, sizeof(path), "%.3000s/deep/er/root", root);
	if (client_open(path, true, &a, &err) != 0)
		fail_msg("%s", err.text);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0700);
	pid = pid_of_daemon(a);
	assert_int_equal(getsid(pid) == getsid(0), 0);
	snprintf(dir, sizeof(dir), "/proc/%d", pid);
	snprintf(link, sizeof(link), "%s/fd/0", dir);
	assert_int_equal(lstat(link, &st), 0);
	snprintf(link, sizeof(link), "%s/fd/77", dir);
	assert_int_equal(lstat(link, &st), -1);
	snprintf(link, sizeof(link), "%s/cwd", dir);
	assert_int_equal(readlink(link, path, sizeof(path)), 1);
	snprintf(path, sizeof(path), "%.3000s/deep/er/root", root);
	assert_int_equal(client_open(path, true, &b, &err), 0); /* the same one */
	assert_int_equal(pid_of_daemon(b), pid);
	client_close(b);
	close(77);
	close(extra);
	stop_daemon(a);
	assert_int_equal(client_open(path, true, &a, &err), 0); /* over its stale socket */
	assert_true(pid_of_daemon(a) != pid);
	stop_daemon(a);
}

struct starter {
	pthread_t thread;
	struct client *c;
	int rv;
};

static void *starter_main(void *arg)
{
	struct starter *s = arg;

	s->rv = client_open(root, true, &s->c, NULL);
	return NULL;
}

/* Many at once: one daemon, all connected to it. */
static void race(const char *how)
{
	struct starter s[8];
	int pid = 0;

	setenv("TEST_AVAD", how, 1);
	for (size_t i = 0; i < ARRAY_LEN(s); i++)
		pthread_create(&s[i].thread, NULL, starter_main, &s[i]);
	for (size_t i = 0; i < ARRAY_LEN(s); i++)
		pthread_join(s[i].thread, NULL);
	for (size_t i = 0; i < ARRAY_LEN(s); i++) {
		assert_int_equal(s[i].rv, 0);
		if (i == 0)
			pid = pid_of_daemon(s[0].c);
		assert_int_equal(pid_of_daemon(s[i].c), pid);
	}
	for (size_t i = 1; i < ARRAY_LEN(s); i++)
		client_close(s[i].c);
	stop_daemon(s[0].c);
}

TEST_WITH(start_race, start_setup, start_teardown)
{
	race("serve");
	race("slow");
}

TEST_WITH(start_fails, start_setup, start_teardown)
{
	struct ava_error err;
	struct client *c;

	test_clock_stop(); /* and no time for a start passes */
	setenv("TEST_AVAD", "refuse", 1);
	assert_int_equal(client_open(root, true, &c, &err), AVA_EFORMAT);
	assert_string_equal(err.text, "the daemon did not start: a newer ava wrote this");
	setenv("TEST_AVAD", "die", 1);
	assert_int_equal(client_open(root, true, &c, &err), AVA_EIO);
	assert_string_equal(err.text, "the daemon did not start: it ended without a word");
	setenv("AVA_AVAD", "/nonexistent/avad", 1);
	assert_int_equal(client_open(root, true, &c, &err), AVA_ENOENT);
	assert_non_null(strstr(err.text, "AVA_AVAD is /nonexistent/avad"));
	assert_null(c);
}

TEST_WITH(find, start_setup, start_teardown)
{
	char found[PATH_MAX], path[PATH_MAX], dirs[PATH_MAX * 2];
	struct ava_error err;
	char *before = strdup(getenv("PATH"));

	unsetenv("AVA_AVAD");
	snprintf(dirs, sizeof(dirs), ":relative:%.3000s/none:%.3000s", root, root);
	setenv("PATH", dirs, 1);
	assert_int_equal(start_find(found, sizeof(found), &err), AVA_ENOENT);
	assert_non_null(strstr(err.text, "set AVA_AVAD"));
	snprintf(path, sizeof(path), "%.3000s/avad", root);
	unit_write(path, "#!/bin/sh\n", 10);
	assert_int_equal(start_find(found, sizeof(found), &err), AVA_ENOENT); /* no program */
	assert_int_equal(chmod(path, 0755), 0);
	assert_int_equal(start_find(found, sizeof(found), &err), 0);
	assert_string_equal(found, path);
	setenv("AVA_AVAD", root, 1); /* a folder */
	assert_int_equal(start_find(found, sizeof(found), &err), AVA_ENOENT);
	setenv("PATH", before, 1);
	free(before);
}

static bool twice(void *user)
{
	int *asked = user;

	return ++*asked <= 2;
}

TEST(ready_line)
{
	struct ava_error err;
	int fd[2], asked = 0;

	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	assert_int_equal(ready_wait(fd[0], clock_mono_ms() + 30, NULL, NULL, &err), AVA_ETIMEOUT);
	assert_int_equal(ready_wait(fd[0], clock_mono_ms() + 60000, twice, &asked, &err),
			 AVA_ECANCELED);
	assert_int_equal(asked, 3);
	assert_int_equal(write(fd[1], "odd words\n", 10), 10);
	assert_int_equal(ready_wait(fd[0], clock_mono_ms() + 1000, NULL, NULL, &err), AVA_EIO);
	assert_string_equal(err.text, "odd words");
	ready_tell(fd[1], AVA_EBUSY, "in use: by 7"); /* it is there, who looks late has it too */
	assert_int_equal(ready_wait(fd[0], clock_mono_ms() - 1, NULL, NULL, &err), AVA_EBUSY);
	assert_string_equal(err.text, "in use: by 7");
	close(fd[0]);
	ready_tell(-1, 0, "");
	assert_int_equal(pipe2(fd, O_CLOEXEC), 0);
	close(fd[0]);
	ready_tell(fd[1], 0, ""); /* nobody reads: no signal ends us */
}

static int daemon_program(int argc, char **argv)
{
	return argc == 3 && strcmp(argv[1], "--ready-fd") == 0 ? daemon_main(atoi(argv[2])) : 2;
}

UNIT_GROUP(.program = daemon_program);
