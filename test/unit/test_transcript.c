/* What a run's model was asked and what it said, for people: the golden conversations of all
 * dialects, and lines that need care. The file of a run that has ended is replaced by them. */
#include "gateway_rig.h"
#include "heads.h"

#include "codec/jscan.h"
#include "codec/redact.h"

#define SHOWN_MAX (64u << 10)

static json_t *ask(const char *id, const char *query)
{
	char path[200];

	snprintf(path, sizeof(path), "/api/v1/runs/%s/messages%s", id, query);
	return rig_ask("GET", path, NULL, 200);
}

/* A run whose messages these are. */
static const char *run_of(const char *file, size_t len)
{
	static char id[64];
	char path[400];

	rig_write("end.jsonl", "{\"tool_calls\":[{\"name\":\"submit_result\",\"args\":{"
			       "\"summary\":\"ok\"}}]}\n");
	rig_run("end.jsonl", id);
	json_decref(rig_ask("GET", rig_path("/api/v1/runs/%s/result?wait=30", id), NULL, 200));
	snprintf(path, sizeof(path), "%s/runs/%s/messages.jsonl", rig.root, id);
	unit_write(path, file, len);
	return id;
}

/* Lines with ' for ", and their messages in brief: "2/1 user: text a; call c1.1 f {}". */
static void shows(const char *lines, const char *want)
{
	json_t *answer, *m, *p;
	size_t i, k;
	char *file = strdup(lines), *named, *args;
	size_t len;
	TEST_BUF(got, 1u << 20);

	for (char *c = file; *c; c++)
		*c = *c == '\'' ? '"' : *c;
	named = heads_named(file, &len);
	answer = ask(run_of(named, len), "");
	free(named);
	assert_null(json_object_get(answer, "unreadable"));
	json_array_foreach(json_object_get(answer, "messages"), i, m)
	{
		buf_addf(&got, "%lld/%lld %s:", (long long)json_get_int(m, "n", -1),
			 (long long)json_get_int(m, "turn", -1), json_str(m, "role"));
		json_array_foreach(json_object_get(m, "parts"), k, p)
		{
			args = json_dumps(json_object_get(p, "args"), JSON_COMPACT);
			buf_addf(&got, "%s %s%s %s%s%s%s", k ? ";" : "", json_str(p, "kind"),
				 json_get_bool(p, "failed", false) ? " failed" : "",
				 json_str(p, "call_id"), json_str(p, "name"), json_str(p, "text"),
				 args ? args : "");
			free(args);
		}
		buf_addc(&got, '\n');
	}
	assert_string_equal(got.data, want);
	json_decref(answer);
	free(file);
}

/* Every dialect, byte for byte. AVA_GOLDEN=1 prints what they are. */
TEST(golden)
{
	static const char *const names[] = {"run", "chat", "responses"};

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		char path[80];
		size_t len, n, want_len, want_at = 0, k;
		const char *line;
		char *file, *want;
		json_t *answer, *m;
		TEST_BUF(b, 1u << 20);

		snprintf(path, sizeof(path), "test/golden/messages/%s.jsonl", names[i]);
		file = unit_read_src(path, &len);
		heads_golden("test/golden/messages", file, len);
		answer = ask(run_of(file, len), "");
		snprintf(path, sizeof(path), "test/golden/messages/%s.shown.jsonl", names[i]);
		want = unit_read_src(path, &want_len);
		json_array_foreach(json_object_get(answer, "messages"), k, m)
		{
			buf_reset(&b);
			assert_int_equal(json_dump(&b, m), 0);
			if (getenv("AVA_GOLDEN")) {
				fprintf(stderr, "GOLDEN %s %s\n", names[i], b.data);
				continue;
			}
			assert_int_equal(jsonl_next(want, want_len, &want_at, &line, &n), 1);
			if (n != b.len || memcmp(line, b.data, n) != 0)
				fail_msg("%s: %s", path, b.data);
		}
		assert_true(getenv("AVA_GOLDEN") || want_at == want_len);
		json_decref(answer);
		free(file);
		free(want);
	}
}

#define HEADED  "{'spec':{'machine':1,'head':'{'}}\n"
#define TEXT(t) "{'role':'user','content':[{'type':'text','text':'" t "'}]}\n"
#define SAID(t) "{'role':'assistant','content':[{'type':'text','text':'" t "'}]}\n"

/* An empty reply has no line, or one that stands for it; a paused reply is two. */
TEST(empty_and_paused)
{
	shows(HEADED TEXT("a") TEXT("b") SAID("c") SAID("d"), "2/1 user: text a\n"
							      "3/2 user: text b\n"
							      "4/2 assistant: text c\n"
							      "5/3 assistant: text d\n");
	shows(HEADED "{'role':'user','content':'a'}\n"
		     "{'role':'assistant','content':'(nothing)'}\n"
		     "{'role':'user','content':'b'}\n",
	      "2/1 user: text a\n3/1 note: note The reply was empty.\n4/2 user: text b\n");
}

