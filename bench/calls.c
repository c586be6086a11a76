/* What a call of the HTTP client costs while it waits for its answer, and in
 * all: N calls at once to a server in a process of its own, which answers only
 * when all N have arrived.
 *
 *     bench_calls [N [BODY_BYTES [ROUNDS]]]     1,000 calls of 8,000 bytes, 3 rounds
 *
 * Prints per round: wall time until all wait, resident and heap bytes a waiting
 * call, CPU a call until all are over (the client's process alone). The second
 * and later rounds reuse connections. A turn of the loop is what others wait for. */
#include <arpa/inet.h>
#include <ava.h>
#include <malloc.h>
#include <netinet/in.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"
#include "net/http_client.h"
#include "os/loop.h"

#define CHUNKS 20

extern char **environ;

/* ---- the server: counts whole requests, answers when all are there */

struct peer {
	size_t have, want; /* bytes of the request */
	char head[2048];
};

static const char reply_head[] =
	"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

static void answer(int fd)
{
	char chunk[256];
	int n = snprintf(chunk, sizeof(chunk), "data: {\"delta\":\"%0160d\"}\n\n", 7);
	char out[8192];
	size_t len = (size_t)snprintf(out, sizeof(out), "%s", reply_head);

	for (int i = 0; i < CHUNKS; i++)
		len += (size_t)snprintf(out + len, sizeof(out) - len, "%x\r\n%s\r\n", n, chunk);
	len += (size_t)snprintf(out + len, sizeof(out) - len, "0\r\n\r\n");
	if (write(fd, out, len) != (ssize_t)len)
		abort();
}

/* true: a request is whole now */
static bool take(struct peer *p, const char *s, size_t n)
{
	size_t room = sizeof(p->head) - 1 - p->have;
	const char *end, *length;

	if (p->want == 0) {
		memcpy(p->head + p->have, s, n < room ? n : room);
		end = strstr(p->head, "\r\n\r\n");
		length = strcasestr(p->head, "content-length:");
		if (end)
			p->want = (size_t)(end + 4 - p->head) +
				  (length ? strtoul(length + 15, NULL, 10) : 0);
	}
	p->have += n;
	if (p->want == 0 || p->have < p->want)
		return false;
	memset(p, 0, sizeof(*p));
	return true;
}

static int serve(int lfd, size_t calls)
{
	struct epoll_event ev[256], add = {.events = EPOLLIN, .data.fd = lfd};
	struct peer *peers = calloc(70000, sizeof(*peers));
	int *ready = calloc(calls, sizeof(int));
	size_t nready = 0;
	int ep = epoll_create1(0);
	static char buf[65536];

	epoll_ctl(ep, EPOLL_CTL_ADD, lfd, &add);
	for (;;) {
		int n = epoll_wait(ep, ev, 256, -1);

		for (int i = 0; i < n; i++) {
			int fd = ev[i].data.fd;
			ssize_t got;

			if (fd == lfd) {
				add.data.fd = accept4(lfd, NULL, NULL, SOCK_NONBLOCK);
				epoll_ctl(ep, EPOLL_CTL_ADD, add.data.fd, &add);
				continue;
			}
			got = read(fd, buf, sizeof(buf));
			if (got <= 0)
				close(fd);
			else if (take(&peers[fd], buf, (size_t)got))
				ready[nready++] = fd;
		}
		if (nready < calls)
			continue;
		/* All wait: the client measures when it reads this, and asks to go on. */
		if (write(1, "w", 1) != 1 || read(0, buf, 1) != 1)
			return 0;
		while (nready > 0)
			answer(ready[--nready]);
	}
}

/* ---- the client */

struct bench {
	struct os_loop *loop;
	size_t over, failed;
	double longest_us; /* turn, CPU */
	bool all_wait;
};

static void done(struct http_call *c, int rv, const struct ava_error *err)
{
	struct bench *b = c->user;

	b->over++;
	if (rv != 0 || c->status != 200) {
		b->failed++;
		fprintf(stderr, "%s\n", err->text);
	}
}

static bool data(struct http_call *c, const char *s, size_t n)
{
	(void)c, (void)s, (void)n;
	return true;
}

static void told_cb(int events, void *user)
{
	struct bench *b = user;

	(void)events;
	b->all_wait = true;
}

static size_t rss_anon(void)
{
	char line[256];
	size_t kb = 0;
	FILE *f = fopen("/proc/self/status", "r");

	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "RssAnon: %zu", &kb) == 1)
			break;
	if (f)
		fclose(f);
	return kb * 1024;
}

