/* See web.h.
 *
 * Happy path of a request: its Host is one of ours, so that no other name leads here (DNS
 * rebinding); the page and its parts are given to anybody, since they hold no data; everything
 * else needs the token of a session in Authorization, which no other origin can send unasked; what
 * changes something must also come from our own page, as JSON. Then it is a verb as any other,
 * asked by the owner through the channel "web". A program that speaks MCP sends its own token, and
 * no Origin but ours.
 *
 * A sign-in has 64 tries an hour: a code has 128 bits. Tokens are compared by their hashes, in
 * constant time. What can fail: the port is taken (another one is, unless it was set), web.json
 * is damaged (nobody is signed in, a new one is written), memory. */
#include "gateway/web.h"

#include <arpa/inet.h>
#include <ava.h>
#include <netinet/in.h>
#include <nettle/memops.h>
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
#include "base/sys.h"
#include "base/util.h"
#include "codec/json.h"
#include "gateway/mcp.h"
#include "gateway/routes.h"
#include "journal/files.h"
#include "net/http_server.h"

#define WEB_FILE        "web.json"
#define FILE_MAX        (64u << 10)
#define PORT_FIRST      7410 /* tried where none is set and none was had before */
#define SESSIONS_MAX    16   /* signed in at once; the oldest goes */
#define SESSION_MS      (30ll * 86400 * 1000)
#define CODE_MS         60000
#define SECRET_BYTES    32 /* of a token; half of it for a code */
#define TRIES_MAX       64
#define TRIES_MS        3600000
#define CONNECTIONS_MAX 128
#define IDLE_MS         10000
#define BODY_MAX        (2u << 20)

struct signed_in {
	unsigned char hash[32];
	int64_t until_ms; /* wall clock */
	unsigned door;    /* of its streams */
};

struct web {
	struct routes *routes;
	struct http_server *http; /* NULL: it does not listen yet */
	int root_fd;
	void (*log)(const char *line, void *user);
	void *log_user;
	uint16_t port; /* 0: none was had yet */
	struct signed_in sessions[SESSIONS_MAX];
	unsigned nsessions, doors;
	bool mcp; /* its clients were told where we are: we listen without a session, too */
	unsigned char code[32]; /* its hash */
	int64_t code_until_ms;  /* monotonic; 0: none is open */
	unsigned tries;
	int64_t tries_since_ms;
};

static void say(struct web *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void say(struct web *w, const char *fmt, ...)
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
	int64_t now = clock_wall_ms(), port;

	if (sys_read_file(w->root_fd, WEB_FILE, FILE_MAX, &text, &len, NULL) == 0)
		doc = json_parse(text, len, NULL);
	free(text);
	port = json_get_int(doc, "port", 0);
	w->port = port > 0 && port < 65536 ? (uint16_t)port : 0;
	w->mcp = json_get_bool(doc, "mcp", false);
	json_array_foreach(json_object_get(doc, "sessions"), i, row)
	{
		struct signed_in *s = &w->sessions[w->nsessions];
		int64_t until = json_get_int(row, "until", 0);

		/* A clock that was set back makes no session longer than it is. */
		if (w->nsessions == SESSIONS_MAX || until <= now ||
		    !hash_from_hex(json_str(row, "hash"), s->hash))
			continue;
		s->until_ms = MIN(until, now + SESSION_MS);
		s->door = ++w->doors;
		w->nsessions++;
	}
	json_decref(doc);
}

