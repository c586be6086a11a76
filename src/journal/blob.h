/* Bytes too long for the WAL: wal/blob-<lsn>-<n>, synced before the batch that
 * refers to them, removed once a checkpoint has released it. */
#ifndef JOURNAL_BLOB_H
#define JOURNAL_BLOB_H

#include <stddef.h>
#include <stdint.h>

#include "journal/wal.h"

#define BLOB_NAME 48

/* Of the n-th operation of the batch whose first lsn is `lsn`. */
void blob_name(uint64_t lsn, unsigned n, char out[BLOB_NAME]);
/* The lsn in a file name, or -1 when it is no blob's. */
int64_t blob_lsn(const char *name);

/* Durable when it returns, its name too. -1 and errno: nothing is left. */
int blob_write(int walfd, uint64_t lsn, unsigned n, const void *bytes, size_t len,
	       unsigned char hash[WAL_HASH]);
/* The caller's (free()). -1 and errno; EBADMSG when size or hash differ. */
int blob_read(int walfd, uint64_t lsn, unsigned n, uint64_t len, const unsigned char hash[WAL_HASH],
	      unsigned char **bytes);
/* Those whose lsn is below `before`. How many are left; -1 and errno. */
int blob_remove(int walfd, uint64_t before);

#endif
