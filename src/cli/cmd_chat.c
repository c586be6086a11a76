/* ava chat, which is also `ava` alone: talk with Ava.
 *
 * On a terminal lines are edited while updates and answers appear above them; over
 * a pipe each line is a message. The work is the daemon's: leaving ends nothing,
 * `-c` goes on with the conversation.
 *
 * What can fail: the daemon, a conversation that does not exist (5). Over a pipe
 * a turn of Ava's that failed makes the exit code 1. */
#include <ava.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/settings.h"
#include "base/util.h"
#include "base/words.h"
#include "cli/api.h"
#include "cli/chat.h"
#include "cli/cli.h"
#include "cli/line.h"
#include "cli/links.h"
#include "cli/show.h"
#include "cli/term.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "journal/count.h"

/* Commands of a conversation: lines that begin with "/". Each is a row with its function;
 * /help prints the rows. Only /quit ends the conversation: errors are told, and
 * output goes to stdout, in whole lines. */

enum chat_did {
	CHAT_SAYS,   /* no command: the line is for Ava */
	CHAT_DONE,   /* a command, carried out or refused in words */
	CHAT_LEAVES, /* the command was /quit */
};

#define LOG_LINES "20"
#define RUNS_MAX  50 /* rows of /runs at most */

static void chat_wrong(const struct ava_error *err)
{
	term_colour(stdout, TERM_RED);
	term_wrapped(stdout, err->text, strlen(err->text));
	term_colour(stdout, TERM_PLAIN);
	putchar('\n');
}

static bool wants_run(const char *word)
{
	if (!id_is_run(word))
		chat_note("Name a run, as S-7f3a2b; /runs lists those of this conversation.");
	return id_is_run(word);
}

/* ---- /status, /runs, /cost */

/* The runs of this conversation; 0, or -1 after telling the error. */
static int get_runs(struct chat *c, json_t **ours)
{
	struct ava_error err = {0};

	if (dialog_runs(&c->d, true, ours, &err) == 0)
		return 0;
	chat_wrong(&err);
	return -1;
}

static bool has_ended(const json_t *run)
{
	return json_str(run, "ended_at")[0] != '\0';
}

static void chat_show_one(struct chat *c, const char *id)
{
	struct ava_error err = {0};
	json_t *run = NULL;

	if (api_request(NULL, &run, &err, "/runs/%s", id) != 0) {
		chat_wrong(&err);
		return;
	}
	term_print(stdout, "%s (%s) ", id, json_str(run, "trace_id"));
	progress_status(stdout, run);
	term_cut(stdout, json_str(run, "task"), strlen(json_str(run, "task")), term_width(stdout));
	putchar('\n');
	json_decref(run);
}

/* "Quote 2 (P-19c0de): I'll spawn …", "S-7f3a2b:c3.1: Which parser?" */
static void cmd_chat_show_asks(struct chat *c)
{
	json_t *all = NULL;
	const json_t *ask;
	size_t i;

	(void)dialog_asks(&c->d, &all, NULL);
	json_array_foreach(all, i, ask)
	{
		const char *text = json_str(ask, "text"), *id = json_str(ask, "id");
		int64_t number = json_get_int(ask, "number", 0);
		char line[512];

		if (i == 0)
			puts(WORDS_WAITING);
		text += number > 1 && strncmp(text, "Quote ", 6) == 0 ? strcspn(text, ":") + 2 : 0;
		if (number > 0)
			snprintf(line, sizeof(line), WORDS_QUOTE_NUMBER((unsigned)number, id));
		else
			snprintf(line, sizeof(line), "%s: ", id);
		snprintf(line + strlen(line), sizeof(line) - strlen(line), "%.*s",
			 (int)MIN(strcspn(text, "\n"), utf8_prefix(text, strlen(text), 200)), text);
		term_cut(stdout, line, strlen(line), term_width(stdout));
		putchar('\n');
	}
	json_decref(all);
}

