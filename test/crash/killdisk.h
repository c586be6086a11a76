/* A disk that kills: the process is gone without a word before its k-th call
 * that changes or syncs something. For programs whose main thread forked: the
 * child arms it, the parent lives on. */
#ifndef CRASH_KILLDISK_H
#define CRASH_KILLDISK_H

#include "unit.h"

#include <ava.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ava/core.h"
#include "base/clock.h"
#include "base/settings.h"
#include "base/sys.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "os/loop.h"

/* Every call; under a sanitiser, where the same calls take longer, each tenth. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define KILL_STEP 10
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define KILL_STEP 10
#endif
#endif
#ifndef KILL_STEP
#define KILL_STEP 1
#endif

static struct sys_ops killing;
static atomic_long calls_left;

static inline void kill_count(void)
{
	if (atomic_fetch_sub(&calls_left, 1) == 1)
		kill(getpid(), SIGKILL);
}

#define KILL_CALL(type, name, parameters, arguments)                                               \
	static inline type kill_##name parameters                                                  \
	{                                                                                          \
		kill_count();                                                                      \
		return sys_real.name arguments;                                                    \
	}
KILL_CALL(ssize_t, pwrite, (int fd, const void *b, size_t n, off_t at), (fd, b, n, at))
KILL_CALL(ssize_t, pwritev, (int fd, const struct iovec *v, int n, off_t at), (fd, v, n, at))
KILL_CALL(int, fdatasync, (int fd), (fd))
KILL_CALL(int, fsync, (int fd), (fd))
KILL_CALL(int, ftruncate, (int fd, off_t len), (fd, len))
KILL_CALL(int, renameat, (int ofd, const char *o, int nfd, const char *n), (ofd, o, nfd, n))
KILL_CALL(int, unlinkat, (int fd, const char *path, int flags), (fd, path, flags))
KILL_CALL(int, mkdirat, (int fd, const char *path, mode_t mode), (fd, path, mode))

static inline int kill_openat(int dirfd, const char *path, int flags, mode_t mode)
{
	if (flags & O_CREAT)
		kill_count();
	return sys_real.openat(dirfd, path, flags, mode);
}

static inline void kill_arm(long k)
{
	killing = sys_real;
	killing.pwrite = kill_pwrite;
	killing.pwritev = kill_pwritev;
	killing.fdatasync = kill_fdatasync;
	killing.fsync = kill_fsync;
	killing.ftruncate = kill_ftruncate;
	killing.renameat = kill_renameat;
	killing.unlinkat = kill_unlinkat;
	killing.mkdirat = kill_mkdirat;
	killing.openat = kill_openat;
	atomic_store(&calls_left, k);
	sys = &killing;
}

/* The k of the test's next life; `variable` names another step. */
static inline long kill_step(const char *variable)
{
	const char *step = getenv(variable);

	return step && atol(step) > 0 ? atol(step) : KILL_STEP;
}

/* `play` in a child that is killed at its k-th call (0: not): -1 it was, else its exit code. */
static inline int kill_child(int (*play)(const char *dir, long k), const char *dir, long k)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(play(dir, k));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL && k > 0)
		return -1;
	if (!WIFEXITED(status))
		fail_msg("k = %ld: the child ended by signal %d", k, WTERMSIG(status));
	return WEXITSTATUS(status);
}

/* In the child: what must go well. */
static inline void kill_must(int rv, const struct ava_error *err, const char *what)
{
	if (rv == 0)
		return;
	fprintf(stderr, "%s: %s\n", what, err->text);
	_exit(3);
}

/* ---- a daemon in the child */

#define KILL_PATIENCE_MS 120000

/* How far the wall clock of this process is ahead of the machine's (test_order_kill.c). */
extern int64_t kill_ahead_ms;

struct kill_life {
	struct os_loop *loop;
	struct core *core;
	char src[300];
	int64_t until;
};

