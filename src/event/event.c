/* Event lines; see event.h.
 *
 * This is on the path of everything that happens, so that a line is built in
 * the caller's buffer in one go: fixed texts, numbers, escaped ids, then the
 * content as it was given. What can fail: the buffer's bound and memory. *
 * A line in canonical form is read by its fixed texts alone, without
 * parsing or copying: a scan over a gigabyte of log does this for each hit.
 * The content is what lies between userId and the last `,"metadata":{`. The
 * metadata has no object in it, and inside a JSON string each quote has a
 * backslash before it, so that this text is never found elsewhere behind the
 * true one. Everything else is AVA_ECORRUPT. */
#include "event/event.h"

#include <assert.h>
#include <ava.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/util.h"
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

#define PREFIX_MIN 2 /* letters of a type's name */

static const struct {
	const char *name;
	uint64_t types;
} type_aliases[] = {
	{"thinking", UINT64_C(1) << EVENT_ExtendedThinking},
	{"errors", UINT64_C(1) << EVENT_Error},
	{"erroroccurred", UINT64_C(1) << EVENT_Error},
	{"tools", UINT64_C(1) << EVENT_ToolCall | UINT64_C(1) << EVENT_ToolResult},
	{"costs", UINT64_C(1) << EVENT_CostUpdate},
	{"model", UINT64_C(1) << EVENT_InferStart | UINT64_C(1) << EVENT_InferEnd},
	{"message", UINT64_C(1) << EVENT_UserMessage | UINT64_C(1) << EVENT_AssistantMessage},
	{"messages", UINT64_C(1) << EVENT_UserMessage | UINT64_C(1) << EVENT_AssistantMessage},
};

static uint64_t event_types_of(const char *word, size_t len)
{
	uint64_t by_prefix = 0;

	for (int kind = 0; kind < EVENT_NKINDS; kind++) {
		const char *name = event_kind_name((enum event_kind)kind);

		if (strncasecmp(name, word, len) != 0)
			continue;
		if (strlen(name) == len)
			return UINT64_C(1) << kind;
		by_prefix |= UINT64_C(1) << kind;
	}
	for (size_t i = 0; i < ARRAY_LEN(type_aliases); i++)
		if (strlen(type_aliases[i].name) == len &&
		    strncasecmp(type_aliases[i].name, word, len) == 0)
			return type_aliases[i].types;
	return len >= PREFIX_MIN ? by_prefix : 0;
}

int event_types(const char *types, uint64_t *mask, struct ava_error *err)
{
	*mask = 0;
	for (const char *p = types; *p != '\0';) {
		size_t len = strcspn(p, ",");
		uint64_t found = event_types_of(p, len);

		if (found == 0)
			return err_set(err, AVA_EINVAL, "there is no event type \"%.*s\"",
				       (int)MIN(len, 60u), p);
		*mask |= found;
		p += len + (p[len] == ',');
	}
	return 0;
}

#define ID_PLAIN_MAX 64 /* longer ids go the slow way */

/* A line is put together here and handed over in two or three pieces: most
 * parts are a few bytes, and a call of the buffer for each would cost more
 * than the bytes. */
struct pen {
	struct buf *out;
	size_t len;
	char text[768];
};

static void event_flush(struct pen *p)
{
	buf_add(p->out, p->text, p->len);
	p->len = 0;
}

/* Room for `len` bytes, which must be fewer than text[] has. */
static inline char *event_room(struct pen *p, size_t len)
{
	if (sizeof(p->text) - p->len < len)
		event_flush(p);
	return p->text + p->len;
}

static inline void event_put(struct pen *p, const char *s, size_t len)
{
	memcpy(event_room(p, len), s, len);
	p->len += len;
}

/* A literal and its length, which the compiler knows. */
#define PUT(p, literal) event_put(p, literal, sizeof(literal) - 1)

static void put_u64(struct pen *p, uint64_t n)
{
	char text[20], *from = text + sizeof(text);

	do {
		*--from = (char)('0' + n % 10);
		n /= 10;
	} while (n > 0);
	event_put(p, from, (size_t)(text + sizeof(text) - from));
}

static void event_put_string(struct pen *p, const char *s)
{
	size_t len = s != NULL ? strlen(s) : 0;
	char *at;

	if (len > ID_PLAIN_MAX || json_plain(s, len) < len) {
		event_flush(p);
		json_escape(p->out, s, len);
		return;
	}
	at = event_room(p, len + 2);
	at[0] = '"';
	if (len > 0)
		memcpy(at + 1, s, len);
	at[len + 1] = '"';
	p->len += len + 2;
}

static void put_numbers(struct pen *p, int64_t wall_ms, uint64_t lsn, uint64_t seq)
{
	PUT(p, "{\"timestamp\":\"");
	clock_iso(wall_ms, event_room(p, CLOCK_ISO_LEN + 1));
	p->len += CLOCK_ISO_LEN;
	PUT(p, "\",\"lsn\":");
	put_u64(p, lsn);
	PUT(p, ",\"seq\":");
	put_u64(p, seq);
}

/* A line must stay one line. JSON text has newlines only between tokens,
 * where a space says the same. */
