/* Looking at configuration, keys and services; see doctor.h.
 *
 * Happy path: read the configuration, ask every service that has its key and
 * every place where a local server may listen for its models, all at once,
 * wait until the last has answered or run out of time (TOTAL_MS), then write
 * what was seen. What can fail is what this is for; only memory and the loop
 * end it without an answer. */
#include "gateway/doctor.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "ava/config.h"
#include "ava/otel_headers.h"
#include "ava/otel_send.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/keys.h"
#include "base/near.h"
#include "codec/json.h"
#include "net/http_client.h"
#include "os/loop.h"
#include "provider/models.h"
#include "provider/provider.h"
#include "provider/retry.h"

#define CONNECT_MS       5000
#define TOTAL_MS         15000
#define LOCAL_CONNECT_MS 1000
#define LOCAL_TOTAL_MS   3000
#define CLOCK_MAX_MS     60000 /* a clock that is off by more is wrong */
#define SERVICES         4
#define PLACES           3
#define BODY_MAX         (8u << 20)

/* ---- one GET of a service's list of models: {"data":[{"id":…},…]} */

struct probe { /* zeroed, then filled by probe_start; lives until probe_fini */
	struct http_pool *pool;
	struct http_call call;
	struct buf body;
	char date[64];                /* of the response; "" */
	int64_t date_wall_ms;         /* our clock when it came */
	int64_t started_ms, ended_ms; /* monotonic */
	int rv;                       /* of the call; AVA_EBUSY while it runs */
	struct ava_error err;
	json_t *models; /* ["id", …]; NULL: the answer was no such list */
};

struct probe_options {
	const char *base_url, *path; /* "/models" */
	const char *key;             /* NULL: none */
	bool anthropic;              /* x-api-key, not a bearer token */
	bool http2;
	int64_t connect_ms, total_ms;
};

static void probe_on_head(struct http_call *c, int status)
{
	struct probe *p = c->user;
	const char *date = http_call_header(c, "date");

	snprintf(p->date, sizeof(p->date), "%s", date ? date : "");
	p->date_wall_ms = clock_wall_ms();
}

static bool probe_on_data(struct http_call *c, const char *s, size_t n)
{
	struct probe *p = c->user;

	buf_add(&p->body, s, n);
	return true;
}

static void probe_on_done(struct http_call *c, int rv, const struct ava_error *err)
{
	struct probe *p = c->user;

	p->rv = rv;
	if (rv != 0)
		p->err = *err;
	p->ended_ms = clock_mono_ms();
}

static void probe_set_up(struct probe *p, const struct probe_options *o)
{
	*p = (struct probe){.rv = AVA_EBUSY, .started_ms = clock_mono_ms()};
	buf_init(&p->body, BODY_MAX);
	p->call.path = o->path;
	p->call.method = "GET";
	p->call.timers = (struct http_timers){
		.connect_ms = o->connect_ms, .first_ms = o->total_ms, .total_ms = o->total_ms};
	p->call.head = probe_on_head;
	p->call.data = probe_on_data;
	p->call.done = probe_on_done;
	p->call.user = p;
}

/* Cannot fail: what goes wrong is in rv and err. The key stands in a header only, in
 * memory that is wiped. */
static void probe_start(struct probe *p, struct http_client *c, const struct probe_options *o)
{
	struct http_pool_options pool = {
		.base_url = o->base_url, .connections_max = 1, .http2 = o->http2};
	const char *headers[] = {"anthropic-version: 2023-06-01", NULL};
	size_t size = o->key ? strlen(o->key) + 32 : 0;
	char *auth = NULL;
	int rv = 0;

	probe_set_up(p, o);
	p->pool = http_pool_new(c, &pool, &p->err);
	if (!p->pool)
		rv = p->err.code;
	if (o->key && rv == 0) {
		auth = malloc(size);
		if (!auth)
			rv = err_set(&p->err, AVA_ENOMEM, "out of memory");
		else
			snprintf(auth, size, "%s%s",
				 o->anthropic ? "x-api-key: " : "Authorization: Bearer ", o->key);
	}
	headers[1] = auth;
	p->call.headers = o->anthropic ? headers : headers + 1;
	p->call.nheaders = (o->anthropic ? 1 : 0) + (auth ? 1 : 0);
	if (rv == 0)
		rv = http_call_start(p->pool, &p->call, &p->err);
	if (rv != 0)
		p->rv = rv;
	if (auth)
		explicit_bzero(auth, size);
	free(auth);
	p->call.headers = NULL; /* were copied */
	p->call.nheaders = 0;
}

