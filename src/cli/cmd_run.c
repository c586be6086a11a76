/* ava run TASK: propose, ask, start, follow, print the result.
 *
 * The work is done in the daemon; this is its terminal. The request carries an
 * id of its own, so that asking again after a lost connection starts nothing
 * twice. Text for a person goes to stdout, with --json to stderr, and the
 * result object to stdout.
 *
 * What can fail: the input (told before the daemon is asked), an answer that is
 * no yes (exit 4), the run itself (exit by its status). Ctrl-C before the
 * answer rejects; after it, it cancels the run and waits for its end; once
 * more, and the command leaves while the daemon goes on. */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/spawn_options.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/face.h"
#include "cli/links.h"
#include "cli/front.h"
#include "cli/show.h"
#include "cli/task.h"
#include "cli/term.h"
#include "codec/json.h"
#include "event/item.h"

#define ASK_TIMES   3    /* answers in a row that are not understood */
#define QUOTE_TIMES 20   /* most quotes of one task */
#define LIVE_MS     1000 /* pause before the status line is written anew */
#define GROUP_MS    2000 /* longest pause between two looks at all runs */
#define RESULT_WAIT 10   /* s; longest wait for a result, which is there when the last event is */

static struct {
	struct task_options task;
	bool yes, background, json;
} o;

#define ANSWERS                                                                                    \
	OPT("yes", 'y', FLAG, NULL, yes, "confirm without asking"),                                \
		OPT("background", 'b', FLAG, NULL, background, "start it and leave"),              \
		OPT("json", 0, FLAG, NULL, json, "the result as one JSON object on stdout")

static const struct opt opts[] = {
	SPAWN_FLAGS(OPTION) /* the options of base/spawn_options.h */
	OPT("file", 'F', LIST, "FILE", task.files,
	    "put this file into the context (may be repeated; \"-\": standard input)"),
	OPT("parallel", 0, STR, "FILE", task.parallel,
	    "instead of TASK: a run for each line of FILE"),
	OPT("no-files", 0, FLAG, NULL, task.no_files,
	    "it sees no folder; in a cluster it can go on on any machine"),
	OPT("chain", 0, FLAG, NULL, task.chain, "with --parallel: " WORDS_HANDED_ON),
	OPT("share", 0, FLAG, NULL, task.share,
	    "with --parallel: each may read what the others found"),
	ANSWERS,
};

static volatile sig_atomic_t interrupt_flag;

static void run_on_signal(int number)
{
	interrupt_flag = 1;
}

/* From before a question is shown until its answer is read: task_answer lets
 * Ctrl-C in, so that it is an answer however early it comes. */
static void hold_interrupt(bool hold)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigprocmask(hold ? SIG_BLOCK : SIG_UNBLOCK, &set, NULL);
}

/* A run or group that the command started, from the request to its end. */
struct run_job {
	FILE *talk;  /* stream for what a person reads meanwhile */
	int answers; /* descriptor of a person's answers; -1: none */
	char proposal[32], run[32], trace[64], role[48];
	char group[32];  /* id of the group; "": one run alone */
	json_t *results; /* the group's results, by run id; owned */
	json_t *ended;   /* answer about the group when all runs have ended; owned */
	bool all_three;  /* the quote asks for a yes that --yes does not give */
	char small[400]; /* why the model's window is too small; "": large enough */
	struct progress progress;
};

static int run_take_id(const json_t *v, const char *key, char *out, size_t size,
		       struct ava_error *err)
{
	const char *s = json_get_str(v, key);

	if (s == NULL || strlen(s) >= size)
		return err_set(err, AVA_EPROTO, "the daemon's answer lacks \"%s\"", key);
	snprintf(out, size, "%s", s);
	return 0;
}

/* The daemon's answer has a run. */
static int take_run(struct run_job *j, const json_t *p, struct ava_error *err)
{
	const char *changes = json_str(p, "changes");
	int rv = run_take_id(p, o.task.order != NULL ? "order_id" : "subagent_id", j->run,
			     sizeof(j->run), err);

	snprintf(j->trace, sizeof(j->trace), "%s", json_str(p, "trace_id"));
	if (rv == 0 && o.task.parallel != NULL)
		rv = run_take_id(p, "group_id", j->group, sizeof(j->group), err);
	if (rv == 0 && *changes)
		term_line(j->talk, WORDS_CONFIRMED(changes));
	return rv;
}

