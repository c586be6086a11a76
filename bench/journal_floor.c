/* Plain calls at a given rate; see journal_floor.h.
 *
 * Both are driven by a step that is given so many lines to do. What arrives is
 * bounded by what a flush can take: a disk that does not keep up shows in the
 * rate that was reached. Errors end the benchmark. */
#include "journal_floor.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/util.h"

#define TICK_US    200
#define FILE_BYTES ((size_t)16 << 20)
#define LINES_MAX  ((uint64_t)4096) /* in one step */

struct floor {
	unsigned nfds, next;
	int *fds;
	size_t at; /* in the file of floor_flush */
	char *buf; /* LINES_MAX lines */
	struct meter meter;
};

static void flush_lines(struct floor *f, uint64_t n)
{
	size_t len = n * LINE_BYTES;

	f->at = f->at + len > FILE_BYTES ? 0 : f->at;
	if (pwrite(f->fds[0], f->buf, len, (off_t)f->at) != (ssize_t)len ||
	    fdatasync(f->fds[0]) != 0)
		bench_die("flush");
	f->at += len;
}

static void write_lines(struct floor *f, uint64_t n)
{
	for (; n > 0; n--) {
		if (pwrite(f->fds[f->next], f->buf, LINE_BYTES, 0) != LINE_BYTES)
			bench_die("write");
		f->next = f->next + 1 == f->nfds ? 0 : f->next + 1;
	}
}

static void sleep_until(int64_t us)
{
	struct timespec t = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void run_until(struct floor *f, void (*step)(struct floor *f, uint64_t n), double per_second,
		      int64_t end_us)
{
	int64_t from = clock_mono_us(), now = from;
	uint64_t issued = 0;

	while (now < end_us && !bench_stop) {
		uint64_t n = (uint64_t)((double)(now - from) * per_second / 1e6) - issued;

		if (n == 0) {
			sleep_until(now + TICK_US);
			now = clock_mono_us();
			continue;
		}
		n = MIN(n, LINES_MAX);
		step(f, n);
		now = clock_mono_us();
		for (; n > 0; n--)
			meter_add(&f->meter,
				  now - from - (int64_t)((double)++issued * 1e6 / per_second));
	}
}

static struct sample run(struct floor *f, void (*step)(struct floor *f, uint64_t n),
			 double per_second, int64_t duration_us)
{
	struct sample s;

	run_until(f, step, per_second, clock_mono_us() + meter_warm_us(duration_us));
	meter_start(&f->meter, 0);
	run_until(f, step, per_second, clock_mono_us() + duration_us);
	s = meter_end(&f->meter);
	for (unsigned i = 0; i < f->nfds; i++)
		close(f->fds[i]);
	free(f->fds);
	free(f->buf);
	free(f);
	return s;
}

static struct floor *prepare(const char *dir, unsigned files, int flags)
{
	struct rlimit r = {0};
	struct floor *f = calloc(1, sizeof(*f));
	char path[700];

	if (getrlimit(RLIMIT_NOFILE, &r) == 0 && r.rlim_cur < r.rlim_max) {
		r.rlim_cur = r.rlim_max;
		setrlimit(RLIMIT_NOFILE, &r);
	}
	if (f == NULL || (f->fds = calloc(files, sizeof(f->fds[0]))) == NULL ||
	    (f->buf = calloc(LINES_MAX, LINE_BYTES)) == NULL)
		bench_die("memory");
	for (uint64_t i = 0; i < LINES_MAX; i++)
		bench_line(f->buf + i * LINE_BYTES, i);
	for (; f->nfds < files; f->nfds++) {
		snprintf(path, sizeof(path), "%s/%06x", dir, f->nfds);
		f->fds[f->nfds] = open(path, O_RDWR | O_CREAT | O_CLOEXEC | flags, 0600);
		if (f->fds[f->nfds] < 0)
			bench_die("%s", path);
	}
	return f;
}

struct sample floor_flush(const char *dir, double per_second, int64_t duration_us)
{
	struct floor *f = prepare(dir, 1, 0);
	char *zeros = calloc(1, FILE_BYTES);

	if (zeros == NULL || write(f->fds[0], zeros, FILE_BYTES) != (ssize_t)FILE_BYTES ||
	    syncfs(f->fds[0]) != 0)
		bench_die("%s", dir);
	free(zeros);
	return run(f, flush_lines, per_second, duration_us);
}

struct sample floor_write(const char *dir, unsigned files, double per_second, int64_t duration_us)
{
	struct floor *f = prepare(dir, files, O_APPEND);

	write_lines(f, files); /* as our views are warm */
	if (syncfs(f->fds[0]) != 0)
		bench_die("%s", dir);
	return run(f, write_lines, per_second, duration_us);
}
