/* Looking at configuration, keys and the machine; see doctor.h.
 *
 * Happy path: read the configuration, ask services and places of local servers
 * (doctor_models.c), the collector and the sandbox, all at once, wait until the last has
 * answered or run out of time (TOTAL_MS), then write the findings. Failures are findings, too;
 * only memory and the loop end it without an answer. */
#include "gateway/doctor.h"

#include <ctype.h>
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
#include "gateway/doctor_state.h"
#include "gateway/doors.h"
#include "gateway/trial.h"
#include "net/http_client.h"
#include "os/loop.h"
#include "provider/told.h"
#include "subagent/skillbook.h"
#include "tool/mcp.h"

#define CLOCK_MAX_MS 60000 /* a clock that is off by more is wrong */

void doctor_check(struct doctor_state *d, const char *name, int ok, const char *fmt, ...)
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
	const char *format = d->config.notify_format, *url = d->config.notify_url;
	const char *host = strstr(url, "://"); /* behind it may stand what nobody should know */
	char path[512];
	const char *why = notify_desktop_why(path);

	if (d->config.settings.notify_desktop)
		doctor_check(d, "desktop", !why, "%s", why ? why : "notices are shown by it");
	if (url[0])
		doctor_check(d, "notify", true, "notices are posted to %.*s/… (%s%s)",
			     (int)(host ? (size_t)(host + 3 - url) + strcspn(host + 3, "/?")
					: strlen(url)),
			     url, *format ? format : "json",
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
		    "AVA_METRICS_LISTEN AVA_METRICS_TOKEN AVA_NOTIFY_URL AVA_NOTIFY_FORMAT");
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

static void check_skills(struct doctor_state *d)
{
	size_t used = 0;
	struct book_list l;

	if (book_list(&book_of_skills, "", &l) != 0 || l.n == 0)
		return; /* a project's are looked at with its runs */
	for (size_t i = 0; i < l.n; i++)
		used += !l.items[i].why;
	doctor_check(d, "skills", used == l.n ? true : NOTED,
		     "%zu of %zu of yours can be used (`ava skills`)", used, l.n);
	book_list_free(&l);
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
	doctor_models_ask(d, client);
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
	doctor_models_learned(d);
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
	doctor_models_check(d, forced);
	check_clock(d);
	check_sandbox(d);
	check_search(d);
	check_servers(d);
	doctor_models_places(d);
	jw_end(d->w);
	doctor_models_write_places(d);
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
