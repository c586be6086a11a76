/* ava doctor: is everything in order, what would mend it, and with --fix mend what is safe to mend.
 *
 * Configuration, keys and services are looked at by `avad --doctor`, which links what that needs.
 * On a terminal it offers to keep a local server that it found. Exit 0 when all is well, 1 when
 * something must be fixed; that no daemon runs is not a failure.
 *
 * Each line that is wrong names a command. Those that take nothing from anybody (closing a folder
 * to others, lingering, a socket of a daemon that was killed, hooks that call a program which is
 * gone) are fixes: --fix shows them, asks, and does them here, each as that command would. Before
 * what others could write is closed a person must look at it: --yes is none for that. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pwd.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/doors.h"
#include "base/error.h"
#include "base/keys.h"
#include "base/settings.h"
#include "base/sys.h"
#include "base/unix_sock.h"
#include "base/util.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "cli/term.h"
#include "client/start.h"
#include "codec/json.h"
#include "journal/read.h"

#define NOTED       2 /* `ok` of a check: what is missing is optional */
#define FIXES_MAX   10
#define COMMAND_MAX (ROOT_PATH_MAX + 80)

static struct {
	bool json, paid, fix, yes;
} o;

static const struct opt doctor_opts[] = {
	OPT("try", 0, FLAG, NULL, paid, "try models that cost something, too: 30 tokens each"),
	OPT("fix", 0, FLAG, NULL, fix, "mend what is safe to mend: shows it and asks first"),
	OPT("yes", 'y', FLAG, NULL, yes, "with --fix: do not ask"),
	OPT("json", 0, FLAG, NULL, json, "as one JSON object"),
};

/* Something that --fix does. */
struct doctor_fix {
	char command[COMMAND_MAX]; /* as a person would type it */
	int (*mend)(const struct doctor_fix *f, struct ava_error *err);
	char path[ROOT_PATH_MAX];
	mode_t mode;
	bool look, done; /* look: others could write it */
};

struct root_doctor {
	char root[ROOT_PATH_MAX];
	json_t *checks; /* [{"name","ok","detail"}], what is wrong with "mend", too */
	json_t *health; /* the daemon's health; NULL: none runs */
	json_t *seen;   /* output of `avad --doctor`; NULL: none */
	size_t failed;  /* checks */
	struct doctor_fix fixes[FIXES_MAX];
	size_t nfixes;
	char mend[COMMAND_MAX]; /* of the next check; "": the usual */
	bool mended;            /* this is the look behind --fix */
};

/* ---- the lines */

/* The usual command for what is wrong with a check of that name. */
static void doctor_usual(const struct root_doctor *d, const char *name, const char *detail,
			 char out[COMMAND_MAX])
{
	static const struct {
		const char *name, *command, *file; /* one of both */
	} usual[] = {
		{"program", "export AVA_AVAD=/path/of/avad", NULL},
		{"key", NULL, "env"},
		{"stored", NULL, "env"},
#define X(door, ...) {#door, NULL, "env"},
		DOORS(X)
#undef X
			{"mcp", NULL, "mcp.json"},
		{"setting", "env | grep ^AVA_", NULL},
		{"clock", "sudo timedatectl set-ntp true", NULL},
		{"space", "ava prune --older-than 90d", NULL},
		{"data root", "export AVA_DATA_ROOT=/folder/of/yours", NULL},
		{"format", "export AVA_DATA_ROOT=/folder/of/yours", NULL},
		{"daemon", "ava restart", NULL},
		{"versions", "ava restart", NULL},
		{"settings", "ava restart", NULL},
		{"page", "ava restart", NULL},
		{"cluster", "ava cluster status", NULL},
		{"learned", "rm \"${AVA_DATA_ROOT:-$HOME/.local/share/ava}/learned.json\"", NULL},
		{"sandbox", "sudo apt-get install bubblewrap", NULL},
		{"", NULL, "config.yaml"}, /* of every other name */
	};
	char path[ROOT_PATH_MAX] = "";
	const char *at = strstr(detail, "(sysctl)"), *mode = strstr(detail, ": chmod ");
	size_t i = 0, n;

	while (usual[i].name[0] != '\0' &&
	       (n = strlen(usual[i].name),
		strncmp(name, usual[i].name, n) != 0 || (name[n] != '\0' && name[n] != ' ')))
		i++;
	if (strcmp(name, "sandbox") == 0 && strstr(detail, "sandbox.required") != NULL)
		i = ARRAY_LEN(usual) - 1;
	if (at != NULL) { /* "set kernel.this=0 (sysctl)" */
		for (at--; at > detail && at[-1] != ' '; at--)
			;
		snprintf(out, COMMAND_MAX, "sudo sysctl -w %.*s", (int)strcspn(at, " "), at);
	} else if (mode != NULL) {
		snprintf(out, COMMAND_MAX, "%s", mode + 2);
	} else if (usual[i].file == NULL) {
		snprintf(out, COMMAND_MAX, "%s", usual[i].command);
	} else {
		(void)settings_config_path(usual[i].file, path, sizeof(path), NULL);
		snprintf(out, COMMAND_MAX, "${EDITOR:-vi} %s", path);
	}
}

