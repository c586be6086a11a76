/* Services, models and local servers, as `ava doctor` sees them: each is asked for its models, and
 * what the configuration names is looked up there and tried. All are asked at once; none of it
 * can fail but as a finding. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/keys.h"
#include "base/util.h"
#include "gateway/doctor_state.h"
#include "gateway/trial.h"
#include "provider/dialect.h"
#include "provider/learned.h"
#include "provider/profile.h"

#define LOCAL_CONNECT_MS 1000
#define LOCAL_TOTAL_MS   3000
#define NAMES_SHOWN      8 /* models named of a server that lacks the one asked for */
#define BODY_MAX         (8u << 20)

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

void doctor_models_ask(struct doctor_state *d, struct http_client *c)
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

/* ---- services and models */

/* Limits that were learned, where they are below a table's or no table has them. */
void doctor_models_learned(struct doctor_state *d)
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

void doctor_models_check(struct doctor_state *d, const char *forced)
{
	doctor_check_services(d, forced);
	check_models(d, NULL, forced, check_form);
	check_models(d, NULL, forced, try_model);
}

void doctor_models_places(struct doctor_state *d)
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

void doctor_models_write_places(struct doctor_state *d)
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
