/* POST /v1/traces, as the specification of OTLP/HTTP has it: 200 is taken (with
 * partialSuccess some spans were not, which is told and not tried again), 429, 502,
 * 503 and 504 are asked again when they say, a connection that does not come about or
 * breaks too; every other answer is a refusal.
 *
 * OTEL_EXPORTER_OTLP_HEADERS and otel.endpoint are read as others of OpenTelemetry read
 * theirs; no value is ever part of an error.
 *
 * What can fail: the headers that were configured, memory; all else is an answer. */
#include "ava/otel_send.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/redact.h"
#include "codec/utf8.h"
#include "net/http_client.h"
#include "provider/retry.h"

#define PATH          "/v1/traces"
#define HEADER_MAX    4096
#define ANSWER_MAX    65536 /* bytes of an answer that are looked at */
#define MESSAGE_CHARS 160

struct otel_sender {
	struct http_client *client;
	struct http_pool *pool;
	struct http_timers timers;
	char *headers[OTEL_HEADERS_MAX + 2]; /* owned */
	unsigned nheaders;
	struct http_call call;
	struct buf answer;
	bool busy;
	void (*done)(const struct otel_answer *a, void *user);
	void *user;
};

/* ---- headers and address */

static int hex_of(char c)
{
	return isdigit((unsigned char)c)    ? c - '0'
	       : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10
					    : -1;
}

/* In place; false: a byte that no value of a header has. */
static bool decode(char *s)
{
	char *to = s;

	for (; *s != '\0'; s++, to++) {
		*to = *s;
		if (*s == '%' && hex_of(s[1]) >= 0 && hex_of(s[2]) >= 0) {
			*to = (char)(hex_of(s[1]) << 4 | hex_of(s[2]));
			s += 2;
		}
		if ((unsigned char)*to < ' ' || *to == 127)
			return false;
	}
	*to = '\0';
	return true;
}

static bool is_name(const char *s)
{
	for (const char *at = s; *at != '\0'; at++)
		if (!isalnum((unsigned char)*at) && strchr("!#$%&'*+-.^_`|~", *at) == NULL)
			return false;
	return *s != '\0';
}

static char *trim(char *s)
{
	size_t len;

	s += strspn(s, " \t");
	len = strlen(s);
	while (len > 0 && (s[len - 1] == ' ' || s[len - 1] == '\t'))
		s[--len] = '\0';
	return s;
}

static int take_pair(char *pair, unsigned n, int (*each)(const char *header, void *user),
		     void *user, struct ava_error *err)
{
	char header[HEADER_MAX], *value = strchr(pair, '='), *name;

	if (value != NULL)
		*value++ = '\0';
	name = trim(pair);
	if (value == NULL || !is_name(name) || n > OTEL_HEADERS_MAX || !decode(value))
		return err_set(err, AVA_EINVAL,
			       OTEL_HEADERS_NAME ": entry %u is no header: write name=value, "
						 "commas between, at most %d",
			       n, OTEL_HEADERS_MAX);
	if (snprintf(header, sizeof(header), "%s: %s", name, trim(value)) >= HEADER_MAX)
		return err_set(err, AVA_EINVAL, OTEL_HEADERS_NAME ": entry %u is too long", n);
	return each(header, user);
}

int otel_headers(const char *text, int (*each)(const char *header, void *user), void *user,
		 struct ava_error *err)
{
	char *copy = strdup(text != NULL ? text : ""), *save = NULL;
	unsigned n = 0;
	int rv = copy != NULL ? 0 : err_set(err, AVA_ENOMEM, "out of memory");

	for (char *at = copy != NULL ? strtok_r(copy, ",", &save) : NULL; at != NULL && rv == 0;
	     at = strtok_r(NULL, ",", &save))
		if (*trim(at) != '\0')
			rv = take_pair(at, ++n, each, user, err);
	if (copy != NULL)
		explicit_bzero(copy, strlen(text != NULL ? text : ""));
	free(copy);
	return rv;
}

/* "authorization: Basic abc": the value, and what stands behind its first word. */
static int add_secret(const char *header, void *user)
{
	static const char *const words[] = {"auth", "key", "token", "secret", "password"};
	const char *value = strstr(header, ": ") + 2, *rest = strchr(value, ' ');
	size_t name = (size_t)(value - header) - 2;
	char lower[HEADER_MAX];
	bool secret = false;
	int rv;

	for (size_t i = 0; i < name; i++)
		lower[i] = (char)tolower((unsigned char)header[i]);
	lower[name] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		secret |= strstr(lower, words[i]) != NULL;
	if (!secret)
		return 0;
	rv = redact_add(user, value);
	return rv == 0 && rest != NULL ? redact_add(user, rest + 1) : rv;
}

int otel_secrets(struct redact *r, const char *text)
{
	int rv = otel_headers(text, add_secret, r, NULL);

	return rv == AVA_EINVAL ? 0 : rv;
}

void otel_base(const char *endpoint, char *base, size_t size)
{
	size_t len, path = strlen(PATH);

	snprintf(base, size, "%s", endpoint);
	for (len = strlen(base); len > 0 && base[len - 1] == '/'; len--)
		base[len - 1] = '\0';
	if (len > path && strcmp(base + len - path, PATH) == 0)
		base[len - path] = '\0';
}

/* ---- what an answer means */

/* What the collector says; data of a stranger, for people only. */
static void add_message(struct otel_answer *out, const char *text)
{
	size_t used = strlen(out->reason), room = sizeof(out->reason) - used;
	size_t len = text != NULL && utf8_valid(text, strlen(text))
			     ? utf8_prefix(text, strlen(text), MESSAGE_CHARS)
			     : 0;

	if (len + 3 > room)
		len = utf8_prefix(text, len, (room - 3) / 4);
	if (len == 0)
		return;
	snprintf(out->reason + used, room, ": %.*s", (int)len, text);
	for (char *at = out->reason + used; *at != '\0'; at++)
		if ((unsigned char)*at < ' ' || *at == 127)
			*at = ' ';
}

