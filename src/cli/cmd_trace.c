/* ava trace S-id|NAME: what a run did, as a tree, as bars on a line of time, as
 * one JSON object (traceId, parentId, startTime, endTime, events), or exported.
 * From the files alone. ava trace import FILE: keeps a trace from elsewhere in
 * imports/ of the data root, where it is found by its name.
 *
 * ava trace checkpoint S-id NAME: names where a run is; the daemon writes it.
 *
 * Broken lines are named on stderr and make the command end with 1; the rest is
 * still shown. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/id.h"
#include "base/sys.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/term.h"
#include "cli/tracetree.h"
#include "codec/json.h"
#include "journal/read.h"

#define IMPORTS    "imports"
#define IMPORT_MAX ((size_t)1 << 30)

static struct {
	bool json, tree, waterfall, push;
	const char *export, *checkpoint;
} o;

static const char *const exports[] = {"jsonl", "otlp", NULL};

static const struct opt opts[] = {
	OPT("tree", 0, FLAG, NULL, tree,
	    "turns and calls with durations and costs (what is shown anyway)"),
	OPT("waterfall", 'w', FLAG, NULL, waterfall, "when each call was at work, as bars"),
	OPT("json", 0, FLAG, NULL, json, "the trace as one JSON object"),
	OPT("export", 0, STR, "FORM", export,
	    "jsonl: an event a line; otlp: OTLP/JSON for a collector", .words = exports),
	OPT("checkpoint", 0, STR, "NAME", checkpoint,
	    "that checkpoint as one JSON object: its events and its messages"),
	OPT("push", 0, FLAG, NULL, push, "to the collector of otel.endpoint, again if it was"),
};

/* ---- which trace */

/* A name in imports/ is the name of a trace: letters, digits, hyphens. */
static bool import_path(char *out, size_t size, const char *root, const char *name)
{
	size_t len = strlen(name);

	return len > 0 && len < sizeof(((struct trace_name *)0)->text) && name[0] != '-' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == len &&
	       (size_t)snprintf(out, size, "%s/" IMPORTS "/%s.jsonl", root, name) < size;
}

static void tell_bad(const char *sentence, void *user)
{
	*(bool *)user = true;
	cli_error(CLI_FAILED, "%s", sentence);
}

static int read_trace(struct ava_trace **t, const char *root, const char *name, bool *broken,
		      struct ava_error *err)
{
	char path[ROOT_PATH_MAX + 128];
	int rv = ava_trace_read(t, root, name, tell_bad, broken, err);

	if (rv == AVA_ENOENT && import_path(path, sizeof(path), root, name) &&
	    ava_trace_read_jsonl(t, path, tell_bad, broken, NULL) == 0)
		return 0;
	return rv;
}

/* ---- what is shown of it */

static int print_jsonl(struct ava_trace *t, struct ava_error *err)
{
	const struct ava_event *e;
	size_t n;
	int rv = ava_trace_events(t, NULL, 0, 0, &e, &n, err);

	for (size_t i = 0; rv == 0 && i < n; i++) {
		term_bytes(stdout, e[i].json, e[i].len);
		putchar('\n');
	}
	return rv;
}

static int print_text(struct ava_trace *t,
		      int (*text)(struct ava_trace *t, const char **json, size_t *len,
				  struct ava_error *err),
		      struct ava_error *err)
{
	const char *json;
	size_t len;
	int rv = text(t, &json, &len, err);

	if (rv != 0)
		return rv;
	term_bytes(stdout, json, len);
	putchar('\n');
	return 0;
}

/* doc/TRACE.md, "The value". */
static int print_checkpoint(const char *root, const char *run, struct ava_error *err)
{
	struct ava_checkpoint *c = NULL;
	const char *json;
	size_t len;
	int rv = ava_checkpoint_read(&c, root, run, o.checkpoint, err);

	if (rv == 0)
		rv = ava_checkpoint_json(c, &json, &len, err);
	if (rv == 0) {
		term_bytes(stdout, json, len);
		putchar('\n');
	}
	ava_checkpoint_free(c);
	return rv;
}

