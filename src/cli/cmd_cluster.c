/* ava cluster: many machines that share their runs through a PostgreSQL (doc/CLUSTER.md).
 *
 * The database is asked by `avad --cluster`, since the library for it is avad's; the daemon tells
 * how far it is itself. join and leave write the file of keys. What can fail: the database, which
 * avad tells in one sentence; a run that keeps a machine (leave). A leave that does not come to its
 * end leaves a member, with its URL. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/format.h"
#include "base/keys.h"
#include "base/settings.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "cli/term.h"
#include "client/start.h"
#include "codec/json.h"

#define URL_NAME "AVA_CLUSTER_URL"

static struct {
	bool json, print;
} o;

static const struct opt cluster_opts[] = {
	OPT("print", 0, FLAG, NULL, print, "init: the SQL instead, for whoever owns the database"),
	OPT("json", 0, FLAG, NULL, json, "as one JSON object"),
};

/* ---- status */

static void machine_line(const json_t *m)
{
	double lease = json_number_value(json_object_get(m, "lease_seconds"));
	const json_t *end = json_object_get(m, "lease_seconds"), *folder;
	char how[96];
	size_t i;

	if (json_get_bool(m, "alive", false))
		snprintf(how, sizeof(how), "alive, its lease ends in %s",
			 format_seconds((int64_t)(lease * 1000)).text);
	else if (json_is_number(end))
		snprintf(how, sizeof(how), "silent, its lease ended %s ago",
			 format_seconds((int64_t)(-lease * 1000)).text);
	else
		snprintf(how, sizeof(how), "away, its lease was given back or taken");
	term_print(stdout, "  %-16s %s%s; %" PRId64 " run%s; ava %s", json_str(m, "name"), how,
		   json_get_bool(m, "leaving", false) ? ", leaves" : "", json_get_int(m, "runs", 0),
		   json_get_int(m, "runs", 0) == 1 ? "" : "s", json_str(m, "version"));
	json_array_foreach(json_object_get(m, "folders"), i, folder)
		term_print(stdout, "%s %s", i > 0 ? "," : "; folders", json_string_value(folder));
	puts(json_get_bool(m, "this", false) ? "  (this one)" : "");
}

/* The running daemon's own view; no object: none runs, or it is in no cluster. */
static void own_lines(const json_t *own)
{
	int64_t runs = json_get_int(own, "waiting_runs", 0);
	const char *problem = json_str(own, "problem");

	if (!json_is_object(own))
		return;
	term_print(stdout, "The daemon here: %s%s%s", json_str(own, "state"),
		   problem[0] != '\0' ? ": " : "", problem);
	if (runs > 0)
		printf("; %s of %" PRId64 " run%s wait%s for the database",
		       format_bytes(json_get_int(own, "waiting_bytes", 0)).text, runs,
		       runs == 1 ? "" : "s", runs == 1 ? "s" : "");
	else
		printf("; nothing waits for the database");
	putchar('\n');
}

static void budget_lines(const json_t *all)
{
	const json_t *row, *loan;
	size_t i, k;

	json_array_foreach(json_object_get(all, "budgets"), i, row)
	{
		term_print(stdout, "Budget %s: %s of %s used%s\n", json_str(row, "scope"),
			   format_money(json_get_fixed(row, "used_cents", 4, 0)).text,
			   format_money(json_get_fixed(row, "cap_cents", 4, 0)).text,
			   json_array_size(json_object_get(row, "loans")) > 0 ? "; borrowed by"
									      : "");
		json_array_foreach(json_object_get(row, "loans"), k, loan) term_print(
			stdout, "  %-16s %s, of which %s used\n", json_str(loan, "machine"),
			format_money(json_get_fixed(loan, "lent_cents", 4, 0)).text,
			format_money(json_get_fixed(loan, "used_cents", 4, 0)).text);
	}
}

