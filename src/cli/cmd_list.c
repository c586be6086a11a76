/* Commands that look at runs: ava ps, proposals, sessions, result, wait.
 *
 * Lists are tables fitted to the terminal; with --json the daemon's objects.
 *
 * `ava wait`: each run is asked for its result, then the ends of runs are followed as
 * events, and a run that has ended is asked again. When the daemon goes away its successor is
 * asked for all that are left. One line for each, in the order in which they end; the exit
 * code is that of the worst: failed, then a limit, then done. When the wait runs out (124) it
 * is told which go on. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/util.h"
#include "base/words.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/face.h"
#include "cli/links.h"
#include "cli/show.h"
#include "cli/term.h"
#include "client/client.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "event/item.h"

#define TASK_CHARS 300
#define LOOK_MS    60000 /* after so long without an end all runs are asked again */
#define OTHER_MS   1000  /* the same where machines share runs: ends of others are no events */

/* Which runs, as the daemon takes it: key, letter, value, help. */
#define PS_FILTERS(X)                                                                              \
	X(status, 0, "WORDS", "these: live, ended, failed, success, error … (failed,cancelled)")   \
	X(role, 'r', "ROLE", "of this role")                                                       \
	X(tag, 0, "NAME", "with this tag")                                                         \
	X(group, 0, "G-id", "of this group")                                                       \
	X(since, 0, "TIME", "begun then or later: 1h, yesterday, 2026-11-21")                      \
	X(q, 'q', "TEXT", "with all these words in task, id, role, folder or tags")                \
	X(sort, 0, "WORD", "by started, cost, time or tokens, the most first")

static struct {
	bool all, json;
	int64_t limit, timeout_ms, turn;
#define X(key, ...) const char *key;
	PS_FILTERS(X)
#undef X
} o;

#define LIMIT      OPT("limit", 'n', COUNT, "N", limit, "at most N of them, the newest (1000)")
#define JSON(help) OPT("json", 0, FLAG, NULL, json, help)

static const struct opt ps_opts[] = {
	OPT("all", 'a', FLAG, NULL, all, "ended runs too"),
#define X(key, letter, value, help) OPT(#key, letter, STR, value, key, help),
	PS_FILTERS(X)
#undef X
		LIMIT,
	JSON("as a JSON array"),
};
static const struct opt asks_opts[] = {
	JSON("as a JSON array"),
};
static const struct opt proposals_opts[] = {
	OPT("all", 'a', FLAG, NULL, all, "answered and expired ones too"),
	JSON("as a JSON array"),
};
static const struct opt sessions_opts[] = {
	LIMIT,
	JSON("as a JSON array"),
};
static const struct opt result_opts[] = {
	JSON("as one JSON object"),
};
static const struct opt messages_opts[] = {
	OPT("turn", 0, COUNT, "N", turn, "only the N-th call of the model and what was new in it"),
	JSON("as one JSON object"),
};
static const struct opt wait_opts[] = {
	OPT("timeout", 0, SECONDS, "SECONDS", timeout_ms,
	    "give up after this time; the runs go on"),
	JSON("the results as JSON, one a line"),
};

/* ---- lists */

/* The list `key` of the daemon's answer at /key. */
static int list(const char *key, const char *query, const char *none, const struct column *columns,
		size_t n)
{
	const json_t *rows;
	json_t *reply = NULL;
	int code = api_ask(&reply, NULL, "/%s%s", key, query);

	rows = json_object_get(reply, key);
	if (code == CLI_DONE && o.json)
		show_json(stdout, rows);
	else if (code == CLI_DONE && json_array_size(rows) == 0)
		puts(none);
	else if (code == CLI_DONE)
		code = show_table(columns, n, rows);
	if (code == CLI_DONE && *json_str(reply, "others"))
		cli_note("%s of other machines are not shown as they are now: %s", key,
			 json_str(reply, "others"));
	json_decref(reply);
	return code;
}

/* "?limit=1000&all=1" and what the options say. */
static const char *newest(void)
{
	static struct buf query;
	const char *const said[][2] = {
#define X(key, ...) {#key, o.key},
		PS_FILTERS(X)
#undef X
	};

	buf_init(&query, 64u << 10);
	buf_addf(&query, "?limit=%" PRId64 "%s", o.limit > 0 ? o.limit : 1000,
		 o.all ? "&all=1" : "");
	for (size_t i = 0; i < ARRAY_LEN(said); i++)
		if (said[i][1]) {
			buf_addf(&query, "&%s=", said[i][0]);
			client_escape(&query, said[i][1]);
		}
	return buf_check(&query) == 0 ? query.data : "";
}

