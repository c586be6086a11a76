/* ava confirm P-id, ava reject P-id: the answer to a quote. What is confirmed
 * is what was quoted, or less where the answer lowers something (--set,
 * --answer); any other change is quoted again and starts nothing (exit 4).
 * Answering the same again gives the same answer; a proposal that expired or
 * was rejected ends with 4. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/util.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "cli/term.h"
#include "codec/json.h"

static struct {
	struct opt_list set;
	const char *answer, *reason;
	bool json;
} o;

static const struct opt confirm_opts[] = {
	OPT("set", 's', LIST, "KEY=VALUE", set,
	    "change this of the quote (may be repeated); see below"),
	OPT("answer", 0, STR, "TEXT", answer, "answer in plain words instead of yes"),
	OPT("json", 0, FLAG, NULL, json, "as one JSON object"),
};

static const struct opt reject_opts[] = {
	OPT("reason", 0, STR, "TEXT", reason, "kept in the log"),
	OPT("json", 0, FLAG, NULL, json, "as one JSON object"),
};

/* ---- --set */

enum set_type { SET_TEXT, SET_NUMBER, SET_SWITCH, SET_LIST };

static const struct {
	const char *key;
	enum set_type type;
	int decimals; /* of a number */
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

/* Index into set_keys, or -1. */
static int find_key(const char *text, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(set_keys); i++)
		if (strlen(set_keys[i].key) == len && memcmp(set_keys[i].key, text, len) == 0)
			return (int)i;
	return -1;
}

static int put_number(struct jw *w, const char *key, const char *value, int decimals,
		      struct ava_error *err)
{
	int64_t n;

	if (!opts_fixed(value, decimals, &n))
		return err_set(err, AVA_EINVAL, "--set %s must be a %snumber, not \"%.40s\"", key,
			       decimals ? "" : "whole ", value);
	if (decimals)
		jw_fixed(w, key, n, decimals);
	else
		jw_int(w, key, n);
	return 0;
}

static int put_switch(struct jw *w, const char *key, const char *value, struct ava_error *err)
{
	bool on = strcmp(value, "on") == 0 || strcmp(value, "true") == 0;

	if (!on && strcmp(value, "off") != 0 && strcmp(value, "false") != 0)
		return err_set(err, AVA_EINVAL, "--set %s must be on or off, not \"%.40s\"", key,
			       value);
	jw_bool(w, key, on);
	return 0;
}

static void put_list(struct jw *w, const char *key, const char *value)
{
	jw_array(w, key);
	for (;;) {
		size_t len = strcspn(value, ",");

		jw_strn(w, NULL, value, len);
		if (!value[len])
			break;
		value += len + 1;
	}
	jw_end(w);
}

static int put_set(struct jw *w, const char *text, bool seen[], struct ava_error *err)
{
	size_t len = strcspn(text, "=");
	int i = find_key(text, len), rv = 0;
	const char *value = text + len + 1;

	if (text[len] != '=' || !*value)
		return err_set(err, AVA_EINVAL, "--set takes KEY=VALUE, not \"%.60s\"", text);
	if (i < 0)
		return err_set(err, AVA_EINVAL,
			       "--set %.*s: there are max_cost_cents, timeout, max_tokens, "
			       "max_iterations, preset, model, role, extended_thinking and without",
			       (int)MIN(len, 40), text);
	if (seen[i])
		return err_set(err, AVA_EINVAL, "--set %s is given twice", set_keys[i].key);
	seen[i] = true;
	switch (set_keys[i].type) {
	case SET_TEXT:
		jw_str(w, set_keys[i].key, value);
		break;
	case SET_NUMBER:
		rv = put_number(w, set_keys[i].key, value, set_keys[i].decimals, err);
		break;
	case SET_SWITCH:
		rv = put_switch(w, set_keys[i].key, value, err);
		break;
	case SET_LIST:
		put_list(w, set_keys[i].key, value);
		break;
	}
	return rv;
}

