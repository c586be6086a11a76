/* Calls of chat completions as servers send them, put together: by id, by index, else what
 * is open. Each stream is fed whole and byte by byte. */
#include "unit.h"

#include <stdio.h>

#include "agent/tool.h"
#include "stream_rig.h"

#define F(name, args) "\"function\":{\"name\":\"" name "\",\"arguments\":\"" args "\"}"
#define TAIL(args)    "\"function\":{\"arguments\":\"" args "\"}"
#define CALLS(c)      "\"delta\":{\"tool_calls\":[" c "]}"
#define PIECE(c)      CALLS("{" c "}")
#define ID(id)        "\"id\":\"" id "\","
#define AT(i)         "\"index\":" #i ","
#define A             "{\\\"p\\\":1}"
#define B             "{\\\"p\\\":2}"

static const struct {
	const char *name, *choices[8], *calls;
} cases[] = {
	{"a head at another index than its pieces",
	 {PIECE(AT(0) ID("a") F("look", "")), PIECE(AT(0) TAIL(A)),
	  PIECE(AT(0) ID("b") F("read", "")), PIECE(AT(1) TAIL("{\\\"p\\\"")),
	  PIECE(AT(1) TAIL(":2}"))},
	 "look {\"p\":1}, read {\"p\":2}"},
	{"by id, no index, interleaved",
	 {PIECE(ID("a") F("look", "")), PIECE(ID("b") F("read", "")), PIECE(ID("a") TAIL(A)),
	  PIECE(ID("b") TAIL(B))},
	 "look {\"p\":1}, read {\"p\":2}"},
	{"by index, id and name in each piece",
	 {PIECE(AT(0) ID("a") F("look", "{\\\"p\\\"")), PIECE(AT(1) ID("b") F("read", B)),
	  PIECE(AT(0) ID("a") F("look", ":1}"))},
	 "look {\"p\":1}, read {\"p\":2}"},
	{"the last chunk repeats it",
	 {PIECE(AT(0) ID("a") F("look", A)), PIECE(AT(0) ID("a") F("look", A))},
	 "look {\"p\":1}"},
	{"the same, in other blanks, without an index",
	 {PIECE(AT(0) ID("a") F("look", A)), PIECE(ID("a") F("look", "{ \\\"p\\\": 1 }"))},
	 "look { \"p\": 1 }"},
	{"the same without an id",
	 {PIECE(AT(0) F("look", A)), PIECE(AT(0) F("look", A))},
	 "look {\"p\":1}"},
	{"the same of the arguments alone",
	 {PIECE(AT(0) ID("a") F("look", "{\\\"p\\\"")), PIECE(AT(0) TAIL(":1}")),
	  PIECE(AT(0) TAIL(A))},
	 "look {\"p\":1}"},
	{"all so far in each chunk",
	 {PIECE(AT(0) ID("a") F("look", "{\\\"p")), PIECE(AT(0) ID("a") F("look", "{\\\"p\\\":")),
	  PIECE(AT(0) ID("a") F("look", A))},
	 "look {\"p\":1}"},
	{"the same without names behind the first",
	 {PIECE(AT(0) ID("a") F("look", "{\\\"p")), PIECE(AT(0) TAIL("{\\\"p\\\":1")),
	  PIECE(AT(0) TAIL(A))},
	 "look {\"p\":1}"},
	{"an empty object first",
	 {PIECE(AT(0) ID("a") F("look", "{}")), PIECE(AT(0) TAIL(A))},
	 "look {\"p\":1}"},
	{"an object inside is none",
	 {PIECE(AT(0) ID("a") F("look", "{\\\"p\\\":")), PIECE(AT(0) TAIL("{\\\"p\\\":")),
	  PIECE(AT(0) TAIL("1}}"))},
	 "look {\"p\":{\"p\":1}}"},
	{"a message at the end",
	 {"\"message\":{\"content\":\"\",\"tool_calls\":[{" ID("a") F("look", A) "},{" ID("b")
		  F("read", B) "}]}"},
	 "look {\"p\":1}, read {\"p\":2}"},
	{"which repeats",
	 {PIECE(AT(0) ID("a") F("look", A)), PIECE(AT(1) ID("b") F("read", B)),
	  "\"delta\":{},\"finish_reason\":\"tool_calls\",\"message\":{\"tool_calls\":[{" F(
		  "look", A) "},{" ID("z") F("read", B) "}]}"},
	 "look {\"p\":1}, read {\"p\":2}"},
	{"the old form",
	 {"\"delta\":{\"function_call\":{\"name\":\"look\",\"arguments\":\"" A "\"}}"},
	 "look {\"p\":1}"},
	{"the old form in pieces",
	 {"\"delta\":{\"function_call\":{\"name\":\"look\",\"arguments\":\"\"}}",
	  "\"delta\":{\"function_call\":{\"arguments\":\"{\\\"p\\\"\"}}",
	  "\"delta\":{\"function_call\":{\"arguments\":\":1}\"}}"},
	 "look {\"p\":1}"},
	{"no list", {"\"delta\":{\"tool_calls\":{" ID("a") F("look", A) "}}"}, "look {\"p\":1}"},
	{"no function",
	 {PIECE(AT(0) ID("a") "\"name\":\"look\",\"arguments\":\"{\\\"p\\\"\""),
	  PIECE(AT(0) "\"arguments\":\":1}\"")},
	 "look {\"p\":1}"},
	{"a function that is the name",
	 {PIECE(ID("a") "\"function\":\"look\",\"parameters\":{\"p\":1}")},
	 "look {\"p\":1}"},
	{"arguments before the name",
	 {PIECE(AT(0) TAIL(A)), PIECE(AT(0) ID("a") F("look", ""))},
	 "look {\"p\":1}"},
	{"quotes and blanks inside, repeated",
	 {PIECE(ID("a") F("look", "{\\\"p\\\":\\\"a \\\\\\\" b\\\\\\\\\\\"}")),
	  PIECE(ID("a") F("look", "{ \\\"p\\\": \\\"a \\\\\\\" b\\\\\\\\\\\" }"))},
	 "look { \"p\": \"a \\\" b\\\\\" }"},
	{"one id for two",
	 {PIECE(AT(0) ID("a") F("look", A)), PIECE(AT(1) ID("a") F("look", B))},
	 "look {\"p\":1}, look {\"p\":2}"},
	{"index 0 for all",
	 {PIECE(AT(0) ID("a") F("look", A)), PIECE(AT(0) ID("b") F("look", A))},
	 "look {\"p\":1}, look {\"p\":1}"},
	{"names with more",
	 {CALLS("{" ID("a") F(" functions.look ", A) "},{" ID("b")
			F("default_api:look", A) "},{" ID("c") F("look<|channel|>commentary",
								 A) "},{" ID("d")
				F("functions.look:0", A) "},{" ID("e") F("look(", A) "},{" ID("f")
					F("Look", A) "},{" ID("g") F("call_look", A) "},{" ID("h")
						F("looks", A) "},{" ID("i") F("look_read", A) "}")},
	 "look {\"p\":1}, look {\"p\":1}, look {\"p\":1}, look {\"p\":1}, look {\"p\":1}, look "
	 "{\"p\":1}, look {\"p\":1}, "
	 "looks {\"p\":1}, look_read {\"p\":1}"},
};

