/* ava replay S-id: execute a run again from its record, and say whether and
 * where the two part. The daemon does it: the machine of a run is there. No
 * network, no tool and no key is used.
 *
 * With --from N (or the name of a checkpoint): a fork there, which goes on live (cmd_run.c). Exit
 * 0: identical, as far as the record goes. 1: they differ. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "cli/api.h"
#include "cli/cli.h"
#include "cli/cmd_run.h"
#include "cli/show.h"
#include "cli/term.h"
#include "codec/json.h"

static struct {
	bool lenient, json, yes;
	const char *from, *model;
} o;

static const struct opt opts[] = {
	OPT("lenient", 0, FLAG, NULL, lenient,
	    "note where bytes differ and go on with the record's"),
	OPT("from", 0, STR, "N|NAME", from,
	    "replay up to the N-th call of its model, or a checkpoint, and fork there: a new "
	    "run, confirmed"),
	OPT("model", 'm', STR, "MODEL", model, "with --from: another model of the same kind"),
	OPT("yes", 'y', FLAG, NULL, yes, "with --from: confirm without asking"),
	OPT("json", 0, FLAG, NULL, json, "the report (with --from the result) as JSON"),
};

static void print_side(const char *name, const char *text)
{
	printf("    %s: ", name);
	term_cut(stdout, text, strlen(text), 0);
	putchar('\n');
}

static void print_difference(const json_t *d)
{
	int64_t byte = json_get_int(d, "byte", -1);
	const char *call = json_str(d, "call_id");

	if (json_get_int(d, "seq", 0) > 0) {
		printf("  event %" PRId64 " (", json_get_int(d, "seq", 0));
		term_str(stdout, json_str(d, "eventType"));
		if (call[0] != '\0') {
			putchar(' ');
			term_str(stdout, call);
		}
		printf(", lsn %" PRId64 "): ", json_get_int(d, "lsn", 0));
	} else {
		fputs("  behind the last event: ", stdout);
	}
	term_str(stdout, json_str(d, "what"));
	if (byte >= 0)
		printf(" differs at byte %" PRId64, byte);
	else
		fputs(" differs", stdout);
	putchar('\n');
	print_side("recorded", json_str(d, "recorded"));
	print_side("replayed", json_str(d, "replayed"));
}

static void print_report(const char *id, const json_t *report)
{
	const json_t *list = json_object_get(report, "differences");
	bool identical = json_get_bool(report, "identical", false);

	printf("%s %s: %" PRId64 " model calls, %" PRId64 " events\n", id,
	       identical ? "replays identically" : "does not replay identically",
	       json_get_int(report, "turns", 0), json_get_int(report, "events", 0));
	if (json_str(report, "reason")[0] != '\0') {
		fputs("  so far: ", stdout);
		term_str(stdout, json_str(report, "reason"));
		putchar('\n');
	}
	for (size_t i = 0; i < json_array_size(list); i++)
		print_difference(json_array_get(list, i));
}

static int replay(struct client *c, const char *id, json_t **report, struct ava_error *err)
{
	char path[96];

	snprintf(path, sizeof(path), "/runs/%s/replay", id);
	return api_call(c, "POST", path, o.lenient ? "{\"lenient\":true}" : "{}", report, NULL,
			err);
}

static int fork_there(const char *run)
{
	struct run_fork f = {.from = o.from, .model = o.model, .yes = o.yes, .json = o.json};

	if (o.lenient)
		return cli_error(CLI_USAGE, "--lenient does not go with --from");
	return cmd_run_fork(run, &f);
}

static int replay_main(int argc, char **argv)
{
	struct client *c = NULL;
	struct ava_error err;
	json_t *report = NULL;
	int rv, code;

	if (cli_check_run_id(argv[0]) != CLI_DONE)
		return CLI_USAGE;
	if (o.from != NULL)
		return fork_there(argv[0]);
	if (o.model != NULL || o.yes)
		return cli_error(CLI_USAGE, "--model and --yes go with --from");
	rv = api_open(true, &c, &err);
	if (rv == 0)
		rv = replay(c, argv[0], &report, &err);
	if (rv != 0) {
		code = cli_fail(&err);
	} else {
		if (o.json)
			show_json(stdout, report);
		else
			print_report(argv[0], report);
		code = json_get_bool(report, "identical", false) ? CLI_DONE : CLI_FAILED;
	}
	json_decref(report);
	client_close(c);
	return code;
}

const struct command cmd_replay = {
	.name = "replay",
	.args = "S-id",
	.min_args = 1,
	.max_args = 1,
	.summary = "execute a run again from its record, and say where the two part",
	.detail =
		"No network, no tool and no key is used, and nothing is written. It stops at the\n"
		"first difference, with the event and the byte. The exit code is 0 when there is\n"
		"none as far as the record goes, else 1.\n",
	OPTIONS(opts),
	.run = replay_main,
};
