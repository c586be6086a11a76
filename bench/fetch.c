/* bench_fetch [FETCHES [BYTES]]: the guarded fetcher, so many URLs asked for at once of a site on
 * this machine, each a page of BYTES: as it is configured by default (64 at once, 4 of a host),
 * and with all of them in flight. The site is a thread of this process that polls; its time is
 * in the wall's, not in the loop's.
 *
 * A loop gap is how long one step of the loop kept it from anything else. Memory is what the
 * resident set grew by at the most, for each that may be in flight. */
#include <ava.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "net/http_client.h"
#include "net/web_fetch.h"
#include "os/loop.h"

#define FETCHES_MAX 5000

static struct {
	struct pollfd fds[FETCHES_MAX + 1]; /* the first one listens */
	size_t n, len;
	char *reply;
	unsigned port;
} site;

static unsigned left, failed;

static double now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static long resident_kb(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	long pages = 0;

	if (!f || fscanf(f, "%*d %ld", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* A request fits into one read; an answer is written as a whole. */
static void serve_one(struct pollfd *p)
{
	char in[4096];
	size_t at = 0;

	if (recv(p->fd, in, sizeof(in), 0) <= 0) {
		close(p->fd);
		p->fd = -1;
		return;
	}
	while (at < site.len) {
		ssize_t n = send(p->fd, site.reply + at, site.len - at, MSG_NOSIGNAL);

		if (n <= 0)
			return;
		at += (size_t)n;
	}
}

static void *serve(void *unused)
{
	for (;;) {
		if (poll(site.fds, site.n, -1) < 0)
			return unused;
		if ((site.fds[0].revents & POLLIN) && site.n <= FETCHES_MAX)
			site.fds[site.n++] = (struct pollfd){
				.fd = accept(site.fds[0].fd, NULL, NULL), .events = POLLIN};
		for (size_t i = 1; i < site.n; i++)
			if (site.fds[i].fd >= 0 && site.fds[i].revents)
				serve_one(&site.fds[i]);
		while (site.n > 1 && site.fds[site.n - 1].fd < 0)
			site.n--;
	}
}

static void open_site(size_t bytes)
{
	struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t size = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), head;
	pthread_t thread;

	site.reply = malloc(bytes + 200);
	head = sprintf(site.reply,
		       "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: %zu\r\n\r\n",
		       bytes);
	memset(site.reply + head, 'x', bytes);
	site.len = bytes + (size_t)head;
	site.fds[0] = (struct pollfd){.fd = fd, .events = POLLIN};
	site.n = 1;
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) != 0 || listen(fd, 4096) != 0 ||
	    getsockname(fd, (struct sockaddr *)&a, &size) != 0 ||
	    pthread_create(&thread, NULL, serve, NULL) != 0) {
		perror("bench_fetch: the site");
		exit(1);
	}
	site.port = ntohs(a.sin_port);
	pthread_detach(thread);
}

static void done(struct web_fetch *f)
{
	failed += f->fault != FETCH_OK || f->status != 200;
	web_fetch_fini(f);
	left--;
}

static void round_of(struct os_loop *loop, struct http_client *client, unsigned n,
		     unsigned parallel, unsigned per_host)
{
	static struct web_fetch all[FETCHES_MAX];
	char listed[40], url[80];
	const char *const inside[] = {listed, NULL};
	struct fetcher_options o = {.inside = inside, .parallel = parallel, .per_host = per_host};
	struct fetcher *f;
	double began = now_ms(), gap = 0;
	long kb = resident_kb(), most = kb;

	snprintf(listed, sizeof(listed), "127.0.0.1:%u", site.port);
	f = fetcher_new(client, loop, &o, NULL);
	left = f ? n : 0;
	failed = f ? 0 : n;
	for (unsigned i = 0; i < left; i++) {
		snprintf(url, sizeof(url), "http://%s/%u", listed, i);
		all[i] = (struct web_fetch){.url = url, .wait_ms = 600000, .done = done};
		if (web_fetch_start(f, &all[i], NULL) != 0) {
			fprintf(stderr, "bench_fetch: out of memory\n");
			exit(1);
		}
	}
	while (left > 0) {
		double from;

		os_loop_step(loop, 0);
		from = now_ms();
		os_loop_step(loop, 0);
		gap = now_ms() - from > gap ? now_ms() - from : gap;
		most = resident_kb() > most ? resident_kb() : most;
	}
	printf("%6u at once %10.0f ms %10.0f fetches/s %8.1f KB each %8.1f ms loop gap %6u "
	       "failed\n",
	       parallel, now_ms() - began, n / (now_ms() - began) * 1e3,
	       (double)(most - kb) / (n < parallel ? n : parallel), gap, failed);
	fetcher_free(f);
}

int main(int argc, char **argv)
{
	unsigned n = argc > 1 ? (unsigned)atoi(argv[1]) : 1000;
	size_t bytes = argc > 2 ? (size_t)atol(argv[2]) : 20000;
	struct os_loop *loop = os_loop_new(NULL);
	struct http_client *client = loop ? http_client_new(loop, NULL) : NULL;

	if (!client || n == 0 || n > FETCHES_MAX) {
		fprintf(stderr, "usage: bench_fetch [FETCHES (1 to %d) [BYTES]]\n", FETCHES_MAX);
		return 2;
	}
	open_site(bytes);
	printf("%u fetches of %zu bytes\n", n, bytes);
	round_of(loop, client, n, 64, 4);
	round_of(loop, client, n, n, n);
	http_client_free(client);
	os_loop_free(loop);
	return failed > 0;
}
