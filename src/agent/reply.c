/* Reading a text reply.
 *
 * Every JSON object in the text is tried, with a bound on the work: one that calls a tool makes
 * the reply a call written as text; of the others the best is the result: one with `output` or
 * `summary` before one in a ```json fence before one that begins its own line, the later before
 * the earlier. An object in the middle of a sentence is prose. Beside JSON, calls come as tags
 * (<tool_call>, <invoke name="x">, <function=x>, <x>).
 *
 * A call or result that is not found costs a nudge, nothing more. Only memory can fail. */
#include "agent/reply.h"

#include <ava.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/limit.h"
#include "agent/tool.h"
#include "agent/turn.h"
#include "base/buf.h"
#include "base/util.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "codec/schema.h"

#define MAX_TRIES 256
#define MAX_WORK  (8u << 20) /* bytes offered to the parser in all tries */
#define TAG_BYTES 200        /* bytes at a tag's beginning in which its name is looked for */

static const struct tool *reply_find(const struct tool *const *tools, unsigned n, const char *name)
{
	for (unsigned i = 0; i < n; i++)
		if (name != NULL && strcmp(tools[i]->name, name) == 0)
			return tools[i];
	return NULL;
}

/* call_spawn_subagent, functions.read_file:0 and read_file<|channel|>commentary hold a name as a
 * whole word. */
static bool word_more(const char *name, const char *tool)
{
	size_t n = strlen(tool);

	for (const char *at = name; (at = strcasestr(at, tool)) != NULL; at++)
		if ((at == name || !isalnum((unsigned char)at[-1])) &&
		    !isalnum((unsigned char)at[n]))
			return true;
	return false;
}

const struct tool *reply_tool(const struct tool *const *tools, unsigned n, const char *name)
{
	const struct tool *found = reply_find(tools, n, name);

	for (int more = 0; more < 2 && found == NULL; more++) {
		for (unsigned i = 0; i < n; i++) {
			const char *tool = tools[i]->name;

			if (!(more ? word_more(name, tool) : schema_same_letters(name, tool)))
				continue;
			if (found != NULL)
				return NULL; /* several tools match */
			found = tools[i];
		}
	}
	return found;
}

/* ---- calls written as JSON */

static bool has_any(const json_t *o, const char *const *keys, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (json_object_get(o, keys[i]) != NULL)
			return true;
	return false;
}

static const char *const call_names[] = {"name", "function", "action", "tool", "tool_name"};
static const char *const call_wraps[] = {"function", "function_call", "tool", "tool_call",
					 "tool_use"};
static const char *const call_args[] = {"arguments", "args",         "parameters", "params",
					"input",     "action_input", "tool_input"};

static bool reply_is_word(const char *key, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(key, words[i]) == 0)
			return true;
	return false;
}

/* Is the value an object, or a text that parses as one? */
static bool holds_object(const json_t *v)
{
	json_t *in = json_is_string(v)
			     ? json_parse(json_string_value(v), json_string_length(v), NULL)
			     : NULL;
	bool yes = json_is_object(v) || json_is_object(in);

	json_decref(in);
	return yes;
}

/* A name and an object of arguments, without members that data would have: a call under any
 * name, since models invent tools too. */
static bool is_bare_call(const json_t *o, const char *named)
{
	static const char *const beside[] = {"id", "call_id", "type", "index"};
	static const char *const of_result[] = {"confidence", "caveats"};
	bool named_so = json_object_get(o, "arguments") != NULL; /* data never has this member */
	size_t args = 0, others = 0;
	const char *key;
	json_t *v;

	if (strcmp(named, "action") == 0 && json_object_get(o, "action_input") == NULL)
		return false;
	json_object_foreach((json_t *)o, key, v)
	{
		if (reply_is_word(key, call_args, ARRAY_LEN(call_args)) && holds_object(v))
			args++;
		else if (strcmp(key, named) != 0 &&
			 !reply_is_word(key, beside, ARRAY_LEN(beside)) &&
			 !(named_so && reply_is_word(key, of_result, ARRAY_LEN(of_result))))
			others++;
	}
	return args == 1 && others <= named_so;
}

