/* See web.h.
 *
 * Happy path of a request: its Host is one of ours, so that no other name leads here (DNS
 * rebinding), and the process that sent it is not another user's; the page and its parts are given
 * to anybody else, since they hold no data; everything else is signed with the key of a tab
 * (web_keys.h); what changes something must also come from our own page, as JSON. Then it is a verb
 * as any other, asked by the owner through the channel "web". A program that speaks MCP sends its
 * own token, and no Origin but ours.
 *
 * A port is ours as long as we live, or as systemd holds it. Another program may have used an
 * earlier daemon's port since, and left scripts and workers in browsers for its address: open tabs
 * go on there, but a new sign-in gets another port. If the port cannot be had again, all keys and
 * the token of MCP end.
 *
 * What can fail: the port that is set is taken, web.json is damaged (nobody is signed in, a new one
 * is written), memory. */
#include "gateway/web.h"

#include <arpa/inet.h>
#include <ava.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ava/ops.h"
#include "ava/state.h"
#include "ava/verbs.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/id.h"
#include "base/le.h"
#include "base/sys.h"
#include "base/util.h"
#include "codec/json.h"
#include "gateway/mcp.h"
#include "gateway/metrics.h"
#include "gateway/routes.h"
#include "gateway/web_keys.h"
#include "journal/files.h"
#include "net/http_server.h"
#include "os/loop.h"
#include "os/service.h"

#define WEB_FILE        "web.json"
#define FILE_MAX        (64u << 10)
#define PORT_FIRST      7410 /* ports tried lie below those of outgoing connections */
#define PORT_SPAN       20000
#define PORT_TRIES      20
#define WEB_ANYBODY     (-2) /* value of web.uid */
#define CONNECTIONS_MAX 128
#define IDLE_MS         10000
#define BODY_MAX        (2u << 20)

struct web {
	struct routes *routes;
	struct http_server *http; /* NULL: not listening yet */
	int root_fd;
	void (*log)(const char *line, void *user);
	void *log_user;
	uint16_t port; /* 0: none yet */
	bool again;    /* the port is an earlier daemon's, and nobody used it since */
	bool quiesced;
	int other_fd; /* keeps the port of [::1] from others; -1: no IPv6 */
	bool mcp;     /* MCP clients know the address: listen without a tab, too */
	struct web_keys keys;
	struct http_server *left; /* old server, freed after the turn: it may serve this request */
	struct os_task leave;
};

static void web_say(struct web *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void web_say(struct web *w, const char *fmt, ...)
{
	char line[300];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	w->log(line, w->log_user);
}

/* ---- web.json */

static void web_load(struct web *w)
{
	char *text = NULL;
	json_t *doc = NULL, *row;
	size_t len = 0, i;
	int64_t port;

	if (sys_read_file(w->root_fd, WEB_FILE, FILE_MAX, &text, &len, NULL) == 0)
		doc = json_parse(text, len, NULL);
	free(text);
	port = json_get_int(doc, "port", 0);
	w->port = port > 0 && port < 65536 ? (uint16_t)port : 0;
	w->mcp = json_get_bool(doc, "mcp", false);
	json_array_foreach(json_object_get(doc, "sessions"), i, row)
		web_keys_restore(&w->keys, json_str(row, "key"), json_get_int(row, "until", 0));
	json_decref(doc);
}

static int web_save(struct web *w, struct ava_error *err)
{
	char hex[2 * WEB_KEY_BYTES + 1];
	struct buf b;
	struct jw j;
	int rv;

	buf_init(&b, FILE_MAX);
	jw_init(&j, &b);
	jw_object(&j, NULL);
	jw_int(&j, "port", w->port);
	jw_bool(&j, "mcp", w->mcp);
	jw_array(&j, "sessions");
	for (unsigned i = 0; i < w->keys.n; i++) {
		const struct web_key *key = &w->keys.rows[i];

		if (key->kind != WEB_KEY_TAB)
			continue;
		hash_hex(key->key, key->len, hex);
		jw_object(&j, NULL);
		jw_str(&j, "key", hex);
		jw_int(&j, "until", key->until_ms);
		jw_end(&j);
	}
	jw_end(&j);
	jw_end(&j);
	rv = buf_check(&b);
	if (rv == 0 && files_replace(w->root_fd, WEB_FILE, b.data, b.len, false) != 0)
		rv = err_sys(err, "write %s", WEB_FILE);
	buf_fini(&b);
	return rv;
}

/* ---- who is signed in */

static void web_gone(unsigned door, void *user)
{
	const struct web *w = user;

	routes_drop(w->routes, door);
}

/* "127.0.0.1:7410" and what else leads here. */
static bool is_host(const struct web *w, const char *text)
{
	static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};
	char host[32];

	for (size_t i = 0; text && i < ARRAY_LEN(names); i++) {
		snprintf(host, sizeof(host), "%s:%u", names[i], w->port);
		if (strcasecmp(text, host) == 0)
			return true;
	}
	return false;
}