static void root_check(struct root_doctor *d, const char *name, int ok, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static void root_check(struct root_doctor *d, const char *name, int ok, const char *fmt, ...)
{
	char detail[ROOT_PATH_MAX + 512], mend[COMMAND_MAX] = "";
	bool note = ok == NOTED;
	json_t *row;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(detail, sizeof(detail), fmt, ap);
	va_end(ap);
	d->failed += !ok;
	snprintf(mend, sizeof(mend), "%s", d->mend);
	d->mend[0] = '\0';
	if (!ok && mend[0] == '\0')
		doctor_usual(d, name, detail, mend);
	row = json_pack("{s:s,s:b,s:s}", "name", name, "ok", ok != 0, "detail", detail);
	if (mend[0] != '\0')
		json_object_set_new(row, "mend", json_string(mend));
	if (note)
		json_object_set_new(row, "note", json_true());
	json_array_append_new(d->checks, row);
	if (o.json)
		return;
	term_colour(stdout, note ? TERM_YELLOW : ok ? TERM_GREEN : TERM_RED);
	fputs(note ? "note  " : ok ? "ok    " : "wrong ", stdout);
	term_colour(stdout, TERM_PLAIN);
	term_print(stdout, " %-10s %s\n", name, detail);
	if (mend[0] != '\0')
		term_print(stdout, "        mend it: %s\n", mend);
}

/* ---- the fixes */

/* The check that follows is mended by that, which `command` would do as well. */
static void doctor_add_fix(struct root_doctor *d,
			   int (*mend)(const struct doctor_fix *f, struct ava_error *err),
			   const char *path, mode_t mode, const char *command)
{
	struct doctor_fix *f = &d->fixes[d->nfixes];
	struct stat st;

	snprintf(d->mend, sizeof(d->mend), "%s", command);
	if (d->mended || d->nfixes == FIXES_MAX)
		return;
	d->nfixes++;
	*f = (struct doctor_fix){.mend = mend, .mode = mode};
	f->look = (mode & 022) != 0 && stat(path, &st) == 0 && (st.st_mode & 022) != 0;
	snprintf(f->path, sizeof(f->path), "%s", path);
	snprintf(f->command, sizeof(f->command), "%s", command);
}

static int doctor_close(const struct doctor_fix *f, struct ava_error *err)
{
	struct stat st;

	if (stat(f->path, &st) != 0 || st.st_uid != geteuid() ||
	    chmod(f->path, st.st_mode & 07777 & ~f->mode) != 0)
		return err_sys(err, "%s", f->path);
	return 0;
}

/* While the lock is held nobody starts to serve there. */
static int doctor_remove_socket(const struct doctor_fix *f, struct ava_error *err)
{
	int fd = open(f->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rv = 0;

	if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) != 0)
		rv = err_sys(err, "lock %s", f->path);
	else if (unlinkat(fd, UNIX_SOCK_NAME, 0) != 0 && errno != ENOENT)
		rv = err_sys(err, "remove %s/%s", f->path, UNIX_SOCK_NAME);
	if (fd >= 0)
		close(fd);
	return rv;
}

