/* Everything that happens at open before the journal takes work: the FORMAT
 * file, the checkpoint, reading the WAL, redoing it, a fresh checkpoint. */
#ifndef JOURNAL_RECOVERY_H
#define JOURNAL_RECOVERY_H

#include <stddef.h>
#include <stdint.h>

#include "journal/journal.h"
#include "journal/wal.h"

#define RECOVERY_FORMAT "ava 1\n" /* the FORMAT file of this version */

struct recovery_segment {
	uint64_t seq;
	bool used, whole; /* whole: with a good header */
};

struct recovery {
	struct journal_recovery report;
	char *problems;      /* what report.problems is; owned */
	struct wal_pos good; /* the next segment's header says that this was the end */
	struct wal_pos pos;  /* of the checkpoint in force */
	uint64_t lsn;        /* the next to be given */
	uint64_t next_seq;
	struct recovery_segment *segments; /* ascending; owned */
	size_t nsegments;
};

/* Both are open folders: the root and wal/. 0 or a code; on error nothing that
 * matters was lost and it can be run again. */
int recovery_run(int rootfd, int walfd, struct recovery *out, struct ava_error *err);
void recovery_fini(struct recovery *r);

/* Write FORMAT where it is absent; AVA_EFORMAT when it is another's. */
int recovery_check_format(int rootfd, struct ava_error *err);

#endif
