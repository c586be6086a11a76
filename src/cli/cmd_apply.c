/* ava apply: writes a run's proposed changes into its folder (tool/apply.h), on a person's word and
 * in this process, or makes a commit of them (cli/outcome.h).
 *
 * Everything is tried first; one clash, and nothing at all is written. Then the patch is shown with
 * a question, and then the files are written: Ctrl-C waits until all are done. The daemon then
 * notes that it happened.
 *
 * What can fail: a run without changes, and what tool/apply.h says. */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/settings.h"
#include "base/util.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/outcome.h"
#include "cli/show.h"
#include "cli/task.h"
#include "cli/term.h"
#include "codec/json.h"
#include "tool/apply.h"

#define SHOWN_LINES 200 /* lines of the patch before the question, at the most */

static struct {
	bool check, yes, json, commit, pr, push;
	struct outcome_wish out;
	struct opt_list also;
} o;

static const char *const froms[] = {"head", "copied", NULL};

static const struct opt apply_opts[] = {
	OPT("check", 0, FLAG, NULL, check, "only say whether it fits: nothing is asked or written"),
	OPT("yes", 'y', FLAG, NULL, yes, "do not ask"),
	OPT("also", 0, LIST, "PATH", also,
	    "write this file too, which programs or agents obey; may be given several times"),
	OPT("branch", 0, STR, "NAME", out.branch,
	    "make this branch with them; nothing else changes"),
	OPT("commit", 0, FLAG, NULL, commit, "commit them; without --branch on the current branch"),
	OPT("message", 'm', STR, "TEXT", out.message,
	    "of the commit, instead of the run's summary"),
	OPT("from", 0, STR, "BASE", out.from,
	    "where the branch begins: head, or copied, as the run found it", .words = froms),
	OPT("pr", 0, FLAG, NULL, pr, "with --branch: push it and open a request, by gh or glab"),
	OPT("base", 0, STR, "B", out.base, "with --pr: the branch that it is for"),
	OPT("draft", 0, FLAG, NULL, out.draft, "with --pr: as a draft"),
	OPT("push", 0, FLAG, NULL, push, "with --pr: do not ask before the push (--yes does)"),
	OPT("json", 0, FLAG, NULL, json, "what was done as one JSON object"),
};

static json_t *apply_got;   /* the answer of GET /runs/{id}/patch; owned */
static struct outcome made; /* with --branch or --commit */

/* The place as people know it: the folder, or the commit that the branch begins at. */
static const char *apply_where(const struct applying *a)
{
	static char where[40];

	if (!made.tree[0])
		return a->cwd;
	snprintf(where, sizeof(where), "commit %.10s", made.base);
	return where;
}

/* ---- doing it */

static int apply_lock_wait(struct applying *a, struct ava_error *err)
{
	char root[ROOT_PATH_MAX];
	int rv = settings_data_root(root, sizeof(root), err);

	if (rv == 0)
		rv = apply_lock(a, root, false, err);
	if (rv != AVA_EBUSY)
		return rv;
	cli_note("%s: waiting for it", err->text);
	return apply_lock(a, root, true, err);
}

static int apply_write_all(struct applying *a, struct ava_error *err)
{
	sigset_t hold, was;
	int rv = apply_lock_wait(a, err);

	if (rv != 0)
		return rv;
	sigemptyset(&hold);
	sigaddset(&hold, SIGINT);
	sigaddset(&hold, SIGTERM);
	sigaddset(&hold, SIGHUP);
	sigprocmask(SIG_BLOCK, &hold, &was);
	rv = apply_write(a, err);
	sigprocmask(SIG_SETMASK, &was, NULL);
	return rv;
}

/* ---- what is said */

