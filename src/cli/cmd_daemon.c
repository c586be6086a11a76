/* Commands for the life of the daemon: ava stop, ava restart.
 *
 * stop: the daemon commits and leaves once no run is started, or at once with --now: then runs at
 * work go on at its next start. It has gone when nobody holds the lock of the data root; a zombie
 * does not hold it either. What can fail: the request; then the daemon goes on. When the command is
 * interrupted, the daemon leaves nevertheless.
 *
 * restart: stop, then a daemon with the keys and settings of this command. A daemon of `ava serve`
 * or of a service is refused: it has to be restarted there. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/settings.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "cli/term.h"
#include "codec/json.h"

static struct {
	bool now, json;
} o;

static const struct opt daemon_opts[] = {
	OPT("now", 0, FLAG, NULL, now, "at once; what is at work goes on at its next start"),
	OPT("json", 0, FLAG, NULL, json, "as one JSON object"),
};

/* Name the runs at work: "S-7f3a2b (CodeReviewer), Ava". */
static void stop_tell_work(void)
{
	json_t *runs = NULL, *talks = NULL, *one;
	struct buf names;
	size_t i;

	buf_init(&names, 512);
	if (api_request(NULL, &runs, NULL, "/runs?limit=10") == 0) {
		json_array_foreach(json_object_get(runs, "runs"), i, one)
			buf_addf(&names, "%s%s (%s)", names.len > 0 ? ", " : "",
				 json_str(one, "subagent_id"), json_str(one, "status"));
	}
	if (api_request(NULL, &talks, NULL, "/sessions?limit=100") == 0) {
		json_array_foreach(json_object_get(talks, "sessions"), i,
				   one) if (strcmp(json_str(one, "status"), "busy") == 0)
			buf_addf(&names, "%sAva (%s)", names.len > 0 ? ", " : "",
				 json_str(one, "doing"));
	}
	if (names.len > 0)
		cli_note("at work: %s; the daemon leaves when no run is started any more, with "
			 "--now at once, and they go on at its next start",
			 names.data);
	buf_fini(&names);
	json_decref(runs);
	json_decref(talks);
}

/* *pid 0: none was at work. `mine`: one that somebody else keeps stays. */
static int stop_daemon(bool mine, int64_t *pid, struct ava_error *err)
{
	json_t *health = NULL, *answer = NULL;
	char root[ROOT_PATH_MAX];
	int rv = settings_data_root(root, sizeof(root), err);

	*pid = 0;
	if (rv == 0)
		rv = api_open(API_LOOK, err);
	if (rv == AVA_ECONNECT || rv == AVA_ENOENT)
		return 0;
	if (rv == 0)
		rv = api_call("/health", NULL, &health, NULL, err);
	if (rv == 0 && mine && json_get_bool(health, "service", false))
		rv = err_set(err, AVA_EBUSY,
			     "the daemon is kept by `ava serve` or by a service: restart it there "
			     "(`systemctl --user restart ava`), or `ava stop` it");
	if (rv == 0 && !o.now)
		stop_tell_work();
	if (rv == 0)
		rv = api_call("/shutdown", o.now ? "{\"when\":\"now\"}" : "{\"when\":\"idle\"}",
			      &answer, NULL, err);
	if (rv == 0)
		*pid = json_get_int(health, "pid", 0);
	api_close();
	json_decref(health);
	json_decref(answer);
	return rv == 0 ? root_wait_gone(root, err) : rv;
}

static int stop_run(int argc, char **argv)
{
	struct ava_error err;
	int64_t pid;

	if (stop_daemon(false, &pid, &err) != 0)
		return cli_fail(&err);
	if (o.json)
		printf("{\"stopped\":%s,\"pid\":%" PRId64 "}\n", pid > 0 ? "true" : "false", pid);
	else if (pid > 0)
		printf("The daemon (process %" PRId64 ") has stopped.\n", pid);
	else
		puts("No daemon is at work.");
	return CLI_DONE;
}

static int daemon_restart_run(int argc, char **argv)
{
	json_t *health = NULL;
	struct ava_error err;
	int64_t before;
	int rv = stop_daemon(true, &before, &err);

	if (rv == 0)
		rv = api_open(API_START, &err);
	if (rv == 0)
		rv = api_request(NULL, &health, &err, "/health");
	if (rv == 0 && o.json)
		printf("{\"stopped\":%s,\"pid\":%" PRId64 ",\"version\":\"%s\"}\n",
		       before > 0 ? "true" : "false", json_get_int(health, "pid", 0),
		       json_str(health, "version"));
	else if (rv == 0)
		term_print(stdout, "The daemon is process %" PRId64 "; model %s.\n",
			   json_get_int(health, "pid", 0), json_str(health, "model"));
	json_decref(health);
	return rv == 0 ? CLI_DONE : cli_fail(&err);
}

const struct command cmd_stop =
	COMMAND("stop", "", 0, 0, "end the daemon",
		"It leaves once no run is started; with --now at once, and runs go on at its next\n"
		"start, which the next command is. That none is at work is no failure.\n",
		OPTIONS(daemon_opts), stop_run);
const struct command cmd_restart =
	COMMAND("restart", "", 0, 0, "start the daemon anew, with this command's keys and settings",
		"As `ava stop`, and then one that has the keys, addresses and settings of this\n"
		"environment. Conversations and runs go on.\n",
		OPTIONS(daemon_opts), daemon_restart_run);
