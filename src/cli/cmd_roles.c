/* ava roles: who can be asked, what one is told, whether a file is right, and trust in a
 * project's file; ava skills: the same of skills, with the same words.
 *
 * The daemon reads the files, as it does when it uses them. trust first shows the role's
 * origin, tools and text; a person says yes, or --yes does. The hash of the text shown goes along,
 * so that the daemon trusts exactly that.
 *
 * Exit: 1 where a checked file is broken, 4 without a yes, 5 for no such role. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/error.h"
#include "base/util.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "cli/task.h"
#include "cli/term.h"
#include "codec/json.h"

static struct {
	bool json, yes;
} o;

/* The verbs ask for one of these: their members are named alike. */
static const struct book_words {
	const char *one, *all, *trust; /* "role", "roles"; the question before a yes */
} roles = {"role", "roles",
	   "Its text goes to models as instructions, with these tools. Trust it as it is now? "
	   "[Yes/No] "},
  skills = {
	  "skill", "skills",
	  "Models read all of these files, and may run them in the sandbox. Trust them as they are "
	  "now? [Yes/No] "};

static const struct opt roles_opts[] = {
	OPT("json", 0, FLAG, NULL, json, "as JSON"),
	OPT("yes", 'y', FLAG, NULL, yes, "trust: without asking"),
};

/* Asks for all of a book (`name` ""), or for one, as the project of this folder has them. */
static int ask_here(const struct book_words *b, json_t **reply, const char *name)
{
	char *cwd = NULL;
	struct buf path;
	int code;

	buf_init(&path, 8 * PATH_MAX);
	buf_addf(&path, "/%s%s%s", b->all, *name ? "/" : "", name);
	if (task_cwd(&cwd, NULL) == 0) { /* else the folder was removed: no project */
		buf_adds(&path, "?cwd=");
		client_escape(&path, cwd);
	}
	code = buf_check(&path) == 0 ? api_ask(reply, NULL, "%s", path.data) : CLI_FAILED;
	free(cwd);
	buf_fini(&path);
	return code;
}

/* ---- list */

static void roles_state_of(const json_t *r, char *out, size_t size)
{
	const char *command = json_object_get(r, "model") ? "roles" : "skills";
	const char *source = json_str(r, "source");

	if (json_get_bool(r, "usable", false))
		snprintf(out, size, "%s", json_str(r, "summary"));
	else if (!json_get_bool(r, "trusted", false) && strcmp(source, "project") == 0)
		snprintf(out, size, "not trusted: ava %s trust %s", command, json_str(r, "path"));
	else
		snprintf(out, size, "not used: %s", json_str(r, "why"));
}

static void skill_size(const json_t *r, char *out, size_t size)
{
	snprintf(out, size, "%lld, %s", (long long)json_get_int(r, "files", 0),
		 format_bytes(json_get_int(r, "bytes", 0)).text);
}

static int show_broken(const json_t *reply, FILE *f)
{
	const json_t *broken = json_object_get(reply, "broken"), *b;
	size_t i;

	json_array_foreach(broken, i, b) term_print(f, "%s\n", json_str(b, "why"));
	return json_array_size(broken) > 0 ? CLI_FAILED : CLI_DONE;
}

static int list_all(const struct book_words *b)
{
	static const struct column skill_columns[] = {
		{"NAME", COLUMN_TEXT, "name"},
		{"FROM", COLUMN_TEXT, "source", .spare = true},
		{"FILES", COLUMN_OWN, .own = skill_size, .spare = true},
		{"FOR", COLUMN_OWN, .own = roles_state_of},
	};
	static const struct column columns[] = {
		{"NAME", COLUMN_TEXT, "name"},
		{"FROM", COLUMN_TEXT, "source", .spare = true},
		{"MODEL", COLUMN_TEXT, "model", .spare = true},
		{"TIME", COLUMN_TIME, "timeout", .spare = true},
		{"COST", COLUMN_COST, "max_cost_cents", .spare = true},
		{"FOR", COLUMN_OWN, .own = roles_state_of},
	};
	json_t *reply = NULL;
	int code = ask_here(b, &reply, "");

	if (code == CLI_DONE && o.json) {
		show_json(stdout, reply);
	} else if (code == CLI_DONE) {
		if (b == &skills && json_array_size(json_object_get(reply, b->all)) == 0)
			puts("There are no skills (ava help skills says where they stand).");
		else
			code = b == &roles ? show_table(columns, ARRAY_LEN(columns),
							json_object_get(reply, b->all))
					   : show_table(skill_columns, ARRAY_LEN(skill_columns),
							json_object_get(reply, b->all));
		if (show_broken(reply, stderr) != CLI_DONE)
			cli_note("these are no %s as they are; ava %s check PATH says more", b->all,
				 b->all);
	}
	json_decref(reply);
	return code;
}

