/* Looking at configuration, keys and services; see doctor.h.
 *
 * Happy path: read the configuration, ask every service that has its key and
 * every place where a local server may listen for its models, all at once,
 * wait until the last has answered or run out of time (TOTAL_MS), then write
 * the findings. Failures are findings, too; only memory and the loop end it without an answer. */
#include "gateway/doctor.h"

#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ava/house.h"
#include "ava/otel.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/keys.h"
#include "base/near.h"
#include "codec/json.h"
#include "codec/redact.h"
#include "exec/sandbox.h"
#include "gateway/doors.h"
#include "gateway/trial.h"
#include "net/http_client.h"
#include "os/loop.h"
#include "provider/dialect.h"
#include "provider/learned.h"
#include "provider/profile.h"
#include "provider/told.h"
#include "subagent/skillbook.h"
#include "tool/mcp.h"

#define CONNECT_MS       5000
#define TOTAL_MS         15000
#define LOCAL_CONNECT_MS 1000
#define LOCAL_TOTAL_MS   3000
#define CLOCK_MAX_MS     60000 /* a clock that is off by more is wrong */
#define PROBES           12
#define TRIALS           4 /* models that are tried, at the most */
#define NAMES_SHOWN      8 /* models named of a server that lacks the one asked for */
#define BODY_MAX         (8u << 20)
#define NOTED            2 /* `ok` of a check: what is missing is optional */

/* A GET of a list of models, {"data":[{"id":…},…]}, from a service that has its key or from the
 * address of a possible local server; or an empty POST, which shows whether the address for calls
 * exists. */
struct probe {
	const struct provider *p; /* NULL: the probe has only an address */
	const char *kind;         /* the kind of local server; NULL: none */
	char base_url[PROVIDER_URL_MAX];
	bool post, search; /* search: look for SearXNG, without a query, which it would pass on */
	struct http_pool *pool;
	struct http_call call;
	struct buf body;
	char date[64];                /* date in the response; "": none */
	int64_t date_wall_ms;         /* our wall clock when `date` came */
	int64_t started_ms, ended_ms; /* monotonic */
	int rv;                       /* result of the call; AVA_EBUSY while it runs */
	struct ava_error err;
	json_t *models; /* ["id", …]; NULL: the answer was no list of models */
};

struct doctor_state {
	const char *page_lacks;
	struct config config;
	struct probe probes[PROBES];
	size_t nprobes;
	struct otel_sender *sender; /* the call to the collector of traces */
	bool otel_over;
	struct otel_answer otel;
	struct ava_error otel_err;  /* why the collector could not be asked */
	struct buf variables;       /* names to report, with a blank between two */
	struct exec_child *command; /* the command that tries the sandbox */
	struct ava_error sandbox;   /* why no sandbox works; code 0: the text names its layers */
	struct mcp_client *mcp;     /* client that starts all servers, as a quote does */
	struct redact *secrets;     /* the secrets in mcp.json */
	struct ava_error mcp_err;
	bool paid; /* try services that cost money, too */
	char tried[TRIALS][sizeof(((struct model *)0)->id)];
	size_t ntried;
	struct os_loop *loop;
	struct http_client *client;
	struct jw *w;
};

