/* The copy of another machine's run, and its files; read.c brings what is new. */
#ifndef CLUSTER_COPY_H
#define CLUSTER_COPY_H

#include "base/buf.h"
#include "base/error.h"
#include "base/list.h"
#include "cluster/row.h"
#include "os/loop.h"
#include "subagent/logbook.h"

#define COPY_BYTES (256u << 20) /* of a log, of messages, and of what one ask brings */

struct reader_file {
	struct list node;
	char *body; /* owned */
	size_t len;
	char path[];
};

struct reader_copy {
	struct list node;
	struct reader *r;
	int dir_fd;                /* of READER_ROOT; *borrowed* */
	struct list waits, served; /* struct reader_wait: for the next look, for this one */
	bool busy, known, whole, again;
	bool waiting; /* for a connection */
	char id[24];
	struct reader_run run;
	struct run_log at; /* lines that the copy has */
	int64_t messages_at;
	/* The answer of the database. */
	struct buf log, messages;
	struct list files; /* struct reader_file */
	int64_t head;
	unsigned char hash[32];
	struct os_work work;
	int rv;
	struct ava_error err;
};

/* On a pool thread: finds what there is of the copy. */
void copy_load(struct os_work *w);
/* On a pool thread: adds what the database answered, `rv` is its outcome. AVA_ECORRUPT: together
 * with what is there it is not what its owner wrote, and nothing was added. */
void copy_store(struct os_work *w);

#endif
