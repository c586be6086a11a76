/* ava cancel S-id...|--all: stop runs for good.
 *
 * Answered when the ends of all are on disk, with what each was doing and
 * whether anything of it is left. Asked again it does no harm, so it is, when
 * the connection breaks. A run that had ended keeps its status, and cancelling
 * it is no error; one that is not known is (exit 5). --all asks first on a
 * terminal; anything but a yes cancels nothing (exit 4). */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/error.h"
#include "base/id.h"
#include "base/util.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/overview.h"
#include "cli/show.h"
#include "cli/task.h"
#include "cli/term.h"
#include "codec/json.h"

#define ASK_SHOWN 10 /* runs named in the question */

static struct {
	bool all, yes, json;
} o;

static const struct opt opts[] = {
	OPT("all", 'a', FLAG, NULL, all, "every live run"),
	OPT("yes", 'y', FLAG, NULL, yes, "--all: do not ask"),
	OPT("json", 0, FLAG, NULL, json, "what each has become as JSON, one a line"),
};

/* ---- what became of them */

/* "stopped: a model call, read_file; nothing of it is left" */
static void print_proof(const json_t *one)
{
	const json_t *stopped = json_object_get(one, "stopped"), *name;
	const json_t *tools = json_object_get(stopped, "tools");
	int64_t left = json_get_int(one, "left", 0);
	const char *comma = "";
	size_t i;

	fputs(" (", stdout);
	if (!json_get_bool(stopped, "model_call", false) && json_array_size(tools) == 0)
		fputs("nothing was at work", stdout);
	else
		fputs("stopped: ", stdout);
	if (json_get_bool(stopped, "model_call", false)) {
		fputs("a model call", stdout);
		comma = ", ";
	}
	json_array_foreach(tools, i, name)
	{
		fputs(comma, stdout);
		term_str(stdout, json_is_string(name) ? json_string_value(name) : "?");
		comma = ", ";
	}
	if (left > 0)
		printf("; %" PRId64 " of it wind%s up", left, left == 1 ? "s" : "");
	else if (comma[0] != '\0')
		fputs("; nothing of it is left", stdout);
	puts(")");
}

static void print_one(json_t *one)
{
	json_t *run = json_object_get(one, "run");
	const char *id = json_str(run, "subagent_id");

	if (o.json) {
		json_incref(run); /* beside its status what was done to it */
		json_object_del(one, "run");
		json_object_update(run, one);
		show_json(stdout, run);
		json_decref(run);
	} else if (json_get_bool(one, "had_ended", false)) {
		printf("%s had ended: ", id);
		term_str(stdout, json_str(run, "status"));
		putchar('\n');
	} else {
		printf("%s ", id);
		term_str(stdout, json_str(run, "status"));
		print_proof(one);
	}
}

static int print_all(const json_t *reply)
{
	json_t *one;
	size_t i;
	int code = CLI_DONE;

	json_array_foreach(json_object_get(reply, "runs"), i, one)
	{
		if (json_object_get(one, "unknown") != NULL)
			code = cli_error(CLI_NOSUCH, "%s",
					 json_str(json_object_get(one, "error"), "message"));
		else
			print_one(one);
	}
	if (o.all && i == 0 && !o.json)
		puts("No run is live.");
	return code;
}

/* ---- --all asks */

static void print_question(const json_t *runs, int64_t n)
{
	const json_t *run;
	size_t i;

	json_array_foreach(runs, i, run)
	{
		char *words = overview_words(run, term_width(stderr));

		if (i == ASK_SHOWN)
			break;
		fprintf(stderr, "%s ", json_str(run, "subagent_id"));
		if (words != NULL)
			term_cut(stderr, words, strlen(words), MAX(term_width(stderr), 20) - 10);
		fputc('\n', stderr);
		free(words);
	}
	if (n > ASK_SHOWN)
		fprintf(stderr, "and %" PRId64 " more\n", n - ASK_SHOWN);
	fprintf(stderr, "Cancel %s? [Yes/No] ", n == 1 ? "this run" : "all of them");
	fflush(stderr);
}

