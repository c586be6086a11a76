/* Lives, cuts and recoveries; life.h. The watcher runs with the disk locked,
 * on whichever thread makes the call: how much was answered is read before the
 * snapshot, how much was asked for after it, so that the two may only err to
 * the safe side. */
#include "life.h"

#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "journal/journal.h"

#define POINTS_MAX 20000

const char *const cut_names[CUTS] = {"kill",    "none kept", "all kept",
				     "ordered", "unordered", "torn sector"};

static void on_call(struct memdisk *d, void *user)
{
	struct life *l = user;
	struct point p = {.acked = atomic_load(&l->acked)};

	if (atomic_load(&l->over) || l->npoints == POINTS_MAX)
		return;
	if (l->only_at >= 0 && l->calls++ < l->only_at)
		return;
	if (l->points == NULL)
		l->points = calloc(POINTS_MAX, sizeof(p));
	if (l->points == NULL)
		return;
	p.d = memdisk_snapshot(d);
	p.submitted = atomic_load(&l->submitted);
	l->points[l->npoints++] = p;
	if (l->only_at >= 0)
		atomic_store(&l->over, true);
}

void life_fini(struct life *l)
{
	for (size_t i = 0; i < l->npoints; i++)
		memdisk_free(l->points[i].d);
	free(l->points);
	l->points = NULL;
	l->npoints = 0;
}

/* ---- living */

static void on_done(int rv, void *user)
{
	struct life *l = user;

	if (rv == 0)
		atomic_fetch_add(&l->acked, 1);
}

static bool tell(struct life *l, struct journal *j, char wrong[400])
{
	struct story_step st;
	bool well = true;

	story_step_init(&st);
	for (int i = l->from; i < l->story.commits && well && !atomic_load(&l->over); i++) {
		int rv;

		story_step(&l->story, i, &st);
		atomic_fetch_add(&l->submitted, 1);
		rv = journal_commit(j, st.ops, st.n, st.level, on_done, l);
		if (rv == 0 && st.wait)
			rv = journal_sync(j);
		if (rv == 0 && st.wait && atomic_load(&l->acked) != i + 1)
			rv = AVA_EUNKNOWN;
		if (rv == 0 && st.checkpoint)
			rv = journal_checkpoint(j, NULL);
		well = rv == 0;
		if (!well)
			snprintf(wrong, 400, "commit %d was answered %d on a good disk", i, rv);
	}
	story_step_fini(&st);
	return well;
}

static int open_on(struct memdisk *d, uint64_t segment_bytes, struct journal **j,
		   struct journal_recovery *rec, char wrong[400])
{
	struct journal_options o = {.root = "/", .segment_bytes = segment_bytes, .pace_us = 100};
	struct ava_error err = {0};
	int rv;

	memdisk_use(d);
	rv = journal_open(j, &o, rec, &err);
	if (rv != 0)
		snprintf(wrong, 400, "journal_open: %d %.300s", rv, err.text);
	return rv;
}

bool life_live(struct life *l, struct memdisk *d, char wrong[400])
{
	struct journal_recovery rec;
	struct journal *j;
	bool well;

	atomic_store(&l->acked, l->from);
	atomic_store(&l->submitted, l->from);
	memdisk_watch(d, on_call, l);
	if (open_on(d, l->segment_bytes, &j, &rec, wrong) != 0)
		return false;
	well = tell(l, j, wrong);
	journal_close(j);
	memdisk_watch(d, NULL, NULL);
	memdisk_use(NULL);
	return well;
}

/* ---- cuts */

uint32_t cut_pick(uint32_t below, void *seed)
{
	uint64_t *s = seed;

	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return (uint32_t)((*s >> 16) % below);
}

struct memdisk *cut_disk(const struct memdisk *d, enum cut cut, uint64_t seed)
{
	struct memdisk *left = memdisk_clone(d);
	uint64_t random = (seed + 1) * 0x9e3779b97f4a7c15u;

	switch (cut) {
	case CUT_NONE:
		memdisk_power_cut(left, memdisk_none, NULL);
		break;
	case CUT_ALL:
		memdisk_power_cut(left, memdisk_all, NULL);
		break;
	case CUT_ORDERED:
		memdisk_power_cut_as(left, MEMDISK_ORDERED, cut_pick, &random);
		break;
	case CUT_UNORDERED:
		memdisk_power_cut_as(left, MEMDISK_UNORDERED, cut_pick, &random);
		break;
	case CUT_TORN:
		memdisk_power_cut_as(left, MEMDISK_TORN, cut_pick, &random);
		break;
	default:
		break;
	}
	return left;
}

/* ---- recovering */

static bool recover(const struct life *l, struct memdisk *d, struct life *snaps, bool again,
		    struct story_answer *a)
{
	struct journal_recovery rec;
	struct journal *j;

	if (snaps != NULL)
		memdisk_watch(d, on_call, snaps);
	if (open_on(d, l->segment_bytes, &j, &rec, a->wrong) != 0)
		return false;
	memdisk_watch(d, NULL, NULL);
	if (rec.nproblems != 0 || rec.damaged_batches != 0 || rec.lost_bytes != 0)
		snprintf(a->wrong, sizeof(a->wrong), "recovery says: %llu damaged, %.300s",
			 (unsigned long long)rec.damaged_batches, rec.problems);
	else if (again && (!rec.clean || rec.redone_bytes != 0))
		snprintf(a->wrong, sizeof(a->wrong), "the second recovery was not clean");
	journal_close(j);
	memdisk_use(NULL);
	return a->wrong[0] == '\0';
}

bool recover_well(const struct life *l, struct memdisk *d, int acked, int submitted,
		  struct life *snaps, struct story_answer *a)
{
	unsigned char fate[STORY_MAX] = {STORY_OPEN};
	uint64_t picture;

	*a = (struct story_answer){0};
	for (int i = 0; i < submitted; i++)
		fate[i] = i < acked ? STORY_DONE : STORY_MAY;
	if (!recover(l, d, snaps, false, a) || story_wrong(&l->story, d, fate, true, a))
		return false;
	picture = story_picture(d);
	if (!recover(l, d, NULL, true, a))
		return false;
	if (story_picture(d) != picture)
		snprintf(a->wrong, sizeof(a->wrong), "the second recovery changed files");
	return a->wrong[0] == '\0';
}
