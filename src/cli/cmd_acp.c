/* ava acp: an editor talks with Ava. It starts this program and speaks the Agent Client Protocol
 * (version 1) with it: JSON-RPC, one message a line, with requests of either side (doc/EDITORS.md).
 *
 * Happy path: a line of stdin is a message, its row in the table carries it out; between two lines
 * the conversations (acp.h) tell what happens. One loop waits for stdin and for what they follow.
 *
 * What can fail: a line that is no message, or asks for what cannot be, is answered by an error and
 * the next one is read; the daemon, which is started again when it is asked. The end of the input,
 * a signal or an editor that reads no more ends the turns under way and this program; subagents go
 * on, and so does whoever follows the same conversation elsewhere. */
#include <ava.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/util.h"
#include "cli/acp.h"
#include "cli/api.h"
#include "cli/cli.h"
#include "client/client.h"
#include "client/start.h"

static struct {
	const char *model;
	bool wait;
} o;

static const struct opt opts[] = {
	OPT("model", 'm', STR, "MODEL", model, "the model of new conversations"),
	OPT("wait", 0, FLAG, NULL, wait,
	    "a turn lasts until its subagents have ended; the editor can choose otherwise"),
};

#define LAST_S   10    /* seconds to end the turns under way when a daemon does not answer */
#define LIST_MAX 10000 /* conversations in a list, which fits an answer for any folders */

static volatile sig_atomic_t stopped;

static void acp_on_signal(int number)
{
	stopped = number;
}

/* ---- what it asks */

struct acp_request { /* all members are borrowed */
	struct acp *a;
	struct acp_session *s; /* the session named in the request; NULL: none that is open here */
	const char *method;
	const json_t *id, *params;
	struct ava_error *err; /* why the request fails */
};

static json_t *acp_refuse(const struct acp_request *q, int code, const char *sentence)
{
	err_set(q->err, code, "%s", sentence);
	return NULL;
}

/* Whatever version is asked for, ours is the answer. */
static json_t *do_initialize(struct acp_request *q)
{
	const json_t *can = json_object_get(q->params, "clientCapabilities");

	q->a->begun = true;
	q->a->forms = json_is_object(json_object_get(json_object_get(can, "elicitation"), "form"));
	q->a->notices = json_is_object(json_object_get(json_object_get(can, "session"), "notices"));
	return json_pack("{s:i,s:{s:b,s:{s:b},s:{s:{},s:{},s:{}}},s:{s:s,s:s,s:s},s:[]}",
			 "protocolVersion", 1, "agentCapabilities", "loadSession", 1,
			 "promptCapabilities", "embeddedContext", 1, "sessionCapabilities", "list",
			 "resume", "close", "agentInfo", "name", "ava", "title", "Ava", "version",
			 ava_version(), "authMethods");
}

/* ---- conversations */

/* Commands the editor offers a person; sent to Ava without the slash. */
static const struct {
	const char *name, *what, *hint;
} commands[] = {
	{"status", "what is going on", NULL},
	{"cancel", "stop a subagent for good", "S-id"},
	{"steer", "tell a subagent at work what to mind, or answer it", "S-id TEXT"},
};

static void tell_commands(struct acp_session *s)
{
	json_t *all = json_array();

	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		const char *hint = commands[i].hint;

		json_array_append_new(
			all, json_pack("{s:s,s:s,s:o*}", "name", commands[i].name, "description",
				       commands[i].what, "input",
				       hint != NULL ? json_pack("{s:s}", "hint", hint) : NULL));
	}
	acp_update(s, "available_commands_update", "{s:o}", "availableCommands", all);
}

/* session/new, session/load (shows the conversation again), session/resume (does not). */
static json_t *do_begin(struct acp_request *q)
{
	bool new = strcmp(q->method, "session/new") == 0;
	bool again = strcmp(q->method, "session/load") == 0;
	const char *id = json_str(q->params, "sessionId"), *cwd = json_str(q->params, "cwd");
	struct acp_session *s;

	if (cwd[0] != '/')
		return acp_refuse(q, AVA_EINVAL, "cwd is an absolute path");
	if (!new && q->s != NULL)
		acp_free(q->s);
	q->s = NULL;
	s = acp_open(q->a, new ? NULL : id, cwd, o.model, again, q->err);
	if (s == NULL)
		return NULL;
	s->wait = o.wait;
	if (json_array_size(json_object_get(q->params, "mcpServers")) > 0)
		s->remark = "The MCP servers of this editor are not used here yet.";
	acp_send(q->a, rpc_result(q->id, json_pack("{s:s*,s:o}", "sessionId", new ? s->d.id : NULL,
						   "configOptions", acp_options(s))));
	tell_commands(s);                /* after the answer, which names the session */
	*q->err = (struct ava_error){0}; /* forget a failed try before the daemon was started */
	return NULL;
}

