/* ava status [S-id]: one run in full, or the overview: the daemon, its slots,
 * each live run on a line, what they have cost so far.
 *
 * Fails when there is no daemon to ask, or no such run (5). */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/format.h"
#include "cli/progress.h"
#include "cli/show.h"
#include "cli/term.h"
#include "codec/json.h"

static struct {
	bool json;
} o;

static const struct opt opts[] = {
	{.name = "json",
	 .type = OPT_FLAG,
	 .help = "as one JSON object",
	 .field = offsetof(__typeof__(o), json)},
};

static const char *str(const json_t *v, const char *key)
{
	const char *s = json_get_str(v, key);

	return s != NULL ? s : "";
}

static void line(const char *name, const char *text)
{
	if (text[0] == '\0')
		return;
	printf("%-10s ", name);
	term_cut(stdout, text, strlen(text), term_width(stdout) > 31 ? term_width(stdout) - 11 : 0);
	putchar('\n');
}

static void print_limits(const json_t *run)
{
	const json_t *limits = json_object_get(run, "limits");

	printf("%-10s %s of %s, %s of %s, %s of %s tokens, %" PRId64 " of %" PRId64 " iterations\n",
	       "used", format_seconds(json_get_fixed(run, "elapsed_seconds", 3, 0)).text,
	       format_seconds(json_get_fixed(limits, "timeout", 3, 0)).text,
	       format_money(json_get_fixed(run, "cost_cents", 4, -1)).text,
	       format_money(json_get_fixed(limits, "max_cost_cents", 4, -1)).text,
	       format_tokens(json_get_int(run, "tokens_used", 0)).text,
	       format_tokens(json_get_int(limits, "max_tokens", 0)).text,
	       json_get_int(run, "iteration", 0), json_get_int(limits, "max_iterations", 0));
}

static void print_one(const json_t *run)
{
	const json_t *tool = json_object_get(run, "last_tool_call");

	line("run", str(run, "subagent_id"));
	line("trace", str(run, "trace_id"));
	line("role", format_role(str(run, "role")).text);
	line("status", str(run, "status"));
	line("reason", str(run, "stop_reason"));
	line("task", str(run, "task"));
	line("doing", str(run, "current_activity"));
	line("last tool", str(tool, "name"));
	line("model", str(run, "model"));
	line("folder", str(run, "cwd"));
	line("started", str(run, "started_at"));
	line("ended", str(run, "ended_at"));
	print_limits(run);
}

static void print_runs(const json_t *runs)
{
	int64_t spent = 0;
	bool unknown = false;
	const json_t *run;
	size_t i;

	json_array_foreach(runs, i, run)
	{
		int64_t cost = json_get_fixed(run, "cost_cents", 4, -1);

		printf("  %-10s ", str(run, "subagent_id"));
		progress_status(stdout, run);
		spent += MAX(cost, 0);
		unknown |= cost < 0;
	}
	if (json_array_size(runs) > 0)
		printf("spent by live runs: %s%s\n", format_money(spent).text,
		       unknown ? " and what is not known" : "");
}

static void print_overview(const json_t *health, const json_t *runs)
{
	const json_t *slots = json_object_get(health, "slots");
	int64_t total = json_get_int(json_object_get(health, "runs"), "total", 0);

	printf("ava %s, up %s, model ", str(health, "version"),
	       format_seconds(json_get_fixed(health, "uptime_seconds", 3, 0)).text);
	term_str(stdout, str(health, "model"));
	if (str(health, "model_why")[0] != '\0') {
		fputs(" (", stdout);
		term_str(stdout, str(health, "model_why"));
		fputc(')', stdout);
	}
	putchar('\n');
	printf("%" PRId64 " of %" PRId64 " slots used, %" PRId64 " queued, %" PRId64 " %s in all\n",
	       json_get_int(slots, "used", 0), json_get_int(slots, "max", 0),
	       json_get_int(health, "queued", 0), total, total == 1 ? "run" : "runs");
	print_runs(runs);
}

static int overview(struct client *c)
{
	struct ava_error err;
	json_t *health = NULL, *runs = NULL, *both;
	int rv = api_get(c, &health, &err, "/health");

	if (rv == 0)
		rv = api_get(c, &runs, &err, "/runs?limit=1000");
	if (rv == 0 && o.json) {
		both = json_pack("{s:O,s:O}", "health", health, "runs",
				 json_object_get(runs, "runs"));
		show_json(stdout, both);
		json_decref(both);
	} else if (rv == 0) {
		print_overview(health, json_object_get(runs, "runs"));
	}
	json_decref(health);
	json_decref(runs);
	return rv == 0 ? CLI_DONE : cli_fail(&err);
}

static int one(struct client *c, const char *id)
{
	struct ava_error err;
	json_t *run = NULL;
	int rv = api_get(c, &run, &err, "/runs/%s", id);

	if (rv == 0 && o.json)
		show_json(stdout, run);
	else if (rv == 0)
		print_one(run);
	json_decref(run);
	return rv == 0 ? CLI_DONE : cli_fail(&err);
}

static int status_run(int argc, char **argv)
{
	struct ava_error err;
	struct client *c;
	int code;

	if (argc > 0 && cli_check_run_id(argv[0]) != CLI_DONE)
		return CLI_USAGE;
	if (api_open(true, &c, &err) != 0)
		return cli_fail(&err);
	code = argc > 0 ? one(c, argv[0]) : overview(c);
	client_close(c);
	return code;
}

const struct command cmd_status = {
	.name = "status",
	.args = "[S-id]",
	.max_args = 1,
	.summary = "show one run, or the daemon and all live runs",
	.opts = opts,
	.nopts = ARRAY_LEN(opts),
	.values = &o,
	.run = status_run,
};
