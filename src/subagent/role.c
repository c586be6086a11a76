/* The one reader of role files: the front matter (codec/front.h), of which each field is
 * used, mapped to what ava has, or noted as not applicable; then the instructions below.
 *
 * Whatever a person can write can be wrong, told as one sentence with file and line. A role
 * is read as a whole or it is not there. Names of tools are wishes; whether such a tool
 * exists is asked when a run is made, because tools come and go. */
#include "subagent/role.h"

#include <ava.h>
#include <ctype.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "agent/tool.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/list.h"
#include "base/settings.h"
#include "base/util.h"
#include "codec/front.h"
#include "codec/json.h"
#include "codec/schema.h"
#include "codec/utf8.h"
#include "codec/yaml.h"

#define MEMORY_MAX (1u << 20)

const char *const role_sources[] = {"built-in", "project", "user", "claude"};

/* ---- life. The lock is for several runtimes in one process. */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct list all = {&all, &all}; /* whole roles, so that records share them */

static struct role *role_new(enum role_source source)
{
	struct role *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	arena_init(&r->mem, MEMORY_MAX);
	list_init(&r->node);
	r->users = 1;
	r->source = source;
	r->timeout_s = 600;
	r->cost_cents = 50;
	r->display = r->summary = r->instructions = r->path = "";
	return r;
}

const struct role *role_hold(const struct role *r)
{
	pthread_mutex_lock(&lock);
	if (r->users > 0)
		((struct role *)r)->users++;
	pthread_mutex_unlock(&lock);
	return r;
}

void role_release(const struct role *r)
{
	struct role *mine = (struct role *)r;
	bool last;

	pthread_mutex_lock(&lock);
	last = mine && mine->users > 0 && --mine->users == 0;
	if (last)
		list_del(&mine->node);
	pthread_mutex_unlock(&lock);
	if (!last)
		return;
	arena_fini(&mine->mem);
	free(mine);
}

static const struct role *role_whole(struct role *r)
{
	pthread_mutex_lock(&lock);
	list_add(&all, &r->node);
	pthread_mutex_unlock(&lock);
	return r;
}

static char role_folded(char c)
{
	return c == '-' ? '_' : (char)tolower((unsigned char)c);
}

bool role_name_is(const struct role *r, const char *name)
{
	const char *a = r->name;

	if (strcasecmp(name, r->display) == 0)
		return true;
	while (*a && role_folded(*a) == role_folded(*name))
		a++, name++;
	return *a == *name;
}

bool role_same(const struct role *a, const struct role *b)
{
	return strcmp(a->name, b->name) == 0 && strcmp(a->hash, b->hash) == 0;
}

/* ---- reading */

struct role_reading {
	struct role *r;
	struct yaml *y;
	const char *path;
	bool tools_said, thinking_said;
	struct ava_error *err;
	int rv; /* the first error, which ends the reading; 0: none */
};

