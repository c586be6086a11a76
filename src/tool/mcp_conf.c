/* Reading mcp.json; see mcp_conf.h.
 *
 * Happy path: the object `mcpServers`, as other programs write it, a server a member: `command`,
 * `args`, `env`, or `url`, `headers`. What this program wants beside stands in the member `ava`:
 * the rights. Members of others are passed over, those of `ava` are not. `${NAME}` is a value of
 * the file env, or of the environment.
 *
 * What can fail: everything a person can write, and who else could: what stands here is run. An
 * entry that is wrong is kept with the reason, for whoever wants that server; so is the file. */
#include "tool/mcp_conf.h"

#include <ava.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "agent/tool.h"
#include "base/env.h"
#include "base/error.h"
#include "base/keys.h"
#include "base/near.h"
#include "base/settings.h"
#include "base/util.h"
#include "codec/jscan.h"
#include "codec/json.h"
#include "codec/redact.h"
#include "exec/sandbox.h"

#define FILE_MAX    (1u << 20)
#define LIST_MAX    64
#define TEXT_MAX    8192
#define SECONDS_MAX 3600

struct mcp_conf_reading {
	struct mcp_confs *to;
	const char *path;
	struct redact *redact;
	struct ava_error *err;
	int rv; /* the first error, which ends the reading; 0: none */
};

__attribute__((format(printf, 2, 3))) static void mcp_conf_wrong(struct mcp_conf_reading *r,
								 const char *fmt, ...)
{
	char text[500];
	va_list ap;

	if (r->rv != 0)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	r->rv = err_set(r->err, AVA_EINVAL, "%s", text);
}

static void *mcp_conf_got(struct mcp_conf_reading *r, void *p)
{
	if (!p && r->rv == 0)
		r->rv = err_set(r->err, AVA_ENOMEM, "out of memory");
	return p;
}

static const char *mcp_conf_keep(struct mcp_conf_reading *r, const char *text, size_t len)
{
	return mcp_conf_got(r, arena_copy(&r->to->mem, text, len));
}

/* ---- values */

static void mcp_conf_add_secret(struct mcp_conf_reading *r, const char *value)
{
	int rv = r->redact && r->rv == 0 ? redact_add(r->redact, value) : 0;

	if (rv == AVA_ETOOBIG)
		mcp_conf_wrong(r, "there are too many secrets to keep out of the log");
	else if (rv != 0)
		(void)mcp_conf_got(r, NULL);
}

/* Replace ${NAME} and ${NAME:-otherwise} in a text. */
static const char *mcp_conf_expand(struct mcp_conf_reading *r, const char *text)
{
	struct buf out;
	const char *mark, *end;

	buf_init(&out, TEXT_MAX);
	while (r->rv == 0 && (mark = strstr(text, "${")) && (end = strchr(mark, '}'))) {
		char name[100];
		const char *value, *other = strstr(mark, ":-");
		size_t len;

		other = other && other < end ? other : NULL;
		len = (size_t)((other ? other : end) - mark) - 2;
		snprintf(name, sizeof(name), "%.*s", (int)MIN(len, sizeof(name) - 1), mark + 2);
		value = keys_get(name);
		buf_add(&out, text, (size_t)(mark - text));
		if (value) {
			mcp_conf_add_secret(r, value);
			buf_adds(&out, value);
		} else if (other) {
			buf_add(&out, other + 2, (size_t)(end - other) - 2);
		} else {
			mcp_conf_wrong(
				r,
				"nothing says what ${%s} is: write %s=value into the file env "
				"beside it",
				name, name);
		}
		text = end + 1;
	}
	if (buf_adds(&out, text) == AVA_ETOOBIG)
		mcp_conf_wrong(r, "a text is longer than %d bytes", TEXT_MAX);
	text = buf_check(&out) != 0 ? mcp_conf_got(r, NULL)
				    : mcp_conf_keep(r, out.data ? out.data : "", out.len);
	buf_fini(&out);
	return text;
}

static const char *mcp_conf_text_of(struct mcp_conf_reading *r, const json_t *v, const char *what)
{
	const char *s = json_string_value(v);

	if (v && !s)
		mcp_conf_wrong(r, "%s must be a text", what);
	return r->rv == 0 && s ? mcp_conf_expand(r, s) : NULL;
}