static int doctor_linger(const struct doctor_fix *f, struct ava_error *err)
{
	char *const argv[] = {(char *)"loginctl", (char *)"enable-linger", (char *)f->path, NULL};
	posix_spawn_file_actions_t to;
	int status = -1;
	pid_t pid;

	errno = posix_spawn_file_actions_init(&to);
	if (errno == 0) {
		errno = posix_spawn_file_actions_adddup2(&to, STDERR_FILENO, STDOUT_FILENO);
		if (errno == 0)
			errno = posix_spawnp(&pid, argv[0], &to, NULL, argv, environ);
		posix_spawn_file_actions_destroy(&to);
	}
	if (errno != 0 || waitpid(pid, &status, 0) != pid)
		return err_sys(err, "loginctl");
	return status == 0 ? 0 : err_set(err, AVA_EIO, "loginctl could not do it");
}

static int doctor_hooks(const struct doctor_fix *f, struct ava_error *err)
{
	return hooks_renew(err);
}

/* Rights of others that they must not have: in the data root and in the configuration's folder. */
static void doctor_check_access(struct root_doctor *d)
{
	static const struct {
		const char *file; /* "": the folder */
		mode_t mode;
	} files[] = {{"", 022}, {"config.yaml", 022}, {"mcp.json", 022}, {"env", 077}};
	char path[ROOT_PATH_MAX], command[COMMAND_MAX];
	struct stat st;

	for (size_t i = 0; i < ARRAY_LEN(files); i++) {
		if (settings_config_path(files[i].file, path, sizeof(path), NULL) != 0)
			return;
		if (files[i].file[0] == '\0')
			path[strlen(path) - 1] = '\0'; /* its slash */
		if (stat(path, &st) != 0 || st.st_uid != geteuid() ||
		    (st.st_mode & files[i].mode) == 0)
			continue;
		snprintf(command, sizeof(command), "chmod %s %s",
			 files[i].mode == 022 ? "go-w" : "go=", path);
		doctor_add_fix(d, doctor_close, path, files[i].mode, command);
		root_check(d, "access", false, "others may %s %s",
			   files[i].mode == 022 ? "write" : "read", path);
	}
}

static void doctor_check_socket(struct root_doctor *d)
{
	int root = open(d->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1;
	int rv = root < 0 ? 0 : unix_sock_connect(root, UNIX_SOCK_NAME, 1000, &fd, NULL);
	char command[COMMAND_MAX];

	if (fd >= 0)
		close(fd);
	if (root >= 0)
		close(root);
	if (rv != AVA_ECONNECT || root_is_held())
		return;
	snprintf(command, sizeof(command), "rm %s/%s", d->root, UNIX_SOCK_NAME);
	doctor_add_fix(d, doctor_remove_socket, d->root, 0, command);
	root_check(d, "socket", true, "%s was left by a daemon that did not end in order",
		   UNIX_SOCK_NAME);
}

/* Does systemd start ava for this user? */
static bool doctor_enabled(void)
{
	static const char *const wants[] = {"systemd/user/default.target.wants/ava.service",
					    "systemd/user/sockets.target.wants/ava.socket"};
	char folder[ROOT_PATH_MAX], path[ROOT_PATH_MAX + 64];
	bool enabled = false;
	struct stat st;

	if (settings_config_path("", folder, sizeof(folder), NULL) != 0)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(wants); i++) { /* beside "ava/" */
		snprintf(path, sizeof(path), "%.*s%s", (int)strlen(folder) - 4, folder, wants[i]);
		enabled = enabled || lstat(path, &st) == 0;
	}
	return enabled;
}

/* A service of the user's that ends with the last login. */
static void doctor_check_linger(struct root_doctor *d)
{
	const struct passwd *me = getpwuid(geteuid());
	char path[ROOT_PATH_MAX], command[COMMAND_MAX];
	struct stat st;

	if (me != NULL)
		snprintf(path, sizeof(path), "%s/%s", "/var/lib/systemd/linger", me->pw_name);
	if (me == NULL || !doctor_enabled() || stat(path, &st) == 0)
		return;
	snprintf(command, sizeof(command), "loginctl enable-linger %s", me->pw_name);
	doctor_add_fix(d, doctor_linger, me->pw_name, 0, command);
	root_check(d, "linger", true,
		   "the service ends when you log out, and its runs wait until you are back");
}

