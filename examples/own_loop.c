/* Subagents in a program that has a loop of its own, here poll(): each line of
 * standard input is a task, each result is printed when it is there, and the
 * program stays responsive meanwhile.
 *
 *	printf '%s\n' "where is main?" "where are errors made?" |
 *		./own_loop embedded /var/tmp/ava-example "$PWD"
 *
 * Three calls are all that a loop needs to know: the descriptor, how long it
 * may wait, and "go on". */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <ava.h>

struct program {
	struct ava_runtime *rt;
	const char *folder;
	char line[4096]; /* of standard input, not complete yet */
	size_t len;
	int end_of_input;
	unsigned running;
	int worst;
};

static int failed(const struct ava_error *err)
{
	fprintf(stderr, "own_loop: %s\n", err->text);
	return 1;
}

static void on_complete(const char *run, enum ava_status status, const char *summary,
			const struct ava_event *event, void *user)
{
	struct program *p = user;

	(void)event;
	printf("%s %s: %s\n", run, ava_status_name(status), summary);
	fflush(stdout);
	p->running--;
	if (status != AVA_SUCCESS)
		p->worst = 3;
}

static int begin(struct program *p, const char *task)
{
	struct ava_spawn spawn = {.task = task, .role = "code_reviewer", .cwd = p->folder};
	struct ava_run_id id;
	struct ava_error err;

	if (ava_spawn(p->rt, &spawn, &id, &err) != 0)
		return failed(&err);
	printf("%s begins: %s\n", id.text, task);
	fflush(stdout);
	p->running++;
	return 0;
}

/* Whole lines of what has come are tasks. */
static int read_tasks(struct program *p)
{
	ssize_t n = read(0, p->line + p->len, sizeof(p->line) - 1 - p->len);
	char *end;

	if (n <= 0) {
		p->end_of_input = 1;
		return 0;
	}
	p->len += (size_t)n;
	p->line[p->len] = '\0';
	while ((end = strchr(p->line, '\n')) != NULL) {
		*end = '\0';
		if (p->line[0] && begin(p, p->line) != 0)
			return 1;
		p->len -= (size_t)(end + 1 - p->line);
		memmove(p->line, end + 1, p->len + 1);
	}
	if (p->len == sizeof(p->line) - 1)
		p->len = 0; /* no task is that long */
	return 0;
}

static int loop(struct program *p)
{
	struct ava_error err;

	while (!p->end_of_input || p->running > 0) {
		struct pollfd fds[] = {
			{.fd = ava_runtime_fd(p->rt), .events = POLLIN},
			{.fd = p->end_of_input ? -1 : 0, .events = POLLIN},
		};

		if (poll(fds, 2, ava_runtime_timeout(p->rt)) < 0)
			continue; /* a signal */
		if (fds[1].revents != 0 && read_tasks(p) != 0)
			return 1;
		if (ava_runtime_process(p->rt, 0, &err) < 0)
			return failed(&err);
	}
	return p->worst;
}

int main(int argc, char **argv)
{
	const struct ava_callbacks callbacks = {.complete = on_complete};
	const struct ava_events_query now = {.after = AVA_NOW};
	struct program p = {0};
	struct ava_error err;
	int rv;

	if (argc != 4) {
		fprintf(stderr, "usage: own_loop embedded|connect ROOT FOLDER\n");
		return 2;
	}
	struct ava_options options = {.root = argv[2]};

	p.folder = argv[3];
	if (strcmp(argv[1], "connect") == 0)
		rv = ava_runtime_connect(&p.rt, &options, &err);
	else
		rv = ava_runtime_new(&p.rt, &options, &err);
	if (rv == 0)
		rv = ava_watch(p.rt, &now, &callbacks, &p, NULL, &err);
	rv = rv == 0 ? loop(&p) : failed(&err);
	ava_runtime_free(p.rt);
	return rv;
}
