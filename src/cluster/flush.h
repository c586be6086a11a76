/* A flush: what the runs of a machine have for the database, in one round trip. gate.c says what
 * goes and when; here it is read and put into its statements. */
#ifndef CLUSTER_FLUSH_H
#define CLUSTER_FLUSH_H

#include "cluster/member.h"

#define FLUSH_BYTES   (8u << 20) /* of one flush; the rest goes with the next one */
#define FLUSH_COLUMNS (64u << 20)

struct flush_file {
	struct cluster_file *of; /* or NULL: a head */
	char *path, *bytes;      /* owned; bytes NULL: not read */
	size_t len;
};

struct flush_run {
	struct cluster_run *run;
	/* The bytes to read: what the run has may be set anew meanwhile, and the statement must say
	 * where they begin. */
	int64_t log_from, log_to, messages_from, messages_to;
	struct run_log log;         /* behind the bytes that were read */
	char *log_bytes, *messages; /* owned; or NULL */
	size_t log_len, messages_len;
	/* The hash up to log_from is known; the record is whole; the database does not know the
	 * run. */
	bool chained, ended, fresh;
	const char *place;
	size_t files_from, files_to; /* its own in flush.files */
	int turns;                   /* replies of the model in it */
	/* Number of its newest call; what its replies have used. */
	int64_t turn, tokens, micro;
	int rv; /* its record cannot be read: it is left out */
};

struct flush {
	struct os_work work;
	struct cluster *c;
	uint64_t ticket;
	struct flush_run *runs;
	unsigned nruns;
	struct flush_file *files;
	size_t nfiles, files_cap;
	size_t bytes;
	int64_t sent_us;
	struct arena columns; /* of its statements */
	struct lend_told told;
	int rv;
	struct ava_error err;
};

/* False: out of memory. `of` NULL: a head of requests. */
bool flush_add_file(struct flush *f, struct cluster_file *of, const char *path);
/* On a pool thread: reads what is to be sent, with flush_run.rv for each run. */
void flush_work(struct os_work *w);
/* The statements of a flush; NULL: out of memory, which `rv` and `err` say. */
struct pg_batch *flush_batch(struct flush *f);
void flush_free(struct flush *f);

#endif
