/* ava: the command line. Finds the subcommand and runs it; alone it talks.
 *
 * Nothing else is done at start, no locale, no settings, so that a hook or a
 * prompt may call it often. */
#include <string.h>

#include "cli/cli.h"

int main(int argc, char **argv)
{
	const struct command *c;
	int used = 2;

	if (argc < 2)
		return command_main(&cmd_chat, 0, argv);
	if (strcmp(argv[1], "--version") == 0)
		return command_main(&cmd_version, 0, argv);
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		return command_main(&cmd_help, 0, argv);
	if (argv[1][0] == '-') /* options alone start a chat: `ava -c` */
		return command_main(&cmd_chat, argc - 1, argv + 1);
	c = command_find(argv[1], argv[2]);
	if (c == NULL)
		return CLI_USAGE;
	used += strchr(c->name, ' ') != NULL;
	return command_main(c, argc - used, argv + used);
}
