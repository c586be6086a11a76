/* Runs of other machines, for whoever asks here. The database's record of a run is copied to
 * cluster/ below the root, which is laid out as a data root, so that all readers of one read it. A
 * line counts only once the chained head of its run says that it is what its owner wrote. The
 * connection is one of its own and may go to a standby; its loss never touches the gate. Loop
 * thread only. */
#ifndef CLUSTER_READ_H
#define CLUSTER_READ_H

#include <stdbool.h>
#include <stdint.h>

#include "cluster/row.h"

struct ava_error;
struct os_loop;
struct pg;
struct reader;

#define READER_RUNS 1000 /* the newest of other machines that are listed */
#define READER_MS   1000 /* a list waits so long for the database */
#define READER_POLL 500  /* ms between two looks at a run that somebody follows */

struct reader_options {
	struct os_loop *loop;
	const char *url;  /* conninfo or URI of libpq; *copied* */
	const char *node; /* of this machine; *borrowed until reader_close* */
	int root_fd;      /* *borrowed until reader_close* */
};

/* AVA_ENOENT (no libpq), AVA_EINVAL (the URL), AVA_EIO (the folder), AVA_ENOMEM. */
int reader_open(struct reader **r, const struct reader_options *o, struct ava_error *err);
/* Asks that were not answered are now, with AVA_ECANCELED. NULL is fine. */
void reader_close(struct reader *r);
/* Its connection, for tail.c; NULL: there is none, or none that others cannot read. */
struct pg *reader_pg(const struct reader *r);
const char *reader_node(const struct reader *r); /* of this machine */
/* Descriptor of the folder with the copies. */
int reader_root(const struct reader *r);

/* Lists what other machines have; rv not 0: it could not be asked for in time, and what was known
 * before is given. `stamp` is kept with ends that are new. */
typedef void (*reader_list_fn)(int rv, const struct ava_error *err, void *user);
void reader_list(struct reader *r, uint64_t stamp, reader_list_fn done, void *user);
/* As the newest list has it; NULL: it does not. */
const struct reader_run *reader_find(const struct reader *r, const char *id);
/* In no order, from *at = 0 on; NULL at the end. */
const struct reader_run *reader_next(const struct reader *r, size_t *at);

/* Brings the copy of a run up to date: its log and messages, and its files once it has ended. rv 0:
 * `run` (without its row); AVA_ENOENT: no other machine has it; AVA_ECORRUPT: the record is not
 * what its owner wrote; AVA_ETOOBIG, AVA_ENOMEM; AVA_EIO: also, the database does not answer. A run
 * that has ended is copied once and then there without a database. `done` is called exactly once,
 * maybe from here. */
typedef void (*reader_fn)(int rv, const struct reader_run *run, const struct ava_error *err,
			  void *user);
void reader_fetch(struct reader *r, const char *id, reader_fn done, void *user);
/* The next fetch reads all of the run from the database again, unless one is under way. */
void reader_anew(struct reader *r, const char *id);
/* Drops the asks of that user: they are not answered. */
void reader_drop(struct reader *r, const void *user);

#endif
