/* Sealed records (doc/SEALS.md, "A record to hand over"): files of a data root with the Seals that
 * prove them, in one file. Written from a root, and checked without one. Blocking; any thread. */
#ifndef JOURNAL_SEALED_H
#define JOURNAL_SEALED_H

#include <ava.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct sealed_wish {
	const char *run;  /* its record; NULL: all that Seals name from `since_ms` on */
	const char *of;   /* for people: the run, or the time as it was given */
	int64_t since_ms; /* since 1970 */
	bool messages;    /* with what models were asked and said */
};

struct sealed_sum {
	uint64_t files, seals, bytes;
	uint64_t unsealed; /* written: bytes that no Seal covers, which were left out */
	uint64_t gone;     /* written: files that were pruned since they were sealed */
	uint64_t line;     /* checked: the line that was read last; of what is wrong, from 1 */
	struct ava_log_head newest;
};

/* Write the record of the root open at `rootfd` to `out`. AVA_ENOENT: nothing of it is sealed. */
int sealed_write(int rootfd, const struct sealed_wish *w, FILE *out, struct sealed_sum *sum,
		 struct ava_error *err);

/* Check the record in the regular file `fd`. `keys`, NULL: text in which each key must stand (in
 * any case) that sealed. AVA_ECORRUPT: `err` says what the first thing is that does not hold,
 * sum->line where. */
int sealed_check(int fd, const char *keys, struct sealed_sum *sum, struct ava_error *err);

#endif