static bool in_state(const json_t *p, const char *word)
{
	return strcmp(json_str(p, "state"), word) == 0;
}

/* Whether the quote has all three rights (`ava run --help`) without a yes given beforehand. */
static bool asks_all_three(const json_t *quote)
{
	const json_t *grant;
	size_t i;

	json_array_foreach(json_object_get(quote, "grants"), i, grant)
	{
		if (strcmp(json_string_value(grant), "all_three") == 0)
			return false;
	}
	return json_get_bool(quote, "allThree", false);
}

/* A quote: its proposal, whose answer is read next. */
static int take_quote(struct run_job *j, const json_t *p, bool ask, struct ava_error *err)
{
	/* The first Ctrl-C sets the flag, the next one ends the program. */
	const struct sigaction sa = {.sa_handler = run_on_signal, .sa_flags = SA_RESETHAND};
	const char *role = json_get_str(json_object_get(p, "quote"), "role");
	/* The daemon's last line is the question. */
	const char *question = strstr(json_str(p, "message"), "\n" WORDS_PROCEED);
	int rv = run_take_id(p, "proposal_id", j->proposal, sizeof(j->proposal), err);

	snprintf(j->role, sizeof(j->role), "%s", role != NULL ? role : "subagent");
	j->all_three = asks_all_three(json_object_get(p, "quote"));
	snprintf(j->small, sizeof(j->small), "%s",
		 json_str(json_object_get(p, "quote"), "tooSmall"));
	sigaction(SIGINT, &sa, NULL);
	if (ask)
		hold_interrupt(true);
	if (rv != 0)
		return rv;
	show_proposal(j->talk, p);
	links_below(json_str(json_object_get(p, "config"), "cwd"));
	if (ask && question != NULL) {
		term_str(j->talk, question + 1);
		fputc(isatty(j->answers) ? ' ' : '\n', j->talk);
	}
	fflush(j->talk);
	return 0;
}

static int run_propose(struct run_job *j, const char *text, struct ava_error *err)
{
	struct buf body;
	json_t *p = NULL;
	int rv;

	buf_init(&body, 0);
	rv = task_body(&body, &o.task, text, STDIN_FILENO, err);
	if (rv == 0)
		rv = api_open(API_BEGIN, err);
	if (rv == 0)
		rv = api_request(body.data, &p, err,
				 o.task.parallel != NULL ? "/groups"
				 : o.task.order != NULL  ? "/orders"
							 : "/runs");
	buf_fini(&body);
	if (rv == AVA_EUNKNOWN)
		return err_set(err, rv,
			       "the daemon has not acknowledged the task: nothing was started");
	if (rv != 0)
		return rv;
	api_tell_lacks(json_str(json_object_get(p, "quote"), "model"), o.task.spawn.model != NULL);
	rv = take_quote(j, p, !o.yes && in_state(p, "pending"), err);
	if (rv == 0 && in_state(p, "confirmed")) {
		fputs("Not asked: confirm is set so.\n", j->talk);
		rv = take_run(j, p, err);
	}
	json_decref(p);
	return rv;
}

/* 0: the run has begun. 1: quoted again. */
static int run_confirm(struct run_job *j, const char *answer, struct ava_error *err)
{
	char path[64];
	const char *changes;
	json_t *p = NULL;
	int rv;

	snprintf(path, sizeof(path), "/proposals/%s/confirm", j->proposal);
	rv = api_post(&p, err, path, "answer", answer, NULL);
	if (rv != 0)
		return rv;
	if (in_state(p, "confirmed")) {
		rv = take_run(j, p, err);
	} else if (in_state(p, "pending")) {
		/* Name the changes from the quote before, which the new one may not tell. */
		changes = json_str(p, "changes");
		term_print(j->talk, "Instead%s%s (%s):\n", *changes ? ", " : "", changes,
			   json_str(p, "proposal_id"));
		rv = take_quote(j, p, true, err);
		if (rv == 0)
			rv = 1;
	} else {
		rv = err_set(err, AVA_EREJECTED, WORDS_REJECTED(j->proposal));
	}
	json_decref(p);
	return rv;
}

