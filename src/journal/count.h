/* Counting events and summing what they cost, on two threads; part of
 * ava_read. doc/QUERY.md, "Counting". */
#ifndef JOURNAL_COUNT_H
#define JOURNAL_COUNT_H

#include <ava.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum count_by {
	COUNT_ALL,
	COUNT_TYPE,
	COUNT_AGENT,
	COUNT_MODEL,
	COUNT_ROLE,
	COUNT_DAY,
	COUNT_WEEK,    /* its Monday */
	COUNT_MONTH,   /* its first day */
	COUNT_TAG,     /* an event counts for each tag of its run */
	COUNT_PROJECT, /* the folder of the run, or that of the repository which it is in */
	COUNT_USER,
	COUNT_ORDER, /* the standing order of the run */
	COUNT_NKEYS
};
extern const char *const count_keys[]; /* "type" on: of COUNT_TYPE + their place; NULL at the end */
/* Parses "day", or "tag:client", whose key *tag then is, *borrowed*. AVA_EINVAL with what there
 * is. */
int count_by_name(const char *text, enum count_by *by, const char **tag, struct ava_error *err);

struct count_row {
	char *key; /* what the row counts, by enum count_by; owned; "": none */
	uint64_t events;
	uint64_t input_tokens, output_tokens; /* sums over InferEnd events, as the next two */
	uint64_t cost_microusd;
	uint64_t uncosted; /* number of calls whose price is unknown */
	uint64_t calls, cached_tokens;
	/* With count_watch.runs: runs that began; those that ended, but in success or cancelled;
	 * how long each that ended took, ms; owned. */
	uint64_t runs, failed;
	int32_t *ms;
	size_t nms, ms_cap;
	uint64_t *part_microusd, *part_tokens; /* owned; with count_watch.parts */
};

struct count {
	struct count_row
		*rows; /* owned; with most events, with `runs` most cost, first; times in order */
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
	const char *tag; /* for COUNT_TAG: the values of this key; NULL: tags as they stand */
	bool runs;       /* runs and their ends count, too: all rows of the catalog are read */
	/* Costs of calls are also added up by equal parts of the time from `from_ms` to `to_ms`;
	 * 0: it is not. */
	size_t parts;
	int64_t from_ms, to_ms;
};

/* Count the events that fit `q`, which does not follow. On error *out is empty. Returns what
 * ava_log_open and ava_log_next may, AVA_ECORRUPT aside. */
int count_events(struct count *out, const struct ava_log_query *q, enum count_by by,
		 const struct count_watch *watch, struct ava_error *err);
void count_fini(struct count *c);
/* Adds `from`, which is then freed but for the struct, to a row of as many parts. False: no memory,
 * and what took how long is not added. */
bool count_merge(struct count_row *to, struct count_row *from, size_t parts);

#endif
