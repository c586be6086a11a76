/* The order: words that mean one thing (codes, types), then the sentences that
 * say "too long", then the status of HTTP. A 400 is also searched for the name
 * of the parameter it is about, so that one repair can leave that out. Bodies
 * are text of strangers: cut, made one line, and never trusted further. */
#include "provider/stream_core.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/util.h"
#include "codec/json.h"
#include "codec/utf8.h"

const char *reply_class_word(enum reply_class c)
{
	static const char *const words[REPLY_NCLASSES] = {
		[REPLY_OK] = "ok",
		[REPLY_RATE_LIMIT] = "rate_limit",
		[REPLY_OVERLOADED] = "overloaded",
		[REPLY_SERVER] = "server_error",
		[REPLY_NETWORK] = "network",
		[REPLY_TIMEOUT] = "timeout",
		[REPLY_TRUNCATED] = "truncated",
		[REPLY_PROTOCOL] = "protocol",
		[REPLY_AUTH] = "auth",
		[REPLY_BILLING] = "billing",
		[REPLY_BAD_REQUEST] = "bad_request",
		[REPLY_OVERFLOW] = "context_overflow",
		[REPLY_TOO_LARGE] = "request_too_large",
		[REPLY_NOT_FOUND] = "not_found",
		[REPLY_REFUSED] = "refused",
		[REPLY_OTHER] = "other",
	};

	return (unsigned)c < REPLY_NCLASSES ? words[c] : "other";
}

void stream_error_set(struct reply_error *e, enum reply_class cls, const char *text)
{
	size_t len = strlen(text), n = 0, step;
	uint32_t cp;

	e->cls = cls;
	for (size_t i = 0; i < len; i += step) {
		step = utf8_decode(text + i, len - i, &cp);
		if (step == 0 || cp < 32 || (cp >= 127 && cp < 160) || cp == 0x2028 ||
		    cp == 0x2029) {
			step = step > 0 ? step : 1;
			if (n + 2 > sizeof(e->text))
				break;
			e->text[n++] = ' ';
			continue;
		}
		if (n + step + 1 > sizeof(e->text))
			break;
		memcpy(e->text + n, text + i, step);
		n += step;
	}
	e->text[n] = 0;
}

/* ---- words */

static const struct {
	const char *word;
	enum reply_class cls;
} words[] = {
	{"rate_limit_error", REPLY_RATE_LIMIT},
	{"rate_limit_exceeded", REPLY_RATE_LIMIT},
	{"rate_limited", REPLY_RATE_LIMIT},
	{"too_many_requests", REPLY_RATE_LIMIT},
	{"resource_exhausted", REPLY_RATE_LIMIT},
	{"overloaded_error", REPLY_OVERLOADED},
	{"overloaded", REPLY_OVERLOADED},
	{"server_overloaded", REPLY_OVERLOADED},
	{"engine_overloaded_error", REPLY_OVERLOADED},
	{"provider_overloaded", REPLY_OVERLOADED},
	{"provider_unavailable", REPLY_OVERLOADED},
	{"service_unavailable", REPLY_OVERLOADED},
	{"service_unavailable_error", REPLY_OVERLOADED},
	{"unavailable_error", REPLY_OVERLOADED}, /* llama.cpp loads its model */
	{"timeout_error", REPLY_TIMEOUT},
	{"timeout", REPLY_TIMEOUT},
	{"request_timeout", REPLY_TIMEOUT},
	{"authentication_error", REPLY_AUTH},
	{"authentication", REPLY_AUTH},
	{"invalid_api_key", REPLY_AUTH},
	{"permission_error", REPLY_AUTH},
	{"billing_error", REPLY_BILLING},
	{"payment_required", REPLY_BILLING},
	{"insufficient_quota", REPLY_BILLING},
	{"insufficient_credits", REPLY_BILLING},
	{"billing_hard_limit_reached", REPLY_BILLING},
	{"billing_not_active", REPLY_BILLING},
	{"context_length_exceeded", REPLY_OVERFLOW},
	{"exceed_context_size_error", REPLY_OVERFLOW},
	{"model_context_window_exceeded", REPLY_OVERFLOW},
	{"request_too_large", REPLY_TOO_LARGE},
	{"not_found_error", REPLY_NOT_FOUND},
	{"model_not_found", REPLY_NOT_FOUND},
	{"content_policy_violation", REPLY_REFUSED},
	{"content_filter", REPLY_REFUSED},
	{"api_error", REPLY_SERVER},
	{"server_error", REPLY_SERVER},
	{"internal_error", REPLY_SERVER},
	{"internal_server_error", REPLY_SERVER},
	/* Weak: what the sentence or the status says is better. */
	{"invalid_request_error", REPLY_BAD_REQUEST},
	{"bad_request", REPLY_BAD_REQUEST},
	{"badrequesterror", REPLY_BAD_REQUEST},
};