static int reject(struct run_job *j, const char *reason, struct ava_error *err)
{
	char path[64];
	int rv;

	snprintf(path, sizeof(path), "/proposals/%s/reject", j->proposal);
	rv = api_post(NULL, err, path, "reason", reason, NULL);
	if (rv != 0 && rv != AVA_EREJECTED && rv != AVA_EEXPIRED)
		return rv;
	return err_set(err, AVA_EREJECTED, "%s: nothing was started", reason);
}

/* Take one answer. 0: the run has begun; 1: quoted again; AVA_EINVAL: not understood. */
static int ask_once(struct run_job *j, struct ava_error *err)
{
	char answer[4096];
	int got = j->answers >= 0 ? task_answer(j->answers, answer, err) : 0;

	hold_interrupt(false);
	if (got <= 0 && isatty(j->answers))
		fputc('\n', j->talk); /* the cursor stands behind the prompt, or the ^C */
	if (got == 0)
		return reject(j, "no answer (use --yes to confirm without one)", err);
	return got < 0 ? reject(j, "interrupted", err) : run_confirm(j, answer, err);
}

/* Ask until there is a yes (0), about each quote that a change leads to. No,
 * the end of input, Ctrl-C and three answers in a row that are not understood
 * are a rejection. */
static int run_ask(struct run_job *j, struct ava_error *err)
{
	int quotes = 0, vain = 0;

	for (;;) {
		int rv = ask_once(j, err);

		if (rv == 1 && ++quotes == QUOTE_TIMES)
			return reject(j, "too many changes", err);
		if (rv != 1 && rv != AVA_EINVAL)
			return rv;
		vain = rv == 1 ? 0 : vain + 1;
		if (vain == ASK_TIMES)
			return reject(j, "no answer that was understood", err);
		if (vain > 0) {
			hold_interrupt(true);
			term_str(j->talk, err->text);
			fputs(isatty(j->answers) ? ": " : "\n", j->talk);
			fflush(j->talk);
		}
	}
}

static int run_on_event(const struct sse_event *e, void *user)
{
	struct run_job *j = user;
	json_t *item = strcmp(e->event, "item") == 0 ? json_parse(e->data, e->len, NULL) : NULL;
	enum item_kind kind = item_kind_of(json_str(item, "kind"));

	if (kind == ITEM_doing || kind == ITEM_asked)
		progress_item(&j->progress, item);
	if (kind == ITEM_asked)
		front_tell(j->talk, WORDS_WAITS(j->run, ""));
	json_decref(item);
	return 0;
}

/* Show the run's present status; a daemon that does not answer is noticed by the stream. */
static void show_now(struct run_job *j)
{
	json_t *status = NULL;

	api_deadline(clock_mono_ms() + LIVE_MS);
	(void)api_request(NULL, &status, NULL, "/runs/%s", j->run);
	api_deadline(-1);
	if (!j->progress.live)
		progress_still_working(&j->progress, status);
	else if (status != NULL)
		progress_live(&j->progress, status);
	json_decref(status);
}

static int run_look(struct follow *f, void *user, struct ava_error *err)
{
	struct run_job *j = user;

	if (clock_mono_ms() < f->tick_ms)
		return 0; /* a new connection */
	show_now(j);
	f->tick_ms = clock_mono_ms() + (j->progress.live ? LIVE_MS : PROGRESS_NEXT_MS);
	return 0;
}

/* Cancel the run, or what of the group has begun and what would begin. */
static int on_interrupt(void *user, struct ava_error *err)
{
	struct run_job *j = user;
	const char *id = j->group[0] ? j->group : j->run;
	char body[64];
	json_t *answer = NULL;
	int rv;

	if (!j->group[0])
		progress_clear(&j->progress);
	term_line(j->talk, "\n" WORDS_CANCELLING(id));
	snprintf(body, sizeof(body), "{\"ids\":[\"%s\"]}", id);
	rv = api_call("/runs/cancel", body, &answer, NULL, err);
	json_decref(answer);
	/* A daemon that is gone cancelled nothing: following the run then says so. */
	return rv == AVA_ECONNECT || rv == AVA_EUNKNOWN ? 0 : rv;
}