/* CALL_MADE_UP: of an unknown tool, which a text may show as an example. */
enum reply_call { CALL_NOT, CALL_MADE_UP, CALL_MEANT };

/* {"name": TOOL, "arguments": …} and its cousins. */
static enum reply_call names_call(const json_t *o, const struct tool *const *tools, unsigned n)
{
	static const char *const of_envelope[] = {"output", "summary"};
	const char *only = json_object_iter_key(json_object_iter((json_t *)o));
	const struct tool *tool;

	for (size_t i = 0; i < ARRAY_LEN(call_names); i++) {
		const char *name = json_get_str(o, call_names[i]);

		if (name == NULL)
			continue;
		bool bare = is_bare_call(o, call_names[i]);

		tool = reply_tool(tools, n, name);
		/* submit_result's arguments may stand beside its name, without an own object. */
		if (tool != NULL && (tool->flags & TOOL_ENDS) && has_any(o, of_envelope, 2))
			return CALL_MEANT;
		if (tool != NULL && (bare || strncmp(call_names[i], "tool", 4) == 0 ||
				     has_any(o, call_args, ARRAY_LEN(call_args))))
			return CALL_MEANT;
		if (json_object_size(o) == 1 && reply_find(tools, n, name) != NULL)
			return CALL_MEANT;
		if (bare)
			return CALL_MADE_UP;
	}
	return json_object_size(o) == 1 && reply_find(tools, n, only) != NULL &&
			       json_is_object(json_object_get(o, only))
		       ? CALL_MEANT
		       : CALL_NOT;
}

static enum reply_call is_call(const json_t *o, const struct tool *const *tools, unsigned n)
{
	const json_t *first = json_array_get(json_object_get(o, "tool_calls"), 0);
	enum reply_call call = names_call(o, tools, n);

	if (call == CALL_NOT && first != NULL)
		return is_call(first, tools, n);
	for (size_t i = 0; i < ARRAY_LEN(call_wraps) && call == CALL_NOT; i++)
		call = names_call(json_object_get(o, call_wraps[i]), tools, n);
	return call;
}

/* ---- calls written as tags */

static bool word_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/* Is `word` at `at`, as a whole word? */
static bool reply_word_at(const char *s, size_t len, size_t at, const char *word)
{
	size_t n = strlen(word);

	return len - at >= n && strncasecmp(s + at, word, n) == 0 &&
	       (at + n == len || !word_char(s[at + n])) && (at == 0 || !word_char(s[at - 1]));
}

static bool has_tool_word(const char *s, size_t len, const struct tool *const *tools, unsigned n)
{
	for (size_t at = 0; at < len; at++)
		for (unsigned i = 0; i < n && (at == 0 || !word_char(s[at - 1])); i++)
			if (reply_word_at(s, len, at, tools[i]->name))
				return true;
	return false;
}

/* `s` begins behind a '<'. */
static bool tag_calls(const char *s, size_t len, const struct tool *const *tools, unsigned n)
{
	static const char *const tags[] = {"tool_call", "tool_use",      "invoke",
					   "tool",      "function_call", "function"};
	static const char *const marks[] = {"|tool", "\uff5ctool", "|python_tag", "|channel|>com"};

	for (unsigned i = 0; i < n; i++)
		if (reply_word_at(s, len, 0, tools[i]->name))
			return true;
	for (size_t i = 0; i < ARRAY_LEN(tags); i++)
		if (reply_word_at(s, len, 0, tags[i]))
			return has_tool_word(s, MIN(len, (size_t)TAG_BYTES), tools, n);
	for (size_t i = 0; i < ARRAY_LEN(marks); i++)
		if (len > strlen(marks[i]) && strncasecmp(s, marks[i], strlen(marks[i])) == 0)
			return has_tool_word(s, MIN(len, (size_t)TAG_BYTES), tools, n);
	return false;
}

static bool has_tag_call(const char *s, size_t len, const struct tool *const *tools, unsigned n)
{
	const char *at = s, *end = s + len;

	while ((at = memchr(at, '<', (size_t)(end - at))) != NULL) {
		/* vector<read_file> is C++, not a call */
		if ((at == s || !word_char(at[-1])) &&
		    tag_calls(at + 1, (size_t)(end - at - 1), tools, n))
			return true;
		at++;
	}
	return false;
}