static void table_lines(const json_t *all)
{
	const json_t *snapshots = json_object_get(all, "old_snapshots"),
		     *tables = json_object_get(all, "tables"), *row;
	size_t i;

	json_array_foreach(snapshots, i, row) term_print(
		stdout,
		"%s (%s, process %" PRId64 ") looks at a state that is %s old: rows that change "
		"are not cleared away meanwhile\n",
		json_str(row, "application")[0] != '\0' ? json_str(row, "application")
							: "a program",
		json_str(row, "user"), json_get_int(row, "pid", 0),
		format_seconds(json_get_int(row, "seconds", 0) * 1000).text);
	puts("Tables:");
	json_array_foreach(tables, i, row)
		term_print(stdout, "  %-16s %s, %s rows, %s dead\n", json_str(row, "name"),
			   format_bytes(json_get_int(row, "bytes", 0)).text,
			   format_count((size_t)json_get_int(row, "rows", 0)).text,
			   format_count((size_t)json_get_int(row, "dead_rows", 0)).text);
}

static void status_print(const json_t *all)
{
	const json_t *machines = json_object_get(all, "machines"),
		     *runs = json_object_get(all, "runs"), *server = json_object_get(all, "server"),
		     *row;
	const char *standbys = json_str(server, "standbys");
	size_t i;

	term_print(stdout,
		   "Cluster %s: %" PRId64 " runs at work, %" PRId64 " held, %" PRId64 " ended.\n",
		   json_str(all, "id"), json_get_int(runs, "live", 0),
		   json_get_int(runs, "held", 0), json_get_int(runs, "ended", 0));
	if (json_str(all, "problem")[0] != '\0')
		term_print(stdout, "No machine joins: %s\n", json_str(all, "problem"));
	puts(json_array_size(machines) > 0 ? "Machines:" : "No machine is in it yet.");
	json_array_foreach(machines, i, row) machine_line(row);
	json_array_foreach(json_object_get(all, "doors"), i, row) term_print(
		stdout, "%s is served by %s.\n", json_str(row, "name"), json_str(row, "machine"));
	own_lines(json_object_get(all, "daemon"));
	budget_lines(all);
	term_print(stdout, "PostgreSQL %s, synchronous_commit = %s, standbys %s: %s.\n",
		   json_str(server, "version"), json_str(server, "synchronous_commit"),
		   standbys[0] != '\0' ? standbys : "none that commits wait for",
		   json_str(server, "promise"));
	table_lines(all);
}

/* Adds "daemon", its view or null. */
static void add_daemon(json_t *all)
{
	json_t *answer = NULL, *own = NULL;
	struct ava_error err;

	if (api_open(API_LOOK, &err) == 0 && api_call("/cluster", NULL, &answer, NULL, &err) == 0)
		own = json_object_get(answer, "cluster");
	json_object_set_new(all, "daemon", json_is_object(own) ? json_incref(own) : json_null());
	json_decref(answer);
}

/* init answers with the status, too. */
static int status_or_init(const char *word)
{
	const char *const words[] = {"--cluster", word, NULL};
	struct ava_error err;
	json_t *all = NULL;

	if (helper_ask(words, &all, &err) != 0)
		return cli_fail(&err);
	add_daemon(all);
	if (o.json)
		show_json(stdout, all);
	else
		status_print(all);
	json_decref(all);
	return CLI_DONE;
}

/* The SQL is no JSON: this program becomes avad, as for `ava serve`. */
static int print_sql(void)
{
	char avad[ROOT_PATH_MAX];
	char *args[] = {avad, "--cluster", "print", NULL};
	struct ava_error err;

	if (start_find(avad, sizeof(avad), &err) != 0)
		return cli_fail(&err);
	execv(avad, args);
	return cli_error(CLI_FAILED, "cannot run %s: %s", avad, strerror(errno));
}

/* ---- join */

/* The words behind join, else standard input: a URL with a password is then in no list of
 * processes. */
