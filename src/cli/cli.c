/* The table of commands, their exit codes and error lines; cli.h. Help is printed from the
 * rows that parse, so that the two cannot disagree.
 *
 * An error is one line on stderr that begins with the program and the command.
 * It may quote what a server or a file said, so control characters are made
 * visible. Nothing here fails: when stderr is gone there is nobody to tell. */
#include "cli/cli.h"

#include <errno.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/id.h"
#include "base/near.h"
#include "base/util.h"
#include "base/words.h"
#include "cli/term.h"
#include "codec/jsonrpc.h"

#define READ_PIECE 65536

static const struct command *const commands[] = {
#define X(name, ...) &cmd_##name,
	COMMANDS(X)
#undef X
};

static const char *current; /* name of the command that runs; NULL before it is known */

static void error_line(const char *fmt, va_list ap)
{
	char text[1024];

	vsnprintf(text, sizeof(text), fmt, ap);
	fflush(stdout); /* keeps the order of output and error */
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

static enum cli_exit cli_exit_of_code(int code)
{
	static const struct {
		int code;
		enum cli_exit exit;
	} exits[] = {{AVA_OK, CLI_DONE},           {AVA_EINVAL, CLI_USAGE},
		     {AVA_ETOOBIG, CLI_USAGE},     {AVA_EUNSUPPORTED, CLI_USAGE},
		     {AVA_EBUDGET, CLI_LIMIT},     {AVA_EREJECTED, CLI_REJECTED},
		     {AVA_EEXPIRED, CLI_REJECTED}, {AVA_ENOENT, CLI_NOSUCH},
		     {AVA_ETIMEOUT, CLI_WAITED}};

	for (size_t i = 0; i < ARRAY_LEN(exits); i++)
		if (exits[i].code == code)
			return exits[i].exit;
	return CLI_FAILED;
}

int cli_fail(const struct ava_error *err)
{
	return cli_error(cli_exit_of_code(err->code), "%s", err->text);
}

enum cli_exit cli_exit_of_status(const char *status)
{
	if (strcmp(status, "success") == 0)
		return CLI_DONE;
	if (words_limit(status))
		return CLI_LIMIT;
	return CLI_FAILED;
}

int cli_words(struct buf *out, size_t max, int n, char **words)
{
	buf_init(out, max);
	for (int i = 0; i < n; i++)
		buf_addf(out, "%s%s", i > 0 ? " " : "", words[i]);
	return buf_check(out) == 0 ? CLI_DONE : cli_error(CLI_USAGE, "the text is too long");
}

int cli_read(int fd, const char *name, struct buf *out, struct ava_error *err)
{
	char *to;
	ssize_t n = 1;
	int rv;

	while (n != 0 && (to = buf_reserve(out, READ_PIECE)) != NULL) {
		n = read(fd, to, READ_PIECE);
		if (n < 0 && errno != EINTR)
			return err_sys(err, "read %s", name);
		out->len += (size_t)MAX(n, 0);
		out->data[out->len] = '\0';
	}
	rv = buf_check(out);
	return rv == 0 ? 0 : err_set(err, rv, "%s does not fit into memory", name);
}

bool cli_lines(struct cli_lines *in)
{
	char data[65536];
	ssize_t n = read(STDIN_FILENO, data, sizeof(data));
	const char *at = data, *end = data + MAX(n, 0), *nl;

	if (n <= 0)
		return n < 0 && (errno == EINTR || errno == EAGAIN);
	for (; (nl = memchr(at, '\n', (size_t)(end - at))) != NULL; at = nl + 1) {
		in->too_long = rpc_line_add(&in->line, in->too_long, at, (size_t)(nl - at));
		in->take(in);
		buf_reset(&in->line);
		in->too_long = false;
	}
	in->too_long = rpc_line_add(&in->line, in->too_long, at, (size_t)(end - at));
	return true;
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

/* `code` if all output to stdout has arrived, else CLI_FAILED. */
static int cli_flush(int code)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return code;
	return cli_error(CLI_FAILED, "cannot write the output: %s", strerror(errno));
}

const struct command *command_find(const char *name, const char *more)
{
	const struct command *found = NULL;
	struct near near = near_start(name);
	const char *meant;
	char both[64];

	snprintf(both, sizeof(both), "%s %s", name, more != NULL ? more : "");
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		const char *known = commands[i]->name;

		if (strcmp(both, known) == 0 || (strcmp(name, known) == 0 && found == NULL))
			found = commands[i];
		near_word(&near, known, strlen(known));
	}
	snprintf(both, sizeof(both), "status %s", name);
	meant = id_is_run(name)             ? both
		: strcmp(name, "kill") == 0 ? "cancel"
		: strcmp(name, "list") == 0 ? "ps"
					    : near.best;
	if (found == NULL && meant != NULL)
		cli_error(CLI_USAGE, "there is no command \"%.60s\"; did you mean \"%s\"?", name,
			  meant);
	else if (found == NULL)
		cli_error(CLI_USAGE, "there is no command \"%.60s\"; `ava help` lists them", name);
	return found;
}

