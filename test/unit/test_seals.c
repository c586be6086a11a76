/* The core seals what it wrote, whatever the disk and the clock do: nothing
 * is found amiss where nobody changed anything. */
#include "core_rig.h"

#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/sys.h"

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

static int set_up(void **state)
{
	static struct sys_ops ops;
	struct world *w = core_world("offline");

	w->settings.seals_every_s = 1;
	ops = sys_real;
	ops.pwrite = pwrite_full;
	sys = &ops;
	open_core(w);
	*state = w;
	return 0;
}

static int away(void **state)
{
	int rv = tear_down(state);

	sys = &sys_real;
	return rv;
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

static void begin(struct world *w, struct got *g)
{
	struct op_spawn s = ask(w, "Where is parse_header defined?");

	*g = (struct got){0};
	ops_spawn(w->core, &s, status_cb, g);
}

static void end(struct world *w, const struct got *g)
{
	for (int i = 0; i < 20000 && (g->calls == 0 || w->core->sup.nlive > 0); i++)
		os_loop_step(w->loop, 5);
	assert_int_equal(g->calls, 1);
	assert_int_equal(g->rv, 0);
	assert_int_equal(w->core->sup.nlive, 0);
}

static void run_one(struct world *w)
{
	struct got g;

	begin(w, &g);
	end(w, &g);
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

TEST_OF(seals_while_it_runs_and_at_the_end, struct world *w)
{
	uint64_t n;

	run_one(w);
	n = sealed_after(w, 0);
	whole(w);
	run_one(w);
	core_close(w->core);
	assert_true(whole(w).newest.n > n);
	assert_int_equal(whole(w).unsealed_files, 0);
	open_core(w);
	run_one(w);
}

/* What is written later reaches the file, and is sealed then. */
TEST_OF(full_disk, struct world *w)
{
	struct got g;
	uint64_t n;

	run_one(w);
	n = sealed_after(w, 0);
	atomic_store(&full, true);
	begin(w, &g);
	for (int i = 0; i < 20000 && atomic_load(&refused) == 0; i++)
		os_loop_step(w->loop, 5);
	assert_true(atomic_load(&refused) > 0);
	whole(w);
	atomic_store(&full, false);
	end(w, &g);
	sealed_after(w, n);
	whole(w);
	core_close(w->core);
	assert_int_equal(whole(w).unsealed_files, 0);
	open_core(w);
}

UNIT_GROUP(.before = set_up, .after = away);
