/* ava: the command line. Finds the subcommand and runs it; alone it talks.
 *
 * Nothing else is done at start, no locale, no settings, so that a hook or a
 * prompt may call it often. */
#include <stdio.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/cmd_verify.h"

static int unknown(const char *name)
{
	const struct command *near = command_near(name);

	if (near != NULL)
		return cli_error(CLI_USAGE, "there is no command \"%.60s\"; did you mean \"%s\"?",
				 name, near->name);
	return cli_error(CLI_USAGE, "there is no command \"%.60s\"; `ava help` lists them", name);
}

int main(int argc, char **argv)
{
	const struct command *c;

	if (argc < 2)
		return command_main(&cmd_chat, 0, argv);
	if (strcmp(argv[1], "--version") == 0)
		return command_main(&cmd_version, 0, argv);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return command_main(&cmd_help, 0, argv);
	if (argv[1][0] == '-') /* `ava -c` */
		return command_main(&cmd_chat, argc - 1, argv + 1);
	c = command_find(argv[1]);
	if (c == NULL)
		return unknown(argv[1]);
	if (c == &cmd_logs && argc > 2 && logs_word(argv[2]) != NULL)
		return command_main(logs_word(argv[2]), argc - 3, argv + 3);
	return command_main(c, argc - 2, argv + 2);
}