/* ---- show */

static void show_names(const char *title, const json_t *names)
{
	const json_t *v;
	size_t i;

	if (json_array_size(names) == 0)
		return;
	printf("%s", title);
	json_array_foreach(names, i, v)
		term_print(stdout, "%s%s", i ? ", " : "", json_string_value(v));
	putchar('\n');
}

static void show_notes(const json_t *r)
{
	const json_t *notes = json_object_get(r, "notes"), *n;
	size_t i;

	json_array_foreach(notes, i, n)
	{
		long long line = json_get_int(n, "line", 0);

		if (line > 0)
			term_print(stdout, "%s:%lld: %s\n", json_str(r, "path"), line,
				   json_str(n, "text"));
		else
			term_print(stdout, "%s: %s\n", json_str(r, "path"), json_str(n, "text"));
	}
}

static void show_head(const json_t *r)
{
	const char *path = json_str(r, "path"), *why = json_str(r, "why");
	bool trusted = json_get_bool(r, "trusted", false);

	term_print(stdout, "%s (%s): %s\n", json_str(r, "name"), json_str(r, "source"),
		   json_str(r, "summary"));
	if (*path) {
		term_print(stdout, "%s: %s\n", json_object_get(r, "model") ? "File" : "Folder",
			   path);
		term_print(stdout, "SHA-256: %s%s\n", json_str(r, "hash"),
			   trusted ? "" : " (not trusted)");
	}
	if (*why && trusted)
		term_print(stdout, "Not used: %s\n", why);
	if (!json_object_get(r, "model")) {
		show_notes(r);
		return;
	}
	term_print(stdout, "Model: %s%s\n", json_str(r, "model"),
		   json_get_bool(r, "extended_thinking", false) ? ", thinking" : "");
	show_names("Tools: ", json_object_get(r, "tools"));
	show_names("Not there: ", json_object_get(r, "missing"));
	printf("Limits: %s, %s, %s tokens, %lld replies\n", format_time_of(r, "timeout").text,
	       format_cost_of(r, "max_cost_cents").text, format_tokens_of(r, "max_tokens").text,
	       (long long)json_get_int(r, "max_iterations", 0));
	show_notes(r);
}

/* The files of a skill that are not its text: trust is for them, too. */
static void show_beside(const json_t *r)
{
	const json_t *files = json_object_get(r, "contents"), *f;
	bool text = false;
	size_t i, n = 0;

	json_array_foreach(files, i, f)
	{
		const char *path = json_str(f, "path");

		if (!text && strcasecmp(path, "SKILL.md") == 0) {
			text = true;
			continue;
		}
		term_print(stdout, "%s%s (%s%s)", n++ ? ", " : "Files beside it: ", path,
			   format_bytes(json_get_int(f, "bytes", 0)).text,
			   json_get_bool(f, "runs", false) ? ", executable" : "");
	}
	if (n > 0)
		putchar('\n');
}

static void show_whole(const json_t *r)
{
	const char *text = json_str(r, json_object_get(r, "model") ? "instructions" : "text");

	show_head(r);
	putchar('\n');
	term_theirs(stdout, term_width(stdout), text, strlen(text), 0);
	putchar('\n');
	show_beside(r);
}

static int show_one(const struct book_words *b, const char *name)
{
	json_t *r = NULL;
	int code;

	for (const char *s = name; *s; s++)
		if (strchr("/?#% ", *s) || (*s & 0x80))
			return cli_error(CLI_NOSUCH, "there is no %s %s (ava %s lists them)",
					 b->one, name, b->all);
	code = ask_here(b, &r, name);
	if (code == CLI_DONE && o.json)
		show_json(stdout, r);
	else if (code == CLI_DONE)
		show_whole(r);
	json_decref(r);
	return code;
}

/* ---- check */

/* Ask the daemon to check a file or folder. */
static int cmd_roles_look(const struct book_words *b, const char *path, json_t **reply)
{
	char verb[32];
	char *full = realpath(path, NULL), *slash;
	struct ava_error err;
	int rv;

	if (!full)
		return cli_error(CLI_NOSUCH, "%s cannot be opened: give a file or folder of %s",
				 path, b->all);
	/* A person may name SKILL.md itself. */
	slash = strrchr(full, '/');
	if (b == &skills && slash && strcasecmp(slash + 1, "SKILL.md") == 0)
		*slash = '\0';
	snprintf(verb, sizeof(verb), "/%s/check", b->all);
	rv = api_post(reply, &err, verb, "path", full, NULL);
	free(full);
	return rv == 0 ? CLI_DONE : cli_fail(&err);
}

