/* ava mcp: an MCP server on stdin and stdout for whatever program starts it. It owns nothing: each
 * message goes to the daemon as a request of its own (gateway/mcp.h has the protocol), what comes
 * back is written as lines, and when this process ends nothing else does.
 *
 * Happy path: lines are read, each but a notice is a flight: a connection to the daemon, which is
 * started when none answers, until its answer is whole; a stream of events is written message by
 * message. Many are under way at once. What can fail: a line is too long (its answer says so); the
 * daemon goes away: a flight is sent again under the same id, so that nothing is done twice; no
 * daemon can be had: the answer is an error with the reason. The end of stdin lets what is asked be
 * answered, and ends the streams; a signal ends all at once. */
#include <ava.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/settings.h"
#include "base/sys.h"
#include "base/util.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "cli/settings_file.h"
#include "cli/show.h"
#include "cli/term.h"
#include "client/start.h"
#include "codec/jsonrpc.h"

#define FLIGHTS_MAX 80
#define ASKED_MAX   64         /* flights for requests; the other flights carry answers to forms */
#define MESSAGE_MAX (2u << 20) /* the daemon's own limit */
#define ANSWER_MAX  (64u << 20)
#define TRIES_MAX   20
#define AGAIN_MS    100   /* pause before a request is sent again */
#define LAST_MS     60000 /* longest wait for answers after the end of stdin */

static struct {
	bool http, renew, json;
} o;

static const struct opt mcp_opts[] = {
	OPT("http", 0, FLAG, NULL, http,
	    "install: over the loopback port, with a token (machines of one person)"),
	OPT("renew", 0, FLAG, NULL, renew, "token: a new one; the old one is refused"),
	OPT("json", 0, FLAG, NULL, json, "token: as one JSON object"),
};

struct bridge;

struct flight {
	struct bridge *bridge;
	char *line; /* the message; owned */
	size_t len;
	struct rpc m;     /* the message, as far as it could be read */
	char name[33];    /* the request's name, kept when it is sent again */
	struct client *c; /* NULL: the message is to be sent */
	int64_t at_ms;    /* monotonic time before which the message is not sent */
	unsigned tries;
	bool streams;  /* a message has come on its stream */
	bool answered; /* the request's id is free; its stream may go on */
	bool landed;   /* done; the next sweep frees it */
};

struct bridge {
	struct flight *flights[FLIGHTS_MAX];
	unsigned n;
	struct cli_lines in;
	int64_t end_ms; /* stdin has ended, and answers are awaited till then; 0: not yet */
	char session[80];
	struct buf cwd; /* the working folder, escaped for a URL */
};

/* ---- out */

static void mcp_put(const struct buf *b)
{
	for (size_t at = 0; at < b->len;) {
		ssize_t n = write(STDOUT_FILENO, b->data + at, b->len - at);

		if (n < 0 && errno == EAGAIN) /* our parent left stdout non-blocking */
			(void)poll(&(struct pollfd){.fd = STDOUT_FILENO, .events = POLLOUT}, 1, -1);
		else if (n < 0 && errno != EINTR)
			exit(CLI_DONE); /* stdout is closed */
		at += n > 0 ? (size_t)n : 0;
	}
}

static void put_error(const json_t *id, int code, const char *text)
{
	struct buf b;

	buf_init(&b, MESSAGE_MAX + (1u << 16)); /* an id is as long as a message may be */
	if (rpc_line(&b, rpc_error(id, code, text, NULL)) == 0)
		mcp_put(&b);
	buf_fini(&b);
}

/* ---- flights */

/* Whether the client still waits for an answer. */
static bool asks(const struct flight *f)
{
	return f->m.method && f->m.id && !f->answered;
}

/* A message of the daemon: the answer, or one before it or behind it on its stream. */
static void message_came(struct flight *f, const char *text, size_t len)
{
	struct rpc m;
	struct buf b;

	if (rpc_read(&m, text, len, NULL) == 0) {
		buf_init(&b, ANSWER_MAX + 1);
		buf_add(&b, text, len);
		buf_addc(&b, '\n');
		mcp_put(&b);
		buf_fini(&b);
		f->answered = f->answered || m.kind == RPC_RESPONSE;
	}
	rpc_fini(&m);
}