/* An array for n texts, NULL at its end. */
static const char **mcp_conf_room(struct mcp_conf_reading *r, size_t n)
{
	return mcp_conf_got(r, arena_get(&r->to->mem, (n + 1) * sizeof(const char *)));
}

/* `first`: a text before them; NULL: none. */
static const char *const *mcp_conf_texts_of(struct mcp_conf_reading *r, const json_t *list,
					    const char *what, const char *first)
{
	size_t n = json_array_size(list), k = 0, i;
	const char **out;
	const json_t *v;

	if (list && (!json_is_array(list) || n > LIST_MAX))
		mcp_conf_wrong(r, "%s must be a list of texts, %d at the most", what, LIST_MAX);
	out = r->rv == 0 ? mcp_conf_room(r, n + 1) : NULL;
	if (!out)
		return NULL;
	if (first)
		out[k++] = first;
	json_array_foreach(list, i, v) if ((out[k] = mcp_conf_text_of(r, v, what)) != NULL) k++;
	return out;
}

static bool mcp_conf_is_secret(const char *name)
{
	static const char *const words[] = {"KEY", "TOKEN", "SECRET", "PASSWORD", "AUTHORIZATION"};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (strcasestr(name, words[i]))
			return true;
	return false;
}

/* Members with texts, as "NAME=value" or "Name: value". */
static const char *const *pairs_of(struct mcp_conf_reading *r, json_t *o, const char *what,
				   const char *between)
{
	const char **out, *name, *word;
	size_t k = 0;
	json_t *v;

	if (o && (!json_is_object(o) || json_object_size(o) > 24))
		mcp_conf_wrong(r, "%s must be an object of texts, 24 at the most", what);
	out = r->rv == 0 ? mcp_conf_room(r, json_object_size(o)) : NULL;
	if (!out)
		return NULL;
	json_object_foreach(o, name, v)
	{
		const char *value = mcp_conf_text_of(r, v, what);

		if (!value)
			mcp_conf_wrong(r, "%s must be an object of texts", what);
		if (r->rv == 0 && (!*name || strpbrk(name, "=: \r\n") || strpbrk(value, "\r\n")))
			mcp_conf_wrong(r, "%s has a name or a value that cannot be: %.60s", what,
				       name);
		if (r->rv != 0)
			return out;
		if (mcp_conf_is_secret(name)) {
			word = *between == ':' ? strrchr(value, ' ') : NULL; /* of "Bearer …" */
			mcp_conf_add_secret(r, word ? word + 1 : value);
		}
		out[k++] = mcp_conf_got(r, arena_fmt(&r->to->mem, "%s%s%s", name, between, value));
	}
	return out;
}

/* Absolute paths of a person's folders or files, as the kernel names them; "~/" is home. */
static const char *const *paths_of(struct mcp_conf_reading *r, const json_t *list, const char *what)
{
	const char **out = (const char **)mcp_conf_texts_of(r, list, what, NULL);
	const char *home = env_get("HOME");
	char path[PATH_MAX], real[PATH_MAX];

	for (size_t i = 0; out && out[i] && r->rv == 0; i++) {
		if (strncmp(out[i], "~/", 2) == 0 && home)
			snprintf(path, sizeof(path), "%s%s", home, out[i] + 1);
		else
			snprintf(path, sizeof(path), "%s", out[i]);
		if (path[0] != '/')
			mcp_conf_wrong(r, "%s has \"%.100s\"; it must be an absolute path", what,
				       out[i]);
		else if (!realpath(path, real)) /* it may come later, or be a link to nothing */
			out[i] = mcp_conf_keep(r, path, strlen(path));
		else if (strcmp(real, "/") == 0)
			mcp_conf_wrong(r, "%s has the whole file system: name folders of it", what);
		else
			out[i] = mcp_conf_keep(r, real, strlen(real));
	}
	return out;
}

/* ---- a server */

