/* Results of calls that no tool gives: the machine says itself why a call was not made, or that
 * its outcome is unknown, and takes the arguments of submit_result as the run's output.
 *
 * An output that does not fit is never passed on as the result. The model reads the faults and
 * may try again, twice; then the run ends as an error that names them, with its summary and no
 * output. Nothing here can fail but memory. */
#include "agent/output.h"

#include <assert.h>
#include <ava.h>
#include <ctype.h>
#include <string.h>

#include "agent/echo.h"
#include "agent/limit.h"
#include "agent/reply.h"
#include "agent/tool.h"
#include "agent/turn.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/near.h"
#include "codec/json.h"
#include "codec/schema.h"
#include "codec/utf8.h"

#define ERRORS_MAX 4096
#define CAVEAT_FORM                                                                                \
	"The result was not handed in in the form that was asked for, and is taken as it is."
#define NAME_SHOWN 64 /* characters of an unknown tool's name */

/* ---- answers of the machine itself */

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
	struct near near = near_start(c->name);
	const char *text = NULL;
	struct buf b;

	buf_init(&b, 8192);
	buf_adds(&b, "there is no tool ");
	json_escape(&b, c->name, utf8_prefix(c->name, strlen(c->name), NAME_SHOWN));
	for (char *at = b.data; at != NULL && (at = strchr(at, '[')) != NULL;)
		*at = '('; /* no name begins a notice */
	buf_adds(&b, "; the tools are: ");
	for (unsigned i = 0; i < s->ntools; i++) {
		buf_addf(&b, "%s%s", i > 0 ? ", " : "", s->tools[i]->name);
		near_word(&near, s->tools[i]->name, strlen(s->tools[i]->name));
	}
	if (near.len > 0)
		buf_addf(&b, ". Did you mean %s?", near.best);
	if (buf_check(&b) == 0)
		text = arena_copy(&a->turn->mem, b.data, b.len);
	buf_fini(&b);
	answer_call(a, c, false, "unknown_tool", text != NULL ? text : "there is no such tool");
}

/* ---- outputs */

int output_check(struct agent *a, struct agent_end *end, const char **errors)
{
	const char *text = a->spec->output_schema;
	json_t *schema, *v;
	struct buf out;
	int rv = 0;

	*errors = NULL;
	if (text == NULL)
		return 0;
	if (end->output == NULL) {
		*errors = "output is missing";
		return 0;
	}
	buf_init(&out, ERRORS_MAX);
	schema = json_parse(text, strlen(text), NULL);
	v = json_parse(end->output, end->output_len, NULL);
	if (schema == NULL || v == NULL)
		rv = AVA_ENOMEM;
	else
		rv = schema_validate(schema, v, "output", &out);
	if (rv > 0) {
		buf_reset(&out);
		v = schema_coerce(schema, v, "output", NULL);
		rv = schema_validate(schema, v, "output", &out);
		if (rv == 0)
			rv = reply_json(&a->turn->mem, v, &end->output, &end->output_len);
	}
	if (rv > 0 || rv == AVA_ETOOBIG) {
		/* A full buffer drops the last errors, not the first. */
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

/* The value if it is a text, or its only member if that is one; NULL: neither. */
static json_t *only_text(const json_t *v)
{
	json_t *in = json_object_size(v) == 1
			     ? json_object_iter_value(json_object_iter((json_t *)v))
			     : (json_t *)v;

	return json_string_length(in) > 0 ? in : NULL;
}

int output_clean(const struct agent *a, struct turn_call *c, int rv, struct ava_error *err)
{
	json_t *args = json_parse(c->args, c->args_len, NULL);
	bool changed = false;
	int failed = 0;

	echo_clean(a, args, &changed);
	if (changed)
		failed = reply_json(&a->turn->mem, args, &c->args, &c->args_len);
	if (failed == 0 && rv == 0 && json_str(args, "summary")[0] == 0)
		rv = err_set(err, AVA_EINVAL,
			     "summary only repeats what you were told about it: put the answer "
			     "there, in your own words");
	json_decref(args);
	return failed != 0 ? failed : rv;
}

int output_read(const struct agent *a, struct reply *r, const char *text, size_t len)
{
	int rv = reply_read(r, text, len, a->spec->tools, a->spec->ntools);
	bool changed;

	if (rv != 0 || !r->envelope || !echo_clean(a, r->object, &changed))
		return rv;
	for (size_t i = 0; i < len; i++) /* words beside the object are the summary */
		if ((i < r->start || i >= r->end) && !isspace((unsigned char)text[i]))
			return rv;
	reply_fini(r);
	r->envelope = false;
	r->echo = true;
	return rv;
}

int output_accept(struct agent *a, struct turn_call *c, bool last)
{
	json_t *args = json_parse(c->args, c->args_len, NULL);
	const json_t *output = json_object_get(args, "output");
	int rv = args != NULL ? AVA_EINVAL : AVA_ENOMEM;

	if (json_str(args, "summary")[0] == 0 && a->turn->text_len > 0) /* said beside the call */
		json_object_set_new(args, "summary", json_string(a->turn->text));
	else if (json_str(args, "summary")[0] == 0 && only_text(output) != NULL)
		json_object_set(args, "summary", only_text(output));

	if ((last || a->at.repairs > 0) &&
	    (json_str(args, "summary")[0] != 0 || (output != NULL && !json_is_null(output)))) {
		json_array_append_new(json_object_get(args, "caveats"), json_string(CAVEAT_FORM));
		rv = reply_json(&a->turn->mem, args, &c->args, &c->args_len);
	}
	a->at.repairs += rv != 0 && a->at.repairs < UINT8_MAX;
	json_decref(args);
	return rv;
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

/* Drop an output that does not fit. 0, AVA_ENOMEM. */
static int output_drop_misfit(struct agent *a, struct agent_end *end)
{
	const char *errors = NULL;
	int rv = end->output != NULL ? output_check(a, end, &errors) : 0;

	if (errors == NULL)
		return rv;
	end->output = NULL;
	end->output_len = 0;
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
		struct agent_end end = {0};
		int rv;

		if (c->answered || !(c->tool->flags & TOOL_ENDS))
			continue;
		rv = output_take(a, c, &end);
		if (rv == 0)
			rv = output_check(a, &end, &errors);
		if (rv != 0)
			return rv;
		if (errors == NULL)
			return 0; /* this call is accepted */
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

int output_last(struct agent *a, struct turn_call **submit, struct agent_end *end)
{
	struct turn *t = a->turn;
	struct reply r = {0};
	int rv;

	*submit = output_submit(a);
	rv = *submit != NULL ? output_take(a, *submit, end)
			     : output_read(a, &r, t->text, t->text_len);
	if (rv == 0 && r.envelope)
		rv = reply_take(&t->mem, &r, t->text, t->text_len, t->forced, end);
	reply_fini(&r);
	return rv == 0 ? output_drop_misfit(a, end) : rv;
}
