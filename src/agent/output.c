/* Results of calls that no tool gives: the machine says itself why a call was not
 * made, or what nobody can know of it, and takes what a call hands in as the output
 * of the run.
 *
 * An output that does not fit is never passed on as the result. The model reads
 * what is wrong and may try again, twice; then the run ends as an error that says
 * it, with the summary it gave and no output. Nothing here can fail but memory. */
#include "agent/output.h"

#include <assert.h>
#include <string.h>

#include "agent/ask.h"
#include "agent/reply.h"
#include "agent/tool.h"
#include "base/buf.h"
#include "base/error.h"
#include "codec/json.h"
#include "codec/schema.h"
#include "codec/utf8.h"

#define ERRORS_MAX 4096
#define NAME_SHOWN 64 /* characters of an unknown tool's name */

/* ---- answers that the machine gives itself */

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

/* ---- outputs */

int output_check(struct agent *a, const char *output, size_t len, const char **errors)
{
	const char *text = a->spec->output_schema;
	json_t *schema, *v = NULL;
	struct buf out;
	int rv = 0;

	*errors = NULL;
	if (text == NULL)
		return 0;
	if (output == NULL) {
		*errors = "output is missing";
		return 0;
	}
	buf_init(&out, ERRORS_MAX);
	schema = json_parse(text, strlen(text), NULL);
	v = json_parse(output, len, NULL);
	if (schema == NULL || v == NULL)
		rv = AVA_ENOMEM;
	else
		rv = schema_validate(schema, v, "output", &out);
	if (rv > 0 || rv == AVA_ETOOBIG) {
		/* Over the bound some are not told; the first ones are. */
		*errors = arena_copy(&a->turn->mem, out.data != NULL ? out.data : "", out.len);
		rv = *errors != NULL ? 0 : AVA_ENOMEM;
	}
	json_decref(schema);
	json_decref(v);
	buf_fini(&out);
	return rv;
}

struct turn_call *output_submit(struct agent *a)
{
	for (unsigned i = 0; i < a->turn->ncalls; i++) {
		struct turn_call *c = &a->turn->calls[i];

		if (!c->answered && (c->tool->flags & TOOL_ENDS))
			return c;
	}
	return NULL;
}

void output_put_off(struct agent *a)
{
	for (struct turn_call *c; (c = output_submit(a)) != NULL;)
		answer_call(a, c, false, "steered",
			    "not taken yet: a person said something while you worked, see below; "
			    "mind it, then submit again");
}

int output_take(struct agent *a, const struct turn_call *c, struct agent_end *end)
{
	json_t *args = json_parse(c->args, c->args_len, NULL);
	int rv = args != NULL ? reply_result(&a->turn->mem, args, end) : AVA_ENOMEM;

	json_decref(args);
	return rv;
}

int output_drop_misfit(struct agent *a, struct agent_end *end)
{
	const char *errors = NULL;
	int rv = end->output != NULL ? output_check(a, end->output, end->output_len, &errors) : 0;

	if (errors == NULL)
		return rv;
	end->output = NULL;
	end->output_len = 0;
	return rv;
}

static int check_call(struct agent *a, const struct turn_call *c, const char **errors)
{
	json_t *args = json_parse(c->args, c->args_len, NULL);
	const json_t *v = json_object_get(args, "output");
	struct buf text;
	int rv = args != NULL ? 0 : AVA_ENOMEM;

	buf_init(&text, TURN_MAX_BYTES);
	if (rv == 0 && v != NULL)
		rv = json_dump(&text, v);
	if (rv == 0)
		rv = output_check(a, v != NULL ? text.data : NULL, text.len, errors);
	buf_fini(&text);
	json_decref(args);
	return rv;
}

int output_send_back(struct agent *a, bool more)
{
	const char *errors, *text;
	bool sent = false;

	if (a->spec->output_schema == NULL || !more || a->at.repairs >= OUTPUT_REPAIRS_MAX)
		return 0;
	for (unsigned i = 0; i < a->turn->ncalls; i++) {
		struct turn_call *c = &a->turn->calls[i];
		int rv;

		if (c->answered || !(c->tool->flags & TOOL_ENDS))
			continue;
		rv = check_call(a, c, &errors);
		if (rv != 0)
			return rv;
		if (errors == NULL)
			return 0; /* this one is taken */
		text = arena_fmt(&a->turn->mem,
				 "not accepted: the output does not fit its schema:\n%s\n"
				 "Correct it and call submit_result again (%d of %d).",
				 errors, a->at.repairs + 1, OUTPUT_REPAIRS_MAX);
		if (text == NULL)
			return AVA_ENOMEM;
		answer_call(a, c, false, "bad_output", text);
		sent = true;
	}
	a->at.repairs += sent;
	return 0;
}

void output_misfit(struct agent_end *end, const char *errors)
{
	end->status = AVA_ERROR;
	end->stop_reason = end->error_class = "output_schema";
	end->error = errors;
	end->output = NULL;
	end->output_len = 0;
	end->partial = true;
	end->unverified = false;
}
