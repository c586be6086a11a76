/* Commands for the data root and the daemon: export, prune, serve, dashboard. Export needs no
 * daemon and changes nothing; a sealed one is journal/sealed.h.
 *
 * export: a run as one self-contained JSON object. The bytes are what stands in the files,
 * which were redacted when they were written; only whole lines are taken.
 *
 * prune: old runs and days go; catalog rows and sealed heads stay. The work is that of the
 * daemon, or of `avad --prune` on a root that nobody serves.
 *
 * dashboard: an address that signs in to the page, opened in a browser. The browser gets
 * a file with the address, which only its owner reads: arguments of a command are visible to
 * everybody on the machine. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/settings.h"
#include "base/sys.h"
#include "base/util.h"
#include "base/words.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "cli/term.h"
#include "client/start.h"
#include "codec/json.h"
#include "codec/jscan.h"
#include "codec/utf8.h"
#include "journal/query.h"
#include "journal/read.h"
#include "journal/sealed.h"

static struct {
	bool json, dry, background, no_open, sign_out, sealed;
	const char *older, *since, *with, *out;
} o;

static const char *const withs[] = {"messages", NULL};

static const struct opt export_opts[] = {
	OPT("sealed", 0, FLAG, NULL, sealed, "as a record that others can check (doc/SEALS.md)"),
	OPT("since", 'S', STR, "TIME", since, "with --sealed: all that was sealed since then"),
	OPT("with", 0, STR, "PART", with,
	    "with --sealed: messages, what models were asked and said", .words = withs),
	OPT("out", 0, STR, "FILE", out, "with --sealed: write it there, and check it"),
};

static const struct opt prune_opts[] = {
	OPT("older-than", 0, STR, "TIME", older, "what ended longer ago than this: 90d, 12w, 48h"),
	OPT("dry-run", 0, FLAG, NULL, dry, "only say what would go"),
	OPT("json", 0, FLAG, NULL, json, "as one JSON object"),
};

static const struct opt serve_opts[] = {
	OPT("background", 'b', FLAG, NULL, background, "start it and return when it serves"),
};

static const struct opt dashboard_opts[] = {
	OPT("no-open", 0, FLAG, NULL, no_open, "only print the address"),
	OPT("sign-out", 0, FLAG, NULL, sign_out, "sign out every browser instead"),
	OPT("json", 0, FLAG, NULL, json, "as one JSON object"),
};

/* ---- export */

#define FILE_MAX      ((size_t)512 << 20)
#define OUT_MAX       ((size_t)2 << 30)
#define ARTIFACTS_MAX 1000
#define PARTS_MAX     99
#define SMALL_FILE    (1u << 20)

struct export
{
	int rootfd;
	const char *id;
	struct buf out;
	struct jw w;
	struct buf heads; /* names of the heads that lines refer to, each with a blank */
};

/* A line that is an object as it stands, any other as a string. */
static void root_add_line(struct export *e, const char *key, const char *s, size_t len)
{
	json_t *v = json_parse(s, len, NULL);
	json_t *kind = json_object_get(v, json_object_get(v, "cut") ? "cut" : "spec");
	const char *head = json_get_str(kind, "head");
	unsigned char hash[32];

	if (hash_from_hex(head, hash) && (!e->heads.data || !strstr(e->heads.data, head)))
		buf_addf(&e->heads, "%s ", head);
	if (json_is_object(v))
		jw_raw(&e->w, key, s, len);
	else
		jw_strn(&e->w, key, s, len);
	json_decref(v);
}

/* The lines of a file and of the parts in which a recovery went on; `with`
 * (NULL: all) must stand in them. 0 also when there is no such file. */
static int root_add_lines(struct export *e, const char *base, const char *with, uint64_t *n,
			  struct ava_error *err)
{
	char path[96];
	const char *line;
	int rv = 0;

