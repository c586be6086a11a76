/* run_bash and python_exec: a command in the sandbox (exec/sandbox.h).
 *
 * Happy path: the run's work folder is made, the command is started in the sandbox from the loop,
 * what it writes is shown as activity now and then, and its end becomes the call's answer: how
 * it ended, its output (the first and the last of it) and what stands in the work folder.
 * A command that fails is an answer like others, which the model reads. What can fail: the sandbox
 * (sandbox_unavailable: then nothing was run), the time, memory. */
#include <ava.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/format.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/screen.h"
#include "codec/utf8.h"
#include "exec/cgroup.h"
#include "exec/child.h"
#include "exec/repository.h"
#include "exec/sandbox.h"
#include "os/loop.h"
#include "tool/job.h"
#include "tool/root.h"
#include "tool/trim.h"

#define TIME_DEFAULT_S 120
#define KEEP_FIRST     (24u << 10)
#define KEEP_LAST      (32u << 10)
#define CHECK_FIRST    (1u << 10) /* of a check, whose last lines count */
#define CHECK_LAST     (5u << 10)
#define SHOW_EVERY_MS  2000
#define LINE_MAX_BYTES 4096 /* longest line in which secrets are found before the cut */
#define FILES_MAX      20   /* files of the work folder named in the answer */
#define FILES_LOOKED   1000
#define DISK_LOOK_MS   100

struct command_state {
	struct tool_call *call;
	struct exec_child *child;
	char *bwrap, *inside;
	char work[PATH_MAX], start[PATH_MAX];
	int64_t started_ms, shown_ms;
	int seconds;           /* time limit */
	bool bare;             /* the command runs without bubblewrap: sandbox.required is 0 */
	struct os_timer *look; /* timer of looks at the disk, which the command must not fill */
	struct trim trim;
	bool filled; /* the command was stopped, since it filled the disk */
	struct os_work trimming;
	struct buf trimmed;      /* report of the trim */
	struct exec_options how; /* kept for a second start */
	struct repository repository;
	const char *argv[4];
	char *text; /* owned text that `argv` and `how` point to */
	struct screen screen;
};

static void command_free(struct command_state *m)
{
	os_timer_free(m->look);
	trim_end(&m->trim);
	buf_fini(&m->trimmed);
	free(m->bwrap);
	free(m->inside);
	free(m->text);
	free(m);
}

static void command_answer_failure(struct tool_call *c, const char *class, const char *sentence)
{
	job_fail(c, class, sentence);
	c->done(c);
}

/* ---- the answer */

static void say_output(struct buf *out, const struct exec_end *end)
{
	size_t first = end->output_len, most = MIN(first, LINE_MAX_BYTES), skip = 0;
	const char *nl;

	/* Redaction does not find half a secret, so a line that the gap cuts is left out on both
	 * sides. A line longer than any secret stays, since it may be the whole output. */
	if (end->written > end->output_len + end->tail_len) {
		nl = memrchr(end->output + first - most, '\n', most);
		first = nl ? (size_t)(nl + 1 - end->output) : first;
		nl = memchr(end->tail, '\n', MIN(end->tail_len, LINE_MAX_BYTES));
		skip = nl ? (size_t)(nl + 1 - end->tail) : 0;
	}
	buf_add(out, end->output, first);
	if (first + end->tail_len - skip < end->written)
		buf_addf(out, "\n… %llu bytes left out …\n",
			 (unsigned long long)(end->written - first - (end->tail_len - skip)));
	buf_add(out, end->tail + skip, end->tail_len - skip);
}

/* A shell's own codes are told for a check: it did not find its command, or could not start it. */
static const char *command_exit_words(const struct command_state *m, int code)
{
	if (m->call->tool != &tool_check)
		return "";
	return code == 127   ? " (there is no such command)"
	       : code == 126 ? " (it cannot be executed)"
			     : "";
}

