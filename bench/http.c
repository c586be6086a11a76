/* The HTTP server alone: requests a second over its Unix socket, and what an
 * idle event stream costs.
 *
 * The server is a child process of its own (so that its memory is only its
 * own), the load comes from this one. Output is one line a figure. RssAnon is
 * read from /proc/<pid>/status; streams are told apart from connections by a
 * round of plain keep-alive connections first.
 *
 *     bench_http [CONNECTIONS [STREAMS]]        default 64 and 1000 */
#include <ava.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/unix_sock.h"
#include "net/http_server.h"
#include "os/loop.h"

#define STREAMS_MAX 4000
#define SECONDS     3
#define EVENT_BYTES 270

/* ---- the server */

static struct http_stream *streams[STREAMS_MAX];
static int nstreams;

static void broadcast(struct http_request *req)
{
	static char event[EVENT_BYTES];

	memset(event, 'e', sizeof(event));
	memcpy(event, "data: ", 6);
	memcpy(event + sizeof(event) - 2, "\n\n", 2);
	for (int i = 0; i < nstreams; i++)
		http_stream_write(streams[i], event, sizeof(event));
	http_reply(req, 200, NULL, "", 0);
}

static void handler(struct http_request *req, void *user)
{
	static const char json[] = "{\"status\":\"ok\",\"version\":\"0\",\"uptime\":12345}";
	struct http_answer head = {.status = 200, .content_type = "text/event-stream"};
	struct http_stream_hooks hooks = {.heartbeat = true};

	if (strcmp(req->path, "/stream") == 0 && nstreams < STREAMS_MAX)
		streams[nstreams++] = http_stream_start(req, &head, &hooks);
	else if (strcmp(req->path, "/broadcast") == 0)
		broadcast(req);
	else
		http_reply(req, 200, "application/json", json, sizeof(json) - 1);
	(void)user;
}

static void serve(int dirfd)
{
	struct http_server_options o = {.connections_max = STREAMS_MAX + 100};
	struct os_loop *l = os_loop_new(NULL);
	int fd;

	if (!l || unix_sock_listen(dirfd, "s", &fd, NULL) != 0 ||
	    !http_server_new(l, fd, &o, handler, NULL, NULL))
		_exit(1);
	os_loop_run(l);
}

/* ---- the load */

static int dial(int dirfd)
{
	struct ava_error err;
	int fd, rv = 0;

	for (int i = 0; i < 200; i++) {
		rv = unix_sock_connect(dirfd, "s", 5000, &fd, &err);
		if (rv == 0)
			return fd;
		usleep(5000);
	}
	fprintf(stderr, "bench_http: %s\n", err.text);
	exit(1);
}

static void say(int fd, const char *path)
{
	char text[200];
	int n = snprintf(text, sizeof(text), "GET %s HTTP/1.1\r\nHost: ava\r\n\r\n", path);

	if (send(fd, text, (size_t)n, MSG_NOSIGNAL) != n)
		exit(1);
}

static long rss_anon_kb(pid_t pid)
{
	char path[64], line[200];
	long kb = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "RssAnon: %ld", &kb) == 1)
			break;
	if (f)
		fclose(f);
	return kb;
}

static int by_number(const void *a, const void *b)
{
	return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

static void requests(int dirfd, int n)
{
	enum { SAMPLES = 1 << 20 };
	static int64_t sent_us[STREAMS_MAX];
	static int took_us[SAMPLES];
	char data[4096];
	int ep = epoll_create1(EPOLL_CLOEXEC), fds[STREAMS_MAX], done = 0;
	int64_t began = clock_mono_us(), now = began;

	for (int i = 0; i < n; i++) {
		struct epoll_event ev = {.events = EPOLLIN, .data.u32 = (uint32_t)i};

		fds[i] = dial(dirfd);
		epoll_ctl(ep, EPOLL_CTL_ADD, fds[i], &ev);
		sent_us[i] = clock_mono_us();
		say(fds[i], "/health");
	}
	while (now - began < SECONDS * 1000000) {
		struct epoll_event ev[64];
		int got = epoll_wait(ep, ev, 64, 1000);

		now = clock_mono_us();
		for (int k = 0; k < got; k++) {
			uint32_t i = ev[k].data.u32;

			if (recv(fds[i], data, sizeof(data), 0) <= 0)
				exit(1);
			took_us[done++ % SAMPLES] = (int)(now - sent_us[i]);
			sent_us[i] = now;
			say(fds[i], "/health");
		}
	}
	qsort(took_us, (size_t)(done < SAMPLES ? done : SAMPLES), sizeof(int), by_number);
	done = done < SAMPLES ? done : SAMPLES;
	printf("requests: %d connections, %.0f/s, p50 %d us, p99 %d us\n", n,
	       done * 1e6 / (double)(now - began), took_us[done / 2], took_us[done * 99 / 100]);
	for (int i = 0; i < n; i++)
		close(fds[i]);
	close(ep);
}

static void wait_bytes(int fd, const char *want)
{
	char data[4096];
	size_t len = 0;

	for (;;) {
		ssize_t n = recv(fd, data + len, sizeof(data) - 1 - len, 0);

		if (n <= 0)
			exit(1);
		len += (size_t)n;
		data[len] = '\0';
		if (strstr(data, want))
			return;
		if (len > sizeof(data) / 2)
			len = 0;
	}
}

static void idle_streams(int dirfd, pid_t pid, int n)
{
	static int fds[STREAMS_MAX];
	int control = dial(dirfd);
	int64_t began;
	long before;

	say(control, "/health");
	wait_bytes(control, "uptime");
	before = rss_anon_kb(pid);
	for (int i = 0; i < n; i++) {
		fds[i] = dial(dirfd);
		say(fds[i], "/stream");
	}
	for (int i = 0; i < n; i++)
		wait_bytes(fds[i], "\r\n\r\n");
	printf("streams: %d idle, RssAnon %ld KB before, %ld after, %.1f KB each\n", n, before,
	       rss_anon_kb(pid), (double)(rss_anon_kb(pid) - before) / n);
	for (int round = 0; round < 3; round++) {
		began = clock_mono_us();
		say(control, "/broadcast");
		for (int i = 0; i < n; i++)
			wait_bytes(fds[i], "e\n\n");
		printf("streams: an event of %d bytes reached the last of %d after %.1f ms\n",
		       EVENT_BYTES, n, (double)(clock_mono_us() - began) / 1000);
		wait_bytes(control, "\r\n\r\n");
	}
	printf("streams: after events RssAnon %ld KB, %.1f KB each\n", rss_anon_kb(pid),
	       (double)(rss_anon_kb(pid) - before) / n);
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 64, m = argc > 2 ? atoi(argv[2]) : 1000;
	char dir[] = "/tmp/ava-bench-http-XXXXXX";
	int dirfd;
	pid_t pid;

	if (n < 1 || n > STREAMS_MAX || m < 1 || m > STREAMS_MAX || !mkdtemp(dir))
		return 2;
	dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fflush(stdout);
	pid = fork();
	if (pid == 0) {
		serve(dirfd);
		_exit(0);
	}
	close(dial(dirfd));
	idle_streams(dirfd, pid, m);
	requests(dirfd, 1);
	requests(dirfd, n);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	unlinkat(dirfd, "s", 0);
	rmdir(dir);
	return 0;
}
