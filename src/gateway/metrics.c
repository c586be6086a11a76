/* See metrics.h.
 *
 * Happy path of a scrape: the token is the one of the file, where there is one; without one the
 * address is a loopback's, and so is the name that the request gives it, since a page in a browser
 * could have another name lead here. Then all figures are written from memory; nothing is asked of
 * the disk. What can fail: settings that would show the figures to strangers or cannot be read (the
 * daemon does not start), an address that cannot be had (it does, and says so). */
#include "gateway/metrics.h"

#include <arpa/inet.h>
#include <ava.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <nettle/memops.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ava/config.h"
#include "ava/state.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/keys.h"
#include "codec/redact.h"
#include "net/http_server.h"
#include "subagent/person.h"
#include "subagent/run.h"
#include "subagent/tally.h"

#define TOKEN_MOST      256
#define TEXT_MAX        (1u << 20)
#define CONNECTIONS_MAX 16
#define BODY_MAX        1024

struct metrics {
	struct core *core;
	const unsigned *streams;
	struct http_server *http; /* NULL: not listening */
	char token[TOKEN_MOST + 1];
};

/* ---- the text */

/* Name, type and help of a family, whose samples follow. */
static void family(struct buf *b, const char *name, const char *type, const char *help)
{
	buf_addf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void metric(struct buf *b, const char *name, const char *type, const char *help,
		   double value)
{
	family(b, name, type, help);
	buf_addf(b, "%s %.15g\n", name, value);
}

/* `name="value"`, behind "{" or ",". */
static void label(struct buf *b, char before, const char *name, const char *value)
{
	buf_addf(b, "%c%s=\"", before, name);
	for (; *value; value++) {
		if (*value == '\n') {
			buf_adds(b, "\\n");
			continue;
		}
		if (*value == '"' || *value == '\\')
			buf_addc(b, '\\');
		buf_addc(b, *value);
	}
	buf_addc(b, '"');
}

static void metrics_runs(struct buf *b, const struct core *c)
{
	int64_t now = clock_wall_ms(), slot_ms = now, person_ms = now;
	unsigned n[AVA_NSTATUSES] = {0};

	LIST_EACH (&c->sup.live, at, tmp) {
		const struct run *r = LIST_ENTRY(at, struct run, node);
		const struct question *q = person_question(r);
		enum ava_status s = run_status(r);

		n[s]++;
		if (s == AVA_QUEUED && r->spawned_wall_ms)
			slot_ms = MIN(slot_ms, r->spawned_wall_ms);
		if (q)
			person_ms = MIN(person_ms, q->asked_ms);
	}
	family(b, "ava_runs", "gauge", "Runs that have not ended, by what they do");
	for (enum ava_status s = 0; s < AVA_SUCCESS; s++)
		buf_addf(b, "ava_runs{state=\"%s\"} %u\n", ava_status_name(s), n[s]);
	family(b, "ava_oldest_wait_seconds", "gauge",
	       "How long the run that waits longest does, for a slot or for an answer of a person");
	buf_addf(b, "ava_oldest_wait_seconds{reason=\"slot\"} %.15g\n",
		 (double)(now - slot_ms) / 1000);
	buf_addf(b, "ava_oldest_wait_seconds{reason=\"person\"} %.15g\n",
		 (double)(now - person_ms) / 1000);
	metric(b, "ava_runs_spawned_total", "counter", "Runs of this data root",
	       (double)c->sup.total);
	metric(b, "ava_slots", "gauge", "Runs that may work at once", (double)c->settings.runs_max);
	metric(b, "ava_slots_used", "gauge", "Of them those that do", (double)c->sup.slots_used);
	metric(b, "ava_proposals_pending", "gauge", "Quotes without an answer", c->npending);
}

static void metrics_rows(struct buf *b, const struct tally *t, enum tally_kind kind)
{
	static const struct {
		const char *name, *help, *of;
	} counters[TALLY_NKINDS] = {
		[TALLY_ENDS] = {"ava_runs_ended_total", "Runs that ended", "role"},
		[TALLY_ERRORS] = {"ava_model_errors_total", "Calls of a model that failed",
				  "class"},
		[TALLY_TOOLS] = {"ava_tool_calls_total", "Calls of tools", "tool"},
	};
	const struct tally_row *row = t->rows[kind];

	family(b, counters[kind].name, "counter", counters[kind].help);
	for (; row < t->rows[kind] + t->nrows[kind]; row++) {
		buf_adds(b, counters[kind].name);
		label(b, '{', counters[kind].of, row->name);
		if (kind == TALLY_TOOLS)
			label(b, ',', "success", row->status ? "true" : "false");
		else
			label(b, ',', "model", t->models[row->model].name);
		if (kind == TALLY_ENDS)
			label(b, ',', "status", ava_status_name((enum ava_status)row->status));
		buf_addf(b, "} %" PRId64 "\n", row->n);
	}
}

static void metrics_took(struct buf *b, const struct tally_model *m)
{
	static const char name[] = "ava_model_call_seconds";
	int64_t n = 0;

	for (unsigned i = 0; i <= TALLY_BOUNDS; i++) {
		n += m->took[i];
		buf_addf(b, "%s_bucket", name);
		label(b, '{', "model", m->name);
		if (i < TALLY_BOUNDS)
			buf_addf(b, ",le=\"%.15g\"} %" PRId64 "\n",
				 (double)tally_bound_ms(i) / 1000, n);
		else
			buf_addf(b, ",le=\"+Inf\"} %" PRId64 "\n", n);
	}
	buf_addf(b, "%s_sum", name);
	label(b, '{', "model", m->name);
	buf_addf(b, "} %.15g\n%s_count", (double)m->ms / 1000, name);
	label(b, '{', "model", m->name);
	buf_addf(b, "} %" PRId64 "\n", n);
}

static void metrics_models(struct buf *b, const struct tally *t)
{
	static const char *const kinds[TALLY_NTOKENS] = {
		[TALLY_INPUT] = "input",
		[TALLY_CACHE_READ] = "cache_read",
		[TALLY_CACHE_WRITE] = "cache_write",
		[TALLY_OUTPUT] = "output",
		[TALLY_REASONING] = "reasoning",
	};
	const struct tally_model *m, *end = t->models + t->nmodels;
	const struct tally_model *first = t->models + (t->nmodels < TALLY_MODELS); /* "other" */

	family(b, "ava_model_call_seconds", "histogram",
	       "Calls of a model, each attempt of its own, and how long they took");
	for (m = first; m < end; m++)
		metrics_took(b, m);
	family(b, "ava_tokens_total", "counter", "Tokens, each of one kind only");
	for (m = first; m < end; m++) {
		for (unsigned i = 0; i < TALLY_NTOKENS; i++) {
			buf_adds(b, "ava_tokens_total");
			label(b, '{', "model", m->name);
			label(b, ',', "kind", kinds[i]);
			buf_addf(b, "} %" PRId64 "\n", m->tokens[i]);
		}
	}
	family(b, "ava_cost_usd_total", "counter", "Cost of calls whose price is known");
	for (m = first; m < end; m++) {
		buf_adds(b, "ava_cost_usd_total");
		label(b, '{', "model", m->name);
		buf_addf(b, "} %.15g\n", (double)m->microusd / 1e6);
	}
}

static int metrics_write(const struct metrics *m, struct buf *b)
{
	struct core *c = m->core;
	struct ava_error err;
	struct journal_stats js;

	journal_stats(c->journal, &js);
	family(b, "ava_build_info", "gauge", "Version of the daemon");
	buf_addf(b, "ava_build_info{version=\"%s\"} 1\n", ava_version());
	metric(b, "ava_healthy", "gauge", "1 when new work is taken", core_ready(c, &err) == 0);
	metric(b, "ava_uptime_seconds", "gauge", "Since the daemon began",
	       (double)(clock_mono_ms() - c->started_ms) / 1000);
	metrics_runs(b, c);
	for (enum tally_kind kind = 0; kind < TALLY_NKINDS; kind++)
		metrics_rows(b, c->sup.tally, kind);
	metrics_models(b, c->sup.tally);
	metric(b, "ava_journal_events_total", "counter", "Events of this data root",
	       (double)logbook_shown(&c->book));
	metric(b, "ava_journal_commits_total", "counter", "Commits", (double)js.commits);
	metric(b, "ava_journal_flushes_total", "counter", "Flushes", (double)js.flushes);
	metric(b, "ava_journal_queued_bytes", "gauge", "Waiting for the disk",
	       (double)js.queued_bytes);
	metric(b, "ava_journal_held_commits", "gauge", "Waiting for a file that cannot be written",
	       (double)js.held_commits);
	metric(b, "ava_loop_gaps_total", "counter", "Turns of the loop over 20 ms",
	       (double)os_loop_gaps(c->loop));
	metric(b, "ava_event_streams", "gauge", "Open event streams", *m->streams);
	return buf_check(b);
}

/* ---- requests */

static void metrics_say(struct http_request *req, int status, const char *text)
{
	static const struct http_field ask[] = {{"WWW-Authenticate", "Bearer"}};
	struct http_answer a = {.status = status,
				.content_type = "text/plain; charset=utf-8",
				.body = text,
				.len = strlen(text),
				.fields = ask,
				.nfields = status == 401};

	http_reply_with(req, &a);
}

void metrics_send(const struct metrics *m, struct http_request *req)
{
	static const struct http_field fields[] = {{"Cache-Control", "no-store"},
						   {"X-Content-Type-Options", "nosniff"}};
	struct http_answer a = {.status = 200,
				.content_type = "text/plain; version=0.0.4; charset=utf-8",
				.fields = fields,
				.nfields = ARRAY_LEN(fields)};
	struct buf b;

	buf_init(&b, TEXT_MAX);
	if (metrics_write(m, &b) == 0) {
		a.body = b.data;
		a.len = b.len;
		http_reply_with(req, &a);
	} else {
		metrics_say(req, 503, "out of memory\n");
	}
	buf_fini(&b);
}

bool metrics_allows(const struct metrics *m, const char *authorization)
{
	const char *given = authorization ? authorization + strcspn(authorization, " ") : "";
	size_t len = strlen(m->token);

	return len > 0 && strlen(given) == 1 + len &&
	       strncasecmp(authorization, "Bearer ", 7) == 0 &&
	       memeql_sec(given + 1, m->token, len);
}

/* "127.0.0.1:9464" and its like. */
static bool is_loopback_name(const char *host)
{
	static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};

	for (size_t i = 0; host && i < ARRAY_LEN(names); i++) {
		size_t len = strlen(names[i]);

		if (strncasecmp(host, names[i], len) == 0 && (host[len] == ':' || !host[len]))
			return true;
	}
	return false;
}

