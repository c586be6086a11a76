/* See mcp_install.h.
 *
 * Happy path: the file of that program is found, its entry for ava compared with ours, and
 * written when it differs, or taken out (cli/settings_file.h). What it starts is this very program;
 * a data root that is not the usual one is named, since such programs pass no environment on. What
 * can fail: the program is not known; its file is no JSON (Zed's may have comments): then the entry
 * is shown, to be put there by hand. */
#include "cli/mcp_install.h"

#include <ava.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/env.h"
#include "base/error.h"
#include "base/settings.h"
#include "base/util.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/settings_file.h"
#include "cli/term.h"
#include "codec/json.h"

static const struct target {
	const char *name, *title;
	const char *variable, *file; /* below the folder that the variable names */
	const char *otherwise;       /* below the home folder */
	const char *part;            /* NULL: it is TOML */
	bool typed;                  /* its entries say "type" */
} targets[] = {
	{"claude", "Claude Code", "CLAUDE_CONFIG_DIR", ".claude.json", ".claude.json", "mcpServers",
	 true},
	{"codex", "Codex", "CODEX_HOME", "config.toml", ".codex/config.toml", NULL, false},
	{"cursor", "Cursor", NULL, NULL, ".cursor/mcp.json", "mcpServers", false},
	{"zed", "Zed", "XDG_CONFIG_HOME", "zed/settings.json", ".config/zed/settings.json",
	 "context_servers", false},
};

static int find_file(const struct target *t, char path[PATH_MAX], struct ava_error *err)
{
	const char *folder = t->variable ? env_get(t->variable) : NULL, *home = env_get("HOME");

	if (folder && folder[0] == '/')
		snprintf(path, PATH_MAX, "%s/%s", folder, t->file);
	else if (home && home[0] == '/')
		snprintf(path, PATH_MAX, "%s/%s", home, t->otherwise);
	else
		return err_set(err, AVA_EINVAL, "HOME is not set: the settings of %s are below it",
			       t->title);
	return 0;
}

/* A new reference, or NULL: the usual one. */
static json_t *other_root(void)
{
	char root[ROOT_PATH_MAX], usual[ROOT_PATH_MAX];
	const char *home = env_get("HOME");

	snprintf(usual, sizeof(usual), "%s/.local/share/ava", home ? home : "");
	if (settings_data_root(root, sizeof(root), NULL) != 0 || strcmp(root, usual) == 0)
		return NULL;
	return json_pack("{s:s}", "AVA_DATA_ROOT", root);
}

static json_t *entry_of_command(const struct target *t, struct ava_error *err)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	json_t *entry = json_object(), *env = other_root();

	if (n <= 0) {
		err_sys(err, "find this program");
		json_decref(entry);
		json_decref(env);
		return NULL;
	}
	self[n] = 0;
	if (t->typed)
		json_object_set_new(entry, "type", json_string("stdio"));
	json_object_set_new(entry, "command", json_string(self));
	json_object_set_new(entry, "args", json_pack("[s]", "mcp"));
	if (env)
		json_object_set_new(entry, "env", env);
	return entry;
}

static json_t *entry_of_address(const struct target *t, struct ava_error *err)
{
	json_t *told = NULL, *entry = NULL;
	struct client *c = NULL;
	int rv = api_open(API_START, &c, err);

	if (rv == 0)
		rv = api_call(c, "/mcp-token", "{}", &told, NULL, err);
	client_close(c);
	if (rv == 0)
		entry = json_pack("{s:s,s:{s:o}}", "url", json_str(told, "url"),
				  t->part ? "headers" : "http_headers", "Authorization",
				  json_sprintf("Bearer %s", json_str(told, "token")));
	if (entry && t->typed)
		json_object_set_new(entry, "type", json_string("http"));
	json_decref(told);
	return entry;
}

/* ---- TOML: our table alone is looked at */

/* Strings as JSON has them are strings of TOML. */
static void toml_value(struct buf *b, const json_t *v)
{
	const char *key;
	json_t *one;
	bool first = true;

	if (!json_is_object(v)) {
		(void)json_dump(b, v);
		return;
	}
	buf_adds(b, "{ ");
	json_object_foreach((json_t *)v, key, one)
	{
		buf_addf(b, "%s%s = ", first ? "" : ", ", key);
		(void)json_dump(b, one);
		first = false;
	}
	buf_adds(b, " }");
}

/* The name in the head of a table, as TOML may write it: [ mcp_servers . "ava" ] is ours. */
static bool toml_is_ours(const char *line)
{
	char name[64];
	size_t n = 0;

	for (; *line && *line != '\n' && *line != '#' && n + 1 < sizeof(name); line++)
		if (!strchr(" \t\r\"'", *line))
			name[n++] = *line;
	name[n] = 0;
	return strcmp(name, "[mcp_servers.ava]") == 0 ||
	       strncmp(name, "[mcp_servers.ava.", strlen("[mcp_servers.ava.")) == 0;
}

/* Our tables: where they begin, and their length. Blank lines and comments behind them belong to
 * what follows. *at stays, and the length is 0: there are none. */
