/* ava hooks: makes Claude Code call `ava hook`, or no longer, in its settings.json
 * (https://code.claude.com/docs/en/settings).
 *
 * The file is a person's (cli/settings_file.h). What is no JSON is not touched. An entry is ours
 * when its command's last two words are a program called ava and "hook". */
#include <ava.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/util.h"
#include "cli/cli.h"
#include "cli/settings_file.h"
#include "cli/show.h"
#include "cli/term.h"
#include "client/start.h"
#include "codec/card.h"
#include "codec/json.h"

#define TIMEOUT_S 10 /* Claude Code waits no longer for a hook that hangs */

static struct {
	bool json, activity;
	const char *settings;
} o;

static const struct opt hooks_opts[] = {
	OPT("activity", 0, FLAG, NULL, activity,
	    "install: also what an agent does now, at each tool call"),
	OPT("settings", 0, STR, "FILE", settings, "this file instead of ~/.claude/settings.json"),
	OPT("json", 0, FLAG, NULL, json, "as one JSON object"),
};

static const struct {
	const char *event;
	bool activity; /* the event is hooked only with --activity */
} hooked[] = {{"SubagentStart", false},
	      {"SubagentStop", false},
	      {"TeammateIdle", false},
	      {"PreToolUse", true}};

/* Open Claude Code's settings; none yet is no error. AVA_EINVAL: the file is not as Claude Code
 * reads it. */
static int settings_open(struct settings_file *f, struct ava_error *err)
{
	char path[PATH_MAX];
	size_t n;

	if (o.settings)
		return settings_file_open(f, o.settings, "hooks", err);
	if (card_home(path, sizeof(path) - sizeof("/settings.json"), err) != 0)
		return err->code;
	n = strlen(path);
	snprintf(path + n, sizeof(path) - n, "/settings.json");
	return settings_file_open(f, path, "hooks", err);
}

/* ---- which entries are ours */

/* A path that is a word of a shell: in quotes where it must be. */
static int own_command(char out[PATH_MAX + 64], struct ava_error *err)
{
	char self[PATH_MAX];
	int rv = settings_file_program(self, err);
	bool plain;

	if (rv != 0)
		return rv;
	plain = self[strspn(self, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				  "0123456789/._+-")] == 0;
	if (strpbrk(self, "'\n"))
		return err_set(err, AVA_EINVAL,
			       "%s cannot be named in a hook: install ava in another folder", self);
	snprintf(out, PATH_MAX + 64, plain ? "%s hook" : "'%s' hook", self);
	return 0;
}

static bool ends_with(const char *s, size_t len, const char *end)
{
	size_t n = strlen(end);

	return len >= n && memcmp(s + len - n, end, n) == 0;
}

static bool hooks_is_ours(const json_t *handler)
{
	const char *command = json_str(handler, "command");
	size_t len = strlen(command);

	if (!ends_with(command, len, " hook"))
		return false;
	len -= 5;
	if (len > 0 && (command[len - 1] == '\'' || command[len - 1] == '"'))
		len--;
	return ends_with(command, len, "/ava") || (len == 3 && memcmp(command, "ava", 3) == 0);
}

static bool is_spy(const json_t *handler)
{
	return strstr(json_str(handler, "command"), "agent-spy.sh") != NULL;
}

/* The command of the first handler of that event that is such a one; NULL: none is. */
static const char *find_handler(const struct settings_file *f, const char *event,
				bool (*is)(const json_t *handler))
{
	json_t *group, *handler;
	size_t i, k;

	json_array_foreach(json_object_get(f->part, event), i, group)
		json_array_foreach(json_object_get(group, "hooks"), k,
				   handler) if (is(handler)) return json_str(handler, "command");
	return NULL;
}

