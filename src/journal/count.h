/* Counting events and summing what they cost, on two threads; part of
 * ava_read. doc/QUERY.md, "Counting". */
#ifndef JOURNAL_COUNT_H
#define JOURNAL_COUNT_H

#include <ava.h>
#include <stddef.h>
#include <stdint.h>

enum count_by { COUNT_ALL, COUNT_TYPE, COUNT_AGENT, COUNT_MODEL, COUNT_ROLE, COUNT_DAY };

struct count_row {
	char *key; /* what the row counts, by enum count_by; owned; "": none */
	uint64_t events;
	uint64_t input_tokens, output_tokens; /* sums over InferEnd events, as the next two */
	uint64_t cost_microusd;
	uint64_t uncosted; /* number of calls whose price is unknown */
};

struct count {
	struct count_row *rows; /* owned; the row with most events first; days in order */
	size_t n;
};

/* Called for each broken line, one at a time; any thread. */
typedef void (*count_broken_fn)(const struct ava_error *err, void *user);
/* Called with the bytes read, from time to time; any thread, one at a time. */
typedef void (*count_progress_fn)(uint64_t done, uint64_t total, void *user);

struct count_watch { /* NULL callbacks: not called */
	count_broken_fn broken;
	count_progress_fn progress;
	void *user;
};

/* Count the events that fit `q`, which does not follow. On error *out is empty. Returns what
 * ava_log_open and ava_log_next may, AVA_ECORRUPT aside. */
int count_events(struct count *out, const struct ava_log_query *q, enum count_by by,
		 const struct count_watch *watch, struct ava_error *err);
void count_fini(struct count *c);

#endif