static int mcp_on_event(const struct sse_event *e, void *user)
{
	struct flight *f = user;

	f->streams = true;
	f->tries = 0;
	message_came(f, e->data, e->len);
	return 0;
}

static void disconnect(struct flight *f)
{
	client_close(f->c);
	f->c = NULL;
}

static void land(struct flight *f)
{
	disconnect(f);
	f->landed = true;
}

static void mcp_sweep(struct bridge *b)
{
	for (unsigned i = b->n; i-- > 0;) {
		struct flight *f = b->flights[i];

		if (!f->landed)
			continue;
		rpc_fini(&f->m);
		free(f->line);
		free(f);
		b->flights[i] = b->flights[--b->n];
	}
}

/* A request that cannot be answered. */
static void mcp_fail(struct flight *f, const char *text)
{
	if (asks(f))
		put_error(f->m.id, RPC_INTERNAL, text);
	land(f);
}

/* Send a flight again later. */
static void put_off(struct flight *f, const char *why)
{
	disconnect(f);
	if (f->answered)
		land(f); /* only the end of the flight's stream was missing */
	else if (++f->tries > TRIES_MAX)
		mcp_fail(f, why);
	else
		f->at_ms = clock_mono_ms() + AGAIN_MS;
}

static int post(struct flight *f, struct ava_error *err)
{
	const struct bridge *b = f->bridge;
	struct buf path;
	int rv;

	buf_init(&path, 1u << 16);
	buf_addf(&path, "/mcp?id=%s", f->name);
	if (b->cwd.len > 0)
		buf_addf(&path, "&cwd=%s", b->cwd.data);
	rv = buf_check(&path);
	if (rv == 0)
		rv = client_send(f->c, path.data, b->session, f->line, mcp_on_event, f, err);
	buf_fini(&path);
	return rv;
}

/* Send a flight over its own connection. */
static void send_off(struct flight *f)
{
	struct ava_error err = {0};
	int rv = api_connect(API_LOOK, &f->c, &err);

	if (rv != 0)
		rv = api_connect(API_START, &f->c, &err);
	if (rv == 0)
		rv = post(f, &err) != 0 ? AVA_ECONNECT : 0;
	if (rv != 0 && (f->streams || rv == AVA_EBUSY || rv == AVA_ECONNECT))
		put_off(f, err.text);
	else if (rv != 0)
		mcp_fail(f, err.text);
}

static void mcp_hear(struct flight *f)
{
	struct ava_error err = {0};
	const struct http_reader *answer;
	const struct buf *body;
	int rv = client_stream_take(f->c, &err);

	if (rv >= 0 && client_stream_done(f->c)) {
		answer = client_answer(f->c, &body);
		if (answer->session[0])
			snprintf(f->bridge->session, sizeof(f->bridge->session), "%s",
				 answer->session);
		if (body->len > 0)
			message_came(f, body->data, body->len);
		mcp_fail(f, "the daemon refuses this message");
	} else if (rv == AVA_ECONNECT) {
		put_off(f, "the daemon went away before it had answered");
	} else if (rv < 0) {
		mcp_fail(f, err.text[0] ? err.text : "the daemon's answer is too large");
	}
}

/* ---- in */

/* Drop the flight of request `id`: the connection goes, and nothing follows. */
static void mcp_cancel(struct bridge *b, const json_t *id)
{
	for (unsigned i = 0; i < b->n; i++) {
		struct flight *f = b->flights[i];

		if (asks(f) && rpc_same_id(f->m.id, id))
			land(f);
	}
}

/* Send a line to the daemon, broken ones too: the daemon says what is wrong with them. Notices stay
 * here. */