/* Find a command where the sandbox has programs; a path is taken as it is. */
static const char *find_program(struct mcp_conf_reading *r, const char *command)
{
	static const char *const folders[] = {"/usr/local/bin", "/usr/bin", "/bin"};
	char path[PATH_MAX];

	if (strchr(command, '/')) {
		if (command[0] != '/')
			mcp_conf_wrong(r,
				       "command is \"%.100s\"; it must be a program's name, or its "
				       "absolute path",
				       command);
		return command;
	}
	for (size_t i = 0; i < ARRAY_LEN(folders); i++) {
		snprintf(path, sizeof(path), "%s/%.200s", folders[i], command);
		if (*command && access(path, X_OK) == 0)
			return mcp_conf_keep(r, path, strlen(path));
	}
	mcp_conf_wrong(r,
		       "there is no program %.100s in /usr/local/bin, /usr/bin or /bin: write its "
		       "absolute path, and where it stands into ava.read",
		       command);
	return command;
}

static bool flag_of(struct mcp_conf_reading *r, const json_t *o, const char *name, bool otherwise)
{
	const json_t *v = json_object_get(o, name);

	if (v && !json_is_boolean(v))
		mcp_conf_wrong(r, "ava.%s must be true or false", name);
	return v ? json_is_true(v) : otherwise;
}

static int mcp_conf_seconds_of(struct mcp_conf_reading *r, const json_t *o, const char *name,
			       int otherwise)
{
	const json_t *v = json_object_get(o, name);
	int64_t n = json_get_int(o, name, otherwise);

	if (v && (!json_is_integer(v) || n < 1 || n > SECONDS_MAX))
		mcp_conf_wrong(r, "ava.%s must be whole seconds, 1 to %d", name, SECONDS_MAX);
	return r->rv == 0 ? (int)n * 1000 : 0;
}

static void take_rights(struct mcp_conf_reading *r, json_t *o, struct mcp_conf *to)
{
	static const char words[] = "read write network private timeout start idle";
	bool given;
	const char *name;
	json_t *v;

	if (o && !json_is_object(o))
		mcp_conf_wrong(r, "ava must be an object");
	json_object_foreach(o, name, v)
	{
		struct near near = near_start(name);

		near_words(&near, words);
		if (near.distance != 0)
			mcp_conf_wrong(r, "ava has an unknown member %.40s: there are %s", name,
				       words);
	}
	to->call_ms = mcp_conf_seconds_of(r, o, "timeout", 60);
	to->start_ms = mcp_conf_seconds_of(r, o, "start", 30);
	to->idle_ms = mcp_conf_seconds_of(r, o, "idle", 300);
	to->reads = paths_of(r, json_object_get(o, "read"), "ava.read");
	to->writes = paths_of(r, json_object_get(o, "write"), "ava.write");
	to->network = flag_of(r, o, "network", false);
	if (r->rv != 0)
		return;
	/* Folders of the person, and keys to accounts, make a server's words private. */
	given = to->reads[0] || to->writes[0] || to->env[0] || to->headers[0];
	to->rights = flag_of(r, o, "private", given) ? TOOL_PRIVATE : 0;
	to->rights |= to->url || to->network ? TOOL_OUT : 0;
	if (to->url && (to->network || to->reads[0] || to->writes[0]))
		mcp_conf_wrong(r, "read, write and network are for a command, not for a url");
}

