/* The order: words that mean one thing (codes, types), then the status of HTTP, then, where
 * those say little, the sentence. A 400 is also searched for the name of the parameter it is
 * about, so that one repair can leave that out; a request that is too large for its numbers.
 * Bodies are text of strangers: cut, made one line, and never trusted further. */
#include "provider/stream_core.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/util.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "provider/profile.h"
#include "provider/told.h"

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
		[REPLY_ADDRESS] = "wrong_address",
		[REPLY_WALL] = "wall",
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

/* ---- words. In the tables "|" is "or" and all is lower case. */

static bool stream_error_any_of(const char *list, const char *text, bool whole)
{
	char one[64];

	for (size_t n; *list != 0; list += n + (list[n] == '|')) {
		n = strcspn(list, "|");
		snprintf(one, sizeof(one), "%.*s", (int)n, list);
		if (whole ? strcasecmp(text, one) == 0 : strcasestr(text, one) != NULL)
			return true;
	}
	return false;
}

static const struct meant {
	enum reply_class cls;
	const char *words;
} codes[] = {
	/* Types stand here beside codes. */
	{REPLY_RATE_LIMIT, "rate_limit_error|rate_limit_exceeded|rate_limited|rate_limit"},
	{REPLY_RATE_LIMIT, "too_many_requests|resource_exhausted|1302|1303|1305"}, /* Zhipu's */
	{REPLY_OVERLOADED, "overloaded_error|overloaded|server_overloaded|engine_overloaded_error"},
	{REPLY_OVERLOADED, "provider_overloaded|provider_unavailable|service_unavailable"},
	/* llama.cpp loads its model */
	{REPLY_OVERLOADED, "service_unavailable_error|unavailable_error"},
	{REPLY_TIMEOUT, "timeout_error|timeout|request_timeout"},
	{REPLY_AUTH, "authentication_error|authentication|invalid_api_key|permission_error"},
	{REPLY_BILLING, "billing_error|payment_required|insufficient_quota|insufficient_credits"},
	{REPLY_BILLING, "billing_hard_limit_reached|billing_not_active|arrearage|1113"},
	{REPLY_OVERFLOW, "context_length_exceeded|exceed_context_size_error"},
	{REPLY_OVERFLOW, "model_context_window_exceeded|model_max_prompt_tokens_exceeded"},
	{REPLY_OVERFLOW, "tokens_limit_reached|1261"}, /* GitHub Models, Zhipu */
	{REPLY_TOO_LARGE, "request_too_large"},
	{REPLY_NOT_FOUND, "not_found_error|model_not_found"},
	{REPLY_REFUSED, "content_policy_violation|content_filter"},
	{REPLY_SERVER, "api_error|server_error|internal_error|internal_server_error"},
	/* These codes are weak: the sentence or the status says more. */
	{REPLY_BAD_REQUEST, "invalid_request_error|bad_request|badrequesterror|validation_error"},
	{REPLY_BAD_REQUEST, "invalidparameter|invalid_parameter|invalid_parameter_error"},
	{REPLY_BAD_REQUEST, "invalid_argument|validationexception|invalid_request"},
};