	for (unsigned part = 1; rv == 0 && part <= PARTS_MAX; part++) {
		char *data = NULL;
		size_t len = 0, at = 0, line_len;

		if (part == 1)
			snprintf(path, sizeof(path), "%s.jsonl", base);
		else
			snprintf(path, sizeof(path), "%s.%u.jsonl", base, part);
		rv = sys_read_file(e->rootfd, path, FILE_MAX, &data, &len, err);
		while (rv == 0 && jsonl_next(data, len, &at, &line, &line_len) == 1) {
			if (with != NULL && memmem(line, line_len, with, strlen(with)) == NULL)
				continue;
			root_add_line(e, NULL, line, line_len);
			(*n)++;
		}
		free(data);
	}
	return rv == AVA_ENOENT ? 0 : rv;
}

/* The heads that the messages refer to, by name; one that is missing or damaged is left out. */
static int root_add_heads(struct export *e, struct ava_error *err)
{
	char path[80], hash[HASH_HEX_LEN + 1], *data = NULL;
	struct ava_error why = {0};
	size_t len = 0;
	int rv = buf_check(&e->heads);

	jw_object(&e->w, "heads");
	for (const char *name = e->heads.data; rv == 0 && name && *name; name += HASH_HEX_LEN + 1) {
		snprintf(path, sizeof(path), "heads/%.*s", HASH_HEX_LEN, name);
		hash[0] = '\0';
		if (sys_read_file(e->rootfd, path, FILE_MAX, &data, &len, &why) == 0)
			hash_sha256_hex(data, len, hash);
		if (strcmp(hash, path + strlen("heads/")) == 0)
			jw_strn(&e->w, hash, data, len);
		else
			cli_note("%s is left out: %s", path,
				 data ? "it is not what was written" : why.text);
		free(data);
		data = NULL;
	}
	jw_end(&e->w);
	return rv;
}

static int root_add_result(struct export *e, struct ava_error *err)
{
	char path[64], *data = NULL;
	size_t len = 0;
	int rv;

	snprintf(path, sizeof(path), "runs/%s/result.json", e->id);
	rv = sys_read_file(e->rootfd, path, FILE_MAX, &data, &len, err);
	if (rv == AVA_ENOENT) {
		jw_null(&e->w, "result");
		return 0;
	}
	while (rv == 0 && len > 0 && data[len - 1] == '\n')
		len--;
	if (rv == 0)
		root_add_line(e, "result", data, len);
	free(data);
	return rv;
}

/* Text as it is; of anything else only size and hash. */
static int add_artifact(struct export *e, const char *name, struct ava_error *err)
{
	char path[400], hash[HASH_HEX_LEN + 1], *data = NULL;
	size_t len = 0;
	int rv;

	if (snprintf(path, sizeof(path), "runs/%s/artifacts/%s", e->id, name) >= (int)sizeof(path))
		return 0;
	rv = sys_read_file(e->rootfd, path, FILE_MAX, &data, &len, err);
	if (rv != 0) /* it is no file, or gone */
		return rv == AVA_ENOMEM || rv == AVA_ETOOBIG ? rv : 0;
	hash_sha256_hex(data, len, hash);
	jw_object(&e->w, NULL);
	jw_str(&e->w, "name", name);
	jw_int(&e->w, "bytes", (int64_t)len);
	jw_str(&e->w, "sha256", hash);
	if (utf8_valid(data, len) && memchr(data, '\0', len) == NULL)
		jw_strn(&e->w, "text", data, len);
	jw_end(&e->w);
	free(data);
	return 0;
}

