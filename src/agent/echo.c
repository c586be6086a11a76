/* Small models that are held to the form of a result fill it with text they read last about that
 * form: descriptions out of schemas, the text of a notice, the name of the tool. Passed on as an
 * answer that would be a lie.
 *
 * Text counts as ours when it is a line in the form of a notice, or when the whole text stands
 * word for word in a tool's definition or in the system prompt and is a sentence (no name or
 * word of an answer is), or is an example's placeholder. The rest of an answer stays. Nothing
 * can fail. */
#include "agent/echo.h"

#include <string.h>

#include "agent/prompt.h"
#include "agent/tool.h"
#include "base/buf.h"
#include "codec/json.h"

#define SENTENCE 16 /* bytes, with a blank */

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

bool echo_clean(const struct agent *a, json_t *result, bool *changed)
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
