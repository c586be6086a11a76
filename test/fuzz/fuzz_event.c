/* As a line: what is taken apart lies inside it, in order. As values: ids and
 * metadata made of the input become one line that reads back. */
#include "fuzz.h"

#include "base/util.h"
#include "codec/json.h"
#include "event/event.h"

static void check_inside(const char *line, size_t len, const struct event_view *v)
{
	const char *order[] = {line,          v->type.s,    v->agent_id.s, v->session_id.s,
			       v->trace_id.s, v->user_id.s, v->content.s,  v->metadata.s};

	for (size_t i = 1; i < ARRAY_LEN(order); i++)
		CHECK(order[i] > order[i - 1]);
	CHECK(v->metadata.s + v->metadata.len < line + len);
	CHECK(v->content.s[0] == '{' && v->content.s[v->content.len - 1] == '}');
	CHECK(v->metadata.s[0] == '{' && v->metadata.s[v->metadata.len - 1] == '}');
	CHECK(v->content.s + v->content.len <= v->metadata.s);
	CHECK(v->wall_ms >= 0 && v->kind >= -1 && v->kind < EVENT_NKINDS);
}

static void check_line(const char *line, size_t len)
{
	struct event_view v;

	if (event_view(line, len, &v) == 0)
		check_inside(line, len, &v);
}

static void check_values(const uint8_t *data, size_t len)
{
	static const char content[] = "{\"a\":\n{\"metadata\":{}},\"metadata\":{\"b\":[{}]}}";
	char *text = fuzz_text(data, len);
	struct event_head head = {.kind = (enum event_kind)(len % EVENT_NKINDS),
				  .wall_ms = (int64_t)len,
				  .lsn = len,
				  .agent_id = text,
				  .session_id = text + len / 2,
				  .user_id = text};
	struct event_meta meta = EVENT_META_NONE;
	struct event_view v;
	struct buf b;
	json_t *j;

	meta.model_id = meta.parent_agent_id = text;
	meta.cost_microusd = (int64_t)len * 7;
	buf_init(&b, 4096 + 64 * len);
	CHECK(event_encode(&b, &head, content, sizeof(content) - 1, &meta) == 0);
	CHECK(memchr(b.data, '\n', b.len) == b.data + b.len - 1);
	CHECK(event_view(b.data, b.len, &v) == 0);
	check_inside(b.data, b.len, &v);
	CHECK(v.kind == (int)head.kind && v.lsn == len && v.wall_ms == (int64_t)len);
	CHECK(v.content.len == sizeof(content) - 1);
	j = json_parse(b.data, b.len, NULL);
	CHECK(j != NULL && json_object_size(j) == 10);
	json_decref(j);
	buf_fini(&b);
	free(text);
}

FUZZ_TARGET(event, len)
{
	check_line((const char *)data, len);
	check_values(data, len);
}
