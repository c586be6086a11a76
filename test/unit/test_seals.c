/* The core seals what it wrote, whatever the disk and the clock do: nothing
 * is found amiss where nobody changed anything. */
#include "unit.h"

#include <dirent.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ava/core.h"
#include "ava/ops.h"
#include "ava/state.h"
#include "base/settings.h"
#include "base/sys.h"
#include "os/loop.h"
#include "runs_now.h"

struct world {
	char root[300];
	struct os_loop *loop;
	struct settings settings;
	struct core *core;
};

static atomic_bool full; /* no byte can be written to a log */
static atomic_int refused;

static ssize_t pwrite_full(int fd, const void *buf, size_t len, off_t at)
{
	char link[64], path[512];
	ssize_t n;

	if (!atomic_load(&full))
		return sys_real.pwrite(fd, buf, len, at);
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	if (strstr(path, "/logs/") == NULL)
		return sys_real.pwrite(fd, buf, len, at);
	refused++;
	errno = ENOSPC;
	return -1;
}

static void start(struct world *w)
{
	struct core_options o = {
		.loop = w->loop, .root = w->root, .settings = &w->settings, .model = "offline"};
	struct ava_error err = {0};

	if (core_open(&w->core, &o, &err) != 0)
		fail_msg("core_open: %s", err.text);
}

static void make(struct world *w)
{
	static struct sys_ops ops;

	snprintf(w->root, sizeof(w->root), "%s", unit_tmpdir());
	settings_load(&w->settings, NULL);
	w->settings.disk_free_min_mb = 0;
	w->settings.seals_every_s = 1;
	w->loop = os_loop_new(NULL);
	assert_non_null(w->loop);
	ops = sys_real;
	ops.pwrite = pwrite_full;
	sys = &ops;
	start(w);
}

static void away(struct world *w)
{
	core_close(w->core);
	os_loop_free(w->loop);
	sys = &sys_real;
	unit_rmdir(w->root);
}

struct found {
	char broken[600];
	uint64_t tails;
};

static void finding(const struct ava_finding *f, void *user)
{
	struct found *w = user;

	if (f->kind == AVA_BROKEN)
		snprintf(w->broken, sizeof(w->broken), "%s:%llu: %s", f->path,
			 (unsigned long long)f->line, f->what);
	w->tails += f->kind == AVA_UNSEALED;
}

static struct ava_verified whole(struct world *w)
{
	struct found found = {0};
	struct ava_verify o = {.root = w->root, .finding = finding, .user = &found};
	struct ava_verified report;

	assert_int_equal(ava_log_verify(&o, &report, NULL), 0);
	if (found.broken[0])
		fail_msg("%s", found.broken);
	report.unsealed_files = found.tails;
	return report;
}

static void started(int rv, const struct op_status *s, const struct ava_error *err, void *user)
{
	(void)s;
	if (rv != 0)
		fail_msg("%s", err->text);
	*(int *)user += 1;
}

static void run_one(struct world *w)
{
	struct op_spawn spawn = spawn_usual("Where is parse_header defined?", w->root);
	int calls = 0;

	ops_spawn(w->core, &spawn, started, &calls);
	for (int i = 0; i < 20000 && (calls == 0 || w->core->sup.nlive > 0); i++)
		os_loop_step(w->loop, 5);
	assert_int_equal(calls, 1);
	assert_int_equal(w->core->sup.nlive, 0);
}

/* Until the newest Seal is a later one than `n`. */
static uint64_t sealed_after(struct world *w, uint64_t n)
{
	struct ava_log_head head = {0};

	for (int i = 0; i < 20000 && head.n <= n; i++) {
		os_loop_step(w->loop, 5);
		if (ava_log_head(w->root, &head, NULL) != 0)
			head.n = 0;
	}
	assert_true(head.n > n);
	return head.n;
}

TEST(seals_while_it_runs_and_at_the_end)
{
	struct world w = {0};
	uint64_t n;

	make(&w);
	run_one(&w);
	n = sealed_after(&w, 0);
	whole(&w);
	run_one(&w);
	core_close(w.core);
	assert_true(whole(&w).newest.n > n);
	assert_int_equal(whole(&w).unsealed_files, 0);
	start(&w);
	run_one(&w);
	away(&w);
}

/* What is written later reaches the file, and is sealed then. */
TEST(full_disk)
{
	struct world w = {0};
	struct op_spawn spawn;
	int calls = 0;
	uint64_t n;

	make(&w);
	spawn = spawn_usual("Where is parse_header defined?", w.root);
	run_one(&w);
	n = sealed_after(&w, 0);
	atomic_store(&full, true);
	ops_spawn(w.core, &spawn, started, &calls);
	for (int i = 0; i < 20000 && atomic_load(&refused) == 0; i++)
		os_loop_step(w.loop, 5);
	assert_true(atomic_load(&refused) > 0);
	whole(&w);
	atomic_store(&full, false);
	for (int i = 0; i < 20000 && (calls == 0 || w.core->sup.nlive > 0); i++)
		os_loop_step(w.loop, 5);
	sealed_after(&w, n);
	whole(&w);
	core_close(w.core);
	assert_int_equal(whole(&w).unsealed_files, 0);
	start(&w);
	away(&w);
}
