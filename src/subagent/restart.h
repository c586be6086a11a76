/* Runs after a crash or a stop: those without an end in the catalog go on under their
 * ids; a run whose record cannot be read ends as `error`, stop reason `interrupted`,
 * with the reason. */
#ifndef SUBAGENT_RESTART_H
#define SUBAGENT_RESTART_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct catalog_row;
struct run_spec;
struct supervisor;
struct ava_error;

struct restart_hooks {
	/* Called for each run with a request id that is not "", the newest last. */
	void (*request)(const char *request_id, const char *run, const char *trace,
			int64_t spawned_ms, void *user);
	/* Called when the file `path` was changed or damaged meanwhile. */
	void (*problem)(const char *path, const char *sentence, void *user);
	/* Called for each run that has not ended, in place of carrying it on; or NULL. */
	int (*hold)(const struct catalog_row *row, void *user);
	void *user;
	bool amiss;  /* files were not as the journal left them: the catalog is read whole */
	bool rested; /* the last stop was orderly */
};

/* Reads catalog.jsonl: names taken, history for quotes, unfinished runs. 0, or
 * an error that must stop the start. */
int restart_runs(struct supervisor *s, const struct restart_hooks *hooks, struct ava_error *err);

/* Carries on the run of a row that has no end. As restart_runs. */
int restart_run(struct supervisor *s, const struct catalog_row *row,
		const struct restart_hooks *hooks, struct ava_error *err);

/* Applies the amendment lines of messages, which change the spec of line 1: another model, a
 * parameter less. AVA_ENOMEM, AVA_ECORRUPT. */
int restart_amendments(struct run_spec *spec, const char *data, size_t len, struct ava_error *err);

#endif