static void do_status(struct chat *c, const char *rest)
{
	char words[sizeof(c->d.id) + sizeof(c->d.model) + sizeof(c->doing) + 64];
	json_t *all;
	const json_t *run;
	size_t i, live = 0;

	if (rest[0] != '\0') {
		if (wants_run(rest))
			chat_show_one(c, rest);
		return;
	}
	if (get_runs(c, &all) != 0)
		return;
	(void)chat_look(c, NULL);
	snprintf(words, sizeof(words), "Conversation %s, model %s.\n%s", c->d.id, c->d.model,
		 c->doing[0] != '\0' ? c->doing : "Ava is listening.");
	term_wrapped(stdout, words, strlen(words));
	putchar('\n');
	json_array_foreach(all, i, run)
	{
		if (has_ended(run))
			continue;
		printf("%s ", json_str(run, "subagent_id"));
		progress_status(stdout, run);
		live++;
	}
	if (live == 0)
		puts(WORDS_NONE_AT_WORK);
	json_decref(all);
	cmd_chat_show_asks(c);
}

static void do_runs(struct chat *c, const char *rest)
{
	static const struct column columns[] = {
		{"ID", COLUMN_TEXT, "subagent_id"},
		{"STATUS", COLUMN_STATUS, "status"},
		{"ROLE", COLUMN_ROLE, "role", .spare = true},
		{"TIME", COLUMN_TIME, "elapsed_seconds", .spare = true},
		{"COST", COLUMN_COST, "cost_cents", .spare = true},
		{"TASK", COLUMN_TEXT, "task"},
	};
	json_t *all;

	if (get_runs(c, &all) != 0)
		return;
	while (json_array_size(all) > RUNS_MAX)
		json_array_remove(all, RUNS_MAX);
	if (json_array_size(all) == 0)
		puts(WORDS_NONE_HAS_RUN);
	else
		show_table(columns, ARRAY_LEN(columns), all);
	json_decref(all);
}

static void do_cost(struct chat *c, const char *rest)
{
	/* The logs count Ava's own calls; the daemon's sums begin anew at each start. */
	struct ava_log_query q = {.types = "InferEnd", .agent = "ava", .session = c->d.id};
	const struct count_watch nobody = {0};
	char root[ROOT_PATH_MAX];
	struct ava_error err = {0};
	struct count_row own = {0};
	struct count hers;
	json_t *all;
	const json_t *run;
	int64_t cost = 0, tokens = 0;
	size_t n, unknown = 0;

	q.root = root;
	if (settings_data_root(root, sizeof(root), &err) != 0 ||
	    count_events(&hers, &q, COUNT_ALL, &nobody, &err) != 0) {
		chat_wrong(&err);
		return;
	}
	if (hers.n > 0)
		own = hers.rows[0];
	if (get_runs(c, &all) == 0) {
		json_array_foreach(all, n, run)
		{
			int64_t one = json_get_fixed(run, "cost_cents", 4, -1);

			unknown += one < 0;
			cost += MAX(one, 0);
			tokens += json_get_int(run, "tokens_used", 0);
		}
		printf("Ava: %s, %s tokens.\n", format_money((int64_t)own.cost_microusd).text,
		       format_tokens((int64_t)(own.input_tokens + own.output_tokens)).text);
		printf("Subagents (%zu): %s, %s tokens.\n", n, format_money(cost).text,
		       format_tokens(tokens).text);
		if (unknown > 0)
			printf("The cost of %zu of them is not known.\n", unknown);
		if (own.uncosted > 0)
			printf("The cost of %" PRIu64 " calls of Ava's is not known.\n",
			       own.uncosted);
		json_decref(all);
	}
	count_fini(&hers);
}

/* /model: list the models this conversation can use, or go on with another. */
static void do_model(struct chat *c, const char *rest)
{
	struct ava_error err = {0};
	json_t *all = NULL;
	const json_t *m;
	size_t i;
	int rv = rest[0] != '\0' ? dialog_model(&c->d, rest, &err)
				 : api_request(NULL, &all, &err, "/models?session=%s", c->d.id);

	json_array_foreach(json_object_get(all, "models"), i, m)
		term_line(stdout, "%s", json_str(m, "id"));
	if (rv != 0)
		chat_wrong(&err);
	else
		term_line(stdout, "Ava goes on with %s.", c->d.model);
	json_decref(all);
}

/* ---- /cancel, /steer, /logs */

/* A run that was at work tells its end by its own last line: say nothing here. */
static void chat_cancel(struct chat *c, const char *id)
{
	const struct chat_run *run = chat_runs_find(&c->runs, id);
	bool live = run != NULL && run->live;
	struct ava_error err = {0};
	json_t *status = NULL;

	if (api_request("{}", &status, &err, "/runs/%s/cancel", id) != 0) {
		chat_wrong(&err);
		return;
	}
	if (!live)
		term_print(stdout, "%s: %s\n", id, words_status(json_str(status, "status")));
	json_decref(status);
}

