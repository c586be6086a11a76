/* The clients of `bench sse` (bench/sse.py starts the servers): N event streams over a Unix socket
 * in one process, and what is written for them to hear of.
 *
 *     bench_sse SOCKET PATH N ROUNDS FILE [PID]
 *
 * A round replaces FILE by a new card and waits until each stream has an agent-update. Without FILE
 * ("") it posts to /api/v1/audit instead, and waits for that event. The clock starts before the
 * write. Prints a line of JSON, medians over the rounds in microseconds: until the first, the
 * median and the last client have it; with PID also by how much RssAnon of that process grew for
 * each stream. Reading N sockets is part of the time. Exit 1: a stream broke off, or an event did
 * not come within 10 s. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/util.h"

#define WAIT_MS  10000
#define QUIET_MS 60 /* nothing more of a round comes after that */

static const char *socket_path;
static int epoll_fd;

struct client {
	int fd, round; /* the last one that it heard of */
	char tail[16]; /* of what was read, where a mark may be cut */
};

static int64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void die(const char *what)
{
	fprintf(stderr, "bench_sse: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int dial(void)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	snprintf(a.sun_path, sizeof(a.sun_path), "%s", socket_path);
	if (fd < 0 || connect(fd, (struct sockaddr *)&a, sizeof(a)) != 0)
		die("connect");
	return fd;
}

static void say(int fd, const char *text)
{
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		die("write");
}

static void open_stream(struct client *c, const char *path)
{
	char text[4096];
	size_t len = 0;
	ssize_t n;
	struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};

	c->fd = dial();
	snprintf(text, sizeof(text),
		 "GET %s HTTP/1.1\r\nHost: ava\r\nAccept: text/event-stream\r\n\r\n", path);
	say(c->fd, text);
	do {
		n = read(c->fd, text + len, sizeof(text) - 1 - len);
		if (n <= 0)
			die("a stream did not begin");
		len += (size_t)n;
		text[len] = 0;
	} while (!strstr(text, "\r\n\r\n") && len < sizeof(text) - 1);
	if (strncmp(text, "HTTP/1.1 200", 12) != 0) {
		fprintf(stderr, "bench_sse: %.200s\n", text);
		exit(1);
	}
	fcntl(c->fd, F_SETFL, O_NONBLOCK);
	if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, c->fd, &e) != 0)
		die("epoll");
}

/* All that is there; true: the mark was in it. */
static bool hears(struct client *c, const char *mark)
{
	char text[sizeof(c->tail) + 16384 + 1];
	size_t keep = strlen(c->tail);
	bool heard = false;
	ssize_t n;

	for (;;) {
		memcpy(text, c->tail, keep);
		n = read(c->fd, text + keep, sizeof(text) - 1 - keep);
		if (n < 0 && errno == EAGAIN)
			return heard;
		if (n <= 0)
			die("a stream broke off");
		text[keep + (size_t)n] = 0;
		heard |= strstr(text, mark) != NULL;
		keep = MIN(keep + (size_t)n, strlen(mark) - 1);
		memcpy(c->tail, text + strlen(text) - keep, keep);
		c->tail[keep] = 0;
	}
}

static void write_card(const char *file, int round)
{
	static const char card[] = "{\"agentId\":\"a1\",\"type\":\"Explore\",\"status\":\"%s\","
				   "\"startedAt\":\"2026-11-24T07:00:00.000Z\","
				   "\"updatedAt\":\"2026-11-24T07:%02d:%02d.%03dZ\"}\n";
	char next[4096];
	FILE *f;

	snprintf(next, sizeof(next), "%s.next", file);
	f = fopen(next, "we");
	if (!f)
		die(next);
	fprintf(f, card, round % 2 ? "idle" : "active", round / 60 % 60, round % 60, 0);
	if (fclose(f) != 0 || rename(next, file) != 0)
		die(file);
}

