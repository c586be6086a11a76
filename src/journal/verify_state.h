/* Between the files of the verifier. */
#ifndef JOURNAL_VERIFY_STATE_H
#define JOURNAL_VERIFY_STATE_H

#include <stdatomic.h>

#include "base/buf.h"
#include "base/strmap.h"
#include "journal/loglines.h"
#include "journal/seal_find.h"
#include "journal/seal_read.h"
#include "journal/verify.h"

/* A place up to which a file was sealed. */
struct verify_item {
	uint64_t size;
	uint64_t n;       /* of the Seal */
	uint64_t at, len; /* of the Seal's line in daily log `day`; len 0: seals/last */
	size_t day;
	unsigned char head[SEAL_HASH];
};

struct verify_found { /* a finding kept until all before it are told */
	struct verify_finding f;
	char what[];
};

struct verify_file {
	struct verify_item *items; /* owned; sorted by size once all are known */
	size_t n, cap;
	uint64_t disk; /* size at the start; UINT64_MAX: it is not there */
	struct verify_found **found;
	size_t nfound;
	uint64_t tail; /* bytes behind the last item */
	bool pruned;   /* it need not be there */
	int rv;        /* that it could not be read */
	struct ava_error err;
	char path[];
};

struct verify {
	const struct verify_options *o;
	struct verify_report *report;
	int rootfd;
	struct seal_names days;     /* daily logs, in the order of time */
	struct strmap by_path;      /* struct verify_file */
	struct verify_file **files; /* owned; sorted by path */
	size_t nfiles, cap;
	_Atomic size_t next; /* file to be taken by a thread */
	_Atomic uint64_t done;
	uint64_t total;
	bool seals_only; /* verify_newest: no items are kept */
};

struct verify_file *verify_file_get(struct verify *v, const char *path); /* NULL: no memory */
int verify_file_item(struct verify_file *f, const struct verify_item *item);
/* Into the file's list. Memory running out sets f->rv. */
void verify_file_found(struct verify_file *f, enum verify_kind kind, uint64_t line, uint64_t offset,
		       const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Go through the daily logs and their Seals. 0 or a code. */
int verify_chain(struct verify *v, struct ava_error *err);
/* Compare one file with its items. On any thread. */
void verify_file_check(struct verify *v, struct verify_file *f);

#endif
