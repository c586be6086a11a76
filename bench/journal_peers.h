/* What the journal is measured beside, each under the same load on the same
 * file system. `dir` is an empty folder of the peer's own; all of them die on
 * errors. */
#ifndef BENCH_JOURNAL_PEERS_H
#define BENCH_JOURNAL_PEERS_H

#include "journal_meter.h"

/* One flush: pwrite of 4 KB and fdatasync, into a zero-filled file, by the
 * caller itself. */
struct sample peer_flush(const char *dir, int64_t duration_us);

/* The floor: nothing but group commit. The owner queues lines, a second thread
 * writes all that are there with one pwrite and one fdatasync into a
 * zero-filled file. No views, no checksums, no checkpoints. */
struct sample peer_raw(const char *dir, unsigned writers, int64_t duration_us);

/* SQLite, WAL, synchronous=FULL, one connection, its automatic checkpoints.
 * A latency is a transaction's, of `per_transaction` inserts. NULL when it was
 * built without SQLite. */
extern struct sample (*const peer_sqlite)(const char *dir, unsigned per_transaction,
					  int64_t duration_us);

struct redis;
/* A redis-server of our own on a Unix socket in `dir`: appendonly, appendfsync
 * always, no snapshots, no rewrites of its file. NULL: not installed. */
struct redis *redis_open(const char *dir);
/* `clients` connections, each with `depth` requests in flight: RPUSH of a
 * line. Processor time is the server's alone. */
struct sample redis_run(struct redis *r, unsigned clients, unsigned depth, int64_t duration_us);
void redis_close(struct redis *r);

#endif
