/* A runtime inside another program: what avad does at its start, without what
 * belongs to a process (signals, socket, folder, limits).
 *
 * Order: the environment that counts, configuration, root, lock, loop, runtime.
 * Tables of models, services and keys belong to the process, so there is one
 * embedded runtime at a time; a second one is AVA_EBUSY. Threads that are made
 * here must not get the program's signals, so all are blocked meanwhile, and
 * libuv's pool is brought up. A connection that a peer has closed must not end
 * the program either: SIGPIPE is held back while the loop turns. */
#include "api/embedded.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "ava/core.h"
#include "base/env.h"
#include "base/error.h"
#include "base/keys.h"
#include "base/util.h"
#include "codec/redact.h"
#include "os/loop.h"

static atomic_flag taken = ATOMIC_FLAG_INIT;

/* ---- the loop */

/* A SIGPIPE of ours is taken away again; one that waited before stays. */
void embedded_step(struct embedded *e, int timeout_ms)
{
	const struct timespec none = {0};
	sigset_t pipe, before, waits;
	bool had;

	sigemptyset(&pipe);
	sigaddset(&pipe, SIGPIPE);
	sigpending(&waits);
	had = sigismember(&waits, SIGPIPE) == 1;
	pthread_sigmask(SIG_BLOCK, &pipe, &before);
	os_loop_step(e->loop, timeout_ms);
	sigpending(&waits);
	if (!had && sigismember(&waits, SIGPIPE) == 1)
		sigtimedwait(&pipe, NULL, &none);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static int step(struct backend *b, int timeout_ms, struct ava_error *err)
{
	embedded_step(embedded_of(b), timeout_ms);
	return 0;
}

static int loop_fd(struct backend *b)
{
	return os_loop_fd(embedded_of(b)->loop);
}

static int loop_timeout(struct backend *b)
{
	return os_loop_timeout(embedded_of(b)->loop);
}

/* ---- opening */

struct pool_start {
	struct os_work work;
	bool done;
};

static void pool_work(struct os_work *w)
{
	(void)w; /* that its thread is there was the whole task */
}

static void pool_done(struct os_work *w)
{
	struct pool_start *p = CONTAINER_OF(w, struct pool_start, work);

	p->done = true;
}

static void start_pool(struct embedded *e)
{
	struct pool_start p = {.work = {.work = pool_work, .done = pool_done}};

	os_work_start(e->loop, &p.work);
	while (!p.done)
		os_loop_step(e->loop, -1);
}

static int make_folders(const char *root, struct ava_error *err)
{
	char *path = strdup(root), *s = path;
	int rv = path ? 0 : err_set(err, AVA_ENOMEM, "out of memory");

	while (rv == 0 && s) {
		s = strchr(s + 1, '/');
		if (s)
			*s = '\0';
		if (mkdir(path, 0700) != 0 && errno != EEXIST)
			rv = err_sys(err, "the data root needs the folder %.300s", path);
		if (s)
			*s = '/';
	}
	free(path);
	return rv;
}

static int open_root(struct embedded *e, const char *root, struct ava_error *err)
{
	int rv = make_folders(root, err);

	if (rv != 0)
		return rv;
	e->root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (e->root_fd < 0)
		return err_sys(err, "data root %.300s", root);
	if (faccessat(e->root_fd, ".", W_OK, 0) != 0)
		return err_set(err, AVA_EDENIED, "the data root %.300s is not writable", root);
	rv = lock_take(&e->lock, e->root_fd, err);
	return rv == 0 ? 0 : err_wrap(err, rv, "%.200s", root);
}

static void take_user(struct embedded *e, const char *user_id)
{
	const struct passwd *pw = user_id ? NULL : getpwuid(geteuid());

	snprintf(e->user_id, sizeof(e->user_id), "%s", user_id ? user_id : pw ? pw->pw_name : "");
}

static void pass_log(const char *line, void *user)
{
	struct embedded *e = user;

	if (e->log)
		e->log(line, e->log_user);
}

static int open_core(struct embedded *e, const struct ava_options *o, struct ava_error *err)
{
	struct core_options c = {.root = o->root,
				 .settings = &e->config.settings,
				 .model = o->model,
				 .notify = e->config.notify,
				 .log = pass_log,
				 .log_user = e};
	int rv;

	e->loop = os_loop_new(err);
	if (!e->loop)
		return err->code;
	e->redact = redact_new();
	if (!e->redact)
		return err_set(err, AVA_ENOMEM, "out of memory");
	rv = config_secrets(e->redact, err);
	if (rv != 0)
		return rv;
	start_pool(e);
	c.loop = e->loop;
	c.redact = e->redact;
	return core_open(&e->core, &c, err);
}

static int open_all(struct embedded *e, const struct ava_options *o, struct ava_error *err)
{
	int rv = o->process_env ? 0 : env_only(o->env, err);

	if (rv == 0)
		rv = config_load(&e->config, err);
	if (rv == 0)
		rv = open_root(e, o->root, err);
	if (rv == 0)
		rv = open_core(e, o, err);
	return rv;
}

static void close_all(struct backend *b)
{
	struct embedded *e = embedded_of(b);

	if (e->core) {
		core_hold(e->core);
		core_close(e->core);
	}
	os_loop_free(e->loop);
	redact_free(e->redact);
	lock_drop(&e->lock);
	if (e->root_fd >= 0)
		close(e->root_fd);
	keys_wipe();
	env_process();
	free(e);
	atomic_flag_clear(&taken);
}

static const struct backend_ops embedded_ops = {
	.close = close_all,
	.fd = loop_fd,
	.timeout = loop_timeout,
	.step = step,
	.propose = embedded_propose,
	.propose_group = embedded_propose_group,
	.group = embedded_group,
	.resume = embedded_resume,
	.replay = embedded_replay,
	.spawn = embedded_spawn,
	.confirm = embedded_confirm,
	.reject = embedded_reject,
	.proposals = embedded_proposals,
	.status = embedded_status,
	.runs = embedded_runs,
	.result = embedded_result,
	.cancel = embedded_cancel,
	.steer = embedded_steer,
	.checkpoint = embedded_checkpoint,
	.session_new = embedded_session_new,
	.say = embedded_say,
	.sessions = embedded_sessions,
	.entries = embedded_entries,
	.session_stop = embedded_session_stop,
	.cursor_open = embedded_cursor_open,
	.cursor_next = embedded_cursor_next,
	.cursor_ended = embedded_cursor_ended,
	.cursor_wait = embedded_cursor_wait,
	.cursor_close = embedded_cursor_close,
};

int embedded_open(const struct ava_options *o, struct backend **out, struct ava_error *err)
{
	struct embedded *e;
	sigset_t all, before;
	int rv;

	if (atomic_flag_test_and_set(&taken))
		return err_set(err, AVA_EBUSY,
			       "this process has an embedded runtime already: use that one, or "
			       "connect to a daemon");
	e = calloc(1, sizeof(*e));
	if (!e) {
		atomic_flag_clear(&taken);
		return err_set(err, AVA_ENOMEM, "out of memory");
	}
	e->b.ops = &embedded_ops;
	e->lock = (struct lock)LOCK_CLOSED;
	e->root_fd = -1;
	e->log = o->log;
	e->log_user = o->log_user;
	take_user(e, o->user_id);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rv = open_all(e, o, err);
	if (rv != 0)
		close_all(&e->b);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (rv == 0)
		*out = &e->b;
	return rv;
}
