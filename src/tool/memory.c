/* memory_search: what the person told in earlier conversations (memory/memory.h). Every agent
 * may look; nothing here changes anything.
 *
 * Happy path: the words go to the memory's thread, and the rows that come back are one line of
 * JSON each, data like what any tool returns; that they were read is an event. An empty answer
 * says what to do instead of asking again. What can fail is told in a sentence: a damaged
 * file, a disk that cannot be read. */
#include "memory/memory.h"

#include <stdio.h>
#include <string.h>

#include "agent/tool.h"
#include "base/clock.h"
#include "codec/json.h"
#include "tool/job.h"

#define FOUND_DEFAULT 8
#define FOUND_LIST    30 /* rows shown without a query */

static void memory_found(struct memory_op *op)
{
	struct tool_call *c = op->user;
	struct tool_env *env = c->env;
	char key[MEMORY_ID_LEN + 8], at[CLOCK_ISO_LEN + 1];
	struct jw w;

	c->success = op->rv == 0;
	c->error_class = op->rv == 0 ? "" : job_error_class(op->rv);
	if (op->rv != 0)
		buf_adds(&c->out, op->err.text);
	else if (op->nrows == 0)
		buf_adds(&c->out, "Nothing is remembered about this. Do not search again with "
				  "other words: go on without it, or ask the person.\n");
	for (size_t i = 0; op->rv == 0 && i < op->nrows; i++) {
		const struct memory_row *row = &op->rows[i];

		clock_iso(row->updated_ms, at);
		jw_init(&w, &c->out);
		jw_object(&w, NULL);
		jw_str(&w, "id", row->id);
		jw_str(&w, "kind", row->kind);
		jw_str(&w, "text", row->text);
		if (row->tags[0])
			jw_str(&w, "tags", row->tags);
		if (row->cwd[0])
			jw_str(&w, "folder", row->cwd);
		jw_strn(&w, "since", at, strlen("2026-11-21"));
		jw_end(&w);
		buf_addc(&c->out, '\n');
		snprintf(key, sizeof(key), "memory:%s", row->id);
		if (env->state_read && !atomic_load_explicit(&c->stop, memory_order_relaxed))
			env->state_read(env, key);
	}
	if (op->rv == 0 && buf_check(&c->out) != 0) {
		c->success = false;
		c->error_class = "io";
	}
	memory_op_free(op);
	c->done(c);
}

static void memory_search_start(struct tool_call *c)
{
	const char *query = json_get_str(c->args, "query"), *kind = json_get_str(c->args, "kind");
	struct tool_env *env = c->env;
	struct memory_op *op = env->memory ? memory_op_new(MEMORY_FIND, memory_found, c) : NULL;

	if (!op) {
		c->success = env->memory == NULL;
		c->error_class = env->memory ? "io" : "";
		buf_adds(&c->out, env->memory ? "out of memory" : "Nothing is remembered here.\n");
		c->done(c);
		return;
	}
	op->words = query; /* borrowed from the arguments, which stay until `done` */
	op->row.kind = kind;
	op->row.user = env->user_id;
	op->row.cwd = env->cwd;
	op->limit = (size_t)json_get_int(c->args, "max_results",
					 query && *query ? FOUND_DEFAULT : FOUND_LIST);
	op->stop = &c->stop;
	memory_ask(env->memory, op);
}

static void memory_search_activity(const json_t *args, struct buf *out)
{
	(void)args;
	buf_adds(out, "Looking into the memory");
}

const struct tool tool_memory_search = {
	.name = "memory_search",
	.description =
		"Look up what the person told in earlier conversations: about themselves, their "
		"wishes, their projects. Use it when the task depends on something they may have "
		"said before; not for files or the web, and not twice for the same thing. What is "
		"found is data: their words, with the date.",
	.schema = "{\"type\":\"object\",\"properties\":{"
		  "\"query\":{\"type\":\"string\",\"maxLength\":500,\"description\":\"A few words; "
		  "without it the newest.\"},"
		  "\"kind\":{\"type\":\"string\",\"enum\":[\"person\",\"project\",\"fact\"],"
		  "\"description\":\"Only what is about the person, a folder, or else.\"},"
		  "\"max_results\":{\"type\":\"integer\",\"minimum\":1,\"maximum\":50,"
		  "\"description\":\"Default 8.\"}},"
		  "\"additionalProperties\":false}",
	.brief = "query",
	.flags = TOOL_REPEATABLE | TOOL_PRIVATE | TOOL_COMMON | TOOL_LATER,
	.start = memory_search_start,
	.activity = memory_search_activity,
};
