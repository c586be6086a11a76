/* From a whole request to the last byte of its reply.
 *
 * The request is read into the tape, checked as its service would, put to its
 * conversation, and answered: a verdict, a fault, or a reply that is rendered
 * at once and then released in chunks by a timer. A fault that is counted is
 * taken from the conversation's plan when it is played. */
#include "serve.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/util.h"

/* Comments without a number: one each 100 ms, for an hour. */
#define COMMENTS   36000
#define COMMENT_MS 100

void serve_init(struct serve *s, struct loop *loop)
{
	*s = (struct serve){.loop = loop, .convos = convos_new()};
	plan_default(&s->plan);
	account_init(&s->account);
	tape_init(&s->tape);
}

void serve_fini(struct serve *s)
{
	rules_free(s->rules);
	convos_free(s->convos);
	account_fini(&s->account);
	tape_fini(&s->tape);
}

/* ---- headers ---- */

static void add_date(struct buf *out, const char *name, int64_t seconds)
{
	time_t at = time(NULL) + (time_t)seconds;
	struct tm tm;
	char text[64];

	gmtime_r(&at, &tm);
	strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &tm);
	buf_addf(out, "%s: %s\n", name, text);
}

static void add_lines(struct buf *out, const struct ask *a, const char *type, uint64_t serial)
{
	buf_addf(out, "content-type: %s\n", type);
	add_date(out, "date", 0);
	switch (a->service) {
	case SERVICE_ANTHROPIC:
		buf_addf(out, "request-id: req_01%016" PRIx64 "\n", serial);
		break;
	case SERVICE_OPENROUTER:
		buf_addf(out, "x-generation-id: gen-%016" PRIx64 "\n", serial);
		break;
	case SERVICE_OPENAI:
	case SERVICE_LOCAL:
		buf_addf(out, "x-request-id: req_%016" PRIx64 "\n", serial);
		break;
	}
}

static void add_retry(struct buf *out, const struct fault *f)
{
	if (f->retry_after >= 0)
		buf_addf(out, "retry-after: %d\n", f->retry_after);
	if (f->retry_date >= 0)
		add_date(out, "retry-after", f->retry_date);
	if (f->retry_ms >= 0)
		buf_addf(out, "retry-after-ms: %d\n", f->retry_ms);
	if (f->should_retry >= 0)
		buf_addf(out, "x-should-retry: %s\n", f->should_retry ? "true" : "false");
}

/* ---- whole answers ---- */

static void finish(struct exchange *x, enum ending how)
{
	x->ended = true; /* by us, not by the client */
	exchange_end(x, how);
}

void serve_answer(struct exchange *x, int status, const char *lines, const struct buf *body)
{
	x->reply.stream = false;
	buf_reset(&x->reply.bytes);
	buf_add(&x->reply.bytes, body->data ? body->data : "", body->len);
	exchange_head(x, status, lines, (int64_t)body->len);
	exchange_release(x, body->len);
	finish(x, END_WHOLE);
}

static struct row *row_of(struct serve *s, struct exchange *x)
{
	return account_row(&s->account, x->row);
}

static void note_status(struct serve *s, struct exchange *x, int status)
{
	struct row *r = row_of(s, x);

	if (status >= 0 && status < 600)
		s->account.status[status]++;
	if (r != NULL)
		r->status = status;
}

/* `body` ends with that; `f`: what its headers say, or NULL. */
static void answer_body(struct serve *s, struct exchange *x, int status, const char *type,
			struct buf *body, const struct fault *f)
{
	struct buf lines;

	buf_init(&lines, 1u << 16);
	add_lines(&lines, x->ask, type, s->serial);
	if (f != NULL)
		add_retry(&lines, f);
	note_status(s, x, status);
	serve_answer(x, status, lines.data, body);
	buf_fini(&lines);
	buf_fini(body);
}

static void answer_verdict(struct serve *s, struct exchange *x, const struct verdict *v,
			   const struct fault *f)
{
	struct row *r = row_of(s, x);
	struct buf body;
	char id[40];

	snprintf(id, sizeof id, "req_01%016" PRIx64, s->serial);
	buf_init(&body, 1u << 20);
	verdict_body(x->ask, v, id, &body);
	if (r != NULL)
		snprintf(r->error, sizeof r->error, "%.*s", (int)sizeof r->error - 1, v->text);
	if (f == NULL) {
		s->account.refused++;
		s->account.prefix_broken += strncmp(v->text, "mock: ", 6) == 0;
		if (!s->quiet)
			fprintf(stderr, "mock-models: request %u refused: %d %s\n", x->row,
				v->status, v->text);
	}
	answer_body(s, x, v->status, "application/json", &body, f);
}

