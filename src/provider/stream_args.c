/* The arguments of a call: what a model wrote becomes the text of one JSON object, as it stands
 * where that is strict JSON. Else the call gets a sentence for the model that says why, with a
 * call that would do. Only memory can fail. */
#include <ava.h>
#include <string.h>

#include "agent/prompt.h"
#include "agent/reply.h"
#include "agent/tool.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "provider/stream_core.h"

/* Bytes of bad arguments shown to the model; the stored line has "{}" instead. */
#define SHOWN_BYTES 120

/* Show the model's text: its beginning or (`cut`) its end. */
static int args_show(struct buf *out, const char *s, size_t len, bool cut)
{
	bool some = len > SHOWN_BYTES;
	struct buf clean;
	int rv;

	buf_init(&clean, 3 * SHOWN_BYTES + 1);
	utf8_repair(&clean, some && cut ? s + len - SHOWN_BYTES : s, some ? SHOWN_BYTES : len);
	buf_adds(out, some && cut ? "…" : "");
	notice_escape(out, clean.len > 0 ? clean.data : "", clean.len);
	rv = buf_adds(out, some && !cut ? "…" : "");
	if (rv == 0)
		rv = buf_check(&clean);
	buf_fini(&clean);
	return rv;
}

/* `why` NULL: the arguments were cut off. */
static int args_bad(struct turn *t, struct turn_call *c, const char *why, const char *s, size_t len)
{
	struct buf b;
	int rv;

	buf_init(&b, 4096);
	if (why != NULL)
		buf_addf(&b, "they are no JSON object (%s): ", why);
	else
		buf_addf(&b, "the reply %s inside them, behind ",
			 t->stop == TURN_STOP_REPEATED ? "repeated itself and was stopped"
						       : "reached its output limit");
	rv = args_show(&b, s, len, why == NULL);
	if (why == NULL)
		buf_adds(&b, "; use fewer words or several calls");
	c->args = NULL;
	c->args_len = 0;
	c->args_error = rv == 0 && buf_check(&b) == 0 ? arena_copy(&t->mem, b.data, b.len) : NULL;
	buf_fini(&b);
	return c->args_error != NULL ? 0 : AVA_ENOMEM;
}

static int args_keep(struct turn *t, struct turn_call *c, const char *s, size_t len,
		     const json_t *v)
{
	struct buf text;
	int rv;

	buf_init(&text, CALL_ARGS_MAX);
	rv = stream_json_add(&text, s, len, v);
	if (rv == AVA_ETOOBIG) {
		rv = args_bad(t, c, "larger than 256 KB", s, len);
	} else if (rv == 0) {
		c->args = arena_copy(&t->mem, text.data, text.len);
		c->args_len = text.len;
		rv = c->args != NULL ? 0 : AVA_ENOMEM;
	}
	buf_fini(&text);
	return rv;
}

/* Unreadable arguments of a result become its text, which is refused once: a result is not lost for
 * its form. */
static int args_as_text(struct turn *t, struct turn_call *c, const char *s, size_t len)
{
	json_t *v = json_object();
	struct buf text;
	int rv;

	buf_init(&text, 3 * CALL_ARGS_MAX);
	rv = utf8_repair(&text, s, MIN(len, CALL_ARGS_MAX / 2));
	if (rv == 0)
		rv = json_object_set_new(v, "text", json_stringn(text.data, text.len)) != 0
			     ? AVA_ENOMEM
			     : args_keep(t, c, s, 0, v);
	buf_fini(&text);
	json_decref(v);
	return rv;
}

/* Arguments out of a JSON string or a list of one; an empty object for a value that says
 * nothing. */
static json_t *args_unwrap(json_t *v)
{
	json_t *in = json_is_string(v)
			     ? json_parse_lenient(json_string_value(v), json_string_length(v), NULL)
		     : json_array_size(v) == 1 ? json_incref(json_array_get(v, 0))
					       : NULL;

	if (json_is_null(in != NULL ? in : v) || (json_is_array(v) && json_array_size(v) == 0) ||
	    (json_is_string(v) && json_string_length(v) == 0))
		in = json_object();
	if (in == NULL)
		return v;
	json_decref(v);
	return in;
}

static bool args_cut(const struct turn *t)
{
	return t->stop == TURN_STOP_LENGTH || t->stop == TURN_STOP_REPEATED;
}

static bool stream_args_is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static int stream_args_read(struct turn *t, struct turn_call *c, const char *s, size_t len)
{
	size_t all;
	struct ava_error err = {0};
	json_t *v;
	int rv;

	while (len > 0 && stream_args_is_space(s[len - 1]))
		len--;
	while (len > 0 && stream_args_is_space(*s)) {
		s++;
		len--;
	}
	if (len == 0) { /* the call has no arguments */
		c->args = "{}";
		c->args_len = 2;
		return 0;
	}
	if (len > CALL_ARGS_MAX)
		return args_bad(t, c, "larger than 256 KB", s, len);
	all = len;
	v = json_parse_lenient(s, len, &err);
	if (v == NULL)
		return err.code == AVA_ENOMEM
			       ? AVA_ENOMEM
			       : args_bad(t, c, args_cut(t) ? NULL : err.text, s, len);
	if (!json_is_object(v)) {
		v = args_unwrap(v);
		len = 0; /* `s` is no longer the value's text */
	}
	if (!json_is_object(v))
		rv = args_bad(t, c, "another kind of value", s, all);
	else if (!reply_shallow(v, REPLY_DEPTH_MAX)) /* deeper values fit into no request */
		rv = args_bad(t, c, "nested too deeply", s, all);
	else
		rv = args_keep(t, c, s, len, v);
	json_decref(v);
	return rv;
}

int stream_args(struct turn *t, struct turn_call *c, const struct tool *tool, const char *s,
		size_t len)
{
	struct ava_error err = {0};
	int rv = stream_args_read(t, c, s, len);

	if (rv != 0 || c->args != NULL || tool == NULL)
		return rv;
	if (tool->flags & TOOL_ENDS && !args_cut(t))
		return args_as_text(t, c, s, len);
	rv = tool_tell_misfit(tool, c->args_error, &err); /* adds a call that would do */
	c->args_error = rv == 0 ? arena_copy(&t->mem, err.text, strlen(err.text)) : NULL;
	return c->args_error != NULL ? 0 : AVA_ENOMEM;
}
