/* The stream of the Messages API (and its one-piece form).
 *
 * message_start, then each block as start, deltas, stop, then message_delta
 * and message_stop. Signatures are made here, so that thinking can prove that
 * it came back whole. */
#include <inttypes.h>
#include <string.h>

#include "reply.h"
#include "signature.h"

static const char thought[] =
	"The task asks for one more look before I answer. \xe2\x80\x94 so be it.";

static void usage(struct buf *b, const struct say *s, int64_t output)
{
	buf_addf(b,
		 "{\"input_tokens\":%lld,\"cache_creation_input_tokens\":%lld,"
		 "\"cache_read_input_tokens\":%lld,\"output_tokens\":%lld}",
		 (long long)s->tokens.input, (long long)s->tokens.cache_write,
		 (long long)s->tokens.cache_read, (long long)output);
}

static void start(struct reply *r, const struct say *s)
{
	frame_open(r, "message_start");
	buf_addf(&r->bytes,
		 "{\"type\":\"message_start\",\"message\":{\"id\":\"msg_01%016" PRIx64
		 "\",\"type\":\"message\",\"role\":\"assistant\",\"model\":\"%s\",\"content\":[],"
		 "\"stop_reason\":null,\"stop_sequence\":null,\"usage\":",
		 s->serial * 0x9e3779b97f4a7c15u, s->ask->model);
	usage(&r->bytes, s, 1);
	buf_adds(&r->bytes, "}}");
	frame_close(r);
}

static void block_start(struct reply *r, const struct say *s, unsigned index)
{
	frame_open(r, "content_block_start");
	buf_addf(&r->bytes,
		 "{\"type\":\"content_block_start\",\"index\":%u,\"content_block\":", index);
}

static void block_stop(struct reply *r, const struct say *s, unsigned index)
{
	frame_open(r, "content_block_stop");
	buf_addf(&r->bytes, "{\"type\":\"content_block_stop\",\"index\":%u}", index);
	frame_close(r);
}

static void delta_open(struct reply *r, const struct say *s, unsigned index, const char *type,
		       const char *member)
{
	frame_open(r, "content_block_delta");
	buf_addf(&r->bytes,
		 "{\"type\":\"content_block_delta\",\"index\":%u,\"delta\":{\"type\":\"%s\","
		 "\"%s\":\"",
		 index, type, member);
}

static void delta_close(struct reply *r, const struct say *s)
{
	buf_adds(&r->bytes, "\"}}");
	frame_close(r);
}

static void print_add(struct reply *r, const char *s)
{
	r->print = fingerprint_add(r->print, s, strlen(s));
}

static unsigned thinking_block(struct reply *r, const struct say *s, unsigned index)
{
	const char *text = s->convo->plan.quirks & QUIRK_OMITTED ? "" : thought;
	char sign[SIGNATURE_SIZE];
	size_t len;

	signature_make(text, strlen(text), s->serial * 64 + index, sign);
	block_start(r, s, index);
	buf_adds(&r->bytes, "{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}}");
	frame_close(r);
	for (unsigned i = 0; i < 2 && *text != '\0'; i++) {
		const char *piece = piece_of(text, i, 2, &len);

		delta_open(r, s, index, "thinking_delta", "thinking");
		buf_add(&r->bytes, piece, len);
		delta_close(r, s);
	}
	delta_open(r, s, index, "signature_delta", "signature");
	buf_adds(&r->bytes, sign);
	delta_close(r, s);
	block_stop(r, s, index);
	print_add(r, sign);
	return index + 1;
}

static unsigned redacted_block(struct reply *r, const struct say *s, unsigned index)
{
	char sign[SIGNATURE_SIZE];

	signature_make("", 0, s->serial * 64 + index, sign);
	block_start(r, s, index);
	buf_addf(&r->bytes, "{\"type\":\"redacted_thinking\",\"data\":\"%s\"}}", sign);
	frame_close(r);
	block_stop(r, s, index);
	print_add(r, sign);
	return index + 1;
}

/* A block of a type that no client knows: to be kept byte for byte. Members in
 * an order of its own, numbers and escapes in forms a parser would rewrite. */
static unsigned sealed_block(struct reply *r, const struct say *s, unsigned index)
{
	size_t from;

	block_start(r, s, index);
	from = r->bytes.len;
	buf_addf(&r->bytes,
		 "{\"type\":\"mock_sealed\", \"zeta\":1.50,\"alpha\":[ 1e2,\"\\u00e9\\/\"],"
		 "\"serial\":%" PRIu64,
		 s->serial);
	seal_close(&r->bytes, from);
	buf_addc(&r->bytes, '}');
	frame_close(r);
	block_stop(r, s, index);
	return index + 1;
}