/* ---- objects in the text */

/* Only fences, tags and blanks, as around calls and between them? */
static bool marks_alone(const char *s, size_t len)
{
	static const char *const words[] = {"[TOOL_CALLS]", "[/TOOL_CALLS]", "json", "tool_call",
					    "tool_code"};

	for (size_t i = 0, n, k; i < len; i += n) {
		const char *end = s[i] == '<' ? memchr(s + i, '>', MIN(len - i, (size_t)64)) : NULL;

		n = isspace((unsigned char)s[i]) || strchr("`,;[]()", s[i]) != NULL;
		if (end != NULL)
			n = (size_t)(end + 1 - s) - i;
		for (k = 0; k < ARRAY_LEN(words); k++)
			if (strncasecmp(s + i, words[k], MIN(len - i, strlen(words[k]))) == 0)
				n = MIN(len - i, strlen(words[k]));
		if (n == 0)
			return false;
	}
	return true;
}

enum { RANK_NONE, RANK_LINE, RANK_FENCE, RANK_ENVELOPE };

/* Are there only blanks between the line's start and `at`? */
static bool begins_line(const char *s, size_t at)
{
	while (at > 0 && (s[at - 1] == ' ' || s[at - 1] == '\t'))
		at--;
	return at == 0 || s[at - 1] == '\n';
}

/* Start of the ```json line right before `at`; `at` itself when there is none. */
static size_t fence_before(const char *s, size_t at)
{
	static const char fence[] = "```json";
	size_t n = sizeof(fence) - 1, i = at;

	while (i > 0 && isspace((unsigned char)s[i - 1]))
		i--;
	return i >= n && strncasecmp(s + i - n, fence, n) == 0 ? i - n : at;
}

static size_t fence_after(const char *s, size_t at, size_t len)
{
	size_t i = at;

	while (i < len && isspace((unsigned char)s[i]))
		i++;
	return len - i >= 3 && memcmp(s + i, "```", 3) == 0 ? i + 3 : at;
}

static void reply_consider(struct reply *r, int *rank, json_t *o, const char *s, size_t start,
			   size_t end, size_t len)
{
	bool envelope = json_object_get(o, "output") || json_object_get(o, "summary");
	size_t outer = fence_before(s, start);
	int mine = RANK_NONE;

	if (envelope)
		mine = RANK_ENVELOPE;
	else if (outer != start)
		mine = RANK_FENCE;
	else if (begins_line(s, start) && json_object_size(o) > 0)
		mine = RANK_LINE;
	if (mine == RANK_NONE || mine < *rank)
		return;
	*rank = mine;
	json_decref(r->object);
	r->object = json_incref(o);
	r->envelope = envelope;
	r->start = outer;
	r->end = outer != start ? fence_after(s, end, len) : end;
}

/* Can an object begin here? Only a brace followed by a quote or its end. */
static bool object_start(const char *s, size_t at, size_t len)
{
	if (s[at++] != '{')
		return false;
	while (at < len && isspace((unsigned char)s[at]))
		at++;
	return at < len && (s[at] == '"' || s[at] == '}');
}

int reply_read(struct reply *r, const char *text, size_t len, const struct tool *const *tools,
	       unsigned ntools)
{
	size_t work = 0, at = 0, seen = 0;
	enum reply_call call = CALL_NOT, one;
	int rank = RANK_NONE;

	*r = (struct reply){0};
	for (unsigned tries = 0; at < len && tries < MAX_TRIES && work < MAX_WORK; at++) {
		json_error_t why;
		json_t *o;

		if (!object_start(text, at, len))
			continue;
		tries++;
		work += len - at;
		o = json_loadb(text + at, len - at, JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES,
			       &why);
		if (o == NULL && json_error_code(&why) == json_error_out_of_memory)
			return AVA_ENOMEM;
		if (o == NULL)
			continue;
		one = is_call(o, tools, ntools);
		call = MAX(call, one);
		if (one == CALL_NOT && reply_shallow(o, REPLY_DEPTH_MAX))
			reply_consider(r, &rank, o, text, at, at + (size_t)why.position, len);
		json_decref(o);
		r->words = r->words || !marks_alone(text + seen, at - seen);
		at += (size_t)why.position - 1;
		seen = at + 1;
	}
	r->words = r->words || !marks_alone(text + seen, len - seen);
	r->call = rank != RANK_ENVELOPE && (call == CALL_MEANT || (call != CALL_NOT && !r->words) ||
					    has_tag_call(text, len, tools, ntools));
	return 0;
}

