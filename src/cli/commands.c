/* The table of subcommands, in the order in which help lists them.
 *
 * A new one is a file cmd_<name>.c with its row, declared in cli.h and named
 * here; help, dispatch and "did you mean" need nothing more. */
#include <string.h>

#include "cli/cli.h"
#include "cli/cmd_verify.h"

/* clang-format off */
const struct command *const commands[] = {
	&cmd_chat,
	&cmd_run,
	&cmd_ps,
	&cmd_status,
	&cmd_events,
	&cmd_wait,
	&cmd_result,
	&cmd_cancel,
	&cmd_steer,
	&cmd_resume,
	&cmd_proposals,
	&cmd_confirm,
	&cmd_reject,
	&cmd_logs,
	&cmd_trace,
	&cmd_replay,
	&cmd_sessions,
	&cmd_prune,
	&cmd_export,
	&cmd_serve,
	&cmd_doctor,
	&cmd_version,
	&cmd_help,
	NULL,
};
/* clang-format on */

const struct command *command_find(const char *name)
{
	for (size_t i = 0; commands[i] != NULL; i++)
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	return strncmp(name, "logs ", 5) == 0 ? logs_word(name + 5) : NULL;
}

const struct command *command_near(const char *name)
{
	const struct command *near = NULL;
	unsigned best = 3;

	for (size_t i = 0; commands[i] != NULL; i++) {
		unsigned d = opts_distance(name, commands[i]->name);

		if (d < best && d < strlen(commands[i]->name)) {
			best = d;
			near = commands[i];
		}
	}
	return near;
}