/* POST /api/v1/login */
static int web_login(const struct core_hello *hello, struct buf *answer, void *user,
		     struct ava_error *err)
{
	struct web *w = user;
	char proof[65];
	bool opened;

	if (!is_host(w, hello->host) || !web_keys_open(&w->keys, hello, proof, &opened))
		return err_set(err, AVA_EDENIED,
			       "this address was used already, or is older than a minute, or this "
			       "tab was signed out: run `ava dashboard` again");
	if (opened && web_save(w, err) != 0)
		return err->code;
	return buf_addf(answer, "{\"challenge\":\"%s\",\"proof\":\"%s\"}", w->keys.challenge,
			proof);
}

static const struct web_key *who(struct web *w, const struct http_request *req)
{
	return web_keys_signer(&w->keys,
			       &(struct web_signed){.host = http_header(req, "Host"),
						    .method = req->method,
						    .field = http_header(req, "Authorization"),
						    .target_sha256 = req->target_sha256,
						    .body = req->body,
						    .body_len = req->body_len});
}

/* Does the process that asks belong to somebody else? Root's are no others: they need not ask. */
static bool is_stranger(const struct web *w, const struct http_request *req)
{
	int64_t allowed = w->routes->core->settings.web_uid;

	return allowed != WEB_ANYBODY && req->has_peer && req->peer_uid != 0 &&
	       req->peer_uid != geteuid() && (int64_t)req->peer_uid != allowed;
}

/* ---- what it answers */

static const struct http_field fields[] = {
	{"Content-Security-Policy",
	 "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src "
	 "'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
	 "require-trusted-types-for 'script'; trusted-types 'none'"},
	{"X-Content-Type-Options", "nosniff"},
	{"Referrer-Policy", "no-referrer"},
	{"Cross-Origin-Opener-Policy", "same-origin"},
	{"Cross-Origin-Resource-Policy", "same-origin"},
	{"Cache-Control", "no-store"},
	{"Content-Encoding", "gzip"}, /* sent for assets only, so it stands last */
};

static void web_refuse(struct http_request *req, int status, const char *text)
{
	struct http_answer a = {.status = status,
				.content_type = "application/json",
				.fields = fields,
				.nfields = ARRAY_LEN(fields) - 1};
	struct buf b;

	buf_init(&b, 4096);
	(void)verbs_error(&b, status == 401 || status == 403 ? AVA_EDENIED : AVA_EINVAL, text);
	a.body = b.data;
	a.len = b.len;
	http_reply_with(req, &a);
	buf_fini(&b);
}

static void give_asset(struct http_request *req)
{
	const struct web_asset *asset = web_assets;

	while (asset->path && strcmp(asset->path, req->path) != 0)
		asset++;
	if (!asset->path) {
		web_refuse(req, 404, "there is no such file: the page is at /");
		return;
	}
	http_reply_with(req, &(struct http_answer){.status = 200,
						   .content_type = asset->type,
						   .body = asset->gzip,
						   .len = asset->len,
						   .fixed = true,
						   .fields = fields,
						   .nfields = ARRAY_LEN(fields)});
}

/* Whether the page itself asks. A browser names a request's origin; another client (curl) may leave
 * it out where nothing changes. */
static bool web_is_own(const struct http_request *req, bool changes)
{
	const char *origin = http_header(req, "Origin"), *site = http_header(req, "Sec-Fetch-Site");
	const char *host = http_header(req, "Host");

	if (site && strcmp(site, "same-origin") != 0 && (changes || strcmp(site, "none") != 0))
		return false;
	if (!origin)
		return !changes;
	return strncmp(origin, "http://", 7) == 0 && strcasecmp(origin + 7, host) == 0;
}

static bool is_json(const struct http_request *req)
{
	const char *type = http_header(req, "Content-Type");
	size_t n = type ? strcspn(type, "; ") : 0;

	return n == strlen("application/json") && strncasecmp(type, "application/json", n) == 0;
}