static void doctor_check(struct doctor_state *d, const char *name, int ok, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static void doctor_check(struct doctor_state *d, const char *name, int ok, const char *fmt, ...)
{
	char detail[700];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(detail, sizeof(detail), fmt, ap);
	va_end(ap);
	jw_object(d->w, NULL);
	jw_str(d->w, "name", name);
	jw_bool(d->w, "ok", ok != 0);
	if (ok == NOTED)
		jw_bool(d->w, "note", true);
	jw_str(d->w, "detail", detail);
	jw_end(d->w);
}

/* ---- asking for models */

static void probe_on_head(struct http_call *c, int status)
{
	struct probe *p = c->user;
	const char *date = http_call_header(c, "date");

	snprintf(p->date, sizeof(p->date), "%s", date ? date : "");
	p->date_wall_ms = clock_wall_ms();
}

/* Whether SearXNG answered, in JSON: results, or that no query was given. */
static int search_found(const struct http_call *c, const struct probe *p)
{
	json_t *o = json_parse(p->body.data ? p->body.data : "", p->body.len, NULL);
	bool is = (c->status == 200 && json_is_array(json_object_get(o, "results"))) ||
		  (c->status == 400 && strcmp(json_str(o, "error"), "No query") == 0);

	json_decref(o);
	return is ? 0 : AVA_ENOENT;
}

/* Read the probe's list of models: p->rv is 0, or a code with a sentence in p->err. */
static void probe_on_done(struct http_call *c, int rv, const struct ava_error *err)
{
	struct probe *p = c->user;
	json_t *all = NULL, *row;
	size_t i;

	p->ended_ms = clock_mono_ms();
	if (p->search) {
		p->rv = rv == 0 ? search_found(c, p) : rv;
		return;
	}
	if (p->post) {
		p->rv = c->status == 404 || c->status == 405 ? AVA_ENOENT : rv;
		return;
	}
	if (rv != 0)
		p->err = *err;
	else if (c->status == 401 || c->status == 403)
		rv = err_set(&p->err, AVA_EDENIED, "it refuses the key (%d)", c->status);
	else if (c->status == 404)
		rv = err_set(&p->err, AVA_ENOENT,
			     "it has no list of models there (404): is the address right?");
	else if (c->status != 200)
		rv = err_set(&p->err, AVA_EPROTO, "it answers with the status %d", c->status);
	else if (buf_check(&p->body) != 0)
		rv = err_set(&p->err, AVA_ETOOBIG, "its answer is larger than %u MB",
			     BODY_MAX >> 20);
	if (rv == 0) {
		all = json_read_others(p->body.data, p->body.len, NULL);
		if (json_is_array(json_object_get(all, "data")))
			p->models = json_array();
		else
			rv = err_set(&p->err, AVA_EPROTO,
				     "its answer is no list of models: is the address right?");
	}
	json_array_foreach(json_object_get(all, "data"), i, row)
	{
		if (json_get_str(row, "id"))
			json_array_append(p->models, json_object_get(row, "id"));
	}
	json_decref(all);
	p->rv = rv;
}

static const char searxng[] = "SearXNG"; /* value of probe.kind */

/* Cannot fail: errors are in the probe's rv and err. The key stands in a header only, in memory
 * that is wiped. */
static void probe_start(struct doctor_state *d, struct http_client *c,
			const struct provider *service, const char *kind, const char *base_url,
			bool post)
{
	struct probe *p = &d->probes[d->nprobes++];
	const char *key = service ? provider_key(service) : NULL;
	bool anthropic = service && strcmp(service->name, "anthropic") == 0;
	bool search = kind == searxng;
	struct http_pool_options pool = {
		.base_url = base_url, .connections_max = 1, .http2 = service && service->http2};
	const char *headers[] = {"anthropic-version: 2023-06-01", NULL};
	int64_t total_ms = service ? TOTAL_MS : LOCAL_TOTAL_MS;
	char auth[KEYS_VALUE_MAX + 32];

	*p = (struct probe){.p = service,
			    .kind = search ? NULL : kind,
			    .search = search,
			    .post = post,
			    .rv = AVA_EBUSY,
			    .started_ms = clock_mono_ms()};
	snprintf(p->base_url, sizeof(p->base_url), "%s", base_url);
	buf_init(&p->body, BODY_MAX);
	snprintf(auth, sizeof(auth), "%s%s", anthropic ? "x-api-key: " : "Authorization: Bearer ",
		 key ? key : "");
	headers[1] = auth;
	p->call = (struct http_call){
		.path = post        ? service->dialect->path
			: search    ? "/search?format=json&q="
			: anthropic ? "/v1/models?limit=1000"
				    : "/models",
		.method = post ? "POST" : "GET",
		.headers = anthropic ? headers : headers + 1,
		.nheaders = (anthropic ? 1 : 0) + (key ? 1 : 0),
		.timers = {.connect_ms = service ? CONNECT_MS : LOCAL_CONNECT_MS,
			   .first_ms = total_ms,
			   .total_ms = total_ms},
		.head = probe_on_head,
		.answer = &p->body,
		.done = probe_on_done,
		.user = p,
	};
	p->pool = http_pool_new(c, &pool, &p->err);
	if (!p->pool || http_call_start(p->pool, &p->call, &p->err) != 0)
		p->rv = p->err.code;
	explicit_bzero(auth, sizeof(auth));
	p->call.headers = NULL; /* the call copied the headers */
	p->call.nheaders = 0;
}

/* `id` is in the list, also as the name of its dated snapshots. */
static bool probe_has(const struct probe *p, const char *id)
{
	size_t i, len = strlen(id);
	json_t *row;

	json_array_foreach(p->models, i, row)
	{
		const char *s = json_string_value(row);

		if (strncmp(s, id, len) != 0)
			continue;
		if (s[len] == '\0' || strcmp(s + len, ":latest") == 0 ||
		    (s[len] == '-' && strspn(s + len + 1, "0123456789-") == strlen(s + len + 1)))
			return true;
	}
	return false;
}

static bool doctor_has_place(const struct doctor_state *d, const char *base_url)
{
	for (size_t i = 0; i < d->nprobes; i++)
		if (strcmp(d->probes[i].base_url, base_url) == 0)
			return true;
	return false;
}

/* OLLAMA_HOST is what Ollama itself goes by: host, host:port, :port or an
 * address; where it listens on all interfaces it is reached at loopback. */
static void ollama_url(const char *host, char *url, size_t size)
{
	bool tls = strncmp(host, "https://", 8) == 0, plain = strncmp(host, "http://", 7) == 0;
	const char *at = host + (tls ? 8 : plain ? 7 : 0);
	size_t len = strcspn(at, "/"), path = strlen(at + len);
	size_t name = MIN(*at == '[' ? strcspn(at, "]") + 1 : strcspn(at, ":"), len);
	bool all = name == 0 || strncmp(at, "0.0.0.0", MAX(name, 7)) == 0 ||
		   strncmp(at, "[::]", MAX(name, 4)) == 0;

	if (path > 0 && at[len + path - 1] == '/')
		path--;
	snprintf(url, size, "http%s://%.*s%.*s%s%.*s/v1", tls ? "s" : "", all ? 9 : (int)name,
		 all ? "127.0.0.1" : at, (int)(len - name), at + name,
		 len == name && !tls && !plain ? ":11434" : "", (int)path, at + len);
}

static void start_probes(struct doctor_state *d, struct http_client *c)
{
	static const char *const kinds[] = {"Ollama", "llama-server"};
	static const char *const searches[] = {"http://127.0.0.1:8080", "http://127.0.0.1:8888"};
	const size_t most = PROBES - ARRAY_LEN(kinds) - ARRAY_LEN(searches);
	const struct provider *p, *local = provider_find("local", 5);
	const char *host = getenv("OLLAMA_HOST");
	char urls[ARRAY_LEN(kinds)][2 * PROVIDER_URL_MAX] = {"", "http://127.0.0.1:8080/v1"};
	char checked[PROVIDER_URL_MAX];

	for (size_t i = 0; d->nprobes < most && (p = provider_at(i)); i++)
		if (provider_usable(p))
			probe_start(d, c, p, p == local ? "local" : NULL, p->base_url, false);
	for (size_t i = 0; d->nprobes < most && (p = provider_at(i)); i++)
		if (provider_usable(p) && !provider_versioned(p))
			probe_start(d, c, p, NULL, p->base_url, true);
	ollama_url(host && *host ? host : "127.0.0.1", urls[0], sizeof(urls[0]));
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (provider_url_check("a local server", urls[i], checked, NULL) == 0 &&
		    strcmp(checked, local->base_url) != 0 && !doctor_has_place(d, checked))
			probe_start(d, c, NULL, kinds[i], checked, false);
	for (size_t i = 0; i < ARRAY_LEN(searches) && !house_search(&d->config); i++)
		probe_start(d, c, NULL, searxng, searches[i], false);
}

/* ---- the collector of traces */

static int count_header(const char *header, void *user)
{
	++*(unsigned *)user;
	return 0;
}

static void otel_answered(const struct otel_answer *a, void *user)
{
	struct doctor_state *d = user;

	d->otel = *a;
	d->otel_over = true;
}

/* Push a request without spans, which every collector takes, over the ordinary way. */
static void start_otel(struct doctor_state *d, struct os_loop *loop)
{
	struct buf body;

	d->otel_over = true;
	if (!d->config.otel[0])
		return;
	d->sender = otel_sender_new(loop, d->config.otel, keys_get(OTEL_HEADERS_NAME), CONNECT_MS,
				    &d->otel_err);
	buf_init(&body, 64);
	buf_adds(&body, "{\"resourceSpans\":[]}");
	if (d->sender &&
	    otel_send(d->sender, OTLP_TRACES, &body, otel_answered, d, &d->otel_err) == 0)
		d->otel_over = false;
	buf_fini(&body);
}

/* ---- the sandbox: a command that does nothing, as a run's would be started */

static void sandbox_tried(const struct exec_end *end, void *user)
{
	struct doctor_state *d = user;
	const char *layers = sandbox_layers(end->told);

	d->command = NULL;
	if (layers)
		snprintf(d->sandbox.text, sizeof(d->sandbox.text), "%.*s",
			 (int)strcspn(layers, "\n"), layers);
	else
		err_set(&d->sandbox, AVA_EUNSUPPORTED, "%.*s: %s",
			(int)MIN(strcspn(end->output, "\n"), 80u),
			end->output_len ? end->output : "bwrap ended without a word",
			sandbox_remedy("/proc/sys"));
}

static void start_sandbox(struct doctor_state *d, struct os_loop *loop)
{
	static const char *const nothing[] = {"/bin/true", NULL};
	struct sandbox s = {.work = "/tmp", .project = "", .start = "/", .argv = nothing};
	struct exec_options o = {
		.input = "", .timeout_ms = TOTAL_MS, .output_max = 65536, .keep = 300};

	if (sandbox_start(&d->command, loop, &s, &o, sandbox_tried, d, &d->sandbox) != 0)
		d->command = NULL;
}

static void check_sandbox(struct doctor_state *d)
{
	json_t *layers = json_parse(d->sandbox.text, strlen(d->sandbox.text), NULL);
	int64_t abi = json_integer_value(json_object_get(layers, "landlock"));

	if (d->config.settings.sandbox_required == 0)
		doctor_check(
			d, "sandbox", false,
			"NOT REQUIRED: sandbox.required is 0, so where it cannot be made, commands "
			"of runs start with your own rights%s: set it to 1",
			d->sandbox.code != 0 ? ", AND HERE IT CANNOT BE MADE" : "");
	if (d->sandbox.code != 0)
		doctor_check(
			d, "sandbox", false,
			"it cannot be made, no command is kept in it (run_bash, python_exec): %s",
			d->sandbox.text);
	else if (abi == 0)
		doctor_check(
			d, "sandbox", true,
			"commands run in bubblewrap with seccomp; this kernel has no Landlock");
	else
		doctor_check(d, "sandbox", true,
			     "commands run in bubblewrap with Landlock %" PRId64 " and seccomp",
			     abi);
	json_decref(layers);
}

/* ---- MCP servers */

/* A server has started or failed. Each is asked for alone, so that a failure hides no other. */
static void server_tried(int rv, const struct ava_error *err, void *user)
{
	unsigned *left = user;

	--*left;
}

static void look_at_servers(struct doctor_state *d, struct os_loop *loop)
{
	char root[4096];
	unsigned left = 0;

	if (settings_data_root(root, sizeof(root), &d->mcp_err) != 0 ||
	    house_mcp(&d->mcp, loop, root, d->secrets = redact_new(), &d->mcp_err) != 0)
		return;
	for (size_t i = 0; mcp_client_look(d->mcp, i); i++)
		left += mcp_client_ready(d->mcp, UINT32_C(1) << i, server_tried, &left, NULL) == 0;
	while (left > 0) /* ends, since every start has a time limit */
		os_loop_step(loop, -1);
}

static void check_servers(struct doctor_state *d)
{
	const struct mcp_server_state *s;
	char name[64], more[64];

	if (d->mcp_err.code != 0)
		doctor_check(d, "mcp", false, "%s", d->mcp_err.text);
	for (size_t i = 0; (s = mcp_client_look(d->mcp, i)) != NULL; i++) {
		snprintf(name, sizeof(name), "mcp %.40s", s->name);
		snprintf(more, sizeof(more), ", %zu left out (doc/MCP-SERVERS.md says why)",
			 s->left_out);
		if (s->version[0] && !s->why[0]) /* an idle server may have ended by now */
			doctor_check(d, name, true, "%zu tool%s (%s, MCP %s)%s", s->tools,
				     s->tools == 1 ? "" : "s", s->how, s->version,
				     s->left_out > 0 ? more : "");
		else
			doctor_check(d, name, false, "%s", s->why);
	}
}

/* Neither is needed for the rest, so that what is missing is noted and nothing is wrong. */
static void check_search(struct doctor_state *d)
{
	const char *name = house_search(&d->config);

	if (d->page_lacks[0])
		doctor_check(d, "page", NOTED, "%s", d->page_lacks);
	for (size_t i = 0; !name && i < d->nprobes; i++)
		if (d->probes[i].search && d->probes[i].rv == 0) {
			doctor_check(
				d, "search", NOTED,
				"no search service is configured, so there is no web_search, and a "
				"SearXNG answers at %s: the line `web.searxng: %s` in config.yaml "
				"makes it web_search, if it is yours",
				d->probes[i].base_url, d->probes[i].base_url);
			return;
		}
	doctor_check(d, "search", name ? true : NOTED, name ? "web_search asks %s" : "%s",
		     name ? name
			  : "no search service is configured, so there is no web_search: set "
			    "web.searxng "
			    "in config.yaml (doc/CONFIG.md; a SearXNG needs no account), or "
			    "BRAVE_API_KEY "
			    "or TAVILY_API_KEY in the file env beside it");
}

/* Only secrets are checked here; the daemon knows how its doors are. */
static void door_wrong(const char *door, const char *why, void *d)
{
	doctor_check(d, door, false, "%s", why);
}

static void check_otel(struct doctor_state *d)
{
	const char *why = d->otel_err.code != 0 ? d->otel_err.text : d->otel.reason;
	bool well = d->otel_err.code == 0 && d->otel.end == CHANNEL_TAKEN;
	char with[64] = "";
	unsigned n = 0;

	if (!d->config.otel[0])
		return;
	(void)otel_headers(keys_get(OTEL_HEADERS_NAME), count_header, &n, NULL);
	if (n > 0)
		snprintf(with, sizeof(with), ", with %u header%s (%s)", n, n == 1 ? "" : "s",
			 keys_source(OTEL_HEADERS_NAME));
	doctor_check(d, "otel", well, "traces of ended runs are pushed to %s%s%s%s", d->config.otel,
		     with, well ? ", which answers" : ": ", well ? "" : why);
}

static void check_notify(struct doctor_state *d)
{
	const char *format = d->config.notify_format;
	char path[512];
	const char *why = notify_desktop_why(path);

	if (d->config.settings.notify_desktop)
		doctor_check(d, "desktop", !why, "%s", why ? why : "notices are shown by it");
	if (d->config.notify_url[0])
		doctor_check(d, "notify", true, "notices are posted to %s (%s%s)",
			     d->config.notify_url, *format ? format : "json",
			     keys_get("AVA_NOTIFY_SECRET") ? ", signed" : "");
}

/* ---- the cluster; a daemon's own view is in its health */

static void cluster_line(struct doctor_state *d, const json_t *o)
{
	const json_t *machines = json_object_get(o, "machines"), *m;
	const char *problem = json_str(o, "problem");
	size_t i, alive = 0;
	bool here = false;

	json_array_foreach((json_t *)machines, i, m)
	{
		alive += json_get_bool(m, "alive", false);
		here |= json_get_bool(m, "this", false) && json_get_bool(m, "alive", false);
	}
	if (problem[0])
		doctor_check(d, "cluster", false, "this machine cannot be a member: %s", problem);
	else
		doctor_check(d, "cluster", true, "%s; alive are %zu of %zu machines; %s",
			     here ? "this machine is a member"
				  : "this machine is no member now, its daemon joins",
			     alive, json_array_size(machines),
			     json_str(json_object_get(o, "server"), "promise"));
}

static void check_cluster(struct doctor_state *d)
{
	struct ava_error err;
	struct buf out;
	json_t *o;

	if (!keys_get("AVA_CLUSTER_URL"))
		return;
	buf_init(&out, 1u << 20);
	if (house_cluster("status", d->loop, &out, &err) != 0) {
		doctor_check(d, "cluster", false, "%s", err.text);
	} else {
		o = json_parse(out.data, out.len, NULL);
		cluster_line(d, o);
		json_decref(o);
	}
	buf_fini(&out);
}

/* ---- keys and names */

static void check_key(struct doctor_state *d, const struct provider *p)
{
	/* Beginnings of the services' own keys. */
	static const char *const shapes[][2] = {
		{"anthropic", "sk-ant-"}, {"openrouter", "sk-or-"}, {"openai", "sk-"}};
	const char *key = provider_key(p), *begins = "";
	bool own = strcmp(p->base_url, p->own_url) == 0; /* a proxy's key may look different */

	if (!key)
		return;
	for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
		if (strcmp(shapes[i][0], p->name) == 0)
			begins = shapes[i][1];
	if (own && strncmp(key, begins, strlen(begins)) != 0)
		doctor_check(d, "key", false,
			     "%s (%s) does not look like a key of %s, which begins with %s",
			     p->key_name, keys_source(p->key_name), p->name, begins);
	else
		doctor_check(d, "key", true, "%s is set (%s)", p->key_name,
			     keys_source(p->key_name));
}

/* Report mistyped settings in the environment, which no other check sees. */
static void check_environment(struct doctor_state *d)
{
	struct buf *b = &d->variables;

	buf_adds(b, "AVA_DATA_ROOT AVA_MODEL AVA_MODELS_DEFAULT AVA_MODELS_FALLBACK AVA_AVA_MODEL "
		    "AVA_CONFIRM AVA_AVAD AVA_NOTIFY_EXEC AVA_OTEL_ENDPOINT AVA_TELEGRAM_URL "
		    "AVA_METRICS_LISTEN AVA_METRICS_TOKEN");
	for (size_t i = 0; keys_known[i]; i++)
		buf_addf(b, " %s", keys_known[i]);
	for (const struct settings_key *k = settings_keys; k->name; k++) {
		buf_adds(b, " AVA_");
		for (const char *s = k->name; *s; s++)
			buf_addc(b, *s == '.' ? '_' : (char)toupper((unsigned char)*s));
	}
	for (char **e = environ; *e && buf_check(b) == 0; e++) {
		size_t len = strcspn(*e, "=");
		struct near near;
		char name[80];

		if (strncmp(*e, "AVA_", 4) != 0 || len >= sizeof(name))
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)len, *e);
		near = near_start(name);
		near_words(&near, b->data);
		if (near.len > 0 && near.distance > 0)
			doctor_check(d, "setting", false,
				     "nobody asks for %s in the environment: did you mean %.*s?",
				     name, (int)near.len, near.best);
	}
}

