/* Results of calls that no tool gives: the machine says itself why a call was not made, or that
 * its outcome is unknown, and takes the arguments of submit_result as the run's output.
 *
 * An output that does not fit is never passed on as the result. The model reads the faults and
 * may try again, twice; then the run ends as an error that names them, with its summary and no
 * output. A result whose check did not pass goes back to the model with what the check said, and is
 * kept: it is the run's when nothing better follows. Nothing here can fail but memory. */
#include "agent/output.h"

#include <assert.h>
#include <ava.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "agent/limit.h"
#include "agent/prompt.h"
#include "agent/reply.h"
#include "agent/tool.h"
#include "agent/turn.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/near.h"
#include "base/words.h"
#include "codec/json.h"
#include "codec/schema.h"
#include "codec/utf8.h"

#define ERRORS_MAX 4096
#define CAVEAT_FORM                                                                                \
	"The result was not handed in in the form that was asked for, and is taken as it is."
#define NAME_SHOWN 64 /* characters of an unknown tool's name */
#define SENTENCE   16 /* bytes of a sentence of ours, at least; with a blank */

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

void start_none(struct agent *a)
{
	for (unsigned i = 0; i < a->turn->ncalls; i++)
		a->turn->calls[i].unstarted = true;
}

bool output_must_be_saved(const struct turn *t)
{
	for (unsigned i = 0; i < t->ncalls; i++)
		if (!t->calls[i].answered && !(t->calls[i].tool->flags & TOOL_REPEATABLE))
			return true;
	return false;
}

/* ---- our own words as a result
 *
 * Small models that are held to the form of a result fill it with text they read last about that
 * form: descriptions out of schemas, the text of a notice, the name of the tool. Passed on as an
 * answer that would be a lie.
 *
 * Text counts as ours when it is a line in the form of a notice, or when the whole text stands
 * word for word in a tool's definition or in the system prompt and is a sentence (no name or
 * word of an answer is), or is an example's placeholder. The rest of an answer stays. */

static bool echo_holds(const char *text, const char *s, size_t len)
{
	return text != NULL && memmem(text, strlen(text), s, len) != NULL;
}

static bool echo_in_tools(const struct agent_spec *s, const char *line, size_t len)
{
	bool found = false;
	struct buf b;

	buf_init(&b, 65536);
	json_escape(&b, line, len);
	for (unsigned i = 0; buf_check(&b) == 0 && i < s->ntools && !found; i++)
		found = echo_holds(s->tools[i]->description, line, len) ||
			echo_holds(s->tools[i]->schema, b.data + 1, b.len - 2);
	buf_fini(&b);
	return found;
}

/* Is all of the text ours? An answer may quote these sentences. */
static bool echo_whole(const struct agent *a, const char *text, size_t len)
{
	const struct agent_spec *s = a->spec;

	for (unsigned i = 0; i < s->ntools; i++)
		if ((s->tools[i]->flags & TOOL_ENDS) && strlen(s->tools[i]->name) == len &&
		    memcmp(s->tools[i]->name, text, len) == 0)
			return true;
	if (len == strlen("…") && memcmp(text, "…", len) == 0)
		return true;
	return len >= SENTENCE && memchr(text, ' ', len) != NULL &&
	       (prompt_says(text, len) || echo_in_tools(s, text, len));
}

/* `text` without our words, maybe empty; NULL: it has none. */
static json_t *echo_without(const struct agent *a, const json_t *text)
{
	const char *s = json_string_value(text), *end = s + json_string_length(text), *next;
	bool found = false;
	json_t *left = NULL;
	struct buf b;

	buf_init(&b, json_string_length(text) + 1);
	for (; s < end; s = next) {
		size_t from = 0, len;

		next = memchr(s, '\n', (size_t)(end - s));
		next = next != NULL ? next + 1 : end;
		len = (size_t)(next - s);
		while (len > 0 && strchr(" \t\r\n", s[len - 1]) != NULL)
			len--;
		while (from < len && strchr(" \t-*>", s[from]) != NULL)
			from++;
		if (len > from && notice_is(a->spec->task, s + from, len - from))
			found = true;
		else
			buf_add(&b, s, (size_t)(next - s));
	}
	while (b.len > 0 && strchr(" \t\r\n", b.data[b.len - 1]) != NULL)
		b.len--;
	if (b.len > 0 && echo_whole(a, b.data, b.len)) {
		found = true;
		b.len = 0;
	}
	if (found && buf_check(&b) == 0)
		left = json_stringn(b.len > 0 ? b.data : "", b.len);
	buf_fini(&b);
	return left;
}

/* Does any text in the value hold words of ours? */
static bool echo_within(const struct agent *a, const json_t *v)
{
	json_t *one = json_is_string(v) ? echo_without(a, v) : NULL;
	bool found = one != NULL;
	const char *key;
	size_t i;

	json_decref(one);
	json_object_foreach((json_t *)v, key, one) found = found || echo_within(a, one);
	json_array_foreach(v, i, one) found = found || echo_within(a, one);
	return found;
}

static bool echo_blank(const json_t *v)
{
	const char *s = json_is_string(v) ? json_string_value(v) : "";

	return v == NULL || json_is_null(v) || (json_is_string(v) && s[strspn(s, " \t\r\n")] == 0);
}

static void echo_caveats(const struct agent *a, json_t *list, bool *changed)
{
	for (size_t i = json_array_size(list); i-- > 0;) {
		json_t *v = json_array_get(list, i), *left;

		left = json_is_string(v) ? echo_without(a, v) : NULL;
		if (left != NULL && !echo_blank(left))
			json_array_set(list, i, left);
		else if (left != NULL)
			json_array_remove(list, i);
		*changed = *changed || left != NULL;
		json_decref(left);
	}
}