/* Ours go; a group and an event that are empty by that go with them. */
static bool remove_ours(struct settings_file *f, const char *event)
{
	json_t *groups = json_object_get(f->part, event);
	bool removed = false;

	for (size_t i = json_array_size(groups); i-- > 0;) {
		json_t *handlers = json_object_get(json_array_get(groups, i), "hooks");
		size_t had = json_array_size(handlers);

		for (size_t k = had; k-- > 0;)
			if (hooks_is_ours(json_array_get(handlers, k)))
				json_array_remove(handlers, k);
		removed |= json_array_size(handlers) < had;
		if (had > 0 && json_array_size(handlers) == 0)
			json_array_remove(groups, i);
	}
	if (removed && json_array_size(groups) == 0)
		json_object_del(f->part, event);
	return removed;
}

/* ---- the three actions */

static int add_ours(struct settings_file *f, const char *event, const char *command,
		    struct ava_error *err)
{
	json_t *groups;

	if (!f->part) {
		json_object_set_new(f->root, "hooks", json_object());
		f->part = json_object_get(f->root, "hooks");
	}
	groups = json_object_get(f->part, event);
	if (groups && !json_is_array(groups))
		return err_set(err, AVA_EINVAL,
			       "%s is left as it is, since its hooks.%s is no list", f->path,
			       event);
	if (!groups) {
		json_object_set_new(f->part, event, json_array());
		groups = json_object_get(f->part, event);
	}
	if (json_array_append_new(groups,
				  json_pack("{s:[{s:s,s:s,s:i}]}", "hooks", "type", "command",
					    "command", command, "timeout", TIMEOUT_S)) != 0)
		return err_set(err, AVA_ENOMEM, "out of memory");
	return 0;
}

static int install(struct settings_file *f, struct ava_error *err)
{
	char command[PATH_MAX + 64];
	json_t *was = json_deep_copy(f->root);
	int rv = own_command(command, err);

	for (size_t i = 0; rv == 0 && i < ARRAY_LEN(hooked); i++) {
		const char *there = find_handler(f, hooked[i].event, hooks_is_ours);
		bool wanted = o.activity || !hooked[i].activity;

		if (there && wanted && strcmp(there, command) == 0)
			continue;
		(void)remove_ours(f, hooked[i].event);
		if (wanted)
			rv = add_ours(f, hooked[i].event, command, err);
	}
	if (rv == 0 && !json_equal(was, f->root))
		rv = settings_file_save(f, err);
	else if (rv == 0 && !o.json)
		puts("Nothing to do.");
	json_decref(was);
	return rv;
}

static int uninstall(struct settings_file *f, struct ava_error *err)
{
	bool removed = false;

	for (size_t i = 0; i < ARRAY_LEN(hooked); i++)
		removed |= remove_ours(f, hooked[i].event);
	if (removed && json_object_size(f->part) == 0) {
		json_object_del(f->root, "hooks");
		f->part = NULL;
	}
	if (!removed && !o.json)
		puts("Nothing to do.");
	return removed ? settings_file_save(f, err) : 0;
}

/* The program of a command can be started. */
static bool can_run(const char *command)
{
	char path[PATH_MAX];
	const char *from = command + (command[0] == '\'' || command[0] == '"');
	size_t n = strlen(from) - strlen(" hook") - (from != command);

	if (n >= sizeof(path))
		return false;
	snprintf(path, sizeof(path), "%.*s", (int)n, from);
	return path[0] != '/' ||
	       access(path, X_OK) == 0; /* a bare name depends on Claude Code's PATH */
}

