/* The stream of the Responses API, and its one-piece form.
 *
 * The response is created; each item (reasoning, message, calls) is added, told in pieces and
 * done; the last event has them all once more, and the usage. */
#include <inttypes.h>
#include <string.h>

#include "reply.h"
#include "signature.h"

static const char thought[] = "One more look before I answer.";

static void event_open(struct reply *r, const char *type)
{
	frame_open(r, type);
	buf_addf(&r->bytes, "{\"type\":\"%s\",\"sequence_number\":%u", type, r->n);
}

static void event_close(struct reply *r)
{
	buf_addc(&r->bytes, '}');
	frame_close(r);
}

static const char *status_of(const struct say *s, const char **why)
{
	const char *stop = s->content->stop;

	*why = NULL;
	if (strcmp(stop, "refusal") == 0)
		*why = "content_filter";
	if (strcmp(stop, "max_tokens") == 0 || strcmp(stop, "model_context_window_exceeded") == 0)
		*why = "max_output_tokens";
	return *why != NULL ? "incomplete" : "completed";
}

/* `items` NULL: it has only begun. */
static void response(struct buf *b, const struct reply *r, const struct say *s,
		     const struct buf *items)
{
	int64_t prompt = s->tokens.input + s->tokens.cache_read + s->tokens.cache_write;
	const char *why, *status = status_of(s, &why);

	buf_addf(b,
		 "{\"id\":\"resp_%016" PRIx64
		 "\",\"object\":\"response\",\"created_at\":1761000000,"
		 "\"status\":\"%s\",\"error\":null,\"incomplete_details\":",
		 s->serial * 0x9e3779b97f4a7c15u, items != NULL ? status : "in_progress");
	if (items != NULL && why != NULL)
		buf_addf(b, "{\"reason\":\"%s\"}", why);
	else
		buf_adds(b, "null");
	buf_addf(b, ",\"model\":\"%s\",\"output\":[%s],\"store\":false,\"usage\":", s->ask->model,
		 items != NULL && items->len > 0 ? items->data : "");
	if (items == NULL)
		buf_adds(b, "null}");
	else
		buf_addf(b,
			 "{\"input_tokens\":%lld,\"input_tokens_details\":{\"cached_tokens\":%lld},"
			 "\"output_tokens\":%lld,\"output_tokens_details\":{\"reasoning_tokens\":%"
			 "d},"
			 "\"total_tokens\":%lld}}",
			 (long long)prompt, (long long)s->tokens.cache_read,
			 (long long)r->output_tokens, s->content->thinking ? 8 : 0,
			 (long long)(prompt + r->output_tokens));
}

static void item_event(struct reply *r, const char *type, unsigned index, const char *item)
{
	event_open(r, type);
	buf_addf(&r->bytes, ",\"output_index\":%u,\"item\":%s", index, item);
	event_close(r);
}

static void delta(struct reply *r, const struct say *s, const char *type, unsigned index,
		  const char *text, unsigned pieces, enum place place)
{
	size_t len;

	for (unsigned i = 0; i < pieces; i++) {
		const char *piece = piece_of(text, i, pieces, &len);

		event_open(r, type);
		buf_addf(&r->bytes, ",\"item_id\":\"i%u\",\"output_index\":%u,\"delta\":\"", index,
			 index);
		json_piece(&r->bytes, s, piece, len, i == 0 ? place : PLACE_LATER);
		buf_addc(&r->bytes, '"');
		event_close(r);
	}
}

static void add_item(struct buf *items, const struct buf *item)
{
	if (items->len > 0)
		buf_addc(items, ',');
	buf_add(items, item->data, item->len);
}

static void reasoning(struct reply *r, const struct say *s, struct buf *item)
{
	char sign[SIGNATURE_SIZE];

	signature_make("", 0, s->serial * 64, sign);
	r->print = fingerprint_add(r->print, sign, strlen(sign));
	buf_addf(item,
		 "{\"id\":\"rs_%" PRIu64 "\",\"type\":\"reasoning\",\"encrypted_content\":\"%s\","
		 "\"summary\":[{\"type\":\"summary_text\",\"text\":\"%s\"}]}",
		 s->serial, sign, thought);
}

