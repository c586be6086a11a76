/* The stream of chat completions (and its one-piece form), with what
 * OpenRouter, Ollama, llama.cpp and others make of it.
 *
 * A chunk with the role, content pieces, tool_calls (id and name first, then
 * arguments), the finish reason, usage with no choices, [DONE]. */
#include <inttypes.h>
#include <string.h>

#include "reply.h"
#include "signature.h"

static const char thought[] = "One more look before I answer.";

static void chunk_open(struct reply *r, const struct say *s)
{
	frame_open(r, NULL);
	buf_addf(&r->bytes,
		 "{\"id\":\"%s%016" PRIx64
		 "\",\"object\":\"chat.completion.chunk\",\"created\":1761000000,\"model\":\"%s\"",
		 s->ask->service == SERVICE_OPENROUTER ? "gen-" : "chatcmpl-",
		 s->serial * 0x9e3779b97f4a7c15u, s->ask->model);
	if (s->ask->service == SERVICE_OPENROUTER)
		buf_adds(&r->bytes, ",\"provider\":\"Mock\"");
}

static void delta_open(struct reply *r, const struct say *s)
{
	chunk_open(r, s);
	buf_adds(&r->bytes, ",\"choices\":[{\"index\":0,\"delta\":{");
}

static void delta_close(struct reply *r, const struct say *s, const char *finish)
{
	if (finish != NULL)
		buf_addf(&r->bytes, "},\"finish_reason\":\"%s\"}]}", finish);
	else
		buf_adds(&r->bytes, "},\"logprobs\":null,\"finish_reason\":null}]}");
	frame_close(r);
}

static const char *finish_word(const struct say *s)
{
	const char *stop = s->content->stop;

	if (strcmp(stop, "refusal") == 0)
		return "content_filter";
	if (strcmp(stop, "max_tokens") == 0 || strcmp(stop, "model_context_window_exceeded") == 0)
		return "length";
	if (s->content->ncalls > 0)
		return "tool_calls";
	return "stop";
}

static void usage(struct buf *b, const struct reply *r, const struct say *s)
{
	int64_t prompt = s->tokens.input + s->tokens.cache_read + s->tokens.cache_write;

	buf_addf(b,
		 "{\"prompt_tokens\":%lld,\"completion_tokens\":%lld,\"total_tokens\":%lld,"
		 "\"prompt_tokens_details\":{\"cached_tokens\":%lld},"
		 "\"completion_tokens_details\":{\"reasoning_tokens\":%d}",
		 (long long)prompt, (long long)r->output_tokens,
		 (long long)(prompt + r->output_tokens), (long long)s->tokens.cache_read,
		 s->content->thinking ? 8 : 0);
	if (s->ask->service == SERVICE_OPENROUTER)
		buf_addf(b, ",\"cost\":%lld.%06lld,\"is_byok\":false",
			 (long long)(s->cost / 1000000), (long long)(s->cost % 1000000));
	buf_addc(b, '}');
}

static void role(struct reply *r, const struct say *s)
{
	delta_open(r, s);
	buf_adds(&r->bytes, "\"role\":\"assistant\",\"content\":");
	buf_adds(&r->bytes, s->content->text[0] ? "\"\"" : "null");
	delta_close(r, s, NULL);
}

/* In the words of the service: reasoning_details (OpenRouter), reasoning_content
 * (llama.cpp, DeepSeek), reasoning (newer vLLM). */
static void reasoning(struct reply *r, const struct say *s)
{
	char sign[SIGNATURE_SIZE];
	size_t len;

	signature_make(thought, strlen(thought), s->serial * 64, sign);
	for (unsigned i = 0; i < 2; i++) {
		const char *piece = piece_of(thought, i, 2, &len);

		delta_open(r, s);
		if (s->ask->service == SERVICE_OPENROUTER) {
			buf_addf(&r->bytes,
				 "\"reasoning\":\"%.*s\",\"reasoning_details\":[{\"type\":"
				 "\"reasoning.text\",\"text\":\"%.*s\",\"format\":"
				 "\"anthropic-claude-v1\",\"index\":0",
				 (int)len, piece, (int)len, piece);
			if (i == 1)
				buf_addf(&r->bytes, ",\"signature\":\"%s\"", sign);
			buf_adds(&r->bytes, "}]");
		} else {
			buf_addf(&r->bytes, "\"%s\":\"%.*s\"",
				 s->convo->plan.quirks & QUIRK_REASONING_CONTENT
					 ? "reasoning_content"
					 : "reasoning",
				 (int)len, piece);
		}
		delta_close(r, s, NULL);
	}
}

static void text(struct reply *r, const struct say *s, unsigned pieces)
{
	size_t len;

	for (unsigned i = 0; i < pieces; i++) {
		const char *piece = piece_of(s->content->text, i, pieces, &len);

		delta_open(r, s);
		buf_adds(&r->bytes, "\"content\":\"");
		json_piece(&r->bytes, s, piece, len, i == 0 ? PLACE_TEXT : PLACE_LATER);
		buf_addc(&r->bytes, '"');
		delta_close(r, s, NULL);
	}
}

static void call_open(struct reply *r, const struct say *s, unsigned n)
{
	delta_open(r, s);
	buf_adds(&r->bytes, "\"tool_calls\":[{");
	if (!(s->convo->plan.quirks & QUIRK_NO_INDEX))
		buf_addf(&r->bytes, "\"index\":%u,", s->convo->plan.quirks & QUIRK_INDEX0 ? 0 : n);
}

