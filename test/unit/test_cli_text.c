/* What the command line prints: numbers, tables, status lines, results, logs
 * and traces against golden files; nothing of the data may reach the terminal
 * as a control sequence. */
#include "unit.h"

#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/util.h"
#include "cli/logtext.h"
#include "cli/face.h"
#include "cli/show.h"
#include "cli/show.h"
#include "cli/term.h"
#include "cli/tracetree.h"
#include "codec/jscan.h"
#include "codec/json.h"

static char *text; /* what was printed to the stream of begin() */
static size_t text_len;

static FILE *begin(void)
{
	FILE *f;

	free(text);
	text = NULL;
	f = open_memstream(&text, &text_len);
	assert_non_null(f);
	return f;
}

static const char *end(FILE *f)
{
	fclose(f);
	return text;
}

TEST(cut)
{
	static const struct {
		const char *in;
		size_t columns;
		const char *out;
		size_t used;
	} cases[] = {
		{"short", 10, "short", 5},
		{"exactly ten", 11, "exactly ten", 11},
		{"too long for it", 8, "too lon…", 8},
		{"two\nlines\tand", 0, "two lines and", 13},
		{"漢字漢字", 8, "漢字漢字", 8},
		{"漢字漢字", 7, "漢字漢…", 7},
		{"漢字漢字", 6, "漢字…", 5},
		{"a\033[31mb", 0, "a\\x1b[31mb", 10},
		{"", 5, "", 0},
		{"abc", 1, "…", 1},
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		FILE *f = begin();
		size_t used = term_cut(f, cases[i].in, strlen(cases[i].in), cases[i].columns);

		assert_string_equal(end(f), cases[i].out);
		assert_int_equal(used, cases[i].used);
	}
}

TEST(table)
{
	static const char *const cells[] = {"ID", "TASK", "S-1", "漢字 \033[2J", "S-123456", "x"};
	struct table t;
	FILE *f;

	table_init(&t, 2);
	for (size_t i = 0; i < ARRAY_LEN(cells); i++)
		table_add(&t, cells[i]);
	f = begin();
	assert_int_equal(table_print(&t, f), 0);
	assert_string_equal(end(f), "ID        TASK\n"
				    "S-1       漢字 \\x1b[2J\n"
				    "S-123456  x\n");
	table_fini(&t);
}

static int fill_table(void)
{
	struct table t;
	FILE *f = fopen("/dev/null", "w");
	int rv;

	table_init(&t, 2);
	table_add(&t, "a");
	table_add(&t, "b");
	rv = table_print(&t, f);
	table_fini(&t);
	fclose(f);
	return rv;
}

TEST(table_without_memory)
{
	int rv = 0, failed = 0;

	FAULT_LOOP(k, {
		rv = fill_table();
		failed += rv == AVA_ENOMEM;
	});
	assert_int_equal(rv, 0);
	assert_true(failed > 0);
}

/* Every line of the golden run through `print`, compared with a golden text. */
static void golden_of(const char *run, const char *name,
		      void (*print)(FILE *f, const char *lines, size_t len))
{
	char path[128];
	size_t len, want_len;
	char *lines = unit_read_src(run, &len), *want;
	FILE *f = begin();

	snprintf(path, sizeof(path), "test/golden/cli/%s", name);
	want = unit_read_src(path, &want_len);
	print(f, lines, len);
	assert_string_equal(end(f), want);
	assert_null(strchr(text, '\033'));
	free(lines);
	free(want);
}

static void golden(const char *name, void (*print)(FILE *f, const char *lines, size_t len))
{
	golden_of("test/golden/cli/run.jsonl", name, print);
}

static void print_logs(FILE *f, const char *lines, size_t len)
{
	struct logtext l = {"2026-11-21", .own = true};
	const char *line;
	size_t at = 0, n;

	while (jsonl_next(lines, len, &at, &line, &n) == 1) {
		json_auto_t *v = json_parse(line, n, NULL);
		/* the times stand at 08:00:00.137, .274 and so on */
		int64_t ms = 1795248000000 + 137 * json_get_int(v, "seq", 0);

		assert_int_equal(logtext_print(&l, f, line, n, ms, NULL), 0);
	}
}

TEST(logs)
{
	golden("logs.txt", print_logs);
}