static void doing(const json_t *run, char *out, size_t size)
{
	const char *activity = json_str(run, "current_activity");
	const char *machine = json_str(run, "machine");
	bool live = json_str(run, "ended_at")[0] == '\0' && activity[0] != '\0';

	snprintf(out, size, "%s%s%s%s", *machine ? "on " : "", machine, *machine ? ": " : "",
		 live ? activity : json_str(run, "task"));
}

static int ps_run(int argc, char **argv)
{
	static const struct column columns[] = {
		{"ID", COLUMN_TEXT, "subagent_id"},
		{"ROLE", COLUMN_ROLE, "role", .spare = true},
		{"STATUS", COLUMN_STATUS, "status"},
		{"TIME", COLUMN_TIME, "elapsed_seconds", .spare = true},
		{"TOKENS", COLUMN_TOKENS, "tokens_used", .spare = true},
		{"COST", COLUMN_COST, "cost_cents", .spare = true},
		{"DOING / TASK", COLUMN_OWN, .own = doing},
	};

	return list("runs", newest(),
		    o.all || o.status ? "There are no runs."
				      : "No run is live; -a shows ended ones.",
		    columns, ARRAY_LEN(columns));
}

/* "540s" until it expires, "" when it has been answered. */
static void time_left(const json_t *p, char *out, size_t size)
{
	int64_t ms = json_time(json_object_get(p, "expires_at")) - clock_wall_ms();

	if (strcmp(json_str(p, "state"), "pending") == 0)
		snprintf(out, size, "%s", format_seconds(MAX(ms, 0)).text);
}

/* A proposal's task; of a group the number of runs and the first task. */
static void list_proposed(const json_t *p, char *out, size_t size)
{
	const json_t *config = json_object_get(p, "config");
	const json_t *members = json_object_get(config, "members");
	const char *task = json_str(members ? json_array_get(members, 0) : config, "task");
	int len = (int)utf8_prefix(task, strlen(task), TASK_CHARS);

	if (members)
		snprintf(out, size, "%zu runs: %.*s", json_array_size(members), len, task);
	else
		snprintf(out, size, "%.*s", len, task);
}

/* Until it expires. */
static void list_ask_left(const json_t *a, char *out, size_t size)
{
	int64_t ms = json_time(json_object_get(a, "until")) - clock_wall_ms();

	snprintf(out, size, "%s", format_time_limit(MAX(ms, 0)).text);
}

/* The beginning of its text. */
static void list_ask_text(const json_t *a, char *out, size_t size)
{
	const char *text = json_str(a, "text"), *machine = json_str(a, "machine");
	size_t len = MIN(strcspn(text, "\n"), utf8_prefix(text, strlen(text), TASK_CHARS));

	snprintf(out, size, "%s%s%s%.*s", *machine ? "on " : "", machine, *machine ? ": " : "",
		 (int)len, text);
}

/* All of what is confirmed, and the words that answer it. */
static void list_show_ask(const json_t *a)
{
	const json_t *choice;
	const char *text = json_str(a, "text"), *run = json_str(a, "run");
	char left[40];
	size_t i;

	term_wrapped(stdout, text, strlen(text));
	putchar('\n');
	json_array_foreach(json_object_get(a, "choices"), i, choice)
	{
		if (strcmp(json_str(a, "kind"), "apply") == 0 &&
		    strcmp(json_str(choice, "id"), "yes") == 0)
			term_print(stdout, "  ava apply %s\n", run);
		else
			term_print(stdout, "  ava answer %s '%s'\n", json_str(a, "id"),
				   json_str(choice, "id"));
	}
	list_ask_left(a, left, sizeof(left));
	if (strcmp(json_str(a, "state"), "open") == 0)
		term_print(stdout, "%s: open, %s left\n", json_str(a, "id"), left);
	else
		term_print(stdout, "%s: %s%s%s\n", json_str(a, "id"), json_str(a, "state"),
			   *run ? ", " : "", run);
}

static int asks_run(int argc, char **argv)
{
	static const struct column columns[] = {
		{"ID", COLUMN_TEXT, "id"},
		{"KIND", COLUMN_TEXT, "kind"},
		{"LEFT", COLUMN_OWN, .own = list_ask_left, .spare = true},
		{"WHAT", COLUMN_OWN, .own = list_ask_text},
	};
	json_t *a = NULL;
	int code;

	if (argc == 0)
		return list("asks", "", "Nothing waits for you.", columns, ARRAY_LEN(columns));
	code = api_ask(&a, NULL, "/asks/%s", argv[0]);
	if (code == CLI_DONE && o.json)
		show_json(stdout, a);
	else if (code == CLI_DONE)
		list_show_ask(a);
	json_decref(a);
	return code;
}