static void add_arguments(struct buf *b, const struct say *s, const char *args, size_t len,
			  enum place place)
{
	buf_adds(b, "\"arguments\":");
	if (s->convo->plan.quirks & QUIRK_ARGS_OBJECT) {
		buf_add(b, args, len); /* an object, not a string */
		return;
	}
	buf_addc(b, '"');
	json_piece(b, s, args, len, place);
	buf_addc(b, '"');
}

static void tool_call(struct reply *r, const struct say *s, unsigned n)
{
	const struct call *k = &s->content->calls[n];
	bool whole = (s->convo->plan.quirks & QUIRK_ARGS_OBJECT) != 0;
	char id[40];
	size_t len;

	call_id(r, s, n, id);
	call_open(r, s, n);
	if (!(s->convo->plan.quirks & QUIRK_NO_IDS))
		buf_addf(&r->bytes, "\"id\":\"%s\",", id);
	buf_adds(&r->bytes, "\"type\":\"function\",\"function\":{\"name\":");
	quote_json(&r->bytes, k->name, strlen(k->name));
	buf_addc(&r->bytes, ',');
	add_arguments(&r->bytes, s, k->args, whole ? strlen(k->args) : 0,
		      whole ? PLACE_ARGS : PLACE_LATER);
	buf_adds(&r->bytes, "}}]");
	delta_close(r, s, NULL);
	for (unsigned i = 0; i < 2 && !whole; i++) {
		const char *piece = piece_of(k->args, i, 2, &len);

		call_open(r, s, n);
		buf_adds(&r->bytes, "\"function\":{");
		add_arguments(&r->bytes, s, piece, len, i == 0 ? PLACE_ARGS : PLACE_LATER);
		buf_adds(&r->bytes, "}}]");
		delta_close(r, s, NULL);
	}
}

static void last_usage(struct reply *r, const struct say *s)
{
	bool asked = s->ask->usage_wanted || s->ask->service == SERVICE_OPENROUTER;

	if (!asked)
		return;
	chunk_open(r, s);
	buf_adds(&r->bytes, ",\"choices\":[],\"usage\":");
	usage(&r->bytes, r, s);
	buf_addc(&r->bytes, '}');
	frame_close(r);
}

static void finish(struct reply *r, const struct say *s)
{
	delta_open(r, s);
	delta_close(r, s, finish_word(s));
	last_usage(r, s);
	frame_open(r, NULL);
	buf_adds(&r->bytes, "[DONE]");
	frame_close(r);
}

static void whole_call(struct reply *r, const struct say *s, unsigned n)
{
	const struct call *k = &s->content->calls[n];
	char id[40];

	buf_addf(&r->bytes, "%s{\"id\":\"%s\",\"type\":\"function\",\"function\":{\"name\":\"%s\",",
		 n ? "," : "", call_id(r, s, n, id), k->name);
	buf_adds(&r->bytes, "\"arguments\":");
	quote_json(&r->bytes, k->args, strlen(k->args));
	buf_adds(&r->bytes, "}}");
}

static void whole(struct reply *r, const struct say *s)
{
	const struct content *c = s->content;

	buf_addf(&r->bytes,
		 "{\"id\":\"chatcmpl-%016" PRIx64
		 "\",\"object\":\"chat.completion\",\"created\":1761000000,\"model\":\"%s\","
		 "\"choices\":[{\"index\":0,\"message\":{\"role\":\"assistant\",\"content\":",
		 s->serial * 0x9e3779b97f4a7c15u, s->ask->model);
	if (c->text[0] != '\0')
		quote_json(&r->bytes, c->text, strlen(c->text));
	else
		buf_adds(&r->bytes, "null");
	if (c->ncalls > 0)
		buf_adds(&r->bytes, ",\"tool_calls\":[");
	for (unsigned i = 0; i < c->ncalls; i++)
		whole_call(r, s, i);
	if (c->ncalls > 0)
		buf_addc(&r->bytes, ']');
	buf_addf(&r->bytes,
		 "},\"logprobs\":null,\"finish_reason\":\"%s\"}],\"usage\":", finish_word(s));
	usage(&r->bytes, r, s);
	buf_addc(&r->bytes, '}');
}

static void in_band_error(struct reply *r, const struct say *s)
{
	if (s->ask->service == SERVICE_OPENROUTER) {
		chunk_open(r, s);
		buf_adds(&r->bytes,
			 ",\"error\":{\"code\":502,\"message\":\"Provider "
			 "disconnected\",\"metadata\":"
			 "{\"error_type\":\"provider_unavailable\"}},\"choices\":[{\"index\":0,"
			 "\"delta\":{\"content\":\"\"},\"finish_reason\":\"error\"}]}");
	} else {
		frame_open(r, NULL);
		buf_adds(&r->bytes,
			 "{\"error\":{\"message\":\"The server had an error while processing "
			 "your request.\",\"type\":\"server_error\",\"param\":null,\"code\":"
			 "null}}");
	}
	frame_close(r);
}

static void stream(struct reply *r, const struct say *s)
{
	const struct content *c = s->content;
	unsigned others = 4 + c->ncalls * 3 + (c->thinking ? 2 : 0);

	role(r, s);
	if (c->thinking)
		reasoning(r, s);
	if (c->text[0] != '\0')
		text(r, s, piece_count(s, others));
	for (unsigned i = 0; i < c->ncalls; i++)
		tool_call(r, s, i);
	finish(r, s);
}

const struct voice voice_openai = {stream, whole, in_band_error, "call_", 32};