static void check_keys(struct doctor_state *d)
{
	const char *name, *value;
	const struct provider *p;
	char path[300];
	bool any = false;

	if (settings_config_path("env", path, sizeof(path), NULL) != 0)
		snprintf(path, sizeof(path), "$XDG_CONFIG_HOME/ava/env");
	for (size_t i = 0; (p = provider_at(i)) != NULL; i++) {
		check_key(d, p);
		any |= provider_usable(p);
	}
	if (!any)
		doctor_check(d, "key", true,
			     "none is set: the offline model is used (set ANTHROPIC_API_KEY, "
			     "OPENROUTER_API_KEY or OPENAI_API_KEY, or write it as NAME=value into "
			     "%.300s, chmod 600)",
			     path);
	for (size_t i = 0; (p = provider_at(i)) != NULL; i++)
		if (provider_lacks(p, path, sizeof(path)))
			doctor_check(d, "key", false, "%s", path);
	/* A name in the file env that is nearly one we ask for. */
	for (size_t i = 0; (name = keys_file(i, &value)) != NULL; i++) {
		struct near near = near_start(name);

		for (size_t k = 0; keys_known[k]; k++)
			near_word(&near, keys_known[k], strlen(keys_known[k]));
		if (near.len > 0 && near.distance > 0)
			doctor_check(d, "key", false,
				     "nobody asks for %.60s in the file env: did you mean %.*s?",
				     name, (int)near.len, near.best);
	}
}

