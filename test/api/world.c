/* The world of a test of libava; world.h. A daemon is found by the process that the lock of its
 * root names.
 *
 * What can fail: a lock without a process, a daemon that stays for two minutes: the test does then.
 */
#include "api/world.h"

#include <time.h>

void world_open(struct world *w)
{
	struct ava_options o = {.root = w->root};
	struct ava_error err = {0};

	if ((w->embedded ? ava_runtime_new(&w->rt, &o, &err)
			 : ava_runtime_connect(&w->rt, &o, &err)) != 0)
		fail_msg("%s", err.text);
}

int world_begin(void **state)
{
	static const char slow[] = "{\"text\":\"late\",\"delay_ms\":600000}\n";
	const char *mode = getenv("MODE");
	struct world *w = calloc(1, sizeof(*w));
	char path[400];

	w->embedded = !mode || strcmp(mode, "connected") != 0;
	snprintf(w->dir, sizeof(w->dir), "%s", unit_tmpdir());
	snprintf(w->root, sizeof(w->root), "%s/root", w->dir);
	snprintf(w->work, sizeof(w->work), "%s/work", w->dir);
	snprintf(w->slow, sizeof(w->slow), "offline:%s/slow.jsonl", w->dir);
	assert_int_equal(mkdir(w->work, 0700), 0);
	snprintf(path, sizeof(path), "%s/notes.md", w->work);
	unit_write(path, "# Notes\n\nThe torn tail is cut at the last whole record.\n", 55);
	unit_write(strchr(w->slow, '/'), slow, sizeof(slow) - 1);
	setenv("HOME", w->dir, 1);
	setenv("AVA_DISK_FREE_MIN_MB", "0", 1);
	setenv("AVA_DISK_BALLAST_MB", "0", 1);
	world_open(w);
	*state = w;
	return 0;
}

int world_end(void **state)
{
	struct world *w = *state;

	if (!w->embedded && w->rt)
		world_kill(w, SIGTERM);
	ava_runtime_free(w->rt);
	unit_rmdir(w->dir);
	free(w);
	return 0;
}

void world_script(struct world *w, const char *turns, char model[400])
{
	snprintf(model, 400, "offline:%s/script.jsonl", w->dir);
	unit_write(strchr(model, '/'), turns, strlen(turns));
}

void world_wait(struct world *w, const char *run)
{
	assert_int_equal(ava_wait(w->rt, &run, 1, AVA_WAIT_ALL, LONG_MS, NULL, NULL), 1);
}

static pid_t process_of(const char *root)
{
	char path[400], *text;
	size_t len;
	pid_t pid;

	snprintf(path, sizeof(path), "%s/ava.lock", root);
	text = unit_read(path, &len);
	pid = atoi(text + strcspn(text, "0123456789"));
	free(text);
	assert_true(pid > 1 && pid != getpid());
	return pid;
}

/* Not there, or waiting for init to look at it. */
static bool is_gone(pid_t pid)
{
	char path[64], state = 'Z';
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	f = fopen(path, "r");
	if (f && fscanf(f, "%*d %*s %c", &state) != 1)
		state = 'Z';
	if (f)
		fclose(f);
	return state == 'Z' || state == 'X';
}

void world_kill(struct world *w, int signo)
{
	const struct timespec tick = {.tv_nsec = 10000000};
	pid_t pid = process_of(w->root);

	assert_int_equal(kill(pid, signo), 0);
	for (int i = 0; i < LONG_MS / 10 && !is_gone(pid); i++)
		nanosleep(&tick, NULL);
	assert_true(is_gone(pid));
}