/* One line in words for each kind there is: nothing is dumped. */
TEST(every_kind)
{
	golden_of("test/golden/cli/events.jsonl", "events.txt", print_logs);
}

/* What the runtime notes for itself is left out unless it is asked for. */
TEST(own_lines)
{
	static const char seal[] = "{\"eventType\":\"Seal\",\"content\":{},\"metadata\":{}}";
	struct logtext l = {"2026-11-21"};
	FILE *f = begin();

	assert_int_equal(logtext_print(&l, f, seal, sizeof(seal) - 1, 1795248000000, NULL), 0);
	assert_string_equal(end(f), "");
	assert_null(strstr(logtext_types(), "Seal"));
	assert_non_null(strstr(logtext_types(), "ToolCall,ToolResult"));
}

/* The lines of a log as the trace that --json prints. */
static struct ava_trace *trace_of(const char *lines, size_t len)
{
	struct ava_error err = {0};
	struct ava_trace *trace = NULL;
	const char *line;
	size_t at = 0, n;
	TEST_BUF(b, 1 << 20);

	buf_adds(&b, "{\"traceId\":\"brave-otter\",\"events\":[");
	while (jsonl_next(lines, len, &at, &line, &n) == 1)
		buf_addf(&b, "%s%.*s", b.data[b.len - 1] == '[' ? "" : ",", (int)n, line);
	buf_adds(&b, "]}");
	if (ava_trace_parse(&trace, b.data, b.len, &err) != 0)
		fail_msg("%s", err.text);
	return trace;
}

static void print_trace(FILE *f, const char *lines, size_t len)
{
	struct ava_trace *trace = trace_of(lines, len);

	assert_int_equal(tracetree_print(trace, f, NULL), 0);
	ava_trace_free(trace);
}

TEST(trace)
{
	golden("trace.txt", print_trace);
}

/* Any kind of event has a line, whatever its content lacks. */
TEST(empty_content)
{
	static const char *const kinds[] = {
		"SessionStart",  "UserMessage",      "SpawnProposed",    "SpawnRejected",
		"SubagentSpawn", "SubagentComplete", "InferStart",       "InferEnd",
		"ToolCall",      "ToolResult",       "ExtendedThinking", "CostUpdate",
		"Limit",         "Exhausted",        "Steering",         "Activity",
		"Error",         "Custom",           "FromTheFuture",    "StateRead",
		"Waiting",
	};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		struct logtext l = {"2026-11-21", .own = true};
		char line[512];
		FILE *f = begin();
		struct ava_trace *trace;
		int n = snprintf(
			line, sizeof(line),
			"{\"timestamp\":\"2026-11-21T08:00:00.137Z\",\"lsn\":1,\"seq\":1,"
			"\"eventType\":\"%s\",\"agentId\":\"S-7f3a2b\",\"sessionId\":\"s\","
			"\"traceId\":\"brave-otter\",\"userId\":\"ben\",\"content\":{},"
			"\"metadata\":{}}\n",
			kinds[i]);

		assert_int_equal(logtext_print(&l, f, line, (size_t)n - 1, 1795248000000, NULL), 0);
		assert_memory_equal(end(f), "[08:00:00] ", 11);
		assert_true(text_len > 12);
		trace = trace_of(line, (size_t)n);
		f = begin();
		assert_int_equal(tracetree_print(trace, f, NULL), 0);
		assert_int_equal(waterfall_print(trace, f, NULL), 0);
		end(f);
		ava_trace_free(trace);
	}
}

TEST(dates)
{
	static const char line[] =
		"{\"eventType\":\"Activity\",\"content\":{\"text\":\"x\"},\"metadata\":{}}";
	struct logtext l = {"2026-11-20"};
	FILE *f = begin();

	logtext_print(&l, f, line, sizeof(line) - 1, 1795248000000, NULL);
	logtext_print(&l, f, line, sizeof(line) - 1, 1795248001000, NULL);
	assert_string_equal(end(f), "-- 2026-11-21 --\n[08:00:00] Activity: x\n"
				    "[08:00:01] Activity: x\n");
}

static json_t *parse(const char *s)
{
	json_t *v = json_parse(s, strlen(s), NULL);

	assert_non_null(v);
	return v;
}