/* ---- services and models */

/* Limits that were learned, where they are below a table's or no table has them. */
static void check_learned(struct doctor_state *d)
{
	char root[4096];
	struct ava_error err = {0};
	int fd = settings_data_root(root, sizeof(root), &err) == 0
			 ? open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
			 : -1;
	struct buf words;

	if (fd < 0)
		return; /* no data root yet */
	if (learned_load(fd, &err) != 0)
		doctor_check(d, "learned", false, "%s", err.text);
	close(fd);
	buf_init(&words, 4096);
	for (size_t i = 0; learned_words(i, &words); i++) {
		doctor_check(d, "learned", true, "%s", words.data);
		buf_reset(&words);
	}
	buf_fini(&words);
}

static void check_skills(struct doctor_state *d)
{
	size_t used = 0;
	struct skill_list l;

	if (skills_list("", 0, &l) != 0 || l.n == 0)
		return; /* a project's are looked at with its runs */
	for (size_t i = 0; i < l.n; i++)
		used += !l.items[i].why;
	doctor_check(d, "skills", used == l.n ? true : NOTED,
		     "%zu of %zu of yours can be used (`ava skills`)", used, l.n);
	skill_list_free(&l);
}

/* Ids that the configuration names and the service does not have. */
static void check_model(struct doctor_state *d, const struct probe *probe, const char *name,
			const char *what)
{
	char has[NAMES_SHOWN * 64] = "";
	struct model m;
	json_t *id;
	size_t i;

	if (model_resolve(name, &m, NULL, NULL) != 0 || m.provider != probe->p ||
	    probe_has(probe, m.wire_name))
		return;
	json_array_foreach(probe->models, i, id)
	{
		size_t used = strlen(has);

		if (i < NAMES_SHOWN)
			snprintf(has + used, sizeof(has) - used, "%s%.60s", i ? ", " : ": it has ",
				 json_string_value(id));
	}
	doctor_check(d, "models", false, "%s has no model %.120s (%s)%s%s", probe->p->name,
		     m.wire_name, what, has, i > NAMES_SHOWN ? " and others" : "");
}

