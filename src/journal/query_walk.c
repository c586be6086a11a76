/* One question's way through a log; query_cover.h.
 *
 * Happy path: chunk by chunk, the parts of the index that the question needs
 * are read and checked, and give the stretches of the log that are to be
 * looked at. Behind the last chunk all is.
 *
 * What can fail: reading, memory, a part that is not as it was written: then
 * that chunk is looked at whole, and no line of it is taken for sound. */
#include <ava.h>
#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"
#include "base/sys.h"
#include "base/util.h"
#include "journal/query_cover.h"
#include "journal/query_store.h"

#define NEAR ((uint64_t)8 << 10) /* reading so much in vain costs less than a call */
#define FAR  ((uint64_t)128 << 10)

void query_walk_init(struct query_walk *w, const struct query_cover *c, const struct query *want)
{
	*w = (struct query_walk){.cover = c, .want = want, .limit = UINT64_MAX};
}

void query_walk_fini(struct query_walk *w)
{
	free(w->found.v);
	free(w->bytes);
	*w = (struct query_walk){0};
}

static int read_parts(struct query_walk *w, const struct query_chunk *c, unsigned needs,
		      const unsigned char *parts[QUERY_INDEX_NPARTS])
{
	size_t size = query_index_size(&c->head), used = 0;
	uint64_t at = c->pos + QUERY_INDEX_HEAD;

	if (size > w->cap) {
		unsigned char *grown = realloc(w->bytes, size);

		if (grown == NULL)
			return AVA_ENOMEM;
		w->bytes = grown;
		w->cap = size;
	}
	for (int i = 0; i < QUERY_INDEX_NPARTS; i++) {
		size_t len = query_index_part_size(&c->head, (enum query_index_part)i);

		if ((needs & 1u << i) != 0) {
			if (query_store_read(w->cover, w->bytes + used, len, at) != 0)
				return AVA_EIO;
			if (i != QUERY_INDEX_STARTS &&
			    crc32c(0, w->bytes + used, len) != c->head.part_crc[i])
				return AVA_ECORRUPT;
			parts[i] = w->bytes + used;
			used += len;
		}
		at += len;
	}
	return 0;
}

/* Of one chunk, which takes the place of the last one. False: no memory even
 * for saying that all of it is to be looked at. */
static bool load(struct query_walk *w, const struct query_chunk *c)
{
	const unsigned char *parts[QUERY_INDEX_NPARTS] = {0};
	bool all, known = true;
	unsigned needs = query_index_needs(&c->head, w->want, &all);

	w->found.n = w->given = 0;
	w->at = c->head.at;
	w->sure = !c->head.opaque;
	if (needs != 0)
		known = read_parts(w, c, needs, parts) == 0 &&
			query_index_select(&c->head, parts, w->want, &w->found) == 0;
	if (!known)
		w->sure = false;
	if (!all && known)
		return true;
	w->found.n = 0;
	return query_stretches_add(&w->found, 0, c->head.bytes) == 0;
}

bool query_walk_load(struct query_walk *w, size_t i)
{
	w->next = i + 1;
	return load(w, &w->cover->chunks[i]);
}

static bool give(struct query_walk *w, uint64_t at, struct query_gap *out)
{
	const struct query_stretch *s;

	while (w->given < w->found.n && w->at + w->found.v[w->given].to <= at)
		w->given++;
	if (w->given == w->found.n)
		return false;
	s = &w->found.v[w->given];
	*out = (struct query_gap){MAX(at, w->at + s->from), w->at + s->to, w->at + s->to, w->sure};
	for (size_t i = w->given + 1;
	     i < w->found.n && w->at + w->found.v[i].from <= out->reach + NEAR &&
	     out->reach - out->from < FAR;
	     i++)
		out->reach = w->at + w->found.v[i].to;
	return true;
}

void query_walk_next(struct query_walk *w, uint64_t at, struct query_gap *out)
{
	const struct query_cover *c = w->cover;
	uint64_t end = 0;

	if (give(w, at, out))
		return;
	while (w->next < c->n && c->chunks[w->next].head.at < w->limit) {
		const struct query_chunk *chunk = &c->chunks[w->next++];

		if (chunk->head.at + chunk->head.bytes <= at)
			continue;
		if (!load(w, chunk)) {
			w->next = c->n;
			*out = (struct query_gap){MAX(at, chunk->head.at), UINT64_MAX, UINT64_MAX,
						  false};
			return;
		}
		if (give(w, at, out))
			return;
	}
	if (w->next < c->n)
		end = c->chunks[w->next].head.at;
	else if (c->n > 0)
		end = c->chunks[c->n - 1].head.at + c->chunks[c->n - 1].head.bytes;
	*out = (struct query_gap){MAX(at, end), UINT64_MAX, UINT64_MAX, false};
}
