/* ava pause and ava unpause: runs stand still from the end of their turn on.
 *
 * All are told first. Then pause waits until what each was doing is done (its events say when),
 * unless told not to: a run that ends in that turn is no paused one, which is said (exit 1). Both
 * take ids, a group or all, as ava cancel does. A run that is paused already, is not paused or has
 * ended is named (exit 1), and the others are told all the same. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/words.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "cli/term.h"
#include "codec/json.h"

static struct {
	const char *until;
	int64_t timeout_ms;
	bool all, no_wait, json;
} o;

static const struct opt pause_opts[] = {
	OPT("until", 'u', STR, "TIME", until,
	    "go on by itself then: 2h, 18:40, tomorrow, \"2026-11-21 08:00\""),
	OPT("all", 'a', FLAG, NULL, all, "every live run"),
	OPT("timeout", 0, SECONDS, "S", timeout_ms, "wait at most so long until it is paused"),
	OPT("no-wait", 0, FLAG, NULL, no_wait, "do not wait until its turn has ended"),
	OPT("json", 0, FLAG, NULL, json, "what each has become as JSON, one a line"),
};

static const struct opt unpause_opts[] = {
	OPT("all", 'a', FLAG, NULL, all, "every paused run"),
	OPT("json", 0, FLAG, NULL, json, "what each has become as JSON, one a line"),
};

/* ---- which runs */

/* The runs that are meant, an array of ids; NULL: *code says why. */
static json_t *pause_ids(int argc, char **argv, const char *status, int *code)
{
	json_t *ids = json_array(), *reply = NULL, *run;
	size_t k;

	*code = CLI_DONE;
	for (int i = 0; i < (o.all ? 1 : argc) && *code == CLI_DONE; i++) {
		if (!o.all && argv[i][0] != 'G') {
			*code = cli_check_run_id(argv[i]);
			json_array_append_new(ids, json_string(argv[i]));
			continue;
		}
		*code = o.all ? api_ask(&reply, NULL, "/runs?status=%s&limit=1000", status)
			      : api_ask(&reply, NULL, "/groups/%s", argv[i]);
		json_array_foreach(json_object_get(reply, "runs"), k,
				   run) if (json_str(run, "ended_at")[0] == '\0')
			json_array_append_new(ids, json_string(json_str(run, "subagent_id")));
		json_decref(reply);
		reply = NULL;
	}
	if (*code == CLI_DONE && json_array_size(ids) == 0 && !o.json)
		puts(o.all ? "No such run is live." : "None of them is live.");
	if (*code == CLI_DONE)
		return ids;
	json_decref(ids);
	return NULL;
}

/* ---- what became of one */

static int pause_on_event(const struct sse_event *e, void *user)
{
	json_t *event = strcmp(e->event, "Waiting") == 0 ? json_parse(e->data, e->len, NULL) : NULL;
	const json_t *content = json_object_get(event, "content");
	/* "paused", or that somebody else lets it go on */
	bool over = strcmp(json_str(content, "kind"), "pause") == 0 &&
		    strcmp(json_str(content, "state"), "asked") != 0;

	json_decref(event);
	return over;
}

static int pause_show(json_t *run)
{
	const char *id = json_str(run, "subagent_id");
	bool ended = json_str(run, "ended_at")[0] != '\0';

	if (o.json)
		show_json(stdout, run);
	else if (!ended)
		term_print(stdout, "%s: %s\n", id,
			   json_get_bool(run, "pause", false)
				   ? json_str(run, "current_activity")
				   : words_status(json_str(run, "status")));
	return !ended ? CLI_DONE
		      : cli_error(CLI_FAILED, "%s ended in that turn: %s", id,
				  words_status(json_str(run, "status")));
}

/* Waits until the run stands still, or has ended. *run is renewed. */
static int pause_wait(json_t **run)
{
	struct follow f = {.run = json_str(*run, "subagent_id"), .on_event = pause_on_event};
	struct ava_error err = {0};
	json_t *now = NULL;
	int rv;

	f.until_ms = o.timeout_ms > 0 ? clock_mono_ms() + o.timeout_ms : 0;
	rv = api_follow(&f, &err);
	if (rv >= 0)
		rv = api_request(NULL, &now, &err, "/runs/%s", f.run);
	if (rv < 0)
		return cli_fail(&err);
	json_decref(*run);
	*run = now;
	return CLI_DONE;
}

static bool is_pausing(const json_t *run)
{
	return json_get_bool(run, "pause", false) && strcmp(json_str(run, "status"), "paused") != 0;
}

/* ---- the commands */

static int pause_all(const json_t *ids, const char *verb)
{
	json_t *runs = json_array(), *id, *run;
	int code = CLI_DONE, one;
	size_t i;

	json_array_foreach(ids, i, id)
	{
		struct ava_error err = {0};
		char path[64];
		int rv;

		snprintf(path, sizeof(path), "/runs/%.24s/%s", json_string_value(id), verb);
		rv = api_post(&run, &err, path, o.until ? "until" : NULL, o.until, NULL);
		if (rv == 0)
			json_array_append_new(runs, run);
		else
			code = cli_fail(&err);
	}
	json_array_foreach(runs, i, run)
	{
		json_incref(run);
		one = CLI_DONE;
		if (is_pausing(run) && !o.no_wait) {
			if (!o.json)
				pause_show(run);
			fflush(stdout);
			one = pause_wait(&run);
		}
		one = one != CLI_DONE ? one : pause_show(run);
		if (one == CLI_DONE && is_pausing(run) && !o.no_wait)
			one = cli_error(CLI_WAITED,
					"%s has not ended its turn yet; it still "
					"pauses then",
					json_str(run, "subagent_id"));
		code = one != CLI_DONE ? one : code;
		json_decref(run);
	}
	json_decref(runs);
	return code;
}

static int pause_command(int argc, char **argv, const char *verb, const char *status)
{
	int code;
	json_t *ids;

	if (argc == 1 && strcmp(argv[0], "all") == 0) {
		o.all = true;
		argc = 0;
	}
	if (o.all == (argc > 0))
		return cli_error(CLI_USAGE, o.all ? "give ids or --all, not both"
						  : "give it the ids of runs, or --all");
	ids = pause_ids(argc, argv, status, &code);
	if (ids)
		code = pause_all(ids, verb);
	json_decref(ids);
	return code;
}

static int pause_run(int argc, char **argv)
{
	return pause_command(argc, argv, "pause", "starting,queued,running,waiting,parked");
}

static int unpause_run(int argc, char **argv)
{
	return pause_command(argc, argv, "unpause", "live");
}

const struct command cmd_pause = COMMAND(
	"pause", "S-id...|G-id|all", 0, -1, "let runs stand still from the end of their turn on",
	"A call of the model and tools at work end first: nothing is lost and nothing is paid\n"
	"twice. Then the run has no slot and its clock stands still, also over a restart, until\n"
	"ava unpause or the time of --until. What it asks you can still be answered.\n"
	"\n"
	"  ava pause S-7f3a2b --until 18:40\n",
	OPTIONS(pause_opts), pause_run);
const struct command cmd_unpause =
	COMMAND("unpause", "S-id...|G-id|all", 0, -1, "let paused runs go on", NULL,
		OPTIONS(unpause_opts), unpause_run);