/* The calls of a service go to where nothing is, and a version is missing. */
static bool lacks_version(const struct doctor_state *d, const struct probe *p)
{
	bool missed = p->rv == AVA_ENOENT || p->rv == AVA_EPROTO;

	for (size_t i = 0; i < d->nprobes && !missed; i++)
		missed = d->probes[i].post && d->probes[i].p == p->p &&
			 d->probes[i].rv == AVA_ENOENT;
	return missed && !provider_versioned(p->p);
}

/* Parameters and forms that requests for a model are made without. */
static void check_form(struct doctor_state *d, const struct probe *probe, const char *name,
		       const char *what)
{
	char all[500] = "", word[64];
	size_t used = 0;
	struct model m;

	if (model_resolve(name, &m, NULL, NULL) != 0)
		return;
	for (const char *s = m.drop; *s && used < sizeof(all); s += strspn(s, " ")) {
		snprintf(word, sizeof(word), "%.*s", (int)strcspn(s, " "), s);
		used += (size_t)snprintf(all + used, sizeof(all) - used, "%s%s", used ? "; " : "",
					 profile_says(word));
		s += strcspn(s, " ");
	}
	if (used > 0)
		doctor_check(d, "form", true, "%.120s does not take %s", m.id, all);
}

/* Check every model that the configuration names. */
static void check_models(struct doctor_state *d, const struct probe *probe, const char *forced,
			 void (*one)(struct doctor_state *d, const struct probe *probe,
				     const char *name, const char *what))
{
	const struct model_row *row;
	size_t n;
	const char *const *fallback = model_fallback(&n);

	one(d, probe, forced, "the default");
	if (!forced && models_ava())
		one(d, probe, models_ava(), "ava.model");
	for (size_t k = 0; k < n; k++)
		one(d, probe, fallback[k], "models.fallback");
	for (size_t k = 0; (row = models_own(k)) != NULL; k++)
		one(d, probe, row->id, "models.list");
}