static int usage_words(const struct command *c, int n)
{
	if (n < c->min_args)
		return cli_error(CLI_USAGE, "something is missing; the form is: ava %s %s", c->name,
				 c->args);
	if (c->max_args == 0)
		return cli_error(CLI_USAGE, "takes no arguments; see: ava help %s", c->name);
	return cli_error(
		CLI_USAGE,
		"takes at most %d argument%s (quote a text of several words); see: ava help %s",
		c->max_args, c->max_args == 1 ? "" : "s", c->name);
}

/* Check ids by the names of a command's arguments: "S-id", "[S-id]", "S-id...", "P-id". */
static int cli_check_ids(const struct command *c, int n, char **words)
{
	const char *args = c->args + (c->args[0] == '[');
	bool run = strncmp(args, "S-id", 4) == 0, proposal = strncmp(args, "P-id", 4) == 0;

	if (strchr(args, '|') != NULL)
		return CLI_DONE; /* the word may be something else than an id */
	for (int i = 0; i < n && (i == 0 || strstr(args, "...") != NULL); i++) {
		if (run && cli_check_run_id(words[i]) != CLI_DONE)
			return CLI_USAGE;
		if (proposal && !id_is_proposal(words[i]))
			return cli_error(CLI_USAGE,
					 "\"%.60s\" is not the id of a proposal: those look like "
					 "P-19c0de (`ava "
					 "proposals` lists them)",
					 words[i]);
	}
	return CLI_DONE;
}

int command_main(const struct command *c, int argc, char **argv)
{
	struct ava_error err;
	const char *before = current;
	bool help;
	int n;

	current = c->name;
	n = opts_parse(c->opts, c->nopts, c->values, argc, argv, &help, &err);
	if (n < 0) {
		n = cli_fail(&err);
		return c->always_done ? CLI_DONE : n;
	}
	if (help) {
		char *words[] = {(char *)c->name, NULL};

		return cli_flush(cmd_help.run(1, words));
	}
	if (n < c->min_args || (c->max_args >= 0 && n > c->max_args))
		return usage_words(c, n);
	n = cli_flush(cli_check_ids(c, n, argv) == CLI_DONE ? c->run(n, argv) : CLI_USAGE);
	if (before != NULL) /* a command of a conversation */
		current = before;
	return n;
}

/* ---- help and version */

static struct {
	bool json;
} o;

static const struct opt json_opts[] = {
	OPT("json", 0, FLAG, NULL, json, "as JSON"),
};

#define HELP_COLUMN 31 /* where an option's explanation begins, in each of its rows */

static const char about[] =
	"Background subagents under hard limits, every step on record. Alone it "
	"talks: chat.";
static const char exit_codes[] =
	"Exit codes: 0 done, 1 failed, 2 wrong usage,\n3 a limit was reached, 4 rejected or "
	"expired, 5 no such thing, 124 a wait ran out.";

