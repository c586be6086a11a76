/* Peers that are plain calls: one flush, group commit in a few lines, SQLite;
 * see journal_peers.h.
 *
 * The group commit has the same hand-over as our journal (a mutex and a
 * condition to the thread, an eventfd back), since no program that has other
 * things to do gets around it; what our journal costs more is what it does
 * more. */
#include "journal_peers.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>
#ifdef BENCH_SQLITE
#include <sqlite3.h>
#endif

#include "base/clock.h"

#define FILE_BYTES  ((size_t)16 << 20) /* as one of our segments */
#define FLUSH_BYTES 4096
#define WRITERS_MAX 1000

static int zero_filled(const char *dir)
{
	char *zeros = calloc(1, FILE_BYTES), path[600];
	int fd;

	snprintf(path, sizeof(path), "%s/file", dir);
	fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0 || zeros == NULL || write(fd, zeros, FILE_BYTES) != (ssize_t)FILE_BYTES ||
	    syncfs(fd) != 0)
		bench_die("%s", path);
	free(zeros);
	return fd;
}

/* ---- one flush */

static void flush_until(int fd, struct meter *m, size_t *at, int64_t end_us)
{
	static char block[FLUSH_BYTES];
	int64_t now = clock_mono_us(), began;

	memset(block, 'f', sizeof(block));
	while (now < end_us && !bench_stop) {
		began = now;
		if (pwrite(fd, block, sizeof(block), (off_t)*at) != sizeof(block) ||
		    fdatasync(fd) != 0)
			bench_die("flush");
		*at = (*at + sizeof(block)) % FILE_BYTES;
		now = clock_mono_us();
		meter_add(m, now - began);
	}
}

struct sample peer_flush(const char *dir, int64_t duration_us)
{
	int fd = zero_filled(dir);
	static struct meter m;
	struct sample s;
	size_t at = 0;

	flush_until(fd, &m, &at, clock_mono_us() + meter_warm_us(duration_us));
	meter_start(&m, 0);
	flush_until(fd, &m, &at, clock_mono_us() + duration_us);
	s = meter_end(&m);
	close(fd);
	return s;
}

/* ---- group commit */

struct line {
	struct line *next;
	int64_t since_us;
	char bytes[LINE_BYTES];
};

struct raw {
	int fd, event_fd;
	unsigned writers;
	uint64_t lsn;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t work;
	struct line *in, *done; /* under lock */
	bool stop;              /* under lock */
	struct meter meter;
	struct line lines[WRITERS_MAX];
};

/* The thread: one flush of all that `in` had. */
static void raw_flush(struct raw *r, struct line *in, size_t *at)
{
	static char buf[WRITERS_MAX * LINE_BYTES];
	size_t n = 0;

	for (struct line *l = in; l != NULL; l = l->next, n += LINE_BYTES)
		memcpy(buf + n, l->bytes, LINE_BYTES);
	if (*at + n > FILE_BYTES)
		*at = 0;
	if (pwrite(r->fd, buf, n, (off_t)*at) != (ssize_t)n || fdatasync(r->fd) != 0)
		bench_die("group commit");
	*at += n;
}

static void *raw_main(void *arg)
{
	struct raw *r = arg;
	uint64_t one = 1;
	size_t at = 0;

	pthread_mutex_lock(&r->lock);
	while (!r->stop) {
		struct line *in = r->in, *last = in;

		if (in == NULL) {
			pthread_cond_wait(&r->work, &r->lock);
			continue;
		}
		r->in = NULL;
		pthread_mutex_unlock(&r->lock);
		raw_flush(r, in, &at);
		while (last->next != NULL)
			last = last->next;
		pthread_mutex_lock(&r->lock);
		last->next = r->done;
		r->done = in;
		if (last->next == NULL && write(r->event_fd, &one, sizeof(one)) != sizeof(one))
			bench_die("eventfd");
	}
	pthread_mutex_unlock(&r->lock);
	return NULL;
}

static void raw_put(struct raw *r, struct line *l)
{
	bool wake;

	bench_line(l->bytes, ++r->lsn);
	l->since_us = clock_mono_us();
	pthread_mutex_lock(&r->lock);
	wake = r->in == NULL;
	l->next = r->in;
	r->in = l;
	pthread_mutex_unlock(&r->lock);
	if (wake)
		pthread_cond_signal(&r->work);
}