/* ---- faults that replace the reply ---- */

static const struct status_row {
	int status;
	const char *anthropic, *openai, *openrouter, *text;
} status_rows[] = {
	{400, "invalid_request_error", "invalid_request_error", "invalid_request",
	 "mock: bad request"},
	{401, "authentication_error", "invalid_request_error", "authentication",
	 "invalid x-api-key"},
	{402, "billing_error", "insufficient_quota", "payment_required", "Insufficient credits"},
	{403, "permission_error", "permission", "content_policy_violation",
	 "Your request was not allowed"},
	{404, "not_found_error", "invalid_request_error", "not_found", "model: not found"},
	{408, "timeout_error", "timeout", "timeout", "Request timeout"},
	{409, "invalid_request_error", "conflict", "conflict", "Conflict"},
	{413, "request_too_large", "invalid_request_error", "payload_too_large",
	 "Request exceeds the maximum allowed number of bytes."},
	{422, "invalid_request_error", "invalid_request_error", "unprocessable", "Unprocessable"},
	{429, "rate_limit_error", "rate_limit_exceeded", "rate_limit_exceeded",
	 "This request would exceed your rate limit. Please try again later."},
	{500, "api_error", "server_error", "server", "Internal server error"},
	{502, "api_error", "server_error", "provider_unavailable", "Provider returned error"},
	{503, "api_error", "server_error", "provider_overloaded", "Service unavailable"},
	{504, "timeout_error", "server_error", "timeout", "Gateway timeout"},
	{529, "overloaded_error", "overloaded", "provider_overloaded", "Overloaded"},
};

static void status_verdict(const struct ask *a, int status, struct verdict *v)
{
	for (size_t i = 0; i < ARRAY_LEN(status_rows); i++) {
		const struct status_row *r = &status_rows[i];

		if (r->status != status)
			continue;
		verdict_set(v, status,
			    a->service == SERVICE_ANTHROPIC    ? r->anthropic
			    : a->service == SERVICE_OPENROUTER ? r->openrouter
							       : r->openai,
			    "%s", r->text);
		return;
	}
	verdict_set(v, status, "api_error", "mock: status %d", status);
}

/* An account that cannot pay, which each service says in its own way. */
static void quota_verdict(const struct ask *a, struct verdict *v)
{
	if (a->service == SERVICE_ANTHROPIC) {
		verdict_set(
			v, 400, "invalid_request_error",
			"Your credit balance is too low to access the Anthropic API. Please go to "
			"Plans & Billing to upgrade or purchase credits.");
	} else if (a->service == SERVICE_OPENROUTER) {
		verdict_set(v, 402, "payment_required",
			    "Insufficient credits. Add more using "
			    "https://openrouter.ai/settings/credits");
	} else {
		v->code = "insufficient_quota";
		verdict_set(v, 429, "insufficient_quota",
			    "You exceeded your current quota, please check your plan and billing "
			    "details.");
	}
}

static const char html[] = "<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head>\n"
			   "<body><center><h1>502 Bad Gateway</h1></center></body></html>\n";

static void answer_text(struct serve *s, struct exchange *x, int status, const char *type,
			const char *text)
{
	struct buf body;

	buf_init(&body, 1u << 20);
	buf_adds(&body, text);
	answer_body(s, x, status, type, &body, NULL);
}

static void answer_json200(struct serve *s, struct exchange *x)
{
	struct verdict v = {0};
	struct buf body;

	status_verdict(x->ask, x->ask->service == SERVICE_ANTHROPIC ? 529 : 503, &v);
	buf_init(&body, 1u << 20);
	verdict_body(x->ask, &v, "req_011mock", &body);
	answer_text(s, x, 200, "application/json", body.data);
	buf_fini(&body);
}