static enum reply_class class_of_word(const char *s)
{
	for (size_t i = 0; s != NULL && i < ARRAY_LEN(words); i++)
		if (strcasecmp(words[i].word, s) == 0)
			return words[i].cls;
	return REPLY_OK;
}

/* ---- sentences; lower case. Each is a service's own for a conversation that
 * is larger than the window. */
static const char *const too_long[] = {
	"prompt is too long",                     /* Anthropic */
	"exceed context limit",                   /* Anthropic: input length and `max_tokens` */
	"maximum context length",                 /* OpenAI, OpenRouter, vLLM, DeepSeek, Mistral */
	"exceeds the context window",             /* OpenAI */
	"context length exceeded",                /* proxies */
	"context_length_exceeded",                /* inside a wrapped error */
	"exceeds the available context size",     /* llama.cpp */
	"context size has been exceeded",         /* llama.cpp, LM Studio */
	"greater than the context length",        /* LM Studio */
	"model is loaded with context length",    /* LM Studio */
	"model is loaded with a context length",  /* LM Studio */
	"exceeded max context length",            /* Ollama */
	"exceeds the context length",             /* Ollama */
	"longer than the maximum model length",   /* vLLM */
	"too long to fit into the model",         /* vLLM */
	"too large for model with",               /* Mistral */
	"must be less than max_seq_len",          /* SiliconFlow */
	"maximum prompt length is",               /* xAI */
	"reduce the length of the messages",      /* Groq */
	"exceeds the maximum number of tokens",   /* Gemini: input token count */
	"longer than the model's context length", /* Together */
	"input is too long for requested model",  /* Bedrock */
	"exceeded model token limit",             /* Moonshot */
	"context window exceeds limit",           /* MiniMax */
	"maximum input length",                   /* Qwen: range of input length */
};

static const char *const no_credit[] = {
	"credit balance is too low",
	"requires more credits",
	"insufficient credits",
	"insufficient balance",
};

static const char *const flagged[] = {"flagged", "moderation", "guardrail", "content policy"};

static bool says(const char *text, const char *const *phrases, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcasestr(text, phrases[i]) != NULL)
			return true;
	return false;
}

#define SAYS(text, list) says(text, list, ARRAY_LEN(list))

/* ---- status */

static enum reply_class class_of_status(int status)
{
	switch (status) {
	case 0:
		return REPLY_NETWORK;
	case 401:
	case 403:
		return REPLY_AUTH;
	case 402:
		return REPLY_BILLING;
	case 404:
		return REPLY_NOT_FOUND;
	case 408:
	case 504:
		return REPLY_TIMEOUT;
	case 409:
		return REPLY_SERVER;
	case 413:
		return REPLY_TOO_LARGE;
	case 429:
		return REPLY_RATE_LIMIT;
	case 503:
	case 529:
		return REPLY_OVERLOADED;
	default:
		if (status >= 400 && status < 500)
			return REPLY_BAD_REQUEST;
		return status >= 500 ? REPLY_SERVER : REPLY_PROTOCOL;
	}
}

/* ---- the parameter a 400 is about */

static bool param_char(char c)
{
	return islower((unsigned char)c) || isdigit((unsigned char)c) || c == '_' || c == '.';
}

/* Parameters of ours that a service may reject and that can be left out. */
static const char *const ours[] = {
	"tool_choice",       "stream_options",    "max_completion_tokens", "max_tokens",
	"thinking",          "reasoning",         "reasoning_effort",      "cache_control",
	"reasoning_content", "reasoning_details",
};

