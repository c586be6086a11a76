/* Replay over a recorded run (test/golden/replay): as it is, with one thing
 * changed after the other, cut off at every line, and without memory. */
#include "unit.h"

#include <ava.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/util.h"
#include "provider/head.h"
#include "subagent/replay.h"

#define RUN "S-7f3a2b"

static char root[256], messages_path[320], log_path[320];
static char *messages, *events, *head_text; /* as they were recorded */
static size_t messages_len, events_len;

static void put_back(void)
{
	unit_write(messages_path, messages, messages_len);
	unit_write(log_path, events, events_len);
}

static int setup(void **state)
{
	char path[400], below[HEAD_PATH];
	struct slice name;
	size_t at = 0, len;

	snprintf(root, sizeof(root), "%s", unit_tmpdir());
	snprintf(messages_path, sizeof(messages_path), "%s/runs/" RUN "/messages.jsonl", root);
	snprintf(log_path, sizeof(log_path), "%s/logs/subagents/" RUN ".jsonl", root);
	for (size_t i = 0; i < 5; i++) {
		static const char *const dirs[] = {"runs", ("runs/" RUN), "logs", "logs/subagents",
						   "heads"};

		snprintf(path, sizeof(path), "%s/%s", root, dirs[i]);
		assert_int_equal(mkdir(path, 0700), 0);
	}
	messages = unit_read_src("test/golden/replay/messages.jsonl", &messages_len);
	events = unit_read_src("test/golden/replay/" RUN ".jsonl", &events_len);
	put_back();
	assert_true(head_next(messages, messages_len, &at, &name));
	head_path(name, below);
	snprintf(path, sizeof(path), "test/golden/replay/%s", below);
	head_text = unit_read_src(path, &len);
	snprintf(path, sizeof(path), "%s/%s", root, below);
	unit_write(path, head_text, len);
	return 0;
}

static int teardown(void **state)
{
	free(messages);
	free(events);
	free(head_text);
	unit_rmdir(root);
	return 0;
}

static int replay(struct replay_report *out, bool lenient, struct ava_error *err)
{
	int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rv;

	assert_true(fd >= 0);
	rv = replay_run(fd, RUN, NULL, lenient, out, err);
	close(fd);
	return rv;
}

static void replayed(struct replay_report *out, bool lenient)
{
	struct ava_error err = {0};

	if (replay(out, lenient, &err) != 0)
		fail_msg("%s", err.text);
}

TEST(replays_identically)
{
	struct replay_report r;

	replayed(&r, false);
	if (r.ndiffs > 0)
		fail_msg("event %d: %s", (int)r.diffs[0].seq, r.diffs[0].what);
	assert_true(r.complete);
	assert_string_equal(r.reason, "");
	assert_int_equal(r.turns, 6);
	assert_int_equal(r.events, 41);
}

TEST(no_such_run)
{
	struct replay_report r;
	struct ava_error err;
	int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	assert_int_equal(replay_run(fd, "S-000000", NULL, false, &r, &err), AVA_ENOENT);
	unlink(messages_path);
	assert_int_equal(replay_run(fd, RUN, NULL, false, &r, &err), AVA_ENOENT);
	close(fd);
	put_back();
}

/* One text of line `line` (from 1) of a file becomes another one. */
struct change {
	bool log; /* else messages.jsonl */
	int line;
	const char *from, *to;
	const char *event, *call; /* where it must be found */
	const char *what;
};

static void change_file(const struct change *c)
{
	const char *text = c->log ? events : messages, *at = text, *end;
	size_t len = c->log ? events_len : messages_len;
	size_t from = strlen(c->from), to = strlen(c->to), before;
	char *out = malloc(len + to);

	assert_non_null(out);
	for (int i = 1; i < c->line; i++)
		at = strchr(at, '\n') + 1;
	end = strchr(at, '\n');
	at = strstr(at, c->from);
	if (at == NULL || at > end)
		fail_msg("line %d has no %s", c->line, c->from);
	before = (size_t)(at - text);
	memcpy(out, text, before);
	memcpy(out + before, c->to, to);
	memcpy(out + before + to, at + from, len - before - from);
	unit_write(c->log ? log_path : messages_path, out, len - from + to);
	free(out);
}