/* Take our words out of a result (arguments of submit_result, an envelope), and parse an output
 * that is JSON as text when no form was asked for. *changed: something was. True: nothing of a
 * result is left, no summary and an output that says nothing. Without memory less is found. */
static bool echo_clean(const struct agent *a, json_t *result, bool *changed)
{
	json_t *summary = json_object_get(result, "summary"), *left, *in = NULL;
	json_t *output = json_object_get(result, "output");

	left = json_is_string(summary) ? echo_without(a, summary) : NULL;
	if (left != NULL)
		json_object_set_new(result, "summary", left);
	*changed = left != NULL;
	summary = json_object_get(result, "summary");
	echo_caveats(a, json_object_get(result, "caveats"), changed);
	/* With a summary of its own the output may be an answer about ava. */
	if (echo_blank(summary) && !echo_blank(output) && echo_within(a, output)) {
		json_object_set_new(result, "output", json_null());
		*changed = true;
	} else if (a->spec->output_schema == NULL && json_is_string(output)) {
		in = json_parse(json_string_value(output), json_string_length(output), NULL);
		if (json_is_object(in) || json_is_array(in)) {
			json_object_set(result, "output", in);
			*changed = true;
		}
		json_decref(in);
	}
	return echo_blank(summary) && echo_blank(json_object_get(result, "output"));
}

/* ---- calls of a reply */

int output_prepare(struct agent *a, unsigned i)
{
	struct turn_call *c = &a->turn->calls[i];
	struct ava_error err = {0};
	const char *text;
	struct buf dropped;
	int rv;

	snprintf(c->id, sizeof(c->id), "c%d.%u", (int)a->at.iteration, i + 1);
	c->tool = reply_tool(a->spec->tools, a->spec->ntools, c->name);
	if (c->answered) { /* the record has the result already */
		a->answered++;
		return 0;
	}
	buf_init(&dropped, 128);
	rv = tool_take_args(c, &a->turn->mem, &dropped, &err);
	if (rv == 0 && dropped.len > 0)
		a->dropped =
			arena_fmt(&a->turn->mem, "%s takes no argument %s", c->name, dropped.data);
	buf_fini(&dropped);
	if (c->args != NULL && c->tool != NULL && c->tool->flags & TOOL_ENDS)
		rv = output_clean(a, c, rv, &err);
	if (rv == AVA_EINVAL && c->args != NULL && c->tool != NULL && c->tool->flags & TOOL_ENDS)
		rv = output_accept(a, c, a->at.wrapping || limit_used_up(a) >= 0);
	if (rv == AVA_ENOMEM)
		return rv;
	if (c->tool == NULL) {
		answer_unknown(a, c);
	} else if (rv != 0) {
		text = arena_fmt(&a->turn->mem, "bad arguments: %s", err.text);
		answer_call(a, c, false, "bad_arguments", text != NULL ? text : "bad arguments");
	}
	return 0;
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

/* ---- the check of a result */

int output_hold(struct agent *a, const struct turn_call *c)
{
	char *said = c != NULL ? strndup(c->args, c->args_len)
			       : strndup(a->turn->text, a->turn->text_len);

	if (said == NULL)
		return AVA_ENOMEM;
	free(a->at.said);
	a->at.said = said;
	a->at.said_due = true;
	a->check = CHECK_DUE;
	return 0;
}

int output_said(const struct agent *a, struct arena *mem, bool submitted, struct agent_end *end)
{
	const char *said = a->at.said;
	struct reply r = {0};
	int rv = 0;

	if (a->spec->check != NULL)
		rv = output_read(a, &r, said, strlen(said));
	if (rv == 0 && r.object != NULL && (said[0] != '{' || r.start == 0))
		rv = reply_take(mem, &r, said, strlen(said), submitted, end);
	else if (a->check == CHECK_NONE && a->at.checks == 0) /* else it is half a result */
		end->summary = said;
	reply_fini(&r);
	return rv;
}

void output_kept(const struct agent *a, struct arena *mem, struct agent_end *end)
{
	bool unverified = end->unverified;

	(void)output_said(a, mem, true, end);
	end->unverified = unverified;
}

int output_check_back(struct agent *a, struct turn_call *c)
{
	bool passed = a->check == CHECK_PASSED;
	const char *text = a->misfit;

	if (c != NULL && passed)
		text = "not taken yet: its check passed, but a person said something while it ran, "
		       "see below; mind it, then submit again";
	else if (c != NULL)
		text = arena_fmt(&a->turn->mem,
				 "not accepted: the check of the result did not pass (%d of %d): "
				 "%s\n%s\nMend what it found and call submit_result again.",
				 a->at.checks, a->spec->check_rounds + 1, a->spec->check,
				 a->misfit);
	if (text == NULL)
		return AVA_ENOMEM;
	if (c != NULL)
		answer_call(a, c, false, passed ? "steered" : "check", text);
	else
		a->steered = passed;
	for (unsigned i = 0; i < a->turn->ncalls; i++)
		if (!a->turn->calls[i].answered)
			answer_call(a, &a->turn->calls[i], false, "cancelled",
				    "not run: a call beside submit_result is never made; make it "
				    "again if you need it");
	return 0;
}

const char *output_check_error(struct agent *a)
{
	return arena_fmt(&a->turn->mem,
			 a->check == CHECK_UNABLE ? WORDS_CHECK_UNABLE : WORDS_CHECK_FAILED,
			 (int)strcspn(a->misfit, "\n"), a->misfit);
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