static const struct meant sentences[] = {
	/* Anthropic, Fireworks; OpenAI, OpenRouter, DeepSeek, Mistral, vLLM */
	{REPLY_OVERFLOW, "prompt is too long|exceed context limit|maximum context length"},
	/* OpenAI; proxies, LiteLLM */
	{REPLY_OVERFLOW, "exceeds the context window|exceed the configured limit"},
	{REPLY_OVERFLOW, "context length exceeded|context_length_exceeded|contextwindowexceeded"},
	/* llama.cpp, llama-cpp-python */
	{REPLY_OVERFLOW, "exceeds the available context|context size has been exceeded"},
	{REPLY_OVERFLOW, "exceed context window of"},
	/* LM Studio, Ollama */
	{REPLY_OVERFLOW, "is loaded with context length|is loaded with a context length"},
	{REPLY_OVERFLOW, "greater than the context length|exceeded max context length"},
	{REPLY_OVERFLOW,
	 "exceeds the context length|longer than the model's context"}, /* Together */
	/* vLLM: the last tells what the window leaves; SGLang, Mistral */
	{REPLY_OVERFLOW, "longer than the maximum model length|too long to fit into the model"},
	{REPLY_OVERFLOW, "max_tokens must be at least 1, got -"},
	{REPLY_OVERFLOW, "exceeds the maximum allowed length|too large for model with"},
	/* TGI, Together; SiliconFlow, TabbyAPI; xAI, Groq, Cerebras */
	{REPLY_OVERFLOW, "tokens + `max_new_tokens` must be|`inputs` must have less"},
	{REPLY_OVERFLOW, "less than max_seq_len|greater than max_seq_len|maximum prompt length is"},
	{REPLY_OVERFLOW, "reduce the length of the messages|exceeds the maximum number of tokens"},
	/* Gemini is above; Bedrock, Moonshot, MiniMax, Cloudflare */
	{REPLY_OVERFLOW, "input is too long for requested|too many total text bytes"},
	{REPLY_OVERFLOW, "exceeded model token limit|model max length exceeded"},
	{REPLY_OVERFLOW, "window exceeds limit|exceeded this model context"},
	/* Zhipu, Qwen, DashScope, Command, Copilot, Cohere */
	{REPLY_OVERFLOW, "prompt exceeds max length|prompt 超长|range of input length"},
	{REPLY_OVERFLOW, "request body too large for"}, /* GitHub Models */
	{REPLY_OVERFLOW, "maximum input length|maximum allowed input length"},
	{REPLY_OVERFLOW, "prompt token count of|too many tokens: total number"},
	/* Anthropic; OpenRouter; DeepSeek, MiniMax, Zhipu; Gemini: a quota of none */
	{REPLY_BILLING, "credit balance is too low|usage is required for long context"},
	{REPLY_BILLING, "requires more credits|insufficient credits|insufficient balance"},
	{REPLY_BILLING, "insufficient funds|insufficient account balance|limit: 0,"},
	{REPLY_BILLING, "balance is insufficient|please recharge|余额不足|已欠费"},
	{REPLY_BILLING, "in good standing|in arrears|out of credits|free tier of the model has"},
	{REPLY_AUTH, "api key not valid|api key expired|api_key_invalid|invalid api key"},
	{REPLY_AUTH, "api key not found|missing api key|no api key|api key is required"},
	{REPLY_AUTH, "incorrect api key|login fail|unauthorized|authentication fail"},
	/* OpenRouter, DeepSeek */
	{REPLY_NOT_FOUND, "is not a valid model id|model not exist|model not found"},
	{REPLY_NOT_FOUND, "supported api model names are|model does not exist"},
	/* LM Studio, OpenAI, Express, FastAPI */
	{REPLY_ADDRESS, "unexpected endpoint|invalid url (|cannot post /|method not allowed"},
	/* llama.cpp, Ollama, Mistral: a template refuses */
	{REPLY_BAD_REQUEST, "roles must alternate|jinja|chat template|chat_template"},
	{REPLY_BAD_REQUEST,
	 "no user query found|unexpected role|role not supported|roles are supported"},
};

/* Parameter names beside which the most output is told. */
#define OUTPUT_CAP                                                                                 \
	"max_tokens|max_completion_tokens|max_new_tokens|max_output_tokens|maxoutputtokens|"       \
	"max tokens|maximum tokens you requested|output tokens|completion tokens"
/* An overflow without a known wording: its subject and its complaint. */
#define OF_CONTEXT "token|prompt|context|input length|input too|input is too|conversation"
#define OF_EXCESS                                                                                  \
	"exceed|too long|too large|too many|greater than|longer than|larger than|more than|"       \
	"less than|maximum|limit|not fit|超过|超出|超长|大于"
#define BY_TIME    "per minute|per min|per day|(tpm)|(tpd)"
#define OF_QUOTA   "usage limit|usage_limit|quota|rate limit|rate_limit"
#define MODERATION "flagged|moderation|guardrail|content policy"
/* Returned reasoning that the service cannot read or place. */
#define OLD_REASONING "encrypted content|of type 'reasoning'|items are not persisted"
/* A 404 for the path, not for the model. */
#define NO_PATH                                                                                    \
	"page not found|file not found|resource not found|no route|unknown route|path not found"