/* True: the exchange is answered (and may be gone). */
static bool fault_instead(struct serve *s, struct exchange *x, const struct fault *f)
{
	struct verdict v = {0};

	switch (f->kind) {
	case FAULT_RESET:
		x->ended = true;
		exchange_half_head(x);
		break;
	case FAULT_CLOSE:
		finish(x, END_CUT);
		break;
	case FAULT_STALL_HEAD:
		break;
	case FAULT_STATUS:
		status_verdict(x->ask, f->arg, &v);
		break;
	case FAULT_QUOTA:
		quota_verdict(x->ask, &v);
		break;
	case FAULT_OVERFLOW:
		check_window(x->ask, x->ask->window + 1, &v);
		break;
	case FAULT_HTML500:
		answer_text(s, x, 500, "text/html", html);
		break;
	case FAULT_HTML200:
		answer_text(s, x, 200, "text/html; charset=utf-8", html);
		break;
	case FAULT_EMPTY200:
		answer_text(s, x, 200, "text/event-stream; charset=utf-8", "");
		break;
	case FAULT_JSON200:
		answer_json200(s, x);
		break;
	default:
		return false;
	}
	if (v.status != 0)
		answer_verdict(s, x, &v, f);
	return true;
}

/* The fault to play now, if any: it is counted. */
static const struct fault *fault_take(struct serve *s, struct convo *x, uint32_t turn)
{
	for (unsigned i = 0; i < x->plan.nfaults; i++) {
		const struct fault *f = &x->plan.faults[i];

		if (f->turn >= 0 && (uint32_t)f->turn != turn)
			continue;
		if (f->times >= 0 && x->played[i] >= f->times)
			continue;
		if (x->played[i] < UINT16_MAX)
			x->played[i]++;
		s->account.faults++;
		return f;
	}
	return NULL;
}

/* ---- playing ---- */

static void reply_sent(struct serve *s, struct exchange *x)
{
	struct row *r = row_of(s, x);

	if (r != NULL) {
		r->done = true;
		r->took_ms = loop_now(s->loop) - x->start_ms;
	}
	s->account.done++;
	x->convo->answered = x->fault == FAULT_NONE;
	finish(x, END_WHOLE);
}

static size_t step_end(const struct exchange *x, unsigned step)
{
	const struct reply *r = &x->reply;

	if (x->steps > r->n) /* byte by byte */
		return r->bytes.len * (step + 1) / x->steps;
	return r->ends[(uint64_t)(step + 1) * r->n / x->steps - 1];
}

static void play_fault(struct exchange *x)
{
	if (x->fault == FAULT_CUT)
		finish(x, END_CUT);
	else if (x->fault == FAULT_EOF || x->fault == FAULT_COMMENTS || x->fault == FAULT_NO_END)
		finish(x, END_WHOLE);
	/* a stall: nothing more comes, until the client leaves */
}

static int64_t step_due(const struct exchange *x)
{
	int64_t rest = x->latency_ms - x->first_ms;

	if (x->steps == 1)
		return x->start_ms + x->latency_ms;
	return x->start_ms + x->first_ms + rest * x->step / (x->steps - 1);
}

static void play(struct timer *t)
{
	struct exchange *x = CONTAINER_OF(t, struct exchange, timer);
	struct serve *s = x->conn->serve;

	do {
		size_t end = step_end(x, x->step++);

		if (end >= x->stop_at) {
			exchange_release(x, x->stop_at);
			play_fault(x);
			return;
		}
		exchange_release(x, end);
		if (x->step == x->steps) {
			reply_sent(s, x);
			return;
		}
		if (x->conn->dead)
			return;
	} while (step_due(x) <= loop_now(s->loop));
	timer_set(s->loop, &x->timer, step_due(x));
}

static int64_t first_chunk_ms(const struct plan *p)
{
	return p->first_ms >= 0 ? MIN(p->first_ms, p->latency_ms) : p->latency_ms / p->chunks;
}

