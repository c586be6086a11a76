/* Every tool of this program. A new one is a file of its own with a `const struct
 * tool tool_NAME`, and its line in TOOLS; the runtime may add others while it runs.
 * Roles pick from these by name; a name that is not here does not exist. The rows of
 * the two tools that the machine itself answers are here, too. */
#include <ava.h>
#include <string.h>

#include "agent/reply.h"
#include "agent/tool.h"
#include "codec/json.h"

#define TOOLS(X)                                                                                   \
	X(ask_person)                                                                              \
	X(edit_file)                                                                               \
	X(http_get)                                                                                \
	X(list_files)                                                                              \
	X(memory_search)                                                                           \
	X(python_exec)                                                                             \
	X(read_file)                                                                               \
	X(read_result)                                                                             \
	X(read_skill)                                                                              \
	X(read_webpages)                                                                           \
	X(run_bash)                                                                                \
	X(search_and_read)                                                                         \
	X(search_codebase)                                                                         \
	X(submit_result)                                                                           \
	X(write_file)

#define DECLARED(name) extern const struct tool tool_##name;
TOOLS(DECLARED)

/* Asks the person for whom the run works (TOOL_ASKS, agent/ask.c). Asked again after a crash it is
 * the same question. */
static void ask_activity(const json_t *args, struct buf *out)
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
	.brief = "choices",
	.flags = TOOL_REPEATABLE | TOOL_ASKS | TOOL_LATER,
	.activity = ask_activity,
};

/* Ends a run (TOOL_ENDS). The schema promises the machine: a summary, a confidence from 0 to 1, any
 * JSON as output, caveats as strings. */
static void submit_activity(const json_t *args, struct buf *out)
{
	(void)args;
	buf_adds(out, "Submitting the result");
}

const struct tool tool_submit_result = {
	.name = "submit_result",
	.description =
		"Hand in the result and end this run. Call it exactly once, alone and last, when "
		"the task is done or cannot be done. Put what was found into summary, for a "
		"person, with the source of each statement (path:line or URL) as the tools "
		"returned it; put structured data into output, or null. State in caveats what is "
		"missing or uncertain. Do not call it to report progress.",
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
		  "\"required\":[\"summary\"],\"additionalProperties\":false}",
	.flags = TOOL_ENDS,
	.mend = reply_mend,
	.activity = submit_activity,
};

#define ADDED_MAX 512u

static const struct tool *added[ADDED_MAX];
static unsigned nadded;

#define ROW(name) &tool_##name,
const struct tool *const tool_table[] = {TOOLS(ROW) NULL};

const struct tool *tool_own(const char *name)
{
	for (const struct tool *const *t = tool_table; *t != NULL; t++) {
		if (strcmp((*t)->name, name) == 0)
			return *t;
	}
	return NULL;
}

const struct tool *tool_find(const char *name)
{
	const struct tool *t = tool_own(name);

	for (unsigned i = 0; t == NULL && i < nadded; i++) {
		if (strcmp(added[i]->name, name) == 0)
			t = added[i];
	}
	return t;
}

int tool_add(const struct tool *t)
{
	if (tool_find(t->name) != NULL)
		return AVA_EEXIST;
	if (nadded == ADDED_MAX)
		return AVA_EBUSY;
	added[nadded++] = t;
	return 0;
}

void tool_remove(const struct tool *t)
{
	for (unsigned i = 0; i < nadded; i++) {
		if (added[i] == t) {
			nadded--;
			memmove(&added[i], &added[i + 1], (nadded - i) * sizeof(added[0]));
			return;
		}
	}
}

const struct tool *tool_added(unsigned i)
{
	return i < nadded ? added[i] : NULL;
}

bool tool_granted(const struct tool_env *env, const char *grant)
{
	for (size_t i = 0; i < env->ngrants; i++) {
		if (strcmp(env->grants[i], grant) == 0)
			return true;
	}
	return false;
}
