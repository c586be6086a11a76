/* ava trigger: addresses that start a standing order (doc/TRIGGERS.md): list, add, rm.
 *
 * A token and a secret are printed once, when they are made. Slack's secret is read from standard
 * input, so that it stands in no list of processes and in no history of a shell. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/util.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "cli/term.h"
#include "codec/json.h"

#define BODY_MAX 16384

static const char *const signatures[] = {"github", "slack", "plain", NULL};

static struct {
	bool json;
	const char *how;
} o;

static const struct opt trigger_opts[] = {
	OPT("signed", 0, STR, "HOW", how,
	    "add: github, slack or plain: deliveries are signed with a secret, too",
	    .words = signatures),
	OPT("json", 0, FLAG, NULL, json, "the daemon's objects"),
};

static int trigger_list(void)
{
	static const struct column columns[] = {
		{"NAME", COLUMN_TEXT, "name"},
		{"ORDER", COLUMN_TEXT, "order_id"},
		{"STATE", COLUMN_TEXT, "state"},
		{"SIGNED", COLUMN_TEXT, "signed"},
		{"SINCE", COLUMN_MOMENT, "made_at", .spare = true},
	};
	json_t *reply = NULL;
	const json_t *rows;
	int code = api_ask(&reply, NULL, "/triggers");

	rows = json_object_get(reply, "triggers");
	if (code == CLI_DONE && o.json)
		show_json(stdout, reply);
	else if (code == CLI_DONE && json_array_size(rows) == 0)
		puts("There are no triggers (ava trigger add NAME O-id).");
	else if (code == CLI_DONE)
		code = show_table(columns, ARRAY_LEN(columns), rows);
	if (code == CLI_DONE && !o.json && json_array_size(rows) > 0)
		term_print(stdout, "Deliveries go to %s/api/v1/triggers/NAME\n",
			   json_str(reply, "url"));
	json_decref(reply);
	return code;
}

/* Slack's secret; with another kind nothing is read. */
static int trigger_secret(struct buf *secret)
{
	struct ava_error err = {0};

	if (!o.how || strcmp(o.how, "slack") != 0)
		return CLI_DONE;
	if (isatty(STDIN_FILENO))
		fputs("Signing secret of the Slack app, then Enter and Ctrl-D: ", stderr);
	if (cli_read(STDIN_FILENO, "standard input", secret, &err) != 0)
		return cli_fail(&err);
	while (secret->len > 0 && strchr(" \t\r\n", secret->data[secret->len - 1]))
		secret->data[--secret->len] = '\0';
	return CLI_DONE;
}

static void trigger_show(const json_t *t)
{
	const char *name = json_str(t, "name"), *secret = json_str(t, "secret");
	const char *url = json_str(t, "url")[0] ? json_str(t, "url") : "http://127.0.0.1:PORT";

	term_print(stdout, "Deliveries to %s start %s, within what you confirmed for it:\n", name,
		   json_str(t, "order_id"));
	term_print(stdout, "\n    POST %s/api/v1/triggers/%s\n", url, name);
	term_print(stdout, "    Authorization: Bearer %s\n", json_str(t, "token"));
	if (secret[0])
		term_print(stdout, "    secret of the signatures: %s\n", secret);
	printf("\nWhere no header can be set, ?token=... behind the address does the same. %s "
	       "shown "
	       "this\nonce. Only this machine reaches the address; doc/TRIGGERS.md has a tunnel.\n",
	       secret[0] ? "Both are" : "The token is");
}

static int trigger_add(const char *name, const char *order)
{
	json_t *reply = NULL;
	struct buf body, secret;
	struct jw w;
	int code;

	buf_init(&secret, 1u << 20); /* room for the pieces of cli_read */
	code = trigger_secret(&secret);
	api_body(&w, &body, BODY_MAX);
	jw_str(&w, "name", name);
	jw_str(&w, "order_id", order);
	if (o.how)
		jw_str(&w, "signed", o.how);
	if (secret.len > 0)
		jw_str(&w, "secret", secret.data);
	jw_end(&w);
	if (code == CLI_DONE)
		code = api_ask(&reply, body.data, "/triggers");
	buf_fini(&body);
	buf_fini(&secret);
	if (code == CLI_DONE && o.json)
		show_json(stdout, reply);
	else if (code == CLI_DONE)
		trigger_show(reply);
	json_decref(reply);
	return code;
}

static int trigger_run(int argc, char **argv)
{
	const char *what = argc > 0 ? argv[0] : "list";
	int code = CLI_DONE;

	if (strcmp(what, "list") == 0 && argc <= 1)
		return trigger_list();
	if (strcmp(what, "add") == 0 && argc == 3)
		return trigger_add(argv[1], argv[2]);
	if (strcmp(what, "rm") != 0 || argc < 2)
		return cli_error(CLI_USAGE,
				 "`ava trigger` takes list, add NAME O-id, or rm NAME...");
	for (int i = 1; i < argc && code == CLI_DONE; i++) {
		json_t *reply = NULL;

		code = api_ask(&reply, "{}", "/triggers/%s/rm", argv[i]);
		json_decref(reply);
		if (code == CLI_DONE)
			term_print(stdout, "%s is removed: its token is no longer good.\n",
				   argv[i]);
	}
	return code;
}

const struct command cmd_trigger =
	COMMAND("trigger", "[list] | add NAME O-id | rm NAME...", 0, -1,
		"addresses at which other programs start a standing order",
		"A delivery (POST) with the trigger's token starts a run of the order now; its "
		"body, 256 KB at\n"
		"the most, goes in as a stranger's text. The order's limits hold: money, count, "
		"one run at a\n"
		"time (with --overlap queue a delivery waits for that), and while it is paused "
		"nothing starts.\n"
		"The WHEN of an order that has no times of its own is @trigger. doc/TRIGGERS.md "
		"has GitHub,\n"
		"Slack and a tunnel.\n"
		"\n"
		"  ava schedule add @trigger 'say what this push changes' --overlap queue "
		"--max-cost-cents 10\n"
		"  ava trigger add push O-5d09c41e --signed github\n",
		OPTIONS(trigger_opts), trigger_run);