/* CLI_DONE: yes, or nobody has to be asked. */
static int ask(struct client *c)
{
	json_t *health = NULL, *runs = NULL;
	struct ava_error err;
	char answer[4096];
	int64_t n = 0;
	int rv;

	if (o.yes || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return CLI_DONE;
	rv = api_get(c, &health, &err, "/health");
	if (rv == 0)
		rv = api_get(c, &runs, &err, "/runs?limit=%d", ASK_SHOWN);
	n = json_get_int(json_object_get(health, "runs"), "running", 0);
	if (rv == 0 && n > 0) {
		print_question(json_object_get(runs, "runs"), n);
		rv = task_answer(STDIN_FILENO, answer, &err);
		if (rv <= 0 || (strcasecmp(answer, "yes") != 0 && strcasecmp(answer, "y") != 0))
			rv = err_set(&err, AVA_EREJECTED, "no yes: nothing was cancelled");
		else
			rv = 0;
	}
	json_decref(health);
	json_decref(runs);
	return rv == 0 ? CLI_DONE : cli_fail(&err);
}

/* ---- */

/* "G-7f3a2b": as a proposal's with another letter. */
static bool is_group(const char *id)
{
	char proposal[24];

	return id[0] == 'G' &&
	       snprintf(proposal, sizeof(proposal), "P%s", id + 1) < (int)sizeof(proposal) &&
	       id_is_proposal(proposal);
}

/* Those of its runs that have begun; a chain goes no further. */
static int add_group(struct jw *w, struct client *c, const char *id, struct ava_error *err)
{
	json_t *group = NULL, *run;
	size_t i;
	int rv = api_get(c, &group, err, "/groups/%s", id);

	json_array_foreach(json_object_get(group, "runs"), i, run)
		jw_str(w, NULL, json_str(run, "subagent_id"));
	json_decref(group);
	return rv;
}

static int body_of(struct buf *b, struct client *c, int argc, char **argv, struct ava_error *err)
{
	struct jw w;
	int rv = 0;

	buf_init(b, 1u << 20);
	jw_init(&w, b);
	jw_object(&w, NULL);
	if (o.all) {
		jw_bool(&w, "all", true);
	} else {
		jw_array(&w, "ids");
		for (int i = 0; rv == 0 && i < argc; i++) {
			if (is_group(argv[i]))
				rv = add_group(&w, c, argv[i], err);
			else
				jw_str(&w, NULL, argv[i]);
		}
		jw_end(&w);
	}
	jw_end(&w);
	if (rv == 0 && buf_check(b) != 0)
		rv = err_set(err, buf_check(b),
			     "too many ids at once: cancel them in several commands");
	return rv;
}

static int cancel(struct client **c, int argc, char **argv)
{
	struct ava_error err;
	json_t *reply = NULL;
	struct buf body;
	int rv = body_of(&body, *c, argc, argv, &err), code;

	if (rv == 0)
		rv = api_insist(c, "/runs/cancel", body.data, &reply, &err);
	code = rv == 0 ? print_all(reply) : cli_fail(&err);
	json_decref(reply);
	buf_fini(&body);
	return code;
}

static int cancel_run(int argc, char **argv)
{
	struct ava_error err;
	struct client *c;
	int code;

	if (o.all == (argc > 0))
		return cli_error(CLI_USAGE, o.all ? "give ids or --all, not both"
						  : "give it the ids of runs, or --all");
	for (int i = 0; i < argc; i++)
		if (!is_group(argv[i]) && cli_check_run_id(argv[i]) != CLI_DONE)
			return CLI_USAGE;
	if (api_open(true, &c, &err) != 0)
		return cli_fail(&err);
	code = o.all ? ask(c) : CLI_DONE;
	if (code == CLI_DONE)
		code = cancel(&c, argc, argv);
	client_close(c);
	return code;
}

const struct command cmd_cancel = {
	.name = "cancel",
	.args = "S-id...|G-id|--all",
	.max_args = -1,
	.summary = "stop runs for good",
	OPTIONS(opts),
	.run = cancel_run,
};
