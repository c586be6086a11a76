/* Child processes: what they are given, how their end is told, that nothing of
 * them is left. */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <ava.h>
#include "exec/child.h"
#include "os/loop.h"

struct seen {
	bool ended, left;
	enum exec_how how;
	int code;
	char output[400];
	char said[400]; /* by one that is talked with */
};

static struct os_loop *loop;

static void done(const struct exec_end *end, void *user)
{
	struct seen *s = user;

	assert_false(s->ended);
	s->ended = true;
	s->left = end->left;
	s->how = end->how;
	s->code = end->code;
	snprintf(s->output, sizeof(s->output), "%.*s", (int)end->output_len, end->output);
}

static struct exec_options script(const char *const argv[4], const char *input)
{
	static const char *const env[] = {"GREETING=hello", NULL};

	return (struct exec_options){.argv = argv,
				     .env = env,
				     .input = input,
				     .input_len = strlen(input),
				     .timeout_ms = 60000,
				     .output_max = 65536,
				     .keep = 300};
}

static void wait_for(const struct seen *s)
{
	for (int i = 0; !s->ended && i < 60000; i++)
		os_loop_step(loop, 10);
	assert_true(s->ended);
}

static struct seen run(struct exec_options *o)
{
	struct seen s = {0};
	struct exec_child *c;
	struct ava_error err = {0};

	if (exec_start(&c, loop, o, done, &s, &err) != 0)
		fail_msg("exec_start: %s", err.text);
	wait_for(&s);
	return s;
}

static struct seen shell(const char *text, const char *input)
{
	const char *const argv[4] = {"/bin/sh", "-c", text, NULL};
	struct exec_options o = script(argv, input);

	return run(&o);
}

TEST(input_and_output)
{
	struct seen s = shell("read line; echo \"$GREETING $line\"; echo more >&2", "world\n");

	assert_int_equal(s.how, EXEC_EXITED);
	assert_int_equal(s.code, 0);
	assert_string_equal(s.output, "hello world\nmore\n");
	/* More than a pipe takes, that nobody reads: not our problem. */
	char *big = malloc(1 << 20);

	memset(big, 'x', (1 << 20) - 1);
	big[(1 << 20) - 1] = 0;
	s = shell("exit 3", big);
	assert_int_equal(s.code, 3);
	s = shell("wc -c", big);
	assert_int_equal(atoi(s.output), (1 << 20) - 1);
	free(big);
}

static void said(const char *bytes, size_t len, void *user)
{
	struct seen *s = user;
	size_t at = strlen(s->said);

	snprintf(s->said + at, sizeof(s->said) - at, "%.*s", (int)len, bytes);
}

/* One that is talked with: what it writes to 2 is its output; what it says last is heard before its
 * end, and when it is hung up on it has its time, and no longer. */
TEST(talk)
{
	const char *const argv[4] = {"/bin/sh", "-c",
				     "read a; echo \"<$a>\"; echo aside >&2; read b; exit 4", NULL};
	const char *const last[4] = {"/bin/sh", "-c", "read a; echo \"<$a>\"", NULL};
	const char *const deaf[4] = {"/bin/sh", "-c", "echo up; exec sleep 600", NULL};
	struct exec_options o = script(argv, "not this");
	struct seen s = {0};
	struct exec_child *c;
	struct ava_error err;

	o.said = said;
	o.unread_max = 20;
	o.timeout_ms = 0;
	assert_int_equal(exec_start(&c, loop, &o, done, &s, &err), 0);
	assert_int_equal(exec_say(c, "word\n", 5), 0);
	while (!s.said[0])
		os_loop_step(loop, 10);
	assert_string_equal(s.said, "<word>\n");
	assert_false(s.ended);
	exec_hang_up(c, 60000); /* by which it is asked to end */
	wait_for(&s);
	assert_int_equal(s.how, EXEC_EXITED);
	assert_int_equal(s.code, 4);
	assert_string_equal(s.output, "aside\n");

	o.argv = last;
	s = (struct seen){0};
	assert_int_equal(exec_start(&c, loop, &o, done, &s, &err), 0);
	assert_int_equal(exec_say(c, "bye\n", 4), 0);
	wait_for(&s);
	assert_string_equal(s.said, "<bye>\n");

	o.argv = deaf;
	s = (struct seen){0};
	assert_int_equal(exec_start(&c, loop, &o, done, &s, &err), 0);
	assert_int_equal(exec_say(c, "not more than 20 bytes", 22), AVA_ETOOBIG);
	assert_int_equal(exec_say(c, "as many as that\n", 16), 0);
	while (!s.said[0])
		os_loop_step(loop, 10);
	exec_hang_up(c, 10000);
	test_clock_skip(10000);
	wait_for(&s);
	assert_int_equal(s.how, EXEC_TIMEOUT);
}

