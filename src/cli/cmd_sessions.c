/* ava sessions: the conversations with Ava, the newest first. `ava -c ID` goes
 * on with one.
 *
 * Fails only when there is no daemon to ask or no memory. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "codec/json.h"

static struct {
	bool json;
	int64_t limit;
} o;

static const struct opt opts[] = {
	OPT("limit", 'n', COUNT, "N", limit, "at most N of them, the newest (1000)", .least = 1),
	OPT("json", 0, FLAG, NULL, json, "as a JSON array"),
};

static void add_row(struct table *t, const json_t *session)
{
	const char *updated = json_str(session, "updated_at");
	int64_t at = clock_parse_iso(updated, strlen(updated));
	char when[2 * FORMAT_LEN] = "", runs[24];

	if (at >= 0)
		snprintf(when, sizeof(when), "%s %.5s", format_date(at).text,
			 format_clock(at).text);
	snprintf(runs, sizeof(runs), "%" PRId64, json_get_int(session, "live_runs", 0));
	table_add(t, json_str(session, "session_id"));
	table_add(t, json_str(session, "status"));
	table_add(t, when);
	table_add(t, runs);
	table_add(t, format_money(json_get_fixed(session, "cost_cents", 4, -1)).text);
	table_add(t, json_str(session, "title"));
}

static int sessions_run(int argc, char **argv)
{
	static const char *const titles[] = {"ID", "STATUS", "LAST", "RUNS", "COST", "BEGAN WITH"};
	static const struct listing listing = {
		.key = "sessions",
		.none = "There is no conversation yet: `ava` begins one.",
		.titles = titles,
		.columns = ARRAY_LEN(titles),
		.spare = 1u << 1 | 1u << 2 | 1u << 3 | 1u << 4, /* all but id and title */
		.add_row = add_row,
	};
	char path[64];

	snprintf(path, sizeof(path), "/sessions?limit=%" PRId64,
		 o.limit != OPT_ABSENT ? o.limit : 1000);
	return listing_show(&listing, path, o.json);
}

const struct command cmd_sessions = {
	.name = "sessions",
	.args = "",
	.summary = "list conversations",
	OPTIONS(opts),
	.run = sessions_run,
};