static void start(struct serve *s, struct exchange *x, const struct fault *f)
{
	const enum fault_kind kind = f ? f->kind : FAULT_NONE;
	const struct plan *p = &x->convo->plan;
	struct buf lines;

	x->steps = MAX(1, MIN(p->chunks, x->reply.n));
	x->latency_ms = p->latency_ms + x->delay_ms;
	x->first_ms = first_chunk_ms(p) + x->delay_ms;
	x->stop_at = SIZE_MAX;
	if (f != NULL && kind == FAULT_COMMENTS && f->arg == 0) {
		x->steps = COMMENTS;
		x->latency_ms = (int64_t)COMMENTS * COMMENT_MS;
		x->first_ms = COMMENT_MS;
	}
	if (kind == FAULT_CUT || kind == FAULT_EOF || kind == FAULT_STALL)
		x->stop_at = MIN((size_t)f->arg, x->reply.bytes.len);
	if (kind == FAULT_NO_END)
		x->stop_at = x->reply.n > 1 ? x->reply.ends[x->reply.n - 2] : 0;
	if (kind == FAULT_STALL_FIRST || kind == FAULT_COMMENTS)
		x->stop_at = kind == FAULT_COMMENTS ? x->reply.bytes.len : 0;
	buf_init(&lines, 1u << 16);
	add_lines(&lines, x->ask,
		  x->reply.stream ? "text/event-stream; charset=utf-8" : "application/json",
		  s->serial);
	note_status(s, x, 200);
	exchange_head(x, 200, lines.data, x->reply.stream ? -1 : (int64_t)x->reply.bytes.len);
	buf_fini(&lines);
	free(x->ask);
	x->ask = NULL;
	timer_init(&x->timer, play);
	/* HTTP/2 calls from inside its parser, where nothing can be sent yet. */
	if (x->stream == 0 && (step_due(x) <= loop_now(s->loop) || x->stop_at == 0))
		play(&x->timer);
	else
		timer_set(s->loop, &x->timer, step_due(x));
}

/* Nothing but comments: as many as told, else for as long as the client stays. */
static void render_comments(struct exchange *x, const struct fault *f)
{
	int32_t n = f->arg > 0 ? MIN(f->arg, 1 << 20) : COMMENTS;

	x->reply.stream = true;
	for (int32_t i = 0; i < n; i++) {
		buf_adds(&x->reply.bytes, ": OPENROUTER PROCESSING\n\n");
		reply_event(&x->reply);
	}
}

static void account_reply(struct serve *s, struct exchange *x, const struct say *say)
{
	struct account *a = &s->account;
	struct row *r = row_of(s, x);
	int64_t output = x->reply.output_tokens;

	a->input_tokens += say->tokens.input;
	a->cache_read_tokens += say->tokens.cache_read;
	a->cache_write_tokens += say->tokens.cache_write;
	a->output_tokens += output;
	a->cost_microusd += account_cost(say->ask->facts, say->tokens, output);
	if (r == NULL)
		return;
	r->tokens = say->tokens;
	r->output_tokens = output;
	r->turn = say->ask->nassistant;
}

/* Fingerprints of replies that a client has to repair say nothing. */
static bool comparable(const struct exchange *x)
{
	return x->fault == FAULT_NONE && (x->convo->plan.quirks & QUIRK_NO_IDS) == 0;
}

static void render(struct serve *s, struct exchange *x, const struct fault *f)
{
	int64_t now = loop_now(s->loop);
	struct content content;
	struct say say = {.ask = x->ask, .convo = x->convo, .fault = f, .serial = ++s->serial};

	say.tokens = cache_tokens(s->convos, x->ask, now, now + first_chunk_ms(&x->convo->plan));
	content_make(x->ask, x->convo, f, &content);
	say.content = &content;
	x->delay_ms = content.delay_ms;
	say.cost = account_cost(x->ask->facts, say.tokens, 64);
	if (f != NULL && f->kind == FAULT_COMMENTS)
		render_comments(x, f);
	else
		reply_render(&x->reply, &say);
	if (x->reply.stream)
		x->convo->sent = comparable(x) ? x->reply.print : 0;
	x->convo->odd = f != NULL;
	account_reply(s, x, &say);
	content_fini(&content);
}

/* ---- requests ---- */

static enum service service_of(const struct ask *a)
{
	if (strncmp(a->path, "/api/", 5) == 0)
		return SERVICE_OPENROUTER;
	if (strncmp(a->path, "/local/", 7) == 0)
		return SERVICE_LOCAL;
	return strstr(a->path, "/messages") != NULL ? SERVICE_ANTHROPIC : SERVICE_OPENAI;
}

