/* Commands that say something to runs and proposals: ava cancel, confirm, reject, steer,
 * replay. All but replay may be asked again without harm, so they are, when the connection
 * breaks.
 *
 * cancel is answered when the ends of all are on disk. A run that had ended keeps its
 * status, and cancelling it is no error; one that is not known is (exit 5). --all asks first
 * on a terminal; anything but a yes cancels nothing (exit 4).
 *
 * confirm starts what was quoted, or less where the answer lowers something (--set,
 * --answer); any other change is quoted again and starts nothing (exit 4).
 *
 * steer: an answer is done with when it is on disk. A message is read at the next turn
 * boundary, which may be minutes away: the run's events say when, and this waits for it
 * unless told not to (exit 124 when the time is up; the message stays). A run that ended
 * before it read it: exit 1.
 *
 * replay: the daemon executes the run again from its record, as far as that goes. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/id.h"
#include "base/util.h"
#include "base/words.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/face.h"
#include "cli/show.h"
#include "cli/task.h"
#include "cli/term.h"
#include "codec/json.h"

#define ASK_SHOWN  10 /* runs named in the question */
#define TEXT_MAX   8192
#define MOVE_MS    60000 /* until ava move gives up */
#define REASON_MAX 1900  /* with the no before it, a line of the grammar */

static struct {
	bool all, yes, json, no_wait, lenient, without_copy;
	struct opt_list set;
	const char *answer, *reason, *call, *from, *model;
	int64_t timeout_ms;
} o;

static const struct opt cancel_opts[] = {
	OPT("all", 'a', FLAG, NULL, all, "every live run"),
	OPT("yes", 'y', FLAG, NULL, yes, "--all: do not ask"),
	OPT("json", 0, FLAG, NULL, json, "what each has become as JSON, one a line"),
};

static const struct opt confirm_opts[] = {
	OPT("set", 's', LIST, "KEY=VALUE", set,
	    "change this of the quote (may be repeated); see below"),
	OPT("answer", 0, STR, "TEXT", answer, "answer in plain words instead of yes"),
	OPT("yes", 'y', FLAG, NULL, yes, "on a terminal: without showing the quote first"),
	OPT("json", 0, FLAG, NULL, json, "as one JSON object"),
};

static const struct opt answer_opts[] = {
	OPT("set", 's', LIST, "KEY=VALUE", set,
	    "of a quote: change this (may be repeated), as `ava confirm` does"),
	OPT("json", 0, FLAG, NULL, json, "what became of it as one JSON object"),
};

static const struct opt reject_opts[] = {
	OPT("reason", 0, STR, "TEXT", reason, "kept in the log"),
	OPT("json", 0, FLAG, NULL, json, "as one JSON object"),
};

static const struct opt steer_opts[] = {
	OPT("call", 0, STR, "ID", call, "only as the answer to this question (as c3.1)"),
	OPT("timeout", 0, SECONDS, "S", timeout_ms, "wait at most so long until it is read"),
	OPT("no-wait", 0, FLAG, NULL, no_wait, "do not wait until it is read"),
	OPT("json", 0, FLAG, NULL, json, "what became of it as JSON"),
};

static const struct opt move_opts[] = {
	OPT("without-copy", 0, FLAG, NULL, without_copy,
	    "though what it has changed in its copy of the project stays behind"),
	OPT("timeout", 0, SECONDS, "S", timeout_ms, "wait at most so long (60)"),
	OPT("json", 0, FLAG, NULL, json, "the run as one JSON object"),
};

static const struct opt replay_opts[] = {
	OPT("lenient", 0, FLAG, NULL, lenient,
	    "note where bytes differ and go on with the record's"),
	OPT("from", 0, STR, "N|NAME", from,
	    "replay up to the N-th call of its model, or a checkpoint, and fork there: a new "
	    "run, confirmed"),
	OPT("model", 'm', STR, "MODEL", model, "with --from: another model of the same kind"),
	OPT("yes", 'y', FLAG, NULL, yes, "with --from: confirm without asking"),
	OPT("json", 0, FLAG, NULL, json, "the report (with --from the result) as JSON"),
};

/* ---- cancel */

