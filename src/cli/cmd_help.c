/* ava help [COMMAND]: the table of commands, or one of them with its options.
 *
 * All of it is printed from the rows that the commands export, so that help
 * and parser cannot disagree. An unknown name is answered with the nearest. */
#include <stdio.h>

#include "cli/cli.h"

static void list_commands(void)
{
	fputs("usage: ava [COMMAND [ARGUMENT...]]\n\n"
	      "Background subagents under hard limits, every step on record. Alone it talks: "
	      "chat.\n\n",
	      stdout);
	for (size_t i = 0; commands[i] != NULL; i++)
		printf("  %-10s %s\n", commands[i]->name, commands[i]->summary);
	fputs("\n`ava help COMMAND` tells more. Exit codes: 0 done, 1 failed, 2 wrong usage,\n"
	      "3 a limit was reached, 4 rejected or expired, 5 no such thing, 124 a wait ran "
	      "out.\n",
	      stdout);
}

static void option(const struct opt *o)
{
	char left[64];

	snprintf(left, sizeof(left), "%c%c%s --%s%s%s", o->letter != 0 ? '-' : ' ',
		 o->letter != 0 ? o->letter : ' ', o->letter != 0 ? "," : " ", o->name,
		 o->value != NULL ? " " : "", o->value != NULL ? o->value : "");
	printf("  %-28s %s\n", left, o->help);
}

static int describe(const struct command *c)
{
	printf("usage: ava %s%s%s%s\n\n%c%s.\n", c->name, c->nopts > 0 ? " [OPTION...]" : "",
	       c->args[0] != '\0' ? " " : "", c->args, c->summary[0] - 'a' + 'A', c->summary + 1);
	if (c->nopts > 0)
		fputs("\n", stdout);
	for (size_t i = 0; i < c->nopts; i++)
		option(&c->opts[i]);
	if (c->detail != NULL)
		printf("\n%s", c->detail);
	return CLI_DONE;
}

static int help_run(int argc, char **argv)
{
	const struct command *c, *near;

	if (argc == 0) {
		list_commands();
		return CLI_DONE;
	}
	c = command_find(argv[0]);
	if (c != NULL)
		return describe(c);
	near = command_near(argv[0]);
	if (near != NULL)
		return cli_error(CLI_USAGE, "there is no command \"%.60s\"; did you mean \"%s\"?",
				 argv[0], near->name);
	return cli_error(CLI_USAGE, "there is no command \"%.60s\"", argv[0]);
}

const struct command cmd_help = {
	.name = "help",
	.args = "[COMMAND]",
	.max_args = 1,
	.summary = "list the commands, or explain one",
	.run = help_run,
};
