/* The part of `bench agents` that speaks with avad: starts N confirmed runs over
 * the Unix socket, waits until none is left, and measures the daemon meanwhile.
 *
 *     bench_agents_ava ROOT N MODEL CWD QUIET-MS
 *
 * A daemon serves ROOT already. 32 threads post, so that commits share a flush.
 * It is not asked how it is before QUIET-MS have gone: each answer costs it time.
 * Prints a line of JSON: wall time from the first post to the last end, CPU of
 * the daemon in that time, its peak of anonymous memory per run, when the posts
 * were through. Exit 1: a run could not be started. */
#include <ava.h>
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"
#include "client/client.h"

#define THREADS 32

static const char *root, *model, *cwd;
static int n, failed;
static int64_t quiet_ms;
static atomic_int next;

static void die(const char *what, const struct ava_error *err)
{
	fprintf(stderr, "bench_agents_ava: %s: %s\n", what, err ? err->text : "");
	exit(2);
}

static void *post(void *arg)
{
	struct client *c;
	struct ava_error err = {0};
	int *bad = arg;

	if (client_open(root, false, &c, &err) != 0)
		die("open", &err);
	for (int i = atomic_fetch_add(&next, 1); i < n; i = atomic_fetch_add(&next, 1)) {
		struct client_reply reply;
		char json[1024];

		snprintf(json, sizeof json,
			 "{\"role\":\"code_reviewer\",\"task\":\"Task "
			 "%d.\",\"model\":\"%s\",\"cwd\":"
			 "\"%s\",\"confirmed\":true}",
			 i, model, cwd);
		if (client_call(c, "POST", "/api/v1/runs", json, &reply, &err) != 0) {
			if ((*bad)++ == 0)
				fprintf(stderr, "bench_agents_ava: %s\n", err.text);
			continue;
		}
	}
	client_close(c);
	return NULL;
}

/* A number behind `name` in the daemon's answer. */
static long number_in(const char *json, const char *name)
{
	const char *at = strstr(json, name);

	return at ? strtol(at + strlen(name), NULL, 10) : -1;
}

static void health(struct client *c, long *pid, long *running, long *queued)
{
	struct client_reply reply;
	struct ava_error err = {0};

	if (client_call(c, "GET", "/api/v1/health", NULL, &reply, &err) != 0)
		die("health", &err);
	*pid = number_in(reply.body, "\"pid\":");
	*running = number_in(reply.body, "\"running\":");
	*queued = number_in(reply.body, "\"queued\":");
}

static long anon_kb(long pid)
{
	char path[64], line[256];
	long kb = 0;
	FILE *f;

	snprintf(path, sizeof path, "/proc/%ld/status", pid);
	f = fopen(path, "re");
	while (f != NULL && fgets(line, sizeof line, f) != NULL)
		if (strncmp(line, "RssAnon:", 8) == 0)
			kb = strtol(line + 8, NULL, 10);
	if (f != NULL)
		fclose(f);
	return kb;
}

/* User and system time of all threads, in microseconds: the kernel's clock of
 * the process, which is finer than the ticks of /proc/PID/stat. */
static int64_t cpu_us(long pid)
{
	struct timespec ts;
	clockid_t id;

	if (clock_getcpuclockid((pid_t)pid, &id) != 0 || clock_gettime(id, &ts) != 0)
		return 0;
	return (int64_t)ts.tv_sec * 1000000 + ts.tv_nsec / 1000;
}

struct result {
	int64_t wall_ms, posted_ms, cpu_us, start_ms;
	long base_kb, peak_kb;
};

static void run(struct client *c, struct result *r)
{
	const struct timespec pause = {.tv_nsec = 10000000};
	pthread_t threads[THREADS];
	int bad[THREADS] = {0};
	unsigned nthreads = (unsigned)MIN(n, THREADS);
	long pid, running, queued;
	int64_t cpu;
	bool posted = false;

	health(c, &pid, &running, &queued);
	r->base_kb = r->peak_kb = anon_kb(pid);
	cpu = cpu_us(pid);
	r->start_ms = clock_mono_ms();
	for (unsigned i = 0; i < nthreads; i++)
		if (pthread_create(&threads[i], NULL, post, &bad[i]) != 0)
			die("thread", NULL);
	do {
		nanosleep(&pause, NULL);
		r->peak_kb = MAX(r->peak_kb, anon_kb(pid));
		if (!posted && atomic_load(&next) >= n) {
			for (unsigned i = 0; i < nthreads; i++) {
				pthread_join(threads[i], NULL);
				failed += bad[i];
			}
			posted = true;
			r->posted_ms = clock_mono_ms() - r->start_ms;
		}
		if (!posted || clock_mono_ms() - r->start_ms < quiet_ms)
			running = 1;
		else
			health(c, &pid, &running, &queued);
	} while (running > 0 || queued > 0);
	r->wall_ms = clock_mono_ms() - r->start_ms;
	r->cpu_us = cpu_us(pid) - cpu;
}

int main(int argc, char **argv)
{
	struct result r = {0};
	struct ava_error err = {0};
	struct client *c;

	if (argc != 6)
		die("usage: bench_agents_ava ROOT N MODEL CWD QUIET-MS", NULL);
	root = argv[1];
	n = atoi(argv[2]);
	model = argv[3];
	cwd = argv[4];
	quiet_ms = atoi(argv[5]);
	if (client_open(root, false, &c, &err) != 0)
		die("open", &err);
	run(c, &r);
	client_close(c);
	printf("{\"failed\":%d,\"wall_ms\":%lld,\"posted_ms\":%lld,\"cpu_us\":%lld,\"start_ms\":%"
	       "lld,"
	       "\"base_kb\":%ld,\"peak_kb\":%ld}\n",
	       failed, (long long)r.wall_ms, (long long)r.posted_ms, (long long)r.cpu_us,
	       (long long)r.start_ms, r.base_kb, r.peak_kb);
	return failed > 0;
}
