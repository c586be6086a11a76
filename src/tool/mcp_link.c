/* Lines to MCP servers; see mcp_link.h.
 *
 * Happy path of a process: a child in the sandbox that is talked with (exec/child.h); what it
 * writes to 2 is kept for the sentence that says why it ended. Lines that it writes are messages.
 * Happy path of HTTP: each message is a POST of its own (`exchange`); its answer is one message, or
 * a stream of events that are messages.
 *
 * What can fail: the sandbox, the program, the network, and all that a server may write: a line
 * without an end, a body of any size, a stream that breaks off. A process that reads nothing is
 * ended when too much waits for it. Whatever is over is freed at the end of a turn (sweep), when
 * nothing of it is on the stack. */
#include "tool/mcp_link.h"

#include <ava.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/error.h"
#include "base/list.h"
#include "base/sys.h"
#include "base/util.h"
#include "codec/jsonrpc.h"
#include "codec/sse.h"
#include "exec/child.h"
#include "exec/sandbox.h"
#include "net/http_client.h"
#include "os/loop.h"
#include "tool/mcp_conf.h"
#include "tool/trim.h"

#define END_MS      500  /* time a process has to end once its input is closed */
#define SAID_MAX    2048 /* bytes kept of what the process wrote to stderr */
#define FOR_EVER_MS (86400000ll * 30)
#define CONNECT_MS  5000
#define HEADERS_MAX 32
#define DISK_MS     100 /* pause between two looks at the disk */
#define DISK_LOOKS  100 /* looks after which the server's files are kept as its own */

struct mcp_link {
	struct mcp_link_options o;
	bool closed;
	struct os_task sweep;
	/* The fields of a process. */
	struct exec_child *child; /* NULL: the process has ended */
	struct buf line;          /* the last line, not ended yet */
	char why[SAID_MAX + 200]; /* why the link broke; "": it works */
	char work[PATH_MAX];
	struct os_timer *look; /* timer of looks at the disk, not to be filled; NULL: no folder */
	struct trim trim;
	struct os_work trimming;
	bool trims, trimmed, owed; /* a trim runs; files were removed; another trim is due */
	unsigned looks;
	/* The fields of HTTP. */
	struct http_pool *pool;
	struct list exchanges;
	char session[4200]; /* header of the session: "Mcp-Session-Id: …"; "": none */
};

struct exchange {
	struct list node;
	struct mcp_link *link;
	int64_t id;
	struct http_call call;
	struct sse sse;
	struct buf body;
	bool stream, over;
};

static void exchange_free(struct exchange *x)
{
	list_del(&x->node);
	http_call_stop(&x->call);
	sse_fini(&x->sse);
	buf_fini(&x->body);
	buf_fini(&x->call.body);
	free(x);
}

static void link_free(struct mcp_link *l)
{
	--*l->o.alive;
	os_defer_cancel(l->o.loop, &l->sweep);
	buf_fini(&l->line);
	http_pool_free(l->pool);
	os_timer_free(l->look);
	if (l->look)
		trim_end(&l->trim);
	free(l);
}

static void mcp_link_sweep(struct os_task *t)
{
	struct mcp_link *l = CONTAINER_OF(t, struct mcp_link, sweep);

	LIST_EACH (&l->exchanges, n, tmp) {
		struct exchange *x = LIST_ENTRY(n, struct exchange, node);

		if (l->closed || x->over)
			exchange_free(x);
	}
	if (!l->closed && l->why[0])
		l->o.ended(l->why, l->o.user);
	else if (l->closed && l->child)
		exec_hang_up(l->child, END_MS);
	else if (l->closed && !l->trims)
		link_free(l);
}

/* ---- a process */

/* Mark the link as broken; the first reason counts. */
static void link_broke(struct mcp_link *l, const char *why)
{
	if (l->why[0])
		return;
	snprintf(l->why, sizeof(l->why), "%s", why);
	os_defer(l->o.loop, &l->sweep);
}

static void look_begin(struct mcp_link *l)
{
	trim_begin(&l->trim, l->work, NULL, l->o.least_mb);
	l->trim.keeps = true; /* a server keeps files that it changed */
	l->looks = DISK_LOOKS;
	os_timer_set(l->look, DISK_MS);
}

static void mcp_link_trim_work(struct os_work *w)
{
	struct mcp_link *l = w->priv;
	struct buf said;

	buf_init(&said, 64u << 10);
	l->trimmed = trim_run(&l->trim, &said);
	buf_fini(&said);
}

