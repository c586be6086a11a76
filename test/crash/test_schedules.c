/* Schedules: lives drawn from a seed. A journal begins a story, dies at a call
 * that is drawn, loses what is drawn, recovers (or dies in recovery, loses
 * again and recovers), goes on with the story where it stands, dies again. After
 * every recovery the oracle is asked.
 *
 * AVA_SCHEDULES: how many (1,500; 10,000 with AVA_SOAK=1), AVA_SCHEDULE_SEED:
 * the first one. A failure prints its seed, which alone tells it again but for
 * the order in which the journal's threads run. */
#include "crash.h"

#include "life.h"

#define LIVES 3

struct sums {
	long schedules, lives, deaths_in_recovery, commits;
};

/* Takes `d` and returns the disk as the crash leaves it. */
static struct memdisk *die(struct life *l, struct memdisk *d, uint64_t *random, uint64_t seed)
{
	struct memdisk *left;
	char wrong[400] = "";

	l->only_at = cut_pick(260, random);
	l->calls = 0;
	atomic_store(&l->over, false);
	if (!life_live(l, d, wrong))
		fail_msg("AVA_SCHEDULE_SEED=%llu: %s", (unsigned long long)seed, wrong);
	if (l->npoints == 0) { /* it ended before: an orderly one */
		l->points = calloc(1, sizeof(*l->points));
		assert_non_null(l->points);
		l->points[l->npoints++] = (struct point){memdisk_clone(d), atomic_load(&l->acked),
							 atomic_load(&l->submitted)};
	}
	memdisk_free(d);
	left = cut_disk(l->points[0].d, (enum cut)cut_pick(CUTS, random),
			cut_pick(1 << 30, random));
	return left;
}

/* Sometimes recovery dies as well, once or twice. */
static struct memdisk *die_again(struct life *l, struct memdisk *d, uint64_t *random,
				 struct sums *n)
{
	while (cut_pick(3, random) == 0) {
		struct life snaps = {.only_at = cut_pick(40, random)};
		struct memdisk *left, *copy = memdisk_clone(d);
		struct story_answer a;

		(void)recover_well(l, copy, l->points[0].acked, l->points[0].submitted, &snaps, &a);
		memdisk_free(copy);
		if (snaps.npoints == 0)
			break;
		left = cut_disk(snaps.points[0].d, (enum cut)cut_pick(CUTS, random),
				cut_pick(1 << 30, random));
		life_fini(&snaps);
		memdisk_free(d);
		d = left;
		n->deaths_in_recovery++;
	}
	return d;
}

static void schedule(uint64_t seed, struct sums *n)
{
	uint64_t random = (seed + 1) * 0x9e3779b97f4a7c15u;
	struct memdisk *d = memdisk_new();
	struct life l = {.story = {seed, 20 + (int)cut_pick(60, &random)},
			 .segment_bytes = (uint64_t)(64 + 32 * cut_pick(3, &random)) << 10};

	for (int i = 0; i < LIVES && l.from < l.story.commits; i++) {
		struct story_answer a;

		d = die(&l, d, &random, seed);
		d = die_again(&l, d, &random, n);
		if (!recover_well(&l, d, l.points[0].acked, l.points[0].submitted, NULL, &a))
			fail_msg("AVA_SCHEDULE_SEED=%llu: life %d, %d answered, %d asked: %s",
				 (unsigned long long)seed, i, l.points[0].acked,
				 l.points[0].submitted, a.wrong);
		life_fini(&l);
		n->commits += a.there - l.from;
		l.from = a.there;
		n->lives++;
	}
	memdisk_free(d);
	n->schedules++;
}

TEST(schedules)
{
	uint64_t first = crash_env("AVA_SCHEDULE_SEED", 1);
	uint64_t count = crash_env("AVA_SCHEDULES", getenv("AVA_SOAK") != NULL ? 10000 : 1500);
	struct sums n = {0};

	for (uint64_t seed = first; seed < first + count; seed++)
		schedule(seed, &n);
	print_message("figure schedules %ld\nfigure schedule_lives %ld\n"
		      "figure schedule_deaths_in_recovery %ld\nfigure schedule_commits %ld\n",
		      n.schedules, n.lives, n.deaths_in_recovery, n.commits);
}