static void metrics_handle(struct http_request *req, void *user)
{
	const struct metrics *m = user;

	if (m->token[0] && !metrics_allows(m, http_header(req, "Authorization")))
		metrics_say(req, 401, "send the token of metrics.token as Bearer\n");
	else if (!m->token[0] && !is_loopback_name(http_header(req, "Host")))
		metrics_say(req, 421, "this address is known by another name\n");
	else if (strcmp(req->path, "/metrics") != 0)
		metrics_say(req, 404, "the figures are at /metrics\n");
	else if (strcmp(req->method, "GET") != 0 && strcmp(req->method, "HEAD") != 0)
		metrics_say(req, 405, "this path takes GET only\n");
	else
		metrics_send(m, req);
}

/* ---- settings */

static int metrics_token(const char *path, char token[TOKEN_MOST + 1], struct ava_error *err)
{
	char *text = NULL;
	size_t len = 0;
	int rv;

	if (!path[0])
		return 0;
	if (path[0] != '/')
		return err_set(err, AVA_EINVAL,
			       "metrics.token is %.200s: write the path of a file from / on", path);
	rv = settings_read_file(path, TOKEN_MOST, &text, &len, err);
	if (rv == AVA_ENOENT)
		return err_set(err, rv,
			       "metrics.token: there is no file %.200s: make it, as with (umask "
			       "027; openssl rand -hex 32 >FILE), and let Prometheus read it",
			       path);
	if (rv != 0)
		return err_wrap(err, rv, "metrics.token");
	snprintf(token, TOKEN_MOST + 1, "%.*s", (int)strcspn(text, "\r\n"), text);
	explicit_bzero(text, len);
	free(text);
	return keys_check("metrics.token", token, err);
}