/* Where the one that is named first stands, as a word of its own (a dot may follow). */
static const char *find_ours(const char *text)
{
	for (const char *at = text; *at != 0; at++) {
		bool begins = at == text || !(isalnum((unsigned char)at[-1]) || at[-1] == '_');

		for (size_t i = 0; begins && i < ARRAY_LEN(ours); i++) {
			size_t len = strlen(ours[i]);

			if (strncmp(at, ours[i], len) == 0 && !isalnum((unsigned char)at[len]) &&
			    at[len] != '_')
				return at;
		}
	}
	return NULL;
}

/* Names that stand for one way of asking for thinking; see model_drop. */
static void thinking_param(struct reply_error *e, const char *text)
{
	if (strstr(e->field, "budget_tokens") != NULL ||
	    strstr(text, "thinking.type.enabled") != NULL)
		snprintf(e->field, sizeof(e->field), "thinking.budget_tokens");
	else if (strstr(text, "adaptive") != NULL &&
		 (e->field[0] == 0 || strncmp(e->field, "thinking", 8) == 0 ||
		  strcmp(e->field, "adaptive") == 0))
		snprintf(e->field, sizeof(e->field), "thinking.adaptive");
}

/* The one the service names (not a path through what was said, messages.1.content.0, which
 * is nothing to leave out), else the one its sentence names; "" none. */
static void find_param(struct reply_error *e, const char *param, const char *text)
{
	static const char *const said[] = {"messages", "system", "tools."};
	const char *name = param;
	size_t n = 0;

	for (size_t i = 0; name != NULL && i < ARRAY_LEN(said); i++)
		if (strncmp(name, said[i], strlen(said[i])) == 0)
			name = NULL;
	if (name == NULL)
		name = find_ours(text);
	while (name != NULL && param_char(name[n]) && n < sizeof(e->field) - 1)
		n++;
	while (n > 0 && name[n - 1] == '.')
		n--;
	snprintf(e->field, sizeof(e->field), "%.*s", (int)n, n > 0 ? name : "");
	if (strstr(text, "thinking") != NULL)
		thinking_param(e, text);
}

/* ---- errors as JSON */

const json_t *stream_error_member(const json_t *body)
{
	const json_t *error = json_object_get(body, "error");
	const char *kind = json_get_str(body, "object");

	if (json_is_object(error) || json_is_string(error))
		return error;
	if (kind == NULL)
		kind = json_get_str(body, "type");
	return kind != NULL && strcmp(kind, "error") == 0 ? body : NULL;
}

/* Code as a number of HTTP, where it is one. */
static int code_status(const json_t *error, int status)
{
	int64_t code = json_get_int(error, "code", 0);

	if (code == 0)
		code = json_get_int(error, "status", 0);
	return status == 200 && code >= 400 && code < 600 ? (int)code : status;
}

/* A sentence may say more than that. */
static bool is_vague(enum reply_class cls)
{
	return cls == REPLY_BAD_REQUEST || cls == REPLY_SERVER || cls == REPLY_TOO_LARGE;
}

static enum reply_class decide(const json_t *error, int status, const char *text)
{
	const json_t *meta = json_object_get(error, "metadata");
	const char *const said[] = {
		json_get_str(error, "code"),
		json_get_str(meta, "error_type"),
		json_get_str(error, "type"),
		json_get_str(error, "status"),
	};
	enum reply_class cls = REPLY_OK;

	for (size_t i = 0; i < ARRAY_LEN(said) && (cls == REPLY_OK || cls == REPLY_BAD_REQUEST);
	     i++) {
		enum reply_class next = class_of_word(said[i]);

		cls = next != REPLY_OK ? next : cls;
	}
	if (cls == REPLY_OK && status != 200)
		cls = class_of_status(status);
	if (cls == REPLY_BAD_REQUEST && status != 200 && status != 400)
		cls = class_of_status(status);
	if (cls == REPLY_OK)
		cls = REPLY_SERVER; /* in a stream, and not said why */
	if (is_vague(cls)) {
		if (SAYS(text, too_long))
			cls = REPLY_OVERFLOW;
		else if (SAYS(text, no_credit))
			cls = REPLY_BILLING;
	}
	/* OpenRouter: no provider of this model takes a parameter. */
	if (cls == REPLY_NOT_FOUND && strstr(text, "support the provided '") != NULL)
		cls = REPLY_BAD_REQUEST;
	if (cls == REPLY_AUTH && status == 403 &&
	    (json_object_get(meta, "reasons") != NULL || SAYS(text, flagged)))
		cls = REPLY_REFUSED;
	return cls;
}