static double cpu_us(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void step(struct bench *b)
{
	double began = cpu_us();

	os_loop_step(b->loop, -1);
	b->longest_us = MAX(b->longest_us, cpu_us() - began);
}

static void start_all(struct bench *b, struct http_pool *pool, struct http_call *calls, size_t n,
		      size_t body)
{
	const char *const headers[] = {"content-type: application/json",
				       "authorization: Bearer none"};
	char *bytes = malloc(body + 1);

	memset(bytes, 'x', body + 1);
	for (size_t i = 0; i < n; i++) {
		calls[i] = (struct http_call){.path = "/v1/messages",
					      .headers = headers,
					      .nheaders = 2,
					      .data = data,
					      .done = done,
					      .user = b};
		buf_init(&calls[i].body, body + 1);
		buf_add(&calls[i].body, bytes, body);
		if (http_call_start(pool, &calls[i], NULL) != 0)
			abort();
	}
	free(bytes);
}

static void measure(struct bench *b, struct http_pool *pool, size_t n, size_t body, int fd[2])
{
	struct os_poll *told = os_poll_new(b->loop, fd[0], told_cb, b);
	struct http_call *calls = calloc(n, sizeof(*calls));
	int64_t began = clock_mono_us();
	size_t heap = mallinfo2().uordblks, rss = rss_anon();
	double cpu = cpu_us();
	char byte;

	os_poll_set(told, OS_READ);
	b->over = b->failed = 0;
	b->longest_us = 0;
	b->all_wait = false;
	start_all(b, pool, calls, n, body);
	while (!b->all_wait)
		step(b);
	os_poll_free(told);
	printf("%zu wait after %.0f ms: %.1f KB resident, %.1f KB heap a call", n,
	       (double)(clock_mono_us() - began) / 1000,
	       ((double)rss_anon() - (double)rss) / 1024 / (double)n,
	       ((double)mallinfo2().uordblks - (double)heap) / 1024 / (double)n);
	if (read(fd[0], &byte, 1) != 1 || write(fd[1], "g", 1) != 1)
		abort();
	while (b->over < n)
		step(b);
	printf("; %.0f us CPU a call, longest turn %.1f ms CPU, %zu failed\n",
	       (cpu_us() - cpu) / (double)n, b->longest_us / 1000, b->failed);
	free(calls);
}

static pid_t launch(const char *self, const char *n, int lfd, int fd[2])
{
	char *argv[] = {(char *)self, (char *)"--serve", (char *)n, NULL};
	posix_spawn_file_actions_t files;
	int in[2], out[2];
	pid_t pid;

	if (pipe(in) != 0 || pipe(out) != 0)
		abort();
	posix_spawn_file_actions_init(&files);
	posix_spawn_file_actions_adddup2(&files, in[0], 0);
	posix_spawn_file_actions_adddup2(&files, out[1], 1);
	posix_spawn_file_actions_adddup2(&files, lfd, 3);
	posix_spawn_file_actions_addclose(&files, in[1]);
	if (posix_spawn(&pid, "/proc/self/exe", &files, NULL, argv, environ) != 0)
		abort();
	posix_spawn_file_actions_destroy(&files);
	close(in[0]);
	close(out[1]);
	fd[0] = out[0];
	fd[1] = in[1];
	return pid;
}

static int listen_loopback(int *port)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, len) != 0 || listen(fd, 4096) != 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &len) != 0)
		abort();
	*port = ntohs(at.sin_port);
	return fd;
}

int main(int argc, char **argv)
{
	const char *n = argc > 1 ? argv[1] : "1000";
	size_t body = argc > 2 ? strtoul(argv[2], NULL, 10) : 8000;
	long rounds = argc > 3 ? strtol(argv[3], NULL, 10) : 3;
	struct rlimit files = {0};
	struct bench b = {0};
	struct http_client *client;
	struct http_pool_options o = {0};
	struct http_pool *pool;
	int port, lfd, fd[2];
	char url[64];
	pid_t pid;

	if (argc == 3 && strcmp(n, "--serve") == 0)
		return serve(3, body);
	getrlimit(RLIMIT_NOFILE, &files);
	files.rlim_cur = files.rlim_max;
	setrlimit(RLIMIT_NOFILE, &files);
	lfd = listen_loopback(&port);
	pid = launch(argv[0], n, lfd, fd);
	close(lfd);
	snprintf(url, sizeof(url), "http://127.0.0.1:%d", port);
	b.loop = os_loop_new(NULL);
	client = http_client_new(b.loop, NULL);
	o.base_url = url;
	pool = http_pool_new(client, &o, NULL);
	for (long i = 0; i < rounds; i++)
		measure(&b, pool, strtoul(n, NULL, 10), body, fd);
	close(fd[1]);
	http_pool_free(pool);
	http_client_free(client);
	os_loop_free(b.loop);
	close(fd[0]);
	kill(pid, SIGTERM);
	waitpid(pid, NULL, 0);
	return b.failed ? 1 : 0;
}
