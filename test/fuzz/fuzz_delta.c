/* Any bytes as the data of an event: a hot piece is what jansson finds there, too. */
#include "fuzz.h"

#include "base/buf.h"
#include "codec/json.h"
#include "codec/utf8.h"
#include "provider/stream_core.h"

static const json_t *find_piece(const json_t *v, enum delta_form form, enum delta_kind kind)
{
	bool chat = form == DELTAS_CHAT;
	static const char *const keys[][2] = {
		[DELTA_TEXT] = {"text", "content"},
		[DELTA_THINKING] = {"thinking", "reasoning_content"},
		[DELTA_REASONING] = {"", "reasoning"},
		[DELTA_ARGS] = {"partial_json", "arguments"},
	};
	const json_t *choice = json_array_get(json_object_get(v, "choices"), 0);
	const json_t *in = json_object_get(chat ? choice : v, "delta");

	if (form == DELTAS_ITEMS)
		return json_object_get(v, "delta");
	if (chat && kind == DELTA_ARGS)
		in = json_object_get(json_array_get(json_object_get(in, "tool_calls"), 0),
				     "function");
	return json_object_get(in, keys[kind][chat]);
}

static void check_piece(enum delta_form form, const char *s, size_t len)
{
	struct delta d;
	struct buf text;
	json_t *v;

	delta_read(s, len, form, &d);
	if (d.kind == DELTA_NONE || d.kind == DELTA_EMPTY)
		return;
	buf_init(&text, len + 1);
	CHECK(delta_add(&text, &d) == 0 && text.len > 0 && utf8_valid(text.data, text.len));
	v = json_parse(s, len, NULL);
	if (v != NULL) { /* else another member is damaged */
		const json_t *piece = find_piece(v, form, d.kind);

		CHECK(json_string_length(piece) == text.len &&
		      memcmp(json_string_value(piece), text.data, text.len) == 0);
	}
	json_decref(v);
	buf_fini(&text);
}

FUZZ_TARGET(delta, len)
{
	for (int form = DELTAS_MESSAGES; form <= DELTAS_ITEMS; form++)
		check_piece((enum delta_form)form, (const char *)data, len);
}
