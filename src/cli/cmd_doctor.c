/* ava doctor: is everything in order here? Looks without changing anything,
 * and starts no daemon; configuration, keys and services are looked at by
 * `avad --doctor`, which links what that needs. On a terminal it offers to put
 * a local server that it found into config.yaml. Exit 0 when all is well, 1
 * when something must be fixed; that no daemon runs is not a failure. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/keys.h"
#include "base/settings.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/helper.h"
#include "cli/root.h"
#include "cli/show.h"
#include "cli/term.h"
#include "client/start.h"
#include "codec/json.h"
#include "journal/read.h"

#define ANSWER_MAX (16u << 20)

static struct {
	bool json;
} o;

static const struct opt opts[] = {
	OPT("json", 0, FLAG, NULL, json, "as one JSON object"),
};

struct doctor {
	char root[ROOT_PATH_MAX];
	json_t *checks; /* [{"name","ok","detail"}] */
	json_t *health; /* the daemon's, NULL when none runs */
	json_t *seen;   /* what `avad --doctor` says; NULL: nothing */
	bool failed;
};

static void check(struct doctor *d, const char *name, bool ok, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static void check(struct doctor *d, const char *name, bool ok, const char *fmt, ...)
{
	char detail[ROOT_PATH_MAX + 512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(detail, sizeof(detail), fmt, ap);
	va_end(ap);
	d->failed |= !ok;
	json_array_append_new(d->checks,
			      json_pack("{s:s,s:b,s:s}", "name", name, "ok", ok, "detail", detail));
	if (o.json)
		return;
	term_colour(stdout, ok ? TERM_GREEN : TERM_RED);
	fputs(ok ? "ok    " : "wrong ", stdout);
	term_colour(stdout, TERM_PLAIN);
	printf(" %-10s ", name);
	term_str(stdout, detail);
	putchar('\n');
}

static void check_space(struct doctor *d, const char *path)
{
	const json_t *set = json_object_get(d->seen, "settings");
	int64_t least = json_get_int(set, "disk.free_min_mb", 0);
	struct statvfs fs;
	uint64_t mb;

	if (statvfs(path, &fs) != 0) {
		check(d, "space", false, "%s: %s", path, strerror(errno));
		return;
	}
	mb = (uint64_t)fs.f_bavail * fs.f_frsize >> 20;
	check(d, "space", mb >= (uint64_t)least, "%" PRIu64 " MB are free, new work needs %" PRId64,
	      mb, least);
}

/* The root, or the nearest folder above it that exists: there it will be made. */
static bool check_root(struct doctor *d)
{
	char above[ROOT_PATH_MAX];
	struct ava_error err;
	struct stat st;

	if (settings_data_root(d->root, sizeof(d->root), &err) != 0) {
		check(d, "data root", false, "%s", err.text);
		return false;
	}
	snprintf(above, sizeof(above), "%s", d->root);
	while (stat(above, &st) != 0 && errno == ENOENT && strrchr(above, '/') > above)
		*strrchr(above, '/') = '\0';
	if (stat(above, &st) == 0 && !S_ISDIR(st.st_mode)) {
		check(d, "data root", false, "%s is not a folder", above);
		return false;
	}
	if (access(above, R_OK | W_OK | X_OK) != 0) {
		check(d, "data root", false, "%s: %s", above, strerror(errno));
		return false;
	}
	if (strcmp(above, d->root) != 0)
		check(d, "data root", true, "%s (will be made)", d->root);
	else if ((st.st_mode & 077) != 0)
		check(d, "data root", false, "%s can be read by others: chmod 700 it", d->root);
	else
		check(d, "data root", true, "%s", d->root);
	check_space(d, above);
	return true;
}

static void check_format(struct doctor *d)
{
	int fd = open(d->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct ava_error err;

	if (fd < 0)
		return; /* no root yet */
	if (read_check_format(fd, &err) != 0)
		check(d, "format", false, "%s", err.text);
	close(fd);
}

static bool check_program(struct doctor *d)
{
	char avad[ROOT_PATH_MAX];
	struct ava_error err;
	int rv = start_find(avad, sizeof(avad), &err);

	if (rv == 0)
		check(d, "program", true, "ava %s, daemon %s", ava_version(), avad);
	else
		check(d, "program", false, "%s", err.text);
	return rv == 0;
}

/* Configuration, keys, services: what avad sees. */
static void check_services(struct doctor *d)
{
	static const char *const words[] = {"--doctor", NULL};
	struct ava_error err;
	struct buf out;
	json_t *row;
	size_t i;
	int rv;

	if (!o.json && isatty(STDOUT_FILENO)) {
		fputs("looking at services...\r", stdout);
		fflush(stdout);
	}
	buf_init(&out, ANSWER_MAX);
	rv = helper_run(words, &out, &err);
	if (rv == 0) {
		d->seen = json_parse(out.data ? out.data : "", out.len, &err);
		rv = d->seen ? 0 : AVA_EPROTO;
	}
	buf_fini(&out);
	if (rv != 0)
		check(d, "config", false, "%s", err.text);
	json_array_foreach(json_object_get(d->seen, "checks"), i, row)
		check(d, json_str(row, "name"), json_get_bool(row, "ok", false), "%s",
		      json_str(row, "detail"));
}

static void check_health(struct doctor *d)
{
	const char *version = json_str(d->health, "version"),
		   *problem = json_str(d->health, "problem");

	check(d, "daemon", problem[0] == '\0', "process %" PRId64 ", version %s%s%s",
	      json_get_int(d->health, "pid", 0), version, problem[0] != '\0' ? ": " : "", problem);
	if (api_compare_versions(version, ava_version()) != 0)
		check(d, "versions", api_compare_versions(version, ava_version()) > 0,
		      "this is ava %s, the daemon is %s", ava_version(), version);
	check(d, "model", true, "%s%s%s", json_str(d->health, "model"),
	      json_str(d->health, "model_why")[0] != '\0' ? ": " : "",
	      json_str(d->health, "model_why"));
}

static void check_daemon(struct doctor *d)
{
	struct ava_error err;
	struct client *c;
	int rv = api_open(false, &c, &err);

	if (rv == AVA_ECONNECT || rv == AVA_ENOENT) {
		check(d, "daemon", true, "none runs; a command that needs one starts it");
		return;
	}
	if (rv == 0) {
		client_set_quiet(c, 5000);
		rv = api_get(c, &d->health, &err, "/health");
	}
	if (rv == 0)
		check_health(d);
	else
		check(d, "daemon", false, "%s", err.text);
	client_close(c);
}

/* ---- local servers */

static void store(struct doctor *d, const char *base_url, const char *model)
{
	char path[ROOT_PATH_MAX];
	struct ava_error err;

	if (keys_store("AVA_LOCAL_BASE_URL", base_url, path, sizeof(path), &err) != 0 ||
	    keys_store("AVA_LOCAL_MODEL", model, path, sizeof(path), &err) != 0)
		check(d, "stored", false, "%s", err.text);
	else
		check(d, "stored", true, "%s (a daemon that runs reads it at its next start)",
		      path);
}

/* A word of yes; anything else, also the end of input, is no. */
static bool says_yes(void)
{
	char answer[64] = "";

	return fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

static void offer(struct doctor *d)
{
	const json_t *servers = json_object_get(d->seen, "local_servers"), *row, *found = NULL;
	const char *model;
	size_t i;

	json_array_foreach((json_t *)servers, i, row)
	{
		if (json_get_bool(row, "used", false))
			return;
		if (!found && json_array_size(json_object_get(row, "models")) > 0)
			found = row;
	}
	if (!found)
		return;
	model = json_string_value(json_array_get(json_object_get(found, "models"), 0));
	check(d, "local", true, "%s listens at %s with %zu models, %s the first",
	      json_str(found, "kind"), json_str(found, "base_url"),
	      json_array_size(json_object_get(found, "models")), model);
	if (o.json || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return;
	fputs("Write it into the file env, with the model ", stdout);
	term_str(stdout, model);
	fputs("? [y/N] ", stdout);
	fflush(stdout);
	if (says_yes())
		store(d, json_str(found, "base_url"), model);
}

static void print_json(struct doctor *d)
{
	json_t *all = json_pack("{s:b,s:s,s:s,s:o,s:O}", "ok", !d->failed, "version", ava_version(),
				"root", d->root, "avad_pid",
				d->health != NULL ? json_integer(json_get_int(d->health, "pid", 0))
						  : json_null(),
				"checks", d->checks);

	if (all != NULL) {
		json_object_set_new(all, "daemon",
				    d->health != NULL ? json_incref(d->health) : json_null());
		json_object_set(all, "local_servers", json_object_get(d->seen, "local_servers"));
		json_object_set(all, "settings", json_object_get(d->seen, "settings"));
	}
	show_json(stdout, all);
	json_decref(all);
}

static int doctor_run(int argc, char **argv)
{
	struct doctor d = {.checks = json_array()};

	if (check_program(&d))
		check_services(&d);
	if (check_root(&d)) {
		check_format(&d);
		check_daemon(&d);
	}
	offer(&d);
	if (o.json)
		print_json(&d);
	json_decref(d.checks);
	json_decref(d.health);
	json_decref(d.seen);
	return d.failed ? CLI_FAILED : CLI_DONE;
}

const struct command cmd_doctor = {
	.name = "doctor",
	.args = "",
	.summary = "check that everything is in order",
	OPTIONS(opts),
	.run = doctor_run,
};