static void post_audit(int fd, int round)
{
	char text[400], body[100];
	int len = snprintf(body, sizeof(body), "{\"type\":\"bench\",\"data\":{\"round\":\"r%d.\"}}",
			   round);

	snprintf(text, sizeof(text),
		 "POST /api/v1/audit HTTP/1.1\r\nHost: ava\r\nContent-Type: application/json\r\n"
		 "Content-Length: %d\r\n\r\n%s",
		 len, body);
	say(fd, text);
}

static int by_size(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static long anon_kb(const char *pid)
{
	char path[64], line[256];
	long kb = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%s/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "RssAnon:", 8) == 0)
			kb = strtol(line + 8, NULL, 10);
	if (f)
		fclose(f);
	return kb;
}

/* What is heard within `wait_ms` of silence; the times of those that hear of `round` for the first
 * time. */
static int listen_for(const char *mark, int round, int n, int64_t began, int64_t *took, int wait_ms)
{
	static struct epoll_event events[1024];
	int heard = 0;

	while (heard < n) {
		int ready = epoll_wait(epoll_fd, events, ARRAY_LEN(events), wait_ms);

		if (ready == 0)
			return heard;
		for (int i = 0; i < ready; i++) {
			struct client *c = events[i].data.ptr;

			if (!hears(c, mark) || c->round == round)
				continue;
			c->round = round;
			took[heard++] = now_us() - began;
		}
	}
	return heard;
}

static int64_t middle(int64_t *all, int n)
{
	qsort(all, (size_t)n, sizeof(*all), by_size);
	return all[n / 2];
}

int main(int argc, char **argv)
{
	int n = argc > 4 ? atoi(argv[3]) : 0, rounds = argc > 4 ? atoi(argv[4]) : 0, fd;
	const char *file = argc > 5 ? argv[5] : "", *pid = argc > 6 ? argv[6] : NULL;
	struct client *clients = calloc((size_t)MAX(n, 1), sizeof(*clients));
	int64_t *took = calloc((size_t)MAX(n, 1), sizeof(*took)), *of[3];
	long kb, grown = 0;

	if (argc < 6 || n < 1 || rounds < 1 || !clients || !took) {
		fprintf(stderr, "usage: bench_sse SOCKET PATH N ROUNDS FILE [PID]\n");
		return 2;
	}
	socket_path = argv[1];
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	kb = pid ? anon_kb(pid) : 0;
	for (int i = 0; i < n; i++)
		open_stream(&clients[i], argv[2]);
	fd = *file ? -1 : dial();
	for (int k = 0; k < 3; k++)
		of[k] = calloc((size_t)rounds, sizeof(int64_t));
	for (int r = 0; r <= rounds; r++) { /* the first one warms up */
		char mark[16] = "agent-update", rest[4096];
		int64_t began;

		if (fd >= 0)
			snprintf(mark, sizeof(mark), "\"r%d.\"", r);
		(void)listen_for("\1", -1, n, 0, took, QUIET_MS);
		began = now_us();
		if (fd >= 0)
			post_audit(fd, r);
		else
			write_card(file, r);
		if (listen_for(mark, r + 1, n, began, took, WAIT_MS) < n) {
			fprintf(stderr, "bench_sse: an event did not come to all within 10 s\n");
			return 1;
		}
		if (fd >= 0 && read(fd, rest, sizeof(rest)) <= 0)
			die("the answer to a post");
		if (r == 0) {
			grown = pid ? anon_kb(pid) - kb : 0;
			continue;
		}
		of[0][r - 1] = took[0];
		of[2][r - 1] = took[n - 1];
		of[1][r - 1] = middle(took, n);
	}
	printf("{\"first\":%lld,\"middle\":%lld,\"last\":%lld,\"kb\":%.2f}\n",
	       (long long)middle(of[0], rounds), (long long)middle(of[1], rounds),
	       (long long)middle(of[2], rounds), (double)grown / n);
	for (int k = 0; k < 3; k++)
		free(of[k]);
	free(took);
	free(clients);
	return 0;
}