/* ---- taking apart the calls written in a text */

#define WRITTEN_MAX  16  /* calls in one text */
#define WRITTEN_NAME 160 /* bytes before a call's arguments in which its name is looked for */

struct written {
	const struct tool *const *tools;
	unsigned ntools;
	json_t *list;     /* the calls: {"name", "arguments"} each */
	size_t from, end; /* start of the first call, end of the newest */
};

/* `given` *borrowed*; a text that parses as an object counts as that object. false: no memory. */
static bool written_add(struct written *w, const char *name, json_t *given)
{
	json_t *in = json_is_string(given) ? json_parse_lenient(json_string_value(given),
								json_string_length(given), NULL)
					   : NULL;

	if (!json_is_object(in)) {
		json_decref(in);
		in = given != NULL ? json_incref(given) : json_object();
	}
	return json_array_append_new(w->list,
				     json_pack("{s:s, s:o}", "name", name, "arguments", in)) == 0;
}

/* Add the call or calls of an object that is_call. */
static bool written_object(struct written *w, json_t *o)
{
	json_t *list = json_object_get(o, "tool_calls"), *one, *given = NULL;
	const char *key = NULL;
	bool good = true;
	size_t i;

	json_array_foreach(list, i, one) good = good && written_object(w, one);
	if (json_array_size(list) > 0)
		return good;
	for (i = 0; i < ARRAY_LEN(call_wraps); i++)
		if (json_is_object(json_object_get(o, call_wraps[i])))
			return written_object(w, json_object_get(o, call_wraps[i]));
	for (i = 0; i < ARRAY_LEN(call_names) && key == NULL; i++)
		key = json_get_str(o, call_names[i]) != NULL ? call_names[i] : NULL;
	if (key == NULL) {
		key = json_object_iter_key(json_object_iter(o));
		return key == NULL || written_add(w, key, json_object_get(o, key));
	}
	for (i = 0; i < ARRAY_LEN(call_args) && given == NULL; i++)
		given = json_object_get(o, call_args[i]);
	if (given != NULL)
		return written_add(w, json_str(o, key), given);
	given = json_copy(o); /* arguments beside the name: {"tool": "read_file", "path": …} */
	json_object_del(given, key);
	good = written_add(w, json_str(o, key), given);
	json_decref(given);
	return good;
}

/* Find the beginning of the lines of marks before `at`; false: `at` is on a line of prose. */
static bool marks_from(const char *s, size_t at, size_t *from)
{
	size_t line = at, next = at;
	bool found = false;

	for (;; next = line--) {
		while (line > 0 && s[line - 1] != '\n')
			line--;
		if (!marks_alone(s + line, next - line))
			return found;
		found = true;
		*from = line;
		if (line == 0)
			return true;
	}
}

/* Does a sentence go on here, "<read_file> is called with {…"? */
static bool reply_has_words(const char *s, size_t len)
{
	for (size_t i = 1; i < len; i++)
		if (s[i - 1] == ' ' && isalnum((unsigned char)s[i]))
			return true;
	return false;
}

/* The tool named by marks before `at`, and where they begin: <|tool_call|>read_file,
 * to=read_file; NULL: none. */
static const struct tool *named_before(const struct written *w, const char *s, size_t at,
				       size_t *from)
{
	size_t low = at - w->end > WRITTEN_NAME ? at - WRITTEN_NAME : w->end;

	for (size_t i = low; i < at; i++) {
		if ((s[i] != '<' || !tag_calls(s + i + 1, at - i - 1, w->tools, w->ntools)) &&
		    strncasecmp(s + i, "[TOOL_CALLS]", MIN(at - i, (size_t)12)) != 0)
			continue;
		*from = i;
		for (; i < at; i++)
			for (unsigned k = 0; k < w->ntools; k++)
				if (reply_word_at(s, at, i, w->tools[k]->name) &&
				    !reply_has_words(s + i, at - i))
					return w->tools[k];
	}
	return NULL;
}

