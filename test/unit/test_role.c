/* The reader of role files, by the shapes that people's files have: 200 rows, each of which
 * loads with what it says, or gives a reason with its line. Each is put into a file whose
 * other fields are plain, so that what is wrong with one takes no other down. */
#include <stdio.h>
#include <string.h>

#include "unit.h"

#include <ava.h>
#include "agent/tool.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/util.h"
#include "subagent/role.h"
#include "subagent/rolebook.h"

#define ALL                                                                                        \
	"read_file search_codebase search_and_read list_files run_bash python_exec web_search "    \
	"read_webpages http_get write_file edit_file"
#define EXAMPLE                                                                                    \
	"<example>\nContext: a table is slow.\nuser: \"why?\"\nassistant: \"I look.\"\n</example>"

/* `want`: "^3 words" is an error in that line with these words; "~words" a note; else what
 * the field becomes. */
struct shape {
	const char *what, *lines, *want;
};

static const struct shape descriptions[] = {
	{"plain", "description: Looks after tables", "Looks after tables"},
	{"double quotes", "description: \"Looks: after tables\"", "Looks: after tables"},
	{"single quotes", "description: 'It''s for tables'", "It's for tables"},
	{"a colon in it", "description: For tables: slow ones", "For tables: slow ones"},
	{"two colons in it", "description: Use when: a, b. Not: c", "Use when: a, b. Not: c"},
	{"a quote that ends early", "description: \"Tables\" and more", "\"Tables\" and more"},
	{"quotes within quotes", "description: \"Says \"hello\" to tables\"",
	 "Says \"hello\" to tables"},
	{"quotes within, and a colon", "description: Use \"x\": it is good",
	 "Use \"x\": it is good"},
	{"an apostrophe first", "description: 'tis for tables", "'tis for tables"},
	{"a bracket first", "description: [OLD] for tables", "[OLD] for tables"},
	{"a brace first", "description: {tables} only", "{tables} only"},
	{"a star first", "description: *the* one for tables", "*the* one for tables"},
	{"an at first", "description: @tables expert", "@tables expert"},
	{"a backtick first", "description: `sql` expert", "`sql` expert"},
	{"a percent first", "description: %tables", "%tables"},
	{"an ampersand first, YAML's own", "description: &c for tables", "for tables"},
	{"a bang first", "description: !important for tables", "!important for tables"},
	{"a dash first", "description: - for tables", "- for tables"},
	{"a question mark", "description: ? for tables", "? for tables"},
	{"a hash in it", "description: \"For C# code\"", "For C# code"},
	{"a comment behind it", "description: For tables # mine", "For tables"},
	{"block text", "description: |\n  For tables.\n  Slow ones.", "For tables. Slow ones."},
	{"folded text", "description: >\n  For tables,\n  slow ones.", "For tables, slow ones."},
	{"folded, no end", "description: >-\n  For tables", "For tables"},
	{"block, kept end", "description: |+\n  For tables\n\n", "For tables"},
	{"block with a colon", "description: |\n  When: slow\n  And: big", "When: slow And: big"},
	{"block not indented", "description: |\nFor tables", "For tables"},
	{"folded not indented", "description: >\nFor tables\nthat are slow",
	 "For tables that are slow"},
	{"goes on indented", "description: For tables\n  that are slow",
	 "For tables that are slow"},
	{"goes on, with a colon", "description: For tables\n  when: slow", "For tables when: slow"},
	{"goes on at the left", "description: For tables\nthat are slow",
	 "For tables that are slow"},
	{"an example at the left", "description: For tables. Examples:\n\n" EXAMPLE,
	 "For tables. Examples:"},
	{"an example in its line", "description: For tables. " EXAMPLE, "For tables."},
	{"an example, literal ends",
	 "description: For tables.\\n\\n<example>\\nContext: slow.\\nuser: \\\"why?\\\"</example>",
	 "For tables."},
	{"literal ends in quotes", "description: \"For tables.\\nSlow ones.\"",
	 "For tables. Slow ones."},
	{"dialogue", "description: Use it. user: \"a\" assistant: \"b\"",
	 "Use it. user: \"a\" assistant: \"b\""},
	{"a list of cases", "description: Use it when:\n- tables are slow\n- they are big",
	 "Use it when: - tables are slow - they are big"},
	{"other writing", "description: 表を見る。用途: 遅い表", "表を見る。用途: 遅い表"},
	{"an emoji", "description: 🚀 for tables", "🚀 for tables"},
	{"a link", "description: See https://example.org/a?b=c", "See https://example.org/a?b=c"},
	{"a tab in it", "description: \"For\ttables\"", "For tables"},
	{"many blanks", "description:     For    tables   ", "For tables"},
	{"an arrow", "description: slow -> fast", "slow -> fast"},
	{"a bidi mark", "description: \"For \xe2\x80\xae tables\"", "For \\u{202e} tables"},
	{"empty", "description:", "^3 description is empty"},
	{"empty quotes", "description: \"\"", "^3 description is \"\""},
	{"a list", "description: [a, b]", "^3 description is a list"},
	{"a mapping", "description:\n  short: a", "^4 description is a mapping"},
	{"twice", "description: a\ndescription: b", "^4 stands here and in line 3"},
};

