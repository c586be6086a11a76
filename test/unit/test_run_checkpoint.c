/* Names of positions: which there can be, and what they stand for in a log. Runs at
 * work get them in test/cli/test_checkpoints.sh and test/api. */
#include "unit.h"

#include <ava.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "subagent/resume.h"

#define RUN "S-7f3a2b"

static char root[256], path[320];

static int setup(void **state)
{
	snprintf(root, sizeof(root), "%s", unit_tmpdir());
	unit_mkdirs(root, "logs/subagents/");
	snprintf(path, sizeof(path), "%s/logs/subagents/" RUN ".jsonl", root);
	return 0;
}

static int teardown(void **state)
{
	unit_rmdir(root);
	return 0;
}

#define LINE(type, content)                                                                        \
	"{\"timestamp\":\"2026-11-21T08:00:00.123Z\",\"lsn\":7,\"seq\":7,\"eventType\":\"" type    \
	"\",\"agentId\":\"" RUN "\",\"sessionId\":\"\",\"traceId\":\"brave-otter\",\"userId\":"    \
	"\"\",\"content\":" content ",\"metadata\":{}}\n"
#define POINT(name, call)                                                                          \
	LINE("Checkpoint", "{\"name\":\"" name "\",\"lsn\":3,\"messages\":2,\"hash\":\"\","        \
			   "\"callId\":\"" call "\",\"by\":\"ben\"}")

static int find(const char *name, int *call, struct ava_error *err)
{
	int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rv;

	assert_true(fd >= 0);
	*call = 0;
	rv = run_checkpoint_find(fd, RUN, name, call, err);
	close(fd);
	return rv;
}

TEST(names)
{
	static const struct {
		const char *name;
		bool fits;
	} cases[] = {
		{"a", true},         {"before-edit", true}, {"v1.2_x", true}, {"Z9", true},
		{"", false},         {"1", false},          {"-a", false},    {".a", false},
		{"_a", false},       {"a b", false},        {"a/b", false},   {"a\n", false},
		{"\303\244", false}, {"a\303\244", false},
	};
	struct ava_error err = {0};
	char name[RUN_CHECKPOINT_NAME + 2];

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		print_message("'%s'\n", cases[i].name);
		assert_int_equal(run_checkpoint_check(cases[i].name, &err),
				 cases[i].fits ? 0 : AVA_EINVAL);
	}
	memset(name, 'a', sizeof(name) - 1);
	name[RUN_CHECKPOINT_NAME + 1] = 0;
	assert_int_equal(run_checkpoint_check(name, &err), AVA_EINVAL);
	name[RUN_CHECKPOINT_NAME] = 0;
	assert_int_equal(run_checkpoint_check(name, &err), 0);
}

TEST(found)
{
	static const struct {
		const char *what, *log, *name;
		int rv, call;
		const char *says; /* in the sentence; NULL: none */
	} cases[] = {
		{"the only one", POINT("one", "i3"), "one", 0, 3, NULL},
		{"among others",
		 POINT("one", "i1") LINE("Activity", "{\"text\":\"one\"}") POINT("two", "i20"),
		 "two", 0, 20, NULL},
		{"twice at the same call", POINT("one", "i2") POINT("one", "i2"), "one", 0, 2,
		 NULL},
		{"twice at different calls", POINT("one", "i2") POINT("one", "i4"), "one",
		 AVA_EINVAL, 0,
		 "several checkpoints one: give the number of a call; it has one, one"},
		{"of another name", POINT("one", "i2") POINT("two", "i4"), "three", AVA_ENOENT, 0,
		 RUN " has no checkpoint three: it has one, two"},
		{"no name is matched by its beginning", POINT("one", "i2"), "on", AVA_ENOENT, 0,
		 "it has one"},
		{"none at all", LINE("Activity", "{\"text\":\"one\"}"), "one", AVA_ENOENT, 0,
		 "has no checkpoint: give the number"},
		{"without its call",
		 LINE("Checkpoint", "{\"name\":\"one\",\"lsn\":3,\"messages\":2,"
				    "\"hash\":\"\"}"),
		 "one", AVA_ENOENT, 0, "has no checkpoint: give"},
		{"of a call that is none",
		 POINT("one", "c2.1") POINT("one", "i-3") POINT("one", "i0"), "one", AVA_ENOENT, 0,
		 "has no checkpoint: give"},
		{"names with control characters are not shown", POINT("o\\u001bne", "i2"), "one",
		 AVA_ENOENT, 0, "has no checkpoint: give"},
		{"behind damage", "{\"timestamp\n" POINT("one", "i3"), "one", 0, 3, NULL},
		{"not whole yet", "{\"timestamp\":", "one", AVA_ENOENT, 0, "has no checkpoint"},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct ava_error err = {0};
		int call;

		print_message("%s\n", cases[i].what);
		unit_write(path, cases[i].log, strlen(cases[i].log));
		assert_int_equal(find(cases[i].name, &call, &err), cases[i].rv);
		assert_int_equal(call, cases[i].call);
		if (cases[i].says != NULL && strstr(err.text, cases[i].says) == NULL)
			fail_msg("%s", err.text);
	}
}

/* The sentence has a bound: some names, and how many there are beside them. */
TEST(many)
{
	static char log[64 << 10], name[65];
	struct ava_error err = {0};
	size_t len = 0;
	int call;

	memset(name, 'x', 64);
	for (int i = 0; i < RUN_CHECKPOINTS_MAX; i++) {
		name[62] = (char)('a' + i / 10);
		name[63] = (char)('a' + i % 10);
		len += (size_t)snprintf(log + len, sizeof(log) - len, POINT("%s", "i%d"), name,
					i + 1);
	}
	unit_write(path, log, len);
	assert_int_equal(find("one", &call, &err), AVA_ENOENT);
	assert_non_null(strstr(err.text, "xaa, "));
	assert_non_null(strstr(err.text, " and 96 more"));
	assert_int_equal(find(name, &call, &err), 0);
	assert_int_equal(call, RUN_CHECKPOINTS_MAX);
}

static void once(void)
{
	struct ava_error err = {0};
	int call;

	(void)find("one", &call, &err);
}

TEST(without_memory)
{
	unit_write(path, POINT("one", "i3"), strlen(POINT("one", "i3")));
	FAULT_LOOP(k, once());
}

TEST(no_log)
{
	struct ava_error err = {0};
	int call;

	unlink(path);
	assert_int_equal(find("one", &call, &err), AVA_ENOENT);
}

UNIT_GROUP(.first = setup, .last = teardown);
