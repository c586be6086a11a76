/* Rights, through the routes: what a run may see and where it may send, computed from its tools,
 * its folder, its grants and what it is told; and that all three together start only by a yes
 * that says so. The tools are added here under any name: nothing goes by names. */
#include "gateway_rig.h"

#include "agent/tool.h"
#include "base/rights_words.h"
#include "base/util.h"
#include "subagent/rights.h"

#define RUNS "/api/v1/runs"
/* A model that may use the web, which the offline one itself may not. */
#define SCRIPT ",\"model\":\"offline:/dev/null\""
#define SAYS   "say \"yes, all three\""

static void fetch_start(struct tool_call *c)
{
	c->success = true;
	buf_adds(&c->out, "What a stranger wrote.");
	c->done(c);
}

#define SCHEMA "{\"type\":\"object\",\"additionalProperties\":true}"
/* In the roles' lists of wishes under these names; what they are is in their flags. */
static const struct tool web = {.name = "web_search",
				.description = "Fetches.",
				.schema = SCHEMA,
				.flags = TOOL_REPEATABLE | TOOL_UNTRUSTED | TOOL_OUT,
				.start = fetch_start};
static char path[200];

static const char *at(const char *fmt, const char *id)
{
	snprintf(path, sizeof(path), fmt, id);
	return path;
}

/* A researcher on the rig's folder: it reads files there and searches the web. */
static json_t *ask_for(const char *more, int status)
{
	char body[1200];

	snprintf(body, sizeof(body),
		 "{\"task\":\"Where is main?\",\"role\":\"researcher\",\"cwd\":\"%s\"%s}", rig.src,
		 more);
	return rig_ask("POST", RUNS, body, status);
}

static void proposed(const char *more, char id[64])
{
	json_auto_t *v = ask_for(more, 201);

	assert_string_equal(json_get_str(v, "state"), "pending");
	snprintf(id, 64, "%s", json_get_str(v, "proposal_id"));
}

static json_t *confirm(const char *id, const char *answer, int status)
{
	char body[300];

	snprintf(body, sizeof(body), "{\"answer\":\"%s\"}", answer);
	return rig_ask("POST", at("/api/v1/proposals/%s/confirm", id), body, status);
}

static void refused(json_t *v, const char *says)
{
	const char *text = json_get_str(json_object_get(v, "error"), "message");

	if (!text || !strstr(text, says))
		fail_msg("\"%s\" does not say \"%s\"", text ? text : "", says);
	json_decref(v);
}

static unsigned rights_in(const json_t *v)
{
	return rights_read(json_object_get(v, "rights"));
}

/* Of an answer, which is *taken*. */
static void rights_are(json_t *v, unsigned want)
{
	assert_int_equal(rights_in(v), want);
	json_decref(v);
}

static void quoted(json_t *v, unsigned want)
{
	assert_int_equal(rights_in(json_object_get(v, "quote")), want);
	json_decref(v);
}

static bool in_log(const char *text)
{
	char command[900];

	snprintf(command, sizeof(command), "grep -rqF '%s' %s/logs/ava %s/logs/subagents", text,
		 rig.root, rig.root);
	return system(command) == 0;
}

/* ---- the words */

TEST(words_of_each_set)
{
	static const struct {
		unsigned set, reads;
		const char *words;
	} all[] = {
		{0, 0, "reads none of your data, no network"},
		{TOOL_PRIVATE, RIGHTS_FILES, "reads your files, no network"},
		{TOOL_UNTRUSTED, 0, "reads none of your data, reads the web, can't send data out"},
		{TOOL_PRIVATE | TOOL_OUT, RIGHTS_MEMORIES,
		 "reads your memories, does not read the web, can send data out"},
		{RIGHTS_ALL, RIGHTS_FILES | RIGHTS_OTHER,
		 "reads your files and other data, reads the web, can send data out"},
	};
	struct buf out;

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		buf_init(&out, 100);
		rights_words(&out, all[i].set, all[i].reads);
		assert_string_equal(out.data, all[i].words);
		buf_fini(&out);
	}
}

