/* Report of a just started daemon to its starter: one line down a pipe, "ok" or "<error word>:
 * <sentence>". Both ends are here. */
#ifndef BASE_READY_H
#define BASE_READY_H

#include <stdbool.h>

struct ava_error;

/* avad: report once and close `fd`. `code` 0: serving. A negative `fd` (not started by a client)
 * and a vanished reader are fine. */
void ready_tell(int fd, int code, const char *sentence);

/* The starter: wait until `deadline_ms` (clock_mono_ms) for the line. `go_on` (NULL: always) is
 * asked at each signal and ten times a second. Returns 0 or the daemon's code, with its
 * sentence; AVA_ETIMEOUT without a line; AVA_ECANCELED when `go_on` says no; AVA_EIO when the
 * daemon ended without a word. */
int ready_wait(int fd, long long deadline_ms, bool (*go_on)(void *user), void *user,
	       struct ava_error *err);

#endif
