/* ava apply: writes a run's proposed changes into its folder, on a person's word and in this
 * process.
 *
 * Everything is tried first: each file is read below the folder without following a link, and the
 * patch is tried on it (codec/patch.h). One clash, and nothing at all is written. Then there is a
 * question, and then: all new contents are written beside their files and are on disk, the files
 * are looked at once more, and only then come the renames, one after the other. After a kill
 * in between, run it again: a file that has its new content already is left alone. Ctrl-C
 * waits until all are done. The daemon then notes that it happened.
 *
 * What can fail: a run without changes, a folder that is gone or another user's, files that
 * changed, the disk; each with the name of the file. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/below.h"
#include "base/error.h"
#include "base/settings.h"
#include "base/util.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/show.h"
#include "cli/task.h"
#include "cli/term.h"
#include "codec/json.h"
#include "codec/patch.h"

static struct {
	bool check, yes, json;
	struct opt_list also;
} o;

static const struct opt apply_opts[] = {
	OPT("check", 0, FLAG, NULL, check, "only say whether it fits: nothing is asked or written"),
	OPT("yes", 'y', FLAG, NULL, yes, "do not ask"),
	OPT("also", 0, LIST, "PATH", also,
	    "write this file too, which programs or agents obey; may be given several times"),
	OPT("json", 0, FLAG, NULL, json, "what was done as one JSON object"),
};

struct apply_target {
	const struct patch_file *f;
	enum patch_fit fit;
	struct patch_clash clash;
	char *why; /* reason of a clash that the patch does not show; owned; or NULL */
	char *data;
	size_t len; /* length of the new content, `data` */
	struct stat was;
	bool there, obeyed; /* obeyed: programs act on this file, so no yes covers it */
	char spare[sizeof(BELOW_SPARE) + 48];
};

struct apply_state {
	const char *run, *cwd;
	json_t *got; /* answer of GET /runs/{id}/patch; owned */
	struct patch patch;
	struct apply_target *targets;
	size_t fit, there, clashes, obeyed; /* fit: without obeyed files */
	int fd, lock;                       /* the folders of the project and of the run */
};

static void apply_fini(struct apply_state *a)
{
	for (size_t i = 0; a->targets && i < a->patch.n; i++) {
		free(a->targets[i].data);
		free(a->targets[i].why);
	}
	free(a->targets);
	patch_fini(&a->patch);
	json_decref(a->got);
	if (a->fd >= 0)
		close(a->fd);
	if (a->lock >= 0)
		close(a->lock);
}

/* ---- what is to be done */