static int run_follow(struct run_job *j, json_t **result, struct ava_error *err)
{
	struct follow f = {
		.run = j->run,
		.items = true,
		.on_event = run_on_event,
		.look = run_look,
		.tick_ms = clock_mono_ms() + (j->progress.live ? LIVE_MS : PROGRESS_FIRST_MS),
		.on_interrupt = on_interrupt,
		.interrupt = &interrupt_flag,
		.user = j,
	};
	int rv = api_follow(&f, err);

	progress_clear(&j->progress);
	if (rv == 0)
		rv = api_result(j->run, RESULT_WAIT, result, err);
	if (rv == 0 && *result == NULL)
		rv = err_set(err, AVA_EPROTO, "the daemon has no result of %s", j->run);
	return rv;
}

/* Tell a run's end, with the limits in its status if that can be had. */
static void tell_end(struct run_job *j, const char *role, const json_t *result)
{
	json_t *run = NULL;

	if (cli_exit_of_status(json_str(result, "status")) == CLI_LIMIT)
		(void)api_request(NULL, &run, NULL, "/runs/%s", json_str(result, "subagent_id"));
	progress_end(j->talk, format_role(role).text, result, run);
	json_decref(run);
}

static int leave_in_background(const struct run_job *j)
{
	if (j->group[0] && o.json) {
		printf("{\"group_id\":\"%s\"}\n", j->group);
	} else if (j->group[0]) {
		printf("%s runs in the background. Its runs: ava ps\n", j->group);
	} else if (o.json) {
		printf("{\"subagent_id\":\"%s\",\"trace_id\":\"%s\"}\n", j->run, j->trace);
	} else {
		printf("%s runs in the background.\n", j->run);
		term_line(stdout, WORDS_FOLLOW(j->run));
	}
	return CLI_DONE;
}

/* --json: exactly one object on stdout, here too. */
static int run_failed(const struct run_job *j, const struct ava_error *err)
{
	json_t *said = NULL;

	if (o.json && err->code == AVA_EREJECTED)
		said = json_pack("{s:s,s:s}", "proposal_id", j->proposal, "state", "rejected");
	else if (o.json)
		said = json_pack("{s:s,s:{s:s,s:s}}", "subagent_id", j->run, "error", "code",
				 err_word(err->code), "message", err->text);
	if (said != NULL)
		show_json(stdout, said);
	json_decref(said);
	return cli_fail(err);
}

/* ---- a group: its runs are looked at together, at each end of a run and every two seconds, since
 * the group ends behind its last run. Any of them may fail: the others go on, and what each came to
 * stands in the end. */

/* Tell the ends that are new; *live: a run has none yet. */
static int group_look(struct run_job *j, const json_t *group, bool *live, struct ava_error *err)
{
	const json_t *run;
	size_t i;

	json_array_foreach(json_object_get(group, "runs"), i, run)
	{
		const char *id = json_str(run, "subagent_id");
		json_t *result = NULL;
		int rv;

		if (json_object_get(j->results, id) != NULL)
			continue;
		rv = api_result(id, 0, &result, err);
		if (rv != 0)
			return rv;
		*live |= result == NULL;
		if (result == NULL)
			continue;
		json_object_set_new(j->results, id, result);
		term_print(j->talk, "%s ", id);
		tell_end(j, json_str(run, "role"), result);
	}
	return 0;
}

/* Look at the group. 1: all runs have ended. */
static int group_step(struct follow *f, void *user, struct ava_error *err)
{
	struct run_job *j = user;
	json_t *group = NULL;
	bool live = false;
	int rv = api_request(NULL, &group, err, "/groups/%s", j->group);

	f->tick_ms = clock_mono_ms() + GROUP_MS;
	if (rv == 0)
		rv = group_look(j, group, &live, err);
	if (rv == 0 && !live && strcmp(json_str(group, "status"), "ended") == 0) {
		j->ended = group;
		return 1;
	}
	json_decref(group);
	return rv;
}

/* The group's results for a person. */
static void group_show(const json_t *group)
{
	const json_t *run;
	size_t i;

	json_array_foreach(json_object_get(group, "runs"), i, run)
	{
		term_print(stdout, "\n%zu. %s\n", i + 1, json_str(run, "subagent_id"));
		links_below(json_str(run, "cwd"));
		show_result(stdout, json_object_get(run, "result"));
	}
	printf("\n%" PRId64 " of %" PRId64 " succeeded, %s together\n",
	       json_get_int(group, "succeeded", 0), json_get_int(group, "size", 0),
	       format_cost_of(group, "cost_cents").text);
}