/* 64 bits are strings in the JSON of protocol buffers; some write numbers. */
static int64_t rejected_of(const json_t *partial)
{
	const json_t *v = json_object_get(partial, "rejectedSpans");

	return json_is_string(v)    ? strtoll(json_string_value(v), NULL, 10)
	       : json_is_integer(v) ? (int64_t)json_integer_value(v)
				    : 0;
}

static void judge_taken(const json_t *body, struct otel_answer *out)
{
	const json_t *partial = json_object_get(body, "partialSuccess");
	const char *message = json_get_str(partial, "errorMessage");

	out->verdict = OTEL_TAKEN;
	out->rejected = MAX(rejected_of(partial), (int64_t)0);
	if (out->rejected > 0)
		snprintf(out->reason, sizeof(out->reason), "it left out %" PRId64 " spans",
			 out->rejected);
	else if (message != NULL && message[0] != '\0')
		snprintf(out->reason, sizeof(out->reason), "it took all and warns");
	add_message(out, message);
}

void otel_judge(int status, const char *after, const char *date, int64_t wall_ms, const char *body,
		size_t len, struct otel_answer *out)
{
	const struct retry_failure asked = {.after = after, .date = date};
	json_t *json = len > 0 ? json_parse(body, len, NULL) : NULL;

	*out = (struct otel_answer){.verdict = OTEL_REFUSED, .after_ms = -1};
	if (status >= 200 && status < 300) {
		judge_taken(json, out);
	} else {
		snprintf(out->reason, sizeof(out->reason), "it answers %d%s", status,
			 status >= 300 && status < 400 ? ", another address" : "");
		add_message(out, json_get_str(json, "message"));
		if (status == 429 || (status >= 502 && status <= 504)) {
			out->verdict = OTEL_LATER;
			out->after_ms = retry_asked(&asked, wall_ms);
		}
	}
	json_decref(json);
}

/* ---- the call */

static int add_header(const char *header, void *user)
{
	struct otel_sender *s = user;
	char *copy = strdup(header);

	if (copy == NULL)
		return AVA_ENOMEM;
	s->headers[s->nheaders++] = copy;
	return 0;
}

void otel_sender_free(struct otel_sender *s)
{
	if (s == NULL)
		return;
	otel_send_stop(s);
	http_pool_free(s->pool);
	http_client_free(s->client);
	for (unsigned i = 0; i < s->nheaders; i++) {
		explicit_bzero(s->headers[i], strlen(s->headers[i]));
		free(s->headers[i]);
	}
	buf_fini(&s->answer);
	free(s);
}

struct otel_sender *otel_sender_new(struct os_loop *loop, const char *endpoint, const char *headers,
				    int64_t timeout_ms, struct ava_error *err)
{
	struct otel_sender *s = calloc(1, sizeof(*s));
	struct http_pool_options o = {.connections_max = 1};
	char base[1024];
	int rv;

	if (s == NULL) {
		err_set(err, AVA_ENOMEM, "out of memory");
		return NULL;
	}
	buf_init(&s->answer, ANSWER_MAX);
	s->timers = (struct http_timers){timeout_ms, timeout_ms, timeout_ms, timeout_ms};
	otel_base(endpoint, base, sizeof(base));
	o.base_url = base;
	rv = add_header("Content-Type: application/json", s);
	if (rv == 0)
		rv = add_header("User-Agent: ava/" AVA_VERSION, s);
	if (rv == 0)
		rv = otel_headers(headers, add_header, s, err);
	if (rv == AVA_ENOMEM)
		err_set(err, rv, "out of memory");
	s->client = rv == 0 ? http_client_new(loop, err) : NULL;
	s->pool = s->client != NULL ? http_pool_new(s->client, &o, err) : NULL;
	if (s->pool != NULL)
		return s;
	otel_sender_free(s);
	return NULL;
}

static bool on_data(struct http_call *c, const char *bytes, size_t n)
{
	struct otel_sender *s = c->user;

	(void)buf_add(&s->answer, bytes, MIN(n, ANSWER_MAX - s->answer.len));
	return false; /* one that drips must not go on for ever */
}

static void on_done(struct http_call *c, int rv, const struct ava_error *err)
{
	struct otel_sender *s = c->user;
	struct otel_answer a = {.verdict = OTEL_LATER, .after_ms = -1};

	if (rv == 0)
		otel_judge(c->status, http_call_header(c, "retry-after"),
			   http_call_header(c, "date"), clock_wall_ms(), s->answer.data,
			   s->answer.len, &a);
	else
		snprintf(a.reason, sizeof(a.reason), "%.290s", err->text);
	s->busy = false;
	s->done(&a, s->user);
}

int otel_send(struct otel_sender *s, struct buf *body,
	      void (*done)(const struct otel_answer *a, void *user), void *user,
	      struct ava_error *err)
{
	int rv;

	buf_reset(&s->answer);
	s->done = done;
	s->user = user;
	s->call = (struct http_call){
		.path = PATH,
		.headers = (const char *const *)s->headers,
		.nheaders = s->nheaders,
		.body = *body,
		.timers = s->timers,
		.data = on_data,
		.done = on_done,
		.user = s,
	};
	rv = http_call_start(s->pool, &s->call, err);
	if (rv != 0)
		return rv;
	s->busy = true;
	buf_init(body, body->max);
	return 0;
}

void otel_send_stop(struct otel_sender *s)
{
	if (s->busy)
		http_call_stop(&s->call);
	s->busy = false;
}
