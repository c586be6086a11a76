/* Bytes too long for the WAL; see blob.h.
 *
 * The name follows from the batch, so the batch needs only size and hash. A
 * blob whose batch was never written is removed like any other, by its lsn. */
#include "journal/blob.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/sys.h"
#include "journal/files.h"

static const char prefix[] = "blob-";

void blob_name(uint64_t lsn, unsigned n, char out[BLOB_NAME])
{
	snprintf(out, BLOB_NAME, "%s%" PRIu64 "-%u", prefix, lsn, n);
}

int64_t blob_lsn(const char *name)
{
	char *end;
	long long lsn;

	if (strncmp(name, prefix, sizeof(prefix) - 1) != 0)
		return -1;
	name += sizeof(prefix) - 1;
	lsn = strtoll(name, &end, 10);
	return end != name && *end == '-' && lsn >= 0 ? lsn : -1;
}

static void hash_bytes(const void *bytes, size_t len, unsigned char hash[WAL_HASH])
{
	struct hash_sha256 h;

	hash_sha256_init(&h);
	hash_sha256_add(&h, bytes, len);
	hash_sha256_end(&h, hash);
}

int blob_write(int walfd, uint64_t lsn, unsigned n, const void *bytes, size_t len,
	       unsigned char hash[WAL_HASH])
{
	char name[BLOB_NAME];
	int fd, rv, saved;

	hash_bytes(bytes, len, hash);
	blob_name(lsn, n, name);
	fd = files_open(walfd, name, O_WRONLY | O_CREAT | O_TRUNC);
	if (fd < 0)
		return -1;
	rv = sys_write_all(fd, bytes, len, 0);
	if (rv == 0)
		rv = sys->fsync(fd);
	files_close(&fd);
	if (rv == 0)
		rv = files_sync_dir(walfd, ".");
	if (rv == 0)
		return 0;
	saved = errno;
	sys->unlinkat(walfd, name, 0);
	errno = saved;
	return -1;
}

int blob_read(int walfd, uint64_t lsn, unsigned n, uint64_t len, const unsigned char hash[WAL_HASH],
	      unsigned char **bytes)
{
	unsigned char got[WAL_HASH];
	char name[BLOB_NAME];
	struct stat st;
	int fd, rv;

	*bytes = NULL;
	blob_name(lsn, n, name);
	fd = files_open(walfd, name, O_RDONLY);
	if (fd < 0)
		return -1;
	rv = sys->fstat(fd, &st);
	if (rv == 0 && (!S_ISREG(st.st_mode) || (uint64_t)st.st_size != len)) {
		errno = EBADMSG;
		rv = -1;
	}
	if (rv == 0 && (*bytes = malloc(len + 1)) == NULL) {
		errno = ENOMEM;
		rv = -1;
	}
	if (rv == 0)
		rv = sys_read_all(fd, *bytes, len, 0);
	files_close(&fd);
	if (rv == 0) {
		hash_bytes(*bytes, len, got);
		if (memcmp(got, hash, WAL_HASH) == 0)
			return 0;
		errno = EBADMSG;
	}
	free(*bytes);
	*bytes = NULL;
	return -1;
}

struct removal {
	int walfd, error, left;
	uint64_t before;
};

static void remove_one(const char *name, void *user)
{
	struct removal *r = user;
	int64_t lsn = blob_lsn(name);

	if (lsn < 0)
		return;
	if ((uint64_t)lsn >= r->before)
		r->left++;
	else if (sys->unlinkat(r->walfd, name, 0) != 0)
		r->error = errno;
}

int blob_remove(int walfd, uint64_t before)
{
	struct removal r = {.walfd = walfd, .before = before};

	if (sys->list(walfd, ".", remove_one, &r) != 0)
		return -1;
	errno = r.error;
	return r.error == 0 ? r.left : -1;
}