static void line_came(struct cli_lines *in)
{
	struct bridge *b = CONTAINER_OF(in, struct bridge, in);
	struct flight *f;
	unsigned char random[16];
	bool notice, waits;
	struct rpc m;

	if (in->too_long) {
		rpc_unread(&m, in->line.data, in->line.len);
		put_error(m.method ? m.id : NULL, RPC_INVALID, "a message is at most 2 MB");
		rpc_fini(&m);
		return;
	}
	if (in->line.len == 0 || strspn(in->line.data, " \t\r\n") == in->line.len)
		return;
	notice = rpc_read(&m, in->line.data, in->line.len, NULL) == 0 && m.kind == RPC_NOTICE;
	waits = m.method && m.id;
	if (notice && strcmp(m.method, "notifications/cancelled") == 0)
		mcp_cancel(b, json_object_get(m.params, "requestId"));
	mcp_sweep(b);
	f = !notice && b->n < (waits ? ASKED_MAX : FLIGHTS_MAX) ? calloc(1, sizeof(*f)) : NULL;
	if (f)
		f->line = buf_take(&in->line, &f->len);
	if (!f || !f->line) {
		if (waits)
			put_error(m.id, RPC_INTERNAL,
				  "too many requests are under way: wait for some");
		free(f);
		rpc_fini(&m);
		return;
	}
	f->bridge = b;
	f->m = m;
	id_random(random, sizeof(random));
	hash_hex(random, sizeof(random), f->name);
	b->flights[b->n++] = f;
	send_off(f);
}

static void mcp_turn(struct bridge *b)
{
	struct pollfd p[FLIGHTS_MAX + 1];
	int64_t now = clock_mono_ms(), next = b->end_ms ? b->end_ms : INT64_MAX;
	unsigned n = b->n;

	p[n] = (struct pollfd){.fd = b->end_ms ? -1 : STDIN_FILENO, .events = POLLIN};
	for (unsigned i = 0; i < n; i++) {
		const struct flight *f = b->flights[i];

		p[i] = (struct pollfd){.fd = f->c ? client_fd(f->c) : -1, .events = POLLIN};
		if (!f->c)
			next = MIN(next, f->at_ms);
	}
	(void)poll(p, n + 1, next == INT64_MAX ? -1 : (int)MAX(next - now, 0));
	now = clock_mono_ms();
	for (unsigned i = 0; i < n; i++) {
		struct flight *f = b->flights[i];

		if (f->c && p[i].revents)
			mcp_hear(f);
		else if (!f->c && f->at_ms <= now)
			send_off(f);
	}
	if (p[n].revents && !cli_lines(&b->in)) {
		line_came(&b->in); /* maybe one without an end */
		b->end_ms = clock_mono_ms() + LAST_MS;
	}
	for (unsigned i = 0; b->end_ms && i < b->n; i++)
		if (b->flights[i]->streams)
			land(b->flights[i]);
	mcp_sweep(b);
}

static int bridge_run(void)
{
	static struct bridge b;
	char path[PATH_MAX];

	if (isatty(STDIN_FILENO))
		cli_note("a program starts this and talks with it: `ava mcp install claude` writes "
			 "the entry for it");
	start_for_others();
	signal(SIGPIPE, SIG_IGN);
	buf_init(&b.in.line, MESSAGE_MAX);
	b.in.take = line_came;
	buf_init(&b.cwd, 4 * PATH_MAX);
	if (getcwd(path, sizeof(path)) && strcmp(path, "/") != 0 &&
	    client_escape(&b.cwd, path) != 0)
		buf_reset(&b.cwd);
	while (!b.end_ms || (b.n > 0 && clock_mono_ms() < b.end_ms))
		mcp_turn(&b);
	return CLI_DONE;
}

/* ---- the entry in the settings of a program that starts us
 *
 * Its file is found, its entry for ava compared with ours, and written when it differs, or taken
 * out (cli/settings_file.h). What it starts is this very program; a data root that is not the usual
 * one is named, since such programs pass no environment on. What can fail: the program is not
 * known; its file is no JSON (Zed's may have comments): then the entry is shown, to be put there by
 * hand. */