static int metrics_address(const char *text, bool open, struct sockaddr_in *a,
			   struct ava_error *err)
{
	const char *colon = strrchr(text, ':');
	char host[INET_ADDRSTRLEN + 1], *end = NULL;
	long port = colon ? strtol(colon + 1, &end, 10) : 0;

	snprintf(host, sizeof(host), "%.*s", colon ? (int)(colon - text) : 0, text);
	*a = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
	if (port < 1 || port > 65535 || *end || inet_pton(AF_INET, host, &a->sin_addr) != 1)
		return err_set(err, AVA_EINVAL,
			       "metrics.listen is %.80s: write address and port, as 127.0.0.1:9464",
			       text);
	if (!open && ntohl(a->sin_addr.s_addr) >> 24 != IN_LOOPBACKNET)
		return err_set(err, AVA_EDENIED,
			       "metrics.listen is %.80s, which others can reach: name the file of "
			       "a token in metrics.token, or listen at 127.0.0.1",
			       text);
	return 0;
}

/* ---- life */

static int metrics_listen(struct metrics *m, const struct sockaddr_in *a, struct ava_error *err)
{
	const struct http_server_options o = {.connections_max = CONNECTIONS_MAX,
					      .body_max = BODY_MAX};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), on = 1;

	if (fd < 0)
		return err_sys(err, "socket");
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (bind(fd, (const struct sockaddr *)a, sizeof(*a)) != 0 ||
	    listen(fd, CONNECTIONS_MAX) != 0) {
		err_sys(err, "that address cannot be had");
		close(fd);
		return err->code;
	}
	m->http = http_server_new(m->core->loop, fd, &o, metrics_handle, m, err);
	return m->http ? 0 : err->code;
}

