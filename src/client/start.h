/* Starting the daemon on demand. */
#ifndef CLIENT_START_H
#define CLIENT_START_H

#include <stdbool.h>
#include <stddef.h>

struct ava_error;

#define START_TIMEOUT_MS 30000

/* Path of the daemon's program: $AVA_AVAD, else beside this program, else
 * ../libexec/ava, else in $PATH. AVA_ENOENT with what to do. */
int start_find(char *out, size_t size, struct ava_error *err);

/* Is there a program of that name in $PATH? Its path into `out`. */
bool start_in_path(const char *name, char *out, size_t size);

/* For a program that others start (an MCP client, an editor): drop settings of ava, keys and
 * addresses of services from the environment. A daemon serves every door, and a program that
 * happens to start it must not decide or pay for the person, nor redirect their words: config.yaml
 * and the file env do. Facts about the machine stay: the places of data, configuration and the
 * daemon's program, proxies, certificates. */
void start_for_others(void);

/* Start a daemon for `root` (absolute) and wait until it serves or says why
 * not. It is a process of its own: own session, no descriptor of ours, "/" as
 * its folder, not our child. AVA_EBUSY: another daemon has the root (or is
 * just starting): connect to that one. The wait is that of ready_wait; a daemon that is
 * waited for no longer starts all the same. */
int start_daemon(const char *root, long long deadline_ms, bool (*go_on)(void *user), void *user,
		 struct ava_error *err);

#endif