/* ---- one run */

TEST(a_yes_that_says_so)
{
	json_t *v = ask_for("", 201), *quote = json_object_get(v, "quote");
	const char *message = json_get_str(v, "message");
	char id[64], run[64];

	snprintf(id, sizeof(id), "%s", json_get_str(v, "proposal_id"));
	assert_int_equal(rights_in(quote), RIGHTS_ALL);
	assert_true(json_get_bool(quote, "allThree", false));
	assert_non_null(strstr(message, "• Rights: reads your files and memories, reads the web, "
					"can send data out\n"));
	assert_non_null(strstr(message, SAYS));
	/* The prompt has the answers that count, the one that needs no more than a yes first. */
	assert_non_null(strstr(message, "\nProceed? [Yes, without web_search/Yes, all three/No]"));
	json_decref(v);
	/* Whoever says yes as to any other quote has not read the sentence. */
	refused(confirm(id, "yes", 400), SAYS);
	refused(confirm(id, "yes, max 5 cents", 400), SAYS);
	refused(confirm(id, "all three", 400), "yes or no");
	refused(rig_ask("POST", at("/api/v1/proposals/%s/confirm", id), "{}", 400), SAYS);
	/* Also the next start knows that it needs one. */
	rig_restart(false);
	refused(confirm(id, "yes", 400), SAYS);
	v = confirm(id, "Yes, all three.", 200);
	assert_string_equal(json_get_str(v, "state"), "confirmed");
	snprintf(run, sizeof(run), "%s", json_get_str(v, "subagent_id"));
	json_decref(v);
	rights_are(rig_ask("GET", at(RUNS "/%s", run), NULL, 200), RIGHTS_ALL);
	rights_are(rig_ask("GET", at(RUNS "/%s/result?wait=30", run), NULL, 200), RIGHTS_ALL);
	assert_true(in_log("\"allThree\":true},\"metadata\""));
	assert_true(in_log("\"rights\":{\"private\":true,\"untrusted\":true,\"out\":true},"
			   "\"proposalId\""));
	v = rig_ask("GET", at(RUNS "/%s", run), NULL, 200); /* it has ended: from its file */
	rights_are(v, RIGHTS_ALL);
}

/* A run on the web alone has no third right by what is remembered of the person, unless that is
 * wanted. */
TEST(what_is_remembered)
{
	json_auto_t *v =
		rig_ask("POST", RUNS, "{\"task\":\"prices\",\"role\":\"researcher\"}", 201);

	assert_int_equal(rights_in(json_object_get(v, "quote")), TOOL_UNTRUSTED | TOOL_OUT);
	assert_null(strstr(json_get_str(v, "message"), "memory_search"));
	quoted(rig_ask("POST", RUNS,
		       "{\"task\":\"prices\",\"role\":\"researcher\",\"tools\":[\"web_search\","
		       "\"memory_search\"]}",
		       201),
	       RIGHTS_ALL);
}

TEST(less_needs_no_more_than_yes)
{
	char id[64];
	json_t *v;

	proposed("", id);
	v = confirm(id, "yes, without web_search", 200);
	assert_string_equal(json_get_str(v, "state"), "confirmed");
	json_decref(v);
	v = ask_for(",\"tools\":[\"web_search\"]", 201);
	assert_int_equal(rights_in(json_object_get(v, "quote")), TOOL_UNTRUSTED | TOOL_OUT);
	assert_null(strstr(json_get_str(v, "message"), SAYS));
	json_decref(v);
	/* An address that a model may make up is a way out; without a tool that fetches it is none.
	 */
	quoted(ask_for(",\"tools\":[\"read_webpages\",\"read_file\"]" SCRIPT, 201), RIGHTS_SEEN);
	quoted(ask_for(",\"tools\":[\"read_webpages\",\"read_file\"],\"grants\":[\"fetch_"
		       "any\"]" SCRIPT,
		       201),
	       RIGHTS_ALL);
	quoted(ask_for(",\"tools\":[\"read_file\"],\"grants\":[\"fetch_any\"]", 201), TOOL_PRIVATE);
}

