/* Thinking that stands in the text: what is thinking and what is text, wherever the stream
 * is cut, what is shown as it comes, and what is sent back. */
#include "unit.h"

#include <stdio.h>

#include "stream_rig.h"

static const struct {
	const char *text, *says, *thought, *shown; /* `shown`: NULL: as `says` */
} cases[] = {
	{"Hello.", "Hello.", ""},
	{"\n\n Hello.", "\n\n Hello.", ""},
	{"<think>\nhm\n</think>\n\nHello.", "Hello.", "\nhm\n"},
	{" \n<think>hm</think>Hello.", "Hello.", "hm"},
	{"<THINK>hm</Think>Hello.", "Hello.", "hm"},
	{"<thinking>hm</thinking> Hello.", "Hello.", "hm"},
	{"<thought>a</thought><think>b</think>\nHello.", "Hello.", "ab"},
	{"<think></think>\n\nHello.", "Hello.", ""},
	{"<think>if a < b and x</thin y</think>Hello.", "Hello.", "if a < b and x</thin y"},
	{"<think>hm</thinking>Hello.", "Hello.", "hm"},
	{"<think>hm", "", "hm", ""},
	{"<think>hm</thi", "", "hm</thi", ""},
	{"</think>\n\nHello.", "Hello.", ""},
	{"[THINK]hm[/THINK]Hello.", "Hello.", "hm"},
	{"<seed:think>hm</seed:think>Hello.", "Hello.", "hm"},
	{"\u25c1think\u25b7hm\u25c1/think\u25b7Hello.", "Hello.", "hm"},
	{"<|START_THINKING|>hm<|END_THINKING|>Hello.", "Hello.", "hm"},
	{"<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>"
	 "Hello.",
	 "Hello.", "hm"},
	{"<|channel|>final<|message|>Hello.", "Hello.", ""},
	/* Their beginning never came: known at the end. */
	{"hm\n</think>\n\nHello.", "Hello.", "hm\n", "hm\n</think>\n\nHello."},
	{"hm.</think> Hello.", "Hello.", "hm.", "hm.</think> Hello."},
	{"hm</think>Hello.", "Hello.", "hm", "hm</think>Hello."},
	{"`</think>` ends it. So.\n</think>\nHello.", "Hello.", "`</think>` ends it. So.\n",
	 "`</think>` ends it. So.\n</think>\nHello."},
	{"hm.\n</think>\n", "", "hm.\n", "hm.\n</think>\n"},
	{"analysisWe say so.assistantfinalHello.", "Hello.", "analysisWe say so.",
	 "analysisWe say so.assistantfinalHello."},
	/* Of which the text speaks. */
	{"`<think>` begins it.", "`<think>` begins it.", ""},
	{"Models write <think>hm</think> first.", "Models write <think>hm</think> first.", ""},
	{"Use <think>\nhm\n</think>\nso.", "Use <think>\nhm\n</think>\nso.", ""},
	{"It ends with </think> always.", "It ends with </think> always.", ""},
	{"It ends with `</think>`.", "It ends with `</think>`.", ""},
	{"```\nhm\n</think>\n```\n", "```\nhm\n</think>\n```\n", ""},
	{"<thin line", "<thin line", ""},
	{"<p>Hello.</p>", "<p>Hello.</p>", ""},
	{"<|end|> is a mark", "<|end|> is a mark", ""},
	{"analysis of the files", "analysis of the files", ""},
	{"It is\n<|end|>\n", "It is\n<|end|>\n", ""},
	/* A call written as text is shown to nobody as it comes. */
	{"{\"name\":\"look\",\"arguments\":{}}", "{\"name\":\"look\",\"arguments\":{}}", "", ""},
	{"<tool_call>{}</tool_call>", "<tool_call>{}</tool_call>", "", ""},
	{"<think>hm</think>\n<tool_call>{}</tool_call>", "<tool_call>{}</tool_call>", "hm", ""},
	{"I look.\n```json\n{\"name\":\"x\"", "I look.\n```json\n{\"name\":\"x\"", "", "I look.\n"},
	{"So:\n {\"function\":{\"name\":\"x\"", "So:\n {\"function\":{\"name\":\"x\"", "", "So:\n"},
	/* None, as its end shows: another object, an example of a tool that there is not. */
	{"{\"name\": \"my-app\"}\nSo.", "{\"name\": \"my-app\"}\nSo.", ""},
	{"So:\n```json\n{\"name\":\"x\",\"arguments\":{}}\n```\nSo.",
	 "So:\n```json\n{\"name\":\"x\",\"arguments\":{}}\n```\nSo.", ""},
	{"So:\n```\n{ \"a\":1}\n```\n{}\n<to>", "So:\n```\n{ \"a\":1}\n```\n{}\n<to>", ""},
};