static bool probe_over(const struct probe *p)
{
	return p->rv != AVA_EBUSY;
}

static int probe_refused(struct probe *p)
{
	int status = p->call.status;

	if (status == 401 || status == 403)
		return err_set(&p->err, AVA_EDENIED, "it refuses the key (%d)", status);
	if (status == 404)
		return err_set(&p->err, AVA_ENOENT,
			       "it has no list of models there (404): is the address right?");
	return err_set(&p->err, AVA_EPROTO, "it answers with the status %d", status);
}

/* {"data":[{"id"}]} of all services. */
static int probe_read_list(struct probe *p)
{
	json_t *all = json_parse(p->body.data ? p->body.data : "", p->body.len, NULL);
	json_t *data = json_object_get(all, "data"), *row;
	size_t i;
	int rv = 0;

	if (json_is_array(data))
		p->models = json_array();
	if (!p->models)
		rv = err_set(&p->err, AVA_EPROTO,
			     "its answer is no list of models: is the address right?");
	json_array_foreach(data, i, row)
	{
		const char *id = json_get_str(row, "id");

		if (rv == 0 && id && json_array_append_new(p->models, json_string(id)) != 0)
			rv = err_set(&p->err, AVA_ENOMEM, "out of memory");
	}
	json_decref(all);
	return rv;
}

