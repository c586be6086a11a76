/* See mcp_tools.h.
 *
 * Happy path: the arguments fit the schema of the row, the id among them goes into the path and
 * the rest is what the verb takes. Only what a schema names is passed on, so that nothing of a
 * verb which is a person's (a confirmation, another one's name) can be said by a model. What can
 * fail: arguments that do not fit, told in sentences; memory. */
#include "gateway/mcp_tools.h"

#include <ava.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/id.h"
#include "base/util.h"
#include "base/words.h"
#include "codec/schema.h"
#include "codec/utf8.h"
#include "subagent/rolebook.h"

#define EVENTS_BYTES  (48u << 10) /* bytes of a log for a model */
#define ERRORS_BYTES  4096
#define TITLE_CHARS   120
#define FORM_BYTES    (1u << 20)
#define MCP_ALL_THREE "yes, all three" /* a choice of doc/ASKS.md */

/* ---- tools */

/* mcp_tools.json, as clients read it; its tools in the order of these rows. */
extern const struct embedded mcp_tools_json[];

static const struct mcp_tool tools[] = {
	{"ava_propose", "POST", "/api/v1/runs", NULL, .quotes = true, .requests = true},
	{"ava_confirm", "GET", "/api/v1/proposals/{id}", "proposal", .quotes = true, .forms = true},
	{"ava_status", "GET", "/api/v1/runs/{id}", "run"},
	{"ava_wait", "GET", "/api/v1/runs/{id}/result", "run"},
	{"ava_result", "GET", "/api/v1/runs/{id}/result", "run"},
	{"ava_steer", "POST", "/api/v1/runs/{id}/steer", "run", .requests = true},
	{"ava_cancel", "POST", "/api/v1/runs/{id}/cancel", "run"},
	{"ava_logs", "GET", "/api/v1/logs", NULL},
};

/* The tools and resources as offered by `method`, parsed once, *borrowed*; NULL: out of memory. */
static const json_t *mcp_tools_offered(const char *method)
{
	static json_t *doc;

	if (!doc)
		doc = json_parse(mcp_tools_json[0].text, mcp_tools_json[0].len, NULL);
	return json_object_get(doc, method);
}

const struct mcp_tool *mcp_tool_find(const char *name, bool forms)
{
	for (size_t i = 0; i < ARRAY_LEN(tools); i++)
		if (strcmp(tools[i].name, name) == 0 && (forms || !tools[i].forms))
			return &tools[i];
	return NULL;
}

json_t *mcp_offered(const char *method, bool forms)
{
	json_t *all = json_deep_copy(mcp_tools_offered(method)),
	       *list = json_object_get(all, "tools");

	for (size_t i = json_array_size(list); !forms && i-- > 0;)
		if (tools[i].forms)
			json_array_remove(list, i);
	return all;
}

/* Check that the arguments fit the schema, and that ids look like ids. */
static int check_arguments(const struct mcp_tool *t, const json_t *args, struct ava_error *err)
{
	const json_t *list = json_object_get(mcp_tools_offered("tools/list"), "tools"),
		     *row = json_array_get(list, (size_t)(t - tools));
	const char *id = t->id ? json_get_str(args, t->id) : NULL;
	struct buf why, told; /* why: a fault a line; told: all in one sentence */
	char *line, *rest = NULL;
	int rv = 0;

	if (!args || !row)
		return err_set(err, AVA_ENOMEM, "out of memory");
	buf_init(&why, ERRORS_BYTES);
	buf_init(&told, 2 * ERRORS_BYTES);
	if (schema_validate(json_object_get(row, "inputSchema"), args, "", &why) != 0) {
		line = buf_check(&why) == 0 ? strtok_r(why.data, "\n", &rest) : NULL;
		for (; line; line = strtok_r(NULL, "\n", &rest))
			buf_addf(&told, "%s%s", told.len > 0 ? "; " : "", line);
		rv = err_set(err, AVA_EINVAL, "%s: %s", t->name,
			     told.len > 0 && buf_check(&told) == 0 ? told.data
								   : "the arguments do not fit");
	} else if (id && !id_is_run(id) && !id_is_proposal(id))
		rv = err_set(err, AVA_EINVAL, "\"%.40s\" is no id: they begin with S- or P-", id);
	buf_fini(&why);
	buf_fini(&told);
	return rv;
}