static void trim_start(struct mcp_link *l);

static void mcp_link_trim_done(struct os_work *w)
{
	struct mcp_link *l = w->priv;

	l->trims = false;
	if (!l->child) {
		if (l->owed)
			trim_start(l);
	} else if (l->trimmed) {
		link_broke(l, "it filled the disk: what it wrote was removed");
		exec_stop(l->child);
	} else {
		trim_end(&l->trim);
		look_begin(l);
	}
	os_defer(l->o.loop, &l->sweep);
}

static void trim_start(struct mcp_link *l)
{
	l->trims = true;
	l->owed = false;
	l->trimming =
		(struct os_work){.work = mcp_link_trim_work, .done = mcp_link_trim_done, .priv = l};
	os_work_start(l->o.loop, &l->trimming);
}

/* The disk also holds the logs. Another program may have filled it, so the server goes on until
 * files of its own turn out to be the cause. */
static void mcp_link_look_at_disk(void *user)
{
	struct mcp_link *l = user;

	if (l->closed || l->why[0])
		return;
	if (!trim_due(&l->trim) && --l->looks > 0) {
		os_timer_set(l->look, DISK_MS);
		return;
	}
	if (l->looks == 0) {
		trim_end(&l->trim);
		look_begin(l);
		return;
	}
	trim_start(l);
}

/* The line that tells most: the last with an error in it (a version, or advice, may follow), else
 * the last. Where the beginning was lost, the first word is left out, as it may be part of a
 * secret. */
static void telling_line(const struct exec_end *end, char *out, size_t size)
{
	size_t at = 0, len = end->tail_len, n;
	bool told = false, tells;

	if (len > 0 && end->written > len)
		at = strcspn(end->tail, " \n");
	at += at < len && end->tail[at] == ' ';
	for (out[0] = '\0'; at < len; at += n + 1) {
		const char *line = end->tail + at;

		n = strcspn(line, "\r\n");
		tells = memmem(line, n, "rror: ", 6) || memmem(line, n, "rror code ", 10);
		if (n > 0 && (tells || !told))
			snprintf(out, size, "%.*s", (int)MIN(n, size - 1), line);
		told = told || tells;
	}
}

static void process_done(const struct exec_end *end, void *user)
{
	struct mcp_link *l = user;
	const char *program = l->o.conf->argv[0];
	char said[SAID_MAX + 1], why[SAID_MAX + 100]; /* whole: redaction misses a part */

	l->child = NULL;
	/* The process may have written until it was gone, or have ended on the disk that it
	 * filled. */
	l->owed = l->look != NULL && trim_due(&l->trim);
	if (l->owed && !l->trims)
		trim_start(l);
	telling_line(end, said, sizeof(said));
	snprintf(why, sizeof(why), "ava-sandbox: %.1000s: %s", program, strerror(ENOENT));
	if (strcmp(said, why) == 0 && access(program, X_OK) == 0)
		snprintf(why, sizeof(why),
			 "its sandbox does not show it %.1000s, or what the first line of that "
			 "starts: write their folders into ava.read in mcp.json",
			 program);
	else
		snprintf(why, sizeof(why), "it ended (%s %d)%s%s",
			 end->how == EXEC_EXITED ? "exit" : "signal", end->code,
			 said[0] ? ": " : "", said);
	link_broke(l, why);
	os_defer(l->o.loop, &l->sweep);
}

/* Handle all whole lines as messages; the rest waits for its line's end. */
static void process_said(const char *bytes, size_t len, void *user)
{
	struct mcp_link *l = user;
	size_t from = 0;
	char *end;

	if (l->closed || l->why[0])
		return;
	if (buf_add(&l->line, bytes, len) != 0) {
		link_broke(l, "it wrote a message of more than 8 MB");
		return;
	}
	if (!memchr(bytes, '\n', len))
		return;
	while (!l->closed &&
	       (end = memchr(l->line.data + from, '\n', l->line.len - from)) != NULL) {
		size_t at = from;

		from = (size_t)(end - l->line.data) + 1;
		if (from - at > 1)
			l->o.message(l->line.data + at, from - at - 1, l->o.user);
	}
	buf_drop(&l->line, from);
}

/* Paths must still be those of the configuration: a server that may write could have replaced one
 * by a link. */