static int read_url(int argc, char **argv, struct buf *url, struct ava_error *err)
{
	int rv;

	buf_init(url, 256u << 10); /* keys_store knows what is too long */
	if (argc > 1)
		return buf_adds(url, argv[1]);
	if (isatty(STDIN_FILENO))
		return err_set(err, AVA_EINVAL,
			       "say the URL, or give it to standard input: ava cluster join <FILE");
	rv = cli_read(STDIN_FILENO, "standard input", url, err);
	while (rv == 0 && url->len > 0 && strchr("\r\n \t", url->data[url->len - 1]))
		url->data[--url->len] = '\0';
	return rv;
}

/* Would a daemon with this URL be let in? avad reads the URL from its environment. */
static int try_url(const char *url, json_t **all, struct ava_error *err)
{
	static const char *const words[] = {"--cluster", "try", NULL};
	int rv = setenv(URL_NAME, url, 1) == 0 ? helper_ask(words, all, err)
					       : err_sys(err, "the environment");
	const char *problem = json_str(*all, "problem");

	return rv == 0 && problem[0] != '\0' ? err_set(err, AVA_EUNSUPPORTED, "%s", problem) : rv;
}

/* A daemon that runs has read its keys already. Writes what it does into `says`. */
static void stop_for_join(char *says, size_t size)
{
	json_t *health = NULL, *answer = NULL;
	struct ava_error err;
	int64_t pid;

	if (api_open(API_LOOK, &err) != 0) {
		snprintf(says, size, "The next daemon joins.");
		return;
	}
	if (api_call("/health", NULL, &health, NULL, &err) != 0) {
		snprintf(says, size, "The daemon does not answer: `ava restart` lets it join.");
		return;
	}
	pid = json_get_int(health, "pid", 0);
	if (json_get_bool(health, "service", false))
		snprintf(says, size,
			 "The daemon (process %" PRId64
			 ") is kept by `ava serve` or by a service: restart it there, and it "
			 "joins.",
			 pid);
	else if (api_call("/shutdown", "{\"when\":\"idle\"}", &answer, NULL, &err) == 0)
		snprintf(says, size,
			 "The daemon (process %" PRId64
			 ") stops once no run is started; the next one joins.",
			 pid);
	else
		snprintf(says, size, "The daemon could not be asked to stop: %.200s", err.text);
	json_decref(health);
	json_decref(answer);
}

static int cluster_join_run(int argc, char **argv)
{
	char path[ROOT_PATH_MAX], says[400];
	struct ava_error err = {0};
	json_t *all = NULL;
	struct buf url;
	int rv = read_url(argc, argv, &url, &err);

	if (rv == 0 && url.len == 0)
		rv = err_set(&err, AVA_EINVAL, "the URL is empty");
	else if (rv == 0 && strcspn(url.data, "\r\n") != url.len)
		rv = err_set(&err, AVA_EINVAL, "the URL has to be one line of text");
	if (rv == 0)
		rv = try_url(url.data, &all, &err);
	if (rv == 0)
		rv = keys_store(URL_NAME, url.data, path, sizeof(path), &err);
	buf_fini(&url);
	if (rv != 0) {
		json_decref(all);
		return cli_fail(&err);
	}
	stop_for_join(says, sizeof(says));
	json_object_set_new(all, "stored_in", json_string(path));
	if (o.json)
		show_json(stdout, all);
	else
		term_print(stdout,
			   "The URL of cluster %s is in %s, as %s. %zu machine%s there. %s\n",
			   json_str(all, "id"), path, URL_NAME,
			   json_array_size(json_object_get(all, "machines")),
			   json_array_size(json_object_get(all, "machines")) == 1 ? " is" : "s are",
			   says);
	json_decref(all);
	return CLI_DONE;
}

/* ---- leave */

/* Does the data root say that it is a member? */
static bool root_is_member(const char *root)
{
	char path[ROOT_PATH_MAX + 32];
	struct stat st;

	snprintf(path, sizeof(path), "%s/cluster.json", root);
	return lstat(path, &st) == 0;
}

