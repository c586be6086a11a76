/* Running a tool as a run would: its call on a real loop and pool, in a
 * folder of the test's own. Included by the test_tool_*.c only. */
#ifndef UNIT_TOOL_UNIT_H
#define UNIT_TOOL_UNIT_H

#include "unit.h"

#include <ava.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "agent/tool.h"
#include "os/loop.h"

#define TOOL_UNIT static __attribute__((unused)) /* not every test needs all */

struct tool_unit {
	char dir[300]; /* the working folder, inside of `top` */
	char top[256];
	struct os_loop *loop;
	struct tool_env env;
	/* The last call. */
	struct tool_call call;
	int done; /* times it was called */
	json_t *args;
};

static struct tool_unit u __attribute__((unused));

TOOL_UNIT int tool_unit_open(void **state)
{
	memset(&u, 0, sizeof(u));
	snprintf(u.top, sizeof(u.top), "%s", unit_tmpdir());
	snprintf(u.dir, sizeof(u.dir), "%s/proj", u.top);
	assert_int_equal(mkdir(u.dir, 0700), 0);
	u.loop = os_loop_new(NULL);
	assert_non_null(u.loop);
	u.env.loop = u.loop;
	u.env.cwd = u.dir;
	u.env.cwd_fd = open(u.dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_true(u.env.cwd_fd >= 0);
	u.env.time_ms = TOOL_TIME_MS;
	u.env.user = &u;
	buf_init(&u.call.out, TOOL_FULL_MAX);
	u.call.out_bytes = TOOL_OUTPUT_MAX;
	return 0;
}

TOOL_UNIT int tool_unit_close(void **state)
{
	buf_fini(&u.call.out);
	json_decref(u.args);
	if (u.env.cwd_fd >= 0)
		close(u.env.cwd_fd);
	os_loop_free(u.loop);
	unit_rmdir(u.top);
	return 0;
}

TOOL_UNIT void tool_unit_done(struct tool_call *c)
{
	u.done++;
}

/* Make a call ready to start; `json` with ' for ". */
TOOL_UNIT void tool_unit_prepare(const char *tool, const char *json)
{
	char *text = strdup(json);
	json_error_t at;

	for (char *p = text; (p = strchr(p, '\'')) != NULL;)
		*p = '"';
	json_decref(u.args);
	u.args = json_loads(text, JSON_ALLOW_NUL, &at);
	if (u.args == NULL)
		fail_msg("arguments: %s: %s", text, at.text);
	free(text);
	u.done = 0;
	u.call.tool = tool_find(tool);
	assert_non_null(u.call.tool);
	u.call.id = "c1.1";
	u.call.args = u.args;
	u.call.env = &u.env;
	u.call.done = tool_unit_done;
	u.call.user = &u;
	u.call.success = false;
	u.call.error_class = NULL;
	buf_reset(&u.call.out);
}

TOOL_UNIT void tool_unit_start(const char *tool, const char *json)
{
	tool_unit_prepare(tool, json);
	u.call.tool->start(&u.call);
}

TOOL_UNIT void tool_unit_wait(void)
{
	while (u.done == 0)
		os_loop_step(u.loop, 1000);
	os_loop_step(u.loop, 0);
	assert_int_equal(u.done, 1);
	assert_non_null(u.call.error_class);
	if (u.call.out.data == NULL) /* so that tests may print it */
		assert_int_equal(buf_adds(&u.call.out, ""), 0);
}

/* The answer, which has to be a success. */
TOOL_UNIT const char *tool_unit_ok(const char *tool, const char *json)
{
	tool_unit_start(tool, json);
	tool_unit_wait();
	if (!u.call.success)
		fail_msg("%s %s: %s: %s", tool, json, u.call.error_class, u.call.out.data);
	assert_string_equal(u.call.error_class, "");
	return u.call.out.data;
}

/* The sentence of a failure of class `class`. */
TOOL_UNIT const char *tool_unit_fails(const char *tool, const char *json, const char *class)
{
	tool_unit_start(tool, json);
	tool_unit_wait();
	if (u.call.success)
		fail_msg("%s %s answered: %.300s", tool, json, u.call.out.data);
	assert_string_equal(u.call.error_class, class);
	return u.call.out.data;
}

/* The call without memory at its k-th allocation, for each k: it fails as "io", or says `want`
 * (NULL: anything). At least `least` of them fail. */
TOOL_UNIT void tool_unit_starve(const char *tool, const char *json, const char *want, long least)
{
	bool hit = true;
	long k;

	tool_unit_ok(tool, json); /* libuv's threads need memory once */
	buf_fini(&u.call.out);
	buf_init(&u.call.out, TOOL_FULL_MAX);
	for (k = 0; hit; k += unit_step(1)) {
		tool_unit_prepare(tool, json);
		fault_alloc(k);
		u.call.tool->start(&u.call);
		while (u.done == 0)
			os_loop_step(u.loop, 1000);
		hit = fault_alloc_end();
		tool_unit_wait();
		if (!u.call.success)
			assert_string_equal(u.call.error_class, "io");
		else if (want)
			assert_string_equal(u.call.out.data, want);
	}
	assert_true(u.call.success);
	assert_true(k > least);
}

/* Milliseconds of the processor: other programs have no part in it. */
TOOL_UNIT int64_t tool_unit_cpu_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* Stop a call that runs for long after 50 ms; true when it is over within
 * 100 ms of that. */
TOOL_UNIT bool tool_unit_stop(const char *tool, const char *json)
{
	int64_t began;

	tool_unit_start(tool, json);
	for (int i = 0; i < 5; i++)
		os_loop_step(u.loop, 10);
	assert_int_equal(u.done, 0);
	began = tool_unit_cpu_ms();
	atomic_store(&u.call.stop, true);
	tool_unit_wait();
	atomic_store(&u.call.stop, false);
	assert_false(u.call.success);
	assert_string_equal(u.call.error_class, "cancelled");
	return tool_unit_cpu_ms() - began < 100;
}

/* Does `text` hold `part`? Shows both when not. */
TOOL_UNIT void assert_holds(const char *text, const char *part)
{
	assert_non_null(text);
	if (strstr(text, part) == NULL)
		fail_msg("no \"%s\" in:\n%s", part, text);
}

TOOL_UNIT void assert_lacks(const char *text, const char *part)
{
	assert_non_null(text);
	if (strstr(text, part) != NULL)
		fail_msg("\"%s\" in:\n%s", part, text);
}

/* A path below the working folder; good until the third call from now. */
TOOL_UNIT const char *in(const char *path)
{
	static char full[3][4600];
	static unsigned at;

	at = (at + 1) % 3;
	snprintf(full[at], sizeof(full[at]), "%s/%s", u.dir, path);
	return full[at];
}

/* Write a file and the folders it is in. */
TOOL_UNIT void put(const char *path, const char *text)
{
	char full[4600];

	snprintf(full, sizeof(full), "%s", in(path));
	for (char *p = full + strlen(u.dir) + 1; (p = strchr(p, '/')) != NULL; p++) {
		*p = '\0';
		mkdir(full, 0700);
		*p = '/';
	}
	unit_write(full, text, strlen(text));
}

#endif
