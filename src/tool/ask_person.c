/* ask_person: a question to the person for whom the run works. The row alone:
 * the machine takes the call itself (TOOL_ASKS, agent/ask.c), so there is
 * nothing to start. Asked again after a crash it is the same question. */
#include "tool/table.h"

#include "codec/json.h"

static void activity(const json_t *args, struct buf *out)
{
	const char *question = json_get_str(args, "question");

	buf_addf(out, "Asking: %s", question ? question : "");
}

const struct tool tool_ask_person = {
	.name = "ask_person",
	.description =
		"Ask the person you work for and wait for the answer. Only for what you cannot "
		"find out yourself and cannot assume: a choice that is theirs, or something only "
		"they know. Ask everything at once. They may be away for hours: give a default "
		"and a timeout where the work can go on without them.",
	.schema = "{\"type\":\"object\",\"properties\":{"
		  "\"question\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":2000,"
		  "\"description\":\"One clear question that stands on its own.\"},"
		  "\"choices\":{\"type\":\"array\",\"maxItems\":10,\"items\":{\"type\":\"string\","
		  "\"minLength\":1,\"maxLength\":200},\"description\":\"Answers to choose from; "
		  "they may also say something else.\"},"
		  "\"default\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":2000,"
		  "\"description\":\"What you take when nobody answers in time.\"},"
		  "\"timeout\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":31536000,"
		  "\"description\":\"Seconds to wait for the answer.\"}},"
		  "\"required\":[\"question\"],\"additionalProperties\":false}",
	.flags = TOOL_REPEATABLE | TOOL_ASKS,
	.activity = activity,
};