/* The URL as the file of keys has it, *owned*; NULL: it has none. */
static char *stored_url(void)
{
	const char *name, *value;

	if (keys_load(NULL) != 0)
		return NULL;
	for (size_t i = 0; (name = keys_file(i, &value)) != NULL; i++)
		if (strcmp(name, URL_NAME) == 0)
			return strdup(value);
	return NULL;
}

/* The daemon has the URL in memory, and whoever starts another one meanwhile must not join again.
 */
static int leave_and_wait(const char *root, const char *url, struct ava_error *err)
{
	char path[ROOT_PATH_MAX];
	json_t *answer = NULL;
	int rv = api_open(API_START, err);

	if (rv == 0)
		rv = api_call("/cluster/leave", "{}", &answer, NULL, err);
	json_decref(answer);
	if (rv == 0 && url)
		rv = keys_store(URL_NAME, NULL, path, sizeof(path), err);
	api_close();
	if (rv == 0)
		rv = root_wait_gone(root, err);
	if (rv != 0 || !root_is_member(root))
		return rv;
	if (url)
		(void)keys_store(URL_NAME, url, path, sizeof(path), NULL);
	return err_set(err, AVA_EIO,
		       "this machine is still a member: others did not take all of its runs, or "
		       "the database went away (logs/avad.log); its next daemon goes on with what "
		       "is left, then leave again");
}

static int cluster_leave_run(void)
{
	char root[ROOT_PATH_MAX], path[ROOT_PATH_MAX];
	struct ava_error err = {0};
	char *url = stored_url();
	int rv = settings_data_root(root, sizeof(root), &err);
	bool member = rv == 0 && root_is_member(root);

	if (rv == 0 && member)
		rv = leave_and_wait(root, url, &err);
	else if (rv == 0 && url)
		rv = keys_store(URL_NAME, NULL, path, sizeof(path), &err);
	else if (rv == 0)
		rv = err_set(&err, AVA_ENOENT, "this machine is in no cluster");
	free(url);
	if (rv != 0)
		return cli_fail(&err);
	if (o.json)
		printf("{\"left\":%s}\n", member ? "true" : "false");
	else
		puts(member ? "This machine has left the cluster."
			    : "The URL is out of the file of keys; this machine was no member.");
	if (keys_get(URL_NAME))
		cli_note(URL_NAME " is still set in the environment: a daemon that starts with it "
				  "joins as a new machine");
	return CLI_DONE;
}

static int cluster_run(int argc, char **argv)
{
	const char *what = argv[0];

	if (o.print && strcmp(what, "init") != 0)
		return cli_error(CLI_USAGE, "--print goes with `ava cluster init`");
	if (argc > 1 && strcmp(what, "join") != 0)
		return cli_error(CLI_USAGE, "nothing stands behind `ava cluster %s`", what);
	if (strcmp(what, "init") == 0)
		return o.print ? print_sql() : status_or_init(what);
	if (strcmp(what, "status") == 0)
		return status_or_init(what);
	if (strcmp(what, "join") == 0)
		return cluster_join_run(argc, argv);
	if (strcmp(what, "leave") == 0)
		return cluster_leave_run();
	return cli_error(
		CLI_USAGE,
		"say init, join [URL], leave or status behind `ava cluster`, not \"%.40s\"", what);
}

const struct command cmd_cluster = COMMAND(
	"cluster", "init | join [URL] | leave | status", 1, 2,
	"share runs with other machines through a PostgreSQL",
	"init makes the tables at AVA_CLUSTER_URL, once. join looks whether the database can be\n"
	"used, and keeps its URL in the file of keys; without a URL it reads one from "
	"standard\n"
	"input, so that a password is in no list of processes. leave gives the runs of this\n"
	"machine to others and takes it out. status: the machines, what waits, and what a commit\n"
	"on that server promises (doc/CLUSTER.md).\n",
	OPTIONS(cluster_opts), cluster_run);
