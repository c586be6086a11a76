/* ava proposals: quoted runs that wait for a yes; with -a answered ones too.
 *
 * The daemon keeps them; those that were answered are known until it stops.
 * Fails only when there is no daemon to ask or no memory. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "codec/json.h"
#include "codec/utf8.h"

static struct {
	bool all, json;
} o;

static const struct opt opts[] = {
	OPT("all", 'a', FLAG, NULL, all, "answered and expired ones too"),
	OPT("json", 0, FLAG, NULL, json, "as a JSON array"),
};

#define TASK_CHARS 300

/* "540s" until it expires, "" when it has been answered. */
static struct format time_left(const json_t *p)
{
	const char *at = json_str(p, "expires_at");
	int64_t ms = clock_parse_iso(at, strlen(at)) - clock_wall_ms();

	if (strcmp(json_str(p, "state"), "pending") != 0)
		return (struct format){""};
	return format_seconds(MAX(ms, 0));
}

/* Of a group: how many, and the first of its tasks. */
static void task_of(const json_t *p, char *out, size_t size)
{
	const json_t *config = json_object_get(p, "config");
	const json_t *members = json_object_get(config, "members");
	const char *task = json_str(members ? json_array_get(members, 0) : config, "task");
	int len = (int)utf8_prefix(task, strlen(task), TASK_CHARS);

	if (members)
		snprintf(out, size, "%zu runs: %.*s", json_array_size(members), len, task);
	else
		snprintf(out, size, "%.*s", len, task);
}

static void add_row(struct table *t, const json_t *p)
{
	const json_t *quote = json_object_get(p, "quote");
	char task[TASK_CHARS * 4 + 32];

	task_of(p, task, sizeof(task));
	table_add(t, json_str(p, "proposal_id"));
	table_add(t, json_str(p, "state"));
	table_add(t, time_left(p).text);
	table_add(t, json_str(p, "subagent_id"));
	table_add(t, format_role(json_str(quote, "role")).text);
	table_add(t, format_money(json_get_fixed(quote, "costCents", 4, -1)).text);
	table_add(t, task);
}

static int proposals_run(int argc, char **argv)
{
	static const char *const titles[] = {"ID", "STATE", "LEFT", "RUN", "ROLE", "UP TO", "TASK"};
	const struct listing listing = {
		.key = "proposals",
		.none = o.all ? "There are no proposals." : "No proposal waits for an answer.",
		.titles = titles,
		.columns = ARRAY_LEN(titles),
		.spare = 1u << 2 | 1u << 3 | 1u << 4 | 1u << 5, /* all but id, state and task */
		.add_row = add_row,
	};

	return listing_show(&listing, o.all ? "/proposals?all=1" : "/proposals", o.json);
}

const struct command cmd_proposals = {
	.name = "proposals",
	.args = "",
	.summary = "list quotes that wait for a yes or no",
	OPTIONS(opts),
	.run = proposals_run,
};
