/* Go on from a run that reached a limit: what it cost to get there is not paid again.
 *
 *	cc go_on.c $(pkg-config --cflags --libs ava) -o go_on
 *	./go_on embedded /var/tmp/ava-example "where is main?" "$PWD"
 *	./go_on connect ~/.local/share/ava "where is main?" "$PWD"
 *
 * The first run may call its model once. Its record is checked, then a new run begins
 * with its conversation and a budget of its own; a person would be asked about the
 * quote, here the program says yes. */
#include <stdio.h>
#include <string.h>

#include <ava.h>

static int failed(const struct ava_error *err)
{
	fprintf(stderr, "go_on: %s\n", err->text);
	return 1;
}

static int wait_for(struct ava_runtime *rt, const char *run, struct ava_error *err)
{
	struct ava_result result;

	if (ava_wait(rt, &run, 1, AVA_WAIT_ALL, -1, NULL, err) < 0 ||
	    ava_result(rt, run, &result, err) != 0)
		return failed(err);
	printf("%s: %s after %lld calls of its model\n", result.run, ava_status_name(result.status),
	       (long long)result.iterations);
	if (result.status == AVA_SUCCESS)
		printf("%s\n%s\n", result.summary, result.output);
	return 0;
}

/* Without model and tools: does its record lead where it led? */
static int check(struct ava_runtime *rt, const char *run, struct ava_error *err)
{
	struct ava_replay replay;

	if (ava_replay(rt, run, 0, &replay, err) != 0)
		return failed(err);
	if (replay.identical)
		printf("%s replays identically: %llu events\n", run,
		       (unsigned long long)replay.events);
	else
		printf("%s differs at event %llu: %s\n", run,
		       (unsigned long long)replay.differences[0].seq, replay.differences[0].what);
	return 0;
}

static int go_on(struct ava_runtime *rt, const char *run, struct ava_error *err)
{
	struct ava_resume more = {.max_iterations = 20};
	struct ava_proposal proposal;
	char id[24];

	if (ava_resume(rt, run, &more, &proposal, err) != 0)
		return failed(err);
	printf("%s\n", proposal.message);
	snprintf(id, sizeof(id), "%s", proposal.id);
	if (ava_confirm(rt, id, "yes", &proposal, err) != 0)
		return failed(err);
	snprintf(id, sizeof(id), "%s", proposal.run);
	return wait_for(rt, id, err);
}

static int run(struct ava_runtime *rt, const char *task, const char *folder, struct ava_error *err)
{
	struct ava_spawn spawn = {
		.task = task, .role = "code_reviewer", .cwd = folder, .max_iterations = 1};
	struct ava_run_id id;

	if (ava_spawn(rt, &spawn, &id, err) != 0)
		return failed(err);
	if (wait_for(rt, id.text, err) != 0 || check(rt, id.text, err) != 0)
		return 1;
	return go_on(rt, id.text, err);
}

int main(int argc, char **argv)
{
	struct ava_error err;
	struct ava_runtime *rt;
	int rv;

	if (argc != 5) {
		fprintf(stderr, "usage: go_on embedded|connect ROOT TASK FOLDER\n");
		return 2;
	}
	struct ava_options options = {.root = argv[2]};

	if (strcmp(argv[1], "connect") == 0)
		rv = ava_runtime_connect(&rt, &options, &err);
	else
		rv = ava_runtime_new(&rt, &options, &err);
	if (rv != 0)
		return failed(&err);
	rv = run(rt, argv[3], argv[4], &err);
	ava_runtime_free(rt);
	return rv;
}