TEST(finds_what_was_changed)
{
	/* clang-format off */
	static const struct change changes[] = {
		/* the task */
		{false, 2, "find kettle", "find cattle", "InferStart", "i1", "the hash of"},
		/* the model, what was confirmed */
		{false, 1, "\"model\":\"offline:/script", "\"model\":\"offline:/skript", "SubagentSpawn", "", "the model"},
		{false, 1, "\"tokens\":", "\"tokens\":1", "SubagentSpawn", "", "its limits"},
		{true, 3, "\"model\":\"offline:/script", "\"model\":\"offline:/skript", "InferStart", "i1", "the model"},
		/* replies */
		{false, 3, "Looking.", "Lurking.", "InferStart", "i2", "the hash of"},
		{false, 3, "\"pattern\":\"kettle\"", "\"pattern\":\"cattle\"", "InferStart", "i2", "the hash of"},
		{false, 3, "\"name\":\"search_codebase\"", "\"name\":\"search_and_read\"", "InferStart", "i2", "the hash of"},
		/* results */
		{false, 4, "int kettle(void)", "int kettle(char)", "ToolResult", "c1.1", "the output of search_codebase"},
		{true, 21, "return 1;", "return 2;", "ToolResult", "c2.1", "the output of read_file"},
		{false, 6, "return 1;", "return 2;", "ToolResult", "c2.1", "the output of read_file"},
		{false, 6, "\"is_error\":true", "\"is_error\":null", "InferStart", "i3", "the line of results"},
		{false, 7, "was empty", "was emptx", "InferStart", "i4", "the line of results"},
		{false, 11, "unchanged since c2.1", "unchanged since c1.1", "ToolResult", "c5.1", "the output of read_file"},
		/* where the machine stands */
		{true, 26, "\"oddReplies\":1", "\"oddReplies\":2", "StateWrite", "", "where the machine stands"},
		/* the end */
		{true, 41, "\"stopReason\":\"submitted\"", "\"stopReason\":\"final_text\"", "SubagentComplete", "", "the reason to stop"},
		{true, 41, "\"summary\":\"kettle", "\"summary\":\"cattle", "SubagentComplete", "", "the summary"},
	};
	/* clang-format on */

	for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
		const struct change *c = &changes[i];
		struct replay_report r;

		change_file(c);
		replayed(&r, false);
		if (r.ndiffs != 1 || strcmp(r.diffs[0].type, c->event) != 0 ||
		    strcmp(r.diffs[0].call, c->call) != 0 ||
		    strncmp(r.diffs[0].what, c->what, strlen(c->what)) != 0)
			fail_msg("%s: found %u, at %s %s: %s (%s, %s)", c->to, r.ndiffs,
				 r.diffs[0].type, r.diffs[0].call, r.diffs[0].what,
				 r.diffs[0].recorded, r.diffs[0].replayed);
		assert_false(r.complete);
		put_back();
	}
}

/* Another head, and one whose file is damaged or missing. */
TEST(finds_another_head)
{
	char *text = strdup(head_text), was[HASH_HEX_LEN + 1], name[HASH_HEX_LEN + 1], path[400];
	const struct change c = {false, 1, was, name, "InferStart", "i1", "the hash of"};
	struct replay_report r;
	struct ava_error err;

	memcpy(strstr(text, "working on a focused task"), "weeping", 7);
	hash_sha256_hex(head_text, strlen(head_text), was);
	hash_sha256_hex(text, strlen(text), name);
	snprintf(path, sizeof(path), "%s/heads/%s", root, name);
	change_file(&c);
	assert_int_equal(replay(&r, false, &err), AVA_ECORRUPT);
	assert_non_null(strstr(err.text, "is missing"));
	unit_write(path, head_text, strlen(head_text));
	assert_int_equal(replay(&r, false, &err), AVA_ECORRUPT);
	assert_non_null(strstr(err.text, "is not what was written"));
	unit_write(path, text, strlen(text));
	replayed(&r, false);
	assert_int_equal(r.ndiffs, 1);
	assert_string_equal(r.diffs[0].call, "i1");
	assert_memory_equal(r.diffs[0].what, "the hash of", 11);
	free(text);
	put_back();
}

/* Byte for byte: what went to the model cannot change without being found. */
TEST(finds_every_byte_that_was_sent)
{
	const char *last = strstr(messages, "{\"role\":\"assistant\",\"content\":[{\"type\":"
					    "\"tool_use\",\"id\":\"toolu_6_1\"");
	const char *head = strstr(messages, "\"head\":\"");
	struct replay_report r;
	struct ava_error err;

	assert_non_null(last);
	assert_non_null(head);
	for (size_t at = (size_t)(head - messages) + 8; at < (size_t)(last - messages); at += 37) {
		char *copy = malloc(messages_len);

		assert_non_null(copy);
		memcpy(copy, messages, messages_len);
		copy[at] ^= 1;
		unit_write(messages_path, copy, messages_len);
		free(copy);
		if (replay(&r, false, &err) == 0 && r.ndiffs == 0 && r.complete)
			fail_msg("byte %zu was changed, nothing was found", at);
	}
	put_back();
}

