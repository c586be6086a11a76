/* A progress bar for one run: how much of its calls it has used, what it does
 * now, and each tool as it is called.
 *
 *	./progress embedded /var/tmp/ava-example "where is main?" "$PWD"
 *
 * Callbacks are called in ava_runtime_process only, so this program needs no
 * lock and no thread. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <ava.h>

#define WIDTH 30

struct bar {
	struct ava_runtime *rt;
	int done; /* 1: the run has ended */
	enum ava_status status;
	char activity[80];
};

static int failed(const struct ava_error *err)
{
	fprintf(stderr, "progress: %s\n", err->text);
	return 1;
}

static void draw(struct bar *bar, const char *run)
{
	char cells[WIDTH + 1];
	struct ava_run now;
	int full;

	if (ava_status(bar->rt, run, &now, NULL) != 0)
		return;
	full = bar->done ? WIDTH : (int)(now.iteration * WIDTH / (now.max_iterations + 1));
	memset(cells, '.', WIDTH);
	memset(cells, '#', (size_t)(full < WIDTH ? full : WIDTH));
	cells[WIDTH] = '\0';
	printf("%s[%s] %5.1fs %6lldt %-40.40s%s", isatty(1) ? "\r" : "", cells,
	       (double)now.elapsed_ms / 1000, (long long)now.tokens, bar->activity,
	       isatty(1) ? "" : "\n");
	fflush(stdout);
}

/* The text is ours until we return, so it is copied. */
static void on_activity(const char *run, const char *text, const struct ava_event *event,
			void *user)
{
	struct bar *bar = user;

	(void)event;
	snprintf(bar->activity, sizeof(bar->activity), "%s", text);
	draw(bar, run);
}

static void on_tool_call(const char *run, const char *tool, const char *args,
			 const struct ava_event *event, void *user)
{
	(void)run;
	(void)user;
	printf("%s%02lld:%02lld calls %s %.60s\n", isatty(1) ? "\r" : "",
	       (long long)(event->time_ms / 60000 % 60), (long long)(event->time_ms / 1000 % 60),
	       tool, args);
}

static void on_complete(const char *run, enum ava_status status, const char *summary,
			const struct ava_event *event, void *user)
{
	struct bar *bar = user;

	(void)event;
	bar->done = 1;
	bar->status = status;
	snprintf(bar->activity, sizeof(bar->activity), "%s", ava_status_name(status));
	draw(bar, run);
	printf("\n%s\n", summary);
}

static int follow(struct bar *bar, const struct ava_spawn *spawn, struct ava_error *err)
{
	const struct ava_callbacks callbacks = {
		.activity = on_activity, .tool_call = on_tool_call, .complete = on_complete};
	struct ava_events_query query = {0}; /* from the beginning of the run */
	struct ava_watch *watch;
	struct ava_run_id id;

	if (ava_spawn(bar->rt, spawn, &id, err) != 0)
		return failed(err);
	query.run = id.text;
	if (ava_watch(bar->rt, &query, &callbacks, bar, &watch, err) != 0)
		return failed(err);
	while (!bar->done) {
		int rv = ava_runtime_process(bar->rt, 1000, err);

		if (rv < 0)
			return failed(err);
		if (rv == 0)
			draw(bar, id.text); /* the clock moves on */
	}
	ava_unwatch(watch);
	return bar->status == AVA_SUCCESS ? 0 : 3;
}

int main(int argc, char **argv)
{
	struct bar bar = {0};
	struct ava_error err;
	int rv;

	if (argc != 5) {
		fprintf(stderr, "usage: progress embedded|connect ROOT TASK FOLDER\n");
		return 2;
	}
	struct ava_options options = {.root = argv[2]};
	struct ava_spawn spawn = {.task = argv[3], .role = "code_reviewer", .cwd = argv[4]};

	if (strcmp(argv[1], "connect") == 0)
		rv = ava_runtime_connect(&bar.rt, &options, &err);
	else
		rv = ava_runtime_new(&bar.rt, &options, &err);
	if (rv != 0)
		return failed(&err);
	rv = follow(&bar, &spawn, &err);
	ava_runtime_free(bar.rt);
	return rv;
}