/* Add the object from `at` to `end`. false: the text is no call; words before a made-up call are
 * about it. */
static bool written_next(struct written *w, json_t *o, const char *s, size_t at, size_t end)
{
	bool first = json_array_size(w->list) == 0;
	enum reply_call call = is_call(o, w->tools, w->ntools);
	size_t from = at;
	const struct tool *tool = call != CALL_NOT ? NULL : named_before(w, s, at, &from);

	if (call == CALL_NOT && tool == NULL)
		return first && !json_object_get(o, "output") && !json_object_get(o, "summary");
	if (first ? call != CALL_NOT && !marks_from(s, at, &from)
		  : !marks_alone(s + w->end, from - w->end))
		return false;
	if (first && call == CALL_MADE_UP && from > 0)
		return false;
	w->from = first ? from : w->from;
	w->end = end;
	return call != CALL_NOT ? written_object(w, o) : written_add(w, tool->name, o);
}

/* The value of <tag=value> or <tag name="value"> at `s`, and the text behind it; else empty. */
static struct slice tag_value(const char *s, const char *end, const char *tag, const char **behind)
{
	size_t n = strlen(tag);
	struct slice v = {s + n, 0};
	const char *close = memchr(s, '>', MIN((size_t)(end - s), n + WRITTEN_NAME));

	if (close == NULL || (size_t)(close - s) <= n || memcmp(s, tag, n) != 0)
		return v;
	if ((size_t)(close - v.s) > 6 && memcmp(v.s, " name=", 6) == 0)
		v.s += 5;
	if (*v.s != '=')
		return v;
	v.s += 1 + (v.s[1] == '"');
	v.len = (size_t)(close - v.s);
	v.len -= v.len > 0 && close[-1] == '"';
	*behind = close + 1;
	return v;
}

/* <function=x><parameter=k>v</parameter></function>, and the same with <invoke name="x">. */
static bool written_tags(struct written *w, const char *s, size_t len)
{
	const char *at = s, *end = s + len, *stop, *body = s;
	json_t *o = NULL, *given = NULL;
	struct slice v;
	bool good = true;

	for (; good && (at = memchr(at, '<', (size_t)(end - at))) != NULL; at++) {
		bool first = json_array_size(w->list) == 0;
		size_t here = (size_t)(at - s);

		v = tag_value(at, end, "<function", &stop);
		if (v.len == 0)
			v = tag_value(at, end, "<invoke", &stop);
		if (v.len > 0) {
			good = o == NULL && json_array_size(w->list) < WRITTEN_MAX &&
			       (first ? marks_from(s, here, &w->from)
				      : marks_alone(s + w->end, here - w->end));
			json_decref(o);
			body = stop;
			at = stop - 1;
			given = json_object();
			o = json_pack("{s:s%, s:o}", "name", v.s, v.len, "arguments", given);
		} else if (o != NULL && (v = tag_value(at, end, "<parameter", &stop)).len > 0) {
			at = memmem(stop, (size_t)(end - stop), "</parameter>", 12);
			at = at != NULL ? at : end - 1;
			stop += at > stop && *stop == '\n';
			size_t n = at > stop ? (size_t)(at - stop) : 0;

			n -= n > 0 && at[-1] == '\n';
			json_object_setn_new(given, v.s, v.len, json_stringn(stop, n));
		} else if (o != NULL && end - at > 5 &&
			   (memcmp(at, "</fun", 5) == 0 || memcmp(at, "</inv", 5) == 0)) {
			json_t *in = json_parse_lenient(body, (size_t)(at - body), NULL);

			json_object_update(given, in); /* arguments: <function=x>{…}</function> */
			json_decref(in);
			good = json_array_append(w->list, o) == 0;
			w->end = MIN((size_t)(at - s) + strcspn(at, ">") + 1, len);
			at = s + w->end - 1;
			json_decref(o);
			o = NULL;
		}
	}
	if (o != NULL && json_array_size(w->list) > 0)
		w->end = len; /* a cut-off call follows whole ones: they count */
	json_decref(o);
	return good;
}