static void give_mcp(struct web *w, struct http_request *req)
{
	static const struct http_field ask[] = {{"WWW-Authenticate", "Bearer"}};

	if (!web_is_own(req, http_header(req, "Origin") != NULL))
		web_refuse(req, 403, "this request comes from a page of another origin");
	else if (!mcp_allows(w->routes->mcp, http_header(req, "Authorization")))
		http_reply_with(req, &(struct http_answer){.status = 401,
							   .content_type = "application/json",
							   .body = "",
							   .fields = ask,
							   .nfields = 1});
	else if (strcmp(req->method, "POST") == 0 && !is_json(req))
		web_refuse(req, 415, "a message is a POST of application/json");
	else
		mcp_serve(w->routes->mcp, req, w->routes->owners[1].login, true);
}

/* A delivery to a trigger: it comes from anywhere, by whatever name a tunnel is known, and brings
 * what allows it itself (ava/triggers.c). No other path is served to such a name. */
static bool web_is_delivery(const struct http_request *req)
{
	static const char path[] = "/api/v1/triggers/";

	return strcmp(req->method, "POST") == 0 && strncmp(req->path, path, strlen(path)) == 0 &&
	       req->path[strlen(path)] != '\0' && !strchr(req->path + strlen(path), '/');
}

static void web_handle(struct http_request *req, void *user)
{
	struct web *w = user;
	bool changes = strcmp(req->method, "GET") != 0 && strcmp(req->method, "HEAD") != 0,
	     login = strcmp(req->path, "/api/v1/login") == 0;
	const struct caller caller = {
		.user = w->routes->owners[1].login, .channel = "web", .trust = CALLER_OWNER};
	const struct caller trigger = {
		.user = w->routes->owners[1].login, .channel = "trigger", .trust = CALLER_OWNER};
	const struct web_key *session = NULL;

	if (web_is_delivery(req)) {
		routes_serve(w->routes, req, &trigger, 0);
	} else if (!is_host(w, http_header(req, "Host"))) {
		web_refuse(req, 421, "this server is known by another name");
	} else if (!changes && strcmp(req->path, "/metrics") == 0 &&
		   metrics_allows(w->routes->metrics, http_header(req, "Authorization"))) {
		metrics_send(w->routes->metrics, req); /* whoever has the token: another user */
	} else if (is_stranger(w, req)) {
		web_refuse(
			req, 403,
			"this daemon is another user's (web.uid of its config.yaml lets one in)");
	} else if (w->routes->mcp && strcmp(req->path, "/mcp") == 0) {
		give_mcp(w, req);
	} else if (strncmp(req->path, "/api/", 5) != 0 && strcmp(req->path, "/metrics") != 0) {
		if (changes)
			web_refuse(req, 405, "this path takes GET only");
		else
			give_asset(req);
	} else if (!web_is_own(req, changes)) {
		web_refuse(req, 403, "this request does not come from the page of ava");
	} else if (changes && (strcmp(req->method, "POST") != 0 || !is_json(req))) {
		web_refuse(req, 403, "what changes something is a POST of application/json");
	} else if (!login && !(session = who(w, req))) {
		web_refuse(req, 401, "sign in first: run `ava dashboard`");
	} else {
		routes_serve(w->routes, req, &caller, session ? session->door : 0);
	}
}

/* ---- listening */

/* Bound to the address, and listening where `listens`; -1 with errno. */
static int bind_at(const struct sockaddr *a, socklen_t len, bool listens)
{
	int fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1, why;

	if (fd < 0)
		return -1;
	/* The connections of a daemon that has just ended keep no port. */
	if (listens)
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, a, len) == 0 && (!listens || listen(fd, 128) == 0))
		return fd;
	why = errno;
	close(fd);
	errno = why;
	return -1;
}

/* Hold both addresses of the loopback, or neither: "localhost" may be either. `fd`, which is
 * *taken*, has the IPv4 one. */
static int listen_on_both(struct web *w, int fd, uint16_t port)
{
	const struct sockaddr_in6 b = {.sin6_family = AF_INET6,
				       .sin6_port = htons(port),
				       .sin6_addr = IN6ADDR_LOOPBACK_INIT};

	if (fd < 0)
		return -1;
	w->other_fd = bind_at((const struct sockaddr *)&b, sizeof(b), false);
	if (w->other_fd >= 0 || errno != EADDRINUSE)
		return fd;
	close(fd);
	errno = EADDRINUSE;
	return -1;
}

