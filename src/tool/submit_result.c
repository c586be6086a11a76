/* submit_result: how a run ends, and what its schema promises the machine:
 * a summary, a confidence from 0 to 1, any JSON as output, caveats as strings.
 * The row alone: the machine takes the call itself (TOOL_ENDS), so there is
 * nothing to start. */
#include "tool/table.h"

static void activity(const json_t *args, struct buf *out)
{
	(void)args;
	buf_adds(out, "Submitting the result");
}

const struct tool tool_submit_result = {
	.name = "submit_result",
	.description =
		"Hand in the result and end this run. Call it exactly once, alone and last, when "
		"the "
		"task is done or cannot be done. Put what was found into summary, for a person, "
		"with "
		"the source of each statement (path:line or URL) as the tools returned it; put "
		"structured data into output, or null. State in caveats what is missing or "
		"uncertain. "
		"Do not call it to report progress.",
	.schema = "{\"type\":\"object\",\"properties\":{"
		  "\"output\":{\"description\":\"The result as data: an object, array, string or "
		  "null, in the form the task asks for.\"},"
		  "\"summary\":{\"type\":\"string\",\"minLength\":1,\"maxLength\":20000,"
		  "\"description\":\"The answer in words, with its sources.\"},"
		  "\"confidence\":{\"type\":\"number\",\"minimum\":0,\"maximum\":1,"
		  "\"description\":\"How sure you are that the answer is right and complete; 0: "
		  "nothing was found.\"},"
		  "\"caveats\":{\"type\":\"array\",\"items\":{\"type\":\"string\"},"
		  "\"description\":\"What a reader must know: gaps, assumptions, doubts.\"}},"
		  "\"required\":[\"summary\",\"confidence\"],\"additionalProperties\":false}",
	.flags = TOOL_ENDS,
	.activity = activity,
};
