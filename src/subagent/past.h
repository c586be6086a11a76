/* Folded rows of the catalog: what a start needs to know of the runs that there were. wal/catalog
 * keeps it up to a place of the catalog, so that the rows behind that place are all that a start
 * reads. It is made of the catalog alone and made anew when it is missing, damaged, or of another
 * catalog (doc/JOURNAL.md, "wal/catalog"). */
#ifndef SUBAGENT_PAST_H
#define SUBAGENT_PAST_H

#include "base/buf.h"
#include "base/list.h"
#include "base/strmap.h"
#include "journal/catalog.h"
#include "subagent/budget.h"
#include "subagent/quote.h"

/* A request id gets the same answer for a day, 100,000 ids at the most. */
#define REQUESTS_MAX   100000
#define REQUEST_AGE_MS 86400000LL

struct past_run {
	struct list node;
	struct catalog_row spawn, end; /* own their strings; end.id NULL: it has not ended */
	uint64_t seen;                 /* number of its newest row among those read */
};

struct past {
	struct nameset names; /* run ids and trace names ever used */
	struct quotes quotes; /* durations alone */
	struct spend spend;
	const struct settings *settings; /* *borrowed*; of `spends`; NULL: no budgets */
	struct spends spends;
	uint64_t total;
	struct catalog_place upto;
	struct list runs;      /* not ended, or of a group of such a one; in the order of starts */
	struct strmap by_id;   /* those of `runs` that have not ended */
	struct buf requests;   /* of the last day, and some older: "time run trace id" and a zero */
	size_t requests_most;  /* bytes of `requests` from which the older ones go */
	int64_t newest_ms;     /* start of the newest run */
	size_t nended;         /* of `runs` */
	uint64_t rows, unread; /* rows read now; lines of the catalog that are none */
	uint64_t settled;      /* as told to past_keep; 0: not known */
	bool kept;             /* what wal/catalog has was used */
};

/* Read wal/catalog, without `whole` and when its sums are of the budgets in `settings` (NULL: of
 * none), and the rows behind it. `rested`: nothing of ours has written
 * since wal/catalog was. 0, AVA_ENOMEM, AVA_EIO, or AVA_ECORRUPT as of catalog_each. */
int past_read(struct past *p, int rootfd, const struct settings *settings, bool whole, bool rested,
	      struct ava_error *err);
/* Add a row, whose strings it takes. 0, AVA_ENOMEM. */
int past_add(struct past *p, struct catalog_row *row);
void past_fini(struct past *p);

/* Write wal/catalog when more than `behind` bytes, and half of what it has itself, stand behind it.
 * `settled`: up to this lsn the daily logs have nothing that the next start takes up; 0: what was
 * said before holds. For any thread, one at a time. A failure costs the next start its time. */
void past_keep(int rootfd, const struct settings *settings, uint64_t behind, uint64_t settled);
#define PAST_BEHIND (1u << 20)

#endif
