/* ava telegram, ava matrix: who may speak with Ava there; doc/TELEGRAM.md, doc/MATRIX.md. A row of
 * base/doors.h makes the command.
 *
 * The daemon has the door and decides; a code is printed once and kept nowhere. Exit 2 where there
 * is no such door, 5 where nobody with that id is paired. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/doors.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "cli/term.h"
#include "codec/json.h"

static struct {
	bool json, no_files;
} o;

static const struct opt door_opts[] = {
	OPT("no-files", 0, FLAG, NULL, no_files, "pair: conversations there see no folder"),
	OPT("json", 0, FLAG, NULL, json, "as one JSON object"),
};

/* "@ava_bot"; an id of Matrix has its own sign. */
static const char *door_sign(const char *who)
{
	return who[0] == '@' ? "" : "@";
}

static void print_state(const json_t *door, const char *name)
{
	const json_t *paired = json_object_get(door, "paired"), *who;
	const char *problem = json_str(door, "problem"), *us = json_str(door, "bot");
	size_t i;

	term_print(stdout, "%s%s: %s%s%s%s%s\n", door_sign(us), us, json_str(door, "state"),
		   json_str(door, "machine")[0] != '\0' ? ", on machine " : "",
		   json_str(door, "machine"), problem[0] != '\0' ? ": " : "", problem);
	if (json_array_size(paired) == 0)
		printf("Nobody is paired: `ava %s pair`\n", name);
	json_array_foreach(paired, i, who)
	{
		if (json_get_int(who, "id", 0) != 0)
			term_print(stdout, "%" PRId64, json_get_int(who, "id", 0));
		term_print(stdout, "%s  %s  %s%s\n", json_str(who, "id"), json_str(who, "name"),
			   json_str(who, "cwd")[0] != '\0' ? json_str(who, "cwd") : "no files",
			   json_get_bool(who, "blocked", false) ? "  has blocked the bot" : "");
	}
}

static void print_code(const json_t *door, enum doors_index which)
{
	const char *us = json_str(door, "bot"), *code = json_str(door, "code");

	term_print(stdout,
		   "Send this code to %s%s, in a chat with nobody else, within %" PRId64
		   " minutes:\n",
		   door_sign(us), us, json_get_int(door, "seconds", 0) / 60);
	term_print(stdout, "\n    %s\n", code);
	if (which == DOORS_telegram)
		term_print(stdout, "\nor open https://t.me/%s?start=%s\n", us, code);
}

/* A daemon that has just begun asks who it is there: ten seconds, then it says itself that it does
 * not know. */
static int wait_for_door(const char *path)
{
	json_t *door = NULL;
	bool starting = true;
	int code = CLI_DONE;

	for (int i = 0; starting && code == CLI_DONE && i < 100; i++) {
		if (i > 0)
			pause_ms(100);
		code = api_ask(&door, "{}", "%s", path);
		starting = strcmp(json_str(door, "state"), "starting") == 0 &&
			   json_str(door, "problem")[0] == '\0';
		json_decref(door);
		door = NULL;
	}
	return code;
}

static int door_run(enum doors_index which, const char *name, int argc, char **argv)
{
	const char *what = argc > 0 ? argv[0] : "";
	bool pair = strcmp(what, "pair") == 0, unpair = strcmp(what, "unpair") == 0;
	char cwd[ROOT_PATH_MAX], path[64];
	json_t *door = NULL;
	struct buf body;
	struct jw w;
	int code;

	if ((argc > 1 && !unpair) || (unpair && (argc != 2 || argv[1][0] == '\0')) ||
	    (what[0] != '\0' && !pair && !unpair && strcmp(what, "listen") != 0))
		return cli_error(CLI_USAGE,
				 "say pair, unpair ID or listen behind `ava %s`, or nothing to see "
				 "how it is",
				 name);
	snprintf(path, sizeof(path), "/doors/%s", name);
	code = pair ? wait_for_door(path) : CLI_DONE;
	if (code != CLI_DONE)
		return code;
	buf_init(&body, 64u << 10);
	jw_init(&w, &body);
	jw_object(&w, NULL);
	if (pair)
		jw_bool(&w, "pair", true);
	if (pair && !o.no_files && getcwd(cwd, sizeof(cwd)) != NULL)
		jw_str(&w, "cwd", cwd);
	if (unpair)
		jw_str(&w, "unpair", argv[1]);
	if (strcmp(what, "listen") == 0)
		jw_bool(&w, "listen", true);
	jw_end(&w);
	code = api_ask(&door, body.data, "%s", path);
	buf_fini(&body);
	if (code != CLI_DONE)
		return code;
	if (o.json)
		show_json(stdout, door);
	else if (pair)
		print_code(door, which);
	else
		print_state(door, name);
	json_decref(door);
	return CLI_DONE;
}

#define X(name, title, secret, key, variable, summary)                                             \
	static int name##_run(int argc, char **argv)                                               \
	{                                                                                          \
		return door_run(DOORS_##name, #name, argc, argv);                                  \
	}                                                                                          \
	const struct command cmd_##name = COMMAND(                                                 \
		#name, "[pair | unpair ID | listen]", 0, 2, summary,                               \
		"Without a word: how the door is and who is paired. pair prints a code that lets " \
		"one person\n"                                                                     \
		"in, whose conversations look for files in this folder. listen: again, after "     \
		"another\n"                                                                        \
		"program has read what is said there. The page of doc/ with its name begins with " \
		"nothing.\n",                                                                      \
		OPTIONS(door_opts), name##_run);
DOORS(X)
#undef X
