/* ava schedule: standing orders (doc/ORDERS.md): add, list, show, pause, unpause, run, rm.
 *
 * `add` quotes an order with the options of `ava run` and asks, as that command does. What can
 * fail: words that name no time (told here, before the daemon is asked), and what the daemon says.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/calendar.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "cli/task.h"
#include "cli/term.h"
#include "codec/json.h"

#define ORDER_MAX 4096

static struct {
	struct task_options task;
	bool yes, json;
	const char *every, *at, *zone, *until, *overlap, *missed;
	int64_t day, month, count;
} o;

static const char *const overlap_words[] = {"skip", "queue", NULL};
static const char *const missed_words[] = {"once", "skip", "all", NULL};

static const struct opt schedule_opts[] = {
	OPT("every", 0, STR, "TIME", every, "in place of WHEN: every 2h, 90m, 1d"),
	OPT("at", 0, STR, "TIME", at,
	    "in place of WHEN, once: 18:00, 'Fri 8:00', '2026-12-01 08:00'"),
	OPT("zone", 0, STR, "ZONE", zone,
	    "the zone of its times: Europe/Berlin; without it: this machine's"),
	OPT("day-cents", 0, CENTS, "CENTS", day, "what its runs may cost in a day"),
	OPT("month-cents", 0, CENTS, "CENTS", month, "what its runs may cost in a month"),
	OPT("until", 0, STR, "TIME", until,
	    "no run is due after it: 2027-01-01, '2027-01-01 18:00'"),
	OPT("count", 0, COUNT, "N", count, "so many runs, and no more"),
	OPT("overlap", 0, STR, "WORD", overlap,
	    "while its last run is at work: skip (the next is left out), queue (it waits)",
	    .words = overlap_words),
	OPT("missed", 0, STR, "WORD", missed,
	    "times that passed while nothing ran: once (one run for all), skip, all (ten at most)",
	    .words = missed_words),
	SPAWN_FLAGS(OPTION) /* the options of base/spawn_options.h */
	OPT("file", 'F', LIST, "FILE", task.files,
	    "put this file into the context (may be repeated)"),
	OPT("no-files", 0, FLAG, NULL, task.no_files, "its runs see no folder"),
	OPT("yes", 'y', FLAG, NULL, yes, "confirm without asking"),
	OPT("json", 0, FLAG, NULL, json, "the daemon's objects"),
};

/* ---- add */

/* `until` as the API takes it. */
static int schedule_until(const char *text, const char *zone, char out[CLOCK_ISO_LEN + 1],
			  struct ava_error *err)
{
	struct calendar *c = NULL;
	int64_t now = clock_wall_ms();
	char when[CALENDAR_TEXT + 1];
	int rv;

	snprintf(when, sizeof(when), "at %s%s", text,
		 strchr(text, ':') || text[0] == '+' ? "" : " 00:00");
	rv = calendar_parse(when, zone ? zone : "", now, &c, err);
	if (rv != 0)
		return err_wrap(err, rv, "--until");
	clock_iso(calendar_next(c, now), out);
	calendar_free(c);
	return 0;
}

/* The plan, checked as the daemon will, so that a mistake is told at once. */
static int schedule_plan(struct buf *out, const char *when, struct ava_error *err)
{
	struct calendar *c = NULL;
	char until[CLOCK_ISO_LEN + 1];
	struct jw w;
	int rv = calendar_parse(when, o.zone ? o.zone : "", clock_wall_ms(), &c, err);

	if (rv == 0 && o.until)
		rv = schedule_until(o.until, o.zone, until, err);
	if (rv == 0) {
		jw_init(&w, out);
		jw_object(&w, NULL);
		jw_str(&w, "when", when);
		jw_str(&w, "zone", calendar_zone(c));
		if (o.day > 0)
			jw_fixed(&w, "day_cents", o.day, 4);
		if (o.month > 0)
			jw_fixed(&w, "month_cents", o.month, 4);
		if (o.until)
			jw_str(&w, "until", until);
		if (o.count > 0)
			jw_int(&w, "count", o.count);
		if (o.overlap)
			jw_str(&w, "overlap", o.overlap);
		if (o.missed)
			jw_str(&w, "missed", o.missed);
		jw_end(&w);
		rv = buf_check(out);
	}
	calendar_free(c);
	return rv;
}

static int schedule_add(int argc, char **argv)
{
	bool words = !o.every && !o.at;
	char when[CALENDAR_TEXT + 1];
	struct ava_error err = {0};
	struct buf plan;
	int code;

	if (o.every && o.at)
		return cli_error(CLI_USAGE, "--every and --at are two ways to say when: give one");
	if (o.day == AVA_FREE_ONLY || o.month == AVA_FREE_ONLY)
		return cli_error(CLI_USAGE,
				 "--day-cents and --month-cents are above 0; free models "
				 "only: --max-cost-cents 0");
	if (argc != (words ? 2 : 1))
		return cli_error(CLI_USAGE,
				 "ava schedule add WHEN TASK, or add --every 2h TASK; more "
				 "than one word goes between quotes");
	snprintf(when, sizeof(when), "%s%s",
		 o.every ? "every "
		 : o.at  ? "at "
			 : "",
		 o.every ? o.every
		 : o.at  ? o.at
			 : argv[0]);
	buf_init(&plan, ORDER_MAX);
	if (schedule_plan(&plan, when, &err) != 0) {
		code = cli_fail(&err);
	} else {
		o.task.order = plan.data;
		code = run_order(&o.task, argv[words ? 1 : 0], o.yes, o.json);
	}
	buf_fini(&plan);
	return code;
}