static void doctor_check_services(struct doctor_state *d, const char *forced)
{
	for (size_t i = 0; i < d->nprobes; i++) {
		const struct probe *p = &d->probes[i];

		if (!p->p || p->post)
			continue;
		if (lacks_version(d, p))
			doctor_check(d, p->p->name, false,
				     "nothing at %s%s: the address lacks /v1; set %s=%s/v1",
				     p->base_url, p->p->dialect->path, p->p->url_name, p->base_url);
		else if (p->rv == AVA_ECONNECT && strncmp(p->base_url, "http:", 5) == 0)
			doctor_check(d, p->p->name, false,
				     "nothing answers at %s: is your model server running?",
				     p->base_url);
		else if (p->rv != 0)
			doctor_check(d, p->p->name, false, "%s: %s", p->base_url, p->err.text);
		else
			doctor_check(d, p->p->name, true,
				     "%s answers in %" PRId64 " ms and has %zu model%s",
				     p->base_url, p->ended_ms - p->started_ms,
				     json_array_size(p->models),
				     json_array_size(p->models) == 1 ? "" : "s");
		if (p->rv == 0 && !lacks_version(d, p))
			check_models(d, p, forced, check_model);
	}
}

/* ---- models are asked about, and tried */

/* Skip a service that did not answer, or that does not list the model. */
static bool worth_trying(const struct doctor_state *d, const struct model *m)
{
	for (size_t i = 0; i < d->nprobes; i++) {
		const struct probe *p = &d->probes[i];

		if (p->p == m->provider && !p->post)
			return p->rv != AVA_ECONNECT && p->rv != AVA_EDENIED &&
			       (json_array_size(p->models) == 0 || probe_has(p, m->wire_name));
	}
	return false;
}