/* Is this the beginning of a cut-off mark of one more call: "<tool_c", "{"? */
static bool mark_begins(const char *s, size_t len)
{
	size_t i = len;

	while (i > 0 && len - i < 16 && strchr("<{", s[i - 1]) == NULL)
		i--;
	return i > 0 && marks_alone(s, i - 1) &&
	       (s[i - 1] == '{' ? marks_alone(s + i, len - i)
				: len > i && s[i] != '/' && memchr(s + i, '>', len - i) == NULL &&
					  memchr(s + i, ' ', len - i) == NULL);
}

/* Parse a call that lacks only its last braces, which small models forget; NULL: it lacks more. */
static json_t *written_closed(const struct written *w, const char *s, size_t len)
{
	json_t *o = NULL;
	struct buf b;

	buf_init(&b, len + 4);
	buf_add(&b, s, len);
	for (int i = 0; i < 3 && o == NULL && buf_addc(&b, '}') == 0; i++)
		o = json_parse(b.data, b.len, NULL);
	buf_fini(&b);
	if (o != NULL && is_call(o, w->tools, w->ntools))
		return o;
	json_decref(o);
	return NULL;
}

json_t *reply_calls(const char *text, size_t len, const struct tool *const *tools, unsigned ntools,
		    size_t *from)
{
	struct written w = {.tools = tools, .ntools = ntools, .list = json_array()};
	bool good, tags, closed = false;
	size_t work = 0, at = 0, end;

	while (len > 0 && strchr(" \t\r\n`", text[len - 1]) != NULL)
		len--; /* drop a fence behind the cut-off call */
	good = written_tags(&w, text, len);
	tags = json_array_size(w.list) > 0;

	for (unsigned tries = 0; good && !tags && at < len && tries < MAX_TRIES && work < MAX_WORK;
	     at++) {
		json_error_t why;
		json_t *o;

		if (!object_start(text, at, len))
			continue;
		tries++;
		work += len - at;
		o = json_loadb(text + at, len - at, JSON_DISABLE_EOF_CHECK | JSON_REJECT_DUPLICATES,
			       &why);
		end = at + (size_t)why.position;
		if (o == NULL && json_error_code(&why) == json_error_premature_end_of_input) {
			o = closed ? NULL : written_closed(&w, text + at, len - at);
			closed = true; /* tried only once, since the text may be long */
			end = len;
			if (o == NULL && json_array_size(w.list) > 0 &&
			    marks_alone(text + w.end, at - w.end)) {
				w.end = len; /* a cut-off call follows whole ones: they count */
				break;
			}
		}
		if (o == NULL)
			continue;
		good = reply_shallow(o, REPLY_DEPTH_MAX) && written_next(&w, o, text, at, end);
		at = end - 1;
		json_decref(o);
	}
	*from = w.from;
	if (good && json_array_size(w.list) > 0 && json_array_size(w.list) <= WRITTEN_MAX &&
	    (marks_alone(text + w.end, len - w.end) || mark_begins(text + w.end, len - w.end)))
		return w.list;
	json_decref(w.list);
	return NULL;
}

size_t reply_shown(const char *text, size_t from, size_t len, const struct tool *const *tools,
		   unsigned ntools)
{
	size_t at = from + strcspn(text + from, "{<[");
	json_error_t why;
	enum reply_call call;
	json_t *o;

	if (at >= len || !object_start(text, at, len) || !marks_alone(text + from, at - from))
		return 0;
	o = json_loadb(text + at, len - at, JSON_DISABLE_EOF_CHECK, &why);
	call = o != NULL ? is_call(o, tools, ntools) : CALL_MEANT;
	json_decref(o);
	return call == CALL_NOT || (call == CALL_MADE_UP && !marks_alone(text, from))
		       ? at + (size_t)why.position
		       : 0;
}

void reply_fini(struct reply *r)
{
	json_decref(r->object);
	r->object = NULL;
}

/* ---- results */

#define CAVEAT_TEXT "The result was not submitted: it is the JSON in the last text."

int reply_json(struct arena *mem, const json_t *v, const char **out, size_t *len)
{
	struct buf b;

	buf_init(&b, TURN_MAX_BYTES);
	json_dump(&b, v);
	*out = buf_check(&b) == 0 ? arena_copy(mem, b.data, b.len) : NULL;
	if (len != NULL)
		*len = b.len;
	buf_fini(&b);
	return *out != NULL ? 0 : AVA_ENOMEM;
}