static void role_wrong(struct role_reading *g, unsigned line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void role_wrong(struct role_reading *g, unsigned line, const char *fmt, ...)
{
	char text[300];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	if (g->rv == 0)
		g->rv = err_set(g->err, AVA_EINVAL, "%s:%u: %s", g->path, line, text);
}

static const char *kept(struct role_reading *g, const char *text, size_t len)
{
	const char *copy = arena_copy(&g->r->mem, text, len);

	if (!copy && g->rv == 0)
		g->rv = err_set(g->err, AVA_ENOMEM, "out of memory");
	return copy ? copy : "";
}

/* The buffer's text in the role's memory; the buffer is freed. */
static const char *kept_buf(struct role_reading *g, struct buf *b)
{
	const char *copy = "";

	if (buf_check(b) != 0 && g->rv == 0)
		g->rv = err_set(g->err, AVA_ENOMEM, "out of memory");
	else
		copy = kept(g, b->data ? b->data : "", b->len);
	buf_fini(b);
	return copy;
}

static void role_note(struct role_reading *g, unsigned line, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void role_note(struct role_reading *g, unsigned line, const char *fmt, ...)
{
	struct role *r = g->r;
	char text[300];
	struct buf safe;
	unsigned at; /* place of the note: they stand in the order of their lines */
	va_list ap;

	if (r->nnotes == ROLE_NOTES_MAX) {
		r->notes[ROLE_NOTES_MAX - 1].text = "and more that is not told here";
		return;
	}
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	buf_init(&safe, 4096);
	utf8_terminal(&safe, text, strlen(text), false);
	for (at = r->nnotes++; at > 0 && r->notes[at - 1].line > line; at--)
		r->notes[at] = r->notes[at - 1];
	r->notes[at] = (struct role_note){line, kept_buf(g, &safe)};
}

/* ---- tools: Claude Code's names, and ava's */

static const struct {
	const char *theirs, *ours;
} tool_names[] = {
	{"read", "read_file"},         {"notebookread", "read_file"}, {"grep", "search_codebase"},
	{"glob", "list_files"},        {"ls", "list_files"},          {"bash", "run_bash"},
	{"webfetch", "read_webpages"}, {"websearch", "web_search"},   {"write", "write_file"},
	{"edit", "edit_file"},         {"multiedit", "edit_file"},
};

/* The wishes of a file that names no tools: all, as in Claude Code. Some may not exist;
 * role_tools leaves them out. */
static const char *const all_tools[] = {
	"read_file", "search_codebase", "search_and_read", "list_files",
	"run_bash",  "python_exec",     "web_search",      "read_webpages",
	"http_get",  "write_file",      "edit_file",
};

static const char *const common_tools[] = {"read_result", "memory_search", "ask_person",
					   "submit_result"};

static bool role_listed(const char *const *names, size_t n, const char *name)
{
	for (size_t i = 0; i < n && names[i]; i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

/* Letters and digits in lower case: "disallowed-tools" is disallowedTools. */
static void squash(const char *s, size_t len, char *out, size_t size)
{
	size_t n = 0;

	for (size_t i = 0; i < len && n + 1 < size; i++)
		if (isalnum((unsigned char)s[i]))
			out[n++] = (char)tolower((unsigned char)s[i]);
	out[n] = '\0';
}

static const char *tool_known(const char *name, size_t len)
{
	char flat[64], other[64];

	squash(name, len, flat, sizeof(flat));
	for (size_t i = 0; i < ARRAY_LEN(tool_names); i++)
		if (strcmp(tool_names[i].theirs, flat) == 0)
			return tool_names[i].ours;
	for (size_t i = 0; i < ARRAY_LEN(all_tools); i++) {
		squash(all_tools[i], strlen(all_tools[i]), other, sizeof(other));
		if (strcmp(other, flat) == 0)
			return all_tools[i];
	}
	return NULL;
}

static void wish(struct role_reading *g, const char *name, unsigned line)
{
	size_t n = 0;

	while (g->r->tools[n])
		n++;
	if (role_listed(g->r->tools, n, name))
		return;
	if (n == ROLE_WISHES_MAX)
		role_note(g, line, "tools: %.60s is one too many, %d at the most", name,
			  ROLE_WISHES_MAX);
	else
		g->r->tools[n] = name;
}

static void unwish(struct role_reading *g, const char *name)
{
	size_t to = 0;

	for (size_t i = 0; i < ROLE_WISHES_MAX && g->r->tools[i]; i++)
		if (strcmp(g->r->tools[i], name) != 0)
			g->r->tools[to++] = g->r->tools[i];
	g->r->tools[to] = NULL;
}

/* One name of a list: "Read", "Bash(git log:*)", "mcp__db__query". */
static void role_add_tool(struct role_reading *g, const char *name, size_t len, unsigned line)
{
	const char *paren = memchr(name, '(', len);
	size_t base = paren ? (size_t)(paren - name) : len;
	const char *ours = tool_known(name, base);
	char flat[64];

	squash(name, base, flat, sizeof(flat));
	if (strcmp(flat, "agent") == 0 || strcmp(flat, "task") == 0) {
		role_note(g, line, "tools: %.*s: subagents start no others", (int)MIN(len, 60u),
			  name);
	} else if (paren && ours && strncmp(paren, "(*", 2) != 0 && strncmp(paren, "(:*", 3) != 0) {
		/* The tool without the pattern would be more than the file allows. */
		role_note(g, line,
			  "tools: %.*s: %s cannot be held to a pattern here and is left out",
			  (int)MIN(len, 60u), name, ours);
	} else if (ours) {
		wish(g, ours, line);
	} else if (strncmp(name, "mcp__", MIN(len, 5u)) == 0 && len > 5 && len < 64) {
		wish(g, kept(g, name, len), line);
	} else if (strcmp(flat, "askuserquestion") != 0 &&
		   !role_listed(common_tools, ARRAY_LEN(common_tools), kept(g, name, len))) {
		role_note(g, line, "tools: there is no tool %.*s here", (int)MIN(len, 60u), name);
	}
}

static void drop_tool(struct role_reading *g, const char *name, size_t len, unsigned line)
{
	const char *paren = memchr(name, '(', len);
	const char *ours = tool_known(name, paren ? (size_t)(paren - name) : len);

	if (ours && paren)
		role_note(g, line,
			  "disallowedTools: %.*s: all of %s is left out, a pattern is not kept",
			  (int)MIN(len, 60u), name, ours);
	unwish(g, ours ? ours : kept(g, name, len));
}

static void add_core(struct role_reading *g, const char *name, size_t len, unsigned line)
{
	for (size_t i = 0; i + 1 < ARRAY_LEN(g->r->core); i++)
		if (!g->r->core[i]) {
			g->r->core[i] = kept(g, name, len);
			return;
		}
	role_note(g, line, "core_tools: three at the most");
}

typedef void (*name_fn)(struct role_reading *g, const char *name, size_t len, unsigned line);

static void role_names_of(struct role_reading *g, const struct yaml_node *n, name_fn take)
{
	static const char parts[] = " \t\r\n,\"'"; /* they part names outside of parentheses */
	const char *s = n->kind == YAML_SCALAR && !yaml_is_null(n) ? n->text : "";

	for (size_t len; *(s += strspn(s, parts)); s += len) {
		len = 0;
		for (int depth = 0; s[len] && (depth > 0 || !strchr(parts, s[len])); len++)
			depth += s[len] == '(' ? 1 : s[len] == ')' && depth > 0 ? -1 : 0;
		take(g, s, len, n->line);
	}
	for (const struct yaml_node *i = n->kind == YAML_LIST ? n->first : NULL; i; i = i->next) {
		if (i->kind == YAML_SCALAR && i->len > 0)
			take(g, i->text, i->len, i->line);
		else
			role_wrong(g, i->line, "%s: an item is %s; it must be the name of a tool",
				   n->key, yaml_shown(i));
	}
	if (n->kind == YAML_MAP)
		role_wrong(g, n->line, "%s is a mapping; it must be names with commas, or a list",
			   n->key);
}

/* ---- fields */

/* Names of built-in roles, and words with another meaning where a role is named. */
static const char *const reserved[] = {"web_crawler", "code_reviewer", "data_extractor",
				       "researcher",  "ava",           "custom",
				       "group",       "subagent"};

static void role_take_name(struct role_reading *g, const struct yaml_node *n)
{
	char name[ROLE_NAME_MAX + 1];
	const char *text = "";
	size_t len;

	if (g->rv == 0)
		g->rv = yaml_string(g->y, n, 200, &text, g->err);
	len = strlen(text);
	if (g->rv != 0)
		return;
	for (size_t i = 0; i < len && i < ROLE_NAME_MAX; i++)
		name[i] = text[i] == ' ' ? '_' : role_folded(text[i]);
	name[MIN(len, (size_t)ROLE_NAME_MAX)] = '\0';
	if (len > ROLE_NAME_MAX || !islower((unsigned char)name[0]) ||
	    name[strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_")] != '\0')
		role_wrong(
			g, n->line,
			"the name is \"%.60s\"; it must be a letter, then letters, digits, - or _, "
			"%d at the most",
			text, ROLE_NAME_MAX);
	if (g->r->source != ROLE_BUILTIN && role_listed(reserved, ARRAY_LEN(reserved), name))
		role_wrong(g, n->line, "the name %s is ava's own: choose another one", name);
	g->r->name = kept(g, name, strlen(name));
}

/* The summary: the beginning of the description on one line, without examples and tags,
 * since it is shown in lists, in quotes, and to Ava. */
static void take_description(struct role_reading *g, const struct yaml_node *n)
{
	struct buf line, safe;
	const char *text = "";
	size_t cut;

	if (g->rv == 0)
		g->rv = yaml_string(g->y, n, ROLE_FILE_MAX, &text, g->err);
	buf_init(&line, ROLE_FILE_MAX);
	buf_init(&safe, 4 * ROLE_FILE_MAX);
	for (const char *s = text; *s; s++) {
		bool literal = s[0] == '\\' && s[1] == 'n',
		     blank = literal || strchr(" \t\r\n\f\v", *s);

		if (*s == '<' && line.len > 0)
			break;
		s += literal;
		if (!blank)
			buf_addc(&line, *s);
		else if (line.len > 0 && line.data[line.len - 1] != ' ')
			buf_addc(&line, ' ');
	}
	while (line.len > 0 && line.data[line.len - 1] == ' ')
		line.len--;
	cut = utf8_prefix(line.data ? line.data : "", line.len, ROLE_SUMMARY_MAX);
	utf8_terminal(&safe, line.data ? line.data : "", cut, false);
	buf_adds(&safe, cut < line.len ? "…" : "");
	if (buf_check(&line) != 0 && g->rv == 0)
		g->rv = err_set(g->err, AVA_ENOMEM, "out of memory");
	buf_fini(&line);
	g->r->summary = kept_buf(g, &safe);
	if (!g->r->summary[0])
		role_wrong(g, n->line, "the description says nothing: write when to use this role");
}

static void role_take_tools(struct role_reading *g, const struct yaml_node *n)
{
	char flat[16] = "";

	if (n->kind == YAML_SCALAR)
		squash(n->text, n->len, flat, sizeof(flat));
	if (n->kind == YAML_SCALAR &&
	    (strcmp(n->text, "*") == 0 || strcmp(flat, "all") == 0 ||
	     strcmp(flat, "alltools") == 0 || strcmp(flat, "inherit") == 0))
		return;
	if (n->kind == YAML_LIST && n->first && !n->first->next && n->first->kind == YAML_SCALAR &&
	    strcmp(n->first->text, "*") == 0)
		return;
	g->tools_said = true;
	if (yaml_is_null(n) || (n->kind == YAML_LIST && !n->first))
		role_note(g, n->line, "tools is empty: it gets only what every role has");
	role_names_of(g, n, role_add_tool);
}

/* Called behind role_take_tools (see `fields`), whichever comes first in the file. */
static void take_disallowed(struct role_reading *g, const struct yaml_node *n)
{
	role_names_of(g, n, drop_tool);
}

static void take_core(struct role_reading *g, const struct yaml_node *n)
{
	role_names_of(g, n, add_core);
}

static void role_take_model(struct role_reading *g, const struct yaml_node *n)
{
	static const char *const short_names[] = {"haiku", "sonnet", "opus", "fable"};
	const char *text = ROLE_INHERIT;
	size_t len;

	if (g->rv == 0 && !yaml_is_null(n))
		g->rv = yaml_string(g->y, n, 100, &text, g->err);
	len = strcspn(text, "[ ");
	g->r->model = strncasecmp(text, "default", MAX(len, 7u)) == 0 ||
				      strncasecmp(text, ROLE_INHERIT, MAX(len, 7u)) == 0
			      ? ROLE_INHERIT
			      : kept(g, text, len);
	for (size_t i = 0; i < ARRAY_LEN(short_names); i++)
		if (strncasecmp(text, short_names[i], MAX(len, strlen(short_names[i]))) == 0)
			g->r->model = arena_fmt(&g->r->mem, "claude-%s", short_names[i]);
	if (!g->r->model)
		g->r->model = kept(g, "", 0); /* out of memory: `kept` notes it */
	if (text[len] != '\0')
		role_note(g, n->line, "model: \"%.40s\" of it is left out", text + len);
}

static bool role_yes_or_no(struct role_reading *g, const struct yaml_node *n)
{
	bool yes = n->kind == YAML_SCALAR && strcasecmp(n->text, "true") == 0;

	if (!yes && (n->kind != YAML_SCALAR || strcasecmp(n->text, "false") != 0))
		role_wrong(g, n->line, "%s is %s; it must be true or false", n->key, yaml_shown(n));
	return yes;
}

static void take_folder(struct role_reading *g, const struct yaml_node *n)
{
	g->r->no_folder = !role_yes_or_no(g, n);
}

static void role_add_skill(struct role_reading *g, const char *name, size_t len, unsigned line)
{
	for (size_t i = 0; i < ROLE_SKILLS_MAX; i++)
		if (!g->r->skills[i]) {
			g->r->skills[i] = kept(g, name, len);
			return;
		}
	role_note(g, line, "skills: %d at the most", ROLE_SKILLS_MAX);
}

static void role_take_skills(struct role_reading *g, const struct yaml_node *n)
{
	bool scalar = n->kind == YAML_SCALAR && !yaml_is_null(n);

	g->r->skills_said =
		!scalar || (strcmp(n->text, "*") != 0 && strcasecmp(n->text, "all") != 0);
	if (g->r->skills_said && !(scalar && strcasecmp(n->text, "none") == 0))
		role_names_of(g, n, role_add_skill);
}

static void role_take_instructions(struct role_reading *g, const struct yaml_node *n)
{
	bool off = n->kind == YAML_SCALAR && strcasecmp(n->text, "off") == 0,
	     on = n->kind == YAML_SCALAR && strcasecmp(n->text, "on") == 0;

	g->r->no_instructions = off || (!on && !role_yes_or_no(g, n));
}

static void role_take_thinking(struct role_reading *g, const struct yaml_node *n)
{
	g->r->thinking = role_yes_or_no(g, n);
	g->thinking_said = true;
}

static void role_take_quota(struct role_reading *g, const struct yaml_node *n)
{
	enum settings_quota way;

	if (n->kind == YAML_SCALAR && settings_quota("", n->text, &way, NULL) == 0)
		g->r->on_quota = settings_quota_words[way];
	else
		role_wrong(g, n->line, "on_quota is %s; it must be park, ask or fail",
			   yaml_shown(n));
}

static void role_take_check(struct role_reading *g, const struct yaml_node *n)
{
	const char *text = "";

	if (g->rv == 0)
		g->rv = yaml_string(g->y, n, 1000, &text, g->err);
	if (g->rv == 0 && text[strspn(text, " ")])
		g->r->check = kept(g, text, strlen(text));
	else
		role_wrong(g, n->line, "check is empty; it must be a shell command");
}

static void take_effort(struct role_reading *g, const struct yaml_node *n)
{
	static const char *const words[] = {"low", "medium", "high", "xhigh", "max"};
	size_t i = 0;

	while (i < ARRAY_LEN(words) &&
	       (n->kind != YAML_SCALAR || strcasecmp(n->text, words[i]) != 0))
		i++;
	if (i == ARRAY_LEN(words))
		role_note(g, n->line, "effort is %s; low, medium, high, xhigh and max are known",
			  yaml_shown(n));
	else if (!g->thinking_said)
		g->r->thinking = i >= 2;
}

static void take_permission(struct role_reading *g, const struct yaml_node *n)
{
	if (n->kind == YAML_SCALAR && strcmp(n->text, "plan") == 0) {
		unwish(g, "write_file");
		unwish(g, "edit_file");
		return;
	}
	role_note(g, n->line,
		  "permissionMode: rights come from what a person confirms, never from a file");
}

static json_t *schema_json(const struct yaml_node *n)
{
	json_t *v = n->kind == YAML_MAP    ? json_object()
		    : n->kind == YAML_LIST ? json_array()
		    : n->plain             ? json_parse(n->text, n->len, NULL)
					   : NULL;

	if (n->kind == YAML_SCALAR) /* true, null and numbers; the rest is text */
		return v ? v : json_stringn(n->text, n->len);
	for (const struct yaml_node *c = n->first; c && v; c = c->next) {
		json_t *child = schema_json(c);
		int rv = !child                ? -1
			 : n->kind == YAML_MAP ? json_object_set_new(v, c->key, child)
					       : json_array_append_new(v, child);

		if (rv != 0) {
			json_decref(v);
			v = NULL;
		}
	}
	return v;
}

/* A mapping, or its JSON as text. */
static void role_take_schema(struct role_reading *g, const struct yaml_node *n)
{
	struct ava_error why = {0};
	struct buf text;
	json_t *v;

	if (g->rv != 0)
		return;
	v = n->kind == YAML_SCALAR ? json_parse(n->text, n->len, &why) : schema_json(n);
	buf_init(&text, SCHEMA_BYTES_MAX);
	if (!v && why.code == 0)
		g->rv = err_set(g->err, AVA_ENOMEM, "out of memory");
	else if (!v)
		role_wrong(g, n->line, "%s is no JSON: %.200s", n->key, why.text);
	else if (!json_is_object(v) || schema_check(v, &why) != 0)
		role_wrong(g, n->line, "%s: %.200s", n->key,
			   why.text[0] ? why.text : "it must be a JSON Schema, an object");
	else if (json_dump(&text, v) != 0)
		role_wrong(g, n->line, "%s is over %u bytes", n->key, SCHEMA_BYTES_MAX);
	else
		g->r->schema = kept(g, text.data, text.len);
	json_decref(v);
	buf_fini(&text);
}

/* In the order in which they are taken: a field that takes away tools comes after those that
 * give them. `take` NULL: a number, or `why` is noted. */
static const struct role_field {
	const char *name, *flat; /* as a person writes it; the same after squash() */
	void (*take)(struct role_reading *g, const struct yaml_node *n);
	const char *why;
	size_t number; /* offset of its int64_t in struct role, with its bounds */
	int64_t least, most;
} fields[] = {
	{"name", "name", role_take_name},
	{"description", "description", take_description},
	{"tools", "tools", role_take_tools},
	{"allowed-tools", "allowedtools", role_take_tools},
	{"core_tools", "coretools", take_core},
	{"disallowedTools", "disallowedtools", take_disallowed},
	{"permissionMode", "permissionmode", take_permission},
	{"model", "model", role_take_model},
	{"maxTurns", "maxturns", NULL, NULL, offsetof(struct role, iterations), 1, 100000},
	{"max_iterations", "maxiterations", NULL, NULL, offsetof(struct role, iterations), 1,
	 100000},
	{"timeout", "timeout", NULL, NULL, offsetof(struct role, timeout_s), 1, 604800},
	{"max_cost_cents", "maxcostcents", NULL, NULL, offsetof(struct role, cost_cents), 0,
	 1000000},
	{"max_tokens", "maxtokens", NULL, NULL, offsetof(struct role, tokens), 1, 1000000000},
	{"extended_thinking", "extendedthinking", role_take_thinking},
	{"on_quota", "onquota", role_take_quota},
	{"check", "check", role_take_check},
	{"folder", "folder", take_folder},
	{"effort", "effort", take_effort},
	{"output_schema", "outputschema", role_take_schema},
	{"skills", "skills", role_take_skills},
	{"instructions", "instructions", role_take_instructions},
	{"hooks", "hooks", NULL, "hooks of a role file are never run"},
	{"mcpServers", "mcpservers", NULL, "servers named in a role file are never started"},
	{"memory", "memory", NULL, "ava's own memory is used: every role has memory_search"},
	{"background", "background", NULL, "every run works in the background"},
	{"isolation", "isolation", NULL, "not applicable: what a run writes is held back by ava"},
	{"color", "color", NULL, "not shown"},
	{"initialPrompt", "initialprompt", NULL, "not applicable: a run begins with its task"},
};

static const struct role_field *field_of(const char *key, size_t len)
{
	char flat[32];

	squash(key, len, flat, sizeof(flat));
	for (size_t i = 0; i < ARRAY_LEN(fields); i++)
		if (strcmp(fields[i].flat, flat) == 0)
			return &fields[i];
	return NULL;
}

static void take_fields(struct role_reading *g)
{
	const struct yaml_node *root = yaml_root(g->y), *n;

	for (size_t i = 0; i < ARRAY_LEN(fields) && g->rv == 0; i++) {
		const struct role_field *f = &fields[i];

		for (n = root->first; n; n = n->next) {
			if (field_of(n->key, strlen(n->key)) != f)
				continue;
			if (f->take)
				f->take(g, n);
			else if (f->most > 0 && g->rv == 0)
				g->rv = yaml_int(g->y, n, f->least, f->most,
						 (int64_t *)((char *)g->r + f->number), g->err);
			else if (f->most == 0)
				role_note(g, n->key_line, "%s: %s", f->name, f->why);
		}
		/* A file without `tools` wishes for all, before disallowedTools takes some away. */
		if (f->take == take_core && !g->tools_said)
			for (size_t k = 0; k < ARRAY_LEN(all_tools); k++)
				wish(g, all_tools[k], 0);
	}
	for (n = root->first; n; n = n->next)
		if (!field_of(n->key, strlen(n->key)))
			role_note(g, n->key_line, "%.40s: there is no such field, it is not used",
				  n->key);
}

/* ---- the whole file */

/* "code_reviewer" to "CodeReviewer". */
static void set_display(struct role_reading *g)
{
	char text[ROLE_NAME_MAX + 1];
	size_t n = 0;
	bool up = true;

	for (const char *s = g->r->name; *s; s++) {
		if (*s != '_')
			text[n++] = up ? (char)toupper((unsigned char)*s) : *s;
		up = *s == '_';
	}
	g->r->display = kept(g, text, n);
}

/* Front matter (lines such as key: value) and the instructions below it. */
static void take_file(struct role_reading *g, const struct front *f)
{
	const char *slash = strrchr(g->path, '/'), *from = slash ? slash + 1 : g->path;
	size_t n = strlen(from);
	struct yaml_node stem = {.kind = YAML_SCALAR, .line = f->line};
	struct buf safe;

	if (yaml_root(g->y)->kind != YAML_MAP || !yaml_root(g->y)->first) {
		role_wrong(g, f->line + 1, "the front matter must be lines such as name: my-role");
		return;
	}
	take_fields(g);
	buf_init(&safe, 8 * ROLE_FILE_MAX);
	utf8_terminal(&safe, f->body, f->body_len, true);
	if (f->body_len == 0)
		role_wrong(g, f->end_line,
			   "below the front matter stands nothing: say what the role does");
	else if (safe.len > f->body_len)
		role_note(g, f->end_line, "invisible characters in the text are shown as \\u{…}");
	g->r->instructions = kept_buf(g, &safe);
	stem.text = kept(g, from, n > 3 && strcmp(from + n - 3, ".md") == 0 ? n - 3 : n);
	stem.len = strlen(stem.text);
	if (!g->r->name)
		role_take_name(g, &stem);
	if (!g->r->summary[0])
		role_wrong(g, f->line, "the description is missing: write when to use this role");
	if (g->rv == 0)
		set_display(g);
}

static enum front_key kind_of_key(const char *key, size_t len)
{
	const struct role_field *f = field_of(key, len);

	return !f ? FRONT_UNKNOWN : f->take == take_description ? FRONT_TEXT : FRONT_FIELD;
}

int role_read(const struct role **out, const char *path, const char *text, size_t len,
	      enum role_source source, struct ava_error *err)
{
	struct role_reading g = {.path = path, .err = err};
	struct front f = {0};

	g.r = role_new(source);
	if (!g.r)
		return err_set(err, AVA_ENOMEM, "out of memory");
	g.rv = front_read(&f, path, text, len, ROLE_FILE_MAX, kind_of_key, err);
	if (g.rv == 0) {
		g.y = f.yaml;
		g.r->model = ROLE_INHERIT;
		take_file(&g, &f);
		hash_sha256_hex(text, len, g.r->hash);
		g.r->path = source == ROLE_BUILTIN ? "" : kept(&g, path, strlen(path));
	}
	front_fini(&f);
	if (g.rv != 0) {
		role_release(g.r);
		return g.rv;
	}
	*out = role_whole(g.r);
	return 0;
}

/* ---- in a config */

void role_write(struct jw *w, const struct role *r)
{
	if (!r->hash[0])
		return;
	jw_object(w, "roleFile");
	jw_str(w, "source", role_sources[r->source]);
	jw_str(w, "path", r->path);
	jw_str(w, "hash", r->hash);
	jw_str(w, "summary", r->summary);
	jw_end(w);
	jw_str(w, "instructions", r->instructions);
}

static const struct role *find_known(const char *name, const char *hash, const char *path)
{
	const struct role *found = NULL;

	pthread_mutex_lock(&lock);
	LIST_EACH (&all, at, tmp) {
		struct role *r = LIST_ENTRY(at, struct role, node);

		if (strcmp(r->hash, hash) == 0 && strcmp(r->name, name) == 0 &&
		    strcmp(r->path, path) == 0) {
			r->users++;
			found = r;
			break;
		}
	}
	pthread_mutex_unlock(&lock);
	return found;
}

/* Fills the role from a record; fields that it lacks are taken from `like`. */
static void take_record(struct role_reading *g, const json_t *config, const struct role *like)
{
	const json_t *file = json_object_get(config, "roleFile");
	const char *source = json_str(file, "source"), *name = json_str(config, "role");
	const char *path = json_str(file, "path"), *summary = json_str(file, "summary");
	const char *text = json_str(config, "instructions");
	struct role *r = g->r;

	for (size_t i = 0; i <= ROLE_CLAUDE; i++)
		if (strcmp(role_sources[i], source) == 0)
			r->source = (enum role_source)i;
	r->model = ROLE_INHERIT;
	if (like) {
		r->model = like->model;
		r->timeout_s = like->timeout_s;
		r->cost_cents = like->cost_cents;
		r->thinking = like->thinking;
		r->no_folder = like->no_folder;
		memcpy(r->tools, like->tools, sizeof(r->tools));
	}
	r->name = kept(g, name, strlen(name));
	r->path = kept(g, path, strlen(path));
	r->summary = file || !like ? kept(g, summary, strlen(summary)) : like->summary;
	r->instructions = kept(g, text, strlen(text));
	snprintf(r->hash, sizeof(r->hash), "%s", json_str(file, "hash"));
	set_display(g);
}

const struct role *role_restore(const json_t *config, const struct role *like)
{
	const json_t *file = json_object_get(config, "roleFile");
	const char *name = json_str(config, "role");
	const struct role *known = find_known(name, json_str(file, "hash"), json_str(file, "path"));
	struct role_reading g = {0};

	if (known || !*name || strlen(name) > ROLE_NAME_MAX)
		return known;
	g.r = role_new(ROLE_BUILTIN);
	if (g.r)
		take_record(&g, config, like);
	if (g.r && g.rv == 0)
		return role_whole(g.r);
	role_release(g.r);
	return NULL;
}

/* ---- its tools */

static unsigned role_tool(const char *name, bool files, const struct tool **out, unsigned n)
{
	const struct tool *t = tool_find(name);

	if (t && n < ROLE_MAX_TOOLS && (files || !(t->flags & TOOL_FILES)))
		out[n++] = t;
	return n;
}

bool role_wishes(const struct role *r, const char *name)
{
	for (size_t i = 0; i < ROLE_WISHES_MAX && r->tools[i]; i++) {
		const char *wish = r->tools[i];
		size_t len = strlen(wish);

		if (strcmp(wish, name) == 0)
			return true;
		if (strncmp(wish, TOOL_MCP_PREFIX, 5) != 0)
			continue;
		if (!strstr(wish + 5, "__") && strncmp(name, wish, len) == 0 &&
		    strncmp(name + len, "__", 2) == 0)
			return true;
		if (wish[len - 1] == '*' && strncmp(name, wish, len - 1) == 0)
			return true;
	}
	return false;
}

unsigned role_tools(const struct role *r, bool files, const struct tool **out)
{
	unsigned n = 0, most = ROLE_MAX_TOOLS - ARRAY_LEN(common_tools);
	const struct tool *t;

	for (size_t i = 0; i < ROLE_WISHES_MAX && r->tools[i] && n < most; i++)
		if (strncmp(r->tools[i], TOOL_MCP_PREFIX, 5) != 0)
			n = role_tool(r->tools[i], files, out, n);
	for (size_t i = 0; i < ARRAY_LEN(common_tools); i++)
		n = role_tool(common_tools[i], files, out, n);
	for (unsigned i = 0; n < ROLE_MAX_TOOLS && (t = tool_added(i)) != NULL; i++)
		if ((t->flags & TOOL_MCP) && role_wishes(r, t->name))
			out[n++] = t;
	return n;
}

int role_usable(const struct role *r, bool files, struct ava_error *err)
{
	for (size_t i = 0; i < ARRAY_LEN(r->core) && r->core[i]; i++) {
		const struct tool *t = tool_find(r->core[i]);

		if (!t)
			return err_set(
				err, AVA_EUNSUPPORTED,
				"role %s needs the tool %s, which this version does not have; "
				"use code_reviewer or researcher",
				r->name, r->core[i]);
		if ((t->flags & TOOL_FILES) && !files)
			return err_set(err, AVA_EINVAL,
				       "role %s works on files: give it a working folder (cwd)",
				       r->name);
	}
	return 0;
}