static void take_server(struct mcp_conf_reading *r, const char *name, json_t *o)
{
	struct mcp_conf *to = &r->to->v[r->to->n];
	const char *command, *type, *rest;

	if (!*name || strlen(name) > 32 || strstr(name, "__") || name[strlen(name) - 1] == '_' ||
	    name[strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")])
		mcp_conf_wrong(r, "a name has letters, digits, - and single _, 32 at the most");
	if (!json_is_object(o))
		mcp_conf_wrong(r, "it must be an object with command or url");
	command = mcp_conf_text_of(r, json_object_get(o, "command"), "command");
	type = mcp_conf_text_of(r, json_object_get(o, "type"), "type");
	*to = (struct mcp_conf){.name = to->name,
				.url = mcp_conf_text_of(r, json_object_get(o, "url"), "url"),
				.start = mcp_conf_text_of(r, json_object_get(o, "cwd"), "cwd")};
	if (!command == !to->url)
		mcp_conf_wrong(r, "it must have either command or url");
	if (type && strcmp(type, to->url ? "http" : "stdio") != 0 &&
	    !(to->url && strcmp(type, "streamable-http") == 0))
		mcp_conf_wrong(
			r, "type is \"%.40s\"; there are stdio (with command) and http (with url)",
			type);
	if (r->rv != 0)
		return;
	to->start = to->start ? to->start : SANDBOX_WORK;
	if (to->url) { /* the part for the pool, up to the host; a query may follow it at once */
		rest = strstr(to->url, "://");
		rest = rest ? rest + 3 : to->url;
		rest += strcspn(rest, "/?#");
		to->path = mcp_conf_got(r, arena_fmt(&r->to->mem, "%s%.*s", *rest == '/' ? "" : "/",
						     (int)strcspn(rest, "#"), rest));
		to->url = mcp_conf_keep(r, to->url, (size_t)(rest - to->url));
	}
	if (command)
		to->argv = mcp_conf_texts_of(r, json_object_get(o, "args"), "args",
					     find_program(r, command));
	to->env = pairs_of(r, json_object_get(o, "env"), "env", "=");
	to->headers = pairs_of(r, json_object_get(o, "headers"), "headers", ": ");
	take_rights(r, json_object_get(o, "ava"), to);
}

/* ---- the file */

static void read_servers(struct mcp_conf_reading *r, const char *text, size_t len)
{
	struct ava_error why = {0};
	size_t bom = jscan_begins(text, len, "\xef\xbb\xbf") ? 3 : 0;
	json_t *all = json_parse(text + bom, len - bom, &why);
	json_t *servers = json_object_get(all, "mcpServers"), *o;
	size_t n = json_object_size(servers);
	struct mcp_conf *to;
	const char *name;

	if (!all)
		mcp_conf_wrong(r, "%s: %.300s", r->path, why.text);
	else if (!json_is_object(servers))
		mcp_conf_wrong(r, "%s must be an object with the member mcpServers, an object",
			       r->path);
	else if (n > MCP_SERVERS_MAX)
		mcp_conf_wrong(r, "%s has more than %d servers", r->path, MCP_SERVERS_MAX);
	if (r->rv == 0)
		r->to->v = mcp_conf_got(r, arena_get(&r->to->mem, (n + 1) * sizeof(*r->to->v)));
	json_object_foreach(servers, name, o)
	{
		/* Other programs keep disabled servers in the file. */
		if (r->rv != 0 || json_get_bool(o, "disabled", false) ||
		    !json_get_bool(o, "enabled", true))
			continue;
		to = &r->to->v[r->to->n];
		to->name = mcp_conf_keep(r, name, strnlen(name, 40));
		take_server(r, name, o);
		r->to->n++;
		if (r->rv != AVA_EINVAL && r->rv != AVA_EDENIED)
			continue;
		r->rv = 0; /* a fault disables its entry only, and is kept in its place */
		*to = (struct mcp_conf){
			.name = to->name,
			.broken = mcp_conf_keep(r, r->err->text, strlen(r->err->text))};
	}
	json_decref(all);
}

int mcp_confs_read(struct mcp_confs *out, const char *path, struct redact *redact,
		   struct ava_error *err)
{
	struct ava_error why;
	struct mcp_conf_reading r = {.to = out, .path = path, .redact = redact, .err = &why};
	char *text = NULL;
	size_t len = 0;

	*out = (struct mcp_confs){0};
	arena_init(&out->mem, 8u << 20);
	r.rv = settings_read_file(path, FILE_MAX, &text, &len, &why);
	if (r.rv == 0) {
		read_servers(&r, text, len);
		explicit_bzero(text, len);
		free(text);
	}
	if (r.rv == AVA_ENOENT)
		return 0;
	out->broken = r.rv != 0 && r.rv != AVA_ENOMEM;
	if (out->broken) {
		r.rv = 0;
		out->v = mcp_conf_got(&r, arena_get(&out->mem, sizeof(*out->v)));
		out->n = out->v ? 1 : 0;
	}
	if (out->broken && out->v)
		*out->v =
			(struct mcp_conf){.name = "mcp.json",
					  .broken = mcp_conf_keep(&r, why.text, strlen(why.text))};
	return r.rv == 0 ? 0 : err_set(err, AVA_ENOMEM, "out of memory");
}