/* Where bytes alone differ one may go on with those of the record. */
TEST(lenient_goes_on)
{
	static const struct change c = {true, 21, "return 1;", "return 2;", NULL, NULL, NULL};
	struct replay_report r;

	change_file(&c);
	replayed(&r, true);
	assert_int_equal(r.ndiffs, 1);
	assert_int_equal(r.diffs[0].byte, 59);
	assert_int_equal(r.events, 41);
	put_back();
}

/* A record that was cut off between two lines is gone through as far as it is. */
TEST(cut_off_anywhere)
{
	struct replay_report r;

	for (const char *at = events; (at = strchr(at, '\n')) != NULL; at++) {
		size_t len = (size_t)(at + 1 - events);

		if (len == events_len)
			break;
		unit_write(log_path, events, len);
		replayed(&r, false);
		if (r.ndiffs > 0)
			fail_msg("%zu bytes: event %d: %s", len, (int)r.diffs[0].seq,
				 r.diffs[0].what);
		assert_false(r.complete);
		assert_true(r.reason[0] != '\0');
	}
	put_back();
}

/* A record that ends otherwise: its first lines, with a command in place of the search, and what
 * the first reply's calls came to. */
struct ending {
	const char *name;
	int lines, messages;           /* that are kept */
	const char *command, *reading; /* results of calls c1.1 and c1.3; NULL: of c6.1 alone */
	const char *events[7][2];      /* kind and content */
};

#define WENT_ON                                                                                    \
	{                                                                                          \
		"Custom", "{\"customType\":\"carried_on\",\"data\":{\"clockMs\":10}}"              \
	}
#define NO_TOOL                                                                                    \
	"there is no tool \\\"no_such_tool\\\"; the tools are: read_file, run_bash, "              \
	"search_and_read, read_result, ask_person, submit_result"
#define TIMED_OUT "stopped: the run has reached its time limit; it may have had effects"
#define CANCELLED "stopped: the run was cancelled; it may have had effects"
#define INTERRUPTED                                                                                \
	"interrupted: the runtime stopped before there was a result; it may have happened"
#define RESULT(call, class, ran, output)                                                           \
	{                                                                                          \
		"ToolResult", "{\"callId\":\"" call "\",\"success\":false,\"output\":\"" output    \
			      "\",\"errorClass\":\"" class "\"" ran "}"                            \
	}
#define RAN ",\"ran\":true"
#define COMPLETE(status, reason, summary, iterations)                                              \
	{                                                                                          \
		"SubagentComplete", "{\"status\":\"" status "\",\"stopReason\":\"" reason          \
				    "\",\"summary\":\"" summary                                    \
				    "\",\"totals\":{\"iterations\":" iterations "}}"               \
	}

/* The first lines of the text, with `to` for `from` where that is no NULL. */
static void add_lines(struct buf *out, const char *text, int n, const char *from, const char *to)
{
	const char *at, *end = text;

	while (n-- > 0)
		end = strchr(end, '\n') + 1;
	while (to != NULL && (at = strstr(text, from)) != NULL && at < end) {
		buf_add(out, text, (size_t)(at - text));
		buf_adds(out, to);
		text = at + strlen(from);
	}
	buf_add(out, text, (size_t)(end - text));
}