static int trace_show(struct ava_trace *t, struct ava_error *err)
{
	if (o.export != NULL && strcmp(o.export, "otlp") == 0)
		return print_text(t, ava_trace_otlp, err);
	if (o.export != NULL)
		return print_jsonl(t, err);
	if (o.json)
		return print_text(t, ava_trace_json, err);
	return (o.waterfall ? waterfall_print : tracetree_print)(t, stdout, err);
}

/* ---- import */

/* An event a line, or the one object that --json prints. */
static int read_import(struct ava_trace **t, const char *path, bool *broken, struct ava_error *err)
{
	static const char object[] = "{\"traceId\"";
	char *data = NULL;
	size_t len = 0;
	int rv = sys_read_file(AT_FDCWD, path, IMPORT_MAX, &data, &len, err);

	*t = NULL;
	if (rv != 0)
		return rv;
	if (len > sizeof(object) && memcmp(data, object, sizeof(object) - 1) == 0) {
		rv = ava_trace_parse(t, data, len, err);
		if (rv != 0)
			err_wrap(err, rv, "%s", path);
	} else {
		rv = ava_trace_read_jsonl(t, path, tell_bad, broken, err);
	}
	free(data);
	return rv;
}

/* Refuse lines of several runs, which would show one run's work as another's. */
static int check_one_run(struct ava_trace *t, const char *file, struct ava_error *err)
{
	const struct ava_event *e;
	size_t n;
	int rv = ava_trace_events(t, NULL, 0, 0, &e, &n, err);

	for (size_t i = 0; rv == 0 && i < n; i++)
		if (!id_is_run(e[i].agent))
			rv = err_set(err, AVA_EINVAL,
				     "%s: the agentId \"%.40s\" is not the id of a run (S-7f3a2b)",
				     file, e[i].agent);
		else if (strcmp(e[i].agent, e[0].agent) != 0 || strcmp(e[i].trace, e[0].trace) != 0)
			rv = err_set(err, AVA_EINVAL,
				     "%s has events of %s (%.40s) and of %s (%.40s): import the "
				     "trace of one run",
				     file, e[0].agent, e[0].trace, e[i].agent, e[i].trace);
	return rv;
}

/* A run of this root comes first when a name is looked up: the import would never be seen. */
static int check_name_free(const char *root, const char *name, struct ava_error *err)
{
	struct run_id run;
	int fd = read_open_root(root, err), rv;

	if (fd < 0)
		return fd;
	rv = read_find_trace(fd, name, &run, err);
	close(fd);
	if (rv == AVA_ENOENT)
		return 0;
	return rv != 0 ? rv
		       : err_set(err, AVA_EINVAL,
				 "%s is the trace of %s of this data root, which ava trace shows: "
				 "nothing was imported",
				 name, run.text);
}

static int import(const char *root, const char *file, bool *broken, struct ava_error *err)
{
	char path[ROOT_PATH_MAX + 128];
	struct ava_trace_info info;
	struct ava_trace *t;
	int rv = read_import(&t, file, broken, err);

	if (rv != 0)
		return rv;
	ava_trace_info(t, &info);
	if (info.events == 0)
		rv = err_set(err, AVA_EINVAL, "%s has no event", file);
	else if (!import_path(path, sizeof(path), root, info.id))
		rv = err_set(err, AVA_EINVAL,
			     "%s: the trace has no name such as brave-otter (\"traceId\")", file);
	if (rv == 0)
		rv = check_one_run(t, file, err);
	if (rv == 0)
		rv = check_name_free(root, info.id, err);
	if (rv == 0) {
		snprintf(path, sizeof(path), "%s/" IMPORTS, root);
		if (mkdir(path, 0700) != 0 && errno != EEXIST)
			rv = err_sys(err, "%s", path);
	}
	if (rv == 0) {
		import_path(path, sizeof(path), root, info.id);
		rv = ava_trace_write_jsonl(t, path, err);
	}
	if (rv == 0)
		printf("%s: %zu events; ava trace %s shows them\n", info.id, info.events, info.id);
	ava_trace_free(t);
	return rv;
}