/* Nothing that asks nobody gets past it. */
TEST(nobody_is_asked)
{
	char id[64];
	json_t *v;

	refused(ask_for(",\"confirm\":\"never\"", 403), "all_three");
	refused(ask_for(",\"confirm\":\"over_cents:100\"", 403), "all_three");
	refused(ask_for(",\"confirmed\":true", 403), "all_three");
	rig.settings.confirm_over_cents = SETTINGS_CONFIRM_NEVER;
	rig_restart(false);
	proposed("", id);
	refused(confirm(id, "yes", 400), SAYS);
	v = ask_for(",\"tools\":[\"web_search\"]", 201); /* two of them: the setting holds */
	assert_string_equal(json_get_str(v, "state"), "confirmed");
	json_decref(v);
	v = ask_for(",\"grants\":[\"all_three\"],\"confirmed\":true", 201);
	assert_non_null(json_get_str(v, "subagent_id"));
	json_decref(v);
	v = ask_for(",\"grants\":[\"all_three\"],\"confirm\":\"never\"", 201);
	assert_string_equal(json_get_str(v, "state"), "confirmed");
	json_decref(v);
}

/* ---- what is passed on */

static unsigned member_rights(const json_t *quote, size_t i)
{
	return rights_in(json_array_get(json_object_get(quote, "members"), i));
}

static json_t *group(const char *first, const char *second, const char *how)
{
	char body[2000];

	snprintf(body, sizeof(body),
		 "{\"cwd\":\"%s\",\"runs\":[{\"task\":\"a\",\"model\":\"offline:%s/end.jsonl\",%s},"
		 "{\"task\":\"b\",%s}],%s}",
		 rig.src, rig.src, first, second, how);
	return rig_ask("POST", "/api/v1/groups", body, 201);
}

#define FILES "\"role\":\"code_reviewer\",\"tools\":[\"read_file\",\"search_codebase\"]"
#define WEB   "\"role\":\"researcher\",\"tools\":[\"web_search\"]"

#define SECOND_SPAWNED                                                                             \
	"\"rights\":{\"private\":true,\"untrusted\":true,\"out\":false},\"proposalId\""

TEST(chain)
{
	json_t *v, *quote, *r;
	char id[64];

	rig_write("end.jsonl", "{\"tool_calls\":[{\"name\":\"submit_result\",\"args\":{\"summary\":"
			       "\"ok\",\"confidence\":1}}]}\n");
	v = group(WEB, FILES, "\"chain\":true");
	quote = json_object_get(v, "quote");

	/* What the second gets is a stranger's, though it has no tool for it; it cannot send. */
	assert_int_equal(member_rights(quote, 0), TOOL_UNTRUSTED | TOOL_OUT);
	assert_int_equal(member_rights(quote, 1), TOOL_UNTRUSTED | TOOL_PRIVATE);
	assert_false(json_get_bool(quote, "allThree", true));
	snprintf(id, sizeof(id), "%s", json_get_str(v, "proposal_id"));
	json_decref(v);
	json_decref(confirm(id, "yes", 200));
	for (int i = 0; i < 3000 && !in_log(SECOND_SPAWNED); i++)
		usleep(20000);
	assert_true(in_log(SECOND_SPAWNED));
	/* The other way round the second has what the first read, strangers' words and a way out.
	 */
	v = group(FILES, WEB, "\"chain\":true");
	quote = json_object_get(v, "quote");
	assert_int_equal(member_rights(quote, 0), TOOL_PRIVATE);
	assert_int_equal(member_rights(quote, 1), RIGHTS_ALL);
	assert_true(json_get_bool(quote, "allThree", false));
	assert_non_null(strstr(json_get_str(v, "message"), "run 2, what a stranger wrote"));
	snprintf(id, sizeof(id), "%s", json_get_str(v, "proposal_id"));
	json_decref(v);
	refused(confirm(id, "yes", 400), SAYS);
	/* A tool that one of them has is left out of that one; the prompt says that it can be. */
	refused(confirm(id, "yes, without run_bash", 400), "no tool run_bash");
	r = confirm(id, "yes, without web_search", 200);
	assert_string_equal(json_get_str(r, "state"), "confirmed");
	json_decref(r);
}