/* A list of what is wrong, as pydantic writes it; the first is told. */
static const char *detail_text(const json_t *list, char *out, size_t size)
{
	const json_t *first = json_array_get(list, 0), *part;
	const char *msg = json_get_str(first, "msg");
	size_t i, n = 0;

	json_array_foreach(json_object_get(first, "loc"), i, part)
	{
		const char *word = json_string_value(part);

		if (word != NULL && n < size && (i > 0 || strcmp(word, "body") != 0))
			n += (size_t)snprintf(out + n, size - n, "%s%s", n > 0 ? "." : "", word);
	}
	if (msg == NULL || n >= size)
		return NULL;
	snprintf(out + n, size - n, "%s%s", n > 0 ? ": " : "", msg);
	return out;
}

/* The sentence; "" when there is none. */
static const char *text_of(const json_t *error, char *room, size_t size)
{
	const json_t *message = json_object_get(error, "message");
	const json_t *detail = json_object_get(json_is_object(message) ? message : error, "detail");
	const char *text =
		json_is_string(error) ? json_string_value(error) : json_string_value(message);

	if (text == NULL || text[0] == 0)
		text = json_is_array(detail) ? detail_text(detail, room, size)
					     : json_string_value(detail);
	return text != NULL ? text : "";
}

static void keep_id(struct reply_error *e, const json_t *body)
{
	const char *id = json_get_str(body, "request_id");
	size_t n = 0;

	for (; id != NULL && isgraph((unsigned char)id[n]) && n < sizeof(e->request_id) - 1; n++)
		e->request_id[n] = id[n];
	e->request_id[n] = 0;
}

void stream_error_json(struct reply_error *e, int status, const json_t *body)
{
	const json_t *error = stream_error_member(body);
	const char *text, *raw;
	char all[1200], room[400];

	if (error == NULL)
		error = body;
	text = text_of(error, room, sizeof(room));
	/* OpenRouter: what the provider behind it said. */
	raw = json_get_str(json_object_get(error, "metadata"), "raw");
	snprintf(all, sizeof(all), "%s%s%s", text, raw != NULL && text[0] != 0 ? ": " : "",
		 raw != NULL ? raw : "");
	status = code_status(error, status);
	e->field[0] = 0;
	stream_error_set(e, decide(error, status, all), all);
	if (e->text[0] == 0)
		snprintf(e->text, sizeof(e->text), "the service gave an error without a sentence");
	if (e->cls == REPLY_BAD_REQUEST)
		find_param(e, json_get_str(error, "param"), all);
	keep_id(e, body);
}

/* ---- errors as whatever came */

void stream_error_body(struct reply_error *e, int status, const char *content_type,
		       const char *body, size_t len)
{
	bool html = content_type != NULL && strncasecmp(content_type, "text/html", 9) == 0;
	enum reply_class cls =
		status >= 200 && status < 400 ? REPLY_PROTOCOL : class_of_status(status);
	size_t blanks = 0;
	char text[200];
	json_t *v;

	while (blanks < len && isspace((unsigned char)body[blanks]))
		blanks++;
	stream_error_set(e, cls, "");
	if (html || (blanks < len && body[blanks] == '<')) {
		snprintf(e->text, sizeof(e->text),
			 "the service answered with a page of HTML (HTTP %d)", status);
		return;
	}
	v = json_parse_mended(body, len, NULL);
	if (json_is_object(v) && (stream_error_member(v) != NULL || status >= 400)) {
		stream_error_json(e, status, v);
	} else if (status >= 400 && len > 0) {
		snprintf(text, sizeof(text), "%.*s", (int)MIN(len, sizeof(text) - 1), body);
		stream_error_set(e, is_vague(cls) && SAYS(text, too_long) ? REPLY_OVERFLOW : cls,
				 text);
	} else if (status >= 200 && status < 300) {
		snprintf(e->text, sizeof(e->text),
			 "the service answered with something that is no stream of events");
	}
	if (e->text[0] == 0)
		snprintf(e->text, sizeof(e->text), "the service answered HTTP %d", status);
	json_decref(v);
}
