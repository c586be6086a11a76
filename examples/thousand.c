/* A thousand runs in one process and one thread, with the offline model, which
 * needs no key and no network.
 *
 *	./thousand embedded /var/tmp/ava-example 1000 "$PWD"
 *
 * A run that waits costs memory, not a thread; how many are at work at once is
 * a setting (runs.max), given here as the environment of an embedded runtime. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <ava.h>

struct tally {
	unsigned started, ended, succeeded;
};

static int failed(const struct ava_error *err)
{
	fprintf(stderr, "thousand: %s\n", err->text);
	return 1;
}

static void on_start(const char *run, const struct ava_event *event, void *user)
{
	(void)run;
	(void)event;
	((struct tally *)user)->started++;
}

static void on_complete(const char *run, enum ava_status status, const char *summary,
			const struct ava_event *event, void *user)
{
	struct tally *tally = user;

	(void)run;
	(void)summary;
	(void)event;
	tally->ended++;
	tally->succeeded += status == AVA_SUCCESS;
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static int spawn_all(struct ava_runtime *rt, unsigned n, const char *folder, struct ava_error *err)
{
	char task[64];
	struct ava_spawn spawn = {
		.task = task, .role = "code_reviewer", .cwd = folder, .model = "offline"};
	struct ava_run_id id;

	for (unsigned i = 0; i < n; i++) {
		snprintf(task, sizeof(task), "find the line that says torn tail (%u)", i);
		if (ava_spawn(rt, &spawn, &id, err) != 0)
			return failed(err);
	}
	return 0;
}

/* One watch sees all of them; it was there before the first began. */
static int run_all(struct ava_runtime *rt, unsigned n, const char *folder, struct ava_error *err)
{
	const struct ava_callbacks callbacks = {.start = on_start, .complete = on_complete};
	const struct ava_events_query now = {.after = AVA_NOW};
	struct tally tally = {0};
	double began = seconds(), spawned;

	if (ava_watch(rt, &now, &callbacks, &tally, NULL, err) != 0)
		return failed(err);
	if (spawn_all(rt, n, folder, err) != 0)
		return 1;
	spawned = seconds();
	while (tally.ended < n)
		if (ava_runtime_process(rt, -1, err) < 0)
			return failed(err);
	printf("%u started, %u ended, %u with success\n", tally.started, tally.ended,
	       tally.succeeded);
	printf("%.2f s to start them, %.2f s in all\n", spawned - began, seconds() - began);
	return tally.started == n && tally.succeeded == n ? 0 : 3;
}

int main(int argc, char **argv)
{
	const char *const settings[] = {"AVA_RUNS_MAX=100", NULL};
	struct ava_runtime *rt;
	struct ava_error err;
	int rv;

	if (argc != 5) {
		fprintf(stderr, "usage: thousand embedded|connect ROOT COUNT FOLDER\n");
		return 2;
	}
	struct ava_options options = {.root = argv[2]};

	if (strcmp(argv[1], "connect") == 0) {
		rv = ava_runtime_connect(&rt, &options, &err);
	} else {
		options.env = settings;
		rv = ava_runtime_new(&rt, &options, &err);
	}
	if (rv != 0)
		return failed(&err);
	rv = run_all(rt, (unsigned)strtoul(argv[3], NULL, 10), argv[4], &err);
	ava_runtime_free(rt);
	return rv;
}
