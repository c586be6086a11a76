/* What other commands have of ava run: a run that is quoted, confirmed, followed. */
#ifndef CLI_CMD_RUN_H
#define CLI_CMD_RUN_H

#include <stdbool.h>
#include <stdint.h>

struct run_fork {
	const char *from;  /* before that call of its model, or that checkpoint */
	const char *model; /* NULL: the same */
	bool yes, json;
};
/* A new run that goes on from a recorded one. Returns enum cli_exit. */
int cmd_run_fork(const char *run, const struct run_fork *f);

#endif
