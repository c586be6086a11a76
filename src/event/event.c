/* Event lines, writing side; see event.h. Reading is event_view.c.
 *
 * This is on the path of everything that happens, so that a line is built in
 * the caller's buffer in one go: fixed texts, numbers, escaped ids, then the
 * content as it was given. What can fail: the buffer's bound and memory. */
#include "event/event.h"

#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "codec/json.h"

static const struct kind_name {
	const char *s;
	size_t len;
} names[] = {
#define X(name, bit) [bit] = {#name, sizeof(#name) - 1},
	EVENT_KINDS(X)
#undef X
};

const char *event_kind_name(enum event_kind kind)
{
	assert((unsigned)kind < EVENT_NKINDS);
	return names[kind].s;
}

int event_kind_from(const char *name, size_t len)
{
	for (int i = 0; i < EVENT_NKINDS; i++)
		if (names[i].len == len && memcmp(names[i].s, name, len) == 0)
			return i;
	return -1;
}

/* A literal and its length, which the compiler knows. */
#define ADD(out, literal) buf_add(out, literal, sizeof(literal) - 1)

static char *put(char *at, const char *s, size_t len)
{
	memcpy(at, s, len);
	return at + len;
}

static char *put_u64(char *at, uint64_t n)
{
	char text[20], *from = text + sizeof(text);

	do {
		*--from = (char)('0' + n % 10);
		n /= 10;
	} while (n > 0);
	return put(at, from, (size_t)(text + sizeof(text) - from));
}

#define PUT(at, literal) put(at, literal, sizeof(literal) - 1)

/* From the first byte to the agent's id: one reservation. */
static void add_prefix(struct buf *out, const struct event_head *head)
{
	char text[192], *at = text;

	assert((unsigned)head->kind < EVENT_NKINDS);
	at = PUT(at, "{\"timestamp\":\"");
	clock_iso(head->wall_ms, at);
	at += CLOCK_ISO_LEN;
	at = PUT(at, "\",\"lsn\":");
	at = put_u64(at, head->lsn);
	at = PUT(at, ",\"seq\":");
	at = put_u64(at, head->seq);
	at = PUT(at, ",\"eventType\":\"");
	at = put(at, names[head->kind].s, names[head->kind].len);
	at = PUT(at, "\",\"agentId\":");
	buf_add(out, text, (size_t)(at - text));
}

static void add_id(struct buf *out, const char *id)
{
	if (id == NULL || id[0] == '\0')
		ADD(out, "\"\"");
	else
		json_escape(out, id, strlen(id));
}

/* A line must stay one line. JSON text has newlines only between tokens,
 * where a space says the same. */
static void add_content(struct buf *out, const char *content, size_t len)
{
	char *at, *end;

	if (content == NULL) {
		ADD(out, "{}");
		return;
	}
	at = buf_reserve(out, len);
	if (at == NULL)
		return;
	end = put(at, content, len);
	*end = '\0';
	out->len += len;
	while ((at = memchr(at, '\n', (size_t)(end - at))) != NULL)
		*at = ' ';
}

static void add_meta(struct buf *out, const struct event_meta *meta)
{
	struct jw w;

	jw_init(&w, out);
	jw_object(&w, NULL);
	if (meta->iteration >= 0)
		jw_int(&w, "iteration", meta->iteration);
	if (meta->input_tokens >= 0)
		jw_int(&w, "inputTokens", meta->input_tokens);
	if (meta->output_tokens >= 0)
		jw_int(&w, "outputTokens", meta->output_tokens);
	if (meta->cost_microusd >= 0)
		jw_fixed(&w, "costCents", meta->cost_microusd, 4);
	if (meta->model_id != NULL)
		jw_str(&w, "modelId", meta->model_id);
	if (meta->parent_agent_id != NULL)
		jw_str(&w, "parentAgentId", meta->parent_agent_id);
	if (meta->duration_ms >= 0)
		jw_int(&w, "duration", meta->duration_ms);
	jw_end(&w);
}

int event_encode(struct buf *out, const struct event_head *head, const char *content,
		 size_t content_len, const struct event_meta *meta)
{
	add_prefix(out, head);
	add_id(out, head->agent_id);
	ADD(out, ",\"sessionId\":");
	add_id(out, head->session_id);
	ADD(out, ",\"traceId\":");
	add_id(out, head->trace_id);
	ADD(out, ",\"userId\":");
	add_id(out, head->user_id);
	ADD(out, ",\"content\":");
	add_content(out, content, content_len);
	ADD(out, ",\"metadata\":");
	if (meta != NULL)
		add_meta(out, meta);
	else
		ADD(out, "{}");
	ADD(out, "}\n");
	return buf_check(out);
}
