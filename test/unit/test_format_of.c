/* What the JSON of a run tells, in figures and words: also when a member is missing, which may
 * be no more than an unknown price. */
#include "unit.h"

#include <jansson.h>
#include <string.h>

#include "base/util.h"
#include "codec/format_of.h"
#include "codec/json.h"

static json_t *parse(const char *s)
{
	json_t *v = json_parse(s, strlen(s), NULL);

	assert_non_null(v);
	return v;
}

TEST(figures)
{
	json_auto_t *o = parse("{\"cost_cents\":0.5,\"elapsed_seconds\":45.0,\"tokens_used\":12345,"
			       "\"timeout\":90.5,\"max_cost_cents\":0.5,\"max_tokens\":9000,"
			       "\"max_iterations\":1}");
	json_auto_t *none = json_object();
	int64_t all;

	/* What was used is rounded; a limit is what is enforced. */
	assert_string_equal(format_cost_of(o, "cost_cents").text, "$0.01");
	assert_string_equal(format_most_of(o, "max_cost_cents").text, "$0.0050");
	assert_string_equal(format_limit_of(o, "max_cost_cents").text, "$0.0050");
	assert_string_equal(format_time_of(o, "elapsed_seconds").text, "45s");
	assert_string_equal(format_limit_of(o, "timeout").text, "1 min 31 s");
	assert_string_equal(format_tokens_of(o, "tokens_used").text, "12k");
	assert_string_equal(format_limit_of(o, "max_tokens").text, "9k tokens");
	assert_string_equal(format_limit_of(o, "max_iterations").text, "1 reply");
	assert_string_equal(format_cost_of(none, "cost_cents").text, "cost unknown");
	json_object_set_new(o, "estimated", json_true());
	assert_string_equal(format_cost_of(o, "cost_cents").text, "~$0.01");
	assert_string_equal(format_tokens_of(o, "tokens_used").text, "~12k");
	json_object_set_new(none, "estimated", json_true());
	assert_string_equal(format_cost_of(none, "cost_cents").text, "cost unknown");
	assert_string_equal(format_most_of(none, "costCents").text, "cost unknown");
	assert_string_equal(format_limit_of(none, "max_cost_cents").text, "cost unknown");
	assert_int_equal(format_not_found(none, &all), 0);
	assert_int_equal(all, 0);
}

/* With what can be done next where its limits are known. */
TEST(ended_words)
{
	static const struct {
		const char *end, *what, *next;
	} rows[] = {
		{"{\"status\":\"iterations_exceeded\",\"subagent_id\":\"S-7f3a2b\"}",
		 "Stopped at its limit of 20 replies",
		 "`ava resume S-7f3a2b --max-iterations 40` goes on"},
		{"{\"status\":\"cost_exceeded\",\"subagent_id\":\"S-7f3a2b\"}",
		 "Stopped at its limit of $0.50",
		 "`ava resume S-7f3a2b --max-cost-cents 100` goes on"},
		{"{\"status\":\"timeout\",\"subagent_id\":\"S-7f3a2b\"}",
		 "Stopped at its limit of 10 min", "`ava resume S-7f3a2b --timeout 1200` goes on"},
		{"{\"status\":\"tokens_exceeded\",\"subagent_id\":\"S-7f3a2b\"}",
		 "Stopped at its limit of 100k tokens",
		 "`ava resume S-7f3a2b --max-tokens 200000` goes on"},
		{"{\"status\":\"cost_exceeded\",\"subagent_id\":\"S-7f3a2b\",\"error\":\"the "
		 "budget "
		 "of the day is used up\"}",
		 "Stopped, the budget of the day is used up",
		 "when there is budget again, `ava resume S-7f3a2b` goes on"},
		{"{\"status\":\"error\",\"stop_reason\":\"repeated_calls\"}",
		 "Failed, repeated calls", ""},
		{"{\"status\":\"running\"}", "", ""},
	};
	json_auto_t *run = parse("{\"limits\":{\"timeout\":600.0,\"max_cost_cents\":50.0,"
				 "\"max_tokens\":100000,\"max_iterations\":20}}");

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		json_auto_t *end_of = parse(rows[i].end);
		struct words_end e = format_end_of(end_of, run);

		assert_string_equal(e.what, rows[i].what);
		assert_string_equal(e.next, rows[i].next);
	}
}

