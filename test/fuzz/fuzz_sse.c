/* A stream in one piece and in pieces, which the first byte sizes, gives the
 * same events; no event and no line is over the bound. */
#include "fuzz.h"

#include "base/util.h"
#include "codec/sse.h"

#define FRAME_MAX 512

static int event_cb(const struct sse_event *e, void *user)
{
	struct buf *out = user;

	CHECK(e->len <= FRAME_MAX && strlen(e->id) <= FRAME_MAX);
	CHECK(strchr(e->event, '\n') == NULL);
	buf_adds(out, e->event);
	buf_addc(out, '|');
	buf_add(out, e->data, e->len);
	buf_addc(out, '|');
	buf_adds(out, e->id);
	buf_addc(out, '\n');
	return 0;
}

static void comment_cb(void *user)
{
	buf_addc(user, ':');
}

static int read_all(const char *data, size_t len, size_t step, struct buf *out)
{
	struct sse s;
	int rv = 0;

	sse_init(&s, FRAME_MAX);
	s.on_event = event_cb;
	s.on_comment = comment_cb;
	s.user = out;
	for (size_t at = 0; at < len && rv == 0; at += step) {
		size_t n = MIN(step, len - at);
		char *piece = fuzz_copy(data + at, n);

		rv = sse_feed(&s, piece, n);
		free(piece);
	}
	sse_fini(&s);
	return rv;
}

FUZZ_TARGET(sse, len)
{
	struct buf whole, pieces;
	int rv[2];

	if (len < 2 || len > 65536)
		return;
	buf_init(&whole, 64u << 20);
	buf_init(&pieces, 64u << 20);
	rv[0] = read_all((const char *)data + 1, len - 1, len, &whole);
	rv[1] = read_all((const char *)data + 1, len - 1, (size_t)data[0] % 64 + 1, &pieces);
	CHECK(rv[0] == rv[1]);
	CHECK(whole.len == pieces.len);
	CHECK(whole.len == 0 || memcmp(whole.data, pieces.data, whole.len) == 0);
	buf_fini(&whole);
	buf_fini(&pieces);
}