static int confirm_body(struct buf *body, struct ava_error *err)
{
	bool seen[ARRAY_LEN(set_keys)] = {false};
	struct jw w;
	int rv = 0;

	jw_init(&w, body);
	jw_object(&w, NULL);
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

/* ---- answering */

/* POST the answer; *out is what the daemon says. 0 or an exit code. */
static int answer(const char *id, const char *verb, const char *body, json_t **out)
{
	struct ava_error err;
	struct client *c;
	char path[64];
	int rv;

	*out = NULL;
	if (cli_check_proposal_id(id) != CLI_DONE)
		return CLI_USAGE;
	snprintf(path, sizeof(path), "/proposals/%s/%s", id, verb);
	rv = api_open_to_begin(&c, &err);
	if (rv == 0)
		rv = api_insist(&c, path, body, out, &err);
	client_close(c);
	return rv == 0 ? CLI_DONE : cli_fail(&err);
}

static void show_confirmed(const char *id, const json_t *p)
{
	const char *changes = json_str(p, "changes"), *run = json_str(p, "subagent_id");

	printf("%s is confirmed", id);
	if (*changes) {
		fputs(", ", stdout);
		term_str(stdout, changes);
		fputs(",", stdout);
	}
	if (*json_str(p, "group_id")) {
		printf(" and runs as %s: `ava ps` shows its runs.\n", json_str(p, "group_id"));
		return;
	}
	printf(" and runs as %s (%s).\n"
	       "Follow it: ava events %s -f; wait for it: ava wait %s\n",
	       run, json_str(p, "trace_id"), run, run);
}

/* Nothing was started: rejected, or quoted again. */
static int not_started(const char *id, const json_t *p)
{
	const char *message = json_str(p, "message"), *other = json_str(p, "proposal_id");

	if (strcmp(json_str(p, "state"), "pending") != 0)
		return cli_error(CLI_REJECTED, "%s is rejected: nothing was started", id);
	if (!o.json) {
		term_wrapped(stdout, message, strlen(message));
		putchar('\n');
	}
	return cli_error(CLI_REJECTED, "%s was replaced by %s, which waits for its answer", id,
			 other);
}

static int confirm_run(int argc, char **argv)
{
	struct ava_error err = {0};
	json_t *p = NULL;
	struct buf body;
	int code;

	buf_init(&body, 1 << 20);
	code = confirm_body(&body, &err) == 0 ? answer(argv[0], "confirm", body.data, &p)
					      : cli_fail(&err);
	buf_fini(&body);
	if (code != CLI_DONE)
		return code;
	if (o.json)
		show_json(stdout, p);
	if (strcmp(json_str(p, "state"), "confirmed") != 0)
		code = not_started(argv[0], p);
	else if (!o.json)
		show_confirmed(argv[0], p);
	json_decref(p);
	return code;
}

static int reject_run(int argc, char **argv)
{
	struct ava_error err;
	struct buf body;
	json_t *p = NULL;
	int code;

	if (api_texts(&body, &err, "reason", o.reason != NULL ? o.reason : "", NULL) != 0)
		code = cli_fail(&err);
	else
		code = answer(argv[0], "reject", body.data, &p);
	buf_fini(&body);
	if (code == CLI_DONE && o.json)
		show_json(stdout, p);
	else if (code == CLI_DONE)
		printf("%s is rejected: nothing was started.\n", argv[0]);
	json_decref(p);
	return code;
}

const struct command cmd_confirm = {
	.name = "confirm",
	.args = "P-id",
	.min_args = 1,
	.max_args = 1,
	.summary = "say yes to a quote: start what was quoted",
	.detail = "The keys of --set: max_cost_cents, timeout (seconds), max_tokens, "
		  "max_iterations,\n"
		  "preset, model, role, extended_thinking (on, off), without (tools, commas "
		  "between).\n"
		  "What only lowers a limit or leaves tools out runs; any other change is quoted "
		  "again\n"
		  "by a new proposal, and nothing is started (exit 4).\n"
		  "\n"
		  "  ava confirm P-19c0de --set max_cost_cents=20 --set timeout=300\n"
		  "  ava confirm P-19c0de --answer 'yes, but at most 5 minutes'\n",
	OPTIONS(confirm_opts),
	.run = confirm_run,
};

const struct command cmd_reject = {
	.name = "reject",
	.args = "P-id",
	.min_args = 1,
	.max_args = 1,
	.summary = "say no to a quote",
	OPTIONS(reject_opts),
	.run = reject_run,
};