static const struct shape tools[] = {
	{"commas", "tools: Read, Grep, Glob", "read_file search_codebase list_files"},
	{"one", "tools: Read", "read_file"},
	{"one, quoted", "tools: \"Bash\"", "run_bash"},
	{"blanks", "tools: Read Grep", "read_file search_codebase"},
	{"commas without blanks", "tools: Read,Grep", "read_file search_codebase"},
	{"a comma too many", "tools: Read, Grep,", "read_file search_codebase"},
	{"a list", "tools:\n  - Read\n  - Bash", "read_file run_bash"},
	{"a list at the left", "tools:\n- Read\n- Bash", "read_file run_bash"},
	{"a list with tabs", "tools:\n\t- Read\n\t- Bash", "read_file run_bash"},
	{"a list with quotes", "tools:\n  - \"Read\"\n  - 'Bash'", "read_file run_bash"},
	{"a list with comments", "tools: # few\n  - Read # files\n  - Bash", "read_file run_bash"},
	{"brackets", "tools: [Read, Write]", "read_file write_file"},
	{"brackets and quotes", "tools: [\"Read\", \"Edit\"]", "read_file edit_file"},
	{"brackets over lines", "tools: [\n  Read,\n  Edit\n  ]", "read_file edit_file"},
	{"quotes around all", "tools: \"Read, Edit\"", "read_file edit_file"},
	{"quotes around each", "tools: 'Read', 'Edit'", "read_file edit_file"},
	{"folded", "tools: >\n  Read,\n  Edit", "read_file edit_file"},
	{"goes on", "tools: Read,\n  Edit", "read_file edit_file"},
	{"a star", "tools: *", ALL},
	{"a star, quoted", "tools: \"*\"", ALL},
	{"a star in a list", "tools: [\"*\"]", ALL},
	{"all", "tools: all", ALL},
	{"all tools", "tools: All tools", ALL},
	{"inherit", "tools: inherit", ALL},
	{"none named", "model: haiku", ALL},
	{"the web", "tools: WebFetch, WebSearch", "read_webpages web_search"},
	{"old names", "tools: LS, MultiEdit, NotebookRead", "list_files edit_file read_file"},
	{"small letters", "tools: read, grep, bash", "read_file search_codebase run_bash"},
	{"ours", "tools: read_file, http_get, search-and-read",
	 "read_file http_get search_and_read"},
	{"twice", "tools: Read, Read, NotebookRead", "read_file"},
	{"all have it", "tools: Read, AskUserQuestion, memory_search", "read_file"},
	{"another spelling of the field", "allowed-tools: Read, Grep", "read_file search_codebase"},
	{"servers' tools", "tools: Read, mcp__db__query", "read_file mcp__db__query"},
	{"a pattern", "tools: Read, Bash(git diff:*)", "read_file"},
	{"a pattern with blanks", "tools: Bash(git log *), Read", "read_file"},
	{"a pattern for all", "tools: Bash(*), WebFetch(:*)", "run_bash read_webpages"},
	{"less some", "tools: Read, Write, Bash\ndisallowedTools: Write, Bash", "read_file"},
	{"less some, a list", "disallowedTools:\n  - Edit\n  - Write\ntools: Read, Edit, Write",
	 "read_file"},
	{"less some of all",
	 "disallowedTools: Write, Edit, NotebookEdit, Task, WebFetch, WebSearch",
	 "read_file search_codebase search_and_read list_files run_bash python_exec http_get"},
	{"less in brackets", "disallowedTools: [\"Write\", \"Bash\"]\ntools: Bash, Read",
	 "read_file"},
	{"less by another spelling", "disallowed-tools: Write\ntools: Read, Write", "read_file"},
	{"less by a pattern", "tools: Read, Bash\ndisallowedTools: Bash(rm:*)", "read_file"},
	{"plan writes nothing", "tools: Read, Write, Edit\npermissionMode: plan", "read_file"},
	{"others start none", "tools: Task, Agent(reviewer), Read", "read_file"},
	{"none", "tools: []", ""},
	{"empty", "tools:", ""},
	{"unknown ones", "tools: Read, TodoWrite, KillShell", "read_file"},
	{"switches", "tools:\n  write: false", "^5 tools is a mapping"},
	{"a mapping in a list", "tools:\n  - name: Read", "^5 an item is a mapping"},
	{"a list in a list", "tools: [[Read]]", "^4 an item is a list"},
};

