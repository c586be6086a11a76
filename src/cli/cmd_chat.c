/* ava chat, which is also `ava` alone: talk with Ava.
 *
 * On a terminal lines are edited while updates and answers appear above them; over
 * a pipe each line is a message. The work is the daemon's: leaving ends nothing,
 * `-c` goes on with the conversation.
 *
 * What can fail: the daemon, a conversation that does not exist (5). Over a pipe
 * a turn of Ava's that failed makes the exit code 1. */
#include <ava.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"
#include "cli/chat.h"
#include "cli/chat_commands.h"
#include "cli/chat_show.h"
#include "cli/cli.h"
#include "cli/line.h"
#include "codec/json.h"

/* A conversation over a pipe.
 *
 * A turn is over when its end was seen behind our own message; when frames were
 * missed (the stream was not open yet), because the daemon says that Ava listens
 * and nothing waits, twice with a pause between.
 *
 * What can fail: the input (a line that is too long), the daemon for good. A
 * signal ends the program as any other; what runs goes on. */

#define LINE_MAX_BYTES ((size_t)1 << 20)
#define LOOK_MS        400 /* between two looks at the conversation */

static int chat_pipe_line(char **line, struct ava_error *err)
{
	size_t cap = 0;
	ssize_t n;

	*line = NULL;
	do {
		errno = 0;
		n = getline(line, &cap, stdin);
		if (n > (ssize_t)LINE_MAX_BYTES || n < 0)
			break;
		while (n > 0 && ((*line)[n - 1] == '\n' || (*line)[n - 1] == '\r'))
			(*line)[--n] = '\0';
	} while ((*line)[strspn(*line, " \t")] == '\0');
	if (n > 0 && n <= (ssize_t)LINE_MAX_BYTES)
		return 1;
	free(*line);
	*line = NULL;
	if (n > 0)
		return err_set(err, AVA_ETOOBIG, "a line of the input is over %zu bytes",
			       LINE_MAX_BYTES);
	return errno != 0 ? err_sys(err, "read the input") : 0;
}

/* Show what comes until `at_ms`; true as soon as something came. */
static bool wait_a_moment(struct chat *c, int64_t at_ms)
{
	struct pollfd p = {.fd = feed_fd(c->feed), .events = POLLIN};
	int64_t next = chat_next(c), end = next >= 0 && next < at_ms ? next : at_ms;

	int n = poll(&p, 1, (int)MAX(end - clock_mono_ms(), 0));

	chat_show(c);
	return n != 0;
}

/* What the daemon says: nothing goes on. 1, 0 or a code. */
static int is_quiet(struct chat *c, bool runs_too, struct ava_error *err)
{
	json_t *s = NULL;
	const char *status;
	int rv = chat_session(c, &s, err);

	if (rv == 0) {
		status = json_get_str(s, "status");
		rv = status != NULL && strcmp(status, "idle") == 0 &&
		     json_get_int(s, "waiting", 0) == 0 &&
		     (!runs_too || json_get_int(s, "live_runs", 0) == 0);
	}
	json_decref(s);
	return rv;
}

/* Until Ava has answered; with `runs_too` until nothing is left to wait for. */
static int wait_until_quiet(struct chat *c, bool runs_too, struct ava_error *err)
{
	unsigned quiet = 0;
	int rv;

	while (quiet < 2 && !c->gone) {
		if (c->turns > 0 && !c->busy && !runs_too && c->nheld == 0)
			return 0;
		if (wait_a_moment(c, clock_mono_ms() + LOOK_MS) || c->lost) {
			quiet = 0;
			continue;
		}
		rv = is_quiet(c, runs_too, err);
		if (rv < 0)
			return rv;
		quiet = rv == 1 ? quiet + 1 : 0;
	}
	c->busy = false;
	chat_show(c);
	return 0;
}

static int pipe_take(struct chat *c, const char *line, bool *leave, struct ava_error *err)
{
	int rv;

	switch (chat_command(c, line)) {
	case CHAT_LEAVES:
		*leave = true;
		return 0;
	case CHAT_DONE:
		fflush(stdout);
		return 0;
	case CHAT_SAYS:
		break;
	}
	rv = chat_say(c, line, err);
	return rv == 0 ? wait_until_quiet(c, false, err) : rv;
}

static int chat_pipe(struct chat *c, const char *first, struct ava_error *err)
{
	bool leave = false;
	char *line = NULL;
	int rv = pipe_take(c, first, &leave, err);

	while (rv == 0 && !leave && !c->gone) {
		int more = chat_pipe_line(&line, err);

		if (more != 1) {
			rv = more;
			break;
		}
		rv = pipe_take(c, line, &leave, err);
		free(line);
	}
	if (rv == 0 && !leave)
		rv = wait_until_quiet(c, true, err);
	return rv;
}

#define PROMPT "> "

static struct {
	const char *session, *model;
} o;

static const struct opt opts[] = {
	OPT("continue", 'c', STR, "SESSION", session,
	    "go on with a conversation; without its id: the newest of this folder",
	    .absent = "latest"),
	OPT("model", 'm', STR, "MODEL", model, "Ava's model, for a new conversation"),
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

/* Begun or found, with what happened in it so far; then its events come. */
static int begin(struct chat *c, struct ava_error *err)
{
	int rv = chat_open(c, o.session, o.model, err);

	if (rv == 0 && o.session != NULL)
		rv = chat_show_past(c, err);
	return rv == 0 ? chat_follow(c, err) : rv;
}

static int on_terminal(void)
{
	struct ava_error err = {0};
	struct line *l = NULL;
	struct chat c;
	int code, rv = begin(&c, &err);

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
	rv = begin(&c, &err);
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

const struct command cmd_chat =
	COMMAND("chat", "", 0, 0, "talk with Ava, who proposes subagents and tells what they found",
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
		OPTIONS(opts), chat_run);