static enum reply_class stream_error_class_of(const struct meant *m, size_t n, const char *text,
					      bool whole)
{
	for (; text != NULL && n > 0; m++, n--)
		if (stream_error_any_of(m->words, text, whole))
			return m->cls;
	return REPLY_OK;
}

void stream_error_limit(struct reply_error *e, const char *text)
{
	static const struct {
		const char *name, *words;
	} limits[] = {
		/* "try again in 5 hours" names none */
		{"5-hour", "5-hour|5 hour limit|five_hour|five-hour|five hour limit"},
		{"weekly", "weekly|per week|seven_day|7-day limit|7 day limit"},
		{"daily", "daily|per day|per-day|perday|(tpd)|(rpd)"},
		{"monthly", "monthly|per month"},
		{"hourly", "hourly|per hour"},
		{"session", "session limit"},
		{"usage", "usage limit|usage_limit"},
	};

	for (size_t i = 0; i < ARRAY_LEN(limits); i++)
		if (stream_error_any_of(limits[i].words, text, false)) {
			snprintf(e->limit, sizeof(e->limit), "%s", limits[i].name);
			return;
		}
}

/* ---- the numbers of a sentence. Words beside a number tell its meaning; the first row that fits
 * decides. # stands for the number; blanks, quotes and brackets between it and the words do not
 * count. */

enum amount {
	AMOUNT_OTHER,
	AMOUNT_LIMIT,  /* the window, an account's limit or the output's limit */
	AMOUNT_BEYOND, /* the first number beyond the limit */
	AMOUNT_PROMPT,
	AMOUNT_OUTPUT, /* the output that the request asked for */
	AMOUNT_TOTAL,  /* prompt and output together */
	NAMOUNTS
};

static const struct {
	enum amount is;
	const char *words;
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
	{AMOUNT_LIMIT, "sequence length is just#|n_ctx is#|n_ctx of#"},   /* SambaNova */
	{AMOUNT_OUTPUT, "#output tokens|#in the completion|#tokens for the completion"},
	{AMOUNT_OUTPUT, "#in the output|you provided#|is too large#|tokens value of#"},
	{AMOUNT_OUTPUT, "#max_new_tokens|max_tokens#|max_completion_tokens#"},
	{AMOUNT_PROMPT, "#input tokens|#inputs|#in the messages|#in your prompt"},
	{AMOUNT_PROMPT, "#tokens from the input|token count of#|token count#|prompt contains#"},
	{AMOUNT_PROMPT, "request contains#|(length#|input length#|prompt length#"},
	{AMOUNT_PROMPT, "current length is#|prompt_tokens#|the input#|request#|too long#"},
	{AMOUNT_PROMPT, "resulted in#|received#|given#|keep the first#|n_keep#"},
	{AMOUNT_PROMPT, "prompt is#|prompt has#|prompt of#"},
	/* Cloudflare: input and maximum output tokens (9192) */
	{AMOUNT_TOTAL, "output tokens#|requested tokens#|total of at least#|total of#"},
	{AMOUNT_TOTAL, "requested about#|requested#|sequence length of#"},
};

#define AMOUNT_LEAST 64  /* a smaller number counts something else */
#define TOKENS_LEAST 512 /* from here on a number may be tokens without saying so */

struct numbers {
	int64_t of[NAMOUNTS]; /* largest number of each amount, but smallest limit; 0: none */
	int64_t least;        /* the smallest AMOUNT_OTHER; 0: none */
	unsigned large;       /* numbers of TOKENS_LEAST and more */
};

static bool stream_error_is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Read the number at `at`, as 1,048,576 or 128k; *end: behind it; -1: a version, a name, a date. */
static int64_t stream_error_read_number(const char *text, const char *at, const char **end)
{
	bool good = at == text || !(stream_error_is_word(at[-1]) || at[-1] == '.');
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
	if (strchr("kKmM", *at) != NULL && *at != 0 && !stream_error_is_word(at[1]))
		n *= tolower((unsigned char)*at++) == 'k' ? 1000 : 1000000;
	*end = at;
	good = good && (!stream_error_is_word(*at) || strncasecmp(at, "tok", 3) == 0);
	return good && n <= USAGE_MAX ? n : -1;
}