static int listen_at(struct web *w, uint16_t port)
{
	const struct sockaddr_in a = {.sin_family = AF_INET,
				      .sin_port = htons(port),
				      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

	return listen_on_both(w, bind_at((const struct sockaddr *)&a, sizeof(a), true), port);
}

static int listen_anywhere(struct web *w, uint16_t *port)
{
	int fd = -1;

	for (int i = 0; i < PORT_TRIES && fd < 0; i++) {
		unsigned char raw[4];

		id_random(raw, sizeof(raw));
		*port = (uint16_t)(PORT_FIRST + get32(raw) % PORT_SPAN);
		fd = listen_at(w, *port);
	}
	return fd;
}

/* The socket that systemd holds and listens at for us; -1: there is none, and *port stays. */
static int listen_held(struct web *w, uint16_t *port)
{
	struct sockaddr_in a = {0};
	socklen_t len = sizeof(a);
	int fd = service_socket(AF_INET);

	if (fd < 0 || getsockname(fd, (struct sockaddr *)&a, &len) != 0 ||
	    a.sin_addr.s_addr != htonl(INADDR_LOOPBACK))
		return -1;
	fd = listen_on_both(w, fcntl(fd, F_DUPFD_CLOEXEC, fd + 1), ntohs(a.sin_port));
	if (fd >= 0)
		*port = ntohs(a.sin_port);
	return fd;
}

/* End all keys: another program has the port that tabs and MCP clients know. */
static void web_lose(struct web *w, struct ava_error *err)
{
	struct ava_error why = {0};
	struct buf token;
	int port = w->port;

	buf_init(&token, 256);
	if (w->mcp && mcp_token(w->routes->mcp, true, &token, &why) != 0)
		web_say(w, "the token of MCP clients stays: %s", why.text);
	buf_fini(&token);
	web_keys_clear(&w->keys);
	w->mcp = false;
	w->port = 0;
	if (web_save(w, &why) != 0)
		web_say(w, "%s", why.text);
	err_set(err, AVA_EIO,
		"port %d could not be had again, so that every browser is signed out and the token "
		"of MCP over HTTP is no longer good: `ava dashboard` signs in again",
		port);
	web_say(w, "%s", err->text);
}

/* The port that is held for us; the one that is set; the one that was had before, where somebody
 * knows it; else any. */
static int listen_there(struct web *w, struct ava_error *err)
{
	const struct http_server_options o = {
		.connections_max = CONNECTIONS_MAX, .idle_ms = IDLE_MS, .body_max = BODY_MAX};
	int64_t set = w->routes->core->settings.web_port;
	uint16_t port = (uint16_t)(set ? set : w->port);
	bool known =
		w->port && (w->mcp || web_keys_tabs(&w->keys) > 0 || triggers_any(w->routes->core));
	int fd = listen_held(w, &port), why;

	w->again = fd < 0 && !set && known;
	if (fd < 0)
		fd = set || known ? listen_at(w, port) : listen_anywhere(w, &port);
	why = errno;
	/* A port set by the person may differ from the one that tabs and clients know. */
	if (known && (port != w->port || (fd < 0 && why == EADDRINUSE)))
		web_lose(w, err);
	errno = why;
	if (fd < 0)
		return err->code ? err->code
				 : err_sys(err, "%s %u, and that port cannot be had",
					   set ? "web.port is" : "the page was at", port);
	w->port = port;
	w->http = http_server_new(w->routes->core->loop, fd, &o, web_handle, w, err);
	if (!w->http)
		return err->code;
	web_say(w, "the page is at http://127.0.0.1:%u", w->port);
	return 0;
}

static int web_listen(struct web *w, struct ava_error *err)
{
	struct core_service *s = core_service(w->routes->core);
	int rv;

	if (w->quiesced)
		return err_set(err, AVA_EIO, "the daemon is about to end: ask once more");
	rv = w->http ? 0 : listen_there(w, err);
	if (rv == 0)
		snprintf(s->web_url, sizeof(s->web_url), "http://127.0.0.1:%u", w->port);
	snprintf(s->web_problem, sizeof(s->web_problem), "%s", rv == 0 ? "" : err->text);
	return rv;
}

static void web_leave_cb(struct os_task *t)
{
	struct web *w = CONTAINER_OF(t, struct web, leave);

	http_server_stop(w->left);
	w->left = NULL;
}

/* Away from a port that others may have had, to one that no browser knows. */
static void web_move(struct web *w)
{
	if (!w->http || !w->again || w->mcp || w->left || triggers_any(w->routes->core))
		return;
	web_say(w, "port %u was that of an earlier start: who signs in now is given another one",
		w->port);
	web_keys_clear(&w->keys);
	http_server_quiesce(w->http);
	w->left = w->http;
	w->http = NULL;
	if (w->other_fd >= 0)
		close(w->other_fd);
	w->other_fd = -1;
	w->port = 0;
	os_defer(w->routes->core->loop, &w->leave);
}

/* POST /api/v1/dashboard */
static int web_dashboard(bool sign_out, struct buf *json, void *user, struct ava_error *err)
{
	struct web *w = user;
	char code[WEB_ID_LEN + 1];
	int rv;

	if (sign_out) {
		web_keys_clear(&w->keys);
		rv = web_save(w, err);
		return rv == 0 ? buf_adds(json, "{\"url\":\"\",\"lacks\":\"\"}") : rv;
	}
	web_move(w);
	rv = web_listen(w, err);
	if (rv != 0)
		return rv;
	web_keys_code(&w->keys, code);
	return buf_addf(json, "{\"url\":\"http://127.0.0.1:%u/#code=%s\",\"lacks\":\"%s\"}",
			w->port, code, web_lacks());
}

/* POST /api/v1/mcp-token */
static int web_mcp(bool renew, struct buf *json, void *user, struct ava_error *err)
{
	struct web *w = user;
	int rv = web_listen(w, err);

	buf_adds(json, "{\"token\":\"");
	if (rv == 0)
		rv = mcp_token(w->routes->mcp, renew, json, err);
	if (rv == 0 && !w->mcp) {
		w->mcp = true;
		rv = web_save(w, err);
		w->mcp = rv == 0;
	}
	return rv != 0 ? rv : buf_addf(json, "\",\"url\":\"http://127.0.0.1:%u/mcp\"}", w->port);
}

/* A trigger was made: its address is known elsewhere, so it is kept. */
static int web_triggers(void *user, struct ava_error *err)
{
	struct web *w = user;
	int rv = web_listen(w, err);

	return rv == 0 ? web_save(w, err) : rv;
}

const char *web_lacks(void)
{
	return web_assets_made ? ""
			       : "ava was built without its page: run ./dev build where node and "
				 "npm can be had (Debian: nodejs npm), then `ava restart`";
}

int web_new(struct web **out, struct routes *routes, int root_fd,
	    void (*log)(const char *line, void *user), void *user, struct ava_error *err)
{
	struct core_service *service = core_service(routes->core);
	struct ava_error why = {0};
	struct web *w = calloc(1, sizeof(*w));

	if (!w)
		return err_set(err, AVA_ENOMEM, "out of memory");
	w->routes = routes;
	w->root_fd = root_fd;
	w->log = log;
	w->log_user = user;
	w->other_fd = -1;
	os_task_init(&w->leave, web_leave_cb);
	web_keys_init(&w->keys, web_gone, w);
	web_load(w);
	service->dashboard = web_dashboard;
	service->login = web_login;
	service->mcp = web_mcp;
	service->triggers = web_triggers;
	service->web = w;
	/* Without the page everything else works. Prometheus knows a port that is set. */
	if ((web_keys_tabs(&w->keys) > 0 || w->mcp || triggers_any(routes->core) ||
	     service_socket(AF_INET) >= 0 ||
	     (routes->core->settings.web_port && metrics_has_token(routes->metrics))) &&
	    web_listen(w, &why) != 0)
		web_say(w, "the page is not served: %s", why.text);
	*out = w;
	return 0;
}

void web_quiesce(struct web *w)
{
	if (!w)
		return;
	w->quiesced = true;
	/* While its stream is open a page believes that the port is ours. */
	for (unsigned i = 0; i < w->keys.n; i++)
		routes_drop(w->routes, w->keys.rows[i].door);
	if (w->http)
		http_server_quiesce(w->http);
}

unsigned web_busy(const struct web *w)
{
	return w && w->http ? http_server_busy(w->http) : 0;
}

unsigned web_connections(const struct web *w)
{
	return w && w->http ? http_server_connections(w->http) : 0;
}

void web_free(struct web *w)
{
	struct core_service *service;

	if (!w)
		return;
	service = core_service(w->routes->core);
	service->dashboard = NULL;
	service->login = NULL;
	service->mcp = NULL;
	service->triggers = NULL;
	os_defer_cancel(w->routes->core->loop, &w->leave);
	http_server_stop(w->left);
	http_server_stop(w->http);
	if (w->other_fd >= 0)
		close(w->other_fd);
	free(w);
}
