/* ava completion: what a shell can put in place of the word that is being typed.
 *
 * The scripts for the shells are small and know no command: they ask `ava completion words` with
 * the words so far, and have a candidate a line, with a tab and what it is behind it. Where a file
 * may stand nothing is said, and the shell takes its own. Commands, options and the words of an
 * argument are read from the rows that parse; a placeholder in them (S-id, ROLE) is a row of
 * `kinds`, asked of the daemon that runs.
 *
 * Somebody waits with a finger on a key: no daemon is started, and one that does not answer within
 * WAIT_MS is left. Then runs are those whose folders the data root has. Nothing fails aloud. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/settings.h"
#include "base/util.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "cli/term.h"
#include "codec/json.h"
#include "codec/utf8.h"

#define WAIT_MS    500
#define RUNS_MAX   1000 /* folders of runs that are looked at without a daemon */
#define WHAT_CHARS 60

static const struct command *const completion_rows[] = {
#define X(name, ...) &cmd_##name,
	COMMANDS(X)
#undef X
};

extern const struct embedded completion_scripts[];

/* ---- candidates */

static const char *typed; /* the beginning of the word, which candidates share */
static int before;        /* bytes in front of it that belong to the shell's word: "--role=" */

static void completion_say(const char *word, const char *what)
{
	if (strncmp(word, typed, strlen(typed)) != 0 || word[0] == '\0')
		return;
	term_print(stdout, "%.*s%s", before, typed - before, word);
	if (what != NULL && what[0] != '\0')
		term_print(stdout, "\t%.*s", (int)utf8_prefix(what, strlen(what), WHAT_CHARS),
			   what);
	putchar('\n');
}

/* Words with a blank between two. */
static void completion_say_words(const char *words)
{
	char word[64];

	for (; *words != '\0'; words += strspn(words, " ")) {
		size_t n = strcspn(words, " ");

		snprintf(word, sizeof(word), "%.*s", (int)n, words);
		completion_say(word, NULL);
		words += n;
	}
}

static const struct completion_kind {
	const char *name;  /* in a row's args, or an option's value */
	const char *words; /* all that there are; NULL: the daemon is asked */
	const char *path, *list, *id, *what;
} kinds[] = {
	{"S-id", NULL, "/runs?all=1", "runs", "subagent_id", "task"},
	{"AGENT", NULL, "/runs?all=1", "runs", "subagent_id", "task"},
	{"P-id", NULL, "/proposals", "proposals", "proposal_id", "message"},
	{"ID", NULL, "/asks", "asks", "id", "title"},
	{"M-id", NULL, "/memories", "memories", "id", "text"},
	{"SESSION", NULL, "/sessions", "sessions", "session_id", "title"},
	{"MODEL", NULL, "/models", "models", "id", NULL},
	{"ROLE", NULL, "/roles", "roles", "name", "summary"},
	{"SKILL", NULL, "/skills", "skills", "name", "summary"},
	{"CLIENT", "claude codex cursor zed", NULL, NULL, NULL, NULL},
	{"PRESET", "quick standard deep", NULL, NULL, NULL, NULL},
	{"GRANT", "rw fetch_any all_three", NULL, NULL, NULL, NULL},
};

/* Runs as the data root has them, the first that are found. */
static void completion_say_folders(void)
{
	char path[ROOT_PATH_MAX];
	struct ava_error err;
	const struct dirent *e;
	size_t len;
	DIR *dir;

	if (settings_data_root(path, sizeof(path) - sizeof("/runs"), &err) != 0)
		return;
	len = strlen(path);
	snprintf(path + len, sizeof(path) - len, "/runs");
	dir = opendir(path);
	for (int i = 0; dir != NULL && i < RUNS_MAX && (e = readdir(dir)) != NULL; i++)
		if (id_is_run(e->d_name))
			completion_say(e->d_name, NULL);
	if (dir != NULL)
		closedir(dir);
}