static const struct shape models[] = {
	{"sonnet", "model: sonnet", "claude-sonnet"},
	{"opus", "model: opus", "claude-opus"},
	{"haiku", "model: haiku", "claude-haiku"},
	{"fable", "model: fable", "claude-fable"},
	{"capitals", "model: Sonnet", "claude-sonnet"},
	{"quoted", "model: \"opus\"", "claude-opus"},
	{"inherit", "model: inherit", "inherit"},
	{"inherit, with a comment", "model: inherit # or opus", "inherit"},
	{"default", "model: default", "inherit"},
	{"not said", "color: red", "inherit"},
	{"empty", "model:", "inherit"},
	{"null", "model: null", "inherit"},
	{"an id", "model: claude-opus-4-5-20251101", "claude-opus-4-5-20251101"},
	{"a service and an id", "model: anthropic/claude-haiku-4-5", "anthropic/claude-haiku-4-5"},
	{"ours", "model: claude-sonnet-4.5", "claude-sonnet-4.5"},
	{"a larger window", "model: opus[1m]", "claude-opus"},
	{"another's", "model: gpt-5", "gpt-5"},
	{"a plan", "model: opusplan", "opusplan"},
	{"a list", "model: [opus, sonnet]", "^4 model is a list"},
	{"a mapping", "model:\n  name: opus", "^5 model is a mapping"},
};

static const struct shape names[] = {
	{"dashes", "name: db-expert", "db_expert"},
	{"underlines", "name: db_expert", "db_expert"},
	{"capitals", "name: IF-Lane-E", "if_lane_e"},
	{"one word", "name: tables", "tables"},
	{"digits", "name: h2o-expert", "h2o_expert"},
	{"quoted", "name: \"db-expert\"", "db_expert"},
	{"blanks", "name: DB Expert", "db_expert"},
	{"blanks around", "name:   db-expert  ", "db_expert"},
	{"a comment behind", "name: db-expert  # mine", "db_expert"},
	{"of the file", "color: red", "my_tables"},
	{"empty", "name:", "^2 name is empty"},
	{"an emoji", "name: 🚀-expert", "^2 the name is"},
	{"other writing", "name: 表-expert", "^2 the name is"},
	{"a colon", "name: my-plugin:expert", "^2 the name is"},
	{"a dash first", "name: -expert", "^2 the name is"},
	{"a digit first", "name: 2nd-expert", "^2 the name is"},
	{"a dot", "name: db.expert", "^2 the name is"},
	{"a path", "name: ../../etc/passwd", "^2 the name is"},
	{"too long", "name: a123456789012345678901234567890123456789012345678901234567890",
	 "^2 the name is"},
	{"built in", "name: code-reviewer", "^2 the name code_reviewer is ava's own"},
	{"built in, capitals", "name: Web_Crawler", "^2 the name web_crawler is ava's own"},
	{"hers", "name: ava", "^2 the name ava is ava's own"},
	{"a list", "name: [a]", "^2 name is a list"},
	{"twice", "name: a\nname: b", "^3 stands here and in line 2"},
};

