/* How a daemon that was just started tells who started it: one line down a
 * pipe, "ok" or "<error word>: <sentence>". Both ends are here. */
#ifndef BASE_READY_H
#define BASE_READY_H

struct ava_error;

/* avad: say it once and close `fd`. `code` 0: serving. A negative `fd` (not
 * started by a client) and a reader that has gone are fine. */
void ready_tell(int fd, int code, const char *sentence);

/* The starter: wait until `deadline_ms` (clock_mono_ms) for the line. Returns
 * 0 or the code the daemon gave, with its sentence; AVA_ETIMEOUT when nothing
 * came; AVA_EIO when the daemon ended without a word. */
int ready_wait(int fd, long long deadline_ms, struct ava_error *err);

#endif
