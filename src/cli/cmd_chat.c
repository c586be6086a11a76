/* ava chat, which is also `ava` alone: talk with Ava.
 *
 * On a terminal lines are edited while updates and answers appear above them; over
 * a pipe each line is a message. The work is the daemon's: leaving ends nothing,
 * `-c` goes on with the conversation.
 *
 * What can fail: the daemon, a conversation that does not exist (5). Over a pipe
 * a turn of Ava's that failed makes the exit code 1. */
#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/util.h"
#include "cli/chat.h"
#include "cli/chat_commands.h"
#include "cli/chat_pipe.h"
#include "cli/chat_show.h"
#include "cli/cli.h"
#include "cli/line.h"
#include "cli/term.h"

#define PROMPT "> "

static struct {
	const char *session, *model;
} o;

static const struct opt opts[] = {
	{.name = "continue",
	 .letter = 'c',
	 .type = OPT_STR,
	 .value = "SESSION",
	 .absent = "latest",
	 .field = offsetof(__typeof__(o), session),
	 .help = "go on with a conversation; without its id: the newest of this folder"},
	{.name = "model",
	 .letter = 'm',
	 .type = OPT_STR,
	 .value = "MODEL",
	 .field = offsetof(__typeof__(o), model),
	 .help = "Ava's model, for a new conversation"},
};

/* ---- what the line asks of the conversation */

static bool wants(void *user)
{
	return chat_wants(user);
}

/* The feed of a conversation may be made anew while it goes on. */
static int wake_fd(void *user)
{
	const struct chat *c = user;

	return feed_fd(c->feed);
}

static void show(void *user)
{
	chat_show(user);
}

static const char *tail(size_t *len, void *user)
{
	return chat_tail(user, len);
}

static int64_t next_ms(void *user)
{
	return chat_next(user);
}

/* Ctrl-C: Ava's turn ends, what runs goes on; when she listens, a hint. */
static void interrupt(void *user)
{
	struct chat *c = user;
	struct ava_error err = {0};

	if (!c->busy) {
		chat_note("Ctrl-D or /quit leaves; subagents go on. /cancel stops one.");
		return;
	}
	if (chat_stop(c, &err) != 0)
		chat_note("%s", err.text);
	else
		chat_note("Ava's answer is stopped; subagents go on.");
}

static size_t complete(const char *word, bool first, const char **out, size_t max, void *user)
{
	return chat_complete(user, word, first, out, max);
}

/* ---- on a terminal */

static void greet(const struct chat *c)
{
	if (c->said)
		return;
	chat_note("Ava (%s). /help lists commands, Ctrl-D leaves.", c->model);
}

static int take_line(struct chat *c, const char *text)
{
	struct ava_error err = {0};

	if (text[strspn(text, " \t\n")] == '\0')
		return 0;
	switch (chat_command(c, text)) {
	case CHAT_LEAVES:
		return 1;
	case CHAT_DONE:
		return 0;
	case CHAT_SAYS:
		break;
	}
	if (chat_say(c, text, &err) != 0)
		chat_note("This was not said: %s", err.text);
	return 0;
}

static int talk(struct chat *c, struct line *l)
{
	struct ava_error err = {0};
	const char *text;
	int rv = 1;

	greet(c);
	while (rv == 1) {
		rv = line_read(l, PROMPT, &text, &err);
		if (rv == 1 && take_line(c, text) != 0)
			return CLI_DONE;
		fflush(stdout);
	}
	return rv == 0 || rv == AVA_ECANCELED ? CLI_DONE : cli_fail(&err);
}

static int on_terminal(void)
{
	struct ava_error err = {0};
	struct line *l = NULL;
	struct chat c;
	int code, rv = chat_open(&c, o.session, o.model, &err);

	c.live = !line_is_plain();
	if (rv == 0) {
		const struct line_hooks hooks = {
			.wake_fd = wake_fd,
			.wants = wants,
			.show = show,
			.tail = tail,
			.next_ms = next_ms,
			.interrupt = interrupt,
			.complete = complete,
			.user = &c,
		};

		rv = line_open(&l, &hooks, &err);
	}
	code = rv == 0 ? talk(&c, l) : cli_fail(&err);
	line_close(l);
	chat_close(&c);
	return code;
}

/* ---- over a pipe */

static int on_pipe(void)
{
	struct ava_error err = {0};
	struct chat c;
	char *first = NULL;
	int code, rv = chat_pipe_line(&first, &err);

	if (rv == 0)
		return cli_error(CLI_USAGE, "nothing was said: each line of the input is a message "
					    "(see: ava help chat)");
	if (rv < 0)
		return cli_fail(&err);
	rv = chat_open(&c, o.session, o.model, &err);
	if (rv == 0)
		rv = chat_pipe(&c, first, &err);
	code = rv != 0 ? cli_fail(&err) : c.errors > 0 || c.gone ? CLI_FAILED : CLI_DONE;
	chat_close(&c);
	free(first);
	return code;
}

static int chat_run(int argc, char **argv)
{
	if (o.session != NULL && o.model != NULL)
		return cli_error(CLI_USAGE, "a conversation keeps its model: give --continue or "
					    "--model, not both");
	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO) ? on_terminal() : on_pipe();
}

const struct command cmd_chat = {
	.name = "chat",
	.args = "",
	.summary = "talk with Ava, who proposes subagents and tells what they found",
	.detail =
		"`ava` alone is the same. Ava answers while subagents work; what they do and find "
		"appears\n"
		"above the line you type. She proposes with a quote; your yes starts it. Ctrl-C "
		"stops her\n"
		"answer, Ctrl-D leaves; subagents go on. Commands begin with /, see /help.\n"
		"\n"
		"Without a terminal each line of the input is a message, and the end of the input "
		"waits for\n"
		"what is still at work: printf 'find the torn tail\\nyes\\n' | ava\n"
		"\n"
		"NO_COLOR leaves out styles; AVA_PLAIN=1 never moves the cursor (screen "
		"readers).\n",
	.opts = opts,
	.nopts = ARRAY_LEN(opts),
	.values = &o,
	.run = chat_run,
};