static const struct shape rest[] = {
	{"turns", "maxTurns: 25", "iterations 25"},
	{"turns, another spelling", "max-turns: 25", "iterations 25"},
	{"turns, ours", "max_iterations: 7", "iterations 7"},
	{"no turns", "maxTurns: 0", "^4 must be a whole number from 1"},
	{"turns as text", "maxTurns: \"25\"", "^4 without quotes"},
	{"turns in words", "maxTurns: many", "^4 maxTurns is \"many\""},
	{"time", "timeout: 120", "timeout 120"},
	{"time with a unit", "timeout: 10m", "^4 timeout is \"10m\""},
	{"no time", "timeout: -1", "^4 must be a whole number from 1"},
	{"cost", "max_cost_cents: 20", "cost 20"},
	{"free models", "max_cost_cents: 0", "cost 0"},
	{"a cost in dollars", "max_cost_cents: $2", "^4 max_cost_cents is"},
	{"tokens", "max_tokens: 50000", "tokens 50000"},
	{"tokens with a k", "max_tokens: 50k", "^4 max_tokens is"},
	{"thinking", "extended_thinking: true", "thinking 1"},
	{"no thinking", "extended_thinking: false", "thinking 0"},
	{"thinking, perhaps", "extended_thinking: maybe", "^4 it must be true or false"},
	{"a quota", "on_quota: ask", "on_quota ask"},
	{"another quota", "on_quota: sometimes", "^4 it must be park, ask or fail"},
	{"a check", "check: make test && ./lint.sh", "check make test && ./lint.sh"},
	{"a check of nothing", "check: ''", "^4 check is"},
	{"much effort", "effort: high", "thinking 1"},
	{"most effort", "effort: max", "thinking 1"},
	{"little effort", "effort: low", "thinking 0"},
	{"effort, but no thinking", "effort: max\nextended_thinking: false", "thinking 0"},
	{"unknown effort", "effort: turbo", "~effort is \"turbo\""},
	{"a schema",
	 "output_schema:\n  type: object\n  properties:\n    n: {type: integer, minimum: 1}",
	 "schema "
	 "{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\",\"minimum\":1}}}"},
	{"a schema as JSON", "output_schema: '{\"type\":\"array\"}'",
	 "schema {\"type\":\"array\"}"},
	{"a schema that is none", "output_schema:\n  type: record", "^5 output_schema:"},
	{"a schema of text", "output_schema: anything", "^4 output_schema is no JSON"},
	{"hooks",
	 "hooks:\n  Stop:\n    - hooks:\n        - type: command\n          command: rm -rf x",
	 "~hooks of a role file are never run"},
	{"servers", "mcpServers:\n  - db:\n      command: npx\n      args: [\"-y\"]",
	 "~servers named in a role file are never started"},
	{"servers by name", "mcpServers:\n  - db",
	 "~servers named in a role file are never started"},
	{"skills", "skills:\n  - testing", "skills testing"},
	{"skills, commas", "skills: a, b", "skills a b"},
	{"all skills", "skills: all", "skills *"},
	{"all skills, by a star", "skills: \"*\"", "skills *"},
	{"no skills", "skills: none", "skills"},
	{"no skills, by a list", "skills: []", "skills"},
	{"nothing said of skills", "color: red", "skills *"},
	{"skills as a mapping", "skills: {a: b}", "^4 it must be names with commas"},
	{"instructions", "instructions: off", "instructions 0"},
	{"instructions, as without", "instructions: true", "instructions 1"},
	{"instructions, perhaps", "instructions: maybe", "^4 it must be true or false"},
	{"memory", "memory: project", "~ava's own memory is used"},
	{"background", "background: true", "~every run works in the background"},
	{"isolation", "isolation: worktree", "~isolation: not applicable"},
	{"a colour", "color: purple", "~color: not shown"},
	{"a colour with a hash", "color: \"#ff00aa\"", "~color: not shown"},
	{"a first prompt", "initialPrompt: Say hello", "~initialPrompt: not applicable"},
	{"edits accepted", "permissionMode: acceptEdits",
	 "~rights come from what a person confirms"},
	{"all permitted", "permissionMode: bypassPermissions",
	 "~rights come from what a person confirms"},
	{"a field of others", "tier: judgment", "~tier: there is no such field"},
	{"a list of others", "knowledge:\n  - a.md\n  - b.md",
	 "~knowledge: there is no such field"},
	{"a mapping of others", "metadata:\n  version: \"1.0\"",
	 "~metadata: there is no such field"},
	{"a key without a value", "color: red\nreadonly", "^6 this is no YAML"},
	{"an alias", "a: &x [Read]\ntools: *x", "tools read_file"},
	{"a tag", "timeout: !!int 5", "^4 tags"},
};