static void list_commands(void)
{
	printf("usage: ava [COMMAND [ARGUMENT...]]\n\n%s\n\n", about);
	for (size_t i = 0; i < ARRAY_LEN(commands); i++)
		if (strchr(commands[i]->name, ' ') == NULL)
			printf("  %-10s %s\n", commands[i]->name, commands[i]->summary);
	printf("\n`ava help COMMAND` tells more. %s\n", exit_codes);
}

/* The rows as they parse, subcommands too; `only` NULL: all of them. The man pages are made of it.
 */
static void help_json(const struct command *only)
{
	json_t *list = json_array(),
	       *all = json_pack("{s:s,s:s,s:s,s:O}", "version", ava_version(), "about", about,
				"exit_codes", exit_codes, "commands", list);

	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		const struct command *c = commands[i];
		json_t *opts = json_array();

		for (size_t k = 0; k < c->nopts; k++)
			json_array_append_new(
				opts,
				json_pack("{s:s,s:s#,s:b,s:s?,s:s}", "name", c->opts[k].name,
					  "letter", &c->opts[k].letter, c->opts[k].letter != 0,
					  "switch", c->opts[k].type == OPT_SWITCH, "value",
					  c->opts[k].value, "help", c->opts[k].help));
		if (only == NULL || only == c)
			json_array_append_new(list,
					      json_pack("{s:s,s:s,s:s,s:s?,s:O}", "name", c->name,
							"args", c->args, "summary", c->summary,
							"detail", c->detail, "options", opts));
		json_decref(opts);
	}
	json_dumpf(all, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(all);
	json_decref(list);
}

static int help_run(int argc, char **argv)
{
	const struct command *c = NULL;

	if (argc > 0 && (c = command_find(argv[0], argc > 1 ? argv[1] : NULL)) == NULL)
		return CLI_USAGE;
	if (argc > 1 && strchr(c->name, ' ') == NULL)
		return cli_error(CLI_USAGE, "there is no command \"%.60s %.60s\"; see: ava help %s",
				 argv[0], argv[1], argv[0]);
	if (o.json)
		help_json(c);
	else if (c == NULL)
		list_commands();
	if (o.json || c == NULL)
		return CLI_DONE;
	printf("usage: ava %s%s%s%s\n\n%c%s.\n", c->name, c->nopts > 0 ? " [OPTION...]" : "",
	       c->args[0] != '\0' ? " " : "", c->args, c->summary[0] - 'a' + 'A', c->summary + 1);
	for (size_t i = 0; i < c->nopts; i++) {
		const struct opt *row = &c->opts[i];
		char left[64], letter[] = {'-', row->letter, ',', '\0'};

		snprintf(left, sizeof(left), "%3s --%s%s%s%s", row->letter != 0 ? letter : "",
			 row->type == OPT_SWITCH ? "[no-]" : "", row->name,
			 row->value != NULL ? " " : "", row->value != NULL ? row->value : "");
		printf("%s  %-28s ", i == 0 ? "\n" : "", left);
		term_wrapped_line(stdout, row->help, strlen(row->help), HELP_COLUMN, HELP_COLUMN);
		putchar('\n');
	}
	if (c->detail != NULL)
		putchar('\n');
	if (c->detail != NULL)
		term_wrapped(stdout, c->detail, strlen(c->detail));
	return CLI_DONE;
}

/* Asks no daemon and opens no file, so that it also measures what starting costs. */
static int version_run(int argc, char **argv)
{
	printf(o.json ? "{\"version\":\"%s\"}\n" : "ava %s\n", ava_version());
	return CLI_DONE;
}

const struct command cmd_version =
	COMMAND("version", "", 0, 0, "print the version", NULL, OPTIONS(json_opts), version_run);
const struct command cmd_help =
	COMMAND("help", "[COMMAND]", 0, 2, "list the commands, or explain one", NULL,
		OPTIONS(json_opts), help_run);
