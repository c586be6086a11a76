/* ava confirm P-id, ava reject P-id: the answer to a quote. What is confirmed
 * is exactly what was quoted. Answering the same again gives the same answer;
 * one that expired or was rejected ends with 4. */
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "codec/json.h"

static struct {
	bool json;
} confirm_o;

static struct {
	const char *reason;
	bool json;
} reject_o;

static const struct opt confirm_opts[] = {
	{.name = "json",
	 .type = OPT_FLAG,
	 .help = "as one JSON object",
	 .field = offsetof(__typeof__(confirm_o), json)},
};

static const struct opt reject_opts[] = {
	{.name = "reason",
	 .type = OPT_STR,
	 .value = "TEXT",
	 .help = "kept in the log",
	 .field = offsetof(__typeof__(reject_o), reason)},
	{.name = "json",
	 .type = OPT_FLAG,
	 .help = "as one JSON object",
	 .field = offsetof(__typeof__(reject_o), json)},
};

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

static int confirm_run(int argc, char **argv)
{
	json_t *p;
	const char *run, *trace;
	int code = answer(argv[0], "confirm", "{\"answer\":\"yes\"}", &p);

	if (code != CLI_DONE)
		return code;
	run = json_get_str(p, "subagent_id");
	trace = json_get_str(p, "trace_id");
	if (confirm_o.json)
		show_json(stdout, p);
	else
		printf("%s is confirmed and runs as %s (%s).\n"
		       "Follow it: ava events %s -f; wait for it: ava wait %s\n",
		       argv[0], run != NULL ? run : "?", trace != NULL ? trace : "",
		       run != NULL ? run : "S-id", run != NULL ? run : "S-id");
	json_decref(p);
	return CLI_DONE;
}

static int reject_run(int argc, char **argv)
{
	struct buf body;
	struct jw w;
	json_t *p = NULL;
	int code;

	buf_init(&body, 1 << 20);
	jw_init(&w, &body);
	jw_object(&w, NULL);
	jw_str(&w, "reason", reject_o.reason != NULL ? reject_o.reason : "");
	jw_end(&w);
	if (buf_check(&body) != 0)
		code = cli_error(CLI_USAGE, "--reason is too long");
	else
		code = answer(argv[0], "reject", body.data, &p);
	buf_fini(&body);
	if (code == CLI_DONE && reject_o.json)
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
	.opts = confirm_opts,
	.nopts = ARRAY_LEN(confirm_opts),
	.values = &confirm_o,
	.run = confirm_run,
};

const struct command cmd_reject = {
	.name = "reject",
	.args = "P-id",
	.min_args = 1,
	.max_args = 1,
	.summary = "say no to a quote",
	.opts = reject_opts,
	.nopts = ARRAY_LEN(reject_opts),
	.values = &reject_o,
	.run = reject_run,
};
