/* The lock of a data root: flock on the folder. One daemon (or one recovery) holds it; the
 * kernel drops it when the holder dies. The file ava.lock names the holder, for people and for
 * error messages; only the flock counts. */
#ifndef OS_LOCK_H
#define OS_LOCK_H

#include <stdbool.h>

struct ava_error;

#define LOCK_NAME "ava.lock"

struct lock {
	int fd; /* descriptor of the folder; -1: the lock is not held */
};
#define LOCK_CLOSED                                                                                \
	{                                                                                          \
		.fd = -1                                                                           \
	}

/* Take the lock of the root open at `rootfd`. AVA_EBUSY when another process
 * still holds it after a second (the sentence names its pid), AVA_EUNSUPPORTED
 * on NFS, where a lock does not mean what we need. On error *l is closed. */
int lock_take(struct lock *l, int rootfd, struct ava_error *err);
bool lock_held(const struct lock *l);
void lock_drop(struct lock *l); /* accepts a closed lock */

/* Listen on ava.sock of the root, for the holder of its lock alone: an existing socket was left by
 * a dead daemon. *fd is non-blocking, mode 0600. */
int lock_listen(const struct lock *l, int rootfd, int *fd, struct ava_error *err);

#endif
