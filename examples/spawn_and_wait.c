/* Start one run in the background, wait for it, print what it found.
 *
 *	cc spawn_and_wait.c $(pkg-config --cflags --libs ava) -o spawn_and_wait
 *	./spawn_and_wait embedded /var/tmp/ava-example "where is main?" "$PWD"
 *	./spawn_and_wait connect ~/.local/share/ava "where is main?" "$PWD"
 *
 * With "embedded" the runtime is in this process, with "connect" it is the
 * daemon of that data root; nothing else differs. */
#include <stdio.h>
#include <string.h>

#include <ava.h>

static int failed(const struct ava_error *err)
{
	fprintf(stderr, "spawn_and_wait: %s\n", err->text);
	return 1;
}

static int print_result(struct ava_runtime *rt, const char *run, struct ava_error *err)
{
	struct ava_result result;

	if (ava_result(rt, run, &result, err) != 0)
		return failed(err);
	printf("%s: %s after %.1f s, %lld tokens, %zu citations\n", result.run,
	       ava_status_name(result.status), (double)result.duration_ms / 1000,
	       (long long)result.tokens, result.citations);
	printf("%s\n%s\n", result.summary, result.output);
	return result.status == AVA_SUCCESS ? 0 : 3;
}

static int ask(struct ava_runtime *rt, const char *task, const char *folder, struct ava_error *err)
{
	struct ava_spawn spawn = {.task = task, .role = "code_reviewer", .cwd = folder};
	struct ava_run_id id;
	const char *run = id.text;

	if (ava_spawn(rt, &spawn, &id, err) != 0)
		return failed(err);
	printf("started %s\n", id.text);
	if (ava_wait(rt, &run, 1, AVA_WAIT_ALL, -1, NULL, err) < 0)
		return failed(err);
	return print_result(rt, id.text, err);
}

int main(int argc, char **argv)
{
	struct ava_error err;
	struct ava_runtime *rt;
	int rv;

	if (argc != 5) {
		fprintf(stderr, "usage: spawn_and_wait embedded|connect ROOT TASK FOLDER\n");
		return 2;
	}
	struct ava_options options = {.root = argv[2]};

	if (strcmp(argv[1], "connect") == 0)
		rv = ava_runtime_connect(&rt, &options, &err);
	else
		rv = ava_runtime_new(&rt, &options, &err);
	if (rv != 0)
		return failed(&err);
	rv = ask(rt, argv[3], argv[4], &err);
	ava_runtime_free(rt);
	return rv;
}