static const struct mcp_target {
	const char *name, *title;
	const char *variable, *folder; /* `variable` names the folder; else below the home folder */
	const char *file;              /* path below the folder */
	const char *part;              /* member of the JSON with the servers; NULL: a TOML file */
	bool typed;                    /* entries have a member "type" */
} targets[] = {
	{"claude", "Claude Code", "CLAUDE_CONFIG_DIR", "", ".claude.json", "mcpServers", true},
	{"codex", "Codex", "CODEX_HOME", ".codex/", "config.toml", NULL, false},
	{"cursor", "Cursor", NULL, ".cursor/", "mcp.json", "mcpServers", false},
	{"zed", "Zed", "XDG_CONFIG_HOME", ".config/", "zed/settings.json", "context_servers",
	 false},
};

static int mcp_find_file(const struct mcp_target *t, char path[PATH_MAX], struct ava_error *err)
{
	const char *folder = t->variable ? env_get(t->variable) : NULL, *home = env_get("HOME");

	if (folder && strncmp(folder, "~/", 2) == 0 && home) /* expand ~ as a shell does */
		snprintf(path, PATH_MAX, "%s%s/%s", home, folder + 1, t->file);
	else if (folder && folder[0] == '/')
		snprintf(path, PATH_MAX, "%s/%s", folder, t->file);
	else if (home && home[0] == '/')
		snprintf(path, PATH_MAX, "%s/%s%s", home, t->folder, t->file);
	else
		return err_set(err, AVA_EINVAL, "HOME is not set: the settings of %s are below it",
			       t->title);
	return 0;
}

/* A new reference, or NULL: the usual one. */
static json_t *other_root(void)
{
	char root[ROOT_PATH_MAX], usual[ROOT_PATH_MAX];
	const char *home = env_get("HOME");

	snprintf(usual, sizeof(usual), "%s/.local/share/ava", home ? home : "");
	if (settings_data_root(root, sizeof(root), NULL) != 0 || strcmp(root, usual) == 0)
		return NULL;
	return json_pack("{s:s}", "AVA_DATA_ROOT", root);
}

static json_t *entry_of_command(const struct mcp_target *t)
{
	char self[PATH_MAX];
	json_t *entry;

	if (settings_file_program(self, NULL) != 0)
		self[0] = 0;
	entry = json_pack("{s:s*,s:s,s:[s],s:o*}", "type", t->typed ? "stdio" : NULL, "command",
			  self, "args", "mcp", "env", other_root());
	if (!entry)
		cli_note("%s is no name for settings, which are UTF-8: move this program", self);
	return entry;
}

static json_t *entry_of_address(const struct mcp_target *t)
{
	json_t *told = NULL, *entry = NULL;

	if (api_ask(&told, "{}", "/mcp-token") == 0)
		entry = json_pack("{s:s*,s:s,s:{s:o}}", "type", t->typed ? "http" : NULL, "url",
				  json_str(told, "url"), t->part ? "headers" : "http_headers",
				  "Authorization",
				  json_sprintf("Bearer %s", json_str(told, "token")));
	json_decref(told);
	return entry;
}

/* ---- TOML: our table alone is looked at */

/* Write members as TOML, those of an object by dotted names. JSON's strings and lists are valid
 * TOML. */
static void toml_members(struct buf *b, const char *front, const json_t *table)
{
	const char *key;
	char name[64];
	json_t *v;

	json_object_foreach((json_t *)table, key, v)
	{
		snprintf(name, sizeof(name), "%s%s%s", front, key, json_is_object(v) ? "." : " = ");
		if (json_is_object(v)) {
			toml_members(b, name, v);
			continue;
		}
		buf_adds(b, name);
		(void)json_dump(b, v);
		buf_addc(b, '\n');
	}
}

static bool mcp_is_ours(const char *name)
{
	size_t n = strlen("mcp_servers.ava");

	return strncmp(name, "mcp_servers.ava", n) == 0 && (!name[n] || name[n] == '.');
}

