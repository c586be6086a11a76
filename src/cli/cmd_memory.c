/* ava memory: what Ava remembers of the user; doc/MEMORY.md. All of it goes through the
 * daemon, which alone has the file. Times are local, with --json they are as the daemon says.
 *
 * rm is final; --all asks first on a terminal, and elsewhere wants --yes (exit 4 without). */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/util.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "cli/task.h"
#include "cli/term.h"
#include "codec/json.h"

#define BODY_MAX (1u << 20)

static const char *const kinds[] = {"person", "project", "fact", NULL};

static struct {
	bool json, pin, unpin, all, yes, here;
	const char *kind;
	struct opt_list tag;
	int64_t limit;
} o;

static const struct opt memory_opts[] = {
	OPT("kind", 0, STR, "KIND", kind, "person, project or fact: only those, or what it is",
	    .words = kinds),
	OPT("here", 0, FLAG, NULL, here,
	    "what is about this folder (and what is about none); add: about it alone"),
	OPT("limit", 'n', COUNT, "N", limit, "at most N of them (1000)"),
	OPT("tag", 't', LIST, "WORD", tag, "add, edit: with this tag (may be repeated)"),
	OPT("pin", 0, FLAG, NULL, pin, "add, edit: each conversation begins with it"),
	OPT("unpin", 0, FLAG, NULL, unpin, "edit: no longer"),
	OPT("all", 'a', FLAG, NULL, all, "rm: everything"),
	OPT("yes", 'y', FLAG, NULL, yes, "rm --all: do not ask"),
	OPT("json", 0, FLAG, NULL, json, "as JSON; what has changed as one object"),
};

static void memory_where(const json_t *row, char *out, size_t size)
{
	snprintf(out, size, "%s%s", json_get_bool(row, "pinned", false) ? "pinned " : "",
		 json_str(row, "cwd"));
}

static void memory_add_query(struct buf *path, const char *key, const char *value)
{
	buf_addf(path, "&%s=", key);
	client_escape(path, value);
}

/* The rows, a new reference; NULL: why has been said, *code. */
static json_t *ask_rows(const char *words, int *code)
{
	char cwd[ROOT_PATH_MAX];
	json_t *reply = NULL;
	struct buf path;

	buf_init(&path, BODY_MAX);
	buf_addf(&path, "/memories?limit=%lld",
		 (long long)(o.limit == 0 ? 1000 : MIN(o.limit, 10000)));
	if (words)
		memory_add_query(&path, "q", words);
	if (o.kind)
		memory_add_query(&path, "kind", o.kind);
	if (o.here && getcwd(cwd, sizeof(cwd)))
		memory_add_query(&path, "cwd", cwd);
	*code = buf_check(&path) == 0 ? api_ask(&reply, NULL, "%s", path.data)
				      : cli_error(CLI_FAILED, "out of memory");
	buf_fini(&path);
	return *code == CLI_DONE ? reply : NULL;
}

static int memory_show_rows(const char *words)
{
	static const struct column columns[] = {
		{"ID", COLUMN_TEXT, "id"},
		{"KIND", COLUMN_TEXT, "kind", .spare = true},
		{"SINCE", COLUMN_MOMENT, "updated_at", .spare = true},
		{"ABOUT", COLUMN_OWN, .own = memory_where, .spare = true},
		{"TEXT", COLUMN_TEXT, "text"},
	};
	int code;
	json_t *reply = ask_rows(words, &code);
	const json_t *rows = json_object_get(reply, "memories");

	if (reply && o.json)
		show_json(stdout, rows);
	else if (reply && json_array_size(rows) == 0)
		puts(words ? "Nothing that is remembered has these words."
			   : "Nothing is remembered. `ava memory add TEXT` does, or tell Ava: "
			     "\"remember that ...\".");
	else if (reply)
		code = show_table(columns, ARRAY_LEN(columns), rows);
	json_decref(reply);
	return code;
}

/* Whole rows, one a line. */
static int export_rows(void)
{
	const json_t *row;
	json_t *reply;
	int code;
	size_t i;

	o.limit = 10000;
	reply = ask_rows(NULL, &code);
	json_array_foreach(json_object_get(reply, "memories"), i, row) show_json(stdout, row);
	json_decref(reply);
	return code;
}

/* `text` NULL: it stays. */
static int write_body(struct buf *body, const char *text)
{
	char cwd[ROOT_PATH_MAX];
	struct jw w;

	api_body(&w, body, BODY_MAX);
	if (text)
		jw_str(&w, "text", text);
	if (o.kind)
		jw_str(&w, "kind", o.kind);
	if (o.here && getcwd(cwd, sizeof(cwd)))
		jw_str(&w, "cwd", cwd);
	if (o.tag.n > 0) {
		jw_array(&w, "tags");
		for (size_t i = 0; i < o.tag.n; i++)
			jw_str(&w, NULL, o.tag.items[i]);
		jw_end(&w);
	}
	if (o.pin || o.unpin)
		jw_bool(&w, "pinned", o.pin);
	jw_end(&w);
	return buf_check(body) == 0 ? CLI_DONE : cli_error(CLI_USAGE, "the text is too long");
}

