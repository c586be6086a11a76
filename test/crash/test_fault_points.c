/* Every kind of call to the disk fails at its k-th time, once and for long,
 * with each error it can have, under a journal that lives a story. What was
 * answered 0 is there, what was refused is not, what was answered "unknown" is
 * there whole or not at all; when the disk is well again the journal goes on by
 * itself or asks for a restart; after a crash recovery says the same. The same
 * faults fall on recovery: it ends well or is refused in one sentence, and the
 * next one ends as if nothing had been.
 *
 * AVA_FAULT_PART=i/n: every n-th kind of call only. AVA_SOAK=1: at every call
 * (without it, of calls that are made often, at each of the first ones and
 * then at every few). */
#include "crash.h"

#include <pthread.h>
#include <time.h>

#include "life.h"

#define COMMITS 34
#define LONG    1000000L

struct fault_kind {
	enum memdisk_call call;
	int error;
	long times;
};

static const struct fault_kind kinds[] = {
	{MEMDISK_OPEN, EMFILE, 1},
	{MEMDISK_OPEN, EMFILE, LONG},
	{MEMDISK_OPEN, EIO, 1},
	{MEMDISK_OPEN, ENOSPC, 1},
	{MEMDISK_OPEN, EINTR, 1},
	{MEMDISK_PREAD, EIO, 1},
	{MEMDISK_PREAD, EIO, LONG},
	{MEMDISK_PREAD, EINTR, 3},
	{MEMDISK_PREAD, MEMDISK_SHORT, LONG},
	{MEMDISK_PWRITE, EIO, 1},
	{MEMDISK_PWRITE, EIO, LONG},
	{MEMDISK_PWRITE, ENOSPC, 1},
	{MEMDISK_PWRITE, ENOSPC, LONG},
	{MEMDISK_PWRITE, EINTR, 1},
	{MEMDISK_PWRITE, EINTR, 5},
	{MEMDISK_PWRITE, MEMDISK_SHORT, 1},
	{MEMDISK_PWRITE, MEMDISK_SHORT, LONG},
	{MEMDISK_FSYNC, EIO, 1},
	{MEMDISK_FSYNC, EIO, LONG},
	{MEMDISK_FSYNC, ENOSPC, 1},
	{MEMDISK_FSYNC, EINTR, 1},
	{MEMDISK_SYNCFS, EIO, 1},
	{MEMDISK_SYNCFS, EIO, LONG},
	{MEMDISK_TRUNCATE, EIO, 1},
	{MEMDISK_TRUNCATE, EIO, LONG},
	{MEMDISK_ALLOCATE, ENOSPC, 1},
	{MEMDISK_ALLOCATE, ENOSPC, LONG},
	{MEMDISK_ALLOCATE, EINTR, 1},
	{MEMDISK_STAT, EIO, 1},
	{MEMDISK_STAT, EIO, LONG},
	{MEMDISK_RENAME, EIO, 1},
	{MEMDISK_RENAME, ENOSPC, LONG},
	{MEMDISK_UNLINK, EIO, 1},
	{MEMDISK_UNLINK, EIO, LONG},
	{MEMDISK_MKDIR, ENOSPC, 1},
	{MEMDISK_MKDIR, EIO, LONG},
	{MEMDISK_FLOCK, EINTR, 1},
	{MEMDISK_FLOCK, EWOULDBLOCK, LONG},
	{MEMDISK_LIST, EIO, 1},
	{MEMDISK_WRITE_RANGE, EIO, 1},
	{MEMDISK_WRITE_RANGE, EIO, LONG},
};

struct sums {
	long runs, recoveries, restarts, refused, unknown;
};

/* ---- one story on a disk that fails */

struct asked {
	unsigned char fate[STORY_MAX];
	unsigned open; /* not answered yet */
};

struct one {
	struct asked *a;
	int i;
};

static void answered(int rv, void *user)
{
	struct one *o = user;

	o->a->open--;
	if (rv == 0)
		o->a->fate[o->i] = STORY_DONE;
	else
		o->a->fate[o->i] = rv == AVA_EUNKNOWN ? STORY_MAY : STORY_NOT;
}

static void commit_one(struct rig *r, const struct story *s, int i, struct asked *a,
		       struct one *one)
{
	struct story_step st;
	int rv;

	*one = (struct one){a, i};
	story_step_init(&st);
	story_step(s, i, &st);
	a->open++;
	a->fate[i] = STORY_MAY;
	rv = journal_commit(r->j, st.ops, st.n, JOURNAL_NOW, answered, one);
	if (rv != 0) {
		a->open--;
		a->fate[i] = STORY_NOT;
	}
	if (st.wait)
		(void)journal_sync(r->j);
	if (st.checkpoint)
		(void)journal_checkpoint(r->j, NULL);
	story_step_fini(&st);
}

static bool wants_restart(struct rig *r)
{
	struct ava_error err = {0};

	return journal_health(r->j, &err) != 0 && strstr(err.text, "restart") != NULL;
}

/* Until it is well, or says that it needs a restart. */
static bool settle(struct rig *r, struct asked *a)
{
	for (int i = 0; i < 60000; i++) {
		journal_drain(r->j);
		if (wants_restart(r))
			return false;
		if (a->open == 0 && journal_health(r->j, NULL) == 0)
			return true;
		usleep(500);
	}
	fail_msg("the journal neither went on nor asked for a restart");
	return false;
}