#define N "name: tables-expert\n"
#define D "description: For tables\n"
static const struct shape files[] = {
	{"plain", "---\n" N D "---\nLook.\n", "Look."},
	{"line ends of others", "---\r\n" N D "---\r\nLook.\r\nTwice.\r\n", "Look.\nTwice."},
	{"line ends of others, and a colon", "---\r\n" N "description: a: b\r\n---\r\nLook.\r\n",
	 "Look."},
	{"old line ends", "---\rname: tables-expert\rdescription: For tables\r---\rLook.\r",
	 "Look."},
	{"a mark at its begin", "\xef\xbb\xbf---\n" N D "---\nLook.\n", "Look."},
	{"a line before", "\n---\n" N D "---\nLook.\n", "Look."},
	{"blanks behind the fences", "---  \n" N D "---\t\nLook.\n", "Look."},
	{"lines after", "---\n" N D "---\n\n\n\nLook.\n\n\n", "Look."},
	{"comments in it", "---\n# mine\n" N "# ours\n" D "---\nLook.\n", "Look."},
	{"empty lines in it", "---\n\n" N "\n" D "\n---\nLook.\n", "Look."},
	{"a rule in the text", "---\n" N D "---\nLook.\n\n---\n\nTwice.\n",
	 "Look.\n\n---\n\nTwice."},
	{"no end of line", "---\n" N D "---\nLook.", "Look."},
	{"a heading before", "# Expert\n---\n" N D "---\nLook.\n", "^1 there is no front matter"},
	{"no front matter", "Look.\n", "^1 there is no front matter"},
	{"empty", "", "^1 there is no front matter"},
	{"no end of it", "---\n" N D "Look.\n", "^1 has no end"},
	{"no end, line two", "\n---\n" N D "Look.\n", "^2 has no end"},
	{"nothing in it", "---\n---\nLook.\n", "^2 must be lines such as"},
	{"words in it", "---\njust words\n---\nLook.\n", "^2 must be lines such as"},
	{"no blank behind the colon", "---\nname:x\n---\nLook.\n", "^2 must be lines such as"},
	{"nothing below it", "---\n" N D "---\n", "^4 stands nothing"},
	{"no description", "---\n" N "---\nLook.\n", "^1 the description is missing"},
	{"another code", "---\n" N D "---\nLook at \xe9.\n", "^5 no UTF-8"},
	{"a NUL", "---\n" N D "---\nLook\\0.\n", "^5 no UTF-8"},
	{"hidden letters", "---\n" N D "---\nLook.\xf3\xa0\x81\xa1\n", "Look.\\u{e0061}"},
};

/* The one file of this shape. "\\0" stands for a NUL, which C strings do not hold. */
static int read_shape(const struct role **r, const char *text, struct ava_error *err)
{
	TEST_BUF(b, 1 << 20);
	int rv;

	*err = (struct ava_error){0};
	for (const char *s = text; *s; s++) {
		bool nul = s[0] == '\\' && s[1] == '0';

		buf_addc(&b, nul ? '\0' : *s);
		s += nul;
	}
	rv = role_read(r, "/x/my-tables.md", b.data ? b.data : "", b.len, ROLE_USER, err);
	return rv;
}

/* What became of the field that the rows of a table are about. */
typedef void (*told_fn)(const struct role *r, const char *want, char out[4096]);

static void told_description(const struct role *r, const char *want, char out[4096])
{
	assert_string_equal(r->model, "claude-haiku"); /* what follows is taken, too */
	assert_int_equal(r->iterations, 25);
	snprintf(out, 4096, "%s", r->summary);
}

static void told_tools(const struct role *r, const char *want, char out[4096])
{
	size_t n = 0;

	for (size_t i = 0; r->tools[i]; i++)
		n += (size_t)snprintf(out + n, 4096 - n, "%s%s", i ? " " : "", r->tools[i]);
}

static void told_model(const struct role *r, const char *want, char out[4096])
{
	snprintf(out, 4096, "%s", r->model);
}

static void told_name(const struct role *r, const char *want, char out[4096])
{
	snprintf(out, 4096, "%s", r->name);
}

static void told_text(const struct role *r, const char *want, char out[4096])
{
	snprintf(out, 4096, "%s", r->instructions);
}