static int status(const struct settings_file *f)
{
	bool disabled = json_get_bool(f->root, "disableAllHooks", false), all = true, spy = false;
	json_t *told = json_object(), *list = json_object();

	for (size_t i = 0; i < ARRAY_LEN(hooked); i++) {
		const char *command = find_handler(f, hooked[i].event, hooks_is_ours);

		all = all && (hooked[i].activity || (command && can_run(command)));
		spy = spy || find_handler(f, hooked[i].event, is_spy);
		json_object_set_new(list, hooked[i].event,
				    command ? json_string(command) : json_null());
	}
	json_object_set_new(told, "settings", json_string(f->path));
	json_object_set_new(told, "installed", json_boolean(all));
	json_object_set_new(told, "disabled", json_boolean(disabled));
	json_object_set_new(told, "agentSpy", json_boolean(spy));
	json_object_set_new(told, "hooks", list);
	if (o.json) {
		show_json(stdout, told);
	} else {
		term_print(stdout, "%s: the hooks of ava are %s.\n", f->path,
			   all ? "installed" : "not all installed");
		for (size_t i = 0; i < ARRAY_LEN(hooked); i++) {
			const char *command = find_handler(f, hooked[i].event, hooks_is_ours);

			term_print(stdout, "  %-14s %s\n", hooked[i].event,
				   !command ? hooked[i].activity ? "not installed (with --activity)"
								 : "not installed"
				   : !can_run(command)
					   ? "installed, but its program is gone: ava hooks install"
					   : command);
		}
		if (disabled)
			puts("disableAllHooks is true there: Claude Code calls none of them.");
		if (spy)
			puts("agent-spy.sh stands there as well and writes the same cards: take "
			     "its lines out of the file.");
	}
	json_decref(told);
	return all ? CLI_DONE : CLI_FAILED;
}

const char *hooks_stale(void)
{
	struct settings_file f = {0};
	const char *why = NULL;
	struct ava_error err;
	size_t there = 0, lacks = 0;

	if (settings_open(&f, &err) == 0) {
		for (size_t i = 0; i < ARRAY_LEN(hooked); i++) {
			const char *command = find_handler(&f, hooked[i].event, hooks_is_ours);

			there += command != NULL;
			lacks += command == NULL && !hooked[i].activity;
			if (command && !can_run(command))
				why = "the program that they call is gone";
		}
		if (there > 0 && lacks > 0 && !why)
			why = "some of its events are not told";
	}
	settings_file_close(&f);
	return why;
}

int hooks_renew(struct ava_error *err)
{
	struct settings_file f = {0};
	int rv = settings_open(&f, err);

	for (size_t i = 0; i < ARRAY_LEN(hooked); i++)
		o.activity |= hooked[i].activity &&
			      find_handler(&f, hooked[i].event, hooks_is_ours) != NULL;
	if (rv == 0)
		rv = install(&f, err);
	settings_file_close(&f);
	return rv;
}

static int hooks_run(int argc, char **argv)
{
	const char *action = argc ? argv[0] : "status";
	bool in = strcmp(action, "install") == 0, out = strcmp(action, "uninstall") == 0;
	struct settings_file f = {0};
	struct ava_error err;
	char path[PATH_MAX];
	int rv;

	if (!in && !out && strcmp(action, "status") != 0)
		return cli_error(CLI_USAGE,
				 "there is no \"%.40s\"; the form is: ava hooks "
				 "install|uninstall|status",
				 action);
	rv = settings_open(&f, &err);
	f.removes = out;
	if (rv == 0 && (in || out))
		rv = in ? install(&f, &err) : uninstall(&f, &err);
	rv = rv != 0 ? cli_fail(&err) : out && !o.json ? CLI_DONE : status(&f);
	if (in && rv == CLI_DONE && !o.json && !start_in_path("claude", path, sizeof(path)))
		puts("(There is no claude in PATH.)");
	if (out && rv == CLI_FAILED)
		rv = CLI_DONE;
	settings_file_close(&f);
	return rv;
}

const struct command cmd_hooks = COMMAND(
	"hooks", "[install|uninstall|status]", 0, 1, "let Claude Code tell ava of its subagents",
	"Adds `ava hook` to the hooks of Claude Code's settings.json, takes it out again, or says "
	"how it is. Nothing else in that file changes; what it was before the first change is kept "
	"beside it as settings.json.before-ava. Sessions of Claude Code that are open take it up "
	"when they begin anew.\n",
	OPTIONS(hooks_opts), hooks_run);
