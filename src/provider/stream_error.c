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
	{"model_max_prompt_tokens_exceeded", REPLY_OVERFLOW}, /* Copilot */
	{"tokens_limit_reached", REPLY_OVERFLOW},             /* GitHub Models */
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
	"prompt is too long",                     /* Anthropic, Fireworks */
	"exceed context limit",                   /* Anthropic: input length and `max_tokens` */
	"maximum context length",                 /* OpenAI, OpenRouter, vLLM, DeepSeek, Mistral */
	"exceeds the context window",             /* OpenAI */
	"exceed the configured limit",            /* OpenAI: input tokens */
	"context length exceeded",                /* proxies */
	"context_length_exceeded",                /* inside a wrapped error */
	"contextwindowexceeded",                  /* LiteLLM */
	"exceeds the available context size",     /* llama.cpp */
	"context size has been exceeded",         /* llama.cpp, LM Studio */
	"exceed context window of",               /* llama-cpp-python */
	"greater than the context length",        /* LM Studio */
	"model is loaded with context length",    /* LM Studio */
	"model is loaded with a context length",  /* LM Studio */
	"exceeded max context length",            /* Ollama */
	"exceeds the context length",             /* Ollama */
	"longer than the maximum model length",   /* vLLM */
	"too long to fit into the model",         /* vLLM */
	"max_tokens must be at least 1, got -",   /* vLLM: what its window leaves */
	"exceeds the maximum allowed length",     /* SGLang */
	"too large for model with",               /* Mistral */
	"must be less than max_seq_len",          /* SiliconFlow */
	"greater than max_seq_len",               /* TabbyAPI */
	"maximum prompt length is",               /* xAI */
	"reduce the length of the messages",      /* Groq, Cerebras */
	"exceeds the maximum number of tokens",   /* Gemini: input token count */
	"longer than the model's context length", /* Together */
	"tokens + `max_new_tokens` must be",      /* TGI, Together */
	"`inputs` must have less than",           /* TGI */
	"input is too long for requested model",  /* Bedrock */
	"too many total text bytes",              /* Bedrock */
	"exceeded model token limit",             /* Moonshot */
	"model max length exceeded",              /* Moonshot */
	"context window exceeds limit",           /* MiniMax */
	"exceeded this model context window",     /* Cloudflare */
	"prompt exceeds max length",              /* Zhipu */
	"maximum input length",                   /* Qwen */
	"range of input length",                  /* DashScope */
	"maximum allowed input length",           /* LiteLLM, Command */
	"prompt token count of",                  /* Copilot */
	"too many tokens: total number",          /* Cohere */
};

/* What is named where the most output is told. */
static const char *const output_cap[] = {
	"max_tokens",        "max_completion_tokens", "max_new_tokens",
	"max_output_tokens", "maxoutputtokens",       "maximum tokens you requested", /* Bedrock */
	"max tokens",        "output tokens",         "completion tokens",
};

/* A sentence of none of these wordings, by what it is about and how it complains. */
static const char *const of_context[] = {"token",        "prompt",       "context length",
					 "context size", "input length", "context window"};
static const char *const of_excess[] = {"exceed",       "too long",    "too large",   "too many",
					"greater than", "longer than", "larger than", "more than",
					"less than",    "maximum",     "limit",       "not fit"};

static const char *const by_time[] = {"per minute", "per min", "per day", "(tpm)", "(tpd)"};

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

/* ---- the numbers of a sentence. Words next to a number say what it is an amount of; the first
 * row that fits decides. # stands for the number, between whose words and itself blanks, quotes
 * and brackets do not count. */

enum amount {
	AMOUNT_OTHER,
	AMOUNT_LIMIT,  /* of the window, of the account or of the output */
	AMOUNT_BEYOND, /* the first that is too many */
	AMOUNT_PROMPT,
	AMOUNT_OUTPUT, /* as it was asked for */
	AMOUNT_TOTAL,  /* of both */
	NAMOUNTS
};