static void begin_row(struct serve *s, struct exchange *x)
{
	struct account *a = &s->account;
	struct row *r;

	x->start_ms = loop_now(s->loop);
	x->row = (uint32_t)++a->requests;
	if (++a->active > a->active_max)
		a->active_max = a->active;
	if (a->first_ms == 0)
		a->first_ms = x->start_ms;
	a->last_ms = x->start_ms;
	r = &a->rows[x->row % ROWS];
	*r = (struct row){.number = x->row, .service = x->ask->service, .start_ms = x->start_ms};
}

static void write_log(struct serve *s, const struct exchange *x, const struct verdict *v)
{
	bool valid = x->body.len > 0 && s->tape.text == x->body.data && s->tape.error[0] == '\0';
	char from[16];

	if (s->log == NULL)
		return;
	exchange_peer(x, from);
	fprintf(s->log,
		"{\"number\":%u,\"atMs\":%" PRId64 ",\"from\":\"%s\","
		"\"path\":\"%s\",\"refused\":%d,\"body\":%s}\n",
		x->row, x->start_ms, from, x->ask->path, v->status, valid ? x->body.data : "null");
	fflush(s->log);
}

static bool check(struct serve *s, struct exchange *x, struct verdict *v)
{
	struct ask *a = x->ask;

	a->body_len = x->body.len;
	s->tape.text = "";
	if (!check_headers(a, v))
		return false;
	if (!tape_read(&s->tape, x->body.data ? x->body.data : "", x->body.len))
		return verdict_set(
			v, 400, "invalid_request_error",
			a->service == SERVICE_ANTHROPIC
				? "The request body is not valid JSON: %s"
				: "We could not parse the JSON body of your request. (%s)",
			s->tape.error);
	if (!ask_read(a, &s->tape, v))
		return false;
	return check_body(a, v);
}

static void fill_row(struct serve *s, struct exchange *x)
{
	struct row *r = row_of(s, x);

	snprintf(r->model, sizeof r->model, "%.*s", (int)sizeof r->model - 1, x->ask->model);
	r->messages = x->ask->nmessages;
	r->max_tokens = x->ask->max_tokens;
	r->thinking = x->ask->thinking;
	r->convo = x->convo ? x->convo->id : 0;
}

static void completion(struct serve *s, struct exchange *x)
{
	struct verdict v = {0};
	const struct fault *f;
	bool good;

	x->ask->service = service_of(x->ask);
	x->ask->items = strstr(x->ask->path, "/responses") != NULL;
	begin_row(s, x);
	good = check(s, x, &v);
	if (good) {
		x->convo = convo_find(s->convos, x->ask, &s->plan, s->rules, &v);
		good = x->convo != NULL;
	}
	if (x->convo != NULL) {
		x->convo->active++;
		s->account.conversations = convos_count(s->convos);
		good = check_window(x->ask, (int64_t)x->ask->body_len / 4, &v);
	}
	fill_row(s, x);
	write_log(s, x, &v);
	if (!good) {
		answer_verdict(s, x, &v, NULL);
		return;
	}
	f = fault_take(s, x->convo, x->ask->nassistant);
	x->fault = f ? f->kind : FAULT_NONE;
	row_of(s, x)->fault = x->fault;
	if (f != NULL && fault_instead(s, x, f))
		return;
	render(s, x, f);
	buf_fini(&x->body);
	start(s, x, f);
}

void serve_request(struct serve *s, struct exchange *x)
{
	const char *path = x->ask->path;
	size_t len = strlen(path);

	if (control_request(s, x))
		return;
	if (strcmp(path, "/v1/messages") == 0 ||
	    (len >= 10 && strcmp(path + len - 10, "/responses") == 0) ||
	    (len >= 17 && strcmp(path + len - 17, "/chat/completions") == 0)) {
		completion(s, x);
		return;
	}
	x->ask->service = service_of(x->ask);
	answer_text(s, x, 404, "application/json",
		    "{\"type\":\"error\",\"error\":{\"type\":\"not_found_error\",\"message\":\"Not "
		    "Found\"}}");
}

void serve_gone(struct serve *s, struct exchange *x)
{
	struct row *r = row_of(s, x);

	if (x->row != 0)
		s->account.active--;
	if (x->convo != NULL)
		x->convo->active--;
	if (x->row == 0 || x->ended)
		return;
	s->account.gone++;
	if (r != NULL) {
		r->gone = true;
		r->took_ms = loop_now(s->loop) - x->start_ms;
	}
}