static int check(const struct book_words *b, const char *path)
{
	json_t *reply = NULL, *r;
	size_t i, n = 0;
	int code = path ? cmd_roles_look(b, path, &reply) : ask_here(b, &reply, "");

	if (code == CLI_DONE && o.json) {
		show_json(stdout, reply);
		code = json_array_size(json_object_get(reply, "broken")) ? CLI_FAILED : CLI_DONE;
	} else if (code == CLI_DONE) {
		json_array_foreach(json_object_get(reply, b->all), i, r)
		{
			if (!*json_str(r, "path"))
				continue;
			n++;
			term_print(stdout, "%s: %s\n", json_str(r, "path"), json_str(r, "name"));
			show_notes(r);
			show_names("  not there: ", json_object_get(r, "missing"));
		}
		code = show_broken(reply, stdout);
		if (n == 0 && code == CLI_DONE)
			printf("There are no %s files.\n", b->one);
	}
	json_decref(reply);
	return code;
}

/* ---- trust */

/* 0: yes. */
static int ask_trust(const struct book_words *b, const json_t *r)
{
	if (!o.json)
		show_whole(r);
	if (o.yes)
		return CLI_DONE;
	if (!isatty(STDIN_FILENO))
		return cli_error(CLI_REJECTED, "nobody is there to say yes: read the file, then "
					       "give --yes");
	fflush(stdout);
	fputs(b->trust, stderr);
	return task_yes() == 1 ? CLI_DONE : cli_error(CLI_REJECTED, "no yes: nothing is trusted");
}

static int trust(const struct book_words *b, const char *path)
{
	char verb[32];
	json_t *reply = NULL, *kept = NULL, *r;
	struct ava_error err;
	int code = cmd_roles_look(b, path, &reply);

	snprintf(verb, sizeof(verb), "/%s/trust", b->all);
	r = json_array_get(json_object_get(reply, b->all), 0);
	if (code == CLI_DONE && !r && show_broken(reply, stderr) != CLI_DONE)
		code = CLI_FAILED;
	else if (code == CLI_DONE && !r)
		code = cli_error(CLI_NOSUCH, "%s holds no %s", path, b->one);
	if (code == CLI_DONE)
		code = ask_trust(b, r);
	if (code == CLI_DONE && api_post(&kept, &err, verb, "path", json_str(r, "path"), "hash",
					 json_str(r, "hash"), NULL) != 0)
		code = cli_fail(&err);
	if (code == CLI_DONE && o.json)
		show_json(stdout, kept);
	else if (code == CLI_DONE)
		term_print(stdout, "%s is trusted, as it is now.\n", json_str(kept, "name"));
	json_decref(reply);
	json_decref(kept);
	return code;
}

static int book_run(const struct book_words *b, int argc, char **argv)
{
	const char *word = argc > 0 ? argv[0] : "list", *arg = argc > 1 ? argv[1] : NULL;

	if (strcmp(word, "list") == 0 && !arg)
		return list_all(b);
	if (strcmp(word, "show") == 0 && arg)
		return show_one(b, arg);
	if (strcmp(word, "check") == 0)
		return check(b, arg);
	if (strcmp(word, "trust") == 0 && arg)
		return trust(b, arg);
	return cli_error(CLI_USAGE, "say list, show %s, check [PATH] or trust PATH",
			 b == &roles ? "ROLE" : "SKILL");
}

static int roles_run(int argc, char **argv)
{
	return book_run(&roles, argc, argv);
}

static int skills_run(int argc, char **argv)
{
	return book_run(&skills, argc, argv);
}

const struct command cmd_roles = COMMAND(
	"roles", "[list | show ROLE | check [PATH] | trust PATH]", 0, 2,
	"list roles, show one, check files, trust a project's",
	"Roles are Markdown files in .claude/agents of a project, $XDG_CONFIG_HOME/ava/agents and\n"
	"~/.claude/agents, beside the built-in ones. A project's is used once its bytes are\n"
	"trusted; a change of the file needs a new yes.\n",
	OPTIONS(roles_opts), roles_run);

const struct command cmd_skills = COMMAND(
	"skills", "[list | show SKILL | check [PATH] | trust PATH]", 0, 2,
	"list skills, show one, check folders, trust a project's",
	"Skills are folders with a SKILL.md in .claude/skills and .agents/skills of a project,\n"
	"$XDG_CONFIG_HOME/ava/skills and ~/.claude/skills. A run is told which there are and "
	"opens\n"
	"one with read_skill. A project's is offered once all of its files are trusted; a change\n"
	"of one needs a new yes.\n",
	OPTIONS(roles_opts), skills_run);
