/* ava version: this program's version.
 *
 * Nothing else happens, no daemon is asked and no file is opened, so that it
 * also tells what starting costs. */
#include <stdio.h>

#include "cli/cli.h"

static struct {
	bool json;
} o;

static const struct opt opts[] = {
	OPT("json", 0, FLAG, NULL, json, "as JSON"),
};

static int version_run(int argc, char **argv)
{
	if (o.json)
		printf("{\"version\":\"%s\"}\n", ava_version());
	else
		printf("ava %s\n", ava_version());
	return CLI_DONE;
}

const struct command cmd_version = {
	.name = "version",
	.args = "",
	.summary = "print the version",
	OPTIONS(opts),
	.run = version_run,
};