static int add_artifacts(struct export *e, struct ava_error *err)
{
	struct dirent **names = NULL;
	char path[64];
	int fd, n = 0, rv = 0;

	snprintf(path, sizeof(path), "runs/%s/artifacts", e->id);
	fd = openat(e->rootfd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		n = scandirat(fd, ".", &names, NULL, alphasort);
	jw_array(&e->w, "artifacts");
	for (int i = 0; i < n; i++) {
		if (rv == 0 && names[i]->d_name[0] != '.' && i < ARTIFACTS_MAX)
			rv = add_artifact(e, names[i]->d_name, err);
		free(names[i]);
	}
	jw_end(&e->w);
	free(names);
	if (fd >= 0)
		close(fd);
	return rv;
}

static int write_export(struct export *e, struct ava_error *err)
{
	char base[64], with[48];
	uint64_t rows = 0, events = 0, messages = 0;
	int rv;

	jw_init(&e->w, &e->out);
	jw_object(&e->w, NULL);
	jw_str(&e->w, "format", "ava export 1");
	jw_str(&e->w, "id", e->id);
	jw_array(&e->w, "catalog");
	snprintf(with, sizeof(with), "\"id\":\"%s\"", e->id);
	rv = root_add_lines(e, "catalog", with, &rows, err);
	jw_end(&e->w);
	jw_array(&e->w, "events");
	snprintf(base, sizeof(base), "logs/subagents/%s", e->id);
	if (rv == 0)
		rv = root_add_lines(e, base, NULL, &events, err);
	jw_end(&e->w);
	jw_array(&e->w, "messages");
	snprintf(base, sizeof(base), "runs/%s/messages", e->id);
	if (rv == 0)
		rv = root_add_lines(e, base, NULL, &messages, err);
	jw_end(&e->w);
	if (rv == 0)
		rv = root_add_heads(e, err);
	if (rv == 0)
		rv = root_add_result(e, err);
	if (rv == 0)
		rv = add_artifacts(e, err);
	jw_end(&e->w);
	if (rv == 0 && rows + events + messages == 0)
		rv = err_set(err, AVA_ENOENT, "there is no run %s", e->id);
	if (rv == 0 && buf_check(&e->out) != 0)
		rv = err_set(err, buf_check(&e->out), "%s is too large to be exported", e->id);
	return rv;
}

/* Let the daemon do the work if one serves (1), since it has the files open. */
static int root_ask_daemon(const char *verb, const char *body, json_t **reply,
			   struct ava_error *err)
{
	int rv = api_open(API_LOOK, err);

	if (rv == AVA_ECONNECT || rv == AVA_ENOENT)
		return 0;
	if (rv == 0)
		rv = api_call(verb, body, reply, NULL, err);
	return rv == 0 ? 1 : rv;
}

/* Write the record to a file beside `path`, check that, and give it its name. */
static int export_to(int rootfd, const struct sealed_wish *w, const char *path,
		     struct sealed_sum *sum, struct ava_error *err)
{
	struct sealed_sum checked;
	char part[ROOT_PATH_MAX];
	int fd = -1, rv = 0;
	FILE *f = NULL;
	struct stat st;

	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return err_set(err, AVA_EINVAL,
			       "%.300s is no regular file: give another one, or leave --out away "
			       "and write what it prints there",
			       path);
	if ((size_t)snprintf(part, sizeof(part), "%s.part", path) < sizeof(part))
		fd = open(part, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	f = fd >= 0 ? fdopen(fd, "r+") : NULL;
	if (!f)
		return err_sys(err, "make %.300s", part);
	rv = sealed_write(rootfd, w, f, sum, err);
	if (rv == 0 && sealed_check(fd, NULL, &checked, err) != 0)
		rv = err_wrap(err, AVA_ECORRUPT,
			      "%.300s was not made, for the logs are not as they were sealed (`ava "
			      "logs verify` names it)",
			      path);
	if (rv == 0 && (fsync(fd) != 0 || rename(part, path) != 0))
		rv = err_sys(err, "make %.300s", path);
	if (rv != 0)
		(void)unlink(part);
	fclose(f);
	return rv;
}

static int export_sealed(const char *run)
{
	struct sealed_wish w = {.run = run, .of = run ? run : o.since, .messages = o.with != NULL};
	char root[ROOT_PATH_MAX];
	json_t *sealed = NULL;
	struct sealed_sum sum;
	struct ava_error err;
	int rv = 0, fd = -1;

	if ((run == NULL) == (o.since == NULL))
		return cli_error(CLI_USAGE, "give one of S-id and --since TIME");
	if (o.since && query_time(o.since, clock_wall_ms(), &w.since_ms, &err) != 0)
		return cli_fail(&err);
	rv = root_prepare(root, &err);
	if (rv == 0 && root_ask_daemon("/seals", "{}", &sealed, &err) < 0)
		cli_note("the newest lines could not be sealed now: %s", err.text);
	json_decref(sealed);
	if (rv == 0)
		rv = fd = read_open_root(root, &err);
	if (rv >= 0)
		rv = o.out ? export_to(fd, &w, o.out, &sum, &err)
			   : sealed_write(fd, &w, stdout, &sum, &err);
	if (fd >= 0)
		close(fd);
	if (rv != 0)
		return cli_fail(&err);
	if (sum.gone > 0)
		cli_note("%llu file%s that seals name %s pruned, and left out",
			 (unsigned long long)sum.gone, WORDS_S(sum.gone),
			 sum.gone == 1 ? "was" : "were");
	if (sum.unsealed > 0)
		cli_note("the newest %llu bytes of it are not sealed yet, and left out",
			 (unsigned long long)sum.unsealed);
	if (o.out)
		term_print(stdout, "%s: %llu file%s, %llu seal%s, the newest %llu of %s\n", o.out,
			   (unsigned long long)sum.files, WORDS_S(sum.files),
			   (unsigned long long)sum.seals, WORDS_S(sum.seals),
			   (unsigned long long)sum.newest.n, sum.newest.at);
	if (o.out)
		term_print(stdout, "Tell the key by another way: %s\n", sum.newest.key);
	return CLI_DONE;
}

static int export_run(int argc, char **argv)
{
	static struct export e;
	char root[ROOT_PATH_MAX];
	struct ava_error err;
	int rv;

	if (o.sealed)
		return export_sealed(argc > 0 ? argv[0] : NULL);
	if (argc == 0 || o.since || o.with || o.out)
		return cli_error(CLI_USAGE, argc == 0
						    ? "give an S-id, or --sealed and --since TIME"
						    : "--since, --with and --out go with --sealed");
	e = (struct export){.rootfd = -1, .id = argv[0]};
	buf_init(&e.out, OUT_MAX);
	buf_init(&e.heads, OUT_MAX);
	rv = root_prepare(root, &err);
	if (rv == 0) {
		e.rootfd = read_open_root(root, &err);
		rv = e.rootfd < 0 ? e.rootfd : write_export(&e, &err);
	}
	if (rv == 0) {
		term_bytes(stdout, e.out.data, e.out.len);
		putchar('\n');
	}
	buf_fini(&e.out);
	buf_fini(&e.heads);
	if (e.rootfd >= 0)
		close(e.rootfd);
	return rv == 0 ? CLI_DONE : cli_fail(&err);
}

/* ---- prune */

#define DAY_S INT64_C(86400)

/* "90d" in seconds; 0: it is no such time. */
static int64_t root_seconds_of(const char *text)
{
	static const struct {
		char unit;
		int64_t seconds;
	} units[] = {{'h', 3600}, {'d', DAY_S}, {'w', 7 * DAY_S}, {'y', 365 * DAY_S}};
	size_t digits = strspn(text, "0123456789");

	if (digits == 0 || digits > 6 || text[digits] == '\0' || text[digits + 1] != '\0')
		return 0;
	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (text[digits] == units[i].unit)
			return strtoll(text, NULL, 10) * units[i].seconds;
	return 0;
}

static int prune_run(int argc, char **argv)
{
	const char *words[] = {"--prune", NULL, NULL, NULL};
	char seconds[24] = "retention", older[64] = "", body[128];
	struct ava_error err;
	json_t *r = NULL;
	size_t runs, days;
	int rv;

	if (o.older && root_seconds_of(o.older) <= 0)
		return cli_error(
			CLI_USAGE,
			"\"%.40s\" is no time: give hours, days or weeks, as 48h, 90d, 12w",
			o.older);
	if (o.older) {
		snprintf(seconds, sizeof(seconds), "%" PRId64, root_seconds_of(o.older));
		snprintf(older, sizeof(older), "\"older_than_seconds\":%s,", seconds);
	}
	words[1] = seconds;
	words[2] = o.dry ? "--dry-run" : NULL;
	snprintf(body, sizeof(body), "{%s\"dry_run\":%s}", older, o.dry ? "true" : "false");
	rv = root_ask_daemon("/prune", body, &r, &err);
	if (rv == 0)
		rv = helper_ask(words, &r, &err);
	if (rv < 0)
		return cli_fail(&err);
	runs = json_array_size(json_object_get(r, "runs"));
	days = json_array_size(json_object_get(r, "days"));
	if (o.json)
		show_json(stdout, r);
	else
		printf("%s %zu run%s and %zu daily log%s: %" PRId64 " files, %" PRId64 " bytes\n",
		       json_get_bool(r, "dryRun", false) ? "would remove" : "removed", runs,
		       runs == 1 ? "" : "s", days, days == 1 ? "" : "s",
		       json_get_int(r, "files", 0), json_get_int(r, "bytes", 0));
	json_decref(r);
	return CLI_DONE;
}

/* ---- serve: this program becomes avad */

static int serve_run(int argc, char **argv)
{
	char avad[ROOT_PATH_MAX];
	struct ava_error err;
	json_t *health = NULL;
	int code;
	/* A daemon started by hand does not leave for being idle. */
	char *args[] = {avad, "--service", "--verbose", NULL};

	if (o.background) {
		code = api_ask(&health, NULL, "/health");
		if (code == CLI_DONE)
			printf("avad %s serves, process %" PRId64 "\n", json_str(health, "version"),
			       json_get_int(health, "pid", 0));
		json_decref(health);
		return code;
	}
	if (start_find(avad, sizeof(avad), &err) != 0)
		return cli_fail(&err);
	execv(avad, args);
	return cli_error(CLI_FAILED, "cannot run %s: %s", avad, strerror(errno));
}

/* ---- dashboard */

/* A page that leads on, in a file of the data root. */
static int write_leader(const char *url, char path[ROOT_PATH_MAX], struct ava_error *err)
{
	char root[ROOT_PATH_MAX];
	FILE *f;
	int fd, n, rv = settings_data_root(root, sizeof(root), err);

	if (rv != 0)
		return rv;
	n = snprintf(path, ROOT_PATH_MAX, "%s/dashboard.html", root);
	if (n >= ROOT_PATH_MAX)
		return err_set(err, AVA_ETOOBIG, "the path of the data root is too long");
	(void)unlink(path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	f = fd >= 0 ? fdopen(fd, "w") : NULL;
	if (!f) {
		if (fd >= 0)
			close(fd);
		return err_sys(err, "write %.300s", path);
	}
	fprintf(f,
		"<!doctype html><meta charset=\"utf-8\"><title>ava</title>"
		"<meta http-equiv=\"refresh\" content=\"0;url=%s\">\n",
		url);
	return fclose(f) == 0 ? 0 : err_sys(err, "write %.300s", path);
}

/* Whether there is a browser is not known before it has opened, so nothing is waited for. */
static bool open_browser(const char *path)
{
	static const char *const programs[] = {"/usr/bin/xdg-open", "/usr/bin/open"};
	posix_spawn_file_actions_t files;
	bool opened = false;
	pid_t pid;

	if (!getenv("DISPLAY") && !getenv("WAYLAND_DISPLAY"))
		return false;
	if (posix_spawn_file_actions_init(&files) != 0)
		return false;
	posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
	for (size_t i = 0; !opened && i < ARRAY_LEN(programs); i++) {
		char *argv[] = {(char *)programs[i], (char *)path, NULL};

		opened = posix_spawn(&pid, programs[i], &files, NULL, argv, environ) == 0;
	}
	posix_spawn_file_actions_destroy(&files);
	return opened;
}

static int dashboard_run(int argc, char **argv)
{
	char path[ROOT_PATH_MAX];
	struct ava_error err;
	json_t *answer = NULL;
	const char *url;
	int code = api_ask(&answer, o.sign_out ? "{\"sign_out\":true}" : "{}", "/dashboard");

	if (code != CLI_DONE)
		return code;
	url = json_str(answer, "url");
	if (o.json) {
		show_json(stdout, answer);
	} else if (o.sign_out) {
		puts("Every browser is signed out.");
	} else {
		if (!o.no_open && write_leader(url, path, &err) != 0)
			cli_note("%s", err.text);
		else if (!o.no_open && open_browser(path))
			puts("Opening the page. If nothing opens, go to this address:");
		term_print(stdout, "%s\n", url);
		cli_note("the address works once, within a minute");
		if (json_str(answer, "lacks")[0] != '\0')
			cli_note("%s", json_str(answer, "lacks"));
	}
	json_decref(answer);
	return CLI_DONE;
}

/* ---- config: where it stands, and what may stand in it */

extern const struct embedded config_schema[];

static int config_run(int argc, char **argv)
{
	char path[ROOT_PATH_MAX];
	struct ava_error err;

	if (argc > 0 && strcmp(argv[0], "schema") == 0) {
		fwrite(config_schema[0].text, 1, config_schema[0].len, stdout);
		return CLI_DONE;
	}
	if (argc > 0 && strcmp(argv[0], "path") != 0)
		return cli_error(CLI_USAGE,
				 "there is no \"%.40s\"; the form is: ava config path|schema",
				 argv[0]);
	if (settings_config_path("config.yaml", path, sizeof(path), &err) != 0)
		return cli_fail(&err);
	term_print(stdout, "%s\n", path);
	return CLI_DONE;
}

const struct command cmd_config = COMMAND(
	"config", "[path|schema]", 0, 1, "say where config.yaml stands, or what may stand in it",
	"What may stand there is a JSON Schema. An editor with yaml-language-server completes and\n"
	"checks by it, when the file begins with a line that names a copy:\n"
	"\n"
	"  ava config schema >~/.config/ava/config.schema.json\n"
	"  # yaml-language-server: $schema=config.schema.json\n",
	.run = config_run);
const struct command cmd_export = COMMAND(
	"export", "[S-id]", 0, 1, "print a run as one JSON object, to be sent elsewhere",
	"Its catalog rows, events, messages, result and the text of its artifacts. Keys "
	"and\n"
	"known secrets were taken out when they were written; what the run read is in it.\n"
	"`jq -c .events[] FILE` gives the lines of its log, for `ava logs --file`.\n"
	"\n"
	"With --sealed it is a record: log, result and seals, which `ava logs verify FILE`\n"
	"checks on any machine. Messages are in it only with --with messages.\n",
	OPTIONS(export_opts), export_run);
const struct command cmd_prune =
	COMMAND("prune", "", 0, 0, "remove old runs and daily logs",
		"Whole runs that ended before then and the daily logs of the days before. The\n"
		"catalog's rows and what was sealed stay, so that `ava logs verify` still holds.\n"
		"Without --older-than, retention.days of config.yaml says how much stays.\n",
		OPTIONS(prune_opts), prune_run);
const struct command cmd_serve =
	COMMAND("serve", "", 0, 0, "run the daemon in the foreground",
		"Commands start the daemon when they need it; it leaves after ten idle minutes.\n"
		"In the foreground it stays until Ctrl-C and prints its log.\n",
		OPTIONS(serve_opts), serve_run);
const struct command cmd_dashboard = COMMAND(
	"dashboard", "", 0, 0, "open the page that shows all of it",
	"Prints an address on this machine that signs a browser in, once and within a minute, and\n"
	"opens it where there is a desktop. Open tabs stay signed in for thirty days at the most,\n"
	"or until `ava dashboard --sign-out`; a new tab needs a new address once the daemon has\n"
	"ended. web.port of config.yaml sets the port.\n",
	OPTIONS(dashboard_opts), dashboard_run);