/* ---- checkpoint and push: the daemon does them */

static int trace_checkpoint(const char *run, const char *name)
{
	char path[64];
	struct ava_error err;
	json_t *answer = NULL;
	int code;

	if (o.json || o.tree || o.waterfall || o.push || o.export != NULL || o.checkpoint != NULL)
		return cli_error(CLI_USAGE, "checkpoint takes no option");
	if (cli_check_run_id(run) != CLI_DONE)
		return CLI_USAGE;
	snprintf(path, sizeof(path), "/runs/%s/checkpoint", run);
	code = api_post(&answer, &err, path, "name", name, NULL) == 0 ? CLI_DONE : cli_fail(&err);
	if (code == CLI_DONE)
		printf("checkpoint %s of %s, before its model call %" PRId64
		       "; when it has ended: ava replay %s --from %s\n",
		       name, run, json_get_int(answer, "from", 0), run, name);
	json_decref(answer);
	return code;
}

static int trace_push(const char *run)
{
	json_t *answer = NULL;
	int code = cli_check_run_id(run);

	if (code != CLI_DONE)
		return code;
	code = api_ask(&answer, "{}", "/runs/%s/push", run);
	if (code == CLI_DONE)
		printf("the trace of %s is on its way; ava status says what becomes of it\n", run);
	json_decref(answer);
	return code;
}

static int trace_run(int argc, char **argv)
{
	bool importing = strcmp(argv[0], "import") == 0, broken = false;
	struct ava_trace *t = NULL;
	char root[ROOT_PATH_MAX];
	struct ava_error err;
	int rv;

	if (argc == 3 && strcmp(argv[0], "checkpoint") == 0)
		return trace_checkpoint(argv[1], argv[2]);
	if (argc != 1 + importing)
		return cli_error(CLI_USAGE, importing
						    ? "give the file to import, only"
						    : "give one S-id or NAME, or: import FILE, or: "
						      "checkpoint S-id NAME");
	if (o.json + o.tree + o.waterfall + o.push + (o.export != NULL) + (o.checkpoint != NULL) >
	    1 + (o.json && o.checkpoint != NULL))
		return cli_error(CLI_USAGE, "choose one of --tree, --waterfall, --json, --export, "
					    "--checkpoint, --push");
	if (importing && o.checkpoint != NULL)
		return cli_error(CLI_USAGE, "--checkpoint needs an S-id or NAME");
	if (o.push)
		return importing ? cli_error(CLI_USAGE, "--push needs an S-id")
				 : trace_push(argv[0]);
	rv = root_prepare_run(root, importing ? NULL : argv[0], NULL, &err);
	if (rv == 0 && o.checkpoint != NULL)
		rv = print_checkpoint(root, argv[0], &err);
	else if (rv == 0)
		rv = importing ? import(root, argv[1], &broken, &err)
			       : read_trace(&t, root, argv[0], &broken, &err);
	if (rv == 0 && t != NULL)
		rv = trace_show(t, &err);
	ava_trace_free(t);
	if (rv != 0)
		return cli_fail(&err);
	return broken ? CLI_FAILED : CLI_DONE;
}

const struct command cmd_trace =
	COMMAND("trace", "S-id|NAME | import FILE | checkpoint S-id NAME", 1, 3,
		"show what a run did, turn by turn; export and import traces",
		"Needs no daemon, but for checkpoint. A NAME such as brave-otter is the trace's "
		"human name.\n"
		"import keeps the events of FILE (as --export jsonl or --json wrote it) under\n"
		"the name of their trace, also one of another machine. checkpoint names where\n"
		"a run is that is at work; ava replay S-id --from NAME forks it there.\n",
		OPTIONS(opts), trace_run);
