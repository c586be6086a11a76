/* An answer of a daemon in one piece and in pieces, which the first byte
 * sizes, is read the same: outcome, status and body. Nothing is taken behind
 * its end, and a body by length or in chunks is no longer than what came. */
#include "fuzz.h"

#include <ava.h>

#include "base/error.h"
#include "base/util.h"
#include "client/client.h"

struct outcome {
	int rv, status;
	bool done, keep_alive;
	size_t used;
	struct buf body;
};

static int sink(const char *data, size_t len, void *user)
{
	return buf_add(user, data, len);
}

static void read_all(const char *data, size_t len, size_t step, struct outcome *o)
{
	struct ava_error err = {0};
	struct http_reader r;

	*o = (struct outcome){0};
	buf_init(&o->body, 64u << 20);
	http_reader_init(&r, sink, &o->body);
	for (size_t at = 0; at < len && o->rv == 0 && r.state != HTTP_READER_DONE; at += step) {
		size_t n = MIN(step, len - at), used = 0;
		char *piece = fuzz_copy(data + at, n);

		o->rv = http_reader_feed(&r, piece, n, &used, &err);
		CHECK(used <= n);
		CHECK(o->rv != 0 || used == n || r.state == HTTP_READER_DONE);
		o->used += used;
		free(piece);
	}
	if (o->rv == 0)
		o->rv = http_reader_eof(&r, &err);
	CHECK(o->rv == 0 || o->rv == AVA_EPROTO);
	CHECK((o->rv != 0) == (err.text[0] != '\0'));
	o->status = r.status;
	o->done = r.state == HTTP_READER_DONE;
	o->keep_alive = r.keep_alive;
	CHECK((o->rv == 0) == o->done);
	CHECK(o->status == 0 || (o->status >= 100 && o->status <= 999));
	CHECK(o->body.len <= o->used);
	http_reader_fini(&r);
}

FUZZ_TARGET(http, len)
{
	struct outcome whole, pieces;

	if (len < 2 || len > 65536)
		return;
	read_all((const char *)data + 1, len - 1, len, &whole);
	read_all((const char *)data + 1, len - 1, (size_t)data[0] % 64 + 1, &pieces);
	CHECK(whole.rv == pieces.rv && whole.done == pieces.done);
	CHECK(whole.status == pieces.status);
	CHECK(whole.rv != 0 || whole.used == pieces.used);
	CHECK(whole.rv != 0 || whole.keep_alive == pieces.keep_alive);
	CHECK(whole.body.len == pieces.body.len);
	CHECK(whole.body.len == 0 ||
	      memcmp(whole.body.data, pieces.body.data, whole.body.len) == 0);
	buf_fini(&whole.body);
	buf_fini(&pieces.body);
}