static const struct {
	enum amount is;
	const char *words; /* |: or */
} amounts[] = {
	/* MiniMax: a code */
	{AMOUNT_OTHER, "window exceeds limit#"},
	/* Anthropic: 190000 + 20000 > 200000 */
	{AMOUNT_PROMPT, "#+"},
	{AMOUNT_OUTPUT, "+#"},
	/* Vertex: from 1 (inclusive) to 8193 (exclusive) */
	{AMOUNT_BEYOND, "#exclusive"},
	/* OpenRouter: requested up to 8192 tokens, but can only afford 2000 */
	{AMOUNT_OUTPUT, "requested up to#"},
	{AMOUNT_LIMIT, "at most#|up to#|only#|afford#|limit of#|limit is#|limit#|[1,#|<=#|>#"},
	{AMOUNT_LIMIT, "maximum of#|maximum#|max#|max length#|max size#|#maximum|#token limit"},
	{AMOUNT_LIMIT, "context length is#|context length of#|context length#|context size#"},
	{AMOUNT_LIMIT, "context window of#|context window is#|context window#|n_ctx#"},
	{AMOUNT_LIMIT, "allowed#|allowed length#|allowed input length of#|cannot exceed#|exceeds#"},
	{AMOUNT_LIMIT, "less than or equal to#|less than#|max_seq_len#|max_model_len#"},
	{AMOUNT_LIMIT, "prompt length is#|model length of#|model with#"}, /* xAI, vLLM, Mistral */
	{AMOUNT_OUTPUT, "#output tokens|#in the completion|#tokens for the completion"},
	{AMOUNT_OUTPUT, "#in the output|you provided#|is too large#|tokens value of#"},
	{AMOUNT_OUTPUT, "#max_new_tokens|max_tokens#|max_completion_tokens#"},
	{AMOUNT_PROMPT, "#input tokens|#inputs|#in the messages|#in your prompt"},
	{AMOUNT_PROMPT, "#tokens from the input|token count of#|token count#|prompt contains#"},
	{AMOUNT_PROMPT, "request contains#|(length#|input length#|prompt length#"},
	{AMOUNT_PROMPT, "current length is#|prompt_tokens#|the input#|request#|too long#"},
	{AMOUNT_PROMPT, "resulted in#|received#|given#|keep the first#|n_keep#"},
	/* Cloudflare: input and maximum output tokens (9192) */
	{AMOUNT_TOTAL, "output tokens#|requested tokens#|total of at least#|total of#"},
	{AMOUNT_TOTAL, "requested about#|requested#"},
};

#define AMOUNT_LEAST 64  /* smaller ones count something else */
#define TOKENS_LEAST 512 /* of a number that nothing is said of */

struct numbers {
	int64_t of[NAMOUNTS]; /* the largest of each, but the smallest limit; 0: none */
	int64_t least, most;  /* of those that no word tells, from TOKENS_LEAST; 0: none */
	unsigned large;       /* how many there are from TOKENS_LEAST */
};

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* The number at `at`, as 1,048,576 or 128k, and where it ends; -1: a version, a name, a date. */
static int64_t read_number(const char *text, const char *at, const char **end)
{
	bool good = at == text || !(is_word(at[-1]) || at[-1] == '.');
	int64_t n = 0;

	if (at > text && at[-1] == '-')
		good = at - 1 > text && isdigit((unsigned char)at[-2]);
	for (;; at++) {
		bool mark = (*at == ',' || *at == '_') && n > 0;

		if (mark && isdigit((unsigned char)at[1]) && isdigit((unsigned char)at[2]) &&
		    isdigit((unsigned char)at[3]) && !isdigit((unsigned char)at[4]))
			continue;
		if (!isdigit((unsigned char)*at))
			break;
		n = n > USAGE_MAX ? n : n * 10 + (*at - '0');
	}
	if ((*at == '.' || *at == '-') && isdigit((unsigned char)at[1]))
		good = false;
	if (strchr("kKmM", *at) != NULL && *at != 0 && !is_word(at[1]))
		n *= tolower((unsigned char)*at++) == 'k' ? 1000 : 1000000;
	*end = at;
	return good && !is_word(*at) && n <= USAGE_MAX ? n : -1;
}

/* Do the `len` bytes at `row` stand around the number from `at` to `end`? */
static bool fits(const char *row, size_t len, const char *text, const char *at, const char *end)
{
	static const char noise[] = " `'\"()[]:*";
	size_t before = strcspn(row, "#");

	while (at > text && strchr(noise, at[-1]) != NULL)
		at--;
	end += strspn(end, noise);
	return (size_t)(at - text) >= before && strncasecmp(at - before, row, before) == 0 &&
	       strncasecmp(end, row + before + 1, len - before - 1) == 0;
}

static enum amount amount_of(const char *text, const char *at, const char *end)
{
	for (size_t i = 0; i < ARRAY_LEN(amounts); i++)
		for (const char *w = amounts[i].words; *w != 0;) {
			size_t len = strcspn(w, "|");

			if (fits(w, len, text, at, end))
				return amounts[i].is;
			w += len + (w[len] == '|');
		}
	return AMOUNT_OTHER;
}