static const struct tool look = {.name = "look"}, read_it = {.name = "read"};
static const struct tool *const tools[] = {&look, &read_it};

static void check(size_t k, size_t step)
{
	struct stream *s = stream_open(dialect_openai.stream, &model, "t");
	TEST_BUF(b, 8192);
	TEST_BUF(got, 8192);
	struct reply_error e;
	struct turn *t;
	bool progress;

	stream_tools(s, tools, ARRAY_LEN(tools));
	for (size_t i = 0; i < 8 && cases[k].choices[i] != NULL; i++)
		buf_addf(&b, "data: {\"id\":\"x\",\"choices\":[{\"index\":0,%s}]}\n\n",
			 cases[k].choices[i]);
	buf_adds(&b,
		 "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: "
		 "[DONE]\n\n");
	for (size_t at = 0; at < b.len; at += step)
		assert_int_equal(stream_feed(s, b.data + at, MIN(step, b.len - at), &progress), 0);
	assert_int_equal(stream_end(s, 200, "text/event-stream", &t, &e), REPLY_OK);
	for (unsigned i = 0; i < t->ncalls; i++)
		buf_addf(&got, "%s%s %s", i > 0 ? ", " : "", t->calls[i].name,
			 t->calls[i].args != NULL ? t->calls[i].args : t->calls[i].args_error);
	assert_string_equal(got.data, cases[k].calls);
	turn_free(t);
	stream_free(s);
}

TEST(cases)
{
	for (size_t k = 0; k < ARRAY_LEN(cases); k++) {
		print_message("%s\n", cases[k].name);
		check(k, 8192);
		check(k, 1);
	}
}