static int check_paths(const char *const *paths, struct ava_error *err)
{
	char real[PATH_MAX];

	for (size_t i = 0; paths[i]; i++) {
		if (!realpath(paths[i], real))
			return err_sys(err, "%.300s", paths[i]);
		if (strcmp(real, paths[i]) != 0)
			return err_set(err, AVA_EDENIED,
				       "%.300s is reached through a link by now: name what it "
				       "leads to in mcp.json",
				       paths[i]);
	}
	return 0;
}

static int open_process(struct mcp_link *l, struct ava_error *err)
{
	const struct mcp_conf *conf = l->o.conf;
	struct sandbox s = {.work = l->o.root ? l->work : NULL,
			    .project = "",
			    .keep_out = l->o.keep_out,
			    .reads = conf->reads,
			    .writes = conf->writes,
			    .network = conf->network,
			    .start = conf->start,
			    .argv = conf->argv,
			    .env = conf->env};
	struct exec_options how = {.said = process_said,
				   .unread_max = MCP_MESSAGE_MAX,
				   .output_max = SIZE_MAX,
				   .keep_tail = SAID_MAX};
	int rv = check_paths(conf->reads, err);

	snprintf(l->work, sizeof(l->work), "%s/mcp/%s", l->o.root ? l->o.root : "", conf->name);
	rv = rv ? rv : check_paths(conf->writes, err);
	if (rv == 0 && l->o.root && sys_make_folders(l->work, true) != 0)
		rv = err_sys(err, "make the folder %.300s", l->work);
	l->look = rv == 0 && l->o.root ? os_timer_new(l->o.loop, mcp_link_look_at_disk, l) : NULL;
	if (l->look)
		look_begin(l);
	return rv ? rv : sandbox_start(&l->child, l->o.loop, &s, &how, process_done, l, err);
}

/* ---- HTTP */

/* End an exchange; no callback follows. */
static void exchange_end(struct exchange *x)
{
	x->over = true;
	http_call_stop(&x->call);
	os_defer(x->link->o.loop, &x->link->sweep);
}

static int mcp_link_on_event(const struct sse_event *e, void *user)
{
	struct exchange *x = user;
	struct mcp_link *l = x->link;

	if (e->len == 0)
		return 0;
	l->o.message(e->data, e->len, l->o.user);
	return l->closed || x->over;
}

static void on_head(struct http_call *c, int status)
{
	struct exchange *x = c->user;
	const char *type = http_call_header(c, "content-type");
	const char *session = http_call_header(c, "mcp-session-id");

	x->stream = status == 200 && type && strncasecmp(type, "text/event-stream", 17) == 0;
	if (session && status == 200)
		snprintf(x->link->session, sizeof(x->link->session), "Mcp-Session-Id: %s", session);
}

static void mcp_link_on_done(struct http_call *c, int rv, const struct ava_error *err)
{
	struct exchange *x = c->user;
	struct mcp_link *l = x->link;
	const char *body = x->body.data ? x->body.data : "";
	bool told = !l->closed && x->id != 0;

	if (told && rv != 0)
		l->o.failed(x->id, rv == AVA_ECONNECT ? MCP_NOT_SENT : 0, "", 0, err->text,
			    l->o.user);
	else if (told && c->status != 200)
		l->o.failed(x->id, c->status, body, x->body.len, "", l->o.user);
	else if (told && !x->stream)
		l->o.message(body, x->body.len, l->o.user);
	if (told && !l->closed && !x->over)
		l->o.failed(x->id, 0, "", 0, "its answer is none, or broke off", l->o.user);
	exchange_end(x);
}

static bool mcp_link_on_data(struct http_call *c, const char *s, size_t n)
{
	static const struct ava_error much = {AVA_ETOOBIG, "it answered with more than 8 MB"};
	struct exchange *x = c->user;
	int rv = x->stream ? sse_feed(&x->sse, s, n) : buf_add(&x->body, s, n);

	if (rv != 0 && !x->over) {
		http_call_stop(c);
		mcp_link_on_done(c, AVA_ETOOBIG, &much);
	}
	return true;
}

/* Headers of a request: ours, some of them in `text`, then the person's. */
static unsigned write_headers(const struct mcp_link *l, const struct mcp_sending *s,
			      char text[3][300], const char *out[HEADERS_MAX])
{
	const struct {
		const char *name, *value;
	} own[] = {{"MCP-Protocol-Version", s->version},
		   {"Mcp-Method", s->method},
		   {"Mcp-Name", s->name}};
	unsigned n = 0;

	out[n++] = "Content-Type: application/json";
	out[n++] = !s->json ? "Accept: text/event-stream"
			    : "Accept: application/json, text/event-stream";
	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		if (own[i].value && *own[i].value) {
			snprintf(text[i], sizeof(text[i]), "%s: %s", own[i].name, own[i].value);
			out[n++] = text[i];
		}
	if (l->session[0])
		out[n++] = l->session;
	for (size_t i = 0; l->o.conf->headers[i] && n < HEADERS_MAX; i++)
		out[n++] = l->o.conf->headers[i];
	return n;
}