/* Does an order's file say that it fires? Its state stands near its beginning. */
static bool doctor_order_fires(int dir, const char *name)
{
	char head[128];
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd >= 0 ? read(fd, head, sizeof(head) - 1) : -1;

	if (fd >= 0)
		close(fd);
	head[n > 0 ? n : 0] = '\0';
	return strstr(head, "\"state\":\"active\"") || strstr(head, "\"state\":\"asks\"");
}

/* How many standing orders of the root fire, without a daemon. */
static size_t doctor_count_orders(const struct root_doctor *d)
{
	char path[ROOT_PATH_MAX + 16];
	struct dirent *e;
	size_t n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "%s/orders", d->root);
	dir = opendir(path);
	while (dir != NULL && (e = readdir(dir)) != NULL)
		n += strncmp(e->d_name, "O-", 2) == 0 && doctor_order_fires(dirfd(dir), e->d_name);
	if (dir != NULL)
		closedir(dir);
	return n;
}

/* An order that does not fire, and why; true: it does. */
static bool doctor_look_at_order(struct root_doctor *d, const json_t *order)
{
	const char *id = json_str(order, "order_id"), *state = json_str(order, "state");
	const char *why = json_str(order, "why");
	bool paused = strcmp(state, "paused") == 0, asks = strcmp(state, "asks") == 0;

	if (paused || asks)
		snprintf(d->mend, sizeof(d->mend), "ava schedule unpause %s", id);
	if (paused)
		root_check(d, "order", NOTED, "%s is paused", id);
	else if (asks)
		root_check(d, "order", false, "%s starts nothing, since you are asked anew: %s", id,
			   why);
	else if (strcmp(state, "active") == 0 && *why)
		root_check(d, "order", NOTED, "%s, the last time: %s", id, why);
	return strcmp(state, "active") == 0;
}

/* Standing orders: whether the daemon is there when they are due, and which do not fire. */
static void doctor_check_orders(struct root_doctor *d)
{
	size_t n = doctor_count_orders(d), active = 0, i;
	struct ava_error err;
	json_t *reply = NULL;
	const json_t *one;

	if (d->health == NULL && n == 0)
		return;
	if (d->health == NULL) {
		snprintf(d->mend, sizeof(d->mend), "ava serve");
		root_check(d, "orders", false,
			   "%zu standing order%s and no daemon: nothing fires (ava serve)", n,
			   n == 1 ? "" : "s");
		return;
	}
	if (api_request(NULL, &reply, &err, "/orders") != 0)
		return;
	json_array_foreach(json_object_get(reply, "orders"), i, one) active +=
		doctor_look_at_order(d, one);
	json_array_foreach(json_object_get(reply, "unreadable"), i, one)
		root_check(d, "order", false, "%s does not fire: %s", json_str(one, "file"),
			   json_str(one, "problem"));
	if (active > 0)
		root_check(d, "orders", doctor_enabled() ? true : NOTED,
			   doctor_enabled()
				   ? "%zu standing order%s; systemd starts ava with the machine"
				   : "%zu standing order%s; after a restart of the machine nothing "
				     "fires before somebody uses ava (systemctl --user enable ava)",
			   active, active == 1 ? "" : "s");
	json_decref(reply);
}

static void doctor_check_hooks(struct root_doctor *d)
{
	const char *why = hooks_stale();

	if (why == NULL)
		return;
	doctor_add_fix(d, doctor_hooks, "", 0, "ava hooks install");
	root_check(d, "hooks", false, "Claude Code's hooks for ava are out of date: %s", why);
}

static bool doctor_says_yes(bool look)
{
	char answer[64];

	if (o.yes && !look)
		return true;
	if (o.json || !isatty(STDIN_FILENO)) {
		cli_note(look ? "what others could write is left as it is: look at it first, then "
				"`ava doctor --fix` at a terminal"
			      : "nothing is done without a yes: --fix --yes");
		return false;
	}
	fputs(look ? "Close what others could write, too? [y/N] " : "Do it? [y/N] ", stdout);
	fflush(stdout);
	/* Anything but a word of yes, also the end of input, is no. */
	return fgets(answer, sizeof(answer), stdin) != NULL && (answer[0] | 32) == 'y';
}