static void say(const char *what, const struct fault_kind *f, long k, const struct story_answer *a)
{
	fail_msg("%s: %s fails with %d, %ld times from call %ld on: %s", what,
		 memdisk_call_names[f->call], f->error, f->times, k, a->wrong);
}

static void check(const char *what, struct rig *r, const struct story *s, const struct asked *a,
		  const struct fault_kind *f, long k)
{
	struct story_answer ans;

	if (story_wrong(s, r->d, a->fate, false, &ans))
		say(what, f, k, &ans);
}

/* What the oracle found to be there stays there, and the other way round. */
static void check_recovery(struct rig *r, const struct story *s, const struct asked *a,
			   const struct fault_kind *f, long k)
{
	struct story_answer ans = {0};
	uint64_t picture;

	rig_open(r);
	if (r->rec.nproblems != 0 || r->rec.damaged_batches != 0) {
		snprintf(ans.wrong, sizeof(ans.wrong), "%.390s", r->rec.problems);
		say("recovery", f, k, &ans);
	}
	check("recovery", r, s, a, f, k);
	rig_close(r);
	picture = story_picture(r->d);
	rig_open(r);
	rig_close(r);
	assert_true(picture == story_picture(r->d));
}

/* True: the fault was hit. */
static bool live_with(const struct fault_kind *f, long k, struct sums *n)
{
	struct story s = {7, COMMITS};
	struct asked *a = calloc(1, sizeof(*a));
	struct one ones[COMMITS];
	struct memdisk_plan plan;
	bool well;
	struct rig r;

	rig_init(&r);
	rig_open(&r);
	memdisk_plan(r.d, &(struct memdisk_plan){
				  .call = f->call, .k = k, .times = f->times, .error = f->error});
	for (int i = 0; i < COMMITS; i++)
		commit_one(&r, &s, i, a, &ones[i]);
	plan = memdisk_plan_end(r.d);
	well = settle(&r, a);
	for (int i = 0; i < COMMITS; i++) {
		n->refused += a->fate[i] == STORY_NOT;
		n->unknown += a->fate[i] == STORY_MAY;
		/* It says that an "unknown" never happens later, once it is well. */
		if (well && a->fate[i] == STORY_MAY)
			a->fate[i] = STORY_NOT;
	}
	n->restarts += !well;
	if (well) {
		check("running", &r, &s, a, f, k);
		rig_crash(&r);
	} else {
		rig_close(&r);
	}
	check_recovery(&r, &s, a, f, k);
	memdisk_use(NULL);
	memdisk_free(r.d);
	free(a);
	n->runs++;
	return plan.hits > 0;
}

/* ---- the same on recovery */

static struct memdisk *crashed(const struct story *s, struct asked *a)
{
	struct one ones[COMMITS];
	struct rig r;

	rig_init(&r);
	rig_open(&r);
	for (int i = 0; i < COMMITS; i++)
		commit_one(&r, s, i, a, &ones[i]);
	assert_int_equal(journal_sync(r.j), 0);
	rig_crash(&r);
	memdisk_power_cut(r.d, memdisk_none, NULL);
	memdisk_use(NULL);
	return r.d;
}

static bool recover_with(const struct memdisk *base, const struct story *s, const struct asked *a,
			 const struct fault_kind *f, long k, struct sums *n)
{
	struct rig r = {.d = memdisk_clone(base), .o = {.root = "/", .segment_bytes = 64 << 10}};
	struct ava_error err = {0};
	struct memdisk_plan plan;
	int rv;

	memdisk_use(r.d);
	memdisk_plan(r.d, &(struct memdisk_plan){
				  .call = f->call, .k = k, .times = f->times, .error = f->error});
	rv = journal_open(&r.j, &r.o, &r.rec, &err);
	if (rv == 0) {
		rig_close(&r);
	} else {
		n->refused++;
		if (err.text[0] == '\0' || strchr(err.text, '\n') != NULL)
			fail_msg("not a sentence: %s", err.text);
	}
	plan = memdisk_plan_end(r.d);
	memdisk_kill(r.d);
	check_recovery(&r, s, a, f, k);
	memdisk_use(NULL);
	memdisk_free(r.d);
	n->recoveries++;
	return plan.hits > 0;
}

/* ---- all of them */

static bool mine(size_t i)
{
	const char *part = getenv("AVA_FAULT_PART");
	unsigned at, of;

	return part == NULL || sscanf(part, "%u/%u", &at, &of) != 2 || of == 0 || i % of == at;
}

static long step(long k)
{
	return getenv("AVA_SOAK") != NULL || k < 12 ? 1 : 1 + k / 12;
}

TEST(at_work)
{
	struct sums n = {0};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (!mine(i))
			continue;
		for (long k = 0; live_with(&kinds[i], k, &n); k += step(k))
			;
	}
	print_message("figure fault_runs %ld\nfigure fault_refused %ld\nfigure fault_unknown %ld\n"
		      "figure fault_restarts %ld\n",
		      n.runs, n.refused, n.unknown, n.restarts);
}

TEST(in_recovery)
{
	struct story s = {7, COMMITS};
	struct asked *a = calloc(1, sizeof(*a));
	struct memdisk *base = crashed(&s, a);
	struct sums n = {0};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		if (!mine(i))
			continue;
		for (long k = 0; recover_with(base, &s, a, &kinds[i], k, &n); k++)
			;
	}
	print_message("figure fault_recoveries %ld\nfigure fault_recoveries_refused %ld\n",
		      n.recoveries, n.refused);
	memdisk_free(base);
	free(a);
}