/* "stopped: a model call, read_file; nothing of it is left" */
static void print_proof(const json_t *one)
{
	const json_t *stopped = json_object_get(one, "stopped"), *name;
	bool call = json_get_bool(stopped, "model_call", false), some = call;
	int64_t left = json_get_int(one, "left", 0);
	size_t i;

	if (!call && json_array_size(json_object_get(stopped, "tools")) == 0)
		fputs(" (nothing was at work", stdout);
	else
		fputs(call ? " (stopped: a model call" : " (stopped: ", stdout);
	json_array_foreach(json_object_get(stopped, "tools"), i, name)
	{
		term_print(stdout, "%s%s", some ? ", " : "",
			   json_is_string(name) ? json_string_value(name) : "?");
		some = true;
	}
	if (left > 0)
		printf("; %" PRId64 " of it wind%s up", left, left == 1 ? "s" : "");
	else if (some)
		fputs("; nothing of it is left", stdout);
	puts(")");
}

static void print_cancelled(json_t *one)
{
	json_t *run = json_object_get(one, "run");
	bool had_ended = json_get_bool(one, "had_ended", false);

	if (o.json) {
		json_incref(run); /* show the outcome's members beside the run's */
		json_object_del(one, "run");
		json_object_update(run, one);
		show_json(stdout, run);
		json_decref(run);
		return;
	}
	term_print(stdout, "%s%s %s", json_str(run, "subagent_id"), had_ended ? " had ended:" : "",
		   words_status(json_str(run, "status")));
	if (had_ended)
		putchar('\n');
	else
		print_proof(one);
}

static int act_not_stopped(const json_t *error)
{
	bool none = strcmp(json_str(error, "code"), err_word(AVA_EIO)) != 0;

	return cli_error(none ? CLI_NOSUCH : CLI_FAILED, "%s", json_str(error, "message"));
}

static int print_all(const json_t *reply)
{
	json_t *one;
	size_t i;
	int code = CLI_DONE;

	json_array_foreach(json_object_get(reply, "runs"), i, one)
	{
		if (json_object_get(one, "unknown") != NULL)
			code = act_not_stopped(json_object_get(one, "error"));
		else
			print_cancelled(one);
	}
	if (o.all && i == 0 && !o.json)
		puts("No run is live.");
	return code;
}

static void act_print_question(const json_t *runs, int64_t n)
{
	const json_t *run;
	size_t i;

	json_array_foreach(runs, i, run)
	{
		char *words = status_line(run, term_width(stderr));

		if (i == ASK_SHOWN)
			break;
		fprintf(stderr, "%s ", json_str(run, "subagent_id"));
		if (words != NULL)
			term_cut(stderr, words, strlen(words), MAX(term_width(stderr), 20) - 10);
		fputc('\n', stderr);
		free(words);
	}
	if (n > ASK_SHOWN)
		fprintf(stderr, "and %" PRId64 " more\n", n - ASK_SHOWN);
	fprintf(stderr, "Cancel %s? [Yes/No] ", n == 1 ? "this run" : "all of them");
}

