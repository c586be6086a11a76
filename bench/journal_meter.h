/* What the parts of the journal's benchmark share: the clock of one cell of
 * the table (latencies, processor time), a flag that says "stop", and lines
 * that look like events. Times in microseconds throughout. */
#ifndef BENCH_JOURNAL_METER_H
#define BENCH_JOURNAL_METER_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define LINE_BYTES 300 /* of an event, newline counted */

/* What one round of one cell came to. */
struct sample {
	double rate; /* commits a second */
	double p50_us, p99_us;
	double cpu_us;        /* user and system a commit; 0: not measured */
	uint64_t checkpoints; /* ended meanwhile */
};

/* Values are kept to 1.6 %: exactly below 128, then 64 steps per doubling. */
#define METER_STEPS 64
#define METER_SLOTS (2 * METER_STEPS + 50 * METER_STEPS)

struct meter {
	int64_t from_us, cpu_from_us, until_us;
	pid_t server; /* its processor time is counted instead of ours; 0: none */
	uint64_t count, slots[METER_SLOTS];
};

/* Begin counting now. What was counted before is forgotten. */
void meter_start(struct meter *m, pid_t server);
void meter_add(struct meter *m, int64_t latency_us);
struct sample meter_end(struct meter *m);

/* A load runs a tenth longer than it counts: it warms up first. */
static inline int64_t meter_warm_us(int64_t duration_us)
{
	return duration_us / 10;
}

/* Says what went wrong, with errno unless it is 0; exit code 1, after what was
 * given to atexit() has removed files and processes. */
void bench_die(const char *fmt, ...) __attribute__((noreturn, format(printf, 1, 2)));

/* Set by SIGINT and SIGTERM: loops look at it and end early. */
extern volatile sig_atomic_t bench_stop;

/* An event's line with `lsn` in it, newline at the end, no NUL. */
void bench_line(char line[LINE_BYTES], uint64_t lsn);

int64_t bench_cpu_us(void);

/* An empty or missing folder afterwards. */
void bench_remove(const char *dir);

#endif
