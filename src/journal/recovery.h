/* Work at open before the journal takes commits: the FORMAT file, the checkpoint, reading the
 * WAL, redoing it, a fresh checkpoint. */
#ifndef JOURNAL_RECOVERY_H
#define JOURNAL_RECOVERY_H

#include <stddef.h>
#include <stdint.h>

#include "journal/journal.h"
#include "journal/wal.h"

#define RECOVERY_FORMAT "ava 2\n" /* the FORMAT file of this version */

struct recovery_segment {
	uint64_t seq;
	bool used, whole; /* used: in the log; whole: it has a good header */
};

struct recovery {
	struct journal_recovery report;
	char *problems;      /* what report.problems points to; owned */
	struct wal_pos good; /* end of the valid log, for the next segment's header */
	struct wal_pos pos;  /* position of the checkpoint in force */
	uint64_t lsn;        /* the next lsn to give */
	uint64_t next_seq;
	struct recovery_segment *segments; /* in ascending order of seq; owned */
	size_t nsegments;
};

/* Recover the root; rootfd and walfd are open folders: the root and wal/. 0 or a code; on error
 * nothing needed was lost and recovery can run again. */
int recovery_run(int rootfd, int walfd, struct recovery *out, struct ava_error *err);
void recovery_fini(struct recovery *r);

/* Write FORMAT where it is absent; AVA_EFORMAT when it is another version's. */
int recovery_check_format(int rootfd, struct ava_error *err);

#endif
