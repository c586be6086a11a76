/* What a start must know about the Seals before it: the newest one, and which
 * files an end without a last Seal left unsealed. */
#ifndef JOURNAL_SEAL_FIND_H
#define JOURNAL_SEAL_FIND_H

#include "journal/files.h"
#include "journal/seal_read.h"

struct seal_newest {
	uint64_t n;   /* 0: there is none */
	uint64_t lsn; /* of its event; 0: not known */
	unsigned char hash[SEAL_HASH];
	char day[16]; /* "2026-11-21", of the log it stands in; "": not known */
};
/* From the daily logs, and seals/last when that knows a later one. */
int seal_find_newest(int rootfd, struct seal_newest *newest, struct ava_error *err);

/* The last one of this log: 1; 0: it has none; or a code. */
int seal_find_in(int rootfd, const char *path, struct seal_newest *newest, struct ava_error *err);

/* Paths of files to which something came behind the newest Seal; none when
 * the last end was complete. Marks the root as not complete. */
int seal_find_stale(int rootfd, const struct seal_newest *newest, struct files_names *out,
		    struct ava_error *err);
/* The end is complete. Best effort. */
void seal_find_clean(int rootfd);

#endif
