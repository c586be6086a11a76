/* As a log (the first line is asked for as a type, an id, a time and a text):
 * what its index leaves out, of a chunk or of a small log, is neither wanted
 * nor broken. As an index: a head, a row and parts with any numbers in them,
 * their checksums made to fit, give stretches that are in order and within the
 * chunk, or are refused. */
#include "fuzz.h"

#include <ava.h>
#include <string.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/le.h"
#include "journal/query_build.h"
#include "journal/query_index.h"
#include "journal/query_small.h"

#define NOW INT64_C(1795248000000)
#define MAX ((size_t)64 << 20)

static void check_order(const struct query_index_head *h, const struct query_stretches *s)
{
	uint32_t last = 0;

	for (size_t i = 0; i < s->n; i++) {
		CHECK(s->v[i].from >= last && s->v[i].from < s->v[i].to);
		CHECK(s->v[i].to <= h->bytes);
		last = s->v[i].to;
	}
}

/* Pointers to the parts behind a head; false: there are not so many bytes. */
static bool find_parts(const struct query_index_head *h, const uint8_t *data, size_t len,
		       unsigned needs, const unsigned char *parts[QUERY_INDEX_NPARTS])
{
	size_t at = QUERY_INDEX_HEAD;

	if (query_index_size(h) > len)
		return false;
	for (int i = 0; i < QUERY_INDEX_NPARTS; i++) {
		parts[i] = (needs & 1u << i) != 0 ? data + at : NULL;
		at += query_index_part_size(h, (enum query_index_part)i);
	}
	return true;
}

/* ---- as a log */

static bool is_selected(const struct query_stretches *s, size_t from, size_t to)
{
	for (size_t i = 0; i < s->n; i++)
		if (s->v[i].from <= from && to <= s->v[i].to)
			return true;
	return false;
}

static void check_question(const struct query *q, const char *log, size_t len)
{
	const unsigned char *parts[QUERY_INDEX_NPARTS] = {0};
	struct query_small_row row = {0};
	struct query_stretches s = {0};
	struct query_index_head h;
	struct event_view v;
	struct buf made;
	bool all, fits;
	unsigned needs;

	buf_init(&made, MAX);
	CHECK(query_build(&made, log, len, 0, 1 + len % 300) == 0);
	CHECK(query_index_head_get((uint8_t *)made.data, &h));
	CHECK(query_index_size(&h) == made.len && h.bytes == len);
	needs = query_index_needs(&h, q, &all);
	if (needs != 0) {
		CHECK(find_parts(&h, (uint8_t *)made.data, made.len, needs, parts));
		CHECK(query_index_select(&h, parts, q, &s) == 0);
	}
	check_order(&h, &s);
	made.len = 0;
	CHECK(query_small_row_of(&row, log, len, &made) == 0);
	fits = query_small_row_fits(&row, q);
	for (size_t at = 0, to; at < len; at = to) {
		to = (size_t)((const char *)memchr(log + at, '\n', len - at) + 1 - log);
		if (query_line(q, log + at, to - 1 - at, false, &v) == QUERY_NO)
			continue;
		CHECK(fits);
		CHECK(all || is_selected(&s, at, to));
	}
	free(s.v);
	buf_fini(&made);
}

static void as_log(const char *text, const char *log, size_t len)
{
	struct query_spec specs[] = {{.types = text},
				     {.agent = text},
				     {.session = text},
				     {.user = text},
				     {.since = text},
				     {.until = text},
				     {.types = "infer", .agent = text},
				     {.search = text}};

	for (size_t i = 0; i < sizeof(specs) / sizeof(*specs); i++) {
		struct query q;

		specs[i].now_ms = NOW;
		if (query_init(&q, &specs[i], NULL) != 0)
			continue;
		check_question(&q, log, len);
		query_fini(&q);
	}
}

/* ---- as an index */

/* The checksum of each block's starts, where they are within the part. */
static void fit_starts(const struct query_index_head *h, uint8_t *blocks, const uint8_t *starts)
{
	for (uint32_t i = 0; i < h->blocks; i++) {
		struct query_index_block b, next = {.first = h->lines};
		uint8_t *at = blocks + (size_t)i * QUERY_INDEX_BLOCK_SIZE;

		query_index_block_get(at, &b);
		if (i + 1 < h->blocks)
			query_index_block_get(at + QUERY_INDEX_BLOCK_SIZE, &next);
		if (b.first < next.first && next.first <= h->lines)
			put32(at + 12, crc32c(0, starts + 2 * (size_t)b.first,
					      2 * (size_t)(next.first - b.first)));
	}
}

static void as_chunk(uint8_t *data, size_t len)
{
	const struct query_spec specs[] = {{.agent = "ava"},
					   {.types = "error,tool", .user = "ben"}};
	const unsigned char *parts[QUERY_INDEX_NPARTS];
	struct query_stretches s = {0};
	struct query_index_model m;
	struct query_index_head h;
	struct query q;
	size_t at = 0;
	bool all;

	if (len < QUERY_INDEX_HEAD)
		return;
	memcpy(data, "chnk", 4);
	put32(data + QUERY_INDEX_HEAD - 4, crc32c(0, data, QUERY_INDEX_HEAD - 4));
	if (!query_index_head_get(data, &h) || !find_parts(&h, data, len, ~0u, parts) || h.opaque)
		return;
	while (query_index_model_next(parts[QUERY_INDEX_MODELS], h.models, &at, &m))
		CHECK((uint8_t *)m.name + m.len <= data + len);
	fit_starts(&h, data + (parts[0] - data), parts[QUERY_INDEX_STARTS]);
	for (size_t i = 0; i < sizeof(specs) / sizeof(*specs); i++) {
		CHECK(query_init(&q, &specs[i], NULL) == 0);
		if (query_index_needs(&h, &q, &all) != 0) {
			find_parts(&h, data, len, query_index_needs(&h, &q, &all), parts);
			if (query_index_select(&h, parts, &q, &s) == 0)
				check_order(&h, &s);
		}
		query_fini(&q);
	}
	free(s.v);
}

static void as_row(uint8_t *data, size_t len)
{
	struct query_spec spec = {.agent = "ava", .since = "2026-11-21"};
	struct query_small_row row, again;
	uint8_t bytes[QUERY_SMALL_ROW];
	struct query q;

	if (len < QUERY_SMALL_ROW)
		return;
	put32(data + QUERY_SMALL_ROW - 4, crc32c(0, data, QUERY_SMALL_ROW - 4));
	CHECK(query_small_row_get(data, &row));
	query_small_row_put(bytes, &row);
	CHECK(query_small_row_get(bytes, &again));
	CHECK(again.chunk.at == row.chunk.at && again.chunk.size == row.chunk.size);
	CHECK(again.first == row.first && again.opaque == row.opaque && again.kinds == row.kinds);
	spec.now_ms = NOW;
	CHECK(query_init(&q, &spec, NULL) == 0);
	query_small_row_fits(&row, &q);
	query_fini(&q);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const uint8_t *nl = len > 0 ? memchr(data, '\n', len) : NULL;
	uint8_t *copy = malloc(len + 1);

	CHECK(copy != NULL);
	if (len > 0)
		memcpy(copy, data, len);
	copy[len] = '\0';
	if (nl != NULL && nl + 1 < data + len && data[len - 1] == '\n') {
		size_t head = (size_t)(nl - data);

		copy[head] = '\0';
		as_log((char *)copy, (char *)copy + head + 1, len - head - 1);
		copy[head] = '\n';
	}
	as_row(copy, len);
	as_chunk(copy, len);
	free(copy);
	return 0;
}