static void message(const struct say *s, struct buf *item)
{
	buf_addf(item,
		 "{\"id\":\"msg_%" PRIu64 "\",\"type\":\"message\",\"status\":\"completed\","
		 "\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"annotations\":[],"
		 "\"text\":",
		 s->serial);
	quote_json(item, s->content->text, strlen(s->content->text));
	buf_adds(item, "}]}");
}

static void function_call(struct reply *r, const struct say *s, unsigned n, bool whole,
			  struct buf *item)
{
	const struct call *k = &s->content->calls[n];
	uint64_t print = r->print;
	char id[40];

	call_id(r, s, n, id);
	if (!whole)
		r->print = print; /* it counts once */
	buf_addf(item,
		 "{\"id\":\"fc_%" PRIu64 "_%u\",\"type\":\"function_call\",\"status\":\"%s\","
		 "\"call_id\":\"%s\",\"name\":",
		 s->serial, n, whole ? "completed" : "in_progress", id);
	quote_json(item, k->name, strlen(k->name));
	buf_adds(item, ",\"arguments\":");
	quote_json(item, k->args, whole ? strlen(k->args) : 0);
	buf_addc(item, '}');
}

/* All items, joined; as a stream where `events`. */
static void items_of(struct reply *r, const struct say *s, bool events, struct buf *items)
{
	const struct content *c = s->content;
	struct buf item;
	unsigned n = 0;

	buf_init(&item, 1u << 27);
	if (c->thinking) {
		reasoning(r, s, &item);
		if (events)
			delta(r, s, "response.reasoning_summary_text.delta", n, thought, 2,
			      PLACE_LATER);
		if (events)
			item_event(r, "response.output_item.done", n, item.data);
		n++;
		add_item(items, &item);
		buf_reset(&item);
	}
	if (c->text[0] != '\0') {
		message(s, &item);
		if (events)
			delta(r, s, "response.output_text.delta", n, c->text,
			      piece_count(s, 4 + c->ncalls * 4), PLACE_TEXT);
		if (events && s->fault == NULL)
			item_event(r, "response.output_item.done", n, item.data);
		n++;
		add_item(items, &item);
		buf_reset(&item);
	}
	for (unsigned i = 0; i < c->ncalls; i++, n++) {
		if (events) {
			function_call(r, s, i, false, &item);
			item_event(r, "response.output_item.added", n, item.data);
			buf_reset(&item);
			delta(r, s, "response.function_call_arguments.delta", n, c->calls[i].args,
			      2, PLACE_ARGS);
		}
		function_call(r, s, i, true, &item);
		if (events && s->fault == NULL)
			item_event(r, "response.output_item.done", n, item.data);
		add_item(items, &item);
		buf_reset(&item);
	}
	buf_fini(&item);
}

static void stream(struct reply *r, const struct say *s)
{
	const char *why;
	struct buf items;

	event_open(r, "response.created");
	buf_adds(&r->bytes, ",\"response\":");
	response(&r->bytes, r, s, NULL);
	event_close(r);
	buf_init(&items, 1u << 28);
	items_of(r, s, true, &items);
	event_open(r, status_of(s, &why)[0] == 'c' ? "response.completed" : "response.incomplete");
	buf_adds(&r->bytes, ",\"response\":");
	response(&r->bytes, r, s, &items);
	event_close(r);
	buf_fini(&items);
}

static void whole(struct reply *r, const struct say *s)
{
	struct buf items;

	buf_init(&items, 1u << 28);
	items_of(r, s, false, &items);
	response(&r->bytes, r, s, &items);
	buf_fini(&items);
}

static void in_band_error(struct reply *r, const struct say *s)
{
	event_open(r, "response.failed");
	buf_adds(&r->bytes,
		 ",\"response\":{\"id\":\"resp_1\",\"object\":\"response\",\"status\":"
		 "\"failed\",\"error\":{\"code\":\"server_error\",\"message\":\"The server "
		 "had an error while processing your request.\"}}");
	event_close(r);
}

const struct voice voice_responses = {stream, whole, in_band_error, "call_", 32};
