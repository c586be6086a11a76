/* ava events S-id: what a run has done so far; with -f also what it does from
 * now on, through the daemon, until it has ended.
 *
 * Without -f the run's file is read, which needs no daemon. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/logtext.h"
#include "cli/root.h"
#include "cli/term.h"
#include "codec/json.h"
#include "event/event.h"

static struct {
	bool follow, json;
} o;

static const struct opt opts[] = {
	OPT("follow", 'f', FLAG, NULL, follow, "until the run has ended"),
	OPT("json", 0, FLAG, NULL, json, "the events as they are stored, one a line"),
};

static int print_line(struct logtext *l, const char *line, size_t len, int64_t time_ms)
{
	struct ava_error err;

	if (o.json) {
		term_bytes(stdout, line, len);
		putchar('\n');
		return 0;
	}
	if (logtext_print(l, stdout, line, len, time_ms, &err) != 0)
		return cli_error(CLI_FAILED, "%s", err.text);
	return 0;
}

static int from_file(const char *run)
{
	char root[ROOT_PATH_MAX];
	struct ava_log_query q = {.root = root, .run = run};
	struct logtext text = {0};
	struct ava_log_event e;
	struct ava_log *log = NULL;
	struct ava_error err;
	int rv = root_prepare(root, &err), code = CLI_DONE;

	if (rv == 0)
		rv = ava_log_open(&log, &q, &err);
	while (rv == 0 && (rv = ava_log_next(log, &e, &err)) != 0) {
		if (rv == AVA_ECORRUPT)
			code = cli_error(CLI_FAILED, "%s", err.text);
		else if (rv == 1 && print_line(&text, e.line, e.len, e.time_ms) != 0)
			code = CLI_FAILED;
		if (rv == 1 || rv == AVA_ECORRUPT)
			rv = 0;
		else
			break;
	}
	ava_log_close(log);
	return rv == 0 ? code : cli_fail(&err);
}

static int on_event(const struct sse_event *e, void *user)
{
	struct event_view v;
	int rv = print_line(user, e->data, e->len,
			    event_view(e->data, e->len, &v) == 0 ? v.wall_ms : clock_wall_ms());

	return fflush(stdout) != 0 || rv != 0; /* nobody reads any more: stop */
}

static int from_daemon(const char *run)
{
	struct logtext text = {0};
	struct follow f = {.on_event = on_event, .user = &text};
	struct ava_error err;
	struct client *c;
	int rv = api_open(true, &c, &err);

	if (rv == 0)
		rv = api_follow(&c, run, &f, &err);
	client_close(c);
	return rv < 0 ? cli_fail(&err) : CLI_DONE;
}

static int events_run(int argc, char **argv)
{
	if (cli_check_run_id(argv[0]) != CLI_DONE)
		return CLI_USAGE;
	return o.follow ? from_daemon(argv[0]) : from_file(argv[0]);
}

const struct command cmd_events = {
	.name = "events",
	.args = "S-id",
	.min_args = 1,
	.max_args = 1,
	.summary = "print the events of a run",
	OPTIONS(opts),
	.run = events_run,
};
