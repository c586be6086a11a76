/* Commands of a conversation; chat_commands.h. Each is a row with its function;
 * /help prints the rows. Nothing here ends the conversation but /quit: what goes
 * wrong is said. */
#include "cli/chat_commands.h"

#include <ava.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/id.h"
#include "base/util.h"
#include "cli/api.h"
#include "cli/chat.h"
#include "cli/chat_show.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "cli/show.h"
#include "cli/term.h"
#include "codec/json.h"

#define LOG_LINES "20"
#define RUNS_MAX  50 /* rows of /runs */

static void wrong(const struct ava_error *err)
{
	term_colour(stdout, TERM_RED);
	term_wrapped(stdout, err->text, strlen(err->text));
	term_colour(stdout, TERM_PLAIN);
	putchar('\n');
}

static bool is_id(const char *word, char letter)
{
	size_t n;

	if (word[0] != letter || word[1] != '-')
		return false;
	n = strspn(word + 2, "0123456789abcdef");
	return n >= 6 && n <= 20 && word[2 + n] == '\0';
}

static bool wants_run(const char *word)
{
	if (!is_id(word, 'S'))
		chat_note("Name a run, as S-7f3a2b; /runs lists those of this conversation.");
	return is_id(word, 'S');
}

/* ---- /status, /runs, /cost */

static int get_runs(struct chat *c, json_t **all)
{
	struct ava_error err = {0};

	*all = NULL;
	if (chat_call(c, "/runs?all=1&limit=10000", NULL, all, &err) == 0)
		return 0;
	wrong(&err);
	return -1;
}

static bool is_ours(const struct chat *c, const json_t *run)
{
	return strcmp(json_str(run, "session_id"), c->session) == 0;
}

static void show_one(struct chat *c, const char *id)
{
	struct ava_error err = {0};
	json_t *run = NULL;
	char path[64];

	snprintf(path, sizeof(path), "/runs/%s", id);
	if (chat_call(c, path, NULL, &run, &err) != 0) {
		wrong(&err);
		return;
	}
	printf("%s (", id);
	term_str(stdout, json_str(run, "trace_id"));
	fputs(") ", stdout);
	progress_status(stdout, run);
	term_cut(stdout, json_str(run, "task"), strlen(json_str(run, "task")), term_width(stdout));
	putchar('\n');
	json_decref(run);
}

static void do_status(struct chat *c, const char *rest)
{
	char words[sizeof(c->session) + sizeof(c->model) + 64];
	json_t *all;
	const json_t *run;
	size_t i, live = 0;

	if (rest[0] != '\0') {
		if (wants_run(rest))
			show_one(c, rest);
		return;
	}
	if (get_runs(c, &all) != 0)
		return;
	snprintf(words, sizeof(words), "Conversation %s, model %s.\nAva is %s.", c->session,
		 c->model, c->busy ? "at work" : "listening");
	term_wrapped(stdout, words, strlen(words));
	putchar('\n');
	json_array_foreach(json_object_get(all, "runs"), i, run)
	{
		if (!is_ours(c, run) || json_str(run, "ended_at")[0] != '\0')
			continue;
		printf("%s ", json_str(run, "subagent_id"));
		progress_status(stdout, run);
		live++;
	}
	if (live == 0)
		puts("No subagent is at work.");
	json_decref(all);
}

static void do_runs(struct chat *c, const char *rest)
{
	struct table t;
	json_t *all;
	const json_t *run;
	size_t i, n = 0;

	if (get_runs(c, &all) != 0)
		return;
	table_init(&t, 6);
	t.spare = 1u << 2 | 1u << 3 | 1u << 4;
	json_array_foreach(json_object_get(all, "runs"), i, run)
	{
		if (!is_ours(c, run) || n == RUNS_MAX)
			continue;
		if (n++ == 0)
			for (size_t k = 0; k < 6; k++)
				table_add(&t, ((const char *[]){"ID", "STATUS", "ROLE", "TIME",
								"COST", "TASK"})[k]);
		table_add(&t, json_str(run, "subagent_id"));
		table_add(&t, json_str(run, "status"));
		table_add(&t, format_role(json_str(run, "role")).text);
		table_add(&t, format_seconds(json_get_fixed(run, "elapsed_seconds", 3, 0)).text);
		table_add(&t, format_money(json_get_fixed(run, "cost_cents", 4, -1)).text);
		table_add(&t, json_str(run, "task"));
	}
	if (n == 0)
		puts("No subagent has run in this conversation.");
	else
		table_print(&t, stdout);
	table_fini(&t);
	json_decref(all);
}