/* A copy of the arguments without nulls, *owned* by the caller: some models and clients write null
 * for an argument that they leave out. */
static json_t *without_nulls(const json_t *given)
{
	json_t *args = given && !json_is_null(given) ? json_deep_copy(given) : json_object(), *v;
	const char *key;
	void *next;

	json_object_foreach_safe(args, next, key, v)
	{
		if (json_is_null(v))
			json_object_del(args, key);
	}
	return args;
}

int mcp_tool_verb(const struct mcp_tool *t, const json_t *given, const char *cwd,
		  const char *request, struct mcp_verb *out, struct ava_error *err)
{
	json_t *args = without_nulls(given);
	int rv = check_arguments(t, args, err);

	if (rv != 0) {
		json_decref(args);
		return rv;
	}
	*out = (struct mcp_verb){.method = t->method, .path = t->path, .args = args};
	if (t->id) {
		snprintf(out->id, sizeof(out->id), "%s", json_str(args, t->id));
		json_object_del(args, t->id);
	}
	if (t->requests && request && *request)
		json_object_set_new(args, "request_id", json_string(request));
	if (strcmp(t->name, "ava_status") == 0 && id_is_proposal(out->id)) {
		out->path = "/api/v1/proposals/{id}";
	} else if (strcmp(t->name, "ava_status") == 0 && !out->id[0]) {
		out->path = "/api/v1/runs";
	} else if (strcmp(t->name, "ava_wait") == 0) {
		json_object_set_new(args, "wait", json_integer(json_get_int(args, "seconds", 20)));
		json_object_del(args, "seconds");
	} else if (strcmp(t->name, "ava_propose") == 0 && cwd && *cwd &&
		   !json_object_get(args, "cwd")) {
		json_object_set_new(args, "cwd", json_string(cwd));
	}
	return 0;
}

/* ---- resources */

static const struct {
	const char *behind, *name,
		*path; /* end of ava://run/{id}; name for people; path of the verb */
	bool ended;    /* the resource exists only when the run has ended */
} parts[] = {{"", "status", "/api/v1/runs/{id}", false},
	     {"/log", "log", "/api/v1/logs", false},
	     {"/result", "result", "/api/v1/runs/{id}/result", true}};

int mcp_resource_verb(const char *uri, struct mcp_verb *out, struct ava_error *err)
{
	char id[32];
	int n = 0;

	*out = (struct mcp_verb){.method = "GET"};
	if (strcmp(uri, "ava://runs") == 0) {
		out->path = "/api/v1/runs";
		out->args = json_pack("{s:b}", "all", 1);
	} else if (sscanf(uri, "ava://run/%31[^/]%n", id, &n) == 1 && id_is_run(id)) {
		for (size_t k = 0; k < ARRAY_LEN(parts); k++)
			if (strcmp(uri + n, parts[k].behind) == 0)
				out->path = parts[k].path;
	}
	if (!out->path)
		return err_set(err, AVA_ENOENT,
			       "there is no resource %.80s: there are ava://runs, ava://run/{id}, "
			       "ava://run/{id}/result and ava://run/{id}/log",
			       uri);
	if (n > 0 && strchr(out->path, '{')) {
		snprintf(out->id, sizeof(out->id), "%s", id);
		out->args = json_object();
	} else if (n > 0) {
		out->args = json_pack("{s:s}", "run", id);
	}
	return out->args ? 0 : err_set(err, AVA_ENOMEM, "out of memory");
}

static json_t *resource(const char *uri, const char *name, const char *about)
{
	char title[4 * TITLE_CHARS + 1];

	snprintf(title, sizeof(title), "%.*s", (int)utf8_prefix(about, strlen(about), TITLE_CHARS),
		 about);
	return json_pack("{s:s,s:s,s:o,s:s}", "uri", uri, "name", name, "title", json_shown(title),
			 "mimeType", "application/json");
}

