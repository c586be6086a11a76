/* ava telegram: who may speak with Ava there; doc/TELEGRAM.md.
 *
 * The daemon has the door and decides; a code is printed once and kept nowhere. Exit 2 where there
 * is no bot, 5 where nobody with that id is paired. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "cli/term.h"
#include "codec/json.h"

static struct {
	bool json, no_files;
} o;

static const struct opt telegram_opts[] = {
	OPT("no-files", 0, FLAG, NULL, no_files, "pair: conversations there see no folder"),
	OPT("json", 0, FLAG, NULL, json, "as one JSON object"),
};

static void print_state(const json_t *door)
{
	const json_t *paired = json_object_get(door, "paired"), *who;
	const char *problem = json_str(door, "problem");
	size_t i;

	term_print(stdout, "@%s: %s%s%s\n", json_str(door, "bot"), json_str(door, "state"),
		   problem[0] != '\0' ? ": " : "", problem);
	if (json_array_size(paired) == 0)
		puts("Nobody is paired: `ava telegram pair`");
	json_array_foreach(paired, i, who)
		term_print(stdout, "%" PRId64 "  %s  %s%s\n", json_get_int(who, "id", 0),
			   json_str(who, "name"),
			   json_str(who, "cwd")[0] != '\0' ? json_str(who, "cwd") : "no files",
			   json_get_bool(who, "blocked", false) ? "  has blocked the bot" : "");
}

/* A daemon that has just begun asks who its bot is: ten seconds, then it says itself that it does
 * not know. */
static int wait_for_bot(void)
{
	json_t *door = NULL;
	bool starting = true;
	int code = CLI_DONE;

	for (int i = 0; starting && code == CLI_DONE && i < 100; i++) {
		if (i > 0)
			pause_ms(100);
		code = api_ask(&door, "{}", "/telegram");
		starting = strcmp(json_str(door, "state"), "starting") == 0 &&
			   json_str(door, "problem")[0] == '\0';
		json_decref(door);
		door = NULL;
	}
	return code;
}

static int telegram_run(int argc, char **argv)
{
	const char *what = argc > 0 ? argv[0] : "";
	bool pair = strcmp(what, "pair") == 0, unpair = strcmp(what, "unpair") == 0;
	char cwd[ROOT_PATH_MAX], *end = NULL;
	long long id = unpair && argc == 2 ? strtoll(argv[1], &end, 10) : 0;
	json_t *door = NULL;
	struct buf body;
	struct jw w;
	int code;

	if ((argc > 1 && !unpair) || (unpair && (!end || *end != '\0' || id <= 0)) ||
	    (what[0] != '\0' && !pair && !unpair && strcmp(what, "listen") != 0))
		return cli_error(CLI_USAGE, "say pair, unpair ID or listen behind `ava telegram`, "
					    "or nothing to see how the bot is");
	code = pair ? wait_for_bot() : CLI_DONE;
	if (code != CLI_DONE)
		return code;
	api_body(&w, &body, 64u << 10);
	if (pair)
		jw_bool(&w, "pair", true);
	if (pair && !o.no_files && getcwd(cwd, sizeof(cwd)) != NULL)
		jw_str(&w, "cwd", cwd);
	if (unpair)
		jw_int(&w, "unpair", id);
	if (strcmp(what, "listen") == 0)
		jw_bool(&w, "listen", true);
	jw_end(&w);
	code = api_ask(&door, body.data, "/telegram");
	buf_fini(&body);
	if (code != CLI_DONE)
		return code;
	if (o.json)
		show_json(stdout, door);
	else if (!pair)
		print_state(door);
	else
		term_print(stdout,
			   "Send this code to @%s, in a chat with nobody else, within %" PRId64
			   " minutes:\n",
			   json_str(door, "bot"), json_get_int(door, "seconds", 0) / 60);
	if (pair && !o.json) {
		term_print(stdout, "\n    %s\n", json_str(door, "code"));
		term_print(stdout, "\nor open https://t.me/%s?start=%s\n", json_str(door, "bot"),
			   json_str(door, "code"));
	}
	json_decref(door);
	return CLI_DONE;
}

const struct command cmd_telegram = COMMAND(
	"telegram", "[pair | unpair ID | listen]", 0, 2, "speak with Ava through a bot of Telegram",
	"Without a word: how the bot is and who is paired. pair prints a code that lets one "
	"person\n"
	"in, whose conversations look for files in this folder. listen: again, after another\n"
	"program has read what is said to the bot. doc/TELEGRAM.md begins with nothing.\n",
	OPTIONS(telegram_opts), telegram_run);