/* Conversations in which something was said, the newest first. */
static json_t *do_list(struct acp_request *q)
{
	const char *cwd = json_str(q->params, "cwd");
	json_t *all = NULL, *list;
	const json_t *s;
	size_t i;

	if (json_str(q->params, "cursor")[0] != '\0')
		return acp_refuse(q, AVA_EINVAL, "no cursor was given: the list is whole");
	if (api_request(NULL, &all, q->err, "/sessions?limit=%d", LIST_MAX) != 0)
		return NULL;
	list = json_array();
	json_array_foreach(json_object_get(all, "sessions"), i, s)
	{
		const char *folder = json_str(s, "cwd"), *title = json_str(s, "title");

		if (title[0] != '\0' && folder[0] != '\0' &&
		    (cwd[0] == '\0' || strcmp(cwd, folder) == 0))
			json_array_append_new(list, json_pack("{s:s,s:s,s:s,s:s}", "sessionId",
							      json_str(s, "session_id"), "cwd",
							      folder, "title", title, "updatedAt",
							      json_str(s, "updated_at")));
	}
	json_decref(all);
	return json_pack("{s:o}", "sessions", list);
}

static json_t *do_close(struct acp_request *q)
{
	acp_free(q->s);
	return json_object();
}

static json_t *do_option(struct acp_request *q)
{
	struct acp_session *s = q->s;
	const char *id = json_str(q->params, "configId"), *value = json_str(q->params, "value");

	if (strcmp(id, "subagents") == 0 &&
	    (strcmp(value, "wait") == 0 || strcmp(value, "background") == 0))
		s->wait = value[0] == 'w';
	else if (strcmp(id, "model") != 0)
		return acp_refuse(q, AVA_EINVAL,
				  "there is no such option, or it has no such value");
	else if (dialog_model(&s->d, value, q->err) != 0)
		return NULL;
	return json_pack("{s:o}", "configOptions", acp_options(s));
}

/* ---- a prompt */

/* The path of a file:// link, below `cwd` without it; another link as it is. */
static void add_link(struct buf *out, const char *uri, const char *cwd)
{
	bool file = strncmp(uri, "file://", 7) == 0;
	size_t n = strlen(cwd);
	struct buf path;

	buf_init(&path, ACP_TEXT_MAX);
	for (const char *p = file ? uri + 7 + strcspn(uri + 7, "/") : uri; *p != '\0'; p++) {
		bool coded = file && p[0] == '%' && strspn(p + 1, "0123456789abcdefABCDEF") >= 2;
		const char hex[] = {p[0], coded ? p[1] : '\0', coded ? p[2] : '\0', '\0'};
		char byte = (char)strtoul(hex + 1, NULL, 16);

		buf_addc(&path, byte != '\0' ? byte : *p);
		p += byte != '\0' ? 2 : 0;
	}
	if (path.len > n + 1 && memcmp(path.data, cwd, n) == 0 && path.data[n] == '/')
		buf_drop(&path, n + 1);
	if (path.len > 0)
		buf_add(out, path.data, path.len);
	buf_fini(&path);
}

static void add_fence(struct buf *out, size_t ticks)
{
	while (ticks-- > 0 && buf_addc(out, '`') == 0) {
	}
	buf_addc(out, '\n');
}

/* A file's text, between two fences that are longer than any in it. */
static void acp_add_text(struct buf *out, const char *text)
{
	size_t longest = 2, ticks = 0;

	for (const char *at = text; *at != '\0'; at++) {
		ticks = *at == '`' ? ticks + 1 : 0;
		longest = MAX(longest, ticks);
	}
	buf_adds(out, ":\n");
	add_fence(out, longest + 1);
	buf_addf(out, "%s\n", text);
	add_fence(out, longest + 1);
}

/* A block that is no text is named, and the prompt goes on. `data`: in base64. */
static void acp_add_named(struct buf *out, const char *type, const char *data)
{
	size_t len = strlen(data), bytes = len / 4 * 3;

	for (size_t i = 0; i < 2 && len > i && data[len - 1 - i] == '='; i++)
		bytes--;
	buf_addf(out, "\n[%s, %zu bytes: Ava cannot read it]\n", type, bytes);
}