static void cancel_all(struct chat *c)
{
	json_t *all;
	const json_t *run;
	size_t i, n = 0;

	if (get_runs(c, &all) != 0)
		return;
	json_array_foreach(all, i, run)
	{
		if (has_ended(run))
			continue;
		chat_cancel(c, json_str(run, "subagent_id"));
		n++;
	}
	if (n == 0)
		puts(WORDS_NONE_AT_WORK);
	json_decref(all);
}

static void chat_do_cancel(struct chat *c, const char *rest)
{
	if (strcmp(rest, "all") == 0 || strcmp(rest, "--all") == 0)
		cancel_all(c);
	else if (wants_run(rest))
		chat_cancel(c, rest);
}

/* The run says itself, by its Items, when it stands still and when it goes on. */
static void chat_pause(struct chat *c, const char *rest, const char *verb)
{
	struct ava_error err = {0};
	size_t n = strcspn(rest, " ");
	json_t *status = NULL;
	char id[32], path[64];

	snprintf(id, sizeof(id), "%.*s", (int)MIN(n, sizeof(id) - 1), rest);
	rest += n + strspn(rest + n, " ");
	if (!wants_run(id))
		return;
	snprintf(path, sizeof(path), "/runs/%s/%s", id, verb);
	if (api_post(&status, &err, path, *rest ? "until" : NULL, rest, NULL) != 0)
		chat_wrong(&err);
	json_decref(status);
}

static void do_pause(struct chat *c, const char *rest)
{
	chat_pause(c, rest, "pause");
}

static void do_unpause(struct chat *c, const char *rest)
{
	chat_pause(c, rest, "unpause");
}

static void do_steer(struct chat *c, const char *rest)
{
	struct ava_error err = {0};
	size_t n = strcspn(rest, " ");
	json_t *answer = NULL;
	char id[32];

	snprintf(id, sizeof(id), "%.*s", (int)MIN(n, sizeof(id) - 1), rest);
	rest += n + strspn(rest + n, " ");
	if (!wants_run(id))
		return;
	if (rest[0] == '\0') {
		chat_note("Say what it shall mind: /steer %s TEXT", id);
		return;
	}
	if (api_steer(id, NULL, rest, &answer, &err) != 0)
		chat_wrong(&err);
	else if (strcmp(json_str(answer, "outcome"), "answered") == 0)
		term_line(stdout, WORDS_HAS_ANSWER(id));
	else
		term_line(stdout, WORDS_READS_LATER(id));
	json_decref(answer);
}

static void do_logs(struct chat *c, const char *rest)
{
	char id[32];
	char *words[] = {id, "-n", LOG_LINES, NULL};
	json_t *all = NULL;

	snprintf(id, sizeof(id), "%s", rest);
	if (rest[0] == '\0') {
		if (get_runs(c, &all) != 0)
			return;
		/* the newest is the first */
		snprintf(id, sizeof(id), "%s", json_str(json_array_get(all, 0), "subagent_id"));
		json_decref(all);
	}
	if (id[0] == '\0')
		puts(WORDS_NONE_HAS_RUN);
	if (id[0] == '\0' || !wants_run(id))
		return;
	fflush(stdout);
	command_main(&cmd_logs, 3, words);
}

/* ---- the table */

static void do_help(struct chat *c, const char *rest);

#define HELP_COLUMNS 60 /* in fewer columns a command's explanation stands below it */

static const struct {
	const char *name, *args, *what;
	void (*run)(struct chat *c, const char *rest); /* NULL: /quit */
} rows[] = {
	{"/status", "[S-id]", "what is going on", do_status},
	{"/runs", "", "the subagents of this conversation", do_runs},
	{"/cancel", "S-id|all", "stop subagents for good", chat_do_cancel},
	{"/pause", "S-id [TIME]", "let one stand still, until a time", do_pause},
	{"/unpause", "S-id", "let it go on", do_unpause},
	{"/steer", "S-id TEXT", "tell one at work what to mind, or answer it", do_steer},
	{"/logs", "[S-id]", "the newest events of one, or of the newest", do_logs},
	{"/model", "[MODEL]", "which models there are, or go on with another one", do_model},
	{"/cost", "", "what this conversation has cost", do_cost},
	{"/help", "", "this list", do_help},
	{"/quit", "", "leave, as Ctrl-D; subagents go on", NULL},
};