/* Nothing of ours but the three, no environment but what it was given. */
TEST(borders)
{
	int extra = open("/dev/null", O_RDONLY); /* without O_CLOEXEC */
	struct seen s;

	assert_true(extra > 2);
	setenv("ANTHROPIC_API_KEY", "sk-ant-secret", 1);
	s = shell(
		"for f in /proc/self/fd/*; do n=${f##*/}; [ $n -gt 2 ] && [ -e /proc/$$/fd/$n ] && "
		"echo fd $n; done; /usr/bin/env; pwd; kill -0 -$$ && "
		"echo leads",
		"");
	close(extra);
	unsetenv("ANTHROPIC_API_KEY");
	assert_null(strstr(s.output, "fd "));
	assert_null(strstr(s.output, "secret"));
	assert_non_null(strstr(s.output, "GREETING=hello\n"));
	assert_non_null(strstr(s.output, "\n/\n"));
	assert_non_null(strstr(s.output, "leads\n"));
}

/* It comes after us, and what it starts does. */
TEST(nicer)
{
	char text[120];
	struct seen s;

	snprintf(text, sizeof(text), "until [ \"$(nice)\" = %d ]; do :; done; echo after us",
		 getpriority(PRIO_PROCESS, 0) + 10 > 19 ? 19 : getpriority(PRIO_PROCESS, 0) + 10);
	s = shell(text, "");
	assert_string_equal(s.output, "after us\n");
}

TEST(signal)
{
	struct seen s = shell("kill -TERM $$", "");

	assert_int_equal(s.how, EXEC_SIGNALLED);
	assert_int_equal(s.code, SIGTERM);
	/* SIGPIPE is the default again, whatever we ignore. */
	signal(SIGPIPE, SIG_IGN);
	s = shell("kill -PIPE $$; echo still", "");
	signal(SIGPIPE, SIG_DFL);
	assert_int_equal(s.code, SIGPIPE);
}

static pid_t number_in(const char *path)
{
	size_t len;
	char *text;
	pid_t pid = 0;

	for (int i = 0; pid == 0 && i < 6000; i++) {
		if (access(path, R_OK) == 0) {
			text = unit_read(path, &len);
			pid = strchr(text, '\n') ? atoi(text) : 0;
			free(text);
		}
		os_loop_step(loop, 10);
	}
	assert_true(pid > 1);
	return pid;
}

static void assert_gone(pid_t pid)
{
	for (int i = 0; kill(pid, 0) == 0 && i < 6000; i++) {
		char path[64], *text;
		size_t len;
		bool dead;

		snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
		if (access(path, R_OK) != 0)
			return;
		text = unit_read(path, &len);
		dead = strstr(text, ") Z ") != NULL; /* nobody reaps it here */
		free(text);
		if (dead)
			return;
		os_loop_step(loop, 10);
	}
	assert_true(kill(pid, 0) != 0 || errno == ESRCH);
}

/* What it leaves in its group goes with it, and holds up nobody. */
TEST(leftovers)
{
	const char *dir = unit_tmpdir();
	char text[600], path[400];
	struct seen s;

	snprintf(path, sizeof(path), "%s/pid", dir);
	snprintf(text, sizeof(text), "sleep 1000 & echo $! >%s; exit 4", path);
	s = shell(text, "");
	assert_int_equal(s.how, EXEC_EXITED);
	assert_int_equal(s.code, 4);
	assert_gone(number_in(path));
	unit_rmdir(dir);
}

