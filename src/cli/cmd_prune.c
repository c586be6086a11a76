/* ava prune: old runs and days go; catalog rows and sealed heads stay, so that
 * `ava logs verify` still holds. The work is that of `avad --prune`, on a root
 * that nobody serves: a daemon without work is asked to leave first. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/settings.h"
#include "base/util.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/helper.h"
#include "cli/show.h"
#include "codec/json.h"

#define REPORT_MAX (64u << 20)
#define LEAVE_MS   30000
#define DAY_S      INT64_C(86400)

static struct {
	const char *older;
	bool dry, json;
} o;

static const struct opt opts[] = {
	OPT("older-than", 0, STR, "TIME", older, "what ended longer ago than this: 90d, 12w, 48h"),
	OPT("dry-run", 0, FLAG, NULL, dry, "only say what would go"),
	OPT("json", 0, FLAG, NULL, json, "as one JSON object"),
};

/* "90d" in seconds; 0: it is no such time. */
static int64_t seconds_of(const char *text)
{
	static const struct {
		char unit;
		int64_t seconds;
	} units[] = {{'h', 3600}, {'d', DAY_S}, {'w', 7 * DAY_S}, {'y', 365 * DAY_S}};
	size_t digits = strspn(text, "0123456789");

	if (digits == 0 || digits > 6 || text[digits] == '\0' || text[digits + 1] != '\0')
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (text[digits] == units[i].unit)
			return strtoll(text, NULL, 10) * units[i].seconds;
	return 0;
}

/* A daemon that has nothing to do leaves when it is asked to. */
static int ask_to_leave(struct ava_error *err)
{
	const struct timespec pause = {.tv_nsec = 20000000};
	int64_t end = clock_mono_ms() + LEAVE_MS;
	json_t *health = NULL, *answer = NULL;
	struct client *c = NULL;
	pid_t pid;
	int rv = api_open(false, &c, err);

	if (rv == AVA_ECONNECT || rv == AVA_ENOENT)
		return 0;
	if (rv == 0)
		rv = api_get(c, &health, err, "/health");
	if (rv == 0 && json_get_int(health, "running", 0) + json_get_int(health, "queued", 0) > 0)
		rv = err_set(err, AVA_EBUSY,
			     "runs are at work: wait for them or cancel them (`ava ps`)");
	if (rv == 0)
		rv = api_call(c, "POST", "/shutdown", "{\"when\":\"idle\"}", &answer, NULL, err);
	pid = (pid_t)json_get_int(health, "pid", 0);
	json_decref(health);
	json_decref(answer);
	client_close(c);
	/* It ends after its last commit and seal. */
	while (rv == 0 && pid > 1 && kill(pid, 0) == 0 && clock_mono_ms() < end)
		nanosleep(&pause, NULL);
	return rv;
}

static void print_report(const json_t *r)
{
	size_t runs = json_array_size(json_object_get(r, "runs")),
	       days = json_array_size(json_object_get(r, "days"));

	printf("%s %zu run%s and %zu daily log%s: %" PRId64 " files, %" PRId64 " bytes\n",
	       json_get_bool(r, "dryRun", false) ? "would remove" : "removed", runs,
	       runs == 1 ? "" : "s", days, days == 1 ? "" : "s", json_get_int(r, "files", 0),
	       json_get_int(r, "bytes", 0));
}

static int prune_run(int argc, char **argv)
{
	const char *words[] = {"--prune", NULL, NULL, NULL};
	char seconds[24] = "retention";
	struct ava_error err;
	struct buf out;
	json_t *report = NULL;
	int rv;

	(void)argc;
	(void)argv;
	if (o.older && seconds_of(o.older) <= 0)
		return cli_error(
			CLI_USAGE,
			"\"%.40s\" is no time: give hours, days or weeks, as 48h, 90d, 12w",
			o.older);
	if (o.older)
		snprintf(seconds, sizeof(seconds), "%" PRId64, seconds_of(o.older));
	words[1] = seconds;
	words[2] = o.dry ? "--dry-run" : NULL;
	rv = ask_to_leave(&err);
	buf_init(&out, REPORT_MAX);
	if (rv == 0)
		rv = helper_run(words, &out, &err);
	if (rv == 0) {
		report = json_parse(out.data ? out.data : "", out.len, &err);
		rv = report ? 0 : AVA_EPROTO;
	}
	buf_fini(&out);
	if (rv != 0)
		return cli_fail(&err);
	if (o.json)
		show_json(stdout, report);
	else
		print_report(report);
	json_decref(report);
	return CLI_DONE;
}

const struct command cmd_prune = {
	.name = "prune",
	.args = "",
	.summary = "remove old runs and daily logs",
	.detail =
		"Whole runs that ended before then and the daily logs of the days before. The\n"
		"catalog's rows and what was sealed stay, so that `ava logs verify` still holds.\n"
		"Without --older-than, retention.days of config.yaml says how much stays.\n",
	OPTIONS(opts),
	.run = prune_run,
};
