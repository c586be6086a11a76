/* What the journal is measured beside: plain group commit, SQLite, Redis. */
#ifndef BENCH_JOURNAL_PEER_H
#define BENCH_JOURNAL_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RECORD_BYTES 400 /* of a commit: about an event's line */

/* Latencies in microseconds, in logarithmic steps of about 1 %. */
struct latency {
	uint64_t count[2048], n;
};
void latency_add(struct latency *l, double us);
double latency_at(const struct latency *l, double quantile);

struct result {
	bool skipped;
	double per_second, p50_us, p99_us;
	double cpu_us;   /* of this process a commit */
	double flush_us; /* time a flush took, where that is known */
};
/* Median of each figure. */
struct result result_median(struct result *r, int n);

double bench_now(void); /* seconds, monotonic */
double bench_cpu(void); /* seconds of this process, user and system */

/* `dir` exists; `writers` in a closed loop for `seconds`. */
struct result peer_raw(const char *dir, int writers, double seconds);
struct result peer_sqlite(const char *dir, int a_transaction, double seconds);
/* A server of its own on a Unix socket; skipped when redis-server is absent. */
struct result peer_redis(const char *dir, int writers, double seconds);

#endif