static void completion_ask(const struct completion_kind *k)
{
	char cwd[ROOT_PATH_MAX];
	json_t *answer = NULL, *row;
	struct ava_error err;
	struct buf path;
	size_t i;

	buf_init(&path, 3 * ROOT_PATH_MAX);
	buf_adds(&path, k->path);
	if (strcmp(k->name, "ROLE") == 0 && getcwd(cwd, sizeof(cwd)) != NULL) {
		buf_adds(&path, "?cwd=");
		client_escape(&path, cwd);
	}
	/* A socket that somebody else holds would start the daemon that connecting is for. */
	if (root_is_held() && api_open(API_LOOK, &err) == 0) {
		api_deadline(clock_mono_ms() + WAIT_MS);
		if (buf_check(&path) == 0)
			(void)api_call(path.data, NULL, &answer, NULL, &err);
	}
	if (answer == NULL && strcmp(k->list, "runs") == 0)
		completion_say_folders();
	json_array_foreach(json_object_get(answer, k->list), i, row) completion_say(
		json_str(row, k->id), k->what != NULL ? json_str(row, k->what) : NULL);
	json_decref(answer);
	buf_fini(&path);
}

/* `name`, of `len` bytes, is a placeholder. */
static void completion_say_kind(const char *name, size_t len)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (strlen(kinds[i].name) != len || memcmp(kinds[i].name, name, len) != 0)
			continue;
		if (kinds[i].words != NULL)
			completion_say_words(kinds[i].words);
		else
			completion_ask(&kinds[i]);
		return;
	}
	if (len == strlen("COMMAND") && memcmp(name, "COMMAND", len) == 0)
		for (size_t i = 0; i < ARRAY_LEN(completion_rows); i++)
			if (strchr(completion_rows[i]->name, ' ') == NULL)
				completion_say(completion_rows[i]->name,
					       completion_rows[i]->summary);
}

/* ---- the place of the word */

/* Candidates for an alternative of a command's args, such as "check PATH" or "S-id...": `words` are
 * those before the one that is typed. */
static void completion_say_place(const char *form, size_t len, int n, char **words)
{
	const char *end = form + len, *at = form, *token = form;
	size_t size = 0;

	for (int i = 0;; i++) {
		bool literal;

		at += strspn(at, " ");
		if (at < end) { /* else the last word, where it may be repeated */
			token = at;
			size = MIN(strcspn(at, " "), (size_t)(end - at));
			at += size;
		} else if (size < 3 || memcmp(token + size - 3, "...", 3) != 0) {
			return;
		}
		literal = token[0] >= 'a' && token[0] <= 'z';
		if (i == n && literal) {
			char word[64];

			snprintf(word, sizeof(word), "%.*s", (int)size, token);
			completion_say(word, NULL);
		}
		if (i == n && !literal)
			completion_say_kind(token,
					    size > 3 && token[size - 1] == '.' ? size - 3 : size);
		if (i == n ||
		    (literal && (strlen(words[i]) != size || memcmp(words[i], token, size) != 0)))
			return;
	}
}

static void completion_say_args(const char *args, int n, char **words)
{
	char form[256];
	size_t len = 0;

	for (; *args != '\0' && len < sizeof(form) - 1; args++)
		if (*args != '[' && *args != ']')
			form[len++] = *args;
	form[len] = '\0';
	for (const char *at = form; at != NULL; at = strchr(at, '|'), at += at != NULL)
		completion_say_place(at, strcspn(at, "|"), n, words);
}

static void completion_say_options(const struct command *c)
{
	char name[64];

	for (size_t i = 0; i < c->nopts; i++) {
		snprintf(name, sizeof(name), "--%s", c->opts[i].name);
		completion_say(name, c->opts[i].help);
		snprintf(name, sizeof(name), "--no-%s", c->opts[i].name);
		if (c->opts[i].type == OPT_SWITCH)
			completion_say(name, c->opts[i].help);
	}
	completion_say("--help", "how it is used");
}

/* The option that a word of `len` bytes ends with, when that takes a value which is still to come:
 * "--role", "-r". NULL: none. */
