/* What the offline model answers: findings that are lines of the tool results,
 * a summary of them, and how sure it may be. */
#ifndef PROVIDER_OFFLINE_REPORT_H
#define PROVIDER_OFFLINE_REPORT_H

#include "base/buf.h"
#include "provider/offline_hits.h"

#define REPORT_MAX 24u

struct finding {
	unsigned line; /* index of hits.lines */
	int rank;      /* higher is better */
	char why[160];
};

struct report {
	struct finding list[REPORT_MAX]; /* best first */
	unsigned n;
	unsigned left_out; /* more of the same rank that did not fit */
};

/* Keeps the list sorted and bounded; a line that is there already is not
 * added again. */
void report_add(struct report *r, const struct hits *h, unsigned line, int rank, const char *why);

void report_find(struct report *r, const struct hits *h, const struct terms *t);

/* Arguments of submit_result, at most `max_bytes` (then with fewer findings);
 * `no_tools`: the run had nothing to search with. 0, AVA_ENOMEM. */
int report_write(struct buf *args, const struct report *r, const struct hits *h,
		 const struct terms *t, bool no_tools, size_t max_bytes);

#endif