static void told_rest(const struct role *r, const char *want, char out[4096])
{
	const struct {
		const char *word;
		int64_t value;
	} facts[] = {{"iterations", r->iterations},
		     {"timeout", r->timeout_s},
		     {"cost", r->cost_cents},
		     {"tokens", r->tokens},
		     {"thinking", r->thinking}};

	for (size_t i = 0; i < ARRAY_LEN(facts); i++)
		if (strncmp(want, facts[i].word, strlen(facts[i].word)) == 0)
			snprintf(out, 4096, "%s %lld", facts[i].word, (long long)facts[i].value);
	if (strncmp(want, "skills", 6) == 0) {
		size_t n = (size_t)snprintf(out, 4096, "skills%s", r->skills_said ? "" : " *");

		for (size_t i = 0; r->skills[i]; i++)
			n += (size_t)snprintf(out + n, 4096 - n, " %s", r->skills[i]);
	}
	if (strncmp(want, "instructions", 12) == 0)
		snprintf(out, 4096, "instructions %d", !r->no_instructions);
	if (strncmp(want, "check ", 6) == 0)
		snprintf(out, 4096, "check %s", r->check ? r->check : "");
	if (strncmp(want, "on_quota", 8) == 0)
		snprintf(out, 4096, "on_quota %s", r->on_quota ? r->on_quota : "");
	if (strncmp(want, "schema", 6) == 0)
		snprintf(out, 4096, "schema %s", r->schema ? r->schema : "");
	if (strncmp(want, "tools ", 6) == 0) {
		char list[4096];

		told_tools(r, want, list);
		snprintf(out, 4096, "tools %.4000s", list);
	}
}

static bool noted(const struct role *r, const char *words)
{
	for (unsigned i = 0; i < r->nnotes; i++)
		if (strstr(r->notes[i].text, words) && r->notes[i].line > 0)
			return true;
	return false;
}

static unsigned shapes_seen;

static void check_shapes(const struct shape *s, size_t n, const char *before, const char *after,
			 told_fn told)
{
	for (size_t i = 0; i < n; i++) {
		char text[8192], got[4096] = "", line[32];
		const struct role *r = NULL;
		struct ava_error err;
		int rv;

		snprintf(text, sizeof(text), "%s%s%s", before, s[i].lines, after);
		rv = read_shape(&r, text, &err);
		shapes_seen++;
		if (s[i].want[0] == '^') {
			snprintf(line, sizeof(line),
				 "/x/my-tables.md:%.*s: ", (int)strcspn(s[i].want + 1, " "),
				 s[i].want + 1);
			if (rv != AVA_EINVAL || strncmp(err.text, line, strlen(line)) != 0 ||
			    !strstr(err.text, strchr(s[i].want, ' ') + 1))
				fail_msg("%s: not \"%s\" but %d %s", s[i].what, s[i].want, rv,
					 err.text);
			continue;
		}
		if (rv != 0)
			fail_msg("%s: %s", s[i].what, err.text);
		if (s[i].want[0] == '~' && !noted(r, s[i].want + 1))
			fail_msg("%s: no note \"%s\"", s[i].what, s[i].want + 1);
		if (s[i].want[0] != '~') {
			told(r, s[i].want, got);
			if (strcmp(got, s[i].want) != 0)
				fail_msg("%s: not \"%s\" but \"%s\"", s[i].what, s[i].want, got);
		}
		if (*after)
			assert_string_equal(r->instructions, "Look.");
		role_release(r);
	}
}

#define END "\ncolor: blue\n---\nLook.\n"

TEST(shapes)
{
	shapes_seen = 0;
	check_shapes(descriptions, ARRAY_LEN(descriptions), "---\n" N,
		     "\nmodel: haiku\nmaxTurns: 25\n---\nLook.\n", told_description);
	check_shapes(tools, ARRAY_LEN(tools), "---\n" N D, END, told_tools);
	check_shapes(models, ARRAY_LEN(models), "---\n" N D, "\n---\nLook.\n", told_model);
	check_shapes(names, ARRAY_LEN(names), "---\n", "\n" D "---\nLook.\n", told_name);
	check_shapes(rest, ARRAY_LEN(rest), "---\n" N D, "\n---\nLook.\n", told_rest);
	check_shapes(files, ARRAY_LEN(files), "", "", told_text);
	print_message("%u shapes\n", shapes_seen);
	assert_true(shapes_seen >= 200);
}

