/* Redis as a peer: a server of our own, and clients that speak its protocol
 * straight over epoll; see journal_peers.h.
 *
 * The client is as light as can be (one request is a constant text with a line
 * in it, an answer is a line to be counted), because it shares two processors
 * with the server. A server that does not answer within ten seconds, or
 * answers with an error, ends the benchmark. */
#include "journal_peers.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"

#define START_US           ((int64_t)10 * 1000000)
#define EVENTS             256
#define REPLY_BYTES        16384
#define COMMAND_HEAD       "*3\r\n$5\r\nRPUSH\r\n$6\r\nevents\r\n$300\r\n"
#define COMMAND_HEAD_BYTES (sizeof(COMMAND_HEAD) - 1)
#define COMMAND_BYTES      (COMMAND_HEAD_BYTES + LINE_BYTES + 2)

_Static_assert(LINE_BYTES == 300, "it stands in COMMAND_HEAD");

extern char **environ;

struct client {
	int fd;
	unsigned depth, oldest; /* of since_us, a ring */
	int64_t *since_us;      /* when each request in flight was sent */
};

struct redis {
	pid_t pid;
	char socket[104];
	uint64_t lsn;
	struct meter meter;
	char *requests; /* room for `depth` of them */
};

/* For atexit: a benchmark that dies takes its server along. */
static pid_t running;

static void stop_server(void)
{
	if (running <= 0)
		return;
	kill(running, SIGTERM);
	while (waitpid(running, NULL, 0) < 0 && errno == EINTR)
		;
	running = 0;
}

/* ---- the server */

static pid_t spawn_server(const char *dir, const char *socket_path)
{
	const char *argv[] = {"redis-server",
			      "--port",
			      "0",
			      "--unixsocket",
			      socket_path,
			      "--dir",
			      dir,
			      "--save",
			      "",
			      "--appendonly",
			      "yes",
			      "--appendfsync",
			      "always",
			      "--auto-aof-rewrite-percentage",
			      "0",
			      "--maxclients",
			      "4000",
			      "--daemonize",
			      "no",
			      NULL};
	posix_spawn_file_actions_t files;
	char log[600];
	pid_t pid;
	int rv;

	snprintf(log, sizeof(log), "%s/redis.log", dir);
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_addopen(&files, 1, log, O_WRONLY | O_CREAT, 0600);
	posix_spawn_file_actions_adddup2(&files, 1, 2);
	/* The strings are not written to; posix_spawn only lacks the word. */
	rv = posix_spawnp(&pid, argv[0], &files, NULL, (char *const *)(uintptr_t)argv, environ);
	posix_spawn_file_actions_destroy(&files);
	return rv == 0 ? pid : -1;
}

static int connect_once(const char *path)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		bench_die("socket");
	snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	if (connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0)
		return fd;
	close(fd);
	return -1;
}

struct redis *redis_open(const char *dir)
{
	int64_t until = clock_mono_us() + START_US;
	struct redis *r = calloc(1, sizeof(*r));
	static bool registered;
	int fd;

	if (r == NULL || (size_t)snprintf(r->socket, sizeof(r->socket), "%s/redis.sock", dir) >=
				 sizeof(r->socket))
		bench_die("redis: the path of its socket is too long, see --dir");
	if (!registered)
		registered = atexit(stop_server) == 0;
	running = r->pid = spawn_server(dir, r->socket);
	if (r->pid < 0) {
		free(r);
		return NULL;
	}
	while ((fd = connect_once(r->socket)) < 0) {
		if (clock_mono_us() > until || waitpid(r->pid, NULL, WNOHANG) != 0)
			bench_die("redis-server does not start");
		usleep(2000);
	}
	close(fd);
	return r;
}

void redis_close(struct redis *r)
{
	stop_server();
	free(r);
}

/* ---- clients */

static void send_requests(struct redis *r, struct client *c, unsigned n, int64_t now)
{
	size_t len = n * COMMAND_BYTES, sent = 0;
	ssize_t put;

	for (unsigned i = 0; i < n; i++) {
		char *at = r->requests + i * COMMAND_BYTES;

		memcpy(at, COMMAND_HEAD, COMMAND_HEAD_BYTES);
		bench_line(at + COMMAND_HEAD_BYTES, ++r->lsn);
		memcpy(at + COMMAND_HEAD_BYTES + LINE_BYTES, "\r\n", 2);
	}
	while (sent < len) {
		put = write(c->fd, r->requests + sent, len - sent);
		if (put < 0 && errno != EINTR)
			bench_die("redis: write");
		sent += put > 0 ? (size_t)put : 0;
	}
	for (unsigned i = 0; i < n; i++)
		c->since_us[(c->oldest + c->depth - n + i) % c->depth] = now;
}

/* Count answers, send as many requests again. */
static void take_answers(struct redis *r, struct client *c)
{
	char text[REPLY_BYTES];
	ssize_t len = read(c->fd, text, sizeof(text));
	int64_t now = clock_mono_us();
	unsigned answers = 0;

	if (len <= 0)
		bench_die("redis: read");
	errno = 0;
	if (memchr(text, '-', (size_t)len) != NULL)
		bench_die("redis: %.*s", (int)len, text);
	for (const char *at = text, *end = text + len;
	     (at = memchr(at, '\n', (size_t)(end - at))) != NULL; at++) {
		meter_add(&r->meter, now - c->since_us[c->oldest]);
		c->oldest = (c->oldest + 1) % c->depth;
		answers++;
	}
	if (answers > 0)
		send_requests(r, c, answers, now);
}

static void redis_until(struct redis *r, int epoll_fd, int64_t end_us)
{
	struct epoll_event events[EVENTS];
	int n;

	while (clock_mono_us() < end_us && !bench_stop) {
		n = epoll_wait(epoll_fd, events, EVENTS, (int)(START_US / 1000));
		if (n == 0)
			bench_die("redis does not answer");
		for (int i = 0; i < n; i++)
			take_answers(r, events[i].data.ptr);
	}
}

static void start_client(struct redis *r, struct client *c, unsigned depth, int epoll_fd)
{
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};

	c->depth = depth;
	c->since_us = calloc(depth, sizeof(c->since_us[0]));
	c->fd = connect_once(r->socket);
	if (c->since_us == NULL || c->fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, c->fd, &e) != 0)
		bench_die("redis: connect");
}

struct sample redis_run(struct redis *r, unsigned clients, unsigned depth, int64_t duration_us)
{
	struct client *c = calloc(clients, sizeof(*c));
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	struct sample s;

	r->requests = malloc(depth * COMMAND_BYTES);
	if (c == NULL || r->requests == NULL || epoll_fd < 0)
		bench_die("redis: clients");
	for (unsigned i = 0; i < clients; i++)
		start_client(r, &c[i], depth, epoll_fd);
	for (unsigned i = 0; i < clients; i++)
		send_requests(r, &c[i], depth, clock_mono_us());
	redis_until(r, epoll_fd, clock_mono_us() + meter_warm_us(duration_us));
	meter_start(&r->meter, r->pid);
	redis_until(r, epoll_fd, clock_mono_us() + duration_us);
	s = meter_end(&r->meter);
	for (unsigned i = 0; i < clients; i++) {
		close(c[i].fd);
		free(c[i].since_us);
	}
	close(epoll_fd);
	free(r->requests);
	free(c);
	return s;
}