/* Do the row's words (`len` bytes) stand around the number from `at` to `end`? */
static bool stream_error_fits(const char *row, size_t len, const char *text, const char *at,
			      const char *end)
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

			if (stream_error_fits(w, len, text, at, end))
				return amounts[i].is;
			w += len + (w[len] == '|');
		}
	return AMOUNT_OTHER;
}

static void stream_error_read_numbers(struct numbers *all, const char *text)
{
	const char *end;

	*all = (struct numbers){0};
	for (const char *at = text; *at != 0; at = end) {
		enum amount is;
		int64_t n;

		end = at + 1;
		n = isdigit((unsigned char)*at) ? stream_error_read_number(text, at, &end) : -1;
		if (n < AMOUNT_LEAST)
			continue;
		is = amount_of(text, at, end);
		all->large += n >= TOKENS_LEAST;
		if (is == AMOUNT_OTHER && n < TOKENS_LEAST)
			continue;
		if (is == AMOUNT_BEYOND) {
			is = AMOUNT_LIMIT;
			n--;
		}
		if (is == AMOUNT_OTHER && (all->least == 0 || n < all->least))
			all->least = n;
		if (is != AMOUNT_LIMIT || all->of[is] == 0 || n < all->of[is])
			all->of[is] = is == AMOUNT_LIMIT ? n : MAX(all->of[is], n);
	}
}

/* Take window and prompt from the numbers of an overflow. Of two numbers without words the larger
 * is the prompt, the smaller the limit. */
static void take_numbers(struct reply_error *e, const struct numbers *n)
{
	int64_t total = n->of[AMOUNT_TOTAL], output = n->of[AMOUNT_OUTPUT];

	e->window = n->of[AMOUNT_LIMIT];
	e->prompt = n->of[AMOUNT_PROMPT];
	if (e->prompt == 0 && total > 0)
		e->prompt = output > 0 && output < total ? total - output : total;
	if (e->window == 0 && e->prompt > 0 && total == 0 && n->least > e->prompt)
		e->window = n->least; /* the prompt fits, but not with the output */
	if (e->window == 0 && n->least > 0 && n->least < MAX(e->prompt, n->of[AMOUNT_OTHER])) {
		e->window = n->least;
		e->guessed = e->prompt == 0;
	}
	if (e->prompt == 0 && n->of[AMOUNT_OTHER] > e->window && e->window > 0)
		e->prompt = n->of[AMOUNT_OTHER];
}

/* ---- status */

static enum reply_class class_of_status(int status)
{
	static const struct {
		short status;
		enum reply_class cls;
	} some[] = {
		{0, REPLY_NETWORK},      {401, REPLY_AUTH},       {402, REPLY_BILLING},
		{403, REPLY_AUTH},       {404, REPLY_NOT_FOUND},  {405, REPLY_ADDRESS},
		{407, REPLY_WALL},       {408, REPLY_TIMEOUT},    {409, REPLY_SERVER},
		{413, REPLY_TOO_LARGE},  {420, REPLY_RATE_LIMIT}, {421, REPLY_SERVER},
		{423, REPLY_SERVER},     {424, REPLY_SERVER},     {425, REPLY_SERVER},
		{429, REPLY_RATE_LIMIT}, {451, REPLY_REFUSED},    {498, REPLY_AUTH},
		{499, REPLY_SERVER},     {503, REPLY_OVERLOADED}, {501, REPLY_BAD_REQUEST},
		{504, REPLY_TIMEOUT},    {529, REPLY_OVERLOADED},
	};

	for (size_t i = 0; i < ARRAY_LEN(some); i++)
		if (some[i].status == status)
			return some[i].cls;
	if (status >= 500)
		return REPLY_SERVER;
	return status >= 400 ? REPLY_BAD_REQUEST : status >= 300 ? REPLY_ADDRESS : REPLY_PROTOCOL;
}

/* ---- the parameter that a 400 names */

static bool param_char(char c)
{
	return islower((unsigned char)c) || isdigit((unsigned char)c) || c == '_' || c == '.';
}

/* Our parameters that a service may reject and that can be left out. */
static const char *const ours[] = {
	"tool_choice",       "stream_options",    "max_completion_tokens", "max_tokens",
	"thinking",          "reasoning",         "reasoning_effort",      "cache_control",
	"reasoning_content", "reasoning_details", "max_output_tokens",     "response_format",
	"temperature",
};

