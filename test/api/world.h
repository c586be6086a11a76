/* What tests of libava stand on: a runtime on a data root of the test's own, embedded or connected
 * as $MODE says, a folder to work in, and models that say what the test wants. The public face
 * alone. */
#ifndef API_WORLD_H
#define API_WORLD_H

#include "unit/unit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <ava.h>

#define LONG_MS 120000

/* A call that must be well; `err` says why it was not. */
#define WORLD_OK(call)                                                                             \
	do {                                                                                       \
		if ((call) != 0)                                                                   \
			fail_msg("%s", err.text);                                                  \
	} while (0)

struct world {
	struct ava_runtime *rt;
	bool embedded;
	char dir[256], root[300], work[300];
	char slow[320]; /* a run on this model ends when it is cancelled */
};

/* Set-up and tear-down of a test. */
int world_begin(void **state);
int world_end(void **state);

void world_open(struct world *w);

/* Sends `signo` to the daemon that the connected one started, and waits until it is gone. */
void world_kill(struct world *w, int signo);

/* A model that says these turns. */
void world_script(struct world *w, const char *turns, char model[400]);

void world_wait(struct world *w, const char *run);

#endif
