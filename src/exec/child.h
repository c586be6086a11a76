/* A child process that is given its input at once, bounded in time and output.
 *
 * It leads a process group of its own. Whoever is left in that group when it
 * has ended, when its time is up or when it writes too much is killed with it:
 * a process that made itself another group or session is not. Its descriptors
 * are 0 (the input, a file in memory), 1 and 2 (one pipe to us), no other. It
 * is made without copying our memory (posix_spawn), is waited for and signalled
 * through a pidfd, and its group through its pid only while it is not reaped,
 * so that no other process can be meant. Loop thread only. */
#ifndef EXEC_CHILD_H
#define EXEC_CHILD_H

#include <stddef.h>
#include <stdint.h>

struct os_loop;
struct ava_error;
struct exec_child;

struct exec_options {
	const char *const *argv; /* argv[0]: the path of the program, no search; NULL at its end */
	const char *const *env;  /* all of its environment */
	const void *input;       /* *copied* */
	size_t input_len;
	int64_t timeout_ms;
	size_t output_max; /* bytes it may write; more ends it */
	size_t keep;       /* of its first output this much is told */
};

enum exec_how { EXEC_EXITED, EXEC_SIGNALLED, EXEC_TIMEOUT, EXEC_OUTPUT };

struct exec_end {
	enum exec_how how;
	int code;           /* exit status, or the signal */
	const char *output; /* *borrowed* during the call */
	size_t output_len;
};
typedef void (*exec_done_fn)(const struct exec_end *end, void *user);

/* 0: `done` follows once, from the loop, and *child is gone after it. Else it
 * never ran: AVA_ENOENT, AVA_EDENIED (no such program, or no right), AVA_EIO,
 * AVA_ENOMEM. */
int exec_start(struct exec_child **child, struct os_loop *loop, const struct exec_options *o,
	       exec_done_fn done, void *user, struct ava_error *err);
/* Kill its group and forget it; `done` is not called. Waits a second at the
 * most until it is gone. */
void exec_kill(struct exec_child *child);

#endif
