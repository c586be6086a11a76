/* The daemon of a root, by the process that its lock names; daemon.h.
 *
 * What can fail: a lock without a process, a daemon that stays for two
 * minutes: the test does then. */
#include "unit/unit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "api/daemon.h"

#define WAIT_MS 120000

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

void daemon_end(const char *root, int signo)
{
	const struct timespec tick = {.tv_nsec = 10000000};
	pid_t pid = process_of(root);

	assert_int_equal(kill(pid, signo), 0);
	for (int i = 0; i < WAIT_MS / 10 && !is_gone(pid); i++)
		nanosleep(&tick, NULL);
	assert_true(is_gone(pid));
}