static void say_end(struct buf *out, const struct command_state *m, const struct exec_end *end)
{
	struct format took = format_ms(clock_mono_ms() - m->started_ms);

	if (end->how == EXEC_TIMEOUT)
		buf_addf(out, "stopped: it was not done after %d s", m->seconds);
	else if (end->how == EXEC_SIGNALLED)
		buf_addf(out, "ended by signal %d (%s), %s", end->code, strsignal(end->code),
			 took.text);
	else
		buf_addf(out, "exit %d%s, %s", end->code, command_exit_words(m, end->code),
			 took.text);
	if (end->left)
		buf_adds(out, "; something of it does not end");
	buf_addc(out, '\n');
	if (strstr(m->text, "git ") && m->repository.refused)
		buf_adds(out,
			 "(git's folder is not shown: it must be a repository of this user's that "
			 "names this work tree, not the home folder's, and not lie where keys "
			 "are)\n");
	else if (strstr(m->text, "git ") && m->repository.part)
		buf_addf(out,
			 "(of %s only the history and this project are here: git takes all "
			 "other files for deleted, so give it a path)\n",
			 m->repository.tree);
}

static void say_file(struct buf *out, int dir, const char *name, unsigned n)
{
	struct stat st;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return;
	buf_adds(out, n == 0 ? "\nin " SANDBOX_WORK ": " : ", ");
	job_name(out, name);
	if (S_ISREG(st.st_mode))
		buf_addf(out, " (%lld bytes)", (long long)st.st_size);
	else
		buf_adds(out, S_ISDIR(st.st_mode) ? "/" : " (no plain file)");
}