/* Find our tables: where they begin (*at), and their length; 0: none, *at stays. Blank lines and
 * comments behind them belong to the next table. Other forms of TOML, as [ mcp_servers . "ava" ] or
 * other tables between ours, are reported as *odd. */
static size_t toml_find(const char *text, size_t *at, bool *odd)
{
	const char *from = NULL, *to = NULL, *next;
	char bare[256], table[256] = "", name[512];
	bool ours = false, gap = false;

	for (const char *line = text; *line; line = next) {
		size_t n = 0, len = strcspn(line, "\n");

		next = line + len + (line[len] == '\n');
		for (size_t i = 0; i < len && line[i] != '#' && n + 1 < sizeof(bare); i++)
			if (!strchr(" \t\r\"'", line[i]))
				bare[n++] = line[i];
		bare[n] = 0;
		if (line[strspn(line, " \t")] == '[') {
			snprintf(table, sizeof(table), "%.*s", (int)strcspn(bare + 1, "]"),
				 bare + 1);
			ours = mcp_is_ours(table);
			gap = gap || (from && !ours);
			*odd |= ours && gap;
		} else if (!ours && strchr(bare, '=')) {
			snprintf(name, sizeof(name), "%s%s%.*s", table, table[0] ? "." : "",
				 (int)strcspn(bare, "="), bare);
			*odd |= mcp_is_ours(name) || strcmp(name, "mcp_servers") == 0;
		}
		if (ours && !from)
			from = line;
		if (ours && !gap && bare[0])
			to = next;
	}
	if (!from)
		return 0;
	*at = (size_t)(from - text);
	return (size_t)(to - from);
}

static int change_toml(struct settings_file *f, const json_t *entry, bool *changed,
		       struct ava_error *err)
{
	const char *was = f->was ? f->was : "";
	bool odd = false;
	size_t at = strlen(was), len = toml_find(was, &at, &odd), front = at;
	struct buf out;
	int rv;

	if (odd)
		return err_set(err, AVA_EINVAL,
			       "%s may have ava in a form that is not changed here: write its "
			       "servers as tables, [mcp_servers.NAME], each in one place",
			       f->path);
	buf_init(&out, 2 * SETTINGS_FILE_MAX);
	if (!entry && len > 0 && at > 1 && was[at - 2] == '\n')
		front--; /* drop the blank line before the entry, too */
	buf_add(&out, was, front);
	if (entry && len == 0 && at > 0)
		buf_adds(&out, was[at - 1] == '\n' ? "\n" : "\n\n");
	if (entry)
		buf_adds(&out, "[mcp_servers.ava]\n");
	toml_members(&out, "", entry);
	buf_adds(&out, was + at + len);
	rv = buf_check(&out);
	*changed = rv == 0 && strcmp(out.len ? out.data : "", was) != 0;
	if (rv != 0)
		rv = err_set(err, rv, "the settings are too large");
	else if (*changed)
		rv = settings_file_write(f, out.data, out.len, err);
	buf_fini(&out);
	return rv;
}

static int change_json(struct settings_file *f, const char *part, json_t *entry, bool *changed,
		       struct ava_error *err)
{
	json_t *was = json_object_get(f->part, "ava");

	*changed = entry ? !json_equal(was, entry) : was != NULL;
	if (!*changed)
		return 0;
	if (!f->part) {
		json_object_set_new(f->root, part, json_object());
		f->part = json_object_get(f->root, part);
	}
	if (entry && json_object_set(f->part, "ava", entry) != 0)
		return err_set(err, AVA_ENOMEM, "out of memory");
	if (!entry && json_object_del(f->part, "ava") == 0 && json_object_size(f->part) == 0)
		json_object_del(f->root, part);
	return settings_file_save(f, err);
}

static void show_by_hand(const struct mcp_target *t, const json_t *entry)
{
	json_t *whole = json_pack("{s:{s:O}}", t->part, "ava", (json_t *)entry);
	char *text = json_dumps(whole, JSON_INDENT(2));

	cli_note("put this into it by hand:");
	term_text(stdout, text ? text : "", text ? strlen(text) : 0, true);
	puts("");
	free(text);
	json_decref(whole);
}