static int http_send(struct mcp_link *l, const struct mcp_sending *s, struct ava_error *err)
{
	struct exchange *x = calloc(1, sizeof(*x));
	/* A request has a timer of its own (tool/mcp.c). */
	int64_t ms = s->id ? FOR_EVER_MS : l->o.conf->call_ms;
	const char *headers[HEADERS_MAX];
	char text[3][300];
	int rv;

	if (!x)
		return err_set(err, AVA_ENOMEM, "out of memory");
	list_init(&x->node);
	x->link = l;
	x->id = s->id;
	sse_init(&x->sse, MCP_MESSAGE_MAX);
	x->sse.on_event = mcp_link_on_event;
	x->sse.user = x;
	buf_init(&x->body, MCP_MESSAGE_MAX);
	x->call = (struct http_call){.path = l->o.conf->path,
				     .method = !s->json ? "GET" : "POST",
				     .headers = headers,
				     .nheaders = write_headers(l, s, text, headers),
				     .timers = {CONNECT_MS, ms, ms, ms},
				     .head = on_head,
				     .data = mcp_link_on_data,
				     .done = mcp_link_on_done,
				     .user = x};
	buf_init(&x->call.body, MCP_MESSAGE_MAX);
	rv = s->json ? buf_add(&x->call.body, s->json, s->len) : 0;
	rv = rv ? err_set(err, rv, "out of memory") : http_call_start(l->pool, &x->call, err);
	if (rv != 0) {
		exchange_free(x);
		return rv;
	}
	list_add(&l->exchanges, &x->node);
	return 0;
}

/* ---- both */

struct mcp_link *mcp_link_open(const struct mcp_link_options *o, struct ava_error *err)
{
	struct http_pool_options pool = {
		.base_url = o->conf->url, .connections_max = 64, .once = true};
	struct mcp_link *l = calloc(1, sizeof(*l));

	if (!l) {
		err_set(err, AVA_ENOMEM, "out of memory");
		return NULL;
	}
	l->o = *o;
	buf_init(&l->line, MCP_MESSAGE_MAX);
	list_init(&l->exchanges);
	os_task_init(&l->sweep, mcp_link_sweep);
	++*o->alive;
	if (!o->conf->argv)
		l->pool = http_pool_new(o->client, &pool, err);
	if (o->conf->argv ? open_process(l, err) == 0 : l->pool != NULL)
		return l;
	link_free(l);
	return NULL;
}

void mcp_link_close(struct mcp_link *l)
{
	if (!l)
		return;
	l->closed = true;
	os_defer(l->o.loop, &l->sweep);
}

int mcp_link_send(struct mcp_link *l, const struct mcp_sending *s, struct ava_error *err)
{
	int rv;

	if (l->pool)
		return http_send(l, s, err);
	rv = l->why[0] ? AVA_EIO : exec_say(l->child, s->json, s->len);
	if (rv != 0)
		link_broke(l, rv == AVA_ENOMEM ? "out of memory" : "it reads nothing");
	return rv ? err_set(err, AVA_EIO, "%s", l->why) : 0;
}

void mcp_link_drop(struct mcp_link *l, int64_t id)
{
	LIST_EACH (&l->exchanges, n, tmp) {
		struct exchange *x = LIST_ENTRY(n, struct exchange, node);

		if (x->id == id)
			exchange_end(x);
	}
}

void mcp_link_refuse(struct mcp_link *l, const char *version, const struct rpc *m)
{
	struct mcp_sending out = {.version = version};
	struct buf b;

	buf_init(&b, 65536);
	if (rpc_line(&b, strcmp(m->method, "ping") == 0
				 ? rpc_result(m->id, json_object())
				 : rpc_error(m->id, RPC_NO_METHOD, "ava does not offer this",
					     NULL)) == 0) {
		out.json = b.data;
		out.len = b.len;
		(void)mcp_link_send(l, &out, NULL);
	}
	buf_fini(&b);
}

bool mcp_link_forget(struct mcp_link *l)
{
	bool had = l->session[0] != '\0';

	l->session[0] = '\0';
	return had;
}