/* Is something otherwise than before? */
static bool doctor_mend(struct root_doctor *d)
{
	struct ava_error err;
	bool did = false, looks = false, yes, also;

	for (size_t i = 0; i < d->nfixes; i++)
		looks |= d->fixes[i].look;
	if (!o.json) {
		puts(d->nfixes > 0 ? "\nThis would be done:"
				   : "\nNothing here can be mended by itself.");
		for (size_t i = 0; i < d->nfixes; i++)
			term_print(stdout, "  %s%s\n", d->fixes[i].command,
				   d->fixes[i].look ? " (look at it first: others could write it)"
						    : "");
	}
	yes = d->nfixes > 0 && doctor_says_yes(false);
	also = yes && (!o.yes || !looks || doctor_says_yes(true));
	for (size_t i = 0; i < d->nfixes; i++) {
		struct doctor_fix *f = &d->fixes[i];

		if (!(f->look ? also : yes))
			continue;
		f->done = f->mend(f, &err) == 0;
		did |= f->done;
		if (!f->done)
			cli_note("%s: %s", f->command, err.text);
	}
	return did;
}

/* ---- the checks */

static void check_space(struct root_doctor *d, const char *path)
{
	const json_t *set = json_object_get(d->seen, "settings");
	int64_t least = json_get_int(set, "disk.free_min_mb", 0);
	int fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct sys_room r;

	if (fd < 0 || sys_room(fd, &r) != 0)
		root_check(d, "space", false, "%s: %s", path, strerror(errno));
	else if (least > 0 && r.inodes < r.few_inodes)
		root_check(d, "space", false, "only %" PRIu64 " more files can be made (df -i)",
			   r.inodes);
	else
		root_check(d, "space", r.mb >= (uint64_t)least,
			   "%" PRIu64 " MB are free, new work needs %" PRId64, r.mb, least);
	if (fd >= 0)
		close(fd);
}

