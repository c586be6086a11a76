/* ava serve: the daemon in the foreground (this program becomes avad), or with
 * --background started as commands start it.
 *
 * Fails when avad cannot be found or says why it does not serve. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/api.h"
#include "cli/cli.h"
#include "cli/root.h"
#include "client/start.h"
#include "codec/json.h"

static struct {
	bool background;
} o;

static const struct opt opts[] = {
	OPT("background", 'b', FLAG, NULL, background, "start it and return when it serves"),
};

static int background(void)
{
	struct ava_error err;
	struct client *c;
	json_t *health = NULL;
	int rv = api_open(true, &c, &err);

	if (rv == 0)
		rv = api_get(c, &health, &err, "/health");
	if (rv == 0)
		printf("avad %s serves, process %" PRId64 "\n",
		       json_get_str(health, "version") != NULL ? json_get_str(health, "version")
							       : "",
		       json_get_int(health, "pid", 0));
	json_decref(health);
	client_close(c);
	return rv == 0 ? CLI_DONE : cli_fail(&err);
}

static int serve_run(int argc, char **argv)
{
	char avad[ROOT_PATH_MAX];
	struct ava_error err;
	/* Whoever starts it by hand does not want it to leave for being idle. */
	char *args[] = {avad, "--service", "--verbose", NULL};

	if (o.background)
		return background();
	if (start_find(avad, sizeof(avad), &err) != 0)
		return cli_fail(&err);
	execv(avad, args);
	return cli_error(CLI_FAILED, "cannot run %s: %s", avad, strerror(errno));
}

const struct command cmd_serve = {
	.name = "serve",
	.args = "",
	.summary = "run the daemon in the foreground",
	.detail = "Commands start the daemon when they need it; it leaves after ten idle minutes.\n"
		  "In the foreground it stays until Ctrl-C and prints its log.\n",
	OPTIONS(opts),
	.run = serve_run,
};
