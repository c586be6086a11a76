/* A request as the mock reads it: which service, what the headers said, the
 * body's tape, and after the checks what the reply and the account need. The
 * verdict is the error that the real service would answer with. */
#ifndef MOCK_ASK_H
#define MOCK_ASK_H

#include <stdbool.h>
#include <stdint.h>

#include "tape.h"

/* By path: /v1/messages, /v1/chat/completions, /api/v1/chat/completions,
 * /local/v1/chat/completions; the last three have /responses as well (struct ask: items). */
enum service { SERVICE_ANTHROPIC, SERVICE_OPENAI, SERVICE_OPENROUTER, SERVICE_LOCAL };

/* What a model takes and what it costs, as far as a request shows it. Cost in
 * micro-USD per million tokens. */
struct model_facts {
	const char *prefix; /* of the model's name */
	int64_t window, max_output;
	int64_t cache_min;     /* shorter prefixes are not cached */
	bool budget, adaptive; /* kinds of thinking */
	bool sampling;         /* temperature, top_p, top_k */
	bool prefill;          /* the last message may be the assistant's */
	bool max_tokens;       /* OpenAI: max_tokens, not only max_completion_tokens */
	int64_t input_price, output_price;
};
/* Never NULL: a name that is in no row takes everything. */
const struct model_facts *model_facts(enum service service, const char *name);

struct verdict {
	int status;       /* 0: nothing to object to */
	const char *type; /* of the service's error object */
	char text[600];
	char param[96];   /* OpenAI: the member at fault, "" none */
	const char *code; /* OpenAI; NULL: null */
};
/* Keep the first objection. Returns false. */
bool verdict_set(struct verdict *v, int status, const char *type, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
#define INVALID         "invalid_request_error"
#define invalid(v, ...) verdict_set(v, 400, INVALID, __VA_ARGS__)

/* The Messages API's newer version; it has no sampling parameters. */
#define VERSION_NEW "2026-10-21"

struct ask {
	enum service service;
	bool items; /* it came to /responses */
	/* from the headers; "" when absent */
	char method[8], path[160], query[160];
	char key[160];    /* x-api-key, or Authorization without "Bearer " */
	char bearer;      /* Authorization was there */
	char version[32]; /* anthropic-version */
	char type[64];    /* content-type */
	/* from the body; `t` is good until the next request is read */
	const struct tape *t;
	size_t body_len;
	char model[160];
	const struct model_facts *facts;
	uint32_t system, tools, messages; /* nodes; 0: absent */
	uint32_t nmessages, nassistant;
	int64_t max_tokens;
	bool stream, usage_wanted; /* stream_options.include_usage */
	bool thinking;
	uint32_t forced; /* node of the name that tool_choice forces, or 0 */
	bool no_tools;   /* tool_choice none */
	bool formed;     /* response_format: a schema */
	int64_t window;  /* facts->window, or what the plan says */
};

/* Reads the members both dialects share; false: *v says what is wrong. */
bool ask_read(struct ask *a, const struct tape *t, struct verdict *v);

/* The checks of one service, headers first. */
bool check_headers(const struct ask *a, struct verdict *v);
bool check_anthropic(struct ask *a, struct verdict *v);
bool check_openai(struct ask *a, struct verdict *v);
bool check_responses(struct ask *a, struct verdict *v);
/* The one for it. */
bool check_body(struct ask *a, struct verdict *v);
/* Of a conversation of items: the i-th node is one of a reply of the model. */
bool item_is_reply(const struct ask *a, uint32_t item);
/* After the window is known: does the request fit? */
bool check_window(const struct ask *a, int64_t tokens, struct verdict *v);

/* Shared by them: every member of `object` is in the NULL-ended list. */
bool check_members(const struct ask *a, uint32_t object, const char *const *known,
		   const char **unknown, char name[64]);
/* Two strings, byte for byte. */
bool same_text(const struct ask *a, uint32_t x, uint32_t y);
/* [a-zA-Z0-9_-]{1,max} */
bool check_word(const struct ask *a, uint32_t node, size_t max);

/* The services' error bodies. `request_id` goes into Anthropic's. */
void verdict_body(const struct ask *a, const struct verdict *v, const char *request_id,
		  struct buf *out);
/* `s` as a JSON string with its quotes. */
void quote_json(struct buf *out, const char *s, size_t len);

#endif