json_t *mcp_resources(const json_t *runs)
{
	json_t *list = json_array();
	char uri[64], name[64];
	const json_t *run;
	size_t i;

	json_array_append_new(list, resource("ava://runs", "runs", "The newest runs"));
	json_array_foreach(json_object_get(runs, "runs"), i, run)
	{
		for (size_t k = 0; k < ARRAY_LEN(parts); k++) {
			if (parts[k].ended && !json_str(run, "ended_at")[0])
				continue;
			snprintf(uri, sizeof(uri), "ava://run/%.23s%s",
				 json_str(run, "subagent_id"), parts[k].behind);
			snprintf(name, sizeof(name), "%.23s %s", json_str(run, "subagent_id"),
				 parts[k].name);
			json_array_append_new(list, resource(uri, name, json_str(run, "task")));
		}
	}
	return list;
}

/* ---- what is told */

json_t *mcp_tell_proposal(const json_t *p, const char *next)
{
	static const char *const kept[] = {"proposal_id", "state",     "subagent_id", "trace_id",
					   "group_id",    "message",   "quote",       "changes",
					   "replaced_by", "expires_at"};
	json_t *out = json_object(), *v;

	for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
		v = json_object_get(p, kept[i]);
		if (v && !(json_is_string(v) && !json_string_length(v)))
			json_object_set(out, kept[i], v);
	}
	v = json_object_get(json_object_get(p, "config"), "cwd");
	if (v)
		json_object_set(out, "cwd", v);
	if (next)
		json_object_set_new(out, "next", json_string(next));
	return out;
}

void mcp_cut_events(json_t *logs)
{
	json_t *events = json_object_get(logs, "events");
	size_t left = EVENTS_BYTES, len, out = 0;

	for (size_t i = json_array_size(events); i-- > 0;) {
		len = json_dumpb(json_array_get(events, i), NULL, 0, JSON_COMPACT);
		if (out > 0 || len > left)
			out += json_array_remove(events, i) == 0;
		else
			left -= len;
	}
	if (out > 0)
		json_object_set_new(logs, "left_out", json_integer((json_int_t)out));
}

/* ---- forms */

/* `message` NULL (no memory): no form either, since a yes needs a text that was shown. */
static json_t *form(const char *message, json_t *properties, const char *needed)
{
	return json_pack("{s:s,s:o,s:{s:s,s:o,s:[s]}}", "mode", "form", "message",
			 json_shown(message), "requestedSchema", "type", "object", "properties",
			 properties, "required", needed);
}

json_t *mcp_form_request(const char *key, json_t *params)
{
	return json_pack("{s:{s:s,s:o}}", key, "method", "elicitation/create", "params", params);
}

/* The part of a form's text to which a line of a quote belongs. */
enum { SENTENCE, BEHIND_TOOLS, BEFORE_TOOLS, TOOLS, ROWS, NPARTS };
static int form_part(const char *line, size_t len, const char *list)
{
	static const char bullet[] = "• ", folder[] = WORDS_QUOTE_FOLDER_HEAD;

	if (strncmp(line, "  ", 2) == 0)
		return ROWS;
	if (strncmp(line, bullet, strlen(bullet)) != 0)
		return SENTENCE;
	if (line[len - 1] == ':')
		return ROWS; /* their head */
	if (strncmp(line, folder, strlen(folder)) == 0 || line < list)
		return BEFORE_TOOLS;
	return line == list ? TOOLS : BEHIND_TOOLS;
}

/* The quote's parts in an order for forms, of which programs show the first lines only (Claude Code
 * three), each cut to fit: first the rights, then time, cost and folder, the tools, and last the
 * rows of what is long. */
static void form_text(struct buf *out, const char *text)
{
	const char *end = strstr(text, "\n" WORDS_PROCEED), *list, *line, *next;
	size_t n;

	while (end && (next = strstr(end + 1, "\n" WORDS_PROCEED)))
		end = next; /* a task may have that line, too */
	end = end ? end : text + strlen(text);
	list = strstr(text, "\n" WORDS_QUOTE_TOOLS);
	list = list && list < end ? list + 1 : end;
	for (int part = 0; part < NPARTS; part++) {
		bool begun = false;

		for (line = text; line < end; line += n + 1) {
			const char *to = memchr(line, '\n', (size_t)(end - line));

			n = (size_t)((to ? to : end) - line);
			if (form_part(line, n, list) != part)
				continue;
			if (out->len > 0)
				buf_adds(out,
					 part != SENTENCE && part != ROWS && begun ? " " : "\n");
			buf_add(out, line, n);
			begun = true;
		}
	}
}