/* ---- the others */

static void schedule_next(const json_t *row, char *out, size_t size)
{
	int64_t at = json_time(json_array_get(json_object_get(row, "next"), 0));
	char soon[CLOCK_SOON] = "";

	if (at >= 0)
		clock_local_soon(at, clock_wall_ms(), soon);
	snprintf(out, size, "%s", soon);
}

static void schedule_what(const json_t *row, char *out, size_t size)
{
	const char *why = json_str(row, "why"), *machine = json_str(row, "machine");

	snprintf(out, size, "%s%s%s%s%s%s", json_str(row, "task"), *why ? " (" : "", why,
		 *why ? ")" : "", *machine ? ", on " : "", machine);
}

static int schedule_list(void)
{
	static const struct column columns[] = {
		{"ID", COLUMN_TEXT, "order_id"},
		{"STATE", COLUMN_TEXT, "state"},
		{"NEXT", COLUMN_OWN, .own = schedule_next},
		{"WHEN", COLUMN_TEXT, "when", .spare = true},
		{"UP TO", COLUMN_MOST, "max_cost_cents", .spare = true},
		{"LAST RUN", COLUMN_TEXT, "run", .spare = true},
		{"TASK", COLUMN_OWN, .own = schedule_what},
	};
	json_t *reply = NULL, *rows;
	int code = api_ask(&reply, NULL, "/orders");

	rows = json_object_get(reply, "orders");
	if (code == CLI_DONE && o.json)
		show_json(stdout, rows);
	else if (code == CLI_DONE && json_array_size(rows) == 0)
		puts("There are no standing orders (ava schedule add).");
	else if (code == CLI_DONE)
		code = show_table(columns, ARRAY_LEN(columns), rows);
	json_decref(reply);
	return code;
}

static int schedule_one(const char *what, const char *id)
{
	bool show = strcmp(what, "show") == 0;
	json_t *reply = NULL;
	int code = show ? api_ask(&reply, NULL, "/orders/%s", id)
			: api_ask(&reply, "{}", "/orders/%s/%s", id, what);

	if (code == CLI_DONE && o.json)
		show_json(stdout, reply);
	else if (code == CLI_DONE && show)
		show_order(stdout, reply);
	else if (code == CLI_DONE && strcmp(what, "run") == 0)
		term_print(stdout, "%s started %s.\n", id, json_str(reply, "subagent_id"));
	else if (code == CLI_DONE && strcmp(what, "rm") == 0)
		term_print(stdout, "%s is removed. Runs that it started go on.\n", id);
	else if (code == CLI_DONE && *json_str(reply, "ask"))
		term_print(stdout, "%s has changed: `ava asks %s`\n", id, json_str(reply, "ask"));
	else if (code == CLI_DONE && strcmp(json_str(reply, "state"), "asks") == 0)
		term_print(stdout, "%s has changed, and waits for your yes: `ava asks`\n", id);
	else if (code == CLI_DONE)
		term_print(stdout, "%s is %s.\n", id, json_str(reply, "state"));
	json_decref(reply);
	return code;
}

static int schedule_run(int argc, char **argv)
{
	static const char *const one[] = {"show", "pause", "unpause", "run", "rm"};
	const char *what = argc > 0 ? argv[0] : "list";
	int code = CLI_DONE;

	if (strcmp(what, "add") == 0)
		return schedule_add(argc - 1, argv + 1);
	if (strcmp(what, "list") == 0 && argc <= 1)
		return schedule_list();
	for (size_t i = 0; i < ARRAY_LEN(one); i++)
		if (strcmp(what, one[i]) == 0 && argc > 1) {
			for (int k = 1; k < argc && code == CLI_DONE; k++)
				code = schedule_one(what, argv[k]);
			return code;
		}
	return cli_error(CLI_USAGE, "`ava schedule` takes add WHEN TASK, list, and show, pause, "
				    "unpause, run or rm O-id");
}

const struct command cmd_schedule = COMMAND(
	"schedule", "[list] | add WHEN TASK | show|pause|unpause|run|rm O-id...", 0, -1,
	"standing orders: runs by the clock, confirmed once",
	"WHEN is cron's five fields, @daily, systemd's \"Mon 08:00\", \"every 2h\" or \"at "
	"18:00\".\n"
	"The quote says what each run may cost, a day and a month of them, when the order ends, "
	"and\n"
	"what becomes of times that were missed. It is answered as in ava run. When what its runs\n"
	"would do is no longer what was confirmed, nothing starts and you are asked anew.\n"
	"`run` starts one now. doc/ORDERS.md has the forms of WHEN.\n"
	"\n"
	"  ava schedule add '*/15 8-18 * * 1-5' 'look for errors in ci.log' --max-cost-cents 2\n"
	"  ava schedule add --every 2h 'count the open items in NOTES' --count 20\n"
	"  ava schedule pause O-5d09c41e\n",
	OPTIONS(schedule_opts), schedule_run);