/* The text of a caveat or a summary of any type: a new reference. */
static json_t *as_text(json_t *v)
{
	json_t *one, *text = json_is_string(v) ? json_incref(v) : NULL;
	const char *key;
	struct buf b;

	json_object_foreach(v, key, one) if (text == NULL && json_is_string(one) &&
					     json_object_size(v) == 1) text = json_incref(one);
	buf_init(&b, TURN_MAX_BYTES);
	if (text == NULL && json_dump(&b, v) == 0)
		text = json_stringn(b.data, b.len);
	buf_fini(&b);
	return text;
}

/* 0.9, "0.9", 90, "90%", 9 (of ten); NULL: none of these. */
static json_t *as_confidence(const json_t *v)
{
	const char *s = json_is_string(v) ? json_string_value(v) : "";
	json_t *in = json_parse_lenient(s, strcspn(s, "%"), NULL);
	double n = json_is_number(v)    ? json_number_value(v)
		   : json_is_number(in) ? json_number_value(in)
					: -1;

	json_decref(in);
	n /= strchr(s, '%') != NULL || n > 10 ? 100 : n >= 2 ? 10 : 1;
	return n >= 0 && n <= 1.9 ? json_real(MIN(n, 1.0)) : NULL;
}

/* Read the list of caveats in any form. */
static json_t *as_caveats(json_t *given)
{
	json_t *in = json_is_string(given) ? json_parse_lenient(json_string_value(given),
								json_string_length(given), NULL)
					   : NULL;
	json_t *all = json_is_array(in) ? in : given, *list = json_array(), *one;
	size_t n = json_is_array(all) ? json_array_size(all) : all != NULL;

	for (size_t i = 0; i < n; i++) {
		one = as_text(json_is_array(all) ? json_array_get(all, i) : all);
		if (one != NULL && strcasecmp(json_string_value(one), "none") != 0 &&
		    strcmp(json_string_value(one), "null") != 0)
			json_array_append(list, one);
		json_decref(one);
	}
	json_decref(in);
	return list;
}

void reply_mend(json_t *o)
{
	static const char *const names[] = {"summary", "answer", "result", "final_answer",
					    "response"};
	json_t *rest = json_copy(o), *v;
	const char *key;

	if (rest == NULL)
		return;
	json_object_foreach(o, key, v) /* one member may hold the whole result */
	{
		if (json_object_get(rest, "summary") != NULL ||
		    json_object_get(v, "summary") == NULL)
			continue;
		json_object_update_missing(rest, v);
		if (strcmp(key, "output") != 0)
			json_object_del(rest, key);
	}
	json_object_clear(o);
	json_object_set(o, "output", json_object_get(rest, "output"));
	json_object_set_new(o, "confidence", as_confidence(json_object_get(rest, "confidence")));
	json_object_set_new(o, "caveats", as_caveats(json_object_get(rest, "caveats")));
	json_object_del(rest, "output");
	json_object_del(rest, "confidence");
	json_object_del(rest, "caveats");
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		v = json_object_get(rest, names[i]);
		if (v == NULL || json_is_null(v) ||
		    (i > 0 && (json_is_object(v) || json_is_array(v))) ||
		    json_object_set_new(o, "summary", as_text(v)) != 0)
			continue;
		json_object_del(rest, names[i]);
		break;
	}
	json_object_del(rest, "summary");
	v = json_object_get(o, "output");
	if (json_object_size(rest) > 0 && (v == NULL || json_is_null(v)))
		json_object_set(o, "output", rest);
	json_decref(rest);
}

int reply_result(struct arena *mem, const json_t *object, struct agent_end *end)
{
	const json_t *output = json_object_get(object, "output");
	const json_t *summary = json_object_get(object, "summary");
	const json_t *caveats = json_object_get(object, "caveats");
	int rv = 0;

	if (output != NULL && !json_is_null(output))
		rv = reply_json(mem, output, &end->output, &end->output_len);
	if (rv == 0 && json_is_string(summary)) {
		end->summary =
			arena_copy(mem, json_string_value(summary), json_string_length(summary));
		rv = end->summary != NULL ? 0 : AVA_ENOMEM;
	}
	end->confidence = json_number_value(json_object_get(object, "confidence"));
	return rv == 0 && caveats != NULL ? reply_json(mem, caveats, &end->caveats, NULL) : rv;
}

