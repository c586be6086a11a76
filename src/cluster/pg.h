/* Connection to PostgreSQL on the loop. Statements go in batches: one round trip, one
 * transaction, all or none. Nothing waits on the loop's thread: what may wait while connecting
 * (names, certificates, ~/.pgpass) is done on the pool. A connection that is lost or was not made
 * is made again after 0.1 to 10 s; of several hosts in the URL each attempt tries all, from the
 * next one on. Statements have no names and no session is assumed, so a pooler may stand between.
 * Loop thread only; callbacks may call everything here, pg_close too. */
#ifndef CLUSTER_PG_H
#define CLUSTER_PG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ava_error;
struct os_loop;
struct pg;
struct pg_batch;

struct pg_options {
	const char *url;    /* conninfo or URI of libpq; *copied* */
	const char *name;   /* application_name where the URL has none; *copied* */
	int64_t timeout_ms; /* > 0: of an attempt, and of a batch; then the connection is dropped */
	void (*up)(void *user); /* connected */
	/* Not connected any more, or once more not; called for each attempt. `why` (AVA_ECONNECT,
	 * AVA_ETIMEOUT, AVA_EPROTO) has no password in it. All batches have been answered. */
	void (*down)(const struct ava_error *why, void *user);
	void *user;
	const char *library; /* NULL: libpq.so.5 */
};

/* Returns before anything is connected. On error *pg is unchanged. AVA_ENOENT: no libpq, or one
 * before 14; AVA_EINVAL: the URL; AVA_ENOMEM. */
int pg_open(struct pg **pg, struct os_loop *loop, const struct pg_options *o,
	    struct ava_error *err);
/* Batches that were not answered are now, with AVA_ECANCELED; no callback comes later. NULL is
 * fine. */
void pg_close(struct pg *pg);
bool pg_is_up(const struct pg *pg);
/* Is what is sent read by nobody on the way: a Unix socket, loopback, TLS or GSS encryption? False
 * while it is not up. */
bool pg_is_private(const struct pg *pg);

/* ---- a batch. What goes wrong while it is made (memory, PG_BATCH_MAX, PG_PARAMS_MAX) is told by
 * pg_send; a batch that is NULL is one without memory. */
#define PG_BATCH_MAX  (64u << 20) /* bytes: of a batch, and of all that are not answered */
#define PG_WAIT_MAX   1024        /* batches that are not answered */
#define PG_PARAMS_MAX 32          /* of a statement */

struct pg_bytes {
	const void *data; /* NULL: SQL's null */
	size_t len;
};

struct pg_batch *pg_batch_new(void);
void pg_batch_free(struct pg_batch *b); /* of one that is not sent; NULL is fine */
/* The next statement, *copied*; what follows are its parameters $1, $2, … in their order, *copied*
 * too. No begin, no commit, no COPY. */
void pg_batch_add(struct pg_batch *b, const char *sql);
void pg_batch_text(struct pg_batch *b, const char *text);              /* text; NULL: null */
void pg_batch_int(struct pg_batch *b, int64_t n);                      /* bigint */
void pg_batch_bytes(struct pg_batch *b, const void *data, size_t len); /* bytea; NULL: null */
/* Arrays of one dimension, for unnest: text[], bigint[], bytea[]. */
void pg_batch_texts(struct pg_batch *b, const char *const *texts, size_t n);
void pg_batch_ints(struct pg_batch *b, const int64_t *ints, size_t n);
void pg_batch_byteses(struct pg_batch *b, const struct pg_bytes *byteses, size_t n);

/* ---- answers */
struct pg_result {
	const void *pq; /* the rows and who can read them; not yours */
	void *rows;
};

struct pg_answer { /* borrowed until the callback returns */
	/* 0: committed. AVA_EUNKNOWN: the connection went before the answer came, so that all of it
	 * may have happened, or nothing. Anything else: nothing has happened. AVA_EBUSY: a
	 * deadlock or a conflict, send it again; AVA_EEXIST, AVA_EDENIED, AVA_EFULL, AVA_ETIMEOUT;
	 * AVA_EREJECTED: any other error of a statement. AVA_ECANCELED (pg_close) is as
	 * AVA_EUNKNOWN. */
	int rv;
	const struct ava_error *err;     /* one sentence, when rv is not 0 */
	const char *sqlstate;            /* of the server's error, 5 characters; else "" */
	const struct pg_result *results; /* one a statement when rv is 0, else none */
	unsigned n;
};
typedef void (*pg_done_fn)(const struct pg_answer *a, void *user);

/* Send a batch, *taken* in any case. Sent at the end of this turn of the loop; batches are answered
 * in their order. `done` is called exactly once and never from here; on error never. AVA_ECONNECT:
 * not connected; AVA_EBUSY: too much is not answered; AVA_ETOOBIG, AVA_ENOMEM: the batch. */
int pg_send(struct pg *pg, struct pg_batch *b, pg_done_fn done, void *user, struct ava_error *err);

/* Results are in memory whole: a statement says itself how much it wants (limit). Rows and columns
 * count from 0; one that is not there reads as null. */
unsigned pg_rows(const struct pg_result *r);
int64_t pg_affected(const struct pg_result *r); /* rows of an insert, update or delete */
/* Of text and bytea: NUL-terminated, *len (or NULL) without the NUL. NULL: null. */
const char *pg_text(const struct pg_result *r, unsigned row, unsigned col, size_t *len);
/* Of smallint, integer, bigint and boolean. False: null, or of another type. */
bool pg_int(const struct pg_result *r, unsigned row, unsigned col, int64_t *n);

#endif