static void do_cost(struct chat *c, const char *rest)
{
	struct ava_error err = {0};
	json_t *session = NULL, *all;
	const json_t *run;
	int64_t cost = 0, tokens = 0, own;
	size_t i, n = 0, unknown = 0;

	if (chat_session(c, &session, &err) != 0) {
		wrong(&err);
		return;
	}
	own = json_get_fixed(session, "cost_cents", 4, -1);
	if (get_runs(c, &all) == 0) {
		json_array_foreach(json_object_get(all, "runs"), i, run)
		{
			int64_t one = json_get_fixed(run, "cost_cents", 4, -1);

			if (!is_ours(c, run))
				continue;
			n++;
			unknown += one < 0;
			cost += MAX(one, 0);
			tokens += json_get_int(run, "tokens_used", 0);
		}
		printf("Ava: %s, %s tokens since the daemon began.\n", format_money(own).text,
		       format_tokens(json_get_int(session, "tokens_used", 0)).text);
		printf("Subagents (%zu): %s, %s tokens.\n", n, format_money(cost).text,
		       format_tokens(tokens).text);
		if (unknown > 0)
			printf("The cost of %zu of them is not known.\n", unknown);
	}
	json_decref(session);
	json_decref(all);
}

/* ---- /cancel, /steer, /logs */

static void cancel(struct chat *c, const char *id)
{
	struct ava_error err = {0};
	json_t *status = NULL;
	char path[64];

	snprintf(path, sizeof(path), "/runs/%s/cancel", id);
	/* Cancelled is cancelled: it may be asked again. */
	if (chat_call(c, path, "{}", &status, &err) != 0 &&
	    (err.code != AVA_EUNKNOWN || chat_call(c, path, "{}", &status, &err) != 0)) {
		wrong(&err);
		return;
	}
	printf("%s: ", id);
	term_str(stdout, json_str(status, "status"));
	putchar('\n');
	json_decref(status);
}

static void cancel_all(struct chat *c)
{
	json_t *all;
	const json_t *run;
	size_t i, n = 0;

	if (get_runs(c, &all) != 0)
		return;
	json_array_foreach(json_object_get(all, "runs"), i, run)
	{
		if (!is_ours(c, run) || json_str(run, "ended_at")[0] != '\0')
			continue;
		cancel(c, json_str(run, "subagent_id"));
		n++;
	}
	if (n == 0)
		puts("No subagent is at work.");
	json_decref(all);
}

static void do_cancel(struct chat *c, const char *rest)
{
	if (strcmp(rest, "all") == 0 || strcmp(rest, "--all") == 0)
		cancel_all(c);
	else if (wants_run(rest))
		cancel(c, rest);
}

static int steer(struct chat *c, const char *id, const char *text, json_t **answer,
		 struct ava_error *err)
{
	struct session_id request = id_session(); /* so that asking twice says it once */
	char path[64];
	struct buf body;
	int rv = api_texts(&body, err, "text", text, "request_id", request.text, NULL);

	snprintf(path, sizeof(path), "/runs/%s/steer", id);
	if (rv == 0)
		rv = chat_call(c, path, body.data, answer, err);
	if (rv == AVA_EUNKNOWN)
		rv = chat_call(c, path, body.data, answer, err);
	buf_fini(&body);
	return rv;
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
	if (steer(c, id, rest, &answer, &err) != 0)
		wrong(&err);
	else if (strcmp(json_str(answer, "outcome"), "answered") == 0)
		printf("%s has its answer.\n", id);
	else
		printf("%s reads it after what it is doing now.\n", id);
	json_decref(answer);
}

static void do_logs(struct chat *c, const char *rest)
{
	char id[32];
	char *words[] = {id, "-n", LOG_LINES, NULL};

	if (rest[0] == '\0' && c->runs.n > 0)
		rest = c->runs.run[c->runs.n - 1].id;
	if (!wants_run(rest))
		return;
	snprintf(id, sizeof(id), "%s", rest);
	fflush(stdout);
	command_main(&cmd_logs, 3, words);
}

/* ---- the table */

static void do_help(struct chat *c, const char *rest);

#define HELP_COLUMNS 60 /* in fewer, what a command does stands below it */

static const struct {
	const char *name, *args, *what;
	void (*run)(struct chat *c, const char *rest); /* NULL: /quit */
} rows[] = {
	{"/status", "[S-id]", "what is going on", do_status},
	{"/runs", "", "the subagents of this conversation", do_runs},
	{"/cancel", "S-id|all", "stop subagents for good", do_cancel},
	{"/steer", "S-id TEXT", "tell one at work what to mind, or answer it", do_steer},
	{"/logs", "[S-id]", "the newest events of one", do_logs},
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

enum chat_did chat_command(struct chat *c, const char *line)
{
	size_t n = strcspn(line, " \t\n");
	char rest[4096];

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

size_t chat_complete(struct chat *c, const char *word, int first, const char **out, size_t max)
{
	size_t len = strlen(word), n = 0, named = MIN(c->nproposals, (size_t)CHAT_PROPOSALS_MAX);

	for (size_t i = 0; first && word[0] == '/' && i < ARRAY_LEN(rows) && n < max; i++)
		if (strncmp(rows[i].name, word, len) == 0)
			out[n++] = rows[i].name;
	for (size_t i = 0; len > 0 && i < c->runs.n && n < max; i++)
		if (strncmp(c->runs.run[i].id, word, len) == 0)
			out[n++] = c->runs.run[i].id;
	for (size_t i = 0; len > 0 && i < named && n < max; i++)
		if (strncmp(c->proposals[i], word, len) == 0)
			out[n++] = c->proposals[i];
	return n;
}
