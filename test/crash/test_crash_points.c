/* A crash before every call to the disk. One journal lives a story; at each
 * call the disk is taken as a kill leaves it and as power cuts may, recovered,
 * and the oracle of story.h is asked: nothing acknowledged is lost, nothing is
 * there that was not asked for, the order is kept. A second recovery changes
 * nothing. At some points the recovery itself is killed before every one of
 * its calls.
 *
 * AVA_STORY_SEED and AVA_STORY_COMMITS choose the story, AVA_STORY_POINT one of its points;
 * AVA_SOAK=1: recovery is killed at every point, more cuts are drawn. */
#include "crash.h"

#include "life.h"

#define RECOVERS_NOTHING 8 /* calls of a recovery that finds nothing to redo, at the most */

struct sums {
	long points, disks, nested, redone;
	long lost, invented;
};

static void give_up(struct sums *n, const struct life *l, size_t point, const char *cut,
		    uint64_t seed, const struct story_answer *a)
{
	n->lost += a->lost;
	n->invented += a->invented;
	fail_msg("AVA_STORY_SEED=%llu: point %zu of %zu, cut %s, seed %llu: %s",
		 (unsigned long long)l->story.seed, point, l->npoints, cut,
		 (unsigned long long)seed, a->wrong);
}

/* Recovery dies before each of its calls; what it leaves is cut and recovered
 * again. */
static void kill_recovery(struct sums *n, const struct life *l, size_t point,
			  const struct life *snaps, uint64_t seed)
{
	struct story_answer a;

	for (size_t k = 0; k < snaps->npoints; k++) {
		enum cut cut = (enum cut)((k + seed) % CUTS);
		struct memdisk *d = cut_disk(snaps->points[k].d, cut, seed + k);

		if (!recover_well(l, d, l->points[point].acked, l->points[point].submitted, NULL,
				  &a))
			give_up(n, l, point, cut_names[cut], k, &a);
		memdisk_free(d);
		n->nested++;
	}
}

/* Power goes a moment after a kill, while recovery is at work: what the first life had not synced
 * goes with it, in any order. */
static void cut_recovery(struct sums *n, const struct life *l, size_t point, unsigned seeds)
{
	struct memdisk *d = cut_disk(l->points[point].d, CUT_KILL, 0);
	struct life snaps = {.only_at = -1};
	struct story_answer a;

	if (!recover_well(l, d, l->points[point].acked, l->points[point].submitted, &snaps, &a))
		give_up(n, l, point, cut_names[CUT_KILL], 0, &a);
	memdisk_free(d);
	for (size_t k = 0; k < snaps.npoints && snaps.npoints <= RECOVERS_NOTHING; k++)
		for (unsigned seed = 0; seed < seeds; seed++) {
			d = cut_disk(snaps.points[k].d, CUT_UNORDERED, seed);
			if (!recover_well(l, d, l->points[point].acked, l->points[point].submitted,
					  NULL, &a))
				give_up(n, l, point, "unordered, in recovery", k * 100 + seed, &a);
			memdisk_free(d);
			n->nested++;
		}
	life_fini(&snaps);
}

static void crash_at(struct sums *n, const struct life *l, size_t point, enum cut cut,
		     uint64_t seed, bool nested)
{
	const struct point *p = &l->points[point];
	struct life snaps = {.only_at = -1};
	struct memdisk *d = cut_disk(p->d, cut, seed);
	struct story_answer a;

	if (!recover_well(l, d, p->acked, p->submitted, nested ? &snaps : NULL, &a))
		give_up(n, l, point, cut_names[cut], seed, &a);
	memdisk_free(d);
	n->disks++;
	if (nested)
		kill_recovery(n, l, point, &snaps, seed);
	life_fini(&snaps);
}

TEST(every_call)
{
	bool soak = getenv("AVA_SOAK") != NULL;
	size_t only = crash_env("AVA_STORY_POINT", 0);
	struct life l = {
		.story = {crash_env("AVA_STORY_SEED", 1), (int)crash_env("AVA_STORY_COMMITS", 96)},
		.segment_bytes = 64 << 10,
		.only_at = -1};
	struct memdisk *d = memdisk_new();
	struct sums n = {0};
	char wrong[400] = "";

	if (!life_live(&l, d, wrong))
		fail_msg("%s", wrong);
	memdisk_free(d);
	for (size_t i = only ? only : 0; i < (only ? MIN(only + 1, l.npoints) : l.npoints); i++)
		for (int cut = 0; cut < CUTS; cut++)
			for (uint64_t k = 0; k < (cut < CUT_ORDERED ? 1 : soak ? 8 : 2); k++)
				crash_at(&n, &l, i, (enum cut)cut, i * 100 + k,
					 k == 0 && (soak || (i + (size_t)cut * 2) % 24 == 0));
	for (size_t i = 0; i < l.npoints; i++)
		cut_recovery(&n, &l, i, soak ? 8 : 2);
	n.points = (long)l.npoints;
	life_fini(&l);
	print_message("figure points %ld\nfigure disks %ld\nfigure recoveries_killed %ld\n"
		      "figure lost %ld\nfigure invented %ld\n",
		      n.points, n.disks, n.nested, n.lost, n.invented);
	assert_true(n.points > 3 * l.story.commits);
}