static void do_help(struct chat *c, const char *rest)
{
	static const char more[] =
		"Anything else is for Ava. Ctrl-C stops her answer, not the subagents.\n";
	size_t width = term_width(stdout);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char left[32];

		snprintf(left, sizeof(left), "%s %s", rows[i].name, rows[i].args);
		if (width > 0 && width < HELP_COLUMNS)
			printf("%s\n  %s\n", left, rows[i].what);
		else
			printf("%-17s %s\n", left, rows[i].what);
	}
	term_wrapped(stdout, more, sizeof(more) - 1);
}

static enum chat_did chat_command(struct chat *c, const char *line)
{
	size_t n = strcspn(line, " \t\n");
	char rest[4096];

	if (strcmp(line, "quit") == 0 || strcmp(line, "exit") == 0)
		return CHAT_LEAVES;
	if (line[0] != '/' || !isalpha((unsigned char)line[1]) || memchr(line + 1, '/', n - 1))
		return CHAT_SAYS; /* a path is no command */
	snprintf(rest, sizeof(rest), "%s", line + n + strspn(line + n, " \t"));
	while (rest[0] != '\0' && isspace((unsigned char)rest[strlen(rest) - 1]))
		rest[strlen(rest) - 1] = '\0';
	if (strncmp(line, "/exit", MAX(n, (size_t)5)) == 0)
		return CHAT_LEAVES;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if (strncmp(rows[i].name, line, n) != 0 || rows[i].name[n] != '\0')
			continue;
		if (rows[i].run == NULL)
			return CHAT_LEAVES;
		rows[i].run(c, rest);
		return CHAT_DONE;
	}
	chat_note("There is no command %.*s; /help lists them.", (int)MIN(n, (size_t)40), line);
	return CHAT_DONE;
}

size_t chat_complete(struct chat *c, const char *word, bool first, const char **out, size_t max)
{
	size_t len = strlen(word), n = 0, named = MIN(c->nasks, (size_t)CHAT_ASKS_MAX);

	for (size_t i = 0; first && word[0] == '/' && i < ARRAY_LEN(rows) && n < max; i++)
		if (strncmp(rows[i].name, word, len) == 0)
			out[n++] = rows[i].name;
	for (size_t i = 0; len > 0 && i < c->runs.n && n < max; i++)
		if (strncmp(c->runs.run[i].id, word, len) == 0)
			out[n++] = c->runs.run[i].id;
	for (size_t i = 0; len > 0 && i < named && n < max; i++)
		if (c->asks[i][0] == 'P' && strncmp(c->asks[i], word, len) == 0)
			out[n++] = c->asks[i];
	return n;
}

/* A conversation over a pipe.
 *
 * A turn is over when its end was seen behind our own message; when frames were
 * missed (the stream was not open yet), because the daemon says that Ava listens
 * and nothing waits, twice with a pause between.
 *
 * What can fail: the input (a line that is too long), the daemon for good. A
 * signal ends the program as any other; what runs goes on. */

#define LINE_MAX_BYTES ((size_t)1 << 20)
#define LOOK_MS        400 /* pause between two looks at the conversation */
#define IDLE_MS        60000

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

/* Show what comes until `at_ms`, or until `fd` (-1: none) can be read; true as soon as something
 * came. */
static bool wait_a_moment(struct chat *c, int64_t at_ms, int fd)
{
	struct pollfd p[] = {{.fd = dialog_fd(&c->d), .events = POLLIN},
			     {.fd = fd, .events = POLLIN}};
	int64_t next = chat_next(c), end = next >= 0 && next < at_ms ? next : at_ms;
	int n = poll(p, ARRAY_LEN(p), (int)MAX(end - clock_mono_ms(), 0));

	if (p[1].revents == 0)
		chat_show(c);
	return p[1].revents != 0 || n != 0;
}

/* Ask the daemon whether nothing goes on: 1, 0 or a code. */
static int is_quiet(struct chat *c, bool runs_too, struct ava_error *err)
{
	json_t *s = NULL;
	int rv = dialog_get(&c->d, &s, err);

	if (rv == 0)
		rv = strcmp(json_str(s, "status"), "idle") == 0 &&
		     json_get_int(s, "waiting", 0) == 0 &&
		     (!runs_too || json_get_int(s, "live_runs", 0) == 0);
	json_decref(s);
	return rv;
}