TEST(side_by_side)
{
	json_t *v, *quote;

	rig_write("end.jsonl", "\n");
	v = group(FILES, WEB, "\"share\":false");
	quote = json_object_get(v, "quote");
	assert_int_equal(member_rights(quote, 0), TOOL_PRIVATE);
	assert_int_equal(member_rights(quote, 1), TOOL_UNTRUSTED | TOOL_OUT);
	assert_false(json_get_bool(quote, "allThree", true)); /* none of them has */
	json_decref(v);
	v = group(FILES, WEB, "\"share\":true");
	quote = json_object_get(v, "quote");
	assert_int_equal(member_rights(quote, 0), TOOL_PRIVATE | TOOL_UNTRUSTED);
	assert_int_equal(member_rights(quote, 1), RIGHTS_ALL);
	json_decref(v);
}

/* It goes on with what that run had, or less; what is in its conversation it has seen. */
TEST(resumed)
{
	char id[64], run[64], body[600];
	json_t *v;

	proposed(",\"grants\":[\"all_three\",\"fetch_any\"]", id);
	v = confirm(id, "yes", 200);
	snprintf(run, sizeof(run), "%s", json_get_str(v, "subagent_id"));
	json_decref(v);
	json_decref(rig_ask("GET", at(RUNS "/%s/result?wait=30", run), NULL, 200));
	quoted(rig_ask("POST", at(RUNS "/%s/resume", run), "{\"tools\":[\"read_file\"]}", 201),
	       RIGHTS_SEEN);
	/* A yes to all three was to that run. */
	v = rig_ask("POST", at(RUNS "/%s/resume", run), "{}", 201);
	assert_int_equal(rights_in(json_object_get(v, "quote")), RIGHTS_ALL);
	assert_non_null(strstr(json_get_str(v, "message"), SAYS));
	assert_int_equal(json_array_size(json_object_get(json_object_get(v, "quote"), "grants")),
			 1);
	json_decref(v);
	refused(rig_ask("POST", at(RUNS "/%s/resume", run), "{\"confirm\":\"never\"}", 403),
		"all_three");
	refused(rig_ask("POST", at(RUNS "/%s/resume", run), "{\"confirmed\":true}", 403),
		"all_three");
	refused(rig_ask("POST", at(RUNS "/%s/resume", run), "{\"grants\":[\"rw\"]}", 403),
		"was not granted rw");
	refused(rig_ask("POST", at(RUNS "/%s/resume", run), "{\"cwd\":\"/usr\"}", 403),
		"nowhere else");
	snprintf(body, sizeof(body), "{\"tools\":[\"read_file\"],\"confirmed\":true}");
	v = rig_ask("POST", at(RUNS "/%s/resume", run), body, 201);
	snprintf(run, sizeof(run), "%s", json_get_str(v, "subagent_id"));
	json_decref(v);
	json_decref(rig_ask("GET", at(RUNS "/%s/result?wait=30", run), NULL, 200));
	refused(rig_ask("POST", at(RUNS "/%s/resume", run), "{\"tools\":[\"web_search\"]}", 403),
		"had no tool web_search");
}

static int set_up(void **state)
{
	tool_add(&web);
	return rig_set_up(state);
}

static int tear_down(void **state)
{
	int rv = rig_tear_down(state);

	tool_remove(&web);
	return rv;
}

UNIT_GROUP(.before = set_up, .after = tear_down);
