/* ava wait S-id...: until all of them have ended; one line for each. The exit
 * code is that of the worst: failed, then a limit, then done. When the wait
 * runs out (124) the runs go on. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/progress.h"
#include "cli/show.h"
#include "codec/json.h"

#define ASK_S 60 /* one request waits so long at the most */

static struct {
	int64_t timeout_ms;
	bool json;
} o;

static const struct opt opts[] = {
	{.name = "timeout",
	 .type = OPT_SECONDS,
	 .value = "SECONDS",
	 .help = "give up after this time; the runs go on",
	 .field = offsetof(__typeof__(o), timeout_ms)},
	{.name = "json",
	 .type = OPT_FLAG,
	 .help = "the results as JSON, one a line",
	 .field = offsetof(__typeof__(o), json)},
};

static void print_end(struct client *c, const char *id, const json_t *result)
{
	json_t *status = NULL;
	const char *role;

	if (o.json) {
		show_json(stdout, result);
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

/* Its exit code, or CLI_WAITED; asks again while there is time. */
static int wait_one(struct client **c, const char *id, int64_t end_ms)
{
	for (;;) {
		int64_t left = end_ms < 0 ? ASK_S * 1000 : MAX(end_ms - clock_mono_ms(), 0);
		struct ava_error err = {0};
		json_t *result = NULL;
		const char *status;
		int rv = 0, code;

		if (*c == NULL)
			rv = api_open(true, c, &err);
		/* The daemon counts whole seconds: the deadline cuts the last one. */
		if (rv == 0 && end_ms >= 0)
			client_set_deadline(*c, clock_mono_ms() + left + 50);
		if (rv == 0)
			rv = api_result(*c, id, (int)MIN((left + 999) / 1000, ASK_S), &result,
					&err);
		if (rv == 0 && result != NULL) {
			status = json_get_str(result, "status");
			code = cli_exit_of_status(status != NULL ? status : "error");
			print_end(*c, id, result);
			json_decref(result);
			return code;
		}
		if (rv != 0 && rv != AVA_ECONNECT && rv != AVA_EUNKNOWN && rv != AVA_ETIMEOUT)
			return cli_fail(&err);
		if (end_ms >= 0 && clock_mono_ms() >= end_ms)
			return cli_error(CLI_WAITED, "%s has not ended yet; it goes on", id);
		if (rv != 0) { /* the daemon went away: ask its successor */
			client_close(*c);
			*c = NULL;
		}
	}
}

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

static int wait_run(int argc, char **argv)
{
	int64_t end = o.timeout_ms == OPT_ABSENT ? -1 : clock_mono_ms() + o.timeout_ms;
	struct ava_error err;
	struct client *c;
	int code = CLI_DONE;

	for (int i = 0; i < argc; i++)
		if (cli_check_run_id(argv[i]) != CLI_DONE)
			return CLI_USAGE;
	if (api_open(true, &c, &err) != 0)
		return cli_fail(&err);
	for (int i = 0; i < argc; i++)
		code = worse(code, wait_one(&c, argv[i], end));
	client_close(c);
	return code;
}

const struct command cmd_wait = {
	.name = "wait",
	.args = "S-id...",
	.min_args = 1,
	.max_args = -1,
	.summary = "wait until runs have ended",
	.opts = opts,
	.nopts = ARRAY_LEN(opts),
	.values = &o,
	.run = wait_run,
};
