/* Starting the daemon on demand. */
#ifndef CLIENT_START_H
#define CLIENT_START_H

#include <stddef.h>

struct ava_error;

#define START_TIMEOUT_MS 10000

/* Path of the daemon's program: $AVA_AVAD, else beside this program, else
 * ../libexec/ava, else in $PATH. AVA_ENOENT with what to do. */
int start_find(char *out, size_t size, struct ava_error *err);

/* Start a daemon for `root` (absolute) and wait until it serves or says why
 * not. It is a process of its own: own session, no descriptor of ours, "/" as
 * its folder, not our child. AVA_EBUSY: another daemon has the root (or is
 * just starting): connect to that one. `deadline_ms`: clock_mono_ms. */
int start_daemon(const char *root, long long deadline_ms, struct ava_error *err);

#endif
