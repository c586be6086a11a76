/* Exit codes and error lines of all commands; cli.h.
 *
 * An error is one line on stderr that begins with the program and the command.
 * It may quote what a server or a file said, so control characters are made
 * visible. Nothing here fails: when stderr is gone there is nobody to tell. */
#include "cli/cli.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/id.h"
#include "base/util.h"
#include "cli/term.h"

static const char *current; /* name of the command that runs; NULL before it is known */

static void error_line(const char *fmt, va_list ap)
{
	char text[1024];

	vsnprintf(text, sizeof(text), fmt, ap);
	fflush(stdout); /* in the order in which they were said */
	fputs("ava: ", stderr);
	if (current != NULL)
		fprintf(stderr, "%s: ", current);
	term_text(stderr, text, strlen(text), false);
	fputc('\n', stderr);
}

int cli_error(int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	error_line(fmt, ap);
	va_end(ap);
	return code;
}

void cli_note(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	error_line(fmt, ap);
	va_end(ap);
}

enum cli_exit cli_exit_of_code(int code)
{
	switch (code) {
	case AVA_OK:
		return CLI_DONE;
	case AVA_EINVAL:
	case AVA_ETOOBIG:
	case AVA_EUNSUPPORTED:
		return CLI_USAGE;
	case AVA_EBUDGET:
		return CLI_LIMIT;
	case AVA_EREJECTED:
	case AVA_EEXPIRED:
		return CLI_REJECTED;
	case AVA_ENOENT:
		return CLI_NOSUCH;
	case AVA_ETIMEOUT:
		return CLI_WAITED;
	default:
		return CLI_FAILED;
	}
}

int cli_fail(const struct ava_error *err)
{
	return cli_error(cli_exit_of_code(err->code), "%s", err->text);
}

enum cli_exit cli_exit_of_status(const char *status)
{
	static const char *const limits[] = {"timeout", "cost_exceeded", "tokens_exceeded",
					     "iterations_exceeded"};

	if (strcmp(status, "success") == 0)
		return CLI_DONE;
	for (size_t i = 0; i < ARRAY_LEN(limits); i++)
		if (strcmp(status, limits[i]) == 0)
			return CLI_LIMIT;
	return CLI_FAILED;
}

int cli_check_run_id(const char *id)
{
	if (id_is_run(id))
		return CLI_DONE;
	return cli_error(CLI_USAGE,
			 "\"%.60s\" is not the id of a run: those look like S-7f3a2b (`ava ps -a` "
			 "lists them)",
			 id);
}

int cli_check_proposal_id(const char *id)
{
	if (id_is_proposal(id))
		return CLI_DONE;
	return cli_error(CLI_USAGE,
			 "\"%.60s\" is not the id of a proposal: those look like P-19c0de (`ava "
			 "proposals` lists them)",
			 id);
}

int cli_flush(int code)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return code;
	return cli_error(CLI_FAILED, "cannot write the output: %s", strerror(errno));
}

static int usage_words(const struct command *c, int n)
{
	if (n < c->min_args)
		return cli_error(CLI_USAGE, "give it %s; the form is: ava %s %s", c->args, c->name,
				 c->args);
	if (c->max_args == 0)
		return cli_error(CLI_USAGE, "takes no arguments; see: ava help %s", c->name);
	return cli_error(
		CLI_USAGE,
		"takes at most %d argument%s (quote a text of several words); see: ava help %s",
		c->max_args, c->max_args == 1 ? "" : "s", c->name);
}

int command_main(const struct command *c, int argc, char **argv)
{
	struct ava_error err;
	const char *before = current;
	bool help;
	int n;

	current = c->name;
	n = opts_parse(c->opts, c->nopts, c->values, argc, argv, &help, &err);
	if (n < 0)
		return cli_fail(&err);
	if (help) {
		char *words[] = {(char *)c->name, NULL};

		return cli_flush(cmd_help.run(1, words));
	}
	if (n < c->min_args || (c->max_args >= 0 && n > c->max_args))
		return usage_words(c, n);
	n = cli_flush(c->run(n, argv));
	if (before != NULL) /* a command of a conversation */
		current = before;
	return n;
}