static const char *face(const char *json, bool chat)
{
	json_auto_t *item = parse(json);
	FILE *f = begin();

	face_item(f, item, "WebCrawler", chat);
	assert_true(face_is_silent(item) == (end(f)[0] == '\0'));
	return text;
}

/* What each Item of a run looks like, and those that are told otherwise. */
TEST(items)
{
	static const struct {
		const char *item, *line;
	} rows[] = {
		{"{\"kind\":\"started\",\"run\":\"S-7f3a2b\",\"role\":\"web_crawler\"}",
		 "🚀 Spawning WebCrawler subagent (S-7f3a2b)...\n"},
		{"{\"kind\":\"doing\",\"run\":\"S-7f3a2b\",\"text\":\"Reading "
		 "\\u001b[31motter.ai/pricing\\n\"}",
		 "🔍 [WebCrawler] Reading \\x1b[31motter.ai/pricing \n"},
		{"{\"kind\":\"doing\",\"run\":\"\",\"text\":\"x cannot be reached, trying again\"}",
		 "x cannot be reached, trying again (Ctrl-C stops)\n"},
		{"{\"kind\":\"doing\",\"run\":\"\",\"text\":\"read_file\",\"detail\":{\"call\":"
		 "\"c1.1\"}}",
		 ""},
		{"{\"kind\":\"asked\",\"run\":\"S-7f3a2b\",\"text\":\"Which?\",\"detail\":{\"of\":"
		 "\"question\",\"choices\":[\"json\",\"yaml\"]}}",
		 "❓ [WebCrawler] asks: Which? (1: json, 2: yaml)\nAnswer with: /steer S-7f3a2b "
		 "TEXT\n"},
		{"{\"kind\":\"asked\",\"run\":\"S-7f3a2b\",\"text\":\"Run it?\",\"detail\":{\"of\":"
		 "\"approval\"}}",
		 "❓ [WebCrawler] asks: Run it?\nAnswer with: yes or no, or later /steer S-7f3a2b "
		 "yes|no\n"},
		{"{\"kind\":\"answered\",\"run\":\"S-7f3a2b\",\"ask\":\"S-7f3a2b:c1.1\",\"title\":"
		 "\"x\",\"detail\":{\"answer\":\"answered\"}}",
		 ""},
		{"{\"kind\":\"answered\",\"run\":\"S-7f3a2b\",\"ask\":\"P-19c0de\",\"title\":\"x\","
		 "\"detail\":{\"answer\":\"yes\"}}",
		 ""},
		{"{\"kind\":\"answered\",\"run\":\"S-7f3a2b\",\"ask\":\"P-19c0de\",\"title\":"
		 "\"Confirmed, up to $0.20.\",\"detail\":{\"answer\":\"yes\",\"changes\":\"up to "
		 "$0.20\"}}",
		 "Confirmed, up to $0.20.\n"},
		{"{\"kind\":\"result\",\"run\":\"S-7f3a2b\",\"detail\":{\"status\":\"success\","
		 "\"end\":"
		 "\"Complete\",\"ms\":180200,\"cost_cents\":24.0,\"files\":2,\"citations\":2,"
		 "\"not_found\":1}}",
		 "✅ Subagent [WebCrawler]: Complete (180s, $0.24)\nIt proposes changes in 2 files: "
		 "`ava apply S-7f3a2b` shows them and asks.\n1 of 2 citations were not found where "
		 "they were said to be\n"},
		{"{\"kind\":\"failed\",\"run\":\"S-7f3a2b\",\"detail\":{\"status\":\"timeout\","
		 "\"end\":"
		 "\"Stopped at its limit of 9s\",\"next\":\"go "
		 "on\",\"ms\":9000,\"cost_cents\":null,"
		 "\"estimated\":true}}",
		 "⚠️ Subagent [WebCrawler]: Stopped at its limit of 9s (9s, cost unknown); go "
		 "on\n"},
		{"{\"kind\":\"failed\",\"run\":\"\",\"title\":\"Ava cannot answer: "
		 "no\",\"detail\":{"
		 "\"class\":\"x\"}}",
		 "Ava cannot answer: no\n"},
		{"{\"kind\":\"said\",\"text\":\"hello\"}", ""},
		{"{\"kind\":\"proposed\",\"text\":\"find it\"}", ""},
		{"{\"kind\":\"unknown\"}", ""},
		{"[]", ""},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_string_equal(face(rows[i].item, true), rows[i].line);
}

TEST(status_lines)
{
	static const struct {
		const char *result, *line;
	} ends[] = {
		{"{\"status\":\"success\",\"duration_seconds\":180.2,\"cost_cents\":24.0}",
		 "✅ Subagent [WebCrawler]: Complete (180s, $0.24)\n"},
		{"{\"status\":\"cost_exceeded\",\"stop_reason\":\"cost\",\"duration_seconds\":9,"
		 "\"cost_cents\":50}",
		 "⚠️ Subagent [WebCrawler]: Stopped at its limit of money (9s, $0.50)\n"},
		{"{\"status\":\"error\",\"stop_reason\":\"interrupted\",\"duration_seconds\":1,"
		 "\"cost_cents\":null}",
		 "❌ Subagent [WebCrawler]: Failed, interrupted (1s, cost unknown)\n"},
		{"{\"status\":\"cancelled\",\"stop_reason\":\"cancelled\",\"duration_seconds\":1,"
		 "\"cost_cents\":0}",
		 "⏹️ Subagent [WebCrawler]: Cancelled (1s, $0.00)\n"},
	};
	json_auto_t *status = NULL;
	json_auto_t *doing =
		parse("{\"kind\":\"doing\",\"run\":\"S-7f3a2b\",\"text\":\"Reading\"}");
	json_auto_t *call =
		parse("{\"kind\":\"doing\",\"run\":\"\",\"detail\":{\"call\":\"c1.1\"}}");
	struct progress p;
	FILE *f = begin();

	progress_init(&p, f, "web_crawler");
	progress_still_working(&p, NULL);
	progress_item(&p, doing);
	progress_item(&p, call);
	progress_still_working(&p, NULL);
	status = parse("{\"current_activity\":\"Thinking\"}");
	progress_still_working(&p, status); /* what is no event is asked for */
	json_object_set_new(status, "progress",
			    json_string("reply 7 of 20; the model is reading (2 min)"));
	progress_still_working(&p, status);
	assert_string_equal(end(f), "⏳ Subagent still working: no news yet\n"
				    "🔍 [WebCrawler] Reading\n"
				    "⏳ Subagent still working: Reading\n"
				    "⏳ Subagent still working: Thinking\n"
				    "⏳ Subagent still working: reply 7 of 20; the model is reading "
				    "(2 min)\n");
	for (size_t i = 0; i < ARRAY_LEN(ends); i++) {
		json_auto_t *result = parse(ends[i].result);

		f = begin();
		progress_end(f, "WebCrawler", result, NULL);
		assert_string_equal(end(f), ends[i].line);
	}
}

static const char *result_text(const char *json)
{
	json_auto_t *r = parse(json);
	FILE *f = begin();

	show_result(f, r);
	return end(f);
}

/* What nothing that was read shows is marked where it stands, and counted. */
TEST(failed_citations)
{
	static const char failed[] =
		"{\"status\":\"success\",\"summary\":\"It is at src/a.c:7, not at src/b.c:8.\","
		"\"output\":{\"findings\":[{\"path\":\"src/a.c\",\"line\":7,\"quote\":\"x\"},"
		"{\"path\":\"src/b.c\",\"line\":8,\"quote\":\"y\"},{\"path\":\"src/c.c\"}]},"
		"\"citations\":[{\"path\":\"src/a.c\",\"line\":7,\"quote\":\"x\"}],"
		"\"evidence\":{\"citations_checked\":2,\"citations_failed\":1}}";
	const char *said = result_text(failed);
	json_auto_t *r = parse(failed);
	FILE *f;

	assert_non_null(strstr(said, "It is at src/a.c:7, not at src/b.c:8 (not found where it was "
				     "said to be).\n"));
	assert_non_null(strstr(said, "  src/a.c:7  x\n"
				     "  src/b.c:8 (not found where it was said to be)  y\n"
				     "  src/c.c\n"));
	assert_non_null(strstr(said, "\nCaveats\n  - 1 of 2 citations were not found where they "
				     "were said to be\n"));
	f = begin();
	progress_end(f, "researcher", r, NULL);
	assert_non_null(strstr(end(f), "Complete (0s, cost unknown)\n1 of 2 citations were not "));
}

/* What a model said on its way is not shown as what it found. */
TEST(no_result)
{
	assert_null(strstr(result_text("{\"status\":\"cancelled\",\"summary\":\"Looking\","
				       "\"partial\":true}"),
			   "Looking"));
	assert_non_null(strstr(result_text("{\"status\":\"timeout\",\"summary\":\"Looking\","
					   "\"partial\":true}"),
			       "It said last: Looking\n\nCaveats\n  - partial: "));
	assert_null(
		strstr(result_text("{\"status\":\"timeout\",\"summary\":\"Stopped at its limit of "
				   "time after 0 replies, without a result.\",\"partial\":true,"
				   "\"confidence\":0.0}"),
		       "Stopped"));
	assert_null(strstr(text, "confidence"));
}

/* Where something is cut, where all of it is. */
TEST(cut_result)
{
	char json[1200], word[600];

	memset(word, 'w', sizeof(word) - 1);
	word[sizeof(word) - 1] = '\0';
	snprintf(json, sizeof(json), "{\"subagent_id\":\"S-7f3a2b\",\"output\":{\"a\":\"%s\"}}",
		 word);
	assert_non_null(
		strstr(result_text(json), "All of it, uncut: ava result S-7f3a2b --json\n"));
	assert_null(strstr(result_text("{\"output\":{\"a\":\"short\"}}"), "uncut"));
}

TEST(result)
{
	json_auto_t *r = parse(
		"{\"subagent_id\":\"S-7f3a2b\",\"status\":\"success\",\"stop_reason\":"
		"\"submitted\","
		"\"summary\":\"One place.\\nIt is "
		"\\u001b[1mthis\\u001b[0m.\",\"output\":{\"findings\":"
		"[{\"path\":\"src/a.c\",\"line\":7,\"quote\":\"fsync(fd)\",\"why\":\"flushes\"}],"
		"\"count\":1,\"none\":[]},\"confidence\":0.5,\"caveats\":[\"words, not meaning\"],"
		"\"error\":null,\"tokens_used\":12345,\"cost_cents\":0.0,\"duration_seconds\":1.5,"
		"\"iterations\":3,\"model\":\"offline\",\"trace_id\":\"brave-otter\",\"citations\":"
		"["
		"{\"path\":\"src/a.c\",\"line\":7,\"quote\":\"fsync(fd)\"},{\"url\":\"https://x\","
		"\"quote\":\"y\"}],\"partial\":true,\"unverified\":false}");
	FILE *f = begin();

	show_result(f, r);
	assert_string_equal(end(f), "  One place.\n"
				    "  It is \\x1b[1mthis\\x1b[0m.\n"
				    "  count: 1\n"
				    "\n  Findings\n"
				    "  src/a.c:7  fsync(fd)\n"
				    "      flushes\n"
				    "\nCitations\n"
				    "  https://x  y\n"
				    "\nCaveats\n"
				    "  - words, not meaning\n"
				    "  - partial: the run was stopped before it was done\n"
				    "\n1.5s, 12k tokens, $0.00, 3 replies, confidence 0.50, model "
				    "offline\n"
				    "Log: ava logs S-7f3a2b, ava trace S-7f3a2b\n");
}

/* Any JSON may stand in a result: nothing breaks. */
TEST(odd_results)
{
	static const char *const odd[] = {
		"{}",
		"{\"output\":[1,\"two\",{\"three\":3}],\"caveats\":\"one\",\"citations\":{}}",
		"{\"output\":\"text\",\"summary\":5,\"error\":{\"a\":1},\"caveats\":[[]]}",
		"{\"output\":{\"a\":{\"b\":[{\"path\":5}]},\"c\":[null]},\"citations\":[1,null]}",
		"{\"output\":7.5,\"error\":\"it broke\"}",
	};

	for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
		json_auto_t *r = parse(odd[i]);
		FILE *f = begin();

		show_result(f, r);
		assert_non_null(strstr(end(f), "tokens"));
	}
}

static int setup(void **state)
{
	/* Before anything looks: the answer is kept. */
	setenv("LC_ALL", "C.UTF-8", 1);
	setenv("TERM", "xterm", 1);
	setenv("TZ", "UTC", 1);
	tzset();
	return 0;
}

static int teardown(void **state)
{
	free(text);
	return 0;
}

UNIT_GROUP(.first = setup, .last = teardown);