static const struct opt *completion_option(const struct command *c, const char *word, size_t len)
{
	for (size_t i = 0; len > 1 && word[0] == '-' && i < c->nopts; i++) {
		const struct opt *o = &c->opts[i];
		bool is = word[1] != '-' ? word[len - 1] == o->letter
					 : strlen(o->name) == len - 2 &&
						   memcmp(word + 2, o->name, len - 2) == 0;

		if (is && o->value != NULL)
			return o;
	}
	return NULL;
}

static void completion_say_value(const struct opt *o)
{
	for (size_t i = 0; o->words != NULL && o->words[i] != NULL; i++)
		completion_say(o->words[i], NULL);
	if (o->words == NULL)
		completion_say_kind(o->value, strlen(o->value));
}

/* Behind the command's name: words[0..n), the last of which is typed. */
static void completion_behind(const struct command *c, int n, char **words)
{
	const struct opt *o = NULL;
	size_t equals = strcspn(typed, "=");
	int kept = 0;

	for (int i = 0; i < n - 1; i++) {
		if (o == NULL && words[i][0] != '-')
			words[kept++] = words[i];
		o = o == NULL ? completion_option(c, words[i], strlen(words[i])) : NULL;
	}
	if (o == NULL && typed[equals] == '=' && typed[0] == '-') {
		o = completion_option(c, typed, equals);
		before = o != NULL ? (int)equals + 1 : 0;
		typed += before;
	}
	if (o != NULL)
		completion_say_value(o);
	else if (typed[0] == '-')
		completion_say_options(c);
	else
		completion_say_args(c->args, kept, words);
}

static int completion_words_run(int argc, char **argv)
{
	const struct command *c = NULL;
	size_t len = 0;

	typed = argc > 0 ? argv[argc - 1] : "";
	if (argc <= 1) {
		completion_say_kind("COMMAND", strlen("COMMAND"));
		return CLI_DONE;
	}
	for (size_t i = 0; i < ARRAY_LEN(completion_rows); i++) {
		const char *name = completion_rows[i]->name, *more = strchr(name, ' ');

		len = strcspn(name, " ");
		if (strlen(argv[0]) != len || memcmp(argv[0], name, len) != 0)
			continue;
		if (more == NULL || (argc > 2 && strcmp(argv[1], more + 1) == 0))
			c = completion_rows[i];
		else if (argc == 2)
			completion_say(more + 1, completion_rows[i]->summary);
	}
	len = c != NULL && strchr(c->name, ' ') != NULL ? 2 : 1;
	if (c != NULL)
		completion_behind(c, argc - (int)len, argv + len);
	return CLI_DONE;
}

static int completion_run(int argc, char **argv)
{
	for (size_t i = 0; completion_scripts[i].path != NULL; i++) {
		const char *name = strrchr(completion_scripts[i].path, '/') + 1;

		/* ava.bash, ava.fish; zsh looks for a file by the command: _ava */
		if (strcmp(argv[0], name[0] == '_' ? "zsh" : strchr(name, '.') + 1) != 0)
			continue;
		fwrite(completion_scripts[i].text, 1, completion_scripts[i].len, stdout);
		return CLI_DONE;
	}
	return cli_error(CLI_USAGE,
			 "there is no completion for \"%.40s\": bash, zsh and fish have one",
			 argv[0]);
}

const struct command cmd_completion = COMMAND(
	"completion", "bash|zsh|fish", 1, 1, "print what completes commands in a shell",
	"A package installs it where the shell looks. Else, in the file that your shell reads "
	"first:\n"
	"\n"
	"  source <(ava completion bash)        # ~/.bashrc\n"
	"  source <(ava completion zsh)         # ~/.zshrc, behind compinit\n"
	"  ava completion fish | source         # ~/.config/fish/config.fish\n"
	"\n"
	"Ids of runs, quotes and conversations, roles and models are those of now, as far as a\n"
	"daemon runs; none is started for it.\n",
	.run = completion_run);
const struct command cmd_completion_words = COMMAND(
	"completion words", "[WORD...]", 0, -1, "print what may stand in place of the last word",
	"A shell's script asks this, with the words behind `ava` so far behind \"--\". A line "
	"is a\ncandidate, a tab, and what it is; none: a file, or anything.\n",
	.run = completion_words_run);