/* Thinking of every form, and what is no text. */
TEST(thinking)
{
	shows(HEADED "{'role':'assistant','content':[{'type':'thinking','thinking':'hm',"
		     "'signature':'x'},{'type':'redacted_thinking','data':'abc'}]}\n"
		     "{'role':'assistant','content':null,'reasoning_details':[{'type':"
		     "'reasoning.text','text':'so'},{'type':'reasoning.summary','summary':"
		     "'it is'},{'type':'reasoning.encrypted','data':'x'}]}\n",
	      "2/1 assistant: thinking hm; note redacted_thinking: 41 bytes that are no text.\n"
	      "3/1 assistant: thinking so; thinking it is\n");
	shows(HEADED "{'type':'reasoning','id':'r','encrypted_content':'x','summary':[{"
		     "'type':'summary_text','text':'a plan'}]}\n"
		     "{'type':'web_search_call','id':'w','status':'completed'}\n",
	      "2/1 assistant: thinking a plan\n"
	      "3/1 assistant: note web_search_call: 56 bytes that are no text.\n");
}

/* The lines of the run that it goes on from are of call 0. */
TEST(resumed)
{
	shows("{'spec':{'machine':1,'resumedFrom':'S-1','head':'{\\'instructions\\':\\'Be.\\',\\'"
	      "input\\':['}}\n"
	      "{'spec':{'head':'{'}}\n"
	      "{'role':'user','content':'a'}\n"
	      "{'type':'function_call','call_id':'i','name':'f','arguments':'{}'}\n"
	      "{'type':'function_call_output','call_id':'i','output':'Error: no'}\n"
	      "{'mark':{'resumed':'S-1'}}\n"
	      "{'role':'user','content':'go on'}\n"
	      "{'type':'function_call','call_id':'i','name':'f','arguments':'no'}\n",
	      "1/0 system: text Be.\n"
	      "3/0 user: text a\n"
	      "4/0 assistant: call c0.1f{}\n"
	      "5/0 tool: result failed c0.1no\n"
	      "7/1 user: text go on\n"
	      "8/1 assistant: call c1.1fno\n");
}

/* Amendments are sentences, marks are nobody's. */
TEST(amendments)
{
	shows(HEADED "{'spec':{'model':'a/b','maxOutput':512}}\n"
		     "{'spec':{'drop':'seed'}}\n"
		     "{'mark':{'kept':'c1.1','output':'x'}}\n"
		     "{'cut':{'calls':1,'task':4,'ledger':[],'head':'{','lines':["
		     "{'role':'user','content':[{'type':'text','text':'Task and what was'}]}]}}\n",
	      "2/1 note: note From here on the model is a/b.\n"
	      "3/1 note: note Requests are made in another way from here on: {\"drop\":\"seed\"}\n"
	      "5/1 note: note To make room, a summary takes the place of all before; so far it "
	      "leaves out 1 call.\n");
}

/* Secrets are taken out, also of arguments; long texts are cut at a character; lines that cannot be
 * read are counted. */
TEST(secrets_and_cut)
{
	static const char key[] = "ghp_0123456789abcdefghijABCDEFGHIJ012345", e[] = "\u00e9";
	struct redact *secrets = redact_new();
	const char *text;
	json_t *answer;
	size_t n;
	char *all, *named;
	TEST_BUF(file, 1u << 20);

	rig.core->redact = secrets;
	buf_addf(&file,
		 "{\"spec\":{\"head\":\"{\"}}\n"
		 "{\"role\":\"assistant\",\"content\":[{\"type\":\"text\",\"text\":"
		 "\"a %s \\u001b[1m\"},{\"type\":\"tool_use\",\"id\":\"t\",\"name\":\"f\","
		 "\"input\":{\"k\":\"%s\"}}]}\n"
		 "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"x",
		 key, key);
	for (size_t i = 0; i < SHOWN_MAX / 2; i++)
		buf_adds(&file, e);
	buf_adds(&file, "\"}]}\nnot json\n{\"role\":\"user\"\n{\"other\":{}}\n{\"torn\":");
	named = heads_named(file.data, &n);
	answer = ask(run_of(named, n), "");
	free(named);
	all = json_dumps(answer, 0);
	assert_null(strstr(all, key));
	assert_non_null(strstr(all, "a [redacted] \\\\x1b[1m"));
	assert_non_null(strstr(all, "{\"k\": \"[redacted]\"}"));
	assert_non_null(strstr(all, "\"unreadable\": 3"));
	assert_non_null(strstr(all, "/messages.jsonl, line 4\""));
	text = json_str(
		json_array_get(
			json_object_get(json_array_get(json_object_get(answer, "messages"), 1),
					"parts"),
			0),
		"text");
	n = strlen(text);
	assert_int_equal(n, SHOWN_MAX - 1);
	assert_string_equal(text + n - strlen(e), e);
	assert_non_null(strstr(all, "\"cut\": true"));
	free(all);
	json_decref(answer);
	rig.core->redact = NULL;
	redact_free(secrets);
}

UNIT_GROUP(.before = rig_set_up, .after = rig_tear_down);