static bool tried_before(struct doctor_state *d, const char *id)
{
	for (size_t i = 0; i < d->ntried; i++)
		if (strcmp(d->tried[i], id) == 0)
			return true;
	if (d->ntried == TRIALS)
		return true;
	snprintf(d->tried[d->ntried++], sizeof(d->tried[0]), "%s", id);
	return false;
}

static void try_model(struct doctor_state *d, const struct probe *probe, const char *name,
		      const char *what)
{
	struct trial t = {0};
	struct buf words;

	if (!trial_model(d->loop, name, &t.model) || !worth_trying(d, &t.model) ||
	    tried_before(d, t.model.id))
		return;
	if (t.model.provider->needs_key && !d->paid) {
		doctor_check(
			d, "try", true,
			"%.120s was not tried, since a call of it may cost something: `ava doctor "
			"--try` makes one, of %d tokens",
			t.model.id, TRIAL_OUTPUT);
		return;
	}
	trial_run(&t, d->loop, d->client);
	buf_init(&words, 4096);
	trial_words(&t, &words);
	doctor_check(d, "try", t.ok, "%s", buf_check(&words) == 0 ? words.data : t.model.id);
	buf_fini(&words);
}

/* Compare our clock with that of the first service that sends a date. */
static void check_clock(struct doctor_state *d)
{
	for (size_t i = 0; i < d->nprobes; i++) {
		const struct probe *p = &d->probes[i];
		int64_t theirs = p->p && p->date[0] ? told_date(p->date) : -1;
		int64_t off = p->date_wall_ms - theirs;

		if (theirs < 0)
			continue;
		if (off < -CLOCK_MAX_MS || off > CLOCK_MAX_MS)
			doctor_check(d, "clock", false,
				     "this machine's clock is %" PRId64 " s %s that of %s: set it",
				     (off < 0 ? -off : off) / 1000, off < 0 ? "behind" : "ahead of",
				     p->p->name);
		else
			doctor_check(d, "clock", true, "as that of %s", p->p->name);
		return;
	}
}

static void check_places(struct doctor_state *d)
{
	char where[3 * PROVIDER_URL_MAX] = "";
	size_t used = 0;

	for (size_t i = 0; i < d->nprobes; i++) {
		const struct probe *p = &d->probes[i];

		if (!p->kind)
			continue;
		if (p->p || p->rv == 0)
			return;
		used += (size_t)snprintf(where + used, sizeof(where) - used, "%s%s (%s)",
					 used ? " or " : "", p->base_url, p->kind);
		used = MIN(used, sizeof(where) - 1);
	}
	doctor_check(d, "local", true, "no local server at %.500s", where);
}

static void write_places(struct doctor_state *d)
{
	jw_array(d->w, "local_servers");
	for (int used = 1; used >= 0; used--) /* first the server that local/ speaks to */
		for (size_t i = 0; i < d->nprobes; i++) {
			const struct probe *p = &d->probes[i];
			json_t *id;
			size_t k;

			if (!p->kind || !p->models || (p->p != NULL) != used)
				continue;
			jw_object(d->w, NULL);
			jw_str(d->w, "base_url", p->base_url);
			jw_str(d->w, "kind", p->kind);
			jw_bool(d->w, "used", used);
			jw_array(d->w, "models");
			json_array_foreach(p->models, k, id)
				jw_str(d->w, NULL, json_string_value(id));
			jw_end(d->w);
			jw_end(d->w);
		}
}