/* Some clients put a link among the words of a sentence, others send it beside one: where `next`
 * follows the link or the link follows a word, a blank parts them. */
static void part_link(struct buf *out, const char *next)
{
	char last = out->len > 0 ? out->data[out->len - 1] : ' ';

	if (!strchr(" \t\n([{<\"'`@=*_/~|", last) &&
	    (next == NULL || isalnum((unsigned char)next[0]) || (unsigned char)next[0] >= 0x80))
		buf_addc(out, ' ');
}

/* The blocks, as a person would have written them. 0, or err says why they cannot be taken. */
static int add_blocks(struct buf *out, const json_t *blocks, const char *cwd, struct ava_error *err)
{
	bool behind_link = false;
	const json_t *block;
	size_t i;

	if (!json_is_array(blocks))
		return err_set(err, AVA_EINVAL, "prompt is a list of blocks");
	json_array_foreach(blocks, i, block)
	{
		const char *type = json_str(block, "type");
		const json_t *file = json_object_get(block, "resource");

		if (strcmp(type, "text") == 0) {
			if (behind_link)
				part_link(out, json_str(block, "text"));
			buf_adds(out, json_str(block, "text"));
		} else if (strcmp(type, "resource_link") == 0) {
			part_link(out, NULL);
			add_link(out, json_str(block, "uri"), cwd);
		} else if (strcmp(type, "resource") == 0 && json_get_str(file, "text") != NULL) {
			buf_adds(out, "\n\n");
			add_link(out, json_str(file, "uri"), cwd);
			acp_add_text(out, json_str(file, "text"));
		} else if (json_is_object(block)) {
			const char *mime = json_str(file ? file : block, "mimeType");

			buf_adds(out, "\n\n");
			add_link(out, json_str(file ? file : block, "uri"), cwd);
			acp_add_named(out,
				      mime[0]   ? mime
				      : type[0] ? type
						: "a block without a type",
				      json_str(file ? file : block, file ? "blob" : "data"));
		} else {
			return err_set(err, AVA_EINVAL, "a block of the prompt is no object");
		}
		behind_link = strcmp(type, "resource_link") == 0;
	}
	return buf_check(out) == 0 ? 0 : err_set(err, AVA_ETOOBIG, "the prompt is too long");
}

static const char *without_slash(const char *text)
{
	size_t n = strcspn(text, " \t\n");

	for (size_t i = 0; text[0] == '/' && i < ARRAY_LEN(commands); i++)
		if (strlen(commands[i].name) == n - 1 &&
		    memcmp(commands[i].name, text + 1, n - 1) == 0)
			return text + 1;
	return text;
}

static json_t *do_prompt(struct acp_request *q)
{
	struct buf text;

	buf_init(&text, ACP_TEXT_MAX);
	if (add_blocks(&text, json_object_get(q->params, "prompt"), q->s->d.cwd, q->err) == 0)
		acp_prompt(q->s, q->id, without_slash(text.data != NULL ? text.data : ""));
	buf_fini(&text);
	return NULL;
}

static json_t *acp_do_cancel(struct acp_request *q)
{
	acp_stop(q->s);
	return NULL;
}

/* ---- messages */

static const struct {
	const char *name;
	/* Gives the result's members, *owned*. NULL: err says why not, or the answer comes
	 * later. */
	json_t *(*run)(struct acp_request *q);
	bool session; /* the method needs a session that is open here */
	bool notice;
} methods[] = {
	{"initialize", do_initialize, false, false},
	{"session/new", do_begin, false, false},
	{"session/load", do_begin, false, false},
	{"session/resume", do_begin, false, false},
	{"session/list", do_list, false, false},
	{"session/close", do_close, true, false},
	{"session/prompt", do_prompt, true, false},
	{"session/set_config_option", do_option, true, false},
	{"session/cancel", acp_do_cancel, true, true},
};