TEST(time)
{
	const char *const argv[4] = {"/bin/sh", "-c", "trap '' TERM; echo begun; sleep 1000", NULL};
	struct exec_options o = script(argv, "");
	struct seen s = {0};
	struct exec_child *c;

	test_clock_stop();
	o.timeout_ms = 200;
	assert_int_equal(exec_start(&c, loop, &o, done, &s, NULL), 0);
	test_clock_skip(199);
	for (int i = 0; i < 20; i++)
		os_loop_step(loop, 0);
	assert_false(s.ended);
	test_clock_skip(1);
	for (int i = 0; i < 10000 && !s.ended; i++) {
		os_loop_step(loop, 0);
		usleep(1000);
	}
	assert_int_equal(s.how, EXEC_TIMEOUT);
}

/* It ends in time, and then its time is over before the loop looks at either. */
TEST(time_unlooked)
{
	const char *const argv[4] = {"/bin/sh", "-c", "read a; exit 4", NULL};
	struct exec_options o = script(argv, "");
	struct exec_child *c;
	siginfo_t info;

	test_clock_stop();
	for (int stopped = 0; stopped < 2; stopped++) {
		struct seen s = {0};

		o.timeout_ms = stopped ? 60000 : 1000;
		assert_int_equal(exec_start(&c, loop, &o, done, &s, NULL), 0);
		if (stopped)
			exec_stop(c);
		assert_int_equal(waitid(P_ALL, 0, &info, WEXITED | WNOWAIT), 0);
		test_clock_skip(1000);
		wait_for(&s);
		assert_false(s.left);
		assert_int_equal(s.how, stopped ? EXEC_STOPPED : EXEC_EXITED);
		assert_true(stopped || s.code == 4);
	}
}

TEST(too_much)
{
	const char *const argv[4] = {"/bin/sh", "-c", "while :; do echo 0123456789; done", NULL};
	struct exec_options o = script(argv, "");
	struct seen s = run(&o);

	assert_int_equal(s.how, EXEC_OUTPUT);
	assert_int_equal(strlen(s.output), 300);
}

TEST(kill)
{
	const char *dir = unit_tmpdir();
	char text[600], path[400];
	const char *const argv[4] = {"/bin/sh", "-c", text, NULL};
	struct exec_options o;
	struct exec_child *c;
	struct seen s = {0};
	pid_t pid;

	snprintf(path, sizeof(path), "%s/pid", dir);
	snprintf(text, sizeof(text), "sleep 1000 & echo $! >%s; wait", path);
	o = script(argv, "");
	assert_int_equal(exec_start(&c, loop, &o, done, &s, NULL), 0);
	pid = number_in(path);
	exec_kill(c);
	assert_gone(pid);
	for (int i = 0; i < 5; i++)
		os_loop_step(loop, 0);
	assert_false(s.ended);
	unit_rmdir(dir);
}

TEST(not_run)
{
	const char *dir = unit_tmpdir();
	char path[400];
	const char *argv[4] = {"/nowhere/at/all", NULL};
	struct exec_options o = script(argv, "");
	struct ava_error err = {0};
	struct exec_child *c;

	assert_int_equal(exec_start(&c, loop, &o, done, NULL, &err), AVA_ENOENT);
	assert_string_equal(err.text, "there is no program /nowhere/at/all");
	snprintf(path, sizeof(path), "%s/plain", dir);
	unit_write(path, "text\n", 5);
	chmod(path, 0600);
	argv[0] = path;
	assert_int_equal(exec_start(&c, loop, &o, done, NULL, &err), AVA_EDENIED);
	unit_rmdir(dir);
}

static void start_and_kill(struct exec_options *o, struct seen *s)
{
	struct exec_child *c;
	int rv = exec_start(&c, loop, o, done, s, NULL);

	if (rv == 0)
		exec_kill(c);
	else
		assert_int_equal(rv, AVA_ENOMEM);
}

TEST(no_memory)
{
	const char *const argv[4] = {"/bin/sh", "-c", "exit 0", NULL};
	struct exec_options o = script(argv, "x");
	struct seen s = {0};

	for (int talk = 0; talk < 2; talk++) {
		o.said = talk ? said : NULL;
		FAULT_LOOP(k, {
			start_and_kill(&o, &s);
			os_loop_step(loop, 0);
		});
	}
	assert_false(s.ended);
}

static int first(void **state)
{
	loop = os_loop_new(NULL);
	assert_non_null(loop);
	return 0;
}

static int last(void **state)
{
	os_loop_free(loop);
	return 0;
}

UNIT_GROUP(.first = first, .last = last);