static size_t toml_find(const char *text, size_t *at)
{
	const char *from = NULL, *to = NULL, *next;
	bool ours = false;

	for (const char *line = text; *line; line = next) {
		char first = line[strspn(line, " \t\r")];

		next = line + strcspn(line, "\n");
		next += *next == '\n';
		if (first == '[') {
			ours = toml_is_ours(line);
			if (from && !ours)
				break;
		}
		if (ours && !from)
			from = line;
		if (ours && first != '\n' && first != '#' && first)
			to = next;
	}
	if (!from)
		return 0;
	*at = (size_t)(from - text);
	return (size_t)(to - from);
}

static void toml_entry(struct buf *b, const json_t *entry)
{
	const char *key;
	json_t *v;

	buf_adds(b, "[mcp_servers.ava]\n");
	json_object_foreach((json_t *)entry, key, v)
	{
		buf_addf(b, "%s = ", key);
		toml_value(b, v);
		buf_addc(b, '\n');
	}
}

static int change_toml(struct settings_file *f, const json_t *entry, bool *changed,
		       struct ava_error *err)
{
	const char *was = f->was ? f->was : "";
	size_t at = strlen(was), len = toml_find(was, &at), front = at;
	struct buf out;
	int rv;

	buf_init(&out, 2 * SETTINGS_FILE_MAX);
	if (!entry && len > 0 && at > 1 && was[at - 2] == '\n')
		front--; /* the blank line that stands between */
	buf_add(&out, was, front);
	if (entry && len == 0 && at > 0)
		buf_adds(&out, was[at - 1] == '\n' ? "\n" : "\n\n");
	if (entry)
		toml_entry(&out, entry);
	buf_adds(&out, was + at + len);
	rv = buf_check(&out);
	*changed = rv == 0 && strcmp(out.len ? out.data : "", was) != 0;
	if (rv != 0)
		rv = err_set(err, rv, "the settings are too large");
	else if (*changed)
		rv = settings_file_write(f, out.data, out.len, err);
	buf_fini(&out);
	return rv;
}

/* ---- */

static int change_json(struct settings_file *f, const char *part, json_t *entry, bool *changed,
		       struct ava_error *err)
{
	json_t *was = json_object_get(f->part, "ava");

	*changed = entry ? !json_equal(was, entry) : was != NULL;
	if (!*changed)
		return 0;
	if (!f->part) {
		json_object_set_new(f->root, part, json_object());
		f->part = json_object_get(f->root, part);
	}
	if (entry && json_object_set(f->part, "ava", entry) != 0)
		return err_set(err, AVA_ENOMEM, "out of memory");
	if (!entry && json_object_del(f->part, "ava") == 0 && json_object_size(f->part) == 0)
		json_object_del(f->root, part);
	return settings_file_save(f, err);
}

static void show_by_hand(const struct target *t, const json_t *entry)
{
	json_t *whole = json_pack("{s:{s:O}}", t->part, "ava", (json_t *)entry);
	char *text = json_dumps(whole, JSON_INDENT(2));

	cli_note("put this into it by hand:");
	term_text(stdout, text ? text : "", text ? strlen(text) : 0, true);
	puts("");
	free(text);
	json_decref(whole);
}

static int change(const struct target *t, bool in, bool http, struct ava_error *err)
{
	struct settings_file f = {0};
	json_t *entry = NULL;
	char path[PATH_MAX];
	bool changed = false;
	int rv = find_file(t, path, err);

	if (rv == 0 && in) {
		entry = http ? entry_of_address(t, err) : entry_of_command(t, err);
		rv = entry ? 0 : err->code;
	}
	if (rv == 0) {
		rv = settings_file_open(&f, path, t->part, err);
		if (rv == AVA_EINVAL && entry)
			show_by_hand(t, entry);
	}
	if (http)
		f.mode &= 0600; /* it has a secret from now on */
	if (rv == 0)
		rv = t->part ? change_json(&f, t->part, entry, &changed, err)
			     : change_toml(&f, entry, &changed, err);
	if (rv == 0 && !changed)
		term_print(stdout, "Nothing to do: %s has %s in %s.\n", t->title,
			   in ? "ava" : "no ava", f.path);
	else if (rv == 0)
		term_print(stdout,
			   "%s: ava is %s MCP server of %s%s. Sessions that are open take it up "
			   "when they begin anew.\n",
			   f.path, in ? "an" : "no longer an", t->title,
			   f.was ? " (before: the same with .before-ava)" : "");
	settings_file_close(&f);
	json_decref(entry);
	return rv;
}

int mcp_install(const char *client, bool in, bool http)
{
	struct ava_error err = {0};

	for (size_t i = 0; i < ARRAY_LEN(targets); i++)
		if (strcmp(targets[i].name, client) == 0)
			return change(&targets[i], in, http, &err) == 0 ? CLI_DONE : cli_fail(&err);
	return cli_error(CLI_USAGE,
			 "\"%.40s\" is not known: there are claude, codex, cursor and zed", client);
}
