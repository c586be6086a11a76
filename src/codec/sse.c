/* Server-sent events as the HTML standard reads them; see sse.h.
 *
 * Bytes come in pieces of any size. A line within one piece is used in place; only the end of a
 * piece is kept in `line`. A frame is delivered at its blank line, so one cut off by the end of
 * the stream is not. What can fail: a line or frame over the bound, and memory; the stream is
 * useless after that. */
#include "codec/sse.h"

#include <ava.h>
#include <string.h>

void sse_init(struct sse *s, size_t max_frame)
{
	*s = (struct sse){0};
	buf_init(&s->line, max_frame);
	buf_init(&s->data, max_frame);
	buf_init(&s->event, max_frame);
	buf_init(&s->id, max_frame);
	buf_init(&s->machine, max_frame);
}

void sse_fini(struct sse *s)
{
	buf_fini(&s->line);
	buf_fini(&s->data);
	buf_fini(&s->event);
	buf_fini(&s->id);
	buf_fini(&s->machine);
}

static int dispatch(struct sse *s)
{
	struct sse_event e = {
		.event = s->event.len > 0 ? s->event.data : "message",
		.data = s->data.len > 0 ? s->data.data : "",
		.len = s->data.len,
		.id = s->id.len > 0 ? s->id.data : "",
		.machine = s->machine.len > 0 ? s->machine.data : "",
	};
	int rv = 0;

	if (s->has_data)
		rv = s->on_event(&e, s->user);
	s->has_data = false;
	buf_reset(&s->data);
	buf_reset(&s->event);
	buf_reset(&s->machine);
	return rv;
}

static bool sse_is(const char *name, size_t len, const char *want)
{
	return len == strlen(want) && memcmp(name, want, len) == 0;
}

static int take_field(struct sse *s, const char *name, size_t name_len, const char *value,
		      size_t len)
{
	bool data = sse_is(name, name_len, "data"), event = sse_is(name, name_len, "event");
	bool object = s->data.len > 0 && s->data.data[s->data.len - 1] == '}';
	int rv = 0;

	if (object && (event || (data && len > 0 && (*value == '{' || *value == '['))))
		rv = dispatch(s);
	if (rv != 0)
		return rv;
	if (data) {
		if (s->has_data)
			buf_addc(&s->data, '\n');
		s->has_data = true;
		rv = buf_add(&s->data, value, len);
		return rv == 0 && sse_is(value, len, "[DONE]") ? dispatch(s) : rv;
	}
	if (event) {
		buf_reset(&s->event);
		return buf_add(&s->event, value, len);
	}
	if (sse_is(name, name_len, "id") && memchr(value, '\0', len) == NULL) {
		buf_reset(&s->id);
		return buf_add(&s->id, value, len);
	}
	if (sse_is(name, name_len, "machine")) {
		buf_reset(&s->machine);
		return buf_add(&s->machine, value, len);
	}
	return 0; /* skip `retry` and unknown fields */
}

static int sse_take_line(struct sse *s, const char *line, size_t len)
{
	const char *colon, *value;

	if (!s->started) {
		s->started = true;
		if (len >= 3 && memcmp(line, "\xef\xbb\xbf", 3) == 0) {
			line += 3;
			len -= 3;
		}
	}
	if (len == 0)
		return dispatch(s);
	if (line[0] == ':') {
		if (s->on_comment != NULL)
			s->on_comment(s->user);
		return 0;
	}
	colon = memchr(line, ':', len);
	if (colon == NULL)
		return take_field(s, line, len, "", 0);
	value = colon + 1;
	if (value < line + len && *value == ' ')
		value++;
	return take_field(s, line, (size_t)(colon - line), value, (size_t)(line + len - value));
}

/* `len` bytes at `s` end a line of which `line` may hold the beginning. */
static int sse_end_line(struct sse *s, const char *at, size_t len)
{
	int rv;

	if (s->line.len == 0)
		return len <= s->line.max ? sse_take_line(s, at, len) : AVA_ETOOBIG;
	rv = buf_add(&s->line, at, len);
	if (rv != 0)
		return rv;
	rv = sse_take_line(s, s->line.data, s->line.len);
	buf_reset(&s->line);
	return rv;
}

int sse_end(struct sse *s)
{
	int rv = s->line.len > 0 ? sse_take_line(s, s->line.data, s->line.len) : 0;

	buf_reset(&s->line);
	return rv == 0 ? dispatch(s) : rv;
}

int sse_feed(struct sse *s, const char *data, size_t len)
{
	const char *end = data + len, *stop, *lf;
	int rv;

	while (data < end) {
		if (s->after_cr && *data == '\n') { /* skip the second half of \r\n */
			s->after_cr = false;
			data++;
			continue;
		}
		s->after_cr = false;
		lf = memchr(data, '\n', (size_t)(end - data));
		stop = memchr(data, '\r', (size_t)((lf != NULL ? lf : end) - data));
		stop = stop != NULL ? stop : lf;
		if (stop == NULL)
			return buf_add(&s->line, data, (size_t)(end - data));
		s->after_cr = *stop == '\r';
		rv = sse_end_line(s, data, (size_t)(stop - data));
		if (rv != 0)
			return rv;
		data = stop + 1;
	}
	return 0;
}
