/* The life of avad: root, lock, runtime, socket, signals, idle exit. */
#ifndef GATEWAY_DAEMON_H
#define GATEWAY_DAEMON_H

#include <stdbool.h>
#include <stdint.h>

struct ava_error;

struct daemon_options {
	int ready_fd; /* gets "ok\n" once avad serves, or why it does not; -1: none */
	bool service; /* does not exit for being idle */
	bool verbose; /* log to stderr, too */
	bool again;   /* set when another machine has the runs: this process is to start itself anew
		       */
};

/* Serves until told to stop. 0, or why it could not. */
int daemon_run(struct daemon_options *o, struct ava_error *err);
/* `avad --recover`: what a start would do to the files, and nothing else. The
 * report is one line of JSON on stdout. */
int daemon_recover(struct ava_error *err);
/* `avad --prune`: see ava/prune.h. older_s 0: as retention.days says. */
int daemon_prune(int64_t older_s, bool dry, struct ava_error *err);

/* `avad --cluster WORD`: see cluster/cluster.h; try: status with the URL of the environment, where
 * the file of keys has another one, too. */
int daemon_cluster(const char *word, struct ava_error *err);

#endif