int metrics_new(struct metrics **out, const struct config *config, struct core *core,
		const unsigned *streams, struct redact *redact,
		void (*log)(const char *line, void *user), void *log_user, struct ava_error *err)
{
	const char *at = config->metrics_listen;
	struct metrics *m = calloc(1, sizeof(*m));
	struct sockaddr_in a;
	char line[1200];
	int rv;

	if (!m)
		return err_set(err, AVA_ENOMEM, "out of memory");
	m->core = core;
	m->streams = streams;
	rv = metrics_token(config->metrics_token, m->token, err);
	if (rv == 0 && m->token[0] && (rv = redact_add(redact, m->token)) != 0)
		err_set(err, rv, "metrics.token cannot be kept out of the log");
	if (rv == 0 && at[0])
		rv = metrics_address(at, m->token[0], &a, err);
	if (rv != 0) {
		metrics_free(m);
		return rv;
	}
	*out = m;
	if (!at[0])
		return 0;
	rv = metrics_listen(m, &a, err);
	snprintf(line, sizeof(line), "metrics.listen is %s: %s%s", at,
		 rv == 0 ? "Prometheus is served there" : "nobody is served there: ",
		 rv == 0 ? "" : err->text);
	log(line, log_user);
	return 0;
}

void metrics_free(struct metrics *m)
{
	if (!m)
		return;
	http_server_stop(m->http);
	explicit_bzero(m->token, sizeof(m->token));
	free(m);
}

bool metrics_has_token(const struct metrics *m)
{
	return m->token[0] != '\0';
}

bool metrics_listens(const struct metrics *m)
{
	return m && m->http;
}