static int add_caveat(struct arena *mem, struct agent_end *end, const char *text)
{
	const char *had = end->caveats != NULL ? end->caveats : "[]";
	json_t *list = json_parse(had, strlen(had), NULL);
	int rv = json_array_append_new(list, json_string(text)) == 0 ? 0 : AVA_ENOMEM;

	if (rv == 0)
		rv = reply_json(mem, list, &end->caveats, NULL);
	json_decref(list);
	return rv;
}

/* The text without the object, blanks at both ends cut; NULL when nothing is left. */
static int text_beside(struct arena *mem, const struct reply *r, const char *text, size_t len,
		       struct agent_end *end)
{
	size_t before = r->start, after = r->end, n;
	char *s;

	while (before > 0 && isspace((unsigned char)text[before - 1]))
		before--;
	while (after < len && isspace((unsigned char)text[after]))
		after++;
	while (len > after && isspace((unsigned char)text[len - 1]))
		len--;
	if (before == 0 && after == len)
		return 0;
	s = arena_get(mem, before + (len - after) + 2);
	if (s == NULL)
		return AVA_ENOMEM;
	memcpy(s, text, before);
	n = before;
	if (before > 0 && after < len)
		s[n++] = '\n';
	memcpy(s + n, text + after, len - after);
	end->summary = s;
	return 0;
}

int reply_take(struct arena *mem, const struct reply *r, const char *text, size_t len,
	       bool submitted, struct agent_end *end)
{
	int rv;

	if (r->envelope) {
		reply_mend(r->object);
		rv = reply_result(mem, r->object, end);
	} else
		rv = reply_json(mem, r->object, &end->output, &end->output_len);
	if (rv == 0 && end->summary == NULL)
		rv = text_beside(mem, r, text, len, end);
	if (submitted && r->envelope)
		return rv;
	end->unverified = true;
	return rv == 0 ? add_caveat(mem, end, CAVEAT_TEXT) : rv;
}

int reply_mark(struct turn *t, const struct reply *r)
{
	if (t->stop != TURN_STOP_REPEATED || r->object != NULL)
		return 0;
	t->text = arena_fmt(&t->mem, "%s\n\n(" REPLY_LOOPED ")", t->text);
	t->text_len = t->text != NULL ? strlen(t->text) : 0;
	return t->text != NULL ? 0 : AVA_ENOMEM;
}

/* ---- texts after which the model is asked again */

#define SAID_SHORT 200 /* bytes; a shorter text may be no more than "see above" */

int reply_keep(struct agent *a, const char *text)
{
	const char *said = a->at.said != NULL ? a->at.said : "";
	size_t was = strlen(said), is = strlen(text), size = was + is + sizeof("\n\n");
	bool better = strstr(text, said) != NULL || (is >= SAID_SHORT && is >= was / 2);
	char *both;

	if (a->at.checks > 0) /* the result that it handed in stays */
		return 0;
	if (!better && (was >= SAID_SHORT || strstr(said, text) != NULL))
		return 0;
	both = malloc(size);
	if (both == NULL)
		return AVA_ENOMEM;
	snprintf(both, size, "%s%s%s", better ? "" : said, better ? "" : "\n\n", text);
	free(a->at.said);
	a->at.said = both;
	a->at.said_due = true;
	return 0;
}

void reply_forget(struct agent *a)
{
	const struct turn *t = a->turn;
	/* The calls of a replayed reply are in the total already. */
	int32_t before = a->at.totals.tool_calls - (a->replayed ? (int32_t)t->ncalls : 0);

	for (unsigned i = 0; i < t->ncalls && before == 0 && a->at.checks == 0; i++) {
		const struct turn_call *c = &t->calls[i];

		if (c->tool == NULL || !limit_looks(c->tool) || (c->answered && !c->ran))
			continue; /* skip calls that look nothing up, or were refused */
		free(a->at.said);
		a->at.said = NULL;
		a->at.said_due = true;
	}
}