/* Done when all succeeded; of the worst otherwise. */
static int group_exit(const json_t *group)
{
	const json_t *run;
	int code = CLI_DONE;
	size_t i;

	json_array_foreach(json_object_get(group, "runs"), i, run)
	{
		int one = cli_exit_of_status(json_str(run, "status"));

		if (one == CLI_FAILED || code == CLI_DONE)
			code = one;
	}
	/* The rest of a chain was never started. */
	if (code == CLI_DONE &&
	    json_get_int(group, "succeeded", 0) < json_get_int(group, "size", 0))
		code = CLI_FAILED;
	return code;
}

static int run_group(struct run_job *j)
{
	struct follow f = {.items = true,
			   .look = group_step,
			   .on_interrupt = on_interrupt,
			   .interrupt = &interrupt_flag,
			   .user = j};
	struct ava_error err = {0};
	json_t *run;
	size_t i;
	int rv;

	if (o.background)
		return leave_in_background(j);
	j->results = json_object();
	rv = api_follow(&f, &err) < 0 ? run_failed(j, &err) : CLI_DONE;
	json_array_foreach(rv == 0 ? json_object_get(j->ended, "runs") : NULL, i, run)
		json_object_set(run, "result",
				json_object_get(j->results, json_str(run, "subagent_id")));
	if (rv == CLI_DONE && o.json)
		show_json(stdout, j->ended);
	else if (rv == CLI_DONE)
		group_show(j->ended);
	if (rv == CLI_DONE)
		rv = group_exit(j->ended);
	json_decref(j->results);
	json_decref(j->ended);
	return rv;
}

/* An order runs nothing yet: when it will, and how it is stopped. */
static int run_standing(const struct run_job *j)
{
	struct ava_error err = {0};
	json_t *order = NULL;
	int rv = api_request(NULL, &order, &err, "/orders/%s", j->run);

	if (rv == 0 && o.json)
		show_json(stdout, order);
	else if (rv == 0)
		show_order(stdout, order);
	json_decref(order);
	return rv == 0 ? CLI_DONE : run_failed(j, &err);
}

static int run_job(struct run_job *j, const char *text)
{
	struct ava_error err = {0};
	json_t *result = NULL;
	int rv = run_propose(j, text, &err);

	if (rv != 0)
		return run_failed(j, &err);
	if (!j->run[0] && o.yes && j->all_three)
		rv = reject(j,
			    "it would read your data, read the web and send data "
			    "out, which --yes alone does not allow (add --grant all_three if you "
			    "want that)",
			    &err);
	else if (!j->run[0] && o.yes && j->small[0])
		rv = reject(j, j->small, &err);
	else if (!j->run[0])
		rv = o.yes ? run_confirm(j, "yes", &err) : run_ask(j, &err);
	if (rv != 0)
		return run_failed(j, &err);
	if (j->group[0])
		return run_group(j);
	if (o.task.order != NULL)
		return run_standing(j);
	progress_init(&j->progress, j->talk, j->role);
	term_line(j->talk, WORDS_SPAWNING(words_mark(WORDS_MARK_START, term_utf8()),
					  j->progress.role, j->run));
	if (o.background)
		return leave_in_background(j);
	rv = run_follow(j, &result, &err);
	if (rv == 0) {
		tell_end(j, j->role, result);
		if (o.json) {
			show_json(stdout, result);
		} else {
			fputc('\n', stdout);
			show_result(stdout, result);
		}
		rv = cli_exit_of_status(json_str(result, "status"));
	} else {
		err_set(&err, err.code, "%s; see: ava status %s", err.text, j->run);
		rv = run_failed(j, &err);
	}
	json_decref(result);
	return rv;
}

/* With --parallel, options of one task stand in its line of the file; --timeout and
 * --max-cost-cents hold for all. */
static int check_usage(int argc)
{
	struct task_options each = o.task;

	if (o.task.parallel == NULL && argc == 0)
		return cli_error(CLI_USAGE, "say what is to be done: ava run TASK");
	if (o.task.parallel == NULL && (o.task.chain || o.task.share))
		return cli_error(CLI_USAGE, "--chain and --share belong to --parallel FILE");
	each.spawn.timeout_ms = each.spawn.max_cost_microusd = 0;
	if (o.task.parallel != NULL && (argc > 0 || task_any(&each)))
		return cli_error(CLI_USAGE,
				 "with --parallel there is no TASK, and role, model and the like "
				 "stand in the lines of its file");
	return CLI_DONE;
}