/* Ask whether to cancel all runs. CLI_DONE: yes, or no question is needed. */
static int ask_all(void)
{
	json_t *health = NULL, *runs = NULL;
	struct ava_error err;
	int64_t n = 0;
	int rv;

	if (o.yes || !isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return CLI_DONE;
	rv = api_request(NULL, &health, &err, "/health");
	if (rv == 0)
		rv = api_request(NULL, &runs, &err, "/runs?limit=%d", ASK_SHOWN);
	n = json_get_int(json_object_get(health, "runs"), "running", 0);
	if (rv == 0 && n > 0) {
		act_print_question(json_object_get(runs, "runs"), n);
		if (task_yes() != 1)
			rv = err_set(&err, AVA_EREJECTED, "no yes: nothing was cancelled");
	}
	json_decref(health);
	json_decref(runs);
	return rv == 0 ? CLI_DONE : cli_fail(&err);
}

/* "G-7f3a2b": as a proposal's with another letter. */
static bool is_group(const char *id)
{
	char proposal[24];

	return id[0] == 'G' &&
	       snprintf(proposal, sizeof(proposal), "P%s", id + 1) < (int)sizeof(proposal) &&
	       id_is_proposal(proposal);
}

static int cancel_body(struct buf *b, int argc, char **argv, struct ava_error *err)
{
	struct jw w;
	int rv = 0;

	api_body(&w, b, 1u << 20);
	if (o.all)
		jw_bool(&w, "all", true);
	else
		jw_array(&w, "ids");
	for (int i = 0; rv == 0 && i < argc; i++) {
		json_t *group = NULL, *run;
		size_t k;

		if (is_group(argv[i]))
			rv = api_request(NULL, &group, err, "/groups/%s", argv[i]);
		else
			jw_str(&w, NULL, argv[i]);
		json_array_foreach(json_object_get(group, "runs"), k, run)
			jw_str(&w, NULL, json_str(run, "subagent_id"));
		json_decref(group);
	}
	while (w.depth > 0)
		jw_end(&w);
	if (rv == 0 && buf_check(b) != 0)
		rv = err_set(err, buf_check(b),
			     "too many ids at once: cancel them in several commands");
	return rv;
}

static int act_cancel(int argc, char **argv)
{
	struct ava_error err;
	json_t *reply = NULL;
	struct buf body;
	int rv = cancel_body(&body, argc, argv, &err), code;

	if (rv == 0)
		rv = api_request(body.data, &reply, &err, "/runs/cancel");
	code = rv == 0 ? print_all(reply) : cli_fail(&err);
	json_decref(reply);
	buf_fini(&body);
	return code;
}

static int cancel_run(int argc, char **argv)
{
	int code;

	if (argc == 1 && strcmp(argv[0], "all") == 0) { /* as in a conversation: short for --all */
		o.all = true;
		argc = 0;
	}
	if (o.all == (argc > 0))
		return cli_error(CLI_USAGE, o.all ? "give ids or --all, not both"
						  : "give it the ids of runs, or --all");
	for (int i = 0; i < argc; i++)
		if (!is_group(argv[i]) && cli_check_run_id(argv[i]) != CLI_DONE)
			return CLI_USAGE;
	code = o.all ? ask_all() : CLI_DONE;
	return code == CLI_DONE ? act_cancel(argc, argv) : code;
}

/* ---- confirm and reject */

enum set_type { SET_TEXT, SET_NUMBER, SET_SWITCH, SET_LIST };

static const struct {
	const char *key;
	enum set_type type;
	int decimals; /* most decimals of a number */
} set_keys[] = {
	{"max_cost_cents", SET_NUMBER, 4},
	{"timeout", SET_NUMBER, 3},
	{"max_tokens", SET_NUMBER, 0},
	{"max_iterations", SET_NUMBER, 0},
	{"preset", SET_TEXT, 0},
	{"model", SET_TEXT, 0},
	{"role", SET_TEXT, 0},
	{"extended_thinking", SET_SWITCH, 0},
	{"without", SET_LIST, 0},
};

static int put_set(struct jw *w, const char *text, bool seen[], struct ava_error *err)
{
	size_t len = strcspn(text, "="), i = 0, n;
	const char *key, *value = text + len + 1;
	int64_t number;
	bool on;

	while (i < ARRAY_LEN(set_keys) &&
	       (strlen(set_keys[i].key) != len || memcmp(set_keys[i].key, text, len) != 0))
		i++;
	if (text[len] != '=' || !*value)
		return err_set(err, AVA_EINVAL, "--set takes KEY=VALUE, not \"%.60s\"", text);
	if (i == ARRAY_LEN(set_keys))
		return err_set(err, AVA_EINVAL,
			       "--set %.*s: there are max_cost_cents, timeout, max_tokens, "
			       "max_iterations, preset, model, role, extended_thinking and without",
			       (int)MIN(len, 40), text);
	key = set_keys[i].key;
	if (seen[i])
		return err_set(err, AVA_EINVAL, "--set %s is given twice", key);
	seen[i] = true;
	switch (set_keys[i].type) {
	case SET_TEXT:
		jw_str(w, key, value);
		break;
	case SET_NUMBER:
		if (!opts_fixed(value, set_keys[i].decimals, &number))
			return err_set(err, AVA_EINVAL,
				       "--set %s must be a %snumber, not \"%.40s\"", key,
				       set_keys[i].decimals ? "" : "whole ", value);
		if (set_keys[i].decimals)
			jw_fixed(w, key, number, set_keys[i].decimals);
		else
			jw_int(w, key, number);
		break;
	case SET_SWITCH:
		on = strcmp(value, "on") == 0 || strcmp(value, "true") == 0;
		if (!on && strcmp(value, "off") != 0 && strcmp(value, "false") != 0)
			return err_set(err, AVA_EINVAL, "--set %s must be on or off, not \"%.40s\"",
				       key, value);
		jw_bool(w, key, on);
		break;
	case SET_LIST:
		jw_array(w, key);
		for (; *value; value += n + (value[n] == ',')) {
			n = strcspn(value, ",");
			jw_strn(w, NULL, value, n);
		}
		jw_end(w);
		break;
	}
	return 0;
}

static int confirm_body(struct buf *body, struct ava_error *err)
{
	bool seen[ARRAY_LEN(set_keys)] = {false};
	struct jw w;
	int rv = 0;

	api_body(&w, body, 1 << 20);
	if (o.answer != NULL || o.set.n == 0) /* else --set is the answer */
		jw_str(&w, "answer", o.answer != NULL ? o.answer : "yes");
	if (o.set.n > 0)
		jw_object(&w, "set");
	for (size_t i = 0; i < o.set.n && rv == 0; i++)
		rv = put_set(&w, o.set.items[i], seen, err);
	if (o.set.n > 0)
		jw_end(&w);
	jw_end(&w);
	if (rv == 0 && buf_check(body) != 0)
		rv = err_set(err, AVA_EINVAL, "the answer is too long");
	return rv;
}

/* POST the answer; *out is what the daemon says. 0 or an exit code. */
static int act_answer(const char *id, const char *body, json_t **out)
{
	struct ava_error err;
	int rv = api_open(API_BEGIN, &err);

	*out = NULL;
	if (rv == 0)
		rv = api_request(body, out, &err, "/proposals/%s/confirm", id);
	return rv == 0 ? CLI_DONE : cli_fail(&err);
}

static void show_confirmed(const char *id, const json_t *p)
{
	const char *changes = json_str(p, "changes"), *run = json_str(p, "subagent_id"),
		   *group = json_str(p, "group_id"), *order = json_str(p, "order_id");

	if (*order) {
		term_print(stdout,
			   "%s is confirmed%s%s: %s starts its runs as quoted (ava schedule "
			   "show %s).\n",
			   id, *changes ? ", " : "", changes, order, order);
		return;
	}
	term_print(stdout, "%s is confirmed%s%s%s and runs as ", id, *changes ? ", " : "", changes,
		   *changes ? "," : "");
	if (*group) {
		printf("%s: `ava ps` shows its runs.\n", group);
		return;
	}
	printf("%s (%s).\n", run, json_str(p, "trace_id"));
	term_line(stdout, WORDS_FOLLOW(run));
}

/* Tell a proposal that was rejected, or quoted again. */
static int not_started(const char *id, const json_t *p)
{
	const char *message = json_str(p, "message"), *other = json_str(p, "proposal_id");

	if (strcmp(json_str(p, "state"), "pending") != 0)
		return cli_error(CLI_REJECTED, WORDS_REJECTED(id));
	if (!o.json) {
		term_wrapped(stdout, message, strlen(message));
		putchar('\n');
	}
	return cli_error(CLI_REJECTED, "%s was replaced by %s, which waits for its answer", id,
			 other);
}

/* Instead of a bare yes, show the quote on a terminal, as it may come from another door, and ask.
 * CLI_DONE: the person answered. */
static int act_ask_quote(const char *id)
{
	static char said[4096];
	struct ava_error err = {0};
	json_t *p = NULL;
	int rv;

	if (o.yes || o.json || o.answer != NULL || o.set.n > 0 || !isatty(STDIN_FILENO) ||
	    !isatty(STDERR_FILENO))
		return CLI_DONE;
	rv = api_ask(&p, NULL, "/proposals/%s", id);
	if (rv == CLI_DONE && strcmp(json_str(p, "state"), "pending") == 0) {
		const char *question = strstr(json_str(p, "message"), "\n" WORDS_PROCEED);

		show_proposal(stderr, p);
		term_print(stderr, "%s ", question != NULL ? question + 1 : WORDS_PROCEED);
		rv = task_answer(STDIN_FILENO, said, &err);
		if (rv < 0)
			rv = cli_fail(&err);
		else if (rv == 0 || said[0] == '\0')
			rv = cli_error(CLI_REJECTED, "no answer: %s still waits for one", id);
		else
			rv = CLI_DONE;
		o.answer = said[0] != '\0' ? said : NULL;
	}
	json_decref(p);
	return rv;
}

/* Says o.answer and o.set to a quote. `no`: a no is what was meant, and no failure. */
static int act_confirm(const char *id, bool no)
{
	struct ava_error err = {0};
	json_t *p = NULL;
	struct buf body;
	int code;

	buf_init(&body, 1 << 20);
	code = confirm_body(&body, &err) == 0 ? act_answer(id, body.data, &p) : cli_fail(&err);
	buf_fini(&body);
	if (code != CLI_DONE)
		return code;
	if (o.json)
		show_json(stdout, p);
	if (no && strcmp(json_str(p, "state"), "rejected") == 0) {
		if (!o.json)
			term_line(stdout, WORDS_REJECTED(id));
	} else if (strcmp(json_str(p, "state"), "confirmed") != 0) {
		code = not_started(id, p);
	} else if (!o.json) {
		show_confirmed(id, p);
	}
	json_decref(p);
	return code;
}

static int confirm_run(int argc, char **argv)
{
	int code = act_ask_quote(argv[0]);

	return code == CLI_DONE ? act_confirm(argv[0], false) : code;
}

static int reject_run(int argc, char **argv)
{
	static char no[TEXT_MAX];
	const char *why = o.reason != NULL ? o.reason : "";

	if (strlen(why) > REASON_MAX)
		return cli_error(CLI_USAGE, "the reason is too long");
	snprintf(no, sizeof(no), "no%s%s", *why ? ": " : "", why);
	o.answer = no;
	return act_confirm(argv[0], true);
}

/* ---- steer */

struct wait {
	const char *steer_id;
	char outcome[24];
};

static int act_on_event(const struct sse_event *e, void *user)
{
	struct wait *w = user;
	json_t *event;
	const json_t *content;

	if (strcmp(e->event, "Steering") != 0)
		return 0;
	event = json_parse(e->data, e->len, NULL);
	content = json_object_get(event, "content");
	if (strcmp(json_str(content, "steerId"), w->steer_id) == 0 &&
	    strcmp(json_str(content, "outcome"), "queued") != 0)
		snprintf(w->outcome, sizeof(w->outcome), "%s", json_str(content, "outcome"));
	json_decref(event);
	return w->outcome[0] != '\0';
}

static int act_tell(const char *run, json_t *reply, const char *outcome)
{
	bool late = strcmp(outcome, "too_late") == 0;

	if (o.json) {
		json_object_set_new(reply, "outcome", json_string(outcome));
		show_json(stdout, reply);
	} else if (strcmp(outcome, "answered") == 0) {
		term_line(stdout, WORDS_HAS_ANSWER(run));
	} else if (strcmp(outcome, "delivered") == 0) {
		printf("%s has read it.\n", run);
	} else if (!late) {
		term_line(stdout, WORDS_READS_LATER(run));
	}
	return late ? cli_error(CLI_FAILED, "%s ended before it read that", run) : CLI_DONE;
}

static int act_steer(const char *run, const char *text)
{
	struct wait w = {0};
	struct follow f = {.run = run, .on_event = act_on_event, .user = &w};
	struct ava_error err = {0};
	json_t *reply = NULL, *status = NULL;
	int rv = api_steer(run, o.call, text, &reply, &err), code;
	bool queued, parked, blocked, paused, late;

	if (rv != 0)
		return cli_fail(&err);
	w.steer_id = json_str(reply, "steer_id");
	queued = strcmp(json_str(reply, "outcome"), "queued") == 0;
	/* Parked or paused until tonight, or behind others, it reads nothing before. */
	if (queued)
		(void)api_request(NULL, &status, NULL, "/runs/%s", run);
	parked = strcmp(json_str(status, "status"), "parked") == 0;
	blocked = strcmp(json_str(status, "status"), "blocked") == 0;
	paused = json_get_bool(status, "pause", false);
	json_decref(status);
	f.until_ms = o.timeout_ms > 0 ? clock_mono_ms() + o.timeout_ms : 0;
	if (queued && !o.no_wait && !parked && !blocked &&
	    !paused) /* the event with the message's outcome */
		rv = api_follow(&f, &err);
	late = f.until_ms > 0 && clock_mono_ms() >= f.until_ms;
	if (rv < 0)
		code = cli_fail(&err);
	else if (late && w.outcome[0] == '\0')
		code = cli_error(CLI_WAITED,
				 "%s has not read it yet; it will, unless it ends before", run);
	else
		code = act_tell(run, reply,
				w.outcome[0] != '\0' ? w.outcome : json_str(reply, "outcome"));
	if (paused && !o.json)
		printf("It is paused: it reads that when it goes on (ava unpause %s).\n", run);
	if (parked && !o.json)
		puts("It is parked until then; what it takes at once is wait, now, go on with "
		     "MODEL, or stop.");
	json_decref(reply);
	return code;
}

static int steer_run(int argc, char **argv)
{
	struct buf text;
	int code = cli_words(&text, TEXT_MAX - 1, argc - 1, argv + 1);

	if (code == CLI_DONE)
		code = act_steer(argv[0], text.data);
	buf_fini(&text);
	return code;
}

/* ---- answer */

/* Any other Ask than a quote. */
static int act_say_to(const char *id, const char *text)
{
	struct session_id request = id_session(); /* asking twice says it once */
	struct ava_error err;
	json_t *a = NULL;
	char path[96];

	snprintf(path, sizeof(path), "/asks/%.60s", id);
	if (api_post(&a, &err, path, "text", text, "request_id", request.text, NULL) != 0)
		return cli_fail(&err);
	if (o.json)
		show_json(stdout, a);
	else
		term_line(stdout, WORDS_HAS_ANSWER(json_str(a, "id")));
	json_decref(a);
	return CLI_DONE;
}

static int answer_run(int argc, char **argv)
{
	bool quote = argv[0][0] == 'P' || argv[0][0] == 'p';
	struct buf text;
	int code;

	if (argc == 1 && (!quote || o.set.n == 0))
		return cli_error(CLI_USAGE, "say what to answer: yes, no, or other words");
	if (!quote && o.set.n > 0)
		return cli_error(CLI_USAGE, "--set goes with a quote, P-id");
	buf_init(&text, TEXT_MAX);
	code = argc > 1 ? cli_words(&text, TEXT_MAX - 1, argc - 1, argv + 1) : CLI_DONE;
	o.answer = argc > 1 ? text.data : NULL;
	if (code == CLI_DONE)
		code = quote ? act_confirm(argv[0], true) : act_say_to(argv[0], text.data);
	buf_fini(&text);
	return code;
}

/* ---- replay */

static void print_side(const char *name, const char *text)
{
	printf("    %s: ", name);
	term_cut(stdout, text, strlen(text), 0);
	putchar('\n');
}

static void print_difference(const json_t *d)
{
	int64_t byte = json_get_int(d, "byte", -1), seq = json_get_int(d, "seq", 0);
	const char *call = json_str(d, "call_id");

	if (seq > 0)
		term_print(stdout, "  event %" PRId64 " (%s%s%s, lsn %" PRId64 "): ", seq,
			   json_str(d, "eventType"), call[0] != '\0' ? " " : "", call,
			   json_get_int(d, "lsn", 0));
	else
		fputs("  behind the last event: ", stdout);
	term_print(stdout, "%s differs", json_str(d, "what"));
	if (byte >= 0)
		printf(" at byte %" PRId64, byte);
	putchar('\n');
	print_side("recorded", json_str(d, "recorded"));
	print_side("replayed", json_str(d, "replayed"));
}

static int print_replay(const char *id, const json_t *report)
{
	const json_t *list = json_object_get(report, "differences");
	bool identical = json_get_bool(report, "identical", false);
	int64_t turns = json_get_int(report, "turns", 0);

	if (o.json) {
		show_json(stdout, report);
		return identical ? CLI_DONE : CLI_FAILED;
	}
	printf("%s %s: %" PRId64 " model call%s, %" PRId64 " events\n", id,
	       identical ? "replays identically" : "does not replay identically", turns,
	       WORDS_S(turns), json_get_int(report, "events", 0));
	if (json_str(report, "reason")[0] != '\0')
		term_print(stdout, "  so far: %s\n", json_str(report, "reason"));
	for (size_t i = 0; i < json_array_size(list); i++)
		print_difference(json_array_get(list, i));
	return identical ? CLI_DONE : CLI_FAILED;
}

static int act_replay_run(int argc, char **argv)
{
	json_t *report = NULL;
	int code;

	if (o.from != NULL)
		return o.lenient ? cli_error(CLI_USAGE, "--lenient does not go with --from")
				 : run_fork(argv[0], o.from, o.model, o.yes, o.json);
	if (o.model != NULL || o.yes)
		return cli_error(CLI_USAGE, "--model and --yes go with --from");
	code = api_ask(&report, o.lenient ? "{\"lenient\":true}" : "{}", "/runs/%s/replay",
		       argv[0]);
	if (code == CLI_DONE)
		code = print_replay(argv[0], report);
	json_decref(report);
	return code;
}

/* ---- move */

/* The daemon waits a while for each; a run that is still wanted comes, whoever waits for it. */
static int act_move(const char *id)
{
	int64_t end = clock_mono_ms() + (o.timeout_ms > 0 ? o.timeout_ms : MOVE_MS);
	struct ava_error err;
	json_t *answer = NULL;
	bool noted = false;

	for (;;) {
		const char *waits;

		if (api_request(o.without_copy ? "{\"without_copy\":true}" : "{}", &answer, &err,
				"/runs/%s/move", id) != 0)
			return cli_fail(&err);
		waits = json_str(answer, "waits");
		if (waits[0] == '\0')
			break;
		if (clock_mono_ms() >= end) {
			cli_error(CLI_WAITED, "%s", waits);
			json_decref(answer);
			return CLI_WAITED;
		}
		if (!noted)
			cli_note("%s", waits);
		noted = true;
		json_decref(answer);
		answer = NULL;
	}
	if (o.json)
		show_json(stdout, json_object_get(answer, "run"));
	else
		term_print(stdout, "%s goes on here.\n", id);
	json_decref(answer);
	return CLI_DONE;
}

static int move_run(int argc, char **argv)
{
	return cli_check_run_id(argv[0]) == CLI_DONE ? act_move(argv[0]) : CLI_USAGE;
}

const struct command cmd_move = COMMAND(
	"move", "S-id", 1, 1, "let a run of another machine of the cluster go on here",
	"A run whose machine is gone, or that is held, is taken. A machine that is alive stops "
	"the\n"
	"run, sends what it wrote and the changes of its copy of the project, and gives it away.\n"
	"Its folder must be here, at the same place (doc/CLUSTER.md). Exit code 124: it is not\n"
	"here yet, and still comes.\n",
	OPTIONS(move_opts), move_run);
const struct command cmd_cancel = COMMAND("cancel", "S-id...|G-id|all", 0, -1, "stop runs for good",
					  NULL, OPTIONS(cancel_opts), cancel_run);
const struct command cmd_answer =
	COMMAND("answer", "ID WORDS", 1, -1, "answer what waits: a quote, or what a run asks",
		"The words are a yes, a no, or for a quote what to change (see `ava confirm`).\n"
		"\n"
		"  ava answer P-19c0de yes, but at most 5 minutes\n"
		"  ava answer S-7f3a2b no: not in this folder\n",
		OPTIONS(answer_opts), answer_run);
const struct command cmd_confirm =
	COMMAND("confirm", "P-id", 1, 1, "say yes to a quote: start what was quoted",
		"On a terminal the quote is shown first, and your answer is asked for.\n"
		"\n"
		"The keys of --set: max_cost_cents, timeout (seconds), max_tokens, "
		"max_iterations,\n"
		"preset, model, role, extended_thinking (on, off), without (tools, commas "
		"between).\n"
		"What only lowers a limit or leaves tools out runs; any other change is quoted "
		"again\n"
		"by a new proposal, and nothing is started (exit 4).\n"
		"\n"
		"  ava confirm P-19c0de --set max_cost_cents=20 --set timeout=300\n"
		"  ava confirm P-19c0de --answer 'yes, but at most 5 minutes'\n",
		OPTIONS(confirm_opts), confirm_run);
const struct command cmd_reject = COMMAND("reject", "P-id", 1, 1, "say no to a quote", NULL,
					  OPTIONS(reject_opts), reject_run);
const struct command cmd_steer =
	COMMAND("steer", "S-id TEXT", 2, -1, "tell a run something, or answer what it asks", NULL,
		OPTIONS(steer_opts), steer_run);
const struct command cmd_replay = COMMAND(
	"replay", "S-id", 1, 1, "execute a run again from its record, and say where the two part",
	"No network, no tool and no key is used, and nothing is written. It stops at the\n"
	"first difference, with the event and the byte. The exit code is 0 when there is\n"
	"none as far as the record goes, else 1.\n",
	OPTIONS(replay_opts), act_replay_run);
