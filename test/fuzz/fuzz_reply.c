/* Any bytes as the text of a reply: a result or calls are found within it, and what is shown of it.
 */
#include "fuzz.h"

#include "agent/reply.h"
#include "agent/tool.h"

FUZZ_TARGET(reply, len)
{
	static const struct tool look = {.name = "look"}, read = {.name = "read_file"};
	static const struct tool *const tools[] = {&look, &read};
	char *text = fuzz_text(data, len);
	struct reply r;
	size_t from, to;
	json_t *calls;

	CHECK(reply_read(&r, text, len, tools, 2) == 0);
	CHECK(r.object == NULL || (r.start < r.end && r.end <= len));
	reply_fini(&r);
	calls = reply_calls(text, len, tools, 2, &from);
	CHECK(calls == NULL || (json_array_size(calls) > 0 && from < len));
	json_decref(calls);
	for (from = 0; from < len; from++) {
		to = from == 0 || text[from - 1] == '\n' ? reply_shown(text, from, len, tools, 2)
							 : 0;
		CHECK(to == 0 || (to > from && to <= len));
	}
	free(text);
}