static void write_ending(const struct ending *e)
{
	bool command = e->command != NULL;
	struct buf named, log, lines;

	buf_init(&named, 1u << 20);
	buf_init(&log, 1u << 20);
	buf_init(&lines, 1u << 20);
	add_lines(&log, events, e->lines, "search_codebase", command ? "run_bash" : NULL);
	for (int i = 0; e->events[i][0] != NULL; i++)
		buf_addf(&log,
			 "{\"timestamp\":\"2026-11-21T20:20:18.000Z\",\"lsn\":%d,\"seq\":%d,"
			 "\"eventType\":\"%s\",\"agentId\":\"" RUN "\",\"sessionId\":\"\","
			 "\"traceId\":\"elegant-beaver\",\"userId\":\"ben\",\"content\":%s,"
			 "\"metadata\":{}}\n",
			 100 + i, e->lines + 1 + i, e->events[i][0], e->events[i][1]);
	add_lines(&named, messages, e->messages, "\"search_codebase\"",
		  command ? "\"run_bash\"" : NULL);
	buf_addc(&named, '\0');
	add_lines(&lines, named.data, e->messages,
		  "{\"pattern\":", command ? "{\"command\":" : NULL);
	buf_adds(&lines, "{\"role\":\"user\",\"content\":[");
	if (command)
		buf_addf(&lines,
			 "{\"type\":\"tool_result\",\"tool_use_id\":\"toolu_1_1\","
			 "\"content\":\"%s\",\"is_error\":true},"
			 "{\"type\":\"tool_result\",\"tool_use_id\":\"toolu_1_2\","
			 "\"content\":\"" NO_TOOL "\",\"is_error\":true},"
			 "{\"type\":\"tool_result\",\"tool_use_id\":\"toolu_1_3\","
			 "\"content\":\"%s\",\"is_error\":true}]}\n",
			 e->command, e->reading);
	else
		buf_addf(&lines,
			 "{\"type\":\"tool_result\",\"tool_use_id\":\"toolu_6_1\","
			 "\"content\":\"%s\",\"is_error\":true}]}\n",
			 CANCELLED);
	unit_write(log_path, log.data, log.len);
	unit_write(messages_path, lines.data, lines.len);
	buf_fini(&named);
	buf_fini(&log);
	buf_fini(&lines);
}

/* clang-format off */
static const struct ending endings[] = {
	{"killed at work, and cancelled before it goes on", 11, 3, CANCELLED, CANCELLED, {
		WENT_ON, RESULT("c1.1", "cancelled", "", CANCELLED),
		RESULT("c1.3", "cancelled", "", CANCELLED),
		COMPLETE("cancelled", "cancelled", "Looking.", "1")}},
	{"killed at work, and cancelled when it goes on", 11, 3, INTERRUPTED, CANCELLED, {
		WENT_ON, RESULT("c1.1", "interrupted", "", INTERRUPTED),
		RESULT("c1.3", "cancelled", RAN, CANCELLED),
		COMPLETE("cancelled", "cancelled", "Looking.", "1")}},
	{"its time is over while its tools are at work", 11, 3, TIMED_OUT, TIMED_OUT, {
		RESULT("c1.1", "limit", RAN, TIMED_OUT),
		RESULT("c1.3", "limit", RAN, TIMED_OUT),
		{"Exhausted", "{\"resource\":\"time\"}"},
		COMPLETE("timeout", "time", "Looking.", "1")}},
	{"killed when its result had come, and cancelled", 39, 12, NULL, NULL, {
		WENT_ON, RESULT("c6.1", "cancelled", "", CANCELLED),
		COMPLETE("cancelled", "cancelled", "It is there.", "6")}},
};
/* clang-format on */

/* What a stop or an end cut off is in the record as it was found, and replays so. */
TEST(ends_from_outside)
{
	for (size_t i = 0; i < ARRAY_LEN(endings); i++) {
		struct replay_report r;

		write_ending(&endings[i]);
		replayed(&r, false);
		if (r.ndiffs > 0 || !r.complete)
			fail_msg("%s: event %d, %s: %s, replayed %s (%s)", endings[i].name,
				 (int)r.diffs[0].seq, r.diffs[0].what, r.diffs[0].recorded,
				 r.diffs[0].replayed, r.reason);
	}
	put_back();
}

/* Where the lines of a call end: a fork begins there. */
TEST(seeks_a_call)
{
	static const int lines[] = {2, 4, 6, 7, 9, 11}; /* before the replies of calls 1 to 6 */
	static const struct change c = {false, 4, "(void)", "(char)", NULL, NULL, NULL};
	int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct ava_error err = {0};
	size_t at;

	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		const char *end = messages;

		for (int n = 0; n < lines[i]; n++)
			end = strchr(end, '\n') + 1;
		assert_int_equal(replay_seek(fd, RUN, (int)i + 1, &at, &err), 0);
		assert_int_equal(at, end - messages);
	}
	assert_int_equal(replay_seek(fd, RUN, 7, &at, &err), AVA_ENOENT);
	change_file(&c);
	assert_int_equal(replay_seek(fd, RUN, 1, &at, &err), 0);
	assert_int_equal(replay_seek(fd, RUN, 3, &at, &err), AVA_ECORRUPT);
	assert_non_null(strstr(err.text, "the output of search_codebase"));
	close(fd);
	put_back();
}

static void once(void)
{
	struct replay_report r;
	struct ava_error err;

	(void)replay(&r, false, &err);
}

TEST(replays_without_memory)
{
	FAULT_LOOP(k, once());
	write_ending(&endings[1]);
	FAULT_LOOP(k, once());
	put_back();
}

UNIT_GROUP(.first = setup, .last = teardown);