static void apply_print_json(const struct applying *a, const char *state)
{
	json_t *all = json_object(), *files = json_array();

	for (size_t i = 0; i < a->patch.n; i++) {
		const struct apply_target *t = &a->targets[i];
		json_t *one = json_object();

		json_object_set_new(one, "path", json_string(t->f->path));
		json_object_set_new(one, "state", json_string(apply_state(t)));
		if (t->fit == PATCH_CLASHES) {
			json_object_set_new(one, "what",
					    json_string(t->why ? t->why : t->clash.what));
			json_object_set_new(one, "hunk", json_integer((json_int_t)t->clash.hunk));
			json_object_set_new(one, "line", json_integer((json_int_t)t->clash.line));
		}
		json_array_append_new(files, one);
	}
	json_object_set_new(all, "subagent_id", json_string(a->run));
	json_object_set_new(all, "cwd", json_string(json_str(apply_got, "cwd")));
	json_object_set_new(all, "state", json_string(state));
	json_object_set_new(all, "files", files);
	if (made.commit[0]) {
		json_object_set_new(all, "branch", json_string(outcome_branch(&made)));
		json_object_set_new(all, "base", json_string(made.base));
		json_object_set_new(all, "commit", json_string(made.commit));
	}
	json_object_set(all, "left_out",
			json_object_get(json_object_get(apply_got, "about"), "left_out"));
	show_json(stdout, all);
	json_decref(all);
}

static int say_clashes(const struct applying *a)
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
	if (made.tree[0])
		return cli_error(CLI_FAILED,
				 "%s does not fit commit %.10s (%zu of %zu files clash): there is "
				 "no branch, and nothing changed%s",
				 a->run, made.base, a->clashes, a->patch.n,
				 strcmp(made.base, made.copied) == 0
					 ? ""
					 : "; `--from copied` begins it where the run began, and "
					   "git merges from there");
	return cli_error(CLI_FAILED,
			 "%s does not fit %s as it is now (%zu of %zu files clash): nothing was "
			 "written; put those files right, or try `git apply --3way` with %s of the "
			 "data root",
			 a->run, a->cwd, a->clashes, a->patch.n,
			 json_str(json_object_get(apply_got, "about"), "path"));
}

/* The change of `only`, or (NULL) what the first yes writes, cut behind SHOWN_LINES. Each line
 * begins with the patch's own character, so that none looks like a line of ava. */
