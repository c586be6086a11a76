/* A child process that is given its input at once, or is talked with; bounded in time and output.
 *
 * It leads a process group of its own. Whoever is left in that group when it
 * has ended, when its time is up or when it writes too much is killed with it:
 * a process that made itself another group or session is not. Its descriptors
 * are 0 (the input, a file in memory), 1 and 2 (one pipe to us), no other; one
 * that is talked with has a pipe of its own at 0, and at 1. It
 * is made without copying our memory (posix_spawn), is waited for and signalled
 * through a pidfd, and its group through its pid only while it is not reaped,
 * so that no other process can be meant. In a sandbox (exec/sandbox.h) it is
 * `ava-sandbox --outside`, which is told to end what it has started, also by our
 * own end, and ends when the whole process namespace is gone, whatever made
 * itself a session in there; its control group (exec/cgroup.h), where there is
 * one, is killed with it. Loop thread only. */
#ifndef EXEC_CHILD_H
#define EXEC_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct os_loop;
struct ava_error;
struct exec_child;

struct exec_options {
	const char *const *argv; /* argv[0]: the program's path, not searched for; NULL ends it */
	const char *const *env;  /* the child's whole environment; NULL ends it */
	const void *input;       /* the child's input at 0; *copied* */
	size_t input_len;
	/* The child is talked with: it reads what exec_say sends, what it writes to 1 comes here,
	 * and its output is what it writes to 2. NULL: no talk. */
	void (*said)(const char *bytes, size_t len, void *user);
	size_t unread_max;  /* most bytes that may wait for the child to read them */
	int64_t timeout_ms; /* 0: no limit */
	size_t output_max;  /* most bytes that the child may write; more ends it */
	size_t keep;        /* bytes kept of the beginning of the output */
	size_t keep_tail;   /* bytes kept of the output's end */
	/* Gets output as it comes, 0 bytes at its end; calls exec_keep for what is to stay. NULL:
	 * all is kept. */
	void (*output)(const char *bytes, size_t len, void *user);
	/* argv is made by exec/sandbox.h: descriptor 3 is a pipe that tells which rules hold; 4,
	 * where it is open, the control group. */
	bool sandboxed;
};

enum exec_how { EXEC_EXITED, EXEC_SIGNALLED, EXEC_TIMEOUT, EXEC_OUTPUT, EXEC_STOPPED };

struct exec_end {
	enum exec_how how;
	int code;           /* exit status, or the signal */
	const char *output; /* beginning of the output; *borrowed* during the call */
	size_t output_len;
	const char *tail; /* end of the output, behind `output`; likewise */
	size_t tail_len;
	uint64_t written; /* bytes of output offered to be kept; their middle may be left out */
	const char *told; /* in a sandbox: what came through descriptor 3; else "" */
	bool left; /* the child was killed, but not gone a second later: a dead disk holds it */
};
typedef void (*exec_done_fn)(const struct exec_end *end, void *user);

/* Start a child. 0: `done` follows once, from the loop, and *child is freed after it. Else the
 * child never ran: AVA_ENOENT, AVA_EDENIED (no such program, or no right), AVA_EIO, AVA_ENOMEM. */
int exec_start(struct exec_child **child, struct os_loop *loop, const struct exec_options *o,
	       exec_done_fn done, void *user, struct ava_error *err);
/* Keep bytes as the child's output, as far as `keep` and `keep_tail` reach. Called from inside of
 * `output`. */
void exec_keep(struct exec_child *child, const char *bytes, size_t len);
/* Send text to a child with a talk. AVA_ETOOBIG: it does not read, AVA_ENOMEM; then nothing was
 * sent. */
int exec_say(struct exec_child *child, const char *text, size_t len);
/* End the talk: close its input, read nothing more, and kill it when it has not ended after `ms`.
 * Not from inside of `said`, which is not called again. */
void exec_hang_up(struct exec_child *child, int64_t ms);
/* Kill the child and its group; `done` follows, with EXEC_STOPPED. */
void exec_stop(struct exec_child *child);
/* Kill the child and its group, and free it without `done`. Waits a second at the most until it is
 * gone. */
void exec_kill(struct exec_child *child);

#endif