/* The first of them in the text, as a word of its own (a dot may follow). */
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

/* Set the field to a way of asking for thinking that the text rejects; see model_drop. */
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

/* Set the field to the parameter that the error names, else to the one in its sentence; "" none. A
 * path into the conversation (messages.1.content.0) is nothing to leave out. */
static void find_param(struct reply_error *e, const char *param, const char *text)
{
	static const char *const said[] = {"messages", "system", "tools.", "input"};
	const char *name = param;
	size_t n = 0;

	for (size_t i = 0; name != NULL && i < ARRAY_LEN(said); i++)
		if (strncmp(name, said[i], strlen(said[i])) == 0)
			name = NULL;
	if (name == NULL)
		name = stream_error_any_of(OLD_REASONING, text, false) ? "encrypted_content"
								       : find_ours(text);
	while (name != NULL && param_char(name[n]) && n < sizeof(e->field) - 1)
		n++;
	while (n > 0 && name[n - 1] == '.')
		n--;
	snprintf(e->field, sizeof(e->field), "%.*s", (int)n, n > 0 ? name : "");
	if (strstr(text, "thinking") != NULL)
		thinking_param(e, text);
}

/* ---- errors as JSON */

static const char *sentence_of(const json_t *error)
{
	static const char *const keys[] = {
		"message",   "msg",           "status_msg", "detail",
		"error_msg", "error_message", "errmsg",     "error_description",
		"error",     "reason",        "title",      "Message"};

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (json_is_string(json_object_get(error, keys[i])))
			return json_get_str(error, keys[i]);
	return NULL;
}

const json_t *stream_error_member(const json_t *body)
{
	static const char *const around[] = {"Response", "Error", /* Tencent */
					     "fault", "failure"}; /* Apigee */
	const json_t *error, *base = json_object_get(body, "base_resp");
	const char *kind;

	if (json_is_array(body)) /* Gemini sends a list */
		return stream_error_member(json_array_get(body, 0));
	error = json_object_get(body, "external_model_error"); /* Databricks names the error so */
	if (error != NULL)
		return stream_error_member(error);
	error = json_array_get(json_object_get(body, "errors"), 0); /* Cloudflare sends a list */
	if (error != NULL)
		return error;
	error = json_object_get(body, "error");
	if (json_is_object(json_object_get(error, "error"))) /* a proxy wraps the error */
		return stream_error_member(error);
	if (json_is_string(error) && json_is_string(json_object_get(body, "error_description")))
		return body;
	if (json_is_object(error) || json_is_string(error))
		return error;
	if (json_get_int(base, "status_code", 0) != 0) /* MiniMax has a code there */
		return base;
	kind = json_get_str(body, "object");
	if (kind == NULL)
		kind = json_get_str(body, "type");
	if (kind != NULL)
		return strcmp(kind, "error") == 0 ? body : NULL;
	for (size_t i = 0; i < ARRAY_LEN(around); i++) {
		error = json_object_get(body, around[i]);
		if (json_is_object(error))
			return stream_error_member(error);
	}
	if (json_is_array(json_object_get(body, "detail"))) /* FastAPI sends a list */
		return body;
	return !json_is_array(json_object_get(body, "choices")) && sentence_of(body) != NULL ? body
											     : NULL;
}

/* A member as text, whether string or number. */
static const char *code_of(const json_t *error, const char *key, char room[24])
{
	const json_t *v = json_object_get(error, key);

	if (!json_is_integer(v))
		return json_string_value(v);
	snprintf(room, 24, "%lld", (long long)json_integer_value(v));
	return room;
}

/* The error's code as a status of HTTP, where it is one. */
static int code_status(const json_t *error, int status)
{
	int64_t code = json_get_int(error, "code", 0);

	if (code == 0)
		code = json_get_int(error, "status", json_get_int(error, "status_code", 0));
	return status == 200 && code >= 400 && code < 600 ? (int)code : status;
}

/* Classes that the sentence may make more precise. */
static bool is_vague(enum reply_class cls)
{
	return cls == REPLY_BAD_REQUEST || cls == REPLY_SERVER || cls == REPLY_TOO_LARGE;
}