/* The root, or the nearest folder above it that exists: there it will be made. */
static bool root_check_root(struct root_doctor *d)
{
	char above[ROOT_PATH_MAX], command[COMMAND_MAX];
	struct ava_error err;
	struct statvfs room;
	struct stat st;
	int fd, own;

	if (settings_data_root(d->root, sizeof(d->root), &err) != 0) {
		root_check(d, "data root", false, "%s", err.text);
		return false;
	}
	snprintf(above, sizeof(above), "%s", d->root);
	while (stat(above, &st) != 0 && errno == ENOENT && strrchr(above, '/') > above)
		*strrchr(above, '/') = '\0';
	if (stat(above, &st) == 0 && !S_ISDIR(st.st_mode)) {
		root_check(d, "data root", false, "%s is not a folder", above);
		return false;
	}
	if (access(above, R_OK | W_OK | X_OK) != 0 ||
	    (strcmp(above, d->root) != 0 && statvfs(above, &room) == 0 && room.f_bavail == 0 &&
	     (errno = ENOSPC))) {
		root_check(d, "data root", false, "%s: %s", above, strerror(errno));
		return false;
	}
	fd = open(d->root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	own = fd >= 0 ? settings_check_root(fd, d->root, &err) : 0;
	if (fd >= 0)
		close(fd);
	if (strcmp(above, d->root) != 0) {
		root_check(d, "data root", true, "%s (will be made)", d->root);
	} else {
		snprintf(command, sizeof(command), "chmod 700 %s", d->root);
		if (own != 0 && stat(d->root, &st) == 0 && st.st_uid == geteuid())
			doctor_add_fix(d, doctor_close, d->root, 077, command);
		root_check(d, "data root", own == 0, "%s", own == 0 ? d->root : err.text);
	}
	check_space(d, above);
	return true;
}

/* Configuration, keys, services: what avad sees. */
static void root_check_services(struct root_doctor *d)
{
	const char *const words[] = {o.paid ? "--try" : "--doctor", NULL};
	struct ava_error err;
	json_t *row;
	size_t i;

	if (!o.json && isatty(STDOUT_FILENO)) {
		fputs("looking at services, trying models...\r", stdout);
		fflush(stdout);
	}
	if (helper_ask(words, &d->seen, &err) != 0)
		root_check(d, "config", false, "%s", err.text);
	json_array_foreach(json_object_get(d->seen, "checks"), i, row)
	{
		int ok =
			json_get_bool(row, "note", false) ? NOTED : json_get_bool(row, "ok", false);

		root_check(d, json_str(row, "name"), ok, "%s", json_str(row, "detail"));
	}
}

static void check_messenger(struct root_doctor *d, const char *name, const json_t *door)
{
	char line[SHOW_DOOR_MAX];

	if (door)
		root_check(d, name, !json_str(door, "problem")[0], "%s", show_door(door, line));
}

static void check_health(struct root_doctor *d)
{
	const json_t *web = json_object_get(d->health, "web");
	const char *url = json_str(web, "url"), *closed = json_str(web, "problem");
	const char *version = json_str(d->health, "version"),
		   *problem = json_str(d->health, "problem");

	root_check(d, "daemon", problem[0] == '\0', "process %" PRId64 ", version %s%s%s",
		   json_get_int(d->health, "pid", 0), version, problem[0] != '\0' ? ": " : "",
		   problem);
	if (api_compare_versions(version, ava_version()) != 0)
		root_check(d, "versions", api_compare_versions(version, ava_version()) > 0,
			   "this is ava %s, the daemon is %s", ava_version(), version);
	root_check(d, "limits", true, "of all of a command's processes together: %s",
		   json_str(d->health, "control_group"));
	if (url[0] != '\0' || closed[0] != '\0')
		root_check(d, "page", closed[0] == '\0', "%s", closed[0] != '\0' ? closed : url);
#define X(name, ...) check_messenger(d, #name, json_object_get(d->health, #name));
	DOORS(X)
#undef X
	root_check(d, "model", true, "%s%s%s", json_str(d->health, "model"),
		   json_str(d->health, "model_why")[0] != '\0' ? ": " : "",
		   json_str(d->health, "model_why"));
}

static void root_check_daemon(struct root_doctor *d)
{
	static const char *const names[] = {"config.yaml", "env"};
	char path[ROOT_PATH_MAX];
	struct ava_error err;
	struct stat st;
	double started;
	int rv = api_open(API_LOOK, &err);

	if (rv == AVA_ECONNECT || rv == AVA_ENOENT) {
		root_check(d, "daemon", true, "none runs; a command that needs one starts it");
		return;
	}
	if (rv == 0) {
		api_deadline(clock_mono_ms() + 5000);
		rv = api_call("/health", NULL, &d->health, NULL, &err);
	}
	if (rv == 0)
		check_health(d);
	else
		root_check(d, "daemon", false, "%s", err.text);
	/* The daemon reads its files only when it starts: name files that changed since. */
	started = (double)clock_wall_ms() / 1000 -
		  json_number_value(json_object_get(d->health, "uptime_seconds"));
	for (size_t i = 0; rv == 0 && i < ARRAY_LEN(names); i++)
		if (settings_config_path(names[i], path, sizeof(path), NULL) == 0 &&
		    stat(path, &st) == 0 && (double)st.st_mtime > started)
			root_check(
				d, "settings", false,
				"%s was written after the daemon had started, which goes by what "
				"stood there then: `ava restart`",
				path);
}

/* ---- local servers */

static void offer(struct root_doctor *d)
{
	const json_t *servers = json_object_get(d->seen, "local_servers"), *row, *found = NULL;
	const char *model;
	char answer[64], path[ROOT_PATH_MAX];
	struct ava_error err;
	size_t i, n;

	json_array_foreach((json_t *)servers, i, row)
	{
		if (json_get_bool(row, "used", false))
			return;
		if (!found && json_array_size(json_object_get(row, "models")) > 0)
			found = row;
	}
	if (!found)
		return;
	n = json_array_size(json_object_get(found, "models"));
	model = json_string_value(json_array_get(json_object_get(found, "models"), 0));
	root_check(
		d, "local", true,
		"%s listens at %s with %zu model%s, %s the first: to use it set AVA_LOCAL_BASE_URL "
		"and AVA_LOCAL_MODEL",
		json_str(found, "kind"), json_str(found, "base_url"), n, n == 1 ? "" : "s", model);
	if (o.json || !isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return;
	term_print(stdout, "Write it into the file env, with the model %s? [y/N] ", model);
	fflush(stdout);
	/* Anything but a word of yes, also the end of input, is no. */
	if (!fgets(answer, sizeof(answer), stdin) || (answer[0] != 'y' && answer[0] != 'Y'))
		return;
	if (keys_store("AVA_LOCAL_BASE_URL", json_str(found, "base_url"), path, sizeof(path),
		       &err) != 0 ||
	    keys_store("AVA_LOCAL_MODEL", model, path, sizeof(path), &err) != 0)
		root_check(d, "stored", false, "%s", err.text);
	else
		root_check(d, "stored", true, "%s (a daemon that runs reads it at its next start)",
			   path);
}

static void root_print_json(struct root_doctor *d)
{
	json_t *fixes = json_array();
	json_t *all = json_pack("{s:b,s:s,s:s,s:o,s:O}", "ok", d->failed == 0, "version",
				ava_version(), "root", d->root, "avad_pid",
				d->health != NULL ? json_integer(json_get_int(d->health, "pid", 0))
						  : json_null(),
				"checks", d->checks);

	if (all != NULL) {
		json_object_set_new(all, "daemon",
				    d->health != NULL ? json_incref(d->health) : json_null());
		json_object_set(all, "local_servers", json_object_get(d->seen, "local_servers"));
		json_object_set(all, "settings", json_object_get(d->seen, "settings"));
		for (size_t i = 0; i < d->nfixes; i++)
			json_array_append_new(fixes,
					      json_pack("{s:s,s:b}", "command", d->fixes[i].command,
							"done", d->fixes[i].done));
		json_object_set(all, "fixes", fixes);
	}
	show_json(stdout, all);
	json_decref(fixes);
	json_decref(all);
}

static void doctor_check_all(struct root_doctor *d)
{
	char avad[ROOT_PATH_MAX];
	struct ava_error err;
	int fd;

	d->checks = json_array();
	if (start_find(avad, sizeof(avad), &err) != 0) {
		root_check(d, "program", false, "%s", err.text);
	} else {
		root_check(d, "program", true, "ava %s, daemon %s", ava_version(), avad);
		root_check_services(d);
	}
	doctor_check_access(d);
	if (root_check_root(d)) {
		fd = open(d->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* -1: no root yet */
		if (fd >= 0 && read_check_format(fd, &err) != 0)
			root_check(d, "format", false, "%s", err.text);
		if (fd >= 0)
			close(fd);
		root_check_daemon(d);
		doctor_check_socket(d);
	}
	doctor_check_linger(d);
	doctor_check_orders(d);
	doctor_check_hooks(d);
}

static void doctor_forget(struct root_doctor *d)
{
	json_decref(d->checks);
	json_decref(d->health);
	json_decref(d->seen);
	d->checks = d->health = d->seen = NULL;
	d->failed = 0;
	api_close();
}

static int doctor_run(int argc, char **argv)
{
	static struct root_doctor d; /* large */
	bool failed;

	if (o.yes && !o.fix)
		return cli_error(CLI_USAGE, "--yes is an answer to --fix");
	doctor_check_all(&d);
	if (o.fix && doctor_mend(&d)) {
		doctor_forget(&d);
		d.mended = true;
		if (!o.json)
			puts("\nThat was done. Now:");
		doctor_check_all(&d);
	}
	offer(&d);
	if (o.json)
		root_print_json(&d);
	failed = d.failed > 0;
	doctor_forget(&d);
	return failed ? CLI_FAILED : CLI_DONE;
}

const struct command cmd_doctor = COMMAND(
	"doctor", "", 0, 0, "check that everything is in order",
	"Models of a local server are tried with one short call: do they call tools, how\n"
	"quick are they, and what to type where something is wrong (doc/LOCAL.md).\n"
	"\n"
	"A line that is wrong names the command that mends it. --fix does those that are safe:\n"
	"it closes files to others that must be closed, keeps a service running without a login,\n"
	"takes away the socket of a daemon that was killed, and renews hooks of Claude Code.\n",
	OPTIONS(doctor_opts), doctor_run);