static void print_written(const json_t *reply)
{
	const json_t *row = json_object_get(reply, "memory"), *like;
	const char *outcome = json_str(reply, "outcome");
	size_t i;

	if (o.json) {
		show_json(stdout, reply);
		return;
	}
	term_print(stdout, "%s (%s): %s\n",
		   strcmp(outcome, "added") == 0     ? "Noted"
		   : strcmp(outcome, "changed") == 0 ? "Changed"
						     : "Known already",
		   json_str(row, "id"), json_str(row, "text"));
	json_array_foreach(json_object_get(reply, "similar"), i, like)
		term_print(stdout, "Much the same says %s: %s\n", json_str(like, "id"),
			   json_str(like, "text"));
}

/* `id` NULL: a new one. */
static int write_memory(const char *id, const char *text)
{
	json_t *reply = NULL;
	struct buf body;
	int code = write_body(&body, text);

	if (code == CLI_DONE)
		code = api_ask(&reply, body.data, "/memories%s%s", id ? "/" : "", id ? id : "");
	if (code == CLI_DONE)
		print_written(reply);
	json_decref(reply);
	buf_fini(&body);
	return code;
}

static int remove_memories(int argc, char **argv)
{
	bool sure = !o.all || o.yes;
	json_t *reply = NULL;
	struct buf body;
	struct jw w;
	int code;

	if (o.all == (argc > 0))
		return cli_error(CLI_USAGE, "rm takes ids (M-19c0de) or --all");
	if (!sure && isatty(STDIN_FILENO) && isatty(STDERR_FILENO)) {
		fputs("Remove everything that is remembered of you, for good? [Yes/No] ", stderr);
		sure = task_yes() == 1;
	}
	if (!sure)
		return cli_error(CLI_REJECTED, "no yes (or --yes): nothing was removed");
	api_body(&w, &body, BODY_MAX);
	if (o.all)
		jw_bool(&w, "all", true);
	else
		jw_array(&w, "ids");
	for (int i = 0; i < argc; i++)
		jw_str(&w, NULL, argv[i]);
	while (w.depth > 0)
		jw_end(&w);
	code = api_ask(&reply, body.data, "/memories/remove");
	buf_fini(&body);
	if (code == CLI_DONE && json_str(reply, "warning")[0])
		cli_note("%s", json_str(reply, "warning"));
	if (code == CLI_DONE && o.json)
		show_json(stdout, reply);
	else if (code == CLI_DONE)
		printf("Removed. What was said of it in a conversation stays in that "
		       "conversation.\n");
	json_decref(reply);
	return code;
}

static int reset_memory(void)
{
	json_t *reply = NULL;
	int code = api_ask(&reply, "{}", "/memories/reset");

	if (code == CLI_DONE)
		puts("The damaged file is set aside as memory.db.broken; a new one is begun.");
	json_decref(reply);
	return code;
}

static int memory_run(int argc, char **argv)
{
	const char *what = argc > 0 ? argv[0] : "list";
	struct buf words;
	int code;

	if (strcmp(what, "list") == 0 && argc <= 1)
		return memory_show_rows(NULL);
	if (strcmp(what, "export") == 0 && argc == 1)
		return export_rows();
	if (strcmp(what, "reset") == 0 && argc == 1)
		return reset_memory();
	if (strcmp(what, "rm") == 0)
		return remove_memories(argc - 1, argv + 1);
	if (strcmp(what, "edit") == 0 && argc == 2)
		return write_memory(argv[1], NULL);
	if ((strcmp(what, "add") != 0 && strcmp(what, "search") != 0 &&
	     strcmp(what, "edit") != 0) ||
	    argc < 2)
		return cli_error(CLI_USAGE, "`ava memory` takes list, search TEXT, add TEXT, edit "
					    "M-id TEXT, rm M-id..., export or reset");
	argv += strcmp(what, "edit") == 0;
	argc -= strcmp(what, "edit") == 0;
	code = cli_words(&words, BODY_MAX, argc - 1, argv + 1);
	if (code == CLI_DONE && strcmp(what, "search") == 0)
		code = memory_show_rows(words.data);
	else if (code == CLI_DONE)
		code = write_memory(strcmp(what, "edit") == 0 ? argv[0] : NULL, words.data);
	buf_fini(&words);
	return code;
}

const struct command cmd_memory = COMMAND(
	"memory", "[list] | search TEXT | add TEXT | edit M-id [TEXT] | rm M-id...|--all | export",
	0, -1, "see and change what Ava remembers of you",
	"Ava notes what you ask her to remember (\"remember that I prefer short answers\"), and\n"
	"begins later conversations with it. Here it can be seen, changed and removed for good.\n"
	"A search finds all the words, or some of them; their beginnings are enough.\n"
	"`ava memory reset` sets a damaged file aside and begins a new one.\n",
	OPTIONS(memory_opts), memory_run);