/* Once it is over: reads the list, 0 or a code with a sentence in p->err. */
static int probe_read(struct probe *p)
{
	if (p->rv == 0 && p->call.status != 200)
		p->rv = probe_refused(p);
	if (p->rv == 0 && buf_check(&p->body) != 0)
		p->rv = err_set(&p->err, AVA_ETOOBIG, "its answer is larger than %u MB",
				BODY_MAX >> 20);
	if (p->rv == 0 && !p->models)
		p->rv = probe_read_list(p);
	return p->rv;
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

static void probe_fini(struct probe *p)
{
	http_call_stop(&p->call);
	http_pool_free(p->pool);
	buf_fini(&p->body);
	json_decref(p->models);
}

/* ---- the collector of traces */

struct doctor_otel {
	const char *endpoint; /* borrowed; "": none */
	unsigned headers;
	struct otel_sender *sender;
	bool over;
	struct otel_answer answer;
	struct ava_error err; /* it could not be asked */
};

static int count_header(const char *header, void *user)
{
	(void)header;
	++*(unsigned *)user;
	return 0;
}

static void otel_answered(const struct otel_answer *a, void *user)
{
	struct doctor_otel *o = user;

	o->answer = *a;
	o->over = true;
}

/* One request by the way of every push, without spans, which every collector takes. Without
 * an endpoint it is over at once. */
static void doctor_otel_start(struct doctor_otel *o, struct os_loop *loop, const char *endpoint)
{
	const char *headers = keys_get(OTEL_HEADERS_NAME);
	struct buf body;

	*o = (struct doctor_otel){.endpoint = endpoint, .over = true};
	if (endpoint[0] == '\0')
		return;
	(void)otel_headers(headers, count_header, &o->headers, NULL);
	o->sender = otel_sender_new(loop, endpoint, headers, CONNECT_MS, &o->err);
	buf_init(&body, 64);
	buf_adds(&body, "{\"resourceSpans\":[]}");
	if (o->sender != NULL && otel_send(o->sender, &body, otel_answered, o, &o->err) == 0)
		o->over = false;
	buf_fini(&body);
}

static void doctor_otel_fini(struct doctor_otel *o)
{
	otel_sender_free(o->sender);
	o->sender = NULL;
}

/* ---- all that is looked at */

struct place { /* where a local server may be */
	char base_url[PROVIDER_URL_MAX];
	const char *kind;
	bool used; /* it is what local/ speaks to */
	struct probe probe;
};

struct doctor {
	struct config config;
	struct probe services[SERVICES]; /* by provider_at; not started: pool NULL, rv 0 */
	bool asked[SERVICES];
	struct place places[PLACES];
	size_t nplaces;
	struct doctor_otel otel;
	struct jw *w;
};

static void check(struct doctor *d, const char *name, bool ok, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static void check(struct doctor *d, const char *name, bool ok, const char *fmt, ...)
{
	char detail[700];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(detail, sizeof(detail), fmt, ap);
	va_end(ap);
	jw_object(d->w, NULL);
	jw_str(d->w, "name", name);
	jw_bool(d->w, "ok", ok);
	jw_str(d->w, "detail", detail);
	jw_end(d->w);
}

/* ---- keys */

/* What a key of the service itself begins with. */
static const char *shape_of(const struct provider *p)
{
	static const struct {
		const char *name, *begins;
	} shapes[] = {{"anthropic", "sk-ant-"}, {"openrouter", "sk-or-"}, {"openai", "sk-"}};

	for (size_t i = 0; i < ARRAY_LEN(shapes); i++)
		if (strcmp(shapes[i].name, p->name) == 0)
			return shapes[i].begins;
	return "";
}

static void check_key(struct doctor *d, const struct provider *p)
{
	const char *key = provider_key(p), *begins = shape_of(p);
	bool own = strcmp(p->base_url, provider_default_url(p)) == 0; /* no proxy's key */

	if (!key)
		return;
	if (own && strncmp(key, begins, strlen(begins)) != 0)
		check(d, "key", false,
		      "%s (%s) does not look like a key of %s, which begins with %s", p->key_name,
		      keys_source(p->key_name), p->name, begins);
	else
		check(d, "key", true, "%s is set (%s)", p->key_name, keys_source(p->key_name));
}

static void near_copy(struct near *n, const char *word, char best[80])
{
	unsigned before = n->distance;

	near_word(n, word, strlen(word));
	if (n->distance < before)
		snprintf(best, 80, "%s", word);
}

/* The variable that `name` nearly is; false: it is one, or is near to none. */
static bool near_variable(const char *name, char best[80])
{
	static const char *const more[] = {
		"AVA_DATA_ROOT",    "AVA_MODEL",   "AVA_MODELS_DEFAULT", "AVA_MODELS_FALLBACK",
		"AVA_AVA_MODEL",    "AVA_CONFIRM", "AVA_AVAD",           "AVA_NOTIFY_EXEC",
		"AVA_OTEL_ENDPOINT"};
	struct near n = near_start(name);

	for (size_t i = 0; i < ARRAY_LEN(more); i++)
		near_copy(&n, more[i], best);
	for (size_t i = 0; keys_known[i]; i++)
		near_copy(&n, keys_known[i], best);
	for (const struct settings_key *k = settings_keys; k->name; k++) {
		char variable[80];

		snprintf(variable, sizeof(variable), "AVA_%s", k->name);
		for (char *c = variable; *c; c++)
			*c = *c == '.' ? '_' : (char)toupper((unsigned char)*c);
		near_copy(&n, variable, best);
	}
	return n.len > 0 && n.distance > 0;
}

/* A setting that was mistyped in the environment is seen by nobody else. */
static void check_environment(struct doctor *d)
{
	for (char **e = environ; *e; e++) {
		size_t len = strcspn(*e, "=");
		char name[80], best[80];

		if (strncmp(*e, "AVA_", 4) != 0 || len >= sizeof(name))
			continue;
		snprintf(name, sizeof(name), "%.*s", (int)len, *e);
		if (near_variable(name, best))
			check(d, "setting", false,
			      "nobody asks for %s in the environment: did you mean %s?", name,
			      best);
	}
}

/* A name in the file env that is nearly one we ask for. */
static void check_names(struct doctor *d)
{
	const char *name, *value;

	for (size_t i = 0; (name = keys_file(i, &value)) != NULL; i++) {
		struct near near = near_start(name);

		for (size_t k = 0; keys_known[k]; k++)
			near_word(&near, keys_known[k], strlen(keys_known[k]));
		if (near.len > 0 && near.distance > 0)
			check(d, "key", false,
			      "nobody asks for %.60s in the file env: did you mean %.*s?", name,
			      (int)near.len, near.best);
	}
}

static void check_keys(struct doctor *d)
{
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
		check(d, "key", true,
		      "none is set: the offline model is used (set ANTHROPIC_API_KEY, "
		      "OPENROUTER_API_KEY or OPENAI_API_KEY, or write it as NAME=value into "
		      "%.300s, chmod 600)",
		      path);
	check_names(d);
}

/* ---- services */

static void start_services(struct doctor *d, struct http_client *c)
{
	const struct provider *p;

	for (size_t i = 0; i < SERVICES && (p = provider_at(i)) != NULL; i++) {
		bool anthropic = strcmp(p->name, "anthropic") == 0;
		struct probe_options o = {
			.base_url = p->base_url,
			.path = anthropic ? "/v1/models?limit=1000" : "/models",
			.key = provider_key(p),
			.anthropic = anthropic,
			.http2 = p->http2,
			.connect_ms = CONNECT_MS,
			.total_ms = TOTAL_MS,
		};

		if (!provider_usable(p))
			continue;
		d->asked[i] = true;
		probe_start(&d->services[i], c, &o);
	}
}

/* Ids that the configuration names and the service does not have. */
static void check_model(struct doctor *d, const struct provider *p, const struct probe *probe,
			const char *name, const char *what)
{
	struct model m;

	if (model_resolve(name, &m, NULL, NULL) == 0 && m.provider == p &&
	    !probe_has(probe, m.wire_name))
		check(d, "models", false, "%s has no model %.120s (%s)", p->name, m.wire_name,
		      what);
}

static void check_models(struct doctor *d, const struct provider *p, const struct probe *probe)
{
	const struct model_row *row;
	const char *const *fallback;
	const char *forced = getenv("AVA_MODEL");
	size_t n;

	check_model(d, p, probe, forced && *forced ? forced : NULL, "the default");
	fallback = model_fallback(&n);
	for (size_t i = 0; i < n; i++)
		check_model(d, p, probe, fallback[i], "models.fallback");
	for (size_t i = 0; (row = models_own(i)) != NULL; i++)
		check_model(d, p, probe, row->id, "models.list");
}

static void check_service(struct doctor *d, const struct provider *p, struct probe *probe)
{
	if (probe_read(probe) != 0) {
		check(d, p->name, false, "%s: %s", p->base_url, probe->err.text);
		return;
	}
	check(d, p->name, true, "%s answers in %" PRId64 " ms and has %zu models", p->base_url,
	      probe->ended_ms - probe->started_ms, json_array_size(probe->models));
	check_models(d, p, probe);
}

/* Our clock against that of the first service that tells its own. */
static void check_clock(struct doctor *d)
{
	for (size_t i = 0; i < SERVICES; i++) {
		const struct probe *p = &d->services[i];
		int64_t theirs = d->asked[i] && p->date[0] ? retry_date(p->date) : -1, off;

		if (theirs < 0)
			continue;
		off = p->date_wall_ms - theirs;
		if (off < -CLOCK_MAX_MS || off > CLOCK_MAX_MS)
			check(d, "clock", false,
			      "this machine's clock is %" PRId64 " s %s that of %s: set it",
			      (off < 0 ? -off : off) / 1000, off < 0 ? "behind" : "ahead of",
			      provider_at(i)->name);
		else
			check(d, "clock", true, "as that of %s", provider_at(i)->name);
		return;
	}
}

static void check_default(struct doctor *d)
{
	const char *forced = getenv("AVA_MODEL"), *why;
	struct ava_error err;
	struct model m;

	if (forced && !*forced)
		forced = NULL;
	if (model_resolve(forced, &m, &why, &err) != 0)
		check(d, "default", false, "%s%s", forced ? "AVA_MODEL: " : "", err.text);
	else
		check(d, "default", true, "%s: %s", m.id, forced ? "AVA_MODEL says so" : why);
}

static void check_otel(struct doctor *d)
{
	const struct doctor_otel *o = &d->otel;
	const char *why = o->err.code != 0 ? o->err.text : o->answer.reason;
	bool well = o->err.code == 0 && o->answer.verdict == OTEL_TAKEN;
	char with[64] = "";

	if (!d->config.otel[0])
		return;
	if (o->headers > 0)
		snprintf(with, sizeof(with), ", with %u header%s (%s)", o->headers,
			 o->headers == 1 ? "" : "s", keys_source(OTEL_HEADERS_NAME));
	check(d, "otel", well, "traces of ended runs are pushed to %s%s%s%s", o->endpoint, with,
	      well ? ", which answers" : ": ", well ? "" : why);
}

/* ---- local servers */

static void add_place(struct doctor *d, const char *base_url, const char *kind, bool used)
{
	struct place *at = &d->places[d->nplaces];

	for (size_t i = 0; i < d->nplaces; i++)
		if (strcmp(d->places[i].base_url, base_url) == 0)
			return;
	if (d->nplaces == PLACES ||
	    provider_check_url("a local server", base_url, at->base_url, NULL) != 0)
		return;
	at->kind = kind;
	at->used = used;
	d->nplaces++;
}

/* OLLAMA_HOST is what Ollama itself goes by: host, host:port, :port or an
 * address; where it listens on all interfaces it is reached at loopback. */
static void add_ollama(struct doctor *d, const char *host)
{
	bool tls = strncmp(host, "https://", 8) == 0, plain = strncmp(host, "http://", 7) == 0;
	const char *at = host + (tls ? 8 : plain ? 7 : 0);
	size_t len = strcspn(at, "/"), path = strlen(at + len);
	size_t name = MIN(*at == '[' ? strcspn(at, "]") + 1 : strcspn(at, ":"), len);
	bool all = name == 0 || strncmp(at, "0.0.0.0", MAX(name, 7)) == 0 ||
		   strncmp(at, "[::]", MAX(name, 4)) == 0;
	char url[PROVIDER_URL_MAX + 64];

	if (strlen(host) >= PROVIDER_URL_MAX)
		return;
	if (path > 0 && at[len + path - 1] == '/')
		path--;
	snprintf(url, sizeof(url), "http%s://%.*s%.*s%s%.*s/v1", tls ? "s" : "",
		 all ? 9 : (int)name, all ? "127.0.0.1" : at, (int)(len - name), at + name,
		 len == name && !tls && !plain ? ":11434" : "", (int)path, at + len);
	add_place(d, url, "Ollama", false);
}

static void add_places(struct doctor *d)
{
	const struct provider *local = provider_find("local", 5);
	const char *host = getenv("OLLAMA_HOST");

	if (local->base_url[0])
		add_place(d, local->base_url, "local", true);
	add_ollama(d, host && *host ? host : "127.0.0.1");
	add_place(d, "http://127.0.0.1:8080/v1", "llama-server", false);
}

static void start_places(struct doctor *d, struct http_client *c)
{
	add_places(d);
	for (size_t i = 0; i < d->nplaces; i++) {
		struct probe_options o = {.base_url = d->places[i].base_url,
					  .path = "/models",
					  .connect_ms = LOCAL_CONNECT_MS,
					  .total_ms = LOCAL_TOTAL_MS};

		if (!d->places[i].used) /* that one is asked as a service */
			probe_start(&d->places[i].probe, c, &o);
	}
}

static void check_places(struct doctor *d)
{
	char where[3 * PROVIDER_URL_MAX] = "";
	size_t used = 0;

	for (size_t i = 0; i < d->nplaces; i++) {
		struct place *at = &d->places[i];

		if (at->used || probe_read(&at->probe) == 0)
			return;
		used += (size_t)snprintf(where + used, sizeof(where) - used, "%s%s (%s)",
					 used ? " or " : "", at->base_url, at->kind);
		used = MIN(used, sizeof(where) - 1);
	}
	check(d, "local", true, "no local server at %.500s", where);
}

static void write_place(struct doctor *d, struct place *at)
{
	const json_t *models;
	size_t i;
	json_t *id;

	for (i = 0; i < SERVICES && at->used; i++)
		if (provider_at(i) == provider_find("local", 5))
			break;
	if (!at->used && probe_read(&at->probe) != 0)
		return;
	models = at->used ? d->services[i].models : at->probe.models;
	if (!models)
		return;
	jw_object(d->w, NULL);
	jw_str(d->w, "base_url", at->base_url);
	jw_str(d->w, "kind", at->kind);
	jw_bool(d->w, "used", at->used);
	jw_array(d->w, "models");
	json_array_foreach((json_t *)models, i, id) jw_str(d->w, NULL, json_string_value(id));
	jw_end(d->w);
	jw_end(d->w);
}

static void write_confirm(struct doctor *d, int64_t over)
{
	char text[40];

	snprintf(text, sizeof(text), "over_cents:%lld", (long long)over);
	jw_str(d->w, "confirm",
	       over == SETTINGS_CONFIRM_ALWAYS  ? "always"
	       : over == SETTINGS_CONFIRM_NEVER ? "never"
						: text);
}

static void write_settings(struct doctor *d)
{
	jw_object(d->w, "settings");
	for (const struct settings_key *k = settings_keys; k->name; k++) {
		int64_t value;

		memcpy(&value, (const char *)&d->config.settings + k->at, sizeof(value));
		jw_int(d->w, k->name, value);
	}
	write_confirm(d, d->config.settings.confirm_over_cents);
	jw_end(d->w);
}

/* ---- all of it */

static bool all_over(const struct doctor *d)
{
	for (size_t i = 0; i < SERVICES; i++)
		if (d->asked[i] && !probe_over(&d->services[i]))
			return false;
	for (size_t i = 0; i < d->nplaces; i++)
		if (!d->places[i].used && !probe_over(&d->places[i].probe))
			return false;
	return d->otel.over;
}

static void write_checks(struct doctor *d)
{
	check(d, "config", true, "%s%s", d->config.path[0] ? d->config.path : "no home directory",
	      d->config.exists ? "" : " (there is none: defaults)");
	check_environment(d);
	check_keys(d);
	check_default(d);
	check_otel(d);
	for (size_t i = 0; i < SERVICES; i++)
		if (d->asked[i])
			check_service(d, provider_at(i), &d->services[i]);
	check_clock(d);
	check_places(d);
}

static int look(struct doctor *d, struct ava_error *err)
{
	struct os_loop *loop = os_loop_new(err);
	struct http_client *client = loop ? http_client_new(loop, err) : NULL;

	if (!client) {
		if (loop)
			os_loop_free(loop);
		return err->code;
	}
	start_services(d, client);
	start_places(d, client);
	doctor_otel_start(&d->otel, loop, d->config.otel);
	while (!all_over(d)) /* ends: every call has its timers */
		os_loop_step(loop, -1);
	write_checks(d);
	jw_end(d->w);
	jw_array(d->w, "local_servers");
	for (size_t i = 0; i < d->nplaces; i++)
		write_place(d, &d->places[i]);
	for (size_t i = 0; i < SERVICES; i++)
		if (d->asked[i])
			probe_fini(&d->services[i]);
	for (size_t i = 0; i < d->nplaces; i++)
		if (!d->places[i].used)
			probe_fini(&d->places[i].probe);
	doctor_otel_fini(&d->otel);
	http_client_free(client);
	os_loop_free(loop);
	return 0;
}

int doctor_print(struct ava_error *err)
{
	struct doctor *d = calloc(1, sizeof(*d));
	struct ava_error wrong;
	struct buf b;
	struct jw w;
	int rv = 0;

	if (!d)
		return err_set(err, AVA_ENOMEM, "out of memory");
	buf_init(&b, 16u << 20);
	jw_init(&w, &b);
	d->w = &w;
	jw_object(&w, NULL);
	jw_array(&w, "checks");
	if (config_load(&d->config, &wrong) != 0)
		check(d, "config", false, "%s", wrong.text);
	else
		rv = look(d, err);
	jw_end(&w);
	write_settings(d);
	jw_end(&w);
	if (rv == 0)
		rv = buf_check(&b);
	if (rv == 0 && puts(b.data) < 0)
		rv = err_sys(err, "stdout");
	buf_fini(&b);
	keys_wipe();
	free(d);
	return rv;
}