static struct buf shown, thought;

static void on_text(const char *text, size_t n, bool thinking, void *user)
{
	buf_add(thinking ? &thought : &shown, text, n);
}

/* A piece for each `step` bytes. */
static void check(const struct dialect *d, size_t k, size_t step)
{
	bool chat = d == &dialect_openai;
	struct stream *s = stream_open(d->stream, &model, "t");
	const char *text = cases[k].text, *want = cases[k].shown;
	size_t len = strlen(text), n;
	struct reply_error e;
	struct turn *t;
	bool progress;

	stream_on_text(s, on_text, NULL);
	for (size_t at = 0; at < len; at += n) {
		TEST_BUF(b, 4096);
		struct jw w;

		for (n = MIN(step, len - at); at + n < len && (text[at + n] & 0xc0) == 0x80; n++)
			;
		buf_adds(&b, "data: ");
		jw_init(&w, &b);
		jw_object(&w, NULL);
		jw_str(&w, "id", "x");
		jw_str(&w, "type", "content_block_delta");
		jw_int(&w, "index", 0);
		if (chat) {
			jw_array(&w, "choices");
			jw_object(&w, NULL);
		}
		jw_object(&w, "delta");
		jw_str(&w, "type", "text_delta");
		jw_strn(&w, chat ? "content" : "text", text + at, n);
		jw_end(&w);
		if (chat) {
			jw_end(&w);
			jw_end(&w);
		}
		jw_end(&w);
		buf_adds(&b, "\n\n");
		assert_int_equal(stream_feed(s, b.data, b.len, &progress), 0);
	}
	text = chat ? "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: "
		      "[DONE]\n\n"
		    : "data: "
		      "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\n"
		      "data: {\"type\":\"message_stop\"}\n\n";
	assert_int_equal(stream_feed(s, text, strlen(text), &progress), 0);
	assert_int_equal(stream_end(s, 200, "text/event-stream", &t, &e), REPLY_OK);
	assert_string_equal(t->text, cases[k].says);
	assert_string_equal(t->thinking, strspn(cases[k].thought, " \n") < strlen(cases[k].thought)
						 ? cases[k].thought
						 : "");
	if (t->text_len > 0 && t->text[0] == 'H')
		assert_null(strstr(t->wire, "hm"));
	assert_string_equal(shown.len > 0 ? shown.data : "", want != NULL ? want : cases[k].says);
	if (want == NULL || *want == 0)
		assert_string_equal(thought.len > 0 ? thought.data : "", cases[k].thought);
	buf_reset(&shown);
	buf_reset(&thought);
	turn_free(t);
	stream_free(s);
}

TEST(cases)
{
	buf_init(&shown, 4096);
	buf_init(&thought, 4096);
	for (size_t k = 0; k < ARRAY_LEN(cases); k++) {
		print_message("%s\n", cases[k].text);
		for (size_t step = 1; step <= strlen(cases[k].text); step++) {
			check(&dialect_openai, k, step);
			check(&dialect_anthropic, k, step);
		}
	}
	buf_fini(&shown);
	buf_fini(&thought);
}