static void doctor_write_settings(struct doctor_state *d)
{
	int64_t value, over = d->config.settings.confirm_over_cents;
	char text[40];

	jw_object(d->w, "settings");
	for (const struct settings_key *k = settings_keys; k->name; k++) {
		memcpy(&value, (const char *)&d->config.settings + k->at, sizeof(value));
		jw_int(d->w, k->name, value);
	}
	snprintf(text, sizeof(text), "over_cents:%lld", (long long)over);
	jw_str(d->w, "confirm",
	       over == SETTINGS_CONFIRM_ALWAYS  ? "always"
	       : over == SETTINGS_CONFIRM_NEVER ? "never"
						: text);
	jw_end(d->w);
}

/* ---- all of it */

static bool all_over(const struct doctor_state *d)
{
	for (size_t i = 0; i < d->nprobes; i++)
		if (d->probes[i].rv == AVA_EBUSY)
			return false;
	return d->otel_over && !d->command;
}

static int doctor_look(struct doctor_state *d, struct ava_error *err)
{
	struct os_loop *loop = os_loop_new(err);
	struct http_client *client = loop ? http_client_new(loop, err) : NULL;
	const char *forced = getenv("AVA_MODEL");
	struct ava_error unresolved;
	struct model m;
	const char *why;

	if (!client) {
		if (loop)
			os_loop_free(loop);
		return err->code;
	}
	forced = forced && *forced ? forced : NULL;
	d->loop = loop;
	d->client = client;
	start_probes(d, client);
	start_otel(d, loop);
	start_sandbox(d, loop);
	while (!all_over(d)) /* ends, since every call has timers */
		os_loop_step(loop, -1);
	look_at_servers(d, loop);
	doctor_check(d, "config", true, "%s%s",
		     d->config.path[0] ? d->config.path : "no home directory",
		     d->config.exists ? "" : " (there is none: defaults)");
	check_environment(d);
	check_keys(d);
	check_learned(d);
	check_skills(d);
	(void)trial_model(loop, forced, &(struct model){0}); /* asks a server for the default */
	if (model_resolve(forced, &m, &why, &unresolved) != 0)
		doctor_check(d, "default", false, "%s%s", forced ? "AVA_MODEL: " : "",
			     unresolved.text);
	else
		doctor_check(d, "default", true, "%s: %s%s", m.id,
			     forced ? "AVA_MODEL says so" : why,
			     forced || models_default() || !m.provider
				     ? ""
				     : "; a role with a model of its own takes that (`ava roles`)");
	check_otel(d);
	check_notify(d);
	check_cluster(d);
	doors_check(&d->config, door_wrong, d);
	doctor_check_services(d, forced);
	check_models(d, NULL, forced, check_form);
	check_models(d, NULL, forced, try_model);
	check_clock(d);
	check_sandbox(d);
	check_search(d);
	check_servers(d);
	check_places(d);
	jw_end(d->w);
	write_places(d);
	for (size_t i = 0; i < d->nprobes; i++) {
		http_call_stop(&d->probes[i].call);
		http_pool_free(d->probes[i].pool);
		buf_fini(&d->probes[i].body);
		json_decref(d->probes[i].models);
	}
	mcp_client_free(d->mcp);
	redact_free(d->secrets);
	otel_sender_free(d->sender);
	http_client_free(client);
	os_loop_free(loop);
	return 0;
}

int doctor_print(bool paid, const char *page_lacks, struct ava_error *err)
{
	struct doctor_state *d = calloc(1, sizeof(*d));
	struct ava_error wrong;
	struct buf b;
	struct jw w;
	int rv = 0;

	if (!d)
		return err_set(err, AVA_ENOMEM, "out of memory");
	buf_init(&b, 16u << 20);
	buf_init(&d->variables, 16384);
	jw_init(&w, &b);
	d->w = &w;
	d->paid = paid;
	d->page_lacks = page_lacks;
	jw_object(&w, NULL);
	jw_array(&w, "checks");
	if (config_load(&d->config, &wrong) != 0)
		doctor_check(d, "config", false, "%s", wrong.text);
	else
		rv = doctor_look(d, err);
	jw_end(&w);
	doctor_write_settings(d);
	jw_end(&w);
	if (rv == 0)
		rv = buf_check(&b);
	if (rv == 0 && puts(b.data) < 0)
		rv = err_sys(err, "stdout");
	buf_fini(&b);
	buf_fini(&d->variables);
	keys_wipe();
	free(d);
	return rv;
}
