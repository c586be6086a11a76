/* Results of calls that no tool gives: the machine says itself why a call was not
 * made, or what nobody can know of it. Each answer is text that the model reads, in
 * the turn's arena; without memory for it a shorter one takes its place. */
#include "agent/answer.h"

#include <assert.h>
#include <string.h>

#include "agent/ask.h"
#include "agent/tool.h"
#include "base/buf.h"
#include "base/error.h"
#include "codec/json.h"
#include "codec/utf8.h"

#define NAME_SHOWN 64 /* characters of an unknown tool's name */

void answer_call(struct agent *a, struct turn_call *c, bool success, const char *error_class,
		 const char *output)
{
	assert(!c->answered);
	c->answered = true;
	c->success = success;
	c->error_class = error_class;
	c->output = output;
	c->output_len = strlen(output);
	c->full_bytes = (int64_t)c->output_len;
	a->answered++;
}

void answer_open(struct agent *a, const char *error_class, const char *why)
{
	struct turn *t = a->turn;

	for (unsigned i = 0; t != NULL && i < t->ncalls; i++) {
		struct turn_call *c = &t->calls[i];
		const char *text;

		if (c->answered)
			continue;
		text = arena_fmt(&t->mem,
				 c->started || (a->replayed && !c->unstarted)
					 ? "stopped: %s; it may have had effects"
					 : "not run: %s",
				 why);
		answer_call(a, c, false, error_class, text != NULL ? text : "not finished");
	}
}

void answer_unknown(struct agent *a, struct turn_call *c)
{
	const struct agent_spec *s = a->spec;
	const char *text = NULL;
	struct buf b;

	buf_init(&b, 8192);
	buf_adds(&b, "there is no tool ");
	json_escape(&b, c->name, utf8_prefix(c->name, strlen(c->name), NAME_SHOWN));
	buf_adds(&b, "; the tools are: ");
	for (unsigned i = 0; i < s->ntools; i++)
		buf_addf(&b, "%s%s", i > 0 ? ", " : "", s->tools[i]->name);
	if (buf_check(&b) == 0)
		text = arena_copy(&a->turn->mem, b.data, b.len);
	buf_fini(&b);
	answer_call(a, c, false, "unknown_tool", text != NULL ? text : "there is no such tool");
}

void answer_bad(struct agent *a, struct turn_call *c, const char *sentence)
{
	const char *text = arena_fmt(&a->turn->mem, "bad arguments: %s", sentence);

	answer_call(a, c, false, "bad_arguments", text != NULL ? text : "bad arguments");
}

void answer_interrupted(struct agent *a)
{
	for (unsigned i = 0; i < a->turn->ncalls; i++) {
		struct turn_call *c = &a->turn->calls[i];

		if (!c->answered && !c->unstarted && !ask_needed(a, c) &&
		    !(c->tool->flags & TOOL_REPEATABLE))
			answer_call(a, c, false, "interrupted",
				    "interrupted: the runtime stopped before there was a result; "
				    "it may "
				    "have happened");
	}
}
