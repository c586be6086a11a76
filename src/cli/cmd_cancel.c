/* ava cancel S-id...|--all: stop runs for good.
 *
 * Answered when their end is on disk. A run that had ended keeps its status,
 * and cancelling it is no error; one that is not known is (exit 5). */
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "cli/term.h"
#include "codec/json.h"

static struct {
	bool all, json;
} o;

static const struct opt opts[] = {
	{.name = "all",
	 .letter = 'a',
	 .type = OPT_FLAG,
	 .help = "every live run",
	 .field = offsetof(__typeof__(o), all)},
	{.name = "json",
	 .type = OPT_FLAG,
	 .help = "what each has become as JSON, one a line",
	 .field = offsetof(__typeof__(o), json)},
};

static void print_end(const char *id, const json_t *status)
{
	const char *word = json_get_str(status, "status");

	if (o.json) {
		show_json(stdout, status);
		return;
	}
	if (word != NULL && strcmp(word, "cancelled") != 0)
		printf("%s had ended: ", id);
	else
		printf("%s ", id);
	term_str(stdout, word != NULL ? word : "cancelled");
	putchar('\n');
}

static int cancel_one(struct client *c, const char *id)
{
	struct ava_error err;
	json_t *status = NULL;
	char path[64];
	int rv;

	snprintf(path, sizeof(path), "/runs/%s/cancel", id);
	rv = api_call(c, "POST", path, "{}", &status, NULL, &err);
	if (rv != 0)
		return cli_fail(&err);
	print_end(id, status);
	json_decref(status);
	return CLI_DONE;
}

static int cancel_all(struct client *c)
{
	struct ava_error err;
	json_t *reply = NULL;
	const json_t *run;
	size_t i;
	int code = CLI_DONE;

	if (api_get(c, &reply, &err, "/runs?limit=100000") != 0)
		return cli_fail(&err);
	json_array_foreach(json_object_get(reply, "runs"), i, run)
	{
		const char *id = json_get_str(run, "subagent_id");

		if (id != NULL && cancel_one(c, id) != CLI_DONE)
			code = CLI_FAILED;
	}
	if (i == 0 && !o.json)
		puts("No run is live.");
	json_decref(reply);
	return code;
}

static int cancel_run(int argc, char **argv)
{
	struct ava_error err;
	struct client *c;
	int code = CLI_DONE;

	if (o.all == (argc > 0))
		return cli_error(CLI_USAGE, o.all ? "give ids or --all, not both"
						  : "give it the ids of runs, or --all");
	for (int i = 0; i < argc; i++)
		if (cli_check_run_id(argv[i]) != CLI_DONE)
			return CLI_USAGE;
	if (api_open(true, &c, &err) != 0)
		return cli_fail(&err);
	if (o.all)
		code = cancel_all(c);
	for (int i = 0; i < argc; i++) {
		int one = cancel_one(c, argv[i]);

		code = one != CLI_DONE ? one : code;
	}
	client_close(c);
	return code;
}

const struct command cmd_cancel = {
	.name = "cancel",
	.args = "S-id...|--all",
	.max_args = -1,
	.summary = "stop runs for good",
	.opts = opts,
	.nopts = ARRAY_LEN(opts),
	.values = &o,
	.run = cancel_run,
};