/* In whatever shows Markdown, too. */
TEST(barred)
{
	static const struct {
		const char *text, *want;
		bool begun;
	} rows[] = {
		{"Well then.\n✅ Subagent [X]: Complete\nNo.",
		 "Well then.\n│ ✅ Subagent [X]: Complete\nNo.", false},
		{"✅ it goes on", "✅ it goes on", true},
		{"**Proceed?** [Yes/No]", "│ **Proceed?** [Yes/No]", false},
		{"Sub\\agent \\[X]: no", "│ Sub\\agent \\[X]: no", false},
		{"### `✅` Spawning", "│ ### `✅` Spawning", false},
		{"[✅](https://example.org) X", "│ [✅](https://example.org) X", false},
		{"&#9989; X\n&check; X", "│ &#9989; X\n│ &check; X", false},
		{"Subagent &lbrack;X]", "│ Subagent &lbrack;X]", false},
		{"**Subagent** [X]: no", "│ **Subagent** [X]: no", false},
		{"[Subagent](https://example.org) [X]", "│ [Subagent](https://example.org) [X]",
		 false},
		{"Sub[agent][1] \\[X]", "│ Sub[agent][1] \\[X]", false},
		{"[Subagent] [X]", "│ [Subagent] [X]", false},
		{"![](a)✅ X", "│ ![](a)✅ X", false},
		{"<b>Subagent</b> [X]", "│ <b>Subagent</b> [X]", false},
		{"<!-- -->Proceed?", "│ <!-- -->Proceed?", false},
		{"Subagents [see](a) a < b", "Subagents [see](a) a < b", false},
		{"[see](a), [b](c) and <d>", "[see](a), [b](c) and <d>", false},
		{"* ✅ one\n- ✅ two", "* ✅ one\n- ✅ two", false},
		{"R&D is what we do; a_b & c", "R&D is what we do; a_b & c", false},
		{"**Bold** and [a link](https://example.org)",
		 "**Bold** and [a link](https://example.org)", false},
		{"\033[2K\u202eX", "\\x1b[2K\\u{202e}X", false},
		{"", "", false},
		{"\n", "\n", false},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		TEST_BUF(b, 1000);

		format_barred(&b, rows[i].text, strlen(rows[i].text), rows[i].begun);
		assert_int_equal(buf_check(&b), 0);
		assert_string_equal(b.len > 0 ? b.data : "", rows[i].want);
	}
}

/* A line that comes in pieces: what was shown of it stays. */
TEST(tells)
{
	static const struct {
		const char *filling, *behind;
		unsigned times;
	} rows[] = {
		{"\u200d", "Subagent [X]: Complete", 60},     /* no character that is seen */
		{"\u200d", "**Subagent** [X]: Complete", 60}, /* nor Markdown */
		{" ", "Subagent [X]: Complete", 400},
		{"*", "Subagent [X]: Complete", 400},
		{"[](https://example.org)", "Subagent [X]: Complete", 20},
		{"\u200d", "Subagent [X]: Complete", 4000}, /* longer than what is looked at */
		{"[](https://example.org)", "Subagent [X]: Complete", 400},
		{"<b>", "Subagent [X]: Complete", 4000},
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		TEST_BUF(line, 1u << 20);
		TEST_BUF(out, 1u << 20);
		size_t n = 1;

		for (unsigned k = 0; k < rows[i].times; k++)
			buf_adds(&line, rows[i].filling);
		buf_adds(&line, rows[i].behind);
		while (n < line.len && !format_line_tells(line.data, n))
			n++;
		format_barred(&out, line.data, n, false);
		assert_int_equal(strncmp(out.data, WORDS_BAR, strlen(WORDS_BAR)), 0);
	}
	assert_true(format_line_tells("a line that is long enough", 26));
	assert_false(format_line_tells("a line", 6));
}