static int web_save(struct web *w, struct ava_error *err)
{
	char hex[HASH_HEX_LEN + 1];
	struct buf b;
	struct jw j;
	int rv;

	buf_init(&b, FILE_MAX);
	jw_init(&j, &b);
	jw_object(&j, NULL);
	jw_int(&j, "port", w->port);
	jw_bool(&j, "mcp", w->mcp);
	jw_array(&j, "sessions");
	for (unsigned i = 0; i < w->nsessions; i++) {
		hash_hex(w->sessions[i].hash, 32, hex);
		jw_object(&j, NULL);
		jw_str(&j, "hash", hex);
		jw_int(&j, "until", w->sessions[i].until_ms);
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

static void make_secret(size_t bytes, char hex[2 * SECRET_BYTES + 1], unsigned char hash[32])
{
	unsigned char raw[SECRET_BYTES];

	id_random(raw, bytes);
	hash_hex(raw, bytes, hex);
	hash_sha256(hex, 2 * bytes, hash);
}

static void drop_session(struct web *w, unsigned i)
{
	unsigned door = w->sessions[i].door;

	w->nsessions--;
	memmove(&w->sessions[i], &w->sessions[i + 1], (w->nsessions - i) * sizeof(w->sessions[0]));
	routes_drop(w->routes, door);
}

/* NULL: nobody's token. */
static const struct signed_in *who(struct web *w, const struct http_request *req)
{
	const char *field = http_header(req, "Authorization");
	const struct signed_in *found = NULL;
	unsigned char hash[32];

	if (!field || strncmp(field, "Bearer ", 7) != 0)
		return NULL;
	hash_sha256(field + 7, strlen(field + 7), hash);
	for (unsigned i = w->nsessions; i-- > 0;)
		if (w->sessions[i].until_ms <= clock_wall_ms())
			drop_session(w, i);
	for (unsigned i = 0; i < w->nsessions; i++)
		if (memeql_sec(hash, w->sessions[i].hash, sizeof(hash)))
			found = &w->sessions[i];
	return found;
}

/* POST /api/v1/login */
static int web_login(const char *code, struct buf *token, void *user, struct ava_error *err)
{
	struct web *w = user;
	int64_t now = clock_mono_ms();
	char hex[2 * SECRET_BYTES + 1];
	unsigned char hash[32];

	if (now - w->tries_since_ms > TRIES_MS) {
		w->tries_since_ms = now;
		w->tries = 0;
	}
	if (++w->tries > TRIES_MAX)
		return err_set(err, AVA_EDENIED, "too many sign-ins within an hour: wait");
	hash_sha256(code, strlen(code), hash);
	if (now >= w->code_until_ms || !memeql_sec(hash, w->code, sizeof(hash)))
		return err_set(err, AVA_EDENIED,
			       "this address was used already, or is older than a minute: run "
			       "`ava dashboard` again");
	w->code_until_ms = 0;
	if (w->nsessions == SESSIONS_MAX)
		drop_session(w, 0);
	make_secret(SECRET_BYTES, hex, w->sessions[w->nsessions].hash);
	w->sessions[w->nsessions].until_ms = clock_wall_ms() + SESSION_MS;
	w->sessions[w->nsessions].door = ++w->doors;
	w->nsessions++;
	if (web_save(w, err) != 0) {
		w->nsessions--;
		return err->code;
	}
	return buf_adds(token, hex);
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
	{"Content-Encoding", "gzip"}, /* of assets only */
};

static void refuse(struct http_request *req, int status, const char *text)
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

static bool is_get(const struct http_request *req)
{
	return strcmp(req->method, "GET") == 0 || strcmp(req->method, "HEAD") == 0;
}

/* The page is one, whatever part of it is shown: all that is no file and no API is its start. */
static void give_asset(struct http_request *req)
{
	const struct web_asset *asset = web_assets;

	while (asset->path && strcmp(asset->path, req->path) != 0)
		asset++;
	if (!asset->path) {
		refuse(req, 404, "there is no such file: the page is at /");
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

/* Of what the page itself asks. A browser says where a request comes from; who is none (curl)
 * may leave it out where nothing changes. */
static bool is_own(const struct http_request *req, bool changes)
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

	if (!is_own(req, http_header(req, "Origin") != NULL))
		refuse(req, 403, "this request comes from a page of another origin");
	else if (!mcp_allows(w->routes->mcp, http_header(req, "Authorization")))
		http_reply_with(req, &(struct http_answer){.status = 401,
							   .content_type = "application/json",
							   .body = "",
							   .fields = ask,
							   .nfields = 1});
	else if (strcmp(req->method, "POST") == 0 && !is_json(req))
		refuse(req, 415, "a message is a POST of application/json");
	else
		mcp_serve(w->routes->mcp, req, w->routes->owners[1].login, true);
}

static void web_handle(struct http_request *req, void *user)
{
	struct web *w = user;
	bool changes = !is_get(req), login = strcmp(req->path, "/api/v1/login") == 0;
	const struct caller caller = {
		.user = w->routes->owners[1].login, .channel = "web", .trust = CALLER_OWNER};
	const struct signed_in *session = NULL;

	if (!is_host(w, http_header(req, "Host"))) {
		refuse(req, 421, "this server is known by another name");
	} else if (w->routes->mcp && strcmp(req->path, "/mcp") == 0) {
		give_mcp(w, req);
	} else if (strncmp(req->path, "/api/", 5) != 0 && strcmp(req->path, "/metrics") != 0) {
		if (changes)
			refuse(req, 405, "this path takes GET only");
		else
			give_asset(req);
	} else if (!is_own(req, changes)) {
		refuse(req, 403, "this request does not come from the page of ava");
	} else if (changes && (strcmp(req->method, "POST") != 0 || !is_json(req))) {
		refuse(req, 403, "what changes something is a POST of application/json");
	} else if (!login && !(session = who(w, req))) {
		refuse(req, 401, "sign in first: run `ava dashboard`");
	} else {
		routes_serve(w->routes, req, &caller, session ? session->door : 0);
	}
}

/* ---- listening */

static int listen_at(uint16_t port)
{
	struct sockaddr_in a = {.sin_family = AF_INET,
				.sin_port = htons(port),
				.sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;

	if (fd < 0)
		return -1;
	/* The connections of a daemon that has just ended keep no port. */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0 && listen(fd, 128) == 0)
		return fd;
	close(fd);
	return -1;
}

static int port_of(int fd)
{
	struct sockaddr_in a;
	socklen_t len = sizeof(a);

	return getsockname(fd, (struct sockaddr *)&a, &len) == 0 ? ntohs(a.sin_port) : 0;
}

/* The port that is set; else the one that was had before, so that a page which is open finds us
 * again; else any. */
static int listen_there(struct web *w, struct ava_error *err)
{
	const struct http_server_options o = {
		.connections_max = CONNECTIONS_MAX, .idle_ms = IDLE_MS, .body_max = BODY_MAX};
	int64_t set = w->routes->core->settings.web_port;
	int fd;

	fd = listen_at((uint16_t)(set ? set : w->port ? w->port : PORT_FIRST));
	if (fd < 0 && set)
		return err_sys(err, "web.port is %d, and that port cannot be had", (int)set);
	if (fd < 0)
		fd = listen_at(0);
	if (fd < 0)
		return err_sys(err, "no port of the loopback address can be had");
	w->port = (uint16_t)port_of(fd);
	w->http = http_server_new(w->routes->core->loop, fd, &o, web_handle, w, err);
	if (!w->http)
		return err->code;
	say(w, "the page is at http://127.0.0.1:%u", w->port);
	return 0;
}

static int web_listen(struct web *w, struct ava_error *err)
{
	struct core_service *s = core_service(w->routes->core);
	int rv = w->http ? 0 : listen_there(w, err);

	if (rv == 0)
		snprintf(s->web_url, sizeof(s->web_url), "http://127.0.0.1:%u", w->port);
	snprintf(s->web_problem, sizeof(s->web_problem), "%s", rv == 0 ? "" : err->text);
	return rv;
}

/* POST /api/v1/dashboard */
static int web_dashboard(bool sign_out, struct buf *url, void *user, struct ava_error *err)
{
	struct web *w = user;
	char hex[2 * SECRET_BYTES + 1];
	int rv;

	if (sign_out) {
		while (w->nsessions > 0)
			drop_session(w, w->nsessions - 1);
		w->code_until_ms = 0;
		return web_save(w, err);
	}
	rv = web_listen(w, err);
	if (rv != 0)
		return rv;
	make_secret(SECRET_BYTES / 2, hex, w->code);
	w->code_until_ms = clock_mono_ms() + CODE_MS;
	return buf_addf(url, "http://127.0.0.1:%u/#code=%s", w->port, hex);
}

/* POST /api/v1/mcp-token */
static int web_mcp(bool renew, struct buf *url, struct buf *token, void *user,
		   struct ava_error *err)
{
	struct web *w = user;
	int rv = web_listen(w, err);

	if (rv == 0)
		rv = mcp_token(w->routes->mcp, renew, token, err);
	if (rv == 0 && !w->mcp) {
		w->mcp = true;
		rv = web_save(w, err);
		w->mcp = rv == 0;
	}
	return rv != 0 ? rv : buf_addf(url, "http://127.0.0.1:%u/mcp", w->port);
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
	web_load(w);
	service->dashboard = web_dashboard;
	service->login = web_login;
	service->mcp = web_mcp;
	service->web = w;
	/* Without the page everything else works. */
	if ((w->nsessions > 0 || w->mcp) && web_listen(w, &why) != 0)
		say(w, "the page is not served: %s", why.text);
	*out = w;
	return 0;
}

void web_quiesce(struct web *w)
{
	if (w && w->http)
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
	http_server_stop(w->http);
	free(w);
}