static void event_put_content(struct pen *p, const char *content, size_t len)
{
	char *at, *end;

	event_flush(p);
	at = buf_reserve(p->out, len);
	if (at == NULL)
		return;
	memcpy(at, content, len);
	end = at + len;
	*end = '\0';
	p->out->len += len;
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

int event_begin(struct buf *out, int64_t wall_ms, uint64_t lsn, uint64_t seq)
{
	struct pen p;

	p.out = out;
	p.len = 0; /* text[] is not zeroed, which would cost time */
	put_numbers(&p, wall_ms, lsn, seq);
	event_flush(&p);
	return buf_check(out);
}

/* `p` may hold the line's beginning. */
static int put_rest(struct pen *p, const struct event_head *head, const char *content,
		    size_t content_len, const struct event_meta *meta)
{
	struct buf *out = p->out;

	assert((unsigned)head->kind < EVENT_NKINDS);
	PUT(p, ",\"eventType\":\"");
	event_put(p, names[head->kind].s, names[head->kind].len);
	PUT(p, "\",\"agentId\":");
	event_put_string(p, head->agent_id);
	PUT(p, ",\"sessionId\":");
	event_put_string(p, head->session_id);
	PUT(p, ",\"traceId\":");
	event_put_string(p, head->trace_id);
	PUT(p, ",\"userId\":");
	event_put_string(p, head->user_id);
	PUT(p, ",\"content\":");
	if (content == NULL)
		PUT(p, "{}");
	else
		event_put_content(p, content, content_len);
	PUT(p, ",\"metadata\":");
	event_flush(p);
	if (meta != NULL)
		add_meta(out, meta);
	else
		buf_add(out, "{}", 2);
	return buf_add(out, "}\n", 2);
}

int event_rest(struct buf *out, const struct event_head *head, const char *content,
	       size_t content_len, const struct event_meta *meta)
{
	struct pen p;

	p.out = out;
	p.len = 0;
	return put_rest(&p, head, content, content_len, meta);
}

int event_encode(struct buf *out, const struct event_head *head, const char *content,
		 size_t content_len, const struct event_meta *meta)
{
	struct pen p;

	p.out = out;
	p.len = 0;
	put_numbers(&p, head->wall_ms, head->lsn, head->seq);
	return put_rest(&p, head, content, content_len, meta);
}

/* ---- reading */

struct view_cursor {
	const char *at, *end;
};

#define LITERAL(c, text) skip(c, text, sizeof(text) - 1)

static bool skip(struct view_cursor *c, const char *text, size_t len)
{
	if ((size_t)(c->end - c->at) < len || memcmp(c->at, text, len) != 0)
		return false;
	c->at += len;
	return true;
}

/* A number in our printed form: no leading zero, no sign. */
static bool event_number(struct view_cursor *c, uint64_t *out)
{
	const char *from = c->at;
	uint64_t n = 0;

	while (c->at < c->end && *c->at >= '0' && *c->at <= '9') {
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(*c->at - '0'), &n))
			return false;
		c->at++;
	}
	*out = n;
	return c->at > from && (*from != '0' || c->at == from + 1);
}

/* The body of a string whose opening quote was read. */
static bool string(struct view_cursor *c, const char **s, size_t *len)
{
	const char *from = c->at;

	for (const char *p = from; p < c->end; p++) {
		if (*p == '"') {
			*s = from;
			*len = (size_t)(p - from);
			c->at = p + 1;
			return true;
		}
		if (*p == '\\')
			p++;
		else if ((unsigned char)*p < 0x20)
			return false;
	}
	return false;
}

#define STRING(c, field) string(c, &(field).s, &(field).len)

static bool view_head(struct view_cursor *c, struct event_view *v)
{
	if (!LITERAL(c, "{\"timestamp\":\"") || c->end - c->at < CLOCK_ISO_LEN)
		return false;
	v->wall_ms = clock_parse_iso(c->at, CLOCK_ISO_LEN);
	c->at += CLOCK_ISO_LEN;
	return v->wall_ms >= 0 && LITERAL(c, "\",\"lsn\":") && event_number(c, &v->lsn) &&
	       LITERAL(c, ",\"seq\":") && event_number(c, &v->seq) &&
	       LITERAL(c, ",\"eventType\":\"") && STRING(c, v->type) &&
	       LITERAL(c, ",\"agentId\":\"") && STRING(c, v->agent_id) &&
	       LITERAL(c, ",\"sessionId\":\"") && STRING(c, v->session_id) &&
	       LITERAL(c, ",\"traceId\":\"") && STRING(c, v->trace_id) &&
	       LITERAL(c, ",\"userId\":\"") && STRING(c, v->user_id) && LITERAL(c, ",\"content\":");
}

/* `c` is at the content and ends with the line's last brace. */
static bool view_tail(struct view_cursor *c, struct event_view *v)
{
	static const char key[] = ",\"metadata\":";
	const size_t n = sizeof(key) - 1;
	const char *brace = c->end;

	do {
		brace = memrchr(c->at, '{', (size_t)(brace - c->at));
		if (brace == NULL || (size_t)(brace - c->at) < n + 2)
			return false;
	} while (memcmp(brace - n, key, n) != 0);
	v->content.s = c->at;
	v->content.len = (size_t)(brace - n - c->at);
	v->metadata.s = brace;
	v->metadata.len = (size_t)(c->end - brace);
	return c->at[0] == '{' && brace[-(ptrdiff_t)n - 1] == '}' && c->end[-1] == '}' &&
	       v->metadata.len >= 2;
}

int event_view(const char *line, size_t len, struct event_view *v)
{
	struct view_cursor c = {line, line + len};

	*v = (struct event_view){.kind = -1};
	if (len > 0 && line[len - 1] == '\n')
		c.end--;
	if (c.at == c.end || c.end[-1] != '}')
		return AVA_ECORRUPT;
	c.end--;
	if (!view_head(&c, v) || !view_tail(&c, v))
		return AVA_ECORRUPT;
	v->kind = event_kind_from(v->type.s, v->type.len);
	return 0;
}
