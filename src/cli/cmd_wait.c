/* ava wait S-id...: until all of them have ended; one line for each, in the
 * order in which they end. The exit code is that of the worst: failed, then a
 * limit, then done. When the wait runs out (124) it is told which go on.
 *
 * Happy path: each is asked for its result, then the ends of runs are followed
 * as events, and whoever has ended is asked again. When the daemon goes away its
 * successor is asked for all that are left. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "cli/show.h"
#include "codec/json.h"

#define LOOK_MS 60000 /* all are asked again after so long without an end */

static struct {
	int64_t timeout_ms;
	bool json;
} o;

static const struct opt opts[] = {
	OPT("timeout", 0, SECONDS, "SECONDS", timeout_ms,
	    "give up after this time; the runs go on"),
	OPT("json", 0, FLAG, NULL, json, "the results as JSON, one a line"),
};

struct waiting {
	char **ids; /* those not told yet; argv's */
	int n, code;
	int64_t end_ms; /* monotonic; -1: never */
	bool last;      /* it is late: one more look */
	uint64_t lsn;   /* what happened up to here has been looked at */
};

static int worse(int a, int b)
{
	static const int order[] = {CLI_DONE, CLI_LIMIT, CLI_FAILED, CLI_NOSUCH, CLI_WAITED};
	int ia = 0, ib = 0;

	for (int i = 0; i < (int)ARRAY_LEN(order); i++) {
		ia = order[i] == a ? i : ia;
		ib = order[i] == b ? i : ib;
	}
	return ia >= ib ? a : b;
}

static void print_end(struct client *c, const char *id, const json_t *result)
{
	json_t *status = NULL;
	const char *role;

	if (o.json) {
		show_json(stdout, result);
		fflush(stdout);
		return;
	}
	/* The result does not name the role; without it the line still tells. */
	if (api_get(c, &status, NULL, "/runs/%s", id) != 0)
		status = NULL;
	role = json_get_str(status, "role");
	printf("%s ", id);
	progress_end(stdout, role != NULL ? role : "run", result);
	json_decref(status);
}

/* 1: it has been told, as an end or as an error of its own. */
static int look_at(struct waiting *w, struct client *c, const char *id, struct ava_error *err)
{
	json_t *result = NULL;
	int rv = api_result(c, id, 0, &result, err);

	if (rv == AVA_ENOENT) {
		w->code = worse(w->code, cli_fail(err));
		return 1;
	}
	if (rv != 0 || result == NULL)
		return rv;
	w->code = worse(w->code, cli_exit_of_status(json_str(result, "status")));
	print_end(c, id, result);
	json_decref(result);
	return 1;
}

/* All that are left, once. 0, or why not. */
static int look(struct waiting *w, struct client *c, struct ava_error *err)
{
	json_t *health = NULL;
	int rv = api_get(c, &health, err, "/health"), kept = 0, i;

	w->lsn = (uint64_t)MAX(json_get_int(json_object_get(health, "journal"), "lsn", 0), 0);
	json_decref(health);
	for (i = 0; rv == 0 && i < w->n; i++) {
		rv = look_at(w, c, w->ids[i], err);
		if (rv != 1)
			w->ids[kept++] = w->ids[i];
		rv = MIN(rv, 0);
	}
	for (; i < w->n; i++)
		w->ids[kept++] = w->ids[i];
	w->n = kept;
	return rv;
}

static int on_event(const struct sse_event *e, void *user)
{
	struct waiting *w = user;

	if (strcmp(e->event, "SubagentComplete") != 0)
		return 0;
	for (int i = 0; i < w->n; i++)
		if (memmem(e->data, e->len, w->ids[i], strlen(w->ids[i])) != NULL)
			return 1;
	return 0;
}

static bool late(const struct waiting *w)
{
	return w->end_ms >= 0 && clock_mono_ms() >= w->end_ms;
}

/* A look, and a wait until one of them has ended, or it is time. 1: no more of it. */
static int step(struct client *c, void *user, struct ava_error *err)
{
	struct waiting *w = user;
	int64_t until = clock_mono_ms() + LOOK_MS;
	int rv = look(w, c, err);

	if (rv != 0 || w->n == 0 || w->last)
		return rv != 0 ? rv : 1;
	rv = follow_news(c, w->lsn, w->end_ms >= 0 ? MIN(until, w->end_ms) : until, on_event, w,
			 err);
	w->last = late(w); /* one may have ended just now */
	return rv;
}

/* An id twice is told once. */
static int distinct(char **ids, int n)
{
	int kept = 0;

	for (int i = 0; i < n; i++) {
		bool known = false;

		for (int k = 0; k < kept; k++)
			known |= strcmp(ids[k], ids[i]) == 0;
		if (!known)
			ids[kept++] = ids[i];
	}
	return kept;
}

static int wait_run(int argc, char **argv)
{
	struct waiting w = {
		.ids = argv,
		.end_ms = o.timeout_ms == OPT_ABSENT ? -1 : clock_mono_ms() + o.timeout_ms,
	};
	struct client *c = NULL;
	struct ava_error err;
	int rv;

	for (int i = 0; i < argc; i++)
		if (cli_check_run_id(argv[i]) != CLI_DONE)
			return CLI_USAGE;
	w.n = distinct(argv, argc);
	rv = api_open(true, &c, &err);
	if (rv == 0)
		rv = api_until(&c, step, &w, w.end_ms, &err);
	if (rv != 0)
		w.code = cli_fail(&err);
	for (int i = 0; rv == 0 && i < w.n; i++)
		w.code = cli_error(CLI_WAITED, "%s has not ended yet; it goes on", w.ids[i]);
	client_close(c);
	return w.code;
}

const struct command cmd_wait = {
	.name = "wait",
	.args = "S-id...",
	.min_args = 1,
	.max_args = -1,
	.summary = "wait until runs have ended",
	OPTIONS(opts),
	.run = wait_run,
};