/* The class by the sentence where the code is vague; its numbers go to *e. */
static enum reply_class read_sentence(struct reply_error *e, enum reply_class cls, const char *text)
{
	enum reply_class said = stream_error_class_of(sentences, ARRAY_LEN(sentences), text, false);
	struct numbers n;
	int64_t asked;

	stream_error_read_numbers(&n, text);
	asked = MAX(n.of[AMOUNT_TOTAL], n.of[AMOUNT_PROMPT]);
	if (cls == REPLY_NOT_FOUND && (said == REPLY_ADDRESS || text[0] == 0 ||
				       stream_error_any_of("not found|404 not found", text, true) ||
				       stream_error_any_of(NO_PATH, text, false)))
		return REPLY_ADDRESS;
	/* A rate limit that the request alone exceeds: waiting never helps. */
	if ((is_vague(cls) || cls == REPLY_RATE_LIMIT) &&
	    stream_error_any_of(BY_TIME, text, false)) {
		e->never = n.of[AMOUNT_LIMIT] > 0 && asked > n.of[AMOUNT_LIMIT];
		e->window = e->never ? n.of[AMOUNT_LIMIT] : 0;
		e->prompt = e->never ? asked : 0;
		return e->never ? REPLY_RATE_LIMIT : cls;
	}
	if ((cls == REPLY_RATE_LIMIT || cls == REPLY_AUTH) && said == REPLY_BILLING)
		return said;
	if (is_vague(cls) && said == REPLY_OK && n.of[AMOUNT_LIMIT] > 0 &&
	    stream_error_any_of(OUTPUT_CAP, text, false)) {
		e->output_max = n.of[AMOUNT_LIMIT];
		return REPLY_BAD_REQUEST;
	}
	if (is_vague(cls) && said == REPLY_OK && n.large >= 2 &&
	    stream_error_any_of(OF_CONTEXT, text, false) &&
	    stream_error_any_of(OF_EXCESS, text, false))
		said = REPLY_OVERFLOW;
	if (is_vague(cls) && said != REPLY_OK)
		cls = said;
	if (cls == REPLY_OVERFLOW)
		take_numbers(e, &n);
	return cls;
}

static enum reply_class stream_error_decide(const json_t *error, int status, const char *text)
{
	const json_t *meta = json_object_get(error, "metadata");
	char room[2][24];
	const char *const said[] = {
		code_of(error, "code", room[0]),   code_of(error, "status_code", room[1]),
		json_get_str(error, "error_code"), json_get_str(meta, "error_type"),
		json_get_str(error, "type"),       json_get_str(error, "status"),
	};
	enum reply_class cls = REPLY_OK;

	for (size_t i = 0; i < ARRAY_LEN(said) && (cls == REPLY_OK || cls == REPLY_BAD_REQUEST);
	     i++) {
		enum reply_class next =
			stream_error_class_of(codes, ARRAY_LEN(codes), said[i], true);

		cls = next != REPLY_OK ? next : cls;
	}
	if (cls == REPLY_OK && status != 200)
		cls = class_of_status(status);
	/* Ollama: an api_error that is a 404. */
	if ((cls == REPLY_BAD_REQUEST && status != 200 && status != 400) ||
	    (cls == REPLY_SERVER && status >= 400 && status < 500))
		cls = class_of_status(status);
	if (cls == REPLY_OK)
		cls = REPLY_SERVER; /* an error in a stream that gives no reason */
	/* OpenRouter: no provider of this model takes a parameter. */
	if (cls == REPLY_NOT_FOUND && (strstr(text, "support the provided '") != NULL ||
				       stream_error_any_of(OLD_REASONING, text, false)))
		cls = REPLY_BAD_REQUEST;
	if (cls == REPLY_AUTH && status == 403 &&
	    (json_object_get(meta, "reasons") != NULL ||
	     stream_error_any_of(MODERATION, text, false)))
		cls = REPLY_REFUSED;
	return cls;
}

/* The first entry of a list of faults as pydantic writes it. */
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