/* What is left out of a file's wishes is said, each with its line. */
TEST(notes)
{
	static const char text[] =
		"---\n" N D "tools: Task, Bash(git log:*), TodoWrite\nhooks: {}\n---\nLook.\n";
	static const char *const want[] = {"subagents start no others", "run_bash cannot be held",
					   "there is no tool TodoWrite", "hooks of a role file"};
	const struct role *r;
	struct ava_error err;

	assert_int_equal(read_shape(&r, text, &err), 0);
	assert_int_equal(r->nnotes, ARRAY_LEN(want));
	for (unsigned i = 0; i < r->nnotes; i++) {
		assert_non_null(strstr(r->notes[i].text, want[i]));
		assert_int_equal(r->notes[i].line, i < 3 ? 4 : 5);
	}
	role_release(r);
}

TEST(bounds)
{
	char *big = test_malloc(ROLE_FILE_MAX + 2);
	const struct role *r = NULL;
	struct ava_error err = {0};
	TEST_BUF(b, 1 << 20);

	memset(big, 'x', ROLE_FILE_MAX + 1);
	assert_int_equal(role_read(&r, "/x/a.md", big, ROLE_FILE_MAX + 1, ROLE_USER, &err),
			 AVA_ETOOBIG);
	test_free(big);
	buf_adds(&b, "---\n" N D "tools:\n");
	for (int i = 0; i < 100; i++)
		buf_addf(&b, "  - mcp__s__t%d\n", i);
	for (int i = 0; i < 100; i++)
		buf_addf(&b, "field%d: 1\n", i);
	buf_adds(&b, "---\nLook.\n");
	assert_int_equal(role_read(&r, "/x/a.md", b.data, b.len, ROLE_USER, &err), 0);
	assert_non_null(r->tools[ROLE_WISHES_MAX - 1]);
	assert_null(r->tools[ROLE_WISHES_MAX]);
	assert_int_equal(r->nnotes, ROLE_NOTES_MAX);
	role_release(r);
}

static void read_once(void)
{
	const struct role *r = NULL;
	struct ava_error err = {0};
	int rv = role_read(&r, "/x/a.md", files[0].lines, strlen(files[0].lines), ROLE_USER, &err);

	assert_true(rv == 0 || (rv == AVA_ENOMEM && !r));
	role_release(r);
}

TEST(no_memory)
{
	if (!UNIT_SANITIZED)
		FAULT_LOOP(k, read_once());
}

/* ---- the built-in ones */

TEST(builtin)
{
	struct book_list l;

	assert_int_equal(book_list(&book_of_roles, "", &l), 0);
	assert_true(l.n >= 4);
	for (size_t i = 0; i < 4; i++) {
		const struct role *r = l.items[i].role;
		const struct role *theirs = NULL;
		struct ava_error err = {0};

		print_message("%s: %zu bytes of instructions\n", r->name, strlen(r->instructions));
		assert_int_equal(r->source, ROLE_BUILTIN);
		assert_null(l.items[i].why);
		/* 600 tokens, at the four bytes a token that English has. */
		assert_in_range(strlen(r->instructions), 400, 600 * 4);
		assert_non_null(strstr(r->instructions, "When to stop"));
		assert_non_null(strstr(r->instructions, "A good result"));
		assert_int_equal(r->nnotes, 0);
		/* Its name is taken, by the reader and not only here. */
		assert_int_equal(role_read(&theirs, "/x/a.md", builtin_roles[i].text,
					   builtin_roles[i].len, ROLE_USER, &err),
				 AVA_EINVAL);
		assert_non_null(strstr(err.text, "ava's own"));
	}
	book_list_free(&l);
	assert_null(builtin_roles[4].path);
}

/* All of a server's tools, or one of them; no other server's. */
TEST(wishes)
{
	static const struct {
		const char *wish, *name;
		bool wished;
	} cases[] = {
		{"mcp__fs__read", "mcp__fs__read", true},
		{"mcp__fs__read", "mcp__fs__read2", false},
		{"mcp__fs__*", "mcp__fs__read", true},
		{"mcp__fs", "mcp__fs__read", true},
		{"mcp__fs", "mcp__fs2__read", false},
		{"mcp__fs__*", "mcp__fs2__read", false},
		{"mcp__fs__re*", "mcp__fs__read", true},
		{"mcp__fs__re*", "mcp__fs__write", false},
		{"read_file", "mcp__read_file", false},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct role r = {.tools = {cases[i].wish}};

		if (role_wishes(&r, cases[i].name) != cases[i].wished)
			fail_msg("%s: %s", cases[i].wish, cases[i].name);
	}
}