static int install_run(const char *client, bool in)
{
	const struct mcp_target *t = targets;
	struct settings_file f = {0};
	struct ava_error err = {0};
	char path[PATH_MAX];
	bool changed = false;
	json_t *entry;
	int rv;

	while (t < targets + ARRAY_LEN(targets) && strcmp(t->name, client) != 0)
		t++;
	if (t == targets + ARRAY_LEN(targets))
		return cli_error(CLI_USAGE,
				 "\"%.40s\" is not known: there are claude, codex, cursor and zed",
				 client);
	entry = !in ? NULL : o.http ? entry_of_address(t) : entry_of_command(t);
	if (in && !entry)
		return CLI_FAILED; /* the reason has been printed */
	rv = mcp_find_file(t, path, &err);
	if (rv == 0) {
		rv = settings_file_open(&f, path, t->part, &err);
		if (rv == AVA_EINVAL && entry)
			show_by_hand(t, entry);
	}
	f.removes = !in;
	if (in && o.http)
		f.mode &= 0600; /* the file has a secret from now on */
	if (rv == 0)
		rv = t->part ? change_json(&f, t->part, entry, &changed, &err)
			     : change_toml(&f, entry, &changed, &err);
	if (rv == 0 && !changed)
		term_print(stdout, "Nothing to do: %s has %s in %s.\n", t->title,
			   in ? "ava" : "no ava", f.path);
	else if (rv == 0)
		term_print(stdout,
			   "%s: ava is %s MCP server of %s. Sessions that are open take it up "
			   "when they begin anew.\n",
			   f.path, in ? "an" : "no longer an", t->title);
	if (rv == 0 && in && !start_in_path(t->name, path, sizeof(path)))
		printf("(There is no %s in PATH.)\n", t->name);
	if (changed && rv == 0 && f.was && in)
		term_print(stdout, "%s.before-ava: what it was before ava first changed it.\n",
			   f.path);
	settings_file_close(&f);
	json_decref(entry);
	return rv == 0 ? CLI_DONE : cli_fail(&err);
}

/* ---- */

static int token_run(void)
{
	json_t *answer = NULL;
	int rv = api_ask(&answer, o.renew ? "{\"renew\":true}" : "{}", "/mcp-token");

	if (rv != 0)
		return rv;
	if (o.json) {
		show_json(stdout, answer);
	} else {
		term_print(stdout, "%s\n", json_str(answer, "url"));
		term_print(stdout, "Authorization: Bearer %s\n", json_str(answer, "token"));
	}
	json_decref(answer);
	return CLI_DONE;
}

static int mcp_run(int argc, char **argv)
{
	if (argc == 0 && !o.http && !o.renew && !o.json)
		return bridge_run();
	if (argc == 1 && strcmp(argv[0], "token") == 0)
		return token_run();
	if (argc == 2 && strcmp(argv[0], "install") == 0)
		return install_run(argv[1], true);
	if (argc == 2 && strcmp(argv[0], "uninstall") == 0)
		return install_run(argv[1], false);
	return cli_error(CLI_USAGE, "the form is: ava mcp, ava mcp token, or ava mcp "
				    "install|uninstall claude|codex|cursor|zed");
}

const struct command cmd_mcp = COMMAND(
	"mcp", "[token|install CLIENT|uninstall CLIENT]", 0, 2,
	"let Claude Code, Codex, Cursor or Zed use ava",
	"Speaks MCP on stdin and stdout, for the program that starts it. Runs belong to the "
	"daemon: "
	"they go on when that program ends, and only a person starts them.\n\n`ava mcp install "
	"claude` (or codex, cursor, zed) writes the entry into that program's settings; what they "
	"were before the first change is kept beside them with .before-ava; `ava mcp uninstall` "
	"takes it out again. That is a command, with neither port nor token. `ava mcp token` says "
	"where to find ava over HTTP, and the token to send: for machines of one person, since a "
	"token goes to whoever has the port.\n",
	OPTIONS(mcp_opts), mcp_run);