static void raw_until(struct raw *r, int64_t end_us)
{
	struct pollfd p = {.fd = r->event_fd, .events = POLLIN};
	struct line *done, *next;
	uint64_t count;
	int64_t now;

	while ((now = clock_mono_us()) < end_us && !bench_stop) {
		if (poll(&p, 1, 100) != 1 || read(r->event_fd, &count, sizeof(count)) < 0)
			continue;
		pthread_mutex_lock(&r->lock);
		done = r->done;
		r->done = NULL;
		pthread_mutex_unlock(&r->lock);
		now = clock_mono_us();
		for (; done != NULL; done = next) {
			next = done->next;
			meter_add(&r->meter, now - done->since_us);
			raw_put(r, done);
		}
	}
}

struct sample peer_raw(const char *dir, unsigned writers, int64_t duration_us)
{
	struct raw *r = calloc(1, sizeof(*r));
	struct sample s;

	if (r == NULL)
		bench_die("group commit");
	r->fd = zero_filled(dir);
	r->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_init(&r->lock, NULL);
	pthread_cond_init(&r->work, NULL);
	if (pthread_create(&r->thread, NULL, raw_main, r) != 0)
		bench_die("thread");
	for (unsigned i = 0; i < writers; i++)
		raw_put(r, &r->lines[i]);
	raw_until(r, clock_mono_us() + meter_warm_us(duration_us));
	meter_start(&r->meter, 0);
	raw_until(r, clock_mono_us() + duration_us);
	s = meter_end(&r->meter);
	pthread_mutex_lock(&r->lock);
	r->stop = true;
	pthread_cond_signal(&r->work);
	pthread_mutex_unlock(&r->lock);
	pthread_join(r->thread, NULL);
	pthread_cond_destroy(&r->work);
	pthread_mutex_destroy(&r->lock);
	close(r->event_fd);
	close(r->fd);
	free(r);
	return s;
}

/* ---- SQLite */

#ifdef BENCH_SQLITE
static void sql(sqlite3 *db, const char *text)
{
	errno = 0;
	if (sqlite3_exec(db, text, NULL, NULL, NULL) != SQLITE_OK)
		bench_die("sqlite: %s: %s", text, sqlite3_errmsg(db));
}

static void sqlite_until(sqlite3 *db, sqlite3_stmt *insert, unsigned n, struct meter *m,
			 int64_t end_us)
{
	int64_t now = clock_mono_us(), began;
	static uint64_t lsn;
	char line[LINE_BYTES];

	while (now < end_us && !bench_stop) {
		began = now;
		if (n > 1)
			sql(db, "BEGIN");
		for (unsigned i = 0; i < n; i++) {
			bench_line(line, ++lsn);
			sqlite3_bind_text(insert, 1, line, sizeof(line), SQLITE_STATIC);
			errno = 0;
			if (sqlite3_step(insert) != SQLITE_DONE)
				bench_die("sqlite: insert: %s", sqlite3_errmsg(db));
			sqlite3_reset(insert);
		}
		if (n > 1)
			sql(db, "COMMIT");
		now = clock_mono_us();
		for (unsigned i = 0; i < n; i++)
			meter_add(m, now - began);
	}
}

static struct sample sqlite_run(const char *dir, unsigned per_transaction, int64_t duration_us)
{
	static struct meter m;
	sqlite3_stmt *insert;
	struct sample s;
	char path[600];
	sqlite3 *db;

	snprintf(path, sizeof(path), "%s/sqlite.db", dir);
	errno = 0;
	if (sqlite3_open(path, &db) != SQLITE_OK)
		bench_die("sqlite: %s", path);
	sql(db, "PRAGMA journal_mode=WAL");
	sql(db, "PRAGMA synchronous=FULL");
	sql(db, "CREATE TABLE event(lsn INTEGER PRIMARY KEY, line TEXT)");
	if (sqlite3_prepare_v2(db, "INSERT INTO event(line) VALUES(?)", -1, &insert, NULL) !=
	    SQLITE_OK)
		bench_die("sqlite: %s", sqlite3_errmsg(db));
	sqlite_until(db, insert, per_transaction, &m, clock_mono_us() + meter_warm_us(duration_us));
	meter_start(&m, 0);
	sqlite_until(db, insert, per_transaction, &m, clock_mono_us() + duration_us);
	s = meter_end(&m);
	sqlite3_finalize(insert);
	sqlite3_close(db);
	return s;
}

struct sample (*const peer_sqlite)(const char *, unsigned, int64_t) = sqlite_run;
#else
struct sample (*const peer_sqlite)(const char *, unsigned, int64_t) = NULL;
#endif