static int run_run(int argc, char **argv)
{
	const char *task = argc > 0 ? argv[0] : "";
	const char *from = o.task.parallel != NULL ? o.task.parallel : task;
	struct run_job j = {.talk = o.json || o.yes ? stderr : stdout, .answers = STDIN_FILENO};
	int code = check_usage(argc);

	if (code != CLI_DONE)
		return code;
	/* Answers come from the terminal, if there is one, when the task or a file did from stdin.
	 */
	if (strcmp(from, "-") == 0 || task_file_is_stdin(&o.task))
		j.answers = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY);
	code = run_job(&j, task);
	if (j.answers > STDIN_FILENO)
		close(j.answers);
	return code;
}

/* ---- ava resume: the same, from where an ended run stopped */

static int run_go_on(const char *run)
{
	struct run_job j = {.talk = o.json || o.yes ? stderr : stdout, .answers = STDIN_FILENO};
	struct ava_error err;
	int code;

	o.task.resume = run;
	if (task_check_from(o.task.from, &err) != 0)
		return cli_error(CLI_USAGE, "%s", err.text);
	code = run_job(&j, "");
	return code;
}

static int run_resume(int argc, char **argv)
{
	return run_go_on(argv[0]);
}

int run_order(const struct task_options *task, const char *text, bool yes, bool json)
{
	struct run_job j = {.talk = json || yes ? stderr : stdout, .answers = STDIN_FILENO};

	o.task = *task;
	o.yes = yes;
	o.json = json;
	if (strcmp(text, "-") == 0 || task_file_is_stdin(&o.task))
		return cli_error(CLI_USAGE, "the task of an order is words, not standard input");
	return run_job(&j, text);
}

int run_fork(const char *run, const char *from, const char *model, bool yes, bool json)
{
	o.task = (struct task_options){0};
	o.task.from = from;
	o.task.spawn.model = model;
	o.yes = yes;
	o.json = json;
	return run_go_on(run);
}

static const struct opt resume_opts[] = {
	OPT("from", 0, STR, "N|NAME", task.from,
	    "not at its end: fork before the N-th call of its model, or at a checkpoint"),
	OPT("model", 'm', STR, "MODEL", task.spawn.model, "another model of the same kind"),
	OPT("grant", 0, LIST, "GRANT", task.grants,
	    "of that run's, or all_three: a yes to all three rights"),
	SPAWN_LIMITS(OPTION) ANSWERS,
};

const struct command cmd_resume =
	COMMAND("resume", "S-id", 1, 1, "go on from where an ended run stopped, with a new budget",
		"A new run with an id of its own begins with the whole conversation of S-id. "
		"What is not\n"
		"named is as it was: role, model, tools, folder and limits. The quote is shown and "
		"asked\n"
		"about as in ava run. A run that did not end needs no resume: it goes on by "
		"itself.\n"
		"\n"
		"  ava resume S-7f3a2b --max-cost-cents 50\n",
		OPTIONS(resume_opts), run_resume);

const struct command cmd_run = COMMAND(
	"run", "TASK", 0, 1, "give a task to a subagent: quote, yes or no, updates, result",
	"TASK \"-\" reads it from standard input. The subagent may read the current folder,\n"
	"unless --no-files is given.\n"
	"The quote is shown and one line is read as the answer, in plain words: yes, no, \"yes,\n"
	"but max 20 cents\" (runs with less), \"use haiku\" or \"10 minutes\" (is quoted again).\n"
	"Anything but a yes starts nothing (exit 4). Ctrl-C cancels the run.\n"
	"A run that can read your data, reads the web and can send data out needs "
	"a\nyes that says so (\"yes, all three\"); with --yes, --grant all_three says it.\n"
	"With --parallel each line is an object as {\"task\":\"…\",\"role\":\"researcher\"}, or "
	"the\n"
	"file a list of them; --timeout and --max-cost-cents hold for all runs together. "
	"{\"id\":\"plan\",…} gives one a name, and\n"
	"{\"after\":[\"plan\"],…} lets another begin when that has succeeded, with what it found.\n"
	"\n"
	"  ava run 'find out where the journal is flushed, with path and line'\n"
	"  ava run --parallel tasks.jsonl --max-cost-cents 100\n"
	"  ava run --role code_reviewer --yes --json 'review src/journal' >result.json\n",
	OPTIONS(opts), run_run);