static unsigned text_block(struct reply *r, const struct say *s, unsigned index, unsigned pieces)
{
	size_t len;

	block_start(r, s, index);
	buf_adds(&r->bytes, "{\"type\":\"text\",\"text\":\"\"}}");
	frame_close(r);
	for (unsigned i = 0; i < pieces; i++) {
		const char *piece = piece_of(s->content->text, i, pieces, &len);

		delta_open(r, s, index, "text_delta", "text");
		json_piece(&r->bytes, s, piece, len, i == 0 ? PLACE_TEXT : PLACE_LATER);
		delta_close(r, s);
	}
	block_stop(r, s, index);
	return index + 1;
}

static unsigned tool_block(struct reply *r, const struct say *s, unsigned index, unsigned n)
{
	const struct call *k = &s->content->calls[n];
	const unsigned pieces = 2;
	char id[40];
	size_t len;

	block_start(r, s, index);
	buf_addf(&r->bytes, "{\"type\":\"tool_use\",\"id\":\"%s\",\"name\":", call_id(r, s, n, id));
	quote_json(&r->bytes, k->name, strlen(k->name));
	buf_adds(&r->bytes, ",\"input\":{}}}");
	frame_close(r);
	delta_open(r, s, index, "input_json_delta", "partial_json");
	delta_close(r, s);
	for (unsigned i = 0; i < pieces; i++) {
		const char *piece = piece_of(k->args, i, pieces, &len);

		delta_open(r, s, index, "input_json_delta", "partial_json");
		json_piece(&r->bytes, s, piece, len, i == 0 ? PLACE_ARGS : PLACE_LATER);
		delta_close(r, s);
	}
	if (s->content->odd != FAULT_HALF_TOOL)
		block_stop(r, s, index);
	return index + 1;
}

static void finish(struct reply *r, const struct say *s)
{
	frame_open(r, "message_delta");
	buf_addf(&r->bytes,
		 "{\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"%s\","
		 "\"stop_sequence\":null},\"usage\":",
		 s->content->stop);
	usage(&r->bytes, s, r->output_tokens);
	buf_addc(&r->bytes, '}');
	frame_close(r);
	frame_open(r, "message_stop");
	buf_adds(&r->bytes, "{\"type\":\"message_stop\"}");
	frame_close(r);
}

/* The reply in one piece, for requests that do not stream. */
static void whole(struct reply *r, const struct say *s)
{
	const struct content *c = s->content;
	bool first = true;
	char id[40];

	buf_addf(&r->bytes,
		 "{\"id\":\"msg_01%016" PRIx64 "\",\"type\":\"message\",\"role\":\"assistant\","
		 "\"model\":\"%s\",\"content\":[",
		 s->serial * 0x9e3779b97f4a7c15u, s->ask->model);
	if (c->thinking) {
		char sign[SIGNATURE_SIZE];

		signature_make(thought, strlen(thought), s->serial * 64, sign);
		buf_addf(&r->bytes,
			 "{\"type\":\"thinking\",\"thinking\":\"%s\",\"signature\":\"%s\"}",
			 thought, sign);
		print_add(r, sign);
		first = false;
	}
	if (c->text[0] != '\0') {
		buf_addf(&r->bytes, "%s{\"type\":\"text\",\"text\":", first ? "" : ",");
		quote_json(&r->bytes, c->text, strlen(c->text));
		buf_addc(&r->bytes, '}');
		first = false;
	}
	for (unsigned i = 0; i < c->ncalls; i++) {
		buf_addf(&r->bytes,
			 "%s{\"type\":\"tool_use\",\"id\":\"%s\",\"name\":\"%s\",\"input\":%s}",
			 first ? "" : ",", call_id(r, s, i, id), c->calls[i].name,
			 c->calls[i].args);
		first = false;
	}
	buf_addf(&r->bytes, "],\"stop_reason\":\"%s\",\"stop_sequence\":null,\"usage\":", c->stop);
	usage(&r->bytes, s, r->output_tokens);
	buf_addc(&r->bytes, '}');
}

static void in_band_error(struct reply *r, const struct say *s)
{
	frame_open(r, "error");
	buf_adds(&r->bytes,
		 "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":"
		 "\"Overloaded\"},\"request_id\":\"req_011mock\"}");
	frame_close(r);
}

static void stream(struct reply *r, const struct say *s)
{
	const struct content *c = s->content;
	unsigned index = 0, others = 3 + c->ncalls * 2 + (c->thinking ? 3 : 0);

	start(r, s);
	if (c->thinking)
		index = thinking_block(r, s, index);
	if (s->convo->plan.quirks & QUIRK_REDACTED)
		index = redacted_block(r, s, index);
	if (s->convo->plan.quirks & QUIRK_SEALED)
		index = sealed_block(r, s, index);
	if (c->text[0] != '\0' || c->stop[0] == 'r')
		index = text_block(r, s, index, c->text[0] ? piece_count(s, others) : 1);
	for (unsigned i = 0; i < c->ncalls; i++)
		index = tool_block(r, s, index, i);
	if (c->odd == FAULT_PAUSE) /* as with a tool of the service that is at work */
		sealed_block(r, s, index);
	finish(r, s);
}

const struct voice voice_anthropic = {stream, whole, in_band_error, "toolu_01", 80};
