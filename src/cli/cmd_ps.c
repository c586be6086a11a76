/* ava ps: the live runs, with -a those that ended too, the newest first.
 *
 * A table for people, fitted to the terminal; with --json the daemon's status
 * objects. Fails only when there is no daemon to ask or no memory. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "codec/json.h"

static struct {
	bool all, json;
	int64_t limit;
} o;

static const struct opt opts[] = {
	OPT("all", 'a', FLAG, NULL, all, "ended runs too"),
	OPT("limit", 'n', COUNT, "N", limit, "at most N of them, the newest (1000)", .least = 1),
	OPT("json", 0, FLAG, NULL, json, "as a JSON array"),
};

static void add_row(struct table *t, const json_t *run)
{
	const char *activity = json_str(run, "current_activity"),
		   *ended = json_str(run, "ended_at");

	table_add(t, json_str(run, "subagent_id"));
	table_add(t, format_role(json_str(run, "role")).text);
	table_add(t, json_str(run, "status"));
	table_add(t, format_seconds(json_get_fixed(run, "elapsed_seconds", 3, 0)).text);
	table_add(t, format_tokens(json_get_int(run, "tokens_used", 0)).text);
	table_add(t, format_money(json_get_fixed(run, "cost_cents", 4, -1)).text);
	table_add(t, ended[0] == '\0' && activity[0] != '\0' ? activity : json_str(run, "task"));
}

static int ps_run(int argc, char **argv)
{
	static const char *const titles[] = {"ID",     "ROLE", "STATUS",      "TIME",
					     "TOKENS", "COST", "DOING / TASK"};
	const struct listing listing = {
		.key = "runs",
		.none = o.all ? "There are no runs." : "No run is live; -a shows ended ones.",
		.titles = titles,
		.columns = ARRAY_LEN(titles),
		.spare = 1u << 1 | 1u << 3 | 1u << 4 | 1u << 5, /* all but id, status and task */
		.add_row = add_row,
	};
	char path[64];

	snprintf(path, sizeof(path), "/runs?limit=%" PRId64 "%s",
		 o.limit != OPT_ABSENT ? o.limit : 1000, o.all ? "&all=1" : "");
	return listing_show(&listing, path, o.json);
}

const struct command cmd_ps = {
	.name = "ps",
	.args = "",
	.summary = "list runs",
	OPTIONS(opts),
	.run = ps_run,
};