/* 0, or the code of the refusal; err says why. */
static int run_method(struct acp_request *q, bool notice)
{
	json_t *result;
	size_t i = 0;

	while (i < ARRAY_LEN(methods) &&
	       (strcmp(methods[i].name, q->method) != 0 || methods[i].notice != notice))
		i++;
	if (i == ARRAY_LEN(methods)) {
		acp_refuse(q, AVA_ENOENT, "there is no such method here");
		return RPC_NO_METHOD;
	}
	if (!q->a->begun && methods[i].run != do_initialize) {
		acp_refuse(q, AVA_EINVAL, "begin with initialize");
		return RPC_INVALID;
	}
	if (methods[i].session && q->s == NULL)
		result = acp_refuse(q, AVA_ENOENT,
				    "there is no such session here: begin or load it first");
	else
		result = methods[i].run(q);
	if (result != NULL)
		acp_send(q->a, rpc_result(q->id, result));
	switch (result != NULL ? 0 : q->err->code) {
	case 0:
		return 0;
	case AVA_ENOENT:
		return ACP_NOT_FOUND;
	case AVA_EINVAL:
	case AVA_ETOOBIG:
	case AVA_EUNSUPPORTED:
		return RPC_PARAMS;
	default:
		return RPC_INTERNAL;
	}
}

/* A line that is too long is not carried out; its request is answered with the reason. */
struct acp_input {
	struct cli_lines in;
	struct acp *a;
};

static void acp_take_line(struct cli_lines *in)
{
	const struct buf *line = &in->line;
	struct acp *a = CONTAINER_OF(in, struct acp_input, in)->a;
	struct ava_error err = {0};
	struct acp_request q = {.a = a, .err = &err};
	struct rpc m;
	int code;

	if (line->len == 0 || strspn(line->data, " \t\r") == line->len)
		return;
	if (in->too_long) {
		rpc_unread(&m, line->data, line->len);
		code = RPC_INVALID;
		err_set(&err, AVA_ETOOBIG, "a line of the input is over 4 MB");
	} else {
		code = rpc_read(&m, line->data, line->len, &err);
	}
	q.method = m.method;
	q.id = m.id;
	q.params = m.params;
	q.s = acp_find(a, json_str(m.params, "sessionId"));
	if (m.kind == RPC_RESPONSE) /* a torn or too long response counts as a no */
		LIST_EACH (&a->sessions, n, tmp)
			acp_answer(LIST_ENTRY(n, struct acp_session, node), &m);
	else if (code == 0)
		code = run_method(&q, m.kind == RPC_NOTICE);
	if (code != 0 && m.kind == RPC_REQUEST) /* without a method the id is one of ours */
		acp_send(a, rpc_error(json_object_get(m.doc, "method") ? m.id : NULL, code,
				      err.text, NULL));
	rpc_fini(&m);
}

/* ---- the loop */

/* Wait for input, events or due work. True: stdin can be read. */
static bool wait_for_news(const struct acp *a)
{
	struct pollfd fds[ACP_SESSIONS_MAX + 1] = {{.fd = STDIN_FILENO, .events = POLLIN}};
	int64_t until = INT64_MAX;
	nfds_t n = 1;

	LIST_EACH (&a->sessions, node, tmp) {
		const struct acp_session *s = LIST_ENTRY(node, struct acp_session, node);
		int64_t next = acp_next(s);

		fds[n++] = (struct pollfd){.fd = dialog_fd(&s->d), .events = POLLIN};
		if (next >= 0)
			until = MIN(until, next);
	}
	return acp_wait(a, fds, n, until) && fds[0].revents != 0;
}

static int acp_run(int argc, char **argv)
{
	struct sigaction stop = {.sa_handler = acp_on_signal};
	struct acp a = {.stopped = &stopped};
	struct acp_input input = {.in.take = acp_take_line, .a = &a};
	bool open = true;

	client_speak_for("acp");
	start_for_others();
	client_interrupt_by(&stopped);
	list_init(&a.sessions);
	buf_init(&input.in.line, ACP_TEXT_MAX);
	signal(SIGPIPE, SIG_IGN); /* an editor that reads no more is an error of write */
	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGALRM, &stop, NULL);
	if (isatty(STDIN_FILENO))
		cli_note("an editor starts this and talks with it; a person talks with `ava`");
	while (open && !stopped && !a.gone) {
		if (wait_for_news(&a))
			open = cli_lines(&input.in);
		LIST_EACH (&a.sessions, n, tmp)
			if (!stopped)
				acp_step(LIST_ENTRY(n, struct acp_session, node));
	}
	stopped = 0;
	alarm(LAST_S);
	LIST_EACH (&a.sessions, n, tmp)
		acp_free(LIST_ENTRY(n, struct acp_session, node));
	buf_fini(&input.in.line);
	return CLI_DONE;
}

const struct command cmd_acp = COMMAND(
	"acp", "", 0, 0, "talk with an editor (Agent Client Protocol)",
	"An editor starts it: doc/EDITORS.md has what to set in Zed, JetBrains and Neovim.\n",
	OPTIONS(opts), acp_run);