static inline struct kill_life kill_open(const char *dir, int runs_max)
{
	static struct settings settings;
	struct kill_life l = {.loop = os_loop_new(NULL), .until = clock_mono_ms()};
	char root[300];
	struct core_options o = {
		.loop = l.loop, .root = root, .settings = &settings, .model = "offline"};
	struct ava_error err = {0};

	l.until += KILL_PATIENCE_MS;
	snprintf(root, sizeof(root), "%s/data", dir);
	snprintf(l.src, sizeof(l.src), "%s/src", dir);
	settings_defaults(&settings);
	settings.disk_free_min_mb = 0;
	settings.disk_ballast_mb = 0;
	settings.runs_max = runs_max > 0 ? runs_max : settings.runs_max;
	kill_must(core_open(&l.core, &o, &err), &err, "core_open");
	return l;
}

static inline void kill_turn(struct kill_life *l)
{
	os_loop_step(l->loop, 5);
	if (clock_mono_ms() > l->until)
		_exit(4);
}

static inline void kill_close(struct kill_life *l)
{
	core_close(l->core);
	os_loop_free(l->loop);
}

/* ---- what it works in, and what is left of it */

static inline const char *kill_fresh(void)
{
	static const char source[] = "int parse_header(const char *s)\n{\n\treturn 0;\n}\n";
	const char *dir = unit_tmpdir();
	char path[300];

	snprintf(path, sizeof(path), "%s/data", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/src", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/src/parser.c", dir);
	unit_write(path, source, strlen(source));
	return dir;
}

typedef void (*kill_line_fn)(const json_t *o, void *user);

static inline void kill_each_line(const char *path, kill_line_fn each, void *user)
{
	const char *line;
	size_t len, at = 0, n;
	char *data = unit_read(path, &len);

	while (jsonl_next(data, len, &at, &line, &n) == 1) {
		json_t *o = json_parse(line, n, NULL);

		assert_non_null(o);
		each(o, user);
		json_decref(o);
	}
	free(data);
}

struct kill_days {
	char folder[400];
	kill_line_fn each;
	void *user;
};

static inline void kill_day(const char *name, void *user)
{
	const struct kill_days *d = user;
	char path[700];

	snprintf(path, sizeof(path), "%s/%s", d->folder, name);
	kill_each_line(path, d->each, d->user);
}

/* The events of the daily logs. */
static inline void kill_each_day(const char *dir, kill_line_fn each, void *user)
{
	struct kill_days d = {.each = each, .user = user};

	snprintf(d.folder, sizeof(d.folder), "%s/data/logs/ava", dir);
	assert_int_equal(sys->list(AT_FDCWD, d.folder, kill_day, &d), 0);
}

/* Nothing of ours was put aside. */
static inline void kill_nothing_lost(const char *dir, long k)
{
	char path[400];

	snprintf(path, sizeof(path), "%s/data/lost", dir);
	if (access(path, F_OK) == 0)
		fail_msg("k = %ld: recovery put something aside", k);
}

/* A life that is killed at its k-th call, for each k until it ends by itself; the next one goes on,
 * and `check` looks at what is there. With `twice` the next one is killed as well, at a call that
 * goes through all of its own from one k to the next, and a third one finishes. */
#define KILLS 2 /* then */
static inline void kill_at_each(int (*play)(const char *dir, long k),
				void (*check)(const char *dir, long k), long by, bool twice)
{
	int rv = -1, next;
	long k, k2 = 1, again = 0;

	for (k = 1; rv == -1; k += by) {
		const char *dir = kill_fresh();

		rv = kill_child(play, dir, k);
		next = rv == -1 ? kill_child(play, dir, twice ? k2 : 0) : 0;
		again += next == -1;
		if (next > 0 || (next == -1 && kill_child(play, dir, 0) != 0))
			fail_msg("k = %ld, then %ld: what was left could not be gone on from", k,
				 k2);
		k2 = next == -1 ? k2 + by : 1; /* else it had ended before */
		check(dir, k);
		unit_rmdir(dir);
	}
	assert_int_equal(rv, 0);
	print_message("figure kills %ld\nfigure kills_again %ld\n", (k - by) / by, again);
	assert_true(k > 60 / by);
}

/* A kill loses nothing that was written, so memory is as good as a disk here,
 * and ten times as fast. */
static inline int kill_in_memory(void **state)
{
	struct statvfs vfs;

	if (!getenv("TMPDIR") && statvfs("/dev/shm", &vfs) == 0 &&
	    (uint64_t)vfs.f_bavail * vfs.f_frsize > (512u << 20))
		setenv("TMPDIR", "/dev/shm", 1);
	return 0;
}

#endif