static void read_numbers(struct numbers *all, const char *text)
{
	const char *end;

	*all = (struct numbers){0};
	for (const char *at = text; *at != 0; at = end) {
		enum amount is;
		int64_t n;

		end = at + 1;
		n = isdigit((unsigned char)*at) ? read_number(text, at, &end) : -1;
		if (n < AMOUNT_LEAST)
			continue;
		is = amount_of(text, at, end);
		all->large += n >= TOKENS_LEAST;
		if (is == AMOUNT_BEYOND) {
			is = AMOUNT_LIMIT;
			n--;
		}
		if (is == AMOUNT_LIMIT && all->of[is] > 0)
			n = MIN(all->of[is], n);
		if (is != AMOUNT_OTHER) {
			all->of[is] = is == AMOUNT_LIMIT ? n : MAX(all->of[is], n);
		} else if (n >= TOKENS_LEAST) {
			all->least = all->least > 0 ? MIN(all->least, n) : n;
			all->most = MAX(all->most, n);
		}
	}
}

/* What they are in a sentence that says that the request is too large. Of two that no word
 * tells, the larger one came and the smaller one is the limit. */
static void take_numbers(struct reply_error *e, const struct numbers *n)
{
	int64_t total = n->of[AMOUNT_TOTAL], output = n->of[AMOUNT_OUTPUT];

	e->window = n->of[AMOUNT_LIMIT];
	e->prompt = n->of[AMOUNT_PROMPT];
	if (e->prompt == 0 && total > 0)
		e->prompt = output > 0 && output < total ? total - output : total;
	if (e->window == 0 && n->least > 0 && n->least < MAX(e->prompt, n->most))
		e->window = n->least;
	if (e->prompt == 0 && n->most > e->window && e->window > 0)
		e->prompt = n->most;
}

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

/* What the sentence says of a class that says little; the numbers go to *e. */
static enum reply_class read_sentence(struct reply_error *e, enum reply_class cls, const char *text)
{
	struct numbers n;
	bool vague = is_vague(cls), known = vague && SAYS(text, too_long);
	int64_t asked;

	read_numbers(&n, text);
	asked = MAX(n.of[AMOUNT_TOTAL], n.of[AMOUNT_PROMPT]);
	if ((vague || cls == REPLY_RATE_LIMIT) && SAYS(text, by_time)) {
		/* One request larger than what the account may send in that time. */
		e->never = n.of[AMOUNT_LIMIT] > 0 && asked > n.of[AMOUNT_LIMIT];
		if (e->never) {
			e->window = n.of[AMOUNT_LIMIT];
			e->prompt = asked;
			cls = REPLY_RATE_LIMIT;
		}
		return cls;
	}
	if (vague && SAYS(text, no_credit))
		return REPLY_BILLING;
	if (vague && !known && n.of[AMOUNT_LIMIT] > 0 && SAYS(text, output_cap)) {
		e->output_max = n.of[AMOUNT_LIMIT];
		return REPLY_BAD_REQUEST;
	}
	if (vague && !known)
		known = n.large >= 2 && SAYS(text, of_context) && SAYS(text, of_excess);
	if (known || cls == REPLY_OVERFLOW)
		take_numbers(e, &n);
	return known ? REPLY_OVERFLOW : cls;
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
	stream_error_set(e, read_sentence(e, decide(error, status, all), all), all);
	if (e->text[0] == 0)
		snprintf(e->text, sizeof(e->text), "the service gave an error without a sentence");
	if (e->cls == REPLY_BAD_REQUEST)
		find_param(e, json_get_str(error, "param"), all);
	if (e->output_max > 0 && e->field[0] == 0)
		snprintf(e->field, sizeof(e->field), "max_tokens");
	if (e->cls == REPLY_OVERFLOW) { /* llama.cpp */
		e->window = json_get_int(error, "n_ctx", e->window);
		e->prompt = json_get_int(error, "n_prompt_tokens", e->prompt);
	}
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
		stream_error_set(e, read_sentence(e, cls, text), text);
	} else if (status >= 200 && status < 300) {
		snprintf(e->text, sizeof(e->text),
			 "the service answered with something that is no stream of events");
	}
	if (e->text[0] == 0)
		snprintf(e->text, sizeof(e->text), "the service answered HTTP %d", status);
	json_decref(v);
}