/* The folder must be the one that was confirmed, and the person's own. */
static int apply_open_folder(struct apply_state *a, struct ava_error *err)
{
	char link[40], real[PATH_MAX];
	struct stat st;
	ssize_t n;

	a->fd = a->cwd[0] == '/' ? open(a->cwd, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (a->fd < 0)
		return err_set(err, AVA_ENOENT,
			       "the folder %.300s, in which %s worked, cannot be opened (%s)",
			       a->cwd, a->run,
			       a->cwd[0] == '/' ? strerror(errno) : "it has no path");
	snprintf(link, sizeof(link), "/proc/self/fd/%d", a->fd);
	n = readlink(link, real, sizeof(real) - 1);
	if (n < 0 || fstat(a->fd, &st) != 0)
		return err_sys(err, "%.300s", a->cwd);
	real[n] = '\0';
	if (strcmp(real, a->cwd) != 0)
		return err_set(
			err, AVA_EDENIED,
			"the folder %.200s is reached through a link by now (%.200s): nothing "
			"is written there",
			a->cwd, real);
	if (st.st_uid != geteuid())
		return err_set(err, AVA_EDENIED,
			       "the folder %.300s belongs to another user (uid %u, you are %u): "
			       "nothing is written there",
			       a->cwd, (unsigned)st.st_uid, (unsigned)geteuid());
	if (faccessat(a->fd, ".", W_OK, AT_EACCESS) != 0)
		return err_set(err, AVA_EDENIED, "the folder %.300s is not writable", a->cwd);
	return 0;
}

/* Is a folder that `path` is in a file? Then nothing can be written there. */
static bool below_a_file(const struct apply_state *a, const char *path)
{
	const char *name;
	int dir = below_open_parent(a->fd, path, false, &name);

	if (dir >= 0)
		close(dir);
	return dir < 0 && errno == ENOTDIR;
}

static bool named_also(const char *path)
{
	for (size_t i = 0; i < o.also.n; i++)
		if (strcmp(o.also.items[i], path) == 0)
			return true;
	return false;
}

/* Try one file; what stops only it is a clash. */
static int try_one(struct apply_state *a, struct apply_target *t, struct ava_error *err)
{
	struct ava_error own = {0};
	struct patch_side now = {0};
	struct buf out;
	char *data = NULL;
	int rv = below_read(a->fd, t->f->path, 2 * PATCH_FILE_MAX, &data, &now.len, &t->was, &own);
	int fit = PATCH_CLASHES;

	buf_init(&out, 2 * PATCH_FILE_MAX);
	t->there = now.there = rv == 0;
	if (rv == 0) {
		now.data = data;
		now.exec = t->was.st_mode & 0100;
	} else {
		now.len = 0;
	}
	if (patch_protected(t->f->path))
		t->clash.what = "is protected: no patch changes it";
	else if (rv == AVA_ENOENT && !t->f->is_gone && below_a_file(a, t->f->path))
		t->clash.what = "cannot be written: a folder of its path is a file";
	else if (rv == 0 || rv == AVA_ENOENT)
		fit = patch_try(t->f, &now, &out, &t->clash);
	else
		t->why = strdup(own.text);
	free(data);
	if (fit == PATCH_FITS)
		t->data = buf_take(&out, &t->len);
	buf_fini(&out);
	if (fit < 0 || (fit == PATCH_FITS && !t->data))
		return err_set(err, AVA_ENOMEM, "out of memory");
	t->fit = (enum patch_fit)fit;
	t->obeyed = fit == PATCH_FITS && patch_obeyed(t->f->path) && !named_also(t->f->path);
	a->obeyed += t->obeyed;
	a->fit += fit == PATCH_FITS && !t->obeyed;
	a->there += fit == PATCH_DONE;
	a->clashes += fit == PATCH_CLASHES;
	return 0;
}

static int plan(struct apply_state *a, struct ava_error *err)
{
	const json_t *text = json_object_get(a->got, "patch");
	int rv;

	a->cwd = json_str(a->got, "cwd");
	rv = apply_open_folder(a, err);
	if (rv == 0)
		rv = patch_read(&a->patch, json_string_value(text), json_string_length(text), err);
	if (rv != 0)
		return rv;
	a->targets = calloc(a->patch.n + 1, sizeof(*a->targets));
	if (!a->targets)
		return err_set(err, AVA_ENOMEM, "out of memory");
	for (size_t i = 0; rv == 0 && i < a->patch.n; i++) {
		a->targets[i].f = &a->patch.files[i];
		snprintf(a->targets[i].spare, sizeof(a->targets[i].spare), BELOW_SPARE "-%s-%zu",
			 a->run, i);
		rv = try_one(a, &a->targets[i], err);
	}
	for (size_t i = 0; rv == 0 && i < o.also.n; i++) {
		bool found = false;

		for (size_t k = 0; k < a->patch.n; k++)
			found |= strcmp(a->patch.files[k].path, o.also.items[i]) == 0;
		if (!found)
			rv = err_set(err, AVA_EINVAL, "--also %.300s: %s changes no such file",
				     o.also.items[i], a->run);
	}
	return rv;
}

/* ---- doing it */

static bool is_written(const struct apply_target *t)
{
	return t->fit == PATCH_FITS && !t->obeyed;
}

static mode_t apply_mode_of(const struct apply_target *t)
{
	mode_t mask = umask(0), mode = t->was.st_mode & 0777;

	umask(mask);
	if (!t->there)
		return (t->f->exec ? 0777 : 0666) & ~mask;
	if (!t->f->chmod)
		return mode;
	return t->f->exec ? mode | (mode & 0444) >> 2 : mode & ~(mode_t)0111;
}

/* Is it still the file that the patch was tried on? */
static bool still(const struct apply_state *a, const struct apply_target *t)
{
	const char *name;
	int dir = below_open_parent(a->fd, t->f->path, false, &name);
	struct stat st;
	bool there = dir >= 0 && fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0;

	if (dir >= 0)
		close(dir);
	if (!there || !t->there)
		return there == t->there;
	return st.st_ino == t->was.st_ino && st.st_size == t->was.st_size &&
	       st.st_mtim.tv_sec == t->was.st_mtim.tv_sec &&
	       st.st_mtim.tv_nsec == t->was.st_mtim.tv_nsec &&
	       st.st_ctim.tv_sec == t->was.st_ctim.tv_sec &&
	       st.st_ctim.tv_nsec == t->was.st_ctim.tv_nsec;
}

/* The new contents beside their files, on disk. */
static int write_spares(struct apply_state *a, struct ava_error *err)
{
	int rv = 0;

	for (size_t i = 0; rv == 0 && i < a->patch.n; i++) {
		struct apply_target *t = &a->targets[i];

		if (is_written(t) && !t->f->is_gone)
			rv = below_write(a->fd, t->f->path, t->spare, t->data, t->len,
					 apply_mode_of(t), err);
	}
	for (size_t i = 0; rv == 0 && i < a->patch.n; i++)
		if (is_written(&a->targets[i]) && !still(a, &a->targets[i]))
			rv = err_set(err, AVA_EBUSY, "%.300s was changed just now: ask again",
				     a->targets[i].f->path);
	return rv;
}

static int put_all(struct apply_state *a, struct ava_error *err)
{
	size_t done = 0;
	int rv = 0;

	for (int gone = 0; gone < 2; gone++) { /* first changes, then removals */
		for (size_t i = 0; rv == 0 && i < a->patch.n; i++) {
			const struct apply_target *t = &a->targets[i];

			if (!is_written(t) || t->f->is_gone != gone)
				continue;
			rv = gone ? below_remove(a->fd, t->f->path, NULL, err)
				  : below_rename(a->fd, t->f->path, t->spare, err);
			if (rv == 0 && gone)
				below_remove_empty(a->fd, t->f->path); /* git does, too */
			done += rv == 0;
		}
	}
	if (rv == 0 && syncfs(a->fd) != 0)
		rv = err_sys(err, "%.300s", a->cwd);
	if (rv != 0 && done > 0)
		return err_wrap(err, rv, "%zu of %zu files are written, ask again for the rest",
				done, a->fit);
	return rv;
}

/* Lock out another apply of the same run, which has the same spares. The lock is on the run's own
 * folder: any user who may read the project's could hold a lock there for ever. */
static int lock_run(struct apply_state *a, struct ava_error *err)
{
	char root[ROOT_PATH_MAX], path[ROOT_PATH_MAX + 40];
	int rv = settings_data_root(root, sizeof(root), err);

	if (rv != 0)
		return rv;
	snprintf(path, sizeof(path), "%s/runs/%.30s", root, a->run);
	a->lock = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (a->lock >= 0 && flock(a->lock, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (a->lock >= 0 && errno == EWOULDBLOCK) {
		cli_note("another `ava apply %s` is at work: waiting for it", a->run);
		if (flock(a->lock, LOCK_EX) == 0)
			return 0;
	}
	return err_sys(err, "lock %.300s", path);
}

static int apply_write_all(struct apply_state *a, struct ava_error *err)
{
	sigset_t hold, was;
	int rv = lock_run(a, err);

	if (rv != 0)
		return rv;
	sigemptyset(&hold);
	sigaddset(&hold, SIGINT);
	sigaddset(&hold, SIGTERM);
	sigaddset(&hold, SIGHUP);
	sigprocmask(SIG_BLOCK, &hold, &was);
	rv = write_spares(a, err);
	if (rv == 0)
		rv = put_all(a, err);
	/* Spares of a killed process go, too. */
	for (size_t i = 0; i < a->patch.n; i++)
		(void)below_remove(a->fd, a->targets[i].f->path, a->targets[i].spare, NULL);
	sigprocmask(SIG_SETMASK, &was, NULL);
	return rv;
}

/* ---- what is said */

static const char *apply_state_of(const struct apply_target *t)
{
	return t->obeyed              ? "obeyed"
	       : t->fit == PATCH_FITS ? "fits"
	       : t->fit == PATCH_DONE ? "there"
				      : "clashes";
}

static void apply_print_json(const struct apply_state *a, const char *state)
{
	json_t *all = json_object(), *files = json_array();

	for (size_t i = 0; i < a->patch.n; i++) {
		const struct apply_target *t = &a->targets[i];
		json_t *one = json_object();

		json_object_set_new(one, "path", json_string(t->f->path));
		json_object_set_new(one, "state", json_string(apply_state_of(t)));
		if (t->fit == PATCH_CLASHES) {
			json_object_set_new(one, "what",
					    json_string(t->why ? t->why : t->clash.what));
			json_object_set_new(one, "hunk", json_integer((json_int_t)t->clash.hunk));
			json_object_set_new(one, "line", json_integer((json_int_t)t->clash.line));
		}
		json_array_append_new(files, one);
	}
	json_object_set_new(all, "subagent_id", json_string(a->run));
	json_object_set_new(all, "cwd", json_string(a->cwd));
	json_object_set_new(all, "state", json_string(state));
	json_object_set_new(all, "files", files);
	json_object_set(all, "left_out",
			json_object_get(json_object_get(a->got, "about"), "left_out"));
	show_json(stdout, all);
	json_decref(all);
}

static int say_clashes(const struct apply_state *a)
{
	if (o.json)
		apply_print_json(a, "clashes");
	for (size_t i = 0; !o.json && i < a->patch.n; i++) {
		const struct apply_target *t = &a->targets[i];

		if (t->fit != PATCH_CLASHES)
			continue;
		if (t->why)
			term_print(stdout, "  %s\n", t->why);
		else if (t->clash.hunk > 0)
			term_print(stdout, "  %s, hunk %zu (at line %zu): %s\n", t->f->path,
				   t->clash.hunk, t->clash.line, t->clash.what);
		else
			term_print(stdout, "  %s %s\n", t->f->path, t->clash.what);
	}
	fflush(stdout);
	return cli_error(CLI_FAILED,
			 "%s does not fit %s as it is now (%zu of %zu files clash): nothing was "
			 "written; put those files right, or try `git apply --3way` with %s of the "
			 "data root",
			 a->run, a->cwd, a->clashes, a->patch.n,
			 json_str(json_object_get(a->got, "about"), "path"));
}

/* As task_yes. */
static int apply_answered(void)
{
	int rv;

	fputs("? [Yes/No] ", stderr);
	rv = task_yes();
	if (rv == -1 && isatty(STDIN_FILENO))
		fputc('\n', stderr);
	return rv;
}

/* Files that programs obey are asked about one by one, and shown whole. */
static void ask_obeyed(struct apply_state *a)
{
	for (size_t i = 0; i < a->patch.n && !o.yes; i++) {
		struct apply_target *t = &a->targets[i];

		if (!t->obeyed)
			continue;
		term_print(stderr, "\n%s is a file that programs or agents obey%s:\n%.*s",
			   t->f->path, t->f->is_gone ? ", and goes" : "",
			   (int)(t->f->end - t->f->hunks), t->f->hunks);
		term_print(stderr, "Write %s", t->f->path);
		if (apply_answered() != 1)
			continue;
		t->obeyed = false;
		a->obeyed--;
		a->fit++;
	}
}

/* 0: go on and write. */
static int apply_ask(struct apply_state *a, struct ava_error *err)
{
	int yes = 1;

	if (!o.yes && a->fit > 0) {
		term_print(stderr, "Write %s%zu file%s in %s", a->there > 0 ? "the other " : "",
			   a->fit, a->fit == 1 ? "" : "s", a->cwd);
		yes = apply_answered();
	}
	if (yes == 1)
		ask_obeyed(a);
	if (yes == 1 && a->fit > 0)
		return 0;
	if (yes == 1)
		return err_set(err, AVA_EREJECTED,
			       "nothing was written: programs or agents obey what it changes, so "
			       "each file is named (--also PATH) or asked about");
	return err_set(err, AVA_EREJECTED, "no yes: nothing was written%s",
		       yes < 0 ? " (use --yes to confirm without one)" : "");
}

/* Have the daemon record the changes; the files are written even if that fails. */
static void apply_note(const struct apply_state *a)
{
	struct ava_error err;
	json_t *reply = NULL;
	struct buf body;
	struct jw w;

	api_body(&w, &body, 65536);
	jw_str(&w, "cwd", a->cwd);
	jw_str(&w, "hash", json_str(a->got, "hash"));
	jw_int(&w, "files", (int64_t)a->fit);
	jw_int(&w, "already_there", (int64_t)a->there);
	jw_end(&w);
	if (buf_check(&body) != 0 ||
	    api_request(body.data, &reply, &err, "/runs/%s/applied", a->run) != 0)
		cli_note("the files are written, but the log does not say so (%s)",
			 buf_check(&body) != 0 ? "out of memory" : err.text);
	json_decref(reply);
	buf_fini(&body);
}

static int apply_done(const struct apply_state *a)
{
	apply_note(a);
	if (o.json)
		apply_print_json(a, a->fit > 0 ? "applied" : "there");
	else if (a->fit == 0)
		term_print(stdout, "All of %s is in %s already.\n", a->run, a->cwd);
	else
		term_print(stdout, "Written: %zu file%s in %s.%s\n", a->fit, a->fit == 1 ? "" : "s",
			   a->cwd, a->there > 0 ? " The others had their changes already." : "");
	for (size_t i = 0; !o.json && i < a->patch.n; i++)
		if (a->targets[i].obeyed)
			term_print(stdout,
				   "Not written: %s, which programs or agents obey; write it: "
				   "ava apply %s --also '%s'\n",
				   a->targets[i].f->path, a->run, a->targets[i].f->path);
	return CLI_DONE;
}

static int apply_apply(struct apply_state *a)
{
	struct ava_error err = {0};
	int rv = api_request(NULL, &a->got, &err, "/runs/%s/patch", a->run);

	if (rv == 0)
		rv = plan(a, &err);
	if (rv != 0)
		return cli_fail(&err);
	if (!o.json)
		changes_show(stdout, json_object_get(a->got, "about"));
	fflush(stdout);
	if (a->clashes > 0)
		return say_clashes(a);
	if (o.check && o.json)
		apply_print_json(a, a->fit + a->obeyed > 0 ? "fits" : "there");
	else if (o.check)
		term_print(stdout,
			   a->fit + a->obeyed > 0
				   ? "It fits %s; nothing was written. Write it: ava apply %s\n"
				   : "All of it is in %s already.\n",
			   a->cwd, a->run);
	if (o.check)
		return CLI_DONE;
	if (a->fit + a->obeyed > 0)
		rv = apply_ask(a, &err);
	if (rv == 0)
		rv = apply_write_all(a, &err);
	if (rv != 0 && err.code == AVA_EREJECTED && o.json)
		apply_print_json(a, "rejected");
	return rv == 0 ? apply_done(a) : cli_fail(&err);
}

static int apply_run(int argc, char **argv)
{
	struct apply_state a = {.run = argv[0], .fd = -1, .lock = -1, .cwd = ""};
	int code;

	if (o.check && o.yes)
		return cli_error(CLI_USAGE, "--check writes nothing: leave out --yes");
	code = apply_apply(&a);
	apply_fini(&a);
	return code;
}

const struct command cmd_apply = COMMAND(
	"apply", "S-id", 1, 1, "write the changes that a run proposes into its folder",
	"A run with --grant rw works on a copy; what it changed there is a patch. It is tried\n"
	"first, and where a file does not take it nothing at all is written (exit 1). Done\n"
	"twice it does no harm.\n"
	"\n"
	"  ava apply S-7f3a2b --check\n",
	OPTIONS(apply_opts), apply_run);