static int proposals_run(int argc, char **argv)
{
	static const struct column columns[] = {
		{"ID", COLUMN_TEXT, "proposal_id"},
		{"STATE", COLUMN_TEXT, "state"},
		{"LEFT", COLUMN_OWN, .own = time_left, .spare = true},
		{"RUN", COLUMN_TEXT, "subagent_id", .spare = true},
		{"ROLE", COLUMN_ROLE, "role", "quote", .spare = true},
		{"UP TO", COLUMN_MOST, "costCents", "quote", .spare = true},
		{"TASK", COLUMN_OWN, .own = list_proposed},
	};

	json_t *p = NULL;
	int code;

	if (argc > 0 && !o.json)
		return asks_run(argc, argv);
	if (argc > 0) {
		code = api_ask(&p, NULL, "/proposals/%s", argv[0]);
		if (code == CLI_DONE)
			show_json(stdout, p);
		json_decref(p);
		return code;
	}
	return list("proposals", o.all ? "?all=1" : "",
		    o.all ? "There are no proposals." : WORDS_NONE_WAITS, columns,
		    ARRAY_LEN(columns));
}

static void live_runs(const json_t *session, char *out, size_t size)
{
	snprintf(out, size, "%" PRId64, json_get_int(session, "live_runs", 0));
}

static int sessions_run(int argc, char **argv)
{
	static const struct column columns[] = {
		{"ID", COLUMN_TEXT, "session_id"},
		{"STATUS", COLUMN_TEXT, "status", .spare = true},
		{"LAST", COLUMN_MOMENT, "updated_at", .spare = true},
		{"AT WORK", COLUMN_OWN, .own = live_runs, .spare = true},
		{"COST", COLUMN_COST, "cost_cents", .spare = true},
		{"BEGAN WITH", COLUMN_TEXT, "title"},
	};

	return list("sessions", newest(), "There is no conversation yet: `ava` begins one.",
		    columns, ARRAY_LEN(columns));
}

/* ---- result: the exit code is that of the run. One that goes on has none yet: 1 */

static int list_result_run(int argc, char **argv)
{
	const char *id = argv[0], *status;
	struct ava_error err;
	json_t *result = NULL, *run = NULL;
	struct words_end end;
	int rv, code;

	rv = api_result(id, 0, &result, &err);
	if (result != NULL) /* without the run's status the text tells less */
		(void)api_request(NULL, &run, NULL, "/runs/%s", id);
	if (rv != 0)
		return cli_fail(&err);
	if (result == NULL)
		return cli_error(CLI_FAILED, "%s has not ended yet; wait for it: ava wait %s", id,
				 id);
	status = json_get_str(result, "status") != NULL ? json_str(result, "status") : "error";
	if (o.json) {
		show_json(stdout, result);
	} else {
		end = format_end_of(result, run);
		term_print(stdout,
			   WORDS_RESULT_OF(id, end.what[0] != '\0' ? end.what : status, &end));
		puts("\n");
		links_below(json_str(run, "cwd"));
		show_result(stdout, result);
	}
	json_decref(run);
	code = cli_exit_of_status(status);
	json_decref(result);
	return code;
}

/* ---- messages */

static int messages_run(int argc, char **argv)
{
	json_t *reply = NULL, *m, *p;
	size_t i, k;
	int code = o.turn > 0 ? api_ask(&reply, NULL, "/runs/%s/messages?limit=1000&turn=%" PRId64,
					argv[0], o.turn)
			      : api_ask(&reply, NULL, "/runs/%s/messages?limit=1000", argv[0]);

	if (code == CLI_DONE && o.json)
		show_json(stdout, reply);
	json_array_foreach(o.json ? NULL : json_object_get(reply, "messages"), i, m)
		json_array_foreach(json_object_get(m, "parts"), k, p)
	{
		char *args = json_dumps(json_object_get(p, "args"), 0);
		const char *text;

		term_print(stdout, "%" PRId64 " %s: %s %s %s\n", json_get_int(m, "turn", 0),
			   json_str(m, "role"), json_str(p, "kind"), json_str(p, "call_id"),
			   json_str(p, "name"));
		text = args ? args : json_str(p, "text");
		term_theirs(stdout, term_width(stdout), text, strlen(text), 0);
		puts("");
		free(args);
	}
	if (json_get_bool(reply, "more", false) && !o.json)
		cli_note("more follows: --turn N shows one call");
	json_decref(reply);
	return code;
}

/* ---- wait */

struct list_waiting {
	char **ids; /* runs not told yet; pointers of argv */
	int n, code;
};