/* Wait until Ava has answered; with `runs_too` until all her runs have ended, too. */
static int wait_until_quiet(struct chat *c, bool runs_too, struct ava_error *err)
{
	unsigned quiet = 0;
	int rv;

	while (quiet < 2 && !c->d.gone) {
		if (c->turns > 0 && !c->d.busy && !runs_too && c->asks_ms == 0)
			return 0;
		if (wait_a_moment(c, clock_mono_ms() + LOOK_MS, -1) || c->d.lost) {
			quiet = 0;
			continue;
		}
		rv = is_quiet(c, runs_too, err);
		if (rv < 0)
			return rv;
		quiet = rv == 1 ? quiet + 1 : 0;
	}
	c->d.busy = false;
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
	chat_begin_line(c, false);
	rv = chat_say(c, line, err);
	return rv == 0 ? wait_until_quiet(c, false, err) : rv;
}

static int chat_pipe(struct chat *c, const char *first, struct ava_error *err)
{
	struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
	bool leave = false;
	char *line = NULL;
	int rv = pipe_take(c, first, &leave, err);

	while (rv == 0 && !leave && !c->d.gone) {
		int more;

		while (!c->d.gone && poll(&in, 1, 0) == 0) /* between two lines of input */
			(void)wait_a_moment(c, clock_mono_ms() + IDLE_MS, STDIN_FILENO);
		more = chat_pipe_line(&line, err);
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

#define PROMPT  "> "
#define STOP_MS 2000 /* ms to wait for the rest of a stopped answer */

static struct {
	const char *session, *model;
} o;

static const struct opt opts[] = {
	OPT("continue", 'c', STR, "SESSION", session,
	    "go on with a conversation; without its id: the newest of this folder",
	    .absent = "latest"),
	OPT("model", 'm', STR, "MODEL", model, "Ava's model, from the next message on"),
};

/* Ctrl-C: Ava's turn ends, what runs goes on; when she listens, a hint. */
void chat_interrupt(struct chat *c)
{
	struct ava_error err = {0};

	if (!c->d.busy) {
		chat_note("Ctrl-D or /quit leaves; subagents go on. /cancel stops one.");
		return;
	}
	if (dialog_stop(&c->d, &err) != 0)
		chat_note("%s", err.text);
	else
		c->stopped_ms = clock_mono_ms() + STOP_MS;
}

/* ---- on a terminal */

static int chat_take_line(struct chat *c, const char *text)
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

	if (!c->d.said)
		chat_note("Ava (%s). /help lists commands, Ctrl-D leaves.", c->d.model);
	while (rv == 1) {
		rv = line_read(l, PROMPT, &text, &err);
		if (rv == 1 && chat_take_line(c, text) != 0)
			return CLI_DONE;
		fflush(stdout);
	}
	return rv == 0 || rv == AVA_ECANCELED ? CLI_DONE : cli_fail(&err);
}

/* Begun or found, with what happened in it so far; then its events come. */
static int chat_begin(struct chat *c, struct ava_error *err)
{
	int rv = chat_open(c, o.session, o.model, err);

	if (rv == 0 && o.session != NULL)
		rv = chat_show_past(c, err);
	if (rv == 0)
		dialog_follow(&c->d);
	return rv;
}

static int on_terminal(void)
{
	struct ava_error err = {0};
	struct line *l = NULL;
	struct chat c;
	int code, rv = chat_begin(&c, &err);

	c.live = !line_is_plain();
	links_below(rv == 0 ? c.d.cwd : "");
	if (rv == 0)
		rv = line_open(&l, &c, &err);
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
	int code, rv;

	setvbuf(stdin, NULL, _IONBF, 0); /* unbuffered: poll sees all unread input */
	rv = chat_pipe_line(&first, &err);
	if (rv == 0)
		return cli_error(CLI_USAGE, "nothing was said: each line of the input is a message "
					    "(see: ava help chat)");
	if (rv < 0)
		return cli_fail(&err);
	rv = chat_begin(&c, &err);
	if (rv == 0)
		rv = chat_pipe(&c, first, &err);
	code = rv != 0 ? cli_fail(&err) : c.errors > 0 || c.d.gone ? CLI_FAILED : CLI_DONE;
	chat_close(&c);
	free(first);
	return code;
}

static int chat_run(int argc, char **argv)
{
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
		"readers);\n"
		"AVA_OSC=0 leaves out links of files, and notices while the terminal is not in "
		"front.\n",
		OPTIONS(opts), chat_run);