static bool form_offers(const json_t *ask, const char *choice)
{
	const json_t *one;
	size_t i;

	json_array_foreach(json_object_get(ask, "choices"), i, one)
	{
		if (strcmp(json_str(one, "id"), choice) == 0)
			return true;
	}
	return false;
}

/* The form has no number field: Codex shows a form with one as a question without fields, whose yes
 * says nothing. Codex asks for fields in the order of their names. */
static json_t *form_quote_fields(const json_t *ask)
{
	json_t *fields =
		json_pack("{s:{s:s,s:s}}", "start", "type", "boolean", "title", WORDS_FORM_START);

	if (json_array_size(json_object_get(ask, "fields")) > 0)
		json_object_set_new(fields, "terms",
				    json_pack("{s:s,s:s,s:s}", "type", "string", "title",
					      WORDS_FORM_TERMS, "description", WORDS_FORM_SUCH_AS));
	if (form_offers(ask, MCP_ALL_THREE))
		json_object_set_new(
			fields, "all_three",
			json_pack("{s:s,s:s}", "type", "boolean", "title", WORDS_FORM_ALL_THREE));
	return fields;
}

static json_t *form_answer_field(const json_t *ask)
{
	json_t *answer = json_pack("{s:s,s:s}", "type", "string", "title", WORDS_FORM_ANSWER);
	json_t *labels = json_array(), *one;
	size_t i;

	json_array_foreach(json_object_get(ask, "choices"), i, one)
		json_array_append(labels, json_object_get(one, "label"));
	if (json_array_size(labels) > 0)
		json_object_set(answer, "enum", labels);
	json_decref(labels);
	return json_pack("{s:o}", "answer", answer);
}

json_t *mcp_form_of_ask(const json_t *ask)
{
	const char *text = json_str(ask, "text");
	const char *kind = json_str(ask, "kind");
	bool quote = strcmp(kind, "quote") == 0 || strcmp(kind, "order") == 0;
	struct buf shown;
	json_t *out;

	buf_init(&shown, FORM_BYTES);
	if (quote)
		form_text(&shown, text);
	else
		buf_adds(&shown, text);
	if (!json_get_bool(ask, "whole", false))
		buf_addf(&shown, "\n(This is not all of it: `ava logs %.23s` has the rest.)",
			 json_str(ask, "run"));
	out = buf_check(&shown) != 0 ? NULL
	      : quote                ? form(shown.data, form_quote_fields(ask), "start")
				     : form(shown.data, form_answer_field(ask), "answer");
	buf_fini(&shown);
	return out;
}

/* The answer in words, for the one reader of answers. A condition that cannot be read is none that
 * can be left out: nothing starts. */
json_t *mcp_form_confirms(const json_t *content)
{
	const char *terms = json_str(content, "terms");
	const json_t *on = json_object_get(content, "terms");
	const json_t *all = json_object_get(content, "all_three");

	if (json_is_false(json_object_get(content, "start")))
		return json_pack("{s:s}", "choice", "no");
	if (!json_get_bool(content, "start", false) ||
	    (on && !json_is_string(on) && !json_is_null(on)) ||
	    (all && !json_is_boolean(all) && !json_is_null(all)))
		return NULL;
	return json_pack(
		"{s:o}", "text",
		json_sprintf("%s%s%s",
			     json_get_bool(content, "all_three", false) ? MCP_ALL_THREE : "yes",
			     terms[strspn(terms, " ")] ? ", but " : "", terms));
}

json_t *mcp_form_says(const json_t *ask, const json_t *response)
{
	const char *action = json_str(response, "action"), *said;
	const json_t *one;
	size_t i;

	if (strcmp(action, "decline") == 0 && form_offers(ask, "no"))
		return json_pack("{s:s}", "choice", "no");
	said = strcmp(action, "accept") == 0
		       ? json_get_str(json_object_get(response, "content"), "answer")
		       : NULL;
	json_array_foreach(json_object_get(ask, "choices"), i, one)
	{
		if (said && strcmp(json_str(one, "label"), said) == 0)
			return json_pack("{s:O}", "choice", json_object_get(one, "id"));
	}
	return said ? json_pack("{s:s}", "text", said) : NULL;
}