static int worse(int a, int b)
{
	static const int order[] = {CLI_DONE, CLI_LIMIT, CLI_FAILED, CLI_NOSUCH, CLI_WAITED};
	int ia = 0, ib = 0;

	for (int i = 0; i < (int)ARRAY_LEN(order); i++) {
		ia = order[i] == a ? i : ia;
		ib = order[i] == b ? i : ib;
	}
	return ia >= ib ? a : b;
}

static void list_print_end(const char *id, const json_t *result)
{
	json_t *status = NULL;

	if (o.json) {
		show_json(stdout, result);
		fflush(stdout);
		return;
	}
	/* The result does not name the role; without it the line still tells. */
	(void)api_request(NULL, &status, NULL, "/runs/%s", id);
	printf("%s ", id);
	progress_end(stdout, format_role(status != NULL ? json_str(status, "role") : "run").text,
		     result, status);
	json_decref(status);
}

/* 1: the run was told, as ended or with its own error. */
static int list_look_at(struct list_waiting *w, const char *id, struct ava_error *err)
{
	json_t *result = NULL;
	int rv = api_result(id, 0, &result, err);

	if (rv == AVA_ENOENT) {
		w->code = worse(w->code, cli_fail(err));
		return 1;
	}
	if (rv != 0 || result == NULL)
		return rv;
	w->code = worse(w->code, cli_exit_of_status(json_str(result, "status")));
	list_print_end(id, result);
	json_decref(result);
	return 1;
}

/* Look at all runs left. 1: there is none. */
static int list_look(struct follow *f, void *user, struct ava_error *err)
{
	struct list_waiting *w = user;
	int rv = 0, kept = 0;

	for (int i = 0; i < w->n; i++) {
		if (rv == 0)
			rv = list_look_at(w, w->ids[i], err);
		if (rv != 1)
			w->ids[kept++] = w->ids[i];
		rv = MIN(rv, 0);
	}
	w->n = kept;
	f->tick_ms = clock_mono_ms() + (root_is_shared() ? OTHER_MS : LOOK_MS);
	return rv != 0 ? rv : w->n == 0;
}

/* An id twice is told once. */
static int distinct(char **ids, int n)
{
	int kept = 0;

	for (int i = 0; i < n; i++) {
		bool known = false;

		for (int k = 0; k < kept; k++)
			known |= strcmp(ids[k], ids[i]) == 0;
		if (!known)
			ids[kept++] = ids[i];
	}
	return kept;
}

static int wait_run(int argc, char **argv)
{
	struct list_waiting w = {.ids = argv, .n = distinct(argv, argc)};
	struct follow f = {.items = true, .look = list_look, .user = &w};
	struct ava_error err;
	int rv;

	f.until_ms = o.timeout_ms > 0 ? clock_mono_ms() + o.timeout_ms : 0;
	rv = api_open(API_START, &err);
	if (rv == 0)
		rv = MIN(api_follow(&f, &err), 0);
	if (rv == 0 && w.n > 0) /* time is over: runs may just have ended */
		(void)list_look(&f, &w, &err);
	if (rv != 0)
		w.code = cli_fail(&err);
	for (int i = 0; rv == 0 && i < w.n; i++)
		w.code = cli_error(CLI_WAITED, "%s has not ended yet; it goes on", w.ids[i]);
	return w.code;
}

const struct command cmd_ps = COMMAND("ps", "", 0, 0, "list runs", NULL, OPTIONS(ps_opts), ps_run);
const struct command cmd_asks =
	COMMAND("asks", "[ID]", 0, 1, "list what waits for you, or show one of it whole",
		"Quotes, questions of runs, and calls that need your yes. `ava answer` answers.\n",
		OPTIONS(asks_opts), asks_run);
const struct command cmd_proposals = COMMAND(
	"proposals", "[P-id]", 0, 1, "list quotes that wait for a yes or no, or show one whole",
	NULL, OPTIONS(proposals_opts), proposals_run);
const struct command cmd_sessions = COMMAND("sessions", "", 0, 0, "list conversations", NULL,
					    OPTIONS(sessions_opts), sessions_run);
const struct command cmd_messages =
	COMMAND("messages", "S-id", 1, 1, "show what a run's model was asked and what it said",
		NULL, OPTIONS(messages_opts), messages_run);
const struct command cmd_wait = COMMAND("wait", "S-id...", 1, -1, "wait until runs have ended",
					NULL, OPTIONS(wait_opts), wait_run);
const struct command cmd_result =
	COMMAND("result", "S-id", 1, 1, "print the result of a run",
		"The exit code is that of the run: 0 success, 3 a limit, 1 cancelled or failed.\n",
		OPTIONS(result_opts), list_result_run);
