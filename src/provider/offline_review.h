/* What a review by rules can really see: calls that are easy to misuse, notes
 * left in the code, allocations without a check, functions that are very
 * long. Judged on the lines the tools returned. */
#ifndef PROVIDER_OFFLINE_REVIEW_H
#define PROVIDER_OFFLINE_REVIEW_H

#include "provider/offline_report.h"

struct review_search {
	const char *regex;
	const char *plain; /* where the tool knows no regular expressions */
};
extern const struct review_search review_searches[];
extern const unsigned review_nsearches;

/* How suspicious a line is, 0: not. *why is static. An allocation counts only
 * for choosing what to read (report_* judges it with its neighbours). */
int review_line(const struct hit_line *l, const char **why);
void review_find(struct report *r, const struct hits *h);

#endif