/* List the top of the work folder by name and size, pictures too, up to a readable number. */
static void command_say_files(struct buf *out, const char *work)
{
	int dir = open(work, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = dir >= 0 ? fdopendir(dir) : NULL;
	struct dirent *e;
	unsigned n = 0, shown = 0;

	if (!d) {
		if (dir >= 0)
			close(dir);
		return;
	}
	while (n < FILES_LOOKED && (e = readdir(d)) != NULL) {
		if (e->d_name[0] == '.')
			continue;
		if (n++ < FILES_MAX)
			say_file(out, dir, e->d_name, shown++);
	}
	if (n > FILES_MAX)
		buf_addf(out, " and %u%s more", n - FILES_MAX, n == FILES_LOOKED ? " or" : "");
	if (n > 0)
		buf_addc(out, '\n');
	closedir(d);
}

/* Record the layers of the sandbox: as ava-sandbox tells them, and the limits of its cgroup. */
static void say_layers(struct command_state *m, const char *told)
{
	struct tool_env *env = m->call->env;
	json_t *o = json_parse(told, strcspn(told, "\n"), NULL);
	char *text;

	if (json_is_true(json_object_get(o, "cgroup")))
		json_object_set_new(o, "cgroup", json_string(cgroup_what()));
	text = o && env->layers ? json_dumps(o, JSON_COMPACT) : NULL;
	if (text)
		env->layers(env, text);
	free(text);
	json_decref(o);
}

/* ---- its end */

static void command_answer(struct command_state *m)
{
	m->call->done(m->call);
	command_free(m);
}

static void command_trim_work(struct os_work *w)
{
	struct command_state *m = w->priv;

	(void)trim_run(&m->trim, &m->trimmed);
}

/* The report stands in front, where it is shown whatever the command wrote. */
static void command_trim_done(struct os_work *w)
{
	struct command_state *m = w->priv;
	struct buf *out = &m->call->out;

	buf_add(&m->trimmed, out->data, out->len);
	buf_reset(out);
	buf_add(out, m->trimmed.data, m->trimmed.len);
	command_answer(m);
}

static int command_run(struct command_state *m, struct ava_error *err);

static void command_done(const struct exec_end *end, void *user)
{
	struct command_state *m = user;
	struct tool_call *c = m->call;
	const char *layers = sandbox_layers(end->told);
	struct ava_error err = {0};
	size_t n = strcspn(end->output, "\n");

	c->work = NULL;
	os_timer_stop(m->look);
	if (end->how != EXEC_STOPPED && !layers && c->env->unboxed && !m->bare) {
		m->bare = true;
		if (command_run(m, &err) == 0) {
			c->work = m;
			return;
		}
	}
	if (layers)
		say_layers(m, layers);
	if (end->how == EXEC_STOPPED && m->filled) {
		err_set(&err, AVA_EFULL,
			"stopped: with what it wrote less than %lld MB of the disk are free, or "
			"only few more files can be made. Write less.",
			(long long)c->env->disk_free_min_mb);
		job_fail(c, "limit", err.text);
	} else if (end->how == EXEC_STOPPED) {
		job_fail(c, "cancelled", "cancelled");
	} else if (!layers) {
		err_set(&err, AVA_EUNSUPPORTED,
			"no command can be run here, since its sandbox cannot be made (%.*s): work "
			"without commands, and tell the person that `ava doctor` says what to do",
			(int)(n < 300 ? n : 300), n ? end->output : "bwrap ended without a word");
		job_fail(c, "sandbox_unavailable", err.text);
	} else {
		if (m->bare)
			buf_adds(&c->out, "(without a sandbox: sandbox.required is 0)\n");
		say_end(&c->out, m, end);
		say_output(&c->out, end);
		if (c->tool != &tool_check)
			command_say_files(&c->out, m->work);
		c->exit = end->how == EXEC_EXITED ? end->code : -1;
		c->success = end->how != EXEC_TIMEOUT;
		c->error_class = c->success ? "" : "timeout";
	}
	if (!trim_due(&m->trim)) {
		command_answer(m);
		return;
	}
	m->trimming =
		(struct os_work){.work = command_trim_work, .done = command_trim_done, .priv = m};
	buf_init(&m->trimmed, c->out.max);
	os_work_start(c->env->loop, &m->trimming);
}

/* ---- while it works */

/* The disk also holds the logs and all other work. */
static void command_look_at_disk(void *user)
{
	struct command_state *m = user;

	m->filled = trim_due(&m->trim);
	if (m->filled)
		exec_stop(m->child);
	else
		os_timer_set(m->look, DISK_LOOK_MS);
}

/* Show the last whole line. */
static void command_shown(const char *text, size_t len, bool stays, void *user)
{
	struct command_state *m = user;
	struct tool_env *env = m->call->env;
	int64_t now = clock_mono_ms();
	char shown[LINE_MAX_BYTES + 1];
	size_t end = stays && text[len - 1] == '\n' ? len - 1 : len;
	const char *nl = memrchr(text, '\n', end), *line = nl ? nl + 1 : text;

	if (stays)
		exec_keep(m->child, text, len);
	if (text + end == line || !env->activity || atomic_load(&m->call->stop) ||
	    now - m->shown_ms < SHOW_EVERY_MS)
		return;
	m->shown_ms = now;
	snprintf(shown, sizeof(shown), "%.*s", (int)MIN(text + end - line, LINE_MAX_BYTES), line);
	env->activity(env, shown);
}

static void command_output(const char *bytes, size_t len, void *user)
{
	struct command_state *m = user;

	if (len > 0)
		screen_feed(&m->screen, bytes, len);
	else
		screen_fini(&m->screen);
}

static void command_stop(struct tool_call *c)
{
	struct command_state *m = c->work;

	if (m)
		exec_stop(m->child);
}

/* ---- starting */

/* The command starts in the run's folder, or in a folder of the project, never elsewhere. */
static int find_start(struct command_state *m, struct ava_error *err)
{
	const struct tool_env *env = m->call->env;
	struct root root = {.fd = env->cwd_fd, .cwd = env->cwd, .keep_out = env->keep_out};
	char path[PATH_MAX];
	const char *arg;
	int rv = job_arg_str(m->call->args, "cwd", &arg, err);

	snprintf(m->start, sizeof(m->start), "%s", SANDBOX_WORK);
	if (rv != 0 || !arg)
		return rv;
	if (!env->cwd[0])
		return err_set(err, AVA_EDENIED, "this run has no project: leave out cwd");
	rv = root_path(&root, arg, path, err);
	if (rv == 0 && (size_t)snprintf(m->start, sizeof(m->start), "%s/%s", env->cwd, path) >=
			       sizeof(m->start))
		rv = err_set(err, AVA_ETOOBIG, "that path is too long");
	return rv;
}

static int command_run(struct command_state *m, struct ava_error *err)
{
	/* Git's folder is a mount of its own, and files outside of the project are absent, so git
	 * compares the current folder only. */
	static const char *const part[] = {"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=diff.relative",
					   "GIT_CONFIG_VALUE_0=true",
					   "GIT_DISCOVERY_ACROSS_FILESYSTEM=1", NULL};
	const struct tool_env *env = m->call->env;
	const struct repository *git = &m->repository;
	const char *const reads[] = {git->folder[0] ? git->folder : NULL,
				     git->file[0] ? git->file : NULL, NULL};
	struct sandbox s = {.bwrap = m->bwrap,
			    .inside = m->inside,
			    .bare = m->bare,
			    .work = m->work,
			    .project = env->cwd,
			    .copy = env->copy,
			    .keep_out = env->keep_out,
			    .reads = reads,
			    .env = git->part ? part : part + 3,
			    .start = m->start,
			    .argv = m->argv};
	int rv;

	m->started_ms = m->shown_ms = clock_mono_ms();
	trim_end(&m->trim);
	trim_begin(&m->trim, m->work, env->copy, (uint64_t)env->disk_free_min_mb);
	screen_init(&m->screen, command_shown, m);
	rv = sandbox_start(&m->child, env->loop, &s, &m->how, command_done, m, err);
	if (rv == 0 && m->trim.least_mb > 0)
		os_timer_set(m->look, DISK_LOOK_MS);
	return rv;
}

/* Pass the text on the command line, or as the program's input (`input`). */
static int command_keep_text(struct command_state *m, const char *text, const char *const *program,
			     bool input)
{
	bool check = m->call->tool == &tool_check;

	m->text = strdup(text);
	if (!m->text)
		return AVA_ENOMEM;
	m->argv[0] = program[0];
	m->argv[1] = program[1];
	m->argv[2] = input ? NULL : m->text;
	m->how = (struct exec_options){.input = input ? m->text : "",
				       .input_len = input ? strlen(m->text) : 0,
				       .timeout_ms = m->seconds * 1000ll,
				       .output_max = SIZE_MAX,
				       .keep = check ? CHECK_FIRST : KEEP_FIRST,
				       .keep_tail = check ? CHECK_LAST : KEEP_LAST,
				       .output = command_output};
	return 0;
}

/* `key`: the argument that holds the text. */
static void command_start(struct tool_call *c, const char *key, const char *const *program,
			  bool input)
{
	struct command_state *m = calloc(1, sizeof(*m));
	const json_t *seconds = json_object_get(c->args, "timeout");
	struct ava_error err = {0};
	const char *text;
	int rv;

	if (!m) {
		command_answer_failure(c, "io", "out of memory");
		return;
	}
	m->call = c;
	m->trim.fd = -1;
	m->look = os_timer_new(c->env->loop, command_look_at_disk, m);
	m->seconds = seconds ? (int)json_integer_value(seconds) : TIME_DEFAULT_S;
	rv = job_arg_str(c->args, key, &text, &err);
	rv = rv ? rv : find_start(m, &err);
	rv = rv ? rv : sandbox_find(&m->bwrap, &m->inside, &err);
	/* Without any sandbox, only a person's setting lets the command run. */
	m->bare = rv == AVA_EUNSUPPORTED && m->inside && c->env->unboxed;
	rv = m->bare ? 0 : rv;
	rv = rv ? rv : job_make_work(c->env, m->work, &err);
	repository_find(&m->repository, c->env->cwd, c->env->keep_out);
	if (rv == 0 && (!m->look || command_keep_text(m, text, program, input) != 0))
		rv = err_set(&err, AVA_ENOMEM, "out of memory");
	rv = rv ? rv : command_run(m, &err);
	if (rv == 0) {
		c->work = m;
		return;
	}
	command_free(m);
	command_answer_failure(
		c, rv == AVA_EUNSUPPORTED ? "sandbox_unavailable" : job_error_class(rv), err.text);
}

static void bash_start(struct tool_call *c)
{
	static const char *const bash[] = {"/bin/bash", "-c"}, *const sh[] = {"/bin/sh", "-c"};

	command_start(c, "command", access(bash[0], X_OK) == 0 ? bash : sh, false);
}

static void python_start(struct tool_call *c)
{
	static const char *const python[] = {"/usr/bin/python3", "-"};

	if (access(python[0], X_OK) != 0)
		command_answer_failure(
			c, "not_found",
			"this machine has no /usr/bin/python3: use run_bash, or tell the "
			"person to install python3");
	else
		command_start(c, "code", python, true);
}

static void command_one_line(struct buf *out, const char *what, const char *text)
{
	size_t n = text ? strspn(text, " \t\n") : 0;

	buf_adds(out, what);
	if (text)
		utf8_repair(out, text + n, strcspn(text + n, "\n"));
}

static void bash_activity(const json_t *args, struct buf *out)
{
	command_one_line(out, "Running: ", json_get_str(args, "command"));
}

static void python_activity(const json_t *args, struct buf *out)
{
	command_one_line(out, "Running Python: ", json_get_str(args, "code"));
}

#define COMMON                                                                                     \
	"\"cwd\":{\"type\":\"string\",\"maxLength\":4096,\"description\":\"A folder of the "       \
	"project to start in, relative to it; default: the work folder /ava/work.\"},"             \
	"\"timeout\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":3600,\"description\":"        \
	"\"Seconds it may take; default 120.\"}}"
#define WHERE                                                                                      \
	"It runs in a sandbox without any network, with the project under its own path "           \
	"(read-only, unless you have write_file: then your copy of it) and the work folder "       \
	"/ava/work (HOME), where it starts and whose files stay for "                              \
	"your next calls. Only what is installed on this machine is there. Of a long output "      \
	"the first and the last part are shown. Nothing goes on in the background: all of it "     \
	"ends with the call."

const struct tool tool_run_bash = {
	.name = "run_bash",
	.description = "Run a shell command: tests, a compiler, tools for text. To read or search "
		       "files of the project use read_file and search_codebase instead. " WHERE,
	.schema = "{\"type\":\"object\",\"properties\":{"
		  "\"command\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":100000,"
		  "\"description\":\"As for bash -c.\"}," COMMON
		  ",\"required\":[\"command\"],\"additionalProperties\":false}",
	.brief = "",
	.flags = TOOL_PROJECT,
	.start = bash_start,
	.stop = command_stop,
	.activity = bash_activity,
};

const struct tool tool_python_exec = {
	.name = "python_exec",
	.description = "Run a Python 3 program, for calculations and to work on data; what it "
		       "prints is the result. Each call is a program of its own. " WHERE,
	.schema = "{\"type\":\"object\",\"properties\":{"
		  "\"code\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":1000000,"
		  "\"description\":\"The program.\"}," COMMON
		  ",\"required\":[\"code\"],\"additionalProperties\":false}",
	.brief = "",
	.flags = TOOL_PROJECT,
	.start = python_start,
	.stop = command_stop,
	.activity = python_activity,
};

static void check_activity(const json_t *args, struct buf *out)
{
	command_one_line(out, "Checking: ", json_get_str(args, "command"));
}

const struct tool tool_check = {
	.name = "check",
	.description = "",
	.schema = "{}",
	.flags = TOOL_PROJECT,
	.start = bash_start,
	.stop = command_stop,
	.activity = check_activity,
};
