/* What the journal is measured beside; see journal_peer.h.
 *
 * raw      one thread: the records of all writers in one pwrite into a file
 *          that was zero-filled before, one fdatasync. No views, no queue: what
 *          the disk allows.
 * SQLite   WAL, synchronous=FULL: one INSERT a transaction, or as many as there
 *          are writers.
 * Redis    appendonly, appendfsync always: a connection per writer, each sends
 *          its next RPUSH when the last was answered. */
#include "journal_peer.h"

#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

#define RAW_BYTES ((size_t)64 << 20)

/* ---- figures */

void latency_add(struct latency *l, double us)
{
	int slot = us <= 1 ? 0 : (int)(log(us) * 100);

	l->count[slot < 2047 ? slot : 2047]++;
	l->n++;
}

double latency_at(const struct latency *l, double quantile)
{
	uint64_t want = (uint64_t)((double)l->n * quantile), seen = 0;

	for (int i = 0; i < 2048; i++) {
		seen += l->count[i];
		if (seen > want)
			return exp((i + 0.5) / 100);
	}
	return 0;
}

double bench_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

double bench_cpu(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(const struct result *r, int n, size_t field)
{
	double v[64];

	for (int i = 0; i < n; i++)
		memcpy(&v[i], (const char *)&r[i] + field, sizeof(v[i]));
	qsort(v, (size_t)n, sizeof(v[0]), by_value);
	return v[n / 2];
}

struct result result_median(struct result *r, int n)
{
	return (struct result){
		.skipped = r[0].skipped,
		.per_second = median(r, n, offsetof(struct result, per_second)),
		.p50_us = median(r, n, offsetof(struct result, p50_us)),
		.p99_us = median(r, n, offsetof(struct result, p99_us)),
		.cpu_us = median(r, n, offsetof(struct result, cpu_us)),
		.flush_us = median(r, n, offsetof(struct result, flush_us)),
	};
}

static struct result finish(const struct latency *l, uint64_t n, double seconds, double cpu)
{
	return (struct result){
		.per_second = (double)n / seconds,
		.p50_us = latency_at(l, 0.5),
		.p99_us = latency_at(l, 0.99),
		.cpu_us = n > 0 ? cpu * 1e6 / (double)n : 0,
	};
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* ---- raw */

static int filled_file(const char *dir)
{
	char path[512];
	char *zeros = calloc(1, RAW_BYTES);
	int fd;

	snprintf(path, sizeof(path), "%s/raw", dir);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || zeros == NULL || write(fd, zeros, RAW_BYTES) != (ssize_t)RAW_BYTES ||
	    fsync(fd) != 0)
		die("raw file");
	free(zeros);
	return fd;
}

struct result peer_raw(const char *dir, int writers, double seconds)
{
	size_t len = (size_t)writers * RECORD_BYTES, at = 0;
	char *records = malloc(len);
	static struct latency l;
	uint64_t n = 0;
	int fd = filled_file(dir);
	double start = bench_now(), cpu = bench_cpu(), end = start;
	struct result r;

	l = (struct latency){0};
	memset(records, 'r', len);
	while (end - start < seconds) {
		double from = end;

		if (at + len > RAW_BYTES)
			at = 0;
		if (pwrite(fd, records, len, (off_t)at) != (ssize_t)len || fdatasync(fd) != 0)
			die("raw");
		at += len;
		end = bench_now();
		n += (uint64_t)writers;
		latency_add(&l, (end - from) * 1e6);
	}
	r = finish(&l, n, end - start, bench_cpu() - cpu);
	r.flush_us = r.p50_us;
	free(records);
	close(fd);
	return r;
}

/* ---- SQLite */

static void sql(sqlite3 *db, const char *text)
{
	char *message = NULL;

	if (sqlite3_exec(db, text, NULL, NULL, &message) != SQLITE_OK) {
		fprintf(stderr, "sqlite: %s: %s\n", text, message);
		exit(1);
	}
}

struct result peer_sqlite(const char *dir, int a_transaction, double seconds)
{
	char path[512], record[RECORD_BYTES];
	static struct latency l;
	sqlite3_stmt *insert;
	uint64_t n = 0;
	double start, cpu, end;
	sqlite3 *db;

	l = (struct latency){0};
	memset(record, 's', sizeof(record));
	snprintf(path, sizeof(path), "%s/sqlite.db", dir);
	unlink(path);
	if (sqlite3_open(path, &db) != SQLITE_OK)
		die("sqlite");
	sql(db, "PRAGMA journal_mode=WAL");
	sql(db, "PRAGMA synchronous=FULL");
	sql(db, "CREATE TABLE e(id INTEGER PRIMARY KEY, line TEXT)");
	if (sqlite3_prepare_v2(db, "INSERT INTO e(line) VALUES(?)", -1, &insert, NULL) != SQLITE_OK)
		die("sqlite");
	start = end = bench_now();
	cpu = bench_cpu();
	while (end - start < seconds) {
		double from = end;

		if (a_transaction > 1)
			sql(db, "BEGIN");
		for (int i = 0; i < a_transaction; i++) {
			sqlite3_bind_text(insert, 1, record, RECORD_BYTES, SQLITE_STATIC);
			if (sqlite3_step(insert) != SQLITE_DONE)
				die("sqlite insert");
			sqlite3_reset(insert);
		}
		if (a_transaction > 1)
			sql(db, "COMMIT");
		end = bench_now();
		n += (uint64_t)a_transaction;
		latency_add(&l, (end - from) * 1e6);
	}
	cpu = bench_cpu() - cpu;
	sqlite3_finalize(insert);
	sqlite3_close(db);
	return finish(&l, n, end - start, cpu);
}

/* ---- Redis */

struct client {
	redisContext *c;
	double sent;
};

static pid_t redis_start(const char *dir)
{
	char sock[512], where[512];
	char *const argv[] = {
		"redis-server", "--port",     "0",       "--unixsocket", sock,   "--dir",
		where,          "--save",     "",        "--appendonly", "yes",  "--appendfsync",
		"always",       "--loglevel", "warning", "--maxclients", "4000", NULL};
	posix_spawn_file_actions_t quiet;
	pid_t pid;
	int rv;

	snprintf(sock, sizeof(sock), "%s/redis.sock", dir);
	snprintf(where, sizeof(where), "%s", dir);
	posix_spawn_file_actions_init(&quiet);
	posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
	rv = posix_spawnp(&pid, "redis-server", &quiet, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&quiet);
	return rv == 0 ? pid : -1;
}

static redisContext *redis_connect(const char *dir)
{
	char sock[512];

	snprintf(sock, sizeof(sock), "%s/redis.sock", dir);
	for (int i = 0; i < 500; i++) {
		redisContext *c = redisConnectUnix(sock);

		if (c != NULL && c->err == 0)
			return c;
		if (c != NULL)
			redisFree(c);
		usleep(10000);
	}
	return NULL;
}

static void redis_send(struct client *c)
{
	static char record[RECORD_BYTES];
	int done = 0;

	memset(record, 'x', sizeof(record));
	redisAppendCommand(c->c, "RPUSH e %b", record, sizeof(record));
	c->sent = bench_now();
	while (!done)
		if (redisBufferWrite(c->c, &done) != REDIS_OK)
			die("redis write");
}

/* 1 when an answer was there. */
static int redis_take(struct client *c, struct latency *l)
{
	void *reply = NULL;

	if (redisBufferRead(c->c) != REDIS_OK || redisGetReplyFromReader(c->c, &reply) != REDIS_OK)
		die("redis read");
	if (reply == NULL)
		return 0;
	freeReplyObject(reply);
	latency_add(l, (bench_now() - c->sent) * 1e6);
	return 1;
}

static struct result redis_loop(struct client *clients, int writers, double seconds)
{
	struct pollfd *fds = calloc((size_t)writers, sizeof(*fds));
	static struct latency l;
	uint64_t n = 0;
	double start = bench_now(), end = start;

	l = (struct latency){0};
	for (int i = 0; i < writers; i++) {
		fds[i] = (struct pollfd){.fd = clients[i].c->fd, .events = POLLIN};
		redis_send(&clients[i]);
	}
	while (end - start < seconds) {
		if (poll(fds, (nfds_t)writers, 5000) <= 0)
			die("redis does not answer");
		for (int i = 0; i < writers; i++)
			if (fds[i].revents != 0 && redis_take(&clients[i], &l)) {
				n++;
				redis_send(&clients[i]);
			}
		end = bench_now();
	}
	free(fds);
	return finish(&l, n, end - start, 0);
}

struct result peer_redis(const char *dir, int writers, double seconds)
{
	struct client *clients = calloc((size_t)writers, sizeof(*clients));
	struct result r = {.skipped = true};
	pid_t pid = redis_start(dir);
	int i = 0;

	if (pid < 0)
		goto done;
	for (; i < writers; i++)
		if ((clients[i].c = redis_connect(dir)) == NULL)
			goto done;
	r = redis_loop(clients, writers, seconds);
done:
	while (i > 0)
		redisFree(clients[--i].c);
	free(clients);
	if (pid > 0) {
		kill(pid, SIGTERM);
		waitpid(pid, NULL, 0);
	}
	return r;
}
