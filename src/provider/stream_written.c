/* Calls that a model writes as text.
 *
 * Nobody is shown one as what the model says: text is held back from a line on whose first bytes
 * may become one until it is known that they are none, and to the end where they are one. Most
 * text is known within a name's length, an object with its end. At a server of one's own, whose
 * template or parser let it through, the text becomes the calls that it is (agent/reply.h): the
 * line that is stored and sent back is then the one that such a server itself makes of them. What
 * can fail is memory. */
#include <ava.h>
#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "agent/reply.h"
#include "agent/tool.h"
#include "base/util.h"
#include "codec/json.h"
#include "provider/model.h"
#include "provider/stream_core.h"

#define FENCE_WORD 16 /* most bytes behind ``` on its line */
#define HELD_STEP  16 /* least bytes between two looks at held-back text */

/* Does `s` begin with one of `words`? MAYBE: more bytes decide. */
static enum fit begins_one(const char *s, size_t len, const char *const *words, size_t n)
{
	enum fit fit = FIT_NOT;

	for (size_t i = 0; i < n && fit != FIT_WHOLE; i++) {
		size_t most = strlen(words[i]);

		if (strncasecmp(s, words[i], MIN(most, len)) == 0)
			fit = len < most ? FIT_MAYBE : FIT_WHOLE;
	}
	return fit;
}

/* Does an object look like a call, by its first key? */
static enum fit object_calls(const char *s, size_t len)
{
	static const char *const keys[] = {"name\"", "function",    "action\"",
					   "tool",   "arguments\"", "parameters\"",
					   "args\"", "type\":\"fu", "id\":\"call"};
	size_t at = 1;

	while (at < len && isspace((unsigned char)s[at]))
		at++;
	if (at == len)
		return FIT_MAYBE;
	return s[at] == '"' ? begins_one(s + at + 1, len - at - 1, keys, ARRAY_LEN(keys)) : FIT_NOT;
}

/* Does the line that begins with `s` begin a call? */
static enum fit line_calls(const char *s, size_t len)
{
	static const char *const marks[] = {
		"<tool",    "<function",   "<invoke", "<|tool",
		"<|python", "<\uff5ctool", "[TOOL_",  "<|channel|>commentary to="};
	size_t at = strspn(s, " \t(");

	if (at < len && strchr("{<[`", s[at]) == NULL)
		return FIT_NOT;
	if (len - at >= 3 && memcmp(s + at, "```", 3) == 0) {
		at += 3;
		while (at < len && (isalpha((unsigned char)s[at]) || s[at] == '_'))
			at++;
		if (at == len)
			return at < FENCE_WORD ? FIT_MAYBE : FIT_NOT;
		while (at < len && isspace((unsigned char)s[at]))
			at++;
	} else if (at < len && len - at < 3 && memcmp(s + at, "```", len - at) == 0) {
		return FIT_MAYBE;
	}
	if (at >= len)
		return FIT_MAYBE;
	return s[at] == '{' ? object_calls(s + at, len - at)
			    : begins_one(s + at, len - at, marks, ARRAY_LEN(marks));
}

void stream_show(struct stream *s, struct part *p)
{
	const char *text = p->text.data;
	size_t to = p->told, len = p->text.len, shown;

	while (to < len && (p->lead == LEAD_OVER || p->lead == LEAD_QUIET)) {
		const char *end = memchr(text + to, '\n', len - to);
		enum fit fit = FIT_NOT;

		if (p->lead == LEAD_QUIET && len < p->held_at)
			break;
		if (p->lead == LEAD_QUIET) {
			p->held_at = (uint32_t)(len + HELD_STEP +
						(len - to) / 4); /* do not look at each piece */
			shown = reply_shown(text, to, len, s->tools, s->ntools);
			if (shown == 0)
				break;
			to = shown;
			p->lead = LEAD_OVER;
			continue;
		}
		if (to == 0 || text[to - 1] == '\n')
			fit = line_calls(text + to, len - to);
		if (fit == FIT_MAYBE)
			break;
		if (fit == FIT_WHOLE)
			p->lead = LEAD_QUIET;
		else
			to = end != NULL ? (size_t)(end + 1 - text) : len;
	}
	stream_tell(s, text + p->told, to - p->told, false);
	p->told = (uint32_t)to;
}

int stream_take_written(struct stream *s, struct turn *t)
{
	struct part *p = stream_find(s, 1u << PART_TEXT, -1);
	bool can = s->ops->chat && !s->ops->items && s->reply->ncalls == 0 && p != NULL &&
		   s->model != NULL && provider_is_near(s->model->provider);
	json_t *list, *one;
	size_t from = 0, i;
	int rv = 0;

	list = can ? reply_calls(p->text.data, p->text.len, s->tools, s->ntools, &from) : NULL;
	t->written = list != NULL;
	if (list == NULL && p != NULL) {
		p->held_at = 0; /* look once more */
		stream_show(s, p);
	}
	if (list != NULL)
		p->text.len = from;
	else if (p != NULL && p->lead == LEAD_OVER && p->told < p->text.len)
		stream_tell(s, p->text.data + p->told, p->text.len - p->told, false);
	json_array_foreach(list, i, one)
	{
		struct part *call = NULL;
		const json_t *args = json_object_get(one, "arguments");
		const char *name = json_str(one, "name");
		const struct tool *tool = reply_tool(s->tools, s->ntools, name);

		/* The result of a call before is unknown yet, so a call that ends the run is
		 * dropped, with all behind it: small models write all tools down. */
		if (i > 0 && tool != NULL && tool->flags & TOOL_ENDS)
			break;
		if (rv == 0)
			rv = stream_part(s, PART_CALL, -1, &call);
		if (rv != 0)
			break;
		call->name = strdup(name);
		rv = call->name == NULL     ? AVA_ENOMEM
		     : json_is_string(args) ? buf_adds(&call->text, json_string_value(args))
					    : json_dump(&call->text, args);
	}
	json_decref(list);
	return rv;
}
