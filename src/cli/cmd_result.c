/* ava result S-id: the result of a run that has ended.
 *
 * The exit code is that of the run: 0 success, 3 a limit, 1 cancelled or
 * failed. A run that goes on has none yet: 1, and how to wait for it. */
#include <stdio.h>

#include "cli/api.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "codec/json.h"

static struct {
	bool json;
} o;

static const struct opt opts[] = {
	OPT("json", 0, FLAG, NULL, json, "as one JSON object"),
};

static int print_result(const char *id, const json_t *result)
{
	const char *status = json_get_str(result, "status");

	if (result == NULL)
		return cli_error(CLI_FAILED, "%s has not ended yet; wait for it: ava wait %s", id,
				 id);
	if (o.json) {
		show_json(stdout, result);
	} else {
		printf("%s %s\n\n", id, status != NULL ? status : "error");
		show_result(stdout, result);
	}
	return cli_exit_of_status(status != NULL ? status : "error");
}

static int result_run(int argc, char **argv)
{
	struct ava_error err;
	struct client *c;
	json_t *result = NULL;
	int rv, code;

	if (cli_check_run_id(argv[0]) != CLI_DONE)
		return CLI_USAGE;
	rv = api_open(true, &c, &err);
	if (rv == 0)
		rv = api_result(c, argv[0], 0, &result, &err);
	code = rv == 0 ? print_result(argv[0], result) : cli_fail(&err);
	json_decref(result);
	client_close(c);
	return code;
}

const struct command cmd_result = {
	.name = "result",
	.args = "S-id",
	.min_args = 1,
	.max_args = 1,
	.summary = "print the result of a run",
	.detail =
		"The exit code is that of the run: 0 success, 3 a limit, 1 cancelled or failed.\n",
	OPTIONS(opts),
	.run = result_run,
};