/* The error's sentence; "" when there is none. */
static const char *stream_error_text_of(const json_t *error, char *room, size_t size)
{
	const json_t *message = json_object_get(error, "message");
	const json_t *detail = json_object_get(json_is_object(message) ? message : error, "detail");
	const char *text = json_is_string(error) ? json_string_value(error) : sentence_of(error);

	if (text == NULL)
		text = sentence_of(message);
	if ((text == NULL || text[0] == 0) && json_is_array(detail))
		text = detail_text(detail, room, size);
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

/* The text behind one of these words that reads as a time: "resets at 3pm", "again in 2 hours";
 * NULL: none. */
static const char *told_behind(const char *text)
{
	static const char *const words[] = {"again",     "retry",  "wait",          "reset",
					    "available", "access", "limit reached|"};
	static const char *const between[] = {"in ", "at ", "on ", "after ", "until "};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		for (const char *at = text; (at = strcasestr(at, words[i])) != NULL;) {
			at += strlen(words[i]);
			at += strspn(at, "s: ");
			for (size_t k = 0; k < ARRAY_LEN(between); k++)
				if (strncasecmp(at, between[k], strlen(between[k])) == 0)
					at += strlen(between[k]);
			if (told_wait(at, 1) >= 0)
				return at;
		}
	return NULL;
}

/* Keep how long to wait: from members of several services, else from the sentence. */
static void keep_wait(struct reply_error *e, const json_t *error, const char *text)
{
	static const char *const keys[] = {"retry_after",       "retry_after_seconds", "retryDelay",
					   "X-RateLimit-Reset", "resets_in_seconds",   "resets_at",
					   "reset_at",          "Retry-After"};
	const json_t *meta = json_object_get(error, "metadata"), *detail;
	const json_t *places[10] = {error, meta, json_object_get(meta, "headers")};
	const char *wait = NULL;
	char room[24];
	size_t i, n = 3;

	json_array_foreach(json_object_get(error, "details"), i, detail)
	{
		if (n < ARRAY_LEN(places)) /* Google has the wait in its details */
			places[n++] = detail;
	}
	for (i = 0; i < n * ARRAY_LEN(keys) && wait == NULL; i++)
		wait = code_of(places[i / ARRAY_LEN(keys)], keys[i % ARRAY_LEN(keys)], room);
	wait = wait != NULL ? wait : told_behind(text);
	if (wait != NULL)
		snprintf(e->after, sizeof(e->after), "%.*s", (int)sizeof(e->after) - 1, wait);
}

/* Keep which limit it is. A quota that comes back at a time is a rate limit, whatever its
 * status. */
static void keep_limit(struct reply_error *e, const json_t *error, const char *text)
{
	const char *type = json_str(error, "type");

	stream_error_limit(e, text);
	if (e->limit[0] == 0)
		stream_error_limit(e, type);
	if ((e->cls == REPLY_BILLING || e->cls == REPLY_BAD_REQUEST || e->cls == REPLY_AUTH) &&
	    e->after[0] != 0 && !e->never &&
	    (stream_error_any_of(OF_QUOTA, text, false) ||
	     stream_error_any_of(OF_QUOTA, type, false))) {
		e->cls = REPLY_RATE_LIMIT;
		e->field[0] = 0;
	}
}

void stream_error_json(struct reply_error *e, int status, const json_t *body)
{
	const json_t *error = stream_error_member(body);
	const char *text, *raw;
	char all[1200], room[400];
	json_t *in;

	if (error == NULL)
		error = body;
	text = stream_error_text_of(error, room, sizeof(room));
	/* Databricks, LiteLLM: an error within the sentence. Each level is shorter. */
	in = text[0] == '{' || text[0] == '[' ? json_read_others(text, strlen(text), NULL) : NULL;
	if (stream_error_member(in) != NULL) {
		stream_error_json(e, status, in);
		json_decref(in);
		return;
	}
	json_decref(in);
	/* OpenRouter: the error of the provider behind it. */
	raw = json_get_str(json_object_get(error, "metadata"), "raw");
	snprintf(all, sizeof(all), "%s%s%s", text, raw != NULL && text[0] != 0 ? ": " : "",
		 raw != NULL ? raw : "");
	status = code_status(body, code_status(error, status));
	e->field[0] = 0;
	stream_error_set(e, read_sentence(e, stream_error_decide(error, status, all), all), all);
	if (e->text[0] == 0)
		snprintf(e->text, sizeof(e->text), "the service gave an error without a sentence");
	if ((e->cls == REPLY_BAD_REQUEST || e->cls == REPLY_SERVER) &&
	    profile_refused(all, e->field, sizeof(e->field)))
		e->cls = REPLY_BAD_REQUEST;
	else if (e->cls == REPLY_BAD_REQUEST)
		find_param(e, json_get_str(error, "param"), all);
	if (e->output_max > 0 && e->field[0] == 0)
		snprintf(e->field, sizeof(e->field), "max_tokens");
	if (e->cls == REPLY_OVERFLOW) { /* llama.cpp tells both numbers */
		e->window = json_get_int(error, "n_ctx", e->window);
		e->prompt = json_get_int(error, "n_prompt_tokens", e->prompt);
	}
	keep_wait(e, error, all);
	keep_limit(e, error, all);
	keep_id(e, body);
}

/* ---- errors as bodies of any kind */

/* Title of a page (or of XML); "" none. */
static void title_of(const char *body, char *out, size_t size)
{
	static const char *const tags[] = {"<title", "<message", "<h1", "<code"};

	const char *at = NULL;

	for (size_t i = 0; i < ARRAY_LEN(tags) && at == NULL; i++)
		at = strcasestr(body, tags[i]);
	at = at != NULL ? strchr(at, '>') : NULL;
	at = at != NULL ? at + 1 + strspn(at + 1, " \r\n\t") : "";
	snprintf(out, size, "%.*s", (int)strcspn(at, "<\r\n"), at);
}

/* The class of a page: a gateway's status where its service failed; else something stands before
 * the service, for which neither key nor model is to blame. */
static enum reply_class class_of_page(int status, const char *body)
{
	enum reply_class cls = class_of_status(status);
	static const char walls[] =
		"just a moment|attention required|captcha|challenge|access denied|are human|"
		"security check|sign in|log in|web filter|firewall|blocked";

	if (cls == REPLY_NOT_FOUND || cls == REPLY_ADDRESS)
		return REPLY_ADDRESS;
	if (status < 400 || status == 511 || cls == REPLY_AUTH || cls == REPLY_BAD_REQUEST ||
	    cls == REPLY_REFUSED)
		return REPLY_WALL;
	return (cls == REPLY_RATE_LIMIT || cls == REPLY_OVERLOADED) &&
			       stream_error_any_of(walls, body, false)
		       ? REPLY_WALL
		       : cls;
}

void stream_error_body(struct reply_error *e, int status, const char *content_type,
		       const char *body, size_t len)
{
	bool html = content_type != NULL && strncasecmp(content_type, "text/html", 9) == 0;
	enum reply_class cls = class_of_status(status);
	size_t blanks = 0;
	char text[200], title[120];
	json_t *v;

	while (blanks < len && isspace((unsigned char)body[blanks]))
		blanks++;
	stream_error_set(e, cls, "");
	if (html || (blanks < len && body[blanks] == '<')) {
		title_of(body, title, sizeof(title));
		snprintf(text, sizeof(text),
			 "the service answered with a page of HTML%s%s (HTTP %d)",
			 title[0] != 0 ? ": " : "", title, status);
		stream_error_set(e, class_of_page(status, body), text);
		return;
	}
	v = json_read_others(body, len, NULL);
	if (stream_error_member(v) != NULL || (json_is_object(v) && status >= 400)) {
		stream_error_json(e, status, v);
	} else if (status >= 400 && len > 0) {
		snprintf(text, sizeof(text), "%.*s", (int)MIN(len, sizeof(text) - 1), body);
		if (strncmp(text, "error code: 1", 13) == 0) /* Cloudflare */
			cls = REPLY_WALL;
		stream_error_set(e, read_sentence(e, cls, text), text);
	} else if (status >= 200 && status < 300) {
		snprintf(e->text, sizeof(e->text),
			 "the service answered with something that is no stream of events");
	} else if (cls == REPLY_NOT_FOUND) {
		e->cls = REPLY_ADDRESS;
	}
	if (e->text[0] == 0)
		snprintf(e->text, sizeof(e->text), "the service answered HTTP %d", status);
	json_decref(v);
}