static void apply_show(FILE *f, const struct applying *a, const struct apply_target *only)
{
	int64_t left = only ? INT64_MAX : SHOWN_LINES;
	char root[ROOT_PATH_MAX];

	for (size_t i = 0, n; i < a->patch.n; i++) {
		const struct apply_target *t = &a->targets[i];

		if (only ? t != only : t->fit != PATCH_FITS || t->obeyed)
			continue;
		if (left > 0)
			term_print(f, "\n%s%s\n", t->f->path,
				   !t->f->chmod ? ""
				   : t->f->exec ? ", executable"
						: ", no longer executable");
		for (const char *s = t->f->hunks; s < t->f->end; s += n + 1) {
			n = strcspn(s, "\n");
			if (--left < 0)
				continue;
			term_colour(f, *s == '+' ? TERM_GREEN : *s == '-' ? TERM_RED : TERM_PLAIN);
			term_wrapped(f, s, n);
			term_colour(f, TERM_PLAIN);
			fputc('\n', f);
		}
	}
	if (left < 0 && settings_data_root(root, sizeof(root), NULL) == 0)
		term_print(f, "\n%" PRId64 " more lines are not shown; all of it: less '%s/%s'\n",
			   -left, root, json_str(json_object_get(apply_got, "about"), "path"));
	fflush(f);
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

static int apply_no_yes(int answer, const char *so, struct ava_error *err)
{
	if (answer == AVA_ECANCELED)
		return err_set(err, AVA_ECANCELED, "stopped: %s", so);
	return err_set(err, AVA_EREJECTED, "no yes: %s%s", so,
		       answer < 0 ? " (use --yes to confirm without one)" : "");
}

/* Files that programs obey are asked about one by one, and shown whole. Ctrl-C ends all of it. */
static int ask_obeyed(struct applying *a, const char *so, struct ava_error *err)
{
	for (size_t i = 0; i < a->patch.n && !o.yes; i++) {
		struct apply_target *t = &a->targets[i];
		int yes;

		if (!t->obeyed)
			continue;
		term_print(stderr, "\nA file that programs or agents obey%s:",
			   t->f->is_gone ? ", and goes" : "");
		apply_show(stderr, a, t);
		term_print(stderr, "Write %s", t->f->path);
		yes = apply_answered();
		if (yes == AVA_ECANCELED)
			return apply_no_yes(yes, so, err);
		if (yes != 1)
			continue;
		t->obeyed = false;
		a->obeyed--;
		a->fit++;
	}
	return a->fit > 0 ? 0
			  : err_set(err, AVA_EREJECTED,
				    "%s: programs or agents obey what it changes, so each file is "
				    "named (--also PATH) or asked about",
				    so);
}

/* 0: go on and write. */
static int apply_ask(struct applying *a, struct ava_error *err)
{
	static const char so[] = "nothing was written";
	int yes = 1;

	if (!o.yes && a->fit > 0) {
		apply_show(o.json ? stderr : stdout, a, NULL);
		term_print(stderr, "Write %s%zu file%s in %s", a->there > 0 ? "the other " : "",
			   a->fit, a->fit == 1 ? "" : "s", a->cwd);
		yes = apply_answered();
	}
	return yes == 1 ? ask_obeyed(a, so, err) : apply_no_yes(yes, so, err);
}

/* Have the daemon record the changes; the files are written even if that fails. */
static void apply_note(const struct applying *a)
{
	struct ava_error err;
	json_t *reply = NULL;
	struct buf body;
	struct jw w;

	api_body(&w, &body, 65536);
	jw_str(&w, "cwd", json_str(apply_got, "cwd"));
	jw_str(&w, "hash", json_str(apply_got, "hash"));
	jw_int(&w, "files", (int64_t)a->fit);
	jw_int(&w, "already_there", (int64_t)a->there);
	if (made.commit[0]) {
		jw_str(&w, "branch", outcome_branch(&made));
		jw_str(&w, "commit", made.commit);
	}
	jw_end(&w);
	if (buf_check(&body) != 0 ||
	    api_request(body.data, &reply, &err, "/runs/%s/applied", a->run) != 0)
		cli_note("that is done, but the log does not say so (%s)",
			 buf_check(&body) != 0 ? "out of memory" : err.text);
	json_decref(reply);
	buf_fini(&body);
}

static int apply_done(const struct applying *a)
{
	apply_note(a);
	if (o.json)
		apply_print_json(a, a->fit > 0 ? "applied" : "there");
	else if (made.commit[0])
		term_print(stdout, "Branch %s is at commit %.10s now: %zu file%s.\n",
			   outcome_branch(&made), made.commit, a->fit, a->fit == 1 ? "" : "s");
	else if (a->fit == 0)
		term_print(stdout, "All of %s is in %s already.\n", a->run, apply_where(a));
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

/* The patch as a commit: asked about once more, with all that is in it. */
static int apply_to_branch(struct applying *a, struct ava_error *err)
{
	static const char so[] = "there is no branch, and nothing changed";
	int yes = 1, rv = ask_obeyed(a, so, err);

	if (rv == 0)
		rv = apply_write_all(a, err);
	if (rv == 0)
		rv = outcome_stage(&made, a, err);
	if (rv != 0)
		return rv;
	if (!o.yes) {
		apply_show(o.json ? stderr : stdout, a, NULL);
		outcome_show(o.json ? stderr : stdout, &made);
		fputs("Commit it", stderr);
		yes = apply_answered();
	} else if (!o.json) {
		outcome_show(stdout, &made);
	}
	return yes == 1 ? outcome_commit(&made, err) : apply_no_yes(yes, so, err);
}

/* Lay out what there is to be written, and where. */
static int apply_prepare(struct applying *a, struct ava_error *err)
{
	const json_t *text;
	json_t *result = NULL;
	int rv = api_request(NULL, &apply_got, err, "/runs/%s/patch", a->run);

	a->cwd = json_str(apply_got, "cwd");
	text = json_object_get(apply_got, "patch");
	if (rv == 0 && (o.out.branch || o.commit)) {
		rv = api_request(NULL, &result, err, "/runs/%s/result", a->run);
		if (rv == 0)
			rv = apply_lock_wait(a, err);
		if (rv == 0)
			rv = outcome_begin(&made, apply_got, result, err);
		json_decref(result);
		a->cwd = made.place;
	}
	if (rv == 0)
		rv = apply_plan(a, json_string_value(text), json_string_length(text), err);
	if (rv == 0 && made.tree[0])
		outcome_obeyed(&made, a);
	return rv;
}

static int apply_apply(struct applying *a)
{
	struct ava_error err = {0};
	int rv = apply_prepare(a, &err);

	if (rv != 0)
		return cli_fail(&err);
	if (!o.json)
		changes_show(stdout, json_object_get(apply_got, "about"));
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
			   apply_where(a), a->run);
	if (o.check)
		return CLI_DONE;
	if (made.tree[0] && a->fit + a->obeyed > 0) {
		rv = apply_to_branch(a, &err);
	} else {
		if (a->fit + a->obeyed > 0)
			rv = apply_ask(a, &err);
		if (rv == 0)
			rv = apply_write_all(a, &err);
	}
	if (rv != 0 && err.code == AVA_EREJECTED && o.json)
		apply_print_json(a, "rejected");
	if (rv != 0)
		return cli_fail(&err);
	apply_done(a);
	return o.pr && made.commit[0] && outcome_request(&made, o.push, &err) != 0 ? cli_fail(&err)
										   : CLI_DONE;
}

static int apply_run(int argc, char **argv)
{
	struct applying a = {
		.run = argv[0], .also = o.also.items, .nalso = o.also.n, .mask = umask(0)};
	int code;

	a.fd = a.lock = -1;
	umask(a.mask);
	made = (struct outcome){.w = &o.out, .run = argv[0]};
	if (o.check && o.yes)
		return cli_error(CLI_USAGE, "--check writes nothing: leave out --yes");
	if (o.pr && !o.out.branch)
		return cli_error(CLI_USAGE, "--pr needs --branch NAME");
	if ((o.out.base || o.out.draft || o.push) && !o.pr)
		return cli_error(CLI_USAGE, "--base, --draft and --push go with --pr");
	if ((o.out.message || o.out.from) && !o.out.branch && !o.commit)
		return cli_error(CLI_USAGE, "-m and --from go with --branch NAME or --commit");
	if (o.out.from && !o.out.branch)
		return cli_error(CLI_USAGE, "--from needs --branch NAME: --commit is for HEAD");
	code = apply_apply(&a);
	outcome_end(&made);
	apply_fini(&a);
	json_decref(apply_got);
	return code;
}

const struct command cmd_apply = COMMAND(
	"apply", "S-id", 1, 1, "write the changes that a run proposes into its folder, or a branch",
	"A run with --grant rw works on a copy; what it changed there is a patch. It is tried\n"
	"first, and where a file does not take it nothing at all is written (exit 1). Done\n"
	"twice it does no harm.\n"
	"\n"
	"  ava apply S-7f3a2b --check\n"
	"  ava apply S-7f3a2b --branch mend-test --pr\n"
	"\n"
	"With --branch or --commit nothing of yours changes before the commit is shown and\n"
	"confirmed (doc/OUTCOMES.md); nothing is pushed without a yes of its own.\n",
	OPTIONS(apply_opts), apply_run);
