/* Event lines, reading side; see event.h.
 *
 * A line in canonical form is taken apart by its fixed texts alone, without
 * parsing or copying: a scan over a gigabyte of log does this for each hit.
 * The content is what lies between userId and the last `,"metadata":{`. The
 * metadata has no object in it, and inside a JSON string each quote has a
 * backslash before it, so that this text is never found elsewhere behind the
 * true one. Everything else is AVA_ECORRUPT. */
#include <ava.h>
#include <string.h>

#include "base/clock.h"
#include "event/event.h"

struct cursor {
	const char *at, *end;
};

#define LITERAL(c, text) skip(c, text, sizeof(text) - 1)

static bool skip(struct cursor *c, const char *text, size_t len)
{
	if ((size_t)(c->end - c->at) < len || memcmp(c->at, text, len) != 0)
		return false;
	c->at += len;
	return true;
}

/* As we print it: no leading zero, no sign. */
static bool number(struct cursor *c, uint64_t *out)
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

/* The body of a string whose opening quote is behind us. */
static bool string(struct cursor *c, const char **s, size_t *len)
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

static bool view_head(struct cursor *c, struct event_view *v)
{
	if (!LITERAL(c, "{\"timestamp\":\"") || c->end - c->at < CLOCK_ISO_LEN)
		return false;
	v->wall_ms = clock_parse_iso(c->at, CLOCK_ISO_LEN);
	c->at += CLOCK_ISO_LEN;
	return v->wall_ms >= 0 && LITERAL(c, "\",\"lsn\":") && number(c, &v->lsn) &&
	       LITERAL(c, ",\"seq\":") && number(c, &v->seq) && LITERAL(c, ",\"eventType\":\"") &&
	       STRING(c, v->type) && LITERAL(c, ",\"agentId\":\"") && STRING(c, v->agent_id) &&
	       LITERAL(c, ",\"sessionId\":\"") && STRING(c, v->session_id) &&
	       LITERAL(c, ",\"traceId\":\"") && STRING(c, v->trace_id) &&
	       LITERAL(c, ",\"userId\":\"") && STRING(c, v->user_id) && LITERAL(c, ",\"content\":");
}

/* `c` is at the content and ends with the line's last brace. */
static bool view_tail(struct cursor *c, struct event_view *v)
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
	struct cursor c = {line, line + len};

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
