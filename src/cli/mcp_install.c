/* See mcp_install.h.
 *
 * Happy path: the file of that program is found, its entry for ava compared with ours, and
 * written when it differs (cli/settings_file.h). What it starts is this very program; a data root
 * that is not the usual one is named, since such programs pass no environment on. What can fail:
 * the program is not known; its file is no JSON (Zed's may have comments): then the entry is shown,
 * to be put there by hand. */
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

#define TOML_TABLE "[mcp_servers.ava]"

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

/* Where it begins, and how long it is; 0: nowhere. */
static size_t toml_find(const char *text, size_t *at)
{
	const char *line = text, *from = NULL;

	for (; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
		const char *word = line + strspn(line, " \t");
		bool ours = strncmp(word, TOML_TABLE, strlen(TOML_TABLE)) == 0;

		if (from && word[0] == '[' && !ours &&
		    strncmp(word, "[mcp_servers.ava.", strlen("[mcp_servers.ava.")) != 0)
			break;
		if (ours && !from)
			from = line;
	}
	if (!from)
		return 0;
	*at = (size_t)(from - text);
	return line && *line ? (size_t)(line - from) : strlen(from);
}

static int install_toml(struct settings_file *f, const json_t *entry, bool *changed,
			struct ava_error *err)
{
	const char *was = f->was ? f->was : "", *key;
	size_t at = strlen(was), len = toml_find(was, &at);
	struct buf table, out;
	json_t *v;
	int rv;

	buf_init(&table, 1u << 16);
	buf_init(&out, 2 * SETTINGS_FILE_MAX);
	buf_adds(&table, TOML_TABLE "\n");
	json_object_foreach((json_t *)entry, key, v)
	{
		buf_addf(&table, "%s = ", key);
		toml_value(&table, v);
		buf_addc(&table, '\n');
	}
	buf_add(&out, was, at);
	if (len == 0 && at > 0)
		buf_adds(&out, was[at - 1] == '\n' ? "\n" : "\n\n");
	buf_adds(&out, buf_check(&table) == 0 ? table.data : "");
	if (was[at + len])
		buf_addc(&out, '\n');
	buf_adds(&out, was + at + len);
	rv = buf_check(&table) != 0 ? buf_check(&table) : buf_check(&out);
	*changed = rv == 0 && strcmp(out.data, was) != 0;
	if (rv != 0)
		rv = err_set(err, rv, "the settings are too large");
	else if (*changed)
		rv = settings_file_write(f, out.data, out.len, err);
	buf_fini(&out);
	buf_fini(&table);
	return rv;
}

/* ---- */

static int install_json(struct settings_file *f, const char *part, json_t *entry, bool *changed,
			struct ava_error *err)
{
	if (!f->part) {
		json_object_set_new(f->root, part, json_object());
		f->part = json_object_get(f->root, part);
	}
	*changed = !json_equal(json_object_get(f->part, "ava"), entry);
	if (json_object_set(f->part, "ava", entry) != 0)
		return err_set(err, AVA_ENOMEM, "out of memory");
	return *changed ? settings_file_save(f, err) : 0;
}

static void show_by_hand(const struct target *t, const json_t *entry)
{
	json_t *whole = json_object();
	char *text;

	json_object_set_new(whole, t->part, json_pack("{s:O}", "ava", (json_t *)entry));
	text = json_dumps(whole, JSON_INDENT(2));
	term_text(stdout, text ? text : "", text ? strlen(text) : 0, true);
	puts("");
	free(text);
	json_decref(whole);
}

static int install(const struct target *t, bool http, struct ava_error *err)
{
	char path[PATH_MAX];
	struct settings_file f = {0};
	json_t *entry = NULL;
	bool changed = false;
	int rv = find_file(t, path, err);

	if (rv == 0) {
		entry = http ? entry_of_address(t, err) : entry_of_command(t, err);
		rv = entry ? settings_file_open(&f, path, t->part, err) : err->code;
	}
	if (http)
		f.mode &= 0600; /* it has a secret from now on */
	if (rv == AVA_EINVAL && entry && t->part) {
		cli_note("put this into it by hand:");
		show_by_hand(t, entry);
	} else if (rv == 0) {
		rv = t->part ? install_json(&f, t->part, entry, &changed, err)
			     : install_toml(&f, entry, &changed, err);
	}
	if (rv == 0 && !changed)
		term_print(stdout, "Nothing to do: %s has ava in %s.\n", t->title, f.path);
	else if (rv == 0)
		term_print(
			stdout,
			"%s: ava is an MCP server of %s%s. Sessions that are open take it up when "
			"they begin anew.\n",
			f.path, t->title, f.was ? " (before: the same with .before-ava)" : "");
	settings_file_close(&f);
	json_decref(entry);
	return rv;
}

int mcp_install(const char *client, bool http)
{
	struct ava_error err = {0};

	for (size_t i = 0; i < ARRAY_LEN(targets); i++)
		if (strcmp(targets[i].name, client) == 0)
			return install(&targets[i], http, &err) == 0 ? CLI_DONE : cli_fail(&err);
	return cli_error(CLI_USAGE,
			 "\"%.40s\" is not known: there are claude, codex, cursor and zed", client);
}
